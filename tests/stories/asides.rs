//! What goes with words in the line: commands that the person runs, and images.

use std::fs;

use serde_json::json;

use crate::driver::{Pixir, calls, says};
use crate::server::{Dialect, Server, text};
use crate::shell::{Shell, entries, png};

#[tokio::test]
async fn a_command_behind_an_exclamation_mark_runs_here_and_the_model_reads_what_came_of_it() {
    let mut pixir = Pixir::new(vec![says("It is 42.")], &[("answer.txt", "42\n")]);
    let screen = pixir.does("!cat answer.txt && touch made.txt").await;
    assert!(screen.contains(" ❯ !cat answer.txt") && screen.contains("runs a command; the model reads it"), "{screen}");
    let screen = pixir.does("<Enter>").await;
    assert!(screen.contains("✓ ! cat answer.txt && touch made.txt") && screen.contains("│ 42"), "{screen}");
    assert!(pixir.path("made.txt").exists(), "whoever types it need not be asked");
    assert_eq!(
        pixir.kinds(),
        ["session_started", "user_command", "permission_decision", "tool_result", "turn_ended"],
        "no model was asked"
    );
    let log = pixir.log();
    assert_eq!((&log[2]["data"]["by"], &log[2]["data"]["reason"]), (&json!("user"), &json!("the user typed it")));
    assert_eq!(log[3]["data"]["changes"][0]["path"], "made.txt");
    // What it changed is undone like everything else, and Up brings it back.
    pixir.does("/undo<Enter>").await;
    pixir.does("<Enter>").await;
    assert!(!pixir.path("made.txt").exists());
    pixir.does("<Up><Up>").await;
    assert_eq!(pixir.screen.draft(), "!cat answer.txt && touch made.txt");
}

#[test]
fn what_is_run_behind_two_of_them_is_not_told_to_the_model() {
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
    // Another Presenter tells the same.
    let told = shell.run(["replay", "last"]).stdout;
    assert!(told.contains("!cat a.txt") && told.contains("!!cat b.txt") && told.contains("bananas"), "{told}");
}

#[tokio::test]
async fn a_command_of_the_person_keeps_to_the_mode_and_stops_when_it_is_told_to() {
    let mut pixir = Pixir::new(vec![says("Hello.")], &[]);
    pixir.does("/mode read-only<Enter>").await;
    let screen = pixir.does("!touch x<Enter>").await;
    assert!(screen.contains("the mode is read-only") && !pixir.path("x").exists(), "{screen}");
    pixir.does("/mode ask<Enter>").await;
    pixir.screen.keys("!touch begun; echo begun; sleep 60<Enter>").await;
    pixir.screen.until("│ begun").await;
    // A second one waits for the first to end; who stops the first has it back.
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
    assert_eq!(cut["data"]["changes"][0]["path"], "begun", "and what it had changed by then");
    let output = cut["data"]["output"].as_str().expect("text");
    assert!(output.starts_with("begun\n[error]"), "and what it had printed: {output}");
    let screen = pixir.does("!<Enter>").await;
    assert!(screen.contains("type a command after it"), "{screen}");
    pixir.does("<C-c>hi<Enter>").await;
    assert!(pixir.screen.screen().contains("Hello."), "the conversation goes on");
}

#[tokio::test]
async fn a_command_that_a_crash_cut_off_is_closed_when_the_session_is_resumed() {
    let mut pixir = Pixir::new(vec![], &[]);
    pixir.does("!echo one<Enter>").await;
    // As it is found after kill -9: the command, and nothing of what came of it.
    let cut = |log: &std::path::Path| {
        let text = fs::read_to_string(log).expect("read");
        let end = text.find("\"user_command\"").expect("the command");
        let end = end + text[end..].find('\n').expect("its line ends") + 1;
        fs::write(log, &text[..end]).expect("write");
    };
    let mut pixir = pixir.again_after(cut, vec![says("Hi.")]).await;
    let screen = pixir.does("go on<Enter>").await;
    assert!(screen.contains("✗ ! echo one") && screen.contains("Hi."), "{screen}");
    let results: Vec<_> = pixir.log().into_iter().filter(|entry| entry["type"] == "tool_result").collect();
    assert_eq!(results.len(), 1, "it has exactly one result");
    assert_eq!(results[0]["data"]["ok"], false);
}

#[test]
fn an_image_that_is_mentioned_or_dropped_goes_with_the_message_in_every_dialect() {
    for dialect in Dialect::ALL {
        let shell = Shell::new(&[]);
        fs::write(shell.workspace().join("shot one.png"), png(300)).expect("write");
        let dropped = shell.aside("dropped.png", "");
        fs::write(&dropped, png(200)).expect("write");
        let server = Server::start(vec![text("A cat."), text("And a dog.")]);
        let script = format!(
            "idle\npaste '{}'\nexpect [image 1: dropped.png]\nkeys is this @\"shot one.png\" like @nothing.png?\nframe line\n\
             keys <Enter>\nexpect A cat.\nidle\nframe sent\nkeys and?<Enter>\nexpect And a dog.\nidle\n",
            dropped.display()
        );
        fs::write(shell.workspace().join("keys.txt"), script).expect("write");
        let mut args = server.flags(dialect);
        args.splice(0..0, ["tui", "--script", "keys.txt"].map(str::to_owned));
        let ran = shell.run(args);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert!(ran.stdout.contains("▣ shot one.png · 300B"), "{}", ran.stdout);
        let said = entries(&shell.logs()[0]).into_iter().find(|e| e["type"] == "user_message").expect("a prompt");
        let images = said["data"]["attachments"].as_array().expect("images").clone();
        assert_eq!(images.len(), 2, "a name that is no file is only a word: {said}");
        let bodies = server.bodies();
        let kind = match dialect {
            Dialect::Responses => "input_image",
            Dialect::Chat => "image_url\",",
            Dialect::Anthropic => "\"image\"",
        };
        for body in &bodies {
            let text = body.to_string().replace("\"type\":\"image_url\"", "\"image_url\",");
            assert_eq!(text.matches(kind).count(), 2, "the same in every later request: {body}");
        }
        // What is kept of it is found again, and not cleaned up.
        shell.run(["gc", "--yes"]);
        let export = shell.run(["sessions", "export", "last", "--json"]).document();
        assert!(export["blobs"][images[0]["blob"].as_str().expect("a blob")].is_string());
    }
}

#[tokio::test]
async fn an_image_stands_in_the_line_as_one_thing_and_what_is_none_stays_what_it_was() {
    let mut pixir = Pixir::new(vec![says("Seen.")], &[("fake.png", "no picture\n")]);
    pixir.screen.until_idle().await;
    let fake = pixir.path("fake.png").display().to_string();
    pixir.screen.paste(&fake).await;
    pixir.screen.until_idle().await;
    assert_eq!(pixir.screen.draft(), fake, "what was pasted is not lost");
    assert!(pixir.screen.screen().contains("is not a complete PNG"), "{}", pixir.screen.screen());
    fs::write(pixir.path("real.png"), png(100)).expect("write");
    pixir.does("<C-c>see ").await;
    pixir.screen.paste(&pixir.path("real.png").display().to_string()).await;
    pixir.screen.until_idle().await;
    assert_eq!(pixir.screen.draft(), "see [image 1: real.png] ");
    pixir.does("<Backspace><Backspace>").await;
    assert_eq!(pixir.screen.draft(), "see ", "it goes as one");
    // A file that cannot be sent keeps the message in the line.
    let screen = pixir.does("<C-u>look at @fake.png now<Enter>").await;
    assert!(screen.contains("is not a complete PNG") && pixir.screen.draft() == "look at @fake.png now", "{screen}");
    // A clipboard of nobody's machine has no image.
    let screen = pixir.does("<C-c><C-v>").await;
    assert!(screen.contains("no program reads the clipboard"), "{screen}");
}

#[tokio::test]
async fn a_draft_with_an_image_survives_a_crash_and_a_message_that_is_taken_back_keeps_its_own() {
    let mut pixir = Pixir::new(vec![calls("bash", json!({"command": "sleep 60"})), says("Done.")], &[]);
    fs::write(pixir.path("real.png"), png(100)).expect("write");
    pixir.does("/mode auto<Enter>").await;
    pixir.screen.keys("go<Enter>").await;
    pixir.screen.until("working").await;
    pixir.screen.paste(&pixir.path("real.png").display().to_string()).await;
    pixir.screen.until("[image 1: real.png]").await;
    pixir.screen.keys("like this<A-Enter>").await;
    pixir.screen.until("▸ next").await;
    pixir.screen.keys("<Esc>").await;
    pixir.screen.until("■ interrupted").await;
    assert_eq!(pixir.screen.draft(), "[image 1: real.png] like this");
    let mut pixir = pixir.again(vec![says("Seen.")]).await;
    pixir.screen.until_idle().await;
    assert_eq!(pixir.screen.draft(), "[image 1: real.png] like this");
    let screen = pixir.does("<Enter>").await;
    assert!(screen.contains("▣") && screen.contains("real.png · 100B"), "{screen}");
    // Another one has a number of its own, and what was sent is brought back with its image.
    pixir.screen.paste(&pixir.path("real.png").display().to_string()).await;
    pixir.screen.until_idle().await;
    assert_eq!(pixir.screen.draft(), "[image 2: real.png] ");
    pixir.does("<C-c><Up><Up>").await;
    assert_eq!(pixir.screen.draft(), "[image 1: real.png] like this");
    pixir.does("<C-c>").await;
    let mut pixir = pixir.again(vec![says("Seen again.")]).await;
    pixir.does("<Up>").await;
    assert_eq!(pixir.screen.draft(), "[image 1: real.png] like this");
    let screen = pixir.does("<Enter>").await;
    assert_eq!(screen.matches("▣").count(), 2, "{screen}");
    // In another session it is only a word, and the person is told so.
    let mut pixir = pixir.anew(vec![says("What?")]).await;
    let screen = pixir.does("see [image 1: real.png]<Enter>").await;
    assert!(screen.contains("[image 1: real.png] belongs to another session"), "{screen}");
}

#[tokio::test]
async fn what_the_model_is_not_told_is_in_no_summary_either() {
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
async fn colours_of_a_program_are_the_themes_and_no_model_reads_them() {
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
async fn a_command_that_still_runs_is_shown_in_its_colours_too() {
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

#[tokio::test]
async fn what_is_sent_before_the_session_is_open_arrives_in_its_order_and_each_image_once() {
    let mut pixir = Pixir::new(vec![says("A picture."), says("Yes.")], &[]);
    fs::write(pixir.path("shot.png"), png(100)).expect("write");
    pixir.screen.keys("what is @shot.png<Enter>").await;
    pixir.screen.keys("and this<A-Enter>").await;
    pixir.screen.until_idle().await;
    let log = pixir.log();
    let said: Vec<_> = log.iter().filter(|e| e["type"] == "user_message").map(|e| &e["data"]).collect();
    let texts: Vec<_> = said.iter().map(|it| it["text"].as_str().expect("text")).collect();
    assert_eq!(texts, ["what is @shot.png", "and this"]);
    assert_eq!(said[0]["attachments"].as_array().map(Vec::len), Some(1), "{}", said[0]);
    // An image that is pasted meanwhile holds nothing up for good.
    let mut pixir = pixir.anew(vec![says("Explained.")]).await;
    pixir.screen.keys("explain it<Enter>").await;
    pixir.screen.paste(&pixir.path("shot.png").display().to_string()).await;
    pixir.screen.until("Explained.").await;
    pixir.screen.until("[image 1: shot.png]").await;
}
