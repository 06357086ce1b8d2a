//! Files that need more than a call: those that can run code later, and pixir's own.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::{Destination, Home, Inside, Workspace};
use crate::protected;
use protocol::error::{Code, Error, Result};
use protocol::protected::Group;

impl Workspace {
    /// Whether writing the path always needs an approval: by its name or its real folder, it can run code or widen
    /// pixir's permissions.
    pub fn is_protected(&self, at: &Inside) -> bool {
        if self.group_named(at).is_some() {
            return true;
        }
        match self.destination(at) {
            Ok(to) => to.group().is_some(),
            // What leads out of the workspace is refused for that.
            Err(e) => e.code != Code::OutsideWorkspace && at.base.is_written(),
        }
    }

    /// The group of protected files to which a path belongs by its names alone.
    pub(super) fn group_named(&self, at: &Inside) -> Option<Group> {
        let (root, path) = self.held(at);
        root.group_by_name(path)
    }

    /// The same for a path of this root.
    pub(super) fn group_by_name(&self, path: &Path) -> Option<Group> {
        if self.is_own(path) {
            return Some(Group::Pixir);
        }
        protected::group_of(path)
            .or_else(|| self.is_secret_of_home(path).then_some(Group::Keys))
            .or_else(|| self.named.lock().group_of(&self.root, path))
    }

    /// The group of a protected file that a command wrote, by its path in the workspace or, for one of a repository
    /// elsewhere, by its absolute path.
    pub fn group_of(&self, path: &str) -> Group {
        self.locate(path).ok().and_then(|at| self.group_named(&at)).unwrap_or(Group::Git)
    }

    /// The path with the symlinks of its folders resolved.
    pub(super) fn behind_links(&self, path: &Path) -> Option<PathBuf> {
        let parent = path.parent().unwrap_or(Path::new(""));
        // Folders that do not exist yet cannot be symlinks, so the nearest existing ancestor decides.
        let real = parent.ancestors().find_map(|folder| {
            let there =
                if folder.as_os_str().is_empty() { PathBuf::new() } else { self.dir.canonicalize(folder).ok()? };
            Some(there.join(parent.strip_prefix(folder).ok()?))
        })?;
        Some(real.join(path.file_name().map(Path::new).unwrap_or(Path::new(""))))
    }

    /// Whether a path of the workspace is one of pixir's own.
    pub(crate) fn is_own(&self, path: &Path) -> bool {
        self.own.iter().any(|own| path.starts_with(own))
    }

    /// Whether a path of the workspace lies in the home folder and is known to hold secrets.
    fn is_secret_of_home(&self, path: &Path) -> bool {
        let is_secret = |home: &Home| path.strip_prefix(&home.path).is_ok_and(home.is_secret);
        self.home.as_ref().is_some_and(is_secret)
    }

    /// Refuses to read pixir's own files: keys, rules, settings and Logs; and the secrets of a home folder that is opened as
    /// the workspace.
    pub(super) fn check_not_own(&self, at: &Inside) -> Result<()> {
        let (root, path) = self.held(at);
        if !at.base.is_written() || (root.own.is_empty() && root.home.is_none()) {
            return Ok(());
        }
        // A symlink to a file of pixir leads there too.
        let real = root.dir.canonicalize(path).ok().or_else(|| root.behind_links(path));
        if real.as_ref().is_some_and(|real| root.is_secret_of_home(real)) {
            let message = format!("`{}` may hold secrets, so no tool of pixir reads it", at.display());
            let fix = "another file; the user can look there";
            return Err(Error::new(Code::PermissionDenied, message, fix).with("input", at.display()));
        }
        let is_own = real.is_none_or(|real| root.own.iter().any(|own| real.starts_with(own)));
        if !is_own {
            return Ok(());
        }
        Err(Error::new(
            Code::OutsideWorkspace,
            format!("{} belongs to pixir itself", at.display()),
            "use another file: no tool reads pixir's keys, rules, settings and logs",
        )
        .with("input", at.display()))
    }

    /// The protected files and folders directly in the workspace that exist, as absolute paths without symlinks. Programs
    /// in the sandbox only read them. Secrets of a home folder are not among them: no program sees those at all.
    pub fn protected(&self) -> Vec<PathBuf> {
        self.remember_protected();
        let mut there = protected::existing(&self.root);
        there.retain(|path| path.strip_prefix(&self.root).is_ok_and(|path| !self.is_secret_of_home(path)));
        there
    }

    /// How many protected files pixir itself has written or removed.
    pub(crate) fn own_writes(&self) -> usize {
        self.own_writes.lock().len()
    }

    /// Those since the count was this.
    pub(crate) fn own_writes_since(&self, count: usize) -> BTreeSet<PathBuf> {
        self.own_writes.lock().iter().skip(count).cloned().collect()
    }

    /// Notes a write before it is made, so that no guard takes it for a command's.
    pub(super) fn note_own_write(&self, to: &Destination) {
        if to.group().is_some() {
            let (root, path) = self.held(to.at());
            root.own_writes.lock().push(path.to_owned());
        }
    }
}
