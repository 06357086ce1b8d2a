//! What steps change: in copies, in the workspace, within their bounds, and at the same time.

use std::fs;

use serde_json::{Value, json};

use super::{ends, file, resume, run, step};
use crate::hosted::Hosted;
use crate::shell::{Shell, entries};

fn write(path: &str, text: &str) -> Value {
    json!({ "name": "write", "args": { "path": path, "content": text } })
}

/// Broken builds: the files of a step reach the workspace without the user in mode `ask`; the run does not wait for the answer;
/// what needs the step begins before its files are there.
#[test]
fn in_mode_ask_the_files_of_a_step_wait_for_the_user_and_then_the_next_step_begins() {
    let shell = Shell::new(&[("a.txt", "old\n")]);
    let graph = json!({ "version": 1, "name": "flow", "steps": [
        { "id": "edit", "task": "Write a.txt" },
        { "id": "look", "role": "explorer", "task": "Look at it", "needs": ["edit"] },
    ] });
    let answers = json!({ "steps": [
        { "of": "Write a.txt", "calls": [write("a.txt", "new\n")] },
        { "of": "Write a.txt", "text": "Done." },
        { "of": "Look at it", "calls": [{ "name": "read", "args": { "path": "a.txt" } }] },
        { "of": "Look at it", "text": "Seen." },
    ] });
    let mut host = Hosted::start(&shell, &answers, &[]);
    let accepted = host.ask("run", json!({ "type": "run_workflow", "graph": graph }));
    assert_eq!(accepted["ok"], true, "{accepted}");
    let asked = host.event("approval_requested");
    let decide = json!({ "type": "decide", "call_id": asked["data"]["call_id"], "decision": { "answer": "allow" } });
    host.ask("allow", json!({ "type": "to_agent", "path": ["edit"], "input": decide }));
    let shown = host.event("restore_planned");
    assert_eq!((&shown["data"]["agent"], &shown["data"]["asks"]), (&json!(["edit"]), &json!(true)), "{shown}");
    assert_eq!(shell.read("a.txt"), "old\n");
    let is_look = |it: &Value| it["data"]["event"] == "step_started" && it["data"]["id"] == "look";
    assert!(!host.seen.iter().any(is_look), "what needs the files waits too");
    // The Session of the agent closes while the user thinks.
    crate::wait::lapse(std::time::Duration::from_millis(300));
    let options = json!({ "seen": shown["data"]["token"] });
    let answer = host.ask("adopt", json!({ "type": "adopt", "path": ["edit"], "options": options }));
    assert_eq!(answer["ok"], true, "{answer}");
    let (result, code) = host.end();
    assert_eq!(code, 0, "{result}");
    assert_eq!(shell.read("a.txt"), "new\n");
    let looked = |path| fs::read_to_string(path).is_ok_and(|log| log.contains("Look at it") && log.contains("new"));
    assert!(shell.logs().into_iter().any(looked), "it saw the new text");
}

/// Broken builds: `writes` of a step binds nobody; it is forgotten when the step goes on; two steps that write the same files
/// without an order are no fault.
#[test]
fn a_step_changes_only_the_files_that_it_names() {
    let shell = Shell::new(&[("docs/a.md", "old\n"), ("src.txt", "old\n")]);
    let flow = "[[steps]]\nid = \"docs\"\ntask = \"Write documents\"\nwrites = [\"docs/**\"]\n";
    let answers = json!([
        { "of": "Write documents", "calls": [write("docs/a.md", "new\n"), write("src.txt", "new\n")] },
        { "of": "Write documents", "text": "Done." },
    ]);
    let ran = run(&shell, flow, &answers, &["--write"]);
    let result = ran.document();
    assert_eq!((ran.code, &step(&result, "docs")["changes"]), (0, &json!(["docs/a.md"])), "{result}");
    assert_eq!((shell.read("docs/a.md").as_str(), shell.read("src.txt").as_str()), ("new\n", "old\n"));
    let logs: String = shell.logs().iter().map(|path| fs::read_to_string(path).expect("a log")).collect();
    assert!(logs.contains("MUTATION_BLOCKED"), "the refusal is in the log of the agent");
    let two = "[[steps]]\nid = \"one\"\ntask = \"One\"\nwrites = [\"docs/**\"]\n[[steps]]\nid = \"two\"\ntask = \"Two\"\nwrites = [\"docs/a.md\"]\n";
    let path = file(&shell, two).display().to_string();
    let faults = shell.run(["workflow", "validate", &path]);
    assert_eq!(faults.code, 10, "{faults:?}");
    assert!(format!("{}{}", faults.stdout, faults.stderr).contains("writes"), "{faults:?}");
}

/// Broken builds: a round begins with a copy of its own; half of the rounds' files arrive; a step that took too long is taken
/// into the workspace, or its files are lost.
#[test]
fn rounds_share_a_copy_and_a_step_that_took_too_long_keeps_its_own() {
    let shell = Shell::new(&[]);
    let flow = "[[steps]]\nid = \"both\"\ntask = \"Write both\"\ncheck = [[\"test\", \"-e\", \"a\", \"-a\", \"-e\", \"b\"]]\nrepeat = { max = 3 }\n";
    let answers = json!([
        { "of": "Write both", "calls": [write("a", "a\n")] },
        { "of": "Write both", "text": "One." },
        { "of": "Write both", "calls": [write("b", "b\n")] },
        { "of": "Write both", "text": "Both." },
    ]);
    let ran = run(&shell, flow, &answers, &["--write"]);
    assert_eq!((ran.code, shell.read("a"), shell.read("b")), (0, "a\n".into(), "b\n".into()), "{ran:?}");
    assert_eq!(step(&ran.document(), "both")["changes"], json!(["a", "b"]));

    let shell = Shell::new(&[]);
    let flow = "[[steps]]\nid = \"slow\"\ntask = \"Write and wait\"\nseconds = 1\n[[steps]]\nid = \"next\"\nargv = [\"test\", \"-e\", \"late\"]\nneeds = [\"slow\"]\n";
    let answers = json!([
        { "of": "Write and wait", "calls": [write("late", "half\n")] },
        { "of": "Write and wait", "text": "", "hang": true },
        { "of": "Write and wait", "text": "I wrote late." },
    ]);
    let ran = run(&shell, flow, &answers, &["--write"]);
    let result = ran.document();
    assert_eq!(ends(&result), ["slow timed_out", "next held"], "{result}");
    assert!(!shell.workspace().join("late").exists(), "half of it is not in the workspace");
    let session = result["session_id"].as_str().expect("an id");
    let shown = shell.run(["agents", "adopt", session, "slow", "--dry-run", "--json"]).document();
    assert!(shown.to_string().contains("late"), "its copy has it: {shown}");
    let again = json!([
        { "of": "Write and wait", "calls": [write("late", "whole\n")] },
        { "of": "Write and wait", "text": "Done." },
    ]);
    let ran = resume(&shell, &again, &["--write"]);
    assert_eq!((ran.code, shell.read("late").as_str()), (0, "whole\n"), "{ran:?}");
}

/// Broken builds: a gate takes the only place; a step that is asked about holds it while the user thinks.
#[test]
fn with_one_place_a_gate_that_waits_lets_the_other_steps_run() {
    let shell = Shell::new(&[]);
    let flow = "[limits]\nconcurrency = 1\n[[steps]]\nid = \"ship\"\nask = \"Ship it?\"\n[[steps]]\nid = \"one\"\nargv = [\"touch\", \"one\"]\n[[steps]]\nid = \"two\"\nargv = [\"touch\", \"two\"]\n";
    let mut host = Hosted::start(&shell, &json!({ "steps": [] }), &["--write"]);
    let graph = json!({ "version": 1, "name": "flow", "limits": { "concurrency": 1 }, "steps": [
        { "id": "ship", "ask": "Ship it?" },
        { "id": "one", "argv": ["touch", "one"] },
        { "id": "two", "argv": ["touch", "two"] },
    ] });
    host.ask("run", json!({ "type": "run_workflow", "graph": graph }));
    host.until(0, |it| it["data"]["event"] == "step_ended" && it["data"]["id"] == "two");
    assert!(!host.seen.iter().any(|it| it["data"]["event"] == "gate_answered"));
    host.ask("yes", json!({ "type": "answer", "call_id": "step ship", "answers": [["yes"]] }));
    let (result, code) = host.end();
    assert_eq!(code, 0, "{result}");

    let shell = Shell::new(&[]);
    let ran = run(&shell, flow, &json!([]), &["--write"]);
    assert_eq!(ends(&ran.document()), ["ship waiting", "one completed", "two completed"], "{ran:?}");
}

/// Broken builds: a command is credited with files that another one writes at the same time, so that a resume takes it for stale;
/// a file of one of them is in no step.
#[test]
fn commands_that_write_at_the_same_time_are_both_done_when_the_run_goes_on() {
    let shell = Shell::new(&[]);
    let meet = |own: &str, other: &str| {
        format!(
            "[[steps]]\nid = \"{own}\"\nargv = [\"sh\", \"-c\", \"echo {own} > {own}.txt; touch {own}; n=0; while [ ! -e {other} ]; do n=$((n+1)); [ $n -lt 1000 ] || exit 1; sleep 0.02; done\"]\n"
        )
    };
    let last = "[[steps]]\nid = \"last\"\nargv = [\"test\", \"-e\", \"go\"]\nneeds = [\"one\", \"two\"]\n";
    let flow = [meet("one", "two"), meet("two", "one"), last.to_owned()].concat();
    let ran = run(&shell, &flow, &json!([]), &["--write"]);
    let result = ran.document();
    assert_eq!(ends(&result), ["one completed", "two completed", "last failed"], "{result}");
    let of = |id: &str| step(&result, id)["changes"].to_string();
    for path in ["one.txt", "two.txt"] {
        assert!(of("one").contains(path) || of("two").contains(path), "{path} is in no step: {result}");
    }
    shell.write("go", "");
    let dry = shell.run(["workflow", "resume", "last", "--dry-run", "--json"]).document();
    let verdicts: Vec<&Value> = dry["steps"].as_array().expect("a list").iter().map(|it| &it["verdict"]).collect();
    assert_eq!(verdicts, ["reuse", "reuse", "run"], "{dry}");
    assert_eq!(resume(&shell, &json!([]), &["--write"]).code, 0);
}

/// Broken builds: the run language has no workflows; a parameter is not read; the end does not come back.
#[test]
fn a_model_with_the_run_language_runs_a_workflow_by_a_line() {
    let shell = Shell::new(&[]);
    let flow = "[params.word]\ntype = \"string\"\nrequired = true\n[[steps]]\nid = \"say\"\nargv = [\"printf\", \"%s\", \"{{params.word}}\"]\n";
    let folder = shell.home().parent().expect("a parent").join(".config/pixir/workflows");
    fs::create_dir_all(&folder).expect("mkdir");
    fs::write(
        folder.join("echo.toml"),
        format!("version = 1\nname = \"echo\"\noutput = \"{{{{steps.say.output}}}}\"\n{flow}"),
    )
    .expect("write");
    let line = |line: &str| json!({ "calls": [{ "name": "run", "args": { "command": line } }] });
    let graph = r#"printf '%s' '{"version":1,"steps":[{"id":"a","argv":["true"]}]}' | workflow run --wait"#;
    let answers = json!({ "steps": [
        line("workflow run --wait echo word='two words'"),
        line("workflow run --wait eccho"),
        line(graph),
        { "text": "Done." },
    ] });
    let path = shell.aside("script.json", &answers.to_string());
    let provider = format!("script:{}", path.display());
    let ran = shell.run(["go", "--headless", "--json", "--write", "--toolset", "run", "--provider", &provider]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let root = shell.logs().iter().map(|path| entries(path)).find(|log| log[0]["data"]["parent"].is_null());
    let results: Vec<String> = root
        .expect("the session")
        .iter()
        .filter(|it| it["type"] == "tool_result")
        .map(|it| it["data"]["output"].to_string())
        .collect();
    assert!(results[0].contains("output: two words"), "{results:?}");
    assert!(results[1].contains("there is no workflow `eccho`") && results[1].contains("echo"), "{results:?}");
    assert!(results[2].contains("1 completed"), "{results:?}");
}
