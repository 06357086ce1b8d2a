//! `pixir auth`: store, show and remove provider keys.

use std::io::{IsTerminal as _, Read as _};

use clap::{Args, Subcommand};
use jiff::Timestamp;
use pixir_core::credentials::{Credential, Secret, Source, Vault};
use pixir_core::error::nearest;
use pixir_core::provider::{Connector, MAX_KEY, is_refused, key};
use pixir_core::{Code, Error, Remedy, Result};
use serde_json::json;

use super::mcp::show_page;
use crate::cli::{Cli, block_on};
use crate::next_actions;
use crate::output::{List, ListOptions, chatter, exit_code};

#[derive(Debug, Subcommand)]
pub(crate) enum AuthCommand {
    /// Store a key: typed without echo, read from stdin, or obtained by signing in
    #[command(
        after_help = "Examples:\n  pixir auth login anthropic\n  pass show openai | pixir auth login openai\n  pixir auth login openrouter --browser\n  pixir auth login chatgpt\n  pixir auth login work --device --issuer https://login.example.com --client-id pixir"
    )]
    Login(LoginArgs),
    /// Show where the key of each provider comes from, without the keys; exits with 4 if none is usable
    #[command(after_help = "Examples:\n  pixir auth status\n  pixir auth status anthropic --json")]
    Status {
        /// Provider to show. Default: every provider
        provider: Option<String>,
        #[command(flatten)]
        options: ListOptions,
    },
    /// Remove a stored key
    #[command(after_help = "Examples:\n  pixir auth logout openai\n  pixir auth logout openai --dry-run")]
    Logout {
        /// Provider to remove the key of
        provider: Option<String>,
    },
}

#[derive(Debug, Default, Args)]
pub(crate) struct LoginArgs {
    /// Provider to store a key for
    provider: Option<String>,
    /// Store the key without testing it
    #[arg(long)]
    offline: bool,
    /// Sign in on another device with a code
    #[arg(long)]
    device: bool,
    /// Sign in with a browser
    #[arg(long, conflicts_with = "device")]
    browser: bool,
    /// Show the page to sign in at without opening it in a browser
    #[arg(long)]
    no_browser: bool,
    /// Server to sign in at
    #[arg(long, value_name = "URL", requires = "device")]
    issuer: Option<String>,
    /// Client id to sign in with
    #[arg(long, value_name = "ID", requires = "device")]
    client_id: Option<String>,
}

pub(super) fn run(cli: &Cli, command: AuthCommand) -> Result<u8> {
    cli.check_home()?;
    let config = cli.own_config()?;
    let connector = Connector::new(config, cli.environment.clone());
    match command {
        AuthCommand::Login(args) => block_on(login(cli, &connector, args)),
        AuthCommand::Status { provider, options } => status(cli, &connector, provider, &options),
        AuthCommand::Logout { provider } => block_on(logout(cli, &connector, provider)),
    }
}

/// Asks for the Provider, and stores its key as `auth login` does.
pub(super) fn ask_and_login(cli: &Cli) -> Result<u8> {
    let config = cli.own_config()?;
    let connector = Connector::new(config, cli.environment.clone());
    chatter(&format!("pixir needs the key of a provider, one of: {}", names(&connector).join(", ")));
    chatter("provider:");
    let mut provider = String::new();
    std::io::stdin().read_line(&mut provider).map_err(|e| {
        Error::new(Code::StdinError, format!("read the name of the provider: {e}"), Remedy::Login { provider: None })
    })?;
    let provider = Some(provider.trim().to_owned()).filter(|it| !it.is_empty());
    let args = LoginArgs { provider, ..LoginArgs::default() };
    block_on(login(cli, &connector, args))
}

/// Removes the stored key of a Provider. The caller holds the lock of renewals.
///
/// # Errors
/// Those of the store of keys; `INVALID_ARGS` where a key of the environment or of a command is still used.
pub(crate) fn forget(cli: &Cli, provider: &str) -> Result<()> {
    let connector = Connector::new(cli.own_config()?, cli.environment.clone());
    Vault::new(&cli.environment).remove(provider)?;
    match connector.before_stored(provider) {
        Some(stronger) => {
            let message = format!("{stronger} is set, and pixir still uses its key for {provider}");
            Err(Error::new(Code::InvalidArgs, message, "unset it where the editor is started, or in config.toml"))
        }
        None => Ok(()),
    }
}

/// Providers that take a key, by name.
fn names(connector: &Connector) -> Vec<String> {
    let mut names = connector.names();
    names.sort();
    names
}

/// Checks the name of a Provider; `subcommand` is the one that the error suggests again.
fn check_name(provider: Option<String>, connector: &Connector, subcommand: &str) -> Result<String> {
    let names = names(connector);
    let Some(provider) = provider else {
        let message = format!("name a provider, one of: {}", names.join(", "));
        return Err(Error::new(Code::Usage, message, Remedy::command(format!("pixir auth {subcommand} {}", names[0]))));
    };
    if names.contains(&provider) {
        return Ok(provider);
    }
    let fix = match nearest(&provider, names.iter().map(String::as_str)) {
        Some(near) => Remedy::command(format!("pixir auth {subcommand} {near}")),
        None => format!("use one of: {}; any other needs a [providers.NAME] section in config.toml", names.join(", "))
            .into(),
    };
    let message = format!("there is no provider `{}`", provider.escape_debug());
    Err(Error::new(Code::ConfigInvalid, message, fix).with("input", provider))
}

async fn login(cli: &Cli, connector: &Connector, args: LoginArgs) -> Result<u8> {
    let dry_run = cli.options.dry_run;
    let provider = check_name(args.provider.clone(), connector, "login")?;
    let signs_in = args.device || args.browser || connector.only_signs_in(&provider);
    if dry_run && signs_in {
        // A sign-in leaves something at its issuer, if only a key that nothing uses.
        let document = json!({ "ok": true, "dry_run": true, "provider": provider, "kept_in": null, "tested": false });
        cli.output.either(document, &format!("would sign in to {provider}, and store what it gets"));
        return Ok(0);
    }
    let secret = if signs_in { sign_in(&provider, &args, connector, cli).await? } else { read_key(&provider)? };
    let vault = Vault::new(&cli.environment);
    let credential = vault.hold(&provider, secret);
    let (models, untested) = match count_models(connector, &provider, &credential, args.offline).await {
        Ok(models) => (models, "it was not tested".to_owned()),
        // The user has just signed in, and need not do so again because a list of models cannot be had.
        Err(e) if signs_in && !is_refused(&e) => (None, format!("it was not tested: {}", e.message)),
        Err(e) => return Err(not_stored(e)),
    };
    let _alone = vault.lock_renewal().await?;
    // The test may have renewed a token, so the credential is stored, not the secret from above.
    let source = if dry_run { None } else { Some(vault.save(&provider, &credential.secret())?) };
    let place =
        source.as_ref().map(|it| if *it == Source::File { vault.path().display().to_string() } else { it.to_string() });
    let stored = match &place {
        Some(place) => format!("stored the key for {provider} in {place}"),
        None => format!("would store the key for {provider}"),
    };
    let tested = match models {
        Some(models) => format!("; {provider} accepts it and lists {models} models"),
        None => format!("; {untested}"),
    };
    cli.output.either(
        json!({ "ok": true, "dry_run": dry_run, "provider": provider, "kept_in": place, "tested": models.is_some() }),
        &format!("{stored}{tested}"),
    );
    if let Some(stronger) = connector.before_stored(&provider) {
        cli.output.aside(&format!("{stronger} is set too, and takes precedence over the stored key"));
    }
    Ok(0)
}

/// What a credential is, in a word.
fn kind(it: &Credential) -> &'static str {
    match it.secret() {
        Secret::Key(_) => "key",
        Secret::Token(_) => "token",
        Secret::Printed(_) => "command",
    }
}

/// Tests the key, unless that is not wanted: asks the server for its models, with this key only.
async fn count_models(
    connector: &Connector,
    provider: &str,
    credential: &Credential,
    offline: bool,
) -> Result<Option<usize>> {
    if offline { Ok(None) } else { connector.check(provider, credential).await.map(Some) }
}

fn not_stored(e: Error) -> Error {
    let fix = match e.code {
        Code::AuthRequired => "use another key".into(),
        _ => Remedy::flag("--offline").and_text(" stores the key without testing it"),
    };
    Error { message: format!("{}; the key was not stored", e.message), remedy: fix, ..e }
}

fn read_key(provider: &str) -> Result<Secret> {
    read_secret(&format!("key for {provider}"), &format!("pixir auth login {provider}"))
}

/// Asks for a secret without echo, or reads it from stdin.
pub(super) fn read_secret(what: &str, command: &str) -> Result<Secret> {
    let piped = || Remedy::command(format!("printf %s \"$KEY\" | {command}"));
    let failed = |e: std::io::Error| Error::new(Code::StdinError, format!("read the {what}: {e}"), piped());
    let text = if std::io::stdin().is_terminal() {
        rpassword::prompt_password(format!("{what} (not echoed): ")).map_err(failed)?
    } else {
        let mut text = String::new();
        std::io::stdin().lock().take(MAX_KEY as u64 + 1).read_to_string(&mut text).map_err(failed)?;
        text
    };
    key(&text).map_err(|e| Error { remedy: piped(), ..e })
}

async fn sign_in(provider: &str, args: &LoginArgs, connector: &Connector, cli: &Cli) -> Result<Secret> {
    let mut sign_in = connector.sign_in(provider);
    sign_in.issuer = args.issuer.clone().or(sign_in.issuer);
    sign_in.client_id = args.client_id.clone().or(sign_in.client_id);
    let flag = if sign_in.flow.is_in_browser() { "--browser" } else { "--device" };
    if sign_in.issuer.is_some() && (args.device && flag != "--device" || args.browser && flag != "--browser") {
        let message = format!("{provider} offers another way to sign in");
        let fix = Remedy::command(format!("pixir auth login {provider} {flag}"));
        return Err(Error::new(Code::DeviceCodeUnsupported, message, fix));
    }
    let asked = connector.invite(provider, &sign_in).await;
    let invitation = asked.map_err(|e| match (e.code, &sign_in.issuer) {
        (Code::DeviceCodeUnsupported, None) => {
            let fix = Remedy::text("pass ")
                .and_flag("--issuer URL")
                .and_text(" and ")
                .and_flag("--client-id ID")
                .and_text(format!(", set `issuer` and `client_id` in [providers.{provider}], or use a key"));
            Error { remedy: fix, ..e }
        }
        (_, _) => e,
    })?;
    let Some(code) = invitation.code.clone() else {
        let given = show_page(cli, &invitation.url, args.no_browser);
        return invitation.wait(given).await;
    };
    if cli.output.is_json() {
        // The calling program has to show these to its user.
        chatter(&json!({ "open": invitation.url, "complete": invitation.complete_url, "code": code }).to_string());
    } else {
        let complete = invitation.complete_url.as_ref().map_or(String::new(), |url| format!("\n  or open {url}"));
        chatter(&format!("open {} and enter the code {code}{complete}\nwaiting… (Ctrl+C cancels)", invitation.url));
    }
    invitation.wait(std::future::pending()).await
}

fn status(cli: &Cli, connector: &Connector, provider: Option<String>, options: &ListOptions) -> Result<u8> {
    let output = &cli.output;
    let vault = Vault::new(&cli.environment);
    let only = match provider {
        Some(name) if vault.names()?.contains(&name) => Some(name),
        other => other.map(|name| check_name(Some(name), connector, "status")).transpose()?,
    };
    let now = Timestamp::now();
    let (mut rows, mut lines) = (Vec::new(), Vec::new());
    let mut all = names(connector);
    // A key stays stored when its provider leaves the configuration.
    all.extend(vault.names()?.into_iter().filter(|name| !connector.names().contains(name)));
    for name in all.into_iter().filter(|name| only.as_ref().is_none_or(|only| only == name)) {
        let variable = connector.variable(&name);
        let credential = connector.credential(&name)?;
        let expired =
            credential.as_ref().is_some_and(|it| it.expires().is_some_and(|end| end <= now) && !it.can_renew());
        rows.push(json!({
            "provider": name,
            "usable": credential.is_some() && !expired,
            "source": credential.as_ref().map(|it| it.source().to_string()),
            "hint": credential.as_ref().map(|it| it.hint()),
            "kind": credential.as_ref().map(kind),
            "expires": credential.as_ref().and_then(|it| it.expires()).map(|at| format!("{at:.3}")),
            "variable": variable,
        }));
        lines.push(match credential {
            None => format!(
                "{name:<14} –       {}",
                variable.map_or("no key".to_owned(), |it| format!("no key; {it} is not set"))
            ),
            Some(it) if expired => format!("{name:<14} expired {} from {}", it.hint(), it.source()),
            Some(it) => {
                let until = it.expires().map_or(String::new(), |end| format!(", until {end}"));
                format!("{name:<14} ready   {} from {}{until}", it.hint(), it.source())
            }
        });
    }
    let usable = rows.iter().any(|it| it["usable"] == true);
    let open = vault.is_open_to_others();
    let code = if usable { 0 } else { exit_code(Code::AuthRequired) };
    let error = (!usable).then(|| {
        let message = match &only {
            Some(provider) => format!("{provider} has no key that can be used"),
            None => "no provider has a key that can be used".to_owned(),
        };
        Error::new(Code::AuthRequired, message, Remedy::Login { provider: only })
    });
    let next_actions = error.as_ref().map(next_actions::after).unwrap_or_default();
    let beside = json!({
        "ok": usable, "exit_code": code, "file": vault.path(), "file_is_open_to_others": open,
        "next_actions": next_actions,
    });
    let columns = &["provider", "usable", "kind", "source"];
    let list = List { name: "credentials", key: "provider", columns, rows, beside };
    list.print(output, options, |at| lines[at].clone())?;
    if open {
        let path = vault.path().display();
        output.aside(&format!("warning: other users can read {path}; chmod 600 {path}"));
    }
    if let Some(error) = error {
        output.error(&error);
    }
    Ok(code)
}

async fn logout(cli: &Cli, connector: &Connector, provider: Option<String>) -> Result<u8> {
    let dry_run = cli.options.dry_run;
    let vault = Vault::new(&cli.environment);
    // A stored key can be removed after its provider left the configuration.
    let provider = match provider {
        Some(name) if vault.names()?.contains(&name) => name,
        other => check_name(other, connector, "logout")?,
    };
    let removed = if dry_run {
        vault.holds(&provider)?
    } else {
        let _alone = vault.lock_renewal().await?;
        vault.remove(&provider)?
    };
    let text = match (removed, dry_run) {
        (true, false) => format!("removed the key for {provider}"),
        (true, true) => format!("would remove the key for {provider}"),
        (false, _) => format!("no key for {provider} is stored"),
    };
    cli.output.either(json!({ "ok": true, "dry_run": dry_run, "provider": provider, "forgotten": removed }), &text);
    if let Some(stronger) = connector.before_stored(&provider) {
        cli.output.aside(&format!("{stronger} is still set, and pixir still uses it"));
    }
    Ok(0)
}
