//! What is offered, and the two tools that ask no model.

use std::time::Duration;

use futures_util::future::BoxFuture;
use pixir_core::Decision;
use pixir_core::call::{self, Authority, Call, Caller, Gone, Permissions, Unattended};
use pixir_core::call_info::CallInfo;
use pixir_core::event::{Approval, PermissionDecision, Preview};
use pixir_core::run::{PreparedLine, tool};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Server, question, result};
use crate::cli::Cli;
use crate::json_rpc::Failure;

pub(super) const INSTRUCTIONS: &str = "pixir is a coding agent with tools of its own in one workspace. pixir_task gives it a whole task in words and answers with its report; pixir_run runs one line of commands; pixir_sessions lists what was done before.";

/// The most Sessions of a list.
const MOST_SESSIONS: usize = 50;

/// The tools, in the words of the mode that they work in.
pub(super) fn definitions(cli: &Cli) -> Value {
    let mode = cli.options.mode.as_deref().unwrap_or("auto");
    let changes = mode != "read-only";
    let may = match mode {
        "read-only" => "It only reads: changes are refused.",
        "ask" => "It asks the user before it changes anything.",
        _ => "It changes files of the workspace without asking.",
    };
    let text = |about: &str| json!({ "type": "string", "description": about });
    let object = |properties: Value, required: &[&str]| json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false });
    json!([
        {
            "name": "pixir_task",
            "title": "Give pixir a task",
            "description": format!("Give a coding agent one task in this workspace, in words; it answers with its report when it is done. {may}"),
            "inputSchema": object(
                json!({
                    "task": text("what to do, with everything that the agent has to know"),
                    "session": text("the session of an earlier task, to go on with it"),
                }),
                &["task"],
            ),
            "annotations": { "readOnlyHint": !changes, "destructiveHint": changes, "openWorldHint": true },
        },
        {
            "name": "pixir_run",
            "title": "Run a line",
            "description": format!("Run one line of commands (cat, ls, rg, git, programs, pipes; `help` lists them) in pixir's sandbox. {may}"),
            "inputSchema": object(
                json!({
                    "command": text("the line"),
                    "timeout": { "type": "integer", "minimum": 1, "maximum": 3600, "description": "seconds, 120 by default" },
                }),
                &["command"],
            ),
            "annotations": { "readOnlyHint": !changes, "destructiveHint": changes, "openWorldHint": false },
        },
        {
            "name": "pixir_sessions",
            "title": "List sessions",
            "description": "List the sessions of this workspace, the latest first: id, time, first prompt.",
            "inputSchema": object(
                json!({ "limit": { "type": "integer", "minimum": 1, "maximum": MOST_SESSIONS } }),
                &[],
            ),
            "annotations": { "readOnlyHint": true, "openWorldHint": false },
        },
    ])
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    command: String,
    timeout: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Listing {
    limit: Option<usize>,
}

fn invalid(e: &serde_json::Error, usage: &str) -> Failure {
    Failure::invalid_params(format!("{e}; {usage}"))
}

impl Server {
    /// Runs a line. Dropping the future ends every process that it started.
    pub(super) async fn run_line(&self, arguments: Value) -> Result<Value, Failure> {
        let Line { command, timeout } =
            serde_json::from_value(arguments).map_err(|e| invalid(&e, "pixir_run {command, timeout?}"))?;
        let harness = self.0.cli.offline_harness()?;
        let call = Call { id: "mcp".into(), tool: tool::NAME.into(), args: Value::Null, caller: Caller::Model };
        let ctx = harness.tool_context(&call.id);
        let limit = Duration::from_secs(timeout.unwrap_or(120).clamp(1, 3600));
        let preparing = ctx.clone();
        let prepare = move || PreparedLine::new(&command, None, limit, &preparing);
        let line = tokio::task::spawn_blocking(prepare).await.map_err(|_| Failure::internal())??;
        let authority = Asking { server: self, own: harness.unattended(self.0.cli.command_mode()) };
        let done = call::carry_out_prepared(harness.registry(), &call, tool::prepared(line), ctx, &authority).await;
        harness.processes_stopped().await;
        let done = done.map_err(|_| Failure::internal())?.result;
        let data = json!({ "ok": done.ok, "exit_code": done.exit_code });
        Ok(result(&done.output, &data, !done.ok))
    }

    /// Lists Sessions of the workspace.
    pub(super) async fn sessions(&self, arguments: Value) -> Result<Value, Failure> {
        let Listing { limit } =
            serde_json::from_value(arguments).map_err(|e| invalid(&e, "pixir_sessions {limit?}"))?;
        let cli = self.0.cli.clone();
        let list = move || -> pixir_core::Result<_> {
            let store = cli.store()?;
            let workspace = cli.workspace()?;
            let workspace = workspace.canonicalize().unwrap_or(workspace);
            Ok(store.list(&store.folder_of(&workspace)))
        };
        let all = tokio::task::spawn_blocking(list).await.map_err(|_| Failure::internal())??;
        let shown = all.iter().take(limit.unwrap_or(20).clamp(1, MOST_SESSIONS));
        let (mut text, mut rows) = (String::new(), Vec::new());
        for it in shown {
            let about = it.name.as_deref().or(it.first_prompt.as_deref()).unwrap_or("(no prompt)");
            text.push_str(&format!("{}  {}  {about}\n", it.id, it.last_activity));
            rows.push(json!({
                "session": it.id, "last_activity": it.last_activity, "about": about, "model": it.model, "turns": it.turns,
            }));
        }
        if rows.is_empty() {
            text.push_str("no sessions in this workspace yet");
        }
        Ok(result(text.trim_end(), &json!({ "sessions": rows }), false))
    }
}

/// Asks the client's user where the gate wants an approval.
struct Asking<'a> {
    server: &'a Server,
    own: Unattended,
}

impl Authority for Asking<'_> {
    fn prepared<'a>(
        &'a self,
        call: &'a Call,
        info: &'a CallInfo,
        preview: &'a Preview,
    ) -> BoxFuture<'a, Result<(), Gone>> {
        Box::pin(async move { self.own.prepared(call, info, preview).await })
    }

    fn permissions(&self) -> BoxFuture<'_, Result<Permissions, Gone>> {
        Box::pin(async move { self.own.permissions().await })
    }

    fn approve(&self, approval: Approval) -> BoxFuture<'_, Result<Option<Decision>, Gone>> {
        Box::pin(async move {
            if !self.server.asks() {
                return Ok(None);
            }
            Ok(Some(question::decide(self.server, &approval).await.0))
        })
    }

    fn record(&self, decision: PermissionDecision) -> BoxFuture<'_, Result<(), Gone>> {
        Box::pin(async move { self.own.record(decision).await })
    }
}
