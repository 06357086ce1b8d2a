//! Commands whose damage lasts: before one of them runs, even once, the user types a word.

use std::borrow::Cow;

use super::starters::{By, starts_others, without_version};
use super::{LineEnd, MAX_DEPTH, Part, PartKind, Script, TokenKind, Word, base, inside, lasting};
use crate::effects::THIS_MACHINE;
use crate::shell::Operator;

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
/// Programs that run a text in SQL.
const SQL: [&str; 8] = ["psql", "mysql", "mariadb", "sqlite3", "sqlcmd", "cqlsh", "duckdb", "clickhouse-client"];
/// Words of the shell before a command.
const KEYWORDS: [&str; 10] = ["do", "then", "else", "elif", "if", "while", "until", "!", "{", "time"];

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
    // The command whose output the next one gets.
    let mut feeds: Vec<Option<String>> = Vec::new();
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
            TokenKind::Operator(operator) => {
                let before = std::mem::take(&mut words);
                of_command(&before, &feeds, depth, found);
                feeds = if matches!(operator, Operator::Pipe | Operator::PipeBoth) { before } else { Vec::new() };
            }
            TokenKind::Parenthesis => {
                of_command(&std::mem::take(&mut words), &feeds, depth, found);
                feeds.clear();
            }
            TokenKind::Redirection(Some(target)) => {
                let is_written =
                    token.span.source.trim_start_matches(|c: char| c.is_ascii_digit()).starts_with(['>', '&']);
                if token.span.source.starts_with("<<<") {
                    feeds = vec![Some("echo".to_owned()), written(target)];
                }
                if is_written && written(target).as_deref().is_some_and(is_disk) {
                    found.push("it overwrites a disk".to_owned());
                }
            }
            TokenKind::Redirection(None) | TokenKind::HereDocument => {}
        }
    }
    of_command(&words, &feeds, depth, found);
}

/// The text of a word, with `*` and `?` as they are written: they stand for names in the folder before them.
fn written(word: &Word<'_>) -> Option<String> {
    fn text<'a>(part: &Part<'a>) -> Option<Cow<'a, str>> {
        if matches!(part.kind, PartKind::Glob | PartKind::Tilde) { Some(part.span.source.into()) } else { part.text() }
    }
    if word.brace.is_some() { None } else { word.parts.iter().map(text).collect() }
}

fn is_disk(path: &str) -> bool {
    let kinds = ["sd", "hd", "nvme", "vd", "xvd", "mmcblk", "loop", "mapper/", "disk/", "md", "dm-"];
    path.strip_prefix("/dev/").is_some_and(|name| kinds.iter().any(|kind| name.starts_with(kind)))
}

fn of_command(words: &[Option<String>], feeds: &[Option<String>], depth: u8, found: &mut Vec<String>) {
    let is_setting = |word: &Option<String>| {
        let name = word.as_deref().and_then(|it| it.split_once('=')).map(|(name, _)| name);
        let is_name =
            name.is_some_and(|it| !it.is_empty() && it.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'));
        is_name || word.as_deref().is_some_and(|it| KEYWORDS.contains(&it))
    };
    let Some(start) = words.iter().position(|word| !is_setting(word)) else { return };
    let Some((Some(first), args)) = words[start..].split_first() else { return };
    let program = base(first);
    let texts: Vec<&str> = args.iter().flatten().map(String::as_str).collect();
    let of_containers = ["docker", "podman", "kubectl"].contains(&program)
        && texts.first().is_some_and(|sub| ["exec", "run", "compose"].contains(sub));
    match starts_others(program) {
        // Names of files reach it from the command before it, and what it deletes is known by those alone.
        Some(By::Words) if ["xargs", "parallel"].contains(&program) && removes(&texts) == Some(Removes::Nothing) => {
            found.extend(of_listed(feeds).map(str::to_owned));
        }
        Some(By::Words) => behind(args, feeds, depth, found),
        Some(By::Line) if ["ssh", "mosh", "eval", "watch"].contains(&program) => {
            let operands: Vec<&str> = texts.iter().copied().skip_while(|it| it.starts_with('-')).collect();
            let from = usize::from(["ssh", "mosh"].contains(&program)).min(operands.len());
            of_line(&operands[from..].join(" "), depth + 1, found);
        }
        Some(By::Line) => {
            let at = texts.iter().position(|it| it.starts_with('-') && it.contains('c') && !it.starts_with("--"));
            match at.and_then(|at| texts.get(at + 1)) {
                Some(text) => of_line(text, depth + 1, found),
                None => behind(args, feeds, depth, found),
            }
        }
        Some(By::Code | By::Option) | None if SQL.contains(&program) => {
            let fed = feeds.iter().flatten().map(String::as_str);
            found.extend(texts.iter().copied().chain(fed).find_map(lasting::of_sql).map(str::to_owned));
        }
        Some(By::Code | By::Option) | None => found.extend(of_program(program, args, &texts)),
    }
    if of_containers {
        behind(args, feeds, depth, found);
    }
}

/// The command behind a program that starts it. Its options have values that look like programs, so each word may be the one.
fn behind(args: &[Option<String>], feeds: &[Option<String>], depth: u8, found: &mut Vec<String>) {
    let before = found.len();
    for at in 0..args.len() {
        of_command(&args[at..], feeds, depth, found);
        // What such a program starts is judged by then.
        let is_another = args[at].as_deref().and_then(starts_others) == Some(By::Words);
        if found.len() > before || is_another {
            break;
        }
    }
}

/// What `rm -r` among these words deletes.
#[derive(Debug, PartialEq, Eq)]
enum Removes {
    /// What is named.
    Named,
    /// Nothing that is named here.
    Nothing,
}

/// `None` where no `rm -r` stands among the words.
fn removes(words: &[&str]) -> Option<Removes> {
    let at = words.iter().position(|it| base(it) == "rm")?;
    let rest = &words[at + 1..];
    let is_recursive = rest.iter().any(|it| *it == "--recursive" || (is_short(it) && it.contains(['r', 'R'])));
    let is_named = rest.iter().any(|it| !it.starts_with('-') && !["{}", "%", "@", "+", ";", ":::"].contains(it));
    is_recursive.then_some(if is_named { Removes::Named } else { Removes::Nothing })
}

fn is_short(word: &str) -> bool {
    word.starts_with('-') && !word.starts_with("--")
}

/// What deleting the files that a command lists destroys: nothing that lasts where it lists only what is made again.
fn of_listed(lister: &[Option<String>]) -> Option<&'static str> {
    let texts: Vec<&str> = lister.iter().flatten().map(String::as_str).collect();
    let is_narrow = matches!(texts.first().map(|it| base(it)), Some("find" | "fd" | "fdfind" | "ls" | "rg"))
        && texts[1..].iter().any(|it| is_pattern_made_again(it));
    (!is_narrow).then_some("it deletes folders that are known only when it runs")
}

/// `*.pyc`, `__pycache__`: a name that only files have which are made again.
fn is_pattern_made_again(pattern: &str) -> bool {
    let endings = [".pyc", ".pyo", ".o", ".obj", ".class", ".log", ".tmp", ".bak", ".swp", ".orig", ".DS_Store", "~"];
    let name = pattern.trim_start_matches("./");
    (name.starts_with('*') && endings.iter().any(|it| name.ends_with(it)))
        || name == ".DS_Store"
        || MADE_AGAIN.contains(&name.trim_matches('/'))
        || is_made_again(name)
}

/// `find`, where it deletes: what its names narrow to things that are made again is everyday work, and so is one name of plain
/// files in the workspace, which an undo restores.
fn of_find(texts: &[&str]) -> Option<&'static str> {
    let deletes = texts.contains(&"-delete");
    let starts = |flag: &str| texts.iter().position(|it| *it == flag);
    let runs = ["-exec", "-execdir", "-ok", "-okdir"].iter().find_map(|flag| starts(flag));
    let runs_rm = runs.map(|at| &texts[at + 1..]);
    let removes_folders = runs_rm.is_some_and(|rest| removes(rest).is_some());
    let removes_files =
        runs_rm.is_some_and(|rest| rest.first().is_some_and(|it| ["rm", "unlink", "shred"].contains(&base(it))));
    if (!deletes && !removes_folders && !removes_files) || texts.contains(&"-empty") {
        return None;
    }
    let at = texts.iter().position(|it| it.starts_with(['-', '(', '!'])).unwrap_or(texts.len());
    let leads_out = texts[..at].iter().any(|it| it.starts_with(['/', '~']) || it.contains(".."))
        && !texts[..at].iter().all(|it| is_made_again(it));
    // A negated name narrows nothing, and neither does one side of an alternative.
    let has_sides = texts.iter().any(|it| ["-o", "-or", ","].contains(it)) && !texts.contains(&"(");
    let is_name = |at: &usize| {
        ["-name", "-iname", "-path", "-ipath", "-wholename", "-regex"].contains(&texts[*at])
            && (*at == 0 || !["!", "-not"].contains(&texts[at - 1]))
    };
    let names = (0..texts.len()).filter(is_name).filter_map(|at| texts.get(at + 1)).copied();
    let names: Vec<&str> = names.filter(|it| !has_sides && !it.trim_matches(['*', '.', '/']).is_empty()).collect();
    let only_made_again = !names.is_empty() && names.iter().all(|it| is_pattern_made_again(it));
    let below_made_again = at > 0 && texts[..at].iter().all(|it| is_made_again(it));
    if only_made_again || below_made_again {
        return None;
    }
    if leads_out {
        Some("it deletes files that may lie outside the workspace")
    } else if removes_folders {
        Some("it deletes folders that are known only when it runs")
    } else if names.is_empty() {
        Some("it deletes all that it finds")
    } else {
        None
    }
}

fn of_program(program: &str, args: &[Option<String>], texts: &[&str]) -> Option<String> {
    let has = |word: &str| texts.contains(&word);
    let short = |flag: char| texts.iter().any(|it| is_short(it) && it.contains(flag));
    let says = |what: &str| Some(what.to_owned());
    match program {
        "rm" if short('r') || short('R') || has("--recursive") => {
            let operands = args.iter().filter(|it| it.as_deref().is_none_or(|it| !it.starts_with('-')));
            let lasting: Vec<&Option<String>> =
                operands.filter(|it| !it.as_deref().is_some_and(is_made_again)).collect();
            match lasting.first() {
                None => None,
                Some(Some(path)) if lasting.len() == 1 => Some(format!("it deletes {path} and all that is in it")),
                Some(_) => says("it deletes folders and all that is in them"),
            }
        }
        // In the workspace an undo restores plain files.
        "rm" | "unlink" | "truncate" if texts.iter().any(|it| it.starts_with('~') && !it.starts_with("~/.cache/")) => {
            says("it deletes files of the home folder")
        }
        "chmod" | "chown" | "chgrp" if short('R') || has("--recursive") => {
            let leads_out = |it: &&&str| it.starts_with(['/', '~']) && !it.starts_with("/tmp/");
            texts.iter().find(leads_out).map(|path| format!("it changes the permissions of all that is in {path}"))
        }
        "find" => of_find(texts).map(str::to_owned),
        "fd" | "fdfind" => {
            let at = texts.iter().position(|it| ["-x", "-X", "--exec", "--exec-batch"].contains(it))?;
            let is_narrow = texts[..at].iter().any(|it| is_pattern_made_again(it));
            (removes(&texts[at..]).is_some() && !is_narrow)
                .then(|| "it deletes folders that are known only when it runs".to_owned())
        }
        "git" => of_git(texts).or_else(|| lasting::of(program, texts).map(str::to_owned)),
        "dd" if texts.iter().any(|it| {
            it.strip_prefix("of=")
                .is_some_and(|to| to.starts_with("/dev/") && !["/dev/null", "/dev/stdout", "/dev/stderr"].contains(&to))
        }) =>
        {
            says("it overwrites a disk")
        }
        "curl" | "http" | "https" | "xh" if deletes_on_a_server(texts) => says("it deletes on a server"),
        name if name.starts_with("mkfs") => says("it erases a disk"),
        name => {
            let name = if lasting::of(name, texts).is_some() { name } else { without_version(name) };
            lasting::of(name, texts).map(str::to_owned)
        }
    }
}

/// `-X DELETE`, to a server that is not one of this machine.
fn deletes_on_a_server(texts: &[&str]) -> bool {
    let deletes = texts.iter().any(|it| ["DELETE", "-XDELETE", "--request=DELETE"].contains(it));
    deletes && !texts.iter().any(|it| THIS_MACHINE.iter().any(|name| it.contains(name)))
}

fn of_git(words: &[&str]) -> Option<String> {
    // Options of git itself, such as `-C folder`, stand before the subcommand.
    let mut at = 0;
    while words.get(at).is_some_and(|it| it.starts_with('-')) {
        at += if matches!(words[at], "-C" | "-c" | "--git-dir" | "--work-tree") { 2 } else { 1 };
    }
    let (sub, args) = words.get(at..)?.split_first()?;
    let has = |word: &str| args.contains(&word);
    let short = |flag: char| args.iter().any(|it| is_short(it) && it.contains(flag));
    if has("--dry-run") || (short('n') && ["push", "clean"].contains(sub)) {
        return None;
    }
    let what = match *sub {
        "push"
            if short('f')
                || has("--mirror")
                || args.iter().any(|it| it.starts_with("--force") || it.starts_with('+')) =>
        {
            "it replaces commits of the remote repository"
        }
        "push" if short('d') || has("--delete") || has("--prune") || args.iter().any(|it| it.starts_with(':')) => {
            "it deletes a branch of the remote repository"
        }
        "reset" if has("--hard") => "it throws away uncommitted changes",
        "clean" if short('f') || has("--force") => "it deletes files that git does not know",
        "checkout" if short('f') || has("--force") || has(".") => "it throws away uncommitted changes",
        "switch" if short('f') || has("--force") || has("--discard-changes") => "it throws away uncommitted changes",
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
            "kubectl -n x delete pod y",
            "find . -delete",
            "find . -type f -delete",
            "find . -not -path './target/*' -delete",
            "find . ! -name '*.pyc' -delete",
            "find . -name '*.pyc' -o -delete",
            "find /var -name '*.rs' -delete",
            "find . -type d -name src -exec rm -rf {} +",
            "ls | xargs rm -rf",
            "find . -name src | xargs rm -r",
            "fd -t d src -x rm -rf",
            "for d in a b; do rm -rf $d; done",
            "if true; then git reset --hard; fi",
            "stdbuf -oL rm -rf src",
            "flock f rm -rf src",
            "ssh h 'rm -rf /srv/app'",
            "cat x > /dev/sda",
            "dd if=a of=/dev/nvme0n1",
            "shred -u x",
            "wipefs -a /dev/sdb",
            "git push --mirror",
            "git push --delete origin x",
            "git push --prune origin",
            "git reflog expire --expire=now --all",
            "git gc --prune=now",
            "git switch --discard-changes main",
            "terraform apply -auto-approve",
            "terraform destroy",
            "pulumi up --yes",
            "helm uninstall x",
            "docker system prune -a",
            "docker compose down -v",
            "docker exec db psql -c 'DROP TABLE x'",
            "npm publish",
            "npm unpublish x",
            "twine upload dist/*",
            "aws s3 rm s3://b --recursive",
            "aws ec2 terminate-instances --instance-ids x",
            "gcloud compute instances delete x",
            "az group delete -n x",
            "gh repo delete x",
            "psql -c 'drop  table users'",
            "mysql -e 'DELETE FROM users'",
            "sqlite3 a.db 'TRUNCATE x'",
            "dropdb x",
            "echo 'DROP TABLE x' | psql",
            "psql db <<< 'DROP TABLE x'",
            "kubectl exec p -- rm -rf /data",
            "redis-cli FLUSHALL",
            "rails db:drop",
            "python3 manage.py flush",
            "python3.11 manage.py flush",
            "crontab -r",
            "chmod -R 777 /",
            "rm ~/notes",
            "rsync -a --delete a/ b/",
            "shutdown -h now",
            "curl -X DELETE https://h/x",
            "kill -9 -1",
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
            "find . -name __pycache__ -type d -exec rm -rf {} +",
            "find . -name node_modules | xargs rm -rf",
            "find target -delete",
            "find . -type d -empty -delete",
            "echo 'DROP TABLE x' | wc -c",
            // An undo restores plain files of the workspace.
            "find src -name '*.rs' -delete",
            "terraform plan",
            "terraform apply --help",
            "kubectl get pods",
            "kubectl apply -f x.yaml",
            "docker build .",
            "docker compose down",
            "npm run build",
            "npm publish --dry-run",
            "aws s3 ls",
            "aws s3 cp a s3://b",
            "gcloud compute instances list",
            "psql -c 'select * from users'",
            "psql -c 'delete from users where id = 1'",
            "crontab -l",
            "chmod -R u+w src",
            "dd if=/dev/zero of=/dev/null",
            "echo x > /dev/null",
            "git push --force --dry-run",
            "git gc",
            "ssh h ls",
            "kill -1 123",
            "fdisk -l /dev/sda",
            "curl -X DELETE http://localhost:3000/x",
            "gradle publishToMavenLocal",
            "xargs -n 1 echo",
        ] {
            assert!(grave(line).is_empty(), "{line}");
        }
    }
}
