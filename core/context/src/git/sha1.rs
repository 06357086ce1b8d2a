//! SHA-1 as FIPS 180-4 describes it: git names objects by it. Nothing here relies on its strength.

/// The digest of the parts, one after the other.
pub(super) fn digest(parts: &[&[u8]]) -> [u8; 20] {
    let mut state: [u32; 5] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0];
    let mut block = [0_u8; 64];
    let mut filled = 0;
    let mut len = 0_u64;
    for byte in parts.iter().flat_map(|part| part.iter()) {
        block[filled] = *byte;
        filled += 1;
        len += 8;
        if filled == block.len() {
            mix(&mut state, &block);
            filled = 0;
        }
    }
    block[filled] = 0x80;
    block[filled + 1..].fill(0);
    if filled >= 56 {
        mix(&mut state, &block);
        block.fill(0);
    }
    block[56..].copy_from_slice(&len.to_be_bytes());
    mix(&mut state, &block);
    let mut digest = [0; 20];
    for (bytes, word) in digest.chunks_exact_mut(4).zip(state) {
        bytes.copy_from_slice(&word.to_be_bytes());
    }
    digest
}

fn mix(state: &mut [u32; 5], block: &[u8; 64]) {
    let mut words = [0_u32; 80];
    for (word, bytes) in words.iter_mut().zip(block.chunks_exact(4)) {
        *word = bytes.iter().fold(0, |word, byte| word << 8 | u32::from(*byte));
    }
    for at in 16..80 {
        words[at] = (words[at - 3] ^ words[at - 8] ^ words[at - 14] ^ words[at - 16]).rotate_left(1);
    }
    let [mut a, mut b, mut c, mut d, mut e] = *state;
    for (at, word) in words.iter().enumerate() {
        let (choice, constant) = match at {
            0..20 => ((b & c) | (!b & d), 0x5a82_7999),
            20..40 => (b ^ c ^ d, 0x6ed9_eba1),
            40..60 => ((b & c) | (b & d) | (c & d), 0x8f1b_bcdc),
            _ => (b ^ c ^ d, 0xca62_c1d6_u32),
        };
        let next = a.rotate_left(5).wrapping_add(choice).wrapping_add(e).wrapping_add(constant).wrapping_add(*word);
        (a, b, c, d, e) = (next, a, b.rotate_left(30), c, d);
    }
    for (word, add) in state.iter_mut().zip([a, b, c, d, e]) {
        *word = word.wrapping_add(add);
    }
}

#[cfg(test)]
mod tests {
    use super::digest;

    #[test]
    fn the_digests_of_the_standard() {
        let hex = |parts: &[&[u8]]| digest(parts).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        assert_eq!(hex(&[b"abc"]), "a9993e364706816aba3e25717850c26c9cd0d89d");
        assert_eq!(hex(&[]), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
        let two_blocks = b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
        assert_eq!(hex(&[&two_blocks[..7], &two_blocks[7..]]), "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
        assert_eq!(hex(&[&[b'a'; 1_000_000]]), "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
    }
}
