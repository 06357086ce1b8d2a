//! `pixir diagnose`: the problems of a Session, and how to fix them.

use clap::Args;
use pixir_core::Result;
use pixir_core::diagnose::{Finding, Level, diagnose};
use serde_json::{Value, json};

use crate::cli::Cli;
use crate::{next_actions, remedies};

#[derive(Debug, Args)]
pub(crate) struct DiagnoseArgs {
    /// Session id, a unique prefix of one, a name, or last
    #[arg(default_value = "last")]
    id: String,
}

/// Exits with 1 if the Session cannot continue.
pub(super) fn run(cli: &Cli, args: &DiagnoseArgs) -> Result<u8> {
    let harness = cli.offline_harness()?;
    let providers = cli.configured_providers()?;
    let place = harness.find(&args.id)?;
    let diagnosis = diagnose(&place, &harness.store().blobs(), &providers)?;
    let failed = diagnosis.findings.iter().any(|finding| finding.level == Level::Fail);
    let output = &cli.output;
    if output.is_json() {
        let findings: Vec<Value> = diagnosis.findings.iter().map(finding_json).collect();
        output.document(json!({
            "ok": !failed, "session_id": diagnosis.session_id, "findings": findings,
            "next_actions": next_actions::for_session(&diagnosis.next_action, &diagnosis.session_id),
        }));
        return Ok(u8::from(failed));
    }
    for finding in &diagnosis.findings {
        let level = match finding.level {
            Level::Ok => "ok  ",
            Level::Warn => "warn",
            Level::Fail => "FAIL",
        };
        let fix = finding.fix.as_ref().map_or(String::new(), |fix| format!("\n      fix: {}", remedies::word(fix)));
        output.line(&format!("{level}  {}: {}{fix}", finding.about, finding.what));
    }
    output.line(&format!("\nnext: {}", remedies::word(&diagnosis.next_action)));
    Ok(u8::from(failed))
}

fn finding_json(it: &Finding) -> Value {
    let mut document = json!({ "level": it.level, "about": it.about, "what": it.what });
    if let Some(fix) = &it.fix {
        document["fix"] = remedies::word(fix).into();
    }
    document
}
