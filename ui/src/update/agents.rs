//! Agents: what they report, what they ask, the list, and the events of the user's own Session while one is on the screen.

use pixir_core::agent::{AgentState, Asker};
use pixir_core::error::ErrorBody;
use pixir_core::event::{Approval, Form};
use pixir_core::{Event, Fact, Input, Live};
use ratatui::text::Line;

use super::events::on_live;
use super::refused;
use crate::overlay::agents::AgentsView;
use crate::overlay::form::{FormView, Keys, Style};
use crate::overlay::{Layer as _, Notification, Overlay};
use crate::render::agents::{named, word};
use crate::render::text::{Row, visible};
use crate::state::{Effect, OnHarness, PendingApproval, State};
use crate::transcript::{Agents, Cell};

// ─── The list ───

/// Opens the list, or the agent with this name.
pub(super) fn open(state: &mut State, name: &str) -> Vec<Effect> {
    let name = name.trim();
    if !name.is_empty() {
        let found = state.session.agents.all().iter().find(|it| it.name() == name || it.path.join("/") == name);
        return match found.map(|it| it.path.clone()) {
            Some(path) => vec![OnHarness::EnterAgent { path, from_list: false }.into()],
            None => refused::refuse(state, format!("there is no agent `{name}`")),
        };
    }
    let at = state.session.agents.at.clone();
    open_at(state, Some(&at).filter(|it| !it.is_empty()).map(Vec::as_slice))
}

/// Opens the list with the cursor on this agent.
pub(crate) fn open_at(state: &mut State, at: Option<&[String]>) -> Vec<Effect> {
    let view = AgentsView::new(&state.session.agents, at);
    state.open(view)
}

/// The agent that runs in this cell's call.
pub(super) fn of_cell(state: &State, cell: usize) -> Option<Effect> {
    let agent = state.transcript.agent_of(cell).filter(|it| it.status.is_open())?;
    Some(OnHarness::EnterAgent { path: agent.path.clone(), from_list: false }.into())
}

// ─── What agents report ───

/// Takes in what is new of an agent.
pub(super) fn changed(state: &mut State, agent: AgentState) -> Vec<Effect> {
    state.transcript.agent_changed(&agent);
    let name = visible(&named(&agent.path));
    let session = agent.session_id.clone();
    let is_open = agent.status.is_open();
    let (status, task) = (agent.status, visible(&agent.task));
    let took = agent.took_ms;
    let before = state.session.agents.take(agent);
    match before {
        None if is_open => tell(state, &format!("agent {name} begins: {task}")),
        Some(before) if before.is_open() && !is_open => {
            let took = took.map_or_else(String::new, |it| format!(" after {:.1} s", it as f64 / 1000.0));
            tell(state, &format!("agent {name}: {}{took}", word(status)));
        }
        None | Some(_) => {}
    }
    tell_overlays(state);
    let lists = state.overlays.iter_mut().filter_map(AgentsView::of);
    lists.filter(|list| list.shows(&session)).find_map(AgentsView::read).into_iter().collect()
}

/// The user tells an agent something: its list shows the text until the agent has read it.
pub(super) fn note_told(state: &mut State, input: &Input) {
    let Input::ToAgent { path, input } = input else { return };
    if let Input::Prompt(it) | Input::Steer(it) | Input::FollowUp(it) = &**input {
        state.session.agents.tell(path, &it.text);
        tell_overlays(state);
    }
}

fn tell_overlays(state: &mut State) {
    for overlay in &mut state.overlays {
        overlay.view_mut().notify(Notification::Agents(&state.session.agents));
    }
}

/// Prints a line at once where the conversation is printed: a call that waits for its agent holds the others back.
fn tell(state: &mut State, text: &str) {
    if state.printing.inline {
        let line = Line::styled(format!("· {text}"), state.look.theme.dim());
        state.printing.left_over.push(Row::text(line));
    }
}

// ─── What agents ask ───

/// A call waits for the user's decision.
pub(super) fn on_approval(state: &mut State, approval: Approval) {
    if let Some(agent) = &approval.agent {
        let text = format!("agent {} asks: {} {}", named(&agent.path), approval.preview.would, approval.preview.target);
        tell(state, visible(&text).lines().next().unwrap_or_default());
    }
    if approval.agent.is_none() {
        state.transcript.call_waits(&approval.call_id);
    }
    state.approvals.push(PendingApproval::new(approval));
    say_asked(state);
}

/// A message that is older than the question must not hide that the user is waited for.
fn say_asked(state: &mut State) {
    state.toast = None;
}

/// A question waits for the user's answer.
pub(super) fn on_form(state: &mut State, form: Form) {
    if let Some(agent) = &form.agent {
        tell(state, &visible(&format!("agent {} has a question", named(&agent.path))));
    }
    state.forms.push_back(form);
    say_asked(state);
}

/// Opens the next question, once nothing else is asked.
pub(crate) fn ask_next(state: &mut State) -> Vec<Effect> {
    let is_asked = !state.approvals.is_empty() || state.overlays.iter().any(Overlay::is_form);
    // While the run is on the screen, its steps show what they ask, and are answered there.
    let shows_run = state.overlays.iter().any(|it| matches!(it, Overlay::Workflow(_)));
    let next = state.forms.iter().position(|form| !(shows_run && form.agent.is_none() && form.is_of_step()));
    let Some(form) = next.filter(|_| !is_asked).and_then(|at| state.forms.remove(at)) else { return Vec::new() };
    let keys = if state.composer.is_empty() { Keys::Form } else { Keys::Composer };
    let style = if state.look.screen_reader { Style::Lines } else { Style::Panel };
    state.open(FormView::new(form, keys, style))
}

/// What an agent asked is no longer open.
pub(super) fn answer_taken(state: &mut State, call_id: &str, agent: &Asker) {
    state.drop_approvals(|it| it.approval.agent.as_ref() == Some(agent) && it.approval.call_id == call_id);
    state.forms.retain(|it| it.agent.as_ref() != Some(agent) || it.call_id != call_id);
    state.overlays.retain(|overlay| !overlay.is_over(Notification::AnswerTaken { call_id, agent }));
}

// ─── The user's own Session, while an agent is on the screen ───

/// Takes the open questions along from the user's own Session to an agent's screen, or from one agent to another.
/// Those of the agent itself come again from its own Session.
pub(crate) fn carry(agents: Agents, path: &[String], asked: (Vec<Approval>, Vec<Form>), state: &mut State) {
    state.session.agents = agents.seen_from(path);
    let is_own = |agent: &Asker| agent.path == path;
    let (approvals, forms) = asked;
    for mut approval in approvals {
        let agent = approval.agent.take().unwrap_or_default();
        if !is_own(&agent) {
            state.approvals.push(PendingApproval::new(Approval { agent: Some(agent), ..approval }));
        }
    }
    for mut form in forms {
        let agent = form.agent.take().unwrap_or_default();
        if !is_own(&agent) {
            state.forms.push_back(Form { agent: Some(agent), ..form });
        }
    }
}

/// Everything that waits for the user, as the user's own Session publishes it.
pub(crate) fn asked(state: &State) -> (Vec<Approval>, Vec<Form>) {
    let at = &state.session.agents.at;
    // Without an agent, it is the Session on the screen that asks.
    let own = |agent: &Option<Asker>| agent.clone().or(Some(Asker { path: at.clone(), role: String::new() }));
    let approvals = state.approvals.iter().map(|it| {
        let agent = own(&it.approval.agent);
        Approval { agent, ..it.approval.clone() }
    });
    let open = state.overlays.iter().filter_map(Overlay::form).map(FormView::form);
    let forms = open.chain(&state.forms).map(|it| Form { agent: own(&it.agent), ..it.clone() });
    (approvals.collect(), forms.collect())
}

/// Handles an Event of the user's own Session.
pub(crate) fn on_root_event(state: &mut State, event: Event) -> Vec<Effect> {
    let mut effects = match event {
        Event::Recorded(entry) => {
            state.session.agents.note(&entry);
            let answered = match &entry.fact {
                Fact::PermissionDecision(it) => Some(&it.call_id),
                Fact::ToolResult(it) => Some(&it.call_id),
                _ => None,
            };
            if let Some(call) = answered {
                answer_taken(state, call, &Asker::default());
            }
            if matches!(entry.fact, Fact::TurnEnded(_)) {
                state.session.agents.settle();
            }
            Vec::new()
        }
        Event::Live(event) => match event.live {
            Live::AgentChanged(agent) => changed(state, *agent),
            Live::AnswerTaken { call_id, agent } => {
                answer_taken(state, &call_id, &agent);
                Vec::new()
            }
            Live::ApprovalRequested(mut approval) => {
                let agent = approval.agent.take().unwrap_or_default();
                // The agent on the screen asks for itself.
                if agent.path != state.session.agents.at {
                    on_approval(state, Approval { agent: Some(agent), ..approval });
                }
                Vec::new()
            }
            Live::FormOpened(mut form) => {
                let agent = form.agent.take().unwrap_or_default();
                if agent.path != state.session.agents.at {
                    on_form(state, Form { agent: Some(agent), ..form });
                }
                Vec::new()
            }
            // It is about all agents of the tree.
            Live::Notice { ref code, .. } if code == "AGENT_TOKENS_LOW" => on_live(state, event.live),
            live @ Live::Refused(_) => on_live(state, live),
            // The agent on the screen shows its own.
            Live::TurnAbandoned { error, .. } if !event.agent_path.is_empty() => {
                if event.agent_path == state.session.agents.at {
                    Vec::new()
                } else {
                    on_abandoned(state, &event.agent_path, *error)
                }
            }
            _ => Vec::new(),
        },
    };
    effects.extend(ask_next(state));
    effects
}

/// The Log of an agent could not record its Turn. The user needs the reason also while the agent is not on the screen.
pub(super) fn on_abandoned(state: &mut State, path: &[String], error: ErrorBody) -> Vec<Effect> {
    let message = format!("agent {}: {}", path.join("/"), error.message);
    state.transcript.push(Cell::Error(Box::new(ErrorBody { message, ..error })));
    state.viewport.follow();
    Vec::new()
}

/// Stops the agents below the Session on the screen.
pub(super) fn stop_all(state: &State) -> Vec<Effect> {
    vec![Effect::Send(Input::StopAgents { path: state.session.agents.at.clone() })]
}
