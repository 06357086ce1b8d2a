//! Questions of the model: the form, its answers, and what happens without a user.

use serde_json::{Value, json};

use crate::connected::{ask, terminal};
use crate::driver::{Pixir, calls, says};
use crate::server::{Dialect, Server, call, text};
use crate::shell::{Shell, entries};

/// Broken build: one that offers the same tools everywhere, or changes them while a Session is open.
#[test]
fn what_asks_the_user_is_offered_only_where_a_user_can_answer() {
    let offers = |body: &Value| -> (bool, bool) {
        let tools = body["tools"].to_string();
        (tools.contains("\"ask_user\""), tools.contains("\\nask — "))
    };
    for (toolset, attended) in [("typed", (true, false)), ("run", (false, true)), ("both", (true, true))] {
        let shell = Shell::new(&[("a.txt", "x\n")]);
        let replies = || {
            vec![
                call(
                    "c1",
                    if toolset == "run" { "run" } else { "read" },
                    match toolset {
                        "run" => json!({ "command": "cat a.txt" }),
                        _ => json!({ "path": "a.txt" }),
                    },
                ),
                text("Done."),
            ]
        };
        let server = Server::start(replies());
        assert_eq!(ask(&shell, &server, Dialect::Responses, &["go", "--toolset", toolset]).code, 0);
        let bodies = server.bodies();
        assert_eq!(bodies[0]["tools"], bodies[1]["tools"], "{toolset}");
        assert_eq!(offers(&bodies[0]), (false, false), "{toolset}: {}", bodies[0]["tools"]);
        let server = Server::start(replies());
        let mut terminal = terminal(&shell, &server, &["--toolset", toolset], (80, 24));
        terminal.wait_for("Ask pixir");
        terminal.send("go\r");
        server.wait_for(2);
        assert_eq!(offers(&server.bodies()[0]), attended, "{toolset}");
        terminal.wait_for("Done.");
        terminal.send("\x04");
        terminal.end().assert_sane();
    }
}

#[test]
fn ask_user_without_a_user_is_an_error_at_once() {
    let shell = Shell::new(&[]);
    let steps = json!([{ "calls": [{ "name": "ask_user", "args": { "questions": [{ "question": "Which?" }] } }] }, { "text": "Then a." }]);
    let provider = format!("script:{}", shell.aside("s.json", &json!({ "steps": steps }).to_string()).display());
    let ran = shell.run(["--provider", &provider, "--headless", "--json", "--write", "go"]);
    assert_eq!(ran.document()["output"], "Then a.", "{}", ran.stderr);
    let log = entries(&shell.logs()[0]);
    let result = log.iter().find(|e| e["type"] == "tool_result").expect("a result");
    assert_eq!(result["data"]["error"]["code"], "INPUT_REQUIRED");
}

#[tokio::test]
async fn a_form_takes_a_choice_several_marks_and_free_text() {
    let questions = json!({"questions": [
        {"question": "Which database?", "options": ["SQLite", "Postgres"]},
        {"question": "Which of these too?", "options": ["tests", "docs", "CI"], "multiple": true},
        {"question": "What should it be called?"},
    ]});
    let mut pixir = Pixir::sized(
        vec![calls("ask_user", questions.clone()), says("Good."), calls("ask_user", questions), says("Fine.")],
        &[],
        80,
        24,
    );
    let screen = pixir.does("make it<Enter>").await;
    insta::assert_snapshot!("a_question_of_the_model", screen);
    pixir.does("2<Enter>").await;
    let screen = pixir.does(" <Down><Down> ").await;
    insta::assert_snapshot!("a_question_with_several_answers", screen);
    pixir.does("<Enter>").await;
    let screen = pixir.does("quill<Enter>").await;
    assert!(screen.contains("Good."), "{screen}");
    let log = pixir.log();
    let answered = |n: usize| {
        let results: Vec<&Value> = log.iter().filter(|e| e["type"] == "tool_result").collect();
        results[n]["data"]["output"].as_str().expect("text").rsplit_once("[exit:").expect("a footer").0.to_owned()
    };
    assert_eq!(
        answered(0),
        "Which database?\n→ Postgres\nWhich of these too?\n→ tests, CI\nWhat should it be called?\n→ quill\n"
    );
    pixir.does("again<Enter>").await;
    let screen = pixir.does("<Esc>").await;
    assert!(screen.contains("Fine."), "{screen}");
    let log = pixir.log();
    let last = log.iter().rfind(|e| e["type"] == "tool_result").expect("a result");
    assert!(last["data"]["output"].as_str().expect("text").starts_with("the user did not answer"));
}

/// Broken build: the card repeats the question above its answer, and says how long the user took.
#[tokio::test]
async fn an_answered_question_stands_once() {
    let questions = json!({"questions": [{"question": "Which database?", "options": ["SQLite", "Postgres"]}]});
    let mut pixir = Pixir::new(vec![calls("ask_user", questions), says("Good.")], &[]);
    pixir.does("make it<Enter>").await;
    let screen = pixir.does("2<Enter>").await;
    assert!(screen.contains("✓ Ask Which database?\n   │ → Postgres\n"), "{screen}");
    assert_eq!(screen.matches("Which database?").count(), 1, "{screen}");
}

#[tokio::test]
async fn a_free_text_answer_may_begin_with_a_digit_or_join_marks() {
    let questions = json!({"questions": [
        {"question": "Which port?", "options": ["3000", "5000"]},
        {"question": "Which of these?", "options": ["a", "b"], "multiple": true},
    ]});
    let mut pixir = Pixir::new(vec![calls("ask_user", questions), says("Good.")], &[]);
    pixir.does("go<Enter>").await;
    pixir.does("1234<Enter>").await;
    let screen = pixir.does("mine<Up> <Enter>").await;
    assert!(screen.contains("Good."), "{screen}");
    let log = pixir.log();
    let result = log.iter().find(|e| e["type"] == "tool_result").expect("a result");
    let output = result["data"]["output"].as_str().expect("text");
    assert!(output.starts_with("Which port?\n→ 1234\nWhich of these?\n→ b, mine\n"), "{output}");
}

#[tokio::test]
async fn a_form_does_not_take_keys_typed_into_the_composer() {
    let long =
        "Which of these two should it be, when all is said and done, and everything has been weighed? ".repeat(4);
    let option = |end: &str| format!("the first strategy, which keeps everything there is and {end}");
    let questions = json!({"questions": [
        {"question": long, "options": [option("deletes nothing"), option("deletes the backups")]},
        {"question": "Sure?", "options": ["yes", "no"]},
    ]});
    let mut pixir = Pixir::sized(vec![calls("ask_user", questions), says("Good.")], &[], 60, 20);
    pixir.screen.until_idle().await;
    pixir.screen.keys("go<Enter>still writing").await;
    let screen = pixir.does(" this").await;
    assert!(screen.contains("Tab answer · keep typing to continue your draft"), "{screen}");
    assert_eq!(pixir.screen.draft(), "still writing this");
    let screen = pixir.does("<Tab>").await;
    assert!(screen.contains("Which of these two should it be"), "a long question is shown from its start:\n{screen}");
    let screen = pixir.does("<Down>").await;
    assert!(screen.contains("deletes nothing") && screen.contains("deletes the backups"), "{screen}");
    // Back and again; Esc clears the typed text before it closes the form.
    pixir.does("<Enter>").await;
    let screen = pixir.does("<Left>").await;
    assert!(screen.contains("Question 1 of 2"), "{screen}");
    pixir.does("<Enter>").await;
    pixir.does("own words<Esc>").await;
    let screen = pixir.does("2<Enter>").await;
    assert!(screen.contains("Good."), "{screen}");
    let log = pixir.log();
    let result = log.iter().find(|e| e["type"] == "tool_result").expect("a result");
    let output = result["data"]["output"].as_str().expect("text");
    assert!(output.contains("deletes nothing\nSure?\n→ no\n"), "{output}");
    assert_eq!(pixir.screen.draft(), "still writing this");
}
