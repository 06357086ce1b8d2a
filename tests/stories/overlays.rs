//! What every layer over the conversation has in common: how to leave it, its keys, its rectangle, its cursor.

use serde_json::json;

use crate::driver::{Pixir, also_calls, calls, says};

/// The last line of the screen.
fn status(screen: &str) -> String {
    screen.lines().last().unwrap_or_default().to_owned()
}

/// Broken builds: over a filter the hint names `?`, which is typed; F1 does nothing over a field; the
/// help offers itself.
#[tokio::test]
async fn the_key_that_the_status_line_names_shows_the_keys_of_every_layer() {
    let edit = calls("edit", json!({"path": "a.txt", "old_text": "alpha", "new_text": "omega"}));
    let mut pixir = Pixir::sized(vec![edit, says("Done.")], &[("a.txt", "alpha\n")], 80, 24);
    pixir.does("/mode auto<Enter>").await;
    pixir.does("go<Enter>").await;
    let layers = [
        ("/model<Enter>", "In the models"),
        ("/sessions<Enter>", "In the sessions"),
        ("<C-p>", "In every overlay"),
        ("/theme<Enter>", "In the settings, the models and the themes"),
        ("/effort<Enter>", "In every overlay"),
        ("/skill<Enter>", "In the skills"),
        ("/log<Enter>", "In the log"),
        ("/settings<Enter>", "In the settings"),
        ("/settings<Enter>/the", "In the settings"),
        ("/jobs<Enter>", "In the background jobs"),
        ("/permissions<Enter>", "In the permissions"),
        ("/diff<Enter>", "In the diff"),
        ("/files<Enter>", "In the files"),
        ("/outline<Enter>", "In every overlay"),
        ("<C-t>", "In the tree"),
        ("<C-t>/al", "In the tree"),
    ];
    for (open, heading) in layers {
        let screen = pixir.does(open).await;
        let line = status(&screen);
        let key = line.split(" · ").find_map(|hint| hint.trim().strip_suffix(" keys of this view"));
        let key = key.unwrap_or_else(|| panic!("{open}: no key for its keys:\n{screen}")).trim_start().to_owned();
        let help = pixir.does(&key.replace("F1", "<F1>")).await;
        assert!(help.contains("╭ Help") && help.contains(heading), "{open}: {key}\n{help}");
        assert!(!status(&help).contains("keys of this view"), "{help}");
        pixir.does("<Esc><Esc><Esc>").await;
        while pixir.screen.screen().contains("close") {
            pixir.does("<Esc>").await;
        }
    }
    // What 80 columns have no room for is in the help.
    let help = pixir.does("/model<Enter><F1>").await;
    assert!(help.contains("Alt+C") && help.contains("Alt+F"), "{help}");
}

/// Broken build: an empty list offers to stop, revoke, go to or open what is not there.
#[tokio::test]
async fn an_empty_list_offers_no_key_that_does_nothing() {
    let mut pixir = Pixir::sized(vec![], &[], 120, 30);
    let lists = [
        ("/jobs<Enter>", "Background jobs", vec![" stop"]),
        ("/permissions<Enter>", "Permissions", vec![" revoke"]),
        ("/outline<Enter>", "Outline", vec![" go there"]),
        ("/skill<Enter>", "Skills", vec![" use it", " with a task", " read on"]),
        ("/sessions<Enter>", "Sessions", vec![" resume", " rename", " delete"]),
        ("/diff<Enter>", "Diff", vec![" next hunk", " keep", " revert", " comment", " editor"]),
        ("<C-t>", "Tree", vec![" go here", " edit again", " fork", " mark", " delete"]),
    ];
    for (open, title, dead) in lists {
        let screen = pixir.does(open).await;
        assert!(screen.contains(title), "{open}:\n{screen}");
        let footer = screen.lines().rev().find(|line| line.contains("Esc close")).unwrap_or_default();
        let footer =
            screen.lines().rev().filter(|line| line.contains("╰")).find(|it| it.contains("Esc")).unwrap_or(footer);
        for word in dead {
            assert!(!footer.contains(word), "{open} offers{word}:\n{screen}");
        }
        pixir.does("<Esc>").await;
    }
}

/// Broken builds: nothing tells what is in use; no row leaves the effort to the model, so that it could never be unset.
#[tokio::test]
async fn a_short_list_marks_what_is_in_use_and_the_effort_can_be_left_to_the_model() {
    let mut pixir = Pixir::new(vec![], &[]);
    let marked = |screen: &str| {
        let row = screen.lines().find_map(|line| line.split_once("● ")).unwrap_or_default().1;
        row.split_whitespace().next().unwrap_or_default().to_owned()
    };
    assert_eq!(marked(&pixir.does("/mode<Enter>").await), "ask");
    assert_eq!(marked(&pixir.does("<Esc>/toolset<Enter>").await), "typed");
    assert_eq!(marked(&pixir.does("<Esc>/effort<Enter>").await), "default");
    pixir.does("<Esc>/effort high<Enter>").await;
    assert_eq!(marked(&pixir.does("/effort<Enter>").await), "high");
    let screen = pixir.does("<Home><Enter>").await;
    assert!(screen.contains("effort: default"), "{screen}");
    assert_eq!(marked(&pixir.does("/effort<Enter>").await), "default");
}

/// Broken build: each list has a width of its own, so that one stands inset and the next from edge to edge.
#[tokio::test]
async fn short_lists_have_one_width_at_80_columns() {
    let mut pixir = Pixir::new(vec![], &[]);
    let mut edges = Vec::new();
    for (open, title) in [("/mode<Enter>", "Mode"), ("/effort<Enter>", "Effort"), ("/theme<Enter>", "Theme")] {
        let screen = pixir.does(open).await;
        let edge = screen.lines().find(|line| line.contains(&format!("╭ {title} "))).unwrap_or_default().to_owned();
        edges.push((edge.chars().take_while(|c| *c != '╭').count(), edge.chars().take_while(|c| *c != '╮').count()));
        pixir.does("<Esc>").await;
    }
    assert!(edges.iter().all(|it| *it == edges[0] && it.0 > 0), "{edges:?}");
}

/// Broken builds: `/add-dir` is first, because it begins with an a; nothing tells how long the list is; what lies under
/// the list shows beside it.
#[tokio::test]
async fn the_list_of_commands_covers_its_width_and_begins_with_what_is_used() {
    let mut pixir = Pixir::new(vec![says("One.")], &[]);
    pixir.does("go<Enter>").await;
    let screen = pixir.does("/").await;
    let rows: Vec<&str> = screen.lines().filter(|line| line.starts_with(" /")).collect();
    assert!(rows.len() == 8 && rows[0].starts_with(" /tree"), "{screen}");
    let edge = screen.lines().find(|line| line.starts_with('─')).unwrap_or_default();
    assert!(edge.contains(" 1 of ") && edge.chars().count() == 80, "{screen}");
    let screen = pixir.does("<Down><Down>").await;
    assert!(screen.contains(" 3 of "), "{screen}");
    pixir.does("<C-u>/status<Enter>").await;
    pixir.does("<Esc>/status<Enter>").await;
    let screen = pixir.does("<Esc>/").await;
    let first = screen.lines().find(|line| line.starts_with(" /")).unwrap_or_default();
    assert!(first.starts_with(" /status"), "what was used most:\n{screen}");
}

/// Broken build: an error in red, with a key that helps nobody.
#[tokio::test]
async fn nothing_to_undo_is_no_failure() {
    let mut pixir = Pixir::new(vec![says("One.")], &[]);
    pixir.does("go<Enter>").await;
    let screen = pixir.does("/undo<Enter>").await;
    assert!(screen.contains("\n there is nothing to undo: no turn of this session changed a file"), "{screen}");
    let screen = pixir.does("/redo<Enter>").await;
    assert!(screen.contains("\n there is nothing to redo: no turn is undone") && !screen.contains('✗'), "{screen}");
}

/// Broken build: the mention is written, and the model is told to read a file that is not there.
#[tokio::test]
async fn a_file_that_is_not_there_is_not_mentioned() {
    let mut pixir = Pixir::new(vec![], &[("there.txt", "x\n")]);
    let screen = pixir.does("/attach nosuch.txt <Enter>").await;
    assert!(screen.contains("there is no file nosuch.txt"), "{screen}");
    assert_eq!(pixir.screen.draft(), "/attach nosuch.txt ", "it is corrected in place");
    pixir.does("<C-u>/attach there.txt <Enter>").await;
    assert_eq!(pixir.screen.draft(), "@there.txt ");
}

/// Broken build: a message from before the question stays in the status line, in place of what matters now.
#[tokio::test]
async fn an_older_message_does_not_hide_that_the_user_is_waited_for() {
    let edit = calls("edit", json!({"path": "a.txt", "old_text": "alpha", "new_text": "omega"}));
    let mut pixir = Pixir::new(vec![edit, says("Done.")], &[("a.txt", "alpha\n")]);
    pixir.does("/label x<Enter>").await;
    let screen = pixir.does("go<Enter>").await;
    assert!(status(&screen).contains("waiting for you"), "{screen}");
    let screen = pixir.does("<A-y>").await;
    assert!(screen.contains("Done."), "{screen}");
}

/// Broken builds: the keys of the mark and of the search in earlier prompts are written into the code.
#[tokio::test]
async fn the_keys_of_marks_and_searches_can_be_bound() {
    let ask =
        calls("ask_user", json!({"questions": [{"question": "Which?", "options": ["a", "b"], "multiple": true}]}));
    let keys: [(&str, &[&str]); 3] =
        [("question-mark", &["alt+m"]), ("past-older", &["alt+o"]), ("details", &["none"])];
    let mut pixir = Pixir::with_keys(vec![says("One."), says("Two."), ask, says("Done.")], &keys).expect("free keys");
    pixir.does("first<Enter>").await;
    pixir.does("second<Enter>").await;
    let screen = pixir.does("<C-r>").await;
    assert!(status(&screen).contains("Alt+O older"), "{screen}");
    pixir.does("s").await;
    assert_eq!(pixir.screen.draft(), "second");
    pixir.does("<A-o><Enter>").await;
    assert_eq!(pixir.screen.draft(), "first");
    let screen = pixir.does("<C-u>ask<Enter>").await;
    assert!(screen.contains("Alt+M mark"), "{screen}");
    let screen = pixir.does("<A-m>").await;
    assert!(screen.contains('✓') || screen.contains("[x]") || screen.contains('■') || screen.contains('☑'), "{screen}");
}

/// Broken build: a frame is drawn before the colours of its code have come from their thread.
#[tokio::test]
async fn a_frame_of_a_script_has_the_colours_of_its_code() {
    let edit = calls("edit", json!({"path": "a.rs", "old_text": "fn a() {}", "new_text": "fn b() {}"}));
    let step = also_calls(edit, "ls", json!({}));
    let mut pixir = Pixir::new(vec![step, says("Done.")], &[("a.rs", "fn a() {}\n")]);
    pixir.does("go<Enter>").await;
    let screen = pixir.screen.screen();
    let found = screen.lines().enumerate().find_map(|(row, line)| Some((row, line.find("fn b() {}")?, line)));
    let (row, byte, line) = found.unwrap_or_else(|| panic!("no diff on\n{screen}"));
    let at = line[..byte].chars().count();
    let colour = |column: usize| {
        let place = (u16::try_from(column).expect("a column"), u16::try_from(row).expect("a row"));
        pixir.screen.buffer()[place].fg
    };
    assert_ne!(colour(at), colour(at + "fn b() ".len()), "the keyword has a colour of its own");
}

/// Broken builds: a refusal stands as an error in the conversation, behind the layer; the layer that asked is gone, with what was
/// typed in it; the next key leaves the reason where it is.
#[tokio::test]
async fn a_layer_says_itself_why_what_it_asked_for_is_refused() {
    let mut pixir = Pixir::new(vec![says("One."), says("Two.")], &[]);
    pixir.does("the first<Enter>").await;
    pixir.does("the second<Enter>").await;
    // A damaged Session can be looked at, and nothing in it can be changed.
    let damage = |log: &std::path::Path| {
        let text = std::fs::read_to_string(log).expect("a log");
        let lines = text.lines().map(|line| line.replace("\"the first\"", "\"the worst\"") + "\n");
        std::fs::write(log, lines.collect::<String>()).expect("write");
    };
    let mut pixir = pixir.again_after(damage, vec![]).await;
    let reason = "✗ line";
    let conversation = pixir.does("").await;
    pixir.does("/model<Enter>").await;
    let screen = pixir.does("test<Enter>").await;
    assert!(screen.contains("╭ Model") && screen.contains("› test"), "the choice is still there:\n{screen}");
    assert!(screen.contains(reason), "and the reason in it:\n{screen}");
    let screen = pixir.does("<Down>").await;
    assert!(screen.contains("╭ Model") && !screen.contains(reason), "{screen}");
    let screen = pixir.does("<Esc>").await;
    assert_eq!(screen, conversation, "the conversation has no error");
    // So has the key of the mode, which has no layer, in the status line.
    let screen = pixir.does("<S-Tab>").await;
    assert!(!screen.contains("■") && status(&screen).contains("--dry-run"), "{screen}");
    // A layer that stays has the reason too.
    let screen = pixir.does("<C-t>p").await;
    assert!(screen.contains("╭ Tree") && screen.contains(reason), "{screen}");
    assert_eq!(pixir.does("<Esc>").await, conversation);
}

/// Broken build: a call has its tool's name before the command, as in "bash bash tests/run.sh".
#[tokio::test]
async fn the_context_names_a_call_as_its_card_does() {
    let command = calls("bash", json!({"command": "bash tests/run.sh"}));
    let steps = vec![also_calls(command, "read", json!({"path": "a.txt"})), says("Done.")];
    let mut pixir = Pixir::sized(steps, &[("a.txt", "alpha\n"), ("tests/run.sh", "echo 7\n")], 120, 40);
    pixir.does("/mode auto<Enter>").await;
    let card = pixir.does("go<Enter>").await;
    assert!(card.contains("$ bash tests/run.sh") && card.contains("Read a.txt"), "{card}");
    for layer in ["/context<Enter>", "/compact<Enter>"] {
        let screen = pixir.does(layer).await;
        assert!(screen.contains("$ bash tests/run.sh") && !screen.contains("bash bash"), "{layer}\n{screen}");
        pixir.does("<Esc>").await;
    }
}
