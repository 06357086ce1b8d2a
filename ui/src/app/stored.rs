//! Stored Sessions: listed, searched, previewed, renamed, pinned, deleted.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use pixir_core::event::SessionId;
use pixir_core::input::SettingsChange;
use pixir_core::store::{Place, Summary};
use pixir_core::{Harness, Input, Result, search};

use super::App;
use super::background::BackgroundEvent;
use crate::overlay::Overlay;
use crate::overlay::sessions::{Reach, SessionList, Work};

/// The messages of a preview.
const PREVIEW: usize = 6;

impl App {
    pub(super) async fn work_on_stored(&mut self, work: Work) {
        let Some(harness) = self.harness.clone() else { return };
        match work {
            Work::List(reach) => self.spawn_blocking(move || BackgroundEvent::Stored(list(&harness, reach))),
            Work::Preview(id) => self.read_last_words(harness, id),
            Work::Search { words, reach } => self.search_stored(harness, words, reach),
            // The Session on the screen is renamed by an Input, as `/rename` does.
            Work::Rename { id, name, reach } if self.is_open_here(&id) => {
                let change = SettingsChange { name: Some(name), ..SettingsChange::default() };
                self.send(Input::Set(change)).await;
                if let Some(handle) = &self.handle {
                    handle.settle().await;
                }
                self.spawn_blocking(move || BackgroundEvent::Stored(list(&harness, reach)));
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

    /// Reads the last messages of the Session under the cursor, if the list lacks them.
    pub(super) fn preview_stored(&mut self) {
        let list =
            self.state.overlays.iter().find_map(|it| if let Overlay::Sessions(list) = it { Some(list) } else { None });
        if let (Some(id), Some(harness)) = (list.and_then(SessionList::wanted), self.harness.clone()) {
            self.read_last_words(harness, id);
        }
    }

    fn read_last_words(&mut self, harness: Harness, id: String) {
        self.spawn_blocking(move || {
            let said = harness.find(&id).map(|place| search::last_words(&place, PREVIEW)).unwrap_or_default();
            BackgroundEvent::SessionPreview(id, said)
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
        self.spawn_blocking(move || match change(&harness) {
            Ok(()) => BackgroundEvent::Stored(list(&harness, reach)),
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
            let goes_on = || latest.load(Ordering::Relaxed) == number;
            for summary in list(&harness, reach) {
                let place: Option<Place> = harness.find(&summary.id).ok();
                if !goes_on() {
                    break;
                }
                if let Some(found) = place.and_then(|place| search::find(&place, &words, &goes_on)) {
                    let _ = sender.send(BackgroundEvent::SessionFound { number, id: summary.id, found });
                }
            }
            BackgroundEvent::SearchEnded(number)
        });
    }

    pub(super) fn is_current_search(&self, number: u64) -> bool {
        self.stored_search.load(Ordering::Relaxed) == number
    }
}

/// A path as one word of a shell.
fn quoted(path: &str) -> String {
    format!("'{}'", path.replace('\'', r"'\''"))
}

fn list(harness: &Harness, reach: Reach) -> Vec<Summary> {
    match reach {
        Reach::Workspace => harness.sessions(),
        Reach::Everywhere => harness.store().list_all(),
    }
}
