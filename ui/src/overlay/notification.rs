//! What an overlay is told of while it is open.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use pixir_core::Skill;
use pixir_core::agent::Asker;
use pixir_core::changes::FileDiff;
use pixir_core::diff::{Across, ChangedFile, Changes};
use pixir_core::event::{ContextReport, JobState};
use pixir_core::history::History;
use pixir_core::provider::Offered;
use pixir_core::rule::SavedRule;
use pixir_core::search::{Found, Said};
use pixir_core::servers::ServerState;
use pixir_core::store::Summary;

use super::agents::AgentSteps;
use super::connect::News;
use super::diff::Loaded;
use super::jobs::JobTail;
use super::log::LogTail;
use crate::render::report::Check;
use crate::transcript::Agents;

/// Something that happened while the overlay was open.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Notification<'a> {
    /// The Sessions of the workspace; `current` is open. `forks_of` is the Session whose forks were requested.
    Sessions {
        all: &'a [Summary],
        current: Option<&'a str>,
        forks_of: Option<&'a str>,
    },
    /// The stored Sessions that were asked for; `current` is open.
    StoredSessions {
        all: &'a [Summary],
        current: Option<&'a str>,
    },
    /// The words that are searched are in this Session.
    SessionFound {
        id: &'a str,
        found: &'a Found,
    },
    /// All Sessions are searched.
    SearchEnded,
    /// The last messages of a Session.
    SessionPreview {
        id: &'a str,
        said: &'a [Said],
    },
    /// Models to choose from, and those of the last Sessions.
    Models {
        offered: &'a Offered,
        recent: &'a [String],
        /// The user's favourites.
        favourites: &'a [String],
    },
    /// How MCP servers are.
    Servers(&'a [ServerState]),
    /// A step of connecting a model.
    Connecting(News<'a>),
    Skills(&'a [Skill]),
    /// The text of the skill with this file, or why it cannot be read.
    SkillText {
        path: &'a PathBuf,
        text: &'a std::result::Result<String, String>,
    },
    /// The changed files of the list with this number.
    Changes {
        number: u64,
        changes: &'a Changes,
    },
    /// Files of that list whose lines were counted.
    Counts {
        number: u64,
        files: &'a [(usize, ChangedFile)],
    },
    /// Lines that moved between the files of that list.
    Moves {
        number: u64,
        across: &'a Arc<Across>,
    },
    /// The lines of a file of that list.
    Patch {
        number: u64,
        at: usize,
        loaded: &'a Arc<Loaded>,
    },
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
    /// The last messages and calls of an agent.
    AgentSteps(&'a AgentSteps),
    /// What the Session of the agent with this path has done; an empty path is the user's own.
    PastOf {
        path: &'a [String],
        history: &'a History,
    },
    /// The files that match these letters.
    Files {
        letters: &'a str,
        found: &'a [String],
    },
    /// The end of a job's output.
    JobOutput(&'a JobTail),
    /// The end of the log file.
    Log(&'a LogTail),
    /// The checks of this machine.
    Checks(&'a [Check]),
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
    /// The files of two conversations, compared.
    Compared(&'a [FileDiff]),
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
