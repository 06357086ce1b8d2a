//! `pixir sessions delete`: to the trash, and back.

use pixir_core::event::SessionId;
use pixir_core::harness::Harness;
use pixir_core::{Code, Error, Result};
use serde_json::json;

use crate::output::Output;

pub(super) fn delete(harness: &Harness, id: &SessionId, yes: bool, dry_run: bool, output: &Output) -> Result<()> {
    let place = harness.find(id.as_str())?;
    let title = place.summary().map_or(String::new(), |it| it.title().to_owned());
    if !yes && !dry_run {
        return Err(Error::new(
            Code::ConfirmationNeeded,
            format!("this would move {id} to the trash: {title}"),
            format!("pixir sessions delete {id} --yes"),
        ));
    }
    if !dry_run {
        harness.store().delete(&place)?;
    }
    let undo = format!("pixir sessions delete {id} --undo");
    let verb = if dry_run { "would go to the trash" } else { "is in the trash" };
    output.either(
        &json!({ "schemaVersion": 1, "ok": true, "dry_run": dry_run, "session_id": id, "undo_command": undo }),
        &format!("{id} {verb}; {undo} gets it back"),
    );
    Ok(())
}

pub(super) fn undelete(harness: &Harness, id: &SessionId, dry_run: bool, output: &Output) -> Result<()> {
    if dry_run && !harness.store().trash().iter().any(|it| it.summary.id == id.as_str()) {
        return Err(Error::new(
            Code::SessionNotFound,
            format!("{id} is not in the trash"),
            "pixir sessions list --trash",
        ));
    }
    if !dry_run {
        harness.store().undelete(id)?;
    }
    output.either(
        &json!({ "schemaVersion": 1, "ok": true, "dry_run": dry_run, "session_id": id }),
        &format!("{id} {}", if dry_run { "would be back" } else { "is back" }),
    );
    Ok(())
}
