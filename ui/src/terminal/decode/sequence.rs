//! One sequence of bytes at the begin of a buffer: a character, a control key, an escape sequence.

use super::{TerminalEvent, TerminalReply};
use crate::terminal::key::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};

/// The first element of the buffer.
pub(super) enum Token {
    /// This many bytes, with their event if they mean anything.
    Whole(usize, Option<TerminalEvent>),
    PasteBegins(usize),
    /// A sequence whose end has not arrived.
    Half,
}

pub(super) fn key(code: KeyCode, modifiers: KeyModifiers) -> TerminalEvent {
    TerminalEvent::Key(KeyEvent::press(code, modifiers))
}

/// Decodes the begin of the buffer, which is not empty.
pub(super) fn next(buffer: &[u8]) -> Token {
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
            let column = number(second).and_then(|column| u16::try_from(column).ok()).unwrap_or(1);
            return Some(TerminalEvent::Reply(TerminalReply::Cursor { row, column }));
        }
        b'R' => KeyCode::F(3),
        b't' if number(first) == Some(8) => {
            let part = |field: &str| u16::try_from(number(field)?).ok();
            let (rows, columns) = (part(second)?, part(third)?);
            return Some(TerminalEvent::Reply(TerminalReply::Size { columns, rows }));
        }
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
