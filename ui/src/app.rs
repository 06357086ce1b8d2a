//! The interface without a terminal: State, Session, and the work beside them that reports back.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pixir_core::changes::{self, FileDiff};
use pixir_core::event::{SessionId, Severity, Status};
use pixir_core::harness::Harness;
use pixir_core::session::Handle;
use pixir_core::skills::Skill;
use pixir_core::store::Summary;
use pixir_core::tools::BoxFuture;
use pixir_core::watch::Watch;
use pixir_core::{Code, Error, Event, Input, Live, Result};
use tokio::sync::mpsc;

use crate::clipboard::{self, Ways};
use crate::composer::mention::Index;
use crate::kept::Kept;
use crate::keymap::Keymap;
use crate::reading::{self, Hit};
use crate::render::highlight::Highlighter;
use crate::state::{Connection, Effect, State};
use crate::terminal::{Heard, Reply};
use crate::theme::contrast::luminance;
use crate::theme::{Depth, Theme};
use crate::transcript::Cell;
use crate::update::{self, news, settings};

mod run; // the loop on the real terminal
mod themes; // the person's themes, as they are written

pub use run::run;

/// How long a server may take to list its models.
const MODELS_WAIT: Duration = Duration::from_secs(3);
/// How old what is known of the workspace's files may be when one is looked for.
const FILES_AGE: Duration = Duration::from_secs(20);

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
    /// The person's editor, and its arguments.
    pub editor: String,
    /// Keys that the person wants, by the names of the action table.
    pub keys: BTreeMap<String, Vec<String>>,
    /// Sent as soon as the Session is open.
    pub prompt: Option<String>,
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

/// What work beside the screen found.
enum News {
    Connected(Box<Result<Harness>>),
    /// The opening that was asked for n-th; with why it is another Session than was wanted.
    Opened {
        number: u64,
        handle: Handle,
        watch: Box<Watch>,
        instead: Option<pixir_core::Error>,
        /// What the screen had kept beside its Log.
        kept: Option<String>,
    },
    NotOpened {
        number: u64,
        error: pixir_core::Error,
    },
    Branch(Option<String>),
    CallDiff(usize, u64, Vec<FileDiff>),
    Diffs(Vec<FileDiff>, Vec<FileDiff>),
    Sessions(Vec<Summary>, Option<String>),
    Models(Vec<String>),
    Found(u64, Vec<Hit>),
    Files {
        letters: String,
        found: Vec<String>,
        /// The tree, if it was walked for this.
        index: Option<Index>,
    },
    /// What was sent in earlier Sessions.
    Past(Vec<String>),
    /// What became of a text that was copied.
    Copied(String),
    Skills(Vec<Skill>),
    Coloured,
    Broke,
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
    /// Sessions that were left, and may not have closed yet.
    leaving: Vec<Handle>,
    /// The files of the workspace, as they were when a mention was begun.
    files: Option<(Instant, Index)>,
    /// The draft is to be written in the person's own editor.
    pub(crate) wants_editor: bool,
    editor: String,
    /// Bytes for the terminal that show nothing.
    pub(crate) signals: Vec<String>,
    clipboard: Ways,
    done: bool,
}

impl App {
    /// An interface that has not looked for anything yet.
    ///
    /// # Errors
    /// `CONFIG_INVALID` when there is no such theme.
    pub(crate) fn new(launch: Launch) -> Result<App> {
        let depth = launch.depth;
        let theme = Theme::load(&launch.theme, launch.themes_folder.as_deref(), depth, launch.is_light)?;
        let (tell, news) = mpsc::unbounded_channel();
        let coloured = tell.clone();
        let highlighter = Highlighter::new(move || drop(coloured.send(News::Coloured)));
        let keymap = Keymap::new(&launch.keys)?;
        let mut state = State::new(launch.workspace, theme, depth, highlighter, keymap);
        state.themes_folder = launch.themes_folder;
        state.mouse = launch.mouse;
        (state.theme_name, state.is_light) = (launch.theme, launch.is_light);
        state.waiting.extend(launch.skill.map(|name| Input::ActivateSkill { name, args: String::new() }));
        state.waiting.extend(launch.prompt.map(|text| Input::Prompt { text }));
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
            leaving: Vec::new(),
            files: None,
            wants_editor: false,
            editor: launch.editor,
            signals: Vec::new(),
            clipboard: launch.clipboard,
            done: false,
        };
        let connect = launch.connect;
        app.spawn(async move { News::Connected(Box::new(connect().await)) });
        let workspace = app.state.workspace.clone();
        app.spawn_blocking(move || News::Branch(branch_of(&workspace)));
        Ok(app)
    }

    fn spawn(&mut self, work: impl Future<Output = News> + Send + 'static) {
        self.pending += 1;
        let tell = self.tell.clone();
        let task = tokio::spawn(work);
        // A panic in it ends it, and is said; the interface goes on.
        tokio::spawn(async move { drop(tell.send(task.await.unwrap_or(News::Broke))) });
    }

    fn spawn_blocking(&mut self, work: impl FnOnce() -> News + Send + 'static) {
        self.pending += 1;
        let tell = self.tell.clone();
        let task = tokio::task::spawn_blocking(work);
        tokio::spawn(async move { drop(tell.send(task.await.unwrap_or(News::Broke))) });
    }

    // ─── Effects ───

    pub(crate) async fn perform(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            // What needs to know where the Sessions are waits until that is known.
            let waits = !matches!(
                effect,
                Effect::Send(_)
                    | Effect::Find { .. }
                    | Effect::FindFiles(_)
                    | Effect::Edit
                    | Effect::Copy(_)
                    | Effect::Quit
            );
            if self.harness.is_none() && waits {
                self.later.push(effect);
                continue;
            }
            match effect {
                Effect::Send(input) => self.send(input).await,
                Effect::OpenNew => self.reopen(|harness| harness.start()).await,
                Effect::Open(id) => self.reopen(move |harness| harness.resume(&id)).await,
                Effect::LoadDiffs => self.load_diffs(),
                Effect::LoadSessions { forks_of } => {
                    if let Some(harness) = self.harness.clone() {
                        self.spawn_blocking(move || News::Sessions(harness.sessions(), forks_of));
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
                    let hay = reading::haystack(self.state.transcript.cells());
                    self.spawn_blocking(move || News::Found(number, reading::find(&hay, &text)));
                }
                Effect::Copy(text) => self.copy(text),
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
            // The Session is still being opened; nothing that was typed is lost.
            None => self.state.waiting.push(input),
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
        self.spawn(async move {
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

    fn load_call_diff(&mut self, cell: usize, result: u64) {
        let (Some(harness), Some(entry)) = (&self.harness, self.state.history.entry(result).cloned()) else { return };
        let blobs = harness.blobs().clone();
        self.spawn_blocking(move || News::CallDiff(cell, result, changes::between(std::iter::once(&entry), &blobs)));
    }

    /// The terminal is asked to take it, and a program that can; what became of it is said.
    fn copy(&mut self, text: String) {
        let osc = clipboard::osc52(&text);
        let sent = osc.is_some();
        self.signals.extend(osc);
        let ways = self.clipboard.clone();
        self.spawn_blocking(move || News::Copied(clipboard::copy(&text, &ways, sent)));
    }

    /// Files are found beside the screen; the tree is walked anew when what is known of it is old.
    fn find_files(&mut self, letters: String) {
        let known =
            self.files.as_ref().filter(|(since, _)| since.elapsed() < FILES_AGE).map(|(_, index)| index.clone());
        let workspace = self.state.workspace.clone();
        self.spawn_blocking(move || {
            let fresh = known.is_none();
            let index = known.unwrap_or_else(|| Index::read(&workspace));
            let found = index.find(&letters);
            News::Files { letters, found, index: fresh.then_some(index) }
        });
    }

    /// The draft, in the person's own editor; the terminal is theirs meanwhile.
    pub(crate) fn edit_draft(&mut self) {
        match crate::editor::edit(&self.state.composer.text(), &self.editor) {
            Ok(text) => self.state.composer.set(&text),
            Err(why) => self.state.say(why),
        }
        self.keep_soon = true;
        self.dirty = true;
    }

    fn load_diffs(&mut self) {
        let Some(harness) = &self.harness else { return };
        let blobs = harness.blobs().clone();
        let entries = self.state.history.entries().to_vec();
        let last = self.state.history.turns;
        self.spawn_blocking(move || {
            let turn = changes::between(entries.iter().filter(|e| e.turn == Some(last)), &blobs);
            News::Diffs(turn, changes::between(entries.iter(), &blobs))
        });
    }

    // ─── News ───

    async fn hear(&mut self, news: News) {
        self.dirty = true;
        if !matches!(news, News::Coloured) {
            self.pending = self.pending.saturating_sub(1);
        }
        if let News::Opened { .. } | News::NotOpened { .. } = news {
            self.opened += 1;
        }
        match news {
            News::Connected(found) => match *found {
                Err(error) => {
                    self.state.connection = Connection::Failed(error);
                    self.state.can_send = false;
                }
                Ok(harness) => {
                    let providers = harness.providers();
                    self.state.connection = Connection::Ready {
                        demo: providers.provider == "demo",
                        why: providers.why.clone(),
                        server: format!("{} · {}", providers.model, providers.describe(&providers.provider)),
                    };
                    let store = harness.store().clone();
                    self.spawn_blocking(move || News::Past(store.prompts()));
                    self.harness = Some(harness);
                    if let Some(open) = self.open.take() {
                        self.reopen(open).await;
                    }
                    let later = std::mem::take(&mut self.later);
                    Box::pin(self.perform(later)).await;
                }
            },
            // Another was asked for meanwhile.
            News::Opened { number, handle, .. } if number != self.opening => {
                self.leaving.push(handle.clone());
                tokio::spawn(async move { handle.close().await });
            }
            News::Opened { handle, mut watch, instead, kept, .. } => {
                self.is_urgent = true;
                self.state.session = Some(handle.id().clone());
                news::on_opened(&mut self.state, std::mem::take(&mut watch.past));
                self.read_only = watch.read_only;
                // Who only looks leaves the draft to whoever writes.
                if let Some(text) = kept.filter(|_| !self.read_only) {
                    Kept::restore(&text, &mut self.state);
                }
                // Under this Session nothing is kept yet of what is on the screen now.
                self.kept = Kept::default();
                self.keep_soon = true;
                if let Some(error) = instead {
                    self.state.transcript.push(Cell::Error(Box::new(error.body())));
                }
                self.watch = Some(*watch);
                for input in std::mem::take(&mut self.state.waiting) {
                    handle.send(input).await;
                }
                self.handle = Some(handle);
            }
            News::NotOpened { number, .. } if number != self.opening => {}
            // At the start there is nothing to go back to: it ends with the error, and no prompt goes elsewhere.
            News::NotOpened { error, .. } => self.failed = Some(error),
            News::Branch(branch) => self.state.branch = branch,
            News::CallDiff(cell, result, diffs) => self.state.transcript.set_diffs(cell, result, diffs),
            News::Diffs(turn, session) => news::on_diffs(&mut self.state, &turn, &session),
            News::Found(number, found) => news::on_found(&mut self.state, number, found),
            News::Files { letters, found, index } => {
                if let Some(index) = index {
                    self.files = Some((Instant::now(), index));
                }
                let is_wanted = self.state.composer.mention().is_some_and(|it| it.letters == letters);
                if is_wanted {
                    self.state.composer.files = Some((letters, found));
                }
            }
            News::Past(texts) => self.state.composer.past.load(texts),
            News::Copied(told) => self.state.say(told),
            News::Sessions(sessions, forks_of) => news::on_sessions(&mut self.state, &sessions, forks_of.as_deref()),
            News::Models(models) => news::on_models(&mut self.state, &models),
            News::Skills(skills) => news::on_skills(&mut self.state, &skills),
            News::Coloured => self.state.generation += 1,
            News::Broke => {
                // If it was an opening, nothing will come of it.
                if self.pending == 0 {
                    self.opened = self.opening;
                }
                let text = "a part of pixir broke off; pixir.log has the details, and the rest goes on".to_owned();
                self.state.transcript.push(Cell::Notice(Severity::Warning, text.into()));
            }
        }
        self.refresh_window();
    }

    /// What was found missing when the last frame was drawn.
    pub(crate) fn fetch(&mut self) {
        for (cell, result) in std::mem::take(&mut self.state.transcript.wanted_diffs) {
            self.load_call_diff(cell, result);
        }
    }

    /// Something the Session said.
    async fn hear_session(&mut self, event: Option<Event>) {
        self.dirty = true;
        match event {
            Some(event) => {
                self.keep_soon |= matches!(event, Event::Live(Live::QueueChanged { .. }));
                let effects = news::on_event(&mut self.state, event);
                self.perform(effects).await;
                self.refresh_window();
            }
            None => {
                self.watch = None;
                self.handle = None;
                self.state.can_send = false;
                self.state.status = Status::Idle;
                news::drop_questions(&mut self.state);
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
                if !has_focus {
                    return;
                }
                // The click or the key that brought the window back was meant for nothing in it.
                self.state.quiet_since = Instant::now();
                settings::reload_theme(&mut self.state);
                Vec::new()
            }
            Heard::Reply(reply) => {
                match reply {
                    Reply::Background(r, g, b) => self.state.is_light = luminance((r, g, b)) > 0.3,
                    Reply::Scheme { dark } => self.state.is_light = !dark,
                    Reply::Mode { .. } | Reply::Keyboard | Reply::Name(_) | Reply::Done => return,
                }
                settings::reload_theme(&mut self.state);
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
        }
        self.drain().await;
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
        }
        // Those that were left have to be at their end too: what ran in them is stopped, and recorded.
        for handle in &self.leaving {
            handle.close().await;
        }
        let spoken = self.state.history.head().is_some();
        Ok(Farewell {
            session: self.state.session.filter(|_| spoken),
            answer: self.state.transcript.last_answer().map(str::to_owned),
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

/// The branch that the workspace's repository is on, without running git.
pub(crate) fn branch_of(workspace: &Path) -> Option<String> {
    let head = std::fs::read_to_string(workspace.join(".git/HEAD")).ok()?;
    let head = head.trim();
    Some(head.strip_prefix("ref: refs/heads/").map_or_else(|| head.chars().take(8).collect(), str::to_owned))
}
