//! Lists over the conversation: palette, sessions, help, jobs, HUD.

use serde_json::json;

use crate::driver::{Pixir, calls, says};

/// The text of the first row of a list on the screen.
fn first_option(pixir: &Pixir) -> String {
    let screen = pixir.screen.semantics();
    let regions = screen["regions"].as_array().expect("regions").clone();
    let option = regions.into_iter().find(|it| it["role"] == "option").expect("an option");
    option["label"].as_str().expect("a label").to_owned()
}

/// The text of the selected row.
fn selected(pixir: &Pixir) -> String {
    let screen = pixir.screen.semantics();
    let regions = screen["regions"].as_array().expect("regions").clone();
    let option = regions.into_iter().find(|it| it["role"] == "option" && it["selected"] == true);
    option.map_or_else(String::new, |it| it["label"].as_str().expect("a label").to_owned())
}

/// Broken build: the uses are not saved, or saved in the Session's folder.
#[tokio::test]
async fn the_palette_offers_what_was_used_most_also_in_the_next_session() {
    let mut pixir = Pixir::new(vec![says("One.")], &[]);
    pixir.does("<C-p>").await;
    let first = first_option(&pixir);
    assert!(first != "/interrupt" && first != "/quit", "{first}");
    let screen = pixir.screen.screen();
    assert!(!screen.contains("/interrupt"), "it cannot be done now:\n{screen}");
    pixir.does("<Esc>").await;
    for _ in 0..2 {
        pixir.does("/status<Enter>").await;
        pixir.does("<Esc>").await;
    }
    pixir.does("<C-p>").await;
    assert_eq!(first_option(&pixir), "/status");
    pixir.does("<Esc>").await;
    pixir.does("go<Enter>").await;
    let mut pixir = pixir.anew(vec![]).await;
    pixir.does("<C-p>").await;
    assert_eq!(first_option(&pixir), "/status", "and in the next session");
}

#[tokio::test]
async fn the_palette_finds_sessions_files_and_actions_without_a_command() {
    let mut pixir = Pixir::new(vec![says("One.")], &[("src/lexer.rs", "fn lex() {}\n")]);
    pixir.does("mend the tokenizer<Enter>").await;
    let first = pixir.screen.session().expect("open").to_string();
    let mut pixir = pixir.anew(vec![]).await;
    let screen = pixir.does("<C-p>reasoning").await;
    assert!(screen.contains("thinking") && screen.contains("Alt+T"), "{screen}");
    pixir.does("<Esc><C-p>@lexer").await;
    pixir.screen.until("src/lexer.rs").await;
    pixir.does("<Enter>").await;
    assert_eq!(pixir.screen.draft(), "@src/lexer.rs ");
    pixir.does("<C-c><C-p>tokenizer").await;
    pixir.screen.until("mend the tokenizer").await;
    pixir.does("<Enter>").await;
    assert_eq!(pixir.screen.session().expect("open").to_string(), first);
}

/// Broken build: only titles are searched.
#[tokio::test]
async fn sessions_are_found_by_any_text_in_them_and_previewed() {
    let mut pixir = Pixir::new(vec![says("The answer speaks of marmalade.")], &[]);
    pixir.does("what is for breakfast<Enter>").await;
    let first = pixir.screen.session().expect("open").to_string();
    let mut pixir = pixir.anew(vec![says("Fine.")]).await;
    pixir.does("hello<Enter>").await;
    let screen = pixir.does("/sessions<Enter>").await;
    assert!(screen.contains("● hello") && screen.contains("what is for breakfast"), "{screen}");
    assert_eq!(selected(&pixir), "what is for breakfast", "the latest other one");
    pixir.screen.keys("marmalade").await;
    pixir.screen.until("speaks of marmalade").await;
    let screen = pixir.does("").await;
    assert!(screen.contains("1 of 2") && screen.contains("what is for breakfast"), "{screen}");
    let screen = pixir.does("x<Backspace><C-u>zzzz").await;
    assert!(screen.contains("No matches"), "{screen}");
    pixir.does("<C-u>marmalade").await;
    pixir.does("<Enter>").await;
    assert_eq!(pixir.screen.session().expect("open").to_string(), first);
}

/// Broken build: the Session is deleted without the question.
#[tokio::test]
async fn a_session_is_renamed_deleted_and_restored_in_the_list() {
    let mut pixir = Pixir::new(vec![says("One.")], &[]);
    pixir.does("the old one<Enter>").await;
    let mut pixir = pixir.anew(vec![says("Two.")]).await;
    pixir.does("the new one<Enter>").await;
    let screen = pixir.does("/sessions<Enter>").await;
    assert!(screen.contains("2 of 2"), "{screen}");
    let screen = pixir.does("<C-r>breakfast<Enter>").await;
    assert!(screen.contains("breakfast"), "{screen}");
    let screen = pixir.does("<C-x>n").await;
    assert!(screen.contains("2 of 2"), "n is no yes:\n{screen}");
    let screen = pixir.does("<Down><C-x>").await;
    assert!(!screen.contains("Delete this session?"), "the open one cannot be deleted:\n{screen}");
    let screen = pixir.does("<Up><C-x>").await;
    assert!(screen.contains("Delete this session? It moves to the trash."), "{screen}");
    let screen = pixir.does("y").await;
    assert!(screen.contains("1 of 1") && !screen.contains("breakfast"), "{screen}");
    let screen = pixir.does("<A-u>").await;
    assert!(screen.contains("2 of 2") && screen.contains("breakfast"), "{screen}");
}

#[tokio::test]
async fn help_stands_in_two_columns_and_an_overlay_shows_its_keys_first() {
    let mut pixir = Pixir::sized(vec![], &[], 132, 40);
    let screen = pixir.does("<F1>").await;
    let row = screen.lines().find(|line| line.contains("Commands")).expect("a heading");
    assert!(row.contains("With the transcript in focus"), "two columns:\n{screen}");
    let screen = pixir.does("side panel").await;
    assert!(screen.contains("› side panel") && screen.contains("show or hide the side panel"), "{screen}");
    let screen = pixir.does("<C-u>zzzzz").await;
    assert!(screen.contains("No matches"), "{screen}");
    pixir.does("<Esc>").await;
    let screen = pixir.does("/permissions<Enter>?").await;
    let at = |text: &str| screen.find(text).unwrap_or_else(|| panic!("{text} is not on\n{screen}"));
    assert!(at("In the permissions") < at("Commands"), "{screen}");
}

/// Broken build: `x` stops the job at once.
#[tokio::test]
async fn a_job_is_stopped_only_after_the_question_and_shows_its_output() {
    let step = calls("bash", json!({"command": "echo serving; sleep 600", "background": true}));
    let mut pixir = Pixir::sized(vec![step, says("It runs.")], &[], 110, 30);
    pixir.does("/mode auto<Enter>").await;
    pixir.does("serve<Enter>").await;
    let screen = pixir.does("/jobs<Enter>").await;
    assert!(screen.contains("running") && screen.contains("sleep 600"), "{screen}");
    let screen = pixir.does("x").await;
    assert!(screen.contains("Stop job 1 and all its processes?"), "{screen}");
    let screen = pixir.does("<Down>x<Down>").await;
    assert!(screen.contains("running"), "another key lets it run:\n{screen}");
    pixir.screen.keys("xy").await;
    pixir.screen.until("stopped").await;
    pixir.does("<Esc>/jobs<Enter>").await;
    pixir.screen.until("serving").await;
}

#[tokio::test]
async fn the_hud_shows_each_figure_beside_its_budget() {
    let mut pixir = Pixir::sized(vec![says("One.")], &[], 100, 30);
    pixir.does("go<Enter>").await;
    let screen = pixir.does("<F12>").await;
    for shown in [
        "frame ms",
        "p99 ≤ 8",
        "key to paint",
        "p99 ≤ 4 ms",
        "bytes a frame",
        "row cache",
        "wake-ups",
        "0 when idle",
        "≤ 25 MB",
    ] {
        assert!(screen.contains(shown), "{shown}:\n{screen}");
    }
    let screen = pixir.does("<F12>").await;
    assert!(!screen.contains("key to paint"), "{screen}");
}
