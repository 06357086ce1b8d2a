//! Handles the Events of the Session and the results of background tasks.

use std::sync::Arc;
use std::time::Duration;

use pixir_core::event::{Form, QueueExit, Refusal, SettingsChanged, Severity, Status, TurnStatus, WorkflowEvent};
use pixir_core::history::History;
use pixir_core::now::Now;
use pixir_core::text::human::next_attempt;
use pixir_core::{Code, Entry, Event, Fact, Live, PLAN_ROLE, Remedy};

use super::settings::open_session;
use super::{agents, context, read, refused, review, send, travel};
use crate::overlay::diff::Review;
use crate::overlay::picker::DEFAULT_EFFORT;
use crate::overlay::trust::TrustView;
use crate::overlay::{Loaded, Notification};
use crate::state::{Effect, PendingConfirm, Queue, Retry, RetryLimit, State};
use crate::transcript::reading::find::Matches;
use crate::transcript::{Agents, Cell, Transcript};

// ─── The Session ───

/// Shows a Session that has just opened: its past is folded like its future.
pub(crate) fn on_opened(state: &mut State, past: History) {
    // Comments on the changes of another Session are saved there.
    state.pending.review = Review::default();
    show(state, past);
    if !state.session.agents.is_inside() {
        state.session.agents = Agents::of(&state.history);
    }
    let prompts = state.history.path().filter_map(|e| match &e.fact {
        Fact::UserMessage(it) => Some(it.text.clone()),
        Fact::UserCommand(it) => Some(it.typed()),
        _ => None,
    });
    for text in prompts.collect::<Vec<_>>() {
        state.composer.past.add_saved(&text);
    }
    for entry in state.history.entries() {
        if let Fact::UserMessage(it) = &entry.fact
            && !it.attachments.is_empty()
        {
            state.composer.images.adopt(&it.text, &it.attachments);
        }
    }
}

/// Shows the state of the Session at the moment of opening: a running Turn, open approvals, the queue.
pub(crate) fn on_present(state: &mut State, now: &Now) -> Vec<Effect> {
    state.session.sandbox = now.sandbox;
    let mut effects: Vec<Effect> = now.as_live().into_iter().flat_map(|live| on_live(state, live)).collect();
    // The Turn may have begun long before the Session came to the screen.
    let first = now.turn.and_then(|turn| state.history.entries().iter().find(|entry| entry.turn == Some(turn)));
    if let (Some(first), Some(_)) = (first, state.activity.busy_since) {
        let began = Duration::from_micros(u64::try_from(first.ts.as_microsecond()).unwrap_or_default());
        state.activity.busy_since = state.now.at.checked_sub(state.now.wall.saturating_sub(began));
    }
    effects.extend(agents::ask_next(state));
    effects
}

/// Puts another History on the screen.
pub(super) fn show(state: &mut State, past: History) {
    state.history = past;
    rebuild(state);
    // The tree may have been opened before the conversation was there.
    notify_branches(state);
}

fn notify_branches(state: &mut State) {
    for overlay in &mut state.overlays {
        overlay.view_mut().notify(Notification::Branches(&state.history));
    }
}

/// Builds the cells anew from the path to the head.
fn rebuild(state: &mut State) {
    state.transcript = Transcript::default();
    for entry in state.history.told() {
        state.transcript.record(entry);
    }
    for agent in state.session.agents.all() {
        state.transcript.agent_changed(agent);
    }
    // Printed cells cannot be taken back, so printing begins anew. A welcome is right for both.
    state.printing.printed = state.printing.printed.filter(|printed| *printed == 0 && state.transcript.is_empty());
    state.reading.clear();
    state.viewport.reset();
}

/// Handles an Event of the Session.
pub(crate) fn on_event(state: &mut State, event: Event) -> Vec<Effect> {
    let mut effects = match event {
        Event::Recorded(entry) => on_entry(state, &entry),
        Event::Live(event) => match event.live {
            Live::TurnAbandoned { error, .. } if !event.agent_path.is_empty() => {
                agents::on_abandoned(state, &event.agent_path, *error)
            }
            live => on_live(state, live),
        },
    };
    effects.extend(agents::ask_next(state));
    effects
}

/// The Turn is over: nothing of it waits for the user any more.
fn on_turn_over(state: &mut State) {
    // A child that runs in the background may still ask.
    state.drop_approvals(|waiting| waiting.approval.agent.is_none());
    state.forms.retain(|form| form.agent.is_some());
    if !state.session.agents.is_inside() {
        state.session.agents.settle();
    }
    // The calls of the Turn do not wait for answers any more.
    state.overlays.retain(|overlay| !overlay.is_over(Notification::TurnEnded));
    state.activity.busy_since = None;
}

pub(super) fn on_entry(state: &mut State, entry: &Arc<Entry>) -> Vec<Effect> {
    state.history.append(Arc::clone(entry));
    match &entry.fact {
        Fact::HeadMoved(_) => {
            rebuild(state);
            notify_branches(state);
            travel::on_head_moved(state);
            state.say("continuing from here; /tree shows the other branches");
            return context::refresh(state);
        }
        Fact::PermissionDecision(it) => {
            state.drop_approvals(|waiting| waiting.approval.agent.is_none() && waiting.approval.call_id == it.call_id);
        }
        Fact::TurnEnded(it) => {
            state.session.turns_ended += u64::from(state.replay.is_none());
            on_turn_over(state);
            // A message that is already shown is about the key that interrupted the Turn, so it stays.
            if it.status == TurnStatus::Interrupted
                && state.session.agents.running() > 0
                && !state.session.agents.is_inside()
            {
                // Agents in the background go on until the next Esc.
                state.guard.confirm = PendingConfirm::Agents;
            } else if it.status == TurnStatus::Interrupted && state.toast.is_none() {
                state.say("interrupted; send a message to continue");
            }
        }
        Fact::SettingsChanged(it) => {
            if it.mode == state.pending.mode {
                state.pending.mode = None;
            }
            state.say(changed_settings(it));
        }
        Fact::Label(_) | Fact::BranchRemoved(_) => notify_branches(state),
        Fact::AgentEvent(_) => state.session.agents.note(entry),
        // The transcript and the overlays below show the rest.
        _ => {}
    }
    if let Fact::ToolResult(it) = &entry.fact {
        state.overlays.retain(|overlay| !overlay.is_over(Notification::CallEnded(&it.call_id)));
        state.forms.retain(|form| form.agent.is_some() || form.call_id != it.call_id);
    }
    // The step goes on, so what it asked is answered.
    if let Fact::WorkflowEvent(event) = &entry.fact
        && !matches!(**event, WorkflowEvent::Held(_))
        && let Some(call_id) = event.step().map(Form::call_of_step)
    {
        state.overlays.retain(|overlay| !overlay.is_over(Notification::CallEnded(&call_id)));
        state.forms.retain(|form| form.agent.is_some() || form.call_id != call_id);
    }
    for overlay in &mut state.overlays {
        overlay.view_mut().notify(Notification::Recorded { history: &state.history, entry });
    }
    state.transcript.record(entry);
    let mut effects = read::search_again(state);
    if !entry.fact.all_changes().is_empty() || matches!(entry.fact, Fact::UserMessage(_)) {
        effects.extend(review::read_again(state));
    }
    if matches!(entry.fact, Fact::TurnEnded(_) | Fact::UserCommand(_) | Fact::FilesRestored(_))
        && state.replay.is_none()
    {
        effects.push(Effect::ReadRepository);
    }
    effects.extend(context::after(state, &entry.fact));
    effects
}

fn changed_settings(it: &SettingsChanged) -> String {
    let mut changes = Vec::new();
    if let (Some(provider), Some(model)) = (&it.provider, &it.model) {
        changes.push(format!("model: {provider}/{model}"));
    }
    if let Some(mode) = it.mode {
        changes.push(format!("mode: {}", mode.name()));
    }
    match it.role.as_deref() {
        Some("") => changes.push("role: none".to_owned()),
        Some(PLAN_ROLE) => changes.push("planning: nothing is changed until you agree; /plan off ends it".to_owned()),
        Some(role) => changes.push(format!("role: {role}")),
        None => {}
    }
    if let Some(toolset) = it.toolset {
        changes.push(format!("toolset: {}", toolset.name()));
    }
    if let Some(effort) = &it.effort {
        let effort = if effort.is_empty() { DEFAULT_EFFORT } else { effort };
        changes.push(format!("effort: {effort}"));
    }
    if let Some(name) = &it.name {
        changes.push(format!("name: {name}"));
    }
    changes.join(", ")
}

pub(super) fn on_live(state: &mut State, live: Live) -> Vec<Effect> {
    // A replay shows entries only.
    if state.replay.is_some() {
        if let Live::Refused(Refusal { error, .. }) = live {
            state.say(format!("{}; {}", error.message, state.look.more.remedies.of(&error)));
        }
        return Vec::new();
    }
    let is_of_model = matches!(
        live,
        Live::TextDelta { .. }
            | Live::ReasoningDelta { .. }
            | Live::SummaryDelta { .. }
            | Live::ToolCallDelta { .. }
            | Live::Status { .. }
    );
    if is_of_model {
        state.activity.last_heard = state.now.at;
        state.activity.retry = None;
    }
    match live {
        Live::TextDelta { text } => {
            state.transcript.stream_text(&text);
            return read::search_again_soon(state);
        }
        Live::ReasoningDelta { text } => state.transcript.stream_thinking(&text),
        Live::SummaryDelta { text } => {
            state.activity.summary_words += text.matches(char::is_whitespace).count();
            notify(state, Notification::SummaryDelta(&text));
        }
        Live::ToolCallDelta { name, bytes, .. } => match &mut state.activity.writing_call {
            Some((of, all)) if *of == name => *all += bytes,
            writing => *writing = Some((name, bytes)),
        },
        Live::ToolOutputDelta { call_id, printed } => state.transcript.stream_output(&call_id, &printed),
        Live::Status { status } => {
            if !state.is_busy() && status != Status::Idle {
                state.activity.busy_since = Some(state.now.at);
            }
            state.session.status = status;
            state.activity.writing_call = None;
            state.activity.summary_words = 0;
            if status == Status::Idle {
                state.transcript.drop_draft();
            }
        }
        Live::ApprovalRequested(approval) => agents::on_approval(state, approval),
        // An agent's own line says what it waits for.
        Live::CallPrepared { .. } | Live::TurnWaits { .. } => {}
        Live::FormOpened(form) => agents::on_form(state, form),
        Live::AgentChanged(agent) => return agents::changed(state, *agent),
        Live::AnswerTaken { call_id, agent } => agents::answer_taken(state, &call_id, &agent),
        Live::JobsChanged { jobs } => {
            let now = state.now.wall;
            notify(state, Notification::Jobs { all: &jobs, now });
            state.session.jobs = jobs;
        }
        Live::McpChanged { servers } => notify(state, Notification::Servers(&servers)),
        Live::RulesListed { rules, warning } => {
            notify(state, Notification::Rules { rules: &rules, warning: warning.as_deref() });
        }
        Live::TrustAsked(contributions) => {
            // A card must not take the keys of a user who is writing.
            if state.composer.is_empty() {
                return state.open(TrustView::new(contributions));
            }
            let fix = state.look.more.remedies.word(&Remedy::TrustWorkspace);
            let text = format!("{}; {fix}", TrustView::sentence(&contributions));
            state.transcript.push(Cell::Notice(Severity::Info, text.into()));
        }
        Live::QueueChanged { steer, follow_up } => state.session.queue = Queue { steer, follow_up },
        Live::QueueLeft { to: QueueExit::Refused { text, .. }, .. } => send::give_back(state, text),
        Live::QueueLeft { .. } => {}
        Live::RetryScheduled { attempt, of, wait_ms, left_ms, reason } => {
            state.transcript.drop_draft();
            state.transcript.ask_again();
            state.activity.writing_call = None;
            state.activity.last_heard = state.now.at;
            let at = state.now.at + Duration::from_millis(wait_ms);
            let limit = RetryLimit::new(at, attempt, of, left_ms.map(Duration::from_millis));
            state.activity.retry = Some(Retry { at, limit });
            let text = format!("{reason}; {}", next_attempt(attempt, of, wait_ms, left_ms));
            state.transcript.say_retry(text);
        }
        Live::RestorePreviewed(preview) => return travel::on_preview(state, preview),
        Live::CompactionPreviewed(preview) => return context::on_preview(state, *preview),
        Live::ContextListed(report) => context::on_listed(state, report),
        Live::SessionForked { session_id } => {
            let effects = open_session(state, &session_id);
            state.say("this is the fork; the original session is unchanged");
            return effects;
        }
        // That there is nothing to do is no failure.
        Live::Refused(Refusal { input, error })
            if matches!(input.as_str(), "compact" | "undo" | "redo") && error.code == Code::NothingToDo.name() =>
        {
            if input == "compact" {
                state.pending.compaction = None;
            }
            let redo = if error.remedy() == Remedy::Redo { "; /redo brings the last ones back" } else { "" };
            refused::beside(state, format!("{}{redo}", error.message));
        }
        Live::Refused(Refusal { error, input }) => {
            if input == "revert_hunk" {
                let why = format!("not reverted: {}", error.message);
                let is_protected = error.code == Code::InputRequired.name();
                notify(state, Notification::Refused { why: &why, is_protected });
                return Vec::new();
            }
            // The key of the mode has no dialog and no command to correct.
            let is_mode = input == "set" && state.pending.mode.take().is_some();
            if refused::is_of_overlay(state, &input) {
                let why = refused::because_of(state, &error);
                return refused::refuse_overlay(state, why);
            }
            // A wrong argument is corrected, and not kept in the conversation.
            if refused::is_asked(state, &input) {
                let why = refused::because_of(state, &error);
                return refused::refuse(state, why);
            }
            if is_mode {
                let why = refused::because_of(state, &error);
                refused::beside(state, why);
                return Vec::new();
            }
            state.transcript.push(Cell::Error(Box::new(error)));
            state.viewport.follow();
        }
        // The refusal before it has the reason.
        Live::TurnAbandoned { .. } => on_turn_over(state),
        Live::Notice { severity, message, remedy, .. } => {
            let fix = remedy.map_or_else(String::new, |it| format!("; {}", state.look.more.remedies.word(&it)));
            state.transcript.push(Cell::Notice(severity, format!("{message}{fix}").into()));
        }
    }
    Vec::new()
}

// ─── Background work ───

pub(crate) fn notify(state: &mut State, notification: Notification<'_>) {
    for overlay in &mut state.overlays {
        overlay.view_mut().notify(notification);
    }
}

/// Gives what was loaded to the layers that show it. Returns what they want next.
pub(crate) fn on_loaded(state: &mut State, loaded: &Loaded) -> Vec<Effect> {
    state.overlays.iter_mut().flat_map(|overlay| loaded.show(overlay)).collect()
}

/// Shows the result of a search, unless the user has changed its text meanwhile.
pub(crate) fn on_matches(state: &mut State, number: u64, matches: Matches) -> Vec<Effect> {
    let Some(search) = state.reading.search.as_mut().filter(|search| search.number == number) else {
        return Vec::new();
    };
    let is_stale = std::mem::take(&mut search.is_stale);
    let shown = search.hit();
    search.at = None;
    if search.is_again {
        search.at = shown.and_then(|shown| matches.position(shown));
        search.matches = Some(matches);
    } else {
        search.matches = Some(matches);
        if let Some(hit) = search.first() {
            read::show_hit(state, hit);
        }
    }
    if is_stale { read::search_again(state) } else { Vec::new() }
}
