//! Folders outside the workspace that the user lets the Session read or work on.

use std::path::{Path, PathBuf};

use super::{Services, Session};
use context::folders;
use protocol::error::{Code, Error, NoticeCode, Result};
use protocol::event::{ContextDocument, Live, Rule, Scope, Severity};
use protocol::input::{Accepted, FolderAccess, RuleReach};
use protocol::remedy::Remedy;
use turn::HOLDS_SECRETS;

impl Session {
    /// Saves a rule by which the Session reads a folder or works on it, and says so.
    pub(super) fn add_folder(&mut self, path: &str, access: FolderAccess, holds: RuleReach) -> Result<Accepted> {
        let folder = checked(path, access, &self.services)?;
        let reach = match holds {
            RuleReach::Session => "in this session",
            RuleReach::Tree => "in this session and all its agents",
            RuleReach::Project => "in this workspace",
            RuleReach::User => "everywhere",
        };
        let open = self.services.workspace.folders();
        if let Some(known) = open.iter().find(|it| folder.starts_with(it.root())) {
            let (known, shown) = (known.root().display(), folder.display());
            self.say_of_folder(format!("pixir works on {shown} already, by the rule write({known})"));
            return Ok(self.list_rules());
        }
        let shown = folder.to_str().unwrap_or_default();
        let (scope, text) = match access {
            FolderAccess::Read => (
                Scope::Reads(shown.to_owned()),
                format!(
                    "the tools read below {shown} without asking, {reach}; so do programs, and commands that only look"
                ),
            ),
            FolderAccess::Write => (
                Scope::Writes(shown.to_owned()),
                format!(
                    "pixir works on {shown} as on the workspace, {reach}: tools and commands change files there by the \
                     same mode and rules, diffs and undo include them, and its .git and protected files stay protected. \
                     Its settings, skills and servers are not used"
                ),
            ),
        };
        self.services.save_rule(Rule::Allow(scope), holds, None, &self.id)?;
        let faults = self.services.open_folders().into_iter().filter_map(|it| Some((it.path, it.fault?)));
        if let Some((_, why)) = faults.into_iter().find(|(path, _)| *path == folder) {
            return Err(refused(path, &why, "name another folder"));
        }
        self.say_of_folder(text);
        if access == FolderAccess::Write && self.services.options.can_ask {
            self.look(false);
        }
        Ok(self.list_rules())
    }

    fn say_of_folder(&mut self, message: String) {
        let (severity, code) = (Severity::Info, NoticeCode::FolderAdded.name().to_owned());
        self.publish(Live::Notice { severity, code, message, remedy: Some(Remedy::ShowRules) });
    }
}

/// Notices about folders that the Session worked on and that are gone: severity, code, text, remedy.
pub(super) fn lost(services: &Services) -> Vec<(Severity, &'static str, String, Option<Remedy>)> {
    let lost = services.open_folders().into_iter().filter_map(|it| {
        let text = format!("pixir does not work on {} any more: {}", it.path.display(), it.fault?);
        let fix = Remedy::any_of(["put the folder back".into(), Remedy::ShowRules]);
        Some((Severity::Warning, NoticeCode::FolderLost.name(), text, Some(fix)))
    });
    lost.collect()
}

/// What the model learns about the folders beside the workspace, and the documents that are taken from them. Blocks.
pub(super) fn told(services: &Services) -> (Option<String>, Vec<ContextDocument>) {
    let all = services.open_folders();
    let open = services.workspace.folders();
    let trust = services.store.trust();
    let (mut lines, mut documents) = (Vec::new(), Vec::new());
    for it in all {
        match (it.fault, open.iter().find(|root| root.root() == it.path)) {
            (None, Some(root)) => {
                let (line, document) = folders::told(root, &trust);
                lines.push(line);
                documents.extend(document);
            }
            (fault, _) => lines.push(format!("{}: not now, {}", it.path.display(), fault.unwrap_or_default())),
        }
    }
    ((!lines.is_empty()).then(|| lines.join("\n")), documents)
}

/// The real path of a folder outside the workspace that may be added.
///
/// # Errors
/// `INVALID_ARGS` with what to name instead.
pub fn checked(path: &str, access: FolderAccess, services: &Services) -> Result<PathBuf> {
    let workspace = services.workspace.root();
    if access == FolderAccess::Write {
        let literal = format!("{path}:rw");
        if workspace.join(&literal).is_dir() {
            let fix = format!("{literal}:rw works on the folder of that name, {literal}:ro reads it");
            return Err(refused(&literal, "it is also the name of a folder", &fix));
        }
    }
    let folder = real(path, workspace)?;
    if folder.parent().is_none() {
        return Err(refused(path, "it is the whole machine", "name a folder below it"));
    }
    if folder.starts_with(workspace) {
        let fix = "leave it out; a folder outside is added";
        return Err(refused(path, "it is in the workspace, which pixir works on anyway", fix));
    }
    if folder.to_str().is_none() {
        return Err(refused(path, "its path is not UTF-8", "name another folder"));
    }
    if access == FolderAccess::Write {
        if workspace.starts_with(&folder) {
            let fix = format!("open {} as the workspace", folder.display());
            return Err(refused(path, "the workspace lies in it", &fix));
        }
        if ["/proc", "/sys", "/dev"].iter().any(|it| folder.starts_with(it)) {
            return Err(refused(path, "its files are those of the kernel", "name another folder"));
        }
        if !services.sandbox.may_add(&folder) {
            return Err(refused(path, HOLDS_SECRETS, "name a folder with nothing but the project in it"));
        }
    }
    Ok(folder)
}

fn real(path: &str, workspace: &Path) -> Result<PathBuf> {
    if path.is_empty() {
        return Err(refused(path, "it is empty", "name a folder"));
    }
    let folder = workspace
        .join(path)
        .canonicalize()
        .map_err(|e| refused(path, &format!("it cannot be opened: {e}"), "name an existing folder"))?;
    if !folder.is_dir() {
        return Err(refused(path, "it is not a folder", "name the folder that holds the file"));
    }
    Ok(folder)
}

fn refused(path: &str, why: &str, fix: &str) -> Error {
    let shown = path.escape_debug().to_string();
    Error::new(Code::InvalidArgs, format!("`{shown}` is not added: {why}"), fix.to_owned()).with("input", shown)
}
