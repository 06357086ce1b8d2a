//! `pixir demo`: the embedded task, real tools on real files, in a workspace that is made for it.

use std::path::PathBuf;
use std::sync::Arc;

use pixir_core::config::{Config, Surroundings};
use pixir_core::harness::Harness;
use pixir_core::provider::choose::Providers;
use pixir_core::provider::demo;
use pixir_core::provider::script::Scripted;
use pixir_core::{Code, Error, Result};
use tempfile::TempDir;

use crate::args::RunOptions;
use crate::cli::{self, Asker};
use crate::headless::{self, Job, Story};
use crate::output::{Output, chatter};
use crate::terminal;

/// A small repository with a bug, and a state folder for it; both go away with it.
pub(crate) struct Sample {
    pub(crate) workspace: PathBuf,
    pub(crate) around: Surroundings,
    /// The demo is about the sample alone, so what was said of models does not matter.
    pub(crate) run: RunOptions,
    _folder: TempDir,
}

impl Sample {
    pub(crate) fn new(run: &RunOptions, around: &Surroundings) -> Result<Sample> {
        let failed = |e: std::io::Error| {
            Error::new(
                Code::WriteFailed,
                format!("make the demo's workspace: {e}"),
                "make the temporary folder writable (TMPDIR)",
            )
        };
        let folder = tempfile::Builder::new().prefix("pixir-demo-").tempdir().map_err(failed)?;
        let workspace = folder.path().join("stats");
        demo::write_sample(&workspace).map_err(failed)?;
        let around = Surroundings { home: folder.path().join("state"), ..around.clone() };
        let run = RunOptions {
            write: run.mode.is_none(),
            mode: run.mode.clone(),
            dry_run: run.dry_run,
            headless: run.headless,
            no_input: run.no_input,
            theme: run.theme.clone(),
            inline: run.inline,
            ..RunOptions::default()
        };
        Ok(Sample { workspace, around, run, _folder: folder })
    }
}

/// Runs the demo: on the screen where there is one, else as text or a document.
pub(crate) fn run(run: &RunOptions, around: &Surroundings, output: &Output) -> Result<u8> {
    let sample = Sample::new(run, around)?;
    let Sample { workspace, around, run, .. } = &sample;
    if !run.headless && !output.is_json() && terminal::is_possible(around) {
        return terminal::run_demo(run, around, workspace);
    }
    let mut script = demo::script();
    script.pace_ms = 0;
    let harness = harness(run, around, workspace, script)?;
    crate::block_on(async {
        let handle = harness.start()?;
        let job = Job {
            prompt: demo::PROMPT.into(),
            skill: None,
            resumed: false,
            output,
            blobs: harness.blobs().clone(),
            story: Story::Result,
        };
        let exit = headless::run(&handle, job, headless::Signals::listen()).await;
        if !output.is_json() {
            chatter("this was the demo; `pixir doctor` says how to connect a model");
        }
        Ok(exit)
    })
}

/// A harness in which the script plays the model.
pub(crate) fn harness(
    run: &RunOptions,
    around: &Surroundings,
    folder: &std::path::Path,
    script: pixir_core::provider::script::Script,
) -> Result<Harness> {
    let mut providers = Providers::only("demo", demo::MODEL, Arc::new(Scripted::new(script)));
    cli::record(run, &mut providers)?;
    // Unless another mode is wanted, everything runs.
    let asker = if run.mode.is_some() && !run.headless { Asker::Person } else { Asker::Nobody };
    cli::assemble(run, around, folder, asker, &Config::default(), Arc::new(providers))
}
