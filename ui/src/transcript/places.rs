//! Marks to jump to, and addresses of cells that remain valid after a restart.

use super::{Cell, Direction, Mark, Transcript};

impl Transcript {
    pub(super) fn mark(&mut self, at: usize, mark: Mark) {
        let marked = &mut self.marks[mark as usize];
        if let Err(place) = marked.binary_search(&at) {
            marked.insert(place, at);
        }
    }

    /// How many cells have this mark.
    pub(crate) fn count_marks(&self, mark: Mark) -> usize {
        self.marks[mark as usize].len()
    }

    /// One of these cells has this mark.
    pub(crate) fn has_mark(&self, mark: Mark, cells: std::ops::Range<usize>) -> bool {
        let marked = &self.marks[mark as usize];
        marked.get(marked.partition_point(|at| *at < cells.start)).is_some_and(|at| *at < cells.end)
    }

    /// The nearest cell with this mark before or after `from`.
    pub(crate) fn next_mark(&self, mark: Mark, from: usize, direction: Direction) -> Option<usize> {
        let marked = &self.marks[mark as usize];
        match direction {
            Direction::Forward => marked.get(marked.partition_point(|at| *at <= from)).copied(),
            Direction::Back => marked[..marked.partition_point(|at| *at < from)].last().copied(),
        }
    }

    /// The number of the entry that a cell shows.
    fn seq_of(&self, at: usize) -> Option<u64> {
        match self.cells.get(at)? {
            Cell::Recorded(entry) | Cell::Part(entry, _) => Some(entry.seq),
            Cell::Tool(tool) => Some(tool.call.seq),
            Cell::Workflow(card) => Some(card.entry.seq),
            Cell::Thoughts(all) => all.first().map(|entry| entry.seq),
            Cell::Drafted(_) | Cell::Tail | Cell::Thinking(_) | Cell::Error(_) | Cell::Notice(..) | Cell::Gone => None,
        }
    }

    /// The address of a cell: the number of its entry, and its index among the cells of that entry. A cell without an
    /// entry has the address of the one before.
    pub(crate) fn address(&self, at: usize) -> Option<(u64, usize)> {
        let at = (0..=at).rev().find(|at| self.seq_of(*at).is_some())?;
        let seq = self.seq_of(at)?;
        let nth = (0..at).rev().take_while(|before| self.seq_of(*before) == Some(seq)).count();
        Some((seq, nth))
    }

    /// The first cell whose entry is newer than this one.
    pub(crate) fn after(&self, seen: Option<u64>) -> Option<usize> {
        let is_newer = |at: &usize| self.seq_of(*at).is_some_and(|it| seen.is_none_or(|seen| it > seen));
        Some((0..self.cells.len()).find(is_newer).unwrap_or(self.cells.len()))
    }

    /// The cell with this address, or the first one after it.
    pub(crate) fn at_address(&self, (seq, nth): (u64, usize)) -> Option<usize> {
        let first = (0..self.cells.len()).find(|at| self.seq_of(*at).is_some_and(|it| it >= seq))?;
        let is_there = self.seq_of(first + nth) == Some(seq);
        Some(if is_there { first + nth } else { first })
    }
}
