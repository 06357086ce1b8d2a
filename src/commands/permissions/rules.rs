//! The rules that the user made: list, add, revoke.

use std::path::PathBuf;

use clap::Args;
use jiff::civil::{Date, DateTime, Time};
use jiff::{SignedDuration, Timestamp, Zoned};
use pixir_core::event::Rule;
use pixir_core::rule::{Reach, SavedRule};
use pixir_core::{Code, Error, Remedy, Result, rules};
use serde_json::json;

use crate::cli::Cli;
use crate::output::{List, ListOptions};

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Rules of all workspaces, and those that have expired
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    options: ListOptions,
}

#[derive(Debug, Args)]
pub(crate) struct AddArgs {
    /// What the rule covers: bash(PROGRAM ARGUMENTS) with * for any text, files(GLOB), read(FOLDER), or network
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
    /// When the rule ends: after 30m, 12h or 7d, or at 18:00, 2027-01-31 or 2027-01-31T18:00
    #[arg(long, value_name = "TIME", value_parser = ends)]
    expires: Option<Ends>,
    /// Allow it although its commands could destroy something
    #[arg(long, conflicts_with = "deny")]
    yes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RevokeArgs {
    /// The rule's id, as `pixir permissions list` shows it
    #[arg(value_name = "ID")]
    id: String,
}

pub(super) fn list(cli: &Cli, args: &ListArgs) -> Result<u8> {
    let loaded = cli.store()?.rules().load();
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
    let lost = |line: usize| format!("line-{line}  cannot be read by this pixir");
    loaded.unreadable.iter().for_each(|it| cli.output.aside(&lost(it.line)));
    let unreadable: Vec<_> = loaded
        .unreadable
        .iter()
        .map(|it| json!({ "id": format!("line-{}", it.line), "may_deny": !it.is_allow }))
        .collect();
    if listed.is_empty() && unreadable.is_empty() {
        cli.output.aside("no rules: pixir permissions add 'bash(cargo test *)' makes one");
    }
    let rows = listed.iter().map(|it| document(it)).collect();
    let columns = &["id", "effect", "rule", "expires"];
    let list = List { name: "rules", key: "id", columns, rows, beside: json!({ "unreadable": unreadable }) };
    list.print(&cli.output, &args.options, |at| line(listed[at], now))?;
    Ok(0)
}

pub(super) fn add(cli: &Cli, args: &AddArgs) -> Result<u8> {
    let scope = rules::parse(&args.rule)?;
    let holds = if args.user { Reach::User } else { Reach::Project { workspace: here(cli)?.display().to_string() } };
    let danger = rules::danger_of(&scope).filter(|_| !args.deny);
    let rule = if args.deny { Rule::Deny(scope) } else { Rule::Allow(scope) };
    let expires = args.expires.map(|ends| ends.after(&Zoned::now())).transpose()?;
    if cli.options.dry_run {
        let id = String::from("(new)");
        let it = SavedRule { id, rule, holds, made: Timestamp::now(), expires };
        cli.output.either(json!({ "ok": true, "dry_run": true, "rule": document(&it) }), &line(&it, Timestamp::now()));
        return Ok(0);
    }
    if let Some(danger) = danger.filter(|_| !args.yes) {
        let message = format!("{} would run without asking, and {danger}", args.rule);
        let again = Remedy::command(format!("pixir permissions add '{}' --yes", args.rule.replace('\'', "'\\''")));
        return Err(Error::new(Code::ConfirmationNeeded, message, again).with("input", args.rule.as_str()));
    }
    let saved = cli.store()?.rules().add(rule, holds, expires)?;
    cli.output.either(json!({ "ok": true, "rule": document(&saved) }), &line(&saved, Timestamp::now()));
    Ok(0)
}

/// When a rule ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ends {
    After(SignedDuration),
    /// At this time of day, in the user's time zone, the next time.
    Daily(Time),
    /// At this date and time, in the user's time zone.
    Once(DateTime),
    At(Timestamp),
}

impl Ends {
    fn after(self, now: &Zoned) -> Result<Timestamp> {
        let too_late =
            || Error::new(Code::InvalidArgs, "the rule would end too late", "use a shorter time, such as 7d");
        let local = |at: DateTime| at.to_zoned(now.time_zone().clone()).map(|it| it.timestamp());
        let end = match self {
            Ends::After(time) => now.timestamp().checked_add(time),
            Ends::Daily(time) => {
                let today = local(now.date().to_datetime(time));
                if today.as_ref().is_ok_and(|end| *end > now.timestamp()) {
                    today
                } else {
                    now.date().tomorrow().and_then(|day| local(day.to_datetime(time)))
                }
            }
            Ends::Once(at) => local(at),
            Ends::At(end) => Ok(end),
        };
        let end = end.map_err(|_| too_late())?;
        if end <= now.timestamp() {
            let message = format!("the rule would have ended at {}", end.strftime("%Y-%m-%d %H:%M UTC"));
            return Err(Error::new(Code::InvalidArgs, message, "use a time that is still to come"));
        }
        Ok(end)
    }
}

pub(super) fn revoke(cli: &Cli, args: &RevokeArgs) -> Result<u8> {
    if cli.options.dry_run {
        let plan = json!({ "ok": true, "dry_run": true, "revoke": args.id });
        cli.output.either(plan, &format!("would revoke {}", args.id));
        return Ok(0);
    }
    cli.store()?.rules().revoke(&args.id)?;
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

pub(crate) fn line(it: &SavedRule, now: Timestamp) -> String {
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
    json!({ "id": it.id, "effect": effect, "rule": what, "holds": it.holds, "made": format!("{:.3}", it.made), "expires": it.expires.map(|at| format!("{at:.3}")) })
}

fn ends(text: &str) -> std::result::Result<Ends, String> {
    // A time of day and a date have punctuation, a span has none.
    let end = if !text.contains([':', '-']) {
        span(text).map(Ends::After)
    } else if let Ok(end) = text.parse() {
        // It names its own zone: 2027-01-31T18:00Z.
        Some(Ends::At(end))
    } else if !text.contains('-') {
        text.parse().ok().map(Ends::Daily)
    } else if let Ok(day) = text.parse::<Date>()
        && !text.contains(':')
    {
        // A rule until a day holds on that day.
        day.tomorrow().ok().map(|next| Ends::Once(next.to_datetime(Time::midnight())))
    } else {
        text.parse().ok().map(Ends::Once)
    };
    end.ok_or_else(|| {
        "use a number with m, h or d, such as 7d, or a time, such as 18:00 or 2027-01-31T18:00".to_owned()
    })
}

fn span(text: &str) -> Option<SignedDuration> {
    let unit = text.chars().next_back()?;
    let number: i64 = text.strip_suffix(unit).and_then(|it| it.parse().ok()).filter(|it| *it > 0)?;
    let minutes = match unit {
        'm' => number,
        'h' => number.checked_mul(60)?,
        'd' => number.checked_mul(24 * 60)?,
        _ => return None,
    };
    minutes.checked_mul(60).map(SignedDuration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_ends_after_a_span_or_at_a_time() {
        let now: Zoned = "2027-01-31T17:30[Europe/Berlin]".parse().expect("a time");
        let end = |text: &str| ends(text).ok().and_then(|it| it.after(&now).ok()).map(|it| it.to_string());
        for (text, wanted) in [
            ("30m", "2027-01-31T17:00:00Z"),
            ("12h", "2027-02-01T04:30:00Z"),
            ("7d", "2027-02-07T16:30:00Z"),
            ("18:00", "2027-01-31T17:00:00Z"),
            ("09:15", "2027-02-01T08:15:00Z"),
            ("2027-01-31", "2027-01-31T23:00:00Z"),
            ("2027-02-01T18:00", "2027-02-01T17:00:00Z"),
            ("2027-02-01 18:00", "2027-02-01T17:00:00Z"),
            ("2027-02-01T18:00Z", "2027-02-01T18:00:00Z"),
        ] {
            assert_eq!(end(text).as_deref(), Some(wanted), "{text}");
        }
        for text in ["", "d", "0d", "-1d", "7w", "soon", "25:00", "2027-01-30", "2020-01-01T00:00Z", "99999999999d"] {
            assert_eq!(end(text), None, "{text}");
        }
    }
}
