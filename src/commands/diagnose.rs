//! `pixir diagnose`: what is wrong with a Session.

use pixir_core::Result;
use pixir_core::diagnose::{Finding, Level, diagnose};
use pixir_core::provider::choose::Providers;
use pixir_core::store::{Place, Store};
use serde_json::{Value, json};

use crate::output::{Output, safe};
use crate::remedies;

/// What is wrong, and the next thing to do. Ends with 1 when something is in the way.
pub(crate) fn show_diagnosis(store: &Store, providers: &Providers, place: &Place, output: &Output) -> Result<u8> {
    let it = diagnose(place, &store.blobs(), providers)?;
    let failed = it.findings.iter().any(|finding| finding.level == Level::Fail);
    if output.is_json() {
        output.document(&json!({
            "schemaVersion": 1, "ok": !failed, "session_id": it.session_id, "findings": it.findings.iter().map(finding_json).collect::<Vec<_>>(), "next_actions": [remedies::word(&it.next_action)],
        }));
    } else {
        for finding in &it.findings {
            let level = match finding.level {
                Level::Ok => "ok  ",
                Level::Warn => "warn",
                Level::Fail => "FAIL",
            };
            let fix = finding.fix.as_ref().map_or(String::new(), |fix| format!("\n      fix: {}", remedies::word(fix)));
            output.line(&safe(&format!("{level}  {}: {}{fix}", finding.about, finding.what)));
        }
        output.line(&safe(&format!("\nnext: {}", remedies::word(&it.next_action))));
    }
    Ok(u8::from(failed))
}

fn finding_json(it: &Finding) -> Value {
    let mut document = json!({ "level": it.level, "about": it.about, "what": it.what });
    if let Some(fix) = &it.fix {
        document["fix"] = remedies::word(fix).into();
    }
    document
}
