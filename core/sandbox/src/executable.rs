//! The executable that takes the launcher's part: a small one beside pixir's, or else pixir's own.

use std::fs::{self, File};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use super::LAUNCHER;
use process::between_starts;

/// Identifies the build: both executables have it from the same sources.
const BUILD: &str = env!("PIXIR_BUILD");
/// Asks a launcher for its build, in place of a plan.
pub(super) const WHICH_BUILD: &str = "build";

/// pixir's own executable, or another one that can take the part.
static OFFERED: OnceLock<PathBuf> = OnceLock::new();
/// The one that does, as a path for this process.
static CHOSEN: OnceLock<PathBuf> = OnceLock::new();

/// The executables that can take the part.
#[derive(Debug)]
struct Found {
    own: &'static Path,
    /// It stays open, so that the file that is started is the one that was recognised, also after an update.
    beside: Option<File>,
}

/// Lets this executable, or the launcher beside it, take the part. The first call counts.
pub(super) fn offer(own: &Path) {
    let _ = OFFERED.set(own.to_owned());
}

/// Whether an executable can take the part.
pub(super) fn is_offered() -> bool {
    OFFERED.get().is_some()
}

/// The executables. Only what runs programs looks for them: many commands run none.
fn found() -> Option<&'static Found> {
    static FOUND: OnceLock<Found> = OnceLock::new();
    let own = OFFERED.get()?;
    Some(FOUND.get_or_init(|| Found { own, beside: beside(own) }))
}

/// The executable used as launcher, once [`choose`] has found it.
pub(super) fn chosen() -> Option<&'static Path> {
    CHOSEN.get().map(PathBuf::as_path)
}

/// Writes this build's identity, by which pixir recognises its launcher.
pub(super) fn tell_build(mut to: impl std::io::Write) -> std::io::Result<()> {
    to.write_all(BUILD.as_bytes())
}

/// The file beside an executable that has the launcher's name.
fn beside(own: &Path) -> Option<File> {
    let own = fs::canonicalize(own).ok()?;
    let path = own.with_file_name(LAUNCHER);
    // Not a FIFO, which would block.
    let is_file = fs::symlink_metadata(&path).is_ok_and(|it| it.is_file());
    let file = if is_file { File::open(&path).ok()? } else { return None };
    let (own, found) = (fs::metadata(own).ok()?, file.metadata().ok()?);
    // Another user's file could do anything.
    (found.is_file() && found.uid() == own.uid()).then_some(file)
}

/// What the choice depends on, for a note of it.
pub(super) fn identity() -> String {
    let of = |it: std::io::Result<fs::Metadata>| {
        // To the nanosecond: a file that takes another's place within a second can have its inode and its length.
        it.map(|it| {
            let (modified, changed) = ((it.mtime(), it.mtime_nsec()), (it.ctime(), it.ctime_nsec()));
            format!("{}.{}.{}.{}.{}.{}.{}", it.dev(), it.ino(), it.len(), modified.0, modified.1, changed.0, changed.1)
        })
        .unwrap_or_default()
    };
    let Some(Found { own, beside }) = found() else { return String::new() };
    let beside = beside.as_ref().map(|it| of(it.metadata())).unwrap_or_default();
    format!("{BUILD} {} {beside}", of(fs::metadata(own)))
}

/// Chooses the executable. `is_known` tells what was found before under the same [`identity`]: whether the launcher beside is
/// of this build. Returns that.
pub(super) fn choose(is_known: Option<bool>) -> bool {
    let Some(Found { own, beside }) = found() else { return false };
    let path = beside.as_ref().map(|it| PathBuf::from(format!("/proc/self/fd/{}", it.as_raw_fd())));
    let path = path.filter(|path| is_known.unwrap_or_else(|| is_of_this_build(path)));
    let is_beside = path.is_some();
    let _ = CHOSEN.set(path.unwrap_or_else(|| (*own).to_owned()));
    is_beside
}

/// Asks the launcher for its build.
fn is_of_this_build(launcher: &Path) -> bool {
    let mut command = Command::new(launcher);
    command.arg0(LAUNCHER).arg(WHICH_BUILD).env_clear();
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let told = between_starts(|| command.spawn()).and_then(|child| child.wait_with_output());
    told.is_ok_and(|told| told.stdout == BUILD.as_bytes())
}
