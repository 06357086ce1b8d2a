//! What is read: a projection of Events into cells, one for each thing that happened, and the draft that grows.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use pixir_core::changes::FileDiff;
use pixir_core::error::ErrorBody;
use pixir_core::event::{Entry, Fact, Severity, ToolCall, ToolResult, TurnStatus, Verdict};
use ratatui::text::Line;

use crate::render::markdown::settled;

/// One thing that happened.
#[derive(Debug, Clone)]
pub(crate) enum Cell {
    /// What is in the Log, by reference: a long Session is in memory once.
    Recorded(Arc<Entry>),
    /// Thinking that no entry repeats.
    Thinking {
        text: String,
    },
    Tool(Box<ToolCell>),
    Error(Box<ErrorBody>),
    Notice {
        severity: Severity,
        text: String,
    },
}

/// A tool call and what came of it.
#[derive(Debug, Clone)]
pub(crate) struct ToolCell {
    call: Arc<Entry>,
    result: Option<Arc<Entry>>,
    pub(crate) refused: bool,
    /// Output that has come so far.
    pub(crate) live: String,
    /// What it changed, once that was loaded.
    pub(crate) diffs: Option<Vec<FileDiff>>,
    /// Shown in full, or in short; `None` leaves it to what it is.
    pub(crate) expanded: Option<bool>,
}

impl ToolCell {
    pub(crate) fn call(&self) -> &ToolCall {
        match &self.call.fact {
            Fact::ToolCall(it) => it,
            other => unreachable!("a tool's cell is made of a call, not of {}", other.kind()),
        }
    }

    pub(crate) fn result(&self) -> Option<&ToolResult> {
        match &self.result.as_ref()?.fact {
            Fact::ToolResult(it) => Some(it),
            _ => None,
        }
    }
}

/// The most of a running command's output that is kept for the screen, bytes.
const MAX_LIVE: usize = 64 << 10;

/// A cell and its lines, as they were last laid out.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) cell: Cell,
    pub(crate) lines: Option<(LayoutKey, Rc<Vec<Line<'static>>>)>,
}

/// What lines depend on besides their cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LayoutKey {
    pub(crate) columns: usize,
    /// Changes with the theme, the colours that became known and what is shown in full.
    pub(crate) generation: u64,
}

/// An answer that is still being written.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    pub(crate) thinking: String,
    pub(crate) text: String,
    /// All lines, as they were last laid out, for how much thinking and text.
    pub(crate) whole: Option<(LayoutKey, usize, usize, Rc<Vec<Line<'static>>>)>,
    /// Rows that the thinking took when it was last laid out.
    pub(crate) thinking_rows: usize,
    /// Bytes of the text whose look cannot change any more.
    pub(crate) settled: usize,
    /// Lines of that part, as they were last laid out.
    pub(crate) lines: Option<(LayoutKey, usize, Vec<Line<'static>>)>,
}

impl Draft {
    pub(crate) fn is_empty(&self) -> bool {
        self.thinking.is_empty() && self.text.is_empty()
    }

    fn push(&mut self, more: &str) {
        self.text.push_str(more);
        if more.contains('\n') {
            self.settled += settled(&self.text[self.settled..]);
        }
    }
}

/// All cells, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Transcript {
    pub(crate) slots: Vec<Slot>,
    pub(crate) draft: Draft,
    calls: HashMap<String, usize>,
}

impl Transcript {
    /// Takes in what was recorded.
    pub(crate) fn record(&mut self, entry: &Arc<Entry>) {
        match &entry.fact {
            Fact::AssistantMessage(_) => {
                // What was streamed is now whole; two lines, and the same text can never be there twice.
                self.draft = Draft { thinking: std::mem::take(&mut self.draft.thinking), ..Draft::default() };
                self.settle_thinking();
                self.show(entry);
            }
            Fact::Reasoning(it) => {
                self.draft.thinking.clear();
                if !it.text.trim().is_empty() {
                    self.show(entry);
                }
            }
            Fact::ToolCall(it) => {
                self.settle_thinking();
                self.calls.insert(it.call_id.clone(), self.slots.len());
                self.push(Cell::Tool(Box::new(ToolCell {
                    call: Arc::clone(entry),
                    result: None,
                    refused: false,
                    live: String::new(),
                    diffs: None,
                    expanded: None,
                })));
            }
            Fact::ToolResult(it) => self.with_call(&it.call_id, |cell| {
                cell.result = Some(Arc::clone(entry));
                cell.live = String::new();
            }),
            Fact::PermissionDecision(it) if it.verdict == Verdict::Deny => {
                self.with_call(&it.call_id, |cell| cell.refused = true)
            }
            Fact::TurnEnded(it) => {
                self.draft = Draft::default();
                if it.status != TurnStatus::Completed {
                    self.show(entry);
                }
            }
            Fact::UserMessage(_)
            | Fact::PlanUpdated(_)
            | Fact::SkillActivation(_)
            | Fact::HistoryCompaction(_)
            | Fact::BranchSummary(_)
            | Fact::FilesRestored(_)
            | Fact::LogRepaired(_) => self.show(entry),
            Fact::SessionStarted(_)
            | Fact::SettingsChanged(_)
            | Fact::PermissionDecision(_)
            | Fact::ProviderUsage(_)
            | Fact::SessionFork(_)
            | Fact::HeadMoved(_)
            | Fact::Label(_)
            | Fact::MemoryFact(_)
            | Fact::Unknown { .. } => {}
        }
    }

    fn show(&mut self, entry: &Arc<Entry>) {
        self.push(Cell::Recorded(Arc::clone(entry)));
    }

    /// Thinking that no entry will repeat stays as a cell.
    fn settle_thinking(&mut self) {
        let text = std::mem::take(&mut self.draft.thinking);
        if !text.trim().is_empty() {
            self.slots.push(Slot { cell: Cell::Thinking { text }, lines: None });
        }
    }

    /// Adds a cell; also for what is true now and is in no Log.
    pub(crate) fn push(&mut self, cell: Cell) {
        self.slots.push(Slot { cell, lines: None });
    }

    pub(crate) fn stream_text(&mut self, text: &str) {
        self.draft.push(text);
    }

    pub(crate) fn stream_thinking(&mut self, text: &str) {
        self.draft.thinking.push_str(text);
    }

    /// A try failed; the next one begins at the start.
    pub(crate) fn restart_draft(&mut self) {
        self.draft = Draft::default();
    }

    pub(crate) fn stream_output(&mut self, call_id: &str, text: &str) {
        self.with_call(call_id, |cell| {
            cell.live.push_str(text);
            if cell.live.len() > 2 * MAX_LIVE {
                let mut from = cell.live.len() - MAX_LIVE;
                while !cell.live.is_char_boundary(from) {
                    from += 1;
                }
                cell.live.drain(..from);
            }
        });
    }

    /// Changes a call's cell; its lines are laid out again.
    pub(crate) fn with_call(&mut self, call_id: &str, change: impl FnOnce(&mut ToolCell)) {
        if let Some(slot) = self.calls.get(call_id).and_then(|at| self.slots.get_mut(*at))
            && let Cell::Tool(cell) = &mut slot.cell
        {
            change(cell);
            slot.lines = None;
        }
    }

    /// The last answer, for the main screen when the interface closes.
    pub(crate) fn last_answer(&self) -> Option<&str> {
        self.slots.iter().rev().find_map(|slot| match &slot.cell {
            Cell::Recorded(entry) => match &entry.fact {
                Fact::AssistantMessage(it) => Some(it.text.as_str()),
                _ => None,
            },
            _ => None,
        })
    }
}
