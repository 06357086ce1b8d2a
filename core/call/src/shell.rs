//! A command line that bash runs for a call: what it would delete, its output as it comes, its end.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use super::blocked::Tail;
use super::command::{Line, look_after, look_before, tell, timed_out};
use super::{Context, Output, Prepared, lacked};
use files::size::Size;
use files::workspace::Inside;
use permissions::{Touch, prove_read_only, rules};
use process::{Ended, Group, Stream};
use protocol::error::{Code, Error, Result};
use protocol::event::Preview;
use sandbox::LEFT_BEHIND;

/// The name of the tool that runs command lines.
pub const NAME: &str = "bash";
/// The longest time limit that a call may set, seconds.
pub const MAX_TIMEOUT: u64 = 3_600;
/// The longest command line, bytes.
pub const MAX_COMMAND: usize = 128 << 10;

/// Prepares a command, of which each stream is collected besides.
///
/// # Errors
/// As for a call of the tool.
pub fn heard_by(command: String, limit: Duration, heard: Arc<Mutex<Heard>>, ctx: &Context) -> Result<Prepared> {
    if command.contains('\0') || command.len() > MAX_COMMAND {
        let message = "the command is longer than 128 KB or holds a NUL byte";
        return Err(Error::new(Code::InvalidArgs, message, "a shorter command, with long text in a file"));
    }
    let at = ctx.workspace.locate(".")?;
    let runs_unasked = prove_read_only(&command, ctx.readable()).is_ok();
    let danger = if runs_unasked { None } else { danger(&command, &at, ctx) };
    let preview = Preview { would: "run".into(), target: command.clone(), danger, ..Preview::default() };
    let line = Line::shell(&command, ctx.workspace.path_of(&at), runs_unasked);
    Ok(Prepared::new(preview, Touch::Command(command), move |ctx| async move {
        let mut output = Output::new(&ctx, ctx.limits.typed());
        let mut hear = |stream, bytes: &[u8]| heard.lock().take(stream, bytes);
        if runs_unasked {
            run(line, limit, &ctx, &mut output, Some(&mut hear)).await?;
            return Ok(output);
        }
        let watched = look_before(&ctx, line.config_keeper(&ctx)).await?;
        run(line, limit, &ctx, &mut output, Some(&mut hear)).await?;
        let found = look_after(&ctx, watched).await;
        output.changes = found.changes;
        output.taken = found.taken;
        Ok(output)
    }))
}

/// What the command would delete, as far as that is known before it runs.
pub fn danger(command: &str, folder: &Inside, ctx: &Context) -> Option<String> {
    let places = rules::deleted(command)?.into_iter().map(|path| {
        let path = match folder.display() {
            at if at == "." || path.starts_with('/') => path,
            at => format!("{at}/{path}"),
        };
        Some(ctx.workspace.path_of(&ctx.workspace.locate(&path).ok()?))
    });
    Size::of(places.collect::<Option<Vec<_>>>()?).deletes()
}

/// What a command wrote, each stream alone.
#[derive(Debug, Default)]
pub struct Heard {
    /// The first megabyte.
    pub stdout: Vec<u8>,
    /// The last two kilobytes.
    pub stderr: Vec<u8>,
}

impl Heard {
    const MAX_STDOUT: usize = 1 << 20;
    const MAX_STDERR: usize = 2 << 10;

    fn take(&mut self, stream: Stream, bytes: &[u8]) {
        match stream {
            Stream::Out => {
                let room = Self::MAX_STDOUT.saturating_sub(self.stdout.len()).min(bytes.len());
                self.stdout.extend_from_slice(&bytes[..room]);
            }
            Stream::Err => {
                self.stderr.extend_from_slice(bytes);
                self.stderr.drain(..self.stderr.len().saturating_sub(Self::MAX_STDERR));
            }
        }
    }
}

/// What takes the bytes of each stream alone.
pub type Hear<'a> = &'a mut (dyn FnMut(Stream, &[u8]) + Send);

/// Runs the line until it has ended or its time is over, and stops what it leaves behind.
///
/// # Errors
/// `COMMAND_FAILED` when bash cannot be started, and what the sandbox could not set up.
pub async fn run(
    line: Line,
    limit: Duration,
    ctx: &Context,
    output: &mut Output,
    mut hear: Option<Hear<'_>>,
) -> Result<()> {
    let ran = line.ran();
    // Dropping the group stops every process of the command, also after an interrupt or a panic.
    let started = match hear {
        Some(_) => Group::start(line.ready(ctx), &ctx.stopping),
        // In the order of their writing.
        None => process::joined(line.ready(ctx)).and_then(|(command, printed)| {
            let (mut child, group) = Group::start(command, &ctx.stopping)?;
            child.stdout = Some(printed);
            Ok((child, group))
        }),
    };
    let (mut child, group) = started.map_err(|e| {
        Error::new(
            Code::CommandFailed,
            format!("start bash: {e}"),
            "install bash, or check that the workspace folder still exists",
        )
    })?;
    let mut tail = Tail::default();
    let ended = process::drain(&mut child, &group, Some(limit), |stream, bytes| {
        tail.push(bytes);
        if let Some(hear) = &mut hear {
            hear(stream, bytes);
        }
        let capture = if stream == Stream::Out { &mut output.stdout } else { &mut output.stderr };
        tell(ctx, capture.push(bytes));
    })
    .await
    .map_err(|e| Error::new(Code::CommandFailed, format!("wait for the command: {e}"), "run it again"))?;
    if let Ended::Exited(status) = ended
        && let Some(error) = ctx.sandbox.fault(status, tail.bytes())
    {
        return Err(error);
    }
    if ended == Ended::TimedOut {
        group.stop().await;
        output.stderr.push(timed_out(limit).as_bytes());
    } else if group.is_alive() {
        group.stop().await;
        output.stderr.push(LEFT_BEHIND.as_bytes());
    }
    output.exit = ended.code();
    if let Ended::Exited(_) = ended {
        output.blocked = tail.blocked(&ran, output.exit, ctx);
        let printed = String::from_utf8_lossy(tail.bytes());
        let notes = lacked::notes(&ran, output.exit, &printed, output.blocked.is_some(), ctx);
        output.stderr.push(notes.as_bytes());
    }
    Ok(())
}
