//! Folders outside the workspace that the user lets the tools read.

use std::path::{Path, PathBuf};

use super::Session;
use protocol::error::{Code, Error, NoticeCode, Result};
use protocol::event::{Rule, Scope, Severity};
use protocol::input::{Accepted, RuleReach};

impl Session {
    /// Saves a rule by which the tools read a folder, and says so.
    pub(super) fn add_folder(&mut self, path: &str, holds: RuleReach) -> Result<Accepted> {
        let folder = outside(path, self.services.workspace.root())?;
        let shown = folder.to_str().ok_or_else(|| refused(path, "its path is not UTF-8", "name another folder"))?;
        self.services.save_rule(Rule::Allow(Scope::Reads(shown.to_owned())), holds, None, &self.id)?;
        let reach = match holds {
            RuleReach::Session => "in this session",
            RuleReach::Tree => "in this session and all its agents",
            RuleReach::Project => "in this workspace",
            RuleReach::User => "everywhere",
        };
        let text = format!(
            "the tools read below {shown} without asking, {reach}; so do programs, and commands that only look"
        );
        self.notice(Severity::Info, NoticeCode::FolderAdded.name(), text);
        Ok(self.list_rules())
    }
}

/// The real path of a folder outside the workspace.
fn outside(path: &str, workspace: &Path) -> Result<PathBuf> {
    let named = workspace.join(path);
    let folder = named
        .canonicalize()
        .map_err(|e| refused(path, &format!("it cannot be opened: {e}"), "name an existing folder"))?;
    if !folder.is_dir() {
        return Err(refused(path, "it is not a folder", "name the folder that holds the file"));
    }
    if folder.starts_with(workspace) {
        return Err(refused(path, "it is in the workspace, which the tools read anyway", "name a folder outside"));
    }
    if folder.parent().is_none() {
        return Err(refused(path, "it is the whole machine", "name a folder below it"));
    }
    Ok(folder)
}

fn refused(path: &str, why: &str, fix: &str) -> Error {
    let shown = path.escape_debug().to_string();
    Error::new(Code::InvalidArgs, format!("`{shown}` is not added: {why}"), fix.to_owned()).with("input", shown)
}
