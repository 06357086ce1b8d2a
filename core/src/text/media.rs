//! Detects binary streams: a NUL, invalid UTF-8, or more than a tenth control characters.

/// How many first bytes are held to recognise the file type.
const START: usize = 16;

/// Checks a stream for binary data as it arrives.
#[derive(Debug, Default)]
pub(crate) struct Guard {
    nul: bool,
    invalid: bool,
    control: u64,
    /// The first bytes of a character whose remaining bytes have not arrived.
    partial: Vec<u8>,
    start: Vec<u8>,
}

impl Guard {
    /// Checks the next bytes of the stream.
    pub(crate) fn see(&mut self, bytes: &[u8]) {
        let room = START.saturating_sub(self.start.len()).min(bytes.len());
        self.start.extend_from_slice(&bytes[..room]);
        self.nul |= memchr::memchr(0, bytes).is_some();
        self.control += bytes.iter().filter(|b| is_control(**b)).count() as u64;
        if self.invalid {
            return;
        }
        let joined;
        let all = if self.partial.is_empty() {
            bytes
        } else {
            joined = [self.partial.as_slice(), bytes].concat();
            &joined
        };
        match std::str::from_utf8(all) {
            Ok(_) => self.partial.clear(),
            Err(e) if e.error_len().is_none() => self.partial = all[e.valid_up_to()..].to_vec(),
            Err(_) => self.invalid = true,
        }
    }

    /// Whether the stream, of this length, is binary. An incomplete last character only means that the stream was cut.
    pub(crate) fn is_binary(&self, bytes: u64) -> bool {
        self.nul || self.invalid || self.control * 10 > bytes
    }

    /// The first bytes of the stream.
    pub(crate) fn start(&self) -> &[u8] {
        &self.start
    }
}

/// Whether a byte counts as binary. Terminal controls (ESC, backspace, bell, return) do not, because they are stripped.
fn is_control(byte: u8) -> bool {
    byte.is_ascii_control() && !matches!(byte, b'\n' | b'\t' | b'\r' | 0x07 | 0x08 | 0x0c | 0x1b)
}

/// The media type of an image that models accept, by its first bytes.
pub(crate) fn media_type(start: &[u8]) -> Option<&'static str> {
    match start {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

/// Whether an image passes a Provider's basic checks. An image that the Provider refuses fails every later request.
pub(crate) fn is_whole_image(bytes: &[u8]) -> bool {
    let has_size = |at: usize, len: usize| bytes.get(at..at + len).is_some_and(|size| size.iter().any(|b| *b != 0));
    match media_type(bytes) {
        Some("image/png") => {
            let has_header = bytes.get(12..16) == Some(b"IHDR") && has_size(16, 4) && has_size(20, 4);
            has_header && memchr::memmem::rfind(bytes, b"IEND").is_some()
        }
        Some("image/gif") => has_size(6, 2) && has_size(8, 2) && bytes.len() > 14,
        Some("image/jpeg") => bytes.len() > 100 && memchr::memmem::rfind(bytes, &[0xff, 0xd9]).is_some(),
        Some("image/webp") => bytes.get(4..8).is_some_and(|size| {
            let size = u32::from_le_bytes([size[0], size[1], size[2], size[3]]);
            size > 12 && bytes.len() as u64 >= u64::from(size)
        }),
        Some(_) | None => false,
    }
}
