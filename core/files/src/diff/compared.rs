//! Two versions of a file compared by what differs between them, however long the rest is.

use std::borrow::Cow;
use std::ops::Range;

use super::compare::Change;
use super::escaped::{Nature, escaped};
use super::hunks::{CONTEXT, TextPatch};
use super::lines::Numbered;

/// Parts that are longer together are taken as different from their first line to their last, bytes.
const MAX_COMPARED: usize = 64 << 20;

/// The lines that differ, with some lines around them.
pub(super) struct Compared {
    /// Lines above those of `patch`.
    pub(super) above: u32,
    pub(super) patch: TextPatch,
}

impl Compared {
    /// Compares two versions. Where one of them is not text, both are compared as escapes.
    pub(super) fn new(old: &[u8], new: &[u8]) -> Compared {
        let (of_old, of_new) = differing(old, new);
        let above = memchr::memchr_iter(b'\n', &old[..of_old.start]).count();
        let is_text = Nature::of(old) == Nature::Text && Nature::of(new) == Nature::Text;
        let (old, new) = (readable(&old[of_old], is_text), readable(&new[of_new], is_text));
        let patch = if old.len() + new.len() <= MAX_COMPARED {
            TextPatch::new(&old, &new)
        } else {
            let (old, new) = (Numbered::new(&old), Numbered::new(&new));
            let all = |of: &Numbered| 0..u32::try_from(of.len()).unwrap_or(u32::MAX);
            let change: Change = (all(&old), all(&new));
            TextPatch::of_changes(old, new, vec![change])
        };
        Compared { above: u32::try_from(above).unwrap_or(u32::MAX), patch }
    }
}

fn readable(bytes: &[u8], is_text: bool) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) if is_text => Cow::Borrowed(text),
        Ok(_) | Err(_) => Cow::Owned(escaped(bytes)),
    }
}

/// The whole lines of both versions that hold everything that differs, with lines of context around them.
fn differing(old: &[u8], new: &[u8]) -> (Range<usize>, Range<usize>) {
    let above = common_start(old, new);
    let start = memchr::memrchr(b'\n', &old[..above]).map_or(0, |at| at + 1);
    let (left, right) = (&old[start..], &new[start..]);
    let below = common_end(left, right);
    // A line of which only the end is common has changed.
    let below = memchr::memchr(b'\n', &left[left.len() - below..]).map_or(0, |at| below - at - 1);
    let up = (0..CONTEXT).fold(start, |at, _| match at {
        0 => 0,
        at => memchr::memrchr(b'\n', &old[..at - 1]).map_or(0, |at| at + 1),
    });
    let down = |bytes: &[u8]| {
        (0..CONTEXT).fold(bytes.len() - below, |at, _| {
            memchr::memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |more| at + more + 1)
        })
    };
    (up..down(old), up..down(new))
}

fn common_start(a: &[u8], b: &[u8]) -> usize {
    const STEP: usize = 4 << 10;
    let blocks = a.chunks_exact(STEP).zip(b.chunks_exact(STEP)).take_while(|(a, b)| a == b).count() * STEP;
    blocks + a[blocks..].iter().zip(&b[blocks..]).take_while(|(a, b)| a == b).count()
}

fn common_end(a: &[u8], b: &[u8]) -> usize {
    const STEP: usize = 4 << 10;
    let blocks = a.rchunks_exact(STEP).zip(b.rchunks_exact(STEP)).take_while(|(a, b)| a == b).count() * STEP;
    let (a, b) = (&a[..a.len() - blocks], &b[..b.len() - blocks]);
    blocks + a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text() -> impl Strategy<Value = String> {
        let lines = prop::collection::vec(prop_oneof![Just("a\n"), Just("b\n"), Just("\n"), Just("c d\r\n")], 0..30);
        (lines, "[ab]{0,2}").prop_map(|(lines, last)| lines.concat() + &last)
    }

    proptest! {
        /// Broken build: one that trims a line of which only the end is common, or counts the lines above from 1.
        #[test]
        fn the_part_that_differs_has_the_hunks_of_the_whole(old in text(), new in text()) {
            let whole = TextPatch::new(&old, &new);
            let part = Compared::new(old.as_bytes(), new.as_bytes());
            let hunks = |of: &TextPatch, above: u32| -> Vec<String> {
                of.hunks.iter().map(|hunk| {
                    let mut text = String::new();
                    of.write_hunk_below(above, hunk, &mut text);
                    text
                }).collect()
            };
            prop_assert_eq!(hunks(&part.patch, part.above), hunks(&whole, 0));
        }
    }
}
