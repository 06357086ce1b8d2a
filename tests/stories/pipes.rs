//! Standard input and output as pipes: slow, closed, left open.

use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::Read as _;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::sessions::session;
use serde_json::json;

use crate::pty::Terminal;
use crate::server::{Dialect, Server, text};
use crate::shell::{Shell, closing, figures, ran};

#[test]
fn a_closed_stdout_ends_the_program_quietly() {
    let shell = Shell::new(&[]);
    let mut child = shell.command(["demo", "--format", "jsonl"]).spawn().expect("it starts");
    drop(child.stdout.take());
    let ran = ran(child.wait_with_output().expect("it ends"));
    assert!(!ran.stderr.contains("panic"), "{}", ran.stderr);
}

#[test]
fn a_slow_reader_gets_the_whole_answer() {
    let shell = Shell::new(&[]);
    let long: String = (0..40_000).map(|n| format!("line {n} of a long answer\n")).collect();
    let server = Server::start(vec![text(&long)]);
    let mut args = server.flags(Dialect::Chat);
    args.extend(["--headless", "go"].map(str::to_owned));
    let mut child = shell.command(args).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
    let mut out = child.stdout.take().expect("stdout");
    let mut read = Vec::new();
    let mut piece = [0; 4_096];
    // Reads nothing until the whole answer was sent, then small pieces.
    server.wait_for(1);
    server.wait_until_alone();
    loop {
        let n = out.read(&mut piece).expect("read");
        if n == 0 {
            break;
        }
        read.extend_from_slice(&piece[..n]);
        std::thread::yield_now();
    }
    assert!(child.wait().expect("it ends").success());
    assert_eq!(String::from_utf8(read).expect("text").trim_end(), long.trim_end());
}

#[test]
fn an_open_stdin_is_not_waited_for() {
    let shell = Shell::new(&[]);
    let server = Server::start(vec![text("Hello.")]);
    let mut args = server.flags(Dialect::Chat);
    args.extend(["--headless", "hi"].map(str::to_owned));
    let mut child = shell.command(args).stdin(Stdio::piped()).spawn().expect("it starts");
    let open = child.stdin.take();
    let output = child.wait_with_output().expect("it ends");
    drop(open);
    assert!(output.status.success() && String::from_utf8_lossy(&output.stdout).contains("Hello."));
}

#[test]
fn a_closed_stdout_of_replay_is_no_error() {
    let shell = Shell::new(&[]);
    let long: String = (0..20_000).map(|n| format!("line {n} of a long answer\n")).collect();
    let server = Server::start(vec![text(&long)]);
    let mut args = server.flags(Dialect::Chat);
    args.extend(["--headless", "go"].map(str::to_owned));
    assert_eq!(shell.run(args).code, 0);
    let mut child = shell.command(["replay", "last"]).spawn().expect("it starts");
    let mut out = child.stdout.take().expect("stdout");
    out.read_exact(&mut [0; 64]).expect("read");
    drop(out);
    let output = child.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!said.contains("panic") && !said.contains("error"), "{said}");
}

/// Every command that prints a result, in its formats. `ID` stands for a Session.
pub(super) const PRINTING: &[&str] = &[
    "--help",
    "--version",
    "sessions list --help",
    "acp --help",
    "demo --headless",
    "demo --headless --json",
    "demo --headless --format jsonl",
    "resume ID go --headless --provider script:SCRIPT",
    "resume ID go --headless --provider script:SCRIPT --json",
    "resume ID go --headless --provider script:SCRIPT --format jsonl",
    "mcp list",
    "mcp list --json",
    "mcp list --format tsv",
    "sessions list",
    "sessions list --json",
    "sessions list --format jsonl",
    "sessions list --format tsv",
    "sessions show ID",
    "sessions show ID --json",
    "sessions rename ID name --json",
    "sessions delete ID --dry-run --json",
    "sessions move ID --workspace ELSEWHERE --dry-run --json",
    "sessions export ID",
    "sessions export ID --to html",
    "sessions export ID --to json",
    "sessions export ID --output NEW --json",
    "sessions import EXPORTED --dry-run --json",
    "sessions verify ID",
    "sessions verify --all --json",
    "sessions repair ID",
    "sessions repair ID --json",
    "workflow list",
    "agents tree ID",
    "agents tree ID --json",
    "agents stop ID",
    "agents stop ID --json",
    "tree ID",
    "tree ID --json",
    "fork ID --at 1 --dry-run",
    "compact LONG --dry-run",
    "undo ID --dry-run --json",
    "redo UNDONE --dry-run --json",
    "inspect ID",
    "inspect ID --json",
    "inspect ID --ledger",
    "inspect ID --ledger --json",
    "init --dry-run",
    "init --dry-run --json",
    "replay ID",
    "replay ID --json",
    "replay ID --format jsonl",
    "replay ID --cast -",
    "diagnose ID",
    "diagnose ID --json",
    "gc --dry-run",
    "gc --dry-run --json",
    "permissions why ls",
    "permissions why ls --json",
    "permissions list",
    "permissions list --json",
    "permissions add bash(make) --dry-run --json",
    "agents list",
    "agents list --json",
    "agents show reviewer",
    "agents show reviewer --json",
    "agents validate reviewer",
    "agents validate reviewer --json",
    "skills list",
    "skills list --json",
    "skills show review",
    "skills show review --json",
    "skills validate review",
    "skills validate review --json",
    "trust",
    "trust --list --json",
    "config show",
    "config show --json",
    "config get mode",
    "config set effort high --dry-run --json",
    "config path",
    "run help",
    "run --raw help",
    "tools list",
    "tools show read",
    "tools run ls {} --json",
    "models list --json",
    "tui --script KEYS",
    "tui --script KEYS --screen json",
    "themes list",
    "themes list --json",
    "auth status",
    "auth status --json",
    "schema",
    "schema --events",
    "schema commands.resume",
    "status",
    "status --json",
    "agent",
    "completions bash",
    "completions nushell",
    "man",
    "doctor",
    "doctor --json",
];

/// Commands that have nothing to print: they need a terminal, or an answer of the user.
const SILENT: &[&str] = &["auth"];

/// A Session whose first Turn is too long to stay as it is.
fn long_session(shell: &Shell) -> String {
    let steps = json!({ "steps": [{ "text": "word ".repeat(12_000) }] }).to_string();
    let provider = format!("script:{}", shell.aside("long.json", &steps).display());
    let first = shell.run(["--headless", "--json", "--provider", &provider, "go"]).document();
    let id = first["session_id"].as_str().expect("an id").to_owned();
    assert_eq!(shell.run(["resume", &id, "go on", "--headless", "--provider", &provider]).code, 0);
    id
}

/// A command whose result is lost says so: on `/dev/full`, which takes no byte, and on a stdout that is closed before pixir
/// begins. A reader that has enough is no error, and neither is a closed stderr.
///
/// Broken builds: `Output::write` ignores its error; `main` returns the command's own exit code; a command prints past
/// `Output`; nothing looks at stdout before Rust's runtime opens `/dev/null` in its place.
#[test]
fn every_command_reports_an_output_that_cannot_be_written() {
    let skill = "---\nname: review\ndescription: Reads a diff\n---\nLook.\n";
    let shell = Shell::new(&[("a.txt", "alpha\n"), (".claude/skills/review/SKILL.md", skill)]);
    let undone = session(&shell);
    assert_eq!(shell.run(["undo", &undone]).code, 0);
    let id = session(&shell);
    // An empty list has no row.
    assert_eq!(shell.run(["permissions", "add", "bash(make)"]).code, 0);
    let add = ["mcp", "add", "other", "https://127.0.0.1:9/mcp", "--no-start"];
    assert_eq!(shell.run(add).code, 0);
    let long = long_session(&shell);
    let script = shell.aside("greeting.json", r#"{ "steps": [ { "text": "Hello." }, { "text": "Hello." } ] }"#);
    let keys = shell.aside("keys.txt", "idle\nframe start\n");
    let exported = shell.run(["sessions", "export", &id, "--to", "json"]).stdout;
    let exported = shell.aside("exported.json", &exported);
    let elsewhere = tempfile::tempdir().expect("a folder");
    let words = |line: &str, round: usize| -> Vec<String> {
        let word = |word: &str| match word {
            "ID" => id.clone(),
            "UNDONE" => undone.clone(),
            "LONG" => long.clone(),
            "NEW" => shell.workspace().join(format!("export-{round}.md")).display().to_string(),
            "EXPORTED" => exported.display().to_string(),
            "ELSEWHERE" => elsewhere.path().display().to_string(),
            "KEYS" => keys.display().to_string(),
            word => word.replace("SCRIPT", &script.display().to_string()),
        };
        line.split(' ').map(word).collect()
    };
    let mut failed = Vec::new();
    for line in PRINTING {
        // What a command says when its result is printed.
        let whole = shell.run(words(line, 0));
        if whole.stdout.is_empty() {
            failed.push(format!("{line} prints nothing: {}", whole.stderr));
        }
        let full = OpenOptions::new().write(true).open("/dev/full").expect("there is /dev/full");
        let lost = ran(shell.command(words(line, 1)).stdout(full).output().expect("it runs"));
        if lost.code == 0 || !lost.stderr.contains("WRITE_FAILED") {
            failed.push(format!("{line} > /dev/full: exit {}, {}", lost.code, lost.stderr));
        }
        let mut child = shell.command(words(line, 2)).spawn().expect("it starts");
        drop(child.stdout.take());
        let closed = ran(child.wait_with_output().expect("it ends"));
        if closed.stderr.contains("WRITE_FAILED") || closed.stderr.contains("panic") {
            failed.push(format!("{line} | true: exit {}, {}", closed.code, closed.stderr));
        }
        let absent = ran(closing(">&-", &shell.command(words(line, 3))).output().expect("it runs"));
        if absent.code == 0 || !absent.stderr.contains("WRITE_FAILED") {
            failed.push(format!("{line} >&-: exit {}, {}", absent.code, absent.stderr));
        }
        let mute = ran(closing("2>&-", &shell.command(words(line, 4))).output().expect("it runs"));
        if mute.code != whole.code || mute.stdout.is_empty() {
            failed.push(format!("{line} 2>&-: exit {} instead of {}, {}", mute.code, whole.code, mute.stdout));
        }
    }
    assert!(failed.is_empty(), "{} failed:\n{}", failed.len(), failed.join("\n"));
    let commands = shell.run(["schema"]).document()["commands"]["commands"].as_array().cloned().unwrap_or_default();
    let known: BTreeSet<&str> = commands.iter().filter_map(|it| it["name"].as_str()).collect();
    let tried: BTreeSet<&str> = PRINTING.iter().chain(SILENT).filter_map(|it| it.split(' ').next()).collect();
    let untried: Vec<&&str> = known.iter().filter(|it| !tried.contains(**it)).collect();
    assert!(untried.is_empty() && known.len() > 15, "commands without a row: {untried:?} of {known:?}");
    figures(&format!(
        "QO1: {} outputs, each lost, each closed by its reader, each without stdout, each without stderr: {} tried, 0 failed",
        PRINTING.len(),
        4 * PRINTING.len()
    ));
}

/// A stdout that the user sends to `/dev/null` is open, also where it is opened as Rust's runtime would open it.
///
/// Broken build: `Output` looks at the file behind stdout.
#[test]
fn a_result_that_is_thrown_away_on_purpose_is_no_error() {
    let shell = Shell::new(&[]);
    for for_reading in [false, true] {
        let null = OpenOptions::new().read(for_reading).write(true).open("/dev/null").expect("there is /dev/null");
        let ran = ran(shell.command(["schema"]).stdout(null).output().expect("it runs"));
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    }
}

/// The terminal interface without a stdout is an error in words, and leaves the terminal as it was.
///
/// Broken build: `present` asks for a prompt, as if there were no terminal.
#[test]
fn the_interface_without_stdout_is_an_error() {
    for command in ["", " resume --last"] {
        let shell = Shell::new(&[]);
        let line = format!("{}{command} >&-; echo \"exit $?\" >&2", env!("CARGO_BIN_EXE_pixir"));
        let terminal = Terminal::of(&shell, "bash".as_ref(), &["-c", &line], &[], 80, 24);
        let left = terminal.end();
        left.assert_sane();
        assert!(left.screen.contains("stdout is closed") && left.screen.contains("exit 1"), "{}", left.screen);
    }
}

/// A disk that is full in the middle of a result is an error too.
///
/// Broken builds: only the first write is checked; the signal that announces the limit ends a command without a runtime.
#[test]
fn a_result_that_is_cut_by_a_full_disk_is_an_error() {
    let shell = Shell::new(&[]);
    let path = shell.aside("schema.json", "");
    // A file of at most 2 blocks of 1,024 bytes.
    let line = format!("ulimit -f 2; exec {} schema > {}", env!("CARGO_BIN_EXE_pixir"), path.display());
    let mut command = Command::new("bash");
    command.args(["-c", &line]).current_dir(shell.workspace()).env("PIXIR_HOME", shell.home());
    let ran = ran(command.stdout(Stdio::piped()).stderr(Stdio::piped()).output().expect("it runs"));
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("WRITE_FAILED"), "{}", ran.stderr);
    let written = std::fs::read_to_string(&path).expect("a part");
    assert!(!written.is_empty() && serde_json::from_str::<Value>(&written).is_err());
}
