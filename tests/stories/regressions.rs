//! What others had to mend after their users met it: a story for each, so that nobody meets it here.

use std::fs;
use std::io::{Read as _, Write as _};
use std::process::Stdio;

use pixir_core::event::HeadMoved;
use pixir_core::provider::script::{ScriptedError, Step};
use rustix::process::Signal;
use serde_json::json;

use crate::driver::{Pixir, calls, log_of, say, says};
use crate::pty::{Terminal, kept};
use crate::server::{Act, Dialect, Reply, Server, answer, call, text};
use crate::shell::Shell;

fn terminal(shell: &Shell, server: &Server, flags: &[&str], size: (u16, u16)) -> Terminal {
    let mut args = server.flags(Dialect::Responses);
    args.extend(flags.iter().map(|flag| (*flag).to_owned()));
    Terminal::start(shell, &args.iter().map(String::as_str).collect::<Vec<_>>(), size.0, size.1)
}

/// The screen above the line, without the blank rows at its end.
fn above_the_line(screen: &str) -> Vec<String> {
    let lines: Vec<&str> = screen.lines().skip(1).take_while(|line| !line.starts_with('╭')).collect();
    lines.iter().map(|line| line.trim_end_matches(['━', '┃', '╼', ' ']).to_owned()).collect()
}

// ─── The screen ───

#[test]
fn the_screen_is_whole_again_after_a_sleep() {
    let shell = Shell::new(&[]);
    let server = Server::start(vec![text("Still here.")]);
    let mut terminal = terminal(&shell, &server, &[], (80, 24));
    terminal.wait_for("Ask pixir");
    terminal.send("go\r");
    terminal.wait_for("Still here.");
    let before = terminal.written();
    terminal.signal(Signal::STOP);
    terminal.signal(Signal::CONT);
    terminal.wait_that_written("the whole screen again", before + 500);
    terminal.wait_for("Still here.");
    terminal.send("\x04");
    terminal.end().assert_sane();
}

#[tokio::test]
async fn clearing_a_draft_of_many_lines_leaves_no_blank_band() {
    let mut pixir = Pixir::new(vec![says("An answer.")], &[]);
    let before = pixir.does("hello<Enter>").await;
    pixir.does("one<C-j>two<C-j>three<C-j>four<C-j>five<C-j>six<C-j>seven").await;
    let after = pixir.does("<C-c>").await;
    assert_eq!(above_the_line(&after), above_the_line(&before));
}

#[test]
fn another_size_and_back_is_drawn_anew_to_the_last_cell() {
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

#[tokio::test]
async fn the_pill_hides_nothing_of_what_is_read() {
    let text: String =
        (0..60).map(|n| format!("- {n} 漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字\n")).collect();
    for columns in 60..68 {
        let mut pixir = Pixir::sized(vec![says(&text)], &[], columns, 20);
        pixir.does("go<Enter>").await;
        let screen = pixir.does("<PgUp>").await;
        let pill = screen.lines().find(|line| line.contains("↓ Ctrl+End")).expect("a pill");
        assert!(pill.starts_with("╭─") && pill.ends_with('╮'), "{screen}");
        let read: Vec<&str> = screen.lines().filter(|line| line.contains('漢')).collect();
        let wide = |line: &&str| line.chars().map(|c| 1 + usize::from(c == '漢' || c == '字')).sum::<usize>();
        assert!(read.len() > 10 && read.iter().all(|line| wide(line) <= usize::from(columns)), "{screen}");
    }
}

#[tokio::test]
async fn a_dialog_that_is_higher_than_the_screen_is_read_to_its_end() {
    let mut pixir = Pixir::sized(vec![], &[], 60, 12);
    let screen = pixir.does("?").await;
    // The last of the twelve rows has nothing to say while a dialog has the keys.
    assert!(screen.trim_end().lines().count() == 11 && screen.trim_end().ends_with('╯'), "{screen}");
    let mut seen = screen.clone();
    for _ in 0..40 {
        seen.push_str(&pixir.does("<PgDn>").await);
    }
    for last in ["/mouse", "/usage", "Alt+Y", "find an action by name"] {
        assert!(seen.contains(last), "{last} can be reached:\n{seen}");
    }
}

#[tokio::test]
async fn the_side_panel_covers_nothing_of_the_newest_message() {
    let words: Vec<String> = (0..80).map(|n| format!("word{n:02}")).collect();
    let steps = vec![
        calls("update_plan", json!({"items": [{"step": "look", "status": "in_progress"}]})),
        says(&words.join(" ")),
    ];
    let mut pixir = Pixir::sized(steps, &[], 130, 30);
    let screen = pixir.does("go<Enter>").await;
    assert!(screen.contains("Plan"), "{screen}");
    for word in words {
        assert!(screen.contains(&word), "{word}:\n{screen}");
    }
}

#[tokio::test]
async fn however_much_was_looked_at_only_what_is_near_is_kept_laid_out() {
    let mut pixir = long_conversation(4_000);
    pixir.screen.until_idle().await;
    pixir.screen.keys("<C-Home><F12>").await;
    for _ in 0..1_200 {
        pixir.screen.keys("<PgDn>").await;
    }
    let screen = pixir.screen.screen();
    let told = screen.lines().find(|line| line.contains("laid out")).expect("the HUD says it");
    let number: usize = told
        .split("laid out ")
        .nth(1)
        .and_then(|it| it.split(' ').next())
        .and_then(|n| n.parse().ok())
        .expect("a number");
    assert!(number <= 700, "{told}");
}

#[tokio::test]
async fn a_line_of_a_megabyte_can_be_read_and_left() {
    let long = format!("START{}END", "x".repeat(1_000_000));
    let mut pixir = Pixir::new(vec![says(&long), says("Next.")], &[]);
    let screen = pixir.does("go<Enter>").await;
    assert!(screen.contains("END"), "{screen}");
    let screen = pixir.does("<C-Home>").await;
    assert!(screen.contains("START"), "{screen}");
    let screen = pixir.does("<C-End>again<Enter>").await;
    assert!(screen.contains("Next."), "{screen}");
}

#[tokio::test]
async fn a_table_of_hundreds_of_rows_is_a_table_to_its_last_row() {
    let rows: String = (0..2_500).map(|n| format!("| {n} | value {n} |\n")).collect();
    let mut pixir = Pixir::new(vec![says(&format!("| n | value |\n|---|---|\n{rows}"))], &[]);
    let screen = pixir.does("go<Enter>").await;
    let last = screen.lines().find(|line| line.contains("value 2499")).unwrap_or_else(|| panic!("{screen}"));
    assert!(last.contains('│') && !last.contains('|'), "{last}");
    let screen = pixir.does("<C-Home>").await;
    let first = screen.lines().find(|line| line.contains("value 0")).expect("the first row");
    assert!(first.contains('│') && !first.contains('|'), "{first}");
    // Nowhere in between is it anything else.
    let mut seen = 0;
    for _ in 0..160 {
        pixir.screen.keys("<PgDn>").await;
        let screen = pixir.screen.screen();
        assert!(!screen.contains('|'), "{screen}");
        seen += usize::from(screen.contains("value"));
    }
    assert!(seen > 100, "{seen} pages of it");
}

#[tokio::test]
async fn unusual_characters_and_endless_marks_stop_nobody() {
    let text = [
        "e\u{301}".repeat(5_000),
        "👩‍👩‍👧‍👦".repeat(2_000),
        "[".repeat(20_000),
        "**".repeat(10_000),
        "`".repeat(9_999),
        "> ".repeat(3_000),
        "\u{202e}\u{200b}".repeat(2_000),
        "a\u{300}".repeat(1_000) + &"\u{316}".repeat(5_000),
    ]
    .join("\n\n");
    let mut pixir = Pixir::new(vec![says(&text), says("And on.")], &[]);
    pixir.does("go<Enter>").await;
    let screen = pixir.does("more<Enter>").await;
    assert!(screen.contains("And on."), "{screen}");
}

#[test]
fn the_title_is_written_when_it_changes_and_not_with_every_tick() {
    let shell = Shell::new(&[]);
    let server = Server::start(vec![call("c1", "bash", json!({"command": "sleep 1.5"})), text("Rested.")]);
    let mut terminal = terminal(&shell, &server, &["--mode", "auto"], (80, 24));
    terminal.wait_for("Ask pixir");
    terminal.send("go\r");
    terminal.wait_for("Rested.");
    terminal.send("\x04");
    let left = terminal.end();
    let titles = String::from_utf8_lossy(&left.bytes).matches("\x1b]2;").count();
    assert!((2..=4).contains(&titles), "{titles} titles");
}

#[test]
fn painting_anew_writes_nothing_twice_into_the_history() {
    let size = (80, 24);
    let shell = Shell::new(&[]);
    let lines: String = (0..50).map(|n| format!("- point {n}\n")).collect();
    let server = Server::start(vec![text(&lines)]);
    let mut terminal = terminal(&shell, &server, &["--inline"], size);
    terminal.wait_for("Ask pixir");
    terminal.send("go\r");
    terminal.wait_that("is idle", |screen| screen.contains("point 49") && screen.contains("/ commands"));
    for _ in 0..3 {
        let written = terminal.written();
        terminal.send("\x0c");
        terminal.wait_that_written("a frame", written + 50);
    }
    terminal.send("\x04");
    let left = terminal.end();
    left.assert_sane();
    let lines = kept(&left.bytes, size.0, size.1);
    assert_eq!(lines.iter().filter(|line| line.contains("• point ")).count(), 50, "{lines:#?}");
}

#[test]
fn a_terminal_that_shows_no_progress_is_told_of_none() {
    let shell = Shell::new(&[]);
    let server = Server::start(vec![call("c1", "bash", json!({"command": "true"})), text("Done.")]);
    let mut terminal = terminal(&shell, &server, &["--mode", "auto"], (80, 24));
    terminal.wait_for("Ask pixir");
    terminal.send("go\r");
    terminal.wait_for("Done.");
    terminal.send("\x04");
    let bytes = terminal.end().bytes;
    assert!(!String::from_utf8_lossy(&bytes).contains("\x1b]9;"), "a notification that says 4;0;");
}

// ─── Keys, pastes, the mouse ───

#[test]
fn what_is_pasted_while_it_starts_is_in_the_line_and_not_sent() {
    let shell = Shell::new(&[]);
    let server = Server::start(vec![text("never")]);
    let mut terminal = terminal(&shell, &server, &[], (80, 24));
    terminal.send("\x1b[200~early\nbird\n\x1b[201~");
    // In the line, and not what the terminal itself shows of it before anybody reads its keys.
    terminal.wait_that("it is in the line", |screen| screen.contains("❯ early") && screen.contains("bird"));
    terminal.send_later("\x03");
    terminal.wait_for("put aside");
    terminal.send("\x04");
    terminal.end().assert_sane();
    assert!(server.bodies().is_empty());
}

#[test]
fn a_paste_that_comes_in_pieces_is_one_thing() {
    let shell = Shell::new(&[]);
    let server = Server::start(vec![text("never")]);
    let mut terminal = terminal(&shell, &server, &[], (80, 24));
    terminal.wait_for("Ask pixir");
    let pasted: String = (0..300).map(|n| format!("line {n} of it\n")).collect();
    let bytes = format!("\x1b[200~{pasted}\x1b[201~");
    let mut rest = bytes.as_str();
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(rest.len().min(701));
        terminal.send(piece);
        rest = after;
    }
    let screen = terminal.wait_for("[paste 1: 300 lines]");
    assert!(!screen.contains("of it") && !screen.contains("201~"), "{screen}");
    terminal.send_later("\x03\x03\x03");
    terminal.end().assert_sane();
    assert!(server.bodies().is_empty());
}

#[test]
fn a_report_of_the_mouse_that_comes_in_two_halves_is_no_text() {
    let shell = Shell::new(&[]);
    let server = Server::start(vec![text("never")]);
    let mut terminal = terminal(&shell, &server, &[], (80, 24));
    terminal.wait_for("Ask pixir");
    for halves in [["\x1b[<35;62", ";19M"], ["\x1b[<0;3;", "9M\x1b[<0;3;9m"], ["\x1b[<6", "4;10;10M"]] {
        terminal.send(halves[0]);
        terminal.send_later(halves[1]);
    }
    terminal.send_later("ok");
    let screen = terminal.wait_for("❯ ok");
    assert!(!screen.contains(";19M") && !screen.contains("<35"), "{screen}");
    terminal.send("\x03\x03\x03");
    terminal.end().assert_sane();
}

#[test]
fn the_click_and_the_key_that_bring_the_window_back_answer_nothing() {
    let shell = Shell::new(&[]);
    let server = Server::start(vec![call("c1", "bash", json!({"command": "touch made"})), text("Not made.")]);
    let mut terminal = terminal(&shell, &server, &[], (80, 24));
    terminal.wait_for("Ask pixir");
    terminal.send("go\r");
    let screen = terminal.wait_for("Alt+Y once");
    let row = screen.lines().position(|line| line.contains("Alt+Y")).expect("a row") + 1;
    terminal.send(&format!("\x1b[O\x1b[I\x1b[<0;10;{row}M\x1b[<0;10;{row}m"));
    terminal.wait_for("y once");
    terminal.send("\x1b[O\x1b[Iy");
    terminal.send("\x1b[O\x1b[I\x1by");
    // Esc leaves the question, then stops the turn: it was still open.
    terminal.send_later("\x1b");
    terminal.wait_for("Alt+Y once");
    terminal.send("\x1b");
    terminal.wait_for("interrupted");
    terminal.send("\x04");
    terminal.end().assert_sane();
    assert!(!shell.workspace().join("made").exists());
}

// ─── What was typed, and what was said ───

#[tokio::test]
async fn a_message_that_waits_is_sent_although_the_turn_before_it_fails() {
    let broken = Step {
        calls: calls("bash", json!({"command": "until [ -e go ]; do sleep 0.02; done"})).calls,
        ..Step::default()
    };
    let refused = Step {
        error: Some(ScriptedError { code: "INVALID_RESPONSE".into(), message: "it is broken".into() }),
        ..Step::default()
    };
    let mut pixir = Pixir::new(vec![broken, refused, says("The second one.")], &[]);
    pixir.does("/mode auto<Enter>").await;
    pixir.screen.keys("one<Enter>").await;
    pixir.screen.until("● bash").await;
    pixir.screen.keys("two<A-Enter>").await;
    pixir.screen.until("▸ next").await;
    std::fs::write(pixir.path("go"), "").expect("it is written");
    pixir.screen.until("The second one.").await;
    pixir.screen.until_idle().await;
    let screen = pixir.screen.screen();
    assert!(screen.contains("it is broken") && screen.contains("❯ two"), "{screen}");
}

#[tokio::test]
async fn what_was_typed_survives_compacting_and_going_elsewhere() {
    let mut pixir = Pixir::new(vec![says("One."), says("Two.")], &[]);
    pixir.does("first<Enter>").await;
    pixir.does("second<Enter>").await;
    pixir.does("a half thought<C-t><Esc>").await;
    assert_eq!(pixir.screen.draft(), "a half thought", "looking at the tree");
    pixir.does("<C-t><Up><Enter>").await;
    assert_eq!(pixir.screen.draft(), "a half thought", "going elsewhere");
    pixir.does("<C-t>e").await;
    assert_eq!(pixir.screen.draft(), "first", "a prompt that is edited again takes its place");
    pixir.does("<C-c><Up><Up>").await;
    assert_eq!(pixir.screen.draft(), "a half thought", "and keeps what was typed");
    pixir.does("<C-c>").await;
    let mut pixir = long_conversation(300);
    pixir.screen.until_idle().await;
    pixir.does("typed<C-p>compact<Enter>").await;
    assert!(pixir.screen.screen().contains("Compact"), "{}", pixir.screen.screen());
    pixir.does("<Enter>").await;
    assert_eq!(pixir.screen.draft(), "typed");
}

#[tokio::test]
async fn vims_register_and_undo_outlive_a_dialog() {
    let mut pixir = Pixir::with_vim(vec![]);
    pixir.does("one two<Esc>bdw").await;
    assert_eq!(pixir.screen.draft(), "one ");
    pixir.does("<C-p><Esc><C-t><Esc><F1><Esc>").await;
    pixir.does("p").await;
    assert_eq!(pixir.screen.draft(), "one two");
    pixir.does("<C-t><Esc>uu").await;
    assert_eq!(pixir.screen.draft(), "one two", "the cut itself is undone");
}

fn long_conversation(turns: u32) -> Pixir {
    Pixir::resumed(80, 24, |folder, workspace| {
        let mut log = log_of(folder, workspace);
        for n in 1..=turns {
            say(&mut log, n, &format!("question {n}"), &format!("The answer to {n}. It is long. ").repeat(8));
        }
        log.establish().expect("establish");
    })
}

#[tokio::test]
async fn a_last_line_that_was_torn_hides_nothing_that_stands_before_it() {
    let mut pixir = Pixir::resumed(80, 24, |folder, workspace| {
        let mut log = log_of(folder, workspace);
        say(&mut log, 1, "a question", "An answer.");
        log.establish().expect("establish");
        let path = log.path().to_owned();
        drop(log);
        let mut file = fs::OpenOptions::new().append(true).open(path).expect("open");
        file.write_all(br#"{"v":1,"id":"0190163d-8694-739b-aea5-966c26f8ad91","session_id":"x","seq":3,"ts":"20"#)
            .expect("write");
    });
    pixir.screen.until_idle().await;
    let screen = pixir.screen.screen();
    assert!(screen.contains("❯ a question") && screen.contains("An answer."), "{screen}");
}

#[tokio::test]
async fn a_head_that_was_moved_to_itself_or_to_nowhere_is_no_endless_loop() {
    for to_seq in [Some(3), Some(4), Some(9_999), None] {
        let mut pixir = Pixir::resumed(80, 24, |folder, workspace| {
            let mut log = log_of(folder, workspace);
            say(&mut log, 1, "a question", "An answer.");
            log.append(None, HeadMoved { to_seq, reason: "rewind".into() }.into()).expect("append");
            say(&mut log, 2, "another", "Another answer.");
            log.establish().expect("establish");
        });
        pixir.screen.until_idle().await;
        let screen = pixir.does("<C-t><Esc>").await;
        assert!(screen.contains("Another answer."), "{to_seq:?}:\n{screen}");
    }
}

#[tokio::test]
async fn undo_does_not_follow_a_link_out_of_the_workspace() {
    let mut pixir = Pixir::new(
        vec![calls("write", json!({"path": "b.txt", "content": "new"})), says("Done.")],
        &[("b.txt", "old")],
    );
    pixir.does("/mode auto<Enter>").await;
    pixir.does("go<Enter>").await;
    assert_eq!(pixir.file("b.txt"), "new");
    let outside = pixir.path("../outside.txt");
    fs::write(&outside, "new").expect("write");
    fs::remove_file(pixir.path("b.txt")).expect("remove");
    std::os::unix::fs::symlink(&outside, pixir.path("b.txt")).expect("link");
    pixir.does("/undo<Enter>").await;
    pixir.does("<Enter>").await;
    assert_eq!(fs::read_to_string(&outside).expect("read"), "new", "{}", pixir.screen.screen());
}

// ─── What it costs ───

#[test]
fn a_request_says_again_what_the_one_before_it_said_and_only_adds() {
    let shell = Shell::new(&[("a.txt", "alpha\n")]);
    let replies = (0..6).flat_map(|n| [call(&format!("c{n}"), "read", json!({"path": "a.txt"})), text("Read.")]);
    let server = Server::start(replies.collect());
    let mut args = server.flags(Dialect::Responses);
    args.extend(["--headless", "one"].map(str::to_owned));
    assert_eq!(shell.run(args).code, 0);
    for prompt in ["two", "three"] {
        let mut args = server.flags(Dialect::Responses);
        args.extend(["--headless", "resume", "last", prompt].map(str::to_owned));
        assert_eq!(shell.run(args).code, 0);
    }
    let inputs: Vec<Vec<serde_json::Value>> =
        server.bodies().iter().map(|body| body["input"].as_array().expect("items").clone()).collect();
    assert_eq!(inputs.len(), 6);
    for pair in inputs.windows(2) {
        assert!(pair[1].len() > pair[0].len() && pair[1].starts_with(&pair[0]), "nothing is made anew");
    }
}

#[test]
fn the_meter_shows_what_the_provider_counted_and_counts_nothing_itself() {
    let shell = Shell::new(&[]);
    let server = Server::start(vec![text(&"many words ".repeat(2_000))]);
    let mut terminal = terminal(&shell, &server, &[], (100, 24));
    terminal.wait_for("Ask pixir");
    terminal.send("go\r");
    // The server says 100 tokens in and 7 out, whatever the text is.
    terminal.wait_for("107 tokens");
    terminal.send("\x04");
    terminal.end().assert_sane();
}

// ─── Pipes ───

#[test]
fn characters_that_are_cut_between_two_pieces_of_a_stream_are_whole() {
    let said = "漢字 👩‍👩‍👧‍👦 é – “done”";
    let shell = Shell::new(&[]);
    for size in [1, 2, 3] {
        let stream: String = answer(Dialect::Responses, &[crate::server::Part::Text(said)]).concat();
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
        let mut acts = vec![Act::Send(head.as_bytes().to_vec())];
        acts.extend(stream.as_bytes().chunks(size).map(|piece| Act::Send(piece.to_vec())));
        let server = Server::start(vec![Reply::Raw(acts)]);
        let mut args = server.flags(Dialect::Responses);
        args.extend(["--headless", "--json", "go"].map(str::to_owned));
        let ran = shell.run(args);
        assert!(ran.stdout.contains(said), "{size}: {}", ran.stdout);
    }
}

#[test]
fn whoever_reads_slowly_gets_all_of_it() {
    let shell = Shell::new(&[]);
    let long: String = (0..40_000).map(|n| format!("line {n} of a long answer\n")).collect();
    let server = Server::start(vec![text(&long)]);
    let mut args = server.flags(Dialect::Chat);
    args.extend(["--headless", "go"].map(str::to_owned));
    let mut child = shell.command(args).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
    let mut out = child.stdout.take().expect("stdout");
    let mut read = Vec::new();
    let mut piece = [0; 4_096];
    // Nothing is taken before all of it was said; then a little at a time.
    server.wait_for(1);
    server.wait_until_alone();
    loop {
        let n = out.read(&mut piece).expect("read");
        if n == 0 {
            break;
        }
        read.extend_from_slice(&piece[..n]);
        std::thread::yield_now();
    }
    assert!(child.wait().expect("it ends").success());
    assert_eq!(String::from_utf8(read).expect("text").trim_end(), long.trim_end());
}

#[test]
fn an_input_that_nobody_closes_is_not_waited_for() {
    let shell = Shell::new(&[]);
    let server = Server::start(vec![text("Hello.")]);
    let mut args = server.flags(Dialect::Chat);
    args.extend(["--headless", "hi"].map(str::to_owned));
    let mut child = shell.command(args).stdin(Stdio::piped()).spawn().expect("it starts");
    let open = child.stdin.take();
    let output = child.wait_with_output().expect("it ends");
    drop(open);
    assert!(output.status.success() && String::from_utf8_lossy(&output.stdout).contains("Hello."));
}

#[test]
fn a_reader_that_goes_away_is_no_reason_to_complain() {
    let shell = Shell::new(&[]);
    let long: String = (0..20_000).map(|n| format!("line {n} of a long answer\n")).collect();
    let server = Server::start(vec![text(&long)]);
    let mut args = server.flags(Dialect::Chat);
    args.extend(["--headless", "go"].map(str::to_owned));
    assert_eq!(shell.run(args).code, 0);
    let mut child = shell.command(["replay", "last"]).spawn().expect("it starts");
    let mut out = child.stdout.take().expect("stdout");
    out.read_exact(&mut [0; 64]).expect("read");
    drop(out);
    let output = child.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!said.contains("panic") && !said.contains("error"), "{said}");
}

#[tokio::test]
async fn a_draft_that_made_room_for_a_reason_comes_back_wherever_one_goes() {
    let mut pixir = Pixir::new(vec![calls("bash", json!({"command": "rm -rf build"})), says("Hello.")], &[]);
    pixir.does("clean<Enter>").await;
    pixir.does("a draft<A-f>use make").await;
    pixir.does("<C-p>new<Enter>").await;
    assert_eq!(pixir.screen.draft(), "a draft", "{}", pixir.screen.screen());
    pixir.does("<C-c><Up><Up>").await;
    assert_eq!(pixir.screen.draft(), "use make", "and so does what was begun of the reason");
}

#[tokio::test]
async fn a_theme_that_is_not_there_is_not_said_to_be() {
    let mut pixir = Pixir::new(vec![], &[]);
    let screen = pixir.does("/theme nope<Enter>").await;
    assert!(screen.contains("nope") && !screen.contains("until you quit"), "{screen}");
}

#[tokio::test]
async fn a_draft_that_was_kept_elsewhere_is_not_written_over() {
    let mut pixir = Pixir::new(vec![says("One."), says("Two.")], &[]);
    pixir.does("first<Enter>").await;
    pixir.does("half a thought").await;
    // Kept beside the first session, which is left for another.
    pixir.does("<C-p>new<Enter>").await;
    pixir.does("<C-c>second<Enter>").await;
    pixir.does("another thought<C-p>resume<Enter>").await;
    let screen = pixir.does("first<Enter>").await;
    assert!(screen.contains("❯ first") && pixir.screen.draft() == "another thought", "{screen}");
    pixir.does("<C-c><Up><Up>").await;
    assert_eq!(pixir.screen.draft(), "half a thought");
}
