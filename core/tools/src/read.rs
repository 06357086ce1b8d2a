//! The tool `read`: it reads a file, a page of it, or an image.

use std::io::{BufRead as _, BufReader, Read as _};

use serde::Deserialize;
use serde_json::{Value, json};

use call::arguments::{self, object, text};
use call::present::binary_file;
use call::{Context, Output, Prepared, Tool};
use files::images;
use files::workspace::Inside;
use protocol::call_info::{CallInfo, CallKind};
use protocol::error::{Code, Error, Result};
use protocol::event::Attachment;
use protocol::remedy::{ModelNeed, Remedy};
use protocol::tool_spec::ToolSpec;
use text::human::human_size;
use text::media::{Guard, media_type};

/// The default number of lines of one page.
const PAGE: u64 = 2_000;
/// Bytes of the result that are reserved for the notes below the page.
const SAID: usize = 400;
/// The largest file whose lines are counted, bytes. A larger file is read only up to the end of the page.
const MAX_COUNTED: u64 = 64 << 20;
/// How far into a file a page may begin, bytes.
const MAX_SOUGHT: u64 = 512 << 20;

mod page; // a page of a file, read in bounded memory

use page::{Wanted, turn_to};

pub(super) struct Read;

#[derive(Deserialize)]
struct Args {
    path: String,
    offset: Option<u64>,
    limit: Option<u64>,
    line_numbers: Option<bool>,
    column: Option<u64>,
}

impl Tool for Read {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "read".into(),
            description: "Read a text file, or see an image. A long file comes in pages of 2000 lines or 48 KB: for the next page, pass its next_offset as offset.".into(),
            parameters: object(
                json!({
                    "path": { "type": "string" },
                    "offset": { "type": "integer", "minimum": 1, "description": "Number of the first line, from 1" },
                    "limit": { "type": "integer", "minimum": 1, "description": "The most lines" },
                    "line_numbers": { "type": "boolean", "description": "Whether each line has its number (default true)" },
                    "column": { "type": "integer", "minimum": 1, "description": "Column at which to go on in a line that was cut" },
                }),
                &["path"],
            ),
            reads_only: true,
            streams: "reads nothing from stdin; prints the file's text".into(),
        }
    }

    fn describe(&self, args: &Value, _ctx: &Context) -> CallInfo {
        let path = text(args, "path");
        CallInfo::new(CallKind::Read, "read", path)
            .on([path])
            .with_details(args, &["offset", "limit", "line_numbers", "column"])
    }

    fn prepare(&self, args: Value, ctx: &Context) -> Result<Prepared> {
        let Args { path, offset, limit, line_numbers, column } = arguments::parse(args)?;
        let at = ctx.workspace.locate_to_read(&path)?;
        let touch = ctx.reading(&at);
        let target = match offset {
            Some(from) => format!("{}:{from}", at.display()),
            None => at.display(),
        };
        let (first, limit) = (offset.unwrap_or(1), limit.unwrap_or(PAGE));
        let bytes = ctx.limits.page().bytes;
        let wanted = Wanted { first, limit, column, line_numbers: line_numbers.unwrap_or(true), bytes };
        Ok(Prepared::reading("read", target, move |ctx| {
            let (file, len, _) = ctx.workspace.open_named(&at)?;
            let shown = at.display();
            let mut reader = BufReader::with_capacity(64 << 10, file);
            let failed = |e: std::io::Error| {
                Error::new(Code::ReadFailed, format!("read `{shown}`: {e}"), "check its permissions")
            };
            // A text file may begin with the magic bytes of an image, so both checks must agree.
            let start = reader.fill_buf().map_err(failed)?;
            let mut guard = Guard::of_utf8();
            guard.see(start);
            if media_type(start).is_some() && guard.is_binary_file(start.len() as u64) {
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
            let outcome = page.outcome(wanted);
            Ok(Output { outcome, ..Output::page(ctx, &page.told(wanted, len)?) })
        })
        .touching(touch))
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
pub fn look(ctx: &Context, at: &Inside) -> Result<(Attachment, String)> {
    let shown = at.display();
    let (file, len, _) = ctx.workspace.open_file(at)?;
    let (image, sides) = images::keep_measured(&ctx.blobs, file, len, &shown)?;
    if !ctx.sees_images {
        let fix = Remedy::any_of([
            Remedy::ChooseModel { need: ModelNeed::Images },
            "inspect it with a program such as file or identify".into(),
        ]);
        return Err(Error::new(Code::VisionUnsupported, "this model does not accept images", fix).with("input", shown));
    }
    let sides = sides.map_or(String::new(), |(width, height)| format!(", {width}x{height}"));
    let told = format!("image {shown} ({}, {}{sides})\n", human_size(len), image.media_type);
    Ok((image, told))
}
