//! `pixir workflow run|resume`: carries a workflow out in a Session of its own, to its end.

use std::path::PathBuf;

use clap::Args;
use pixir_core::event::Resumed;
use pixir_core::input::WorkflowOrder;
use pixir_core::{Code, Error, Harness, Input, Remedy, Result};
use serde_json::{Map, Value, json};

use super::list::{Purpose, named, params, print_plan};
use super::plan;
use crate::cli::{Attendance, Cli, Signals, block_on};
use crate::headless::workflow::carry_out;

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Name of a workflow, or path of its file
    #[arg(value_name = "NAME|FILE")]
    name: String,
    /// Value of a parameter; repeatable
    #[arg(short, value_name = "NAME=VALUE")]
    param: Vec<String>,
    /// File with the values of parameters, a JSON object
    #[arg(long, value_name = "FILE")]
    params: Option<PathBuf>,
    /// Run only this step and what it waits for
    #[arg(long, value_name = "STEP")]
    until: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ResumeArgs {
    /// Session id of the run, a unique prefix of one, a name, or last
    run: String,
    /// Run this step again, whatever is known of it; repeatable
    #[arg(long, value_name = "STEP")]
    rerun: Vec<String>,
    /// Leave this step out; repeatable
    #[arg(long, value_name = "STEP")]
    skip: Vec<String>,
    /// Take this step as done, as its files are now; repeatable
    #[arg(long, value_name = "STEP")]
    done: Vec<String>,
    /// Answer a gate; repeatable
    #[arg(long, value_name = "STEP=CHOICE")]
    answer: Vec<String>,
    /// Go on with this edited workflow: steps that are the same keep their results
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

pub(super) fn run(cli: &Cli, args: &RunArgs) -> Result<u8> {
    cli.start_diagnostics();
    let workspace = cli.workspace()?;
    let given = params(&args.param, args.params.as_deref())?;
    let offline = cli.offline_harness()?;
    let it = named(&offline, &args.name, Purpose::Run)?;
    // All faults are named before anything is connected.
    let plan = offline.plan_workflow(&it.text, &it.name, &given, args.until.as_deref());
    let plan = plan.map_err(|error| all_faults(error, &args.name))?;
    block_on(async {
        let signals = Signals::listen()?;
        if cli.options.dry_run {
            // The price is that of the model that would answer.
            let plan = match cli.harness(&workspace, Attendance::Unattended).await {
                Ok(harness) => harness.plan_workflow(&it.text, &it.name, &given, args.until.as_deref())?,
                Err(_) => plan,
            };
            print_plan(cli, &plan);
            return Ok(0);
        }
        let harness = harness_for(cli, plan.most_agents > 0).await?;
        let handle = harness.start()?;
        let graph = harness.workflow_as_data(&it.text)?;
        let order = WorkflowOrder {
            name: Some(it.name.clone()),
            graph: Some(graph),
            params: given,
            until: args.until.clone(),
            approved: None,
        };
        Ok(carry_out(&handle, Input::RunWorkflow(order), &cli.output, signals).await)
    })
}

/// The error names one fault of the file; the command that names all of them is its way out. Faults of the parameters are mended
/// on the command line.
fn all_faults(error: Error, name: &str) -> Error {
    let is_in_file = |fault: &Value| fault["line"].as_u64().is_some_and(|line| line > 0);
    let is_given = |fault: &Value| fault["at"].as_str().is_some_and(|at| at.starts_with("params."));
    let Some(faults) = error.details.get("faults").and_then(Value::as_array) else { return error };
    let name = pixir_core::run::quote(name);
    let remedy = if faults.iter().all(|it| !is_in_file(it) && is_given(it)) {
        Remedy::text("look up its parameters: ")
            .and_command(format!("pixir workflow show {name}"))
            .and_text("; ")
            .and_flag("-p NAME=VALUE")
            .and_text(" gives one its value")
    } else if faults.len() > 1 && faults.iter().all(is_in_file) {
        Remedy::text("see every fault: ").and_command(format!("pixir workflow validate {name}"))
    } else {
        return error;
    };
    Error { remedy, ..error }
}

pub(super) fn resume(cli: &Cli, args: &ResumeArgs) -> Result<u8> {
    cli.start_diagnostics();
    let place = cli.session_here(&run_id(cli, &args.run)?)?;
    let mut answers = Map::new();
    for pair in &args.answer {
        let Some((step, choice)) = pair.split_once('=') else {
            let message = format!("`{}` has no `=`", pair.escape_debug());
            return Err(Error::new(Code::InvalidArgs, message, Remedy::flag("--answer STEP=CHOICE")));
        };
        answers.insert(step.to_owned(), Value::from(choice));
    }
    let decisions = Resumed { rerun: args.rerun.clone(), skip: args.skip.clone(), done: args.done.clone(), answers };
    let offline = cli.offline_harness()?;
    let edited = match &args.file {
        Some(path) => Some(named(&offline, &path.display().to_string(), Purpose::Run)?.text),
        None => None,
    };
    block_on(async {
        let signals = Signals::listen()?;
        let rehearsal = offline.rehearse_workflow(&place.id, decisions.clone(), edited.as_deref())?;
        if cli.options.dry_run {
            let all = rehearsal.await;
            let document = json!({ "ok": true, "dry_run": true, "session_id": place.id, "steps": all });
            cli.output.either(document, &plan::rehearsed(&all));
            return Ok(0);
        }
        drop(rehearsal);
        let has_agents = offline.run_has_agents(&place.id, edited.as_deref())?;
        let harness = harness_for(cli, has_agents).await?;
        let handle = if has_agents { harness.resume(&place.id)? } else { harness.resume_without_model(&place.id)? };
        let graph = edited.as_deref().map(|text| harness.workflow_as_data(text)).transpose()?;
        Ok(carry_out(&handle, Input::ResumeWorkflow { decisions, graph }, &cli.output, signals).await)
    })
}

/// The Session of a run: `last` is the latest run, not the latest Session.
pub(super) fn run_id(cli: &Cli, text: &str) -> Result<String> {
    if text != "last" {
        return Ok(text.to_owned());
    }
    let latest = cli.offline_harness()?.sessions_and_agents().into_iter().find(|it| it.workflow.is_some());
    latest.map(|it| it.id).ok_or_else(|| {
        Error::new(Code::SessionNotFound, "no workflow was run in this workspace", "pixir workflow run NAME")
    })
}

/// A Harness whose model answers, where the workflow needs one.
async fn harness_for(cli: &Cli, has_agents: bool) -> Result<Harness> {
    if !has_agents {
        // Commands and gates need no model.
        if let Ok(harness) = cli.harness(&cli.workspace()?, Attendance::Unattended).await {
            return Ok(harness);
        }
        return cli.offline_harness();
    }
    let harness = cli.harness(&cli.workspace()?, Attendance::Unattended).await?;
    if harness.providers().provider == "demo" && cli.options.provider.is_none() {
        return Err(harness.providers().unconnected());
    }
    Ok(harness)
}
