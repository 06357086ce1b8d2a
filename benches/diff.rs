//! What the diff costs, by how long it is: `cargo bench --bench diff`.
//!
//! A Session that changed one file of 1,000, 10,000 or 100,000 lines, or 2,000 files, is resumed at 200x60. "Open" is the
//! time from the key to the first frame with lines; the other rows are one key with its frame.

#[path = "../tests/driver.rs"]
#[expect(dead_code, reason = "the stories use more of it")]
mod driver;

use std::path::Path;
use std::time::Instant;

use driver::{Pixir, log_of};
use pixir_core::event::{ChangeKind, FileChange, ToolCall, ToolResult, UserMessage};

const SIZES: [usize; 3] = [1_000, 10_000, 100_000];
const FILES: usize = 2_000;
const KEYS: usize = 100;

#[expect(clippy::print_stdout, reason = "a bench prints its table")]
fn main() {
    println!("| diff | open, ms | j, ms | n, ms | page down, ms | `/`, ms | largest, ms |");
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    for lines in SIZES {
        row(&format!("1 file, {lines} changed lines"), 1, lines);
    }
    row(&format!("{FILES} files"), FILES, 50);
}

#[expect(clippy::print_stdout, reason = "a bench prints its table")]
fn row(name: &str, files: usize, lines: usize) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let mut pixir = Pixir::resumed(200, 60, |logs, workspace| write(logs, workspace, files, lines));
        pixir.screen.until_idle().await;
        let began = Instant::now();
        pixir.screen.keys("<A-d>").await;
        pixir.screen.until_idle().await;
        let open = began.elapsed();
        // A change of so many lines is folded at first.
        if lines > 1_000 {
            pixir.screen.keys("z").await;
        }
        assert!(pixir.screen.screen().contains("let changed_"), "{}", pixir.screen.screen());
        let mut largest = 0.0_f64;
        let mut costs = Vec::new();
        for key in ["j", "n", "<PgDn>", "/value<Enter>"] {
            let mut sum = 0.0;
            for _ in 0..KEYS {
                let began = Instant::now();
                pixir.screen.keys(key).await;
                pixir.screen.paint();
                let ms = began.elapsed().as_secs_f64() * 1e3;
                sum += ms;
                largest = largest.max(ms);
            }
            pixir.screen.keys("<Home>").await;
            costs.push(format!("{:.2}", sum / KEYS as f64));
        }
        println!("| {name} | {:.1} | {} | {largest:.1} |", open.as_secs_f64() * 1e3, costs.join(" | "));
    });
}

/// One Turn whose call changed every fourth line of each file.
fn write(logs: &Path, workspace: &Path, files: usize, lines: usize) {
    let home = logs.parent().and_then(Path::parent).expect("logs lie in a home");
    let blobs = pixir_core::store::Store::new(home).blobs();
    let text = |file: usize, word: &str| -> String {
        // Both versions have four lines for each changed one.
        (0..lines * 4)
            .map(|n| format!("    let {} = value({file}, {n});\n", if n % 4 == 0 { word } else { "same" }))
            .collect()
    };
    let changes = (0..files).map(|n| FileChange {
        path: format!("src/part{}/file{n}.rs", n % 40),
        kind: ChangeKind::Modified,
        before_blob: blobs.put(text(n, "old_value").as_bytes()).expect("put"),
        after_blob: blobs.put(text(n, "changed_value").as_bytes()).expect("put"),
        before_mode: Some(0o644),
        after_mode: Some(0o644),
        new_folders: 0,
        added: lines as u64,
        removed: lines as u64,
    });
    let changes = changes.collect();
    let mut log = log_of(logs, workspace);
    let said = UserMessage { text: "change it".into(), ..UserMessage::default() };
    log.append(Some(1), said.into()).expect("append");
    let call_id = "call_1".to_owned();
    let call = ToolCall { call_id: call_id.clone(), name: "bash".into(), ..ToolCall::default() };
    log.append(Some(1), call.into()).expect("append");
    let result = ToolResult { call_id, ok: true, output: "ok\n".into(), changes, ..ToolResult::default() };
    log.append(Some(1), result.into()).expect("append");
    log.establish().expect("establish");
}
