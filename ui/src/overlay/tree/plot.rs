//! The laid out tree, the cursor in it, and the part of it that is on the screen.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use pixir_core::tree::{Node, Tree};

use super::list::Sums;
use crate::render::lanes::{Lanes, Row, Stem, What};

/// So many Turns before the head are never folded.
const NEAR: usize = 6;
/// So many rows stay visible above and below the cursor.
const MARGIN: usize = 2;

/// The laid out tree, with the row that the cursor is on.
#[derive(Debug, Default)]
pub(super) struct Plot {
    lanes: Lanes,
    /// For each node of the layout, its number in the tree.
    nodes: Vec<usize>,
    /// For each node of the tree, its number in the layout, if it is shown.
    stem_of: Vec<Option<usize>>,
    /// The nodes in the rows before each row.
    before: Vec<u32>,
    /// The sums of folded chains, by their rows: a chain can have most of the Turns, and a frame must not read them.
    chains: HashMap<usize, Sums>,
    pub(super) chosen: usize,
    top: usize,
    height: usize,
}

/// What the layout depends on besides the tree.
pub(super) struct Choice<'a> {
    pub(super) shows: &'a dyn Fn(&Node) -> bool,
    /// Chains of Turns that say little are folded.
    pub(super) folds: bool,
    /// The first Entry of each chain that the user has unfolded.
    pub(super) unfolded: &'a HashSet<u64>,
    /// Turns that are never folded besides those that have something special.
    pub(super) kept: &'a dyn Fn(usize) -> bool,
}

impl Plot {
    pub(super) fn new(tree: &Tree, choice: &Choice<'_>) -> Plot {
        let head = tree.nodes.iter().position(|node| node.is_head);
        let near: HashSet<usize> = std::iter::successors(head, |at| tree.parents[*at]).take(NEAR).collect();
        let mut stems: Vec<Stem> = Vec::with_capacity(tree.nodes.len());
        let mut nodes = Vec::with_capacity(tree.nodes.len());
        let mut stem_of: Vec<Option<usize>> = vec![None; tree.nodes.len()];
        // For each node, the nearest one above it that is shown.
        let mut nearest: Vec<Option<usize>> = Vec::with_capacity(tree.nodes.len());
        for (at, node) in tree.nodes.iter().enumerate() {
            let parent = tree.parents[at].and_then(|parent| nearest[parent]);
            if !(choice.shows)(node) {
                nearest.push(parent);
                continue;
            }
            let folds = choice.folds && !is_special(node) && !near.contains(&at) && !(choice.kept)(at);
            stem_of[at] = Some(stems.len());
            nearest.push(Some(stems.len()));
            nodes.push(at);
            stems.push(Stem { parent, on_path: node.on_path, folds });
        }
        let lanes = Lanes::of(&stems, |stem| choice.unfolded.contains(&tree.nodes[nodes[stem]].seq));
        let mut before = Vec::with_capacity(lanes.rows.len());
        let mut count = 0;
        for row in &lanes.rows {
            before.push(count);
            count += match row.what {
                What::Node(_) | What::Branch { .. } => 1,
                What::Chain { count, .. } => u32::try_from(count).unwrap_or(u32::MAX),
                What::Fork { .. } => 0,
            };
        }
        let mut plot = Plot { lanes, nodes, stem_of, before, ..Plot::default() };
        for (at, row) in plot.lanes.rows.iter().enumerate() {
            if let What::Chain { first, count } = row.what {
                let nodes = plot.lanes.chain(first, count).map(|stem| &tree.nodes[plot.nodes[stem]]);
                plot.chains.insert(at, Sums::of(nodes));
            }
        }
        plot.choose(head);
        plot
    }

    /// Puts the cursor on a node, or on the row that it is folded into. False if it is not shown.
    pub(super) fn choose(&mut self, node: Option<usize>) -> bool {
        let row = node.and_then(|node| self.row_of(node));
        if let Some(row) = row {
            self.chosen = row;
        } else {
            self.chosen = self.chosen.min(self.lanes.rows.len().saturating_sub(1));
            self.step(0);
        }
        row.is_some()
    }

    /// The row that shows a node.
    pub(super) fn row_of(&self, node: usize) -> Option<usize> {
        self.lanes.row_of(self.stem_of.get(node).copied().flatten()?)
    }

    /// The first node of a row, and the sums of all.
    pub(super) fn sums<'a>(&self, row: usize, tree: &'a Tree) -> (Option<usize>, Option<&'a Node>, Sums) {
        let at = self.lanes.rows.get(row).and_then(Row::node).map(|stem| self.nodes[stem]);
        let node = at.and_then(|at| tree.nodes.get(at));
        (at, node, self.chains.get(&row).copied().unwrap_or_else(|| Sums::of(node.into_iter())))
    }

    /// The nodes of a row: none for a fork, several for a folded chain.
    pub(super) fn nodes(&self, row: usize) -> Vec<usize> {
        match self.lanes.rows.get(row).map(|row| row.what) {
            Some(What::Node(stem) | What::Branch { node: stem, .. }) => vec![self.nodes[stem]],
            Some(What::Chain { first, count }) => self.lanes.chain(first, count).map(|stem| self.nodes[stem]).collect(),
            Some(What::Fork { .. }) | None => Vec::new(),
        }
    }

    /// The node that the cursor is on; the first of a folded chain.
    pub(super) fn node(&self) -> Option<usize> {
        self.lanes.rows.get(self.chosen)?.node().map(|stem| self.nodes[stem])
    }

    /// The cursor is on a folded chain.
    pub(super) fn is_on_chain(&self) -> bool {
        self.lanes.rows.get(self.chosen).is_some_and(|row| matches!(row.what, What::Chain { .. }))
    }

    pub(super) fn row(&self, at: usize) -> Option<&Row> {
        self.lanes.rows.get(at)
    }

    /// The number of rows.
    pub(super) fn len(&self) -> usize {
        self.lanes.rows.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The number of the chosen Turn among those that are shown, from 1, and how many are shown.
    pub(super) fn position(&self) -> (usize, usize) {
        (self.before.get(self.chosen).map_or(0, |n| *n as usize + 1), self.nodes.len())
    }

    /// Moves the cursor by rows. Rows that only show a fork are passed over.
    pub(super) fn step(&mut self, by: isize) {
        let last = self.lanes.rows.len().saturating_sub(1);
        let mut at = self.chosen.saturating_add_signed(by).min(last);
        let is_fork = |at: usize| self.lanes.rows.get(at).is_some_and(|row| row.node().is_none());
        if is_fork(at) {
            // A fork has a node below it, and all but the first one have a node above.
            at = if by < 0 && at > 0 && !is_fork(at - 1) { at - 1 } else { (at + 1).min(last) };
        }
        self.chosen = at;
    }

    /// Moves the cursor by pages.
    pub(super) fn page(&mut self, by: isize) {
        let rows = isize::try_from(self.height.saturating_sub(1).max(1)).unwrap_or(1);
        self.step(rows * by);
    }

    pub(super) fn go_to_start(&mut self) {
        self.chosen = 0;
        self.step(0);
    }

    pub(super) fn go_to_end(&mut self) {
        self.chosen = self.lanes.rows.len().saturating_sub(1);
        self.step(0);
    }

    /// Moves the cursor to the next branch of the fork that it stands under, or the one before.
    pub(super) fn sibling(&mut self, by: isize, tree: &Tree) -> bool {
        let Some(mut node) = self.node() else { return false };
        // From inside a branch, this goes to its beginning first, in the sense that its siblings are those of the branch.
        loop {
            let parent = tree.parents[node];
            let siblings: Vec<usize> = match parent {
                Some(parent) => {
                    let stem = self.stem_of[parent];
                    let children = stem.map_or(&[][..], |stem| self.lanes.children(stem));
                    children.iter().map(|stem| self.nodes[*stem as usize]).collect()
                }
                None => self.nodes.iter().copied().filter(|at| tree.parents[*at].is_none()).collect(),
            };
            if siblings.len() > 1 {
                let Some(at) = siblings.iter().position(|it| *it == node) else { return false };
                let len = isize::try_from(siblings.len()).unwrap_or(1);
                let next = (isize::try_from(at).unwrap_or(0) + by).rem_euclid(len);
                return self.choose(siblings.get(usize::try_from(next).unwrap_or(0)).copied());
            }
            match parent {
                Some(parent) => node = parent,
                None => return false,
            }
        }
    }

    /// The rows on a screen of `height` rows, with the cursor among them.
    pub(super) fn visible(&mut self, height: usize) -> Range<usize> {
        let rows = self.lanes.rows.len();
        // At first the cursor, which is on the head, stands in the lower part: what led there is above.
        if self.height == 0 {
            self.top = self.chosen.saturating_sub(height * 2 / 3);
        }
        self.height = height;
        let margin = MARGIN.min(height.saturating_sub(1) / 2);
        let lowest = (self.chosen + margin + 1).saturating_sub(height);
        self.top = self.top.clamp(lowest, self.chosen.saturating_sub(margin).max(lowest));
        self.top = self.top.min(rows.saturating_sub(height));
        self.top..(self.top + height).min(rows)
    }

    /// Keeps the part on the screen when the tree is laid out again.
    pub(super) fn stand_like(&mut self, old: &Plot) {
        (self.top, self.height) = (old.top, old.height);
    }

    /// Puts the cursor on the row that is drawn so many rows below the first. False if there is none.
    pub(super) fn click(&mut self, below: usize) -> bool {
        let row = self.top + below;
        let is_node = below < self.height && self.lanes.rows.get(row).is_some_and(|row| row.node().is_some());
        if is_node {
            self.chosen = row;
        }
        is_node
    }
}

/// A Turn that a folded chain must not hide.
fn is_special(node: &Node) -> bool {
    let marked = node.label.is_some() || node.pinned || node.compacted;
    marked || node.has_failed() || node.was_interrupted() || node.in_trash
}
