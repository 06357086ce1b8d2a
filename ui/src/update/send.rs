//! The draft: sending it, putting it aside, taking back what waits; and the ways out.

use pixir_core::input::Message;
use pixir_core::{Decision, Input};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::run_slash;
use crate::overlay::tree::TreeView;
use crate::state::{Effect, Focus, Primed, State};

pub(crate) fn submit(state: &mut State, follow_up: bool) -> Vec<Effect> {
    if state.composer.continue_line() {
        return Vec::new();
    }
    if state.questions.first().is_some_and(|q| q.feedback.is_some()) {
        let question = state.questions.remove(0);
        let said = Some(state.composer.text()).filter(|t| !t.trim().is_empty());
        if said.as_ref().is_some_and(|text| !state.composer.images.within(text).attachments().is_empty()) {
            state.say("the image does not go with a refusal; send it with a message");
        }
        state.composer.remember(said.as_deref().unwrap_or_default());
        state.composer.set(&question.feedback.unwrap_or_default());
        let decision = Decision::Deny { feedback: said };
        return vec![Effect::Send(Input::Decide { call_id: question.approval.call_id, decision })];
    }
    if !state.can_send {
        state.say("there is no session to send it to; /new starts one");
        return Vec::new();
    }
    if state.composer.text().trim().is_empty() {
        return Vec::new();
    }
    if state.composer.runs().is_some() {
        return run_command(state);
    }
    // What comes later must not overtake what goes with an image, and no image its message.
    if state.reading_images > 0 {
        state.say("an image is still being read; press Enter again in a moment");
        return Vec::new();
    }
    let text = state.composer.take();
    if text.starts_with('/') && !text.starts_with("//") && !text.contains('\n') {
        return run_slash(state, &text);
    }
    state.viewport.follow();
    let how = match (state.is_busy(), follow_up) {
        (true, true) => Input::FollowUp,
        (true, false) => Input::Steer,
        (false, _) => Input::Prompt,
    };
    let attachments = state.composer.images.within(&text).attachments();
    if let Some(marker) = state.composer.images.missing(&text) {
        state.say(format!("{marker} is only a word here: its image is in another session; put it in again"));
    }
    vec![Effect::message(how(Message { text, attachments }))]
}

/// `!cmd`, and `!!cmd` for what the model is not told.
fn run_command(state: &mut State) -> Vec<Effect> {
    let text = state.composer.text();
    let (command, send_to_model) = match text.strip_prefix("!!") {
        Some(command) => (command.trim(), false),
        None => (text.trim_start_matches('!').trim(), true),
    };
    if command.is_empty() {
        state.say("type a command behind it: !git status");
        return Vec::new();
    }
    if state.is_busy() {
        state.say(format!(
            "it runs when the turn has ended{}",
            state.keymap.and_hints(&[("take-back", "takes it back")])
        ));
    }
    let input = Input::RunUserCommand { command: command.to_owned(), send_to_model };
    state.composer.take();
    state.viewport.follow();
    vec![Effect::Send(input)]
}

pub(crate) fn paste_image(_: &mut State, _: &str) -> Vec<Effect> {
    vec![Effect::AttachClipboard]
}

pub(crate) fn new_line(state: &mut State, _: &str) -> Vec<Effect> {
    state.composer.newline();
    Vec::new()
}

pub(crate) fn take_back_queue(state: &mut State) -> Vec<Effect> {
    let queue = std::mem::take(&mut state.queue);
    let mut texts: Vec<String> = queue.steer.into_iter().chain(queue.follow_up).collect();
    if texts.is_empty() {
        return Vec::new();
    }
    if !state.composer.is_empty() {
        texts.push(state.composer.text());
    }
    bring_back(state, texts);
    vec![Effect::Send(Input::Dequeue)]
}

/// Puts texts into the line, as one. Several commands, or a command and words, would be another command together: of
/// those the last stays, and Up finds the others.
pub(crate) fn bring_back(state: &mut State, mut texts: Vec<String>) {
    let is_command = |text: &String| text.starts_with('!');
    if texts.len() > 1 && texts.iter().any(is_command) {
        let last = texts.pop().unwrap_or_default();
        let (commands, words): (Vec<String>, Vec<String>) = texts.into_iter().partition(is_command);
        commands.iter().for_each(|text| state.composer.remember(text));
        texts = words;
        state.say("the others are behind Up: together they would be another command");
        if is_command(&last) && !texts.is_empty() {
            state.composer.remember(&last);
        } else {
            texts.push(last);
        }
    }
    state.composer.set(&texts.join("\n"));
}

/// Leaves what the person is in, then interrupts, then opens the tree.
pub(crate) fn escape(state: &mut State) -> Vec<Effect> {
    let primed = std::mem::take(&mut state.primed);
    if let Some(search) = state.search.take() {
        // Back to where one was, in the line or in the transcript.
        state.focus = search.focus;
        return Vec::new();
    }
    if state.selection.is_some() || state.labels.is_some() {
        (state.selection, state.labels) = (None, None);
        return Vec::new();
    }
    if let Some(draft) = state.questions.first_mut().and_then(|question| question.feedback.take()) {
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
    if state.inline && state.viewport.anchor().is_some() {
        // Back from reading, to the lines of the terminal.
        state.viewport.follow();
        return Vec::new();
    }
    if state.is_busy() {
        // What waited to be sent comes back, so that stopping loses nothing.
        let mut effects = take_back_queue(state);
        effects.push(Effect::Send(Input::Interrupt));
        return effects;
    }
    if !state.composer.is_empty() {
        return Vec::new();
    }
    if primed == Primed::Tree {
        return state.open(TreeView::new(state));
    }
    state.primed = Primed::Tree;
    Vec::new()
}

pub(crate) fn interrupt(_: &mut State, _: &str) -> Vec<Effect> {
    vec![Effect::Send(Input::Interrupt)]
}

pub(crate) fn stash_or_quit(state: &mut State) -> Vec<Effect> {
    let primed = std::mem::take(&mut state.primed);
    if !state.composer.is_empty() {
        state.composer.take();
        state.say("the draft is put aside; Up brings it back");
        return Vec::new();
    }
    if primed == Primed::Quit {
        return vec![Effect::Quit];
    }
    state.primed = Primed::Quit;
    Vec::new()
}

pub(crate) fn quit_when_empty(state: &mut State, _: &str) -> Vec<Effect> {
    if state.composer.is_empty() {
        return vec![Effect::Quit];
    }
    state.composer.key(KeyEvent::new(KeyCode::Delete, KeyModifiers::NONE));
    Vec::new()
}

pub(crate) fn suspend(state: &mut State, _: &str) -> Vec<Effect> {
    state.suspend = true;
    Vec::new()
}
