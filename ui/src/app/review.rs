//! Reads what the diff shows, on threads that may block.

use std::sync::Arc;

use pixir_core::Harness;
use pixir_core::diff::ChangedFile;
use pixir_core::review::{Reviewer, Source};

use super::App;
use super::background::BackgroundEvent;
use crate::overlay::Loaded;
use crate::overlay::diff::{self, DiffView, Part, Want};

impl App {
    pub(super) fn read_diff(&mut self, harness: &Harness, want: Want) {
        let folders = self.state.session.id.as_ref().map_or(Vec::new(), |id| harness.folders(id));
        let reviewer = Reviewer::new(harness.blobs().clone(), self.state.session.workspace.clone(), folders);
        let entries = match &want {
            Want::Changes { .. } => self.state.history.entries().to_vec(),
            Want::Moves { .. } | Want::Counts { .. } | Want::Patch { .. } | Want::Whole { .. } => Vec::new(),
        };
        self.spawn_on_session(move || {
            let (number, part) = match want {
                Want::Changes { number, source } => {
                    let changes = reviewer.changes(&source, &entries);
                    (number, Part::Changes(source, changes))
                }
                Want::Moves { number, source, files } => {
                    (number, Part::Moves(Arc::new(reviewer.moves(&source, &files))))
                }
                Want::Counts { number, source, files } => {
                    let (places, files): (Vec<usize>, Vec<ChangedFile>) = files.into_iter().unzip();
                    (number, Part::Counts(places.into_iter().zip(reviewer.count(&source, files)).collect()))
                }
                Want::Patch { number, source, at, file } => match reviewer.start(&source, &file) {
                    Some(start) => {
                        let loaded = Arc::new(diff::Loaded::new(&file.path, start));
                        (number, Part::Start { source, at, file, loaded })
                    }
                    None => (number, whole(&reviewer, &source, at, &file)),
                },
                Want::Whole { number, source, at, file } => (number, whole(&reviewer, &source, at, &file)),
            };
            BackgroundEvent::Loaded(Loaded::new(move |view: &mut DiffView| view.take(number, &part)))
        });
    }
}

fn whole(reviewer: &Reviewer, source: &Source, at: usize, file: &ChangedFile) -> Part {
    Part::Patch { at, loaded: Arc::new(diff::Loaded::new(&file.path, reviewer.patch(source, file))) }
}
