//! The door to a running Session: Inputs go in, Events come out.
#![forbid(unsafe_code)]

use futures_util::future::BoxFuture;
use tokio::sync::{mpsc, oneshot};

use protocol::agent::AgentState;
use protocol::error::{Code, Error, Result};
use protocol::event::{SessionId, Telling};
use protocol::input::{Accepted, Input};

pub mod answer; // an answer of a Session that may have closed
pub mod watch; // past, present and events

pub use answer::answer_of;
pub use watch::Outbox;
pub use watch::Watch;

/// A running Session; clones are the same Session. It closes when the last handle is dropped.
#[derive(Debug, Clone)]
pub struct Handle {
    pub id: SessionId,
    pub commands: mpsc::Sender<Command>,
}

/// A door that does not keep its Session open.
#[derive(Debug, Clone)]
pub struct WeakHandle {
    id: SessionId,
    commands: mpsc::WeakSender<Command>,
}

impl WeakHandle {
    /// The door, if the Session is still open.
    pub fn upgrade(&self) -> Option<Handle> {
        let commands = self.commands.upgrade().filter(|it| !it.is_closed())?;
        Some(Handle { id: self.id.clone(), commands })
    }
}

/// Where the answer to an Input goes.
pub type Reply = oneshot::Sender<Result<Accepted>>;

pub enum Command {
    Input {
        input: Input,
        reply: Option<Reply>,
    },
    Watch(oneshot::Sender<Watch>),
    Settle(oneshot::Sender<()>),
    /// The door to a child, or to a child of a child.
    Agent {
        path: Vec<String>,
        reply: oneshot::Sender<Result<Handle>>,
    },
    /// The model of a Session above tells a child something, or a child of a child.
    TellAgent {
        name: String,
        how: Telling,
        text: String,
        reply: oneshot::Sender<Result<AgentState>>,
    },
    /// The running Turn has reached this limit: it stops what runs, and answers once more.
    WindUp(Box<Error>),
    Close(oneshot::Sender<()>),
}

impl Handle {
    pub fn downgrade(&self) -> WeakHandle {
        WeakHandle { id: self.id.clone(), commands: self.commands.downgrade() }
    }

    /// The Session's id.
    pub fn id(&self) -> &SessionId {
        &self.id
    }

    /// Sends an Input and waits for its answer: what it led to, or why it was refused.
    ///
    /// A prompt is answered as soon as its Turn has begun or it waits in the queue. Undo, redo, a move of the head, a fork
    /// and the stop of a job are answered when they are over. Watchers hear of a refusal too.
    ///
    /// # Errors
    /// Why the Input was refused; `SESSION_START_FAILED` when the Session has closed.
    pub fn request(&self, input: Input) -> BoxFuture<'_, Result<Accepted>> {
        Box::pin(async move { self.submit(input).await.await })
    }

    /// Sends an Input; the future that is returned waits for its answer, as [`Handle::request`] does. A caller that sends several
    /// Inputs keeps their order, and need not wait for one answer before sending the next.
    pub async fn submit(&self, input: Input) -> impl Future<Output = Result<Accepted>> + Send + use<> {
        let (reply, answer) = oneshot::channel();
        // If the Session has closed, `reply` is dropped here.
        let _ = self.commands.send(Command::Input { input, reply: Some(reply) }).await;
        let commands = self.commands.clone();
        async move {
            let closed =
                || Error::new(Code::SessionStartFailed, "the session closed before it could answer", "try again");
            answer_of(answer, commands.closed()).await.unwrap_or_else(|| Err(closed()))
        }
    }

    /// Sends an Input without waiting for its answer. A Session that has closed ignores it.
    pub async fn send(&self, input: Input) {
        let _ = self.commands.send(Command::Input { input, reply: None }).await;
    }

    /// Subscribes to the Session: past, present, and every event from now on. `None` when it has closed.
    pub fn watch(&self) -> BoxFuture<'_, Option<Watch>> {
        Box::pin(async move {
            let (reply, answer) = oneshot::channel();
            self.commands.send(Command::Watch(reply)).await.ok()?;
            answer_of(answer, self.commands.closed()).await
        })
    }

    /// The door to a child of this Session, or to a child of a child: the names from the child down. A child that has ended
    /// is opened again, and closes when the last handle is dropped.
    ///
    /// # Errors
    /// `NOT_FOUND` when the Session has no child of this name; those of `Harness::resume`.
    pub async fn agent(&self, path: &[String]) -> Result<Handle> {
        let (reply, answer) = oneshot::channel();
        let _ = self.commands.send(Command::Agent { path: path.to_vec(), reply }).await;
        let closed = || Error::new(Code::SessionStartFailed, "the session has closed", "open it again");
        answer_of(answer, self.commands.closed()).await.unwrap_or_else(|| Err(closed()))
    }

    /// Tells a child of this Session something, or a child of a child, for the model of a Session above.
    pub async fn tell_agent(&self, name: String, how: Telling, text: String) -> Result<AgentState> {
        let (reply, answer) = oneshot::channel();
        let _ = self.commands.send(Command::TellAgent { name, how, text, reply }).await;
        let closed = || Error::new(Code::SessionStartFailed, "the session has closed", "open it again");
        answer_of(answer, self.commands.closed()).await.unwrap_or_else(|| Err(closed()))
    }

    /// Has the running Turn stop what runs and answer once more, because it has reached this limit.
    pub async fn wind_up(&self, limit: Error) {
        let _ = self.commands.send(Command::WindUp(Box::new(limit))).await;
    }

    /// Returns when the Session has taken in every Input that was sent before, and restores, forks and moves of the head
    /// that they began are over. Turns may still run.
    pub async fn settle(&self) {
        let (reply, answer) = oneshot::channel();
        if self.commands.send(Command::Settle(reply)).await.is_ok() {
            answer_of(answer, self.commands.closed()).await;
        }
    }

    /// Interrupts what runs, ends the Session and releases its Log.
    pub async fn close(&self) {
        let (reply, answer) = oneshot::channel();
        if self.commands.send(Command::Close(reply)).await.is_ok() {
            answer_of(answer, self.commands.closed()).await;
        }
    }
}
