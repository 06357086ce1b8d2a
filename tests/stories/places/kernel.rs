//! Whatever is mounted in a workspace, no file of the kernel is read, and what a user mounts there belongs to it.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use super::super::mounts::mounting;
use super::{Turn, bash, script};
use crate::shell::{Shell, figures, peak_of};
use crate::wait;

/// The most memory of a Turn here, KB. One that reads `/proc` takes gigabytes.
const MOST: u64 = 160 << 10;
/// The longest that such a Turn may take.
const LONGEST: Duration = Duration::from_secs(60);

/// pixir in a folder, after this line of bash has mounted there. The process that is started becomes pixir.
fn after_mounting(shell: &Shell, words: &[&str], mounts: &str, args: &[&str]) -> Command {
    let mut command = Command::new(words[0]);
    let line = format!("set -e; {mounts}; ulimit -v 8000000; exec \"$PIXIR\" \"$@\"");
    command.args(&words[1..]).args(["bash", "-c", &line, "bash"]).args(args).current_dir(shell.workspace());
    command
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", shell.workspace().with_file_name(""));
    command.env("PIXIR", env!("CARGO_BIN_EXE_pixir")).env("PIXIR_HOME", shell.home());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// What stands in a workspace, each with what puts it there, and the names that are looked for in it.
const KINDS: [(&str, &str); 12] = [
    ("proc", "mkdir -p rootfs/proc; mount -t proc proc rootfs/proc 2>/dev/null || mount --rbind /proc rootfs/proc"),
    ("sysfs", "mkdir sys; mount --rbind /sys sys"),
    ("devices", "mkdir dev; mount --rbind /dev dev"),
    ("a file of the kernel", "touch pagemap; mount --bind /proc/self/pagemap pagemap"),
    ("rules of the kernel", "ln -s /proc/self/pagemap .gitignore"),
    ("an index of the kernel", "git init -q .; ln -sf /proc/self/pagemap .git/index"),
    ("an exclude of the kernel", "git init -q .; ln -sf /proc/self/pagemap .git/info/exclude"),
    ("instructions of the kernel", "touch AGENTS.md; mount --bind /proc/kmsg AGENTS.md"),
    ("settings of the kernel", "mkdir .pixir; ln -s /proc/self/pagemap .pixir/config.toml"),
    ("a protected folder of the kernel", "mkdir .vscode; mount --rbind /proc .vscode"),
    ("FIFOs", "mkfifo pipe .ignore; mkdir .git; mkfifo .git/index .git/HEAD .git/config"),
    (
        "a zero device",
        "touch zeros; mount --bind /dev/zero zeros; ln -s /dev/zero CLAUDE.md; ln -s /dev/zero .editorconfig",
    ),
];

/// A container's `/proc` and its like in the workspace: a command, a search and a list are as quick as without, and small.
///
/// Broken builds (ce783d9e): the versions of files are read by what a walk finds, whatever file system it is on (11 GB in 92 s); a
/// rule file is read to its end; the index is read whole.
#[test]
fn a_turn_beside_files_of_the_kernel_is_quick_and_small() {
    let Some(words) = mounting() else { return };
    for (kind, mounts) in KINDS {
        let shell = Shell::new(&[("a.txt", "alpha\n")]);
        let calls = [
            bash("echo beta > b.txt"),
            ("find", json!({ "pattern": "*" })),
            ("grep", json!({ "pattern": "alpha" })),
            ("edit", json!({ "path": "a.txt", "old_text": "alpha", "new_text": "omega" })),
        ];
        let script = script(&shell, &calls);
        let args = ["--headless", "--mode", "auto", "--format", "jsonl", "--provider", &script, "go"];
        let began = Instant::now();
        let (kilobytes, ran) = peak_of(&mut after_mounting(&shell, words, mounts, &args));
        let turn = Turn::from(ran);
        assert!(began.elapsed() < LONGEST && kilobytes < MOST, "{kind}: {kilobytes} KB, {:?}", began.elapsed());
        turn.assert_worked();
        assert_eq!(
            (turn.changes[0].as_slice(), turn.changes[3].as_slice()),
            (&["b.txt".to_owned()][..], &["a.txt".to_owned()][..]),
            "{kind}"
        );
        assert!(turn.outputs[2].contains("a.txt:1:alpha"), "{kind}: {turn:#?}");
        assert!(!turn.outputs[1].contains("kpageflags") && !turn.outputs[1].contains("cpuinfo"), "{kind}: {turn:#?}");
    }
    figures(&format!("files of the kernel in a workspace: {} kinds, 0 read", KINDS.len()));
}

/// A volume in a workspace is a part of it: it is listed, searched, watched and undone like every folder.
///
/// Broken build: a walk stays on the file system of the workspace.
#[test]
fn a_volume_in_a_workspace_belongs_to_it() {
    let Some(words) = mounting() else { return };
    let volumes = [
        ("tmpfs", "mkdir data; mount -t tmpfs none data; echo alpha > data/v.txt"),
        ("a bound folder", "mkdir data ../other; mount --bind ../other data; echo alpha > data/v.txt"),
        (
            "a bound file",
            "mkdir data; touch data/v.txt; echo alpha > ../other.txt; mount --bind ../other.txt data/v.txt",
        ),
    ];
    for (kind, mounts) in volumes {
        let shell = Shell::new(&[]);
        let calls = [
            ("find", json!({ "pattern": "*.txt" })),
            ("grep", json!({ "pattern": "alpha" })),
            bash("echo omega > data/v.txt"),
        ];
        let script = script(&shell, &calls);
        let args = ["--headless", "--mode", "auto", "--format", "jsonl", "--provider", &script, "go"];
        let turn = Turn::of(&mut after_mounting(&shell, words, mounts, &args));
        turn.assert_worked();
        assert!(
            turn.outputs[0].contains("data/v.txt") && turn.outputs[1].contains("data/v.txt:1:alpha"),
            "{kind}: {turn:#?}"
        );
        assert_eq!(turn.changes[2], ["data/v.txt"], "{kind}: {turn:#?}");
    }
}

/// A tool that is pointed at files of the kernel says what they are, and reads no secret of a process.
///
/// Broken build (ce783d9e): `read` prints the environment of pixir itself from `/proc`.
#[test]
fn a_tool_that_is_pointed_at_the_kernel_says_so() {
    let Some(words) = mounting() else { return };
    let shell = Shell::new(&[("a.txt", "alpha\n")]);
    let mounts = "mkdir proc sys; mount --rbind /proc proc; mount --rbind /sys sys";
    let refused = [
        ("read", json!({ "path": "proc/self/environ" })),
        ("grep", json!({ "pattern": "PATH", "path": "proc" })),
        ("grep", json!({ "pattern": "PATH", "path": "proc/self/environ" })),
        ("find", json!({ "pattern": "*", "path": "sys" })),
        ("edit", json!({ "path": "proc/self/comm", "old_text": "pixir", "new_text": "x" })),
    ];
    let script = script(&shell, &refused);
    let args = ["--headless", "--mode", "auto", "--format", "jsonl", "--provider", &script, "go"];
    let turn = Turn::of(&mut after_mounting(&shell, words, mounts, &args));
    for output in &turn.outputs {
        assert!(output.contains(" is on proc") || output.contains(" is on sysfs"), "{output}");
        assert!(!output.contains("PATH="), "{output}");
    }
    assert_eq!(turn.outputs.len(), refused.len());
}

/// TERM ends pixir while it looks at such a workspace.
///
/// Broken build (ce783d9e): the look reads on for as long as there is something to read.
#[test]
fn a_signal_is_heard_beside_files_of_the_kernel() {
    let Some(words) = mounting() else { return };
    let shell = Shell::new(&[]);
    let script = script(&shell, &[bash("touch started; sleep 600")]);
    let args = ["--headless", "--mode", "auto", "--provider", &script, "go"];
    let mut child = after_mounting(&shell, words, KINDS[0].1, &args).spawn().expect("it starts");
    assert!(wait::within(LONGEST, || shell.workspace().join("started").exists()), "the command began");
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it runs");
    let ended = wait::within(Duration::from_secs(10), || child.try_wait().expect("it can be asked").is_some());
    let _ = child.kill();
    assert!(ended, "TERM was not heard");
}
