//! Every fault of a server at every moment of its life; and that nothing of a server outlives pixir.

use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::{Scripted, latest, turn};
use crate::server::{Dialect, Part, Reply, Server, call, said, text};
use crate::shell::{Shell, entries, figures, is_running, mark};
use crate::tier;
use crate::wait;

/// The faults of `mcp_fault.py`.
const FAULTS: [&str; 10] = ["exit", "hang", "slow", "garbage", "huge", "wrong-id", "error", "odd", "twice", "eof"];
const MOMENTS: [&str; 7] = ["start", "initialize", "list", "call", "progress", "cancel", "close"];

/// What a call of such a server ends with: nothing, or one of these errors.
fn wanted(fault: &str, moment: &str) -> &'static [&'static str] {
    match (moment, fault) {
        (_, "slow" | "garbage" | "twice") if moment != "cancel" => &[""],
        ("close", _) => &[""],
        ("cancel", _) => &["MCP_TIMEOUT"],
        // What answers nothing that was asked is no reason to give the server up, nor one to keep it.
        ("start", "wrong-id" | "error" | "odd") => &["", "MCP_START_FAILED"],
        ("start" | "initialize" | "list", "huge") => &[""],
        ("start" | "initialize" | "list", _) => &["MCP_START_FAILED"],
        // One that closes its stdout says nothing any more, though its process lives.
        (_, "exit" | "eof") => &["MCP_SERVER_EXITED"],
        (_, "hang" | "wrong-id") => &["MCP_TIMEOUT"],
        (_, "huge") => &["MCP_LIMIT"],
        (_, "error" | "odd") => &["MCP_PROTOCOL"],
        _ => unreachable!("{fault} {moment}"),
    }
}

/// Whether a server with this fault answers nothing.
fn is_silent(fault: &str) -> bool {
    ["hang", "wrong-id", "eof"].contains(&fault)
}

/// One answer with a call of each of these servers.
fn wave(names: &[String], args: &Value) -> Reply {
    let calls: Vec<(String, String)> = names.iter().map(|it| (format!("c-{it}"), format!("{it}__go"))).collect();
    let parts: Vec<Part<'_>> = calls.iter().map(|(id, tool)| Part::Call(id, tool, args)).collect();
    said(Dialect::Responses, &parts)
}

/// One process of pixir with 70 servers, each of which does one wrong thing at one moment.
///
/// Broken builds: the end of a process is not watched, so its calls wait for their timeout; an error of one call ends the Turn;
/// a server that died is not started again; what closed its stdout is not stopped.
#[test]
fn each_fault_at_each_moment_is_the_error_of_its_own_call_and_of_nothing_else() {
    let shell = Shell::new(&[]);
    let program = shell.aside("mcp_fault.py", include_str!("../../mcp_fault.py"));
    let (armed, journal) = (program.with_file_name("armed"), program.with_file_name("journal"));
    let mut cells: Vec<(String, &str, &str)> = Vec::new();
    for fault in FAULTS {
        for moment in MOMENTS {
            cells.push((format!("{fault}-{moment}"), fault, moment));
        }
    }
    let cells = tier::sample("each_fault_at_each_moment", cells);
    let mut config = "[mcp_limits]\ndirect_bytes = 100000\n".to_owned();
    for (name, fault, moment) in &cells {
        let args = json!([program, fault.replace('-', "_"), moment, armed, journal]);
        let starts = wanted(fault, moment) != ["MCP_START_FAILED"];
        // A start that never comes to an end holds one of four places.
        let limit = if starts || !is_silent(fault) { 30 } else { 2 };
        config.push_str(&format!(
            "[mcp.{name}]\ncommand = \"python3\"\nargs = {args}\nreads = [\"go\"]\ncall_timeout = 2\nstart_timeout = {limit}\n"
        ));
    }
    // Nothing is wrong yet: all of them are known, with time to start on a busy machine.
    shell.configure(&config.replace("start_timeout = 2\n", "start_timeout = 30\n"));
    let server = Server::start(vec![call("c1", "mcp_find", json!({ "query": "" })), text("Done.")]);
    let found = turn(&shell, &server, &["find"]);
    assert_eq!(found.code, 0, "{found:?}");
    shell.configure(&config);
    fs::write(&armed, "").expect("write");
    fs::write(&journal, "").expect("write");

    let all: Vec<String> = cells.iter().map(|(name, ..)| name.clone()).collect();
    let is_begun = |name: &&String| ["-call", "-progress", "-cancel", "-close"].iter().any(|it| name.ends_with(it));
    let again: Vec<String> = all.iter().filter(is_begun).cloned().collect();
    let server = Server::start(vec![wave(&all, &json!({})), wave(&again, &json!({ "plain": true })), text("Done.")]);
    let ran = turn(&shell, &server, &["go"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let log = entries(&latest(&shell));
    let results: Vec<&Value> = log.iter().filter(|it| it["type"] == "tool_result").map(|it| &it["data"]).collect();
    assert_eq!(results.len(), all.len() + again.len());
    let (first, second) = results.split_at(all.len());
    let mut wrong = Vec::new();
    for ((name, fault, moment), result) in cells.iter().zip(first) {
        let code = result["error"]["code"].as_str().unwrap_or_default();
        let output = result["output"].as_str().unwrap_or_default();
        let is_named = code.is_empty() || output.contains(name.as_str());
        if !wanted(fault, moment).contains(&code) || !is_named || code.is_empty() != output.contains("fine") {
            wrong.push(format!("{name}: {code} {output}"));
        }
        if output.contains('\u{1b}') || output.contains('\u{202e}') {
            wrong.push(format!("{name}: {output:?}"));
        }
    }
    for (name, result) in again.iter().zip(second) {
        // It reads nothing any more.
        let is_deaf = name == "hang-cancel";
        if !is_deaf && !result["error"].is_null() {
            wrong.push(format!("{name}, again: {} {}", result["error"]["code"], result["output"]));
        }
    }
    let told = fs::read_to_string(&journal).expect("a journal");
    for (name, fault, moment) in &cells {
        let fault = fault.replace('-', "_");
        let happened = told.lines().any(|it| it == format!("{fault} {moment} fault"));
        // On a busy machine the time is over before the program has begun.
        if !happened && !is_silent(&fault.replace('_', "-")) {
            wrong.push(format!("{name}: its fault did not happen"));
        }
        // No call is repeated but that of a tool that only reads, whose server died.
        let calls = told.lines().filter(|it| *it == format!("{fault} {moment} call")).count();
        if calls > 3 {
            wrong.push(format!("{name}: called {calls} times"));
        }
    }
    figures(&format!("{} faults at moments of servers: {} wrong", cells.len(), wrong.len()));
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(!is_running(&program.display().to_string()), "a server is left");
}

/// The ways in which a run with a server ends.
const ENDS: [&str; 5] = ["by itself", "a terminal signal", "an interrupt", "kill -9", "by itself, stubborn"];

/// Broken builds: servers are started outside of a group; the launcher does not end what its pixir leaves; pixir leaves its
/// servers to the launcher, which ends them without a word.
#[test]
fn no_run_leaves_a_server_or_what_it_started() {
    let runs = tier::cases("no_run_leaves_a_server");
    let halves = [0, 1].map(|half| {
        std::thread::spawn(move || (0..runs).filter(|n| n % 2 == half).map(one_run).filter(|it| *it).count())
    });
    let survivors: usize = halves.into_iter().map(|it| it.join().expect("the runs")).sum();
    figures(&format!("{runs} runs with a server, in {} ways to end: {survivors} left something", ENDS.len()));
    assert_eq!(survivors, 0);
}

/// Whether something was left.
fn one_run(n: usize) -> bool {
    let end = ENDS[n % ENDS.len()];
    let (shell, orphan) = (Shell::new(&[]), mark());
    let scripted = Scripted::new(&shell);
    let mut options = vec![format!("orphan={orphan}"), "tools=echo,hang".to_owned()];
    if n.is_multiple_of(2) || end.contains("stubborn") {
        options.push("stubborn=1".to_owned());
    }
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    shell.configure(&scripted.section("test", &options, "allow = [\"*\"]"));
    let tool = if end.starts_with("by itself") { "test__echo" } else { "test__hang" };
    let steps = json!({ "steps": [
        { "calls": [{ "name": "mcp_find", "args": { "query": "" } }] },
        { "calls": [{ "name": "mcp_call", "args": { "tool": tool } }] },
        { "text": "Done." },
    ] });
    let script = shell.aside("steps.json", &steps.to_string());
    let provider = format!("script:{}", script.display());
    let mut command = shell.command(["--headless", "--json", "--mode", "ask", "--provider", &provider, "go"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
    if tool == "test__hang" {
        let called = || scripted.journal().iter().any(|it| it.starts_with("call hang")).then_some(());
        wait::found(Duration::from_secs(60), called).expect("the call");
        let signal = match end {
            "a terminal signal" => Signal::TERM,
            "an interrupt" => Signal::INT,
            _ => Signal::KILL,
        };
        let pid = Pid::from_child(&child);
        kill_process(pid, signal).expect("it runs");
    }
    let began = Instant::now();
    wait::found(Duration::from_secs(60), || child.try_wait().expect("it runs")).expect("it ends");
    let program = scripted.program.display().to_string();
    let gone = || (!is_running(&program) && !is_running(&orphan)).then_some(());
    // A launcher ends what a killed pixir leaves; pixir itself leaves nothing.
    let most = if end == "kill -9" { Duration::from_secs(10) } else { Duration::ZERO };
    let is_gone = wait::found(most.max(Duration::from_millis(50)), gone).is_some();
    // The launcher would end it too, a moment later. Only pixir closes its stdin first.
    let is_told = end == "kill -9" || scripted.journal().last().is_some_and(|it| it == "eof");
    if !is_gone || !is_told {
        figures(&format!("{end}, run {n}, {:?}: gone {is_gone}, told {is_told}", began.elapsed()));
    }
    !is_gone || !is_told
}
