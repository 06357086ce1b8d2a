//! `pixir run`: a line of commands, as a model would run it, or byte for byte.

use std::io::{Read as _, Write as _};
use std::time::Duration;

use pixir_core::call::{self, Call, Caller, Context, Unattended};
use pixir_core::event::Mode;
use pixir_core::harness::Harness;
use pixir_core::permissions::Action;
use pixir_core::run;
use pixir_core::{Code, Error, Result};
use serde_json::Value;

use super::tools::report;
use crate::headless::Signals;
use crate::output::{Output, chatter};

/// The most that is taken from stdin, bytes.
const MAX_STDIN: u64 = 256 << 20;

/// What is to be run, and how.
pub(crate) struct Job {
    pub(crate) line: String,
    pub(crate) stdin: Option<Vec<u8>>,
    /// Seconds.
    pub(crate) timeout: u64,
    pub(crate) raw: bool,
    pub(crate) propagate_exit: bool,
    pub(crate) mode: Mode,
    pub(crate) dry_run: bool,
}

/// Runs it. A signal ends it, with everything that it has started.
pub(crate) async fn run(harness: &Harness, job: Job, output: &Output) -> Result<u8> {
    let mut signals = Signals::listen();
    let outcome = tokio::select! {
        outcome = attend(harness, job, output) => outcome,
        code = signals.next() => Ok(code),
    };
    harness.processes_stopped().await;
    outcome
}

async fn attend(harness: &Harness, job: Job, output: &Output) -> Result<u8> {
    let Job { line, stdin, timeout, raw, propagate_exit, mode, dry_run } = job;
    let call = Call { id: "cli".into(), tool: run::tool::NAME.into(), args: Value::Null, caller: Caller::Model };
    let mut ctx = harness.tool_context(&call.id);
    let planning = ctx.clone();
    let limit = Duration::from_secs(timeout);
    let plan = move || run::Call::plan(&line, stdin, limit, &planning);
    let line = tokio::task::spawn_blocking(plan).await.expect("planning a line does not panic")?;
    let authority = Unattended { mode };
    // A line that only reads is its own preview.
    let dry_run = dry_run && line.actions.iter().any(|action| *action != Action::Read);
    let exit = if raw && !dry_run {
        match call::gate(&call, &line.plan, &line.actions, &ctx, &authority).await {
            Ok(allowed) => allowed?,
            Err(call::Gone) => unreachable!("only a Session drops a call"),
        }
        print(line, &ctx).await?
    } else {
        ctx.dry_run = dry_run;
        report(call::carry_out_prepared(&call, run::tool::prepared(line), ctx, &authority).await, output)?
    };
    Ok(if propagate_exit { u8::try_from(exit).unwrap_or(1) } else { 0 })
}

/// Layer 1: every byte, and nothing else.
async fn print(line: run::Call, ctx: &Context) -> Result<i32> {
    let mut broke: Option<std::io::Error> = None;
    let mut write = |bytes: &[u8]| {
        let mut out = std::io::stdout().lock();
        let written = out.write_all(bytes).and_then(|()| out.flush());
        // Whoever reads may have enough; whatever else happens is told.
        broke = written.err();
        broke.is_none()
    };
    let (ended, effects) = line.perform(ctx, &mut write).await?;
    if let Some(e) = broke.filter(|e| e.kind() != std::io::ErrorKind::BrokenPipe) {
        return Err(Error::new(Code::WriteFailed, format!("write the output: {e}"), "make room, or write elsewhere"));
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
        _ => Ok(ended.exit),
    }
}

/// All of our stdin, for the first command of the line.
pub(crate) fn stdin() -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    std::io::stdin()
        .lock()
        .take(MAX_STDIN + 1)
        .read_to_end(&mut bytes)
        .map_err(|e| Error::new(Code::StdinError, format!("read stdin: {e}"), "put it into a file: cat <path> | …"))?;
    if bytes.len() as u64 > MAX_STDIN {
        let fix = "put it into a file: cat <path> | …";
        return Err(Error::new(Code::StdinError, "stdin is larger than 256 MB", fix));
    }
    Ok(bytes)
}
