//! `pixir tools`: list them, show one, run one.

use pixir_core::call::{self, Call, Caller, Context, Done, Gone, Registered, Unattended};
use pixir_core::event::{Mode, Toolset};
use pixir_core::harness::Harness;
use pixir_core::protocol::tool_spec::ToolSpec;
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
    let Registered { spec, tool } = registry.find(name, Toolset::Both)?;
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
    output.line(&format!("\nExample:\n  pixir tools run {} '{}'", spec.name, tool.example()));
    Ok(())
}

/// Runs one call as a Turn would: the same checks, the same gate, the same text for the model.
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
    let call = Call { id: "cli".into(), tool: name.into(), args, caller: Caller::Model };
    let ctx = harness.tool_context(&call.id);
    let authority = Unattended { mode };
    let mut signals = Signals::listen();
    let outcome = tokio::select! {
        done = carry_out(harness, &call, ctx, &authority, dry_run) => report(done, output).map(|_| 0),
        code = signals.next() => Ok(code),
    };
    harness.processes_stopped().await;
    outcome
}

/// A dry run previews every call, also one that only reads.
async fn carry_out(
    harness: &Harness,
    call: &Call,
    ctx: Context,
    authority: &Unattended,
    dry_run: bool,
) -> std::result::Result<Done, Gone> {
    if !dry_run {
        return call::carry_out(harness.registry(), call, ctx, authority).await;
    }
    Ok(match call::prepare(harness.registry(), call, &ctx).await {
        Ok(prepared) => Done::planned(call, prepared.plan),
        Err(error) => Done::failed(call, &error),
    })
}

/// Writes the result of a call; returns the exit code of its command.
pub(crate) fn report(done: std::result::Result<Done, Gone>, output: &Output) -> Result<i32> {
    let Ok(Done { result, ran, .. }) = done else { unreachable!("only a Session drops a call") };
    let error = result.error.clone().filter(|_| result.exit_code.is_none()).map(Error::from);
    if let Some(error) = error.clone().filter(|_| !ran) {
        return Err(error);
    }
    if output.is_json() {
        output.document(&json!({ "schemaVersion": 1, "ok": result.ok, "result": result }));
    } else {
        output.line(&result.output);
    }
    // The failures of a line's own commands are part of its result.
    error.map_or(Ok(result.exit_code.unwrap_or(0)), Err)
}

fn access(spec: &ToolSpec) -> &'static str {
    if spec.reads_only { "reads" } else { "changes" }
}

pub(crate) fn spec_json(spec: &ToolSpec) -> Value {
    json!({ "name": spec.name, "description": spec.description, "parameters": spec.parameters, "access": access(spec), "streams": spec.streams, "dry_run": true })
}
