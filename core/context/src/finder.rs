//! Finds the files that the user and a workspace bring along for pixir to use: skills, templates, roles, workflows.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use files::workspace::Workspace;
use protocol::trust::Standing;
use storage::regular;
use storage::trust::Trusted;

/// Finds files of one kind in folders.
pub(super) struct Finder {
    /// The part of a file's name that names its content; `None` for files of another kind.
    pub(super) stem: fn(&str) -> Option<&str>,
    /// The most bytes of a file.
    pub(super) most_bytes: u64,
    /// The most files of one folder.
    pub(super) most_files: usize,
}

/// A file of the kind.
pub(super) struct FoundFile {
    pub(super) stem: String,
    pub(super) path: PathBuf,
    /// Its content, or why it cannot be read.
    pub(super) bytes: Result<Vec<u8>, String>,
}

impl Finder {
    /// The files in a folder of the user, by name. A symlink of the user leads wherever the user wants.
    pub(super) fn of_user(&self, folder: &Path) -> Vec<FoundFile> {
        paths_in(folder).into_iter().filter_map(|path| self.at(path)).take(self.most_files).collect()
    }

    /// The files in a folder of the workspace, by name. They are read through the path layer, so that no symlink of a
    /// repository leads to a file outside.
    pub(super) fn of_workspace(&self, workspace: &Workspace, folder: &str) -> Vec<FoundFile> {
        let names = workspace.locate(folder).and_then(|at| workspace.list(&at)).unwrap_or_default();
        let read = |listed: &str| {
            let name = listed.trim_end_matches('@');
            // A folder is listed with a slash at its end, and is named as what cannot be read.
            let stem = (self.stem)(name.trim_end_matches('/'))?.to_owned();
            let path = format!("{folder}/{name}");
            let bytes = workspace.locate(&path).and_then(|at| workspace.read_plain(&at, self.most_bytes));
            Some(FoundFile { stem, path: workspace.root().join(&path), bytes: bytes.map_err(|e| e.message) })
        };
        names.iter().filter_map(|(name, _)| read(name)).take(self.most_files).collect()
    }

    /// The file of the user at this path, if it is of the kind.
    pub(super) fn at(&self, path: PathBuf) -> Option<FoundFile> {
        let stem = (self.stem)(path.file_name()?.to_str()?)?.to_owned();
        let file = regular::open_to_read(&path).map_err(|e| e.to_string());
        let bytes = file.and_then(|file| read_bounded(file, self.most_bytes));
        Some(FoundFile { stem, path, bytes })
    }
}

/// The paths in a folder of the user, sorted; none where there is no folder.
pub(super) fn paths_in(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// Reads a file of at most so many bytes.
pub(super) fn read_bounded(file: File, most: u64) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes).map_err(|e| e.to_string())?;
    if bytes.len() as u64 > most {
        return Err(format!("it is larger than {} KB", most >> 10));
    }
    Ok(bytes)
}

/// Where a path of the workspace lies below its root.
pub(super) fn inside<'a>(workspace: &Workspace, path: &'a Path) -> &'a Path {
    path.strip_prefix(workspace.root()).unwrap_or(path)
}

/// How a file of the workspace stands, which stands so by itself: one that could be used needs the user's trust in its content.
pub(super) fn judged(
    workspace: &Workspace,
    trusted: &Trusted,
    path: &Path,
    (standing, digest): (&Standing, Option<&String>),
) -> Standing {
    match (standing, digest, inside(workspace, path).to_str()) {
        (Standing::InForce, Some(digest), Some(path)) => trusted.standing(path, digest),
        (standing, _, _) => standing.clone(),
    }
}
