//! The figures of a whole process, each beside a floor measured in the same run: `cargo bench --bench whole`.
//!
//! Seconds are for orientation; ratios and counts hold on a noisy machine. `PIXIR_IDLE=60` watches the idle screen for a minute.

#[path = "../tests/pty.rs"]
#[expect(dead_code, reason = "the stories use more of it")]
mod pty;
#[path = "../tests/server.rs"]
#[expect(dead_code, reason = "the stories use more of it")]
mod server;
#[path = "../tests/shell.rs"]
#[expect(dead_code, reason = "the stories use more of it")]
mod shell;
#[path = "../tests/wait.rs"]
mod wait;

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use pty::Terminal;
use server::{Dialect, Reply, Server, call, text};
use shell::Shell;

const RUNS: usize = 40;

#[expect(clippy::print_stdout, reason = "a bench prints its table")]
fn main() {
    println!("| what | median | best | floor | budget |");
    println!("| --- | --- | --- | --- | --- |");
    let floor = median(RUNS, || timed(|| assert!(Command::new("/bin/true").status().expect("it runs").success())));
    let empty = empty_program();
    let runs = |program: &Path| timed(|| assert!(Command::new(program).status().expect("it runs").success()));
    let empty_floor = median(RUNS, || runs(empty.as_ref()));
    let shell = Shell::new(&[]);
    let version = sorted(RUNS, || timed(|| drop(shell.run(["--version"]))));
    let floors = format!("{floor:.2} (/bin/true), {empty_floor:.2} (an empty Rust program)");
    row("--version, ms", &version, &floors, "≤ 1.5, 2 × the empty program");
    let help = sorted(RUNS, || timed(|| drop(shell.run(["--help"]))));
    row("--help, ms", &help, "", "≤ 3");
    headless();
    tool_loop();
    screen();
    skills();
}

/// A Rust program that does nothing.
fn empty_program() -> tempfile::TempPath {
    let source = "fn main() {}";
    let program = tempfile::NamedTempFile::new().expect("a file").into_temp_path();
    let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
        .args(["--edition", "2024", "-O", "-C", "strip=symbols", "-", "-o"])
        .arg(&program)
        .stdin(Stdio::piped())
        .spawn()
        .expect("rustc");
    rustc.stdin.take().expect("stdin").write_all(source.as_bytes()).expect("it reads");
    assert!(rustc.wait().expect("it ends").success());
    program
}

/// A home with 500 skills: the first frame does not wait for them.
fn skills() {
    let shell = Shell::new(&[]);
    for n in 0..500 {
        let text =
            format!("---\nname: skill-{n}\ndescription: {}\n---\n{}\n", "word ".repeat(40), "line\n".repeat(200));
        let root = shell.home().parent().expect("a parent").join(".claude/skills").join(format!("skill-{n}"));
        fs::create_dir_all(&root).expect("mkdir");
        fs::write(root.join("SKILL.md"), text).expect("write");
    }
    let mut first = Vec::new();
    for _ in 0..RUNS / 2 {
        let began = Instant::now();
        let mut terminal = Terminal::start(&shell, &[], 120, 40);
        terminal.wait_for("Ask pixir");
        first.push(began.elapsed().as_secs_f64() * 1e3);
        terminal.wait_for("No model is connected");
        terminal.send("\x03\x03\x03");
        terminal.end();
    }
    first.sort_by(f64::total_cmp);
    row("TUI: exec to first usable frame, 500 skills, ms", &first, "", "≤ 10");
    let list = sorted(10, || timed(|| drop(shell.run(["skills", "list", "--json"]))));
    row("skills list, 500 skills, ms", &list, "", "");
}

#[expect(clippy::print_stdout, reason = "a bench prints its table")]
fn headless() {
    let (mut times, mut asked) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        let shell = Shell::new(&[]);
        let server = Server::start(vec![text("Hello.")]);
        let mut args = server.flags(Dialect::Responses);
        args.extend(["--headless", "--json", "--write", "hi"].map(str::to_owned));
        let mut command = shell.command(args);
        let began = Instant::now();
        let mut child = command.spawn().expect("it starts");
        server.wait_for(1);
        asked.push(began.elapsed().as_secs_f64() * 1e3);
        let status = child.wait().expect("it ends");
        times.push(began.elapsed().as_secs_f64() * 1e3);
        assert!(status.success());
    }
    times.sort_by(f64::total_cmp);
    asked.sort_by(f64::total_cmp);
    row("headless one-shot turn, ms", &times, "", "≤ 15");
    row("– of it before the request is there, ms", &asked, &format!("{:.2} (a synced line)", synced_line()), "≤ 6");
    // The same turn, held in mid-answer, so that its peak can be read while it lives.
    let shell = Shell::new(&[]);
    let server = Server::start(vec![Reply::Stall { text: "Hello.".into() }]);
    let mut args = server.flags(Dialect::Responses);
    args.extend(["--headless", "--format", "jsonl", "--write", "hi"].map(str::to_owned));
    let mut child = shell.command(args).spawn().expect("it starts");
    let lines = BufReader::new(child.stdout.take().expect("stdout")).lines();
    let streamed = lines.map_while(Result::ok).any(|line| line.contains("text_delta"));
    let peak = status_line(child.id(), "VmHWM:");
    let _ = child.kill();
    let _ = child.wait();
    assert!(streamed, "it answered");
    println!("| – peak memory, MB | {:.1} | | | ≤ 20 |", peak as f64 / 1024.0);
}

/// A line that is appended to a file and synced. A turn waits for two before its request: its Log, and the message.
fn synced_line() -> f64 {
    let shell = Shell::new(&[]);
    let mut file = fs::File::create(shell.workspace().join("line")).expect("a file");
    median(RUNS, || {
        timed(|| {
            file.write_all(&[b'x'; 500]).expect("it is written");
            file.sync_data().expect("it is synced");
        })
    })
}

/// A loop of 20 commands; the cost of each beyond a bare `bash -c`.
fn tool_loop() {
    const CALLS: usize = 20;
    let bash = median(RUNS, || timed(|| drop(Command::new("bash").args(["-c", "echo 1"]).output().expect("it runs"))));
    let mut times = Vec::new();
    for _ in 0..RUNS / 4 {
        let shell = Shell::new(&[]);
        let turn = |calls: usize| {
            let mut replies: Vec<_> =
                (0..calls).map(|i| call(&format!("c{i}"), "bash", json!({"command": "echo 1"}))).collect();
            replies.push(text("done"));
            let server = Server::start(replies);
            let mut args = server.flags(Dialect::Responses);
            args.extend(["--headless", "--json", "--write", "hi"].map(str::to_owned));
            timed(|| assert_eq!(shell.run(args.clone()).code, 0))
        };
        times.push((turn(CALLS) - turn(0)) / CALLS as f64);
    }
    times.sort_by(f64::total_cmp);
    row("tool call in a loop of 20, ms each", &times, &format!("{bash:.2} (bash -c)"), "≤ 3");
}

#[expect(clippy::print_stdout, reason = "a bench prints its table")]
fn screen() {
    let repository = || {
        let shell = Shell::new(&[]);
        for i in 0..2_000 {
            shell.write(&format!("src/dir{}/file{i}.rs", i % 50), "fn main() {}\n");
        }
        shell
    };
    let shell = repository();
    let mut first = Vec::new();
    let mut echo = Vec::new();
    let mut idle = None;
    for round in 0..RUNS / 2 {
        let began = Instant::now();
        let mut terminal = Terminal::start(&shell, &[], 120, 40);
        terminal.wait_for("Ask pixir");
        first.push(began.elapsed().as_secs_f64() * 1e3);
        terminal.wait_for("No model is connected");
        if round == 0 {
            let id = terminal.process();
            // What was started with the first frame has ended; then the watch begins.
            wait::lapse(Duration::from_secs(1));
            let seconds = std::env::var("PIXIR_IDLE").ok().and_then(|s| s.parse().ok()).unwrap_or(10);
            let (switches, cpu, bytes) = (wake_ups(id), cpu_ticks(id), written(id));
            wait::lapse(Duration::from_secs(seconds));
            idle = Some((
                seconds,
                wake_ups(id).abs_diff(switches),
                cpu_ticks(id) - cpu,
                written(id) - bytes,
                resident(id),
            ));
        }
        let mut typed = String::from("❯ ");
        for letter in ['q', 'w', 'x', 'z'] {
            typed.push(letter);
            let began = Instant::now();
            terminal.send(&letter.to_string());
            terminal.wait_for(&typed);
            echo.push(began.elapsed().as_secs_f64() * 1e3);
        }
        terminal.send("\x03\x03\x03");
        terminal.end();
    }
    first.sort_by(f64::total_cmp);
    echo.sort_by(f64::total_cmp);
    row("TUI: exec to first usable frame, 2,000 files, ms", &first, "", "≤ 10");
    row("key to painted echo, idle, ms", &echo, "", "≤ 0.8 (p95 ≤ 2)");
    println!("| – p95 | {:.2} | | | |", echo[echo.len() * 95 / 100]);
    let (seconds, switches, ticks, bytes, memory) = idle.expect("the first round watched");
    println!("| idle TUI, wake-ups in {seconds} s | {switches} | | | 0 |");
    println!("| – bytes to the terminal | {bytes} | | | 0 |");
    println!("| – CPU ticks in {seconds} s | {ticks} | | | 0 |");
    println!("| – resident memory, MB | {:.1} | | | ≤ 25 |", memory as f64 / 1024.0);
    let size = fs::metadata(env!("CARGO_BIN_EXE_pixir")).map_or(0, |m| m.len());
    println!("| binary, MB | {:.1} | | | ≤ 30 |", size as f64 / 1e6);
}

fn timed(work: impl FnOnce()) -> f64 {
    let began = Instant::now();
    work();
    began.elapsed().as_secs_f64() * 1e3
}

fn sorted(runs: usize, mut work: impl FnMut() -> f64) -> Vec<f64> {
    let mut times: Vec<f64> = (0..runs).map(|_| work()).collect();
    times.sort_by(f64::total_cmp);
    times
}

fn median(runs: usize, work: impl FnMut() -> f64) -> f64 {
    let times = sorted(runs, work);
    times[times.len() / 2]
}

#[expect(clippy::print_stdout, reason = "a bench prints its table")]
fn row(what: &str, times: &[f64], floor: &str, budget: &str) {
    println!("| {what} | {:.2} | {:.2} | {floor} | {budget} |", times[times.len() / 2], times[0]);
}

fn status_line(id: u32, key: &str) -> u64 {
    let text = fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    text.lines().find_map(|l| l.strip_prefix(key)?.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

fn resident(id: u32) -> u64 {
    status_line(id, "VmRSS:")
}

/// Bytes that the process has written anywhere.
fn written(id: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{id}/io")).unwrap_or_default();
    text.lines().find_map(|l| l.strip_prefix("wchar:")?.trim().parse().ok()).unwrap_or(0)
}

/// Times that any thread of the process was woken.
fn wake_ups(id: u32) -> u64 {
    let tasks = fs::read_dir(format!("/proc/{id}/task")).into_iter().flatten().flatten();
    let texts = tasks.filter_map(|t| fs::read_to_string(t.path().join("status")).ok());
    texts
        .filter_map(|t| t.lines().find_map(|l| l.strip_prefix("voluntary_ctxt_switches:")?.trim().parse::<u64>().ok()))
        .sum()
}

fn cpu_ticks(id: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    let fields: Vec<&str> = text.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    fields.get(11..13).map_or(0, |f| f.iter().filter_map(|t| t.parse::<u64>().ok()).sum())
}
