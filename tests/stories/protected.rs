//! Protected files that a command wrote: taken back, told, and kept if the user wants that.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::driver::{Pixir, calls, says};
use crate::shell::{Shell, entries};
use crate::wait;

/// Runs commands in `auto` as calls of one Session; returns the output of each.
pub(super) fn runs(shell: &Shell, tier: &str, commands: &[&str], flags: &[&str]) -> Vec<String> {
    let calls = commands.iter().map(|it| json!({ "name": "bash", "args": { "command": it } })).collect::<Vec<_>>();
    let script = json!({ "steps": [{ "calls": calls }, { "text": "done" }] }).to_string();
    let provider = format!("script:{}", shell.aside("script.json", &script).display());
    let before = shell.logs();
    let args = ["--provider", &provider, "--headless", "--mode", "auto", "--sandbox", tier];
    let ran = shell.run(args.iter().chain(flags).chain(&["go"]));
    let log = shell.logs().into_iter().find(|it| !before.contains(it)).unwrap_or_else(|| panic!("{}", ran.stderr));
    let results = entries(&log).into_iter().filter(|it| it["type"] == "tool_result");
    results.map(|it: Value| it["data"]["output"].as_str().unwrap_or_default().to_owned()).collect()
}

pub(super) fn git(folder: &Path, args: &[&str]) {
    let mut git = Command::new("git");
    git.args(["-c", "user.name=a", "-c", "user.email=a@a", "-c", "init.defaultBranch=main"]).args(args);
    let ran = git.current_dir(folder).env("GIT_CONFIG_GLOBAL", "/dev/null").output().expect("git");
    assert!(ran.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&ran.stderr));
}

/// Each command, and the path that must be as before: absent, or with this text.
const WRITES: [(&str, &str, Option<&str>); 15] = [
    ("echo x > .git/hooks/post-commit", ".git/hooks/post-commit", None),
    ("echo x > .envrc", ".envrc", None),
    ("mkdir -p .vscode && echo x > .vscode/tasks.json", ".vscode/tasks.json", None),
    ("mkdir -p .github/workflows && echo x > .github/workflows/ci.yml", ".github/workflows/ci.yml", None),
    ("mkdir -p .claude/skills/a && echo x > .claude/skills/a/SKILL.md", ".claude", None),
    ("mkdir -p sub && echo x > sub/CLAUDE.md", "sub/CLAUDE.md", None),
    ("mkdir -p deep/.cargo && echo x > deep/.cargo/config.toml", "deep/.cargo/config.toml", None),
    ("ln -s src .husky", ".husky", None),
    ("ln -s src .github", ".github", None),
    ("echo x > Agents.md", "Agents.md", None),
    ("echo x > .git/commondir", ".git/commondir", None),
    ("echo x >> AGENTS.md", "AGENTS.md", Some("be brief\n")),
    ("rm -f AGENTS.md", "AGENTS.md", Some("be brief\n")),
    ("printf '[alias]\\nx = !touch y\\n' >> .git/config", ".git/config", None),
    (
        "mv .git gone; mkdir -p .git/hooks; echo x > .git/hooks/pre-push; cp gone/config .git",
        ".git/hooks/pre-push",
        None,
    ),
];

/// Broken build: `Watched::new` looks at nothing, or `take_back` removes nothing.
#[test]
fn what_a_command_wrote_to_protected_files_is_taken_back() {
    for tier in ["ns", "ll"] {
        for (command, path, text) in WRITES {
            let shell = Shell::new(&[("AGENTS.md", "be brief\n"), ("src/a", "a")]);
            let root = shell.workspace();
            git(&root, &["init", "-q", "."]);
            let config = shell.read(".git/config");
            let outputs = runs(&shell, tier, &[command], &[]);
            let now = fs::read_to_string(root.join(path)).ok();
            let wanted = if path == ".git/config" { Some(config.as_str()) } else { text };
            assert_eq!(now.as_deref(), wanted, "{tier}: {command}: {outputs:?}");
            assert!(wanted.is_some() || fs::symlink_metadata(root.join(path)).is_err(), "{tier}: {command}");
            // What the kernel refuses, the program says itself.
            let is_refused = outputs[0].contains("Read-only file system") || outputs[0].contains("busy");
            let is_told = outputs[0].contains("which is protected; it was");
            assert!(is_told || (tier == "ns" && is_refused), "{tier}: {command}: {outputs:?}");
            assert_eq!(shell.read("src/a"), "a");
        }
    }
}

/// A command fills one protected folder, so that pixir looks no further.
///
/// Broken builds: a folder that is full ends the whole look; `take_back` looks once.
#[test]
fn a_command_hides_nothing_behind_many_files() {
    for tier in ["ns", "ll"] {
        let shell = Shell::new(&[("src/a", "a")]);
        let root = shell.workspace();
        git(&root, &["init", "-q", "."]);
        fs::remove_dir_all(root.join(".git/hooks")).expect("rm");
        let config = shell.read(".git/config");
        let command = "mkdir -p .agents .vscode .git/hooks; (cd .agents && seq 4100 | xargs touch); echo x > .envrc; \
                       echo x > .vscode/tasks.json; echo x > .git/hooks/pre-commit; echo '[alias] x = !y' >> .git/config; true";
        let outputs = runs(&shell, tier, &[command], &[]);
        for path in [".envrc", ".vscode", ".agents", ".git/hooks"] {
            let found = fs::symlink_metadata(root.join(path));
            assert!(found.is_err(), "{tier}: {path} is still there: {}", &outputs[0][..outputs[0].len().min(400)]);
        }
        assert_eq!(shell.read(".git/config"), config, "{tier}");
        assert!(outputs[0].contains("and so with"), "{tier}: {}", outputs[0]);
    }
    // The same below the workspace's root, behind more files than are watched.
    let shell = Shell::new(&[("src/a", "a")]);
    let command = "mkdir 0 && (cd 0 && seq 20100 | xargs touch); echo x > src/.envrc; git init -q zz; \
                   echo x > zz/.git/hooks/pre-commit";
    let outputs = runs(&shell, "ns", &[command], &[]);
    for path in ["src/.envrc", "zz/.git/hooks/pre-commit"] {
        assert!(!shell.workspace().join(path).exists(), "{path}: {}", outputs[0]);
    }
}

/// Git reads the settings and hooks of a linked work tree from where its `commondir` leads.
///
/// Broken builds: the look leaves `worktrees` out; what git itself writes there is taken back.
#[test]
fn linked_work_trees_are_made_and_not_turned_away() {
    for tier in ["ns", "ll"] {
        let shell = Shell::new(&[("src/a", "a")]);
        let root = shell.workspace();
        git(&root, &["init", "-q", "."]);
        git(&root, &["add", "-A"]);
        git(&root, &["commit", "-qm", "first"]);
        git(&root, &["worktree", "add", "-q", "../linked"]);
        let evil = "mkdir evil; echo ../../../evil > .git/worktrees/linked/commondir; \
                    echo '[alias] x = !y' > .git/worktrees/linked/config.worktree";
        let lead = "mkdir -p lead evil2/objects evil2/refs && echo 'ref: refs/heads/main' > evil2/HEAD && \
                    echo 'gitdir: ../evil2' > lead/.git; echo '[alias] x = !y' > evil2/config";
        let make = "git worktree add -q inside -b inside && git -C inside log --oneline";
        let remove = "git -C inside log --oneline && git worktree remove inside && ls";
        let outputs = runs(&shell, tier, &[evil, make, remove, lead], &[]);
        let at = root.join(".git/worktrees");
        let of = |name: &str| fs::read_to_string(at.join("linked").join(name)).ok();
        assert_eq!(of("commondir").as_deref(), Some("../..\n"), "{tier}: {outputs:?}");
        assert_eq!(of("config.worktree"), None, "{tier}: {outputs:?}");
        assert!(outputs[0].contains("commondir, which is protected; it was put back"), "{tier}: {outputs:?}");
        assert!(outputs[1].contains("first") && !outputs[1].contains("protected"), "{tier}: {outputs:?}");
        assert!(outputs[2].contains("first") && outputs[2].contains("src"), "{tier}: {outputs:?}");
        assert!(!outputs[2].contains("protected") && !at.join("inside").exists(), "{tier}: {outputs:?}");
        assert!(outputs[3].contains("lead/.git, which is protected; it was removed"), "{tier}: {outputs:?}");
    }
}

/// A workspace is often a folder of several repositories, and the user works in each.
///
/// Broken builds: `walk_noting_repositories` notes none; `new_among` is empty; what was moved or removed counts as written.
#[test]
fn repositories_below_the_workspace_are_kept_too() {
    for tier in ["ns", "ll"] {
        let shell = Shell::new(&[("one/a", "a"), ("two/deep/b", "b"), ("three/c", "c"), ("four/d", "d")]);
        let root = shell.workspace();
        for folder in ["one", "two/deep", "three", "four"] {
            git(&root.join(folder), &["init", "-q", "."]);
            git(&root.join(folder), &["add", "-A"]);
            git(&root.join(folder), &["commit", "-qm", "first"]);
        }
        fs::write(root.join("four/.git/hooks/pre-commit"), "mine\n").expect("write");
        let config = shell.read("one/.git/config");
        let outputs = runs(
            &shell,
            tier,
            &[
                "echo x > one/.git/hooks/pre-commit; git -C one config core.fsmonitor ./evil; true",
                "printf '[alias]\\nx = !y\\n' >> two/deep/.git/config",
                "git init -q new && echo x > new/.git/hooks/post-checkout; git -C new config core.fsmonitor ./evil; true",
                "mkdir -p docs/objects docs/refs; echo 'ref: refs/heads/main' > docs/HEAD; \
                 printf '[core]\\n bare = true\\n fsmonitor = ./evil\\n' > docs/config",
                "git -C one config user.name me; git clone -q one copy && git -C copy log --oneline; \
                 git init -q --bare plain.git && git -C one push -q ../plain.git HEAD:main; rm -rf three; mv four five",
            ],
            &[],
        );
        for (output, path) in outputs.iter().zip([
            "one/.git/hooks/pre-commit",
            "two/deep/.git/config",
            "new/.git/hooks/post-checkout",
            "docs/config",
        ]) {
            assert!(output.contains(&format!("{path}, which is protected; it was")), "{tier}: {path}: {output}");
        }
        assert!(
            !root.join("one/.git/hooks/pre-commit").exists() && !root.join("new/.git/hooks/post-checkout").exists()
        );
        assert!(!shell.read("two/deep/.git/config").contains("alias"), "{tier}");
        assert!(!shell.read("new/.git/config").contains("evil"), "{tier}: {}", outputs[2]);
        assert_eq!(shell.read("one/.git/config"), format!("{config}[user]\n\tname = me\n"), "{tier}");
        assert!(!root.join("docs/config").exists() && shell.read("plain.git/config").contains("bare"), "{tier}");
        assert!(outputs[4].contains("first") && !outputs[4].contains("protected"), "{tier}: {}", outputs[4]);
        assert!(!root.join("three").exists() && !root.join("four").exists(), "{tier}");
        assert_eq!(shell.read("five/.git/hooks/pre-commit"), "mine\n", "{tier}");
    }
}

/// Broken build: `Place::take_back` does not ask `is_plain`, or asks it of repositories that were there.
#[test]
fn repositories_are_made_and_commits_too() {
    for tier in ["ns", "ll"] {
        let shell = Shell::new(&[]);
        let git = "git -c user.name=a -c user.email=a@a";
        let commit = format!("echo b > b; {git} add -A; {git} commit -qm first && git log --oneline");
        let outputs = runs(&shell, tier, &["git init -q .", &commit, "echo x > .git/hooks/pre-commit; true"], &[]);
        assert!(outputs.iter().take(2).all(|it| !it.contains("protected")), "{tier}: {outputs:?}");
        assert!(outputs[1].contains("first"), "{tier}: {outputs:?}");
        let samples = fs::read_dir(shell.workspace().join(".git/hooks")).map_or(0, Iterator::count);
        assert!(shell.read(".git/config").contains("[core]") && samples > 0, "{tier}: git's own files stay");
        assert!(!shell.workspace().join(".git/hooks/pre-commit").exists());

        // A new repository with a configuration that runs something is not git's own.
        let shell = Shell::new(&[]);
        let evil = "git init -q . && git config core.fsmonitor ./evil; echo evil > .git/hooks/post-checkout";
        let outputs = runs(&shell, tier, &[evil], &[]);
        assert!(
            outputs[0].contains("the command wrote .git/config, which is protected; it was removed"),
            "{outputs:?}"
        );
        assert!(!shell.workspace().join(".git/hooks/post-checkout").exists());

        let shell = Shell::new(&[]);
        let made =
            "npm init -y; cargo init --vcs git --name x; mkdir -p node_modules/x && echo x > node_modules/x/.npmrc";
        fs::write(shell.workspace().join(".gitignore"), "node_modules\n").expect("write");
        let outputs = runs(&shell, tier, &[made], &[]);
        assert!(!outputs[0].contains("protected"), "{tier}: {outputs:?}");
    }
}

/// The folders of a repository lie outside a workspace that is a folder of it, or a linked work tree. Landlock lets a
/// command write there.
#[test]
fn hooks_of_a_repository_elsewhere_are_taken_back_too() {
    for tier in ["ns", "ll"] {
        let shell = Shell::new(&[("in", "a")]);
        let top = shell.workspace().parent().expect("a parent").join("repository");
        fs::create_dir_all(top.join("part")).expect("mkdir");
        fs::write(top.join("part/a"), "a").expect("write");
        git(&top, &["init", "-q", "."]);
        git(&top, &["add", "-A"]);
        git(&top, &["commit", "-qm", "first"]);
        git(&top, &["worktree", "add", "-q", "../linked"]);
        let config = fs::read_to_string(top.join(".git/config")).expect("there");
        for workspace in [top.join("part"), top.parent().expect("a parent").join("linked")] {
            let at = top.join(".git").display().to_string();
            let command = format!(
                "echo x > {at}/hooks/pre-commit; echo '[alias] x = !y' >> {at}/config; \
                 echo n > new; git add new; git -c user.name=a -c user.email=a@a commit -qm second; git log --oneline"
            );
            let flags = ["--workspace", workspace.to_str().expect("text")];
            let outputs = runs(&shell, tier, &[&command], &flags);
            assert!(outputs[0].contains("second"), "{tier}: commits work: {outputs:?}");
            assert!(!top.join(".git/hooks/pre-commit").exists(), "{tier}: {outputs:?}");
            assert_eq!(fs::read_to_string(top.join(".git/config")).expect("there"), config, "{tier}");
        }
    }
}

/// For each group, files that a command creates: in the workspace's folder, below it, and one that is there already.
const OF_GROUPS: [(&str, [&str; 3]); 6] = [
    ("git", ["lefthook.yml", "sub/.pre-commit-config.yaml", ".overcommit.yml"]),
    ("agents", ["AGENTS.override.md", "sub/.codex/config.toml", "CLAUDE.local.md"]),
    ("editors", [".idea/startup.xml", "sub/x.code-workspace", ".dir-locals.el"]),
    ("CI", [".gitlab-ci.yml", "sub/.circleci/config.yml", "Jenkinsfile"]),
    ("shells", ["mise.toml", "sub/.gdbinit", ".Rprofile"]),
    ("packages", [".mvn/extensions.xml", "sub/gradle/wrapper/gradle-wrapper.properties", "gradlew"]),
];

/// Broken builds: the table of names misses one of these; the guard compares names with a list of its own.
#[test]
fn a_command_leaves_no_file_of_any_group() {
    for tier in ["ns", "ll"] {
        for (group, [one, below, there]) in OF_GROUPS {
            let shell = Shell::new(&[("src/a", "a"), (there, "mine\n")]);
            let command = format!(
                "mkdir -p $(dirname {one}) $(dirname {below}); echo x > {one}; echo x > {below}; echo x >> {there}; \
                 echo plain > Makefile; true"
            );
            let outputs = runs(&shell, tier, &[&command], &[]);
            for path in [one, below] {
                assert!(!shell.workspace().join(path).exists(), "{tier} {group}: {path}: {outputs:?}");
                assert!(outputs[0].contains(&format!("{path}, which is protected; it was removed")), "{outputs:?}");
            }
            assert_eq!(shell.read(there), "mine\n", "{tier} {group}: {outputs:?}");
            assert_eq!(shell.read("Makefile"), "plain\n", "what a user runs knowingly stays");
        }
    }
}

/// The text of a screen without its lines and frames.
pub(super) fn flat(screen: &str) -> String {
    screen.replace(['│', '┃'], " ").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Broken builds: one question for all of them, or one for each file; an answer counts for the next group too.
#[tokio::test]
async fn the_user_is_asked_once_for_each_group() {
    let write =
        "mkdir -p .circleci; for f in .gitlab-ci.yml .circleci/config.yml CLAUDE.local.md; do echo x > $f; done";
    let steps = vec![calls("bash", json!({ "command": write })), says("Done.")];
    let mut pixir = Pixir::new(steps, &[]);
    pixir.does("go<Enter>").await;
    let screen = flat(&pixir.does("<A-y>").await);
    assert!(screen.contains("wrote CLAUDE.local.md, which is protected (agents)"), "{screen}");
    assert!(!screen.contains("(CI)"), "{screen}");
    let screen = flat(&pixir.does("<A-n>").await);
    assert!(screen.contains(".circleci/config.yml, .gitlab-ci.yml, which are protected (CI)"), "{screen}");
    let screen = pixir.does("<A-y>").await;
    assert!(screen.contains("Done."), "two questions are enough:\n{screen}");
    assert_eq!((pixir.file(".gitlab-ci.yml"), pixir.file(".circleci/config.yml")), ("x\n".into(), "x\n".into()));
    assert!(!pixir.path("CLAUDE.local.md").exists());
}

/// Broken builds: the gate asks for each file; a group is asked about only in `ask`.
#[tokio::test]
async fn a_file_tool_asks_once_for_the_files_of_a_group() {
    let add = |paths: &[&str]| {
        let files: String = paths.iter().map(|it| format!("*** Add File: {it}\n+x\n")).collect();
        calls("apply_patch", json!({ "patch": format!("*** Begin Patch\n{files}*** End Patch\n") }))
    };
    let steps = vec![
        add(&[".gitlab-ci.yml", "Makefile", ".github/workflows/a.yml", ".github/workflows/b.yml", ".idea/x.xml"]),
        says("One."),
        calls("write", json!({ "path": "Makefile", "content": "all:\n" })),
        says("Two."),
    ];
    let mut pixir = Pixir::sized(steps, &[], 100, 60);
    pixir.does("/mode auto<Enter>").await;
    let screen = flat(&pixir.does("go<Enter>").await);
    assert!(screen.contains(".idea/x.xml is protected (editors)"), "{screen}");
    assert!(screen.contains(".github/workflows/b.yml are protected (CI)"), "{screen}");
    let screen = pixir.does("<A-y>").await;
    assert!(screen.contains("One.") && pixir.file(".gitlab-ci.yml") == "x\n", "{screen}");
    let asked =
        pixir.log().iter().filter(|it| it["type"] == "permission_decision" && it["data"]["by"] == "user").count();
    assert_eq!(asked, 2, "a decision for each group");
    let screen = pixir.does("more<Enter>").await;
    assert!(screen.contains("Two."), "what a user runs knowingly is not asked about:\n{screen}");
}

/// Broken build: `Watched` has no `Drop`.
#[test]
fn an_interrupted_command_is_taken_back() {
    for tier in ["ns", "ll"] {
        let shell = Shell::new(&[]);
        let line = "echo x > .envrc; mkdir -p sub; echo x > sub/.envrc; touch sub/plain wrote; sleep 60";
        runs(&shell, tier, &[line], &["--deadline", "2"]);
        assert!(shell.workspace().join("wrote").exists() && shell.workspace().join("sub/plain").exists());
        wait::until("it is gone", || !shell.workspace().join("sub/.envrc").exists());
        wait::until("it is gone", || !shell.workspace().join(".envrc").exists());
    }
}

/// Broken build: `settle` asks nobody, or keeps what was refused.
#[tokio::test]
async fn the_user_may_keep_it() {
    let write = || calls("bash", json!({ "command": "echo 'echo hi' > .envrc; chmod 755 .envrc; echo done" }));
    let mut pixir = Pixir::new(vec![write(), says("Done."), write(), says("Kept.")], &[]);
    pixir.does("go<Enter>").await;
    let screen = pixir.does("<A-y>").await;
    assert!(screen.contains(".envrc") && screen.contains("+ echo hi"), "the file is shown:\n{screen}");
    assert!(!pixir.path(".envrc").exists(), "it is gone while the user decides");
    pixir.does("<A-n>").await;
    assert!(!pixir.path(".envrc").exists());
    pixir.does("again<Enter>").await;
    pixir.does("<A-y>").await;
    pixir.does("<A-y>").await;
    assert_eq!(pixir.file(".envrc"), "echo hi\n");
    assert_eq!(fs::metadata(pixir.path(".envrc")).expect("there").permissions().mode() & 0o777, 0o755);
    let log = pixir.log();
    let results: Vec<&Value> = log.iter().filter(|it| it["type"] == "tool_result").collect();
    assert_eq!(results[0]["data"]["changes"].as_array().map_or(0, Vec::len), 0, "nothing was changed: {results:?}");
    assert_eq!(results[1]["data"]["changes"][0]["path"], ".envrc", "it can be undone");
}

/// A job that is told to stop writes its last. The user cannot be asked here.
const LAST_WORDS: &str = "trap 'echo late > .envrc; exit' TERM; echo ready; while :; do sleep 0.05; done";

/// Broken builds: `start_job` looks at nothing; `jobs::settle` takes nothing back; `close` finds nothing.
#[test]
fn what_was_written_while_a_job_ran_is_taken_back() {
    for tier in ["ns", "ll"] {
        let shell = Shell::new(&[("AGENTS.md", "be brief\n"), ("one/a", "a")]);
        git(&shell.workspace(), &["init", "-q", "."]);
        git(&shell.workspace().join("one"), &["init", "-q", "."]);
        let job = "echo x > .envrc; mkdir -p .github/workflows; echo y > .github/workflows/ci.yml; \
                   echo more >> AGENTS.md; echo x > one/.git/hooks/pre-commit; echo x > one/.envrc; \
                   echo wrote; sleep 60";
        let told = with_jobs(&shell, tier, &[job, LAST_WORDS]);
        let of_job = "job 1, or another program meanwhile, wrote .envrc, which is protected; it was removed";
        assert!(told.contains(of_job), "{tier}: {told}");
        assert!(told.contains("wrote .github/workflows/ci.yml, which is protected; it was removed"), "{tier}: {told}");
        // In namespaces the kernel has refused it.
        assert!(tier == "ns" || told.contains("changed AGENTS.md, which is protected; it was put back"), "{told}");
        assert_eq!(shell.read("AGENTS.md"), "be brief\n", "{tier}");
        for path in [".envrc", ".github/workflows", "one/.git/hooks/pre-commit", "one/.envrc"] {
            assert!(!shell.workspace().join(path).exists(), "{tier}: {path}: {told}");
        }
    }
}

/// Starts these jobs, each in a call that waits for what it prints last; returns what the results tell.
fn with_jobs(shell: &Shell, tier: &str, jobs: &[&str]) -> String {
    let job = |it: &&str| {
        let args = json!({ "command": it, "background": true, "wait_output": "wrote|ready" });
        json!({ "calls": [{ "name": "bash", "args": args }] })
    };
    let steps: Vec<Value> = jobs.iter().map(job).chain([json!({ "text": "done" })]).collect();
    let provider = format!("script:{}", shell.aside("script.json", &json!({ "steps": steps }).to_string()).display());
    let ran = shell.run(["--provider", &provider, "--headless", "--mode", "auto", "--sandbox", tier, "go"]);
    let log = shell.logs().pop().unwrap_or_else(|| panic!("{}", ran.stderr));
    let results = entries(&log).into_iter().filter(|it| it["type"] == "tool_result");
    results.map(|it| it["data"]["output"].as_str().unwrap_or_default().to_owned()).collect()
}

/// The user may have written the file in an editor, so it stays until the user has answered.
///
/// Broken builds: `jobs::settle` takes back before it asks; the guard does not look again, so that the same is asked again.
#[tokio::test]
async fn the_user_decides_about_what_was_written_while_a_job_ran() {
    let job =
        json!({ "command": "echo hi > .envrc; echo wrote; sleep 60", "background": true, "wait_output": "wrote" });
    let look = || calls("job_output", json!({}));
    let mut pixir = Pixir::new(vec![calls("bash", job), look(), says("Done."), look(), says("Again.")], &[]);
    pixir.does("go<Enter>").await;
    let screen = pixir.does("<A-y>").await;
    assert!(screen.contains("job 1, or another program meanwhile, wrote .envrc"), "{screen}");
    assert!(screen.contains("+ hi"), "{screen}");
    assert_eq!(pixir.file(".envrc"), "hi\n", "nothing is taken back before the answer");
    let screen = pixir.does("<A-y>").await;
    assert!(screen.contains("Done."), "one question is enough:\n{screen}");
    // The user writes another one.
    fs::write(pixir.path(".npmrc"), "mine\n").expect("write");
    let screen = pixir.does("again<Enter>").await;
    assert!(screen.contains("wrote .npmrc"), "{screen}");
    assert_eq!(pixir.file(".npmrc"), "mine\n");
    let screen = pixir.does("<A-n>").await;
    assert!(!pixir.path(".npmrc").exists() && pixir.file(".envrc") == "hi\n", "{screen}");
}

/// Landlock restricts no change of a mode, and no attribute.
///
/// Broken builds: `Watched` has no `modes`; `attributes` are not filtered.
#[test]
fn a_command_opens_no_private_file_to_others_under_landlock() {
    let shell = Shell::new(&[]);
    let home = shell.workspace().parent().expect("a parent").join("user");
    let (key, other) = (home.join(".ssh/id_ed25519"), home.join("notes"));
    fs::create_dir_all(home.join(".ssh")).expect("mkdir");
    for file in [&key, &other] {
        fs::write(file, "private").expect("write");
        fs::set_permissions(file, fs::Permissions::from_mode(0o600)).expect("chmod");
    }
    let command = "chmod 666 ~/.ssh/id_ed25519; python3 -c 'import os; os.setxattr(os.environ[\"HOME\"] + \"/notes\", \"user.x\", b\"y\")'; \
                   touch made && chmod 755 made && touch -d 2001-01-01 made && cp -a made copy && tar cf a.tar made && tar xf a.tar && echo built";
    let args = json!({ "command": command }).to_string();
    let mut pixir = shell.command(["tools", "run", "bash", &args, "--write", "--sandbox", "ll"]);
    let ran = pixir.env("HOME", &home).output().expect("it starts");
    let told = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(told.contains("built"), "a build changes its own files: {told}");
    assert!(told.contains("id_ed25519 to others; pixir closed it again"), "{told}");
    assert!(told.contains("Operation not supported"), "{told}");
    assert_eq!(fs::metadata(&key).expect("there").permissions().mode() & 0o777, 0o600);
    let mut value = [0; 8];
    assert!(rustix::fs::getxattr(&other, "user.x", &mut value[..]).is_err());
}
