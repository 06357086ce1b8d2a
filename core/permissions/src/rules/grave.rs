//! Commands whose damage lasts: before one of them runs, even once, the user types a word.

use std::borrow::Cow;

use super::{LineEnd, MAX_DEPTH, Part, PartKind, Script, TokenKind, Word, base, inside};

/// Folders and files that a build or a test makes again. To remove them is everyday work.
const MADE_AGAIN: [&str; 34] = [
    "target",
    "node_modules",
    "dist",
    "build",
    "out",
    "bin",
    "obj",
    "tmp",
    "temp",
    "coverage",
    "htmlcov",
    "venv",
    ".venv",
    "env",
    ".cache",
    "__pycache__",
    ".pytest_cache",
    ".mypy_cache",
    ".ruff_cache",
    ".tox",
    ".nox",
    ".eggs",
    ".next",
    ".nuxt",
    ".turbo",
    ".parcel-cache",
    ".svelte-kit",
    ".gradle",
    ".dart_tool",
    ".coverage",
    "logs",
    "_build",
    "cmake-build-debug",
    "cmake-build-release",
];
/// Programs that run the command behind them.
const PREFIXES: [&str; 12] =
    ["sudo", "doas", "env", "nohup", "nice", "time", "timeout", "command", "exec", "xargs", "builtin", "stdbuf"];
/// Programs that run the text behind `-c`.
const SHELLS: [&str; 6] = ["bash", "sh", "zsh", "dash", "ksh", "fish"];

/// What a command would destroy for good or publish, as clauses; none for everyday work. Unlike [`danger`](super::danger), it
/// looks only at what certainly runs, so that a word in a message asks for nothing.
pub fn grave(line: &str) -> Vec<String> {
    let mut found = Vec::new();
    of_line(line, 0, &mut found);
    found.dedup();
    found
}

fn of_line(line: &str, depth: u8, found: &mut Vec<String>) {
    if depth > MAX_DEPTH {
        return;
    }
    let script = Script::parse(line, LineEnd::Newline);
    let mut words: Vec<Option<String>> = Vec::new();
    for token in &script.tokens {
        match &token.kind {
            TokenKind::Word(word) => {
                let text = written(word);
                // Only what is substituted runs by itself.
                if text.is_none() {
                    inside(word, None).iter().for_each(|inner| of_line(inner, depth + 1, found));
                }
                words.push(text);
            }
            TokenKind::Operator(_) | TokenKind::Parenthesis => {
                of_command(&std::mem::take(&mut words), depth, found);
            }
            TokenKind::Redirection(_) | TokenKind::HereDocument => {}
        }
    }
    of_command(&words, depth, found);
}

/// The text of a word, with `*` and `?` as they are written: they stand for names in the folder before them.
fn written(word: &Word<'_>) -> Option<String> {
    fn text<'a>(part: &Part<'a>) -> Option<Cow<'a, str>> {
        if part.kind == PartKind::Glob { Some(part.span.source.into()) } else { part.text() }
    }
    if word.brace.is_some() { None } else { word.parts.iter().map(text).collect() }
}

fn of_command(words: &[Option<String>], depth: u8, found: &mut Vec<String>) {
    let is_setting = |word: &Option<String>| {
        let name = word.as_deref().and_then(|it| it.split_once('=')).map(|(name, _)| name);
        name.is_some_and(|it| !it.is_empty() && it.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'))
    };
    let Some(start) = words.iter().position(|word| !is_setting(word)) else { return };
    let Some((Some(first), args)) = words[start..].split_first() else { return };
    let program = base(first);
    if PREFIXES.contains(&program) {
        // Its own options have values that look like programs, so each word may be the one.
        let before = found.len();
        (0..args.len())
            .take_while(|at| {
                of_command(&args[*at..], depth, found);
                found.len() == before
            })
            .for_each(drop);
        return;
    }
    let texts: Vec<&str> = args.iter().flatten().map(String::as_str).collect();
    if SHELLS.contains(&program) {
        let at = texts.iter().position(|it| it.starts_with('-') && it.contains('c') && !it.starts_with("--"));
        if let Some(text) = at.and_then(|at| texts.get(at + 1)) {
            of_line(text, depth + 1, found);
        }
    } else if program == "eval" {
        of_line(&texts.join(" "), depth + 1, found);
    } else {
        found.extend(of_program(program, args, &texts));
    }
}

fn of_program(program: &str, args: &[Option<String>], texts: &[&str]) -> Option<String> {
    let has = |word: &str| texts.contains(&word);
    let short = |flag: char| texts.iter().any(|it| it.starts_with('-') && !it.starts_with("--") && it.contains(flag));
    let says = |what: &str| Some(what.to_owned());
    match (program, texts.iter().copied().find(|it| !it.starts_with('-')).unwrap_or_default()) {
        ("rm", _) if short('r') || short('R') || has("--recursive") => {
            let operands = args.iter().filter(|it| it.as_deref().is_none_or(|it| !it.starts_with('-')));
            let lasting: Vec<&Option<String>> =
                operands.filter(|it| !it.as_deref().is_some_and(is_made_again)).collect();
            match lasting.first() {
                None => None,
                Some(Some(path)) if lasting.len() == 1 => Some(format!("it deletes {path} and all that is in it")),
                Some(_) => says("it deletes folders and all that is in them"),
            }
        }
        ("git", _) => of_git(texts),
        ("dd", _) if texts.iter().any(|it| it.starts_with("of=/dev/") && *it != "of=/dev/null") => {
            says("it overwrites a disk")
        }
        (name, _) if name.starts_with("mkfs") || name == "wipefs" => says("it erases a disk"),
        ("shred", _) => says("it destroys files"),
        ("kubectl", "delete") => says("it deletes from a cluster"),
        ("terraform" | "tofu", "destroy") => says("it deletes what terraform made"),
        ("npm" | "pnpm" | "yarn" | "cargo" | "poetry" | "uv", "publish") if !has("--dry-run") => {
            says("it publishes a package, which cannot be taken back")
        }
        ("docker" | "podman", "volume") if has("rm") || has("prune") => says("it deletes stored data"),
        ("gh", "repo") if has("delete") => says("it deletes a repository"),
        _ => None,
    }
}

fn of_git(words: &[&str]) -> Option<String> {
    // Options of git itself, such as `-C folder`, stand before the subcommand.
    let mut at = 0;
    while words.get(at).is_some_and(|it| it.starts_with('-')) {
        at += if matches!(words[at], "-C" | "-c" | "--git-dir" | "--work-tree") { 2 } else { 1 };
    }
    let (sub, args) = words.get(at..)?.split_first()?;
    let has = |word: &str| args.contains(&word);
    let short = |flag: char| args.iter().any(|it| it.starts_with('-') && !it.starts_with("--") && it.contains(flag));
    let what = match *sub {
        "push"
            if short('f')
                || has("--mirror")
                || args.iter().any(|it| it.starts_with("--force") || it.starts_with('+')) =>
        {
            "it replaces commits of the remote repository"
        }
        "push" if short('d') || has("--delete") || args.iter().any(|it| it.starts_with(':')) => {
            "it deletes a branch of the remote repository"
        }
        "reset" if has("--hard") => "it throws away uncommitted changes",
        "clean" if (short('f') || has("--force")) && !short('n') && !has("--dry-run") => {
            "it deletes files that git does not know"
        }
        "checkout" if short('f') || has("--force") || has(".") => "it throws away uncommitted changes",
        "restore" if has(".") && !has("--staged") => "it throws away uncommitted changes",
        "stash" if has("clear") || has("drop") => "it throws away stashed changes",
        "filter-branch" | "filter-repo" => "it rewrites the history of the repository",
        _ => return None,
    };
    Some(what.to_owned())
}

/// A path below the current folder, or a temporary one, that a build or a test makes again.
fn is_made_again(path: &str) -> bool {
    if path.contains("..") || path.starts_with('~') {
        return false;
    }
    if let Some(below) = path.strip_prefix("/tmp/") {
        return !below.trim_matches(['/', '*', '.']).is_empty();
    }
    let path = path.trim_start_matches("./");
    let of_build = |part: &str| MADE_AGAIN.contains(&part) || part.ends_with(".egg-info") || part.ends_with(".dSYM");
    !path.starts_with('/') && path.split('/').any(of_build)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_lasts_asks_for_a_word() {
        for line in [
            "rm -rf src",
            "rm -r .",
            "rm -rf *",
            "rm -rf src/*",
            "rm -rf {build,src}",
            "rm -rf ~/work",
            "rm -rf /",
            "rm -rf target src",
            "rm -rf \"$DIR\"",
            "rm -rf build/../src",
            "cd x && sudo rm -fr /var/lib/app",
            "bash -c 'rm -r x'",
            "echo $(rm -rf x)",
            "A=1 rm -R x",
            "find . -name x | xargs rm -rf x",
            "git push -f",
            "git -C x push --force-with-lease origin main",
            "git push origin +main",
            "git push origin :old",
            "git reset --hard HEAD~1",
            "git clean -fdx",
            "git checkout .",
            "dd if=a of=/dev/sda",
            "mkfs.ext4 /dev/sdb1",
            "cargo publish",
            "kubectl delete pod x",
        ] {
            assert!(!grave(line).is_empty(), "{line}");
        }
        for line in [
            "rm -rf target node_modules ./dist build/*",
            "rm -rf build/ out/*.o",
            "rm -rf a/b/__pycache__ /tmp/work x.egg-info",
            "rm x",
            "rm -f notes.txt",
            "git push",
            "git push -u origin main",
            "git push --follow-tags",
            "git commit -m 'fix: rm -rf src is refused'",
            "echo 'git reset --hard'",
            "git reset HEAD x",
            "git clean -n",
            "git checkout -b new",
            "git branch -D old",
            "grep -rn 'rm -rf' .",
            "cargo publish --dry-run",
            "dd if=/dev/zero of=x",
            "find . -name '*.pyc' -delete",
            "cargo test && cargo build",
        ] {
            assert!(grave(line).is_empty(), "{line}");
        }
    }
}
