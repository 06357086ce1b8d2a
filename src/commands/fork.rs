//! `pixir fork`: a new Session that continues from an entry of another one.

use clap::Args;
use pixir_core::history::History;
use pixir_core::remedy::Sessions;
use pixir_core::{Code, Error, Harness, Input, Remedy, Result};
use serde_json::json;

use crate::cli::{Cli, block_on};
use crate::headless::request;

#[derive(Debug, Args)]
pub(crate) struct ForkArgs {
    /// Session id, a unique prefix of one, a name, or last
    #[arg(default_value = "last")]
    id: String,
    /// Last entry to copy; `pixir tree` shows the numbers. Default: the head
    #[arg(long, value_name = "SEQ")]
    at: Option<u64>,
}

pub(super) fn run(cli: &Cli, args: &ForkArgs) -> Result<u8> {
    let (harness, place) = cli.locate(&args.id)?;
    let (at, copied) = {
        // Dropped before the Session is opened, which reads its Log again.
        let history = History::fold(cli.entries(&place)?);
        let empty = || {
            Error::new(
                Code::NothingToDo,
                "this session has no messages yet",
                Remedy::ListSessions { which: Sessions::Here },
            )
        };
        let at = args.at.or(history.head()).ok_or_else(empty)?;
        if !history.entry(at).is_some_and(|entry| entry.fact.is_conversation()) {
            let fix = Remedy::command(format!("pixir tree {}", place.id));
            return Err(Error::new(Code::NotFound, format!("entry {at} is not a message"), fix).with("input", at));
        }
        (at, history.path_of(at).len())
    };
    let dry_run = cli.options.dry_run;
    let mut document = json!({
        "ok": true, "dry_run": dry_run, "parent_session_id": place.id, "forked_to_seq": at, "entries": copied,
    });
    if dry_run {
        cli.output.either(document, &format!("would copy {copied} entries of {}, up to {at}", place.id));
        return Ok(0);
    }
    let id = block_on(async {
        // Forking only reads the parent, which may be open elsewhere.
        let handle = harness.open_read_only(&place.id)?;
        let answer = request(&handle, Input::Fork { seq: at }).await;
        handle.close().await;
        let (accepted, _) = answer?;
        accepted
            .forked
            .ok_or_else(|| Error::new(Code::CommandFailed, "the fork was not created", "report this as a bug"))
    })?;
    let resume = format!("pixir resume {id}{}", workspace_flag(&harness));
    document["session_id"] = json!(id);
    document["resume_command"] = json!(resume);
    cli.output.either(document, &id);
    cli.output.aside(&resume);
    Ok(0)
}

/// The flag that a command needs if the Session belongs to another workspace.
fn workspace_flag(harness: &Harness) -> String {
    let here = std::env::current_dir().and_then(|folder| folder.canonicalize()).unwrap_or_default();
    if here == harness.workspace() { String::new() } else { format!(" --workspace {}", harness.workspace().display()) }
}
