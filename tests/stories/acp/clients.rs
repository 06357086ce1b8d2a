//! Clients as they are: the official SDKs for TypeScript and Python, and acpx, each from its registry, with the real binary.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::script;
use crate::shell::{Ran, Shell, ran, run_to_its_end, skip};

/// The folder of what a test has installed; it stays for the next run.
fn installed(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).expect("mkdir");
    folder
}

/// Runs an installer. Without one, or without its registry, the test is skipped.
fn install(command: &mut Command) -> bool {
    match command.stdout(Stdio::null()).stderr(Stdio::piped()).output() {
        Ok(output) if output.status.success() => true,
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            skip(&format!("the registry gives nothing: {}", said.lines().last().unwrap_or_default()));
            false
        }
        Err(e) => {
            skip(&format!("{} cannot be started: {e}", command.get_program().display()));
            false
        }
    }
}

fn npm(package: &str) -> Option<PathBuf> {
    let folder = installed(&package.replace(['@', '/'], "-"));
    let is_there = folder.join("node_modules").is_dir();
    let mut command = Command::new("npm");
    command.args(["install", "--no-audit", "--no-fund", "--no-save", "--prefix"]).arg(&folder).arg(package);
    (is_there || install(&mut command)).then_some(folder)
}

fn task() -> Value {
    let edit = json!({ "name": "edit", "args": { "path": "a.txt", "old_text": "two", "new_text": "three" } });
    script(&[
        json!({ "when": "edit it", "calls": [edit] }),
        json!({ "text": "Edited." }),
        json!({ "text": "Waiting for you.", "hang": true }),
    ])
}

/// What both SDKs saw of the task: an approval with its diff, a cancel, and a load by a new process.
fn has_seen_the_whole_task(ran: &Ran, shell: &Shell) {
    assert_eq!(ran.code, 0, "{ran:?}");
    let document = ran.document();
    let (first, second) = (&document["first"], &document["second"]);
    assert_eq!((&first["version"], &first["edited"]), (&json!(1), &json!("end_turn")), "{document}");
    assert_eq!(first["diff"], json!({ "oldText": "one\ntwo\n", "newText": "one\nthree\n" }), "{document}");
    assert_eq!((&first["cancelled"], &first["exit"]), (&json!("cancelled"), &json!(0)), "{document}");
    assert_eq!(first["text"], "Edited.Waiting for you.");
    let told = json!({ "mode": "ask", "asked": "edit itwait", "diffs": 1, "exit": 0 });
    assert_eq!(*second, told, "{document}");
    assert_eq!(shell.read("a.txt"), "one\nthree\n");
}

/// A program in the workspace and the environment of a test.
fn program(shell: &Shell, name: &str) -> Command {
    let pixir = shell.command([""; 0]);
    let mut command = Command::new(name);
    command.envs(pixir.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.current_dir(shell.workspace()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A client's own program, with what it needs to know.
fn client(shell: &Shell, name: &str, source: &Path) -> Command {
    let script = shell.aside("script.json", &task().to_string());
    let mut command = program(shell, name);
    command.arg(source).arg(env!("CARGO_BIN_EXE_pixir")).arg(shell.workspace()).arg(script);
    command
}

#[test]
fn the_typescript_sdk_drives_a_whole_task() {
    let Some(folder) = npm("@agentclientprotocol/sdk@2.4.0") else { return };
    let source = folder.join("client.mjs");
    std::fs::write(&source, include_str!("../../clients/client.mjs")).expect("write");
    let shell = Shell::new(&[("a.txt", "one\ntwo\n")]);
    let ran = ran(run_to_its_end(&mut client(&shell, "node", &source)));
    has_seen_the_whole_task(&ran, &shell);
}

#[test]
fn the_python_sdk_drives_a_whole_task() {
    let folder = installed("python-agent-client-protocol");
    let mut command = Command::new("python3");
    command.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target"]).arg(&folder);
    if !folder.join("acp").is_dir() && !install(command.arg("agent-client-protocol==0.12.1")) {
        return;
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/client.py");
    let shell = Shell::new(&[("a.txt", "one\ntwo\n")]);
    let mut command = client(&shell, "python3", &source);
    let ran = ran(run_to_its_end(command.env("PYTHONPATH", &folder).env("PYTHONDONTWRITEBYTECODE", "1")));
    has_seen_the_whole_task(&ran, &shell);
}

/// Broken builds: a session that acpx has made is gone when it comes back; a question about a change looks like one about
/// reading, so that `--approve-reads` grants it.
#[test]
fn acpx_drives_a_whole_task() {
    let Some(folder) = npm("acpx@0.1.15") else { return };
    let shell = Shell::new(&[("a.txt", "one\ntwo\n")]);
    let model = shell.aside("script.json", &task().to_string());
    let agent = format!("{} acp --provider script:{}", env!("CARGO_BIN_EXE_pixir"), model.display());
    let acpx = |args: &[&str]| {
        let mut command = program(&shell, "node");
        command.arg(folder.join("node_modules/acpx/dist/cli.js")).args(["--agent", &agent, "--cwd"]);
        command.arg(shell.workspace()).args(args);
        command
    };
    let run = |args: &[&str]| ran(run_to_its_end(&mut acpx(args)));
    let reads = run(&["--approve-reads", "--non-interactive-permissions", "deny", "exec", "edit it"]);
    assert_eq!(shell.read("a.txt"), "one\ntwo\n", "a change is no read: {reads:?}");

    // Each of these commands is a process of its own, and comes back to the session.
    let made = run(&["sessions", "new"]);
    assert_eq!(made.code, 0, "{made:?}");
    let edited = run(&["--approve-all", "--format", "json", "--ttl", "60", "prompt", "edit it"]);
    assert_eq!(edited.code, 0, "{edited:?}");
    assert!(edited.stdout.contains("\"session/load\"") && !edited.stdout.contains("\"error\""), "{edited:?}");
    assert!(edited.stdout.contains(r#""oldText":"one\ntwo\n""#), "{edited:?}");
    assert_eq!(shell.read("a.txt"), "one\nthree\n");

    shell.aside("script.json", &script(&[json!({ "text": "Waiting for you.", "hang": true })]).to_string());
    let mut waiting = acpx(&["--format", "json", "--ttl", "60", "prompt", "wait"]).spawn().expect("it starts");
    let mut lines = BufReader::new(waiting.stdout.take().expect("stdout")).lines();
    let shown = lines.by_ref().map_while(Result::ok).any(|line| line.contains("Waiting for you."));
    assert!(shown, "the answer is shown while it comes");
    let cancelled = run(&["cancel"]);
    assert_eq!(cancelled.code, 0, "{cancelled:?}");
    let rest: Vec<String> = lines.map_while(Result::ok).collect();
    assert!(rest.iter().any(|line| line.contains(r#""stopReason":"cancelled""#)), "{rest:?}");
    waiting.wait().expect("it ends");
    let closed = run(&["sessions", "close"]);
    assert_eq!(closed.code, 0, "{closed:?}");
}
