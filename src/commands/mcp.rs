//! `pixir mcp`: servers of the Model Context Protocol.

use std::collections::BTreeMap;

use clap::{Args, Subcommand};
use pixir_core::call::{Call, Caller};
use pixir_core::credentials::{Vault, name_for_server};
use pixir_core::error::nearest;
use pixir_core::remedy::McpNeed;
use pixir_core::servers::{ServerPhase, ServerState};
use pixir_core::trust::Standing;
use pixir_core::{Code, Config, Error, Harness, Remedy, Result, edit};
use serde_json::{Value, json};

use crate::cli::{Cli, Signals, block_on};
use crate::commands::found::standing;
use crate::commands::tools;
use crate::output::{List, ListOptions, exit_code};
use crate::{next_actions, remedies, serve};

mod approval; // launches and definitions that the user has seen
mod login; // the sign-in to a server that runs elsewhere

pub(super) use login::show_page;

/// The width of a line about a tool, characters: that of most terminals.
const LINE: usize = 79;

#[derive(Debug, Subcommand)]
pub(crate) enum McpCommand {
    /// List the servers that your configuration and this workspace name, and how each stands; starts none
    #[command(after_help = "Examples:\n  pixir mcp list\n  pixir mcp list --json | jq '.servers[].name'")]
    List(ListOptions),
    /// Show a server: what is started, its tools, and what may run without asking; starts nothing
    #[command(after_help = "Examples:\n  pixir mcp show git\n  pixir mcp show git --json")]
    Show(Named),
    /// Add a server to your configuration, start it once and accept its tools
    #[command(
        after_help = "Examples:\n  pixir mcp add git --reads 'git_status,git_log,git_diff*' -- uvx mcp-server-git\n  pixir mcp add files -- npx -y @modelcontextprotocol/server-filesystem ~/notes\n  pixir mcp add sentry https://mcp.sentry.dev/mcp\n  pixir mcp add github --env-from GITHUB_TOKEN -- npx -y @modelcontextprotocol/server-github"
    )]
    Add(AddArgs),
    /// Remove a server from your configuration, and forget its tools
    #[command(after_help = "Examples:\n  pixir mcp remove git\n  pixir mcp remove git --dry-run")]
    Remove(Named),
    /// Start a server, list its tools and stop it; says what is wrong where it does not start; --dry-run accepts no tools
    #[command(after_help = "Examples:\n  pixir mcp test git\n  pixir mcp test git --json")]
    Test(Named),
    /// Call a tool of a server, as a user
    #[command(
        after_help = "Examples:\n  pixir mcp call git.git_status '{\"repo_path\": \"/home/me/app\"}'\n  pixir mcp call time.get_current_time '{\"timezone\": \"UTC\"}' --json"
    )]
    Call(CallArgs),
    /// Approve the launch of a server in this workspace: shows it and asks, or takes the hash of what you saw
    #[command(
        after_help = "Examples:\n  pixir mcp trust git\n  pixir mcp trust git --dry-run\n  pixir mcp trust git --seen 3b1c7dd8a0c94f6e95a1f2d3c4b5a697"
    )]
    Trust(approval::Approval),
    /// Accept the tools of a server: shows what changed and asks, or takes the hash of what you saw
    #[command(
        after_help = "Examples:\n  pixir mcp accept git\n  pixir mcp accept git --dry-run\n  pixir mcp accept git --seen 3b1c7dd8a0c94f6e95a1f2d3c4b5a697"
    )]
    Accept(approval::Approval),
    /// Store a secret for a server; it is asked for, or read from stdin
    #[command(
        after_help = "Examples:\n  pixir mcp secret github GITHUB_TOKEN\n  gh auth token | pixir mcp secret github GITHUB_TOKEN"
    )]
    Secret(SecretArgs),
    /// Sign in to a server that runs elsewhere: shows the page to open, and waits for your browser
    #[command(
        after_help = "Examples:\n  pixir mcp login sentry\n  pixir mcp login sentry --scope 'org:read event:write'\n  pixir mcp login sentry --dry-run"
    )]
    Login(login::LoginArgs),
    /// Forget the sign-in to a server
    #[command(after_help = "Examples:\n  pixir mcp logout sentry\n  pixir mcp logout sentry --dry-run")]
    Logout(Named),
    /// Be an MCP server on stdin and stdout: other agents give pixir tasks; read-only unless --mode says otherwise
    #[command(
        after_help = "Examples:\n  pixir mcp serve --workspace ~/app\n  claude mcp add pixir -- pixir mcp serve --mode ask"
    )]
    Serve,
}

#[derive(Debug, Args)]
pub(crate) struct Named {
    /// Name of the server
    name: String,
}

#[derive(Debug, Args)]
pub(crate) struct AddArgs {
    /// Name of the server: a letter, then up to 23 of a-z, 0-9 and -
    name: String,
    /// URL of a server that runs elsewhere
    #[arg(value_name = "URL", required_unless_present = "command", conflicts_with = "command")]
    url: Vec<String>,
    /// Program of a server that pixir starts, and its arguments, behind --
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
    /// Variable of its environment, as NAME=VALUE; never a secret; repeatable
    #[arg(long, value_name = "NAME=VALUE")]
    env: Vec<String>,
    /// Variable that it gets from your environment, or from `pixir mcp secret`; repeatable
    #[arg(long, value_name = "NAME")]
    env_from: Vec<String>,
    /// Tools that only read, by your word; they run without asking in every mode
    #[arg(long, value_name = "TOOLS", value_delimiter = ',')]
    reads: Vec<String>,
    /// Tools that run without asking in the modes ask and auto
    #[arg(long, value_name = "TOOLS", value_delimiter = ',')]
    allow_tools: Vec<String>,
    /// Write the configuration without starting the server
    #[arg(long)]
    no_start: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CallArgs {
    /// The tool, as SERVER.TOOL
    tool: String,
    /// Its arguments, as JSON
    #[arg(default_value = "{}")]
    args: String,
}

#[derive(Debug, Args)]
pub(crate) struct SecretArgs {
    /// Name of the server
    name: String,
    /// Name of the variable that the server gets
    variable: String,
    /// Remove the stored secret
    #[arg(long)]
    remove: bool,
}

pub(super) fn run(cli: &Cli, command: McpCommand) -> Result<u8> {
    match command {
        McpCommand::List(options) => list(cli, &options),
        McpCommand::Show(it) => show(cli, &it.name),
        McpCommand::Add(args) => add(cli, args),
        McpCommand::Remove(it) => remove(cli, &it.name),
        McpCommand::Test(it) => test(cli, &it.name),
        McpCommand::Call(args) => call(cli, &args),
        McpCommand::Trust(it) => approval::trust(cli, &it),
        McpCommand::Accept(it) => approval::accept(cli, &it),
        McpCommand::Secret(args) => secret(cli, &args),
        McpCommand::Login(args) => login::login(cli, args),
        McpCommand::Logout(it) => login::logout(cli, &it.name),
        McpCommand::Serve => serve::run(cli),
    }
}

/// A Harness that knows the user's servers. A configuration that cannot be read is an error here: this is about it.
fn harness(cli: &Cli) -> Result<Harness> {
    cli.own_config()?;
    cli.offline_harness()
}

fn list(cli: &Cli, options: &ListOptions) -> Result<u8> {
    let all = harness(cli)?.mcp_servers();
    let row = |it: &ServerState| {
        let mut row = json!(it);
        row["state"] = state(it).into();
        row
    };
    let rows = all.iter().map(row).collect();
    let columns = &["name", "source", "state", "launch"];
    let list = List { name: "servers", key: "name", columns, rows, beside: json!({}) };
    let width = all.iter().map(|it| it.name.len()).max().unwrap_or(0);
    list.print(&cli.output, options, |at| {
        let it = &all[at];
        format!("{:<width$}  {:<24}  {}", it.name, state(it), it.launch)
    })?;
    if all.is_empty() {
        cli.output.aside("no servers; pixir mcp add NAME -- COMMAND adds one");
    }
    Ok(0)
}

/// How a server is, in a few words.
fn state(it: &ServerState) -> String {
    match (&it.standing, it.shadowed, it.enabled) {
        (_, true, _) => "shadowed by yours".to_owned(),
        (_, _, false) => "switched off".to_owned(),
        (Standing::InForce, ..) => match (&it.tools, it.phase) {
            (_, ServerPhase::Failed) => "failed".to_owned(),
            (None, _) => "tools not known yet".to_owned(),
            (Some(tools), _) if tools.len() == 1 => "1 tool".to_owned(),
            (Some(tools), _) => format!("{} tools", tools.len()),
        },
        (other, ..) => format!("not approved: {}", standing(other)),
    }
}

fn find(harness: &Harness, name: &str) -> Result<ServerState> {
    let all = harness.mcp_servers();
    let found = all.iter().find(|it| it.name == name).cloned();
    let message = || format!("there is no MCP server `{}`", name.escape_debug());
    found.ok_or_else(|| unknown(message(), name, all.iter().map(|it| it.name.as_str())))
}

/// The error for a name that none of these servers has.
fn unknown<'a>(message: String, name: &str, names: impl Iterator<Item = &'a str>) -> Error {
    let meant = nearest(name, names).map_or_else(|| "".into(), |near| Remedy::nearest(near).and_text(" "));
    let fix = meant.and_text("see all servers, and who names each: ").and_command("pixir mcp list");
    Error::new(Code::NotFound, message, fix).with("input", name)
}

fn show(cli: &Cli, name: &str) -> Result<u8> {
    let it = find(&harness(cli)?, name)?;
    cli.output.either(json!({ "ok": true, "server": it }), &text(&it));
    Ok(0)
}

/// The first sentence of a text, on one line of so many characters.
fn in_short(text: &str, most: usize) -> String {
    let line = text.lines().next().unwrap_or_default();
    let sentence = line.split_once(". ").map_or(line, |(sentence, _)| sentence).trim_end_matches('.');
    if sentence.chars().count() <= most {
        return sentence.to_owned();
    }
    let cut: String = sentence.chars().take(most - 1).collect();
    format!("{}…", cut.trim_end())
}

/// A server, its tools and its problems.
fn text(it: &ServerState) -> String {
    let mut lines = vec![format!("{}  {}", it.name, state(it)), format!("  {}: {}", it.source, it.launch)];
    if !it.version.is_empty() {
        lines.push(format!("  protocol {}, {} bytes of definitions", it.version, it.bytes));
    }
    if !it.ignored.is_empty() {
        lines.push(format!("  ignored, because only your own file may say it: {}", it.ignored.join(", ")));
    }
    if let Standing::New | Standing::Changed | Standing::Inert = it.standing {
        lines.push(format!("  it does not start before you approve it: pixir mcp trust {}", it.name));
    }
    lines.extend(it.left_out.iter().map(|why| format!("  not offered: {why}")));
    if !it.instructions.is_empty() {
        lines.push("  what it says about itself:".to_owned());
        lines.extend(it.instructions.lines().map(|line| format!("    {line}")));
    }
    let tools = it.tools.iter().flatten();
    let width = tools.clone().map(|tool| tool.raw.chars().count()).max().unwrap_or(0).min(40);
    for tool in tools {
        let about = in_short(&tool.description, LINE.saturating_sub(width + 13).max(20));
        lines.push(format!("  {:<width$}  {:<7}  {about}", tool.raw, tool.runs));
    }
    for change in &it.changes {
        lines.push(format!("  {} is {}:", change.subject(), change.what));
        lines.extend(change.diff.lines().map(|line| format!("    {line}")));
    }
    if it.dropped_lines > 0 {
        lines.push(format!(
            "  {} lines on its stdout were no messages; a server prints those on stderr",
            it.dropped_lines
        ));
    }
    if let Some(error) = problem(it) {
        lines.push(format!("  {}", error.message));
        lines.push(format!("  fix: {}", remedies::word(&error.remedy)));
        let stderr: Vec<&str> = it.stderr.lines().collect();
        if !stderr.is_empty() {
            lines.push("  what it printed on stderr:".to_owned());
            lines.extend(stderr.iter().rev().take(20).rev().map(|line| format!("    {line}")));
        }
    }
    lines.join("\n")
}

/// The error of a server, for a reader who has just had it started.
fn problem(it: &ServerState) -> Option<Error> {
    let error = Error::from(it.error.as_ref()?.clone());
    let is_circular = matches!(&error.remedy, Remedy::McpServer { need: McpNeed::Test, .. });
    let remedy = if is_circular {
        let mend = format!("mend [mcp.{}] in {}, then: ", it.name, it.source);
        Remedy::text(mend).and_command(format!("pixir mcp test {}", next_actions::quoted(&it.name)))
    } else {
        error.remedy
    };
    Some(Error { remedy, ..error })
}

/// What can be done about the error of a server.
fn next_actions_of(it: &ServerState) -> Vec<String> {
    problem(it).as_ref().map(next_actions::after).unwrap_or_default()
}

/// Prints the error of a server, whose state is printed already; returns the exit code.
fn conclude(cli: &Cli, it: &ServerState) -> u8 {
    let Some(error) = problem(it) else { return 0 };
    cli.output.error(&error);
    exit_code(error.code)
}

fn add(cli: &Cli, args: AddArgs) -> Result<u8> {
    let file = cli.user_config()?;
    let name = args.name.as_str();
    let config = Config::parse(&read(&file)?)?;
    if config.mcp.contains_key(name) {
        let message = format!("there is an MCP server `{name}` already");
        let fix = Remedy::text("another name, or first: ")
            .and_command(format!("pixir mcp remove {}", next_actions::quoted(name)));
        return Err(Error::new(Code::InvalidArgs, message, fix).with("input", name));
    }
    if let [first, more @ ..] = args.url.as_slice()
        && (!first.contains("://") || !more.is_empty())
    {
        let words = args.url.join(" ");
        let message = format!("`{}` is no URL", words.escape_debug());
        let each: Vec<String> = args.url.iter().map(|word| next_actions::quoted(word)).collect();
        let line = format!("pixir mcp add {} -- {}", next_actions::quoted(name), each.join(" "));
        let fix = Remedy::text("a program stands behind two dashes: ").and_command(line);
        return Err(Error::new(Code::InvalidArgs, message, fix).with("input", words));
    }
    let env: Result<BTreeMap<String, String>> = args
        .env
        .iter()
        .map(|it| {
            let (key, value) = it.split_once('=').ok_or_else(|| {
                Error::new(
                    Code::Usage,
                    format!("`--env {}` has no value", it.escape_debug()),
                    Remedy::flag("--env NAME=VALUE"),
                )
            })?;
            Ok((key.to_owned(), value.to_owned()))
        })
        .collect();
    let mut section = toml_section(name, &args);
    let env = env?;
    if !env.is_empty() {
        let pairs: Vec<String> = env.iter().map(|(key, value)| format!("{key} = {}", quoted(value))).collect();
        section.push_str(&format!("env = {{ {} }}\n", pairs.join(", ")));
    }
    let change = edit::Change::with_section(&file, &section)?;
    if cli.options.dry_run {
        let text = format!("would add to {}:\n{section}", file.display());
        cli.output.either(json!({ "ok": true, "dry_run": true, "file": file, "section": section }), text.trim_end());
        return Ok(0);
    }
    change.write()?;
    if args.no_start {
        let text = format!("added to {}; its first use starts it", file.display());
        cli.output.either(json!({ "ok": true, "file": file }), &text);
        return Ok(0);
    }
    let it = look(cli, name)?;
    let ok = it.error.is_none();
    let end = match &it.error {
        None => {
            "it is ready: the next session offers its tools, and each call asks you until you say otherwise".to_owned()
        }
        Some(_) => {
            format!("the server is in {}, and did not start; try it again with: pixir mcp test {name}", file.display())
        }
    };
    let document = json!({ "ok": ok, "file": file, "server": it, "next_actions": next_actions_of(&it) });
    cli.output.either(document, &format!("{}\n\n{end}", text(&it)));
    Ok(conclude(cli, &it))
}

fn toml_section(name: &str, args: &AddArgs) -> String {
    let list = |all: &[String]| format!("[{}]", all.iter().map(|it| quoted(it)).collect::<Vec<_>>().join(", "));
    let mut section = format!("[mcp.{name}]\n");
    if let [url] = args.url.as_slice() {
        section.push_str(&format!("url = {}\n", quoted(url)));
    }
    if let [program, arguments @ ..] = args.command.as_slice() {
        section.push_str(&format!("command = {}\n", quoted(program)));
        if !arguments.is_empty() {
            section.push_str(&format!("args = {}\n", list(arguments)));
        }
    }
    for (key, all) in [("env_from", &args.env_from), ("reads", &args.reads), ("allow", &args.allow_tools)] {
        if !all.is_empty() {
            section.push_str(&format!("{key} = {}\n", list(all)));
        }
    }
    section
}

fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_default()
}

fn read(file: &std::path::Path) -> Result<String> {
    match std::fs::read_to_string(file) {
        Ok(text) => Ok(text),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
        Err(e) => {
            Err(Error::new(Code::ConfigInvalid, format!("read {}: {e}", file.display()), "make the file readable"))
        }
    }
}

fn remove(cli: &Cli, name: &str) -> Result<u8> {
    let file = cli.user_config()?;
    let own = Config::parse(&read(&file)?)?.mcp;
    if !own.contains_key(name) {
        let message = format!("{} has no MCP server `{}`", file.display(), name.escape_debug());
        return Err(unknown(message, name, own.keys().map(String::as_str)));
    }
    let change = edit::Change::without_section(&file, &format!("mcp.{name}"))?;
    let harness = harness(cli)?;
    if !cli.options.dry_run {
        change.write()?;
        harness.forget_server(name)?;
    }
    let would = if cli.options.dry_run { "would remove" } else { "removed" };
    let document = json!({ "ok": true, "dry_run": cli.options.dry_run, "file": file, "removed": name });
    cli.output.either(document, &format!("{would} {name} from {}", file.display()));
    Ok(0)
}

/// Starts a server, and stops it again.
fn look(cli: &Cli, name: &str) -> Result<ServerState> {
    let harness = harness(cli)?;
    block_on(async {
        let mut signals = Signals::listen()?;
        let looked = tokio::select! {
            looked = harness.look_at_server(name) => looked,
            _ = signals.next() => Err(Error::new(Code::CommandFailed, "interrupted", again())),
        };
        harness.stop_servers().await;
        looked
    })
}

fn test(cli: &Cli, name: &str) -> Result<u8> {
    let it = look(cli, name)?;
    let ok = it.error.is_none();
    let document = json!({ "ok": ok, "server": it, "next_actions": next_actions_of(&it) });
    cli.output.either(document, &text(&it));
    Ok(conclude(cli, &it))
}

fn call(cli: &Cli, args: &CallArgs) -> Result<u8> {
    let harness = harness(cli)?;
    let arguments: Value = serde_json::from_str(&args.args).map_err(|e| {
        Error::new(
            Code::InvalidArgs,
            format!("the arguments are not JSON: {e}"),
            "one JSON object, such as '{\"a\": 1}'",
        )
    })?;
    let named = json!({ "tool": args.tool, "arguments": arguments });
    // Typing the call is the approval.
    let call = Call { id: "cli".into(), tool: "mcp_call".into(), args: named, caller: Caller::User };
    let registry = harness.servers_registry();
    let ctx = harness.tool_context(&call.id);
    let authority = harness.unattended(pixir_core::event::Mode::Auto);
    block_on(async {
        let mut signals = Signals::listen()?;
        let outcome = tokio::select! {
            done = async {
                // Its tools may not be known yet.
                harness.look_at_server_of(&args.tool).await?;
                tools::report(cli, pixir_core::call::carry_out(&registry, &call, ctx, &authority).await)
            } => done.map(|code| u8::try_from(code).unwrap_or(1)),
            code = signals.next() => Ok(code),
        };
        harness.stop_servers().await;
        harness.processes_stopped().await;
        outcome
    })
}

/// The remedy of a call that was interrupted.
fn again() -> Remedy {
    Remedy::Retry { after_s: None }
}

fn secret(cli: &Cli, args: &SecretArgs) -> Result<u8> {
    let vault = Vault::new(&cli.environment);
    let stored = name_for_server(&args.name, &args.variable);
    if cli.options.dry_run {
        let would = if args.remove { "would remove" } else { "would store" };
        let document = json!({ "ok": true, "dry_run": true, "server": args.name, "variable": args.variable });
        cli.output.either(document, &format!("{would} the value of {}", args.variable));
        return Ok(0);
    }
    if args.remove {
        let was = vault.remove(&stored)?;
        let text = if was { "removed" } else { "there was none" };
        cli.output.either(json!({ "ok": true, "removed": was }), text);
        return Ok(0);
    }
    let what = format!("value of {}", args.variable);
    let value = super::auth::read_secret(
        &what,
        &format!("pixir mcp secret {} {}", next_actions::quoted(&args.name), next_actions::quoted(&args.variable)),
    )?;
    vault.save(&stored, &value)?;
    let text = format!("stored; the server gets it where its env_from names {}", args.variable);
    cli.output.either(json!({ "ok": true, "server": args.name, "variable": args.variable }), &text);
    Ok(0)
}
