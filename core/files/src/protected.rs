//! The names of protected files: they run code by themselves, or instruct pixir and other agents.

use std::path::{Path, PathBuf};

/// Folders of such files, at any depth.
pub(super) const FOLDERS: [&str; 9] =
    [".git", ".pixir", ".agents", ".claude", ".cursor", ".husky", ".vscode", ".ssh", ".gnupg"];
/// Such files, at any depth, in lower case.
pub(super) const FILES: [&str; 30] = [
    ".gitmodules",
    ".gitattributes",
    ".gitconfig",
    ".envrc",
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    ".mcp.json",
    "agents.md",
    "claude.md",
    "gemini.md",
    ".cursorrules",
    ".clinerules",
    ".windsurfrules",
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".zlogout",
    ".xprofile",
    ".xinitrc",
    ".pam_environment",
    ".inputrc",
    ".pythonrc",
    ".vimrc",
];
/// Such files and folders by their last names, at any depth.
pub(super) const PLACES: [&str; 11] = [
    ".cargo/config.toml",
    ".cargo/config",
    ".github/workflows",
    ".github/copilot-instructions.md",
    ".config/pixir",
    ".config/git",
    ".config/autostart",
    ".config/environment.d",
    ".config/fish",
    ".config/systemd",
    ".local/state/pixir",
];
/// The parts of a repository that run code or lead elsewhere; commits change the rest.
const IN_GIT: [&str; 4] = [".git/hooks", ".git/config", ".git/config.worktree", ".git/info/attributes"];

/// Whether a file with such a name can run code or widen pixir's permissions. Case is ignored, as some file systems
/// ignore it.
pub(super) fn is_protected(path: &Path) -> bool {
    let names: Vec<String> = path.components().map(|c| c.as_os_str().to_string_lossy().to_lowercase()).collect();
    let is_in = |place: &str| {
        let place: Vec<&str> = place.split('/').collect();
        names.windows(place.len()).any(|part| part.iter().zip(&place).all(|(name, it)| name == it))
    };
    names.iter().any(|name| FOLDERS.contains(&name.as_str()))
        || names.last().is_some_and(|last| FILES.contains(&last.as_str()))
        || PLACES.into_iter().any(is_in)
}

/// Whether a path with this last name, in lower case, can be protected at all. A symlink with the first name of a place leads
/// to that place too.
pub(super) fn may_be_protected(name: &str, is_link: bool) -> bool {
    let is_of = |place: &&str| {
        let mut parts = place.split('/');
        (is_link && parts.clone().next() == Some(name)) || parts.next_back() == Some(name)
    };
    FOLDERS.contains(&name) || FILES.contains(&name) || PLACES.iter().any(is_of)
}

/// The protected files and folders directly in a workspace that exist, as absolute paths without symlinks.
pub(super) fn existing(root: &Path) -> Vec<PathBuf> {
    let folders = FOLDERS.iter().filter(|name| **name != ".git");
    let files = FILES.iter().map(|name| match *name {
        "agents.md" => "AGENTS.md",
        "claude.md" => "CLAUDE.md",
        "gemini.md" => "GEMINI.md",
        name => name,
    });
    let names = folders.copied().chain(files).chain(PLACES).chain(IN_GIT);
    // Most do not exist, and one system call tells that.
    let paths = names.map(|name| root.join(name)).filter(|path| path.symlink_metadata().is_ok());
    paths.filter(|path| path.canonicalize().is_ok_and(|real| real == *path)).collect()
}
