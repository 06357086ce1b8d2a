//! Workflows that were cut off, stopped or edited, and go on: what is completed is not done again.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::{ends, events, file, log, resume, run, script, step};
use crate::random::seed_of_this_run;
use crate::shell::{Shell, entries, figures, ran};
use crate::tier;
use crate::wait;

/// A graph of 40 steps: agents that look, an agent that writes and whose file is checked, commands that may run twice, one that
/// joins all.
fn forty() -> (String, Value) {
    let mut flow = String::from("output = \"{{steps.all.output}}\"\n[limits]\nconcurrency = 4\n");
    let mut answers = Vec::new();
    let mut last = Vec::new();
    for n in 0..12 {
        let needs = if n == 0 { String::new() } else { format!("needs = [\"c{}\"]\n", n - 1) };
        flow.push_str(&format!(
            "[[steps]]\nid = \"a{n}\"\nrole = \"explorer\"\ntask = \"Look number {n}.\"\n{needs}\
             [[steps]]\nid = \"b{n}\"\nargv = [\"printf\", \"b{n}\"]\nidempotent = true\n{needs}\
             [[steps]]\nid = \"c{n}\"\nargv = [\"printf\", \"%s-%s\", \"{{{{steps.a{n}.output}}}}\", \"{{{{steps.b{n}.output}}}}\"]\nidempotent = true\nneeds = [\"a{n}\", \"b{n}\"]\n"
        ));
        answers.push(json!({ "of": format!("Look number {n}."), "text": format!("seen {n}") }));
        last.push(format!("{{{{steps.c{n}.output}}}}"));
    }
    for n in 0..2 {
        let after = if n == 0 { "c2" } else { "w0" };
        flow.push_str(&format!(
            "[[steps]]\nid = \"w{n}\"\ntask = \"Write number {n}.\"\nwrites = [\"w{n}.txt\"]\nneeds = [\"{after}\"]\ncheck = [[\"grep\", \"-qx\", \"w{n}\", \"w{n}.txt\"]]\n"
        ));
        let of = format!("Write number {n}.");
        let put = json!({ "name": "write", "args": { "path": format!("w{n}.txt"), "content": format!("w{n}\n") } });
        // An agent that was cut off between its call and its end is asked to go on, or begins anew.
        answers.push(json!({ "of": of, "calls": [put] }));
        answers.push(json!({ "of": of, "text": format!("wrote {n}") }));
    }
    flow.push_str(
        "[[steps]]\nid = \"r\"\nargv = [\"cat\", \"w0.txt\", \"w1.txt\"]\nidempotent = true\nneeds = [\"w1\"]\n",
    );
    last.push("{{steps.r.output}}".to_owned());
    let all = (0..12).map(|n| format!("\"c{n}\"")).chain(["\"r\"".to_owned()]).collect::<Vec<_>>().join(", ");
    flow.push_str(&format!(
        "[[steps]]\nid = \"all\"\nargv = [\"printf\", \"%s\", \"{}\"]\nidempotent = true\nneeds = [{all}]\n",
        last.join(" ")
    ));
    (flow, Value::from(answers))
}

/// Events of the run, whether its process still lives or not.
fn counted(shell: &Shell, event: &str) -> usize {
    let logs = shell.logs();
    let of = |path: &Path| {
        entries(path).iter().filter(|it| it["type"] == "workflow_event" && it["data"]["event"] == event).count()
    };
    logs.iter().map(|path| of(path)).sum()
}

/// No completed step ran again, under its key or another one, and no key has two results.
fn assert_once(log: &[Value]) {
    let mut completed: BTreeMap<String, Value> = BTreeMap::new();
    let mut done: Vec<&Value> = Vec::new();
    for it in log.iter().filter(|it| it["type"] == "workflow_event").map(|it| &it["data"]) {
        let key = it["key"].as_str().unwrap_or_default().to_owned();
        match it["event"].as_str() {
            Some("step_started") => {
                assert!(!completed.contains_key(&key) && !done.contains(&&it["id"]), "{} ran again", it["id"]);
            }
            Some("step_ended") if it["status"] == "completed" => {
                done.push(&it["id"]);
                assert!(completed.insert(key, it["output"].clone()).is_none(), "{} has two results", it["id"]);
            }
            _ => {}
        }
    }
}

/// QW1. Broken builds: the journal is keyed by the attempt; the end of a step is recorded without being synced after the
/// next one begins; a resume runs completed steps again.
#[test]
fn a_run_that_is_killed_anywhere_ends_as_if_nothing_had_happened() {
    let kills = tier::cases("a_run_that_is_killed_anywhere");
    let (flow, answers) = forty();
    let undisturbed = {
        let shell = Shell::new(&[]);
        let ran = run(&shell, &flow, &answers, &["--write"]);
        assert_eq!(ran.code, 0, "{ran:?}");
        ran.document()["output"].clone()
    };
    assert!(undisturbed.as_str().is_some_and(|it| it.starts_with("seen 0-b0")), "{undisturbed}");
    let mut seed = seed_of_this_run();
    let mut random = |most: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % most
    };
    let mut killed = 0;
    while killed < kills {
        let shell = Shell::new(&[]);
        let model = script(&shell, &answers);
        let path = file(&shell, &flow).display().to_string();
        let mut first = true;
        loop {
            let args: Vec<&str> = match first {
                true => vec!["workflow", "run", &path, "--json", "--write"],
                false => vec!["workflow", "resume", "last", "--json", "--write"],
            };
            let ends_before = counted(&shell, "step_ended");
            let starts_before = counted(&shell, "step_started");
            let mut child =
                shell.command(args.into_iter().chain(model.iter().map(String::as_str))).spawn().expect("it starts");
            let more = 1 + random(12) as usize;
            let (by_start, mut gone) = (random(2) == 0, false);
            wait::until("it has gone far enough", || {
                gone = child.try_wait().expect("it is a child").is_some();
                let now = if by_start { counted(&shell, "step_started") } else { counted(&shell, "step_ended") };
                gone || now >= more + if by_start { starts_before } else { ends_before }
            });
            if gone || killed >= kills {
                let ran = ran(child.wait_with_output().expect("it ends"));
                assert_eq!(ran.code, 0, "{ran:?}");
                assert_eq!(ran.document()["output"], undisturbed);
                break;
            }
            child.kill().expect("it is killed");
            child.wait().expect("it is gone");
            killed += 1;
            first = false;
            if shell.logs().is_empty() {
                break;
            }
        }
        if !shell.logs().is_empty() {
            // The last process may have been killed too.
            let ran = resume(&shell, &answers, &["--write"]);
            assert_eq!((ran.code, &ran.document()["output"]), (0, &undisturbed), "{ran:?}");
            assert_once(&log(&shell));
        }
    }
    figures(&format!("QW1: {killed} kills, every run ended as the undisturbed one"));
}

/// Broken builds: a command that may have run is run again; it counts as failed or as done without the user.
#[test]
fn a_command_that_was_under_way_is_not_repeated_unless_the_user_or_the_graph_says_so() {
    let flow = |more: &str| {
        format!(
            "[[steps]]\nid = \"pay\"\nargv = [\"sh\", \"-c\", \"echo paid >> bill; if [ ! -e go ]; then touch here; sleep 600; fi\"]\n{more}\
             [[steps]]\nid = \"thank\"\nargv = [\"true\"]\nneeds = [\"pay\"]\n"
        )
    };
    let killed = |more: &str| {
        let shell = Shell::new(&[]);
        let path = file(&shell, &flow(more)).display().to_string();
        let mut child = shell.command(["workflow", "run", &path, "--write", "--json"]).spawn().expect("it starts");
        wait::until("the command has done its work", || shell.workspace().join("here").exists());
        child.kill().expect("it is killed");
        child.wait().expect("it is gone");
        fs::write(shell.workspace().join("go"), "").expect("write");
        shell
    };
    let shell = killed("");
    let dry = shell.run(["workflow", "resume", "last", "--dry-run", "--json"]).document();
    assert_eq!(dry["steps"][0]["verdict"], "ask", "{dry}");
    let ran = resume(&shell, &json!([]), &["--write"]);
    assert_eq!(ran.code, 13, "{ran:?}");
    let result = ran.document();
    assert_eq!(ends(&result), ["pay waiting", "thank held"], "{result}");
    assert_eq!(shell.read("bill"), "paid\n");
    let ran = resume(&shell, &json!([]), &["--write", "--done", "pay"]);
    assert_eq!((ran.code, shell.read("bill").as_str()), (0, "paid\n"), "{ran:?}");

    let shell = killed("");
    let ran = resume(&shell, &json!([]), &["--write", "--rerun", "pay"]);
    assert_eq!((ran.code, shell.read("bill").as_str()), (0, "paid\npaid\n"), "{ran:?}");

    let shell = killed("");
    let ran = resume(&shell, &json!([]), &["--write", "--skip", "pay"]);
    assert_eq!((ran.code, step(&ran.document(), "pay")["status"].clone()), (0, json!("skipped")), "{ran:?}");

    let shell = killed("idempotent = true\n");
    let ran = resume(&shell, &json!([]), &["--write"]);
    assert_eq!((ran.code, shell.read("bill").as_str()), (0, "paid\npaid\n"), "{ran:?}");
}

/// Broken builds: stopping clears the journal; a request is sent after the stop; the exit code of a stopped run is 0.
#[test]
fn an_interrupted_run_keeps_its_journal_and_goes_on() {
    let shell = Shell::new(&[]);
    let flow = "[[steps]]\nid = \"one\"\nargv = [\"sh\", \"-c\", \"echo one >> done\"]\n[[steps]]\nid = \"two\"\nrole = \"explorer\"\ntask = \"Never end\"\nneeds = [\"one\"]\n";
    let path = file(&shell, flow).display().to_string();
    let model = script(&shell, &json!([{ "of": "Never end", "hang": true }]));
    let args = ["workflow", "run", &path, "--write", "--json"];
    let child = shell.command(args.into_iter().chain(model.iter().map(String::as_str))).spawn().expect("it starts");
    wait::until("the agent runs", || counted(&shell, "step_started") == 2 && shell.logs().len() == 2);
    let told = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(told.expect("kill").success());
    let ended = ran(child.wait_with_output().expect("it ends"));
    assert_eq!(ended.code, 130, "{ended:?}");
    assert_eq!(ended.document()["status"], "interrupted");
    let runs = shell.run(["workflow", "runs", "--json"]).document();
    assert_eq!((&runs["runs"][0]["workflow"], &runs["runs"][0]["status"]), (&json!("flow"), &json!("interrupted")));
    let dry = shell.run(["workflow", "resume", "last", "--dry-run", "--json"]).document();
    let verdicts: Vec<&str> =
        dry["steps"].as_array().expect("a list").iter().filter_map(|it| it["verdict"].as_str()).collect();
    assert_eq!(verdicts, ["reuse", "run"], "{dry}");
    let ran = resume(&shell, &json!([{ "of": "Never end", "text": "I did." }]), &["--write"]);
    assert_eq!((ran.code, shell.read("done").as_str()), (0, "one\n"), "{ran:?}");
}

/// Broken build: another process's run is not found, or goes on.
#[test]
fn a_run_of_another_process_is_stopped_by_its_name() {
    let shell = Shell::new(&[]);
    let path = file(&shell, "[[steps]]\nid = \"long\"\nargv = [\"sleep\", \"600\"]\n").display().to_string();
    let child = shell.command(["workflow", "run", &path, "--write", "--json"]).spawn().expect("it starts");
    wait::until("it runs", || counted(&shell, "step_started") == 1);
    assert_eq!(shell.run(["workflow", "runs", "--json"]).document()["runs"][0]["status"], "running");
    let stopped = shell.run(["workflow", "stop", "last", "--json"]);
    assert_eq!((stopped.code, &stopped.document()["stopped"]), (0, &json!(true)), "{stopped:?}");
    assert_eq!(ran(child.wait_with_output().expect("it ends")).code, 143);
    let stopped = shell.run(["workflow", "stop", "last", "--json"]);
    assert_eq!((stopped.code, &stopped.document()["stopped"]), (0, &json!(false)), "{stopped:?}");
}

/// Broken builds: files that changed since are overwritten or ignored; what depends on them runs all the same.
#[test]
fn a_step_whose_files_are_not_as_it_left_them_is_asked_about() {
    let shell = Shell::new(&[]);
    let flow = "[[steps]]\nid = \"make\"\nargv = [\"sh\", \"-c\", \"echo made > out; echo x >> count\"]\n[[steps]]\nid = \"fail\"\nargv = [\"test\", \"-e\", \"go\"]\nneeds = [\"make\"]\n";
    assert_eq!(run(&shell, flow, &json!([]), &["--write"]).code, 9);
    fs::write(shell.workspace().join("out"), "mine\n").expect("write");
    fs::write(shell.workspace().join("go"), "").expect("write");
    let ran = resume(&shell, &json!([]), &["--write"]);
    let result = ran.document();
    assert_eq!((ran.code, ends(&result)), (13, vec!["make waiting".to_owned(), "fail held".to_owned()]), "{result}");
    assert!(step(&result, "make")["why"].as_str().is_some_and(|it| it.contains("stale: out")), "{result}");
    let ran = resume(&shell, &json!([]), &["--write", "--done", "make"]);
    assert_eq!((ran.code, shell.read("out").as_str(), shell.read("count").as_str()), (0, "mine\n", "x\n"), "{ran:?}");
}

/// Broken builds: a file that a step deleted and that is back counts as it left it; one that a later step deleted makes the step
/// that wrote it stale.
#[test]
fn a_step_whose_deleted_file_is_back_is_asked_about() {
    let shell = Shell::new(&[("old", "old\n")]);
    let flow = "[[steps]]\nid = \"make\"\nargv = [\"touch\", \"temporary\"]\n[[steps]]\nid = \"clean\"\nargv = [\"rm\", \"old\", \"temporary\"]\nneeds = [\"make\"]\n[[steps]]\nid = \"fail\"\nargv = [\"test\", \"-e\", \"go\"]\nneeds = [\"clean\"]\n";
    assert_eq!(run(&shell, flow, &json!([]), &["--write"]).code, 9);
    let dry = || shell.run(["workflow", "resume", "last", "--dry-run", "--json"]).document();
    let verdicts = |dry: &Value| -> Vec<String> {
        let steps = dry["steps"].as_array().expect("a list").iter();
        steps
            .map(|it| format!("{} {}", it["id"].as_str().unwrap_or("?"), it["verdict"].as_str().unwrap_or("?")))
            .collect()
    };
    assert_eq!(verdicts(&dry()), ["make reuse", "clean reuse", "fail run"]);
    shell.write("old", "old\n");
    shell.write("go", "");
    let asked = dry();
    assert_eq!(verdicts(&asked), ["make reuse", "clean ask", "fail held"], "{asked}");
    assert!(asked["steps"][1]["why"].as_str().is_some_and(|it| it.contains("stale: old")), "{asked}");
    assert_eq!(resume(&shell, &json!([]), &["--write"]).code, 13);
    assert_eq!(resume(&shell, &json!([]), &["--write", "--done", "clean"]).code, 0);
    assert_eq!(shell.read("old"), "old\n", "it is the user's");
}

/// QW5. Broken builds: an edit of one step runs all of them again, or only that one.
#[test]
fn an_edited_graph_runs_what_changed_and_what_hangs_on_it() {
    let step_of = |id: &str, text: &str, needs: &str| {
        format!("[[steps]]\nid = \"{id}\"\nargv = [\"printf\", \"{id}{text}\"]\nneeds = [{needs}]\n")
    };
    let graph = |texts: [&str; 6]| {
        let [a, b, c, d, e, f] = texts;
        [
            step_of("a", a, ""),
            step_of("b", b, "\"a\""),
            step_of("c", c, "\"a\""),
            step_of("d", d, "\"b\", \"c\""),
            step_of("e", e, ""),
            step_of("f", f, "\"e\", \"d\""),
        ]
        .concat()
    };
    let before = ["1", "1", "1", "1", "1", "1"];
    // Which steps hang on which, and which of them read the output of a step itself: what hangs on an output that stays the
    // same keeps its result.
    let hang: [&[usize]; 6] = [&[0, 1, 2, 3, 5], &[1, 3, 5], &[2, 3, 5], &[3, 5], &[4, 5], &[5]];
    let read: [&[usize]; 6] = [&[0, 1, 2], &[1, 3], &[2, 3], &[3, 5], &[4, 5], &[5]];
    for edited in 0..20_usize {
        let shell = Shell::new(&[]);
        assert_eq!(run(&shell, &graph(before), &json!([]), &["--write"]).code, 0);
        let mut texts = before;
        let (mut may, mut wanted) = (std::collections::BTreeSet::new(), std::collections::BTreeSet::new());
        for at in (0..6).filter(|at| (edited * 7 + 3) >> at & 1 == 1) {
            texts[at] = "2";
            may.extend(hang[at]);
            wanted.extend(read[at]);
        }
        let path = shell.aside("edited.toml", &format!("version = 1\nname = \"flow\"\n{}", graph(texts)));
        let path = path.display().to_string();
        let dry = shell.run(["workflow", "resume", "last", "--file", &path, "--dry-run", "--json"]);
        assert_eq!(dry.code, 0, "{dry:?}");
        let rehearsed: std::collections::BTreeSet<usize> = dry.document()["steps"]
            .as_array()
            .expect("a list")
            .iter()
            .filter(|it| it["verdict"] == "run")
            .filter_map(|it| "abcdef".find(it["id"].as_str()?))
            .collect();
        assert_eq!(rehearsed, may, "{edited}: what the dry run says");
        let ran = resume(&shell, &json!([]), &["--write", "--file", &path]);
        assert_eq!(ran.code, 0, "{ran:?}");
        let log = log(&shell);
        let from = log.iter().rposition(|it| it["data"]["event"] == "resumed").expect("it went on");
        let started: std::collections::BTreeSet<usize> =
            events(&log[from..]).iter().filter_map(|it| "abcdef".find(it.strip_prefix("step_started ")?)).collect();
        assert_eq!(started, wanted, "{edited}");
    }
}

/// Broken builds: a run that a model began is lost with the process; the command that was under way is run again; the Session that
/// began it cannot go on.
#[test]
fn the_run_of_a_model_whose_pixir_was_killed_goes_on_by_itself_and_its_session_too() {
    let shell = Shell::new(&[]);
    let graph = json!({ "version": 1, "name": "pay", "steps": [
        { "id": "look", "role": "explorer", "task": "Look first" },
        { "id": "pay", "needs": ["look"], "argv": ["sh", "-c", "echo paid >> bill; touch here; sleep 600"] },
        { "id": "thank", "needs": ["pay"], "argv": ["touch", "thanked"] },
    ] });
    let answers = json!([
        { "calls": [{ "name": "run_workflow", "args": { "graph": graph, "wait": true } }] },
        { "of": "Look first", "text": "It is cheap." },
    ]);
    let model = script(&shell, &answers);
    let args = ["pay", "--headless", "--json", "--write"].into_iter();
    let mut child = shell.command(args.chain(model.iter().map(String::as_str))).spawn().expect("it starts");
    wait::until("the command has done its work", || shell.workspace().join("here").exists());
    child.kill().expect("it is killed");
    child.wait().expect("it is gone");
    let ran = resume(&shell, &json!([]), &["--write"]);
    assert_eq!(
        (ran.code, ends(&ran.document())),
        (13, ["look completed", "pay waiting", "thank held"].map(str::to_owned).to_vec(),),
        "{ran:?}"
    );
    let ran = resume(&shell, &json!([]), &["--write", "--done", "pay"]);
    assert_eq!((ran.code, shell.read("bill").as_str()), (0, "paid\n"), "{ran:?}");
    assert!(shell.workspace().join("thanked").exists());
    // The Session that began it reads that its call was cut off, and goes on.
    let root = shell.logs().into_iter().find(|path| entries(path)[0]["data"]["parent"].is_null()).expect("a log");
    let id = root.file_stem().and_then(|it| it.to_str()).expect("an id").to_owned();
    let model = script(&shell, &json!([{ "text": "I see that it was cut off." }]));
    let args = ["resume", &id, "and now?", "--headless", "--json"].into_iter();
    let ran = shell.run(args.chain(model.iter().map(String::as_str)));
    assert_eq!(ran.document()["output"], "I see that it was cut off.", "{ran:?}");
}
