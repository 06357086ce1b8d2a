//! Which process holds a lock. Linux tells in `/proc/locks`; elsewhere nobody knows.

use std::fs::File;
use std::os::unix::fs::MetadataExt as _;

/// The process that holds an advisory lock on this file.
pub(super) fn of(file: &File) -> Option<u32> {
    let inode = format!(":{}", file.metadata().ok()?.ino());
    // The list is not read in one piece; while others come and go, a line can be missed.
    (0..5).find_map(|_| {
        // 1: FLOCK  ADVISORY  WRITE 4242 fe:00:1234 0 EOF
        std::fs::read_to_string("/proc/locks").ok()?.lines().find_map(|line| {
            let mut words = line.split_whitespace().skip(4);
            let pid = words.next()?.parse().ok()?;
            words.next()?.ends_with(&inode).then_some(pid)
        })
    })
}
