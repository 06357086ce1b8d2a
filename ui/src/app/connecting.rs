//! Background work for settings and for Providers that the user connects.

use std::path::PathBuf;
use std::sync::Arc;

use pixir_core::layers::{Setting, Settings, Source};
use pixir_core::provider::{Account, Connector, LocalServer, NewProvider, key};
use pixir_core::store::Summary;
use pixir_core::{Code, Harness, Result};
use tokio::sync::oneshot;

use super::App;
use super::background::BackgroundEvent;
use super::editor::Borrower;
use super::launch::SettingsStore;
use crate::overlay::Loaded;
use crate::overlay::connect::{News, Order};
use crate::overlay::models::ModelsView;
use crate::overlay::save_for::SavePlace;
use crate::state::{Connection, Effect};
use crate::update::{configure, connect};

/// How long a server may take to list its models.
pub(super) const MODELS_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(3);
/// The most Sessions that the welcome names.
const RECENT: usize = 3;

/// The result of such work.
pub(super) enum Connecting {
    Settings(Box<Result<Settings>>),
    /// A setting was saved in a file; and what is stronger than that file.
    Saved {
        key: String,
        saved: Result<(PathBuf, Option<String>)>,
    },
    /// A setting was taken out of a file, if it was in one; and what holds now.
    Unset {
        key: String,
        removed: Result<(Option<PathBuf>, Option<Setting>)>,
    },
    Recent(Vec<Summary>),
    Accounts(Result<Vec<Account>>),
    LocalServers(Vec<LocalServer>),
    /// The issuer has invited the user; the attempt goes on.
    Invited {
        attempt: u64,
        url: String,
        code: Option<String>,
    },
    NewProvider {
        attempt: u64,
        made: Box<Result<NewProvider>>,
    },
    /// The user does not wait for it any more.
    Cancelled,
}

/// The attempt to connect that the user waits for.
#[derive(Default)]
pub(super) struct Attempt {
    number: u64,
    /// Takes what the user pastes in place of a browser that does not come back.
    answer: Option<oneshot::Sender<String>>,
    /// Dropping it ends the attempt.
    _cancel: Option<oneshot::Sender<()>>,
}

impl App {
    /// Finds Providers and the workspace.
    pub(super) fn connect(&mut self) {
        let (mut connecting, sender) = ((self.connect)(), self.sender.clone());
        let Some(mut waits) = self.program.waits.clone() else {
            self.spawn(async move { BackgroundEvent::Connected(Box::new(connecting.await)) });
            return;
        };
        // The words of a server that still starts come while it connects, and end with that: a task that went on would be work
        // that a script waits for.
        self.spawn(async move {
            loop {
                tokio::select! {
                    biased;
                    connected = &mut connecting => return BackgroundEvent::Connected(Box::new(connected)),
                    Ok(()) = waits.changed() => {
                        let said = waits.borrow_and_update().clone();
                        // An interface that has ended shows no words.
                        let _ = sender.send(BackgroundEvent::Waits(said));
                    }
                }
            }
        });
    }

    /// Shows what a server says that pixir waits for.
    pub(super) fn on_words(&mut self, words: String) {
        if let Connection::Starting { said } = &mut self.state.session.connection {
            *said = words;
        }
    }

    pub(super) fn load_settings(&mut self) {
        let settings = Arc::clone(&self.settings);
        self.spawn_blocking(move || BackgroundEvent::Connecting(Connecting::Settings(Box::new(settings.read()))));
    }

    /// Saves settings in a file, and reports the last one, or the first that failed.
    pub(super) fn save_settings(&mut self, changed: Vec<(String, String)>, place: SavePlace) {
        let (settings, saving) = (Arc::clone(&self.settings), Arc::clone(&self.saving));
        self.spawn_blocking(move || {
            let _alone = saving.lock();
            let mut report =
                (String::new(), Err(pixir_core::Error::new(Code::Usage, "nothing to save", "name a setting")));
            for (key, value) in changed {
                let saved = settings.save(&key, &value, place);
                let has_failed = saved.is_err();
                report = (key, saved);
                if has_failed {
                    break;
                }
            }
            let (key, saved) = report;
            let own = match place {
                SavePlace::User => Source::User,
                SavePlace::Project => Source::Project,
            };
            let all = settings.read().map(|it| it.all()).unwrap_or_default();
            let stronger = all.into_iter().find(|it| it.key == key && it.source > own).map(|it| it.from);
            BackgroundEvent::Connecting(Connecting::Saved { key, saved: saved.map(|path| (path, stronger)) })
        });
    }

    /// Takes a setting out of a file, and reports the value that holds then.
    pub(super) fn unset_setting(&mut self, key: String, place: Option<SavePlace>) {
        let (settings, saving) = (Arc::clone(&self.settings), Arc::clone(&self.saving));
        self.spawn_blocking(move || {
            let _alone = saving.lock();
            let removed = place.map(|place| settings.unset(&key, place)).transpose();
            let all = settings.read().map(|it| it.all()).unwrap_or_default();
            let left = all.into_iter().find(|it| it.key == key);
            BackgroundEvent::Connecting(Connecting::Unset { removed: removed.map(|path| (path, left)), key })
        });
    }

    pub(super) fn load_models(&mut self, harness: Harness) {
        let settings = Arc::clone(&self.settings);
        self.spawn(async move {
            let store = harness.clone();
            let sessions = tokio::task::spawn_blocking(move || store.sessions());
            let providers = harness.providers();
            let (offered, sessions) = tokio::join!(providers.offered(MODELS_TIMEOUT), sessions);
            let mut recent: Vec<String> = Vec::new();
            for it in sessions.unwrap_or_default() {
                if !recent.contains(&it.model) {
                    recent.push(it.model);
                }
            }
            let favourites = tokio::task::spawn_blocking(move || favourites(&*settings)).await.unwrap_or_default();
            BackgroundEvent::Loaded(Loaded::new(move |view: &mut ModelsView| view.list(&offered, &recent, &favourites)))
        });
    }

    /// Reads the last Sessions for the welcome, after its first frame.
    pub(super) fn load_recent(&mut self) {
        let Some(harness) = self.harness.clone() else { return };
        self.spawn_on_session(move || {
            let recent = harness.sessions().into_iter().take(RECENT).collect();
            BackgroundEvent::Connecting(Connecting::Recent(recent))
        });
    }

    /// Does what the dialog wants.
    pub(super) fn order(&mut self, order: Order) {
        let Some(connector) = self.connector.clone() else { return };
        match order {
            Order::Look => {
                let reading = Arc::clone(&connector);
                self.spawn_blocking(move || BackgroundEvent::Connecting(Connecting::Accounts(reading.accounts())));
                self.spawn(async move {
                    BackgroundEvent::Connecting(Connecting::LocalServers(connector.local_servers().await))
                });
            }
            Order::UseKey { provider, key: pasted } => {
                self.attempt(async move { connector.connect_with(&provider, key(&pasted.0)?).await })
            }
            Order::UseLocal { provider } => self.attempt(async move { connector.connect_local(&provider).await }),
            Order::SignIn { provider } => self.sign_in(connector, provider),
            Order::Answer(pasted) => {
                if let Some(answer) = self.attempt.answer.take() {
                    drop(answer.send(pasted.0));
                }
            }
            Order::Cancel => self.attempt = Attempt { number: self.attempt.number + 1, answer: None, _cancel: None },
            Order::Demo if self.demo.program.is_some() => self.lends_terminal = Some(Borrower::Demo),
            Order::Demo => self.state.say("`pixir demo` shows the demo"),
        }
    }

    /// Runs an attempt that the user can cancel.
    fn attempt(&mut self, work: impl Future<Output = Result<NewProvider>> + Send + 'static) {
        let (cancel, cancelled) = oneshot::channel();
        let attempt = self.attempt.number + 1;
        self.attempt = Attempt { number: attempt, answer: None, _cancel: Some(cancel) };
        self.spawn(async move {
            BackgroundEvent::Connecting(tokio::select! {
                made = work => Connecting::NewProvider { attempt, made: Box::new(made) },
                _ = cancelled => Connecting::Cancelled,
            })
        });
    }

    fn sign_in(&mut self, connector: Arc<Connector>, provider: String) {
        let (sender, attempt) = (self.sender.clone(), self.attempt.number + 1);
        let (answer, answered) = oneshot::channel();
        self.attempt(async move {
            let invitation = connector.invite(&provider, &connector.sign_in(&provider)).await?;
            let url = invitation.complete_url.clone().unwrap_or_else(|| invitation.url.clone());
            let invited = Connecting::Invited { attempt, url, code: invitation.code.clone() };
            drop(sender.send(BackgroundEvent::Connecting(invited)));
            let given = async {
                match answered.await {
                    Ok(given) => given,
                    Err(_) => std::future::pending().await,
                }
            };
            connector.connect_signed_in(&provider, invitation, given).await
        });
        self.attempt.answer = Some(answer);
    }

    pub(super) async fn on_connecting(&mut self, result: Connecting) {
        let effects = match result {
            Connecting::Settings(read) => {
                configure::on_settings(&mut self.state, *read);
                Vec::new()
            }
            Connecting::Saved { key, saved } => {
                configure::on_saved(&mut self.state, &key, saved);
                vec![Effect::LoadSettings]
            }
            Connecting::Unset { key, removed } => configure::on_unset(&mut self.state, &key, removed),
            Connecting::Recent(recent) => {
                self.state.session.recent = recent;
                Vec::new()
            }
            Connecting::Accounts(Ok(accounts)) => {
                connect::on_news(&mut self.state, News::Accounts(&accounts));
                Vec::new()
            }
            Connecting::LocalServers(servers) => {
                connect::on_news(&mut self.state, News::LocalServers(&servers));
                Vec::new()
            }
            Connecting::Invited { attempt, url, code } => {
                if attempt == self.attempt.number {
                    connect::on_news(&mut self.state, News::Invited { url: &url, code: code.as_deref() });
                }
                Vec::new()
            }
            Connecting::Accounts(Err(error)) => {
                connect::on_failed(&mut self.state, &error);
                Vec::new()
            }
            Connecting::NewProvider { attempt, made } if attempt == self.attempt.number => match self.join(*made) {
                Ok(effects) => effects,
                Err(error) => {
                    connect::on_failed(&mut self.state, &error);
                    Vec::new()
                }
            },
            Connecting::NewProvider { .. } | Connecting::Cancelled => Vec::new(),
        };
        Box::pin(self.perform(effects)).await;
    }

    /// Gives the new Provider to the Harness. Where there is none yet, everything is tried again with the stored key.
    fn join(&mut self, made: Result<NewProvider>) -> Result<Vec<Effect>> {
        let new = made?;
        let (provider, model) = (new.provider.clone(), new.model.clone());
        let note = match &new.hidden_by {
            Some(variable) => format!("; at the next start {variable} comes first"),
            None => String::new(),
        };
        match self.harness.clone() {
            Some(harness) => {
                // It begins to prepare the Provider.
                let core = self.core.enter();
                harness.connect(new)?;
                drop(core);
                self.show_connection(&harness);
            }
            None => {
                self.state.session.connection = Connection::Starting { said: String::new() };
                self.state.session.can_send = true;
                self.connect();
            }
        }
        Ok(connect::on_connected(&mut self.state, &provider, &model, &note))
    }

    /// Shows which Provider new Sessions get, and why.
    pub(super) fn show_connection(&mut self, harness: &Harness) {
        let providers = harness.providers();
        self.state.session.connection = Connection::Ready {
            demo: providers.provider == "demo",
            why: providers.why.clone(),
            server: format!("{} · {}", providers.model, providers.describe(&providers.provider)),
        };
    }

    /// A key of the user skips the waits of the demo's answer.
    pub(super) fn hurry_demo(&self) {
        if let Some(pace) = &self.demo.pace {
            pace.hurry();
        }
    }
}

/// The models that lists name first.
fn favourites(settings: &dyn SettingsStore) -> Vec<String> {
    let all = settings.read().map(|it| it.all()).unwrap_or_default();
    let value = all.into_iter().find(|it| it.key == "favourites").and_then(|it| it.value);
    let names = value.and_then(|it| it.as_array().cloned()).unwrap_or_default();
    names.iter().filter_map(|it| it.as_str().map(str::to_owned)).collect()
}
