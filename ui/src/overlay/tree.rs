//! Turns and branches: look at them, go back, edit a prompt, fork, compare, remove a branch.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use pixir_core::changes::FileDiff;
use pixir_core::history::{History, starts_turn};
use pixir_core::input::Summarize;
use pixir_core::store::Summary;
use pixir_core::tree::{Grown, Moves, Node, Tree, moves};
use pixir_core::{Entry, Fact};
use ratatui::layout::Rect;

use super::{Effect, Load, Notification, Page};
use crate::input::action::SessionKind;

mod comparison; // two Turns compared
mod find; // filters, and the text of all Turns
mod forest; // the Sessions of the workspace
mod frame; // the tree, drawn
mod keys; // what the keys do
mod list; // the rows of the tree
mod plot; // the laid out tree and the cursor
mod preview; // the preview of a Turn
mod small; // the tree in a side panel

use comparison::Compared;
use find::{Filter, Search};
use forest::Forest;
use list::Figures;
use plot::{Choice, Plot};
pub(crate) use small::SmallTree;

/// A move of the head, until the user has decided whether files go along.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PendingMove {
    pub(crate) to_seq: Option<u64>,
    pub(crate) summarize: Summarize,
    /// The prompt that returns to the composer after the move.
    pub(crate) edit: Option<String>,
}

/// What the tree does with the node under the cursor once the user has said so twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Question {
    Fork,
    Remove,
}

/// What fills the panel.
#[derive(Debug, Default)]
enum Face {
    #[default]
    Tree,
    Forest,
    Compared(Box<Compared>),
    /// The preview alone, on a screen that is too small for both.
    Preview,
}

/// The tree of a Session.
#[derive(Debug)]
pub(crate) struct TreeView {
    tree: Tree,
    plot: Plot,
    figures: Figures,
    moves: Moves,
    /// The Turns on the path to the head, the branches, and all Turns.
    counts: (usize, usize, usize),
    face: Face,
    forest: Forest,
    /// The titles of the Sessions that were forked from a node.
    forks: BTreeMap<usize, Vec<String>>,
    filter: Filter,
    search: Option<Search>,
    /// The first Entry of each chain that the user has unfolded.
    unfolded: HashSet<u64>,
    /// The first Entry of the node that the next comparison is with.
    marked: Option<u64>,
    summarize: Summarize,
    /// The label of the chosen node, while the user types it.
    naming: Option<String>,
    question: Option<Question>,
    /// Branches that were removed while the tree was open, the last one last.
    removed: Vec<u64>,
    /// A word about what a key has done, until the next one.
    note: Option<String>,
    preview: Page,
    /// What the preview was laid out for: the row of the tree.
    previewed: Option<usize>,
    /// The areas of the rows and of the preview, since the last frame.
    rows: Rect,
    preview_area: Rect,
    /// A Turn goes on at the head.
    is_running: bool,
    /// In a replay the tree only navigates.
    session: SessionKind,
    /// Seconds since 1970, when the tree was opened.
    now: i64,
}

impl TreeView {
    pub(crate) fn new(history: &History, session: SessionKind, is_running: bool, now: i64) -> TreeView {
        let mut view = TreeView {
            tree: Tree::default(),
            plot: Plot::default(),
            figures: Figures::default(),
            moves: Moves::default(),
            counts: (0, 0, 0),
            face: Face::Tree,
            forest: Forest::default(),
            forks: BTreeMap::new(),
            filter: Filter::All,
            search: None,
            unfolded: HashSet::new(),
            marked: None,
            summarize: Summarize::No,
            naming: None,
            question: None,
            removed: Vec::new(),
            note: None,
            preview: Page::default(),
            previewed: None,
            rows: Rect::default(),
            preview_area: Rect::default(),
            is_running,
            session,
            now,
        };
        view.read(history);
        view
    }

    /// Reads the Sessions of the workspace, and the agents below the Sessions that started them.
    fn read_forest(&self) -> Vec<Effect> {
        let load = Load::new(
            |from| from.session.as_ref().map(|own| (from.harness.sessions_and_agents(), own.to_string())),
            |view: &mut TreeView, loaded| {
                if let Some((all, own)) = loaded {
                    view.take_sessions(all, own);
                }
            },
        );
        if self.session == SessionKind::Live { vec![load.into()] } else { Vec::new() }
    }

    /// Takes the files of the two conversations that are compared.
    pub(crate) fn compared(&mut self, files: &[FileDiff]) {
        if let Face::Compared(compared) = &mut self.face {
            compared.set_files(files.to_vec());
        }
    }

    /// Reads the conversation. The cursor stays on its Turn, if that is still shown.
    fn read(&mut self, history: &History) {
        let chosen = self.plot.node().map(|node| self.tree.nodes[node].seq);
        self.tree = Tree::of(history);
        self.moves = moves(history.jumps());
        self.figures = Figures::of(&self.tree);
        self.count();
        self.lay_out(chosen);
    }

    /// Takes in an Entry of the Turn that goes on.
    fn grow(&mut self, history: &History, entry: &Arc<Entry>) {
        self.is_running = match entry.fact {
            Fact::TurnEnded(_) => false,
            ref fact => self.is_running || starts_turn(fact),
        };
        self.now = self.now.max(entry.ts.as_second());
        let chosen = self.chosen_seq();
        let was_on_head = self.chosen().is_some_and(|node| node.is_head);
        match self.tree.grow(history, entry) {
            Grown::Nothing => {}
            Grown::Node(at) => {
                self.figures.take(&self.tree.nodes[at]);
                if self.plot.node() == Some(at) {
                    self.preview.forget();
                }
            }
            Grown::New => {
                self.tree.nodes.last().into_iter().for_each(|node| self.figures.take(node));
                self.count();
                // The cursor follows the head that it is on: there Enter only closes the tree.
                let new = self.tree.nodes.last().filter(|_| was_on_head).map(|node| node.seq);
                self.lay_out(new.or(chosen));
            }
        }
    }

    /// Counts the Turns on the path, the branches and all Turns.
    fn count(&mut self) {
        let shown = || self.tree.nodes.iter().enumerate().filter(|(_, node)| !node.in_trash);
        let mut has_child = vec![false; self.tree.nodes.len()];
        for (at, _) in shown() {
            if let Some(parent) = self.tree.parents[at] {
                has_child[parent] = true;
            }
        }
        let turns = |node: &Node| node.turn.is_some();
        self.counts = (
            shown().filter(|(_, node)| node.on_path && turns(node)).count(),
            shown().filter(|(at, _)| !has_child[*at]).count(),
            shown().filter(|(_, node)| turns(node)).count(),
        );
    }

    /// Lays the tree out anew, with the cursor on the node of this Entry, or near to it.
    fn lay_out(&mut self, chosen: Option<u64>) {
        let node = chosen.and_then(|seq| self.tree.node_of(seq));
        let marked = self.marked.and_then(|seq| self.tree.node_of(seq));
        let filter = self.filter;
        let choice = Choice {
            shows: &|node| filter.shows(node),
            folds: filter == Filter::All,
            unfolded: &self.unfolded,
            kept: &|at| marked == Some(at) || self.forks.contains_key(&at),
        };
        let mut plot = Plot::new(&self.tree, &choice);
        plot.stand_like(&self.plot);
        // A Turn that is shown no longer gives the cursor to the one before it.
        let mut near = std::iter::successors(node, |at| self.tree.parents[*at]);
        if let Some(node) = near.find(|at| plot.row_of(*at).is_some()) {
            plot.choose(Some(node));
        }
        self.plot = plot;
        if let Some(search) = &mut self.search {
            search.renew(&self.tree, |node| filter.shows(node));
        }
        self.find_rows();
        self.previewed = None;
    }

    /// Finds the rows of the matches, so that a frame does not have to.
    fn find_rows(&mut self) {
        if let Some(search) = &mut self.search {
            search.rows = search.hits.iter().filter_map(|node| self.plot.row_of(*node)).collect();
        }
    }

    fn chosen_seq(&self) -> Option<u64> {
        self.plot.node().map(|node| self.tree.nodes[node].seq)
    }

    fn chosen(&self) -> Option<&Node> {
        self.plot.node().map(|node| &self.tree.nodes[node])
    }

    fn learn(&mut self, notification: Notification<'_>) {
        match notification {
            Notification::Branches(history) => self.read(history),
            Notification::Recorded { history, entry } => self.grow(history, entry),
            Notification::Connecting(_)
            | Notification::Refused { .. }
            | Notification::Jobs { .. }
            | Notification::Servers(_)
            | Notification::Agents(_)
            | Notification::Files { .. }
            | Notification::Rules { .. }
            | Notification::SummaryDelta(_)
            | Notification::Context { .. }
            | Notification::CallEnded(_)
            | Notification::AnswerTaken { .. }
            | Notification::TurnEnded => {}
        }
    }

    /// Finds the Turns that other Sessions were forked from.
    fn take_sessions(&mut self, all: &[Summary], own: &str) {
        self.forest.set(all, own);
        self.forks.clear();
        for it in all.iter().filter(|it| it.forked_from.as_deref() == Some(own)) {
            if let Some(node) = it.forked_at.and_then(|seq| self.tree.node_of(seq)) {
                self.forks.entry(node).or_default().push(it.title().to_owned());
            }
        }
        if !self.forks.is_empty() {
            self.lay_out(self.chosen_seq());
        }
    }
}
