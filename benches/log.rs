//! The Log, the fold and the list at 1,000, 10,000 and 100,000 entries: `cargo bench --bench log`.
//!
//! Ratios between the columns show how the cost grows; seconds are for orientation.

#[expect(dead_code, reason = "the bench of growth uses more of it")]
mod conversation;
#[path = "../tests/pty.rs"]
#[expect(dead_code, reason = "the stories use more of it")]
mod pty;
#[path = "../tests/shell.rs"]
#[expect(dead_code, reason = "the stories use more of it")]
mod shell;
#[path = "../tests/wait.rs"]
mod wait;

use std::sync::Arc;
use std::time::Instant;

use pixir_core::event::SessionId;
use pixir_core::history::History;
use pixir_core::log::Log;
use pixir_core::store::Store;
use pixir_core::{log, prompt, tree};

use conversation::write_log;
use pty::Terminal;
use shell::Shell;

const SIZES: [usize; 3] = [1_000, 10_000, 100_000];
const RUNS: usize = 5;

fn best<T>(mut work: impl FnMut() -> T) -> f64 {
    let once = |work: &mut dyn FnMut() -> T| {
        let began = Instant::now();
        let kept = work();
        let took = began.elapsed().as_secs_f64();
        drop(kept);
        took
    };
    (0..RUNS).map(|_| once(&mut work)).fold(f64::INFINITY, f64::min)
}

#[expect(clippy::print_stdout, reason = "a bench prints its table")]
fn main() {
    println!(
        "| entries | Log, MB | append, k/s | open+verify, MB/s | – ms | fold, M/s | request, ms | tree, ms | list, cold ms | list, warm ms | resume: history on screen, ms | memory, MB |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |");
    for entries in SIZES {
        let shell = Shell::new(&[]);
        let workspace = shell.workspace().canonicalize().expect("a folder");
        let store = Store::new(&shell.home());
        let folder = store.folder_of(&workspace);
        let (id, path, appended) = write_log(&folder, &workspace, entries);
        let megabytes = std::fs::metadata(&path).expect("a log").len() as f64 / 1e6;
        let opened = best(|| Log::open(&path, id.clone()).expect("opens"));
        let contents = log::read(&path).expect("read").entries;
        let folded = best(|| History::fold(contents.iter().map(Arc::clone)));
        let history = History::fold(contents.iter().map(Arc::clone));
        let registry = pixir_core::builtin_tools([]);
        let blobs = pixir_core::Blobs::new(std::env::temp_dir());
        let request = best(|| prompt::request(&history, registry.specs(history.settings.toolset), &blobs, "key"));
        let nodes = best(|| tree::nodes(&history));
        let began = Instant::now();
        assert_eq!(store.list(&folder).len(), 1);
        let cold = began.elapsed().as_secs_f64();
        let warm = best(|| store.list(&folder));
        let (shown, memory) = resume(&shell, &id);
        println!(
            "| {entries} | {megabytes:.1} | {:.0} | {:.0} | {:.1} | {:.1} | {:.2} | {:.1} | {:.1} | {:.2} | {shown:.0} | {memory:.0} |",
            entries as f64 / appended / 1e3,
            megabytes / opened,
            opened * 1e3,
            entries as f64 / folded / 1e6,
            request * 1e3,
            nodes * 1e3,
            cold * 1e3,
            warm * 1e3,
        );
    }
}

/// The real binary in a pty, from its start until the last answer can be read.
fn resume(shell: &Shell, id: &SessionId) -> (f64, f64) {
    let began = Instant::now();
    let mut terminal = Terminal::start(shell, &["resume", id.as_str()], 120, 40);
    terminal.wait_for("I looked at it and fixed what was wrong.");
    let shown = began.elapsed().as_secs_f64() * 1e3;
    let status = std::fs::read_to_string(format!("/proc/{}/status", terminal.process())).unwrap_or_default();
    let resident =
        status.lines().find_map(|l| l.strip_prefix("VmRSS:")?.split_whitespace().next()?.parse::<f64>().ok());
    terminal.send("\x03\x03\x03");
    terminal.end();
    (shown, resident.unwrap_or(0.0) / 1024.0)
}
