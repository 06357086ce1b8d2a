//! A run of a workflow on the screen: its line in the conversation, `/workflows`, and what its keys do.

use pixir_core::event::{
    Ask, CheckRan, Cost, Held, Planned, StepEnded, StepOutcome, StepStarted, TurnEnded, TurnStatus, Usage,
    WorkflowEvent,
};
use pixir_core::provider::script::{Script, Step};
use serde_json::json;

use crate::driver::{Pixir, calls, log_of, says};
use crate::stories::agents::screen::drawn;

/// An answer to the agent with this task.
fn of(task: &str, text: &str) -> Step {
    Step { of: Some(task.to_owned()), ..says(text) }
}

/// A Session in which a run ended: one step is completed, one failed its check, a gate waits, and one is held.
fn ended_run(columns: u16, rows: u16) -> Pixir {
    let graph = json!({ "version": 1, "name": "release", "steps": [
        { "id": "build", "argv": ["true"] },
        { "id": "notes", "task": "Write the notes" },
        { "id": "ship", "ask": "Ship it?", "needs": ["build"] },
        { "id": "deploy", "argv": ["true"], "needs": ["ship", "notes"], "when": "steps.ship.output == 'yes'" },
    ] });
    Pixir::resumed(columns, rows, |folder, workspace| {
        let mut log = log_of(folder, workspace);
        let mut put = |event: WorkflowEvent| drop(log.append(Some(1), event.into()).expect("it is written"));
        let planned = Planned { name: "release".into(), graph, hash: "h".into(), ..Planned::default() };
        put(WorkflowEvent::Planned(planned.into()));
        let started = |id: &str| {
            let step = StepStarted { id: id.into(), key: id.into(), attempt: 1, ..StepStarted::default() };
            WorkflowEvent::StepStarted(step.into())
        };
        let ended = |id: &str, status| StepEnded {
            id: id.into(),
            key: id.into(),
            status,
            duration_ms: 1_500,
            ..StepEnded::default()
        };
        put(started("build"));
        let output = json!("built in 3 s");
        put(WorkflowEvent::StepEnded(Box::new(StepEnded { output, ..ended("build", StepOutcome::Completed) })));
        put(started("notes"));
        let checks = vec![CheckRan { command: "grep -q notes".into(), exit_code: Some(1), output: "no notes".into() }];
        put(WorkflowEvent::StepEnded(Box::new(StepEnded { checks, ..ended("notes", StepOutcome::Failed) })));
        let ask = Some(Ask { question: "Ship it?".into(), choices: vec!["yes".into(), "no".into()] });
        let held = Held {
            id: "ship".into(),
            status: StepOutcome::Waiting,
            by: "user".into(),
            why: "Ship it?".into(),
            key: Some("ship".into()),
            ask,
            ..Held::default()
        };
        put(WorkflowEvent::Held(held.into()));
        let held = Held {
            id: "deploy".into(),
            status: StepOutcome::Held,
            by: "ship".into(),
            why: "ship did not complete".into(),
            ..Held::default()
        };
        put(WorkflowEvent::Held(held.into()));
        let end = TurnEnded {
            status: TurnStatus::Incomplete,
            error: None,
            usage: Usage::default(),
            usage_estimated: false,
            cost: Cost::default(),
            duration_ms: 3_000,
            tool_calls: 0,
            details: serde_json::Map::new(),
        };
        log.append(Some(1), end.into()).expect("it is written");
        log.establish().expect("establish");
    })
}

/// Broken builds: a step is not there at some size; the layers are a list on a wide screen; the card in the conversation has a
/// line for each step that is done.
#[tokio::test]
async fn the_run_is_shown_step_by_step_at_every_size() {
    for (columns, rows) in [(60, 20), (80, 24), (120, 40), (200, 60)] {
        let mut pixir = ended_run(columns, rows);
        let screen = pixir.does("/workflows<Enter>").await;
        for text in ["Workflow release", "1 of 4", "1 waits", "build", "notes", "ship", "deploy", "waiting", "held"] {
            assert!(screen.contains(text), "{text} at {columns}x{rows}:\n{screen}");
        }
        assert_eq!(screen.contains("layer 2"), columns >= 100, "{columns}:\n{screen}");
        if columns <= 120 {
            insta::assert_snapshot!(format!("workflow-{columns}x{rows}"), screen);
        }
        assert!(screen.contains("Ship it?") && screen.contains("› yes"), "the gate is chosen first:\n{screen}");
        let screen = pixir.does("<Up><Up>").await;
        assert!(screen.contains("built in 3 s"), "what the step put out, at {columns}x{rows}:\n{screen}");
        let screen = pixir.does("<Down>").await;
        assert!(screen.contains("✗ grep -q notes") && screen.contains("no notes"), "its check:\n{screen}");
    }
    for (columns, rows) in [(60, 20), (80, 24), (120, 40), (200, 60)] {
        let mut pixir = ended_run(columns, rows);
        let screen = pixir.does("<Esc>").await;
        let bar = "▰▰▰▰▱▱▱▱▱▱▱▱▱▱▱▱  1 of 4 · 1 waits · 1 failed";
        for line in ["◇ workflow release · 4 steps", bar, "✗ notes failed", "? ship waiting · Ship it?"] {
            assert!(screen.contains(line), "{line} at {columns}x{rows}:\n{screen}");
        }
        assert!(!screen.contains("build completed"), "what is done is a part of the bar:\n{screen}");
    }
}

/// Broken builds: the answer of the gate is the first one whatever is chosen; a step that was done runs again.
#[tokio::test]
async fn the_answer_of_a_gate_goes_on_with_the_run() {
    let mut pixir = ended_run(100, 30);
    pixir.does("/workflows<Enter>").await;
    pixir.does("<Tab>g").await;
    // The command of the mode `ask` is asked for, and the task finds no answer in the script.
    let log = pixir.log();
    let resumed = log.iter().find(|it| it["data"]["event"] == "resumed").expect("it goes on");
    assert_eq!(resumed["data"]["answers"], json!({ "ship": "no" }), "{resumed}");
    let answered = log.iter().find(|it| it["data"]["event"] == "gate_answered");
    assert!(answered.is_none_or(|it| it["data"]["choice"] == "no"), "{answered:?}");
}

/// Broken builds: the model's graph runs before the user has seen it; another graph than the approved one runs; the model
/// reads nothing of the end.
#[tokio::test]
async fn a_graph_of_the_model_is_approved_once_and_its_end_is_reported() {
    let graph = json!({ "version": 1, "name": "look", "steps": [
        { "id": "one", "role": "explorer", "task": "Look at one" },
        { "id": "two", "role": "explorer", "task": "Look at two", "needs": ["one"] },
    ], "output": "{{steps.two.output}}" });
    let steps = vec![
        calls("run_workflow", json!({ "graph": graph, "wait": true })),
        of("Look at one", "One is fine."),
        of("Look at two", "Two is fine."),
        says("Both are fine."),
    ];
    let mut pixir = Pixir::scripted(Script { steps, ..Script::default() }, &[], 100, 40);
    let screen = pixir.does("look<Enter>").await;
    assert!(screen.contains("Run workflow look (2 steps, at most 2 agents)"), "{screen}");
    assert!(screen.contains("one  agent, explorer"), "the graph is on the card:\n{screen}");
    let events: Vec<String> = pixir.kinds();
    assert!(!events.iter().any(|it| it == "subagent_event"), "nothing runs before the answer: {events:?}");
    let screen = pixir.does("<A-y>").await;
    assert!(screen.contains("Both are fine."), "{screen}");
    let log = pixir.log();
    let result = log.iter().find(|it| it["type"] == "tool_result").expect("a result");
    let output = result["data"]["output"].as_str().expect("text");
    for text in ["completed: 2 completed", "one completed", "output: Two is fine."] {
        assert!(output.contains(text), "{text}: {output}");
    }
    assert!(output.len() <= 4_100, "{}", output.len());
}

/// A workflow whose gate decides whether its last step runs.
const SHIP: &str = r#"version = 1
name = "ship"
description = "Look, ask, and note."
[params.version]
type = "string"
default = "1.0"
[[steps]]
id = "look"
role = "explorer"
task = "Look at {{params.version}}"
[[steps]]
id = "ask"
ask = "Ship {{params.version}}?"
choices = ["yes", "no"]
needs = ["look"]
[[steps]]
id = "note"
role = "explorer"
task = "Note it"
needs = ["ask"]
when = "steps.ask.output == 'no'"
"#;

/// Broken builds: a run begins before its plan was read; a wrong parameter or name is silent; `g` answers nothing while the run
/// goes on.
#[tokio::test]
async fn a_workflow_is_looked_at_begun_and_its_gate_answered_with_a_key() {
    let steps = vec![of("Look at 2.0", "It is fine."), of("Note it", "Not shipped.")];
    let script = Script { steps, ..Script::default() };
    let mut pixir = Pixir::with_workflow(script, "ship", SHIP, 100, 30);
    let screen = pixir.does("/workflows ship 2.0<Enter>").await;
    assert!(screen.contains("`2.0` has no `=`"), "{screen}");
    let screen = pixir.does("<C-u>/workflows shipp<Enter>").await;
    assert!(screen.contains("there is no workflow `shipp`"), "{screen}");
    let screen = pixir.does("<C-u>/workflows ship version=2.0<Enter>").await;
    for text in ["Workflow ship", "Look, ask, and note.", "layer 3", "ask  gate  after look", "at most: 2 agents"] {
        assert!(screen.contains(text), "{text}:\n{screen}");
    }
    assert!(screen.contains("version = \"2.0\"") && screen.contains("run"), "{screen}");
    assert!(!pixir.screen.session().is_some_and(|_| pixir.kinds().contains(&"workflow_event".to_owned())));
    let screen = pixir.does("<Enter>").await;
    assert!(screen.contains("Ship 2.0?"), "the gate asks:\n{screen}");
    let screen = pixir.does("<Esc>").await;
    assert!(screen.contains("1 of 3") && screen.contains("ask waiting"), "closed, it waits:\n{screen}");
    assert!(screen.contains("fix: /workflows shows the run, and resumes it"), "{screen}");
    let screen = pixir.does("/workflows<Enter>").await;
    assert!(screen.contains("› yes"), "{screen}");
    let screen = pixir.does("<Tab>g").await;
    assert!(screen.contains("3 of 3"), "{screen}");
    let log = pixir.log();
    let answered = log.iter().find(|it| it["data"]["event"] == "gate_answered").expect("an answer");
    assert_eq!(answered["data"]["choice"], "no", "{answered}");
    let note = log.iter().find(|it| it["data"]["event"] == "step_ended" && it["data"]["id"] == "note");
    assert_eq!(note.expect("an end")["data"]["output"], "Not shipped.");
}

/// Broken builds: a step that was under way when pixir died still runs on the screen; what is done is done again.
#[tokio::test]
async fn a_run_whose_pixir_was_killed_is_shown_as_it_stands_and_goes_on_with_a_key() {
    let hangs = Step { hang: true, ..of("Note it", "") };
    let text = SHIP.replace("when = \"steps.ask.output == 'no'\"", "").replace(
        "ask = \"Ship {{params.version}}?\"\nchoices = [\"yes\", \"no\"]",
        "role = \"explorer\"\ntask = \"Ask around\"",
    );
    let steps = vec![of("Look at 1.0", "Seen."), of("Ask around", "Asked."), hangs];
    let mut pixir = Pixir::with_workflow(Script { steps, ..Script::default() }, "ship", &text, 100, 30);
    pixir.does("/workflows ship<Enter>").await;
    pixir.screen.keys("<Enter>").await;
    pixir.screen.until("note runs").await;
    let cut = |log: &std::path::Path| {
        let whole = std::fs::read_to_string(log).expect("a log");
        let end = whole.find("\"turn_ended\"").expect("closing ended the turn");
        let kept = whole[..end].rfind('\n').expect("a line before it") + 1;
        std::fs::write(log, &whole[..kept]).expect("write");
    };
    let mut pixir = pixir.again_after(cut, vec![of("Note it", "Noted.")]).await;
    let screen = pixir.does("/workflows<Enter>").await;
    assert!(screen.contains("2 of 3") && screen.contains("1 interrupted"), "{screen}");
    assert!(!screen.contains("runs"), "nothing runs any more:\n{screen}");
    let screen = pixir.does("c").await;
    assert!(screen.contains("3 of 3"), "{screen}");
    let log = pixir.log();
    let begun =
        |id: &str| log.iter().filter(|it| it["data"]["event"] == "step_started" && it["data"]["id"] == id).count();
    assert_eq!((begun("look"), begun("ask"), begun("note")), (1, 1, 2), "what was done is not done again");
}

/// Broken builds: `/workflows` knows only runs of the Session itself; the answer goes to another Session than the one that asks; the
/// end of the call that waited for the run interrupts the Turn that the answer has begun (seen beside a busy machine).
#[tokio::test]
async fn the_run_of_a_model_is_shown_and_answered_from_the_session_that_began_it() {
    let graph = json!({ "version": 1, "name": "ship", "steps": [
        { "id": "look", "role": "explorer", "task": "Look around" },
        { "id": "ask", "ask": "Ship it?", "choices": ["yes", "no"], "needs": ["look"] },
    ] });
    let steps = vec![
        calls("run_workflow", json!({ "graph": graph, "wait": true })),
        of("Look around", "Fine."),
        says("It was answered."),
    ];
    let mut pixir = Pixir::scripted(Script { steps, ..Script::default() }, &[], 100, 40);
    pixir.does("go<Enter>").await;
    pixir.screen.keys("<A-y>").await;
    // The question stands in the approval too: what only the form has tells that it is open.
    pixir.screen.until("no answer").await;
    pixir.screen.keys("<Esc>").await;
    pixir.screen.keys("/workflows<Enter>").await;
    pixir.screen.until("Workflow ship").await;
    // The gate that was left open has ended the run.
    pixir.screen.until("go on").await;
    pixir.screen.keys("g").await;
    pixir.screen.until("2 of 2").await;
    pixir.screen.keys("<Esc><Esc>").await;
    pixir.screen.until("It was answered.").await;
}

/// Broken build: the last counts of a run with many kinds of ends are cut off in a narrow window.
#[tokio::test]
async fn all_counts_of_a_run_are_on_its_card_in_a_narrow_window() {
    let mut pixir = ended_run(40, 24);
    let screen = pixir.does("<Esc>").await;
    for count in ["1 of 4", "1 waits", "1 failed", "1 held"] {
        assert!(screen.contains(count), "{count}:\n{screen}");
    }
    let screen = pixir.does("/workflows<Enter>").await;
    for count in ["1 of 4", "1 waits", "1 failed", "1 held"] {
        assert!(screen.contains(count), "{count}:\n{screen}");
    }
}

/// Broken builds: at some size the plan, the gate, the list of steps or the card leaves out what decides; a picture of the guide
/// cannot be drawn.
#[test]
fn the_pictures_of_workflows_are_drawn_at_every_size() {
    for size in ["60x20", "80x24", "120x40", "200x60"] {
        let frame = drawn("workflow", size);
        assert!(frame("plan").contains("Workflow release"), "{}", frame("plan"));
        assert!(frame("gate").contains("Publish 8.2?"), "{}", frame("gate"));
        let steps = frame("steps");
        assert!(steps.contains("4 of 7") && steps.contains("1 waits") && steps.contains("› yes"), "{steps}");
        let ended = frame("ended");
        assert!(ended.contains("6 of 7") && ended.contains("1 failed"), "{ended}");
        let card = frame("card");
        assert!(card.contains("◇ workflow release goes on · 7 steps") && card.contains("✗ missing failed"), "{card}");
    }
}

/// Broken builds: of the faults of a workflow the screen shows the beginning of the first one; Enter begins it all the same.
#[tokio::test]
async fn all_faults_of_a_workflow_are_read_on_the_screen() {
    let text = SHIP.replace("needs = [\"ask\"]", "needs = [\"asks\"]").replace("\"yes\", \"no\"", "\"yes\"");
    let mut pixir = Pixir::with_workflow(Script::default(), "ship", &text, 60, 20);
    let screen = pixir.does("/workflows ship<Enter>").await;
    for part in [
        "It cannot be run: 3 faults",
        "line 14",
        "two to four different short texts",
        "line 20",
        "no step `asks`",
        "line 21",
    ] {
        assert!(screen.contains(part), "{part}:\n{screen}");
    }
    let screen = pixir.does("<Enter>").await;
    assert!(!screen.contains("It cannot be run"), "{screen}");
    assert!(!screen.contains("◇ workflow"), "{screen}");
}

/// Broken builds: the card on which the user approves a graph of the model leaves out the commands of its later layers, or those
/// that check a step; a long command is cut.
#[tokio::test]
async fn the_card_of_a_graph_shows_every_command_that_would_run() {
    let long = format!("echo {} ; rm -rf target", "x".repeat(200));
    let graph = json!({ "version": 1, "name": "look", "steps": [
        { "id": "one", "role": "explorer", "task": "Look at one", "check": [["cargo", "test"]] },
        { "id": "two", "argv": ["sh", "-c", long], "needs": ["one"] },
        { "id": "three", "argv": ["publish", "{{steps.two.output}}"], "needs": ["two"] },
    ] });
    let steps = vec![calls("run_workflow", json!({ "graph": graph }))];
    let mut pixir = Pixir::scripted(Script { steps, ..Script::default() }, &[], 100, 50);
    let screen = pixir.does("look<Enter>").await;
    for part in [
        "Run workflow look",
        "check: cargo test",
        "rm -rf target",
        "publish '{{steps.two.output}}'",
        "at most: 1 agent",
    ] {
        assert!(screen.contains(part), "{part}:\n{screen}");
    }
}

/// Broken build: a step whose agent asks for an approval runs, in the list of steps, as if nothing were the user's to do.
#[tokio::test]
async fn a_step_whose_agent_asks_for_an_approval_is_waiting() {
    let write = json!({ "path": "a.txt", "content": "new\n" });
    let write = Step { of: Some("Write it".to_owned()), ..calls("write", write) };
    let steps = vec![write, of("Write it", "Written.")];
    let text = "version = 1\nname = \"edit\"\n[[steps]]\nid = \"edit\"\ntask = \"Write it\"\n";
    let mut pixir = Pixir::with_workflow(Script { steps, ..Script::default() }, "edit", text, 100, 30);
    pixir.does("/workflows edit<Enter>").await;
    pixir.screen.keys("<Enter>").await;
    pixir.screen.until("edit asks").await;
    pixir.screen.keys("/workflows<Enter>").await;
    pixir.screen.until("Workflow edit").await;
    let screen = pixir.screen.screen();
    assert!(screen.contains("? edit") && screen.contains("waiting"), "{screen}");
}
