//! What was sent before: in this Session, and in earlier ones of the same home.

use std::collections::{HashSet, VecDeque};

/// Texts that are kept, and their size together, bytes.
const KEPT: usize = 2_000;
const KEPT_BYTES: usize = 2 << 20;

/// Texts, oldest first, and where in them the person is looking.
#[derive(Debug, Clone, Default)]
pub(crate) struct Past {
    texts: VecDeque<String>,
    bytes: usize,
    /// Where, and the draft that was left for it.
    browsing: Option<(usize, String)>,
    /// Texts that are not kept beside the Sessions yet.
    unsaved: Vec<String>,
}

impl Past {
    /// What was sent in earlier Sessions; it comes before everything of this one.
    pub(crate) fn load(&mut self, earlier: Vec<String>) {
        for text in earlier.into_iter().rev() {
            if self.texts.len() >= KEPT || self.bytes + text.len() > KEPT_BYTES {
                break;
            }
            if !self.texts.contains(&text) {
                self.bytes += text.len();
                self.texts.push_front(text);
                if let Some((at, _)) = &mut self.browsing {
                    *at += 1;
                }
            }
        }
    }

    /// A text that was sent, or put aside; a draft that was left for it comes before it.
    pub(crate) fn remember(&mut self, text: &str) {
        self.edited();
        if text.trim().is_empty() || self.texts.back().is_some_and(|last| last == text) {
            return;
        }
        self.add_saved(text);
        self.unsaved.push(text.to_owned());
    }

    /// Adds a text that is already saved.
    pub(crate) fn add_saved(&mut self, text: &str) {
        self.bytes += text.len();
        self.texts.push_back(text.to_owned());
        while self.texts.len() > KEPT || self.bytes > KEPT_BYTES {
            self.bytes -= self.texts.pop_front().map_or(0, |text| text.len());
        }
    }

    /// What is still to be kept beside the Sessions.
    pub(crate) fn take_unsaved(&mut self) -> Vec<String> {
        std::mem::take(&mut self.unsaved)
    }

    pub(crate) fn is_browsing(&self) -> bool {
        self.browsing.is_some()
    }

    /// Whoever edits what was recalled still finds the draft that was left for it.
    pub(crate) fn edited(&mut self) {
        if let Some((_, kept)) = self.browsing.take() {
            self.remember(&kept);
        }
    }

    /// What was sent before what is shown; the draft is left for it.
    pub(crate) fn older(&mut self, draft: &str) -> Option<String> {
        let (at, kept) = self.browsing.take().unwrap_or_else(|| (self.texts.len(), draft.to_owned()));
        let next = at.checked_sub(1);
        self.browsing = Some((next.unwrap_or(at), kept));
        next.and_then(|at| self.texts.get(at)).cloned()
    }

    /// What was sent after it; at last the draft that was left.
    pub(crate) fn newer(&mut self) -> Option<String> {
        let (at, kept) = self.browsing.take()?;
        match self.texts.get(at + 1) {
            Some(text) => {
                self.browsing = Some((at + 1, kept));
                Some(text.clone())
            }
            None => Some(kept),
        }
    }

    /// The newest text that holds these letters, before the `n`-th such.
    fn find(&self, letters: &str, n: usize) -> Option<&str> {
        let letters = letters.to_lowercase();
        let mut seen: HashSet<&str> = HashSet::new();
        let texts = self.texts.iter().rev().map(String::as_str);
        texts.filter(|text| text.to_lowercase().contains(&letters)).filter(|text| seen.insert(text)).nth(n)
    }
}

/// A search through what was sent, as in a shell.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PastSearch {
    pub(crate) letters: String,
    /// How many that fit are passed over, and what was found behind them.
    skipped: usize,
    found: Option<String>,
    /// The draft that was left for it.
    pub(crate) draft: String,
}

impl PastSearch {
    pub(crate) fn new(draft: String) -> PastSearch {
        PastSearch { draft, ..PastSearch::default() }
    }

    pub(crate) fn found(&self) -> Option<&str> {
        self.found.as_deref()
    }

    pub(crate) fn push(&mut self, c: char, past: &Past) {
        self.letters.push(c);
        self.restart(past);
    }

    pub(crate) fn pop(&mut self, past: &Past) {
        self.letters.pop();
        self.restart(past);
    }

    fn restart(&mut self, past: &Past) {
        let found = if self.letters.is_empty() { None } else { past.find(&self.letters, 0) };
        (self.skipped, self.found) = (0, found.map(str::to_owned));
    }

    /// Goes to an older match.
    pub(crate) fn older(&mut self, past: &Past) {
        self.go_to(past, self.skipped + 1);
    }

    /// Goes to a newer match.
    pub(crate) fn newer(&mut self, past: &Past) {
        self.go_to(past, self.skipped.saturating_sub(1));
    }

    fn go_to(&mut self, past: &Past, next: usize) {
        if let Some(found) = past.find(&self.letters, next).filter(|_| !self.letters.is_empty()) {
            (self.skipped, self.found) = (next, Some(found.to_owned()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sent_is_found_by_letters_the_newest_first_and_once() {
        let mut past = Past::default();
        for text in ["fix the bug", "Run the tests", "fix the bug", "deploy"] {
            past.remember(text);
        }
        past.load(vec!["an older bug".into(), "deploy".into()]);
        let mut search = PastSearch::new("draft".into());
        "bug".chars().for_each(|c| search.push(c, &past));
        assert_eq!(search.found(), Some("fix the bug"));
        search.older(&past);
        assert_eq!(search.found(), Some("an older bug"));
        search.older(&past);
        assert_eq!(search.found(), Some("an older bug"), "there is none before");
        search.newer(&past);
        assert_eq!(search.found(), Some("fix the bug"));
        assert_eq!(past.take_unsaved().len(), 4);
    }
}
