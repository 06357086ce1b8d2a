//! Earlier prompts: of this Session, and of all Sessions of the same home.

use std::collections::{HashSet, VecDeque};

/// The most prompts in memory, and their total size in bytes.
const MAX_PROMPTS: usize = 2_000;
const MAX_BYTES: usize = 2 << 20;

/// Prompts, oldest first, and the position of the user among them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Past {
    texts: VecDeque<String>,
    bytes: usize,
    /// The position, and the draft that the user has left for it.
    browsing: Option<(usize, String)>,
    /// Prompts that are not saved yet.
    unsaved: Vec<String>,
}

impl Past {
    /// Adds prompts of earlier Sessions, before those of this one.
    pub(crate) fn load(&mut self, earlier: Vec<String>) {
        for text in earlier.into_iter().rev() {
            if self.texts.len() >= MAX_PROMPTS || self.bytes + text.len() > MAX_BYTES {
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

    /// Adds a prompt, or a draft that was put aside. A draft that was left for browsing comes before it.
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
        while self.texts.len() > MAX_PROMPTS || self.bytes > MAX_BYTES {
            self.bytes -= self.texts.pop_front().map_or(0, |text| text.len());
        }
    }

    /// Takes the prompts that are not saved yet.
    pub(crate) fn take_unsaved(&mut self) -> Vec<String> {
        std::mem::take(&mut self.unsaved)
    }

    pub(crate) fn is_browsing(&self) -> bool {
        self.browsing.is_some()
    }

    /// The user edits a recalled prompt: the draft that was left for it becomes an earlier prompt.
    pub(crate) fn edited(&mut self) {
        if let Some((_, draft)) = self.browsing.take() {
            self.remember(&draft);
        }
    }

    /// The previous prompt. On the first step the draft is put aside.
    pub(crate) fn older(&mut self, draft: &str) -> Option<String> {
        let (at, draft) = self.browsing.take().unwrap_or_else(|| (self.texts.len(), draft.to_owned()));
        let next = at.checked_sub(1);
        self.browsing = Some((next.unwrap_or(at), draft));
        next.and_then(|at| self.texts.get(at)).cloned()
    }

    /// The next prompt; at the end, the draft.
    pub(crate) fn newer(&mut self) -> Option<String> {
        let (at, draft) = self.browsing.take()?;
        match self.texts.get(at + 1) {
            Some(text) => {
                self.browsing = Some((at + 1, draft));
                Some(text.clone())
            }
            None => Some(draft),
        }
    }

    /// The newest prompt that contains these letters, after skipping `n` others.
    fn find(&self, letters: &str, n: usize) -> Option<&str> {
        let letters = letters.to_lowercase();
        let mut seen: HashSet<&str> = HashSet::new();
        let texts = self.texts.iter().rev().map(String::as_str);
        texts.filter(|text| text.to_lowercase().contains(&letters)).filter(|text| seen.insert(text)).nth(n)
    }
}

/// A search in earlier prompts, as in a shell.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PastSearch {
    pub(crate) letters: String,
    /// The matches to skip, and the current match.
    skipped: usize,
    found: Option<String>,
    /// The draft before the search.
    pub(crate) draft: String,
}

impl PastSearch {
    pub(crate) fn new(draft: String) -> PastSearch {
        PastSearch { draft, ..PastSearch::default() }
    }

    pub(crate) fn current(&self) -> Option<&str> {
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
        assert_eq!(search.current(), Some("fix the bug"));
        search.older(&past);
        assert_eq!(search.current(), Some("an older bug"));
        search.older(&past);
        assert_eq!(search.current(), Some("an older bug"), "there is none before");
        search.newer(&past);
        assert_eq!(search.current(), Some("fix the bug"));
        assert_eq!(past.take_unsaved().len(), 4);
    }
}
