//! The rules that the user made: list, add, revoke.

use std::path::PathBuf;

use clap::Args;
use jiff::{SignedDuration, Timestamp};
use pixir_core::event::Rule;
use pixir_core::rule::{Reach, SavedRule};
use pixir_core::{Code, Error, Result, rules};
use serde_json::json;

use crate::cli::Cli;

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Rules of all workspaces, and those that have expired
    #[arg(long)]
    all: bool,
}

#[derive(Debug, Args)]
pub(crate) struct AddArgs {
    /// What the rule covers: bash(PROGRAM ARGUMENTS) with * for any text, files(GLOB), or network
    #[arg(value_name = "RULE")]
    rule: String,
    /// Deny it, in every mode
    #[arg(long)]
    deny: bool,
    /// The rule holds in this workspace; the default
    #[arg(long, conflicts_with = "user")]
    project: bool,
    /// The rule holds in every workspace
    #[arg(long)]
    user: bool,
    /// When the rule ends, such as 30m, 12h or 7d
    #[arg(long, value_name = "TIME", value_parser = duration)]
    expires: Option<SignedDuration>,
}

#[derive(Debug, Args)]
pub(crate) struct RevokeArgs {
    /// The rule's id, as `pixir permissions list` shows it
    #[arg(value_name = "ID")]
    id: String,
}

pub(super) fn list(cli: &Cli, args: &ListArgs) -> Result<u8> {
    let loaded = cli.store().rules().load();
    let here = here(cli)?;
    let now = Timestamp::now();
    let is_of_here = |it: &SavedRule| match &it.holds {
        Reach::Session { workspace, .. } | Reach::Project { workspace } => here.as_os_str() == workspace.as_str(),
        Reach::User => true,
    };
    let listed: Vec<&SavedRule> =
        loaded.saved.iter().filter(|it| args.all || (is_of_here(it) && it.is_in_time(now))).collect();
    if let Some(warning) = loaded.warning() {
        cli.output.aside(&format!("warning: {warning}"));
    }
    let mut lines: Vec<String> = listed.iter().map(|it| line(it, now)).collect();
    let unreadable = loaded.unreadable.iter();
    lines.extend(unreadable.clone().map(|it| format!("line-{}  cannot be read by this pixir", it.line)));
    if lines.is_empty() {
        lines.push("no rules: pixir permissions add 'bash(cargo test *)' makes one".into());
    }
    let unreadable: Vec<_> =
        unreadable.map(|it| json!({ "id": format!("line-{}", it.line), "may_deny": !it.is_allow })).collect();
    let documents: Vec<_> = listed.iter().map(|it| document(it)).collect();
    cli.output.either(json!({ "ok": true, "rules": documents, "unreadable": unreadable }), &lines.join("\n"));
    Ok(0)
}

pub(super) fn add(cli: &Cli, args: &AddArgs) -> Result<u8> {
    let scope = rules::parse(&args.rule)?;
    let holds = if args.user { Reach::User } else { Reach::Project { workspace: here(cli)?.display().to_string() } };
    let rule = if args.deny { Rule::Deny(scope) } else { Rule::Allow(scope) };
    let expires = match args.expires.map(|time| Timestamp::now().checked_add(time)) {
        Some(Err(_)) => {
            return Err(Error::new(Code::InvalidArgs, "the rule would end too late", "use a shorter time, such as 7d"));
        }
        Some(Ok(end)) => Some(end),
        None => None,
    };
    if cli.options.dry_run {
        let id = String::from("(new)");
        let it = SavedRule { id, rule, holds, made: Timestamp::now(), expires };
        cli.output.either(json!({ "ok": true, "dry_run": true, "rule": document(&it) }), &line(&it, Timestamp::now()));
        return Ok(0);
    }
    let saved = cli.store().rules().add(rule, holds, expires)?;
    cli.output.either(json!({ "ok": true, "rule": document(&saved) }), &line(&saved, Timestamp::now()));
    Ok(0)
}

pub(super) fn revoke(cli: &Cli, args: &RevokeArgs) -> Result<u8> {
    if cli.options.dry_run {
        let plan = json!({ "ok": true, "dry_run": true, "revoke": args.id });
        cli.output.either(plan, &format!("would revoke {}", args.id));
        return Ok(0);
    }
    cli.store().rules().revoke(&args.id)?;
    cli.output.either(json!({ "ok": true, "revoked": args.id }), &format!("revoked {}", args.id));
    Ok(0)
}

/// The root of the workspace as rules name it.
fn here(cli: &Cli) -> Result<PathBuf> {
    let folder = cli.workspace()?;
    folder.canonicalize().map_err(|e| {
        Error::new(Code::NotFound, format!("open the workspace {}: {e}", folder.display()), "name an existing folder")
    })
}

fn words(rule: &Rule) -> (&'static str, String) {
    match rule {
        Rule::Allow(scope) => ("allow", rules::shown(scope)),
        Rule::Deny(scope) => ("deny", rules::shown(scope)),
    }
}

fn line(it: &SavedRule, now: Timestamp) -> String {
    let (effect, what) = words(&it.rule);
    let holds = match &it.holds {
        Reach::Session { session, .. } => format!("session {session}"),
        Reach::Project { workspace } => format!("project {workspace}"),
        Reach::User => "user".into(),
    };
    let ends = match it.expires {
        Some(end) if end <= now => "  (has ended)".to_owned(),
        Some(end) => format!("  (ends {})", end.strftime("%Y-%m-%d %H:%M UTC")),
        None => String::new(),
    };
    format!("{}  {effect:<5}  {what}  {holds}{ends}", it.id)
}

fn document(it: &SavedRule) -> serde_json::Value {
    let (effect, what) = words(&it.rule);
    json!({ "id": it.id, "effect": effect, "rule": what, "holds": it.holds, "made": it.made, "expires": it.expires })
}

fn duration(text: &str) -> std::result::Result<SignedDuration, String> {
    let wrong = || "use a number with m, h or d, such as 7d".to_owned();
    let unit = text.chars().next_back().ok_or_else(wrong)?;
    let number: i64 = text.strip_suffix(unit).and_then(|it| it.parse().ok()).filter(|it| *it > 0).ok_or_else(wrong)?;
    let minutes = match unit {
        'm' => 1,
        'h' => 60,
        'd' => 24 * 60,
        _ => return Err(wrong()),
    };
    number.checked_mul(minutes * 60).map(SignedDuration::from_secs).ok_or_else(wrong)
}
