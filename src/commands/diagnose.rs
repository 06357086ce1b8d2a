//! `pixir diagnose`: what is wrong with a Session, and how to fix it.

use clap::Args;
use pixir_core::Result;
use pixir_core::diagnose::{Level, diagnose};
use serde_json::json;

use crate::cli::Cli;
use crate::output::safe;

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
        output.document(json!({
            "ok": !failed, "session_id": diagnosis.session_id, "findings": diagnosis.findings,
            "next_actions": [diagnosis.next_action],
        }));
        return Ok(u8::from(failed));
    }
    for finding in &diagnosis.findings {
        let level = match finding.level {
            Level::Ok => "ok  ",
            Level::Warn => "warn",
            Level::Fail => "FAIL",
        };
        let fix = if finding.fix.is_empty() { String::new() } else { format!("\n      fix: {}", finding.fix) };
        output.line(&safe(&format!("{level}  {}: {}{fix}", finding.about, finding.what)));
    }
    output.line(&safe(&format!("\nnext: {}", diagnosis.next_action)));
    Ok(u8::from(failed))
}
