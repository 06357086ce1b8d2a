//! Layers over the transcript: the top one has the keys. An overlay changes only itself. For anything else it returns a
//! [`Request`], which `update` carries out.
//!
//! A new overlay is a file here, a variant with its match arms, and a line in the action table that opens it.

use std::time::Duration;

use pixir_core::Input;
use pixir_core::agent::Asker;
use ratatui::layout::{Position, Rect};

use crate::input::action::{Action, Scope};
use crate::input::keymap::Keymap;
use crate::render::highlight::Highlighter;
use crate::terminal::canvas::Canvas;
use crate::theme::Theme;

pub(crate) mod agents; // child Sessions
pub(crate) mod always; // the rule that "always" saves
pub(crate) mod arguments; // what a prompt template still needs
pub(crate) mod danger; // the word before a dangerous call
pub(crate) mod approval; // the full preview of a call
pub(crate) mod compaction; // the preview of a summary
pub(crate) mod connect; // a key, a local server, a sign-in
pub(crate) mod context; // what fills the model's window
pub(crate) mod diff; // changed files, reviewed hunk by hunk
pub(crate) mod form; // questions of the model
pub(crate) mod help; // keys and commands
pub(crate) mod jobs; // background jobs
pub(crate) mod servers; // MCP servers
pub(crate) mod models; // the models, and the effort
pub(crate) mod log; // the end of pixir's own log file
pub(crate) mod narrow; // lists that are filtered by typing
pub(crate) mod outline; // the conversation, turn by turn
pub(crate) mod palette; // actions by name
pub(crate) mod permissions; // mode, rules, decisions
pub(crate) mod picker; // mode, toolset, effort
pub(crate) mod report; // status, usage, plan, checks
pub(crate) mod restore; // the preview of a restore
pub(crate) mod save_for; // for whom a setting is changed
pub(crate) mod settings; // every setting
pub(crate) mod skills; // the skills, with their text
pub(crate) mod themes; // the themes
mod notification; // what an overlay is told
mod page; // text that scrolls
mod panel; // the frame and the place of a dialog
mod panes; // a list beside its preview
mod request; // what an overlay wants
mod rows; // rows under a click
pub(crate) mod sessions; // the stored Sessions
pub(crate) mod tree; // turns and branches
pub(crate) mod trust; // what the workspace brings along
mod typing; // which keys are text
pub(crate) mod workflow; // the run of a workflow

pub(crate) use notification::Notification;
pub(crate) use page::{LineCache, Page};
pub(crate) use panel::{dialog, docked, panel};
pub(crate) use request::Request;

use agents::AgentsView;
use always::AlwaysView;
use approval::ApprovalView;
use arguments::ArgumentsView;
use compaction::CompactionView;
use connect::{ConnectView, Order};
use context::ContextView;
use danger::DangerView;
use diff::DiffView;
use form::FormView;
use help::HelpView;
use jobs::JobsView;
use log::LogView;
use models::ModelsView;
use outline::Outline;
use palette::Palette;
use permissions::PermissionsView;
use picker::Picker;
use report::ReportView;
use restore::RestoreView;
use sessions::SessionList;
use settings::SettingsView;
use skills::SkillsView;
use themes::ThemesView;
use tree::TreeView;
use trust::TrustView;
use workflow::WorkflowView;

/// A layer over the transcript.
#[derive(Debug)]
pub(crate) enum Overlay {
    Agents(Box<AgentsView>),
    Always(Box<AlwaysView>),
    Approval(ApprovalView),
    Arguments(ArgumentsView),
    Compaction(Box<CompactionView>),
    Connect(ConnectView),
    Context(ContextView),
    Danger(DangerView),
    Diff(Box<DiffView>),
    Form(FormView),
    Help(HelpView),
    Jobs(JobsView),
    Servers(servers::ServersView),
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
    Skills(SkillsView),
    Themes(ThemesView),
    Tree(Box<TreeView>),
    Trust(TrustView),
    Workflow(Box<WorkflowView>),
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
    /// It moved the cursor to this row; a second click there is like Enter.
    OnRow(usize),
    /// The same, and the row's preview is wanted.
    Preview(usize, Box<Outcome>),
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

/// The inputs of drawing an overlay.
#[derive(Clone, Copy)]
pub(crate) struct Paint<'a> {
    pub(crate) theme: &'a Theme,
    pub(crate) highlighter: &'a Highlighter,
    /// See [`LayoutKey::generation`](crate::render::context::LayoutKey::generation).
    pub(crate) generation: u64,
    /// What the user's keys do, for hints.
    pub(crate) keys: &'a Keymap,
    /// The time since 1970.
    pub(crate) wall: Duration,
}

impl Paint<'_> {
    /// `Enter go · Esc close`: the bound keys of these actions. Actions without a key are left out.
    pub(crate) fn hints(&self, actions: &[(Action, &str)]) -> String {
        self.keys.hints(actions)
    }

    /// The same for those that can do something now.
    pub(crate) fn hints_of(&self, actions: &[(bool, Action, &str)]) -> String {
        let here: Vec<(Action, &str)> =
            actions.iter().filter(|it| it.0).map(|(_, action, word)| (*action, *word)).collect();
        self.keys.hints(&here)
    }
}

/// Calls the method that every overlay has under the same name.
macro_rules! each {
    ($overlay:expr, $it:ident => $call:expr) => {
        match $overlay {
            Overlay::Agents($it) => $call,
            Overlay::Workflow($it) => $call,
            Overlay::Always($it) => $call,
            Overlay::Approval($it) => $call,
            Overlay::Arguments($it) => $call,
            Overlay::Compaction($it) => $call,
            Overlay::Connect($it) => $call,
            Overlay::Context($it) => $call,
            Overlay::Danger($it) => $call,
            Overlay::Diff($it) => $call,
            Overlay::Form($it) => $call,
            Overlay::Help($it) => $call,
            Overlay::Jobs($it) => $call,
            Overlay::Servers($it) => $call,
            Overlay::Models($it) => $call,
            Overlay::Log($it) => $call,
            Overlay::Outline($it) => $call,
            Overlay::Palette($it) => $call,
            Overlay::Permissions($it) => $call,
            Overlay::Picker($it) => $call,
            Overlay::Report($it) => $call,
            Overlay::Restore($it) => $call,
            Overlay::Settings($it) => $call,
            Overlay::Skills($it) => $call,
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
            Overlay::Agents(_) => "Agents",
            Overlay::Workflow(_) => "Workflow",
            Overlay::Always(_) => "Allow always",
            Overlay::Approval(_) => "Approval",
            Overlay::Arguments(_) => "Prompt template",
            Overlay::Compaction(_) => "Compact",
            Overlay::Connect(_) => "Connect a model",
            Overlay::Context(_) => "Context",
            Overlay::Danger(_) => "Dangerous call",
            Overlay::Diff(_) => "Diff",
            Overlay::Form(_) => "Question of the model",
            Overlay::Help(_) => "Help",
            Overlay::Jobs(_) => "Background jobs",
            Overlay::Servers(_) => "MCP servers",
            Overlay::Models(_) => "Models",
            Overlay::Log(_) => "Log",
            Overlay::Outline(_) => "Outline",
            Overlay::Palette(_) => "Palette",
            Overlay::Permissions(_) => "Permissions",
            Overlay::Picker(picker) => picker.kind().title(),
            Overlay::Report(it) => it.title(),
            Overlay::Restore(_) => "Files to restore",
            Overlay::Settings(_) => "Settings",
            Overlay::Skills(_) => "Skills",
            Overlay::Themes(_) => "Theme",
            Overlay::Sessions(_) => "Sessions",
            Overlay::Tree(_) => "Tree",
            Overlay::Trust(_) => "What this workspace brings along",
        }
    }

    /// The scopes of its keys, the innermost first.
    pub(crate) fn scopes(&self) -> &'static [Scope] {
        match self {
            Overlay::Agents(_) => &[Scope::Agents, Scope::Overlay],
            Overlay::Workflow(_) => &[Scope::Workflow, Scope::Overlay],
            Overlay::Always(_) => &[Scope::Rule, Scope::Overlay],
            Overlay::Approval(_) => &[Scope::ApprovalFocus, Scope::Overlay],
            Overlay::Compaction(_) => &[Scope::Compaction, Scope::Overlay],
            Overlay::Connect(_) => &[Scope::Connect, Scope::Overlay],
            Overlay::Context(_) => &[Scope::Context, Scope::Overlay],
            Overlay::Diff(_) => &[Scope::Diff, Scope::Overlay],
            Overlay::Form(_) => &[Scope::Form, Scope::Overlay],
            Overlay::Help(_) => &[Scope::Help, Scope::Overlay],
            Overlay::Jobs(_) => &[Scope::Jobs, Scope::Overlay],
            Overlay::Servers(_) => &[Scope::Servers, Scope::Overlay],
            Overlay::Log(_) => &[Scope::Log, Scope::Overlay],
            Overlay::Permissions(_) => &[Scope::Permissions, Scope::Overlay],
            Overlay::Models(_) => &[Scope::Models, Scope::Saving, Scope::Overlay],
            Overlay::Restore(_) => &[Scope::Restore, Scope::Overlay],
            Overlay::Sessions(_) => &[Scope::Sessions, Scope::Overlay],
            Overlay::Settings(_) => &[Scope::Settings, Scope::Saving, Scope::Overlay],
            Overlay::Themes(_) => &[Scope::Saving, Scope::Overlay],
            Overlay::Skills(_) => &[Scope::Skills, Scope::Overlay],
            Overlay::Tree(_) => &[Scope::Tree, Scope::Overlay],
            Overlay::Arguments(_)
            | Overlay::Danger(_)
            | Overlay::Outline(_)
            | Overlay::Palette(_)
            | Overlay::Picker(_)
            | Overlay::Report(_)
            | Overlay::Trust(_) => &[Scope::Overlay],
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

    /// Turns the wheel over this place: over a preview it scrolls the preview, over a list it moves there.
    pub(crate) fn wheel(&mut self, at: Position, by: isize) -> Outcome {
        match self {
            Overlay::Compaction(it) => it.wheel(at, by),
            Overlay::Context(it) => it.wheel(at, by),
            Overlay::Diff(it) => return it.wheel(at, by),
            Overlay::Jobs(it) => return it.wheel(at, by),
            Overlay::Restore(it) => it.wheel(at, by),
            Overlay::Servers(it) => it.wheel(at, by),
            Overlay::Sessions(it) => return it.wheel(at, by),
            Overlay::Skills(it) => return it.wheel(at, by),
            Overlay::Themes(it) => return it.wheel(by),
            Overlay::Tree(it) => it.wheel(at, by),
            other => other.scroll(by),
        }
        Outcome::Stay
    }

    pub(crate) fn draw(&mut self, canvas: &mut Canvas, area: Rect, paint: Paint<'_>) {
        each!(self, it => it.draw(canvas, area, paint))
    }

    /// Updates the overlay with a notification.
    pub(crate) fn notify(&mut self, notification: Notification<'_>) {
        match self {
            Overlay::Agents(it) => it.notify(notification),
            Overlay::Always(it) => {
                if let Notification::PastOf { path, history } = notification {
                    it.learn(path, history);
                }
            }
            Overlay::Workflow(it) => it.notify(notification),
            Overlay::Connect(it) => it.notify(notification),
            Overlay::Compaction(it) => it.notify(notification),
            Overlay::Context(it) => it.notify(notification),
            Overlay::Diff(it) => it.notify(notification),
            Overlay::Jobs(it) => it.notify(notification),
            Overlay::Servers(it) => it.notify(notification),
            Overlay::Models(it) => it.notify(notification),
            Overlay::Log(it) => it.notify(notification),
            Overlay::Palette(it) => it.notify(notification),
            Overlay::Report(it) => it.notify(notification),
            Overlay::Permissions(it) => it.notify(notification),
            Overlay::Sessions(it) => it.notify(notification),
            Overlay::Skills(it) => it.notify(notification),
            Overlay::Tree(it) => it.notify(notification),
            Overlay::Approval(_)
            | Overlay::Arguments(_)
            | Overlay::Danger(_)
            | Overlay::Picker(_)
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
            Overlay::Danger(it) => Some(it.call_id()),
            Overlay::Form(it) => Some(it.call_id()),
            Overlay::Agents(_)
            | Overlay::Arguments(_)
            | Overlay::Compaction(_)
            | Overlay::Connect(_)
            | Overlay::Context(_)
            | Overlay::Diff(_)
            | Overlay::Skills(_)
            | Overlay::Help(_)
            | Overlay::Jobs(_)
            | Overlay::Servers(_)
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
            | Overlay::Trust(_)
            | Overlay::Workflow(_) => None,
        }
    }

    /// The agent whose call the overlay decides about or answers.
    fn asker(&self) -> Option<&Asker> {
        match self {
            Overlay::Always(it) => it.asker(),
            Overlay::Approval(it) => it.asker(),
            Overlay::Danger(it) => it.asker(),
            Overlay::Form(it) => it.asker(),
            _ => None,
        }
    }

    /// After this notification the overlay has no purpose any more.
    pub(crate) fn is_over(&self, notification: Notification<'_>) -> bool {
        match (notification, self.call_id()) {
            (Notification::CallEnded(ended), Some(call)) => self.asker().is_none() && call == ended,
            (Notification::AnswerTaken { call_id, agent }, Some(call)) => {
                self.asker() == Some(agent) && call == call_id
            }
            (Notification::TurnEnded, Some(_)) => self.asker().is_none(),
            (_, _) => false,
        }
    }

    /// A click of the left button. In a card that answers a call it does nothing.
    pub(crate) fn press(&mut self, at: Position) -> Press {
        match self {
            Overlay::Agents(it) => it.press(at),
            Overlay::Workflow(it) => it.press(at),
            Overlay::Compaction(it) => it.press(at),
            Overlay::Connect(it) => it.press(at),
            Overlay::Context(it) => it.press(at),
            Overlay::Permissions(it) => it.press(at),
            Overlay::Diff(diff) => Press::Did(Box::new(diff.press(at))),
            Overlay::Jobs(it) => it.press(at),
            Overlay::Servers(it) => it.press(at),
            Overlay::Models(it) => it.press(at),
            Overlay::Outline(it) => it.press(at),
            Overlay::Palette(it) => it.press(at),
            Overlay::Picker(it) => it.press(at),
            Overlay::Sessions(it) => it.press(at),
            Overlay::Settings(it) => it.press(at),
            Overlay::Skills(it) => it.press(at),
            Overlay::Themes(it) => it.press(at),
            Overlay::Tree(tree) => tree.press(at),
            Overlay::Restore(it) => it.press(at),
            Overlay::Always(it) => Press::Did(Box::new(it.press(at))),
            Overlay::Trust(it) => Press::Did(Box::new(it.press(at))),
            Overlay::Approval(_)
            | Overlay::Arguments(_)
            | Overlay::Danger(_)
            | Overlay::Form(_)
            | Overlay::Help(_)
            | Overlay::Log(_)
            | Overlay::Report(_) => Press::Nowhere,
        }
    }

    /// The request when the user leaves the overlay without choosing.
    pub(crate) fn leave(self) -> Option<Request> {
        match self {
            Overlay::Compaction(it) => it.leave(),
            Overlay::Arguments(it) => Some(it.leave()),
            Overlay::Form(form) => Some(form.leave()),
            Overlay::Connect(_) => Some(Request::Connect(Order::Cancel)),
            Overlay::Themes(it) => Some(it.leave()),
            Overlay::Restore(_) => Some(Request::Stay),
            Overlay::Trust(card) => card.leave(),
            Overlay::Diff(diff) => Some(Request::KeepReview(diff.into_review())),
            Overlay::Agents(_)
            | Overlay::Always(_)
            | Overlay::Approval(_)
            | Overlay::Context(_)
            | Overlay::Danger(_)
            | Overlay::Help(_)
            | Overlay::Jobs(_)
            | Overlay::Servers(_)
            | Overlay::Log(_)
            | Overlay::Models(_)
            | Overlay::Outline(_)
            | Overlay::Palette(_)
            | Overlay::Permissions(_)
            | Overlay::Picker(_)
            | Overlay::Report(_)
            | Overlay::Sessions(_)
            | Overlay::Settings(_)
            | Overlay::Skills(_)
            | Overlay::Tree(_)
            | Overlay::Workflow(_) => None,
        }
    }

    /// Enter has an effect that the user must not trigger by accident: the overlay has to be visible for a moment
    /// first.
    pub(crate) fn is_guarded(&self) -> bool {
        match self {
            Overlay::Always(_) | Overlay::Danger(_) | Overlay::Restore(_) | Overlay::Trust(_) => true,
            Overlay::Compaction(it) => it.is_guarded(),
            Overlay::Form(form) => form.is_guarded(),
            Overlay::Agents(_)
            | Overlay::Approval(_)
            | Overlay::Arguments(_)
            | Overlay::Skills(_)
            | Overlay::Connect(_)
            | Overlay::Context(_)
            | Overlay::Diff(_)
            | Overlay::Help(_)
            | Overlay::Jobs(_)
            | Overlay::Servers(_)
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
            | Overlay::Workflow(_)
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

    /// It belongs to the card of an approval, and stands where the card does: above the composer.
    pub(crate) fn is_of_card(&self) -> bool {
        matches!(self, Overlay::Always(_))
    }

    /// A form that appeared while the user was writing. The composer keeps the keys until the user turns to the form.
    pub(crate) fn is_aside(&self) -> bool {
        matches!(self, Overlay::Form(form) if !form.has_keys())
    }

    /// The call whose preview the overlay has shown to its end, and the agent that makes it.
    pub(crate) fn call_read_to_end(&self) -> Option<(&str, Option<&Asker>)> {
        if let Overlay::Approval(it) = self { Some((it.call_read_to_end()?, it.asker())) } else { None }
    }
}
