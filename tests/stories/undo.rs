//! Undo, redo and restore of files.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use proptest::prelude::*;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::driver::{Pixir, also_calls, calls, says};
use crate::shell::{Ran, Shell, entries, figures, skip};
use crate::{random, wait};

/// Every file and symlink below a folder: bytes and permission bits, or the target.
pub(crate) fn tree_of(root: &Path) -> BTreeMap<String, (Vec<u8>, u32)> {
    let mut all = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder").flatten() {
            let path = entry.path();
            let metadata = fs::symlink_metadata(&path).expect("it is there");
            let name = path.strip_prefix(root).expect("below").display().to_string();
            if metadata.is_symlink() {
                let to = fs::read_link(&path).expect("a link").display().to_string();
                all.insert(name, (to.into_bytes(), 0));
            } else if metadata.is_dir() {
                folders.push(path);
            } else {
                all.insert(name, (fs::read(&path).expect("read"), metadata.permissions().mode() & 0o777));
            }
        }
    }
    all
}

/// A script of Turns; each runs one command and then answers.
pub(super) fn commands(turns: &[&str]) -> String {
    let steps: Vec<Value> = turns
        .iter()
        .flat_map(|command| {
            [
                json!({ "text": "I do it.", "calls": [ { "name": "bash", "args": { "command": command } } ] }),
                json!({ "text": "Done." }),
            ]
        })
        .collect();
    json!({ "steps": steps }).to_string()
}

/// Runs each command as a Turn of its own, all in one Session.
pub(super) fn turns(shell: &Shell, commands_of_turns: &[&str]) -> String {
    let mut id = String::new();
    for (n, command) in commands_of_turns.iter().enumerate() {
        let script = shell.aside(&format!("script{n}.json"), &commands(&[command]));
        let provider = format!("script:{}", script.display());
        let mut args = vec!["--provider", &provider, "--headless", "--json", "--write"];
        let resume = id.clone();
        if n > 0 {
            args.extend(["resume", &resume]);
        }
        args.push("do it");
        let ran = shell.run(args);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        id = ran.document()["session_id"].as_str().expect("an id").to_owned();
    }
    id
}

pub(super) fn done(ran: &Ran) -> Value {
    assert_eq!(ran.code, 0, "{}\n{}", ran.stdout, ran.stderr);
    ran.document()
}

/// Everything that a command can do to files.
const UPHEAVAL: &str = "rm gone.bin; mv a.sh moved.sh; chmod 600 mode.txt; printf 'x\\r\\ny\\r\\n' > crlf.txt; mkdir -p new/deep; \
     head -c 5000 /dev/urandom > new/deep/noise.bin; rm -r folder; echo now-a-file > folder; rm into; mkdir into; echo 1 > into/f; \
     ln -sf elsewhere link; printf '' > empty; echo more >> ünïcödé.txt; touch untouched.txt";

fn upheaval_files(shell: &Shell) {
    for (name, text) in [
        ("a.sh", "#!/bin/sh\necho hi\n"),
        ("mode.txt", "m\n"),
        ("crlf.txt", "a\r\nb\r\nno end"),
        ("folder/one.txt", "1"),
        ("folder/two/deep.txt", "2"),
        ("into", "was a file\n"),
        ("empty", "not empty\n"),
        ("ünïcödé.txt", "ü\n"),
        ("untouched.txt", "same\n"),
    ] {
        shell.write(name, text);
    }
    fs::write(shell.workspace().join("gone.bin"), [0, 159, 146, 150, 0, 255]).expect("write");
    fs::set_permissions(shell.workspace().join("a.sh"), fs::Permissions::from_mode(0o755)).expect("chmod");
    symlink("mode.txt", shell.workspace().join("link")).expect("symlink");
}

#[test]
fn undo_restores_every_file_and_redo_reverses_it() {
    let shell = Shell::new(&[]);
    upheaval_files(&shell);
    let mut before = tree_of(&shell.workspace());
    turns(&shell, &[UPHEAVAL]);
    let after = tree_of(&shell.workspace());
    assert_ne!(before, after);
    let plan = done(&shell.run(["undo", "--dry-run", "--json"]));
    assert!(plan["plan"]["files"].as_array().expect("files").len() >= 10, "{plan}");
    assert_eq!(tree_of(&shell.workspace()), after, "a dry run touches nothing");
    done(&shell.run(["undo", "--json"]));
    // Symlinks are left alone.
    before.insert("link".into(), after["link"].clone());
    assert_eq!(tree_of(&shell.workspace()), before);
    done(&shell.run(["redo", "--json"]));
    assert_eq!(tree_of(&shell.workspace()), after);
    done(&shell.run(["undo", "--json"]));
    assert_eq!(tree_of(&shell.workspace()), before);
    assert_eq!(shell.run(["undo", "--json"]).error()["code"], "NOTHING_TO_DO", "there is only one turn to undo");
}

#[test]
fn a_file_changed_since_is_left_merged_or_overwritten() {
    let text = |second: &str, ninth: &str| format!("1\n{second}\n3\n4\n5\n6\n7\n8\n{ninth}\n10\n");
    let shell = Shell::new(&[("a.txt", &text("two", "nine")), ("b.txt", "b\n")]);
    turns(&shell, &["sed -i s/two/TWO/ a.txt; echo B > b.txt"]);
    shell.write("a.txt", &text("TWO", "mine"));
    let plan = done(&shell.run(["undo", "--dry-run", "--json"]));
    let files = plan["plan"]["files"].as_array().expect("files");
    assert_eq!((files[0]["path"].as_str(), files[0]["standing"].as_str()), (Some("a.txt"), Some("changed_since")));
    assert!(files[0]["since"].as_str().expect("a diff").contains("+mine"), "{plan}");
    assert!(files[0]["merged"].as_str().expect("a diff").contains("+two"), "{plan}");

    let restored = done(&shell.run(["undo", "--json"]));
    assert_eq!(shell.read("a.txt"), text("TWO", "mine"), "later changes stay");
    assert_eq!(shell.read("b.txt"), "b\n", "the rest is set back");
    assert_eq!(restored["restored"]["left"][0]["path"], "a.txt");

    let merged = shell.run(["undo", "--json", "--turn", "1", "--changed-since", "merge"]);
    assert_eq!(merged.code, 0, "{}", merged.stderr);
    assert_eq!(shell.read("a.txt"), text("two", "mine"), "both are kept");
    shell.write("a.txt", &text("both", "mine"));
    let refused = shell.run(["undo", "--json", "--turn", "1", "--changed-since", "merge"]);
    assert_eq!(refused.error()["code"], "FILE_CHANGED", "the same place cannot be merged");
    assert_eq!(shell.read("a.txt"), text("both", "mine"));
    done(&shell.run(["undo", "--json", "--turn", "1", "--changed-since", "overwrite"]));
    assert_eq!(shell.read("a.txt"), text("two", "nine"));
    assert_eq!(shell.run(["undo", "--changed-since", "clobber", "--json"]).error()["code"], "INVALID_ARGS");
}

#[test]
fn undo_neither_needs_nor_touches_a_git_repository() {
    let shell = Shell::new(&[("a.txt", "a\n")]);
    let git = |args: &[&str]| {
        let ran = std::process::Command::new("git")
            .args(args)
            .current_dir(shell.workspace())
            .env("HOME", shell.home())
            .output();
        assert!(ran.expect("git").status.success());
    };
    git(&["init", "-q"]);
    git(&["add", "."]);
    let index = tree_of(&shell.workspace().join(".git"));
    turns(&shell, &["echo changed > a.txt"]);
    done(&shell.run(["undo", "--json"]));
    assert_eq!(shell.read("a.txt"), "a\n");
    assert_eq!(tree_of(&shell.workspace().join(".git")), index);
}

#[tokio::test]
async fn undo_preview_shows_conflicting_changes() {
    let text = |second: &str, ninth: &str| format!("1\n{second}\n3\n4\n5\n6\n7\n8\n{ninth}\n10\n");
    let step = also_calls(
        calls("write", json!({ "path": "new.txt", "content": "new\n" })),
        "edit",
        json!({ "path": "a.txt", "old_text": "two", "new_text": "TWO" }),
    );
    let mut pixir =
        Pixir::sized(vec![step, says("Done."), says("I see.")], &[("a.txt", &text("two", "nine"))], 100, 34);
    pixir.does("<S-Tab>").await;
    pixir.does("go<Enter>").await;
    fs::write(pixir.path("a.txt"), text("TWO", "mine")).expect("write");
    let screen = pixir.does("/undo<Enter>").await;
    insta::assert_snapshot!("undo_of_a_file_that_was_changed_since", screen);
    let screen = pixir.does("m").await;
    assert!(screen.contains("merged"), "{screen}");
    pixir.does("<Enter>").await;
    assert_eq!(pixir.file("a.txt"), text("two", "mine"));
    assert!(!pixir.path("new.txt").exists());
    let screen = pixir.screen.screen();
    assert!(screen.contains("undid turn 1"), "{screen}");
    // The next request tells the model.
    pixir.does("what now?<Enter>").await;
    assert!(pixir.kinds().contains(&"files_restored".to_owned()));
    pixir.does("/redo<Enter>").await;
    pixir.does("<Enter>").await;
    assert_eq!((pixir.file("a.txt"), pixir.file("new.txt")), (text("TWO", "mine"), "new\n".into()));
}

/// Broken build: one that draws the diff of a restore in one colour.
#[tokio::test]
async fn the_preview_of_an_undo_has_the_colours_of_the_language() {
    let edit =
        calls("edit", json!({ "path": "slug.py", "old_text": "return text", "new_text": "return text.lower()" }));
    let files = [("slug.py", "def slug(text):\n    return text\n")];
    let mut pixir = Pixir::sized(vec![edit, says("Done.")], &files, 80, 24);
    pixir.does("/mode auto<Enter>").await;
    pixir.does("lower<Enter>").await;
    pixir.does("/undo<Enter>").await;
    let coloured = pixir.screen.coloured();
    let line = coloured.lines().find(|line| line.contains("(text):")).expect("the first line of the file");
    // The colour in front of a word of that line.
    let colour_of = |word: &str| {
        let before = line.split_once(word).map(|it| it.0).unwrap_or_default();
        before.rsplit_once("\u{1b}[").map(|it| it.1).unwrap_or_default().split('m').next().unwrap_or_default()
    };
    assert_ne!(colour_of("def"), "", "{line}");
    assert_ne!(colour_of("def"), colour_of("(text):"), "{line}");
}

#[tokio::test]
async fn an_outdated_restore_preview_is_not_applied() {
    let mut pixir = Pixir::new(
        vec![calls("write", json!({ "path": "a.txt", "content": "x\n" })), says("Done.")],
        &[("a.txt", "a\n")],
    );
    pixir.does("<S-Tab>").await;
    pixir.does("go<Enter>").await;
    pixir.does("/undo<Enter>").await;
    fs::write(pixir.path("a.txt"), "saved in an editor meanwhile\n").expect("write");
    let screen = pixir.does("<Enter>").await;
    assert!(screen.contains("changed since"), "the new plan is shown:\n{screen}");
    assert_eq!(pixir.file("a.txt"), "saved in an editor meanwhile\n");
}

/// A change that a Turn makes to a file; the bytes include line ends of every kind, binary content and empty files.
fn arbitrary_command() -> impl Strategy<Value = String> {
    let name = prop::sample::select(vec!["a", "b.txt", "d/c", "d/e/f", "g h"]);
    let bytes = prop::sample::select(vec!["", "x\\n", "x\\r\\ny\\r\\n", "\\000\\377bin", "long line without end"]);
    let one = (0..6_u8, name.clone(), name, bytes).prop_map(|(kind, a, b, bytes)| match kind {
        0 | 1 => format!("mkdir -p \"$(dirname \"{a}\")\" 2>/dev/null; printf '{bytes}' > \"{a}\" 2>/dev/null"),
        2 => format!("rm -rf \"{a}\""),
        3 => format!("mkdir -p \"$(dirname \"{b}\")\" 2>/dev/null; mv -f \"{a}\" \"{b}\" 2>/dev/null"),
        4 => format!("chmod 755 \"{a}\" 2>/dev/null"),
        _ => format!("printf '{bytes}' >> \"{a}\" 2>/dev/null"),
    });
    prop::collection::vec(one, 1..4).prop_map(|all| format!("{}; true", all.join("; ")))
}

proptest! {
    #![proptest_config(random::config(24))]

    #[test]
    fn undo_of_every_turn_restores_the_start_and_redo_the_end(turn_commands in prop::collection::vec(arbitrary_command(), 1..4)) {
        let shell = Shell::new(&[("a", "start\n"), ("d/c", "c\r\n")]);
        let mut states = vec![tree_of(&shell.workspace())];
        let mut id = String::new();
        for (n, command) in turn_commands.iter().enumerate() {
            let script = shell.aside(&format!("s{n}.json"), &commands(&[command]));
            let provider = format!("script:{}", script.display());
            let mut args = vec!["--provider", &provider, "--headless", "--json", "--write"];
            let resume = id.clone();
            if n > 0 { args.extend(["resume", &resume]); }
            args.push("do it");
            id = done(&shell.run(args))["session_id"].as_str().expect("an id").to_owned();
            states.push(tree_of(&shell.workspace()));
        }
        // Undo skips Turns that changed nothing.
        states.dedup();
        for state in states.iter().rev().skip(1) {
            done(&shell.run(["undo", "--json"]));
            prop_assert_eq!(&tree_of(&shell.workspace()), state, "commands: {:?}", turn_commands);
        }
        for state in states.iter().skip(1) {
            done(&shell.run(["redo", "--json"]));
            prop_assert_eq!(&tree_of(&shell.workspace()), state, "commands: {:?}", turn_commands);
        }
    }
}

#[test]
fn a_formerly_ignored_file_is_not_taken_for_new() {
    let shell = Shell::new(&[(".gitignore", "data.db\nbuild/\n"), ("data.db", "precious"), ("build/out.o", "object")]);
    turns(&shell, &["sed -i /data/d .gitignore", "mv build out; cp data.db copy.db; ln copy.db hard.db"]);
    let plan = done(&shell.run(["undo", "--dry-run", "--json"]));
    let standing = |path: &str| {
        let files = plan["plan"]["files"].as_array().expect("files");
        files.iter().find(|f| f["path"] == path).unwrap_or_else(|| panic!("{path}: {plan}"))["standing"].clone()
    };
    assert_eq!((standing("out/out.o"), standing("copy.db")), (json!("impossible"), json!("ready")));
    done(&shell.run(["undo", "--json"]));
    assert_eq!(shell.read("out/out.o"), "object");
    assert!(!shell.workspace().join("copy.db").exists() && !shell.workspace().join("hard.db").exists());
    done(&shell.run(["undo", "--json", "--turn", "1"]));
    assert_eq!((shell.read("data.db"), shell.read(".gitignore")), ("precious".into(), "data.db\nbuild/\n".into()));
}

#[test]
fn an_interrupted_command_can_be_undone() {
    let files: Vec<(String, String)> = (0..700).map(|n| (format!("src/f{n}.txt"), format!("{n}\n"))).collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    let shell = Shell::new(&files);
    let before = tree_of(&shell.workspace());
    let script = shell.aside("s.json", &commands(&["rm -rf src; echo cut > new.txt; sleep 60"]));
    let provider = format!("script:{}", script.display());
    let mut child = shell.command(["--provider", &provider, "--headless", "--json", "--write", "do it"]);
    let child = child.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
    wait::until("it has done what it does", || shell.workspace().join("new.txt").exists());
    let id = i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("a pid");
    kill_process(id, Signal::INT).expect("the signal is sent");
    let ended = child.wait_with_output().expect("it ends");
    assert_eq!(ended.status.code(), Some(130));
    assert!(!shell.workspace().join("src").exists());
    done(&shell.run(["undo", "--json"]));
    assert_eq!(tree_of(&shell.workspace()), before);
}

#[test]
fn undo_keeps_user_changes_between_turns() {
    let shell = Shell::new(&[]);
    let lines = |all: &[&str]| all.iter().map(|line| format!("{line}\n")).collect::<String>();
    let id = turns(&shell, &["printf 'a\\nb\\nc\\nd\\ne\\nf\\ng\\n' > f"]);
    shell.write("f", &lines(&["mine", "a", "b", "c", "d", "e", "f", "g"]));
    let script = shell.aside("more.json", &commands(&["sed -i s/g/G/ f"]));
    let provider = format!("script:{}", script.display());
    done(&shell.run(["--provider", &provider, "--headless", "--json", "--write", "resume", &id, "more"]));
    done(&shell.run(["undo", "--json"]));
    assert_eq!(shell.read("f"), lines(&["mine", "a", "b", "c", "d", "e", "f", "g"]));
    // The first Turn made the file, which has changed since.
    let plan = done(&shell.run(["undo", "--dry-run", "--json"]));
    assert_eq!(plan["plan"]["files"][0]["standing"], "changed_since", "{plan}");
    assert_eq!(shell.run(["undo", "--json"]).error()["code"], "FILE_CHANGED");
    assert!(shell.read("f").starts_with("mine"));
}

#[test]
fn a_partly_undone_turn_is_undone_next() {
    let shell = Shell::new(&[("x", "x\n"), ("a", "a\n"), ("b", "b\n")]);
    turns(&shell, &["echo X > x", "echo A > a; echo B > b"]);
    shell.write("b", "mine\n");
    done(&shell.run(["undo", "--json"]));
    assert_eq!((shell.read("a"), shell.read("b"), shell.read("x")), ("a\n".into(), "mine\n".into(), "X\n".into()));
    done(&shell.run(["undo", "--json", "--changed-since", "overwrite"]));
    assert_eq!((shell.read("b"), shell.read("x")), ("b\n".into(), "X\n".into()), "the same turn");
    // A file that the user restored by hand does not block undo of the Turn before.
    done(&shell.run(["undo", "--json"]));
    assert_eq!(shell.read("x"), "x\n");
    let left = shell.run(["undo", "--json"]);
    assert_eq!(left.error()["code"], "NOTHING_TO_DO");
    assert!(left.error()["error"]["message"].as_str().expect("text").contains("already undone"), "{}", left.stderr);
    assert_eq!(shell.run(["undo", "--json", "--turn", "99"]).error()["code"], "NOT_FOUND");
}

#[test]
fn undo_keeps_earlier_folders_and_modes() {
    let shell = Shell::new(&[("deep/down/keep.txt", "k\n")]);
    fs::create_dir_all(shell.workspace().join("empty/one")).expect("mkdir");
    turns(
        &shell,
        &[
            "echo 1 > empty/one/f; mkdir -p new/a/b; echo 2 > new/a/b/g; echo 3 > deep/down/h; chmod 755 deep/down/keep.txt",
        ],
    );
    fs::set_permissions(shell.workspace().join("deep/down/keep.txt"), fs::Permissions::from_mode(0o700))
        .expect("chmod");
    done(&shell.run(["undo", "--json"]));
    assert!(shell.workspace().join("empty/one").is_dir(), "it was empty before");
    assert!(!shell.workspace().join("new").exists(), "it came with the turn");
    assert_eq!(shell.read("deep/down/keep.txt"), "k\n");
    assert_eq!(tree_of(&shell.workspace())["deep/down/keep.txt"].1, 0o700, "set by hand since");

    fs::rename(shell.workspace().join("deep"), shell.workspace().join("moved")).expect("rename");
    turns(&shell, &["echo 9 > moved/down/n"]);
    fs::rename(shell.workspace().join("moved"), shell.workspace().join("other")).expect("rename");
    symlink("other", shell.workspace().join("moved")).expect("symlink");
    assert_eq!(shell.run(["undo", "--json"]).error()["code"], "FILE_CHANGED", "not through a symlink");
    assert_eq!(shell.read("other/down/n"), "9\n");
}

#[test]
fn undo_does_not_lose_files_a_command_moved_or_unignored() {
    // A command moves a folder and puts a symlink in its place.
    let shell = Shell::new(&[("src/a", "a\n"), ("src/b", "b\n")]);
    turns(&shell, &["mv src lib && ln -s lib src"]);
    let ran = shell.run(["undo", "--json"]);
    assert_eq!((ran.code, &ran.error()["code"]), (1, &json!("FILE_CHANGED")), "{}", ran.stdout);
    assert_eq!((shell.read("lib/a"), shell.read("lib/b")), ("a\n".into(), "b\n".into()));
    fs::remove_file(shell.workspace().join("src")).expect("remove");
    done(&shell.run(["undo", "--json"]));
    assert_eq!((shell.read("src/a"), shell.workspace().join("lib").exists()), ("a\n".into(), false));

    // An ignored file that is no longer ignored, and is written again.
    let shell = Shell::new(&[(".gitignore", "local.env\n"), ("local.env", "secret\n"), ("target.txt", "t\n")]);
    symlink("target.txt", shell.workspace().join("link")).expect("symlink");
    turns(&shell, &["rm .gitignore; sed -i s/secret/public/ local.env", "sed -i s/t/T/ link"]);
    done(&shell.run(["undo", "--json", "--turn", "1"]));
    assert_eq!((shell.read("local.env"), shell.read(".gitignore")), ("public\n".into(), "local.env\n".into()));
    shell.run(["undo", "--json", "--turn", "2"]);
    assert_eq!(shell.read("link"), "T\n");
}

#[test]
fn a_file_that_cannot_be_restored_does_not_block_others() {
    let shell = Shell::new(&[("x", "x\n")]);
    fs::write(shell.workspace().join("big"), vec![b'z'; 5 << 20]).expect("write");
    turns(&shell, &["echo X > x", "echo more >> big; echo b > b"]);
    let first = done(&shell.run(["undo", "--json"]));
    assert_eq!(first["restored"]["left"][0]["path"], "big");
    assert!(!shell.workspace().join("b").exists());
    done(&shell.run(["undo", "--json"]));
    assert_eq!(shell.read("x"), "x\n");

    // A refused redo can be repeated.
    shell.write("x", "mine\n");
    assert_eq!(shell.run(["redo", "--json"]).error()["code"], "FILE_CHANGED");
    shell.write("x", "x\n");
    done(&shell.run(["redo", "--json"]));
    assert_eq!(shell.read("x"), "X\n");
}

#[test]
fn a_file_rewritten_many_times_can_be_undone() {
    let shell = Shell::new(&[]);
    fs::write(shell.workspace().join("big"), vec![b'z'; 3 << 20]).expect("write");
    let steps: Vec<Value> = (0..100)
        .map(|n| json!({ "text": "", "calls": [ { "name": "bash", "args": { "command": format!("echo {n} >> big") } } ] }))
        .chain([json!({ "text": "Done." })])
        .collect();
    let script = shell.aside("s.json", &json!({ "steps": steps }).to_string());
    let provider = format!("script:{}", script.display());
    done(&shell.run(["--provider", &provider, "--headless", "--json", "--write", "do it"]));
    let log = entries(&shell.logs()[0]);
    let changes = log.iter().filter(|e| e["type"] == "tool_result").map(|e| &e["data"]["changes"][0]);
    assert!(changes.clone().count() == 100 && changes.clone().all(|change| change["before_blob"].is_string()));
    done(&shell.run(["undo", "--json"]));
    assert_eq!(fs::metadata(shell.workspace().join("big")).expect("it is there").len(), 3 << 20);
}

#[tokio::test]
async fn undo_does_not_follow_a_link_out_of_the_workspace() {
    let mut pixir = Pixir::new(
        vec![calls("write", json!({"path": "b.txt", "content": "new"})), says("Done.")],
        &[("b.txt", "old")],
    );
    pixir.does("/mode auto<Enter>").await;
    pixir.does("go<Enter>").await;
    assert_eq!(pixir.file("b.txt"), "new");
    let outside = pixir.path("../outside.txt");
    fs::write(&outside, "new").expect("write");
    fs::remove_file(pixir.path("b.txt")).expect("remove");
    std::os::unix::fs::symlink(&outside, pixir.path("b.txt")).expect("link");
    pixir.does("/undo<Enter>").await;
    pixir.does("<Enter>").await;
    assert_eq!(fs::read_to_string(&outside).expect("read"), "new", "{}", pixir.screen.screen());
}

/// A temporary file that a killed write, undo or redo has left is removed at the next open, and no file of the user is.
///
/// Broken builds: `Workspace::replace` notes nothing; `remove_left` compares no name.
#[test]
fn a_temporary_file_of_a_killed_restore_is_removed_at_the_next_open() {
    let tried =
        Command::new("strace").args(["-f", "-o", "/dev/null", "-e", "inject=getpid:error=EIO", "/bin/true"]).output();
    if !tried.is_ok_and(|ran| ran.status.success()) {
        return skip("strace cannot inject faults");
    }
    let temporary = |shell: &Shell| -> Vec<String> {
        tree_of(&shell.workspace())
            .into_keys()
            .filter(|name| name.contains(".pixir-") && name.ends_with(".tmp"))
            .collect()
    };
    let (mut killed, mut left) = (0, 0);
    // strace counts each system call by itself, and the sandbox tries `renameat` first.
    let both = ["fsync,rename,renameat", "renameat2"];
    for (act, calls) in ["write", "undo", "redo"].into_iter().flat_map(|act| both.map(|calls| (act, calls))) {
        let shell = Shell::new(&[("sub/a.txt", "alpha\n"), ("b.txt", "beta\n")]);
        let change = commands(&["echo omega > sub/a.txt; echo more > b.txt"]);
        let script = shell.aside("s.json", &change);
        let provider = format!("script:{}", script.display());
        assert_eq!(shell.run(["--provider", &provider, "--headless", "--json", "--write", "do it"]).code, 0);
        if act == "redo" {
            assert_eq!(shell.run(["undo"]).code, 0);
        }
        // A file of the user with such a name, and one with the name of another build.
        let own = [".pixir-0123456789abcdef0123456789abcdef.tmp", "sub/.pixir-mine.tmp"];
        own.iter().for_each(|name| drop(shell.write(name, "mine")));
        for at in 1..=12 {
            let args: &[&str] = match act {
                "write" => &["tools", "run", "write", r#"{"path":"sub/a.txt","content":"new"}"#, "--write"],
                act => &[act],
            };
            let plain = shell.command(args);
            let mut command = Command::new("strace");
            let (trace, inject) = (format!("trace={calls}"), format!("inject={calls}:signal=KILL:when={at}"));
            command.args(["-f", "-qq", "-o", "/dev/null", "-e", &trace, "-e", &inject]);
            command.arg(plain.get_program()).args(plain.get_args()).env_clear();
            command.envs(plain.get_envs().filter_map(|(k, v)| Some((k, v?)))).current_dir(shell.workspace());
            let ran = command.stdin(Stdio::null()).output().expect("strace runs");
            killed += u32::from(!ran.status.success());
            left += temporary(&shell).len() - own.len();
            assert_eq!(shell.run(["sessions", "list"]).code, 0);
            assert_eq!(temporary(&shell), own.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>(), "{act}, {at}");
            if ran.status.success() {
                break;
            }
        }
    }
    assert!(left > 0, "some kills leave a temporary file");
    figures(&format!("QR5: {killed} kills tried, {left} left a temporary file, 0 after the next open"));
}

/// A file of the Turn that another program has put back is named beside those that the undo restores.
///
/// Broken build (ce783d9e): after `git checkout a.txt`, the preview of the undo leaves `a.txt` out.
#[test]
fn a_file_that_was_put_back_meanwhile_is_named() {
    let shell = Shell::new(&[("a.txt", "alpha\n"), ("b.txt", "beta\n")]);
    let id = turns(&shell, &["echo x > a.txt; echo x > b.txt; echo x > c.txt"]);
    shell.write("a.txt", "alpha\n");
    let shown = shell.run(["undo", &id, "--dry-run"]);
    assert!(shown.stdout.contains("a.txt: is as it was already"), "{shown:?}");
    assert!(
        shown.stdout.contains("b.txt: would be restored") && shown.stdout.contains("c.txt: would be deleted"),
        "{shown:?}"
    );
    assert_eq!(shell.run(["undo", &id]).code, 0);
    assert_eq!((shell.read("a.txt"), shell.read("b.txt")), ("alpha\n".to_owned(), "beta\n".to_owned()));
}

/// A file whose name is no UTF-8 is told of only when it has changed.
///
/// Broken build (ce783d9e): a file that was made right before the command counts as changed by it.
#[test]
fn a_name_that_is_no_utf8_is_told_of_only_where_it_changed() {
    use std::os::unix::ffi::OsStrExt as _;
    let shell = Shell::new(&[]);
    let file = shell.workspace().join(std::ffi::OsStr::from_bytes(b"latin\xe9.txt"));
    for (command, is_told) in
        [("true", false), ("echo x > other.txt", false), ("echo y >> latin*", true), ("rm latin*", true)]
    {
        fs::write(&file, "bytes\n").expect("write");
        let script = shell.aside("one.json", &commands(&[command]));
        let provider = format!("script:{}", script.display());
        let ran = shell.run(["--headless", "--write", "--format", "jsonl", "--provider", &provider, "go"]);
        let told = ran.stdout.contains("whose name is not valid UTF-8");
        assert_eq!(told, is_told, "{command}: {ran:?}");
    }
}
