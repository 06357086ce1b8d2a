//! A file, or a part of it.

use serde::Deserialize;
use serde_json::{Value, json};

use super::{Context, Output, Prepared, Tool, ToolSpec, parse_args, schema};
use crate::error::{Code, Error, Result};
use crate::present::{BUDGET, human_size};

/// Lines of one page, unless asked otherwise.
const PAGE: u64 = 2_000;

pub(super) struct Read;

#[derive(Deserialize)]
struct Args {
    path: String,
    offset: Option<u64>,
    limit: Option<u64>,
}

impl Tool for Read {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "read",
            description: "Read a text file from the workspace. Long files come in pages: the answer then ends with next_offset, to be given as offset.",
            parameters: schema(
                json!({
                    "path": { "type": "string", "description": "File, relative to the workspace" },
                    "offset": { "type": "integer", "minimum": 1, "description": "First line, from 1 (default 1)" },
                    "limit": { "type": "integer", "minimum": 1, "description": "Most lines (default 2000)" },
                }),
                &["path"],
            ),
            reads_only: true,
            streams: "reads nothing from stdin; the file's text is its output",
        }
    }

    fn prepare(&self, args: Value, ctx: &Context) -> Result<Prepared> {
        let Args { path, offset, limit } = parse_args(&self.spec(), args)?;
        let at = ctx.workspace.locate(&path)?;
        let first = offset.unwrap_or(1);
        if first == 0 || limit == Some(0) {
            return Err(Error::new(Code::InvalidArgs, "offset and limit count from 1", "offset=1"));
        }
        let target = match offset {
            Some(from) => format!("{}:{from}", at.display()),
            None => at.display(),
        };
        Ok(Prepared::reading("read", target, move |ctx| {
            let bytes = ctx.workspace.read(&at)?.bytes;
            let Ok(text) = String::from_utf8(bytes) else {
                return Err(binary(&at.display(), &ctx.workspace.read(&at)?.bytes));
            };
            if text.contains('\0') {
                return Err(binary(&at.display(), text.as_bytes()));
            }
            page(&text, first, limit.unwrap_or(PAGE)).map(|page| Output::text(ctx, &page))
        }))
    }
}

fn binary(path: &str, bytes: &[u8]) -> Error {
    let size = human_size(bytes.len() as u64);
    let kind = match bytes {
        [0x89, b'P', b'N', b'G', ..] | [0xff, 0xd8, 0xff, ..] | [b'G', b'I', b'F', b'8', ..] => "image ",
        _ => "",
    };
    Error::new(
        Code::BinaryFile,
        format!("binary {kind}file ({size})"),
        format!("bash: file {path}, or xxd {path} | head"),
    )
    .with("input", path)
}

/// As many whole lines as were asked for and fit; a longer line is cut with a mark.
fn page(text: &str, first: u64, limit: u64) -> Result<String> {
    let total = text.lines().count() as u64;
    if first > total.max(1) {
        return Err(Error::new(
            Code::InvalidArgs,
            format!("the file has {total} lines"),
            format!("offset between 1 and {total}"),
        )
        .with("input", first));
    }
    let room = BUDGET - 200;
    let mut page = String::new();
    let mut next = first;
    for line in text.split_inclusive('\n').skip(usize::try_from(first - 1).unwrap_or(usize::MAX)) {
        if next - first >= limit {
            break;
        }
        if page.len() + line.len() > room {
            if !page.is_empty() {
                break;
            }
            let mut cut = room;
            while !line.is_char_boundary(cut) {
                cut -= 1;
            }
            page.push_str(&line[..cut]);
            page.push_str(&format!("…[{} more bytes of this line]\n", line.len() - cut));
            next += 1;
            break;
        }
        page.push_str(line);
        next += 1;
    }
    if next <= total {
        if !page.ends_with('\n') {
            page.push('\n');
        }
        page.push_str(&format!("…[lines {first}-{} of {total}; next_offset={next}]", next - 1));
    }
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_join_up_to_the_whole_file() {
        let text: String = (1..=5000).map(|i| format!("line {i}\n")).collect();
        let mut joined = String::new();
        let mut next = 1;
        loop {
            let page = page(&text, next, PAGE).expect("a page");
            let (body, note) = page.rsplit_once("…[").map_or((page.as_str(), None), |(body, note)| (body, Some(note)));
            joined.push_str(body);
            let Some(note) = note else { break };
            next = note
                .split_once("next_offset=")
                .expect("a note says so")
                .1
                .trim_end_matches(']')
                .parse()
                .expect("a number");
        }
        assert_eq!(joined, text);
        assert_eq!(page(&text, 6000, 1).expect_err("beyond the end").code, Code::InvalidArgs);
        assert_eq!(page("", 1, PAGE).expect("an empty file"), "");
    }
}
