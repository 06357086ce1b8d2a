//! The tool `grep`: it searches lines by pattern.

use std::collections::BTreeMap;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use grep_matcher::Matcher as _;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkContextKind, SinkMatch};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use call::arguments::{self, object, text};
use call::outcome::{Outcome, quantity};
use call::{Context, Output, Prepared, Tool};
use files::names::Pattern;
use files::walk::{self, DirEntry, walk_all_files, walk_files};
use files::workspace::Inside;
use protocol::call_info::{CallInfo, CallKind};
use protocol::error::{Code, Error, Result};
use protocol::tool_spec::ToolSpec;
use text::encoding::{Source, Utf8Reader};
use text::human::on_one_line;

/// The default limit of matching lines in one result.
const LIMIT: usize = 200;
/// The longest part of a line that is shown, characters.
const MAX_LINE: usize = 400;
/// How much of a long line is shown before its match, bytes.
const BEFORE: usize = 120;
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
    #[serde(default)]
    ignored: bool,
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
                    "ignored": { "type": "boolean", "description": "Also ignored files" },
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
            .with_details(args, &["glob", "ignore_case", "context", "limit", "ignored"])
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
            let mut hidden = 0;
            if ctx.workspace.is_searchable(&at)? {
                let root = ctx.workspace.path_of(&at);
                // Files may vanish or change their type during the walk.
                let wanted = |entry: &DirEntry| {
                    let file = ctx.workspace.below(&at, entry.path());
                    let is_named = glob.as_ref().is_none_or(|names| names.matches(of(&file, names)));
                    (entry.file_type().is_some_and(|t| t.is_file()) && is_named && ctx.may_read(&file)).then_some(file)
                };
                let visible = AtomicUsize::new(0);
                let walk = if args.ignored { walk_all_files } else { walk_files };
                walk(&root, &ctx.cancel, &|| {
                    let mut searcher = hunt.searcher();
                    let (hunt, results, wanted, visible) = (&hunt, &results, &wanted, &visible);
                    Box::new(move |entry| {
                        let Some(file) = wanted(entry) else { return };
                        visible.fetch_add(1, Ordering::Relaxed);
                        if let Ok((opened, len, _)) = ctx.workspace.open_file(&file) {
                            let opened = Bounded { file: opened.take(len), cancel: &ctx.cancel };
                            results
                                .add(file.as_path(), hunt.search(&mut searcher, &on_one_line(&file.display()), opened));
                        }
                    })
                });
                if !args.ignored {
                    let visible = visible.into_inner();
                    hidden = walk::ignored(&root, &ctx.cancel, visible, &|entry| wanted(entry).is_some())
                        .unwrap_or_default();
                }
            } else {
                let (opened, len, _) = ctx.workspace.open_file(&at)?;
                let opened = Bounded { file: opened.take(len), cancel: &ctx.cancel };
                results.add(at.as_path(), hunt.search(&mut hunt.searcher(), &at.display(), opened));
            }
            let files = results.files();
            let (mut text, matches, searched) = results.told();
            let note = match hidden {
                0 => String::new(),
                1 => "1 ignored file was not searched; pass ignored: true to search it".to_owned(),
                more => format!("{more} ignored files were not searched; pass ignored: true to search them"),
            };
            if matches > 0 && !note.is_empty() {
                text.push_str(&format!("…[{note}]\n"));
            }
            let outcome = match matches {
                0 => Outcome::Counted("no match".into()),
                _ => Outcome::Counted(format!(
                    "{} in {}",
                    quantity(matches as u64, "match", "matches"),
                    quantity(files, "file", "files")
                )),
            };
            let nothing =
                if searched == 1 { "no match in 1 file".to_owned() } else { format!("no match in {searched} files") };
            let nothing = if note.is_empty() { nothing } else { format!("{nothing} ({note})") };
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

    /// Searches a file as UTF-8, in whichever encoding it is.
    fn search(&self, searcher: &mut Searcher, shown: &str, file: Bounded<'_>) -> Matches {
        let found = Matches {
            text: String::new(),
            path: shown.to_owned(),
            matches: 0,
            limit: self.limit,
            before: String::new(),
        };
        let mut collector = Collector { matcher: &self.matcher, found };
        let ended = searcher.search_reader(&self.matcher, Utf8Reader::new(Source::File, file), &mut collector);
        let mut found = collector.found;
        if let Err(e) = ended {
            found.text.push_str(&format!("{shown}: search stopped early: {e}\n"));
        }
        found
    }
}

/// A file up to the length that it had when it was opened, since it may grow for ever. It ends at once when the call is cancelled.
struct Bounded<'a> {
    file: io::Take<std::fs::File>,
    cancel: &'a CancellationToken,
}

impl io::Read for Bounded<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if self.cancel.is_cancelled() { Ok(0) } else { self.file.read(bytes) }
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

/// Reads a pattern for the names of files, or for their paths.
fn glob_of(text: &str) -> Result<Pattern> {
    Pattern::new(text).map_err(|e| {
        Error::new(Code::InvalidArgs, format!("the glob is invalid: {}", e.kind()), "a glob like *.rs")
            .with("input", text)
    })
}

/// What of a file such a pattern is compared with.
fn of<'a>(file: &'a Inside, names: &Pattern) -> &'a Path {
    let path = file.as_path();
    if names.is_of_paths { path } else { path.file_name().map_or(path, Path::new) }
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

    /// A line with a match. Of a long one the part around the first match is shown, with the match's column as `read` takes it.
    fn matching_line(&self, number: Option<u64>, bytes: &[u8], matcher: &RegexMatcher) -> String {
        let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        let is_short = bytes.len() <= MAX_LINE || String::from_utf8_lossy(bytes).chars().count() <= MAX_LINE;
        let found = if is_short { None } else { matcher.find(bytes).ok().flatten() };
        let Some(found) = found else { return self.line(number, ':', bytes) };
        let mut more = 0_usize;
        let count = matcher.find_iter_at(bytes, found.end().max(found.start() + 1), |_| {
            more += 1;
            true
        });
        let more =
            if more == 0 || count.is_err() { String::new() } else { format!(", {more} more matches in this line") };
        let from = start_of_char(bytes, found.start().saturating_sub(BEFORE));
        let to = start_of_char(bytes, (from + MAX_LINE).max(found.end().min(from + MAX_LINE * 2)).min(bytes.len()));
        let window = String::from_utf8_lossy(&bytes[from..to]);
        let (before, after) = (if from > 0 { "…" } else { "" }, if to < bytes.len() { "…" } else { "" });
        let (path, number, column) = (&self.path, number.unwrap_or(0), found.start() + 1);
        format!("{path}:{number}:[column {column}{more}] {before}{}{after}\n", window.trim_end_matches('\r'))
    }
}

/// The start of the character that lies at this byte.
fn start_of_char(bytes: &[u8], at: usize) -> usize {
    let is_start = |at: usize| bytes.get(at).is_none_or(|byte| byte & 0xc0 != 0x80);
    (0..4).filter_map(|back| at.checked_sub(back)).find(|at| is_start(*at)).unwrap_or(at)
}

/// Takes the lines of one file as the search finds them.
struct Collector<'a> {
    matcher: &'a RegexMatcher,
    found: Matches,
}

impl Sink for Collector<'_> {
    type Error = std::io::Error;

    fn matched(&mut self, _searcher: &Searcher, line: &SinkMatch<'_>) -> Result<bool, std::io::Error> {
        let found = &mut self.found;
        found.matches += 1;
        let before = std::mem::take(&mut found.before);
        if found.matches <= found.limit {
            let line = found.matching_line(line.line_number(), line.bytes(), self.matcher);
            found.text.push_str(&before);
            found.text.push_str(&line);
        }
        Ok(true)
    }

    fn context(&mut self, _searcher: &Searcher, around: &SinkContext<'_>) -> Result<bool, std::io::Error> {
        let found = &mut self.found;
        if found.matches <= found.limit {
            let line = found.line(around.line_number(), '-', around.bytes());
            match around.kind() {
                SinkContextKind::Before => found.before.push_str(&line),
                SinkContextKind::After | SinkContextKind::Other => found.text.push_str(&line),
            }
        }
        Ok(true)
    }
}
