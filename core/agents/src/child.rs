//! One child: what it is, what it does now, and its door.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;

use super::Role;
use call::AgentPlace;
use call::agents::OrderedBy;
use context::roles::RoleLimits;
use door::WeakHandle;
use protocol::agent::AgentState;
use protocol::error::{Code, Error};
use protocol::event::{Adoption, AgentContext, AgentResult, AgentStatus, Cost, Isolation, SessionId, Telling, Usage};
use protocol::input::{Input, Message, WorkflowOrder};
use session::{AgentOptions, Limits};

/// A child Session, whether it runs or has ended.
#[derive(Debug)]
pub(super) struct Child {
    pub(super) path: Vec<String>,
    /// The child above it; `None` where the root started it.
    pub(super) parent: Option<Arc<Child>>,
    pub(super) session: SessionId,
    pub(super) role: Arc<Role>,
    /// The JSON Schema of its report, if it is to have one.
    pub(super) schema: Option<Value>,
    pub(super) bounds: Bounds,
    /// Globs of the files that the call which started it lets it change; `None` leaves it to the role.
    pub(super) writes: Option<Vec<String>>,
    pub(super) isolation: Isolation,
    pub(super) context: AgentContext,
    /// It is a run of this workflow.
    pub(super) workflow: Option<Box<WorkflowOrder>>,
    /// What its result says about the files that it works on.
    notes: Mutex<Vec<String>>,
    pub(super) adoptions: Adoptions,
    pub(super) state: Mutex<AgentState>,
    /// The end of its last Turn; `None` while one runs or is queued.
    pub(super) ended: watch::Sender<Option<Arc<AgentResult>>>,
    pub(super) order: Mutex<TurnOrder>,
    /// What the parent has ordered for the Turns after the running one.
    pub(super) next: Mutex<VecDeque<TurnOrder>>,
    /// What its Session begins with; `None` from then on.
    pub(super) unbegun: Mutex<Option<Unbegun>>,
    /// What it is told while it waits for a place, and no Session takes it in; `None` while it does not wait.
    pub(super) early: Mutex<Option<Vec<Told>>>,
    /// Messages of the Sessions above that it has not read yet. What it reads besides is from the user.
    pub(super) sent: Mutex<Vec<String>>,
    /// The last Turn that its attendant has seen.
    pub(super) seen: watch::Sender<u32>,
    /// The door, as long as the Session is open.
    pub(super) door: tokio::sync::Mutex<Option<WeakHandle>>,
    /// Its place among the agents that run.
    pub(super) place: AgentPlace,
}

/// A child that has not been told its task yet.
#[derive(Debug, Clone, Default)]
pub(super) struct Unbegun {
    /// The call that started it.
    pub(super) call_id: Option<String>,
    pub(super) task: String,
    /// Its Log is on the disk: pixir was killed before its first Turn.
    pub(super) has_log: bool,
}

/// A message for a child.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) how: Telling,
    pub(super) message: Message,
    pub(super) by: OrderedBy,
}

/// The state of the files that a child changed in its copy.
#[derive(Debug, Default)]
pub(super) struct Adoptions {
    /// Up to which Entry of the child's Log a file waits no more, by path.
    pub(super) settled: Mutex<BTreeMap<String, u64>>,
    /// What was adopted since its last Turn ended.
    pub(super) done: Mutex<Option<Adoption>>,
    /// One at a time.
    pub(super) one: tokio::sync::Mutex<()>,
    /// The Turn has ended, and its end waits for the user's decision about the files.
    pub(super) asks: Mutex<bool>,
    /// The child does a step of a workflow that is not over: its files wait until the step is checked.
    pub(super) waits_for_step: Mutex<bool>,
    /// The user has decided so many times.
    pub(super) decided: watch::Sender<u64>,
}

impl Adoptions {
    /// The files of this adoption wait no more.
    pub(super) fn settle(&self, it: &Adoption) {
        let mut settled = self.settled.lock();
        let paths = it.changes.iter().map(|change| &change.path).chain(&it.kept);
        settled.extend(paths.map(|path| (path.clone(), it.to_seq)));
    }
}

/// What a child is, from its beginning on.
pub(super) struct Terms {
    pub(super) role: Arc<Role>,
    pub(super) schema: Option<Value>,
    pub(super) bounds: Bounds,
    pub(super) writes: Option<Vec<String>>,
    pub(super) isolation: Isolation,
    pub(super) context: AgentContext,
    pub(super) workflow: Option<Box<WorkflowOrder>>,
}

/// Who wants the Turn of a child that runs or is queued.
#[derive(Debug, Clone, Default)]
pub(super) struct TurnOrder {
    /// A call waits for its end; otherwise the end is reported to the model.
    pub(super) is_awaited: bool,
    /// How many calls wait for it besides.
    pub(super) waiting: usize,
    /// Cancelled when it is to stop.
    pub(super) stop: CancellationToken,
    pub(super) by: OrderedBy,
}

impl TurnOrder {
    pub(super) fn by(by: OrderedBy) -> TurnOrder {
        TurnOrder { by, ..TurnOrder::default() }
    }
}

/// Limits of a Turn of the child.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    pub(super) rounds: u32,
    pub(super) tokens: u64,
    pub(super) time: Duration,
}

impl Bounds {
    /// The limits of the options, lowered by these.
    pub(super) fn new(options: AgentOptions, order: RoleLimits) -> Bounds {
        Bounds {
            rounds: order.rounds.unwrap_or(u32::MAX).min(options.rounds),
            tokens: order.tokens.unwrap_or(u64::MAX).min(options.tokens),
            time: Duration::from_secs(order.seconds.unwrap_or(u64::MAX).min(options.seconds)),
        }
    }
}

impl Child {
    pub(super) fn new(
        (parent, name): (Option<Arc<Child>>, &str),
        session: SessionId,
        places: Arc<Semaphore>,
        terms: Terms,
        task: &str,
    ) -> Child {
        let above = parent.as_ref().map_or(&[][..], |parent| &parent.path);
        let path: Vec<String> = above.iter().cloned().chain([name.to_owned()]).collect();
        let Terms { role, schema, bounds, writes, isolation, context, workflow } = terms;
        let now = Timestamp::now();
        let line: String = task.lines().next().unwrap_or_default().chars().take(200).collect();
        let state = AgentState {
            path: path.clone(),
            session_id: session.to_string(),
            role: role.name.clone(),
            task: line,
            status: AgentStatus::Queued,
            waiting_for: None,
            doing: String::new(),
            since: now,
            active: now,
            took_ms: None,
            calls: 0,
            usage: Usage::default(),
            cost: Cost::default(),
            added: 0,
            removed: 0,
            queued: Vec::new(),
            waiting_files: 0,
            is_run: workflow.is_some(),
        };
        Child {
            path,
            parent,
            session,
            role,
            schema,
            bounds,
            writes,
            isolation,
            context,
            workflow,
            notes: Mutex::default(),
            adoptions: Adoptions::default(),
            state: Mutex::new(state),
            ended: watch::Sender::new(None),
            order: Mutex::default(),
            next: Mutex::default(),
            unbegun: Mutex::default(),
            early: Mutex::default(),
            sent: Mutex::default(),
            seen: watch::Sender::default(),
            door: tokio::sync::Mutex::default(),
            place: AgentPlace::among(places),
        }
    }

    pub(super) fn name(&self) -> &str {
        self.path.last().map_or("", String::as_str)
    }

    /// Has its results say this about the files that it works on.
    pub(super) fn note(&self, text: &str) {
        let mut notes = self.notes.lock();
        if notes.iter().all(|note| note != text) {
            notes.push(text.to_owned());
        }
    }

    /// What its result says about the files that it works on.
    pub(super) fn notes(&self) -> Option<String> {
        Some(self.notes.lock().join("; ")).filter(|it| !it.is_empty())
    }

    pub(super) fn state(&self) -> AgentState {
        self.state.lock().clone()
    }

    pub(super) fn is_open(&self) -> bool {
        self.state.lock().status.is_open()
    }

    /// Changes the state, and returns it.
    pub(super) fn change(&self, change: impl FnOnce(&mut AgentState)) -> AgentState {
        let mut state = self.state.lock();
        change(&mut state);
        state.clone()
    }

    /// Limits of its Turns, but for the time: that stands still while the user is asked.
    pub(super) fn limits(&self) -> Limits {
        Limits {
            max_rounds: Some(self.bounds.rounds),
            max_tokens: Some(self.bounds.tokens),
            deadline: None,
            max_cost_usd: None,
        }
    }

    /// The error of a Turn that took too long.
    pub(super) fn too_long(&self) -> Error {
        let message = format!("{} reached its limit of {} s", self.name(), self.bounds.time.as_secs());
        Error::new(Code::Timeout, message, "tell_agent to let it go on, or give a smaller task")
    }

    /// It waits for a place: what it is told from now on waits too.
    pub(super) fn queue(&self, order: TurnOrder) {
        *self.order.lock() = order;
        self.early.lock().get_or_insert_default();
        let _ = self.ended.send_replace(None);
    }

    /// Keeps what a child is told that waits for a place, and returns how much is kept; gives it back where it can be said
    /// to its Session.
    pub(super) fn keep(&self, told: Told) -> std::result::Result<usize, Told> {
        let mut early = self.early.lock();
        match early.as_mut() {
            Some(early) if self.is_open() => {
                early.push(told);
                self.change(|state| state.queued = early.iter().map(|it| it.message.text.clone()).collect());
                Ok(early.len())
            }
            Some(_) | None => Err(told),
        }
    }

    /// Why nothing can be said to its Session yet, and nothing seen of it.
    pub(super) fn not_begun(&self) -> Error {
        let name = self.name();
        if self.is_open() {
            let message = format!("{name} waits for a free place and has not begun yet");
            return Error::new(Code::CommandFailed, message, "tell it something now, which it reads when it begins");
        }
        let message = format!("{name} was stopped before it began");
        Error::new(Code::CommandFailed, message, "tell it something, and it begins")
    }

    /// What its first Turn begins with.
    pub(super) fn first_input(&self, task: String) -> Input {
        match &self.workflow {
            Some(order) => Input::RunWorkflow((**order).clone()),
            None => Input::Prompt(Message { text: task, ..Message::default() }),
        }
    }

    /// Stops its Turn, whether it runs or is queued.
    pub(super) fn stop(&self) {
        self.order.lock().stop.cancel();
    }
}
