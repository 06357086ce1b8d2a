//! The interface without a terminal: State, Session, and the work beside them that reports back.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use pixir_core::event::{SessionId, Severity, Status};
use pixir_core::harness::Harness;
use pixir_core::session::Handle;
use pixir_core::tools::BoxFuture;
use pixir_core::watch::Watch;
use pixir_core::{Code, Error, Event, Input, Live, Result};
use tokio::sync::mpsc;

use crate::clipboard::Ways;
use crate::composer::mention::Index;
use crate::editor::Editing;
use crate::kept::Kept;
use crate::keymap::{Keymap, More};
use crate::reading::find;
use crate::render::highlight::Highlighter;
use crate::replay::{Replay, Telling};
use crate::state::{Connection, Effect, Now, State};
use crate::terminal::{Heard, Reply};
use crate::theme::contrast::luminance;
use crate::theme::{Depth, Theme};
use crate::transcript::Cell;
use crate::update::{self, news, settings};

mod beside; // work beside the screen
mod run; // the loop on the real terminal
mod themes; // the person's themes, as they are written

use beside::{Lost, News};
pub use run::run;

/// How long a server may take to list its models.
const MODELS_WAIT: Duration = Duration::from_secs(3);
/// How long what is being recorded is waited for before the terminal is given back.
const LAST_WORDS: Duration = Duration::from_millis(100);

/// Opens a Session of a workspace.
pub type Opener = Box<dyn FnOnce(&Harness) -> Result<Handle> + Send>;

/// What the interface is started with.
pub struct Launch {
    /// The folder to work in.
    pub workspace: PathBuf,
    /// The theme's name.
    pub theme: String,
    /// Where the person's own themes are.
    pub themes_folder: Option<PathBuf>,
    /// How many colours the terminal shows.
    pub depth: Depth,
    /// Its background is light, as far as the environment says; the terminal is asked as well.
    pub is_light: bool,
    /// Ways to a clipboard.
    pub clipboard: Ways,
    /// Clicks and the wheel are pixir's.
    pub mouse: bool,
    /// The conversation goes into the terminal's own history; without, pixir has a screen of its own.
    pub inline: bool,
    /// The line has vim's keys.
    pub vim: bool,
    /// What shows that something goes on may move.
    pub moves: bool,
    /// The screen is read out: it is inline, nothing is drawn but words, and each line is there once.
    pub is_read_aloud: bool,
    /// The person's editor, and its arguments.
    pub editor: String,
    /// Keys that the person wants, by the names of the action table.
    pub keys: BTreeMap<String, Vec<String>>,
    /// Sent as soon as the Session is open.
    pub prompt: Option<String>,
    /// The Session that is opened is only told again.
    pub replay: Option<Telling>,
    /// Activated before the prompt.
    pub skill: Option<String>,
    /// Finds Providers and the workspace; it runs after the first frame.
    pub connect: Box<dyn FnOnce() -> BoxFuture<'static, Result<Harness>> + Send>,
    /// Opens the first Session.
    pub open: Opener,
}

impl std::fmt::Debug for Launch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Launch").field("workspace", &self.workspace).field("theme", &self.theme).finish_non_exhaustive()
    }
}

/// What is left on the main screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Farewell {
    /// The Session to resume, if anything was said in it.
    pub session: Option<SessionId>,
    /// The last answer.
    pub answer: Option<String>,
    /// The signal that ended it.
    pub signal: Option<u8>,
}

/// State, Session, and what runs beside them.
pub(crate) struct App {
    pub(crate) state: State,
    harness: Option<Harness>,
    handle: Option<Handle>,
    watch: Option<Watch>,
    open: Option<Opener>,
    news: mpsc::UnboundedReceiver<News>,
    tell: mpsc::UnboundedSender<News>,
    /// Work beside the screen that has not reported yet.
    pub(crate) pending: usize,
    pub(crate) dirty: bool,
    /// What came is waited for: it does not wait for its frame.
    pub(crate) is_urgent: bool,
    /// Inputs that were sent.
    sent: u64,
    /// Openings that were asked for, of which only the last counts, and those that have come to something.
    opening: u64,
    opened: u64,
    failed: Option<Error>,
    /// What was kept beside the Log last.
    kept: Kept,
    /// Something was done that may have changed what is to be kept.
    keep_soon: bool,
    read_only: bool,
    /// What was asked for before it was known where the Sessions are.
    later: Vec<Effect>,
    /// What was sent before the Session was open.
    waiting: VecDeque<Effect>,
    /// Sessions that were left, and may not have closed yet.
    leaving: Vec<Handle>,
    /// The files of the workspace, as they were when a mention was begun.
    files: Option<(Instant, Index)>,
    /// They are being looked at; and the letters that somebody looks for by now.
    walking: Option<String>,
    /// The draft is to be written in the person's own editor.
    pub(crate) wants_editor: bool,
    editor: String,
    /// Bytes for the terminal that show nothing.
    pub(crate) signals: Vec<String>,
    clipboard: Ways,
    themes_folder: Option<PathBuf>,
    /// Why the theme cannot be read any more.
    wrong_theme: Option<String>,
    replay: Option<Telling>,
    done: bool,
}

impl App {
    /// An interface that has not looked for anything yet.
    ///
    /// # Errors
    /// `CONFIG_INVALID` when there is no such theme, or a key means two things.
    pub(crate) fn new(launch: Launch) -> Result<App> {
        let depth = launch.depth;
        let theme = Theme::load(&launch.theme, launch.themes_folder.as_deref(), depth, launch.is_light)?;
        let (tell, news) = mpsc::unbounded_channel();
        let coloured = tell.clone();
        let highlighter = Highlighter::new(move || drop(coloured.send(News::Coloured)));
        let keymap = Keymap::new(&launch.keys)?;
        let mut state = State::new(launch.workspace, theme, depth, highlighter, keymap);
        state.mouse = launch.mouse;
        if launch.vim {
            state.composer.with_vim();
        }
        (state.moves, state.is_read_aloud) = (launch.moves, launch.is_read_aloud);
        state.inline = launch.inline || launch.is_read_aloud;
        state.more = More::new(&state.keymap, state.inline);
        (state.theme_name, state.is_light) = (launch.theme, launch.is_light);
        let skill = launch
            .skill
            .map(|name| Effect::Send(Input::ActivateSkill { name, args: String::new(), attachments: Vec::new() }));
        let prompt = launch.prompt.map(|text| Effect::message(Input::Prompt(text.into())));
        let mut app = App {
            state,
            harness: None,
            handle: None,
            watch: None,
            open: Some(launch.open),
            news,
            tell,
            pending: 0,
            dirty: true,
            is_urgent: false,
            sent: 0,
            opening: 0,
            opened: 0,
            failed: None,
            kept: Kept::default(),
            keep_soon: false,
            read_only: false,
            later: Vec::new(),
            waiting: skill.into_iter().chain(prompt).collect(),
            leaving: Vec::new(),
            files: None,
            walking: None,
            wants_editor: false,
            editor: launch.editor,
            signals: Vec::new(),
            clipboard: launch.clipboard,
            themes_folder: launch.themes_folder,
            wrong_theme: None,
            replay: launch.replay,
            done: false,
        };
        let connect = launch.connect;
        app.spawn(async move { News::Connected(Box::new(connect().await)) });
        app.look_at_branch();
        Ok(app)
    }

    // ─── Effects ───

    pub(crate) async fn perform(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            // What needs to know where the Sessions are waits until that is known.
            let waits = !matches!(
                effect,
                Effect::Send(_)
                    | Effect::Deliver { .. }
                    | Effect::Find { .. }
                    | Effect::FindFiles(_)
                    | Effect::Edit
                    | Effect::Copy(_)
                    | Effect::ListThemes
                    | Effect::LookAtBranch
                    | Effect::LoadTheme { .. }
                    | Effect::Quit
            );
            let asks = matches!(effect, Effect::Send(_) | Effect::Deliver { .. } | Effect::Open(_) | Effect::OpenNew);
            if self.state.replay.is_some() && asks {
                self.state.say("this session is only told again; pixir resume goes on with it");
                continue;
            }
            // What was pasted is a path like any other, where there is nobody to read it.
            if let (Effect::AttachFile { pasted, .. }, Connection::Failed(_)) = (&effect, &self.state.connection) {
                self.state.composer.insert(pasted);
                continue;
            }
            if self.harness.is_none() && waits {
                self.later.push(effect);
                continue;
            }
            match effect {
                Effect::Send(input) => self.send(input).await,
                // The Session is still being opened.
                Effect::Deliver { .. } if self.handle.is_none() && self.will_open() => self.waiting.push_back(effect),
                Effect::Deliver { input, mentions } => self.deliver(input, mentions),
                Effect::AttachFile { path, pasted } => self.attach_file(path, pasted),
                Effect::AttachClipboard => self.attach_clipboard(),
                Effect::OpenNew => self.reopen(|harness| harness.start()).await,
                Effect::Open(id) => self.reopen(move |harness| harness.resume(&id)).await,
                Effect::LoadDiffs => self.load_diffs(),
                Effect::LookAtBranch => self.look_at_branch(),
                Effect::LoadSessions { forks_of } => {
                    if let Some(harness) = self.harness.clone() {
                        self.spawn_on_session(move || News::Sessions(harness.sessions(), forks_of));
                    }
                }
                Effect::LoadModels => {
                    if let Some(harness) = self.harness.clone() {
                        self.spawn(async move { News::Models(harness.providers().models(MODELS_WAIT).await) });
                    }
                }
                Effect::LoadSkills => {
                    if let Some(harness) = self.harness.clone() {
                        self.spawn_blocking(move || News::Skills(harness.skills()));
                    }
                }
                Effect::Find { number, text } => {
                    let hay = find::haystack(&self.state.transcript, &self.state.more.remedies);
                    self.spawn_blocking(move || News::Found(number, find::find(&hay, &text)));
                }
                Effect::Copy(text) => self.copy(text),
                Effect::ListThemes => {
                    let effects = settings::on_themes(&mut self.state, &Theme::names(self.themes_folder.as_deref()));
                    Box::pin(self.perform(effects)).await;
                }
                Effect::LoadTheme { name, is_told } => {
                    let loaded = self.load_theme(&name);
                    settings::on_theme(&mut self.state, &name, loaded, is_told);
                }
                Effect::FindFiles(letters) => self.find_files(letters),
                Effect::Edit => self.wants_editor = true,
                Effect::Quit => self.done = true,
            }
        }
    }

    /// Keeps the draft and where the person reads, beside the Log. It is a small file, written in one step.
    pub(crate) fn keep(&mut self) {
        let (Some(harness), Some(id), false) = (&self.harness, &self.state.session, self.read_only) else { return };
        let kept = Kept::of(&self.state);
        if kept != self.kept {
            if let Err(e) = harness.place(id).keep_presenter_state(&kept.to_text()) {
                tracing::warn!("the draft was not kept: {e}");
            }
            self.kept = kept;
        }
        let sent = self.state.composer.past.take_unsaved();
        if let Some(harness) = self.harness.as_ref().filter(|_| !sent.is_empty())
            && let Err(e) = harness.store().keep_prompts(&sent)
        {
            tracing::warn!("what was sent is not found again later: {e}");
        }
    }

    async fn send(&mut self, input: Input) {
        self.sent += 1;
        match &self.handle {
            Some(handle) => handle.send(input).await,
            // Nothing that was typed is lost.
            None if self.will_open() => self.waiting.push_back(Effect::Send(input)),
            None => self.state.say("the session has closed; /new starts another"),
        }
    }

    /// No Session is open yet, but one will be.
    fn will_open(&self) -> bool {
        self.opening == 0 || self.opened < self.opening
    }

    /// What was sent before the Session was open, in its order: what comes behind images waits until they are read.
    async fn send_waiting(&mut self) {
        while self.handle.is_some() && self.state.reading_images == 0 {
            match self.waiting.pop_front() {
                Some(Effect::Deliver { input, mentions }) => self.deliver(input, mentions),
                Some(effect) => Box::pin(self.perform(vec![effect])).await,
                None => return,
            }
        }
    }

    /// Closes this Session and opens another; when that fails, the person is back where they were, and told.
    async fn reopen(&mut self, open: impl FnOnce(&Harness) -> Result<Handle> + Send + 'static) {
        let Some(harness) = self.harness.clone() else { return };
        self.keep();
        let before = self.handle.take();
        self.leaving.extend(before.clone());
        self.watch = None;
        let again = self.state.session.clone();
        // What was opened on the screen before the first Session was stays.
        if self.opening > 0 {
            self.state.clear_session();
        }
        self.state.can_send = true;
        self.opening += 1;
        let number = self.opening;
        self.spawn_for(Lost::Opening(number), async move {
            if let Some(before) = before {
                before.close().await;
            }
            let (opened, instead) = match (open(&harness), again) {
                // One in which nothing was said is gone when it is closed.
                (Err(error), Some(id)) => (harness.resume(&id).or_else(|_| harness.start()), Some(error)),
                (opened, _) => (opened, None),
            };
            match opened {
                Ok(handle) => match handle.watch().await {
                    Some(watch) => {
                        let place = harness.place(handle.id());
                        let is_new = watch.past.entries().iter().all(|entry| !entry.fact.is_conversation());
                        let abandoned = || if is_new && !watch.read_only { harness.abandoned() } else { None };
                        let kept = place.presenter_state().or_else(abandoned);
                        News::Opened { number, handle, watch: Box::new(watch), instead, kept }
                    }
                    None => News::NotOpened {
                        number,
                        error: Error::new(Code::SessionStartFailed, "the session closed at once", "try again"),
                    },
                },
                Err(error) => News::NotOpened { number, error },
            }
        });
    }

    /// Opens the draft in the person's own editor; why not, is said.
    pub(crate) fn begin_editing(&mut self) -> Option<Editing> {
        let editing = Editing::begin(&self.state.composer.text(), &self.editor);
        editing.map_err(|why| self.state.say(why)).ok()
    }

    /// The editor has ended: what was written in it is the draft.
    pub(crate) fn end_editing(&mut self, written: std::result::Result<String, String>) {
        match written {
            Ok(text) => self.state.composer.set(&text),
            Err(why) => self.state.say(why),
        }
        self.keep_soon = true;
        self.dirty = true;
    }

    /// What was found missing when the last frame was drawn.
    pub(crate) fn fetch(&mut self) {
        for (cell, result) in std::mem::take(&mut self.state.transcript.wanted_diffs) {
            self.load_call_diff(cell, result);
        }
    }

    /// Something the Session said.
    async fn hear_session(&mut self, event: Option<Event>) {
        self.state.now = Now::read();
        self.dirty = true;
        match event {
            Some(event) => {
                self.keep_soon |= matches!(event, Event::Live(Live::QueueChanged { .. }));
                // Nothing live changes who answers.
                let may_change_model = !matches!(event, Event::Live(_));
                let effects = news::on_event(&mut self.state, event);
                self.perform(effects).await;
                if may_change_model {
                    self.refresh_window();
                }
            }
            None => {
                self.watch = None;
                self.handle = None;
                self.state.can_send = false;
                self.state.status = Status::Idle;
                self.state.drop_questions(|_| true);
                let text = "the session has closed; /new starts another".to_owned();
                self.state.transcript.push(Cell::Notice(Severity::Warning, text.into()));
            }
        }
    }

    fn refresh_window(&mut self) {
        let settings = &self.state.history.settings;
        self.state.window =
            self.harness.as_ref().and_then(|h| h.providers().window(&settings.provider, &settings.model));
    }

    pub(crate) async fn hear_terminal(&mut self, heard: Heard) {
        self.state.now = Now::read();
        let effects = match heard {
            Heard::Key(key) => update::on_key(&mut self.state, key),
            Heard::Paste(text) => update::on_paste(&mut self.state, &text),
            // What does not change the screen leaves what is still to be drawn alone.
            Heard::Mouse(mouse) => match update::on_mouse(&mut self.state, mouse) {
                Some(effects) => effects,
                None => return,
            },
            Heard::Focus(has_focus) => {
                self.state.has_focus = has_focus;
                // The button may be let go of where nobody says so.
                self.state.press.edge = 0;
                if !has_focus {
                    return;
                }
                // The click or the key that brought the window back was meant for nothing in it.
                self.state.quiet_since = self.state.now.at;
                self.reload_theme();
                self.look_at_branch();
                Vec::new()
            }
            Heard::Reply(reply) => {
                match reply {
                    Reply::Background(r, g, b) => self.state.is_light = luminance((r, g, b)) > 0.3,
                    Reply::Scheme { dark } => self.state.is_light = !dark,
                    Reply::Mode { .. } | Reply::Cursor { .. } | Reply::Keyboard | Reply::Name(_) | Reply::Done => {
                        return;
                    }
                }
                self.reload_theme();
                Vec::new()
            }
        };
        self.dirty = true;
        self.keep_soon = true;
        self.perform(effects).await;
    }

    /// A key that a script pressed.
    pub(crate) async fn press(&mut self, key: crossterm::event::KeyEvent) {
        self.hear_terminal(Heard::Key(key)).await;
    }

    /// Waits for the Session or for work beside the screen, and takes everything in that is there.
    pub(crate) async fn listen(&mut self) {
        tokio::select! {
            event = next_event(&mut self.watch) => self.hear_session(event).await,
            Some(news) = self.news.recv() => self.hear(news).await,
            () = replay_due(self.state.replay.as_ref()) => self.tell_on(),
        }
        self.drain().await;
    }

    /// The next entry of what is told again.
    fn tell_on(&mut self) {
        update::replay::step(&mut self.state);
        self.dirty = true;
    }

    /// Takes everything in that is there already.
    pub(crate) async fn drain(&mut self) {
        loop {
            if let Some(event) = self.watch.as_mut().and_then(Watch::try_next) {
                self.hear_session(Some(event)).await;
            } else if let Ok(news) = self.news.try_recv() {
                self.hear(news).await;
            } else {
                return;
            }
        }
    }

    /// Returns when the Session has taken in everything that was sent.
    pub(crate) async fn settle(&mut self) {
        // What comes back may itself ask for something.
        loop {
            let sent = self.sent;
            if let Some(handle) = &self.handle {
                handle.settle().await;
            }
            self.drain().await;
            if sent == self.sent {
                return;
            }
        }
    }

    /// Takes in what is being recorded at this moment, before the last frame.
    pub(crate) async fn hear_out(&mut self) {
        if let Some(handle) = &self.handle {
            // A Log that is slow to write holds nobody up.
            let _ = tokio::time::timeout(LAST_WORDS, handle.settle()).await;
        }
        self.drain().await;
    }

    pub(crate) fn is_done(&self) -> bool {
        self.done || self.failed.is_some()
    }

    /// Closes the Session and says what is to be left on the main screen, or why there was none.
    pub(crate) async fn close(mut self, signal: Option<u8>) -> Result<Farewell> {
        // One that is just being opened is closed as well, so that nothing is left of it.
        while self.failed.is_none() && self.opened < self.opening {
            self.listen().await;
        }
        if let Some(error) = self.failed {
            return Err(error);
        }
        self.keep();
        if let Some(handle) = &self.handle {
            handle.close().await;
            // The last that was said may have been recorded only now.
            self.drain().await;
        }
        // Those that were left have to be at their end too: what ran in them is stopped, and recorded.
        for handle in &self.leaving {
            handle.close().await;
        }
        let spoken = self.state.history.head().is_some();
        Ok(Farewell {
            session: self.state.session.filter(|_| spoken),
            // What was printed already stands there.
            answer: self.state.transcript.last_answer().filter(|_| !self.state.inline).map(str::to_owned),
            signal,
        })
    }
}

async fn next_event(watch: &mut Option<Watch>) -> Option<Event> {
    match watch {
        Some(watch) => watch.next().await,
        None => std::future::pending().await,
    }
}

/// Returns when the next entry of what is told again is to be shown.
async fn replay_due(replay: Option<&Replay>) {
    match replay.and_then(Replay::due) {
        Some(due) => tokio::time::sleep_until(due.into()).await,
        None => std::future::pending().await,
    }
}
