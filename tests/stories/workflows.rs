//! Workflows: graphs of steps that are run from the command line, and say truly how each step ended.

mod ends; // steps beside each other, and runs that do not go as planned
mod many; // hostile values, refusals, stops, the workflows that pixir has
mod files; // what steps change, in copies and in the workspace
mod bounds; // limits, checks that may not run, other workflows
mod screen; // a run on the screen
mod refused; // steps whose work was refused
mod killed; // steps that were cut off, and what is asked about them
mod resume; // runs that were cut off, stopped or edited

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::shell::{Ran, Shell, entries, ran};

/// Writes a workflow beside the workspace, and returns its path.
pub(super) fn file(shell: &Shell, text: &str) -> PathBuf {
    shell.aside("flow.toml", &format!("version = 1\nname = \"flow\"\n{text}"))
}

/// The arguments that have a scripted model answer.
pub(super) fn script(shell: &Shell, steps: &Value) -> Vec<String> {
    let path = shell.aside("script.json", &json!({ "steps": steps }).to_string());
    vec!["--provider".to_owned(), format!("script:{}", path.display()), "--toolset".to_owned(), "typed".to_owned()]
}

/// Runs the workflow with a scripted model, and prints its result as one document.
pub(super) fn run(shell: &Shell, text: &str, steps: &Value, more: &[&str]) -> Ran {
    let path = file(shell, text);
    let model = script(shell, steps);
    let path = path.display().to_string();
    let args = ["workflow", "run", &path, "--json"].into_iter().chain(more.iter().copied());
    shell.run(args.chain(model.iter().map(String::as_str)))
}

pub(super) fn resume(shell: &Shell, steps: &Value, more: &[&str]) -> Ran {
    let model = script(shell, steps);
    let args = ["workflow", "resume", "last", "--json"].into_iter().chain(more.iter().copied());
    shell.run(args.chain(model.iter().map(String::as_str)))
}

/// How each step of a result ended.
pub(super) fn ends(result: &Value) -> Vec<String> {
    let steps = result["steps"].as_array().unwrap_or_else(|| panic!("{result}"));
    steps.iter().map(|it| format!("{} {}", text(&it["id"]), text(&it["status"]))).collect()
}

pub(super) fn step<'a>(result: &'a Value, id: &str) -> &'a Value {
    let steps = result["steps"].as_array().unwrap_or_else(|| panic!("{result}"));
    steps.iter().find(|it| it["id"] == id).unwrap_or_else(|| panic!("no step {id}: {result}"))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("?")
}

/// The Log of the run: the one that has its events.
pub(super) fn log(shell: &Shell) -> Vec<Value> {
    let mut logs: Vec<Vec<Value>> = shell.logs().iter().map(|path| entries(path)).collect();
    logs.retain(|log| log.iter().any(|it| it["type"] == "workflow_event"));
    assert_eq!(logs.len(), 1, "one run");
    logs.remove(0)
}

/// The events of the run, as `event id`.
pub(super) fn events(log: &[Value]) -> Vec<String> {
    let events = log.iter().filter(|it| it["type"] == "workflow_event").map(|it| &it["data"]);
    events.map(|it| format!("{} {}", text(&it["event"]), it["id"].as_str().unwrap_or("")).trim().to_owned()).collect()
}

/// Broken builds: the next step begins before the one that it needs has ended; the output of a step is not what the next
/// one reads.
#[test]
fn an_agent_and_a_command_run_one_after_the_other_and_the_log_tells_it() {
    let shell = Shell::new(&[("a.txt", "alpha\n")]);
    let flow = r#"
output = "{{steps.look.output}} / {{steps.count.output}}"
[[steps]]
id = "count"
needs = ["look"]
argv = ["wc", "-c", "a.txt"]
[[steps]]
id = "look"
role = "explorer"
task = "Say what a.txt says"
"#;
    let answers = json!([{ "of": "Say what a.txt says", "text": "It says alpha." }]);
    let ran = run(&shell, flow, &answers, &[]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let result = ran.document();
    assert_eq!(result["output"], "It says alpha. / 6 a.txt", "{result}");
    assert_eq!(ends(&result), ["look completed", "count completed"]);
    assert_eq!((&result["status"], &result["work_complete"]), (&json!("completed"), &json!(true)));
    let log = log(&shell);
    assert_eq!(
        events(&log),
        ["planned", "step_started look", "step_ended look", "step_started count", "step_ended count"]
    );
    let last = log.last().expect("a line");
    assert_eq!((&last["type"], &last["data"]["status"]), (&json!("turn_ended"), &json!("completed")));
    let session = step(&result, "look")["session_id"].as_str().expect("its session");
    assert!(shell.logs().iter().any(|path| path.to_string_lossy().contains(session)), "the agent has a log of its own");
}

/// Broken builds: one fault hides the others; a fault has no line; a run begins in spite of faults.
#[test]
fn all_faults_of_a_workflow_are_named_at_once_with_their_lines() {
    let shell = Shell::new(&[]);
    let flow = r#"
[[steps]]
id = "a"
needs = ["bb"]
task = "Do {{steps.c.output}}"
rol = "explorer"
[[steps]]
id = "b"
kind = "command"
argv = ["true"]
needs = ["c"]
[[steps]]
id = "c"
kind = "command"
argv = ["true"]
needs = ["b"]
[[steps]]
id = "d"
task = "x"
role = "explorr"
when = "steps.a.output = 3"
"#;
    let path = file(&shell, flow).display().to_string();
    let ran = shell.run(["workflow", "validate", &path, "--json"]);
    assert_eq!(ran.code, 10, "{ran:?}");
    let faults = ran.document()["faults"].clone();
    let read: Vec<String> = faults
        .as_array()
        .expect("a list")
        .iter()
        .map(|it| format!("{} {} {}", it["line"], text(&it["at"]), text(&it["fix"])))
        .collect();
    for wanted in [
        "8 steps.a.rol role",
        "23 steps.d.when",
        "6 steps.a.needs b",
        "7 steps.a.task",
        "13 steps.b.needs",
        "22 steps.d.role explorer",
    ] {
        assert!(read.iter().any(|it| it.starts_with(wanted)), "{wanted}: {read:#?}");
    }
    assert_eq!(read.len(), 6, "each is named, and nothing that is none: {read:#?}");
    let ran = run(&shell, flow, &json!([]), &[]);
    assert_eq!((ran.code, &ran.error_after_chatter()["code"]), (10, &json!("WORKFLOW_INVALID")), "{ran:?}");
    assert!(shell.logs().is_empty(), "nothing began");
    for name in ["release", "nightly"] {
        assert_eq!(shell.run(["workflow", "run", name]).code, 5, "there is no workflow of this name");
    }
}

/// Broken builds: a failed step lets what needs it run; the exit code is 0 though steps failed; one that needs nothing
/// of it is held too.
#[test]
fn the_exit_code_says_whether_all_some_or_none_of_the_steps_completed() {
    let shell = Shell::new(&[]);
    let flow = |on_fail: &str| {
        format!(
            r#"
[[steps]]
id = "bad"
argv = ["false"]
on_fail = "{on_fail}"
[[steps]]
id = "after"
argv = ["true"]
needs = ["bad"]
[[steps]]
id = "other"
argv = ["true"]
"#
        )
    };
    let ran = run(&shell, &flow("hold"), &json!([]), &["--write"]);
    assert_eq!(ran.code, 9, "{ran:?}");
    let result = ran.document();
    assert_eq!(ends(&result), ["bad failed", "other completed", "after held"], "{result}");
    assert_eq!(step(&result, "after")["by"], "bad");
    assert_eq!((&result["status"], &result["code"]), (&json!("partial_failed"), &json!("WORKFLOW_PARTIAL")));
    assert_eq!(result["next_actions"][0], result["resume_command"]);

    let shell = Shell::new(&[]);
    let ran = run(&shell, &flow("continue"), &json!([]), &["--write"]);
    assert_eq!((ran.code, ends(&ran.document()).contains(&"after completed".to_owned())), (9, true), "{ran:?}");

    let shell = Shell::new(&[]);
    let none = "[[steps]]\nid = \"bad\"\nargv = [\"false\"]\n";
    let ran = run(&shell, none, &json!([]), &["--write"]);
    let failed = ran.document();
    assert_eq!((ran.code, &failed["code"]), (1, &json!("WORKFLOW_FAILED")), "{ran:?}");
    assert!(failed["error"]["details"]["next_actions"][0].is_string(), "as in every other error: {failed}");
}

/// Broken builds: a step that may not run counts as failed, or runs; a gate without an answer is passed.
#[test]
fn a_step_that_may_not_run_and_a_gate_that_waits_have_exit_codes_of_their_own() {
    let shell = Shell::new(&[]);
    let flow = "[[steps]]\nid = \"write\"\nargv = [\"touch\", \"new\"]\n";
    let ran = run(&shell, flow, &json!([]), &[]);
    assert_eq!((ran.code, &ran.document()["status"]), (12, &json!("held")), "{ran:?}");
    assert!(!shell.workspace().join("new").exists());
    let ran = resume(&shell, &json!([]), &["--write"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(shell.workspace().join("new").exists(), "with leave it runs");

    let shell = Shell::new(&[]);
    let flow = r#"
[[steps]]
id = "ship"
ask = "Ship it?"
choices = ["yes", "no"]
[[steps]]
id = "deploy"
argv = ["touch", "shipped"]
needs = ["ship"]
when = "steps.ship.output == 'yes'"
"#;
    let ran = run(&shell, flow, &json!([]), &["--write"]);
    assert_eq!(ran.code, 13, "{ran:?}");
    let result = ran.document();
    assert_eq!(ends(&result), ["ship waiting", "deploy held"], "{result}");
    assert_eq!(step(&result, "ship")["ask"]["choices"], json!(["yes", "no"]));
    let next = result["next_actions"][0].as_str().expect("a command");
    assert!(next.ends_with("--answer 'ship=yes'"), "{next}");
    let ran = typed(&shell, next);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(shell.workspace().join("shipped").exists(), "what the result names is done: {next}");
}

/// A run that may write, and one that may not: what each result names goes on from there.
///
/// Broken build: a next action leaves out the flag without which the run stops where it was.
#[test]
fn what_the_result_of_a_run_names_is_a_command_that_goes_on() {
    let shell = Shell::new(&[]);
    let flow = "[[steps]]\nid = \"write\"\nargv = [\"touch\", \"new\"]\n";
    let held = run(&shell, flow, &json!([]), &[]);
    assert_eq!(held.code, 12, "{held:?}");
    let next = held.document()["next_actions"][0].as_str().expect("a command").to_owned();
    assert_eq!(typed(&shell, &next).code, 0, "{next}");
    assert!(shell.workspace().join("new").exists(), "{next}");

    let shell = Shell::new(&[]);
    let flow = "[[steps]]\nid = \"try\"\nargv = [\"sh\", \"-c\", \"test -e there && touch done\"]\n";
    let failed = run(&shell, flow, &json!([]), &["--write"]);
    assert_eq!(failed.code, 1, "{failed:?}");
    let result = failed.document();
    assert_eq!(result["next_actions"][0], result["resume_command"]);
    shell.write("there", "");
    let next = result["resume_command"].as_str().expect("a command");
    assert_eq!(typed(&shell, next).code, 0, "{next}");
    assert!(shell.workspace().join("done").exists(), "{next}");
}

/// Runs a command as a result names it.
pub(super) fn typed(shell: &Shell, line: &str) -> Ran {
    let command = line.strip_prefix("pixir ").unwrap_or_else(|| panic!("no command of pixir: {line}"));
    let mut given = Command::new("sh");
    given.args(["-c", &format!("exec \"$0\" {command}"), env!("CARGO_BIN_EXE_pixir")]);
    given.env("HOME", shell.home()).env("PIXIR_HOME", shell.home()).current_dir(shell.workspace());
    ran(given.stdin(Stdio::null()).output().expect("it runs"))
}

/// Broken builds: a run goes on after its time; a limit counts as a failure; a message is to continue the run.
#[test]
fn the_limits_of_a_run_end_it_and_it_can_be_resumed() {
    let shell = Shell::new(&[]);
    let flow = |seconds: u32| {
        format!(
            "[limits]\nseconds = {seconds}\n[[steps]]\nid = \"long\"\nargv = [\"sleep\", \"600\"]\n[[steps]]\nid = \"next\"\nargv = [\"true\"]\nneeds = [\"long\"]\n"
        )
    };
    let ran = run(&shell, &flow(1), &json!([]), &["--write"]);
    assert_eq!(ran.code, 14, "{ran:?}");
    let result = ran.document();
    assert_eq!((&result["status"], &result["code"]), (&json!("timed_out"), &json!("DEADLINE_REACHED")), "{result}");
    assert_eq!(ends(&result), ["long timed_out", "next held"]);

    let shell = Shell::new(&[]);
    let much = json!({ "input": 7000, "output": 1500, "cached": 0 });
    let answers = json!([
        { "of": "Task one", "text": "done", "usage": much },
        { "of": "Task two", "text": "done", "usage": much },
    ]);
    let flow = r#"
[limits]
tokens = 8000
[[steps]]
id = "one"
role = "explorer"
task = "Task one"
[[steps]]
id = "two"
role = "explorer"
task = "Task two"
needs = ["one"]
"#;
    let ran = run(&shell, flow, &answers, &[]);
    assert_eq!(ran.code, 14, "{ran:?}");
    let result = ran.document();
    assert_eq!(result["code"], "BUDGET_REACHED");
    assert_eq!(result["error"]["message"], "the run reached its budget: it used 8500 tokens");
    let resume = result["resume_command"].as_str().expect("a command");
    assert_eq!(result["remediation"], format!("run {resume}, or more `limits` in an edited graph"));
}

/// Broken build: the words of a value are split, or read by a shell or by the template.
#[test]
fn a_value_is_one_word_of_a_command_whatever_is_in_it() {
    let shell = Shell::new(&[]);
    let flow = r#"
[params.word]
type = "string"
required = true
[[steps]]
id = "echo"
argv = ["printf", "%s|", "{{params.word}}", "end"]
"#;
    for word in [
        "a b",
        "$(touch hacked)",
        "`id`",
        "'; touch hacked; '",
        "{{params.word}}",
        "-n",
        "a\nb",
        "*",
        "\\",
        "é\u{7f}\"",
        "",
    ] {
        let params = shell.aside("params.json", &json!({ "word": word }).to_string()).display().to_string();
        let ran = run(&shell, flow, &json!([]), &["--params", &params, "--write"]);
        assert_eq!(ran.code, 0, "{word:?}: {ran:?}");
        let result = ran.document();
        assert_eq!(step(&result, "echo")["output"], format!("{word}|end|"), "{word:?}");
    }
    assert!(!shell.workspace().join("hacked").exists());
}

/// Broken builds: items wait for all items of the step before; a list that is too long is cut.
#[test]
fn a_step_runs_once_for_each_item_and_another_one_follows_it_item_by_item() {
    let shell = Shell::new(&[]);
    let flow = r#"
output = "{{steps.join.output}}"
[[steps]]
id = "list"
argv = ["printf", "one\ntwo\nthree\n"]
[[steps]]
id = "first"
argv = ["printf", "%s!", "{{item}}"]
needs = ["list"]
each = "{{steps.list.lines}}"
[[steps]]
id = "second"
argv = ["printf", "%s?", "{{steps.first.output}}"]
each = "@first"
[[steps]]
id = "join"
argv = ["printf", "%s", "{{steps.second.output}}"]
needs = ["second"]
"#;
    let ran = run(&shell, flow, &json!([]), &["--write"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let result = ran.document();
    assert_eq!(result["output"], json!(["one!?", "two!?", "three!?"]), "{result}");
    assert_eq!(result["counts"]["completed"], 8);
    let too_long = flow.replace("lines}}\"\n", "lines}}\"\nmax = 2\n");
    let shell = Shell::new(&[]);
    let ran = run(&shell, &too_long, &json!([]), &["--write"]);
    let result = ran.document();
    assert_eq!(step(&result, "first")["error"]["code"], "TOO_MANY_ITEMS", "{result}");
    assert!(!ends(&result).iter().any(|it| it.starts_with("first.")), "none of them ran: {result}");
}

/// Broken builds: a check of the agent's own counts; a step whose check fails is completed, or its files are adopted.
#[test]
fn pixir_itself_runs_the_checks_of_a_step_before_its_files_come_to_the_workspace() {
    let shell = Shell::new(&[("a.txt", "old\n")]);
    let flow = |check: &str| {
        format!(
            "[[steps]]\nid = \"edit\"\ntask = \"Write a.txt\"\ncheck = [[\"grep\", \"-q\", \"{check}\", \"a.txt\"]]\n"
        )
    };
    let answers = |_: ()| {
        json!([
            { "of": "Write a.txt", "calls": [{ "name": "write", "args": { "path": "a.txt", "content": "new\n" } }] },
            { "of": "Write a.txt", "text": "All checks passed. SUCCESS." },
        ])
    };
    let ran = run(&shell, &flow("nothing"), &answers(()), &["--write"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    let result = ran.document();
    assert_eq!(step(&result, "edit")["error"]["code"], "CHECK_FAILED", "{result}");
    assert_eq!(shell.read("a.txt"), "old\n", "its copy is not adopted");
    let shell = Shell::new(&[("a.txt", "old\n")]);
    let ran = run(&shell, &flow("new"), &answers(()), &["--write"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(shell.read("a.txt"), "new\n");
    assert_eq!(step(&ran.document(), "edit")["changes"], json!(["a.txt"]));
    let roots = fs::read_dir(shell.home().join("copies")).into_iter().flatten().flatten();
    let left: Vec<PathBuf> =
        roots.flat_map(|root| fs::read_dir(root.path()).into_iter().flatten().flatten()).map(|it| it.path()).collect();
    assert!(left.is_empty(), "no copy is left: {left:?}");
}

/// Broken build: a round begins with a new agent, or with files that are not those of the round before.
#[test]
fn a_step_repeats_in_the_same_session_until_its_check_passes() {
    let shell = Shell::new(&[("a.txt", "0\n")]);
    let flow = "[[steps]]\nid = \"fix\"\ntask = \"Make it right. The check said: {{last.checks}}\"\ncheck = [[\"grep\", \"right\", \"a.txt\"]]\nrepeat = { max = 3 }\n";
    let write = |text: &str| json!({ "name": "write", "args": { "path": "a.txt", "content": text } });
    let answers = json!([
        { "of": "Make it right", "calls": [write("wrong\n")] },
        { "of": "Make it right", "text": "Done." },
        { "of": "Make it right", "calls": [{ "name": "read", "args": { "path": "a.txt" } }] },
        { "of": "Make it right", "calls": [write("right\n")] },
        { "of": "Make it right", "text": "Now it is." },
    ]);
    let ran = run(&shell, flow, &answers, &["--write"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(shell.read("a.txt"), "right\n");
    let agents = shell.logs().len() - 1;
    assert_eq!(agents, 1, "one agent, in two rounds");
    let never = answers.as_array().expect("a list")[..2].to_vec();
    let more = Value::from([never.clone(), never.clone(), never].concat());
    let shell = Shell::new(&[("a.txt", "0\n")]);
    let ran = run(&shell, flow, &more, &["--write"]);
    assert_eq!(step(&ran.document(), "fix")["status"], "incomplete", "{ran:?}");
    assert_eq!(shell.read("a.txt"), "0\n");
}

/// Broken builds: an attempt is made for a code that is not named; a retry begins the whole run again.
#[test]
fn only_named_faults_are_tried_again() {
    let broken = json!({ "of": "Ask", "error": { "code": "INVALID_RESPONSE", "message": "broken" } });
    let answers = json!([broken, { "of": "Ask", "text": "At last." }]);
    let flow = |on: &str| {
        format!(
            "[[steps]]\nid = \"before\"\nargv = [\"touch\", \"before\"]\n[[steps]]\nid = \"ask\"\nrole = \"explorer\"\ntask = \"Ask\"\nneeds = [\"before\"]\nretry = {{ times = 2{on} }}\n"
        )
    };
    let shell = Shell::new(&[]);
    let ran = run(&shell, &flow(", on = [\"INVALID_RESPONSE\"]"), &answers, &["--write"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(step(&ran.document(), "ask")["attempt"], 2);
    let log = log(&shell);
    assert_eq!(events(&log).iter().filter(|it| *it == "step_started before").count(), 1);
    let shell = Shell::new(&[]);
    let ran = run(&shell, &flow(""), &answers, &["--write"]);
    assert_eq!((ran.code, step(&ran.document(), "ask")["attempt"].is_null()), (9, true), "{ran:?}");
}

/// Broken builds: a workflow of the workspace runs before it is trusted, or after it changed; a file that the user names
/// needs trust.
#[test]
fn workflows_of_an_untrusted_workspace_are_listed_and_checked_and_do_not_run() {
    let shell = Shell::new(&[]);
    let text = "version = 1\ndescription = \"touches\"\n[[steps]]\nid = \"t\"\nargv = [\"touch\", \"hacked\"]\n";
    shell.write(".pixir/workflows/evil.toml", text);
    let list = shell.run(["workflow", "list", "--json"]).document();
    let evil = list["workflows"].as_array().expect("a list").iter().find(|it| it["name"] == "evil").expect("listed");
    assert_eq!((&evil["standing"]["is"], &evil["origin"]), (&json!("new"), &json!("workspace")), "{evil}");
    assert_eq!(shell.run(["workflow", "validate", "evil"]).code, 0);
    let ran = shell.run(["workflow", "run", "evil", "--write"]);
    assert_eq!(ran.code, 10, "{ran:?}");
    assert!(ran.stderr.contains("WORKSPACE_UNTRUSTED") && !shell.workspace().join("hacked").exists(), "{ran:?}");
    assert_eq!(shell.run(["workflow", "run", "evil", "--write", "--trust-workspace"]).code, 0);
    assert!(shell.workspace().join("hacked").exists());
    for name in ["fix-and-verify", "review-diff", "migrate-each"] {
        assert_eq!(shell.run(["workflow", "validate", name]).code, 0, "{name} ships without a fault");
    }
    assert_eq!(
        shell.run(["workflow", "run", ".pixir/workflows/evil.toml", "--write"]).code,
        0,
        "a named file is trusted"
    );
}

/// Broken builds: a workflow that is used names one of its faults; a schema with a type that does not exist passes; files that
/// no glob shares count as shared; a step that cannot be read makes faults of those that need it.
#[test]
fn faults_of_other_workflows_schemas_and_files_are_named_and_nothing_else_is() {
    let shell = Shell::new(&[]);
    shell.write(
        ".pixir/workflows/inner.toml",
        "version = 1\n[[steps]]\nid = \"x\"\nargv = []\n[[steps]]\nid = \"y\"\ntusk = \"Look\"\n",
    );
    let flow = r#"
output = "{{steps.gone.output}}"
[[steps]]
id = "use"
use = "inner"
[[steps]]
id = "after"
argv = ["echo", "{{steps.use.output}}"]
needs = ["use"]
[[steps]]
id = "rust"
task = "Write"
writes = ["**/*.rs"]
schema = { type = "object", properties = { n = { type = "strng" } }, required = ["m"] }
[[steps]]
id = "docs"
task = "Write"
writes = ["docs/*.md", "src/**"]
"#;
    let path = file(&shell, flow).display().to_string();
    let ran = shell.run(["workflow", "validate", &path, "--json", "--trust-workspace"]);
    assert_eq!(ran.code, 10, "{ran:?}");
    let faults = ran.document()["faults"].clone();
    let faults = faults.as_array().expect("a list");
    let read: Vec<String> =
        faults.iter().map(|it| format!("{} {} {}", it["line"], text(&it["at"]), text(&it["message"]))).collect();
    for wanted in [
        "4 output `steps.gone.output`: the graph has no step `gone`",
        "7 steps.use.use in `inner`: line 4, steps.x.argv",
        "7 steps.use.use in `inner`: line 6",
        "16 steps.rust.schema.properties.n.type there is no type `strng`",
        "16 steps.rust.schema.required there is no property `m`",
        "20 steps.docs.writes `rust` writes **/*.rs, and `docs` writes src/**",
    ] {
        assert!(read.iter().any(|it| it.starts_with(wanted)), "{wanted}: {read:#?}");
    }
    assert!(!read.iter().any(|it| it.contains("docs/*.md") || it.contains("steps.after")), "{read:#?}");
}

/// Broken builds: a kind that does not exist hides the other faults of its step; `run` names one fault and no way to the others; an
/// answer that a gate does not offer is taken for none; a plan says nothing of the tasks of items that are known.
#[test]
fn a_newcomer_is_told_every_mistake_of_a_file_and_of_an_answer() {
    let shell = Shell::new(&[]);
    let flow =
        "[[steps]]\nid = \"join\"\nkind = \"agents\"\nneed = [\"look\"]\ntask = \"Join: {{steps.look.output}}\"\n";
    let path = file(&shell, flow).display().to_string();
    let told = shell.run(["workflow", "validate", &path]).stdout;
    for part in ["there is no `agents`", "there is no `need` here. Use: needs", "steps.look.output"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    let refused = shell.run(["workflow", "run", &path]);
    assert_eq!(refused.code, 10, "{refused:?}");
    assert!(
        refused.stderr.contains("pixir workflow validate") && refused.stderr.contains("every fault"),
        "{refused:?}"
    );

    let flow = "[params.files]\ntype = \"list\"\ndefault = [\"a.md\", \"b.md\"]\n[[steps]]\nid = \"look\"\nargv = [\"test\", \"-n\", \"{{item}}\"]\neach = \"{{params.files}}\"\n[[steps]]\nid = \"ship\"\nask = \"Ship it?\"\nneeds = [\"look\"]\n";
    let path = file(&shell, flow).display().to_string();
    let plan = shell.run(["workflow", "run", &path, "--dry-run"]).stdout;
    assert!(plan.contains("test -n a.md (and 1 more)"), "{plan}");
    assert_eq!(run(&shell, flow, &json!([]), &["--write"]).code, 13);
    let wrong = resume(&shell, &json!([]), &["--answer", "ship=yess"]);
    assert_eq!(wrong.code, 2, "{wrong:?}");
    assert!(wrong.stdout.contains("one of: yes, no") || wrong.stderr.contains("one of: yes, no"), "{wrong:?}");
    let nothing = resume(&shell, &json!([]), &["--answer", "look=yes"]);
    assert!(format!("{}{}", nothing.stdout, nothing.stderr).contains("asks nothing"), "{nothing:?}");
    assert_eq!(resume(&shell, &json!([]), &["--answer", "ship=yes"]).code, 0);
}

/// Broken builds: of two circles, or of three broken lines, one is named; a step has fewer items than the one it follows; a choice
/// that its parameter cannot take is no fault.
#[test]
fn every_circle_and_every_broken_line_of_a_file_is_named_at_once() {
    let shell = Shell::new(&[]);
    let faults = |flow: &str| -> Vec<String> {
        let path = file(&shell, flow).display().to_string();
        let ran = shell.run(["workflow", "validate", &path, "--json"]);
        assert_eq!(ran.code, 10, "{ran:?}");
        let all = ran.document()["faults"].as_array().expect("a list").clone();
        all.iter().map(|it| format!("{} {} {}", it["line"], text(&it["at"]), text(&it["message"]))).collect()
    };
    let step = |id: &str, needs: &str| format!("[[steps]]\nid = \"{id}\"\nargv = [\"true\"]\nneeds = [{needs}]\n");
    let circles = [
        step("a", "\"b\""),
        step("b", "\"a\", \"c\""),
        step("c", "\"b\""),
        step("d", "\"d\""),
        step("e", "\"f\", \"a\""),
        step("f", "\"e\""),
    ];
    let read = faults(&circles.concat());
    for (one, other) in
        [("a → b → a", "b → a → b"), ("b → c → b", "c → b → c"), ("d → d", "d → d"), ("e → f → e", "f → e → f")]
    {
        let named = read.iter().filter(|it| it.ends_with(&format!(": {one}")) || it.ends_with(&format!(": {other}")));
        assert_eq!(named.count(), 1, "{one}: {read:#?}");
    }
    assert_eq!(read.len(), 4, "{read:#?}");

    let broken = "description = \n[[steps]]\nid = a\nargv = [\"true\"]\n[[steps]\nid = \"b\"\n";
    let lines: Vec<String> = faults(broken).iter().map(|it| it.split(' ').next().unwrap_or("").to_owned()).collect();
    assert_eq!(lines, ["3", "5", "7"]);

    let read = faults(
        "[params.n]\ntype = \"number\"\nenum = [1, \"two\"]\n[[steps]]\nid = \"list\"\nargv = [\"true\"]\neach = \"{{params.n}}\"\nmax = 50\n[[steps]]\nid = \"next\"\nargv = [\"true\"]\neach = \"@list\"\nmax = 20\n",
    );
    assert_eq!(
        read,
        ["5 params.n.enum `two` is no number", "15 steps.next.max it has as many items as `list`, which can have 50",]
    );
}

/// Broken build: of several faults of its parameters, or of the graph of a model, one is named and the others are counted.
#[test]
fn a_user_and_a_model_read_every_fault_of_what_they_wrote() {
    let shell = Shell::new(&[]);
    let flow = "[params.n]\ntype = \"number\"\nrequired = true\n[params.c]\ntype = \"string\"\ndefault = \"a\"\nenum = [\"a\", \"b\"]\n[[steps]]\nid = \"one\"\nargv = [\"true\"]\n";
    let path = file(&shell, flow).display().to_string();
    let ran = shell.run(["workflow", "run", &path, "-p", "c=z", "-p", "x=1"]);
    assert_eq!(ran.code, 10, "{ran:?}");
    for part in [
        "the graph has no parameter `x`",
        "`n` is missing",
        "`z` is none of: a, b",
        "-p NAME=VALUE gives one its value",
    ] {
        assert!(ran.stderr.contains(part), "{part}: {ran:?}");
    }
    let graph = json!({ "version": 1, "steps": [
        { "id": "one", "argv": ["true"], "needs": ["tow"] },
        { "id": "two", "task": "Look", "role": "explorr" },
    ] });
    let steps = json!([{ "calls": [{ "name": "run_workflow", "args": { "graph": graph } }] }, { "text": "I see." }]);
    let model = script(&shell, &steps);
    let args = ["go", "--headless", "--write", "--json"].into_iter();
    let ran = shell.run(args.chain(model.iter().map(String::as_str)));
    let log = shell.logs().iter().flat_map(|path| entries(path)).find(|it| it["type"] == "tool_result");
    let read = log.expect("a result")["data"]["output"].to_string();
    for part in ["the graph has no step `tow`", "Use: two", "there is no role `explorr`"] {
        assert!(read.contains(part), "{part}: {read}: {ran:?}");
    }
}
