//! The tree: moving the head, forks, labels, pins and summaries of a branch.

use std::fs;

use pixir_core::provider::script::Step;
use serde_json::{Value, json};

use super::undo::{commands, done, turns};
use crate::driver::{Pixir, calls, says};
use crate::shell::{Shell, entries};

#[tokio::test]
async fn the_tree_edits_a_prompt_again_and_loses_no_branch() {
    let mut pixir = Pixir::new(vec![says("One."), says("Two."), says("Other.")], &[]);
    pixir.does("first<Enter>").await;
    pixir.does("second<Enter>").await;
    let screen = pixir.does("/tree<Enter>").await;
    insta::assert_snapshot!(screen);
    pixir.does("e").await;
    assert_eq!(pixir.screen.draft(), "second");
    let screen = pixir.does(", but other<Enter>").await;
    assert!(screen.contains("Other.") && !screen.contains("Two."), "{screen}");
    let screen = pixir.does("<C-t>").await;
    assert!(screen.contains("◉ │ 3 second, but other") && screen.contains("○ 2 second"), "{screen}");
    let screen = pixir.does("<Down><Enter>").await;
    assert!(screen.contains("Two.") && !screen.contains("Other."), "the other branch is back:\n{screen}");
}

#[tokio::test]
async fn a_fork_is_a_session_that_its_parent_lists() {
    let mut pixir = Pixir::new(vec![says("One."), says("In the fork.")], &[]);
    pixir.does("first<Enter>").await;
    let parent = pixir.screen.session().expect("open").clone();
    pixir.does("/fork<Enter>").await;
    assert_ne!(pixir.screen.session(), Some(&parent));
    let screen = pixir.does("more<Enter>").await;
    assert!(screen.contains("One.") && screen.contains("In the fork."), "{screen}");
    assert!(pixir.kinds().starts_with(&["session_started".into(), "session_fork".into(), "user_message".into()]));
    pixir.does(&format!("/resume {parent}<Enter>")).await;
    let screen = pixir.does("<C-t>").await;
    assert!(screen.contains("↱ fork"), "{screen}");
    // Both begin with the same prompt, so the list says which of them is the fork.
    let screen = pixir.does("<Esc>/sessions<Enter>").await;
    let is_fork = |row: &str| row.contains("↱ first");
    assert_eq!(screen.lines().filter(|row| is_fork(row) || row.contains("● first")).count(), 2, "{screen}");
}

#[tokio::test]
async fn a_fork_rewound_to_its_start_is_not_deleted() {
    let mut pixir = Pixir::new(vec![says("One.")], &[]);
    pixir.does("first<Enter>").await;
    pixir.does("/fork<Enter>").await;
    let fork = pixir.screen.session().expect("open").clone();
    pixir.does("<C-t>e").await;
    assert_eq!(pixir.screen.draft(), "first");
    pixir.does("<C-c>/new<Enter>").await;
    let screen = pixir.does(&format!("/resume {fork}<Enter>")).await;
    assert_eq!(pixir.screen.session(), Some(&fork), "{screen}");
}

/// Two Turns that wrote the same file, and the answers after them.
async fn written_twice(then: Option<Step>) -> Pixir {
    let write = |text: &str| calls("write", json!({ "path": "a.txt", "content": text }));
    let steps = [write("one\n"), says("One."), write("two\n"), says("Two.")];
    let mut pixir = Pixir::sized(steps.into_iter().chain(then).collect(), &[], 100, 30);
    pixir.does("<S-Tab>").await;
    pixir.does("first<Enter>").await;
    pixir.does("second<Enter>").await;
    pixir
}

#[tokio::test]
async fn moving_the_head_offers_to_restore_files() {
    let mut pixir = written_twice(None).await;
    assert_eq!(pixir.file("a.txt"), "two\n");
    let screen = pixir.does("<C-t><Up><Enter>").await;
    insta::assert_snapshot!("going_back_asks_about_the_files", screen);
    let screen = pixir.does("<Esc>").await;
    assert!(screen.contains("Two.") && pixir.file("a.txt") == "two\n", "Esc stays here:\n{screen}");
    pixir.does("<C-t><Up><Enter>").await;
    pixir.does("<Enter>").await;
    assert_eq!(pixir.file("a.txt"), "one\n");
    let screen = pixir.screen.screen();
    assert!(!screen.contains("Two."), "{screen}");
    // And forward again, to the branch that was left, with its files.
    pixir.does("<C-t><C-o>").await;
    pixir.does("<Enter>").await;
    assert_eq!(pixir.file("a.txt"), "two\n");
    assert!(pixir.screen.screen().contains("Two."));
    // Files may also stay.
    pixir.does("<C-t><Up><Enter>").await;
    pixir.does("n").await;
    assert_eq!(pixir.file("a.txt"), "two\n");
    assert!(!pixir.screen.screen().contains("Two."));
}

#[tokio::test]
async fn a_left_branch_is_summarised_by_log_or_model() {
    let steps = vec![
        says("One."),
        calls("write", json!({ "path": "try.txt", "content": "x\n" })),
        says("Tried it, and it failed."),
        says("Noted."),
        says(r#"{"goal": "get it to work", "state": "a second try", "pitfalls": ["try.txt does not help"]}"#),
        says("Noted again."),
        says("Sure, I will do that."),
    ];
    let mut pixir = Pixir::sized(steps, &[], 100, 30);
    pixir.does("<S-Tab>").await;
    pixir.does("first<Enter>").await;
    pixir.does("try it<Enter>").await;
    pixir.does("<C-t>s<Up><Enter>").await;
    pixir.does("n").await;
    let log = pixir.log();
    let summary = log.iter().find(|e| e["type"] == "branch_summary").expect("it was recorded");
    assert_eq!(summary["data"]["strategy"], "deterministic");
    let text = summary["data"]["summary"].as_str().expect("text");
    assert!(text.contains("try it") && text.contains("try.txt") && text.contains("it failed"), "{text}");
    pixir.does("second way<Enter>").await;
    pixir.does("<C-t>ss<Home><Enter>").await;
    let screen = pixir.does("n").await;
    assert!(screen.contains("One."), "{screen}");
    let log = pixir.log();
    let summary = log.iter().rev().find(|e| e["type"] == "branch_summary").expect("it was recorded");
    assert_eq!(
        (summary["data"]["strategy"].as_str(), summary["data"]["model"].as_str()),
        (Some("model"), Some("test-model"))
    );
    let text = summary["data"]["summary"].as_str().expect("text");
    assert!(text.contains("a second try") && text.contains("- try.txt does not help"), "{text}");
    assert_eq!(summary["data"]["notes"]["pitfalls"], json!(["try.txt does not help"]));
    // An answer that is not as asked is no summary.
    pixir.does("third way<Enter>").await;
    pixir.does("<C-t>ss<Home><Enter>").await;
    let screen = pixir.does("n").await;
    assert!(screen.contains("could not summarize the branch"), "{screen}");
    let log = pixir.log();
    let summary = log.iter().rev().find(|e| e["type"] == "branch_summary").expect("it was recorded");
    assert_eq!(summary["data"]["strategy"], "deterministic");
    assert!(summary["data"]["summary"].as_str().expect("text").contains("third way"), "{summary}");
}

#[tokio::test]
async fn labels_and_pins_survive_compaction() {
    let long = "word ".repeat(10_000);
    let mut pixir = Pixir::sized(vec![says("Remember the port is 8642."), says(&long), says("Three.")], &[], 100, 30);
    for prompt in ["first<Enter>", "second<Enter>", "third<Enter>"] {
        pixir.does(prompt).await;
    }
    let screen = pixir.does("<C-t><Home>lthe port<Enter>p").await;
    assert!(screen.contains("first  ⚑ the port  ⚲ pinned"), "{screen}");
    pixir.does("<Esc>/compact<Enter>").await;
    pixir.does("<Enter>").await;
    let log = pixir.log();
    let compaction = log.iter().find(|e| e["type"] == "history_compaction").expect("it was compacted");
    assert!(compaction["data"]["summary"].as_str().expect("text").contains("Remember the port is 8642."));
    let mut again = pixir.again(vec![]).await;
    let screen = again.does("<C-t>").await;
    assert!(screen.contains("first  ⚑ the port"), "{screen}");
}

#[test]
fn tree_and_fork_commands_leave_the_parent_unchanged() {
    let shell = Shell::new(&[]);
    let id = turns(&shell, &["echo 1", "echo 2"]);
    let log = shell.logs().first().cloned().expect("a log");
    let before = fs::read(&log).expect("read");
    let tree = done(&shell.run(["tree", "--json"]));
    let first_end = tree["turns"][0]["end_seq"].as_u64().expect("a number").to_string();
    let plan = done(&shell.run(["fork", &id, "--at", &first_end, "--dry-run", "--json"]));
    assert!(plan["entries"].as_u64().expect("a number") >= 4);
    assert_eq!(shell.logs().len(), 1, "a dry run makes nothing");
    let fork = done(&shell.run(["fork", &id, "--at", &first_end, "--json"]));
    assert_eq!(fs::read(&log).expect("read"), before, "the parent is not touched");
    let forked = fork["session_id"].as_str().expect("an id");
    let tree = done(&shell.run(["tree", forked, "--all", "--json"]));
    assert_eq!(tree["turns"].as_array().expect("turns").len(), 1);
    assert_eq!(tree["family"][0]["session_id"], json!(id));
    let wrong = shell.run(["fork", &id, "--at", "0", "--json"]);
    assert_eq!(wrong.error()["code"], "NOT_FOUND", "entry 0 is no message");
    let path = shell.logs().into_iter().find(|p| *p != log).expect("the fork's log");
    assert_eq!(entries(&path)[1]["type"], "session_fork");
}

#[test]
fn a_fork_can_undo_the_turns_it_began_with() {
    let shell = Shell::new(&[("a", "a\n")]);
    let id = turns(&shell, &["echo A > a", "echo B > b"]);
    let fork = done(&shell.run(["fork", &id, "--json"]));
    let forked = fork["session_id"].as_str().expect("an id");
    let tree = done(&shell.run(["tree", forked, "--json"]));
    assert_eq!((&tree["turns"][0]["turn"], &tree["turns"][1]["turn"]), (&json!(1), &json!(2)));
    done(&shell.run(["undo", forked, "--json"]));
    assert!(!shell.workspace().join("b").exists());
    done(&shell.run(["undo", forked, "--json"]));
    assert_eq!(shell.read("a"), "a\n");
    let script = shell.aside("more.json", &commands(&["echo C > c"]));
    let provider = format!("script:{}", script.display());
    done(&shell.run(["--provider", &provider, "--headless", "--json", "--write", "resume", forked, "more"]));
    let tree = done(&shell.run(["tree", forked, "--json"]));
    let turns = tree["turns"].as_array().expect("turns");
    assert_eq!(turns.last().expect("a turn")["turn"], 3, "numbers go on");
}

#[tokio::test]
async fn a_head_move_without_files_names_them_to_the_model() {
    let mut pixir = written_twice(Some(says("I see."))).await;
    pixir.does("<C-t><Up><Enter>").await;
    pixir.does("n").await;
    pixir.does("what now?<Enter>").await;
    let log = pixir.log();
    let output = log.iter().find(|e| e["type"] == "files_restored").expect("it is recorded");
    assert_eq!((&output["data"]["reason"], &output["data"]["left"][0]["path"]), (&json!("stayed"), &json!("a.txt")));
    assert!(pixir.screen.screen().contains("stayed as they are"), "{}", pixir.screen.screen());
    // In a fork, where entries have other numbers, it names the same place.
    let place = |log: &[Value]| {
        let stayed =
            log.iter().find(|e| e["type"] == "files_restored").expect("it is recorded")["data"]["to_seq"].clone();
        log.iter().find(|e| e["seq"] == stayed).expect("it is there")["data"].clone()
    };
    pixir.does("/fork<Enter>").await;
    assert_eq!(place(&pixir.log()), place(&log));
}

#[tokio::test]
async fn a_refused_head_move_can_be_repeated() {
    let mut pixir = written_twice(None).await;
    pixir.does("<C-t><Up><Enter>").await;
    fs::write(pixir.path("a.txt"), "saved meanwhile\n").expect("write");
    let screen = pixir.does("<Enter>").await;
    assert!(screen.contains("changed since"), "{screen}");
    pixir.does("o<Enter>").await;
    assert_eq!(pixir.file("a.txt"), "one\n");
    assert!(!pixir.screen.screen().contains("Two."), "{}", pixir.screen.screen());
}

#[tokio::test]
async fn undo_after_a_head_move_uses_the_files_of_the_new_head() {
    let mut pixir = written_twice(None).await;
    pixir.does("/undo<Enter>").await;
    pixir.does("<Enter>").await;
    assert_eq!(pixir.file("a.txt"), "one\n");
    // Back to where the second turn had just ended: its change is there again, and nothing is undone.
    pixir.does("<C-t><Up><Enter>").await;
    pixir.does("<Enter>").await;
    assert_eq!(pixir.file("a.txt"), "two\n");
    let screen = pixir.does("/redo<Enter>").await;
    assert!(screen.contains("no turn is undone"), "{screen}");
    let screen = pixir.does("/undo<Enter>").await;
    assert!(screen.contains("turn 2"), "{screen}");
    pixir.does("<Enter>").await;
    assert_eq!(pixir.file("a.txt"), "one\n");
    // Before both of them there is nothing that could be undone.
    pixir.does("/undo<Enter>").await;
    pixir.does("<Enter>").await;
    assert!(!pixir.path("a.txt").exists());
}
