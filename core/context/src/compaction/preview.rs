//! The preview of a compaction, and the compaction as the user approved it.

use super::division::{assign, units};
use super::{Plan, tokens_of};
use conversation::history::History;
use conversation::scale::Scale;
use protocol::error::{Code, Error, Result};
use protocol::event::{CompactionPreview, Draft, Fact, HistoryCompaction, List, Notes, PartKind, Segment, StepStatus};
use protocol::remedy::Remedy;
use storage::blobs;
use text::clean::clean;

/// The longest summary that the user may write, bytes.
const MAX_EDITED: usize = 64 << 10;

impl Plan {
    /// What the user is shown.
    pub fn preview(&self, history: &History) -> CompactionPreview {
        CompactionPreview {
            compaction: self.compaction.clone(),
            segments: segments(
                history,
                self.room.scale,
                self.earlier_summary(),
                self.units.iter().map(|unit| unit.segment.clone()),
            ),
            appended: self.appended.clone(),
            fixed_tokens: self.room.fixed,
            author: None,
            cost_usd: None,
            draft: Draft::NotAsked,
            token: token(history),
        }
    }

    /// The compaction with the summary that the user saw or edited. `seen` is the compaction of the last preview, whose
    /// author wrote the text if the user has not changed it.
    ///
    /// # Errors
    /// `INVALID_ARGS` for an empty or too long summary.
    pub fn with_text(&self, text: &str, seen: Option<&CompactionPreview>) -> Result<HistoryCompaction> {
        let text = clean(text).trim().to_owned();
        if text.is_empty() || text.len() > MAX_EDITED {
            let most = MAX_EDITED >> 10;
            return Err(Error::new(
                Code::InvalidArgs,
                format!("the summary is empty, or longer than {most} KiB"),
                "write what the model needs to go on",
            ));
        }
        let summary = format!("{text}\n{}", self.appended);
        let by = seen.filter(|seen| seen.body().trim() == text).map(|seen| &seen.compaction);
        let author = by.or(seen.map(|seen| &seen.compaction)).unwrap_or(&self.compaction);
        let is_edited = by.is_none();
        let notes = if is_edited {
            // A later compaction goes on from these words.
            Some(Box::new(Notes { state: text, ..Notes::default() }))
        } else {
            author.notes.clone()
        };
        Ok(HistoryCompaction {
            tokens_after: self.kept + tokens_of(&summary, self.room.scale),
            summary,
            strategy: author.strategy.clone(),
            model: author.model.clone(),
            turns: if is_edited { Vec::new() } else { author.turns.clone() },
            turns_left_out: if is_edited { 0 } else { author.turns_left_out },
            limitations: author.limitations.clone(),
            notes,
            edited: is_edited,
            ..self.compaction.clone()
        })
    }

    /// Checks that the next request fits.
    ///
    /// # Errors
    /// `CONTEXT_OVERFLOW`.
    pub fn check_fits(&self, compaction: &HistoryCompaction) -> Result<()> {
        let (window, needed) = (self.room.window, self.room.fixed + compaction.tokens_after);
        if compaction.window.is_none() || needed < window {
            return Ok(());
        }
        let message =
            format!("what is kept does not fit: it needs about {needed} of the {window} tokens of the window");
        Err(Error::new(Code::ContextOverflow, message, "move more entries to the summary, or drop them")
            .with("tokens", needed)
            .with("window", window))
    }

    fn earlier_summary(&self) -> Option<Segment> {
        let entry = self.about.first().filter(|it| matches!(it.fact, Fact::HistoryCompaction(_)))?;
        Some(summary_segment(entry.seq, &entry.fact, self.room.scale))
    }
}

/// The preview of another state of the conversation was approved.
pub fn is_stale() -> Error {
    Error::new(
        Code::PreviewStale,
        "the conversation has changed since this preview, so nothing was compacted",
        Remedy::any_of(["open the preview again".into()]),
    )
}

/// Names the state of a conversation: any change of its path, its pins or what is dropped gives another token.
pub fn token(history: &History) -> String {
    let mut text = format!("{:?}", history.head());
    for entry in history.recent_path() {
        let mark = history.mark(entry.seq);
        if mark.pinned.is_some() || mark.dropped.is_some() {
            text.push_str(&format!(" {}:{}{}", entry.seq, mark.pinned.is_some(), mark.dropped.is_some()));
        }
    }
    for pinned in history.pinned() {
        text.push_str(&format!(" {}", pinned.seq));
    }
    blobs::name_of(text.as_bytes())
}

/// What a recorded compaction kept, summed up and dropped.
pub fn recorded(history: &History, seq: u64) -> Option<CompactionPreview> {
    let Fact::HistoryCompaction(it) = &history.entry(seq)?.fact else { return None };
    let before = History::fold(history.entries().iter().take_while(|entry| entry.seq < seq).cloned());
    let is_summary = |fact: &Fact| matches!(fact, Fact::HistoryCompaction(_));
    let path: Vec<_> = before.recent_path().filter(|entry| !is_summary(&entry.fact)).collect();
    let scale = Scale::of(it.tokens_before, before.estimated_tokens());
    let mut units = units(&before, &path, scale);
    assign(&mut units, &path, it);
    let earlier = before.recent_path().find(|entry| is_summary(&entry.fact));
    let earlier = earlier.map(|entry| summary_segment(entry.seq, &entry.fact, scale));
    Some(CompactionPreview {
        segments: segments(
            &before,
            scale,
            earlier,
            units.into_iter().map(|unit| Segment { fixed: true, ..unit.segment }),
        ),
        appended: String::new(),
        fixed_tokens: 0,
        author: it.model.clone(),
        cost_usd: None,
        draft: Draft::NotAsked,
        token: String::new(),
        compaction: (**it).clone(),
    })
}

fn summary_segment(seq: u64, fact: &Fact, scale: Scale) -> Segment {
    let tokens = if let Fact::HistoryCompaction(it) = fact { tokens_of(&it.summary, scale) } else { 0 };
    Segment {
        seq: Some(seq),
        kind: PartKind::Summary,
        title: "of the earlier conversation".to_owned(),
        tokens,
        list: List::SummedUp,
        pinned: false,
        fixed: true,
    }
}

/// The segments of a preview: the summary of an earlier compaction, the units, the plan.
fn segments(
    history: &History,
    scale: Scale,
    earlier: Option<Segment>,
    units: impl Iterator<Item = Segment>,
) -> Vec<Segment> {
    let open = history.plan.iter().filter(|it| it.status != StepStatus::Completed).count();
    let plan = (!history.plan.is_empty()).then(|| Segment {
        seq: None,
        kind: PartKind::Plan,
        title: format!("{} steps, {open} open", history.plan.len()),
        tokens: history.plan.iter().map(|it| tokens_of(&it.step, scale)).sum(),
        list: List::Kept,
        pinned: false,
        fixed: true,
    });
    earlier.into_iter().chain(units).chain(plan).collect()
}
