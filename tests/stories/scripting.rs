//! pixir in scripts: documents from stdin, answers in a form and in a file, runs that leave nothing, flags of other programs.

use std::fs;
use std::io::Write as _;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::server::{Dialect, Server, text};
use crate::shell::{Ran, Shell, entries, figures, ran};
use crate::tier;

/// A run of the server's model with this text on stdin.
fn piped(shell: &Shell, server: &Server, args: &[&str], stdin: &str) -> Ran {
    let all = server.flags(Dialect::Chat).into_iter().chain(args.iter().map(|it| (*it).to_owned()));
    let mut child = shell.command(all).stdin(Stdio::piped()).spawn().expect("it starts");
    child.stdin.take().expect("stdin").write_all(stdin.as_bytes()).expect("write");
    ran(child.wait_with_output().expect("it ends"))
}

/// The last message of the user in a request.
fn asked(body: &Value) -> String {
    let messages = body["messages"].as_array().expect("messages");
    let last = messages.iter().rev().find(|it| it["role"] == "user").expect("a message");
    match &last["content"] {
        Value::String(text) => text.clone(),
        parts => parts.as_array().into_iter().flatten().filter_map(|it| it["text"].as_str()).collect(),
    }
}

/// Broken builds: stdin is dropped beside a prompt; `-` is a prompt; an empty pipe makes an empty document; the notes on stderr
/// repeat the document; the title of the session goes on with it.
#[test]
fn a_document_on_stdin_joins_the_prompt() {
    let shell = Shell::new(&[]);
    let server = Server::start((0..3).map(|_| text("Seen.")).collect());
    let reviewed = piped(&shell, &server, &["-p", "review this"], "+ added\n");
    assert_eq!(reviewed.code, 0);
    let notes = reviewed.stderr.as_str();
    assert!(notes.starts_with("> review this\n  … and 4 more lines\n") && !notes.contains("+ added"), "{notes}");
    let listed = shell.run(["sessions", "list", "--json"]).document();
    assert_eq!(listed["sessions"][0]["title"], "review this", "{listed}");
    assert_eq!(piped(&shell, &server, &["-p", "-"], "all of it\n").code, 0);
    assert_eq!(piped(&shell, &server, &["-p", "nothing beside"], "").code, 0);
    let bodies = server.bodies();
    let prompts: Vec<String> = bodies.iter().map(asked).collect();
    assert!(
        prompts[0].starts_with("review this\n\n<document source=\"stdin\">\n+ added\n</document>"),
        "{}",
        prompts[0]
    );
    assert!(prompts[1].starts_with("all of it") && !prompts[1].contains("<document source"), "{}", prompts[1]);
    assert!(prompts[2].starts_with("nothing beside") && !prompts[2].contains("<document source"), "{}", prompts[2]);
}

/// Broken builds: the file is written before the answer is whole; a failed run empties it; its mode is that of a temporary
/// file.
#[test]
fn the_answer_goes_to_a_file_as_a_whole_or_not_at_all() {
    let shell = Shell::new(&[]);
    let server = Server::start(vec![text("The answer."), text("Another.")]);
    let run = |args: &[&str]| piped(&shell, &server, args, "");
    let first = run(&["-p", "-o", "out.md", "ask"]);
    assert_eq!(
        (first.code, first.stdout.as_str(), shell.read("out.md").as_str()),
        (0, "The answer.\n", "The answer.\n")
    );
    use std::os::unix::fs::PermissionsExt as _;
    let mode = fs::metadata(shell.workspace().join("out.md")).expect("there").permissions().mode();
    assert_eq!(mode & 0o777, 0o644);
    let nowhere = run(&["-p", "--json", "-o", "none/out.md", "ask"]);
    assert_eq!((nowhere.code, nowhere.error()["code"].as_str()), (1, Some("WRITE_FAILED")), "{nowhere:?}");
    let why = nowhere.error()["error"]["message"].clone();
    assert_eq!(why, "write the answer to none/out.md: No such file or directory (os error 2)", "and no other name");
    assert_eq!(nowhere.document()["output"], "Another.", "the answer is not lost");
    let failed = run(&["-p", "-o", "out.md", "--patience", "0", "ask"]);
    assert_ne!(failed.code, 0, "the server has no third answer");
    assert_eq!(shell.read("out.md"), "The answer.\n");
    let left: Vec<_> = fs::read_dir(shell.workspace()).expect("a folder").flatten().map(|it| it.file_name()).collect();
    assert_eq!(left, ["out.md"]);
}

/// Broken builds: a text file is sent as an image; a file that is missing is noticed after the model was asked.
#[test]
fn attached_files_go_with_the_prompt() {
    let shell = Shell::new(&[("notes.txt", "remember the milk\n")]);
    fs::write(shell.workspace().join("dot.png"), crate::shell::png(120)).expect("write");
    let server = Server::start(vec![text("Seen.")]);
    let run = piped(&shell, &server, &["-p", "--json", "--attach", "notes.txt", "--attach", "dot.png", "look"], "");
    assert_eq!(run.code, 0, "{run:?}");
    let body = server.bodies()[0].to_string();
    assert!(body.contains("remember the milk") && body.contains("image_url"), "{body}");
    let missing = piped(&shell, &server, &["-p", "--json", "--attach", "gone.txt", "look"], "");
    assert_eq!((missing.code, missing.error()["error"]["details"]["input"].as_str()), (5, Some("gone.txt")));
    assert_eq!(server.bodies().len(), 1);
}

/// Broken builds: `--ephemeral` keeps the Log; the id of the user is ignored, or taken twice.
#[test]
fn a_run_leaves_the_session_that_its_user_wants() {
    let shell = Shell::new(&[]);
    let server = Server::start((0..5).map(|_| text("Yes.")).collect());
    let run = |args: &[&str]| piped(&shell, &server, args, "");
    let gone = run(&["-p", "--json", "--ephemeral", "one"]).document();
    assert_eq!((&gone["ok"], &gone["resume_command"]), (&json!(true), &Value::Null));
    assert_eq!(shell.logs().len(), 0);
    let id = "20260102T030405-0a1b2c";
    let own =
        run(&["-p", "--json", "--session-id", id, "--append-system-prompt", "Answer in rhymes.", "two"]).document();
    assert_eq!(own["session_id"], id);
    let system = server.bodies()[1]["messages"].to_string();
    assert!(system.contains("Answer in rhymes."), "{system}");
    let twice = run(&["-p", "--json", "--session-id", id, "three"]);
    assert_ne!(twice.code, 0, "{twice:?}");
    assert_eq!(run(&["resume", id, "-p", "--session-id", "20260102T030405-0a1b2d", "x"]).code, 2);
    let on = run(&["-c", "-p", "--json", "four"]).document();
    assert_eq!(on["session_id"], id, "the latest session of this folder");
    let log = entries(&shell.logs()[0]);
    assert_eq!(log.iter().filter(|it| it["type"] == "user_message").count(), 2);
    let asked = server.bodies().last().expect("a request")["messages"].to_string();
    assert!(asked.contains("Answer in rhymes."), "the instructions stay those of the session: {asked}");
}

const SCHEMA: &str = r#"{ "type": "object", "required": ["files"], "additionalProperties": false,
    "properties": { "files": { "type": "array", "minItems": 1, "items": { "type": "string" } } } }"#;

/// Broken builds: an answer that does not fit is a success; the model is not told what is wrong; it is told for ever.
#[test]
fn an_answer_fits_its_schema_or_is_asked_for_once_more() {
    let shell = Shell::new(&[("form.json", SCHEMA)]);
    let wrong = r#"{"files": [], "more": 1}"#;
    let server =
        Server::start(vec![text(wrong), text("```json\n{\"files\": [\"a.rs\"]}\n```"), text(wrong), text("none")]);
    let run = || piped(&shell, &server, &["-p", "--json", "--output-schema", "form.json", "which files"], "");
    let mended = run();
    let document = mended.document();
    assert_eq!((mended.code, &document["structured_output"]), (0, &json!({ "files": ["a.rs"] })), "{document}");
    let bodies = server.bodies();
    assert!(asked(&bodies[0]).contains("\"minItems\":1"), "{}", asked(&bodies[0]));
    for part in ["/files: minimum 1 items required", "'more' not allowed"] {
        assert!(asked(&bodies[1]).contains(part), "{part}: {}", asked(&bodies[1]));
    }
    let lost = run();
    assert_eq!((lost.code, lost.error()["code"].as_str()), (14, Some("OUTPUT_INVALID")), "{lost:?}");
    assert_eq!((&lost.document()["status"], server.bodies().len()), (&json!("completed"), 4));
    shell.write("form.json", r#"{ "type": "objekt" }"#);
    let bad = run();
    assert_eq!(
        (bad.code, bad.error()["code"].as_str(), server.bodies().len()),
        (10, Some("CONFIG_INVALID"), 4),
        "{bad:?}"
    );
}

/// A schema, an answer that does not fit it, and one that does; all of it from the number.
fn triple(n: usize) -> (Value, Value, Value) {
    let low = n % 17;
    let name = format!("field{n}");
    match n % 10 {
        0 => (json!({ "type": "integer", "minimum": low }), json!(low as i64 - 1), json!(low)),
        1 => (json!({ "enum": [n, "x", null] }), json!("y"), json!(n)),
        2 => (
            json!({ "type": "array", "minItems": low, "items": { "type": "boolean" } }),
            json!([1]),
            json!(vec![true; low]),
        ),
        3 => (
            json!({ "type": "object", "required": [name], "properties": { &name: { "type": "string", "pattern": "^a+$" } } }),
            json!({ &name: "b" }),
            json!({ &name: "a".repeat(low + 1) }),
        ),
        4 => (json!({ "oneOf": [{ "type": "integer" }, { "minimum": 2 }] }), json!(3), json!(1)),
        5 => (
            json!({ "$ref": "#/$defs/n", "$defs": { "n": { "multipleOf": low + 1 } } }),
            json!(0.5),
            json!((low + 1) * 3),
        ),
        6 => (json!({ "type": "array", "uniqueItems": true }), json!([n, n]), json!([n, n + 1])),
        7 => (
            json!({ "if": { "required": ["a"] }, "then": { "required": ["b"] } }),
            json!({ "a": n }),
            json!({ "a": n, "b": n }),
        ),
        8 => (
            json!({ "properties": { "a": {} }, "additionalProperties": false, "maxProperties": 1 }),
            json!({ &name: 1 }),
            json!({ "a": n }),
        ),
        _ => (json!({ "type": "string", "maxLength": low }), json!("é".repeat(low + 1)), json!("é".repeat(low))),
    }
}

/// Broken build: a keyword is passed over, so that the first answer is taken.
#[test]
fn answers_are_judged_by_schemas_of_every_kind() {
    let number = tier::cases("answers_are_judged");
    let shell = Shell::new(&[]);
    std::thread::scope(|scope| {
        for lane in 0..4 {
            let shell = &shell;
            scope.spawn(move || {
                for n in (lane..number).step_by(4) {
                    let (schema, wrong, right) = triple(n);
                    let form = shell.aside(&format!("form-{n}.json"), &schema.to_string()).display().to_string();
                    let steps = json!({ "steps": [{ "text": wrong.to_string() }, { "text": right.to_string() }] });
                    let script = format!("script:{}", shell.aside(&format!("{n}.json"), &steps.to_string()).display());
                    let ran = shell.run(["-p", "--json", "--output-schema", &form, "--provider", &script, "go"]);
                    let result = ran.document();
                    assert_eq!((ran.code, &result["structured_output"]), (0, &right), "{schema}: {wrong} {result}");
                    let id = result["session_id"].as_str().expect("an id").to_owned();
                    let log = shell.logs().into_iter().find(|it| it.to_string_lossy().contains(&id)).expect("its log");
                    let prompts = entries(&log).iter().filter(|it| it["type"] == "user_message").count();
                    assert_eq!(prompts, 2, "{schema} took {wrong}");
                }
            });
        }
    });
    figures(&format!("--output-schema: {number} schemas, each with an answer that does not fit and one that does"));
}

/// Broken build: a flag of another program is unknown, and nothing is said of pixir's.
#[test]
fn flags_of_other_programs_are_answered_with_pixirs() {
    let shell = Shell::new(&[]);
    for (args, ours) in [
        (&["--output-format", "json", "-p", "x"][..], "--format json"),
        (&["-p", "--max-turns=3", "x"], "--max-rounds N"),
        (&["--dangerously-skip-permissions", "x"], "--write"),
        (&["--yolo"], "--write"),
        (&["-p", "--allowedTools", "Bash", "x"], "--allow RULE"),
        (&["-p", "x", "--image", "a.png"], "--attach FILE"),
        (&["-p", "x", "--allow-mcp", "git"], "--allow 'mcp(SERVER.TOOL)'"),
        (&["-p", "x", "--json", "--format", "jsonl"], "leave out --json or --format"),
        (&["-p", "x", "--write", "--mode", "ask"], "leave out --"),
        (&["--resume", "abc"], "pixir resume ID"),
        (&["-p", "x", "--json-schema", "f"], "--output-schema FILE"),
        (&["exec", "fix it"], "pixir -p"),
        (&["chat", "--model", "x", "y"], "pixir"),
    ] {
        let ran = shell.run(args);
        let fix = ran.stderr.split("fix:").nth(1).unwrap_or(&ran.stderr);
        assert!(ran.code == 2 && fix.contains(ours), "{args:?}: {}", ran.stderr);
    }
}

/// Broken builds: the cast or the frames are written all the same; a reader that has enough is told of an error.
#[test]
fn previews_write_no_file_and_a_reader_that_has_enough_hears_of_no_error() {
    let shell = Shell::new(&[("keys.txt", "idle\nframe start\n")]);
    super::sessions::session(&shell);
    let cast = shell.run(["replay", "last", "--cast", "talk.cast", "--dry-run"]);
    assert_eq!((cast.code, cast.stdout.as_str()), (0, "would write talk.cast\n"), "{cast:?}");
    let frames = shell.run(["tui", "--script", "keys.txt", "--frames", "out", "--dry-run"]);
    assert_eq!((frames.code, frames.stdout.as_str()), (0, "would write the frame start to out\n"), "{frames:?}");
    assert!(!shell.workspace().join("talk.cast").exists() && !shell.workspace().join("out").exists());
    // The turn is not over when the reader leaves.
    let steps = json!({ "steps": [{ "text": "word ".repeat(200_000), "hang": true }] }).to_string();
    let provider = format!("script:{}", shell.aside("long.json", &steps).display());
    let mut child =
        shell.command(["-p", "--format", "jsonl", "--provider", &provider, "go"]).spawn().expect("it starts");
    let mut first = [0; 64];
    std::io::Read::read_exact(child.stdout.as_mut().expect("stdout"), &mut first).expect("read");
    drop(child.stdout.take());
    let done = ran(child.wait_with_output().expect("it ends"));
    assert_eq!(done.stderr, "");
}
