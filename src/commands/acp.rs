//! `pixir acp`: serve an editor over the Agent Client Protocol.

use clap::Args;
use pixir_core::Result;

use super::auth;
use crate::acp;
use crate::cli::Cli;

#[derive(Debug, Args)]
pub(crate) struct AcpArgs {
    /// Ask for a provider and store its key; editors start this in a terminal
    #[arg(long)]
    login: bool,
}

pub(super) fn run(cli: &Cli, args: &AcpArgs) -> Result<u8> {
    if args.login { auth::ask_and_login(cli) } else { acp::run(cli) }
}
