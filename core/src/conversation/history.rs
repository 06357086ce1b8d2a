//! Entries folded into what the model should see: the path from the root to the head, always balanced.

use std::collections::HashMap;
use std::sync::Arc;

use crate::protocol::event::{
    Cost, Delivery, Entry, Fact, HistoryCompaction, Label, Mode, PlanItem, RestoreReason, Rule, SessionStarted,
    SettingsChanged, ToolResult, Toolset, TurnEnded, TurnStatus, Usage, UserCommand,
};

mod item; // what a model is sent, piece by piece

pub use item::{Item, Piece};
use item::{command_text, piece_of};

/// What a Session was last told to be.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Settings {
    /// The Provider's name.
    pub provider: String,
    /// The model's name at it.
    pub model: String,
    /// How hard the model should think.
    pub effort: Option<String>,
    /// What may run without asking.
    pub mode: Mode,
    /// Which tools the model is offered.
    pub toolset: Toolset,
    /// The Session's name.
    pub name: Option<String>,
    /// The root that no path may leave.
    pub workspace: String,
}

impl Settings {
    fn apply(&mut self, change: &SettingsChanged) {
        let SettingsChanged { provider, model, effort, mode, toolset, name, workspace } = change.clone();
        if let Some(provider) = provider {
            self.provider = provider;
        }
        if let Some(model) = model {
            self.model = model;
        }
        if effort.is_some() {
            self.effort = effort;
        }
        if let Some(mode) = mode {
            self.mode = mode;
        }
        if let Some(toolset) = toolset {
            self.toolset = toolset;
        }
        if let Some(name) = name {
            self.name = Some(name).filter(|n| !n.is_empty());
        }
        if let Some(workspace) = workspace {
            self.workspace = workspace;
        }
    }
}

/// A move of the head: from where, and where to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Jump {
    /// The entry that recorded it.
    pub seq: u64,
    /// The head before.
    pub from: Option<u64>,
    /// The head after.
    pub to: Option<u64>,
}

/// Everything that a Log says, folded once and then kept up to date entry by entry.
#[derive(Debug, Clone, Default)]
pub struct History {
    entries: Vec<Arc<Entry>>,
    /// For each entry, the index of the conversation entry before it.
    parents: Vec<Option<usize>>,
    /// Indices from the root to the head.
    path: Vec<usize>,
    items: Vec<Item>,
    item_bytes: usize,
    /// Calls on the path that have no result yet.
    open_calls: Vec<String>,
    /// The Turn that they are of.
    open_calls_of: Option<u32>,
    /// A command of the person that has no result yet.
    open_command: Option<UserCommand>,
    /// Thinking from before this entry is not given back: what was sent before it is not the same any more.
    reasoning_from: u64,
    /// Names and pins, by the entry that they are on.
    marks: HashMap<u64, Label>,
    jumps: Vec<Jump>,
    /// The last entry that came with a fork.
    copied_to: Option<u64>,
    /// The first Session of its family, in a fork.
    pub family: Option<String>,
    /// What the Session began with.
    pub started: SessionStarted,
    /// What it was last told to be.
    pub settings: Settings,
    /// What the person allowed for good.
    pub rules: Vec<Rule>,
    /// The plan as it stands.
    pub plan: Vec<PlanItem>,
    /// What all requests took.
    pub usage: Usage,
    /// What they cost.
    pub cost: Cost,
    /// Tokens that the last request held, if its Provider said so and nothing was compacted since.
    pub last_input: Option<u64>,
    /// Turns that began.
    pub turns: u32,
    /// The last Turn has not ended.
    pub turn_open: bool,
}

impl History {
    /// Folds a whole Log.
    pub fn fold(entries: impl IntoIterator<Item = Arc<Entry>>) -> History {
        let mut history = History::default();
        for entry in entries {
            history.append(entry);
        }
        history
    }

    /// Takes in the next entry.
    pub fn append(&mut self, entry: Arc<Entry>) {
        let index = self.entries.len();
        let conversation = entry.fact.is_conversation();
        self.parents.push(if conversation { self.path.last().copied() } else { None });
        self.entries.push(Arc::clone(&entry));
        if let Some(turn) = entry.turn
            && turn > self.turns
        {
            self.turns = turn;
            // Turns that were copied into a fork have ended where they come from.
            self.turn_open = self.copied_to.is_none_or(|seq| entry.seq > seq);
        }
        match &entry.fact {
            Fact::SessionStarted(it) => {
                self.started = it.clone();
                self.settings = Settings {
                    provider: it.provider.clone(),
                    model: it.model.clone(),
                    effort: it.effort.clone(),
                    mode: it.mode,
                    toolset: it.toolset,
                    name: None,
                    workspace: it.workspace.clone(),
                };
            }
            Fact::SettingsChanged(it) => {
                let before = self.settings.toolset;
                self.settings.apply(it);
                if self.settings.toolset != before {
                    self.forget_reasoning();
                }
            }
            Fact::PermissionDecision(it) => self.rules.extend(it.rule.clone().filter(|r| !self.rules.contains(r))),
            Fact::PlanUpdated(it) => self.plan = it.items.clone(),
            Fact::ProviderUsage(it) => {
                self.usage += it.usage;
                self.cost += it.cost;
                self.last_input = Some(it.usage.input + it.usage.output);
            }
            Fact::TurnEnded(_) => self.turn_open = false,
            Fact::HeadMoved(it) => {
                self.jumps.push(Jump { seq: entry.seq, from: self.head(), to: it.to_seq });
                match it.to_seq.map(|seq| self.index_of(seq)) {
                    None => self.path.clear(),
                    // What leads to no part of the conversation leads nowhere.
                    Some(index) => {
                        if let Some(index) = index.filter(|at| self.entries[*at].fact.is_conversation()) {
                            self.path = self.path_to(index);
                        }
                    }
                }
                self.last_input = None;
                self.refold();
            }
            Fact::HistoryCompaction(_) => {
                self.path.push(index);
                self.last_input = None;
                self.refold();
            }
            Fact::UserMessage(_)
            | Fact::UserCommand(_)
            | Fact::AssistantMessage(_)
            | Fact::Reasoning(_)
            | Fact::ToolCall(_)
            | Fact::ToolResult(_)
            | Fact::BranchSummary(_)
            | Fact::FilesRestored(_)
            | Fact::SkillActivation(_) => {
                if conversation {
                    self.path.push(index);
                    self.fold_item(&entry);
                }
            }
            Fact::Label(it) => self.take_mark(it),
            Fact::SessionFork(it) => {
                self.copied_to = it.copied_to_seq;
                self.family = Some(it.fork_root_session_id.clone());
            }
            Fact::MemoryFact(_) | Fact::LogRepaired(_) | Fact::Unknown { .. } => {}
        }
    }

    /// Gives no thinking back that there is so far. It was made behind other words, or for somebody else.
    pub(crate) fn forget_reasoning(&mut self) {
        self.reasoning_from = self.entries.last().map_or(0, |entry| entry.seq);
        self.refold();
    }

    fn take_mark(&mut self, new: &Label) {
        let mark = self.marks.entry(new.seq).or_default();
        mark.seq = new.seq;
        if let Some(text) = &new.text {
            mark.text = Some(text.clone()).filter(|t| !t.is_empty());
        }
        if let Some(pinned) = new.pinned {
            mark.pinned = Some(true).filter(|_| pinned);
        }
    }

    fn refold(&mut self) {
        self.items.clear();
        self.item_bytes = 0;
        self.open_calls.clear();
        self.open_command = None;
        let path: Vec<Arc<Entry>> = self.path().cloned().collect();
        let compaction = path.iter().rposition(|e| matches!(e.fact, Fact::HistoryCompaction(_)));
        let kept_from = compaction.map(|at| match &path[at].fact {
            Fact::HistoryCompaction(it) => {
                self.make(Piece::said(summary_text(it)));
                it.kept_from_seq
            }
            _ => 0,
        });
        let reasoning_from = self.reasoning_from.max(compaction.map_or(0, |at| path[at].seq));
        for entry in &path {
            let is_stale = matches!(entry.fact, Fact::Reasoning(_)) && entry.seq < reasoning_from;
            if kept_from.is_none_or(|seq| entry.seq >= seq) && !is_stale {
                self.fold_item(entry);
            }
        }
    }

    fn fold_item(&mut self, entry: &Arc<Entry>) {
        if self.fold_command(&entry.fact) {
            return;
        }
        let Some(piece) = piece_of(&entry.fact) else { return };
        let len = piece.len();
        match &piece {
            Piece::Call { id, .. } => {
                self.open_calls.push(id.clone().into_owned());
                self.open_calls_of = entry.turn;
            }
            // A result without its call is nothing that a Provider would take.
            Piece::Result { id, .. } => match self.open_calls.iter().position(|open| open == id) {
                Some(at) => drop(self.open_calls.remove(at)),
                None => return,
            },
            // An answer may go on after it has called; only the next one comes after the results.
            Piece::Assistant { .. } | Piece::Reasoning { .. } if self.open_calls_of == entry.turn => {}
            Piece::User { .. } | Piece::Assistant { .. } | Piece::Reasoning { .. } => self.close_open_calls(),
        }
        self.item_bytes += len;
        self.items.push(Item::Recorded(Arc::clone(entry)));
    }

    /// What the person ran is told together with what came of it, as something that the person says.
    fn fold_command(&mut self, fact: &Fact) -> bool {
        match fact {
            Fact::UserCommand(it) => {
                self.close_open_calls();
                self.open_command = Some(it.clone());
                true
            }
            Fact::ToolResult(result) => match self.open_command.take_if(|it| it.call_id == result.call_id) {
                Some(it) if it.send_to_model => {
                    self.make(Piece::said(command_text(&it.command, &result.output)));
                    true
                }
                other => other.is_some(),
            },
            _ => false,
        }
    }

    fn close_open_calls(&mut self) {
        for id in std::mem::take(&mut self.open_calls) {
            self.make(not_run(id));
        }
    }

    fn make(&mut self, piece: Piece<'static>) {
        self.item_bytes += piece.len();
        self.items.push(Item::made(piece));
    }

    /// What the model is sent, oldest first; every call has its result.
    pub fn items(&self) -> Vec<Item> {
        let mut items = self.items.clone();
        items.extend(self.open_calls.iter().map(|id| Item::made(not_run(id.clone()))));
        items
    }

    /// Calls on the path that have no result: a crash or an interrupt came between.
    pub fn orphans(&self) -> impl Iterator<Item = &str> {
        let command = self.open_command.iter().map(|it| it.call_id.as_str());
        self.open_calls.iter().map(String::as_str).chain(command)
    }

    /// Estimated tokens of what the model is sent, four bytes each.
    pub fn estimated_tokens(&self) -> u64 {
        (self.item_bytes / 4) as u64
    }

    /// Everything in the Log, in its order.
    pub fn entries(&self) -> &[Arc<Entry>] {
        &self.entries
    }

    /// The conversation entries from the root to the head.
    pub fn path(&self) -> impl DoubleEndedIterator<Item = &Arc<Entry>> + ExactSizeIterator {
        self.path.iter().map(|index| &self.entries[*index])
    }

    /// The last conversation entry, if there is any.
    pub fn head(&self) -> Option<u64> {
        self.path.last().map(|index| self.entries[*index].seq)
    }

    /// The entry with this number.
    pub fn entry(&self, seq: u64) -> Option<&Arc<Entry>> {
        self.index_of(seq).map(|index| &self.entries[index])
    }

    /// The name and the pin of an entry.
    pub fn mark(&self, seq: u64) -> Label {
        self.marks.get(&seq).cloned().unwrap_or(Label { seq, ..Label::default() })
    }

    /// Every move of the head, oldest first.
    pub fn jumps(&self) -> &[Jump] {
        &self.jumps
    }

    /// The conversation entry before this one.
    pub fn parent(&self, seq: u64) -> Option<u64> {
        self.index_of(seq).and_then(|index| self.parents[index]).map(|index| self.entries[index].seq)
    }

    /// Everything that belongs to the path to the head, in order: its conversation, and what was noted in its Turns.
    pub fn told(&self) -> impl Iterator<Item = &Arc<Entry>> {
        let mut path = self.path.iter().copied().peekable();
        let mut is_on_path = false;
        self.entries.iter().enumerate().filter_map(move |(index, entry)| {
            if entry.fact.is_conversation() {
                is_on_path = path.next_if_eq(&index).is_some();
                return is_on_path.then_some(entry);
            }
            // What was done to files on the way to another branch is told there.
            let leaves = matches!(&entry.fact, Fact::FilesRestored(it) if it.reason == RestoreReason::Rewind);
            (is_on_path && !leaves).then_some(entry)
        })
    }

    /// The conversation entries from the root to this one.
    pub fn path_of(&self, seq: u64) -> Vec<Arc<Entry>> {
        self.index_of(seq).map_or_else(Vec::new, |index| {
            self.path_to(index).into_iter().map(|i| Arc::clone(&self.entries[i])).collect()
        })
    }

    fn path_to(&self, index: usize) -> Vec<usize> {
        let mut path = Vec::new();
        let mut at = Some(index);
        while let Some(index) = at {
            path.push(index);
            at = self.parents[index];
        }
        path.reverse();
        path
    }

    fn index_of(&self, seq: u64) -> Option<usize> {
        self.entries.binary_search_by_key(&seq, |entry| entry.seq).ok()
    }

    /// What a crash, or a full disk, left open: results for calls without one, and the end of the Turn.
    pub(crate) fn repairs(&self) -> Vec<Fact> {
        let mut facts: Vec<Fact> = self.orphans().map(|id| History::orphan_result(id).into()).collect();
        if self.turn_open {
            let details = serde_json::Map::from_iter([("reason".to_owned(), "crash".into())]);
            facts.push(
                TurnEnded {
                    status: TurnStatus::Interrupted,
                    error: None,
                    usage: Usage::default(),
                    cost: Cost::default(),
                    duration_ms: 0,
                    tool_calls: 0,
                    details,
                }
                .into(),
            );
        }
        facts
    }

    /// The result that closes a call which was cut off.
    pub(crate) fn orphan_result(call_id: &str) -> ToolResult {
        let error = crate::protocol::error::Error::new(
            crate::protocol::error::Code::OrphanToolCall,
            "the call was cut off before its result was recorded",
            "check what it did before running it again",
        )
        .with("reason", "orphan_tool_call");
        ToolResult {
            call_id: call_id.to_owned(),
            ok: false,
            output: NOT_RUN.to_owned(),
            error: Some(error.body()),
            ..ToolResult::default()
        }
    }
}

const NOT_RUN: &str =
    "[error] the call was cut off before its result was recorded. Use: check what it did before running it again";

fn not_run(id: String) -> Piece<'static> {
    Piece::Result { id: id.into(), output: NOT_RUN.into(), images: (&[]).into() }
}

fn summary_text(it: &HistoryCompaction) -> String {
    format!("<summary of=\"the earlier conversation\">\n{}\n</summary>", it.summary)
}

/// Whether this entry is where a Turn begins.
pub fn starts_turn(fact: &Fact) -> bool {
    is_request(fact) || matches!(fact, Fact::UserCommand(_))
}

/// Bytes of text that a model reads of an entry, for estimates; an image counts for about a thousand tokens.
pub(crate) fn length_of(fact: &Fact) -> usize {
    piece_of(fact).map_or(0, |piece| piece.len())
}

/// Whether this entry asks the model for something new.
pub fn is_request(fact: &Fact) -> bool {
    matches!(fact, Fact::UserMessage(it) if it.delivery != Delivery::Steer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::event::{HeadMoved, SessionId, ToolCall, UserMessage, now};

    fn log(facts: Vec<Fact>) -> History {
        let id = SessionId::now();
        History::fold(facts.into_iter().enumerate().map(|(seq, fact)| {
            Arc::new(Entry {
                id: uuid::Uuid::now_v7(),
                session_id: id.clone(),
                seq: seq as u64,
                ts: now(),
                turn: Some(1),
                fact,
            })
        }))
    }

    fn says(text: &str) -> Fact {
        UserMessage { text: text.into(), ..UserMessage::default() }.into()
    }

    fn calls(id: &str) -> Fact {
        ToolCall { call_id: id.into(), name: "read".into(), args: serde_json::json!({}) }.into()
    }

    fn told(history: &History) -> Vec<String> {
        history
            .items()
            .iter()
            .map(|item| match item.piece() {
                Piece::User { text, .. } | Piece::Assistant { text, .. } => text.into_owned(),
                Piece::Call { id, .. } => format!("call {id}"),
                Piece::Result { id, .. } => format!("result {id}"),
                Piece::Reasoning { .. } => "thought".into(),
            })
            .collect()
    }

    #[test]
    fn a_call_that_was_cut_off_never_reaches_a_model_without_a_result() {
        let history = log(vec![says("a"), calls("1"), calls("2"), says("b"), calls("3")]);
        assert_eq!(told(&history), ["a", "call 1", "call 2", "result 1", "result 2", "b", "call 3", "result 3"]);
        assert_eq!(history.orphans().collect::<Vec<_>>(), ["3"]);
    }

    #[test]
    fn what_the_person_ran_is_told_with_what_came_of_it_or_not_at_all() {
        let ran = |id: &str, send_to_model| {
            Fact::from(UserCommand { call_id: id.into(), command: format!("cmd {id}"), send_to_model })
        };
        let result = |id: &str| {
            Fact::from(ToolResult { call_id: id.into(), output: format!("out {id}"), ..ToolResult::default() })
        };
        let history = log(vec![ran("1", true), result("1"), ran("2", false), result("2"), says("so?"), ran("3", true)]);
        assert_eq!(told(&history), ["<command by=\"the user\">\ncmd 1\n</command>\n<output>\nout 1\n</output>", "so?"]);
        assert_eq!(history.orphans().collect::<Vec<_>>(), ["3"], "a command that was cut off gets a result as well");
    }

    #[test]
    fn after_the_head_moved_the_conversation_goes_on_from_there_and_the_log_keeps_all() {
        let back = HeadMoved { to_seq: Some(0), reason: "rewind".into() };
        let history = log(vec![says("a"), says("b"), says("c"), back.into(), says("d")]);
        assert_eq!(told(&history), ["a", "d"]);
        assert_eq!((history.parent(4), history.head(), history.entries().len()), (Some(0), Some(4), 5));
    }
}
