//! What the interface costs while an answer streams in, as a whole process in a pty: `cargo bench --bench screen`.
//!
//! Counts hold on a noisy machine; seconds are for orientation.

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
use std::time::{Duration, Instant};

use pty::Terminal;
use serde_json::json;
use server::{Act, Dialect, HEAD, Reply, Server, event};
use shell::Shell;

#[expect(clippy::print_stdout, reason = "a bench prints its table")]
fn main() {
    println!("| deltas | per second | text, KB | CPU, s | to the terminal, KB | ratio | echo p50, ms | p99, ms |");
    println!("| --- | --- | --- | --- | --- | --- | --- | --- |");
    for (deltas, per_second) in [(200, 500), (2_000, 500), (20_000, 5_000)] {
        stream(deltas, per_second, false);
        stream(deltas, per_second, true);
    }
}

/// An answer of so many words, one in each delta, as people read it: paragraphs, and now and then a list and code.
fn words(count: usize) -> Vec<String> {
    (0..count)
        .map(|n| match n % 120 {
            0 => "\n\n## A heading\n\n".into(),
            30 => "\n\n- an item\n".into(),
            31..36 => format!("- item {n}\n"),
            36 => "\n\n".into(),
            80 => "\n\n```rust\n".into(),
            81..90 => format!("let n{n} = {n};\n"),
            90 => "```\n\n".into(),
            _ => format!("word{n:02} ").chars().skip(n % 5).collect(),
        })
        .collect()
}

#[expect(clippy::print_stdout, reason = "a bench prints its table")]
fn stream(deltas: usize, per_second: u64, typing: bool) {
    let words = words(deltas);
    let size: usize = words.iter().map(String::len).sum();
    let mut acts = vec![Act::Send(HEAD.into())];
    let delta = |text: &str| {
        let value = json!({ "choices": [{ "index": 0, "delta": { "content": text } }] });
        Act::Send(event(&value).into_bytes())
    };
    for word in &words {
        acts.push(delta(word));
        acts.push(Act::Pause(1_000_000 / per_second - 60.min(1_000_000 / per_second)));
    }
    acts.push(delta("\n\nTHE END\n"));
    acts.push(Act::Send(server::end(Dialect::Chat, false).concat().into_bytes()));
    let server = Server::start(vec![Reply::Raw(acts)]);
    let shell = Shell::new(&[]);
    let flags = server.flags(Dialect::Chat);
    let mut terminal = Terminal::start(&shell, &flags.iter().map(String::as_str).collect::<Vec<_>>(), 120, 40);
    terminal.wait_for("Ask pixir");
    terminal.wait_for("✓ m");
    terminal.send("go\r");
    terminal.wait_for("Esc interrupts");
    let (cpu, bytes) = (cpu_ticks(terminal.process()), terminal.written());
    let mut echo = Vec::new();
    if typing {
        // `send` waits after a line, as a person does; that is not the time of the key.
        wait::lapse(Duration::from_millis(100));
        let mut typed = String::from("❯ ");
        let began = Instant::now();
        while began.elapsed().as_secs_f64() < deltas as f64 / per_second as f64 * 0.9 && typed.len() < 90 {
            typed.push('x');
            let sent = Instant::now();
            terminal.send("x");
            terminal.wait_for(&typed);
            echo.push(sent.elapsed().as_secs_f64() * 1e3);
            wait::lapse(Duration::from_millis(23));
        }
    }
    terminal.wait_for("THE END");
    terminal.wait_for("/ commands");
    let (cpu, bytes) = ((cpu_ticks(terminal.process()) - cpu) as f64 / 100.0, terminal.written() - bytes);
    terminal.send("\x03\x03\x03");
    terminal.end();
    echo.sort_by(f64::total_cmp);
    let at = |share: usize| echo.get(echo.len() * share / 100).map_or("".to_owned(), |ms| format!("{ms:.2}"));
    println!(
        "| {deltas} | {per_second} | {:.1} | {cpu:.2} | {:.0} | {:.1} | {} | {} |",
        size as f64 / 1e3,
        bytes as f64 / 1e3,
        bytes as f64 / size as f64,
        at(50),
        at(99)
    );
}

fn cpu_ticks(id: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    let fields: Vec<&str> = text.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    fields.get(11..13).map_or(0, |f| f.iter().filter_map(|t| t.parse::<u64>().ok()).sum())
}
