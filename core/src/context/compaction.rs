//! Compaction: decides where to cut a long History, and replaces the part before the cut by a summary.

mod branch;
mod by_model;
mod digest;
mod summary;
#[cfg(test)]
mod tests;

use std::sync::Arc;

pub(crate) use branch::{branch, left_behind, with_notes};
pub(crate) use by_model::{Author, NotesRequest, Summary, SummaryRequest};
use digest::Digest;

use crate::conversation::history::{History, length_of, starts_turn};
use crate::protocol::error::{Code, Error, Result};
use crate::protocol::event::{Entry, Fact, HistoryCompaction, StepStatus, Trigger};
use crate::protocol::remedy::Remedy;

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

/// The room that a compaction makes, tokens.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room {
    /// The window.
    pub(crate) window: u64,
    /// The part of it that every request repeats.
    pub(crate) fixed: u64,
    /// How often an earlier compaction for the same request was not enough. Each time half as much stays.
    pub(crate) shrink: u32,
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
        let bytes = self.history() >> self.shrink.min(16);
        usize::try_from(bytes).unwrap_or(usize::MAX).max(MIN_SUMMARY)
    }
}

/// A compaction that is ready to be recorded, and what a model needs to write a better summary for it.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) compaction: HistoryCompaction,
    /// The entries that the summary replaces, with the compaction before them.
    dropped: Vec<Arc<Entry>>,
    digest: Digest,
    /// The longest summary, bytes.
    most: usize,
    /// Tokens of the entries that stay.
    kept: u64,
}

/// Plans a compaction without a model. The newest History stays verbatim, and always the last prompt. The summary has,
/// for each Turn before it, the request, the end of the answer, what changed and what failed. Pinned messages, the plan
/// and active skills are in it word for word.
///
/// # Errors
/// `NOTHING_TO_DO` when the whole History is recent enough to stay.
pub(crate) fn plan(
    history: &History,
    trigger: Trigger,
    instructions: Option<&str>,
    room: Option<Room>,
) -> Result<Plan> {
    let room = room.unwrap_or(Room { window: USUAL_WINDOW, fixed: 0, shrink: 0 });
    // What an earlier compaction replaced is in its summary, so a compaction costs no more in a long Session. What it left
    // verbatim may be dropped now.
    let recent = history.recent_path();
    let before = (history.path().len() - recent.len()) as u64;
    let earlier = history.recent_path().rev().find(|entry| matches!(entry.fact, Fact::HistoryCompaction(_)));
    let path: Vec<&Arc<Entry>> = recent.filter(|entry| !matches!(entry.fact, Fact::HistoryCompaction(_))).collect();
    let cut = find_cut(history, &path, room.verbatim()).ok_or_else(|| {
        Error::new(
            Code::NothingToDo,
            "there is nothing to compact: the whole conversation is recent",
            Remedy::any_of(["continue the conversation".into(), Remedy::NewSession]),
        )
    })?;
    let mut digest = Digest::new(earlier.map(|entry| &entry.fact), instructions);
    for entry in path[..cut].iter().filter(|e| !history.is_untold(&e.fact)) {
        digest.take(entry);
    }
    // Its beginning is dropped and its end is kept, so it is the request that the kept messages continue.
    let continues = !path[cut..].first().is_some_and(|entry| starts_turn(&entry.fact));
    digest.finish(history, path[cut].seq, continues);
    let kept: u64 = path[cut..].iter().filter(|e| !history.is_untold(&e.fact)).map(|e| tokens(&e.fact)).sum();
    let most = room.summary();
    let summary = digest.summary(most);
    let dropped = earlier.into_iter().chain(path[..cut].iter().copied()).cloned().collect();
    let open_tasks = history.plan.iter().filter(|it| it.status != StepStatus::Completed);
    let compaction = HistoryCompaction {
        strategy: DETERMINISTIC.into(),
        trigger,
        kept_from_seq: path[cut].seq,
        tokens_before: history.estimated_tokens(),
        tokens_after: kept + summary.text.len() as u64 / 4,
        entries_dropped: before + cut as u64,
        files_read: newest(&digest.read),
        files_modified: newest(&digest.changed),
        summary: summary.text,
        pinned: digest.pinned.iter().map(|it| it.seq).collect(),
        skills: digest.skills.iter().map(|it| it.seq).collect(),
        turns: summary.turns,
        turns_left_out: summary.left_out,
        notes: digest.notes.clone(),
        model: None,
        open_tasks: open_tasks.map(|it| it.step.clone()).collect(),
        limitations: summary.limitations,
    };
    Ok(Plan { compaction, dropped, digest, most, kept })
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
        after += if history.is_untold(fact) { 0 } else { tokens(fact) };
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

fn tokens(fact: &Fact) -> u64 {
    let bytes = match fact {
        Fact::UserCommand(it) => it.command.len(),
        other => length_of(other),
    };
    bytes as u64 / 4
}
