//! Sending the draft, putting it aside, taking back queued messages; interrupting and quitting.

use crate::terminal::key::{KeyCode, KeyEvent, KeyModifiers};
use pixir_core::event::Approval;
use pixir_core::input::Message;
use pixir_core::{Decision, Input};

use super::{agents, refused, run_slash, travel};
use crate::input::action::Action;
use crate::state::{Effect, Focus, OnHarness, PendingConfirm, State};

/// How a message reaches a Turn that is running.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IfBusy {
    Steer,
    FollowUp,
}

/// Sends the draft: a message, a slash command, a `!command`, or the feedback of a denial.
pub(super) fn submit(state: &mut State, if_busy: IfBusy) -> Vec<Effect> {
    if state.composer.continue_line() {
        return Vec::new();
    }
    if state.approvals.first().is_some_and(|it| it.is_in_feedback()) {
        let denied = state.approvals.remove(0);
        let feedback = Some(state.composer.text()).filter(|t| !t.trim().is_empty());
        if feedback.as_ref().is_some_and(|text| !state.composer.images.within(text).attachments().is_empty()) {
            state.say("feedback cannot carry an image; send it with a message");
        }
        state.composer.remember(feedback.as_deref().unwrap_or_default());
        state.composer.set(&denied.draft_before_feedback.unwrap_or_default());
        let decision = Decision::Deny { feedback };
        let Approval { call_id, agent, .. } = denied.approval;
        return vec![Effect::Send(Input::Decide { call_id, decision, word: None }.for_asker(agent.as_ref()))];
    }
    if !state.session.can_send {
        state.say("no session is open; /new starts one");
        return Vec::new();
    }
    if state.composer.text().trim().is_empty() {
        return Vec::new();
    }
    if state.composer.runs().is_some() {
        return run_command(state);
    }
    // A message must not overtake the one before it, whose image is still being read.
    if state.pending.images > 0 {
        state.say("an image is still loading; press Enter again in a moment");
        return Vec::new();
    }
    let text = state.composer.text();
    // A text of several lines, or one that begins with `//`, is a message and not a command.
    let is_command = text.starts_with('/') && !text.starts_with("//") && !text.contains('\n');
    if state.session.read_only && !is_command {
        state.say("this session is read-only here, so the message stays where it is; /fork continues in a copy");
        return Vec::new();
    }
    // Without a model a message would be recorded, and would get no answer. A Session that was resumed may have a model of
    // its own.
    let has_model = !["", "demo"].contains(&state.history.settings.provider.as_str());
    if state.offers_connection() && !has_model && !is_command {
        let effects = super::connect::open(state);
        state.say("no model answers yet: connect one, and Enter sends your message");
        return effects;
    }
    let text = state.composer.take();
    if is_command {
        return run_slash(state, &text);
    }
    state.viewport.follow();
    let input = match (state.is_busy(), if_busy) {
        (true, IfBusy::FollowUp) => Input::FollowUp,
        (true, IfBusy::Steer) => Input::Steer,
        (false, IfBusy::FollowUp | IfBusy::Steer) => Input::Prompt,
    };
    let attachments = state.composer.images.within(&text).attachments();
    if let Some(marker) = state.composer.images.missing(&text) {
        state.say(format!("{marker} belongs to another session; attach the image again"));
    }
    vec![Effect::message(input(Message { text, attachments, ..Message::default() }))]
}

/// Puts a command back that has to wait for the end of the Turn, and says so.
pub(super) fn put_off(state: &mut State, name: &str) -> Vec<Effect> {
    let stop = state.keys.map.and_hints(&[(Action::Escape, "interrupts it")]);
    refused::refuse(state, format!("/{name} has to wait until the turn has ended{stop}"))
}

/// Runs `!cmd`, or `!!cmd`, whose output the model does not see.
fn run_command(state: &mut State) -> Vec<Effect> {
    let text = state.composer.text();
    let (command, send_to_model) = match text.strip_prefix("!!") {
        Some(command) => (command.trim(), false),
        None => (text.trim_start_matches('!').trim(), true),
    };
    if command.is_empty() {
        state.say("type a command after the !, such as !git status");
        return Vec::new();
    }
    if state.is_busy() {
        state.say(format!(
            "the command runs when the turn has ended{}",
            state.keys.map.and_hints(&[(Action::TakeBack, "takes it back")])
        ));
    }
    let input = Input::RunUserCommand { command: command.to_owned(), send_to_model };
    state.composer.take();
    state.viewport.follow();
    vec![Effect::Send(input)]
}

pub(crate) fn take_back_queue(state: &mut State) -> Vec<Effect> {
    let queue = std::mem::take(&mut state.session.queue);
    let mut texts: Vec<String> = queue.steer.into_iter().chain(queue.follow_up).collect();
    if texts.is_empty() {
        return Vec::new();
    }
    if !state.composer.is_empty() {
        texts.push(state.composer.text());
    }
    to_draft(state, texts);
    vec![Effect::Send(Input::Dequeue)]
}

/// Puts a message that the Session could not take before what the user types now.
pub(crate) fn give_back(state: &mut State, text: String) {
    let draft = Some(state.composer.text()).filter(|draft| !draft.is_empty());
    to_draft(state, std::iter::once(text).chain(draft).collect());
}

/// Puts messages back into the composer as one draft. A `!command` cannot be joined with anything without becoming
/// another command, so then only the last message is the draft, and the history behind Up has the others.
pub(crate) fn to_draft(state: &mut State, mut texts: Vec<String>) {
    let is_command = |text: &String| text.starts_with('!');
    if texts.len() > 1 && texts.iter().any(is_command) {
        let last = texts.pop().unwrap_or_default();
        let (commands, prose): (Vec<String>, Vec<String>) = texts.into_iter().partition(is_command);
        commands.iter().for_each(|text| state.composer.remember(text));
        texts = prose;
        state.say("Up brings back the other messages; a !command cannot be joined with them");
        if is_command(&last) && !texts.is_empty() {
            state.composer.remember(&last);
        } else {
            texts.push(last);
        }
    }
    state.composer.set(&texts.join("\n"));
}

/// Leaves the search, selection, feedback, focus or insert mode that the user is in; else interrupts the Turn; else,
/// pressed twice, opens the tree.
pub(crate) fn escape(state: &mut State) -> Vec<Effect> {
    let confirm = std::mem::take(&mut state.guard.confirm);
    if state.reading.search.take().is_some() {
        state.focus = state.reading.focus_before_search;
        return Vec::new();
    }
    if state.reading.selection.is_some() || state.reading.labels.is_some() {
        (state.reading.selection, state.reading.labels) = (None, None);
        return Vec::new();
    }
    if let Some(draft) = state.approvals.first_mut().and_then(|approval| approval.draft_before_feedback.take()) {
        state.composer.set(&draft);
        return Vec::new();
    }
    if state.focus != Focus::Composer {
        state.focus = Focus::Composer;
        return Vec::new();
    }
    if state.composer.leave_insertion() {
        return Vec::new();
    }
    if state.printing.inline && state.viewport.anchor().is_some() {
        // Leaves the full screen, back to the terminal's own lines.
        state.viewport.follow();
        return Vec::new();
    }
    if state.session.agents.is_inside() && state.composer.is_empty() {
        return vec![OnHarness::EnterAgent { path: Vec::new(), from_list: false }.into()];
    }
    if state.is_busy() {
        return interrupt_and_take_back(state);
    }
    if !state.composer.is_empty() {
        return Vec::new();
    }
    if state.session.agents.running() > 0 && !state.session.agents.is_inside() {
        if confirm == PendingConfirm::Agents {
            return agents::stop_all(state);
        }
        state.guard.confirm = PendingConfirm::Agents;
        return Vec::new();
    }
    if confirm == PendingConfirm::Tree {
        return travel::open_tree(state);
    }
    state.guard.confirm = PendingConfirm::Tree;
    Vec::new()
}

pub(super) fn interrupt() -> Vec<Effect> {
    vec![Effect::Send(Input::Interrupt)]
}

/// Queued messages go back into the draft, so that the interrupt loses none.
fn interrupt_and_take_back(state: &mut State) -> Vec<Effect> {
    let mut effects = take_back_queue(state);
    effects.extend(interrupt());
    effects
}

/// While a Turn runs, the first press interrupts it. A Turn that does not end for that is left as pixir is left at rest: one
/// press puts a draft aside, and two quit.
pub(crate) fn stash_or_quit(state: &mut State) -> Vec<Effect> {
    let confirm = std::mem::take(&mut state.guard.confirm);
    if state.is_busy() && confirm == PendingConfirm::Nothing {
        state.guard.confirm = PendingConfirm::Interrupted;
        return interrupt_and_take_back(state);
    }
    if !state.composer.is_empty() {
        state.composer.take();
        state.say("draft put aside; Up brings it back");
        state.guard.confirm = if state.is_busy() { confirm } else { PendingConfirm::Nothing };
        return Vec::new();
    }
    if confirm == PendingConfirm::Quit {
        return vec![Effect::Quit];
    }
    state.guard.confirm = PendingConfirm::Quit;
    Vec::new()
}

pub(super) fn quit_when_empty(state: &mut State) -> Vec<Effect> {
    if state.composer.is_empty() {
        return vec![Effect::Quit];
    }
    state.composer.key(KeyEvent::press(KeyCode::Delete, KeyModifiers::NONE));
    Vec::new()
}
