//! The pattern that "always" offers for a command.

use std::path::Path;

use super::starters::{command_starts_others, module_starts_others, starts_others, without_version};
use super::{base, is_below, parse};
use crate::readers::unproven;
use crate::shell::quoted;
use protocol::event::Scope;

/// The pattern of a line's program and subcommand, with any arguments; `None` where more than one program of the line needs
/// a rule. What is proven to only read needs none: `cargo test 2>&1 | tail -20` becomes `cargo test *`.
pub fn pattern_of(line: &str, workspace: &Path) -> Option<String> {
    let programs = unproven(line.trim(), workspace.into())?;
    let mut patterns = programs.iter().map(|words| pattern_of_program(words)).collect::<Option<Vec<String>>>()?;
    patterns.dedup();
    if patterns.len() == 1 { patterns.pop() } else { None }
}

/// The rules for changes of these files that are narrower than one for all files: the file, where it is one, and the folder
/// that they share.
pub fn scopes_of_files(paths: &[String]) -> Vec<Scope> {
    let glob = |text: String| match parse(&format!("files({text})")) {
        // A name with the signs of a glob would cover other names, or not itself.
        Ok(scope) if !text.is_empty() && covers_files(&scope, paths) => Some(scope),
        Ok(_) | Err(_) => None,
    };
    let [first, rest @ ..] = paths else { return Vec::new() };
    let file = if rest.is_empty() { glob(first.clone()) } else { None };
    let folder =
        Path::new(first).ancestors().skip(1).find(|folder| rest.iter().all(|it| Path::new(it).starts_with(folder)));
    let folder = folder.and_then(Path::to_str).filter(|it| !it.is_empty() && !it.contains(['*', '?', '[', '{']));
    file.into_iter().chain(folder.and_then(|folder| glob(format!("{folder}/**")))).collect()
}

/// Whether a rule covers changes of all these files.
pub fn covers_files(scope: &Scope, paths: &[String]) -> bool {
    match scope {
        Scope::FileChanges => true,
        Scope::Files(glob) => !paths.is_empty() && paths.iter().all(|path| is_below(glob, path)),
        Scope::Command(_)
        | Scope::Pattern(_)
        | Scope::Reads(_)
        | Scope::Writes(_)
        | Scope::Mcp(_)
        | Scope::Network
        | Scope::Unknown => false,
    }
}

fn pattern_of_program(words: &[String]) -> Option<String> {
    let (first, args) = words.split_first()?;
    let program = base(first);
    let is_plain = |word: &String| word.chars().all(|c| c.is_ascii_alphanumeric() || "-_:.".contains(c));
    let sub = args.first().filter(|word| !word.starts_with('-') && is_plain(word));
    match (program, args) {
        _ if first.starts_with('-') || first.contains(['=', '*', '?']) => None,
        (program, [flag, module, ..])
            if without_version(program) == "python"
                && flag == "-m"
                && is_plain(module)
                && !module_starts_others(module) =>
        {
            Some(format!("{} *", quoted([first.as_str(), flag, module])))
        }
        // A pattern of a program whose arguments are other commands, or code, is a rule for everything.
        _ if starts_others(program).is_some() => None,
        (_, [sub, rest @ ..]) if RUNS_OTHERS.contains(&(program, sub.as_str())) => {
            // `uv run *` would cover any program.
            Some(format!("{} {}", quoted([first.as_str(), sub.as_str()]), pattern_of_program(rest)?))
        }
        (_, [sub, ..]) if command_starts_others(program, sub) => None,
        // `git -C x status` would become `git *`, which covers `git push`.
        _ if HAS_SUBCOMMANDS.contains(&program) && sub.is_none() => None,
        _ => Some(format!("{} *", quoted(std::iter::once(first.as_str()).chain(sub.map(String::as_str))))),
    }
}

/// Programs and their subcommands that start the program that is named behind them.
const RUNS_OTHERS: [(&str, &str); 12] = [
    ("uv", "run"),
    ("poetry", "run"),
    ("pipenv", "run"),
    ("pdm", "run"),
    ("hatch", "run"),
    ("rye", "run"),
    ("bundle", "exec"),
    ("npm", "exec"),
    ("pnpm", "exec"),
    ("yarn", "exec"),
    ("mise", "exec"),
    ("direnv", "exec"),
];
/// Programs whose first word says what they do.
const HAS_SUBCOMMANDS: [&str; 18] = [
    "git",
    "cargo",
    "npm",
    "pnpm",
    "yarn",
    "bun",
    "docker",
    "podman",
    "kubectl",
    "terraform",
    "go",
    "gh",
    "systemctl",
    "conda",
    "nix",
    "rustup",
    "dotnet",
    "uv",
];

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken build: the pattern of such a program covers whatever it starts.
    #[test]
    fn no_pattern_is_offered_for_what_starts_other_programs() {
        for line in [
            "stdbuf -oL make",
            "flock f make",
            ". ./env.sh",
            "source env.sh",
            "env A=1 make",
            "nice -n 5 make",
            "timeout -s KILL 5 make",
            "xargs rm",
            "python3.11 x.py",
            "python3.11 -m pdb x.py",
            "python3 -m coverage run x.py",
            "/usr/bin/perl5.36 x.pl",
            "find . -exec rm {} +",
            "fd -x rm",
            "parallel make",
            "watch make",
            "script -c make out",
            "unshare -r make",
            "busybox sh",
            "setsid make",
            "taskset 1 make",
            "strace make",
            "ssh h make",
            "tmux new make",
            "awk -f x",
            "sed -i s/a/b/ x",
            "vim -c q",
            "tar xf a.tar",
            "rsync a h:b",
            "git bisect run make",
            "git rebase --exec make main",
            "git submodule foreach make",
            "docker run x make",
            "docker exec x make",
            "kubectl exec x -- make",
            "npm exec",
            "go run x.go",
            "nix run x",
            "conda run make",
            "uv run python3.11 x.py",
            "uv --directory x run make",
            "ld-linux-x86-64.so.2 ./x",
        ] {
            assert_eq!(pattern_of(line, Path::new("/")), None, "{line}");
        }
        for (line, pattern) in [
            ("python3.11 -m pytest -q", "python3.11 -m pytest *"),
            ("git commit -m x", "git commit *"),
            ("docker build .", "docker build *"),
            ("go test ./...", "go test *"),
            ("make -j2", "make *"),
            ("gcc-12 -c x.c", "gcc-12 *"),
            ("rm x", "rm x *"),
        ] {
            assert_eq!(pattern_of(line, Path::new("/")).as_deref(), Some(pattern), "{line}");
        }
    }
}
