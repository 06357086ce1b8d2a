//! `pixir sessions delete`: move a Session to the trash, or back.

use clap::Args;
use pixir_core::event::SessionId;
use pixir_core::remedy::Sessions;
use pixir_core::{Code, Error, Harness, Remedy, Result};
use serde_json::json;

use crate::cli::Cli;
use crate::output::count;

#[derive(Debug, Args)]
pub(crate) struct DeleteArgs {
    /// Full session id
    id: String,
    /// Confirm the deletion
    #[arg(long, conflicts_with = "undo")]
    yes: bool,
    /// Restore the session from the trash
    #[arg(long)]
    undo: bool,
}

pub(super) fn run(cli: &Cli, harness: &Harness, args: &DeleteArgs) -> Result<()> {
    // A prefix or a name could match another session tomorrow, so deleting takes the full id.
    let id = SessionId::parse(&args.id)
        .map_err(|e| Error { message: format!("deleting needs the full session id; {}", e.message), ..e })
        .map_err(|e| e.with("input", args.id.as_str()))?;
    if args.undo { undelete(cli, harness, &id) } else { delete(cli, harness, &id, args) }
}

fn delete(cli: &Cli, harness: &Harness, id: &SessionId, args: &DeleteArgs) -> Result<()> {
    let dry_run = cli.options.dry_run;
    let place = harness.find(id.as_str())?;
    let title = place.summary().map_or(String::new(), |it| it.title().to_owned());
    let agents: Vec<String> = place.descendants().iter().map(|it| it.id.to_string()).collect();
    let with = if agents.is_empty() { String::new() } else { format!(" with {}", count(agents.len(), "agent")) };
    if !args.yes && !dry_run {
        return Err(Error::new(
            Code::ConfirmationNeeded,
            format!("this would move {id}{with} to the trash: {title}"),
            Remedy::command(format!("pixir sessions delete {id} --yes")),
        ));
    }
    if !dry_run {
        harness.store().delete(&place)?;
    }
    let undo = format!("pixir sessions delete {id} --undo");
    let verb = if dry_run { "would move to the trash" } else { "is in the trash" };
    cli.output.either(
        json!({ "ok": true, "dry_run": dry_run, "session_id": id, "agents": agents, "undo_command": undo }),
        &format!("{id}{with} {verb}; {undo} restores it"),
    );
    Ok(())
}

fn undelete(cli: &Cli, harness: &Harness, id: &SessionId) -> Result<()> {
    let dry_run = cli.options.dry_run;
    if dry_run && !harness.store().trash().iter().any(|it| it.summary.id == id.as_str()) {
        return Err(Error::new(
            Code::SessionNotFound,
            format!("{id} is not in the trash"),
            Remedy::ListSessions { which: Sessions::Trash },
        ));
    }
    if !dry_run {
        harness.store().undelete(id)?;
    }
    cli.output.either(
        json!({ "ok": true, "dry_run": dry_run, "session_id": id }),
        &format!("{id} {}", if dry_run { "would be restored" } else { "is restored" }),
    );
    Ok(())
}
