//! Children that a Log names: those of a Session that is opened again, and ends that a crash kept from being recorded.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::Position;
use super::Role;
use super::child::{Bounds, Child, Terms, Unbegun};
use super::own_entries;
use super::tally::Tally;
use call::agent_end::{MOST_TOLD, headline, reported, reported_within};
use conversation::history::History;
use files::restore::carry_out;
use files::workspace::Workspace;
use protocol::agent::AgentState;
use protocol::error::{Code, Error, Result};
use protocol::event::{
    Adoption, AgentEvent, AgentResult, AgentStatus, Fact, Isolation, ParentSession, SessionId, Spawned, Telling,
    ToldBy, ToolResult,
};
use session::Services;
use storage::log::{self, Log};
use storage::outputs;

/// A child as the Log of its parent tells it.
struct Link {
    spawned: Spawned,
    /// The end of its last Turn; `None` if the Log has none.
    ended: Option<AgentResult>,
    /// What was adopted from its copy.
    adopted: Vec<Adoption>,
    /// How much of that was adopted before the end of its last Turn.
    adopted_before: usize,
    /// What was about to be written when the process died.
    adopting: Option<Adoption>,
    /// The model ordered its last Turn, and no call waits for the end.
    to_report: bool,
    /// The model has read the end of its last Turn.
    is_told: bool,
}

impl Link {
    /// The end of a Turn as the model reads it once the process that saw it has gone: with what became of the files.
    fn with_files(&self, result: AgentResult) -> AgentResult {
        if result.isolation != Isolation::Copy || result.evidence.changed.is_empty() {
            return result;
        }
        let since = &self.adopted[self.adopted_before.min(self.adopted.len())..];
        let all = since.iter().cloned().reduce(|mut all, it| {
            all.changes.extend(it.changes);
            all.kept.extend(it.kept);
            Adoption { left: it.left, ..all }
        });
        let is_settled = |path: &String| {
            let of = |it: &Adoption| it.kept.contains(path) || it.changes.iter().any(|change| change.path == *path);
            since.iter().any(of)
        };
        let unasked = !result.evidence.changed.iter().all(is_settled);
        AgentResult { adoption: all.map(Box::new), unasked, ..result }
    }
}

/// The children that a Log names, oldest first.
fn links(history: &History) -> Vec<Link> {
    let mut all: Vec<Link> = Vec::new();
    let mut at: BTreeMap<&str, usize> = BTreeMap::new();
    for entry in history.entries() {
        let event = match &entry.fact {
            Fact::AgentEvent(event) => &**event,
            Fact::ToolResult(it) => {
                for link in &mut all {
                    if link.ended.is_some() && !link.is_told {
                        link.is_told = it.output.contains(&headline(&link.spawned.name));
                    } else if link.ended.is_none() && link.spawned.call_id.as_ref() == Some(&it.call_id) {
                        // The user said something, so the call has stopped waiting.
                        link.to_report = true;
                    }
                }
                continue;
            }
            _ => continue,
        };
        match event {
            AgentEvent::Spawned(spawned) => {
                at.insert(&spawned.name, all.len());
                all.push(Link {
                    spawned: (**spawned).clone(),
                    ended: None,
                    adopted: Vec::new(),
                    adopted_before: 0,
                    adopting: None,
                    to_report: !spawned.waits,
                    is_told: false,
                });
            }
            AgentEvent::Ended(result) => {
                if let Some(at) = at.get(result.name.as_str()) {
                    all[*at].ended = Some((**result).clone());
                    all[*at].adopted_before = all[*at].adopted.len();
                }
            }
            AgentEvent::Resumed { name } => {
                if let Some(at) = at.get(name.as_str()) {
                    (all[*at].ended, all[*at].is_told) = (None, false);
                }
            }
            AgentEvent::Adopting(it) => {
                if let Some(at) = at.get(it.name.as_str()) {
                    all[*at].adopting = Some((**it).clone());
                }
            }
            AgentEvent::Adopted(it) => {
                if let Some(at) = at.get(it.name.as_str()) {
                    all[*at].adopting = None;
                    all[*at].adopted.push((**it).clone());
                }
            }
            // What joins a running Turn does not change who ordered it.
            AgentEvent::Told { name, by, how, .. } => {
                if let Some(at) = at.get(name.as_str()).filter(|at| all[**at].ended.is_some()) {
                    all[*at].to_report = *by == ToldBy::Parent && *how != Telling::Stop;
                }
            }
            AgentEvent::Reported { name, .. } => {
                if let Some(at) = at.get(name.as_str()) {
                    all[*at].is_told = true;
                }
            }
            AgentEvent::Changed { .. } => {}
        }
    }
    all
}

/// Records the ends of children whose parent died before it could. An end that the child's Log has is taken over; a child
/// that died too is repaired, and never started again by itself. A call that waited for it gets its result.
/// Files that the dead process was about to write to `workspace`, the one that the Session works on, are written. An end that
/// no call waited for and that the model has not read stands before its next request.
///
/// # Errors
/// Those of the parent's Log.
pub fn settle(services: &Services, workspace: &Arc<Workspace>, log: &mut Log, history: &mut History) -> Result<()> {
    let all = links(history);
    let turn = Some(history.turns).filter(|turn| *turn > 0);
    let folder = outputs::real(&services.place(&history_id(history)).outputs());
    let mut unread = Vec::new();
    for mut link in all {
        if let Some(planned) = link.adopting.take() {
            let snapshot = services.snapshot.for_session(history_id(history));
            let (changes, left) = carry_out(&planned.changes, workspace, &services.blobs, &snapshot);
            let left = planned.left.into_iter().chain(left).collect();
            let done = Adoption { changes, left, ..planned };
            link.adopted.push(done.clone());
            history.append(log.append(turn, AgentEvent::Adopted(Box::new(done)).into())?);
        }
        let result = match link.ended.take() {
            Some(result) => result,
            None => {
                let own = works_on(services, workspace, &link.spawned, history);
                let result = last_end(services, own.as_ref(), &link.spawned, &folder);
                for event in changes_unknown(services, &link.spawned, history) {
                    history.append(log.append(turn, event.into())?);
                }
                history.append(log.append(turn, AgentEvent::Ended(Box::new(result.clone())).into())?);
                result
            }
        };
        let result = link.with_files(result);
        let waiting = link.spawned.call_id.clone().filter(|call| history.orphans().any(|orphan| orphan == call));
        if let Some(call_id) = waiting {
            let ok = result.status == AgentStatus::Completed;
            let told = ToolResult {
                call_id,
                ok,
                output: reported(&result),
                exit_code: Some(i32::from(!ok)),
                duration_ms: result.duration_ms,
                ..ToolResult::default()
            };
            history.append(log.append(turn, told.into())?);
        } else if link.to_report && !link.is_told {
            unread.push(result);
        }
    }
    if unread.is_empty() {
        return Ok(());
    }
    // They stand behind the results that repairs of the Log give to calls.
    super::close_what_is_open(log, history)?;
    let most = MOST_TOLD / unread.len();
    for result in unread {
        let event = AgentEvent::Reported { name: result.name.clone(), text: reported_within(&result, most) };
        history.append(log.append(turn, event.into())?);
    }
    Ok(())
}

/// The workspace that a child works on; `None` where its copy has gone.
fn works_on(
    services: &Services,
    parents: &Arc<Workspace>,
    spawned: &Spawned,
    history: &History,
) -> Option<Arc<Workspace>> {
    if spawned.isolation == Isolation::Shared {
        return Some(Arc::clone(parents));
    }
    let root = match &history.started.parent {
        Some(parent) => SessionId::parse(&parent.root_id).ok()?,
        None => history_id(history),
    };
    Workspace::open(&services.store.copies(&root).join(&spawned.name)).ok().map(Arc::new)
}

/// What a child changed that its parent could not record any more.
fn changes_unknown(services: &Services, spawned: &Spawned, history: &History) -> Vec<AgentEvent> {
    let known: BTreeSet<&str> = history
        .entries()
        .iter()
        .filter_map(|entry| match &entry.fact {
            Fact::AgentEvent(event)
                if let AgentEvent::Changed { name, call_id, .. } = &**event
                    && *name == spawned.name =>
            {
                Some(call_id.as_str())
            }
            _ => None,
        })
        .collect();
    // What it changed in its copy is not changed here.
    if spawned.isolation != Isolation::Shared {
        return Vec::new();
    }
    let Ok(id) = SessionId::parse(&spawned.session_id) else { return Vec::new() };
    let Ok(contents) = log::read(&services.place(&id).log()) else { return Vec::new() };
    let all = own_entries(&contents.entries).iter().filter_map(|entry| {
        let call_id = match &entry.fact {
            Fact::ToolResult(it) => it.call_id.clone(),
            Fact::AgentEvent(event) if let AgentEvent::Changed { call_id, .. } = &**event => call_id.clone(),
            Fact::AgentEvent(event) if let AgentEvent::Adopted(it) = &**event => it.as_call(),
            _ => return None,
        };
        let changes = entry.fact.changes().to_vec();
        let is_new = !changes.is_empty() && !known.contains(call_id.as_str());
        is_new.then(|| AgentEvent::Changed { name: spawned.name.clone(), call_id, changes })
    });
    all.collect()
}

fn history_id(history: &History) -> SessionId {
    history.entries().first().map_or_else(SessionId::now, |entry| entry.session_id.clone())
}

/// The end of a child's last Turn, as its own Log has it.
fn last_end(
    services: &Services,
    workspace: Option<&Arc<Workspace>>,
    spawned: &Spawned,
    folder: &std::path::Path,
) -> AgentResult {
    let never = || {
        let message = format!("pixir was killed before {} could begin", spawned.name);
        let error = Error::new(Code::NeverStarted, message, "tell_agent to let it begin, or do its task yourself");
        AgentResult {
            name: spawned.name.clone(),
            session_id: spawned.session_id.clone(),
            status: AgentStatus::Failed,
            error: Some(error.body()),
            late: true,
            ..AgentResult::default()
        }
    };
    let Ok(id) = SessionId::parse(&spawned.session_id) else { return never() };
    let path = services.place(&id).log();
    // Its own children first; then its open calls and its open Turn.
    if let Ok((mut log, contents)) = Log::open_on(Arc::clone(&services.disk), &path, id.clone()) {
        let mut history = History::fold(contents.entries);
        let repaired = workspace
            .map_or(Ok(()), |it| settle(services, it, &mut log, &mut history))
            .and_then(|()| super::close_what_is_open(&mut log, &mut history));
        if let Err(error) = repaired.and_then(|()| log.sync()) {
            tracing::warn!(session = %id, "an agent's log was not repaired: {}", error.message);
        }
    }
    let Some(tally) = last_tally(&path) else { return never() };
    let result = tally.result(&spawned.name, &spawned.session_id, Some(folder), &services.blobs);
    AgentResult { isolation: spawned.isolation, note: spawned.note.clone(), late: true, ..result }
}

/// What the last Turn of the child with this Log came to; `None` where there is none.
fn last_tally(log: &std::path::Path) -> Option<Tally> {
    let contents = log::read(log).ok()?;
    let entries = own_entries(&contents.entries);
    let last = entries.iter().filter_map(|entry| entry.turn).max()?;
    let mut tally = Tally::default();
    entries.iter().filter(|entry| entry.turn == Some(last)).for_each(|entry| tally.take(entry));
    Some(tally)
}

/// The end of an agent that the Log of this Session does not name, because a child of it started the agent.
pub(super) fn end_below(services: &Services, state: &AgentState) -> Option<AgentResult> {
    end_in_log(services, &state.path.join("/"), &state.session_id)
}

/// What the last Turn of an agent came to by its own Log, which is left as it is. Blocks.
pub fn end_in_log(services: &Services, name: &str, session_id: &str) -> Option<AgentResult> {
    let id = SessionId::parse(session_id).ok()?;
    let tally = last_tally(&services.place(&id).log())?;
    Some(tally.result(name, session_id, None, &services.blobs))
}

/// The children of a Session that is opened again: they can be looked at, and told to go on.
pub(super) fn known(history: &History, at: &Position, services: &Services) -> Vec<Arc<Child>> {
    let options = at.tree.options;
    let mut all = Vec::new();
    let links = links(history);
    // Files are read only where a child needs one.
    let roles = if links.is_empty() { Vec::new() } else { services.library.roles() };
    for mut link in links {
        let ended = link.ended.take().map(|result| link.with_files(result));
        let Link { spawned, adopted, .. } = link;
        let Ok(id) = SessionId::parse(&spawned.session_id) else { continue };
        at.tree.names.lock().insert(spawned.name.clone());
        let role = role_of(&roles, &spawned.role);
        let bounds = Bounds::new(options, role.limits);
        let isolation = spawned.isolation;
        let terms = Terms {
            role: Arc::new(role),
            schema: spawned.schema,
            bounds,
            writes: spawned.writes,
            isolation,
            context: spawned.context,
            workflow: None,
        };
        let above = (at.child.clone(), spawned.name.as_str());
        let has_log = services.place(&id).log().exists();
        let never_ran = ended.as_ref().is_some_and(is_never_started);
        let child = Child::new(above, id, Arc::clone(&at.tree.places), terms, &spawned.task);
        if (never_ran || !has_log) && !spawned.is_run {
            let (call_id, task) = (spawned.call_id.clone(), spawned.task.clone());
            *child.unbegun.lock() = Some(Unbegun { call_id, task, has_log });
        }
        spawned.note.iter().for_each(|note| child.note(note));
        child.change(|state| state.is_run = spawned.is_run);
        adopted.iter().for_each(|it| child.adoptions.settle(it));
        if isolation == Isolation::Scratch {
            // Its pixir died before it could remove it.
            super::copies::remove_later(services, &at.tree.root, &child);
        }
        if let Some(result) = ended {
            child.change(|state| {
                state.status = result.status;
                state.took_ms = Some(result.duration_ms);
                state.calls = result.evidence.calls;
                (state.usage, state.cost) = (result.usage, result.cost);
                if isolation == Isolation::Copy {
                    let settled = child.adoptions.settled.lock();
                    let waits = result.evidence.changed.iter().filter(|path| !settled.contains_key(*path)).count();
                    state.waiting_files = u32::try_from(waits).unwrap_or(u32::MAX);
                }
            });
            let _ = child.ended.send_replace(Some(Arc::new(result)));
        }
        let child = Arc::new(child);
        at.tree.writers.add(services.workspace.root(), &child);
        all.push(child);
    }
    all
}

/// Its process died before it was told its task.
fn is_never_started(result: &AgentResult) -> bool {
    result.error.as_ref().is_some_and(|error| error.code == Code::NeverStarted.name())
}

/// A role that is not there any more, or that the user does not trust any more, may at least do no harm.
pub(super) fn role_of(roles: &[Role], name: &str) -> Role {
    Role::for_child(roles, name).cloned().unwrap_or_else(|_| Role::missing(name))
}

/// The schema that the call gave to a child, as the Log of its parent has it.
pub(super) fn schema_of(id: &SessionId, parent: &ParentSession, services: &Services) -> Option<Value> {
    let above = SessionId::parse(&parent.session_id).ok()?;
    let contents = log::read(&services.place(&above).log()).ok()?;
    contents.entries.iter().find_map(|entry| match &entry.fact {
        Fact::AgentEvent(event) => match &**event {
            AgentEvent::Spawned(it) if it.session_id == id.as_str() => it.schema.clone(),
            _ => None,
        },
        _ => None,
    })
}
