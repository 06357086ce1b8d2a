//! Events that change what an open overlay shows.

use std::sync::Arc;
use std::time::Duration;

use pixir_core::agent::Asker;
use pixir_core::event::{ContextReport, JobState};
use pixir_core::history::History;
use pixir_core::rule::SavedRule;
use pixir_core::servers::ServerState;

use super::connect::News;
use crate::transcript::Agents;

/// Something that happened while the overlay was open.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Notification<'a> {
    /// How MCP servers are.
    Servers(&'a [ServerState]),
    /// A step of connecting a model.
    Connecting(News<'a>),
    /// An Input was refused, for this reason; a protected file can be written if the user allows it.
    Refused {
        why: &'a str,
        is_protected: bool,
    },
    /// The background jobs, and the time now, since 1970.
    Jobs {
        all: &'a [JobState],
        now: Duration,
    },
    /// The agents of the Session.
    Agents(&'a Agents),
    /// The files that match these letters.
    Files {
        letters: &'a str,
        found: &'a [String],
    },
    /// The rules in force, and what could not be read.
    Rules {
        rules: &'a [SavedRule],
        warning: Option<&'a str>,
    },
    /// Labels, pins or the trash have changed.
    Branches(&'a History),
    /// The conversation has a new Entry, the last one of its History.
    Recorded {
        history: &'a History,
        entry: &'a Arc<pixir_core::Entry>,
    },
    /// More of the notes that a model writes for a summary, as JSON.
    SummaryDelta(&'a str),
    /// What fills the window of the next request.
    Context {
        report: &'a ContextReport,
        history: &'a History,
    },
    /// A call has its result, so it does not wait for an answer any more.
    CallEnded(&'a str),
    /// What an agent's call asked is no longer open.
    AnswerTaken {
        call_id: &'a str,
        agent: &'a Asker,
    },
    TurnEnded,
}
