//! Commands that the user runs with `!` and `!!`.

use std::fs;

use serde_json::json;

use crate::driver::{Pixir, says};
use crate::server::{Dialect, Server, text};
use crate::shell::Shell;

#[tokio::test]
async fn a_bang_command_runs_and_the_model_reads_its_output() {
    let mut pixir = Pixir::new(vec![says("It is 42.")], &[("answer.txt", "42\n")]);
    let screen = pixir.does("!cat answer.txt && touch made.txt").await;
    assert!(screen.contains(" ❯ !cat answer.txt") && screen.contains("runs a command; the model reads it"), "{screen}");
    let screen = pixir.does("<Enter>").await;
    assert!(screen.contains("✓ ! cat answer.txt && touch made.txt") && screen.contains("│ 42"), "{screen}");
    assert!(pixir.path("made.txt").exists(), "a command that the user types needs no approval");
    assert_eq!(
        pixir.kinds(),
        ["session_started", "user_command", "permission_decision", "tool_result", "turn_ended"],
        "no request was sent"
    );
    let log = pixir.log();
    assert_eq!((&log[2]["data"]["by"], &log[2]["data"]["reason"]), (&json!("user"), &json!("the user typed it")));
    assert_eq!(log[3]["data"]["changes"][0]["path"], "made.txt");
    // Its changes can be undone, and Up recalls it.
    pixir.does("/undo<Enter>").await;
    pixir.does("<Enter>").await;
    assert!(!pixir.path("made.txt").exists());
    pixir.does("<Up><Up>").await;
    assert_eq!(pixir.screen.draft(), "!cat answer.txt && touch made.txt");
}

#[test]
fn a_double_bang_command_is_not_sent_to_the_model() {
    let shell = Shell::new(&[("a.txt", "apples\n"), ("b.txt", "bananas\n")]);
    let server = Server::start(vec![text("Fine.")]);
    let script = "idle\nkeys !cat a.txt<Enter>\nexpect apples\nidle\nkeys !!cat b.txt<Enter>\nexpect bananas\nidle\n\
                  keys what is in it?<Enter>\nexpect Fine.\nidle\nkeys <C-t>\nexpect !!cat b.txt\n";
    fs::write(shell.workspace().join("keys.txt"), script).expect("write");
    let mut args = server.flags(Dialect::Responses);
    args.splice(0..0, ["tui", "--script", "keys.txt"].map(str::to_owned));
    let ran = shell.run(args);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let sent = server.bodies()[0]["input"].to_string();
    assert!(
        sent.contains("<command by=\\\"the user\\\">\\ncat a.txt\\n</command>") && sent.contains("apples"),
        "{sent}"
    );
    assert!(!sent.contains("bananas") && !sent.contains("b.txt"), "{sent}");
    // Another Presenter shows the same.
    let output = shell.run(["replay", "last"]).stdout;
    assert!(output.contains("!cat a.txt") && output.contains("!!cat b.txt") && output.contains("bananas"), "{output}");
}

#[tokio::test]
async fn a_bang_command_obeys_the_mode_and_esc() {
    let mut pixir = Pixir::new(vec![says("Hello.")], &[]);
    pixir.does("/mode read-only<Enter>").await;
    let screen = pixir.does("!touch x<Enter>").await;
    assert!(screen.contains("the mode is read-only") && !pixir.path("x").exists(), "{screen}");
    pixir.does("/mode ask<Enter>").await;
    pixir.screen.keys("!touch begun; echo begun; sleep 60<Enter>").await;
    pixir.screen.until("│ begun").await;
    // A second command waits for the first; stopping the first returns it to the composer.
    pixir.screen.keys("!echo two<Enter>").await;
    pixir.screen.until("▸ next").await;
    pixir.screen.keys("<Esc>").await;
    pixir.screen.until("■ interrupted").await;
    assert_eq!(pixir.screen.draft(), "!echo two");
    let screen = pixir.does("<Enter>").await;
    assert!(screen.contains("✓ ! echo two"), "{screen}");
    pixir.screen.keys("!sleep 1<Enter>").await;
    pixir.screen.until("● !").await;
    pixir.screen.keys("!!echo three<Enter>").await;
    pixir.screen.until("✓ !! echo three").await;
    pixir.screen.until_idle().await;
    let log = pixir.log();
    let cut = log.iter().find(|e| e["data"]["error"]["code"] == "ORPHAN_TOOL_CALL").expect("it has a result");
    assert_eq!(cut["data"]["changes"][0]["path"], "begun", "and its changes until then");
    let output = cut["data"]["output"].as_str().expect("text");
    assert!(output.starts_with("begun\n[error]"), "and its output until then: {output}");
    let screen = pixir.does("!<Enter>").await;
    assert!(screen.contains("type a command after the !"), "{screen}");
    pixir.does("<C-c>hi<Enter>").await;
    assert!(pixir.screen.screen().contains("Hello."), "the conversation goes on");
}

#[tokio::test]
async fn a_bang_command_cut_by_a_crash_is_closed_on_resume() {
    let mut pixir = Pixir::new(vec![], &[]);
    pixir.does("!echo one<Enter>").await;
    // The Log after kill -9: the command without its result.
    let cut = |log: &std::path::Path| {
        let text = fs::read_to_string(log).expect("read");
        let end = text.find("\"user_command\"").expect("the command");
        let end = end + text[end..].find('\n').expect("its line ends") + 1;
        fs::write(log, &text[..end]).expect("write");
    };
    let mut pixir = pixir.again_after(cut, vec![says("Hi.")]).await;
    let screen = pixir.does("go on<Enter>").await;
    assert!(screen.contains("■ ! echo one") && screen.contains("interrupted"), "it did not fail:\n{screen}");
    assert!(screen.contains("Hi."), "{screen}");
    let results: Vec<_> = pixir.log().into_iter().filter(|entry| entry["type"] == "tool_result").collect();
    assert_eq!(results.len(), 1, "it has exactly one result");
    assert_eq!(results[0]["data"]["ok"], false);
}

#[tokio::test]
async fn a_double_bang_command_is_in_no_summary() {
    let mut pixir = Pixir::new(vec![says(&"long ".repeat(9_000)), says("Fine.")], &[]);
    pixir.does("!!echo secret > hidden.txt; echo whispered<Enter>").await;
    pixir.does("!echo aloud<Enter>").await;
    pixir.does("go<Enter>").await;
    pixir.does("and now<Enter>").await;
    let screen = pixir.does("/compact<Enter>").await;
    assert!(screen.contains("echo aloud"), "{screen}");
    pixir.does("<Enter>").await;
    let log = pixir.log();
    let summary = log.iter().rev().find(|e| e["type"] == "history_compaction").expect("it was compacted");
    let text = summary.to_string();
    assert!(!text.contains("whispered") && !text.contains("hidden.txt"), "{text}");
}

#[tokio::test]
async fn program_colours_reach_the_screen_but_not_the_model() {
    let mut pixir = Pixir::new(vec![], &[]);
    let command = r"!printf 'plain \033[31mred\033[0m and \033[38;2;0;200;0mgreen\033[2J\033]0;title\007 end\n'";
    pixir.does(&format!("{}<Enter>", command.replace('<', "<lt>"))).await;
    let log = pixir.log();
    let result = &log.iter().find(|e| e["type"] == "tool_result").expect("a result")["data"];
    let output = result["output"].as_str().expect("text");
    assert!(output.starts_with("plain red and green end\n["), "{output:?}");
    assert_eq!(
        result["colours"],
        json!([{"at": 6, "sgr": "31"}, {"at": 9, "sgr": "0"}, {"at": 14, "sgr": "38;2;0;200;0"}])
    );
    let screen = pixir.screen.screen();
    let (row, line) = screen.lines().enumerate().find(|(_, line)| line.contains("│ plain")).expect("the output");
    let colour = |word: &str| {
        let column = line[..line.find(word).expect(word)].chars().count();
        pixir.screen.buffer()[(column as u16, row as u16)].fg
    };
    assert!(colour("red") != colour("plain") && colour("green") != colour("red"), "{screen}");
    assert_eq!(colour("and"), colour("plain"), "a reset is one");
}

#[tokio::test]
async fn a_running_command_is_shown_in_colour() {
    let mut pixir = Pixir::new(vec![], &[]);
    pixir.screen.until_idle().await;
    let command = r"!printf 'plain \033[3'; until [ -e go ]; do sleep 0.02; done; printf '1mred\n'; sleep 60";
    pixir.screen.keys(&format!("{command}<Enter>")).await;
    pixir.screen.until("│ plain").await;
    std::fs::write(pixir.path("go"), "").expect("write");
    pixir.screen.until("│ plain red").await;
    let screen = pixir.screen.screen();
    let (row, line) = screen.lines().enumerate().find(|(_, line)| line.contains("│ plain red")).expect("the output");
    let column = line[..line.find("plain").expect("it is there")].chars().count() as u16;
    let colour = |column: u16| pixir.screen.buffer()[(column, row as u16)].fg;
    assert_ne!(colour(column), colour(column + 6), "{screen}");
    pixir.screen.keys("<Esc>").await;
    pixir.screen.until("interrupted").await;
}
