//! How a Turn can end.

use serde_json::{Map, Value};

use call::Call;
use protocol::call_info::CallInfo;
use protocol::error::{Code, Error};
use protocol::event::TurnStatus;
use protocol::remedy::{ModelNeed, Remedy};

/// After how many rounds in a row with the same calls, all failed, the Turn ends.
pub(super) const MAX_CIRCLES: u32 = 6;

/// How a Turn ended.
pub struct Outcome {
    pub status: TurnStatus,
    pub error: Option<Error>,
    pub details: Map<String, Value>,
}

impl Outcome {
    pub(super) fn completed() -> Outcome {
        Outcome { status: TurnStatus::Completed, error: None, details: Map::new() }
    }

    pub fn failed(error: Error) -> Outcome {
        let status = if error.code == Code::StreamIdleTimeout { TurnStatus::TimedOut } else { TurnStatus::Failed };
        Outcome { status, error: Some(error), details: Map::new() }
    }

    pub(super) fn incomplete(error: Error) -> Outcome {
        Outcome { status: TurnStatus::Incomplete, error: Some(error), details: Map::new() }
    }
}

/// Detects a model that repeats calls that fail.
#[derive(Default)]
pub(super) struct LoopGuard {
    last: Vec<(String, Value)>,
    rounds: u32,
}

impl LoopGuard {
    /// Counts a round. Returns true when too many equal rounds have failed.
    pub(super) fn goes_on(&mut self, calls: Vec<(Call, CallInfo)>, failed: bool) -> bool {
        let asked: Vec<_> = calls.into_iter().map(|(call, _)| (call.tool, call.args)).collect();
        self.rounds = match (failed, asked == self.last) {
            (true, true) => self.rounds + 1,
            (true, false) => 1,
            (false, _) => 0,
        };
        self.last = asked;
        self.rounds >= MAX_CIRCLES
    }
}

pub(super) fn empty_answer() -> Outcome {
    let other = Remedy::ChooseModel { need: ModelNeed::Any };
    let fix = Remedy::any_of(["send it again".into(), "request less at once".into(), other]);
    Outcome::incomplete(Error::new(Code::EmptyAnswer, "the model ended without an answer", fix))
}

/// How often a report may be invalid.
const MAX_INVALID: u32 = 3;

/// What a Turn knows of the report that ends it.
#[derive(Debug, Default)]
pub(super) struct Reported {
    is_valid: bool,
    invalid: u32,
    was_reminded: bool,
}

impl Reported {
    /// A call of `report` has this result.
    pub(super) fn take(&mut self, is_valid: bool) {
        self.is_valid |= is_valid;
        self.invalid += u32::from(!is_valid);
    }

    /// How the Turn ends after a round of calls; `None` where it goes on.
    pub(super) fn ending(&self) -> Option<Outcome> {
        if self.is_valid {
            return Some(Outcome::completed());
        }
        let message = format!("the report did not have its form {MAX_INVALID} times");
        let error = || Error::new(Code::ResultInvalid, message, "give a simpler form, or ask for words");
        (self.invalid >= MAX_INVALID).then(|| Outcome::failed(error()))
    }

    /// How the Turn ends with an answer that calls nothing; `None` the first time, which is to be followed by a reminder.
    pub(super) fn missing(&mut self) -> Option<Outcome> {
        let error = || {
            Error::new(Code::ResultMissing, "it ended without its report", "read what it said, or tell it to report")
        };
        std::mem::replace(&mut self.was_reminded, true).then(|| Outcome::incomplete(error()))
    }
}

/// Creates the outcome of an answer that was ended because it was too large. The part that arrived is kept.
pub(super) fn too_large(error: Error) -> Outcome {
    let details = Map::from_iter([("output_truncation".to_owned(), Value::from("answer_limit"))]);
    Outcome { details, ..Outcome::incomplete(error) }
}

/// Creates the outcome of an answer that was ended because it repeated itself. The part that arrived is kept.
pub(super) fn text_loop(error: Error) -> Outcome {
    let details = Map::from_iter([("output_truncation".to_owned(), Value::from("text_loop"))]);
    Outcome { details, ..Outcome::incomplete(error) }
}

/// Creates the outcome of an incomplete answer. The part that arrived is recorded.
pub(super) fn cut_short(reason: &str) -> Outcome {
    let other = || Remedy::ChooseModel { need: ModelNeed::Any };
    let (code, said, fix) = match reason {
        "refusal" | "content_filter" => {
            let fix = Remedy::any_of(["rephrase the request".into(), other()]);
            (Code::Refused, "the provider stopped the answer", fix)
        }
        "model_context_window_exceeded" => {
            let fix = Remedy::steps([Remedy::Compact, "send “continue”".into()]);
            (Code::ContextOverflow, "the window was full before the answer was complete", fix)
        }
        _ => (
            Code::OutputTruncated,
            "the model stopped before its answer was complete",
            Remedy::text("send “continue”, or request less at once"),
        ),
    };
    let error = Error::new(code, format!("{said} ({reason})"), fix);
    let details = Map::from_iter([("output_truncation".to_owned(), Value::from(reason))]);
    Outcome { details, ..Outcome::incomplete(error) }
}
