//! `pixir sessions rename`: name a Session.

use pixir_core::event::SessionId;
use pixir_core::store::Place;
use pixir_core::{Code, Error, Harness, Result};
use serde_json::json;

use crate::cli::Cli;
use crate::output::clean;

pub(super) fn run(cli: &Cli, harness: &Harness, place: &Place, name: &str) -> Result<()> {
    let dry_run = cli.options.dry_run;
    if name.chars().count() > 200 || name.chars().any(char::is_control) {
        let fix = "use one line of at most 200 characters";
        return Err(Error::new(Code::InvalidArgs, "the name is too long or has control characters", fix)
            .with("input", clean(name)));
    }
    if name == "last" || SessionId::parse(name).is_ok() {
        return Err(Error::new(
            Code::InvalidArgs,
            "the name could be taken for `last` or a session id",
            "choose another name",
        ));
    }
    if !dry_run {
        harness.store().rename(place, name)?;
    }
    let verb = match (dry_run, name.is_empty()) {
        (true, false) => "would be named",
        (false, false) => "is now named",
        (true, true) => "would have no name",
        (false, true) => "has no name now",
    };
    cli.output.either(
        json!({ "ok": true, "dry_run": dry_run, "session_id": place.id, "name": name }),
        &format!("{} {verb} {name}", place.id),
    );
    Ok(())
}
