//! Events that a server or a proxy sends twice, such as after a connection inside of it was made anew.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use serde_json::Value;

/// How many events back a repeated one is recognized.
const REMEMBERED: usize = 256;

/// Finds repeated events of one stream: those with the same name and the same data as an earlier one. Equal data alone
/// is no repetition, because models repeat themselves.
#[derive(Default)]
pub(super) struct Repeats {
    ids: Names<String>,
    numbers: Names<u64>,
    /// The highest number so far: a higher one cannot have come before.
    highest: Option<u64>,
}

impl Repeats {
    /// Whether this event has come before. `id` is the field of the event stream; the Responses dialect also numbers its
    /// events.
    pub(super) fn has_come(&mut self, id: Option<String>, data: &Value, text: &str) -> bool {
        let number = data["sequence_number"].as_u64();
        let by_id = id.filter(|id| !id.is_empty()).is_some_and(|id| self.ids.has_come(id, text));
        let by_number = number.is_some_and(|number| {
            let is_higher = self.highest.is_none_or(|highest| number > highest);
            self.highest = self.highest.max(Some(number));
            if is_higher {
                self.numbers.note(number, text);
            }
            !is_higher && self.numbers.has_come(number, text)
        });
        by_id || by_number
    }
}

/// The names of the latest events, and a digest of the data of each.
struct Names<T> {
    seen: VecDeque<(T, u64)>,
    /// False once one name was given to two events: some servers send the same id with every event.
    are_unique: bool,
}

impl<T> Default for Names<T> {
    fn default() -> Names<T> {
        Names { seen: VecDeque::new(), are_unique: true }
    }
}

impl<T: PartialEq> Names<T> {
    fn has_come(&mut self, name: T, text: &str) -> bool {
        if !self.are_unique {
            return false;
        }
        let digest = digest(text);
        // A repeated event is most likely one of the last.
        match self.seen.iter().rev().find(|(seen, _)| *seen == name) {
            Some((_, before)) if *before == digest => return true,
            Some(_) => {
                self.are_unique = false;
                self.seen.clear();
                return false;
            }
            None => {}
        }
        self.push(name, digest);
        false
    }

    /// Notes an event whose name no earlier one can have.
    fn note(&mut self, name: T, text: &str) {
        if self.are_unique {
            self.push(name, digest(text));
        }
    }

    fn push(&mut self, name: T, digest: u64) {
        if self.seen.len() == REMEMBERED {
            self.seen.pop_front();
        }
        self.seen.push_back((name, digest));
    }
}

fn digest(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}
