//! `pixir run`: a line of the run language, presented as for a model, or byte for byte.

use std::io::{Read as _, Write as _};
use std::time::Duration;

use clap::Args;
use pixir_core::harness::Harness;
use pixir_core::permissions::Action;
use pixir_core::run::Call;
use pixir_core::tools::{self, run};
use pixir_core::{Code, Error, Result};

use super::tools::{Effect, finish, permit};
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
    let stdin = if args.stdin { Some(read_stdin()?) } else { None };
    let harness = cli.offline_harness()?;
    block_on(async {
        let mut signals = Signals::listen();
        // A signal drops the call, and with it every process that the call started.
        tokio::select! {
            outcome = attend(cli, &harness, args, stdin) => outcome,
            code = signals.next() => Ok(code),
        }
    })
}

async fn attend(cli: &Cli, harness: &Harness, args: RunArgs, stdin: Option<Vec<u8>>) -> Result<u8> {
    let RunArgs { line, raw, timeout, propagate_exit, .. } = args;
    let ctx = harness.tool_context("cli");
    let planning = ctx.clone();
    let limit = Duration::from_secs(timeout);
    let plan = move || Call::plan(&line, stdin, limit, &planning);
    let call = tokio::task::spawn_blocking(plan).await.expect("planning a line does not panic")?;
    // A line that only reads is its own preview.
    let changes = call.actions.iter().any(|action| *action != Action::Read);
    let effect = if cli.options.dry_run && changes { Effect::Preview } else { Effect::Perform };
    let exit = if raw && effect == Effect::Perform {
        permit(cli, harness, &call.actions)?;
        print_raw(call, &ctx).await?
    } else {
        finish(cli, harness, "run", run::prepared(call), ctx, effect).await?
    };
    Ok(if propagate_exit { u8::try_from(exit).unwrap_or(1) } else { 0 })
}

/// Prints every byte of the output, and nothing else.
async fn print_raw(call: Call, ctx: &tools::Context) -> Result<i32> {
    let mut failed: Option<std::io::Error> = None;
    let mut write = |bytes: &[u8]| {
        let mut out = std::io::stdout().lock();
        failed = out.write_all(bytes).and_then(|()| out.flush()).err();
        failed.is_none()
    };
    let (ended, effects) = call.perform(ctx, &mut write).await?;
    // A reader such as `head` closes the pipe when it has enough; every other failure is an error.
    if let Some(e) = failed.filter(|e| e.kind() != std::io::ErrorKind::BrokenPipe) {
        let fix = "make room, or write to another place";
        return Err(Error::new(Code::WriteFailed, format!("write the output: {e}"), fix));
    }
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
