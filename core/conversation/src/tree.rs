//! Branches of one conversation, read from its History and never stored.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use jiff::Timestamp;

use crate::history::{History, starts_turn};
use protocol::event::{
    ChangeKind, Cost, Entry, Fact, FileChange, FilesRestored, RestoreReason, TurnStatus, Usage, WorkflowEvent,
};
use protocol::input::Input;

mod compare; // two places of the tree
mod moves; // where the head was before, as a list of jumps

pub use compare::Comparison;
pub use moves::{Moves, moves};

/// One Turn in the tree: a request and where its answer ended.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Node {
    /// The number of the Turn; `None` for a node between two Turns, such as an undo.
    pub turn: Option<u32>,
    /// The Entry of the request.
    pub seq: u64,
    /// The last conversation Entry of the Turn.
    pub end_seq: u64,
    /// The request's text.
    pub text: String,
    /// The last message of the model in the Turn.
    pub answer: String,
    /// The number of calls in the Turn.
    pub tool_calls: u32,
    /// The indentation: 0 on a straight line, one more after each branching point.
    pub depth: usize,
    /// The node is on the path to the Head.
    pub on_path: bool,
    /// The node contains the Head.
    pub is_head: bool,
    /// The label of an Entry of the node.
    pub label: Option<String>,
    /// An Entry of the node is pinned.
    pub pinned: bool,
    /// The number of changes of files that tools made in the Turn.
    pub files: u32,
    /// Lines that they added.
    pub added: u64,
    /// Lines that they removed.
    pub removed: u64,
    /// History was compacted in the Turn.
    pub compacted: bool,
    /// The user typed the request; a node between two Turns has none.
    pub is_request: bool,
    /// How the Turn ended; `None` while it runs, for a node between two Turns, and for a Turn that a fork copied.
    pub outcome: Option<TurnStatus>,
    /// Why the Turn did not complete.
    pub error: Option<String>,
    /// When the last Entry of the node was recorded.
    #[serde(serialize_with = "protocol::event::to_the_millisecond")]
    pub time: Timestamp,
    /// How long the Turn took, in milliseconds.
    pub duration_ms: u64,
    /// The tokens of the Turn's requests.
    pub usage: Usage,
    /// The cost of the Turn's requests.
    pub cost: Cost,
    /// The node is in the trash.
    pub in_trash: bool,
    /// The Entry before the request.
    pub before: Option<u64>,
}

impl Node {
    /// The Turn failed, or a limit ended it.
    pub fn has_failed(&self) -> bool {
        match self.outcome {
            Some(TurnStatus::Failed | TurnStatus::PartialFailed | TurnStatus::TimedOut | TurnStatus::Incomplete) => {
                true
            }
            Some(TurnStatus::Completed | TurnStatus::Interrupted) | None => false,
        }
    }

    /// The user stopped the Turn.
    pub fn was_interrupted(&self) -> bool {
        self.outcome == Some(TurnStatus::Interrupted)
    }

    /// Tokens sent and returned.
    pub fn tokens(&self) -> u64 {
        self.usage.input.saturating_add(self.usage.output)
    }
}

/// What an Entry did to a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grown {
    /// The tree does not show it.
    Nothing,
    /// It belongs to this node.
    Node(usize),
    /// It begins a node, which is the last one.
    New,
}

/// All Turns of a Session, in the order of the Log: a parent stands before its children.
#[derive(Debug, Clone, Default)]
pub struct Tree {
    /// The Turns.
    pub nodes: Vec<Node>,
    /// For each Turn, the one that it continues.
    pub parents: Vec<Option<usize>>,
    entries: Vec<Vec<Arc<Entry>>>,
    /// For each conversation Entry of the Log, its node.
    owners: Vec<(u64, usize)>,
}

/// What a node did to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeChange<'a> {
    /// Relative to the workspace.
    pub path: &'a str,
    /// A for added, M for modified, D for deleted, R for renamed.
    pub letter: char,
    /// The path before a rename.
    pub from: Option<&'a str>,
    /// Lines added.
    pub added: u64,
    /// Lines removed.
    pub removed: u64,
}

impl Tree {
    /// The tree of a conversation, with the branches in the trash.
    pub fn of(history: &History) -> Tree {
        let mut tree = Tree::default();
        // Usage and ends of Turns are no Entries of the conversation: they name their Turn.
        let mut of_turn: HashMap<u32, usize> = HashMap::new();
        for entry in history.entries() {
            if entry.fact.is_conversation() {
                let own = tree.take(history, entry);
                if let Some(turn) = entry.turn {
                    of_turn.entry(turn).or_insert(own);
                }
            } else if let Some(at) = entry.turn.and_then(|turn| of_turn.get(&turn)) {
                tree.nodes[*at].take_beside(entry);
            }
        }
        tree.mark_path(history);
        for mark in history.marks() {
            let Some(own) = tree.node_of(mark.seq) else { continue };
            let node = &mut tree.nodes[own];
            node.pinned |= mark.pinned.is_some();
            if mark.text.is_some() {
                node.label.clone_from(&mark.text);
            }
        }
        for at in 0..tree.nodes.len() {
            let seq = tree.nodes[at].seq;
            tree.nodes[at].before = history.parent(seq);
            let parent_in_trash = tree.parents[at].is_some_and(|parent| tree.nodes[parent].in_trash);
            tree.nodes[at].in_trash = parent_in_trash || history.begins_trash(seq);
        }
        tree
    }

    /// Takes in an Entry that was recorded since, and is the last one of the History. Its cost does not grow with the
    /// tree. Labels, pins, the trash and moves of the head need the tree to be read anew.
    pub fn grow(&mut self, history: &History, entry: &Arc<Entry>) -> Grown {
        if !entry.fact.is_conversation() {
            // It is about a Turn that has just run.
            let of_turn = entry.turn.and_then(|turn| self.nodes.iter().rposition(|node| node.turn == Some(turn)));
            return of_turn.map_or(Grown::Nothing, |at| {
                self.nodes[at].take_beside(entry);
                Grown::Node(at)
            });
        }
        let count = self.nodes.len();
        let own = self.take(history, entry);
        if own < count {
            return Grown::Node(own);
        }
        if let Some(parent) = self.parents[own] {
            self.nodes[parent].is_head = false;
        }
        let node = &mut self.nodes[own];
        (node.is_head, node.on_path) = (true, true);
        node.before = history.parent(node.seq);
        Grown::New
    }

    /// The Entries of the conversation that belong to a node.
    pub fn entries(&self, node: usize) -> &[Arc<Entry>] {
        self.entries.get(node).map_or(&[], Vec::as_slice)
    }

    /// The node that an Entry belongs to.
    pub fn node_of(&self, seq: u64) -> Option<usize> {
        self.owners.binary_search_by_key(&seq, |(seq, _)| *seq).ok().map(|at| self.owners[at].1)
    }

    /// The files that a node changed, those with the most changed lines first. Files that end as they began are left out as
    /// far as the Log tells.
    pub fn changes(&self, node: usize) -> Vec<NodeChange<'_>> {
        let mut files: BTreeMap<&str, (ChangeKind, NodeChange<'_>)> = BTreeMap::new();
        for change in self.entries(node).iter().flat_map(|entry| changes_of(&entry.fact)) {
            let new = NodeChange { path: &change.path, letter: 'M', from: None, added: 0, removed: 0 };
            let (first, it) = files.entry(&change.path).or_insert((change.kind, new));
            (it.added, it.removed) = (it.added + change.added, it.removed + change.removed);
            it.from = change.moved_from.as_deref().or(it.from);
            it.letter = match (*first, change.kind) {
                (ChangeKind::Created, ChangeKind::Deleted) => ' ',
                (_, ChangeKind::Deleted) => 'D',
                (ChangeKind::Created, _) if it.from.is_some() => 'R',
                (ChangeKind::Created, _) => 'A',
                (ChangeKind::Modified | ChangeKind::Deleted, _) => 'M',
            };
        }
        // A file that moved more than once is what it was at first.
        let between: HashMap<&str, NodeChange<'_>> =
            files.iter().filter(|(_, (_, it))| it.letter == ' ').map(|(path, (_, it))| (*path, *it)).collect();
        for (_, it) in files.values_mut().filter(|(_, it)| it.letter == 'R') {
            for _ in 0..between.len() {
                let Some(step) = it.from.and_then(|from| between.get(from)).filter(|step| step.from.is_some()) else {
                    break;
                };
                (it.from, it.added, it.removed) = (step.from, it.added + step.added, it.removed + step.removed);
            }
        }
        let moved: HashSet<&str> =
            files.values().filter(|(_, it)| it.letter == 'R').filter_map(|(_, it)| it.from).collect();
        let is_shown = |it: &NodeChange<'_>| it.letter != ' ' && !(it.letter == 'D' && moved.contains(it.path));
        let mut shown: Vec<NodeChange<'_>> = files.into_values().map(|(_, it)| it).filter(is_shown).collect();
        shown.sort_by_key(|it| std::cmp::Reverse(it.added + it.removed));
        shown
    }

    fn take(&mut self, history: &History, entry: &Arc<Entry>) -> usize {
        let parent = history.parent(entry.seq).and_then(|seq| self.node_of(seq));
        let own = match parent {
            Some(node) if !begins_node(&entry.fact) => node,
            Some(_) | None => {
                self.nodes.push(blank(entry));
                self.parents.push(parent);
                self.entries.push(Vec::new());
                self.nodes.len() - 1
            }
        };
        self.owners.push((entry.seq, own));
        self.entries[own].push(Arc::clone(entry));
        self.nodes[own].take(entry);
        own
    }

    fn mark_path(&mut self, history: &History) {
        let Some(head) = history.head().and_then(|seq| self.node_of(seq)) else { return };
        self.nodes[head].is_head = true;
        let mut at = Some(head);
        while let Some(node) = at {
            self.nodes[node].on_path = true;
            at = self.parents[node];
        }
    }
}

impl Node {
    fn take(&mut self, entry: &Entry) {
        self.end_seq = entry.seq;
        self.time = entry.ts;
        self.turn = self.turn.or(entry.turn);
        match &entry.fact {
            Fact::UserMessage(it) if self.text.is_empty() => self.text.clone_from(&it.text),
            Fact::UserCommand(it) if self.text.is_empty() => self.text = it.typed(),
            Fact::SkillActivation(it) if self.text.is_empty() => self.text = format!("skill {} {}", it.name, it.args),
            Fact::BranchSummary(it) => {
                self.text = "[summary of the abandoned branch]".into();
                self.answer.clone_from(&it.summary);
            }
            Fact::FilesRestored(it) if self.text.is_empty() => self.text = restored(it),
            Fact::WorkflowEvent(it) if self.text.is_empty() => self.text = run_of(it),
            fact @ (Fact::ToolResult(_) | Fact::AgentEvent(_)) => {
                self.files += u32::try_from(fact.changes().len()).unwrap_or(u32::MAX);
                for change in fact.changes() {
                    self.added += change.added;
                    self.removed += change.removed;
                }
            }
            Fact::HistoryCompaction(_) => {
                self.compacted = true;
                if self.text.is_empty() {
                    self.text = "[compaction]".into();
                }
            }
            Fact::AssistantMessage(it) => self.answer.clone_from(&it.text),
            Fact::ToolCall(_) => self.tool_calls += 1,
            _ => {}
        }
    }

    /// Takes in an Entry of the Turn that is no part of the conversation.
    fn take_beside(&mut self, entry: &Entry) {
        match &entry.fact {
            Fact::ProviderUsage(it) => {
                self.usage += it.usage;
                self.cost += it.cost;
            }
            Fact::TurnEnded(it) => {
                self.time = entry.ts;
                self.outcome = Some(it.status);
                self.error = it.error.as_ref().map(|error| error.message.clone());
                self.duration_ms = it.duration_ms;
            }
            _ => {}
        }
    }
}

/// Returns the Turns in reading order: the branch with the Head first. A chain of single children is not indented.
/// Branches in the trash are left out.
pub fn nodes(history: &History) -> Vec<Node> {
    let Tree { mut nodes, parents, .. } = Tree::of(history);
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); nodes.len()];
    let mut roots = Vec::new();
    for (at, parent) in parents.iter().enumerate().filter(|(at, _)| !nodes[*at].in_trash) {
        match parent {
            Some(parent) => children[*parent].push(at),
            None => roots.push(at),
        }
    }
    roots.sort_by_key(|at| (!nodes[*at].on_path, *at));
    let several_roots = roots.len() > 1;
    let mut stack: Vec<(usize, usize)> = roots.into_iter().rev().map(|at| (at, usize::from(several_roots))).collect();
    let mut order = Vec::new();
    while let Some((at, depth)) = stack.pop() {
        let mut children = std::mem::take(&mut children[at]);
        children.sort_by_key(|at| (!nodes[*at].on_path, *at));
        let step = usize::from(children.len() > 1);
        stack.extend(children.into_iter().rev().map(|child| (child, depth + step)));
        nodes[at].depth = depth;
        order.push(at);
    }
    let mut nodes: Vec<Option<Node>> = nodes.into_iter().map(Some).collect();
    order.into_iter().filter_map(|at| nodes[at].take()).collect()
}

/// The node that contains the Head.
pub fn head(history: &History) -> Option<Node> {
    nodes(history).into_iter().find(|node| node.is_head)
}

/// The node of the Turn that the user names: by its number, else by its label.
pub fn named(history: &History, name: &str) -> Option<Node> {
    let nodes = nodes(history);
    let number = name.parse::<u32>().ok();
    let by_number = nodes.iter().position(|node| number.is_some() && node.turn == number);
    let is_label = |node: &Node| node.label.as_deref().is_some_and(|it| it.eq_ignore_ascii_case(name));
    let at = by_number.or_else(|| nodes.iter().position(is_label))?;
    nodes.into_iter().nth(at)
}

/// The Inputs that pin a node, or unpin it: its request and its end.
pub fn pins(node: &Node, pinned: bool) -> Vec<Input> {
    let mut seqs = vec![node.seq, node.end_seq];
    seqs.dedup();
    seqs.into_iter().map(|seq| Input::Pin { seq, pinned }).collect()
}

/// The last Entry of the path to the Head that another branch goes on from.
pub fn branch_point(history: &History) -> Option<u64> {
    let on_path: std::collections::HashSet<u64> = history.path().map(|entry| entry.seq).collect();
    let others = history.entries().iter().filter(|entry| entry.fact.is_conversation() && !on_path.contains(&entry.seq));
    others.filter_map(|entry| history.parent(entry.seq)).filter(|seq| on_path.contains(seq)).max()
}

/// Whether a node begins with this Fact: the request of a Turn, or an event between two Turns, such as an undo. That
/// files stayed as they were is no event.
pub fn begins_node(fact: &Fact) -> bool {
    match fact {
        Fact::FilesRestored(it) => it.reason != RestoreReason::Stayed,
        Fact::BranchSummary(_) => true,
        fact => starts_turn(fact),
    }
}

fn changes_of(fact: &Fact) -> &[FileChange] {
    fact.changes()
}

/// The title of a place where a run of a workflow begins or goes on.
fn run_of(event: &WorkflowEvent) -> String {
    match event {
        WorkflowEvent::Planned(it) => format!("workflow {}", it.name),
        WorkflowEvent::Resumed(_) => "the workflow goes on".to_owned(),
        WorkflowEvent::StepStarted(_)
        | WorkflowEvent::StepEnded(_)
        | WorkflowEvent::GateAnswered { .. }
        | WorkflowEvent::Held(_)
        | WorkflowEvent::ChangedSince(_) => String::new(),
    }
}

fn restored(it: &FilesRestored) -> String {
    let files = if it.changes.len() == 1 { "1 file".to_owned() } else { format!("{} files", it.changes.len()) };
    match (it.reason, it.of_turn) {
        (RestoreReason::Undo, Some(turn)) => format!("[undo of turn {turn}: {files}]"),
        (RestoreReason::Redo, Some(turn)) => format!("[redo of turn {turn}: {files}]"),
        (RestoreReason::Hunk, _) => {
            format!("[hunk reverted: {}]", it.changes.first().map_or("", |change| change.path.as_str()))
        }
        (RestoreReason::Stayed, _) => format!("[files stayed as they are: {}]", it.left.len()),
        _ => format!("[{files} restored]"),
    }
}

fn blank(entry: &Entry) -> Node {
    Node {
        turn: None,
        seq: entry.seq,
        end_seq: entry.seq,
        text: String::new(),
        answer: String::new(),
        tool_calls: 0,
        depth: 0,
        on_path: false,
        is_head: false,
        label: None,
        pinned: false,
        files: 0,
        added: 0,
        removed: 0,
        compacted: false,
        is_request: starts_turn(&entry.fact),
        outcome: None,
        error: None,
        time: entry.ts,
        duration_ms: 0,
        usage: Usage::default(),
        cost: Cost::default(),
        in_trash: false,
        before: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::event::{AssistantMessage, BranchRemoved, HeadMoved, SessionId, UserMessage, now};

    fn log(facts: impl IntoIterator<Item = Fact>) -> History {
        let id = SessionId::now();
        History::fold(facts.into_iter().enumerate().map(|(seq, fact)| {
            Arc::new(Entry {
                id: uuid::Uuid::now_v7(),
                session_id: id.clone(),
                seq: seq as u64,
                ts: now(),
                turn: None,
                fact,
                beyond: None,
            })
        }))
    }

    #[test]
    fn two_ways_on_from_one_turn_are_two_branches_and_the_live_one_comes_first() {
        let says = |text: &str| Fact::from(UserMessage { text: text.into(), ..UserMessage::default() });
        let answers = |text: &str| Fact::from(AssistantMessage { text: text.into(), partial: false, phase: None });
        let back = Fact::from(HeadMoved { to_seq: Some(1), reason: "rewind".into() });
        let facts = [says("a"), answers("A"), says("b"), answers("B"), back, says("c"), answers("C")];
        let history = log(facts);
        let seen: Vec<_> =
            nodes(&history).into_iter().map(|n| (n.text, n.answer, n.depth, n.on_path, n.is_head, n.end_seq)).collect();
        let row = |text: &str, answer: &str, depth, on_path, is_head, end| {
            (text.to_owned(), answer.to_owned(), depth, on_path, is_head, end)
        };
        assert_eq!(
            seen,
            [row("a", "A", 0, true, false, 1), row("c", "C", 1, true, true, 6), row("b", "B", 1, false, false, 3)]
        );
    }

    /// A branch in the trash is in no list, and returns with everything that follows it.
    #[test]
    fn a_removed_branch_is_gone_until_the_head_goes_there_or_it_is_restored() {
        let says = |text: &str| Fact::from(UserMessage { text: text.into(), ..UserMessage::default() });
        let to = |to_seq| Fact::from(HeadMoved { to_seq, reason: "rewind".into() });
        let removed = |seq, restored| Fact::from(BranchRemoved { seq, restored });
        let facts = vec![says("a"), says("b"), says("b2"), to(Some(0)), says("c"), removed(1, false)];
        let seen = |more: &[Fact]| {
            let facts = facts.iter().chain(more).cloned();
            nodes(&log(facts)).into_iter().map(|node| node.text).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(seen(&[]), "a c");
        assert_eq!(seen(&[removed(1, true)]), "a c b b2");
        assert_eq!(seen(&[to(Some(2))]), "a b b2 c", "the head is never in the trash");
        assert_eq!(seen(&[removed(4, false)]), "a c", "a removal of the current branch says nothing");
        let history = log(facts.clone());
        assert_eq!(Tree::of(&history).nodes.iter().filter(|node| node.in_trash).count(), 2, "nothing is erased");
    }
}
