//! Which options and formats a command heeds. It shows these and refuses the others: an option that is accepted and does
//! nothing misleads its user.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{ArgMatches, Command, CommandFactory as _};

use super::Args;

/// The formats besides text and JSON that a command has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Forms {
    /// One document: plain, json, jsonl.
    Document,
    /// Rows: tsv as well.
    List,
    /// Text in a format of its own.
    Text,
}

/// What a command heeds besides its own arguments.
struct Heeded {
    options: &'static [&'static str],
    forms: Forms,
}

const NOTHING: &[&str] = &[];
const PLACE: &[&str] = &["workspace"];
const CHANGE: &[&str] = &["workspace", "dry_run"];
const TRUSTING: &[&str] = &["workspace", "trust_workspace"];
/// What selects a model.
const MODEL: &[&str] = &[
    "workspace",
    "trust_workspace",
    "overrides",
    "provider",
    "model",
    "dialect",
    "base_url",
    "effort",
    "patience",
    "record",
    "sandbox",
    "dry_run",
    "deadline",
];
/// What bounds a single call of a tool.
const CALL: &[&str] =
    &["workspace", "dry_run", "write", "allow", "add_dir", "overrides", "trust_workspace", "sandbox", "toolset"];
/// What [`Cli::all_settings`](crate::cli::Cli) takes from flags.
const SETTINGS: &[&str] = &[
    "workspace",
    "trust_workspace",
    "overrides",
    "provider",
    "model",
    "dialect",
    "base_url",
    "effort",
    "mode",
    "write",
    "toolset",
    "sandbox",
    "theme",
    "max_rounds",
    "max_tokens",
    "max_cost",
    "deadline",
    "patience",
];
const DEMO: &[&str] = &["headless", "mode", "dry_run", "no_input", "theme", "inline", "record"];
const REPLAY: &[&str] = &["workspace", "theme", "inline", "overrides", "dry_run"];
const OF_SIGN_IN: &[&str] =
    &["dry_run", "no_input", "overrides", "workspace", "trust_workspace", "base_url", "provider"];

/// The table. None for a command that heeds every option of a run.
fn heeded(path: &str) -> Option<Heeded> {
    use Forms::{Document, List, Text};
    let (options, forms): (&[&str], Forms) = match path {
        "demo" => (DEMO, Document),
        "sessions list" | "workflow runs" | "permissions list" | "agents tree" => (PLACE, List),
        "tree" | "inspect" | "diagnose" | "sessions show" | "sessions verify" | "config path" => (PLACE, Document),
        "sessions rename" | "sessions delete" | "sessions move" | "sessions export" | "sessions import"
        | "sessions repair" | "agents adopt" | "agents stop" | "workflow stop" | "fork" | "undo" | "redo" | "init"
        | "permissions add" | "permissions revoke" | "config set" => (CHANGE, Document),
        "trust" => (CHANGE, List),
        "agents list" | "skills list" | "workflow list" => (TRUSTING, List),
        "agents show" | "agents validate" | "skills show" | "skills validate" | "workflow show"
        | "workflow validate" => (TRUSTING, Document),
        "gc" => (&["dry_run"], Document),
        "compact" => (MODEL, Document),
        "replay" => (REPLAY, Document),
        "run" | "tools run" => (CALL, Document),
        "tools list" => (&["workspace", "toolset"], List),
        "tools show" => (PLACE, Document),
        "permissions why" => {
            (&["workspace", "mode", "write", "allow", "add_dir", "overrides", "trust_workspace"], Document)
        }
        "config show" => (SETTINGS, List),
        "config get" | "doctor" | "status" => (SETTINGS, Document),
        "models list" => (SETTINGS, List),
        "themes list" => (&["workspace", "overrides", "theme"], List),
        "themes preview" => (NOTHING, Text),
        "themes check" => (NOTHING, Document),
        "auth login" | "auth logout" => (OF_SIGN_IN, Document),
        "auth status" => (OF_SIGN_IN, List),
        "schema" => (&["toolset"], Document),
        "agent" => (NOTHING, Document),
        "completions" | "man" => (NOTHING, Text),
        _ => return None,
    };
    Some(Heeded { options, forms })
}

/// Every command with the options that it heeds.
pub(crate) fn whole() -> Command {
    with_own_options(Args::command(), None)
}

/// Hides from each command the options that it does not heed. Where the words of a command line are given, only for the
/// commands that they may name: for all of them this takes most of a short start.
pub(super) fn with_own_options(mut root: Command, words: Option<&[OsString]>) -> Command {
    let common: Vec<clap::Arg> = root.get_arguments().filter(|it| it.is_global_set()).cloned().collect();
    let run: Vec<clap::Arg> = common.into_iter().filter(|it| it.get_help_heading() == Some("Run options")).collect();
    let names: Vec<String> = root.get_subcommands().map(|it| it.get_name().to_owned()).collect();
    for name in names {
        let is_meant = |words: &[OsString]| words.iter().any(|word| *word == *name);
        if words.is_none_or(is_meant) {
            root = root.mut_subcommand(&name, |it| narrowed(it, &name, &run));
        }
    }
    root
}

fn narrowed(mut command: Command, path: &str, run: &[clap::Arg]) -> Command {
    let below: Vec<String> = command.get_subcommands().map(|it| it.get_name().to_owned()).collect();
    for name in &below {
        command = command.mut_subcommand(name, |it| narrowed(it, &format!("{path} {name}"), run));
    }
    let is_heeded = |id: &str| match heeded(path) {
        _ if !below.is_empty() => false,
        Some(it) => it.options.contains(&id),
        None => true,
    };
    let own: Vec<String> = command.get_arguments().map(|it| it.get_id().to_string()).collect();
    let letters: Vec<char> = command.get_arguments().filter_map(clap::Arg::get_short).collect();
    let others = run.iter().filter(|it| !own.contains(&it.get_id().to_string()));
    let changed = others.filter_map(|it| {
        // A command may use a letter for an option of its own: `workflow run -p NAME=VALUE`.
        let is_taken = it.get_short().is_some_and(|letter| letters.contains(&letter));
        let it = if is_taken { it.clone().short(None) } else { it.clone() };
        match is_heeded(it.get_id().as_str()) {
            true if is_taken => Some(it),
            true => None,
            false => Some(it.hide(true)),
        }
    });
    let changed: Vec<clap::Arg> = changed.collect();
    command.args(changed)
}

/// Refuses options and formats that the command of this line does not heed.
///
/// # Errors
/// As the parser's for an unknown argument or an invalid value.
pub(crate) fn check(matches: &ArgMatches) -> Result<(), clap::Error> {
    let mut path: Vec<&str> = Vec::new();
    let mut at = matches;
    while let Some((name, below)) = at.subcommand() {
        path.push(name);
        at = below;
    }
    let path = path.join(" ");
    let Some(heeded) = heeded(&path) else { return Ok(()) };
    let root = Args::command();
    for arg in root.get_arguments().filter(|it| it.get_help_heading() == Some("Run options")) {
        let id = arg.get_id().as_str();
        let is_given = at.value_source(id) == Some(ValueSource::CommandLine);
        if is_given && !heeded.options.contains(&id) {
            return Err(unheeded(arg, &path));
        }
    }
    let format = at.get_one::<super::Format>("format").copied();
    let json = at.get_flag("json");
    let wrong = match (heeded.forms, format, json) {
        (Forms::Document, Some(super::Format::Tsv), _) => Some(("tsv", "plain, json or jsonl")),
        (Forms::Text, Some(super::Format::Tsv), _) => Some(("tsv", "plain")),
        (Forms::Text, Some(super::Format::Json), _) | (Forms::Text, _, true) => Some(("json", "plain")),
        (Forms::Text, Some(super::Format::Jsonl), _) => Some(("jsonl", "plain")),
        (Forms::Document | Forms::List | Forms::Text, ..) => None,
    };
    match wrong {
        None => Ok(()),
        Some((given, instead)) => {
            let mut error = clap::Error::new(ErrorKind::InvalidValue).with_cmd(&root);
            let message = format!("`pixir {path}` cannot print {given}");
            error.insert(ContextKind::Custom, ContextValue::String(message));
            error.insert(ContextKind::InvalidValue, ContextValue::String(given.to_owned()));
            error.insert(ContextKind::SuggestedValue, ContextValue::String(format!("--format {instead}")));
            Err(error)
        }
    }
}

fn unheeded(arg: &clap::Arg, path: &str) -> clap::Error {
    let flag = arg.get_long().map(|long| format!("--{long}")).unwrap_or_default();
    let mut error = clap::Error::new(ErrorKind::UnknownArgument);
    error.insert(ContextKind::Custom, ContextValue::String(format!("`pixir {path}` does not take {flag}")));
    error.insert(ContextKind::InvalidArg, ContextValue::String(flag));
    error.insert(ContextKind::SuggestedSubcommand, ContextValue::String(path.to_owned()));
    error
}
