//! Folders beside the workspace that a Session works on: what the model learns of one, and what is taken from it.
//!
//! Of such a folder only the context file in its root is taken, and only with the user's trust: it becomes a part of the
//! model's instructions, while the user has opened another project. Its settings, skills, templates, roles, workflows and servers are
//! not used.

use crate::documents;
use crate::environment::git_state;
use files::workspace::Workspace;
use protocol::event::ContextDocument;
use protocol::trust::{Contribution, ContributionKind, Contributions, Standing};
use std::path::Path;
use storage::trust::Trust;

/// The most characters of the context file that the question about it shows.
const SHOWN: usize = 240;

/// The context file of a folder.
struct Instructions {
    /// Its absolute path.
    path: String,
    text: String,
    digest: String,
}

impl Instructions {
    fn of(root: &Workspace) -> Option<Instructions> {
        let (name, text) = documents::of_root(root)?;
        let digest = blake3::hash(text.as_bytes()).to_hex()[..32].to_owned();
        Some(Instructions { path: root.root().join(name).display().to_string(), text, digest })
    }

    fn standing(&self, trust: &Trust) -> Standing {
        // The decision is about this file alone: what the folder brings along as a workspace is another question.
        trust.of(Path::new(&self.path)).standing(&self.path, &self.digest)
    }
}

/// What is taken from a folder, and how it stands.
pub fn contributions(root: &Workspace, workspace: &Workspace, trust: &Trust) -> Contributions {
    let taken = Instructions::of(root).map(|it| {
        let start: String = it.text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(SHOWN).collect();
        let (standing, digest) = (it.standing(trust), Some(it.digest));
        Contribution { kind: ContributionKind::Instructions, path: it.path, about: start, standing, digest }
    });
    Contributions {
        workspace: workspace.root().display().to_string(),
        folder: Some(root.root().display().to_string()),
        all: taken.into_iter().collect(),
        trusted_for_run: false,
    }
}

/// What the model reads before the folders that it works on besides the workspace.
pub(crate) const OTHERS: &str = "Besides the workspace you work on these folders, under the same mode and rules. Name files in them by absolute paths; a command starts there with `cwd`, or after `cd`. Results and diffs have absolute paths for them.";

/// What the model learns about a folder: its path, the branch of its repository, and its context file, which follows as a
/// document where the user trusts it.
pub fn told(root: &Workspace, trust: &Trust) -> (String, Option<ContextDocument>) {
    let branch = git_state(root.root()).map(|state| match state.branch {
        Some(branch) => format!(" (git, branch {branch})"),
        None => " (git, no branch)".to_owned(),
    });
    let mut line = format!("{}{}", root.root().display(), branch.unwrap_or_default());
    let Some(it) = Instructions::of(root) else { return (line, None) };
    let name = Path::new(&it.path).file_name().unwrap_or_default().to_string_lossy().into_owned();
    if it.standing(trust) != Standing::InForce {
        line.push_str(&format!("; the user has not put its {name} in force"));
        return (line, None);
    }
    line.push_str(&format!("; its {name} follows ({})", &it.digest[..8]));
    (line, Some(documents::document(&it.path, &it.text)))
}
