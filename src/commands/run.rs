//! `pixir run`: a line of the run language, presented as for a model, or byte for byte.

use std::io::Read as _;
use std::time::Duration;

use clap::Args;
use pixir_core::call::{Call, Caller, Context};
use pixir_core::run::{PreparedLine, tool};
use pixir_core::{Code, Error, Harness, Result, call};
use serde_json::Value;

use super::tools::{Effect, report};
use crate::args::Format;
use crate::cli::{Cli, Signals, block_on};
use crate::output::chatter;

/// The most bytes that a line may read from stdin.
const MAX_STDIN: u64 = 256 << 20;

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// The line; `pixir run help` lists the commands
    line: String,
    /// Print the output byte for byte, without truncation or a footer
    #[arg(long)]
    raw: bool,
    /// Pass stdin to the first command of the line
    #[arg(long)]
    stdin: bool,
    /// Maximum duration
    #[arg(long, value_name = "SECONDS", default_value_t = 120, value_parser = clap::value_parser!(u64).range(1..=3600))]
    timeout: u64,
    /// Exit with the exit code of the line
    #[arg(long)]
    propagate_exit: bool,
}

pub(super) fn run(cli: &Cli, args: RunArgs) -> Result<u8> {
    if args.raw && cli.output.format != Format::Plain {
        let message = "--raw prints the bytes of the output, and no document";
        return Err(Error::new(Code::Usage, message, "leave out --raw, or --json and --format").with("input", "--raw"));
    }
    let stdin = if args.stdin { Some(read_stdin()?) } else { None };
    let harness = cli.offline_harness()?;
    block_on(async {
        let mut signals = Signals::listen()?;
        // A signal drops the call, and with it every process that the call started.
        let outcome = tokio::select! {
            outcome = attend(cli, &harness, args, stdin) => outcome,
            code = signals.next() => Ok(code),
        };
        harness.processes_stopped().await;
        outcome
    })
}

async fn attend(cli: &Cli, harness: &Harness, args: RunArgs, stdin: Option<Vec<u8>>) -> Result<u8> {
    let RunArgs { line, raw, timeout, propagate_exit, .. } = args;
    let call = Call { id: "cli".into(), tool: tool::NAME.into(), args: Value::Null, caller: Caller::Model };
    let mut ctx = harness.tool_context(&call.id);
    let preparing = ctx.clone();
    let limit = Duration::from_secs(timeout);
    let prepare = move || PreparedLine::new(&line, stdin, limit, &preparing);
    let line = tokio::task::spawn_blocking(prepare).await.expect("preparing a line does not panic")?;
    let authority = harness.unattended(cli.command_mode());
    // A line that only reads is its own preview.
    let changes = line.touches.iter().any(|touch| !touch.only_reads());
    let effect = if cli.options.dry_run && changes { Effect::Preview } else { Effect::Perform };
    let exit = if raw && effect == Effect::Perform {
        match call::gate(&call, &line.preview, &line.touches, &ctx, &authority).await {
            Ok(allowed) => {
                let call::Grant { policy, reads } = allowed.map_err(|e| cli.refused(e))?;
                (ctx.policy, ctx.reads) = (policy, reads);
            }
            Err(call::Gone) => unreachable!("only a Session drops a call"),
        }
        print_raw(cli, line, &ctx).await?
    } else {
        ctx.dry_run = effect == Effect::Preview;
        report(cli, call::carry_out_prepared(harness.registry(), &call, tool::prepared(line), ctx, &authority).await)?
    };
    Ok(if propagate_exit { u8::try_from(exit).unwrap_or(1) } else { 0 })
}

/// Prints every byte of the output, and nothing else.
async fn print_raw(cli: &Cli, line: PreparedLine, ctx: &Context) -> Result<i32> {
    let (ended, effects) = line.perform(ctx, &mut |bytes: &[u8]| cli.output.bytes(bytes)).await?;
    for (name, error) in &ended.errors {
        chatter(&error.for_model(name));
    }
    for text in [String::from_utf8_lossy(&ended.stderr).trim_end(), effects.notes.trim_end()] {
        if !text.is_empty() {
            chatter(text);
        }
    }
    match ended.errors.into_iter().next_back() {
        Some((_, error)) if ended.timed_out => Err(error),
        Some(_) | None => Ok(ended.exit),
    }
}

fn read_stdin() -> Result<Vec<u8>> {
    let fix = "save it to a file: cat <path> | …";
    let mut bytes = Vec::new();
    std::io::stdin()
        .lock()
        .take(MAX_STDIN + 1)
        .read_to_end(&mut bytes)
        .map_err(|e| Error::new(Code::StdinError, format!("read stdin: {e}"), fix))?;
    if bytes.len() as u64 > MAX_STDIN {
        return Err(Error::new(Code::StdinError, "stdin is larger than 256 MB", fix));
    }
    Ok(bytes)
}
