//! Commands that run unasked: what only looks, and nothing else.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::shell::{Shell, entries};
use crate::tier;

const EVERYDAY: &str = include_str!("../commands/everyday.txt");
const ADVERSARIAL: &str = include_str!("../commands/adversarial.txt");
/// The text of a file outside the workspace.
pub(super) const OUTSIDE: &str = "canary-OUTSIDE";

pub(super) fn git(folder: &Path, args: &[&str]) {
    let ran = Command::new("git")
        .args([
            "-c",
            "user.name=a",
            "-c",
            "user.email=a@a",
            "-c",
            "init.defaultBranch=main",
            "-c",
            "protocol.file.allow=always",
        ])
        .args(args)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .expect("git starts");
    assert!(ran.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&ran.stderr));
}

/// A repository with two commits.
pub(super) fn repository(folder: &Path) {
    fs::create_dir_all(folder).expect("mkdir");
    git(folder, &["init", "-q", "."]);
    fs::write(folder.join("in"), "one\n").expect("write");
    git(folder, &["add", "-A"]);
    git(folder, &["commit", "-qm", "first"]);
    fs::write(folder.join("in"), "one\ntwo\n").expect("write");
    git(folder, &["commit", "-qam", "second"]);
}

/// The project of the tables, with something outside to read and something that runs when it is asked to.
pub(super) fn project() -> Shell {
    let shell = Shell::new(&[
        ("README.md", "# TODO\n"),
        ("Cargo.toml", "[package]\n"),
        ("package.json", "{\"name\": \"x\", \"scripts\": {}}\n"),
        ("data.csv", "a,b\nb,c\n"),
        ("src/main.rs", "fn main() {} // TODO\n"),
        ("src/lib.rs", "\n"),
        ("tests/t.py", "import x\n"),
        ("sub/a", "x\n"),
        ("s", "touch PWNED\n"),
        ("evil", "#!/bin/sh\ntouch PWNED\n"),
        ("ls", "#!/bin/sh\ntouch PWNED\n"),
        ("victim", "victimtext\n"),
        ("-delete", ""),
        ("-oPWNED", ""),
    ]);
    let root = shell.workspace();
    repository(&root);
    for name in ["evil", "ls"] {
        Command::new("chmod").args(["755", name]).current_dir(&root).status().expect("chmod");
    }
    let outside = root.parent().expect("a parent").join("outside");
    fs::create_dir_all(&outside).expect("mkdir");
    fs::write(outside.join("secret"), format!("{OUTSIDE}\n")).expect("write");
    repository(&outside.join("repo"));
    fs::write(outside.join("repo/t"), OUTSIDE).expect("write");
    git(&outside.join("repo"), &["add", "-A"]);
    git(&outside.join("repo"), &["commit", "-qm", OUTSIDE]);
    git(&root, &["branch", "other"]);
    shell
}

/// Every file below, but for pixir's own.
pub(super) fn files(folder: &Path) -> BTreeMap<PathBuf, (u32, u64, Vec<u8>)> {
    let mut all = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(at) = folders.pop() {
        for entry in fs::read_dir(&at).expect("a folder").flatten() {
            let (path, metadata) = (entry.path(), entry.metadata().expect("metadata"));
            if path == folder.join("home") || path.file_name().is_some_and(|name| name == "script.json") {
                continue;
            }
            if metadata.is_dir() {
                folders.push(path.clone());
            }
            let bytes = if metadata.is_file() { fs::read(&path).expect("read") } else { Vec::new() };
            all.insert(path, (metadata.mode(), metadata.len() * u64::from(metadata.is_file()), bytes));
        }
    }
    all
}

/// Runs commands as calls of `bash` in one Session; returns each with its verdict and its output.
pub(super) fn judged(shell: &Shell, commands: &[Value], args: &[&str]) -> Vec<(String, String)> {
    let calls: Vec<(&str, Value)> = commands.iter().map(|args| ("bash", args.clone())).collect();
    called(shell, &calls, args, &[])
}

/// Runs calls of tools in one Session; returns each with its verdict and its output.
pub(super) fn called(
    shell: &Shell,
    commands: &[(&str, Value)],
    args: &[&str],
    environment: &[(&str, String)],
) -> Vec<(String, String)> {
    let call = |(name, args): &(&str, Value)| json!({ "name": name, "args": args });
    let mut steps: Vec<Value> =
        commands.chunks(100).map(|chunk| json!({ "calls": chunk.iter().map(call).collect::<Vec<_>>() })).collect();
    steps.push(json!({ "text": "done" }));
    let script = shell.aside("script.json", &json!({ "steps": steps }).to_string());
    let provider = format!("script:{}", script.display());
    let before: Vec<PathBuf> = shell.logs();
    let fixed = ["--provider", &provider, "--headless", "--max-rounds", "100"];
    let mut command = shell.command(fixed.iter().chain(args).chain(&["go"]));
    command.envs(environment.iter().map(|(name, value)| (name, value)));
    let ran = crate::shell::ran(command.output().expect("the binary starts"));
    let log =
        shell.logs().into_iter().find(|log| !before.contains(log)).unwrap_or_else(|| panic!("no Log: {}", ran.stderr));
    let log = entries(&log);
    let calls: Vec<&Value> = log.iter().filter(|it| it["type"] == "tool_call").collect();
    assert_eq!(calls.len(), commands.len(), "{}", ran.stderr);
    let by_id = |kind: &str| -> BTreeMap<String, &Value> {
        let of_kind = log.iter().rev().filter(|it| it["type"] == kind);
        of_kind.map(|it| (it["data"]["call_id"].as_str().unwrap_or_default().to_owned(), it)).collect()
    };
    let (decisions, results) = (by_id("permission_decision"), by_id("tool_result"));
    calls
        .iter()
        .map(|call| {
            let id = call["data"]["call_id"].as_str().unwrap_or_default();
            let verdict = decisions
                .get(id)
                .map_or("none".to_owned(), |it| it["data"]["verdict"].as_str().unwrap_or("?").to_owned());
            let result = results.get(id).map(|it| (*it).clone()).unwrap_or_default();
            (
                verdict,
                format!(
                    "{}{}",
                    result["data"]["output"],
                    result["data"]["error"]["message"].as_str().unwrap_or_default()
                ),
            )
        })
        .collect()
}

pub(super) fn commands<'a>(lines: impl IntoIterator<Item = &'a str>) -> Vec<Value> {
    lines.into_iter().map(|line| json!({ "command": line })).collect()
}

/// Broken build: a program or a flag of every day is in no table.
#[test]
fn what_only_looks_runs_unasked() {
    let of = |kind: &str| -> Vec<&str> { EVERYDAY.lines().filter_map(|line| line.strip_prefix(kind)).collect() };
    let (looks, works) = (of("look "), of("work "));
    let shell = project();
    for name in ["-delete", "-oPWNED"] {
        fs::remove_file(shell.workspace().join(name)).expect("rm");
    }
    let before = files(shell.workspace().parent().expect("a parent"));
    for mode in [&["--mode", "read-only"][..], &["--mode", "ask", "--no-input"]] {
        let ran = judged(&shell, &commands(looks.iter().copied()), mode);
        let asked: Vec<&str> =
            looks.iter().zip(&ran).filter(|(_, ran)| ran.0 != "allow").map(|(line, _)| *line).collect();
        shown(format_args!(
            "{mode:?}: {} run unasked of {} that only look; not: {asked:?}",
            looks.len() - asked.len(),
            looks.len()
        ));
        assert!(asked.len() * 20 <= looks.len(), "{mode:?}: {asked:?}");
        let output: String = ran.iter().map(|(_, output)| output.as_str()).collect();
        assert!(output.contains("fn main") && output.contains("second") && !output.contains(OUTSIDE));
    }
    // A refusal names what is allowed.
    let refused = &judged(&shell, &commands(["awk -f s README.md"]), &["--mode", "read-only"])[0];
    assert!(
        refused.0 == "deny" && refused.1.contains("Use: read, grep, find, or the same without that"),
        "{refused:?}"
    );
    let ran = judged(&shell, &commands(works.iter().copied()), &["--mode", "ask", "--no-input"]);
    assert!(ran.iter().all(|(verdict, _)| verdict == "deny"), "builds and tests are asked about");
    assert_eq!(files(shell.workspace().parent().expect("a parent")), before, "nothing changed");
}

/// The project of the tables, with symlinks that lead outside and special files.
fn hostile_project() -> Shell {
    let shell = project();
    let (root, outside) = (shell.workspace(), outside(&shell));
    symlink(&outside, root.join("lnk")).expect("a symlink");
    for name in ["x\u{a0}", "x\u{2003}", "x\r", "x\u{2028}", "x\u{b}", "x\u{3000}"] {
        symlink(outside.join("secret"), root.join(name)).expect("a symlink");
    }
    Command::new("mkfifo").arg(root.join("fifo")).status().expect("mkfifo");
    if is_root_user() {
        Command::new("mknod").arg(root.join("zero")).args(["c", "1", "5"]).status().expect("mknod");
    }
    shell
}

fn outside(shell: &Shell) -> PathBuf {
    shell.workspace().parent().expect("a parent").join("outside")
}

/// The adversarial lines, for this project.
fn adversarial(shell: &Shell) -> Vec<String> {
    let outside = outside(shell);
    let own: Vec<String> = ["\u{a0}", "\u{2003}", "\r", "\u{2028}", "\u{b}", "\u{3000}"]
        .iter()
        .map(|blank| format!("cat x{blank}"))
        .collect();
    let lines = ADVERSARIAL.lines().map(|line| {
        line.replace('⏎', "\n")
            .replace('␍', "\r")
            .replace("/O/outside", &outside.display().to_string())
            .replace("/O", &outside.display().to_string())
    });
    let is_root = is_root_user();
    lines.chain(own).filter(|line| is_root || !line.contains("zero")).collect()
}

/// Broken builds: `find` takes any program behind `-exec`; a substitution counts as arithmetic; `cd ..` may leave the workspace;
/// the dashes of a flag do not matter, so that `node v` runs a file.
#[test]
fn nothing_adversarial_has_an_effect_unasked() {
    let shell = hostile_project();
    let root = shell.workspace();
    let lines = adversarial(&shell);
    assert!(lines.len() >= 250);
    let lines = tier::sample("nothing_adversarial_has_an_effect_unasked", lines);
    let before = files(root.parent().expect("a parent"));
    for tier in ["ns", "ll", "none"] {
        for mode in [&["--mode", "read-only"][..], &["--mode", "ask", "--no-input"]] {
            let args: Vec<&str> = mode.iter().copied().chain(["--sandbox", tier]).collect();
            let ran = judged(&shell, &commands(lines.iter().map(String::as_str)), &args);
            let unasked: Vec<(&String, &String)> =
                lines.iter().zip(&ran).filter(|(_, ran)| ran.0 == "allow").map(|(line, ran)| (line, &ran.1)).collect();
            shown(format_args!("{tier} {mode:?}: {} tried, {} ran unasked", lines.len(), unasked.len()));
            let leaks: Vec<_> = unasked
                .iter()
                .filter(|(line, output)| {
                    (output.contains(OUTSIDE) && !line.contains(OUTSIDE)) || output.contains("root:x:0")
                })
                .collect();
            assert!(leaks.is_empty(), "{tier} {mode:?}: {leaks:?}");
            // These rows have an effect only in a hostile repository, which this one is not.
            let known = ["git status", "git diff", "git log -p"];
            let surprising: Vec<_> =
                unasked.iter().map(|(line, _)| line.as_str()).filter(|line| !known.contains(line)).collect();
            assert_eq!(surprising, Vec::<&str>::new(), "{tier} {mode:?}");
            let after = files(root.parent().expect("a parent"));
            let changed: Vec<_> =
                after.iter().filter(|(path, it)| before.get(*path) != Some(it)).map(|(path, _)| path).collect();
            assert_eq!((changed, after.len()), (Vec::new(), before.len()), "{tier} {mode:?}");
        }
    }
}

/// Broken builds: the sandbox shows the folder of the workspace's folder; commands in `auto` run outside the sandbox; in tier
/// `none`, `auto` asks nothing.
#[test]
fn nothing_adversarial_has_an_effect_outside_the_workspace_in_auto() {
    for tier in ["ns", "ll", "none"] {
        let (mut tried, mut ran, mut changed, mut read) = (0, 0, Vec::new(), Vec::new());
        let shell = hostile_project();
        let all = adversarial(&shell);
        let chosen = tier::sample("nothing_adversarial_has_an_effect_outside", (0..all.len()).collect());
        // What one line destroys, another one needs.
        for chunk in chosen.chunks(40) {
            let shell = hostile_project();
            let lines = adversarial(&shell);
            let beside = |shell: &Shell| -> BTreeMap<PathBuf, (u32, u64, Vec<u8>)> {
                let (parent, root) = (shell.workspace().parent().expect("a parent").to_owned(), shell.workspace());
                files(&parent).into_iter().filter(|(path, _)| !path.starts_with(&root)).collect()
            };
            let before = beside(&shell);
            let calls: Vec<Value> = chunk.iter().map(|&at| json!({ "command": lines[at], "timeout": 2 })).collect();
            for (&at, (verdict, output)) in
                chunk.iter().zip(judged(&shell, &calls, &["--mode", "auto", "--sandbox", tier]))
            {
                (tried, ran) = (tried + 1, ran + usize::from(verdict == "allow"));
                if output.contains(OUTSIDE) && !lines[at].contains(OUTSIDE) {
                    read.push(lines[at].clone());
                }
            }
            let after = beside(&shell);
            changed
                .extend(after.iter().filter(|(path, it)| before.get(*path) != Some(it)).map(|(path, _)| path.clone()));
            changed.extend(before.keys().filter(|path| !after.contains_key(*path)).cloned());
            changed.extend(traces(&shell.home()));
        }
        for folder in ["/tmp", "/var/tmp", "/dev/shm", "/"] {
            let names = fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.path());
            changed.extend(names.filter(|path| path.to_string_lossy().contains("PWNED")));
        }
        shown(format_args!(
            "auto {tier}: {tried} tried, {ran} ran, {} effects outside, {} read outside",
            changed.len(),
            read.len()
        ));
        assert_eq!((changed, read), (Vec::new(), Vec::new()), "{tier}");
        assert_eq!(ran == 0, tier == "none", "{tier}: {ran} ran");
    }
}

/// Files below that the lines of the table would make.
fn traces(folder: &Path) -> Vec<PathBuf> {
    files(folder)
        .into_keys()
        .filter(|path| path.file_name().is_some_and(|it| it.to_string_lossy().contains("PWNED")))
        .collect()
}

/// A figure of a table, for whoever runs it with `--nocapture`.
pub(super) fn shown(figure: std::fmt::Arguments<'_>) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr(), "{figure}");
}

pub(super) fn is_root_user() -> bool {
    fs::metadata("/proc/self").is_ok_and(|it| it.uid() == 0)
}

#[test]
fn git_also_runs_unasked_in_a_folder_of_a_repository_and_in_a_linked_work_tree() {
    let shell = project();
    let beside = shell.workspace().parent().expect("a parent").to_owned();
    git(&shell.workspace(), &["config", "user.name", "a"]);
    git(&shell.workspace(), &["config", "user.email", "a@a"]);
    git(&shell.workspace(), &["worktree", "add", "-q", "../linked"]);
    let linked = beside.join("linked");
    fs::write(shell.workspace().join("sub/a"), "changed there\n").expect("write");
    for tier in ["ns", "ll"] {
        fs::write(linked.join("in"), format!("changed here, {tier}\n")).expect("write");
        for (folder, changed) in [(linked.clone(), " M in"), (shell.workspace().join("sub"), " M a")] {
            let shown = folder.display().to_string();
            let args = ["--mode", "read-only", "--sandbox", tier, "--workspace", &shown];
            let ran = judged(&shell, &commands(["git status -s", "git log --oneline", "git diff"]), &args);
            assert!(ran.iter().all(|(verdict, _)| verdict == "allow"), "{tier} {shown}: {ran:?}");
            assert!(ran[0].1.contains(changed) && !ran[0].1.contains(" D "), "{tier} {shown}: {}", ran[0].1);
            assert!(ran[1].1.contains("second") && ran[2].1.contains("changed"), "{tier} {shown}: {ran:?}");
        }
        // Work commits there, but it changes no hook of the repository.
        let shown = linked.display().to_string();
        let line = format!(
            "echo {tier} >> in && git commit -qam {tier} && git log --oneline -1; echo x > {}/.git/hooks/post-commit",
            shell.workspace().display()
        );
        let ran = judged(&shell, &commands([line.as_str()]), &["--write", "--sandbox", tier, "--workspace", &shown]);
        assert!(ran[0].1.contains(&format!(" {tier}")), "{tier}: {ran:?}");
        if tier == "ns" {
            assert!(!shell.workspace().join(".git/hooks/post-commit").exists());
        }
    }
}

#[test]
fn a_folder_of_the_call_is_judged_as_it_is_quoted() {
    let shell = Shell::new(&[("a b/in", "here\n"), ("a/x", "there\n")]);
    let calls = [
        json!({ "command": "cat in", "cwd": "a b" }),
        json!({ "command": "ls", "cwd": "." }),
        json!({ "command": "cat ../a/x", "cwd": "a b" }),
        json!({ "command": "touch PWNED", "cwd": "a b" }),
    ];
    let ran = judged(&shell, &calls, &["--mode", "read-only"]);
    let verdicts: Vec<&str> = ran.iter().map(|(verdict, _)| verdict.as_str()).collect();
    assert_eq!(verdicts, ["allow", "allow", "allow", "deny"], "{ran:?}");
    assert!(ran[0].1.contains("here") && ran[3].1.contains("writes PWNED"), "{ran:?}");
}

/// A path that only the kernel can walk, because pixir's own way to look at it is too long.
#[test]
fn a_path_that_cannot_be_looked_at_is_not_inside() {
    let shell = project();
    let root = shell.workspace();
    let long = "d".repeat(200);
    let build = format!(
        "top=$PWD; for i in $(seq 19); do mkdir {long}; cd {long}; done; ln -s {long}/{long}/{long} b; for i in 1 2 3; do mkdir {long}; cd {long}; done; ln -s {}/outside/secret z; cd $top; ln -s {} a",
        root.parent().expect("a parent").display(),
        vec![long.as_str(); 19].join("/")
    );
    assert!(Command::new("bash").args(["-c", &build]).current_dir(&root).status().expect("bash").success());
    assert_eq!(
        Command::new("cat").arg("a/b/z").current_dir(&root).output().expect("cat").stdout,
        format!("{OUTSIDE}\n").into_bytes()
    );
    let ran = judged(&shell, &commands(["cat a/b/z"]), &["--mode", "read-only"]);
    assert_eq!(ran[0].0, "deny", "{ran:?}");
    // It is deeper than the walk over the files of a test goes.
    Command::new("rm").args(["-rf", &long, "a"]).current_dir(&root).status().expect("rm");
}

#[test]
fn why_shows_how_a_line_is_judged_program_by_program() {
    let shell = Shell::new(&[("in", "x\n")]);
    let why = |line: &str, more: &[&str]| shell.run(["permissions", "why", line].iter().chain(more));
    let all = why("cat in | sort && rm -rf target/", &["--json"]).document();
    assert_eq!((&all["mode"], &all["verdict"]), (&json!("ask"), &json!("asks")));
    assert_eq!(
        all["programs"],
        json!([
            { "program": "cat", "args": ["in"], "reads_only": true, "reason": null },
            { "program": "sort", "args": [], "reads_only": true, "reason": null },
            { "program": "rm", "args": ["-rf", "target/"], "reads_only": false, "reason": "deletes target/" },
        ])
    );
    for (line, reason) in [
        ("echo x > out.txt", "writes out.txt"),
        ("make test", "runs make, which may run anything"),
        ("curl -s http://x/", "uses the network (curl), with the network"),
        ("git commit -m x", "changes the repository (git commit)"),
        ("cargo build", "runs cargo build, which may run anything"),
        ("sudo ls", "runs with the rights of another user (sudo)"),
        ("mv a b", "moves a to b"),
        ("kill 1", "stops processes (kill)"),
    ] {
        assert_eq!(why(line, &["--json"]).document()["reason"], reason, "{line}");
    }
    let fetches = why("cargo add serde", &["--mode", "auto", "--json"]).document();
    let reason = "installs or changes packages (cargo add), with the network";
    assert_eq!((&fetches["verdict"], &fetches["reason"]), (&json!("asks"), &json!(reason)));
    let allowed = why("git push", &["--allow", "bash(git push *)", "--json"]).document();
    assert_eq!(allowed["verdict"], "runs", "{allowed}");
    let plain = why("cat in", &["--mode", "read-only"]);
    assert_eq!(
        (plain.code, plain.stdout.as_str()),
        (0, "  cat in\n      only reads\nIn read-only mode it runs unasked: the command only reads\n")
    );
    let refused = why("touch a", &["--mode", "read-only"]);
    assert_eq!(
        (refused.code, refused.stdout.as_str()),
        (0, "  touch a\n      writes a\nIn read-only mode it is refused: the mode is read-only: writes a\n")
    );
}

/// Broken build: a rule for a program with the network gives it to whatever the program starts.
#[test]
fn a_rule_gives_the_network_to_its_program_and_not_to_what_that_starts() {
    let shell = project();
    let root = shell.workspace();
    repository(&root.join("nested"));
    git(&root, &["init", "-q", "--bare", "bare"]);
    let verdict = |line: &str, rule: &str| {
        let rule = format!("bash({rule})");
        let why = shell.run(["permissions", "why", line, "--mode", "auto", "--allow", &rule, "--json"]).document();
        why["verdict"].as_str().unwrap_or_default().to_owned()
    };
    for (line, rule) in [
        ("git push origin main", "git push *"),
        ("cd sub && git push", "git push *"),
        ("timeout 60 git fetch --prune", "git fetch *"),
        ("curl -fsSL https://h/ | head -3", "curl *"),
        ("npm ci --no-audit", "npm ci *"),
        ("cargo add serde --features derive", "cargo add *"),
    ] {
        assert_eq!(verdict(line, rule), "runs", "{line}");
    }
    for (line, rule) in [
        ("git push --receive-pack=./evil origin", "git push *"),
        ("git push ./bare", "git push *"),
        ("git push bare", "git push *"),
        ("git push ext::./evil", "git push *"),
        // It has settings of its own, which may name programs.
        ("cd nested && git push", "git push *"),
        ("git fetch --upload-pack ./evil origin", "git fetch *"),
        ("git clone -c core.sshCommand=./evil git@h:r", "git clone *"),
        ("GIT_SSH_COMMAND=./evil git push", "git push *"),
        ("ssh -o ProxyCommand=./evil h", "ssh *"),
        ("scp a h:b -S ./evil", "scp *"),
        ("curl -K s https://h/", "curl *"),
        ("wget --use-askpass=./evil https://h/", "wget *"),
        ("cargo add --config s serde", "cargo add *"),
        ("npm ci --script-shell ./evil", "npm ci *"),
    ] {
        assert_eq!(verdict(line, rule), "asks", "{line}");
    }
}
