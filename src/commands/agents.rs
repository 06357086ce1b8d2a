//! `pixir agents`: the agents of a session, and the roles that agents and sessions can have.

use clap::Subcommand;
use pixir_core::Result;

use crate::cli::Cli;
use crate::output::ListOptions;

mod adopt; // files of their copies
mod roles; // what agents are for, and what they may do at most
mod stop; // agents that run in another process
pub(crate) mod tree; // agents as the logs tell them

#[derive(Debug, Subcommand)]
pub(crate) enum AgentsCommand {
    /// List the roles: pixir's own, yours and the workspace's, and whether each is in force
    #[command(after_help = "Examples:\n  pixir agents list\n  pixir agents list --json | jq '.roles[].name'")]
    List(ListOptions),
    /// Show a role: what it leaves, where it is, what is odd about it, and what its agents are told
    #[command(after_help = "Examples:\n  pixir agents show reviewer\n  pixir agents show reviewer --json")]
    Show(roles::ShowArgs),
    /// Check the files of roles; exits with 1 if one cannot be used
    #[command(
        after_help = "Examples:\n  pixir agents validate\n  pixir agents validate .claude/agents\n  pixir agents validate docs-writer --json"
    )]
    Validate(roles::ValidateArgs),
    /// Show the agents that a session has started, and how each ended
    #[command(after_help = "Examples:\n  pixir agents tree\n  pixir agents tree 20261121T203012-0a1b2c --json")]
    Tree(tree::TreeArgs),
    /// Write what agents changed in their copies to the workspace
    #[command(
        after_help = "Examples:\n  pixir agents adopt last --dry-run\n  pixir agents adopt last worker-1 --keep README.md\n  pixir agents adopt last --take src/lib.rs --json"
    )]
    Adopt(adopt::AdoptArgs),
    /// Stop the agents of a run without a terminal, with the run; record the ends of those whose pixir was killed
    #[command(after_help = "Examples:\n  pixir agents stop last\n  pixir agents stop last --dry-run --json")]
    Stop(stop::StopArgs),
}

pub(super) fn run(cli: &Cli, command: &AgentsCommand) -> Result<u8> {
    match command {
        AgentsCommand::List(options) => roles::list(cli, options),
        AgentsCommand::Show(args) => roles::show(cli, args),
        AgentsCommand::Validate(args) => roles::validate(cli, args),
        AgentsCommand::Tree(args) => tree::run(cli, args),
        AgentsCommand::Stop(args) => stop::run(cli, args),
        AgentsCommand::Adopt(args) => adopt::run(cli, args),
    }
}
