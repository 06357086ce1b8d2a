//! Distinguishes typed keys from an unmarked paste by the way they arrive.

use std::time::Duration;

use super::decode::{TerminalEvent, TerminalReply};
use super::key::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// More characters than this in one read were pasted, because no user types that fast.
const LONG: usize = 64;

/// What the terminal has reported about bracketed paste.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Brackets {
    /// It has not answered (yet). Nearly every terminal marks pastes, also many that do not answer.
    #[default]
    Unknown,
    /// It marks pastes: it has reported so, or has marked one.
    Supported,
    /// It has reported that it does not know the mode.
    Missing,
}

/// Finds pastes that the terminal does not mark, so that they never submit more than one line: text of several lines in
/// one read, and anything directly after the end of a marked paste. One line with its Enter in one read is typed: over a
/// slow connection, keys arrive together.
#[derive(Debug, Default)]
pub(crate) struct Bursts {
    pub(crate) brackets: Brackets,
    /// A paste has ended, and no pause has followed yet.
    behind_paste: bool,
    /// A line and its Enter came in one read, and no pause has followed yet: more lines would be those of one paste, also of
    /// a program that writes to a terminal which marks pastes.
    behind_line: bool,
}

impl Bursts {
    /// The pause after a paste, before keys are keys again.
    pub(crate) const SILENCE: Duration = Duration::from_millis(40);

    /// A pause has to pass before keys are trusted again.
    pub(crate) fn waits(&self) -> bool {
        self.behind_paste || self.behind_line
    }

    /// The pause has passed.
    pub(crate) fn was_silent(&mut self) {
        self.behind_paste = false;
        self.behind_line = false;
    }

    /// Replaces keys that were pasted by pastes.
    pub(crate) fn sift(&mut self, events: Vec<TerminalEvent>) -> Vec<TerminalEvent> {
        let mut sifted = Vec::with_capacity(events.len());
        let mut burst: Vec<(char, TerminalEvent)> = Vec::new();
        for it in events {
            match character(&it) {
                Some(c) => burst.push((c, it)),
                // Pasted text can contain the end marker, and its rest then arrives as keys. So directly after a paste,
                // a key that is not text is dropped.
                None if self.behind_paste && matches!(it, TerminalEvent::Key(_)) => {}
                None => {
                    self.end(&mut burst, &mut sifted);
                    self.behind_paste |= matches!(it, TerminalEvent::Paste(_));
                    match &it {
                        TerminalEvent::Paste(_) => self.brackets = Brackets::Supported,
                        TerminalEvent::Reply(TerminalReply::Mode { mode: 2004, supported }) => {
                            self.brackets = if *supported { Brackets::Supported } else { Brackets::Missing };
                        }
                        _ => {}
                    }
                    sifted.push(it);
                }
            }
        }
        self.end(&mut burst, &mut sifted);
        sifted
    }

    fn end(&mut self, burst: &mut Vec<(char, TerminalEvent)>, sifted: &mut Vec<TerminalEvent>) {
        let line_ends = burst.iter().filter(|(c, _)| *c == '\n').count();
        let is_one_line = line_ends == 1 && burst.last().is_some_and(|(c, _)| *c == '\n');
        let is_pasted = match self.brackets {
            _ if burst.is_empty() => false,
            _ if self.behind_paste || (self.behind_line && line_ends > 0) => true,
            _ if line_ends > 0 && !is_one_line && burst.len() > 2 => true,
            Brackets::Supported => false,
            Brackets::Missing if line_ends > 0 && burst.len() > 2 => true,
            Brackets::Missing | Brackets::Unknown => burst.len() > LONG,
        };
        if is_pasted {
            // The rest of it may follow in the next read.
            self.behind_paste |= line_ends > 0;
            sifted.push(TerminalEvent::Paste(burst.drain(..).map(|(c, _)| c).collect()));
        } else {
            self.behind_line |= is_one_line && burst.len() > 2;
            sifted.extend(burst.drain(..).map(|(_, it)| it));
        }
    }
}

/// The character that this key stands for in a paste. None for a key that is not text.
fn character(it: &TerminalEvent) -> Option<char> {
    match it {
        TerminalEvent::Key(KeyEvent { code: KeyCode::Char(c), modifiers, kind: KeyEventKind::Press, .. })
            if modifiers.is_typing() =>
        {
            Some(*c)
        }
        TerminalEvent::Key(KeyEvent { code: KeyCode::Enter, modifiers, kind: KeyEventKind::Press, .. })
            if modifiers.is_empty() =>
        {
            Some('\n')
        }
        // A line feed in a paste arrives as Ctrl+J.
        TerminalEvent::Key(KeyEvent { code: KeyCode::Char('j'), modifiers: KeyModifiers::CONTROL, .. }) => Some('\n'),
        TerminalEvent::Key(KeyEvent { code: KeyCode::Tab, modifiers, .. }) if modifiers.is_empty() => Some('\t'),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::decode::tests::all;
    use super::*;

    fn after(brackets: Brackets, bytes: &[u8]) -> Vec<TerminalEvent> {
        Bursts { brackets, ..Bursts::default() }.sift(all(bytes))
    }

    #[test]
    fn what_was_pasted_never_submits() {
        // A paste that contains its own end marker.
        let sneaky = b"\x1b[200~rm x\x1b[201~ -rf /\r";
        let pasted = [TerminalEvent::Paste("rm x".into()), TerminalEvent::Paste(" -rf /\n".into())];
        assert_eq!(after(Brackets::Supported, sneaky), pasted);
        // The reads can cut the paste anywhere, and it can contain any keys.
        let mut bursts = Bursts { brackets: Brackets::Supported, ..Bursts::default() };
        assert_eq!(bursts.sift(all(b"\x1b[200~x\x1b[201~")), [TerminalEvent::Paste("x".into())]);
        assert_eq!(bursts.sift(all(b"/mode auto\x1b\r\x1b[Z\x1by\r")), [TerminalEvent::Paste("/mode auto\n".into())]);
        assert_eq!(bursts.sift(all(b"\r")), [TerminalEvent::Paste("\n".into())]);
        bursts.was_silent();
        assert_eq!(bursts.sift(all(b"\r")), all(b"\r"), "after a pause, Enter is a key again");
    }

    #[test]
    fn one_line_with_its_enter_is_typed_unless_the_terminal_marks_no_pastes() {
        for brackets in [Brackets::Unknown, Brackets::Supported] {
            assert_eq!(after(brackets, b"one\r"), all(b"one\r"), "{brackets:?}");
        }
        assert_eq!(after(Brackets::Missing, b"one\r"), [TerminalEvent::Paste("one\n".into())]);
        assert_eq!(after(Brackets::Missing, b"a\r"), all(b"a\r"), "a fast finger is no paste");
        let long = "x".repeat(LONG + 1);
        assert_eq!(after(Brackets::Unknown, long.as_bytes()), [TerminalEvent::Paste(long.clone())]);
        assert_eq!(after(Brackets::Supported, long.as_bytes()), all(long.as_bytes()));
    }

    /// Broken build: the lines of a burst are keys where the terminal marks its pastes.
    #[test]
    fn several_lines_at_once_are_one_paste_on_every_terminal() {
        for brackets in [Brackets::Unknown, Brackets::Supported, Brackets::Missing] {
            let pasted = [TerminalEvent::Paste("one\ntwo\n".into())];
            assert_eq!(after(brackets, b"one\rtwo\r"), pasted, "{brackets:?}");
            // The reads can cut it after any byte: at most one Enter is a key.
            let bytes = b"one\rtwo\rthree\r";
            for cut in 1..bytes.len() {
                let mut bursts = Bursts { brackets, ..Bursts::default() };
                let events = [bursts.sift(all(&bytes[..cut])), bursts.sift(all(&bytes[cut..]))].concat();
                let sent =
                    events.iter().filter(|it| matches!(it, TerminalEvent::Key(key) if key.code == KeyCode::Enter));
                assert!(sent.count() <= 1, "{brackets:?}, cut after {cut}: {events:?}");
            }
        }
        for brackets in [Brackets::Unknown, Brackets::Supported] {
            let mut bursts = Bursts { brackets, ..Bursts::default() };
            assert_eq!(bursts.sift(all(b"one\r")), all(b"one\r"));
            assert_eq!(bursts.sift(all(b"two\r")), [TerminalEvent::Paste("two\n".into())], "directly after a line");
            bursts.was_silent();
            assert_eq!(bursts.sift(all(b"two\r")), all(b"two\r"), "after a pause it is another line");
        }
    }
}
