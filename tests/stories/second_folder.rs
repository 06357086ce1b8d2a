//! A second folder that is worked on as the workspace is: `--add-dir FOLDER:rw`, `/add-dir FOLDER:rw`.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::agents;
use super::readers::{git, repository};
use crate::driver::{Pixir, calls, says};
use crate::shell::{Ran, Shell, entries};

/// Two repositories side by side: the workspace `app` and `lib`.
fn two() -> (Shell, PathBuf) {
    let shell = Shell::new(&[]);
    let lib = shell.workspace().join("../lib");
    repository(&shell.workspace());
    repository(&lib);
    let lib = lib.canonicalize().expect("there");
    (shell, lib)
}

fn call(name: &str, args: &Value) -> Value {
    json!({ "name": name, "args": args })
}

fn bash(line: &str) -> Value {
    call("bash", &json!({ "command": line }))
}

/// Runs these calls in one Turn; returns what the run printed as its document.
fn turn(shell: &Shell, calls: &[Value], flags: &[&str]) -> (Ran, Value) {
    let script = json!({ "steps": [{ "calls": calls }, { "text": "Done." }] }).to_string();
    let provider = format!("script:{}", shell.aside("second.json", &script).display());
    let run = ["--provider", &provider, "--headless", "--json"];
    let ran = shell.run(run.iter().chain(flags).chain(&["go"]));
    let document = serde_json::from_str(&ran.stdout).unwrap_or(Value::Null);
    (ran, document)
}

/// What a resumed run with this call says to the user.
fn resumed(shell: &Shell, id: &str, call: Value) -> String {
    let script = json!({ "steps": [{ "calls": [call] }, { "text": "Done." }] }).to_string();
    let provider = format!("script:{}", shell.aside("resumed.json", &script).display());
    shell.run(["--provider", &provider, "--headless", "--write", "resume", id, "go"]).stderr
}

fn id_of(document: &Value) -> String {
    document["session_id"].as_str().expect("an id").to_owned()
}

/// What the calls of the latest Session told the model.
fn outputs(shell: &Shell, id: &str) -> Vec<String> {
    let log = shell.logs().into_iter().find(|it| it.display().to_string().contains(id)).expect("a log");
    let results = entries(&log).into_iter().filter(|it| it["type"] == "tool_result");
    results.map(|it| it["data"]["output"].as_str().expect("text").to_owned()).collect()
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|e| format!("({e})"))
}

/// Broken builds: the tools, or commands, do not write in the second folder; its changes are not recorded, or by a path that
/// names a file of the workspace; undo restores only one of the two.
#[test]
fn one_turn_changes_both_folders_and_one_undo_takes_both_back() {
    for tier in ["ns", "ll"] {
        let (shell, lib) = two();
        let at = |name: &str| lib.join(name).display().to_string();
        let added = format!("{}:rw", lib.display());
        let patch = format!(
            "*** Begin Patch\n*** Update File: in\n@@\n-one\n+1\n*** Update File: {}\n@@\n-one\n+eins\n*** End Patch",
            at("in")
        );
        let work = [
            call("write", &json!({ "path": at("src/made.txt"), "content": "made\n" })),
            call("apply_patch", &json!({ "patch": patch })),
            call("edit", &json!({ "path": "../lib/in", "old_text": "two", "new_text": "zwei" })),
            bash(
                "echo here > by-command; echo there > ../lib/by-command; mkdir -p ../lib/new && mv ../lib/src/made.txt ../lib/new/",
            ),
            call("bash", &json!({ "command": "pwd; echo more >> in", "cwd": lib })),
        ];
        let (ran, document) = turn(&shell, &work, &["--write", "--sandbox", tier, "--add-dir", &added]);
        assert_eq!(ran.code, 0, "{tier}: {}\n{}", ran.stdout, ran.stderr);
        let id = id_of(&document);
        let told = outputs(&shell, &id);
        assert!(told[4].contains(&lib.display().to_string()), "{tier}: {told:?}");
        assert_eq!(text(&lib.join("in")), "eins\nzwei\nmore\n", "{tier}: {told:?}");
        assert_eq!(shell.read("in"), "1\ntwo\n", "{tier}");
        assert_eq!(
            (text(&lib.join("new/made.txt")), text(&lib.join("by-command"))),
            ("made\n".into(), "there\n".into())
        );
        let mut changed: Vec<&str> =
            document["files_changed"].as_array().expect("a list").iter().filter_map(|it| it["path"].as_str()).collect();
        changed.sort_unstable();
        let mut expected = vec![at("by-command"), at("in"), at("new/made.txt"), "by-command".into(), "in".into()];
        expected.sort();
        assert_eq!(changed, expected, "{tier}");

        let undone = shell.run(["undo", &id, "--json"]);
        assert_eq!(undone.code, 0, "{tier}: {}\n{}", undone.stdout, undone.stderr);
        assert_eq!((text(&lib.join("in")), shell.read("in")), ("one\ntwo\n".into(), "one\ntwo\n".into()), "{tier}");
        let left = |name: &str| lib.join(name).exists() || shell.workspace().join(name).exists();
        assert!(!left("by-command") && !left("new/made.txt") && !left("src/made.txt") && !left("new"), "{tier}");
        let redone = shell.run(["redo", &id, "--json"]);
        assert_eq!(redone.code, 0, "{tier}: {}", redone.stderr);
        assert_eq!(text(&lib.join("in")), "eins\nzwei\nmore\n", "{tier}");
        assert_eq!((text(&lib.join("new/made.txt")), shell.read("by-command")), ("made\n".into(), "here\n".into()));
    }
}

/// Broken builds: plain `--add-dir` lets something be written; `:rw` allows writes that the mode refuses.
#[test]
fn the_mode_decides_about_the_second_folder_as_about_the_workspace() {
    let (shell, lib) = two();
    let (plain, worked) = (lib.display().to_string(), format!("{}:rw", lib.display()));
    let read_only = format!("{}:ro", lib.display());
    let writes = || {
        [
            call("write", &json!({ "path": lib.join("made"), "content": "x" })),
            call("edit", &json!({ "path": lib.join("in"), "old_text": "one", "new_text": "x" })),
            bash("echo x > ../lib/made"),
            call("run", &json!({ "command": "echo x | write ../lib/made" })),
        ]
    };
    for (mode, folder, is_written) in [
        ("read-only", &worked, false),
        ("ask", &worked, false),
        ("auto", &worked, true),
        ("auto", &plain, false),
        ("auto", &read_only, false),
    ] {
        turn(&shell, &writes(), &["--toolset", "both", "--mode", mode, "--add-dir", folder]);
        assert_eq!(lib.join("made").exists(), is_written, "{mode} {folder}");
        assert_eq!(text(&lib.join("in")).starts_with('x'), is_written, "{mode} {folder}");
        let _ = fs::remove_file(lib.join("made"));
        git(&lib, &["checkout", "-q", "."]);
    }
    // Reading needs no question, whatever the mode.
    let reads = [
        call("read", &json!({ "path": lib.join("in") })),
        call("grep", &json!({ "pattern": "two", "path": lib })),
        bash("cat ../lib/in"),
        bash("git -C ../lib log --oneline"),
        bash("cd ../lib && git status --short"),
    ];
    let (ran, document) = turn(&shell, &reads, &["--mode", "read-only", "--add-dir", &worked]);
    assert_eq!(ran.code, 0, "{}\n{}", ran.stdout, ran.stderr);
    let told = outputs(&shell, &id_of(&document));
    assert!(told[..3].iter().all(|it| it.contains("two")) && told[3].contains("second"), "{told:?}");
}

/// Broken builds: the gate, the kernel or the guard knows the protected files of the workspace only.
#[test]
fn protected_files_of_the_second_folder_are_protected_there() {
    for tier in ["ns", "ll"] {
        let (shell, lib) = two();
        let worked = format!("{}:rw", lib.display());
        let before = text(&lib.join(".git/config"));
        let names =
            [".git/hooks/pre-commit", ".envrc", "AGENTS.md", ".github/workflows/ci.yml", "sub/.pixir/config.toml"];
        let mut work: Vec<Value> =
            names.iter().map(|name| call("write", &json!({ "path": lib.join(name), "content": "x" }))).collect();
        work.extend(names.iter().map(|name| {
            bash(
                &format!(
                    "cd ../lib && mkdir -p {} && echo x > {name}",
                    Path::new(name).parent().expect("one").display()
                )
                .replace("mkdir -p  &&", ""),
            )
        }));
        work.push(bash("cd ../lib && git config core.fsmonitor 'touch ran' || echo [x] >> .git/config"));
        work.push(bash("mv ../lib/.git ../lib/moved; ls ../lib/moved; mv ../lib/moved ../lib/.git"));
        let (_, document) = turn(&shell, &work, &["--write", "--sandbox", tier, "--add-dir", &worked]);
        let told = outputs(&shell, &id_of(&document));
        for name in names {
            assert!(!lib.join(name).exists(), "{tier}: {name}: {told:#?}");
        }
        assert_eq!(text(&lib.join(".git/config")), before, "{tier}: {told:#?}");
        assert!(told[..5].iter().all(|it| it.contains("no user can be asked")), "{tier}: {told:#?}");
        // The path of what was taken back is that of the second folder.
        assert!(told[7].contains(&lib.join("AGENTS.md").display().to_string()), "{tier}: {told:#?}");
    }
}

/// Broken builds: git of the second folder is refused, or reads the repository of the workspace.
#[test]
fn each_repository_has_its_own_status_and_commits() {
    let (shell, lib) = two();
    fs::write(lib.join("only-in-lib"), "x\n").expect("write");
    let worked = format!("{}:rw", lib.display());
    let name = "-c user.name=a -c user.email=a@a";
    let work = [
        bash("git -C ../lib status --short"),
        bash("git status --short"),
        bash("cd ../lib && git log -1 --format=%s && git diff --stat HEAD~1"),
        bash("git -C ../lib status --short && git status --short"),
        bash(&format!("cd ../lib && git add -A && git {name} commit -qm 'In the library'")),
        bash(&format!("echo x > made && git add -A && git {name} commit -qm 'In the app'")),
        call("bash", &json!({ "command": "git log -1 --format=%s", "cwd": lib })),
    ];
    let (ran, document) = turn(&shell, &work, &["--write", "--add-dir", &worked]);
    assert_eq!(ran.code, 0, "{}\n{}", ran.stdout, ran.stderr);
    let told = outputs(&shell, &id_of(&document));
    assert!(told[0].contains("?? only-in-lib") && !told[1].contains("only-in-lib"), "{told:#?}");
    assert!(told[2].contains("second") && told[3].contains("?? only-in-lib"), "{told:#?}");
    assert!(told[6].contains("In the library"), "{told:#?}");
    let last = |at: &Path| {
        let ran = Command::new("git").args(["log", "-1", "--format=%s"]).current_dir(at).output().expect("git");
        String::from_utf8(ran.stdout).expect("text").trim().to_owned()
    };
    assert_eq!((last(&lib), last(&shell.workspace())), ("In the library".into(), "In the app".into()));
}

/// Broken builds: a root inside another one, so that each change is found twice; a folder with keys is written; a folder whose
/// name ends in `:rw` is taken for another one.
#[test]
fn a_folder_that_cannot_be_worked_on_is_refused_with_the_reason() {
    let (shell, lib) = two();
    let home = lib.parent().expect("one").to_owned();
    fs::create_dir_all(shell.workspace().join("sub")).expect("mkdir");
    fs::create_dir_all(home.join("odd:rw")).expect("mkdir");
    fs::create_dir_all(home.join(".ssh")).expect("mkdir");
    symlink(&home, home.join("app/up")).expect("symlink");
    let go = |folder: &str| shell.run(["--headless", "--provider", "demo", "--add-dir", folder, "go"]);
    for (folder, why) in [
        ("/:rw", "whole machine"),
        ("sub:rw", "in the workspace"),
        (".:rw", "in the workspace"),
        ("..:rw", "the workspace lies in it"),
        ("up:rw", "the workspace lies in it"),
        ("../.ssh:rw", "secrets"),
        ("/tmp:rw", "the workspace lies in it"),
        ("/proc:rw", "of the kernel"),
        ("../missing:rw", "cannot be opened"),
        ("in:rw", "not a folder"),
        (":rw", "is not added"),
        ("../odd:rw", "also the name of a folder"),
    ] {
        let ran = go(folder);
        assert!(ran.code != 0 && ran.stderr.contains(why), "{folder}: {}\n{}", ran.code, ran.stderr);
    }
    // By the real path, each once, and a folder in another one belongs to that.
    symlink(&lib, home.join("link")).expect("symlink");
    fs::create_dir_all(lib.join("deep/er")).expect("mkdir");
    let write = |path: PathBuf| call("write", &json!({ "path": path, "content": "x\n" }));
    let folders = ["../link:rw", "../lib:rw", "../lib/deep:rw", "../odd:rw:rw"];
    let flags: Vec<&str> = folders.iter().flat_map(|it| ["--add-dir", it]).chain(["--write"]).collect();
    let work = [write(lib.join("one")), write(lib.join("deep/er/two")), write(home.join("odd:rw/three"))];
    let (ran, document) = turn(&shell, &work, &flags);
    assert_eq!(ran.code, 0, "{}\n{}", ran.stdout, ran.stderr);
    assert_eq!(document["files_changed"].as_array().map(Vec::len), Some(3), "{document}");
    let id = id_of(&document);
    let rules = shell.run(["permissions", "list", "--json"]).stdout;
    assert!(!rules.contains("link"), "{rules}");
    assert_eq!(shell.run(["undo", &id]).code, 0);
    assert!(!lib.join("one").exists() && !lib.join("deep/er/two").exists() && !home.join("odd:rw/three").exists());
}

/// Broken builds: the resumed Session has lost the folder; one that is gone is passed over in silence, or made anew; what took
/// its place is written.
#[test]
fn a_resumed_session_goes_on_in_the_folder_and_says_when_it_is_gone() {
    let (shell, lib) = two();
    let worked = format!("{}:rw", lib.display());
    let write = |name: &str| call("write", &json!({ "path": lib.join(name), "content": "x\n" }));
    let (_, document) = turn(&shell, &[write("one")], &["--write", "--add-dir", &worked]);
    let id = id_of(&document);
    let (ran, _) = turn(&shell, &[write("two")], &["--write", "resume", &id]);
    assert!(ran.code == 0 && lib.join("two").exists(), "{}", ran.stderr);
    // Another Session does not have it.
    turn(&shell, &[write("three")], &["--write"]);
    assert!(!lib.join("three").exists());
    let forked = shell.run(["fork", &id, "--json"]).document();
    let fork = id_of(&forked);
    let (ran, _) = turn(&shell, &[write("four")], &["--write", "resume", &fork]);
    assert!(ran.code == 0 && lib.join("four").exists(), "{}", ran.stderr);

    let elsewhere = lib.with_file_name("moved");
    fs::rename(&lib, &elsewhere).expect("rename");
    let shown = resumed(&shell, &id, write("five"));
    assert!(shown.contains(&lib.display().to_string()) && shown.contains("it is gone"), "{shown}");
    assert!(!lib.exists() && !elsewhere.join("five").exists());
    symlink(&elsewhere, &lib).expect("symlink");
    let shown = resumed(&shell, &id, write("six"));
    assert!(shown.contains("a symlink now leads from there"), "{shown}");
    assert!(!elsewhere.join("six").exists());
    // An undo leaves what it cannot reach, and says so.
    let undone = shell.run(["undo", &id]);
    assert!(elsewhere.join("two").exists(), "{}{}", undone.stdout, undone.stderr);
}

/// Broken builds: a glob of the workspace covers files of the second folder; an absolute one covers nothing; a deny of a kind of
/// file holds in one of the two only.
#[test]
fn rules_name_files_of_the_second_folder_by_absolute_globs() {
    let (shell, lib) = two();
    let worked = format!("{}:rw", lib.display());
    let write = |path: &str| call("write", &json!({ "path": path, "content": "x\n" }));
    let src = lib.join("src/a.txt").display().to_string();
    let other = lib.join("other.txt").display().to_string();
    let absolute = format!("files({}/src/**)", lib.display());
    for (rule, of_src, of_other, of_app) in
        [("files(**)", false, false, true), (absolute.as_str(), true, false, false), ("files()", true, true, true)]
    {
        let work = [write(&src), write(&other), write("app.txt")];
        turn(&shell, &work, &["--mode", "ask", "--allow", rule, "--add-dir", &worked]);
        let made = [&src, &other].map(|it| Path::new(it).exists());
        assert_eq!(
            (made[0], made[1], shell.workspace().join("app.txt").exists()),
            (of_src, of_other, of_app),
            "{rule}"
        );
        for path in [src.clone(), other.clone(), shell.workspace().join("app.txt").display().to_string()] {
            let _ = fs::remove_file(path);
        }
    }
    assert_eq!(shell.run(["permissions", "add", "files(**/*.key)", "--deny"]).code, 0);
    let keys = [write(&lib.join("a.key").display().to_string()), write("b.key"), write(&src)];
    turn(&shell, &keys, &["--write", "--add-dir", &worked]);
    assert!(!lib.join("a.key").exists() && !shell.workspace().join("b.key").exists() && Path::new(&src).exists());
    let deny = format!("write({})", lib.display());
    assert_eq!(shell.run(["permissions", "add", &deny, "--deny"]).code, 0);
    turn(&shell, &[write(&other)], &["--write", "--add-dir", &worked]);
    assert!(!Path::new(&other).exists(), "a deny of the folder binds");
}

/// Broken build: an agent in a copy of the workspace writes to the second folder itself.
#[test]
fn an_agent_in_a_copy_reads_the_second_folder_and_changes_nothing_there() {
    for (isolation, is_written) in [("copy", false), ("shared", true)] {
        let (shell, lib) = two();
        let worked = format!("{}:rw", lib.display());
        let child = [
            call("read", &json!({ "path": lib.join("in") })),
            call("write", &json!({ "path": lib.join("by-agent"), "content": "x\n" })),
            bash("echo x > ../lib/by-command; echo x > own; true"),
            bash(&format!("echo x > {}", lib.join("by-command").display())),
        ];
        let script = json!([
            { "calls": [agents::spawn("Change the library", if isolation == "copy" { json!({ "isolation": "copy" }) } else { json!({}) })] },
            { "of": "Change the library", "calls": child },
            { "of": "Change the library", "text": "Read it." },
            { "text": "Done." },
        ]);
        let ran = agents::run(&shell, script, &["go", "--write", "--add-dir", &worked]);
        let logs = agents::logs(&shell);
        let told = agents::results(&logs[1]);
        assert!(told[0].contains("1\tone"), "{isolation}: the agent reads it: {told:#?}");
        for name in ["by-agent", "by-command"] {
            assert_eq!(lib.join(name).exists(), is_written, "{isolation}: {name}: {told:#?}\n{}", ran.stderr);
        }
        assert!(is_written || told[1].contains("outside the workspace"), "{told:#?}");
    }
}

/// Broken builds: instructions of the folder are read without trust, or never; other things of it are used.
#[tokio::test]
async fn instructions_of_the_second_folder_are_read_once_they_are_trusted() {
    let mut pixir = Pixir::new(
        vec![says("One."), says("Two."), says("Three.")],
        &[
            ("../lib/AGENTS.md", "Always say tea.\n"),
            ("../lib/.pixir/skills/brew/SKILL.md", "---\nname: brew\ndescription: brews\n---\nBrew.\n"),
        ],
    );
    pixir.does("/add-dir ../lib:rw<Enter>").await;
    pixir.screen.until("Instructions of an added folder").await;
    let screen = pixir.does("").await;
    assert!(screen.contains("Always say tea") && screen.contains("not used"), "the card says what is taken: {screen}");
    pixir.does("<Esc>").await;
    pixir.does("go<Enter>").await;
    let told = |pixir: &Pixir| {
        let all = pixir.log().into_iter().filter(|it| it["type"] == "context_changed");
        all.map(|it| it["data"]["documents"].to_string()).collect::<String>()
    };
    assert!(told(&pixir).contains("/lib") && !told(&pixir).contains("Always say tea"), "{}", told(&pixir));
    assert!(told(&pixir).contains("has not put its AGENTS.md in force"), "{}", told(&pixir));
    pixir.does("/trust<Enter>").await;
    pixir.screen.until("Instructions of an added folder").await;
    pixir.does("<Down><Enter>").await;
    pixir.does("<Esc>").await;
    pixir.does("again<Enter>").await;
    assert!(told(&pixir).contains("Always say tea") && !told(&pixir).contains("brew"), "{}", told(&pixir));
}

/// Broken builds: the folder is added to be read alone; nothing says what it means; `:rw` is not offered.
#[tokio::test]
async fn add_dir_completes_a_folder_and_says_what_working_on_it_means() {
    let write = calls("write", json!({ "path": "../lib/notes.txt", "content": "new\n" }));
    let mut pixir = Pixir::new(vec![write, says("Written.")], &[("../lib/notes.txt", "old\n")]);
    pixir.screen.keys("/add-dir ../li").await;
    pixir.screen.until("lib  ..").await;
    pixir.does("<Tab>").await;
    assert_eq!(pixir.screen.draft(), "/add-dir ../lib");
    pixir.screen.until("lib:rw  ..").await;
    pixir.does("<Down><Tab>").await;
    assert_eq!(pixir.screen.draft(), "/add-dir ../lib:rw");
    let screen = pixir.does("<Enter>").await;
    for part in ["diffs", ".git", "servers", "/permissions"] {
        assert!(screen.contains(part), "{part}: {screen}");
    }
    let screen = pixir.does("/add-dir ../lib<Enter>").await;
    assert!(screen.contains("already"), "{screen}");
    let screen = pixir.does("write it<Enter>").await;
    let lib = pixir.path("../lib/notes.txt").canonicalize().expect("there");
    assert!(screen.contains("lib/notes.txt") && text(&lib) == "old\n", "the change is asked about: {screen}");
    pixir.does("<A-y>").await;
    assert_eq!(text(&lib), "new\n");
    let screen = pixir.does("/diff<Enter>").await;
    assert!(screen.contains("lib/notes.txt"), "{screen}");
    pixir.does("<Esc>/undo<Enter>").await;
    pixir.does("<Enter>").await;
    assert_eq!(text(&lib), "old\n");
}
