//! Logs that are torn, damaged or odd: shown, verified, repaired.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use pixir_core::event::HeadMoved;
use serde_json::json;

use super::sessions::{done, session};
use crate::driver::{Pixir, log_of, say};
use crate::server::{Dialect, Server, text};
use crate::shell::{Shell, entries};

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
        assert!(repair.error()["remediation"].as_str().expect("a fix").starts_with("pixir sessions delete"));
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
