//! Deciding about a call that waits for approval.

use pixir_core::agent::Asker;
use pixir_core::event::Approval;
use pixir_core::{Decision, Input};

use crate::input::action::{Action, LayerAction};
use crate::overlay::Overlay;
use crate::overlay::always::AlwaysView;
use crate::overlay::approval::ApprovalView;
use crate::overlay::danger::DangerView;
use crate::state::{Effect, Focus, State};

/// Keys decide about an approval only when the user has had time to see it: it is painted for a moment, and for that
/// long the user has pressed no other key, has not just focused it, and has not just come back to the window.
fn is_armed(state: &State) -> bool {
    let painted = state.approvals.first().and_then(|approval| approval.painted);
    painted.is_some_and(|painted| state.now.since(painted) >= state.guard.delay)
        && state.now.since(state.guard.quiet_since) >= state.guard.delay
}

fn decide(state: &mut State, decision: Decision) -> Vec<Effect> {
    if !is_armed(state) {
        return Vec::new();
    }
    let approval = state.approvals.remove(0).approval;
    state.leave_approval();
    let agent = approval.agent;
    let input = Input::Decide { call_id: approval.call_id, decision, word: None };
    vec![Effect::Send(input.for_asker(agent.as_ref()))]
}

/// Allows the call, unless a part of its preview has not been on the screen yet.
fn allow(state: &mut State, decision: Decision) -> Vec<Effect> {
    if state.approvals.first().is_some_and(|approval| !approval.is_read) {
        say_to_read(state);
        return Vec::new();
    }
    decide(state, decision)
}

/// The end of the preview has not been on the screen.
fn say_to_read(state: &mut State) {
    let is_open = matches!(state.overlays.last(), Some(Overlay::Approval(_)));
    let keys = if is_open {
        state.keys.map.key_of(LayerAction::OverlayEnd).unwrap_or_default()
    } else {
        state.keys.map.keys_to_expand_approval()
    };
    let what = if is_open { "goes to its end" } else { "shows all of it" };
    state.say(format!("the preview is longer than the screen: {keys} {what}"));
}

/// Allows the call. One whose damage lasts asks for a word first.
pub(super) fn allow_once(state: &mut State) -> Vec<Effect> {
    let Some(pending) = state.approvals.first() else { return Vec::new() };
    let Some(card) = DangerView::new(&pending.approval).filter(|_| pending.is_read) else {
        return allow(state, Decision::Allow);
    };
    if !is_armed(state) {
        return Vec::new();
    }
    state.open(card)
}

pub(super) fn allow_always(state: &mut State) -> Vec<Effect> {
    if state.approvals.first().is_some_and(|it| it.approval.rule.is_none()) {
        state.say(format!(
            "this call can only be allowed once{}",
            state.keys.map.and_hints(&[(Action::AllowOnce, "allows it once")])
        ));
        return Vec::new();
    }
    // One key is too little for a rule: the user sees first what it would have allowed.
    choose_rule(state)
}

/// Opens the choice of a rule for "always".
fn choose_rule(state: &mut State) -> Vec<Effect> {
    let Some(pending) = state.approvals.first().filter(|_| is_armed(state)) else { return Vec::new() };
    if !pending.is_read {
        say_to_read(state);
        return Vec::new();
    }
    match AlwaysView::new(&pending.approval, &state.history) {
        Some(view) => state.open(view),
        None => {
            state.say("this call can only be allowed once");
            Vec::new()
        }
    }
}

/// Sends a decision that an overlay has made about a call that still waits for it.
pub(super) fn decide_about(
    state: &mut State,
    agent: Option<&Asker>,
    call_id: &str,
    decision: Decision,
    word: Option<String>,
) -> Vec<Effect> {
    // Two agents may have calls of the same id.
    let is_it = |it: &Approval| it.agent.as_ref() == agent && it.call_id == call_id;
    let Some(at) = state.approvals.iter().position(|it| is_it(&it.approval)) else { return Vec::new() };
    let approval = state.approvals.remove(at).approval;
    state.leave_approval();
    let agent = approval.agent;
    vec![Effect::Send(Input::Decide { call_id: approval.call_id, decision, word }.for_asker(agent.as_ref()))]
}

pub(super) fn deny(state: &mut State) -> Vec<Effect> {
    decide(state, Decision::Deny { feedback: None })
}

/// Lets the user write in the composer what the model should do instead. The draft comes back afterwards.
pub(super) fn deny_with_feedback(state: &mut State) {
    if is_armed(state)
        && let Some(approval) = state.approvals.first_mut()
    {
        approval.draft_before_feedback = Some(state.composer.text());
        state.focus = Focus::Composer;
        state.composer.set("");
    }
}

pub(super) fn expand(state: &mut State) -> Vec<Effect> {
    let Some(approval) = state.approvals.first() else { return Vec::new() };
    state.open(ApprovalView::new(approval.approval.clone()))
}
