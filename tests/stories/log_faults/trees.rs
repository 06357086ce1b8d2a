//! Logs that cannot be written while agents, workflows, MCP calls, jobs and clients wait for a Session's end.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use super::failing_disk;
use crate::editor::{Editor, able};
use crate::lines::Lines;
use crate::pty::Terminal;
use crate::shell::{Shell, figures, is_running, mark, ran, run_within, skip};
use crate::stories::mcp::Scripted;
use crate::tier;
use crate::wait;

/// The longest that a run with a failing Log may take on a busy machine; without the fault each takes less than a second.
const LONGEST: Duration = Duration::from_secs(40);
/// How soon the user must know why nothing goes on.
const SOON: Duration = Duration::from_secs(2);
/// Errors of a disk, with the number and the words of the system.
const ERRORS: [(i32, &str); 3] = [(28, "No space left"), (5, "Input/output error"), (122, "Disk quota exceeded")];

/// Something whose Logs fail.
struct Scene {
    name: &'static str,
    /// The graph that is run; `None` for a prompt.
    graph: Option<&'static str>,
    /// The model's answers.
    steps: Vec<Value>,
    args: &'static [&'static str],
}

fn scene(name: &'static str, graph: Option<&'static str>, steps: Vec<Value>) -> Scene {
    Scene { name, graph, steps, args: &["--write"] }
}

fn spawn(task: &str, name: &str, isolation: &str) -> Value {
    let mut args = json!({ "task": task, "name": name });
    if isolation != "shared" {
        args["isolation"] = isolation.into();
    }
    json!({ "name": "spawn_agent", "args": args })
}

/// The answers of an agent that writes one file.
fn works(task: &str, path: &str) -> [Value; 2] {
    let write = json!({ "name": "write", "args": { "path": path, "content": "done\n" } });
    [json!({ "of": task, "calls": [write] }), json!({ "of": task, "text": "Done." })]
}

fn two_agents(isolation: &str) -> Vec<Value> {
    let start = json!({ "calls": [spawn("Do A", "a", isolation), spawn("Do B", "b", isolation)] });
    let end = json!({ "text": "Both are done." });
    [vec![start], works("Do A", "a.txt").to_vec(), works("Do B", "b.txt").to_vec(), vec![end]].concat()
}

const COMMANDS: &str = "[[steps]]\nid = \"one\"\nkind = \"command\"\nargv = [\"sh\", \"-c\", \"echo 1 >> ran.txt\"]\n\
    [[steps]]\nid = \"two\"\nkind = \"command\"\nargv = [\"sh\", \"-c\", \"echo 2 >> ran.txt\"]\nneeds = [\"one\"]\n";
const AGENTS: &str = "[[steps]]\nid = \"one\"\nkind = \"agent\"\ntask = \"Do A\"\n\
    [[steps]]\nid = \"two\"\nkind = \"agent\"\ntask = \"Do B\"\nneeds = [\"one\"]\n";
const GATE: &str = "[[steps]]\nid = \"one\"\nkind = \"command\"\nargv = [\"echo\", \"1\"]\n\
    [[steps]]\nid = \"ask\"\nkind = \"gate\"\nask = \"Go on?\"\nchoices = [\"yes\", \"no\"]\nneeds = [\"one\"]\n";

fn scenes() -> Vec<Scene> {
    let nested = vec![
        json!({ "calls": [spawn("Do A", "a", "shared")] }),
        json!({ "of": "Do A", "calls": [spawn("Do B", "b", "shared")] }),
        works("Do B", "b.txt")[0].clone(),
        works("Do B", "b.txt")[1].clone(),
        json!({ "of": "Do A", "text": "Both are done." }),
        json!({ "text": "All is done." }),
    ];
    let behind = vec![
        json!({ "calls": [{ "name": "spawn_agent", "args": { "task": "Do A", "name": "a", "wait": false } }] }),
        json!({ "text": "It is under way." }),
        json!({ "of": "Do A", "text": "The answer is 42.", "delay_ms": 200 }),
        json!({ "text": "It says 42." }),
    ];
    let one = [vec![json!({ "calls": [spawn("Do A", "a", "shared")] })], works("Do A", "a.txt").to_vec()];
    let both = [works("Do A", "a.txt"), works("Do B", "b.txt")].concat();
    vec![
        scene("one agent", None, [one.concat(), vec![json!({ "text": "It is done." })]].concat()),
        scene("two agents", None, two_agents("shared")),
        scene("agents in copies", None, two_agents("copy")),
        scene("an agent of an agent", None, nested),
        scene("an agent that no call waits for", None, behind),
        scene("a workflow of commands", Some(COMMANDS), Vec::new()),
        scene("a workflow of agents", Some(AGENTS), both),
        scene("a workflow with a gate", Some(GATE), Vec::new()),
        scene(
            "a job",
            None,
            vec![
                json!({ "calls": [{ "name": "bash", "args": { "command": "echo 1; sleep 30", "background": true } }] }),
                json!({ "text": "It runs." }),
            ],
        ),
        scene(
            "a call of an MCP server",
            None,
            vec![
                json!({ "calls": [{ "name": "test__look", "args": { "what": "x" } }] }),
                json!({ "text": "I have looked." }),
            ],
        ),
    ]
}

/// Which system call on a Log fails, and how.
#[derive(Debug, Clone, Copy)]
struct Fault {
    call: &'static str,
    /// The first of these calls that fails.
    at: u64,
    is_lasting: bool,
    error: (i32, &'static str),
}

impl Fault {
    fn environment(self, shim: &Path, hit: &Path) -> Vec<(&'static str, String)> {
        let mut all = vec![
            ("LD_PRELOAD", shim.display().to_string()),
            ("CALL", self.call.to_owned()),
            ("AT", self.at.to_string()),
            ("ERR", self.error.0.to_string()),
            ("HIT", hit.display().to_string()),
        ];
        all.extend(self.is_lasting.then(|| ("STICKY", "1".to_owned())));
        all
    }
}

/// Each scene with faults from the first Entry of a Log to the last.
fn faults() -> Vec<(usize, Fault)> {
    let mut all = Vec::new();
    for scene in 0..scenes().len() {
        for at in 2..=13 {
            for (call, is_lasting) in [("write", false), ("write", true), ("fdatasync", false), ("fdatasync", true)] {
                let error = ERRORS[all.len() % ERRORS.len()];
                all.push((scene, Fault { call, at, is_lasting, error }));
            }
        }
    }
    all
}

/// A home in which the scene can run.
fn prepare(scene: &Scene) -> (Shell, Vec<String>) {
    let shell = Shell::new(&[("a.txt", "alpha\n")]);
    if scene.name.contains("MCP") {
        let scripted = Scripted::new(&shell);
        let (program, journal) = (scripted.program.display().to_string(), scripted.journal_flag());
        let add = ["mcp", "add", "test", "--reads", "look", "--", "python3", &program, &journal, "tools=look"];
        let added = shell.run(add);
        assert_eq!(added.code, 0, "{added:?}");
    }
    let script = shell.aside("script.json", &json!({ "steps": scene.steps }).to_string());
    let mut args = match scene.graph {
        Some(graph) => {
            let flow = shell.aside("flow.toml", &format!("version = 1\nname = \"flow\"\n{graph}"));
            vec!["workflow".to_owned(), "run".to_owned(), flow.display().to_string()]
        }
        None => ["--headless", "go"].map(str::to_owned).to_vec(),
    };
    args.extend(scene.args.iter().map(|it| (*it).to_owned()));
    args.extend(["--toolset".to_owned(), "typed".to_owned()]);
    args.extend(["--provider".to_owned(), format!("script:{}", script.display())]);
    (shell, args)
}

/// A run ends, with the reason on stderr and the exit code of a Log that cannot be written, whichever Log of its tree it is.
/// Afterwards every Log is whole.
///
/// Broken builds: a Turn that cannot record its end publishes none, so that its parent waits for ever; the run of a workflow
/// waits for a `turn_ended` that no Log has; an agent whose Log failed is one that did not complete, with exit code 9.
#[test]
fn a_tree_whose_log_fails_ends_with_the_reason() {
    let tools = tempfile::tempdir().expect("a folder");
    let Some(shim) = failing_disk(tools.path()) else { return skip("a C compiler for the disk is missing") };
    let scenes = scenes();
    let cells = tier::sample("a_tree_whose_log_fails", faults());
    let (tried, mut hits, mut longest) = (cells.len(), 0, Duration::ZERO);
    for (number, fault) in cells {
        let scene = &scenes[number];
        let (shell, args) = prepare(scene);
        let hit = shell.home().with_file_name("hit");
        let mut command = shell.command(&args);
        command.envs(fault.environment(&shim, &hit));
        let began = Instant::now();
        let (output, hangs) = run_within(&mut command, LONGEST);
        longest = longest.max(began.elapsed());
        let ran = ran(output);
        let what = format!("{}, {fault:?}\n{}\n{}", scene.name, ran.stdout, ran.stderr);
        assert!(!hangs, "it hangs: {what}");
        if hit.exists() {
            hits += 1;
            assert!(ran.code == 1 && ran.stderr.contains(fault.error.1), "exit {}: {what}", ran.code);
        }
        let verified = shell.run(["sessions", "verify", "--all"]);
        assert_eq!(verified.code, 0, "{verified:?}: {what}");
    }
    figures(&format!(
        "C7: {tried} faults of a Log under agents, workflows, servers and jobs, {hits} arrived, 0 hangs; the longest run took {longest:?}"
    ));
    assert!(hits * 3 > tried, "the faults arrive");
}

/// Broken build: a resume on a full disk waits for the end of a run that no Log can take.
#[test]
fn a_workflow_is_not_resumed_on_a_full_disk_and_is_on_one_with_room() {
    let tools = tempfile::tempdir().expect("a folder");
    let Some(shim) = failing_disk(tools.path()) else { return skip("a C compiler for the disk is missing") };
    let scenes = scenes();
    for name in ["a workflow of commands", "a workflow of agents"] {
        let scene = scenes.iter().find(|it| it.name == name).expect("it is one of them");
        let (shell, args) = prepare(scene);
        let hit = shell.home().with_file_name("hit");
        let run = |args: &[String], at: u64| {
            let fault = Fault { call: "write", at, is_lasting: true, error: ERRORS[0] };
            let mut command = shell.command(args);
            command.envs(fault.environment(&shim, &hit));
            let (output, hangs) = run_within(&mut command, LONGEST);
            assert!(!hangs, "it hangs: {name}, {at}: {output:?}");
            ran(output)
        };
        let first = run(&args, 6);
        assert!(first.code == 1 && first.stderr.contains("No space left"), "{first:?}");
        let provider = args.last().expect("the script");
        let resume: Vec<String> =
            ["workflow", "resume", "last", "--write", "--provider", provider].map(str::to_owned).to_vec();
        for at in 1..=4 {
            let again = run(&resume, at);
            assert!(again.code == 1 && again.stderr.contains("No space left"), "{name}, {at}: {again:?}");
        }
        let rest = shell.run(["sessions", "verify", "--all"]);
        assert_eq!(rest.code, 0, "{rest:?}");
    }
}

/// The user reads the reason at once, and every way out works (a key, Ctrl+C twice, TERM), while another agent still runs.
///
/// Broken build: "working" stays on the screen, and Esc, Ctrl+C, Ctrl+D and TERM wait for the end of an agent that no Log has.
#[test]
fn the_interface_shows_why_and_can_be_left() {
    let tools = tempfile::tempdir().expect("a folder");
    let Some(shim) = failing_disk(tools.path()) else { return skip("a C compiler for the disk is missing") };
    let steps = two_agents("shared");
    let (mut tried, mut longest) = (0, Duration::ZERO);
    for (at, way) in [(5, "\x04"), (8, "\x03"), (9, "TERM"), (11, "\x04"), (12, "TERM")] {
        let shell = Shell::new(&[("a.txt", "alpha\n")]);
        let script = shell.aside("script.json", &json!({ "steps": steps }).to_string());
        let (provider, hit) = (format!("script:{}", script.display()), shell.home().with_file_name("hit"));
        let fault = Fault { call: "write", at, is_lasting: true, error: ERRORS[0] };
        let environment = fault.environment(&shim, &hit);
        let folder = shell.home().parent().expect("a folder").display().to_string();
        let mut all: Vec<(&str, &str)> = environment.iter().map(|(name, value)| (*name, value.as_str())).collect();
        all.push(("HOME", &folder));
        let args = ["--mode", "auto", "--toolset", "typed", "--provider", &provider];
        let pixir = env!("CARGO_BIN_EXE_pixir").as_ref();
        let mut terminal = Terminal::of(&shell, pixir, &args, &all, 100, 30);
        terminal.wait_for("Ask pixir");
        terminal.send("go\r");
        wait::until("the fault arrives", || hit.exists());
        let arrived = Instant::now();
        terminal.wait_for("No space left");
        longest = longest.max(arrived.elapsed());
        terminal.wait_that("nothing runs", |screen| !screen.contains("Esc interrupts"));
        match way {
            "TERM" => terminal.signal(Signal::TERM),
            "\x03" => terminal.send("\x03\x03"),
            way => terminal.send(way),
        }
        let ended = terminal.wait_until_ended();
        let left = terminal.end();
        left.assert_sane();
        assert!(ended < Duration::from_secs(10), "{at}, {way:?}: it took {ended:?} to end");
        assert_eq!(left.code, if way == "TERM" { 143 } else { 0 }, "{at}, {way:?}");
        tried += 1;
    }
    figures(&format!(
        "C7: {tried} interfaces with agents and a full disk, 0 hangs; the reason was shown after {longest:?} at most"
    ));
    assert!(longest < SOON * 5, "the reason came after {longest:?}");
}

/// Broken build: a prompt whose agents or end could not be recorded has no response.
#[test]
fn a_client_and_a_host_get_their_answer() {
    let tools = tempfile::tempdir().expect("a folder");
    let Some(shim) = failing_disk(tools.path()) else { return skip("a C compiler for the disk is missing") };
    for at in [4, 6, 8, 10, 12] {
        for is_lasting in [false, true] {
            let fault = Fault { call: "write", at, is_lasting, error: ERRORS[1] };
            let begin = |more: &[&str]| -> (Shell, std::process::Command, PathBuf) {
                let shell = Shell::new(&[("a.txt", "alpha\n")]);
                let script = shell.aside("script.json", &json!({ "steps": two_agents("shared") }).to_string());
                let provider = format!("script:{}", script.display());
                let hit = shell.home().with_file_name("hit");
                let flags = ["--mode", "auto", "--toolset", "typed", "--provider", &provider];
                let mut command = shell.command(more.iter().copied().chain(flags));
                command.envs(fault.environment(&shim, &hit));
                (shell, command, hit)
            };
            let (shell, command, hit) = begin(&["acp"]);
            let mut editor = Editor::of(command);
            editor.initialize(able());
            let session = editor.session(&shell.workspace());
            let prompt = editor.prompt(&session, "go");
            let response = editor.response(prompt);
            if hit.exists() && is_lasting {
                assert!(response["error"].to_string().contains("Input/output error"), "{fault:?}: {response}");
            }
            editor.close();

            let (shell, command, _hit) = begin(&["--headless", "--input", "jsonl"]);
            let mut host = Lines::of(command);
            host.raw(json!({ "id": "1", "type": "prompt", "text": "go" }).to_string());
            host.until(0, |line| line["type"] == "response" && line["id"] == "1");
            host.until(0, |line| {
                line["type"] == "turn_abandoned" || line["type"] == "turn_ended" || line["ok"] == false
            });
            host.close();
            drop(shell);
        }
    }
}

/// The fault comes while an agent runs a command: another one is stopped, and its end cannot be recorded.
///
/// Broken build: after a fault of its Log, a Session leaves the commands of its agents behind.
#[test]
fn what_an_agent_runs_ends_with_a_tree_whose_log_fails() {
    let tools = tempfile::tempdir().expect("a folder");
    let Some(shim) = failing_disk(tools.path()) else { return skip("a C compiler for the disk is missing") };
    let sleeping = mark();
    let sleep = json!({ "name": "bash", "args": { "command": format!("touch here; sleep {sleeping}") } });
    let steps = json!({ "steps": [
        { "calls": [spawn("Do A", "a", "shared"), spawn("Do B", "b", "shared")] },
        { "of": "Do A", "calls": [sleep] },
        { "of": "Do B", "text": "I look.", "hang": true },
        { "text": "Done." },
    ] });
    let shell = Shell::new(&[]);
    let script = shell.aside("script.json", &steps.to_string());
    let hit = shell.home().with_file_name("hit");
    let mut command = shell.command(["--headless", "--input", "jsonl", "--write", "--toolset", "typed", "--provider"]);
    command.arg(format!("script:{}", script.display()));
    // The file appears once the command runs, and every write fails from then on.
    let here = shell.workspace().join("here");
    let fault = Fault { call: "write", at: 1, is_lasting: true, error: ERRORS[2] };
    command.envs(fault.environment(&shim, &hit)).env("FROM", &here);
    let mut host = Lines::of(command);
    host.raw(json!({ "id": "1", "type": "prompt", "text": "go" }).to_string());
    wait::until("the command runs", || here.exists() && is_running(&sleeping));
    host.raw(json!({ "id": "2", "type": "stop_agents", "path": ["b"] }).to_string());
    host.until(0, |line| line.to_string().contains("Disk quota exceeded"));
    wait::until("no command is left", || !is_running(&sleeping));
    host.close();
}
