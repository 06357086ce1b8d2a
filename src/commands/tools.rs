//! `pixir tools`: list them, show one, run one.

use std::time::Instant;

use pixir_core::event::{Mode, Toolset};
use pixir_core::harness::Harness;
use pixir_core::permissions::{Action, Judgement, judge};
use pixir_core::tools::{Context, Prepared, ToolSpec, executor};
use pixir_core::{Code, Error, Result};
use serde_json::{Value, json};

use crate::args::Format;
use crate::headless::Signals;
use crate::output::Output;

pub(crate) fn list(harness: &Harness, toolset: Toolset, output: &Output) {
    let specs = harness.registry().specs(toolset);
    match output.format {
        Format::Json | Format::Jsonl => {
            output.document(&json!({ "schemaVersion": 1, "tools": specs.iter().map(spec_json).collect::<Vec<_>>() }))
        }
        Format::Tsv => {
            specs.iter().for_each(|it| output.line(&format!("{}\t{}\t{}", it.name, access(it), it.description)))
        }
        Format::Plain => specs.iter().for_each(|it| {
            output.line(&format!(
                "{:<12} {:<8} {}",
                it.name,
                access(it),
                it.description.lines().next().unwrap_or_default()
            ))
        }),
    }
}

pub(crate) fn show(harness: &Harness, name: &str, output: &Output) -> Result<()> {
    let registry = harness.registry();
    let (spec, _) = registry.find(name, Toolset::Both)?;
    if output.is_json() {
        output.document(&spec_json(spec));
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

/// Runs one call as a Turn would: the same checks, the same permission, the same text for the model.
pub(crate) async fn run(
    harness: &Harness,
    name: &str,
    args: &str,
    mode: Mode,
    dry_run: bool,
    output: &Output,
) -> Result<u8> {
    let args: Value = serde_json::from_str(args).map_err(|e| {
        Error::new(Code::InvalidArgs, format!("the arguments are not JSON: {e}"), format!("pixir tools show {name}"))
            .with("input", args)
    })?;
    let ctx = harness.tool_context("cli");
    let prepared = executor::prepare(harness.registry(), name, args, &ctx).await?;
    let mut signals = Signals::listen();
    tokio::select! {
        outcome = finish(harness, name, prepared, ctx, mode, dry_run, output) => outcome.map(|_| 0),
        code = signals.next() => Ok(code),
    }
}

/// Plans or does what was prepared, and writes what comes of it; its exit code is that of the command.
pub(crate) async fn finish(
    harness: &Harness,
    name: &str,
    prepared: Prepared,
    ctx: Context,
    mode: Mode,
    dry_run: bool,
    output: &Output,
) -> Result<i32> {
    let result = if dry_run {
        executor::planned("cli", prepared.plan)
    } else {
        permit(harness, &prepared.actions, mode)?;
        let began = Instant::now();
        executor::finish("cli", name, executor::perform(prepared, ctx).await, began.elapsed()).result
    };
    if output.is_json() {
        output.document(&json!({ "schemaVersion": 1, "ok": result.ok, "result": result }));
    } else {
        output.line(&result.output);
    }
    match &result.error {
        // What a command of a line could not do is told in its result.
        Some(body) if result.exit_code.is_none() => Err(body.clone().into()),
        Some(_) | None => Ok(result.exit_code.unwrap_or(0)),
    }
}

/// Whether all of it may run, where nobody can be asked.
pub(crate) fn permit(harness: &Harness, actions: &[Action], mode: Mode) -> Result<()> {
    for action in actions {
        let refused = match judge(mode, action, &[], harness.workspace()) {
            Judgement::Allow { .. } => None,
            Judgement::Deny(error) => Some((error.message, "the same with --write, or with --dry-run to see the plan")),
            // Only what is protected is asked about although everything may be written.
            Judgement::Ask { reason, .. } => {
                Some((reason, "change it yourself, or let the terminal interface ask you"))
            }
        };
        if let Some((reason, fix)) = refused {
            return Err(Error::new(Code::MutationBlocked, reason, fix));
        }
    }
    Ok(())
}

fn access(spec: &ToolSpec) -> &'static str {
    if spec.reads_only { "reads" } else { "changes" }
}

pub(crate) fn spec_json(spec: &ToolSpec) -> Value {
    json!({ "name": spec.name, "description": spec.description, "parameters": spec.parameters, "access": access(spec), "streams": spec.streams, "dry_run": true })
}

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
