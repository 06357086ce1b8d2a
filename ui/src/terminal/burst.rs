//! Distinguishes typed keys from an unmarked paste by the way they arrive.

use std::time::Duration;

use super::decode::{TerminalEvent, TerminalReply};
use super::key::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// More characters than this in one read were pasted, because nobody types that fast.
const LONG: usize = 64;

/// Finds pastes that the terminal does not mark, so that they never submit: several characters with a line end in one
/// read, and anything directly after the end of a marked paste.
#[derive(Debug, Default)]
pub(crate) struct Bursts {
    /// The terminal supports bracketed paste: it has reported or used it.
    pub(crate) marked: bool,
    /// A paste has ended, and no pause has followed yet.
    behind_paste: bool,
}

impl Bursts {
    /// The pause after a paste, before keys are keys again.
    pub(crate) const SILENCE: Duration = Duration::from_millis(40);

    /// A pause has to pass before keys are trusted again.
    pub(crate) fn waits(&self) -> bool {
        self.behind_paste
    }

    /// The pause has passed.
    pub(crate) fn was_silent(&mut self) {
        self.behind_paste = false;
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
                    self.marked |= matches!(
                        it,
                        TerminalEvent::Paste(_)
                            | TerminalEvent::Reply(TerminalReply::Mode { mode: 2004, supported: true })
                    );
                    sifted.push(it);
                }
            }
        }
        self.end(&mut burst, &mut sifted);
        sifted
    }

    fn end(&self, burst: &mut Vec<(char, TerminalEvent)>, sifted: &mut Vec<TerminalEvent>) {
        let has_line_end = burst.iter().any(|(c, _)| *c == '\n');
        let is_pasted = (self.behind_paste && !burst.is_empty())
            || (!self.marked && has_line_end && burst.len() > 2)
            || (!self.marked && burst.len() > LONG);
        if is_pasted {
            sifted.push(TerminalEvent::Paste(burst.drain(..).map(|(c, _)| c).collect()));
        } else {
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

    #[test]
    fn what_was_pasted_never_submits() {
        let typed = |marked, bytes: &[u8]| Bursts { marked, behind_paste: false }.sift(all(bytes));
        // A paste that contains its own end marker.
        let sneaky = b"\x1b[200~rm x\x1b[201~ -rf /\r";
        assert_eq!(typed(true, sneaky), [TerminalEvent::Paste("rm x".into()), TerminalEvent::Paste(" -rf /\n".into())]);
        // A terminal without bracketed paste.
        assert_eq!(typed(false, b"one\rtwo\r"), [TerminalEvent::Paste("one\ntwo\n".into())]);
        assert_eq!(typed(false, b"a\r"), all(b"a\r"), "a fast finger is no paste");
        assert_eq!(typed(true, b"one\r"), all(b"one\r"), "keys that a program sends are keys");
        // The reads can cut the paste anywhere, and it can contain any keys.
        let mut bursts = Bursts { marked: true, behind_paste: false };
        assert_eq!(bursts.sift(all(b"\x1b[200~x\x1b[201~")), [TerminalEvent::Paste("x".into())]);
        assert_eq!(bursts.sift(all(b"/mode auto\x1b\r\x1b[Z\x1by\r")), [TerminalEvent::Paste("/mode auto\n".into())]);
        assert_eq!(bursts.sift(all(b"\r")), [TerminalEvent::Paste("\n".into())]);
        bursts.was_silent();
        assert_eq!(bursts.sift(all(b"\r")), all(b"\r"), "after a pause, Enter is a key again");
    }
}
