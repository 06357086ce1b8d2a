//! Esc, signals and deadlines: in a stream, in a command, at any moment.

use std::os::unix::process::CommandExt as _;
use std::process::Child;
use std::time::{Duration, Instant};

use pixir_core::event::TurnStatus;
use pixir_core::{Event, Fact, Input};
use proptest::prelude::Rng as _;
use proptest::test_runner::{RngAlgorithm, TestRng};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::dialects::Talk;
use super::turns::{assert_balanced, run};
use crate::connected::start;
use crate::driver::{Pixir, says};
use crate::server::{Act, Dialect, HEAD, Part, Reply, Server, begin, call, part, text};
use crate::shell::{Ran, Shell, entries, figures, is_running, mark, ran};
use crate::tier;
use crate::wait;

#[tokio::test]
async fn esc_stops_the_answer_and_keeps_its_text() {
    let step = pixir_core::provider::script::Step { text: "Half an answer".into(), hang: true, ..Default::default() };
    let mut pixir = Pixir::new(vec![step, says("Whole.")], &[]);
    pixir.screen.until_idle().await;
    pixir.screen.keys("go<Enter>").await;
    pixir.screen.until("Half an answer").await;
    pixir.screen.keys("<Esc>").await;
    pixir.screen.until_idle().await;
    let screen = pixir.screen.screen();
    assert!(screen.contains("⋯ the answer was cut off here") && screen.contains("■ interrupted"), "{screen}");
    let screen = pixir.does("again<Enter>").await;
    assert!(screen.contains("Whole."), "{screen}");
    let ends: Vec<_> =
        pixir.log().into_iter().filter(|e| e["type"] == "turn_ended").map(|e| e["data"]["status"].clone()).collect();
    assert_eq!(ends, [json!("interrupted"), json!("completed")]);
}

/// Ctrl+C in the habit of a shell: it interrupts what runs, keeps what is typed, and quits from rest alone.
///
/// Broken build (ce783d9e): the first one only arms the second, which quits in mid-turn.
#[tokio::test]
async fn ctrl_c_interrupts_first_and_quits_from_rest() {
    let hangs = |text: &str| pixir_core::provider::script::Step { text: text.into(), hang: true, ..Default::default() };
    let mut pixir = Pixir::new(vec![hangs("Half an answer"), hangs("Half of another"), says("Whole.")], &[]);
    pixir.screen.until_idle().await;
    for (text, draft) in [("Half an answer", ""), ("Half of another", "a draft")] {
        pixir.screen.keys("go<Enter>").await;
        pixir.screen.until(text).await;
        pixir.screen.keys(draft).await;
        pixir.screen.keys("<C-c>").await;
        pixir.screen.until_idle().await;
        let screen = pixir.screen.screen();
        assert!(screen.contains("■ interrupted") && !screen.contains("again quits"), "{screen}");
        assert!(screen.contains(draft), "what is typed stays:\n{screen}");
    }
    let screen = pixir.does("<C-c>").await;
    assert!(screen.contains("draft put aside") && !screen.contains("again quits"), "{screen}");
    let screen = pixir.does("<C-c>").await;
    assert!(screen.contains("Ctrl+C again quits"), "{screen}");
    let screen = pixir.does("once more<Enter>").await;
    assert!(screen.contains("Whole."), "{screen}");
}

/// Ctrl+C alone leads out of a running Turn, in as many presses as there are things to leave.
///
/// Broken build: a draft that is put aside makes the next press interrupt again.
#[test]
fn ctrl_c_alone_leads_out_of_a_running_turn() {
    for (draft, presses) in [("", 3), ("a draft", 4)] {
        let shell = Shell::new(&[]);
        let mark = mark();
        let server = Server::start(vec![call("c1", "bash", json!({"command": format!("sleep {mark}")}))]);
        let mut terminal = start(&shell, &server, Dialect::Responses, 80, 24);
        terminal.wait_for("Ask pixir");
        terminal.send("/mode auto\r");
        terminal.wait_for("mode: auto");
        terminal.send("go\r");
        wait::until("the command runs", || is_running(&mark));
        terminal.send(draft);
        terminal.wait_for(draft);
        terminal.send_at_once(&"\x03".repeat(presses));
        terminal.end().assert_sane();
        assert!(wait::within(Duration::from_secs(5), || !is_running(&mark)), "a process survived");
    }
}

#[test]
fn an_interrupt_at_any_moment_closes_the_connection() {
    let wanted = tier::cases("an_interrupt_at_any");
    let mut random = TestRng::from_seed(RngAlgorithm::ChaCha, &[5; 32]);
    let mut took = Vec::new();
    for n in 0..wanted {
        let dialect = Dialect::ALL[n % 3];
        let shell = Shell::new(&[]);
        let stalled = |said: String| Reply::Raw(vec![Act::Send((HEAD.to_owned() + &said).into_bytes()), Act::Stall]);
        let args = json!({ "path": "x", "content": "y".repeat(200) });
        let mut half = begin(dialect);
        half.extend(part(dialect, 0, Part::Text("So far. ")));
        half.extend(part(dialect, 1, Part::Call("c", "write", &args)).into_iter().take(2));
        let word = part(dialect, 0, Part::Text("word ")).into_iter().find(|it| it.contains("word")).expect("a word");
        let opened: String = begin(dialect).concat()
            + &part(dialect, 0, Part::Text("So "))[..if dialect == Dialect::Anthropic { 2 } else { 1 }].concat();
        let drip =
            Reply::Raw(vec![Act::Send((HEAD.to_owned() + &opened).into_bytes()), Act::Drip(word.into_bytes(), 0)]);
        let replies = match random.next_u32() % 6 {
            0 => vec![Reply::Raw(vec![Act::Stall])],
            1 => vec![stalled(String::new())],
            2 => vec![stalled(half.concat())],
            3 => vec![drip],
            4 => vec![Reply::Refuse { status: 503, headers: "retry-after: 60\r\n".into(), body: String::new() }],
            _ => vec![call("c1", "bash", json!({ "command": "sleep 60" })), text("never")],
        };
        let server = Server::start(replies);
        let mut talk = Talk::new(&shell, &server, dialect);
        talk.send(Input::Prompt("go".into()));
        server.wait_for(1);
        // Somewhere in the next few milliseconds, or after the next few events.
        wait::lapse(Duration::from_micros(u64::from(random.next_u32() % 12_000)));
        let began = Instant::now();
        talk.send(Input::Interrupt);
        loop {
            if let Event::Recorded(entry) = talk.next()
                && let Fact::TurnEnded(it) = &entry.fact
            {
                took.push(began.elapsed());
                assert_eq!(it.status, TurnStatus::Interrupted);
                break;
            }
        }
        server.wait_until_alone();
    }
    took.sort();
    let at = |share: f64| took[((took.len() - 1) as f64 * share) as usize];
    figures(&format!("QP3: {} interrupts, median {:?}, p99 {:?}, worst {:?}", took.len(), at(0.5), at(0.99), at(1.0)));
}

#[test]
fn esc_stops_a_stream_and_a_command() {
    let shell = Shell::new(&[]);
    let mark = mark();
    let server = Server::start(vec![
        Reply::Stall { text: "Thinking aloud".into() },
        call("c1", "bash", json!({"command": format!("sleep {mark}")})),
        text("Back again."),
    ]);
    let mut terminal = start(&shell, &server, Dialect::Responses, 80, 24);
    terminal.wait_for("Ask pixir");
    terminal.send("/mode auto\r");
    terminal.wait_for("mode: auto");
    terminal.send("go\r");
    terminal.wait_for("Thinking aloud");
    terminal.send("\x1b");
    terminal.wait_for("the answer was cut off here");
    terminal.wait_for("send a message to continue");
    terminal.send("run\r");
    terminal.wait_for("● $ sleep");
    wait::until("the command runs", || is_running(&mark));
    terminal.send("\x1b");
    terminal.wait_for("send a message to continue");
    assert!(wait::within(Duration::from_secs(5), || !is_running(&mark)), "a process survived");
    terminal.send("and now\r");
    terminal.wait_for("Back again.");
    terminal.send("\x04");
    terminal.end().assert_sane();
}

fn started(shell: &Shell, server: &Server, dialect: Dialect, args: &[&str]) -> Child {
    let mut all = server.flags(dialect);
    all.extend(args.iter().map(|a| (*a).to_owned()));
    shell.command(all).process_group(0).spawn().expect("it starts")
}

fn signalled(child: Child, signal: Signal) -> Ran {
    let id = Pid::from_raw(i32::try_from(child.id()).expect("a pid")).expect("a pid");
    kill_process(id, signal).expect("the signal is sent");
    ran(child.wait_with_output().expect("it ends"))
}

#[test]
fn a_signal_in_mid_stream_gives_exactly_one_result() {
    for (signal, exit) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        for dialect in Dialect::ALL {
            let shell = Shell::new(&[]);
            let server = Server::start(vec![Reply::Stall { text: "So far".into() }]);
            let child = started(&shell, &server, dialect, &["--headless", "--format", "jsonl", "x"]);
            server.wait_for(1);
            wait::until("the turn is on record", || !shell.logs().is_empty());
            let ran = signalled(child, signal);
            let lines = ran.lines();
            assert_eq!((ran.code, lines.iter().filter(|l| l["type"] == "result").count()), (exit, 1), "{}", ran.stderr);
            let last = lines.last().expect("lines");
            assert_eq!(
                (last["type"].as_str(), last["status"].as_str(), last["exit_code"].as_i64()),
                (Some("result"), Some("interrupted"), Some(i64::from(exit)))
            );
            let error = ran.error();
            assert_eq!(
                (&error["exit_code"], &error["remediation"]),
                (&json!(exit), &last["resume_command"]),
                "{error}"
            );
        }
    }
}

#[test]
fn an_interrupt_in_mid_command_leaves_no_process() {
    for dialect in Dialect::ALL {
        let shell = Shell::new(&[]);
        let mark = mark();
        // Children that ignore SIGTERM, one of them in the background.
        let command = format!("trap '' TERM; sleep {mark}1 & sleep {mark}2; sleep {mark}3");
        let server =
            Server::start(vec![call("c1", "bash", json!({"command": command, "timeout": 600})), text("On again.")]);
        let child = started(&shell, &server, dialect, &["--headless", "--json", "--write", "x"]);
        wait::until("the command runs", || is_running(&format!("sleep\0{mark}2")));
        let ran = signalled(child, Signal::INT);
        assert_eq!((ran.code, ran.document()["status"].as_str()), (130, Some("interrupted")), "{}", ran.stderr);
        wait::until("no process of the command is left", || !is_running(&mark));

        let mut args =
            vec!["resume".to_owned(), "--last".to_owned(), "go on".to_owned(), "--headless".into(), "--json".into()];
        args.extend(server.flags(dialect));
        assert_eq!(shell.run(args).document()["output"], "On again.");
        assert_balanced(dialect, &server.bodies()[1]);
    }
}

#[test]
fn an_interrupt_while_a_command_starts_leaves_no_process() {
    for round in 0..40 {
        let shell = Shell::new(&[]);
        let mark = mark();
        let command = format!("trap '' TERM; sleep {mark}1 & sleep {mark}2");
        let server = Server::start(vec![call("c1", "bash", json!({"command": command}))]);
        let child = started(&shell, &server, Dialect::Responses, &["--headless", "--json", "--write", "x"]);
        server.wait_for(1);
        // From before the command starts to well after.
        let has_recorded =
            |kind: &str| shell.logs().first().is_some_and(|log| entries(log).iter().any(|entry| entry["type"] == kind));
        match round % 5 {
            0 => {}
            1 => wait::until("the call is recorded", || has_recorded("tool_call")),
            2 => wait::until("the call is allowed", || has_recorded("permission_decision")),
            3 => wait::until("its shell runs", || is_running(&mark)),
            _ => wait::until("its last command runs", || is_running(&format!("sleep\0{mark}2"))),
        }
        let ran = signalled(child, Signal::INT);
        assert_eq!(ran.code, 130, "{}", ran.stderr);
        wait::until("no process of the command is left", || !is_running(&mark));
    }
}

#[test]
fn a_deadline_stops_a_running_command() {
    let shell = Shell::new(&[]);
    let mark = mark();
    let server = Server::start(vec![call("c1", "bash", json!({"command": format!("sleep {mark}")}))]);
    let ran = run(&shell, &server, Dialect::Chat, &["--headless", "--json", "--write", "--deadline", "1", "x"]);
    let document = ran.document();
    assert_eq!(
        (ran.code, document["status"].as_str(), document["code"].as_str()),
        (14, Some("incomplete"), Some("DEADLINE_REACHED"))
    );
    wait::until("no process of the command is left", || !is_running(&mark));
}
