//! `pixir sessions`: list, show, rename, delete, move, export, import, verify and repair Sessions.

use clap::Subcommand;
use pixir_core::store::{Place, Summary};
use pixir_core::{Code, Error, Remedy, Result};

use crate::cli::Cli;

mod delete;
pub(crate) mod export;
mod import;
mod list;
mod relocate;
mod rename;
mod repair;
mod show;
mod verify;

#[derive(Debug, Subcommand)]
pub(crate) enum SessionsCommand {
    /// List the sessions of this workspace, latest first
    #[command(after_help = "Examples:\n  pixir sessions list\n  pixir sessions list --all --format tsv")]
    List(list::ListArgs),
    /// Show one session: its log, turns, tokens, cost and changed files
    #[command(
        after_help = "Examples:\n  pixir sessions show last\n  pixir sessions show 20261121T203012-0a1b2c --json"
    )]
    Show {
        /// Session id, a unique prefix of one, a name, or last
        id: String,
    },
    /// Name a session
    #[command(after_help = "Examples:\n  pixir sessions rename last \"the parser\"")]
    Rename {
        /// Session id, a unique prefix of one, a name, or last
        id: String,
        /// New name; an empty one removes the name
        name: String,
    },
    /// Move a session to the trash, or back
    #[command(
        after_help = "Examples:\n  pixir sessions delete 20261121T203012-0a1b2c --yes\n  pixir sessions delete 20261121T203012-0a1b2c --undo"
    )]
    Delete(delete::DeleteArgs),
    /// Move a session to this workspace, for example after its folder was renamed
    #[command(
        after_help = "Examples:\n  pixir sessions move 20261121T203012-0a1b2c\n  pixir sessions move ID --workspace ../app --dry-run"
    )]
    Move {
        /// Session id, a unique prefix of one, or a name
        id: String,
    },
    /// Export a session as Markdown, as one HTML page, or as lossless JSON
    #[command(
        after_help = "Examples:\n  pixir sessions export last > session.md\n  pixir sessions export last --to html --output session.html"
    )]
    Export(export::ExportArgs),
    /// Import a session from exported JSON into this workspace
    #[command(after_help = "Examples:\n  pixir sessions import session.json")]
    Import(import::ImportArgs),
    /// Check every line of a session's log against its hash chain
    #[command(after_help = "Examples:\n  pixir sessions verify last\n  pixir sessions verify --all --json")]
    Verify(verify::VerifyArgs),
    /// Repair a damaged log: readable lines stay, and the damaged log is kept beside the new one
    #[command(after_help = "Examples:\n  pixir sessions repair last --dry-run\n  pixir sessions repair last")]
    Repair {
        /// Session id, a unique prefix of one, a name, or last
        id: String,
    },
}

pub(super) fn run(cli: &Cli, command: SessionsCommand) -> Result<u8> {
    let harness = cli.offline_harness()?;
    match command {
        SessionsCommand::List(args) => return list::run(cli, &harness, &args),
        SessionsCommand::Show { id } => show::run(cli, &harness, &harness.find(&id)?)?,
        SessionsCommand::Rename { id, name } => rename::run(cli, &harness, &harness.find(&id)?, &name)?,
        SessionsCommand::Delete(args) => delete::run(cli, &harness, &args)?,
        SessionsCommand::Move { id } => relocate::run(cli, &harness, &harness.find(&id)?)?,
        SessionsCommand::Export(args) => export::run(cli, &harness, &args)?,
        SessionsCommand::Import(args) => import::run(cli, &harness, &args)?,
        SessionsCommand::Verify(args) => return verify::run(cli, &harness, &args),
        SessionsCommand::Repair { id } => repair::run(cli, &harness.find(&id)?)?,
    }
    Ok(0)
}

fn summary_of(place: &Place) -> Result<Summary> {
    place.summary().ok_or_else(|| {
        Error::new(
            Code::LogReadFailed,
            "the session log cannot be read",
            Remedy::command(format!("pixir diagnose {}", place.id)),
        )
    })
}
