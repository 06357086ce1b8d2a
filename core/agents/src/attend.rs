//! Watching a child: its Turns, what it asks the user, and the end of each Turn, which its parent records.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::child::{Child, TurnOrder};
use super::node::Node;
use super::tally::Tally;
use call::agents::{AGENT_EVENT, OrderedBy};
use call::tool::panicked;
use door::{Handle, Watch};
use protocol::agent::{Asker, WaitingFor};
use protocol::error::{Error, ErrorBody};
use protocol::event::{
    AgentEvent, AgentResult, AgentStatus, Delivery, Entry, Event, Fact, Live, LiveEvent, Telling, ToldBy, WaitsOn,
};
use protocol::input::Input;
use protocol::now::Now;

/// A parent hears of a running child at most this often.
const EACH: Duration = Duration::from_millis(100);
/// How long an agent that has used up its time may take for its last answer.
const LAST_ANSWER: Duration = Duration::from_secs(60);

/// Watches a child as long as its Session is open.
pub(super) struct Attendant {
    pub(super) node: Arc<Node>,
    pub(super) child: Arc<Child>,
    /// Keeps the Session open while a Turn runs.
    held: Option<Handle>,
    /// Keeps those above it open too, where none of them waits for the Turn.
    held_above: Vec<Handle>,
    /// The running Turn, or the last one.
    turn: u32,
    /// The last Turn whose end was taken.
    ended_turn: u32,
    tally: Tally,
    began: Instant,
    order: TurnOrder,
    /// When the Turn has taken too long; `None` while the user is asked, and where there is no limit.
    deadline: Option<Instant>,
    /// The rest of the time while the user is asked.
    left: Option<Duration>,
    is_late: bool,
    /// What it did before it began to wait for something that no user is asked about.
    was_doing: Option<String>,
    /// Calls that wait for the user.
    asking: Vec<String>,
    /// When the parent hears of what changed.
    due: Option<Instant>,
    /// The parent records the end of the last Turn, which waits for the user's decision about files.
    ending: Option<JoinHandle<()>>,
}

impl Attendant {
    /// Watches an open child. With an Input, that is sent first.
    pub(super) async fn attend(
        node: Arc<Node>,
        child: Arc<Child>,
        door: Handle,
        mut watch: Watch,
        first: Option<Input>,
    ) {
        let weak = door.downgrade();
        child.seen.send_replace(watch.past.turns);
        let mut it = Attendant {
            turn: watch.past.turns,
            ended_turn: watch.past.turns,
            node,
            child,
            held: None,
            held_above: Vec::new(),
            tally: Tally::default(),
            began: Instant::now(),
            order: TurnOrder::default(),
            deadline: None,
            left: None,
            is_late: false,
            was_doing: None,
            asking: Vec::new(),
            due: None,
            ending: None,
        };
        if let Some(first) = first {
            let accepted = door.request(first).await;
            if let Err(error) = accepted {
                it.held = Some(door);
                return it.never_ran(&error).await;
            }
            Node::send_early(&it.child, &door).await;
            it.held = Some(door);
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
                        it.note_told(&entry);
                        if entry.turn.is_some_and(|turn| turn > it.turn) {
                            it.decide_later().await;
                            it.held = weak.upgrade();
                            it.begin_turn(&entry).await;
                        }
                        it.take(&entry).await;
                    }
                    Some(Event::Live(LiveEvent { live: Live::TurnAbandoned { turn, error }, agent_path, .. }))
                        if agent_path.is_empty() =>
                    {
                        it.abandoned(turn, error).await;
                    }
                    Some(Event::Live(live)) => it.relay(live),
                },
                () = stop.cancelled(), if is_running => {
                    it.interrupt().await;
                    it.order.stop = Default::default();
                }
                () = until(it.deadline), if it.deadline.is_some() => {
                    it.time_is_up().await;
                }
                () = over(&mut it.ending), if it.ending.is_some() => {
                    it.ending = None;
                    // What the child was told meanwhile is its next Turn.
                    if !it.goes_on().await {
                        it.held = None;
                        it.held_above.clear();
                    }
                }
                () = until(it.due), if it.due.is_some() => {
                    it.due = None;
                    it.node.publish(it.child.state());
                }
            }
        }
        // The Session closed while a Turn ran: its process is going away. One that only waits for the user's word on its files
        // has ended its Turn.
        let waits_with_files = *it.child.adoptions.asks.lock();
        if it.ending.is_none() && it.child.is_open() && !waits_with_files {
            it.end(None).await;
        }
        if it.ending.is_some() {
            over(&mut it.ending).await;
        }
        it.child.place.leave();
        it.node.tidy(&it.child).await;
    }

    /// The Turn has used up its time: it may say once what it found, and is stopped if that takes long as well.
    async fn time_is_up(&mut self) {
        if std::mem::replace(&mut self.is_late, true) {
            self.deadline = None;
            return self.interrupt().await;
        }
        self.deadline = Some(Instant::now() + LAST_ANSWER);
        if let Some(door) = &self.held {
            door.wind_up(self.child.too_long()).await;
        }
    }

    /// Whether the child has begun another Turn, or will. The Session itself is asked, because a message leaves the queue
    /// before an Entry tells of its Turn.
    async fn goes_on(&self) -> bool {
        let Some(door) = &self.held else { return false };
        let watch = door.watch().await;
        watch.is_some_and(|it| {
            let Now { turn, queue, .. } = &it.now;
            turn.is_some() || !queue.follow_up.is_empty()
        })
    }

    async fn interrupt(&self) {
        if let Some(door) = &self.held {
            door.send(Input::Interrupt).await;
        }
    }

    /// The parent knows what the user has said to its child, on whichever way it came.
    fn note_told(&self, entry: &Entry) {
        let Fact::UserMessage(it) = &entry.fact else { return };
        let mut sent = self.child.sent.lock();
        if let Some(at) = sent.iter().position(|text| *text == it.text) {
            sent.remove(at);
            return;
        }
        let how = if it.delivery == Delivery::Steer { Telling::Steer } else { Telling::Next };
        let (name, text) = (self.child.name().to_owned(), it.text.clone());
        self.node.note(AgentEvent::Told { name, by: ToldBy::User, how, text });
    }

    async fn begin_turn(&mut self, first: &Entry) {
        self.turn = first.turn.unwrap_or(self.turn);
        self.tally = Tally::default();
        self.began = Instant::now();
        self.is_late = false;
        self.asking.clear();
        self.was_doing = None;
        let is_new = self.child.is_open();
        if !is_new {
            let order = self.child.next.lock().pop_front().unwrap_or_default();
            *self.child.order.lock() = order;
            let _ = self.child.ended.send_replace(None);
            self.node.note(AgentEvent::Resumed { name: self.child.name().to_owned() });
        }
        self.order = self.child.order.lock().clone();
        self.deadline = (self.order.by != OrderedBy::User).then(|| self.began + self.child.bounds.time);
        if self.order.by != OrderedBy::Parent {
            self.held_above = self.node.doors_above().await;
        }
        let now = Timestamp::now();
        let state = self.child.change(|state| {
            (state.status, state.waiting_for) = (AgentStatus::Running, None);
            (state.since, state.active, state.took_ms) = (now, now, None);
        });
        self.node.publish(state);
        self.child.seen.send_replace(self.turn);
    }

    async fn take(&mut self, entry: &Arc<Entry>) {
        self.tally.take(entry);
        let now = Timestamp::now();
        let (added, removed) = self.tally.lines();
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
        // The end of a Turn that was abandoned is recorded when the next one begins.
        if matches!(entry.fact, Fact::TurnEnded(_)) && self.ended_turn < self.turn {
            self.end(None).await;
        }
    }

    /// The Log of the child has no end of this Turn. The parent waits for this event in its place.
    async fn abandoned(&mut self, turn: u32, error: Box<ErrorBody>) {
        let live = Live::TurnAbandoned { turn, error: error.clone() };
        self.node.send_live(self.child.path.clone(), live);
        if turn == self.turn && self.ended_turn < self.turn {
            self.end(Some(*error)).await;
        }
    }

    /// The child goes on before the user has decided about its files: they are offered again at its next end.
    async fn decide_later(&mut self) {
        if self.ending.is_some() {
            self.child.adoptions.decided.send_modify(|times| *times += 1);
            over(&mut self.ending).await;
            self.ending = None;
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
            // It asked something that no call waits for.
            Live::AnswerTaken { call_id, .. } => return self.answered(&call_id),
            Live::Status { .. } if self.asking.is_empty() => return self.go_on(),
            // What the child could not record of its own children concerns the user of the tree.
            Live::Refused(it) if it.input == AGENT_EVENT => {
                return self.node.send_live(self.child.path.clone(), Live::Refused(it));
            }
            Live::TurnWaits { on } => return self.turn_waits(on),
            Live::QueueChanged { steer, follow_up } => {
                let state = self.child.change(|state| state.queued = steer.into_iter().chain(follow_up).collect());
                return self.node.publish(state);
            }
            Live::TextDelta { .. } | Live::ReasoningDelta { .. } | Live::ToolOutputDelta { .. } => {
                let now = Timestamp::now();
                self.child.change(|state| state.active = now);
                return;
            }
            _ => return,
        };
        self.asking.push(call);
        self.node.send_live(self.child.path.clone(), live);
        self.stand_still();
    }

    /// The time stands still while a person is asked.
    fn stand_still(&mut self) {
        self.stop_clock();
        if !self.child.state().asks() && self.child.is_open() {
            let doing = self.was_doing.take();
            let state = self.child.change(|state| {
                (state.status, state.waiting_for) = (AgentStatus::Waiting, Some(WaitingFor::User));
                state.doing = doing.unwrap_or_else(|| std::mem::take(&mut state.doing));
            });
            self.node.publish(state);
        }
    }

    fn stop_clock(&mut self) {
        if let Some(deadline) = self.deadline.take() {
            self.left = Some(deadline.saturating_duration_since(Instant::now()));
        }
    }

    /// The Turn waits for something that no user is asked about, or goes on.
    fn turn_waits(&mut self, on: Option<WaitsOn>) {
        if !self.asking.is_empty() || !self.child.is_open() {
            return;
        }
        let Some(on) = on else { return self.go_on() };
        let (waiting_for, why) = match on {
            WaitsOn::Lease { holder } => (WaitingFor::Lease, format!("until {holder} has changed the same files")),
            WaitsOn::Rate { wait_ms } => {
                (WaitingFor::Rate, format!("{} s, as the provider asked for", wait_ms.div_ceil(1_000)))
            }
            WaitsOn::Requests { provider, holders } => {
                // The agent has no part in how long the others take.
                self.stop_clock();
                let holders = holders.join(", ");
                (WaitingFor::Rate, format!("until {provider} has answered one of: {holders}"))
            }
            WaitsOn::Budget { used, most } => {
                self.stop_clock();
                (WaitingFor::Budget, format!("for more tokens: {used} of {most} are used"))
            }
            WaitsOn::Place => {
                // The agent has no part in how long the others take.
                self.stop_clock();
                (WaitingFor::Place, "for a free place".to_owned())
            }
        };
        let mut was_doing = String::new();
        let state = self.child.change(|state| {
            was_doing = std::mem::replace(&mut state.doing, format!("waits {why}"));
            (state.status, state.waiting_for) = (AgentStatus::Waiting, Some(waiting_for));
        });
        self.was_doing.get_or_insert(was_doing);
        self.node.publish(state);
    }

    /// It waits for nothing any more.
    fn go_on(&mut self) {
        if self.ending.is_some() {
            return;
        }
        if let Some(left) = self.left.take() {
            self.deadline = Some(Instant::now() + left);
        }
        if self.child.state().status == AgentStatus::Waiting {
            let doing = self.was_doing.take();
            let state = self.child.change(|state| {
                (state.status, state.waiting_for) = (AgentStatus::Running, None);
                state.doing = doing.unwrap_or_else(|| std::mem::take(&mut state.doing));
            });
            self.node.publish(state);
        }
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
            self.go_on();
        }
    }

    /// The end of a Turn: the parent records it, then those who wait hear of it. Meanwhile the child is watched: the user
    /// may tell it more. `fault`: why the Log of the child has no end of the Turn.
    async fn end(&mut self, fault: Option<ErrorBody>) {
        self.ended_turn = self.turn;
        for call in std::mem::take(&mut self.asking) {
            let live = Live::AnswerTaken { call_id: call, agent: self.asker() };
            self.node.send_live(self.child.path.clone(), live);
        }
        self.deadline = None;
        self.left = None;
        // The call that waits for this Turn cancels it when it has the result, and the user may have begun the next one by then.
        self.order.stop = Default::default();
        let tally = std::mem::take(&mut self.tally);
        let (child, folder) = (Arc::clone(&self.child), self.node.outputs.clone());
        let blobs = self.node.base.0.blobs.clone();
        let made =
            task::spawn_blocking(move || tally.result(child.name(), child.session.as_str(), folder.as_deref(), &blobs));
        let mut result = match made.await {
            Ok(result) => result,
            Err(e) => failed(&self.child, &panicked(&e.to_string())),
        };
        if let Some(fault) = fault {
            (result.status, result.error) = (AgentStatus::Failed, Some(fault));
            result.duration_ms = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        } else if self.is_late && !result.is_answered() {
            result.status = AgentStatus::TimedOut;
            result.error = Some(self.child.too_long().body());
        }
        let (node, child) = (Arc::clone(&self.node), Arc::clone(&self.child));
        self.ending = Some(task::spawn(node.ended(child, result)));
    }

    async fn never_ran(self, error: &Error) {
        let result = failed(&self.child, error);
        self.node.ended(self.child, result).await;
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

/// Returns when the task is over.
async fn over(task: &mut Option<JoinHandle<()>>) {
    if let Some(task) = task
        && let Err(e) = task.await
    {
        tracing::error!("the end of an agent was not recorded: {e}");
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
