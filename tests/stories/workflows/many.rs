//! Workflows with many steps: hostile values, faults of most steps, stops at any moment, the three that pixir has.

use std::process::Command;

use serde_json::{Value, json};

use super::{ends, events, file, log, resume, run, script, step};
use crate::random::seed_of_this_run;
use crate::shell::{Shell, entries, ran};
use crate::tier;
use crate::wait;

/// QW3. Broken builds: the words are joined by blanks and read by the shell; an output stands in a task without its fence; the
/// output of a step is split or read again in the words of the next one.
#[test]
fn two_hundred_hostile_values_stay_one_word_each_and_inside_their_fence() {
    let mut seed = seed_of_this_run();
    let mut random = |most: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % most
    };
    let parts = [
        "$(touch hacked)",
        "`touch hacked`",
        "'",
        "\"",
        "\\",
        "\n",
        "; touch hacked",
        "&& touch hacked",
        "|",
        "> hacked",
        "{{params.list}}",
        "}}",
        "{{",
        "```",
        "````",
        "~~~",
        "--",
        "-n",
        "*",
        "?",
        "[a]",
        "~",
        "$HOME",
        "!",
        "#",
        "é",
        "\u{202e}",
        "a",
        " ",
        "\t",
    ];
    let words: Vec<String> =
        (0..200).map(|_| (0..1 + random(5)).map(|_| parts[random(parts.len())]).collect()).collect();
    let shell = Shell::new(&[]);
    let flow = r#"
[params.list]
type = "list"
required = true
[[steps]]
id = "say"
argv = ["printf", "%s|%s", "{{item}}", "end"]
each = "{{params.list}}"
max = 200
[[steps]]
id = "again"
argv = ["printf", "%s|%s|end", "{{steps.say.output}}", "{{item}}"]
each = "@say"
max = 200
[[steps]]
id = "read"
role = "explorer"
task = "Sum up: {{steps.again.output}}"
needs = ["again"]
"#;
    let params = shell.aside("params.json", &json!({ "list": words }).to_string()).display().to_string();
    let answers = json!([{ "of": "Sum up", "text": "Much noise." }]);
    let ran = run(&shell, flow, &answers, &["--write", "--params", &params]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let result = ran.document();
    for (n, word) in words.iter().enumerate() {
        let output = &step(&result, &format!("say.{}", n + 1))["output"];
        let as_text = output.as_str().map_or_else(|| output.to_string(), str::to_owned);
        assert_eq!(as_text, format!("{word}|end"), "{word:?}");
        let again = &step(&result, &format!("again.{}", n + 1))["output"];
        let as_text = again.as_str().map_or_else(|| again.to_string(), str::to_owned);
        assert_eq!(as_text, format!("{word}|end|{word}|end"), "{word:?}");
    }
    assert!(!shell.workspace().join("hacked").exists());
    let child = shell.logs().iter().map(|path| entries(path)).find(|log| log[0]["data"]["parent"].is_object());
    let child = child.expect("the agent's log");
    let task = child.iter().find(|it| it["type"] == "user_message").expect("a task")["data"]["text"].clone();
    let task = task.as_str().expect("text");
    let mark = task.lines().nth(1).and_then(|line| line.split(' ').next()).expect("the fence");
    assert!(mark.chars().all(|c| c == '`') && mark.len() >= 3, "{mark}");
    let inner: String = task.lines().skip(2).take_while(|line| *line != mark).collect();
    assert!(!inner.is_empty() && !inner.contains(mark), "nothing inside closes it");
}

/// QW4. Broken build: a run is completed although most of its agents failed.
#[test]
fn a_run_whose_server_refuses_most_steps_is_a_partial_failure() {
    let shell = Shell::new(&[]);
    let mut flow = String::new();
    let mut answers = Vec::new();
    for n in 0..12 {
        flow.push_str(&format!("[[steps]]\nid = \"s{n}\"\nrole = \"explorer\"\ntask = \"Task {n}.\"\n"));
        answers.push(match n {
            0 | 7 => json!({ "of": format!("Task {n}."), "text": "done" }),
            _ => json!({ "of": format!("Task {n}."), "error": { "code": "RATE_LIMITED", "message": "429" } }),
        });
    }
    let ran = run(&shell, &flow, &Value::from(answers), &["--patience", "0"]);
    assert_eq!(ran.code, 9, "{ran:?}");
    let result = ran.document();
    assert_eq!((&result["status"], &result["work_complete"]), (&json!("partial_failed"), &json!(false)));
    assert_eq!((&result["counts"]["completed"], &result["counts"]["failed"]), (&json!(2), &json!(10)), "{result}");
    let answers: Vec<Value> = (0..12).map(|n| json!({ "of": format!("Task {n}."), "text": "at last" })).collect();
    let ran = resume(&shell, &Value::from(answers), &[]);
    assert_eq!((ran.code, &ran.document()["counts"]["reused"]), (0, &json!(2)), "{ran:?}");
}

/// QW6. Broken builds: a request is sent after the stop; the journal has a step without an end that never ends.
#[test]
fn a_run_that_is_stopped_at_any_moment_sends_nothing_more_and_goes_on_later() {
    let rounds = tier::cases("a_run_that_is_stopped_at_any_moment");
    let mut seed = seed_of_this_run();
    for _ in 0..rounds {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let shell = Shell::new(&[]);
        let mut flow = String::from("[limits]\nconcurrency = 3\n");
        let mut answers = Vec::new();
        for n in 0..9 {
            let needs = if n < 3 { String::new() } else { format!("needs = [\"s{}\"]\n", n - 3) };
            flow.push_str(&format!("[[steps]]\nid = \"s{n}\"\nrole = \"explorer\"\ntask = \"Task {n}.\"\n{needs}"));
            answers.push(json!({ "of": format!("Task {n}."), "text": format!("done {n}"), "delay_ms": 40 }));
        }
        let answers = Value::from(answers);
        let path = file(&shell, &flow).display().to_string();
        let model = script(&shell, &answers);
        let args = ["workflow", "run", &path, "--json"];
        let mut child =
            shell.command(args.into_iter().chain(model.iter().map(String::as_str))).spawn().expect("it starts");
        let far = 1 + (seed >> 33) as usize % 9;
        let begun = || {
            let logs = shell.logs();
            let of = |path: &std::path::PathBuf| {
                entries(path).iter().filter(|it| it["data"]["event"] == "step_started").count()
            };
            logs.iter().map(of).sum::<usize>()
        };
        let mut gone = false;
        wait::until("it has gone far enough", || {
            gone = child.try_wait().expect("a child").is_some();
            gone || begun() >= far
        });
        let _ = Command::new("kill").args(["-TERM", &child.id().to_string()]).status();
        let ended = ran(child.wait_with_output().expect("it ends"));
        assert!([0, 143].contains(&ended.code), "{ended:?}");
        for path in shell.logs() {
            let log = entries(&path);
            let last = log.last().expect("a line");
            let open = log.iter().rposition(|it| it["type"] == "user_message" || it["data"]["event"] == "planned");
            assert!(open.is_none() || last["type"] == "turn_ended", "{}: {last}", path.display());
        }
        let again = resume(&shell, &answers, &[]);
        assert_eq!(again.code, 0, "{again:?}");
        let log = log(&shell);
        for n in 0..9 {
            let key = format!("step_ended s{n}");
            let completed = log.iter().filter(|it| {
                it["data"]["event"] == "step_ended"
                    && it["data"]["id"] == format!("s{n}")
                    && it["data"]["status"] == "completed"
            });
            assert_eq!(completed.count(), 1, "{key}: {:?}", events(&log));
        }
    }
}

/// The three workflows that pixir has, each with a scripted model.
#[test]
fn the_workflows_that_pixir_has_do_what_they_say() {
    let git = |shell: &Shell, args: &[&str]| {
        let done = Command::new("git")
            .args(["-c", "user.name=t", "-c", "user.email=t@example.invalid"])
            .args(args)
            .current_dir(shell.workspace())
            .output()
            .expect("git");
        assert!(done.status.success(), "{args:?}: {done:?}");
    };
    let go = |shell: &Shell, name: &str, answers: &Value, more: &[&str]| {
        let model = script(shell, answers);
        let args = ["workflow", "run", name, "--json", "--write"].into_iter().chain(more.iter().copied());
        shell.run(args.chain(model.iter().map(String::as_str)))
    };
    let write = |path: &str, text: &str| json!({ "name": "write", "args": { "path": path, "content": text } });
    let report = |text: &str| json!({ "name": "report", "args": { "summary": text, "findings": [] } });

    let shell = Shell::new(&[("sum.txt", "2 + 2 = 5\n")]);
    let answers = json!([
        { "of": "Fix this fault", "calls": [write("sum.txt", "2 + 2 = 3\n")] },
        { "of": "Fix this fault", "text": "It is 3." },
        { "of": "Fix this fault", "calls": [{ "name": "read", "args": { "path": "sum.txt" } }] },
        { "of": "Fix this fault", "calls": [write("sum.txt", "2 + 2 = 4\n")] },
        { "of": "Fix this fault", "text": "It is 4." },
        { "of": "Review the changes", "calls": [report("It is right.")] },
    ]);
    let ran = go(
        &shell,
        "fix-and-verify",
        &answers,
        &["-p", "fault=the sum is wrong", "-p", "program=grep", "-p", "argument=2 + 2 = 4", "-p", "file=sum.txt"],
    );
    assert_eq!(ran.code, 10, "the graph has no parameter `file`: {ran:?}");
    shell.write("check.sh", "#!/bin/sh\ngrep -q '2 + 2 = 4' sum.txt\n");
    let ran = go(
        &shell,
        "fix-and-verify",
        &answers,
        &["-p", "fault=the sum is wrong", "-p", "program=sh", "-p", "argument=check.sh"],
    );
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(shell.read("sum.txt"), "2 + 2 = 4\n");
    assert_eq!(ran.document()["output"]["summary"], "It is right.");

    let shell = Shell::new(&[("a.txt", "one\n")]);
    git(&shell, &["init", "-q"]);
    git(&shell, &["add", "-A"]);
    git(&shell, &["commit", "-qm", "first"]);
    let idle = go(&shell, "review-diff", &json!([]), &[]);
    assert_eq!((idle.code, &idle.document()["counts"]["skipped"]), (0, &json!(4)), "{idle:?}");
    shell.write("new.txt", "three\n");
    let answers = json!([
        { "of": "Find faults", "calls": [report("No fault.")] },
        { "of": "Say which behaviour", "calls": [report("No test.")] },
        { "of": "Find what is hard", "calls": [report("It is clear.")] },
        { "of": "Write one report", "text": "a.txt:1 has no test." },
    ]);
    let ran = go(&shell, "review-diff", &answers, &[]);
    assert_eq!((ran.code, &step(&ran.document(), "new")["output"]), (0, &json!("new.txt")), "a new file: {ran:?}");
    shell.write("a.txt", "two\n");
    let ran = go(&shell, "review-diff", &answers, &[]);
    assert_eq!((ran.code, &ran.document()["output"]), (0, &json!("a.txt:1 has no test.")), "{ran:?}");

    let shell = Shell::new(&[
        ("a.md", "old a\n"),
        ("b.md", "old b\n"),
        ("c.txt", "old c\n"),
        ("check.sh", "! grep -l old *.md\n"),
    ]);
    git(&shell, &["init", "-q"]);
    git(&shell, &["add", "-A"]);
    git(&shell, &["commit", "-qm", "first"]);
    let answers = json!([
        { "of": "a.md", "calls": [write("a.md", "new a\n")] },
        { "of": "a.md", "text": "Done." },
        { "of": "b.md", "calls": [write("b.md", "new b\n")] },
        { "of": "b.md", "text": "Done." },
    ]);
    let more = ["-p", "pattern=*.md", "-p", "change=old becomes new", "-p", "program=sh", "-p", "argument=check.sh"];
    let ran = go(&shell, "migrate-each", &answers, &more);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!((shell.read("a.md").as_str(), shell.read("b.md").as_str()), ("new a\n", "new b\n"));
    assert!(ends(&ran.document()).contains(&"migrate.2 completed".to_owned()));
}

/// Broken builds: a dry run asks the model or changes something; what a run then uses is more than it said.
#[test]
fn a_dry_run_does_nothing_and_bounds_what_then_happens() {
    let shell = Shell::new(&[]);
    let flow = "[params.n]\ntype = \"list\"\ndefault = [\"a\", \"b\"]\n[[steps]]\nid = \"ask\"\nrole = \"explorer\"\ntask = \"Task of {{item}}\"\neach = \"{{params.n}}\"\n[[steps]]\nid = \"make\"\nargv = [\"touch\", \"made\"]\nneeds = [\"ask\"]\n";
    let much = json!({ "input": 9_000, "output": 1_000, "cached": 0 });
    let answers = json!([
        { "of": "Task of", "text": "one", "usage": much },
        { "of": "Task of", "text": "two", "usage": much },
    ]);
    let model = json!({ "steps": answers, "window": 20_000, "price": { "input": 3.0, "output": 15.0 } });
    let model = format!("script:{}", shell.aside("priced.json", &model.to_string()).display());
    let path = file(&shell, flow).display().to_string();
    let go = |path: &str, more: &[&str]| {
        let args = ["workflow", "run", path, "--provider", &model, "--toolset", "typed"];
        shell.run(args.into_iter().chain(more.iter().copied()))
    };
    let dry = go(&path, &["--dry-run", "--json"]);
    assert_eq!(dry.code, 0, "{dry:?}");
    let plan = dry.document()["plan"].clone();
    assert_eq!(plan["layers"][0][0]["instances"], 2, "{plan}");
    assert!(shell.logs().is_empty() && !shell.workspace().join("made").exists(), "nothing happened");
    let ran = go(&path, &["--write", "--json"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let result = ran.document();
    let used = result["usage"]["input"].as_u64().unwrap_or(0) + result["usage"]["output"].as_u64().unwrap_or(0);
    assert!(used > 0 && used <= plan["most_tokens"].as_u64().expect("a bound"), "{used} of {plan}");
    let (cost, most) = (result["cost"]["usd"].as_f64(), plan["most_cost"].as_f64());
    let (cost, most) = (cost.expect("a cost"), most.expect("an upper cost"));
    assert!(cost > 0.0 && cost <= most, "{cost} of {most}");
    let limited = format!("[limits]\ntokens = 50000\ncost = 0.5\nfailures = 2\n{flow}");
    let path = file(&shell, &limited).display().to_string();
    let text = go(&path, &["--dry-run"]).stdout;
    assert!(text.contains("limits of the graph: 50k tokens, $0.50, 2 failed steps"), "{text}");
    // Without a model there is no price.
    let plan = shell.run(["workflow", "run", &path, "--dry-run", "--json"]).document()["plan"].clone();
    assert!(plan["most_cost"].is_null(), "{plan}");
}

/// Broken build: the stream has only the events of the run itself.
#[test]
fn the_stream_has_the_events_of_the_run_and_of_its_agents_by_name() {
    let shell = Shell::new(&[]);
    let path = file(&shell, "[[steps]]\nid = \"look\"\nrole = \"explorer\"\ntask = \"Look\"\n").display().to_string();
    let model = script(&shell, &json!([{ "of": "Look", "text": "Seen.", "delay_ms": 200 }]));
    let args = ["workflow", "run", &path, "--format", "jsonl"];
    let ran = shell.run(args.into_iter().chain(model.iter().map(String::as_str)));
    assert_eq!(ran.code, 0, "{ran:?}");
    let lines = ran.lines();
    let own = |it: &&Value| it["agent"].is_null();
    let kinds: Vec<&str> = lines.iter().filter(own).filter_map(|it| it["type"].as_str()).collect();
    assert_eq!((kinds.first(), kinds.last()), (Some(&"session_started"), Some(&"result")), "{kinds:?}");
    assert!(kinds.contains(&"workflow_event"), "{kinds:?}");
    let of_agent: Vec<&str> =
        lines.iter().filter(|it| it["agent"] == "look").filter_map(|it| it["type"].as_str()).collect();
    assert!(of_agent.contains(&"user_message") && of_agent.contains(&"assistant_message"), "{of_agent:?}");
}

/// Broken builds: the plan leaves out commands of later layers, or those that check a step; it cuts a command without a mark; steps
/// that follow one after another are counted by the usual bound and not by that of the list; the limits of the command line count
/// for nothing.
#[test]
fn a_plan_shows_every_command_and_the_limits_that_hold() {
    let shell = Shell::new(&[]);
    let long = format!("echo {}; rm -rf build", "x".repeat(300));
    let flow = format!(
        r#"
[[steps]]
id = "last"
argv = ["sh", "-c", "{long}"]
needs = ["third"]
[[steps]]
id = "third"
role = "explorer"
task = "Look at {{{{item}}}}"
each = "@second"
check = [["test", "-n", "{{{{steps.second.output}}}}"]]
[[steps]]
id = "second"
argv = ["echo", "{{{{item}}}}"]
each = "@first"
[[steps]]
id = "first"
argv = ["echo", "{{{{item}}}}"]
each = "{{{{steps.list.lines}}}}"
max = 150
needs = ["list"]
[[steps]]
id = "list"
argv = ["ls"]
"#
    );
    let model = json!({ "steps": [], "window": 20_000, "price": { "input": 3.0, "output": 15.0 } });
    let model = format!("script:{}", shell.aside("priced.json", &model.to_string()).display());
    let path = file(&shell, &flow).display().to_string();
    let go = |more: &[&str]| {
        let args = ["workflow", "run", &path, "--provider", &model, "--dry-run"];
        shell.run(args.into_iter().chain(more.iter().copied()))
    };
    let text = go(&[]).stdout;
    for part in [
        "rm -rf build",
        "check: test -n '{{steps.second.output}}'",
        "third × ? (at most 150)",
        "at most: 150 agents",
        "60 min, 8 at a time",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let plan = |more: &[&str]| go(&[more, &["--json"]].concat()).document()["plan"].clone();
    let (free, bound) = (plan(&[]), plan(&["--max-cost", "0.2", "--max-tokens", "30000", "--deadline", "60"]));
    let number = |it: &Value, name: &str| it[name].as_f64().unwrap_or_else(|| panic!("{name}: {it}"));
    // Every agent that runs may exceed a limit by two requests of a full window.
    let beyond = 2.0 * 20_000.0 * 8.0;
    assert_eq!(number(&bound, "most_tokens"), 30_000.0 + beyond, "{bound}");
    assert!(number(&free, "most_tokens") > number(&bound, "most_tokens"), "{free}");
    assert!((number(&bound, "most_cost") - (0.2 + beyond * 15e-6)).abs() < 1e-6, "{bound}");
    assert_eq!((number(&free, "seconds"), number(&bound, "seconds")), (3_600.0, 60.0));
}

/// Broken build: the items of steps that follow are not counted, so a run has more steps than it may.
#[test]
fn a_run_with_more_than_a_thousand_steps_and_items_does_not_begin_them() {
    let shell = Shell::new(&[]);
    let flow = |items: u32| {
        let list: Vec<String> = (0..items).map(|n| n.to_string()).collect();
        format!(
            "[params.list]\ntype = \"list\"\ndefault = [{}]\n[[steps]]\nid = \"one\"\nargv = [\"touch\", \"begun\"]\neach = \"{{{{params.list}}}}\"\nmax = 1000\nwhen = \"item < 0\"\n[[steps]]\nid = \"two\"\nargv = [\"true\"]\neach = \"@one\"\nwhen = \"item < 0\"\n[[steps]]\nid = \"end\"\nargv = [\"true\"]\nneeds = [\"two\"]\n",
            list.join(", ")
        )
    };
    let ran = run(&shell, &flow(500), &json!([]), &["--write"]);
    let result = ran.document();
    assert_eq!((ran.code, &step(&result, "one")["error"]["code"]), (1, &json!("TOO_MANY_ITEMS")), "{result}");
    assert!(step(&result, "one")["error"]["message"].as_str().is_some_and(|it| it.contains("1001")), "{result}");
    assert!(!ends(&result).iter().any(|it| it.starts_with("one.")), "{result}");
    let ran = run(&shell, &flow(499), &json!([]), &["--write"]);
    assert_eq!((ran.code, &ran.document()["counts"]["skipped"]), (0, &json!(998)), "{ran:?}");
}
