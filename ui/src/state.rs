//! Everything on the screen. `update` and `view` work on it; `app` fills in what it connects and loads.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use pixir_core::event::{Form, Status};
use pixir_core::history::History;
use pixir_core::provider::Providers;

use crate::composer::Composer;
use crate::input::action::{Scope, SessionKind, TurnState};
use crate::input::keymap::Keymap;
use crate::input::keys::Key;
use crate::overlay::Overlay;
use crate::overlay::form::FormView;
use crate::render::context::Medium;
use crate::render::highlight::Highlighter;
use crate::render::text::Row;
use crate::theme::{Depth, Theme};
use crate::transcript::Transcript;
use crate::transcript::replay::Replay;
use crate::transcript::viewport::{self, CellRow, Viewport};

mod approval; // a call that waits for the user's decision
mod layout; // areas of the last frame, and the cost of drawing
mod look; // theme, folds, motion
mod pending; // unfinished interactions of the user
mod printing; // the terminal's history in inline mode
mod reading; // the chosen entry, search, selection, copy labels
mod session; // the Session's id, Provider, queue and activity
pub(crate) mod side; // the side panel
pub(crate) mod uses; // how often each action was chosen

pub(crate) use crate::overlay::{Effect, OnHarness};
pub(crate) use approval::PendingApproval;
pub(crate) use layout::{FrameStats, Layout, MouseState};
pub(crate) use look::Look;
pub(crate) use pending::{Guard, OverlayRequest, Pending, PendingConfirm, SlashCommand};
pub(crate) use printing::{Announced, Printing};
pub(crate) use reading::Reading;
pub(crate) use session::{Activity, Connection, Queue, Retry, RetryLimit, SessionFacts};
use side::SidePanel;
use uses::Uses;

use crate::terminal::MouseOwner;

/// The interval between two frames of an animation, and where only a clock moves.
const TICK: Duration = Duration::from_millis(120);
const SLOW_TICK: Duration = Duration::from_secs(1);

/// The receiver of keys while no overlay has them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Focus {
    #[default]
    Composer,
    Approval,
    Transcript,
    Side,
}

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) now: Now,
    pub(crate) session: SessionFacts,
    pub(crate) activity: Activity,
    pub(crate) history: History,
    /// The Session is a replay: it is shown entry by entry, and gets no Input.
    pub(crate) replay: Option<Replay>,
    pub(crate) transcript: Transcript,
    pub(crate) viewport: Viewport,
    pub(crate) reading: Reading,
    pub(crate) composer: Composer,
    /// Bottom layer first; the last one has the keys.
    pub(crate) overlays: Vec<Overlay>,
    /// Oldest first; the first one is shown.
    pub(crate) approvals: Vec<PendingApproval>,
    /// Questions that wait until what is asked now is answered, oldest first.
    pub(crate) forms: VecDeque<Form>,
    pub(crate) focus: Focus,
    pub(crate) side: SidePanel,
    pub(crate) keys: Keys,
    pub(crate) guard: Guard,
    pub(crate) mouse: MouseState,
    pub(crate) pending: Pending,
    pub(crate) layout: Layout,
    pub(crate) look: Look,
    pub(crate) terminal: TerminalState,
    pub(crate) printing: Printing,
    pub(crate) stats: FrameStats,
    pub(crate) uses: Uses,
    /// A message in the status line until the next key, and when it appeared.
    pub(crate) toast: Option<(String, Instant)>,
    /// Why what the top overlay asked for was not done, until the next key.
    pub(crate) note: Option<String>,
}

/// The key map, and the keys of a chord whose rest has not been pressed yet.
#[derive(Debug)]
pub(crate) struct Keys {
    pub(crate) map: Keymap,
    /// Keys that the user has bound, by the name of their action.
    pub(crate) own: BTreeMap<String, Vec<String>>,
    pub(crate) chord: Vec<Key>,
}

/// The state shared with the terminal.
#[derive(Debug)]
pub(crate) struct TerminalState {
    /// The terminal's window has the focus, as far as the terminal reports it.
    pub(crate) has_focus: bool,
    pub(crate) mouse_owner: MouseOwner,
    /// A notification is sent where the window has no focus.
    pub(crate) notifies: bool,
    /// The user asked for a frame that is painted from scratch.
    pub(crate) repaint: bool,
    /// The user asked to go back to the shell.
    pub(crate) suspend: bool,
}

/// The moment at which an event is handled or a frame is drawn. `update` and `view` read no other clock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Now {
    pub(crate) at: Instant,
    /// Since 1970.
    pub(crate) wall: Duration,
}

impl Now {
    pub(crate) fn read() -> Now {
        Now { at: Instant::now(), wall: SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default() }
    }

    pub(crate) fn since(self, then: Instant) -> Duration {
        self.at.saturating_duration_since(then)
    }
}

/// The render context of the transcript and the key of its layout. A macro and not a method, because the caller borrows
/// the transcript mutably meanwhile.
macro_rules! render_context {
    ($state:expr) => {{
        let columns = $crate::state::text_columns($state.layout.transcript);
        let medium = $state.medium();
        let context = $crate::render::context::RenderContext {
            theme: &$state.look.theme,
            highlighter: &$state.look.highlighter,
            columns,
            measure: columns.min($crate::render::context::MEASURE),
            medium,
            grows: false,
            details: $state.look.details,
            thinking: $state.look.thinking,
            more: &$state.look.more,
        };
        // The media share no rows.
        let generation = $state.look.generation * 4 + medium as u64;
        (context, $crate::render::context::LayoutKey { columns, generation })
    }};
}
pub(crate) use render_context;

impl State {
    pub(crate) fn new(
        workspace: PathBuf,
        theme: Theme,
        depth: Depth,
        highlighter: Highlighter,
        keymap: Keymap,
    ) -> State {
        let now = Now::read();
        State {
            now,
            session: SessionFacts::new(workspace),
            activity: Activity::new(now.at),
            history: History::default(),
            replay: None,
            transcript: Transcript::default(),
            viewport: Viewport::default(),
            reading: Reading::default(),
            composer: Composer::default(),
            overlays: Vec::new(),
            approvals: Vec::new(),
            forms: VecDeque::new(),
            focus: Focus::Composer,
            side: SidePanel::default(),
            look: Look::new(theme, depth, highlighter, &keymap),
            keys: Keys { map: keymap, own: BTreeMap::new(), chord: Vec::new() },
            guard: Guard::new(now.at),
            mouse: MouseState::default(),
            pending: Pending::default(),
            layout: Layout::default(),
            terminal: TerminalState {
                has_focus: true,
                mouse_owner: MouseOwner::Pixir,
                notifies: true,
                repaint: false,
                suspend: false,
            },
            printing: Printing::default(),
            stats: FrameStats::default(),
            uses: Uses::default(),
            toast: None,
            note: None,
        }
    }

    /// The first screen is shown: the conversation has not begun.
    pub(crate) fn shows_welcome(&self) -> bool {
        self.replay.is_none() && self.transcript.has_only_notices()
    }

    /// No model is connected, and one can be connected here.
    pub(crate) fn offers_connection(&self) -> bool {
        self.session.can_connect
            && match &self.session.connection {
                Connection::Starting { .. } | Connection::Ready { demo: false, .. } => false,
                Connection::Ready { demo: true, why, .. } => why != Providers::GIVEN,
                Connection::Failed(_) => true,
            }
    }

    /// The model that answers, for the header. The demo is no model.
    pub(crate) fn model_name(&self) -> String {
        let settings = &self.history.settings;
        match settings.provider.as_str() {
            "demo" if self.session.is_demo => "demo".to_owned(),
            "demo" => "no model".to_owned(),
            provider => format!("{provider}/{}", settings.model),
        }
    }

    /// Shows a message in the status line until the next key.
    pub(crate) fn say(&mut self, text: impl Into<String>) {
        self.toast = Some((text.into(), self.now.at));
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.session.status != Status::Idle
    }

    pub(crate) fn turn_state(&self) -> TurnState {
        if self.is_busy() { TurnState::Running } else { TurnState::Idle }
    }

    pub(crate) fn session_kind(&self) -> SessionKind {
        if self.replay.is_some() { SessionKind::Replay } else { SessionKind::Live }
    }

    /// A part of the screen changes without an event: the spinner, or a selection that scrolls at an edge.
    pub(crate) fn is_animated(&self) -> bool {
        let is_working = self.session.status.is_busy();
        (is_working || self.has_running_agents()) && !self.look.screen_reader || self.mouse.edge != 0
    }

    /// Agents run, and their clocks are on the screen.
    fn has_running_agents(&self) -> bool {
        let shows_steps = matches!(self.overlays.last(), Some(Overlay::Workflow(it)) if it.has_running());
        self.session.agents.running() > 0 || shows_steps
    }

    /// How many decisions and answers the user is asked for, and the questions among them that wait.
    pub(crate) fn asked(&self) -> usize {
        let open = self.overlays.iter().filter(|it| it.is_form()).count();
        self.approvals.len() + self.forms.len() + open
    }

    /// What the status line and the title of the window show: that pixir waits for the user. An agent may ask
    /// while its parent works.
    pub(crate) fn status(&self) -> Status {
        if self.asked() > 0 { Status::Asking } else { self.session.status }
    }

    /// The approval on the screen: the first, unless a question is answered before.
    pub(crate) fn shows_approval(&self) -> bool {
        !self.approvals.is_empty() && (self.look.screen_reader || !self.overlays.iter().any(Overlay::is_form))
    }

    /// The end of a file is on the screen, and grows there.
    pub(crate) fn follows_file(&self) -> bool {
        self.overlays.last().is_some_and(|overlay| overlay.view().follows())
    }

    /// The interval at which it changes.
    pub(crate) fn tick(&self) -> Duration {
        // The user does not see a window without focus, and a retry counts down in whole seconds.
        let is_smooth = self.look.animate
            && self.session.status.is_busy()
            && self.terminal.has_focus
            && self.activity.retry.is_none();
        if is_smooth || self.mouse.edge != 0 { TICK } else { SLOW_TICK }
    }

    /// The screen shows something that does not fit between the lines of the terminal's history.
    pub(crate) fn wants_whole_screen(&self) -> bool {
        !self.printing.inline
            || self.session.agents.is_inside()
            || self.overlays.iter().any(|overlay| !overlay.is_form())
            || matches!(self.focus, Focus::Transcript | Focus::Side)
            || self.reading.search.is_some()
            || self.reading.labels.is_some()
            || self.reading.selection.is_some()
            || self.viewport.anchor().is_some()
            || self.replay.is_some()
            || !self.keys.chord.is_empty()
            || self.layout.hud
    }

    /// Where the rows of the transcript are shown now.
    pub(crate) fn medium(&self) -> Medium {
        match (self.look.screen_reader, self.wants_whole_screen(), self.layout.side) {
            (true, ..) => Medium::Reader,
            (false, false, _) => Medium::History,
            (false, true, Some(_)) => Medium::BesidePanel,
            (false, true, None) => Medium::Screen,
        }
    }

    /// Keeps the viewport and the selection on the same text after the tail of a streaming answer was split: the first
    /// part of it has become a cell of its own.
    pub(crate) fn follow_cut(&mut self) {
        let Some(cut) = self.transcript.was_cut.take() else { return };
        let (context, key) = render_context!(self);
        let selected = self.reading.selection.iter_mut().flat_map(|it| it.positions_mut());
        for position in self.viewport.anchor_mut().into_iter().chain(selected).filter(|it| it.cell == cut) {
            let row = isize::try_from(position.row).unwrap_or(0);
            *position = viewport::moved(CellRow { row: 0, ..*position }, row, &mut self.transcript, &context, key);
        }
    }

    /// The form that is read out as lines, if it is on top.
    pub(crate) fn read_out_form(&self) -> Option<&FormView> {
        self.overlays.last().and_then(Overlay::form).filter(|_| self.look.screen_reader)
    }

    /// Notes since when the top overlay is on the screen. Called with each frame.
    pub(crate) fn overlays_drawn(&mut self) {
        match (self.overlays.len(), self.guard.top_overlay_since) {
            (0, _) => self.guard.top_overlay_since = None,
            (now, Some((then, _))) if now == then => {}
            (now, _) => self.guard.top_overlay_since = Some((now, self.now.at)),
        }
    }

    /// Scrolls the viewport by rows; up is negative.
    pub(crate) fn scroll(&mut self, by: isize) {
        self.follow_cut();
        let (context, key) = render_context!(self);
        self.viewport.scroll(by, &mut self.transcript, &context, key);
    }

    /// The rows of a cell in the current layout.
    pub(crate) fn rows_of(&mut self, cell: usize) -> Rc<Vec<Row>> {
        let (context, key) = render_context!(self);
        self.transcript.rows(cell, &context, key)
    }

    /// Opens an overlay on top, and asks for the data that it shows.
    pub(crate) fn open(&mut self, overlay: impl Into<Overlay>) -> Vec<Effect> {
        let mut overlay = overlay.into();
        let effects = overlay.view_mut().opened();
        self.overlays.push(overlay);
        // The new overlay has not been drawn yet, even where it takes the place of one that has just closed.
        self.guard.top_overlay_since = None;
        effects
    }

    /// Removes approvals that need no decision any more, and restores the draft that a feedback had replaced.
    pub(crate) fn drop_approvals(&mut self, is_over: impl Fn(&PendingApproval) -> bool) {
        let (over, left): (Vec<_>, Vec<_>) = std::mem::take(&mut self.approvals).into_iter().partition(is_over);
        self.approvals = left;
        if let Some(draft) = over.into_iter().find_map(|approval| approval.draft_before_feedback) {
            let feedback = self.composer.text();
            self.composer.remember(&feedback);
            self.composer.set(&draft);
        }
        self.leave_approval();
    }

    /// Takes the focus from the approval, so that a letter meant for this one cannot decide the next one.
    pub(crate) fn leave_approval(&mut self) {
        if self.focus == Focus::Approval {
            self.focus = Focus::Composer;
        }
    }

    /// The scopes that apply now, the innermost first.
    pub(crate) fn scopes(&self) -> Vec<Scope> {
        if let Some(overlay) = self.overlays.last().filter(|overlay| !overlay.is_aside()) {
            return overlay.view().scopes().to_vec();
        }
        let inner = match self.focus {
            Focus::Composer if self.replay.is_some() => Scope::Replay,
            Focus::Composer => Scope::Composer,
            Focus::Approval => Scope::ApprovalFocus,
            Focus::Transcript => Scope::Transcript,
            Focus::Side => Scope::Side,
        };
        // While the user writes feedback, the keys that decide are letters again.
        let is_open = self.approvals.first().is_some_and(|approval| !approval.is_in_feedback());
        let approval = is_open.then_some(Scope::Approval);
        match inner {
            Scope::ApprovalFocus => [Some(inner), approval, Some(Scope::Anywhere)],
            _ => [approval, Some(inner), Some(Scope::Anywhere)],
        }
        .into_iter()
        .flatten()
        .collect()
    }

    /// Forgets the Session on the screen, to show another.
    pub(crate) fn clear_session(&mut self) {
        // In inline mode, rows that are not printed yet would otherwise be missing from the terminal's history.
        if let Some(printed) = self.printing.printed.filter(|at| self.printing.inline && *at < self.transcript.len()) {
            for cell in printed..self.transcript.len() {
                let rows = self.rows_of(cell);
                self.printing.left_over.extend(rows.iter().cloned());
            }
            self.printing.left_over.push(Row::default());
        }
        self.printing.forget_session();
        self.session.clear();
        self.replay = None;
        self.history = History::default();
        self.transcript = Transcript::default();
        self.viewport.reset();
        self.overlays.clear();
        self.focus = Focus::Composer;
        self.reading.clear();
        self.side.reset();
        self.pending.head_move = None;
        self.pending.mode = None;
        self.drop_approvals(|_| true);
        self.forms.clear();
        self.activity.busy_since = None;
    }
}

/// Columns of the transcript's text: one column is free on the left, two are for the scrollbar on the right.
pub(crate) fn text_columns(area: ratatui::layout::Rect) -> usize {
    usize::from(area.width.saturating_sub(3)).max(1)
}
