//! Commands that show, list, find, compare and test files.

use std::borrow::Cow;
use std::io::{Read as _, Write as _};
use std::path::PathBuf;

use globset::GlobBuilder;

use super::{Builtin, Fault, Flags, Io, MAX_WHOLE, Stdin, reads};
use crate::parse::{Word, without_braces};
use call::Context;
use files::walk::{self, DirEntry, walk};
use files::workspace::Inside;
use protocol::error::{Code, Error, Result};
use text::edits::Unified;
use text::encoding;
use text::human::{human_size, on_one_line};
use tools::read;

/// The files below a folder that no ignore file excludes, each with its displayed name. `bare` leaves out the prefix
/// `./`.
pub(super) fn below(ctx: &Context, at: &Inside, bare: bool) -> impl Iterator<Item = (Inside, String)> + use<> {
    let root = ctx.workspace.path_of(at);
    let shown = at.display();
    let ctx = ctx.clone();
    let at = at.clone();
    let cancel = ctx.cancel.clone();
    walk(&root)
        .flatten()
        .take_while(move |_| !cancel.is_cancelled())
        .filter(|entry| entry.file_type().is_some_and(|t| t.is_file()))
        .filter_map(move |entry| {
            let below = entry.path().strip_prefix(&root).ok()?.to_str()?.to_owned();
            let name = if bare && shown == "." { below } else { format!("{}/{below}", shown.trim_end_matches('/')) };
            let file = ctx.workspace.below(&at, entry.path());
            ctx.may_read(&file).then_some((file, name))
        })
}

/// The names in the workspace that match a glob, sorted. As in a shell, a name with a leading dot matches only a
/// pattern with a leading dot.
pub(super) fn expand(ctx: &Context, pattern: &str) -> Result<Vec<String>, Error> {
    let invalid = |e: globset::Error| {
        Error::new(
            Code::InvalidArgs,
            format!("the glob is invalid: {}", e.kind()),
            "quotes around it for the text itself",
        )
        .with("input", pattern)
    };
    // An absolute pattern must lie inside the workspace, or in a folder that is worked on besides.
    let roots = std::iter::once(ctx.workspace.root()).chain(ctx.folders.paths.iter().map(PathBuf::as_path));
    let inside = roots.into_iter().find_map(|root| {
        let root = format!("{}/", root.display());
        Some((pattern.strip_prefix(&root)?, root))
    });
    let (relative, prefix) = match inside {
        Some((rest, root)) => (rest, root),
        None if pattern.starts_with('/') => {
            let message = format!("`{pattern}` is outside the workspace");
            return Err(
                Error::new(Code::OutsideWorkspace, message, "a path inside the workspace").with("input", pattern)
            );
        }
        None => (pattern, String::new()),
    };
    let located = |name: &str| match format!("{prefix}{name}") {
        path if path.is_empty() => ctx.workspace.locate("."),
        path => ctx.workspace.locate(&path),
    };
    let relative = &with_classes(relative);
    let mut found = vec![String::new()];
    let parts: Vec<&str> = relative.split('/').collect();
    for (i, part) in parts.iter().enumerate() {
        let join = |folder: &str, name: &str| if i == 0 { name.to_owned() } else { format!("{folder}/{name}") };
        let only_folders = i + 1 < parts.len();
        // An escaped character is literal; a part with nothing else special is a plain name.
        let bare =
            part.replace("[*]", "*").replace("[?]", "?").replace("[[]", "[").replace("[{]", "{").replace("[}]", "}");
        if bare == *part && !part.contains(['*', '?', '[']) {
            found = found.iter().map(|folder| join(folder, part)).collect();
            continue;
        }
        let matcher = GlobBuilder::new(part).literal_separator(true).build().map_err(invalid)?.compile_matcher();
        // As it stands, a name comes before what a class of characters in it matches.
        let literal = (!part.contains(['*', '?'])).then(|| part.replace("[[]", "["));
        let mut next = Vec::new();
        for folder in found {
            let at = located(&folder)?;
            // Anything but a folder contains no names.
            let Ok(names) = ctx.workspace.list_raw(&at) else { continue };
            let visible = |name: &str| part.starts_with('.') || !name.starts_with('.');
            let is_literal =
                |(name, is_folder): &&(String, bool)| Some(name) == literal.as_ref() && (*is_folder || !only_folders);
            if let Some((name, _)) = names.iter().find(is_literal) {
                next.push(join(&folder, name));
                continue;
            }
            let fits = names
                .into_iter()
                .filter(|(name, is_folder)| visible(name) && (*is_folder || !only_folders) && matcher.is_match(name));
            next.extend(fits.map(|(name, _)| join(&folder, &name)));
        }
        found = next;
    }
    let is_there = |name: &String| located(name).is_ok_and(|at| ctx.workspace.is_there(&at));
    let mut found: Vec<String> = found.into_iter().filter(is_there).map(|name| format!("{prefix}{name}")).collect();
    found.sort();
    Ok(found)
}

/// A note about files that rules ignore, if there are any.
pub(super) fn ignored_files(count: usize, verb: &str) -> String {
    match count {
        0 => String::new(),
        1 => format!("1 ignored file was not {verb}; a program of that name in bash shows it\n"),
        more => format!("{more} ignored files were not {verb}; a program of that name in bash shows them\n"),
    }
}

/// Replaces POSIX classes such as `[[:digit:]]`, which globset does not support, by ranges.
fn with_classes(pattern: &str) -> String {
    let classes = [
        ("[:digit:]", "0-9"),
        ("[:alpha:]", "a-zA-Z"),
        ("[:alnum:]", "a-zA-Z0-9"),
        ("[:upper:]", "A-Z"),
        ("[:lower:]", "a-z"),
        ("[:space:]", " \t"),
    ];
    classes.iter().fold(pattern.to_owned(), |pattern, (name, set)| pattern.replace(name, set))
}

pub(super) const SEE: Builtin = Builtin {
    name: "see",
    about: "look at an image",
    usage: "<image-path>",
    subcommands: &[],
    details: "PNG, JPEG, GIF and WebP, up to 5MB.",
    example: "see docs/screen.png",
    stdin: Stdin::None,
    expands: true,
    asks_others: false,
    touches: reads,
    run: see,
};

fn see(it: &'static Builtin, args: &[Word], io: &mut Io) -> Result<i32, Fault> {
    let flags = Flags::parse(it, args, "", "", &[])?;
    if flags.operands.is_empty() {
        return Err(it.usage_error().into());
    }
    for at in io.all_paths(it, &flags.operands)? {
        let (attachment, told) = read::look(&io.ctx, &at).map_err(|mut error| {
            if error.code == Code::InvalidArgs {
                error.remedy = format!("cat {}", at.display()).into();
            }
            error
        })?;
        io.out.write_all(told.as_bytes())?;
        io.effects.lock().attachments.push(attachment);
    }
    io.missed()?;
    Ok(0)
}

pub(super) const LS: Builtin = Builtin {
    name: "ls",
    about: "list a folder",
    usage: "[-laA1hd] [path…]",
    subcommands: &[],
    details: "Folders end in /, symlinks in @.\n-a  also names that begin with a dot   -l  with sizes, -h in KB and MB   -d  the folder itself",
    example: "ls src",
    stdin: Stdin::None,
    expands: true,
    asks_others: false,
    touches: reads,
    run: ls,
};

fn ls(it: &'static Builtin, args: &[Word], io: &mut Io) -> Result<i32, Fault> {
    let flags = Flags::parse(it, args, "laA1hdpF", "", &[("all", 'a'), ("almost-all", 'A')])?;
    let here = [Word::from(".")];
    let named = io.all_paths(it, if flags.operands.is_empty() { &here } else { &flags.operands })?;
    let all = flags.has('a') || flags.has('A');
    let line = |io: &mut Io, name: &str, size: u64| {
        let name = on_one_line(name);
        let size = if flags.has('h') { human_size(size) } else { size.to_string() };
        if flags.has('l') { writeln!(io.out, "{size:>10} {name}") } else { writeln!(io.out, "{name}") }
    };
    let several = named.len() > 1;
    let mut folders = Vec::new();
    for at in named {
        let is_folder = match io.ctx.workspace.is_folder(&at) {
            Ok(is_folder) => is_folder,
            // A dangling symlink is listed like a file.
            Err(_) if io.ctx.workspace.is_there(&at) => false,
            Err(error) => {
                io.miss(it, error);
                continue;
            }
        };
        if flags.has('d') || !is_folder {
            let size = io.ctx.workspace.open_file(&at).map_or(0, |(_, len, _)| len);
            line(io, &at.display(), size)?;
        } else {
            folders.push(at);
        }
    }
    for (i, at) in folders.iter().enumerate() {
        if several {
            writeln!(io.out, "{}{}:", if i > 0 { "\n" } else { "" }, at.display())?;
        }
        for (name, size) in io.ctx.workspace.list(at)? {
            if all || !name.starts_with('.') {
                line(io, &name, size)?;
            }
        }
    }
    io.missed()?;
    Ok(0)
}

pub(super) const FIND: Builtin = Builtin {
    name: "find",
    about: "find files by name",
    usage: "[path…] [-name GLOB] [-iname GLOB] [-path GLOB] [-type f|d|l] [-maxdepth N] [-mindepth N] [-not TEST]",
    subcommands: &[],
    details: "Files that .gitignore excludes are left out. All tests must hold; -not negates the next test.\nTo process each file: find … | grep …, or bash -c 'find … -exec …'.\nThe exit code is 0 also when nothing is found.",
    example: "find src -name '*.rs' -type f",
    stdin: Stdin::None,
    expands: true,
    asks_others: false,
    touches: reads,
    run: find,
};

/// A test of `find`: a glob, with its text.
enum Test {
    Name((globset::GlobMatcher, String)),
    Path((globset::GlobMatcher, String)),
    Kind(char),
}

fn find(it: &'static Builtin, args: &[Word], io: &mut Io) -> Result<i32, Fault> {
    let usage = |what: String, fix: &str| Error::new(Code::Usage, what, fix);
    let mut tests: Vec<(Test, bool)> = Vec::new();
    let (mut least, mut most) = (0, usize::MAX);
    let mut wanted = true;
    let roots: Vec<Word> = args.iter().take_while(|word| !word.text.starts_with(['-', '!'])).cloned().collect();
    let mut rest = args[roots.len()..].iter();
    while let Some(word) = rest.next() {
        let mut value = || {
            rest.next()
                .map(|word| word.text.as_str())
                .ok_or_else(|| usage(format!("{} needs a value", word.text), "find . -name '*.rs'"))
        };
        let named = |text: &str, fold: bool| {
            GlobBuilder::new(&with_classes(&without_braces(text)))
                .case_insensitive(fold)
                .build()
                .map(|it| (it.compile_matcher(), text.to_owned()))
                .map_err(|e| usage(format!("the glob is invalid: {}", e.kind()), "find . -name '*.rs'"))
        };
        let test = match word.text.as_str() {
            "-name" => named(value()?, false).map(Test::Name)?,
            "-iname" => named(value()?, true).map(Test::Name)?,
            "-path" | "-wholename" => named(value()?, false).map(Test::Path)?,
            "-ipath" => named(value()?, true).map(Test::Path)?,
            "-type" => match value()? {
                kind @ ("f" | "d" | "l") => Test::Kind(kind.chars().next().expect("one letter")),
                other => {
                    return Err(
                        usage(format!("-type `{}` is not supported", other.escape_debug()), "-type f, d or l").into()
                    );
                }
            },
            "-maxdepth" | "-mindepth" => {
                let n = usize::try_from(super::number(value()?, &word.text)?).unwrap_or(usize::MAX);
                if word.text == "-maxdepth" {
                    most = n;
                } else {
                    least = n;
                }
                continue;
            }
            "-not" | "!" => {
                wanted = !wanted;
                continue;
            }
            "-print" | "-a" | "-and" => continue,
            "-exec" | "-execdir" | "-ok" | "-delete" => {
                let fix = "find … alone, then a command for the names; or bash -c 'find …'";
                return Err(usage(format!("{} is not supported: find only lists", word.text), fix).into());
            }
            other => {
                let shown: String = other.escape_debug().take(40).collect();
                let what = format!("`{shown}` is not supported; usage: {}", it.usage_line());
                return Err(Error::new(Code::UnknownFlag, what, "find --help").with("input", shown).into());
            }
        };
        tests.push((test, std::mem::replace(&mut wanted, true)));
    }
    let here = [Word::from(".")];
    for at in io.all_paths(it, if roots.is_empty() { &here } else { &roots })? {
        if let Err(error) = io.ctx.workspace.is_folder(&at) {
            io.miss(it, error);
            continue;
        }
        let ctx = io.ctx.clone();
        let root = ctx.workspace.path_of(&at);
        let shown = at.display();
        // The name of an entry that passes all tests.
        let found = |entry: &DirEntry| {
            let below = entry.path().strip_prefix(&root).unwrap_or(entry.path()).to_string_lossy().into_owned();
            let name =
                if below.is_empty() { shown.clone() } else { format!("{}/{below}", shown.trim_end_matches('/')) };
            let kind = match entry.file_type() {
                Some(t) if t.is_dir() => 'd',
                Some(t) if t.is_symlink() => 'l',
                Some(t) if t.is_file() => 'f',
                Some(_) | None => '?',
            };
            let last = name.rsplit('/').next().unwrap_or(&name);
            let holds = |test: &Test| match test {
                // A name is found as it stands, whatever a glob makes of it.
                Test::Name((glob, text)) => glob.is_match(last) || text == last,
                Test::Path((glob, text)) => glob.is_match(&name) || *text == name,
                Test::Kind(it) => *it == kind,
            };
            let is_wanted =
                (least..=most).contains(&entry.depth()) && tests.iter().all(|(test, wanted)| holds(test) == *wanted);
            // A folder on the way may have been exchanged for a symlink during the walk.
            let at = ctx.workspace.below(&at, entry.path());
            (is_wanted && ctx.may_read(&at) && ctx.workspace.is_there(&at)).then_some(name)
        };
        let mut files = 0;
        for entry in walk(&root).flatten() {
            if io.ctx.cancel.is_cancelled() {
                return Err(Fault::Closed);
            }
            if let Some(name) = found(&entry) {
                files += usize::from(!entry.file_type().is_some_and(|it| it.is_dir()));
                writeln!(io.out, "{}", on_one_line(&name))?;
            }
        }
        let ignored = walk::ignored(&root, &io.ctx.cancel, files, &|entry| found(entry).is_some());
        io.say(&ignored_files(ignored.unwrap_or_default(), "listed"));
    }
    io.missed()?;
    Ok(0)
}

pub(super) const DIFF: Builtin = Builtin {
    name: "diff",
    about: "compare two files",
    usage: "[-q] <path> <path>",
    subcommands: &[],
    details: "It prints a unified diff. The exit code is 1 when the files differ. One of them may be - for stdin.\n-q  report only whether they differ",
    example: "diff old.txt new.txt",
    stdin: Stdin::Optional,
    expands: false,
    asks_others: false,
    touches: reads,
    run: diff,
};

fn diff(it: &'static Builtin, args: &[Word], io: &mut Io) -> Result<i32, Fault> {
    let flags = Flags::parse(it, args, "uqN", "U", &[("unified", 'U'), ("brief", 'q')])?;
    let [old, new] = flags.operands.as_slice() else { return Err(it.usage_error().into()) };
    let mut bytes = |word: &Word| -> Result<Vec<u8>, Fault> {
        let at = io.ctx.workspace.locate(&word.text)?;
        let mut bytes = Vec::new();
        io.open(&at)?.take(MAX_WHOLE + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > MAX_WHOLE {
            let message = format!("{} is larger than 64 MB", word.text);
            return Err(Error::new(Code::InvalidArgs, message, "the program of that name: env diff …").into());
        }
        Ok(bytes)
    };
    let (before, after) = (bytes(old)?, bytes(new)?);
    if before == after {
        return Ok(0);
    }
    let texts = match (std::str::from_utf8(&before), std::str::from_utf8(&after)) {
        (Ok(before), Ok(after)) => Some((Cow::Borrowed(before), Cow::Borrowed(after))),
        _ => encoding::both(&before, &after),
    };
    // Texts that differ in their encoding only have no line to show.
    let Some((before, after)) = texts.filter(|(before, after)| before != after && !flags.has('q')) else {
        writeln!(io.out, "Files {} and {} differ", old.text, new.text)?;
        return Ok(1);
    };
    let around = usize::try_from(flags.number('U')?.unwrap_or(3)).unwrap_or(3).min(1000);
    write!(io.out, "{}", Unified::new((&old.text, &new.text), &before, &after, around))?;
    Ok(1)
}

pub(super) const TEST: Builtin = Builtin {
    name: "test",
    about: "check a condition, as in test -f a.txt; it runs no tests",
    usage: "-e|-f|-d|-s <path>, -n|-z <text>, <text> =|!= <text>, <n> -eq|-ne|-lt|-le|-gt|-ge <n>",
    subcommands: &[],
    details: "-e  it exists   -f  it is a file   -d  it is a folder   -s  it is not empty\n`!` in front negates the test. The exit code is 0 when the test holds, else 1.",
    example: "test -f Cargo.toml && echo rust",
    stdin: Stdin::None,
    expands: false,
    asks_others: false,
    touches: reads,
    run: test,
};

fn test(it: &'static Builtin, args: &[Word], io: &mut Io) -> Result<i32, Fault> {
    let words: Vec<&str> = args.iter().map(|word| word.text.as_str()).collect();
    let (turned, words) = match words.as_slice() {
        ["!", rest @ ..] if !rest.is_empty() => (true, rest),
        all => (false, all),
    };
    let workspace = &io.ctx.workspace;
    let holds = match words {
        [] => false,
        [text] => !text.is_empty(),
        ["-n", text] => !text.is_empty(),
        ["-z", text] => text.is_empty(),
        ["-e", path] => workspace.is_folder(&workspace.locate(path)?).is_ok(),
        ["-f", path] => workspace.open_file(&workspace.locate(path)?).is_ok(),
        ["-d", path] => workspace.is_folder(&workspace.locate(path)?).unwrap_or(false),
        ["-r", path] => {
            let at = workspace.locate(path)?;
            workspace.open_file(&at).is_ok() || workspace.list(&at).is_ok()
        }
        ["-s", path] => {
            let at = workspace.locate(path)?;
            workspace.is_folder(&at).unwrap_or(false) || workspace.open_file(&at).is_ok_and(|(_, len, _)| len > 0)
        }
        [a, "=" | "==", b] => a == b,
        [a, "!=", b] => a != b,
        [a, op @ ("-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge"), b] => {
            let number = |text: &str| {
                text.trim().parse::<i64>().map_err(|_| {
                    let what = format!("{op} compares numbers, and `{}` is not one", text.escape_debug());
                    Error::new(Code::Usage, what, "= to compare text")
                })
            };
            let (a, b) = (number(a)?, number(b)?);
            match *op {
                "-eq" => a == b,
                "-ne" => a != b,
                "-lt" => a < b,
                "-le" => a <= b,
                "-gt" => a > b,
                _ => a >= b,
            }
        }
        _ => return Err(it.usage_error().into()),
    };
    Ok(i32::from(holds == turned))
}
