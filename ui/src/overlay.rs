//! Layers over the transcript: the top one has the keys. An overlay changes only itself. For anything else it returns a
//! [`Request`], which `update` carries out.
//!
//! A new overlay is a file here, a variant with its match arms, and a line in the action table that opens it.

use std::sync::Arc;

use pixir_core::changes::FileDiff;
use pixir_core::diff::{ChangedFile, Changes};
use pixir_core::event::{ContextReport, JobState, RestorePreview};
use pixir_core::history::History;
use pixir_core::input::RestoreOptions;
use pixir_core::provider::Offered;
use pixir_core::rule::SavedRule;
use pixir_core::search::{Found, Said};
use pixir_core::store::Summary;
use pixir_core::{Decision, Input, Skill};
use ratatui::layout::{Position, Rect};

use crate::input::action::{Action, ActionSpec, Scope};
use crate::input::keymap::Keymap;
use crate::render::highlight::Highlighter;
use crate::render::report::Check;
use crate::terminal::canvas::Canvas;
use crate::terminal::key::KeyEvent;
use crate::theme::Theme;

pub(crate) mod always; // the rule that "always" saves
pub(crate) mod approval; // the full preview of a call
pub(crate) mod compaction; // the preview of a summary
pub(crate) mod connect; // a key, a local server, a sign-in
pub(crate) mod context; // what fills the model's window
pub(crate) mod diff; // changed files, reviewed hunk by hunk
pub(crate) mod form; // questions of the model
pub(crate) mod help; // keys and commands
pub(crate) mod jobs; // background jobs
pub(crate) mod models; // the models, and the effort
pub(crate) mod log; // the end of pixir's own log file
pub(crate) mod narrow; // lists that are filtered by typing
pub(crate) mod outline; // the conversation, turn by turn
pub(crate) mod palette; // actions by name
pub(crate) mod permissions; // mode, rules, decisions
pub(crate) mod picker; // sessions, models, skills, settings
pub(crate) mod report; // status, usage, plan, checks
pub(crate) mod restore; // the preview of a restore
pub(crate) mod save_for; // for whom a setting is changed
pub(crate) mod settings; // every setting
pub(crate) mod themes; // the themes
mod page; // text that scrolls
mod panel; // the frame and the place of a dialog
mod panes; // a list beside its preview
pub(crate) mod sessions; // the stored Sessions
pub(crate) mod tree; // turns and branches
pub(crate) mod trust; // what the workspace brings along

pub(crate) use page::{LineCache, Page};
pub(crate) use panel::{dialog, panel};

use always::AlwaysView;
use approval::ApprovalView;
use compaction::CompactionView;
use connect::{ConnectView, News, Order};
use context::ContextView;
use diff::{DiffView, Loaded, Review, Want};
use form::FormView;
use help::HelpView;
use jobs::{JobTail, JobsView};
use log::{LogTail, LogView};
use models::ModelsView;
use outline::Outline;
use palette::Palette;
use permissions::PermissionsView;
use picker::Picker;
use report::ReportView;
use restore::RestoreView;
use save_for::SaveFor;
use sessions::SessionList;
use settings::SettingsView;
use themes::ThemesView;
use tree::{PendingMove, Sides, TreeView};
use trust::TrustView;

/// A layer over the transcript.
#[derive(Debug)]
pub(crate) enum Overlay {
    Always(AlwaysView),
    Approval(ApprovalView),
    Compaction(Box<CompactionView>),
    Connect(ConnectView),
    Context(ContextView),
    Diff(Box<DiffView>),
    Form(FormView),
    Help(HelpView),
    Jobs(JobsView),
    Models(ModelsView),
    Log(LogView),
    Outline(Outline),
    Palette(Palette),
    Permissions(PermissionsView),
    Picker(Picker),
    Report(ReportView),
    Restore(RestoreView),
    Sessions(SessionList),
    Settings(SettingsView),
    Themes(ThemesView),
    Tree(Box<TreeView>),
    Trust(TrustView),
}

/// The result of a key in an overlay.
#[derive(Debug)]
pub(crate) enum Outcome {
    Stay,
    /// The user has left the overlay without choosing.
    Close,
    Ask(Request),
    CloseAndAsk(Request),
}

/// The result of a click in an overlay.
#[derive(Debug)]
pub(crate) enum Press {
    /// The click was all that there is to do.
    Did(Box<Outcome>),
    /// It chose a row; a second one is like Enter.
    OnRow,
    Nowhere,
}

impl Outcome {
    fn send(input: Input) -> Outcome {
        Outcome::Ask(Request::Send(vec![input]))
    }

    fn close_and_send(input: Input) -> Outcome {
        Outcome::CloseAndAsk(Request::Send(vec![input]))
    }
}

/// A change outside of the overlay, for `update` to carry out.
#[derive(Debug)]
pub(crate) enum Request {
    /// Run a slash command, as if the user had typed it.
    Command(String),
    /// Send these Inputs, in this order.
    Send(Vec<Input>),
    /// Carry out an action that the user has looked up, which counts as a use of it.
    Use(&'static ActionSpec),
    /// Read the end of a job's output.
    ReadJob { job: u32, path: String },
    /// Work on stored Sessions, in this order.
    Stored(Vec<sessions::Work>),
    /// Find files that match these letters.
    FindFiles(String),
    /// Mention a file in the draft.
    Mention(String),
    /// Carry out an action that is not the overlay's own.
    Perform(Action),
    /// Decide about the call that waits for it.
    Decide { call_id: String, decision: Decision },
    /// Put a command into the composer for the user to complete, with a hint in the status line.
    Complete { draft: String, hint: Option<&'static str> },
    /// Use this theme without a word: a preview, or the end of one.
    RestoreTheme(String),
    /// Change this setting, and save it where the user wants it.
    Change { key: String, value: String, save: SaveFor },
    /// Let this model answer, and save it where the user wants it.
    ChooseModel { provider: String, model: String, effort: Option<String>, save: SaveFor },
    /// A step of connecting a model.
    Connect(Order),
    /// Show this cell of the transcript.
    ShowCell(usize),
    /// Compare the files of two conversations.
    CompareFiles(Sides),
    /// Show the cell of this entry.
    ShowEntry(u64),
    /// Move the head, once the user has decided about the files.
    MoveHead(PendingMove),
    /// Move the head, and leave the files as they are.
    MoveWithoutFiles,
    /// Cancel the pending move of the head.
    Stay,
    /// Read what the diff shows.
    ReadDiff(Vec<Want>),
    /// Send what the user decided about a hunk, and read on.
    Review { input: Input, wants: Vec<Want> },
    /// Send the comments on the diff as one message.
    SendReview(String),
    /// Keep the comments on the diff until it is opened again.
    KeepReview(Review),
    /// Put a text into the clipboard.
    Copy(String),
    /// Open a file of the workspace at a line in the user's own editor.
    EditFile { path: String, line: u32 },
    /// Restore files as previewed. `RestoreOptions` has the user's choices.
    Restore(Box<RestorePreview>, RestoreOptions),
}

/// Something that happened while the overlay was open.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Notification<'a> {
    /// The Sessions of the workspace; `current` is open. `forks_of` is the Session whose forks were requested.
    Sessions {
        all: &'a [Summary],
        current: Option<&'a str>,
        forks_of: Option<&'a str>,
    },
    /// The stored Sessions that were asked for; `current` is open.
    StoredSessions {
        all: &'a [Summary],
        current: Option<&'a str>,
    },
    /// The words that are searched are in this Session.
    SessionFound {
        id: &'a str,
        found: &'a Found,
    },
    /// All Sessions are searched.
    SearchEnded,
    /// The last messages of a Session.
    SessionPreview {
        id: &'a str,
        said: &'a [Said],
    },
    /// Models to choose from, and those of the last Sessions.
    Models {
        offered: &'a Offered,
        recent: &'a [String],
    },
    /// A step of connecting a model.
    Connecting(News<'a>),
    Skills(&'a [Skill]),
    /// The changed files of the list with this number.
    Changes {
        number: u64,
        changes: &'a Changes,
    },
    /// Files of that list whose lines were counted.
    Counts {
        number: u64,
        files: &'a [(usize, ChangedFile)],
    },
    /// The lines of a file of that list.
    Patch {
        number: u64,
        at: usize,
        loaded: &'a Arc<Loaded>,
    },
    /// An Input was refused, for this reason; a protected file can be written if the user allows it.
    Refused {
        why: &'a str,
        is_protected: bool,
    },
    Jobs(&'a [JobState]),
    /// The files that match these letters.
    Files {
        letters: &'a str,
        found: &'a [String],
    },
    /// The end of a job's output.
    JobOutput(&'a JobTail),
    /// The end of the log file.
    Log(&'a LogTail),
    /// The checks of this machine.
    Checks(&'a [Check]),
    /// The rules in force, and what could not be read.
    Rules {
        rules: &'a [SavedRule],
        warning: Option<&'a str>,
    },
    /// Labels, pins or the trash have changed.
    Branches(&'a History),
    /// The conversation has a new Entry, the last one of its History.
    Recorded {
        history: &'a History,
        entry: &'a Arc<pixir_core::Entry>,
    },
    /// The files of two conversations, compared.
    Compared(&'a [FileDiff]),
    /// More of the notes that a model writes for a summary, as JSON.
    SummaryDelta(&'a str),
    /// What fills the window of the next request.
    Context {
        report: &'a ContextReport,
        history: &'a History,
    },
    /// A call has its result, so it does not wait for an answer any more.
    CallEnded(&'a str),
    TurnEnded,
}

/// The inputs of drawing an overlay.
#[derive(Clone, Copy)]
pub(crate) struct Paint<'a> {
    pub(crate) theme: &'a Theme,
    pub(crate) highlighter: &'a Highlighter,
    /// See [`LayoutKey::generation`](crate::render::context::LayoutKey::generation).
    pub(crate) generation: u64,
    /// What the user's keys do, for hints.
    pub(crate) keys: &'a Keymap,
}

impl Paint<'_> {
    /// `Enter go · Esc close`: the bound keys of these actions. Actions without a key are left out.
    pub(crate) fn hints(&self, actions: &[(Action, &str)]) -> String {
        self.keys.hints(actions)
    }
}

/// Calls the method that every overlay has under the same name.
macro_rules! each {
    ($overlay:expr, $it:ident => $call:expr) => {
        match $overlay {
            Overlay::Always($it) => $call,
            Overlay::Approval($it) => $call,
            Overlay::Compaction($it) => $call,
            Overlay::Connect($it) => $call,
            Overlay::Context($it) => $call,
            Overlay::Diff($it) => $call,
            Overlay::Form($it) => $call,
            Overlay::Help($it) => $call,
            Overlay::Jobs($it) => $call,
            Overlay::Models($it) => $call,
            Overlay::Log($it) => $call,
            Overlay::Outline($it) => $call,
            Overlay::Palette($it) => $call,
            Overlay::Permissions($it) => $call,
            Overlay::Picker($it) => $call,
            Overlay::Report($it) => $call,
            Overlay::Restore($it) => $call,
            Overlay::Settings($it) => $call,
            Overlay::Themes($it) => $call,
            Overlay::Sessions($it) => $call,
            Overlay::Tree($it) => $call,
            Overlay::Trust($it) => $call,
        }
    };
}

impl Overlay {
    /// Its name for screen readers and scripts.
    pub(crate) fn title(&self) -> &'static str {
        match self {
            Overlay::Always(_) => "Allow always",
            Overlay::Approval(_) => "Approval",
            Overlay::Compaction(_) => "Compact",
            Overlay::Connect(_) => "Connect a model",
            Overlay::Context(_) => "Context",
            Overlay::Diff(_) => "Diff",
            Overlay::Form(_) => "Question of the model",
            Overlay::Help(_) => "Help",
            Overlay::Jobs(_) => "Background jobs",
            Overlay::Models(_) => "Models",
            Overlay::Log(_) => "Log",
            Overlay::Outline(_) => "Outline",
            Overlay::Palette(_) => "Palette",
            Overlay::Permissions(_) => "Permissions",
            Overlay::Picker(picker) => picker.kind().title(),
            Overlay::Report(it) => it.title(),
            Overlay::Restore(_) => "Files to restore",
            Overlay::Settings(_) => "Settings",
            Overlay::Themes(_) => "Theme",
            Overlay::Sessions(_) => "Sessions",
            Overlay::Tree(_) => "Tree",
            Overlay::Trust(_) => "What this workspace brings along",
        }
    }

    /// The scopes of its keys, the innermost first.
    pub(crate) fn scopes(&self) -> &'static [Scope] {
        match self {
            Overlay::Always(_) => &[Scope::Rule, Scope::Overlay],
            Overlay::Approval(_) => &[Scope::ApprovalFocus, Scope::Overlay],
            Overlay::Compaction(_) => &[Scope::Compaction, Scope::Overlay],
            Overlay::Context(_) => &[Scope::Context, Scope::Overlay],
            Overlay::Diff(_) => &[Scope::Diff, Scope::Overlay],
            Overlay::Form(_) => &[Scope::Form, Scope::Overlay],
            Overlay::Help(_) => &[Scope::Help, Scope::Overlay],
            Overlay::Jobs(_) => &[Scope::Jobs, Scope::Overlay],
            Overlay::Log(_) => &[Scope::Log, Scope::Overlay],
            Overlay::Permissions(_) => &[Scope::Permissions, Scope::Overlay],
            Overlay::Models(_) => &[Scope::Models, Scope::Saving, Scope::Overlay],
            Overlay::Restore(_) => &[Scope::Restore, Scope::Overlay],
            Overlay::Sessions(_) => &[Scope::Sessions, Scope::Overlay],
            Overlay::Settings(_) | Overlay::Themes(_) => &[Scope::Saving, Scope::Overlay],
            Overlay::Tree(_) => &[Scope::Tree, Scope::Overlay],
            Overlay::Connect(_)
            | Overlay::Outline(_)
            | Overlay::Palette(_)
            | Overlay::Picker(_)
            | Overlay::Report(_)
            | Overlay::Trust(_) => &[Scope::Overlay],
        }
    }

    /// A field takes what the user types, so letters trigger no action.
    pub(crate) fn is_typing(&self) -> bool {
        match self {
            Overlay::Form(_)
            | Overlay::Help(_)
            | Overlay::Log(_)
            | Overlay::Models(_)
            | Overlay::Palette(_)
            | Overlay::Picker(_)
            | Overlay::Themes(_) => true,
            Overlay::Always(it) => it.is_typing(),
            Overlay::Connect(it) => it.is_typing(),
            Overlay::Sessions(it) => it.is_typing(),
            Overlay::Settings(it) => it.is_typing(),
            Overlay::Compaction(it) => it.is_typing(),
            Overlay::Tree(it) => it.is_typing(),
            Overlay::Diff(it) => it.is_typing(),
            Overlay::Approval(_)
            | Overlay::Context(_)
            | Overlay::Jobs(_)
            | Overlay::Outline(_)
            | Overlay::Permissions(_)
            | Overlay::Report(_)
            | Overlay::Restore(_)
            | Overlay::Trust(_) => false,
        }
    }

    /// Types into the field that takes text, if there is one. `None` if the key means nothing to the field: then it can
    /// be an action.
    pub(crate) fn key(&mut self, key: KeyEvent) -> Option<Outcome> {
        match self {
            Overlay::Always(it) => it.key(key),
            Overlay::Connect(it) => it.key(key),
            Overlay::Compaction(it) => it.key(key),
            Overlay::Form(it) => it.key(key),
            Overlay::Help(it) => it.key(key),
            Overlay::Log(it) => it.key(key),
            Overlay::Models(it) => it.key(key),
            Overlay::Palette(it) => it.key(key),
            Overlay::Picker(it) => it.key(key),
            Overlay::Sessions(it) => it.key(key),
            Overlay::Settings(it) => it.key(key),
            Overlay::Themes(it) => it.key(key),
            Overlay::Tree(it) => it.key(key),
            Overlay::Diff(it) => it.key(key),
            Overlay::Approval(_)
            | Overlay::Context(_)
            | Overlay::Jobs(_)
            | Overlay::Outline(_)
            | Overlay::Permissions(_)
            | Overlay::Report(_)
            | Overlay::Restore(_)
            | Overlay::Trust(_) => None,
        }
    }

    /// A key without a meaning was pressed: it answers no question.
    pub(crate) fn forget_question(&mut self) {
        match self {
            Overlay::Jobs(it) => it.forget_question(),
            Overlay::Permissions(it) => it.forget_question(),
            Overlay::Sessions(it) => it.forget_question(),
            _ => {}
        }
    }

    /// Carries out an action of one of its scopes. An action that means nothing here changes nothing.
    pub(crate) fn act(&mut self, action: Action) -> Outcome {
        each!(self, it => it.act(action))
    }

    /// Scrolls by rows, or moves the cursor of a list.
    pub(crate) fn scroll(&mut self, by: isize) {
        each!(self, it => it.scroll(by))
    }

    /// Turns the wheel over this place.
    pub(crate) fn wheel(&mut self, at: Position, by: isize) {
        match self {
            Overlay::Tree(it) => it.wheel(at, by),
            other => other.scroll(by),
        }
    }

    pub(crate) fn draw(&mut self, canvas: &mut Canvas, area: Rect, paint: Paint<'_>) {
        each!(self, it => it.draw(canvas, area, paint))
    }

    /// Updates the overlay with a notification.
    pub(crate) fn notify(&mut self, notification: Notification<'_>) {
        match self {
            Overlay::Connect(it) => it.notify(notification),
            Overlay::Compaction(it) => it.notify(notification),
            Overlay::Context(it) => it.notify(notification),
            Overlay::Diff(it) => it.notify(notification),
            Overlay::Jobs(it) => it.notify(notification),
            Overlay::Models(it) => it.notify(notification),
            Overlay::Log(it) => it.notify(notification),
            Overlay::Palette(it) => it.notify(notification),
            Overlay::Report(it) => it.notify(notification),
            Overlay::Permissions(it) => it.notify(notification),
            Overlay::Picker(it) => it.notify(notification),
            Overlay::Sessions(it) => it.notify(notification),
            Overlay::Tree(it) => it.notify(notification),
            Overlay::Always(_)
            | Overlay::Approval(_)
            | Overlay::Form(_)
            | Overlay::Help(_)
            | Overlay::Outline(_)
            | Overlay::Restore(_)
            | Overlay::Settings(_)
            | Overlay::Themes(_)
            | Overlay::Trust(_) => {}
        }
    }

    /// The overlay belongs to this call, and closes with it.
    fn call_id(&self) -> Option<&str> {
        match self {
            Overlay::Always(it) => Some(it.call_id()),
            Overlay::Approval(it) => Some(it.call_id()),
            Overlay::Form(it) => Some(it.call_id()),
            Overlay::Compaction(_)
            | Overlay::Connect(_)
            | Overlay::Context(_)
            | Overlay::Diff(_)
            | Overlay::Help(_)
            | Overlay::Jobs(_)
            | Overlay::Models(_)
            | Overlay::Log(_)
            | Overlay::Outline(_)
            | Overlay::Palette(_)
            | Overlay::Permissions(_)
            | Overlay::Picker(_)
            | Overlay::Report(_)
            | Overlay::Restore(_)
            | Overlay::Settings(_)
            | Overlay::Themes(_)
            | Overlay::Sessions(_)
            | Overlay::Tree(_)
            | Overlay::Trust(_) => None,
        }
    }

    /// After this notification the overlay has no purpose any more.
    pub(crate) fn is_over(&self, notification: Notification<'_>) -> bool {
        match (notification, self.call_id()) {
            (Notification::CallEnded(ended), Some(call)) => call == ended,
            (Notification::TurnEnded, Some(_)) => true,
            (_, _) => false,
        }
    }

    /// Takes pasted text, if it has a field for it.
    pub(crate) fn paste(&mut self, text: &str) {
        match self {
            Overlay::Form(it) => it.paste(text),
            Overlay::Compaction(it) => it.paste(text),
            Overlay::Connect(it) => it.paste(text),
            Overlay::Diff(it) => it.paste(text),
            Overlay::Settings(it) => it.paste(text),
            Overlay::Tree(it) => it.paste(text),
            Overlay::Always(_)
            | Overlay::Approval(_)
            | Overlay::Context(_)
            | Overlay::Help(_)
            | Overlay::Jobs(_)
            | Overlay::Log(_)
            | Overlay::Models(_)
            | Overlay::Outline(_)
            | Overlay::Palette(_)
            | Overlay::Permissions(_)
            | Overlay::Picker(_)
            | Overlay::Report(_)
            | Overlay::Restore(_)
            | Overlay::Sessions(_)
            | Overlay::Themes(_)
            | Overlay::Trust(_) => {}
        }
    }

    /// A click of the left button.
    pub(crate) fn press(&mut self, at: Position) -> Press {
        match self {
            Overlay::Diff(diff) => Press::Did(Box::new(diff.press(at))),
            Overlay::Tree(tree) => tree.press(at),
            _ => Press::Nowhere,
        }
    }

    /// The request when the user leaves the overlay without choosing.
    pub(crate) fn leave(self) -> Option<Request> {
        match self {
            Overlay::Compaction(it) => it.leave(),
            Overlay::Form(form) => Some(form.leave()),
            Overlay::Connect(_) => Some(Request::Connect(Order::Cancel)),
            Overlay::Themes(it) => Some(it.leave()),
            Overlay::Restore(_) => Some(Request::Stay),
            Overlay::Trust(card) => card.leave(),
            Overlay::Diff(diff) => Some(Request::KeepReview(diff.into_review())),
            Overlay::Always(_)
            | Overlay::Approval(_)
            | Overlay::Context(_)
            | Overlay::Help(_)
            | Overlay::Jobs(_)
            | Overlay::Log(_)
            | Overlay::Models(_)
            | Overlay::Outline(_)
            | Overlay::Palette(_)
            | Overlay::Permissions(_)
            | Overlay::Picker(_)
            | Overlay::Report(_)
            | Overlay::Sessions(_)
            | Overlay::Settings(_)
            | Overlay::Tree(_) => None,
        }
    }

    /// Enter has an effect that the user must not trigger by accident: the overlay has to be visible for a moment
    /// first.
    pub(crate) fn is_guarded(&self) -> bool {
        match self {
            Overlay::Always(_) | Overlay::Restore(_) | Overlay::Trust(_) => true,
            Overlay::Compaction(it) => it.is_guarded(),
            Overlay::Form(form) => form.is_guarded(),
            Overlay::Approval(_)
            | Overlay::Connect(_)
            | Overlay::Context(_)
            | Overlay::Diff(_)
            | Overlay::Help(_)
            | Overlay::Jobs(_)
            | Overlay::Models(_)
            | Overlay::Log(_)
            | Overlay::Outline(_)
            | Overlay::Palette(_)
            | Overlay::Permissions(_)
            | Overlay::Picker(_)
            | Overlay::Settings(_)
            | Overlay::Themes(_)
            | Overlay::Report(_)
            | Overlay::Sessions(_)
            | Overlay::Tree(_) => false,
        }
    }

    pub(crate) fn diff(&self) -> Option<&DiffView> {
        if let Overlay::Diff(diff) = self { Some(diff) } else { None }
    }

    pub(crate) fn diff_mut(&mut self) -> Option<&mut DiffView> {
        if let Overlay::Diff(diff) = self { Some(diff) } else { None }
    }

    /// A form that waits for the user's answers.
    pub(crate) fn form_mut(&mut self) -> Option<&mut FormView> {
        if let Overlay::Form(form) = self { Some(form) } else { None }
    }

    pub(crate) fn form(&self) -> Option<&FormView> {
        if let Overlay::Form(form) = self { Some(form) } else { None }
    }

    /// The model waits for the answers that the user gives here.
    pub(crate) fn is_form(&self) -> bool {
        matches!(self, Overlay::Form(_))
    }

    /// A form that appeared while the user was writing. The composer keeps the keys until the user turns to the form.
    pub(crate) fn is_aside(&self) -> bool {
        matches!(self, Overlay::Form(form) if !form.has_keys())
    }

    /// The call whose preview the overlay has shown to its end.
    pub(crate) fn call_read_to_end(&self) -> Option<&str> {
        if let Overlay::Approval(it) = self { it.call_read_to_end() } else { None }
    }
}
