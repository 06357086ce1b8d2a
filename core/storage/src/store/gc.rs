//! Finds and removes unused files. Any text in a Log that looks like a blob's name keeps that blob.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::Serialize;

use super::{COPIES, SCRATCH, Store, failed};
use crate::outputs::outputs_named;
use crate::regular;
use crate::removal::remove_folder;
use protocol::error::{Code, Error, Result};

/// Younger files are never removed, because an Entry that names them may be about to be written.
const YOUNG: Duration = Duration::from_secs(3_600);

/// The files that can be removed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Garbage {
    /// Sessions that have been in the trash for longer than `keep_trash`.
    pub trash: Vec<PathBuf>,
    /// Blobs that no Log names.
    pub blobs: Vec<PathBuf>,
    /// Saved outputs that no Log names, and folders without a Log.
    pub outputs: Vec<PathBuf>,
    /// Temporary files left behind by a crash.
    pub leftovers: Vec<PathBuf>,
    /// The number of bytes that the removal frees.
    pub bytes: u64,
}

impl Garbage {
    /// The number of files and folders.
    pub fn len(&self) -> usize {
        self.trash.len() + self.blobs.len() + self.outputs.len() + self.leftovers.len()
    }

    /// Whether there is nothing to remove.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Store {
    /// Finds unused files; Sessions stay in the trash for `keep_trash`.
    ///
    /// # Errors
    /// `LOG_READ_FAILED` when a Log cannot be read to its end, because then its names are unknown.
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
        // A Session that is deleted or restored meanwhile is found in at least one of the three folders.
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
        // Copies of workspaces whose agents have no Session above them any more, and those that were never whole.
        let places = self.places();
        for folder in names_in(&self.home.join(COPIES))? {
            let root = name_of(&text_of(&folder));
            if places.iter().any(|place| place.id.as_str() == root) {
                let copies = names_in(&folder)?.into_iter();
                let unfinished = copies.filter(|path| path.extension().is_some_and(|it| it == "making"));
                it.leftovers.extend(unfinished.filter(|path| is_old(path, YOUNG, now)));
            } else if is_old(&folder, YOUNG, now) {
                it.leftovers.push(folder);
            }
        }
        // Temporary files of programs that ran outside a Session.
        it.leftovers.extend(names_in(&self.home.join(SCRATCH))?.into_iter().filter(|path| is_old(path, YOUNG, now)));
        for place in self.places() {
            // The draft names images that are about to be sent.
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

    /// Removes the files. A blob that was stored again meanwhile stays.
    ///
    /// # Errors
    /// `WRITE_FAILED` for the first file that cannot be removed.
    pub fn clean(&self, garbage: &Garbage) -> Result<()> {
        let clean = || -> io::Result<()> {
            for path in garbage.trash.iter().chain(&garbage.leftovers) {
                unless_gone(if path.is_dir() { remove_folder(path) } else { fs::remove_file(path) })?;
            }
            for path in &garbage.outputs {
                // A folder without a Log may belong to a Session that is being moved: its folder moves first.
                let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
                if path.is_dir() && !self.places().iter().any(|place| place.id.as_str() == name) {
                    unless_gone(remove_folder(path))?;
                } else if path.is_file() {
                    unless_gone(fs::remove_file(path))?;
                }
            }
            garbage.blobs.iter().try_for_each(|path| unless_gone(remove_blob(path)))
        };
        clean().map_err(|e| failed("clean up", &e))
    }
}

/// Another process may have removed the file already.
fn unless_gone(outcome: io::Result<()>) -> io::Result<()> {
    match outcome {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

fn is_old(path: &Path, age: Duration, now: SystemTime) -> bool {
    fs::symlink_metadata(path).and_then(|m| m.modified()).is_ok_and(|at| at + age <= now)
}

/// Another process may store the same bytes now, which updates the blob's time. The blob is therefore moved aside and
/// its age checked again before it is removed.
fn remove_blob(path: &Path) -> io::Result<()> {
    let now = SystemTime::now();
    let aside = path.with_extension("going");
    if !is_old(path, YOUNG, now) {
        return Ok(());
    }
    fs::rename(path, &aside)?;
    if is_old(&aside, YOUNG, now) { fs::remove_file(aside) } else { fs::rename(aside, path) }
}

/// The paths in a folder, sorted; none when the folder does not exist.
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

/// The names of files that appear in Logs.
#[derive(Default)]
struct Names {
    read: HashSet<PathBuf>,
    blobs: HashSet<String>,
    /// Saved outputs: the Session and the file name.
    overflow: HashSet<(String, String)>,
}

impl Names {
    /// Reads Logs and the files that repairs left, as text, so that files named by unreadable lines are kept too.
    fn read_logs(&mut self, folder: &Path) -> Result<(), (PathBuf, io::Error)> {
        for path in names_in(folder)? {
            let name = text_of(&path);
            let is_log = name.ends_with(".ndjson") || name.ends_with(".begun");
            let counts = is_log || name.contains(".damaged-") || name.contains(".torn-");
            if !counts || !self.read.insert(path.clone()) {
                continue;
            }
            // A FIFO or a folder with such a name holds no line, and a link that leads nowhere none that can be read.
            if fs::metadata(&path).is_ok_and(|it| !it.is_file()) || path.is_symlink() && !path.exists() {
                continue;
            }
            match self.read_log(&path) {
                // The Log was moved meanwhile and is read at its new location.
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                other => other.map_err(|e| (path, e))?,
            }
        }
        Ok(())
    }

    fn read_log(&mut self, path: &Path) -> io::Result<()> {
        let mut reader = io::BufReader::with_capacity(256 << 10, regular::open_to_read(path)?);
        let mut line = Vec::new();
        // Files that a repair left are named after their Session too.
        let session = name_of(&text_of(path)).split('.').next().unwrap_or_default().to_owned();
        while io::BufRead::read_until(&mut reader, b'\n', &mut line)? > 0 {
            self.read_line(&session, &line);
            line.clear();
        }
        Ok(())
    }

    fn read_line(&mut self, session: &str, line: &[u8]) {
        self.overflow.extend(outputs_named(line).map(|name| (session.to_owned(), name.to_owned())));
        self.blobs.extend(blobs_named(line).map(str::to_owned));
    }
}

/// Returns the parts of a line that look like names of blobs, in any field.
pub fn blobs_named(line: &[u8]) -> impl Iterator<Item = &str> {
    let texts = line.split(|b| *b == b'"');
    texts
        .filter(|text| text.len() == 32 && text.iter().all(u8::is_ascii_hexdigit))
        .filter_map(|text| std::str::from_utf8(text).ok())
}
