//! The tool `read`: it reads a file, a page of it, or an image.

use std::io::{BufRead as _, BufReader, Read as _};

use serde::Deserialize;
use serde_json::{Value, json};

use crate::call::arguments::{self, object, text};
use crate::call::present::{Budget, binary_file};
use crate::call::{Context, Output, Prepared, Tool};
use crate::files::images;
use crate::files::workspace::Inside;
use crate::protocol::call_info::{CallInfo, CallKind};
use crate::protocol::error::{Code, Error, Result};
use crate::protocol::event::Attachment;
use crate::protocol::remedy::{ModelNeed, Remedy};
use crate::protocol::tool_spec::ToolSpec;
use crate::text::human::human_size;
use crate::text::media::{Guard, media_type};

/// The default number of lines of one page.
const PAGE: u64 = 2_000;
/// Bytes of the result that are reserved for the note below the page.
const SAID: usize = 200;
/// The largest file whose lines are counted, bytes. A larger file is read only up to the end of the page.
const MAX_COUNTED: u64 = 64 << 20;
/// How far into a file a page may begin, bytes.
const MAX_SOUGHT: u64 = 512 << 20;

pub(super) struct Read;

#[derive(Deserialize)]
struct Args {
    path: String,
    offset: Option<u64>,
    limit: Option<u64>,
    #[serde(default)]
    line_numbers: bool,
}

impl Tool for Read {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "read".into(),
            description: "Read a text file or look at an image. Long files come in pages: the output then ends with next_offset, to pass as offset.".into(),
            parameters: object(
                json!({
                    "path": { "type": "string", "description": "File" },
                    "offset": { "type": "integer", "minimum": 1, "description": "First line, from 1 (default 1)" },
                    "limit": { "type": "integer", "minimum": 1, "description": "Max lines (default 2000)" },
                    "line_numbers": { "type": "boolean", "description": "Default false" },
                }),
                &["path"],
            ),
            reads_only: true,
            streams: "reads nothing from stdin; prints the file's text".into(),
        }
    }

    fn describe(&self, args: &Value, _ctx: &Context) -> CallInfo {
        let path = text(args, "path");
        CallInfo::new(CallKind::Read, "read", path).on([path]).with_details(args, &["offset", "limit", "line_numbers"])
    }

    fn prepare(&self, args: Value, ctx: &Context) -> Result<Prepared> {
        let Args { path, offset, limit, line_numbers } = arguments::parse(args)?;
        let at = ctx.workspace.locate(&path)?;
        let target = match offset {
            Some(from) => format!("{}:{from}", at.display()),
            None => at.display(),
        };
        let wanted = Wanted { first: offset.unwrap_or(1), limit: limit.unwrap_or(PAGE), line_numbers };
        Ok(Prepared::reading("read", target, move |ctx| {
            let (file, len, _) = ctx.workspace.open_file(&at)?;
            let shown = at.display();
            let mut reader = BufReader::with_capacity(64 << 10, file);
            let failed = |e: std::io::Error| {
                Error::new(Code::ReadFailed, format!("read `{shown}`: {e}"), "check its permissions")
            };
            // A text file may begin with the magic bytes of an image, so both checks must agree.
            let start = reader.fill_buf().map_err(failed)?;
            let mut guard = Guard::default();
            guard.see(start);
            if media_type(start).is_some() && guard.is_binary(start.len() as u64) {
                let (image, told) = look(ctx, &at)?;
                return Ok(Output { attachments: vec![image], ..Output::text(ctx, &told) });
            }
            let page = turn_to(reader.take(len), len, wanted).map_err(failed)?;
            if let Some(hash) = page.whole {
                ctx.read_set.note(&ctx.workspace, &at, hash);
            }
            if page.is_binary {
                return Err(Error {
                    remedy: format!("bash: file {shown}, or xxd {shown} | head").into(),
                    ..binary_file(&shown, &page.start, len)
                });
            }
            Ok(Output::of_files(ctx, &page.told(wanted, len)?))
        }))
    }

    fn run_command(&self) -> Option<&'static str> {
        Some("cat")
    }

    fn example(&self) -> Value {
        json!({ "path": "README.md" })
    }
}

/// Stores an image for the model; returns it with a line that describes it.
///
/// # Errors
/// `VISION_UNSUPPORTED`; `READ_FAILED` if the file is too large; `INVALID_ARGS` if it is not an image.
pub(crate) fn look(ctx: &Context, at: &Inside) -> Result<(Attachment, String)> {
    let shown = at.display();
    let (file, len, _) = ctx.workspace.open_file(at)?;
    let image = images::keep(&ctx.blobs, file, len, &shown)?;
    if !ctx.sees_images {
        let fix = Remedy::any_of([
            Remedy::ChooseModel { need: ModelNeed::Images },
            "inspect it with a program such as file or identify".into(),
        ]);
        return Err(Error::new(Code::VisionUnsupported, "this model does not accept images", fix).with("input", shown));
    }
    let told = format!("image {shown} ({}, {})\n", human_size(len), image.media_type);
    Ok((image, told))
}

#[derive(Clone, Copy)]
struct Wanted {
    first: u64,
    limit: u64,
    line_numbers: bool,
}

/// The requested lines that fit into the result. If not even the first line fits, it is cut, with a mark.
#[derive(Default)]
struct Page {
    bytes: Vec<u8>,
    /// How many bytes of the page's only line did not fit.
    cut: u64,
    /// The number of the line after the page.
    next: u64,
    /// The number of lines in the file, if they were counted.
    total: Option<u64>,
    /// The hash of the file, if all of it was read.
    whole: Option<blake3::Hash>,
    is_binary: bool,
    start: Vec<u8>,
    /// The requested line lies beyond `MAX_SOUGHT`.
    too_far: bool,
}

/// Reads up to and through a page, one buffer at a time, so memory stays bounded for any file and any line length.
fn turn_to(mut reader: impl std::io::BufRead, len: u64, wanted: Wanted) -> std::io::Result<Page> {
    let room = Budget::TYPED.bytes - SAID;
    let counts = len <= MAX_COUNTED;
    let mut page = Page::default();
    let (mut guard, mut hasher, mut read) = (Guard::default(), blake3::Hasher::new(), 0_u64);
    let (mut line, mut line_start, mut at_start, mut collecting) = (1_u64, 0, true, true);
    let mut ended = false;
    loop {
        let chunk = reader.fill_buf()?;
        if chunk.is_empty() {
            ended = true;
            break;
        }
        guard.see(chunk);
        hasher.update(chunk);
        read += chunk.len() as u64;
        let mut rest = chunk;
        while !rest.is_empty() {
            let (piece, ends) = match memchr::memchr(b'\n', rest) {
                Some(at) => (&rest[..=at], true),
                None => (rest, false),
            };
            rest = &rest[piece.len()..];
            if collecting && line >= wanted.first {
                if at_start && line - wanted.first >= wanted.limit {
                    collecting = false;
                } else {
                    if at_start && wanted.line_numbers {
                        page.bytes.extend_from_slice(format!("{line:>6}\t").as_bytes());
                    }
                    let fits = room.saturating_sub(page.bytes.len()).min(piece.len());
                    if fits < piece.len() && line > wanted.first {
                        page.bytes.truncate(line_start);
                        collecting = false;
                    } else {
                        page.bytes.extend_from_slice(&piece[..fits]);
                        page.cut += (piece.len() - fits) as u64;
                    }
                }
                if !collecting {
                    page.next = line;
                }
            }
            at_start = ends;
            if ends {
                line += 1;
                line_start = page.bytes.len();
                if collecting && page.cut > 0 {
                    (collecting, page.next) = (false, line);
                }
            }
        }
        let used = chunk.len();
        reader.consume(used);
        if guard.is_binary(read.max(1024)) || (!collecting && !counts) {
            break;
        }
        if collecting && read > MAX_SOUGHT {
            page.too_far = line < wanted.first;
            break;
        }
    }
    // A last line without a newline counts.
    let lines = if at_start { line - 1 } else { line };
    if ended {
        page.total = Some(lines);
        page.whole = Some(hasher.finalize());
    }
    if collecting {
        page.next = lines + 1;
    }
    page.is_binary = guard.is_binary(read);
    page.start = guard.start().to_vec();
    Ok(page)
}

impl Page {
    fn told(self, wanted: Wanted, len: u64) -> Result<String> {
        let Wanted { first, .. } = wanted;
        if self.too_far {
            return Err(Error::new(
                Code::ReadFailed,
                format!("line {first} is more than {} into the file", human_size(MAX_SOUGHT)),
                format!("bash: sed -n '{first},+99p', or tail, or grep"),
            )
            .with("input", first));
        }
        if let Some(total) = self.total
            && first > total.max(1)
        {
            return Err(Error::new(
                Code::InvalidArgs,
                format!("the file has {total} lines"),
                format!("an offset from 1 to {total}"),
            )
            .with("input", first));
        }
        let mut text = match String::from_utf8(self.bytes) {
            Ok(text) => text,
            // The text was valid UTF-8, so only the character at the cut can be incomplete.
            Err(e) => {
                let whole = e.utf8_error().valid_up_to();
                String::from_utf8_lossy(&e.into_bytes()[..whole]).into_owned()
            }
        };
        if self.cut > 0 {
            text.push_str(&format!("…[{} more bytes of this line]\n", self.cut));
        }
        let (last, next) = (self.next.saturating_sub(1), self.next);
        let note = match self.total {
            Some(total) if next > total => None,
            Some(total) => Some(format!("…[lines {first}-{last} of {total}; next_offset={next}]")),
            None => Some(format!("…[lines {first}-{last}; the file is {}; next_offset={next}]", human_size(len))),
        };
        if let Some(note) = note {
            if !text.ends_with('\n') {
                text.push('\n');
            }
            text.push_str(&note);
        }
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(text: &str, first: u64, limit: u64) -> Result<String> {
        let wanted = Wanted { first, limit, line_numbers: false };
        let len = text.len() as u64;
        turn_to(BufReader::with_capacity(7, text.as_bytes()), len, wanted).expect("memory").told(wanted, len)
    }

    #[test]
    fn pages_join_up_to_the_whole_file() {
        for text in [(1..=5000).map(|i| format!("line {i}\n")).collect::<String>(), "a\n".repeat(3000) + "ä"] {
            let mut joined = String::new();
            let mut next = 1;
            loop {
                let page = page(&text, next, PAGE).expect("a page");
                let (body, note) =
                    page.rsplit_once("…[").map_or((page.as_str(), None), |(body, note)| (body, Some(note)));
                joined.push_str(body);
                let Some(note) = note else { break };
                let (_, number) = note.split_once("next_offset=").expect("a note says so");
                next = number.trim_end_matches(']').parse().expect("a number");
            }
            assert_eq!(joined, text);
        }
        assert_eq!(page("a\n", 6000, 1).expect_err("beyond the end").code, Code::InvalidArgs);
        assert_eq!(page("", 1, PAGE).expect("an empty file"), "");
    }

    #[test]
    fn a_line_that_fits_no_page_is_cut_after_a_whole_character_and_the_next_page_goes_on_after_it() {
        let text = format!("{}\nnext\n", "ä".repeat(20_000));
        let first = page(&text, 1, PAGE).expect("a page");
        assert!(first.contains("ä…[24201 more bytes of this line]"), "{}", &first[first.len() - 120..]);
        assert!(first.ends_with("next_offset=2]"));
        assert_eq!(page(&text, 2, PAGE).expect("the next"), "next\n");
    }
}
