//! The tool `find`: it lists files by name.

use std::collections::BTreeSet;

use globset::GlobBuilder;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};

use call::arguments::{self, object, text};
use call::outcome::Outcome;
use call::{Context, Output, Prepared, Tool};
use files::walk::walk_files;
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
        CallInfo::new(CallKind::Search, "find", target).with_details(args, &["limit"])
    }

    fn prepare(&self, args: Value, ctx: &Context) -> Result<Prepared> {
        let Args { pattern, path, limit } = arguments::parse(args)?;
        let at = ctx.workspace.locate_to_read(path.as_deref().unwrap_or("."))?;
        let touch = ctx.reading(&at);
        let whole_path = pattern.contains('/');
        let glob = GlobBuilder::new(pattern.trim_start_matches("./"))
            .literal_separator(whole_path)
            .build()
            .map_err(|e| {
                Error::new(
                    Code::InvalidArgs,
                    format!("the glob is invalid: {}", e.kind()),
                    "a glob like *.rs or src/**/*.rs",
                )
                .with("input", pattern.clone())
            })?
            .compile_matcher();
        Ok(Prepared::reading("find", format!("{pattern} in {}", at.display()), move |ctx| {
            ctx.workspace.is_folder(&at)?;
            let root = ctx.workspace.path_of(&at);
            let limit = limit.unwrap_or(LIMIT);
            let found = Mutex::new((BTreeSet::new(), 0_usize));
            walk_files(&root, &ctx.cancel, &|| {
                Box::new(|entry| {
                    let path = entry.path();
                    let inside = ctx.workspace.below(&at, path);
                    let name = inside.display();
                    let matches = if whole_path {
                        let below = path.strip_prefix(&root).unwrap_or(path);
                        glob.is_match(&name) || glob.is_match(below)
                    } else {
                        path.file_name().is_some_and(|n| glob.is_match(n))
                    };
                    // A folder on the way may have been exchanged for a symlink during the walk.
                    if matches && ctx.may_read(&inside) && ctx.workspace.is_there(&inside) {
                        let mut found = found.lock();
                        found.0.insert(name);
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
            let nothing = "no file matches".into();
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
