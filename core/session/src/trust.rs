//! What the workspace brings along: read beside the Session, asked about once, answered by the user.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Session;
use config::project::CONFIG;
use protocol::error::{NoticeCode, Result};
use protocol::event::{Live, Severity};
use protocol::input::Accepted;
use protocol::trust::{Contributions, TrustAnswer};

/// What the workspace brings along, as it was read.
pub(super) struct Looked {
    contributions: Contributions,
    /// The user wants to see them, also where there is nothing to answer.
    is_wanted: bool,
}

impl Session {
    /// Reads what the workspace brings along, beside the Session: there may be many files.
    pub(super) fn look(&mut self, is_wanted: bool) {
        let library = Arc::clone(&self.services.library);
        self.looking.spawn_blocking(move || Looked { contributions: library.contributions(), is_wanted });
    }

    pub(super) fn on_looked(&mut self, looked: Looked) {
        if looked.is_wanted || looked.contributions.needs_answer() {
            self.publish(Live::TrustAsked(looked.contributions));
        }
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
