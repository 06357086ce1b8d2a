//! Every verb of the interface, once: its name, its keys, its words, when it holds, and what it does.
//!
//! Keys, palette, help, hints, slash commands and what `pixir schema` says of them are made of this table.

use crate::overlay::diff::DiffView;
use crate::overlay::help::HelpView;
use crate::overlay::jobs::JobsView;
use crate::overlay::outline::Outline;
use crate::overlay::palette::Palette;
use crate::overlay::picker::{Kind, Picker};
use crate::overlay::tree::TreeView;
use crate::state::{Effect, State};
use crate::update::{answer, read, replay, send, settings, travel, write};

/// Where a binding holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Scope {
    /// Everywhere, unless an inner scope says otherwise.
    Anywhere,
    /// The line has the focus.
    Composer,
    /// A question is open.
    Approval,
    /// A question is open and has the focus.
    Question,
    /// The transcript has the focus.
    Transcript,
    /// The side panel has the focus.
    Side,
    /// A session is told again, instead of the line.
    Replay,
}

/// What a verb needs to be of use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    Always,
    /// Not in a Session that is only told again.
    Live,
    /// Neither there, nor while a Turn runs.
    Idle,
}

/// How a verb is written as a slash command.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slash {
    pub(crate) name: &'static str,
    pub(crate) args: &'static str,
    /// The Inputs that it becomes.
    pub(crate) does: &'static str,
}

/// What a person can do.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Verb {
    pub(crate) id: &'static str,
    pub(crate) keys: &'static [&'static str],
    pub(crate) scope: Scope,
    pub(crate) when: When,
    pub(crate) about: &'static str,
    pub(crate) slash: Option<Slash>,
    pub(crate) run: fn(&mut State, &str) -> Vec<Effect>,
}

const fn verb(
    id: &'static str,
    keys: &'static [&'static str],
    about: &'static str,
    run: fn(&mut State, &str) -> Vec<Effect>,
) -> Verb {
    Verb { id, keys, scope: Scope::Anywhere, when: When::Always, about, slash: None, run }
}

impl Verb {
    const fn at(mut self, scope: Scope) -> Verb {
        self.scope = scope;
        self
    }

    const fn live(mut self) -> Verb {
        self.when = When::Live;
        self
    }

    const fn idle(mut self) -> Verb {
        self.when = When::Idle;
        self
    }

    /// Also a slash command of this name.
    const fn slash(mut self, name: &'static str, args: &'static str, does: &'static str) -> Verb {
        self.slash = Some(Slash { name, args, does });
        self
    }

    /// It can be done at some time, in a Session that is told again or in one that goes on.
    pub(crate) fn is_of_use(&self, in_replay: bool) -> bool {
        self.when == When::Always || !in_replay
    }

    /// The word for it where it stands in a list.
    pub(crate) fn title(&self) -> String {
        self.slash.map_or_else(|| self.id.to_owned(), |it| format!("/{}", it.name))
    }
}

use Scope::{Approval, Composer, Question, Replay, Side, Transcript};

/// The whole table.
#[rustfmt::skip]
pub(crate) const VERBS: &[Verb] = &[
    // Saying something.
    verb("send", &["enter"], "send; while a turn runs, say it to the model now", |state, _| send::submit(state, false)).at(Composer),
    verb("follow-up", &["alt+enter"], "send when the turn has ended", |state, _| send::submit(state, true)).at(Composer),
    verb("new-line", &["shift+enter", "ctrl+j"], "new line (also \\ before Enter)", send::new_line).at(Composer),
    verb("take-back", &["alt+up"], "take back what waits to be sent", |state, _| send::take_back_queue(state)).live(),
    verb("escape", &["esc"], "close, else interrupt the turn; twice on an empty line: tree", |state, _| send::escape(state)),
    verb("stash-or-quit", &["ctrl+c"], "put the draft aside (Up brings it back); twice quits", |state, _| send::stash_or_quit(state)),
    verb("quit-when-empty", &["ctrl+d"], "quit, when the line is empty", send::quit_when_empty).at(Composer),
    verb("interrupt", &[], "stop the running turn (Esc)", send::interrupt).live().slash("interrupt", "", "Interrupt"),
    verb("quit", &[], "close pixir; the session stays", |_, _| vec![Effect::Quit]).slash("quit", "", "closes the session"),
    verb("editor", &["ctrl+g"], "write in your own editor (VISUAL, EDITOR)", write::edit_elsewhere).at(Composer),
    verb("paste-image", &["ctrl+v"], "put the image that you copied into the line", send::paste_image).at(Composer),
    verb("search-past", &["ctrl+r"], "find what you sent before, in all sessions", write::search_past).at(Composer),
    verb("undo-edit", &["ctrl+7", "ctrl+_", "ctrl+-"], "undo in the line", write::undo).at(Composer),
    verb("redo-edit", &["alt+-", "alt+_"], "redo in the line", write::redo).at(Composer),
    verb("kill-to-end", &["ctrl+k"], "cut to the end of the line", write::kill_to_end).at(Composer),
    verb("kill-to-start", &["ctrl+u"], "cut to the start of the line", write::kill_to_start).at(Composer),
    verb("kill-word-back", &["ctrl+w"], "cut the word before (also Alt+Backspace)", write::kill_word_back).at(Composer),
    verb("kill-word", &["alt+k"], "cut the word behind (also Alt+Delete)", write::kill_word).at(Composer),
    verb("yank", &["ctrl+y"], "put back what was cut", write::yank).at(Composer),
    verb("yank-pop", &["alt+r"], "put back what was cut before that instead", write::yank_pop).at(Composer),
    verb("line-start", &["ctrl+a"], "to the start of the line", write::to_line_start).at(Composer),
    verb("line-end", &["ctrl+e"], "to the end of the line", write::to_line_end).at(Composer),
    verb("word-back", &["alt+b"], "a word back", write::word_back).at(Composer),
    verb("word-forward", &["alt+w"], "a word on", write::word_forward).at(Composer),
    verb("suspend", &["ctrl+z"], "back to the shell for a while; fg returns", send::suspend),

    // Answering.
    verb("allow-once", &["alt+y"], "allow once", answer::allow_once).at(Approval),
    verb("allow-always", &["alt+a"], "allow always, in this session", answer::allow_always).at(Approval),
    verb("deny", &["alt+n"], "refuse", answer::deny).at(Approval),
    verb("deny-feedback", &["alt+f"], "refuse, and say what to do instead", answer::deny_with_feedback).at(Approval),
    verb("question-allow-once", &["y"], "allow once", answer::allow_once).at(Question),
    verb("question-allow-always", &["a"], "allow always, in this session", answer::allow_always).at(Question),
    verb("question-deny", &["n"], "refuse", answer::deny).at(Question),
    verb("question-deny-feedback", &["f"], "refuse, and say what to do instead", answer::deny_with_feedback).at(Question),
    verb("question-expand", &["enter"], "read all of it", answer::expand).at(Question),

    // Reading.
    verb("focus-next", &["tab"], "focus: line, question, transcript, side panel", read::focus_next),
    verb("page-up", &["pgup"], "read back (also the wheel)", |state, _| read::page(state, -1)),
    verb("page-down", &["pgdn"], "read on", |state, _| read::page(state, 1)),
    verb("to-start", &["ctrl+home"], "to the start", read::to_start),
    verb("to-end", &["ctrl+end"], "to the end, and follow it", read::to_end),
    verb("details", &["ctrl+o"], "tool cards: as usual, in full, one line", read::details),
    verb("thinking", &["alt+t"], "thinking: one line, its end, in full", read::thinking),
    verb("find", &["ctrl+f"], "find in the whole conversation", read::find).slash("find", "[text]", "searches the screen"),
    verb("repaint", &["ctrl+l"], "paint the screen anew", read::repaint),
    verb("side-panel", &["alt+p"], "show or hide the side panel", read::toggle_side),
    verb("cell-next", &["j", "down"], "the next entry", |state, _| read::step(state, 1)).at(Transcript),
    verb("cell-previous", &["k", "up"], "the entry before", |state, _| read::step(state, -1)).at(Transcript),
    verb("next-prompt", &["}"], "the next prompt", |state, _| read::jump(state, crate::transcript::Mark::Prompt, true)).at(Transcript),
    verb("previous-prompt", &["{"], "the prompt before", |state, _| read::jump(state, crate::transcript::Mark::Prompt, false)).at(Transcript),
    verb("next-error", &["] e"], "the next error", |state, _| read::jump(state, crate::transcript::Mark::Error, true)).at(Transcript),
    verb("previous-error", &["[ e"], "the error before", |state, _| read::jump(state, crate::transcript::Mark::Error, false)).at(Transcript),
    verb("next-diff", &["] d"], "the next change", |state, _| read::jump(state, crate::transcript::Mark::Change, true)).at(Transcript),
    verb("previous-diff", &["[ d"], "the change before", |state, _| read::jump(state, crate::transcript::Mark::Change, false)).at(Transcript),
    verb("next-compaction", &["] c"], "the next compaction", |state, _| read::jump(state, crate::transcript::Mark::Compaction, true)).at(Transcript),
    verb("previous-compaction", &["[ c"], "the compaction before", |state, _| read::jump(state, crate::transcript::Mark::Compaction, false)).at(Transcript),
    verb("transcript-find", &["/"], "find", read::find).at(Transcript),
    verb("next-match", &["n"], "the next place where it was found", |state, _| read::next_match(state, true)).at(Transcript),
    verb("previous-match", &["N"], "the place before where it was found", |state, _| read::next_match(state, false)).at(Transcript),
    verb("copy-labels", &["y"], "put a letter on everything that can be copied", read::label).at(Transcript),
    verb("fold", &["space"], "show more or less of this entry", read::fold).at(Transcript),
    verb("transcript-outline", &["o"], "the outline", |state, _| state.open(Outline::new(state))).at(Transcript),
    verb("open", &["enter"], "show all of this entry, or its change", read::open).at(Transcript),
    verb("transcript-start", &["g", "home"], "to the start", read::to_start).at(Transcript),
    verb("transcript-end", &["G", "end"], "to the end, and follow it", read::to_end).at(Transcript),
    verb("side-next", &["right", "l"], "the next tab of the side panel", |state, _| read::turn_side(state, 1)).at(Side),
    verb("side-previous", &["left", "h"], "the tab before", |state, _| read::turn_side(state, -1)).at(Side),
    verb("side-wider", &["<", "+"], "a wider side panel", |state, _| read::widen_side(state, 4)).at(Side),
    verb("side-narrower", &[">", "-"], "a narrower side panel", |state, _| read::widen_side(state, -4)).at(Side),
    verb("side-down", &["down", "j"], "scroll the side panel", |state, _| read::scroll_side(state, 1)).at(Side),
    verb("side-up", &["up", "k"], "scroll it back", |state, _| read::scroll_side(state, -1)).at(Side),

    // Telling a session again.
    verb("replay-play", &["space"], "play, or stop", replay::play).at(Replay),
    verb("replay-forward", &["right", "l", "enter"], "one entry on", replay::forward).at(Replay),
    verb("replay-back", &["left", "h"], "one entry back", replay::back).at(Replay),
    verb("replay-next-turn", &["}", "down"], "to the next turn", replay::next_turn).at(Replay),
    verb("replay-previous-turn", &["{", "up"], "to the turn before", replay::turn_before).at(Replay),
    verb("replay-start", &["home", "g"], "to its start", replay::to_start).at(Replay),
    verb("replay-end", &["end", "G"], "to its end", replay::to_end).at(Replay),
    verb("replay-faster", &["+", "="], "twice as fast", |state, _| replay::faster(state, 2.0)).at(Replay),
    verb("replay-slower", &["-"], "half as fast", |state, _| replay::faster(state, 0.5)).at(Replay),
    verb("replay-quit", &["q", "ctrl+d"], "close the replay", |_, _| vec![Effect::Quit]).at(Replay),

    // Overlays: one line each.
    verb("help", &["f1"], "keys and commands (? on an empty line)", |state, _| read::help(state, HelpView::default())).slash("help", "", "opens the help"),
    verb("keys", &[], "every key, where it holds, and its name for [keys]", |state, _| read::help(state, HelpView::keys())).slash("keys", "", "opens the help"),
    verb("palette", &["ctrl+p"], "everything that can be done, by name", |state, _| state.open(Palette::new(state))),
    verb("outline", &[], "the outline of the conversation", |state, _| state.open(Outline::new(state))).slash("outline", "", "moves the window"),
    verb("tree", &["ctrl+t"], "turns and branches: go back, edit, fork", |state, _| state.open(TreeView::new(state))).slash("tree", "", "MoveHead{to_seq}, Fork{seq}, Label{seq} or Pin{seq}"),
    verb("diff", &["alt+d"], "what this turn and this session changed", |state, _| state.open(DiffView::default())).slash("diff", "", "opens the diff"),
    verb("jobs", &[], "what runs in the background; x stops it", |state, _| state.open(JobsView::new(&state.jobs))).live().slash("jobs", "", "StopJob{job}"),
    verb("hud", &["f12"], "what drawing costs", read::toggle_hud),

    // The session.
    verb("new", &[], "start a new session", |_, _| vec![Effect::OpenNew]).live().slash("new", "", "closes this session and starts one"),
    verb("resume", &[], "go on with another session", settings::resume).live().slash("resume", "[id]", "closes this session and opens that one"),
    verb("rename", &[], "name this session", settings::rename).live().slash("rename", "<name>", "Set{name}"),
    verb("fork", &[], "go on from here in a new session; this one stays as it is", travel::fork).idle().slash("fork", "", "Fork{seq}"),
    verb("undo", &[], "take back what a turn changed in files; shown before it is done", travel::undo).idle().slash("undo", "[turn]", "Undo{dry_run}, then Undo{}"),
    verb("redo", &[], "bring back what the last undo took away; shown before it is done", travel::redo).idle().slash("redo", "", "Redo{dry_run}, then Redo{}"),
    verb("compact", &[], "replace older history by a summary; shown before it is applied", settings::compact).idle().slash("compact", "[keep in mind]", "Compact{dry_run}, then Compact{}"),
    verb("skill", &[], "put a SKILL.md into the conversation", settings::skill).idle().slash("skill", "[name] [task]", "ActivateSkill{name, args}"),
    verb("usage", &[], "tokens and money: this branch, the session, each model and turn", settings::usage).slash("usage", "", "says it"),
    verb("copy", &[], "copy the last answer, or what has a letter", read::copy).slash("copy", "[answer|code]", "writes the clipboard"),

    // How it goes on.
    verb("cycle-mode", &["shift+tab"], "next mode: read-only, ask, auto", settings::cycle_mode).live(),
    verb("mode", &[], "what may run without asking", settings::mode).live().slash("mode", "[read-only|ask|auto]", "Set{mode}"),
    verb("model", &[], "who answers from the next request on", settings::model).live().slash("model", "[provider/name]", "Set{provider, model}"),
    verb("effort", &[], "how hard the model thinks, from the next request on", settings::effort).live().slash("effort", "[level]", "Set{effort}"),
    verb("toolset", &[], "which tools the model gets, from the next request on", settings::toolset).live().slash("toolset", "[typed|run|both]", "Set{toolset}"),
    verb("theme", &[], "colours", settings::theme).slash("theme", "[name]", "changes the screen only"),
    verb("mouse", &[], "clicks and the wheel for pixir, or for the terminal's own selection", read::toggle_mouse).slash("mouse", "", "changes the screen only"),
];

/// A list that asks for its rows.
pub(crate) fn list(state: &mut State, kind: Kind) -> Vec<Effect> {
    state.open(Picker::loading(kind))
}

/// The verb that a slash command names.
pub(crate) fn of_slash(name: &str) -> Option<&'static Verb> {
    VERBS.iter().find(|verb| verb.slash.is_some_and(|it| it.name == name))
}

/// Everything that the interface can do, for the reference: names, default keys, places, commands.
pub fn reference() -> serde_json::Value {
    let scope = |scope| match scope {
        Scope::Anywhere => "anywhere",
        Scope::Composer => "line",
        Scope::Approval => "while a question is open",
        Scope::Question => "question",
        Scope::Transcript => "transcript",
        Scope::Side => "side panel",
        Scope::Replay => "replay",
    };
    let verbs = VERBS.iter().map(|verb| {
        serde_json::json!({
            "name": verb.id,
            "keys": verb.keys,
            "where": scope(verb.scope),
            "about": verb.about,
            "command": verb.slash.map(|it| format!("/{} {}", it.name, it.args).trim_end().to_owned()),
            "does": verb.slash.map(|it| it.does),
        })
    });
    verbs.collect()
}
