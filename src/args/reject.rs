//! Errors of the argument parser, reported like every other error.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgAction, Command, ValueEnum as _};
use pixir_core::error::nearest;
use pixir_core::remedy::Part;
use pixir_core::{Code, Error, Remedy};
use serde_json::json;

use super::{ErrorFormat, Format, OutputOptions, check, peers, whole};
use crate::commands::schema;
use crate::next_actions::quoted;
use crate::output::{Output, exit_code, report_unprinted};

/// Prints help and version as results and everything else as an error; returns the exit code.
pub(crate) fn reject(e: &clap::Error) -> u8 {
    let words: Vec<String> = std::env::args_os().skip(1).map(|it| it.to_string_lossy().into_owned()).collect();
    match e.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            let output = Output::new(&options_of(&words));
            if output.is_json() {
                output.document(if e.kind() == ErrorKind::DisplayVersion {
                    json!({ "ok": true, "version": env!("CARGO_PKG_VERSION") })
                } else {
                    schema::described(&named(&whole(), &words).1)
                });
                return report_unprinted(&output, 0);
            }
            // The parser prints to stdout itself, in colour where that is a terminal.
            output.write(|_| e.print());
            return report_unprinted(&output, 0);
        }
        _ => {}
    }
    if e.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand && !options_of(&words).json {
        let _ = e.print();
        return exit_code(Code::Usage);
    }
    let error = usage_error(e, &words);
    let output = Output::new(&options_of(&words));
    if output.format == Format::Jsonl {
        output.failed_result(&error);
    }
    output.error(&error);
    exit_code(error.code)
}

/// Parsing failed, so the requested formats are read from the words themselves.
fn options_of(words: &[String]) -> OutputOptions {
    let words: Vec<&str> = words.iter().map(String::as_str).take_while(|word| *word != "--").collect();
    let value = |flag: &str| {
        let joined = words.iter().find_map(|word| word.strip_prefix(flag)?.strip_prefix('='));
        joined.or_else(|| words.windows(2).find(|pair| pair[0] == flag).map(|pair| pair[1]))
    };
    let is_json = words.contains(&"--json");
    let format = value("--format").and_then(|it| Format::from_str(it, false).ok()).filter(|_| !is_json);
    let error_format = value("--error-format").and_then(|it| ErrorFormat::from_str(it, false).ok());
    OutputOptions {
        json: is_json,
        // A list of lines cannot hold an error.
        format: format.filter(|it| *it != Format::Tsv),
        error_format: error_format.unwrap_or_default(),
    }
}

fn usage_error(e: &clap::Error, words: &[String]) -> Error {
    let root = whole();
    let (command, path) = named(&root, words);
    let context = |kind| e.get(kind).map(shown);
    let invalid = context(ContextKind::InvalidArg);
    let given = context(ContextKind::InvalidValue).filter(|it| !it.is_empty());
    let help = match command.get_positionals().find(|it| it.is_last_set()) {
        // The flags of a program are taken for flags of the command.
        Some(_) if !words.iter().any(|word| word == "--") => {
            Remedy::text("a program stands behind two dashes: ").and_command(format!("{path} NAME -- COMMAND"))
        }
        _ => Remedy::command(format!("{path} --help")),
    };
    let custom = context(ContextKind::Custom);
    match e.kind() {
        ErrorKind::UnknownArgument => {
            let wrong = invalid.unwrap_or_default();
            // It is refused although the command has it.
            let hides_it = command.get_arguments().any(|it| it.is_hide_set() && is_flag(it, &wrong));
            let is_out_of_place = custom.is_some() && !hides_it && root.get_arguments().any(|it| is_flag(it, &wrong));
            let message = custom.unwrap_or_else(|| format!("there is no flag {} of `{path}`", wrong.escape_debug()));
            if !wrong.starts_with('-') {
                return superfluous(&root, command, &path, &wrong, words);
            }
            let prompt = words.iter().find(|word| word.starts_with(&wrong) && word.contains(' '));
            let fix = match peers::flag(&wrong) {
                _ if let Some(prompt) = prompt => {
                    let again = format!("pixir -p -- {}", quoted(&prompt.chars().take(200).collect::<String>()));
                    Remedy::text("put -- before a prompt that begins with a dash: ").and_command(again)
                }
                Some(ours) => ours,
                None if is_out_of_place => format!("leave out {wrong}, which only a screen heeds").into(),
                None => nearest_flag(command, &wrong).map_or(help, Remedy::nearest),
            };
            Error::new(Code::UnknownFlag, message, fix).with("input", wrong)
        }
        ErrorKind::InvalidSubcommand => {
            let wrong = context(ContextKind::InvalidSubcommand).unwrap_or_default();
            // The parser takes the first word for a prompt, and the next one for a command.
            if path == "pixir" && words.first().is_none_or(|word| word != "help") {
                return superfluous(&root, command, &path, &wrong, words);
            }
            unknown_command(command, &path, &wrong)
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand | ErrorKind::MissingSubcommand => {
            let names: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
            Error::new(Code::Usage, format!("`{path}` needs a command"), format!("one of {}", names.join(", ")))
        }
        ErrorKind::ArgumentConflict => {
            let wrong = invalid.unwrap_or_default();
            // The parser names flags with their values.
            let name = |flag: &str| flag.split(' ').next().unwrap_or(flag).to_owned();
            let other = context(ContextKind::PriorArg).map_or(String::new(), |other| name(&other));
            let wrong = name(&wrong);
            let (message, fix) = if wrong == other {
                let once = without(command, &root, words, &wrong, Left::First);
                let fix =
                    once.map_or_else(|| "give it once".into(), |once| Remedy::text("give it once: ").and_command(once));
                (format!("{wrong} is given more than once"), fix)
            } else {
                let leaving_out = |flag: &str| without(command, &root, words, flag, Left::None);
                let calls = [leaving_out(&wrong), leaving_out(&other)].into_iter().flatten();
                let fix = Remedy::text(format!("leave out {wrong} or {other}"));
                let fix = calls
                    .enumerate()
                    .fold(fix, |fix, (at, call)| fix.and_text(if at == 0 { ": " } else { ", or " }).and_command(call));
                (format!("{wrong} and {other} exclude each other"), fix)
            };
            Error::new(Code::Usage, message, fix).with("input", wrong)
        }
        _ => {
            let rendered = e.to_string();
            // clap lists missing arguments on lines of their own, below the message.
            let lines: Vec<&str> = rendered.lines().take_while(|line| !line.is_empty()).map(str::trim).collect();
            let is_ours = custom.is_some();
            let message = custom.unwrap_or_else(|| lines.join(" ").trim_start_matches("error: ").to_owned());
            let message = message.replace("invalid digit found in string", "it takes a whole number");
            let fix = match (
                context(ContextKind::SuggestedValue),
                context(ContextKind::ValidValue).filter(|all| !all.is_empty()),
            ) {
                // The formats that the command prints.
                (Some(formats), None) if is_ours => {
                    let first = formats.split(',').next().unwrap_or(&formats);
                    Remedy::text("use ").and_flag(format!("--format {first}")).and_text(&formats[first.len()..])
                }
                (Some(near), Some(all)) => Remedy::nearest(near).and_text(format!(" It takes one of {all}")),
                (Some(near), None) => Remedy::nearest(near),
                (None, Some(all)) => match given.as_deref().and_then(|it| nearest(it, all.split(", "))) {
                    Some(near) => Remedy::nearest(near).and_text(format!(" It takes one of {all}")),
                    None => format!("use one of {all}").into(),
                },
                (None, None) => help,
            };
            let error = Error::new(Code::Usage, message, fix);
            let error = match &invalid {
                Some(flag) => error.with("flag", flag.clone()),
                None => error,
            };
            match given.or(invalid) {
                Some(input) => error.with("input", input),
                None => error,
            }
        }
    }
}

/// Which uses of a flag stay in a call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Left {
    None,
    First,
}

/// The same call without a flag, under each of its names; `None` where the parser does not take it then.
fn without(command: &Command, root: &Command, words: &[String], flag: &str, left: Left) -> Option<String> {
    let args = || command.get_arguments().chain(root.get_arguments());
    let has_name = |arg: &clap::Arg, word: &str| {
        let names = arg.get_long_and_visible_aliases().unwrap_or_default();
        let is_long = |word: &str| word.strip_prefix("--").is_some_and(|word| names.contains(&word));
        is_long(word.split('=').next().unwrap_or(word)) || is_short(arg, word)
    };
    let arg = args().find(|arg| has_name(arg, flag))?;
    let takes_value = matches!(arg.get_action(), ArgAction::Set | ArgAction::Append);
    let (mut kept, mut uses) = (Vec::new(), 0);
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if word == "--" {
            kept.push(word);
            kept.extend(words.by_ref());
        } else if has_name(arg, word) && {
            uses += 1;
            left == Left::None || uses > 1
        } {
            if takes_value && !word.contains('=') {
                words.next();
            }
        } else {
            kept.push(word);
        }
    }
    let kept = || kept.iter().map(|word| word.as_str());
    let parsed = root.clone().try_get_matches_from(std::iter::once("pixir").chain(kept())).ok()?;
    check(&parsed).ok()?;
    Some(std::iter::once("pixir".to_owned()).chain(kept().map(quoted)).collect::<Vec<_>>().join(" "))
}

fn is_flag(arg: &clap::Arg, flag: &str) -> bool {
    arg.get_long().is_some_and(|long| flag.strip_prefix("--") == Some(long))
}

/// A word too many: a mistyped command with arguments, or a prompt without quotes.
fn superfluous(root: &Command, command: &Command, path: &str, wrong: &str, words: &[String]) -> Error {
    let has_command = path != "pixir";
    let first = words.iter().find(|word| !word.starts_with('-')).cloned().unwrap_or_default();
    if has_command {
        let message = format!("`{path}` does not take the argument `{}`", wrong.escape_debug());
        let is_resume = command.get_name() == "resume";
        let fix = if is_resume {
            Remedy::text("quote the prompt: ").and_command("pixir resume ID PROMPT")
        } else {
            Remedy::command(format!("{path} --help"))
        };
        return Error::new(Code::Usage, message, fix).with("input", wrong);
    }
    if let Some(ours) = peers::command(&first) {
        let message = format!("there is no command `{}`", first.escape_debug());
        return Error::new(Code::UnknownCommand, message, ours).with("input", first);
    }
    // `sesions list`: the second word is a command of the one that the first nearly is.
    let near = nearest(&first, root.get_subcommands().map(Command::get_name));
    let below = near.and_then(|name| root.find_subcommand(name));
    let takes = |it: &Command| {
        it.find_subcommand(wrong).is_some()
            || (it.get_subcommands().next().is_none() && it.get_positionals().next().is_some())
    };
    if let Some(below) = below.filter(|it| first.len() > 3 && takes(it)) {
        return unknown_command(root, path, &first).with("meant", below.get_name());
    }
    let fix = Remedy::text("quote the prompt: ").and_command(with_one_prompt(root, words));
    Error::new(Code::Usage, format!("a prompt is one argument, and `{}` is another", wrong.escape_debug()), fix)
        .with("input", wrong)
}

/// The same call with one prompt: its flags and their values, then all other words as one.
fn with_one_prompt(root: &Command, words: &[String]) -> String {
    let (mut flags, mut prompt) = (Vec::new(), Vec::new());
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let arg = root.get_arguments().find(|arg| is_flag(arg, word) || is_short(arg, word));
        let takes_value = arg.is_some_and(|it| matches!(it.get_action(), ArgAction::Set | ArgAction::Append));
        match word.starts_with('-') {
            true => {
                flags.push(quoted(word));
                flags.extend(takes_value.then(|| words.next()).flatten().map(|it| quoted(it)));
            }
            false => prompt.push(word.as_str()),
        }
    }
    let is_headless = flags.iter().any(|flag| ["-p", "--print", "--headless"].contains(&flag.as_str()));
    let how = if is_headless { None } else { Some("-p".to_owned()) };
    let prompt: String = prompt.join(" ").chars().take(200).collect();
    let all: Vec<String> =
        std::iter::once("pixir".to_owned()).chain(how).chain(flags).chain([quoted(&prompt)]).collect();
    all.join(" ")
}

fn is_short(arg: &clap::Arg, flag: &str) -> bool {
    arg.get_short().is_some_and(|letter| flag.strip_prefix('-') == Some(letter.to_string().as_str()))
}

fn unknown_command(command: &Command, path: &str, wrong: &str) -> Error {
    let names = command.get_subcommands().map(Command::get_name);
    let fix = match (peers::command(wrong).filter(|_| path == "pixir"), nearest(wrong, names)) {
        (Some(ours), _) => ours,
        (None, Some(near)) => {
            Remedy::text(format!("did you mean {path} ")).and(Part::Nearest(near.to_owned())).and_text("?")
        }
        (None, None) => {
            let names: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
            format!("one of {}", names.join(", ")).into()
        }
    };
    Error::new(Code::UnknownCommand, format!("there is no command `{}` of `{path}`", wrong.escape_debug()), fix)
        .with("input", wrong)
}

/// The command that the words name, as far as they do.
fn named<'a>(root: &'a Command, words: &[String]) -> (&'a Command, String) {
    let (mut command, mut path) = (root, "pixir".to_owned());
    for word in words.iter().filter(|word| !word.starts_with('-')) {
        if let Some(below) = command.find_subcommand(word) {
            command = below;
            path.push(' ');
            path.push_str(word);
        }
    }
    (command, path)
}

/// The flag of this command that resembles a wrong one most, with those of all commands.
fn nearest_flag(command: &Command, wrong: &str) -> Option<String> {
    let common = whole();
    let is_shown = |arg: &&clap::Arg| !arg.is_hide_set();
    let hidden: Vec<&str> =
        command.get_arguments().filter(|it| it.is_hide_set()).filter_map(clap::Arg::get_long).collect();
    let mut flags: Vec<String> =
        command.get_arguments().filter(is_shown).filter_map(clap::Arg::get_long).map(str::to_owned).collect();
    let globals = common.get_arguments().filter(|it| it.is_global_set()).filter_map(clap::Arg::get_long);
    flags.extend(globals.filter(|it| !hidden.contains(it)).map(str::to_owned));
    flags.push("help".to_owned());
    let dashed: Vec<String> = flags.into_iter().map(|it| format!("--{it}")).collect();
    nearest(wrong, dashed.iter().map(String::as_str)).map(str::to_owned)
}

fn shown(value: &ContextValue) -> String {
    match value {
        ContextValue::Strings(all) => all.join(", "),
        other => other.to_string(),
    }
}
