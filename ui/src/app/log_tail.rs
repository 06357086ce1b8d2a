//! The end of pixir's own log file, read in bounded pieces.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use crate::overlay::log::{Level, LogLine};

/// The most bytes that are read from the end of the file.
const MOST: u64 = 512 << 10;

/// The last lines of the file, oldest first, and its size in bytes. A file that does not exist has none.
///
/// # Errors
/// Why it cannot be read.
pub(super) fn read(path: &Path) -> Result<(Vec<LogLine>, u64), String> {
    let (text, bytes) = end_of(path)?;
    Ok((lines(&text), bytes))
}

/// The whole lines at the end of a file, and its size in bytes. A file that does not exist is empty.
///
/// # Errors
/// Why it cannot be read.
pub(super) fn end_of(path: &Path) -> Result<(String, u64), String> {
    // A FIFO of this name must not block pixir.
    let flags = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or_default();
    let mut file = match File::options().read(true).custom_flags(flags).open(path) {
        Ok(file) => file,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok((String::new(), 0)),
        Err(e) => return Err(e.to_string()),
    };
    let metadata = file.metadata().map_err(|e| e.to_string())?;
    if !metadata.is_file() {
        return Err("it is not a file".to_owned());
    }
    let from = metadata.len().saturating_sub(MOST);
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(from)).map_err(|e| e.to_string())?;
    file.take(MOST).read_to_end(&mut bytes).map_err(|e| e.to_string())?;
    let text = String::from_utf8_lossy(&bytes);
    // The first line is cut, unless the piece begins with the file.
    let whole = if from == 0 { &text } else { text.split_once('\n').map_or("", |(_, rest)| rest) };
    Ok((whole.to_owned(), metadata.len()))
}

/// Each line with its level. A line without a time belongs to the message above it, such as the frames of a panic.
fn lines(text: &str) -> Vec<LogLine> {
    let mut lines: Vec<LogLine> = Vec::new();
    for line in text.lines() {
        let level = level_of(line);
        match (level, lines.last()) {
            (None, Some(above)) => {
                let level = above.level;
                lines.push(LogLine { level, text: line.to_owned() });
            }
            (level, _) => lines.push(LogLine { level: level.unwrap_or(Level::Info), text: line.to_owned() }),
        }
    }
    lines
}

/// The level of a line that begins a message: `2026-11-23T20:15:04.123Z  WARN pixir: …`, or `panic: …`.
fn level_of(line: &str) -> Option<Level> {
    if line.starts_with("panic: ") {
        return Some(Level::Error);
    }
    let mut words = line.split_whitespace();
    let is_time = words.next().is_some_and(|it| it.len() > 10 && it.as_bytes().get(4) == Some(&b'-'));
    if !is_time {
        return None;
    }
    match words.next()? {
        "ERROR" => Some(Level::Error),
        "WARN" => Some(Level::Warn),
        "INFO" => Some(Level::Info),
        "DEBUG" => Some(Level::Debug),
        "TRACE" => Some(Level::Trace),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_end_of_a_large_log_is_read_and_each_line_has_a_level() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("pixir.log");
        assert_eq!(read(&path).expect("no file is no fault"), (Vec::new(), 0));
        let line = |n: usize| format!("2026-11-23T20:15:04.123456Z  WARN pixir: message {n}\n");
        let text: String = (0..20_000).map(line).collect();
        let panic = "panic: it broke\n   0: a frame\n";
        std::fs::write(&path, format!("{text}{panic}")).expect("write");
        let (lines, size) = read(&path).expect("readable");
        assert_eq!(size, (text.len() + panic.len()) as u64);
        assert!(lines.len() < 10_000, "{} lines of 20,000", lines.len());
        assert!(lines.iter().all(|it| !it.text.is_empty()));
        let levels: Vec<Level> = lines.iter().rev().take(3).map(|it| it.level).collect();
        assert_eq!(levels, [Level::Error, Level::Error, Level::Warn], "frames of a panic belong to it");
        assert!(lines[0].text.starts_with("2026-"), "a cut line is left out: {}", lines[0].text);
    }
}
