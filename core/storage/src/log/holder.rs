//! Finds the process that holds a lock. Linux lists locks in `/proc/locks`; other systems do not.

use std::fs::File;
use std::os::unix::fs::MetadataExt as _;

/// The process that holds an advisory lock on this file.
pub(super) fn of(file: &File) -> Option<u32> {
    let inode = format!(":{}", file.metadata().ok()?.ino());
    // The kernel does not return the list atomically; a line can be missed while others come and go.
    (0..5).find_map(|_| {
        // 1: FLOCK  ADVISORY  WRITE 4242 fe:00:1234 0 EOF
        std::fs::read_to_string("/proc/locks").ok()?.lines().find_map(|line| {
            let mut words = line.split_whitespace().skip(4);
            let pid = words.next()?.parse().ok()?;
            words.next()?.ends_with(&inode).then_some(pid)
        })
    })
}
