//! Files by name.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use globset::GlobBuilder;
use ignore::{DirEntry, WalkBuilder, WalkState};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Cancel, Context, Output, Prepared, Tool, ToolSpec, object, parse_args};
use crate::call::present::on_one_line;
use crate::protocol::error::{Code, Error, Result};

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
            description: "Find files by glob: *.rs matches names anywhere, src/**/*.rs matches paths. Ignored files (.gitignore) are left out.",
            parameters: object(
                json!({
                    "pattern": { "type": "string" },
                    "path": { "type": "string", "description": "Folder (default: the workspace)" },
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
                    format!("the glob is invalid: {}", e.kind()),
                    "use a glob like *.rs or src/**/*.rs",
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
                    let name = ctx.workspace.below(&at, path).display();
                    let matches = if whole_path {
                        let below = path.strip_prefix(&root).unwrap_or(path);
                        glob.is_match(&name) || glob.is_match(below)
                    } else {
                        path.file_name().is_some_and(|n| glob.is_match(n))
                    };
                    if matches {
                        let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
                        found.0.insert(name);
                        found.1 += 1;
                        // No more is kept than is told.
                        if found.0.len() > limit {
                            found.0.pop_last();
                        }
                    }
                })
            });
            let (found, matches) = found.into_inner().unwrap_or_else(PoisonError::into_inner);
            let mut text: String = found.iter().map(|name| format!("{}\n", on_one_line(name))).collect();
            let more = matches - found.len();
            if more > 0 {
                text.push_str(&format!("…[{more} more; narrow the pattern or raise limit]\n"));
            }
            Ok(Output { exit: i32::from(matches == 0), ..Output::text(ctx, &text) })
        }))
    }
}

/// Looks at each file below a folder that is not ignored, on several threads; each has its own visitor.
pub(super) fn walk_files<'a>(
    root: &Path,
    cancel: &Cancel,
    visitor: &(dyn Fn() -> Box<dyn FnMut(&DirEntry) + Send + 'a> + Sync),
) {
    builder(root).build_parallel().run(|| {
        let mut visit = visitor();
        Box::new(move |entry| {
            if cancel.is_cancelled() {
                return WalkState::Quit;
            }
            if let Ok(entry) = entry
                && entry.file_type().is_some_and(|t| !t.is_dir())
            {
                visit(&entry);
            }
            WalkState::Continue
        })
    });
}

/// Everything below a folder that is not ignored, sorted; symlinks are not followed.
pub(crate) fn walk(root: &Path) -> ignore::Walk {
    builder(root).sort_by_file_name(std::cmp::Ord::cmp).build()
}

fn builder(root: &Path) -> WalkBuilder {
    let mut builder = WalkBuilder::new(root);
    // In a repository its own rules hold, up to its border; elsewhere those that are found on the way down.
    let in_repository = root.ancestors().any(|folder| folder.join(".git").exists());
    builder
        .hidden(false)
        .require_git(in_repository)
        .parents(in_repository)
        .follow_links(false)
        .filter_entry(|entry| entry.file_name() != ".git");
    builder
}
