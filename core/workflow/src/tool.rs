//! The tool `run_workflow`: a run in a Session of its own, below the one that calls it.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::{Checked, Known, PlannedStep, WorkflowPlan, invalid};
use call::agent_end::reported_within;
use call::agents::{Order, Seen, end_of, goes_on};
use call::arguments::{self, object};
use call::{Context, Output, Prepared, Tool};
use permissions::Touch;
use protocol::call_info::{CallInfo, CallKind};
use protocol::error::{Code, Error, Result};
use protocol::event::{AgentStatus, Preview};
use protocol::input::WorkflowOrder;
use protocol::tool_spec::ToolSpec;

/// The tool's name.
pub const NAME: &str = "run_workflow";
/// The most steps of a graph that the model writes.
const MAX_STEPS: usize = 64;
/// The most bytes that the model reads of the end of a run.
const MAX_RESULT: usize = 4_000;

struct RunWorkflow;

/// The tool.
pub fn tool() -> Arc<dyn Tool> {
    Arc::new(RunWorkflow)
}

#[derive(Deserialize)]
struct Args {
    name: Option<String>,
    graph: Option<Value>,
    #[serde(default)]
    params: Map<String, Value>,
    #[serde(default)]
    wait: bool,
}

impl Tool for RunWorkflow {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: NAME.into(),
            description: "Run a workflow: give its name, or a graph {version: 1, steps: [{id, needs, task|argv|ask}]} of your own.".into(),
            parameters: object(
                json!({
                    "name": { "type": "string" },
                    "graph": { "type": "object" },
                    "params": { "type": "object" },
                    "wait": { "type": "boolean", "description": "Whether to wait for its end; otherwise you read it later" },
                }),
                &[],
            ),
            reads_only: false,
            streams: "reads nothing from stdin; prints the end of the run, or its name".into(),
        }
    }

    fn describe(&self, args: &Value, _ctx: &Context) -> CallInfo {
        let name = args["name"].as_str().or_else(|| args["graph"]["name"].as_str()).unwrap_or("a graph");
        CallInfo::new(CallKind::Agent, "run workflow", name).with_details(args, &["params", "wait"])
    }

    fn prepare(&self, args: Value, ctx: &Context) -> Result<Prepared> {
        let Args { name, graph, params, wait } = arguments::parse(args)?;
        running(name, graph, params, wait, ctx)
    }

    fn run_command(&self) -> Option<&'static str> {
        Some("workflow run")
    }
}

/// Prepares a call that runs a workflow. What is approved is the graph as it is now, with the workflows and roles that it uses,
/// and that runs, or nothing.
pub fn running(
    name: Option<String>,
    graph: Option<Value>,
    params: Map<String, Value>,
    waits: bool,
    ctx: &Context,
) -> Result<Prepared> {
    let agents = ctx.agents()?;
    let workflows = ctx.library.workflows();
    let known = Known::to_run(&ctx.library);
    let (text, name) = match (graph, name) {
        (Some(graph), name) => {
            let steps = graph["steps"].as_array().map_or(0, Vec::len);
            if steps > MAX_STEPS {
                let message = format!("the graph has {steps} steps");
                let fix = format!("at most {MAX_STEPS}, or a saved workflow");
                return Err(Error::new(Code::WorkflowInvalid, message, fix));
            }
            let name = name.or_else(|| graph["name"].as_str().map(str::to_owned));
            (graph.to_string(), name.unwrap_or_else(|| "graph".to_owned()))
        }
        (None, Some(name)) => (workflows.usable(&name)?.text.clone(), name),
        (None, None) => {
            let names: Vec<&str> = workflows.0.iter().map(|it| it.name.as_str()).collect();
            let fix = format!("`graph`, or `name`: {}", names.join(", "));
            return Err(Error::new(Code::InvalidArgs, "there is neither a name nor a graph", fix));
        }
    };
    let checked = Checked::read(&text, &name, &known).map_err(|faults| invalid(&name, &faults))?;
    let values = checked.params(&params)?;
    let plan = WorkflowPlan::of(&checked, &values, None, &agents.usual(&known.roles));
    let preview = Preview {
        would: "run workflow".to_owned(),
        target: format!(
            "{} ({}, at most {})",
            checked.graph.name,
            counted(checked.steps.len() as u64, "step"),
            counted(plan.most_agents, "agent")
        ),
        notes: notes(&plan),
        ..Preview::default()
    };
    let run_name = checked.graph.name.clone();
    let order = WorkflowOrder {
        name: Some(name.clone()),
        graph: Some(checked.source),
        params,
        until: None,
        approved: Some(checked.hash),
    };
    // Whether it may run is for the user to say; each of its steps is judged all the same.
    Ok(Prepared::new(preview, Touch::Workflow, move |ctx| async move {
        let stop = CancellationToken::new();
        let order = Order {
            call_id: Some(ctx.call_id.clone()),
            task: format!("workflow {}", order.name.as_deref().unwrap_or_default()),
            name: Some(agents.free_name(&run_name)),
            cancel: stop.clone(),
            waits,
            workflow: Some(Box::new(order)),
            ..Order::default()
        };
        let with_call = stop.drop_guard();
        let state = agents.spawn(order).await;
        ctx.in_turn.over();
        let state = state?;
        if !waits {
            let text = format!("{} runs the workflow {name}. You will read its result when it ends.\n", state.name());
            return Ok(Output::text(&ctx, &text));
        }
        let (is_good, text) = match end_of(state.name(), with_call, &ctx, &agents).await? {
            Some(Seen::Ended(result)) => {
                (result.status == AgentStatus::Completed, reported_within(&result, MAX_RESULT.min(agents.share(0))))
            }
            Some(Seen::Open(state)) => (false, format!("{} still runs", state.name())),
            None => (true, goes_on(&format!("{} runs the workflow {name}.", state.name()))),
        };
        Ok(Output { exit: i32::from(!is_good), ..Output::text(&ctx, &format!("{text}\n")) })
    }))
}

fn counted(n: u64, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}

/// The graph for the card: what it can cost, then a line a step, with what it writes and runs.
fn notes(plan: &WorkflowPlan) -> Vec<String> {
    // What decides stands first: a small window shows the rest on request.
    let mut notes: Vec<String> = plan.bounds().lines().map(str::to_owned).collect();
    for (n, layer) in plan.layers.iter().enumerate() {
        notes.push(format!("layer {}", n + 1));
        notes.extend(layer.iter().flat_map(PlannedStep::lines));
    }
    notes.push(format!("hash {}", plan.hash));
    notes
}
