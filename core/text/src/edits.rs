//! Two sequences compared: the edits that make one of the other, and the unified diff of two texts.

use std::collections::HashMap;
use std::fmt::{self, Display, Formatter};
use std::hash::{BuildHasherDefault, Hasher};
use std::time::Instant;

pub use similar::DiffOp;
use similar::{Algorithm, capture_diff_slices_deadline, group_diff_ops};

/// The edits that make `new` of `old`, in order. After the deadline the rest is taken as different.
// It is not generic: the comparison is 20 KB of code, and every type of item would bring its own.
pub fn edits(old: &[u32], new: &[u32], deadline: Option<Instant>) -> Vec<DiffOp> {
    capture_diff_slices_deadline(Algorithm::Myers, old, new, deadline)
}

/// The edits between two sequences of lines or words.
pub fn edits_of_texts(old: &[&str], new: &[&str]) -> Vec<DiffOp> {
    let mut numbers = Numbers::default();
    let old: Vec<u32> = old.iter().map(|text| numbers.number(text)).collect();
    let new: Vec<u32> = new.iter().map(|text| numbers.number(text)).collect();
    edits(&old, &new, None)
}

/// Gives each text a number, the same for equal texts.
#[derive(Default)]
pub struct Numbers<'a> {
    known: HashMap<&'a str, u32, BuildHasherDefault<TextHasher>>,
}

impl<'a> Numbers<'a> {
    /// The number of a text.
    pub fn number(&mut self, text: &'a str) -> u32 {
        let next = u32::try_from(self.known.len()).unwrap_or(u32::MAX);
        *self.known.entry(text).or_insert(next)
    }
}

/// A hash of eight bytes at a time. Two texts with the same hash are still told apart, by their bytes.
#[derive(Default)]
struct TextHasher(u64);

impl TextHasher {
    fn add(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

impl Hasher for TextHasher {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.add(u64::from_le_bytes(*word));
        }
        if !rest.is_empty() {
            let mut word = [0; 8];
            word[..rest.len()].copy_from_slice(rest);
            self.add(u64::from_le_bytes(word) ^ rest.len() as u64);
        }
    }

    fn finish(&self) -> u64 {
        // The table uses the highest and the lowest bits.
        self.0 ^ (self.0 >> 29)
    }
}

/// The unified diff of two texts. It formats as nothing if they are equal.
pub struct Unified<'a> {
    old: Vec<&'a str>,
    new: Vec<&'a str>,
    names: (&'a str, &'a str),
    hunks: Vec<Vec<DiffOp>>,
}

impl<'a> Unified<'a> {
    /// Compares two texts with these names; each hunk has so many lines of context on both sides.
    pub fn new(names: (&'a str, &'a str), old: &'a str, new: &'a str, context: usize) -> Unified<'a> {
        let (old, new) = (lines(old), lines(new));
        let hunks = group_diff_ops(edits_of_texts(&old, &new), context);
        Unified { old, new, names, hunks }
    }
}

impl Display for Unified<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if !self.hunks.is_empty() {
            writeln!(f, "--- {}\n+++ {}", self.names.0, self.names.1)?;
        }
        for hunk in &self.hunks {
            let (Some(first), Some(last)) = (hunk.first(), hunk.last()) else { continue };
            let range = |first: usize, end: usize| match end - first {
                1 => format!("{}", first + 1),
                // An empty range is named by the line before it.
                0 => format!("{first},0"),
                len => format!("{},{len}", first + 1),
            };
            let old = range(first.old_range().start, last.old_range().end);
            let new = range(first.new_range().start, last.new_range().end);
            writeln!(f, "@@ -{old} +{new} @@")?;
            for edit in hunk {
                let (removed, added) = (&self.old[edit.old_range()], &self.new[edit.new_range()]);
                match edit {
                    DiffOp::Equal { .. } => write_lines(f, ' ', removed)?,
                    DiffOp::Delete { .. } | DiffOp::Insert { .. } | DiffOp::Replace { .. } => {
                        write_lines(f, '-', removed)?;
                        write_lines(f, '+', added)?;
                    }
                }
            }
        }
        Ok(())
    }
}

fn write_lines(f: &mut Formatter<'_>, mark: char, lines: &[&str]) -> fmt::Result {
    for line in lines {
        write!(f, "{mark}{line}")?;
        if !line.ends_with(['\n', '\r']) {
            f.write_str("\n\\ No newline at end of file\n")?;
        }
    }
    Ok(())
}

/// The lines of a text with their ends: `\n`, `\r\n` or `\r`.
fn lines(text: &str) -> Vec<&str> {
    let (bytes, mut lines, mut from) = (text.as_bytes(), Vec::new(), 0);
    for at in memchr::memchr2_iter(b'\n', b'\r', bytes) {
        if bytes[at] == b'\r' && bytes.get(at + 1) == Some(&b'\n') {
            continue;
        }
        lines.push(&text[from..=at]);
        from = at + 1;
    }
    if from < text.len() {
        lines.push(&text[from..]);
    }
    lines
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use similar::TextDiff;

    use super::*;

    fn text() -> impl Strategy<Value = String> {
        prop_oneof!["([ab]{0,2}(\n|\r\n|\r)){0,12}[ab]{0,2}", "([a-h\u{e9}]{1,9}\n){0,200}", "([ab ]{0,1}\n){90,140}x?",]
    }

    proptest! {
        /// Broken build: one that counts an empty range from its own line, or splits at `\n` alone.
        #[test]
        fn the_unified_diff_is_that_of_similar(old in text(), new in text(), edits in prop::collection::vec((any::<prop::sample::Index>(), 0..3_u8), 0..5), context in 0..5_usize) {
            // Texts that share much, and texts that share little.
            let near = edits.iter().fold(old.clone(), |text, (at, kind)| {
                let mut lines = lines(&text);
                if lines.is_empty() {
                    return text;
                }
                let at = at.index(lines.len());
                match kind {
                    0 => drop(lines.remove(at)),
                    1 => lines[at] = "changed\n",
                    _ => lines.insert(at, "another\n"),
                }
                lines.concat()
            });
            for new in [&new, &near] {
                let theirs = TextDiff::from_lines(&old, new).unified_diff().context_radius(context).header("a", "b").to_string();
                prop_assert_eq!(Unified::new(("a", "b"), &old, new, context).to_string(), theirs);
            }
        }

        /// Broken build: one that numbers a text by its hash.
        #[test]
        fn the_edits_of_texts_are_those_of_their_numbers(old in prop::collection::vec("[a-c]{0,2}|[a-c]{8,9}", 0..40), new in prop::collection::vec("[a-c]{0,2}|[a-c]{8,9}", 0..40)) {
            let (left, right): (Vec<&str>, Vec<&str>) = (old.iter().map(String::as_str).collect(), new.iter().map(String::as_str).collect());
            prop_assert_eq!(edits_of_texts(&left, &right), similar::capture_diff_slices(Algorithm::Myers, &old, &new));
        }
    }
}
