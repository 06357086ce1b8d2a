//! Compaction: decides where to cut a long History, and replaces the part before the cut by a summary.

mod branch;
mod by_model;
mod digest;
mod division;
mod newest;
mod preview;
mod summary;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::Arc;

pub use branch::{branch, left_behind, with_notes};
pub use by_model::{Author, NotesRequest, Summary, SummaryRequest};
use digest::Digest;
use division::{Unit, move_units, propose, units};
pub use newest::too_long;
pub use preview::recorded;
pub use preview::{is_stale, token};
use summary::Made;

use conversation::history::{History, is_request, starts_turn};
use conversation::scale::Scale;
use protocol::error::{Code, Error, Result};
use protocol::event::{Entry, Fact, HistoryCompaction, List, StepStatus, Trigger};
use protocol::input::CompactOptions;
use protocol::remedy::Remedy;

/// The window that is assumed where neither the model table nor the server states one, in tokens.
const USUAL_WINDOW: u64 = 128_000;
/// The least part of a summary, bytes.
const MIN_SUMMARY: usize = 800;
/// The most files of each list that a compaction records.
const MAX_FILES: usize = 2_000;

/// The strategy of a compaction without a model.
pub(crate) const DETERMINISTIC: &str = "deterministic";
/// The strategy of a compaction whose summary a model wrote.
pub(crate) const BY_MODEL: &str = "model";

/// The room that a compaction makes, tokens in the Provider's count.
#[derive(Debug, Clone, Copy)]
pub struct Room {
    /// The window.
    pub window: u64,
    /// The part of it that every request repeats.
    pub fixed: u64,
    /// How the Provider counts.
    pub scale: Scale,
    /// How often an earlier compaction for the same request was not enough. Each time half as much stays.
    pub shrink: u32,
}

impl Room {
    /// Tokens that the History may have.
    fn history(self) -> u64 {
        self.window.saturating_sub(self.fixed)
    }

    /// Tokens of the newest History that stay verbatim: a quarter of a small window, a sixteenth of a large one.
    fn verbatim(self) -> u64 {
        let usual = (self.history() / 4).min((self.window / 16).max(USUAL_WINDOW / 16));
        usual >> self.shrink.min(16)
    }

    /// The longest summary, bytes: a quarter of the room, at four bytes a token.
    fn summary(self) -> usize {
        let bytes = self.scale.estimate(self.history()) >> self.shrink.min(16);
        usize::try_from(bytes).unwrap_or(usize::MAX).max(MIN_SUMMARY)
    }
}

/// A compaction that is ready to be recorded, and what a model needs to write a better summary for it.
#[derive(Debug)]
pub struct Plan {
    pub compaction: HistoryCompaction,
    /// What the model reads to write the summary: the entries that it replaces, without those that the user dropped, and
    /// the compaction before them.
    about: Vec<Arc<Entry>>,
    digest: Digest,
    /// What the compaction does with each part of the conversation.
    units: Vec<Unit>,
    /// The end of the summary, which repeats texts word for word.
    appended: String,
    room: Room,
    /// Tokens of the entries that stay.
    kept: u64,
}

/// Plans a compaction without a model. The newest History stays verbatim, and always the last prompt. The summary has,
/// for each Turn before it, the request, the end of the answer, what changed and what failed. Pinned messages, the plan
/// and active skills are in it word for word.
///
/// # Errors
/// `NOTHING_TO_DO` when the whole History is recent enough to stay.
pub fn plan(history: &History, trigger: Trigger, instructions: Option<&str>, room: Option<Room>) -> Result<Plan> {
    plan_with(history, trigger, instructions, room, &CompactOptions::default())
}

/// Plans a compaction with what the user has moved to another list.
///
/// # Errors
/// `NOTHING_TO_DO` as above, and when nothing is left to replace; `INVALID_ARGS` for an Entry that cannot be moved.
pub fn plan_with(
    history: &History,
    trigger: Trigger,
    instructions: Option<&str>,
    room: Option<Room>,
    options: &CompactOptions,
) -> Result<Plan> {
    let window = room.map(|it| it.window);
    let room = room.unwrap_or(Room { window: USUAL_WINDOW, fixed: 0, scale: Scale::default(), shrink: 0 });
    // What an earlier compaction replaced is in its summary, so a compaction costs no more in a long Session. What it left
    // verbatim may be dropped now.
    let is_compaction = |entry: &&Arc<Entry>| matches!(entry.fact, Fact::HistoryCompaction(_));
    let earlier = history.recent_path().rfind(is_compaction);
    let path: Vec<&Arc<Entry>> = history.recent_path().filter(|entry| !is_compaction(entry)).collect();
    let cut = find_cut(history, &path, room.scale.estimate(room.verbatim())).ok_or_else(nothing_to_do)?;
    let mut units = units(history, &path, room.scale);
    propose(&mut units, &path, cut);
    move_units(&mut units, &path, options)?;
    // Thinking does not survive a compaction. What is in no unit shows the model nothing.
    let mut stays: Vec<bool> =
        path.iter().enumerate().map(|(at, entry)| at >= cut && !matches!(entry.fact, Fact::Reasoning(_))).collect();
    let mut is_dropped = vec![false; path.len()];
    for unit in &units {
        let segment = &unit.segment;
        for at in &unit.at {
            stays[*at] = unit.stays();
            is_dropped[*at] = segment.list == List::Dropped && !segment.fixed;
        }
    }
    let is_told = |at: usize| !history.is_untold(&path[at].fact) && !is_thinking(path[at]);
    let replaced: Vec<usize> =
        (0..path.len()).filter(|at| !stays[*at] && (*at < cut || !is_thinking(path[*at]))).collect();
    if !replaced.iter().any(|at| is_told(*at)) {
        return Err(nothing_to_do());
    }
    let mut digest = Digest::new(earlier.map(|entry| &entry.fact), instructions);
    for at in replaced.iter().copied().filter(|at| is_told(*at) && !is_dropped[*at]) {
        // What the user dropped from the context is not for a summary either.
        if !history.is_dropped(path[at].seq) {
            digest.take(path[at]);
        }
    }
    // Its beginning goes and its end stays, so it is the request that the kept messages continue.
    let first = (cut..path.len()).find(|at| stays[*at]);
    let request = (0..first.unwrap_or(path.len())).rev().find(|at| is_request(&path[*at].fact));
    let continues =
        !first.is_some_and(|at| starts_turn(&path[at].fact)) && request.is_none_or(|at| !stays[at] && !is_dropped[at]);
    let kept: BTreeSet<u64> = (0..path.len()).filter(|at| stays[*at]).map(|at| path[at].seq).collect();
    digest.finish(history, &kept, continues);
    let stay = (0..path.len()).filter(|at| stays[*at] && is_told(*at));
    let kept_tokens = room.scale.count(stay.map(|at| tokens(history, path[at])).sum());
    let Made { text, appended_from, turns, left_out, limitations } = summary::without_model(&digest, room.summary());
    let appended = text[appended_from..].to_owned();
    // The model reads all that was before the cut, so that its request begins as the last one did. Thinking is only valid
    // with exactly that.
    let is_moved = replaced.iter().any(|at| *at >= cut || is_dropped[*at]);
    let reads = |at: usize| (at < cut || !stays[at]) && !is_dropped[at];
    let about = (0..path.len()).filter(|at| reads(*at) && (!is_thinking(path[*at]) || (*at < cut && !is_moved)));
    let about = earlier.into_iter().chain(about.map(|at| path[at])).cloned().collect();
    let kept_from_seq = path[cut].seq.max(history.last_compaction().map_or(0, |it| it.kept_from_seq));
    let removed_before = history.last_compaction().map_or(&[][..], |it| &it.removed);
    let removed_now = replaced.iter().map(|at| path[*at].seq);
    let removed = removed_before.iter().copied().chain(removed_now).filter(|seq| *seq >= kept_from_seq);
    let before = history.path().len() - history.recent_path().count();
    let open_tasks = history.plan.iter().filter(|it| it.status != StepStatus::Completed);
    let compaction = HistoryCompaction {
        strategy: DETERMINISTIC.into(),
        trigger,
        kept_from_seq,
        tokens_before: room.scale.count(history.estimated_tokens()),
        tokens_after: kept_tokens + tokens_of(&text, room.scale),
        entries_dropped: (before + replaced.len()) as u64,
        files_read: newest(&digest.read),
        files_modified: newest(&digest.changed),
        kept: kept.iter().copied().filter(|seq| *seq < kept_from_seq).collect(),
        removed: removed.collect(),
        dropped: (0..path.len()).filter(|at| is_dropped[*at]).map(|at| path[at].seq).collect(),
        edited: false,
        window,
        summary: text,
        pinned: digest.pinned.iter().map(|it| it.seq).collect(),
        skills: digest.skills.iter().map(|it| it.seq).collect(),
        turns,
        turns_left_out: left_out,
        notes: digest.notes.clone(),
        model: None,
        open_tasks: open_tasks.map(|it| it.step.clone()).collect(),
        limitations,
    };
    Ok(Plan { compaction, about, digest, units, appended, room, kept: kept_tokens })
}

fn nothing_to_do() -> Error {
    Error::new(
        Code::NothingToDo,
        "there is nothing to compact: the whole conversation is recent",
        Remedy::any_of(["continue the conversation".into(), Remedy::NewSession]),
    )
}

fn is_thinking(entry: &Entry) -> bool {
    matches!(entry.fact, Fact::Reasoning(_))
}

/// The last names of a list, which are those that were used last.
fn newest(names: &[String]) -> Vec<String> {
    names[names.len().saturating_sub(MAX_FILES)..].to_vec()
}

/// Returns the earliest cut with at most `keep` tokens after it: at the start of a Turn, else between two rounds.
fn find_cut(history: &History, path: &[&Arc<Entry>], keep: u64) -> Option<usize> {
    let mut after = 0;
    let mut whole_turn = None;
    let mut step = None;
    let mut unanswered = 0_i64;
    for at in (0..path.len()).rev() {
        let fact = &path[at].fact;
        after += if history.is_untold(fact) { 0 } else { tokens(history, path[at]) };
        match fact {
            Fact::ToolResult(_) => unanswered += 1,
            Fact::ToolCall(_) | Fact::UserCommand(_) => unanswered -= 1,
            _ => {}
        }
        if after > keep && (whole_turn.is_some() || step.is_some()) {
            break;
        }
        if starts_turn(fact) {
            whole_turn = Some(at);
        }
        let new_step =
            at > 0 && matches!(path[at - 1].fact, Fact::ToolResult(_)) && !matches!(fact, Fact::ToolResult(_));
        if unanswered == 0 && new_step {
            step = Some(at);
        }
    }
    // A cut before the first Turn would leave nothing to summarize.
    whole_turn.filter(|at| *at > 0).or_else(|| step.filter(|at| *at > 0 && after > keep))
}

fn tokens(history: &History, entry: &Arc<Entry>) -> u64 {
    history.length_of(entry) as u64 / 4
}

/// Expected tokens of a text in the Provider's count.
fn tokens_of(text: &str, scale: Scale) -> u64 {
    scale.count(text.len() as u64 / 4)
}
