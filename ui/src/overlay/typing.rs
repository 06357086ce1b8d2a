//! What the user types into an overlay: which keys are text, and where it goes.

use super::{Outcome, Overlay};
use crate::terminal::key::{KeyCode, KeyEvent};

impl Overlay {
    /// A field takes what the user types, so letters trigger no action.
    pub(crate) fn is_typing(&self) -> bool {
        match self {
            Overlay::Arguments(_)
            | Overlay::Danger(_)
            | Overlay::Form(_)
            | Overlay::Help(_)
            | Overlay::Log(_)
            | Overlay::Models(_)
            | Overlay::Palette(_)
            | Overlay::Picker(_)
            | Overlay::Skills(_)
            | Overlay::Themes(_) => true,
            Overlay::Agents(it) => it.is_typing(),
            Overlay::Always(it) => it.is_typing(),
            Overlay::Connect(it) => it.is_typing(),
            Overlay::Sessions(it) => it.is_typing(),
            Overlay::Settings(it) => it.is_typing(),
            Overlay::Compaction(it) => it.is_typing(),
            Overlay::Tree(it) => it.is_typing(),
            Overlay::Diff(it) => it.is_typing(),
            Overlay::Approval(_)
            | Overlay::Context(_)
            | Overlay::Jobs(_)
            | Overlay::Servers(_)
            | Overlay::Outline(_)
            | Overlay::Permissions(_)
            | Overlay::Report(_)
            | Overlay::Restore(_)
            | Overlay::Trust(_)
            | Overlay::Workflow(_) => false,
        }
    }

    /// The key types a character, and yet no field here takes it: Space on an answer that can be marked.
    pub(crate) fn leaves_to_actions(&self, key: KeyEvent) -> bool {
        matches!(self, Overlay::Form(form) if form.can_mark() && key.code == KeyCode::Char(' '))
    }

    /// Types into the field that takes text, if there is one. `None` if the key means nothing to the field: then it can
    /// be an action.
    pub(crate) fn key(&mut self, key: KeyEvent) -> Option<Outcome> {
        match self {
            Overlay::Agents(it) => it.key(key),
            Overlay::Always(it) => it.key(key),
            Overlay::Arguments(it) => it.key(key),
            Overlay::Connect(it) => it.key(key),
            Overlay::Danger(it) => it.key(key),
            Overlay::Skills(it) => it.key(key),
            Overlay::Compaction(it) => it.key(key),
            Overlay::Form(it) => it.key(key),
            Overlay::Help(it) => it.key(key),
            Overlay::Log(it) => it.key(key),
            Overlay::Models(it) => it.key(key),
            Overlay::Palette(it) => it.key(key),
            Overlay::Picker(it) => it.key(key),
            Overlay::Sessions(it) => it.key(key),
            Overlay::Settings(it) => it.key(key),
            Overlay::Themes(it) => it.key(key),
            Overlay::Tree(it) => it.key(key),
            Overlay::Diff(it) => it.key(key),
            Overlay::Approval(_)
            | Overlay::Context(_)
            | Overlay::Jobs(_)
            | Overlay::Servers(_)
            | Overlay::Outline(_)
            | Overlay::Permissions(_)
            | Overlay::Report(_)
            | Overlay::Restore(_)
            | Overlay::Trust(_)
            | Overlay::Workflow(_) => None,
        }
    }

    /// A key without a meaning was pressed: it answers no question.
    pub(crate) fn forget_question(&mut self) {
        match self {
            Overlay::Jobs(it) => it.forget_question(),
            Overlay::Permissions(it) => it.forget_question(),
            Overlay::Sessions(it) => it.forget_question(),
            Overlay::Agents(_)
            | Overlay::Servers(_)
            | Overlay::Always(_)
            | Overlay::Approval(_)
            | Overlay::Arguments(_)
            | Overlay::Compaction(_)
            | Overlay::Connect(_)
            | Overlay::Context(_)
            | Overlay::Danger(_)
            | Overlay::Diff(_)
            | Overlay::Form(_)
            | Overlay::Help(_)
            | Overlay::Log(_)
            | Overlay::Models(_)
            | Overlay::Outline(_)
            | Overlay::Palette(_)
            | Overlay::Picker(_)
            | Overlay::Report(_)
            | Overlay::Restore(_)
            | Overlay::Settings(_)
            | Overlay::Skills(_)
            | Overlay::Themes(_)
            | Overlay::Tree(_)
            | Overlay::Trust(_)
            | Overlay::Workflow(_) => {}
        }
    }

    /// Takes pasted text, if it has a field for it.
    pub(crate) fn paste(&mut self, text: &str) {
        match self {
            Overlay::Agents(it) => it.paste(text),
            Overlay::Arguments(it) => it.paste(text),
            Overlay::Form(it) => it.paste(text),
            Overlay::Compaction(it) => it.paste(text),
            Overlay::Connect(it) => it.paste(text),
            Overlay::Diff(it) => it.paste(text),
            Overlay::Settings(it) => it.paste(text),
            Overlay::Tree(it) => it.paste(text),
            Overlay::Always(_)
            | Overlay::Approval(_)
            | Overlay::Context(_)
            | Overlay::Danger(_)
            | Overlay::Skills(_)
            | Overlay::Help(_)
            | Overlay::Jobs(_)
            | Overlay::Servers(_)
            | Overlay::Log(_)
            | Overlay::Models(_)
            | Overlay::Outline(_)
            | Overlay::Palette(_)
            | Overlay::Permissions(_)
            | Overlay::Picker(_)
            | Overlay::Report(_)
            | Overlay::Restore(_)
            | Overlay::Sessions(_)
            | Overlay::Themes(_)
            | Overlay::Trust(_)
            | Overlay::Workflow(_) => {}
        }
    }
}
