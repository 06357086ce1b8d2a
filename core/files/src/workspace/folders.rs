//! Other folders that are written as the workspace is: each is a root of its own, and a path in it is absolute.

use std::ops::Deref;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use cap_std::fs::MetadataExt as _;

use super::inside::Base;
use super::{Inside, Workspace};

/// The root that holds a path.
pub(super) enum Root<'a> {
    Workspace(&'a Workspace),
    Folder(Arc<Workspace>),
}

impl Deref for Root<'_> {
    type Target = Workspace;

    fn deref(&self) -> &Workspace {
        match self {
            Root::Workspace(it) => it,
            Root::Folder(it) => it,
        }
    }
}

impl Workspace {
    /// The other folders that may be written as this one.
    pub fn folders(&self) -> Vec<Arc<Workspace>> {
        self.folders.read().clone()
    }

    /// Replaces the other folders that may be written. None of the roots lies in another one.
    pub fn have_folders(&self, folders: Vec<Arc<Workspace>>) {
        *self.folders.write() = folders;
    }

    /// Whether the root that was opened still stands at its path.
    pub fn is_in_place(&self) -> bool {
        let there = std::fs::symlink_metadata(&self.root);
        let is_same = |there: &std::fs::Metadata| {
            use std::os::unix::fs::MetadataExt as _;
            self.dir.dir_metadata().is_ok_and(|held| (held.dev(), held.ino()) == (there.dev(), there.ino()))
        };
        there.is_ok_and(|there| is_same(&there))
    }

    /// The folder that a path without `..` lies in.
    pub(super) fn folder_of(&self, path: &Path) -> Option<Arc<Workspace>> {
        self.folders.read().iter().find(|it| path.starts_with(&it.root)).cloned()
    }

    /// The path in one of the folders that a path names; `..` is resolved by its text, as in the workspace.
    pub(super) fn in_folder(&self, given: &Path) -> Option<Inside> {
        if self.folders.read().is_empty() {
            return None;
        }
        let mut path = self.root.clone();
        for part in given.components() {
            match part {
                Component::RootDir => path = PathBuf::from("/"),
                Component::ParentDir => drop(path.pop()),
                Component::Normal(name) => path.push(name),
                Component::CurDir | Component::Prefix(_) => {}
            }
        }
        self.folder_of(&path).map(|_| Inside { path, base: Base::Folder })
    }

    /// The path of a folder in the root that holds `at`, as results name it.
    pub(super) fn named(&self, at: &Inside, folder: &Path) -> PathBuf {
        match self.held(at).0 {
            Root::Workspace(_) => folder.to_owned(),
            Root::Folder(root) => root.root.join(folder),
        }
    }

    /// The root that holds a path, and the path in it. A path of a folder that is written no more stays absolute, and opens
    /// nothing beneath a root.
    pub(super) fn held<'a>(&self, at: &'a Inside) -> (Root<'_>, &'a Path) {
        let folder = if at.base == Base::Folder { self.folder_of(&at.path) } else { None };
        match folder {
            None => (Root::Workspace(self), at.as_path()),
            Some(folder) => {
                let path = at.path.strip_prefix(&folder.root).unwrap_or(&at.path);
                let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
                (Root::Folder(folder), path)
            }
        }
    }
}
