//! Removes terminal sequences from a byte stream that arrives in arbitrary chunks.

use protocol::event::Colouring;

/// Drops ECMA-48 sequences (CSI, OSC, DCS, APC, …) and control characters; passes text, newline, tab and return.
#[derive(Debug, Clone, Default)]
pub struct Stripper {
    state: State,
    /// The parameters of the current sequence.
    parameters: Vec<u8>,
    /// The number of text bytes so far.
    told: u64,
    /// The colours with their positions; `None` if the caller wants none.
    colours: Option<Vec<Colouring>>,
    /// How many colours the live view has received.
    given: usize,
}

/// The most colour changes of one stream; beyond it all colours are dropped.
const MOST_COLOURS: usize = 2_000;
/// The longest parameters of a colour sequence, bytes.
const LONGEST: usize = 40;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum State {
    #[default]
    Text,
    /// After ESC.
    Escape,
    /// After ESC and an intermediate byte: one more final byte.
    Charset,
    /// Inside CSI, until its final byte.
    Csi,
    /// Inside a string (OSC, DCS, SOS, PM, APC), until BEL or ST.
    Text7,
    /// Inside a string, after ESC: `\` ends it.
    Text7Escape,
    /// After 0xC2, which starts both a C1 control and Latin letters.
    C2,
}

impl Stripper {
    /// A stripper that also records colours and their positions in the text.
    pub fn with_colours() -> Stripper {
        Stripper { colours: Some(Vec::new()), ..Stripper::default() }
    }

    /// The colours recorded since the last call, with positions relative to `place`.
    ///
    /// A stream with too many colours yields a single reset.
    pub fn new_colours(&mut self, place: u64) -> Vec<Colouring> {
        let Some(all) = &self.colours else { return Vec::new() };
        let new = &all[std::mem::replace(&mut self.given, all.len())..];
        if all.len() > MOST_COLOURS {
            return new.last().map(|_| Colouring { at: 0, sgr: "0".to_owned() }).into_iter().collect();
        }
        new.iter().map(|it| Colouring { at: it.at - place, sgr: it.sgr.clone() }).collect()
    }

    /// All recorded colours, or none if there were too many.
    pub fn take_colours(&mut self) -> Vec<Colouring> {
        self.colours.take().filter(|all| all.len() <= MOST_COLOURS).unwrap_or_default()
    }

    /// Records the sequence that just ended, if it sets a colour.
    fn note(&mut self, text: &[u8], last: u8) {
        let parameters = std::mem::take(&mut self.parameters);
        let is_colour = last == b'm' && parameters.iter().all(|b| matches!(b, b'0'..=b'9' | b';' | b':'));
        if let Some(colours) = self.colours.as_mut().filter(|all| is_colour && all.len() <= MOST_COLOURS) {
            let at = self.told + text.len() as u64;
            colours.push(Colouring { at, sgr: String::from_utf8_lossy(&parameters).into_owned() });
        }
    }

    /// The text in these bytes; a sequence may continue in the next call.
    pub fn strip(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut text = Vec::with_capacity(bytes.len());
        let mut at = 0;
        while at < bytes.len() {
            // Fast path: most bytes are plain text.
            if self.state == State::Text {
                let plain = bytes[at..].iter().take_while(|b| matches!(b, 0x20..0x7f | b'\n' | 0xc3..)).count();
                text.extend_from_slice(&bytes[at..at + plain]);
                at += plain;
                if at == bytes.len() {
                    break;
                }
            }
            let byte = bytes[at];
            at += 1;
            self.state = match (self.state, byte) {
                (State::Text | State::C2, 0x1b) => State::Escape,
                (State::Text, 0xc2) => State::C2,
                // C1 controls in UTF-8 mostly come from a wrong encoding, so one starts no sequence.
                (State::C2, 0x80..=0x9f) => State::Text,
                (State::C2, 0xa0..=0xbf) => {
                    text.push(0xc2);
                    text.push(byte);
                    State::Text
                }
                // 0xC2 began no character here; the byte after it is processed again on its own.
                (State::C2, _) => {
                    text.push(0xc2);
                    at -= 1;
                    State::Text
                }
                (State::Text, b'\n' | b'\t' | b'\r') => {
                    text.push(byte);
                    State::Text
                }
                (State::Text, 0..0x20 | 0x7f) => State::Text,
                (State::Text, _) => {
                    text.push(byte);
                    State::Text
                }
                (State::Escape, b'[') => {
                    self.parameters.clear();
                    State::Csi
                }
                (State::Escape, b']' | b'P' | b'X' | b'^' | b'_') => State::Text7,
                (State::Escape, 0x20..=0x2f) => State::Charset,
                (State::Escape, 0x1b) => State::Escape,
                // This byte cannot continue a sequence, so it is text.
                (State::Escape | State::Charset, b'\n' | 0x80..) => {
                    text.push(byte);
                    State::Text
                }
                (State::Escape | State::Charset, _) => State::Text,
                (State::Csi, 0x40..=0x7e) => {
                    self.note(&text, byte);
                    State::Text
                }
                (State::Csi | State::Text7Escape, 0x1b) => State::Escape,
                // A newline ends a broken sequence: a stray parameter is better than a lost line.
                (State::Csi | State::Text7 | State::Text7Escape, b'\n') => {
                    text.push(byte);
                    State::Text
                }
                (State::Csi, _) => {
                    if self.parameters.len() <= LONGEST {
                        self.parameters.push(byte);
                    }
                    State::Csi
                }
                (State::Text7, 0x07) => State::Text,
                (State::Text7, 0x1b) => State::Text7Escape,
                (State::Text7, _) => State::Text7,
                (State::Text7Escape, _) => State::Text,
            };
        }
        self.told += text.len() as u64;
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_of_cutting_the_bytes_gives_the_same_text() {
        let hostile = "a\x1b[1;31mb\x1b[0m\x1b]8;;http://x\x1b\\link\x1b]8;;\x07\x1bP+q\x1b\\\x1b(B\u{9b}31mc\u{85}é\x07\x08z\u{a0}\n".as_bytes();
        let whole = Stripper::default().strip(hostile);
        assert_eq!(String::from_utf8(whole.clone()).expect("text"), "ablink31mcéz\u{a0}\n");
        for open in ["\x1b]0;title", "\x1bPq", "\x1b_a", "\x1b[1;", "\u{9d}"] {
            let text = Stripper::default().strip(format!("a\n{open}\nthe reason\n").as_bytes());
            assert!(text.ends_with(b"\nthe reason\n"), "{open:?} hides what follows");
        }
        for (bytes, text) in
            [(&b"a\xc2\x07b"[..], &b"a\xc2b"[..]), (b"\xc2\xc2\x9b31m", b"\xc231m"), (b"\xc2\xc2\xa0", b"\xc2\xc2\xa0")]
        {
            assert_eq!(Stripper::default().strip(bytes), text, "{bytes:?}");
        }
        for cut in 0..hostile.len() {
            let mut stripper = Stripper::default();
            let mut parts = stripper.strip(&hostile[..cut]);
            parts.extend(stripper.strip(&hostile[cut..]));
            assert_eq!(parts, whole, "cut at {cut}");
            let mut stripper = Stripper::with_colours();
            stripper.strip(&hostile[..cut]);
            stripper.strip(&hostile[cut..]);
            let colours = stripper.take_colours();
            let colours: Vec<(u64, &str)> = colours.iter().map(|it| (it.at, it.sgr.as_str())).collect();
            assert_eq!(colours, [(1, "1;31"), (2, "0")], "cut at {cut}");
        }
    }
}
