//! The tool `find`: it lists files by name.

use std::collections::BTreeSet;

use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};

use call::arguments::{self, object, text};
use call::outcome::Outcome;
use call::{Context, Output, Prepared, Tool};
use files::names::Pattern;
use files::walk::{self, DirEntry, walk_all_files, walk_files};
use protocol::call_info::{CallInfo, CallKind};
use protocol::error::{Code, Error, Result};
use protocol::tool_spec::ToolSpec;
use text::human::on_one_line;

/// The default limit of names in one result.
const LIMIT: usize = 500;

pub(super) struct Find;

#[derive(Deserialize)]
struct Args {
    pattern: String,
    path: Option<String>,
    limit: Option<usize>,
    #[serde(default)]
    ignored: bool,
}

impl Tool for Find {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "find".into(),
            description: "Find files by a glob: *.rs matches names in every folder, and src/**/*.rs matches paths. Files that git ignores are left out.".into(),
            parameters: object(
                json!({
                    "pattern": { "type": "string" },
                    "path": { "type": "string", "description": "Folder to search (default .)" },
                    "limit": { "type": "integer", "minimum": 1, "description": "The most names (default 500)" },
                    "ignored": { "type": "boolean", "description": "Also ignored files" },
                }),
                &["pattern"],
            ),
            reads_only: true,
            streams: "reads nothing from stdin; prints one path per line, exit 1 when nothing matches".into(),
        }
    }

    fn describe(&self, args: &Value, _ctx: &Context) -> CallInfo {
        let (pattern, path) = (text(args, "pattern"), text(args, "path"));
        let target = if path.is_empty() { pattern.to_owned() } else { format!("{pattern} in {path}") };
        CallInfo::new(CallKind::Search, "find", target).with_details(args, &["limit", "ignored"])
    }

    fn prepare(&self, args: Value, ctx: &Context) -> Result<Prepared> {
        let Args { pattern, path, limit, ignored } = arguments::parse(args)?;
        let at = ctx.workspace.locate_to_read(path.as_deref().unwrap_or("."))?;
        let touch = ctx.reading(&at);
        let names = Pattern::new(&pattern).map_err(|e| {
            Error::new(
                Code::InvalidArgs,
                format!("the glob is invalid: {}", e.kind()),
                "a glob like *.rs or src/**/*.rs",
            )
            .with("input", pattern.clone())
        })?;
        Ok(Prepared::reading("find", format!("{pattern} in {}", at.display()), move |ctx| {
            ctx.workspace.is_searchable(&at)?;
            let root = ctx.workspace.path_of(&at);
            let limit = limit.unwrap_or(LIMIT);
            let found = Mutex::new((BTreeSet::new(), 0_usize));
            let is_found = |entry: &DirEntry| {
                let path = entry.path();
                let inside = ctx.workspace.below(&at, path);
                let is_named = if names.is_of_paths {
                    names.matches(inside.as_path()) || names.matches(path.strip_prefix(&root).unwrap_or(path))
                } else {
                    path.file_name().is_some_and(|name| names.matches(name.as_ref()))
                };
                // A folder on the way may have been exchanged for a symlink during the walk.
                (is_named && ctx.may_read(&inside) && ctx.workspace.is_there(&inside)).then_some(inside)
            };
            let walk = if ignored { walk_all_files } else { walk_files };
            walk(&root, &ctx.cancel, &|| {
                Box::new(|entry| {
                    if let Some(inside) = is_found(entry) {
                        let mut found = found.lock();
                        found.0.insert(inside.display());
                        found.1 += 1;
                        // Names beyond the limit are dropped at once, so that memory stays bounded.
                        if found.0.len() > limit {
                            found.0.pop_last();
                        }
                    }
                })
            });
            let (found, matches) = found.into_inner();
            let mut text: String = found.iter().map(|name| format!("{}\n", on_one_line(name))).collect();
            let more = matches - found.len();
            if more > 0 {
                text.push_str(&format!("…[{more} more; narrow the pattern or raise limit]\n"));
            }
            let hidden = if ignored {
                None
            } else {
                walk::ignored(&root, &ctx.cancel, matches, &|entry| is_found(entry).is_some())
            };
            let note = match hidden.unwrap_or_default() {
                0 => String::new(),
                1 => "1 ignored file matches too; pass ignored: true to see it".to_owned(),
                more => format!("{more} ignored files match too; pass ignored: true to see them"),
            };
            if matches > 0 && !note.is_empty() {
                text.push_str(&format!("…[{note}]\n"));
            }
            let nothing = if note.is_empty() { "no file matches".into() } else { format!("no file matches ({note})") };
            let outcome = match matches {
                0 => Outcome::Counted("no file".into()),
                _ => Outcome::counted(matches as u64, "file", "files"),
            };
            Ok(Output { exit: i32::from(matches == 0), nothing, outcome, ..Output::text(ctx, &text) })
        })
        .touching(touch))
    }

    fn run_command(&self) -> Option<&'static str> {
        Some("find")
    }

    fn example(&self) -> Value {
        json!({ "pattern": "*.rs" })
    }
}
