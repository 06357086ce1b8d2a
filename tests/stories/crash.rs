use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use pixir_core::config::Surroundings;
use pixir_core::event::{LiveEvent, Mode, SessionId};
use pixir_core::harness::{Beginning, Harness};
use pixir_core::history::{History, Jump};
use pixir_core::input::Summarize;
use pixir_core::log::{self, Log};
use pixir_core::provider::choose::Providers;
use pixir_core::provider::script::{Script, Scripted, ScriptedCall, Step};
use pixir_core::session::{Handle, Options};
use pixir_core::tree::{self, Node};
use pixir_core::watch::Watch;
use pixir_core::{Event, Fact, Input, Live};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::server::{Dialect, Reply, Server, call, text};
use crate::shell::{Shell, entries, figures};

/// How often the Turn is killed; the long tier is `PIXIR_KILLS=10000 cargo test --test pixir -- crash`.
fn kills() -> u64 {
    std::env::var("PIXIR_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(300)
}

#[test]
fn killed_at_any_moment_every_log_reopens_and_nothing_acknowledged_is_lost() {
    let mut moments = 0_u64;
    let mut seed = 0x2545_f491_4f6c_dd1d_u64;
    for round in 0..kills() {
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
        std::thread::park_timeout(std::time::Duration::from_micros((seed >> 32) % 4_000));
        child.kill().expect("kill -9");
        // What was on its way in the pipe was acknowledged too; a last line may be cut.
        acknowledged.extend(lines.map_while(Result::ok).filter_map(|line| serde_json::from_str(&line).ok()));
        child.wait().expect("it is gone");
        moments += 1;

        let Some(log) = shell.logs().first().cloned() else {
            assert!(
                acknowledged.iter().all(|l| l["seq"].is_null()),
                "round {round}: acknowledged, and there is no log"
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
            assert_eq!(after[seq]["id"], line["id"], "round {round}: seq {seq} was acknowledged and is lost");
        }
        let started = after.iter().filter(|e| e["type"] == "user_message").count();
        let ended = after.iter().filter(|e| e["type"] == "turn_ended").count();
        assert_eq!(started, ended, "round {round}: every turn has exactly one end");
        assert_balanced(&server.bodies()[0], round);
    }
    assert_eq!(moments, kills());
}

fn assert_balanced(body: &Value, round: u64) {
    let messages = body["messages"].as_array().expect("messages");
    let calls: Vec<&Value> =
        messages.iter().flat_map(|m| m["tool_calls"].as_array().into_iter().flatten()).map(|c| &c["id"]).collect();
    let results: Vec<&Value> = messages.iter().filter(|m| m["role"] == "tool").map(|m| &m["tool_call_id"]).collect();
    assert_eq!(calls, results, "round {round}");
}

#[test]
fn a_session_that_is_open_elsewhere_says_where() {
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

// ─── Any order of events ───

/// One thing that happens to a session.
#[derive(Debug, Clone)]
enum Happens {
    Prompt,
    /// To the n-th message, counted around, or to the empty conversation.
    Move(usize),
    Fork(usize),
    Name(usize),
    Pin(usize),
    /// In the middle of a turn or between two, with or without a write that is cut off.
    Kill {
        mid_turn: bool,
        torn: bool,
    },
    Close,
}

fn happens() -> impl Strategy<Value = Happens> {
    prop_oneof![
        4 => Just(Happens::Prompt),
        2 => (0..40_usize).prop_map(Happens::Move),
        1 => (0..40_usize).prop_map(Happens::Fork),
        1 => (0..40_usize).prop_map(Happens::Name),
        1 => (0..40_usize).prop_map(Happens::Pin),
        2 => (any::<bool>(), any::<bool>()).prop_map(|(mid_turn, torn)| Happens::Kill { mid_turn, torn }),
        1 => Just(Happens::Close),
    ]
}

/// A conversation as a model and a person see it.
#[derive(Debug, PartialEq)]
struct Seen {
    head: Option<u64>,
    jumps: Vec<Jump>,
    told: Vec<String>,
    turns: Vec<Node>,
}

fn seen(history: &History) -> Seen {
    Seen {
        head: history.head(),
        jumps: history.jumps().to_vec(),
        told: history.items().iter().map(|item| format!("{:?}", item.piece())).collect(),
        turns: tree::nodes(history),
    }
}

/// A machine on which one session lives, is killed, and lives again.
struct Machine {
    runtime: tokio::runtime::Runtime,
    harness: Harness,
    folder: tempfile::TempDir,
    handle: Handle,
    watch: Watch,
    /// What the session has told, folded.
    history: History,
}

impl Machine {
    fn new() -> Machine {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("app")).expect("mkdir");
        let (runtime, harness) = Machine::boot(folder.path());
        let (handle, watch) = runtime.block_on(async {
            let handle = harness.start().expect("it starts");
            let watch = handle.watch().await.expect("it runs");
            (handle, watch)
        });
        let mut machine = Machine { runtime, harness, folder, handle, watch, history: History::default() };
        machine.hear();
        machine
    }

    fn boot(folder: &std::path::Path) -> (tokio::runtime::Runtime, Harness) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let step = |text: &str, command: Option<&str>| Step {
            text: text.into(),
            calls: command
                .map(|c| ScriptedCall { name: "bash".into(), args: json!({ "command": c }) })
                .into_iter()
                .collect(),
            ..Step::default()
        };
        let steps =
            (0..60).flat_map(|n| [step("I look.", Some("echo 1")), step(&format!("Answer {n}."), None)]).collect();
        let scripted = Scripted::new(Script { steps, ..Script::default() });
        let around = Surroundings {
            home: folder.join("home"),
            user_folder: None,
            environment: std::env::vars().filter(|(name, _)| name == "PATH").collect(),
        };
        let providers = Arc::new(Providers::only("script", "m", Arc::new(scripted)));
        let beginning = Beginning { mode: Mode::Auto, ..Beginning::default() };
        let harness = Harness::new(&folder.join("app"), &around, providers, Options::default(), beginning);
        (runtime.expect("a runtime"), harness.expect("a workspace"))
    }

    fn take_past(&mut self) {
        let past = std::mem::take(&mut self.watch.past);
        past.entries().iter().for_each(|entry| self.history.append(Arc::clone(entry)));
    }

    /// Takes in everything that was told.
    fn hear(&mut self) {
        self.take_past();
        while let Some(event) = self.watch.try_next() {
            if let Event::Recorded(entry) = event {
                self.history.append(entry);
            }
        }
    }

    fn ask(&mut self, input: Input) -> Vec<Event> {
        let (handle, watch, history) = (&self.handle, &mut self.watch, &mut self.history);
        self.runtime.block_on(async {
            let prompt = matches!(input, Input::Prompt(_));
            handle.send(input).await;
            handle.settle().await;
            let mut events = Vec::new();
            loop {
                let event = if prompt { watch.next().await } else { watch.try_next() };
                let Some(event) = event else { return events };
                let ended = matches!(&event, Event::Recorded(entry) if matches!(entry.fact, Fact::TurnEnded(_)));
                if let Event::Recorded(entry) = &event {
                    history.append(Arc::clone(entry));
                }
                events.push(event);
                if prompt && ended {
                    return events;
                }
            }
        })
    }

    fn message(&self, n: usize) -> Option<u64> {
        let seqs: Vec<u64> =
            self.history.entries().iter().filter(|e| e.fact.is_conversation()).map(|e| e.seq).collect();
        if seqs.is_empty() { None } else { Some(seqs[n % seqs.len()]) }
    }

    fn reopen(mut self, kill: bool, torn: bool) -> Machine {
        let id = self.handle.id().clone();
        if !kill {
            self.runtime.block_on(self.handle.close());
        }
        self.runtime.shutdown_timeout(std::time::Duration::from_secs(5));
        let past = std::mem::take(&mut self.watch.past);
        past.entries().iter().for_each(|entry| self.history.append(Arc::clone(entry)));
        while let Some(event) = self.watch.try_next() {
            if let Event::Recorded(entry) = event {
                self.history.append(entry);
            }
        }
        let log = self.harness.place(&id).log();
        if torn && log.exists() {
            let mut file = std::fs::OpenOptions::new().append(true).open(&log).expect("open");
            std::io::Write::write_all(&mut file, b"{\"v\":1,\"id\":\"0190").expect("write");
        }
        let (runtime, harness) = Machine::boot(self.folder.path());
        let (handle, watch) = runtime.block_on(async {
            // Nothing was said in it, so closing it has removed it.
            let handle = if log.exists() { harness.resume(&id) } else { harness.start() }.expect("it opens again");
            let watch = handle.watch().await.expect("it runs");
            (handle, watch)
        });
        if log.exists() {
            // What was told is there, and reads the same; a kill may come between writing and telling.
            let told = self.history.entries().len();
            assert!(watch.past.entries().len() >= told);
            let again = History::fold(watch.past.entries()[..told].iter().cloned());
            assert_eq!(seen(&again), seen(&self.history));
        }
        let mut machine = Machine { runtime, harness, handle, watch, history: History::default(), folder: self.folder };
        machine.hear();
        assert!(
            !machine.history.turn_open && machine.history.orphans().next().is_none(),
            "a crash leaves nothing open"
        );
        machine
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_in_whatever_order_the_conversation_is_the_same_when_it_is_opened_again(all in prop::collection::vec(happens(), 1..25)) {
        let mut machine = Machine::new();
        for one in all {
            match one {
                Happens::Prompt => drop(machine.ask(Input::Prompt("next".into()))),
                Happens::Move(n) => {
                    let to_seq = if n == 0 { None } else { machine.message(n) };
                    machine.ask(Input::MoveHead { to_seq, summarize: if n % 3 == 0 { Summarize::Deterministic } else { Summarize::No }, files: None });
                }
                Happens::Name(n) => if let Some(seq) = machine.message(n) {
                    machine.ask(Input::Label { seq, text: format!("name {n}") });
                },
                Happens::Pin(n) => if let Some(seq) = machine.message(n) {
                    machine.ask(Input::Pin { seq, pinned: n % 2 == 0 });
                },
                Happens::Fork(n) => if let Some(seq) = machine.message(n) {
                    let events = machine.ask(Input::Fork { seq });
                    let id = events.iter().find_map(|e| if let Event::Live(LiveEvent { live: Live::SessionForked { session_id }, .. }) = e { Some(session_id.clone()) } else { None });
                    let id = SessionId::parse(&id.expect("a fork was made")).expect("an id");
                    let forked = History::fold(log::read(&machine.harness.place(&id).log()).expect("it is there").entries);
                    let parent = History::fold(machine.history.path_of(seq));
                    prop_assert_eq!(seen(&forked).told, seen(&parent).told);
                },
                Happens::Kill { mid_turn, torn } => {
                    if mid_turn {
                        machine.runtime.block_on(machine.handle.send(Input::Prompt("cut off".into())));
                    }
                    machine = machine.reopen(true, torn);
                }
                Happens::Close => machine = machine.reopen(false, false),
            }
        }
        machine.reopen(false, false);
    }
}

/// The long tier is `PIXIR_CASES=2000 cargo test --release --test pixir -- crash`.
fn cases() -> u32 {
    std::env::var("PIXIR_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(40)
}

// ─── Racing writers ───

#[test]
fn of_eight_that_want_to_write_one_does_and_when_it_is_killed_the_next_one_can_at_once() {
    let rounds: usize = std::env::var("PIXIR_RACES").ok().and_then(|n| n.parse().ok()).unwrap_or(8);
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
        let until = Instant::now() + Duration::from_secs(20);
        let winner = loop {
            let mut alive: Vec<usize> = (0..8).filter(|n| racers[*n].try_wait().expect("a child").is_none()).collect();
            if alive.len() == 1 {
                break alive.remove(0);
            }
            assert!(Instant::now() < until, "round {round}: {} still run", alive.len());
            std::thread::park_timeout(Duration::from_millis(2));
        };
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

// ─── The n-th system call fails ───

/// Whether this machine lets strace inject faults.
fn can_inject() -> bool {
    let tried =
        Command::new("strace").args(["-f", "-o", "/dev/null", "-e", "inject=getpid:error=EIO", "/bin/true"]).output();
    tried.is_ok_and(|ran| ran.status.success())
}

#[test]
fn whichever_system_call_on_the_log_fails_nothing_runs_after_it_and_the_session_opens_again() {
    if !can_inject() {
        figures("SKIPPED: strace cannot inject faults here (QL4 in the real process)");
        return;
    }
    let all = std::env::var_os("PIXIR_INJECT").is_some();
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
    let (mut cells, mut stopped) = (0, 0);
    for (call, errors, upto) in calls {
        for error in *errors {
            for sticky in ["", "+"] {
                // In CI a sample, spread over the whole run.
                let step = if all { 1 } else { (upto / 4).max(1) };
                for at in (1..=*upto).step_by(step as usize) {
                    cells += 1;
                    stopped += u32::from(one_injection(script, call, error, &format!("{at}{sticky}")));
                }
            }
        }
    }
    figures(&format!("{cells} injected failures; {stopped} stopped the turn, the rest came after it or were survived"));
    assert!(stopped * 3 > cells, "the faults arrive");
}

/// Whether the Turn was stopped by it.
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
    // Only calls on the Log are made to fail, whichever thread makes them.
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
    // Nothing ran whose call is not in the log.
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
