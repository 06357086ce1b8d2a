//! What nothing refers to any more. Whatever looks like a name of a blob in any Log, whole or damaged, keeps that blob.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::Serialize;

use super::{Store, failed};
use crate::call::present::outputs_named;
use crate::protocol::error::{Code, Error, Result};

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
    ///
    /// # Errors
    /// `LOG_READ_FAILED` when any Log cannot be read to its end: what it names is not known then.
    pub fn garbage(&self, keep_trash: Duration) -> Result<Garbage> {
        let now = SystemTime::now();
        self.look(keep_trash, now).map_err(|(path, e)| {
            Error::new(
                Code::LogReadFailed,
                format!("read {}: {e}; nothing was removed", path.display()),
                "make it readable, then try again",
            )
        })
    }

    fn look(&self, keep_trash: Duration, now: SystemTime) -> Result<Garbage, (PathBuf, io::Error)> {
        let mut it = Garbage::default();
        let mut names = Names::default();
        // A Session that is deleted or got back meanwhile is in one of the three.
        self.read_sessions(&mut names)?;
        for folder in names_in(&self.trash_folder())? {
            if is_old(&folder.join("manifest.json"), keep_trash, now) {
                it.trash.push(folder);
            } else {
                names.read_logs(&folder)?;
            }
        }
        self.read_sessions(&mut names)?;
        for folder in names_in(&self.home.join("sessions"))? {
            for path in names_in(&folder)? {
                let extension = path.extension().unwrap_or_default();
                let unfinished = ["begun", "repaired", "tmp"].iter().any(|e| *e == extension);
                if unfinished && is_old(&path, YOUNG, now) {
                    it.leftovers.push(path);
                } else if path.is_dir() && is_old(&path, YOUNG, now) && !path.with_extension("ndjson").exists() {
                    it.outputs.push(path);
                }
            }
        }
        for place in self.places() {
            // An image that is to be sent is named by the draft.
            names.read_line(place.id.as_str(), place.presenter_state().unwrap_or_default().as_bytes());
            let outputs = names_in(&place.outputs())?.into_iter().filter(|path| is_old(path, YOUNG, now));
            it.outputs.extend(
                outputs.filter(|path| !names.overflow.contains(&(place.id.to_string(), name_of(&text_of(path))))),
            );
        }
        for folder in names_in(&self.home.join("blobs"))? {
            if !folder.is_dir() {
                continue;
            }
            for path in names_in(&folder)?.into_iter().filter(|path| is_old(path, YOUNG, now)) {
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
        Ok(it)
    }

    fn read_sessions(&self, names: &mut Names) -> Result<(), (PathBuf, io::Error)> {
        names_in(&self.home.join("sessions"))?.iter().try_for_each(|folder| names.read_logs(folder))
    }

    /// Removes it. A blob that was put again meanwhile stays.
    ///
    /// # Errors
    /// `WRITE_FAILED` for the first that cannot be removed.
    pub fn clean(&self, garbage: &Garbage) -> Result<()> {
        let clean = || -> io::Result<()> {
            for path in garbage.trash.iter().chain(&garbage.leftovers) {
                unless_gone(if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) })?;
            }
            for path in &garbage.outputs {
                // A Session that is being moved comes after its folder.
                let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
                if path.is_dir() && !self.places().iter().any(|place| place.id.as_str() == name) {
                    unless_gone(fs::remove_dir_all(path))?;
                } else if path.is_file() {
                    unless_gone(fs::remove_file(path))?;
                }
            }
            garbage.blobs.iter().try_for_each(|path| unless_gone(remove_blob(path)))
        };
        clean().map_err(|e| failed("clean up", &e))
    }
}

/// Somebody else has taken it.
fn unless_gone(outcome: io::Result<()>) -> io::Result<()> {
    match outcome {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

fn is_old(path: &Path, age: Duration, now: SystemTime) -> bool {
    fs::symlink_metadata(path).and_then(|m| m.modified()).is_ok_and(|at| at + age <= now)
}

/// Whoever puts the same bytes touches the blob first; so it is taken out of reach, and looked at once more.
fn remove_blob(path: &Path) -> io::Result<()> {
    let now = SystemTime::now();
    let aside = path.with_extension("going");
    if !is_old(path, YOUNG, now) {
        return Ok(());
    }
    fs::rename(path, &aside)?;
    if is_old(&aside, YOUNG, now) { fs::remove_file(aside) } else { fs::rename(aside, path) }
}

/// What is in a folder; nothing, when there is no such folder.
fn names_in(folder: &Path) -> Result<Vec<PathBuf>, (PathBuf, io::Error)> {
    let list = || -> io::Result<Vec<PathBuf>> {
        let mut all = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
        all.sort();
        Ok(all)
    };
    match list() {
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(Vec::new()),
        other => other.map_err(|e| (folder.to_owned(), e)),
    }
}

fn text_of(path: &Path) -> String {
    path.display().to_string()
}

fn name_of(path: &str) -> String {
    path.rsplit('/').next().unwrap_or(path).to_owned()
}

fn size_of(path: &Path) -> u64 {
    match fs::symlink_metadata(path) {
        Ok(m) if m.is_dir() => names_in(path).unwrap_or_default().iter().map(|inner| size_of(inner)).sum(),
        Ok(m) => m.len(),
        Err(_) => 0,
    }
}

/// What the Logs name.
#[derive(Default)]
struct Names {
    read: HashSet<PathBuf>,
    blobs: HashSet<String>,
    /// Saved outputs: a Session, and a file of it.
    overflow: HashSet<(String, String)>,
}

impl Names {
    /// Logs and what repairs have left of them, as text: also a line that cannot be read keeps what it names.
    fn read_logs(&mut self, folder: &Path) -> Result<(), (PathBuf, io::Error)> {
        for path in names_in(folder)? {
            let name = text_of(&path);
            let is_log = name.ends_with(".ndjson") || name.ends_with(".begun");
            let counts = is_log || name.contains(".damaged-") || name.contains(".torn-");
            if !counts || !self.read.insert(path.clone()) {
                continue;
            }
            match self.read_log(&path) {
                // It was moved meanwhile, and is read where it is now.
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                other => other.map_err(|e| (path, e))?,
            }
        }
        Ok(())
    }

    fn read_log(&mut self, path: &Path) -> io::Result<()> {
        let mut reader = io::BufReader::with_capacity(256 << 10, fs::File::open(path)?);
        let mut line = Vec::new();
        // What a repair has put aside is called after its Session too.
        let session = name_of(&text_of(path)).split('.').next().unwrap_or_default().to_owned();
        while io::BufRead::read_until(&mut reader, b'\n', &mut line)? > 0 {
            self.read_line(&session, &line);
            line.clear();
        }
        Ok(())
    }

    fn read_line(&mut self, session: &str, line: &[u8]) {
        self.overflow.extend(outputs_named(line).map(|name| (session.to_owned(), name.to_owned())));
        for piece in line.split(|b| *b == b'"') {
            if piece.len() == 32
                && piece.iter().all(u8::is_ascii_hexdigit)
                && let Ok(name) = std::str::from_utf8(piece)
            {
                self.blobs.insert(name.to_owned());
            }
        }
    }
}
