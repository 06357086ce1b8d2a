//! Every verb of the interface, once: its default keys, its words for the help.

use pixir_core::event::{Mode, RestorePlan, Toolset};
use pixir_core::input::Wish;
use pixir_core::provider::models::Effort;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::update::travel::Going;

/// What a person can do.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Action {
    Submit,
    FollowUp,
    NewLine,
    TakeBackQueue,
    Escape,
    StashOrQuit,
    QuitWhenEmpty,
    Quit,
    CycleMode,
    Repaint,
    Help,
    Tree,
    Diff,
    Details,
    Thinking,
    PageUp,
    PageDown,
    ToStart,
    ToEnd,
    Focus,
    AllowOnce,
    AllowAlways,
    Deny,
    DenyWithFeedback,
    ExpandApproval,
    /// Chosen in a list or an overlay.
    New,
    Resume(String),
    Model(String),
    Mode(Mode),
    Theme(String),
    PreviewTheme(String),
    Skill(String),
    /// Somewhere else in the conversation.
    Go(Going),
    GoWithoutFiles,
    /// Sets files back as this plan says.
    Restore {
        plan: Box<RestorePlan>,
        wish: Wish,
    },
    Label {
        seq: u64,
        text: String,
    },
    Pin {
        seqs: Vec<u64>,
        pinned: bool,
    },
    Fork(u64),
    ApplyCompaction,
    Jobs,
    StopJob(u32),
    Toolset(Toolset),
    Effort(Effort),
    /// What was answered to a form; none when the person does not want to.
    Answer {
        call_id: String,
        answers: Option<Vec<Vec<String>>>,
    },
}

/// Where a binding holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Context {
    Anywhere,
    /// A question is open.
    Approval,
    /// A question is open and has the focus.
    ApprovalFocused,
}

/// A key and what it does.
pub(crate) struct Binding {
    pub(crate) code: KeyCode,
    pub(crate) modifiers: KeyModifiers,
    pub(crate) context: Context,
    pub(crate) action: Action,
    pub(crate) keys: &'static str,
    pub(crate) about: &'static str,
}

const fn bind(
    code: KeyCode,
    modifiers: KeyModifiers,
    context: Context,
    action: Action,
    keys: &'static str,
    about: &'static str,
) -> Binding {
    Binding { code, modifiers, context, action, keys, about }
}

const NONE: KeyModifiers = KeyModifiers::NONE;
const CTRL: KeyModifiers = KeyModifiers::CONTROL;
const ALT: KeyModifiers = KeyModifiers::ALT;
const SHIFT: KeyModifiers = KeyModifiers::SHIFT;

/// The whole table; the first that fits holds. Rows without words are second keys of the row before.
pub(crate) const BINDINGS: &[Binding] = &[
    bind(KeyCode::Char('y'), ALT, Context::Approval, Action::AllowOnce, "Alt+Y", "allow once"),
    bind(KeyCode::Char('a'), ALT, Context::Approval, Action::AllowAlways, "Alt+A", "allow always, in this session"),
    bind(KeyCode::Char('n'), ALT, Context::Approval, Action::Deny, "Alt+N", "refuse"),
    bind(
        KeyCode::Char('f'),
        ALT,
        Context::Approval,
        Action::DenyWithFeedback,
        "Alt+F",
        "refuse, and say what to do instead",
    ),
    bind(KeyCode::Char('y'), NONE, Context::ApprovalFocused, Action::AllowOnce, "y", ""),
    bind(KeyCode::Char('a'), NONE, Context::ApprovalFocused, Action::AllowAlways, "a", ""),
    bind(KeyCode::Char('n'), NONE, Context::ApprovalFocused, Action::Deny, "n", ""),
    bind(KeyCode::Char('f'), NONE, Context::ApprovalFocused, Action::DenyWithFeedback, "f", ""),
    bind(KeyCode::Enter, NONE, Context::ApprovalFocused, Action::ExpandApproval, "Enter", ""),
    bind(
        KeyCode::Tab,
        NONE,
        Context::Approval,
        Action::Focus,
        "Tab",
        "focus the question: then y a n f, Enter expands",
    ),
    bind(KeyCode::Enter, ALT, Context::Anywhere, Action::FollowUp, "Alt+Enter", "send when the turn has ended"),
    bind(
        KeyCode::Enter,
        SHIFT,
        Context::Anywhere,
        Action::NewLine,
        "Shift+Enter",
        "new line (also Ctrl+J, and \\ before Enter)",
    ),
    bind(KeyCode::Char('j'), CTRL, Context::Anywhere, Action::NewLine, "Ctrl+J", ""),
    bind(
        KeyCode::Enter,
        NONE,
        Context::Anywhere,
        Action::Submit,
        "Enter",
        "send; while a turn runs, say it to the model now",
    ),
    bind(KeyCode::Up, ALT, Context::Anywhere, Action::TakeBackQueue, "Alt+Up", "take back what waits to be sent"),
    bind(
        KeyCode::Esc,
        NONE,
        Context::Anywhere,
        Action::Escape,
        "Esc",
        "close, else interrupt the turn; twice on an empty line: tree",
    ),
    bind(
        KeyCode::Char('c'),
        CTRL,
        Context::Anywhere,
        Action::StashOrQuit,
        "Ctrl+C",
        "put the draft aside (Up brings it back); twice quits",
    ),
    bind(KeyCode::Char('d'), CTRL, Context::Anywhere, Action::QuitWhenEmpty, "Ctrl+D", "quit, when the line is empty"),
    bind(KeyCode::BackTab, SHIFT, Context::Anywhere, Action::CycleMode, "Shift+Tab", "next mode: read-only, ask, auto"),
    bind(KeyCode::BackTab, NONE, Context::Anywhere, Action::CycleMode, "Shift+Tab", ""),
    bind(KeyCode::Char('t'), CTRL, Context::Anywhere, Action::Tree, "Ctrl+T", "turns and branches"),
    bind(KeyCode::Char('d'), ALT, Context::Anywhere, Action::Diff, "Alt+D", "what was changed"),
    bind(KeyCode::Char('o'), CTRL, Context::Anywhere, Action::Details, "Ctrl+O", "tool cards in full, or in short"),
    bind(KeyCode::Char('t'), ALT, Context::Anywhere, Action::Thinking, "Alt+T", "thinking in full, or in short"),
    bind(
        KeyCode::PageUp,
        NONE,
        Context::Anywhere,
        Action::PageUp,
        "PgUp",
        "read back (also the wheel; Shift+drag selects text)",
    ),
    bind(KeyCode::PageDown, NONE, Context::Anywhere, Action::PageDown, "PgDn", "read on"),
    bind(KeyCode::Home, CTRL, Context::Anywhere, Action::ToStart, "Ctrl+Home", "to the start"),
    bind(KeyCode::End, CTRL, Context::Anywhere, Action::ToEnd, "Ctrl+End", "to the end, and follow it"),
    bind(KeyCode::Char('l'), CTRL, Context::Anywhere, Action::Repaint, "Ctrl+L", "paint the screen anew"),
    bind(KeyCode::F(1), NONE, Context::Anywhere, Action::Help, "F1 or ?", "this help (? on an empty line)"),
];

/// What a key does here, if it does anything besides typing.
pub(crate) fn of_key(key: KeyEvent, open: &[Context]) -> Option<Action> {
    let modifiers = key.modifiers & (CTRL | ALT | SHIFT);
    // Terminals report a capital letter with and without Shift.
    let code = match key.code {
        KeyCode::Char(c) if modifiers.intersects(CTRL | ALT) => KeyCode::Char(c.to_ascii_lowercase()),
        code => code,
    };
    let modifiers = if modifiers.intersects(CTRL | ALT) && matches!(code, KeyCode::Char(_)) {
        modifiers & (CTRL | ALT)
    } else {
        modifiers
    };
    BINDINGS
        .iter()
        .find(|it| it.code == code && it.modifiers == modifiers && open.contains(&it.context))
        .map(|it| it.action.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_means_two_things_in_one_place() {
        for (at, a) in BINDINGS.iter().enumerate() {
            for b in &BINDINGS[at + 1..] {
                assert!(
                    !(a.code == b.code && a.modifiers == b.modifiers && a.context == b.context),
                    "{} is bound twice",
                    a.keys
                );
            }
        }
    }
}
