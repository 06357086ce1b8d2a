//! Errors of the argument parser, reported like every other error.

use clap::CommandFactory as _;
use clap::error::{ContextKind, ErrorKind};
use pixir_core::error::nearest;
use pixir_core::{Code, Error};

use super::{Args, OutputOptions};
use crate::output::{Output, exit_code, report_unprinted};

/// Prints help and version as results and everything else as an error; returns the exit code.
pub(crate) fn reject(e: &clap::Error) -> u8 {
    match e.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            let output = Output::new(&OutputOptions::default());
            // The parser prints to stdout itself, in colour where that is a terminal.
            output.write(|_| e.print());
            return report_unprinted(&output, 0);
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = e.print();
            return exit_code(Code::Usage);
        }
        _ => {}
    }
    let error = usage_error(e);
    // Parsing failed, so the requested format is read from the words themselves.
    let words: Vec<String> = std::env::args().skip(1).take_while(|word| word != "--").collect();
    let requests = |format: &str| {
        words.contains(&format!("--format={format}"))
            || words.windows(2).any(|pair| pair[0] == "--format" && pair[1] == format)
    };
    let json = words.iter().any(|word| word == "--json") || requests("json") || requests("jsonl");
    let output = Output::new(&OutputOptions { json, ..OutputOptions::default() });
    if requests("jsonl") {
        output.failed_result(&error);
    }
    output.error(&error);
    exit_code(error.code)
}

fn usage_error(e: &clap::Error) -> Error {
    let context = |kind| e.get(kind).map(ToString::to_string);
    let code = match e.kind() {
        ErrorKind::UnknownArgument => Code::UnknownFlag,
        ErrorKind::InvalidSubcommand => Code::UnknownCommand,
        _ => Code::Usage,
    };
    let rendered = e.to_string();
    // clap lists missing arguments on lines of their own, below the message.
    let lines: Vec<&str> = rendered.lines().take_while(|line| !line.is_empty()).map(str::trim).collect();
    let message = lines.join(" ").trim_start_matches("error: ").to_owned();
    let input = context(ContextKind::InvalidArg).or_else(|| context(ContextKind::InvalidSubcommand));
    let suggestion = match (code, &input) {
        (Code::UnknownFlag, Some(flag)) => nearest_flag(flag),
        _ => context(ContextKind::SuggestedSubcommand).or_else(|| context(ContextKind::SuggestedValue)),
    };
    let fix = suggestion.map_or_else(
        || {
            let usage = rendered.lines().find_map(|line| line.strip_prefix("Usage: ")).unwrap_or("pixir");
            let is_command = |word: &&str| word.starts_with(|c: char| c.is_ascii_lowercase());
            let command: Vec<&str> = usage.split_whitespace().take_while(is_command).collect();
            format!("{} --help", command.join(" "))
        },
        |suggestion| format!("did you mean {suggestion}?"),
    );
    let error = Error::new(code, message, fix);
    match input {
        Some(input) => error.with("input", input),
        None => error,
    }
}

fn nearest_flag(wrong: &str) -> Option<String> {
    let command = Args::command();
    let flags: Vec<String> =
        command.get_arguments().filter_map(|arg| arg.get_long().map(|long| format!("--{long}"))).collect();
    nearest(wrong, flags.iter().map(String::as_str)).map(str::to_owned)
}
