//! `pixir demo`: a scripted model, and real tools on real files in a temporary workspace.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pixir_core::layers::Settings;
use pixir_core::provider::script::{Script, Scripted};
use pixir_core::provider::{Providers, demo};
use pixir_core::{Code, Environment, Error, Harness, Input, Result};
use tempfile::TempDir;

use crate::args::RunOptions;
use crate::cli::{Attendance, Cli, Signals, block_on};
use crate::headless::{self, Job, Narrate};
use crate::output::chatter;
use crate::terminal;

/// A small repository with a bug, and a state folder of its own. Dropping it deletes both.
pub(crate) struct Sample {
    pub(crate) workspace: PathBuf,
    /// The context with the sample's state folder, and without options that select a model or a Session.
    pub(crate) cli: Cli,
    _folder: TempDir,
}

impl Sample {
    pub(crate) fn new(cli: &Cli) -> Result<Sample> {
        let failed = |e: std::io::Error| {
            Error::new(
                Code::WriteFailed,
                format!("create the demo's workspace: {e}"),
                "make the temporary folder writable, or set TMPDIR to one that is",
            )
        };
        let folder = tempfile::Builder::new().prefix("pixir-demo-").tempdir().map_err(failed)?;
        let workspace = folder.path().join("stats");
        demo::write_sample(&workspace).map_err(failed)?;
        let options = &cli.options;
        let options = RunOptions {
            write: options.mode.is_none(),
            mode: options.mode.clone(),
            dry_run: options.dry_run,
            headless: options.headless,
            no_input: options.no_input,
            theme: options.theme.clone(),
            inline: options.inline,
            ..RunOptions::default()
        };
        let environment = Environment { home: folder.path().join("state"), ..cli.environment.clone() };
        Ok(Sample { workspace, cli: Cli { options, environment, output: Arc::clone(&cli.output) }, _folder: folder })
    }
}

pub(super) fn run(cli: &Cli) -> Result<u8> {
    cli.start_diagnostics();
    let sample = Sample::new(cli)?;
    let Sample { workspace, cli, .. } = &sample;
    if !cli.options.headless && !cli.output.is_json() && terminal::is_possible(cli) {
        return terminal::run_demo(cli, workspace);
    }
    let mut script = demo::script();
    script.pace_ms = 0;
    let harness = harness(cli, workspace, script)?;
    block_on(async {
        let handle = harness.start()?;
        let job = Job {
            prompt: Input::Prompt(demo::PROMPT.into()),
            skill: None,
            resumed: false,
            output: &cli.output,
            blobs: harness.blobs().clone(),
            narrate: Narrate::OnStdout,
        };
        let exit = headless::run(&handle, job, Signals::listen()?).await;
        if !cli.output.is_json() {
            chatter("this was the demo; `pixir doctor` shows how to connect a model");
        }
        Ok(exit)
    })
}

/// A Harness in which the script plays the model.
pub(crate) fn harness(cli: &Cli, workspace: &Path, script: Script) -> Result<Harness> {
    let mut providers = Providers::only("demo", demo::MODEL, Arc::new(Scripted::new(script)));
    cli.record(&mut providers)?;
    // Without --mode the demo allows every call, so there is nothing to answer.
    let attended = cli.options.mode.is_some() && !cli.options.headless;
    let attendance = if attended { Attendance::Attended } else { Attendance::Unattended };
    cli.assemble(workspace, attendance, &Settings::default(), providers)
}
