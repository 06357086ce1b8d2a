//! `pixir schema`: the machine-readable contract, generated from the definitions that the program uses.
//!
//! The JSON Schemas are those of the reference, which a test generates from the types: the code that makes them of the types
//! would be 0.8 MB of the program.

use clap::{ArgAction, Args as ClapArgs, Command};
use pixir_core::error::{NoticeCode, nearest};
use pixir_core::event::Toolset;
use pixir_core::run::{BUILTINS, Builtin, Stdin};
use pixir_core::{Code, Error, ErrorKind, Fact, Live, Remedy, Result};
use serde_json::{Value, json};

use super::tools::spec_json;
use crate::args::{formats, whole};
use crate::cli::Cli;
use crate::output::exit_code;

#[derive(Debug, ClapArgs)]
pub(crate) struct SchemaArgs {
    /// Print the JSON Schema of every event instead
    #[arg(long, conflicts_with = "script")]
    events: bool,
    /// Print the JSON Schema of script files instead
    #[arg(long)]
    script: bool,
    /// Print the JSON Schema of every Input instead, for programs that use --input jsonl
    #[arg(long, conflicts_with_all = ["script", "events"])]
    inputs: bool,
    /// Only this part, such as commands.resume or exit_codes.12
    #[arg(conflicts_with_all = ["events", "script", "inputs"])]
    path: Option<String>,
}

/// Every exit code: number, name, meaning, retryable, side effects.
pub(super) const EXITS: [(u8, &str, &str, bool, &str); 18] = [
    (0, "ok", "success", false, "complete"),
    (1, "generic", "unclassified failure; none of the agents of a run completed", false, "partial"),
    (2, "usage", "bad invocation or arguments", false, "none"),
    (3, "empty", "there is nothing to do", false, "none"),
    (4, "auth", "authentication is missing or failed", false, "none"),
    (5, "not_found", "the named item does not exist", false, "none"),
    (6, "permission", "not allowed", false, "none"),
    (7, "rate_limited", "the provider limits the rate of requests", true, "partial"),
    (8, "retryable", "network or provider failure, or a timeout; a retry may succeed", true, "partial"),
    (
        9,
        "partial",
        "some targets succeeded, or some agents or steps of a run; do not repeat the whole command",
        false,
        "partial",
    ),
    (10, "config", "misconfiguration", false, "none"),
    (11, "write_refused", "the session is open for reading only", false, "none"),
    (12, "mutation_blocked", "a change was refused; --write allows it", false, "partial"),
    (13, "input_required", "an answer of the user was needed", false, "partial"),
    (
        14,
        "incomplete",
        "a limit ended the turn before its answer, or the answer does not fit --output-schema",
        true,
        "partial",
    ),
    (129, "hung_up", "SIGHUP: the terminal or its connection is gone", true, "partial"),
    (130, "interrupted", "SIGINT", true, "partial"),
    (143, "terminated", "SIGTERM", true, "partial"),
];

/// Exit codes of commands of the run language, in footers and results. Programs have their own.
const RUN_EXITS: [(i32, &str); 7] = [
    (0, "ok"),
    (1, "false, nothing found, or a general failure"),
    (2, "usage or syntax"),
    (124, "timed out"),
    (126, "not allowed, or not executable"),
    (127, "command not found"),
    (130, "interrupted"),
];

fn builtin(it: &Builtin) -> Value {
    let stdin = match it.stdin {
        Stdin::None => "none",
        Stdin::Optional => "optional",
    };
    json!({ "name": it.name, "about": it.about, "stdin": stdin, "subcommands": it.subcommands.iter().map(|(name, _)| name).collect::<Vec<_>>(), "help": it.help(), "example": it.example })
}

pub(super) fn run(cli: &Cli, args: &SchemaArgs) -> Result<u8> {
    match (args.events, args.script, args.inputs) {
        (true, ..) => reference(cli, include_str!(concat!(env!("OUT_DIR"), "/events.json"))),
        (_, true, _) => reference(cli, include_str!(concat!(env!("OUT_DIR"), "/script.json"))),
        (.., true) => reference(cli, include_str!(concat!(env!("OUT_DIR"), "/inputs.json"))),
        (false, false, false) => {
            let contract = contract(cli.listed_toolset()?);
            match &args.path {
                None => cli.output.document(contract),
                Some(path) => cli.output.document(json!({ "path": path, "part": part(&contract, path)? })),
            }
        }
    }
    Ok(0)
}

fn reference(cli: &Cli, json: &str) {
    let document: Value = serde_json::from_str(json).expect("a test reads the reference");
    cli.output.stream(&document);
}

/// The part at a path. A step is a field, the position in a list, or the name of an item; commands are below `commands`.
fn part(contract: &Value, path: &str) -> Result<Value> {
    let name_of = |it: &Value| ["name", "code"].iter().find_map(|key| it[key].as_str().map(str::to_owned));
    let items = |at: &Value| at.as_array().or_else(|| at["commands"].as_array()).cloned().unwrap_or_default();
    let mut at = contract.clone();
    for step in path.split('.') {
        let named = || {
            items(&at).into_iter().find(|it| name_of(it).as_deref().map(|it| it.trim_start_matches('-')) == Some(step))
        };
        let found = at.get(step).cloned().or_else(named).or_else(|| at.get(step.parse::<usize>().ok()?).cloned());
        at = found.ok_or_else(|| {
            let fields = at.as_object().into_iter().flat_map(|it| it.keys().cloned());
            let names: Vec<String> = fields.chain(items(&at).iter().filter_map(name_of)).collect();
            let fix = match nearest(step, names.iter().map(String::as_str)) {
                Some(near) => {
                    Remedy::nearest(path.rsplit_once('.').map_or(near.to_owned(), |_| path.replacen(step, near, 1)))
                }
                None => format!("one of {}", names.join(", ")).into(),
            };
            Error::new(Code::NotFound, format!("the schema has no `{}`", step.escape_debug()), fix).with("input", path)
        })?;
    }
    Ok(at)
}

/// The flags that runs share, without their dashes.
fn run_options(root: &Command) -> Vec<String> {
    let of_runs = root.get_arguments().filter(|it| it.get_help_heading() == Some("Run options"));
    of_runs.filter_map(clap::Arg::get_long).map(str::to_owned).collect()
}

/// The part of the contract that describes one command, by its words: `pixir sessions list`.
pub(crate) fn described(words: &str) -> Value {
    let root = whole();
    let path = words.strip_prefix("pixir").unwrap_or(words).trim();
    let it = path.split_whitespace().fold(&root, |at, word| at.find_subcommand(word).unwrap_or(at));
    let mut described = command(it, path, &run_options(&root));
    described["ok"] = true.into();
    described
}

fn contract(toolset: Toolset) -> Value {
    let root = whole();
    let run_options = run_options(&root);
    let exits: serde_json::Map<String, Value> = EXITS
        .iter()
        .map(|(code, name, meaning, retryable, effects)| {
            (
                code.to_string(),
                json!({ "name": name, "meaning": meaning, "retryable": retryable, "side_effects": effects }),
            )
        })
        .collect();
    json!({
        "tool": "pixir",
        "version": env!("CARGO_PKG_VERSION"),
        "commands": command(&root, "", &run_options),
        "interface": pixir_ui::reference(),
        "exit_codes": exits,
        "error_kinds": ErrorKind::ALL,
        "error_codes": Code::ALL.iter().map(|c| json!({ "code": c.name(), "kind": c.kind(), "exit_code": exit_code(*c), "reserved": Code::RESERVED.contains(c) })).collect::<Vec<_>>(),
        "notice_codes": NoticeCode::ALL.iter().map(|c| c.name()).collect::<Vec<_>>(),
        "run_exit_codes": RUN_EXITS.iter().map(|(code, meaning)| (code.to_string(), json!(meaning))).collect::<serde_json::Map<_, _>>(),
        "tools": pixir_core::builtin_tools([]).specs(toolset).iter().map(spec_json).collect::<Vec<_>>(),
        "run_commands": BUILTINS.iter().map(builtin).collect::<Vec<_>>(),
        "events": { "recorded": Fact::KINDS, "live": Live::KINDS },
        "safety": { "write_gate": "--write", "dry_run": "--dry-run", "no_input": "--no-input", "default_mode_headless": "read-only" },
    })
}

fn command(it: &Command, path: &str, run_options: &[String]) -> Value {
    let args: Vec<Value> = it
        .get_arguments()
        .filter(|arg| (!arg.is_global_set() || it.get_name() == "pixir") && !arg.is_hide_set())
        .map(|arg| {
            json!({
                "name": arg.get_long().map_or_else(|| arg.get_id().to_string(), |long| format!("--{long}")),
                "short": arg.get_short().map(|short| format!("-{short}")),
                "aliases": arg.get_visible_aliases().unwrap_or_default().iter().map(|it| format!("--{it}")).collect::<Vec<_>>(),
                "help": arg.get_help().map(ToString::to_string),
                "required": arg.is_required_set(),
                "takes_value": matches!(arg.get_action(), ArgAction::Set | ArgAction::Append),
                "values": arg.get_possible_values().iter().map(|v| v.get_name().to_owned()).collect::<Vec<_>>(),
                "default": arg.get_default_values().iter().map(|v| v.to_string_lossy()).collect::<Vec<_>>(),
            })
        })
        .collect();
    let after = it.get_after_help().map(ToString::to_string).unwrap_or_default();
    let examples = after.split("Examples:\n").nth(1).unwrap_or_default();
    let examples: Vec<&str> = examples.lines().take_while(|line| !line.is_empty()).map(str::trim).collect();
    let hidden: Vec<&str> =
        it.get_arguments().filter(|arg| arg.is_hide_set()).filter_map(clap::Arg::get_long).collect();
    let is_group = it.get_subcommands().next().is_some();
    // `auth login PROVIDER` has an argument of that name, and so no `--provider`.
    let named: Vec<&str> = it.get_positionals().map(|arg| arg.get_id().as_str()).collect();
    let heeds = |flag: &str| !is_group && !hidden.contains(&flag) && !named.contains(&flag);
    json!({
        "name": it.get_name(),
        "about": it.get_about().map(ToString::to_string),
        "args": args,
        // Options of a run, described at the root, that this command heeds.
        "run_options": run_options.iter().filter(|flag| heeds(flag)).map(|flag| format!("--{flag}")).collect::<Vec<_>>(),
        "examples": examples,
        // A command that changes nothing has no preview.
        "mutates": (!is_group || path.is_empty()) && !hidden.contains(&"dry-run"),
        "formats": if is_group && !path.is_empty() { &[] } else { formats(path) },
        "commands": it.get_subcommands().map(|it| command(it, format!("{path} {}", it.get_name()).trim(), run_options)).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_ends_with_an_exit_code_that_has_a_name() {
        for code in Code::ALL {
            assert!(EXITS.iter().any(|(exit, ..)| *exit == exit_code(*code)), "{}", code.name());
        }
    }
}
