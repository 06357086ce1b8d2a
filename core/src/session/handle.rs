//! A running Session, from outside.

use tokio::sync::{mpsc, oneshot};

use crate::protocol::event::SessionId;
use crate::protocol::input::Input;
use crate::session::watch::Watch;

/// A running Session, to be spoken to from anywhere. When the last handle is dropped, it closes.
#[derive(Debug, Clone)]
pub struct Handle {
    pub(super) id: SessionId,
    pub(super) commands: mpsc::Sender<Command>,
}

pub(super) enum Command {
    Input(Input),
    Watch(oneshot::Sender<Watch>),
    Settle(oneshot::Sender<()>),
    Close(oneshot::Sender<()>),
}

impl Handle {
    /// The Session's id.
    pub fn id(&self) -> &SessionId {
        &self.id
    }

    /// Asks for something; what comes of it is heard by those who watch. A closed Session hears nothing.
    pub async fn send(&self, input: Input) {
        let _ = self.commands.send(Command::Input(input)).await;
    }

    /// Everything so far and everything to come. `None` when the Session has closed.
    pub async fn watch(&self) -> Option<Watch> {
        let (reply, answer) = oneshot::channel();
        self.commands.send(Command::Watch(reply)).await.ok()?;
        answer.await.ok()
    }

    /// Returns when every Input that was sent before has been taken in.
    pub async fn settle(&self) {
        let (reply, answer) = oneshot::channel();
        if self.commands.send(Command::Settle(reply)).await.is_ok() {
            let _ = answer.await;
        }
    }

    /// Interrupts what runs, ends the Session and releases its Log.
    pub async fn close(&self) {
        let (reply, answer) = oneshot::channel();
        if self.commands.send(Command::Close(reply)).await.is_ok() {
            let _ = answer.await;
        }
    }
}
