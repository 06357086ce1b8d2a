//! Lines by pattern.

use globset::{Glob, GlobMatcher};
use grep_regex::RegexMatcherBuilder;
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkMatch};
use serde::Deserialize;
use serde_json::{Value, json};

use super::find::walk;
use super::{Context, Output, Prepared, Tool, ToolSpec, parse_args, schema};
use crate::error::{Code, Error, Result};

/// The most matching lines of one answer, unless asked otherwise.
const LIMIT: usize = 200;
/// The most of one line, characters.
const MAX_LINE: usize = 400;

pub(super) struct Grep;

#[derive(Deserialize)]
struct Args {
    pattern: String,
    path: Option<String>,
    glob: Option<String>,
    #[serde(default)]
    ignore_case: bool,
    context: Option<usize>,
    limit: Option<usize>,
}

impl Tool for Grep {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "grep",
            description: "Search file contents with a regular expression. Answers path:line:text. What .gitignore names and binary files are left out.",
            parameters: schema(
                json!({
                    "pattern": { "type": "string", "description": "Regular expression (Rust syntax)" },
                    "path": { "type": "string", "description": "File or folder to search (default: the workspace)" },
                    "glob": { "type": "string", "description": "Only files whose name matches, like *.rs" },
                    "ignore_case": { "type": "boolean", "description": "Upper and lower case are the same (default false)" },
                    "context": { "type": "integer", "minimum": 0, "maximum": 20, "description": "Lines shown around each match (default 0)" },
                    "limit": { "type": "integer", "minimum": 1, "description": "Most matching lines (default 200)" },
                }),
                &["pattern"],
            ),
            reads_only: true,
            streams: "reads nothing from stdin; path:line:text, exit 1 when nothing matches",
        }
    }

    fn prepare(&self, args: Value, ctx: &Context) -> Result<Prepared> {
        let args: Args = parse_args(&self.spec(), args)?;
        let at = ctx.workspace.locate(args.path.as_deref().unwrap_or("."))?;
        let matcher = RegexMatcherBuilder::new()
            .case_insensitive(args.ignore_case)
            .line_terminator(Some(b'\n'))
            .build(&args.pattern)
            .map_err(|e| {
                Error::new(
                    Code::InvalidArgs,
                    format!("the pattern is not a valid regular expression: {e}"),
                    "escape the special characters: \\( \\[ \\.",
                )
                .with("input", args.pattern.clone())
            })?;
        let glob = args.glob.as_deref().map(glob_of).transpose()?;
        let target = format!("{} in {}", args.pattern, at.display());
        Ok(Prepared::reading("search", target, move |ctx| {
            let around = args.context.unwrap_or(0).min(20);
            let mut searcher = SearcherBuilder::new()
                .line_number(true)
                .binary_detection(BinaryDetection::quit(0))
                .before_context(around)
                .after_context(around)
                .build();
            let mut found =
                Found { text: String::new(), path: String::new(), matches: 0, limit: args.limit.unwrap_or(LIMIT) };
            let mut search = |path: &std::path::Path| -> Result<()> {
                let Some(relative) = path.to_str() else { return Ok(()) };
                let file = ctx.workspace.locate(relative)?;
                // Gone, or no regular file: a walk over a living tree meets such.
                let Ok(contents) = ctx.workspace.read(&file) else { return Ok(()) };
                found.path = file.display();
                let _ = searcher.search_slice(&matcher, &contents.bytes, &mut found);
                Ok(())
            };
            if ctx.workspace.is_folder(&at)? {
                for entry in walk(&ctx.workspace.path_of(&at)).flatten().take_while(|_| !ctx.cancel.is_cancelled()) {
                    let wanted = entry.file_type().is_some_and(|t| t.is_file())
                        && glob.as_ref().is_none_or(|g| entry.path().file_name().is_some_and(|n| g.is_match(n)));
                    if wanted {
                        search(entry.path())?;
                    }
                }
            } else {
                search(std::path::Path::new(args.path.as_deref().unwrap_or(".")))?;
            }
            let more = found.matches.saturating_sub(found.limit);
            if more > 0 {
                found.text.push_str(&format!("…[{more} more matching lines; narrow the pattern or raise limit]\n"));
            }
            Ok(Output { exit: i32::from(found.matches == 0), ..Output::text(ctx, &found.text) })
        }))
    }
}

fn glob_of(text: &str) -> Result<GlobMatcher> {
    let glob = Glob::new(text).map_err(|e| {
        Error::new(Code::InvalidArgs, format!("the glob is not valid: {}", e.kind()), "a glob like *.rs")
            .with("input", text)
    })?;
    Ok(glob.compile_matcher())
}

struct Found {
    text: String,
    path: String,
    matches: usize,
    limit: usize,
}

impl Found {
    fn line(&mut self, number: Option<u64>, mark: char, bytes: &[u8]) {
        let line = String::from_utf8_lossy(bytes);
        let line = line.trim_end_matches(['\n', '\r']);
        let shown: String = line.chars().take(MAX_LINE).collect();
        let cut = if shown.len() < line.len() { "…" } else { "" };
        self.text.push_str(&format!("{}{mark}{}{mark}{shown}{cut}\n", self.path, number.unwrap_or(0)));
    }
}

impl Sink for &mut Found {
    type Error = std::io::Error;

    fn matched(&mut self, _searcher: &Searcher, found: &SinkMatch<'_>) -> Result<bool, std::io::Error> {
        self.matches += 1;
        if self.matches <= self.limit {
            self.line(found.line_number(), ':', found.bytes());
        }
        Ok(true)
    }

    fn context(&mut self, _searcher: &Searcher, around: &SinkContext<'_>) -> Result<bool, std::io::Error> {
        if self.matches <= self.limit {
            self.line(around.line_number(), '-', around.bytes());
        }
        Ok(true)
    }
}
