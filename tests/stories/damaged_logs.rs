//! Logs that are torn, damaged or odd: shown, verified, repaired.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use pixir_core::event::HeadMoved;
use serde_json::json;

use super::sessions::{done, session};
use crate::driver::{Pixir, log_of, say};
use crate::server::{Dialect, Server, text};
use crate::shell::{Ran, Shell, entries, ran, skip};
use crate::wait;

#[tokio::test]
async fn a_torn_last_line_hides_no_entry_before_it() {
    let mut pixir = Pixir::resumed(80, 24, |folder, workspace| {
        let mut log = log_of(folder, workspace);
        say(&mut log, 1, "a question", "An answer.");
        log.establish().expect("establish");
        let path = log.path().to_owned();
        drop(log);
        let mut file = fs::OpenOptions::new().append(true).open(path).expect("open");
        file.write_all(br#"{"v":1,"id":"0190163d-8694-739b-aea5-966c26f8ad91","session_id":"x","seq":3,"ts":"20"#)
            .expect("write");
    });
    pixir.screen.until_idle().await;
    let screen = pixir.screen.screen();
    assert!(screen.contains("❯ a question") && screen.contains("An answer."), "{screen}");
}

#[tokio::test]
async fn a_head_moved_to_itself_or_nowhere_does_not_loop() {
    for to_seq in [Some(3), Some(4), Some(9_999), None] {
        let mut pixir = Pixir::resumed(80, 24, |folder, workspace| {
            let mut log = log_of(folder, workspace);
            say(&mut log, 1, "a question", "An answer.");
            log.append(None, HeadMoved { to_seq, reason: "rewind".into() }.into()).expect("append");
            say(&mut log, 2, "another", "Another answer.");
            log.establish().expect("establish");
        });
        pixir.screen.until_idle().await;
        let screen = pixir.does("<C-t><Esc>").await;
        assert!(screen.contains("Another answer."), "{to_seq:?}:\n{screen}");
    }
}

/// Changes one byte of the n-th line of a Log.
fn damage(log: &Path, line: usize, from: &str, to: &str) {
    let text = fs::read_to_string(log).expect("read");
    let lines: Vec<String> = text
        .lines()
        .enumerate()
        .map(|(n, l)| if n + 1 == line { l.replacen(from, to, 1) } else { l.to_owned() } + "\n")
        .collect();
    assert_ne!(lines.concat(), text, "it was changed");
    fs::write(log, lines.concat()).expect("write");
}

#[test]
fn a_damaged_session_opens_read_only_and_is_repaired() {
    let shell = Shell::new(&[("a.txt", "alpha\n")]);
    let id = session(&shell);
    let log = shell.logs()[0].clone();
    assert_eq!(done(&shell.run(["sessions", "verify", "last", "--json"]))["sessions"][0]["damage"], json!([]));
    assert!(!done(&shell.run(["sessions", "repair", "last", "--json"]))["needed"].as_bool().expect("a flag"));
    damage(&log, 4, "I look", "I lock");
    let damaged = fs::read(&log).expect("read");
    let verified = shell.run(["sessions", "verify", "--all", "--json"]);
    assert_eq!((verified.code, &verified.document()["sessions"][0]["damage"][0]["line"]), (1, &json!(4)));

    let refused = shell.run(["resume", &id, "go on", "--headless", "--json"]);
    assert_eq!(refused.error()["code"], "CORRUPT_LOG_LINE");
    let fix = refused.error()["remediation"].as_str().expect("a fix").to_owned();
    assert!(fix.starts_with(&format!("pixir sessions repair {id} --dry-run")), "{fix}");
    let diagnosis = shell.run(["diagnose", "--json"]);
    assert_eq!(diagnosis.code, 1);
    assert_eq!(diagnosis.document()["next_actions"][0], json!(format!("pixir sessions repair {id} --dry-run")));
    assert!(shell.run(["replay"]).stdout.contains("I change it."), "what can be read is shown");

    let plan = done(&shell.run(["sessions", "repair", &id, "--dry-run", "--json"]));
    assert_eq!(fs::read(&log).expect("read"), damaged);
    let repaired = done(&shell.run(["sessions", "repair", &id, "--json"]));
    assert_eq!(repaired["repair"], plan["repair"], "the repair equals its preview");
    let quarantine = PathBuf::from(repaired["repair"]["quarantine"].as_str().expect("a path"));
    assert_eq!(fs::read(quarantine).expect("it is kept"), damaged);
    assert_eq!(done(&shell.run(["sessions", "verify", &id, "--json"]))["ok"], true);
    assert_eq!(entries(&log)[3]["type"], "log_repaired");
    let server = Server::start(vec![text("On again.")]);
    let mut args = vec!["resume".to_owned(), id, "go on".into(), "--headless".into(), "--json".into()];
    args.extend(server.flags(Dialect::Chat));
    assert_eq!(done(&shell.run(args))["output"], "On again.");
    done(&shell.run(["undo", "--json"]));
    assert_eq!(shell.read("a.txt"), "alpha\n", "what the log still knows can still be undone");
}

/// Broken build: the words of the reader of JSON, which name types that only the authors know.
#[test]
fn what_is_wrong_with_a_damaged_line_is_told_without_names_of_types() {
    let shell = Shell::new(&[("a.txt", "alpha\n")]);
    let id = session(&shell);
    let log = shell.logs()[0].clone();
    let intact = fs::read_to_string(&log).expect("read");
    let told = [
        ("\"id\":\"", "\"id\":\"#", "it is not an entry: a field is missing, or its value does not fit"),
        ("\"type\":", "\"type\"", "it is not JSON"),
        ("\"ts\":\"", "\"ts\":\"x", "it is not an entry: a field is missing, or its value does not fit"),
    ];
    for (from, to, reason) in told {
        fs::write(&log, &intact).expect("write");
        damage(&log, 2, from, to);
        let verified = shell.run(["sessions", "verify", &id]);
        let all = format!("{}{}", verified.stdout, verified.stderr);
        assert!(all.contains(reason) && !all.contains("UUID") && !all.contains("expected"), "{to}:\n{all}");
    }
}

#[test]
fn an_unreadable_session_is_still_listed() {
    for broken in ["", "\u{1}\u{2}garbage\n", "{\"v\":1"] {
        let shell = Shell::new(&[("a.txt", "alpha\n")]);
        let id = session(&shell);
        fs::write(&shell.logs()[0], broken).expect("write");
        let list = done(&shell.run(["sessions", "list", "--json"]));
        assert_eq!(
            (&list["sessions"][0]["id"], &list["sessions"][0]["damaged"]),
            (&json!(id), &json!(true)),
            "{broken:?}"
        );
        assert_eq!(shell.run(["sessions", "verify", &id, "--json"]).code, 1);
        let resumed = shell.run(["resume", &id, "x", "--headless", "--json"]);
        assert_eq!(resumed.error()["code"], "CORRUPT_LOG_LINE");
        let repair = shell.run(["sessions", "repair", &id, "--json"]);
        assert_eq!(repair.error()["code"], "CORRUPT_LOG_LINE");
        assert!(repair.error()["remediation"].as_str().expect("a fix").contains("pixir sessions delete"));
        done(&shell.run(["sessions", "delete", &id, "--yes", "--json"]));
    }
}

#[test]
fn a_lost_first_line_costs_only_its_own_facts() {
    let shell = Shell::new(&[("a.txt", "alpha\n")]);
    let id = session(&shell);
    let log = shell.logs()[0].clone();
    let text = fs::read_to_string(&log).expect("read");
    fs::write(&log, text.split_once('\n').expect("lines").1).expect("write");
    assert_eq!(
        shell.run(["diagnose", "--json"]).document()["next_actions"][0],
        json!(format!("pixir sessions repair {id} --dry-run"))
    );
    done(&shell.run(["sessions", "repair", &id, "--json"]));
    assert_eq!(entries(&log).len(), text.lines().count(), "a note stands in its place");
    assert_eq!(shell.run(["diagnose", "--json"]).code, 0);
    done(&shell.run(["undo", &id, "--json"]));
    assert_eq!(shell.read("a.txt"), "alpha\n");
}

/// What is named like a Log and is no file is skipped in words, and never opened.
///
/// Broken build: `regular::open` opens what it finds; then every row hangs.
#[test]
fn special_files_named_like_logs_are_skipped_with_a_notice() {
    for kind in ["fifo", "zero", "socket", "folder", "loop"] {
        let shell = Shell::new(&[("a.txt", "alpha\n")]);
        let id = session(&shell);
        let folder = shell.logs()[0].parent().expect("a folder").to_owned();
        let odd = "20991231T235959-abcdef";
        let path = folder.join(format!("{odd}.ndjson"));
        let socket;
        match kind {
            "fifo" => assert!(Command::new("mkfifo").arg(&path).status().expect("mkfifo runs").success()),
            "zero" => symlink("/dev/zero", &path).expect("link"),
            "socket" => {
                socket = std::os::unix::net::UnixListener::bind(&path).expect("a socket");
                drop(socket);
            }
            "folder" => fs::create_dir(&path).expect("mkdir"),
            _ => symlink(&path, &path).expect("link"),
        }
        let run = |args: &[&str]| ends(&shell, args);
        let listed = run(&["sessions", "list"]);
        assert!(listed.code == 0 && listed.stdout.contains(&id), "{kind}: {}", listed.stderr);
        assert!(listed.stderr.contains(odd) && listed.stderr.contains("skipped"), "{kind}: {}", listed.stderr);
        let document = done(&run(&["sessions", "list", "--json"]));
        assert_eq!(document["skipped"].as_array().map(Vec::len), Some(1), "{kind}");
        for args in [&["sessions", "show", odd][..], &["sessions", "verify", odd], &["resume", odd, "x", "--headless"]]
        {
            let ran = run(args);
            assert!(ran.code > 0 && ran.stderr.contains("code:"), "{kind}, {args:?}: {}", ran.stderr);
        }
        let greeting = shell.aside("greeting.json", r#"{ "steps": [ { "text": "Hello." } ] }"#);
        let provider = format!("script:{}", greeting.display());
        let on = run(&["resume", "--last", "x", "--headless", "--provider", &provider]);
        assert_eq!((on.code, on.stdout.trim()), (0, "Hello."), "{kind}: {}", on.stderr);
        for args in
            [&["sessions", "verify", "--all"][..], &["sessions", "list", "--all"], &["gc", "--dry-run"], &["diagnose"]]
        {
            assert_eq!(run(args).code, 0, "{kind}, {args:?}");
        }
    }
}

/// A FIFO or a device in place of the index of Sessions is not opened either.
///
/// Broken build: `index::kept` reads the file without looking at its kind.
#[test]
fn a_special_file_in_place_of_the_index_does_not_hang() {
    let shell = Shell::new(&[("a.txt", "alpha\n")]);
    let id = session(&shell);
    let index = shell.logs()[0].with_file_name("index.jsonl");
    fs::remove_file(&index).expect("there is one");
    assert!(Command::new("mkfifo").arg(&index).status().expect("mkfifo runs").success());
    let listed = ends(&shell, &["sessions", "list"]);
    assert!(listed.code == 0 && listed.stdout.contains(&id), "{}", listed.stderr);
}

fn ends(shell: &Shell, args: &[&str]) -> Ran {
    let mut child = shell.command(args).spawn().expect("it starts");
    let has_ended = wait::within(wait::PATIENCE, || child.try_wait().expect("it can be asked").is_some());
    if !has_ended {
        let _ = child.kill();
    }
    let ran = ran(child.wait_with_output().expect("it ends"));
    assert!(has_ended, "{args:?} hangs");
    ran
}

/// Runs pixir as a user who owns nothing, because the superuser may read and write everything. None where that is
/// impossible; then the test is skipped.
fn as_another_user(shell: &Shell, args: &[&str]) -> Option<Ran> {
    let plain = shell.command(args);
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
    command.arg(plain.get_program()).args(plain.get_args()).current_dir(shell.workspace()).env_clear();
    command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let Ok(output) = command.output() else {
        skip("there is no setpriv");
        return None;
    };
    let ran = ran(output);
    if ran.stderr.contains("setpriv:") {
        skip("this user cannot become another one");
        return None;
    }
    Some(ran)
}

/// A Log or a folder that cannot be read is named, and everything else is checked and listed all the same.
///
/// Broken builds: `verify` returns the first error; `Store::folders` leaves out what it cannot read.
#[test]
fn what_cannot_be_read_does_not_hide_the_rest() {
    let shell = Shell::new(&[("a.txt", "alpha\n")]);
    let unread = session(&shell);
    let log = shell.logs()[0].clone();
    shell.write("a.txt", "alpha\n");
    let whole = session(&shell);
    let folder = shell.home().join("sessions/locked-00000000");
    fs::create_dir(&folder).expect("mkdir");
    let opened = Command::new("chmod").args(["-R", "a+rX"]).arg(shell.home().parent().expect("a folder")).status();
    assert!(opened.expect("chmod runs").success());
    fs::set_permissions(&log, fs::Permissions::from_mode(0o0)).expect("chmod");
    let Some(verified) = as_another_user(&shell, &["sessions", "verify", "--all", "--json"]) else { return };
    let document = verified.document();
    let row = |id: &str| {
        let rows = document["sessions"].as_array().expect("rows");
        rows.iter().find(|row| row["session_id"] == id).expect("a row").clone()
    };
    assert_eq!((verified.code, &document["ok"]), (9, &json!(false)), "one of two can be read");
    assert_eq!((&row(&whole)["ok"], &row(&unread)["ok"]), (&json!(true), &json!(false)));
    assert_eq!(row(&unread)["error"]["code"], "LOG_READ_FAILED");
    let Some(plain) = as_another_user(&shell, &["sessions", "verify", "--all"]) else { return };
    assert!(plain.stdout.contains(&format!("UNREAD   {unread}")), "{}", plain.stdout);
    assert!(plain.stdout.contains(&format!("ok       {whole}")), "{}", plain.stdout);
    let Some(one) = as_another_user(&shell, &["sessions", "verify", &unread, "--json"]) else { return };
    assert_eq!((one.code, one.error()["code"].clone()), (1, json!("LOG_READ_FAILED")));

    fs::set_permissions(&folder, fs::Permissions::from_mode(0o0)).expect("chmod");
    for args in [&["sessions", "verify", "--all"][..], &["sessions", "list", "--all"]] {
        let Some(ran) = as_another_user(&shell, args) else { return };
        assert_eq!(ran.code, if args[1] == "verify" { 9 } else { 1 }, "{args:?}: {}", ran.stderr);
        assert!(ran.stdout.contains(&whole) && ran.stderr.contains("locked-00000000"), "{args:?}: {}", ran.stderr);
    }
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).expect("chmod");
}

/// A Session whose Log may not be written opens to look at, and says why.
///
/// Broken build: `Harness::resume` returns the error of the open.
#[test]
fn a_session_that_may_not_be_written_opens_to_look_at() {
    for (file, folder) in [(0o444, 0o755), (0o444, 0o555)] {
        let shell = Shell::new(&[("a.txt", "alpha\n")]);
        let id = session(&shell);
        let log = shell.logs()[0].clone();
        // The superuser may write everything, so the command runs as a user who owns nothing.
        let opened = Command::new("chmod").args(["-R", "a+rX"]).arg(shell.home().parent().expect("a folder")).status();
        assert!(opened.expect("chmod runs").success());
        let at = log.parent().expect("a folder");
        fs::set_permissions(&log, fs::Permissions::from_mode(file)).expect("chmod");
        fs::set_permissions(at, fs::Permissions::from_mode(folder)).expect("chmod");
        let before = fs::read(&log).expect("read");
        let Some(ran) = as_another_user(&shell, &["resume", &id, "x", "--headless", "--json"]) else { return };
        assert_eq!(ran.code, 11, "{}", ran.stderr);
        assert_eq!(ran.error_after_chatter()["code"], "SESSION_READ_ONLY", "{}", ran.stderr);
        assert!(ran.stderr.contains("writable") && ran.stderr.contains("--read-only"), "{}", ran.stderr);
        assert_eq!(fs::read(&log).expect("read"), before);
        fs::set_permissions(at, fs::Permissions::from_mode(0o755)).expect("chmod");
    }
}

/// A Log whose line ends a program has converted is readable as it is, and whole after a repair.
///
/// Broken build: `Reader::line` takes the CR for a part of the line.
#[test]
fn a_log_with_converted_line_ends_is_repaired() {
    let shell = Shell::new(&[("a.txt", "alpha\n")]);
    let id = session(&shell);
    let log = shell.logs()[0].clone();
    let text = fs::read_to_string(&log).expect("read");
    fs::write(&log, text.replace('\n', "\r\n")).expect("write");
    let shown = done(&shell.run(["sessions", "show", &id, "--json"]));
    assert_eq!(shown["session"]["damaged"], json!(true));
    let repaired = done(&shell.run(["sessions", "repair", &id, "--json"]));
    assert_eq!(repaired["repair"]["kept"], json!(text.lines().count()), "{repaired}");
    assert_eq!(shell.run(["sessions", "verify", &id]).code, 0);
    let whole = entries(&log);
    let kept: Vec<_> =
        text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON")).collect();
    for (before, after) in kept.iter().zip(&whole) {
        assert_eq!((&before["seq"], &before["data"]), (&after["seq"], &after["data"]));
    }
    done(&shell.run(["undo", &id, "--json"]));
    assert_eq!(shell.read("a.txt"), "alpha\n");
}
