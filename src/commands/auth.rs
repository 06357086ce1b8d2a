//! `pixir auth`: keep a key, say what is kept without showing it, forget it.

use std::io::{IsTerminal as _, Read as _};
use std::time::Duration;

use jiff::Timestamp;
use pixir_core::config::{Config, Surroundings};
use pixir_core::credentials::{Credential, Secret, Source, Vault};
use pixir_core::error::nearest;
use pixir_core::provider::choose::Providers;
use pixir_core::provider::device_login::Issuer;
use pixir_core::provider::preset::PRESETS;
use pixir_core::{Code, Error, Result};
use serde_json::json;

use crate::args::LoginOptions;
use crate::output::{Output, chatter, exit_code, safe};

/// The longest key that is taken, bytes.
const MAX_KEY: u64 = 16 << 10;
/// How long a server may take to say whether a key is good.
const CHECK: Duration = Duration::from_secs(20);

/// Providers that take a key: the usual ones and the person's own.
fn names(config: &Config) -> Vec<String> {
    let usual = PRESETS.iter().filter(|it| it.key_variable.is_some()).map(|it| it.name.to_owned());
    let mut names: Vec<String> = usual.chain(config.providers.keys().cloned()).collect();
    names.sort();
    names.dedup();
    names
}

/// The variable that a Provider's key could be in.
fn variable<'a>(provider: &str, config: &'a Config) -> Option<&'a str> {
    let configured = config.providers.get(provider).and_then(|it| it.api_key_env.as_deref());
    configured.or_else(|| PRESETS.iter().find(|it| it.name == provider)?.key_variable)
}

/// The Provider that a person means.
fn named(provider: Option<String>, config: &Config, doing: &str) -> Result<String> {
    let names = names(config);
    let Some(provider) = provider else {
        let message = format!("which provider? One of: {}", names.join(", "));
        return Err(Error::new(Code::Usage, message, format!("pixir auth {doing} {}", names[0])));
    };
    if names.contains(&provider) {
        return Ok(provider);
    }
    let fix = match nearest(&provider, names.iter().map(String::as_str)) {
        Some(near) => format!("pixir auth {doing} {near}"),
        None => format!("one of: {}; others need a [providers.NAME] section in config.toml", names.join(", ")),
    };
    let message = format!("there is no provider `{}`", provider.escape_debug());
    Err(Error::new(Code::ConfigInvalid, message, fix).with("input", provider))
}

pub(crate) async fn login(
    provider: Option<String>,
    options: LoginOptions,
    config: &Config,
    around: &Surroundings,
    dry_run: bool,
    output: &Output,
) -> Result<()> {
    let provider = named(provider, config, "login")?;
    let secret = if options.device {
        Secret::Token(sign_in(&provider, &options, config, output).await?)
    } else {
        Secret::Key(read_key(&provider)?.into())
    };
    let vault = Vault::new(around);
    let credential = vault.hold(&provider, secret);
    let checked = if options.offline { None } else { Some(check(&provider, &credential, config, around).await?) };
    // A token may have been renewed while it was tested.
    let source = if dry_run { None } else { Some(vault.save(&provider, &credential.secret())?) };
    let place =
        source.as_ref().map(|it| if *it == Source::File { vault.path().display().to_string() } else { it.to_string() });
    let kept = match &place {
        Some(place) => format!("the key for {provider} is kept in {place}"),
        None => format!("the key for {provider} would be kept"),
    };
    let tested = match checked {
        Some(models) => format!("; {provider} took it and lists {models} models"),
        None => "; it was not tested".to_owned(),
    };
    output.either(
        &json!({ "schemaVersion": 1, "ok": true, "dry_run": dry_run, "provider": provider, "kept_in": place, "tested": checked.is_some() }),
        &format!("{kept}{tested}"),
    );
    if let Some(variable) = variable(&provider, config).filter(|name| around.variable(name).is_some()) {
        output.aside(&format!("{variable} is set as well, and counts for more"));
    }
    Ok(())
}

/// Asks the server for its models, with this key and no other.
async fn check(provider: &str, credential: &Credential, config: &Config, around: &Surroundings) -> Result<usize> {
    let providers = Providers::with_secret(provider, credential.clone(), config, around)?;
    let endpoint = providers.endpoint(provider).expect("it was just set up");
    match endpoint.check(CHECK).await {
        Ok(models) => Ok(models),
        Err(mut e) => {
            let kept =
                if e.code == Code::AuthRequired { "another key" } else { "--offline keeps the key without testing it" };
            e.message = format!("{}; nothing was kept", e.message);
            e.remedy = kept.into();
            Err(e)
        }
    }
}

fn read_key(provider: &str) -> Result<String> {
    let failed = |e: std::io::Error| {
        Error::new(Code::StdinError, format!("read the key: {e}"), format!("pipe it: … | pixir auth login {provider}"))
    };
    let text = if std::io::stdin().is_terminal() {
        rpassword::prompt_password(format!("key for {provider} (it is not shown): ")).map_err(failed)?
    } else {
        let mut text = String::new();
        std::io::stdin().lock().take(MAX_KEY + 1).read_to_string(&mut text).map_err(failed)?;
        text
    };
    let key = text.trim();
    let wrong = match key {
        "" => Some("there is no key"),
        key if key.len() as u64 > MAX_KEY => Some("that is too long for a key"),
        key if !key.bytes().all(|b| b.is_ascii_graphic()) => {
            Some("a key is one word without spaces or control characters")
        }
        _ => None,
    };
    match wrong {
        None => Ok(key.to_owned()),
        // What was given is not repeated: it may be nearly a key.
        Some(wrong) => {
            Err(Error::new(Code::InvalidArgs, wrong, format!("printf %s \"$KEY\" | pixir auth login {provider}")))
        }
    }
}

async fn sign_in(
    provider: &str,
    options: &LoginOptions,
    config: &Config,
    output: &Output,
) -> Result<pixir_core::credentials::Token> {
    let configured = config.providers.get(provider);
    let issuer = options.issuer.clone().or_else(|| configured?.issuer.clone());
    let client_id = options.client_id.clone().or_else(|| configured?.client_id.clone());
    let (Some(url), Some(client_id)) = (issuer, client_id) else {
        let message = format!("it is not known where to sign in to {provider}");
        let fix =
            format!("--issuer URL --client-id ID, or `issuer` and `client_id` in [providers.{provider}], or a key");
        return Err(Error::new(Code::DeviceCodeUnsupported, message, fix));
    };
    let scope = configured.and_then(|it| it.scope.clone());
    let invitation = Issuer { url, client_id, scope }.invite().await?;
    if output.is_json() {
        // Whoever drives this has to show it to somebody.
        chatter(
            &json!({ "open": invitation.url, "complete": invitation.complete_url, "code": invitation.code })
                .to_string(),
        );
    } else {
        let complete = invitation.complete_url.as_ref().map_or(String::new(), |url| format!("\n  or open {url}"));
        chatter(&format!("open {} and type {}{complete}\nwaiting… (Ctrl+C gives up)", invitation.url, invitation.code));
    }
    invitation.wait().await
}

pub(crate) fn status(provider: Option<String>, config: &Config, around: &Surroundings, output: &Output) -> Result<u8> {
    let vault = Vault::new(around);
    let only = match provider {
        Some(name) if vault.names()?.contains(&name) => Some(name),
        other => other.map(|name| named(Some(name), config, "status")).transpose()?,
    };
    let now = Timestamp::now();
    let (mut rows, mut lines) = (Vec::new(), Vec::new());
    let mut all = names(config);
    // What was kept under a name that is not configured any more is still kept.
    all.extend(vault.names()?.into_iter().filter(|name| !names(config).contains(name)));
    for name in all.into_iter().filter(|name| only.as_ref().is_none_or(|only| only == name)) {
        let variable = variable(&name, config);
        let found = vault.find(&name, variable, around)?;
        let ended = found.as_ref().is_some_and(|it| it.expires().is_some_and(|end| end <= now) && !it.can_renew());
        rows.push(json!({
            "provider": name,
            "usable": found.is_some() && !ended,
            "source": found.as_ref().map(|it| it.source().to_string()),
            "hint": found.as_ref().map(|it| it.hint()),
            "kind": found.as_ref().map(|it| if it.is_token() { "token" } else { "key" }),
            "expires": found.as_ref().and_then(|it| it.expires()),
            "variable": variable,
        }));
        lines.push(match found {
            None => format!(
                "{name:<14} –       {}",
                variable.map_or("no key".to_owned(), |it| format!("no key; {it} is not set"))
            ),
            Some(it) if ended => format!("{name:<14} ended   {} from {}", it.hint(), it.source()),
            Some(it) => {
                let until = it.expires().map_or(String::new(), |end| format!(", until {end}"));
                format!("{name:<14} ready   {} from {}{until}", it.hint(), it.source())
            }
        });
    }
    let usable = rows.iter().any(|it| it["usable"] == true);
    let open = vault.is_open_to_others();
    let code = if usable { 0 } else { exit_code(Code::AuthRequired) };
    output.either(
        &json!({
            "schemaVersion": 1, "ok": usable, "exit_code": code, "credentials": rows,
            "file": vault.path(), "file_is_open_to_others": open,
        }),
        &lines.join("\n"),
    );
    if open {
        let path = vault.path().display();
        output.aside(&format!("warning: others can read {path}; chmod 600 {path}"));
    }
    if !usable {
        output.aside(&format!("fix: pixir auth login {}", only.as_deref().unwrap_or("PROVIDER")));
    }
    Ok(code)
}

pub(crate) fn logout(
    provider: Option<String>,
    config: &Config,
    around: &Surroundings,
    dry_run: bool,
    output: &Output,
) -> Result<()> {
    // What was kept under a name that is not configured any more can be forgotten too.
    let vault = Vault::new(around);
    let provider = match provider {
        Some(name) if vault.names()?.contains(&name) => name,
        other => named(other, config, "logout")?,
    };
    let forgotten = if dry_run { vault.holds(&provider)? } else { vault.remove(&provider)? };
    let text = match (forgotten, dry_run) {
        (true, false) => format!("the key for {provider} is forgotten"),
        (true, true) => format!("the key for {provider} would be forgotten"),
        (false, _) => format!("there was no key for {provider}"),
    };
    output.either(
        &json!({ "schemaVersion": 1, "ok": true, "dry_run": dry_run, "provider": provider, "forgotten": forgotten }),
        &safe(&text),
    );
    if let Some(variable) = variable(&provider, config).filter(|name| around.variable(name).is_some()) {
        output.aside(&format!("{variable} is still set, and is still used"));
    }
    Ok(())
}
