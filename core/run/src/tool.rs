//! The tool `run`: one line of the run language as one call.

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use super::{BUILTINS, Bound, Builtin, Kind, PreparedLine, TIMEOUT, parse};
use call::arguments::{self, object, text};
use call::blocked::{Ran, Tail};
use call::command::tell;
use call::lacked;
use call::outcome::Outcome;
use call::{Context, Output, Prepared, Tool};
use permissions::Touch;
use protocol::call_info::{CallInfo, CallKind};
use protocol::error::Result;
use protocol::event::Toolset;
use protocol::tool_spec::ToolSpec;

/// The tool's name.
pub const NAME: &str = "run";

/// The tool `run`.
pub fn tool() -> Arc<dyn Tool> {
    Arc::new(Run)
}

/// The longest time limit that a call may set, seconds.
const MAX_TIMEOUT: u64 = 3_600;

struct Run;

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
            description: description(|_| true).into(),
            parameters: object(
                json!({
                    "command": { "type": "string", "description": "The line, such as: cat a.log | grep -i error | tail 20" },
                    "stdin": { "type": "string", "description": "Text that the first command reads from stdin; best for text of several lines" },
                    "timeout": { "type": "integer", "minimum": 1, "maximum": MAX_TIMEOUT, "description": "The most seconds that it may take (default 120)" },
                }),
                &["command"],
            ),
            reads_only: false,
            streams: "stdin goes to the first command; stdout is the output, and stderr and errors follow it".into(),
        }
    }

    fn spec_unattended(&self, spec: &ToolSpec) -> Option<ToolSpec> {
        Some(ToolSpec { description: description(|it| it.name != "ask").into(), ..spec.clone() })
    }

    fn describe(&self, args: &Value, ctx: &Context) -> CallInfo {
        let command = text(args, "command");
        let info = CallInfo::new(CallKind::Execute, "run", command).with_details(args, &["stdin", "timeout"]);
        let Ok(bound) = parse(command).and_then(|chain| Bound::find(chain, args["stdin"].is_string(), ctx)) else {
            return info;
        };
        let reads_only = bound.steps().all(|step| step.touch.only_reads());
        CallInfo { reads_only, ..info.on(files_of(&bound, ctx)) }
    }

    fn prepare(&self, args: Value, ctx: &Context) -> Result<Prepared> {
        let Args { command, stdin, timeout } = arguments::parse(args)?;
        let limit = timeout.map_or(TIMEOUT, Duration::from_secs);
        Ok(prepared(PreparedLine::new(&command, stdin.map(String::into_bytes), limit, ctx)?))
    }

    fn toolset(&self) -> Toolset {
        Toolset::Run
    }

    fn example(&self) -> Value {
        json!({ "command": "ls" })
    }
}

/// A line as a prepared call; its output is presented like that of any other tool.
pub fn prepared(call: PreparedLine) -> Prepared {
    let (preview, touches) = (call.preview.clone(), call.touches.clone());
    Prepared { info: CallInfo::default(), preview, touches, run: Box::new(move |ctx| Box::pin(present(call, ctx))) }
}

async fn present(call: PreparedLine, ctx: Context) -> Result<Output> {
    let mut output = Output::new(&ctx, ctx.limits.run());
    output.stdout.is_of(call.source());
    output.reader = Some("cat");
    if call.is_of_files() {
        output.stdout.is_of_files();
    }
    let mut take = |bytes: &[u8]| {
        tell(&ctx, output.stdout.push(bytes));
        true
    };
    let programs = call.touches.iter().filter_map(|touch| {
        let Touch::Program(words) = touch else { return None };
        Some(words.join(" "))
    });
    let command = programs.collect::<Vec<_>>().join("; ");
    let (ended, effects) = call.perform(&ctx, &mut take).await?;
    if !command.is_empty() {
        output.outcome = Outcome::OfPrograms;
    }
    output.stdout.push(effects.notes.as_bytes());
    output.stderr.push(&ended.stderr);
    output.exit = ended.exit;
    let mut tail = Tail::default();
    tail.push(&ended.stderr);
    let ran = Ran { command, folder: ctx.workspace.root().to_owned() };
    if ended.exit != 0 {
        output.blocked = tail.blocked(&ran, ended.exit, &ctx);
    }
    let printed = String::from_utf8_lossy(tail.bytes());
    let notes = lacked::notes(&ran, ended.exit, &printed, output.blocked.is_some(), &ctx);
    output.stderr.push(notes.as_bytes());
    output.pipestatus = if ended.pipestatus.len() > 1 { ended.pipestatus } else { Vec::new() };
    output.changes = effects.changes;
    output.taken = effects.taken;
    output.facts = effects.facts;
    output.attachments = effects.attachments;
    output.errors = ended.errors;
    Ok(output)
}

/// The existing files that the commands of a line name as operands.
fn files_of(bound: &Bound, ctx: &Context) -> Vec<String> {
    let mut files = Vec::new();
    for step in bound.steps().filter(|step| matches!(step.kind, Kind::Builtin(it) if it.expands)) {
        for word in &step.command.words[1..] {
            if let Ok(at) = ctx.workspace.locate(&word.text)
                && ctx.workspace.is_file(&at)
                && !files.contains(&at.display())
            {
                files.push(at.display());
            }
        }
    }
    files
}

/// The tool's description for the model: each of these commands in one line.
fn description(is_listed: impl Fn(&Builtin) -> bool) -> String {
    let line = |it: &Builtin| format!("{} — {}\n", it.name, it.about);
    let list: String = BUILTINS.iter().filter(|it| is_listed(it)).map(line).collect();
    format!(
        "Run a line of commands in the workspace. They are joined with |, &&, || or ;. The commands are:\n{list}Any other name is that of a program, which runs without a shell. A command without arguments prints its usage."
    )
}
