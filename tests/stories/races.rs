//! Paths that another program exchanges while pixir uses them: nothing outside the workspace is read or written.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::{Value, json};

use super::readers::{called, files, git, repository};
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
        // They outlive the threads: the process of the tests ends soon.
        let (stop, count) = (&*Box::leak(Box::default()), &*Box::leak(Box::new(AtomicU64::new(0))));
        let exchange = move || {
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
