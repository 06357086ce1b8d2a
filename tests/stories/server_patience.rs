//! Answers that break off, servers that are busy for a while, and models that take over.

use std::process::Stdio;

use pixir_core::event::{AssistantMessage, Cost, TurnEnded, TurnStatus, Usage, UserMessage};
use serde_json::{Value, json};

use crate::connected::{ask, start};
use crate::driver::{Pixir, log_of};
use crate::pty::Terminal;
use crate::server::{Act, Dialect, HEAD, Part, Reply, Server, answer, call, opening, part, raw, said, text};
use crate::shell::{Ran, Shell, entries, ran};

/// The first words of an answer, then the end of the connection.
fn cut(dialect: Dialect, words: &str) -> Reply {
    raw(&opening(dialect, words))
}

fn refuse(status: u16, headers: &str, message: &str) -> Reply {
    let body = json!({ "error": { "message": message } }).to_string();
    Reply::Refuse { status, headers: headers.into(), body }
}

fn retries(ran: &Ran) -> Vec<Value> {
    ran.lines().into_iter().filter(|it| it["type"] == "retry_scheduled").map(|it| it["data"].clone()).collect()
}

fn stream(shell: &Shell, server: &Server, dialect: Dialect, more: &[&str]) -> Ran {
    let mut args = server.flags(dialect);
    args.extend(["--headless", "--format", "jsonl", "--write", "--deadline", "60", "go"].map(str::to_owned));
    args.extend(more.iter().map(|it| (*it).to_owned()));
    shell.run(args)
}

/// Broken build: one that retries only before the first delta. It ends each Turn with `partial_failed`, exit 8. One that
/// sends the cut text back makes the model continue it, or say it twice.
#[test]
fn an_answer_that_breaks_off_is_asked_for_again_and_its_part_is_kept() {
    let args = json!({ "path": "x.txt", "content": "never written" });
    for dialect in Dialect::ALL {
        let half_call: String = part(dialect, 0, Part::Call("c9", "write", &args))[..1].concat();
        let half_thought: String = {
            let events = part(dialect, 0, Part::Reasoning("I think so. "));
            events[..events.len().min(2)].concat()
        };
        let malformed = opening(dialect, "Half a ") + "data: {nope\n\n";
        for (what, broken, kept) in [
            ("text", opening(dialect, "Half a sentence"), Some("Half a sentence")),
            ("malformed", malformed, Some("Half a ")),
            ("reasoning", half_thought, None),
            ("call", half_call, None),
            ("malformed first event", "data: {nope\n\n".to_owned(), None),
        ] {
            let shell = Shell::new(&[]);
            shell.configure("[requests]\nfirst_wait = 0.01\n");
            let whole = said(dialect, &[Part::Text("All of it.")]);
            let server = Server::start(vec![raw(&broken), raw(&broken), whole, text("Next.")]);
            let ran = stream(&shell, &server, dialect, &[]);
            assert_eq!(ran.code, 0, "{what} {dialect:?}: {}", ran.stderr);
            let bodies = server.bodies();
            assert_eq!((bodies.len(), &bodies[0], &bodies[1]), (3, &bodies[1], &bodies[2]), "{what} {dialect:?}");
            let log = entries(&shell.logs()[0]);
            let texts: Vec<(bool, &Value)> = log
                .iter()
                .filter(|e| e["type"] == "assistant_message")
                .map(|e| (e["data"]["partial"] == true, &e["data"]["text"]))
                .collect();
            let all = json!("All of it.");
            let part = kept.map(|it| json!(it));
            let expected: Vec<(bool, &Value)> =
                part.iter().chain(&part).map(|it| (true, it)).chain([(false, &all)]).collect();
            assert_eq!(texts, expected, "{what} {dialect:?}");
            assert_eq!(log.iter().filter(|e| e["type"] == "turn_ended").count(), 1);
            assert_eq!(retries(&ran).len(), 2);
            assert_eq!(ran.lines().last().expect("a result")["output"], "All of it.");
            assert!(shell.read("x.txt").starts_with('('), "no call of a broken answer runs");
            // The model sees none of the cut text.
            let mut args = vec!["resume".to_owned(), "--last".into(), "more".into(), "--headless".into()];
            args.extend(server.flags(dialect));
            assert_eq!(shell.run(args).code, 0);
            let sent = server.bodies()[3].to_string();
            assert!(sent.contains("All of it.") && !sent.contains("Half a"), "{sent}");
        }
        // After the third break the Turn ends, with every part.
        let shell = Shell::new(&[]);
        shell.configure("[requests]\nfirst_wait = 0.01\n");
        let server = Server::start((0..5).map(|_| cut(dialect, "Half a sentence")).collect());
        let ran = stream(&shell, &server, dialect, &[]);
        assert_eq!((ran.code, server.bodies().len()), (8, 3), "{dialect:?}: {}", ran.stderr);
        let log = entries(&shell.logs()[0]);
        assert_eq!(log.iter().filter(|e| e["data"]["partial"] == true).count(), 3);
        let end = log.iter().rfind(|e| e["type"] == "turn_ended").expect("it ended");
        assert_eq!(end["data"]["status"], "partial_failed");
    }
}

/// Broken build: one that counts attempts. It gives up after the fourth.
#[test]
fn a_busy_server_is_waited_for_by_time_and_not_by_attempts() {
    let shell = Shell::new(&[]);
    shell.configure("[requests]\nfirst_wait = 0.001\n");
    let busy = |n: u16| match n % 3 {
        0 => refuse(529, "", "overloaded"),
        1 => refuse(503, "", "unavailable"),
        _ => Reply::Raw(vec![Act::Reset]),
    };
    let mut replies: Vec<Reply> = (0..9).map(busy).collect();
    replies.push(text("Here I am."));
    let server = Server::start(replies);
    let ran = stream(&shell, &server, Dialect::Chat, &[]);
    assert_eq!((ran.code, server.bodies().len()), (0, 10), "{}", ran.stderr);
    let told = retries(&ran);
    assert_eq!(told.len(), 9);
    assert!(told.iter().all(|it| it["left_ms"].as_u64().is_some_and(|left| left > 100_000)), "{told:?}");
    assert!(told.iter().all(|it| it["of"].is_null()), "{told:?}");

    // Without patience, the first failure is the last.
    for (config, flags) in [("[requests]\npatience = 0\n", &[][..]), ("", &["--patience", "0"][..])] {
        let shell = Shell::new(&[]);
        shell.configure(config);
        let server = Server::start(vec![refuse(503, "", "busy"), text("Too late.")]);
        let ran = stream(&shell, &server, Dialect::Responses, flags);
        assert_eq!((ran.code, server.bodies().len()), (8, 1), "{}", ran.stderr);
    }
    let wrong = shell.run(["--patience", "soon", "--headless", "x"]);
    assert_eq!(wrong.code, 2, "{}", wrong.stderr);
}

/// Broken build: one that reads only `Retry-After`. It waits half a second and not what the server says.
#[test]
fn the_wait_that_a_server_asks_for_is_read_wherever_it_stands() {
    let overloaded = |words: &str| {
        raw(&crate::server::event(&json!({
            "type": "response.failed",
            "response": { "error": { "code": "rate_limit_exceeded", "message": words } }
        })))
    };
    let rows = [
        (refuse(429, "retry-after: 3\r\n", "slow"), 3_000),
        (refuse(429, "retry-after-ms: 2500\r\n", "slow"), 2_500),
        (refuse(429, "x-ratelimit-reset-tokens: 6s\r\nx-ratelimit-remaining-tokens: 0\r\n", "slow"), 6_000),
        (refuse(429, "x-ratelimit-reset-requests: 1m2.5s\r\n", "slow"), 62_500),
        (refuse(429, "", "Rate limit reached. Please try again in 6s."), 6_000),
        (refuse(429, "", "Please try again in 750ms"), 750),
        (overloaded("Please try again in 11.5s. Visit the docs"), 11_500),
        // Longer than the patience: a rate limit is waited for all the same.
        (refuse(429, "retry-after: 400\r\n", "slow"), 400_000),
    ];
    for (reply, wanted) in rows {
        let shell = Shell::new(&[]);
        let server = Server::start(vec![reply, text("never")]);
        let mut args = server.flags(Dialect::Responses);
        args.extend(["--headless", "--format", "jsonl", "--deadline", "1", "go"].map(str::to_owned));
        let ran = shell.run(args);
        let waits: Vec<Value> = retries(&ran).into_iter().map(|it| it["wait_ms"].clone()).collect();
        assert_eq!(waits.first(), Some(&json!(wanted)), "{}", ran.stderr);
    }
    // A server that asks for more than it is believed is not waited for.
    for (reply, said) in
        [(refuse(429, "retry-after: 7200\r\n", "slow"), "2 h"), (refuse(503, "retry-after: 400\r\n", "busy"), "7 min")]
    {
        let shell = Shell::new(&[]);
        let server = Server::start(vec![reply]);
        let ran = ask(&shell, &server, Dialect::Chat, &["x"]);
        let message = ran.error()["error"]["message"].as_str().expect("a message").to_owned();
        assert!(message.ends_with(&format!("the server requests a wait of {said}")), "{message}");
    }
}

/// Broken build: one whose wait is not a point at which a Turn can be dropped.
#[test]
fn esc_and_sigterm_end_the_wait() {
    let shell = Shell::new(&[]);
    let server = Server::start(vec![refuse(429, "retry-after: 600\r\n", "slow down"), text("Now.")]);
    let mut terminal = start(&shell, &server, Dialect::Chat, 90, 24);
    terminal.wait_for("Ask pixir");
    terminal.send("go\r");
    terminal.wait_for("try 2 in 600.0 s");
    terminal.send("\x1b");
    terminal.wait_for("interrupted");
    terminal.send("again\r");
    terminal.wait_for("Now.");
    drop(terminal);

    let shell = Shell::new(&[]);
    let server = Server::start(vec![refuse(429, "retry-after: 600\r\n", "slow down")]);
    let mut args = server.flags(Dialect::Chat);
    args.extend(["--headless", "--format", "jsonl", "go"].map(str::to_owned));
    let mut child = shell.command(args).stdin(Stdio::null()).spawn().expect("it starts");
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().expect("stdout")));
    assert!(lines.any(|line| line.is_ok_and(|line| line.contains("retry_scheduled"))), "it waits");
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it runs");
    lines.for_each(drop);
    let ended = ran(child.wait_with_output().expect("it ends"));
    assert_eq!(ended.code, 143, "{}", ended.stderr);
    let log = entries(&shell.logs()[0]);
    assert_eq!(log.iter().filter(|e| e["type"] == "turn_ended").count(), 1);
}

/// Broken build: one that ends the Turn when its patience ends. One that starts over would run the call twice.
#[test]
fn a_fallback_model_takes_over_and_the_log_says_so() {
    let shell = Shell::new(&[]);
    let busy = Server::start(
        [call("c1", "bash", json!({ "command": "echo ran >> ran.txt" }))]
            .into_iter()
            .chain((0..3).map(|_| refuse(529, "", "overloaded")))
            .collect(),
    );
    let also_busy = Server::start(vec![cut(Dialect::Anthropic, "Half of "); 3]);
    let free = Server::start(vec![text("I take over.")]);
    shell.configure(&format!(
        "model = \"one/a\"\nfallback = [\"nowhere/x\", \"two/b\", \"three/c\"]\n\
         [requests]\nattempts = 3\nfirst_wait = 0.01\n\
         [providers.one]\ndialect = \"chat\"\nbase_url = \"{}\"\n\
         [providers.two]\ndialect = \"anthropic\"\nbase_url = \"{}\"\n\
         [providers.three]\ndialect = \"responses\"\nbase_url = \"{}\"\n",
        busy.url, also_busy.url, free.url
    ));
    let ran = shell.run(["--headless", "--format", "jsonl", "--write", "go"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!((busy.bodies().len(), also_busy.bodies().len(), free.bodies().len()), (4, 3, 1));
    assert_eq!(shell.read("ran.txt"), "ran\n");
    let log = entries(&shell.logs()[0]);
    let changes: Vec<(&Value, &Value)> = log
        .iter()
        .filter(|e| e["type"] == "settings_changed")
        .map(|e| (&e["data"]["provider"], &e["data"]["model"]))
        .collect();
    assert_eq!(changes, [(&json!("two"), &json!("b")), (&json!("three"), &json!("c"))]);
    let reasons: Vec<&str> =
        log.iter().filter(|e| e["type"] == "settings_changed").filter_map(|e| e["data"]["reason"].as_str()).collect();
    assert_eq!(reasons.len(), 2, "the log says why");
    assert!(reasons[0].contains("does not answer"), "{}", reasons[0]);
    let notices: Vec<String> = ran
        .lines()
        .iter()
        .filter(|it| it["type"] == "notice" && it["data"]["code"] == "PROVIDER_REPLACED")
        .map(|it| it["data"]["message"].as_str().expect("a message").to_owned())
        .collect();
    assert_eq!(notices.len(), 2, "{notices:?}");
    assert!(notices[1].starts_with("two/b does not answer") && notices[1].contains("three/c answers from now on"));
    let sent = free.bodies()[0].to_string();
    assert!(sent.contains("echo ran") && !sent.contains("Half of"), "{sent}");
    // An answer that needs no fallback asks none.
    let shell = Shell::new(&[]);
    let server = Server::start(vec![Reply::Raw(vec![Act::Send(
        (HEAD.to_owned() + &answer(Dialect::Chat, &[Part::Text("Fine.")]).concat()).into_bytes(),
    )])]);
    shell.configure("fallback = [\"two/b\"]\n");
    assert_eq!(ask(&shell, &server, Dialect::Chat, &["x"]).document()["output"], "Fine.");
}

/// Broken build: one that shows the cut text as if it were a part of the answer.
#[test]
fn a_cut_draft_is_struck_through_and_every_presenter_says_so() {
    let (half, whole) = ("Half a sentence", "All of it, said again.");
    let note = "cut off here; the model was asked again";
    for (what, flags, environment) in [
        ("whole screen", &[][..], &[][..]),
        ("no colours", &[], &[("NO_COLOR", "1")]),
        ("inline", &["--inline"], &[]),
        ("screen reader", &[], &[("PIXIR_SCREEN_READER", "1")]),
    ] {
        let shell = Shell::new(&[]);
        let folder = shell.aside("config.toml", "[requests]\nfirst_wait = 0.01\n");
        let folder = folder.parent().and_then(std::path::Path::to_str).expect("a folder");
        let server = Server::start(vec![cut(Dialect::Chat, half), text(whole)]);
        let mut args = server.flags(Dialect::Chat);
        args.extend(flags.iter().map(|it: &&str| (*it).to_owned()));
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let environment: Vec<(&str, &str)> =
            environment.iter().copied().chain([("PIXIR_CONFIG_HOME", folder)]).collect();
        let pixir = env!("CARGO_BIN_EXE_pixir").as_ref();
        let mut terminal = Terminal::of(&shell, pixir, &args, &environment, 80, 24);
        terminal.wait_for("Ask pixir");
        terminal.send("go\r");
        let screen = terminal.wait_for(whole);
        let at = |text: &str| screen.find(text).unwrap_or_else(|| panic!("{what}: {text}: {screen}"));
        assert!(at(half) < at(note) && at(note) < at(whole), "{what}: {screen}");
        assert!(!screen.contains("the answer was cut off here"), "{what}: {screen}");
        let bytes = String::from_utf8_lossy(&terminal.bytes()).into_owned();
        let struck = bytes.match_indices(half).any(|(at, _)| {
            let (_, pen) = bytes[..at].rsplit_once("\x1b[").expect("a pen");
            pen.strip_suffix('m').is_some_and(|pen| pen.split(';').any(|code| code == "9"))
        });
        assert!(struck, "{what}: {bytes:?}");
        terminal.send("\x04");
        terminal.end().assert_sane();
    }
    // Headless text has it on stderr, and only the whole answer on stdout.
    let shell = Shell::new(&[]);
    shell.configure("[requests]\nfirst_wait = 0.01\n");
    let server = Server::start(vec![cut(Dialect::Chat, half), text(whole)]);
    let mut args = server.flags(Dialect::Chat);
    args.extend(["--headless", "go"].map(str::to_owned));
    let ran = shell.run(args);
    assert_eq!((ran.code, ran.stdout.trim()), (0, whole), "{}", ran.stderr);
    let said = format!("{half}\n• the answer was cut off here\n");
    let at = |text: &str| ran.stderr.find(text).unwrap_or_else(|| panic!("{text}: {}", ran.stderr));
    assert!(at(&said) < at("; try 2 of 3 in 0.0 s") && at("; try 2 of 3") < at(whole), "{}", ran.stderr);
}

/// The same from the Log, with the style of each word: struck through only where another answer followed.
#[tokio::test]
async fn a_resumed_session_strikes_only_answers_that_were_asked_for_again() {
    let message = |text: &str, partial| AssistantMessage { text: text.into(), partial, phase: None };
    let mut pixir = Pixir::resumed(80, 24, |folder, workspace| {
        let mut log = log_of(folder, workspace);
        let prompt = UserMessage { text: "go".into(), ..UserMessage::default() };
        log.append(Some(1), prompt.clone().into()).expect("append");
        log.append(Some(1), message("First half", true).into()).expect("append");
        log.append(Some(1), message("The whole", false).into()).expect("append");
        let ended = |status| TurnEnded {
            status,
            error: None,
            usage: Usage::default(),
            usage_estimated: false,
            cost: Cost::default(),
            duration_ms: 0,
            tool_calls: 0,
            details: serde_json::Map::new(),
        };
        log.append(Some(1), ended(TurnStatus::Completed).into()).expect("append");
        log.append(Some(2), prompt.into()).expect("append");
        log.append(Some(2), message("Last half", true).into()).expect("append");
        log.append(Some(2), ended(TurnStatus::Interrupted).into()).expect("append");
        log.establish().expect("establish");
    });
    pixir.screen.until_idle().await;
    let screen = pixir.screen.screen();
    assert_eq!(screen.matches("⋯ cut off here; the model was asked again").count(), 1, "{screen}");
    assert_eq!(screen.matches("⋯ the answer was cut off here").count(), 1, "{screen}");
    let buffer = pixir.screen.buffer();
    let is_struck = |words: &str| {
        let row = screen.lines().position(|line| line.contains(words)).expect("it is on the screen");
        let column = screen.lines().nth(row).and_then(|line| line.find(words)).expect("in this row");
        let cell = &buffer[(u16::try_from(column).expect("small"), u16::try_from(row).expect("small"))];
        cell.modifier.contains(ratatui::style::Modifier::CROSSED_OUT)
    };
    let struck = ["First half", "The whole", "Last half"].map(is_struck);
    assert_eq!(struck, [true, false, false], "{screen}");
    // What is printed at the end is an answer that stands.
    let farewell = pixir.screen.close().await.expect("a session was open");
    assert_eq!(farewell.answer.map(|it| it.plain), Some("Last half".to_owned()));
}

/// Broken build: one that shows the time to the next attempt only.
#[test]
fn the_countdown_says_when_pixir_gives_up() {
    let shell = Shell::new(&[]);
    let server = Server::start(vec![refuse(429, "retry-after: 600\r\n", "slow down")]);
    let mut terminal = start(&shell, &server, Dialect::Chat, 110, 24);
    terminal.wait_for("Ask pixir");
    terminal.send("go\r");
    terminal.wait_for("try 2 in 600.0 s, gives up in 13m00s");
    terminal.resize(60, 20);
    let screen = terminal.wait_for(" · gives up in 1");
    let status = screen.lines().last().expect("a status line");
    assert!(status.contains("retrying in ") && status.contains("Esc"), "{status}");
    drop(terminal);
    // The number of attempts is the limit of an answer that breaks off.
    let shell = Shell::new(&[]);
    let folder = shell.aside("config.toml", "[requests]\nfirst_wait = 600\n");
    let folder = folder.parent().and_then(std::path::Path::to_str).expect("a folder");
    let server = Server::start(vec![cut(Dialect::Chat, "Half a sentence")]);
    let args = server.flags(Dialect::Chat);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let pixir = env!("CARGO_BIN_EXE_pixir").as_ref();
    let mut terminal = Terminal::of(&shell, pixir, &args, &[("PIXIR_CONFIG_HOME", folder)], 60, 20);
    terminal.wait_for("Ask pixir");
    terminal.send("go\r");
    terminal.wait_for("cut off here; the model was asked again");
    terminal.wait_for(" · try 2 of 3");
    // No other answer comes, so this one stands.
    terminal.send("\x1b");
    terminal.wait_for("the answer was cut off here");
    terminal.wait_that("it is not struck any more", |screen| !screen.contains("the model was asked again"));
}
