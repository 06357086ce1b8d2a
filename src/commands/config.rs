//! `pixir config`: settings, and where each comes from.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use pixir_core::layers::{Setting, Source};
use pixir_core::{Code, Error, ProjectFile, Remedy, Result, catalogue, edit, error};
use pixir_ui::theme::{Background, Depth, Theme};
use serde_json::{Value, json};

use crate::args::Format;
use crate::cli::Cli;
use crate::output::{List, ListOptions};

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Show every setting, its value and where it comes from
    #[command(after_help = "Examples:\n  pixir config show\n  pixir config show --json --mode auto")]
    Show(ListOptions),
    /// Show one setting
    #[command(after_help = "Examples:\n  pixir config get model\n  pixir config get limits.max_rounds --json")]
    Get(GetArgs),
    /// Set one setting in your own file; comments stay
    #[command(
        after_help = "Examples:\n  pixir config set effort high\n  pixir config set limits.max_cost 0.50 --dry-run"
    )]
    Set(SetArgs),
    /// Print the paths of the configuration files
    #[command(after_help = "Examples:\n  pixir config path\n  pixir config path --json")]
    Path,
}

#[derive(Debug, Args)]
pub(crate) struct GetArgs {
    /// The setting, such as model or screen.vim
    #[arg(value_name = "KEY")]
    key: String,
}

#[derive(Debug, Args)]
pub(crate) struct SetArgs {
    /// The setting, such as model or screen.vim
    #[arg(value_name = "KEY")]
    key: String,
    /// Its value, as text or as TOML
    #[arg(value_name = "VALUE")]
    value: String,
}

pub(super) fn run(cli: &Cli, command: ConfigCommand) -> Result<u8> {
    match command {
        ConfigCommand::Show(options) => show(cli, &options),
        ConfigCommand::Get(args) => get(cli, &args),
        ConfigCommand::Set(args) => set(cli, &args),
        ConfigCommand::Path => path(cli),
    }
}

/// Why the project's file is not in force; `None` where it is, or where there is none.
fn not_read(cli: &Cli) -> Result<Option<String>> {
    Ok(match cli.project_file()? {
        ProjectFile::NotRead(why) => Some(why.to_string()),
        ProjectFile::Read(_) | ProjectFile::Absent => None,
    })
}

/// The files, each with whether it is there and in force.
fn files(cli: &Cli) -> Result<Vec<(&'static str, PathBuf, String)>> {
    let mut files = Vec::new();
    if let Some(path) = cli.config_path() {
        let state = if path.exists() { "read" } else { "does not exist" };
        files.push(("user", path, state.to_owned()));
    }
    if let Some(path) = cli.project_path() {
        // Only whether the name is there: nothing of the workspace is opened without trust.
        let is_there = path.symlink_metadata().is_ok();
        let state = match not_read(cli)? {
            _ if !is_there => "does not exist".to_owned(),
            Some(why) => format!("not read: {why}"),
            None => "read".to_owned(),
        };
        files.push(("project", path, state));
    }
    Ok(files)
}

/// Headers may hold secrets although they must not.
fn is_hidden(it: &Setting) -> bool {
    it.key.starts_with("providers.") && it.key.contains(".headers")
}

fn shown(it: &Setting) -> String {
    match &it.value {
        Some(_) if is_hidden(it) => "(hidden)".to_owned(),
        Some(value) => value.to_string(),
        None => "-".to_owned(),
    }
}

fn origin(it: &Setting) -> String {
    match it.source {
        Source::Default => "default".to_owned(),
        Source::User | Source::Project => it.source.name().to_owned(),
        Source::Environment | Source::Override | Source::Flag => it.from.clone(),
    }
}

fn document(it: &Setting) -> Value {
    let value = if is_hidden(it) { Some(json!("(hidden)")) } else { it.value.as_ref().map(|it| json!(it)) };
    let from = Some(&it.from).filter(|from| !from.is_empty());
    let about = catalogue::spec(&it.key).map(|spec| spec.about);
    json!({ "key": it.key, "value": value, "source": it.source.name(), "from": from, "about": about })
}

fn show(cli: &Cli, options: &ListOptions) -> Result<u8> {
    let all = cli.all_settings()?.all();
    let files = files(cli)?;
    let wide = all.iter().map(|it| it.key.len()).max().unwrap_or(0);
    let values_wide = all.iter().map(|it| shown(it).chars().count()).max().unwrap_or(0).min(32);
    let line = |it: &Setting| format!("{:<wide$}  {:<values_wide$}  {}", it.key, shown(it), origin(it));
    let described = files
        .iter()
        .map(|(source, path, state)| json!({ "source": source, "path": path.display().to_string(), "state": state }));
    let beside = json!({ "files": described.collect::<Vec<_>>() });
    let rows = all.iter().map(document).collect();
    let columns = &["key", "value", "source", "from"];
    List { name: "settings", key: "key", columns, rows, beside }.print(&cli.output, options, |at| line(&all[at]))?;
    if cli.output.format == Format::Plain && options.select.is_empty() {
        cli.output.line("");
        files.iter().for_each(|(name, path, state)| {
            cli.output.line(&format!("{name:<7}  {}  ({state})", path.display()));
        });
    }
    Ok(0)
}

fn get(cli: &Cli, args: &GetArgs) -> Result<u8> {
    let all = cli.all_settings()?.all();
    let Some(it) = all.iter().find(|it| it.key == args.key) else {
        let fix = match error::nearest(&args.key, all.iter().map(|it| it.key.as_str())) {
            Some(near) => Remedy::nearest(near),
            None => Remedy::text("see all settings: ").and_command("pixir config show"),
        };
        let message = format!("there is no setting `{}`", args.key.escape_debug());
        return Err(Error::new(Code::NotFound, message, fix).with("input", args.key.clone()));
    };
    let mut result = document(it);
    result["ok"] = true.into();
    let text = it.value.as_ref().and_then(|it| it.as_str().map(str::to_owned)).unwrap_or_else(|| shown(it));
    cli.output.either(result, if is_hidden(it) { "(hidden)" } else { &text });
    Ok(0)
}

fn set(cli: &Cli, args: &SetArgs) -> Result<u8> {
    let path = cli.user_config()?;
    let change = edit::Change::of(&path, &args.key, &args.value)?;
    // The core has no themes, so it takes any name.
    if args.key == "theme" && !args.value.is_empty() {
        Theme::load(&args.value, cli.themes_folder().as_deref(), Depth::True, Background::Dark)?;
    }
    if !cli.options.dry_run {
        change.write()?;
    }
    let would = if cli.options.dry_run { "would set " } else { "" };
    let file = path.display().to_string();
    let document = json!({ "ok": true, "dry_run": cli.options.dry_run, "key": args.key, "file": file });
    cli.output.either(document, &format!("{would}{} in {file}", args.key));
    Ok(0)
}

fn path(cli: &Cli) -> Result<u8> {
    let files = files(cli)?;
    let lines: Vec<String> =
        files.iter().map(|(name, path, state)| format!("{name:<7}  {}  ({state})", path.display())).collect();
    let documents: Vec<Value> = files
        .iter()
        .map(|(source, path, state)| json!({ "source": source, "path": path.display().to_string(), "state": state }))
        .collect();
    cli.output.either(json!({ "ok": true, "files": documents }), &lines.join("\n"));
    Ok(0)
}
