//! Stored Sessions: listed, searched, previewed, renamed, pinned, deleted.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use pixir_core::event::SessionId;
use pixir_core::input::SettingsChange;
use pixir_core::store::{Place, Summary};
use pixir_core::{Harness, Input, Result, search};

use super::App;
use super::background::BackgroundEvent;
use crate::overlay::Loaded;
use crate::overlay::sessions::{Reach, SessionList, Work};

/// The messages of a preview.
const PREVIEW: usize = 6;

impl App {
    pub(super) async fn work_on_stored(&mut self, harness: Harness, work: Work) {
        match work {
            Work::List(reach) => self.list_stored(harness, reach),
            Work::Preview(id) => self.read_last_words(harness, id),
            Work::Search { words, reach } => self.search_stored(harness, words, reach),
            // The Session on the screen is renamed by an Input, as `/rename` does.
            Work::Rename { id, name, reach } if self.is_open_here(&id) => {
                let change = SettingsChange { name: Some(name), ..SettingsChange::default() };
                self.send(Input::Set(change)).await;
                if let Some(handle) = &self.handle {
                    handle.settle().await;
                }
                self.list_stored(harness, reach);
            }
            Work::Rename { id, name, reach } => {
                self.change_stored(harness, reach, move |harness| harness.store().rename(&harness.find(&id)?, &name));
            }
            Work::Pin { id, reach } => self.change_stored(harness, reach, move |harness| harness.find(&id)?.pin()),
            Work::Unpin { id, reach } => self.change_stored(harness, reach, move |harness| harness.find(&id)?.unpin()),
            Work::Delete { id, reach } => {
                self.change_stored(harness, reach, move |harness| {
                    harness.store().delete(&harness.find(&id)?).map(drop)
                });
            }
            Work::Undelete { id, reach } => {
                self.change_stored(harness, reach, move |harness| {
                    harness.store().undelete(&SessionId::parse(&id)?).map(drop)
                });
            }
            Work::Resume { id, workspace } if workspace == harness.workspace().display().to_string() => {
                let effects = crate::update::settings::open_session(&mut self.state, &id);
                Box::pin(self.perform(effects)).await;
            }
            Work::Resume { id, workspace } => {
                self.copy(format!("cd {} && pixir resume {id}", quoted(&workspace)));
                self.state
                    .say(format!("that session works in {workspace}: the command that resumes it there is copied"));
            }
        }
    }

    fn list_stored(&mut self, harness: Harness, reach: Reach) {
        let current = self.state.session.id.clone();
        self.spawn_blocking(move || listed(&harness, reach, current.as_ref()));
    }

    fn read_last_words(&mut self, harness: Harness, id: String) {
        self.spawn_blocking(move || {
            let said = harness.find(&id).map(|place| search::last_words(&place, PREVIEW)).unwrap_or_default();
            BackgroundEvent::Loaded(Loaded::new(move |list: &mut SessionList| list.preview(&id, &said)))
        });
    }

    fn is_open_here(&self, id: &str) -> bool {
        self.state.session.id.as_ref().is_some_and(|it| it.as_str() == id)
    }

    fn change_stored(
        &mut self,
        harness: Harness,
        reach: Reach,
        change: impl FnOnce(&Harness) -> Result<()> + Send + 'static,
    ) {
        let current = self.state.session.id.clone();
        self.spawn_blocking(move || match change(&harness) {
            Ok(()) => listed(&harness, reach, current.as_ref()),
            Err(error) => BackgroundEvent::NotDone(error),
        });
    }

    /// Searches Session by Session, and reports each that has the words. A later search ends this one.
    fn search_stored(&mut self, harness: Harness, words: Vec<String>, reach: Reach) {
        let number = self.stored_search.fetch_add(1, Ordering::Relaxed) + 1;
        if words.is_empty() {
            return;
        }
        let latest = Arc::clone(&self.stored_search);
        let sender = self.sender();
        self.spawn_blocking(move || {
            let goes_on = move || latest.load(Ordering::Relaxed) == number;
            for summary in list(&harness, reach) {
                let place: Option<Place> = harness.find(&summary.id).ok();
                if !goes_on() {
                    break;
                }
                if let Some(found) = place.and_then(|place| search::find(&place, &words, &goes_on)) {
                    let (goes_on, id) = (goes_on.clone(), summary.id);
                    let part = Loaded::new(move |list: &mut SessionList| {
                        if goes_on() {
                            list.found(&id, &found);
                        }
                    });
                    let _ = sender.send(BackgroundEvent::LoadedPart(part));
                }
            }
            BackgroundEvent::Loaded(Loaded::new(move |list: &mut SessionList| {
                if goes_on() {
                    list.search_ended();
                }
            }))
        });
    }
}

/// A path as one word of a shell.
fn quoted(path: &str) -> String {
    format!("'{}'", path.replace('\'', r"'\''"))
}

/// The stored Sessions, for the list of them.
fn listed(harness: &Harness, reach: Reach, current: Option<&SessionId>) -> BackgroundEvent {
    let (all, current) = (list(harness, reach), current.map(ToString::to_string));
    BackgroundEvent::Loaded(Loaded::new(move |view: &mut SessionList| view.list(&all, current.as_deref())))
}

fn list(harness: &Harness, reach: Reach) -> Vec<Summary> {
    match reach {
        Reach::Workspace => harness.sessions(),
        Reach::Everywhere => harness.store().list_all(),
    }
}
