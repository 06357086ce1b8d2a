//! `pixir workflow list|show|validate`: workflows, and what is wrong with them.

use std::path::{Path, PathBuf};

use clap::Args;
use pixir_core::{Code, Error, Harness, Remedy, Result};
use pixir_core::{WorkflowFault, WorkflowFile};
use serde_json::{Map, Value, json};

use super::plan;
use crate::cli::Cli;
use crate::commands::found::standing;
use crate::output::{List, ListOptions, count};

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// Name of a workflow, or path of its file
    #[arg(value_name = "NAME|FILE")]
    name: String,
}

#[derive(Debug, Args)]
pub(crate) struct ValidateArgs {
    /// Path of a file, or name of a workflow
    #[arg(value_name = "FILE|NAME")]
    name: String,
}

/// A workflow that the user named: a file, or one of those that are listed.
pub(super) struct Named {
    pub(super) name: String,
    pub(super) text: String,
    pub(super) path: Option<PathBuf>,
}

/// Whether the workflow is to be run, or only looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    Look,
    Run,
}

/// The workflow that the user named. A file that the user names is trusted for this run.
pub(super) fn named(harness: &Harness, name: &str, purpose: Purpose) -> Result<Named> {
    let path = Path::new(name);
    let is_file = name.ends_with(".toml") || name.ends_with(".json") || path.is_file();
    if !is_file {
        let it = match purpose {
            Purpose::Look => harness.workflow(name)?,
            Purpose::Run => harness.usable_workflow(name)?,
        };
        return Ok(Named { name: it.name, text: it.text, path: it.path });
    }
    let fix =
        || Remedy::text("the path of a file, or one of those that this lists: ").and_command("pixir workflow list");
    let failed =
        |code: Code, e: &std::io::Error| Error::new(code, format!("read {name}: {e}"), fix()).with("input", name);
    let size = std::fs::metadata(path).map_err(|e| failed(Code::NotFound, &e))?.len();
    if size > 256 << 10 {
        return Err(Error::new(Code::WorkflowInvalid, format!("{name} is larger than 256 KB"), "a smaller workflow"));
    }
    let text = std::fs::read_to_string(path).map_err(|e| failed(Code::ReadFailed, &e))?;
    let stem = path.file_stem().and_then(|it| it.to_str()).unwrap_or("workflow").to_owned();
    Ok(Named { name: stem, text, path: Some(path.to_owned()) })
}

pub(super) fn list(cli: &Cli, options: &ListOptions) -> Result<u8> {
    let harness = cli.offline_harness()?;
    let all = harness.workflows();
    let faults =
        |it: &WorkflowFile| if it.text.is_empty() { 0 } else { harness.faults_of_workflow(&it.text, &it.name).len() };
    let row = |it: &WorkflowFile| {
        json!({
            "name": it.name, "description": it.description, "origin": it.origin, "path": it.path,
            "standing": it.standing, "digest": it.digest, "faults": faults(it),
        })
    };
    let width = all.iter().map(|it| it.name.chars().count()).max().unwrap_or(0);
    let columns = &["name", "origin", "standing.is", "path"];
    let list = List { name: "workflows", key: "name", columns, rows: all.iter().map(row).collect(), beside: json!({}) };
    list.print(&cli.output, options, |at| {
        let it = &all[at];
        let state = match faults(it) {
            0 => standing(&it.standing).to_owned(),
            n => count(n, "fault"),
        };
        format!("{:<width$}  {:<9}  {state:<11}  {}", it.name, it.origin, it.description)
    })?;
    Ok(0)
}

pub(super) fn show(cli: &Cli, args: &ShowArgs) -> Result<u8> {
    let harness = cli.offline_harness()?;
    let it = named(&harness, &args.name, Purpose::Look)?;
    let faults = harness.faults_of_workflow(&it.text, &it.name);
    let mut document =
        json!({ "ok": faults.is_empty(), "name": it.name, "path": it.path, "text": it.text, "faults": faults });
    if faults.is_empty() {
        // Without values for its parameters, what depends on them is not known.
        if let Ok(plan) = harness.plan_workflow(&it.text, &it.name, &Map::new(), None) {
            document["plan"] = json!(plan);
        }
    }
    let mut text = it.text.trim_end().to_owned();
    for fault in &faults {
        text.push_str(&format!("\n✗ {fault}"));
    }
    cli.output.either(document, &text);
    Ok(if faults.is_empty() { 0 } else { 10 })
}

pub(super) fn validate(cli: &Cli, args: &ValidateArgs) -> Result<u8> {
    let harness = cli.offline_harness()?;
    let it = named(&harness, &args.name, Purpose::Look)?;
    let faults: Vec<WorkflowFault> = harness.faults_of_workflow(&it.text, &it.name);
    let exit = if faults.is_empty() { 0 } else { 10 };
    let document =
        json!({ "ok": faults.is_empty(), "name": it.name, "path": it.path, "faults": faults, "exit_code": exit });
    let text = if faults.is_empty() {
        format!("✓ {}", it.name)
    } else {
        let lines: Vec<String> = faults.iter().map(|fault| format!("  {fault}")).collect();
        format!("✗ {}: {}\n{}", it.name, count(faults.len(), "fault"), lines.join("\n"))
    };
    cli.output.either(document, &text);
    Ok(exit)
}

/// Values of parameters: `-p name=value`, and a file of them. A value is JSON where it is a number, a list or a truth value.
pub(super) fn params(given: &[String], file: Option<&Path>) -> Result<Map<String, Value>> {
    let fix =
        || Remedy::flag("-p NAME=VALUE").and_text(", or ").and_flag("--params FILE").and_text(" with a JSON object");
    let mut all = match file {
        None => Map::new(),
        Some(path) => {
            let text = std::fs::read_to_string(path)
                .map_err(|e| Error::new(Code::ReadFailed, format!("read {}: {e}", path.display()), fix()))?;
            serde_json::from_str::<Map<String, Value>>(&text).map_err(|e| {
                Error::new(Code::InvalidArgs, format!("{} is no JSON object: {e}", path.display()), fix())
            })?
        }
    };
    for pair in given {
        let Some((name, value)) = pair.split_once('=') else {
            return Err(Error::new(Code::InvalidArgs, format!("`{}` has no `=`", pair.escape_debug()), fix()));
        };
        all.insert(name.to_owned(), Value::from(value));
    }
    Ok(all)
}

/// The plan of a run, as text.
pub(super) fn print_plan(cli: &Cli, plan: &pixir_core::WorkflowPlan) {
    cli.output.either(json!({ "ok": true, "dry_run": true, "plan": plan }), &plan::text(plan));
}
