//! Rules as the user writes them (`bash(cargo test *)`), and what they cover.

use globset::GlobBuilder;

use super::readers::prove_or_allowed;
use super::shell::{LineEnd, Part, PartKind, Script, Token, TokenKind, Word, quoted};
use super::touch::Command;
use super::{Readable, Touch};
use protocol::event::{Rule, Scope};
use std::path::Path;

mod dangers; // what commands could destroy
mod grave; // what cannot be taken back
mod starters; // programs that start others by their arguments
mod lasting; // commands whose damage lasts, as data
mod offered; // the pattern that "always" offers
mod pattern; // words with `*` and `?`
mod written; // a rule as the user writes it

pub use dangers::deleted;
pub use dangers::{danger, danger_of};
pub use grave::grave;
pub use offered::{covers_files, pattern_of, scopes_of_files};
use pattern::{Glob, Pattern};
pub use written::{parse, shown};

/// How often a text inside a text is parsed: `bash -c 'sh -c "…"'`.
const MAX_DEPTH: u8 = 3;

/// Whether a rule covers any command of a line, and then whether it covers all of them.
pub fn overlap(scope: &Scope, line: &str) -> Option<bool> {
    let (Scope::Command(text) | Scope::Pattern(text)) = scope else { return None };
    if text == line {
        return Some(true);
    }
    let pattern = Pattern::parse(text).ok()?;
    let script = Script::parse(line.trim(), LineEnd::Newline);
    let (mut any, mut all) = (false, true);
    for command in script.tokens.split(|token| matches!(token.kind, TokenKind::Operator(_))) {
        let words = command.iter().filter(|token| !matches!(token.kind, TokenKind::Redirection(_)));
        let words: Option<Vec<String>> = words.map(|token| word(token).and_then(text_of)).collect();
        let words = words.unwrap_or_default();
        let is_covered = pattern.matches(&words.iter().map(String::as_str).collect::<Vec<_>>());
        any |= is_covered;
        all &= is_covered;
    }
    any.then_some(all)
}

/// The first of these allow rules that covers the call, where every command of it is covered or proven to only read.
pub(super) fn allowing<'a>(rules: &[Rule], touch: &Touch, readable: impl Into<Readable<'a>>) -> Option<Rule> {
    let readable = readable.into();
    let patterns: Vec<(&Rule, Pattern)> = rules
        .iter()
        .filter_map(|rule| match rule {
            Rule::Allow(Scope::Pattern(text) | Scope::Command(text)) => Some((rule, Pattern::parse(text).ok()?)),
            Rule::Allow(_) | Rule::Deny(_) => None,
        })
        .collect();
    let matching = |words: &[&str]| patterns.iter().find(|(_, pattern)| pattern.matches(words)).map(|(rule, _)| *rule);
    let commands = |line: &str| {
        let exact = rules.iter().find(|rule| matches!(rule, Rule::Allow(Scope::Command(it)) if it == line));
        let first = std::cell::Cell::new(None);
        let is_allowed = |words: &[&str], _: &[&Path]| {
            let rule = matching(words);
            first.set(first.get().or(rule));
            rule.is_some()
        };
        exact.or_else(|| prove_or_allowed(line, readable, &is_allowed).ok().and_then(|()| first.get())).cloned()
    };
    match touch {
        Touch::Command(line) => commands(line),
        Touch::Program(words) => {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let line = quoted(words.iter().copied());
            let exact = rules.iter().find(|rule| matches!(rule, Rule::Allow(Scope::Command(it)) if *it == line));
            exact.or_else(|| matching(&words)).cloned()
        }
        Touch::Files { protected: None, path } => rules
            .iter()
            .find(|rule| match rule {
                Rule::Allow(Scope::FileChanges) => true,
                Rule::Allow(Scope::Files(glob)) => path.as_deref().is_some_and(|path| is_below(glob, path)),
                Rule::Allow(_) | Rule::Deny(_) => false,
            })
            .cloned(),
        Touch::Outside { paths, secret: None } => rules
            .iter()
            .find(|rule| match rule {
                Rule::Allow(Scope::Reads(folder)) => paths.iter().all(|path| path.starts_with(folder)),
                Rule::Allow(_) | Rule::Deny(_) => false,
            })
            .cloned(),
        Touch::Mcp { server, tool, pin, .. } => rules
            .iter()
            .find(|rule| match rule {
                Rule::Allow(Scope::Mcp(text)) => is_of_server(text, server, tool, pin),
                Rule::Allow(_) | Rule::Deny(_) => false,
            })
            .cloned(),
        // Rules allow nothing else.
        _ => None,
    }
}

/// Whether each program of a call that is not proven to read is one of these, with its words and the folders in one of which it
/// starts, and is covered by an allow rule for whose own words, but for patterns, this holds.
pub(super) fn each_is_covered_by(
    rules: &[Rule],
    touch: &Touch,
    readable: Readable<'_>,
    holds: &dyn Fn(&[&str]) -> bool,
    is_one: &dyn Fn(&[&str], &[&Path]) -> bool,
) -> bool {
    let patterns = rules.iter().filter_map(|rule| match rule {
        Rule::Allow(Scope::Pattern(text) | Scope::Command(text)) => Pattern::parse(text).ok(),
        Rule::Allow(_) | Rule::Deny(_) => None,
    });
    let is_wanted = |it: &Pattern| holds(&it.words.iter().map_while(Glob::literal).collect::<Vec<_>>());
    let patterns: Vec<Pattern> = patterns.filter(is_wanted).collect();
    let is_covered = |words: &[&str], folders: &[&Path]| {
        is_one(words, folders) && patterns.iter().any(|pattern| pattern.matches(words))
    };
    match touch.command() {
        Some(Command::Program(words)) => is_covered(&words, &[readable.workspace]),
        Some(Command::Line(line)) => prove_or_allowed(line, readable, &is_covered).is_ok(),
        None => false,
    }
}

/// Folders outside the workspace that the user lets pixir read, but for those in which a deny leaves something out.
pub fn read_folders(rules: &[Rule]) -> Vec<&Path> {
    let allowed = rules.iter().filter_map(|rule| match rule {
        Rule::Allow(Scope::Reads(folder)) => Some(Path::new(folder)),
        Rule::Allow(_) | Rule::Deny(_) => None,
    });
    allowed.filter(|folder| !denies_reading(rules, folder)).collect()
}

/// Folders outside the workspace that the user lets pixir work on, without those that a deny leaves out, in whole or in part,
/// and without those that lie in another one.
pub fn written_folders(rules: &[Rule]) -> Vec<&Path> {
    let allowed = rules.iter().filter_map(|rule| match rule {
        Rule::Allow(Scope::Writes(folder)) => Some(Path::new(folder)),
        Rule::Allow(_) | Rule::Deny(_) => None,
    });
    let mut all: Vec<&Path> =
        allowed.filter(|folder| !denies_writing(rules, folder) && !denies_reading(rules, folder)).collect();
    all.sort();
    // In this order a folder comes before what lies in it.
    all.dedup_by(|next, before| next.starts_with(&**before));
    all
}

/// Whether a deny leaves out working on this folder outside the workspace, or on something in it.
pub fn denies_writing(rules: &[Rule], folder: &Path) -> bool {
    rules.iter().any(|rule| matches!(rule, Rule::Deny(Scope::Writes(it)) if Path::new(it).starts_with(folder) || folder.starts_with(it)))
}

/// Whether a deny leaves out this folder outside the workspace, or something in it.
pub fn denies_reading(rules: &[Rule], folder: &Path) -> bool {
    rules.iter().any(|rule| matches!(rule, Rule::Deny(Scope::Reads(it)) if Path::new(it).starts_with(folder) || folder.starts_with(it)))
}

/// Whether a command is nothing but commands of these patterns, alone or joined by operators. What is only proven to read is
/// not enough, and neither is what a wrapper hides.
pub(super) fn consists_of(patterns: &[String], command: &Command<'_>, readable: Readable<'_>) -> bool {
    let patterns: Vec<Pattern> = patterns.iter().filter_map(|text| Pattern::parse(text).ok()).collect();
    let is_listed = |words: &[&str]| patterns.iter().any(|pattern| pattern.matches(words));
    match command {
        Command::Program(words) => is_listed(words),
        Command::Line(line) => {
            let script = Script::parse(line.trim(), LineEnd::Newline);
            let mut commands = script.tokens.split(|token| matches!(token.kind, TokenKind::Operator(_)));
            let is_whole = |command: &[Token<'_>]| {
                let words = command.iter().filter(|token| !matches!(token.kind, TokenKind::Redirection(_)));
                let words: Option<Vec<String>> = words.map(|token| word(token).and_then(text_of)).collect();
                words.is_some_and(|words| is_listed(&words.iter().map(String::as_str).collect::<Vec<_>>()))
            };
            // What stands around the programs, such as a redirection into a file, is judged as always.
            let is_allowed = |words: &[&str], _: &[&Path]| is_listed(words);
            commands.all(is_whole) && prove_or_allowed(line, readable, &is_allowed).is_ok()
        }
    }
}

/// Whether this text can be the pattern of a command.
///
/// # Errors
/// Why not, and what to write instead.
pub fn check_pattern(text: &str) -> std::result::Result<(), (String, &'static str)> {
    Pattern::parse(text).map(drop)
}

/// Whether a rule covers a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Covers {
    No,
    /// A part of the call is known only when it runs.
    Perhaps,
    Yes,
}

/// Whether a deny covers any part of a call. It looks behind wrappers (`sudo`, `env`, `bash -c`) and at any position of a
/// command, because a deny that covers too much costs a question at most.
pub(super) fn denies(scope: &Scope, touch: &Touch) -> Covers {
    let is = |covers: bool| if covers { Covers::Yes } else { Covers::No };
    match (scope, touch) {
        (Scope::FileChanges, Touch::Files { .. }) => Covers::Yes,
        (Scope::Files(glob), Touch::Files { path, .. }) => match path {
            // A deny of `**/*.key` means the keys of every folder.
            Some(path) => {
                let ends = path.match_indices('/').map(|(at, _)| &path[at + 1..]).filter(|_| path.starts_with('/'));
                is(is_below(glob, path) || ends.into_iter().any(|end| is_below(glob, end)))
            }
            None => Covers::Perhaps,
        },
        (Scope::Reads(folder), Touch::Outside { paths, .. }) => {
            // A search of a folder above may read it.
            let perhaps = paths.iter().any(|path| Path::new(folder).starts_with(path));
            let covers = paths.iter().any(|path| path.starts_with(folder));
            if !covers && perhaps { Covers::Perhaps } else { is(covers) }
        }
        (Scope::Mcp(text), Touch::Mcp { server, tool, pin, .. }) => {
            // A deny with a definition binds the tool whatever its definition is by now.
            let text = text.split('#').next().unwrap_or(text);
            is(is_of_server(text, server, tool, pin))
        }
        (Scope::Command(text) | Scope::Pattern(text), _) => {
            let Some(command) = touch.command() else { return Covers::No };
            let line = command.line();
            if *text == line {
                return Covers::Yes;
            }
            // A rule of an older build may be any line; then it covers that line alone.
            let Ok(pattern) = Pattern::parse(text) else { return Covers::No };
            let first_is = |word: &str| pattern.words[0].matches(word) || pattern.words[0].matches(base(word));
            let matches = |words: &[Option<String>]| {
                let Some(program) = words.first().and_then(Option::as_deref).filter(|word| first_is(word)) else {
                    return false;
                };
                // A word that only the shell knows may be any.
                let known: Vec<&str> = words.iter().skip(1).map(|word| word.as_deref().unwrap_or(UNKNOWN)).collect();
                let _ = program;
                pattern.matches_rest(&known)
            };
            may_run(&line, &matches, 0)
        }
        (_, _) => Covers::No,
    }
}

/// Whether a rule about MCP covers this tool: `SERVER`, `SERVER.TOOL`, or `SERVER.TOOL#PIN`, which ends with the definition.
fn is_of_server(text: &str, server: &str, tool: &str, pin: &str) -> bool {
    let (name, its_pin) = text.rsplit_once('#').map_or((text, None), |(name, pin)| (name, Some(pin)));
    let (its_server, its_tool) = name.split_once('.').map_or((name, None), |(server, tool)| (server, Some(tool)));
    its_server == server && its_tool.is_none_or(|it| it == tool) && its_pin.is_none_or(|it| it == pin)
}

/// Stands for a word that only a running shell knows. No word of a program can hold NUL.
const UNKNOWN: &str = "\0";

fn base(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// Whether any command in the line, at any depth, matches.
fn may_run(line: &str, matches: &dyn Fn(&[Option<String>]) -> bool, depth: u8) -> Covers {
    if depth > MAX_DEPTH {
        return Covers::Perhaps;
    }
    let script = Script::parse(line, LineEnd::Newline);
    let mut covers = Covers::No;
    let mut words: Vec<Option<String>> = Vec::new();
    let check = |words: &mut Vec<Option<String>>| {
        let found = (0..words.len()).any(|at| matches(&words[at..]));
        let hides_program = words.first().is_some_and(Option::is_none);
        words.clear();
        match (found, hides_program) {
            (true, _) => Covers::Yes,
            (false, true) => Covers::Perhaps,
            (false, false) => Covers::No,
        }
    };
    for token in &script.tokens {
        match &token.kind {
            TokenKind::Word(word) | TokenKind::Redirection(Some(word)) => {
                let text = text_of(word);
                for inner in inside(word, text.as_deref()) {
                    covers = covers.max(may_run(&inner, matches, depth + 1));
                }
                if matches!(token.kind, TokenKind::Word(_)) {
                    words.push(text);
                }
            }
            TokenKind::HereDocument => covers = covers.max(may_run(token.span.source.trim_start(), matches, depth + 1)),
            TokenKind::Operator(_) | TokenKind::Parenthesis => covers = covers.max(check(&mut words)),
            TokenKind::Redirection(None) => {}
        }
    }
    covers.max(check(&mut words))
}

/// Texts in a word that may be commands themselves.
fn inside(word: &Word<'_>, text: Option<&str>) -> Vec<String> {
    let mut found: Vec<String> =
        text.filter(|text| text.contains([' ', '\t', '\n', ';'])).map(str::to_owned).into_iter().collect();
    let mut parts: Vec<_> = word.parts.iter().collect();
    while let Some(part) = parts.pop() {
        match &part.kind {
            PartKind::Double(inner) => parts.extend(inner),
            PartKind::Substitution | PartKind::Parameter => {
                let source = part.span.source.trim_start_matches(['$', '(', '`', '<', '>', '{']);
                if matches!(part.kind, PartKind::Substitution) {
                    found.push(source.trim_end_matches([')', '`', '}']).to_owned());
                }
            }
            _ => {}
        }
    }
    found
}

fn word<'a, 'b>(token: &'b Token<'a>) -> Option<&'b Word<'a>> {
    if let TokenKind::Word(word) = &token.kind { Some(word) } else { None }
}

fn text_of(word: &Word<'_>) -> Option<String> {
    if word.brace.is_some() {
        return None;
    }
    word.parts.iter().map(|part| part.text()).collect()
}

fn path_glob(glob: &str) -> Option<globset::GlobMatcher> {
    GlobBuilder::new(glob).literal_separator(true).build().ok().map(|glob| glob.compile_matcher())
}

/// Whether this is a glob of files below the workspace.
pub fn is_path_glob(glob: &str) -> bool {
    !glob.trim().is_empty() && parse(&format!("files({glob})")).is_ok()
}

/// Whether a glob covers this path. One from the root of the workspace covers no absolute path, which lies in another folder.
pub(super) fn is_below(glob: &str, path: &str) -> bool {
    glob.starts_with('/') == path.starts_with('/') && path_glob(glob).is_some_and(|glob| glob.is_match(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allow(text: &str) -> Rule {
        Rule::Allow(parse(text).expect(text))
    }

    #[test]
    fn a_pattern_covers_whole_commands_and_never_a_part_of_a_line() {
        let rules = [allow("bash(cargo test *)"), allow("bash(npm run build)"), allow("bash(make ?-*)")];
        let root = Path::new("/");
        let covered = |line: &str| allowing(&rules, &Touch::Command(line.into()), root).is_some();
        for line in
            ["cargo test", "cargo test -p core 'a b'", "npm run build", "make a-b", "cargo test && npm run build"]
        {
            assert!(covered(line), "{line}");
        }
        for line in [
            "cargo test | wc -l",
            "cargo test 2>&1 | tail -20",
            "cargo test >/dev/null 2>&1; echo $?",
            "cargo test 2>/dev/null | grep -c ok",
            "cd src && cargo test",
            "time cargo test",
            "timeout 60 cargo test 2>&1 | tail -5",
            "RUST_BACKTRACE=1 cargo test",
            "if cargo test; then echo ok; else echo no; fi",
            "for i in 1 2 3; do cargo test || true; done",
            "cargo test && ls | head -3 || npm run build",
            "cargo test # all of them",
        ] {
            assert!(covered(line), "beside what is proven to only read: {line}");
        }
        for line in [
            "cargo build",
            "cargo",
            "cargo testx",
            "xcargo test",
            "cargo test; rm x",
            "cargo test && touch P",
            "npm run build x",
            "cargo test > P",
            "cargo test $(touch P)",
            "cargo test `touch P`",
            "PATH=. cargo test",
            "sudo cargo test",
            "cargo test\ntouch P",
            "cargo test & touch P",
            "./cargo test",
            "echo 'cargo test",
            "make ab",
            "cargo test <(touch P)",
            "cargo\u{a0}test",
            "touch P # cargo test",
            "cargo test 2>&1 | tee P",
            "cargo test 2>P | tail -20",
            "cargo test > P 2>&1",
            "cargo test >> P",
            "cargo test &> P",
            "cargo test 3>&1",
            "cargo test 2>&1 | tail -20 > P",
            "cd .. && cargo test",
            "timeout -s KILL 60 cargo test",
            "timeout 60 touch P",
            "RUSTC_WRAPPER=x cargo test",
            "cargo test | xargs touch",
            "for i in a; do cargo test; touch P; done",
            "cargo test *",
            "cargo test $X",
            "cargo test |& tail",
        ] {
            assert!(!covered(line), "{line}");
        }
        let program = |words: &[&str]| Touch::Program(words.iter().map(|&it| it.to_owned()).collect());
        assert!(allowing(&rules, &program(&["cargo", "test", "; rm x"]), root).is_some(), "no shell reads it");
        assert!(allowing(&rules, &program(&["cargo test"]), root).is_none());
    }

    #[test]
    fn a_deny_finds_its_command_behind_wrappers_quotes_and_substitutions() {
        let Ok(scope) = parse("bash(git push *)") else { panic!("a pattern") };
        let covers = |line: &str| denies(&scope, &Touch::Command(line.into()));
        for line in [
            "git push",
            "git push -f o main",
            "ls && git push",
            "sudo git push",
            "env A=1 git push x",
            "g'i't push",
            "bash -c 'git push'",
            "bash -c \"sh -c 'git push'\"",
            "echo $(git push)",
            "echo \"`git push`\"",
            "/usr/bin/git push",
            "(git push)",
            "if true; then git push; fi",
            "git push $REMOTE",
            "bash <<X\ngit push\nX",
        ] {
            assert_eq!(covers(line), Covers::Yes, "{line}");
        }
        assert_eq!(covers("$GIT push"), Covers::Perhaps);
        for line in ["git status", "git pull", "cargo test", "grep push README.md"] {
            assert_eq!(covers(line), Covers::No, "{line}");
        }
        let Ok(files) = parse("files(migrations/**)") else { panic!("a glob") };
        let change = |path: Option<&str>| Touch::Files { path: path.map(str::to_owned), protected: None };
        assert_eq!(denies(&files, &change(Some("migrations/1/a.sql"))), Covers::Yes);
        assert_eq!(denies(&files, &change(Some("src/a.rs"))), Covers::No);
        assert_eq!(denies(&files, &change(None)), Covers::Perhaps);
    }

    #[test]
    fn a_bad_rule_says_what_to_write() {
        for (text, part) in [
            ("cargo test", "write bash(PROGRAM ARGUMENTS)"),
            ("bash(*)", "name the program"),
            ("bash()", "write one like"),
            ("bash(a && b)", "one rule for each command"),
            ("bash(a $(b))", "plain words"),
            ("bash(A=1 make)", "name the program first"),
            ("files(../x)", "from the workspace's root"),
            ("files([)", "like files(src/**)"),
        ] {
            let error = parse(text).expect_err(text);
            assert!(format!("{:?}", error.remedy).contains(part), "{text}: {error:?}");
        }
        for text in ["bash(cargo test *)", "bash(cargo test)", "files(src/**)", "network", "files()"] {
            assert_eq!(shown(&parse(text).expect(text)), text);
        }
    }

    #[test]
    fn what_people_regret_is_named_and_a_command_has_its_pattern() {
        for line in [
            "rm -rf x",
            "sudo rm -fr /",
            "git push",
            "git -C x push -f",
            "git reset --hard HEAD~1",
            "ls; dd if=a of=b",
            "bash -c 'rm -r x'",
        ] {
            assert!(danger(line).is_some(), "{line}");
        }
        for line in ["cargo test", "git status", "rm x", "git reset x"] {
            assert_eq!(danger(line), None, "{line}");
        }
        let root = Path::new("/");
        for (line, pattern) in [
            ("cargo test -p core", "cargo test *"),
            ("cargo test && ls", "cargo test *"),
            ("cargo test 2>&1 | tail -20", "cargo test *"),
            ("cd usr && timeout 60 cargo test --workspace", "cargo test *"),
            ("make -j2", "make *"),
            ("python3 -m pytest -q 2>&1 | tail", "python3 -m pytest *"),
            ("uv run python -m pytest", "uv run python -m pytest *"),
            ("uv run ruff check .", "uv run ruff check *"),
            ("npm run build", "npm run *"),
        ] {
            assert_eq!(pattern_of(line, root).as_deref(), Some(pattern), "{line}");
        }
        for line in [
            "ls",
            "cargo test && cargo build",
            "cargo test > P",
            "git -C x push",
            "bash -c ls",
            "sudo ls",
            "python3 x.py",
            "A=1 make",
            "uv run --with x y",
            "npx x",
        ] {
            assert_eq!(pattern_of(line, root), None, "{line}");
        }
        let of = |text: &str| danger_of(&parse(text).expect(text)).is_some();
        assert!(["bash(rm *)", "bash(git reset *)", "bash(git push *)", "bash(mkfs *)"].into_iter().all(of));
        assert!(["bash(terraform *)", "bash(kubectl *)", "bash(aws s3 *)", "bash(crontab -r)"].into_iter().all(of));
        assert!(!["bash(kubectl get *)", "bash(npm run *)", "bash(docker build *)"].into_iter().any(of));
        assert!(!["bash(git status *)", "bash(cargo test *)", "files(src/**)"].into_iter().any(of));
    }
}
