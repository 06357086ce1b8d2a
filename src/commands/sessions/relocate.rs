//! `pixir sessions move`: move a Session to another workspace.

use pixir_core::store::Place;
use pixir_core::{Code, Error, Harness, Remedy, Result};
use serde_json::json;

use crate::cli::Cli;

pub(super) fn run(cli: &Cli, harness: &Harness, place: &Place) -> Result<()> {
    let dry_run = cli.options.dry_run;
    let folder = harness.workspace();
    if *place == harness.place(&place.id) {
        return Err(Error::new(
            Code::NothingToDo,
            format!("the session already belongs to {}", folder.display()),
            Remedy::text("run this in the new folder, or pass ").and_flag("--workspace DIR"),
        ));
    }
    if !dry_run {
        harness.store().relocate(place, folder)?;
    }
    let verb = if dry_run { "would belong" } else { "now belongs" };
    cli.output.either(
        json!({ "ok": true, "dry_run": dry_run, "session_id": place.id, "workspace": folder }),
        &format!("{} {verb} to {}", place.id, folder.display()),
    );
    Ok(())
}
