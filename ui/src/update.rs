//! What the person did: the door by which keys, pastes and slash commands change the State.

use pixir_core::event::{Mode, SettingsChanged, Severity, Toolset};
use pixir_core::provider::models::Effort;
use pixir_core::usage::{Sums, Total, sums};
use pixir_core::{Decision, Input};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use crate::action::{Action, Context, of_key};
use crate::overlay::diff::DiffView;
use crate::overlay::jobs::JobsView;
use crate::overlay::picker::{Kind, Picker};
use crate::overlay::{Overlay, Page, Reply};
use crate::slash::{self, When};
use crate::state::{Effect, Primed, State};
use crate::theme::Theme;
use crate::transcript::Cell;

pub(crate) mod news; // what the Session said
pub(crate) mod travel; // going elsewhere in the conversation; undo and redo

/// A key: the top layer has it first, then the question, then the table, then the draft.
pub(crate) fn on_key(state: &mut State, key: KeyEvent) -> Vec<Effect> {
    if key.kind == KeyEventKind::Release {
        return Vec::new();
    }
    state.toast = None;
    // A plan that has just come up is not applied by an Enter that was meant for something else.
    let fresh = state.layer_since.is_none_or(|(_, since)| since.elapsed() < state.arming);
    if fresh
        && key.code == KeyCode::Enter
        && matches!(state.overlays.last(), Some(Overlay::Compaction(..) | Overlay::Restore(_)))
    {
        return Vec::new();
    }
    // Nor does what was meant for the composer answer a question that came up meanwhile: whoever writes goes on writing.
    if let Some(Overlay::Form(form)) = state.overlays.last_mut() {
        if form.has_keys && fresh {
            form.has_keys = matches!(key.code, KeyCode::Enter | KeyCode::Esc | KeyCode::Tab);
            if form.has_keys {
                return Vec::new();
            }
        } else if !form.has_keys && key.code == KeyCode::Tab {
            form.has_keys = true;
            return Vec::new();
        }
    }
    let is_aside = matches!(state.overlays.last(), Some(Overlay::Form(form)) if !form.has_keys);
    if let Some(overlay) = state.overlays.last_mut().filter(|_| !is_aside) {
        let reply = match (key.code, key.modifiers) {
            (KeyCode::Char('c'), KeyModifiers::CONTROL) => Reply::Close,
            _ => overlay.key(key),
        };
        return match reply {
            Reply::Stay => Vec::new(),
            Reply::Close => close_overlay(state),
            Reply::Act(action) => on_action(state, action),
            Reply::CloseAndAct(action) => {
                state.overlays.pop();
                on_action(state, action)
            }
        };
    }
    if let Some(effects) = on_completion_key(state, key) {
        return effects;
    }
    if key.code == KeyCode::Char('?') && state.composer.is_empty() && !is_focused(state) {
        return on_action(state, Action::Help);
    }
    let mut open = vec![Context::Anywhere];
    if let Some(question) = state.questions.first().filter(|q| q.feedback.is_none()) {
        open.push(Context::Approval);
        if question.focused {
            open.push(Context::ApprovalFocused);
        }
    }
    if let Some(action) = of_key(key, &open) {
        return on_action(state, action);
    }
    state.primed = Primed::Nothing;
    if is_focused(state) {
        return Vec::new();
    }
    match key.code {
        KeyCode::Up if state.composer.on_first_line() => state.composer.older(),
        KeyCode::Down if state.composer.on_last_line() => state.composer.newer(),
        _ => state.composer.key(key),
    }
    Vec::new()
}

fn is_focused(state: &State) -> bool {
    state.questions.first().is_some_and(|q| q.focused)
}

fn close_overlay(state: &mut State) -> Vec<Effect> {
    match state.overlays.pop() {
        // A theme that was only looked at is put back.
        Some(Overlay::Picker(picker)) => {
            if let Some(Action::Theme(name)) = picker.on_cancel {
                load_theme(state, &name);
            }
        }
        Some(Overlay::Form(form)) => {
            return vec![Effect::Send(Input::Answer { call_id: form.form.call_id, answers: None })];
        }
        // The person stays here.
        Some(Overlay::Restore(_)) => state.going = None,
        _ => {}
    }
    Vec::new()
}

/// While completions are shown, a few keys are about them.
fn on_completion_key(state: &mut State, key: KeyEvent) -> Option<Vec<Effect>> {
    let found = state.composer.completions();
    if found.is_empty() || !key.modifiers.difference(KeyModifiers::SHIFT).is_empty() {
        return None;
    }
    let chosen = state.composer.chosen.min(found.len() - 1);
    match key.code {
        KeyCode::Up => state.composer.chosen = chosen.checked_sub(1).unwrap_or(found.len() - 1),
        KeyCode::Down => state.composer.chosen = (chosen + 1) % found.len(),
        KeyCode::Esc => state.composer.dismiss(),
        KeyCode::Tab => state.composer.set(&format!("/{} ", found[chosen].name)),
        KeyCode::Enter => {
            let command = found[chosen];
            if command.args.starts_with('<') {
                state.composer.set(&format!("/{} ", command.name));
            } else {
                state.composer.set("");
                state.composer.remember(&format!("/{}", command.name));
                return Some(run_slash(state, &format!("/{}", command.name)));
            }
        }
        _ => return None,
    }
    Some(Vec::new())
}

/// Text that was pasted: it never submits.
pub(crate) fn on_paste(state: &mut State, text: &str) {
    match state.overlays.last_mut() {
        None => state.composer.insert(text),
        Some(Overlay::Form(form)) if form.has_keys => form.paste(text),
        Some(Overlay::Form(_)) => state.composer.insert(text),
        Some(_) => {}
    }
}

/// The wheel.
pub(crate) fn on_wheel(state: &mut State, lines: isize) {
    match state.overlays.last_mut() {
        Some(overlay) => overlay.scroll(lines),
        None => state.scroll(lines),
    }
}

/// What the person wants.
pub(crate) fn on_action(state: &mut State, action: Action) -> Vec<Effect> {
    let primed = std::mem::take(&mut state.primed);
    let page = isize::try_from(state.viewport.height.saturating_sub(2)).unwrap_or(1);
    match action {
        Action::Submit => return submit(state, false),
        Action::FollowUp => return submit(state, true),
        Action::NewLine => state.composer.newline(),
        Action::TakeBackQueue => return take_back_queue(state),
        Action::Escape => return escape(state, primed),
        Action::StashOrQuit => return stash_or_quit(state, primed),
        Action::QuitWhenEmpty if state.composer.is_empty() => return vec![Effect::Quit],
        Action::QuitWhenEmpty => state.composer.key(KeyEvent::new(KeyCode::Delete, KeyModifiers::NONE)),
        Action::Quit => return vec![Effect::Quit],
        Action::CycleMode => {
            let next = match state.history.settings.mode {
                Mode::ReadOnly => Mode::Ask,
                Mode::Ask => Mode::Auto,
                Mode::Auto => Mode::ReadOnly,
            };
            return vec![set(SettingsChanged { mode: Some(next), ..SettingsChanged::default() })];
        }
        Action::Repaint => state.repaint = true,
        Action::Help => state.overlays.push(Overlay::help()),
        Action::Tree => return travel::open_tree(state),
        Action::Diff => {
            state.overlays.push(Overlay::Diff(DiffView::default()));
            return vec![Effect::LoadDiffs];
        }
        Action::Details => {
            state.details = state.details.next();
            state.generation += 1;
        }
        Action::Thinking => {
            state.thinking = state.thinking.next();
            state.generation += 1;
        }
        Action::PageUp => state.scroll(-page),
        Action::PageDown => state.scroll(page),
        Action::ToStart => state.viewport.show_start(&state.transcript),
        Action::ToEnd => state.viewport.follow(),
        Action::Focus => {
            if let Some(question) = state.questions.first_mut() {
                question.focused = !question.focused;
            }
        }
        Action::ExpandApproval => {
            if let Some(question) = state.questions.first() {
                state.overlays.push(Overlay::Approval(Box::new(question.approval.clone()), Page::default()));
            }
        }
        Action::AllowOnce => return allow(state, Decision::Allow),
        Action::AllowAlways => return allow_always(state),
        Action::Deny => return answer(state, Decision::Deny { feedback: None }),
        Action::DenyWithFeedback => {
            if is_armed(state)
                && let Some(question) = state.questions.first_mut()
            {
                question.feedback = Some(state.composer.text());
                question.focused = false;
                state.composer.set("");
            }
        }
        Action::New => return vec![Effect::OpenNew],
        Action::Resume(id) => return open_session(state, &id),
        Action::Model(name) => return set_model(state, &name),
        Action::Mode(mode) => return vec![set(SettingsChanged { mode: Some(mode), ..SettingsChanged::default() })],
        Action::Theme(name) | Action::PreviewTheme(name) => load_theme(state, &name),
        Action::Skill(name) => {
            state.composer.set(&format!("/skill {name} "));
            state.say("add a task, or press Enter to activate it alone");
        }
        Action::Go(going) => return travel::go(state, going),
        Action::GoWithoutFiles => return travel::arrive(state, None),
        Action::Restore { plan, wish } => return travel::restore(state, &plan, wish),
        Action::Label { seq, text } => return vec![Effect::Send(Input::Label { seq, text })],
        Action::Pin { seqs, pinned } => {
            return seqs.into_iter().map(|seq| Effect::Send(Input::Pin { seq, pinned })).collect();
        }
        Action::Fork(seq) => return vec![Effect::Send(Input::Fork { seq })],
        Action::Jobs => state.overlays.push(Overlay::Jobs(JobsView::new(state.jobs.clone()))),
        Action::StopJob(job) => return vec![Effect::Send(Input::StopJob { job })],
        Action::Toolset(toolset) => {
            return vec![set(SettingsChanged { toolset: Some(toolset), ..SettingsChanged::default() })];
        }
        Action::Effort(effort) => {
            let effort = Some(effort.name().to_owned());
            return vec![set(SettingsChanged { effort, ..SettingsChanged::default() })];
        }
        Action::Answer { call_id, answers } => return vec![Effect::Send(Input::Answer { call_id, answers })],
        Action::ApplyCompaction => {
            return vec![Effect::Send(Input::Compact { instructions: state.instructions.clone(), dry_run: false })];
        }
    }
    Vec::new()
}

fn set(change: SettingsChanged) -> Effect {
    Effect::Send(Input::Set(change))
}

fn submit(state: &mut State, follow_up: bool) -> Vec<Effect> {
    if state.composer.continue_line() {
        return Vec::new();
    }
    if state.questions.first().is_some_and(|q| q.feedback.is_some()) {
        let question = state.questions.remove(0);
        let said = Some(state.composer.take()).filter(|t| !t.trim().is_empty());
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
    let text = state.composer.take();
    if text.starts_with('/') && !text.starts_with("//") && !text.contains('\n') {
        return run_slash(state, &text);
    }
    state.viewport.follow();
    let input = match (state.is_busy(), follow_up) {
        (true, true) => Input::FollowUp { text },
        (true, false) => Input::Steer { text },
        (false, _) => Input::Prompt { text },
    };
    vec![Effect::Send(input)]
}

fn take_back_queue(state: &mut State) -> Vec<Effect> {
    let queue = std::mem::take(&mut state.queue);
    let mut texts: Vec<String> = queue.steer.into_iter().chain(queue.follow_up).collect();
    if texts.is_empty() {
        return Vec::new();
    }
    if !state.composer.is_empty() {
        texts.push(state.composer.text());
    }
    state.composer.set(&texts.join("\n"));
    vec![Effect::Send(Input::Dequeue)]
}

/// Closes what is open, then interrupts, then opens the tree.
fn escape(state: &mut State, primed: Primed) -> Vec<Effect> {
    if let Some(question) = state.questions.first_mut().filter(|q| q.feedback.is_some() || q.focused) {
        question.focused = false;
        if let Some(draft) = question.feedback.take() {
            state.composer.set(&draft);
        }
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
        return travel::open_tree(state);
    }
    state.primed = Primed::Tree;
    Vec::new()
}

fn stash_or_quit(state: &mut State, primed: Primed) -> Vec<Effect> {
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

/// A question can be answered when it has been on the screen long enough to be read as one.
fn is_armed(state: &State) -> bool {
    state.questions.first().and_then(|q| q.painted).is_some_and(|painted| painted.elapsed() >= state.arming)
}

fn answer(state: &mut State, decision: Decision) -> Vec<Effect> {
    if !is_armed(state) {
        return Vec::new();
    }
    let question = state.questions.remove(0);
    vec![Effect::Send(Input::Decide { call_id: question.approval.call_id, decision })]
}

/// Nothing is allowed that was not in sight to its end.
fn allow(state: &mut State, decision: Decision) -> Vec<Effect> {
    if state.questions.first().is_some_and(|q| !q.read) {
        state.say("it is longer than the screen: Tab, then Enter, shows all of it");
        return Vec::new();
    }
    answer(state, decision)
}

fn allow_always(state: &mut State) -> Vec<Effect> {
    if state.questions.first().is_some_and(|q| q.approval.rule.is_none()) {
        state.say("this cannot be allowed for good; Alt+Y allows it once");
        return Vec::new();
    }
    allow(state, Decision::AllowAlways)
}

fn open_session(state: &mut State, id: &str) -> Vec<Effect> {
    match pixir_core::event::SessionId::parse(id) {
        Ok(id) if Some(&id) == state.session.as_ref() => Vec::new(),
        Ok(id) => vec![Effect::Open(id)],
        Err(e) => {
            state.transcript.push(Cell::Error(Box::new(e.body())));
            Vec::new()
        }
    }
}

fn set_model(state: &State, name: &str) -> Vec<Effect> {
    // A name without a provider is one of the provider that answers now.
    let (provider, model) =
        name.split_once('/').map_or((state.history.settings.provider.as_str(), name), |(p, m)| (p, m));
    vec![set(SettingsChanged {
        provider: Some(provider.to_owned()),
        model: Some(model.to_owned()),
        ..SettingsChanged::default()
    })]
}

fn load_theme(state: &mut State, name: &str) {
    match Theme::load(name, state.themes_folder.as_deref(), state.depth) {
        Ok(theme) => {
            state.theme = theme;
            state.generation += 1;
        }
        Err(e) => state.transcript.push(Cell::Error(Box::new(e.body()))),
    }
}

fn run_slash(state: &mut State, text: &str) -> Vec<Effect> {
    let (command, rest) = match slash::parse(text) {
        Ok(found) => found,
        Err(why) => {
            state.composer.set(text);
            state.say(why);
            return Vec::new();
        }
    };
    if command.when == When::Idle && state.is_busy() {
        state.composer.set(text);
        state.say(format!("/{} has to wait until the turn has ended; Esc interrupts it", command.name));
        return Vec::new();
    }
    match command.name {
        "help" => on_action(state, Action::Help),
        "new" => on_action(state, Action::New),
        "resume" if rest.is_empty() => {
            state.overlays.push(Overlay::Picker(Picker::loading(Kind::Sessions)));
            vec![Effect::LoadSessions { forks_of: None }]
        }
        "resume" => open_session(state, rest),
        "model" if rest.is_empty() => {
            state.overlays.push(Overlay::Picker(Picker::loading(Kind::Models)));
            vec![Effect::LoadModels]
        }
        "model" => set_model(state, rest),
        "mode" if rest.is_empty() => {
            state.overlays.push(Overlay::Picker(Picker::modes(state.history.settings.mode)));
            Vec::new()
        }
        "mode" => match Mode::parse(rest) {
            Ok(mode) => on_action(state, Action::Mode(mode)),
            Err(e) => {
                state.say(format!("{}: {}", e.message, e.remediation));
                Vec::new()
            }
        },
        "theme" if rest.is_empty() => {
            let names = Theme::names(state.themes_folder.as_deref());
            state.overlays.push(Overlay::Picker(Picker::themes(&names, &state.theme.name)));
            Vec::new()
        }
        "theme" => on_action(state, Action::Theme(rest.to_owned())),
        "skill" if rest.is_empty() => {
            state.overlays.push(Overlay::Picker(Picker::loading(Kind::Skills)));
            vec![Effect::LoadSkills]
        }
        "skill" => {
            let (name, args) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
            state.viewport.follow();
            vec![Effect::Send(Input::ActivateSkill { name: name.to_owned(), args: args.trim().to_owned() })]
        }
        "compact" => {
            state.instructions = Some(rest.to_owned()).filter(|r| !r.is_empty());
            vec![Effect::Send(Input::Compact { instructions: state.instructions.clone(), dry_run: true })]
        }
        "tree" => travel::open_tree(state),
        "undo" => travel::undo(state, rest),
        "redo" => travel::redo(),
        "fork" => match state.history.head() {
            Some(seq) => vec![Effect::Send(Input::Fork { seq })],
            None => {
                state.say("there is nothing to fork yet");
                Vec::new()
            }
        },
        "diff" => on_action(state, Action::Diff),
        "jobs" => on_action(state, Action::Jobs),
        "toolset" if rest.is_empty() => {
            state.overlays.push(Overlay::Picker(Picker::toolsets(state.history.settings.toolset)));
            Vec::new()
        }
        "toolset" => match Toolset::parse(rest) {
            Ok(toolset) => on_action(state, Action::Toolset(toolset)),
            Err(e) => {
                state.say(format!("{}: {}", e.message, e.remediation));
                Vec::new()
            }
        },
        "effort" if rest.is_empty() => {
            state.overlays.push(Overlay::Picker(Picker::efforts(state.history.settings.effort.as_deref())));
            Vec::new()
        }
        "effort" => match Effort::parse(rest) {
            Ok(effort) => on_action(state, Action::Effort(effort)),
            Err(e) => {
                state.say(format!("{}: {}", e.message, e.remediation));
                Vec::new()
            }
        },
        "usage" => {
            let text = usage_text(&sums(&state.history));
            state.transcript.push(Cell::Notice(Severity::Info, text.into()));
            state.viewport.follow();
            Vec::new()
        }
        "rename" if rest.is_empty() => {
            state.say("give it a name: /rename <name>");
            Vec::new()
        }
        "rename" => vec![set(SettingsChanged { name: Some(rest.to_owned()), ..SettingsChanged::default() })],
        "interrupt" => vec![Effect::Send(Input::Interrupt)],
        "quit" => on_action(state, Action::Quit),
        other => unreachable!("/{other} is in the table and not here"),
    }
}

/// Turns that `/usage` names one by one.
const SHOWN_TURNS: usize = 8;

/// What a Session took, line by line.
fn usage_text(sums: &Sums) -> String {
    if sums.session.requests == 0 {
        return "no request has said yet what it took".to_owned();
    }
    let line = |name: &str, it: &Total| format!("{name:<16} {it}");
    let mut lines = vec![line("session", &sums.session)];
    if sums.branch != sums.session {
        lines.push(line("this branch", &sums.branch));
    }
    lines.extend(sums.models.iter().map(|(model, total)| line(model, total)));
    let hidden = sums.turns.len().saturating_sub(SHOWN_TURNS);
    if hidden > 0 {
        lines.push(format!("… {hidden} turns before (pixir sessions show --json has them)"));
    }
    lines.extend(sums.turns.iter().skip(hidden).map(|it| line(&format!("turn {}", it.turn), &it.total)));
    lines.join("\n")
}
