//! A long conversation in one process: what it costs does not grow with it.
//!
//! `PIXIR_TESTS=20` runs it for 20 minutes instead of 40 Turns, and prints the figures at 1, 5, 10 and 20 minutes.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::pty::Terminal;
use crate::server::{Dialect, Reply, Server, call, text};
use crate::shell::{Shell, figures};
use crate::tier;
use crate::wait;

/// Turns of the quick tier, and those before the first look, which load what all later ones use.
const TURNS: usize = 40;
const WARM: usize = 10;
/// Turns a minute that the long tier has answers for.
const A_MINUTE: usize = 3_000;

/// What a process uses.
#[derive(Debug, Clone, Copy)]
struct Use {
    resident_kb: u64,
    /// Hundredths of a second.
    cpu: u64,
    descriptors: usize,
    threads: usize,
}

impl Use {
    fn of(id: u32) -> Use {
        let status = fs::read_to_string(format!("/proc/{id}/status")).expect("it runs");
        let field = |key: &str| {
            let value = status.lines().find_map(|line| line.strip_prefix(key)?.split_whitespace().next());
            value.and_then(|it| it.parse::<u64>().ok()).expect("a number")
        };
        let stat = fs::read_to_string(format!("/proc/{id}/stat")).expect("it runs");
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        Use {
            resident_kb: field("VmRSS:"),
            cpu: fields[11..13].iter().map(|ticks| ticks.parse::<u64>().expect("ticks")).sum(),
            descriptors: fs::read_dir(format!("/proc/{id}/fd")).expect("it runs").count(),
            threads: usize::try_from(field("Threads:")).expect("a small number"),
        }
    }
}

/// Broken builds: a Turn keeps its connection, its file or its thread; the id of each call is tried from the first.
#[test]
fn a_long_conversation_leaves_no_descriptor_and_no_thread_behind() {
    let minutes = tier::cases("a_long_conversation");
    let shell = Shell::new(&[("notes.md", "one\ntwo\nthree\n")]);
    // The server repeats the ids of its calls, and its model has a window of 32,768 tokens, so that it is compacted often.
    let turns = if minutes == 0 { TURNS } else { minutes * A_MINUTE };
    let replies = (0..turns).flat_map(|n| {
        [call("call_1", "read", json!({ "path": "notes.md" })), text(&format!("Answer {n}: **three** lines.\n"))]
    });
    let server = Server::counting(replies.collect(), 32_768);
    // The server's next answer is always that of the next Turn.
    let flags = [
        "--config",
        "compaction.summary=pixir",
        "--base-url",
        &server.url,
        "--dialect",
        Dialect::Chat.name(),
        "--model",
        "other",
    ];
    let mut terminal = Terminal::start(&shell, &flags, 120, 40);
    terminal.wait_for("Ask pixir");
    let began = Instant::now();
    let looks: Vec<Duration> = [1, 5, 10, 20].map(|minute| Duration::from_secs(minute * 60)).to_vec();
    let mut looks = looks.into_iter().filter(|at| at.as_secs() <= minutes as u64 * 60).peekable();
    let mut first: Option<(usize, Use)> = None;
    let mut before = (0, Use::of(terminal.process()));
    let mut costs: Vec<f64> = Vec::new();
    for turn in 0..turns {
        terminal.send(&format!("look {turn}\r"));
        terminal.wait_for(&format!("Answer {turn}:"));
        terminal.wait_for("/ commands");
        let now = Use::of(terminal.process());
        let is_look = looks.peek().is_some_and(|at| began.elapsed() >= *at);
        if turn + 1 == WARM {
            first = Some((turn, now));
        }
        if is_look || turn + 1 == turns || turn + 1 == WARM {
            looks.next_if(|_| is_look);
            let (since, earlier) = std::mem::replace(&mut before, (turn + 1, now));
            let a_turn = (now.cpu - earlier.cpu) as f64 * 10.0 / (turn + 1 - since).max(1) as f64;
            // Of a few Turns nothing can be said: the clock has steps of 10 ms.
            costs.extend(Some(a_turn).filter(|_| turn + 1 - since > 400));
            figures(&format!(
                "soak: {} Turns after {:.0} s: {:.1} MB, {a_turn:.1} ms of CPU a Turn, {} descriptors, {} threads",
                turn + 1,
                began.elapsed().as_secs_f64(),
                now.resident_kb as f64 / 1024.0,
                now.descriptors,
                now.threads,
            ));
        }
        if minutes > 0 && began.elapsed().as_secs() >= minutes as u64 * 60 {
            break;
        }
    }
    let (_, first) = first.expect("there were enough Turns");
    let last = Use::of(terminal.process());
    if let [.., earlier, later] = costs.as_slice() {
        assert!(later <= &(earlier * 2.0), "{earlier:.1} ms of CPU a Turn, then {later:.1}");
    }
    // A connection that has just ended may still be there.
    assert!(last.descriptors <= first.descriptors + 2, "{first:?}, then {last:?}");
    // Those that read and write files take turns, so that none of them rests while Turns follow one another; then they end.
    let is_back = || Use::of(terminal.process()).threads <= first.threads + 2;
    assert!(wait::within(wait::PATIENCE, is_back), "{first:?}, then {last:?}, and they stay");
    // The Session keeps its entries in memory, and nothing else that grows.
    let log_kb = fs::metadata(&shell.logs()[0]).expect("the log").len() / 1024;
    figures(&format!("soak: the Log has {log_kb} KB"));
    assert!(
        last.resident_kb < first.resident_kb + (32 << 10) + log_kb * 3 / 2,
        "{first:?}, then {last:?}, {log_kb} KB"
    );
    terminal.send("\x04");
    terminal.end().assert_sane();
}

/// Broken build: a summary that grows with each compaction. In a window of 4,096 tokens, of which the tools need half, the
/// conversation then ends after about 34 Turns.
#[test]
fn a_conversation_goes_on_in_a_window_that_the_tools_half_fill() {
    let shell = Shell::new(&[("notes.md", "one\ntwo\nthree\n")]);
    let turns = 80;
    let replies = (0..turns).flat_map(|n| {
        [call("call_1", "read", json!({ "path": "notes.md" })), text(&format!("Answer {n}: **three** lines.\n"))]
    });
    let server = Server::counting(replies.collect(), 6_144);
    let flags = ["--config", "compaction.summary=pixir", "--base-url", &server.url, "--dialect", "chat"];
    let flags = [flags.as_slice(), &["--model", "other"]].concat();
    let mut terminal = Terminal::start(&shell, &flags, 120, 40);
    terminal.wait_for("Ask pixir");
    for turn in 0..turns {
        terminal.send(&format!("look {turn}\r"));
        terminal.wait_for(&format!("Answer {turn}:"));
        terminal.wait_for("/ commands");
    }
    terminal.send("\x04");
    terminal.end().assert_sane();
}

/// Broken build: a runtime with workers, which each step of a call wakes, and which have a stack and a heap each.
#[test]
fn a_headless_turn_that_waits_for_its_model_has_one_thread() {
    let shell = Shell::new(&[]);
    let server = Server::start(vec![Reply::Stall { text: "Hello.".into() }]);
    let mut args = server.flags(Dialect::Responses);
    args.extend(["--headless", "--json", "--write", "hi"].map(str::to_owned));
    let mut pixir = shell.command(args).spawn().expect("it starts");
    server.wait_for(1);
    // Those that wait for the disk end when there has been no work for 0.3 s.
    wait::until("one thread is left", || Use::of(pixir.id()).threads == 1);
    pixir.kill().expect("it runs");
    pixir.wait().expect("it ends");
}
