//! Branches of one conversation, read from its History and never stored.

use crate::conversation::history::{History, starts_turn};
use crate::protocol::event::{Fact, FilesRestored, RestoreReason};

/// One Turn in the tree: a request and where its answer ended.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
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
    /// The number of files that tools changed in the Turn.
    pub files: u32,
    /// The Entry before the request.
    pub before: Option<u64>,
}

/// Returns the Turns in reading order: the branch with the Head first. A chain of single children is not indented.
pub fn nodes(history: &History) -> Vec<Node> {
    let mut turns: Vec<Turn> = Vec::new();
    // For each entry of the Log, the Turn that it belongs to.
    let mut owner: Vec<(u64, usize)> = Vec::new();
    for entry in history.entries().iter().filter(|e| e.fact.is_conversation()) {
        let parent = history.parent(entry.seq);
        let parent_turn = parent.and_then(|seq| owner.binary_search_by_key(&seq, |(s, _)| *s).ok()).map(|i| owner[i].1);
        let own = match parent_turn {
            Some(turn) if !begins_node(&entry.fact) => turn,
            _ => {
                turns.push(Turn { parent: parent_turn, node: blank(entry.seq), children: Vec::new() });
                let new = turns.len() - 1;
                if let Some(parent) = parent_turn {
                    turns[parent].children.push(new);
                }
                new
            }
        };
        owner.push((entry.seq, own));
        let node = &mut turns[own].node;
        node.end_seq = entry.seq;
        node.turn = node.turn.or(entry.turn);
        match &entry.fact {
            Fact::UserMessage(it) if node.text.is_empty() => node.text.clone_from(&it.text),
            Fact::UserCommand(it) if node.text.is_empty() => node.text = it.typed(),
            Fact::SkillActivation(it) if node.text.is_empty() => node.text = format!("skill {} {}", it.name, it.args),
            Fact::BranchSummary(it) => {
                node.text = "[summary of the abandoned branch]".into();
                node.answer.clone_from(&it.summary);
            }
            Fact::FilesRestored(it) => node.text = restored(it),
            Fact::ToolResult(it) => node.files += u32::try_from(it.changes.len()).unwrap_or(u32::MAX),
            Fact::HistoryCompaction(_) if node.text.is_empty() => node.text = "[compaction]".into(),
            Fact::AssistantMessage(it) => node.answer.clone_from(&it.text),
            Fact::ToolCall(_) => node.tool_calls += 1,
            _ => {}
        }
    }
    mark_path(history, &mut turns, &owner);
    for (seq, own) in &owner {
        let (mark, node) = (history.mark(*seq), &mut turns[*own].node);
        node.pinned |= mark.pinned.is_some();
        if mark.text.is_some() {
            node.label = mark.text;
        }
    }
    for turn in &mut turns {
        turn.node.before = history.parent(turn.node.seq);
    }
    in_reading_order(turns)
}

/// The last Entry of the path to the Head that another branch goes on from.
pub fn branch_point(history: &History) -> Option<u64> {
    let on_path: std::collections::HashSet<u64> = history.path().map(|entry| entry.seq).collect();
    let others = history.entries().iter().filter(|entry| entry.fact.is_conversation() && !on_path.contains(&entry.seq));
    others.filter_map(|entry| history.parent(entry.seq)).filter(|seq| on_path.contains(seq)).max()
}

/// Whether a node begins with this Fact: the request of a Turn, or an event between two Turns, such as an undo.
pub fn begins_node(fact: &Fact) -> bool {
    starts_turn(fact) || matches!(fact, Fact::BranchSummary(_) | Fact::FilesRestored(_))
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
        _ => format!("[{files} set back]"),
    }
}

struct Turn {
    parent: Option<usize>,
    node: Node,
    children: Vec<usize>,
}

fn blank(seq: u64) -> Node {
    Node {
        turn: None,
        seq,
        end_seq: seq,
        text: String::new(),
        answer: String::new(),
        tool_calls: 0,
        depth: 0,
        on_path: false,
        is_head: false,
        label: None,
        pinned: false,
        files: 0,
        before: None,
    }
}

fn mark_path(history: &History, turns: &mut [Turn], owner: &[(u64, usize)]) {
    let Some(head) =
        history.head().and_then(|seq| owner.binary_search_by_key(&seq, |(s, _)| *s).ok()).map(|i| owner[i].1)
    else {
        return;
    };
    turns[head].node.is_head = true;
    let mut at = Some(head);
    while let Some(turn) = at {
        turns[turn].node.on_path = true;
        at = turns[turn].parent;
    }
}

fn in_reading_order(mut turns: Vec<Turn>) -> Vec<Node> {
    let mut roots: Vec<usize> = (0..turns.len()).filter(|i| turns[*i].parent.is_none()).collect();
    roots.sort_by_key(|i| (!turns[*i].node.on_path, *i));
    let several_roots = roots.len() > 1;
    let mut stack: Vec<(usize, usize)> = roots.into_iter().rev().map(|i| (i, usize::from(several_roots))).collect();
    let mut nodes = Vec::new();
    while let Some((at, depth)) = stack.pop() {
        let mut children = std::mem::take(&mut turns[at].children);
        children.sort_by_key(|i| (!turns[*i].node.on_path, *i));
        let step = usize::from(children.len() > 1);
        stack.extend(children.into_iter().rev().map(|child| (child, depth + step)));
        nodes.push(Node { depth, ..turns[at].node.clone() });
    }
    nodes
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    use crate::protocol::event::{AssistantMessage, Entry, HeadMoved, SessionId, UserMessage, now};

    #[test]
    fn two_ways_on_from_one_turn_are_two_branches_and_the_live_one_comes_first() {
        let says = |text: &str| Fact::from(UserMessage { text: text.into(), ..UserMessage::default() });
        let answers = |text: &str| Fact::from(AssistantMessage { text: text.into(), partial: false, phase: None });
        let back = Fact::from(HeadMoved { to_seq: Some(1), reason: "rewind".into() });
        let facts = [says("a"), answers("A"), says("b"), answers("B"), back, says("c"), answers("C")];
        let id = SessionId::now();
        let history = History::fold(facts.into_iter().enumerate().map(|(seq, fact)| {
            Arc::new(Entry {
                id: uuid::Uuid::now_v7(),
                session_id: id.clone(),
                seq: seq as u64,
                ts: now(),
                turn: None,
                fact,
                beyond: None,
            })
        }));
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
}
