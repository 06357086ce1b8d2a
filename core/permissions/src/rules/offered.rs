//! The pattern that "always" offers for a command.

use std::path::Path;

use super::base;
use crate::readers::unproven;
use crate::shell::quoted;

/// The pattern of a line's program and subcommand, with any arguments; `None` where more than one program of the line needs
/// a rule. What is proven to only read needs none: `cargo test 2>&1 | tail -20` becomes `cargo test *`.
pub fn pattern_of(line: &str, workspace: &Path) -> Option<String> {
    let programs = unproven(line.trim(), workspace.into())?;
    let mut patterns = programs.iter().map(|words| pattern_of_program(words)).collect::<Option<Vec<String>>>()?;
    patterns.dedup();
    if patterns.len() == 1 { patterns.pop() } else { None }
}

fn pattern_of_program(words: &[String]) -> Option<String> {
    let (first, args) = words.split_first()?;
    let program = base(first);
    let is_plain = |word: &String| word.chars().all(|c| c.is_ascii_alphanumeric() || "-_:.".contains(c));
    let sub = args.first().filter(|word| !word.starts_with('-') && is_plain(word));
    match (program, args) {
        _ if first.starts_with('-') || first.contains(['=', '*', '?']) => None,
        ("python" | "python3", [flag, module, ..]) if flag == "-m" && is_plain(module) => {
            Some(format!("{} *", quoted([first.as_str(), flag, module])))
        }
        _ if STARTS_OTHERS.contains(&program) => None,
        (_, [sub, rest @ ..]) if RUNS_OTHERS.contains(&(program, sub.as_str())) => {
            // `uv run *` would cover any program.
            Some(format!("{} {}", quoted([first.as_str(), sub.as_str()]), pattern_of_program(rest)?))
        }
        // `git -C x status` would become `git *`, which covers `git push`.
        _ if HAS_SUBCOMMANDS.contains(&program) && sub.is_none() => None,
        _ => Some(format!("{} *", quoted(std::iter::once(first.as_str()).chain(sub.map(String::as_str))))),
    }
}

/// Programs whose arguments are other commands or code: a pattern of them is a rule for everything.
const STARTS_OTHERS: [&str; 28] = [
    "bash", "sh", "zsh", "fish", "dash", "ksh", "eval", "exec", "source", "env", "sudo", "su", "doas", "xargs", "nice",
    "nohup", "timeout", "time", "ssh", "find", "python", "python3", "node", "perl", "ruby", "php", "npx", "bunx",
];
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
const HAS_SUBCOMMANDS: [&str; 12] =
    ["git", "cargo", "npm", "pnpm", "yarn", "docker", "podman", "kubectl", "terraform", "go", "gh", "systemctl"];
