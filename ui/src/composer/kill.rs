//! The kill ring, as in Emacs: texts that the user has cut, to insert again.

/// The most texts in the ring.
const MAX_TEXTS: usize = 30;

/// The side of the caret from which a text was cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    Backward,
    Forward,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct KillRing {
    /// Newest last.
    texts: Vec<String>,
    /// The last edit was a cut, so the next one is joined to it.
    goes_on: bool,
    /// The text that was last inserted, counted from the newest.
    yanked: Option<usize>,
}

impl KillRing {
    /// Another edit ends a sequence of cuts.
    pub(crate) fn pause(&mut self) {
        (self.goes_on, self.yanked) = (false, None);
    }

    pub(crate) fn add(&mut self, text: &str, cut: Cut) {
        self.yanked = None;
        if text.is_empty() {
            return;
        }
        match self.texts.last_mut().filter(|_| self.goes_on) {
            Some(last) if cut == Cut::Backward => last.insert_str(0, text),
            Some(last) => last.push_str(text),
            None => self.texts.push(text.to_owned()),
        }
        if self.texts.len() > MAX_TEXTS {
            self.texts.remove(0);
        }
        self.goes_on = true;
    }

    /// The newest text.
    pub(crate) fn yank(&mut self) -> Option<&str> {
        self.goes_on = false;
        self.yanked = Some(0);
        self.texts.last().map(String::as_str)
    }

    /// The text that was last inserted, and the one that replaces it.
    pub(crate) fn pop(&mut self) -> Option<(String, &str)> {
        let at = self.yanked?;
        let count = self.texts.len();
        let last = self.texts.get(count.checked_sub(1 + at)?)?.clone();
        let next = (at + 1) % count;
        self.yanked = Some(next);
        Some((last, self.texts.get(count - 1 - next)?))
    }
}
