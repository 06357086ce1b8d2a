//! What commands write to the caches of toolchains: a cover of the Session above them.
//!
//! Programs execute what lies in caches: sources of packages with their build scripts, unpacked tools, wheels. So the user's
//! own caches are only read, and what a command writes there is a cover (overlayfs) that the commands of the Session share
//! and that is removed with it. One mount covers all caches below the home folder; one takes a third of a millisecond.
//!
//! Two mounts that write to one cover would lose each other's folders. So one command at a time writes to it; a job, and a
//! command that runs beside another one, sees it and writes to a cover of its own.

use std::ffi::CString;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt as _, symlink};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

use super::super::view::{View, WORK};
use super::namespaces::{Mounts, old};
use super::{Doing as _, Result};

/// Where covers are mounted while the new file system is built.
const HERE: &str = "/dev/.covers";
/// The most programs of a Session that have a cover of their own at the same time.
const MOST_AT_ONCE: u32 = 1_000;

/// The caches with their covers, as folders to bind.
#[derive(Default)]
pub(super) struct Covers {
    /// The folders that are covered, and where each is mounted.
    mounted: Vec<(PathBuf, PathBuf)>,
    /// The folder of the mounts is there.
    is_open: bool,
    /// Held while the program runs: no other one writes to the same cover.
    lock: Option<OwnedFd>,
}

impl Covers {
    /// Mounts a cover for every cache that can have one. The others are only read.
    ///
    /// Call it before the machine's mounts are closed: a cover lies in one of them.
    pub(super) fn mount(view: &View, mounts: &Mounts) -> Result<Covers> {
        let mut covers = Covers::default();
        let caches: Vec<&PathBuf> = view.caches.iter().filter(|cache| old(cache).is_dir()).collect();
        if caches.is_empty() {
            return Ok(covers);
        }
        make_folder(Path::new(HERE)).doing("create a folder")?;
        let flags = MountFlags::NOSUID | MountFlags::NODEV;
        mount("tmpfs", HERE, "tmpfs", flags, Some(c"mode=0700")).doing("mount a folder for covers")?;
        covers.is_open = true;
        let own = view.cover.as_deref().map(old).filter(|it| it.is_dir());
        let (wholes, parts) = folders(view, &caches, mounts);
        if view.change.is_empty() {
            for part in &parts {
                covers.show(part, own.as_deref());
            }
            return Ok(covers);
        }
        if let Some(own) = &own
            && !view.is_job
            && let Some((work, lock)) = lock(&own.join(WORK), 0)
        {
            covers.lock = Some(lock);
            for whole in &wholes {
                covers.write(whole, &[old(whole)], &own.join(name(whole)), &work.join(name(whole)));
            }
        }
        // Beside another program, or where the file system of the state folder takes no cover.
        let left: Vec<&Part> = parts.iter().filter(|part| covers.of(&part.folder).is_none()).collect();
        if !left.is_empty() {
            let alone = own.as_deref().filter(|_| covers.lock.is_none()).and_then(of_one_program);
            for part in left {
                covers.write_alone(part, own.as_deref(), alone.as_ref().map(|(folder, _)| folder.as_path()));
            }
            covers.lock = covers.lock.or(alone.map(|(_, lock)| lock));
        }
        Ok(covers)
    }

    /// Shows what the Session wrote above a folder of caches, for a program that writes nothing.
    fn show(&mut self, part: &Part, own: Option<&Path>) {
        if let Some(written) = own.and_then(|own| part.written(own)) {
            let lower = format!("{}:{}", plain(&written), plain(&old(&part.folder)));
            self.mount_at(&part.folder, &format!("lowerdir={lower},userxattr"));
        }
    }

    /// Lets a program write above what the Session wrote, for itself alone.
    fn write_alone(&mut self, part: &Part, own: Option<&Path>, alone: Option<&Path>) {
        let number = self.mounted.len();
        let written = own.and_then(|own| part.written(own));
        let lower: Vec<PathBuf> = written.into_iter().chain([old(&part.folder)]).collect();
        // In memory where the disk takes none.
        for folder in alone.into_iter().chain([Path::new(HERE)]) {
            if self.of(&part.folder).is_none() {
                self.write(
                    &part.folder,
                    &lower,
                    &folder.join(format!("u{number}")),
                    &folder.join(format!("w{number}")),
                );
            }
        }
    }

    fn write(&mut self, folder: &Path, lower: &[PathBuf], upper: &Path, work: &Path) {
        if make_folder(upper).is_err() || make_folder(work).is_err() {
            return;
        }
        // With `volatile` the kernel does not wait for the disk when the command ends. It leaves a mark in this folder, and
        // takes no folder again that has the mark. Where it stays, the mount fails.
        let mark = work.join("work/incompat/volatile");
        if fs::remove_file(mark.join("dirty")).is_ok() {
            let _ = fs::remove_dir(mark);
        }
        let lower: Vec<String> = lower.iter().map(|it| plain(it)).collect();
        let (lower, upper, work) = (lower.join(":"), plain(upper), plain(work));
        self.mount_at(
            folder,
            &format!("lowerdir={lower},upperdir={upper},workdir={work},userxattr,index=off,volatile"),
        );
    }

    /// Mounts a cover above a folder. Where the kernel refuses it, the folder has none.
    fn mount_at(&mut self, folder: &Path, options: &str) {
        let at = Path::new(HERE).join(format!("m{}", self.mounted.len()));
        let flags = MountFlags::NOSUID | MountFlags::NODEV;
        let Ok(options) = CString::new(options) else { return };
        if make_folder(&at).is_ok() && mount("overlay", &at, "overlay", flags, Some(options.as_c_str())).is_ok() {
            self.mounted.push((folder.to_owned(), at));
        }
    }

    /// Where a cache with its cover is to be bound from.
    pub(super) fn of(&self, cache: &Path) -> Option<PathBuf> {
        let (folder, at) = self.mounted.iter().find(|(folder, _)| cache.starts_with(folder))?;
        Some(at.join(cache.strip_prefix(folder).ok()?))
    }

    /// Takes the mounts out of sight. What was bound of them stays.
    pub(super) fn hide(&self) -> Result<()> {
        if self.is_open {
            unmount(HERE, UnmountFlags::DETACH).doing("hide the covers")?;
            fs::remove_dir(HERE).doing("hide the covers")?;
        }
        Ok(())
    }
}

/// A folder that holds caches, and lies apart from the state folder: the kernel takes no two folders as the lower ones of a
/// cover if one is in the other.
struct Part {
    folder: PathBuf,
    /// The folder that the Session's cover is for, which is this one or above it.
    whole: PathBuf,
}

impl Part {
    /// Where the Session's cover has what belongs here.
    fn written(&self, own: &Path) -> Option<PathBuf> {
        let below = self.folder.strip_prefix(&self.whole).ok()?;
        Some(own.join(name(&self.whole)).join(below)).filter(|it| it.is_dir())
    }
}

/// The folders to cover: for the program that writes to the Session's cover, and for the others. The first ones are the home
/// folder for the caches on its mount, and each other cache itself. The kernel covers no folder with a mount inside, of which a
/// cover would show what lies below.
fn folders(view: &View, caches: &[&PathBuf], mounts: &Mounts) -> (Vec<PathBuf>, Vec<Part>) {
    let around = |path: &Path| mounts.around(path).map(Path::to_owned).ok();
    let home = view.home.as_deref().filter(|home| mounts.below(home).next().is_none());
    let (mut wholes, mut parts): (Vec<PathBuf>, Vec<Part>) = (Vec::new(), Vec::new());
    for cache in caches.iter().filter(|cache| mounts.below(cache).next().is_none()) {
        let home = home.filter(|home| cache.starts_with(home) && around(home) == around(cache));
        let whole = home.unwrap_or(cache);
        // A name of a file has at most 255 bytes.
        if name(whole).len() > 250 {
            continue;
        }
        let below = cache.strip_prefix(whole).unwrap_or(Path::new(""));
        let folder = match below.components().next() {
            // The state folder lies there.
            Some(Component::Normal(first)) if first != ".local" => whole.join(first),
            Some(_) | None => cache.to_path_buf(),
        };
        if !wholes.iter().any(|it| it == whole) {
            wholes.push(whole.to_owned());
        }
        if !parts.iter().any(|it| it.folder == folder) {
            parts.push(Part { folder, whole: whole.to_owned() });
        }
    }
    (wholes, parts)
}

/// The name of a folder's cover.
fn name(folder: &Path) -> String {
    folder.to_string_lossy().replace('%', "%25").replace('/', "%")
}

fn make_folder(path: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(path) {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => Err(e),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Holds one of these numbered folders, unless another program does.
fn lock(all: &Path, number: u32) -> Option<(PathBuf, OwnedFd)> {
    make_folder(all).ok()?;
    let folder = all.join(number.to_string());
    make_folder(&folder).ok()?;
    let lock = open(&folder, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    flock(&lock, FlockOperation::NonBlockingLockExclusive).ok()?;
    Some((folder, lock))
}

/// A folder for the covers of one program, empty.
fn of_one_program(own: &Path) -> Option<(PathBuf, OwnedFd)> {
    let (folder, lock) = (1..=MOST_AT_ONCE).find_map(|number| lock(&own.join(WORK), number))?;
    for entry in fs::read_dir(&folder).ok()?.flatten() {
        // What stays would be seen by this program.
        fs::remove_dir_all(entry.path()).ok()?;
    }
    Some((folder, lock))
}

/// A path for the options of a mount, in which some characters mean more. A link has none of them.
fn plain(path: &Path) -> String {
    let text = path.to_string_lossy();
    if !text.contains([',', ':', '\\', '"', '\u{fffd}']) {
        return text.into_owned();
    }
    let links = fs::read_dir(HERE).map_or(0, Iterator::count);
    let link = Path::new(HERE).join(format!("l{links}"));
    // Without the link the mount fails, and the cache is only read.
    let _ = symlink(path, &link);
    link.to_string_lossy().into_owned()
}
