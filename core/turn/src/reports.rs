//! Reports of a Turn and of other work to their Session. When the receiver is dropped, they can record nothing more.

use std::sync::Arc;

use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};

use crate::Outcome;
use call::{Answers, Gone, Permissions, Registry};
use context::compaction::SummaryRequest;
use context::lighter::Refused;
use conversation::scale::Scale;
use door::answer_of;
use protocol::error::Error;
use protocol::event::{Approval, Fact, Form, Live, SkillIndex, Toolset};
use protocol::input::{Accepted, Decision};
use provider::models::ModelInfo;
use provider::{Provider, Request};

/// The most reports that wait for the Session. A Session that waits for its disk slows its own Turn down, so memory use
/// stays bounded.
const WAITING: usize = 64;

/// One report. If it has a reply channel, the sender waits for the reply.
pub enum Report {
    /// The Turn wants to send the next request.
    NextStep(oneshot::Sender<Next>),
    /// A fact to record.
    Record { fact: Box<Fact>, reply: oneshot::Sender<()> },
    /// A live event for the watchers.
    Live(Live),
    /// A request for the current mode and rules.
    Permissions(oneshot::Sender<Permissions>),
    /// A call waits for the user's decision. The reply is None if no user decides.
    RequestApproval { approval: Approval, reply: oneshot::Sender<Option<Decision>> },
    /// A call waits for the user's answers.
    OpenForm { form: Form, reply: oneshot::Sender<Option<Answers>> },
    /// The Provider rejected the request as too long, so the Session compacts its History.
    /// `attempt` counts from 1, `window` is the one that the request was built for, and `tokens` is its estimated size.
    Compact { attempt: u32, window: Option<u64>, tokens: u64, reply: oneshot::Sender<Result<(), Error>> },
    /// The skills that the model may use and the roles of agents, as they are at the start of the Turn.
    OfferSkills { index: SkillIndex, roles: Option<String>, reply: oneshot::Sender<()> },
    /// The patience with the Provider has ended. The reply tells whether another answers from now on.
    FallBack { reason: String, reply: oneshot::Sender<bool> },
    /// The answer broke off and is asked for again, so the Session records the part that arrived.
    KeepDraft { reply: oneshot::Sender<()> },
    /// The Turn has reached a limit and dropped what ran, so the Session records the parts that there are.
    CutOff { reply: oneshot::Sender<()> },
    /// The model is told something about its Turn, as late context.
    Tell { source: &'static str, text: &'static str, reply: oneshot::Sender<()> },
    /// The Provider rejected reasoning that it returned earlier, so the Session stops sending it.
    ForgetReasoning { reply: oneshot::Sender<()> },
    /// The Provider refused the definition of this tool, so the Session offers it by search. The reply tells whether it does.
    LeaveOut { tool: String, reason: String, reply: oneshot::Sender<bool> },
    /// The model takes no tools, so the Session offers it none. The reply tells whether it was offered some.
    DropTools { reason: String, reply: oneshot::Sender<bool> },
    /// The server refused something for its size, so the Session leaves it out. The reply tells whether anything was large.
    Lighten { refused: Refused, reply: oneshot::Sender<bool> },
    /// The Turn ended with this outcome.
    Done(Outcome),
    /// A restore, a fork or a move of the head ended.
    Arrived(Result<Accepted, Halt>),
}

/// Why a restore, a fork or a move of the head was not completed.
#[derive(Debug)]
pub enum Halt {
    Failed(Error),
    /// The user interrupted it. The part that was done is recorded; `left` names the rest.
    Interrupted {
        left: String,
    },
}

/// What a Turn does next.
pub enum Next {
    /// It sends a request.
    Request(Box<Step>),
    /// The window is nearly full, so a model first summarizes the older part of the conversation.
    Summarize(Box<SummaryRequest>),
}

/// Everything that the next request needs.
pub struct Step {
    pub provider: Arc<dyn Provider>,
    pub facts: ModelInfo,
    pub toolset: Toolset,
    /// The tools of the request.
    pub registry: Registry,
    pub request: Request,
    /// How the Provider counts tokens.
    pub scale: Scale,
}

impl Step {
    /// The expected tokens of the request.
    pub fn tokens(&self) -> u64 {
        self.scale.count(self.request.estimated_tokens())
    }
}

/// The sending half of the channel.
#[derive(Debug, Clone)]
pub struct Reports(mpsc::Sender<Report>);

impl Reports {
    pub fn channel() -> (Reports, mpsc::Receiver<Report>) {
        let (sender, receiver) = mpsc::channel(WAITING);
        (Reports(sender), receiver)
    }

    /// Sends a report, and waits while the channel is full.
    pub async fn send(&self, report: Report) -> Result<(), Gone> {
        self.0.send(report).await.map_err(|_| Gone)
    }

    /// Sends a live event if the channel has room, else returns it.
    pub(super) fn try_live(&self, live: Live) -> Option<Live> {
        match self.0.try_reserve() {
            Ok(room) => room.send(Report::Live(live)),
            Err(TrySendError::Full(())) => return Some(live),
            // The Session has ended; the Turn notices when it next waits for a reply.
            Err(TrySendError::Closed(())) => {}
        }
        None
    }

    pub async fn live(&self, live: Live) -> Result<(), Gone> {
        self.send(Report::Live(live)).await
    }

    /// Returns when the fact is recorded, and synced to disk if its type requires that.
    pub async fn record(&self, fact: impl Into<Fact>) -> Result<(), Gone> {
        let fact = Box::new(fact.into());
        self.ask(|reply| Report::Record { fact, reply }).await
    }

    pub async fn ask<T>(&self, report: impl FnOnce(oneshot::Sender<T>) -> Report) -> Result<T, Gone> {
        let (reply, answer) = oneshot::channel();
        self.send(report(reply)).await?;
        answer_of(answer, self.0.closed()).await.ok_or(Gone)
    }
}
