//! Reads what the diff shows, on threads that may block.

use std::sync::Arc;

use pixir_core::diff::{Across, ChangedFile, Changes};
use pixir_core::review::{Reviewer, Source};

use super::App;
use super::background::BackgroundEvent;
use crate::overlay::diff::{Loaded, Want};
use crate::update::review;

/// A part of the diff that was read, for the list with this number.
pub(super) enum Reviewed {
    Changes(u64, Source, Changes),
    Moves(u64, Arc<Across>),
    Counts(u64, Vec<(usize, ChangedFile)>),
    /// The start of a long file; the whole follows.
    Start(u64, Source, usize, Box<ChangedFile>, Arc<Loaded>),
    Patch(u64, usize, Arc<Loaded>),
}

impl App {
    pub(super) fn read_diff(&mut self, want: Want) {
        let Some(harness) = &self.harness else { return };
        let reviewer = Reviewer::new(harness.blobs().clone(), self.state.session.workspace.clone());
        let entries = match &want {
            Want::Changes { .. } => self.state.history.entries().to_vec(),
            Want::Moves { .. } | Want::Counts { .. } | Want::Patch { .. } | Want::Whole { .. } => Vec::new(),
        };
        self.spawn_on_session(move || {
            BackgroundEvent::Reviewed(match want {
                Want::Changes { number, source } => {
                    let changes = reviewer.changes(&source, &entries);
                    Reviewed::Changes(number, source, changes)
                }
                Want::Moves { number, source, files } => {
                    Reviewed::Moves(number, Arc::new(reviewer.moves(&source, &files)))
                }
                Want::Counts { number, source, files } => {
                    let (places, files): (Vec<usize>, Vec<ChangedFile>) = files.into_iter().unzip();
                    Reviewed::Counts(number, places.into_iter().zip(reviewer.count(&source, files)).collect())
                }
                Want::Patch { number, source, at, file } => match reviewer.start(&source, &file) {
                    Some(start) => {
                        let loaded = Arc::new(Loaded::new(&file.path, start));
                        Reviewed::Start(number, source, at, file, loaded)
                    }
                    None => whole(&reviewer, number, &source, at, &file),
                },
                Want::Whole { number, source, at, file } => whole(&reviewer, number, &source, at, &file),
            })
        });
    }

    pub(super) async fn on_reviewed(&mut self, reviewed: Reviewed) {
        let effects = match reviewed {
            Reviewed::Changes(number, source, changes) => {
                // The list is on the screen at once; the lines of files that changed more than once are counted after it.
                let is_open = |file: &ChangedFile| file.counts.is_none() && file.binary.is_none();
                let uncounted = changes.files.iter().enumerate().filter(|(_, file)| is_open(file));
                let files: Vec<_> = uncounted.map(|(at, file)| (at, file.clone())).collect();
                let effects = review::on_changes(&mut self.state, number, &changes);
                if !files.is_empty() {
                    self.read_diff(Want::Counts { number, source: source.clone(), files });
                }
                if changes.files.len() > 1 {
                    self.read_diff(Want::Moves { number, source, files: changes.files });
                }
                effects
            }
            Reviewed::Moves(number, across) => review::on_moves(&mut self.state, number, &across),
            Reviewed::Counts(number, files) => review::on_counts(&mut self.state, number, &files),
            Reviewed::Start(number, source, at, file, loaded) => {
                let effects = review::on_patch(&mut self.state, number, at, &loaded);
                self.read_diff(Want::Whole { number, source, at, file });
                effects
            }
            Reviewed::Patch(number, at, loaded) => review::on_patch(&mut self.state, number, at, &loaded),
        };
        Box::pin(self.perform(effects)).await;
    }
}

fn whole(reviewer: &Reviewer, number: u64, source: &Source, at: usize, file: &ChangedFile) -> Reviewed {
    let loaded = Loaded::new(&file.path, reviewer.patch(source, file));
    Reviewed::Patch(number, at, Arc::new(loaded))
}
