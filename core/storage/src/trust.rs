//! The user's answers about what workspaces bring along, in one file of the state folder.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::regular;
use crate::rules::lock;
use crate::store::write_whole;
use protocol::error::{Code, Error, Result};
use protocol::remedy::Remedy;
use protocol::trust::{Standing, TrustAnswer};

/// The file of decisions: one JSON object a line; of two about one workspace the later counts.
#[derive(Debug, Clone)]
pub struct Trust {
    home: PathBuf,
}

/// What the user decided about a workspace. Content is named by its path and its hash, so what changes is not trusted any
/// more, and another workspace at the same path is trusted only where its content is the same.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrustDecision {
    /// The root of the workspace, without symlinks.
    pub workspace: String,
    /// The content that is in force: hashes by path.
    pub trusted: BTreeMap<String, String>,
    /// The content that the user saw and did not trust.
    pub declined: BTreeMap<String, String>,
    /// The user does not want to be asked about this workspace.
    pub never: bool,
    /// When the user decided.
    #[serde(serialize_with = "protocol::event::to_the_millisecond")]
    pub made: Timestamp,
}

impl TrustDecision {
    /// The decision that follows an answer to this one. `seen` is the content that the user saw.
    fn after(self, answer: TrustAnswer, seen: &BTreeMap<String, String>) -> TrustDecision {
        let before = self.declined.into_iter().chain(self.trusted.clone()).collect();
        let (trusted, never) = match answer {
            TrustAnswer::Trust => (seen.clone(), false),
            // What was trusted before and has not changed stays in force.
            TrustAnswer::NotNow => (self.trusted, false),
            TrustAnswer::Never => (BTreeMap::new(), true),
            TrustAnswer::Revoke => (BTreeMap::new(), false),
        };
        // The user has answered about everything that was known until now, so none of it counts as new.
        let mut declined: BTreeMap<String, String> = before;
        declined.extend(seen.clone());
        declined.retain(|path, digest| trusted.get(path) != Some(digest));
        TrustDecision { workspace: self.workspace, trusted, declined, never, made: Timestamp::now() }
    }
}

/// Which contributions of a workspace are in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trusted {
    /// All of them, for this run.
    Everything,
    /// Those of this decision.
    By(TrustDecision),
}

impl Trusted {
    /// How this content of this path stands.
    pub fn standing(&self, path: &str, digest: &str) -> Standing {
        let Trusted::By(it) = self else { return Standing::InForce };
        let is_in = |known: &BTreeMap<String, String>| known.get(path).is_some_and(|known| known == digest);
        if is_in(&it.trusted) {
            Standing::InForce
        } else if it.never || is_in(&it.declined) {
            Standing::Inert
        } else if it.trusted.contains_key(path) || it.declined.contains_key(path) {
            Standing::Changed
        } else {
            Standing::New
        }
    }
}

impl Trust {
    pub fn new(home: &Path) -> Trust {
        Trust { home: home.to_owned() }
    }

    fn path(&self) -> PathBuf {
        self.home.join("trust.ndjson")
    }

    fn text(&self) -> io::Result<String> {
        match regular::read_to_string(&self.path()) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(String::new()),
            text => text,
        }
    }

    /// The last decision about each workspace, in the order of the first. A line that cannot be read trusts nothing.
    pub fn decisions(&self) -> Vec<TrustDecision> {
        let mut all: Vec<TrustDecision> = Vec::new();
        for it in self.text().unwrap_or_default().lines().filter_map(|line| serde_json::from_str(line).ok()) {
            let it: TrustDecision = it;
            match all.iter_mut().find(|other| other.workspace == it.workspace) {
                Some(other) => *other = it,
                None => all.push(it),
            }
        }
        all
    }

    /// What the user decided about this workspace; `None` where the user has not answered yet.
    pub fn decision(&self, workspace: &Path) -> Option<TrustDecision> {
        let workspace = workspace.display().to_string();
        self.decisions().into_iter().find(|it| it.workspace == workspace)
    }

    /// What is in force in this workspace.
    pub fn of(&self, workspace: &Path) -> Trusted {
        let none = || TrustDecision { workspace: workspace.display().to_string(), ..TrustDecision::default() };
        Trusted::By(self.decision(workspace).unwrap_or_else(none))
    }

    /// Records an answer about this content.
    ///
    /// # Errors
    /// `WRITE_FAILED`.
    pub fn decide(&self, workspace: &Path, answer: TrustAnswer, seen: &BTreeMap<String, String>) -> Result<()> {
        let failed =
            |e: io::Error| Error::new(Code::WriteFailed, format!("save the trust: {e}"), Remedy::CheckStateFolder);
        let _alone = lock(&self.home, "trust.lock").map_err(failed)?;
        let before = self.decision(workspace).unwrap_or_default();
        let it = TrustDecision { workspace: workspace.display().to_string(), ..before }.after(answer, seen);
        let line = serde_json::to_string(&it).map_err(|e| failed(e.into()))?;
        let mut text = self.text().map_err(failed)?;
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        write_whole(&self.path(), format!("{text}{line}\n").as_bytes()).map_err(failed)
    }
}
