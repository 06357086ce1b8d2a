//! The command `grep`: lines by basic expression, extended expression (`-E`) or fixed string (`-F`).

use std::io::Write;

use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkContextKind, SinkMatch};

use super::{Builtin, Fault, Flags, Io, Stdin, files, reads};
use crate::parse::Word;
use ::files::walk::{self, DirEntry};
use ::files::workspace::Inside;
use protocol::error::{Code, Error, Result};
use text::encoding::{Source, Utf8Reader};

pub(super) const GREP: Builtin = Builtin {
    name: "grep",
    about: "print the lines that match a pattern (-i -v -c -n -l -r -E -F)",
    usage: "[-ivcnlLwxoqsrhHEFP] [-m N] [-A N] [-B N] [-C N] [-e PATTERN] <pattern> [path…]",
    subcommands: &[],
    details: "A folder is searched recursively, without files that .gitignore excludes.\n-i  ignore case                            -v  lines that do not match\n-c  only the number of lines               -n  with line numbers\n-l  only names of files that match         -L  only names of files that do not\n-w  whole words                            -x  whole lines\n-o  only the text that matches             -q  print nothing\n-E  extended expressions (a|b)             -F  plain text\n-m N  at most N lines of a file            -A -B -C N  lines after, before, around\nThe exit code is 1 when nothing matches.",
    example: "grep -rn 'fn main' src",
    stdin: Stdin::Optional,
    expands: true,
    asks_others: false,
    touches: reads,
    run: grep,
};

/// An upper bound for context lines, larger than the number of lines in any searched file.
const MOST: usize = 1 << 30;
/// The flag letter of `--include`: a private-use character, because the flag has no short form.
const INCLUDE: char = '\u{e000}';

const LONG: &[(&str, char)] = &[
    ("ignore-case", 'i'),
    ("invert-match", 'v'),
    ("count", 'c'),
    ("line-number", 'n'),
    ("files-with-matches", 'l'),
    ("files-without-match", 'L'),
    ("word-regexp", 'w'),
    ("line-regexp", 'x'),
    ("only-matching", 'o'),
    ("quiet", 'q'),
    ("no-messages", 's'),
    ("recursive", 'r'),
    ("no-filename", 'h'),
    ("with-filename", 'H'),
    ("extended-regexp", 'E'),
    ("fixed-strings", 'F'),
    ("perl-regexp", 'P'),
    ("max-count", 'm'),
    ("after-context", 'A'),
    ("before-context", 'B'),
    ("context", 'C'),
    ("regexp", 'e'),
    ("include", INCLUDE),
];

fn grep(it: &'static Builtin, args: &[Word], io: &mut Io) -> Result<i32, Fault> {
    let mut flags = Flags::parse(it, args, "ivcnlLwxoqsrRhHEFPa", "mABCe\u{e000}", LONG)?;
    let mut patterns: Vec<String> =
        flags.set.iter().filter(|(letter, _)| *letter == 'e').filter_map(|(_, value)| value.clone()).collect();
    if patterns.is_empty() {
        if flags.operands.is_empty() {
            return Err(it.usage_error().into());
        }
        patterns.push(flags.operands.remove(0).text);
    }
    let matcher = matcher(&flags, &patterns)?;
    let includes = flags.set.iter().filter(|(letter, _)| *letter == INCLUDE).filter_map(|(_, value)| value.as_deref());
    let includes = includes.map(glob).collect::<Result<Vec<_>, Error>>()?;
    let around = flags.number('C')?.unwrap_or(0);
    let printer = Printer {
        count: flags.has('c'),
        names: flags.has('l') || flags.has('L'),
        numbers: flags.has('n'),
        only: flags.has('o'),
        inverted: flags.has('v'),
        separates: std::cell::Cell::new(false),
        quiet: flags.has('q'),
        most: flags.number('m')?.unwrap_or(u64::MAX),
        before: usize::try_from(flags.number('B')?.unwrap_or(around)).unwrap_or(MOST).min(MOST),
        after: usize::try_from(flags.number('A')?.unwrap_or(around)).unwrap_or(MOST).min(MOST),
    };
    let mut searcher = SearcherBuilder::new()
        .line_number(true)
        .invert_match(flags.has('v'))
        .binary_detection(BinaryDetection::none())
        .before_context(printer.before)
        .after_context(printer.after)
        .heap_limit(Some(64 << 20))
        .build();
    let operands = flags.operands.clone();
    if operands.is_empty() && io.stdin.is_some() && !flags.has('r') {
        let mut reader = Utf8Reader::new(Source::Output, io.reader(None)?);
        let prefix = flags.has('H').then_some("(standard input)");
        let mut sink = Lines::new(&printer, &matcher, prefix, &mut io.out);
        searcher.search_reader(&matcher, &mut reader, &mut sink)?;
        let matches = sink.finish("(standard input)", flags.has('L'))?;
        return Ok(i32::from(matches == 0));
    }
    if operands.is_empty() && io.unknown_input {
        return Ok(0);
    }
    if operands.is_empty() && !flags.has('r') {
        return Err(it.usage_error().into());
    }
    let here = [Word::from(".")];
    let named = io.all_paths(it, if operands.is_empty() { &here } else { &operands })?;
    let mut several = named.len() > 1;
    let mut found = false;
    for at in named {
        let is_stdin = at.display() == "-" && io.stdin.is_some();
        let is_folder = match io.ctx.workspace.is_folder(&at) {
            _ if is_stdin => false,
            Ok(it) => it,
            // A missing file does not stop the search of the others.
            Err(error) => {
                io.miss(it, error);
                continue;
            }
        };
        several |= is_folder;
        let prefixed = (several || flags.has('H')) && !flags.has('h');
        let mut searched = 0;
        let folder = is_folder.then(|| at.clone());
        let files: Box<dyn Iterator<Item = (Inside, String)>> = if is_folder {
            Box::new(files::below(&io.ctx, &at, operands.is_empty()).filter(|(_, shown)| {
                let name = shown.rsplit('/').next().unwrap_or(shown);
                includes.is_empty() || includes.iter().any(|glob| glob.is_match(name))
            }))
        } else {
            let shown = if is_stdin { "(standard input)".to_owned() } else { at.display() };
            Box::new(std::iter::once((at, shown)))
        };
        for (file, shown) in files {
            searched += 1;
            // Files may vanish or change their type during the walk.
            let source = if is_stdin { Source::Output } else { Source::File };
            let mut reader = match io.open(&file) {
                Ok(reader) => Utf8Reader::new(source, reader),
                Err(Fault::Closed) => return Err(Fault::Closed),
                Err(Fault::Error(_)) if is_folder => continue,
                Err(Fault::Error(error)) => {
                    io.miss(it, error);
                    continue;
                }
            };
            // A binary file in a folder is skipped, because its lines cannot be read.
            let is_binary = is_folder && memchr::memchr(0, reader.start()?).is_some();
            if is_binary {
                continue;
            }
            let prefix = prefixed.then_some(shown.as_str());
            let mut sink = Lines::new(&printer, &matcher, prefix, &mut io.out);
            searcher.search_reader(&matcher, &mut reader, &mut sink)?;
            found |= sink.finish(&shown, flags.has('L'))? > 0;
            if found && printer.quiet {
                return Ok(0);
            }
        }
        if let Some(folder) = folder {
            let ctx = io.ctx.clone();
            let is_searched = |entry: &DirEntry| {
                let name = entry.file_name().to_string_lossy();
                entry.file_type().is_some_and(|it| it.is_file())
                    && ctx.may_read(&ctx.workspace.below(&folder, entry.path()))
                    && (includes.is_empty() || includes.iter().any(|glob| glob.is_match(&*name)))
            };
            let ignored = walk::ignored(&ctx.workspace.path_of(&folder), &ctx.cancel, searched, &is_searched);
            io.say(&files::ignored_files(ignored.unwrap_or_default(), "searched"));
        }
    }
    match io.missing.take() {
        Some(error) if !flags.has('s') => Err(error.into()),
        Some(_) => Ok(2),
        None => Ok(i32::from(!found)),
    }
}

fn glob(text: &str) -> Result<globset::GlobMatcher, Error> {
    globset::Glob::new(text)
        .map(|it| it.compile_matcher())
        .map_err(|e| Error::new(Code::InvalidArgs, format!("the glob is invalid: {}", e.kind()), "a glob like '*.rs'"))
}

fn matcher(flags: &Flags, patterns: &[String]) -> Result<RegexMatcher, Error> {
    let whole: Vec<String> = patterns
        .iter()
        .flat_map(|pattern| pattern.split('\n'))
        .map(|pattern| {
            if flags.has('F') {
                escape(pattern)
            } else if flags.has('P') {
                pattern.to_owned()
            } else if flags.has('E') {
                from_extended(pattern)
            } else {
                from_basic(pattern)
            }
        })
        .map(|pattern| format!("(?:{pattern})"))
        .collect();
    let whole = whole.join("|");
    RegexMatcherBuilder::new()
        .case_insensitive(flags.has('i'))
        .word(flags.has('w'))
        .whole_line(flags.has('x'))
        .line_terminator(Some(b'\n'))
        .build(&whole)
        .map_err(|e| {
            let message = format!("the pattern is an invalid expression: {e}");
            Error::new(Code::InvalidArgs, message, "grep -F for plain text").with("input", patterns.join("\n"))
        })
}

fn escape(text: &str) -> String {
    let special = |c: char| "\\.+*?()|[]{}^$#&-~".contains(c);
    text.chars().flat_map(|c| special(c).then_some('\\').into_iter().chain([c])).collect()
}

/// Translates a POSIX basic expression. Its `\|`, `\(`, `\{` are the `|`, `(`, `{` of the regex crate.
fn from_basic(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len() + 8);
    let mut chars = pattern.chars().peekable();
    // At the start, and after `\(` or `\|`, a `*` is literal.
    let mut at_start = true;
    while let Some(c) = chars.next() {
        let was_start = std::mem::replace(&mut at_start, false);
        match c {
            '\\' => match chars.next() {
                Some(next @ ('|' | '(')) => {
                    out.push(next);
                    at_start = true;
                }
                Some(next @ (')' | '{' | '}' | '+' | '?')) => out.push(next),
                Some(next) => {
                    out.push('\\');
                    out.push(next);
                }
                None => out.push_str("\\\\"),
            },
            '|' | '(' | ')' | '{' | '}' | '+' | '?' => {
                out.push('\\');
                out.push(c);
            }
            '*' if was_start => out.push_str("\\*"),
            '^' => {
                // `^` is an anchor only at the start.
                out.push_str(if was_start { "^" } else { "\\^" });
                at_start = was_start;
            }
            '$' => {
                let ends = chars.peek().is_none()
                    || (chars.peek() == Some(&'\\') && matches!(chars.clone().nth(1), Some('|' | ')')));
                out.push_str(if ends { "$" } else { "\\$" });
            }
            '[' => copy_set(&mut chars, &mut out),
            c => out.push(c),
        }
    }
    out
}

/// Translates a POSIX extended expression, whose sets and braces differ from those of the regex crate.
fn from_extended(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len() + 8);
    let mut chars = pattern.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' => {
                out.push(c);
                out.extend(chars.next());
            }
            '[' => copy_set(&mut chars, &mut out),
            // A brace without a count is literal, and so is a repetition operator with nothing before it.
            '{' => match count(&chars) {
                Some((least, most)) => {
                    // `count` returns `{2}` as the pair 2 and 2.
                    out.push_str(&format!("{{{least},{most}}}").replace(&format!("{least},{least}"), &least));
                    for c in chars.by_ref() {
                        if c == '}' {
                            break;
                        }
                    }
                }
                None => out.push_str("\\{"),
            },
            '*' | '+' | '?' if out.is_empty() || out.ends_with(['(', '|']) => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}

/// Parses `2`, `2,`, `,2` or `1,2` up to a closing brace.
fn count(chars: &std::iter::Peekable<std::str::Chars<'_>>) -> Option<(String, String)> {
    let inner: String = chars.clone().take_while(|c| *c != '}').collect();
    if chars.clone().nth(inner.chars().count()) != Some('}') {
        return None;
    }
    let is_number = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    match inner.split_once(',') {
        None if !inner.is_empty() && is_number(&inner) => Some((inner.clone(), inner)),
        Some((least, most)) if is_number(least) && is_number(most) && inner.len() > 1 => {
            Some((if least.is_empty() { "0".to_owned() } else { least.to_owned() }, most.to_owned()))
        }
        None | Some(_) => None,
    }
}

/// Copies a set, after its `[`. Only `]`, `^`, `-` and named classes are special there; the rest is escaped.
fn copy_set(chars: &mut std::iter::Peekable<std::str::Chars<'_>>, out: &mut String) {
    out.push('[');
    if chars.peek() == Some(&'^') {
        out.push(chars.next().expect("just seen"));
    }
    if chars.peek() == Some(&']') {
        out.push_str("\\]");
        chars.next();
    }
    while let Some(inner) = chars.next() {
        match inner {
            ']' => {
                out.push(']');
                break;
            }
            '[' if chars.peek() == Some(&':') => {
                out.push('[');
                for named in chars.by_ref() {
                    out.push(named);
                    if named == ']' {
                        break;
                    }
                }
            }
            '[' | '\\' | '&' | '~' => {
                out.push('\\');
                out.push(inner);
            }
            inner => out.push(inner),
        }
    }
}

/// Which parts of a match are printed.
struct Printer {
    count: bool,
    names: bool,
    numbers: bool,
    only: bool,
    inverted: bool,
    /// Whether the next group of lines needs a separator before it.
    separates: std::cell::Cell<bool>,
    quiet: bool,
    most: u64,
    before: usize,
    after: usize,
}

impl Printer {
    fn prints_lines(&self) -> bool {
        !(self.count || self.names || self.quiet)
    }
}

struct Lines<'a> {
    printer: &'a Printer,
    matcher: &'a RegexMatcher,
    prefix: Option<&'a str>,
    out: &'a mut (dyn Write + Send),
    matches: u64,
    /// How many lines after the last match are still to be printed.
    after: usize,
    has_begun: bool,
}

impl<'a> Lines<'a> {
    fn new(
        printer: &'a Printer,
        matcher: &'a RegexMatcher,
        prefix: Option<&'a str>,
        out: &'a mut (dyn Write + Send),
    ) -> Lines<'a> {
        Lines { printer, matcher, prefix, out, matches: 0, after: 0, has_begun: false }
    }

    fn line(&mut self, number: Option<u64>, mark: char, bytes: &[u8]) -> std::io::Result<()> {
        // With context lines, matches of different files are separated too.
        let around = self.printer.before > 0 || self.printer.after > 0;
        if !std::mem::replace(&mut self.has_begun, true) && around && self.printer.separates.replace(true) {
            self.out.write_all(b"--\n")?;
        }
        if let Some(prefix) = self.prefix {
            write!(self.out, "{prefix}{mark}")?;
        }
        if self.printer.numbers {
            write!(self.out, "{}{mark}", number.unwrap_or(0))?;
        }
        self.out.write_all(bytes)?;
        if bytes.ends_with(b"\n") { Ok(()) } else { self.out.write_all(b"\n") }
    }

    /// Prints the file's name or count, where a flag asks for it.
    fn finish(self, shown: &str, without: bool) -> Result<u64, Fault> {
        let Lines { printer, prefix, out, matches, .. } = self;
        if printer.quiet {
            return Ok(matches);
        }
        if printer.names {
            if (matches > 0) != without {
                writeln!(out, "{shown}")?;
            }
            return Ok(matches);
        }
        if printer.count {
            let prefix = prefix.map_or(String::new(), |prefix| format!("{prefix}:"));
            writeln!(out, "{prefix}{matches}")?;
        }
        Ok(matches)
    }
}

impl Sink for Lines<'_> {
    type Error = std::io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> std::io::Result<bool> {
        if self.matches >= self.printer.most {
            // After the last match that counts, a matching line is only a context line.
            if self.after > 0 && self.printer.prints_lines() && !self.printer.only {
                self.after -= 1;
                self.line(found.line_number(), '-', found.bytes())?;
            }
            return Ok(self.after > 0);
        }
        self.matches += 1;
        self.after = self.printer.after;
        if self.printer.prints_lines() {
            if self.printer.only && self.printer.inverted {
                // An inverted match has no matching text to print.
            } else if self.printer.only {
                use grep_matcher::Matcher as _;
                let mut parts = Vec::new();
                let bytes = found.bytes();
                // The newline is not part of the matched text.
                let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
                let _ = self.matcher.find_iter(bytes, |m| {
                    parts.push((m.start(), m.end()));
                    true
                });
                for (from, to) in parts.into_iter().filter(|(from, to)| to > from) {
                    self.line(found.line_number(), ':', &bytes[from..to])?;
                }
            } else {
                self.line(found.line_number(), ':', found.bytes())?;
            }
        }
        // With `-q` or `-l` one match answers the question.
        Ok(!(self.printer.quiet || self.printer.names) && (self.matches < self.printer.most || self.printer.after > 0))
    }

    fn context(&mut self, _: &Searcher, around: &SinkContext<'_>) -> std::io::Result<bool> {
        if *around.kind() == SinkContextKind::After {
            if self.after == 0 {
                return Ok(self.matches < self.printer.most);
            }
            self.after -= 1;
        } else if self.matches >= self.printer.most {
            return Ok(false);
        }
        if self.printer.prints_lines() && !self.printer.only {
            self.line(around.line_number(), '-', around.bytes())?;
        }
        Ok(true)
    }

    fn context_break(&mut self, _: &Searcher) -> std::io::Result<bool> {
        if self.printer.prints_lines() && !self.printer.only && self.matches < self.printer.most {
            self.out.write_all(b"--\n")?;
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_basic_expression_means_what_it_means_to_grep() {
        for (basic, extended) in [
            (r"a\|b", "a|b"),
            ("a|b", r"a\|b"),
            ("f(x)", r"f\(x\)"),
            (r"\(ab\)*", "(ab)*"),
            ("*a", r"\*a"),
            ("a*", "a*"),
            ("^a$", "^a$"),
            ("a^b$c", r"a\^b\$c"),
            (r"a\{2\}", "a{2}"),
            ("[]a[]", r"[\]a\[]"),
            ("[[:space:]]x", "[[:space:]]x"),
            (r"[\n]", r"[\\n]"),
            (r"\.x\bw", r"\.x\bw"),
            ("a+b?", r"a\+b\?"),
        ] {
            assert_eq!(from_basic(basic), extended, "{basic}");
        }
    }
}
