//! Waiting for children, telling them something, and the way to their Sessions.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::join_all;

use super::attend::Attendant;
use super::child::{Child, Told, TurnOrder};
use super::links::end_below;
use super::node::{Named, Node};
use super::way::{Begins, Opened, deliver, send, until_seen};
use call::agents::{OrderedBy, Seen, Until};
use door::Handle;
use protocol::agent::AgentState;
use protocol::error::{Code, Error, Result};
use protocol::event::{AgentEvent, AgentStatus, Delivery, Telling};
use protocol::input::{Accepted, Input, Message, Queued};

impl Node {
    pub(super) async fn wait_for(
        self: Arc<Node>,
        names: Vec<String>,
        until: Until,
        within: Option<Duration>,
    ) -> Result<Vec<Seen>> {
        let awaited: Vec<Named> = if names.is_empty() {
            let children = self.children.lock();
            children.iter().filter(|child| child.is_open()).map(|child| Named::Child(Arc::clone(child))).collect()
        } else {
            names.iter().map(|name| self.find(name)).collect::<Result<_>>()?
        };
        let own = awaited.iter().filter_map(|it| match it {
            Named::Child(child) => Some(Arc::clone(child)),
            Named::Below(_) => None,
        });
        // Dropped with the wait, so that an end after it is reported.
        let _counted = Counted::new(own.collect());
        // An agent that waits for others lets one of them run in its place.
        let _aside = self.at.child.as_ref().map(|own| own.place.step_aside());
        let ends = awaited.iter().map(|it| self.end_of(it).boxed());
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
        let mut seen = Vec::new();
        for it in &awaited {
            seen.push(self.see(it).await);
        }
        Ok(seen)
    }

    /// Returns when the Turn of this agent is over.
    async fn end_of(&self, it: &Named) {
        match it {
            Named::Child(child) => drop(child.ended.subscribe().wait_for(Option::is_some).await),
            Named::Below(known) => loop {
                let changed = self.changed.notified();
                tokio::pin!(changed);
                changed.as_mut().enable();
                if self.state_below(&known.path).is_none_or(|state| !state.status.is_open()) {
                    return;
                }
                changed.await;
            },
        }
    }

    async fn see(&self, it: &Named) -> Seen {
        let state = match it {
            Named::Child(child) => match child.ended.borrow().as_ref() {
                Some(result) => return Seen::Ended(Box::new((**result).clone())),
                None => child.state(),
            },
            Named::Below(known) => self.state_below(&known.path).unwrap_or_else(|| (**known).clone()),
        };
        if state.status.is_open() {
            return Seen::Open(Box::new(state));
        }
        let (services, ended) = (self.base.0.clone(), state.clone());
        let read = task::spawn_blocking(move || end_below(&services, &ended)).await;
        match read {
            Ok(Some(result)) => Seen::Ended(Box::new(result)),
            Ok(None) | Err(_) => Seen::Open(Box::new(state)),
        }
    }

    pub(super) async fn say(
        self: Arc<Node>,
        name: String,
        how: Telling,
        text: String,
        by: OrderedBy,
    ) -> Result<AgentState> {
        let child = match self.find(&name)? {
            Named::Child(child) => child,
            Named::Below(state) => {
                let below = state.path.get(self.at.path.len()..).unwrap_or_default();
                let Some((first, rest)) = below.split_first() else { return Err(no_path()) };
                let door = Arc::clone(&self).open_path(vec![first.clone()]).await?;
                return door.tell_agent(rest.join("/"), how, text).await;
            }
        };
        let name = child.name().to_owned();
        if how == Telling::Stop {
            self.record(AgentEvent::Told { name, by: by.told_by(), how, text: String::new() }).await?;
            child.stop();
            let mut ended = child.ended.subscribe();
            drop(ended.wait_for(Option::is_some).await);
            return Ok(child.state());
        }
        if child.state().is_run {
            let message = format!("{name} is a run of a workflow, which reads no messages");
            let fix = "tell_agent with how: stop ends it; the user goes on with it";
            return Err(Error::new(Code::InvalidArgs, message, fix));
        }
        if text.trim().is_empty() {
            return Err(Error::new(Code::InvalidArgs, "there is no text to tell", "what the agent is to know or do"));
        }
        let told = AgentEvent::Told { name, by: by.told_by(), how, text: text.clone() };
        let message = Message { text, ..Message::default() };
        if !child.is_open() {
            self.may_start()?;
            self.record(told).await?;
            return Arc::clone(&self).go_on(child, message, by).await;
        }
        match child.keep(Told { how, message, by }) {
            Ok(_) => self.publish(child.state()),
            Err(told) => {
                let Opened::Already(door) = self.door_of(&child).await? else { return Err(child.not_begun()) };
                let accepted = deliver(&child, &door, told).await?;
                until_seen(&child, &door, &accepted).await;
            }
        }
        // Only what its Session has taken in, or what waits for that, was told.
        self.record(told).await?;
        Ok(child.state())
    }

    /// Starts the next Turn of a child that has ended, or its first one if it was stopped before it began.
    async fn go_on(self: Arc<Node>, child: Arc<Child>, message: Message, by: OrderedBy) -> Result<AgentState> {
        child.queue(TurnOrder::by(by));
        let begins = if child.unbegun.lock().is_some() {
            // It reads its task first.
            child.early.lock().get_or_insert_default().push(Told { how: Telling::Steer, message, by });
            Begins::First
        } else {
            Begins::Again(message)
        };
        let state = child.change(|state| state.status = AgentStatus::Queued);
        self.record(AgentEvent::Resumed { name: child.name().to_owned() }).await?;
        self.publish(state.clone());
        let above = if by == OrderedBy::Parent { Vec::new() } else { self.doors_above().await };
        task::spawn(async move {
            // No Session above waits for it, so they stay open until it has ended.
            let _above = above;
            self.run(child, begins).await;
        });
        Ok(state)
    }

    /// Says to a child what it was told while it waited for its place.
    pub(super) async fn send_early(child: &Child, door: &Handle) {
        let early = child.early.lock().take();
        child.change(|state| state.queued.clear());
        for told in early.into_iter().flatten() {
            if let Err(error) = deliver(child, door, told).await {
                tracing::warn!(agent = child.name(), "what an agent was told was refused: {}", error.message);
            }
        }
    }

    /// Sends an Input of the user to a child, or to one below it.
    pub(super) async fn pass_on(self: Arc<Node>, path: Vec<String>, input: Input) -> Result<Accepted> {
        let Some((name, rest)) = path.split_first() else { return Err(no_path()) };
        if !rest.is_empty() {
            // Each Session records what its own children are told.
            let door = Arc::clone(&self).open_path(vec![name.clone()]).await?;
            return door.request(Input::ToAgent { path: rest.to_vec(), input: Box::new(input) }).await;
        }
        let child = self.child(name)?;
        let (how, message) = match input {
            Input::Steer(message) => (Telling::Steer, message),
            Input::Prompt(message) | Input::FollowUp(message) => (Telling::Next, message),
            input => {
                let door = Arc::clone(&self).open_path(path).await?;
                return send(&child, &door, input).await;
            }
        };
        if !child.is_open() && child.unbegun.lock().is_some() {
            self.may_start()?;
            Arc::clone(&self).go_on(child, message, OrderedBy::User).await?;
            return Ok(Accepted::default());
        }
        match child.keep(Told { how, message, by: OrderedBy::User }) {
            Ok(position) => {
                self.publish(child.state());
                let delivery = if how == Telling::Steer { Delivery::Steer } else { Delivery::FollowUp };
                Ok(Accepted { queued: Some(Queued { delivery, position, id: None }), ..Accepted::default() })
            }
            Err(told) => {
                let door = Arc::clone(&self).open_path(path).await?;
                let accepted = deliver(&child, &door, told).await?;
                until_seen(&child, &door, &accepted).await;
                Ok(accepted)
            }
        }
    }

    /// The door of a child whose Session is open; anything else for one that is not.
    pub(super) async fn door_of(&self, child: &Child) -> Result<Opened> {
        let door = child.door.lock().await;
        match door.as_ref().and_then(door::WeakHandle::upgrade) {
            Some(open) => Ok(Opened::Already(open)),
            None => Err(child.not_begun()),
        }
    }

    pub(super) async fn open_path(self: Arc<Node>, path: Vec<String>) -> Result<Handle> {
        let Some((name, rest)) = path.split_first() else { return Err(no_path()) };
        let child = self.child(name)?;
        let door = match self.reopen(&child).await? {
            Opened::Already(door) => door,
            Opened::New(door, watch) => {
                task::spawn(Attendant::attend(Arc::clone(&self), child, door.clone(), *watch, None));
                door
            }
        };
        if rest.is_empty() { Ok(door) } else { Box::pin(door.agent(rest)).await }
    }
}

fn no_path() -> Error {
    Error::new(Code::InvalidArgs, "the path names no agent", "the names from the child down")
}

/// A call that waits for these children.
struct Counted(Vec<Arc<Child>>);

impl Counted {
    fn new(children: Vec<Arc<Child>>) -> Counted {
        children.iter().for_each(|child| child.order.lock().waiting += 1);
        Counted(children)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        for child in &self.0 {
            let mut order = child.order.lock();
            order.waiting = order.waiting.saturating_sub(1);
        }
    }
}
