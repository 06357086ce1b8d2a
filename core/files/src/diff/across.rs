//! Blocks of lines that were removed from one file and added to another.

use std::collections::HashMap;
use std::sync::Arc;

use super::hunks::TextPatch;
use super::lines::{Line, Tag};
use super::moved::{self, LEAST};

/// The most changed lines that are compared with each other, over all files.
const MOST_LINES: usize = 200_000;
/// Of lines that stand in many places, this many are tried.
const MOST_PLACES: usize = 8;

/// Where a line that moved is in another file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Elsewhere {
    /// That file.
    pub path: Arc<str>,
    /// The line there, from 0: in the old version for an added line, in the new one for a removed line.
    pub line: u32,
    /// The block begins with this line.
    pub is_first: bool,
}

/// The lines that moved between files, by file.
#[derive(Debug, Clone, Default)]
pub struct Across {
    files: HashMap<Arc<str>, FileMoves>,
}

/// Blocks of one file, by their place in it.
#[derive(Debug, Clone, Default)]
struct FileMoves {
    removed: Vec<Part>,
    added: Vec<Part>,
}

/// A block, as one of its two files sees it.
#[derive(Debug, Clone)]
struct Part {
    here: u32,
    len: u32,
    there: u32,
    path: Arc<str>,
}

/// A line that was added: its file, and its number there.
type Place = (usize, u32);

impl Across {
    /// Finds them among the changes of all files. Lines that moved within their file are left to it.
    pub fn of(files: &[(Arc<str>, Arc<TextPatch>)]) -> Across {
        let changed = |patch: &TextPatch| patch.lines.iter().filter(|line| line.tag != Tag::Same).count();
        if files.iter().map(|(_, patch)| changed(patch)).sum::<usize>() > MOST_LINES {
            return Across::default();
        }
        let free = |patch: &TextPatch, tag: Tag| moved::runs(&patch.lines, tag, |line| patch.moved(*line).is_none());
        let added: Vec<_> = files.iter().map(|(_, patch)| free(patch, Tag::Added)).collect();
        let new = |(file, at): Place| files[file].1.new.line(at).trim();
        let mut places: HashMap<[&str; LEAST as usize], Vec<Place>> = HashMap::new();
        for (file, runs) in added.iter().enumerate() {
            for run in runs.iter().filter(|run| run.end - run.start >= LEAST) {
                for at in run.start..=run.end - LEAST {
                    let key = [new((file, at)), new((file, at + 1)), new((file, at + 2))];
                    let there = places.entry(key).or_default();
                    if there.len() < MOST_PLACES {
                        there.push((file, at));
                    }
                }
            }
        }
        let end_of = |(file, at): Place| {
            let run = added[file].partition_point(|run| run.end <= at);
            added[file].get(run).map_or(at, |run| run.end)
        };
        let mut is_taken: Vec<Vec<bool>> = files.iter().map(|(_, patch)| vec![false; patch.new.len()]).collect();
        let mut it = Across::default();
        for (file, (path, patch)) in files.iter().enumerate() {
            let old = |at: u32| patch.old.line(at).trim();
            for run in free(patch, Tag::Removed).iter().filter(|run| run.end - run.start >= LEAST) {
                let mut at = run.start;
                while at + LEAST <= run.end {
                    let there = places.get(&[old(at), old(at + 1), old(at + 2)]).map_or(&[][..], Vec::as_slice);
                    let blocks = there.iter().filter(|(other, _)| *other != file).map(|(other, to)| {
                        let most = (run.end - at).min(end_of((*other, *to)) - to);
                        let is_same =
                            |n: &u32| old(at + n) == new((*other, to + n)) && !is_taken[*other][(to + n) as usize];
                        (u32::try_from((0..most).take_while(is_same).count()).unwrap_or(0), *other, *to)
                    });
                    match blocks.max_by_key(|(len, _, _)| *len) {
                        Some((len, other, to)) if len >= LEAST && moved::is_telling(at..at + len, old) => {
                            (to..to + len).for_each(|line| is_taken[other][line as usize] = true);
                            let target = &files[other].0;
                            let removed = Part { here: at, len, there: to, path: Arc::clone(target) };
                            it.files.entry(Arc::clone(path)).or_default().removed.push(removed);
                            let added = Part { here: to, len, there: at, path: Arc::clone(path) };
                            it.files.entry(Arc::clone(target)).or_default().added.push(added);
                            at += len;
                        }
                        Some(_) | None => at += 1,
                    }
                }
            }
        }
        it.files.values_mut().for_each(|moves| moves.added.sort_by_key(|part| part.here));
        it
    }

    /// Where a removed line of this file went, or where an added one came from.
    pub fn moved(&self, path: &str, line: Line) -> Option<Elsewhere> {
        let moves = self.files.get(path)?;
        let (parts, at) = match line.tag {
            Tag::Removed => (&moves.removed, line.old?),
            Tag::Added => (&moves.added, line.new?),
            Tag::Same => return None,
        };
        let part = parts.get(parts.partition_point(|part| part.here <= at).checked_sub(1)?)?;
        let within = at - part.here;
        (within < part.len).then(|| Elsewhere {
            path: Arc::clone(&part.path),
            line: part.there + within,
            is_first: within == 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `a.rs -1 b.rs 3`: each changed line that stands in another file, with its place there.
    fn told(files: &[(&str, &str, &str)]) -> Vec<String> {
        let patch = |old: &str, new: &str| {
            let mut patch = TextPatch::new(old, new);
            patch.find_moves();
            Arc::new(patch)
        };
        let files: Vec<_> = files.iter().map(|(path, old, new)| (Arc::from(*path), patch(old, new))).collect();
        let across = Across::of(&files);
        let mut told = Vec::new();
        for (path, patch) in &files {
            for line in &patch.lines {
                let Some(to) = across.moved(path, *line) else { continue };
                let (mark, at) = if line.tag == Tag::Removed { ('-', line.old) } else { ('+', line.new) };
                let first = if to.is_first { " first" } else { "" };
                told.push(format!("{path} {mark}{} {} {}{first}", at.unwrap_or(0) + 1, to.path, to.line + 1));
            }
        }
        told
    }

    const BLOCK: &str = "let first_name = 1;\nlet second_name = 2;\nlet third_name = 3;\n";

    /// Broken builds: one that also marks two lines; one that compares the lines with their indentation; one that takes one
    /// new block for two old ones.
    #[test]
    fn three_lines_that_stand_in_another_file_now_are_moved_there() {
        let indented = BLOCK.replace("let", "    let");
        let both = [("a.rs", format!("top\n{BLOCK}end\n"), "top\nend\n".to_owned()), ("b.rs", String::new(), indented)];
        let both: Vec<_> = both.iter().map(|(path, old, new)| (*path, old.as_str(), new.as_str())).collect();
        assert_eq!(
            told(&both),
            [
                "a.rs -2 b.rs 1 first",
                "a.rs -3 b.rs 2",
                "a.rs -4 b.rs 3",
                "b.rs +1 a.rs 2 first",
                "b.rs +2 a.rs 3",
                "b.rs +3 a.rs 4"
            ]
        );
        let two = "let first_name_of_all = 1;\nlet second_name_of_all = 2;\n";
        assert!(told(&[("a.rs", two, ""), ("b.rs", "", two)]).is_empty());
        // Of two copies that went, one block that came can be only one.
        let from: Vec<String> = told(&[("a.rs", BLOCK, ""), ("b.rs", "", BLOCK), ("c.rs", BLOCK, "")]);
        assert!(from.iter().all(|it| !it.starts_with("c.rs")) && from.len() == 6, "{from:?}");
    }

    /// Broken build: one where a block that moved within its file is marked as if it came from another one.
    #[test]
    fn what_moved_within_its_file_is_not_said_to_come_from_another() {
        let rest: String = (0..20).map(|n| format!("rest {n}\n")).collect();
        let (down, up) = (format!("{BLOCK}{rest}"), format!("{rest}{BLOCK}"));
        assert!(told(&[("a.rs", &down, &up), ("b.rs", BLOCK, "")]).is_empty());
    }
}
