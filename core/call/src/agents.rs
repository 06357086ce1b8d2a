//! The child Sessions of the Session that a call belongs to.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::Context;
use context::roles::Role;
use conversation::history::History;
use door::answer_of;
use files::workspace::Workspace;
use protocol::agent::AgentState;
use protocol::error::Result;
use protocol::event::{
    Adoption, AgentContext, AgentEvent, AgentResult, FileChange, Isolation, Live, SessionId, Telling, ToldBy,
};
use protocol::input::WorkflowOrder;

/// The names of the tools with which a model has children. A Session that may start none is not offered them.
pub const TOOLS: [&str; 4] = ["spawn_agent", "wait_agent", "tell_agent", "show_agent"];

/// The name of the tool by which a child reports its result.
pub const REPORT: &str = "report";

/// What a refusal names as its Input where a Session could not record an event of its children.
pub const AGENT_EVENT: &str = "agent_event";

/// What a refusal names as its Input where the report of a child could begin no Turn.
pub const AGENT_REPORT: &str = "agent_report";

/// What a call may do with the child Sessions of its Session: those that it started, and those below them.
pub trait Agents: fmt::Debug + Send + Sync {
    /// Starts a child. When this returns, the link to it is on the disk.
    fn spawn(&self, order: Order) -> BoxFuture<'static, Result<AgentState>>;

    /// A name for a child that no agent of the tree has: this one, as far as names of agents allow, and with a number where it
    /// is taken.
    fn free_name(&self, wished: &str) -> String;

    /// Waits until these children have ended, or one of them, or the time is over. No names: all that run.
    fn wait(&self, names: Vec<String>, until: Until, within: Option<Duration>)
    -> BoxFuture<'static, Result<Vec<Seen>>>;

    /// Tells a child something. One that has ended goes on.
    fn tell(&self, name: &str, how: Telling, text: String, by: OrderedBy) -> BoxFuture<'static, Result<AgentState>>;

    /// The call that waits for a child waits no more: the child goes on, and its end is reported.
    fn let_go(&self, name: &str);

    /// A child's conversation as text.
    fn transcript(&self, name: &str) -> BoxFuture<'static, Result<String>>;

    /// The children of this Session and those below them, oldest first, as this process knows them.
    fn list(&self) -> Vec<AgentState>;

    /// Has a child that does a step of a workflow go on with the next round, in the same Session and the same files.
    fn again(&self, name: &str, order: Order) -> BoxFuture<'static, Result<AgentState>>;

    /// The files that a child works on.
    ///
    /// # Errors
    /// `NOT_FOUND` when its copy has gone.
    fn workspace_of(&self, name: &str) -> Result<Arc<Workspace>>;

    /// Applies, keeps or drops what a step's child changed in its copy. An adoption waits for its leases as long as others
    /// have them.
    fn settle_files(&self, name: &str, how: Settle) -> BoxFuture<'static, Result<Option<Adoption>>>;

    /// What children may use, and what it costs, where they have these roles.
    fn usual(&self, roles: &[Role]) -> Usual;

    /// Stops children, and returns when their processes are gone and their ends are recorded.
    fn stop(&self, which: Stop) -> BoxFuture<'static, ()>;

    /// The bytes that one of `others + 1` ends may take of what a request tells of ends; they are taken from the rest.
    fn share(&self, others: usize) -> usize;
}

/// What agents may use, and what it costs.
#[derive(Debug, Clone, Default)]
pub struct Usual {
    /// The most tokens of a Turn of an agent.
    pub tokens: u64,
    /// The most tokens of all agents.
    pub tree_tokens: u64,
    /// The most tokens and US dollars that the user allows a Turn and the agents below it.
    pub max_tokens: Option<u64>,
    pub max_cost_usd: Option<f64>,
    /// The time that the user allows a Turn.
    pub deadline: Option<Duration>,
    /// The model of agents whose role names none.
    pub model: ModelTerms,
    /// The models that roles name, as `provider/model`.
    pub models: BTreeMap<String, ModelTerms>,
}

/// What bounds the cost of a model.
#[derive(Debug, Clone, Copy, Default)]
pub struct ModelTerms {
    /// The window, tokens.
    pub window: Option<u64>,
    /// The most US dollars of a token; `None` where it is unknown.
    pub price: Option<f64>,
}

/// What to do with the files that a child changed in its copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settle {
    /// They are written to the workspace.
    Adopt,
    /// They wait in the copy for the user.
    Keep,
    /// The copy goes.
    Drop,
}

/// A child that is to be started.
#[derive(Debug, Clone, Default)]
pub struct Order {
    /// The call that starts it.
    pub call_id: Option<String>,
    pub task: String,
    pub role: Option<String>,
    pub name: Option<String>,
    /// Cancelled when the call ends; a child that it waits for stops then.
    pub cancel: CancellationToken,
    /// Whether the call waits for its end. Otherwise the end is reported.
    pub waits: bool,
    pub limits: OrderLimits,
    /// The JSON Schema of its report; `None` takes the role's.
    pub schema: Option<Value>,
    /// Globs of the files that it may change, of those that its role leaves to it.
    pub writes: Option<Vec<String>>,
    /// The files that it works on; `None` takes the role's.
    pub isolation: Option<Isolation>,
    /// What it knows of the conversation; `None` takes the role's.
    pub context: Option<AgentContext>,
    /// It does a step of a workflow, in the Session with this id, which the journal has already. The graph bounds how many such
    /// children there are, and what it changed in a copy waits until the step is checked.
    pub step: Option<SessionId>,
    /// It is a run of this workflow, which a scheduler carries out in place of a model.
    pub workflow: Option<Box<WorkflowOrder>>,
}

/// Limits of one child; each can only lower those of its role.
#[derive(Debug, Clone, Copy, Default, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OrderLimits {
    pub rounds: Option<u32>,
    pub tokens: Option<u64>,
    pub seconds: Option<u64>,
}

/// Who wants a Turn of a child.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OrderedBy {
    /// The user, who gives it no time limit and sees its end.
    #[default]
    User,
    /// Its parent, which hears of its end.
    Parent,
    /// The model of a Session further up. It waits for the end, or looks at it.
    Above,
}

impl OrderedBy {
    /// How the Log names it.
    pub fn told_by(self) -> ToldBy {
        match self {
            OrderedBy::User => ToldBy::User,
            OrderedBy::Parent | OrderedBy::Above => ToldBy::Parent,
        }
    }
}

/// When a wait is over.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Until {
    #[default]
    All,
    Any,
}

/// A child at the end of a wait.
#[derive(Debug, Clone)]
pub enum Seen {
    Ended(Box<AgentResult>),
    Open(Box<AgentState>),
}

/// Which children are stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// Those that a call of the Turn was waiting for.
    Awaited,
    /// This one.
    One(Vec<String>),
    All,
}

/// The way of a child to the Session above it.
#[derive(Debug, Clone)]
pub struct Above {
    /// The child's name.
    pub name: String,
    /// Both work on the same files.
    pub shares_files: bool,
    pub news: mpsc::UnboundedSender<AgentNews>,
}

impl Above {
    /// Has the Session above record what a call changed, and returns when it has. One that has closed reads it from this
    /// Session's Log when it is opened again.
    pub async fn changed(&self, call_id: String, changes: Vec<FileChange>) {
        let (reply, recorded) = oneshot::channel();
        let event = Box::new(AgentEvent::Changed { name: self.name.clone(), call_id, changes });
        if self.news.send(AgentNews::Record { event, reply }).is_ok() {
            answer_of(recorded, self.news.closed()).await;
        }
    }
}

/// What the Session is to do about its children.
#[derive(Debug)]
pub enum AgentNews {
    /// Record this.
    Record { event: Box<AgentEvent>, reply: oneshot::Sender<Result<()>> },
    /// Hand over the conversation so far.
    History { reply: oneshot::Sender<Box<History>> },
    /// Publish this; it is about the agent with this path.
    Live { path: Vec<String>, live: Box<Live> },
    /// Let the model read this before its next request.
    Report(Box<AgentResult>),
    /// Let the model read this about an agent before its next request. It starts no Turn.
    Tell { name: String, text: String },
}

/// Waits for the end of an agent that the call has started. The guard stops the agent, so the end of the call is the end of
/// the agent. If the user sends a message that joins the Turn, only the wait is over, and `None` is returned.
pub async fn end_of(name: &str, with_call: DropGuard, ctx: &Context, agents: &Arc<dyn Agents>) -> Result<Option<Seen>> {
    let wait = agents.wait(vec![name.to_owned()], Until::All, None);
    tokio::pin!(wait);
    let seen = tokio::select! {
        biased;
        seen = &mut wait => seen,
        () = ctx.cancel.cancelled() => {
            drop(with_call);
            wait.await
        }
        () = ctx.steered() => {
            agents.let_go(name);
            with_call.disarm();
            return Ok(None);
        }
    };
    Ok(seen?.pop())
}

/// What the model reads of an agent that it waits for no more.
pub fn goes_on(agent: &str) -> String {
    format!(
        "{agent}\nThe user sent a message, so this call stopped waiting. The agent still runs, and you will read its result when it ends.\n"
    )
}
