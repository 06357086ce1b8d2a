//! The built-in commands of the run language, each with its help, its inputs and what it touches.

use std::fmt::Write as _;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::PathBuf;

use super::chain::How;
use super::parse::Word;
use super::{Shared, unknown};
use ::files::workspace::Inside;
use ::text::encoding::{Source, Utf8Reader};
use call::Context;
use permissions::Touch;
use protocol::error::{Code, Error, nearest};

mod files; // see, ls, find, diff, test
mod grep; // lines by pattern
mod agent; // agent
mod job; // job
mod mcp; // mcp
mod lists; // sort, uniq, cut, wc
mod patch; // apply_patch
mod session; // plan, skill, memory, topic, ask, help
mod text; // cat, head, tail, echo, true, false
mod workflow; // workflow
mod writing; // write, edit

/// An input that is read line by line.
type Lines = Box<dyn BufRead + Send>;

/// The most bytes of a file or stdin that a command reads into memory.
const MAX_WHOLE: u64 = 64 << 20;
/// The most names that one glob may expand to.
const MAX_GLOB: usize = 1_000;

/// A built-in command.
#[derive(Debug)]
pub struct Builtin {
    /// The name.
    pub name: &'static str,
    /// A short description.
    pub about: &'static str,
    /// The usage, without the command's name; for a command without subcommands.
    pub usage: &'static str,
    /// The subcommands, each with its usage.
    pub subcommands: &'static [(&'static str, &'static str)],
    /// Flags and special cases, one per line.
    pub details: &'static str,
    /// A complete example line.
    pub example: &'static str,
    /// Whether it reads stdin.
    pub stdin: Stdin,
    /// Whether its words with `*`, `?` or `[` are expanded to matching file names.
    pub expands: bool,
    /// Whether its output is the user's answer, which a dry run does not ask for.
    pub(crate) asks_others: bool,
    /// What a call with these arguments touches.
    pub touches: fn(&[Word], &Context) -> Touch,
    run: fn(&'static Builtin, &[Word], &mut Io) -> Result<i32, Fault>,
}

/// Whether a command reads stdin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stdin {
    /// Never; a pipe into it is an error.
    None,
    /// When no file is named.
    Optional,
}

/// All built-in commands, in the order of the help.
pub const BUILTINS: &[Builtin] = &[
    text::CAT,
    files::SEE,
    files::LS,
    grep::GREP,
    text::HEAD,
    text::TAIL,
    lists::WC,
    lists::SORT,
    lists::UNIQ,
    lists::CUT,
    files::FIND,
    writing::WRITE,
    writing::EDIT,
    patch::APPLY_PATCH,
    files::DIFF,
    files::TEST,
    text::ECHO,
    text::TRUE,
    text::FALSE,
    session::PLAN,
    session::SKILL,
    session::MEMORY,
    session::TOPIC,
    job::JOB,
    agent::AGENT,
    workflow::WORKFLOW,
    mcp::MCP,
    session::ASK,
    session::HELP,
];

/// The touch of a command that only reads.
fn reads(_: &[Word], _: &Context) -> Touch {
    Touch::Read
}

/// The touch of a command whose arguments name what it reads. A word that is no path there, such as a pattern, may cause a
/// question at most: only the paths that are found here can be read outside the workspace.
pub(super) fn reads_of(builtin: &Builtin, args: &[Word], ctx: &Context) -> Touch {
    let is_flag = |word: &Word| word.text.starts_with('-') && word.text.len() > 1;
    let gives_pattern = args.iter().any(|word| word.text == "-e" || word.text.starts_with("--regexp"));
    let mut passed = usize::from(builtin.name == "grep" && !gives_pattern);
    let (mut paths, mut secret) = (Vec::new(), None);
    let mut is_value = false;
    for word in args {
        // `-d /` and `-e PATTERN`: the word behind these flags is their value.
        let is_of_flag = std::mem::replace(&mut is_value, ["-d", "-t", "-e", "-name", "-path"].contains(&&*word.text));
        if is_flag(word) || is_of_flag {
            continue;
        }
        if passed > 0 {
            passed -= 1;
            continue;
        }
        if let Ok(at) = ctx.workspace.locate_to_read(&word.text)
            && word.glob.is_none()
            && let Touch::Outside { paths: found, secret: hidden } = ctx.reading(&at)
        {
            paths.extend(found);
            secret = secret.or(hidden);
        }
    }
    if paths.is_empty() { Touch::Read } else { Touch::Outside { paths, secret } }
}

/// Why a command stops.
#[derive(Debug)]
pub enum Fault {
    Error(Error),
    /// Its reader closed the pipe, or the call was cancelled.
    Closed,
}

impl From<Error> for Fault {
    fn from(error: Error) -> Fault {
        Fault::Error(error)
    }
}

impl From<io::Error> for Fault {
    fn from(e: io::Error) -> Fault {
        match e.kind() {
            io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionAborted => Fault::Closed,
            _ => Fault::Error(Error::new(Code::ReadFailed, format!("read or write: {e}"), "try again")),
        }
    }
}

/// The input, output and context of a running command.
pub struct Io {
    pub stdin: Option<Box<dyn Read + Send>>,
    pub out: Box<dyn Write + Send>,
    /// Its stderr.
    pub stderr: Vec<u8>,
    /// The error of the last unreadable input; the command continues with its other inputs.
    pub missing: Option<Error>,
    pub ctx: Context,
    pub effects: Shared,
    pub how: How,
    /// Runs async work for this thread.
    pub runtime: tokio::runtime::Handle,
    /// The command's number within the line.
    pub number: usize,
    /// The paths outside the workspace that it may read.
    pub outside: Vec<PathBuf>,
    /// Whether stdin is unknown because the dry run skipped the command before it.
    pub(crate) unknown_input: bool,
}

impl Io {
    /// Resolves a path that the command reads.
    fn locate(&self, text: &str) -> Result<Inside, Error> {
        let at = self.ctx.workspace.locate_to_read(text)?;
        match at.outside() {
            // The gate has not judged it.
            Some(path) if !self.outside.iter().any(|it| it == path) => self.ctx.workspace.locate(text),
            _ => Ok(at),
        }
    }

    /// The paths that one word names; a glob may name several.
    fn paths(&self, word: &Word) -> Result<Vec<Inside>, Fault> {
        let Some(glob) = &word.glob else {
            return Ok(vec![self.locate(&word.text)?]);
        };
        let names = files::expand(&self.ctx, glob)?;
        if names.len() > MAX_GLOB {
            let message = format!("`{}` matches more than {MAX_GLOB} names", word.text);
            return Err(Error::new(Code::InvalidArgs, message, "a narrower pattern, or find").into());
        }
        if names.is_empty() {
            let message = format!("nothing matches `{}`", word.text);
            let fix = format!("find . -name '{}', or quotes for the text itself", word.text);
            return Err(Error::new(Code::NotFound, message, fix).with("input", word.text.clone()).into());
        }
        Ok(names.iter().map(|name| self.ctx.workspace.locate(name)).collect::<Result<_, _>>()?)
    }

    /// The paths that all words name. A word that names nothing does not stop the others; its error is reported last.
    fn all_paths(&mut self, it: &Builtin, words: &[Word]) -> Result<Vec<Inside>, Fault> {
        let mut all = Vec::new();
        for word in words {
            match self.paths(word) {
                Ok(paths) => all.extend(paths),
                Err(Fault::Error(error)) => self.miss(it, error),
                Err(Fault::Closed) => return Err(Fault::Closed),
            }
        }
        Ok(all)
    }

    fn miss(&mut self, it: &Builtin, error: Error) {
        if let Some(before) = self.missing.replace(error) {
            self.say(&format!("{}\n", before.for_model(it.name)));
        }
    }

    /// A file to read; `-` is stdin.
    fn open(&mut self, at: &Inside) -> Result<Lines, Fault> {
        let is_stdin = at.display() == "-" && self.stdin.is_some();
        let inner: Box<dyn Read + Send> = if is_stdin {
            Box::new(self.stdin.take().expect("just seen"))
        } else {
            let (file, len, _) = self.ctx.workspace.open_file(at)?;
            // It may grow faster than it is read.
            Box::new(file.take(len))
        };
        // A file that is read to its end enters the ReadSet with this content.
        let notes = !is_stdin && self.how == How::Really;
        let seen = notes.then(|| (Box::new(blake3::Hasher::new()), at.clone()));
        Ok(Box::new(BufReader::with_capacity(64 << 10, Watched { inner, seen, ctx: self.ctx.clone() })))
    }

    /// The inputs in order: the named files, or `None` for stdin if no file is named.
    fn inputs(&mut self, builtin: &Builtin, words: &[Word]) -> Result<Vec<Option<Inside>>, Fault> {
        if words.is_empty() {
            if self.stdin.is_none() && !self.unknown_input {
                return Err(builtin.usage_error().into());
            }
            return Ok(vec![None]);
        }
        Ok(self.all_paths(builtin, words)?.into_iter().map(Some).collect())
    }

    fn reader(&mut self, input: Option<&Inside>) -> Result<Lines, Fault> {
        match input {
            Some(at) => self.open(at),
            None => {
                let inner = self.stdin.take().unwrap_or_else(|| Box::new(io::empty()));
                Ok(Box::new(BufReader::with_capacity(64 << 10, Watched { inner, seen: None, ctx: self.ctx.clone() })))
            }
        }
    }

    /// Like `reader`, but an unreadable file does not stop the others; its error is reported at the end.
    fn next_reader(&mut self, it: &Builtin, input: Option<&Inside>) -> Result<Option<Lines>, Fault> {
        match self.reader(input) {
            Ok(reader) => Ok(Some(reader)),
            Err(Fault::Error(error)) => {
                self.miss(it, error);
                Ok(None)
            }
            Err(Fault::Closed) => Err(Fault::Closed),
        }
    }

    /// The text of an input as UTF-8, in whichever encoding it is.
    fn decoded(&mut self, input: Option<&Inside>, reader: Lines) -> Result<Lines, Fault> {
        let Some(at) = input.filter(|at| at.display() != "-") else {
            return Ok(Box::new(BufReader::new(Utf8Reader::new(Source::Output, reader))));
        };
        let mut reader = Utf8Reader::new(Source::File, reader);
        reader.start()?;
        if let Some(encoding) = reader.encoding().filter(|it| !it.is_utf8()) {
            self.say(&format!("{}: decoded from {encoding}\n", at.display()));
        }
        Ok(Box::new(BufReader::with_capacity(64 << 10, reader)))
    }

    /// Returns the error of the last unreadable input, if there was one.
    fn missed(&mut self) -> Result<(), Fault> {
        self.missing.take().map_or(Ok(()), |error| Err(Fault::Error(error)))
    }

    /// All of stdin; an error if it is larger than `most` bytes.
    fn whole_stdin(&mut self, most: u64) -> Result<Vec<u8>, Fault> {
        let mut bytes = Vec::new();
        self.reader(None)?.take(most + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > most {
            let message = format!("stdin is larger than {} MB", most >> 20);
            return Err(Error::new(Code::InvalidArgs, message, "pass a smaller part of it: head, tail, grep").into());
        }
        Ok(bytes)
    }

    fn say(&mut self, text: &str) {
        self.stderr.extend_from_slice(text.as_bytes());
    }
}

/// A reader that fails once the call is cancelled.
struct Watched {
    inner: Box<dyn Read + Send>,
    seen: Option<(Box<blake3::Hasher>, Inside)>,
    ctx: Context,
}

impl Read for Watched {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.ctx.cancel.is_cancelled() {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        let read = self.inner.read(buffer)?;
        // After a cancellation, end of file may only mean that the writer was stopped, so the input may be incomplete.
        if read == 0 && self.ctx.cancel.is_cancelled() {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        match (&mut self.seen, read) {
            (Some((hasher, at)), 0) => self.ctx.read_set.note(&self.ctx.workspace, at, hasher.finalize()),
            (Some((hasher, _)), n) => drop(hasher.update(&buffer[..n])),
            (None, _) => {}
        }
        Ok(read)
    }
}

impl Builtin {
    /// `memory --help`, or `memory search --help`, which has the same answer.
    fn asks_for_help(&self, args: &[Word]) -> bool {
        match args {
            [only] if only.text == "-h" => true,
            [sub, help] if help.text == "--help" => {
                sub.text == "--help" || self.subcommands.iter().any(|(name, _)| *name == sub.text)
            }
            [first, ..] => first.text == "--help",
            [] => false,
        }
    }

    /// Whether with these arguments it only prints its usage and so needs no approval.
    pub(super) fn only_tells(&self, args: &[Word], is_fed: bool) -> bool {
        (args.is_empty() && !is_fed) || self.asks_for_help(args)
    }

    /// Runs the command, or prints its help.
    pub fn perform(&'static self, args: &[Word], io: &mut Io) -> Result<i32, Fault> {
        if self.asks_for_help(args) {
            io.out.write_all(self.help().as_bytes())?;
            return Ok(0);
        }
        if !self.subcommands.is_empty() {
            let Some(first) = args.first() else { return Err(self.usage_error().into()) };
            if !self.subcommands.iter().any(|(name, _)| *name == first.text) {
                return Err(self.unknown_subcommand(&first.text).into());
            }
        }
        (self.run)(self, args, io)
    }

    /// Refuses a pipe into a command that does not read stdin.
    ///
    /// # Errors
    /// `USAGE`.
    pub(super) fn check_stdin(&self, is_fed: bool) -> Result<(), Error> {
        match self.stdin {
            Stdin::None if is_fed => {
                let message = format!("it does not read stdin; usage: {}", self.usage_line());
                let error = Error::new(Code::Usage, message, format!("{} --help", self.name));
                Err(error.with("command", self.name))
            }
            Stdin::None | Stdin::Optional => Ok(()),
        }
    }

    /// The usage line: `grep [-ivcnl] <pattern> [path…]`.
    pub fn usage_line(&self) -> String {
        if self.subcommands.is_empty() {
            return format!("{} {}", self.name, self.usage).trim_end().to_owned();
        }
        let names: Vec<&str> = self.subcommands.iter().map(|(name, _)| *name).collect();
        format!("{} {}", self.name, names.join("|"))
    }

    /// The usage error: `[error] memory: usage: memory search|recent|…`.
    pub(crate) fn usage_error(&self) -> Error {
        Error::new(Code::Usage, format!("usage: {}", self.usage_line()), format!("{} --help", self.name))
    }

    /// The usage error of a subcommand: `[error] memory: usage: memory search <query> …`.
    fn subcommand_usage(&self, name: &str) -> Error {
        let usage = self.subcommands.iter().find(|(it, _)| *it == name).map_or("", |(_, usage)| usage);
        let line = format!("{} {name} {usage}", self.name);
        Error::new(Code::Usage, format!("usage: {}", line.trim_end()), format!("{} --help", self.name))
    }

    fn unknown_subcommand(&self, given: &str) -> Error {
        let names = self.subcommands.iter().map(|(name, _)| *name);
        let shown: String = given.escape_debug().take(40).collect();
        let meant = nearest(given, names).map_or(String::new(), |near| format!(" (did you mean {near}?)"));
        Error::new(
            Code::Usage,
            format!("there is no `{} {shown}`{meant}; usage: {}", self.name, self.usage_line()),
            format!("{} --help", self.name),
        )
        .with("input", shown)
    }

    /// The full help text.
    pub fn help(&self) -> String {
        let mut help = format!("{} — {}\n\nUsage:\n", self.name, self.about);
        if self.subcommands.is_empty() {
            let _ = writeln!(help, "  {}", self.usage_line());
        }
        for (name, usage) in self.subcommands {
            let _ = writeln!(help, "  {}", format!("{} {name} {usage}", self.name).trim_end());
        }
        if !self.details.is_empty() {
            help.push('\n');
            for line in self.details.lines() {
                let _ = writeln!(help, "  {line}");
            }
        }
        let stdin = match self.stdin {
            Stdin::None => "not read",
            Stdin::Optional => "read when no file or text is given",
        };
        let _ = writeln!(help, "\nStdin: {stdin}.\n\nExample:\n  {}", self.example);
        help
    }
}

/// The help of one command, or the list of all commands.
fn help_for(name: Option<&str>) -> Result<String, Error> {
    let Some(name) = name else {
        let list: String = BUILTINS.iter().map(|it| format!("{:<7} {}\n", it.name, it.about)).collect();
        return Ok(format!(
            "{list}\nJoin them with | && || ; and a new line. Any other name is a program, run without a shell.\nhelp <command> prints the details of a command.\n"
        ));
    };
    BUILTINS.iter().find(|it| it.name == name).map(Builtin::help).ok_or_else(|| unknown(name))
}

/// The longest line that is held in memory, bytes.
const MAX_LINE: usize = 64 << 20;

/// Reads the next line, including its newline. A line that never ends fails at [`MAX_LINE`] instead of filling the
/// memory.
fn next_line(mut reader: &mut dyn BufRead, line: &mut Vec<u8>) -> Result<bool, Fault> {
    line.clear();
    let read = (&mut reader).take(MAX_LINE as u64 + 1).read_until(b'\n', line)?;
    if line.len() > MAX_LINE {
        let message = "a line is longer than 64 MB";
        return Err(Error::new(Code::InvalidArgs, message, "head -c or grep -o for a part of it").into());
    }
    Ok(read > 0)
}

/// The parsed flags and operands of a command.
#[derive(Debug, Default)]
struct Flags {
    set: Vec<(char, Option<String>)>,
    operands: Vec<Word>,
}

impl Flags {
    /// Parses arguments: letters without a value, letters with a value, and long names for either.
    fn parse(
        builtin: &Builtin,
        args: &[Word],
        alone: &str,
        with_value: &str,
        long: &[(&str, char)],
    ) -> Result<Flags, Error> {
        let mut flags = Flags::default();
        let mut args = args.iter();
        let unknown = |flag: &str| {
            let shown: String = flag.escape_debug().take(40).collect();
            let meant = flag.strip_prefix("--").and_then(|name| nearest(name, long.iter().map(|(name, _)| *name)));
            let meant = meant.map_or(String::new(), |near| format!(" (did you mean --{near}?)"));
            Error::new(
                Code::UnknownFlag,
                format!("{shown} is not supported{meant}; usage: {}", builtin.usage_line()),
                format!("{} --help", builtin.name),
            )
            .with("input", shown)
        };
        let lacks = |flag: &str| {
            let message = format!("{flag} needs a value; usage: {}", builtin.usage_line());
            Error::new(Code::Usage, message, format!("{} --help", builtin.name))
        };
        while let Some(word) = args.next() {
            let text = word.text.as_str();
            if text == "--" {
                flags.operands.extend(args.by_ref().cloned());
            } else if let Some(name) = text.strip_prefix("--") {
                let (name, value) = name.split_once('=').map_or((name, None), |(name, value)| (name, Some(value)));
                let (_, letter) =
                    long.iter().find(|(it, _)| *it == name).ok_or_else(|| unknown(&format!("--{name}")))?;
                let value = match value {
                    Some(_) if !with_value.contains(*letter) => {
                        let message = format!("--{name} takes no value; usage: {}", builtin.usage_line());
                        return Err(Error::new(Code::Usage, message, format!("{} --help", builtin.name)));
                    }
                    Some(value) => Some(value.to_owned()),
                    None if with_value.contains(*letter) => Some(args.next().ok_or_else(|| lacks(text))?.text.clone()),
                    None => None,
                };
                flags.set.push((*letter, value));
            } else if let Some(letters) = text.strip_prefix('-').filter(|it| !it.is_empty()) {
                let mut rest = letters.chars();
                while let Some(letter) = rest.next() {
                    if alone.contains(letter) {
                        flags.set.push((letter, None));
                    } else if with_value.contains(letter) {
                        let inline = rest.as_str();
                        let value = if inline.is_empty() {
                            args.next().ok_or_else(|| lacks(&format!("-{letter}")))?.text.clone()
                        } else {
                            inline.to_owned()
                        };
                        flags.set.push((letter, Some(value)));
                        break;
                    } else {
                        return Err(unknown(text));
                    }
                }
            } else {
                flags.operands.push(word.clone());
            }
        }
        Ok(flags)
    }

    fn has(&self, letter: char) -> bool {
        self.set.iter().any(|(it, _)| *it == letter)
    }

    fn value(&self, letter: char) -> Option<&str> {
        self.set.iter().rev().find(|(it, _)| *it == letter)?.1.as_deref()
    }

    fn number(&self, letter: char) -> Result<Option<u64>, Error> {
        self.value(letter).map(|text| number(text, &format!("-{letter}"))).transpose()
    }
}

/// Parses a number of bytes: `10`, `4K`, `1M`, `2G`.
fn bytes(text: &str, what: &str) -> Result<u64, Error> {
    let (digits, shift) = match text.as_bytes().last() {
        Some(b'K' | b'k') => (&text[..text.len() - 1], 10),
        Some(b'M') => (&text[..text.len() - 1], 20),
        Some(b'G') => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    Ok(number(digits, what)?.saturating_mul(1 << shift))
}

fn number(text: &str, what: &str) -> Result<u64, Error> {
    let digits = Some(text).filter(|text| text.bytes().all(|b| b.is_ascii_digit()));
    digits.and_then(|digits| digits.parse().ok()).ok_or_else(|| {
        let shown: String = text.escape_debug().take(40).collect();
        Error::new(Code::Usage, format!("{what} needs a number, not `{shown}`"), format!("{what} 10"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_says_how_it_is_called_and_shows_a_line_that_works() {
        let mut seen = std::collections::HashSet::new();
        for it in BUILTINS {
            assert!(seen.insert(it.name), "{} is in the list twice", it.name);
            let help = it.help();
            assert!(help.contains("Usage:") && help.contains("Example:"), "{help}");
            assert!(it.example.contains(it.name), "{}: {}", it.name, it.example);
            assert!(super::super::parse(it.example).is_ok(), "{}", it.example);
            assert!(it.about.len() <= 260 && !it.about.ends_with('.'), "{}", it.about);
            // The usage line names every subcommand.
            for (name, _) in it.subcommands {
                assert!(it.usage_line().contains(name));
            }
        }
    }
}
