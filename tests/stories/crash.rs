//! `kill -9` and racing writers: no acknowledged Entry is lost.

use std::io::{BufRead as _, BufReader};
use std::process::Child;
use std::time::Instant;

use pixir_core::event::SessionId;
use pixir_core::log::Log;
use serde_json::{Value, json};

use crate::pty::Terminal;
use crate::server::{Dialect, Reply, Server, call, text};
use crate::shell::{Shell, entries, figures};
use crate::tier;
use crate::wait::{self, PATIENCE};

#[test]
fn kill_9_loses_no_acknowledged_entry() {
    let kills = tier::cases("kill_9");
    let mut moments = 0;
    let mut seed = 0x2545_f491_4f6c_dd1d_u64;
    for round in 0..kills {
        let shell = Shell::new(&[("a.txt", "alpha\n")]);
        let script = r#"{ "steps": [
            { "text": "First I look.", "calls": [ { "name": "read", "args": { "path": "a.txt" } }, { "name": "bash", "args": { "command": "echo $((6*7))" } } ] },
            { "text": "Now I change it.", "calls": [ { "name": "edit", "args": { "path": "a.txt", "old_text": "alpha", "new_text": "omega" } } ] },
            { "text": "Done." } ] }"#;
        let path = shell.aside("script.json", script);
        let provider = format!("script:{}", path.display());
        let mut child = shell
            .command(["--provider", &provider, "--headless", "--write", "--format", "jsonl", "x"])
            .spawn()
            .expect("it starts");
        // A line that was printed was acknowledged. After a random number of them the process is killed.
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        let kill_after = seed % 40;
        let mut acknowledged: Vec<Value> = Vec::new();
        let mut lines = BufReader::new(child.stdout.take().expect("stdout")).lines();
        for _ in 0..kill_after {
            let Some(Ok(line)) = lines.next() else { break };
            acknowledged.push(serde_json::from_str(&line).expect("a whole line"));
        }
        // In the middle of a write, too: when the Log has grown by a random number of bytes, or when the process has
        // ended.
        let log_length = || shell.logs().first().and_then(|log| log.metadata().ok()).map_or(0, |it| it.len());
        let enough = log_length() + (seed >> 32) % 600;
        let ended = |child: &mut Child| child.try_wait().expect("a child").is_some();
        wait::until("the log has grown", || log_length() >= enough || ended(&mut child));
        child.kill().expect("kill -9");
        // Lines still in the pipe were acknowledged too; the last may be cut.
        acknowledged.extend(lines.map_while(Result::ok).filter_map(|line| serde_json::from_str(&line).ok()));
        child.wait().expect("it is gone");
        moments += 1;

        let Some(log) = shell.logs().first().cloned() else {
            assert!(
                acknowledged.iter().all(|l| l["seq"].is_null()),
                "round {round}: entries were acknowledged and there is no log"
            );
            continue;
        };
        // Reopened for the next Turn: repaired, balanced, and complete.
        let server = Server::start(vec![text("On again.")]);
        let mut args = vec![
            "resume".to_owned(),
            log.file_stem().expect("a name").to_string_lossy().into_owned(),
            "go on".to_owned(),
            "--headless".into(),
            "--json".into(),
        ];
        args.extend(server.flags(Dialect::Chat));
        let ran = shell.run(args);
        assert_eq!(ran.code, 0, "round {round}, after {kill_after} lines: {}", ran.stderr);
        let after = entries(&log);
        for line in acknowledged.iter().filter(|l| l["seq"].is_u64()) {
            let seq = usize::try_from(line["seq"].as_u64().expect("a number")).expect("small");
            assert_eq!(after[seq]["id"], line["id"], "round {round}: the acknowledged entry {seq} is lost");
        }
        let started = after.iter().filter(|e| e["type"] == "user_message").count();
        let ended = after.iter().filter(|e| e["type"] == "turn_ended").count();
        assert_eq!(started, ended, "round {round}: every turn has exactly one end");
        assert_balanced(&server.bodies()[0], round);
    }
    assert_eq!(moments, kills);
}

fn assert_balanced(body: &Value, round: usize) {
    let messages = body["messages"].as_array().expect("messages");
    let calls: Vec<&Value> =
        messages.iter().flat_map(|m| m["tool_calls"].as_array().into_iter().flatten()).map(|c| &c["id"]).collect();
    let results: Vec<&Value> = messages.iter().filter(|m| m["role"] == "tool").map(|m| &m["tool_call_id"]).collect();
    assert_eq!(calls, results, "round {round}");
}

#[test]
fn a_locked_session_names_the_process_that_holds_it() {
    let shell = Shell::new(&[]);
    let server = Server::start(vec![text("one"), call("c1", "bash", json!({"command": "sleep 30"}))]);
    let mut first = server.flags(Dialect::Chat);
    first.extend(["--headless", "--json", "x"].map(str::to_owned));
    let id = shell.run(first).document()["session_id"].as_str().expect("an id").to_owned();
    let mut args = vec!["resume".to_owned(), id.clone(), "y".into(), "--headless".into(), "--write".into()];
    args.extend(server.flags(Dialect::Chat));
    let mut holder = shell.command(&args).spawn().expect("it starts");
    server.wait_for(2);
    let second = shell.run(["resume", &id, "z", "--headless", "--json"]);
    assert_eq!(second.error()["code"], "SESSION_LOCKED");
    assert_eq!(second.error()["error"]["details"]["pid"], holder.id());
    holder.kill().expect("kill -9");
    holder.wait().expect("it is gone");
    let mut args = vec!["resume".to_owned(), id, "z".into(), "--headless".into(), "--json".into()];
    args.extend(Server::start(vec![text("free")]).flags(Dialect::Chat));
    assert_eq!(shell.run(args).document()["output"], "free", "the lock went with its holder");
}

#[test]
fn of_eight_writers_one_wins_and_its_death_frees_the_log() {
    let rounds = tier::cases("of_eight");
    let shell = Shell::new(&[]);
    let server = Server::start(vec![text("one")]);
    let mut first = server.flags(Dialect::Chat);
    first.extend(["--headless", "--json", "x"].map(str::to_owned));
    let id = shell.run(first).document()["session_id"].as_str().expect("an id").to_owned();
    let mut waited = Vec::new();
    for round in 0..rounds {
        let server = Server::start(vec![Reply::Stall { text: "held".into() }]);
        let mut args =
            vec!["resume".to_owned(), id.clone(), "y".into(), "--headless".into(), "--format".into(), "jsonl".into()];
        args.extend(server.flags(Dialect::Chat));
        let mut racers: Vec<Child> = (0..8).map(|_| shell.command(&args).spawn().expect("it starts")).collect();
        // The losers end by themselves; the winner waits for its model.
        server.wait_for(1);
        let only_one = || {
            let mut alive = (0..8).filter(|n| racers[*n].try_wait().expect("a child").is_none());
            alive.next().filter(|_| alive.next().is_none())
        };
        let winner = wait::found(PATIENCE, only_one).unwrap_or_else(|| panic!("round {round}: several still run"));
        for (n, mut racer) in racers.drain(..).enumerate() {
            if n == winner {
                racer.kill().expect("kill -9");
            }
            let lines = crate::shell::ran(racer.wait_with_output().expect("it ends"));
            if n != winner {
                assert!(lines.stdout.contains("SESSION_LOCKED"), "round {round}: {}", lines.stdout);
            }
        }
        let began = Instant::now();
        let place = log_of(&shell, &id);
        let (log, _) = Log::open(&place, SessionId::parse(&id).expect("an id")).expect("free at the first try");
        waited.push(began.elapsed());
        drop(log);
    }
    waited.sort();
    figures(&format!(
        "takeover after kill -9: median {:?}, worst {:?} of {rounds}",
        waited[rounds / 2],
        waited[rounds - 1]
    ));
    let turns = entries(&log_of(&shell, &id)).iter().filter(|e| e["type"] == "user_message").count();
    assert_eq!(turns, rounds + 1, "each round had one writer");
}

fn log_of(shell: &Shell, id: &str) -> std::path::PathBuf {
    shell.logs().into_iter().find(|path| path.to_string_lossy().contains(id)).expect("its log")
}

/// Broken build: one that ends with `SESSION_LOCKED`, or starts a new Session in place of the one that was asked for.
#[test]
fn a_session_that_another_process_writes_opens_for_reading() {
    let shell = Shell::new(&[]);
    let server = Server::start(vec![text("It is forty-two."), call("c1", "bash", json!({"command": "sleep 300"}))]);
    let mut first = server.flags(Dialect::Chat);
    first.extend(["--headless", "--json", "x"].map(str::to_owned));
    let id = shell.run(first).document()["session_id"].as_str().expect("an id").to_owned();
    let mut args = vec!["resume".to_owned(), id.clone(), "y".into(), "--headless".into(), "--write".into()];
    args.extend(server.flags(Dialect::Chat));
    let mut holder = shell.command(&args).spawn().expect("it starts");
    server.wait_for(2);
    let flags = server.flags(Dialect::Chat);
    for way in ["resume", "/resume", "--inline"] {
        let mut args: Vec<&str> = flags.iter().map(String::as_str).collect();
        match way {
            "/resume" => {}
            "resume" => args.extend(["resume", &id]),
            inline => args.extend([inline, "resume", &id]),
        }
        let mut terminal = Terminal::start(&shell, &args, 110, 30);
        if way == "/resume" {
            terminal.wait_for("Ask pixir");
            terminal.send(&format!("/resume {id}\r"));
        }
        terminal.wait_for("It is forty-two.");
        terminal.wait_for(&format!("open for writing by process {}", holder.id()));
        let screen = terminal.wait_for("Read-only here; /fork continues in a copy");
        assert!(screen.contains("so it is read-only here"), "{way}: {screen}");
        // A message that cannot be sent is not lost.
        terminal.send("what then?\r");
        terminal.wait_for("so the message stays where it is");
        terminal.wait_for("❯ what then?");
        terminal.send("\x15/fork\r");
        terminal.wait_for("this is the fork");
        terminal.wait_for("Ask pixir");
        terminal.send("\x04");
        let left = terminal.end();
        left.assert_sane();
        assert!(
            !left.screen.contains(&format!("pixir resume {id}")),
            "the fork is what can be resumed: {}",
            left.screen
        );
    }
    assert_eq!(shell.logs().len(), 4, "the Session and three forks");
    holder.kill().expect("kill -9");
    holder.wait().expect("it is gone");
}
