//! Saved outputs of the Session, by every name that a result may have told.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::Dir;

use super::inside::Base;
use super::{Inside, Workspace, fold};
use storage::outputs::{FORMER, is_output};

impl Workspace {
    /// Returns the same root with a folder of saved outputs, which tools may read.
    #[must_use]
    pub fn with_outputs(mut self, folder: PathBuf) -> Workspace {
        self.outputs = Some(folder);
        self
    }

    /// The saved output that a path names: by its own path, by the one that older results told, or by the path that it had
    /// in the Session that this one is a copy of.
    pub(super) fn saved_output(&self, given: &Path) -> Option<Inside> {
        let folder = self.outputs.as_ref()?;
        let of = |rest: &Path| Some(Inside { path: folder.join(fold(rest)?), base: Base::Outputs });
        if let Ok(rest) = given.strip_prefix(folder) {
            return of(rest);
        }
        let relative = fold(given.strip_prefix(&self.root).unwrap_or(given));
        if let Some(rest) = relative.as_deref().and_then(|path| path.strip_prefix(FORMER).ok()) {
            return of(rest);
        }
        let (name, above) = (given.file_name()?, given.parent()?);
        let was_ours = given.is_absolute()
            && above.ends_with("out")
            && above.components().any(|part| part.as_os_str() == OsStr::new("sessions"))
            && name.to_str().is_some_and(is_output);
        if was_ours && folder.join(name).is_file() { of(Path::new(name)) } else { None }
    }

    /// The folder of saved outputs, and a path in it.
    pub(super) fn opened_output<'a>(&self, at: &'a Inside) -> io::Result<(Dir, &'a Path)> {
        let folder = self.outputs.as_deref().ok_or(io::ErrorKind::NotFound)?;
        let path = at.path.strip_prefix(folder).map_err(|_| io::ErrorKind::NotFound)?;
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        Ok((Dir::open_ambient_dir(folder, ambient_authority())?, path))
    }
}
