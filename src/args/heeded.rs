//! Which options and formats a command heeds. It shows these and refuses the others: an option that is accepted and does
//! nothing misleads its user.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{ArgMatches, Command, CommandFactory as _};

use super::{Args, flags};

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
    options: &'static [Group],
    forms: Forms,
}

/// Options that go together. A name that ends with a dot means the flags of all settings of that section.
type Group = &'static [&'static str];

const PLACE: Group = &["workspace"];
const DRY_RUN: Group = &["dry_run"];
const NO_INPUT: Group = &["no_input"];
const HEADLESS: Group = &["headless"];
const TOOLSET: Group = &["toolset"];
/// What makes the settings of a workspace.
const CONFIG: Group = &["trust_workspace", "overrides"];
/// What selects the model, and how its server is asked.
const MODEL: Group = &["provider", "model", "dialect", "base_url", "effort", "requests."];
/// What calls of tools may do.
const RIGHTS: Group = &["mode", "write", "allow", "add_dir", "sandbox"];
const LIMITS: Group = &["limits."];
/// What a new Session takes besides.
const SESSION: Group = &["agent", "append_system_prompt", "record", "dry_run", "no_input"];
/// How the screen looks.
const SCREEN: Group = &["theme", "inline"];

/// The table. None for a command that heeds every option of a run.
fn heeded(path: &str) -> Option<Heeded> {
    use Forms::{Document, List, Text};
    let (options, forms): (&[Group], Forms) = match path {
        "demo" => (&[HEADLESS, &["mode", "record"], DRY_RUN, NO_INPUT, SCREEN], Document),
        "tui" => (
            &[PLACE, CONFIG, MODEL, RIGHTS, LIMITS, TOOLSET, SESSION, SCREEN, &["skill", "attach", "session_id"]],
            Text,
        ),
        "mcp serve" => (&[PLACE, CONFIG, MODEL, RIGHTS, LIMITS, TOOLSET, SESSION], Text),
        "acp" => (&[CONFIG, MODEL, RIGHTS, LIMITS, TOOLSET, SESSION], Text),
        "workflow run" | "workflow resume" => {
            (&[HEADLESS, PLACE, CONFIG, MODEL, RIGHTS, LIMITS, TOOLSET, SESSION], Document)
        }
        "sessions list" | "workflow runs" | "permissions list" | "agents tree" => (&[PLACE], List),
        "tree" | "sessions show" | "sessions verify" | "config path" | "tools show" => (&[PLACE], Document),
        "inspect" | "diagnose" => (&[PLACE, CONFIG], Document),
        "sessions rename" | "sessions delete" | "sessions move" | "sessions export" | "sessions import"
        | "sessions repair" | "agents adopt" | "agents stop" | "workflow stop" | "fork" | "undo" | "redo" | "init"
        | "permissions add" | "permissions revoke" | "config set" => (&[PLACE, DRY_RUN], Document),
        "trust" => (&[PLACE, DRY_RUN], List),
        "agents list" | "skills list" | "workflow list" => (&[PLACE, &["trust_workspace"]], List),
        "agents show" | "agents validate" | "skills show" | "skills validate" | "workflow show"
        | "workflow validate" => (&[PLACE, &["trust_workspace"]], Document),
        "mcp list" => (&[PLACE, CONFIG], List),
        "mcp show" => (&[PLACE, CONFIG], Document),
        "mcp test" | "mcp call" | "mcp add" | "mcp remove" | "mcp secret" | "mcp logout" => {
            (&[PLACE, CONFIG, DRY_RUN], Document)
        }
        "mcp trust" | "mcp accept" | "mcp login" => (&[PLACE, CONFIG, DRY_RUN, NO_INPUT], Document),
        "gc" => (&[DRY_RUN], Document),
        "compact" => (&[PLACE, CONFIG, MODEL, DRY_RUN, &["record", "sandbox", "deadline"]], Document),
        "replay" => (&[HEADLESS, PLACE, CONFIG, SCREEN, DRY_RUN], Document),
        "run" | "tools run" => (&[PLACE, CONFIG, RIGHTS, TOOLSET, DRY_RUN], Document),
        "tools list" => (&[PLACE, TOOLSET], List),
        "permissions why" => (&[PLACE, CONFIG, RIGHTS], Document),
        "config show" | "models list" => (&[PLACE, CONFIG, MODEL, RIGHTS, LIMITS, TOOLSET, &["theme"]], List),
        "config get" | "doctor" | "status" => (&[PLACE, CONFIG, MODEL, RIGHTS, LIMITS, TOOLSET, &["theme"]], Document),
        "themes list" => (&[PLACE, CONFIG, &["theme"]], List),
        "themes preview" | "completions" => (&[], Text),
        "man" => (&[DRY_RUN], Text),
        "themes check" | "agent" => (&[], Document),
        // `provider` is their argument, which has the name of an option.
        "auth login" | "auth logout" => (&[PLACE, CONFIG, DRY_RUN, NO_INPUT, &["base_url", "provider"]], Document),
        "auth status" => (&[PLACE, CONFIG, &["base_url", "provider"]], List),
        "schema" => (&[TOOLSET], Document),
        _ => return None,
    };
    Some(Heeded { options, forms })
}

impl Heeded {
    fn has(&self, id: &str) -> bool {
        let section = flags::section(id);
        self.options.iter().copied().flatten().any(|name| match name.strip_suffix('.') {
            Some(name) => section == Some(name),
            None => *name == id,
        })
    }
}

/// The formats that a command can print, by its path below `pixir`.
pub(crate) fn formats(path: &str) -> &'static [&'static str] {
    match heeded(path).map_or(Forms::Document, |it| it.forms) {
        Forms::Document => &["plain", "json", "jsonl"],
        Forms::List => &["plain", "json", "jsonl", "tsv"],
        Forms::Text => &["plain"],
    }
}

/// Whether an option chooses a format, and the command has one only.
fn is_needless_choice(id: &str, path: &str) -> bool {
    matches!(id, "format" | "json") && heeded(path).is_some_and(|it| it.forms == Forms::Text)
}

/// Every command with the options that it heeds.
pub(crate) fn whole() -> Command {
    with_own_options(Args::command(), None)
}

/// Every command with the options that it heeds as its own, and no others: what completions and manual pages show.
pub(crate) fn spelled_out() -> Command {
    let mut root = Args::command();
    let common: Vec<clap::Arg> =
        root.get_arguments().filter(|it| it.is_global_set()).map(|it| it.clone().global(false)).collect();
    root = root.mut_args(|it| it.global(false));
    let names: Vec<String> = root.get_subcommands().map(|it| it.get_name().to_owned()).collect();
    for name in names {
        root = root.mut_subcommand(&name, |it| with_common(it, &name, &common));
    }
    root
}

fn with_common(mut command: Command, path: &str, common: &[clap::Arg]) -> Command {
    let below: Vec<String> = command.get_subcommands().map(|it| it.get_name().to_owned()).collect();
    for name in &below {
        command = command.mut_subcommand(name, |it| with_common(it, &format!("{path} {name}"), common));
    }
    let heeded = heeded(path);
    let is_shown = |it: &clap::Arg| match it.get_help_heading() {
        Some("Run options") => below.is_empty() && heeded.as_ref().is_none_or(|all| all.has(it.get_id().as_str())),
        Some(_) | None => !below.is_empty() || !is_needless_choice(it.get_id().as_str(), path),
    };
    let own: Vec<String> = command.get_arguments().map(|it| it.get_id().to_string()).collect();
    let letters: Vec<char> = command.get_arguments().filter_map(clap::Arg::get_short).collect();
    let added = common.iter().filter(|it| is_shown(it) && !own.contains(&it.get_id().to_string())).cloned();
    let added: Vec<clap::Arg> = added
        .map(|it| if it.get_short().is_some_and(|letter| letters.contains(&letter)) { it.short(None) } else { it })
        .collect();
    command.args(added)
}

/// Hides from each command the options that it does not heed. Where the words of a command line are given, only for the
/// commands that they may name: for all of them this takes most of a short start.
pub(super) fn with_own_options(root: Command, words: Option<&[OsString]>) -> Command {
    let mut root = root.mut_args(with_negative_numbers);
    let common: Vec<clap::Arg> = root.get_arguments().filter(|it| it.is_global_set()).cloned().collect();
    let names: Vec<String> = root.get_subcommands().map(|it| it.get_name().to_owned()).collect();
    for name in names {
        let is_meant = |words: &[OsString]| words.iter().any(|word| *word == *name);
        if words.is_none_or(is_meant) {
            root = root.mut_subcommand(&name, |it| narrowed(it, &name, &common));
        }
    }
    root
}

/// A number below zero behind a flag is its value, which the flag's own parser refuses with its bounds, and no other flag.
fn with_negative_numbers(arg: clap::Arg) -> clap::Arg {
    let takes_value = matches!(arg.get_action(), clap::ArgAction::Set | clap::ArgAction::Append);
    if takes_value && arg.get_long().is_some() { arg.allow_negative_numbers(true) } else { arg }
}

fn narrowed(command: Command, path: &str, common: &[clap::Arg]) -> Command {
    let mut command = command.mut_args(with_negative_numbers);
    let below: Vec<String> = command.get_subcommands().map(|it| it.get_name().to_owned()).collect();
    for name in &below {
        command = command.mut_subcommand(name, |it| narrowed(it, &format!("{path} {name}"), common));
    }
    let is_heeded = |id: &str| match heeded(path) {
        _ if !below.is_empty() => false,
        Some(it) => it.has(id),
        None => true,
    };
    let own: Vec<String> = command.get_arguments().map(|it| it.get_id().to_string()).collect();
    let letters: Vec<char> = command.get_arguments().filter_map(clap::Arg::get_short).collect();
    let others = common.iter().filter(|it| !own.contains(&it.get_id().to_string()));
    let changed = others.filter_map(|it| {
        if it.get_help_heading() != Some("Run options") {
            let is_hidden = below.is_empty() && is_needless_choice(it.get_id().as_str(), path);
            return is_hidden.then(|| it.clone().hide(true));
        }
        // A command may use a letter for an option of its own: `workflow run -p NAME=VALUE`.
        let is_taken = it.get_short().is_some_and(|letter| letters.contains(&letter));
        let it = if is_taken { it.clone().short(None) } else { it.clone() };
        match is_heeded(it.get_id().as_str()) {
            // What a group hides, its commands would hide as well.
            true if is_taken || path.contains(' ') => Some(it),
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
    let root = Args::command();
    let heeded = heeded(&path);
    for arg in root.get_arguments().filter(|it| it.get_help_heading() == Some("Run options")) {
        let id = arg.get_id().as_str();
        let is_given = at.value_source(id) == Some(ValueSource::CommandLine);
        // A command without `--dry-run` changes nothing, so with it it does the same.
        let is_no_matter = id == "dry_run";
        if is_given && !is_no_matter && heeded.as_ref().is_some_and(|it| !it.has(id)) {
            return Err(unheeded(arg, &path));
        }
    }
    if at.get_flag("headless")
        && let Some(arg) = root.get_arguments().find(|it| is_of_the_screen(it, at))
    {
        return Err(unheeded(arg, format!("{path} --headless").trim_start()));
    }
    let format = at.get_one::<super::Format>("format").copied();
    let json = at.get_flag("json");
    let forms = heeded.map_or(Forms::Document, |it| it.forms);
    let wrong = match (forms, format, json) {
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
            error.insert(ContextKind::SuggestedValue, ContextValue::String(instead.to_owned()));
            Err(error)
        }
    }
}

/// Whether this line has the option, and only a screen heeds it.
fn is_of_the_screen(arg: &clap::Arg, line: &ArgMatches) -> bool {
    let id = arg.get_id().as_str();
    SCREEN.contains(&id) && line.value_source(id) == Some(ValueSource::CommandLine)
}

fn unheeded(arg: &clap::Arg, path: &str) -> clap::Error {
    let flag = arg.get_long().map(|long| format!("--{long}")).unwrap_or_default();
    let mut error = clap::Error::new(ErrorKind::UnknownArgument);
    error.insert(ContextKind::Custom, ContextValue::String(format!("`pixir {path}` does not take {flag}")));
    error.insert(ContextKind::InvalidArg, ContextValue::String(flag));
    error
}
