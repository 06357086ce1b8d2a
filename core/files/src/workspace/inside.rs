//! A resolved path.

use std::io;
use std::path::{Path, PathBuf};

use cap_std::fs::{Dir, Metadata, MetadataExt as _};

/// A path that a [`Workspace`](super::Workspace) has resolved: inside the workspace or a folder that is
/// written as it is, or a saved output, or, for a call that only reads, outside.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Inside {
    /// Relative to the root; absolute for every other base.
    pub(super) path: PathBuf,
    pub(super) base: Base,
}

/// Where a path lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Base {
    /// In the workspace.
    Root,
    /// In another folder that is written as the workspace is.
    Folder,
    /// In the folder of saved outputs.
    Outputs,
    /// Elsewhere. The path had no symlink in it when it was resolved, and none is followed when it is opened.
    Outside,
}

impl Base {
    /// Whether tools may write there.
    pub(super) fn is_written(self) -> bool {
        match self {
            Base::Root | Base::Folder => true,
            Base::Outputs | Base::Outside => false,
        }
    }
}

impl Inside {
    /// Returns the path as it is shown: relative to the workspace, `.` for the root itself; absolute elsewhere.
    pub fn display(&self) -> String {
        self.as_path().display().to_string()
    }

    /// Returns the path relative to the workspace; absolute elsewhere.
    pub fn as_path(&self) -> &Path {
        if self.path.as_os_str().is_empty() { Path::new(".") } else { &self.path }
    }

    /// The absolute path, if it lies outside of what tools may write and of the saved outputs.
    pub fn outside(&self) -> Option<&Path> {
        (self.base == Base::Outside).then_some(self.path.as_path())
    }

    pub(super) fn metadata(&self, dir: &Dir, path: &Path) -> io::Result<Metadata> {
        if self.base == Base::Outside { dir.symlink_metadata(path) } else { dir.metadata(path) }
    }

    /// Whether what was opened is what was looked at. Inside the workspace it may be another file of the workspace.
    pub(super) fn is_same(&self, before: &Metadata, opened: &Metadata) -> bool {
        self.base != Base::Outside || (before.dev(), before.ino()) == (opened.dev(), opened.ino())
    }
}
