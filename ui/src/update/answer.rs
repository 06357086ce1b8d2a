//! Answering a question: may this call run?

use pixir_core::{Decision, Input};

use crate::overlay::approval::ApprovalView;
use crate::state::{Effect, Focus, State};

/// A question can be answered when it has been on the screen long enough to be read as one, and as long as nobody was in the
/// middle of something else: since it was painted, since it was turned to, since the window came back, since the last key.
fn is_armed(state: &State) -> bool {
    let painted = state.questions.first().and_then(|question| question.painted);
    painted.is_some_and(|painted| state.now.since(painted) >= state.arming)
        && state.now.since(state.quiet_since) >= state.arming
}

fn answer(state: &mut State, decision: Decision) -> Vec<Effect> {
    if !is_armed(state) {
        return Vec::new();
    }
    let question = state.questions.remove(0);
    state.leave_question();
    vec![Effect::Send(Input::Decide { call_id: question.approval.call_id, decision })]
}

/// Nothing is allowed that was not in sight to its end.
fn allow(state: &mut State, decision: Decision) -> Vec<Effect> {
    if state.questions.first().is_some_and(|q| !q.read) {
        let keys = state.keymap.to_all_of_question();
        state.say(format!("it is longer than the screen: {keys} shows all of it"));
        return Vec::new();
    }
    answer(state, decision)
}

pub(crate) fn allow_once(state: &mut State, _: &str) -> Vec<Effect> {
    allow(state, Decision::Allow)
}

pub(crate) fn allow_always(state: &mut State, _: &str) -> Vec<Effect> {
    if state.questions.first().is_some_and(|q| q.approval.rule.is_none()) {
        state.say(format!(
            "this cannot be allowed for good{}",
            state.keymap.and_hints(&[("allow-once", "allows it once")])
        ));
        return Vec::new();
    }
    allow(state, Decision::AllowAlways)
}

pub(crate) fn deny(state: &mut State, _: &str) -> Vec<Effect> {
    answer(state, Decision::Deny { feedback: None })
}

/// The line is for what should be done instead; its draft makes room for that.
pub(crate) fn deny_with_feedback(state: &mut State, _: &str) -> Vec<Effect> {
    if is_armed(state)
        && let Some(question) = state.questions.first_mut()
    {
        question.feedback = Some(state.composer.text());
        state.focus = Focus::Composer;
        state.composer.set("");
    }
    Vec::new()
}

pub(crate) fn expand(state: &mut State, _: &str) -> Vec<Effect> {
    let Some(question) = state.questions.first() else { return Vec::new() };
    state.open(ApprovalView::new(question.approval.clone()))
}
