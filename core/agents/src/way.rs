//! The way to the Session of a child: its door, and what goes through it.

use super::child::{Child, Told, TurnOrder};
use call::agents::OrderedBy;
use door::{Handle, Watch};
use protocol::error::Result;
use protocol::event::Telling;
use protocol::input::{Accepted, Input, Message};

/// Which Turn of a child begins.
pub(super) enum Begins {
    /// The first, with its task.
    First,
    /// A later one, with this message.
    Again(Message),
}

/// The door of a child.
pub(super) enum Opened {
    /// The child's Session was closed and has just been opened. The watch is for its attendant, which it does not have yet.
    New(Handle, Box<Watch>),
    Already(Handle),
}

impl Opened {
    pub(super) fn door(&self) -> &Handle {
        match self {
            Opened::New(door, _) | Opened::Already(door) => door,
        }
    }
}

/// Says something to the Session of a child.
pub(super) async fn deliver(child: &Child, door: &Handle, told: Told) -> Result<Accepted> {
    let Told { how, message, by } = told;
    let text = message.text.clone();
    if by != OrderedBy::User {
        child.sent.lock().push(text.clone());
    }
    let accepted = match how {
        Telling::Steer => door.request(Input::Steer(message)).await,
        Telling::Next | Telling::Stop => {
            child.next.lock().push_back(TurnOrder::by(by));
            let accepted = door.request(Input::FollowUp(message)).await;
            if accepted.is_err() {
                child.next.lock().pop_back();
            }
            accepted
        }
    };
    if accepted.is_err() && by != OrderedBy::User {
        let mut sent = child.sent.lock();
        if let Some(at) = sent.iter().rposition(|it| *it == text) {
            sent.remove(at);
        }
    }
    accepted
}

/// Sends an Input to the Session of a child, and returns when its attendant knows of the Turn that it began.
pub(super) async fn send(child: &Child, door: &Handle, input: Input) -> Result<Accepted> {
    let accepted = door.request(input).await?;
    until_seen(child, door, &accepted).await;
    Ok(accepted)
}

/// A running Turn keeps its Session open from the moment on in which the attendant has seen it. Until then the caller's door
/// does.
pub(super) async fn until_seen(child: &Child, door: &Handle, accepted: &Accepted) {
    let Some(turn) = accepted.turn else { return };
    let mut seen = child.seen.subscribe();
    tokio::select! {
        _ = seen.wait_for(|seen| *seen >= turn) => {}
        () = door.commands.closed() => {}
    }
}
