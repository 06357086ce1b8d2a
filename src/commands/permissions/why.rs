//! `pixir permissions why`: how a command line is judged.

use clap::Args;
use pixir_core::Result;
use pixir_core::call::{Explained, Judged, explain};
use serde_json::{Value, json};

use crate::cli::Cli;

#[derive(Debug, Args)]
pub(crate) struct WhyArgs {
    /// The command line, as bash would get it
    line: String,
}

pub(super) fn run(cli: &Cli, args: &WhyArgs) -> Result<u8> {
    let harness = cli.offline_harness()?;
    let ctx = harness.tool_context("why");
    let mode = cli.session_mode()?;
    let rules = harness.unattended(mode).rules;
    let Explained { parse, verdict, reason, rule } = explain(mode, &args.line, &rules, &ctx);
    if cli.output.is_json() {
        let program = |it: &Judged| -> Value {
            json!({
                "program": it.words.first(),
                "args": it.words.get(1..).unwrap_or_default(),
                "reads_only": it.verdict.is_ok(),
                "reason": it.verdict.as_ref().err(),
            })
        };
        cli.output.document(json!({
            "schema": "pixir.permissions.why/1",
            "command": args.line,
            "mode": mode.name(),
            "verdict": verdict,
            "reason": reason,
            "rule": rule,
            "fault": parse.fault,
            "programs": parse.programs.iter().map(program).collect::<Vec<_>>(),
        }));
        return Ok(0);
    }
    let mut lines: Vec<String> = Vec::new();
    for Judged { words, verdict } in &parse.programs {
        let shown = words.iter().map(|word| pixir_core::run::quote(word)).collect::<Vec<_>>().join(" ");
        let shown: String =
            shown.chars().flat_map(|c| if c.is_control() { c.escape_debug().collect() } else { vec![c] }).collect();
        lines.push(match verdict {
            Ok(()) => format!("  {shown}\n      only reads"),
            Err(why) => format!("  {shown}\n      {why}"),
        });
    }
    lines.extend(parse.fault.iter().map(|fault| format!("  {fault}")));
    let verdict = match verdict {
        "runs" => "runs unasked",
        "refused" => "is refused",
        verdict => verdict,
    };
    lines.push(format!("In {} mode it {verdict}: {reason}", mode.name()));
    cli.output.line(&lines.join("\n"));
    Ok(0)
}
