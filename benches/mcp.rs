//! What MCP servers cost: the start with ten of them, five hundred tools, a call, a cancel, the end: `cargo bench --bench mcp`.
//!
//! The model is a script and the servers are a small Python program, whose own time is a row of its own.

#[path = "../tests/shell.rs"]
#[expect(dead_code, reason = "the stories use more of it")]
mod shell;
#[path = "../tests/wait.rs"]
#[expect(dead_code, reason = "the stories use more of it")]
mod wait;

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use shell::{Shell, peak};

/// Runs of each row; the median counts. An unoptimised build only shows that the rows can be measured.
const RUNS: usize = if cfg!(debug_assertions) { 3 } else { 15 };
/// Calls of one Turn.
const CALLS: usize = if cfg!(debug_assertions) { 20 } else { 500 };
/// Servers that are configured, or run.
const SERVERS: usize = 10;
/// Tools of one server.
const TOOLS: usize = 500;

fn main() {
    start();
    tools();
    calls();
    cancel();
    end();
}

#[expect(clippy::print_stdout, reason = "a table for the user")]
fn row(name: &str, mut times: Vec<Duration>) {
    times.sort();
    let at = |percent: usize| times[(times.len() - 1) * percent / 100];
    println!("{name:<52} median {:>8.2?}   p99 {:>8.2?}", at(50), at(99));
}

#[expect(clippy::print_stdout, reason = "a table for the user")]
fn figure(name: &str, value: &str) {
    println!("{name:<52} {value}");
}

/// A home with these servers, of which all tools have this word of the user, and the journal of all of them.
fn home(servers: usize, word: &str, options: &[&str]) -> (Shell, PathBuf, PathBuf) {
    let shell = Shell::new(&[]);
    let program = shell.aside("mcp_server.py", include_str!("../tests/mcp_server.py"));
    let journal = program.with_file_name("journal");
    let mut args = vec![program.display().to_string(), format!("journal={}", journal.display())];
    args.extend(options.iter().map(|it| (*it).to_owned()));
    let sections: String = (0..servers)
        .map(|n| format!("[mcp.s{n}]\ncommand = \"python3\"\nargs = {}\n{word} = [\"*\"]\n", json!(args)))
        .collect();
    shell.configure(&sections);
    (shell, program, journal)
}

fn script(shell: &Shell, steps: &[Value]) -> String {
    format!("script:{}", shell.aside("steps.json", &json!({ "steps": steps }).to_string()).display())
}

fn timed(work: impl FnOnce()) -> Duration {
    let began = Instant::now();
    work();
    began.elapsed()
}

fn lines(journal: &Path, start: &str) -> usize {
    fs::read_to_string(journal).unwrap_or_default().lines().filter(|it| it.starts_with(start)).count()
}

/// The interface until its first frame.
fn start() {
    for servers in [0, SERVERS] {
        let (shell, _, journal) = home(servers, "allow", &["tools=echo"]);
        let provider = script(&shell, &[json!({ "text": "Hello." })]);
        shell.write("keys.txt", "frame first\n");
        let words = ["tui", "--size", "80x24", "--script", "keys.txt", "--provider", &provider];
        let times = (0..RUNS).map(|_| timed(|| assert_eq!(shell.run(words).code, 0))).collect();
        row(&format!("the interface with {servers} servers"), times);
        figure("  processes of servers", &lines(&journal, "start").to_string());
    }
}

/// A Turn of one answer.
fn tools() {
    for tools in [0, TOOLS] {
        let many = format!("many={tools}");
        let (shell, ..) = home(usize::from(tools > 0), "allow", &["tools=echo", &many]);
        if tools > 0 {
            assert_eq!(shell.run(["mcp", "test", "s0"]).code, 0);
        }
        let provider = script(&shell, &[json!({ "text": "Hello." })]);
        let words = ["--headless", "--provider", &provider, "go"];
        let times = (0..RUNS).map(|_| timed(|| assert_eq!(shell.run(words).code, 0))).collect();
        row(&format!("a Turn beside {tools} tools of a server"), times);
        figure("  memory", &format!("{} KB", peak(&shell, &words).0));
    }
}

/// A Turn with many calls, against the same calls without pixir.
fn calls() {
    let (shell, program, _) = home(1, "allow", &["tools=echo"]);
    assert_eq!(shell.run(["mcp", "test", "s0"]).code, 0);
    let one = |tool: &str, args: &Value| json!({ "calls": [{ "name": tool, "args": args }] });
    let of = |tool: &str, args: &Value| -> Vec<Value> {
        (0..CALLS).map(|_| one(tool, args)).chain([json!({ "text": "Done." })]).collect()
    };
    let run = |steps: &[Value]| -> Duration {
        let provider = script(&shell, steps);
        let words = ["--headless", "--json", "--mode", "ask", "--max-rounds", "600", "--provider", &provider, "go"];
        timed(|| assert_eq!(shell.run(words).code, 0))
    };
    let a_call = |times: Duration| times / u32::try_from(CALLS).expect("few");
    shell.write("a.txt", "alpha\n");
    let own = (0..RUNS).map(|_| a_call(run(&of("read", &json!({ "path": "a.txt" }))))).collect();
    row("a call of a tool of pixir, with its request", own);
    let servers = (0..RUNS).map(|_| a_call(run(&of("s0__echo", &json!({ "text": "hi" }))))).collect();
    row("a call of a server, with its request", servers);
    row("the same call without pixir", raw(&program));
}

/// The server's own time for a call.
fn raw(program: &Path) -> Vec<Duration> {
    let mut child = Command::new("python3")
        .args([program.as_os_str(), "tools=echo".as_ref()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3 starts");
    let mut stdin = child.stdin.take().expect("piped");
    let mut stdout = BufReader::new(child.stdout.take().expect("piped"));
    let mut times = Vec::new();
    for id in 0..CALLS {
        let params = json!({ "name": "echo", "arguments": { "text": "hi" } });
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
        times.push(timed(|| {
            writeln!(stdin, "{request}").expect("it reads");
            stdout.read_line(&mut String::new()).expect("it answers");
        }));
    }
    drop(stdin);
    child.wait().expect("it ends");
    times
}

/// A run in a call that does not end.
fn hanging(shell: &Shell, servers: usize, journal: &Path) -> Child {
    let calls: Vec<Value> = (0..servers).map(|n| json!({ "name": format!("s{n}__hang"), "args": {} })).collect();
    let provider = script(shell, &[json!({ "calls": calls }), json!({ "text": "Done." })]);
    let mut command = shell.command(["--headless", "--json", "--mode", "ask", "--provider", &provider, "go"]);
    let wanted = lines(journal, "call hang") + servers;
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
    wait::until("the calls", || lines(journal, "call hang") >= wanted);
    child
}

fn cancel() {
    let (shell, _, journal) = home(1, "allow", &["tools=hang"]);
    assert_eq!(shell.run(["mcp", "test", "s0"]).code, 0);
    let mut told = Vec::new();
    for _ in 0..RUNS {
        let mut child = hanging(&shell, 1, &journal);
        let before = lines(&journal, "notifications/cancelled");
        told.push(timed(|| {
            kill_process(Pid::from_child(&child), Signal::INT).expect("it runs");
            wait::until("the server is told", || lines(&journal, "notifications/cancelled") > before);
        }));
        child.wait().expect("it ends");
    }
    row("from an interrupt to the server's being told", told);
}

fn end() {
    for stubborn in [&[][..], &["stubborn=1"][..]] {
        let (shell, _, journal) = home(SERVERS, "reads", &[&["tools=hang"], stubborn].concat());
        for n in 0..SERVERS {
            assert_eq!(shell.run(["mcp", "test", &format!("s{n}")]).code, 0);
        }
        let mut times = Vec::new();
        for _ in 0..RUNS {
            let mut child = hanging(&shell, SERVERS, &journal);
            times.push(timed(|| {
                kill_process(Pid::from_child(&child), Signal::TERM).expect("it runs");
                child.wait().expect("it ends");
            }));
        }
        let kind = if stubborn.is_empty() { "servers" } else { "servers that ignore TERM" };
        row(&format!("the end of a run with {kind}"), times);
    }
}
