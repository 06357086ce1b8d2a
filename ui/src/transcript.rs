//! The transcript: Events as cells, and the draft of the answer that streams in.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;
use std::sync::Arc;

use pixir_core::call_info::CallKind;
use pixir_core::changes::FileDiff;
use pixir_core::event::{DecidedBy, PermissionDecision, Printed, Severity, Status, TurnStatus, Verdict};
use pixir_core::{Entry, Fact};

use crate::render::context::{Fold, LayoutKey};
use crate::render::split::{Part, Splitter};
use crate::render::text::Row;

pub(crate) mod agents; // the agents of the Session, and their calls
mod cached; // what the layout holds in memory
mod cell; // one entry, or a part of one
mod heights; // the height of each cell, exact or estimated
mod layout; // cells as rows, folded and cached
mod runs; // calls that only read, folded
mod workflow; // the card of a run of a workflow
mod places; // marks to jump to, and stable addresses of cells
pub(crate) mod reading; // search, selection, copy labels
pub(crate) mod replay; // a replay of a Session
pub(crate) mod rows; // a cell as rows of a given width
pub(crate) mod viewport; // the visible part

use agents::AgentCells;
pub(crate) use agents::Agents;
pub(crate) use cell::{Cell, Direction, MARKS, Mark, Thinking, Tool, WaitsFor};
pub(crate) use heights::Guess;
use heights::Heights;
use runs::Runs;

/// The most output of a running command that is kept for the screen, in bytes.
const MAX_LIVE: usize = 64 << 10;

/// Whether the finished parts of a streaming answer can be printed before the rest of it has arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answers {
    Whole,
    InParts,
}

/// The answer that streams in.
#[derive(Debug, Default)]
struct Draft {
    text: String,
    splitter: Splitter,
    /// The cells of its finished parts, and of its reasoning.
    parts: Vec<usize>,
    /// The cell of the part that still grows.
    tail: Option<usize>,
    thinking: Option<usize>,
    /// The rows of the growing part, for this length of the draft.
    rows: Option<(LayoutKey, usize, Rc<Vec<Row>>)>,
}

/// All cells, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Transcript {
    cells: Vec<Cell>,
    draft: Draft,
    /// The cells of calls without a result.
    open_calls: HashMap<String, usize>,
    /// The output so far of calls that run.
    live: HashMap<usize, Printed>,
    /// The diffs of calls, once they are loaded.
    diffs: HashMap<usize, Vec<FileDiff>>,
    /// Folds of single cells that differ from the rest.
    folds: BTreeMap<usize, Fold>,
    marks: [Vec<usize>; 4],
    /// The last answer of the running Turn, if it broke off and no other has followed yet.
    broken: Option<u64>,
    /// Answers that broke off, and for which the model was asked again.
    replaced: BTreeSet<u64>,
    runs: Runs,
    agents: AgentCells,
    /// The steps of the last plan, and the cells that repeat the steps of the plan before them.
    plan_steps: Vec<String>,
    progress: BTreeMap<usize, PlanAbove>,
    /// The last plan of the running Turn.
    plan_cell: Option<usize>,
    /// The card of the last run of a workflow.
    workflow_cell: Option<usize>,
    /// The lines that the running Turn has added and removed, and those of the Turns that end in these cells.
    changed_lines: (u64, u64),
    lines_of: HashMap<usize, (u64, u64)>,
    /// The notice about the attempts of the failed request.
    retry: Option<usize>,
    layouts: HashMap<usize, (LayoutKey, Rc<Vec<Row>>)>,
    /// The rows of a hidden cell.
    nothing: Rc<Vec<Row>>,
    heights: Heights,
    /// Cells that are laid out without all of their syntax colours.
    short_of_colours: BTreeSet<usize>,
    /// The first cell at which the growing part was split since the caller last took this value. A position in that
    /// cell may now belong to a later one.
    pub(crate) was_cut: Option<usize>,
    /// Visible cells whose diff is not loaded, with the number of their result.
    pub(crate) wanted_diffs: Vec<(usize, u64)>,
}

/// The plan with the same steps before another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PlanAbove {
    /// It is of an earlier Turn, and stays on the screen.
    Stands,
    /// The newer one has taken its place. Where rows are printed it stands all the same.
    Gone,
}

/// A refusal in the words of the user who refused, or who decided instead.
fn refusal(it: &PermissionDecision) -> String {
    match (it.by, it.feedback.as_deref().map(str::trim).filter(|it| !it.is_empty())) {
        (_, Some(words)) => format!("Refused: {words}"),
        (DecidedBy::User, None) => "Refused".to_owned(),
        (DecidedBy::Mode, None) => format!("Refused by the mode: {}", it.reason),
        (DecidedBy::Role, None) => format!("Refused by the role: {}", it.reason),
        (DecidedBy::Task, None) => format!("Refused by the task: {}", it.reason),
        (DecidedBy::Rule, None) => format!("Refused by a rule: {}", it.reason),
        (DecidedBy::NoAsker, None) => "Refused: no user was there to ask".to_owned(),
        (DecidedBy::Unknown, None) => format!("Refused: {}", it.reason),
    }
}

impl Transcript {
    pub(crate) fn len(&self) -> usize {
        self.cells.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// Nothing of the conversation is there yet; there may be notices.
    pub(crate) fn has_only_notices(&self) -> bool {
        self.cells.iter().all(|cell| matches!(cell, Cell::Notice(..) | Cell::Gone))
    }

    pub(crate) fn cell(&self, at: usize) -> Option<&Cell> {
        self.cells.get(at)
    }

    pub(crate) fn cells(&self) -> &[Cell] {
        &self.cells
    }

    // ─── Entries and live events ───

    /// Adds a recorded entry.
    pub(crate) fn record(&mut self, entry: &Arc<Entry>) {
        match &entry.fact {
            Fact::AssistantMessage(it) => {
                self.answer_follows();
                self.end_draft(entry, &it.text);
                self.broken = it.partial.then_some(entry.seq);
            }
            Fact::Reasoning(it) if !it.text.trim().is_empty() => self.think(entry),
            Fact::Reasoning(_) => {}
            Fact::ToolCall(it) => {
                self.answer_follows();
                self.settle_thinking();
                self.call(&it.call_id, entry);
            }
            Fact::UserCommand(it) => {
                self.mark(self.cells.len(), Mark::Prompt);
                self.call(&it.call_id, entry);
            }
            Fact::ToolResult(it) => {
                if let Some(at) = self.open_calls.remove(&it.call_id) {
                    self.live.remove(&at);
                    let mut has_failed = false;
                    if let Some(Cell::Tool(tool)) = self.cells.get_mut(at) {
                        tool.result = Some(Arc::clone(entry));
                        has_failed = rows::has_failed(&tool.call().about(), it);
                    }
                    for change in &it.changes {
                        self.changed_lines.0 += change.added;
                        self.changed_lines.1 += change.removed;
                    }
                    if !it.changes.is_empty() {
                        self.mark(at, Mark::Change);
                    }
                    if has_failed {
                        self.mark(at, Mark::Error);
                    }
                    self.changed(at);
                    self.join_run(at);
                }
            }
            Fact::PermissionDecision(it) => {
                if let Some(at) = self.open_calls.get(&it.call_id).copied()
                    && let Some(Cell::Tool(tool)) = self.cells.get_mut(at)
                {
                    if it.by == DecidedBy::User && it.verdict == Verdict::Allow {
                        tool.answer = Some(if it.rule.is_some() { "always allowed" } else { "allowed" });
                    }
                    tool.waits = None;
                    match it.verdict {
                        Verdict::Allow => tool.allowed = Some(entry.ts.as_millisecond()),
                        Verdict::Deny => {
                            tool.refused = true;
                            tool.refusal = Some(refusal(it).into());
                        }
                    }
                    self.changed(at);
                }
            }
            Fact::TurnEnded(it) => {
                self.workflow_ended(entry);
                self.drop_draft();
                // No other answer came, so the one that broke off is the answer of this Turn.
                if let Some(seq) = self.broken.take()
                    && self.replaced.remove(&seq)
                {
                    self.answer_changed(seq);
                }
                // No call runs after its Turn, even one without a result.
                self.open_calls.clear();
                self.live.clear();
                (self.retry, self.plan_cell) = (None, None);
                let lines = std::mem::take(&mut self.changed_lines);
                if lines != (0, 0) {
                    self.lines_of.insert(self.cells.len(), lines);
                }
                self.push(Cell::Recorded(Arc::clone(entry)));
                match it.status {
                    TurnStatus::Completed | TurnStatus::Interrupted => {}
                    TurnStatus::Incomplete | TurnStatus::PartialFailed | TurnStatus::Failed | TurnStatus::TimedOut => {
                        self.mark(self.cells.len() - 1, Mark::Error);
                    }
                }
            }
            Fact::UserMessage(it) => {
                self.mark(self.cells.len(), Mark::Prompt);
                self.push_parts(entry, &Splitter::parts(&it.text));
            }
            Fact::HistoryCompaction(_) => {
                self.mark(self.cells.len(), Mark::Compaction);
                self.push(Cell::Recorded(Arc::clone(entry)));
            }
            Fact::PlanUpdated(it) => {
                let steps: Vec<String> = it.items.iter().map(|item| item.step.clone()).collect();
                if !steps.is_empty() && steps == self.plan_steps {
                    // Within a Turn the plan is on the screen once, where it was last updated.
                    let is_above = match self.plan_cell {
                        Some(above) => {
                            self.replace(above, Cell::Gone);
                            PlanAbove::Gone
                        }
                        None => PlanAbove::Stands,
                    };
                    self.progress.insert(self.cells.len(), is_above);
                }
                self.plan_cell = Some(self.cells.len());
                self.plan_steps = steps;
                self.push(Cell::Recorded(Arc::clone(entry)));
            }
            Fact::AgentEvent(it) => self.agent_event(entry, it),
            Fact::WorkflowEvent(it) => self.workflow_event(entry, it),
            fact if fact.headline().is_some() => self.push(Cell::Recorded(Arc::clone(entry))),
            _ => {}
        }
    }

    /// The user is asked about this call; the calls of the same answer after it wait too.
    pub(crate) fn call_waits(&mut self, call_id: &str) {
        let Some(asked) = self.open_calls.get(call_id).copied() else { return };
        let later: Vec<usize> = self.open_calls.values().copied().filter(|at| *at >= asked).collect();
        for at in later {
            if let Some(Cell::Tool(tool)) = self.cells.get_mut(at)
                && tool.result.is_none()
            {
                tool.waits = Some(if at == asked { WaitsFor::User } else { WaitsFor::Call });
                self.changed(at);
            }
        }
    }

    /// The place of a call among those of its answer that the user decides about, and their number. Of calls that are still
    /// to come it counts all that can change something.
    pub(crate) fn place_in_answer(&self, call_id: &str) -> Option<(usize, usize)> {
        let at = self.open_calls.get(call_id).copied()?;
        let is_tool = |at: &usize| matches!(self.cells.get(*at), Some(Cell::Tool(_)));
        // A result shows in the cell of its call, so the calls of one answer stand together.
        let first = (0..at).rev().take_while(is_tool).last().unwrap_or(at);
        let asks = |at: &usize| match self.cells.get(*at) {
            Some(Cell::Tool(tool)) => match tool.result {
                Some(_) => tool.answer.is_some() || tool.refused,
                None => !matches!(
                    tool.call().about().kind,
                    CallKind::Read | CallKind::Search | CallKind::Plan | CallKind::Ask | CallKind::Agent
                ),
            },
            _ => false,
        };
        let before = (first..at).filter(asks).count();
        let after = (at + 1..self.cells.len()).take_while(is_tool).filter(asks).count();
        Some((before + 1, before + 1 + after))
    }

    fn call(&mut self, id: &str, entry: &Arc<Entry>) {
        self.open_calls.insert(id.to_owned(), self.cells.len());
        self.push(Cell::Tool(Box::new(Tool::new(entry))));
    }

    /// Adds a message in as many cells as it has parts.
    fn push_parts(&mut self, entry: &Arc<Entry>, parts: &[Part]) {
        if let [_] = parts {
            return self.push(Cell::Recorded(Arc::clone(entry)));
        }
        for part in parts {
            self.push(Cell::Part(Arc::clone(entry), Box::new(part.clone())));
        }
    }

    /// Adds recorded reasoning: in place of the streamed text, and joined to the reasoning directly before it.
    fn think(&mut self, entry: &Arc<Entry>) {
        let Some(at) = self.draft.thinking.or(self.cells.len().checked_sub(1)) else {
            return self.push(Cell::Recorded(Arc::clone(entry)));
        };
        let joined = match self.cells.get(at) {
            Some(Cell::Thinking(_)) if self.draft.thinking.is_some() => Cell::Recorded(Arc::clone(entry)),
            Some(Cell::Recorded(before)) if matches!(before.fact, Fact::Reasoning(_)) => {
                Cell::Thoughts(vec![Arc::clone(before), Arc::clone(entry)])
            }
            Some(Cell::Thoughts(all)) => Cell::Thoughts(all.iter().chain([entry]).map(Arc::clone).collect()),
            _ => return self.push(Cell::Recorded(Arc::clone(entry))),
        };
        self.replace(at, joined);
    }

    /// The streamed answer is recorded now. Its cells stay where they are, so that nothing moves for the reader.
    fn end_draft(&mut self, entry: &Arc<Entry>, text: &str) {
        self.settle_thinking();
        // The recorded text is authoritative: a draft that differs from it is replaced.
        if self.draft.text != text {
            self.drop_draft();
        }
        let draft = std::mem::take(&mut self.draft);
        // The growing part becomes the last part, in the same cell.
        let drafted: Vec<usize> = draft.parts.into_iter().chain(draft.tail).collect();
        if drafted.is_empty() {
            return self.push_parts(entry, &Splitter::parts(text));
        }
        let parts = Splitter::parts(text);
        let (known, new) = parts.split_at(drafted.len().min(parts.len()));
        for (at, part) in drafted.iter().zip(known) {
            if let Some(cell) = self.cells.get_mut(*at) {
                let is_tail = matches!(cell, Cell::Tail);
                *cell = match parts.as_slice() {
                    [_] => Cell::Recorded(Arc::clone(entry)),
                    _ => Cell::Part(Arc::clone(entry), Box::new(part.clone())),
                };
                // While it grew, its code had no colours.
                if is_tail {
                    self.changed(*at);
                }
            }
        }
        for at in drafted.iter().skip(parts.len()) {
            self.replace(*at, Cell::Gone);
        }
        for part in new {
            self.push(Cell::Part(Arc::clone(entry), Box::new(part.clone())));
        }
        // The last part shows a mark if the answer broke off, so it is laid out again.
        self.changed(self.cells.len() - 1);
    }

    /// The request for the answer that broke off is sent again.
    pub(crate) fn ask_again(&mut self) {
        if let Some(seq) = self.broken
            && self.replaced.insert(seq)
        {
            self.answer_changed(seq);
        }
    }

    /// Another answer replaces the one that broke off.
    fn answer_follows(&mut self) {
        self.ask_again();
        self.broken = None;
    }

    /// Lays out the cells of an answer again.
    fn answer_changed(&mut self, seq: u64) {
        let cells = self.cells.iter().enumerate().rev();
        let of_answer = cells.skip_while(|(_, cell)| cell.answer() != Some(seq));
        let places: Vec<usize> =
            of_answer.take_while(|(_, cell)| cell.answer() == Some(seq)).map(|(at, _)| at).collect();
        places.into_iter().for_each(|at| self.changed(at));
    }

    /// The cell shows an answer that broke off, and for which the model was asked again.
    pub(crate) fn is_replaced(&self, at: usize) -> bool {
        self.cells.get(at).and_then(Cell::answer).is_some_and(|seq| self.replaced.contains(&seq))
    }

    /// Drops the draft: the request has failed or the Turn was stopped, so no entry will repeat it.
    pub(crate) fn drop_draft(&mut self) {
        let draft = std::mem::take(&mut self.draft);
        // Recorded reasoning is not part of the draft any more.
        let thinking = draft.thinking.filter(|at| matches!(self.cells.get(*at), Some(Cell::Thinking(_))));
        let mut cells: Vec<usize> = draft.parts.into_iter().chain(draft.tail).chain(thinking).collect();
        cells.sort_unstable();
        // Cells at the end are removed. A cell with others after it stays as `Gone`, because indices are positions:
        // marks, folds and the viewport refer to cells by index.
        for at in cells.into_iter().rev() {
            if at + 1 == self.cells.len() {
                self.cells.pop();
                self.layouts.remove(&at);
                self.heights.truncate(at);
            } else {
                self.replace(at, Cell::Gone);
            }
        }
    }

    /// Keeps the reasoning of the draft as a cell, because no entry repeats it.
    fn settle_thinking(&mut self) {
        if let Some(at) = self.draft.thinking.take()
            && let Some(Cell::Thinking(it)) = self.cells.get_mut(at)
        {
            it.is_live = false;
            let is_empty = it.text.trim().is_empty();
            if is_empty {
                self.replace(at, Cell::Gone);
            }
            self.changed(at);
        }
    }

    /// Adds a cell; also for errors and notices, which are in no Log.
    pub(crate) fn push(&mut self, cell: Cell) {
        if matches!(cell, Cell::Error(_)) {
            self.mark(self.cells.len(), Mark::Error);
        }
        self.heights.push(rows::estimate(&cell));
        self.cells.push(cell);
    }

    /// Says when the failed request is sent again. The attempts of one request share a notice.
    pub(crate) fn say_retry(&mut self, text: String) {
        let notice = Cell::Notice(Severity::Warning, text.into());
        match self.retry.filter(|at| self.cells.iter().skip(at + 1).all(|cell| matches!(cell, Cell::Gone))) {
            Some(at) => self.replace(at, notice),
            None => {
                self.retry = Some(self.cells.len());
                self.push(notice);
            }
        }
    }

    fn replace(&mut self, at: usize, cell: Cell) {
        if let Some(there) = self.cells.get_mut(at) {
            *there = cell;
            self.changed(at);
        }
    }

    pub(crate) fn changed(&mut self, at: usize) {
        self.layouts.remove(&at);
    }

    pub(crate) fn stream_text(&mut self, text: &str) {
        self.answer_follows();
        // The answer has begun, so the reasoning has ended.
        if let Some(at) = self.draft.thinking
            && let Some(Cell::Thinking(it)) = self.cells.get_mut(at)
            && std::mem::take(&mut it.is_live)
        {
            self.changed(at);
        }
        self.draft.text.push_str(text);
        let mut parts = Vec::new();
        self.draft.splitter.feed(&self.draft.text, &mut parts);
        for part in parts {
            let cell = Cell::Drafted(Box::new(part));
            match self.draft.tail.take() {
                // The growing part is finished, and the rest goes on in the next cell.
                Some(at) => {
                    self.draft.parts.push(at);
                    self.replace(at, cell);
                    self.was_cut.get_or_insert(at);
                }
                None => {
                    self.draft.parts.push(self.cells.len());
                    self.push(cell);
                }
            }
        }
        if self.draft.tail.is_none() && self.draft.text.len() > self.draft.splitter.settled() {
            self.draft.tail = Some(self.cells.len());
            self.push(Cell::Tail);
        }
    }

    pub(crate) fn stream_thinking(&mut self, text: &str) {
        // Recorded reasoning is complete, so more of it begins a new cell.
        let is_open = |at: &usize| matches!(self.cells.get(*at), Some(Cell::Thinking(_)));
        let at = self.draft.thinking.filter(is_open).unwrap_or(self.cells.len());
        self.draft.thinking = Some(at);
        if at == self.cells.len() {
            self.push(Cell::Thinking(Box::new(Thinking { is_live: true, ..Thinking::default() })));
        }
        if let Some(Cell::Thinking(it)) = self.cells.get_mut(at) {
            it.is_live = true;
            it.text.push_str(text);
        }
        self.changed(at);
    }

    pub(crate) fn stream_output(&mut self, call_id: &str, printed: &Printed) {
        let Some(at) = self.open_calls.get(call_id).copied() else { return };
        let live = self.live.entry(at).or_default();
        live.push(printed);
        live.keep_end(MAX_LIVE);
        self.changed(at);
    }

    /// Stores the diffs of a call.
    pub(crate) fn set_diffs(&mut self, at: usize, result: u64, diffs: Vec<FileDiff>) {
        if matches!(self.cells.get(at), Some(Cell::Tool(tool)) if tool.result_seq() == Some(result)) {
            self.diffs.insert(at, diffs);
            self.changed(at);
        }
    }

    /// The first cell from `from` on that can still change. All cells before it can be printed for good.
    pub(crate) fn settled_until(&self, from: usize, status: Status, answers: Answers) -> usize {
        let is_busy = status != Status::Idle;
        // It is not known yet whether the model is asked again.
        let growing = self.growing_run().filter(|_| is_busy);
        let undecided = self.broken.filter(|seq| is_busy && !self.replaced.contains(seq));
        let rest = self.cells.iter().enumerate().skip(from);
        let open = rest.clone().find(|(at, cell)| match cell {
            _ if undecided.is_some() && cell.answer() == undecided => true,
            Cell::Tail => true,
            _ if is_busy && (growing == Some(*at) || self.retry == Some(*at)) => true,
            Cell::Drafted(_) => answers == Answers::Whole,
            Cell::Thinking(it) => it.is_live,
            Cell::Tool(tool) => match tool.result() {
                None => self.open_calls.contains_key(&tool.call().call_id),
                Some(result) => !result.changes.is_empty() && result.error.is_none() && !self.diffs.contains_key(at),
            },
            // More of the same reasoning may join it.
            Cell::Thoughts(_) => is_busy && at + 1 == self.cells.len(),
            Cell::Recorded(entry) => is_busy && at + 1 == self.cells.len() && matches!(entry.fact, Fact::Reasoning(_)),
            Cell::Workflow(card) => is_busy && card.view.is_running,
            Cell::Part(..) | Cell::Error(_) | Cell::Notice(..) | Cell::Gone => false,
        });
        open.map_or(self.cells.len(), |(at, _)| at)
    }

    /// The last answer, to print when the interface closes.
    pub(crate) fn last_answer(&self) -> Option<&str> {
        self.cells.iter().rev().find_map(|cell| match cell {
            Cell::Recorded(entry) | Cell::Part(entry, _) => match &entry.fact {
                Fact::AssistantMessage(it) if !self.replaced.contains(&entry.seq) => Some(it.text.as_str()),
                _ => None,
            },
            _ => None,
        })
    }

    /// The text of the streaming answer so far.
    pub(crate) fn draft(&self) -> &str {
        &self.draft.text
    }

    pub(crate) fn tail(&self) -> Part {
        self.draft.splitter.rest(&self.draft.text)
    }

    /// An answer is streaming in.
    pub(crate) fn is_answering(&self) -> bool {
        !self.draft.text.is_empty()
    }

    /// The calls that run now, oldest first.
    pub(crate) fn running(&self) -> Vec<&Tool> {
        let mut places: Vec<usize> = self.open_calls.values().copied().collect();
        places.sort_unstable();
        places
            .into_iter()
            .filter_map(|at| if let Some(Cell::Tool(it)) = self.cells.get(at) { Some(&**it) } else { None })
            .collect()
    }
}
