//! Runs of calls that only read: the transcript shows each run as one line, until the user opens it.

use std::collections::{BTreeMap, BTreeSet};

use pixir_core::call_info::CallKind;

use super::rows::is_answer;
use super::{Cell, Tool, Transcript};
use crate::render::context::Fold;

/// The runs, by their first cell.
#[derive(Debug, Default)]
pub(super) struct Runs(BTreeMap<usize, Run>);

/// Calls in a row that have only read, all of them without an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Run {
    /// The cell after the last call.
    end: usize,
    calls: usize,
}

/// What the calls of a run have looked at.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Looked {
    files: BTreeSet<Box<str>>,
    folders: BTreeSet<Box<str>>,
    searches: usize,
    commands: usize,
}

impl Looked {
    fn add(&mut self, tool: &Tool) {
        let about = tool.call().about();
        let paths = about.paths.iter().map(|path| path.as_str().into());
        match (about.kind, about.verb.as_str()) {
            (CallKind::Execute, _) => self.commands += 1,
            (CallKind::Search, "list") => self.folders.extend(paths),
            (CallKind::Search, _) => self.searches += 1,
            (
                CallKind::Read | CallKind::Edit | CallKind::Plan | CallKind::Ask | CallKind::Agent | CallKind::Other,
                _,
            ) => self.files.extend(paths),
        }
    }

    /// `Looked at 4 files, ran 1 search`
    pub(crate) fn sentence(&self) -> String {
        let parts: Vec<String> = [
            (self.files.len(), "looked at", "file"),
            (self.folders.len(), "listed", "folder"),
            (self.searches, "ran", "search"),
            (self.commands, "ran", "command"),
        ]
        .into_iter()
        .filter(|(n, ..)| *n > 0)
        .map(|(n, verb, noun)| match (n, noun) {
            (1, noun) => format!("{verb} 1 {noun}"),
            (n, "search") => format!("{verb} {n} searches"),
            (n, noun) => format!("{verb} {n} {noun}s"),
        })
        .collect();
        let text = parts.join(", ");
        let first = text.chars().next().map_or(0, char::len_utf8);
        format!("{}{}", text[..first].to_uppercase(), &text[first..])
    }

    /// The names of the files, without their folders.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.files.iter().map(|path| path.rsplit('/').next().unwrap_or(path))
    }
}

/// What a run has looked at, and whether its calls are shown one by one.
#[derive(Debug)]
pub(crate) struct ShownRun {
    pub(crate) looked: Looked,
    pub(crate) is_open: bool,
}

impl Transcript {
    /// The call has ended: if it only read, it joins the runs before and after it.
    pub(super) fn join_run(&mut self, at: usize) {
        let Some(Cell::Tool(tool)) = self.cells.get(at) else { return };
        if !is_quiet(tool) {
            return;
        }
        let mut run = Run { end: at + 1, calls: 1 };
        // Calls that run at the same time end in any order.
        if let Some(next) = self.runs.0.remove(&self.after_gone(at + 1)) {
            run = Run { end: next.end, calls: 1 + next.calls };
        }
        let before = self.before_gone(at);
        let joined = before.and_then(|before| self.runs.0.range_mut(..=before).next_back());
        let begin = match joined {
            Some((begin, it)) if Some(it.end - 1) == before => {
                *it = Run { end: run.end, calls: it.calls + run.calls };
                *begin
            }
            _ => {
                self.runs.0.insert(at, run);
                at
            }
        };
        self.changed(begin);
        self.changed(at);
    }

    /// The first cell from here that is not withdrawn.
    fn after_gone(&self, from: usize) -> usize {
        (from..self.cells.len()).find(|at| !matches!(self.cells[*at], Cell::Gone)).unwrap_or(self.cells.len())
    }

    /// The last cell before this one that is not withdrawn.
    fn before_gone(&self, before: usize) -> Option<usize> {
        (0..before).rev().find(|at| !matches!(self.cells[*at], Cell::Gone))
    }

    /// The run that this cell belongs to, with its first cell. One call alone is no run.
    fn run_of(&self, at: usize) -> Option<(usize, Run)> {
        let (begin, run) = self.runs.0.range(..=at).next_back()?;
        (at < run.end && run.calls > 1).then_some((*begin, *run))
    }

    fn is_open(&self, begin: usize, details: Fold) -> bool {
        self.fold_of(begin).unwrap_or(details_of_run(details)) != Fold::Line
    }

    /// The run that begins with this cell.
    pub(super) fn run_at(&self, at: usize, details: Fold) -> Option<ShownRun> {
        let (_, run) = self.run_of(at).filter(|(begin, _)| *begin == at)?;
        let mut looked = Looked::default();
        for cell in &self.cells[at..run.end] {
            if let Cell::Tool(tool) = cell {
                looked.add(tool);
            }
        }
        Some(ShownRun { looked, is_open: self.is_open(at, details) })
    }

    /// The call is one of a closed run, whose first cell stands for it.
    pub(super) fn is_folded_away(&self, at: usize, details: Fold) -> bool {
        self.run_of(at).is_some_and(|(begin, _)| begin != at && !self.is_open(begin, details))
    }

    /// The fold of a cell that has none of its own.
    pub(crate) fn usual_fold(&self, at: usize, details: Fold) -> Fold {
        match self.run_of(at) {
            Some((begin, _)) if begin == at => details_of_run(details),
            _ => details,
        }
    }

    /// Opens the run that hides this cell.
    pub(crate) fn unhide(&mut self, at: usize, details: Fold) {
        if self.is_folded_away(at, details)
            && let Some(begin) = self.run_of(at).map(|(begin, _)| begin)
        {
            self.set_fold(begin, Some(Fold::Some));
        }
    }

    /// The last run of the transcript, to which the next call may be added.
    pub(super) fn growing_run(&self) -> Option<usize> {
        let (begin, run) = self.runs.0.last_key_value()?;
        (self.after_gone(run.end) == self.cells.len()).then_some(*begin)
    }
}

/// Runs are closed unless all cards are shown in full.
fn details_of_run(details: Fold) -> Fold {
    match details {
        Fold::Line | Fold::Some => Fold::Line,
        Fold::Full => Fold::Full,
    }
}

/// The call has only read, and has succeeded unasked: nothing of it needs the user's attention.
fn is_quiet(tool: &Tool) -> bool {
    let about = tool.call().about();
    let reads = match about.kind {
        CallKind::Read => !about.paths.is_empty(),
        CallKind::Search => true,
        CallKind::Execute => about.reads_only,
        CallKind::Edit | CallKind::Plan | CallKind::Ask | CallKind::Agent | CallKind::Other => false,
    };
    let succeeded = tool.result().is_some_and(|it| {
        let is_success = it.ok && it.exit_code.is_none_or(|code| code == 0) || is_answer(&about, it);
        is_success && it.error.is_none() && it.changes.is_empty()
    });
    reads && succeeded && !tool.refused && tool.answer.is_none() && !tool.is_by_user()
}
