//! `pixir tools`: list, show and run the tools that models use.

use clap::Subcommand;
use pixir_core::call::{Call, Caller, Context, Done, Gone, Registered, Unattended};
use pixir_core::event::Toolset;
use pixir_core::tool_spec::ToolSpec;
use pixir_core::{Code, Error, Harness, Remedy, Result, call};
use serde_json::{Value, json};

use crate::cli::{Cli, Signals, block_on};
use crate::next_actions::quoted;
use crate::output::{List, ListOptions};

#[derive(Debug, Subcommand)]
pub(crate) enum ToolsCommand {
    /// List the tools and what they do
    #[command(after_help = "Examples:\n  pixir tools list\n  pixir tools list --json")]
    List(ListOptions),
    /// Show one tool: arguments, streams, whether it changes anything
    #[command(after_help = "Examples:\n  pixir tools show edit")]
    Show {
        /// Tool name
        name: String,
    },
    /// Run one tool as a model would; changes need --write
    #[command(
        after_help = "Examples:\n  pixir tools run read '{\"path\": \"README.md\"}'\n  pixir tools run write '{\"path\": \"a.txt\", \"content\": \"hi\"}' --dry-run"
    )]
    Run {
        /// Tool name
        name: String,
        /// Arguments, as a JSON object
        #[arg(default_value = "{}")]
        args: String,
    },
}

/// Whether a prepared call runs or is only described.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    Preview,
    Perform,
}

pub(super) fn run(cli: &Cli, command: ToolsCommand) -> Result<u8> {
    let harness = cli.offline_harness()?;
    match command {
        ToolsCommand::List(options) => list(cli, &harness, &options)?,
        ToolsCommand::Show { name } => show(cli, &harness, &name)?,
        ToolsCommand::Run { name, args } => return block_on(run_one(cli, &harness, &name, &args)),
    }
    Ok(0)
}

fn list(cli: &Cli, harness: &Harness, options: &ListOptions) -> Result<()> {
    let specs = harness.registry().specs(cli.listed_toolset()?);
    let rows = specs.iter().map(spec_json).collect();
    let columns = &["name", "access", "description"];
    let list = List { name: "tools", key: "name", columns, rows, beside: json!({}) };
    list.print(&cli.output, options, |at| {
        let it = &specs[at];
        format!("{:<12} {:<8} {}", it.name, access(it), it.description.lines().next().unwrap_or_default())
    })
}

fn show(cli: &Cli, harness: &Harness, name: &str) -> Result<()> {
    let output = &cli.output;
    let registry = harness.registry();
    let Registered { spec, tool } = registry.find(name, Toolset::Both)?;
    if output.is_json() {
        output.document(spec_json(spec));
        return Ok(());
    }
    output.line(&format!(
        "{} ({})\n\n{}\n\nStreams: {}\n\nArguments:",
        spec.name,
        access(spec),
        spec.description,
        spec.streams
    ));
    let required = spec.parameters["required"].as_array().cloned().unwrap_or_default();
    for (key, property) in spec.parameters["properties"].as_object().into_iter().flatten() {
        let need = if required.contains(&json!(key)) { "required" } else { "optional" };
        output.line(&format!(
            "  {key:<12} {:<8} {need:<9} {}",
            property["type"].as_str().unwrap_or("any"),
            property["description"].as_str().unwrap_or_default()
        ));
    }
    output.line(&format!("\nExample:\n  pixir tools run {} '{}'", spec.name, tool.example()));
    Ok(())
}

/// Runs one call with the checks, the permissions and the result text of a Turn.
async fn run_one(cli: &Cli, harness: &Harness, name: &str, args: &str) -> Result<u8> {
    let args: Value = serde_json::from_str(args).map_err(|e| {
        Error::new(
            Code::InvalidArgs,
            format!("the arguments are not JSON: {e}"),
            Remedy::command(format!("pixir tools show {}", quoted(name))),
        )
        .with("input", args)
    })?;
    let call = Call { id: "cli".into(), tool: name.into(), args, caller: Caller::Model };
    let ctx = harness.tool_context(&call.id);
    let authority = harness.unattended(cli.command_mode());
    let effect = if cli.options.dry_run { Effect::Preview } else { Effect::Perform };
    let mut signals = Signals::listen()?;
    let outcome = tokio::select! {
        outcome = carry_out(harness, &call, ctx, &authority, effect) => report(cli, outcome).map(|_| 0),
        code = signals.next() => Ok(code),
    };
    harness.processes_stopped().await;
    outcome
}

/// A preview describes every call, also one that only reads.
async fn carry_out(
    harness: &Harness,
    call: &Call,
    ctx: Context,
    authority: &Unattended,
    effect: Effect,
) -> std::result::Result<Done, Gone> {
    match effect {
        Effect::Perform => call::carry_out(harness.registry(), call, ctx, authority).await,
        Effect::Preview => Ok(match call::prepare(harness.registry(), call, &ctx).await {
            Ok(prepared) => Done::previewed(call, prepared.preview),
            Err(error) => Done::failed(call, &error),
        }),
    }
}

/// Prints the result of a call; returns the exit code of the command that ran.
pub(super) fn report(cli: &Cli, done: std::result::Result<Done, Gone>) -> Result<i32> {
    let Ok(Done { result, ran, .. }) = done else { unreachable!("only a Session drops a call") };
    // A result with an exit code already says which command of the line failed, and why.
    let error = result.error.as_deref().cloned().filter(|_| result.exit_code.is_none()).map(Error::from);
    if let Some(error) = error.clone().filter(|_| !ran) {
        return Err(cli.refused(error));
    }
    if cli.output.is_json() {
        cli.output.document(json!({ "ok": result.ok, "result": result }));
    } else {
        cli.output.line(&result.output);
    }
    error.map_or(Ok(result.exit_code.unwrap_or(0)), Err)
}

fn access(spec: &ToolSpec) -> &'static str {
    if spec.reads_only { "reads" } else { "changes" }
}

pub(super) fn spec_json(spec: &ToolSpec) -> Value {
    json!({ "name": spec.name, "description": spec.description, "parameters": spec.parameters, "access": access(spec), "streams": spec.streams, "dry_run": true })
}
