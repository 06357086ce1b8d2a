//! Steps beside each other, and runs that do not go as planned: what pixir says then is true, and nothing that a step did is lost.

use std::fs;
use std::io::Write as _;

use serde_json::{Value, json};

use super::{ends, events, file, log, resume, run, script, step};
use crate::hosted::Hosted;
use crate::shell::{Shell, entries, ran};
use crate::wait;

/// An answer that writes a file, for the task with this text.
fn writes(of: &str, path: &str, text: &str) -> Value {
    json!({ "of": of, "calls": [{ "name": "write", "args": { "path": path, "content": text } }] })
}

/// Broken build: the second command waits for the lease of the first one, so neither sees the other's file.
#[test]
fn commands_that_need_nothing_of_each_other_run_at_the_same_time() {
    let shell = Shell::new(&[]);
    let meet = |own: &str, other: &str| {
        format!(
            "[[steps]]\nid = \"{own}\"\nargv = [\"sh\", \"-c\", \"touch {own}; n=0; while [ ! -e {other} ]; do n=$((n+1)); [ $n -lt 1000 ] || exit 1; sleep 0.02; done\"]\n"
        )
    };
    let ran = run(&shell, &[meet("one", "two"), meet("two", "one")].concat(), &json!([]), &["--write"]);
    assert_eq!(ran.code, 0, "{ran:?}");
}

/// Broken builds: the end names no file; the copy is gone; nothing says how to get at it; another step's command is blamed.
#[test]
fn two_steps_that_change_the_same_lines_conflict_and_the_second_ones_files_wait() {
    let shell = Shell::new(&[("a.txt", "old\n")]);
    let flow = "[[steps]]\nid = \"one\"\ntask = \"Task one\"\n[[steps]]\nid = \"two\"\ntask = \"Task two\"\n";
    let answers = json!([
        writes("Task one", "a.txt", "one\n"),
        { "of": "Task one", "text": "Done.", "delay_ms": 400 },
        writes("Task two", "a.txt", "two\n"),
        { "of": "Task two", "text": "Done.", "delay_ms": 400 },
    ]);
    let ran = run(&shell, flow, &answers, &["--write"]);
    assert_eq!(ran.code, 9, "{ran:?}");
    let result = ran.document();
    let failed = if step(&result, "one")["status"] == "failed" { "one" } else { "two" };
    let error = &step(&result, failed)["error"];
    assert_eq!(error["code"], "MERGE_CONFLICT", "{result}");
    assert!(error["message"].as_str().is_some_and(|it| it.contains("a.txt")), "{error}");
    let session = result["session_id"].as_str().expect("an id");
    let next = result["next_actions"].as_array().expect("a list");
    let adopt = format!("pixir agents adopt {session} {failed} --dry-run");
    assert!(next.iter().any(|it| *it == json!(adopt)), "{next:?}");
    let kept = shell.read("a.txt");
    let taken = shell.run(["agents", "adopt", session, failed, "--take", "a.txt", "--json"]);
    assert_eq!(taken.code, 0, "{taken:?}");
    assert_ne!(shell.read("a.txt"), kept, "the other version is taken");
}

/// Broken build: the copy of a step whose check failed is thrown away with all that its agent did.
#[test]
fn what_a_step_did_before_its_check_failed_can_be_taken_over() {
    let shell = Shell::new(&[("a.txt", "old\n")]);
    let flow = "[[steps]]\nid = \"edit\"\ntask = \"Write a.txt\"\ncheck = [[\"false\"]]\n";
    let answers = json!([writes("Write a.txt", "a.txt", "new\n"), { "of": "Write a.txt", "text": "Done." }]);
    let ran = run(&shell, flow, &answers, &["--write"]);
    let result = ran.document();
    assert_eq!((ran.code, &step(&result, "edit")["error"]["code"]), (1, &json!("CHECK_FAILED")), "{result}");
    assert_eq!(shell.read("a.txt"), "old\n");
    let copies = fs::read_dir(shell.home().join("copies")).into_iter().flatten().flatten();
    let copies = copies.flat_map(|root| fs::read_dir(root.path()).into_iter().flatten().flatten()).count();
    assert_eq!(copies, 1, "its copy is there");
    let session = result["session_id"].as_str().expect("an id");
    let adopt = format!("pixir agents adopt {session} edit --dry-run");
    assert_eq!(result["next_actions"][0], json!(adopt), "{result}");
    assert_eq!(shell.run(["agents", "adopt", session, "edit"]).code, 0);
    assert_eq!(shell.read("a.txt"), "new\n");
}

/// Broken build: a step whose files are in the workspace is a failure after a resume, because its copy has gone.
#[test]
fn a_step_that_was_cut_off_between_its_files_and_its_end_is_completed() {
    let shell = Shell::new(&[("a.txt", "old\n")]);
    let flow = "[[steps]]\nid = \"edit\"\ntask = \"Write a.txt\"\ncheck = [[\"grep\", \"-q\", \"new\", \"a.txt\"]]\n";
    let answers = json!([writes("Write a.txt", "a.txt", "new\n"), { "of": "Write a.txt", "text": "Done." }]);
    assert_eq!(run(&shell, flow, &answers, &["--write"]).code, 0);
    let path = shell.logs().into_iter().find(|path| fs::read_to_string(path).expect("a log").contains("step_ended"));
    let path = path.expect("the log of the run");
    let text = fs::read_to_string(&path).expect("a log");
    let end = text.find("\"event\":\"step_ended\"").expect("an end");
    let cut = text[..end].rfind('\n').expect("a line before it") + 1;
    assert!(text[..cut].contains("\"event\":\"adopted\""), "its files were adopted: {text}");
    fs::File::create(&path).and_then(|mut file| file.write_all(&text.as_bytes()[..cut])).expect("the log is cut");
    let ran = resume(&shell, &json!([]), &["--write"]);
    let result = ran.document();
    assert_eq!((ran.code, ends(&result)), (0, vec!["edit completed".to_owned()]), "{result}");
    assert_eq!(step(&result, "edit")["checks"][0]["exit_code"], 0, "{result}");
    assert_eq!((shell.read("a.txt").as_str(), &step(&result, "edit")["changes"]), ("new\n", &json!(["a.txt"])));
}

/// Broken builds: a step that was cut off is `not_run`; the run has counted nothing; a message is to continue it.
#[test]
fn a_run_that_is_interrupted_says_what_it_interrupted_and_how_it_goes_on() {
    let shell = Shell::new(&[]);
    let flow = "[[steps]]\nid = \"one\"\nargv = [\"true\"]\n[[steps]]\nid = \"long\"\nargv = [\"sh\", \"-c\", \"touch here; sleep 600\"]\nneeds = [\"one\"]\n";
    let path = file(&shell, flow).display().to_string();
    let child = shell.command(["workflow", "run", &path, "--write", "--json"]).spawn().expect("it starts");
    wait::until("it runs", || shell.workspace().join("here").exists());
    let told = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(told.expect("kill").success());
    let ended = ran(child.wait_with_output().expect("it ends"));
    let result = ended.document();
    assert_eq!((ended.code, ends(&result)), (130, vec!["one completed".to_owned(), "long interrupted".to_owned()]));
    assert_eq!((&result["counts"]["completed"], &result["counts"]["interrupted"]), (&json!(1), &json!(1)), "{result}");
    assert!(result["remediation"].as_str().is_some_and(|it| it.contains("pixir workflow resume")), "{result}");
}

/// Broken builds: the path of the output leads to nothing and the run is a success without one; the error of a step that
/// failed is hidden by it.
#[test]
fn a_run_whose_output_is_missing_is_no_success() {
    let shell = Shell::new(&[]);
    let flow =
        "output = \"{{steps.one.output.total}}\"\n[[steps]]\nid = \"one\"\nargv = [\"printf\", \"{\\\"sum\\\": 3}\"]\n";
    let ran = run(&shell, flow, &json!([]), &["--write"]);
    let result = ran.document();
    assert_ne!(ran.code, 0, "{result}");
    assert_eq!(
        (&result["status"], &result["code"]),
        (&json!("partial_failed"), &json!("TEMPLATE_MISSING")),
        "{result}"
    );
    assert_eq!((&result["work_complete"], ends(&result)), (&json!(false), vec!["one completed".to_owned()]));
    let fails = flow.replace("\"printf\", \"{\\\"sum\\\": 3}\"", "\"false\"");
    let ran = run(&shell, &fails, &json!([]), &["--write"]);
    assert_eq!((ran.code, &ran.document()["code"]), (1, &json!("WORKFLOW_FAILED")), "{ran:?}");
}

/// Broken build: a request that the server refuses for what it says is sent again.
#[test]
fn a_request_that_is_refused_for_its_content_is_not_tried_again() {
    let flow = "[[steps]]\nid = \"ask\"\nrole = \"explorer\"\ntask = \"Ask\"\nretry = { times = 3 }\n";
    let attempts = |code: &str| {
        let shell = Shell::new(&[]);
        let broken = json!({ "of": "Ask", "error": { "code": code, "message": "no" } });
        let answers = json!([broken, { "of": "Ask", "text": "At last." }]);
        let ran = run(&shell, flow, &answers, &["--patience", "0"]);
        (ran.code, events(&log(&shell)).iter().filter(|it| *it == "step_started ask").count())
    };
    assert_eq!(attempts("PROVIDER_HTTP_ERROR"), (1, 1));
    assert_eq!(attempts("TIMEOUT"), (0, 2));
}

/// Broken builds: a gate that is asked is not in the log, so no presenter can show it; only one thing is asked at a time; what
/// needs no answer waits for one.
#[test]
fn a_gate_is_in_the_log_before_it_is_answered_and_holds_nothing_up() {
    let shell = Shell::new(&[]);
    let mut host = Hosted::start(&shell, &json!({ "steps": [] }), &["--write"]);
    let graph = json!({ "version": 1, "name": "flow", "steps": [
        { "id": "ship", "ask": "Ship it?" },
        { "id": "sign", "ask": "Sign it?" },
        { "id": "free", "argv": ["true"], "idempotent": true },
        { "id": "after", "argv": ["true"], "idempotent": true, "needs": ["ship"] },
    ] });
    let accepted = host.ask("run", json!({ "type": "run_workflow", "graph": graph }));
    assert_eq!(accepted["ok"], true, "{accepted}");
    let of = |event: &'static str, id: &'static str| {
        move |it: &Value| it["data"]["event"] == event && it["data"]["id"] == id
    };
    let held = host.until(0, of("held", "ship"));
    assert_eq!(host.seen[held]["data"]["ask"]["choices"], json!(["yes", "no"]), "{}", host.seen[held]);
    host.until(0, of("held", "sign"));
    host.until(0, of("step_ended", "free"));
    let asks = host.until(0, |it| it["data"]["call_id"] == "step ship" && it["data"]["questions"].is_array());
    assert_eq!(host.seen[asks]["data"]["questions"][0]["only_options"], true, "{}", host.seen[asks]);
    for (n, id) in ["ship", "sign"].into_iter().enumerate() {
        let answer = json!({ "type": "answer", "call_id": format!("step {id}"), "answers": [["yes"]] });
        let accepted = host.ask(&format!("answer{n}"), answer);
        assert_eq!(accepted["ok"], true, "{accepted}");
    }
    host.until(0, of("step_ended", "after"));
    let (result, code) = host.end();
    assert_eq!(code, 0, "{result}");
}

/// Broken build: while the user is asked about one step, no other step begins.
#[test]
fn a_step_that_is_asked_about_holds_no_other_step_up() {
    let shell = Shell::new(&[]);
    let flow = "[[steps]]\nid = \"pay\"\nargv = [\"sh\", \"-c\", \"echo paid >> bill; if [ ! -e go ]; then touch here; sleep 600; fi\"]\n\
                [[steps]]\nid = \"free\"\nargv = [\"sh\", \"-c\", \"while [ ! -e go ]; do sleep 0.02; done\"]\nidempotent = true\n\
                [[steps]]\nid = \"next\"\nargv = [\"true\"]\nneeds = [\"free\"]\n";
    let path = file(&shell, flow).display().to_string();
    let mut child = shell.command(["workflow", "run", &path, "--write", "--json"]).spawn().expect("it starts");
    wait::until("the command has done its work", || shell.workspace().join("here").exists());
    child.kill().expect("it is killed");
    child.wait().expect("it is gone");
    fs::write(shell.workspace().join("go"), "").expect("write");
    let runs = shell.run(["workflow", "runs", "--json"]).document();
    let id = runs["runs"][0]["session_id"].as_str().expect("an id").to_owned();
    let mut host = Hosted::start(&shell, &json!({ "steps": [] }), &["resume", &id, "--write"]);
    let accepted = host.ask("go", json!({ "type": "resume_workflow" }));
    assert_eq!(accepted["ok"], true, "{accepted}");
    let resumed = host.until(0, |it| it["data"]["event"] == "resumed");
    host.until(resumed, |it| it["data"]["event"] == "held" && it["data"]["id"] == "pay");
    host.until(resumed, |it| it["data"]["event"] == "step_ended" && it["data"]["id"] == "next");
    let done = json!({ "type": "answer", "call_id": "step pay", "answers": [["done"]] });
    let accepted = host.ask("done", done);
    assert_eq!(accepted["ok"], true, "{accepted}");
    host.until(resumed, |it| it["data"]["event"] == "step_ended" && it["data"]["id"] == "pay");
    host.end();
    assert_eq!(shell.read("bill"), "paid\n", "it was not paid twice");
}

/// Broken builds: a second run in a session is refused, or takes over results of the first one.
#[test]
fn a_session_can_have_one_run_after_another() {
    let shell = Shell::new(&[]);
    let mut host = Hosted::start(&shell, &json!({ "steps": [] }), &["--write"]);
    let graph = |id: &str| {
        let step = json!({ "id": id, "argv": ["sh", "-c", "echo x >> count"], "idempotent": true });
        json!({ "version": 1, "name": "flow", "steps": [step] })
    };
    let mut from = 0;
    for (n, id) in ["one", "one", "two"].into_iter().enumerate() {
        let accepted = host.ask(&format!("run{n}"), json!({ "type": "run_workflow", "graph": graph(id) }));
        assert_eq!(accepted["ok"], true, "{accepted}");
        from = host.until(from, |it| it["type"] == "turn_ended") + 1;
    }
    host.end();
    assert_eq!(shell.read("count"), "x\nx\nx\n", "each run does its steps");
    let ran = resume(&shell, &json!([]), &["--write"]);
    assert_eq!(ends(&ran.document()), ["two completed"], "the last run is the one that goes on: {ran:?}");
}

/// Broken builds: the run of a model has the name of its role; `last` knows only runs that the user began.
#[test]
fn the_run_of_a_model_has_the_name_of_its_graph_and_is_the_last_one() {
    let shell = Shell::new(&[]);
    let graph = json!({ "version": 1, "name": "Look_Around", "steps": [
        { "id": "one", "argv": ["true"] }, { "id": "ask", "ask": "Go on?", "needs": ["one"] },
    ] });
    let steps = json!([
        { "calls": [{ "name": "run_workflow", "args": { "graph": graph, "wait": true } }] },
        { "calls": [{ "name": "show_agent", "args": { "name": "look-around" } }] },
        { "text": "It waits." },
    ]);
    let model = script(&shell, &steps);
    let args = ["look", "--headless", "--write", "--json"].into_iter();
    let asked = shell.run(args.chain(model.iter().map(String::as_str)));
    assert_eq!(asked.document()["output"], "It waits.", "{asked:?}");
    let logs: String = shell.logs().iter().map(|path| fs::read_to_string(path).expect("a log")).collect();
    assert!(logs.contains("\"name\":\"look-around\"") && !logs.contains("NOT_FOUND"), "it is known by its name");
    let stopped = shell.run(["workflow", "stop", "last", "--json"]);
    assert_eq!((stopped.code, &stopped.document()["stopped"]), (0, &json!(false)), "{stopped:?}");
    let ran = resume(&shell, &json!([]), &["--write", "--answer", "ask=yes"]);
    assert_eq!((ran.code, ends(&ran.document())), (0, vec!["one completed".to_owned(), "ask completed".to_owned()]));
}

/// Broken builds: a model tells its stopped run to go on, and an answer of a model in the Session of the run makes that `completed`;
/// the model reads no counts and no steps of a run that was stopped; it sees nothing of a run that goes on.
#[test]
fn a_run_that_its_model_has_stopped_is_not_completed_by_a_message() {
    let shell = Shell::new(&[]);
    let graph = json!({ "version": 1, "name": "slow", "steps": [
        { "id": "fast", "argv": ["printf", "hi"] },
        { "id": "long", "argv": ["sh", "-c", "touch here; sleep 600"], "needs": ["fast"] },
        { "id": "last", "argv": ["true"], "needs": ["long"] },
    ] });
    let call = |name: &str, args: Value| json!({ "calls": [{ "name": name, "args": args }] });
    let steps = json!([
        call("run_workflow", json!({ "graph": graph })),
        { "text": "It runs." },
        call("show_agent", json!({ "name": "slow" })),
        call("tell_agent", json!({ "name": "slow", "text": "hurry up" })),
        call("tell_agent", json!({ "name": "slow", "how": "stop" })),
        call("wait_agent", json!({ "names": ["slow"] })),
        call("tell_agent", json!({ "name": "slow", "text": "go on" })),
        { "text": "It is stopped." },
        { "text": "The workflow is done." },
    ]);
    let mut host = Hosted::start(&shell, &json!({ "steps": steps }), &["--write", "--toolset", "typed"]);
    host.ask("1", json!({ "type": "prompt", "text": "run it" }));
    wait::until("the long step has begun", || shell.workspace().join("here").exists());
    host.ask("2", json!({ "type": "prompt", "text": "stop it" }));
    host.until(0, |it| it["data"]["text"] == "It is stopped.");
    let (result, _) = host.end();
    let root = shell.logs().iter().map(|path| entries(path)).find(|log| log[0]["data"]["parent"].is_null());
    let root = root.expect("the session");
    let read: Vec<&str> =
        root.iter().filter(|it| it["type"] == "tool_result").filter_map(|it| it["data"]["output"].as_str()).collect();
    let [_, shown, hurry, _, end, goes_on] = read.as_slice() else { panic!("{read:#?}") };
    assert!(shown.contains("fast completed") && shown.contains("long begins"), "{shown}");
    for refused in [hurry, goes_on] {
        assert!(refused.contains("a run of a workflow, which reads no messages"), "{refused}");
    }
    for part in [
        "interrupted: 1 completed, 1 interrupted",
        "fast completed",
        "long interrupted",
        "the user goes on with the run",
    ] {
        assert!(end.contains(part), "{part}: {end}");
    }
    assert!(!end.contains("tell_agent"), "{end}");
    let agent = &result["agents"][0];
    assert_eq!(agent["status"], "interrupted", "{result}");
    assert!(agent["resume_command"].as_str().is_some_and(|it| it.starts_with("pixir workflow resume ")), "{agent}");
    let dry = shell.run(["workflow", "resume", "last", "--dry-run", "--json"]).document();
    let verdicts: Vec<&Value> = dry["steps"].as_array().expect("a list").iter().map(|it| &it["verdict"]).collect();
    assert_eq!(verdicts, ["reuse", "ask", "held"], "{dry}");
}

/// Broken builds: the commands of a run leave no room for its steps, of which the model reads a few; the end of a run is longer than
/// a model reads.
#[test]
fn the_model_reads_a_line_for_each_step_of_a_large_run() {
    let shell = Shell::new(&[]);
    let noise = "x".repeat(300);
    let mut all: Vec<Value> = (0..60)
        .map(|n| json!({ "id": format!("s{n}"), "argv": ["sh", "-c", format!("echo {noise} >&2; exit 3")] }))
        .collect();
    all.push(json!({ "id": "long", "argv": ["sh", "-c", "yes word | head -c 30000; echo the end"] }));
    let graph = json!({ "version": 1, "name": "large", "steps": all, "output": "{{steps.long.output}}" });
    let steps = json!([
        { "calls": [{ "name": "run_workflow", "args": { "graph": graph, "wait": true } }] },
        { "text": "Read." },
    ]);
    let model = script(&shell, &steps);
    let args = ["go", "--headless", "--write", "--json"].into_iter();
    let ran = shell.run(args.chain(model.iter().map(String::as_str)));
    let root = shell.logs().iter().map(|path| entries(path)).find(|log| log[0]["data"]["parent"].is_null());
    let root = root.expect("the session");
    let read = root.iter().find(|it| it["type"] == "tool_result").expect("a result")["data"]["output"].clone();
    let read = read.as_str().expect("text");
    assert!(read.contains("partial_failed: 1 completed, 60 failed"), "{ran:?}: {read}");
    for n in 0..60 {
        assert!(read.lines().any(|line| line.starts_with(&format!("s{n} failed: it"))), "s{n}: {read}");
    }
    assert!(read.contains("long completed") && read.contains("the end") && read.contains("agent-large.md"), "{read}");
    assert!(read.len() <= 4_030, "{}: {read}", read.len());
}
