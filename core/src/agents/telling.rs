//! Waiting for children, telling them something, and the way to their Sessions.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::join_all;

use super::attend::Attendant;
use super::child::{Child, TurnOrder};
use super::node::Node;
use super::starting::{Opened, Turn};
use crate::call::agents::{Seen, Until};
use crate::door::Handle;
use crate::protocol::agent::AgentState;
use crate::protocol::error::{Code, Error, Result};
use crate::protocol::event::{AgentEvent, AgentStatus, Telling, ToldBy};
use crate::protocol::input::{Input, Message};

impl Node {
    pub(super) async fn wait_for(
        self: Arc<Node>,
        names: Vec<String>,
        until: Until,
        within: Option<Duration>,
    ) -> Result<Vec<Seen>> {
        let awaited: Vec<Arc<Child>> = if names.is_empty() {
            self.children.lock().iter().filter(|child| child.is_open()).cloned().collect()
        } else {
            names.iter().map(|name| self.child(name)).collect::<Result<_>>()?
        };
        awaited.iter().for_each(|child| child.order.lock().waiting += 1);
        // Dropped with the wait, so that an end after it is reported.
        let _counted = Counted(awaited.clone());
        // An agent that waits for its own children gives its place to one that can run.
        let stepped_aside = self.at.child.as_ref().and_then(|own| own.place.lock().take()).is_some();
        let ends = awaited.iter().map(|child| {
            let mut ended = child.ended.subscribe();
            async move { drop(ended.wait_for(Option::is_some).await) }.boxed()
        });
        let all = async {
            match until {
                Until::All => drop(join_all(ends).await),
                Until::Any if awaited.is_empty() => {}
                Until::Any => drop(futures_util::future::select_all(ends).await),
            }
        };
        match within {
            Some(within) => drop(tokio::time::timeout(within, all).await),
            None => all.await,
        }
        if let Some(own) = self.at.child.as_ref().filter(|_| stepped_aside) {
            let place = Arc::clone(&self.at.tree.places).acquire_owned().await.ok();
            *own.place.lock() = place;
        }
        Ok(awaited
            .iter()
            .map(|child| match child.ended.borrow().as_ref() {
                Some(result) => Seen::Ended(Box::new((**result).clone())),
                None => Seen::Open(Box::new(child.state())),
            })
            .collect())
    }

    pub(super) async fn say(
        self: Arc<Node>,
        name: String,
        how: Telling,
        text: String,
        by: ToldBy,
    ) -> Result<AgentState> {
        let child = self.child(&name)?;
        let is_open = child.is_open();
        if how == Telling::Stop {
            self.record(AgentEvent::Told { name, by, how, text: String::new() }).await?;
            child.stop();
            let mut ended = child.ended.subscribe();
            drop(ended.wait_for(Option::is_some).await);
            return Ok(child.state());
        }
        if text.trim().is_empty() {
            return Err(Error::new(Code::InvalidArgs, "there is no text to tell", "what the agent is to know or do"));
        }
        if !is_open {
            self.may_start()?;
        }
        self.record(AgentEvent::Told { name: name.clone(), by, how, text: text.clone() }).await?;
        if is_open {
            // A child that is queued reads it at its beginning.
            let message = Message { text, ..Message::default() };
            let Opened::Already(door) = self.door_of(&child).await? else {
                let fix = "wait until it runs";
                return Err(Error::new(Code::CommandFailed, format!("{name} has not begun yet"), fix));
            };
            match how {
                Telling::Steer => door.request(Input::Steer(message)).await?,
                Telling::Next | Telling::Stop => {
                    child.next.lock().push_back(TurnOrder { is_ordered: by == ToldBy::Parent, ..TurnOrder::default() });
                    door.request(Input::FollowUp(message)).await?
                }
            };
            return Ok(child.state());
        }
        *child.order.lock() = TurnOrder { is_ordered: by == ToldBy::Parent, ..TurnOrder::default() };
        let _ = child.ended.send_replace(None);
        let state = child.change(|state| state.status = AgentStatus::Queued);
        self.record(AgentEvent::Resumed { name }).await?;
        self.publish(state.clone());
        tokio::spawn(Arc::clone(&self).run(child, Turn::Next, text));
        Ok(state)
    }

    /// The door of a child whose Session is open; anything else for one that is not.
    pub(super) async fn door_of(&self, child: &Child) -> Result<Opened> {
        let door = child.door.lock().await;
        match door.as_ref().and_then(crate::door::WeakHandle::upgrade) {
            Some(open) => Ok(Opened::Already(open)),
            None => Err(Error::new(
                Code::CommandFailed,
                format!("{} has not begun yet", child.name()),
                "wait until it runs, then tell it",
            )),
        }
    }

    pub(super) async fn open_path(self: Arc<Node>, path: Vec<String>) -> Result<Handle> {
        let Some((name, rest)) = path.split_first() else {
            return Err(Error::new(Code::InvalidArgs, "the path names no agent", "the names from the child down"));
        };
        let child = self.child(name)?;
        let door = match self.reopen(&child).await? {
            Opened::Already(door) => door,
            Opened::New(door) => {
                // The watch begins before anybody who has the door can start a Turn.
                if let Some(watch) = door.watch().await {
                    tokio::spawn(Attendant::attend(Arc::clone(&self), child, door.clone(), watch, None));
                }
                door
            }
        };
        if rest.is_empty() { Ok(door) } else { Box::pin(door.agent(rest)).await }
    }
}

/// Calls that wait for these children.
struct Counted(Vec<Arc<Child>>);

impl Drop for Counted {
    fn drop(&mut self) {
        for child in &self.0 {
            let mut order = child.order.lock();
            order.waiting = order.waiting.saturating_sub(1);
        }
    }
}
