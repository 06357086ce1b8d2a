//! Files by name.

use globset::GlobBuilder;
use ignore::WalkBuilder;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Context, Output, Prepared, Tool, ToolSpec, parse_args, schema};
use crate::error::{Code, Error, Result};

/// The most names of one answer, unless asked otherwise.
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
            name: "find",
            description: "Find files by glob: *.rs matches names anywhere, src/**/*.rs matches paths. What .gitignore names is left out.",
            parameters: schema(
                json!({
                    "pattern": { "type": "string", "description": "Glob for the name, or for the path when it has a /" },
                    "path": { "type": "string", "description": "Folder to search (default: the workspace)" },
                    "limit": { "type": "integer", "minimum": 1, "description": "Most names (default 500)" },
                }),
                &["pattern"],
            ),
            reads_only: true,
            streams: "reads nothing from stdin; one path a line, exit 1 when nothing matches",
        }
    }

    fn prepare(&self, args: Value, ctx: &Context) -> Result<Prepared> {
        let Args { pattern, path, limit } = parse_args(&self.spec(), args)?;
        let at = ctx.workspace.locate(path.as_deref().unwrap_or("."))?;
        let whole_path = pattern.contains('/');
        let glob = GlobBuilder::new(pattern.trim_start_matches("./"))
            .literal_separator(whole_path)
            .build()
            .map_err(|e| {
                Error::new(
                    Code::InvalidArgs,
                    format!("the glob is not valid: {}", e.kind()),
                    "a glob like *.rs or src/**/*.rs",
                )
                .with("input", pattern.clone())
            })?
            .compile_matcher();
        Ok(Prepared::reading("find", format!("{pattern} in {}", at.display()), move |ctx| {
            ctx.workspace.is_folder(&at)?;
            let root = ctx.workspace.path_of(&at);
            let limit = limit.unwrap_or(LIMIT);
            let mut found = Vec::new();
            for entry in walk(&root).flatten().take_while(|_| !ctx.cancel.is_cancelled()) {
                let relative = entry.path().strip_prefix(ctx.workspace.root()).unwrap_or(entry.path());
                let below = entry.path().strip_prefix(&root).unwrap_or(entry.path());
                let matches = if whole_path {
                    glob.is_match(relative) || glob.is_match(below)
                } else {
                    entry.path().file_name().is_some_and(|n| glob.is_match(n))
                };
                if matches && entry.file_type().is_some_and(|t| !t.is_dir()) {
                    found.push(relative.to_string_lossy().escape_debug().to_string());
                }
            }
            let more = found.len().saturating_sub(limit);
            found.truncate(limit);
            let mut text = found.iter().map(|name| format!("{name}\n")).collect::<String>();
            if more > 0 {
                text.push_str(&format!("…[{more} more; narrow the pattern or raise limit]\n"));
            }
            Ok(Output { exit: i32::from(found.is_empty()), ..Output::text(ctx, &text) })
        }))
    }
}

/// Everything below a folder that is not ignored, sorted; symlinks are not followed.
pub(crate) fn walk(root: &std::path::Path) -> ignore::Walk {
    WalkBuilder::new(root)
        .hidden(false)
        .require_git(false)
        .follow_links(false)
        .filter_entry(|entry| entry.file_name() != ".git")
        .sort_by_file_name(std::cmp::Ord::cmp)
        .build()
}
