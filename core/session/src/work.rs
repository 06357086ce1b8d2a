//! What runs beside the actor: a Turn, or a restore, a fork, a move of the head. Each has a task and reports of its own.

use std::time::Instant;

use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

use call::Answers;
use door::Reply;
use protocol::error::Error;
use protocol::event::{Approval, Cost, Form, GitState, Usage};
use protocol::input::Decision;
use turn::Report;

/// A Session has at most one.
pub(super) struct Work {
    pub(super) job: Job,
    /// The name of the Input that began it; a refusal says it.
    pub(super) input: &'static str,
    pub(super) task: JoinHandle<()>,
    /// Dropping this end is the end of what the work can record.
    pub(super) reports: mpsc::Receiver<Report>,
}

pub(super) enum Job {
    Turn(Box<RunningTurn>),
    Travel(RunningTravel),
}

/// The running Turn, as its Session sees it.
pub(super) struct RunningTurn {
    pub(super) number: u32,
    pub(super) began: Instant,
    /// Tells the Turn that a steer waits.
    pub(super) steered: watch::Sender<bool>,
    /// Tells the Turn once that it has reached a limit.
    pub(super) wind_up: Option<oneshot::Sender<Error>>,
    pub(super) usage: Usage,
    pub(super) usage_estimated: bool,
    pub(super) cost: Cost,
    pub(super) tool_calls: u64,
    /// The repository as it was when the Turn began; `None` until the Session has looked.
    pub(super) repository: Option<Option<GitState>>,
    /// Oldest first; none replaces another.
    pub(super) approvals: Vec<OpenApproval>,
    pub(super) forms: Vec<OpenForm>,
}

pub(super) struct OpenApproval {
    pub(super) approval: Approval,
    pub(super) reply: oneshot::Sender<Option<Decision>>,
}

pub(super) struct OpenForm {
    pub(super) form: Form,
    pub(super) reply: oneshot::Sender<Option<Answers>>,
}

/// A restore, a fork or a move of the head. It is not aborted: it stops by itself, so that what it did is recorded.
pub(super) struct RunningTravel {
    pub(super) interrupt: watch::Sender<bool>,
    pub(super) reply: Option<Reply>,
}

impl RunningTurn {
    pub(super) fn new(number: u32, steered: watch::Sender<bool>, wind_up: oneshot::Sender<Error>) -> RunningTurn {
        RunningTurn {
            number,
            began: Instant::now(),
            steered,
            wind_up: Some(wind_up),
            usage: Usage::default(),
            usage_estimated: false,
            cost: Cost::default(),
            tool_calls: 0,
            repository: None,
            approvals: Vec::new(),
            forms: Vec::new(),
        }
    }
}

impl Work {
    pub(super) fn turn(&self) -> Option<&RunningTurn> {
        match &self.job {
            Job::Turn(turn) => Some(turn),
            Job::Travel(_) => None,
        }
    }

    pub(super) fn turn_mut(&mut self) -> Option<&mut RunningTurn> {
        match &mut self.job {
            Job::Turn(turn) => Some(turn),
            Job::Travel(_) => None,
        }
    }
}

/// The next report of the work; pending as long as there is none.
pub(super) async fn next_report(work: &mut Option<Work>) -> Option<Report> {
    match work {
        Some(work) => work.reports.recv().await,
        None => std::future::pending().await,
    }
}
