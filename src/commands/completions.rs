//! `pixir completions`: the completions of a shell, from the definitions of the parser.

use clap::{Args, ValueEnum};
use clap_complete::Shell;
use pixir_core::Result;

use crate::args::spelled_out;
use crate::cli::Cli;

mod bash; // bash, in a script of its own

#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    shell: Kind,
}

/// Shells that have completions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    Bash,
    Zsh,
    Fish,
    Nushell,
    Elvish,
    #[value(name = "powershell")]
    PowerShell,
}

pub(super) fn run(cli: &Cli, args: &CompletionsArgs) -> Result<u8> {
    let mut command = spelled_out();
    let mut text = Vec::new();
    let mut write = |shell: Shell| clap_complete::generate(shell, &mut command, "pixir", &mut text);
    match args.shell {
        Kind::Bash => text = bash::script(&command).into_bytes(),
        Kind::Zsh => write(Shell::Zsh),
        Kind::Fish => write(Shell::Fish),
        Kind::Elvish => write(Shell::Elvish),
        Kind::PowerShell => write(Shell::PowerShell),
        Kind::Nushell => {
            clap_complete::generate(clap_complete_nushell::Nushell, &mut command, "pixir", &mut text);
        }
    }
    cli.output.bytes(&text);
    Ok(0)
}
