//! Background tasks, and the handling of their results.

use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use pixir_core::changes::FileDiff;
use pixir_core::event::{Attachment, Severity};
use pixir_core::input::WorkflowOrder;
use pixir_core::{Error, Git, Handle, Harness, Input, Result, Watch, WorkflowPlan, changes};
use tokio::task::JoinHandle;

use super::connecting::Connecting;
use super::{App, folders, log_tail};
use crate::app::agents::Entered;
use crate::app::clipboard::{self, Osc52};
use crate::app::doors::Exported;
use crate::app::saved_draft::SavedDraft;
use crate::composer::mention::Index;
use crate::input::argument::{Argument, Candidate};
use crate::input::offer::Offer;
use crate::overlay::tree::TreeView;
use crate::overlay::{Load, Loaded, Notification, Source};
use crate::remedy::Remedies;
use crate::state::{Connection, Effect, Now, OnHarness};
use crate::transcript::Cell;
use crate::transcript::reading::find::Matches;
use crate::transcript::replay::Replay;
use crate::update::workflow::RefusedPlan;
use crate::update::{self, arguments, events, offers, refused, workflow};

/// The list of the workspace's files is read again when it is older than this.
const MAX_INDEX_AGE: Duration = Duration::from_secs(20);

/// The result of a background task.
pub(super) enum BackgroundEvent {
    Connected(Box<Result<Harness>>),
    /// A server that pixir waits for has said something.
    Waits(String),
    /// The `number`-th open has succeeded. `instead`: why this is not the Session that the user wanted.
    Opened {
        number: u64,
        handle: Handle,
        watch: Box<Watch>,
        instead: Option<Error>,
        /// The draft that was saved next to its Log.
        draft: Option<String>,
    },
    NotOpened {
        number: u64,
        error: Error,
    },
    /// The branch of the workspace's repository, and whether files of it are changed, if that was looked for.
    Repository(Option<String>, Option<bool>),
    CallDiff(usize, u64, Vec<FileDiff>),
    /// What a layer shows.
    Loaded(Loaded),
    /// The same, of work that goes on.
    LoadedPart(Loaded),
    /// Settings, models, and Providers that the user connects.
    Connecting(Connecting),
    /// The result of the search with this number.
    Matches(u64, Matches),
    Files {
        letters: String,
        found: Vec<String>,
    },
    /// The files of the workspace, or the first part of them.
    Walked(Index),
    /// The prompts of earlier Sessions.
    Past(Vec<String>),
    /// Work on a stored Session has failed.
    NotDone(Error),
    /// An agent's Session is open, or the user's own again; or why it could not be opened.
    Entered(Result<Box<Entered>>),
    /// An export has ended.
    Exported(Exported),
    /// What can complete an argument.
    Candidates(Argument, Vec<Candidate>),
    /// A report for the user about a text that was copied.
    Copied(String),
    /// What a run would be, or why there can be none.
    WorkflowPlanned(Box<Result<(WorkflowOrder, WorkflowPlan), RefusedPlan>>),
    /// The templates and skills that slash commands can name.
    Offers(Vec<Offer>),
    /// The text of a prompt of a server, or why there is none.
    PromptText(String, std::result::Result<String, String>),
    /// A message with its images; or the text to put back into the composer, and the reason.
    Delivered {
        /// The open of the Session that it was written for.
        open: u64,
        outcome: Delivered,
    },
    /// A result that is only of use to the Session of this open.
    Of(u64, Box<BackgroundEvent>),
    /// Whether a file is there that the user wants to mention.
    Mentioned {
        path: String,
        mention: String,
        is_there: bool,
    },
    Attached(Attached),
    /// Syntax colours have arrived.
    Coloured,
    /// The task has panicked, and sends nothing else.
    Failed(FailedTask),
}

/// A message with its images; or its text, and why one of them cannot be read.
type Delivered = std::result::Result<Input, (String, Error)>;

/// An image for the draft; or the text to insert instead, and the message to show.
type Attached = std::result::Result<Attachment, (Option<String>, String)>;

/// The task that panicked, if anything waits for its result.
pub(super) enum FailedTask {
    Other,
    /// The open with this number.
    Open(u64),
    /// Listing the files of the workspace.
    Walk,
    /// Reading an image, with the text of the message that it was for.
    Image(Option<String>),
}

impl App {
    pub(super) fn spawn(&mut self, work: impl Future<Output = BackgroundEvent> + Send + 'static) {
        self.spawn_for(FailedTask::Other, work);
    }

    pub(super) fn spawn_for(
        &mut self,
        failed: FailedTask,
        work: impl Future<Output = BackgroundEvent> + Send + 'static,
    ) {
        self.start(failed, Box::pin(work));
    }

    // Not generic: the runtime compiles 14 KB of code for each type of future.
    fn start(&mut self, failed: FailedTask, work: BoxFuture<'static, BackgroundEvent>) {
        let task = self.core.spawn(work);
        self.report(failed, task);
    }

    pub(super) fn spawn_blocking(&mut self, work: impl FnOnce() -> BackgroundEvent + Send + 'static) {
        self.spawn_blocking_for(FailedTask::Other, work);
    }

    fn spawn_blocking_for(&mut self, failed: FailedTask, work: impl FnOnce() -> BackgroundEvent + Send + 'static) {
        self.start_blocking(failed, Box::new(work));
    }

    fn start_blocking(&mut self, failed: FailedTask, work: Box<dyn FnOnce() -> BackgroundEvent + Send>) {
        let task = self.core.spawn_blocking(work);
        self.report(failed, task);
    }

    /// Sends the result of a task to the interface.
    fn report(&mut self, failed: FailedTask, task: JoinHandle<BackgroundEvent>) {
        self.running_tasks += 1;
        let sender = self.sender.clone();
        // A panic ends only the task. The interface reports it and continues.
        self.core.spawn(async move { drop(sender.send(task.await.unwrap_or(BackgroundEvent::Failed(failed)))) });
    }

    /// What a background task reports to.
    pub(super) fn sender(&self) -> tokio::sync::mpsc::UnboundedSender<BackgroundEvent> {
        self.sender.clone()
    }

    /// Runs work whose result is only of use to the Session that is open now.
    pub(super) fn spawn_on_session(&mut self, work: impl FnOnce() -> BackgroundEvent + Send + 'static) {
        let open = self.opens_requested;
        self.spawn_blocking(move || BackgroundEvent::Of(open, Box::new(work())));
    }

    /// Reads what a layer shows.
    pub(super) fn load(&mut self, harness: Harness, load: Load) {
        let source = Source {
            harness,
            session: self.state.session.id.clone(),
            remedies: self.state.look.more.remedies.clone(),
            end_of: log_tail::end_of,
        };
        self.spawn_on_session(move || BackgroundEvent::Loaded(load.run(&source)));
    }

    pub(super) fn load_call_diff(&mut self, cell: usize, result: u64) {
        let (Some(harness), Some(entry)) = (&self.harness, self.state.history.entry(result).cloned()) else { return };
        let blobs = harness.blobs().clone();
        self.spawn_on_session(move || BackgroundEvent::CallDiff(cell, result, changes::of_call(&entry, &blobs)));
    }

    /// Copies a text with the terminal and with a clipboard program, and reports the result.
    pub(super) fn copy(&mut self, text: String) {
        let sequence = clipboard::osc52(&text);
        let osc52 = if sequence.is_some() { Osc52::Sent } else { Osc52::TooLong };
        self.signals.extend(sequence);
        let clipboards = self.clipboards.clone();
        self.spawn(async move { BackgroundEvent::Copied(clipboard::copy(&text, &clipboards, osc52).await) });
    }

    /// Finds files in the last list of the workspace's files. If that list is old or incomplete, it is read again
    /// meanwhile and the search is repeated.
    pub(super) fn find_files(&mut self, letters: String) {
        if self.state.composer.typed_argument().is_some_and(|it| it.argument == Argument::Folder) {
            let (above, _) = folders::parts(&letters);
            let folder = self.program.path(above, &self.state.session.workspace);
            self.spawn_blocking(move || BackgroundEvent::Files { found: folders::of(&letters, &folder), letters });
            return;
        }
        if let Some(harness) = self.harness.clone()
            && harness.mentions_server(&letters)
        {
            self.spawn(async move {
                // A server that does not start is no reason to say so while the user types.
                let found = harness.server_resources(&letters).await.unwrap_or_default();
                BackgroundEvent::Files { letters, found }
            });
            return;
        }
        let names = self.harness.clone();
        let index = self.file_index.as_ref().map(|(_, index)| index.clone());
        let is_fresh =
            self.file_index.as_ref().is_some_and(|(since, it)| it.is_whole && since.elapsed() < MAX_INDEX_AGE);
        if let Some(index) = index.clone() {
            let letters = letters.clone();
            self.spawn_blocking(move || {
                let servers = names.map_or(Vec::new(), |it| it.servers_with_resources(&letters));
                let servers = servers.into_iter().map(|it| format!("{it}:"));
                BackgroundEvent::Files { found: servers.chain(index.find(&letters)).collect(), letters }
            });
        }
        // One walk runs at a time, and the newest letters wait for it.
        if is_fresh || self.walk_letters.replace(letters).is_some() {
            return;
        }
        let workspace = self.state.session.workspace.clone();
        let walk = if index.is_none() { Index::begin } else { Index::read };
        self.spawn_blocking_for(FailedTask::Walk, move || BackgroundEvent::Walked(walk(&workspace)));
    }

    /// Reads the images that a message mentions, and sends it. A mention that is no file is plain text.
    pub(super) fn deliver(&mut self, mut input: Input, mentions: Vec<String>) {
        let Some(harness) = self.harness.clone() else { return };
        let open = self.opens_requested;
        self.state.pending.images += 1;
        let text = match &input {
            Input::Prompt(it) | Input::Steer(it) | Input::FollowUp(it) => Some(it.text.clone()),
            _ => None,
        };
        self.spawn_blocking_for(FailedTask::Image(text), move || {
            if let Input::Prompt(message) | Input::Steer(message) | Input::FollowUp(message) = &mut input {
                for path in mentions.iter().filter(|path| harness.workspace().join(path).is_file()) {
                    match harness.attach(path) {
                        Ok(image) => message.attachments.push(image),
                        Err(error) => {
                            let text = std::mem::take(&mut message.text);
                            return BackgroundEvent::Delivered { open, outcome: Err((text, error)) };
                        }
                    }
                }
            }
            BackgroundEvent::Delivered { open, outcome: Ok(input) }
        });
    }

    /// Puts a message that could not be sent back into the composer, before the text that the user has typed since.
    fn put_back(&mut self, text: &str, why: &str) {
        let since = self.state.composer.text();
        self.state.composer.set([text, since.as_str()].join("\n").trim_end());
        self.state.say(why);
    }

    pub(super) fn attach_file(&mut self, harness: Harness, path: String, pasted: String) {
        let remedies = self.state.look.more.remedies.clone();
        self.state.pending.images += 1;
        self.spawn_blocking_for(FailedTask::Image(None), move || {
            BackgroundEvent::Attached(
                harness.attach(&path).map_err(|error| (Some(pasted), one_line(&error, &remedies))),
            )
        });
    }

    /// Looks whether a file is there that the user has named.
    pub(super) fn mention_file(&mut self, path: String, mention: String) {
        let full = self.program.path(&path, &self.state.session.workspace);
        self.spawn_blocking(move || BackgroundEvent::Mentioned { is_there: full.exists(), path, mention });
    }

    pub(super) fn attach_clipboard(&mut self, harness: Harness) {
        let clipboards = self.clipboards.clone();
        let remedies = self.state.look.more.remedies.clone();
        self.state.pending.images += 1;
        self.spawn_for(FailedTask::Image(None), async move {
            let image = clipboard::image(&clipboards).await.map_err(str::to_owned);
            let attached = image
                .and_then(|bytes| harness.attach_bytes(&bytes, "clipboard.png").map_err(|e| one_line(&e, &remedies)));
            BackgroundEvent::Attached(attached.map_err(|why| (None, why)))
        });
    }

    /// Reads the branch, which is quick.
    pub(super) fn read_branch(&mut self) {
        let workspace = self.state.session.workspace.clone();
        self.spawn_blocking(move || BackgroundEvent::Repository(Git::branch_of(&workspace), None));
    }

    /// Reads the branch, and whether files are changed. That asks the file system about each tracked file.
    pub(super) fn read_repository(&mut self) {
        let workspace = self.state.session.workspace.clone();
        self.spawn_blocking(move || {
            let changes = Git::of(&workspace).and_then(|git| git.has_changes());
            BackgroundEvent::Repository(Git::branch_of(&workspace), Some(changes == Some(true)))
        });
    }

    pub(super) fn load_comparison(&mut self, harness: &Harness, left: &[u64], right: &[u64]) {
        let blobs = harness.blobs().clone();
        let of = |seqs: &[u64]| seqs.iter().filter_map(|seq| self.state.history.entry(*seq).cloned()).collect();
        let (left, right): (Vec<_>, Vec<_>) = (of(left), of(right));
        self.spawn_on_session(move || {
            let files = changes::across(&left, &right, &blobs);
            BackgroundEvent::Loaded(Loaded::new(move |view: &mut TreeView| view.compared(&files)))
        });
    }

    /// Handles the result of a background task.
    pub(super) async fn on_background(&mut self, result: BackgroundEvent) {
        self.state.now = Now::read();
        self.dirty = true;
        // Colours come from the highlighter's thread, which is not a counted task; an attempt to sign in goes on after its
        // invitation, and a search reports more than once.
        if !matches!(
            result,
            BackgroundEvent::Coloured
                | BackgroundEvent::LoadedPart(_)
                | BackgroundEvent::Waits(_)
                | BackgroundEvent::Connecting(Connecting::Invited { .. })
        ) {
            self.running_tasks = self.running_tasks.saturating_sub(1);
        }
        if let BackgroundEvent::Opened { .. } | BackgroundEvent::NotOpened { .. } = result {
            self.opens_finished += 1;
        }
        let result = match result {
            BackgroundEvent::Of(open, _) if open != self.opens_requested => return,
            BackgroundEvent::Of(_, result) => *result,
            result => result,
        };
        match result {
            BackgroundEvent::Of(..) => {}
            BackgroundEvent::Connected(connected) => self.on_connected(*connected).await,
            BackgroundEvent::Waits(waits) => self.on_words(waits),
            // The user has requested another Session meanwhile.
            BackgroundEvent::Opened { number, handle, .. } if number != self.opens_requested => {
                self.closing.push(handle.clone());
                self.core.spawn(async move { handle.close().await });
            }
            BackgroundEvent::Opened { handle, watch, instead, draft, .. } => {
                self.on_opened(handle, watch, instead, draft).await;
            }
            BackgroundEvent::NotOpened { number, .. } if number != self.opens_requested => {}
            // There is no Session to go back to, so the interface ends with the error.
            BackgroundEvent::NotOpened { error, .. } => self.startup_error = Some(error),
            BackgroundEvent::Entered(Ok(entered)) => self.on_entered(*entered).await,
            BackgroundEvent::Entered(Err(error)) => self.state.say(one_line(&error, &self.state.look.more.remedies)),
            BackgroundEvent::Repository(branch, changes) => {
                self.state.session.branch = branch;
                self.state.session.has_changes = changes.unwrap_or(self.state.session.has_changes);
            }
            BackgroundEvent::CallDiff(cell, result, diffs) => self.state.transcript.set_diffs(cell, result, diffs),
            BackgroundEvent::Loaded(loaded) | BackgroundEvent::LoadedPart(loaded) => {
                let effects = events::on_loaded(&mut self.state, &loaded);
                Box::pin(self.perform(effects)).await;
            }
            BackgroundEvent::Matches(number, matches) => {
                let effects = events::on_matches(&mut self.state, number, matches);
                Box::pin(self.perform(effects)).await;
            }
            BackgroundEvent::Walked(index) => {
                self.file_index = Some((Instant::now(), index));
                if let Some(letters) = self.walk_letters.take() {
                    self.find_files(letters);
                }
            }
            BackgroundEvent::Files { letters, found } => {
                events::notify(&mut self.state, Notification::Files { letters: &letters, found: &found });
                if self.state.composer.path_letters().as_ref() == Some(&letters) {
                    self.state.composer.files = Some((letters, found));
                }
            }
            BackgroundEvent::Delivered { open, outcome } => self.on_delivered(open, outcome).await,
            BackgroundEvent::Mentioned { path, mention, is_there } => {
                update::commands::on_mentioned(&mut self.state, &path, &mention, is_there);
            }
            BackgroundEvent::Attached(attached) => self.on_attached(attached),
            BackgroundEvent::Past(texts) => self.state.composer.past.load(texts),
            BackgroundEvent::NotDone(error) => {
                let why = one_line(&error, &self.state.look.more.remedies);
                refused::beside(&mut self.state, why);
            }
            BackgroundEvent::Exported(exported) => self.on_exported(exported),
            BackgroundEvent::Candidates(argument, candidates) => {
                arguments::on_loaded(&mut self.state, argument, candidates);
            }
            BackgroundEvent::Copied(report) => self.state.say(report),
            BackgroundEvent::Connecting(result) => self.on_connecting(result).await,
            BackgroundEvent::WorkflowPlanned(planned) => {
                let effects = workflow::on_planned(&mut self.state, *planned);
                Box::pin(self.perform(effects)).await;
            }
            BackgroundEvent::Offers(offers) => {
                let effects = offers::on_loaded(&mut self.state, offers);
                Box::pin(self.perform(effects)).await;
            }
            BackgroundEvent::PromptText(name, text) => offers::on_prompt(&mut self.state, &name, text),
            // Any cell may contain the code, so every visible cell is laid out again.
            BackgroundEvent::Coloured => {
                self.state.transcript.tail_changed();
                if self.state.look.highlighter.take_whole() {
                    self.state.look.generation += 1;
                }
            }
            BackgroundEvent::Failed(failed) => self.on_failed(failed),
        }
        let effects = update::choose_late(&mut self.state);
        Box::pin(self.perform(effects)).await;
        self.send_waiting().await;
        self.refresh_window();
    }

    /// The Harness is there, or why there is none.
    async fn on_connected(&mut self, connected: Result<Harness>) {
        match connected {
            Err(error) => {
                self.state.session.connection = Connection::Failed(error);
                self.state.session.can_send = false;
                // Without a Harness no image can be read, so pasted paths stay text.
                for work in std::mem::take(&mut self.until_connected) {
                    if let OnHarness::AttachFile { pasted, .. } = work {
                        self.state.composer.insert(&pasted);
                    }
                }
            }
            Ok(harness) => {
                self.show_connection(&harness);
                if self.state.session.is_demo {
                    self.state.say("any key skips the waiting");
                }
                let store = harness.store().clone();
                self.spawn_blocking(move || BackgroundEvent::Past(store.prompts()));
                self.harness = Some(harness.clone());
                if let Some(open) = self.open.take() {
                    self.reopen(harness, open).await;
                }
                let effects = std::mem::take(&mut self.until_connected).into_iter().map(Effect::from).collect();
                Box::pin(self.perform(effects)).await;
            }
        }
    }

    /// The Session that the user wanted last is open. `instead`: why it is another one.
    async fn on_opened(
        &mut self,
        handle: Handle,
        mut watch: Box<Watch>,
        instead: Option<Error>,
        draft: Option<String>,
    ) {
        self.is_urgent = true;
        self.state.session.id = Some(handle.id().clone());
        match self.replay.take() {
            Some(options) => {
                let replay = Replay::new(watch.past.entries().to_vec(), options);
                self.state.replay = Some(replay);
                update::replay::rebuild(&mut self.state);
            }
            None => events::on_opened(&mut self.state, std::mem::take(&mut watch.past)),
        }
        self.state.session.read_only = watch.now.read_only;
        // The saved draft belongs to the process that writes the Session.
        if let Some(text) = draft.filter(|_| !self.state.session.read_only) {
            SavedDraft::restore(&text, &mut self.state);
        }
        // The draft on the screen is not saved under this Session yet.
        self.saved_draft = SavedDraft::default();
        self.save_soon = true;
        match instead {
            Some(error) if refused::is_of_user(&self.state, "open") => {
                let why = refused::because(&self.state, &error);
                refused::refuse_late(&mut self.state, "open", why);
            }
            Some(error) => self.state.transcript.push(Cell::Error(Box::new(error.body()))),
            None => {}
        }
        if self.state.transcript.is_empty() && !self.state.session.is_demo && self.state.replay.is_none() {
            self.load_recent();
        }
        let mut effects = events::on_present(&mut self.state, &watch.now);
        effects.extend(update::connect::use_connected(&mut self.state));
        self.watch = Some(*watch);
        self.handle = Some(handle);
        self.read_repository();
        Box::pin(self.perform(effects)).await;
    }

    /// The images of a message are read.
    async fn on_delivered(&mut self, open: u64, outcome: Delivered) {
        self.state.pending.images -= 1;
        match outcome {
            Ok(input) if open == self.opens_requested && self.handle.is_some() => self.send(input).await,
            // The message was for a Session that the user has left, or that has closed.
            Ok(Input::Prompt(it) | Input::Steer(it) | Input::FollowUp(it)) => {
                self.put_back(&it.text, "not sent: its session is not open any more");
            }
            Ok(_) => {}
            Err((text, error)) => {
                let why = one_line(&error, &self.state.look.more.remedies);
                self.put_back(&text, &why);
            }
        }
    }

    fn on_attached(&mut self, attached: Attached) {
        self.state.pending.images -= 1;
        match attached {
            Ok(image) => self.state.composer.insert_image(image),
            Err((pasted, why)) => {
                let is_typed = refused::is_asked(&self.state, "attach");
                if let Some(text) = pasted.filter(|_| !is_typed) {
                    self.state.composer.insert(&text);
                }
                refused::refuse_late(&mut self.state, "attach", why);
            }
        }
    }

    fn on_failed(&mut self, failed: FailedTask) {
        match failed {
            FailedTask::Other => {}
            FailedTask::Open(number) => {
                self.opens_finished += 1;
                self.state.session.can_send &= number != self.opens_requested;
            }
            FailedTask::Walk => self.walk_letters = None,
            FailedTask::Image(text) => {
                self.state.pending.images -= 1;
                if let Some(text) = text {
                    self.put_back(&text, "not sent");
                }
            }
        }
        let text = "a background task crashed; pixir continues, and pixir.log has the details".to_owned();
        self.state.transcript.push(Cell::Notice(Severity::Warning, text.into()));
    }
}

/// An error and its remedy, on one line.
pub(super) fn one_line(error: &Error, remedies: &Remedies) -> String {
    format!("{}; {}", error.message, remedies.word(&error.remedy))
}
