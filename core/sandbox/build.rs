//! Gives the build an identity, by which pixir recognises the launcher that was built with it.

use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash as _, Hasher as _};
use std::path::{Path, PathBuf};

const ROOMS: [&str; 4] = ["src", "../process/src", "../storage/src", "../protocol/src"];

fn main() {
    // The launcher is made of this room and of those that it imports.
    let mut files: Vec<PathBuf> = ROOMS.iter().flat_map(|room| files(Path::new(room))).collect();
    files.sort();
    // The workspace has one; a program that embeds the core has its own elsewhere.
    files.extend(Some(PathBuf::from("../../Cargo.lock")).filter(|path| path.is_file()));
    let mut hasher = DefaultHasher::new();
    for file in &files {
        file.hash(&mut hasher);
        fs::read(file).unwrap_or_default().hash(&mut hasher);
    }
    for name in ["PROFILE", "TARGET", "CARGO_PKG_VERSION"] {
        std::env::var(name).unwrap_or_default().hash(&mut hasher);
    }
    for room in ROOMS {
        println!("cargo::rerun-if-changed={room}");
    }
    println!("cargo::rerun-if-changed=../../Cargo.lock");
    println!("cargo::rustc-env=PIXIR_BUILD={:016x}", hasher.finish());
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|it| it.path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}
