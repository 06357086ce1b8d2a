//! What common programs do, in the user's words: the reason to ask.

use std::path::Path;

/// Commands of git that change the repository or use the network.
const GIT_NETWORK: [&str; 6] = ["fetch", "pull", "push", "clone", "ls-remote", "remote update"];

/// How a command names a server of this machine.
pub(super) const THIS_MACHINE: [&str; 4] = ["127.0.0.1", "localhost", "[::1]", "0.0.0.0"];

/// What a program with these words does; `None` where that is not known or it may be nothing.
pub(super) fn of(words: &[&str]) -> Option<String> {
    let (program, args) = words.split_first()?;
    let program = program.rsplit('/').next().unwrap_or(program);
    let operands: Vec<&str> = args.iter().copied().filter(|it| !it.starts_with('-')).collect();
    let named = |verb: &str| match operands.as_slice() {
        [] => None,
        names => Some(format!("{verb} {}", listed(names))),
    };
    let last = || operands.last().map(|to| shown(to));
    match program {
        "rm" | "rmdir" | "unlink" | "shred" => named("deletes"),
        "mv" | "rename" => Some(format!("moves {}", from_to(&operands)?)),
        "cp" | "install" | "rsync" => Some(format!("writes {}", last()?)),
        "ln" => Some(format!("creates the link {}", last()?)),
        "mkdir" => named("creates the folder"),
        "touch" | "tee" | "truncate" => named("writes"),
        "dd" => Some(
            args.iter()
                .find_map(|it| it.strip_prefix("of="))
                .map_or("writes its output".into(), |to| format!("writes {}", shown(to))),
        ),
        "chmod" | "chown" | "chgrp" => Some(format!("changes the permissions of {}", listed(operands.get(1..)?))),
        "sed" | "perl" if args.iter().any(|it| it.starts_with("-i") || *it == "--in-place") => {
            Some(format!("changes {}", last()?))
        }
        "sort" => {
            let at = args.iter().position(|it| *it == "-o" || *it == "--output")?;
            Some(format!("writes {}", shown(args.get(at + 1)?)))
        }
        "git" => git(args),
        "curl" | "wget" | "ssh" | "scp" | "sftp" | "nc" | "ncat" | "telnet" | "ping" | "dig" | "gh" | "kubectl"
        | "aws" | "gcloud" | "az" => Some(format!("uses the network ({program})")),
        "docker" | "podman" | "systemctl" | "service" => Some(format!("controls other programs ({program})")),
        "sudo" | "su" | "doas" | "pkexec" => Some(format!("runs with the rights of another user ({program})")),
        "kill" | "pkill" | "killall" => Some(format!("stops processes ({program})")),
        "apt" | "apt-get" | "dnf" | "yum" | "pacman" | "brew" | "apk" => {
            Some(format!("installs or removes software ({program})"))
        }
        "npm" | "pnpm" | "yarn" | "bun" | "pip" | "pip3" | "uv" | "poetry" | "gem" | "bundle" | "cargo" | "go"
        | "composer" => {
            let sub = operands.first().copied().unwrap_or_default();
            let installs = [
                "install",
                "i",
                "add",
                "ci",
                "remove",
                "uninstall",
                "update",
                "upgrade",
                "get",
                "sync",
                "publish",
                "fetch",
            ];
            if installs.contains(&sub) {
                return Some(format!("installs or changes packages ({program} {sub})"));
            }
            Some(format!("runs {}, which may run anything", [program, sub].join(" ").trim_end()))
        }
        "make" | "cmake" | "ninja" | "gradle" | "gradlew" | "mvn" | "ant" | "rake" | "just" | "bazel" | "tox"
        | "nox" | "pytest" | "jest" | "vitest" | "tsc" | "eslint" | "prettier" | "mypy" | "ruff" | "python"
        | "python3" | "node" | "deno" | "ruby" | "perl" | "php" | "npx" | "bash" | "sh" | "zsh" | "fish" | "java"
        | "javac" | "rustc" | "gcc" | "g++" | "clang" | "dotnet" | "swift" => {
            Some(format!("runs {program}, which may run anything"))
        }
        "eval" | "source" | "." | "exec" => {
            Some(format!("runs {}, which may run anything", shown(operands.first().unwrap_or(&program))))
        }
        "env" | "nice" | "nohup" | "time" | "command" | "setsid" | "timeout" => of(behind(words)?),
        "xargs" => {
            let at = args.iter().position(|it| !it.starts_with('-') && !it.bytes().all(|b| b.is_ascii_digit()))?;
            let inner = of(&args[at..]).or_else(|| {
                ["rm", "touch", "mv", "cp"].contains(&args[at]).then(|| format!("runs {} on many files", args[at]))
            });
            inner.map(|it| format!("{it} (xargs)"))
        }
        "find" if args.contains(&"-delete") => Some("deletes what it finds (find -delete)".into()),
        "find" => {
            let at = args.iter().position(|it| ["-exec", "-execdir", "-ok", "-okdir"].contains(it))?;
            Some(format!("runs {} on what it finds (find {})", shown(args.get(at + 1)?), args[at]))
        }
        _ if words[0].starts_with("./") => Some(format!("runs {}, which may run anything", shown(words[0]))),
        _ => None,
    }
}

/// Whether a text is the name of a variable.
fn is_name(text: &str) -> bool {
    !text.starts_with(|c: char| c.is_ascii_digit())
        && !text.is_empty()
        && text.bytes().all(|it| it == b'_' || it.is_ascii_alphanumeric())
}

/// Whether a program with these words does nothing useful without the network. A server of this machine is reached, or looked
/// for, without it.
pub(super) fn needs_network(words: &[&str], workspace: &Path) -> bool {
    // Variables of the program may stand before it.
    let is_variable = |it: &&&str| it.split_once('=').is_some_and(|(name, _)| is_name(name));
    let words = &words[words.iter().take_while(is_variable).count()..];
    let Some((program, args)) = words.split_first() else { return false };
    let program = program.rsplit('/').next().unwrap_or(program);
    let operands: Vec<&str> = args.iter().copied().filter(|it| !it.starts_with('-')).collect();
    let sub = operands.first().copied().unwrap_or_default();
    let has_option = |name: &str| args.iter().any(|it| it.strip_prefix("--") == Some(name));
    if ["offline", "no-index", "version", "help"].into_iter().any(has_option) {
        return false;
    }
    let asks_this_machine = || args.iter().any(|it| THIS_MACHINE.iter().any(|name| it.contains(name)));
    match program {
        "curl" | "wget" | "nc" | "ncat" | "telnet" | "ping" | "ssh" | "scp" | "sftp" => !asks_this_machine(),
        "dig" | "gh" | "kubectl" | "aws" | "gcloud" | "az" => true,
        "apt" | "apt-get" | "dnf" | "yum" | "pacman" | "brew" | "apk" => true,
        "git" => git_command(args).is_some_and(|(sub, rest)| {
            let pair = rest.first().map(|second| format!("{sub} {second}")).unwrap_or_default();
            GIT_NETWORK.contains(&sub) || GIT_NETWORK.contains(&pair.as_str())
        }),
        "npm" | "pnpm" | "yarn" | "bun" | "pip" | "pip3" | "uv" | "poetry" | "gem" | "bundle" | "cargo" | "go"
        | "composer" => {
            let fetches = ["install", "i", "add", "ci", "update", "upgrade", "get", "sync", "publish", "fetch"];
            fetches.contains(&sub)
                || (program == "go" && matches!(operands.as_slice(), ["mod", "download" | "tidy", ..]))
        }
        "npx" | "bunx" | "uvx" => !workspace.join("node_modules/.bin").join(sub).exists(),
        "python" | "python3" => match args {
            ["-m", "pip", rest @ ..] => needs_network(&[&["pip"], rest].concat(), workspace),
            _ => false,
        },
        _ => behind(words).is_some_and(|words| needs_network(words, workspace)),
    }
}

/// The program that a program of this kind starts, with its words.
pub(super) fn behind<'a, 'b>(words: &'b [&'a str]) -> Option<&'b [&'a str]> {
    let (program, args) = words.split_first()?;
    match *program {
        "env" | "nice" | "nohup" | "time" | "command" | "setsid" => {
            let at = args.iter().position(|it| !it.starts_with('-') && !it.contains('='))?;
            Some(&args[at..])
        }
        "timeout" => args.get(1..),
        _ => None,
    }
}

/// The subcommand of git and what follows it.
fn git_command<'a, 'b>(args: &'b [&'a str]) -> Option<(&'a str, &'b [&'a str])> {
    let mut args = args;
    while let [flag, rest @ ..] = args {
        if !flag.starts_with('-') {
            break;
        }
        args = if ["-C", "-c", "--git-dir", "--work-tree"].contains(flag) { rest.get(1..)? } else { rest };
    }
    args.split_first().map(|(sub, rest)| (*sub, rest))
}

fn git(args: &[&str]) -> Option<String> {
    let (sub, rest) = git_command(args)?;
    let sub = &sub;
    let pair = rest.first().map(|second| format!("{sub} {second}")).unwrap_or_default();
    if GIT_NETWORK.contains(sub) || GIT_NETWORK.contains(&pair.as_str()) {
        return Some(format!("uses the network (git {sub})"));
    }
    let changes = [
        "add",
        "commit",
        "reset",
        "checkout",
        "switch",
        "restore",
        "merge",
        "rebase",
        "cherry-pick",
        "revert",
        "rm",
        "mv",
        "clean",
        "init",
        "am",
        "apply",
        "gc",
        "prune",
        "filter-branch",
        "update-ref",
        "update-index",
        "submodule",
        "bisect",
        "notes",
        "replace",
        "write-tree",
        "commit-tree",
        "read-tree",
        "hash-object",
        "pack-refs",
        "repack",
        "sparse-checkout",
    ];
    let deletes = rest.iter().any(|it| {
        [
            "-d", "-D", "--delete", "-m", "-M", "--move", "-f", "--force", "drop", "clear", "pop", "push", "apply",
            "prune", "remove",
        ]
        .contains(it)
    });
    let creates = ["branch", "tag", "remote", "worktree", "stash", "config"].contains(sub);
    let lists = rest
        .iter()
        .map(|it| it.trim_start_matches('-'))
        .any(|it| ["l", "list", "show", "get-url", "get", "contains", "merged"].contains(&it))
        || (["submodule", "notes", "bisect"].contains(sub)
            && rest.first().is_none_or(|it| ["status", "summary", "list", "show", "log"].contains(it)));
    if lists && !deletes {
        return None;
    }
    if changes.contains(sub) || (creates && (deletes || *sub == "stash" || rest.iter().any(|it| !it.starts_with('-'))))
    {
        return Some(format!("changes the repository (git {sub})"));
    }
    None
}

fn from_to(operands: &[&str]) -> Option<String> {
    let (to, from) = operands.split_last().filter(|(_, from)| !from.is_empty())?;
    Some(format!("{} to {}", listed(from), shown(to)))
}

/// The first names, and how many more there are.
fn listed(names: &[&str]) -> String {
    let first: Vec<String> = names.iter().take(3).map(|name| shown(name)).collect();
    let more = names.len().saturating_sub(3);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", first.join(" "))
}

/// A word on a screen, of bounded length.
fn shown(word: &str) -> String {
    let mut text: String = word.chars().take(80).flat_map(char::escape_debug).collect();
    if word.chars().count() > 80 {
        text.push('…');
    }
    text.replace("\\'", "'").replace("\\\"", "\"")
}
