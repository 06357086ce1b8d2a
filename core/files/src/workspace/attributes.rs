//! What a file has besides its bytes, carried over to the file that replaces it.
//!
//! A replacement is a new file under the old name. Owner, permission bits, access list and extended attributes move to it;
//! the result says what cannot move, before the change where that can be known.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use cap_std::fs::{Dir, Metadata, MetadataExt as _, OpenOptions, OpenOptionsExt as _};
use rustix::fs::{Access, AtFlags, Gid, Uid, XattrFlags};
use rustix::io::Errno;

use super::{Destination, O_NOFOLLOW, O_NONBLOCK, Workspace};

/// The most bytes of a list of names, and of a value, that Linux keeps.
const MOST: usize = 64 << 10;
const ACCESS_LIST: &str = "system.posix_acl_access";
/// The label of SELinux. Other attributes of the kernel's security vouch for the bytes, or give rights to them.
const LABEL: &str = "security.selinux";
const CAPABILITIES: &str = "security.capability";

impl Workspace {
    /// The mode of the file at a destination, if its user may not write it: replacing it needs only the folder.
    pub fn read_only(&self, to: &Destination) -> Option<u32> {
        let way = self.hold(to, false).ok()?;
        let name = to.at().path.file_name()?;
        let mode = way.folder().symlink_metadata(name).ok().filter(Metadata::is_file)?.mode() & 0o777;
        let access = rustix::fs::accessat(way.folder(), name, Access::WRITE_OK, AtFlags::EACCESS);
        // The superuser may write every file, and takes one that no user may write for what it is.
        (mode & 0o222 == 0 || matches!(access, Err(Errno::ACCESS | Errno::PERM))).then_some(mode)
    }

    /// What replacing the file at a destination will lose, as sentences.
    pub fn would_lose(&self, to: &Destination) -> Vec<String> {
        let shown = to.at().display();
        let old = self.hold(to, false).ok().zip(to.at().path.file_name());
        let Some(old) = old.and_then(|(way, name)| Old::of(way.folder(), name)) else { return Vec::new() };
        let mut lost = old.other_names(&shown);
        let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
        if !user.is_root() && old.metadata.uid() != user.as_raw() {
            lost.push(owner_is_lost(&shown, &old.metadata, user.as_raw(), group.as_raw()));
        }
        let of_kernel = old.names().into_iter().filter(|name| !moves(name));
        lost.extend(of_kernel.map(|name| attribute_is_lost(&shown, &name)));
        lost
    }
}

/// A file that is replaced.
pub(super) struct Old {
    metadata: Metadata,
    file: Option<File>,
}

impl Old {
    pub(super) fn of(folder: &Dir, name: &OsStr) -> Option<Old> {
        let metadata = folder.symlink_metadata(name).ok().filter(Metadata::is_file)?;
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(O_NONBLOCK | O_NOFOLLOW);
        let file = folder.open_with(name, &options).ok().map(cap_std::fs::File::into_std);
        Some(Old { metadata, file })
    }

    /// Its permission bits.
    pub(super) fn mode(&self) -> u32 {
        self.metadata.mode() & 0o777
    }

    /// Its other names keep its bytes.
    pub(super) fn other_names(&self, shown: &str) -> Vec<String> {
        match self.metadata.nlink() {
            0 | 1 => Vec::new(),
            2 => vec![format!("{shown} has another name (a hard link), which keeps the old content")],
            several => {
                vec![format!("{shown} has {} other names (hard links), which keep the old content", several - 1)]
            }
        }
    }

    /// Gives a new file what this one has, with these permission bits. Returns what it could not, as sentences.
    pub(super) fn carry_to(&self, new: &File, mode: u32, shown: &str) -> std::io::Result<Vec<String>> {
        let mut lost = Vec::new();
        let (uid, gid) = (self.metadata.uid(), self.metadata.gid());
        let made = new.metadata()?;
        if (made.uid(), made.gid()) != (uid, gid) {
            let group = Some(Gid::from_raw(gid));
            // A user may give a file to another group of its own, and to no other user.
            let given = rustix::fs::fchown(new, Some(Uid::from_raw(uid)), group);
            if given.is_err() && rustix::fs::fchown(new, None, group).is_err() || new.metadata()?.uid() != uid {
                let made = new.metadata()?;
                lost.push(owner_is_lost(shown, &self.metadata, made.uid(), made.gid()));
            }
        }
        // A file with other names may be a program outside, which keeps its rights; only this name gets the new bytes.
        let special = if self.metadata.nlink() == 1 && lost.is_empty() { self.metadata.mode() & 0o7000 } else { 0 };
        let (lists, others): (Vec<OsString>, _) = self.names().into_iter().partition(|name| name == ACCESS_LIST);
        // The folder may give an access list to each new file.
        if lists.is_empty() {
            let _ = rustix::fs::fremovexattr(new, ACCESS_LIST);
        }
        // Attributes go before permission bits, which may forbid them; the access list goes behind those, which are a part of it.
        let mut missing: Vec<OsString> = others.into_iter().filter(|name| !self.gives(new, name)).collect();
        new.set_permissions(std::fs::Permissions::from_mode(mode | special))?;
        missing.extend(lists.into_iter().filter(|name| !self.gives(new, name)));
        lost.extend(missing.iter().map(|name| attribute_is_lost(shown, name)));
        Ok(lost)
    }

    /// The names of its extended attributes. The access list is one of them.
    fn names(&self) -> Vec<OsString> {
        self.file.as_ref().map(names_of).unwrap_or_default()
    }

    /// Gives a new file this attribute. Returns whether it has it.
    fn gives(&self, new: &File, name: &OsStr) -> bool {
        let value = self.file.as_ref().and_then(|old| value_of(old, name));
        if value == value_of(new, name) {
            return true;
        }
        let set = |value: &[u8]| rustix::fs::fsetxattr(new, name, value, XattrFlags::empty()).is_ok();
        value.is_some_and(|value| moves(name) && set(&value))
    }
}

/// Whether an attribute moves to the new file.
fn moves(name: &OsStr) -> bool {
    !name.as_bytes().starts_with(b"security.") || name == LABEL
}

fn names_of(file: &File) -> Vec<OsString> {
    let mut list = vec![0_u8; MOST];
    let len = rustix::fs::flistxattr(file, &mut list[..]).unwrap_or(0);
    let names = list[..len].split(|byte| *byte == 0).filter(|name| !name.is_empty());
    names.map(|name| OsString::from_vec(name.to_vec())).collect()
}

fn value_of(file: &File, name: &OsStr) -> Option<Vec<u8>> {
    let mut value = vec![0_u8; MOST];
    let len = rustix::fs::fgetxattr(file, name, &mut value[..]).ok()?;
    value.truncate(len);
    Some(value)
}

fn owner_is_lost(shown: &str, old: &Metadata, uid: u32, gid: u32) -> String {
    format!("the owner of {shown} changes from {}:{} to {uid}:{gid}", old.uid(), old.gid())
}

fn attribute_is_lost(shown: &str, name: &OsStr) -> String {
    if name == CAPABILITIES {
        return format!("{shown} loses its capabilities");
    }
    format!("{shown} loses its attribute {}", name.to_string_lossy())
}
