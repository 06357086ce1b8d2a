//! `pixir workflow`: graphs of steps that are checked, run and resumed.

use clap::Subcommand;
use pixir_core::Result;

use crate::cli::Cli;
use crate::output::ListOptions;

mod list; // workflows and their faults
mod plan; // what a run or a resume would do
mod run; // runs and resumes
mod runs; // runs as their Logs tell them

#[derive(Debug, Subcommand)]
pub(crate) enum WorkflowCommand {
    /// List the workflows: pixir's own, yours, those of skills and the workspace's, and whether each can be run
    #[command(after_help = "Examples:\n  pixir workflow list\n  pixir workflow list --json | jq '.workflows[].name'")]
    List(ListOptions),
    /// Show a workflow: its parameters, steps and limits
    #[command(after_help = "Examples:\n  pixir workflow show review-diff\n  pixir workflow show review-diff --json")]
    Show(list::ShowArgs),
    /// Check a workflow and name every fault; exits with 10 if there is one
    #[command(
        after_help = "Examples:\n  pixir workflow validate .pixir/workflows/release.toml\n  pixir workflow validate release --json"
    )]
    Validate(list::ValidateArgs),
    /// Run a workflow to its end; --dry-run shows what it would be
    #[command(
        after_help = "Examples:\n  pixir workflow run fix-and-verify -p fault='the parser drops the last line' --write\n  pixir workflow run release.toml --dry-run\n  pixir workflow run review-diff --format jsonl\n\nExit codes: 0 completed, 9 some steps did not complete, 1 none did, 10 invalid or not trusted,\n12 a step may not run, 13 a step waits for you, 14 a limit, 130 interrupted"
    )]
    Run(run::RunArgs),
    /// List the runs of this workspace, the latest first
    #[command(after_help = "Examples:\n  pixir workflow runs\n  pixir workflow runs --json | jq '.runs[0]'")]
    Runs(ListOptions),
    /// Stop a run of another process; what is completed stays completed
    #[command(
        after_help = "Examples:\n  pixir workflow stop last\n  pixir workflow stop 20261121T203012-0a1b2c --dry-run"
    )]
    Stop(runs::StopArgs),
    /// Go on with a run: what is completed is not done again
    #[command(
        after_help = "Examples:\n  pixir workflow resume last --write\n  pixir workflow resume last --dry-run\n  pixir workflow resume last --answer ship=yes\n  pixir workflow resume last --rerun build --skip deploy\n  pixir workflow resume last --file release.toml"
    )]
    Resume(run::ResumeArgs),
}

pub(super) fn run(cli: &Cli, command: &WorkflowCommand) -> Result<u8> {
    match command {
        WorkflowCommand::List(options) => list::list(cli, options),
        WorkflowCommand::Show(args) => list::show(cli, args),
        WorkflowCommand::Validate(args) => list::validate(cli, args),
        WorkflowCommand::Run(args) => run::run(cli, args),
        WorkflowCommand::Runs(options) => runs::runs(cli, options),
        WorkflowCommand::Stop(args) => runs::stop(cli, args),
        WorkflowCommand::Resume(args) => run::resume(cli, args),
    }
}
