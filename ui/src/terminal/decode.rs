//! Decodes bytes from the terminal into keys, pastes, mouse events and answers. Unknown sequences are skipped as a
//! whole.
//!
//! Sources: ECMA-48 for the shape of sequences; xterm's ctlseqs for keys, mouse (1006) and reports; the kitty keyboard
//! protocol.

use std::time::Duration;

use super::key::{KeyCode, KeyEvent, KeyModifiers, MouseEvent};

mod sequence; // one sequence of bytes

use sequence::{Token, key, next};

/// An event of the terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TerminalEvent {
    Key(KeyEvent),
    Mouse(MouseEvent),
    /// Pasted text. It never submits.
    Paste(String),
    /// The window has gained the focus, or lost it.
    Focus(bool),
    Reply(TerminalReply),
}

/// An answer of the terminal to a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TerminalReply {
    /// The support of a private mode (DECRPM).
    Mode { mode: u16, supported: bool },
    /// The kitty keyboard protocol is supported.
    Keyboard,
    /// The background colour.
    Background(u8, u8, u8),
    /// The user has changed between a dark and a light scheme.
    Scheme { dark: bool },
    /// The terminal's name and version.
    Name(String),
    /// The place of the cursor, from 1.
    Cursor { row: u16, column: u16 },
    /// The size in cells.
    Size { columns: u16, rows: u16 },
    /// The answer to the last query. All earlier queries are answered, or never will be.
    Done,
}

/// How long the byte after an ESC may take. After that, the ESC was the Esc key.
const ESCAPE: Duration = Duration::from_millis(25);
/// How long the rest of a longer sequence may take: over a network it can arrive in pieces.
const SEQUENCE: Duration = Duration::from_secs(1);
/// How long a paste may pause. After that, the text so far is delivered and the paste goes on.
const PASTE: Duration = Duration::from_secs(1);
/// After this many pauses a paste is over even without its end marker. Otherwise a lost marker would turn everything
/// that the user types from then on into pasted text.
const PAUSES: u8 = 30;
/// The longest sequence that is decoded, in bytes. It bounds the buffer.
const MAX_SEQUENCE: usize = 64 << 10;
/// The sequence that ends a paste.
const PASTE_END: &[u8] = b"\x1b[201~";

/// Decodes bytes that arrive in pieces of any size.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    /// The begin of a sequence whose end has not arrived.
    held: Vec<u8>,
    pasting: Option<Vec<u8>>,
    /// Pauses in the current paste.
    pauses: u8,
    /// A part of the current paste has been delivered.
    has_delivered: bool,
    /// The rest of a sequence that timed out is still to come, and must not be taken for text.
    skips: bool,
}

impl Decoder {
    /// Decodes the events that these bytes complete.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Vec<TerminalEvent> {
        let mut events = Vec::new();
        let mut held = std::mem::take(&mut self.held);
        let joined;
        let mut rest = if held.is_empty() {
            bytes
        } else {
            held.extend_from_slice(bytes);
            joined = held;
            &joined[..]
        };
        while !rest.is_empty() {
            if self.skips {
                rest = self.skip(rest);
                continue;
            }
            if let Some(text) = &mut self.pasting {
                self.pauses = 0;
                rest = take_paste(text, rest);
                if text.ends_with(PASTE_END) {
                    events.extend(self.end_paste());
                }
                continue;
            }
            match next(rest) {
                Token::Whole(length, it) => {
                    events.extend(it);
                    rest = &rest[length..];
                }
                Token::PasteBegins(length) => {
                    self.pasting = Some(Vec::new());
                    rest = &rest[length..];
                }
                Token::Half if rest.len() > MAX_SEQUENCE => {
                    self.skips = true;
                    rest = &[];
                }
                Token::Half => {
                    self.held = rest.to_vec();
                    return events;
                }
            }
        }
        events
    }

    /// How long the rest of the held bytes may take. None if no bytes are held.
    pub(crate) fn patience(&self) -> Option<Duration> {
        match (&self.pasting, self.held.as_slice()) {
            (Some(_), _) => Some(PASTE),
            (None, []) => None,
            // A key by itself, unless more bytes follow at once.
            (None, [0x1b] | [0x1b, 0x1b] | [0x1b, 0x20..=0x7e]) => Some(ESCAPE),
            (None, _) => Some(SEQUENCE),
        }
    }

    /// The rest has not arrived in time: decodes the held bytes as they are.
    pub(crate) fn give_up(&mut self) -> Vec<TerminalEvent> {
        if let Some(text) = &mut self.pasting {
            self.pauses += 1;
            if self.pauses > PAUSES {
                return self.end_paste().into_iter().collect();
            }
            // The begin of the end marker stays, because its rest may follow.
            let keep = (1..PASTE_END.len()).rev().find(|n| text.ends_with(&PASTE_END[..*n])).unwrap_or(0);
            let delivered: Vec<u8> = text.drain(..text.len() - keep).collect();
            self.has_delivered |= !delivered.is_empty();
            return pasted(&delivered).into_iter().collect();
        }
        let held = std::mem::take(&mut self.held);
        match held.as_slice() {
            [0x1b] => vec![key(KeyCode::Esc, KeyModifiers::NONE)],
            [0x1b, 0x1b] => vec![key(KeyCode::Esc, KeyModifiers::NONE); 2],
            // Alt with a character that could also begin a sequence.
            [0x1b, c @ 0x20..=0x7e] => vec![key(KeyCode::Char(char::from(*c)), KeyModifiers::ALT)],
            [0x1b, ..] => {
                self.skips = true;
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    /// Skips the rest of a sequence that timed out: up to its final byte, but not into the next sequence.
    fn skip<'a>(&mut self, rest: &'a [u8]) -> &'a [u8] {
        let is_body = |b: &u8| b.is_ascii_digit() || matches!(b, b';' | b':' | b'/' | b'$' | b'?' | b'<' | b'>');
        let body = rest.iter().take_while(|b| is_body(b)).count();
        self.skips = body == rest.len();
        let behind = &rest[body..];
        match behind.first() {
            // The final byte of a key or report, or the end of a string. Any other byte is decoded as input.
            Some(b'M' | b'm' | b'R' | b'u' | b'c' | b'y' | b'n' | b't' | b'~' | 0x07) => &behind[1..],
            _ => behind,
        }
    }

    fn end_paste(&mut self) -> Option<TerminalEvent> {
        let mut text = self.pasting.take()?;
        if text.ends_with(PASTE_END) {
            text.truncate(text.len() - PASTE_END.len());
        }
        // Some terminals paste an empty text for an image. After a delivered part, an empty rest is no such paste.
        self.pauses = 0;
        let was_delivered = std::mem::take(&mut self.has_delivered);
        pasted(&text).or_else(|| (!was_delivered).then(|| TerminalEvent::Paste(String::new())))
    }
}

fn pasted(bytes: &[u8]) -> Option<TerminalEvent> {
    let text = String::from_utf8_lossy(bytes).replace("\r\n", "\n").replace('\r', "\n");
    (!text.is_empty()).then_some(TerminalEvent::Paste(text))
}

/// Appends the bytes of the paste, and returns the bytes after its end.
fn take_paste<'a>(text: &mut Vec<u8>, rest: &'a [u8]) -> &'a [u8] {
    // The end marker may be split between two reads.
    let overlap = text.len().min(PASTE_END.len() - 1);
    let from = text.len() - overlap;
    text.extend_from_slice(rest);
    match memchr::memmem::find(&text[from..], PASTE_END) {
        Some(at) => {
            let end = from + at + PASTE_END.len();
            let behind = text.len() - end;
            text.truncate(end);
            &rest[rest.len() - behind..]
        }
        None => &[],
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::terminal::key::{MouseButton, MouseEventKind};

    pub(crate) fn all(bytes: &[u8]) -> Vec<TerminalEvent> {
        let mut decoder = Decoder::default();
        let mut events = decoder.feed(bytes);
        events.extend(decoder.give_up());
        events
    }

    fn char_key(c: char, modifiers: KeyModifiers) -> TerminalEvent {
        key(KeyCode::Char(c), modifiers)
    }

    const EVERYTHING: &[u8] = b"a\xc3\xa9\xe6\xbc\xa2\xf0\x9f\x91\x8d\r\x01\x1bx\x1b[A\x1b[1;5C\x1bOP\x1b[3~\x1b[97;5u\x1b[27;2;13~\x1b[Z\x1b[I\x1b[<0;3;4M\x1b[<64;1;1M\x1b[200~two\r\nlines\x1b[201~\x1b]11;rgb:1616/1818/1d1d\x1b\\\x1b[?2026;2$y\x1b[?1u\x1b[?62;4c\x1bP>|tmux 3.5a\x1b\\\x1b[?997;2n\x1b[35;150;7M\x1b_gk\x1b\\z";

    fn everything() -> Vec<TerminalEvent> {
        let none = KeyModifiers::NONE;
        vec![
            char_key('a', none),
            char_key('é', none),
            char_key('漢', none),
            char_key('👍', none),
            key(KeyCode::Enter, none),
            char_key('a', KeyModifiers::CONTROL),
            char_key('x', KeyModifiers::ALT),
            key(KeyCode::Up, none),
            key(KeyCode::Right, KeyModifiers::CONTROL),
            key(KeyCode::F(1), none),
            key(KeyCode::Delete, none),
            char_key('a', KeyModifiers::CONTROL),
            key(KeyCode::Enter, KeyModifiers::SHIFT),
            key(KeyCode::BackTab, KeyModifiers::SHIFT),
            TerminalEvent::Focus(true),
            TerminalEvent::Mouse(MouseEvent { kind: MouseEventKind::Down(MouseButton::Left), column: 2, row: 3 }),
            TerminalEvent::Mouse(MouseEvent { kind: MouseEventKind::ScrollUp, column: 0, row: 0 }),
            TerminalEvent::Paste("two\nlines".into()),
            TerminalEvent::Reply(TerminalReply::Background(0x16, 0x18, 0x1d)),
            TerminalEvent::Reply(TerminalReply::Mode { mode: 2026, supported: true }),
            TerminalEvent::Reply(TerminalReply::Keyboard),
            TerminalEvent::Reply(TerminalReply::Done),
            TerminalEvent::Reply(TerminalReply::Name("tmux 3.5a".into())),
            TerminalEvent::Reply(TerminalReply::Scheme { dark: false }),
            char_key('z', none),
        ]
    }

    #[test]
    fn wherever_the_bytes_are_cut_the_same_is_heard() {
        assert_eq!(all(EVERYTHING), everything());
        for cut in 0..=EVERYTHING.len() {
            let mut decoder = Decoder::default();
            let mut events = decoder.feed(&EVERYTHING[..cut]);
            events.extend(decoder.feed(&EVERYTHING[cut..]));
            assert_eq!(events, everything(), "cut at {cut}");
        }
        let mut decoder = Decoder::default();
        let events: Vec<TerminalEvent> = EVERYTHING.iter().flat_map(|b| decoder.feed(&[*b])).collect();
        assert_eq!(events, everything());
    }

    #[test]
    fn a_lone_escape_is_a_key_once_nothing_follows() {
        let mut decoder = Decoder::default();
        assert_eq!(decoder.feed(b"\x1b"), []);
        assert!(decoder.patience().is_some());
        assert_eq!(decoder.give_up(), [key(KeyCode::Esc, KeyModifiers::NONE)]);
        assert!(decoder.patience().is_none());
        assert_eq!(all(b"\x1b["), [char_key('[', KeyModifiers::ALT)]);
        assert_eq!(all(b"\x1b\x1b[A"), [key(KeyCode::Up, KeyModifiers::ALT)]);
        assert_eq!(
            all(b"\x1b\x1b[5~"),
            [key(KeyCode::Esc, KeyModifiers::NONE), key(KeyCode::PageUp, KeyModifiers::NONE)]
        );
        assert_eq!(all(b"\x1b[200~never ended"), [TerminalEvent::Paste("never ended".into())]);
        assert_eq!(all(b"\x1b[<128;10;5M"), [], "the back button of a mouse is no click");
    }

    #[test]
    fn a_slow_line_types_nothing_that_was_not_typed_and_sends_nothing_that_was_pasted() {
        let mut decoder = Decoder::default();
        assert_eq!(decoder.feed(b"\x1b[<35;15"), []);
        assert_eq!(decoder.patience(), Some(SEQUENCE));
        assert_eq!(decoder.give_up(), []);
        assert_eq!(decoder.feed(b"0;7Mx"), [char_key('x', KeyModifiers::NONE)], "its rest is no text");
        let mut decoder = Decoder::default();
        assert_eq!(decoder.feed(b"\x1b[200~one\r"), []);
        assert_eq!(decoder.give_up(), [TerminalEvent::Paste("one\n".into())], "what is there is seen");
        assert_eq!(decoder.feed(b"two\r\x1b[20"), []);
        assert_eq!(decoder.give_up(), [TerminalEvent::Paste("two\n".into())]);
        assert_eq!(decoder.feed(b"1~z"), [char_key('z', KeyModifiers::NONE)]);
    }

    #[test]
    fn any_bytes_at_all_are_survived_and_little_is_held() {
        let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
        let mut byte = || {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed
        };
        let pieces: [&[u8]; 12] = [
            b"\x1b[",
            b"\x1b]",
            b"\x1bP",
            b"\x1b[200~",
            b"\x1b[201~",
            b"\x1bO",
            b"\x1b[<",
            b";",
            b"M",
            b"\x1b\\",
            b"\xf0\x9f",
            b"\x1b\x1b",
        ];
        let bytes = std::env::var("PIXIR_FUZZ_BYTES").ok().and_then(|n| n.parse().ok()).unwrap_or(200_000_usize);
        let mut decoder = Decoder::default();
        let mut fed = 0;
        while fed < bytes {
            let n = byte();
            let random = n.to_le_bytes();
            let piece = if n.is_multiple_of(3) { pieces[(n / 3 % 12) as usize] } else { &random[..(n % 8) as usize] };
            fed += piece.len();
            decoder.feed(piece);
            if n.is_multiple_of(97) {
                decoder.give_up();
            }
            assert!(decoder.held.len() <= MAX_SEQUENCE + 8);
        }
    }
}
