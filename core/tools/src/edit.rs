//! The tool `edit`: it replaces exact text in a file.

use serde::Deserialize;
use serde_json::{Value, json};

use call::arguments::{self, object, text};
use call::replacement::Replacement;
use call::{Context, Prepared, Tool};
use files::near_miss::no_match;
use files::workspace::Inside;
use protocol::call_info::{CallInfo, CallKind};
use protocol::error::{Code, Error, Result};
use protocol::tool_spec::ToolSpec;
use text::encoding::Decoded;

mod numbered; // line numbers in front of the old lines

use numbered::{elsewhere, without_numbers};

pub(super) struct Edit;

#[derive(Deserialize)]
struct Args {
    path: String,
    old_text: Option<String>,
    new_text: Option<String>,
    #[serde(default)]
    replace_all: bool,
    #[serde(default)]
    edits: Vec<Change>,
}

/// One replacement.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    pub old_text: String,
    pub new_text: String,
    #[serde(default)]
    pub replace_all: bool,
}

impl Tool for Edit {
    fn spec(&self) -> ToolSpec {
        let text = json!({ "type": "string" });
        ToolSpec {
            name: "edit".into(),
            description: concat!(
                "Replace exact text in a file: old_text by new_text. With edits, one call makes several replacements in order, ",
                "either all or none. old_text must occur exactly once in the file, unless replace_all is true.",
            )
            .into(),
            parameters: object(
                json!({
                    "path": text,
                    "old_text": text,
                    "new_text": text,
                    "replace_all": { "type": "boolean" },
                    "edits": { "type": "array", "items": {
                        "type": "object",
                        "properties": { "old_text": text, "new_text": text, "replace_all": { "type": "boolean" } },
                        "required": ["old_text", "new_text"],
                    } },
                }),
                &["path"],
            ),
            reads_only: false,
            streams: "reads nothing from stdin; prints a summary of the change".into(),
        }
    }

    fn describe(&self, args: &Value, _ctx: &Context) -> CallInfo {
        let path = text(args, "path");
        CallInfo::new(CallKind::Edit, "edit", path).on([path])
    }

    fn prepare(&self, args: Value, ctx: &Context) -> Result<Prepared> {
        let Args { path, old_text, new_text, replace_all, mut edits } = arguments::parse(args)?;
        match (old_text, new_text) {
            (Some(old_text), Some(new_text)) if edits.is_empty() => {
                edits.push(Change { old_text, new_text, replace_all })
            }
            (None, None) if !edits.is_empty() && !replace_all => {}
            _ => {
                let fix = "give old_text and new_text, or edits=[{old_text, new_text}, …]";
                let message = "edit needs both `old_text` and `new_text`, or `edits` alone";
                return Err(Error::new(Code::InvalidArgs, message, fix));
            }
        }
        let at = ctx.workspace.locate(&path)?;
        Ok(previewed(ctx, at, &edits)?.prepared())
    }

    fn run_command(&self) -> Option<&'static str> {
        Some("edit")
    }

    fn example(&self) -> Value {
        json!({ "path": "README.md", "old_text": "teh", "new_text": "the" })
    }
}

/// Computes the file's content after these replacements, applied in order.
///
/// # Errors
/// `NO_MATCH`, `NOT_UNIQUE`, `FILE_CHANGED`, `BINARY_FILE`, or the error of reading the file.
pub fn previewed(ctx: &Context, at: Inside, edits: &[Change]) -> Result<Replacement> {
    let shown = at.display();
    let before = ctx.workspace.read(&at)?;
    ctx.read_set.check(&ctx.workspace, &at, Some(&before.bytes))?;
    let file = Decoded::of(before.bytes.clone()).ok_or_else(|| {
        let fix = "a program that supports its format";
        Error::new(Code::BinaryFile, format!("`{shown}` is not text"), fix).with("input", shown.as_str())
    })?;
    let on_disk = file.text();
    let mut text = on_disk.to_owned();
    let mut faults = Vec::new();
    let mut had_numbers = false;
    for (i, edit) in edits.iter().enumerate() {
        match edit.made(&text, on_disk) {
            Ok((edited, numbered)) => {
                text = edited;
                had_numbers |= numbered;
            }
            // The model knows the file as it is on disk, not as the edits before this one would leave it.
            Err(error) => match edit.made(on_disk, on_disk) {
                Err(error) => faults.push((i + 1, error)),
                Ok(_) if error.code == Code::NoMatch => {
                    let message = "an earlier edit of this call changes the text that old_text names";
                    faults.push((i + 1, Error::new(Code::NoMatch, message, "join the two edits into one")));
                }
                Ok(_) => faults.push((i + 1, error)),
            },
        }
    }
    if !faults.is_empty() {
        return Err(all_of(faults, edits.len()));
    }
    let after = file.rewritten(&text).map_err(|unfit| unfit.error(&shown))?.into_bytes();
    ctx.workspace.check_writable(&at)?;
    let to = ctx.workspace.destination(&at)?;
    let mut replacement = Replacement::of("edit", ctx, to, Some(before), Some(after))?;
    if had_numbers {
        replacement
            .told
            .push_str("note: old_text had line numbers, which are no part of the file; they were left out\n");
    }
    Ok(replacement)
}

impl Change {
    /// The text after this replacement, and whether line numbers in front of the old lines were left out for it. The model
    /// knows the numbers of the file as it is on disk.
    fn made(&self, text: &str, on_disk: &str) -> Result<(String, bool)> {
        let Change { old_text, new_text, replace_all } = self;
        let error = match replace(text, old_text, new_text, *replace_all) {
            Err(error) if error.code == Code::NoMatch => error,
            outcome => return Ok((outcome?, false)),
        };
        match without_numbers(self, on_disk)? {
            Some(bare) => Ok((replace(text, &bare.old_text, &bare.new_text, false)?, true)),
            None => Err(elsewhere(old_text, on_disk).unwrap_or(error)),
        }
    }
}

/// Replaces `old` by `new`. Bytes outside the match never change, even in a file with mixed line ends.
///
/// Models write `\n` where a file has `\r\n`. The search therefore ignores returns, and the inserted lines get the line
/// ends of their surroundings.
fn replace(text: &str, old: &str, new: &str, all: bool) -> Result<String> {
    if old.is_empty() {
        return Err(Error::new(
            Code::InvalidArgs,
            "old_text is empty",
            "write for a new file, or the text to replace as old_text",
        ));
    }
    if old == new {
        return Err(Error::new(
            Code::InvalidArgs,
            "old_text and new_text are the same",
            "a new_text that differs from old_text",
        ));
    }
    let folded = Folded::of(text, old.contains('\r'));
    let places: Vec<usize> = folded.text.match_indices(old).map(|(at, _)| at).collect();
    // `match_indices` skips overlapping matches: `aa` occurs twice in `aaa`.
    let twice = |at: usize| {
        let step = old.chars().next().map_or(1, char::len_utf8);
        folded.text[at + step..].find(old).map(|next| at + step + next)
    };
    match places.as_slice() {
        [] => return Err(no_match(&folded.text, old, "old_text does")),
        _ if all => {}
        [at] => {
            if let Some(next) = twice(*at) {
                return Err(not_unique(&folded.text, &[*at, next]));
            }
        }
        several => return Err(not_unique(&folded.text, several)),
    }
    let mut edited = String::with_capacity(text.len() + new.len());
    let mut kept_to = 0;
    for at in places {
        let (from, to) = (folded.origin(at), folded.origin(at + old.len()));
        edited.push_str(&text[kept_to..from]);
        if folded.ends_with_return(text, from, to) {
            edited.push_str(&new.replace("\r\n", "\n").replace('\n', "\r\n"));
        } else {
            edited.push_str(new);
        }
        kept_to = to;
    }
    edited.push_str(&text[kept_to..]);
    Ok(edited)
}

/// A text in which every `\r\n` is a `\n`, with the positions to map back to the original.
struct Folded {
    text: String,
    /// Positions in the folded text of the newlines that lost their return.
    returns: Vec<usize>,
}

impl Folded {
    fn of(text: &str, exactly: bool) -> Folded {
        if exactly || !text.contains("\r\n") {
            return Folded { text: text.to_owned(), returns: Vec::new() };
        }
        let folded = text.replace("\r\n", "\n");
        let returns = text.match_indices("\r\n").enumerate().map(|(before, (at, _))| at - before).collect();
        Folded { text: folded, returns }
    }

    /// Maps a position in the folded text to the original.
    fn origin(&self, at: usize) -> usize {
        at + self.returns.partition_point(|newline| *newline < at)
    }

    /// Whether lines inserted here end in `\r\n`, like the replaced lines or else like the line around the match.
    fn ends_with_return(&self, original: &str, from: usize, to: usize) -> bool {
        if self.returns.is_empty() {
            return false;
        }
        let end = original[from..to].find('\n').map(|at| from + at);
        let end = end.or_else(|| original[to..].find('\n').map(|at| to + at));
        let end = end.or_else(|| original[..from].rfind('\n'));
        end.is_some_and(|at| original[..at].ends_with('\r'))
    }
}

/// One error for all edits of a call that do not fit the file.
fn all_of(mut faults: Vec<(usize, Error)>, of: usize) -> Error {
    if of == 1 {
        return faults.remove(0).1;
    }
    let told: Vec<String> = faults
        .iter()
        .map(|(number, error)| format!("edit {number} of {of}: {}. Use: {}", error.message, error.remedy.plain()))
        .collect();
    let numbers: Vec<usize> = faults.iter().map(|(number, _)| *number).collect();
    let (_, first) = faults.remove(0);
    let details = first.details;
    let mut error =
        Error::new(first.code, format!("{}\nnothing was changed", told.join("\n")), "send the call again, corrected");
    error.details = details;
    error.with("edit", numbers[0]).with("edits", numbers)
}

fn not_unique(text: &str, places: &[usize]) -> Error {
    let lines: Vec<usize> = places.iter().map(|at| line_of(text, *at)).collect();
    let listed = lines.iter().take(20).map(usize::to_string).collect::<Vec<_>>().join(", ");
    let more = if lines.len() > 20 { ", …" } else { "" };
    Error::new(
        Code::NotUnique,
        format!("old_text occurs {} times, at lines {listed}{more}", lines.len()),
        "include more lines around it, or set replace_all=true",
    )
    .with("lines", lines)
}

fn line_of(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_named_text_changes_and_line_endings_stay() {
        assert_eq!(replace("a\r\nb\r\nc", "a\nb", "x\ny", false).expect("one place"), "x\r\ny\r\nc");
        assert_eq!(replace("\u{feff}a b a", "a", "z", true).expect("all"), "\u{feff}z b z");
        // In a file with mixed line ends, each line keeps its own.
        assert_eq!(replace("a\nb\r\nc\nd", "b\nc", "x\ny", false).expect("one place"), "a\nx\r\ny\nd");
        assert_eq!(replace("a\r\nb", "b", "x\ny", false).expect("the last line"), "a\r\nx\r\ny");
        assert_eq!(replace("a\r\nb", "a\r\n", "x\n", false).expect("as it was written"), "x\nb");
    }

    #[test]
    fn a_miss_names_the_closest_line_and_an_ambiguity_every_line() {
        let miss = replace("fn main() {\n    let x = 1;\n}\n", "    let x = 2;", "y", false).expect_err("no match");
        assert_eq!((miss.code, miss.details["closest_line"].as_u64()), (Code::NoMatch, Some(2)));
        let twice = replace("a\nb\na\n", "a", "c", false).expect_err("two places");
        assert_eq!((twice.code, twice.message.as_str()), (Code::NotUnique, "old_text occurs 2 times, at lines 1, 3"));
        assert_eq!(replace("a", "", "b", false).expect_err("empty").code, Code::InvalidArgs);
        assert_eq!(replace("aaa", "aa", "b", false).expect_err("it is there twice").code, Code::NotUnique);
        assert_eq!(replace("aaa", "aa", "b", true).expect("from the left"), "ba");
        let blanks = replace("x\nfn a() {\n\tb();\n}\n", "fn a() {\n    b();", "y", false).expect_err("a tab");
        assert!(
            blanks.message.ends_with("lines 2 to 3 differ from it only in whitespace. They are:\nfn a() {\n\tb();"),
            "{}",
            blanks.message
        );
    }

    fn made(text: &str, old: &str, new: &str) -> Result<(String, bool), Code> {
        let change = Change { old_text: old.into(), new_text: new.into(), replace_all: false };
        change.made(text, text).map_err(|error| error.code)
    }

    /// Broken build: one that leaves the numbers of the new lines in the file.
    #[test]
    fn line_numbers_pasted_from_read_are_left_out_where_they_are_those_of_the_lines() {
        let text = "fn a() {\n\n    one();\n}\n";
        let wanted = Ok(("fn a() {\n\n    two();\n}\n".to_owned(), true));
        for old in ["     2\t\n     3\t    one();", "2→\n3→    one();", "2|\n3|    one();", "2\n3:     one();"] {
            assert_eq!(made(text, old, "\n    two();"), wanted, "{old}");
        }
        assert_eq!(made(text, "     2\t\n     3\t    one();\n", "     2\t\n     3\t    two();\n"), wanted);
        assert_eq!(made(text, "3|    one();", "3|    two();\n4|    three();").map(|it| it.1), Ok(true));
        assert_eq!(made(text, "    one();", "    two();").map(|it| it.1), Ok(false));
        // The file ends its lines with returns, and the model does not see them.
        assert_eq!(made("a\r\nb\r\n", "2\tb", "c\nd"), Ok(("a\r\nc\r\nd\r\n".to_owned(), true)));
    }

    /// Broken build: ce783d9e, which takes off every number in front of lines and finds what is left anywhere.
    #[test]
    fn numbers_that_are_not_those_of_the_lines_are_text() {
        let text = "title\n10\n20\n\n30\nhost\nalpha\nhost\n";
        for (old, new, code) in [
            ("10\n25\n", "ten\n", Code::NoMatch),
            ("1\n2\n", "hello\nworld\n", Code::NoMatch),
            ("    1\n", "    2\n", Code::NoMatch),
            ("4\n", "x\n", Code::NoMatch),
            ("4\t\n", "x\n", Code::NoMatch),
            ("4\t  \n", "x\n", Code::NoMatch),
            ("8080:host", "80:host", Code::NoMatch),
            ("7:host", "x", Code::NoMatch),
            ("8|title", "x", Code::NoMatch),
            ("0:title", "x", Code::NoMatch),
            // A part of a line is not the line.
            ("7\talp", "x", Code::NoMatch),
            ("7\tpha", "x", Code::NoMatch),
            // The numbers have a gap, go back, or have two marks.
            ("5\t30\n7\talpha", "x", Code::NoMatch),
            ("6\thost\n5\t30", "x", Code::NoMatch),
            ("5\t30\n6:host", "x", Code::NoMatch),
            ("99999999999999999999999\thost", "x", Code::NoMatch),
            // The line is right, and its text stands elsewhere too.
            ("6\thost", "x", Code::NotUnique),
            // What the new numbers are is not clear.
            ("7\talpha", "7\tbeta\ngamma", Code::InvalidArgs),
            ("7\talpha", "7", Code::InvalidArgs),
            ("7:alpha", "beta\n8:80", Code::InvalidArgs),
        ] {
            assert_eq!(made(text, old, new), Err(code), "{old:?} {new:?}");
        }
        // Numbers of the new text that are not line numbers stay.
        assert_eq!(
            made("a\nports\n", "2:ports", "8080:80\n9090:90").map(|it| it.0),
            Ok("a\n8080:80\n9090:90\n".into())
        );
        let all = Change { old_text: "6\thost".into(), new_text: "x".into(), replace_all: true };
        assert_eq!(all.made(text, text).map_err(|e| e.code), Err(Code::NotUnique));
    }

    /// Broken build: one that counts the lines of the text behind the edits before it.
    #[test]
    fn numbers_are_those_of_the_file_on_disk() {
        let on_disk = "a\nb\nc\n";
        let edited = "a\nnew\nb\nc\n";
        let change = |old: &str| Change { old_text: old.into(), new_text: "x".into(), replace_all: false };
        assert_eq!(change("3\tc").made(edited, on_disk).map(|it| it.0).ok(), Some("a\nnew\nb\nx\n".into()));
        assert_eq!(change("4\tc").made(edited, on_disk).map_err(|e| e.code), Err(Code::NoMatch));
    }

    #[test]
    fn a_miss_of_numbered_lines_names_the_line_where_they_are() {
        let change = Change { old_text: "7\tbeta".into(), new_text: "x".into(), replace_all: false };
        let error = change.made("alpha\nbeta\n", "alpha\nbeta\n").expect_err("the number is wrong");
        assert_eq!((error.code, error.details["closest_line"].as_u64()), (Code::NoMatch, Some(2)));
        assert!(error.message.ends_with("it occurs at line 2, which they do not name"), "{}", error.message);
    }

    /// The number of generated edits; the long run is `PIXIR_EDITS=100000 cargo test -p pixir-tools edit`.
    fn edits() -> u32 {
        std::env::var("PIXIR_EDITS").ok().and_then(|n| n.parse().ok()).unwrap_or(5_000)
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig { cases: edits(), failure_persistence: None, max_global_rejects: u32::MAX, ..Default::default() })]

        /// Broken build: ce783d9e, or one that finds the lines without their numbers anywhere in the file.
        #[test]
        fn with_line_numbers_only_the_lines_of_these_numbers_change(
            lines in proptest::collection::vec("[0-9]{0,2}|[0-9][:|]?[ab]?| ?[ab]|[1-9]\t[ab]?", 1..9), crlf in proptest::bool::ANY,
            at in 0..9_usize, len in 1..4_usize, shift in -1..2_i64, mark in "[\t:|→]", blank in " ?", cut in 0..2_usize,
            invented in proptest::option::of("([0-9]{1,2}[\t:|]?[ab]?\n?){1,3}"), new in "([0-9]{0,2}[:|\t]?[ab]?\n?){0,3}", all in proptest::bool::ANY,
        ) {
            let end = if crlf { "\r\n" } else { "\n" };
            let text: String = lines.iter().map(|line| format!("{line}{end}")).collect();
            let from = at % lines.len();
            let to = (from + len).min(lines.len());
            // Lines of the file with their numbers, sometimes with wrong ones or without the end of a line; or anything.
            let pasted = lines[from..to].iter().enumerate().map(|(i, line)| {
                format!("{}{mark}{blank}{}", (from + i + 1) as i64 + shift, &line[..line.len() - cut.min(line.len())])
            });
            let old = invented.unwrap_or_else(|| pasted.collect::<Vec<_>>().join("\n"));
            let change = Change { old_text: old.clone(), new_text: new, replace_all: all };
            let Ok((edited, true)) = change.made(&text, &text) else { return Ok(()) };
            let numbers: Vec<usize> = old.lines().map(|line| line.trim_start().chars().take_while(char::is_ascii_digit).collect::<String>().parse().expect("a number")).collect();
            let (first, last) = (numbers[0], numbers[numbers.len() - 1]);
            proptest::prop_assert_eq!(&numbers, &(first..=last).collect::<Vec<_>>());
            let mut named = String::new();
            for (line, number) in old.lines().zip(first..) {
                let stands = &lines[number - 1];
                let is_it = line.trim_start().strip_prefix(&number.to_string()).is_some_and(|behind| {
                    behind == stands || behind.chars().next().is_some_and(|mark| {
                        let behind = &behind[mark.len_utf8()..];
                        behind == stands || behind.strip_prefix(' ') == Some(stands)
                    })
                });
                proptest::prop_assert!(is_it || stands.is_empty(), "{text:?} {change:?} {edited:?}");
                named.push_str(stands);
            }
            proptest::prop_assert!(!named.trim().is_empty(), "{text:?} {change:?} {edited:?}");
            let above: String = lines[..first - 1].iter().map(|line| format!("{line}{end}")).collect();
            let below: String = lines[last..].iter().map(|line| format!("{line}{end}")).collect();
            let is_around = edited.starts_with(&above) && edited.ends_with(&below) && edited.len() >= above.len() + below.len();
            proptest::prop_assert!(is_around, "{text:?} {change:?} {edited:?}");
        }

        #[test]
        fn bytes_outside_of_what_is_replaced_never_change(
            bom in proptest::bool::ANY,
            lines in proptest::collection::vec(("[ab\u{e9}\u{6f22} \t]{0,4}", 0..4_usize), 1..9),
            from in 0.0..1.0_f64, len in 0.0..0.7_f64, new in "[ab\u{e9}x\n]{0,6}", all in proptest::bool::ANY,
        ) {
            let ends = ["\n", "\r\n", "\r", ""];
            let start = if bom { "\u{feff}" } else { "" };
            let text: String = std::iter::once(start.to_owned()).chain(lines.iter().map(|(line, end)| format!("{line}{}", ends[*end]))).collect();
            // The folded characters and their positions, computed independently of `Folded`.
            let mut seen: Vec<(char, usize)> = text.char_indices().map(|(at, c)| (c, at)).collect();
            let returns: Vec<usize> = (0..seen.len().saturating_sub(1)).filter(|i| seen[*i].0 == '\r' && seen[i + 1].0 == '\n').collect();
            for i in returns.into_iter().rev() {
                let at = seen.remove(i).1;
                seen[i].1 = at;
            }
            let first = (from * seen.len() as f64) as usize;
            let last = (first + 1 + (len * seen.len() as f64) as usize).min(seen.len());
            let old: String = seen[first..last].iter().map(|(c, _)| c).collect();
            // `replace` folds no returns if `old` has one, so this model does not apply.
            proptest::prop_assume!(!old.is_empty() && !old.contains('\r') && old != new);
            let starts: Vec<usize> = (0..seen.len()).filter(|i| {
                seen[*i..].iter().map(|(c, _)| *c).take(old.chars().count()).eq(old.chars())
            }).collect();
            match replace(&text, &old, &new, all) {
                Err(error) => {
                    proptest::prop_assert!(!all && starts.len() > 1, "{error}");
                    proptest::prop_assert_eq!(error.code, Code::NotUnique);
                }
                Ok(edited) => {
                    proptest::prop_assert!(all || starts.len() == 1);
                    let (mut expected, mut kept, mut next) = (Vec::new(), 0, 0);
                    for i in starts {
                        // Matches are taken from the left without overlap.
                        if i < next { continue; }
                        next = i + old.chars().count();
                        let end = seen.get(next).map_or(text.len(), |(_, at)| *at);
                        expected.push(&text[kept..seen[i].1]);
                        kept = end;
                    }
                    expected.push(&text[kept..]);
                    // The new text stands between the unchanged parts, with either line end.
                    let mut rest = edited.as_str();
                    for (i, piece) in expected.iter().enumerate() {
                        if i > 0 {
                            let put = [new.clone(), new.replace('\n', "\r\n")].into_iter().find(|put| rest.starts_with(put.as_str()) && rest[put.len()..].starts_with(*piece));
                            proptest::prop_assert!(put.is_some(), "{text:?} {old:?} {new:?} {edited:?}");
                            rest = &rest[put.map_or(0, |put| put.len())..];
                        }
                        proptest::prop_assert!(rest.starts_with(*piece), "{text:?} {old:?} {new:?} {edited:?}");
                        rest = &rest[piece.len()..];
                    }
                    proptest::prop_assert_eq!(rest, "");
                }
            }
        }
    }
}
