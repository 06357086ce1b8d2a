//! What was cut, to be put back: a ring, as in Emacs.

/// Pieces that are kept.
const KEPT: usize = 30;

#[derive(Debug, Clone, Default)]
pub(crate) struct KillRing {
    /// The newest last.
    pieces: Vec<String>,
    /// The last edit was a cut: what is cut next belongs to it.
    goes_on: bool,
    /// Which piece was put back last, counted from the newest.
    yanked: Option<usize>,
}

impl KillRing {
    /// Something else was done.
    pub(crate) fn pause(&mut self) {
        (self.goes_on, self.yanked) = (false, None);
    }

    pub(crate) fn add(&mut self, text: &str, backwards: bool) {
        self.yanked = None;
        if text.is_empty() {
            return;
        }
        match self.pieces.last_mut().filter(|_| self.goes_on) {
            Some(last) if backwards => last.insert_str(0, text),
            Some(last) => last.push_str(text),
            None => self.pieces.push(text.to_owned()),
        }
        if self.pieces.len() > KEPT {
            self.pieces.remove(0);
        }
        self.goes_on = true;
    }

    /// The newest piece.
    pub(crate) fn yank(&mut self) -> Option<&str> {
        self.goes_on = false;
        self.yanked = Some(0);
        self.pieces.last().map(String::as_str)
    }

    /// What was put back last, and what goes in its place.
    pub(crate) fn pop(&mut self) -> Option<(String, &str)> {
        let at = self.yanked?;
        let count = self.pieces.len();
        let last = self.pieces.get(count.checked_sub(1 + at)?)?.clone();
        let next = (at + 1) % count;
        self.yanked = Some(next);
        Some((last, self.pieces.get(count - 1 - next)?))
    }
}
