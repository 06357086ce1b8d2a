//! The reports of the Session other than its entries.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use pixir_core::event::{ContextReport, JobState, SessionId, Status};
use pixir_core::provider::models::Step;
use pixir_core::store::Summary;
use pixir_core::{Error, Tier};

use crate::transcript::Agents;

/// The Session on the screen, and where it runs.
#[derive(Debug)]
pub(crate) struct SessionFacts {
    pub(crate) workspace: PathBuf,
    /// The user's home folder.
    pub(crate) home: Option<PathBuf>,
    /// Other places that matter to the user, by name.
    pub(crate) places: Vec<(&'static str, PathBuf)>,
    /// The git branch of the workspace.
    pub(crate) branch: Option<String>,
    /// Files of the repository are changed and not committed, as far as that is known.
    pub(crate) has_changes: bool,
    pub(crate) connection: Connection,
    /// A Provider can be connected here.
    pub(crate) can_connect: bool,
    /// This is the demo: a script plays the model.
    pub(crate) is_demo: bool,
    /// The last Sessions of the workspace, while this one is empty.
    pub(crate) recent: Vec<Summary>,
    /// None until the Session is open.
    pub(crate) id: Option<SessionId>,
    /// A Session is open or opening: an Input will arrive.
    pub(crate) can_send: bool,
    /// The Session can only be read here: another process writes it, or its Log is damaged.
    pub(crate) read_only: bool,
    /// What confines the programs of the Session, once it is open.
    pub(crate) sandbox: Option<Tier>,
    pub(crate) status: Status,
    pub(crate) queue: Queue,
    pub(crate) jobs: Vec<JobState>,
    /// The agents of the user's Session, and which of them is on the screen.
    pub(crate) agents: Agents,
    /// What fills the window of the next request, as the Session listed it last.
    pub(crate) context: Option<Box<ContextReport>>,
    /// The model's window, in tokens.
    pub(crate) window: Option<u64>,
    /// What the model's requests cost more above a length.
    pub(crate) price_step: Option<Step>,
    /// Turns that have ended while the Session was on the screen.
    pub(crate) turns_ended: u64,
}

impl SessionFacts {
    pub(super) fn new(workspace: PathBuf) -> SessionFacts {
        SessionFacts {
            workspace,
            home: None,
            places: Vec::new(),
            branch: None,
            has_changes: false,
            connection: Connection::Starting { said: String::new() },
            can_connect: false,
            is_demo: false,
            recent: Vec::new(),
            id: None,
            can_send: true,
            read_only: false,
            sandbox: None,
            status: Status::Idle,
            queue: Queue::default(),
            jobs: Vec::new(),
            agents: Agents::default(),
            context: None,
            window: None,
            price_step: None,
            turns_ended: 0,
        }
    }

    /// Forgets the Session; the workspace and its connection stay.
    pub(super) fn clear(&mut self) {
        self.id = None;
        self.read_only = false;
        self.sandbox = None;
        self.status = Status::Idle;
        self.queue = Queue::default();
        self.jobs.clear();
        self.agents = Agents::default();
        self.context = None;
    }
}

/// The Provider, as far as it is known.
#[derive(Debug, Clone)]
pub(crate) enum Connection {
    /// `said`: the words of the server that is waited for.
    Starting {
        said: String,
    },
    Ready {
        demo: bool,
        why: String,
        server: String,
    },
    Failed(Error),
}

/// Messages that wait for delivery.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Queue {
    pub(crate) steer: Vec<String>,
    pub(crate) follow_up: Vec<String>,
}

/// The present activity of the running Turn.
#[derive(Debug)]
pub(crate) struct Activity {
    /// The tool whose call the model is writing, and the bytes of it so far.
    pub(crate) writing_call: Option<(String, u64)>,
    /// How many words of a summary the model has written so far.
    pub(crate) summary_words: usize,
    /// The next attempt of a failed request.
    pub(crate) retry: Option<Retry>,
    /// When the model last sent something.
    pub(crate) last_heard: Instant,
    /// When the running Turn began.
    pub(crate) busy_since: Option<Instant>,
    /// The frame of the spinner.
    pub(crate) frame: u64,
}

/// A failed request is sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Retry {
    pub(crate) at: Instant,
    pub(crate) limit: RetryLimit,
}

/// What ends the attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RetryLimit {
    /// The patience, at this moment.
    Until(Instant),
    /// This is the last attempt.
    Last,
    /// The number of attempts.
    Attempts {
        attempt: u32,
        of: u32,
    },
    Unknown,
}

impl RetryLimit {
    /// The limit of an attempt that begins at `at`.
    pub(crate) fn new(at: Instant, attempt: u32, of: Option<u32>, left: Option<Duration>) -> RetryLimit {
        match (of, left) {
            (Some(of), _) if attempt >= of => RetryLimit::Last,
            (_, Some(left)) if left.is_zero() => RetryLimit::Last,
            (_, Some(left)) => RetryLimit::Until(at + left),
            (Some(of), None) => RetryLimit::Attempts { attempt, of },
            (None, None) => RetryLimit::Unknown,
        }
    }
}

impl Activity {
    pub(super) fn new(now: Instant) -> Activity {
        Activity { writing_call: None, summary_words: 0, retry: None, last_heard: now, busy_since: None, frame: 0 }
    }
}
