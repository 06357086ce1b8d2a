//! A change as a unified diff that programs can apply.

use super::compared::Compared;
use super::escaped::Nature;
use super::other::Other;
use super::shown::has_lines;
use text::human::human_size;

/// A diff of longer parts is left out, bytes.
const MOST: usize = 4 << 20;

/// A unified diff, or a sentence in brackets that says why it is missing; and the lines added and removed, unless no version
/// has lines.
pub(crate) fn unified(path: &str, before: Option<&[u8]>, after: Option<&[u8]>) -> (String, Option<(u64, u64)>) {
    let other = Other::of(before, after);
    let texts = other.as_ref().map_or((before, after), Other::sides);
    if texts.0 == texts.1 && before != after {
        return (other.as_ref().map(Other::note).unwrap_or_default(), Some((0, 0)));
    }
    let (before, after) = texts;
    let (old, new) = (before.unwrap_or_default(), after.unwrap_or_default());
    let Compared { above, patch } = Compared::new(old, new);
    let counts = Some(patch.counts()).filter(|_| has_lines(before, after));
    if Nature::of(old) != Nature::Text || Nature::of(new) != Nature::Text {
        return (format!("[not text, {}]\n", sizes(before, after)), counts);
    }
    if patch.hunks.is_empty() {
        return (String::new(), counts);
    }
    if patch.old.text().len().max(patch.new.text().len()) > MOST {
        return ("[too large to show as a diff]\n".to_owned(), counts);
    }
    let mut text = header(path, before.is_some(), after.is_some());
    for hunk in &patch.hunks {
        patch.write_hunk_below(above, hunk, &mut text);
    }
    (text, counts)
}

/// The names of both versions, as a unified diff begins with them.
pub(super) fn header(path: &str, is_old: bool, is_new: bool) -> String {
    let name = |there: bool, side: &str| if there { format!("{side}/{path}") } else { "/dev/null".to_owned() };
    format!("--- {}\n+++ {}\n", name(is_old, "a"), name(is_new, "b"))
}

/// The sizes of both versions: `12KB → 13KB`.
pub(crate) fn sizes(before: Option<&[u8]>, after: Option<&[u8]>) -> String {
    let size = |bytes: Option<&[u8]>| bytes.map(|bytes| human_size(bytes.len() as u64));
    match (size(before), size(after)) {
        (Some(old), Some(new)) => format!("{old} → {new}"),
        (Some(size), None) | (None, Some(size)) => size,
        (None, None) => String::new(),
    }
}
