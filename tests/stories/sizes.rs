//! Screens of every size, and the change from one to another.

use std::path::Path;
use std::process::Command;

use rustix::process::Signal;
use serde_json::json;

use super::frames::ANSWER;
use crate::connected::{start, terminal};
use crate::driver::{Pixir, also_calls, calls, says, timeless};
use crate::server::{Dialect, Reply, Server, text};
use crate::shell::Shell;
use crate::tier;

#[tokio::test]
async fn the_screen_at_three_sizes_and_below_the_smallest() {
    let answer = "## Title\n\nText with `code`.\n\n- one\n- two\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```rust\nfn main() {}\n```\n";
    for (columns, rows) in [(60, 20), (80, 24), (120, 40)] {
        let step = also_calls(calls("read", json!({"path": "a.txt"})), "grep", json!({"pattern": "zzz"}));
        let mut pixir = Pixir::sized(vec![step, says(answer)], &[("a.txt", "x\n")], columns, rows);
        let screen = pixir.does("show me<Enter>").await;
        insta::assert_snapshot!(format!("{columns}x{rows}"), timeless(&screen));
    }
    let mut pixir = Pixir::sized(vec![says("ok")], &[], 80, 24);
    pixir.does("hi<Enter>").await;
    for (columns, rows) in [(1, 1), (2, 2), (39, 9), (40, 10), (200, 60), (3, 50), (90, 1)] {
        pixir.screen.resize(columns, rows);
        for layer in ["<F1>", "<Esc>", "<C-t>", "<Esc>", "<A-d>", "<Esc>", "/", "<C-c>"] {
            pixir.screen.keys(layer).await;
        }
    }
}

#[tokio::test]
async fn no_size_breaks_any_screen() {
    let step = calls("write", json!({"path": "b.txt", "content": "x\ny\n"}));
    let mut pixir = Pixir::sized(vec![step, says(ANSWER), says(ANSWER)], &[], 80, 24);
    pixir.does("go<Enter>").await;
    let sizes: Vec<(u16, u16)> = (0..=40).flat_map(|columns| (0..=15).map(move |rows| (columns, rows))).collect();
    assert_eq!(sizes.len(), 656);
    let layers = [
        "",
        "<Tab><Enter>",
        "<Esc><Esc><A-n>",
        "<C-p>",
        "<Esc><F1>",
        "<Esc><C-t>",
        "<Esc><A-d>",
        "<Esc><Tab>y",
        "<Esc>/",
        "o",
        "<Esc><C-f>x",
        "<Esc><Esc>/theme<Enter>",
        "<Esc>/settings<Enter>",
        "<Esc>/sessions<Enter>",
        "<Esc>/model<Enter>",
        "<Esc>/context<Enter>",
        "<Esc>/compact<Enter>",
        "<Esc>/agents<Enter>",
        "<Esc><F12>",
    ];
    for layer in layers {
        pixir.screen.resize(80, 24);
        pixir.does(layer).await;
        for (columns, rows) in &sizes {
            pixir.screen.resize(*columns, *rows);
        }
        for (columns, rows) in [(1, 1), (65_535, 1), (1, 300), (500, 3)] {
            pixir.screen.resize(columns, rows);
        }
    }
}

#[test]
fn a_resize_and_back_redraws_every_cell() {
    let shell = Shell::new(&[]);
    let server = Server::start(vec![text(&"A line of some length. ".repeat(30))]);
    let mut terminal = terminal(&shell, &server, &[], (80, 24));
    terminal.wait_for("Ask pixir");
    terminal.send("go\r");
    terminal.wait_that("is idle", |screen| screen.contains("A line") && screen.contains("/ commands"));
    let before = terminal.screen();
    for (columns, rows) in [(50, 12), (120, 40), (80, 24)] {
        let written = terminal.written();
        terminal.resize(columns, rows);
        terminal.wait_that_written("the new size", written + 200);
        terminal.wait_that("is drawn", |screen| screen.contains('╯'));
    }
    let rows = |screen: &str| screen.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>();
    terminal.wait_that("is what it was", |screen| rows(screen) == rows(&before));
    terminal.send("\x04");
    terminal.end().assert_sane();
}

#[test]
fn resize_while_streaming_keeps_the_layout() {
    let shell = Shell::new(&[]);
    let server = Server::start(vec![Reply::Stall {
        text: "A line that is long enough to be wrapped on a narrow screen. ".repeat(20),
    }]);
    let mut terminal = start(&shell, &server, Dialect::Responses, 100, 30);
    terminal.wait_for("Ask pixir");
    terminal.send("go\r");
    terminal.wait_for("narrow screen");
    for (columns, rows) in [(60, 20), (40, 10), (120, 40), (80, 24)] {
        terminal.resize(columns, rows);
        terminal.wait_that("everything is in its place", |screen| {
            let lines: Vec<&str> = screen.lines().collect();
            let frame = |left, right| {
                let is_it = |line: &&&str| line.starts_with(left) && line.trim_end().ends_with(right);
                lines.iter().filter(is_it).any(|line| line.trim_end().chars().count() == usize::from(columns))
            };
            let text = lines.iter().filter(|line| line.contains("narrow") || line.contains("enough")).count();
            frame('╭', '╮') && frame('╰', '╯') && screen.contains("Esc interrupts") && text > 2
        });
    }
    terminal.signal(Signal::TERM);
    terminal.end().assert_sane();
}

/// Broken builds: a screen of the pictures does not come up any more, is wider or higher than the terminal, or loses a
/// corner of a frame at one of the sizes.
#[test]
fn every_screen_of_the_pictures_is_drawn_at_four_sizes() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/pictures/every.sh");
    let sizes = vec![(60, 20), (80, 24), (120, 40), (200, 60)];
    for (columns, rows) in tier::sample("every_screen_of_the_pictures", sizes) {
        let folder = tempfile::tempdir().expect("a folder");
        let mut command = Command::new("bash");
        command.arg(&script).arg("--screens").arg(folder.path()).arg(format!("{columns}x{rows}"));
        let ran = command.env("PIXIR", env!("CARGO_BIN_EXE_pixir")).output().expect("bash");
        assert!(ran.status.success(), "{columns}x{rows}: {}", String::from_utf8_lossy(&ran.stderr));
        let files = std::fs::read_dir(folder.path()).expect("frames").map(|it| it.expect("a frame").path());
        let frames: Vec<_> = files.filter(|it| it.extension().is_some_and(|ending| ending == "txt")).collect();
        assert!(frames.len() > 40, "{} frames", frames.len());
        for frame in frames {
            let screen = std::fs::read_to_string(&frame).expect("read");
            let name = frame.display();
            assert!(screen.lines().count() <= rows, "{name}:\n{screen}");
            for line in screen.lines() {
                assert!(line.chars().count() <= columns, "{name} is too wide: {line}");
                // The lanes of the tree turn with right corners alone.
                let has_left = line.matches('╭').count() <= line.matches('╮').count();
                let has_foot = line.matches('╰').count() <= line.matches('╯').count();
                assert!(has_left && has_foot, "{name} lost a corner:\n{screen}");
            }
        }
    }
}
