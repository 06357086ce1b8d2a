//! A file system, processes and a network of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, FileTypeExt as _, symlink};
use std::path::{Path, PathBuf};

use nix::sched::{CloneFlags, unshare};
use rustix::fs::{Mode, StatVfsMountFlags, chmod, statvfs};
use rustix::io::Errno;
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind, mount_bind_recursive, mount_change,
    mount_remount, unmount,
};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with};
use rustix::process::{getgid, getuid, pivot_root};

use super::covers::Covers;
use super::{Doing as _, Network, Plan, Result, neighbours};
use storage::file_system::without_files_at;

/// Where the machine's file system stands while the new one is built: in a folder that no part of the machine covers.
const OLD: &str = "/dev/.old";
/// What is never the machine's, also where all of its file system is shown.
const OWN: [&str; 3] = ["/dev", "/proc", "/tmp"];
/// Devices that programs need.
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];
/// Settings of the kernel that root could change through `/proc`, also without any capability.
const KERNEL_SETTINGS: [&str; 4] = ["/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus"];

/// Enters new namespaces. Processes that are started from now on are in the new process namespace. While a job of the Session
/// lives, its network is shared, and with it the user namespace that owns the network.
pub(super) fn leave(plan: &Plan) -> Result<()> {
    let has_own = plan.network == Network::Own;
    let shares = has_own && neighbours::join(&plan.jobs)?;
    let (user, group) = (getuid().as_raw(), getgid().as_raw());
    let mut new =
        CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWPID | CloneFlags::CLONE_NEWIPC | CloneFlags::CLONE_NEWUTS;
    new.set(CloneFlags::CLONE_NEWUSER, !shares);
    new.set(CloneFlags::CLONE_NEWNET, !shares && has_own);
    unshare(new).doing("enter namespaces")?;
    if shares {
        // The launcher of the job has set both up.
        return Ok(());
    }
    let write = |name: &str, text: String| {
        let path = Path::new("/proc/self").join(name);
        fs::OpenOptions::new().write(true).open(&path)?.write_all(text.as_bytes())
    };
    // Only pixir's own user and group exist in the new namespace.
    write("setgroups", "deny".into()).doing("keep the groups")?;
    write("uid_map", format!("{user} {user} 1")).doing("keep the user")?;
    write("gid_map", format!("{group} {group} 1")).doing("keep the group")?;
    if has_own {
        start_loopback().doing("start the loopback network")?;
    }
    Ok(())
}

/// Tests and servers talk to themselves over the loopback interface, which a new network begins without.
fn start_loopback() -> io::Result<()> {
    const NEW_LINK: u16 = 16;
    const REQUEST_AND_ACKNOWLEDGE: u16 = 1 | 4;
    const LOOPBACK: i32 = 1;
    const UP: u32 = 1;
    // Protocol 0 of netlink is the one for links and routes.
    let netlink = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    let mut message = Vec::with_capacity(32);
    message.extend(32_u32.to_ne_bytes()); // the length of the message
    message.extend(NEW_LINK.to_ne_bytes());
    message.extend(REQUEST_AND_ACKNOWLEDGE.to_ne_bytes());
    message.extend(1_u32.to_ne_bytes()); // its number
    message.extend(0_u32.to_ne_bytes()); // to the kernel
    message.extend([0_u8; 4]); // any family, any type
    message.extend(LOOPBACK.to_ne_bytes());
    message.extend(UP.to_ne_bytes()); // the flags
    message.extend(UP.to_ne_bytes()); // those that change
    send(&netlink, &message, SendFlags::empty())?;
    let mut answer = [0_u8; 64];
    let (length, _) = recv(&netlink, &mut answer, RecvFlags::empty())?;
    // After the header of 16 bytes stands the negated error.
    match answer.get(16..20).filter(|_| length >= 20).and_then(|it| it.try_into().ok()).map(i32::from_ne_bytes) {
        Some(0) => Ok(()),
        Some(error) => Err(io::Error::from_raw_os_error(-error)),
        None => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// What stands at a path of the new file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Item {
    Show,
    Change,
    Cache,
    Hide,
    Empty,
}

impl Item {
    /// A part of the machine's file system.
    fn is_of_the_machine(self) -> bool {
        match self {
            Item::Show | Item::Change | Item::Cache => true,
            Item::Hide | Item::Empty => false,
        }
    }
}

/// Builds the file system that the plan describes, and makes it the root. Returns the covers in it, which are in use as long as
/// they live.
pub(super) fn build(plan: &Plan) -> Result<Covers> {
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC).doing("make mounts private")?;
    let view = &plan.view;
    // A workspace that is the whole file system lies in no folder in which it could be shown.
    let is_whole = view.show.iter().chain(&view.change).any(|it| it.parent().is_none());
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    mount("tmpfs", "/tmp", "tmpfs", flags, Some(c"mode=0755")).doing("mount a root")?;
    let closed = |path: &str| fs::DirBuilder::new().mode(0o555).create(path);
    std::env::set_current_dir("/tmp").doing("enter the root")?;
    if is_whole {
        closed("root").doing("create a folder")?;
        mount_bind_recursive("/", "root").doing("show the file system")?;
        std::env::set_current_dir("root").doing("enter the root")?;
        mount("tmpfs", "dev", "tmpfs", flags, Some(c"mode=0555")).doing("mount /dev")?;
    } else {
        closed("dev").doing("create a folder")?;
    }
    closed(&OLD[1..]).doing("create a folder")?;
    pivot_root(".", &OLD[1..]).doing("exchange the root")?;
    std::env::set_current_dir("/").doing("enter the root")?;
    if is_whole {
        // The root came through the folder for temporary files, which is the machine's again.
        unmount("/tmp", UnmountFlags::DETACH).doing("leave /tmp")?;
        unmount(old(Path::new("/tmp")), UnmountFlags::DETACH).doing("leave /tmp")?;
    }
    let mut root = Root { mounts: Mounts::read().doing("read the mounts")?, is_whole, ..Root::default() };

    let mut items: BTreeMap<&Path, Item> = BTreeMap::new();
    for (paths, item) in [
        (&view.empty, Item::Empty),
        (&view.show, Item::Show),
        (&view.caches, Item::Cache),
        (&view.change, Item::Change),
        (&view.hide, Item::Hide),
        (&view.keep, Item::Show),
    ] {
        items.extend(paths.iter().map(|path| (path.as_path(), item)));
    }
    // A recursive bind would bring them along.
    let sockets = root.mounts.sockets(&items);
    items.extend(sockets.iter().map(|path| (path.as_path(), Item::Hide)));
    let works = !view.change.is_empty();
    temporary(view.scratch.as_deref(), &mut root)?;
    // After the temporary folder, because a name may lie in it. The whole file system has them all.
    for (name, target) in view.links.iter().filter(|(name, _)| !is_whole || OWN.iter().any(|own| name.starts_with(own)))
    {
        if let Some(parent) = name.parent() {
            // Where the name lies in a shown folder, that folder has the link.
            let _ = root.folder(parent).and_then(|()| symlink(target, name));
        }
    }
    devices(&mut root)?;
    root.covers = Covers::mount(view, &root.mounts)?;
    root.mounts.close(items.iter().filter(|(_, item)| item.is_of_the_machine()).map(|(path, _)| *path))?;
    // In order, so that a folder stands before what is below it.
    for (path, item) in &items {
        root.place(path, *item, &items)?;
    }
    root.covers.hide()?;
    if !works && view.scratch.is_some() {
        // Only now: a workspace may lie below it.
        remount(Path::new("/tmp"), MountFlags::RDONLY)?;
    }
    processes(&mut root)?;
    unmount(OLD, UnmountFlags::DETACH).doing("leave the old root")?;
    fs::remove_dir(OLD).doing("remove the old root")?;
    if !works {
        remount(Path::new("/"), MountFlags::RDONLY)?;
    } else if !is_whole {
        chmod("/", Mode::from_raw_mode(0o555)).doing("close the root")?;
    }
    Ok(root.covers)
}

/// The new file system while it is built. Each system call counts: a program waits for all of them.
#[derive(Default)]
struct Root {
    mounts: Mounts,
    covers: Covers,
    /// It is the machine's file system, with other folders in some places.
    is_whole: bool,
    /// Folders that exist.
    folders: BTreeSet<PathBuf>,
    /// The first hidden folder and file. Others show the same.
    hidden_folder: Option<PathBuf>,
    hidden_file: Option<PathBuf>,
}

impl Root {
    fn place(&mut self, path: &Path, item: Item, items: &BTreeMap<&Path, Item>) -> Result<()> {
        let doing = |what: &str| format!("{what} {}", path.display());
        let old = old(path);
        match item {
            Item::Empty => {
                let above = path.ancestors().skip(1).find_map(|above| items.get(above));
                // In a folder that may be changed, the program can create it itself.
                if above != Some(&Item::Change) && self.folder(path.parent().unwrap_or(path)).is_ok() {
                    let _ = fs::DirBuilder::new().mode(0o755).create(path);
                }
                Ok(())
            }
            Item::Show | Item::Change if path.parent().is_none() => self.whole(item),
            Item::Show | Item::Change | Item::Cache => {
                let Ok(metadata) = fs::symlink_metadata(&old) else { return Ok(()) };
                if metadata.is_symlink() || self.prepare(path, metadata.is_dir()).is_err() {
                    return Ok(());
                }
                if let Some(covered) = self.covers.of(path).filter(|_| item == Item::Cache) {
                    return mount_bind(&covered, path).doing(&doing("show"));
                }
                // It is as closed as the mount that it comes from.
                mount_bind_recursive(&old, path).doing(&doing("show"))?;
                if item == Item::Change { self.mounts.open(path) } else { Ok(()) }
            }
            Item::Hide => {
                let Ok(metadata) = fs::symlink_metadata(&old) else { return Ok(()) };
                let first = if metadata.is_dir() { &mut self.hidden_folder } else { &mut self.hidden_file };
                if let Some(first) = first {
                    return match mount_bind(&*first, path) {
                        // A socket that has been closed since.
                        Err(Errno::NOENT) => Ok(()),
                        bound => bound.doing(&doing("hide")),
                    };
                }
                if fs::symlink_metadata(path).is_err() {
                    return Ok(());
                }
                *first = Some(path.to_owned());
                if metadata.is_dir() {
                    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC | MountFlags::RDONLY;
                    mount("tmpfs", path, "tmpfs", flags, Some(c"mode=0111,size=64k")).doing(&doing("hide"))
                } else {
                    // The mount allows no devices, so opening the file fails.
                    mount_bind_recursive(old_device("null"), path).doing(&doing("hide"))?;
                    remount(path, MountFlags::RDONLY)
                }
            }
        }
    }

    /// Gives all that is mounted in the machine's file system the flags with which programs see it. What the kernel shows of
    /// itself there, no program changes.
    fn whole(&self, item: Item) -> Result<()> {
        for (path, flags) in &self.mounts.0 {
            let Some(flags) = flags.filter(|_| !OWN.iter().any(|own| path.starts_with(own))) else { continue };
            let is_changed = item == Item::Change && without_files_at(path).is_none();
            let more = if is_changed { MountFlags::empty() } else { MountFlags::RDONLY };
            match mount_remount(path, flags | more, c"") {
                // Another mount covers it.
                Err(Errno::INVAL | Errno::NOENT) if path.parent().is_some() => {}
                done => done.doing(&format!("restrict {}", path.display()))?,
            }
        }
        Ok(())
    }

    /// Creates the file or folder that a mount covers.
    fn prepare(&mut self, path: &Path, is_folder: bool) -> io::Result<()> {
        if is_folder {
            return self.folder(path);
        }
        self.folder(path.parent().unwrap_or(path))?;
        match fs::File::create_new(path) {
            Err(e) if e.kind() != io::ErrorKind::AlreadyExists && fs::symlink_metadata(path).is_err() => Err(e),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// Creates a folder that no program writes to, and those above it.
    fn folder(&mut self, path: &Path) -> io::Result<()> {
        if self.folders.contains(path) {
            return Ok(());
        }
        if let Some(above) = path.parent().filter(|above| above.parent().is_some()) {
            self.folder(above)?;
        }
        match fs::DirBuilder::new().mode(0o555).create(path) {
            Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(e),
            Ok(()) | Err(_) => {}
        }
        self.folders.insert(path.to_owned());
        Ok(())
    }
}

/// Where this path of the machine is while the new file system is built.
pub(super) fn old(path: &Path) -> PathBuf {
    Path::new(OLD).join(path.strip_prefix("/").unwrap_or(path))
}

fn old_device(name: &str) -> PathBuf {
    Path::new(OLD).join("dev").join(name)
}

/// Sets the flags of a mount: no devices, no set-user-id, and `more`.
fn remount(path: &Path, more: MountFlags) -> Result<()> {
    let flags = flags_of(path)?;
    mount_remount(path, flags | more, c"").doing(&format!("restrict {}", path.display()))
}

/// The flags that a mount of programs has at least. A flag of the mount outside cannot be taken away, and leaving it out would
/// be an attempt to.
fn flags_of(path: &Path) -> Result<MountFlags> {
    let now = statvfs(path).doing(&format!("look at {}", path.display()))?.f_flag;
    let mut flags = MountFlags::BIND | MountFlags::NOSUID | MountFlags::NODEV;
    for (is_set, flag) in [
        (StatVfsMountFlags::RDONLY, MountFlags::RDONLY),
        (StatVfsMountFlags::NOEXEC, MountFlags::NOEXEC),
        (StatVfsMountFlags::NOATIME, MountFlags::NOATIME),
        (StatVfsMountFlags::NODIRATIME, MountFlags::NODIRATIME),
        (StatVfsMountFlags::RELATIME, MountFlags::RELATIME),
    ] {
        flags.set(flag, now.contains(is_set));
    }
    Ok(flags)
}

/// The folder for temporary files: the Session's, or an empty one.
fn temporary(scratch: Option<&Path>, root: &mut Root) -> Result<()> {
    let tmp = Path::new("/tmp");
    if root.is_whole {
        let flags = MountFlags::NOSUID | MountFlags::NODEV;
        mount("tmpfs", tmp, "tmpfs", flags, Some(c"mode=1777")).doing("mount /tmp")?;
    } else {
        fs::create_dir(tmp).doing("create /tmp")?;
    }
    match scratch {
        Some(scratch) => {
            mount_bind_recursive(old(scratch), tmp).doing("show the temporary folder")?;
            remount(tmp, MountFlags::empty())?;
            root.mounts.below(scratch).try_for_each(|below| remount(below, MountFlags::empty()))?;
        }
        None => chmod(tmp, Mode::from_raw_mode(0o1777)).doing("open /tmp")?,
    }
    if root.is_whole {
        return Ok(());
    }
    root.folder(Path::new("/var")).and_then(|()| symlink("/tmp", "/var/tmp")).doing("create /var/tmp")
}

fn devices(root: &mut Root) -> Result<()> {
    root.folder(Path::new("/dev/shm")).and_then(|()| root.folder(Path::new("/dev/pts"))).doing("create /dev")?;
    chmod("/dev/shm", Mode::from_raw_mode(0o1777)).doing("open /dev/shm")?;
    for name in DEVICES {
        let path = Path::new("/dev").join(name);
        fs::File::create_new(&path).doing("create a device")?;
        mount_bind_recursive(old_device(name), &path).doing(&format!("show /dev/{name}"))?;
    }
    let flags = MountFlags::NOSUID | MountFlags::NOEXEC;
    mount("devpts", "/dev/pts", "devpts", flags, Some(c"newinstance,ptmxmode=0666,mode=0620"))
        .doing("mount /dev/pts")?;
    let links = [
        ("pts/ptmx", "/dev/ptmx"),
        ("/proc/self/fd", "/dev/fd"),
        ("/proc/self/fd/0", "/dev/stdin"),
        ("/proc/self/fd/1", "/dev/stdout"),
        ("/proc/self/fd/2", "/dev/stderr"),
    ];
    links.into_iter().try_for_each(|(target, name)| symlink(target, name)).doing("create /dev")
}

/// The processes of the namespace, and no others.
fn processes(root: &mut Root) -> Result<()> {
    root.folder(Path::new("/proc")).doing("create /proc")?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("proc", "/proc", "proc", flags, None).doing("mount /proc")?;
    if getuid().is_root() {
        for path in KERNEL_SETTINGS {
            match mount_bind(path, path) {
                // This kernel has no such settings.
                Err(Errno::NOENT) => continue,
                bound => bound.doing("protect the kernel's settings")?,
            }
            let flags = flags | MountFlags::BIND | MountFlags::RDONLY;
            mount_remount(path, flags, c"").doing("protect the kernel's settings")?;
        }
    }
    Ok(())
}

/// The mounts of the machine by their paths. Those that were closed have the flags with which programs may change them.
#[derive(Default)]
pub(super) struct Mounts(BTreeMap<PathBuf, Option<MountFlags>>);

impl Mounts {
    fn read() -> io::Result<Mounts> {
        let text = fs::read_to_string(Path::new(OLD).join("proc/self/mountinfo"))?;
        // The fifth word is the mount point; it stands below the old root now.
        let points = text.lines().filter_map(|line| line.split(' ').nth(4)).filter_map(|point| {
            let point = unescape(point);
            // The old root itself, or a mount below it.
            let below = point.strip_prefix(OLD).filter(|it| it.is_empty() || it.starts_with('/'))?;
            Some((Path::new("/").join(below.trim_start_matches('/')), None))
        });
        Ok(Mounts(points.collect()))
    }

    /// Those below this path, which a recursive bind brings along.
    pub(super) fn below<'a>(&'a self, path: &'a Path) -> impl Iterator<Item = &'a Path> {
        self.0.keys().map(PathBuf::as_path).filter(move |it| *it != path && it.starts_with(path))
    }

    /// Sockets that are mounted on a file in what these items show.
    fn sockets(&self, items: &BTreeMap<&Path, Item>) -> Vec<PathBuf> {
        let is_shown = |path: &Path| {
            path.ancestors().find_map(|above| items.get(above)).is_some_and(|item| item.is_of_the_machine())
        };
        let is_socket = |path: &Path| fs::symlink_metadata(old(path)).is_ok_and(|it| it.file_type().is_socket());
        self.0.keys().filter(|path| is_shown(path) && is_socket(path)).cloned().collect()
    }

    /// The mount that this path lies in.
    pub(super) fn around(&self, path: &Path) -> Result<&Path> {
        let around = path.ancestors().find_map(|above| self.0.get_key_value(above));
        around.map(|(path, _)| path.as_path()).ok_or_else(|| format!("no mount has {}", path.display()))
    }

    /// Makes every mount that brings these paths into the new file system read-only, without devices and without set-user-id,
    /// as this process sees it. What is shown from there has the same flags, so that they are set once.
    fn close<'a>(&mut self, paths: impl Iterator<Item = &'a Path>) -> Result<()> {
        let mut needed: BTreeSet<PathBuf> = BTreeSet::new();
        for path in paths {
            needed.insert(self.around(path)?.to_owned());
            // What is never the machine's stays as it is: nothing shows it.
            let is_own = |below: &Path| path.parent().is_none() && OWN.iter().any(|own| below.starts_with(own));
            needed.extend(self.below(path).filter(|below| !is_own(below)).map(Path::to_owned));
        }
        for path in needed {
            let old = old(&path);
            let flags = match flags_of(&old) {
                Ok(flags) => flags,
                // Nothing shows what this process cannot reach either.
                Err(_) if fs::symlink_metadata(&old).is_err() => continue,
                Err(e) => return Err(e),
            };
            mount_remount(&old, flags | MountFlags::RDONLY, c"").doing(&format!("restrict {}", path.display()))?;
            self.0.insert(path, Some(flags));
        }
        Ok(())
    }

    /// Lets programs change this path of the new file system and what is mounted below it, as far as the machine does.
    fn open(&self, path: &Path) -> Result<()> {
        let around = self.around(path)?;
        let mounts = std::iter::once((path, around)).chain(self.below(path).map(|below| (below, below)));
        for (path, mount) in mounts {
            if let Some(Some(flags)) = self.0.get(mount) {
                mount_remount(path, *flags, c"").doing(&format!("open {}", path.display()))?;
            }
        }
        Ok(())
    }
}

/// Blanks and backslashes stand there as three octal digits.
fn unescape(text: &str) -> String {
    ["\\040", "\\011", "\\012", "\\134"]
        .iter()
        .zip([" ", "\t", "\n", "\\"])
        .fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}
