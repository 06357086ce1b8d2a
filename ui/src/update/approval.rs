//! Deciding about a call that waits for approval.

use pixir_core::{Decision, Input};

use crate::input::action::Action;
use crate::overlay::Overlay;
use crate::overlay::approval::ApprovalView;
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
    vec![Effect::Send(Input::Decide { call_id: approval.call_id, decision })]
}

/// Allows the call, unless a part of its preview has not been on the screen yet.
fn allow(state: &mut State, decision: Decision) -> Vec<Effect> {
    if state.approvals.first().is_some_and(|approval| !approval.is_read) {
        let keys = state.keys.map.keys_to_expand_approval();
        state.say(format!("the preview is longer than the screen: {keys} shows all of it"));
        return Vec::new();
    }
    decide(state, decision)
}

pub(super) fn allow_once(state: &mut State) -> Vec<Effect> {
    allow(state, Decision::Allow)
}

pub(super) fn allow_always(state: &mut State) -> Vec<Effect> {
    if state.approvals.first().is_some_and(|it| it.approval.rule.is_none()) {
        state.say(format!(
            "this call can only be allowed once{}",
            state.keys.map.and_hints(&[(Action::AllowOnce, "allows it once")])
        ));
        return Vec::new();
    }
    allow(state, Decision::AllowAlways)
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
    state.open(Overlay::Approval(ApprovalView::new(approval.approval.clone())))
}
