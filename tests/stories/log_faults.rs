//! System calls on the Log that fail in the real process.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::server::{Dialect, Server, text};
use crate::shell::{Shell, entries, figures, skip};
use crate::tier;

mod trees; // the same while others wait for the Session

/// Whether this machine lets strace inject faults.
fn can_inject() -> bool {
    let tried =
        Command::new("strace").args(["-f", "-o", "/dev/null", "-e", "inject=getpid:error=EIO", "/bin/true"]).output();
    tried.is_ok_and(|ran| ran.status.success())
}

#[test]
fn a_failed_system_call_on_the_log_stops_the_turn() {
    if !can_inject() {
        return skip("strace cannot inject faults");
    }
    let script = r#"{ "steps": [
        { "text": "One.", "calls": [ { "name": "bash", "args": { "command": "echo 1 > ran1" } } ] },
        { "text": "Two.", "calls": [ { "name": "write", "args": { "path": "ran2", "content": "2" } } ] },
        { "text": "Done." } ] }"#;
    let calls: &[(&str, &[&str], u32)] = &[
        ("fdatasync", &["EIO", "ENOSPC"], 12),
        ("write", &["ENOSPC", "EIO", "EDQUOT"], 20),
        ("ftruncate", &["EIO"], 1),
        ("openat", &["EMFILE", "EACCES"], 3),
        ("flock", &["ENOLCK"], 1),
        ("pread64", &["EIO"], 2),
    ];
    let mut all = Vec::new();
    for (call, errors, upto) in calls {
        for error in *errors {
            all.extend((1..=*upto).flat_map(|at| ["", "+"].map(|sticky| (*call, *error, format!("{at}{sticky}")))));
        }
    }
    let cells = tier::sample("a_failed_system_call", all);
    let stopped = cells.iter().filter(|(call, error, when)| one_injection(script, call, error, when)).count();
    let tried = cells.len();
    figures(&format!("{tried} injected failures; {stopped} stopped the turn, the rest came after it or were survived"));
    // Of all 188, 87 do; of a few, chance may have chosen those that come late.
    assert!(stopped > if tried < 60 { 0 } else { tried / 5 }, "the faults arrive");
}

/// Whether the fault stopped the Turn.
fn one_injection(script: &str, call: &str, error: &str, when: &str) -> bool {
    let shell = Shell::new(&[]);
    let path = shell.aside("script.json", script);
    let provider = format!("script:{}", path.display());
    let greeting = shell.aside("greeting.json", r#"{ "steps": [ { "text": "Hello." } ] }"#);
    let first = format!("script:{}", greeting.display());
    assert_eq!(shell.run(["--provider", &first, "--headless", "hi"]).code, 0);
    let log = shell.logs().remove(0);
    let id = log.file_stem().expect("a name").to_string_lossy().into_owned();
    let resume = ["resume", &id, "x", "--provider", &provider, "--headless", "--write", "--format", "jsonl"];
    let plain = shell.command(resume);
    let mut command = Command::new("strace");
    // Only system calls on the Log fail, in every thread.
    let inject = format!("inject={call}:error={error}:when={when}");
    command.args(["-f", "-qq", "-o", "/dev/null", "-e", &format!("trace={call}"), "-e", &inject, "-P"]).arg(&log);
    command.arg(plain.get_program()).args(plain.get_args()).env_clear();
    command.envs(plain.get_envs().filter_map(|(k, v)| Some((k, v?)))).current_dir(shell.workspace());
    command.stdin(Stdio::null());
    let ran = crate::shell::ran(command.output().expect("strace runs"));
    let what = format!("{call} {error} {when}\n{}\n{}", ran.stdout, ran.stderr);
    let acknowledged: Vec<Value> = ran
        .stdout
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .filter(|line: &Value| line["seq"].is_u64())
        .collect();
    let recorded = entries(&log);
    for line in &acknowledged {
        let seq = usize::try_from(line["seq"].as_u64().expect("a number")).expect("small");
        assert_eq!(recorded.get(seq).map(|e| &e["id"]), Some(&line["id"]), "acknowledged and not there: {what}");
    }
    // No tool ran whose call is not in the Log.
    for (file, name) in [("ran1", "bash"), ("ran2", "write")] {
        let is_recorded = recorded.iter().any(|e| e["type"] == "tool_call" && e["data"]["name"] == name);
        assert!(is_recorded || !shell.workspace().join(file).exists(), "{name} ran unrecorded: {what}");
    }
    let ended = recorded.iter().filter(|e| e["type"] == "turn_ended").count();
    assert!(ended == 2 || ran.code != 0, "a turn without its end, and success: {what}");
    let server = Server::start(vec![text("On again.")]);
    let mut args = vec!["resume".to_owned(), id, "go on".into(), "--headless".into(), "--json".into()];
    args.extend(server.flags(Dialect::Chat));
    let again = shell.run(args);
    assert_eq!(again.code, 0, "it does not open again: {what}\n{}", again.stderr);
    let balanced = entries(&log);
    let count = |kind: &str| balanced.iter().filter(|e| e["type"] == kind).count();
    assert_eq!((count("tool_call"), count("user_message")), (count("tool_result"), count("turn_ended")), "{what}");
    ran.code != 0
}

/// A shim in which the n-th call on a Log fails: with "no space" unless `ERR` has another number, with `STICKY` every later
/// one too, and with `FROM` none before that file exists. It makes the file `HIT` then.
const FULL: &str = r#"
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
static int calls;
static int fails(const char *call, int fd) {
  char name[64], path[4096];
  if (strcmp(getenv("CALL"), call)) return 0;
  snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
  ssize_t n = readlink(name, path, sizeof path - 1);
  if (n < 0) return 0;
  path[n] = 0;
  if (!strstr(path, ".ndjson") && !strstr(path, ".begun")) return 0;
  if (getenv("FROM") && access(getenv("FROM"), F_OK)) return 0;
  int at = __sync_add_and_fetch(&calls, 1), first = atoi(getenv("AT"));
  if (at != first && !(getenv("STICKY") && at > first)) return 0;
  if (getenv("HIT")) close(open(getenv("HIT"), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  errno = getenv("ERR") ? atoi(getenv("ERR")) : ENOSPC;
  return 1;
}
ssize_t write(int fd, const void *b, size_t n) { return fails("write", fd) ? -1 : syscall(SYS_write, fd, b, n); }
int fdatasync(int fd) { return fails("fdatasync", fd) ? -1 : syscall(SYS_fdatasync, fd); }
"#;

/// Builds the shim in this folder. None without a C compiler.
pub(super) fn failing_disk(folder: &Path) -> Option<PathBuf> {
    let (source, shim) = (folder.join("full.c"), folder.join("full.so"));
    std::fs::write(&source, FULL).expect("write");
    let built = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&shim).arg(&source).status();
    built.is_ok_and(|it| it.success()).then_some(shim)
}

/// Every published Entry stays in the file, `session_started` too, when no later write succeeds.
///
/// Broken build: a Session in which nothing was said removes its Log, though a prompt was refused by the disk.
#[test]
fn a_first_prompt_that_cannot_be_written_leaves_what_was_published() {
    let tools = tempfile::tempdir().expect("a folder");
    let Some(shim) = failing_disk(tools.path()) else { return skip("a C compiler for the disk is missing") };
    let (mut tried, mut published) = (0, 0);
    for call in ["write", "fdatasync"] {
        for (at, sticky) in (1..=6).flat_map(|at| [(at, false), (at, true)]) {
            let shell = Shell::new(&[]);
            let greeting = shell.aside("greeting.json", r#"{ "steps": [ { "text": "Hello." } ] }"#);
            let provider = format!("script:{}", greeting.display());
            let mut command = shell.command(["--provider", &provider, "--headless", "--format", "jsonl", "hi"]);
            command.env("LD_PRELOAD", &shim).env("CALL", call).env("AT", at.to_string());
            if sticky {
                command.env("STICKY", "1");
            }
            let ran = crate::shell::ran(command.output().expect("it runs"));
            tried += 1;
            let lines = ran.stdout.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
            for line in lines.filter(|line| line["seq"].is_u64()) {
                published += 1;
                let is_there = shell.logs().iter().any(|log| entries(log).iter().any(|it| it["id"] == line["id"]));
                assert!(is_there, "{call} {at} {sticky}: {line} is in no file\n{}", ran.stderr);
            }
            // Where an Entry is lost, so is the success.
            let kinds: Vec<Value> =
                shell.logs().iter().flat_map(|log| entries(log)).map(|it| it["type"].clone()).collect();
            assert!(
                ran.code != 0 || kinds.last().is_some_and(|it| it == "turn_ended"),
                "{call} {at} {sticky}: {kinds:?}"
            );
        }
    }
    assert!(published > tried, "most faults come after the first line");
    figures(&format!("QR6: {tried} failures of the disk tried, {published} published entries, 0 failed"));
}

/// A Turn has its one end also when an answer is too large for a line of the Log.
///
/// Broken build: `on_report` abandons the Turn after every error of the Log.
#[test]
fn an_entry_that_is_too_large_for_the_log_ends_its_turn() {
    let shell = Shell::new(&[]);
    // Each of these characters takes six bytes in JSON, so that the line is longer than 64 MB.
    let steps = serde_json::json!({ "steps": [ { "text": "\u{1}".repeat(11 << 20) }, { "text": "Small." } ] });
    let script = shell.aside("large.json", &steps.to_string());
    let provider = format!("script:{}", script.display());
    let ran = shell.run(["--provider", &provider, "--headless", "--json", "hi"]);
    let log = shell.logs().remove(0);
    let kinds: Vec<String> =
        entries(&log).iter().map(|it| it["type"].as_str().unwrap_or_default().to_owned()).collect();
    assert_eq!(kinds, ["session_started", "user_message", "turn_ended"], "{}", ran.stderr);
    let end = &entries(&log)[2]["data"];
    assert_eq!((end["status"].as_str(), end["error"]["code"].as_str()), (Some("failed"), Some("LOG_ENCODE_FAILED")));
    assert!(ran.code == 1 && ran.stderr.contains("LOG_ENCODE_FAILED"), "exit {}: {}", ran.code, ran.stderr);
    assert_eq!(shell.run(["sessions", "verify", "last"]).code, 0);
}
