//! `pixir sessions rename`: a Session's name.

use pixir_core::event::SessionId;
use pixir_core::harness::Harness;
use pixir_core::store::Place;
use pixir_core::{Code, Error, Result};
use serde_json::json;

use crate::output::{Output, safe};

pub(super) fn rename(harness: &Harness, place: &Place, name: &str, dry_run: bool, output: &Output) -> Result<()> {
    if name.chars().count() > 200 || name.chars().any(char::is_control) {
        let fix = "one line of at most 200 characters";
        return Err(Error::new(Code::InvalidArgs, "that is no name", fix).with("input", safe(name)));
    }
    if name == "last" || SessionId::parse(name).is_ok() {
        return Err(Error::new(Code::InvalidArgs, "that name would mean another session", "another name"));
    }
    if !dry_run {
        harness.store().rename(place, name)?;
    }
    let verb = match (dry_run, name.is_empty()) {
        (true, false) => "would be named",
        (false, false) => "is now named",
        (true, true) => "would have no name",
        (false, true) => "has no name any more",
    };
    output.either(
        &json!({ "schemaVersion": 1, "ok": true, "dry_run": dry_run, "session_id": place.id, "name": name }),
        &format!("{} {verb} {name}", place.id),
    );
    Ok(())
}
