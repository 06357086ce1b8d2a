//! Overlays for a screen reader: no frames, and the terminal's cursor on the selected item.

use serde_json::json;

use crate::pty::Terminal;
use crate::server::{Dialect, Server, call, text};
use crate::shell::Shell;

/// Waits until the cursor is on a row with this text, and no row has a character of a frame.
fn reads(terminal: &Terminal, wanted: &str) {
    let screen = if wanted.is_empty() { terminal.screen() } else { terminal.wait_for_cursor_on(wanted) };
    let drawn = screen.chars().find(|it| ('\u{2500}'..='\u{259f}').contains(it));
    assert_eq!(drawn, None, "{screen}");
}

/// Broken builds: the cursor is hidden while an overlay is open; a rule between a list and its preview is drawn.
#[test]
fn a_screen_reader_follows_the_selection_in_every_overlay() {
    let shell = Shell::new(&[("notes.txt", "one\ntwo\n")]);
    let change = json!({ "path": "notes.txt", "old_text": "two", "new_text": "three" });
    let server = Server::start(vec![call("c1", "edit", change), text("Changed."), text("Thanks.")]);
    let mut args = server.flags(Dialect::Responses);
    args.extend(["--mode", "auto"].map(str::to_owned));
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let pixir = env!("CARGO_BIN_EXE_pixir").as_ref();
    let mut terminal = Terminal::of(&shell, pixir, &args, &[("PIXIR_SCREEN_READER", "1")], 80, 24);
    terminal.wait_for("Ask pixir");
    terminal.send("count further\r");
    terminal.wait_for("Changed.");
    terminal.send("good\r");
    terminal.wait_for("Thanks.");
    let down = "\x1b[B";
    // The keys that open it, its title, its first item, the next one.
    let overlays = [
        ("\x10", "Palette", "/tree", "/diff"),
        ("\x1bOQ", "Settings", "Model", "Favourite models"),
        ("/sessions\r", "Sessions", "count further", "count further"),
        ("/permissions\r", "Permissions", "", ""),
        ("/context\r", "Context", "system prompt", "tools"),
        ("/connect\r", "Connect a model", "Paste a key", "Sign in"),
        ("/effort\r", "Effort", "default", "none"),
        ("/theme\r", "Theme", "auto", "colour-blind"),
    ];
    for (keys, title, first, next) in overlays {
        terminal.send(keys);
        terminal.wait_for(title);
        reads(&terminal, first);
        terminal.send(down);
        reads(&terminal, next);
        terminal.send("\x1b");
        terminal.wait_that("it is closed", |screen| !screen.contains(title));
    }
    terminal.send("\x14");
    terminal.wait_for("Tree · 2 turns");
    reads(&terminal, "good");
    terminal.send("\x1b[A");
    reads(&terminal, "count further");
    terminal.send("\x1b");
    terminal.wait_for("Ask pixir");
    terminal.send("\x1bd");
    terminal.wait_for("hunk 1/1");
    reads(&terminal, "two");
    terminal.send(down);
    reads(&terminal, "three");
    terminal.send("\x1b");
    terminal.wait_for("Ask pixir");
    terminal.send("\x04");
    terminal.end().assert_sane();
}
