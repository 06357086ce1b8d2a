//! The tools that start child Sessions, wait for them, tell them something and show what they did.

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use call::agent_end::reported_within;
use call::agents::{Order, OrderLimits, OrderedBy, Seen, Until, end_of, goes_on};
use call::arguments::{self, object};
use call::{Agents, Context, Output, Prepared, Tool};
use permissions::{Touch, rules};
use protocol::agent::AgentState;
use protocol::call_info::{CallInfo, CallKind};
use protocol::error::{Code, Error, Result};
use protocol::event::{AgentContext, AgentStatus, Isolation, Preview, Telling};
use protocol::tool_spec::ToolSpec;

/// The most seconds of one wait.
const MAX_WAIT: u64 = 600;
/// The seconds of a wait that names none.
const WAIT: u64 = 120;
/// The most bytes of a page of a child's conversation.
const PAGE: usize = 16_000;

pub(super) struct SpawnAgent;

#[derive(Deserialize)]
struct SpawnArgs {
    task: String,
    role: Option<String>,
    name: Option<String>,
    wait: Option<bool>,
    #[serde(default)]
    limits: OrderLimits,
    schema: Option<Value>,
    writes: Option<Vec<String>>,
    isolation: Option<Isolation>,
    context: Option<AgentContext>,
}

impl Tool for SpawnAgent {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "spawn_agent".into(),
            description: concat!(
                "Start an agent, which works on a task of its own. Agents that you start in one answer run at the same time. ",
                "An agent knows nothing but its task, so the task must say all that it needs. The role worker may change files; ",
                "tester works in a copy that is thrown away; explorer and reviewer change nothing. If several agents may change ",
                "files, each works in its own copy of the workspace.",
            )
            .into(),
            parameters: object(
                json!({
                    "task": { "type": "string" },
                    "role": { "type": "string", "description": "Default: worker" },
                    "name": { "type": "string" },
                    "wait": { "type": "boolean", "description": "Whether to wait for its end (default true); otherwise you read it later" },
                    "limits": { "type": "object", "description": "The most rounds, tokens and seconds" },
                    "schema": { "type": "object", "description": "JSON Schema of the object that it reports" },
                    "writes": { "type": "array", "items": { "type": "string" }, "description": "Globs of the only files that it may change" },
                    "isolation": { "type": "string", "enum": ["copy", "scratch"], "description": "Its own copy of the files; a scratch copy is thrown away" },
                    "context": { "type": "string", "enum": ["fork"], "description": "fork: it knows this conversation too" },
                }),
                &["task"],
            ),
            reads_only: false,
            streams: "reads nothing from stdin; prints the agent's end, or its name".into(),
        }
    }

    fn describe(&self, args: &Value, _ctx: &Context) -> CallInfo {
        let role = args["role"].as_str().unwrap_or("worker");
        let task = args["task"].as_str().unwrap_or_default();
        CallInfo::new(CallKind::Agent, &format!("start {role}:"), task)
            .with_details(args, &["name", "wait", "isolation", "context", "writes", "limits"])
    }

    fn prepare(&self, args: Value, ctx: &Context) -> Result<Prepared> {
        let SpawnArgs { task, role, name, wait, limits, schema, writes, isolation, context } = arguments::parse(args)?;
        let waits = wait.unwrap_or(true);
        let order = Order { task, role, name, waits, limits, schema, writes, isolation, context, ..Order::default() };
        spawning(order, ctx)
    }

    fn run_command(&self) -> Option<&'static str> {
        Some("agent spawn")
    }
}

/// Prepares a call that starts an agent. What the agent does is judged call by call, so starting it needs no approval.
pub fn spawning(order: Order, ctx: &Context) -> Result<Prepared> {
    if order.task.trim().is_empty() {
        return Err(Error::new(Code::InvalidArgs, "the task is empty", "all that the agent needs to know"));
    }
    let agents = ctx.agents()?;
    if let Some(schema) = &order.schema
        && !(schema["type"] == "object" && schema["properties"].is_object())
    {
        let fix = "a JSON Schema with type object and properties";
        return Err(Error::new(Code::InvalidArgs, "`schema` is no schema of an object", fix));
    }
    if let Some(glob) = order.writes.iter().flatten().find(|glob| !rules::is_path_glob(glob)) {
        let message = format!("`writes` has `{}`, which is no pattern of paths", glob.escape_debug());
        return Err(Error::new(Code::InvalidArgs, message, "globs below the workspace, like src/**"));
    }
    let role = order.role.as_deref().unwrap_or("worker");
    let target = order.task.lines().next().unwrap_or_default().to_owned();
    let preview = Preview { would: format!("start {role}:"), target, ..Preview::default() };
    Ok(Prepared::new(preview, Touch::Note, move |ctx| async move {
        let waits = order.waits;
        let stop = CancellationToken::new();
        let order = Order { call_id: Some(ctx.call_id.clone()), cancel: stop.clone(), ..order };
        let with_call = stop.drop_guard();
        let state = agents.spawn(order).await;
        ctx.in_turn.over();
        let state = state?;
        if !waits {
            let text = format!("{}\nYou will read its result when it ends.\n", line(&state));
            return Ok(Output::text(&ctx, &text));
        }
        match end_of(state.name(), with_call, &ctx, &agents).await? {
            Some(end) => Ok(told(&ctx, &agents, &[end])),
            None => Ok(Output::text(&ctx, &goes_on(&line(&state)))),
        }
    }))
}

pub(super) struct WaitAgent;

#[derive(Deserialize)]
struct WaitArgs {
    #[serde(default)]
    names: Vec<String>,
    #[serde(default)]
    until: Until,
    seconds: Option<u64>,
}

impl Tool for WaitAgent {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "wait_agent".into(),
            description: "Wait for agents and read how they ended. Without names, it waits for all agents.".into(),
            parameters: object(
                json!({
                    "names": { "type": "array", "items": { "type": "string" } },
                    "until": { "type": "string", "enum": ["all", "any"], "description": "Default: all" },
                    "seconds": { "type": "integer", "description": "The longest wait (default 120)" },
                }),
                &[],
            ),
            reads_only: true,
            streams: "reads nothing from stdin; prints the ends of agents, and those that still run".into(),
        }
    }

    fn describe(&self, args: &Value, _ctx: &Context) -> CallInfo {
        let names = args["names"].as_array().into_iter().flatten().filter_map(Value::as_str).collect::<Vec<_>>();
        let whom = if names.is_empty() { "all agents".to_owned() } else { names.join(", ") };
        CallInfo::new(CallKind::Agent, "wait for", whom).with_details(args, &["until", "seconds"])
    }

    fn prepare(&self, args: Value, ctx: &Context) -> Result<Prepared> {
        let WaitArgs { names, until, seconds } = arguments::parse(args)?;
        waiting(names, until, seconds, ctx)
    }

    fn run_command(&self) -> Option<&'static str> {
        Some("agent wait")
    }
}

/// Prepares a call that waits for agents.
pub fn waiting(names: Vec<String>, until: Until, seconds: Option<u64>, ctx: &Context) -> Result<Prepared> {
    let agents = ctx.agents()?;
    let target = if names.is_empty() { "all agents".to_owned() } else { names.join(", ") };
    let preview = Preview { would: "wait for".into(), target, ..Preview::default() };
    let within = Duration::from_secs(seconds.unwrap_or(WAIT).min(MAX_WAIT));
    Ok(Prepared::new(preview, Touch::Read, move |ctx| async move {
        ctx.in_turn.over();
        let seen = tokio::select! {
            biased;
            seen = agents.wait(names.clone(), until, Some(within)) => seen?,
            // The user's message is read before the agents have ended.
            () = ctx.steered() => agents.wait(names, until, Some(Duration::ZERO)).await?,
        };
        if seen.is_empty() {
            return Ok(Output::text(&ctx, "no agent runs\n"));
        }
        Ok(told(&ctx, &agents, &seen))
    }))
}

pub(super) struct TellAgent;

#[derive(Deserialize)]
struct TellArgs {
    name: String,
    #[serde(default)]
    text: String,
    #[serde(default)]
    how: Telling,
}

impl Tool for TellAgent {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "tell_agent".into(),
            description: "Tell an agent something. An agent that has ended goes on with what you tell it.".into(),
            parameters: object(
                json!({
                    "name": { "type": "string" },
                    "text": { "type": "string" },
                    "how": { "type": "string", "enum": ["steer", "next", "stop"], "description": "steer: it reads the text while it works; next: when its work has ended; stop: it is stopped" },
                }),
                &["name"],
            ),
            reads_only: false,
            streams: "reads the text from stdin; prints what the agent does".into(),
        }
    }

    fn describe(&self, args: &Value, _ctx: &Context) -> CallInfo {
        let name = args["name"].as_str().unwrap_or_default();
        let verb = if args["how"] == "stop" { "stop" } else { "tell" };
        let text = args["text"].as_str().unwrap_or_default();
        CallInfo::new(CallKind::Agent, verb, format!("{name} {text}").trim_end())
    }

    fn prepare(&self, args: Value, ctx: &Context) -> Result<Prepared> {
        let TellArgs { name, text, how } = arguments::parse(args)?;
        telling(name, text, how, ctx)
    }

    fn run_command(&self) -> Option<&'static str> {
        Some("agent tell")
    }
}

/// Prepares a call that tells an agent something.
pub fn telling(name: String, text: String, how: Telling, ctx: &Context) -> Result<Prepared> {
    let agents = ctx.agents()?;
    let verb = if how == Telling::Stop { "stop" } else { "tell" };
    let preview = Preview { would: verb.into(), target: name.clone(), ..Preview::default() };
    Ok(Prepared::new(preview, Touch::Note, move |ctx| async move {
        ctx.in_turn.over();
        let state = agents.tell(&name, how, text, OrderedBy::Parent).await?;
        Ok(Output::text(&ctx, &format!("{}\n", line(&state))))
    }))
}

pub(super) struct ShowAgent;

#[derive(Deserialize)]
struct ShowArgs {
    name: Option<String>,
    #[serde(default)]
    from: u64,
}

impl Tool for ShowAgent {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "show_agent".into(),
            description: "List the agents, or read what one of them did, in pages.".into(),
            parameters: object(
                json!({
                    "name": { "type": "string" },
                    "from": { "type": "integer", "description": "The byte at which the page begins" },
                }),
                &[],
            ),
            reads_only: true,
            streams: "reads nothing from stdin; prints agents, or an agent's conversation".into(),
        }
    }

    fn describe(&self, args: &Value, _ctx: &Context) -> CallInfo {
        let whom = args["name"].as_str().unwrap_or("agents");
        CallInfo::new(CallKind::Agent, "show", whom).with_details(args, &["from"])
    }

    fn prepare(&self, args: Value, ctx: &Context) -> Result<Prepared> {
        let ShowArgs { name, from } = arguments::parse(args)?;
        showing(name, from, ctx)
    }

    fn run_command(&self) -> Option<&'static str> {
        Some("agent show")
    }
}

/// Prepares a call that shows agents, or what one did.
pub fn showing(name: Option<String>, from: u64, ctx: &Context) -> Result<Prepared> {
    let agents = ctx.agents()?;
    let preview =
        Preview { would: "show".into(), target: name.clone().unwrap_or("agents".into()), ..Preview::default() };
    Ok(Prepared::new(preview, Touch::Read, move |ctx| async move {
        let Some(name) = name else {
            let list: String = agents.list().iter().map(|it| format!("{}\n", line(it))).collect();
            let list = if list.is_empty() { "no agent was started yet\n".to_owned() } else { list };
            return Ok(Output::text(&ctx, &list));
        };
        let text = agents.transcript(&name).await?;
        let from = text.ceil_char_boundary(usize::try_from(from).unwrap_or(usize::MAX).min(text.len()));
        let end = text.floor_char_boundary((from + PAGE).min(text.len()));
        let more = if end < text.len() {
            format!("…[{} more bytes: call again with from={end}]\n", text.len() - end)
        } else {
            String::new()
        };
        let mut output = Output::page(&ctx, &format!("{}{more}", &text[from..end]));
        output.nothing = format!("{name} has said nothing yet");
        Ok(output)
    }))
}

/// Ends of agents as the model reads them, and those that still run.
fn told(ctx: &Context, agents: &Arc<dyn Agents>, seen: &[Seen]) -> Output {
    let mut text = String::new();
    let mut all_ended_well = true;
    let mut left = seen.len();
    for one in seen {
        left -= 1;
        match one {
            Seen::Ended(result) => {
                all_ended_well &= result.status == AgentStatus::Completed;
                text.push_str(&reported_within(result, agents.share(left)));
                text.push('\n');
            }
            Seen::Open(state) => text.push_str(&format!("{}\n", line(state))),
        }
    }
    Output { exit: i32::from(!all_ended_well), ..Output::text(ctx, &text) }
}

/// One line about an agent: `explorer-1 (running, 4 calls): find the parser; now: read src/parse.rs`.
fn line(state: &AgentState) -> String {
    let doing = if state.doing.is_empty() { String::new() } else { format!("; now: {}", state.doing) };
    let path = state.path.join("/");
    format!("{path} ({}, {} calls): {}{doing}", state.status.name(), state.calls, state.task)
}
