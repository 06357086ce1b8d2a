//! A run of a workflow on the screen: its line in the conversation, `/workflows`, and what its keys do.

use pixir_core::event::{
    Ask, CheckRan, Cost, Held, Planned, StepEnded, StepOutcome, StepStarted, TurnEnded, TurnStatus, Usage,
    WorkflowEvent,
};
use pixir_core::provider::script::{Script, Step};
use serde_json::json;

use crate::driver::{Pixir, calls, log_of, says};

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
        let bar = "████░░░░░░░░░░░░  1 of 4 · 1 waits · 1 failed";
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
    let of = |task: &str, text: &str| Step { of: Some(task.to_owned()), ..says(text) };
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
