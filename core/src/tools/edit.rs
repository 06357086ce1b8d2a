//! Replace exact text in a file.

use serde::Deserialize;
use serde_json::{Value, json};

use super::write::replacing;
use super::{Context, Prepared, Tool, ToolSpec, parse_args, schema};
use crate::error::{Code, Error, Result};

/// The most of a line that is compared for a hint, characters.
const MAX_HINT: usize = 200;
/// The most lines that are compared for a hint.
const MAX_HINTED: usize = 2_000;

pub(super) struct Edit;

#[derive(Deserialize)]
struct Args {
    path: String,
    old_text: String,
    new_text: String,
    #[serde(default)]
    replace_all: bool,
}

impl Tool for Edit {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "edit",
            description: "Replace exact text in a file. old_text must occur exactly once, indentation included, unless replace_all is true. Everything else in the file stays byte for byte.",
            parameters: schema(
                json!({
                    "path": { "type": "string", "description": "File, relative to the workspace" },
                    "old_text": { "type": "string", "description": "Text as it stands in the file, with enough lines around it to be unique" },
                    "new_text": { "type": "string", "description": "Text to put in its place" },
                    "replace_all": { "type": "boolean", "description": "Replace every occurrence (default false)" },
                }),
                &["path", "old_text", "new_text"],
            ),
            reads_only: false,
            streams: "reads nothing from stdin; says what it changed",
        }
    }

    fn prepare(&self, args: Value, ctx: &Context) -> Result<Prepared> {
        let args: Args = parse_args(&self.spec(), args)?;
        let at = ctx.workspace.locate(&args.path)?;
        let bytes = ctx.workspace.read(&at)?.bytes;
        let text = String::from_utf8(bytes).map_err(|_| {
            Error::new(
                Code::BinaryFile,
                format!("`{}` is not UTF-8 text", at.display()),
                "bash with a tool for that encoding",
            )
            .with("input", args.path.clone())
        })?;
        let after = replace(&text, &args.old_text, &args.new_text, args.replace_all)?;
        replacing("edit", ctx, &at, after.into_bytes())
    }
}

/// Models send `\n`; where the file has `\r\n` the match and the new text follow it.
fn replace(text: &str, old: &str, new: &str, all: bool) -> Result<String> {
    if old.is_empty() {
        return Err(Error::new(
            Code::InvalidArgs,
            "old_text is empty",
            "write to make a new file, or name the text to replace",
        ));
    }
    let windows = text.contains("\r\n") && !old.contains('\r');
    let (old, new) = if windows {
        (old.replace('\n', "\r\n"), new.replace("\r\n", "\n").replace('\n', "\r\n"))
    } else {
        (old.to_owned(), new.to_owned())
    };
    if old == new {
        return Err(Error::new(Code::InvalidArgs, "old_text and new_text are the same", "a new_text that differs"));
    }
    let places: Vec<usize> = text.match_indices(&old).map(|(at, _)| at).collect();
    match places.as_slice() {
        [] => Err(no_match(text, &old)),
        [at] => Ok([&text[..*at], &new, &text[at + old.len()..]].concat()),
        _ if all => Ok(text.replace(&old, &new)),
        several => {
            let lines: Vec<usize> = several.iter().map(|at| line_of(text, *at)).collect();
            let listed = lines.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
            Err(Error::new(
                Code::NotUnique,
                format!("old_text occurs {} times, at lines {listed}", lines.len()),
                "more lines around it, or replace_all=true",
            )
            .with("lines", lines))
        }
    }
}

fn line_of(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

fn no_match(text: &str, old: &str) -> Error {
    let wanted: String =
        old.lines().find(|line| !line.trim().is_empty()).unwrap_or(old).trim().chars().take(MAX_HINT).collect();
    // Likeness costs the product of both lengths, so only lines of a like length are asked, and not too many.
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
        Some((_, number, line)) => Error::new(
            Code::NoMatch,
            "old_text does not occur in the file",
            format!("the exact text; the closest line is {number}: {}", line.trim_end()),
        )
        .with("closest_line", number),
        None => Error::new(
            Code::NoMatch,
            "old_text does not occur in the file, and no line is like it",
            "read the file first",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_named_text_changes_and_line_endings_stay() {
        assert_eq!(replace("a\r\nb\r\nc", "a\nb", "x\ny", false).expect("one place"), "x\r\ny\r\nc");
        assert_eq!(replace("\u{feff}a b a", "a", "z", true).expect("all"), "\u{feff}z b z");
    }

    #[test]
    fn a_miss_names_the_closest_line_and_an_ambiguity_every_line() {
        let miss = replace("fn main() {\n    let x = 1;\n}\n", "    let x = 2;", "y", false).expect_err("no match");
        assert_eq!((miss.code, miss.details["closest_line"].as_u64()), (Code::NoMatch, Some(2)));
        let twice = replace("a\nb\na\n", "a", "c", false).expect_err("two places");
        assert_eq!((twice.code, twice.message.as_str()), (Code::NotUnique, "old_text occurs 2 times, at lines 1, 3"));
        assert_eq!(replace("a", "", "b", false).expect_err("empty").code, Code::InvalidArgs);
    }

    proptest::proptest! {
        #[test]
        fn bytes_outside_the_replaced_text_never_change(before in "[ab\r\n]{0,12}", old in "[xyz]{1,4}", after in "[ab\r\n]{0,12}", new in "[c-f]{0,4}") {
            let text = format!("{before}{old}{after}");
            let edited = replace(&text, &old, &new, false).expect("exactly one place");
            proptest::prop_assert_eq!(edited, format!("{before}{new}{after}"));
        }
    }
}
