//! The person's own editor, for a draft that is long.

use std::io::{Read as _, Write as _};
use std::process::Command;

/// Opens the draft in it and waits; what was written comes back, or why it did not.
///
/// The draft lies in a file of its own that only the person can read, and is gone afterwards.
pub(crate) fn edit(draft: &str, editor: &str) -> Result<String, String> {
    let mut file = tempfile::Builder::new()
        .prefix("pixir-")
        .suffix(".md")
        .tempfile()
        .map_err(|e| format!("the draft could not be written for the editor: {e}"))?;
    file.write_all(draft.as_bytes()).map_err(|e| format!("the draft could not be written for the editor: {e}"))?;
    let mut words = editor.split_whitespace();
    let name = words.next().unwrap_or("vi");
    let status = Command::new(name)
        .args(words)
        .arg(file.path())
        .status()
        .map_err(|e| format!("{name} could not be started: {e}; set VISUAL or EDITOR"))?;
    if !status.success() {
        return Err(format!("{name} ended with {status}; the draft is as it was"));
    }
    // Many editors write a new file in the place of the old one.
    let mut text = String::new();
    std::fs::File::open(file.path())
        .and_then(|mut file| file.read_to_string(&mut text))
        .map_err(|e| format!("what {name} has written could not be read: {e}"))?;
    Ok(text.strip_suffix('\n').unwrap_or(&text).to_owned())
}
