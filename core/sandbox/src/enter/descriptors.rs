//! Descriptors that the launcher was started with.
//!
//! A folder among them would lead the program out of its sandbox (CVE-2024-21626 of runc), and a socket to a service. pixir
//! hands none on, but a program that has pixir as a library may.

use std::ffi::CStr;

use rustix::fs::{Dir, Mode, OFlags, open};

/// The first descriptor behind the standard streams.
const FIRST: i32 = 3;

/// Closes every descriptor but the three streams. Call it before the launcher opens any.
pub(super) fn close() {
    for number in inherited() {
        // The one by which they were listed is closed already.
        let _ = nix::unistd::close(number);
    }
}

fn inherited() -> Vec<i32> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(list) = open("/proc/self/fd", flags, Mode::empty()).and_then(Dir::new) else { return Vec::new() };
    let number = |name: &CStr| name.to_str().ok()?.parse().ok();
    list.flatten().filter_map(|it| number(it.file_name())).filter(|it| *it >= FIRST).collect()
}
