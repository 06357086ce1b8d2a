//! What the workspace brings along: read beside the Session, asked about once, answered by the user.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use super::Session;
use config::project::CONFIG;
use context::folders;
use protocol::error::{Code, Error, NoticeCode, Result};
use protocol::event::{Live, Severity};
use protocol::input::Accepted;
use protocol::trust::{Contributions, TrustAnswer};

/// What the workspace brings along, as it was read.
pub(super) struct Looked {
    /// Of the workspace, then of each folder that is worked on besides.
    contributions: Vec<Contributions>,
    /// The user wants to see them, also where there is nothing to answer.
    is_wanted: bool,
}

impl Session {
    /// Reads what the workspace brings along, beside the Session: there may be many files.
    pub(super) fn look(&mut self, is_wanted: bool) {
        let (library, workspace) = (Arc::clone(&self.services.library), Arc::clone(&self.services.workspace));
        let trust = self.services.store.trust();
        self.looking.spawn_blocking(move || {
            let open = workspace.folders();
            let of_folders = open.iter().map(|it| folders::contributions(it, &workspace, &trust));
            Looked { contributions: std::iter::once(library.contributions()).chain(of_folders).collect(), is_wanted }
        });
    }

    pub(super) fn on_looked(&mut self, looked: Looked) {
        for it in looked.contributions {
            // What the user wants to see is the workspace, and of a folder what it has.
            if (looked.is_wanted && (it.folder.is_none() || !it.all.is_empty())) || it.needs_answer() {
                self.publish(Live::TrustAsked(it));
            }
        }
    }

    /// Records an answer about what is taken from a folder beside the workspace.
    pub(super) fn answer_trust_of(
        &mut self,
        folder: &str,
        answer: TrustAnswer,
        seen: &BTreeMap<String, String>,
    ) -> Result<Accepted> {
        let open = self.services.workspace.folders();
        let Some(root) = open.iter().find(|it| it.root() == Path::new(folder)) else {
            let message = format!("this session does not work on {}", folder.escape_debug());
            return Err(Error::new(Code::InvalidArgs, message, "add the folder first").with("input", folder));
        };
        // A revocation names no content.
        let known = folders::contributions(root, &self.services.workspace, &self.services.store.trust()).seen();
        for path in known.keys() {
            let seen = seen.iter().filter(|(it, _)| *it == path).map(|(path, digest)| (path.clone(), digest.clone()));
            self.services.store.trust().decide(Path::new(path), answer, &seen.collect())?;
        }
        let text = match answer {
            TrustAnswer::Trust => format!("the model reads the instructions of {folder} from its next request on"),
            TrustAnswer::NotNow => {
                format!("the instructions of {folder} stay unused; pixir asks again when they change")
            }
            TrustAnswer::Never => format!("the instructions of {folder} are not used, and pixir does not ask again"),
            TrustAnswer::Revoke => format!("the instructions of {folder} are not used any more"),
        };
        self.notice(Severity::Info, NoticeCode::TrustChanged.name(), text);
        Ok(Accepted::default())
    }

    pub(super) fn answer_trust(&mut self, answer: TrustAnswer, seen: &BTreeMap<String, String>) -> Result<Accepted> {
        self.services.store.trust().decide(self.services.workspace.root(), answer, seen)?;
        let has_config = seen.contains_key(CONFIG);
        let text = match answer {
            TrustAnswer::Trust if has_config => {
                "this workspace is trusted: its skills are in force, its configuration from the next start"
            }
            TrustAnswer::Trust => "this workspace is trusted: what it brings along is in force",
            TrustAnswer::NotNow => "what this workspace brings along stays unused; pixir asks again when it changes",
            TrustAnswer::Never => "this workspace is not trusted, and pixir does not ask about it again",
            TrustAnswer::Revoke => "this workspace is not trusted any more",
        };
        self.notice(Severity::Info, NoticeCode::TrustChanged.name(), text.to_owned());
        // What changed while the user was reading is another thing, and asked about anew.
        self.look(false);
        Ok(Accepted::default())
    }
}
