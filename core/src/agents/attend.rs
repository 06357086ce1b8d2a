//! Watching a child: its Turns, what it asks the user, and the end of each Turn, which its parent records.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use super::child::{Child, TurnOrder};
use super::node::Node;
use super::outcome::Outcome;
use crate::call::tool::panicked;
use crate::door::{Handle, Watch};
use crate::protocol::agent::Asker;
use crate::protocol::error::Error;
use crate::protocol::event::{AgentEvent, AgentResult, AgentStatus, Entry, Event, Fact, Live, LiveEvent};
use crate::protocol::input::{Input, Message};

/// A parent hears of a running child at most this often.
const EACH: Duration = Duration::from_millis(100);

/// Watches a child as long as its Session is open.
pub(super) struct Attendant {
    pub(super) node: Arc<Node>,
    pub(super) child: Arc<Child>,
    /// Keeps the Session open while a Turn runs.
    held: Option<Handle>,
    /// The running Turn, or the last one.
    turn: u32,
    outcome: Outcome,
    began: Instant,
    order: TurnOrder,
    /// When the Turn has taken too long; `None` while the user is asked, and where there is no limit.
    deadline: Option<Instant>,
    /// The rest of the time while the user is asked.
    left: Option<Duration>,
    is_late: bool,
    /// Calls that wait for the user.
    asking: Vec<String>,
    /// Messages that wait for the end of the Turn.
    queued: usize,
    /// When the parent hears of what changed.
    due: Option<Instant>,
}

impl Attendant {
    /// Watches an open child. With a message, that is sent first.
    pub(super) async fn attend(
        node: Arc<Node>,
        child: Arc<Child>,
        door: Handle,
        mut watch: Watch,
        message: Option<Message>,
    ) {
        let weak = door.downgrade();
        let mut it = Attendant {
            turn: watch.past.turns,
            node,
            child,
            held: None,
            outcome: Outcome::default(),
            began: Instant::now(),
            order: TurnOrder::default(),
            deadline: None,
            left: None,
            is_late: false,
            asking: Vec::new(),
            queued: 0,
            due: None,
        };
        if let Some(message) = message {
            let accepted = door.request(Input::Prompt(message)).await;
            it.held = Some(door);
            if let Err(error) = accepted {
                return it.never_ran(&error).await;
            }
        } else {
            drop(door);
        }
        loop {
            let stop = it.order.stop.clone();
            let is_running = it.held.is_some();
            tokio::select! {
                event = watch.next() => match event {
                    None => break,
                    Some(Event::Recorded(entry)) => {
                        if entry.turn.is_some_and(|turn| turn > it.turn) {
                            it.held = weak.upgrade();
                            it.begin_turn(&entry);
                        }
                        it.take(&entry).await;
                    }
                    Some(Event::Live(live)) => it.relay(live),
                },
                () = stop.cancelled(), if is_running => {
                    it.interrupt().await;
                    it.order.stop = Default::default();
                }
                () = until(it.deadline), if it.deadline.is_some() => {
                    it.is_late = true;
                    it.deadline = None;
                    it.interrupt().await;
                }
                () = until(it.due), if it.due.is_some() => {
                    it.due = None;
                    it.node.publish(it.child.state());
                }
            }
        }
        // The Session closed while a Turn ran: its process is going away.
        if it.child.is_open() {
            it.end().await;
        }
        *it.child.place.lock() = None;
        it.node.tidy(&it.child).await;
    }

    async fn interrupt(&self) {
        if let Some(door) = &self.held {
            door.send(Input::Interrupt).await;
        }
    }

    fn begin_turn(&mut self, first: &Entry) {
        self.turn = first.turn.unwrap_or(self.turn);
        self.outcome = Outcome::default();
        self.began = Instant::now();
        self.is_late = false;
        self.asking.clear();
        let is_new = self.child.is_open();
        if !is_new {
            let order = self.child.next.lock().pop_front().unwrap_or_default();
            *self.child.order.lock() = order;
            let _ = self.child.ended.send_replace(None);
            self.node.note(AgentEvent::Resumed { name: self.child.name().to_owned() });
        }
        self.order = self.child.order.lock().clone();
        self.deadline = self.order.is_ordered.then(|| self.began + self.child.bounds.time);
        let now = Timestamp::now();
        let state = self.child.change(|state| {
            state.status = AgentStatus::Running;
            (state.since, state.active, state.took_ms) = (now, now, None);
        });
        self.node.publish(state);
    }

    async fn take(&mut self, entry: &Arc<Entry>) {
        self.outcome.take(entry);
        let now = Timestamp::now();
        let (added, removed) = self.outcome.lines();
        self.child.change(|state| {
            state.active = now;
            (state.added, state.removed) = (added, removed);
            match &entry.fact {
                Fact::ToolCall(it) => {
                    state.calls += 1;
                    state.doing.clone_from(&it.about().title);
                }
                Fact::ProviderUsage(it) => {
                    state.usage += it.usage;
                    state.cost += it.cost;
                }
                _ => {}
            }
        });
        self.due.get_or_insert(Instant::now() + EACH);
        let answered = match &entry.fact {
            Fact::PermissionDecision(it) => Some(&it.call_id),
            Fact::ToolResult(it) => Some(&it.call_id),
            _ => None,
        };
        if let Some(call) = answered {
            self.answered(call);
        }
        if matches!(entry.fact, Fact::TurnEnded(_)) {
            self.end().await;
            // What the child was told meanwhile is its next Turn.
            if self.queued == 0 {
                self.held = None;
            }
        }
    }

    /// A child's questions come up in the root, and so does what those below it ask.
    fn relay(&mut self, event: LiveEvent) {
        let LiveEvent { agent_path, live, .. } = event;
        if !agent_path.is_empty() {
            return self.node.send_live(agent_path, live);
        }
        let asker = self.asker();
        let (call, live) = match live {
            Live::ApprovalRequested(mut it) => {
                it.agent = Some(asker);
                (it.call_id.clone(), Live::ApprovalRequested(it))
            }
            Live::FormOpened(mut it) => {
                it.agent = Some(asker);
                (it.call_id.clone(), Live::FormOpened(it))
            }
            Live::QueueChanged { follow_up, .. } => {
                self.queued = follow_up.len();
                return;
            }
            Live::TextDelta { .. } | Live::ReasoningDelta { .. } | Live::ToolOutputDelta { .. } => {
                let now = Timestamp::now();
                self.child.change(|state| state.active = now);
                return;
            }
            _ => return,
        };
        self.asking.push(call);
        // The time stands still while a person is asked.
        if let Some(deadline) = self.deadline.take() {
            self.left = Some(deadline.saturating_duration_since(Instant::now()));
        }
        self.node.send_live(self.child.path.clone(), live);
        let state = self.child.change(|state| state.status = AgentStatus::Waiting);
        self.node.publish(state);
    }

    fn asker(&self) -> Asker {
        Asker { path: self.child.path.clone(), role: self.child.role.name.clone() }
    }

    fn answered(&mut self, call: &str) {
        let before = self.asking.len();
        self.asking.retain(|it| it != call);
        if self.asking.len() == before {
            return;
        }
        let live = Live::AnswerTaken { call_id: call.to_owned(), agent: self.asker() };
        self.node.send_live(self.child.path.clone(), live);
        if self.asking.is_empty() && self.child.is_open() {
            self.deadline = self.left.take().map(|left| Instant::now() + left);
            let state = self.child.change(|state| state.status = AgentStatus::Running);
            self.node.publish(state);
        }
    }

    /// The end of a Turn: the parent records it, then those who wait hear of it.
    async fn end(&mut self) {
        for call in std::mem::take(&mut self.asking) {
            let live = Live::AnswerTaken { call_id: call, agent: self.asker() };
            self.node.send_live(self.child.path.clone(), live);
        }
        self.deadline = None;
        self.left = None;
        let outcome = std::mem::take(&mut self.outcome);
        let (child, folder) = (Arc::clone(&self.child), self.node.outputs.clone());
        let made = tokio::task::spawn_blocking(move || {
            outcome.result(child.name(), child.session.as_str(), false, folder.as_deref())
        });
        let mut result = match made.await {
            Ok(result) => result,
            Err(e) => failed(&self.child, &panicked(&e.to_string())),
        };
        if self.is_late {
            result.status = AgentStatus::TimedOut;
            result.error = Some(self.child.too_long().body());
        }
        self.node.ended(&self.child, result).await;
    }

    async fn never_ran(self, error: &Error) {
        let result = failed(&self.child, error);
        self.node.ended(&self.child, result).await;
    }
}

/// The result of a child that could not run.
pub(super) fn failed(child: &Child, error: &Error) -> AgentResult {
    AgentResult {
        name: child.name().to_owned(),
        session_id: child.session.to_string(),
        status: AgentStatus::Failed,
        error: Some(error.body()),
        ..AgentResult::default()
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
