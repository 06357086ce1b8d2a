//! Steps whose work was refused: they are held, their keys keep no result, and what the run names goes on.

use serde_json::{Value, json};

use super::bounds::of_user;
use super::{ends, events, log, resume, run, step, typed};
use crate::hosted::Hosted;
use crate::shell::Shell;
use crate::stories::agents::spawn;

fn writes(of: &str) -> Value {
    json!({ "of": of, "calls": [{ "name": "write", "args": { "path": "made.txt", "content": "made\n" } }] })
}

fn says(of: &str) -> Value {
    json!({ "of": of, "text": "It is done." })
}

/// Steps with an agent whose only write is refused: what the file says besides, flags, what the run names first besides the
/// command that resumes it, and how the steps end.
const HELD: [(&str, &str, &[&str], &str, &str); 9] = [
    ("alone", "", &[], " --write", "one held, next held"),
    ("in the workspace itself", "isolation = \"shared\"\n", &[], " --write", "one held, next held"),
    ("with a check", "check = [[\"test\", \"-e\", \"made.txt\"]]\n", &[], " --write", "one held, next held"),
    ("in rounds", "repeat = { max = 3 }\n", &[], " --write", "one held, next held"),
    ("tried again", "retry = { times = 2 }\n", &[], " --write", "one held, next held"),
    ("what needs it runs all the same", "on_fail = \"continue\"\n", &[], " --write", "one held, next held"),
    ("for each item", "each = \"{{params.list}}\"\n", &[], " --write", "one.1 held, next held"),
    ("in a mode that asks", "", &["--mode", "ask"], " --allow 'files()'", "one held, next held"),
    ("by a role that reads", "role = \"explorer\"\n", &["--write"], " --write", "one held, next held"),
];

/// Broken builds: the step is completed, and its key keeps a result without the work; it is failed by its check; the run ends
/// as a success, or names nothing that permits the call; what needs the step runs.
#[test]
fn a_step_whose_agent_was_refused_is_held_and_a_resume_does_it() {
    for (about, more, flags, next, expected) in HELD {
        let shell = Shell::new(&[]);
        let flow = format!(
            "[params.list]\ntype = \"list\"\ndefault = [\"x\"]\n[[steps]]\nid = \"one\"\ntask = \"Write it\"\n{more}\
             [[steps]]\nid = \"next\"\nargv = [\"touch\", \"next\"]\nneeds = [\"one\"]\n"
        );
        let answers = json!([writes("Write it"), says("Write it")]);
        let ran = run(&shell, &flow, &answers, flags);
        let result = ran.document();
        let found: Vec<String> = ends(&result);
        let wanted: Vec<&str> = expected.split(", ").collect();
        assert!(wanted.iter().all(|it| found.iter().any(|found| found == it)), "{about}: {found:?} {result}");
        assert_eq!((ran.code, &result["status"]), (12, &json!("held")), "{about}: {result}");
        assert_eq!((&result["code"], &result["work_complete"]), (&json!("WORKFLOW_HELD"), &json!(false)), "{about}");
        let denials = result["denials"].as_array().expect("a list");
        assert_eq!(denials.len(), 1, "{about}: {result}");
        assert!(denials[0]["call"].as_str().is_some_and(|it| it.contains("made.txt")), "{about}: {result}");
        let of_step = step(&result, wanted[0].split(' ').next().expect("an id"));
        assert_eq!(of_step["denials"].as_array().map(Vec::len), Some(1), "{about}: {of_step}");
        let events = events(&log(&shell));
        assert!(!events.iter().any(|it| it.starts_with("step_ended one")), "{about}: no result: {events:?}");
        let first = result["next_actions"].as_array().expect("a list").iter().filter_map(Value::as_str);
        let first =
            first.into_iter().find(|it| it.starts_with("pixir workflow resume")).expect("it goes on").to_owned();
        assert!(first.contains(next), "{about}: {first}");
        assert!(result["remediation"].as_str().is_some_and(|it| it.contains(&first)), "{about}: {result}");
        assert!(!shell.workspace().join("next").exists(), "{about}");
        if about == "by a role that reads" {
            continue;
        }
        let line = format!(
            "{first} --json --provider script:{}",
            shell.aside("script.json", &json!({ "steps": answers }).to_string()).display()
        );
        let again = typed(&shell, &line);
        let done = again.document();
        if next == " --write" {
            assert_eq!((again.code, &done["work_complete"]), (0, &json!(true)), "{about}: {done}");
            assert_eq!(shell.read("made.txt"), "made\n", "{about}");
            assert!(shell.workspace().join("next").exists(), "{about}");
        } else {
            // What is allowed is one thing; the next command of a mode that asks is another.
            assert_eq!(step(&done, "one")["status"], "held", "the files wait in a copy for mode auto: {done}");
        }
    }
}

/// Broken builds: the user's word for a step of which calls were refused leaves its output out; it is asked about again.
#[test]
fn the_user_takes_the_work_of_a_refused_agent_as_done_with_what_it_said() {
    let shell = Shell::new(&[]);
    let flow = "[[steps]]\nid = \"look\"\nrole = \"explorer\"\ntask = \"Write it\"\n\
                [[steps]]\nid = \"say\"\nargv = [\"printf\", \"%s\", \"{{steps.look.output}}\"]\nneeds = [\"look\"]\n";
    let answers = json!([writes("Write it"), says("Write it")]);
    let ran = run(&shell, flow, &answers, &["--write"]);
    assert_eq!(ran.code, 12, "{ran:?}");
    let next = ran.document()["next_actions"].as_array().expect("a list").clone();
    let done = next.iter().filter_map(Value::as_str).find(|it| it.ends_with("--done look")).expect("it may be enough");
    let provider = format!("script:{}", shell.aside("script.json", "{\"steps\": []}").display());
    let again = typed(&shell, &format!("{done} --json --provider {provider}"));
    let result = again.document();
    assert_eq!((again.code, &step(&result, "say")["output"]), (0, &json!("It is done.")), "{result}");
}

/// Broken build: what an agent did before it was refused is done once more, unasked.
#[test]
fn what_a_refused_agent_did_in_the_workspace_is_not_done_twice_unasked() {
    let shell = Shell::new(&[("bill", "")]);
    assert_eq!(shell.run(["permissions", "add", "bash(touch *)", "--deny"]).code, 0);
    let flow = "[[steps]]\nid = \"pay\"\nisolation = \"shared\"\ntask = \"Pay\"\n";
    let bash = |command: &str| json!({ "name": "bash", "args": { "command": command } });
    let answers = json!([
        { "of": "Pay", "calls": [bash("echo paid >> bill"), bash("touch receipt")] },
        says("Pay"),
    ]);
    let ran = run(&shell, flow, &answers, &["--write"]);
    assert_eq!((ran.code, shell.read("bill").as_str()), (12, "paid\n"), "{ran:?}");
    let ran = resume(&shell, &answers, &["--write"]);
    let result = ran.document();
    assert_eq!((ran.code, ends(&result)), (13, vec!["pay waiting".to_owned()]), "{result}");
    assert_eq!(shell.read("bill"), "paid\n");
    let first = result["next_actions"][0].as_str().expect("a command");
    assert!(first.ends_with("--done pay"), "the first suggestion pays nothing twice: {first}");
}

/// Protected files of several groups, which a command may write where the user keeps them.
///
/// Broken build: what the command did was taken back, and its step is completed.
#[test]
fn a_command_whose_protected_files_were_put_back_has_not_done_its_work() {
    for path in [".vscode/settings.json", ".github/workflows/ci.yml", "AGENTS.md", ".envrc", ".pixir/config.toml"] {
        let shell = Shell::new(&[]);
        let folder = path.rsplit_once('/').map_or(".", |(folder, _)| folder);
        let flow = format!(
            "[[steps]]\nid = \"one\"\nargv = [\"sh\", \"-c\", \"echo x >> made; mkdir -p {folder}; echo x > {path}\"]\n\
             [[steps]]\nid = \"next\"\nargv = [\"touch\", \"next\"]\nneeds = [\"one\"]\n"
        );
        let ran = run(&shell, &flow, &json!([]), &["--write"]);
        let result = ran.document();
        assert_eq!(
            (ran.code, ends(&result)),
            (12, vec!["one held".to_owned(), "next held".to_owned()]),
            "{path}: {result}"
        );
        assert!(!shell.workspace().join(path).exists(), "{path}");
        assert!(result["denials"][0]["reason"].as_str().is_some_and(|it| it.contains(path)), "{path}: {result}");
        let asked = resume(&shell, &json!([]), &["--write"]);
        assert_eq!(
            (asked.code, shell.read("made").as_str()),
            (13, "x\n"),
            "{path}: the rest is not done twice: {asked:?}"
        );
        let done = resume(&shell, &json!([]), &["--write", "--done", "one"]);
        assert_eq!((done.code, shell.read("made").as_str()), (0, "x\n"), "{path}: {done:?}");
    }
}

/// Broken builds: an agent below the agent of a step is refused, and the step is completed; the workflow that a step uses hides
/// that its own step is held.
#[test]
fn what_is_refused_below_a_step_holds_the_step() {
    let shell = Shell::new(&[]);
    let flow = "[[steps]]\nid = \"one\"\nisolation = \"shared\"\ntask = \"Task one\"\n";
    let answers = json!([
        { "of": "Task one", "calls": [spawn("Task two", json!({ "name": "two" }))] },
        writes("Task two"),
        says("Task two"),
        says("Task one"),
    ]);
    let ran = run(&shell, flow, &answers, &["--config", "agents.depth=3"]);
    let result = ran.document();
    assert_eq!((ran.code, ends(&result)), (12, vec!["one held".to_owned()]), "{result}");
    assert_eq!(result["denials"][0]["agent"], "two", "{result}");

    let shell = Shell::new(&[]);
    of_user(&shell, "inner", "name = \"inner\"\n[[steps]]\nid = \"one\"\ntask = \"Write it\"\n");
    let ran =
        run(&shell, "[[steps]]\nid = \"in\"\nuse = \"inner\"\n", &json!([writes("Write it"), says("Write it")]), &[]);
    let result = ran.document();
    assert_eq!((ran.code, &step(&result, "in/one")["status"]), (12, &json!("held")), "{result}");
}

/// Broken builds: a step whose call the user refused without a word is completed; one that did what the user said instead is not.
#[test]
fn a_call_that_the_user_refused_holds_its_step_unless_the_user_says_what_to_do_instead() {
    for (feedback, status) in [(Value::Null, "held"), (json!("leave the file alone"), "completed")] {
        let shell = Shell::new(&[]);
        let answers = json!({ "steps": [writes("Write it"), says("Write it")] });
        let mut host = Hosted::start(&shell, &answers, &["--mode", "ask"]);
        let graph = json!({ "version": 1, "name": "flow", "steps": [{ "id": "edit", "task": "Write it" }] });
        assert_eq!(host.ask("run", json!({ "type": "run_workflow", "graph": graph }))["ok"], true);
        let asked = host.event("approval_requested");
        let mut decision = json!({ "answer": "deny" });
        if feedback.is_string() {
            decision["feedback"] = feedback;
        }
        let decide = json!({ "type": "decide", "call_id": asked["data"]["call_id"], "decision": decision });
        host.ask("deny", json!({ "type": "to_agent", "path": ["edit"], "input": decide }));
        let is_end = |it: &Value| {
            it["data"]["id"] == "edit" && (it["data"]["event"] == "held" || it["data"]["event"] == "step_ended")
        };
        let at = host.until(0, is_end);
        assert_eq!(host.seen[at]["data"]["status"], status, "{}", host.seen[at]);
        let (result, code) = host.end();
        assert_eq!(code, if status == "held" { 12 } else { 0 }, "{result}");
    }
}

/// Each way in which a step does not come to its end, and the code of the run.
///
/// Broken build: a step that did not do its work ends as completed, or its run with 0.
#[test]
fn no_end_of_a_step_makes_a_run_better_than_it_is() {
    let agent = "[[steps]]\nid = \"one\"\ntask = \"Do it\"\n";
    let of = |mut step: Value| {
        step["of"] = json!("Do it");
        step
    };
    let fault = |code: &str| vec![of(json!({ "error": { "code": code, "message": "broken" } }))];
    let much = json!({ "input": 40_000, "output": 10_000, "cached": 0 });
    let spends = of(json!({ "calls": [{ "name": "find", "args": { "pattern": "*" } }], "usage": much }));
    let nested = vec![
        of(json!({ "calls": [spawn("Task two", json!({ "name": "two" }))] })),
        json!({ "of": "Task two", "error": { "code": "INVALID_RESPONSE", "message": "broken" } }),
        of(json!({ "text": "It is done." })),
    ];
    /// A name, the graph, the answers, flags, and the exit code.
    type Case<'a> = (&'a str, String, Vec<Value>, &'a [&'a str], i32);
    let cases: Vec<Case<'_>> = vec![
        ("the server refuses", agent.to_owned(), fault("PROVIDER_HTTP_ERROR"), &[], 1),
        ("the server is down", agent.to_owned(), fault("PROVIDER_UNAVAILABLE"), &["--patience", "0"], 1),
        ("too many requests", agent.to_owned(), fault("RATE_LIMITED"), &["--patience", "0"], 1),
        ("no network", agent.to_owned(), fault("NETWORK"), &["--patience", "0"], 1),
        ("no answer", agent.to_owned(), (0..3).map(|_| of(json!({ "text": "" }))).collect(), &[], 1),
        (
            "no report",
            format!("{agent}role = \"reviewer\"\n"),
            (0..2).map(|_| of(json!({ "text": "Fine." }))).collect(),
            &[],
            1,
        ),
        (
            "tokens",
            format!("[limits]\ntokens = 20000\n{agent}"),
            vec![spends, of(json!({ "text": "So far." }))],
            &[],
            14,
        ),
        ("its check", format!("{agent}check = [[\"false\"]]\n"), vec![of(json!({ "text": "Done." }))], &["--write"], 1),
        ("an agent below it", format!("{agent}isolation = \"shared\"\n"), nested, &["--config", "agents.depth=3"], 1),
        ("its command", "[[steps]]\nid = \"one\"\nargv = [\"false\"]\n".to_owned(), vec![], &["--write"], 1),
        (
            "no such program",
            "[[steps]]\nid = \"one\"\nargv = [\"no-such-program\"]\n".to_owned(),
            vec![],
            &["--write"],
            1,
        ),
        (
            "its time",
            "[[steps]]\nid = \"one\"\nargv = [\"sleep\", \"600\"]\nseconds = 1\n".to_owned(),
            vec![],
            &["--write"],
            1,
        ),
    ];
    for (about, flow, answers, flags, code) in cases {
        for on_fail in ["", "on_fail = \"continue\"\n"] {
            let shell = Shell::new(&[]);
            let flow = format!("{flow}{on_fail}[[steps]]\nid = \"last\"\nargv = [\"true\"]\nneeds = [\"one\"]\n");
            let ran = run(&shell, &flow, &Value::from(answers.clone()), flags);
            let result = ran.document();
            // With one step that completed, some did.
            let code = if code == 1 && !on_fail.is_empty() { 9 } else { code };
            assert_eq!(ran.code, code, "{about}, {on_fail:?}: {result}");
            assert_ne!(step(&result, "one")["status"], "completed", "{about}: {result}");
            assert_eq!((&result["ok"], &result["work_complete"]), (&json!(false), &json!(false)), "{about}: {result}");
            assert_goes_on(&result, about);
        }
    }
}

/// The error of a run names the command that goes on with it, in its words and among the actions.
fn assert_goes_on(result: &Value, about: &str) {
    let resume = result["resume_command"].as_str().unwrap_or_else(|| panic!("{about}: {result}"));
    assert!(result["remediation"].as_str().is_some_and(|it| it.contains(resume)), "{about}: {result}");
    let lists = [&result["next_actions"], &result["error"]["details"]["next_actions"]];
    for list in lists {
        let all: Vec<&str> = list.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        assert!(all.iter().any(|it| it.starts_with(resume)), "{about}: {all:?}");
        assert!(!all.iter().any(|it| it.contains("--help")), "{about}: {all:?}");
    }
}

/// Broken builds: a list of names is empty; a step that cannot be read is not among the names; the step itself is.
#[test]
fn what_validate_names_in_place_of_a_wrong_name_is_there() {
    let one = |more: &str| format!("[[steps]]\nid = \"build\"\nargv = [\"true\"]\n{more}");
    let faulty = "[[steps]]\nid = \"broken\"\nkind = \"comand\"\nargv = [\"true\"]\n";
    for (flow, wanted) in [
        (one("needs = [\"xyzzy\"]\n"), "leave it out: the file has no other step"),
        (one("when = \"steps.xyzzy.status == 'completed'\"\n"), "leave it out"),
        (one("when = \"params.xyzzy == 'a'\"\n"), "declare it, as [params.xyzzy]"),
        (one("each = \"@xyzzy\"\n"), "leave it out: the file has no other step"),
        (format!("{faulty}{}", one("needs = [\"xyzzy\"]\n")), "one of: broken"),
        (format!("{faulty}{}", one("when = \"steps.brokn.status == 'completed'\"\n")), "Use: broken"),
    ] {
        let shell = Shell::new(&[]);
        let path = super::file(&shell, &flow).display().to_string();
        let ran = shell.run(["workflow", "validate", &path]);
        let told = format!("{}{}", ran.stdout, ran.stderr);
        assert!(told.contains(wanted), "{flow}: {told}");
        assert!(!told.contains("one of: \n") && !told.contains("Use: build\n"), "{flow}: {told}");
    }
}
