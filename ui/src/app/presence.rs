//! The signs of pixir outside of the screen: window title, progress, notifications.

use std::fmt::Write as _;

use pixir_core::event::Status;

use crate::render::text::{fit, visible};
use crate::state::State;

/// The longest title or notification, in columns.
const MAX_TITLE: usize = 80;

/// The sequence with which a terminal shows a notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bell {
    /// `OSC 9 ; text`.
    Nine,
    /// `OSC 777 ; notify ; title ; text`.
    Urxvt,
    /// `OSC 99 ; ; text`, kitty's own.
    Kitty,
    /// BEL: a sound, or another sign of the terminal's choice.
    Plain,
}

impl Bell {
    fn of(terminal: Option<&str>) -> Bell {
        let name = terminal.unwrap_or_default().to_ascii_lowercase();
        let is = |names: &[&str]| names.iter().any(|it| name.starts_with(it));
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

/// The terminal shows progress in its tab or task bar (OSC 9;4). Others would print the bytes, or show a notification.
fn shows_progress(terminal: Option<&str>) -> bool {
    let name = terminal.unwrap_or_default().to_ascii_lowercase();
    ["ghostty", "wezterm", "iterm2", "windows terminal", "konsole"].iter().any(|it| name.starts_with(it))
}

/// The title and progress that the terminal shows now, so that nothing is sent twice.
#[derive(Debug, Default)]
pub(crate) struct Presence {
    title: String,
    is_busy: bool,
    is_asking: bool,
    turns_ended: u64,
    shows_progress: bool,
}

impl Presence {
    /// The bytes that bring the terminal up to date.
    pub(crate) fn update(&mut self, state: &State, terminal: Option<&str>) -> String {
        let mut bytes = String::new();
        let title = title(state);
        if title != self.title {
            let _ = write!(bytes, "\x1b]2;{title}\x1b\\");
            self.title = title;
        }
        let is_busy = state.session.status.is_busy();
        if is_busy != self.is_busy && (shows_progress(terminal) || self.shows_progress) {
            self.shows_progress = is_busy;
            bytes.push_str(if is_busy { "\x1b]9;4;3;0\x1b\\" } else { "\x1b]9;4;0;0\x1b\\" });
        }
        self.is_busy = is_busy;
        let is_asking = state.status() == Status::Asking;
        let text = match (is_asking && !self.is_asking, state.session.turns_ended > self.turns_ended) {
            (true, _) => Some("pixir needs your answer"),
            (false, true) => Some("pixir has finished"),
            (false, false) => None,
        };
        (self.is_asking, self.turns_ended) = (is_asking, state.session.turns_ended);
        if let Some(text) = text.filter(|_| !state.terminal.has_focus && state.terminal.notifies) {
            bytes.push_str(&notification(Bell::of(terminal), &subject(state), text));
        }
        bytes
    }

    /// The bytes that end the progress display.
    pub(crate) fn end(&self) -> &'static str {
        if self.shows_progress { "\x1b]9;4;0;0\x1b\\" } else { "" }
    }

    /// Another program has used the terminal: everything has to be sent again.
    pub(crate) fn forget(&mut self) {
        self.title.clear();
        (self.is_busy, self.shows_progress) = (false, false);
    }
}

/// The name of the Session, else of its folder.
fn subject(state: &State) -> String {
    let name = state.history.settings.name.clone();
    let folder = state.session.workspace.file_name().map(|it| it.to_string_lossy().into_owned());
    // A semicolon would end the title field of OSC 777.
    fit(&visible(&name.or(folder).unwrap_or_else(|| "/".into())).replace([';', '\t'], " "), MAX_TITLE - 20)
}

fn title(state: &State) -> String {
    let mark = match state.status() {
        Status::Asking => "? ",
        Status::Thinking | Status::Compacting | Status::Working => "● ",
        Status::Idle => "",
    };
    format!("{mark}pixir · {}", subject(state))
}

fn notification(bell: Bell, subject: &str, text: &str) -> String {
    match bell {
        Bell::Nine => format!("\x1b]9;{text}: {subject}\x1b\\"),
        Bell::Urxvt => format!("\x1b]777;notify;{text};{subject}\x1b\\"),
        Bell::Kitty => format!("\x1b]99;;{text}: {subject}\x1b\\"),
        Bell::Plain => "\x07".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_terminal_gets_its_own_notification_sequence() {
        assert_eq!(notification(Bell::of(Some("kitty(0.40)")), "app", "done"), "\x1b]99;;done: app\x1b\\");
        assert_eq!(notification(Bell::of(Some("ghostty 1.2")), "app", "done"), "\x1b]9;done: app\x1b\\");
        assert_eq!(notification(Bell::of(Some("XTerm(390)")), "app", "done"), "\x07");
        assert_eq!(notification(Bell::of(None), "app", "done"), "\x07");
        assert!(!shows_progress(Some("kitty(0.40)")), "it would show a notification");
    }
}
