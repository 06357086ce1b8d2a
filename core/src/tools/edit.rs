//! The tool `edit`: it replaces exact text in a file.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::call::arguments::{self, object, text};
use crate::call::replacement::Replacement;
use crate::call::{Context, Prepared, Tool};
use crate::files::workspace::Inside;
use crate::protocol::call_info::{CallInfo, CallKind};
use crate::protocol::error::{Code, Error, Result};
use crate::protocol::tool_spec::ToolSpec;

/// How much of a line is compared in the search for the closest line, characters.
const MAX_HINT: usize = 200;
/// How many lines are compared in the search for the closest line.
const MAX_HINTED: usize = 2_000;

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
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Change {
    pub(crate) old_text: String,
    pub(crate) new_text: String,
    #[serde(default)]
    pub(crate) replace_all: bool,
}

impl Tool for Edit {
    fn spec(&self) -> ToolSpec {
        let text = json!({ "type": "string" });
        ToolSpec {
            name: "edit".into(),
            description: "Replace exact text in a file: old_text by new_text, or several in edits, in order, all or none. Each old_text must occur exactly once, indentation included, unless replace_all.".into(),
            parameters: object(
                json!({
                    "path": { "type": "string", "description": "File" },
                    "old_text": { "type": "string", "description": "Exact text of the file, with enough context to be unique" },
                    "new_text": { "type": "string", "description": "Replacement text" },
                    "replace_all": { "type": "boolean", "description": "Every occurrence" },
                    "edits": { "type": "array", "minItems": 1, "items": {
                        "type": "object",
                        "properties": { "old_text": text, "new_text": text, "replace_all": { "type": "boolean" } },
                        "required": ["old_text", "new_text"],
                        "additionalProperties": false,
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
        Ok(previewed(ctx, at, &edits)?.prepared(ctx))
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
pub(crate) fn previewed(ctx: &Context, at: Inside, edits: &[Change]) -> Result<Replacement> {
    let shown = at.display();
    let before = ctx.workspace.read(&at)?;
    ctx.read_set.check(&ctx.workspace, &at, Some(&before.bytes))?;
    let mut text = String::from_utf8(before.bytes.clone()).map_err(|_| {
        let fix = "a program that supports its encoding, such as iconv";
        Error::new(Code::BinaryFile, format!("`{shown}` is not UTF-8 text"), fix).with("input", shown)
    })?;
    let on_disk = text.clone();
    let mut faults = Vec::new();
    for (i, edit) in edits.iter().enumerate() {
        match replace(&text, &edit.old_text, &edit.new_text, edit.replace_all) {
            Ok(edited) => text = edited,
            // The model knows the file as it is on disk, not as the edits before this one would leave it.
            Err(error) => match replace(&on_disk, &edit.old_text, &edit.new_text, edit.replace_all) {
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
    Replacement::of("edit", ctx, at, Some(before), text.into_bytes())
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
        [] => return Err(no_match(&folded.text, old)),
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

fn no_match(text: &str, old: &str) -> Error {
    let missing =
        |what: String, fix: String, line: usize| Error::new(Code::NoMatch, what, fix).with("closest_line", line);
    if let Some(at) = same_but_for_blanks(text, old) {
        let end = at + old.trim_matches('\n').lines().count().saturating_sub(1);
        let what = format!(
            "old_text does not occur in the file; lines {at} to {end} differ from it only in whitespace. They are:\n{}",
            lines_as_they_are(text, at, end)
        );
        return missing(what, "copy the whitespace exactly".into(), at);
    }
    let wanted: String =
        old.lines().find(|line| !line.trim().is_empty()).unwrap_or(old).trim().chars().take(MAX_HINT).collect();
    // Comparing costs the product of both lengths, so only a bounded number of lines of similar length is compared.
    let alike = |line: &str| (wanted.len() / 2..=wanted.len() * 2 + 2).contains(&line.trim().len());
    let closest = text
        .lines()
        .enumerate()
        .filter(|(_, line)| alike(line))
        .take(MAX_HINTED)
        .map(|(i, line)| (strsim::normalized_damerau_levenshtein(line.trim(), &wanted), i + 1, line))
        .filter(|(likeness, _, _)| *likeness > 0.6)
        .max_by(|a, b| a.0.total_cmp(&b.0));
    match closest {
        Some((_, number, line)) => missing(
            "old_text does not occur in the file".to_owned(),
            format!("copy the exact text; the closest line is {number}: {}", line.trim_end()),
            number,
        ),
        None => Error::new(
            Code::NoMatch,
            "old_text does not occur in the file, and no line is similar",
            "read the file first",
        ),
    }
}

/// These lines of a file, from 1, without numbers, so that they can be copied.
fn lines_as_they_are(text: &str, from: usize, to: usize) -> String {
    let most = 40;
    let lines: Vec<&str> = text.lines().skip(from - 1).take((to + 1 - from).min(most)).collect();
    let more = if to + 1 - from > most { "\n…" } else { "" };
    format!("{}{more}", lines.join("\n"))
}

/// The number of the line, from 1, where the text occurs if differences in whitespace are ignored.
fn same_but_for_blanks(text: &str, old: &str) -> Option<usize> {
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let wanted: Vec<String> = old.trim_matches('\n').lines().map(words).collect();
    if wanted.iter().all(String::is_empty) {
        return None;
    }
    let lines: Vec<String> = text.lines().map(words).collect();
    lines.windows(wanted.len()).position(|window| window == wanted).map(|at| at + 1)
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

    /// The number of generated edits; the long run is `PIXIR_EDITS=100000 cargo test -p pixir-core edit`.
    fn edits() -> u32 {
        std::env::var("PIXIR_EDITS").ok().and_then(|n| n.parse().ok()).unwrap_or(5_000)
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig { cases: edits(), failure_persistence: None, max_global_rejects: u32::MAX, ..Default::default() })]

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
