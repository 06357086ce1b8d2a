//! The tree in a side panel: the same rows, and no cursor.

use std::collections::HashSet;

use pixir_core::tree::Tree;
use ratatui::text::Line;

use super::list::{self, About, Figures};
use super::plot::{Choice, Plot};
use crate::theme::Theme;

/// A laid out tree that is only looked at.
#[derive(Debug)]
pub(crate) struct SmallTree {
    tree: Tree,
    plot: Plot,
    figures: Figures,
}

impl SmallTree {
    pub(crate) fn new(tree: Tree) -> SmallTree {
        let choice = Choice { shows: &|node| !node.in_trash, folds: true, unfolded: &HashSet::new(), kept: &|_| false };
        let plot = Plot::new(&tree, &choice);
        SmallTree { figures: Figures::of(&tree), plot, tree }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.plot.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.plot.len()
    }

    /// The row of the head.
    pub(crate) fn head_row(&self) -> usize {
        self.plot.chosen
    }

    pub(crate) fn line(&self, row: usize, now: i64, columns: usize, theme: &Theme) -> Line<'static> {
        let Some(place) = self.plot.row(row) else { return Line::default() };
        let (_, node, sums) = self.plot.sums(row, &self.tree);
        let figures = self.figures;
        let about = About { node, sums, figures, now, marked: false, forks: 0, found: false, runs: false };
        list::line(place, &about, columns, theme)
    }
}
