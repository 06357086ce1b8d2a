//! `pixir diagnose`: what is wrong with a Session.

use pixir_core::Result;
use pixir_core::diagnose::{Level, diagnose};
use pixir_core::provider::choose::Providers;
use pixir_core::store::{Place, Store};
use serde_json::json;

use crate::output::{Output, safe};

/// What is wrong, and the next thing to do. Ends with 1 when something is in the way.
pub(crate) fn show_diagnosis(store: &Store, providers: &Providers, place: &Place, output: &Output) -> Result<u8> {
    let it = diagnose(place, &store.blobs(), providers)?;
    let failed = it.findings.iter().any(|finding| finding.level == Level::Fail);
    if output.is_json() {
        output.document(&json!({
            "schemaVersion": 1, "ok": !failed, "session_id": it.session_id, "findings": it.findings, "next_actions": [it.next_action],
        }));
    } else {
        for finding in &it.findings {
            let level = match finding.level {
                Level::Ok => "ok  ",
                Level::Warn => "warn",
                Level::Fail => "FAIL",
            };
            let fix = if finding.fix.is_empty() { String::new() } else { format!("\n      fix: {}", finding.fix) };
            output.line(&safe(&format!("{level}  {}: {}{fix}", finding.about, finding.what)));
        }
        output.line(&safe(&format!("\nnext: {}", it.next_action)));
    }
    Ok(u8::from(failed))
}
