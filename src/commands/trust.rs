//! `pixir trust`: workspaces whose skills are in force.

use clap::Args;
use pixir_core::Result;
use serde_json::json;

use crate::cli::Cli;

#[derive(Debug, Args)]
pub(crate) struct TrustArgs {
    /// Stop trusting this workspace
    #[arg(long, conflicts_with = "list")]
    revoke: bool,
    /// List the workspaces that the user decided about
    #[arg(long)]
    list: bool,
}

pub(super) fn run(cli: &Cli, args: &TrustArgs) -> Result<u8> {
    let trust = cli.store().trust();
    if args.list {
        let all = trust.decisions();
        let line = |it: &pixir_core::trust::TrustDecision| {
            format!("{}  {}", if it.trusted { "trusted    " } else { "not trusted" }, it.workspace)
        };
        let lines: Vec<String> = all.iter().map(line).collect();
        let text = if lines.is_empty() { "no workspace is trusted".to_owned() } else { lines.join("\n") };
        cli.output.either(json!({ "ok": true, "workspaces": all }), &text);
        return Ok(0);
    }
    let harness = cli.offline_harness()?;
    let workspace = harness.workspace();
    let trusted = !args.revoke;
    if !cli.options.dry_run {
        trust.decide(workspace, trusted)?;
    }
    let skills: Vec<String> = harness
        .skills()
        .into_iter()
        .filter(|it| it.origin == pixir_core::Origin::Workspace)
        .map(|it| it.name)
        .collect();
    let document = json!({
        "ok": true,
        "dry_run": cli.options.dry_run,
        "workspace": workspace.display().to_string(),
        "trusted": trusted,
        "skills": skills,
    });
    let would = if cli.options.dry_run { "would be " } else { "" };
    let state = if trusted { "trusted" } else { "not trusted" };
    let skills =
        if skills.is_empty() { "it has no skills".to_owned() } else { format!("its skills: {}", skills.join(", ")) };
    cli.output.either(document, &format!("{would}{state}: {}; {skills}", workspace.display()));
    Ok(0)
}
