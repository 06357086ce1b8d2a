//! `pixir tools`: list, show and run the tools that models use.

use std::time::Instant;

use clap::Subcommand;
use pixir_core::event::Toolset;
use pixir_core::harness::Harness;
use pixir_core::permissions::{Action, Judgement, judge};
use pixir_core::tools::{Context, Prepared, ToolSpec, executor};
use pixir_core::{Code, Error, Result};
use serde_json::{Value, json};

use crate::args::Format;
use crate::cli::{Cli, Signals, block_on};

#[derive(Debug, Subcommand)]
pub(crate) enum ToolsCommand {
    /// List the tools and what they do
    #[command(after_help = "Examples:\n  pixir tools list\n  pixir tools list --json")]
    List,
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
        ToolsCommand::List => list(cli, &harness)?,
        ToolsCommand::Show { name } => show(cli, &harness, &name)?,
        ToolsCommand::Run { name, args } => return block_on(run_one(cli, &harness, &name, &args)),
    }
    Ok(0)
}

fn list(cli: &Cli, harness: &Harness) -> Result<()> {
    let output = &cli.output;
    let specs = harness.registry().specs(cli.listed_toolset()?);
    match output.format {
        Format::Json | Format::Jsonl => {
            output.document(json!({ "tools": specs.iter().map(spec_json).collect::<Vec<_>>() }));
        }
        Format::Tsv => {
            specs.iter().for_each(|it| output.line(&format!("{}\t{}\t{}", it.name, access(it), it.description)));
        }
        Format::Plain => specs.iter().for_each(|it| {
            let first = it.description.lines().next().unwrap_or_default();
            output.line(&format!("{:<12} {:<8} {first}", it.name, access(it)));
        }),
    }
    Ok(())
}

fn show(cli: &Cli, harness: &Harness, name: &str) -> Result<()> {
    let output = &cli.output;
    let registry = harness.registry();
    let (spec, _) = registry.find(name, Toolset::Both)?;
    if output.is_json() {
        output.json(&spec_json(spec));
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
    output.line(&format!("\nExample:\n  pixir tools run {} '{}'", spec.name, example(spec)));
    Ok(())
}

/// Runs one call with the checks, the permissions and the result text of a Turn.
async fn run_one(cli: &Cli, harness: &Harness, name: &str, args: &str) -> Result<u8> {
    let args: Value = serde_json::from_str(args).map_err(|e| {
        Error::new(Code::InvalidArgs, format!("the arguments are not JSON: {e}"), format!("pixir tools show {name}"))
            .with("input", args)
    })?;
    let ctx = harness.tool_context("cli");
    let prepared = executor::prepare(harness.registry(), name, args, &ctx).await?;
    let effect = if cli.options.dry_run { Effect::Preview } else { Effect::Perform };
    let mut signals = Signals::listen();
    tokio::select! {
        outcome = finish(cli, harness, name, prepared, ctx, effect) => outcome.map(|_| 0),
        code = signals.next() => Ok(code),
    }
}

/// Describes or performs a prepared call and prints its result; returns the exit code of the command that ran.
pub(super) async fn finish(
    cli: &Cli,
    harness: &Harness,
    name: &str,
    prepared: Prepared,
    ctx: Context,
    effect: Effect,
) -> Result<i32> {
    let result = match effect {
        Effect::Preview => executor::planned("cli", prepared.plan),
        Effect::Perform => {
            permit(cli, harness, &prepared.actions)?;
            let began = Instant::now();
            executor::finish("cli", name, executor::perform(prepared, ctx).await, began.elapsed()).result
        }
    };
    if cli.output.is_json() {
        cli.output.document(json!({ "ok": result.ok, "result": result }));
    } else {
        cli.output.line(&result.output);
    }
    match result.error {
        // A result with an exit code already says which command of the line failed, and why.
        Some(body) if result.exit_code.is_none() => Err(body.into()),
        Some(_) | None => Ok(result.exit_code.unwrap_or(0)),
    }
}

/// Checks that every action may run without an approval, because no user can give one here.
pub(super) fn permit(cli: &Cli, harness: &Harness, actions: &[Action]) -> Result<()> {
    for action in actions {
        let (reason, fix) = match judge(cli.command_mode(), action, &[], harness.workspace()) {
            Judgement::Allow { .. } => continue,
            Judgement::Deny(error) => (error.message, "add --write, or --dry-run to see what it would do"),
            // With --write, only protected paths still need an approval.
            Judgement::Ask { reason, .. } => (reason, "change it yourself, or let the model ask you in the terminal"),
        };
        return Err(Error::new(Code::MutationBlocked, reason, fix));
    }
    Ok(())
}

fn access(spec: &ToolSpec) -> &'static str {
    if spec.reads_only { "reads" } else { "changes" }
}

pub(super) fn spec_json(spec: &ToolSpec) -> Value {
    json!({ "name": spec.name, "description": spec.description, "parameters": spec.parameters, "access": access(spec), "streams": spec.streams, "dry_run": true })
}

/// Arguments that show how the tool is called; what is required is filled in.
fn example(spec: &ToolSpec) -> Value {
    match spec.name {
        "edit" => return json!({ "path": "README.md", "old_text": "teh", "new_text": "the" }),
        "grep" => return json!({ "pattern": "fn main", "glob": "*.rs" }),
        _ => {}
    }
    let required = spec.parameters["required"].as_array().cloned().unwrap_or_default();
    let value = |key: &str| match key {
        "path" => json!("README.md"),
        "pattern" => json!("*.rs"),
        "command" => json!("ls"),
        "query" => json!("login"),
        "job" => json!(1),
        "questions" => json!([{ "question": "Which?" }]),
        "items" => json!([{ "step": "look", "status": "pending" }]),
        _ => json!("text"),
    };
    required
        .iter()
        .filter_map(Value::as_str)
        .map(|key| (key.to_owned(), value(key)))
        .collect::<serde_json::Map<_, _>>()
        .into()
}
