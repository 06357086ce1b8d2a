//! Runs that were cut off: only steps of which it is unknown what they did are asked about, and no suggestion does an effect twice.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::{file, resume, run, script, step, typed};
use crate::shell::{Ran, Shell, ran};
use crate::wait;

/// A command that does this and is then cut off, the first time that it runs.
fn cut_off(id: &str, effect: &str, more: &str) -> String {
    format!(
        "[[steps]]\nid = \"{id}\"\nargv = [\"sh\", \"-c\", \"{effect}; if [ ! -e go ]; then touch here; sleep 600; fi\"]\n{more}"
    )
}

/// A command that does this at once.
fn does(id: &str, effect: &str, more: &str) -> String {
    format!("[[steps]]\nid = \"{id}\"\nargv = [\"sh\", \"-c\", \"{effect}\"]\n{more}")
}

/// Runs it until a command has done its work, and ends pixir by this signal.
fn stopped(flow: &str, answers: &Value, signal: &str, is_far_enough: impl Fn(&Shell) -> bool) -> Shell {
    let shell = Shell::new(&[("notes", "old\n")]);
    let path = file(&shell, flow).display().to_string();
    let model = script(&shell, answers);
    let args = ["workflow", "run", &path, "--write", "--json"];
    let child = shell.command(args.into_iter().chain(model.iter().map(String::as_str))).spawn().expect("it starts");
    wait::until("it has gone far enough", || is_far_enough(&shell));
    let told = std::process::Command::new("kill").args([signal, &child.id().to_string()]).status();
    assert!(told.expect("kill").success());
    ran(child.wait_with_output().expect("it ends"));
    shell.write("go", "");
    shell
}

fn is_here(shell: &Shell) -> bool {
    shell.workspace().join("here").exists()
}

/// What a resume would do about each step.
fn verdicts(shell: &Shell) -> Vec<String> {
    let dry = shell.run(["workflow", "resume", "last", "--dry-run", "--json"]).document();
    let steps = dry["steps"].as_array().unwrap_or_else(|| panic!("{dry}")).iter();
    steps.map(|it| format!("{} {}", it["id"], it["verdict"]).replace('"', "")).collect()
}

/// Steps that wait for the user.
fn waiting(ran: &Ran) -> Vec<String> {
    let result = ran.document();
    let steps = result["steps"].as_array().unwrap_or_else(|| panic!("{result}")).iter();
    let waiting = steps.filter(|it| it["status"] == "waiting");
    waiting.filter_map(|it| it["id"].as_str()).map(str::to_owned).collect()
}

/// Runs whose last step was cut off after it touched what completed steps had left: each file as it is in the end.
const TOUCHED: [(&str, &str, &str, &str); 6] = [
    ("appended to", "echo a >> notes", "echo b >> notes", "old\na\nb\n"),
    ("written over", "echo a > notes", "echo b > notes", "b\n"),
    ("removed", "echo a > notes", "rm notes", "(gone)"),
    ("renamed", "echo a > notes", "mv notes other", "(gone)"),
    ("made again", "rm notes", "echo b > notes", "b\n"),
    (
        "touched with others",
        "echo a >> notes; echo a > two",
        "echo b >> notes; echo b >> two; echo b > three",
        "old\na\nb\n",
    ),
];

/// Broken builds: the completed step is asked about, as its files are not as it left them; the first suggestion does the effect
/// once more; an answer is followed by the next question; the question does not say which files differ.
#[test]
fn a_killed_run_asks_about_the_step_that_was_cut_off_and_about_no_completed_one() {
    for signal in ["-KILL", "-INT"] {
        for (about, first, second, left) in TOUCHED {
            let flow = [
                does("one", first, ""),
                cut_off("two", second, "needs = [\"one\"]\n"),
                does("three", "echo end > end", "needs = [\"two\"]\n"),
            ];
            let shell = stopped(&flow.concat(), &json!([]), signal, is_here);
            assert_eq!(verdicts(&shell), ["one reuse", "two ask", "three held"], "{about}, {signal}");
            let asked = resume(&shell, &json!([]), &["--write"]);
            assert_eq!((asked.code, waiting(&asked)), (13, vec!["two".to_owned()]), "{about}: {asked:?}");
            let result = asked.document();
            let why = step(&result, "two")["why"].as_str().unwrap_or_default().to_owned();
            assert!(why.contains("changed since: ") && why.contains("notes"), "{about}: {why}");
            let next = result["next_actions"][0].as_str().expect("a command").to_owned();
            assert!(next.ends_with("--done two"), "{about}: {next}");
            let done = typed(&shell, &format!("{next} --json"));
            assert_eq!((done.code, waiting(&done)), (0, vec![]), "{about}: {done:?}");
            let notes = fs::read_to_string(shell.workspace().join("notes")).unwrap_or_else(|_| "(gone)".to_owned());
            assert_eq!((notes.as_str(), shell.read("end").as_str()), (left, "end\n"), "{about}, {signal}");
        }
    }
}

/// Broken build: what the user decides at once leaves the completed step to be asked about.
#[test]
fn what_the_user_decides_at_once_is_all_that_is_asked() {
    let flow =
        || [does("one", "echo a >> notes", ""), cut_off("two", "echo b >> notes", "needs = [\"one\"]\n")].concat();
    for (decision, notes) in [("--rerun", "old\na\nb\nb\n"), ("--skip", "old\na\nb\n"), ("--done", "old\na\nb\n")] {
        let shell = stopped(&flow(), &json!([]), "-KILL", is_here);
        let ran = resume(&shell, &json!([]), &["--write", decision, "two"]);
        assert_eq!((ran.code, shell.read("notes").as_str()), (0, notes), "{decision}: {ran:?}");
        let again = resume(&shell, &json!([]), &["--write"]);
        assert_eq!((again.code, shell.read("notes").as_str()), (0, notes), "{decision}, once more: {again:?}");
    }
}

/// Broken builds: a command that only read is asked about; one that had not begun; an agent that had only read; a command that
/// may run twice makes completed steps stale.
#[test]
fn a_step_that_did_nothing_yet_or_only_read_is_run_again_unasked() {
    let fails = "[[steps]]\nid = \"look\"\nargv = [\"sleep\", \"600\"]\nneeds = [\"one\"]\n";
    let began = |id: &'static str| {
        move |shell: &Shell| {
            let text = shell.logs().iter().filter_map(|path| fs::read_to_string(path).ok()).collect::<String>();
            text.contains(&format!("\"event\":\"step_started\",\"id\":\"{id}\""))
                && text.contains("\"command\":\"sleep 600\"")
        }
    };
    let shell = stopped(&[&does("one", "echo a >> notes", ""), fails].concat(), &json!([]), "-KILL", began("look"));
    assert_eq!(verdicts(&shell), ["one reuse", "look run"]);

    let twice = cut_off("two", "echo b >> notes", "needs = [\"one\"]\nidempotent = true\n");
    let shell = stopped(&[does("one", "echo a >> notes", ""), twice].concat(), &json!([]), "-KILL", is_here);
    assert_eq!(verdicts(&shell), ["one reuse", "two run"]);
    assert_eq!(resume(&shell, &json!([]), &["--write"]).code, 0);

    // The Log ends where the step has begun, and its call is not there.
    let shell = Shell::new(&[("notes", "old\n")]);
    let flow = [does("one", "echo a >> notes", ""), does("two", "echo b >> notes", "needs = [\"one\"]\n")].concat();
    assert_eq!(run(&shell, &flow, &json!([]), &["--write"]).code, 0);
    cut_after(&shell, "\"event\":\"step_started\",\"id\":\"two\"");
    shell.write("notes", "old\na\n");
    assert_eq!(verdicts(&shell), ["one reuse", "two run"]);
    let again = resume(&shell, &json!([]), &["--write"]);
    assert_eq!((again.code, shell.read("notes").as_str()), (0, "old\na\nb\n"), "{again:?}");

    let agent = "[[steps]]\nid = \"two\"\nisolation = \"shared\"\ntask = \"Look\"\nneeds = [\"one\"]\n";
    let flow = [&does("one", "echo a >> notes", ""), agent].concat();
    let answers = |call: Value| json!([{ "of": "Look", "calls": [call] }, { "of": "Look", "hang": true }]);
    let has = |part: &'static str| {
        move |shell: &Shell| {
            let text = shell.logs().iter().filter_map(|path| fs::read_to_string(path).ok()).collect::<String>();
            text.matches("\"type\":\"tool_result\"").count() == 2 && text.contains(part)
        }
    };
    let read = json!({ "name": "read", "args": { "path": "notes" } });
    let shell = stopped(&flow, &answers(read), "-KILL", has("read"));
    assert_eq!(verdicts(&shell), ["one reuse", "two run"], "it only read");
    let write = json!({ "name": "write", "args": { "path": "notes", "content": "agent\n" } });
    let shell = stopped(&flow, &answers(write), "-KILL", has("agent"));
    assert_eq!(verdicts(&shell), ["one reuse", "two ask"], "it wrote what the step before it had left");
    let done = resume(&shell, &json!([]), &["--write", "--done", "two"]);
    assert_eq!((done.code, shell.read("notes").as_str()), (0, "agent\n"), "{done:?}");
}

/// Broken builds: what a check or a step that failed changed makes the completed step stale whose file it was; the limit of the
/// run does.
#[test]
fn what_a_later_step_is_known_to_have_changed_makes_no_completed_one_stale() {
    let go = "[[steps]]\nid = \"last\"\nargv = [\"test\", \"-e\", \"go\"]\n";
    let agent = "[[steps]]\nid = \"two\"\nisolation = \"shared\"\ntask = \"Write\"\nneeds = [\"one\"]\ncheck = [[\"test\", \"-e\", \"go\"]]\n";
    let answers = json!([
        { "of": "Write", "calls": [{ "name": "write", "args": { "path": "notes", "content": "agent\n" } }] },
        { "of": "Write", "text": "Done." },
    ]);
    let one = || does("one", "echo a >> notes", "");
    let check = does("two", "echo b >> notes", "needs = [\"one\"]\ncheck = [[\"sh\", \"-c\", \"echo c >> notes\"]]\n");
    for (flow, answers, wanted) in [
        (
            [one(), check, format!("{go}needs = [\"two\"]\n")].concat(),
            json!([]),
            ["one reuse", "two reuse", "last run"],
        ),
        (
            [one(), agent.to_owned(), format!("{go}needs = [\"two\"]\n")].concat(),
            answers,
            ["one reuse", "two run", "last run"],
        ),
    ] {
        let shell = Shell::new(&[("notes", "old\n")]);
        assert_eq!(run(&shell, &flow, &answers, &["--write"]).code, 9, "{flow}");
        assert_eq!(verdicts(&shell), wanted, "{flow}");
    }
    let flow = ["[limits]\nseconds = 2\n", &one(), &cut_off("two", "echo b >> notes", "needs = [\"one\"]\n")].concat();
    let shell = Shell::new(&[("notes", "old\n")]);
    assert_eq!(run(&shell, &flow, &json!([]), &["--write"]).code, 14);
    assert_eq!(verdicts(&shell), ["one reuse", "two ask"]);
}

/// The Log of the run ends behind the line with this part.
fn cut_after(shell: &Shell, part: &str) {
    let has = |path: &PathBuf| fs::read_to_string(path).is_ok_and(|text| text.contains(part));
    let path = shell.logs().into_iter().find(has).expect("the log of the run");
    let text = fs::read_to_string(&path).expect("a log");
    let at = text.find(part).expect("the part");
    let end = at + text[at..].find('\n').expect("its line") + 1;
    fs::File::create(&path).and_then(|mut file| file.write_all(&text.as_bytes()[..end])).expect("the log is cut");
}
