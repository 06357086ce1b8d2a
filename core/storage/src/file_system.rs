//! Which file systems hold files of a user. The kernel shows its own state as files on others: such a file has no honest size,
//! and to read it may wait, never end, or change something.

use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::path::Path;

use parking_lot::Mutex;

/// The file system of an open file or folder by its name, if it is one that holds no files of a user.
pub fn without_files(at: impl AsFd) -> Option<&'static str> {
    name(&rustix::fs::fstatfs(at).ok()?)
}

/// The same for a path. Symlinks are followed.
pub fn without_files_at(path: &Path) -> Option<&'static str> {
    name(&rustix::fs::statfs(path).ok()?)
}

/// What is known of devices. A walk asks about each device once.
#[derive(Debug, Default)]
pub struct Devices(Mutex<BTreeMap<u64, bool>>);

impl Devices {
    /// Whether the file system of this path, which is on this device, holds files of a user.
    pub fn hold_files(&self, device: u64, path: impl FnOnce() -> Option<&'static str>) -> bool {
        *self.0.lock().entry(device).or_insert_with(|| path().is_none())
    }
}

#[cfg(target_os = "linux")]
fn name(found: &rustix::fs::StatFs) -> Option<&'static str> {
    let magic = u32::try_from(found.f_type & 0xffff_ffff).ok()?;
    let is_unsized_fuse = magic == FUSE && found.f_blocks == 0;
    let of_kernel = || OF_KERNEL.iter().find(|(it, _)| *it == magic).map(|(_, name)| *name);
    is_unsized_fuse.then_some("fuse without a size").or_else(of_kernel)
}

#[cfg(not(target_os = "linux"))]
fn name(_found: &rustix::fs::StatFs) -> Option<&'static str> {
    None
}

/// FUSE has disks of others, and views of a program's state such as lxcfs and gvfs. Those say that they have no blocks.
#[cfg(target_os = "linux")]
const FUSE: u32 = 0x6573_5546;

/// From `linux/magic.h` and the file systems themselves. Missing on purpose: tmpfs, ramfs and overlay, which have no disk and
/// hold files of users, and all that lie on a disk or a network.
#[cfg(target_os = "linux")]
const OF_KERNEL: [(u32, &str); 36] = [
    (0x9fa0, "proc"),
    (0x6265_6572, "sysfs"),
    (0x1cd1, "devpts"),
    (0x0027_e0eb, "cgroup"),
    (0x6367_7270, "cgroup2"),
    (0x6462_6720, "debugfs"),
    (0x7472_6163, "tracefs"),
    (0xcafe_4a11, "bpf"),
    (0x7363_6673, "securityfs"),
    (0xf97c_ff8c, "selinuxfs"),
    (0x4341_5d53, "smackfs"),
    (0x5a3c_69f0, "apparmorfs"),
    (0xde5e_81e4, "efivarfs"),
    (0x6165_676c, "pstore"),
    (0x6265_6570, "configfs"),
    (0x4249_4e4d, "binfmt_misc"),
    (0x1980_0202, "mqueue"),
    (0x6573_5543, "fusectl"),
    (0x9584_58f6, "hugetlbfs"),
    (0x6e73_6673, "nsfs"),
    (0x5049_4446, "pidfs"),
    (0x6759_6969, "rpc_pipefs"),
    (0x6e66_7364, "nfsd"),
    (0x0187, "autofs"),
    (0x0765_5821, "resctrl"),
    (0x6c6f_6f70, "binder"),
    (0xabba_1974, "xenfs"),
    (0x9fa1, "openpromfs"),
    (0x9fa2, "usbdevfs"),
    (0x0a64_7361, "functionfs"),
    (0xaee7_1ee7, "gadgetfs"),
    (0x76a9_f425, "dlmfs"),
    (0x23c9_b64e, "spufs"),
    (0x0904_1934, "anon_inode"),
    (0x534f_434b, "sockfs"),
    (0x5049_5045, "pipefs"),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken build: a magic number is misspelt. Each file system that this machine has mounted is in one of both lists.
    #[test]
    fn the_file_systems_of_this_machine_are_told_apart() {
        assert_eq!(without_files_at(Path::new("/proc")), Some("proc"));
        assert_eq!(without_files_at(Path::new("/proc/self/pagemap")), Some("proc"));
        let of_users = ["ext4", "xfs", "btrfs", "overlay", "tmpfs", "devtmpfs", "zfs", "9p", "virtiofs"];
        let mounts = std::fs::read_to_string("/proc/mounts").expect("the mounts");
        let mut tried = 0;
        for line in mounts.lines() {
            let mut words = line.split(' ').skip(1);
            let (Some(point), Some(kind)) = (words.next(), words.next()) else { continue };
            // What is mounted over a point hides what was there.
            let is_last = mounts.lines().rfind(|it| it.split(' ').nth(1) == Some(point)) == Some(line);
            let is_of_kernel = OF_KERNEL.iter().any(|(_, name)| *name == kind);
            if !is_last || Path::new(point).symlink_metadata().is_err() || !(is_of_kernel || of_users.contains(&kind)) {
                continue;
            }
            assert_eq!(without_files_at(Path::new(point)), is_of_kernel.then_some(kind), "{line}");
            tried += 1;
        }
        assert!(tried > 1, "{mounts}");
        assert_eq!(without_files_at(&std::env::temp_dir()), None);
    }
}
