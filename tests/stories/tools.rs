//! What every tool and every command keeps to, walked from the registry; and what the typed tools do with odd files.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use pixir_core::provider::script::Step;
use serde_json::{Value, json};

use crate::driver::{Pixir, also_calls, calls, says};
use crate::server::{Dialect, Server, call, text};
use crate::shell::{Shell, entries, is_running, png, ran};

/// Everything in a folder, by name: kind, mode, content.
fn tree(folder: &Path) -> BTreeMap<String, (u32, Vec<u8>)> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(folder).expect("list").flatten() {
        let name = entry.path().display().to_string();
        let metadata = entry.metadata().expect("metadata");
        if metadata.is_dir() {
            all.extend(tree(&entry.path()));
            all.insert(name, (metadata.mode(), Vec::new()));
        } else {
            all.insert(name, (metadata.mode(), fs::read(entry.path()).unwrap_or_default()));
        }
    }
    all
}

fn tool(shell: &Shell, name: &str, args: &Value, flags: &[&str]) -> crate::shell::Ran {
    let args = args.to_string();
    shell.run(["tools", "run", name, &args, "--json"].iter().chain(flags))
}

/// Arguments with which each tool can run; a tool that is missing here makes the walk fail.
fn example(name: &str) -> Option<Value> {
    Some(match name {
        "ask_user" => json!({"questions": [{"question": "Which?", "options": ["a", "b"]}]}),
        "bash" => json!({"command": "touch made; echo x > a.txt"}),
        "edit" => json!({"path": "a.txt", "old_text": "one", "new_text": "1"}),
        "find" => json!({"pattern": "*.txt"}),
        "grep" => json!({"pattern": "one"}),
        "job_kill" => json!({"job": 1}),
        "job_output" | "ls" | "skills_list" => json!({}),
        "read" => json!({"path": "a.txt"}),
        "recall" => json!({"query": "login"}),
        "run" => json!({"command": "edit a.txt one 1 && write b/c.txt x; touch made"}),
        "skill_view" => json!({"name": "review"}),
        "update_plan" => json!({"items": [{"step": "look", "status": "pending"}]}),
        "write" => json!({"path": "new/a.txt", "content": "x"}),
        _ => return None,
    })
}

/// What only a Session with a person has.
const NEEDS_A_SESSION: [&str; 3] = ["ask_user", "job_kill", "job_output"];

fn files() -> Shell {
    Shell::new(&[
        ("a.txt", "one\ntwo\n"),
        ("b.txt", "one\nthree\n"),
        (".pixir/skills/review/SKILL.md", "---\nname: review\ndescription: How to review\n---\nLook twice.\n"),
    ])
}

#[test]
fn every_tool_keeps_the_contract() {
    let shell = files();
    let schema = shell.run(["schema"]).document();
    let tools = schema["tools"].as_array().expect("tools");
    assert_eq!(tools.len(), 15);
    for it in tools {
        let name = it["name"].as_str().expect("a name");
        let args = example(name).unwrap_or_else(|| panic!("{name} has no example"));
        // It says what it is for, to a reader who has never seen it.
        let help = shell.run(["tools", "show", name]);
        assert_eq!(help.code, 0, "{name}");
        for part in ["Streams: ", "Arguments:", "Example:", it["description"].as_str().expect("a description")] {
            assert!(help.stdout.contains(part), "{name}: {}", help.stdout);
        }
        for (key, property) in it["parameters"]["properties"].as_object().expect("properties") {
            assert!(property["type"].is_string(), "{name}.{key}");
            assert!(help.stdout.contains(key), "{name}: --help names {key}");
        }
        assert_eq!(it["parameters"]["additionalProperties"], false, "{name}");
        // Bad arguments are named, whatever the tool is.
        for (bad, said) in [(json!({"nonsense": 1}), "`nonsense` is unknown"), (json!([1]), "must be an object")] {
            let refused = tool(&shell, name, &bad, &[]);
            let error = refused.error();
            assert_eq!((refused.code, error["error"]["kind"].as_str()), (2, Some("invalid_args")), "{name}");
            assert!(error["error"]["message"].as_str().expect("a message").contains(said), "{name}: {error}");
            assert!(error["remediation"].as_str().is_some_and(|fix| fix.starts_with(name)), "{name}: {error}");
        }
        if NEEDS_A_SESSION.contains(&name) {
            let error = tool(&shell, name, &args, &["--write"]).error();
            assert!(!error["remediation"].as_str().expect("a fix").is_empty(), "{name}");
            continue;
        }
        // A dry run succeeds, says what it would do, and leaves every byte as it was.
        let before = tree(&shell.workspace());
        let planned = tool(&shell, name, &args, &["--dry-run"]);
        assert_eq!(planned.code, 0, "{name}: {}", planned.stderr);
        let result = &planned.document()["result"];
        assert_eq!((&result["ok"], result["plan"]["would"].is_string()), (&json!(true), true), "{name}");
        assert_eq!(tree(&shell.workspace()), before, "{name} changed something in a dry run");
        // What changes things does so only with leave.
        let touches = it["access"] == "changes";
        let unasked = tool(&shell, name, &args, &[]);
        assert_eq!(unasked.code == 12, touches, "{name}: {}", unasked.stderr);
        assert_eq!(tree(&shell.workspace()), before, "{name} changed something without leave");
        // The result ends with its footer, and holds the fields of the contract.
        let done = tool(&shell, name, &args, &["--write"]);
        let result = done.document()["result"].clone();
        let output = result["output"].as_str().expect("text");
        let footer = output.lines().last().expect("a footer");
        assert!(footer.starts_with("[exit:") && footer.ends_with(']'), "{name}: {output}");
        assert!(result["call_id"].is_string() && result["duration_ms"].is_u64(), "{name}");
        assert!(!output.contains('\u{1b}'), "{name}");
        fs::remove_dir_all(shell.workspace()).expect("clean");
        for (path, (_, bytes)) in before.iter().filter(|(_, (mode, _))| mode & 0o170_000 == 0o100_000) {
            fs::create_dir_all(Path::new(path).parent().expect("a parent")).expect("mkdir");
            fs::write(path, bytes).expect("write");
        }
    }
}

#[test]
fn every_command_of_a_line_keeps_the_contract() {
    let shell = files();
    let schema = shell.run(["schema"]).document();
    let commands = schema["run_commands"].as_array().expect("commands");
    assert!(commands.len() >= 20);
    for it in commands {
        let name = it["name"].as_str().expect("a name");
        // Level 1: without what it needs, a command says how it is called; and in full when it is asked.
        let bare = shell.run(["run", name, "--json"]);
        let help = shell.run(["run", &format!("{name} --help"), "--raw"]);
        assert_eq!((help.code, help.stdout.as_str()), (0, it["help"].as_str().expect("help")), "{name}");
        assert_eq!(shell.run(["run", &format!("help {name}"), "--raw"]).stdout, help.stdout, "{name}");
        if bare.code == 0 {
            let result = &bare.document()["result"];
            let output = result["output"].as_str().expect("text");
            if result["exit_code"] == 2 {
                assert!(output.starts_with(&format!("[error] {name}: usage: {name} ")), "{output}");
                assert_eq!(result["error"]["kind"], "invalid_args", "{name}");
            }
            assert!(output.lines().last().is_some_and(|line| line.starts_with("[exit:")), "{name}: {output}");
        } else {
            assert_eq!(bare.error()["code"], "USAGE", "{name}: {}", bare.stderr);
        }
        // Level 2: each subcommand that needs something says what.
        for sub in it["subcommands"].as_array().expect("a list").iter().filter_map(Value::as_str) {
            if !help.stdout.contains(&format!("  {name} {sub} <")) {
                continue;
            }
            let ran = shell.run(["run", &format!("{name} {sub}"), "--json", "--write"]);
            let told = if ran.code == 0 { ran.stdout } else { ran.stderr };
            let is_told =
                told.contains(&format!("usage: {name} {sub} ")) || told.contains("there is no background here");
            assert!(is_told, "{name} {sub}: {told}");
        }
        // A flag that it does not know is an error, not a guess.
        if !["echo", "test", "true", "false", "plan", "ask", "help", "skill", "memory", "topic", "job"].contains(&name)
        {
            let ran = shell.run(["run", &format!("{name} --nonsense a.txt"), "--json", "--write"]);
            let error = if ran.code == 0 { ran.document()["result"]["error"].clone() } else { ran.error() };
            assert_eq!(error["code"], "UNKNOWN_FLAG", "{name}: {error}");
        }
        // What reads no stdin says so.
        if it["stdin"] == "none" {
            let ran = shell.run(["run", &format!("cat a.txt | {name} x"), "--json", "--write"]);
            let told = if ran.code == 0 { ran.stdout } else { ran.stderr };
            assert!(told.contains("it does not read stdin") || told.contains("nobody can be asked"), "{name}: {told}");
        }
        // A dry run of it changes nothing.
        let before = tree(&shell.workspace());
        shell.run(["run", it["example"].as_str().expect("an example"), "--dry-run"]);
        shell.run(["run", &format!("{name} a.txt one 1"), "--dry-run"]);
        assert_eq!(tree(&shell.workspace()), before, "{name}");
    }
}

#[test]
fn what_is_advertised_to_models_is_small_sorted_and_the_same_every_time() {
    let shell = Shell::new(&[]);
    for (toolset, most) in [("typed", 6_144), ("run", 2_048)] {
        let list = || shell.run(["tools", "list", "--json", "--toolset", toolset]);
        let first = list();
        assert_eq!(first.stdout, list().stdout);
        let tools = first.document()["tools"].as_array().expect("tools").clone();
        let names: Vec<&str> = tools.iter().filter_map(|t| t["name"].as_str()).collect();
        assert!(names.is_sorted(), "{names:?}");
        assert_eq!(names.contains(&"run"), toolset == "run");
        // As a Provider gets it, without what the dialect puts around it.
        let block = tools
            .iter()
            .map(|t| json!({ "name": t["name"], "description": t["description"], "parameters": t["parameters"] }));
        let bytes: usize = block.map(|it| it.to_string().len()).sum();
        assert!(bytes <= most, "{toolset}: {bytes} bytes");
    }
    let run = shell.run(["tools", "show", "run", "--json"]).document();
    let description = run["description"].as_str().expect("a description");
    for it in shell.run(["schema"]).document()["run_commands"].as_array().expect("commands") {
        let line = format!("\n{} — {}\n", it["name"].as_str().expect("a name"), it["about"].as_str().expect("words"));
        assert!(description.contains(&line), "{line}");
    }
}

#[test]
fn several_edits_of_one_call_are_all_made_or_none() {
    let shell = Shell::new(&[("a.txt", "one\r\ntwo\r\nthree\r\n")]);
    fs::set_permissions(shell.workspace().join("a.txt"), fs::Permissions::from_mode(0o751)).expect("chmod");
    let edits = |last: &str| json!({"path": "a.txt", "edits": [{"old_text": "one", "new_text": "1"}, {"old_text": "1\ntwo", "new_text": "1\n2"}, {"old_text": last, "new_text": "3"}]});
    let refused = tool(&shell, "edit", &edits("thre e"), &["--write"]).error();
    let message = refused["error"]["message"].as_str().expect("a message");
    assert!(message.starts_with("edit 3 of 3: ") && message.ends_with("nothing was changed"), "{message}");
    assert_eq!(shell.read("a.txt"), "one\r\ntwo\r\nthree\r\n");
    assert_eq!(tool(&shell, "edit", &edits("three"), &["--write"]).code, 0);
    assert_eq!(shell.read("a.txt"), "1\r\n2\r\n3\r\n");
    assert_eq!(fs::metadata(shell.workspace().join("a.txt")).expect("there").mode() & 0o777, 0o751);
    for args in [
        json!({"path": "a.txt"}),
        json!({"path": "a.txt", "old_text": "1"}),
        json!({"path": "a.txt", "old_text": "1", "new_text": "2", "edits": [{"old_text": "1", "new_text": "2"}]}),
    ] {
        let error = tool(&shell, "edit", &args, &["--write"]).error();
        assert!(error["remediation"].as_str().expect("a fix").contains("edits=["), "{error}");
    }
}

#[tokio::test]
async fn what_a_person_changed_since_it_was_read_is_not_edited_unread() {
    let edit = calls("edit", json!({"path": "a.txt", "old_text": "two", "new_text": "2"}));
    let read = || calls("read", json!({"path": "a.txt"}));
    let steps = vec![read(), says("I see."), edit.clone(), read(), edit, says("Done.")];
    let mut pixir = Pixir::new(steps, &[("a.txt", "one\ntwo\n")]);
    pixir.does("look<Enter>").await;
    fs::write(pixir.path("a.txt"), "ONE\ntwo\n").expect("write");
    pixir.does("change it<Enter>").await;
    let log = pixir.log();
    let results: Vec<&Value> = log.iter().filter(|e| e["type"] == "tool_result").map(|e| &e["data"]).collect();
    assert_eq!(results[1]["error"]["code"], "FILE_CHANGED");
    assert!(results[1]["output"].as_str().expect("text").contains("changed since you read it"));
    pixir.does("<A-y>").await;
    assert_eq!(pixir.file("a.txt"), "ONE\n2\n", "read again, it can be edited");
}

#[test]
fn an_image_is_looked_at_kept_and_sent_again_with_its_result() {
    let png = png(508);
    for dialect in [Dialect::Responses, Dialect::Chat] {
        let shell = Shell::new(&[("note.md", "see ![x](photo.png) and data:image/png;base64,AAAA\n")]);
        fs::write(shell.workspace().join("photo.png"), &png).expect("write");
        let server = Server::start(vec![
            call("c1", "read", json!({"path": "photo.png"})),
            call("c2", "read", json!({"path": "note.md"})),
            text("A cat."),
        ]);
        let mut args = server.flags(dialect);
        args.extend(["--headless", "--json", "look"].map(str::to_owned));
        assert_eq!(shell.run(args).code, 0);
        let log = entries(&shell.logs()[0]);
        let results: Vec<&Value> = log.iter().filter(|e| e["type"] == "tool_result").map(|e| &e["data"]).collect();
        let image = &results[0]["attachments"][0];
        assert_eq!(
            (&image["path"], &image["media_type"], &image["bytes"]),
            (&json!("photo.png"), &json!("image/png"), &json!(508))
        );
        assert!(results[1]["attachments"].is_null(), "text that names an image attaches nothing");
        // Both later requests carry it, the same each time.
        let bodies = server.bodies();
        let url = format!("data:image/png;base64,{}", base64(&png));
        for body in &bodies[1..] {
            assert_eq!(body.to_string().matches(&url).count(), 1, "{body}");
        }
        let place = match dialect {
            Dialect::Responses => bodies[2]["input"]
                .as_array()
                .expect("input")
                .iter()
                .find(|it| it["type"] == "function_call_output")
                .map(|it| it["output"][1]["image_url"].clone()),
            Dialect::Chat => bodies[2]["messages"]
                .as_array()
                .expect("messages")
                .iter()
                .find(|it| it["role"] == "user" && it["content"].is_array())
                .map(|it| it["content"][1]["image_url"]["url"].clone()),
        };
        assert_eq!(place, Some(json!(url)));
        // It goes with the session: an export has it, and cleaning up leaves it.
        shell.run(["gc", "--yes"]);
        let export = shell.run(["sessions", "export", "last", "--json"]).document();
        assert!(export["blobs"][image["blob"].as_str().expect("a blob")].is_string());
        // The next turn of the same session finds it again.
        let again = shell.run(["inspect", "last", "--json"]).document();
        assert!(again["request"].to_string().contains(&url));
    }
}

fn base64(bytes: &[u8]) -> String {
    let encoded = Command::new("base64").arg("-w0").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut child = encoded.expect("base64 runs");
    std::io::Write::write_all(child.stdin.as_mut().expect("stdin"), bytes).expect("write");
    drop(child.stdin.take());
    String::from_utf8(child.wait_with_output().expect("it ends").stdout).expect("text")
}

#[test]
fn a_model_that_cannot_see_is_told_so() {
    let shell = Shell::new(&[]);
    fs::write(shell.workspace().join("photo.png"), png(100)).expect("write");
    let server = Server::start(vec![call("c1", "read", json!({"path": "photo.png"})), text("I cannot.")]);
    let mut args = server.flags(Dialect::Chat);
    let at = args.iter().position(|arg| arg == "--model").expect("a model");
    args[at + 1] = "deepseek-chat".into();
    args.extend(["--headless", "--json", "look"].map(str::to_owned));
    assert_eq!(shell.run(args).code, 0);
    let log = entries(&shell.logs()[0]);
    let result = log.iter().find(|e| e["type"] == "tool_result").expect("a result");
    assert_eq!(
        (&result["data"]["error"]["kind"], &result["data"]["error"]["code"]),
        (&json!("model_not_supported"), &json!("VISION_UNSUPPORTED"))
    );
}

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
    // What a call took is another number each time.
    let untimed = |line: &str| {
        let bare = line.rsplit_once("  ").filter(|(_, took)| took.ends_with("ms")).map_or(line, |(bare, _)| bare);
        bare.replace(&marker, "76543.0000000")
    };
    insta::assert_snapshot!("background_jobs", screen.lines().map(untimed).collect::<Vec<_>>().join("\n"));
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
    assert!(last["data"]["output"].as_str().expect("text").starts_with("the person did not answer"));
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
    assert!(told[2].contains("nothing is remembered as `000000`"), "{}", told[2]);
    assert!(told[3].ends_with("ms]") && told[4].starts_with("[exit:1"), "{told:?}");
}

/// The output of a tool that runs alone.
fn output(shell: &Shell, name: &str, args: Value) -> String {
    let document = tool(shell, name, &args, &["--write"]).document();
    document["result"]["output"].as_str().expect("text").to_owned()
}

#[test]
fn no_text_is_passed_over_in_silence() {
    let shell = Shell::new(&[
        ("a.log", "ok 1\n\u{9d} bad\nFAILED test_x\n"),
        ("osc.log", "a\n\u{1b}]0;title without end\nERROR: important\n"),
        ("mac.txt", "one\rtwo\rthree"),
        ("notes.txt", "GIF87a and GIF89a: notes on the format\n"),
        ("esc.txt", "\u{1b}[31mred\u{1b}[0m\n"),
    ]);
    assert!(output(&shell, "grep", json!({"pattern": "FAILED|bad|ok"})).contains("a.log:3:FAILED test_x"));
    assert!(output(&shell, "read", json!({"path": "osc.log"})).contains("ERROR: important"));
    assert!(output(&shell, "read", json!({"path": "mac.txt"})).starts_with("one\rtwo\rthree"));
    assert!(output(&shell, "run", json!({"command": "cat mac.txt"})).starts_with("one\rtwo\rthree"));
    assert!(output(&shell, "read", json!({"path": "notes.txt"})).starts_with("GIF87a and"));
    let told = output(&shell, "read", json!({"path": "esc.txt"}));
    assert!(told.starts_with("red\n…[9 bytes of terminal control are not shown]\n"), "{told}");
    // A program's progress is shown as a person would have seen it.
    assert!(output(&shell, "bash", json!({"command": "printf '10%%\\r100%%\\n'"})).starts_with("100%\n"));
    fs::write(shell.workspace().join("torn.png"), b"\x89PNG\r\n\x1a\n\0\0").expect("write");
    assert_eq!(tool(&shell, "read", &json!({"path": "torn.png"}), &[]).error()["code"], "INVALID_ARGS");
}

#[test]
fn what_is_ignored_outside_of_a_repository_is_not_ignored_in_it() {
    let shell = Shell::new(&[
        ("p/.gitignore", "*\n"),
        ("p/w/a.txt", "needle\n"),
        ("p/w/.gitignore", "*.log\n"),
        ("p/w/b.log", "needle\n"),
    ]);
    let inner = shell.workspace().join("p/w");
    assert!(Command::new("git").args(["init", "-q"]).current_dir(&inner).status().expect("git").success());
    let args = json!({"pattern": "needle"}).to_string();
    let ran = shell.run(["tools", "run", "grep", &args, "--workspace", inner.to_str().expect("text")]);
    assert!(ran.stdout.starts_with("a.txt:1:needle\n["), "{}", ran.stdout);
}

#[test]
fn a_replaced_file_keeps_its_special_bits_and_links_that_end_inside_are_followed() {
    let shell = Shell::new(&[("run.sh", "old\n"), ("s/a.txt", "a\n")]);
    let at = shell.workspace().join("run.sh");
    fs::set_permissions(&at, fs::Permissions::from_mode(0o2755)).expect("chmod");
    output(&shell, "edit", json!({"path": "run.sh", "old_text": "old", "new_text": "new"}));
    assert_eq!(fs::metadata(&at).expect("there").mode() & 0o7777, 0o2755);
    let target = shell.workspace().canonicalize().expect("there").join("s/a.txt");
    symlink(target, shell.workspace().join("abs")).expect("symlink");
    assert!(output(&shell, "read", json!({"path": "abs"})).starts_with("a\n"));
}

#[test]
fn saved_outputs_are_found_kept_and_shared_by_whatever_names_them() {
    let shell = Shell::new(&[]);
    let steps = json!([
        { "calls": [{ "name": "read", "args": { "path": ".pixir/out/cmd-1.txt" } }, { "name": "ls", "args": { "path": ".pixir/out" } }] },
        { "calls": [{ "name": "bash", "args": { "command": "seq 1 20000 >&2; seq 1 9999; exit 3" } }] },
        { "calls": [{ "name": "bash", "args": { "command": "echo from the job", "background": true } }] },
        { "calls": [{ "name": "job_output", "args": { "job": 1, "wait": 20 } }] },
        { "calls": [{ "name": "grep", "args": { "pattern": "^1999$", "path": ".pixir/out" } }, { "name": "find", "args": { "pattern": "*.txt", "path": ".pixir/out" } }] },
        { "text": "Done." },
    ]);
    let provider = format!("script:{}", shell.aside("s.json", &json!({ "steps": steps }).to_string()).display());
    let ran = shell.run(["--provider", &provider, "--headless", "--json", "--write", "go"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let log = entries(&shell.logs()[0]);
    let told: Vec<&str> = log
        .iter()
        .filter(|e| e["type"] == "tool_result")
        .map(|e| e["data"]["output"].as_str().expect("text"))
        .collect();
    assert!(told[0].contains("there is no `.pixir/out/cmd-1.txt`"), "{}", told[0]);
    let stderr = told[2].lines().find_map(|line| line.strip_prefix("Full output: ").filter(|it| it.contains("stderr")));
    let stderr = stderr.unwrap_or_else(|| panic!("{}", told[2]));
    assert!(told[4].starts_with("from the job\njob 1 ("), "{}", told[4]);
    assert!(told[5].contains(&format!("{stderr}:1999:1999\n")), "{}", told[5]);
    assert!(told[6].contains(".pixir/out/job-1.txt\n") && !told[6].contains("sessions/"), "{}", told[6]);
    // Older than what is spared for its youth, and still named.
    let out = shell.logs()[0].with_extension("").join("out");
    for file in fs::read_dir(&out).expect("there are outputs").flatten() {
        assert!(Command::new("touch").args(["-d", "3 hours ago"]).arg(file.path()).status().expect("touch").success());
    }
    assert!(shell.run(["gc", "--yes"]).code == 0 && out.join("job-1.txt").exists(), "gc leaves what a log names");
    let names = |folder: &Path| {
        let mut all: Vec<_> = fs::read_dir(folder).expect("list").flatten().map(|file| file.file_name()).collect();
        all.sort();
        all
    };
    let before = names(&out);
    let forked = shell.run(["fork", "last", "--json"]).document();
    let fork = forked["session_id"].as_str().or(forked["id"].as_str()).expect("an id");
    assert_eq!(names(&out.parent().and_then(Path::parent).expect("a folder").join(fork).join("out")), before);
}

#[test]
fn what_a_job_prints_in_any_language_is_told_to_its_last_character() {
    let shell = Shell::new(&[]);
    let job = json!({ "calls": [{ "name": "job_output", "args": { "job": 1, "wait": 20 } }] });
    // It may come in many pieces.
    let mut steps = vec![job; 40];
    steps.insert(0, json!({ "calls": [{ "name": "bash", "args": { "command": "printf x; for i in $(seq 2000); do printf 'äöü漢'; done; echo; echo end", "background": true } }] }));
    steps.push(json!({ "text": "Done." }));
    let provider = format!("script:{}", shell.aside("s.json", &json!({ "steps": steps }).to_string()).display());
    assert_eq!(shell.run(["--provider", &provider, "--headless", "--json", "--write", "go"]).code, 0);
    let log = entries(&shell.logs()[0]);
    let results = log.iter().filter(|e| e["type"] == "tool_result").skip(1);
    let told: String = results.map(|e| e["data"]["output"].as_str().expect("text").to_owned()).collect();
    assert!(!told.contains("binary") && !told.contains('\u{fffd}'), "{}", &told[..200]);
    assert_eq!(told.matches('漢').count(), 2_000 + told.matches("'äöü漢'").count());
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

/// The most memory that a run took, KB, and what it printed.
fn peak(shell: &Shell, args: &[&str]) -> (u64, crate::shell::Ran) {
    let mut child = shell.command(args).spawn().expect("it starts");
    let (mut out, mut err) = (child.stdout.take().expect("stdout"), child.stderr.take().expect("stderr"));
    let readers = [
        std::thread::spawn(move || std::io::read_to_string(&mut out).expect("text")),
        std::thread::spawn(move || std::io::read_to_string(&mut err).expect("text")),
    ];
    let mut most = 0;
    let status = loop {
        let text = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        most = most.max(line.and_then(|it| it.split_whitespace().next()?.parse().ok()).unwrap_or(0));
        if let Some(status) = child.try_wait().expect("it runs") {
            break status;
        }
        std::thread::park_timeout(Duration::from_millis(2));
    };
    let [stdout, stderr] = readers.map(|reader| reader.join().expect("it was read"));
    (most, crate::shell::Ran { code: status.code().unwrap_or(-1), stdout, stderr })
}

/// A gigabyte; the long tier is `PIXIR_FLOOD=10 cargo test --test pixir -- a_flood`.
fn flood() -> u64 {
    std::env::var("PIXIR_FLOOD").ok().and_then(|n| n.parse().ok()).unwrap_or(1)
}

#[test]
fn a_flood_of_output_takes_no_memory_and_is_told_in_a_page() {
    let shell = Shell::new(&[]);
    let gigabytes = flood();
    let run = |command: String| {
        let steps = json!([{ "calls": [{ "name": "bash", "args": { "command": command, "timeout": 600 } }] }, { "text": "Done." }]);
        let provider = format!("script:{}", shell.aside("s.json", &json!({ "steps": steps }).to_string()).display());
        peak(&shell, &["--provider", &provider, "--headless", "--json", "--write", "go"])
    };
    let (base, _) = run("echo little".into());
    let mut figures = vec![format!("nothing {base} KB")];
    let mut bounded = |what: &str, most: u64| {
        figures.push(format!("{what} {most} KB"));
        assert!(most.saturating_sub(base) < 32 << 10, "{figures:?}");
    };
    let (most, ran) = run(format!("yes 'a line of forty-two bytes, over and over' | head -c {gigabytes}G"));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    bounded("lines", most);
    let newest = shell.logs().into_iter().max_by_key(|log| fs::metadata(log).expect("there").len()).expect("a log");
    let log = entries(&newest);
    let result = log.iter().find(|e| e["type"] == "tool_result").expect("a result");
    assert_eq!(result["data"]["truncated"]["bytes_total"], gigabytes << 30);
    assert!(result["data"]["output"].as_str().expect("text").len() < 17_000);
    // One line without an end, and a line of commands that it runs through, are no different.
    let (most, _) = run(format!("head -c {gigabytes}G /dev/zero | tr '\\0' x"));
    bounded("one line", most);
    let chain =
        format!("yes abcdefghijklmnopqrstuvwxyz | head -c {}M | grep -v nothing | tail -n 2 | wc -c", gigabytes * 256);
    let (most, ran) = peak(&shell, &["run", &chain, "--write", "--raw", "--timeout", "600"]);
    let last_two: u64 = ran.stdout.trim().parse().expect("a number");
    assert!((28..=54).contains(&last_two), "{last_two} bytes");
    bounded("five commands, a quarter of it", most);
    told(&format!("QT1, peak memory at {gigabytes} GiB: {}", figures.join(", ")));
}

#[test]
fn odd_files_are_each_a_clear_error_or_a_page_and_never_a_wait() {
    let shell = Shell::new(&[("a.txt", "a\n"), ("empty.txt", ""), ("endless.txt", "x")]);
    let at = |name: &str| shell.workspace().join(name);
    assert!(Command::new("mkfifo").arg(at("fifo")).status().expect("mkfifo").success());
    let _socket = std::os::unix::net::UnixListener::bind(at("socket")).expect("bind");
    symlink("loop", at("loop")).expect("symlink");
    symlink("/dev/zero", at("zero")).expect("symlink");
    symlink("/etc/passwd", at("passwd")).expect("symlink");
    symlink("nowhere", at("dangling")).expect("symlink");
    fs::create_dir(at("folder")).expect("mkdir");
    fs::write(at("latin1.txt"), b"caf\xe9\n").expect("write");
    fs::File::create(at("sparse")).and_then(|f| f.set_len(1 << 40)).expect("a terabyte of nothing");
    let lines = fs::File::create(at("huge.txt")).expect("create");
    std::io::Write::write_all(&mut &lines, "a line\n".repeat(20_000).as_bytes()).expect("write");
    // Text at its start, ten gigabytes in all.
    lines.set_len(10 << 30).expect("a long file");
    let one = fs::File::create(at("one-line.txt")).expect("create");
    std::io::Write::write_all(&mut &one, "x".repeat(80 << 20).as_bytes()).expect("write");
    let (base, _) = peak(&shell, &["tools", "run", "read", r#"{"path": "a.txt"}"#, "--json"]);
    for (path, code) in [
        ("fifo", "NOT_REGULAR_FILE"),
        ("socket", "NOT_REGULAR_FILE"),
        ("folder", "NOT_REGULAR_FILE"),
        ("loop", "READ_FAILED"),
        ("zero", "OUTSIDE_WORKSPACE"),
        ("passwd", "OUTSIDE_WORKSPACE"),
        ("dangling", "NOT_FOUND"),
        ("/dev/zero", "OUTSIDE_WORKSPACE"),
        ("/proc/self/mem", "OUTSIDE_WORKSPACE"),
        ("/proc/kmsg", "OUTSIDE_WORKSPACE"),
        ("sparse", "BINARY_FILE"),
        ("latin1.txt", "BINARY_FILE"),
        ("empty.txt", ""),
        ("huge.txt", ""),
        ("one-line.txt", ""),
    ] {
        let began = Instant::now();
        let args = json!({ "path": path }).to_string();
        let (most, ran) = peak(&shell, &["tools", "run", "read", &args, "--json"]);
        // Ten times what it may take: the machine may be busy.
        assert!(began.elapsed() < Duration::from_secs(10), "{path} took {:?}", began.elapsed());
        assert!(most.saturating_sub(base) < 16 << 10, "{path}: {base} KB and {most} KB");
        if code.is_empty() {
            assert_eq!(ran.code, 0, "{path}: {}", ran.stderr);
            continue;
        }
        let error = ran.error();
        assert_eq!(error["code"], code, "{path}: {error}");
        assert!(!error["remediation"].as_str().expect("a fix").is_empty(), "{path}");
        // Nor can it be written over, where it is no file of ours.
        if ["fifo", "socket", "folder", "loop", "zero", "passwd", "dangling"].contains(&path) {
            let args = json!({ "path": path, "content": "x" });
            let error = tool(&shell, "write", &args, &["--write"]).error();
            assert!(
                ["write_failed", "outside_workspace"].contains(&error["error"]["kind"].as_str().expect("a kind")),
                "{path}: {error}"
            );
        }
    }
    let beyond = tool(&shell, "read", &json!({"path": "huge.txt", "offset": 900_000_000}), &[]).error();
    assert_eq!(beyond["code"], "BINARY_FILE", "{beyond}");
    let page = tool(&shell, "read", &json!({"path": "huge.txt", "offset": 10, "limit": 2}), &[]).document();
    assert!(
        page["result"]["output"]
            .as_str()
            .expect("text")
            .starts_with("a line\na line\n…[lines 10-11; the file is 10GB; next_offset=12]"),
        "{page}"
    );
    // Looking through a folder with all of them waits for none either.
    let began = Instant::now();
    for args in [json!({"pattern": "^a$"}), json!({"pattern": "a", "path": "folder"})] {
        tool(&shell, "grep", &args, &[]);
    }
    let found = tool(&shell, "find", &json!({"pattern": "*"}), &[]).document();
    assert!(found["result"]["output"].as_str().expect("text").contains("fifo\n"));
    assert!(began.elapsed() < Duration::from_secs(30));
}

fn skipped(why: &str) {
    told(&format!("SKIPPED: {why}"));
}

/// Figures, and what could not be tried, for whoever runs it.
fn told(text: &str) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr(), "{text}");
}

#[test]
fn searching_this_project_finds_what_ripgrep_and_fd_find() {
    let root = env!("CARGO_MANIFEST_DIR");
    let has = |name: &str| Command::new(name).arg("--version").output().is_ok();
    let fd = ["fdfind", "fd"].into_iter().find(|name| has(name));
    let (true, Some(fd)) = (has("rg"), fd) else { return skipped("ripgrep and fd are not here") };
    let shell = Shell::new(&[]);
    let ours = |name: &str, args: Value| -> Vec<String> {
        let args = args.to_string();
        let ran = shell.run(["tools", "run", name, &args, "--workspace", root, "--json"]);
        // A long answer is cut for a model; outside of a session nothing is saved, so it is asked for in parts.
        let result = ran.document()["result"].clone();
        assert!(result["truncated"].is_null(), "{name} {args}");
        let text = result["output"].as_str().expect("text").to_owned();
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.pop();
        lines
    };
    let theirs = |program: &str, args: &[&str]| -> Vec<String> {
        let out = Command::new(program).args(args).current_dir(root).output().expect("it runs");
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        let mut lines: Vec<String> = text.lines().map(|line| line.trim_start_matches("./").to_owned()).collect();
        lines.sort();
        lines
    };
    let sorted = |mut lines: Vec<String>| {
        lines.sort();
        lines
    };
    for (pattern, glob, fold) in [
        ("fn main", "*.rs", false),
        ("overlay::", "*.rs", false),
        (r"^\s*pub fn \w+\(self", "*.rs", false),
        ("subreaper", "*", true),
        ("PIXIR_[A-Z]+", "*.rs", false),
        ("— ", "*.toml", false),
        ("zzz{9}", "*.snap", false),
    ] {
        let mut args = vec!["-n", "--no-heading", "--hidden", "--no-require-git", "--color=never", "-g", "!.git"];
        // With a glob of its own, ripgrep also looks at what is ignored.
        args.extend(["-g", glob].iter().filter(|_| glob != "*"));
        args.extend(["-i"].iter().filter(|_| fold));
        args.extend(["-e", pattern, "."]);
        let wanted: Vec<String> = theirs("rg", &args);
        let found = ours("grep", json!({"pattern": pattern, "glob": glob, "ignore_case": fold, "limit": 100_000}));
        // A long line is shown in part.
        let shortened = wanted.iter().map(|line| {
            let mut parts = line.splitn(3, ':');
            let (path, number, text) = (parts.next(), parts.next(), parts.next().unwrap_or_default());
            let shown: String = text.chars().take(400).collect();
            let mark = if shown.len() < text.len() { "…" } else { "" };
            format!("{}:{}:{shown}{mark}", path.unwrap_or_default(), number.unwrap_or_default())
        });
        assert_eq!(sorted(found), sorted(shortened.collect()), "{pattern}");
    }
    for pattern in ["*.rs", "*.snap", "Cargo.*", "*"] {
        let wanted = theirs(
            fd,
            &["--hidden", "--type", "f", "--type", "l", "--exclude", ".git", "--color=never", "--glob", pattern],
        );
        let found = ours("find", json!({"pattern": pattern, "limit": 100_000}));
        assert_eq!(sorted(found), wanted, "{pattern}");
    }
}

#[test]
fn whatever_kills_a_write_leaves_the_old_file_or_the_new_one() {
    let can =
        Command::new("strace").args(["-f", "-o", "/dev/null", "-e", "inject=getpid:error=EIO", "/bin/true"]).output();
    if !can.is_ok_and(|it| it.status.success()) {
        return skipped("strace cannot inject faults here (QT3, a write that is killed)");
    }
    let (old, new) = ("old line\n".repeat(3_000), "new line\n".repeat(5_000));
    let mut outcomes = BTreeMap::new();
    for call in ["openat", "write", "fchmod", "fsync", "rename,renameat,renameat2"] {
        for (effect, tag) in [("signal=KILL", "killed"), ("error=ENOSPC", "failed")] {
            for when in 1..=3 {
                let shell = Shell::new(&[("a.txt", &old)]);
                let at = shell.workspace().join("a.txt");
                fs::set_permissions(&at, fs::Permissions::from_mode(0o640)).expect("chmod");
                let args = json!({"path": "a.txt", "content": new}).to_string();
                let pixir = shell.command(["tools", "run", "write", &args, "--json", "--write"]);
                let mut command = Command::new("strace");
                let filter = format!("inject={call}:{effect}:when={when}");
                // Only what happens in the workspace's own folder.
                command.args(["-f", "-qq", "-o", "/dev/null", "-P"]).arg(shell.workspace()).args(["-e", &filter, "--"]);
                command.arg(pixir.get_program()).args(pixir.get_args()).current_dir(shell.workspace());
                command.env("PIXIR_HOME", shell.home()).stdin(Stdio::null());
                let it = ran(command.output().expect("strace runs"));
                let now = shell.read("a.txt");
                assert!(now == old || now == new, "{call} {effect} {when}: {} bytes", now.len());
                assert_eq!(fs::metadata(&at).expect("there").mode() & 0o777, 0o640, "{call} {effect} {when}");
                if it.code == 0 {
                    assert_eq!(now, new, "{call} {effect} {when}: it said that it was done");
                }
                *outcomes.entry((tag, now == new)).or_insert(0) += 1;
            }
        }
    }
    assert!(outcomes.keys().any(|(_, is_new)| !is_new), "nothing was hit: {outcomes:?}");
}
