//! The start of a long file's change, compared before the whole is read: what a screen shows while the rest is on its way.

use super::compare::compare;
use super::hunks::TextPatch;
use super::lines::Numbered;

/// So much of each version is read at first, bytes. Both are read further if they do not differ there.
pub(super) const FIRST: usize = 128 << 10;
/// Lines that are compared after the first difference, in bytes.
const WINDOW: usize = 96 << 10;

/// A part of a version, from its start.
pub struct Start {
    pub bytes: Vec<u8>,
    /// There is no more.
    pub is_whole: bool,
}

impl Start {
    pub fn of(mut bytes: Vec<u8>, most: usize) -> Start {
        let is_whole = bytes.len() <= most;
        bytes.truncate(most);
        Start { bytes, is_whole }
    }
}

/// Compares the starts of two texts, each with whether it is whole. `None` if they do not differ.
///
/// The last lines of a part may have their counterparts beyond its end, so changes count up to three quarters of it only.
/// The whole comparison may still find other changes, so nothing may be decided by these.
pub(super) fn compare_starts(old: (&str, bool), new: (&str, bool)) -> Option<TextPatch> {
    let first = differ_at(old.0.as_bytes(), new.0.as_bytes())?;
    let limited = |(text, is_whole): (&str, bool)| {
        let part = part(text, first);
        let lines = Numbered::new(part);
        let (all, above) = (u32::try_from(lines.len()).unwrap_or(u32::MAX), lines.line_at(first));
        let is_known = is_whole && part.len() == text.len();
        (lines, if is_known { u32::MAX } else { all.saturating_sub(above) / 4 * 3 + above })
    };
    let ((old, most_old), (new, most_new)) = (limited(old), limited(new));
    let mut changes = compare(&old, &new);
    changes.retain_mut(|(old, new)| {
        let is_known = old.start < most_old && new.start < most_new;
        (old.end, new.end) = (old.end.min(most_old), new.end.min(most_new));
        is_known
    });
    // A cut change may have left its context behind.
    let has_end =
        |(old, new): &(std::ops::Range<u32>, std::ops::Range<u32>)| old.end == most_old || new.end == most_new;
    let is_cut = changes.last().is_some_and(has_end);
    (!changes.is_empty()).then(|| TextPatch::of_start(old, new, changes, is_cut))
}

/// The first byte that differs, or the one after the end of the shorter text.
fn differ_at(old: &[u8], new: &[u8]) -> Option<usize> {
    const STEP: usize = 4 << 10;
    let most = old.len().min(new.len());
    let mut at = 0;
    while at + STEP <= most && old[at..at + STEP] == new[at..at + STEP] {
        at += STEP;
    }
    let more = old[at..].iter().zip(&new[at..]).position(|(a, b)| a != b);
    // Equal starts can differ by a character that is cut at the end.
    more.map(|more| at + more).or((old.len().abs_diff(new.len()) > 4).then_some(most))
}

/// The text up to the last line end in the window after this byte.
fn part(text: &str, first: usize) -> &str {
    let end = text.floor_char_boundary((first + WINDOW).min(text.len()));
    let end = text[..end].rfind('\n').map_or(end, |at| at + 1);
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diff::Tag;

    /// Broken builds: one that counts lines from the first difference; one that shows the end of the window as removed.
    #[test]
    fn the_start_of_a_long_change_is_the_start_of_the_whole() {
        let text = |word: &str| -> String {
            (0..60_000).map(|n| format!("{} {n}\n", if n > 30_000 && n % 5 == 0 { word } else { "same" })).collect()
        };
        let (old, new) = (text("one"), text("another"));
        let whole = TextPatch::new(&old, &new);
        let end = (old.find("one").expect("it is there")) + (200 << 10);
        let start = compare_starts((&old[..end], false), (&new[..end], false)).expect("they differ");
        let shown = |of: &TextPatch, count: usize| -> Vec<(Tag, Option<u32>, Option<u32>, String)> {
            of.lines.iter().take(count).map(|it| (it.tag, it.old, it.new, of.text(*it).to_owned())).collect()
        };
        assert!(start.lines.len() > 500, "{}", start.lines.len());
        let known = start.lines.len() - 10;
        assert_eq!(shown(&start, known), shown(&whole, known));
        assert!(compare_starts(("same\n", true), ("same\n", true)).is_none());
    }

    #[test]
    fn lines_that_are_all_new_are_shown_up_to_the_end_of_the_window() {
        let new: String = (0..40_000).map(|n| format!("new line {n}\n")).collect();
        let start = compare_starts(("first\nlast\n", true), (&new, false)).expect("they differ");
        assert!(start.hunks.len() == 1 && start.counts().0 > 1_000);
        let start = compare_starts(("", true), (&new, false)).expect("they differ");
        assert!(start.counts().0 > 1_000 && start.counts().1 == 0);
    }
}
