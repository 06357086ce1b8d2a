//! A workspace that is gone is named, ends the Turn, and nothing is said to be created in it.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};

use serde_json::json;

use super::super::mounts::mounting;
use super::{Turn, bash, script, turn};
use crate::shell::Shell;

/// What happens to a workspace while a command runs in it, as a line of bash in the folder above it.
const ENDS: [(&str, &str); 6] = [
    ("deleted", "rm -rf app"),
    ("moved", "mv app other; touch other/ended"),
    ("replaced", "mv app other; mkdir app; touch other/ended"),
    ("replaced by a copy", "cp -r app copy; mv app other; mv copy app; touch other/ended"),
    ("replaced by a symlink to another folder", "mkdir copy; mv app other; ln -s copy app; touch other/ended"),
    ("replaced by a file", "mv app other; touch app other/ended"),
];

/// A command that runs until its workspace has ended.
const WAITS: &str = "touch ready; until [ -e ended ] || [ ! -e a.txt ]; do sleep 0.01; done";

/// The Turn ends with the name of the folder, whatever tool finds it gone, and writes nothing beside it.
///
/// Broken builds (ce783d9e): `there is no b.txt`, exit 0; `Created c.txt` in a folder that has no path any more.
#[test]
fn a_turn_whose_workspace_is_gone_fails_and_names_it() {
    let later = [
        ("write", json!({ "path": "c.txt", "content": "lost\n" })),
        ("read", json!({ "path": "a.txt" })),
        ("bash", json!({ "command": "echo lost > c.txt" })),
    ];
    for (kind, line) in ENDS {
        for call in &later {
            let shell = Shell::new(&[("a.txt", "alpha\n")]);
            let folder = shell.workspace().with_file_name("");
            let script = script(&shell, &[bash(WAITS), call.clone()]);
            let args = ["--headless", "--mode", "auto", "--format", "jsonl", "--provider", &script, "go"];
            let mut child = shell.command(args).spawn().expect("it starts");
            crate::wait::until("the command runs", || shell.workspace().join("ready").exists());
            let done = Command::new("bash").args(["-ec", line]).current_dir(&folder).status().expect("bash");
            assert!(done.success(), "{kind}");
            let turn = Turn::from(crate::shell::ran(child_output(&mut child)));
            assert_gone(&turn, &shell, &format!("{kind}, {}", call.0));
            for place in ["app", "other", "copy"] {
                assert!(!folder.join(place).join("c.txt").exists(), "{kind}, {}: {turn:#?}", call.0);
            }
        }
    }
}

fn child_output(child: &mut std::process::Child) -> std::process::Output {
    let (mut stdout, mut stderr) = (child.stdout.take().expect("stdout"), child.stderr.take().expect("stderr"));
    let reader = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut stdout, &mut bytes).expect("read");
        bytes
    });
    let mut errors = Vec::new();
    std::io::Read::read_to_end(&mut stderr, &mut errors).expect("read");
    let status = child.wait().expect("it ends");
    std::process::Output { status, stdout: reader.join().expect("no panic"), stderr: errors }
}

fn assert_gone(turn: &Turn, shell: &Shell, what: &str) {
    let root = shell.workspace().display().to_string();
    assert_eq!((turn.ran.code, turn.result["code"].as_str()), (5, Some("WORKSPACE_GONE")), "{what}: {turn:#?}");
    assert!(turn.result.to_string().contains(&format!("the workspace {root} is gone")), "{what}: {turn:#?}");
    let after = turn.outputs.last().expect("the call that found it gone");
    assert!(after.contains("is gone: ") && !after.contains("Created"), "{what}: {turn:#?}");
}

/// A workspace that is unmounted is gone, although its files can still be opened through the folder that pixir holds.
///
/// Broken build (ce783d9e): `Created b.txt`, in a file system that has no path any more, and exit 0.
#[test]
fn a_workspace_that_is_unmounted_ends_the_turn() {
    let Some(words) = mounting() else { return };
    let shell = Shell::new(&[]);
    let script = script(
        &shell,
        &[
            ("write", json!({ "path": "a.txt", "content": "alpha\n" })),
            bash(WAITS),
            ("write", json!({ "path": "b.txt", "content": "lost\n" })),
        ],
    );
    let line = "set -e; mount -t tmpfs none \"$WORKSPACE\"; cd \"$WORKSPACE\"
        \"$PIXIR\" --headless --mode auto --format jsonl --provider \"$SCRIPT\" go & pid=$!
        until [ -e ready ]; do sleep 0.01; done; umount -l \"$WORKSPACE\"; touch ended; cd /; wait $pid";
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).args(["bash", "-c", line]).current_dir(shell.workspace().with_file_name(""));
    command
        .env("PIXIR", env!("CARGO_BIN_EXE_pixir"))
        .env("PIXIR_HOME", shell.home())
        .env("WORKSPACE", shell.workspace());
    command.env("SCRIPT", &script).env("HOME", shell.workspace().with_file_name(""));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let turn = Turn::of(&mut command);
    assert_gone(&turn, &shell, "unmounted");
    assert!(!shell.workspace().join("b.txt").exists(), "{turn:#?}");
}

/// A workspace that is a symlink whose target is exchanged stays the folder that was opened.
///
/// Broken build: the check follows the path that was given.
#[test]
fn a_link_that_leads_elsewhere_now_ends_no_turn() {
    let shell = Shell::new(&[("a.txt", "alpha\n")]);
    let link = shell.workspace().with_file_name("link");
    symlink(shell.workspace(), &link).expect("a symlink");
    let other = shell.workspace().with_file_name("elsewhere");
    fs::create_dir(&other).expect("mkdir");
    let turn = turn(&shell, &link, &[bash("true"), ("write", json!({ "path": "b.txt", "content": "b\n" }))]);
    turn.assert_worked();
    assert_eq!(shell.read("b.txt"), "b\n");
}
