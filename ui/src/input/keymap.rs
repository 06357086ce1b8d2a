//! Which keys do what, and where: the defaults of the action table, overridden by `[keys]` of the configuration.

use std::collections::BTreeMap;

use crate::terminal::key::KeyCode;
use pixir_core::error::nearest;
use pixir_core::{Code, Error};

use crate::input::action::{ACTIONS, Action, ActionSpec, Scope};
use crate::input::keys::{Chord, Key, chord_name, parse_chord};

/// A chord, and the action that it triggers.
#[derive(Debug, Clone)]
struct Binding {
    chord: Chord,
    spec: &'static ActionSpec,
}

/// All bindings.
#[derive(Debug, Clone)]
pub(crate) struct Keymap {
    bindings: Vec<Binding>,
}

/// What the keys pressed so far mean.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Lookup {
    Action(&'static ActionSpec),
    /// They begin a chord; more keys have to follow.
    Prefix,
    Nothing,
}

impl Keymap {
    /// The defaults, with the keys of `overrides` in place of the defaults of the same actions.
    ///
    /// # Errors
    /// `CONFIG_INVALID`: an unknown action, an unknown key, a key with two meanings in one scope, or a key that the
    /// user could not type any more.
    pub(crate) fn new(overrides: &BTreeMap<String, Vec<String>>) -> Result<Keymap, Error> {
        let invalid = |what: String, fix: String| Error::new(Code::ConfigInvalid, format!("[keys]: {what}"), fix);
        if let Some(wrong) = overrides.keys().find(|id| !ACTIONS.iter().any(|spec| spec.id == **id)) {
            let near = nearest(wrong, ACTIONS.iter().map(|spec| spec.id));
            let fix = near.map_or("/keys lists all actions".to_owned(), |near| format!("did you mean `{near}`?"));
            return Err(invalid(format!("unknown action `{wrong}`"), fix));
        }
        let mut bindings = Vec::new();
        for spec in ACTIONS.iter() {
            let own = overrides.get(spec.id);
            let chords: Vec<&str> = match own {
                Some(keys) => keys.iter().map(String::as_str).filter(|key| *key != "none").collect(),
                None => spec.keys.to_vec(),
            };
            for text in chords {
                let chord = parse_chord(text).map_err(|why| {
                    invalid(format!("`{}`: {why}", spec.id), "write \"ctrl+t\", [\"f5\", \"] t\"] or \"none\"".into())
                })?;
                let is_typed =
                    chord[0].is_plain() && matches!(spec.scope, Scope::Anywhere | Scope::Composer | Scope::Approval);
                let is_usual = matches!(chord[0].code, KeyCode::Enter | KeyCode::Tab | KeyCode::Esc)
                    && chord[0].modifiers.is_empty();
                if spec.scope == Scope::Approval && is_usual {
                    return Err(invalid(
                        format!("`{}` on `{text}` would decide about approvals by accident", spec.id),
                        "choose a key with alt, such as alt+y".into(),
                    ));
                }
                if own.is_some() && is_typed {
                    return Err(invalid(
                        format!("`{}` on `{text}` would keep you from typing it", spec.id),
                        "add ctrl or alt, or choose a function key".into(),
                    ));
                }
                bindings.push(Binding { chord, spec });
            }
        }
        for (at, a) in bindings.iter().enumerate() {
            for b in &bindings[at + 1..] {
                let is_own = overrides.contains_key(a.spec.id) || overrides.contains_key(b.spec.id);
                let meet = a.spec.scope == b.spec.scope || (is_own && overlap(a.spec.scope, b.spec.scope));
                if meet && (a.chord.starts_with(&b.chord) || b.chord.starts_with(&a.chord)) {
                    let (keys, both) = (chord_name(&a.chord), [a.spec.id, b.spec.id]);
                    let other = both.iter().find(|id| !overrides.contains_key(**id)).unwrap_or(&both[1]);
                    return Err(invalid(
                        format!("{keys} would be both `{}` and `{}`", both[0], both[1]),
                        format!("bind one of them to another key: {other} = \"…\", or to \"none\""),
                    ));
                }
            }
        }
        Ok(Keymap { bindings })
    }

    /// Looks up keys in these scopes, the innermost first.
    pub(crate) fn find(&self, keys: &[Key], scopes: &[Scope]) -> Lookup {
        for scope in scopes {
            let mut here = self.bindings.iter().filter(|it| it.spec.scope == *scope && it.chord.starts_with(keys));
            if let Some(it) = here.next() {
                return if it.chord.len() == keys.len() { Lookup::Action(it.spec) } else { Lookup::Prefix };
            }
        }
        Lookup::Nothing
    }

    /// The keys that can complete a chord, with their actions.
    pub(crate) fn completions(&self, keys: &[Key], scopes: &[Scope]) -> Vec<(String, &'static ActionSpec)> {
        let here = |it: &&Binding| {
            scopes.contains(&it.spec.scope) && it.chord.len() > keys.len() && it.chord.starts_with(keys)
        };
        self.bindings.iter().filter(here).map(|it| (chord_name(&it.chord[keys.len()..]), it.spec)).collect()
    }

    /// The keys of an action, as the screen shows them.
    pub(crate) fn keys_of(&self, action: Action) -> Vec<String> {
        self.bindings.iter().filter(|it| it.spec.action == action).map(|it| chord_name(&it.chord)).collect()
    }

    /// The first key of an action, for a hint. None if the user has bound it to no key.
    pub(crate) fn key_of(&self, action: impl Into<Action>) -> Option<String> {
        let action = action.into();
        self.bindings.iter().find(|it| it.spec.action == action).map(|it| chord_name(&it.chord))
    }

    /// Its first key that types no character, for a hint beside a field.
    pub(crate) fn key_beside_text(&self, action: impl Into<Action>) -> Option<String> {
        let action = action.into();
        let is_free = |it: &&Binding| it.spec.action == action && !it.chord.first().is_some_and(|key| key.is_plain());
        self.bindings.iter().find(is_free).map(|it| chord_name(&it.chord))
    }

    /// `n next · N previous`: actions with their keys. Actions without a key are left out.
    pub(crate) fn hints<A: Copy + Into<Action>>(&self, actions: &[(A, &str)]) -> String {
        let hint = |(action, word): &(A, &str)| self.key_of(*action).map(|key| format!("{key} {word}"));
        actions.iter().filter_map(hint).collect::<Vec<_>>().join(" · ")
    }

    /// The same, with a separator in front, to follow a message.
    pub(crate) fn and_hints<A: Copy + Into<Action>>(&self, actions: &[(A, &str)]) -> String {
        let hints = self.hints(actions);
        if hints.is_empty() { hints } else { format!(" · {hints}") }
    }

    /// `Tab, then Enter`: the keys that show the whole preview of an approval.
    pub(crate) fn keys_to_expand_approval(&self) -> String {
        let keys = [Action::FocusNext, Action::ExpandApproval].into_iter().filter_map(|action| self.key_of(action));
        keys.collect::<Vec<_>>().join(", then ")
    }
}

/// The scopes can apply at the same time, so the same key in one would hide it in the other.
fn overlap(a: Scope, b: Scope) -> bool {
    matches!(
        (a, b),
        (Scope::Approval, _)
            | (_, Scope::Approval)
            | (Scope::Anywhere, Scope::Composer)
            | (Scope::Composer, Scope::Anywhere)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(id: &str, keys: &[&str]) -> BTreeMap<String, Vec<String>> {
        BTreeMap::from([(id.to_owned(), keys.iter().map(|k| (*k).to_owned()).collect())])
    }

    #[test]
    fn the_defaults_hold_together_and_every_wish_is_checked() {
        let keymap = Keymap::new(&BTreeMap::new()).expect("the defaults do not contradict each other");
        assert_eq!(keymap.key_of(Action::OpenTree).as_deref(), Some("Ctrl+T"));
        let error = |options| Keymap::new(&options).expect_err("it is wrong");
        assert_eq!(error(options("tre", &["f5"])).remedy, "did you mean `tree`?".into());
        let conflict = error(options("tree", &["ctrl+p"]));
        assert!(conflict.message.contains("Ctrl+P would be both"), "{}", conflict.message);
        assert!(conflict.remedy.plain().contains("palette"), "{:?}", conflict.remedy);
        assert!(error(options("tree", &["ctrl+a"])).message.contains("both"), "the composer has it already");
        assert!(error(options("tree", &["alt+y"])).message.contains("both"), "it decides about an approval");
        assert!(error(options("allow-once", &["enter"])).message.contains("by accident"));
        assert!(error(options("tree", &["t"])).message.contains("would keep you from typing it"));
        assert!(error(options("tree", &["ctrl+shift+hyper+t"])).message.contains("hyper"));
        assert!(error(options("next-prompt", &["]"])).message.contains("would be both"), "a key that begins another");
        let keymap = Keymap::new(&options("tree", &["f5", "ctrl+x t"])).expect("free");
        assert_eq!(keymap.keys_of(Action::OpenTree), ["F5", "Ctrl+X t"]);
        assert!(Keymap::new(&options("tree", &["none"])).expect("off").keys_of(Action::OpenTree).is_empty());
    }
}
