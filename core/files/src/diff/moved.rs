//! Blocks of lines that were removed in one place and added in another.

use std::collections::HashMap;
use std::ops::Range;

use super::lines::{Line, Numbered, Tag};

/// The fewest lines that count as moved.
pub(super) const LEAST: u32 = 3;
/// The fewest letters and digits of a block: three closing braces are everywhere.
const LEAST_LETTERS: usize = 20;
/// Of lines that stand in many places, this many are tried.
const MOST_PLACES: usize = 8;

/// Where a moved line is in the other version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Move {
    /// The line there, from 0.
    pub other: u32,
    /// The block begins with this line.
    pub is_first: bool,
}

/// A block of lines in the old version, and the same lines in the new one.
#[derive(Debug, Clone, Copy)]
struct Block {
    old: u32,
    new: u32,
    len: u32,
}

/// The moved blocks of a file.
#[derive(Debug, Clone, Default)]
pub(super) struct Moves {
    /// By their place in the old version.
    by_old: Vec<Block>,
    /// By their place in the new version.
    by_new: Vec<Block>,
}

impl Moves {
    pub(super) fn to(&self, old: u32) -> Option<Move> {
        find(&self.by_old, old, |block| block.old, |block| block.new)
    }

    pub(super) fn from(&self, new: u32) -> Option<Move> {
        find(&self.by_new, new, |block| block.new, |block| block.old)
    }

    /// Finds them. Blanks at the ends of lines do not count, since a block often moves into or out of an indented one.
    pub(super) fn of(old: &Numbered, new: &Numbered, lines: &[Line]) -> Moves {
        let removed = runs(lines, Tag::Removed, |_| true);
        let added = runs(lines, Tag::Added, |_| true);
        let mut is_taken = vec![false; new.len()];
        let (old, new) = (|at: u32| old.line(at).trim(), |at: u32| new.line(at).trim());
        let mut places: HashMap<[&str; LEAST as usize], Vec<u32>> = HashMap::new();
        for run in added.iter().filter(|run| run.end - run.start >= LEAST) {
            for at in run.start..=run.end - LEAST {
                let there = places.entry([new(at), new(at + 1), new(at + 2)]).or_default();
                if there.len() < MOST_PLACES {
                    there.push(at);
                }
            }
        }
        let end_of = |at: u32| {
            let run = added.partition_point(|run| run.end <= at);
            added.get(run).map_or(at, |run| run.end)
        };
        if places.is_empty() {
            return Moves::default();
        }
        let replaced: HashMap<u32, u32> = lines
            .iter()
            .filter(|line| line.tag == Tag::Removed)
            .filter_map(|line| Some((line.old?, line.new?)))
            .collect();
        let mut blocks: Vec<Block> = Vec::new();
        for run in removed.iter().filter(|run| run.end - run.start >= LEAST) {
            let mut at = run.start;
            while at + LEAST <= run.end {
                let there = places.get(&[old(at), old(at + 1), old(at + 2)]).map_or(&[][..], Vec::as_slice);
                let block = there.iter().map(|to| {
                    let most = (run.end - at).min(end_of(*to) - to);
                    let is_same = |n: &u32| old(at + n) == new(to + n) && !is_taken[(to + n) as usize];
                    let len = (0..most).take_while(is_same).count();
                    Block { old: at, new: *to, len: u32::try_from(len).unwrap_or(0) }
                });
                // Lines that are replaced by themselves only have another indentation.
                let stays = |block: &Block| replaced.get(&block.old) == Some(&block.new);
                match block.max_by_key(|block| block.len) {
                    Some(block)
                        if block.len >= LEAST
                            && is_telling(block.old..block.old + block.len, old)
                            && !stays(&block) =>
                    {
                        at += block.len;
                        (block.new..block.new + block.len).for_each(|new| is_taken[new as usize] = true);
                        blocks.push(block);
                    }
                    _ => at += 1,
                }
            }
        }
        let mut by_new = blocks.clone();
        by_new.sort_by_key(|block| block.new);
        Moves { by_old: blocks, by_new }
    }
}

fn find(blocks: &[Block], line: u32, here: fn(&Block) -> u32, there: fn(&Block) -> u32) -> Option<Move> {
    let block = blocks.get(blocks.partition_point(|block| here(block) <= line).checked_sub(1)?)?;
    let at = line - here(block);
    (at < block.len).then(|| Move { other: there(block) + at, is_first: at == 0 })
}

/// Whether these lines have enough letters to be recognised.
pub(super) fn is_telling<'a>(lines: Range<u32>, text: impl Fn(u32) -> &'a str) -> bool {
    let letters = lines.flat_map(|at| text(at).chars()).filter(|c| c.is_alphanumeric());
    letters.take(LEAST_LETTERS).count() == LEAST_LETTERS
}

/// The runs of wanted lines with this tag that stand below each other.
pub(super) fn runs(lines: &[Line], tag: Tag, is_wanted: impl Fn(&Line) -> bool) -> Vec<Range<u32>> {
    let mut runs: Vec<Range<u32>> = Vec::new();
    for line in lines.iter().filter(|line| line.tag == tag && is_wanted(line)) {
        let Some(at) = (if tag == Tag::Removed { line.old } else { line.new }) else { continue };
        match runs.last_mut() {
            Some(run) if run.end == at => run.end += 1,
            _ => runs.push(at..at + 1),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::super::TextPatch;
    use super::*;

    fn moved(old: &str, new: &str) -> Vec<(Tag, String, Option<u32>)> {
        let mut patch = TextPatch::new(old, new);
        patch.find_moves();
        let changed = patch.lines.iter().filter(|line| line.tag != Tag::Same);
        let row = |line: &super::super::Line| {
            (line.tag, patch.text(*line).trim().to_owned(), patch.moved(*line).map(|it| it.other + 1))
        };
        changed.map(row).collect()
    }

    /// Broken builds: one that takes two lines for a moved block; one that marks lines which only got another
    /// indentation.
    #[test]
    fn three_lines_that_stand_elsewhere_now_are_moved() {
        let block = "let first_name = 1;\nlet second_name = 2;\nlet third_name = 3;\n";
        let rest: String = (0..20).map(|n| format!("rest {n}\n")).collect();
        let all = moved(&format!("{block}{rest}"), &format!("{rest}{}", block.replace("let", "    let")));
        let numbers: Vec<Option<u32>> = all.iter().map(|it| it.2).collect();
        assert_eq!(numbers, [Some(21), Some(22), Some(23), Some(1), Some(2), Some(3)], "{all:?}");
        let two = "let first_name_of_all = 1;\nlet second_name_of_all = 2;\n";
        assert!(moved(&format!("{two}{rest}"), &format!("{rest}{two}")).iter().all(|it| it.2.is_none()));
        let indented = block.replace("let", "    let");
        assert!(moved(&format!("{block}{rest}"), &format!("{indented}{rest}")).iter().all(|it| it.2.is_none()));
    }
}
