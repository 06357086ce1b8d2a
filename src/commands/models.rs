//! `pixir models list`: the available models, what is known about them, and which servers answer.

use std::time::Duration;

use clap::Subcommand;
use pixir_core::provider::{Listed, ModelInfo, Providers, known_at};
use pixir_core::{Effort, Result};
use serde_json::{Value, json};

use crate::args::Format;
use crate::cli::{Cli, block_on};
use crate::output::{List, ListOptions};
use crate::remedies;

/// How long a server may take to list its models.
const LIST_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug, Subcommand)]
pub(crate) enum ModelsCommand {
    /// List the models of every configured provider: windows, prices, efforts
    #[command(after_help = "Examples:\n  pixir models list\n  pixir models list --online --json")]
    List {
        /// Ask the servers for their models
        #[arg(long)]
        online: bool,
        #[command(flatten)]
        options: ListOptions,
    },
}

/// Whether the servers are asked, or only the local tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lookup {
    Online,
    Offline,
}

/// One available model.
struct Row {
    name: String,
    facts: ModelInfo,
}

pub(super) fn run(cli: &Cli, command: ModelsCommand) -> Result<u8> {
    let ModelsCommand::List { online, options } = command;
    block_on(list(cli, if online { Lookup::Online } else { Lookup::Offline }, &options)).map(|()| 0)
}

async fn list(cli: &Cli, lookup: Lookup, options: &ListOptions) -> Result<()> {
    let providers = cli.providers().await?;
    let only = cli.options.provider.as_deref();
    let (mut rows, mut servers) = (Vec::new(), Vec::new());
    for name in providers.names().filter(|name| only.is_none_or(|only| only == *name)) {
        let Some(endpoint) = providers.endpoint(name) else { continue };
        let answer = match lookup {
            Lookup::Online => Some(endpoint.models(LIST_TIMEOUT).await),
            Lookup::Offline => None,
        };
        let listed = match &answer {
            Some(Ok(listed)) => listed.clone(),
            Some(Err(_)) => Vec::new(),
            None => offline(&providers, name, endpoint.host()),
        };
        rows.extend(listed.into_iter().map(|it| {
            let facts = providers.facts(name, &it.name);
            // A server knows its own window better than the table of models does.
            let facts = ModelInfo { window: it.window.or(facts.window), ..facts };
            Row { name: format!("{name}/{}", it.name), facts }
        }));
        servers.push(json!({
            "name": name,
            "dialect": endpoint.dialect().name(),
            "base_url": endpoint.base_url(),
            "credential": endpoint.credential().map(|it| it.source().to_string()),
            "reachable": answer.as_ref().map(|it| it.is_ok()),
            "why_not": answer.as_ref().and_then(|it| it.as_ref().err()).map(|e| format!("{}; {}", e.message, remedies::word(&e.remedy))),
        }));
    }
    report(cli, &rows, &servers, lookup, &providers, options)
}

/// The models that are known without asking the server: the vendor's own at its own address, and the configured ones.
fn offline(providers: &Providers, provider: &str, host: &str) -> Vec<Listed> {
    let vendor = known_at(host).map(str::to_owned);
    let chosen = (providers.provider == provider).then(|| providers.model.clone());
    let mut names: Vec<String> =
        providers.configured_models(provider).map(str::to_owned).chain(vendor).chain(chosen).collect();
    names.sort();
    names.dedup();
    names.into_iter().map(|name| Listed { name, window: None }).collect()
}

fn report(
    cli: &Cli,
    rows: &[Row],
    servers: &[Value],
    lookup: Lookup,
    providers: &Providers,
    options: &ListOptions,
) -> Result<()> {
    let output = &cli.output;
    let width = rows.iter().map(|row| row.name.chars().count()).max().unwrap_or(0).clamp(5, 60);
    if output.format == Format::Plain && !rows.is_empty() && options.select.is_empty() {
        output.line(&format!(
            "{:<width$}  {:>7}  {:>6}  {:<6}  {:>14}  efforts",
            "model", "window", "answer", "images", "$/M in · out"
        ));
    }
    let beside = json!({
        "chosen": format!("{}/{}", providers.provider, providers.model),
        "online": lookup == Lookup::Online,
        "providers": servers,
    });
    let columns = &["model", "window", "max_output", "price.input", "price.output"];
    let list = List { name: "models", key: "model", columns, rows: rows.iter().map(row_json).collect(), beside };
    list.print(output, options, |at| line(&rows[at], width))?;
    if output.format == Format::Plain {
        note(cli, servers, lookup, providers);
    }
    Ok(())
}

fn line(Row { name, facts }: &Row, width: usize) -> String {
    let tokens = |n: Option<u64>| n.map_or("?".to_owned(), short);
    let price = facts.price.map_or("?".to_owned(), |p| format!("{} · {}", p.input, p.output));
    let efforts = match &facts.efforts {
        None => "?".to_owned(),
        Some(all) if all.is_empty() => "–".to_owned(),
        Some(all) => all.iter().map(|it| it.name()).collect::<Vec<_>>().join(" "),
    };
    let images = match (facts.sees_images, *facts == ModelInfo { window: facts.window, ..ModelInfo::default() }) {
        (true, true) => "?",
        (true, false) => "yes",
        (false, _) => "no",
    };
    let (window, answer) = (tokens(facts.window), tokens(facts.max_output));
    format!("{name:<width$}  {window:>7}  {answer:>6}  {images:<6}  {price:>14}  {efforts}")
}

/// Which servers did not answer, and what is selected.
fn note(cli: &Cli, servers: &[Value], lookup: Lookup, providers: &Providers) {
    let output = &cli.output;
    for server in servers.iter().filter(|it| it["reachable"] == false) {
        let text = |key: &str| server[key].as_str().unwrap_or_default().to_owned();
        output.line(&format!("{}  did not answer: {}", text("name"), text("why_not")));
    }
    let note = match (servers.is_empty(), lookup) {
        (true, _) => "no provider is configured: export a key, run pixir auth login, or add [providers] to config.toml"
            .to_owned(),
        (false, Lookup::Offline) => {
            format!("selected: {}/{}; --online asks the servers", providers.provider, providers.model)
        }
        (false, Lookup::Online) => format!("selected: {}/{}", providers.provider, providers.model),
    };
    output.aside(&note);
}

fn row_json(row: &Row) -> Value {
    let ModelInfo { window, max_output, sees_images, efforts, price, .. } = &row.facts;
    json!({
        "model": row.name,
        "window": window,
        "max_output": max_output,
        "images": sees_images,
        "efforts": efforts.as_ref().map(|all| all.iter().map(|it| Effort::name(*it)).collect::<Vec<_>>()),
        "price": price.map(|p| json!({ "input": p.input, "cached": p.cached, "cache_written": p.cache_written, "output": p.output })),
    })
}

/// `1.05M`, `200k`.
fn short(tokens: u64) -> String {
    match tokens {
        0..1_000 => tokens.to_string(),
        1_000..1_000_000 => format!("{}k", tokens / 1_000),
        _ => format!("{:.2}M", tokens as f64 / 1e6).replace(".00M", "M"),
    }
}
