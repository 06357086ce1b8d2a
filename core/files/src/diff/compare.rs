//! Two texts compared line by line: the ranges that changed.

use std::ops::Range;
use std::time::{Duration, Instant};

use super::lines::Numbered;
use text::edits::{DiffOp, Numbers, edits};

/// After this time the rest of two texts is taken as different.
const PATIENCE: Duration = Duration::from_secs(3);

/// Lines of the old text, and the lines of the new text in their place.
pub(super) type Change = (Range<u32>, Range<u32>);

/// The changed ranges of lines, old and new, in order.
pub(super) fn compare(old: &Numbered, new: &Numbered) -> Vec<Change> {
    let (count_old, count_new) = (index(old.len()), index(new.len()));
    // Most changes leave most of a long text alone, and equal bytes are found faster than equal lines.
    let above = common_lines(old, new);
    let mut below = 0;
    while below < (count_old - above).min(count_new - above)
        && old.line(count_old - below - 1) == new.line(count_new - below - 1)
    {
        below += 1;
    }
    // Lines become numbers, so that the comparison reads each text once.
    let mut numbers = Numbers::default();
    let left: Vec<u32> = (above..count_old - below).map(|at| numbers.number(old.line(at))).collect();
    let right: Vec<u32> = (above..count_new - below).map(|at| numbers.number(new.line(at))).collect();
    let mut changed: Vec<Change> = Vec::new();
    let range = |from: usize, len: usize| above + index(from)..above + index(from + len);
    for op in edits(&left, &right, Some(Instant::now() + PATIENCE)) {
        let (old, new) = match op {
            DiffOp::Equal { .. } => continue,
            DiffOp::Delete { old_index, old_len, new_index } => (range(old_index, old_len), range(new_index, 0)),
            DiffOp::Insert { old_index, new_index, new_len } => (range(old_index, 0), range(new_index, new_len)),
            DiffOp::Replace { old_index, old_len, new_index, new_len } => {
                (range(old_index, old_len), range(new_index, new_len))
            }
        };
        match changed.last_mut() {
            // A deletion and an insertion in one place replace each other.
            Some((last_old, last_new)) if last_old.end == old.start && last_new.end == new.start => {
                (last_old.end, last_new.end) = (old.end, new.end);
            }
            _ => changed.push((old, new)),
        }
    }
    changed
}

fn index(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

/// The number of lines at the start that are the same.
fn common_lines(old: &Numbered, new: &Numbered) -> u32 {
    let (a, b) = (old.text().as_bytes(), new.text().as_bytes());
    let most = a.len().min(b.len());
    const STEP: usize = 4 << 10;
    let mut at = 0;
    while at + STEP <= most && a[at..at + STEP] == b[at..at + STEP] {
        at += STEP;
    }
    let mut line = old.line_at(at);
    while line < index(old.len()).min(index(new.len())) && old.line(line) == new.line(line) {
        line += 1;
    }
    line
}
