//! Programs that drive pixir: what they can read about it, and what they get done with that.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::server::{Dialect, Reply, Server, call, text};
use crate::shell::{Ran, Shell, entries, ran, run_to_its_end};

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// A program in Python, for which pixir is a command like any other.
fn python<'a>(shell: &Shell, program: &Path, args: impl IntoIterator<Item = &'a str>) -> Ran {
    let plain = shell.command::<&str>([]);
    let mut python = Command::new("python3");
    python.arg(program).args(args).current_dir(shell.workspace());
    python.env_clear().envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let folder = Path::new(env!("CARGO_BIN_EXE_pixir")).parent().expect("a folder").display();
    python.env("PATH", format!("{folder}:{}", std::env::var("PATH").unwrap_or_default()));
    python.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    ran(run_to_its_end(&mut python))
}

fn flags_in(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'));
    words.filter(|it| it.starts_with("--") && it.len() > 2).map(str::to_owned).collect()
}

/// Broken build: the guide names a flag, a command or an exit code that is no more.
#[test]
fn the_guide_for_agents_is_short_and_true() {
    let shell = Shell::new(&[]);
    let guide = shell.run(["agent"]).stdout;
    assert!(guide.len() <= 6 * 1024, "{} bytes", guide.len());
    assert_eq!(shell.run(["agent", "--json"]).document()["guide"].as_str().map(str::trim_end), Some(guide.trim_end()));
    let schema = shell.run(["schema"]).document();
    let known = flags_in(&schema["commands"].to_string());
    let unknown: Vec<String> =
        flags_in(&guide).into_iter().filter(|it| !known.contains(it) && it != "--help").collect();
    assert!(unknown.is_empty(), "{unknown:?}");
    for code in schema["exit_codes"].as_object().expect("a table").keys() {
        assert!(
            guide.split(|c: char| !c.is_ascii_digit()).any(|it| it == code),
            "exit code {code} is not in the guide"
        );
    }
    let groups = schema["commands"]["commands"].as_array().expect("commands");
    for line in guide.lines().filter(|line| line.starts_with("    pixir ")) {
        let word = line.split_whitespace().nth(1).expect("a word");
        let is_command = groups.iter().any(|it| it["name"] == word) || word.starts_with('-') || word == "COMMAND";
        assert!(is_command, "{line}");
    }
    for field in ["structured_output", "resume_command", "files_changed", "denials", "next_actions", "duration_ms"] {
        assert!(guide.contains(field), "{field}");
    }
}

/// The example of the guide is a whole host, in sixty lines of Python and without a package.
///
/// Broken builds: an answer has no id; an approval comes without its call; a resumed session has another id.
#[test]
fn the_python_example_drives_a_session() {
    let path = file("examples/host.py");
    assert!(fs::read_to_string(&path).expect("it is there").lines().count() <= 60);
    let shell = Shell::new(&[]);
    let write = ("c1".to_owned(), "write".to_owned(), json!({ "path": "a.txt", "content": "made\n" }));
    let first = Reply::Answer { text: "word ".repeat(30_000), calls: vec![write] };
    let server = Server::start(vec![first, text("Written."), text("Four.")]);
    shell.configure("[models.\"custom/m\"]\nwindow = 65536\n");
    let model = server.flags(Dialect::Chat);
    let args = ["--config", "compaction.summary=pixir"].into_iter().chain(model.iter().map(String::as_str));
    let done = python(&shell, &path, args);
    assert_eq!(done.code, 0, "{}{}", done.stdout, done.stderr);
    let lines: Vec<&str> = done.stdout.lines().collect();
    assert!(lines[0].starts_with("asks: write because"), "{lines:?}");
    assert_eq!(lines[1..], ["first: Written.", "then: Four."]);
    assert_eq!(shell.read("a.txt"), "made\n");
    let log = entries(&shell.logs()[0]);
    let kinds = |kind: &str| log.iter().filter(|it| it["type"] == kind).count();
    assert_eq!((shell.logs().len(), kinds("history_compaction"), kinds("turn_ended")), (1, 1, 2));
    assert!(log.iter().any(|it| it["data"]["text"] == "and say so"), "the steer joined the turn");
}

/// Ten tasks from end to end, by a program that runs no command, flag, value, field, Input or event which it has not read in
/// `pixir agent` or in a help page.
///
/// Broken builds: the guide leaves out a command's field; the help leaves out a flag that is taken; a result names no command
/// that goes on; a rule has no id; a fork has the whole session; the events of a run have other names than the guide says.
#[test]
fn ten_tasks_are_done_by_a_program_that_knows_only_the_guide_and_the_help() {
    let shell = Shell::new(&[("notes.txt", "alpha\n"), ("check.sh", "echo checked\n")]);
    let add = || {
        call(
            "c1",
            "edit",
            json!({ "path": "notes.txt", "edits": [{ "old_text": "alpha\n", "new_text": "alpha\nbeta\n" }] }),
        )
    };
    let check = || call("c1", "bash", json!({ "command": "sh check.sh" }));
    let server = Server::start(vec![
        text(&format!("It says alpha. {}", "word ".repeat(30_000))),
        add(),
        text("I may not."),
        add(),
        text("Added."),
        call("c1", "write", json!({ "path": "made.txt", "content": "made\n" })),
        text("Written."),
        text("Still alpha."),
        text(&"more ".repeat(12_000)),
        check(),
        text("It passes."),
        check(),
        text("I may not."),
        call("c1", "read", json!({ "path": "notes.txt" })),
        text("Read."),
    ]);
    shell.configure(&format!(
        "model = \"work/m\"\n[providers.work]\ndialect = \"chat\"\nbase_url = \"{}\"\n[models.\"work/m\"]\nwindow = 262144\n[compaction]\nsummary = \"pixir\"\n",
        server.url
    ));
    let flow = "version = 1\nname = \"flow\"\noutput = \"{{steps.one.output}}\"\n[[steps]]\nid = \"one\"\nargv = [\"printf\", \"made\"]\nidempotent = true\n";
    let flow = shell.aside("flow.toml", flow).display().to_string();
    let done = python(&shell, &file("tests/clients/newcomer.py"), [flow.as_str()]);
    assert_eq!(done.code, 0, "{}{}", done.stdout, done.stderr);
    let said: Vec<String> =
        done.stdout.lines().map(|line| line.chars().take(60).collect::<String>().trim_end().to_owned()).collect();
    insta::assert_snapshot!(said.join("\n"));
    // What it says it did is done.
    assert_eq!((shell.read("notes.txt").as_str(), shell.read("made.txt").as_str()), ("alpha\n", "made\n"));
    assert!(shell.read("talk.html").contains("Still alpha."));
    let logs: Vec<Vec<Value>> = shell.logs().iter().map(|log| entries(log)).collect();
    let with = |kind: &str| logs.iter().filter(|log| log.iter().any(|it| it["type"] == kind)).count();
    assert_eq!((with("history_compaction"), with("files_restored"), server.bodies().len()), (1, 1, 15));
    assert_eq!(shell.run(["permissions", "list", "--json"]).document()["total"], 0);
}
