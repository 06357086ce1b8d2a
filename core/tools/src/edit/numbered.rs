//! Line numbers that `read` and `grep` print, pasted in front of the lines of an edit.
//!
//! Data can look the same: a port map, a list of numbers. So numbers are left out only where the file proves that they are
//! no part of the text: each one is the number of its line.

use protocol::error::{Code, Error, Result};

use super::{Change, line_of, replace};

/// What may stand between a number and its line.
const MARKS: [char; 4] = ['\t', '→', '|', ':'];

/// Lines with a number in front of each.
struct Numbered {
    /// The number of the first line. The others follow it without a gap.
    first: usize,
    /// What follows each number.
    mark: char,
    /// The lines behind the marks, with their ends.
    lines: Vec<String>,
}

impl Numbered {
    /// Reads the lines, if each has a number, one after the other, and at least one says something behind it.
    fn of(text: &str) -> Option<Numbered> {
        let lines: Vec<(usize, Option<char>, &str)> =
            text.split_inclusive('\n').map(numbered).collect::<Option<_>>()?;
        let (first, ..) = *lines.first()?;
        let follow = lines.iter().enumerate().all(|(i, (number, ..))| first.checked_add(i) == Some(*number));
        let mut marks = lines.iter().filter_map(|(_, mark, _)| *mark);
        let mark = marks.next()?;
        let says_something = lines.iter().any(|(.., text)| !text.trim().is_empty());
        (follow && says_something && marks.all(|it| it == mark)).then(|| Numbered {
            first,
            mark,
            lines: lines.into_iter().map(|(.., text)| text.to_owned()).collect(),
        })
    }

    /// The text without numbers, and without this blank behind each mark.
    fn without(&self, blank: &str) -> String {
        self.lines.iter().map(|line| line.strip_prefix(blank).unwrap_or(line)).collect()
    }
}

/// The number of a line, the mark behind it, and the text. An editor may have cut the mark of an empty line.
fn numbered(line: &str) -> Option<(usize, Option<char>, &str)> {
    let rest = line.trim_start_matches([' ', '\t']);
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let number = rest[..digits].parse().ok().filter(|_| !rest.starts_with('0'))?;
    let behind = &rest[digits..];
    if behind.trim_end_matches(['\r', '\n']).is_empty() {
        return Some((number, None, behind));
    }
    let mark = behind.chars().next().filter(|mark| MARKS.contains(mark))?;
    Some((number, Some(mark), &behind[mark.len_utf8()..]))
}

/// The same edit without the numbers, if `on_disk` has exactly these lines under these numbers, and nowhere else.
///
/// # Errors
/// `NOT_UNIQUE` where the lines occur elsewhere too, `INVALID_ARGS` where it is not clear which numbers of `new_text` are
/// part of the text.
pub(super) fn without_numbers(edit: &Change, on_disk: &str) -> Result<Option<Change>> {
    let Some(old) = Numbered::of(&edit.old_text) else { return Ok(None) };
    // A blank behind the mark may belong to the text or not.
    let Some(blank) = ["", " "].into_iter().find(|blank| stands_there(&old, blank, on_disk)) else { return Ok(None) };
    let old_text = old.without(blank);
    let new_text = match Numbered::of(&edit.new_text) {
        Some(new) if (new.first, new.mark) == (old.first, old.mark) => new.without(blank),
        _ if has_some_numbers(&edit.new_text, &old) => {
            let message = "old_text has line numbers, and it is not clear which numbers of new_text are line numbers";
            return Err(Error::new(Code::InvalidArgs, message, "send both texts without line numbers"));
        }
        Some(_) | None => edit.new_text.clone(),
    };
    // The numbers name one place. The text must name the same one, because numbers change with every edit above them.
    replace(on_disk, &old_text, &new_text, false)?;
    Ok(Some(Change { old_text, new_text, replace_all: false }))
}

/// Whether the file has these whole lines under these numbers.
fn stands_there(old: &Numbered, blank: &str, on_disk: &str) -> bool {
    let Some(before) = old.first.checked_sub(1) else { return false };
    let mut there = on_disk.lines().skip(before);
    old.lines.iter().all(|line| {
        let line = line.trim_end_matches(['\r', '\n']);
        there.next() == Some(line.strip_prefix(blank).unwrap_or(line))
    })
}

/// Whether a line has the number that it would have in the file.
fn has_some_numbers(new: &str, old: &Numbered) -> bool {
    new.lines().enumerate().any(|(i, line)| {
        let it = numbered(line).filter(|(_, mark, _)| mark.is_none_or(|mark| mark == old.mark));
        it.is_some_and(|(number, ..)| number == old.first + i)
    })
}

/// What to say about a text that does not occur, if its lines look numbered and occur without their numbers.
pub(super) fn elsewhere(old: &str, on_disk: &str) -> Option<Error> {
    let lines: Vec<(usize, Option<char>, &str)> = old.split_inclusive('\n').map(numbered).collect::<Option<_>>()?;
    if lines.iter().all(|(_, mark, text)| mark.is_none() || text.trim().is_empty()) {
        return None;
    }
    let bare = |blank: &str| -> String {
        lines.iter().map(|(.., text)| text.strip_prefix(blank).unwrap_or(text)).collect::<String>()
    };
    let line = ["", " "].into_iter().find_map(|blank| Some(line_of(on_disk, on_disk.find(&bare(blank))?)))?;
    let message = format!(
        "old_text does not occur in the file; without what looks like line numbers it occurs at line {line}, which they do \
         not name"
    );
    Some(Error::new(Code::NoMatch, message, "send old_text without line numbers").with("closest_line", line))
}
