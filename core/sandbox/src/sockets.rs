//! Sockets with a path that programs of this machine have opened.
//!
//! Such a socket belongs to no network: a program in a network of its own reaches the one that opened the file. Behind them are the
//! user's containers, databases and agents, so the commands of a Session find an empty device at the path instead. What a
//! command opens itself, or a job whose network it shares, belongs to another network than the machine's, and stays.
//!
//! The kernel lists the sockets of pixir's own network by their inodes (`sock_diag(7)`). It does not list those of other
//! networks, such as containers have, and a socket that is opened later than the command starts is not known yet.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use rustix::io::Result;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with};

use super::View;
use storage::file_system::{Devices, without_files_at};

/// The file that a socket is bound to, and the name that it was given.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Bound {
    /// As the kernel numbers devices itself.
    device: u32,
    /// The lower half of the inode's number.
    inode: u32,
    name: PathBuf,
}

/// Where the files of sockets are, by the folders that a program changes. A search through those is made once for a socket.
#[derive(Debug, Default)]
pub(super) struct Sockets(Mutex<BTreeMap<Vec<PathBuf>, BTreeMap<Bound, Place>>>);

/// The names of one file, as far as they are known.
#[derive(Debug, Default)]
struct Place {
    paths: BTreeSet<PathBuf>,
    /// How many names it had in all.
    names: u64,
}

impl Sockets {
    /// Those that a program would find in this view, by their paths without symlinks.
    pub(super) fn in_view(&self, view: &View) -> BTreeSet<PathBuf> {
        let listed = listed().unwrap_or_else(|e| {
            tracing::warn!("the sockets of this machine are not known: {e}");
            Vec::new()
        });
        let mut all = self.0.lock();
        let known = all.entry(view.change.clone()).or_default();
        // One that was moved, or has another name since, is looked for again.
        known
            .retain(|it, place| listed.contains(it) && place.paths.iter().all(|path| it.names_at(path) == place.names));
        let new: Vec<Bound> = listed.into_iter().filter(|it| !known.contains_key(it)).collect();
        let mut unplaced = Vec::new();
        for it in new {
            let path = it.path();
            let names = path.as_ref().map_or(0, |path| it.names_at(path));
            // It can have more names, or has one that means something to another process alone.
            if names != 1 {
                unplaced.push((it.device, it.inode));
            }
            known.insert(it, Place { paths: path.into_iter().collect(), names });
        }
        // A cover has inodes of its own, so caches have no socket of the machine.
        for top in &view.change {
            let here: Vec<u32> = unplaced.iter().filter(|it| may_hold(top, it.0)).map(|it| it.1).collect();
            let found = if here.is_empty() { Vec::new() } else { search(top, &here) };
            for (inode, path) in found {
                for (it, place) in known.iter_mut().filter(|(it, _)| it.inode == inode) {
                    place.names = it.names_at(&path);
                    place.paths.insert(path.clone());
                }
            }
        }
        known.values().flat_map(|it| &it.paths).filter(|path| is_shown(view, path)).cloned().collect()
    }
}

/// Whether the kernel lists sockets.
pub(super) fn are_listed() -> bool {
    listed().is_ok()
}

impl Bound {
    /// Where its name leads this process, if that is the socket's file.
    fn path(&self) -> Option<PathBuf> {
        let path = Some(&self.name).filter(|name| name.is_absolute())?.canonicalize().ok()?;
        (self.names_at(&path) > 0).then_some(path)
    }

    /// How many names the socket's file has, if it is at this path; 0 if another one is, or none.
    fn names_at(&self, path: &Path) -> u64 {
        let is_it = |it: &fs::Metadata| it.file_type().is_socket() && lower_half(it.ino()) == self.inode;
        fs::symlink_metadata(path).ok().filter(is_it).map_or(0, |it| it.nlink())
    }
}

/// Whether the view has this path. Below a hidden or empty folder nothing of the machine is there.
fn is_shown(view: &View, path: &Path) -> bool {
    let is_below = |paths: &[PathBuf]| paths.iter().any(|it| path.starts_with(it));
    (is_below(&view.show) || is_below(&view.change) || is_below(&view.caches))
        && !is_below(&view.hide)
        && !is_below(&view.empty)
        && !view.scratch.as_ref().is_some_and(|it| path.starts_with(it))
}

/// Whether a folder may lie on this device. Some file systems show programs other devices than they have, all without a major
/// number.
fn may_hold(top: &Path, device: u32) -> bool {
    let Ok(dev) = fs::metadata(top).map(|it| it.dev()) else { return false };
    let (major, minor) = (device >> 20, device & 0xf_ffff);
    (rustix::fs::major(dev), rustix::fs::minor(dev)) == (major, minor) || (major == 0 && rustix::fs::major(dev) == 0)
}

#[expect(clippy::cast_possible_truncation, reason = "the kernel tells the lower half alone")]
fn lower_half(inode: u64) -> u32 {
    inode as u32
}

/// The sockets below a folder that have one of these inodes.
fn search(top: &Path, inodes: &[u32]) -> Vec<(u32, PathBuf)> {
    let mut found = Vec::new();
    let mut left = vec![top.to_owned()];
    let devices = Devices::default();
    while let Some(folder) = left.pop() {
        let device = fs::symlink_metadata(&folder).map(|it| it.dev()).unwrap_or_default();
        if !devices.hold_files(device, || without_files_at(&folder)) {
            continue;
        }
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() {
                left.push(entry.path());
            } else if kind.is_socket() {
                let inode = entry.metadata().map(|it| lower_half(it.ino())).unwrap_or_default();
                if inodes.contains(&inode) {
                    found.push((inode, entry.path()));
                }
            }
        }
    }
    found
}

/// From `linux/sock_diag.h` and `linux/unix_diag.h`.
const BY_FAMILY: u16 = 20;
const REQUEST_AND_DUMP: u16 = 1 | 0x300;
const SHOW_NAME_AND_FILE: u32 = 1 | 2;
const NAME: u16 = 0;
const FILE: u16 = 1;
/// A stream that listens, and a datagram socket without a peer. All others take nothing from strangers.
const STATES: u32 = 1 << 10 | 1 << 7;
/// From `linux/netlink.h`.
const ERROR: u16 = 2;
const DONE: u16 = 3;

/// Every socket of this network that is bound to a file.
fn listed() -> Result<Vec<Bound>> {
    let (family, flags) = (AddressFamily::NETLINK, SocketFlags::CLOEXEC);
    let netlink = socket_with(family, SocketType::RAW, flags, Some(netlink::SOCK_DIAG))?;
    let mut request = Vec::with_capacity(40);
    request.extend(40_u32.to_ne_bytes()); // the length of the message
    request.extend(BY_FAMILY.to_ne_bytes());
    request.extend(REQUEST_AND_DUMP.to_ne_bytes());
    request.extend([0; 8]); // its number; to the kernel
    request.extend([u8::try_from(AddressFamily::UNIX.as_raw()).unwrap_or_default(), 0, 0, 0]);
    request.extend(STATES.to_ne_bytes());
    request.extend([0; 4]); // any inode
    request.extend(SHOW_NAME_AND_FILE.to_ne_bytes());
    request.extend([0; 8]); // any socket
    send(&netlink, &request, SendFlags::empty())?;
    let mut all = Vec::new();
    let mut buffer = vec![0; 32 << 10];
    loop {
        let (length, _) = recv(&netlink, &mut buffer, RecvFlags::empty())?;
        if !take(&buffer[..length], &mut all) {
            all.sort();
            all.dedup();
            return Ok(all);
        }
    }
}

/// Takes the sockets of one answer. Returns whether more answers follow.
fn take(mut answer: &[u8], all: &mut Vec<Bound>) -> bool {
    while let Some(length) = u32_at(answer, 0).and_then(|it| usize::try_from(it).ok()).filter(|it| *it >= 16) {
        match u16_at(answer, 4) {
            Some(ERROR | DONE) | None => return false,
            // After the headers of the message and of the socket.
            Some(_) => all.extend(answer.get(32..length).and_then(bound)),
        }
        answer = answer.get(aligned(length)..).unwrap_or_default();
    }
    true
}

/// What the attributes of a socket tell about its file.
fn bound(mut attributes: &[u8]) -> Option<Bound> {
    let (mut name, mut file) = (None, None);
    while let Some(length) = u16_at(attributes, 0).map(usize::from).filter(|it| *it >= 4) {
        let value = attributes.get(4..length)?;
        match u16_at(attributes, 2) {
            Some(NAME) => name = Some(value.split(|byte| *byte == 0).next().unwrap_or_default().to_vec()),
            Some(FILE) => file = Some((u32_at(value, 4)?, u32_at(value, 0)?)),
            Some(_) | None => {}
        }
        attributes = attributes.get(aligned(length)..).unwrap_or_default();
    }
    let (device, inode) = file?;
    Some(Bound { device, inode, name: OsString::from_vec(name?).into() })
}

fn aligned(length: usize) -> usize {
    length.next_multiple_of(4)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::{UnixDatagram, UnixListener};

    use super::*;

    /// Broken builds: one that lists streams alone; one that takes the name for the place, and so misses a second name; one
    /// that hides what lies in the folder for temporary files.
    #[test]
    fn a_socket_of_the_machine_is_found_in_the_view_by_every_name() {
        let temp = tempfile::tempdir().expect("a folder");
        let top = temp.path().canonicalize().expect("it exists");
        for folder in ["work/deep/er", "outside", "tools", "work/hidden", "scratch"] {
            fs::create_dir_all(top.join(folder)).expect("mkdir");
        }
        let stream = |name: &str| UnixListener::bind(top.join(name)).expect("a socket");
        let _open = ["work/deep/er/stream", "outside/plain", "outside/linked", "tools/stream", "work/hidden/stream"]
            .map(stream);
        let _also = stream("scratch/own");
        let _datagrams = UnixDatagram::bind(top.join("work/datagrams")).expect("a socket");
        fs::hard_link(top.join("outside/linked"), top.join("work/deep/second")).expect("a second name");
        drop(UnixListener::bind(top.join("work/dead")));
        let view = View {
            show: vec![top.join("tools")],
            change: vec![top.join("work"), top.join("scratch")],
            hide: vec![top.join("work/hidden")],
            scratch: Some(top.join("scratch")),
            ..View::default()
        };
        let wanted =
            ["tools/stream", "work/datagrams", "work/deep/er/stream", "work/deep/second"].map(|it| top.join(it));
        let sockets = Sockets::default();
        assert_eq!(sockets.in_view(&view), wanted.clone().into());
        assert_eq!(sockets.in_view(&view), wanted.into(), "the second look has it from the first");
        fs::rename(top.join("work/deep"), top.join("work/moved")).expect("a new name");
        let moved = sockets.in_view(&view);
        assert!(
            moved.contains(&top.join("work/moved/er/stream")) && moved.contains(&top.join("work/moved/second")),
            "{moved:?}"
        );
    }

    /// Broken build: one that reads beyond the end of an answer, or runs forever on one that is cut.
    #[test]
    fn an_answer_that_is_cut_anywhere_is_read_to_its_end() {
        let mut answer = Vec::new();
        answer.extend(56_u32.to_ne_bytes());
        answer.extend(BY_FAMILY.to_ne_bytes());
        answer.extend([0; 26]);
        answer.extend([[12, 0, 1, 0], [7, 0, 0, 0], [9, 0, 0, 0]].concat());
        answer.extend([[11, 0, 0, 0], *b"/tmp", [b'/', b'x', 0, 0]].concat());
        let read = |bytes: &[u8]| {
            let mut all = Vec::new();
            take(bytes, &mut all);
            all
        };
        assert_eq!(read(&answer), [Bound { device: 9, inode: 7, name: "/tmp/x".into() }]);
        for end in 0..answer.len() {
            assert!(read(&answer[..end]).is_empty(), "{end}");
        }
    }
}
