//! What the user approves: all of it is visible, and it is what runs.

use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use serde_json::json;

use crate::driver::{Pixir, calls, says};
use crate::shell::figures;
use crate::tier;

/// Parts of commands that hide something: from a terminal, from a reader, or behind many blanks.
const PIECES: [&str; 36] = [
    "\u{1b}[2K",
    "\u{1b}]0;t\u{7}",
    "\u{1b}[8m",
    "\u{9b}31m",
    "\u{8}\u{8}",
    "\r",
    "\t",
    "\u{7f}",
    "\u{b}",
    "\u{c}",
    "\u{85}",
    "\u{202e}",
    "\u{202d}",
    "\u{2066}",
    "\u{2069}",
    "\u{200e}",
    "\u{61c}",
    "\u{200b}",
    "\u{200c}",
    "\u{200d}",
    "\u{2060}",
    "\u{feff}",
    "\u{ad}",
    "\u{2028}",
    "\u{2029}",
    "\u{e0041}",
    "\u{e0100}",
    "\u{180e}",
    "\u{1d173}",
    "\u{3164}",
    "\u{a0}",
    "\u{2003}",
    "e\u{301}",
    "漢字",
    "ｒｍ",
    "rm -rf x",
];

/// Whether the character shows itself: it is no control character, no odd blank, hides nothing and changes no order.
fn shows_itself(c: char) -> bool {
    let hidden = [0xad, 0x61c, 0x180e, 0x3164, 0xfeff];
    let ranges = [0x200b..=0x200f, 0x2028..=0x202e, 0x2060..=0x2069, 0x1d173..=0x1d17a, 0xe0000..=0xe0fff];
    let code = u32::from(c);
    let is_odd_blank = c.is_whitespace() && c != ' ';
    !c.is_control() && !is_odd_blank && !hidden.contains(&code) && !ranges.iter().any(|it| it.contains(&code))
}

/// The command as a person has to see it, without blanks but those that are counted: a screen breaks lines at them.
fn as_shown(command: &str) -> String {
    let mut shown = String::new();
    let mut blanks = 0;
    for c in command.chars().chain(['\n']) {
        if c == ' ' {
            blanks += 1;
            continue;
        }
        if blanks > 32 {
            shown.push_str(&format!("[{blanks}blanks]"));
        }
        blanks = 0;
        match c {
            '\n' | '\t' => {}
            c if shows_itself(c) => shown.push(c),
            c if c.is_control() => shown.extend(c.escape_default()),
            c => shown.extend(c.escape_unicode()),
        }
    }
    shown
}

/// The screen without blanks and frames.
fn squeezed(screen: &str) -> String {
    screen.chars().filter(|c| !c.is_whitespace() && !"│┃▌▏█┆".contains(*c)).collect()
}

/// Broken builds: the card cleans a command (which drops sequences) and does not escape it; `bash` gets the trimmed command.
#[tokio::test]
async fn every_part_of_a_command_is_visible_and_the_approved_bytes_run() {
    let count = tier::cases("every_part_of_a_command");
    let mut runner = TestRunner::deterministic();
    let piece = prop_oneof![
        3 => proptest::sample::select(&PIECES[..]).prop_map(str::to_owned),
        1 => "[a-zA-Z0-9 ;&|<>()*?#-]{1,8}",
        1 => Just("\n".to_owned()),
        1 => (20_usize..200).prop_map(|n| " ".repeat(n)),
    ];
    let text = proptest::collection::vec(piece, 1..12).prop_map(|pieces| pieces.concat());
    let (mut tried, mut wrong) = (0, Vec::new());
    for columns in [60, 80, 120] {
        let commands: Vec<String> = (0..count / 3)
            .map(|n| {
                let hostile = text.new_tree(&mut runner).expect("a text").current();
                // bash itself tells which bytes it was given.
                let (before, after) = [("", ""), (" ", "\u{a0}"), ("\t", " "), ("  ", "\u{2003}")][n % 4];
                format!("{before}printf %s \"$BASH_EXECUTION_STRING\" > ran; : '{hostile}' {n}{after}")
            })
            .collect();
        let steps = commands.iter().map(|line| calls("bash", json!({ "command": line }))).chain([says("done")]);
        let mut pixir = Pixir::sized(steps.collect(), &[], columns, 50);
        pixir.does("go<Enter>").await;
        for command in &commands {
            let screen = pixir.screen.screen();
            let bytes = pixir.screen.paint();
            let strange = crate::pty::foreign_sequences(bytes.as_bytes());
            if !squeezed(&screen).contains(&as_shown(command)) {
                wrong.push(format!("{columns}: {command:?} is not shown:\n{screen}"));
            }
            if !strange.is_empty() {
                wrong.push(format!("{columns}: {command:?}: {strange:?}"));
            }
            pixir.does("<A-y>").await;
            if pixir.file("ran") != *command {
                wrong.push(format!("{columns}: {command:?} was approved, and ran as {:?}", pixir.file("ran")));
            }
            tried += 1;
        }
    }
    figures(&format!("QS7: {tried} commands in three widths, {} hidden, changed or raw", wrong.len()));
    assert!(wrong.is_empty(), "{}", wrong[..wrong.len().min(3)].join("\n"));
}
