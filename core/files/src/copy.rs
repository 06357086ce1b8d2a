//! Copies of a workspace, in which agents work on their own.

use std::fs::{self, File, FileTimes, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use ignore::{DirEntry, WalkBuilder};
use parking_lot::Mutex;
use rustix::fs::{IFlags, ioctl_getflags, ioctl_setflags};
use tokio_util::sync::CancellationToken;

use crate::walk::{Border, walk_files};
use protocol::error::{Code, Error, Result};
use storage::regular;
use storage::store::make_private;

/// The most files of a copy, as many as are watched for changes.
const MAX_FILES: u64 = 20_000;
/// The most bytes of a copy.
const MAX_BYTES: u64 = 2 << 30;
/// The most files of a copy that git ignores.
const MAX_IGNORED_FILES: u64 = 200_000;
/// The most bytes of a copy that git ignores.
const MAX_IGNORED_BYTES: u64 = 8 << 30;
/// A repository with more bytes is left out.
const MAX_REPOSITORY: u64 = 512 << 20;

/// Parts of a repository that a copy of it has. It has no hooks, and nothing that names another repository.
const OF_WORK_TREE: [&str; 2] = ["HEAD", "index"];
const SHARED: [&str; 6] = ["config", "packed-refs", "refs", "objects", "info", "shallow"];

/// The folders of a repository: that of the work tree, and the one that all work trees share.
#[derive(Debug, Clone)]
pub struct GitFolders {
    pub own: PathBuf,
    pub common: PathBuf,
}

/// Whether a copy has its repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopiedRepository {
    Whole,
    /// It has too many bytes.
    TooLarge,
    /// Its objects are in another repository.
    Elsewhere,
}

/// Copies the files of a folder that are not ignored, uncommitted ones too, those ignored ones that are below one of the paths,
/// and its repository. `to` is there only when the copy is whole.
///
/// # Errors
/// `COPY_FAILED` where there is too much, or a file cannot be copied.
pub fn copy(from: &Path, git: Option<&GitFolders>, ignored: &[String], to: &Path) -> Result<Option<CopiedRepository>> {
    let making = to.with_extension("making");
    let failed = |what: &str, e: &io::Error| {
        let message = format!("copy the workspace for the agent: {what}: {e}");
        Error::new(Code::CopyFailed, message, "start it with isolation shared, or make room")
    };
    remove(&making).map_err(|e| failed("an earlier copy", &e))?;
    make_private(&making).map_err(|e| failed("its folder", &e))?;
    making.ancestors().skip(1).take(2).for_each(spread);
    let all = || ignored.iter().try_for_each(|path| below(path, from, &making));
    let made = files(from, |entry, path| one(entry, &making.join(path))).and_then(|()| all()).and_then(|()| {
        let copied = git.map(|git| repository(git, &making.join(".git"))).transpose();
        copied.map_err(|e| failed("its repository", &e))
    });
    let made = made.and_then(|copied| {
        fs::rename(&making, to).map_err(|e| failed("its folder", &e))?;
        Ok(copied)
    });
    if made.is_err() {
        let _ = remove(&making);
    }
    made
}

/// Has ext4 put each folder that is made in this one into another group of blocks; other file systems refuse, and need it not.
///
/// For 5 minutes after an inode was freed, ext4 passes it over for a new file, and tests it again for each further one. Where a copy
/// is made in the group in which one was just removed, this takes 4 s for 10,000 files, in place of 0.3 s.
fn spread(folder: &Path) {
    let spread = || -> io::Result<()> {
        let folder = File::open(folder)?;
        let flags = ioctl_getflags(&folder)?;
        if !flags.contains(IFlags::TOPDIR) {
            ioctl_setflags(&folder, flags | IFlags::TOPDIR)?;
        }
        Ok(())
    };
    if let Err(e) = spread() {
        tracing::debug!(folder = %folder.display(), "copies are not spread over the disk: {e}");
    }
}

/// Removes a copy; one that is not there is no error.
///
/// # Errors
/// Those of the file system.
pub fn remove(copy: &Path) -> io::Result<()> {
    match fs::remove_dir_all(copy) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// The symlinks of a copy that the workspace does not have so.
pub fn new_links(copy: &Path, workspace: &Path) -> Vec<String> {
    let found = Mutex::new(Vec::new());
    walk_files(copy, &CancellationToken::new(), &|| {
        Box::new(|entry: &DirEntry| {
            let Ok(path) = entry.path().strip_prefix(copy) else { return };
            if let Ok(target) = fs::read_link(entry.path())
                && fs::read_link(workspace.join(path)).ok() != Some(target)
            {
                found.lock().push(path.display().to_string());
            }
        })
    });
    let mut found = found.into_inner();
    found.sort();
    found
}

/// Whether a folder has no more files than a copy may have.
///
/// # Errors
/// `COPY_FAILED` where it has more.
pub fn check(from: &Path) -> Result<()> {
    files(from, |_, _| Ok(()))
}

/// Does something with each file of a folder that is not ignored.
fn files(from: &Path, each: impl Fn(&DirEntry, &Path) -> io::Result<()> + Sync) -> Result<()> {
    let (count, bytes) = (AtomicU64::new(0), AtomicU64::new(0));
    let stop = CancellationToken::new();
    let wrong: Mutex<Option<Error>> = Mutex::default();
    let refuse = |error: Error| {
        wrong.lock().get_or_insert(error);
        stop.cancel();
    };
    walk_files(from, &stop, &|| {
        Box::new(|entry: &DirEntry| {
            let Ok(path) = entry.path().strip_prefix(from) else { return };
            let len = entry.metadata().map_or(0, |it| it.len());
            let count = count.fetch_add(1, Ordering::Relaxed) + 1;
            let bytes = bytes.fetch_add(len, Ordering::Relaxed) + len;
            if count > MAX_FILES || bytes > MAX_BYTES {
                let message = format!(
                    "the workspace has more than {MAX_FILES} files or 2 GiB that git does not ignore; that is too much for a copy"
                );
                return refuse(Error::new(Code::CopyFailed, message, "start it with isolation shared"));
            }
            if let Err(e) = each(entry, path) {
                let message = format!("copy {} for the agent: {e}", path.display());
                refuse(Error::new(Code::CopyFailed, message, "start it with isolation shared"));
            }
        })
    });
    wrong.into_inner().map_or(Ok(()), Err)
}

/// Copies all that is below a path, also what git ignores; nothing where there is no such path.
fn below(path: &str, from: &Path, to: &Path) -> Result<()> {
    // A link could lead out of the workspace.
    let mut folder = from.to_path_buf();
    for part in Path::new(path) {
        folder.push(part);
        if fs::symlink_metadata(&folder).map_or(true, |it| it.is_symlink()) {
            return Ok(());
        }
    }
    let (mut count, mut bytes) = (0, 0);
    let border = Border::default();
    let mut all = WalkBuilder::new(from.join(path));
    all.standard_filters(false).follow_links(false).filter_entry(move |entry| border.encloses(entry));
    // What cannot be listed is not there for the agent.
    for entry in all.build().flatten() {
        let Ok(path_of) = entry.path().strip_prefix(from) else { continue };
        count += 1;
        bytes += entry.metadata().map_or(0, |it| if it.is_file() { it.len() } else { 0 });
        if count > MAX_IGNORED_FILES || bytes > MAX_IGNORED_BYTES {
            let message = format!("`agents.copy_ignored`: {path} has more than {MAX_IGNORED_FILES} files or 8 GiB");
            return Err(Error::new(Code::CopyFailed, message, "leave it out of agents.copy_ignored"));
        }
        let target = to.join(path_of);
        // It may have been copied already: not all below the path needs to be ignored.
        if fs::symlink_metadata(&target).is_err()
            && let Err(e) = one(&entry, &target)
        {
            let message = format!("copy {} for the agent: {e}", path_of.display());
            return Err(Error::new(Code::CopyFailed, message, "leave it out of agents.copy_ignored"));
        }
    }
    Ok(())
}

/// A file with its permission bits and its time, so that build tools find nothing new; or a symlink. Other things have no content.
fn one(entry: &DirEntry, to: &Path) -> io::Result<()> {
    let kind = entry.file_type();
    let parent = || to.parent().map_or(Ok(()), fs::create_dir_all);
    if kind.is_some_and(|it| it.is_symlink()) {
        parent()?;
        return symlink(fs::read_link(entry.path())?, to);
    }
    if !kind.is_some_and(|it| it.is_file()) {
        return Ok(());
    }
    let content = match regular::open_to_read(entry.path()) {
        // It has gone since the folder was listed, or it is mounted there from a file system without files of a user.
        Err(e) if [io::ErrorKind::NotFound, io::ErrorKind::InvalidInput].contains(&e.kind()) => return Ok(()),
        other => other?,
    };
    let metadata = content.metadata()?;
    let create = || OpenOptions::new().write(true).create_new(true).mode(metadata.permissions().mode()).open(to);
    let mut copied = match create() {
        // The folder is made by the first file in it.
        Err(e) if e.kind() == io::ErrorKind::NotFound => parent().and_then(|()| create()),
        other => other,
    }?;
    // Where the file system can, both share their blocks.
    // What is written to the file meanwhile is not copied: it may grow for ever.
    io::copy(&mut content.take(metadata.len()), &mut copied)?;
    copied.set_permissions(metadata.permissions())?;
    copied.set_times(FileTimes::new().set_modified(metadata.modified()?))
}

fn repository(from: &GitFolders, to: &Path) -> io::Result<CopiedRepository> {
    if fs::symlink_metadata(from.common.join("objects/info/alternates")).is_ok() {
        return Ok(CopiedRepository::Elsewhere);
    }
    let mut room = MAX_REPOSITORY;
    let parts = OF_WORK_TREE.iter().map(|name| (&from.own, name)).chain(SHARED.iter().map(|name| (&from.common, name)));
    make_private(to)?;
    for (folder, name) in parts {
        if !tree(&folder.join(name), &to.join(name), &mut room)? {
            // An agent without a repository can still work; half a repository would only confuse it.
            remove(to)?;
            return Ok(CopiedRepository::TooLarge);
        }
    }
    forget_work_tree(&to.join("config"))?;
    Ok(CopiedRepository::Whole)
}

/// Takes the work tree out of the configuration of a submodule: the copy has its own.
fn forget_work_tree(config: &Path) -> io::Result<()> {
    let Ok(text) = regular::read_to_string(config) else { return Ok(()) };
    let names_one = |line: &str| line.split('=').next().is_some_and(|key| key.trim().eq_ignore_ascii_case("worktree"));
    if text.lines().any(names_one) {
        fs::write(config, text.split_inclusive('\n').filter(|line| !names_one(line)).collect::<String>())?;
    }
    Ok(())
}

/// Copies a file or a folder with all that is in it; `false` where that is too much.
fn tree(from: &Path, to: &Path, room: &mut u64) -> io::Result<bool> {
    let metadata = match fs::symlink_metadata(from) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(true),
        other => other?,
    };
    if metadata.is_dir() {
        fs::create_dir_all(to)?;
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            if !tree(&entry.path(), &to.join(entry.file_name()), room)? {
                return Ok(false);
            }
        }
    } else if metadata.is_file() {
        match room.checked_sub(metadata.len()) {
            Some(rest) => *room = rest,
            None => return Ok(false),
        }
        fs::copy(from, to)?;
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `statfs` says of ext4.
    const EXT4: i64 = 0xef53;

    /// Broken build: the copies of a session are made in the group of blocks in which an earlier one was removed.
    #[test]
    fn copies_are_spread_over_the_disk() {
        let folder = tempfile::tempdir().expect("a folder");
        let (from, copies) = (folder.path().join("app"), folder.path().join("copies"));
        fs::create_dir(&from).expect("mkdir");
        fs::write(from.join("a"), "a").expect("write");
        copy(&from, None, &[], &copies.join("root/worker-1")).expect("it is copied");
        let is_spread = |folder: &Path| {
            let flags = ioctl_getflags(File::open(folder).expect("open")).unwrap_or(IFlags::empty());
            flags.contains(IFlags::TOPDIR)
        };
        let is_ext4 = rustix::fs::statfs(folder.path()).expect("a file system").f_type == EXT4;
        assert_eq!((is_spread(&copies), is_spread(&copies.join("root"))), (is_ext4, is_ext4));
        assert!(!is_spread(&copies.join("root/worker-1")));
        assert_eq!(fs::read(copies.join("root/worker-1/a")).expect("it is copied"), b"a");
    }

    /// Broken builds: `one` follows symlinks; ignored files are copied.
    #[test]
    fn a_copy_has_the_files_that_git_would_have_and_links_as_links() {
        let folder = tempfile::tempdir().expect("a folder");
        let (from, to) = (folder.path().join("app"), folder.path().join("copy"));
        fs::create_dir_all(from.join("src/deep")).expect("mkdir");
        fs::create_dir_all(from.join("target")).expect("mkdir");
        fs::create_dir_all(from.join("node_modules/dep")).expect("mkdir");
        fs::create_dir(from.join(".git")).expect("mkdir");
        for (path, text) in [
            ("src/deep/a.rs", "a"),
            ("target/big", "b"),
            ("node_modules/dep/index.js", "d"),
            (".gitignore", "target\nnode_modules\n"),
            (".env", "c"),
            (".git/HEAD", "ref: refs/heads/x"),
        ] {
            fs::write(from.join(path), text).expect("write");
        }
        symlink("src/deep/a.rs", from.join("link")).expect("a link");
        let git = GitFolders { own: from.join(".git"), common: from.join(".git") };
        symlink("dep", from.join("node_modules/alias")).expect("a link");
        copy(&from, Some(&git), &["node_modules".to_owned(), "absent".to_owned()], &to).expect("it is copied");
        let read = |path: &str| fs::read_to_string(to.join(path)).ok();
        assert_eq!(read("src/deep/a.rs").as_deref(), Some("a"));
        assert_eq!((read(".env").as_deref(), read("target/big")), (Some("c"), None));
        assert_eq!(read("node_modules/dep/index.js").as_deref(), Some("d"), "ignored, but named");
        assert_eq!(fs::read_link(to.join("node_modules/alias")).expect("a link"), Path::new("dep"));
        assert_eq!(fs::read_link(to.join("link")).expect("a link"), Path::new("src/deep/a.rs"));
        assert_eq!(read(".git/HEAD").as_deref(), Some("ref: refs/heads/x"));
        let time = |path: &Path| fs::metadata(path).and_then(|it| it.modified()).expect("a time");
        assert_eq!(time(&to.join("src/deep/a.rs")), time(&from.join("src/deep/a.rs")));
        assert!(!folder.path().join("copy.making").exists());
    }
}
