//! Outputs that are too long for a result and are saved in the Session's folder.

use std::path::Path;

/// The folder of saved outputs, as tools accept it in paths. Tools can read it but not write to it.
pub(crate) const OUTPUTS: &str = ".pixir/out";
/// The most bytes that are saved of one output.
pub(crate) const MAX_SPILL: u64 = 64 << 20;

/// Returns the path of a saved output, as tools accept it.
pub(crate) fn shown_path(path: &Path) -> String {
    format!("{OUTPUTS}/{}", path.file_name().unwrap_or_default().to_string_lossy())
}

/// Returns the names of saved outputs that occur in a text.
pub(crate) fn outputs_named(text: &[u8]) -> impl Iterator<Item = &str> {
    const MARK: &[u8] = b"/out/";
    memchr::memmem::find_iter(text, MARK).filter_map(|at| {
        let rest = &text[at + MARK.len()..];
        let len = rest.iter().take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_')).count();
        let name = std::str::from_utf8(&rest[..len]).ok()?.trim_end_matches('.');
        Some(name).filter(|name| !name.is_empty())
    })
}
