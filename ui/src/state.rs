//! Everything on the screen. Only `update` changes it.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use pixir_core::event::{Approval, JobState, SessionId, Status};
use pixir_core::history::History;
use pixir_core::{Error, Input};
use ratatui::layout::Rect;

use crate::composer::{Composer, PastSearch, mention};
use crate::input::action::Scope;
use crate::input::keymap::{Keymap, More};
use crate::input::keys::Key;
use crate::overlay::{Laid, Overlay};
use crate::render::highlight::Highlighter;
use crate::render::text::Row;
use crate::terminal::Counts;
use crate::theme::{Depth, Theme};
use crate::transcript::reading::find::Search;
use crate::transcript::reading::labels::Labels;
use crate::transcript::reading::select::Selection;
use crate::transcript::replay::Replay;
use crate::transcript::viewport::{self, Place, Viewport};
use crate::transcript::{Fold, Transcript};
use crate::update::travel::Going;
use crate::view::side::Side;

/// How often what is going on is drawn anew; and where nothing is to move but a clock.
const TICK: Duration = Duration::from_millis(120);
const SLOW_TICK: Duration = Duration::from_secs(1);

/// How long a question must have been on the screen before a key can answer it.
pub(crate) const ARMING: Duration = Duration::from_millis(250);

/// What is to be done outside: by the Session, or beside the screen.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Effect {
    Send(Input),
    /// Send this with the images that its mentions name.
    Deliver {
        input: Input,
        mentions: Vec<String>,
    },
    /// Put an image file into the draft; when it is none, what was pasted.
    AttachFile {
        path: String,
        pasted: String,
    },
    /// Put the image that is in the clipboard into the draft.
    AttachClipboard,
    /// Close this Session and start a new one.
    OpenNew,
    /// Close this Session and open that one.
    Open(SessionId),
    LoadDiffs,
    /// A command may have gone to another branch.
    LookAtBranch,
    LoadSessions {
        forks_of: Option<String>,
    },
    LoadModels,
    LoadSkills,
    /// Look for this in the whole conversation.
    Find {
        number: u64,
        text: String,
    },
    /// Put this where it can be pasted.
    Copy(String),
    /// Look for files that fit these letters.
    FindFiles(String),
    ListThemes,
    /// Look like this; and say so, or why not.
    LoadTheme {
        name: String,
        is_told: bool,
    },
    /// Let the person write the draft in their own editor.
    Edit,
    Quit,
}

impl Effect {
    /// Sends a message, with the images that it mentions.
    pub(crate) fn message(input: Input) -> Effect {
        let mentions = match &input {
            Input::Prompt(it) | Input::Steer(it) | Input::FollowUp(it) => mention::images(&it.text),
            _ => Vec::new(),
        };
        if mentions.is_empty() { Effect::Send(input) } else { Effect::Deliver { input, mentions } }
    }
}

/// Who has the keys, when no layer lies over everything.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Focus {
    #[default]
    Composer,
    Question,
    Transcript,
    Side,
}

/// Who answers, as far as that is known.
#[derive(Debug, Clone)]
pub(crate) enum Connection {
    Starting,
    Ready { demo: bool, why: String, server: String },
    Failed(Error),
}

/// A question that waits for the person.
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) approval: Approval,
    /// When it was first painted; keys before that answer nothing.
    pub(crate) painted: Option<Instant>,
    /// All of it was in sight; before that it cannot be allowed.
    pub(crate) read: bool,
    /// The composer holds what the model should do instead; this is the draft that made room for it.
    pub(crate) feedback: Option<String>,
    /// What would be done, as lines.
    pub(crate) laid: Laid,
}

/// What a second press of the same key would do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Primed {
    #[default]
    Nothing,
    Quit,
    Tree,
}

/// Messages that wait to be delivered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Queue {
    pub(crate) steer: Vec<String>,
    pub(crate) follow_up: Vec<String>,
}

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) now: Now,
    pub(crate) workspace: PathBuf,
    pub(crate) branch: Option<String>,
    pub(crate) session: Option<SessionId>,
    pub(crate) connection: Connection,
    pub(crate) history: History,
    pub(crate) transcript: Transcript,
    pub(crate) viewport: Viewport,
    pub(crate) composer: Composer,
    pub(crate) overlays: Vec<Box<dyn Overlay>>,
    pub(crate) focus: Focus,
    pub(crate) keymap: Keymap,
    /// What shows more, as it stands behind what is cut.
    pub(crate) more: More,
    /// Keys of a chord whose rest has not come.
    pub(crate) pending: Vec<Key>,
    /// The entry of the transcript that is chosen.
    pub(crate) cell: Option<usize>,
    pub(crate) search: Option<Search>,
    /// Searches that were begun.
    pub(crate) searches: u64,
    pub(crate) past_search: Option<PastSearch>,
    pub(crate) selection: Option<Selection>,
    pub(crate) labels: Option<Labels>,
    pub(crate) press: Press,
    /// Where the pill stands that leads to the end, and where the question.
    pub(crate) pill: Option<Rect>,
    pub(crate) question_area: Option<Rect>,
    pub(crate) side: Side,
    pub(crate) side_area: Option<Rect>,
    pub(crate) is_wide: bool,
    /// Clicks and the wheel are ours.
    pub(crate) mouse: bool,
    pub(crate) hud: bool,
    /// The window of the terminal has the focus, as far as it says.
    pub(crate) has_focus: bool,
    pub(crate) gauge: Gauge,
    /// How many layers there are, and since when the top one is in sight.
    pub(crate) layer_since: Option<(usize, Instant)>,
    /// A Session is open, or being opened: what is sent will arrive.
    pub(crate) can_send: bool,
    pub(crate) questions: Vec<Question>,
    /// Since when nothing was pressed that could have been meant for something else than a question.
    pub(crate) quiet_since: Instant,
    pub(crate) queue: Queue,
    /// What runs in the background, and what ran.
    pub(crate) jobs: Vec<JobState>,
    pub(crate) status: Status,
    /// Turns that have ended while it was open.
    pub(crate) ended: u64,
    /// The call that the model is writing, and bytes of it.
    pub(crate) writing: Option<(String, u64)>,
    /// When a request that failed is tried again.
    pub(crate) tries_again: Option<Instant>,
    /// When the model was last heard.
    pub(crate) heard: Instant,
    /// When the running Turn began.
    pub(crate) busy_since: Option<Instant>,
    /// A word to the person, and since when.
    pub(crate) toast: Option<(String, Instant)>,
    pub(crate) primed: Primed,
    pub(crate) theme: Theme,
    /// As it was asked for: `auto` may be several.
    pub(crate) theme_name: String,
    pub(crate) is_light: bool,
    pub(crate) depth: Depth,
    pub(crate) details: Fold,
    pub(crate) thinking: Fold,
    /// Grows whenever every cell has to be laid out again.
    pub(crate) generation: u64,
    pub(crate) highlighter: Highlighter,
    pub(crate) arming: Duration,
    pub(crate) frame: u64,
    pub(crate) transcript_area: Rect,
    /// Tokens of the model's window.
    pub(crate) window: Option<u64>,
    pub(crate) repaint: bool,
    /// The shell is wanted for a while.
    pub(crate) suspend: bool,
    /// Where the person wants to go in the conversation, until it is known what becomes of the files.
    pub(crate) going: Option<Going>,
    /// What `/compact` was told to keep in mind, until it is applied.
    pub(crate) instructions: Option<String>,
    /// The Session is told again, and nothing is asked of it.
    pub(crate) replay: Option<Replay>,
    /// Images that are being read, for the draft or for a message that is on its way.
    pub(crate) reading_images: usize,
    /// The conversation is printed into the terminal's own history.
    pub(crate) inline: bool,
    /// Cells that were printed there; none before anything was, and when it begins anew.
    pub(crate) told: Option<usize>,
    /// What was seen of a conversation that was left, and not printed yet.
    pub(crate) left_over: Vec<Row>,
    /// What does not stand still may.
    pub(crate) moves: bool,
    /// The screen is read out.
    pub(crate) is_read_aloud: bool,
    pub(crate) announced: Option<Announced>,
}

/// Whoever listens has heard that a Turn goes on: in how many rows, and whether these have moved since.
#[derive(Debug)]
pub(crate) struct Announced {
    pub(crate) turn: Instant,
    pub(crate) rows: u16,
    pub(crate) has_moved: bool,
}

/// The moment at which something is heard or drawn: what comes of it depends on nothing else.
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

/// What rows of the transcript look like now, and what their layout depends on. A macro, so that the rest of the State stays free.
macro_rules! look_of {
    ($state:expr) => {{
        let columns = $crate::state::text_columns($state.transcript_area);
        let look = $crate::render::markdown::Look {
            theme: &$state.theme,
            highlighter: &$state.highlighter,
            columns,
            colours: true,
            details: $state.details,
            thinking: $state.thinking,
            more: &$state.more,
        };
        (look, $crate::transcript::LayoutKey { columns, generation: $state.generation })
    }};
}
pub(crate) use look_of;

/// The button of the mouse that is held, and clicks before it.
#[derive(Debug, Default)]
pub(crate) struct Press {
    pub(crate) last: Option<(Instant, u16, u16)>,
    pub(crate) clicks: u8,
    /// The scrollbar is dragged.
    pub(crate) on_bar: bool,
    /// Rows that are scrolled while the button is held at an edge.
    pub(crate) edge: isize,
    /// The end was followed before something was selected, and is again when the button is let go.
    pub(crate) followed: bool,
}

/// What drawing costs, for whoever looks.
#[derive(Debug, Default)]
pub(crate) struct Gauge {
    /// The last frames, microseconds from the beginning to the last byte.
    pub(crate) frames: VecDeque<u32>,
    /// From a key to the last byte of the frame that shows it.
    pub(crate) echoes: VecDeque<u32>,
    pub(crate) counts: Counts,
}

impl Gauge {
    const KEPT: usize = 240;

    pub(crate) fn note(of: &mut VecDeque<u32>, took: Duration) {
        if of.len() == Self::KEPT {
            of.pop_front();
        }
        of.push_back(u32::try_from(took.as_micros()).unwrap_or(u32::MAX));
    }
}

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
            workspace,
            branch: None,
            session: None,
            connection: Connection::Starting,
            history: History::default(),
            transcript: Transcript::default(),
            viewport: Viewport::default(),
            composer: Composer::default(),
            overlays: Vec::new(),
            focus: Focus::Composer,
            more: More::new(&keymap, false),
            keymap,
            pending: Vec::new(),
            cell: None,
            search: None,
            searches: 0,
            past_search: None,
            selection: None,
            labels: None,
            press: Press::default(),
            pill: None,
            question_area: None,
            side: Side::default(),
            side_area: None,
            is_wide: false,
            mouse: true,
            hud: false,
            has_focus: true,
            gauge: Gauge::default(),
            layer_since: None,
            can_send: true,
            questions: Vec::new(),
            quiet_since: now.at,
            queue: Queue::default(),
            jobs: Vec::new(),
            writing: None,
            status: Status::Idle,
            ended: 0,
            tries_again: None,
            heard: now.at,
            busy_since: None,
            toast: None,
            primed: Primed::Nothing,
            theme_name: theme.name.clone(),
            is_light: false,
            theme,
            depth,
            details: Fold::Some,
            thinking: Fold::Line,
            generation: 0,
            highlighter,
            arming: ARMING,
            frame: 0,
            transcript_area: Rect::default(),
            window: None,
            repaint: false,
            suspend: false,
            going: None,
            instructions: None,
            replay: None,
            reading_images: 0,
            inline: false,
            told: None,
            left_over: Vec::new(),
            moves: true,
            is_read_aloud: false,
            announced: None,
        }
    }

    /// Says something in the status line, until the next key.
    pub(crate) fn say(&mut self, text: impl Into<String>) {
        self.toast = Some((text.into(), self.now.at));
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.status != Status::Idle
    }

    /// Something on the screen moves by itself.
    pub(crate) fn is_animated(&self) -> bool {
        let is_busy = matches!(self.status, Status::Thinking | Status::Working);
        is_busy && !self.is_read_aloud || self.press.edge != 0
    }

    /// How often it moves.
    pub(crate) fn tick(&self) -> Duration {
        // Nobody looks at what has no focus, and a wait is told in seconds.
        let moves = self.moves && self.has_focus && self.tries_again.is_none();
        if moves || self.press.edge != 0 { TICK } else { SLOW_TICK }
    }

    /// The person looks at something that has no place between the lines of a terminal.
    pub(crate) fn wants_whole_screen(&self) -> bool {
        !self.inline
            || !self.overlays.is_empty()
            || matches!(self.focus, Focus::Transcript | Focus::Side)
            || self.search.is_some()
            || self.labels.is_some()
            || self.selection.is_some()
            || self.viewport.anchor().is_some()
            || self.replay.is_some()
            || !self.pending.is_empty()
            || self.hud
    }

    /// What is read or selected at the end of a growing answer stays so, when its first part has become a cell of its own.
    pub(crate) fn follow_cut(&mut self) {
        let Some(cut) = self.transcript.was_cut.take() else { return };
        let (look, key) = look_of!(self);
        let selected = self.selection.iter_mut().flat_map(Selection::places_mut);
        for place in self.viewport.anchor_mut().into_iter().chain(selected).filter(|place| place.cell == cut) {
            let row = isize::try_from(place.row).unwrap_or(0);
            *place = viewport::moved(Place { row: 0, ..*place }, row, &mut self.transcript, &look, key);
        }
    }

    /// Moves the window over the transcript.
    pub(crate) fn scroll(&mut self, by: isize) {
        self.follow_cut();
        let (look, key) = look_of!(self);
        self.viewport.scroll(by, &mut self.transcript, &look, key);
    }

    /// The rows of an entry, as they are laid out now.
    pub(crate) fn rows_of(&mut self, cell: usize) -> Rc<Vec<Row>> {
        let (look, key) = look_of!(self);
        self.transcript.rows(cell, &look, key)
    }

    /// Puts a layer over everything, and asks for what it wants to show.
    pub(crate) fn open(&mut self, overlay: impl Overlay + 'static) -> Vec<Effect> {
        let effects = overlay.wants(self);
        self.overlays.push(Box::new(overlay));
        // It is not in sight yet, also where another has just gone.
        self.layer_since = None;
        effects
    }

    /// Nobody asks these any more. A draft that had made room for what should be done instead comes back.
    pub(crate) fn drop_questions(&mut self, is_over: impl Fn(&Question) -> bool) {
        let (over, left): (Vec<_>, Vec<_>) = std::mem::take(&mut self.questions).into_iter().partition(is_over);
        self.questions = left;
        if let Some(draft) = over.into_iter().find_map(|question| question.feedback) {
            let feedback = self.composer.text();
            self.composer.remember(&feedback);
            self.composer.set(&draft);
        }
        self.leave_question();
    }

    /// Nobody asks any more, or another question comes up: it has to be turned to anew.
    pub(crate) fn leave_question(&mut self) {
        if self.focus == Focus::Question {
            self.focus = Focus::Composer;
        }
    }

    /// Where keys mean something now, the innermost scope first.
    pub(crate) fn scopes(&self) -> Vec<Scope> {
        let asked = self.questions.first().is_some_and(|question| question.feedback.is_none());
        let inner = match self.focus {
            Focus::Composer if self.replay.is_some() => Scope::Replay,
            Focus::Composer => Scope::Composer,
            Focus::Question => Scope::Question,
            Focus::Transcript => Scope::Transcript,
            Focus::Side => Scope::Side,
        };
        // What answers a question comes before what edits the draft.
        let approval = asked.then_some(Scope::Approval);
        match inner {
            Scope::Question => [Some(inner), approval, Some(Scope::Anywhere)],
            _ => [approval, Some(inner), Some(Scope::Anywhere)],
        }
        .into_iter()
        .flatten()
        .collect()
    }

    /// Forgets one Session, to show another.
    pub(crate) fn clear_session(&mut self) {
        if let Some(told) = self.told.filter(|told| self.inline && *told < self.transcript.len()) {
            for cell in told..self.transcript.len() {
                let rows = self.rows_of(cell);
                self.left_over.extend(rows.iter().cloned());
            }
            self.left_over.push(Row::default());
        }
        self.session = None;
        self.replay = None;
        self.told = self.told.filter(|told| *told == 0);
        self.history = History::default();
        self.transcript = Transcript::default();
        self.viewport.reset();
        self.overlays.clear();
        self.focus = Focus::Composer;
        (self.cell, self.search, self.selection, self.labels) = (None, None, None, None);
        self.side.reset();
        self.going = None;
        self.drop_questions(|_| true);
        self.queue = Queue::default();
        self.jobs.clear();
        self.status = Status::Idle;
        self.busy_since = None;
    }
}

/// Columns of the transcript's text: one free on the left, two for the scrollbar on the right.
pub(crate) fn text_columns(area: Rect) -> usize {
    usize::from(area.width.saturating_sub(3)).max(1)
}
