//! `pixir trust`: what of workspaces is in force.

use clap::Args;
use pixir_core::trust::{Contribution, Contributions, Standing, TrustAnswer};
use pixir_core::{Code, Error, Remedy, Result, TrustDecision};
use serde_json::json;

use crate::args::Format;
use crate::cli::Cli;
use crate::output::{List, ListOptions};

#[derive(Debug, Args)]
pub(crate) struct TrustArgs {
    /// Stop trusting this workspace
    #[arg(long, conflicts_with_all = ["list", "never"])]
    revoke: bool,
    /// Trust nothing of this workspace, and never ask about it again
    #[arg(long, conflicts_with = "list")]
    never: bool,
    /// List the workspaces that the user decided about
    #[arg(long)]
    list: bool,
    #[command(flatten)]
    options: ListOptions,
}

pub(super) fn run(cli: &Cli, args: &TrustArgs) -> Result<u8> {
    let trust = cli.store()?.trust();
    if args.list {
        let all = trust.decisions();
        let row = |it: &TrustDecision| {
            let mut row = json!(it);
            row["state"] = state(it).into();
            row
        };
        let rows = all.iter().map(row).collect();
        let columns = &["workspace", "state", "made"];
        let list = List { name: "workspaces", key: "workspace", columns, rows, beside: json!({}) };
        list.print(&cli.output, &args.options, |at| format!("{:<11}  {}", state(&all[at]), all[at].workspace))?;
        if all.is_empty() {
            cli.output.aside("no workspace is trusted");
        }
        return Ok(0);
    }
    if cli.output.format == Format::Tsv {
        let fix = Remedy::text("list the workspaces: ").and_command("pixir trust --list --format tsv");
        return Err(
            Error::new(Code::Usage, "`pixir trust` prints rows for tsv only with --list", fix).with("input", "tsv")
        );
    }
    let harness = cli.offline_harness()?;
    let seen = harness.contributions();
    let answer = match (args.revoke, args.never) {
        (true, _) => TrustAnswer::Revoke,
        (false, true) => TrustAnswer::Never,
        (false, false) => TrustAnswer::Trust,
    };
    if !cli.options.dry_run {
        trust.decide(harness.workspace(), answer, &seen.seen())?;
    }
    let document = json!({
        "ok": true,
        "dry_run": cli.options.dry_run,
        "workspace": seen.workspace,
        "answer": answer,
        "trusted": answer == TrustAnswer::Trust,
        "contributions": seen.all,
    });
    cli.output.either(document, &text(cli, answer, &seen));
    Ok(0)
}

fn state(it: &TrustDecision) -> &'static str {
    match (it.trusted.is_empty(), it.never) {
        (false, _) => "trusted",
        (true, true) => "never",
        (true, false) => "not trusted",
    }
}

fn text(cli: &Cli, answer: TrustAnswer, seen: &Contributions) -> String {
    let would = if cli.options.dry_run { "would be " } else { "" };
    let state = match answer {
        TrustAnswer::Trust => "trusted",
        TrustAnswer::NotNow | TrustAnswer::Revoke => "not trusted",
        TrustAnswer::Never => "not trusted, and not asked about again",
    };
    let mut lines = vec![format!("{would}{state}: {}", seen.workspace)];
    lines.extend(seen.all.iter().map(line));
    if seen.all.is_empty() {
        lines.push("  it brings nothing along that needs trust".to_owned());
    }
    lines.join("\n")
}

/// One contribution, with how it stood before the answer.
pub(crate) fn line(it: &Contribution) -> String {
    let before = match &it.standing {
        Standing::InForce => "in force".to_owned(),
        Standing::Inert => "not in force".to_owned(),
        Standing::New => "new".to_owned(),
        Standing::Changed => "changed".to_owned(),
        Standing::Unusable { why } => format!("unusable: {why}"),
    };
    let about = if it.about.is_empty() { String::new() } else { format!(": {}", it.about) };
    format!("  {}  {}{about}  ({before})", it.path, it.kind.name())
}
