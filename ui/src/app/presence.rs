//! What the terminal shows of us outside the screen: the title, progress, a word when somebody is waited for.

use std::fmt::Write as _;

use pixir_core::event::Status;

use crate::render::text::{fit, visible};
use crate::state::State;

/// Columns of a title or a notification.
const MOST: usize = 80;

/// How a terminal is told to notify, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bell {
    /// `OSC 9 ; text`.
    Nine,
    /// `OSC 777 ; notify ; title ; text`.
    Urxvt,
    /// kitty's own.
    Kitty,
    /// A sound, or what the terminal makes of it.
    Plain,
}

impl Bell {
    fn of(terminal: Option<&str>) -> Bell {
        let name = terminal.unwrap_or_default().to_ascii_lowercase();
        let is = |known: &[&str]| known.iter().any(|it| name.starts_with(it));
        if is(&["iterm2", "wezterm", "ghostty"]) {
            Bell::Nine
        } else if is(&["foot", "vte", "rxvt"]) {
            Bell::Urxvt
        } else if is(&["kitty"]) {
            Bell::Kitty
        } else {
            Bell::Plain
        }
    }
}

/// Terminals that show progress in their tab or task bar (OSC 9;4). Others would show the bytes, or notify.
fn shows_progress(terminal: Option<&str>) -> bool {
    let name = terminal.unwrap_or_default().to_ascii_lowercase();
    ["ghostty", "wezterm", "iterm2", "windows terminal", "konsole"].iter().any(|it| name.starts_with(it))
}

/// What was shown last, so that nothing is sent twice.
#[derive(Debug, Default)]
pub(crate) struct Presence {
    title: String,
    is_busy: bool,
    is_asking: bool,
    ended: u64,
    shows_progress: bool,
}

impl Presence {
    /// The bytes that bring it up to date.
    pub(crate) fn update(&mut self, state: &State, terminal: Option<&str>) -> String {
        let mut bytes = String::new();
        let title = title(state);
        if title != self.title {
            let _ = write!(bytes, "\x1b]2;{title}\x1b\\");
            self.title = title;
        }
        let is_busy = matches!(state.status, Status::Thinking | Status::Working);
        if is_busy != self.is_busy && (shows_progress(terminal) || self.shows_progress) {
            self.shows_progress = is_busy;
            bytes.push_str(if is_busy { "\x1b]9;4;3;0\x1b\\" } else { "\x1b]9;4;0;0\x1b\\" });
        }
        self.is_busy = is_busy;
        let is_asking = state.status == Status::Asking;
        let text = match (is_asking && !self.is_asking, state.ended > self.ended) {
            (true, _) => Some("pixir has a question"),
            (false, true) => Some("pixir has finished"),
            (false, false) => None,
        };
        (self.is_asking, self.ended) = (is_asking, state.ended);
        if let Some(text) = text.filter(|_| !state.has_focus) {
            bytes.push_str(&notification(Bell::of(terminal), &place(state), text));
        }
        bytes
    }

    /// The bytes that leave nothing of it behind.
    pub(crate) fn end(&self) -> &'static str {
        if self.shows_progress { "\x1b]9;4;0;0\x1b\\" } else { "" }
    }

    /// The terminal was given away; everything is sent again.
    pub(crate) fn forget(&mut self) {
        self.title.clear();
        (self.is_busy, self.shows_progress) = (false, false);
    }
}

fn place(state: &State) -> String {
    let name = state.history.settings.name.clone();
    let folder = state.workspace.file_name().map(|it| it.to_string_lossy().into_owned());
    fit(&visible(&name.or(folder).unwrap_or_else(|| "/".into())).replace([';', '\t'], " "), MOST - 20)
}

fn title(state: &State) -> String {
    let mark = match state.status {
        Status::Asking => "? ",
        Status::Thinking | Status::Working => "● ",
        Status::Idle => "",
    };
    format!("{mark}pixir · {}", place(state))
}

fn notification(bell: Bell, place: &str, text: &str) -> String {
    match bell {
        Bell::Nine => format!("\x1b]9;{text}: {place}\x1b\\"),
        Bell::Urxvt => format!("\x1b]777;notify;{text};{place}\x1b\\"),
        Bell::Kitty => format!("\x1b]99;;{text}: {place}\x1b\\"),
        Bell::Plain => "\x07".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_terminal_is_told_in_its_own_way_and_no_other() {
        assert_eq!(notification(Bell::of(Some("kitty(0.40)")), "app", "done"), "\x1b]99;;done: app\x1b\\");
        assert_eq!(notification(Bell::of(Some("ghostty 1.2")), "app", "done"), "\x1b]9;done: app\x1b\\");
        assert_eq!(notification(Bell::of(Some("XTerm(390)")), "app", "done"), "\x07");
        assert_eq!(notification(Bell::of(None), "app", "done"), "\x07");
        assert!(!shows_progress(Some("kitty(0.40)")), "it would notify");
    }
}
