//! The prompt history over all Sessions.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use super::write_whole;
use crate::regular;

const FILE: &str = "prompts.jsonl";
/// The size at which the file is cut to its newer half, bytes.
const MOST: u64 = 4 << 20;
/// The longest text that is stored, bytes.
const LONGEST: usize = 64 << 10;

/// Returns the texts, oldest first. Lines that are not JSON strings are skipped.
pub(super) fn read(home: &Path) -> Vec<String> {
    let text = regular::read_to_string(&home.join(FILE)).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// Adds texts, each in one write, so that several processes can add texts at the same time.
pub(super) fn add(home: &Path, texts: &[String]) -> io::Result<()> {
    let path = home.join(FILE);
    if fs::metadata(&path).is_ok_and(|it| it.len() > MOST) {
        let kept = read(home);
        let lines: Vec<String> = kept[kept.len() / 2..].iter().map(|text| line(text)).collect();
        write_whole(&path, lines.concat().as_bytes())?;
    }
    let lines: String = texts.iter().filter(|text| text.len() <= LONGEST).map(|text| line(text)).collect();
    if lines.is_empty() {
        return Ok(());
    }
    fs::create_dir_all(home)?;
    let mut file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
    file.write_all(lines.as_bytes())
}

fn line(text: &str) -> String {
    format!("{}\n", serde_json::Value::from(text))
}
