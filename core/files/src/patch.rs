//! Patches of several files, in the two notations that models write: `*** Begin Patch`, and unified diffs.
//!
//! The first notation is that of Codex. Its hunks have no line numbers: the lines themselves, and the lines behind `@@`,
//! say where a hunk belongs. [`parse`] accepts both notations; [`fit()`] finds the place of each hunk.

use protocol::error::{Code, Error, Result};

mod fit; // the place of each hunk in a file
#[cfg(test)]
mod tests;

pub use fit::fit;

/// What a patch does to one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// The file, as the patch names it.
    pub path: String,
    pub what: What,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// A new file with this text.
    Create(String),
    /// The file is removed. The hunks of a unified diff hold all its lines; the other notation has none.
    Delete(Vec<Hunk>),
    /// The file is changed, and may get another name.
    Update { to: Option<String>, hunks: Vec<Hunk> },
}

/// Lines that are replaced together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hunk {
    /// Its first line in the patch, from 1.
    pub line: usize,
    /// Lines of the file that stand above it, outermost first.
    headings: Vec<String>,
    /// The number of its first old line, from 1, where the patch says one.
    at: Option<usize>,
    /// It ends with the file.
    ends_file: bool,
    lines: Vec<Line>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Line {
    side: Side,
    text: String,
    /// No newline follows it; then it is the last line of its side.
    open: bool,
    /// The patch has an empty line here. It may stand between two hunks and belong to none.
    is_empty: bool,
}

/// Which versions of the file have a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Old,
    New,
    Both,
}

impl Hunk {
    /// Whether it changes anything.
    pub fn changes(&self) -> bool {
        self.lines.iter().any(|line| line.side != Side::Both)
    }

    fn push(&mut self, text: &str) -> bool {
        let side = match text.chars().next() {
            None | Some(' ') => Side::Both,
            Some('-') => Side::Old,
            Some('+') => Side::New,
            // `\ No newline at end of file`, in any language.
            Some('\\') if text.starts_with("\\ ") => {
                if let Some(last) = self.lines.last_mut() {
                    last.open = true;
                }
                return true;
            }
            Some(_) => return false,
        };
        let line =
            Line { side, text: text.get(1..).unwrap_or_default().to_owned(), open: false, is_empty: text.is_empty() };
        self.lines.push(line);
        true
    }
}

/// Reads a patch.
///
/// # Errors
/// `INVALID_ARGS`, with each line that is not understood.
pub fn parse(patch: &str) -> Result<Vec<Section>> {
    let mut lines: Vec<&str> = patch.lines().collect();
    // `lines` strips the return of `\r\n`. A patch with both ends of line keeps its returns as text.
    if patch.contains("\r\n") && patch.split_inclusive('\n').any(|line| line.ends_with('\n') && !line.ends_with("\r\n"))
    {
        lines = patch.split('\n').collect();
    }
    let mut reader = Reader { lines, at: 0, sections: Vec::new(), faults: Vec::new() };
    if reader.lines.iter().any(|line| marker(line).is_some()) {
        reader.envelope();
    } else {
        reader.unified();
    }
    let Reader { sections, faults, .. } = reader;
    if !faults.is_empty() {
        let told: Vec<String> =
            faults.iter().take(10).map(|(line, why)| format!("line {line} of the patch {why}")).collect();
        let fix = "begin each line of a hunk with a blank, - or +, and each line of a new file with +";
        return Err(Error::new(Code::InvalidArgs, told.join("\n"), fix));
    }
    if sections.is_empty() {
        let message = "the patch names no file";
        return Err(Error::new(Code::InvalidArgs, message, NOTATION));
    }
    let is_no_text = |section: &Section| {
        let to = if let What::Update { to: Some(to), .. } = &section.what { to } else { "" };
        section.path.contains('\u{fffd}') || to.contains('\u{fffd}')
    };
    if !patch.contains('\u{fffd}') && sections.iter().any(is_no_text) {
        let message = "the patch names a file whose name is not UTF-8";
        return Err(Error::new(Code::InvalidArgs, message, "the program patch in bash"));
    }
    Ok(sections)
}

/// The notation in one line, for errors.
const NOTATION: &str =
    "*** Begin Patch, *** Update File: PATH, @@, lines that begin with a blank, - or +, *** End Patch";

/// The paths that a patch names, also one that cannot be read as a whole.
pub fn paths(patch: &str) -> Vec<String> {
    let mut paths = Vec::new();
    let mut add = |path: &str| {
        if !path.is_empty() && !paths.iter().any(|it| it == path) {
            paths.push(path.to_owned());
        }
    };
    match parse(patch) {
        Ok(sections) => {
            for it in &sections {
                add(&it.path);
                if let What::Update { to: Some(to), .. } = &it.what {
                    add(to);
                }
            }
        }
        Err(_) => {
            for line in patch.lines() {
                match marker(line) {
                    Some(Marker::Add(path) | Marker::Delete(path) | Marker::Update(path) | Marker::Move(path)) => {
                        add(path)
                    }
                    Some(Marker::Begin | Marker::End | Marker::EndOfFile) | None => {}
                }
            }
        }
    }
    paths
}

/// A line of the first notation that is no text of a file.
enum Marker<'a> {
    Begin,
    End,
    Add(&'a str),
    Delete(&'a str),
    Update(&'a str),
    Move(&'a str),
    EndOfFile,
}

fn marker(line: &str) -> Option<Marker<'_>> {
    let rest = line.strip_prefix("*** ")?.trim_end();
    let path = |name: &str| rest.strip_prefix(name).map(str::trim);
    match rest {
        "Begin Patch" => return Some(Marker::Begin),
        "End Patch" => return Some(Marker::End),
        "End of File" => return Some(Marker::EndOfFile),
        _ => {}
    }
    path("Add File:")
        .map(Marker::Add)
        .or_else(|| path("Create File:").map(Marker::Add))
        .or_else(|| path("Delete File:").map(Marker::Delete))
        .or_else(|| path("Update File:").map(Marker::Update))
        .or_else(|| path("Move to:").map(Marker::Move))
}

struct Reader<'a> {
    lines: Vec<&'a str>,
    at: usize,
    sections: Vec<Section>,
    /// Lines, from 1, that are not understood.
    faults: Vec<(usize, &'static str)>,
}

impl<'a> Reader<'a> {
    fn peek(&self) -> Option<&'a str> {
        self.lines.get(self.at).copied()
    }

    fn next(&mut self) -> Option<&'a str> {
        let line = self.peek()?;
        self.at += 1;
        Some(line)
    }

    /// Notes that the line before the present one is not understood.
    fn fault(&mut self, why: &'static str) {
        self.faults.push((self.at, why));
    }

    fn envelope(&mut self) {
        // What stands before the patch, such as `apply_patch <<'EOF'`, is no part of it.
        if let Some(begin) = self.lines.iter().position(|line| matches!(marker(line), Some(Marker::Begin))) {
            self.skip_to(begin);
        }
        while let Some(line) = self.next() {
            match marker(line) {
                Some(Marker::Begin | Marker::EndOfFile) => {}
                // Below it may stand another patch; other lines, such as `EOF`, do not belong to it.
                Some(Marker::End) => {
                    let next =
                        self.lines[self.at..].iter().position(|line| matches!(marker(line), Some(Marker::Begin)));
                    self.skip_to(next.map_or(self.lines.len(), |next| self.at + next));
                }
                Some(Marker::Add(path)) => {
                    let text = self.added();
                    self.sections.push(Section { path: path.into(), what: What::Create(text) });
                }
                Some(Marker::Delete(path)) => {
                    self.sections.push(Section { path: path.into(), what: What::Delete(Vec::new()) });
                }
                Some(Marker::Update(path)) => {
                    let to = match self.peek().and_then(marker) {
                        Some(Marker::Move(to)) => {
                            self.at += 1;
                            Some(to.to_owned())
                        }
                        Some(_) | None => None,
                    };
                    let hunks = self.updated(path);
                    self.sections.push(Section { path: path.into(), what: What::Update { to, hunks } });
                }
                Some(Marker::Move(_)) => self.fault("is a `*** Move to:` that does not follow `*** Update File:`"),
                None if line.trim().is_empty() => {}
                None => self
                    .fault("belongs to no file: `*** Update File:`, `*** Add File:` or `*** Delete File:` comes first"),
            }
        }
    }

    /// Goes on at this line. A part of a patch may not be skipped.
    fn skip_to(&mut self, line: usize) {
        while self.at < line {
            self.at += 1;
            // A second end ends nothing.
            if marker(self.lines[self.at - 1]).is_some_and(|it| !matches!(it, Marker::End)) {
                self.fault("stands outside of `*** Begin Patch` and `*** End Patch`");
            }
        }
    }

    /// The text of a new file.
    fn added(&mut self) -> String {
        let mut text = String::new();
        while let Some(line) = self.peek().filter(|line| marker(line).is_none()) {
            self.at += 1;
            match line.strip_prefix('+') {
                Some(line) => {
                    text.push_str(line);
                    text.push('\n');
                }
                None if line.trim().is_empty() => {
                    // An empty line before the next file is none of this one.
                    let goes_on = self.lines[self.at..].iter().find(|line| !line.trim().is_empty());
                    if goes_on.is_some_and(|line| line.starts_with('+')) {
                        text.push('\n');
                    }
                }
                None => self.fault("is a line of a new file, and does not begin with +"),
            }
        }
        text
    }

    fn updated(&mut self, path: &str) -> Vec<Hunk> {
        // Some models put the header of a unified diff here too. Other names are lines that begin with `--` and `++`.
        if let [old, new, ..] = &self.lines[self.at..]
            && let (Some(old), Some(new)) = (old.strip_prefix("--- "), new.strip_prefix("+++ "))
            && names_of(old, new) == (Some(path.to_owned()), Some(path.to_owned()))
        {
            self.at += 2;
        }
        let mut hunks: Vec<Hunk> = Vec::new();
        while let Some(line) = self.peek() {
            match marker(line) {
                Some(Marker::EndOfFile) => {
                    self.at += 1;
                    if let Some(hunk) = hunks.last_mut() {
                        hunk.ends_file = true;
                    }
                    continue;
                }
                Some(_) => break,
                None => {}
            }
            self.at += 1;
            self.hunk_line(line, &mut hunks);
        }
        hunks
    }

    fn hunk_line(&mut self, line: &str, hunks: &mut Vec<Hunk>) {
        if let Some(header) = line.strip_prefix("@@") {
            // Several `@@` in a row lead from the outer heading to the inner one.
            let joins = hunks.last().is_some_and(|hunk| hunk.lines.is_empty() && hunk.at.is_none());
            if !joins {
                hunks.push(Hunk { line: self.at, ..Hunk::default() });
            }
            let Some(hunk) = hunks.last_mut() else { return };
            match starts_at(header) {
                Some(at) => hunk.at = Some(at),
                None => {
                    let heading = header.strip_prefix(' ').unwrap_or(header).trim_end();
                    let heading = heading.strip_suffix("@@").unwrap_or(heading).trim_end();
                    if !heading.is_empty() {
                        hunk.headings.push(heading.to_owned());
                    }
                }
            }
            return;
        }
        if hunks.is_empty() {
            // Empty lines before the first hunk are none of the file.
            if line.trim().is_empty() {
                return;
            }
            hunks.push(Hunk { line: self.at, ..Hunk::default() });
        }
        let is_text = hunks.last_mut().is_some_and(|hunk| hunk.push(line));
        if !is_text {
            self.fault("begins with none of blank, - and +");
        }
    }

    fn unified(&mut self) {
        let mut git: Option<Names<'a>> = None;
        while let Some(line) = self.next() {
            if let Some(names) = line.strip_prefix("diff --git ") {
                self.finish(git.take());
                git = Some(Names { both: Some(names), ..Names::default() });
            } else if let (Some(old), Some(new)) =
                (line.strip_prefix("--- "), self.peek().and_then(|next| next.strip_prefix("+++ ")))
            {
                self.at += 1;
                let names = git.take().unwrap_or_default();
                self.file(names, old, new);
            } else if let Some(it) = git.as_mut() {
                let is_binary = line.starts_with("Binary files ") || line == "GIT binary patch";
                match line.split_once(' ') {
                    _ if is_binary => self.fault("is a change of a binary file, which a patch cannot make"),
                    Some(("rename", rest)) => match rest.split_once(' ') {
                        Some(("from", path)) => it.from = Some(path),
                        Some(("to", path)) => it.to = Some(path),
                        Some(_) | None => {}
                    },
                    Some(("copy", _)) => self.fault("is a copy, which a patch cannot make"),
                    Some(("old" | "new", rest)) if rest.starts_with("mode ") => self.fault(NO_MODES),
                    Some(("new", rest)) if rest.starts_with("file mode") => {
                        it.is_new = true;
                        if !rest.ends_with("100644") {
                            self.fault(NO_MODES);
                        }
                    }
                    Some(("deleted", rest)) if rest.starts_with("file mode") => it.is_gone = true,
                    Some(_) | None => {}
                }
            } else if line.starts_with("@@") {
                self.fault("begins a hunk, and no `--- a/PATH` and `+++ b/PATH` stand above it");
                return;
            }
        }
        self.finish(git.take());
    }

    /// A file of a git diff that has no hunks: it is empty, or only its name changes.
    fn finish(&mut self, names: Option<Names<'a>>) {
        let Some(names) = names else { return };
        let what = match (names.from, names.to, names.both.and_then(name_in_both)) {
            (Some(from), Some(to), _) => {
                let what = What::Update { to: Some(unquoted(to)), hunks: Vec::new() };
                Section { path: unquoted(from), what }
            }
            (_, _, Some(path)) if names.is_new => Section { path, what: What::Create(String::new()) },
            (_, _, Some(path)) if names.is_gone => Section { path, what: What::Delete(Vec::new()) },
            (_, _, None) if names.is_new || names.is_gone => {
                return self.fault("stands below a `diff --git` that does not name one file");
            }
            (_, _, _) => return,
        };
        self.sections.push(what);
    }

    fn file(&mut self, names: Names<'a>, old: &str, new: &str) {
        let mut hunks: Vec<Hunk> = Vec::new();
        let mut left = (0, 0);
        while let Some(line) = self.peek() {
            // A removed line `-- x` and an added one `++ x` look like a header. The counts of the hunk decide, unless the
            // names are those of git: models often miscount.
            let is_over = left == (0, 0);
            let follows = |n: usize, mark: &str| self.lines.get(self.at + n).is_some_and(|next| next.starts_with(mark));
            let of_git = ["--- a/", "--- /dev/null"].iter().any(|mark| line.starts_with(mark))
                && ["+++ b/", "+++ /dev/null"].iter().any(|mark| follows(1, mark));
            let begins_file = line.starts_with("diff --git ")
                || (line.starts_with("--- ") && follows(1, "+++ ") && follows(2, "@@") && (is_over || of_git));
            // The signature that git writes below a patch in a mail.
            let is_signature = is_over && line == "-- " && !hunks.is_empty();
            if begins_file || is_signature {
                break;
            }
            self.at += 1;
            if let Some(header) = line.strip_prefix("@@") {
                left = counts(header).unwrap_or((0, 0));
            } else {
                let (in_old, in_new) = (!line.starts_with(['+', '\\']), !line.starts_with(['-', '\\']));
                left = (left.0 - usize::from(in_old && left.0 > 0), left.1 - usize::from(in_new && left.1 > 0));
            }
            // Prose between two files.
            if hunks.is_empty() && !line.starts_with("@@") {
                continue;
            }
            self.hunk_line(line, &mut hunks);
        }
        let (old, new) = names_of(old, new);
        let section = match (old, new) {
            (_, None) if names.is_new => return,
            (Some(path), None) => Section { path, what: What::Delete(hunks) },
            (None, Some(path)) => match text_of(&hunks) {
                Ok(text) => Section { path, what: What::Create(text) },
                Err(line) => return self.faults.push((line, "begins a hunk of a new file, with a line without +")),
            },
            (Some(_), Some(new)) => match (names.from, names.to) {
                (Some(from), Some(to)) => {
                    Section { path: unquoted(from), what: What::Update { to: Some(unquoted(to)), hunks } }
                }
                (_, _) => Section { path: new, what: What::Update { to: None, hunks } },
            },
            (None, None) => return self.fault("names no file"),
        };
        self.sections.push(section);
    }
}

/// What the header of a git diff says about one file.
#[derive(Default)]
struct Names<'a> {
    both: Option<&'a str>,
    from: Option<&'a str>,
    to: Option<&'a str>,
    is_new: bool,
    is_gone: bool,
}

/// Why a patch with other permission bits is refused.
const NO_MODES: &str =
    "sets permission bits or makes a symlink, which a patch cannot do: leave that out, and use chmod or ln in bash";

/// The text of a new file.
///
/// # Errors
/// The line of a hunk that has old lines too.
fn text_of(hunks: &[Hunk]) -> Result<String, usize> {
    let mut text = String::new();
    for hunk in hunks {
        let last = hunk.lines.iter().rposition(|line| line.side == Side::New).map_or(0, |last| last + 1);
        // Empty lines at the end may only separate it from the next file.
        for (i, line) in hunk.lines.iter().enumerate().filter(|(i, line)| *i < last || !line.is_empty) {
            if line.side != Side::New && !(line.is_empty && i < last) {
                return Err(hunk.line);
            }
            text.push_str(&line.text);
            if !line.open {
                text.push('\n');
            }
        }
    }
    Ok(text)
}

/// The number of the first old line in ` -12,3 +12,4 @@ …`.
fn starts_at(header: &str) -> Option<usize> {
    let numbers = header.strip_prefix(" -")?;
    let end = numbers.find(|c: char| !c.is_ascii_digit())?;
    numbers[..end].parse().ok()
}

/// The numbers of old and new lines in ` -12,3 +12,4 @@ …`.
fn counts(header: &str) -> Option<(usize, usize)> {
    let mut parts = header.split_whitespace();
    let mut count = |sign: char| -> Option<usize> {
        let part = parts.next()?.strip_prefix(sign)?;
        part.split_once(',').map_or(Some(1), |(_, count)| count.parse().ok())
    };
    Some((count('-')?, count('+')?))
}

/// The two names of a unified diff; `None` is `/dev/null`. The prefixes of git, `a/` and `b/`, are no part of a name.
fn names_of(old: &str, new: &str) -> (Option<String>, Option<String>) {
    const PREFIXES: [&str; 6] = ["a/", "b/", "i/", "w/", "c/", "o/"];
    let name = |text: &str| {
        // A time may follow behind a tab.
        let text = unquoted(text.split('\t').next().unwrap_or_default().trim_end());
        Some(text).filter(|text| text != "/dev/null")
    };
    let prefix =
        |it: &Option<String>| it.as_ref().and_then(|it| PREFIXES.into_iter().find(|prefix| it.starts_with(prefix)));
    let (old, new) = (name(old), name(new));
    let is_git = match (&old, &new) {
        (Some(_), Some(_)) => prefix(&old).is_some() && prefix(&new).is_some() && prefix(&old) != prefix(&new),
        (Some(_), None) => prefix(&old) == Some("a/"),
        (None, Some(_)) => prefix(&new) == Some("b/"),
        (None, None) => false,
    };
    let strip = |it: Option<String>| it.map(|it| if is_git { it[2..].to_owned() } else { it });
    (strip(old), strip(new))
}

/// The name behind `diff --git`, which that line has twice, with two prefixes. A name may have blanks in it.
fn name_in_both(both: &str) -> Option<String> {
    let halves = if both.len() % 2 == 1 { both.split_at_checked(both.len() / 2) } else { None };
    let (old, new) = halves.and_then(|(old, new)| Some((old, new.strip_prefix(' ')?)))?;
    let (old, new) = (unquoted(old), unquoted(new));
    let (old, new) = (old.strip_prefix("a/").unwrap_or(&old), new.strip_prefix("b/").unwrap_or(&new));
    (old == new).then(|| new.to_owned())
}

/// A name that git has quoted, as the bytes that it stands for.
fn unquoted(name: &str) -> String {
    let Some(inner) = name.strip_prefix('"').and_then(|it| it.strip_suffix('"')) else { return name.to_owned() };
    let mut bytes = Vec::new();
    let mut rest = inner.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        match rest.next() {
            Some(digit @ b'0'..=b'3') => {
                let mut octal =
                    |before: u8| before.wrapping_mul(8).wrapping_add(rest.next().map_or(0, |it| it.wrapping_sub(b'0')));
                let two = octal(digit - b'0');
                bytes.push(octal(two));
            }
            Some(b't') => bytes.push(b'\t'),
            Some(b'n') => bytes.push(b'\n'),
            Some(other) => bytes.push(other),
            None => {}
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
