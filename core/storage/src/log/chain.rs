//! The checksum that ties each line to the one before it.

/// The first 128 bits of BLAKE3(previous chain ‖ this line without its chain).
pub(super) type Chain = [u8; 16];

const KEY: &str = ",\"chain\":\"";
/// `,"chain":"` + 32 hex + `"}`.
const SUFFIX: usize = KEY.len() + 32 + 2;

/// Computes the chain of a line. `open` is the line's JSON object without the closing brace.
pub(super) fn link(previous: Chain, open: &[u8]) -> Chain {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&previous);
    hasher.update(open);
    hasher.update(b"}");
    let mut chain = Chain::default();
    chain.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    chain
}

/// Turns an Entry's JSON object into a line and returns its chain.
pub(super) fn seal(previous: Chain, line: &mut String) -> Chain {
    line.truncate(line.len() - 1);
    let chain = link(previous, line.as_bytes());
    line.push_str(KEY);
    for byte in chain {
        for digit in [byte >> 4, byte & 15] {
            line.push(char::from_digit(u32::from(digit), 16).expect("a digit below 16"));
        }
    }
    line.push_str("\"}\n");
    chain
}

/// Splits a line into its JSON object, without the closing brace and the chain, and the chain that it states.
pub(super) fn split(line: &str) -> Option<(&str, Chain)> {
    let cut = line.len().checked_sub(SUFFIX).filter(|cut| line.is_char_boundary(*cut))?;
    let (open, tail) = line.split_at(cut);
    let hex = tail.strip_prefix(KEY)?.strip_suffix("\"}")?;
    Some((open, parse_hex(hex)?))
}

fn parse_hex(text: &str) -> Option<Chain> {
    let mut chain = Chain::default();
    for (byte, pair) in chain.iter_mut().zip(text.as_bytes().chunks(2)) {
        let digit = |b: u8| char::from(b).to_digit(16).and_then(|d| u8::try_from(d).ok());
        *byte = digit(pair[0])? << 4 | digit(*pair.get(1)?)?;
    }
    Some(chain)
}
