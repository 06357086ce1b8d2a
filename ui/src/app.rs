//! The interface without a terminal: the State, the Session, and background work that reports back.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use pixir_core::event::{SessionId, Severity, Status};
use pixir_core::provider::Connector;
use pixir_core::{Error, Event, Fact, Handle, Harness, Input, Live, Result, Watch};
use tokio::runtime;
use tokio::sync::mpsc;

use crate::composer::mention::Index;
use crate::input::action::Action;
use crate::input::keymap::Keymap;
use crate::render::highlight::Highlighter;
use crate::state::{Effect, Now, OnHarness, State};
use crate::terminal::key::KeyEvent;
use crate::terminal::{ScreenMode, TerminalEvent, TerminalReply};
use crate::theme::contrast::luminance;
use crate::theme::{Background, Theme};
use crate::transcript::Cell;
use crate::transcript::replay::{Replay, ReplayOptions};
use crate::update::{self, events, travel};

mod agents; // an agent's Session on the screen
mod background; // background tasks and their results
pub(crate) mod clipboard; // copied text, pasted images
mod doors; // checks, the log file, exports
mod effects; // what `update` asks for
mod editor; // the user's own editor
mod folders; // folders that complete a path
mod connecting; // Providers that the user connects; settings that are read and saved
mod farewell; // the last answer, for the main screen
mod library; // skills and prompt templates
mod launch; // everything that the interface needs to start
mod log_tail; // the end of pixir's own log file
mod opening; // another Session in place of this one
mod presence; // window title, progress, notifications
mod program; // what the program around the interface does for it
mod review; // what the diff reads
mod run; // the loop on the real terminal
mod stored; // stored Sessions: listed, searched, renamed, deleted
mod saved_draft; // the draft on disk, for after a crash
mod saver; // small files, written off the interface's thread
mod themes; // the user's theme files

use agents::Root;
use background::BackgroundEvent;
use clipboard::Clipboards;
use connecting::Attempt;
use editor::{Borrower, Editing};
pub use farewell::ExitAnswer;
pub use launch::{
    ComposerKeys, ComposerOptions, Connect, Demo, Launch, LookOptions, Motion, Opener, ScreenOptions, SettingsStore,
    Start,
};
pub use program::{Examine, Export, Program};
pub use run::run;
use saved_draft::SavedDraft;
use saver::Saver;

/// How long the exit waits for the Session to record what it has already received.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(100);

/// The data for the last lines on the main screen, after the interface has closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExitSummary {
    /// The Session to resume, unless it is empty.
    pub session: Option<SessionId>,
    /// The last answer, unless it is on the main screen already.
    pub answer: Option<ExitAnswer>,
    /// The signal that ended the interface.
    pub signal: Option<u8>,
}

/// The State, the Session, and the work that runs beside the loop.
pub(crate) struct App {
    pub(crate) state: State,
    harness: Option<Harness>,
    handle: Option<Handle>,
    watch: Option<Watch>,
    /// The user's own Session, while an agent is on the screen.
    root: Option<Root>,
    open: Option<Opener>,
    /// Runs the Sessions and all background tasks.
    core: runtime::Handle,
    results: mpsc::UnboundedReceiver<BackgroundEvent>,
    sender: mpsc::UnboundedSender<BackgroundEvent>,
    /// Background tasks that have not reported yet.
    pub(crate) running_tasks: usize,
    pub(crate) dirty: bool,
    /// The next frame is drawn at once, because the user waits for it.
    pub(crate) is_urgent: bool,
    inputs_sent: u64,
    /// Session opens that were requested. Only the most recent one is honoured; earlier results are dropped.
    opens_requested: u64,
    /// Session opens that have succeeded or failed.
    opens_finished: u64,
    startup_error: Option<Error>,
    /// The draft that is saved next to the Log.
    saved_draft: SavedDraft,
    saver: Saver,
    /// The user has done something that may have changed the draft.
    save_soon: bool,
    /// Work that waits for the connection.
    until_connected: Vec<OnHarness>,
    /// Messages that wait for the Session to open.
    until_open: VecDeque<Effect>,
    /// Sessions that the user has left, and that may not have closed yet.
    closing: Vec<Handle>,
    /// The files of the workspace, and when they were listed.
    file_index: Option<(Instant, Index)>,
    /// While the files are listed: the letters that the user has typed since.
    walk_letters: Option<String>,
    /// Gets the terminal before the next frame.
    pub(crate) lends_terminal: Option<Borrower>,
    editor: String,
    /// Sequences for the terminal that draw nothing: the clipboard.
    pub(crate) signals: Vec<String>,
    clipboards: Clipboards,
    themes_folder: Option<PathBuf>,
    program: Program,
    /// The size of the log file when it was last read, bytes.
    log_bytes: u64,
    /// The number of the search in stored Sessions; an older one stops.
    stored_search: Arc<AtomicU64>,
    /// Why the current theme cannot be loaded any more.
    theme_error: Option<String>,
    replay: Option<ReplayOptions>,
    settings: Arc<dyn SettingsStore>,
    /// Held while a setting is saved, because that reads the file and replaces it.
    saving: Arc<Mutex<()>>,
    connector: Option<Arc<Connector>>,
    demo: Demo,
    connect: Connect,
    attempt: Attempt,
    done: bool,
}

impl App {
    /// An interface whose background tasks, and with them the Sessions, have just started on `core`.
    ///
    /// # Errors
    /// `CONFIG_INVALID` if the theme does not exist, or a key has two meanings.
    pub(crate) fn new(launch: Launch, core: runtime::Handle) -> Result<App> {
        let Launch {
            workspace,
            look,
            screen,
            composer,
            keys,
            clipboards,
            start,
            settings,
            connector,
            demo,
            connect,
            open,
            program,
        } = launch;
        let theme = Theme::load(&look.theme, look.themes_folder.as_deref(), look.depth, look.background)?;
        let (sender, results) = mpsc::unbounded_channel();
        let coloured = sender.clone();
        let highlighter = Highlighter::new(move || drop(coloured.send(BackgroundEvent::Coloured)));
        let keymap = Keymap::new(&keys)?;
        let mut state = State::new(workspace, theme, look.depth, highlighter, keymap);
        state.session.home = program.home.clone();
        state.terminal.mouse_owner = screen.mouse;
        if composer.keys == ComposerKeys::Vim {
            state.composer.with_vim();
        }
        state.look.animate = look.motion == Motion::Full;
        state.terminal.notifies = look.notifications;
        state.keys.own = keys;
        state.session.can_connect = connector.is_some();
        state.session.is_demo = demo.pace.is_some();
        state.look.screen_reader = screen.mode == ScreenMode::ScreenReader;
        if screen.mode != ScreenMode::Whole {
            state.printing.inline = true;
            state.look.hint_for_inline(&state.keys.map);
        }
        (state.look.theme_name, state.look.background) = (look.theme, look.background);
        state.session.places = program.log.iter().map(|path| ("log", path.clone())).collect();
        let skill = start
            .skill
            .map(|name| Effect::Send(Input::ActivateSkill { name, args: String::new(), attachments: Vec::new() }));
        let prompt = start.prompt.map(|text| Effect::message(Input::Prompt(text.into())));
        let list =
            if start.offers_sessions { update::perform(&mut state, Action::ListSessions, "") } else { Vec::new() };
        let mut app = App {
            state,
            harness: None,
            handle: None,
            watch: None,
            root: None,
            open: Some(open),
            core,
            results,
            sender,
            running_tasks: 0,
            dirty: true,
            is_urgent: false,
            inputs_sent: 0,
            opens_requested: 0,
            opens_finished: 0,
            startup_error: None,
            saved_draft: SavedDraft::default(),
            saver: Saver::default(),
            save_soon: false,
            until_connected: Vec::new(),
            until_open: skill.into_iter().chain(prompt).chain(list).collect(),
            closing: Vec::new(),
            file_index: None,
            walk_letters: None,
            lends_terminal: None,
            editor: composer.editor,
            signals: Vec::new(),
            clipboards,
            themes_folder: look.themes_folder,
            program,
            log_bytes: 0,
            stored_search: Arc::default(),
            theme_error: None,
            replay: start.replay,
            settings,
            connector,
            demo,
            connect,
            saving: Arc::default(),
            attempt: Attempt::default(),
            done: false,
        };
        app.connect();
        app.read_branch();
        Ok(app)
    }

    /// Saves the draft and the reading position next to the Log, in a small file that is replaced as a whole, and what
    /// the user has typed and used.
    pub(crate) fn save_draft(&mut self) {
        self.hand_over_draft();
        self.saver.write();
    }

    /// The same on another thread, unless that is still writing: then nothing happens and this returns false.
    pub(crate) fn save_draft_soon(&mut self) -> bool {
        if self.saver.is_busy() {
            return false;
        }
        self.hand_over_draft();
        let saver = self.saver.clone();
        self.core.spawn_blocking(move || saver.write());
        true
    }

    fn hand_over_draft(&mut self) {
        self.hand_over_uses();
        let (Some(harness), Some(id), false) = (&self.harness, &self.state.session.id, self.state.session.read_only)
        else {
            return;
        };
        let draft = SavedDraft::of(&self.state);
        if draft != self.saved_draft {
            let (place, text) = (harness.place(id), draft.to_text());
            self.saver.hand_over(move || {
                if let Err(e) = place.keep_presenter_state(&text) {
                    tracing::warn!("cannot save the draft: {e}");
                }
            });
            self.saved_draft = draft;
        }
        let prompts = self.state.composer.past.take_unsaved();
        if !prompts.is_empty() {
            let harness = harness.clone();
            self.saver.hand_over(move || {
                if let Err(e) = harness.store().keep_prompts(&prompts) {
                    tracing::warn!("cannot save the prompt history: {e}");
                }
            });
        }
    }

    async fn send(&mut self, input: Input) {
        self.inputs_sent += 1;
        let (handle, input) = self.addressed(input);
        match handle {
            Some(handle) => handle.send(input).await,
            None if self.is_opening() => self.until_open.push_back(Effect::Send(input)),
            None => self.state.say("the session has closed; /new starts another"),
        }
    }

    /// No Session is open yet, but one is opening.
    fn is_opening(&self) -> bool {
        self.opens_requested == 0 || self.opens_finished < self.opens_requested
    }

    /// Sends the messages that waited for the Session, in order. A message after one with images waits until these are
    /// read.
    async fn send_waiting(&mut self) {
        while self.handle.is_some() && self.state.pending.images == 0 {
            match self.until_open.pop_front() {
                Some(Effect::Deliver { input, mentions }) => self.deliver(input, mentions),
                Some(effect) => Box::pin(self.perform(vec![effect])).await,
                None => return,
            }
        }
    }

    /// Opens the draft in the user's own editor, or shows why that is not possible.
    pub(crate) fn begin_editing(&mut self, borrower: &Borrower) -> Option<Editing> {
        let editing = match borrower {
            Borrower::Draft => Editing::begin(&self.state.composer.text(), ".md", &self.editor),
            Borrower::Merge { path, text } => {
                let extension = std::path::Path::new(path).extension();
                let suffix = extension.map_or(String::new(), |it| format!(".{}", it.to_string_lossy()));
                Editing::begin(text, &suffix, &self.editor)
            }
            Borrower::Demo => Editing::show(self.demo.program.as_ref()?, "demo"),
            Borrower::File { path, line } => {
                Editing::open(&self.state.session.workspace.join(path), *line, &self.editor)
            }
        };
        editing.map_err(|why| self.state.say(why)).ok()
    }

    /// Takes over what the user has written; a program that only shows something leaves all as it is.
    pub(crate) fn end_editing(&mut self, borrower: &Borrower, written: std::result::Result<Option<String>, String>) {
        match (borrower, written) {
            (Borrower::Merge { path, .. }, Ok(Some(text))) => travel::take_merge(&mut self.state, path, text),
            (_, Ok(Some(text))) => self.state.composer.set(text.strip_suffix('\n').unwrap_or(&text)),
            (_, Ok(None)) => {}
            (_, Err(why)) => self.state.say(why),
        }
        // A key that was pressed for the editor decides nothing here: what the editor left has to be on the screen first.
        self.state.now = Now::read();
        (self.state.guard.quiet_since, self.state.guard.top_overlay_since) = (self.state.now.at, None);
        self.save_soon = true;
        self.dirty = true;
    }

    /// Loads the diffs that the last frame lacked.
    pub(crate) fn load_wanted_diffs(&mut self) {
        for (cell, result) in std::mem::take(&mut self.state.transcript.wanted_diffs) {
            self.load_call_diff(cell, result);
        }
    }

    /// Handles an Event of the Session. None means that the Session has closed.
    async fn on_event(&mut self, event: Option<Event>) {
        self.state.now = Now::read();
        self.dirty = true;
        match event {
            Some(event) if self.is_repeated(&event) => {}
            None if self.root.is_some() => {
                let back = self.leave_agent();
                self.watch = None;
                self.perform(vec![back]).await;
            }
            Some(event) => {
                self.save_soon |= matches!(&event, Event::Live(it) if matches!(it.live, Live::QueueChanged { .. }));
                // Only a recorded entry can change the model.
                let may_change_model = !matches!(event, Event::Live(_));
                // The answer is complete, so the user sees its last words at once. In inline mode they are printed with the end of
                // the Turn: a window that gets another size between two printings leaves a part of the screen in the history.
                let is_answer = matches!(&event, Event::Recorded(it) if matches!(it.fact, Fact::AssistantMessage(_)));
                self.is_urgent |= is_answer && !self.state.printing.inline;
                let effects = events::on_event(&mut self.state, event);
                self.perform(effects).await;
                if may_change_model {
                    self.refresh_window();
                }
            }
            None => {
                self.watch = None;
                self.handle = None;
                self.state.session.can_send = false;
                self.state.session.status = Status::Idle;
                self.state.drop_approvals(|_| true);
                let text = "the session has closed; /new starts another".to_owned();
                self.state.transcript.push(Cell::Notice(Severity::Warning, text.into()));
            }
        }
    }

    fn refresh_window(&mut self) {
        let settings = &self.state.history.settings;
        let facts = self.harness.as_ref().map(|h| h.providers().facts(&settings.provider, &settings.model));
        self.state.session.window = facts.as_ref().and_then(|it| it.window);
        self.state.session.price_step = facts.and_then(|it| it.price?.step);
    }

    /// Handles an event of the terminal.
    pub(crate) async fn on_terminal(&mut self, event: TerminalEvent) {
        self.state.now = Now::read();
        let effects = match event {
            TerminalEvent::Key(key) => {
                self.hurry_demo();
                update::on_key(&mut self.state, key)
            }
            TerminalEvent::Paste(text) => update::on_paste(&mut self.state, &text),
            // A mouse event that changes nothing must not ask for a frame.
            TerminalEvent::Mouse(mouse) => match update::on_mouse(&mut self.state, mouse) {
                Some(effects) => effects,
                None => return,
            },
            TerminalEvent::Focus(has_focus) => {
                self.state.terminal.has_focus = has_focus;
                // Outside of the window, the release of the button is not reported.
                self.state.mouse.edge = 0;
                if !has_focus {
                    return;
                }
                // The click or key that brought the window back was not meant for an approval.
                self.state.guard.quiet_since = self.state.now.at;
                self.reload_theme();
                self.read_repository();
                Vec::new()
            }
            TerminalEvent::Reply(reply) => {
                match reply {
                    TerminalReply::Background(r, g, b) => {
                        let is_light = luminance((r, g, b)) > 0.3;
                        self.state.look.background = if is_light { Background::Light } else { Background::Dark };
                    }
                    TerminalReply::Scheme { dark } => {
                        self.state.look.background = if dark { Background::Dark } else { Background::Light };
                    }
                    // The next frame has this size.
                    TerminalReply::Size { .. } | TerminalReply::Cursor { .. } => {
                        self.dirty = true;
                        return;
                    }
                    TerminalReply::Mode { .. }
                    | TerminalReply::Keyboard
                    | TerminalReply::Name(_)
                    | TerminalReply::Done => {
                        return;
                    }
                }
                self.reload_theme();
                Vec::new()
            }
        };
        self.dirty = true;
        self.save_soon = true;
        self.perform(effects).await;
    }

    /// Presses a key for a script.
    pub(crate) async fn press(&mut self, key: KeyEvent) {
        self.on_terminal(TerminalEvent::Key(key)).await;
    }

    /// Waits for the Session or a background task, and handles everything that has arrived.
    pub(crate) async fn listen(&mut self) {
        tokio::select! {
            event = next_event(&mut self.watch) => self.on_event(event).await,
            event = agents::next_root_event(&mut self.root) => self.on_root_event(event).await,
            Some(result) = self.results.recv() => self.on_background(result).await,
            () = replay_due(self.state.replay.as_ref()) => self.replay_step(),
        }
        self.drain().await;
    }

    /// Shows the next entry of the replay.
    fn replay_step(&mut self) {
        update::replay::step(&mut self.state);
        self.dirty = true;
    }

    /// Handles everything that has already arrived.
    pub(crate) async fn drain(&mut self) {
        loop {
            if let Some(event) = self.watch.as_mut().and_then(Watch::try_next) {
                self.on_event(Some(event)).await;
            } else if let Some(event) = self.root.as_mut().and_then(Root::try_next) {
                self.on_root_event(Some(event)).await;
            } else if let Ok(result) = self.results.try_recv() {
                self.on_background(result).await;
            } else {
                return;
            }
        }
    }

    /// Waits until the Session has handled every Input so far.
    pub(crate) async fn settle(&mut self) {
        // An Event can make the interface send another Input.
        loop {
            let sent = self.inputs_sent;
            for handle in self.root.iter().map(|it| &it.handle).chain(&self.handle) {
                handle.settle().await;
            }
            self.drain().await;
            if sent == self.inputs_sent {
                return;
            }
        }
    }

    /// Handles what the Session is recording at this moment, before the last frame.
    pub(crate) async fn drain_before_exit(&mut self) {
        if let Some(handle) = &self.handle {
            // A Log on a slow disk must not delay the exit.
            let _ = tokio::time::timeout(DRAIN_TIMEOUT, handle.settle()).await;
        }
        self.drain().await;
    }

    pub(crate) fn is_done(&self) -> bool {
        self.done || self.startup_error.is_some()
    }

    /// Closes the Session.
    ///
    /// # Errors
    /// Why the first Session could not be opened.
    pub(crate) async fn close(mut self, signal: Option<u8>) -> Result<ExitSummary> {
        // A Session that is still opening has to open before it can be closed.
        while self.startup_error.is_none() && self.opens_finished < self.opens_requested {
            self.listen().await;
        }
        if let Some(error) = self.startup_error {
            return Err(error);
        }
        self.save_draft();
        let session = self.own_session();
        // Its agents close with it.
        if let Some(handle) = self.root.as_ref().map(|it| &it.handle).or(self.handle.as_ref()) {
            handle.close().await;
            // Closing may have recorded the last entries.
            self.drain().await;
        }
        // The Sessions that the user has left stop and record their work, too.
        for handle in &self.closing {
            handle.close().await;
        }
        let is_empty = self.state.history.head().is_none();
        // In inline mode the answer is on the main screen already.
        let answer =
            if self.state.printing.inline || self.root.is_some() { None } else { farewell::answer(&self.state) };
        Ok(ExitSummary { session: session.filter(|_| !is_empty), answer, signal })
    }
}

async fn next_event(watch: &mut Option<Watch>) -> Option<Event> {
    match watch {
        Some(watch) => watch.next().await,
        None => std::future::pending().await,
    }
}

/// Waits until the next entry of the replay is due.
async fn replay_due(replay: Option<&Replay>) {
    match replay.and_then(Replay::due) {
        Some(due) => tokio::time::sleep_until(due.into()).await,
        None => std::future::pending().await,
    }
}
