//! The side panel: which tab it shows, how wide it is, and the figures that its tabs are made from.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use pixir_core::diff::{ChangedFile, Tally};
use pixir_core::history::History;
use pixir_core::tree::Tree;
use pixir_core::{Entry, Fact, tree};

use crate::overlay::tree::SmallTree;

/// The narrowest screen that has room for the panel, in columns.
pub(crate) const WIDE: u16 = 120;
/// Columns of the transcript with its margins, and of a panel that the user has not resized.
const TEXT: u16 = 106;
const USUAL: u16 = 36;
const WIDEST: u16 = 60;
/// How wide the panel can be, in columns.
const WIDTHS: std::ops::RangeInclusive<u16> = 24..=80;

/// A tab of the panel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Tab {
    #[default]
    Plan,
    Changes,
    Tree,
    Agents,
    Context,
}

pub(crate) const TABS: [(Tab, &str); 5] = [
    (Tab::Plan, "Plan"),
    (Tab::Changes, "Changes"),
    (Tab::Tree, "Tree"),
    (Tab::Agents, "Agents"),
    (Tab::Context, "Context"),
];

/// Whether the Session has a plan or a changed file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content {
    None,
    Some,
}

/// Whether the panel is shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Shown {
    /// While the Session has a plan or has changed a file.
    #[default]
    Auto,
    Always,
    Never,
}

/// The side panel.
#[derive(Debug)]
pub(crate) struct SidePanel {
    shown: Shown,
    /// The tab that the user chose. Until then it is the first one with content.
    tab: Option<Tab>,
    /// Columns, once the user has chosen them.
    width: Option<u16>,
    /// The first line on the screen, once the user has scrolled.
    top: Option<usize>,
    /// The first line and the number of lines of the last frame.
    drawn: usize,
    height: usize,
    /// The chosen file of the tab Changes.
    chosen: usize,
    pub(crate) digest: Digest,
}

impl Default for SidePanel {
    fn default() -> SidePanel {
        SidePanel {
            shown: Shown::Auto,
            tab: None,
            width: None,
            top: None,
            drawn: 0,
            height: 0,
            chosen: 0,
            digest: Digest::default(),
        }
    }
}

/// The conversation in figures. It grows with the History, so that a frame costs no more for a long one.
#[derive(Debug, Default)]
pub(crate) struct Digest {
    /// Entries and head moves that the figures cover. After another move of the head they are computed anew.
    covered: usize,
    jumps: usize,
    /// Calls of `!!` commands, whose results are not sent to the model.
    unsent: HashSet<String>,
    /// Bytes of the model's context, by source.
    pub(crate) context: [usize; 5],
    tally: Tally,
    /// The changed files in the order of the diff, computed when the tab is shown. None after another change.
    files: Option<Vec<ChangedFile>>,
    /// The Turns, computed when the tab is first shown. None after another Turn has begun.
    tree: Option<SmallTree>,
}

pub(crate) const SOURCES: [&str; 5] = ["prompts", "answers", "thinking", "calls", "results"];

impl Digest {
    /// Takes in the entries that are new since the last frame.
    pub(crate) fn read(&mut self, history: &History) {
        if self.jumps != history.jumps().len() || self.covered > history.entries().len() {
            *self = Digest { jumps: history.jumps().len(), ..Digest::default() };
            history.told().for_each(|entry| self.add(&entry.fact));
        } else {
            history.entries()[self.covered..].iter().for_each(|entry| self.add(&entry.fact));
        }
        let new = self.covered..history.entries().len();
        self.covered = new.end;
        // A compaction drops everything before it but the entries that it keeps.
        let is_compaction = |entry: &Arc<Entry>| matches!(entry.fact, Fact::HistoryCompaction(_));
        if !history.entries()[new].iter().any(is_compaction) {
            return;
        }
        let last = history.path().rev().find_map(|entry| match &entry.fact {
            Fact::HistoryCompaction(it) => Some((entry, it.kept_from_seq)),
            _ => None,
        });
        if let Some((summary, from)) = last {
            self.context = [0; 5];
            // Only the end of the path is read, however long the Session is.
            let kept = history.path().rev().take_while(|entry| entry.seq >= from);
            for entry in std::iter::once(summary).chain(kept.filter(|entry| !is_compaction(entry))) {
                let (at, length) = self.weigh(&entry.fact);
                self.context[at] += length;
            }
        }
    }

    pub(crate) fn read_tree(&mut self, history: &History) {
        if self.tree.as_ref().is_none_or(SmallTree::is_empty) {
            self.tree = Some(SmallTree::new(Tree::of(history)));
        }
    }

    /// The tree, once it was read.
    pub(crate) fn tree(&self) -> Option<&SmallTree> {
        self.tree.as_ref()
    }

    pub(crate) fn read_files(&mut self) {
        if self.files.is_none() {
            self.files = Some(self.tally.files());
        }
    }

    pub(crate) fn files(&self) -> &[ChangedFile] {
        self.files.as_deref().unwrap_or_default()
    }

    /// The source of an entry, as an index of `SOURCES`, and the bytes of it that the model reads.
    fn weigh(&self, fact: &Fact) -> (usize, usize) {
        match fact {
            Fact::UserMessage(it) => (0, it.text.len()),
            Fact::UserCommand(it) if it.send_to_model => (0, it.command.len()),
            Fact::AssistantMessage(it) => (1, it.text.len()),
            Fact::Reasoning(it) => (2, it.text.len()),
            Fact::ToolCall(it) => (3, it.args.text().len()),
            Fact::ToolResult(it) if self.unsent.contains(&it.call_id) => (4, 0),
            Fact::ToolResult(it) => (4, it.output.len()),
            Fact::HistoryCompaction(it) => (1, it.summary.len()),
            _ => (0, 0),
        }
    }

    fn add(&mut self, fact: &Fact) {
        if tree::begins_node(fact) || matches!(fact, Fact::Label(_) | Fact::BranchRemoved(_) | Fact::TurnEnded(_)) {
            self.tree = None;
        }
        if let Fact::UserCommand(it) = fact
            && !it.send_to_model
        {
            self.unsent.insert(it.call_id.clone());
        }
        let (at, length) = self.weigh(fact);
        self.context[at] += length;
        if !fact.all_changes().is_empty() {
            self.tally.take(fact);
            self.files = None;
        }
    }
}

impl SidePanel {
    /// Shows the panel from now on.
    pub(crate) fn show(&mut self) {
        self.shown = Shown::Always;
    }

    /// Hides the panel from now on.
    pub(crate) fn hide(&mut self) {
        self.shown = Shown::Never;
    }

    /// Scrolls by lines; the end is found when the panel is drawn.
    pub(crate) fn scroll(&mut self, by: isize) {
        self.top = Some(self.drawn.saturating_add_signed(by));
    }

    /// Moves the choice of a file, or scrolls a tab without one.
    pub(crate) fn step(&mut self, by: isize, history: &History) {
        if self.tab(history) == Tab::Changes {
            let last = self.digest.files().len().saturating_sub(1);
            self.chosen = self.chosen.saturating_add_signed(by).min(last);
            self.top = Some(self.drawn.min(self.chosen).max((self.chosen + 1).saturating_sub(self.height)));
        } else {
            self.scroll(by);
        }
    }

    /// The path of the chosen file.
    pub(crate) fn path(&self, history: &History) -> Option<String> {
        let files = if self.tab(history) == Tab::Changes { self.digest.files() } else { &[] };
        files.get(self.chosen).map(|file| file.path.clone())
    }

    /// Chooses the file in this row of the panel.
    pub(crate) fn choose_row(&mut self, row: usize, history: &History) -> Option<String> {
        let at = self.drawn + row;
        (at < self.digest.files().len()).then(|| self.chosen = at)?;
        self.path(history)
    }

    pub(crate) fn chosen(&self) -> usize {
        self.chosen
    }

    /// Forgets the conversation, to show another.
    pub(crate) fn reset(&mut self) {
        self.digest = Digest::default();
    }

    /// The tab on the screen.
    pub(crate) fn tab(&self, history: &History) -> Tab {
        let usual = if history.plan.is_empty() && !self.digest.tally.is_empty() { Tab::Changes } else { Tab::Plan };
        self.tab.unwrap_or(usual)
    }

    /// Goes to another tab, around at the ends.
    pub(crate) fn turn(&mut self, by: isize, history: &History) {
        let now = self.tab(history);
        let at = TABS.iter().position(|(tab, _)| *tab == now).unwrap_or(0);
        self.tab = Some(TABS[(at + TABS.len()).saturating_add_signed(by) % TABS.len()].0);
        (self.top, self.chosen) = (None, 0);
    }

    /// The lines on the screen, of `of` lines in a panel of `height`.
    pub(crate) fn rows(&mut self, of: usize, height: usize) -> Range<usize> {
        self.rows_around(0, of, height)
    }

    /// The same, with this line among them until the user scrolls.
    pub(crate) fn rows_around(&mut self, line: usize, of: usize, height: usize) -> Range<usize> {
        let top = self.top.unwrap_or(line.saturating_sub(height * 2 / 3)).min(of.saturating_sub(height));
        self.top = self.top.map(|_| top);
        (self.drawn, self.height) = (top, height);
        top..(top + height).min(of)
    }

    /// Makes the panel, which has `now` columns, wider or narrower.
    pub(crate) fn widen(&mut self, by: i16, now: u16) {
        let width = self.width.unwrap_or(now).saturating_add_signed(by);
        self.width = Some(width.clamp(*WIDTHS.start(), *WIDTHS.end()));
    }

    /// Columns that the panel takes from a screen of `screen` columns. Unless the user decided, it shows itself when it
    /// has content.
    pub(crate) fn columns(&self, screen: u16, content: Content) -> u16 {
        let is_shown = match self.shown {
            Shown::Auto => content == Content::Some,
            Shown::Always => true,
            Shown::Never => false,
        };
        // What running text leaves of a wide screen is the panel's.
        let width = self.width.unwrap_or_else(|| screen.saturating_sub(TEXT).clamp(USUAL, WIDEST));
        if is_shown && screen >= WIDE { width.min(screen / 2) } else { 0 }
    }
}
