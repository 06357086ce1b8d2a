//! The state of reading the transcript: the chosen entry, search, selection, copy labels.

use super::{Focus, State};
use crate::render::context::Fold;
use crate::render::text::{End, Row};
use crate::transcript::reading::find::{Hit, Needle, Search, Stretches};
use crate::transcript::reading::labels::CopyLabels;
use crate::transcript::reading::select::Selection;
use crate::transcript::viewport::CellRow;

#[derive(Debug, Default)]
pub(crate) struct Reading {
    /// The chosen cell.
    pub(crate) cell: Option<usize>,
    pub(crate) search: Option<Search>,
    /// The focus before the search, to return to.
    pub(crate) focus_before_search: Focus,
    /// Searches so far. The number distinguishes a late result from that of the current search.
    pub(crate) searches: u64,
    pub(crate) selection: Option<Selection>,
    pub(crate) labels: Option<CopyLabels>,
}

impl Reading {
    /// Forgets everything that refers to cells, because the cells are others now.
    pub(crate) fn clear(&mut self) {
        (self.cell, self.search, self.selection, self.labels) = (None, None, None, None);
    }
}

impl State {
    /// The row of a cell that holds a hit. A fold that hides the hit opens.
    pub(crate) fn row_of_hit(&mut self, text: &str, hit: Hit) -> usize {
        let needle = Needle::new(text);
        self.transcript.unhide(hit.cell, self.look.details);
        let find = |rows: &[Row]| {
            let all = needle.in_rows(rows, 0..rows.len());
            let row = |stretches: &Stretches| stretches.first().map(|(row, _)| *row);
            (all.get(hit.nth).and_then(row), all.last().and_then(row))
        };
        if let (Some(row), _) = find(&self.rows_of(hit.cell)) {
            return row;
        }
        let fold = self.transcript.fold_of(hit.cell);
        if fold != Some(Fold::Full) {
            self.transcript.set_fold(hit.cell, Some(Fold::Full));
            if let Some(search) = &mut self.reading.search {
                search.opened = Some((hit.cell, fold));
            }
        }
        let (row, last) = find(&self.rows_of(hit.cell));
        row.or(last).unwrap_or(0)
    }

    /// The selected text as it stands in the source: without marks, and without the line ends of wrapping.
    pub(crate) fn selected_text(&mut self, selection: &Selection) -> String {
        let ((first, _), (last, _)) = selection.ends();
        let mut text = String::new();
        let mut joint = String::new();
        for cell in first.cell..=last.cell.min(self.transcript.len().saturating_sub(1)) {
            let rows = self.rows_of(cell);
            for (at, row) in rows.iter().enumerate() {
                let position = CellRow { cell, row: at };
                if position < first || position > last || row.end == End::Skip {
                    continue;
                }
                text.push_str(&joint);
                if let Some(columns) = selection.columns(position, row) {
                    // The bullet of a list, as Markdown writes it.
                    text.push_str(&row.between(columns.start, columns.end.min(row.gutter)).replace('•', "-"));
                    text.push_str(&row.between(columns.start.max(row.gutter), columns.end));
                }
                joint = match row.end {
                    End::Line | End::Skip => "\n".to_owned(),
                    End::Blanks(n) => " ".repeat(usize::from(n)),
                    End::Nothing => String::new(),
                };
            }
        }
        text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
    }
}
