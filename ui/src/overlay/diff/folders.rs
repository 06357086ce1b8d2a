//! The changed files as a tree: folders with their sums, which fold, and chains of single folders in one row.

use std::collections::HashSet;
use std::ops::Range;

use pixir_core::diff::{ChangedFile, Changes};
use ratatui::text::{Line, Span};

use super::files::listed_line;
use crate::render::text::{fit_path, visible, width};
use crate::theme::Theme;

/// Lines added and removed; false if some are not counted yet.
type Sums = (u64, u64, bool);

/// A row of the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Row {
    Folder {
        /// From the workspace, with a `/` at its end.
        path: String,
        /// Where the shown part of the path begins.
        shown: usize,
        depth: usize,
        files: Range<usize>,
        sums: Sums,
    },
    File {
        at: usize,
        shown: usize,
        depth: usize,
    },
}

impl Row {
    fn first(&self) -> usize {
        match self {
            Row::Folder { files, .. } => files.start,
            Row::File { at, .. } => *at,
        }
    }
}

/// The rows, and the one that the keys are on while the list has them.
#[derive(Debug, Default)]
pub(super) struct Folders {
    rows: Vec<Row>,
    folded: HashSet<String>,
    pub(super) cursor: usize,
    pub(super) totals: Sums,
}

impl Folders {
    /// Builds the rows anew: other files, other counts, another folder folded.
    pub(super) fn read(&mut self, changes: &Changes) {
        self.rows.clear();
        self.totals = changes.totals();
        self.add(&changes.files, 0..changes.files.len(), 0, 0);
        self.cursor = self.cursor.min(self.rows.len().saturating_sub(1));
    }

    fn add(&mut self, files: &[ChangedFile], range: Range<usize>, shown: usize, depth: usize) {
        let mut at = range.start;
        while at < range.end {
            let path = &files[at].path;
            // The paths are sorted, so the files of a folder stand together, and its first and last tell about all.
            let group =
                |end: usize| at..at + files[at..range.end].partition_point(|it| it.path.starts_with(&path[..end]));
            let next = |from: usize| path[from..].find('/').map(|slash| from + slash + 1);
            let Some(mut end) = next(shown).filter(|end| group(*end).len() > 1) else {
                // A folder with one file is a part of its name.
                self.rows.push(Row::File { at, shown, depth });
                at += 1;
                continue;
            };
            let inside = group(end);
            while let Some(deeper) = next(end).filter(|deeper| group(*deeper) == inside) {
                end = deeper;
            }
            let folder = path[..end].to_owned();
            let is_folded = self.folded.contains(&folder);
            let sums = sums(&files[inside.clone()]);
            self.rows.push(Row::Folder { path: folder, shown, depth, files: inside.clone(), sums });
            if !is_folded {
                self.add(files, inside.clone(), end, depth + 1);
            }
            at = inside.end;
        }
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// The row of a file, or of the folded folder that it is in.
    pub(super) fn row_of(&self, file: usize) -> usize {
        self.rows.partition_point(|row| row.first() <= file).saturating_sub(1)
    }

    /// The file in a row; `None` for a folder.
    pub(super) fn file(&self, row: usize) -> Option<usize> {
        match self.rows.get(row)? {
            Row::File { at, .. } => Some(*at),
            Row::Folder { .. } => None,
        }
    }

    /// Folds the folder in the row of the cursor, or unfolds it. False if there is none.
    pub(super) fn turn(&mut self, row: usize, changes: &Changes) -> bool {
        let Some(Row::Folder { path, .. }) = self.rows.get(row) else { return false };
        let path = path.clone();
        if !self.folded.remove(&path) {
            self.folded.insert(path);
        }
        self.cursor = row;
        self.read(changes);
        true
    }

    /// Folds the folder that the cursor is in, or unfolds the one that it is on.
    pub(super) fn fold(&mut self, fold: bool, changes: &Changes) {
        let is_folded = |row: &Row| matches!(row, Row::Folder { path, .. } if self.folded.contains(path));
        let Some(row) = self.rows.get(self.cursor) else { return };
        match (row, fold) {
            (Row::Folder { .. }, _) if is_folded(row) != fold => drop(self.turn(self.cursor, changes)),
            (_, false) => {}
            (Row::Folder { depth, .. } | Row::File { depth, .. }, true) => {
                let is_above = |row: &Row| matches!(row, Row::Folder { depth: above, .. } if above < depth);
                if let Some(above) = self.rows[..self.cursor].iter().rposition(is_above) {
                    self.turn(above, changes);
                }
            }
        }
    }

    pub(super) fn line(&self, row: usize, files: &[ChangedFile], columns: usize, theme: &Theme) -> Line<'static> {
        match self.rows.get(row) {
            Some(Row::File { at, shown, depth }) => match files.get(*at) {
                Some(file) => listed_line(file, *shown, *depth, columns, theme),
                None => Line::default(),
            },
            Some(Row::Folder { path, shown, depth, sums, .. }) => {
                let arrow = if self.folded.contains(path) { "▸ " } else { "▾ " };
                let (added, removed, is_whole) = *sums;
                let mark = if is_whole { "" } else { "≥" };
                let plus = if added > 0 { format!(" {mark}+{added}") } else { String::new() };
                let minus = if removed > 0 { format!(" −{removed}") } else { String::new() };
                let indent = " ".repeat(2 * depth);
                let room = columns.saturating_sub(2 * depth + 2 + width(&plus) + width(&minus));
                let name = fit_path(&visible(&path[*shown..]), room);
                let pad = room.saturating_sub(width(&name));
                // The sums stay in the background: those of the files are what is read.
                Line::from(vec![
                    Span::styled(format!("{indent}{arrow}"), theme.dim()),
                    Span::styled(name, theme.fg(theme.link)),
                    Span::styled(format!("{}{plus}{minus}", " ".repeat(pad)), theme.dim()),
                ])
            }
            None => Line::default(),
        }
    }
}

fn sums(files: &[ChangedFile]) -> Sums {
    files.iter().fold((0, 0, true), |(added, removed, is_whole), file| match (file.counts, file.binary) {
        (Some((a, r)), _) => (added + a, removed + r, is_whole),
        (None, Some(_)) => (added, removed, is_whole),
        (None, None) => (added, removed, false),
    })
}
