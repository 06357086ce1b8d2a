//! The tool `grep`: it searches lines by pattern.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkContextKind, SinkMatch};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};

use call::arguments::{self, object, text};
use call::outcome::{Outcome, quantity};
use call::{Context, Output, Prepared, Tool};
use files::walk::walk_files;
use files::workspace::Inside;
use protocol::call_info::{CallInfo, CallKind};
use protocol::error::{Code, Error, Result};
use protocol::tool_spec::ToolSpec;
use text::human::on_one_line;

/// The default limit of matching lines in one result.
const LIMIT: usize = 200;
/// The longest part of a line that is shown, characters.
const MAX_LINE: usize = 400;
/// The longest line that is searched, bytes.
const MAX_HEAP: usize = 64 << 20;

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
            name: "grep".into(),
            description: "Search the contents of files for a regex. Each match is a line path:line:text. Binary files and files that git ignores are left out.".into(),
            parameters: object(
                json!({
                    "pattern": { "type": "string", "description": "Rust regex" },
                    "path": { "type": "string", "description": "File or folder to search (default .)" },
                    "glob": { "type": "string", "description": "Only files with such names, as in *.rs" },
                    "ignore_case": { "type": "boolean" },
                    "context": { "type": "integer", "minimum": 0, "maximum": 20, "description": "How many lines around each match" },
                    "limit": { "type": "integer", "minimum": 1, "description": "The most matching lines (default 200)" },
                }),
                &["pattern"],
            ),
            reads_only: true,
            streams: "reads nothing from stdin; prints path:line:text, exit 1 when nothing matches".into(),
        }
    }

    fn describe(&self, args: &Value, _ctx: &Context) -> CallInfo {
        let (pattern, path) = (text(args, "pattern"), text(args, "path"));
        let target = if path.is_empty() { pattern.to_owned() } else { format!("{pattern} in {path}") };
        CallInfo::new(CallKind::Search, "search", target)
            .with_details(args, &["glob", "ignore_case", "context", "limit"])
    }

    fn prepare(&self, args: Value, ctx: &Context) -> Result<Prepared> {
        let args: Args = arguments::parse(args)?;
        let at = ctx.workspace.locate_to_read(args.path.as_deref().unwrap_or("."))?;
        let touch = ctx.reading(&at);
        let matcher = RegexMatcherBuilder::new()
            .case_insensitive(args.ignore_case)
            .line_terminator(Some(b'\n'))
            .build(&args.pattern)
            .map_err(|e| {
                Error::new(
                    Code::InvalidArgs,
                    format!("the pattern is an invalid regular expression: {e}"),
                    "escape the special characters: \\( \\[ \\.",
                )
                .with("input", args.pattern.clone())
            })?;
        let glob = args.glob.as_deref().map(glob_of).transpose()?;
        let target = format!("{} in {}", args.pattern, at.display());
        Ok(Prepared::reading("search", target, move |ctx| {
            let hunt = Hunt { matcher, around: args.context.unwrap_or(0).min(20), limit: args.limit.unwrap_or(LIMIT) };
            let results = Results::new(hunt.limit);
            if ctx.workspace.is_folder(&at)? {
                let wanted = |file: &Inside| {
                    let path = file.as_path();
                    let name = path.file_name().unwrap_or_default();
                    glob.as_ref()
                        .is_none_or(|(glob, whole)| glob.is_match(if *whole { path.as_os_str() } else { name }))
                };
                walk_files(&ctx.workspace.path_of(&at), &ctx.cancel, &|| {
                    let mut searcher = hunt.searcher();
                    let (hunt, results, wanted, at) = (&hunt, &results, &wanted, &at);
                    Box::new(move |entry| {
                        let file = ctx.workspace.below(at, entry.path());
                        // Files may vanish or change their type during the walk.
                        if entry.file_type().is_some_and(|t| t.is_file())
                            && wanted(&file)
                            && ctx.may_read(&file)
                            && let Ok((opened, ..)) = ctx.workspace.open_file(&file)
                        {
                            results.add(
                                file.as_path(),
                                hunt.search(&mut searcher, &on_one_line(&file.display()), &opened),
                            );
                        }
                    })
                });
            } else {
                let (opened, ..) = ctx.workspace.open_file(&at)?;
                results.add(at.as_path(), hunt.search(&mut hunt.searcher(), &at.display(), &opened));
            }
            let files = results.files();
            let (text, matches, searched) = results.told();
            let outcome = match matches {
                0 => Outcome::Counted("no match".into()),
                _ => Outcome::Counted(format!(
                    "{} in {}",
                    quantity(matches as u64, "match", "matches"),
                    quantity(files, "file", "files")
                )),
            };
            let nothing =
                if searched == 1 { "no match in 1 file".into() } else { format!("no match in {searched} files") };
            // As in grep, exit code 1 means that no line matches.
            Ok(Output { exit: i32::from(matches == 0), nothing, outcome, ..Output::of_files(ctx, &text) })
        })
        .touching(touch))
    }

    fn run_command(&self) -> Option<&'static str> {
        Some("grep")
    }

    fn example(&self) -> Value {
        json!({ "pattern": "fn main", "glob": "*.rs" })
    }
}

/// The pattern to search for, and the limits of matches and context lines.
struct Hunt {
    matcher: RegexMatcher,
    around: usize,
    limit: usize,
}

impl Hunt {
    fn searcher(&self) -> Searcher {
        SearcherBuilder::new()
            .line_number(true)
            .binary_detection(BinaryDetection::quit(0))
            .before_context(self.around)
            .after_context(self.around)
            .heap_limit(Some(MAX_HEAP))
            .build()
    }

    fn search(&self, searcher: &mut Searcher, shown: &str, file: &std::fs::File) -> Matches {
        let mut found = Matches {
            text: String::new(),
            path: shown.to_owned(),
            matches: 0,
            limit: self.limit,
            before: String::new(),
        };
        if let Err(e) = searcher.search_file(&self.matcher, file, &mut found) {
            found.text.push_str(&format!("{shown}: search stopped early: {e}\n"));
        }
        found
    }
}

/// Matches by path. Files are searched in parallel and printed in order; files beyond the limit are dropped at once.
struct Results {
    limit: usize,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    files: BTreeMap<PathBuf, Matches>,
    /// Matching lines of the retained files; `matches` counts those of all files.
    lines: usize,
    matches: usize,
    /// Files with a match.
    matching: u64,
    /// Files that were searched.
    searched: usize,
}

impl Results {
    fn new(limit: usize) -> Results {
        Results { limit, kept: Mutex::default() }
    }

    fn add(&self, path: &Path, found: Matches) {
        let mut kept = self.kept.lock();
        kept.searched += 1;
        if found.text.is_empty() {
            return;
        }
        kept.matches += found.matches;
        kept.matching += u64::from(found.matches > 0);
        kept.lines += found.matches;
        kept.files.insert(path.to_owned(), found);
        // Drop the last file if the files before it reach the limit.
        while let Some(last) = kept.files.last_entry() {
            let lines = last.get().matches;
            if kept.lines - lines < self.limit {
                break;
            }
            kept.lines -= lines;
            kept.files.pop_last();
        }
    }

    /// The number of files with a match.
    fn files(&self) -> u64 {
        self.kept.lock().matching
    }

    /// The result's text, the number of matching lines in all files, and the number of files that were searched.
    fn told(self) -> (String, usize, usize) {
        let kept = self.kept.into_inner();
        let mut text = String::new();
        let mut shown = 0;
        for found in kept.files.into_values() {
            let room = self.limit - shown.min(self.limit);
            shown += found.matches.min(room);
            text.push_str(if found.matches <= room { &found.text } else { first_matches(&found, room) });
        }
        if kept.matches > shown {
            text.push_str(&format!(
                "…[{} more matching lines; narrow the pattern or raise limit]\n",
                kept.matches - shown
            ));
        }
        (text, kept.matches, kept.searched)
    }
}

/// A file's text, cut after `most` matching lines.
fn first_matches(found: &Matches, most: usize) -> &str {
    let mut seen = 0;
    let mut at = 0;
    for line in found.text.split_inclusive('\n') {
        // A matching line is `path:number:text`, a context line `path-number-text`.
        let is_match = line[found.path.len().min(line.len())..].starts_with(':');
        seen += usize::from(is_match);
        if seen > most {
            break;
        }
        at += line.len();
    }
    &found.text[..at]
}

/// Compiles a glob. The flag is true for a glob with a slash, which matches against the whole path and not only the
/// name.
fn glob_of(text: &str) -> Result<(GlobMatcher, bool)> {
    let whole = text.contains('/');
    let glob = GlobBuilder::new(text.trim_start_matches("./")).literal_separator(whole).build().map_err(|e| {
        Error::new(Code::InvalidArgs, format!("the glob is invalid: {}", e.kind()), "a glob like *.rs")
            .with("input", text)
    })?;
    Ok((glob.compile_matcher(), whole))
}

struct Matches {
    text: String,
    path: String,
    matches: usize,
    limit: usize,
    /// Context lines before the next match; dropped if that match exceeds the limit.
    before: String,
}

impl Matches {
    fn line(&self, number: Option<u64>, mark: char, bytes: &[u8]) -> String {
        let line = String::from_utf8_lossy(bytes);
        let line = line.trim_end_matches(['\n', '\r']);
        let shown: String = line.chars().take(MAX_LINE).collect();
        let cut = if shown.len() < line.len() { "…" } else { "" };
        format!("{}{mark}{}{mark}{shown}{cut}\n", self.path, number.unwrap_or(0))
    }
}

impl Sink for Matches {
    type Error = std::io::Error;

    fn matched(&mut self, _searcher: &Searcher, found: &SinkMatch<'_>) -> Result<bool, std::io::Error> {
        self.matches += 1;
        let before = std::mem::take(&mut self.before);
        if self.matches <= self.limit {
            let line = self.line(found.line_number(), ':', found.bytes());
            self.text.push_str(&before);
            self.text.push_str(&line);
        }
        Ok(true)
    }

    fn context(&mut self, _searcher: &Searcher, around: &SinkContext<'_>) -> Result<bool, std::io::Error> {
        if self.matches <= self.limit {
            let line = self.line(around.line_number(), '-', around.bytes());
            match around.kind() {
                SinkContextKind::Before => self.before.push_str(&line),
                SinkContextKind::After | SinkContextKind::Other => self.text.push_str(&line),
            }
        }
        Ok(true)
    }
}
