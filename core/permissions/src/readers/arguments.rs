//! The words of one program, held against the tables.

use std::path::Path;

use super::listed::{self, Split};
use super::place::{Found, Ground, Names};
use super::tables::{CHOOSES_A_VERSION, GIT, Known, Operands, PROGRAMS, TELL_THEIR_VERSION, TESTS, VERSION_FLAGS};
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
    if let [only] = args {
        let is_told = |names: &str| names.split(' ').any(|it| it == name);
        let (dashes, flag) = only.text.split_at(only.text.len() - only.text.trim_start_matches('-').len());
        let tells = VERSION_FLAGS.iter().any(|(of, word, names)| (*of, *word) == (dashes, flag) && is_told(names));
        let (tells_version, helps) =
            (only.text == "-V" || (dashes, flag) == ("--", "version"), (dashes, flag) == ("--", "help"));
        if tells || ((tells_version || helps) && is_told(TELL_THEIR_VERSION)) {
            return if ["sort", "ls"].contains(&name) { Ok(()) } else { check_choice(folder, ground) };
        }
        if helps && PROGRAMS.iter().any(|known| known.program == name && known.operands != Operands::Free) {
            return Ok(());
        }
    }
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
        "env" if !args.is_empty() => {
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
        "find" => find(args, folder, ground),
        "tar" => tar(args, folder, ground),
        "unzip" => match args {
            [flag, rest @ ..] if ["-l", "-lv", "-v", "-Z", "-Z1"].contains(&flag.text.as_str()) => {
                files(rest, folder, ground)
            }
            [..] => Err(unknown()),
        },
        // A first plus sign gives a command to the pager.
        "less" | "more" if args.iter().all(|it| !it.text.starts_with(['+', '-'])) => files(args, folder, ground),
        _ => {
            let known = PROGRAMS.iter().find(|known| known.program == name).ok_or_else(unknown)?;
            table(known, args, folder, ground)
        }
    }
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
fn files(words: &[Argument], folder: &Path, ground: &Ground<'_>) -> Proof {
    for word in words {
        if word.has_unknown || word.text.starts_with('-') {
            return Err(format!("`{}` is not known to be a file", word.text));
        }
        ground.locate(&word.text, folder)?;
    }
    Ok(())
}

/// An archive that is listed. A colon in its name would be another machine.
fn tar(args: &[Argument], folder: &Path, ground: &Ground<'_>) -> Proof {
    let unknown = || "tar with these words is not known to be read-only".to_owned();
    let [flags, archive, members @ ..] = args else { return Err(unknown()) };
    let letters = flags.text.trim_start_matches('-');
    let lists = letters.starts_with('t') && letters.ends_with('f') && letters.chars().all(|it| "tvzjJf".contains(it));
    if !lists || archive.text.contains(':') || members.iter().any(|it| it.text.starts_with('-')) {
        return Err(unknown());
    }
    files(std::slice::from_ref(archive), folder, ground)
}

/// Programs that read the files that they are given, and that no name of a file makes do anything else.
const READ_FILES: [&str; 13] =
    ["grep", "cat", "wc", "head", "tail", "file", "stat", "ls", "du", "md5sum", "sha1sum", "sha256sum", "basename"];

/// `find`, also with programs for what it finds: `-exec grep -l main {} +`.
fn find(args: &[Argument], folder: &Path, ground: &Ground<'_>) -> Proof {
    let known = PROGRAMS.iter().find(|known| known.program == "find").ok_or("find is not known")?;
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
    find(&rest, folder, ground)
}

/// Flags and operands of a program or of a command of git.
fn table(known: &Known, args: &[Argument], folder: &Path, ground: &Ground<'_>) -> Proof {
    let not_known = |what: &str| format!("{} with `{what}` is not known to be read-only", known.program);
    let mut operands: Vec<&Argument> = Vec::new();
    let mut flags: Vec<(String, Option<&str>)> = Vec::new();
    let mut only_operands = known.operands == Operands::Free;
    let mut rest = args.iter();
    while let Some(word) = rest.next() {
        let text = word.text.as_str();
        let flag = text.strip_prefix('-').filter(|flag| !flag.is_empty() && !only_operands);
        let Some(flag) = flag else {
            operands.push(word);
            continue;
        };
        if text == "--" {
            // For find, what stands behind it are still tests and actions.
            if !known.tests.is_empty() {
                return Err(not_known(text));
            }
            only_operands = true;
            continue;
        }
        if word.has_unknown {
            return Err(not_known(text));
        }
        if !known.tests.is_empty() && (known.tests.split(' ').any(|it| it == flag) || is_number(flag)) {
            flags.push((text.to_owned(), None));
            continue;
        }
        if let Some(long) = flag.strip_prefix('-') {
            let (name, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
            let listed =
                known.long.split(' ').find(|it| it.strip_suffix('=').unwrap_or(it) == name && !name.is_empty());
            let takes_value = listed.ok_or_else(|| not_known(text))?.ends_with('=');
            let value = match value {
                None if takes_value => {
                    Some(rest.next().filter(|it| !it.has_unknown).ok_or_else(|| not_known(text))?.text.as_str())
                }
                value => value,
            };
            flags.push((format!("--{name}"), value));
            continue;
        }
        for (at, letter) in flag.char_indices() {
            if known.valued.contains(letter) {
                let glued = &flag[at + letter.len_utf8()..];
                // tree reads no value that is glued to its letter.
                if known.program == "tree" && flag.len() > 1 {
                    return Err(not_known(text));
                }
                let value = if glued.is_empty() {
                    rest.next().filter(|it| !it.has_unknown).ok_or_else(|| not_known(text))?.text.as_str()
                } else {
                    glued
                };
                flags.push((format!("-{letter}"), Some(value)));
                break;
            }
            if !known.short.contains(letter) {
                return Err(not_known(text));
            }
            flags.push((format!("-{letter}"), None));
        }
    }
    values(known, &flags)?;
    let has = |names: &[&str]| flags.iter().any(|(flag, _)| names.contains(&flag.as_str()));
    let follows = known.program == "grep" && has(&["-R", "--dereference-recursive"]);
    if follows && operands.len() < 2 {
        ground.check_names(folder, Names::Any)?;
    }
    let files = |operands: &[&Argument]| -> Proof {
        for word in operands {
            if word.has_unknown {
                return Err(not_known(&word.text));
            }
            let found = ground.locate(&word.text, folder)?;
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
            return files(&operands);
        }
        let (script, rest) = operands.split_first().ok_or_else(|| not_known("no script"))?;
        if script.has_unknown {
            return Err(not_known(&script.text));
        }
        check(&script.text)?;
        files(rest)
    };
    match known.operands {
        Operands::Files => files(&operands),
        Operands::OneFile if operands.len() > 1 => Err(not_known("a second file")),
        Operands::OneFile => files(&operands),
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
        Operands::PatternThenFiles if has(known.gives_pattern) => files(&operands),
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
        if known.program == "awk" || known.program == "mawk" || known.program == "gawk" {
            let is_plain = flag != "-v"
                || value.split_once('=').is_some_and(|(name, _)| {
                    name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') && !name.starts_with("ARG")
                });
            if !is_plain {
                return Err(format!("{} with `-v {value}` is not known to be read-only", known.program));
            }
        }
    }
    Ok(())
}

/// `-10k`, `-1`: a value of find.
fn is_number(text: &str) -> bool {
    let digits = text.trim_end_matches(|c: char| "ckMGbw".contains(c));
    !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
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
    for at in folder.ancestors().take_while(|at| at.starts_with(ground.workspace)) {
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
            let is_bad = match name {
                "package.json" => text.contains("\"volta\"") && text.contains("extends"),
                "rust-toolchain" | "rust-toolchain.toml" | "global.json" => text.contains("path"),
                _ => text.contains(['/', '\\']) || text.contains("..") || text.contains("path"),
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
    table(known, args, &folder, ground)?;
    check_repository(&folder, ground)
}
