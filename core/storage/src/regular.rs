//! Opens files of the state folder that must be regular. A FIFO or a device of the same name could block for ever, or be
//! changed by the open.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Opens a file with these options, if it is a regular one or a link to one.
///
/// # Errors
/// Errors of the file system; `InvalidInput` for any other kind of file.
pub fn open(path: &Path, options: &OpenOptions) -> io::Result<File> {
    check(&fs::metadata(path)?)?;
    // The name may be given to a FIFO in this moment; then the open must not wait for its other end.
    let flags = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or_default();
    let file = options.clone().custom_flags(flags).open(path)?;
    check(&file.metadata()?)?;
    Ok(file)
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
/// As [`open`]; `InvalidData` when it is not UTF-8.
pub fn read_to_string(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    open_to_read(path)?.read_to_string(&mut text)?;
    Ok(text)
}

fn check(metadata: &fs::Metadata) -> io::Result<()> {
    if metadata.is_file() {
        return Ok(());
    }
    let kind = if metadata.is_dir() { "a folder" } else { "a FIFO, a socket or a device" };
    Err(io::Error::new(io::ErrorKind::InvalidInput, format!("it is {kind}, not a file")))
}
