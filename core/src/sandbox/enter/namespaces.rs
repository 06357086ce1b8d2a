//! A file system, processes and a network of its own.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, symlink};
use std::path::{Path, PathBuf};

use nix::sched::{CloneFlags, unshare};
use rustix::fs::{Mode, StatVfsMountFlags, chmod, statvfs};
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind_recursive, mount_change, mount_remount, unmount,
};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with};
use rustix::process::{getgid, getuid, pivot_root};

use super::{Doing as _, Plan, Result, neighbours};

/// Where the machine's file system stands while the new one is built.
const OLD: &str = "/.old";
/// Devices that programs need.
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];
/// Settings of the kernel that root could change through `/proc`, also without any capability.
const KERNEL_SETTINGS: [&str; 4] = ["/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus"];

/// Enters new namespaces. Processes that are started from now on are in the new process namespace. While a job of the Session
/// lives, its network is shared, and with it the user namespace that owns the network.
pub(super) fn leave(plan: &Plan) -> Result<()> {
    let shares = !plan.network && neighbours::join(&plan.jobs)?;
    let (user, group) = (getuid().as_raw(), getgid().as_raw());
    let mut new =
        CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWPID | CloneFlags::CLONE_NEWIPC | CloneFlags::CLONE_NEWUTS;
    new.set(CloneFlags::CLONE_NEWUSER, !shares);
    new.set(CloneFlags::CLONE_NEWNET, !shares && !plan.network);
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
    if !plan.network {
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
    Hide,
    Empty,
}

/// Builds the file system that the plan describes, and makes it the root.
pub(super) fn build(plan: &Plan) -> Result<()> {
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC).doing("make mounts private")?;
    mount("tmpfs", "/tmp", "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, Some(c"mode=0755"))
        .doing("mount a root")?;
    fs::create_dir(Path::new("/tmp").join(&OLD[1..])).doing("create a folder")?;
    std::env::set_current_dir("/tmp").doing("enter the root")?;
    pivot_root(".", &OLD[1..]).doing("exchange the root")?;
    std::env::set_current_dir("/").doing("enter the root")?;
    let mounts = Mounts::read().doing("read the mounts")?;

    for (name, target) in &plan.view.links {
        if let Some(parent) = name.parent() {
            // Where the name lies in a shown folder, that folder has the link.
            let _ = folder(parent).and_then(|()| symlink(target, name));
        }
    }
    let view = &plan.view;
    let mut items: BTreeMap<&Path, Item> = BTreeMap::new();
    for (paths, item) in [
        (&view.empty, Item::Empty),
        (&view.show, Item::Show),
        (&view.change, Item::Change),
        (&view.hide, Item::Hide),
        (&view.keep, Item::Show),
    ] {
        items.extend(paths.iter().map(|path| (path.as_path(), item)));
    }
    let works = !view.change.is_empty();
    temporary(view.scratch.as_deref(), &mounts)?;
    devices()?;
    // In order, so that a folder stands before what is below it.
    for (path, item) in &items {
        place(path, *item, &items, &mounts)?;
    }
    if !works && view.scratch.is_some() {
        // Only now: a workspace may lie below it.
        remount(Path::new("/tmp"), MountFlags::RDONLY)?;
    }
    processes()?;
    unmount(OLD, UnmountFlags::DETACH).doing("leave the old root")?;
    fs::remove_dir(OLD).doing("remove the old root")?;
    if works {
        chmod("/", Mode::from_raw_mode(0o555)).doing("close the root")
    } else {
        remount(Path::new("/"), MountFlags::RDONLY)
    }
}

fn place(path: &Path, item: Item, items: &BTreeMap<&Path, Item>, mounts: &Mounts) -> Result<()> {
    let doing = |what: &str| format!("{what} {}", path.display());
    let old = old(path);
    match item {
        Item::Empty => {
            let above = path.ancestors().skip(1).find_map(|above| items.get(above));
            // In a folder that may be changed, the program can create it itself.
            if above != Some(&Item::Change) && folder(path.parent().unwrap_or(path)).is_ok() {
                let _ = fs::DirBuilder::new().mode(0o755).create(path);
            }
            Ok(())
        }
        Item::Show | Item::Change => {
            let Ok(metadata) = fs::symlink_metadata(&old) else { return Ok(()) };
            if metadata.is_symlink() || prepare(path, metadata.is_dir()).is_err() {
                return Ok(());
            }
            mount_bind_recursive(&old, path).doing(&doing("show"))?;
            let flags = if item == Item::Show { MountFlags::RDONLY } else { MountFlags::empty() };
            remount(path, flags)?;
            mounts.below(path).try_for_each(|below| remount(below, flags))
        }
        Item::Hide => {
            let Ok(metadata) = fs::symlink_metadata(&old) else { return Ok(()) };
            if metadata.is_dir() {
                let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
                mount("tmpfs", path, "tmpfs", flags, Some(c"mode=0111,size=64k")).doing(&doing("hide"))
            } else {
                // The mount allows no devices, so opening the file fails.
                mount_bind_recursive(old_device("null"), path).doing(&doing("hide"))?;
                remount(path, MountFlags::RDONLY)
            }
        }
    }
}

fn old(path: &Path) -> PathBuf {
    Path::new(OLD).join(path.strip_prefix("/").unwrap_or(path))
}

fn old_device(name: &str) -> PathBuf {
    Path::new(OLD).join("dev").join(name)
}

/// Creates the file or folder that a mount covers.
fn prepare(path: &Path, is_folder: bool) -> io::Result<()> {
    if fs::symlink_metadata(path).is_ok() {
        return Ok(());
    }
    if is_folder {
        return folder(path);
    }
    folder(path.parent().unwrap_or(path))?;
    fs::File::create_new(path).map(drop)
}

/// Creates a folder that nobody writes to.
fn folder(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o555).create(path)
}

/// Sets the flags of a mount: no devices, no set-user-id, and `more`.
fn remount(path: &Path, more: MountFlags) -> Result<()> {
    let doing = format!("restrict {}", path.display());
    let now = statvfs(path).doing(&doing)?.f_flag;
    let mut flags = MountFlags::BIND | MountFlags::NOSUID | MountFlags::NODEV | more;
    // A flag of the mount outside cannot be taken away, and leaving it out would be an attempt to.
    for (is_set, flag) in [
        (StatVfsMountFlags::RDONLY, MountFlags::RDONLY),
        (StatVfsMountFlags::NOEXEC, MountFlags::NOEXEC),
        (StatVfsMountFlags::NOATIME, MountFlags::NOATIME),
        (StatVfsMountFlags::NODIRATIME, MountFlags::NODIRATIME),
        (StatVfsMountFlags::RELATIME, MountFlags::RELATIME),
    ] {
        flags.set(flag, now.contains(is_set) || flags.contains(flag));
    }
    mount_remount(path, flags, c"").doing(&doing)
}

/// The folder for temporary files: the Session's, or an empty one.
fn temporary(scratch: Option<&Path>, mounts: &Mounts) -> Result<()> {
    let tmp = Path::new("/tmp");
    fs::create_dir(tmp).doing("create /tmp")?;
    match scratch {
        Some(scratch) => {
            mount_bind_recursive(old(scratch), tmp).doing("show the temporary folder")?;
            remount(tmp, MountFlags::empty())?;
            mounts.below(scratch).try_for_each(|below| remount(below, MountFlags::empty()))?;
        }
        None => chmod(tmp, Mode::from_raw_mode(0o1777)).doing("open /tmp")?,
    }
    folder(Path::new("/var")).and_then(|()| symlink("/tmp", "/var/tmp")).doing("create /var/tmp")
}

fn devices() -> Result<()> {
    folder(Path::new("/dev/shm")).and_then(|()| folder(Path::new("/dev/pts"))).doing("create /dev")?;
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
fn processes() -> Result<()> {
    folder(Path::new("/proc")).doing("create /proc")?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("proc", "/proc", "proc", flags, None).doing("mount /proc")?;
    if getuid().is_root() {
        for path in KERNEL_SETTINGS.map(Path::new).into_iter().filter(|path| path.exists()) {
            mount_bind_recursive(path, path).doing("protect the kernel's settings")?;
            remount(path, MountFlags::RDONLY | MountFlags::NOEXEC)?;
        }
    }
    Ok(())
}

/// The mount points of the machine.
struct Mounts(Vec<PathBuf>);

impl Mounts {
    fn read() -> io::Result<Mounts> {
        let text = fs::read_to_string(Path::new(OLD).join("proc/self/mountinfo"))?;
        // The fifth word is the mount point; it stands below the old root now.
        let points = text.lines().filter_map(|line| line.split(' ').nth(4)).filter_map(|point| {
            let point = unescape(point);
            Some(Path::new("/").join(point.strip_prefix(&format!("{OLD}/"))?))
        });
        Ok(Mounts(points.collect()))
    }

    /// Those below this path, which a recursive bind brings along.
    fn below<'a>(&'a self, path: &'a Path) -> impl Iterator<Item = &'a Path> {
        self.0.iter().map(PathBuf::as_path).filter(move |it| *it != path && it.starts_with(path))
    }
}

/// Blanks and backslashes stand there as three octal digits.
fn unescape(text: &str) -> String {
    ["\\040", "\\011", "\\012", "\\134"]
        .iter()
        .zip([" ", "\t", "\n", "\\"])
        .fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}
