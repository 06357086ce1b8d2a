//! Decodes bytes from the terminal into keys, pastes, mouse events and answers. Unknown sequences are skipped as a
//! whole.
//!
//! Sources: ECMA-48 for the shape of sequences; xterm's ctlseqs for keys, mouse (1006) and reports; the kitty keyboard
//! protocol.

use std::time::Duration;

use super::key::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};

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
    /// The row of the cursor, from 1.
    Cursor { row: u16 },
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

/// The first element of the buffer.
enum Token {
    /// This many bytes, with their event if they mean anything.
    Whole(usize, Option<TerminalEvent>),
    PasteBegins(usize),
    /// A sequence whose end has not arrived.
    Half,
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

fn key(code: KeyCode, modifiers: KeyModifiers) -> TerminalEvent {
    TerminalEvent::Key(KeyEvent::press(code, modifiers))
}

/// Decodes the begin of the buffer, which is not empty.
fn next(buffer: &[u8]) -> Token {
    match buffer[0] {
        0x1b => escape(buffer),
        _ => match plain(buffer) {
            Some((length, code, modifiers)) => Token::Whole(length, code.map(|code| key(code, modifiers))),
            None => Token::Half,
        },
    }
}

/// Decodes a character or a control key: its length, and its key if it has one.
fn plain(buffer: &[u8]) -> Option<(usize, Option<KeyCode>, KeyModifiers)> {
    let control = |c: u8| (1, Some(KeyCode::Char(char::from(c))), KeyModifiers::CONTROL);
    Some(match buffer[0] {
        b'\r' => (1, Some(KeyCode::Enter), KeyModifiers::NONE),
        b'\t' => (1, Some(KeyCode::Tab), KeyModifiers::NONE),
        0x7f => (1, Some(KeyCode::Backspace), KeyModifiers::NONE),
        0 => control(b' '),
        c @ 0x01..=0x1a => control(c - 1 + b'a'),
        // Terminals send the same bytes for Ctrl+4 to Ctrl+7 as for Ctrl+\, Ctrl+], Ctrl+^ and Ctrl+_.
        c @ 0x1c..=0x1f => control(c - 0x1c + b'4'),
        0x20..=0x7e => (1, Some(KeyCode::Char(char::from(buffer[0]))), KeyModifiers::NONE),
        first => {
            let length = match first {
                0xc2..=0xdf => 2,
                0xe0..=0xef => 3,
                0xf0..=0xf4 => 4,
                _ => return Some((1, None, KeyModifiers::NONE)),
            };
            let there = &buffer[..length.min(buffer.len())];
            // A byte that cannot continue the character ends it.
            if let Some(wrong) = there[1..].iter().position(|b| b & 0xc0 != 0x80) {
                return Some((wrong + 1, None, KeyModifiers::NONE));
            }
            if there.len() < length {
                return None;
            }
            let code = std::str::from_utf8(there).ok().and_then(|t| t.chars().next()).filter(|c| !c.is_control());
            (length, code.map(KeyCode::Char), KeyModifiers::NONE)
        }
    })
}

fn escape(buffer: &[u8]) -> Token {
    let Some(second) = buffer.get(1) else { return Token::Half };
    match second {
        b'[' => csi(buffer),
        b'O' => match buffer.get(2) {
            None => Token::Half,
            Some(last) => Token::Whole(3, ss3(*last)),
        },
        b']' | b'P' | b'_' | b'^' | b'X' => string(buffer),
        // Esc before another sequence is a key by itself.
        0x1b => match buffer.get(2) {
            None => Token::Half,
            // A few terminals send Alt with an arrow like this, in one piece.
            Some(b'[' | b'O') => match (buffer.get(3), escape(&buffer[1..])) {
                (Some(b'A'..=b'D'), Token::Whole(3, Some(TerminalEvent::Key(it)))) => {
                    Token::Whole(4, Some(key(it.code, it.modifiers | KeyModifiers::ALT)))
                }
                (None, _) => Token::Half,
                _ => Token::Whole(1, Some(key(KeyCode::Esc, KeyModifiers::NONE))),
            },
            Some(_) => Token::Whole(1, Some(key(KeyCode::Esc, KeyModifiers::NONE))),
        },
        _ => match plain(&buffer[1..]) {
            Some((length, code, modifiers)) => {
                Token::Whole(1 + length, code.map(|code| key(code, modifiers | KeyModifiers::ALT)))
            }
            None => Token::Half,
        },
    }
}

/// Arrows, Home and End by the final byte that `CSI` and `SS3` have in common.
fn moves(last: u8) -> Option<KeyCode> {
    Some(match last {
        b'A' => KeyCode::Up,
        b'B' => KeyCode::Down,
        b'C' => KeyCode::Right,
        b'D' => KeyCode::Left,
        b'H' => KeyCode::Home,
        b'F' => KeyCode::End,
        _ => return None,
    })
}

fn ss3(last: u8) -> Option<TerminalEvent> {
    let code = match last {
        b'M' => KeyCode::Enter,
        b'P'..=b'S' => KeyCode::F(last - b'P' + 1),
        b'j'..=b'y' => KeyCode::Char(char::from(last - 0x40)),
        b'X' => KeyCode::Char('='),
        other => moves(other)?,
    };
    Some(key(code, KeyModifiers::NONE))
}

/// `ESC ] … BEL`, or `ESC P … ESC \`: an answer with a text.
fn string(buffer: &[u8]) -> Token {
    let end = buffer[2..].iter().position(|b| matches!(b, 0x07 | 0x1b | 0x18 | 0x1a)).map(|at| at + 2);
    let Some(end) = end else { return Token::Half };
    let body = String::from_utf8_lossy(&buffer[2..end]);
    let reply = match buffer[1] {
        b']' => body.strip_prefix("11;").and_then(colour).map(|(r, g, b)| TerminalReply::Background(r, g, b)),
        b'P' => body
            .strip_prefix(">|")
            .map(|name| TerminalReply::Name(name.chars().filter(|c| !c.is_control()).take(80).collect())),
        _ => None,
    };
    let event = reply.map(TerminalEvent::Reply);
    match (buffer[end], buffer.get(end + 1)) {
        (0x1b, None) => Token::Half,
        (0x1b, Some(b'\\')) => Token::Whole(end + 2, event),
        // Another sequence begins, so this one was cut off.
        (0x1b, Some(_)) => Token::Whole(end, None),
        (0x07, _) => Token::Whole(end + 1, event),
        _ => Token::Whole(end + 1, None),
    }
}

/// `rgb:16/18/1d` or `rgb:1616/1818/1d1d`.
fn colour(text: &str) -> Option<(u8, u8, u8)> {
    let text = text.strip_prefix("rgb:").or_else(|| text.strip_prefix("rgba:"))?;
    let mut parts = text.split('/').map(|part| {
        let digits = part.get(..part.len().min(2)).filter(|d| !d.is_empty())?;
        let value = u8::from_str_radix(digits, 16).ok()?;
        Some(if part.len() == 1 { value * 17 } else { value })
    });
    Some((parts.next()??, parts.next()??, parts.next()??))
}

/// `ESC [ parameters intermediates final`.
fn csi(buffer: &[u8]) -> Token {
    // The Linux console has F1 to F5 as `ESC [ [ A`.
    if buffer.get(2) == Some(&b'[') {
        return match buffer.get(3) {
            None => Token::Half,
            Some(last @ b'A'..=b'E') => Token::Whole(4, Some(key(KeyCode::F(last - b'A' + 1), KeyModifiers::NONE))),
            Some(_) => Token::Whole(4, None),
        };
    }
    let Some(end) = buffer[2..].iter().position(|b| !(0x20..=0x3f).contains(b)).map(|at| at + 2) else {
        return Token::Half;
    };
    let last = buffer[end];
    if !(0x40..=0x7e).contains(&last) {
        // The sequence was cut off; the byte that cut it is decoded by itself.
        return Token::Whole(end, None);
    }
    let body = &buffer[2..end];
    // The old (X10) mouse report has three more bytes of any value. pixir never enables it, but another program may
    // have left it on, and the bytes must not become text.
    if last == b'M' && body.is_empty() {
        return if buffer.len() < end + 4 { Token::Half } else { Token::Whole(end + 4, None) };
    }
    if last == b'~' && body == b"200" {
        return Token::PasteBegins(end + 1);
    }
    Token::Whole(end + 1, report(body, last))
}

/// Decodes a complete `CSI` sequence.
fn report(body: &[u8], last: u8) -> Option<TerminalEvent> {
    let text = std::str::from_utf8(body).ok()?;
    if let Some(text) = text.strip_prefix('<') {
        return mouse(text, last == b'm').filter(|_| matches!(last, b'M' | b'm')).map(TerminalEvent::Mouse);
    }
    if let Some(text) = text.strip_prefix('?') {
        let numbers = || text.trim_end_matches('$').split(';').map(|n| n.parse::<u16>().unwrap_or(0));
        let (first, second) = (numbers().next().unwrap_or(0), numbers().nth(1).unwrap_or(0));
        return Some(TerminalEvent::Reply(match last {
            b'u' => TerminalReply::Keyboard,
            b'c' => TerminalReply::Done,
            b'y' => TerminalReply::Mode { mode: first, supported: matches!(second, 1..=3) },
            b'n' if first == 997 => TerminalReply::Scheme { dark: second == 1 },
            _ => return None,
        }));
    }
    if text.starts_with(['>', '=', '!']) || text.contains(|c: char| !(c.is_ascii_digit() || c == ';' || c == ':')) {
        return None;
    }
    let mut fields = text.split(';');
    let first = fields.next().unwrap_or_default();
    let second = fields.next().unwrap_or_default();
    let third = fields.next().unwrap_or_default();
    let number = |field: &str| field.split(':').next().and_then(|n| n.parse::<u32>().ok());
    let modifiers = modifiers(number(second).unwrap_or(1));
    let kind = match second.split(':').nth(1) {
        Some("2") => KeyEventKind::Repeat,
        Some("3") => KeyEventKind::Release,
        _ => KeyEventKind::Press,
    };
    let code = match last {
        b'Z' => return Some(key(KeyCode::BackTab, modifiers | KeyModifiers::SHIFT)),
        b'I' if text.is_empty() => return Some(TerminalEvent::Focus(true)),
        b'O' if text.is_empty() => return Some(TerminalEvent::Focus(false)),
        b'P' | b'Q' | b'S' => KeyCode::F(last - b'P' + 1),
        // `R` is both F3 and the cursor report. F3 has no row, or has modifiers.
        b'R' if number(first).is_some_and(|row| row > 1 || second == "1") => {
            let row = u16::try_from(number(first)?).ok()?;
            return Some(TerminalEvent::Reply(TerminalReply::Cursor { row }));
        }
        b'R' => KeyCode::F(3),
        b'~' => match number(first)? {
            27 => return of_number(number(third)?).map(|code| press(code, modifiers, kind)),
            n => numbered(n)?,
        },
        b'u' => of_number(number(first)?)?,
        other => moves(other)?,
    };
    Some(press(code, modifiers, kind))
}

fn press(code: KeyCode, modifiers: KeyModifiers, kind: KeyEventKind) -> TerminalEvent {
    let code = match code {
        KeyCode::Tab if modifiers.contains(KeyModifiers::SHIFT) => KeyCode::BackTab,
        code => code,
    };
    TerminalEvent::Key(KeyEvent { code, modifiers, kind })
}

/// The protocol sends one more than a bit set of Shift, Alt, Ctrl, Super.
fn modifiers(number: u32) -> KeyModifiers {
    let bits = number.saturating_sub(1);
    let mut modifiers = KeyModifiers::NONE;
    for (bit, modifier) in
        [(1, KeyModifiers::SHIFT), (2, KeyModifiers::ALT), (4, KeyModifiers::CONTROL), (8, KeyModifiers::SUPER)]
    {
        if bits & bit != 0 {
            modifiers |= modifier;
        }
    }
    modifiers
}

/// Keys of the form `CSI n ~`.
fn numbered(number: u32) -> Option<KeyCode> {
    let f = |n: u32| u8::try_from(n).ok().map(KeyCode::F);
    match number {
        1 | 7 => Some(KeyCode::Home),
        2 => Some(KeyCode::Insert),
        3 => Some(KeyCode::Delete),
        4 | 8 => Some(KeyCode::End),
        5 => Some(KeyCode::PageUp),
        6 => Some(KeyCode::PageDown),
        11..=15 => f(number - 10),
        17..=21 => f(number - 11),
        23..=26 => f(number - 12),
        28 | 29 => f(number - 13),
        31..=34 => f(number - 14),
        _ => None,
    }
}

/// Keys by code point, or by the numbers of the kitty protocol.
fn of_number(number: u32) -> Option<KeyCode> {
    Some(match number {
        8 | 127 => KeyCode::Backspace,
        9 => KeyCode::Tab,
        13 | 57414 => KeyCode::Enter,
        27 => KeyCode::Esc,
        57399..=57408 => KeyCode::Char(char::from_digit(number - 57399, 10)?),
        57409 => KeyCode::Char('.'),
        57410 => KeyCode::Char('/'),
        57411 => KeyCode::Char('*'),
        57412 => KeyCode::Char('-'),
        57413 => KeyCode::Char('+'),
        57415 => KeyCode::Char('='),
        57416 => KeyCode::Char(','),
        57417 => KeyCode::Left,
        57418 => KeyCode::Right,
        57419 => KeyCode::Up,
        57420 => KeyCode::Down,
        57421 => KeyCode::PageUp,
        57422 => KeyCode::PageDown,
        57423 => KeyCode::Home,
        57424 => KeyCode::End,
        57425 => KeyCode::Insert,
        57426 => KeyCode::Delete,
        // Lock keys, media keys and modifiers alone have no meaning in pixir.
        0xe000..=0xf8ff => return None,
        _ => KeyCode::Char(char::from_u32(number).filter(|c| !c.is_control())?),
    })
}

/// `buttons ; column ; row` (SGR 1006).
fn mouse(text: &str, released: bool) -> Option<MouseEvent> {
    let mut numbers = text.split(';').map(|n| n.parse::<u16>().ok());
    let (buttons, column, row) = (numbers.next()??, numbers.next()??, numbers.next()??);
    // Buttons beyond the wheel have no meaning in pixir.
    if buttons & 128 != 0 {
        return None;
    }
    let button = match buttons & 3 {
        0 => Some(MouseButton::Left),
        1 => Some(MouseButton::Middle),
        2 => Some(MouseButton::Right),
        _ => None,
    };
    let kind = match (buttons & 64 != 0, buttons & 32 != 0, button) {
        (true, _, Some(MouseButton::Left)) => MouseEventKind::ScrollUp,
        (true, _, Some(MouseButton::Middle)) => MouseEventKind::ScrollDown,
        (true, _, Some(MouseButton::Right)) => MouseEventKind::ScrollLeft,
        (true, _, None) => MouseEventKind::ScrollRight,
        (false, true, Some(button)) => MouseEventKind::Drag(button),
        (false, true, None) => MouseEventKind::Moved,
        (false, false, Some(button)) if released => MouseEventKind::Up(button),
        (false, false, Some(button)) => MouseEventKind::Down(button),
        (false, false, None) => return None,
    };
    Some(MouseEvent { kind, column: column.saturating_sub(1), row: row.saturating_sub(1) })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

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
