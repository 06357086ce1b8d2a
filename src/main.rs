//! The entry point: arguments become a command, and its result becomes the exit code.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Arc;

use pixir_core::{Code, Error};

mod acp; // the Presenter of editors
mod args; // the options that all commands share
mod cli; // options, environment and output: the context of every command
mod commands; // one file per command
mod headless; // the plain Presenter
mod json_rpc; // lines of JSON-RPC, and the one writer of them
mod serve; // the Presenter of other agents: an MCP server
mod open; // the Session that a command opens
mod next_actions; // the commands that make sense after an error
mod output; // the one writer to stdout and stderr
mod remedies; // the text of remedies on the command line
mod start; // what happens before `main`, and the limits of the process
mod terminal; // the start and end of the terminal Presenter

use args::Format;
use cli::Cli;
use output::{Output, exit_code, report_unprinted};

fn main() -> ExitCode {
    if let Some(exit) = pixir_core::run_as_launcher(std::env::args_os()) {
        return exit;
    }
    start::prepare();
    if start::is_out_of_space() {
        return ExitCode::from(exit_code(Code::SessionStartFailed));
    }
    let args = match args::parse() {
        Ok(args) => args,
        Err(e) => return ExitCode::from(args::reject(&e)),
    };
    let output = Arc::new(Output::new(&args.output.clone().answering(args.run.input)));
    let run = || {
        let cli = Cli::new(args.run.clone(), Arc::clone(&output));
        cli.note_panics();
        cli.check_clock()?;
        commands::run(args, &cli)
    };
    let outcome = catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| {
        Err(Error::new(
            Code::CommandFailed,
            "pixir crashed: this is a bug",
            "please report it; pixir.log in the state folder has the details",
        ))
    });
    let exit = outcome.unwrap_or_else(|error| {
        if output.format == Format::Jsonl {
            output.failed_result(&error);
        }
        output.error(&error);
        exit_code(error.code)
    });
    ExitCode::from(report_unprinted(&output, exit))
}
