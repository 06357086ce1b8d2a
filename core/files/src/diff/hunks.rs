//! The lines of one changed file: hunks with exact ranges, computed from both versions.

use std::ops::Range;

use super::compare::{Change, compare};
use super::lines::{Line, Numbered, Tag};
use super::moved::{Move, Moves};
use protocol::input::HunkEdit;
use storage::blobs;

/// Lines of context around a change.
pub(super) const CONTEXT: u32 = 3;

/// Lines that changed close to each other, with the lines around them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hunk {
    /// Its lines in [`TextPatch::lines`].
    pub lines: Range<usize>,
    /// Its lines in the old version, from 0.
    pub old: Range<u32>,
    /// Its lines in the new version, from 0.
    pub new: Range<u32>,
    /// The same without the context.
    changed_old: Range<u32>,
    changed_new: Range<u32>,
}

impl Hunk {
    /// The line that begins a hunk of a unified diff, where so many lines stand above both texts.
    pub(super) fn head(&self, above: u32) -> String {
        let range = |lines: &Range<u32>| match (lines.start + above, lines.len()) {
            (start, 1) => (start + 1).to_string(),
            // A range without lines names the line before it.
            (start, 0) => format!("{start},0"),
            (start, n) => format!("{},{n}", start + 1),
        };
        format!("@@ -{} +{} @@\n", range(&self.old), range(&self.new))
    }
}

/// Both versions of a text, and the hunks between them.
#[derive(Debug, Clone, Default)]
pub struct TextPatch {
    /// The old version.
    pub old: Numbered,
    /// The new version.
    pub new: Numbered,
    /// The lines of all hunks, in order.
    pub lines: Vec<Line>,
    /// The hunks, in order.
    pub hunks: Vec<Hunk>,
    moves: Moves,
}

impl TextPatch {
    /// Compares two texts.
    pub fn new(old: &str, new: &str) -> TextPatch {
        let (old, new) = (Numbered::new(old), Numbered::new(new));
        let changes = compare(&old, &new);
        TextPatch::of_changes(old, new, changes)
    }

    /// The hunks at the start of two texts. If the last change is cut, what follows it is not known to be the same.
    pub(super) fn of_start(old: Numbered, new: Numbered, changes: Vec<Change>, is_cut: bool) -> TextPatch {
        let mut it = TextPatch::of_changes(old, new, changes);
        let last = it.lines.iter().rposition(|line| line.tag != Tag::Same);
        if let (true, Some(last), Some(hunk)) = (is_cut, last, it.hunks.last_mut()) {
            it.lines.truncate(last + 1);
            hunk.lines.end = last + 1;
            (hunk.old.end, hunk.new.end) = (hunk.changed_old.end, hunk.changed_new.end);
        }
        it
    }

    /// The hunks of these changes, which are in order.
    pub(super) fn of_changes(old: Numbered, new: Numbered, changes: Vec<Change>) -> TextPatch {
        let mut it = TextPatch { old, new, ..TextPatch::default() };
        // Changes with little between them are one hunk.
        let mut group: Option<(Range<u32>, Range<u32>, Vec<Change>)> = None;
        for (old, new) in changes {
            match &mut group {
                Some((all_old, all_new, parts)) if old.start - all_old.end <= 2 * CONTEXT => {
                    (all_old.end, all_new.end) = (old.end, new.end);
                    parts.push((old, new));
                }
                _ => {
                    if let Some((old, new, parts)) = group.take() {
                        it.add(old, new, &parts);
                    }
                    group = Some((old.clone(), new.clone(), vec![(old, new)]));
                }
            }
        }
        if let Some((old, new, parts)) = group {
            it.add(old, new, &parts);
        }
        it
    }

    fn add(&mut self, changed_old: Range<u32>, changed_new: Range<u32>, parts: &[Change]) {
        let begin = self.lines.len();
        let above = CONTEXT.min(changed_old.start).min(changed_new.start);
        let end = |of: &Numbered| u32::try_from(of.len()).unwrap_or(u32::MAX);
        let below = CONTEXT.min(end(&self.old) - changed_old.end).min(end(&self.new) - changed_new.end);
        let old = changed_old.start - above..changed_old.end + below;
        let new = changed_new.start - above..changed_new.end + below;
        let (mut at_old, mut at_new) = (old.start, new.start);
        let same = |lines: &mut Vec<Line>, at_old: &mut u32, at_new: &mut u32, until: u32| {
            while *at_old < until {
                lines.push(Line { tag: Tag::Same, old: Some(*at_old), new: Some(*at_new) });
                (*at_old, *at_new) = (*at_old + 1, *at_new + 1);
            }
        };
        for (removed, added) in parts {
            same(&mut self.lines, &mut at_old, &mut at_new, removed.start);
            let mate = |at: u32, of: &Range<u32>, in_: &Range<u32>| {
                let other = in_.start + (at - of.start);
                (other < in_.end).then_some(other)
            };
            self.lines.extend(removed.clone().map(|at| Line {
                tag: Tag::Removed,
                old: Some(at),
                new: mate(at, removed, added),
            }));
            self.lines.extend(added.clone().map(|at| Line {
                tag: Tag::Added,
                old: mate(at, added, removed),
                new: Some(at),
            }));
            (at_old, at_new) = (removed.end, added.end);
        }
        same(&mut self.lines, &mut at_old, &mut at_new, old.end);
        self.hunks.push(Hunk { lines: begin..self.lines.len(), old, new, changed_old, changed_new });
    }

    /// Finds the blocks of lines that were removed in one place and added in another.
    pub(super) fn find_moves(&mut self) {
        self.moves = Moves::of(&self.old, &self.new, &self.lines);
    }

    /// Where a removed line went, or where an added one came from.
    pub fn moved(&self, line: Line) -> Option<Move> {
        match line.tag {
            Tag::Removed => self.moves.to(line.old?),
            Tag::Added => self.moves.from(line.new?),
            Tag::Same => None,
        }
    }

    /// Lines added and removed.
    pub fn counts(&self) -> (u64, u64) {
        let of = |tag| self.lines.iter().filter(|line| line.tag == tag).count() as u64;
        (of(Tag::Added), of(Tag::Removed))
    }

    /// The text of a line, with its end.
    pub fn text(&self, line: Line) -> &str {
        match (line.tag, line.old, line.new) {
            (Tag::Removed, Some(at), _) => self.old.line(at),
            (Tag::Same | Tag::Added, _, Some(at)) => self.new.line(at),
            (Tag::Removed | Tag::Same | Tag::Added, _, _) => "",
        }
    }

    /// The text of a line and, if it replaces another or is replaced by one, the old and the new line.
    pub fn pair(&self, line: Line) -> Option<(&str, &str)> {
        match (line.tag, line.old, line.new) {
            (Tag::Removed | Tag::Added, Some(old), Some(new)) => Some((self.old.line(old), self.new.line(new))),
            (Tag::Removed | Tag::Added | Tag::Same, _, _) => None,
        }
    }

    /// The hunk that has this line of [`TextPatch::lines`].
    pub fn hunk_of(&self, line: usize) -> Option<usize> {
        let at = self.hunks.partition_point(|hunk| hunk.lines.end <= line);
        (at < self.hunks.len()).then_some(at)
    }

    /// The line above a hunk that tells where it is: the last one that begins in the first column, as git chooses it.
    pub fn heading(&self, hunk: &Hunk) -> &str {
        const FARTHEST: u32 = 400;
        let from = hunk.new.start.saturating_sub(FARTHEST);
        let is_heading = |line: &&str| line.starts_with(|c: char| c.is_alphabetic() || matches!(c, '_' | '$' | '#'));
        (from..hunk.new.start).rev().map(|at| self.new.line(at)).find(is_heading).unwrap_or_default().trim_end()
    }

    /// The diff as text, as `diff -u` and git write it. The names are those of the versions, such as `a/x` or `/dev/null`.
    pub fn unified(&self, old: &str, new: &str) -> String {
        let mut text = format!("--- {old}\n+++ {new}\n");
        for hunk in &self.hunks {
            self.write_hunk(hunk, &mut text);
        }
        text
    }

    /// One hunk in the same format, without the names.
    pub fn write_hunk(&self, hunk: &Hunk, text: &mut String) {
        self.write_hunk_below(0, hunk, text);
    }

    /// The same where so many lines stand above both texts.
    pub(super) fn write_hunk_below(&self, above: u32, hunk: &Hunk, text: &mut String) {
        text.push_str(&hunk.head(above));
        for line in &self.lines[hunk.lines.clone()] {
            text.push(match line.tag {
                Tag::Same => ' ',
                Tag::Removed => '-',
                Tag::Added => '+',
            });
            let line = self.text(*line);
            text.push_str(line);
            if !line.ends_with('\n') {
                text.push_str("\n\\ No newline at end of file\n");
            }
        }
    }

    /// What takes a hunk back, as the Input wants it.
    pub fn edit(&self, hunk: &Hunk) -> HunkEdit {
        HunkEdit {
            line: hunk.changed_new.start,
            now: self.new.lines(hunk.changed_new.clone()).to_owned(),
            then: self.old.lines(hunk.changed_old.clone()).to_owned(),
        }
    }

    /// A name for a hunk of this path by its lines alone, so that it is found again where others have changed.
    pub fn id(&self, path: &str, hunk: &Hunk) -> String {
        let HunkEdit { now, then, .. } = self.edit(hunk);
        blobs::name_of(format!("{path}\0{then}\0{now}").as_bytes())
    }
}

/// Puts `then` of an edit in the place of its `now`. `None` if those lines are not there.
pub fn with_edit(text: &str, edit: &HunkEdit) -> Option<String> {
    let lines = Numbered::new(text);
    let at = lines.offset(edit.line);
    let rest = text.get(at..)?.strip_prefix(&*edit.now)?;
    Some(format!("{}{}{rest}", &text[..at], edit.then))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A text of few different lines, so that hunks touch and lines repeat; with CRLF, and with or without a last line
    /// end.
    fn text() -> impl Strategy<Value = String> {
        let line = prop_oneof![Just("a"), Just("b"), Just("c"), Just(""), Just("ü x")];
        let end = prop_oneof![4 => Just("\n"), 1 => Just("\r\n")];
        let lines = prop::collection::vec((line, end), 0..40);
        (lines, prop::option::of("[a-c]{0,2}")).prop_map(|(lines, last)| {
            let mut text: String = lines.into_iter().map(|(line, end)| format!("{line}{end}")).collect();
            text.push_str(&last.unwrap_or_default());
            text
        })
    }

    /// A text, and the same with some lines changed.
    fn both() -> impl Strategy<Value = (String, String)> {
        let edits = prop::collection::vec((0_usize..60, prop_oneof![Just(""), Just("z\n"), Just("a\nb\n")]), 0..6);
        let edited = (text(), edits).prop_map(|(old, edits)| {
            let mut lines: Vec<String> = old.split_inclusive('\n').map(str::to_owned).collect();
            for (at, put) in edits {
                let at = at % (lines.len() + 1);
                if at < lines.len() { put.clone_into(&mut lines[at]) } else { lines.push(put.to_owned()) }
            }
            (old, lines.concat())
        });
        prop_oneof![edited, (text(), text())]
    }

    proptest! {
        /// Broken build: `edit` takes the lines of context too, or `Numbered` counts a line after the last line end.
        #[test]
        fn to_revert_every_hunk_is_to_have_the_old_text((old, new) in both()) {
            let patch = TextPatch::new(&old, &new);
            let mut text = new;
            for hunk in patch.hunks.iter().rev() {
                text = with_edit(&text, &patch.edit(hunk)).expect("the lines are there");
            }
            prop_assert_eq!(&text, &old);
        }

        /// Broken build: as above, or one that puts the old lines at the line of the old text.
        #[test]
        fn to_revert_a_hunk_and_apply_it_again_changes_nothing((old, new) in both(), n in any::<prop::sample::Index>()) {
            let patch = TextPatch::new(&old, &new);
            prop_assume!(!patch.hunks.is_empty());
            let hunk = n.get(&patch.hunks);
            let revert = patch.edit(hunk);
            let reverted = with_edit(&new, &revert).expect("the lines are there");
            let again = HunkEdit { line: revert.line, now: revert.then.clone(), then: revert.now };
            prop_assert_eq!(with_edit(&reverted, &again), Some(new));
            // What is left of the diff is the other hunks.
            let left = TextPatch::new(&old, &reverted);
            prop_assert!(left.hunks.len() <= patch.hunks.len());
            prop_assert!(patch.hunks.len() > 1 || reverted == old);
        }

        #[test]
        fn the_lines_of_the_hunks_are_those_of_the_texts((old, new) in both()) {
            let patch = TextPatch::new(&old, &new);
            for hunk in &patch.hunks {
                let of = |leave_out| -> String {
                    let lines = patch.lines[hunk.lines.clone()].iter().filter(|line| line.tag != leave_out);
                    lines.map(|line| patch.text(*line)).collect()
                };
                let (old, new) = (of(Tag::Added), of(Tag::Removed));
                prop_assert_eq!(old.as_str(), patch.old.lines(hunk.old.clone()));
                prop_assert_eq!(new.as_str(), patch.new.lines(hunk.new.clone()));
            }
        }
    }

    #[test]
    fn a_hunk_names_its_lines_and_where_it_is() {
        let old = "fn a() {\n    1\n    2\n    3\n    4\n    5\n    6\n}\n";
        let patch = TextPatch::new(old, &old.replace("    5\n", "    five\n    more\n"));
        let [hunk] = patch.hunks.as_slice() else { panic!("one hunk") };
        assert_eq!((hunk.old.clone(), hunk.new.clone(), patch.counts()), (2..8, 2..9, (2, 1)));
        assert_eq!(patch.heading(hunk), "fn a() {");
        let changed: Vec<_> =
            patch.lines.iter().filter(|line| line.tag != Tag::Same).map(|line| patch.pair(*line)).collect();
        let pair = Some(("    5\n", "    five\n"));
        assert_eq!(changed, [pair, pair, None]);
    }
}
