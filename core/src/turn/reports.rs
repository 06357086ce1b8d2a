//! What a Turn and other work tell their Session. Dropping the receiving end is the end of what they can record.

use std::sync::Arc;

use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};

use crate::call::{Answers, Gone, Standing};
use crate::protocol::error::Error;
use crate::protocol::event::{Approval, Fact, Form, Live, Toolset};
use crate::protocol::input::{Accepted, Decision};
use crate::provider::models::Facts;
use crate::provider::{Provider, Request};
use crate::turn::Outcome;

/// Reports that wait for the Session, at most. A Session that waits for its disk holds up its own Turn, and nothing piles up.
const WAITING: usize = 64;

/// One report; the sender waits for the reply of those that carry one.
pub(crate) enum Report {
    /// The Turn wants to send the next request.
    NextStep(oneshot::Sender<Step>),
    /// Something happened that has to be recorded.
    Record { fact: Box<Fact>, reply: oneshot::Sender<()> },
    /// Something is happening.
    Live(Live),
    /// Asks for the mode and the rules in force.
    Standing(oneshot::Sender<Standing>),
    /// A call waits for the user's decision.
    RequestApproval { approval: Approval, reply: oneshot::Sender<Decision> },
    /// A call waits for the user's answers.
    OpenForm { form: Form, reply: oneshot::Sender<Option<Answers>> },
    /// The Provider refused the request as too long.
    Compact { reply: oneshot::Sender<Result<(), Error>> },
    /// The Provider refused the reasoning that it returned earlier.
    ForgetReasoning { reply: oneshot::Sender<()> },
    /// The Turn is over.
    Done(Outcome),
    /// A restore, a fork or a move of the head is over.
    Arrived(Result<Accepted, Halt>),
}

/// Why a restore, a fork or a move of the head did not reach its end.
#[derive(Debug)]
pub(crate) enum Halt {
    Failed(Error),
    /// The user interrupted it. What it had done is recorded; this says what it left.
    Interrupted {
        left: String,
    },
}

/// What the next request needs.
pub(crate) struct Step {
    pub(crate) provider: Arc<dyn Provider>,
    pub(crate) facts: Facts,
    pub(crate) toolset: Toolset,
    pub(crate) request: Request,
}

/// The sending end.
#[derive(Debug, Clone)]
pub(crate) struct Reports(mpsc::Sender<Report>);

impl Reports {
    pub(crate) fn channel() -> (Reports, mpsc::Receiver<Report>) {
        let (sender, receiver) = mpsc::channel(WAITING);
        (Reports(sender), receiver)
    }

    /// Sends a report; waits while too many wait already.
    pub(crate) async fn send(&self, report: Report) -> Result<(), Gone> {
        self.0.send(report).await.map_err(|_| Gone)
    }

    /// Sends a live event if there is room for it; else it comes back.
    pub(super) fn try_live(&self, live: Live) -> Option<Live> {
        match self.0.try_reserve() {
            Ok(room) => room.send(Report::Live(live)),
            Err(TrySendError::Full(())) => return Some(live),
            // The Session is gone; the Turn learns that when it next waits for a reply.
            Err(TrySendError::Closed(())) => {}
        }
        None
    }

    pub(crate) async fn live(&self, live: Live) -> Result<(), Gone> {
        self.send(Report::Live(live)).await
    }

    /// Returns when the fact is recorded, and durable where it has to be.
    pub(crate) async fn record(&self, fact: impl Into<Fact>) -> Result<(), Gone> {
        let fact = Box::new(fact.into());
        self.ask(|reply| Report::Record { fact, reply }).await
    }

    pub(crate) async fn ask<T>(&self, report: impl FnOnce(oneshot::Sender<T>) -> Report) -> Result<T, Gone> {
        let (reply, answer) = oneshot::channel();
        self.send(report(reply)).await?;
        answer.await.map_err(|_| Gone)
    }
}
