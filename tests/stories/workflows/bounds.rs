//! What a run may do, and what it says when it may not: limits, checks, other workflows, models.

use std::fs;

use serde_json::{Value, json};

use super::{ends, events, file, log, resume, run, script, step};
use crate::hosted::Hosted;
use crate::shell::{Shell, entries};

/// A workflow of the user.
pub(super) fn of_user(shell: &Shell, name: &str, text: &str) {
    let folder = shell.home().parent().expect("a parent").join(".config/pixir/workflows");
    fs::create_dir_all(&folder).expect("mkdir");
    fs::write(folder.join(format!("{name}.toml")), format!("version = 1\n{text}")).expect("write");
}

/// Broken builds: a run that reached its limit of failed steps is a partial failure; a step begins after it.
#[test]
fn a_run_that_has_too_many_failed_steps_ends_at_a_limit() {
    let shell = Shell::new(&[]);
    let flow = "[limits]\nfailures = 2\nconcurrency = 1\n[[steps]]\nid = \"a\"\nargv = [\"false\"]\n[[steps]]\nid = \"b\"\nargv = [\"false\"]\n[[steps]]\nid = \"c\"\nargv = [\"touch\", \"c\"]\n";
    let ran = run(&shell, flow, &json!([]), &["--write"]);
    let result = ran.document();
    assert_eq!((ran.code, &result["status"], &result["code"]), (14, &json!("incomplete"), &json!("TOO_MANY_FAILURES")));
    assert_eq!(ends(&result), ["a failed", "b failed", "c held"], "{result}");
    assert_eq!((&step(&result, "c")["by"], shell.workspace().join("c").exists()), (&json!("limit"), false));
    let shell = Shell::new(&[]);
    let all_began = flow.replace("concurrency = 1\n", "").replace("\"touch\", \"c\"", "\"false\"");
    assert_eq!(run(&shell, &all_began, &json!([]), &["--write"]).code, 1, "no step was kept from running");
}

/// Broken builds: the limits of a workflow that is used count for nothing, or end the whole run.
#[test]
fn the_limits_of_a_workflow_that_is_used_hold_for_its_steps() {
    let shell = Shell::new(&[]);
    let meets = |own: &str, other: &str| {
        format!(
            "[[steps]]\nid = \"{own}\"\nargv = [\"sh\", \"-c\", \"touch {own}; if [ -e {other} ]; then exit 1; fi; sleep 0.1; rm {own}\"]\n"
        )
    };
    of_user(&shell, "alone", &format!("[limits]\nconcurrency = 1\n{}{}", meets("x", "y"), meets("y", "x")));
    let ran = run(&shell, "[[steps]]\nid = \"both\"\nuse = \"alone\"\n", &json!([]), &["--write"]);
    assert_eq!(ran.code, 0, "one at a time: {ran:?}");

    let much = json!({ "input": 900, "output": 200, "cached": 0 });
    let asks = |n: u32| format!("[[steps]]\nid = \"q{n}\"\nrole = \"explorer\"\ntask = \"Task {n}.\"\n");
    let two = format!("{}needs = [\"q1\"]\n", asks(2));
    of_user(&shell, "dear", &format!("[limits]\ntokens = 1000\n{}{two}", asks(1)));
    let flow = format!(
        "[[steps]]\nid = \"in\"\nuse = \"dear\"\n{}[[steps]]\nid = \"last\"\nargv = [\"touch\", \"last\"]\nneeds = [\"q3\"]\n",
        asks(3)
    );
    let answers: Vec<Value> =
        (1..4).map(|n| json!({ "of": format!("Task {n}."), "text": "done", "usage": much })).collect();
    let ran = run(&shell, &flow, &Value::from(answers), &["--write"]);
    let result = ran.document();
    assert_eq!((ran.code, &result["code"]), (14, &json!("BUDGET_REACHED")), "{result}");
    let held = step(&result, "in/q2");
    assert_eq!((&held["status"], &held["by"]), (&json!("held"), &json!("limit")), "{result}");
    assert!(shell.workspace().join("last").exists(), "the other steps of the run go on: {result}");

    of_user(
        &shell,
        "weak",
        "[limits]\nfailures = 1\n[[steps]]\nid = \"bad\"\nargv = [\"false\"]\non_fail = \"continue\"\n[[steps]]\nid = \"next\"\nargv = [\"touch\", \"next\"]\nneeds = [\"bad\"]\n",
    );
    let ran = run(&shell, "[[steps]]\nid = \"in\"\nuse = \"weak\"\n", &json!([]), &["--write"]);
    assert_eq!((ran.code, &ran.document()["code"]), (14, &json!("TOO_MANY_FAILURES")), "{ran:?}");
    assert!(!shell.workspace().join("next").exists());

    of_user(
        &shell,
        "slow",
        "[limits]\nseconds = 1\n[[steps]]\nid = \"long\"\nargv = [\"sleep\", \"600\"]\n[[steps]]\nid = \"next\"\nargv = [\"true\"]\nneeds = [\"long\"]\n",
    );
    let ran = run(&shell, "[[steps]]\nid = \"in\"\nuse = \"slow\"\n", &json!([]), &["--write"]);
    assert_eq!(step(&ran.document(), "in/long")["status"], "timed_out", "{ran:?}");
}

/// Broken builds: the result has only the exit code of a command that failed; stderr is taken for its output.
#[test]
fn the_end_of_what_a_failed_command_wrote_to_stderr_is_in_the_result() {
    let shell = Shell::new(&[]);
    let flow = "[[steps]]\nid = \"make\"\nargv = [\"sh\", \"-c\", \"echo out; yes noise | head -c 9000 >&2; echo; echo 'no rule to make target x' >&2; exit 2\"]\n";
    let ran = run(&shell, flow, &json!([]), &["--write"]);
    let result = ran.document();
    let make = step(&result, "make");
    assert_eq!((ran.code, &make["exit_code"], &make["output"]), (1, &json!(2), &json!("out")), "{result}");
    let stderr = make["stderr"].as_str().expect("stderr");
    assert!(stderr.ends_with("no rule to make target x") && stderr.len() <= 2048, "{}", stderr.len());
    assert_eq!(make["error"]["message"], "it exited with 2: no rule to make target x");
}

/// Broken builds: a graph that uses an untrusted one runs, or is said to be faulty; it cannot be validated before.
#[test]
fn a_workflow_that_uses_an_untrusted_one_does_not_run_before_it_is_trusted() {
    let shell = Shell::new(&[]);
    shell.write(".pixir/workflows/evil.toml", "version = 1\n[[steps]]\nid = \"t\"\nargv = [\"touch\", \"hacked\"]\n");
    let path = file(&shell, "[[steps]]\nid = \"in\"\nuse = \"evil\"\n").display().to_string();
    assert_eq!(shell.run(["workflow", "validate", &path]).code, 0);
    for dry in [&["--write"][..], &["--dry-run"]] {
        let ran = shell.run(["workflow", "run", &path].into_iter().chain(dry.iter().copied()));
        assert_eq!(ran.code, 10, "{ran:?}");
        assert!(ran.stderr.contains("WORKSPACE_UNTRUSTED") && ran.stderr.contains("evil"), "{ran:?}");
    }
    assert!(!shell.workspace().join("hacked").exists() && shell.logs().is_empty());
    assert_eq!(shell.run(["workflow", "run", &path, "--write", "--trust-workspace"]).code, 0);
    assert!(shell.workspace().join("hacked").exists());
}

/// Broken builds: a check that may not run is a failure of its step; the resume runs the command, or the agent, once more.
#[test]
fn a_check_that_may_not_run_holds_its_step_and_a_resume_only_checks() {
    let shell = Shell::new(&[("a.txt", "alpha\n")]);
    let flow = "[[steps]]\nid = \"count\"\nargv = [\"wc\", \"-c\", \"a.txt\"]\ncheck = [[\"touch\", \"checked\"]]\n[[steps]]\nid = \"look\"\nrole = \"explorer\"\ntask = \"Look\"\ncheck = [[\"touch\", \"seen\"]]\n[[steps]]\nid = \"say\"\nargv = [\"printf\", \"%s\", \"{{steps.count.output}}\"]\nneeds = [\"count\", \"look\"]\n";
    let answers = json!([{ "of": "Look", "text": "Seen." }]);
    let ran = run(&shell, flow, &answers, &[]);
    let result = ran.document();
    assert_eq!((ran.code, &result["status"]), (12, &json!("held")), "{result}");
    assert_eq!(ends(&result), ["count held", "look held", "say held"], "{result}");
    assert!(step(&result, "count")["why"].as_str().is_some_and(|it| it.contains("touch checked")), "{result}");
    let dry = shell.run(["workflow", "resume", "last", "--dry-run", "--json"]).document();
    assert_eq!(dry["steps"][0]["why"], "its command has run; its checks are left", "{dry}");
    let ran = resume(&shell, &json!([]), &["--write"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(shell.workspace().join("checked").exists() && shell.workspace().join("seen").exists());
    assert_eq!(step(&ran.document(), "say")["output"], "6 a.txt", "what it put out is kept");
    let log = log(&shell);
    let began = |id: &str| events(&log).iter().filter(|it| **it == format!("step_started {id}")).count();
    assert_eq!((began("count"), began("look")), (1, 1), "neither ran twice: {:?}", events(&log));
}

/// Broken builds: a resume ends where the run was to end; it goes on to the end although that is not reached yet.
#[test]
fn a_run_up_to_a_step_goes_on_to_the_end_when_it_is_resumed() {
    let flow = "[[steps]]\nid = \"a\"\nargv = [\"touch\", \"a\"]\n[[steps]]\nid = \"b\"\nargv = [\"test\", \"-e\", \"go\"]\nneeds = [\"a\"]\n[[steps]]\nid = \"c\"\nargv = [\"touch\", \"c\"]\nneeds = [\"b\"]\n";
    let shell = Shell::new(&[]);
    assert_eq!(run(&shell, flow, &json!([]), &["--write", "--until", "b"]).code, 9);
    shell.write("go", "");
    let ran = resume(&shell, &json!([]), &["--write"]);
    assert_eq!((ran.code, ends(&ran.document())), (0, vec!["a completed".to_owned(), "b completed".to_owned()]));
    assert!(!shell.workspace().join("c").exists(), "what was wanted is `b`");
    let dry = shell.run(["workflow", "resume", "last", "--dry-run", "--json"]).document();
    let verdicts: Vec<&Value> = dry["steps"].as_array().expect("a list").iter().map(|it| &it["verdict"]).collect();
    assert_eq!(verdicts, ["reuse", "reuse", "run"], "{dry}");
    let ran = resume(&shell, &json!([]), &["--write"]);
    assert_eq!((ran.code, &ran.document()["work_complete"]), (0, &json!(true)), "{ran:?}");
    assert!(shell.workspace().join("c").exists());
}

/// Broken build: a graph of commands needs a model because it is a graph of the user's own.
#[test]
fn a_graph_without_agents_goes_on_without_a_model() {
    let shell = Shell::new(&[]);
    let flow = "[[steps]]\nid = \"ask\"\nrole = \"explorer\"\ntask = \"Look\"\n[[steps]]\nid = \"b\"\nargv = [\"test\", \"-e\", \"go\"]\n";
    assert_eq!(run(&shell, flow, &json!([{ "of": "Look", "text": "Seen." }]), &["--write"]).code, 9);
    let edited = shell.aside("edited.toml", "version = 1\nname = \"flow\"\n[[steps]]\nid = \"b\"\nargv = [\"true\"]\n");
    let edited = edited.display().to_string();
    let ran = shell.run(["workflow", "resume", "last", "--file", &edited, "--write", "--json"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let ran = shell.run(["workflow", "resume", "last", "--json"]);
    assert_eq!((ran.code, &ran.document()["counts"]["reused"]), (0, &json!(1)), "{ran:?}");
}

/// Broken builds: a workflow of a skill is not found by its name; its run has another name when it is resumed.
#[test]
fn a_workflow_of_a_skill_has_the_name_of_both() {
    let shell = Shell::new(&[]);
    let folder = shell.home().parent().expect("a parent").join(".config/pixir/skills/release");
    fs::create_dir_all(folder.join("workflows")).expect("mkdir");
    fs::write(folder.join("SKILL.md"), "---\nname: release\ndescription: Releases\n---\nRelease.\n").expect("write");
    let text = "version = 1\n[[steps]]\nid = \"say\"\nargv = [\"printf\", \"%s\", \"{{run.name}}\"]\n[[steps]]\nid = \"b\"\nargv = [\"test\", \"-e\", \"go\"]\n";
    fs::write(folder.join("workflows/ship.toml"), text).expect("write");
    let model = script(&shell, &json!([]));
    let go = |args: &[&str]| shell.run(args.iter().copied().chain(model.iter().map(String::as_str)));
    let ran = go(&["workflow", "run", "release/ship", "--write", "--json"]);
    let result = ran.document();
    assert_eq!(
        (ran.code, &result["workflow"], &step(&result, "say")["output"]),
        (9, &json!("release/ship"), &json!("release/ship"))
    );
    let dry = shell.run(["workflow", "resume", "last", "--dry-run", "--json"]).document();
    assert_eq!(dry["steps"][0]["verdict"], "reuse", "its name is the same: {dry}");
    let shell = &shell;
    let path = file(shell, "[[steps]]\nid = \"in\"\nuse = \"release/ship\"\n").display().to_string();
    shell.write("go", "");
    let ran = go(&["workflow", "run", &path, "--write", "--json"]);
    assert_eq!(ran.code, 0, "a step can use it: {ran:?}");
}

/// Broken builds: the approval binds only the graph, so that another workflow or role than the one on the card runs; a workflow that
/// nobody touched is refused too.
#[test]
fn a_workflow_or_role_that_changes_while_its_use_is_approved_does_not_run() {
    let graph = json!({ "version": 1, "name": "outer", "steps": [
        { "id": "in", "use": "inner" },
        { "id": "look", "role": "careful", "task": "Look", "needs": ["in"] },
    ] });
    let role = |word: &str| format!("---\nname: careful\ndescription: {word}\nmode: read-only\n---\nLook.\n");
    for changed in ["workflow", "role", "nothing"] {
        let shell = Shell::new(&[]);
        of_user(&shell, "inner", "[[steps]]\nid = \"a\"\nargv = [\"touch\", \"harmless\"]\n");
        let roles = shell.home().parent().expect("a parent").join(".config/pixir/agents");
        fs::create_dir_all(&roles).expect("mkdir");
        fs::write(roles.join("careful.md"), role("Careful.")).expect("write");
        let answers = json!({ "steps": [
            { "calls": [{ "name": "run_workflow", "args": { "graph": graph, "wait": true } }] },
            { "of": "Look", "text": "Seen." },
            { "text": "Understood." },
        ] });
        let mut host = Hosted::start(&shell, &answers, &[]);
        host.ask("go", json!({ "type": "prompt", "text": "run it" }));
        let asked = host.event("approval_requested");
        assert!(asked.to_string().contains("touch harmless"), "the card shows the command: {asked}");
        match changed {
            "workflow" => of_user(&shell, "inner", "[[steps]]\nid = \"a\"\nargv = [\"touch\", \"harmful\"]\n"),
            "role" => fs::write(roles.join("careful.md"), role("Careless.")).expect("write"),
            _ => {}
        }
        let allow = |call: &Value| json!({ "type": "decide", "call_id": call, "decision": { "answer": "allow" } });
        host.ask("yes", allow(&asked["data"]["call_id"]));
        if changed == "nothing" {
            let asked = host.event("approval_requested");
            let input = allow(&asked["data"]["call_id"]);
            let path = &asked["data"]["agent"]["path"];
            let answered = host.ask("step", json!({ "type": "to_agent", "path": path, "input": input }));
            assert_eq!(answered["ok"], true, "{answered}");
        }
        let (result, _) = host.end();
        let there = |path: &str| shell.workspace().join(path).exists();
        assert_eq!((there("harmless"), there("harmful")), (changed == "nothing", false), "{changed}: {result}");
        let root = shell.logs().iter().map(|path| entries(path)).find(|log| log[0]["data"]["parent"].is_null());
        let root = root.expect("the session");
        let told = root.iter().find(|it| it["type"] == "tool_result").expect("a result")["data"].to_string();
        assert_eq!(told.contains("has changed since"), changed != "nothing", "{changed}: {told}");
        assert_eq!(told.contains("PREVIEW_STALE"), changed != "nothing", "{changed}: {told}");
    }
}

/// Broken builds: a graph has more steps, or a file more bytes, than the guide says; the graph of a model is as large as a file.
#[test]
fn a_graph_that_is_too_large_is_refused() {
    let shell = Shell::new(&[]);
    let steps = |n: usize| (0..n).map(|n| format!("[[steps]]\nid = \"s{n}\"\nargv = [\"true\"]\n")).collect::<String>();
    let validate = |text: &str| {
        let path = file(&shell, text).display().to_string();
        let ran = shell.run(["workflow", "validate", &path]);
        (ran.code, format!("{}{}", ran.stdout, ran.stderr))
    };
    assert_eq!(validate(&steps(200)).0, 0);
    let (code, told) = validate(&steps(201));
    assert!(code == 10 && told.contains("from 1 to 200 steps"), "{told}");
    let (code, told) = validate(&format!("# {}\n{}", "x".repeat(256 << 10), steps(1)));
    assert!(code == 10 && told.contains("larger than 256 KB"), "{told}");
    let graph = |n: usize| {
        let steps: Vec<Value> = (0..n).map(|n| json!({ "id": format!("s{n}"), "argv": ["true"] })).collect();
        json!({ "name": "run_workflow", "args": { "graph": { "version": 1, "steps": steps }, "wait": true } })
    };
    let answers = json!([{ "calls": [graph(65)] }, { "calls": [graph(64)] }, { "text": "Done." }]);
    let model = script(&shell, &answers);
    let args = ["go", "--headless", "--write", "--json"].into_iter();
    assert_eq!(shell.run(args.chain(model.iter().map(String::as_str))).code, 0);
    let all: Vec<Value> = shell.logs().iter().flat_map(|path| entries(path)).collect();
    let read: Vec<&str> = all
        .iter()
        .filter(|it| it["type"] == "tool_result" && it["data"]["output"].to_string().contains("workflow"))
        .filter_map(|it| it["data"]["output"].as_str())
        .collect();
    assert!(read.iter().any(|it| it.contains("the graph has 65 steps")), "{read:?}");
    assert!(all.iter().any(|it| it["data"]["event"] == "step_ended" && it["data"]["id"] == "s63"), "64 steps run");
}
