//! Which commands are proven to only read. An allow-list: plain words, known programs, known flags; the rest asks.

use std::borrow::Cow;
use std::path::{Component, Path, PathBuf};

use super::shell::{LineEnd, Operator, Part, PartKind, Script, Token, TokenKind, Word};

/// Longer command lines are not judged, bytes.
const MAX_COMMAND: usize = 2_000;
/// More commands in one line are not judged.
const MAX_COMMANDS: usize = 8;

/// Proves that a line, run by bash, changes nothing inside or outside the workspace and reads nothing outside it.
///
/// Of the grammar only this is allowed: words of plain characters, quoted text without expansions, and `&& || | ;`
/// between commands. Each command must be a known program with flags that are known to only read.
///
/// # Errors
/// Why it could not be proven, as a clause that fits after "it asks because".
pub(crate) fn prove_read_only(line: &str, workspace: &Path) -> Result<(), String> {
    prove_or_allowed(line, workspace, &|_| false)
}

/// Proves the same of every command of a line for whose words `is_allowed` is false. The words are what the program gets:
/// a line with any part that only a running shell knows is not proven.
///
/// # Errors
/// As [`prove_read_only`].
pub(super) fn prove_or_allowed(
    line: &str,
    workspace: &Path,
    is_allowed: &dyn Fn(&[&str]) -> bool,
) -> Result<(), String> {
    if line.len() > MAX_COMMAND {
        return Err(TOO_LONG.into());
    }
    let line = line.trim_matches([' ', '\t', '\n']);
    let script = Script::parse(line, LineEnd::Newline);
    let mut words = Vec::new();
    let mut end = 0;
    for token in &script.tokens {
        check_blanks(&line[end..token.span.at])?;
        words.push(plain(token)?);
        end = token.span.end();
    }
    check_blanks(&line[end..])?;
    let list = script.list();
    let commands: Vec<_> = list.pipelines.into_iter().flat_map(|pipeline| pipeline.commands).collect();
    if commands.len() > MAX_COMMANDS {
        return Err("it has too many parts to be judged".into());
    }
    let ends_in_operator = script.tokens.last().is_none_or(|last| matches!(last.kind, TokenKind::Operator(_)));
    if list.fault.is_some() || ends_in_operator {
        return Err("a command is missing beside an operator".into());
    }
    for command in commands {
        let words: Vec<&Argument<'_>> = words[command.tokens].iter().flatten().collect();
        let texts: Vec<&str> = words.iter().map(|word| word.text.as_ref()).collect();
        if !is_allowed(&texts) {
            prove_command(&words, workspace)?;
        }
    }
    Ok(())
}

/// Proves that a program which is started with exactly these words, without a shell, only reads as above.
///
/// # Errors
/// Why it could not be proven, as a clause that fits after "it asks because".
pub(crate) fn prove(words: &[&str], workspace: &Path) -> Result<(), String> {
    // As many bytes as the words would have on a line, with quotes.
    if words.iter().map(|word| word.len() + 3).sum::<usize>() > MAX_COMMAND {
        return Err(TOO_LONG.into());
    }
    if words.iter().any(|word| word.contains(char::is_control)) {
        return Err(CONTROL.into());
    }
    let words: Vec<Argument<'_>> =
        words.iter().map(|word| Argument { text: Cow::Borrowed(*word), is_quoted: false }).collect();
    prove_command(&words.iter().collect::<Vec<_>>(), workspace)
}

const TOO_LONG: &str = "the command is too long to be judged";
const CONTROL: &str = "it holds a control character";

/// A word as its program gets it.
struct Argument<'a> {
    text: Cow<'a, str>,
    is_quoted: bool,
}

/// A token's word, where the shell passes it on as it is; `None` for an operator.
fn plain<'a>(token: &Token<'a>) -> Result<Option<Argument<'a>>, String> {
    match &token.kind {
        TokenKind::Word(word) => plain_word(word).map(Some),
        TokenKind::Operator(Operator::Pipe | Operator::And | Operator::Or | Operator::Semicolon) => Ok(None),
        TokenKind::Operator(Operator::PipeBoth | Operator::Background) => Err(holds("&")),
        TokenKind::Redirection(_) => Err(holds(token.span.source.trim_start_matches(|c: char| c.is_ascii_digit()))),
        TokenKind::Operator(Operator::Newline) | TokenKind::Parenthesis | TokenKind::HereDocument => {
            Err(holds(token.span.source))
        }
    }
}

fn plain_word<'a>(word: &Word<'a>) -> Result<Argument<'a>, String> {
    let mut text = Cow::Borrowed("");
    for part in &word.parts {
        let source = part.span.source;
        match &part.kind {
            PartKind::Literal => check_literal(source, &text)?,
            PartKind::Single => {}
            PartKind::Double(inner) => check_double(inner)?,
            PartKind::Unclosed { .. } if source != "\\" => return Err("a quote is not closed".into()),
            PartKind::Escaped
            | PartKind::Continuation
            | PartKind::DollarQuote
            | PartKind::Glob
            | PartKind::Tilde
            | PartKind::Parameter
            | PartKind::Substitution
            | PartKind::Unclosed { .. } => return Err(holds(source)),
        }
        text += part.text().ok_or_else(|| holds(source))?;
    }
    if text.contains(char::is_control) {
        return Err(CONTROL.into());
    }
    Ok(Argument { text, is_quoted: word.is_quoted() })
}

/// What the grammar passed over between two words: a comment or a line continuation is not proven.
fn check_blanks(between: &str) -> Result<(), String> {
    match between.trim_start_matches([' ', '\t']) {
        "" => Ok(()),
        rest => Err(holds(rest)),
    }
}

/// Only characters that no shell has a meaning for where they stand.
fn check_literal(source: &str, before: &str) -> Result<(), String> {
    let mut before = before.chars().next_back();
    for c in source.chars() {
        let is_plain = match c {
            // `HEAD~1`: only at the start of a word, or after a colon or an equals sign, does the shell expand it.
            '~' | '^' => before.is_some_and(|before| before.is_ascii_alphanumeric() || "~^".contains(before)),
            c => c.is_ascii_alphanumeric() || "_@%+=:,./-".contains(c),
        };
        if !is_plain {
            return Err(holds(&c.to_string()));
        }
        before = Some(c);
    }
    Ok(())
}

/// Only characters that mean the same in every shell between double quotes.
fn check_double(inner: &[Part<'_>]) -> Result<(), String> {
    let is_plain = |part: &Part<'_>| match part.kind {
        PartKind::Literal => !part.span.source.contains(['$', '`', '\\', '!']),
        // It is reported behind the quote.
        PartKind::Unclosed { .. } => true,
        PartKind::Escaped
        | PartKind::Continuation
        | PartKind::Single
        | PartKind::Double(_)
        | PartKind::DollarQuote
        | PartKind::Glob
        | PartKind::Tilde
        | PartKind::Parameter
        | PartKind::Substitution => false,
    };
    if inner.iter().all(is_plain) { Ok(()) } else { Err("it holds an expansion".into()) }
}

/// Why a line that holds this is not proven.
fn holds(source: &str) -> String {
    let first = source.chars().next().unwrap_or_default();
    format!("it holds `{}`, which the shell may expand or redirect", first.escape_debug())
}

/// The flags that a program may be given, without their leading dash or dashes; values that follow a flag count as operands.
struct Known {
    program: &'static str,
    /// Letters that may be bundled after one dash.
    short: &'static str,
    /// Words that may follow two dashes, with or without `=value`.
    long: &'static [&'static str],
    /// Words that may follow one dash (`find`).
    tests: &'static [&'static str],
    /// Words without a dash name files.
    operands: Operands,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Operands {
    /// Files, which must lie in the workspace.
    Files,
    /// Text.
    Text,
    /// A pattern, then files.
    PatternThenFiles,
    /// None at all.
    None,
}

const KNOWN: &[Known] = &[
    Known {
        program: "ls",
        short: "laAhrtSR1dFisn",
        long: &["all", "almost-all", "human-readable", "recursive", "reverse", "classify", "directory"],
        tests: &[],
        operands: Operands::Files,
    },
    Known {
        program: "cat",
        short: "nbsAETv",
        long: &["number", "number-nonblank", "show-all"],
        tests: &[],
        operands: Operands::Files,
    },
    Known {
        program: "head",
        short: "ncqv0123456789",
        long: &["lines", "bytes", "quiet"],
        tests: &[],
        operands: Operands::Files,
    },
    Known {
        program: "tail",
        short: "ncqv0123456789",
        long: &["lines", "bytes", "quiet"],
        tests: &[],
        operands: Operands::Files,
    },
    Known {
        program: "wc",
        short: "lwcmL",
        long: &["lines", "words", "bytes", "chars"],
        tests: &[],
        operands: Operands::Files,
    },
    Known { program: "stat", short: "ct", long: &["format", "terse"], tests: &[], operands: Operands::Files },
    Known {
        program: "du",
        short: "shacd0123456789",
        long: &["summarize", "human-readable", "max-depth"],
        tests: &[],
        operands: Operands::Files,
    },
    Known {
        program: "cut",
        short: "dfcbs0123456789,",
        long: &["delimiter", "fields", "characters", "bytes"],
        tests: &[],
        operands: Operands::Files,
    },
    Known { program: "nl", short: "ba", long: &[], tests: &[], operands: Operands::Files },
    Known {
        program: "tr",
        short: "dsc",
        long: &["delete", "squeeze-repeats", "complement"],
        tests: &[],
        operands: Operands::Text,
    },
    Known {
        program: "grep",
        // Not -R, which follows symlinks to anywhere, and not -e, after which the first word is a file.
        short: "rnilvcEFwxoqHhsABCm0123456789",
        long: &[
            "recursive",
            "line-number",
            "ignore-case",
            "files-with-matches",
            "invert-match",
            "count",
            "extended-regexp",
            "fixed-strings",
            "word-regexp",
            "only-matching",
            "include",
            "exclude",
            "exclude-dir",
            "max-count",
            "context",
            "no-messages",
        ],
        tests: &[],
        operands: Operands::PatternThenFiles,
    },
    Known {
        program: "find",
        short: "",
        long: &[],
        tests: &[
            "name", "iname", "path", "ipath", "type", "maxdepth", "mindepth", "size", "mtime", "newer", "empty", "not",
            "o", "a", "print",
        ],
        operands: Operands::Files,
    },
    Known { program: "pwd", short: "LP", long: &[], tests: &[], operands: Operands::None },
    Known { program: "echo", short: "n", long: &[], tests: &[], operands: Operands::Text },
    Known { program: "date", short: "u", long: &["utc"], tests: &[], operands: Operands::None },
    Known { program: "whoami", short: "", long: &[], tests: &[], operands: Operands::None },
    Known { program: "uname", short: "asrmno", long: &["all"], tests: &[], operands: Operands::None },
    Known { program: "true", short: "", long: &[], tests: &[], operands: Operands::None },
    Known { program: "false", short: "", long: &[], tests: &[], operands: Operands::None },
    Known { program: "basename", short: "", long: &[], tests: &[], operands: Operands::Text },
    Known { program: "dirname", short: "", long: &[], tests: &[], operands: Operands::Text },
];

/// `git` reads the repository's own configuration, which can name programs; so these also need a configuration that names none.
const GIT: &[Known] = &[
    Known {
        program: "status",
        short: "sbuv",
        long: &["short", "branch", "porcelain", "untracked-files"],
        tests: &[],
        operands: Operands::Files,
    },
    Known {
        program: "diff",
        short: "wbU0123456789",
        long: &["stat", "cached", "staged", "name-only", "name-status", "numstat", "no-color", "unified", "word-diff"],
        tests: &[],
        operands: Operands::Files,
    },
    Known {
        program: "log",
        short: "np0123456789",
        long: &[
            "oneline",
            "stat",
            "graph",
            "all",
            "decorate",
            "name-only",
            "since",
            "until",
            "author",
            "grep",
            "max-count",
            "no-merges",
            "reverse",
        ],
        tests: &[],
        operands: Operands::Files,
    },
    Known {
        program: "show",
        short: "s",
        long: &["stat", "name-only", "oneline", "no-color"],
        tests: &[],
        operands: Operands::Files,
    },
    Known {
        program: "ls-files",
        short: "mdocz",
        long: &["modified", "others", "exclude-standard"],
        tests: &[],
        operands: Operands::Files,
    },
    Known {
        program: "rev-parse",
        short: "",
        long: &["show-toplevel", "abbrev-ref", "short", "verify"],
        tests: &[],
        operands: Operands::Files,
    },
    Known { program: "blame", short: "Lw", long: &[], tests: &[], operands: Operands::Files },
];

/// What a repository's own configuration may say without git running or reading anything for it.
const GIT_KEYS: [&str; 17] = [
    "core.repositoryformatversion",
    "core.filemode",
    "core.bare",
    "core.logallrefupdates",
    "core.ignorecase",
    "core.precomposeunicode",
    "core.symlinks",
    "core.autocrlf",
    "core.eol",
    "remote.url",
    "remote.fetch",
    "branch.remote",
    "branch.merge",
    "branch.rebase",
    "user.name",
    "user.email",
    "init.defaultbranch",
];

fn prove_command(words: &[&Argument<'_>], workspace: &Path) -> Result<(), String> {
    let (program, args) = words.split_first().ok_or("there is no command")?;
    if program.is_quoted {
        return Err("the program's name is quoted".into());
    }
    if program.text == "git" {
        let (sub, args) = args.split_first().ok_or("git without a command is not known to only read")?;
        let known = GIT
            .iter()
            .find(|known| known.program == sub.text && !sub.is_quoted)
            .ok_or_else(|| format!("git {} is not known to only read", sub.text))?;
        check_git(workspace)?;
        return prove_args(known, args, workspace);
    }
    let known = KNOWN
        .iter()
        .find(|known| known.program == program.text)
        .ok_or_else(|| format!("{} is not known to only read", program.text))?;
    prove_args(known, args, workspace)
}

fn prove_args(known: &Known, args: &[&Argument<'_>], workspace: &Path) -> Result<(), String> {
    let mut pattern_seen = known.operands != Operands::PatternThenFiles;
    let mut only_operands = false;
    for word in args {
        let text = word.text.as_ref();
        if text == "--" && !only_operands {
            only_operands = true;
            continue;
        }
        if let Some(flag) = text.strip_prefix('-').filter(|f| !f.is_empty() && !only_operands) {
            prove_flag(known, flag)?;
            continue;
        }
        match known.operands {
            Operands::None => return Err(format!("{} with `{text}` is not known to only read", known.program)),
            Operands::Text => {}
            Operands::PatternThenFiles if !pattern_seen => pattern_seen = true,
            Operands::PatternThenFiles | Operands::Files => prove_inside(text, workspace)?,
        }
    }
    Ok(())
}

fn prove_flag(known: &Known, flag: &str) -> Result<(), String> {
    let fine = match flag.strip_prefix('-') {
        Some(long) => known.long.contains(&long.split('=').next().unwrap_or(long)),
        None => {
            known.tests.contains(&flag) || (!known.short.is_empty() && flag.chars().all(|c| known.short.contains(c)))
        }
    };
    if fine { Ok(()) } else { Err(format!("{} -{flag} is not known to only read", known.program)) }
}

/// A word that names a file must lie in the workspace; a symlink is followed to where it really leads.
fn prove_inside(text: &str, workspace: &Path) -> Result<(), String> {
    let outside = || format!("`{text}` may lie outside the workspace");
    let path = Path::new(text);
    let mut at = if path.is_absolute() { PathBuf::new() } else { workspace.to_owned() };
    for component in path.components() {
        match component {
            Component::ParentDir => return Err(outside()),
            _ => at.push(component),
        }
        // What is not there yet cannot lead anywhere.
        if let Ok(real) = at.canonicalize()
            && !real.starts_with(workspace)
            && !workspace.starts_with(&real)
        {
            return Err(outside());
        }
    }
    if at.canonicalize().is_ok_and(|real| !real.starts_with(workspace))
        || (path.is_absolute() && !path.starts_with(workspace))
    {
        return Err(outside());
    }
    Ok(())
}

fn check_git(workspace: &Path) -> Result<(), String> {
    let git = workspace.join(".git");
    // A submodule has a configuration of its own, and so has a repository that shares another's.
    if workspace.join(".gitmodules").exists() || git.join("modules").exists() || git.join("commondir").exists() {
        return Err("the repository has submodules or shares another's configuration".into());
    }
    let text = std::fs::read_to_string(git.join("config"))
        .map_err(|_| "the repository's configuration cannot be read here".to_owned())?;
    match git_keys(&text).find(|key| !GIT_KEYS.contains(&key.as_str())) {
        Some(key) => Err(format!("the repository's configuration sets `{key}`, which may run programs")),
        None => Ok(()),
    }
}

/// Every `section.key` of a configuration, without the section's name in quotes.
fn git_keys(text: &str) -> impl Iterator<Item = String> {
    let mut section = String::new();
    let lines: Vec<String> = text
        .lines()
        .map(|line| line.trim().to_lowercase())
        .filter(|line| !line.is_empty() && !line.starts_with(['#', ';']))
        .collect();
    lines.into_iter().filter_map(move |line| match line.strip_prefix('[') {
        Some(rest) => {
            // A key on the line of its section, or a section that is spelt otherwise, is no key that is known.
            let whole = rest.ends_with(']') && rest.matches(']').count() == 1;
            section = rest.split([' ', ']', '.']).next().unwrap_or_default().to_owned();
            if whole { None } else { Some(line.clone()) }
        }
        None => Some(format!("{section}.{}", line.split(['=', ' ', '\t']).next().unwrap_or_default())),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workspace() -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir_all(folder.path().join("src")).expect("mkdir");
        std::fs::create_dir_all(folder.path().join(".git")).expect("mkdir");
        std::fs::write(folder.path().join(".git/config"), "[core]\n\tbare = false\n").expect("write");
        std::os::unix::fs::symlink("/etc", folder.path().join("lnk")).expect("symlink");
        folder
    }

    #[test]
    fn what_people_look_at_all_day_runs_without_a_question() {
        let folder = workspace();
        let root = folder.path().canonicalize().expect("real");
        for command in [
            "ls -la src",
            "cat Cargo.toml",
            "git status",
            "git diff HEAD~1 -- src/main.rs",
            "git show HEAD^",
            "git log --oneline -n 20",
            "grep -rn \"fn main\" src",
            "wc -l src/main.rs",
            "head -n 40 README.md",
            "find . -name \"*.rs\" -type f",
            "ls && pwd",
            "git log --oneline | head",
            "stat Cargo.toml",
            "cat a.txt | grep -i 'needle' | wc -l",
            "echo done; ls",
            "tail -n 5 x.log || true",
            "head -5 a",
        ] {
            assert_eq!(prove_read_only(command, &root), Ok(()), "{command}");
        }
    }

    #[test]
    fn whatever_could_do_more_than_read_is_asked_about() {
        let folder = workspace();
        let root = folder.path().canonicalize().expect("real");
        for command in [
            "echo x > P",
            "echo x >| P",
            "ls &>P",
            "ls & touch P",
            "ls\ntouch P",
            "ls\rtouch P",
            "ls;touch P",
            "ls|tee P",
            "echo $(touch P)",
            "echo `touch P`",
            "cat <(touch P)",
            "cat <<X\n$(touch P)\nX",
            "{touch,P}",
            "touch${IFS}P",
            "$'\\x74ouch' P",
            "a=touch; $a P",
            "ls # \\\ntouch P",
            "ls() { touch P; }; ls",
            ". ./s",
            "eval 'touch P'",
            "exec touch P",
            "command touch P",
            "env touch P",
            "timeout 5 touch P",
            "xargs touch P",
            "LD_PRELOAD=./e.so ls",
            "./ls",
            "'ls'",
            "find . -exec touch P {} +",
            "find . -delete",
            "find . -fprintf P x",
            "find . '-ex''ec' touch P",
            "sort in -o P",
            "sort -oP in",
            "uniq in P",
            "sed -n 'w P' in",
            "awk 'BEGIN{system(\"touch P\")}'",
            "tar xf a.tar",
            "git -c alias.x='!touch P' x",
            "git log --output=P",
            "git diff --output P",
            "git grep -O'touch P' a",
            "git branch -D x",
            "git config core.hooksPath ./evil",
            "git stash",
            "git diff --ext-diff",
            "git diff --textconv",
            "cat /etc/passwd",
            "grep -R x .",
            "diff a b",
            "grep -eo /etc/passwd",
            "grep -ve -n /etc/passwd",
            "git diff /dev/null /etc/passwd",
            "git diff /etc/passwd /etc/group",
            "git log lnk/x",
            "cat ~root/x",
            "cat a=~/x",
            "cat lnk/passwd",
            "cat ../x",
            "ls /",
            "cat ~/.ssh/id_rsa",
            "grep -r x /etc",
            "grep -f lnk/passwd x",
            "cat 'unclosed",
            "ls |",
            "&& ls",
            "ls ;; ls",
            "echo \"$HOME\"",
            "cat *",
            "make",
            "python3 -c 'x'",
            "cat \u{202e}x",
            "cat\u{a0}x",
            "ls\u{a0}",
            "\u{3000}ls",
            "ls\u{2003}-l",
            "ls\u{2028}touch P",
            "ls\u{85}touch P",
            "ls \u{feff}",
            "ls\u{200b}",
            "ls\u{b}",
            "ls\u{c}-l",
            "ls\r",
            "ls\r\ntouch P",
            "ls 'a\rb'",
            "ls \"a\nb\"",
            "ls \0x",
            "ls 'a\0b'",
            "ls \\\n-l",
            "ls\\\n",
            "l\\\ns",
            "echo \\ #; touch P",
            "echo a\\\n#; touch P",
            "echo a \\\n#; touch P",
            "echo {}#; touch P",
            "echo ''#; touch P",
            "ls # a comment",
            "# a comment",
            "cat <<<x",
            "cat <<-X\n\ttouch P\n\tX",
            "cat <<'X' && touch P\nX",
            "cat 0<x",
            "ls 2>&1",
            "ls 2>/dev/null",
            "ls >&2",
            "ls <>P",
            "ls &>>P",
            "ls {fd}>P",
            "tee >(touch P)",
            "cat =(ls)",
            "ls ${x:-$(touch P)}",
            "echo $((1+1))",
            "echo $[1+1]",
            "echo $$",
            "echo a$",
            "echo \"a$\"",
            "echo $\\\nx",
            "echo $'a'",
            "echo $\"a\"",
            "echo \"a\\\"b\"",
            "echo \"`ls`\"",
            "echo !!",
            "echo \"!x\"",
            "! ls",
            "time ls",
            "coproc ls",
            "{ ls; }",
            "(ls)",
            "((1))",
            "[[ -f x ]]",
            "[ -f x ]",
            "if ls; then ls; fi",
            "for a in b; do ls; done",
            "while ls; do ls; done",
            "case a in a) ls;; esac",
            "function f { ls; }; f",
            "alias ls='touch P'; ls",
            "cat a?",
            "cat [ab]",
            "cat {a,b}",
            "cat x{1..3}",
            "cat ~",
            "cat x=~",
            "cat x:~/y",
            "cat ^x",
            "a=1",
            "a=1 ls",
            "a+=1 ls",
            "a[0]=1 ls",
            "ls;",
            "ls; ;ls",
            "ls | | ls",
            "ls |& cat",
            "ls &&& ls",
            "ls &",
            "ls ||",
            "ls \\",
            "\\ls",
            "\"ls\"",
            "l's'",
            "git 'status'",
            "$(ls",
            "`ls",
            "${ls",
            "cat \"a $(\"",
            "date -s 2020-01-01",
            "tail -f x",
        ] {
            assert!(prove_read_only(command, &root).is_err(), "{command}");
        }
        assert!(prove_read_only(&"ls && ".repeat(9), &root).is_err());
        assert!(prove_read_only(&"a".repeat(3000), &root).is_err());
    }

    #[test]
    fn a_program_without_a_shell_is_judged_by_its_words_as_they_are() {
        let folder = workspace();
        let root = folder.path().canonicalize().expect("real");
        for words in [
            &["cat", "a b", "*", "$HOME", "#", "é"][..],
            // An apostrophe and a leading caret ask on a line of bash; here no shell reads them.
            &["grep", "it's", "src"],
            &["grep", "^fn", "src"],
        ] {
            assert_eq!(prove(words, &root), Ok(()), "{words:?}");
        }
        for words in [
            &[][..],
            &[""],
            &["touch", "P"],
            &["ls "],
            &["cat", "a\nb"],
            &["cat", "../x"],
            &["cat", "lnk/passwd"],
            &["find", ".", "-delete"],
            &["git", "log", "--output=P"],
        ] {
            assert!(prove(words, &root).is_err(), "{words:?}");
        }
        assert!(prove(&["cat", &"a".repeat(2_000)], &root).is_err());
    }

    #[test]
    fn a_repository_that_names_programs_makes_git_ask() {
        let folder = workspace();
        let root = folder.path().canonicalize().expect("real");
        for config in [
            "[core]\n\tfsmonitor = touch P\n",
            "[core] fsmonitor = touch P\n",
            "[CORE]\nFSMonitor=x\n",
            "[include]\npath = x\n",
            "[alias]\nst = !touch P\n",
            "[remote \"o\"]\nuploadpack = touch P\n",
            "[extensions]\npartialClone = o\n",
            "[core]\nfilemode = true\n[diff \"x\"]\ntextconv = touch P\n",
        ] {
            std::fs::write(root.join(".git/config"), config).expect("write");
            assert!(prove_read_only("git status", &root).is_err(), "{config}");
        }
        let usual = "[core]\n\tbare = false\n# mine\n[remote \"origin\"]\n\turl = git@x:y.git\n\tfetch = +refs/*:refs/*\n[branch \"main\"]\n\tremote = origin\n";
        std::fs::write(root.join(".git/config"), usual).expect("write");
        assert_eq!(prove_read_only("git status", &root), Ok(()));
        std::fs::write(root.join(".git/commondir"), "../evil").expect("write");
        assert!(prove_read_only("git status", &root).is_err());
        std::fs::remove_file(root.join(".git/config")).expect("rm");
        assert!(prove_read_only("git status", &root).is_err());
    }
}
