//! Where a change of a file lands: each folder on the way is opened without following a symlink, judged, and then written
//! through. So it does not matter what another program does to the paths meanwhile.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::time::SystemTime;

use cap_std::fs::{Dir, Metadata, MetadataExt as _};

use super::inside::Base;
use super::outside::{Step, step};
use super::{Inside, Workspace, leads_out};
use protocol::error::{Code, Error, Result};
use protocol::protected::Group;

/// How often a path is resolved anew while another program exchanges its folders.
const MOST_LOOKS: usize = 50;

/// Where a change of a file lands. This path is judged, shown and recorded, and [`Workspace::replace_at`] writes there or
/// not at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    at: Inside,
    given: Inside,
    group: Option<Group>,
    /// The groups of its folders, whatever their names are.
    of_folders: BTreeSet<Group>,
    /// It was judged by its names alone.
    is_exact: bool,
}

impl Destination {
    /// Its path, with no symlink among the folders.
    pub fn at(&self) -> &Inside {
        &self.at
    }

    /// The path that was given.
    pub fn given(&self) -> &Inside {
        &self.given
    }

    /// The group of protected files to which it belongs.
    pub fn group(&self) -> Option<Group> {
        self.group
    }
}

/// What tells a folder from any other one, also from one that gets its inode later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Identity(u64, u64, Option<SystemTime>);

impl Identity {
    fn of(metadata: &Metadata) -> Identity {
        Identity(metadata.dev(), metadata.ino(), metadata.created().ok().map(cap_std::time::SystemTime::into_std))
    }

    /// Device and inode.
    pub(super) fn place_of(metadata: &std::fs::Metadata) -> (u64, u64) {
        use std::os::unix::fs::MetadataExt as _;
        (metadata.dev(), metadata.ino())
    }

    fn of_std(metadata: &std::fs::Metadata) -> Identity {
        use std::os::unix::fs::MetadataExt as _;
        Identity(metadata.dev(), metadata.ino(), metadata.created().ok())
    }
}

/// The folders from the root to a file, each opened in the one above it.
pub(super) struct Way {
    root: Dir,
    folders: Vec<(PathBuf, Dir)>,
    /// How many of them were made for the file.
    pub(super) made: u32,
}

/// Why a way does not lead to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Stop {
    /// This folder is a symlink.
    Symlink(PathBuf),
    /// This folder does not exist.
    Missing(PathBuf),
    /// This is a file.
    File(PathBuf),
}

impl Way {
    /// The path of the last folder that is open, relative to the root.
    pub(super) fn path(&self) -> &Path {
        self.folders.last().map_or(Path::new(""), |(path, _)| path.as_path())
    }

    /// The folder of the file.
    pub(super) fn folder(&self) -> &Dir {
        self.folders.last().map_or(&self.root, |(_, folder)| folder)
    }

    /// Each folder with the one above it, the last first.
    fn steps(&self) -> impl Iterator<Item = (&Path, &Dir, &Dir)> {
        (0..self.folders.len()).rev().map(|n| {
            let above = if n == 0 { &self.root } else { &self.folders[n - 1].1 };
            (self.folders[n].0.as_path(), above, &self.folders[n].1)
        })
    }

    /// Opens the folders of a path that are not open yet, each after `prepares` has seen its name.
    fn go(
        &mut self,
        path: &Path,
        mut prepares: impl FnMut(&Dir, &OsStr) -> io::Result<()>,
    ) -> io::Result<Option<Stop>> {
        let mut at = self.folders.last().map_or(PathBuf::new(), |(at, _)| at.clone());
        for part in path.parent().unwrap_or(Path::new("")).components().skip(self.folders.len()) {
            let Component::Normal(name) = part else { return Err(io::ErrorKind::InvalidInput.into()) };
            at.push(name);
            prepares(self.folder(), name)?;
            match step(self.folder(), name)? {
                Step::Folder(folder) => self.folders.push((at.clone(), folder)),
                Step::Symlink => return Ok(Some(Stop::Symlink(at))),
                Step::Missing => return Ok(Some(Stop::Missing(at))),
                Step::Other => return Ok(Some(Stop::File(at))),
            }
        }
        Ok(None)
    }

    /// Makes and opens the folders of a path that are missing.
    fn make(&mut self, path: &Path) -> io::Result<Option<Stop>> {
        let mut made = 0;
        let ended = self.go(path, |above, name| match above.create_dir(name) {
            Ok(()) => {
                made += 1;
                Ok(())
            }
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            Err(e) => Err(e),
        });
        self.made = made;
        ended
    }

    /// Removes the folders that were made for the file.
    pub(super) fn remove_made(&self) {
        self.remove_folders(self.made);
    }

    /// Removes up to so many folders, the last first; one that is not empty ends that.
    pub(super) fn remove_folders(&self, most: u32) {
        for (path, above, _) in self.steps().take(most as usize) {
            if above.remove_dir(name_of(path)).is_err() {
                break;
            }
        }
    }

    /// The first folder that is no longer where it was opened.
    fn moved(&self) -> Option<&Path> {
        let is_there = |path: &Path, above: &Dir, folder: &Dir| {
            let (named, held) = (above.symlink_metadata(name_of(path)).ok()?, folder.dir_metadata().ok()?);
            Some((named.dev(), named.ino()) == (held.dev(), held.ino()))
        };
        self.steps().find(|(path, above, folder)| is_there(path, above, folder) != Some(true)).map(|(path, ..)| path)
    }
}

fn name_of(path: &Path) -> &Path {
    path.file_name().map_or(path, Path::new)
}

impl Workspace {
    /// Where a change of this path lands. Symlinks among its folders are resolved as long as they stay inside.
    ///
    /// # Errors
    /// `OUTSIDE_WORKSPACE` where a symlink leads out, `WRITE_FAILED` for saved outputs, `FILE_CHANGED` where another program
    /// exchanges the folders faster than they can be resolved.
    pub fn destination(&self, given: &Inside) -> Result<Destination> {
        self.check_inside(given)?;
        let (root, path) = self.held(given);
        let mut stop = None;
        for _ in 0..MOST_LOOKS {
            let Some(real) = root.behind_links(path) else { break };
            let (way, ended) = root.way(&real).map_err(|e| self.io("write", given, &e))?;
            if let Some(Stop::Symlink(_)) = ended {
                stop = ended;
                continue;
            }
            let group = root.group_by_name(path).or_else(|| root.group_by_name(&real));
            let of_folders: BTreeSet<Group> =
                way.folders.iter().filter_map(|(_, it)| root.group_of_folder(it)).collect();
            let group = group.or_else(|| of_folders.first().copied());
            root.remember_on(&way);
            let real = if given.base == Base::Folder { root.root.join(real) } else { real };
            let at = Inside { path: real, base: given.base };
            return Ok(Destination { at, given: given.clone(), group, of_folders, is_exact: false });
        }
        match root.dir.symlink_metadata(path) {
            Err(e) if leads_out(&e) => Err(self.io("write", given, &e)),
            Ok(_) | Err(_) => Err(match stop {
                Some(stop) => stopped(given, &stop),
                None => exchanged(given, given.path.parent().unwrap_or(Path::new(""))),
            }),
        }
    }

    /// The same for a path that was judged already, without a symlink among its folders.
    pub(crate) fn exact(&self, at: &Inside) -> Destination {
        let group = self.group_named(at);
        Destination { at: at.clone(), given: at.clone(), group, of_folders: BTreeSet::new(), is_exact: true }
    }

    /// Opens the folder of a destination, and makes it with `makes`.
    ///
    /// # Errors
    /// `FILE_CHANGED` where a folder is no longer the one that was judged.
    pub(super) fn hold(&self, to: &Destination, makes: bool) -> Result<Way> {
        self.check_inside(&to.at)?;
        let failed = |e: &io::Error| self.io("write", &to.at, e);
        let (root, path) = self.held(&to.at);
        let (mut way, mut ended) = root.way(path).map_err(|e| failed(&e))?;
        // Nothing is made in a folder that was not judged.
        root.check_judged(to, &way)?;
        if makes && matches!(ended, Some(Stop::Missing(_))) {
            let made = way.make(path);
            ended = made.inspect_err(|_| way.remove_made()).map_err(|e| failed(&e))?;
        }
        let checked = match ended {
            None => root.check_judged(to, &way).and_then(|()| self.check_held(to, &way)),
            Some(Stop::Missing(_) | Stop::File(_)) if !makes => Err(failed(&io::ErrorKind::NotFound.into())),
            Some(stop) => Err(stopped(&to.at, &stop)),
        };
        match checked {
            Ok(()) => Ok(way),
            Err(e) => {
                way.remove_made();
                Err(e)
            }
        }
    }

    /// Fails where a folder is one of protected files by what it is, and the destination was judged to be something else.
    fn check_judged(&self, to: &Destination, way: &Way) -> Result<()> {
        let is_judged = |group: Group| match to.group {
            Some(judged) => to.is_exact || judged == group || to.of_folders.contains(&group),
            None => false,
        };
        let other = way.folders.iter().find_map(|(path, folder)| {
            let group = self.group_of_folder(folder).filter(|group| !is_judged(*group))?;
            Some((path, group))
        });
        let Some((path, group)) = other else { return Ok(()) };
        let (shown, folder) = (to.at.display(), path.display());
        let message = format!(
            "`{folder}` is now a folder of protected files ({}), so `{shown}` is not the file that was judged; nothing was \
             written",
            group.name()
        );
        Err(Error::new(Code::FileChanged, message, AGAIN).with("input", shown))
    }

    /// Fails where a folder that is held has been moved.
    ///
    /// # Errors
    /// `FILE_CHANGED`.
    pub(super) fn check_held(&self, to: &Destination, way: &Way) -> Result<()> {
        match way.moved() {
            None => Ok(()),
            Some(path) => Err(exchanged(&to.at, path)),
        }
    }

    /// Opens the folders of a path one after the other, as far as they are there.
    pub(super) fn way(&self, path: &Path) -> io::Result<(Way, Option<Stop>)> {
        let mut way = Way { root: self.handle()?, folders: Vec::new(), made: 0 };
        let stop = way.go(path, |_, _| Ok(()))?;
        Ok((way, stop))
    }

    pub(super) fn check_inside(&self, at: &Inside) -> Result<()> {
        match at.base {
            Base::Root => Ok(()),
            Base::Folder if self.folder_of(&at.path).is_some() => Ok(()),
            Base::Outputs => {
                let message = "saved outputs are read-only";
                Err(Error::new(Code::WriteFailed, message, "a path inside the workspace").with("input", at.display()))
            }
            Base::Folder | Base::Outside => Err(self.outside(&at.display())),
        }
    }

    /// The group of a folder by what it is, whatever its name is now: a folder that stood at a protected path, or a
    /// repository.
    fn group_of_folder(&self, folder: &Dir) -> Option<Group> {
        let identity = Identity::of(&folder.dir_metadata().ok()?);
        let remembered = self.remembered.lock().get(&identity).copied();
        remembered.or_else(|| is_repository(folder).then_some(Group::Git))
    }

    /// Remembers the folders on a way that have protected names.
    fn remember_on(&self, way: &Way) {
        let named = way.folders.iter().filter_map(|(path, folder)| Some((folder, self.group_by_name(path)?)));
        let known = named.filter_map(|(it, group)| Some((Identity::of(&it.dir_metadata().ok()?), group)));
        self.remembered.lock().extend(known);
    }

    /// Remembers the protected folders directly in the workspace, so that they are known when they have another name.
    pub(super) fn remember_protected(&self) {
        let there = crate::protected::folders(&self.root).filter_map(|(path, group)| {
            let metadata = std::fs::symlink_metadata(path).ok().filter(std::fs::Metadata::is_dir)?;
            Some((Identity::of_std(&metadata), group))
        });
        let there: Vec<_> = there.collect();
        self.remembered.lock().extend(there);
    }
}

/// Whether git takes a folder for a repository, or for what it knows of a linked work tree.
fn is_repository(folder: &Dir) -> bool {
    let is = |name: &str, is: fn(&Metadata) -> bool| folder.symlink_metadata(name).is_ok_and(|it| is(&it));
    is("HEAD", |it| !it.is_dir())
        && ((is("objects", Metadata::is_dir) && is("refs", Metadata::is_dir)) || is("commondir", Metadata::is_file))
}

const AGAIN: &str = "look at its folders with ls, then repeat the change";

fn stopped(at: &Inside, stop: &Stop) -> Error {
    let shown = at.display();
    let (path, is) = match stop {
        Stop::Symlink(path) => (path, "is a symlink now"),
        Stop::File(path) => (path, "is a file"),
        Stop::Missing(path) => (path, "is missing"),
    };
    let code = if matches!(stop, Stop::Symlink(_)) { Code::FileChanged } else { Code::WriteFailed };
    let message =
        format!("`{}` {is}, so `{shown}` is not the file that was judged; nothing was written", path.display());
    Error::new(code, message, AGAIN).with("input", shown)
}

fn exchanged(at: &Inside, folder: &Path) -> Error {
    let shown = at.display();
    let message = format!(
        "another program moved or exchanged `{}` meanwhile, so `{shown}` is not the file that was judged; nothing was written",
        folder.display()
    );
    Error::new(Code::FileChanged, message, AGAIN).with("input", shown)
}

#[cfg(test)]
mod tests;
