//! How many columns a text takes on the screen.

use unicode_width::UnicodeWidthStr as _;

/// Columns of a tab, wherever it stands.
pub(crate) const TAB: usize = 4;

/// Columns that a text takes.
pub(crate) fn width(text: &str) -> usize {
    // Most texts that are measured are those of single cells.
    if let [b' '..=b'~'] = text.as_bytes() {
        return 1;
    }
    if text.is_ascii() {
        // Nearly all text is ASCII, and this function runs for every row of every frame.
        return text.len() + text.bytes().filter(|b| *b == b'\t').count() * (TAB - 1);
    }
    text.split('\t').map(|part| part.width()).sum::<usize>() + text.matches('\t').count() * TAB
}
