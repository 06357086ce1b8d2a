//! The file that holds all of a stream.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;

use storage::outputs::{self, MAX_SPILL};

/// Where an output is saved when it is too long to show.
#[derive(Debug, Clone)]
pub struct Overflow {
    /// The Session's folder for saved outputs.
    pub folder: PathBuf,
    /// The file's name without its extension: `cmd-3`.
    pub name: String,
}

/// The raw bytes of a stream: in memory while they fit into the budget, then in a file.
#[derive(Debug)]
pub(super) struct Spill {
    overflow: Option<Overflow>,
    held: Vec<u8>,
    /// How many bytes the stream has had.
    raw: u64,
    file: Saved,
}

#[derive(Debug)]
enum Saved {
    NotNeeded,
    Open(File, PathBuf),
    Failed(String),
}

impl Spill {
    pub(super) fn new(overflow: Option<Overflow>) -> Spill {
        Spill { overflow, held: Vec::new(), raw: 0, file: Saved::NotNeeded }
    }

    /// Adds bytes; more than `most` of them go to the file.
    pub(super) fn push(&mut self, bytes: &[u8], most: usize) {
        let before = self.raw;
        self.raw += bytes.len() as u64;
        if self.overflow.is_none() {
            return;
        }
        if !matches!(self.file, Saved::NotNeeded) {
            self.write(bytes, before);
            return;
        }
        self.held.extend_from_slice(bytes);
        if self.held.len() > most {
            self.save();
        }
    }

    /// How many bytes the stream has had.
    pub(super) fn raw(&self) -> u64 {
        self.raw
    }

    /// Moves what is held in memory to the file.
    pub(super) fn save(&mut self) {
        let Some(overflow) = self.overflow.as_ref().filter(|_| matches!(self.file, Saved::NotNeeded)) else { return };
        self.file = match create(overflow) {
            Ok((file, path)) => Saved::Open(file, path),
            Err(e) => Saved::Failed(e.to_string()),
        };
        let held = std::mem::take(&mut self.held);
        self.write(&held, 0);
    }

    fn write(&mut self, bytes: &[u8], before: u64) {
        let Saved::Open(file, _) = &mut self.file else { return };
        let room = usize::try_from(MAX_SPILL.saturating_sub(before)).unwrap_or(usize::MAX).min(bytes.len());
        if let Err(e) = file.write_all(&bytes[..room]) {
            self.file = Saved::Failed(e.to_string());
        }
    }

    /// Gives the file the extension that marks bytes which are no text.
    pub(super) fn mark_binary(&mut self) {
        if let Saved::Open(_, path) = &mut self.file {
            let renamed = path.with_extension("bin");
            if fs::rename(&path, &renamed).is_ok() {
                *path = renamed;
            }
        }
    }

    /// The path of the file.
    pub(super) fn path(&self) -> Option<String> {
        match &self.file {
            Saved::Open(_, path) => Some(path.display().to_string()),
            Saved::NotNeeded | Saved::Failed(_) => None,
        }
    }

    /// Why the stream is not saved, although it should be.
    pub(super) fn failure(&self) -> Option<String> {
        match &self.file {
            Saved::Failed(e) => Some(format!("Full output could not be saved: {e}\n")),
            _ if self.overflow.is_none() => {
                Some("Not saved: outside of a session nothing is. Ask for less: grep, head, tail\n".to_owned())
            }
            Saved::NotNeeded | Saved::Open(..) => None,
        }
    }

    /// Whether the file holds less than the stream had.
    pub(super) fn is_cut(&self) -> bool {
        self.raw > MAX_SPILL
    }
}

fn create(overflow: &Overflow) -> io::Result<(File, PathBuf)> {
    let folder = outputs::folder(&overflow.folder)?;
    let mut name = overflow.name.clone();
    // A fork shares the saved outputs of the Session it was copied from, so an existing file is never overwritten.
    for more in 2.. {
        let path = folder.join(format!("{name}.txt"));
        if path.with_extension("bin").exists() {
            name = format!("{}-{more}", overflow.name);
            continue;
        }
        match fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => name = format!("{}-{more}", overflow.name),
            Ok(file) => return Ok((file, path)),
            Err(e) => return Err(e),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_ends_at_its_limit_and_little_is_held_in_memory() {
        let folder = tempfile::tempdir().expect("a folder");
        let out = folder.path().join("s/out");
        let mut spill = Spill::new(Some(Overflow { folder: out, name: "cmd-1".into() }));
        let piece = vec![b'x'; 1 << 20];
        for _ in 0..65 {
            spill.push(&piece, 16_000);
            assert!(spill.held.capacity() <= 2 << 20, "{}", spill.held.capacity());
        }
        let path = spill.path().expect("it is saved");
        assert_eq!(
            (spill.raw(), fs::metadata(path).expect("there").len(), spill.is_cut()),
            (65 << 20, MAX_SPILL, true)
        );
    }
}
