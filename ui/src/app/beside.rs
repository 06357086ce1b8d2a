//! Work beside the screen, and what it found.

use std::path::Path;
use std::time::{Duration, Instant};

use pixir_core::changes::{self, FileDiff};
use pixir_core::event::{Attachment, Severity};
use pixir_core::harness::Harness;
use pixir_core::session::Handle;
use pixir_core::skills::Skill;
use pixir_core::store::Summary;
use pixir_core::watch::Watch;
use pixir_core::{Error, Input, Result};

use super::App;
use crate::clipboard;
use crate::composer::mention::Index;
use crate::kept::Kept;
use crate::reading::find::Found;
use crate::remedy::Remedies;
use crate::replay::Replay;
use crate::state::{Connection, Effect, Now};
use crate::transcript::Cell;
use crate::update::{self, news};

/// How old what is known of the workspace's files may be when one is looked for.
const FILES_AGE: Duration = Duration::from_secs(20);

/// What work beside the screen found.
pub(super) enum News {
    Connected(Box<Result<Harness>>),
    /// The opening that was asked for n-th; with why it is another Session than was wanted.
    Opened {
        number: u64,
        handle: Handle,
        watch: Box<Watch>,
        instead: Option<Error>,
        /// What the screen had kept beside its Log.
        kept: Option<String>,
    },
    NotOpened {
        number: u64,
        error: Error,
    },
    Branch(Option<String>),
    CallDiff(usize, u64, Vec<FileDiff>),
    Diffs(Vec<FileDiff>, Vec<FileDiff>),
    Sessions(Vec<Summary>, Option<String>),
    Models(Vec<String>),
    Found(u64, Found),
    Files {
        letters: String,
        found: Vec<String>,
    },
    /// The tree, or its first part.
    Walked(Index),
    /// What was sent in earlier Sessions.
    Past(Vec<String>),
    /// What became of a text that was copied.
    Copied(String),
    Skills(Vec<Skill>),
    /// A message with its images, or why it has to stay in the line.
    Delivered {
        /// The opening that it was written under.
        opening: u64,
        outcome: std::result::Result<Input, (String, Error)>,
    },
    /// Something about the Session that was open then; of no use to another.
    Of(u64, Box<News>),
    /// An image for the draft, or what stands there instead, and what is said.
    Attached(std::result::Result<Attachment, (Option<String>, String)>),
    Coloured,
    /// Work broke off, and nothing else will be heard of it.
    Broke(Lost),
}

/// What is lost when work breaks off.
pub(super) enum Lost {
    Nothing,
    /// The how many-th.
    Opening(u64),
    /// A look at the files of the workspace.
    Walk,
    /// An image; with the message that it was for.
    Image(Option<String>),
}

impl App {
    pub(super) fn spawn(&mut self, work: impl Future<Output = News> + Send + 'static) {
        self.spawn_for(Lost::Nothing, work);
    }

    pub(super) fn spawn_for(&mut self, lost: Lost, work: impl Future<Output = News> + Send + 'static) {
        self.pending += 1;
        let tell = self.tell.clone();
        let task = tokio::spawn(work);
        // A panic in it ends it, and is said; the interface goes on.
        tokio::spawn(async move { drop(tell.send(task.await.unwrap_or(News::Broke(lost)))) });
    }

    pub(super) fn spawn_blocking(&mut self, work: impl FnOnce() -> News + Send + 'static) {
        self.spawn_blocking_for(Lost::Nothing, work);
    }

    fn spawn_blocking_for(&mut self, lost: Lost, work: impl FnOnce() -> News + Send + 'static) {
        self.pending += 1;
        let tell = self.tell.clone();
        let task = tokio::task::spawn_blocking(work);
        tokio::spawn(async move { drop(tell.send(task.await.unwrap_or(News::Broke(lost)))) });
    }

    /// Work on the Session that is open now.
    pub(super) fn spawn_on_session(&mut self, work: impl FnOnce() -> News + Send + 'static) {
        let opening = self.opening;
        self.spawn_blocking(move || News::Of(opening, Box::new(work())));
    }

    pub(super) fn load_call_diff(&mut self, cell: usize, result: u64) {
        let (Some(harness), Some(entry)) = (&self.harness, self.state.history.entry(result).cloned()) else { return };
        let blobs = harness.blobs().clone();
        self.spawn_on_session(move || News::CallDiff(cell, result, changes::between(std::iter::once(&entry), &blobs)));
    }

    /// The terminal is asked to take it, and a program that can; what became of it is said.
    pub(super) fn copy(&mut self, text: String) {
        let osc = clipboard::osc52(&text);
        let sent = osc.is_some();
        self.signals.extend(osc);
        let ways = self.clipboard.clone();
        self.spawn(async move { News::Copied(clipboard::copy(&text, &ways, sent).await) });
    }

    /// Files are found beside the screen, in what is known of the tree; where that is old, or not all of it, it is walked
    /// meanwhile and they are looked for again.
    pub(super) fn find_files(&mut self, letters: String) {
        let known = self.files.as_ref().map(|(_, index)| index.clone());
        let is_fresh = self.files.as_ref().is_some_and(|(since, it)| it.is_whole && since.elapsed() < FILES_AGE);
        if let Some(index) = known.clone() {
            let letters = letters.clone();
            self.spawn_blocking(move || News::Files { found: index.find(&letters), letters });
        }
        // One walk at a time; the newest letters wait for it.
        if is_fresh || self.walking.replace(letters).is_some() {
            return;
        }
        let workspace = self.state.workspace.clone();
        let walk = if known.is_none() { Index::begin } else { Index::read };
        self.spawn_blocking_for(Lost::Walk, move || News::Walked(walk(&workspace)));
    }

    /// Files that a message mentions are read when it is sent; a name that is no file is only a word.
    pub(super) fn deliver(&mut self, mut input: Input, mentions: Vec<String>) {
        let Some(harness) = self.harness.clone() else { return };
        let opening = self.opening;
        self.state.reading_images += 1;
        let text = match &input {
            Input::Prompt(it) | Input::Steer(it) | Input::FollowUp(it) => Some(it.text.clone()),
            _ => None,
        };
        self.spawn_blocking_for(Lost::Image(text), move || {
            if let Input::Prompt(message) | Input::Steer(message) | Input::FollowUp(message) = &mut input {
                for path in mentions.iter().filter(|path| harness.workspace().join(path).is_file()) {
                    match harness.attach(path) {
                        Ok(image) => message.attachments.push(image),
                        Err(error) => {
                            let text = std::mem::take(&mut message.text);
                            return News::Delivered { opening, outcome: Err((text, error)) };
                        }
                    }
                }
            }
            News::Delivered { opening, outcome: Ok(input) }
        });
    }

    /// What could not be sent is in the line again; what was typed meanwhile comes behind it.
    fn put_back(&mut self, text: &str, why: &str) {
        let since = self.state.composer.text();
        self.state.composer.set([text, since.as_str()].join("\n").trim_end());
        self.state.say(why);
    }

    pub(super) fn attach_file(&mut self, path: String, pasted: String) {
        let Some(harness) = self.harness.clone() else { return };
        let remedies = self.state.more.remedies.clone();
        self.state.reading_images += 1;
        self.spawn_blocking_for(Lost::Image(None), move || {
            News::Attached(harness.attach(&path).map_err(|error| (Some(pasted), told(&error, &remedies))))
        });
    }

    pub(super) fn attach_clipboard(&mut self) {
        let Some(harness) = self.harness.clone() else { return };
        let ways = self.clipboard.clone();
        let remedies = self.state.more.remedies.clone();
        self.state.reading_images += 1;
        self.spawn_for(Lost::Image(None), async move {
            let image = clipboard::image(&ways).await.map_err(str::to_owned);
            let kept =
                image.and_then(|bytes| harness.attach_bytes(&bytes, "clipboard.png").map_err(|e| told(&e, &remedies)));
            News::Attached(kept.map_err(|why| (None, why)))
        });
    }

    pub(super) fn look_at_branch(&mut self) {
        let workspace = self.state.workspace.clone();
        self.spawn_blocking(move || News::Branch(branch_of(&workspace)));
    }

    pub(super) fn load_diffs(&mut self) {
        let Some(harness) = &self.harness else { return };
        let blobs = harness.blobs().clone();
        let entries = self.state.history.entries().to_vec();
        let last = self.state.history.turns;
        self.spawn_on_session(move || {
            let turn = changes::between(entries.iter().filter(|e| e.turn == Some(last)), &blobs);
            News::Diffs(turn, changes::between(entries.iter(), &blobs))
        });
    }

    /// It has come to something.
    pub(super) async fn hear(&mut self, news: News) {
        self.state.now = Now::read();
        self.dirty = true;
        if !matches!(news, News::Coloured) {
            self.pending = self.pending.saturating_sub(1);
        }
        if let News::Opened { .. } | News::NotOpened { .. } = news {
            self.opened += 1;
        }
        let news = match news {
            News::Of(opening, _) if opening != self.opening => return,
            News::Of(_, news) => *news,
            news => news,
        };
        match news {
            News::Of(..) => {}
            News::Connected(found) => match *found {
                Err(error) => {
                    self.state.connection = Connection::Failed(error);
                    self.state.can_send = false;
                    // What was pasted meanwhile is only a path.
                    for effect in std::mem::take(&mut self.later) {
                        if let Effect::AttachFile { pasted, .. } = effect {
                            self.state.composer.insert(&pasted);
                        }
                    }
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
                match self.replay.take() {
                    Some(telling) => {
                        let replay = Replay::new(watch.past.entries().to_vec(), telling);
                        self.state.replay = Some(replay);
                        update::replay::rewrite(&mut self.state);
                    }
                    None => news::on_opened(&mut self.state, std::mem::take(&mut watch.past)),
                }
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
                self.handle = Some(handle);
            }
            News::NotOpened { number, .. } if number != self.opening => {}
            // At the start there is nothing to go back to: it ends with the error, and no prompt goes elsewhere.
            News::NotOpened { error, .. } => self.failed = Some(error),
            News::Branch(branch) => self.state.branch = branch,
            News::CallDiff(cell, result, diffs) => self.state.transcript.set_diffs(cell, result, diffs),
            News::Diffs(turn, session) => news::on_diffs(&mut self.state, &turn, &session),
            News::Found(number, found) => {
                let effects = news::on_found(&mut self.state, number, found);
                Box::pin(self.perform(effects)).await;
            }
            News::Walked(index) => {
                self.files = Some((Instant::now(), index));
                if let Some(letters) = self.walking.take() {
                    self.find_files(letters);
                }
            }
            News::Files { letters, found } => {
                let is_wanted = self.state.composer.mention().is_some_and(|it| it.letters == letters);
                if is_wanted {
                    self.state.composer.files = Some((letters, found));
                }
            }
            News::Delivered { opening, outcome } => {
                self.state.reading_images -= 1;
                match outcome {
                    Ok(input) if opening == self.opening && self.handle.is_some() => self.send(input).await,
                    // It was meant for a Session that was left meanwhile, or has closed.
                    Ok(Input::Prompt(it) | Input::Steer(it) | Input::FollowUp(it)) => {
                        self.put_back(&it.text, "it was not sent: its session is not open any more");
                    }
                    Ok(_) => {}
                    Err((text, error)) => self.put_back(&text, &told(&error, &self.state.more.remedies.clone())),
                }
            }
            News::Attached(Ok(image)) => {
                self.state.reading_images -= 1;
                self.state.composer.insert_image(image);
            }
            News::Attached(Err((pasted, why))) => {
                self.state.reading_images -= 1;
                if let Some(text) = pasted {
                    self.state.composer.insert(&text);
                }
                self.state.say(why);
            }
            News::Past(texts) => self.state.composer.past.load(texts),
            News::Copied(told) => self.state.say(told),
            News::Sessions(sessions, forks_of) => news::on_sessions(&mut self.state, &sessions, forks_of.as_deref()),
            News::Models(models) => news::on_models(&mut self.state, &models),
            News::Skills(skills) => news::on_skills(&mut self.state, &skills),
            News::Coloured => self.state.generation += 1,
            News::Broke(lost) => {
                match lost {
                    Lost::Nothing => {}
                    Lost::Opening(number) => {
                        self.opened += 1;
                        self.state.can_send &= number != self.opening;
                    }
                    Lost::Walk => self.walking = None,
                    Lost::Image(text) => {
                        self.state.reading_images -= 1;
                        if let Some(text) = text {
                            self.put_back(&text, "it was not sent");
                        }
                    }
                }
                let text = "a part of pixir broke off; pixir.log has the details, and the rest goes on".to_owned();
                self.state.transcript.push(Cell::Notice(Severity::Warning, text.into()));
            }
        }
        self.send_waiting().await;
        self.refresh_window();
    }
}

/// What went wrong and what to do, on one line.
fn told(error: &Error, remedies: &Remedies) -> String {
    format!("{}; {}", error.message, remedies.word(&error.remedy))
}

/// The branch that the workspace's repository is on, without running git.
fn branch_of(workspace: &Path) -> Option<String> {
    // The workspace may be a folder of the repository, or a work tree, whose `.git` says where the rest is.
    let git = workspace.ancestors().map(|folder| folder.join(".git")).find(|git| git.exists())?;
    let folder = match std::fs::read_to_string(&git) {
        Ok(file) => git.parent()?.join(file.strip_prefix("gitdir:")?.trim()),
        Err(_) => git,
    };
    let head = std::fs::read_to_string(folder.join("HEAD")).ok()?;
    let head = head.trim();
    Some(head.strip_prefix("ref: refs/heads/").map_or_else(|| head.chars().take(8).collect(), str::to_owned))
}
