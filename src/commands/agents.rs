//! `pixir agents`: the agents of a session.

use clap::Subcommand;
use pixir_core::Result;

use crate::cli::Cli;

mod stop; // agents that run in another process
pub(crate) mod tree; // agents as the logs tell them

#[derive(Debug, Subcommand)]
pub(crate) enum AgentsCommand {
    /// Show the agents that a session has started, and how each ended
    #[command(after_help = "Examples:\n  pixir agents tree\n  pixir agents tree 20261121T203012-0a1b2c --json")]
    Tree(tree::TreeArgs),
    /// Say how to stop the agents of a session that is open elsewhere; record the ends of those whose pixir was killed
    #[command(after_help = "Examples:\n  pixir agents stop last\n  pixir agents stop last --dry-run --json")]
    Stop(stop::StopArgs),
}

pub(super) fn run(cli: &Cli, command: &AgentsCommand) -> Result<u8> {
    match command {
        AgentsCommand::Tree(args) => tree::run(cli, args),
        AgentsCommand::Stop(args) => stop::run(cli, args),
    }
}
