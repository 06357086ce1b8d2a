//! The workspaces that the user trusts, in one file of the state folder.

use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::protocol::error::{Code, Error, Result};
use crate::protocol::remedy::Remedy;
use crate::storage::regular;
use crate::storage::rules::lock;
use crate::storage::store::write_whole;

/// The file of decisions: one JSON object a line; of two about one workspace the later counts.
#[derive(Debug, Clone)]
pub struct Trust {
    home: PathBuf,
}

/// What the user decided about a workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrustDecision {
    /// The root of the workspace, without symlinks.
    pub workspace: String,
    /// Whether its configuration and skills are in force.
    pub trusted: bool,
    /// When the user decided.
    pub made: Timestamp,
}

impl Trust {
    pub(crate) fn new(home: &Path) -> Trust {
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

    /// What the user decided about this workspace; `None` where the user was not asked.
    pub fn decision(&self, workspace: &Path) -> Option<bool> {
        let all = self.decisions();
        all.iter().find(|it| Path::new(&it.workspace) == workspace).map(|it| it.trusted)
    }

    /// Records a decision.
    ///
    /// # Errors
    /// `WRITE_FAILED`.
    pub fn decide(&self, workspace: &Path, trusted: bool) -> Result<()> {
        let failed =
            |e: io::Error| Error::new(Code::WriteFailed, format!("save the trust: {e}"), Remedy::CheckStateFolder);
        let _alone = lock(&self.home, "trust.lock").map_err(failed)?;
        let it = TrustDecision { workspace: workspace.display().to_string(), trusted, made: Timestamp::now() };
        let line = serde_json::to_string(&it).map_err(|e| failed(e.into()))?;
        let mut text = self.text().map_err(failed)?;
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        write_whole(&self.path(), format!("{text}{line}\n").as_bytes()).map_err(failed)
    }
}
