//! The words of one program, held against the tables.

use std::path::Path;

use super::listed::{self, Split};
use super::options::Taken;
use super::place::{Found, Ground, Names};
use super::tables::{
    CHOOSES_A_VERSION, GIT, Known, Operands, PROGRAMS, Special, TELL_THEIR_VERSION, TESTS, VERSION_FLAGS,
};
use super::words::Argument;
use super::{check_repository, scripts, walk};

type Proof = Result<(), String>;

/// Proves that a program with these words, started in this folder, only reads. `fed_by` is the command that feeds it.
pub(super) fn prove(words: &[Argument], folder: &Path, fed_by: Option<&[Argument]>, ground: &Ground<'_>) -> Proof {
    let (program, args) = words.split_first().ok_or("there is no command")?;
    if program.is_quoted || program.has_unknown {
        return Err("the program's name is quoted".into());
    }
    let name = program.text.as_str();
    let unknown = || format!("{name} is not known to be read-only");
    let known = PROGRAMS.iter().find(|known| known.program == name);
    if let [only] = args {
        let is_told = |names: &str| names.split(' ').any(|it| it == name);
        let (dashes, flag) = only.text.split_at(only.text.len() - only.text.trim_start_matches('-').len());
        let tells = VERSION_FLAGS.iter().any(|(of, word, names)| (*of, *word) == (dashes, flag) && is_told(names));
        let (tells_version, helps) =
            (only.text == "-V" || (dashes, flag) == ("--", "version"), (dashes, flag) == ("--", "help"));
        if tells || ((tells_version || helps) && is_told(TELL_THEIR_VERSION)) {
            return if ["sort", "ls"].contains(&name) { Ok(()) } else { check_choice(folder, ground) };
        }
        if helps && known.is_some_and(|known| known.operands != Operands::Free) {
            return Ok(());
        }
    }
    let known = known.ok_or_else(unknown)?;
    check_words(known, args)?;
    match name {
        "git" => git(args, folder, ground),
        "test" | "[" => test(name, args, folder, ground),
        "command" => match args {
            [flag, names @ ..]
                if ["-v", "-V"].contains(&flag.text.as_str()) && names.iter().all(|it| !it.text.starts_with('-')) =>
            {
                Ok(())
            }
            [..] => Err(unknown()),
        },
        "env" if args.is_empty() => Ok(()),
        "env" => {
            let is_setting = |it: &&Argument| walk::is_setting(&it.text) && !it.has_unknown;
            let rest = &args[args.iter().take_while(is_setting).count()..];
            inner(rest, folder, fed_by, ground).map_err(|why| why.unwrap_or_else(unknown))
        }
        "nice" => inner(args, folder, fed_by, ground).map_err(|why| why.unwrap_or_else(unknown)),
        "timeout" => match args {
            [limit, rest @ ..] if walk::is_duration(&limit.text) => {
                inner(rest, folder, fed_by, ground).map_err(|why| why.unwrap_or_else(unknown))
            }
            [..] => Err(unknown()),
        },
        "xargs" => xargs(args, folder, fed_by, ground),
        "find" => find(known, args, folder, ground),
        "tar" => tar(known, args, folder, ground),
        "unzip" => match args {
            [flag, rest @ ..]
                if ["-l", "-lv", "-v", "-Z", "-Z1"].contains(&flag.text.as_str())
                    && rest.iter().all(|it| !it.text.starts_with('-')) =>
            {
                // Behind the archive stand patterns of its members.
                files(known, &rest[..rest.len().min(1)], folder, ground)
            }
            [..] => Err(unknown()),
        },
        "less" | "more" => files(known, args, folder, ground),
        _ if known.operands == Operands::Own => Err(unknown()),
        _ => table(known, args, folder, ground),
    }
}

/// Words that a program takes for something else before it tells options from operands.
fn check_words(known: &Known, args: &[Argument]) -> Proof {
    let reads_words = known.specials.contains(&Special::ResponseFile);
    match args.iter().find(|word| reads_words && (word.text.starts_with('@') || word.has_unknown)) {
        Some(word) => Err(format!(
            "{1} replaces `{0}` by the words in a file; `./{0}` would name the file",
            word.text, known.program
        )),
        None => Ok(()),
    }
}

/// Where the name of a file that a program opens leads, if the program takes it for nothing else.
fn located(known: &Known, text: &str, folder: &Path, ground: &Ground<'_>) -> Result<Found, String> {
    let found = ground.locate(text, folder)?;
    for special in known.specials {
        let more = match special {
            // Of every word, already.
            Special::ResponseFile => None,
            Special::Command => text.starts_with('+').then_some("a command"),
            Special::Machine => text.contains(':').then_some("a file of another machine"),
            Special::Pattern => text.contains(['*', '?', '[']).then_some("a pattern of names"),
            Special::Setting => is_bad_setting(text).then_some("a variable of its own"),
            Special::Ending(endings) => {
                for ending in *endings {
                    ground.locate(&format!("{text}{ending}"), folder)?;
                }
                None
            }
        };
        if let Some(more) = more {
            return Err(format!("`{text}` is {more} to {}", known.program));
        }
    }
    Ok(found)
}

/// `ARGV=x` and its like, which decide what awk opens.
fn is_bad_setting(text: &str) -> bool {
    let is_name = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    text.split_once('=').is_some_and(|(name, _)| is_name(name) && name.starts_with("ARG"))
}

/// A program that another one starts: not one that would start a third.
fn inner(
    words: &[Argument],
    folder: &Path,
    fed_by: Option<&[Argument]>,
    ground: &Ground<'_>,
) -> Result<(), Option<String>> {
    let program = words.first().ok_or(None)?;
    if program.text.starts_with('-')
        || program.text.contains('=')
        || ["xargs", "env", "timeout", "nice", "command", "type"].contains(&program.text.as_str())
    {
        return Err(None);
    }
    // Here it is no name of the shell's grammar, so quotes do not matter.
    let mut words = words.to_vec();
    words[0].is_quoted = false;
    prove(&words, folder, fed_by, ground).map_err(Some)
}

/// A program whose operands come from another one: from names of files.
fn xargs(args: &[Argument], folder: &Path, fed_by: Option<&[Argument]>, ground: &Ground<'_>) -> Proof {
    let unknown = || "xargs with these words is not known to be read-only".to_owned();
    let mut rest = args;
    let mut split = Split::Blanks;
    let mut mark: Option<&str> = None;
    while let Some((first, more)) = rest.split_first().filter(|(first, _)| first.text.starts_with('-')) {
        rest = more;
        match first.text.as_str() {
            "-0" | "--null" => split = Split::Nul,
            "-d\\n" => split = Split::Lines,
            "-I{}" => mark = Some("{}"),
            "-r" | "--no-run-if-empty" | "-t" => {}
            "-n" | "-P" | "-L" | "-d" | "-I" => {
                let (value, more) = rest.split_first().ok_or_else(unknown)?;
                let is_number = !value.text.is_empty() && value.text.bytes().all(|b| b.is_ascii_digit());
                match (first.text.as_str(), value.text.as_str()) {
                    ("-d", "\\n") => split = Split::Lines,
                    ("-I", it) if ["{}", "%", "@", "FILE"].contains(&it) => mark = Some(it),
                    ("-n" | "-P" | "-L", _) if is_number => {}
                    _ => return Err(unknown()),
                }
                rest = more;
            }
            text if text.len() > 2
                && ["-n", "-P", "-L"].contains(&&text[..2])
                && text[2..].bytes().all(|b| b.is_ascii_digit()) => {}
            _ => return Err(unknown()),
        }
    }
    // Where a name stands, the folder that is listed is judged.
    let name = Argument { text: ".".into(), is_quoted: true, has_unknown: false };
    let (judged, is_name): (Vec<Argument>, Vec<bool>) = match mark {
        Some(mark) => {
            rest.iter().map(|word| if word.text == mark { (name.clone(), true) } else { (word.clone(), false) }).unzip()
        }
        None => rest.iter().map(|word| (word.clone(), false)).chain([(name, true)]).unzip(),
    };
    let texts: Vec<&str> = judged.iter().map(|it| it.text.as_str()).collect();
    // Another file beside the name was not judged. `echo` prints it, whatever stands beside it.
    let is_beside = mark.is_some_and(|mark| texts.iter().any(|it| it.contains(mark))) && texts[0] != "echo";
    if is_beside || !listed::takes_names(&texts, &is_name) {
        return Err(unknown());
    }
    inner(&judged, folder, None, ground).map_err(|why| why.unwrap_or_else(unknown))?;
    listed::check(fed_by.ok_or(listed::NOT_KNOWN_BEFORE)?, split, folder, ground)
}

/// Words that are all names of files of the workspace.
fn files(known: &Known, words: &[Argument], folder: &Path, ground: &Ground<'_>) -> Proof {
    for word in words {
        if word.has_unknown || word.text.starts_with('-') {
            return Err(format!("`{}` is not known to be a file", word.text));
        }
        located(known, &word.text, folder, ground)?;
    }
    Ok(())
}

/// An archive that is listed.
fn tar(known: &Known, args: &[Argument], folder: &Path, ground: &Ground<'_>) -> Proof {
    let unknown = || "tar with these words is not known to be read-only".to_owned();
    let [flags, archive, members @ ..] = args else { return Err(unknown()) };
    let letters = flags.text.trim_start_matches('-');
    let lists = letters.starts_with('t') && letters.ends_with('f') && letters.chars().all(|it| "tvzjJf".contains(it));
    if !lists || members.iter().any(|it| it.text.starts_with('-')) {
        return Err(unknown());
    }
    files(known, std::slice::from_ref(archive), folder, ground)
}

/// Programs that read the files that they are given, and that no name of a file makes do anything else.
pub(super) const READ_FILES: [&str; 13] =
    ["grep", "cat", "wc", "head", "tail", "file", "stat", "ls", "du", "md5sum", "sha1sum", "sha256sum", "basename"];

/// `find`, also with programs for what it finds: `-exec grep -l main {} +`.
fn find(known: &Known, args: &[Argument], folder: &Path, ground: &Ground<'_>) -> Proof {
    let Some(at) = args.iter().position(|it| it.text == "-exec") else { return table(known, args, folder, ground) };
    let unknown = || "find with these words is not known to be read-only".to_owned();
    let starts: Vec<&Argument> = args[..at].iter().take_while(|it| !it.text.starts_with(['-', '(', '!'])).collect();
    let length = args[at + 1..].iter().position(|it| [";", "+"].contains(&it.text.as_str())).ok_or_else(unknown)?;
    let inner = &args[at + 1..at + 1 + length];
    // Names that are found begin like the folder that is searched, so that none is a flag.
    let is_read = inner.first().is_some_and(|it| READ_FILES.contains(&it.text.as_str()));
    let Some((last, words)) = inner.split_last().filter(|(last, _)| is_read && last.text == "{}") else {
        return Err(unknown());
    };
    // The pattern stands before the names.
    let has_pattern = inner[0].text != "grep" || words[1..].iter().any(|it| !it.text.starts_with('-'));
    if !has_pattern || words.iter().any(|it| it.text.contains("{}")) {
        return Err(unknown());
    }
    let here = Argument { text: ".".into(), ..last.clone() };
    for start in if starts.is_empty() { vec![&here] } else { starts.clone() } {
        let words: Vec<Argument> = words.iter().chain([start]).cloned().collect();
        prove(&words, folder, None, ground)?;
        // The program follows a symlink that find does not follow.
        match ground.locate(&start.text, folder)? {
            Found::Folder(real) => ground.check_names(&real, Names::Any)?,
            Found::File | Found::Missing => {}
        }
    }
    let rest: Vec<Argument> = args[..at].iter().chain(&args[at + 2 + length..]).cloned().collect();
    find(known, &rest, folder, ground)
}

/// Flags and operands of a program or of a command of git.
fn table(known: &Known, args: &[Argument], folder: &Path, ground: &Ground<'_>) -> Proof {
    let not_known = |what: &str| format!("{} with `{what}` is not known to be read-only", known.program);
    let taken = known.options.take(args).map_err(not_known)?;
    let Taken { flags, operands } = &taken;
    values(known, flags)?;
    let has = |names: &[&str]| taken.has(names);
    let follows = known.program == "grep" && has(&["-R", "--dereference-recursive"]);
    if follows && operands.len() < 2 {
        ground.check_names(folder, Names::Any)?;
    }
    let files = |operands: &[&Argument]| -> Proof {
        for word in operands {
            if word.has_unknown {
                return Err(not_known(&word.text));
            }
            let found = located(known, &word.text, folder, ground)?;
            // These follow the symlinks of a folder.
            if let Found::Folder(real) = found
                && (known.program == "diff" || follows)
            {
                ground.check_names(&real, Names::Any)?;
            }
        }
        Ok(())
    };
    let script = |check: fn(&str) -> Proof| -> Proof {
        let given: Vec<&str> = flags
            .iter()
            .filter(|(flag, _)| known.gives_pattern.contains(&flag.as_str()))
            .filter_map(|(_, value)| *value)
            .collect();
        if !given.is_empty() {
            given.iter().try_for_each(|script| check(script))?;
            return files(operands);
        }
        let (script, rest) = operands.split_first().ok_or_else(|| not_known("no script"))?;
        if script.has_unknown {
            return Err(not_known(&script.text));
        }
        check(&script.text)?;
        files(rest)
    };
    match known.operands {
        Operands::Files => files(operands),
        Operands::OneFile if operands.len() > 1 => Err(not_known("a second file")),
        Operands::OneFile => files(operands),
        Operands::Text => {
            if known.program == "printf"
                && let Some(format) = operands.first()
            {
                if format.has_unknown {
                    return Err(not_known(&format.text));
                }
                scripts::check_printf(&format.text)?;
            }
            Ok(())
        }
        Operands::Free => Ok(()),
        Operands::Own => Err(not_known("these words")),
        Operands::PatternThenFiles if has(known.gives_pattern) => files(operands),
        Operands::PatternThenFiles => files(operands.get(1..).unwrap_or_default()),
        Operands::SedThenFiles => script(scripts::check_sed),
        Operands::AwkThenFiles => script(scripts::check_awk),
        Operands::JqThenFiles => script(scripts::check_jq),
        Operands::Plus => match operands.iter().find(|it| !it.text.starts_with('+')) {
            Some(word) => Err(not_known(&word.text)),
            None => Ok(()),
        },
        Operands::Words(words) => {
            match operands.iter().find(|it| it.has_unknown || !words.split(' ').any(|word| word == it.text)) {
                Some(word) => Err(not_known(&word.text)),
                None => Ok(()),
            }
        }
        Operands::With(names) => {
            let listed =
                flags.iter().any(|(flag, _)| names.split(' ').any(|name| name == flag.trim_start_matches('-')));
            // `git config user.name` reads it. A word without a dot is no key, but a command: `git config edit`.
            let is_key = |word: &Argument| word.text == "list" || word.text.contains('.');
            let reads_a_key = known.program == "config" && operands.len() == 1 && is_key(operands[0]);
            match operands.first() {
                Some(word) if !listed && !reads_a_key => Err(not_known(&word.text)),
                Some(_) | None => Ok(()),
            }
        }
        Operands::None => match operands.first() {
            Some(word) => Err(not_known(&word.text)),
            None => Ok(()),
        },
    }
}

/// Values that would run something.
fn values(known: &Known, flags: &[(String, Option<&str>)]) -> Proof {
    for (flag, value) in flags {
        let value = value.unwrap_or_default();
        // `%G` makes git start gpg; `%(signature)` too.
        let is_shown = ["--format", "--pretty", "--sort"].contains(&flag.as_str());
        if is_shown && (value.contains("%G") || value.contains("signature")) {
            return Err(format!("git {} {flag} with signatures starts another program", known.program));
        }
        // `-cf` is an old way to write `-c 10 -f`, which never ends.
        if known.program == "tail" && value.ends_with('f') {
            return Err(format!("tail with `{flag}{value}` is not known to be read-only"));
        }
        // A time zone is a file that date opens.
        if known.program == "date" && value.contains("TZ=") {
            return Err("date with a time zone in its text is not known to be read-only".into());
        }
        if known.program == "awk" || known.program == "mawk" || known.program == "gawk" {
            let is_name = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            let is_plain =
                flag != "-v" || value.split_once('=').is_some_and(|(name, _)| is_name(name) && !is_bad_setting(value));
            if !is_plain {
                return Err(format!("{} with `-v {value}` is not known to be read-only", known.program));
            }
        }
    }
    Ok(())
}

fn test(name: &str, args: &[Argument], folder: &Path, ground: &Ground<'_>) -> Proof {
    let args = match (name, args.split_last()) {
        ("[", Some((last, args))) if last.text == "]" => args,
        ("[", _) => return Err("`[` is not closed".into()),
        _ => args,
    };
    for word in args {
        let text = word.text.as_str();
        let known = match text.strip_prefix('-') {
            Some(flag) if !flag.is_empty() => {
                TESTS.split(' ').any(|it| it == flag) || flag.bytes().all(|b| b.is_ascii_digit())
            }
            _ if word.has_unknown => true,
            _ => ["=", "==", "!=", "!", "(", ")", "<", ">"].contains(&text) || ground.locate(text, folder).is_ok(),
        };
        if !known {
            return Err(format!("{name} with `{text}` is not known to be read-only"));
        }
    }
    Ok(())
}

/// A version manager may start a toolchain that lies in the workspace.
fn check_choice(folder: &Path, ground: &Ground<'_>) -> Proof {
    for at in folder.ancestors().take_while(|at| ground.root_of(at).is_some()) {
        for name in CHOOSES_A_VERSION {
            ground.spend()?;
            let path = at.join(name);
            let is_there = match std::fs::symlink_metadata(&path) {
                Ok(metadata) if metadata.is_file() && metadata.len() < 1 << 20 => true,
                Ok(_) => return Err(format!("{name} may choose another program")),
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => false,
                Err(_) => return Err(format!("{name} cannot be read here")),
            };
            let text =
                if is_there { crate::repository::read(&path).unwrap_or_else(|| "path".into()) } else { String::new() };
            let is_bad = match *name {
                "package.json" => text.contains("\"volta\"") && text.contains("extends"),
                "rust-toolchain" | "rust-toolchain.toml" | "global.json" => text.contains("path"),
                _ => text.contains(['/', '\\']) || ["..", "path", "exec", "hooks"].iter().any(|it| text.contains(it)),
            };
            if is_bad {
                return Err(format!("{name} may choose a program of the workspace"));
            }
        }
    }
    Ok(())
}

fn git(args: &[Argument], folder: &Path, ground: &Ground<'_>) -> Proof {
    let mut rest = args;
    let mut folder = folder.to_owned();
    loop {
        match rest {
            [flag, more @ ..]
                if ["--no-pager", "-P", "--no-optional-locks", "--literal-pathspecs"].contains(&flag.text.as_str()) =>
            {
                rest = more
            }
            [flag, to, more @ ..] if flag.text == "-C" && !to.has_unknown => {
                folder = match ground.locate_to_work(&to.text, &folder)? {
                    Found::Folder(real) => real,
                    Found::File | Found::Missing => return Err(format!("git -C `{}` is not a folder", to.text)),
                };
                rest = more;
            }
            [flag] if ["--version", "--exec-path"].contains(&flag.text.as_str()) => return Ok(()),
            _ => break,
        }
    }
    let (sub, args) = rest.split_first().ok_or("git without a command is not known to be read-only")?;
    let pair = args.first().map(|second| format!("{} {}", sub.text, second.text));
    let find = |name: &str| GIT.iter().find(|known| known.program == name && !sub.is_quoted);
    let unknown = || format!("git {} is not known to be read-only", pair.as_deref().unwrap_or(&sub.text));
    let (known, args) = match pair.as_deref().and_then(find) {
        Some(known) => (known, &args[1..]),
        None => (find(&sub.text).ok_or_else(unknown)?, args),
    };
    check_words(known, args)?;
    table(known, args, &folder, ground)?;
    check_repository(&folder, ground)
}
