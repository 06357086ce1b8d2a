//! What a compaction does with each Entry: units that move together, each in one of three lists.

use std::collections::HashMap;
use std::sync::Arc;

use crate::title;
use conversation::history::{History, is_request};
use conversation::scale::Scale;
use protocol::error::{Code, Error, Result};
use protocol::event::{Entry, Fact, HistoryCompaction, List, PartKind, Segment};
use protocol::input::CompactOptions;

/// A message, or a call with its result.
#[derive(Debug, Clone)]
pub(super) struct Unit {
    /// The places of its Entries on the path, in order.
    pub(super) at: Vec<usize>,
    pub(super) segment: Segment,
    /// It is kept by its words in the summary; the Entry itself goes.
    pub(super) is_repeated: bool,
    /// Why the user cannot move it.
    why_fixed: &'static str,
}

impl Unit {
    /// Its Entries stay in the conversation.
    pub(super) fn stays(&self) -> bool {
        self.segment.list == List::Kept && !self.is_repeated
    }

    fn fix(&mut self, list: List, why: &'static str) {
        self.segment.list = list;
        self.segment.fixed = true;
        self.why_fixed = why;
    }
}

/// The units of a path, in its order. Their lists are as if all of it stayed.
pub(super) fn units(history: &History, path: &[&Arc<Entry>], scale: Scale) -> Vec<Unit> {
    let mut units: Vec<Unit> = Vec::new();
    let mut calls: HashMap<&str, usize> = HashMap::new();
    let mut thinking: Option<usize> = None;
    for (at, entry) in path.iter().enumerate().filter(|(_, entry)| !history.is_untold(&entry.fact)) {
        let tokens = scale.count(history.length_of(entry) as u64 / 4);
        let of_call = match &entry.fact {
            Fact::ToolResult(it) => calls.get(it.call_id.as_str()).copied(),
            Fact::Reasoning(_) => thinking,
            _ => None,
        };
        let is_pinned = history.mark(entry.seq).pinned.is_some();
        if let Some(unit) = of_call.map(|of| &mut units[of]) {
            unit.at.push(at);
            unit.segment.tokens += tokens;
            unit.segment.pinned |= is_pinned;
            continue;
        }
        match &entry.fact {
            Fact::ToolCall(it) => drop(calls.insert(&it.call_id, units.len())),
            Fact::UserCommand(it) => drop(calls.insert(&it.call_id, units.len())),
            Fact::Reasoning(_) => thinking = Some(units.len()),
            _ if tokens == 0 && !is_pinned => continue,
            _ => {}
        }
        units.push(Unit {
            at: vec![at],
            segment: Segment {
                seq: Some(entry.seq),
                kind: entry.fact.part(),
                title: title::of(&entry.fact),
                tokens,
                list: List::Kept,
                pinned: is_pinned,
                fixed: false,
            },
            is_repeated: false,
            why_fixed: "",
        });
    }
    for unit in &mut units {
        if unit.segment.kind == PartKind::Thinking {
            unit.segment.title = "only the model that thought it could read it".to_owned();
            unit.fix(List::Dropped, "thinking is only valid for the conversation as it was");
        }
    }
    units
}

/// Proposes a list for each unit: segments before the cut are summed up, later segments are kept.
pub(super) fn propose(units: &mut [Unit], path: &[&Arc<Entry>], cut: usize) {
    let request = path.iter().rposition(|entry| is_request(&entry.fact));
    for unit in units.iter_mut().filter(|unit| unit.segment.kind != PartKind::Thinking) {
        let first = unit.at[0];
        let is_request = request.is_some_and(|at| unit.at.contains(&at));
        let is_before = first < cut;
        unit.is_repeated = is_before && (unit.segment.pinned || is_request || unit.segment.kind == PartKind::Skill);
        match (is_before, &path[first].fact) {
            _ if unit.segment.pinned => unit.fix(List::Kept, "it is pinned"),
            _ if is_request => unit.fix(List::Kept, "it is your last request"),
            (true, Fact::SkillActivation(_)) => unit.fix(List::Kept, "the skill is active"),
            (true, Fact::ContextChanged(_) | Fact::SkillIndex(_)) => {
                unit.fix(List::Dropped, "pixir tells the model again how things are");
            }
            (true, _) => unit.segment.list = List::SummedUp,
            (false, _) => unit.segment.list = List::Kept,
        }
    }
}

/// Moves units as the user asks.
///
/// # Errors
/// `INVALID_ARGS` for an Entry that is in no unit, or whose unit must stay where it is.
pub(super) fn move_units(units: &mut [Unit], path: &[&Arc<Entry>], options: &CompactOptions) -> Result<()> {
    let moves = [(&options.keep, List::Kept), (&options.sum_up, List::SummedUp), (&options.drop, List::Dropped)];
    if moves.iter().all(|(seqs, _)| seqs.is_empty()) {
        return Ok(());
    }
    let mut of_seq: HashMap<u64, usize> = HashMap::new();
    for (n, unit) in units.iter().enumerate() {
        of_seq.extend(unit.at.iter().map(|at| (path[*at].seq, n)));
    }
    for (seqs, list) in moves {
        for seq in seqs {
            let unit = of_seq.get(seq).map(|n| &mut units[*n]);
            match unit {
                None => return Err(refused(*seq, "no compaction can move it: the next request does not have it")),
                Some(unit) if unit.segment.fixed && unit.segment.list != list => {
                    return Err(refused(*seq, &format!("it cannot be moved: {}", unit.why_fixed)));
                }
                Some(unit) => unit.segment.list = list,
            }
        }
    }
    Ok(())
}

fn refused(seq: u64, why: &str) -> Error {
    Error::new(Code::InvalidArgs, format!("entry {seq}: {why}"), "move another entry").with("input", seq)
}

/// The lists as a recorded compaction made them.
pub(super) fn assign(units: &mut [Unit], path: &[&Arc<Entry>], recorded: &HistoryCompaction) {
    let request = path.iter().rposition(|entry| is_request(&entry.fact));
    for unit in units.iter_mut().filter(|unit| unit.segment.kind != PartKind::Thinking) {
        let has = |seqs: &[u64]| unit.at.iter().any(|at| seqs.contains(&path[*at].seq));
        let seq = path[unit.at[0]].seq;
        let stays = if seq >= recorded.kept_from_seq { !has(&recorded.removed) } else { has(&recorded.kept) };
        let is_told_again = matches!(path[unit.at[0]].fact, Fact::ContextChanged(_) | Fact::SkillIndex(_));
        unit.segment.list = match stays {
            true => List::Kept,
            false if has(&recorded.pinned) || has(&recorded.skills) => List::Kept,
            false if request.is_some_and(|at| unit.at.contains(&at)) => List::Kept,
            false if has(&recorded.dropped) || is_told_again => List::Dropped,
            false => List::SummedUp,
        };
    }
}
