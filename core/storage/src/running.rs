//! Notes of what a running pixir has started and not finished: groups of processes, and temporary files.
//!
//! Each note is a file of its own in the state folder. It is written before its subject exists and removed after the
//! subject is gone. A note whose process is dead names what a killed pixir has left behind.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A note of another machine or container cannot be judged, and is removed after this time.
const FOREIGN: Duration = Duration::from_secs(24 * 3600);
/// The longest note that is read, bytes. A look at protected files has their bytes.
const MOST: u64 = 64 << 20;

/// The folder of the notes. Without a folder nothing is noted.
#[derive(Debug, Clone, Default)]
pub struct Running {
    folder: Option<PathBuf>,
}

/// The subject of a note.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// A group of processes. The name of the note is in the environment of each.
    Group,
    /// A temporary file in the workspace, or beside a file that the user named.
    File,
    /// A look at the protected files of a workspace, before a command.
    Guard,
}

/// A note; dropping it removes it.
#[derive(Debug)]
pub struct Note {
    /// The name, unique among all processes since the machine has started.
    pub name: String,
    path: Option<PathBuf>,
}

/// A note of a process that is dead.
#[derive(Debug)]
pub struct Left {
    pub name: String,
    pub subject: Subject,
    /// The bytes of the note.
    pub text: Vec<u8>,
    path: PathBuf,
}

impl Subject {
    fn ending(self) -> &'static str {
        match self {
            Subject::Group => "group",
            Subject::File => "file",
            Subject::Guard => "guard",
        }
    }
}

impl Running {
    /// Notes in this folder, which is created with the first one.
    pub fn new(folder: PathBuf) -> Running {
        Running { folder: Some(folder) }
    }

    /// Writes a note. If the disk refuses it, the note has only its name: pixir must work on a full disk too.
    pub fn note(&self, subject: Subject, text: &[u8]) -> Note {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name = format!("{}-{}", own_name(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = self.folder.as_ref().map(|folder| folder.join(format!("{name}.{}", subject.ending())));
        let mut note = Note { name, path };
        let begun = [world().as_bytes(), b"\n", text].concat();
        if let Err(e) = note.write(&begun) {
            tracing::warn!("what a crash would leave behind was not noted: {e}");
            note.path = None;
        }
        note
    }

    /// The notes of processes that are dead. Notes that cannot be judged stay for a day.
    pub fn left(&self) -> Vec<Left> {
        let entries = self.folder.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten();
        entries.filter_map(|entry| left(&entry)).collect()
    }
}

fn left(entry: &fs::DirEntry) -> Option<Left> {
    let path = entry.path();
    let subject = [Subject::Group, Subject::File, Subject::Guard]
        .into_iter()
        .find(|it| path.extension().is_some_and(|e| e == it.ending()))?;
    let name = path.file_stem()?.to_str()?.to_owned();
    let mut parts = name.split('-').map(str::parse::<u64>);
    let (Some(Ok(pid)), Some(Ok(start))) = (parts.next(), parts.next()) else { return None };
    let metadata = entry.metadata().ok().filter(|it| it.is_file() && it.len() <= MOST)?;
    let bytes = fs::read(&path).ok()?;
    let at = bytes.iter().position(|b| *b == b'\n');
    let of_this_world = at.is_some_and(|at| bytes[..at] == *world().as_bytes());
    if !of_this_world {
        let age = metadata.modified().ok()?.elapsed().unwrap_or_default();
        // A killed pixir may have written only a part of the note; then its subject does not exist yet.
        if age > FOREIGN {
            let _ = fs::remove_file(&path);
        }
        return None;
    }
    if i32::try_from(pid).is_ok_and(|pid| start_of(pid) == Some(start)) {
        return None;
    }
    let text = bytes[at? + 1..].to_vec();
    Some(Left { name, subject, text, path })
}

impl Note {
    fn write(&self, bytes: &[u8]) -> io::Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        if let Some(folder) = path.parent() {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        fs::OpenOptions::new().append(true).create(true).mode(0o600).open(path)?.write_all(bytes)
    }

    /// Sets the time of the note anew.
    pub fn touch(&self) {
        let file = self.path.as_ref().and_then(|path| fs::OpenOptions::new().append(true).open(path).ok());
        // A time that is not set only makes a later pixir more careful.
        let _ = file.map(|it| it.set_modified(SystemTime::now()));
    }

    /// Adds to the note.
    pub fn add(&self, text: &str) {
        if let Err(e) = self.write(text.as_bytes()) {
            tracing::warn!("what a crash would leave behind was not noted: {e}");
        }
    }
}

impl Drop for Note {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            let _ = fs::remove_file(path);
        }
    }
}

impl Left {
    /// Removes the note, because its subject is gone.
    pub fn settled(&self) {
        let _ = fs::remove_file(&self.path);
    }

    /// The last time at which its process was known to live.
    pub fn last_seen(&self) -> SystemTime {
        fs::metadata(&self.path).and_then(|it| it.modified()).unwrap_or(UNIX_EPOCH)
    }

    /// The path in the note.
    pub fn as_path(&self) -> PathBuf {
        PathBuf::from(std::ffi::OsString::from_vec(self.text.clone()))
    }
}

/// The text of a note about a file.
pub fn path_text(path: &Path) -> &[u8] {
    path.as_os_str().as_bytes()
}

/// When a process was started, in clock ticks since the machine has started. With the process id it names a process.
pub fn start_of(pid: i32) -> Option<u64> {
    stat_of(pid).map(|stat| stat.start)
}

/// A process as `/proc/PID/stat` shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    pub pid: i32,
    pub parent: i32,
    pub group: i32,
    pub session: i32,
    pub start: u64,
    /// It has ended, and its parent has not heard of it yet.
    pub is_ended: bool,
}

/// None when there is no such process, or no `/proc`.
pub fn stat_of(pid: i32) -> Option<Stat> {
    let text = fs::read(format!("/proc/{pid}/stat")).ok()?;
    // The name of the program is in brackets and may contain anything.
    let at = text.iter().rposition(|b| *b == b')')?;
    let rest = String::from_utf8_lossy(&text[at + 1..]).into_owned();
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let number = |at: usize| fields.get(at)?.parse::<i32>().ok();
    Some(Stat {
        pid,
        parent: number(1)?,
        group: number(2)?,
        session: number(3)?,
        start: fields.get(19)?.parse().ok()?,
        is_ended: matches!(fields.first(), Some(&("Z" | "X"))),
    })
}

/// This process, as the names of its notes begin.
fn own_name() -> &'static str {
    static OWN: OnceLock<String> = OnceLock::new();
    OWN.get_or_init(|| {
        let pid = std::process::id();
        let start = i32::try_from(pid).ok().and_then(start_of).unwrap_or_default();
        format!("{pid}-{start}")
    })
}

/// The start of the machine and the table of processes. Process ids of another world mean other processes.
fn world() -> &'static str {
    static WORLD: OnceLock<String> = OnceLock::new();
    WORLD.get_or_init(|| {
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let table = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
        format!("{} {}", boot.trim(), table.display())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken build: the note is judged by its process id alone, so that a reused id hides what was left.
    #[test]
    fn a_note_of_a_living_process_is_not_left_and_one_of_a_dead_process_is() {
        let folder = tempfile::tempdir().expect("a folder");
        let running = Running::new(folder.path().join("running"));
        let note = running.note(Subject::File, b"/a\nb");
        assert!(running.left().is_empty(), "its process is this one");
        let own = note.path.clone().expect("it is written");
        let pid = std::process::id();
        let reused = own.with_file_name(format!("{pid}-1-0.file"));
        fs::copy(&own, &reused).expect("copy");
        let left = running.left();
        assert_eq!((left.len(), left[0].as_path()), (1, PathBuf::from("/a\nb")));
        left[0].settled();
        drop(note);
        assert!(!own.exists() && !reused.exists());
    }
}
