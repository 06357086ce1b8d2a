//! Outputs that are too long for a result and are saved in the Session's folder.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// The folder of saved outputs as older results named it. It never was a real folder; tools still accept the name.
pub const FORMER: &str = ".pixir/out";
/// The most bytes that are saved of one output.
pub const MAX_SPILL: u64 = 64 << 20;

/// Creates the folder of saved outputs, for the user alone, and returns its path without symlinks: the sandbox shows a
/// program only that.
pub fn folder(path: &Path) -> io::Result<PathBuf> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    path.canonicalize()
}

/// Saves bytes as a file of this folder, for the user alone, and returns its path.
pub fn save(at: &Path, name: &str, bytes: &[u8]) -> io::Result<PathBuf> {
    let path = folder(at)?.join(name);
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
    file.write_all(bytes)?;
    Ok(path)
}

/// The path without symlinks, also where its last folders do not exist yet.
pub fn real(path: &Path) -> PathBuf {
    let known = path.ancestors().find_map(|above| Some((above, above.canonicalize().ok()?)));
    let real = known.and_then(|(above, real)| Some(real.join(path.strip_prefix(above).ok()?)));
    real.unwrap_or_else(|| path.to_owned())
}

/// Whether a file of this name can be a saved output: `cmd-3.txt`, `cmd-3.stderr.txt`, `job-1.txt`, `cmd-4.bin`, `agent-worker-1.md`.
pub fn is_output(name: &str) -> bool {
    if let Some(agent) = name.strip_prefix("agent-").and_then(|rest| rest.strip_suffix(".md")) {
        return agent.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    }
    let number = name.strip_prefix("cmd-").or_else(|| name.strip_prefix("job-"));
    number.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit())) && !name.contains('/')
}

/// Returns the names of saved outputs that occur in a text.
pub fn outputs_named(text: &[u8]) -> impl Iterator<Item = &str> {
    const MARK: &[u8] = b"/out/";
    memchr::memmem::find_iter(text, MARK).filter_map(|at| {
        let rest = &text[at + MARK.len()..];
        let len = rest.iter().take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_')).count();
        let name = std::str::from_utf8(&rest[..len]).ok()?.trim_end_matches('.');
        Some(name).filter(|name| !name.is_empty())
    })
}
