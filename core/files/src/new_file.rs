//! A file of the user outside of any workspace: it gets its name when it is whole, and a killed pixir leaves nothing behind.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use storage::log::rename_new;
use storage::running::{Note, Running, Subject, path_text};

use crate::workspace::writing::temporary_name;

/// A file that is being written. Dropping it before it has its name removes it.
#[derive(Debug)]
pub struct NewFile {
    to: BufWriter<File>,
    temporary: PathBuf,
    path: PathBuf,
    has_name: bool,
    /// The next start of pixir removes the temporary file if this process is killed.
    _note: Note,
}

impl NewFile {
    /// Begins a file that will lie at this path. Its permissions are those of any new file of the user.
    ///
    /// # Errors
    /// The system's error, for example when the folder is absent or cannot be written.
    pub fn create(path: &Path, running: &Running) -> io::Result<NewFile> {
        let folder = path.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."));
        // The note is read by a process with another working folder.
        let temporary = folder.canonicalize()?.join(temporary_name());
        let note = running.note(Subject::File, path_text(&temporary));
        let file = OpenOptions::new().write(true).create_new(true).mode(0o666).open(&temporary)?;
        let to = BufWriter::new(file);
        Ok(NewFile { to, temporary, path: path.to_owned(), has_name: false, _note: note })
    }

    /// Gives the file its name, which no other file may have.
    ///
    /// # Errors
    /// `AlreadyExists`, or another error of the system. Then nothing is left.
    pub fn finish_new(mut self) -> io::Result<()> {
        self.to.flush()?;
        rename_new(&self.temporary, &self.path)?;
        self.has_name = true;
        Ok(())
    }

    /// Gives the file its name. A file that had it before is replaced, and its mode stays.
    ///
    /// # Errors
    /// The system's error. Then nothing is left, and the old file is as it was.
    pub fn finish(mut self) -> io::Result<()> {
        self.to.flush()?;
        if let Ok(old) = fs::metadata(&self.path) {
            let mode = Permissions::from_mode(old.permissions().mode());
            self.to.get_ref().set_permissions(mode)?;
        }
        self.to.get_ref().sync_all()?;
        fs::rename(&self.temporary, &self.path)?;
        self.has_name = true;
        Ok(())
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.to.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if !self.has_name {
            let _ = fs::remove_file(&self.temporary);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::writing::remove_left;

    /// Broken builds: the file has its name before it is whole; a file of another program is replaced; a file that is given
    /// up stays; the sweep removes the file of a living process.
    #[test]
    fn a_file_has_its_name_when_it_is_whole_and_leaves_nothing_when_it_is_given_up() {
        let folder = tempfile::tempdir().expect("a folder");
        let running = Running::new(folder.path().join("running"));
        let out = folder.path().join("out");
        fs::create_dir(&out).expect("mkdir");
        let (path, names) = (out.join("a.md"), || fs::read_dir(&out).expect("a folder").count());
        let mut new = NewFile::create(&path, &running).expect("it begins");
        new.write_all(b"whole").expect("it is written");
        assert!(!path.exists() && names() == 1);
        remove_left(&running.left());
        assert_eq!(names(), 1, "its process lives");
        new.finish_new().expect("it gets its name");
        assert_eq!((fs::read_to_string(&path).expect("a file").as_str(), names()), ("whole", 1));
        let mut other = NewFile::create(&path, &running).expect("it begins");
        other.write_all(b"other").expect("it is written");
        let taken = other.finish_new().expect_err("the name is taken");
        assert_eq!((taken.kind(), names()), (io::ErrorKind::AlreadyExists, 1));
        assert_eq!(fs::read_to_string(&path).expect("a file"), "whole");
        let mut newer = NewFile::create(&path, &running).expect("it begins");
        newer.write_all(b"newer").expect("it is written");
        newer.finish().expect("it replaces");
        assert_eq!((fs::read_to_string(&path).expect("a file").as_str(), names()), ("newer", 1));
        drop(NewFile::create(&path, &running).expect("it begins"));
        assert_eq!(names(), 1);
        assert_eq!(fs::read_dir(folder.path().join("running")).expect("a folder").count(), 0, "no note is left");
    }
}
