//! `pixir mcp trust` and `pixir mcp accept`: nothing is approved that the user has not seen.

use std::io::{IsTerminal as _, Write as _};

use clap::Args;
use pixir_core::servers::ServerState;
use pixir_core::trust::{ContributionKind, Standing, TrustAnswer};
use pixir_core::{Code, Error, Harness, Remedy, Result};
use serde_json::json;

use super::{again, harness, text, unknown};
use crate::cli::{Cli, Signals, block_on};
use crate::next_actions;

#[derive(Debug, Args)]
pub(crate) struct Approval {
    /// Name of the server
    name: String,
    /// Hash that --dry-run prints: approves exactly what it showed, without a question
    #[arg(long, value_name = "HASH")]
    seen: Option<String>,
}

/// How the user approves what was shown.
enum Approves {
    /// By its hash.
    Seen(String),
    /// By the answer to a question on the terminal.
    Asked,
}

/// Nothing else approves: it would be approved unseen.
fn approves(cli: &Cli, command: &str, args: &Approval, what: &str) -> Result<Approves> {
    if let Some(seen) = &args.seen {
        return Ok(Approves::Seen(seen.clone()));
    }
    let is_terminal = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    if is_terminal && !cli.options.no_input && !cli.output.is_json() {
        return Ok(Approves::Asked);
    }
    let show = format!("pixir mcp {command} {} --dry-run", next_actions::quoted(&args.name));
    let fix = Remedy::text("look at it, and at the hash for --seen: ").and_command(show);
    Err(Error::new(Code::ConfirmationNeeded, format!("this would approve {what}"), fix))
}

/// Asks on the terminal. Only `y` and `yes` agree.
fn agrees(question: &str) -> bool {
    let mut answer = String::new();
    let asked = write!(std::io::stderr(), "{question} [y/N] ").and_then(|()| std::io::stderr().flush());
    let answered = asked.and_then(|()| std::io::stdin().read_line(&mut answer));
    answered.is_ok() && matches!(answer.trim().to_lowercase().as_str(), "y" | "yes")
}

/// The end of what a dry run prints.
fn approve_so(command: &str, name: &str, seen: &str) -> String {
    format!("to approve exactly this: pixir mcp {command} {} --seen {seen}", next_actions::quoted(name))
}

pub(super) fn trust(cli: &Cli, args: &Approval) -> Result<u8> {
    let name = args.name.as_str();
    let harness = harness(cli)?;
    let seen = harness.contributions();
    let servers = || seen.all.iter().filter(|it| it.kind == ContributionKind::McpServer);
    let name_of = |path: &'_ str| path.rsplit_once(": ").map(|(_, it)| it.to_owned()).unwrap_or_default();
    let Some(it) = servers().find(|it| name_of(&it.path) == name) else {
        let message = format!("this workspace names no MCP server `{}`", name.escape_debug());
        let names: Vec<String> = servers().map(|it| name_of(&it.path)).collect();
        return Err(unknown(message, name, names.iter().map(String::as_str)));
    };
    let Some(digest) = it.digest.clone() else {
        return Err(Error::new(Code::ConfigInvalid, format!("{} cannot be used", it.path), "look at its file"));
    };
    let shown = format!("{}: {}", it.path, it.about);
    let dry_run = cli.options.dry_run;
    let document = json!({
        "ok": true, "dry_run": dry_run, "server": name, "launch": it.about, "seen": digest,
    });
    if it.standing == Standing::InForce {
        cli.output.either(document, &format!("approved already: {shown}"));
        return Ok(0);
    }
    if dry_run {
        let text = format!("would approve {shown}\n{}", approve_so("trust", name, &digest));
        cli.output.either(document, &text);
        return Ok(0);
    }
    match approves(cli, "trust", args, "a launch")? {
        Approves::Seen(seen) if seen == digest => {}
        Approves::Seen(_) => {
            let fix = Remedy::text("look at it again: ")
                .and_command(format!("pixir mcp trust {} --dry-run", next_actions::quoted(name)));
            return Err(Error::new(Code::PreviewStale, format!("the launch of {name} is not the one you saw"), fix));
        }
        Approves::Asked => {
            cli.output.aside(&shown);
            if !agrees("approve this launch?") {
                cli.output.aside("nothing was approved");
                return Ok(1);
            }
        }
    }
    let trust = cli.store()?.trust();
    let mut trusted = trust.decision(harness.workspace()).unwrap_or_default().trusted;
    trusted.insert(it.path.clone(), digest);
    trust.decide(harness.workspace(), TrustAnswer::Trust, &trusted)?;
    cli.output.either(document, &format!("approved {shown}"));
    Ok(0)
}

pub(super) fn accept(cli: &Cli, args: &Approval) -> Result<u8> {
    let harness = harness(cli)?;
    let (it, end) = block_on(async {
        let mut signals = Signals::listen()?;
        let accepted = tokio::select! {
            accepted = accept_shown(cli, &harness, args) => accepted,
            _ = signals.next() => Err(Error::new(Code::CommandFailed, "interrupted", again())),
        };
        harness.stop_servers().await;
        accepted
    })?;
    let Some(end) = end else {
        cli.output.aside("nothing was accepted");
        return Ok(1);
    };
    let document = json!({ "ok": true, "dry_run": cli.options.dry_run, "server": it });
    cli.output.either(document, &format!("{}\n\n{end}", text(&it)));
    Ok(0)
}

/// The server with what was shown, and how that ended; `None` where the user said no.
async fn accept_shown(cli: &Cli, harness: &Harness, args: &Approval) -> Result<(ServerState, Option<String>)> {
    let name = args.name.as_str();
    let shown = harness.look_at_server(name).await?;
    if let Some(error) = shown.error.clone() {
        return Err(error.into());
    }
    let Some(hash) = shown.seen.clone().filter(|_| !shown.changes.is_empty() || shown.tools.is_none()) else {
        return Ok((shown, Some("nothing has changed".to_owned())));
    };
    if cli.options.dry_run {
        let end = format!("would accept these tools\n{}", approve_so("accept", name, &hash));
        return Ok((shown, Some(end)));
    }
    let seen = match approves(cli, "accept", args, &format!("the tools of {name} as they are now"))? {
        Approves::Seen(seen) => seen,
        Approves::Asked => {
            cli.output.aside(&text(&shown));
            let asked = tokio::task::spawn_blocking(|| agrees("accept these tools?")).await;
            if !asked.unwrap_or(false) {
                return Ok((shown, None));
            }
            hash
        }
    };
    let accepted = harness.accept_server(name, Some(&seen)).await?;
    // What was accepted is what the user wants to see.
    Ok((ServerState { changes: shown.changes, ..accepted }, Some("accepted".to_owned())))
}
