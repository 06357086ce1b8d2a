//! Opens files that must be regular, on a file system that holds files of a user. A FIFO or a device of the same name could
//! block for ever, or be changed by the open, and a file of the kernel may never end.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use crate::file_system;

/// The longest text that is read whole, bytes.
const LONGEST: u64 = 64 << 20;

/// Opens a file with these options, if it is a regular one or a link to one.
///
/// # Errors
/// Errors of the file system; `InvalidInput` for any other kind of file, and for a file of the kernel.
pub fn open(path: &Path, options: &OpenOptions) -> io::Result<File> {
    check(&fs::metadata(path)?)?;
    // The name may be given to a FIFO in this moment; then the open must not wait for its other end.
    let flags = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or_default();
    let file = options.clone().custom_flags(flags).open(path)?;
    check(&file.metadata()?)?;
    match file_system::without_files(&file) {
        None => Ok(file),
        Some(kind) => {
            Err(io::Error::new(io::ErrorKind::InvalidInput, format!("it is on {kind}, which holds no files")))
        }
    }
}

/// Opens a regular file for reading.
///
/// # Errors
/// As [`open`].
pub fn open_to_read(path: &Path) -> io::Result<File> {
    open(path, OpenOptions::new().read(true))
}

/// Reads a regular file that holds text.
///
/// # Errors
/// As [`read`]; `InvalidData` when it is not UTF-8.
pub fn read_to_string(path: &Path) -> io::Result<String> {
    String::from_utf8(read(path, LONGEST)?).map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))
}

/// Reads a regular file of at most so many bytes.
///
/// # Errors
/// As [`open`]; `FileTooLarge` when it has more, or grows beyond that while it is read.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_to_read(path)?.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(bytes) }
}

fn check(metadata: &fs::Metadata) -> io::Result<()> {
    if metadata.is_file() {
        return Ok(());
    }
    let kind = if metadata.is_dir() { "a folder" } else { "a FIFO, a socket or a device" };
    Err(io::Error::new(io::ErrorKind::InvalidInput, format!("it is {kind}, not a file")))
}
