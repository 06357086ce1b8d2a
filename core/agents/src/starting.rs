//! How a child begins: its place among those that run, its Log, its Session.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::sync::oneshot;

use super::attend::{Attendant, failed};
use super::child::{Bounds, Child, Terms, TurnOrder, Unbegun};
use super::node::Node;
use super::way::{Begins, Opened, send};
use super::writers::may_write;
use super::{Beginning, Position, Role, begin, close_what_is_open, copies, parent_of, role, settle};
use call::Leases;
use call::agents::{Above, AgentNews, Order, OrderedBy};
use call::tool::panicked;
use conversation::history::History;
use door::{Handle, answer_of};
use protocol::agent::AgentState;
use protocol::error::{Code, Error, Result};
use protocol::event::{
    AgentContext, AgentEvent, AgentResult, AgentStatus, Isolation, Mode, SessionId, SessionStarted, Spawned,
};
use protocol::input::Input;
use session::{Branch, LogAccess, Services};
use storage::log::{self, Log, LogWriter};

impl Node {
    pub(super) async fn start(self: Arc<Node>, order: Order) -> Result<AgentState> {
        let wished = order.role.as_deref().unwrap_or("worker");
        let library = Arc::clone(&self.base.0.library);
        let roles = call::off_loop(move || Ok(library.roles())).await?;
        let role = Arc::new(Role::for_child(&self.allowed(roles), wished)?.clone());
        // A role whose settings cannot be had starts nothing.
        let schema = order.schema.clone().or_else(|| role.schema.clone());
        role::settings(&role, schema.as_ref(), &self.settings.lock().clone(), &self.base.0)?;
        // The graph of a workflow bounds its agents.
        if order.step.is_none() {
            self.may_start()?;
        }
        let tree = Arc::clone(&self.at.tree);
        let name = tree.take_name(order.name.as_deref(), &role.name)?;
        let id = order.step.as_ref().map_or_else(SessionId::now, Clone::clone);
        let bounds = Bounds::new(tree.options, role::limits(role.limits, order.limits));
        // Until the child is among the writers, no other one chooses its files.
        let choosing = tree.writers.choosing.lock().await;
        let (isolation, note) = match order.isolation.max(role.isolation) {
            Some(named) => (named, None),
            None => {
                let may_write = may_write(&role, order.writes.as_deref(), self.at.standing.mode());
                let waiting = if order.waits { self.at.path.as_slice() } else { &[] };
                tree.writers.choose(self.base.0.workspace.root(), may_write, waiting).await
            }
        };
        let context = order.context.unwrap_or_default().max(role.context);
        let (writes, workflow) = (order.writes.clone(), order.workflow.clone());
        let terms = Terms { role, schema, bounds, writes, isolation, context, workflow };
        let above = (self.at.child.clone(), name.as_str());
        let child = Arc::new(Child::new(above, id.clone(), Arc::clone(&tree.places), terms, &order.task));
        *child.unbegun.lock() =
            Some(Unbegun { call_id: order.call_id.clone(), task: order.task.clone(), has_log: false });
        note.iter().for_each(|note| child.note(note));
        tree.writers.add(self.base.0.workspace.root(), &child);
        drop(choosing);
        *child.adoptions.waits_for_step.lock() = order.step.is_some();
        child.queue(TurnOrder {
            is_awaited: order.waits,
            waiting: 0,
            // The end of the call is the end of the child that it waits for.
            stop: if order.waits { order.cancel.child_token() } else { Default::default() },
            by: OrderedBy::Parent,
        });
        let spawned = Spawned {
            name: name.clone(),
            role: child.role.name.clone(),
            session_id: id.to_string(),
            call_id: order.call_id,
            task: order.task,
            waits: order.waits,
            role_digest: child.role.digest.clone(),
            // The role's own is in its file.
            schema: order.schema,
            writes: order.writes,
            isolation,
            context,
            note,
            is_run: child.workflow.is_some(),
        };
        if let Err(error) = self.record(AgentEvent::Spawned(Box::new(spawned))).await {
            tree.names.lock().remove(&name);
            return Err(error);
        }
        self.children.lock().push(Arc::clone(&child));
        let state = child.state();
        self.publish(state.clone());
        self.changed.notify_waiters();
        task::spawn(self.run(child, Begins::First));
        Ok(state)
    }

    /// The roles that the role of the Session leaves to its children.
    fn allowed(&self, mut roles: Vec<Role>) -> Vec<Role> {
        let spawns = self.at.child.as_ref().and_then(|child| child.role.spawns.as_ref());
        if let Some(spawns) = spawns {
            roles.retain(|role| spawns.contains(&role.name));
        }
        roles
    }

    pub(super) fn may_start(&self) -> Result<()> {
        let options = self.at.tree.options;
        if self.closed.load(Ordering::Relaxed) {
            return Err(Error::new(Code::CommandFailed, "the session is closing", "start the agent in a new session"));
        }
        if self.at.tree.started.fetch_add(1, Ordering::Relaxed) >= options.per_turn {
            self.at.tree.started.fetch_sub(1, Ordering::Relaxed);
            let message = format!("this turn has already started {} agents", options.per_turn);
            return Err(Error::new(Code::BudgetReached, message, "tell_agent to give one of them more to do"));
        }
        Ok(())
    }

    /// Waits for a place, opens the child and sends it a message. Its attendant does the rest.
    pub(super) async fn run(self: Arc<Node>, child: Arc<Child>, begins: Begins) {
        self.heed_stop_file();
        let stop = child.order.lock().stop.clone();
        // A run asks no model itself; its agents take the places.
        let is_run = child.workflow.is_some();
        let may_begin = tokio::select! {
            biased;
            () = stop.cancelled() => false,
            () = child.place.take(), if !is_run => true,
            () = std::future::ready(()), if is_run => true,
        };
        if !may_begin {
            let error = Error::new(Code::CommandFailed, "it was stopped before it began", "tell_agent to let it begin");
            let result = AgentResult { status: AgentStatus::Interrupted, ..failed(&child, &error) };
            return self.ended(child, result).await;
        }
        let (input, door) = match begins {
            Begins::First => {
                let Unbegun { call_id, task, has_log } = child.unbegun.lock().clone().unwrap_or_default();
                if !is_run {
                    child.sent.lock().push(task.clone());
                }
                let door = if has_log {
                    let unbegun = child.unbegun.lock().take();
                    // Where it cannot be opened now, it can be told to begin later.
                    self.reopen(&child).await.inspect_err(|_| *child.unbegun.lock() = unbegun)
                } else {
                    self.create(&child, call_id).await
                };
                (child.first_input(task), door)
            }
            Begins::Again(message) => {
                if child.order.lock().by != OrderedBy::User {
                    child.sent.lock().push(message.text.clone());
                }
                (Input::Prompt(message), self.reopen(&child).await)
            }
        };
        match door {
            Err(error) => {
                let result = failed(&child, &error);
                self.ended(child, result).await;
            }
            Ok(Opened::New(door, watch)) => Attendant::attend(self, child, door, *watch, Some(input)).await,
            // Its attendant sees the Turn begin.
            Ok(Opened::Already(door)) => match send(&child, &door, input).await {
                Ok(_) => Node::send_early(&child, &door).await,
                Err(error) => {
                    let result = failed(&child, &error);
                    self.ended(child, result).await;
                }
            },
        }
    }

    /// Begins the Session of a new child.
    async fn create(&self, child: &Arc<Child>, call_id: Option<String>) -> Result<Opened> {
        let services = self.base.0.clone();
        let parent = parent_of(self, child, call_id);
        let (id, role) = (child.session.clone(), Arc::clone(&child.role));
        let at = self.position(child);
        let schema = child.schema.clone();
        let settings = role::settings(&role, schema.as_ref(), &self.settings.lock().clone(), &services)?;
        let mode = role.mode.into_iter().fold(self.at.standing.mode(), Mode::stricter);
        let known = match child.context {
            AgentContext::None => None,
            AgentContext::Fork => self.conversation().await,
        };
        let parent_id = self.id.clone();
        let mut door = child.door.lock().await;
        let own = Arc::clone(child);
        let made = task::spawn_blocking(move || {
            copies::make(&services, &at.tree.root, &own)?;
            let services = copies::services(&services, &at)?.unwrap_or(services);
            let mut log = Log::create_on(Arc::clone(&services.disk), &services.place(&id).log(), id.clone())?;
            let (mut context, surroundings) = services.documents(mode, settings.toolset);
            context.extend(role::documents(&role, schema.as_ref(), &services)?);
            let started = SessionStarted {
                workspace: services.workspace.root().display().to_string(),
                model: settings.model,
                provider: settings.provider,
                toolset: settings.toolset,
                mode,
                effort: settings.effort,
                context,
                surroundings: Some(surroundings),
                role: None,
                parent: Some(Box::new(parent)),
                sandbox: Some(services.sandbox.tier().name().to_owned()),
                pixir_version: env!("CARGO_PKG_VERSION").into(),
            };
            let branch = known.as_deref().and_then(|history| Some((history, history.last_settled()?)));
            let Some((history, seq)) = branch else {
                let first = log.append(None, started.into())?;
                log.establish()?;
                return Ok((log, History::fold([first]), at));
            };
            let path = services.place(&id).log();
            let branch = Branch::to(history, &parent_id, &services, seq).without_reasoning();
            branch.copy_to(&mut log, &id, started, SessionStarted::FIELDS, None)?;
            log.establish()?;
            Ok((log, History::fold(log::read(&path)?.entries), at))
        });
        let (log, history, at) = made.await.unwrap_or_else(|e| Err(panicked(&e.to_string())))?;
        let beginning = Beginning {
            id: child.session.clone(),
            log: LogAccess::Writes(LogWriter::new(log)),
            history,
            note: None,
            at,
        };
        let opened = watched(begin(&self.services(), beginning)?).await?;
        *door = Some(opened.door().downgrade());
        *child.unbegun.lock() = None;
        Ok(opened)
    }

    /// The conversation of the parent as it is now; `None` when the parent has closed.
    async fn conversation(&self) -> Option<Box<History>> {
        let (reply, history) = oneshot::channel();
        self.news.send(AgentNews::History { reply }).ok()?;
        answer_of(history, self.news.closed()).await
    }

    /// Opens the Session of a child that has ended, unless it is open.
    pub(super) async fn reopen(&self, child: &Arc<Child>) -> Result<Opened> {
        let mut door = child.door.lock().await;
        if let Some(open) = door.as_ref().and_then(door::WeakHandle::upgrade) {
            return Ok(Opened::Already(open));
        }
        if child.unbegun.lock().is_some() {
            return Err(child.not_begun());
        }
        let services = self.base.0.clone();
        let id = child.session.clone();
        let (own, root) = (Arc::clone(child), self.at.tree.root.clone());
        let read = task::spawn_blocking(move || {
            copies::make_again(&services, &root, &own)?;
            let path = services.place(&id).log();
            match Log::open_on(Arc::clone(&services.disk), &path, id.clone()) {
                Ok((mut log, contents)) => {
                    let mut history = History::fold(contents.entries);
                    let inside = copies::workspace(&services, &root, &own)?;
                    settle(&services, &inside, &mut log, &mut history)?;
                    close_what_is_open(&mut log, &mut history)?;
                    log.sync()?;
                    Ok((LogAccess::Writes(LogWriter::new(log)), history))
                }
                Err(why) if matches!(why.code, Code::CorruptLogLine | Code::SessionReadOnly | Code::SessionLocked) => {
                    Ok((LogAccess::ReadOnly(why), History::fold(log::read(&path)?.entries)))
                }
                Err(error) => Err(error),
            }
        });
        let (log, history) = read.await.unwrap_or_else(|e| Err(panicked(&e.to_string())))?;
        let at = self.position(child);
        let beginning = Beginning { id: child.session.clone(), log, history, note: None, at };
        let opened = watched(begin(&self.services(), beginning)?).await?;
        *door = Some(opened.door().downgrade());
        Ok(opened)
    }

    /// What a child begins with.
    fn services(&self) -> Services {
        let mut services = self.base.0.clone();
        services.options.can_ask &= self.asks.load(Ordering::Relaxed);
        services
    }

    fn position(&self, child: &Arc<Child>) -> Position {
        let above = Arc::clone(&self.budgets.lock());
        let pool = self.at.tree.pool.lock().clone();
        let mut role = child.role.bounds();
        if let Some(tools) = role.tools.as_mut().filter(|_| child.schema.is_some()) {
            tools.push(call::agents::REPORT.to_owned());
        }
        let call =
            child.writes.clone().map(|writes| permissions::Bounds { writes: Some(writes), ..Default::default() });
        // The pool of the tree is drawn from once, however deep the child is.
        let pool = Some(pool).filter(|_| self.at.path.is_empty());
        Position {
            tree: Arc::clone(&self.at.tree),
            path: child.path.clone(),
            runs: self.at.runs + usize::from(child.workflow.is_some()),
            standing: self.at.standing.below(child.session.clone(), role, call),
            child: Some(Arc::clone(child)),
            leases: match child.isolation {
                Isolation::Shared => self.at.leases.clone(),
                Isolation::Copy | Isolation::Scratch => Leases::default(),
            },
            above: Some(Above {
                name: child.name().to_owned(),
                shares_files: child.isolation == Isolation::Shared,
                news: self.news.clone(),
            }),
            budgets: above.iter().cloned().chain(pool).collect(),
        }
    }
}

/// The watch begins before another caller who has the door can start a Turn.
async fn watched(door: Handle) -> Result<Opened> {
    match door.watch().await {
        Some(watch) => Ok(Opened::New(door, Box::new(watch))),
        None => Err(Error::new(Code::SessionStartFailed, "the agent's session has closed", "try again")),
    }
}
