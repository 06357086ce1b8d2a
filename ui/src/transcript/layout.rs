//! Cells as rows: laid out when they are visible, kept until something that they depend on changes, folded or not.

use std::ops::Range;
use std::rc::Rc;

use pixir_core::Fact;
use pixir_core::changes::FileDiff;
use pixir_core::event::Printed;

use super::{Cell, Tool, Transcript, rows};
use crate::render::context::{Fold, LayoutKey, RenderContext};
use crate::render::markdown::begun_table;
use crate::render::split::Part;
use crate::render::text::Row;

/// The most cells whose rows stay laid out: more than a screen shows, and few enough that a long conversation is not kept twice.
const MAX_LAYOUTS: usize = 256;

impl Transcript {
    pub(crate) fn fold_of(&self, at: usize) -> Option<Fold> {
        self.folds.get(&at).copied()
    }

    /// Sets how much of a cell is shown; None follows the rest.
    pub(crate) fn set_fold(&mut self, at: usize, fold: Option<Fold>) {
        match fold {
            Some(fold) => drop(self.folds.insert(at, fold)),
            None => drop(self.folds.remove(&at)),
        }
        self.changed(at);
    }

    /// The cells of the message that this cell belongs to.
    pub(crate) fn message_of(&self, at: usize) -> Option<Range<usize>> {
        self.cells.get(at)?.message()?;
        let begins = |at: &usize| self.cells.get(*at).and_then(Cell::message).is_none_or(|(_, is_begin)| is_begin);
        let begin = (0..=at).rev().find(begins)?;
        let end = (at + 1..self.cells.len()).find(begins).unwrap_or(self.cells.len());
        Some(begin..end)
    }

    /// The cell has no rows, or is the end of a Turn: the user does not choose it.
    pub(crate) fn is_hidden(&self, at: usize, details: Fold) -> bool {
        match self.cells.get(at) {
            Some(Cell::Gone) => true,
            Some(cell) if cell.is_footer() => true,
            Some(Cell::Tool(tool)) => self.is_folded_away(at, details) || self.is_needless(tool, at, details),
            Some(cell) => self.fold_of(at) == Some(Fold::Line) && cell.message().is_some_and(|(_, is_begin)| !is_begin),
            None => false,
        }
    }

    /// The card of a plan, which stands in a cell of its own.
    pub(super) fn is_needless(&self, tool: &Tool, at: usize, details: Fold) -> bool {
        tool.is_plan_without_fault() && self.fold_of(at).unwrap_or(details) != Fold::Full
    }

    /// A click on the first row of the cell folds or unfolds it.
    pub(crate) fn folds_by_click(&self, at: usize) -> bool {
        match self.cells.get(at) {
            Some(Cell::Tool(_) | Cell::Thinking(_) | Cell::Thoughts(_)) => true,
            Some(Cell::Recorded(entry)) => {
                matches!(entry.fact, Fact::Reasoning(_) | Fact::HistoryCompaction(_) | Fact::BranchSummary(_))
            }
            Some(
                Cell::Part(..)
                | Cell::Drafted(_)
                | Cell::Tail
                | Cell::Workflow(_)
                | Cell::Error(_)
                | Cell::Notice(..)
                | Cell::Gone,
            )
            | None => false,
        }
    }

    /// Drops the folds of single cells.
    pub(crate) fn follow_all(&mut self) {
        self.folds.clear();
    }

    /// The diffs of the call in this cell, once they are loaded.
    pub(crate) fn diffs_of(&self, at: usize) -> Option<&[FileDiff]> {
        self.diffs.get(&at).map(Vec::as_slice)
    }

    /// The rows of a cell. They are laid out now unless they already are.
    pub(crate) fn rows(&mut self, at: usize, context: &RenderContext<'_>, key: LayoutKey) -> Rc<Vec<Row>> {
        self.heights.at_width(key.columns);
        if matches!(self.cells.get(at), Some(Cell::Tail) | None) {
            return self.tail_rows(at, context, key);
        }
        if self.is_folded_away(at, context.details) {
            self.heights.set(at, 0);
            return Rc::clone(&self.nothing);
        }
        if let Some((cached, rows)) = self.layouts.get(&at)
            && *cached == key
        {
            // A change of the width and back has turned the height into an estimate again.
            self.heights.set(at, rows.len());
            return Rc::clone(rows);
        }
        let cell = &self.cells[at];
        if let Cell::Tool(tool) = cell
            && let (Some(result), Some(seq)) = (tool.result(), tool.result_seq())
            && !result.changes.is_empty()
            && result.error.is_none()
            && !self.diffs.contains_key(&at)
        {
            self.wanted_diffs.push((at, seq));
        }
        let is_in_full = self.fold_of(at).unwrap_or(context.thinking) == Fold::Full;
        let mut rows = match self.cells.get_mut(at) {
            Some(Cell::Thinking(it)) if it.is_live && is_in_full => it.in_full.rows(&it.text, context, key),
            Some(_) => {
                context.highlighter.take_short();
                let rows = self.lay_out(at, context);
                if context.highlighter.take_short() {
                    self.short_of_colours.insert(at);
                } else {
                    self.short_of_colours.remove(&at);
                }
                rows
            }
            None => Vec::new(),
        };
        if self.stands_apart(at) && !rows.is_empty() {
            rows.insert(0, Row::default());
        }
        rows.shrink_to_fit();
        let rows = Rc::new(rows);
        self.heights.set(at, rows.len());
        if self.layouts.len() >= MAX_LAYOUTS {
            // Cells far from the viewport are laid out again when the user scrolls back to them.
            self.layouts.retain(|cell, _| cell.abs_diff(at) < MAX_LAYOUTS / 4);
            self.diffs.retain(|cell, _| cell.abs_diff(at) < MAX_LAYOUTS / 4);
        }
        self.layouts.insert(at, (key, Rc::clone(&rows)));
        rows
    }

    /// The rows of a cell, laid out.
    fn lay_out(&self, at: usize, context: &RenderContext<'_>) -> Vec<Row> {
        let nothing = Printed::default();
        let run = self.run_at(at, context.details);
        let data = rows::CellData {
            draft: &self.draft.text,
            live: self.live.get(&at).unwrap_or(&nothing),
            diffs: self.diffs.get(&at).map(Vec::as_slice),
            fold: self.fold_of(at),
            is_replaced: self.is_replaced(at),
            run: run.as_ref(),
            agent: self.agent_of(at),
            plan_above: self.progress.get(&at).copied(),
            lines: self.lines_of.get(&at).copied().unwrap_or_default(),
        };
        rows::rows(&self.cells[at], &data, context)
    }

    /// An empty row separates the cell from the one above.
    pub(super) fn stands_apart(&self, at: usize) -> bool {
        // The cards of plans have no rows.
        let is_seen = |cell: &&Cell| !matches!(cell, Cell::Tool(tool) if tool.is_plan_without_fault());
        match (self.cells[..at.min(self.cells.len())].iter().rev().find(is_seen), self.cells.get(at)) {
            (Some(above), Some(Cell::Tail)) => {
                !(self.draft.splitter.rest(&self.draft.text).goes_on && matches!(above, Cell::Drafted(_)))
            }
            (Some(above), Some(below)) => !rows::joins(above, below),
            (_, None) | (None, _) => false,
        }
    }

    /// The cell waits for syntax colours.
    pub(crate) fn is_short_of_colours(&self, at: usize) -> bool {
        self.short_of_colours.contains(&at)
    }

    /// The colours of more lines of the growing part have arrived.
    pub(crate) fn tail_changed(&mut self) {
        self.draft.rows = None;
    }

    fn tail_rows(&mut self, at: usize, context: &RenderContext<'_>, key: LayoutKey) -> Rc<Vec<Row>> {
        let length = self.draft.text.len();
        if let Some((cached, of, rows)) = &self.draft.rows
            && (*cached, *of) == (key, length)
        {
            self.heights.set(at, rows.len());
            return Rc::clone(rows);
        }
        let part = self.draft.splitter.rest(&self.draft.text);
        let growing = RenderContext { grows: true, ..*context };
        let begun = Some(&self.draft.text[part.range.clone()]).filter(|_| part.fence.is_none() && part.table.is_none());
        let mut rows = match begun.and_then(begun_table) {
            Some(table) => rows::message_part(&table, &Part { range: 0..table.len(), ..part }, &growing),
            None => rows::message_part(&self.draft.text, &part, &growing),
        };
        if self.stands_apart(at) && !rows.is_empty() {
            rows.insert(0, Row::default());
        }
        let rows = Rc::new(rows);
        self.heights.set(at, rows.len());
        self.draft.rows = Some((key, length, Rc::clone(&rows)));
        rows
    }

    /// The rows above a cell, partly estimated.
    pub(crate) fn rows_above(&self, at: usize) -> usize {
        self.heights.above(at)
    }

    /// The cell that holds a row, counted from the top, and the row in it.
    pub(crate) fn at_row(&self, row: usize) -> (usize, usize) {
        self.heights.find(row)
    }
}
