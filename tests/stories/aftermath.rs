//! One command in `auto`, then the user's own next command: nothing that the first one left runs in the second.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::protected::{git, runs};
use crate::shell::{Shell, as_user, entries, figures, skip, users};
use crate::tier;
use crate::wait;

mod scenarios; // what a command may leave, and the command that runs it

use scenarios::{Scenario, scenarios};

/// A workspace with all that the scenarios are about. What git has made there is the user's own.
fn workspace(user: Option<&'static str>) -> Shell {
    let mut shell = Shell::new(&[
        ("src/a", "a\n"),
        (".gitignore", "ignored/\nnode_modules/\n"),
        ("AGENTS.md", "be brief\n"),
        ("docs/AGENTS.md", "Read @style.md\n"),
        ("docs/style.md", "four blanks; @more.md\n"),
        ("docs/more.md", "none\n"),
        ("ignored/note", "x\n"),
    ]);
    let root = shell.workspace();
    let init = |at: &str| {
        fs::create_dir_all(root.join(at)).expect("mkdir");
        git(&root.join(at), &["init", "-q", "."]);
        fs::write(root.join(at).join("a"), "a\n").expect("write");
        git(&root.join(at), &["add", "-A"]);
        git(&root.join(at), &["commit", "-qm", "first"]);
    };
    ["ignored/old", "other", "rebasing", "named"].into_iter().for_each(init);
    let named = root.join("named");
    fs::create_dir_all(named.join("tools")).expect("mkdir");
    fs::write(named.join("extra.ini"), "[core]\n\tquotepath = true\n").expect("write");
    fs::write(named.join("tools/diff.sh"), "#!/bin/sh\nexit 0\n").expect("write");
    git(&named, &["config", "core.hooksPath", "../.githooks"]);
    git(&named, &["config", "include.path", "../extra.ini"]);
    git(&named, &["config", "diff.external", "./tools/diff.sh"]);
    let rebasing = root.join("rebasing");
    git(&rebasing, &["checkout", "-q", "-b", "side"]);
    fs::write(rebasing.join("a"), "side\n").expect("write");
    git(&rebasing, &["commit", "-qam", "side"]);
    git(&rebasing, &["checkout", "-q", "main"]);
    fs::write(rebasing.join("a"), "main\n").expect("write");
    git(&rebasing, &["commit", "-qam", "main"]);
    let stopped = Command::new("git")
        .args(["-c", "user.name=a", "-c", "user.email=a@a", "rebase", "-q", "side"])
        .current_dir(&rebasing)
        .output()
        .expect("git starts");
    assert!(!stopped.status.success() && rebasing.join(".git/rebase-merge").is_dir(), "it stops at a conflict");
    fs::write(rebasing.join("a"), "both\n").expect("write");
    git(&rebasing, &["add", "a"]);
    git(&root, &["init", "-q", "."]);
    git(&root, &["add", "src", "AGENTS.md", "docs", ".gitignore"]);
    git(&root, &["commit", "-qm", "first"]);
    fs::hard_link(root.join(".git/config"), root.join("settings.bak")).expect("link");
    fs::create_dir_all(home(&shell)).expect("mkdir");
    if let Some(user) = user {
        shell.give_to(user);
    }
    shell
}

/// The user's own command, with a home folder of its own.
fn user_runs(shell: &Shell, line: &str, within: &str) -> String {
    let folder = shell.workspace().join(within);
    if !folder.is_dir() {
        return "the folder is gone".into();
    }
    let ran = as_user(shell.user, "bash")
        .args(["-c", line])
        .current_dir(folder)
        .env("HOME", home(shell))
        .env("GIT_EDITOR", "true")
        .stdin(Stdio::null())
        .output()
        .expect("bash starts");
    format!("{}{}", String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr))
}

fn home(shell: &Shell) -> std::path::PathBuf {
    shell.home().with_file_name("of-the-user")
}

/// Broken builds: a list of dangerous names in place of what git writes; the walk obeys ignore rules; what protected files
/// name is not guarded; a file with two names counts as kept by the kernel.
#[test]
fn nothing_that_a_command_left_runs_in_the_users_next_command() {
    let tiers = ["ns", "ll"].into_iter().flat_map(|tier| users().into_iter().map(move |user| (tier, user)));
    let all: Vec<_> = tiers.flat_map(|(tier, user)| scenarios().into_iter().map(move |it| (tier, user, it))).collect();
    let (whole, cases) = (all.len(), tier::sample("nothing_that_a_command_left", all));
    let (tried, mut caught) = (cases.len(), Vec::new());
    for (tier, user, Scenario { name, command, next, within }) in cases {
        let shell = workspace(user);
        let outputs = runs(&shell, tier, &[&command], &[]);
        let seen = user_runs(&shell, &next, &within);
        if home(&shell).join("caught").exists() {
            caught.push(format!("{tier}, {}: {name}: {outputs:?}\n{seen}", user.unwrap_or("the user of the tests")));
        }
    }
    figures(&format!("{tried} of {whole} commands, each with the user's next one: {} had an effect", caught.len()));
    assert!(caught.is_empty(), "{}", caught.join("\n"));
}

/// The traps work: without pixir each of the scenarios has its effect.
///
/// Broken build: a scenario whose trap never springs.
#[test]
fn without_pixir_the_users_next_command_is_caught() {
    let cases = tier::sample("the_users_next_command_is_caught", scenarios());
    let (tried, mut harmless) = (cases.len(), Vec::new());
    for Scenario { name, command, next, within } in cases {
        let shell = workspace(None);
        let before = user_runs(&shell, &command, ".");
        let seen = user_runs(&shell, &next, &within);
        if !home(&shell).join("caught").exists() {
            harmless.push(format!("{name}: {before}{seen}"));
        }
    }
    figures(&format!("{tried} commands without pixir: {} had no effect", harmless.len()));
    assert!(harmless.len() * 4 <= tried.max(4), "{}", harmless.join("\n"));
}

/// A command that writes rules hides neither its changes nor what it made, and shows nothing that was ignored before.
///
/// Broken builds: changes are looked for by the rules after the command; a tracked file in an ignored folder is not watched.
#[test]
fn a_command_hides_no_change_by_the_rules_that_it_writes() {
    for tier in ["ns", "ll"] {
        let shell = workspace(None);
        git(&shell.workspace(), &["add", "-f", "ignored/note"]);
        let hide = "printf '*\\n' > src/.gitignore; echo changed > src/a; echo new > src/new; echo other > ignored/note; \
                    echo unseen > ignored/free; printf '' > .gitignore";
        runs(&shell, tier, &[hide], &[]);
        let log = entries(&shell.logs()[0]);
        let changes: Vec<(String, String)> = log
            .iter()
            .filter(|it| it["type"] == "tool_result")
            .flat_map(|it| it["data"]["changes"].as_array().cloned().unwrap_or_default())
            .map(|it| (it["path"].as_str().unwrap_or_default().into(), it["kind"].as_str().unwrap_or_default().into()))
            .collect();
        let wanted = [
            (".gitignore", "modified"),
            ("ignored/note", "modified"),
            ("src/.gitignore", "created"),
            ("src/a", "modified"),
            ("src/new", "created"),
        ];
        assert_eq!(changes, wanted.map(|(path, kind)| (path.to_owned(), kind.to_owned())), "{tier}");
    }
}

/// What a killed pixir could not take back, the next one takes back, and tells it. What the user changed later stays.
///
/// Broken builds: the look is only in memory; the next pixir takes back the user's own work.
#[test]
fn what_a_killed_pixir_left_is_taken_back_by_the_next_one() {
    for tier in ["ns", "ll"] {
        let shell = workspace(None);
        let root = shell.workspace();
        let command = "echo x > sub.txt; mkdir -p .vscode docs/.vscode; echo x > docs/.vscode/tasks.json; \
                       echo x > .git/hooks/post-commit; touch started; sleep 600";
        let script = format!(
            "{{\"steps\": [{{\"calls\": [{{\"name\": \"bash\", \"args\": {{\"command\": \"{command}\", \"timeout\": 900}}}}]}}]}}"
        );
        let provider = format!("script:{}", shell.aside("script.json", &script).display());
        let mut plain =
            shell.command(["--provider", &provider, "--headless", "--mode", "auto", "--sandbox", tier, "go"]);
        let mut pixir = plain
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .expect("it starts");
        wait::until("the command runs", || root.join("started").exists());
        pixir.kill().expect("kill -9");
        pixir.wait().expect("it ends");
        assert!(root.join("docs/.vscode/tasks.json").exists(), "{tier}: it was killed before it took back");
        let said = format!("script:{}", shell.aside("said.json", "{\"steps\": [{\"text\": \"Hello.\"}]}").display());
        let next = shell.run(["--provider", &said, "--headless", "--format", "jsonl", "hello"]);
        assert_eq!(next.code, 0, "{}", next.stderr);
        assert!(!root.join("docs/.vscode/tasks.json").exists(), "{tier}: {}", next.stderr);
        assert!(!root.join(".git/hooks/post-commit").exists(), "{tier}: {}", next.stderr);
        assert!(root.join("sub.txt").exists(), "only what is protected is taken back");
        let all = format!("{}{}", next.stdout, next.stderr);
        assert!(all.contains("docs/.vscode/tasks.json, which is protected; it was removed"), "{tier}: {all}");
        let again = shell.run(["--provider", &said, "--headless", "--format", "jsonl", "hello"]);
        assert!(!format!("{}{}", again.stdout, again.stderr).contains("which is protected"), "it is told once");
        let notes = fs::read_dir(shell.home().join("running")).into_iter().flatten().flatten();
        let left: Vec<_> =
            notes.map(|it| it.path()).filter(|it| it.extension().is_some_and(|it| it == "guard")).collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

/// What git does every day is git's own, and nothing of it is taken back or asked about.
///
/// Broken build: a file that git writes is missing from the list of its files.
#[test]
fn what_git_does_every_day_is_left_alone() {
    let lines = [
        "git checkout -q -b feature && echo b > src/b && git add -A && git -c user.name=a -c user.email=a@a commit -qm two",
        "git stash list; echo c >> src/a; git -c user.name=a -c user.email=a@a stash -q; git stash pop -q; git checkout -q src/a",
        "git tag v1; git -c user.name=a -c user.email=a@a tag -a v2 -m two; git pack-refs --all; git gc -q; git repack -adq",
        "git checkout -q main && git -c user.name=a -c user.email=a@a merge -q --no-ff feature -m merged",
        "git worktree add -q ../app-wt 2>/dev/null; git worktree add -q inner -b inner && git worktree remove inner",
        "git init -q fresh && cd fresh && echo x > x && git add x && git -c user.name=a -c user.email=a@a commit -qm x",
        "git bisect start -q 2>/dev/null; git bisect reset -q; git notes list; git reflog expire --all; git fsck",
        "git -c user.name=a -c user.email=a@a revert --no-edit HEAD -m 1; git update-index --refresh; git commit-graph write; git multi-pack-index write",
        "git -c user.name=a -c user.email=a@a rebase -q feature; git -c user.name=a -c user.email=a@a cherry-pick feature --allow-empty; git cherry-pick --abort; true",
        "git clone -q . copied && git -C copied log --oneline && rm -rf copied",
        "git sparse-checkout list 2>/dev/null; git rm -q --cached src/b; git reset -q --hard; git clean -fdq fresh",
    ];
    for tier in ["ns", "ll"] {
        let shell = workspace(None);
        let outputs = runs(&shell, tier, &lines, &[]);
        for (line, output) in lines.iter().zip(&outputs) {
            assert!(!output.contains("protected"), "{tier}: {line}: {output}");
        }
        assert!(
            shell.workspace().join(".git/refs").is_dir() && git_log(&shell.workspace()).contains("merged"),
            "{tier}"
        );
    }
}

fn git_log(folder: &Path) -> String {
    let ran = Command::new("git").args(["log", "--oneline", "--all"]).current_dir(folder).output().expect("git starts");
    String::from_utf8_lossy(&ran.stdout).into_owned()
}

/// A look costs one system call for each folder that has not changed.
///
/// Broken build: each look reads every folder again.
#[test]
fn a_command_in_a_large_workspace_is_guarded_quickly() {
    if Command::new("strace").arg("-V").output().is_err() {
        return skip("strace is not installed");
    }
    let shell = workspace(None);
    let root = shell.workspace();
    for folder in 0..200 {
        let at = root.join(format!("many/{}/{folder}", folder % 10));
        fs::create_dir_all(&at).expect("mkdir");
        (0..3).for_each(|n| fs::write(at.join(format!("{n}.txt")), "x").expect("write"));
    }
    // A folder that was just made may change again within the same tick of the file system's clock.
    wait::lapse(Duration::from_millis(120));
    let read_folders = |commands: usize| {
        let script: Vec<String> = (0..commands)
            .map(|n| {
                format!("{{\"calls\": [{{\"name\": \"bash\", \"args\": {{\"command\": \"echo {n} > src/a\"}}}}]}}")
            })
            .collect();
        let script = format!("{{\"steps\": [{}, {{\"text\": \"done\"}}]}}", script.join(", "));
        let provider = format!("script:{}", shell.aside("script.json", &script).display());
        let plain = shell.command(["--provider", &provider, "--headless", "--mode", "auto", "go"]);
        let trace = shell.aside("trace", "");
        let mut traced = Command::new("strace");
        traced
            .args(["-f", "-qq", "-e", "trace=openat", "-o"])
            .arg(&trace)
            .arg(plain.get_program())
            .args(plain.get_args());
        traced.env_clear().envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let ran = traced.current_dir(&root).stdin(Stdio::null()).output().expect("strace starts");
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        let text = fs::read_to_string(&trace).expect("a trace");
        // Only the survey opens folders without following a symlink, relative to the workspace's handle.
        text.lines().filter(|it| it.contains("\"many/") && it.contains("O_NOFOLLOW")).count()
    };
    let (two, four) = (read_folders(2), read_folders(4));
    figures(&format!("folders read by a Session of two commands: {two}, of four: {four}"));
    assert!(two >= 200 && four < two + 100, "{two} {four}");
}
