//! Text in the lines of a file: typed after `/`, found forward and back.

use pixir_core::diff::TextPatch;

use super::places::Place;
use crate::overlay::narrow::cut_word;
use crate::terminal::key::{KeyCode, KeyEvent, KeyModifiers};

#[derive(Debug, Default)]
pub(super) struct Search {
    pub(super) text: String,
    /// Letters go into the field.
    pub(super) is_typed: bool,
    /// No row has the text.
    pub(super) is_missing: bool,
}

impl Search {
    pub(super) fn begin(&mut self) {
        *self = Search { is_typed: true, ..Search::default() };
    }

    /// False if the key means nothing to the field.
    pub(super) fn key(&mut self, key: KeyEvent) -> bool {
        match key.code {
            KeyCode::Enter => self.is_typed = false,
            KeyCode::Esc => *self = Search::default(),
            KeyCode::Backspace => drop(self.text.pop()),
            KeyCode::Char('u') if key.modifiers == KeyModifiers::CONTROL => self.text.clear(),
            KeyCode::Char('w') if key.modifiers == KeyModifiers::CONTROL => cut_word(&mut self.text),
            KeyCode::Char(c) if key.modifiers.is_typing() => self.text.push(c),
            _ => return false,
        }
        true
    }
}

/// The nearest row with the text, around at the ends. Case matters only if the text has a capital.
pub(super) fn next(
    text: &TextPatch,
    places: &[Place],
    wanted: &str,
    from: usize,
    by: isize,
    may_stay: bool,
) -> Option<usize> {
    let matches_case = wanted.chars().any(char::is_uppercase);
    let has = |place: &Place| {
        [place.left, place.right].into_iter().flatten().any(|line| {
            let line = usize::try_from(line).ok().and_then(|at| text.lines.get(at));
            line.is_some_and(|line| {
                let line = text.text(*line);
                match (matches_case, wanted.is_ascii()) {
                    (true, _) => line.contains(wanted),
                    (false, true) => {
                        let parts = line.as_bytes().windows(wanted.len());
                        parts.into_iter().any(|part| part.eq_ignore_ascii_case(wanted.as_bytes()))
                    }
                    (false, false) => line.to_lowercase().contains(wanted),
                }
            })
        })
    };
    let count = places.len();
    let first = usize::from(!may_stay);
    (first..=count).find_map(|step| {
        let at =
            if by > 0 { (from + step) % count.max(1) } else { (from + count - step % count.max(1)) % count.max(1) };
        places.get(at).filter(|place| has(place)).map(|_| at)
    })
}
