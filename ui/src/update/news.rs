//! What the Session said, and what work beside the screen found.

use std::sync::Arc;
use std::time::Duration;

use pixir_core::Event;
use pixir_core::changes::FileDiff;
use pixir_core::event::{Entry, Fact, Live, SettingsChanged, Severity, Status, TurnStatus};
use pixir_core::history::History;
use pixir_core::skills::Skill;
use pixir_core::store::Summary;

use super::read;
use super::settings::open_session;
use super::travel;
use crate::overlay::compaction::CompactionView;
use crate::overlay::form::FormView;
use crate::overlay::{Laid, Told};
use crate::reading::find::Found;
use crate::state::{Effect, Question, Queue, State};
use crate::transcript::{Cell, Transcript};

// ─── The Session said ───

/// A Session was opened: its past is folded like its future.
pub(crate) fn on_opened(state: &mut State, past: History) {
    show(state, past);
    let said = state.history.path().filter_map(|e| match &e.fact {
        Fact::UserMessage(it) => Some(it.text.clone()),
        Fact::UserCommand(it) => Some(it.typed()),
        _ => None,
    });
    for text in said.collect::<Vec<_>>() {
        state.composer.past.know(&text);
    }
    for entry in state.history.entries() {
        if let Fact::UserMessage(it) = &entry.fact
            && !it.attachments.is_empty()
        {
            state.composer.images.adopt(&it.text, &it.attachments);
        }
    }
}

/// Another past is on the screen.
pub(super) fn show(state: &mut State, past: History) {
    state.history = past;
    rebuild(state);
}

/// The path to the head, as cells.
fn rebuild(state: &mut State) {
    state.transcript = Transcript::default();
    for entry in state.history.told() {
        state.transcript.record(entry);
    }
    // What was printed of another conversation stays where it is; a welcome serves both.
    state.told = state.told.filter(|told| *told == 0 && state.transcript.is_empty());
    // What spoke of places in what was there before speaks of nothing now.
    (state.cell, state.search, state.selection, state.labels) = (None, None, None, None);
    state.viewport.reset();
}

/// Something was recorded, or is happening.
pub(crate) fn on_event(state: &mut State, event: Event) -> Vec<Effect> {
    match event {
        Event::Recorded(entry) => on_entry(state, &entry),
        Event::Live(live) => on_live(state, live),
    }
}

pub(super) fn on_entry(state: &mut State, entry: &Arc<Entry>) -> Vec<Effect> {
    state.history.append(Arc::clone(entry));
    match &entry.fact {
        Fact::HeadMoved(_) => {
            rebuild(state);
            travel::arrived(state);
            state.say("it goes on from here; /tree keeps the rest");
            return Vec::new();
        }
        Fact::PermissionDecision(it) => {
            state.drop_questions(|question| question.approval.call_id == it.call_id);
        }
        Fact::TurnEnded(it) => {
            state.ended += u64::from(state.replay.is_none());
            state.drop_questions(|_| true);
            // Nobody waits for an answer any more.
            state.overlays.retain(|layer| !layer.is_over(Told::TurnEnded));
            state.busy_since = None;
            // What was said of the key that did it is worth more.
            if it.status == TurnStatus::Interrupted && state.toast.is_none() {
                state.say("interrupted; send a message to go on");
            }
        }
        Fact::SettingsChanged(it) => state.say(settings_told(it)),
        Fact::Label(_) => {
            for layer in &mut state.overlays {
                layer.hear(Told::Labels(&state.history));
            }
        }
        _ => {}
    }
    if let Fact::ToolResult(it) = &entry.fact {
        state.overlays.retain(|layer| !layer.is_over(Told::CallEnded(&it.call_id)));
    }
    state.transcript.record(entry);
    let mut effects = read::look_again(state);
    if matches!(entry.fact, Fact::TurnEnded(_)) && state.replay.is_none() {
        effects.push(Effect::LookAtBranch);
    }
    effects
}

fn settings_told(it: &SettingsChanged) -> String {
    let mut told = Vec::new();
    if let (Some(provider), Some(model)) = (&it.provider, &it.model) {
        told.push(format!("model: {provider}/{model}"));
    }
    if let Some(mode) = it.mode {
        told.push(format!("mode: {}", mode.name()));
    }
    if let Some(toolset) = it.toolset {
        told.push(format!("toolset: {}", toolset.name()));
    }
    if let Some(effort) = &it.effort {
        told.push(format!("effort: {effort}"));
    }
    if let Some(name) = &it.name {
        told.push(format!("name: {name}"));
    }
    told.join(", ")
}

fn on_live(state: &mut State, live: Live) -> Vec<Effect> {
    // Nothing is happening in what is only told again.
    if state.replay.is_some() {
        if let Live::Refused(error) = live {
            state.say(format!("{}; {}", error.message, state.more.remedies.of(&error)));
        }
        return Vec::new();
    }
    let is_of_model = matches!(
        live,
        Live::TextDelta { .. } | Live::ReasoningDelta { .. } | Live::ToolCallDelta { .. } | Live::Status { .. }
    );
    if is_of_model {
        state.heard = state.now.at;
        state.tries_again = None;
    }
    match live {
        Live::TextDelta { text } => {
            state.transcript.stream_text(&text);
            return read::look_again_soon(state);
        }
        Live::ReasoningDelta { text } => state.transcript.stream_thinking(&text),
        Live::ToolCallDelta { name, bytes, .. } => match &mut state.writing {
            Some((of, all)) if *of == name => *all += bytes,
            writing => *writing = Some((name, bytes)),
        },
        Live::ToolOutputDelta { call_id, printed } => state.transcript.stream_output(&call_id, &printed),
        Live::Status { status } => {
            if !state.is_busy() && status != Status::Idle {
                state.busy_since = Some(state.now.at);
            }
            state.status = status;
            state.writing = None;
            if status == Status::Idle {
                state.transcript.drop_draft();
            }
        }
        Live::ApprovalRequested(approval) => {
            state.questions.push(Question {
                approval,
                painted: None,
                read: false,
                feedback: None,
                laid: Laid::default(),
            });
        }
        Live::QuestionAsked(form) => {
            let is_free = state.composer.is_empty();
            return state.open(FormView::new(form, is_free));
        }
        Live::JobsChanged { jobs } => {
            tell(state, Told::Jobs(&jobs));
            state.jobs = jobs;
        }
        Live::QueueChanged { steer, follow_up } => state.queue = Queue { steer, follow_up },
        Live::RetryScheduled { attempt, of, wait_ms, reason } => {
            state.transcript.drop_draft();
            state.writing = None;
            state.heard = state.now.at;
            state.tries_again = Some(state.now.at + Duration::from_millis(wait_ms));
            let text = format!("{reason}; try {attempt} of {of} in {:.1} s", wait_ms as f64 / 1000.0);
            state.transcript.push(Cell::Notice(Severity::Warning, text.into()));
        }
        Live::RestorePlanned(plan) => return travel::planned(state, plan),
        Live::CompactionPlanned(plan) => {
            let instructions = state.instructions.clone();
            return state.open(CompactionView::new(plan, instructions));
        }
        Live::SessionForked { session_id } => {
            let effects = open_session(state, &session_id);
            state.say("this is the fork; the session that it came from is unchanged");
            return effects;
        }
        Live::Refused(error) => {
            state.transcript.push(Cell::Error(Box::new(error)));
            state.viewport.follow();
        }
        Live::Notice { severity, message, remedy, .. } => {
            let fix = remedy.map_or_else(String::new, |it| format!("; {}", state.more.remedies.word(&it)));
            state.transcript.push(Cell::Notice(severity, format!("{message}{fix}").into()));
        }
    }
    Vec::new()
}

// ─── Work beside the screen is done ───

/// Every layer hears it, and takes what is for it.
fn tell(state: &mut State, told: Told<'_>) {
    for layer in &mut state.overlays {
        layer.hear(told);
    }
}

pub(crate) fn on_diffs(state: &mut State, turn: &[FileDiff], session: &[FileDiff]) {
    tell(state, Told::Diffs { turn, session });
}

pub(crate) fn on_sessions(state: &mut State, all: &[Summary], forks_of: Option<&str>) {
    let current = state.session.as_ref().map(ToString::to_string);
    tell(state, Told::Sessions { all, current: current.as_deref(), forks_of });
}

pub(crate) fn on_models(state: &mut State, all: &[String]) {
    let current = format!("{}/{}", state.history.settings.provider, state.history.settings.model);
    tell(state, Told::Models { all, current: &current });
}

pub(crate) fn on_skills(state: &mut State, all: &[Skill]) {
    tell(state, Told::Skills(all));
}

/// A search has come to its end.
pub(crate) fn on_found(state: &mut State, number: u64, found: Found) -> Vec<Effect> {
    let Some(search) = state.search.as_mut().filter(|search| search.number == number) else { return Vec::new() };
    let is_stale = std::mem::take(&mut search.is_stale);
    let shown = search.hit();
    search.at = None;
    if search.is_again {
        search.at = shown.and_then(|shown| found.position(shown));
        search.found = Some(found);
    } else {
        search.found = Some(found);
        if let Some(hit) = search.first() {
            read::show_hit(state, hit);
        }
    }
    if is_stale { read::look_again(state) } else { Vec::new() }
}
