//! `pixir demo`: a scripted model, and real tools on real files in a temporary workspace.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pixir_core::layers::Settings;
use pixir_core::provider::script::Pace;
use pixir_core::provider::{Providers, demo};
use pixir_core::{Code, Environment, Error, Harness, Input, Result};
use tempfile::TempDir;

use crate::args::RunOptions;
use crate::cli::{Attendance, Cli, Signals, block_on};
use crate::headless::{self, Job, Judging, Narrate};
use crate::output::chatter;
use crate::terminal;

/// A small repository with a bug, and a state folder of its own. Dropping it deletes both.
pub(crate) struct Sample {
    pub(crate) workspace: PathBuf,
    /// The context with the sample's state folder, and without options that select a model or a Session.
    pub(crate) cli: Cli,
    _folder: TempDir,
}

/// Who watches the demo.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Audience {
    /// A user at a terminal, who reads along and decides about the edits.
    User,
    /// Output goes to a program or a pipe: the demo does not wait, and asks the user only if `--mode` says so.
    Program,
}

impl Sample {
    pub(crate) fn new(cli: &Cli, audience: Audience) -> Result<Sample> {
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
            write: options.mode.is_none() && audience == Audience::Program,
            mode: options.mode.clone(),
            dry_run: options.dry_run,
            headless: options.headless,
            no_input: options.no_input,
            theme: options.theme.clone(),
            inline: options.inline,
            allow: vec![demo::RULE.to_owned()],
            ..RunOptions::default()
        };
        let environment = Environment { home: folder.path().join("state"), ..cli.environment.clone() };
        Ok(Sample {
            workspace,
            cli: Cli { options, environment, output: Arc::clone(&cli.output), waits: cli.waits.clone() },
            _folder: folder,
        })
    }
}

pub(super) fn run(cli: &Cli) -> Result<u8> {
    cli.start_diagnostics();
    let is_watched = !cli.options.headless && !cli.output.is_json() && terminal::is_possible(cli);
    let audience = if is_watched { Audience::User } else { Audience::Program };
    let sample = Sample::new(cli, audience)?;
    let Sample { workspace, cli, .. } = &sample;
    if is_watched {
        return terminal::run_demo(cli, workspace);
    }
    let (harness, _) = harness(cli, workspace, audience)?;
    block_on(async {
        let handle = harness.start()?;
        let prompt = Input::Prompt(demo::PROMPT.into());
        let job = Job {
            skills: Vec::new(),
            resumed: false,
            output: &cli.output,
            blobs: harness.blobs().clone(),
            narrate: Narrate::OnStdout,
            deadline: None,
            schema: None,
            judging: Judging { by_rules: false, workspace: harness.workspace().to_owned() },
            answer_file: None,
            store: harness.store().clone(),
            is_kept: false,
        };
        let exit = headless::run(&handle, prompt, job, Signals::listen()?).await;
        if !cli.output.is_json() {
            chatter("this was the demo; `pixir doctor` shows how to connect a model");
        }
        Ok(exit)
    })
}

/// A Harness in which the script plays the model, and the waits of its answers.
pub(crate) fn harness(cli: &Cli, workspace: &Path, audience: Audience) -> Result<(Harness, Arc<Pace>)> {
    let script = match audience {
        Audience::User => demo::script(),
        Audience::Program => demo::script().without_waits(),
    };
    let guide = demo::Guide::new(script);
    let pace = guide.pace();
    let mut providers = Providers::only("demo", demo::MODEL, Arc::new(guide));
    cli.record(&mut providers)?;
    // A program that sets no mode allows every call, so there is nothing to answer.
    let attended = (audience == Audience::User || cli.options.mode.is_some()) && !cli.options.headless;
    let attendance = if attended { Attendance::Attended } else { Attendance::Unattended };
    Ok((cli.assemble(workspace, attendance, &Settings::default(), providers)?, pace))
}
