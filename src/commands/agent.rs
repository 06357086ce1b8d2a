//! `pixir agent`: a guide for a program or an agent that drives pixir.

use pixir_core::Result;
use serde_json::json;

use crate::cli::Cli;

const GUIDE: &str = include_str!("agent.md");

pub(super) fn run(cli: &Cli) -> Result<u8> {
    cli.output.either(json!({ "ok": true, "guide": GUIDE }), GUIDE.trim_end());
    Ok(0)
}
