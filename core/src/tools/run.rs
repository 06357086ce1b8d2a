//! A chain of commands as one call: the other toolset, over the same tools.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use super::bash::tell;
use super::{Context, Output, Prepared, Tool, ToolSpec, object, parse_args};
use crate::call::present::Budget;
use crate::permissions::Action;
use crate::protocol::error::Result;
use crate::run::{self, BUILTINS, Call, TIMEOUT};

pub(super) const NAME: &str = "run";

/// The most seconds that can be asked for.
const MAX_TIMEOUT: u64 = 3_600;

pub(super) struct Run;

#[derive(Deserialize)]
struct Args {
    command: String,
    stdin: Option<String>,
    timeout: Option<u64>,
}

impl Tool for Run {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: NAME.into(),
            description: description().into(),
            parameters: object(
                json!({
                    "command": { "type": "string", "description": "One line, like: cat a.log | grep -i error | tail 20" },
                    "stdin": { "type": "string", "description": "Text for the first command; best for text of several lines" },
                    "timeout": { "type": "integer", "minimum": 1, "maximum": MAX_TIMEOUT, "description": "Seconds (default 120)" },
                }),
                &["command"],
            ),
            reads_only: false,
            streams: "stdin goes to the first command; stdout is the output, errors and stderr are added on failure"
                .into(),
        }
    }

    fn prepare(&self, args: Value, ctx: &Context) -> Result<Prepared> {
        let Args { command, stdin, timeout } = parse_args(&self.spec(), args)?;
        let limit = timeout.map_or(TIMEOUT, Duration::from_secs);
        Ok(prepared(Call::plan(&command, stdin.map(String::into_bytes), limit, ctx)?))
    }
}

/// A chain as a call: Layer 2 over what it prints.
pub fn prepared(call: Call) -> Prepared {
    let (plan, actions) = (call.plan.clone(), call.actions.clone());
    Prepared { plan, actions, run: Box::new(move |ctx| Box::pin(present(call, ctx))) }
}

async fn present(call: Call, ctx: Context) -> Result<Output> {
    let mut output = Output::new(&ctx, Budget::RUN);
    output.stdout.is_of(call.source());
    if call.is_of_files() {
        output.stdout.is_of_files();
    }
    let mut take = |bytes: &[u8]| {
        tell(&ctx, output.stdout.push(bytes));
        true
    };
    let (ended, effects) = call.perform(&ctx, &mut take).await?;
    output.stdout.push(effects.notes.as_bytes());
    output.stderr.push(&ended.stderr);
    output.exit = ended.exit;
    output.pipestatus = if ended.pipestatus.len() > 1 { ended.pipestatus } else { Vec::new() };
    output.changes = effects.changes;
    output.facts = effects.facts;
    output.attachments = effects.attachments;
    output.errors = ended.errors;
    output.tell_stderr = ended.had_failure;
    Ok(output)
}

/// Whether a call of it is a chain of commands that all only read.
pub(super) fn only_reads(args: &str, ctx: &Context) -> bool {
    let Ok(Args { command, stdin, .. }) = serde_json::from_str::<Args>(args) else { return false };
    let bound = run::parse(&command).and_then(|chain| run::Bound::find(chain, stdin.is_some(), ctx));
    bound.is_ok_and(|bound| bound.steps().all(|step| step.action == Action::Read))
}

/// What a typed tool is called here.
pub(super) fn command_for(tool: &str) -> &'static str {
    match tool {
        "ask_user" => "ask",
        "edit" => "edit",
        "find" => "find",
        "grep" => "grep",
        "job_kill" => "job kill",
        "job_output" => "job output",
        "ls" => "ls",
        "read" => "cat",
        "recall" => "memory search",
        "skill_view" => "skill show",
        "skills_list" => "skill list",
        "update_plan" => "plan",
        "write" => "write",
        _ => "<program> <argument>…",
    }
}

/// Level 0 of help: what there is, a line each.
fn description() -> &'static str {
    static TEXT: std::sync::LazyLock<String> = std::sync::LazyLock::new(|| {
        let list: String = BUILTINS.iter().map(|it| format!("{} — {}\n", it.name, it.about)).collect();
        format!(
            "Run commands, joined with | && || ; in the workspace. Available commands:\n{list}Any other name is a program, run without a shell: no redirection, variables or substitution. A command without arguments says how it is called."
        )
    });
    &TEXT
}
