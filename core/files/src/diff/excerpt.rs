//! Long lines of a diff: an excerpt around each change, and the length of what is left out.

use std::ops::Range;
use std::time::{Duration, Instant};

use super::words::tokens;
use text::edits::{DiffOp, Numbers, edits};

/// Lines up to this length are shown as a whole, bytes.
pub(super) const LONG: usize = 1_000;
/// So much of a line is shown on each side of a change, bytes.
const AROUND: usize = 40;
/// A gap with fewer bytes than this between two excerpts is shown too.
const LEAST_GAP: usize = 40;
/// After this time the rest of two lines is taken as different.
const PATIENCE: Duration = Duration::from_secs(1);
/// So much of each end of two lines decides whether one replaces the other, bytes.
const COMPARED: usize = 4 << 10;

/// How many bytes two lines have in common at their ends, as far as that is compared.
pub(super) fn likeness(old: &str, new: &str) -> usize {
    let same = |(a, b): &(&u8, &u8)| a == b;
    let most = old.len().min(new.len());
    let above = old.bytes().zip(new.bytes()).take(COMPARED).take_while(|(a, b)| a == b).count();
    let most = (most - above).min(COMPARED);
    above + old.as_bytes().iter().rev().zip(new.as_bytes().iter().rev()).take(most).take_while(same).count()
}

/// Two lines without what they have in common far from a change.
pub(super) fn excerpts(old: &str, new: &str) -> (String, String) {
    let regions = changed(old, new);
    let (mut short_old, mut short_new) = (String::new(), String::new());
    let mut at = 0;
    for (number, (of_old, of_new)) in regions.iter().enumerate() {
        let gap = gap(&old[at..of_old.start], number > 0, true);
        short_old.extend([&*gap, &old[of_old.clone()]]);
        short_new.extend([&*gap, &new[of_new.clone()]]);
        at = of_old.end;
    }
    let end = gap(&old[at..], true, false);
    short_old.push_str(&end);
    short_new.push_str(&end);
    (short_old, short_new)
}

/// The start of a line that did not change.
pub(super) fn start(line: &str) -> String {
    gap(line, true, false)
}

/// Unchanged text beside a change: the parts at its ends that touch one, and the length of the rest.
fn gap(text: &str, is_behind: bool, is_before: bool) -> String {
    let from = if is_behind { text.floor_char_boundary(AROUND) } else { 0 };
    let to = if is_before { text.ceil_char_boundary(text.len().saturating_sub(AROUND)) } else { text.len() };
    match text.get(from..to) {
        Some(rest) if rest.len() >= LEAST_GAP => {
            format!("{}⟨{} unchanged characters⟩{}", &text[..from], rest.chars().count(), &text[to..])
        }
        Some(_) | None => text.to_owned(),
    }
}

/// The parts that differ, in bytes of each line, in order. Parts close to each other are one.
fn changed(old: &str, new: &str) -> Vec<(Range<usize>, Range<usize>)> {
    let above = old.bytes().zip(new.bytes()).take_while(|(a, b)| a == b).count();
    let above = old.floor_char_boundary(above);
    let most = old.len().min(new.len()) - above;
    let below = old.bytes().rev().zip(new.bytes().rev()).take(most).take_while(|(a, b)| a == b).count();
    // Both lines have the same bytes there, so a boundary of one is a boundary of the other.
    let below = old.len() - old.ceil_char_boundary(old.len() - below);
    let (a, b) = (&old[above..old.len() - below], &new[above..new.len() - below]);
    let (of_a, of_b) = (tokens(a), tokens(b));
    let mut numbers = Numbers::default();
    let left: Vec<u32> = of_a.iter().map(|at| numbers.number(&a[at.clone()])).collect();
    let right: Vec<u32> = of_b.iter().map(|at| numbers.number(&b[at.clone()])).collect();
    let span = |tokens: &[Range<usize>], text: &str, at: usize, len: usize| {
        let start = tokens.get(at).map_or(text.len(), |it| it.start);
        let end = if len == 0 { start } else { tokens[at + len - 1].end };
        above + start..above + end
    };
    let mut regions: Vec<(Range<usize>, Range<usize>)> = Vec::new();
    for op in edits(&left, &right, Some(Instant::now() + PATIENCE)) {
        let (of_old, of_new) = match op {
            DiffOp::Equal { .. } => continue,
            DiffOp::Delete { old_index, old_len, new_index } => ((old_index, old_len), (new_index, 0)),
            DiffOp::Insert { old_index, new_index, new_len } => ((old_index, 0), (new_index, new_len)),
            DiffOp::Replace { old_index, old_len, new_index, new_len } => ((old_index, old_len), (new_index, new_len)),
        };
        let region = (span(&of_a, a, of_old.0, of_old.1), span(&of_b, b, of_new.0, of_new.1));
        match regions.last_mut() {
            Some(last) if region.0.start - last.0.end < 2 * AROUND + LEAST_GAP => {
                (last.0.end, last.1.end) = (region.0.end, region.1.end);
            }
            _ => regions.push(region),
        }
    }
    regions
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_excerpt_is_around_each_change() {
        let line = |a: &str, b: &str| format!("{}{a}{}{b}{}", "é, ".repeat(300), "x=1;".repeat(200), "z ".repeat(90));
        let (old, new) = excerpts(&line("one", "two"), &line("eins", "two"));
        let side = "é, ".repeat(10);
        let rest = "x=1;".repeat(10);
        assert_eq!(old, format!("⟨870 unchanged characters⟩{side}one{rest}⟨943 unchanged characters⟩"));
        assert_eq!(new, old.replace("one", "eins"));
        let (old, new) = excerpts(&line("one", "two"), &line("eins", "zwei"));
        assert_eq!((old.matches('⟨').count(), new.matches('⟨').count()), (3, 3), "{new}");
        let (old, new) = excerpts("same", "same");
        assert_eq!((old.as_str(), new.as_str()), ("same", "same"));
    }

    proptest! {
        /// What both excerpts leave out is the same text, so lines that differ have excerpts that differ.
        #[test]
        fn no_change_is_left_out(
            parts in prop::collection::vec("[a-c]{0,3}|[ü漢]{1,2}|( x,y;){60}", 1..8),
            other in "[a-c ü]{0,4}",
            at in any::<prop::sample::Index>(),
        ) {
            let old = parts.concat();
            let mut changed = parts.clone();
            *at.get_mut(&mut changed) = other;
            let new = changed.concat();
            let (short_old, short_new) = excerpts(&old, &new);
            prop_assert_eq!(old == new, short_old == short_new);
            prop_assert!(short_old.len() <= old.len() + 40 * parts.len());
        }
    }
}
