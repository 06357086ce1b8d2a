//! Files as tools read, search and change them, odd ones too.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::driver::{Pixir, calls, says};
use crate::shell::{Shell, output, peak, ran, skip, tool};

#[test]
fn edits_of_one_call_are_all_made_or_none() {
    let shell = Shell::new(&[("a.txt", "one\r\ntwo\r\nthree\r\n")]);
    fs::set_permissions(shell.workspace().join("a.txt"), fs::Permissions::from_mode(0o751)).expect("chmod");
    let edits = |last: &str| json!({"path": "a.txt", "edits": [{"old_text": "one", "new_text": "1"}, {"old_text": "1\ntwo", "new_text": "1\n2"}, {"old_text": last, "new_text": "3"}]});
    let refused = tool(&shell, "edit", &edits("thre e"), &["--write"]).error();
    let message = refused["error"]["message"].as_str().expect("a message");
    assert!(message.starts_with("edit 3 of 3: ") && message.ends_with("nothing was changed"), "{message}");
    assert_eq!(shell.read("a.txt"), "one\r\ntwo\r\nthree\r\n");
    assert_eq!(tool(&shell, "edit", &edits("three"), &["--write"]).code, 0);
    assert_eq!(shell.read("a.txt"), "1\r\n2\r\n3\r\n");
    assert_eq!(fs::metadata(shell.workspace().join("a.txt")).expect("there").mode() & 0o777, 0o751);
    for args in [
        json!({"path": "a.txt"}),
        json!({"path": "a.txt", "old_text": "1"}),
        json!({"path": "a.txt", "old_text": "1", "new_text": "2", "edits": [{"old_text": "1", "new_text": "2"}]}),
    ] {
        let error = tool(&shell, "edit", &args, &["--write"]).error();
        assert!(error["remediation"].as_str().expect("a fix").contains("edits=["), "{error}");
    }
}

#[tokio::test]
async fn a_file_changed_since_it_was_read_is_not_edited() {
    let edit = calls("edit", json!({"path": "a.txt", "old_text": "two", "new_text": "2"}));
    let read = || calls("read", json!({"path": "a.txt"}));
    let steps = vec![read(), says("I see."), edit.clone(), read(), edit, says("Done.")];
    let mut pixir = Pixir::new(steps, &[("a.txt", "one\ntwo\n")]);
    pixir.does("look<Enter>").await;
    fs::write(pixir.path("a.txt"), "ONE\ntwo\n").expect("write");
    pixir.does("change it<Enter>").await;
    let log = pixir.log();
    let results: Vec<&Value> = log.iter().filter(|e| e["type"] == "tool_result").map(|e| &e["data"]).collect();
    assert_eq!(results[1]["error"]["code"], "FILE_CHANGED");
    assert!(results[1]["output"].as_str().expect("text").contains("changed since you read it"));
    pixir.does("<A-y>").await;
    assert_eq!(pixir.file("a.txt"), "ONE\n2\n", "read again, it can be edited");
}

#[test]
fn odd_text_is_shown_and_not_skipped_as_binary() {
    let shell = Shell::new(&[
        ("a.log", "ok 1\n\u{9d} bad\nFAILED test_x\n"),
        ("osc.log", "a\n\u{1b}]0;title without end\nERROR: important\n"),
        ("mac.txt", "one\rtwo\rthree"),
        ("notes.txt", "GIF87a and GIF89a: notes on the format\n"),
        ("esc.txt", "\u{1b}[31mred\u{1b}[0m\n"),
    ]);
    assert!(output(&shell, "grep", json!({"pattern": "FAILED|bad|ok"})).contains("a.log:3:FAILED test_x"));
    assert!(output(&shell, "read", json!({"path": "osc.log"})).contains("ERROR: important"));
    assert!(output(&shell, "read", json!({"path": "mac.txt"})).starts_with("     1\tone\rtwo\rthree"));
    assert!(output(&shell, "run", json!({"command": "cat mac.txt"})).starts_with("one\rtwo\rthree"));
    assert!(output(&shell, "read", json!({"path": "notes.txt"})).starts_with("     1\tGIF87a and"));
    let told = output(&shell, "read", json!({"path": "esc.txt"}));
    assert!(told.starts_with("     1\tred\n…[9 bytes of terminal control are not shown]\n"), "{told}");
    // A progress line shows only its last state, as on a terminal.
    assert!(output(&shell, "bash", json!({"command": "printf '10%%\\r100%%\\n'"})).starts_with("100%\n"));
    fs::write(shell.workspace().join("torn.png"), b"\x89PNG\r\n\x1a\n\0\0").expect("write");
    assert_eq!(tool(&shell, "read", &json!({"path": "torn.png"}), &[]).error()["code"], "INVALID_ARGS");
}

#[test]
fn ignore_files_above_the_repository_do_not_apply() {
    let shell = Shell::new(&[
        ("p/.gitignore", "*\n"),
        ("p/w/a.txt", "needle\n"),
        ("p/w/.gitignore", "*.log\n"),
        ("p/w/b.log", "needle\n"),
    ]);
    let inner = shell.workspace().join("p/w");
    assert!(Command::new("git").args(["init", "-q"]).current_dir(&inner).status().expect("git").success());
    let args = json!({"pattern": "needle"}).to_string();
    let ran = shell.run(["tools", "run", "grep", &args, "--workspace", inner.to_str().expect("text")]);
    assert!(ran.stdout.starts_with("a.txt:1:needle\n…[1 ignored file was not searched; "), "{}", ran.stdout);
}

#[test]
fn a_written_file_keeps_its_mode_and_inner_links_are_followed() {
    let shell = Shell::new(&[("run.sh", "old\n"), ("s/a.txt", "a\n")]);
    let at = shell.workspace().join("run.sh");
    fs::set_permissions(&at, fs::Permissions::from_mode(0o2755)).expect("chmod");
    output(&shell, "edit", json!({"path": "run.sh", "old_text": "old", "new_text": "new"}));
    assert_eq!(fs::metadata(&at).expect("there").mode() & 0o7777, 0o2755);
    let target = shell.workspace().canonicalize().expect("there").join("s/a.txt");
    symlink(target, shell.workspace().join("abs")).expect("symlink");
    assert!(output(&shell, "read", json!({"path": "abs"})).starts_with("     1\ta\n"));
}

#[test]
fn odd_files_give_an_error_or_a_page_and_never_block() {
    let shell = Shell::new(&[("a.txt", "a\n"), ("empty.txt", ""), ("endless.txt", "x")]);
    let at = |name: &str| shell.workspace().join(name);
    assert!(Command::new("mkfifo").arg(at("fifo")).status().expect("mkfifo").success());
    let _socket = std::os::unix::net::UnixListener::bind(at("socket")).expect("bind");
    symlink("loop", at("loop")).expect("symlink");
    symlink("/dev/zero", at("zero")).expect("symlink");
    symlink("/etc/passwd", at("passwd")).expect("symlink");
    symlink("nowhere", at("dangling")).expect("symlink");
    fs::create_dir(at("folder")).expect("mkdir");
    fs::write(at("latin1.txt"), b"caf\xe9\n").expect("write");
    fs::File::create(at("sparse")).and_then(|f| f.set_len(1 << 40)).expect("a terabyte of nothing");
    let lines = fs::File::create(at("huge.txt")).expect("create");
    std::io::Write::write_all(&mut &lines, "a line\n".repeat(20_000).as_bytes()).expect("write");
    // Text at its start, ten gigabytes in all.
    lines.set_len(10 << 30).expect("a long file");
    let one = fs::File::create(at("one-line.txt")).expect("create");
    std::io::Write::write_all(&mut &one, "x".repeat(80 << 20).as_bytes()).expect("write");
    // How much of the program itself is in memory differs by tens of megabytes.
    let usual = || peak(&shell, &["tools", "run", "read", r#"{"path": "a.txt"}"#, "--json"]).0;
    let base = (0..3).map(|_| usual()).max().expect("three runs");
    for (path, code) in [
        ("fifo", "NOT_REGULAR_FILE"),
        ("socket", "NOT_REGULAR_FILE"),
        ("folder", "NOT_REGULAR_FILE"),
        ("loop", "READ_FAILED"),
        ("zero", "OUTSIDE_WORKSPACE"),
        ("passwd", "OUTSIDE_WORKSPACE"),
        ("dangling", "NOT_FOUND"),
        ("/dev/zero", "OUTSIDE_WORKSPACE"),
        ("/proc/self/mem", "PERMISSION_DENIED"),
        ("/proc/kmsg", "PERMISSION_DENIED"),
        ("sparse", "BINARY_FILE"),
        ("latin1.txt", ""),
        ("empty.txt", ""),
        ("huge.txt", ""),
        ("one-line.txt", ""),
    ] {
        let began = Instant::now();
        let args = json!({ "path": path }).to_string();
        let (most, ran) = peak(&shell, &["tools", "run", "read", &args, "--json"]);
        // Ten times the expected time, because the machine may be busy.
        assert!(began.elapsed() < Duration::from_secs(10), "{path} took {:?}", began.elapsed());
        assert!(most.saturating_sub(base) < 32 << 10, "{path}: {base} KB and {most} KB");
        if code.is_empty() {
            assert_eq!(ran.code, 0, "{path}: {}", ran.stderr);
            continue;
        }
        let error = ran.error();
        assert_eq!(error["code"], code, "{path}: {error}");
        assert!(!error["remediation"].as_str().expect("a fix").is_empty(), "{path}");
        // Nor can it be written over, where it is no file of ours.
        if ["fifo", "socket", "folder", "loop", "zero", "passwd", "dangling"].contains(&path) {
            let args = json!({ "path": path, "content": "x" });
            let error = tool(&shell, "write", &args, &["--write"]).error();
            assert!(
                ["write_failed", "outside_workspace"].contains(&error["error"]["kind"].as_str().expect("a kind")),
                "{path}: {error}"
            );
        }
    }
    let beyond = tool(&shell, "read", &json!({"path": "huge.txt", "offset": 900_000_000}), &[]).error();
    assert_eq!(beyond["code"], "BINARY_FILE", "{beyond}");
    let page = tool(&shell, "read", &json!({"path": "huge.txt", "offset": 10, "limit": 2}), &[]).document();
    assert!(
        page["result"]["output"]
            .as_str()
            .expect("text")
            .starts_with("    10\ta line\n    11\ta line\n…[lines 10-11; the file is 10GB; next_offset=12]"),
        "{page}"
    );
    // Searching a folder with all of them blocks on none.
    let began = Instant::now();
    for args in [json!({"pattern": "^a$"}), json!({"pattern": "a", "path": "folder"})] {
        tool(&shell, "grep", &args, &[]);
    }
    let found = tool(&shell, "find", &json!({"pattern": "*"}), &[]).document();
    assert!(found["result"]["output"].as_str().expect("text").contains("fifo\n"));
    assert!(began.elapsed() < Duration::from_secs(30));
}

#[test]
fn grep_and_find_agree_with_ripgrep_and_fd() {
    let root = env!("CARGO_MANIFEST_DIR");
    let has = |name: &str| Command::new(name).arg("--version").output().is_ok();
    let fd = ["fdfind", "fd"].into_iter().find(|name| has(name));
    let (true, Some(fd)) = (has("rg"), fd) else { return skip("rg or fd is not installed") };
    let shell = Shell::new(&[]);
    let ours = |name: &str, args: Value| -> Vec<String> {
        let args = args.to_string();
        let ran = shell.run(["tools", "run", name, &args, "--workspace", root, "--json"]);
        // A long answer is cut for a model; outside of a session nothing is saved, so it is asked for in parts.
        let result = ran.document()["result"].clone();
        assert!(result["truncated"].is_null(), "{name} {args}");
        let text = result["output"].as_str().expect("text").to_owned();
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.pop();
        lines
    };
    let theirs = |program: &str, args: &[&str]| -> Vec<String> {
        let out = Command::new(program).args(args).current_dir(root).output().expect("it runs");
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        let mut lines: Vec<String> = text.lines().map(|line| line.trim_start_matches("./").to_owned()).collect();
        lines.sort();
        lines
    };
    let sorted = |mut lines: Vec<String>| {
        lines.sort();
        lines
    };
    // What is said of ignored files.
    let is_note = |line: &String| line.starts_with("…[");
    for (pattern, glob, fold) in [
        ("fn main", "*.rs", false),
        ("overlay::", "*.rs", false),
        (r"^\s*pub fn \w+\(self", "*.rs", false),
        ("subreaper", "*", true),
        ("PIXIR_[L-Q]+", "*.rs", false),
        ("— ", "*.toml", false),
        ("zzz{9}", "*.snap", false),
    ] {
        let mut args = vec!["-n", "--no-heading", "--hidden", "--no-require-git", "--color=never", "-g", "!.git"];
        // With an explicit glob, ripgrep also searches ignored files.
        args.extend(["-g", glob].iter().filter(|_| glob != "*"));
        args.extend(["-i"].iter().filter(|_| fold));
        args.extend(["-e", pattern, "."]);
        let wanted: Vec<String> = theirs("rg", &args);
        let found = ours("grep", json!({"pattern": pattern, "glob": glob, "ignore_case": fold, "limit": 100_000}));
        let found = found.into_iter().filter(|line| !line.starts_with("no match in ") && !is_note(line));
        // Of a long line a part is shown: only its place is compared.
        let place = |line: &str, is_long: fn(&str) -> bool| {
            let mut parts = line.splitn(3, ':');
            let (path, number, text) = (parts.next(), parts.next(), parts.next().unwrap_or_default());
            let text = if is_long(text) { "…" } else { text };
            format!("{}:{}:{text}", path.unwrap_or_default(), number.unwrap_or_default())
        };
        let found = found.map(|line| place(&line, |text| text.starts_with("[column ") || text.ends_with('…')));
        let wanted = wanted.iter().map(|line| place(line, |text| text.chars().count() > 400));
        assert_eq!(sorted(found.collect()), sorted(wanted.collect()), "{pattern}");
    }
    let snapshots = ["*screens__[a-k]*.snap", "*screens__[l-z]*.snap", "*__[a-r]*__*.snap"];
    for pattern in ["[a-l]*.rs", "[m-r]*.rs", "[s-z]*.rs", "Cargo.*", "*.md"].into_iter().chain(snapshots) {
        let wanted = theirs(
            fd,
            &["--hidden", "--type", "f", "--type", "l", "--exclude", ".git", "--color=never", "--glob", pattern],
        );
        let found = ours("find", json!({"pattern": pattern, "limit": 100_000}));
        let found = found.into_iter().filter(|line| !is_note(line)).collect();
        assert_eq!(sorted(found), wanted, "{pattern}");
    }
}

#[test]
fn a_killed_or_failed_write_leaves_the_old_or_the_new_file() {
    let can =
        Command::new("strace").args(["-f", "-o", "/dev/null", "-e", "inject=getpid:error=EIO", "/bin/true"]).output();
    if !can.is_ok_and(|it| it.status.success()) {
        return skip("strace cannot inject faults");
    }
    let (old, new) = ("old line\n".repeat(3_000), "new line\n".repeat(5_000));
    let mut outcomes = BTreeMap::new();
    for call in ["openat", "write", "fchmod", "fsync", "rename,renameat,renameat2"] {
        for (effect, tag) in [("signal=KILL", "killed"), ("error=ENOSPC", "failed")] {
            for when in 1..=3 {
                let shell = Shell::new(&[("a.txt", &old)]);
                let at = shell.workspace().join("a.txt");
                fs::set_permissions(&at, fs::Permissions::from_mode(0o640)).expect("chmod");
                let args = json!({"path": "a.txt", "content": new}).to_string();
                let pixir = shell.command(["tools", "run", "write", &args, "--json", "--write"]);
                let mut command = Command::new("strace");
                let filter = format!("inject={call}:{effect}:when={when}");
                // Only system calls on the workspace folder.
                command.args(["-f", "-qq", "-o", "/dev/null", "-P"]).arg(shell.workspace()).args(["-e", &filter, "--"]);
                command.arg(pixir.get_program()).args(pixir.get_args()).current_dir(shell.workspace());
                command.env("PIXIR_HOME", shell.home()).stdin(Stdio::null());
                let it = ran(command.output().expect("strace runs"));
                let now = shell.read("a.txt");
                assert!(now == old || now == new, "{call} {effect} {when}: {} bytes", now.len());
                assert_eq!(fs::metadata(&at).expect("there").mode() & 0o777, 0o640, "{call} {effect} {when}");
                if it.code == 0 {
                    assert_eq!(now, new, "{call} {effect} {when}: it reported success");
                }
                *outcomes.entry((tag, now == new)).or_insert(0) += 1;
            }
        }
    }
    assert!(outcomes.keys().any(|(_, is_new)| !is_new), "nothing was hit: {outcomes:?}");
}
