//! `pixir fork`: a new Session from an entry of another.

use pixir_core::harness::Harness;
use pixir_core::history::History;
use pixir_core::store::Place;
use pixir_core::{Code, Error, Input, Result};
use serde_json::json;

use crate::cli::entries;
use crate::headless::ask;
use crate::output::{Output, chatter};

/// A new Session from this entry on.
pub(crate) async fn fork(
    harness: &Harness,
    place: &Place,
    at: Option<u64>,
    dry_run: bool,
    output: &Output,
) -> Result<()> {
    let history = History::fold(entries(place, output)?);
    let nothing = || Error::new(Code::NothingToDo, "nothing was said in this session yet", "pixir sessions list");
    let at = at.or(history.head()).ok_or_else(nothing)?;
    let path = history.path_of(at);
    let is_said = history.entry(at).is_some_and(|e| e.fact.is_conversation());
    if !is_said {
        return Err(Error::new(
            Code::NotFound,
            format!("there is no message with number {at}"),
            format!("pixir tree {}", place.id),
        )
        .with("input", at));
    }
    let mut document = json!({
        "schemaVersion": 1, "ok": true, "dry_run": dry_run, "parent_session_id": place.id, "forked_to_seq": at, "entries": path.len(),
    });
    if dry_run {
        output.either(&document, &format!("would copy {} entries of {}, up to {at}", path.len(), place.id));
        return Ok(());
    }
    // The parent is only read: it may be open elsewhere.
    let handle = harness.open_read_only(&place.id)?;
    let asked = ask(&handle, Input::Fork { seq: at }).await;
    handle.close().await;
    let (accepted, _) = asked?;
    let id =
        accepted.forked.ok_or_else(|| Error::new(Code::CommandFailed, "no fork was made", "report this as a bug"))?;
    document["session_id"] = json!(id);
    document["resume_command"] = json!(format!("pixir resume {id}{}", elsewhere(harness)));
    output.either(&document, &id);
    if !output.is_json() {
        chatter(&format!("pixir resume {id}{}", elsewhere(harness)));
    }
    Ok(())
}

/// What a command needs when the Session works in another folder than this one.
fn elsewhere(harness: &Harness) -> String {
    let here = std::env::current_dir().and_then(|folder| folder.canonicalize()).unwrap_or_default();
    if here == harness.workspace() { String::new() } else { format!(" --workspace {}", harness.workspace().display()) }
}
