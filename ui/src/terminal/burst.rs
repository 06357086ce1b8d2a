//! Keys or a paste: which it was, by how it came.

use std::time::Duration;

use super::decode::{TerminalEvent, TerminalReply};
use super::key::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// So many characters at once were typed by nobody.
const LONG: usize = 64;

/// What a person cannot have typed is a paste, and never submits: characters with a line end that came at once where the
/// terminal does not mark pastes, and whatever stands right behind the end of a marked one.
#[derive(Debug, Default)]
pub(crate) struct Bursts {
    /// The terminal marks pastes: it has said so, or has done so.
    pub(crate) marked: bool,
    /// A paste has ended, and nothing was silent since.
    behind_paste: bool,
}

impl Bursts {
    /// How long it must be silent behind a paste, before keys are keys again.
    pub(crate) const SILENCE: Duration = Duration::from_millis(40);

    /// Something is suspicious until it was silent for so long.
    pub(crate) fn waits(&self) -> bool {
        self.behind_paste
    }

    /// It was.
    pub(crate) fn was_silent(&mut self) {
        self.behind_paste = false;
    }

    /// What came at once, with pastes in the place of what was none of typing.
    pub(crate) fn sift(&mut self, heard: Vec<TerminalEvent>) -> Vec<TerminalEvent> {
        let mut kept = Vec::with_capacity(heard.len());
        let mut burst: Vec<(char, TerminalEvent)> = Vec::new();
        for it in heard {
            match character(&it) {
                Some(c) => burst.push((c, it)),
                // Behind a paste a key that does something can only be part of a trick.
                None if self.behind_paste && matches!(it, TerminalEvent::Key(_)) => {}
                None => {
                    self.end(&mut burst, &mut kept);
                    self.behind_paste |= matches!(it, TerminalEvent::Paste(_));
                    self.marked |= matches!(
                        it,
                        TerminalEvent::Paste(_) | TerminalEvent::Reply(TerminalReply::Mode { mode: 2004, known: true })
                    );
                    kept.push(it);
                }
            }
        }
        self.end(&mut burst, &mut kept);
        kept
    }

    fn end(&self, burst: &mut Vec<(char, TerminalEvent)>, kept: &mut Vec<TerminalEvent>) {
        let has_line_end = burst.iter().any(|(c, _)| *c == '\n');
        let is_pasted = (self.behind_paste && !burst.is_empty())
            || (!self.marked && has_line_end && burst.len() > 2)
            || (!self.marked && burst.len() > LONG);
        if is_pasted {
            kept.push(TerminalEvent::Paste(burst.drain(..).map(|(c, _)| c).collect()));
        } else {
            kept.extend(burst.drain(..).map(|(_, it)| it));
        }
    }
}

/// The character that a key types, as far as a paste could be made of such keys.
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
        // How a line feed of a paste arrives.
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
        // Behind the end of a paste that holds such an end itself.
        let sneaky = b"\x1b[200~rm x\x1b[201~ -rf /\r";
        assert_eq!(typed(true, sneaky), [TerminalEvent::Paste("rm x".into()), TerminalEvent::Paste(" -rf /\n".into())]);
        // In a terminal that does not mark pastes.
        assert_eq!(typed(false, b"one\rtwo\r"), [TerminalEvent::Paste("one\ntwo\n".into())]);
        assert_eq!(typed(false, b"a\r"), all(b"a\r"), "a fast finger is no paste");
        assert_eq!(typed(true, b"one\r"), all(b"one\r"), "keys that a program sends are keys");
        // However it is cut, and whatever keys it brings.
        let mut bursts = Bursts { marked: true, behind_paste: false };
        assert_eq!(bursts.sift(all(b"\x1b[200~x\x1b[201~")), [TerminalEvent::Paste("x".into())]);
        assert_eq!(bursts.sift(all(b"/mode auto\x1b\r\x1b[Z\x1by\r")), [TerminalEvent::Paste("/mode auto\n".into())]);
        assert_eq!(bursts.sift(all(b"\r")), [TerminalEvent::Paste("\n".into())]);
        bursts.was_silent();
        assert_eq!(bursts.sift(all(b"\r")), all(b"\r"), "a person presses Enter after a moment");
    }
}
