//! What goes on beside a turn: jobs in the background, questions to the person, what earlier sessions said.

use crate::driver::{Pixir, also_calls, calls, says, timeless};
use crate::shell::{Shell, entries, is_running};
use pixir_core::provider::script::Step;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !is_so() {
        assert!(Instant::now() < end, "waited in vain until {what}");
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

#[tokio::test]
async fn a_job_runs_in_the_background_is_heard_is_listed_and_ends_with_its_session() {
    let marker = format!("76543.{:07}", std::process::id());
    let start = calls(
        "bash",
        json!({"command": format!("echo begun; (sleep {marker} &); sleep {marker}"), "background": true}),
    );
    let steps = vec![
        start,
        calls("job_output", json!({"job": 1, "wait": 20})),
        also_calls(calls("job_output", json!({})), "job_output", json!({"job": 7})),
        says("It runs."),
        calls("job_kill", json!({"job": 1})),
        calls("bash", json!({"command": format!("sleep {marker}"), "background": true})),
        says("Another."),
    ];
    let mut pixir = Pixir::sized(steps, &[], 100, 30);
    pixir.does("serve<Enter>").await;
    let screen = pixir.does("<A-y>").await;
    assert!(screen.contains("1 job"), "{screen}");
    let outputs = |pixir: &Pixir| -> Vec<String> {
        let log = pixir.log();
        let results = log.iter().filter(|e| e["type"] == "tool_result");
        results.map(|e| e["data"]["output"].as_str().expect("text").to_owned()).collect()
    };
    let told = outputs(&pixir);
    assert!(told[0].starts_with("job 1 (running): echo begun;"), "{}", told[0]);
    assert!(told[0].contains("cannot be undone"), "{}", told[0]);
    assert!(told[1].starts_with("begun\njob 1 (running)"), "{}", told[1]);
    assert!(told[2].starts_with("job 1 (running)"), "{}", told[2]);
    assert!(told[3].contains("there is no job 7. Use: one of: 1"), "{}", told[3]);
    assert!(is_running(&marker), "a call that has ended does not end it");
    let screen = pixir.does("/jobs<Enter>").await;
    assert!(screen.contains("Background jobs") && screen.contains("running"), "{screen}");
    insta::assert_snapshot!("background_jobs", timeless(&screen).replace(&marker, "76543.0000000"));
    pixir.does("<Esc>").await;
    pixir.does("stop it and start another<Enter>").await;
    pixir.does("<A-y>").await;
    let told = outputs(&pixir);
    assert!(told[4].starts_with("job 1 (stopped)"), "{}", told[4]);
    assert!(told[5].starts_with("job 2 (running)"), "{}", told[5]);
    assert!(is_running(&marker));
    pixir.screen.close().await.expect("a session was open");
    until("the job is gone with its session", || !is_running(&marker));
}

#[test]
fn what_a_job_left_in_a_session_of_its_own_ends_with_pixir_too() {
    let marker = format!("87654.{}", std::process::id());
    let shell = Shell::new(&[]);
    let command =
        format!("(setsid sleep {marker} &); (env -i setsid /bin/sleep {marker} &); env -i /bin/sleep {marker}");
    let steps = json!([
        { "calls": [{ "name": "bash", "args": { "command": command, "background": true } }] },
        { "calls": [{ "name": "bash", "args": { "command": "echo another; setsid -f true" } }] },
        { "calls": [{ "name": "job_output", "args": { "job": 1 } }] },
        { "text": "Done." },
    ]);
    let provider = format!("script:{}", shell.aside("s.json", &json!({ "steps": steps }).to_string()).display());
    let ran = shell.run(["--provider", &provider, "--headless", "--json", "--write", "go"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let log = entries(&shell.logs()[0]);
    let last = log.iter().rfind(|e| e["type"] == "tool_result").expect("a result");
    let told = last["data"]["output"].as_str().expect("text");
    assert!(told.starts_with("job 1 (running)"), "another command that ends does not end it: {told}");
    until("the job is gone with pixir", || !is_running(&marker));
}

#[test]
fn what_a_job_says_may_decide_how_a_line_goes_on() {
    let shell = Shell::new(&[]);
    let call = |command: &str| json!({ "calls": [{ "name": "run", "args": { "command": command } }] });
    let steps = json!([
        call("job start sh -c 'echo ready; sleep 30'"),
        call("job output 1 20 | grep -q ready && write ok.txt yes"),
        call("job output 7 || write failed.txt yes"),
        call("job output 1 | memory store"),
        call("write n.txt one"),
        call("sh -c 'echo two > n.txt'; edit n.txt two three"),
        call("cat n.txt"),
        call("edit n.txt three four"),
        { "text": "Done." },
    ]);
    let provider = format!("script:{}", shell.aside("s.json", &json!({ "steps": steps }).to_string()).display());
    let args = ["--provider", &provider, "--toolset", "run", "--headless", "--json"];
    let ran = shell.run(args.iter().chain(&["--write", "go"]));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(
        (shell.read("ok.txt"), shell.read("failed.txt"), shell.read("n.txt")),
        ("yes".into(), "yes".into(), "four\n".into())
    );
    // Without leave nothing of it happens, whatever a job would have said.
    let steps = json!([call("job output 1 3 || touch pwned"), { "text": "Done." }]);
    let provider = format!("script:{}", shell.aside("s.json", &json!({ "steps": steps }).to_string()).display());
    let args = ["--provider", &provider, "--toolset", "run", "--headless", "--json", "go"];
    assert_eq!(shell.run(args).code, 12);
    assert!(!shell.workspace().join("pwned").exists());
}

#[test]
fn a_question_nobody_can_answer_is_an_error_and_never_a_wait() {
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
async fn the_model_asks_and_the_person_chooses_marks_and_says() {
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

#[tokio::test]
async fn what_was_said_and_stored_in_one_session_is_found_in_the_next() {
    let lines = |command: &str| calls("run", json!({ "command": command }));
    let toolset = |steps: Vec<Step>| Pixir::sized(steps, &[], 100, 30);
    let mut pixir = toolset(vec![lines("memory store 'the login needs a token'"), says("The timeout was the proxy.")]);
    pixir.does("/toolset both<Enter>").await;
    pixir.does("why does the login time out<Enter>").await;
    let id = pixir.log().iter().find(|e| e["type"] == "memory_fact").expect("it is recorded")["data"]["id"]
        .as_str()
        .expect("an id")
        .to_owned();
    pixir.does("/new<Enter>").await;
    let mut pixir = pixir.anew(vec![
        calls("recall", json!({"query": "TIMEOUT proxy"})),
        also_calls(lines("memory facts"), "run", json!({"command": format!("memory search token; topic list; memory forget {id}; memory forget 000000")})),
        also_calls(lines("memory facts | wc -l"), "recall", json!({"query": "nothing of the kind"})),
        says("Found."),
    ]).await;
    pixir.does("/toolset both<Enter>").await;
    pixir.does("do you remember<Enter>").await;
    let log = pixir.log();
    let told: Vec<String> = log
        .iter()
        .filter(|e| e["type"] == "tool_result")
        .map(|e| e["data"]["output"].as_str().expect("text").to_owned())
        .collect();
    assert!(told[0].contains("model: The timeout was the proxy."), "{}", told[0]);
    assert!(told[1].contains(&format!("{id} ")) && told[1].contains("the login needs a token"), "{}", told[1]);
    assert!(
        told[2].contains("memory: the login needs a token") && told[2].contains("why does the login time out"),
        "{}",
        told[2]
    );
    assert!(told[2].contains("there is no note `000000`"), "{}", told[2]);
    assert!(told[3].ends_with("ms]") && told[4].starts_with("[exit:1"), "{told:?}");
}

#[test]
fn what_a_job_prints_in_any_language_is_told_to_its_last_character() {
    let shell = Shell::new(&[]);
    let job = json!({ "calls": [{ "name": "job_output", "args": { "job": 1, "wait": 20 } }] });
    // Each piece ends in the middle of a character; they are looked at more often than there are of them.
    let command =
        r"printf 'x\346\274'; for i in $(seq 30); do sleep 0.02; printf '\242äöü\346\274'; done; printf '\242\nend\n'";
    let mut steps = vec![job; 40];
    steps.insert(0, json!({ "calls": [{ "name": "bash", "args": { "command": command, "background": true } }] }));
    steps.push(json!({ "text": "Done." }));
    let provider = format!("script:{}", shell.aside("s.json", &json!({ "steps": steps }).to_string()).display());
    assert_eq!(shell.run(["--provider", &provider, "--headless", "--json", "--write", "go"]).code, 0);
    let log = entries(&shell.logs()[0]);
    let results = log.iter().filter(|e| e["type"] == "tool_result").skip(1);
    let told: String = results.map(|e| e["data"]["output"].as_str().expect("text").to_owned()).collect();
    assert!(!told.contains("binary") && !told.contains('\u{fffd}'), "{}", &told[..200]);
    assert_eq!(
        (told.matches('漢').count(), told.matches('ü').count()),
        (31, 30 + told.matches("äöü\\").count()),
        "{told}"
    );
}

#[tokio::test]
async fn an_answer_in_own_words_may_begin_with_a_digit_and_stand_beside_marks() {
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
    let told = result["data"]["output"].as_str().expect("text");
    assert!(told.starts_with("Which port?\n→ 1234\nWhich of these?\n→ b, mine\n"), "{told}");
}

#[tokio::test]
async fn a_question_that_comes_up_while_somebody_writes_waits_until_they_turn_to_it() {
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
    assert!(screen.contains("Which of these two should it be"), "a long one is read from its start:\n{screen}");
    let screen = pixir.does("<Down>").await;
    assert!(screen.contains("deletes nothing") && screen.contains("deletes the backups"), "{screen}");
    // Back, and anew; what was typed is cleared before the question is given up.
    pixir.does("<Enter>").await;
    let screen = pixir.does("<Left>").await;
    assert!(screen.contains("Question 1 of 2"), "{screen}");
    pixir.does("<Enter>").await;
    pixir.does("own words<Esc>").await;
    let screen = pixir.does("2<Enter>").await;
    assert!(screen.contains("Good."), "{screen}");
    let log = pixir.log();
    let result = log.iter().find(|e| e["type"] == "tool_result").expect("a result");
    let told = result["data"]["output"].as_str().expect("text");
    assert!(told.contains("deletes nothing\nSure?\n→ no\n"), "{told}");
    assert_eq!(pixir.screen.draft(), "still writing this");
}
