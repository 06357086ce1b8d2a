//! The workspace root: every file that a tool touches is opened beneath it.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::fmt;
use std::io::{self, Read as _};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::{Dir, MetadataExt as _, OpenOptions, OpenOptionsExt as _};
use parking_lot::{Mutex, RwLock};

use crate::guard::named::Named;
use crate::guard::survey::Survey;
use protocol::error::{Code, Error, Result};
use protocol::protected::Group;
use protocol::remedy::Remedy;
use storage::file_system::{without_files, without_files_at};
use storage::running::Running;

mod attributes; // what a file has besides its bytes
mod destination; // where a change of a file lands
mod fault; // errors of the file system, in words
mod folders; // other folders that are written as the workspace is
mod inside; // a resolved path
mod locking; // folders of files that are changed
mod outside; // paths outside the workspace, to read only
mod outputs; // the Session's saved outputs
mod protection; // files that can run code later, and pixir's own
pub(crate) mod writing; // changes of files

pub use destination::Destination;
use destination::Identity;
use fault::{leads_out, not_regular, of_kernel};
use inside::Base;
pub use inside::Inside;
pub use locking::Locked;
pub use writing::{New, Replaced, remove_left};

/// Files larger than this are not read whole, bytes.
const MAX_WHOLE: u64 = 64 << 20;

/// `O_NONBLOCK`: opening a FIFO or a device must not wait for its other end.
const O_NONBLOCK: i32 = rustix::fs::OFlags::NONBLOCK.bits() as i32;
const O_NOFOLLOW: i32 = rustix::fs::OFlags::NOFOLLOW.bits() as i32;

/// The root folder that no path given to it can leave.
///
/// Paths are resolved component by component beneath an open handle of the root. Neither `..`, nor a symlink, nor a
/// folder that is swapped during the access leads outside.
pub struct Workspace {
    root: PathBuf,
    /// Another path by which the user has named it.
    alias: Option<PathBuf>,
    dir: Dir,
    /// The folder of saved outputs. Tools may read them; nothing may write them.
    outputs: Option<PathBuf>,
    /// Where temporary files are noted, so that a later pixir can remove those of a killed one.
    notes: Running,
    /// The protected files that pixir itself wrote or removed, in order.
    own_writes: Mutex<Vec<PathBuf>>,
    /// The folders of the workspace, and of its repository elsewhere, as guards last saw them.
    surveys: Mutex<BTreeMap<PathBuf, Survey>>,
    /// What protected files directly in the workspace name.
    named: Mutex<Named>,
    /// pixir's own folders in the workspace, relative to the root.
    own: Vec<PathBuf>,
    /// The user's home folder, relative to the root, where the workspace is that or holds it.
    home: Option<Home>,
    /// Folders that stood at protected paths.
    remembered: Mutex<HashMap<Identity, Group>>,
    /// Other folders that may be written as this one.
    folders: RwLock<Vec<Arc<Workspace>>>,
}

impl fmt::Debug for Workspace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Workspace").field("root", &self.root).finish_non_exhaustive()
    }
}

/// A home folder in the workspace.
struct Home {
    /// Relative to the root.
    path: PathBuf,
    /// Whether a path below it is known to hold secrets.
    is_secret: fn(&Path) -> bool,
}

/// The contents of a file, with its permission bits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contents {
    /// All bytes of the file.
    pub bytes: Vec<u8>,
    /// Permission bits, to be preserved when the file is replaced.
    pub mode: u32,
}

impl Workspace {
    /// Opens the workspace at this folder. A symlink to it is resolved once, here.
    ///
    /// # Errors
    /// `NOT_FOUND` when the path is not a folder that can be opened.
    pub fn open(root: &Path) -> Result<Workspace> {
        let given = root;
        let open = || -> io::Result<(PathBuf, Dir)> {
            let root = given.canonicalize()?;
            let dir = Dir::open_ambient_dir(&root, ambient_authority())?;
            Ok((root, dir))
        };
        let failed = |why: String| {
            let message = format!("open the workspace {}: {why}", given.display());
            Error::new(Code::NotFound, message, Remedy::SetWorkspace).with("input", given.display().to_string())
        };
        let (root, dir) = open().map_err(|e| failed(e.to_string()))?;
        if let Some(kind) = without_files(&dir) {
            return Err(failed(format!(
                "it is on {kind}, in which the kernel shows its state and no project has files"
            )));
        }
        let is_alias = |it: &&Path| it.is_absolute() && *it != root && plain_parts(it);
        let alias = Some(given).filter(is_alias).map(|it| it.components().collect());
        let (notes, own_writes, remembered) = (Running::default(), Mutex::default(), Mutex::default());
        let (own, home, surveys, named) = (Vec::new(), None, Mutex::default(), Mutex::default());
        let folders = RwLock::default();
        let it = Workspace {
            root,
            alias,
            dir,
            outputs: None,
            notes,
            own_writes,
            surveys,
            named,
            own,
            home,
            remembered,
            folders,
        };
        it.remember_protected();
        Ok(it)
    }

    /// Returns the same root, noting its temporary files here.
    #[must_use]
    pub fn noting(mut self, notes: Running) -> Workspace {
        self.notes = notes;
        self
    }

    /// Returns the same root without pixir's own folders, where they lie in it: no tool reads their files, and writing one
    /// always needs an approval.
    #[must_use]
    pub fn guarding<'a>(mut self, own: impl IntoIterator<Item = &'a Path>) -> Workspace {
        // A folder may not exist yet.
        let real = own.into_iter().map(|folder| folder.canonicalize().unwrap_or_else(|_| folder.to_owned()));
        self.own = real.filter_map(|folder| Some(folder.strip_prefix(&self.root).ok()?.to_owned())).collect();
        self
    }

    /// Returns the same root without the secrets of this home folder, where it lies in the workspace or is the workspace: no
    /// tool reads them, and writing one always needs an approval. `is_secret` tells them by their paths in the home folder.
    #[must_use]
    pub fn hiding_secrets_of(mut self, home: Option<&Path>, is_secret: fn(&Path) -> bool) -> Workspace {
        let real = home.and_then(|home| home.canonicalize().ok());
        let path = real.and_then(|home| Some(home.strip_prefix(&self.root).ok()?.to_owned()));
        self.home = path.map(|path| Home { path, is_secret });
        self
    }

    /// Returns the canonical root.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the path by which the user has named the root, if a symlink of it leads there.
    pub fn alias(&self) -> Option<&Path> {
        self.alias.as_deref()
    }

    /// Checks that the folder at the workspace's path is still the one that was opened: what is written to another one, or to
    /// one that is mounted nowhere any more, is lost to the user.
    ///
    /// # Errors
    /// `WORKSPACE_GONE`.
    pub fn check_there(&self) -> Result<()> {
        let opened = self.dir.dir_metadata().map(|it| (it.dev(), it.ino()));
        let now = std::fs::metadata(&self.root).map(|it| Identity::place_of(&it));
        let why = match now {
            Ok(now) if opened.is_ok_and(|opened| opened == now) => return Ok(()),
            Ok(_) => "another folder is at its path now: it was replaced, mounted over or unmounted".to_owned(),
            Err(e) if e.kind() == io::ErrorKind::NotFound => "it was deleted, moved or unmounted".to_owned(),
            Err(e) => e.to_string(),
        };
        let message = format!("the workspace {} is gone: {why}", self.root.display());
        let fix = Remedy::steps(["put the folder back".into(), Remedy::NewSession]);
        Err(Error::new(Code::WorkspaceGone, message, fix).with("workspace", self.root.display().to_string()))
    }

    /// Whether the folder that was opened is deleted, and not only out of reach.
    pub fn is_deleted(&self) -> bool {
        self.dir.dir_metadata().is_ok_and(|it| it.nlink() == 0)
    }

    /// Resolves a path that the model or the user gave.
    ///
    /// # Errors
    /// `OUTSIDE_WORKSPACE` when the text of the path alone leaves the root, `INVALID_ARGS` when it is not a path.
    pub fn locate(&self, given: &str) -> Result<Inside> {
        if given.is_empty() || given.contains('\0') || given.len() > 4096 {
            return Err(Error::new(
                Code::InvalidArgs,
                "the path is empty, too long or holds a NUL byte",
                "give a path relative to the workspace",
            ));
        }
        let path = Path::new(given);
        if let Some(output) = self.saved_output(path) {
            return Ok(output);
        }
        let inside = match path.strip_prefix(&self.root) {
            Err(_) if path.is_absolute() => self.by_another_name(path),
            below => fold(below.unwrap_or(path)),
        };
        match inside {
            Some(path) => Ok(Inside { path, base: Base::Root }),
            None => self.in_folder(path).ok_or_else(|| self.outside(given)),
        }
    }

    /// Where an absolute path lies in the workspace that names the root, or a folder in it, through symlinks elsewhere.
    fn by_another_name(&self, path: &Path) -> Option<PathBuf> {
        let above: Vec<&Path> = path.ancestors().collect();
        above.into_iter().rev().find_map(|above| {
            let real = above.canonicalize().ok()?;
            let rest = path.strip_prefix(above).ok()?;
            fold(&real.strip_prefix(&self.root).ok()?.join(rest))
        })
    }

    fn outside(&self, given: &str) -> Error {
        let folders: String = self.folders().iter().map(|it| format!(" and {}", it.root.display())).collect();
        Error::new(
            Code::OutsideWorkspace,
            format!("`{}` is outside the workspace {}{folders}", given.escape_debug(), self.root.display()),
            "a path inside the workspace",
        )
        .with("input", given)
    }

    fn dir_of<'a>(&self, at: &'a Inside) -> Result<(Dir, &'a Path)> {
        self.opened(at).map_err(|e| self.io("open", at, &e))
    }

    /// A folder that the path cannot leave, and the path in it.
    fn opened<'a>(&self, at: &'a Inside) -> io::Result<(Dir, &'a Path)> {
        match at.base {
            Base::Root | Base::Folder => {
                let (root, path) = self.held(at);
                Ok((root.dir.try_clone()?, path))
            }
            Base::Outputs => self.opened_output(at),
            Base::Outside => outside::parent(&at.path),
        }
    }

    /// The same for a folder whose names are listed.
    fn opened_folder<'a>(&self, at: &'a Inside) -> io::Result<(Dir, &'a Path)> {
        if at.base == Base::Outside {
            return Ok((outside::folder(&at.path)?, Path::new(".")));
        }
        self.opened(at)
    }

    /// Converts a path that a walk below `at` returned.
    pub fn below(&self, at: &Inside, found: &Path) -> Inside {
        let rest = found.strip_prefix(self.path_of(at)).unwrap_or(found);
        Inside { path: at.path.join(rest), base: at.base }
    }

    /// Returns the canonical path, so that two names of one file compare equal.
    pub fn real(&self, at: &Inside) -> PathBuf {
        let real = at.base.is_written().then(|| self.held(at)).and_then(|(root, path)| {
            let real = root.dir.canonicalize(path).ok()?;
            Some(if at.base == Base::Root { real } else { root.root.join(real) })
        });
        real.unwrap_or_else(|| PathBuf::from(at.display()))
    }

    /// Resolves symlinks with an absolute target: their text leads outside, but the target may lie inside.
    fn followed(&self, at: &Inside) -> Inside {
        let leads_out = at.base.is_written() && {
            let (root, path) = self.held(at);
            root.dir.metadata(path).is_err_and(|e| leads_out(&e))
        };
        Some(at).filter(|_| leads_out).and_then(|at| self.behind_absolute_links(at)).unwrap_or_else(|| at.clone())
    }

    fn behind_absolute_links(&self, at: &Inside) -> Option<Inside> {
        let real = self.path_of(at).canonicalize().ok()?;
        let inside = match real.strip_prefix(&self.root) {
            Ok(path) => Inside { path: path.to_owned(), base: Base::Root },
            Err(_) => self.in_folder(&real)?,
        };
        Some(inside).filter(|real| real.path != at.path)
    }

    /// Returns the absolute path, for walking and as a working directory. Opening it directly is not confined to the
    /// root.
    pub fn path_of(&self, at: &Inside) -> PathBuf {
        self.root.join(&at.path)
    }

    /// The root, opened once more.
    pub(super) fn handle(&self) -> io::Result<Dir> {
        self.dir.try_clone()
    }

    /// Looks at a place with what is remembered of it.
    pub(super) fn survey<T>(&self, place: &Path, look: impl FnOnce(&mut Survey) -> T) -> T {
        look(self.surveys.lock().entry(place.to_owned()).or_default())
    }

    /// The files of ignore rules in the workspace, relative to the root, also those that rules ignore.
    pub(super) fn files_of_rules(&self) -> Vec<PathBuf> {
        self.survey(&self.root, |survey| survey.look(&self.dir, None).rules)
    }

    /// Where temporary files, and looks at protected files, are noted.
    pub(super) fn notes(&self) -> &Running {
        &self.notes
    }

    /// Reads a whole regular file.
    ///
    /// # Errors
    /// `NOT_FOUND`, `OUTSIDE_WORKSPACE` through a symlink, `NOT_REGULAR_FILE` for folders, FIFOs and devices, `READ_FAILED`.
    pub fn read(&self, at: &Inside) -> Result<Contents> {
        self.read_at_most(at, MAX_WHOLE)
    }

    /// Reads a whole regular file of at most so many bytes.
    ///
    /// # Errors
    /// As [`Workspace::read`].
    pub(crate) fn read_at_most(&self, at: &Inside, most: u64) -> Result<Contents> {
        self.whole(at, self.open_file(at)?, most)
    }

    fn whole(&self, at: &Inside, (file, len, mode): (std::fs::File, u64, u32), most: u64) -> Result<Contents> {
        let too_large = |what: String| {
            let message = format!("{} {what}; files of at most {} MB are read in full", at.display(), most >> 20);
            Err(Error::new(Code::ReadFailed, message, "read a part of it with head, tail or grep in bash"))
        };
        if len > most {
            return too_large(format!("is {} MB", len >> 20));
        }
        let mut bytes = Vec::with_capacity(usize::try_from(len).unwrap_or(0) + 1);
        // The file may grow meanwhile, for as long as it is read.
        file.take(most + 1).read_to_end(&mut bytes).map_err(|e| self.io("read", at, &e))?;
        if bytes.len() as u64 > most {
            return too_large("grows while it is read".to_owned());
        }
        Ok(Contents { bytes, mode })
    }

    /// Opens a regular file for reading, and returns its length in bytes and its permission bits. It may grow; a reader stops
    /// at this length.
    ///
    /// # Errors
    /// As [`Workspace::read`]; `NOT_REGULAR_FILE` for a file of the kernel, too.
    pub fn open_file(&self, at: &Inside) -> Result<(std::fs::File, u64, u32)> {
        let opened = self.open_shown(at)?;
        match without_files(&opened.0) {
            None => Ok(opened),
            Some(kind) => Err(of_kernel(at, kind)),
        }
    }

    /// The same for a reader with a bound of its own that the user or the model named this file to: it may also be one of the
    /// kernel, such as `/sys/class/net/lo/mtu`. What processes show of themselves is not among them: it has secrets.
    ///
    /// # Errors
    /// As [`Workspace::open_file`], for a file of a process.
    pub fn open_named(&self, at: &Inside) -> Result<(std::fs::File, u64, u32)> {
        let opened = self.open_shown(at)?;
        match without_files(&opened.0) {
            Some(kind @ "proc") => Err(of_kernel(at, kind)),
            None | Some(_) => Ok(opened),
        }
    }

    fn open_shown(&self, at: &Inside) -> Result<(std::fs::File, u64, u32)> {
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(O_NONBLOCK);
        // A folder or a FIFO is refused before it is opened. The open handle is checked again, as the file may have
        // been swapped.
        let at = &self.followed(at);
        let (dir, path) = self.dir_of(at)?;
        let before = at.metadata(&dir, path).map_err(|e| self.io("read", at, &e))?;
        self.check_not_own(at)?;
        if !before.is_file() {
            return Err(not_regular(at, before.is_dir()));
        }
        let file = dir.open_with(path, &options).map_err(|e| self.io("read", at, &e))?;
        let metadata = file.metadata().map_err(|e| self.io("read", at, &e))?;
        if !metadata.is_file() || !at.is_same(&before, &metadata) {
            return Err(not_regular(at, metadata.is_dir()));
        }
        Ok((file.into_std(), metadata.len(), metadata.mode() & 0o777))
    }

    /// Reads a regular file of at most so many bytes, without following any symlink below the root.
    ///
    /// # Errors
    /// As [`Workspace::read`]; `NOT_REGULAR_FILE` for a symlink, or a path through one, too; `READ_FAILED` for a longer
    /// file.
    pub fn read_plain(&self, at: &Inside, most: u64) -> Result<Vec<u8>> {
        let (root, path) = self.held(at);
        let before = root.dir.symlink_metadata(path).map_err(|e| self.io("read", at, &e))?;
        if before.is_symlink() || self.is_behind_symlink(at) {
            let message = format!("`{}` is a symlink, or lies behind one", at.display());
            return Err(Error::new(Code::NotRegularFile, message, "a regular file").with("input", at.display()));
        }
        let (file, ..) = self.open_file(at)?;
        let mut bytes = Vec::new();
        file.take(most + 1).read_to_end(&mut bytes).map_err(|e| self.io("read", at, &e))?;
        if bytes.len() as u64 > most {
            let message = format!("`{}` is larger than {} KB", at.display(), most >> 10);
            return Err(Error::new(Code::ReadFailed, message, "a smaller file").with("input", at.display()));
        }
        Ok(bytes)
    }

    /// Reads a file that may not exist.
    ///
    /// # Errors
    /// As [`Workspace::read`], except that a missing file is `None`.
    pub fn read_if_there(&self, at: &Inside) -> Result<Option<Contents>> {
        match self.read(at) {
            Ok(contents) => Ok(Some(contents)),
            Err(e) if e.code == Code::NotFound => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// Reads the file at a destination, through the folder that was judged. A missing file is `None`.
    ///
    /// # Errors
    /// As [`Workspace::read`]; `NOT_REGULAR_FILE` for a symlink, too; `FILE_CHANGED` when another program has put other folders
    /// there meanwhile.
    pub fn read_at(&self, to: &Destination) -> Result<Option<Contents>> {
        let at = to.at();
        let name = at.path.file_name().ok_or_else(|| not_regular(at, true))?;
        let way = match self.hold(to, false) {
            Ok(way) => way,
            Err(e) if e.code == Code::NotFound => return Ok(None),
            Err(e) => return Err(e),
        };
        self.read_in(at, way.folder(), name)
    }

    /// Reads the file with this name in a folder. A missing file is `None`.
    fn read_in(&self, at: &Inside, folder: &Dir, name: &OsStr) -> Result<Option<Contents>> {
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(O_NONBLOCK | O_NOFOLLOW);
        let read = |e: io::Error| self.io("read", at, &e);
        match folder.symlink_metadata(name) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            found if !found.as_ref().is_ok_and(cap_std::fs::Metadata::is_file) => {
                return Err(not_regular(at, found.map_err(read)?.is_dir()));
            }
            Ok(_) | Err(_) => {}
        }
        let file = folder.open_with(name, &options).map_err(read)?;
        let metadata = file.metadata().map_err(read)?;
        if !metadata.is_file() {
            return Err(not_regular(at, metadata.is_dir()));
        }
        self.whole(at, (file.into_std(), metadata.len(), metadata.mode() & 0o777), MAX_WHOLE).map(Some)
    }

    /// Whether a parent folder of the path is a symlink.
    pub fn is_behind_symlink(&self, at: &Inside) -> bool {
        let (root, path) = self.held(at);
        path.ancestors().skip(1).any(|folder| root.dir.symlink_metadata(folder).is_ok_and(|m| m.is_symlink()))
    }

    /// Whether one of the path's parent folders is a file.
    pub fn is_below_file(&self, at: &Inside) -> bool {
        let (root, path) = self.held(at);
        path.ancestors().skip(1).any(|above| root.dir.metadata(above).is_ok_and(|m| m.is_file()))
    }

    /// Whether anything exists at the path.
    pub fn is_there(&self, at: &Inside) -> bool {
        self.dir_of(at).is_ok_and(|(dir, path)| dir.symlink_metadata(path).is_ok())
    }

    /// Whether the path is a folder inside the workspace.
    ///
    /// # Errors
    /// `NOT_FOUND`, `OUTSIDE_WORKSPACE` through a symlink.
    pub fn is_folder(&self, at: &Inside) -> Result<bool> {
        let at = &self.followed(at);
        let (dir, path) = self.dir_of(at)?;
        Ok(at.metadata(&dir, path).map_err(|e| self.io("read", at, &e))?.is_dir())
    }

    /// Whether the path is an existing regular file of the workspace.
    pub fn is_file(&self, at: &Inside) -> bool {
        let at = &self.followed(at);
        self.dir_of(at).is_ok_and(|(dir, path)| at.metadata(&dir, path).is_ok_and(|metadata| metadata.is_file()))
    }

    /// Whether the path is a folder that a search can walk through.
    ///
    /// # Errors
    /// As [`Workspace::is_folder`]; `NOT_REGULAR_FILE` for a folder whose files are the kernel's.
    pub fn is_searchable(&self, at: &Inside) -> Result<bool> {
        let is_folder = self.is_folder(at)?;
        match without_files_at(&self.path_of(at)).filter(|_| is_folder) {
            None => Ok(is_folder),
            Some(kind) => Err(of_kernel(at, kind)),
        }
    }

    /// Lists the names in a folder, sorted. Folders end in `/`, symlinks in `@`.
    ///
    /// # Errors
    /// `NOT_FOUND`, `OUTSIDE_WORKSPACE` through a symlink, `READ_FAILED`.
    pub fn list(&self, at: &Inside) -> Result<Vec<(String, u64)>> {
        self.names(at).map_err(|e| self.io("list", at, &e))
    }

    /// Lists the plain names in a folder, and whether each leads to a folder.
    ///
    /// # Errors
    /// As [`Workspace::list`].
    pub fn list_raw(&self, at: &Inside) -> Result<Vec<(String, bool)>> {
        let at = &self.followed(at);
        let (dir, path) = self.opened_folder(at).map_err(|e| self.io("list", at, &e))?;
        let entries = dir.read_dir(path).map_err(|e| self.io("list", at, &e))?;
        let named = entries.flatten().map(|entry| {
            let name = entry.file_name();
            let is_folder = dir.metadata(path.join(&name)).is_ok_and(|m| m.is_dir());
            (name.to_string_lossy().into_owned(), is_folder)
        });
        Ok(named.collect())
    }

    fn names(&self, at: &Inside) -> io::Result<Vec<(String, u64)>> {
        let mut names = Vec::new();
        let at = &self.followed(at);
        let (dir, path) = self.opened_folder(at)?;
        for entry in dir.read_dir(path)? {
            let entry = entry?;
            let kind = entry.file_type()?;
            let mark = if kind.is_dir() {
                "/"
            } else if kind.is_symlink() {
                "@"
            } else {
                ""
            };
            let size = entry.metadata().map_or(0, |m| m.len());
            names.push((format!("{}{mark}", entry.file_name().to_string_lossy()), size));
        }
        names.sort();
        Ok(names)
    }
}

/// Whether a path names no folder by `.` or `..`.
fn plain_parts(path: &Path) -> bool {
    path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)))
}

/// Resolves `.` and `..` by text; `None` when the path leaves the root.
fn fold(path: &Path) -> Option<PathBuf> {
    let mut folded = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::Normal(name) => folded.push(name),
            Component::ParentDir => {
                if !folded.pop() {
                    return None;
                }
            }
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(folded)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn fixture() -> (tempfile::TempDir, Workspace) {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().join("app");
        std::fs::create_dir_all(root.join("src")).expect("mkdir");
        std::fs::create_dir_all(folder.path().join("app-evil")).expect("mkdir");
        std::fs::write(root.join("src/a.txt"), "a").expect("write");
        std::fs::write(folder.path().join("secret"), "s").expect("write");
        std::fs::write(folder.path().join("app-evil/x"), "x").expect("write");
        symlink("../secret", root.join("link")).expect("symlink");
        symlink("..", root.join("up")).expect("symlink");
        symlink("src/a.txt", root.join("inner")).expect("symlink");
        symlink("loop", root.join("loop")).expect("symlink");
        let workspace = Workspace::open(&root).expect("open");
        (folder, workspace)
    }

    #[test]
    fn nothing_outside_can_be_read_or_made_by_any_spelling() {
        let (folder, workspace) = fixture();
        let evil = folder.path().join("app-evil/x");
        for path in [
            "../secret",
            "src/../../secret",
            "/etc/passwd",
            "link",
            "up/secret",
            "up/app-evil/x",
            evil.to_str().expect("text"),
            "/proc/self/exe",
        ] {
            let refused = workspace.locate(path).and_then(|at| workspace.read(&at).map(|_| ())).expect_err(path);
            assert_eq!(refused.code, Code::OutsideWorkspace, "{path}");
            let refused = workspace.locate(path).and_then(|at| workspace.replace(&at, b"!", None)).expect_err(path);
            assert!(matches!(refused.code, Code::OutsideWorkspace | Code::WriteFailed), "{path}: {refused:?}");
        }
        let refused = workspace
            .locate("up/new")
            .and_then(|at| workspace.replace(&at, b"!", None))
            .expect_err("through a folder link");
        assert_eq!(refused.code, Code::OutsideWorkspace);
        assert!(!folder.path().join("new").exists());
        assert_eq!(std::fs::read(folder.path().join("secret")).expect("read"), b"s");
    }

    #[test]
    fn inside_every_usual_spelling_works_and_odd_files_are_refused_at_once() {
        let (folder, workspace) = fixture();
        for path in [
            "src/a.txt",
            "./src//a.txt",
            "src/../src/a.txt",
            "inner",
            workspace.root().join("src/a.txt").to_str().expect("text"),
        ] {
            assert_eq!(workspace.read(&workspace.locate(path).expect(path)).expect(path).bytes, b"a");
        }
        assert_eq!(
            workspace.read(&workspace.locate("loop").expect("by text")).expect_err("a loop").kind().name(),
            "read_failed"
        );
        let fifo = folder.path().join("app/fifo");
        assert!(std::process::Command::new("mkfifo").arg(&fifo).status().expect("mkfifo").success());
        assert_eq!(
            workspace.read(&workspace.locate("fifo").expect("by text")).expect_err("a fifo").code,
            Code::NotRegularFile
        );
    }

    #[test]
    fn a_replaced_file_keeps_its_mode_and_a_symlink_is_not_written_through() {
        let (folder, workspace) = fixture();
        let script = folder.path().join("app/run.sh");
        std::fs::write(&script, "old").expect("write");
        std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("chmod");
        let at = workspace.locate("run.sh").expect("locate");
        let before = workspace.read(&at).expect("read");
        workspace.replace(&at, b"new", Some(before.mode)).expect("replace");
        assert_eq!(workspace.read(&at).expect("read").mode, 0o755);
        let error = workspace.replace(&workspace.locate("inner").expect("locate"), b"x", None).expect_err("a symlink");
        assert_eq!(error.code, Code::WriteFailed);
        assert!(
            !std::fs::read_dir(folder.path().join("app")).expect("list").any(|e| e
                .expect("entry")
                .file_name()
                .to_string_lossy()
                .contains(".tmp"))
        );
    }

    #[test]
    fn what_could_run_code_later_is_protected_in_any_case() {
        let (_folder, workspace) = fixture();
        std::fs::create_dir(workspace.root().join(".git")).expect("mkdir");
        symlink(".git", workspace.root().join("g")).expect("symlink");
        for path in [
            "g/hooks/pre-commit",
            "sub/.git/modules/config",
            ".git/config",
            ".GIT/hooks/pre-commit",
            "sub/.git/hooks/x",
            ".pixir/config.toml",
            ".envrc",
            "sub/.gitmodules",
            "sub/.pixir/config.toml",
            ".github/workflows/ci.yml",
            "docs/AGENTS.md",
            ".claude/skills/x/SKILL.md",
            ".cargo/config.toml",
            ".ssh/authorized_keys",
            ".cursor/rules/a.mdc",
            "sub/GEMINI.md",
            ".yarnrc.yml",
            ".config/systemd/user/a.service",
        ] {
            assert!(workspace.is_protected(&workspace.locate(path).expect(path)), "{path}");
        }
        for path in ["src/a.txt", ".github/CODEOWNERS", "git/config", ".cargo/registry", "agents.md.txt"] {
            assert!(!workspace.is_protected(&workspace.locate(path).expect(path)), "{path}");
        }
    }
}
