//! Keys as the configuration and the screen write them: `ctrl+t`, `shift+enter`, `] e`.

use std::fmt;

use crate::terminal::key::{KeyCode, KeyEvent, KeyModifiers};

/// A key with its modifiers, in normal form: one key has one `Key`, however the terminal reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) code: KeyCode,
    pub(crate) modifiers: KeyModifiers,
}

const HELD: [(KeyModifiers, &str, &str); 3] = [
    (KeyModifiers::CONTROL, "ctrl", "Ctrl"),
    (KeyModifiers::ALT, "alt", "Alt"),
    (KeyModifiers::SHIFT, "shift", "Shift"),
];

const NAMED: [(KeyCode, &str, &str); 16] = [
    (KeyCode::Enter, "enter", "Enter"),
    (KeyCode::Esc, "esc", "Esc"),
    (KeyCode::Tab, "tab", "Tab"),
    (KeyCode::Backspace, "backspace", "Backspace"),
    (KeyCode::Delete, "delete", "Delete"),
    (KeyCode::Insert, "insert", "Insert"),
    (KeyCode::Up, "up", "Up"),
    (KeyCode::Down, "down", "Down"),
    (KeyCode::Left, "left", "Left"),
    (KeyCode::Right, "right", "Right"),
    (KeyCode::Home, "home", "Home"),
    (KeyCode::End, "end", "End"),
    (KeyCode::PageUp, "pgup", "PgUp"),
    (KeyCode::PageDown, "pgdn", "PgDn"),
    (KeyCode::Char(' '), "space", "Space"),
    (KeyCode::BackTab, "backtab", "Shift+Tab"),
];

impl Key {
    /// The normal form of a key as a terminal reports it.
    pub(crate) fn of(event: KeyEvent) -> Key {
        let held = event.modifiers;
        // A key with Super is meant for the window system.
        if held.contains(KeyModifiers::SUPER) {
            return Key { code: KeyCode::Null, modifiers: held };
        }
        match event.code {
            // Terminals report a capital letter with and without Shift.
            KeyCode::Char(c) if held.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) => {
                Key { code: KeyCode::Char(c.to_ascii_lowercase()), modifiers: held - KeyModifiers::SHIFT }
            }
            KeyCode::Char(c) => {
                let c = if held.contains(KeyModifiers::SHIFT) { c.to_ascii_uppercase() } else { c };
                Key { code: KeyCode::Char(c), modifiers: KeyModifiers::NONE }
            }
            KeyCode::BackTab => Key { code: KeyCode::BackTab, modifiers: held - KeyModifiers::SHIFT },
            code => Key { code, modifiers: held },
        }
    }

    /// Parses `ctrl+t`.
    ///
    /// # Errors
    /// A message for the user.
    pub(crate) fn parse(text: &str) -> Result<Key, String> {
        let mut modifiers = KeyModifiers::NONE;
        let mut rest = text.trim();
        while let Some((held, after)) = rest.split_once('+').filter(|(_, after)| !after.is_empty()) {
            let Some((modifier, ..)) = HELD.iter().find(|(_, name, _)| *name == held.to_ascii_lowercase()) else {
                return Err(format!("`{held}` in `{text}` is not ctrl, alt or shift"));
            };
            modifiers |= *modifier;
            rest = after;
        }
        let name = rest.to_ascii_lowercase();
        let code = match NAMED.iter().find(|(_, it, _)| *it == name) {
            Some((code, ..)) => *code,
            None => match (name.strip_prefix('f').and_then(|n| n.parse::<u8>().ok()), rest.chars().count()) {
                (Some(n @ 1..=24), _) => KeyCode::F(n),
                (_, 1) => KeyCode::Char(rest.chars().next().unwrap_or(' ')),
                _ => return Err(format!("unknown key `{rest}`; keys are written ctrl+t, alt+enter, f5, pgup, ]")),
            },
        };
        let code =
            if code == KeyCode::Tab && modifiers.contains(KeyModifiers::SHIFT) { KeyCode::BackTab } else { code };
        Ok(Key::of(KeyEvent::press(code, modifiers)))
    }

    /// The key as the configuration writes it.
    pub(crate) fn written(self) -> String {
        let held = HELD.iter().filter(|(modifier, ..)| self.modifiers.contains(*modifier));
        let held: String = held.map(|(_, name, _)| format!("{name}+")).collect();
        let name = match (NAMED.iter().find(|(code, ..)| *code == self.code), self.code) {
            (Some((KeyCode::BackTab, ..)), _) => "shift+tab".to_owned(),
            (Some((_, name, _)), _) => (*name).to_owned(),
            (None, KeyCode::F(n)) => format!("f{n}"),
            (None, KeyCode::Char(c)) => c.to_string(),
            (None, other) => format!("{other:?}"),
        };
        held + &name
    }

    /// The key types a character.
    pub(crate) fn is_plain(self) -> bool {
        matches!(self.code, KeyCode::Char(_)) && self.modifiers.is_empty()
    }

    pub(crate) fn event(self) -> KeyEvent {
        KeyEvent::press(self.code, self.modifiers)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (modifier, _, name) in HELD {
            if self.modifiers.contains(modifier) {
                write!(f, "{name}+")?;
            }
        }
        match (NAMED.iter().find(|(code, ..)| *code == self.code), self.code) {
            (Some((_, _, name)), _) => f.write_str(name),
            (None, KeyCode::F(n)) => write!(f, "F{n}"),
            (None, KeyCode::Char(c)) if self.modifiers.is_empty() => write!(f, "{c}"),
            (None, KeyCode::Char(c)) => write!(f, "{}", c.to_ascii_uppercase()),
            (None, other) => write!(f, "{other:?}"),
        }
    }
}

/// Keys that the user presses one after the other.
pub(crate) type Chord = Vec<Key>;

/// Parses `] e`.
///
/// # Errors
/// A message for the user.
pub(crate) fn parse_chord(text: &str) -> Result<Chord, String> {
    let keys: Chord = text.split_whitespace().map(Key::parse).collect::<Result<_, _>>()?;
    if keys.is_empty() { Err("a key is missing".into()) } else { Ok(keys) }
}

/// `] e`, as the screen shows it.
pub(crate) fn chord_name(keys: &[Key]) -> String {
    keys.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_what_is_shown_and_what_terminals_report() {
        for (text, shown) in [
            ("ctrl+t", "Ctrl+T"),
            ("Alt+Enter", "Alt+Enter"),
            ("shift+tab", "Shift+Tab"),
            ("f12", "F12"),
            ("]", "]"),
            ("N", "N"),
            ("space", "Space"),
            ("ctrl++", "Ctrl++"),
            ("pgup", "PgUp"),
        ] {
            let key = Key::parse(text).expect(text);
            assert_eq!(key.to_string(), shown);
            assert_eq!(Key::parse(shown), Ok(key));
            assert_eq!(Key::parse(&key.written()), Ok(key));
        }
        let of = |code, modifiers| Key::of(KeyEvent::press(code, modifiers));
        assert_eq!(Key::parse("N"), Ok(of(KeyCode::Char('N'), KeyModifiers::SHIFT)));
        assert_eq!(Key::parse("N"), Ok(of(KeyCode::Char('n'), KeyModifiers::SHIFT)));
        assert_eq!(Key::parse("ctrl+t"), Ok(of(KeyCode::Char('T'), KeyModifiers::CONTROL | KeyModifiers::SHIFT)));
        assert_eq!(Key::parse("shift+tab"), Ok(of(KeyCode::BackTab, KeyModifiers::SHIFT)));
        assert_eq!(parse_chord("] e").map(|it| chord_name(&it)), Ok("] e".into()));
        assert!(Key::parse("hyper+x").is_err() && Key::parse("enterr").is_err() && parse_chord(" ").is_err());
    }
}
