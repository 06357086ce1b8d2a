//! Which keys do what, and where: the defaults of the action table, changed by the person's `[keys]`.

use std::collections::BTreeMap;

use pixir_core::error::nearest;
use pixir_core::{Code, Error};
use ratatui::crossterm::event::KeyCode;

use crate::action::{Scope, VERBS, Verb};
use crate::keys::{Chord, Key, chord_name, parse_chord};
use crate::remedy::Remedies;

/// A chord and what it does.
#[derive(Debug, Clone)]
struct Binding {
    chord: Chord,
    verb: &'static Verb,
}

/// All of them.
#[derive(Debug, Clone)]
pub(crate) struct Keymap {
    bindings: Vec<Binding>,
}

/// What keys mean together.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Found {
    Verb(&'static Verb),
    /// More keys have to follow.
    Begun,
    Nothing,
}

impl Keymap {
    /// The defaults, with these in place of those of the same verbs.
    ///
    /// # Errors
    /// `CONFIG_INVALID`: no such verb, no such key, a key that would mean two things in one place or could not be typed any more.
    pub(crate) fn new(wished: &BTreeMap<String, Vec<String>>) -> Result<Keymap, Error> {
        let invalid = |what: String, fix: String| Error::new(Code::ConfigInvalid, format!("[keys]: {what}"), fix);
        if let Some(wrong) = wished.keys().find(|id| !VERBS.iter().any(|verb| verb.id == **id)) {
            let near = nearest(wrong, VERBS.iter().map(|verb| verb.id));
            let fix = near.map_or("/keys lists all".to_owned(), |near| format!("did you mean `{near}`?"));
            return Err(invalid(format!("there is nothing called `{wrong}`"), fix));
        }
        let mut bindings = Vec::new();
        for verb in VERBS {
            let wish = wished.get(verb.id);
            let chords: Vec<&str> = match wish {
                Some(keys) => keys.iter().map(String::as_str).filter(|key| *key != "none").collect(),
                None => verb.keys.to_vec(),
            };
            for text in chords {
                let chord = parse_chord(text).map_err(|why| {
                    invalid(format!("`{}`: {why}", verb.id), "such as \"ctrl+t\", [\"f5\", \"] t\"] or \"none\"".into())
                })?;
                let is_typed =
                    chord[0].is_plain() && matches!(verb.scope, Scope::Anywhere | Scope::Composer | Scope::Approval);
                let is_usual = matches!(chord[0].code, KeyCode::Enter | KeyCode::Tab | KeyCode::Esc)
                    && chord[0].modifiers.is_empty();
                if verb.scope == Scope::Approval && is_usual {
                    return Err(invalid(
                        format!("`{}` on `{text}` would answer questions by accident", verb.id),
                        "take a key with alt, such as alt+y".into(),
                    ));
                }
                if wish.is_some() && is_typed {
                    return Err(invalid(
                        format!("`{}` on `{text}` would keep you from typing it", verb.id),
                        "hold ctrl or alt with it, or take a function key".into(),
                    ));
                }
                bindings.push(Binding { chord, verb });
            }
        }
        for (at, a) in bindings.iter().enumerate() {
            for b in &bindings[at + 1..] {
                let is_wished = wished.contains_key(a.verb.id) || wished.contains_key(b.verb.id);
                let meet = a.verb.scope == b.verb.scope || (is_wished && hold_together(a.verb.scope, b.verb.scope));
                if meet && (a.chord.starts_with(&b.chord) || b.chord.starts_with(&a.chord)) {
                    let (keys, both) = (chord_name(&a.chord), [a.verb.id, b.verb.id]);
                    let other = both.iter().find(|id| !wished.contains_key(**id)).unwrap_or(&both[1]);
                    return Err(invalid(
                        format!("{keys} would be both `{}` and `{}`", both[0], both[1]),
                        format!("give one of them another key: {other} = \"…\", or \"none\""),
                    ));
                }
            }
        }
        Ok(Keymap { bindings })
    }

    /// What these keys mean where the person is; the innermost scope is named first.
    pub(crate) fn find(&self, keys: &[Key], scopes: &[Scope]) -> Found {
        for scope in scopes {
            let mut here = self.bindings.iter().filter(|it| it.verb.scope == *scope && it.chord.starts_with(keys));
            if let Some(it) = here.next() {
                return if it.chord.len() == keys.len() { Found::Verb(it.verb) } else { Found::Begun };
            }
        }
        Found::Nothing
    }

    /// What may follow these keys, and does what.
    pub(crate) fn after(&self, keys: &[Key], scopes: &[Scope]) -> Vec<(String, &'static Verb)> {
        let here = |it: &&Binding| {
            scopes.contains(&it.verb.scope) && it.chord.len() > keys.len() && it.chord.starts_with(keys)
        };
        self.bindings.iter().filter(here).map(|it| (chord_name(&it.chord[keys.len()..]), it.verb)).collect()
    }

    /// The keys of a verb, as they are shown.
    pub(crate) fn keys_of(&self, id: &str) -> Vec<String> {
        self.bindings.iter().filter(|it| it.verb.id == id).map(|it| chord_name(&it.chord)).collect()
    }

    /// The first of them, for a hint.
    pub(crate) fn key_of(&self, id: &str) -> String {
        self.keys_of(id).into_iter().next().unwrap_or_default()
    }

    /// `n next · N before`: what is of use somewhere; without what no key does.
    pub(crate) fn hints(&self, of: &[(&str, &str)]) -> String {
        let hint = |(id, word): &(&str, &str)| {
            Some(self.key_of(id)).filter(|key| !key.is_empty()).map(|key| format!("{key} {word}"))
        };
        of.iter().filter_map(hint).collect::<Vec<_>>().join(" · ")
    }

    /// The same, behind something else.
    pub(crate) fn and_hints(&self, of: &[(&str, &str)]) -> String {
        let hints = self.hints(of);
        if hints.is_empty() { hints } else { format!(" · {hints}") }
    }

    /// `Tab, then Enter`: what shows all of a question.
    pub(crate) fn to_all_of_question(&self) -> String {
        format!("{}, then {}", self.key_of("focus-next"), self.key_of("question-expand"))
    }
}

/// The keys that show the rest of what is cut, as they stand behind it: ` · Ctrl+O`.
#[derive(Debug, Clone, Default)]
pub(crate) struct More {
    pub(crate) details: String,
    pub(crate) thinking: String,
    /// What to do about an error.
    pub(crate) remedies: Remedies,
}

impl More {
    /// Nothing shows more.
    pub(crate) const NONE: &'static More =
        &More { details: String::new(), thinking: String::new(), remedies: Remedies::NONE };

    /// Of printed lines nothing can change any more: they are shown again.
    pub(crate) fn new(keymap: &Keymap, inline: bool) -> More {
        let first = if inline { keymap.key_of("page-up") } else { String::new() };
        let told = |id| {
            let keys: Vec<String> =
                [first.clone(), keymap.key_of(id)].into_iter().filter(|key| !key.is_empty()).collect();
            if keys.is_empty() { String::new() } else { format!(" · {}", keys.join(", then ")) }
        };
        More { details: told("details"), thinking: told("thinking"), remedies: Remedies::new(keymap) }
    }
}

/// Whether a key of one scope would hide, or be hidden by, the same key of the other.
fn hold_together(a: Scope, b: Scope) -> bool {
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

    fn wish(id: &str, keys: &[&str]) -> BTreeMap<String, Vec<String>> {
        BTreeMap::from([(id.to_owned(), keys.iter().map(|k| (*k).to_owned()).collect())])
    }

    #[test]
    fn the_defaults_hold_together_and_every_wish_is_checked() {
        let keymap = Keymap::new(&BTreeMap::new()).expect("the defaults do not contradict each other");
        assert_eq!(keymap.key_of("tree"), "Ctrl+T");
        let error = |wish| Keymap::new(&wish).expect_err("it is wrong");
        assert_eq!(error(wish("tre", &["f5"])).remedy, "did you mean `tree`?".into());
        let conflict = error(wish("tree", &["ctrl+p"]));
        assert!(conflict.message.contains("Ctrl+P would be both"), "{}", conflict.message);
        assert!(conflict.remedy.plain().contains("palette"), "{:?}", conflict.remedy);
        assert!(error(wish("tree", &["ctrl+a"])).message.contains("both"), "the line has it already");
        assert!(error(wish("tree", &["alt+y"])).message.contains("both"), "it answers a question");
        assert!(error(wish("allow-once", &["enter"])).message.contains("by accident"));
        assert!(error(wish("tree", &["t"])).message.contains("would keep you from typing it"));
        assert!(error(wish("tree", &["ctrl+shift+hyper+t"])).message.contains("hyper"));
        assert!(error(wish("next-prompt", &["]"])).message.contains("would be both"), "a key that begins another");
        let keymap = Keymap::new(&wish("tree", &["f5", "ctrl+x t"])).expect("free");
        assert_eq!(keymap.keys_of("tree"), ["F5", "Ctrl+X t"]);
        assert!(Keymap::new(&wish("tree", &["none"])).expect("off").keys_of("tree").is_empty());
    }
}
