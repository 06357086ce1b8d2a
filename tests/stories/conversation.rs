//! What a Turn looks like: its prompt, runs of calls that only read, its plan, what it has changed, and its end; and the
//! card and the question that wait for the user.

use serde_json::json;

use crate::driver::{Pixir, also_calls, calls, says};

/// Broken build: one that joins a failed call to the run, or never folds.
#[tokio::test]
async fn calls_that_only_read_are_one_line_until_it_is_opened_and_errors_stay_visible() {
    let read = |path: &str| json!({ "path": path });
    let step = also_calls(calls("read", read("a.txt")), "read", read("b.txt"));
    let step = also_calls(step, "grep", json!({"pattern": "alpha"}));
    let step = also_calls(also_calls(step, "read", read("missing.txt")), "read", read("a.txt"));
    let mut pixir = Pixir::new(vec![step, says("Read.")], &[("a.txt", "alpha\n"), ("b.txt", "beta\n")]);
    let screen = pixir.does("look<Enter>").await;
    assert!(screen.contains("✓ Looked at 2 files, ran 1 search  a.txt · b.txt  ›"), "{screen}");
    assert!(!screen.contains("✓ Read b.txt"), "its calls are folded:\n{screen}");
    assert!(screen.contains("✗ Read missing.txt"), "an error is never folded:\n{screen}");
    let screen = pixir.does("<Tab>gj ").await;
    for shown in ["ran 1 search  ⌄", "✓ Read a.txt", "✓ Read b.txt", "✓ Search alpha"] {
        assert!(screen.contains(shown), "{shown}:\n{screen}");
    }
    // A search finds what is folded.
    let screen = pixir.does("  ").await;
    assert!(!screen.contains("✓ Read b.txt"), "{screen}");
    let screen = pixir.does("/beta<Enter>").await;
    assert!(screen.contains("✓ Read b.txt") && screen.contains("beta"), "{screen}");
}

/// Broken builds: a card names the tool and not what it does; outcomes begin wherever the target ends; a search without
/// a match is a failure; a command that only prints the words of a test run is one.
#[tokio::test]
async fn cards_say_what_was_done_to_what_with_what_outcome_in_one_column() {
    let script = "echo 1 failed, 2 passed in 0.10s; exit 1";
    let step = also_calls(
        calls("read", json!({"path": "a.txt"})),
        "edit",
        json!({"path": "a.txt", "old_text": "one", "new_text": "1"}),
    );
    let step = also_calls(step, "write", json!({"path": "b.txt", "content": "new\n"}));
    let step = also_calls(step, "grep", json!({"pattern": "nowhere"}));
    let step = also_calls(step, "bash", json!({ "command": format!("touch t; {script}") }));
    let step = also_calls(step, "bash", json!({"command": "cat log.txt"}));
    let files = [("a.txt", "one\ntwo\n"), ("log.txt", "5 passed in 1.00s\n")];
    for columns in [60, 80, 120] {
        let mut pixir = Pixir::sized(vec![step.clone(), says("Done.")], &files, columns, 40);
        pixir.does("/mode auto<Enter>").await;
        let screen = pixir.does("go<Enter>").await;
        let row = |start: &str| {
            let found = screen.lines().find(|line| line.contains(start));
            found.unwrap_or_else(|| panic!("no {start} at {columns}:\n{screen}"))
        };
        let column = |row: &str, of: &str| {
            let at = row.find(of).unwrap_or_else(|| panic!("no {of} in {row:?} at {columns}:\n{screen}"));
            row[..at].chars().count()
        };
        let read = column(row("✓ Read a.txt"), "2 lines");
        assert_eq!(column(row("✓ Edit a.txt"), "+1 −1"), read, "{screen}");
        assert_eq!(column(row("✓ Write b.txt"), "new  +1"), read, "{screen}");
        assert_eq!(column(row("✓ Search nowhere"), "no match"), read, "{screen}");
        assert!(row("✗ $ touch t").contains("  1 failed, 2 passed  exit 1"), "{screen}");
        assert!(!row("✓ $ cat log.txt").contains("passed"), "{screen}");
    }
}

/// Broken build: one without the end of a Turn, or with the card of the plan.
#[tokio::test]
async fn a_plan_stands_once_and_a_turn_ends_with_what_it_took() {
    let plan = |first: &str, second: &str| json!({"items": [{"step": "Look at it", "status": first}, {"step": "Fix it", "status": second}]});
    let edit = json!({"path": "a.txt", "old_text": "alpha", "new_text": "omega\npsi"});
    let steps = vec![
        calls("update_plan", plan("in_progress", "pending")),
        also_calls(calls("edit", edit), "update_plan", plan("completed", "in_progress")),
        says("Done."),
    ];
    let mut pixir = Pixir::new(steps, &[("a.txt", "alpha\n")]);
    pixir.does("/mode auto<Enter>").await;
    let screen = pixir.does("go<Enter>").await;
    assert_eq!(screen.matches("Look at it").count(), 1, "the steps stand once:\n{screen}");
    assert_eq!(screen.matches("▤ Plan").count(), 1, "where it was last updated:\n{screen}");
    assert!(screen.contains("▤ Plan · 1 of 2") && screen.contains("▸ Fix it"), "{screen}");
    assert!(!screen.contains("update_plan"), "{screen}");
    assert!(screen.contains("3 calls · +2 −1"), "{screen}");
}

/// Broken build: one that lists every file.
#[tokio::test]
async fn a_command_that_changes_many_files_lists_the_largest_changes_and_counts_the_rest() {
    let command = "for i in $(seq 1 33); do seq 1 $i > f$i.txt; done";
    let mut pixir = Pixir::sized(vec![calls("bash", json!({ "command": command })), says("Made.")], &[], 80, 40);
    pixir.does("/mode auto<Enter>").await;
    let screen = pixir.does("go<Enter>").await;
    assert!(screen.contains("A f33.txt  +33") && screen.contains("A f24.txt  +24"), "{screen}");
    assert!(screen.contains("… 23 more files  +276 ") && !screen.contains("f23.txt"), "{screen}");
}

/// Broken build: one whose text is as wide as the screen.
#[tokio::test]
async fn text_keeps_a_readable_width_on_a_wide_screen_and_code_takes_what_it_needs() {
    let words = "word ".repeat(60);
    let code = "x".repeat(140);
    let mut pixir = Pixir::sized(vec![says(&format!("{words}\n\n```\n{code}\n```\n"))], &[], 200, 60);
    let screen = pixir.does("go<Enter>").await;
    let widest = screen.lines().filter(|line| line.contains("word")).map(|line| line.trim_end().len()).max();
    assert!(widest.is_some_and(|it| (80..=103).contains(&it)), "{widest:?}\n{screen}");
    assert!(screen.contains(&code), "code is not wrapped where there is room:\n{screen}");
    assert!(
        screen.lines().nth(1).is_some_and(|line| line.trim().is_empty()),
        "a blank row below the header:\n{screen}"
    );
}

/// Broken build: one that counts nothing, or follows links out of the folder.
#[tokio::test]
async fn a_deletion_says_how_much_it_deletes() {
    let files = [("build/a.o", "12345"), ("build/lib/b.o", "12345"), ("kept.txt", "x")];
    let mut pixir = Pixir::new(vec![calls("bash", json!({"command": "rm -rf build"})), says("Gone.")], &files);
    std::os::unix::fs::symlink("..", pixir.path("build/up")).expect("a link");
    let screen = pixir.does("clean<Enter>").await;
    assert!(screen.contains("┏ Run rm -rf build ━"), "{screen}");
    assert!(screen.contains("⚠ deletes 3 files, "), "two files and a link:\n{screen}");
    assert!(screen.contains("why: deletes build · rule that would allow it: bash(rm -rf build)"), "{screen}");
}

/// Broken build: one that keeps all unchanged lines, or does not count what it shows as read.
#[tokio::test]
async fn an_edit_of_two_places_is_read_and_allowed_on_a_small_screen() {
    let text: String = (1..=30).map(|n| format!("line {n}\n")).collect();
    let edits = json!({"path": "a.txt", "edits": [
        {"old_text": "line 5\n", "new_text": "LINE 5\n"},
        {"old_text": "line 20\n", "new_text": "LINE 20\n"},
    ]});
    let mut pixir = Pixir::new(vec![calls("edit", edits), says("Done.")], &[("a.txt", &text)]);
    let screen = pixir.does("go<Enter>").await;
    assert!(screen.contains("┏ Edit a.txt  +2 −2 ━"), "{screen}");
    for shown in ["- line 5", "+ LINE 5", "- line 20", "+ LINE 20", "Alt+Y Allow", "Alt+F Refuse and say why"] {
        assert!(screen.contains(shown), "{shown}:\n{screen}");
    }
    pixir.does("<A-y>").await;
    assert!(pixir.file("a.txt").contains("LINE 20"), "it was read in place");
}

/// Broken build: one that opens the question over the text that it is about.
#[tokio::test]
async fn a_question_stands_above_the_composer_and_the_conversation_scrolls_behind_it() {
    let text: String = (1..=40).map(|n| format!("- reason {n}\n")).collect();
    let questions = json!({"questions": [{"question": "Which database?", "options": ["SQLite", "Postgres"]}]});
    let mut step = calls("ask_user", questions);
    step.text = text;
    let mut pixir = Pixir::new(vec![step, says("Good.")], &[]);
    let screen = pixir.does("go<Enter>").await;
    let rows = ["reason 40", "Which database?", "1 SQLite", "❯ Steer"].map(|text| screen.find(text));
    assert!(
        rows.is_sorted() && rows[0].is_some(),
        "the text, then the question, then the composer: {rows:?}\n{screen}"
    );
    let screen = pixir.does("<PgUp>").await;
    assert!(!screen.contains("reason 40") && screen.contains("reason 30") && screen.contains("1 SQLite"), "{screen}");
    let screen = pixir.does("2<Enter>").await;
    assert!(screen.contains("Good.") || pixir.log().iter().any(|it| it["type"] == "turn_ended"), "{screen}");
}

/// Broken build: one whose status line is empty while an overlay is open.
#[tokio::test]
async fn the_status_line_is_never_empty() {
    let mut pixir = Pixir::new(vec![says("ok")], &[]);
    pixir.does("hi<Enter>").await;
    for keys in ["", "<C-t>", "<Esc>", "<F1>", "<Esc>", "<C-p>", "<Esc>", "<Tab>", "<Esc>"] {
        let screen = pixir.does(keys).await;
        let status = screen.lines().last().unwrap_or_default();
        assert!(status.trim().len() > 10, "after {keys:?}: {status:?}\n{screen}");
    }
}

/// Broken build: one that compares the rule with nothing.
#[tokio::test]
async fn always_says_what_the_rule_would_have_done() {
    let call = |command: &str| calls("bash", json!({ "command": command }));
    let steps = vec![call("touch a"), call("touch a"), call("touch a"), says("Done.")];
    let mut pixir = Pixir::sized(steps, &[], 100, 30);
    pixir.does("go<Enter>").await;
    pixir.does("<A-y>").await;
    pixir.does("<A-n>").await;
    let screen = pixir.does("<A-a>").await;
    assert!(screen.contains("bash(touch a)"), "{screen}");
    assert!(screen.contains("would have allowed 2 of the last 2 calls that asked, 1 that you refused"), "{screen}");
}

/// Broken build: the card has the text for the model, with its mark and its advice.
#[tokio::test]
async fn the_error_of_a_call_is_said_to_the_user_without_the_advice_for_the_model() {
    let mut pixir = Pixir::new(vec![calls("read", json!({"path": "missing.txt"})), says("I see.")], &[]);
    let screen = pixir.does("read it<Enter>").await;
    assert!(screen.contains("│ there is no `missing.txt`"), "{screen}");
    assert!(!screen.contains("[error]") && !screen.contains("Use: "), "{screen}");
    let told = pixir.log().into_iter().find(|it| it["type"] == "tool_result").expect("a result");
    assert!(told["data"]["output"].as_str().expect("text").starts_with("[error] read: "), "{told}");
}
