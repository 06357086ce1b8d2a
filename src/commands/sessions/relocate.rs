//! `pixir sessions move`: another workspace for a Session.

use pixir_core::harness::Harness;
use pixir_core::store::Place;
use pixir_core::{Code, Error, Result};
use serde_json::json;

use crate::output::Output;

pub(super) fn relocate(harness: &Harness, place: &Place, dry_run: bool, output: &Output) -> Result<()> {
    let folder = harness.workspace();
    if *place == harness.place(&place.id) {
        return Err(Error::new(
            Code::NothingToDo,
            format!("it works in {} already", folder.display()),
            "run it in another folder, or with --workspace DIR",
        ));
    }
    if !dry_run {
        harness.store().relocate(place, folder)?;
    }
    let verb = if dry_run { "would work" } else { "works" };
    output.either(
        &json!({ "schemaVersion": 1, "ok": true, "dry_run": dry_run, "session_id": place.id, "workspace": folder }),
        &format!("{} {verb} in {} from now on", place.id, folder.display()),
    );
    Ok(())
}
