//! `pixir mcp login` and `logout`.

use std::io::IsTerminal as _;
use std::process::Stdio;

use clap::Args;
use pixir_core::{Code, Error, Result, SignedOut};
use serde_json::json;

use super::{conclude, find, harness, next_actions_of, text};
use crate::cli::{Cli, Signals, block_on};
use crate::output::chatter;

#[derive(Debug, Args)]
pub(crate) struct LoginArgs {
    /// Name of the server
    name: String,
    /// Scope to ask for. Default: the one of the configuration, else the one that the server names
    #[arg(long, value_name = "SCOPE")]
    scope: Option<String>,
    /// Show the page without opening it in a browser
    #[arg(long)]
    no_browser: bool,
}

pub(super) fn login(cli: &Cli, args: LoginArgs) -> Result<u8> {
    let harness = harness(cli)?;
    let name = args.name.as_str();
    let (issuer, scope, source, it) = block_on(async {
        let mut signals = Signals::listen()?;
        let signing_in = async {
            let offer = harness.server_login(name, args.scope.clone()).await?;
            let (issuer, scope) = (offer.issuer.clone(), offer.scope.clone());
            if cli.options.dry_run {
                return Ok((issuer, scope, None, None));
            }
            let waiting = offer.begin().await?;
            let given = show_page(cli, &waiting.page, args.no_browser);
            let source = waiting.wait(given).await?;
            // The first contact accepts its tools, as `pixir mcp add` does.
            let it = harness.look_at_server(name).await?;
            Ok((issuer, scope, Some(source), Some(it)))
        };
        let signed_in = tokio::select! {
            signed_in = signing_in => signed_in,
            _ = signals.next() => Err(Error::new(Code::CommandFailed, "interrupted", super::again())),
        };
        harness.stop_servers().await;
        signed_in
    })?;
    let with = scope.as_ref().map_or(String::new(), |scope| format!(" with the scope `{scope}`"));
    let (Some(source), Some(it)) = (source, it) else {
        let document =
            json!({ "ok": true, "dry_run": true, "server": { "name": name }, "issuer": issuer, "scope": scope });
        cli.output.either(document, &format!("would sign in to {name} at {issuer}{with}"));
        return Ok(0);
    };
    let ok = it.error.is_none();
    let document = json!({
        "ok": ok, "dry_run": false, "server": it, "issuer": issuer, "scope": scope, "kept_in": source.to_string(),
        "next_actions": next_actions_of(&it),
    });
    let text = format!("{}\n\nsigned in to {name} at {issuer}{with}; the token is in {source}", text(&it));
    cli.output.either(document, &text);
    Ok(conclude(cli, &it))
}

/// Shows the page of a sign-in. Returns the address that the user types, where their browser cannot reach this machine.
pub(in crate::commands) fn show_page(cli: &Cli, page: &str, no_browser: bool) -> impl Future<Output = String> + use<> {
    let is_terminal = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    if cli.output.is_json() {
        // The calling program has to show it to its user.
        chatter(&json!({ "open": page }).to_string());
    } else {
        chatter(&format!("open this page in a browser, and sign in there:\n{page}"));
    }
    let is_asked = is_terminal && !cli.options.no_input && !cli.output.is_json();
    if is_asked {
        if !no_browser {
            open_in_browser(cli, page);
        }
        chatter(
            "waiting… (Ctrl+C cancels). Does the browser of another machine show an error at the end? Paste its address here:",
        );
    }
    typed(is_asked)
}

/// The first line that the user types; none is awaited where no user can type one.
async fn typed(is_asked: bool) -> String {
    if !is_asked {
        return std::future::pending().await;
    }
    let (give, given) = tokio::sync::oneshot::channel();
    // A thread of its own: pixir does not wait for a line that is never typed.
    std::thread::spawn(move || {
        let typed = std::io::stdin().lines().map_while(std::io::Result::ok).find(|line| !line.trim().is_empty());
        if let Some(line) = typed {
            let _ = give.send(line);
        }
    });
    match given.await {
        Ok(line) => line,
        Err(_) => std::future::pending().await,
    }
}

/// Opens a page, where there is a screen for it. The page is on the terminal too, so it does not matter if that fails.
fn open_in_browser(cli: &Cli, page: &str) {
    let set = |name: &str| cli.environment.variable(name).filter(|it| !it.is_empty());
    let program = match (set("BROWSER"), cfg!(target_os = "macos")) {
        (Some(browser), _) => browser,
        (None, true) => "open",
        (None, false) if set("DISPLAY").or(set("WAYLAND_DISPLAY")).is_some() => "xdg-open",
        (None, false) => return,
    };
    let mut command = std::process::Command::new(program);
    let _ = command.arg(page).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
}

pub(super) fn logout(cli: &Cli, name: &str) -> Result<u8> {
    let harness = harness(cli)?;
    if cli.options.dry_run {
        find(&harness, name)?;
        cli.output.either(
            json!({ "ok": true, "dry_run": true, "server": name }),
            &format!("would forget the sign-in to {name}"),
        );
        return Ok(0);
    }
    let ended = block_on(harness.server_logout(name))?;
    let (revoked, text) = match &ended {
        SignedOut::Nothing => (None, format!("there was no sign-in to {name}")),
        SignedOut::Forgotten => (None, format!("signed out of {name}; its issuer cannot end the token, which expires")),
        SignedOut::Revoked => (Some(true), format!("signed out of {name}; its issuer has ended the token")),
        SignedOut::NotRevoked { why } => {
            (Some(false), format!("signed out of {name}; its issuer has not ended the token, which expires: {why}"))
        }
    };
    let removed = ended != SignedOut::Nothing;
    let document = json!({ "ok": true, "dry_run": false, "server": name, "removed": removed, "revoked": revoked });
    cli.output.either(document, &text);
    Ok(0)
}
