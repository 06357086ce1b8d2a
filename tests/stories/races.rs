//! Paths that another program exchanges while pixir uses them: nothing outside the workspace is read or written, and no
//! protected file is written.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::{Value, json};

use super::protected::flat;
use super::readers::{called, files, git, repository};
use crate::driver::{Pixir, calls, says};
use crate::shell::{Shell, figures};
use crate::tier;

/// The text of files outside the workspace, and the start of their names.
const OUTSIDE: &str = "canary-OUTSIDE";
/// Printed by programs that must not run.
const PWNED: &str = "canary-PWNED";
/// The most calls of one Session.
const CALLS_OF_A_SESSION: usize = 2_000;

/// Exchanges two paths again and again until it is dropped.
struct Exchanger {
    stop: &'static AtomicBool,
    count: &'static AtomicU64,
    threads: Vec<thread::JoinHandle<()>>,
}

impl Exchanger {
    fn of(pairs: Vec<(PathBuf, PathBuf)>) -> Exchanger {
        Exchanger::once(|| true, pairs)
    }

    /// Begins once this holds.
    fn once(holds: impl Fn() -> bool + Send + 'static, pairs: Vec<(PathBuf, PathBuf)>) -> Exchanger {
        // They outlive the threads: the process of the tests ends soon.
        let (stop, count) = (&*Box::leak(Box::default()), &*Box::leak(Box::new(AtomicU64::new(0))));
        let exchange = move || {
            while !holds() && !AtomicBool::load(stop, Ordering::Relaxed) {
                thread::yield_now();
            }
            while !AtomicBool::load(stop, Ordering::Relaxed) {
                for (one, other) in &pairs {
                    // It fails while a tool writes one of them anew.
                    let exchanged = renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).is_ok();
                    AtomicU64::fetch_add(count, u64::from(exchanged), Ordering::Relaxed);
                }
                thread::yield_now();
            }
        };
        Exchanger { stop, count, threads: vec![thread::spawn(exchange)] }
    }

    fn ended(mut self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            thread.join().expect("it only renames");
        }
        self.count.load(Ordering::Relaxed)
    }
}

/// A workspace whose folder `d`, file `f` and folder `r` with a repository are exchanged with what leads outside.
fn workspace() -> (Shell, Vec<(PathBuf, PathBuf)>) {
    let shell = Shell::new(&[("d/s", "inside\n"), ("d/n", "inside\n"), ("f", "inside\n"), ("bin/x", "")]);
    let root = shell.workspace();
    let outside = root.parent().expect("a parent").join("outside");
    fs::create_dir_all(&outside).expect("mkdir");
    for name in ["s", "n", OUTSIDE] {
        fs::write(outside.join(name), format!("{OUTSIDE}\n")).expect("write");
    }
    symlink(&outside, root.join("d2")).expect("a symlink");
    symlink(outside.join("s"), root.join("f2")).expect("a symlink");
    // A repository whose settings are harmless half of the time.
    repository(&root.join("r"));
    fs::copy(root.join("r/.git/config"), root.join("r/.git/config2")).expect("copy");
    let marker = root.join("MARKER");
    let run = format!("touch {}; echo {PWNED} >&2; false", marker.display());
    git(&root.join("r"), &["config", "core.fsmonitor", &run]);
    // Programs of the workspace with the names of others, first on the PATH.
    for name in ["cat", "ls", "git", "head", "bash"] {
        let path = root.join("bin").join(name);
        fs::write(&path, format!("#!/bin/sh\ntouch {}\necho {PWNED}\n", marker.display())).expect("write");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("chmod");
    }
    let pair = |one: &str, other: &str| (root.join(one), root.join(other));
    let pairs = vec![pair("d", "d2"), pair("f", "f2"), pair("r/.git/config", "r/.git/config2")];
    (shell, pairs)
}

/// What the user has outside the workspace.
fn outside_of(shell: &Shell) -> impl PartialEq + std::fmt::Debug + use<> {
    files(&shell.workspace().parent().expect("a parent").join("outside"))
}

/// Makes calls while paths are exchanged; returns how many were made, and what is wrong.
fn race(calls: &[(&str, Value)], count: usize, args: &[&str]) -> (usize, u64, Vec<String>) {
    let (mut made, mut swaps, mut wrong) = (0, 0, Vec::new());
    let mut verdicts = std::collections::BTreeMap::new();
    while made < count {
        let (shell, pairs) = workspace();
        let before = outside_of(&shell);
        let bin = shell.workspace().join("bin");
        let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
        let some: Vec<(&str, Value)> =
            calls.iter().cycle().skip(made % calls.len()).take(CALLS_OF_A_SESSION.min(count - made)).cloned().collect();
        let exchanger = Exchanger::of(pairs);
        let ran = called(&shell, &some, args, &[("PATH", path)]);
        swaps += exchanger.ended();
        for ((name, args), (verdict, output)) in some.iter().zip(&ran) {
            *verdicts.entry(verdict.clone()).or_insert(0) += 1;
            if output.contains(OUTSIDE) || output.contains(PWNED) {
                wrong.push(format!("{name} {args} ({verdict}): {output}"));
            }
        }
        if outside_of(&shell) != before {
            wrong.push("something outside has changed".into());
        }
        if Path::exists(&shell.workspace().join("MARKER")) {
            wrong.push("a program of the workspace ran".into());
        }
        made += some.len();
    }
    figures(&format!("races {args:?}: {made} calls, {swaps} exchanges, {verdicts:?}, {} outside", wrong.len()));
    (made, swaps, wrong)
}

/// Broken build: the file tools look at a path first and open it by its name later.
#[test]
fn no_file_tool_leaves_the_workspace_while_paths_are_exchanged() {
    let reading = [
        ("read", json!({ "path": "d/s" })),
        ("read", json!({ "path": "f" })),
        ("ls", json!({ "path": "d" })),
        ("grep", json!({ "pattern": "a", "path": "d" })),
        ("grep", json!({ "pattern": "OUTSIDE" })),
        ("find", json!({ "pattern": "**/*", "path": "d" })),
    ];
    let writing = [
        ("write", json!({ "path": "d/n", "content": "x\n" })),
        ("write", json!({ "path": "d/made/deep", "content": "x\n" })),
        ("write", json!({ "path": "f", "content": "inside\n" })),
        ("read", json!({ "path": "d/s" })),
        ("edit", json!({ "path": "d/s", "old_text": "i", "new_text": "i" , "replace_all": true})),
        ("edit", json!({ "path": "d/s", "old_text": "inside", "new_text": "inside." })),
        ("edit", json!({ "path": "d/s", "old_text": "inside.", "new_text": "inside" })),
    ];
    let count = tier::cases("no_file_tool_leaves") / 2;
    let (mut made, mut swaps, mut wrong) = (0, 0, Vec::new());
    for tier in ["ll", "ns"] {
        for (calls, flags) in [(&reading[..], &["--mode", "read-only"][..]), (&writing, &["--write"])] {
            let raced = race(calls, count, &[flags, &["--sandbox", tier]].concat());
            made += raced.0;
            swaps += raced.1;
            wrong.extend(raced.2);
        }
    }
    figures(&format!("QS5: file tools: {made} calls, {swaps} exchanges, {} outside", wrong.len()));
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(swaps > 100, "nothing was exchanged");
}

/// The text of protected files, and of ordinary ones with the same names.
const SETTINGS: &str = "[core]\n\tbare = false\n";

/// Folders with protected files, below the workspace.
const PROTECTED: [&str; 5] = [".git", ".git/hooks", "sub/.git", ".vscode", ".claude"];

/// A workspace with protected files, and ordinary folders that are exchanged for symlinks to them or for the folders themselves.
fn with_protected_files() -> (Shell, Vec<(PathBuf, PathBuf)>) {
    let shell = Shell::new(&[("src/a", "a\n")]);
    let root = shell.workspace();
    repository(&root.join("sub"));
    git(&root, &["init", "-q", "."]);
    for folder in PROTECTED.iter().chain(&["one", "two", "sub/three", "four", "five", "six"]) {
        fs::create_dir_all(root.join(folder)).expect("mkdir");
        for name in ["config", "other"] {
            fs::write(root.join(folder).join(name), SETTINGS).expect("write");
        }
    }
    for (link, to) in [("to-git", ".git"), ("to-vscode", ".vscode"), ("sub/to-git", ".git")] {
        symlink(to, root.join(link)).expect("a symlink");
    }
    let pair = |one: &str, other: &str| (root.join(one), root.join(other));
    let pairs = vec![
        pair("one", "to-git"),
        pair("two", "to-vscode"),
        pair("sub/three", "sub/to-git"),
        pair("four", ".claude"),
        pair("five", ".git/hooks"),
        pair("six", "sub/.git"),
    ];
    (shell, pairs)
}

/// What is in a folder, by its handle: its name may have changed.
fn held(folder: &fs::File) -> impl PartialEq + std::fmt::Debug + use<> {
    use std::os::fd::AsRawFd as _;
    let at = PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd()));
    let files = fs::read_dir(at).expect("a folder").flatten().filter(|it| it.metadata().is_ok_and(|it| it.is_file()));
    files.map(|it| (it.file_name(), fs::read(it.path()).expect("read"))).collect::<std::collections::BTreeMap<_, _>>()
}

/// Calls of every tool that writes, each on a file of one of these folders.
fn writes(folders: &[&str]) -> Vec<(&'static str, Value)> {
    let of = |folder: &&str| {
        let patch = |body: &str| format!("*** Begin Patch\n{body}\n*** End Patch\n").replace("FOLDER", folder);
        let update = patch("*** Update File: FOLDER/config\n@@\n-\tbare = false\n+\tfsmonitor = ./evil");
        let add = patch("*** Add File: FOLDER/made\n+x");
        let delete = patch("*** Delete File: FOLDER/other");
        let and_move =
            patch("*** Update File: FOLDER/config\n*** Move to: FOLDER/moved\n@@\n-\tbare = false\n+\tbare = true");
        let run =
            |line: &str, stdin: &str| ("run", json!({ "command": line.replace("FOLDER", folder), "stdin": stdin }));
        let config = format!("{folder}/config");
        vec![
            ("write", json!({ "path": config, "content": SETTINGS })),
            ("write", json!({ "path": format!("{folder}/deep/er/x"), "content": "x\n" })),
            ("edit", json!({ "path": config, "old_text": "bare = false", "new_text": "fsmonitor = ./evil" })),
            ("apply_patch", json!({ "patch": update })),
            ("write", json!({ "path": config, "content": SETTINGS })),
            ("write", json!({ "path": format!("{folder}/other"), "content": SETTINGS })),
            ("apply_patch", json!({ "patch": delete })),
            ("apply_patch", json!({ "patch": add })),
            ("apply_patch", json!({ "patch": and_move })),
            run("write FOLDER/config", SETTINGS),
            run("edit FOLDER/config 'bare = false' 'fsmonitor = ./evil'", ""),
            run("write -a FOLDER/config more", ""),
            run("apply_patch", &add),
            run("cat src/a | write FOLDER/config", ""),
        ]
    };
    folders.iter().flat_map(of).collect()
}

/// A job exchanges a folder for a symlink to a protected one, or the two folders themselves, while the file tools write. No user
/// can be asked, so not one protected file may change.
///
/// Broken builds: protection is judged by the path, and the write goes by another; `hold` follows symlinks; a folder is protected
/// by its name alone.
#[test]
fn no_file_tool_writes_a_protected_file_while_folders_are_exchanged() {
    let calls = writes(&["one", "two", "sub/three", "four", "five", "six"]);
    let count = tier::cases("no_file_tool_writes_a_protected");
    let (mut made, mut swaps, mut wrong) = (0, 0, Vec::new());
    let mut verdicts = std::collections::BTreeMap::new();
    while made < count {
        let (shell, pairs) = with_protected_files();
        let root = shell.workspace();
        let folders = PROTECTED.map(|it| fs::File::open(root.join(it)).expect("a folder"));
        let before = folders.each_ref().map(held);
        let some = calls.iter().cycle().skip(made % calls.len()).take(CALLS_OF_A_SESSION.min(count - made)).cloned();
        // pixir opens the workspace before a job can run in it.
        let some: Vec<(&str, Value)> =
            [("write", json!({ "path": "ready", "content": "x\n" }))].into_iter().chain(some).collect();
        let exchanger = Exchanger::once(move || root.join("ready").exists(), pairs);
        let ran = called(&shell, &some, &["--write", "--no-input", "--toolset", "both"], &[]);
        swaps += exchanger.ended();
        for (verdict, output) in ran {
            let what = if output.contains("nothing was written") { "refused at the write".to_owned() } else { verdict };
            *verdicts.entry(what).or_insert(0) += 1;
        }
        for ((folder, before), now) in PROTECTED.iter().zip(&before).zip(&folders.each_ref().map(held)) {
            if before != now {
                wrong.push(format!("{folder}: {before:?} became {now:?}"));
            }
        }
        made += some.len() - 1;
    }
    figures(&format!("W4: {made} writes, {swaps} exchanges, {verdicts:?}, {} protected folders changed", wrong.len()));
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(swaps > 100, "nothing was exchanged");
    assert!(verdicts.get("allow").is_some_and(|it| *it > count / 20), "hardly a file was written: {verdicts:?}");
}

/// The card of an approval stands, and meanwhile a folder becomes a symlink to another one.
///
/// Broken build: the write resolves its path anew after the approval.
#[tokio::test]
async fn what_the_card_showed_is_what_is_written() {
    let writes = || calls("write", json!({ "path": "hk/config", "content": "evil\n" }));
    let steps = vec![writes(), says("One."), writes(), says("Two."), writes(), says("Three.")];
    let mut pixir = Pixir::new(steps, &[("hk/config", "mine\n"), (".git/config", "[core]\n")]);
    let screen = pixir.does("go<Enter>").await;
    assert!(screen.contains("hk/config") && !screen.contains("protected"), "{screen}");
    fs::rename(pixir.path("hk"), pixir.path("kept")).expect("rename");
    symlink(".git", pixir.path("hk")).expect("a symlink");
    let screen = flat(&pixir.does("<A-y>").await);
    assert!(screen.contains("`hk` is a symlink now"), "{screen}");
    assert_eq!((pixir.file(".git/config"), pixir.file("kept/config")), ("[core]\n".into(), "mine\n".into()));
    // Now the link is there when the call is judged: the card names the file that would be written.
    let screen = flat(&pixir.does("again<Enter>").await);
    assert!(screen.contains(".git/config is protected (git)"), "{screen}");
    fs::remove_file(pixir.path("hk")).expect("rm");
    fs::rename(pixir.path("kept"), pixir.path("hk")).expect("rename");
    pixir.does("<A-n>").await;
    // The folder itself is exchanged, so that its path has no symlink.
    pixir.does("more<Enter>").await;
    renameat_with(CWD, pixir.path("hk"), CWD, pixir.path(".git"), RenameFlags::EXCHANGE).expect("exchange");
    let screen = flat(&pixir.does("<A-y>").await);
    assert!(screen.contains("`hk` is now a folder of protected files (git)"), "{screen}");
    assert_eq!((pixir.file("hk/config"), pixir.file(".git/config")), ("[core]\n".into(), "mine\n".into()));
}

/// What runs unasked was judged before its paths were exchanged, so only the kernel can confine it.
///
/// Broken builds: the view of `Policy::Look` has the folder above the workspace; a command that was proven when the gate
/// judged it, and not when it was prepared, runs with `Policy::Work`.
#[test]
fn no_unasked_command_leaves_the_workspace_while_paths_are_exchanged() {
    let bash = |line: &str| ("bash", json!({ "command": line }));
    let calls = [
        bash("cat d/s"),
        bash("cat f"),
        bash("head -1 f"),
        bash("cat < f"),
        bash("ls d"),
        bash("cat d/*"),
        bash("cd d && cat s"),
        ("bash", json!({ "command": "cat s; ls", "cwd": "d" })),
        bash("grep -r OUTSIDE d"),
        bash("find d -type f"),
        bash("for x in d/s f; do cat $x; done"),
        bash("git -C r status"),
        bash("cd r && git status"),
        ("run", json!({ "command": "cat d/s" })),
    ];
    let count = tier::cases("no_unasked_command_leaves") / 2;
    let (mut made, mut swaps, mut wrong) = (0, 0, Vec::new());
    for tier in ["ll", "ns"] {
        let raced = race(&calls, count, &["--mode", "read-only", "--toolset", "both", "--sandbox", tier]);
        made += raced.0;
        swaps += raced.1;
        wrong.extend(raced.2);
    }
    figures(&format!("QS5: unasked commands: {made} calls, {swaps} exchanges, {} outside", wrong.len()));
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(swaps > 100, "nothing was exchanged");
}
