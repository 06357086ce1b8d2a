//! `pixir permissions`: what may run without asking, and why.

use clap::Subcommand;
use pixir_core::Result;

use crate::cli::Cli;

mod rules; // the rules that the user made
mod why; // how a command line is judged

pub(crate) use rules::line;

#[derive(Debug, Subcommand)]
pub(crate) enum PermissionsCommand {
    /// Show how a command line is judged, program by program; runs nothing
    #[command(
        after_help = "Examples:\n  pixir permissions why 'git log --oneline | head'\n  pixir permissions why 'rm -rf target && make' --mode ask --json"
    )]
    Why(why::WhyArgs),
    /// List the rules that hold in this workspace, and those of its sessions
    #[command(after_help = "Examples:\n  pixir permissions list\n  pixir permissions list --json")]
    List(rules::ListArgs),
    /// Add a rule: what it names runs without asking, or with --deny not at all
    #[command(
        after_help = "Examples:\n  pixir permissions add 'bash(cargo test *)'\n  pixir permissions add 'bash(git push *)' --deny --user\n  pixir permissions add 'files(docs/**)' --expires 7d\n  pixir permissions add 'bash(git push *)' --yes --expires 1h"
    )]
    Add(rules::AddArgs),
    /// Remove a rule
    #[command(after_help = "Examples:\n  pixir permissions revoke r1a2b3c")]
    Revoke(rules::RevokeArgs),
}

pub(super) fn run(cli: &Cli, command: PermissionsCommand) -> Result<u8> {
    match command {
        PermissionsCommand::Why(args) => why::run(cli, &args),
        PermissionsCommand::List(args) => rules::list(cli, &args),
        PermissionsCommand::Add(args) => rules::add(cli, &args),
        PermissionsCommand::Revoke(args) => rules::revoke(cli, &args),
    }
}
