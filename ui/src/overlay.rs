//! Layers over the transcript: the top one has the keys. An overlay changes only itself. For anything else it returns a
//! [`Request`], which `update` carries out.
//!
//! A new overlay is a file here with a [`View`], a variant, and a line in the action table that opens it.

use std::path::Path;
use std::time::Duration;

use pixir_core::Input;
use pixir_core::agent::Asker;
use pixir_core::event::JobState;
use pixir_core::history::History;
use ratatui::layout::{Position, Rect};

use crate::input::action::{Action, LayerAction, Opens, Scope, SessionKind};
use crate::input::keymap::Keymap;
use crate::render::highlight::Highlighter;
use crate::terminal::canvas::Canvas;
use crate::terminal::key::KeyEvent;
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
pub(crate) mod files; // the files that each Turn changed and read
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
mod effect; // work outside of the State: Session, files, terminal
mod list; // a list with a cursor
mod load; // what a layer reads on another thread
mod notification; // what an overlay is told
mod page; // text that scrolls
mod panel; // the frame and the place of a dialog
mod panes; // a list beside its preview
mod request; // what an overlay wants
pub(crate) mod sessions; // the stored Sessions
pub(crate) mod tree; // turns and branches
pub(crate) mod trust; // what the workspace brings along
pub(crate) mod workflow; // the run of a workflow

pub(crate) use effect::{Effect, OnHarness};
pub(crate) use load::{Layer, Load, Loaded, Source};
pub(crate) use notification::Notification;
pub(crate) use page::{Laid, Page};
pub(crate) use panel::{dialog, docked, panel};
pub(crate) use request::Request;

use agents::AgentsView;
use always::AlwaysView;
use approval::ApprovalView;
use arguments::ArgumentsView;
use compaction::CompactionView;
use connect::ConnectView;
use context::ContextView;
use danger::DangerView;
use diff::DiffView;
use files::FilesView;
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
use servers::ServersView;
use sessions::SessionList;
use settings::SettingsView;
use skills::SkillsView;
use themes::ThemesView;
use tree::TreeView;
use trust::TrustView;
use workflow::WorkflowView;

/// Makes the enum, and all that is the same for each layer, from one list.
macro_rules! overlays {
    ($($name:ident($view:ty),)*) => {
        /// A layer over the transcript.
        #[derive(Debug)]
        pub(crate) enum Overlay {
            $($name(Box<$view>),)*
        }

        impl Overlay {
            pub(crate) fn view(&self) -> &dyn View {
                match self {
                    $(Overlay::$name(it) => &**it,)*
                }
            }

            pub(crate) fn view_mut(&mut self) -> &mut dyn View {
                match self {
                    $(Overlay::$name(it) => &mut **it,)*
                }
            }

            /// See [`View::leave`].
            pub(crate) fn leave(self) -> Option<Request> {
                match self {
                    $(Overlay::$name(it) => it.leave(),)*
                }
            }
        }

        $(
            impl From<$view> for Overlay {
                fn from(view: $view) -> Overlay {
                    Overlay::$name(Box::new(view))
                }
            }

            impl Layer for $view {
                fn of(overlay: &mut Overlay) -> Option<&mut $view> {
                    if let Overlay::$name(it) = overlay { Some(it) } else { None }
                }
            }
        )*
    };
}

overlays! {
    Agents(AgentsView),
    Always(AlwaysView),
    Approval(ApprovalView),
    Arguments(ArgumentsView),
    Compaction(CompactionView),
    Connect(ConnectView),
    Context(ContextView),
    Danger(DangerView),
    Diff(DiffView),
    Files(FilesView),
    Form(FormView),
    Help(HelpView),
    Jobs(JobsView),
    Servers(ServersView),
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
    Tree(TreeView),
    Trust(TrustView),
    Workflow(WorkflowView),
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

    fn does(effect: impl Into<Effect>) -> Outcome {
        Outcome::Ask(Request::Do(vec![effect.into()]))
    }

    fn load(load: Option<Load>) -> Outcome {
        load.map_or(Outcome::Stay, Outcome::does)
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
    /// The user's home folder, which paths show as `~`.
    pub(crate) home: Option<&'a Path>,
}

impl Paint<'_> {
    /// `Enter go · Esc close`: the bound keys of these actions. Actions without a key are left out.
    pub(crate) fn hints<A: Copy + Into<Action>>(&self, actions: &[(A, &str)]) -> String {
        self.keys.hints(actions)
    }

    /// The same for those that can do something now.
    pub(crate) fn hints_of(&self, actions: &[(bool, LayerAction, &str)]) -> String {
        let here: Vec<(LayerAction, &str)> =
            actions.iter().filter(|it| it.0).map(|(_, action, word)| (*action, *word)).collect();
        self.keys.hints(&here)
    }
}

/// What every overlay does. The defaults are those of an overlay that takes no text, belongs to no call and asks nothing.
pub(crate) trait View {
    /// Its name for screen readers and scripts.
    fn title(&self) -> &'static str;

    /// The scopes of its keys, the innermost first.
    fn scopes(&self) -> &'static [Scope] {
        &[Scope::Overlay]
    }

    /// Carries out an action of one of its scopes. An action that means nothing here changes nothing.
    fn act(&mut self, action: LayerAction) -> Outcome;

    /// The same for an action of the interface whose scope the layer has: those that answer an approval.
    fn pass(&mut self, _action: Action) -> Outcome {
        Outcome::Stay
    }

    /// Scrolls by rows, or moves the cursor of a list.
    fn scroll(&mut self, by: isize);

    fn draw(&mut self, canvas: &mut Canvas, area: Rect, paint: Paint<'_>);

    /// Turns the wheel over this place: over a preview it scrolls the preview, over a list it moves there.
    fn wheel(&mut self, _at: Position, by: isize) -> Outcome {
        self.scroll(by);
        Outcome::Stay
    }

    /// A click of the left button. In a card that answers a call it does nothing.
    fn press(&mut self, _at: Position) -> Press {
        Press::Nowhere
    }

    /// What it wants loaded once it is open.
    fn opened(&mut self) -> Vec<Effect> {
        Vec::new()
    }

    /// What it shows grows while it is on top, so it reads that again once a second: see [`View::follow`].
    fn follows(&self) -> bool {
        false
    }

    fn follow(&mut self) -> Vec<Effect> {
        Vec::new()
    }

    /// Updates the overlay with a notification.
    fn notify(&mut self, _notification: Notification<'_>) {}

    /// A field takes what the user types, so letters trigger no action.
    fn is_typing(&self) -> bool {
        false
    }

    /// Types into the field that takes text, if there is one. `None` if the key means nothing to the field: then it can
    /// be an action.
    fn key(&mut self, _key: KeyEvent) -> Option<Outcome> {
        None
    }

    /// The key types a character, and yet no field here takes it: Space on an answer that can be marked.
    fn leaves_to_actions(&self, _key: KeyEvent) -> bool {
        false
    }

    /// Takes pasted text, if it has a field for it.
    fn paste(&mut self, _text: &str) {}

    /// A key without a meaning was pressed: it answers no question.
    fn forget_question(&mut self) {}

    /// Its rows have not arrived yet, so Enter cannot choose one of them.
    fn is_loading(&self) -> bool {
        false
    }

    /// Enter has an effect that the user must not trigger by accident: the overlay has to be visible for a moment
    /// first.
    fn is_guarded(&self) -> bool {
        false
    }

    /// The overlay belongs to this call, and closes with it.
    fn call_id(&self) -> Option<&str> {
        None
    }

    /// The agent whose call the overlay decides about or answers; `None` if the Session itself asks.
    fn asker(&self) -> Option<&Asker> {
        None
    }

    /// The request when the user leaves the overlay without choosing.
    fn leave(self) -> Option<Request>
    where
        Self: Sized,
    {
        None
    }
}

/// What a layer is made of that opens without anything else.
pub(crate) struct Opening<'a> {
    pub(crate) history: &'a History,
    pub(crate) session: SessionKind,
    pub(crate) jobs: &'a [JobState],
    /// The time since 1970.
    pub(crate) wall: Duration,
    /// What follows the slash command.
    pub(crate) args: &'a str,
}

impl Overlay {
    pub(crate) fn opened_by(opens: Opens, from: &Opening<'_>) -> Overlay {
        match opens {
            Opens::Context => ContextView::new().into(),
            Opens::Files => FilesView::new(from.history, from.session).into(),
            Opens::Jobs => JobsView::new(from.jobs, from.wall).into(),
            Opens::Log => LogView::new(from.args).into(),
            Opens::Permissions => PermissionsView::new(from.history).into(),
            Opens::Servers => ServersView::new().into(),
        }
    }

    /// It may open again after what it asked for was refused: what it shows is still true then.
    pub(crate) fn can_reopen(&self) -> bool {
        self.view().call_id().is_none() && !matches!(self, Overlay::Restore(_) | Overlay::Trust(_))
    }

    /// After this notification the overlay has no purpose any more.
    pub(crate) fn is_over(&self, notification: Notification<'_>) -> bool {
        let asker = self.view().asker();
        match (notification, self.view().call_id()) {
            (Notification::CallEnded(ended), Some(call)) => asker.is_none() && call == ended,
            (Notification::AnswerTaken { call_id, agent }, Some(call)) => asker == Some(agent) && call == call_id,
            (Notification::TurnEnded, Some(_)) => asker.is_none(),
            (_, _) => false,
        }
    }

    pub(crate) fn diff(&self) -> Option<&DiffView> {
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
