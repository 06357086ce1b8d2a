//! Which commands are proven to only read. An allow-list: known grammar, known programs, known flags; the rest asks.

use std::cell::RefCell;
use std::path::Path;

use super::Readable;
use super::effects;
use super::repository;
use super::shell::{LineEnd, Script};

mod arguments; // the words of one program
mod catalogue; // the programs of the tables, for tests
mod listed; // names that one program lists for another
mod loops; // `for` and `while read`
pub(crate) mod options; // options, their values, operands
mod place; // where a word that names a file leads
mod redirections; // what is redirected
mod scripts; // sed, awk, jq, printf
mod tables; // known programs and flags
#[cfg(test)]
mod tests;
mod walk; // the programs of a line, in order
mod words; // words to arguments

pub use catalogue::{UnaskedProgram, unasked_programs};
pub use options::Takes;
use place::Ground;
pub use place::plain;
use walk::Walk;
use words::Argument;

/// Longer command lines are not judged, bytes.
const MAX_COMMAND: usize = 2_000;
/// More programs in one line, counted as often as a loop runs them, are not judged.
const MAX_PROGRAMS: usize = 64;
/// The most folders in which one program may run.
const MAX_FOLDERS: usize = 4;

const TOO_LONG: &str = "the command is too long to be judged";
const TOO_MANY: &str = "it has too many parts to be judged";
const CONTROL: &str = "it holds a control character";

/// A program of a line, and whether it is proven to only read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judged {
    /// Its name and arguments, as far as they are known without running the line.
    pub words: Vec<String>,
    /// Why it is not proven, as a clause: `deletes target/`.
    pub verdict: Result<(), String>,
}

/// A line, program by program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Parse {
    /// In order. What a loop runs is here once.
    pub programs: Vec<Judged>,
    /// Why the line as a whole is not proven, apart from its programs.
    pub fault: Option<String>,
}

impl Parse {
    /// Proven as a whole, or why not.
    ///
    /// # Errors
    /// Why it could not be proven, as a clause that fits after "it asks because".
    pub fn verdict(&self) -> Result<(), String> {
        let mut reasons: Vec<&str> =
            self.programs.iter().filter_map(|it| it.verdict.as_ref().err()).map(String::as_str).collect();
        reasons.extend(self.fault.as_deref());
        reasons.dedup();
        // What a program does matters more than how the line is written.
        if reasons.is_empty() { Ok(()) } else { Err(reasons[..reasons.len().min(4)].join(", ")) }
    }
}

/// Proves that a line, run by bash in the workspace, changes nothing and reads nothing outside the workspace except saved
/// outputs.
///
/// # Errors
/// Why it could not be proven, as a clause that fits after "it asks because".
pub fn prove_read_only<'a>(line: &str, readable: impl Into<Readable<'a>>) -> Result<(), String> {
    parse(line, readable.into()).verdict()
}

/// Proves the same, or that every program of the line is either proven or one for whose words `is_allowed` is true. Those
/// words are exactly what the program gets: one with a part that only a running shell knows is not allowed. What stands
/// around the programs is judged as always: a redirection into a file is a write of its own.
///
/// # Errors
/// As [`prove_read_only`].
pub(super) fn prove_or_allowed(line: &str, readable: Readable<'_>, is_allowed: &IsAllowed<'_>) -> Result<(), String> {
    walk(line, readable, Some(is_allowed)).verdict()
}

/// Whether the user allows a program with these words, started in one of these folders.
type IsAllowed<'a> = dyn Fn(&[&str], &[&Path]) -> bool + 'a;

/// The words of the programs that are not proven, where they are known and all that stands in the way of the line is them.
pub(super) fn unproven(line: &str, readable: Readable<'_>) -> Option<Vec<Vec<String>>> {
    let found = RefCell::new(Vec::new());
    let note = |words: &[&str], _: &[&Path]| {
        found.borrow_mut().push(words.iter().map(|&word| word.to_owned()).collect());
        true
    };
    walk(line, readable, Some(&note)).verdict().ok().map(|()| found.take())
}

/// Judges a line of bash program by program. The judged text is the text that runs.
pub(super) fn parse(line: &str, readable: Readable<'_>) -> Parse {
    walk(line, readable, None)
}

fn walk(line: &str, readable: Readable<'_>, is_allowed: Option<&IsAllowed<'_>>) -> Parse {
    walk_on(line, &Ground::new(readable), is_allowed)
}

fn walk_on(line: &str, ground: &Ground<'_>, is_allowed: Option<&IsAllowed<'_>>) -> Parse {
    if line.len() > MAX_COMMAND {
        return Parse { fault: Some(TOO_LONG.into()), ..Parse::default() };
    }
    let script = Script::parse(line, LineEnd::Newline);
    let mut walk = Walk {
        ground,
        is_allowed,
        parse: Parse::default(),
        loops: Vec::new(),
        now: vec![ground.workspace().to_owned()],
        left: Vec::new(),
        count: 0,
        is_subshell: false,
        is_at_real_path: true,
    };
    let fault = check_between(line, &script).and_then(|()| walk.list(&script.tokens));
    if let Err(fault) = fault {
        walk.parse.fault = Some(fault);
    }
    if walk.parse.programs.is_empty() && walk.parse.fault.is_none() {
        walk.parse.fault = Some("there is no command".into());
    }
    walk.parse
}

/// Proves that a program which is started with exactly these words, without a shell, only reads as above.
///
/// # Errors
/// Why it could not be proven, as a clause that fits after "it asks because".
pub fn prove<'a>(words: &[&str], readable: impl Into<Readable<'a>>) -> Result<(), String> {
    let readable = readable.into();
    // As many bytes as the words would have on a line, with quotes.
    if words.iter().map(|word| word.len() + 3).sum::<usize>() > MAX_COMMAND {
        return Err(TOO_LONG.into());
    }
    if words.iter().any(|word| word.contains(char::is_control)) {
        return Err(CONTROL.into());
    }
    let argument = |word: &&str| Argument { text: (*word).to_owned(), is_quoted: false, has_unknown: false };
    let words: Vec<Argument> = words.iter().map(argument).collect();
    let ground = Ground::new(readable);
    judge_program(&words, &[readable.workspace], None, &ground)
}

fn judge_program(
    words: &[Argument],
    folders: &[&Path],
    fed_by: Option<&[Argument]>,
    ground: &Ground<'_>,
) -> Result<(), String> {
    let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
    for folder in folders {
        arguments::prove(words, folder, fed_by, ground).map_err(|why| effects::of(&texts).unwrap_or(why))?;
    }
    Ok(())
}

/// Between words there are only blanks and comments: a line continuation is not proven.
fn check_between(line: &str, script: &Script<'_>) -> Result<(), String> {
    let mut spans: Vec<(usize, usize)> = script.tokens.iter().map(|it| (it.span.at, it.span.end())).collect();
    spans.extend(script.comments.iter().map(|it| (it.at, it.end())));
    spans.sort_unstable();
    let mut end = 0;
    for (from, to) in spans.into_iter().chain([(line.len(), line.len())]) {
        match line[end..from].trim_start_matches([' ', '\t']) {
            "" => end = to,
            rest => return Err(words::holds(rest)),
        }
    }
    if line.contains('\0') || line.contains('\r') { Err(CONTROL.into()) } else { Ok(()) }
}

/// The repository of git that a folder belongs to, if git may run there unasked.
fn check_repository(folder: &Path, ground: &Ground<'_>) -> Result<(), String> {
    let root = ground.root_of(folder).ok_or("git would run outside the workspace")?;
    let trusts_leads = ground.trusts_leads && root == ground.workspace();
    repository::check(root, folder, trusts_leads)?;
    ground.runs_git_in(root)
}

/// The workspace, or the folder besides it, in whose repository git runs in a line that is proven to only read; `None` where it
/// runs no git.
pub fn git_root<'a>(line: &str, readable: Readable<'a>) -> Option<&'a Path> {
    let ground = Ground::new(readable);
    let _ = walk_on(line, &ground, None);
    ground.git()
}
