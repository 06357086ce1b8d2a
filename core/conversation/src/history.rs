//! The Entries of a Log folded into what the model reads: the path to the Head, every call with its result.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use super::scale::Scale;
use protocol::error::Code;
use protocol::event::{
    Cost, DecidedBy, Delivery, Entry, Fact, Label, Mode, PlanItem, RestoreReason, Rule, Scope, SessionStarted,
    Surroundings, ToolsOffered, Usage, UserCommand,
};

mod branching; // moves of the head, branches in the trash
mod item; // items of a request
mod repairs; // what completes a Log after a crash
mod settings; // the settings after the last change
mod sent; // what the requests so far have told the model
mod window; // the part of the path that the next request is made of

pub use branching::Jump;
pub use item::{Item, Piece};
use item::{command_text, not_run, result_of};
pub use item::{documents_text, fence_around, json_len};
pub use settings::Settings;
use window::DROPPED_COMMAND;

/// The state that a Log describes: folded once, then kept current Entry by Entry.
#[derive(Debug, Clone, Default)]
pub struct History {
    entries: Vec<Arc<Entry>>,
    /// For each Entry, the index of the conversation Entry before it. A Session in memory has fewer than four billion.
    parents: Vec<Option<u32>>,
    /// Indices of Entries from the root to the Head.
    path: Vec<u32>,
    /// Indices of compactions, on every branch.
    compactions: Vec<u32>,
    items: Vec<Item>,
    item_bytes: usize,
    /// The surroundings that the items tell of last; `None` if no item does.
    told: Option<Surroundings>,
    /// How often an Entry was folded into items, for the test of how the cost grows.
    #[cfg(test)]
    folded: usize,
    /// Calls on the path without a result.
    open_calls: Vec<String>,
    /// The Turn of the open calls.
    open_calls_of: Option<u32>,
    /// A command of the user without a result.
    open_command: Option<Arc<Entry>>,
    /// Reasoning before this Entry is not sent again, because the prompt prefix that it is valid for has changed.
    reasoning_from: u64,
    /// Labels and pins, by the number of their Entry.
    marks: HashMap<u64, Label>,
    jumps: Vec<Jump>,
    /// The first Entry of each branch in the trash. None is on the path.
    trash: BTreeSet<u64>,
    /// Commands that the user ran without showing them to the model, by call id.
    untold: HashSet<String>,
    /// In a fork, the last Entry that was copied from the parent.
    copied_to: Option<u64>,
    /// In a fork, the first Session of its family.
    pub family: Option<String>,
    /// The mode that the user gave to this Session after its start.
    chosen_mode: Option<Mode>,
    /// The Fact of the first Entry.
    pub started: SessionStarted,
    /// The settings after the last change.
    pub settings: Settings,
    /// The deny rules that the Log records. What it says about allowing is history, not authority.
    pub rules: Vec<Rule>,
    /// The tools of MCP servers that requests offer; `None` where none were ever offered.
    pub offered: Option<Arc<ToolsOffered>>,
    /// The plan after the last change.
    pub plan: Vec<PlanItem>,
    /// Tokens of all requests.
    pub usage: Usage,
    /// Cost of all requests.
    pub cost: Cost,
    /// Tokens of the last request and its answer. `None` if the Provider did not report them or the History changed
    /// since.
    pub last_input: Option<u64>,
    /// Input tokens of the last request, and the bytes of the items that it sent.
    measured: Option<(u64, usize)>,
    /// The same of the last request that the model in use has counted. A compaction does not end it.
    counted: Option<(u64, usize)>,
    /// The number of the last Turn.
    pub turns: u32,
    /// Whether the last Turn has not ended.
    pub turn_open: bool,
    /// Whether the last Turn ended because the model repeated itself without end.
    pub ended_in_loop: bool,
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

    /// The mode that the Session itself sets. A child has one only where the user gave it one: the mode of its start is that
    /// of the Sessions above at that time, which may have another now.
    pub fn own_mode(&self) -> Mode {
        match self.started.parent {
            Some(_) => self.chosen_mode.unwrap_or(Mode::Auto),
            None => self.settings.mode,
        }
    }

    /// Folds the next Entry.
    pub fn append(&mut self, entry: Arc<Entry>) {
        let index = u32::try_from(self.entries.len()).expect("its Entries are in memory");
        let conversation = entry.fact.is_conversation();
        self.parents.push(if conversation { self.path.last().copied() } else { None });
        self.entries.push(Arc::clone(&entry));
        if let Some(turn) = entry.turn
            && turn > self.turns
        {
            self.turns = turn;
            // Copied Turns ended in the parent; a fork does not copy their ends.
            self.turn_open = self.copied_to.is_none_or(|seq| entry.seq > seq);
        }
        if let Fact::UserCommand(it) = &entry.fact
            && !it.send_to_model
        {
            self.untold.insert(it.call_id.clone());
        }
        match &entry.fact {
            Fact::SessionStarted(it) => {
                self.started = (**it).clone();
                self.settings = Settings {
                    provider: it.provider.clone(),
                    model: it.model.clone(),
                    effort: it.effort.clone(),
                    mode: it.mode,
                    toolset: it.toolset,
                    name: None,
                    workspace: it.workspace.clone(),
                    role: it.role.clone(),
                };
            }
            Fact::SettingsChanged(it) => {
                // What a child knows of its parent's conversation says nothing about the child.
                if self.copied_to.is_none_or(|seq| entry.seq > seq) {
                    self.chosen_mode = it.mode.or(self.chosen_mode);
                }
                let before = self.settings.clone();
                self.settings.apply(it);
                let now = &self.settings;
                if (&now.provider, &now.model, now.toolset) != (&before.provider, &before.model, before.toolset) {
                    self.counted = None;
                }
                if now.toolset != before.toolset {
                    self.forget_reasoning();
                }
            }
            Fact::PermissionDecision(it) => {
                // Anybody can have written this Log, so it can forbid but never allow. A saved rule may end or be revoked.
                if let (Some(rule @ Rule::Deny(_)), false) = (&it.rule, it.by == DecidedBy::Rule) {
                    self.add_rule(rule);
                }
            }
            Fact::ToolsOffered(it) => self.offered = Some(Arc::new((**it).clone())),
            Fact::PlanUpdated(it) => self.plan = it.items.clone(),
            Fact::ProviderUsage(it) => {
                self.usage += it.usage;
                self.cost += it.cost;
                // A server that counts nothing has measured nothing.
                if it.usage.input > 0 {
                    self.last_input = Some(it.usage.input + it.usage.output);
                    self.measured = Some((it.usage.input, self.item_bytes));
                    self.counted = self.measured;
                }
            }
            Fact::TurnEnded(it) => {
                self.turn_open = false;
                self.ended_in_loop = it.error.as_ref().is_some_and(|error| error.code == Code::TextLoop.name());
            }
            Fact::HeadMoved(it) => {
                self.jumps.push(Jump { seq: entry.seq, from: self.head(), to: it.to_seq });
                match it.to_seq.map(|seq| self.index_of(seq)) {
                    None => self.path.clear(),
                    // Only an Entry of the conversation can be the Head; a move to any other changes nothing.
                    Some(index) => {
                        if let Some(index) = index.filter(|at| self.at(*at).fact.is_conversation()) {
                            self.path = self.path_to(index);
                        }
                    }
                }
                self.take_path_from_trash();
                self.last_input = None;
                self.refold();
            }
            Fact::BranchRemoved(it) => self.take_removal(it),
            Fact::HistoryCompaction(_) => {
                self.path.push(index);
                self.compactions.push(index);
                self.last_input = None;
                self.refold();
            }
            Fact::Label(it) => self.take_mark(it),
            Fact::SessionFork(it) => {
                self.copied_to = it.copied_to_seq;
                self.family = Some(it.fork_root_session_id.clone());
            }
            Fact::Unknown(it) => {
                if conversation {
                    self.path.push(index);
                    self.fold_item(&entry);
                }
                self.take_unknown(&it.kind);
            }
            _ if conversation => {
                self.path.push(index);
                self.fold_item(&entry);
            }
            _ => {}
        }
    }

    /// Folds an Entry whose `type` is known but whose `data` does not fit this build. Where it could affect
    /// permissions, the strictest reading applies.
    fn take_unknown(&mut self, kind: &str) {
        match kind {
            "session_started" | "settings_changed" => {
                self.settings.mode = Mode::ReadOnly;
                self.chosen_mode = Some(Mode::ReadOnly);
            }
            "permission_decision" => self.add_rule(&Rule::Deny(Scope::Unknown)),
            "turn_ended" => self.turn_open = false,
            _ => {}
        }
    }

    fn add_rule(&mut self, rule: &Rule) {
        if !self.rules.contains(rule) {
            self.rules.push(rule.clone());
        }
    }

    /// Excludes all reasoning so far from future requests. Reasoning is only valid for the model and the prompt prefix
    /// that it was produced with.
    pub fn forget_reasoning(&mut self) {
        self.reasoning_from = self.entries.last().map_or(0, |entry| entry.seq);
        self.refold();
    }

    fn fold_item(&mut self, entry: &Arc<Entry>) {
        #[cfg(test)]
        {
            self.folded += 1;
        }
        if self.fold_command(entry) {
            return;
        }
        let Some((item, len)) = self.piece_for(entry) else { return };
        match &item.piece() {
            Piece::Call { id, .. } => {
                self.open_calls.push(id.clone().into_owned());
                self.open_calls_of = entry.turn;
            }
            // Providers reject a result without its call.
            Piece::Result { id, .. } => match self.open_calls.iter().position(|open| open == id) {
                Some(at) => drop(self.open_calls.remove(at)),
                None => return,
            },
            // An answer may continue after a call; only the next answer follows the results.
            Piece::Assistant { .. } | Piece::Reasoning { .. } if self.open_calls_of == entry.turn => {}
            Piece::User { .. } | Piece::Note { .. } | Piece::Assistant { .. } | Piece::Reasoning { .. } => {
                self.close_open_calls();
            }
        }
        if let Fact::ContextChanged(it) = &entry.fact {
            self.told = Some(it.surroundings.clone());
        }
        self.push_item(entry, item, len);
    }

    /// Folds a command of the user and its output into one user message for the model.
    fn fold_command(&mut self, entry: &Arc<Entry>) -> bool {
        if let Fact::UserCommand(_) = &entry.fact {
            self.close_open_calls();
            self.open_command = Some(Arc::clone(entry));
            return true;
        }
        let Some((ran, it)) = self.open_command.as_ref().and_then(|ran| Some((ran, command_of(ran)?))) else {
            return false;
        };
        let Some((_, output)) = result_of(&entry.fact).filter(|(id, _)| *id == it.call_id) else { return false };
        let is_dropped = self.is_dropped(ran.seq) || self.is_dropped(entry.seq);
        let text = if is_dropped { DROPPED_COMMAND.to_owned() } else { command_text(&it.command, &output) };
        let is_told = it.send_to_model;
        let ran = self.open_command.take();
        if let Some(ran) = ran.filter(|_| is_told) {
            self.stand_in(&ran, Piece::text(text));
        }
        true
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

    /// Returns what the model reads, oldest first. Every call has a result.
    pub fn items(&self) -> Vec<Item> {
        let mut items = self.items.clone();
        items.extend(self.open_calls.iter().map(|id| Item::made(not_run(id.clone()))));
        items
    }

    /// Calls on the path without a result, left by a crash or an interrupt.
    pub fn orphans(&self) -> impl Iterator<Item = &str> {
        let command = self.open_command.iter().filter_map(|ran| Some(command_of(ran)?.call_id.as_str()));
        self.open_calls.iter().map(String::as_str).chain(command)
    }

    /// The last Entry of the path in front of the answer whose calls have no result yet; without such an answer, the head.
    pub fn last_settled(&self) -> Option<u64> {
        let path: Vec<&Arc<Entry>> = self.path().collect();
        let is_open = |entry: &&Arc<Entry>| match &entry.fact {
            Fact::ToolCall(it) => self.open_calls.contains(&it.call_id),
            _ => false,
        };
        let of_answer = |entry: &Arc<Entry>| {
            matches!(entry.fact, Fact::ToolCall(_) | Fact::AssistantMessage(_) | Fact::Reasoning(_))
        };
        let mut end = path.iter().position(is_open).unwrap_or(path.len());
        if end < path.len() {
            end -= path[..end].iter().rev().take_while(|entry| of_answer(entry)).count();
        }
        end.checked_sub(1).map(|at| path[at].seq)
    }

    /// Returns a sentence for the user if the Log has Entries of a newer build that this one does not fully understand.
    pub fn of_newer_build(&self) -> Option<String> {
        const SHOWN: usize = 6;
        let mut count = 0_u64;
        let mut kinds = BTreeSet::new();
        for entry in self.entries.iter().filter(|entry| !entry.is_understood()) {
            count += 1;
            kinds.insert(entry.fact.kind());
        }
        let kind = |kind: &&str| kind.chars().take(40).collect::<String>().escape_debug().to_string();
        let shown: Vec<String> = kinds.iter().take(SHOWN).map(kind).collect();
        let more = if kinds.len() > SHOWN { ", …" } else { "" };
        let entries = if count == 1 { "1 entry is".to_owned() } else { format!("{count} entries are") };
        (count > 0).then(|| {
            format!(
                "{entries} of a newer pixir ({}{more}); this version skips what it does not know, and keeps it unchanged",
                shown.join(", ")
            )
        })
    }

    /// Estimated tokens of the items, at four bytes each.
    pub fn estimated_tokens(&self) -> u64 {
        (self.item_bytes / 4) as u64
    }

    /// Expected tokens of the next request in the Provider's count; `fixed` are estimated ones that are not items. The part
    /// that the Provider has measured counts as measured.
    pub fn expected_tokens(&self, fixed: u64) -> u64 {
        let scale = self.scale(fixed);
        match self.measured {
            Some((tokens, bytes)) => tokens + scale.count((self.item_bytes.saturating_sub(bytes) / 4) as u64),
            None => scale.count(fixed + self.estimated_tokens()),
        }
    }

    /// How the model in use counts tokens, as far as it has counted a request; `fixed` as above.
    pub fn scale(&self, fixed: u64) -> Scale {
        let counted = self.counted.map(|(tokens, bytes)| Scale::of(tokens, fixed + (bytes / 4) as u64));
        counted.unwrap_or_default()
    }

    /// All Entries of the Log in order.
    pub fn entries(&self) -> &[Arc<Entry>] {
        &self.entries
    }

    /// The conversation Entries from the root to the Head.
    pub fn path(&self) -> impl DoubleEndedIterator<Item = &Arc<Entry>> + ExactSizeIterator {
        self.path.iter().map(|index| self.at(*index))
    }

    /// The number of the last conversation Entry, if there is one.
    pub fn head(&self) -> Option<u64> {
        self.path.last().map(|index| self.at(*index).seq)
    }

    /// The Entry with this number.
    pub fn entry(&self, seq: u64) -> Option<&Arc<Entry>> {
        self.index_of(seq).map(|index| self.at(index))
    }

    /// The name and the pin of an Entry.
    pub fn mark(&self, seq: u64) -> Label {
        self.marks.get(&seq).cloned().unwrap_or(Label { seq, ..Label::default() })
    }

    /// The pinned Entries of the path, oldest first.
    pub fn pinned(&self) -> impl Iterator<Item = &Arc<Entry>> {
        let mut seqs: Vec<u64> = self.marks.values().filter(|it| it.pinned.is_some()).map(|it| it.seq).collect();
        seqs.sort_unstable();
        let indices = seqs.into_iter().filter_map(|seq| self.index_of(seq));
        indices.filter(|index| self.path.binary_search(index).is_ok()).map(|index| self.at(index))
    }

    /// The Fact is a command that the user did not show to the model, or its result.
    pub fn is_untold(&self, fact: &Fact) -> bool {
        match fact {
            Fact::UserCommand(it) => self.untold.contains(&it.call_id),
            Fact::ToolResult(it) => self.untold.contains(&it.call_id),
            _ => false,
        }
    }

    /// All moves of the Head, oldest first.
    pub fn jumps(&self) -> &[Jump] {
        &self.jumps
    }

    /// The number of the conversation Entry before this one.
    pub fn parent(&self, seq: u64) -> Option<u64> {
        self.index_of(seq).and_then(|index| self.parent_of(index)).map(|index| self.at(index).seq)
    }

    /// The Entries of the branch in order: the path to the Head, and the other Entries of its Turns.
    pub fn told(&self) -> impl Iterator<Item = &Arc<Entry>> {
        let mut path = self.path.iter().copied().peekable();
        let mut is_on_path = false;
        (0..).zip(&self.entries).filter_map(move |(index, entry)| {
            if entry.fact.is_conversation() {
                is_on_path = path.next_if_eq(&index).is_some();
                return is_on_path.then_some(entry);
            }
            // A rewind's restore belongs to the branch that the Head went to.
            let leaves = matches!(&entry.fact, Fact::FilesRestored(it) if it.reason == RestoreReason::Rewind);
            (is_on_path && !leaves).then_some(entry)
        })
    }

    /// The conversation Entries from the root to this one.
    pub fn path_of(&self, seq: u64) -> Vec<Arc<Entry>> {
        self.index_of(seq).map_or_else(Vec::new, |index| {
            self.path_to(index).into_iter().map(|index| Arc::clone(self.at(index))).collect()
        })
    }

    fn path_to(&self, index: u32) -> Vec<u32> {
        let mut path = Vec::new();
        let mut at = Some(index);
        while let Some(index) = at {
            path.push(index);
            at = self.parent_of(index);
        }
        path.reverse();
        path
    }

    fn index_of(&self, seq: u64) -> Option<u32> {
        let index = self.entries.binary_search_by_key(&seq, |entry| entry.seq).ok()?;
        u32::try_from(index).ok()
    }

    fn at(&self, index: u32) -> &Arc<Entry> {
        &self.entries[index as usize]
    }

    fn parent_of(&self, index: u32) -> Option<u32> {
        self.parents[index as usize]
    }
}

/// The command of the user in this Entry.
fn command_of(entry: &Entry) -> Option<&UserCommand> {
    if let Fact::UserCommand(it) = &entry.fact { Some(it) } else { None }
}

/// Whether a Turn begins with this Entry.
pub fn starts_turn(fact: &Fact) -> bool {
    is_request(fact) || matches!(fact, Fact::UserCommand(_))
}

/// Whether this Entry is a new request of the user.
pub fn is_request(fact: &Fact) -> bool {
    matches!(fact, Fact::UserMessage(it) if it.delivery != Delivery::Steer)
}

#[cfg(test)]
mod tests;
