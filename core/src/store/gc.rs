//! What nothing refers to any more. Whatever looks like a name of a blob in any Log, whole or damaged, keeps that blob.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::Serialize;

use super::{Store, failed};
use crate::error::Result;

/// What is younger may belong to something that is just being recorded.
const YOUNG: Duration = Duration::from_secs(3_600);

/// What can go.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Garbage {
    /// Sessions that have been in the trash for long enough.
    pub trash: Vec<PathBuf>,
    /// File versions that no Log names.
    pub blobs: Vec<PathBuf>,
    /// Outputs that no Log names, and folders without a Log.
    pub outputs: Vec<PathBuf>,
    /// What was being written when something crashed.
    pub leftovers: Vec<PathBuf>,
    /// Bytes that this frees.
    pub bytes: u64,
}

impl Garbage {
    /// How many files and folders it is.
    pub fn len(&self) -> usize {
        self.trash.len() + self.blobs.len() + self.outputs.len() + self.leftovers.len()
    }

    /// There is nothing to clean up.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Store {
    /// Finds what can go; Sessions stay in the trash for `keep_trash`.
    pub fn garbage(&self, keep_trash: Duration) -> Garbage {
        self.garbage_at(keep_trash, SystemTime::now())
    }

    /// The same, as if it were this time.
    pub fn garbage_at(&self, keep_trash: Duration, now: SystemTime) -> Garbage {
        let mut it = Garbage::default();
        let old = |path: &Path, age: Duration| {
            fs::symlink_metadata(path).and_then(|m| m.modified()).is_ok_and(|at| at + age <= now)
        };
        let mut names = Names::default();
        for folder in names_in(&self.trash_folder()) {
            if old(&folder.join("manifest.json"), keep_trash) {
                it.trash.push(folder);
            } else {
                names.read_logs(&folder);
            }
        }
        for folder in self.folders() {
            names.read_logs(&folder);
            for path in names_in(&folder) {
                let extension = path.extension().unwrap_or_default();
                let unfinished = ["begun", "repaired", "tmp"].iter().any(|e| *e == extension);
                if unfinished && old(&path, YOUNG) {
                    it.leftovers.push(path);
                } else if path.is_dir() && old(&path, YOUNG) && !path.with_extension("ndjson").exists() {
                    it.outputs.push(path);
                }
            }
        }
        for place in self.places() {
            let outputs = names_in(&place.outputs()).into_iter().filter(|path| old(path, YOUNG));
            it.outputs.extend(outputs.filter(|path| !names.overflow.contains(&last_three(&text_of(path)))));
        }
        for folder in names_in(&self.home.join("blobs")) {
            for path in names_in(&folder).into_iter().filter(|path| old(path, YOUNG)) {
                let name = path.file_stem().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
                if path.extension().is_none_or(|e| e != "zst") {
                    it.leftovers.push(path);
                } else if !names.blobs.contains(&name) {
                    it.blobs.push(path);
                }
            }
        }
        let all = it.trash.iter().chain(&it.blobs).chain(&it.outputs).chain(&it.leftovers);
        it.bytes = all.map(|path| size_of(path)).sum();
        it
    }

    /// Removes it. A blob that was put again meanwhile stays.
    ///
    /// # Errors
    /// `WRITE_FAILED` for the first that cannot be removed.
    pub fn clean(&self, garbage: &Garbage) -> Result<()> {
        let clean = || -> io::Result<()> {
            for path in garbage.trash.iter().chain(&garbage.outputs).chain(&garbage.leftovers) {
                if path.is_dir() { fs::remove_dir_all(path)? } else { fs::remove_file(path)? }
            }
            garbage.blobs.iter().try_for_each(|path| remove_blob(path))
        };
        clean().map_err(|e| failed("clean up", &e))
    }
}

/// Whoever puts the same bytes touches the blob first; so it is taken out of reach, and looked at once more.
fn remove_blob(path: &Path) -> io::Result<()> {
    let before = fs::metadata(path)?.modified()?;
    let aside = path.with_extension("going");
    fs::rename(path, &aside)?;
    if fs::metadata(&aside)?.modified()? == before { fs::remove_file(aside) } else { fs::rename(aside, path) }
}

fn names_in(folder: &Path) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = fs::read_dir(folder).into_iter().flatten().flatten().map(|e| e.path()).collect();
    all.sort();
    all
}

fn text_of(path: &Path) -> String {
    path.display().to_string()
}

/// Session, folder and file: the same wherever the home is.
fn last_three(path: &str) -> String {
    let mut parts: Vec<&str> = path.rsplit('/').take(3).collect();
    parts.reverse();
    parts.join("/")
}

fn size_of(path: &Path) -> u64 {
    match fs::symlink_metadata(path) {
        Ok(m) if m.is_dir() => names_in(path).iter().map(|inner| size_of(inner)).sum(),
        Ok(m) => m.len(),
        Err(_) => 0,
    }
}

/// What the Logs name.
#[derive(Default)]
struct Names {
    blobs: HashSet<String>,
    overflow: HashSet<String>,
}

impl Names {
    /// Logs and what repairs have left of them, as text: also a line that cannot be read keeps what it names.
    fn read_logs(&mut self, folder: &Path) {
        for path in names_in(folder) {
            let name = text_of(&path);
            let is_log = name.ends_with(".ndjson");
            if !(is_log || name.contains(".damaged-") || name.contains(".torn-")) {
                continue;
            }
            let Ok(file) = fs::File::open(&path) else { continue };
            let mut reader = io::BufReader::with_capacity(256 << 10, file);
            let mut line = Vec::new();
            while io::BufRead::read_until(&mut reader, b'\n', &mut line).is_ok_and(|n| n > 0) {
                self.read_line(&line);
                line.clear();
            }
        }
    }

    fn read_line(&mut self, line: &[u8]) {
        for piece in line.split(|b| *b == b'"') {
            if piece.len() == 32
                && piece.iter().all(u8::is_ascii_hexdigit)
                && let Ok(name) = std::str::from_utf8(piece)
            {
                self.blobs.insert(name.to_owned());
            } else if piece.ends_with(b".txt")
                && piece.contains(&b'/')
                && let Ok(path) = std::str::from_utf8(piece)
            {
                self.overflow.insert(last_three(path));
            }
        }
    }
}
