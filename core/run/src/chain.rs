//! Runs the commands of a line and connects them by pipes. Bytes pass through unchanged.

use std::io::{self, PipeReader, PipeWriter, Write};
use std::os::fd::OwnedFd;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe::Receiver;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::commands::{Fault, Io};
use super::parse::{Command, Stderr};
use super::{After, Bound, CANNOT, Kind, Shared, Step, is_on_path, only_reads, unknown};
use call::Context;
use call::command::{Effect, Line, look_after, look_before};
use call::protection::Keeper;
use call::result::in_run_exit;
use permissions::Touch;
use process::Group;
use protocol::error::{Code, Error, Result};
use protocol::event::Preview;
use sandbox::{LEFT_BEHIND, Sandbox};

/// How many bytes of a command's stderr are retained from its start, and at least as many from its end.
const MAX_STDERR: usize = 64 << 10;
/// How long commands may take to end after they are cancelled.
const ENDING: Duration = Duration::from_secs(5);
/// How long the output is still read after every command has ended. A process that a command left behind may hold the
/// pipe open.
const DRAIN: Duration = Duration::from_millis(100);

/// Whether commands make their changes or only describe them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    Really,
    /// A dry run: commands that read run, commands that change something describe the change, programs do not run.
    Dry,
}

/// How a line ended.
#[derive(Debug, Default)]
pub struct Ended {
    /// The exit code of the last pipeline that ran. As with `pipefail`, a failure inside the pipeline counts.
    pub exit: i32,
    /// The exit code of each command of the last pipeline that ran.
    pub pipestatus: Vec<i32>,
    /// The stderr of the commands.
    pub stderr: Vec<u8>,
    /// The errors of the commands, each with the name of its command.
    pub errors: Vec<(String, Error)>,
    /// The stderr of commands with `2>/dev/null`. The model reads it only if the line fails.
    unwanted: Vec<u8>,
    /// Whether the dry run skipped a program or a question and assumed that it succeeds.
    pub assumed: bool,
    /// Whether the time limit stopped the line.
    pub timed_out: bool,
}

/// Receives the output of a line; returns false to receive no more.
pub type Take<'a> = &'a mut (dyn FnMut(&[u8]) -> bool + Send);

/// Runs a line. `stdin` goes to its first command; the output of each pipeline's last command goes to `take`.
///
/// # Errors
/// The system's error when it cannot create a pipe or a thread. A command that fails is reported in [`Ended`].
pub(crate) async fn perform(
    bound: &Bound,
    stdin: Option<Vec<u8>>,
    how: How,
    limit: Duration,
    ctx: &Context,
    effects: &Shared,
    take: Take<'_>,
) -> Result<Ended> {
    let mut ended = Ended::default();
    let deadline = Instant::now() + limit;
    let mut stdin = stdin;
    let mut number = 0;
    for (after, steps) in &bound.pipelines {
        let first = number;
        number += steps.len();
        let runs = match after {
            After::Anything => true,
            After::Success => ended.exit == 0,
            After::Failure => ended.exit != 0,
        };
        let given = stdin.take();
        let mut run = Run { ctx, how, effects, deadline, first, ended: &mut ended };
        if !runs {
            run.note_what_may_be(steps);
            continue;
        }
        if !run.pipeline(steps, given, take).await? {
            ended.timed_out = true;
            ended.exit = 124;
            break;
        }
    }
    if ended.exit != 0 {
        let unwanted = std::mem::take(&mut ended.unwanted);
        ended.stderr.extend(unwanted);
    }
    Ok(ended)
}

struct Run<'a> {
    ctx: &'a Context,
    how: How,
    effects: &'a Shared,
    deadline: Instant,
    /// The number of the pipeline's first command within the line.
    first: usize,
    ended: &'a mut Ended,
}

/// A running or finished command.
enum Stage {
    /// It runs on its own thread.
    Builtin(oneshot::Receiver<StageEnded>),
    Program {
        child: Box<tokio::process::Child>,
        group: Arc<Group>,
        sandbox: Sandbox,
    },
    /// It has ended, or a dry run skips it.
    Over(i32),
}

struct StageEnded {
    exit: i32,
    error: Option<Error>,
    stderr: Vec<u8>,
}

impl Run<'_> {
    /// Adds commands that the dry run skipped to the preview. The real run may reach them when an earlier command was
    /// only assumed to succeed.
    fn note_what_may_be(&self, steps: &[Step]) {
        if self.how == How::Really || !(self.ended.assumed || self.effects.lock().would_do_anything()) {
            return;
        }
        for (i, step) in steps.iter().enumerate() {
            self.plan_unknown(i, step, "perhaps");
        }
    }

    fn plan_unknown(&self, i: usize, step: &Step, would: &str) {
        if matches!(step.touch, Touch::Read | Touch::Outside { .. }) {
            return;
        }
        let paths = step.touch.file().map(str::to_owned).into_iter().collect();
        let target = step.command.to_string();
        let mut effects = self.effects.lock();
        effects.previewed.insert(self.first + i, None);
        effects.previews.push(Preview { would: would.to_owned(), target, paths, ..Preview::default() });
    }

    /// Whether the preview covers this command. A command that does more than read runs only if the preview covers it,
    /// because the user approved the preview.
    fn is_planned(&self, i: usize, step: &Step) -> bool {
        let mut effects = self.effects.lock();
        match self.how {
            How::Dry => {
                effects.previewed.entry(self.first + i).or_insert(None);
                true
            }
            How::Really => step.touch.only_reads() || effects.previewed.contains_key(&(self.first + i)),
        }
    }

    /// Runs one pipeline; returns false when it exceeds the time limit.
    async fn pipeline(&mut self, steps: &[Step], stdin: Option<Vec<u8>>, take: Take<'_>) -> Result<bool> {
        let runs_programs = steps.iter().any(|step| matches!(step.kind, Kind::Program { runs_unasked: false }));
        let changes_files = self.how == How::Really && runs_programs;
        let before = self.effects.lock().changes.len();
        let is_guarded = |step: &Step| {
            matches!(step.kind, Kind::Program { runs_unasked: false })
                && self.line_of(&step.command, false).config_keeper(self.ctx) == Keeper::Guard
        };
        let keeper = if steps.iter().any(is_guarded) { Keeper::Guard } else { Keeper::Kernel };
        let watched = if changes_files { Some(look_before(self.ctx, keeper).await?) } else { None };
        let in_time = self.stages(steps, stdin, take).await?;
        if let Some(watched) = watched {
            let Effect { changes: found, taken, notes } = look_after(self.ctx, watched).await;
            let mut effects = self.effects.lock();
            effects.taken.extend(taken);
            // Built-in commands report their own changes, so the snapshot's finding of the same file is dropped.
            let own: Vec<String> = effects.changes[before..].iter().map(|change| change.path.clone()).collect();
            let found: Vec<_> = found.into_iter().filter(|change| !own.contains(&change.path)).collect();
            for change in &found {
                // The line itself changed this file, so a later edit must not fail with `FILE_CHANGED`.
                if let Ok(at) = self.ctx.workspace.locate(&change.path) {
                    self.ctx.read_set.forget(&self.ctx.workspace, &at);
                }
            }
            effects.changes.extend(found);
            if !effects.notes.contains(&notes) {
                effects.notes.push_str(&notes);
            }
        }
        Ok(in_time)
    }

    async fn stages(&mut self, steps: &[Step], stdin: Option<Vec<u8>>, take: Take<'_>) -> Result<bool> {
        let failed = |e: io::Error| {
            Error::new(Code::CommandFailed, format!("create the pipeline: {e}"), "fewer commands in one line")
        };
        let (last_out, last_in) = io::pipe().map_err(failed)?;
        let output = Receiver::from_owned_fd(OwnedFd::from(last_out)).map_err(failed)?;
        let mut last_in = Some(last_in);
        let mut input = match stdin {
            Some(bytes) => Some(fed(bytes).map_err(failed)?),
            None => None,
        };
        let mut stages = Vec::new();
        let mut unknown_input = false;
        for (i, step) in steps.iter().enumerate() {
            let is_last = i + 1 == steps.len();
            let (next, out) = if is_last {
                (None, last_in.take().expect("there is one last command"))
            } else {
                let (reader, writer) = io::pipe().map_err(failed)?;
                (Some(reader), writer)
            };
            let stdin = std::mem::replace(&mut input, next);
            let name = &step.command.words[0].text;
            let refused = |error: Error, ended: &mut Ended| {
                let exit = in_run_exit(&error);
                ended.errors.push((name.clone(), error));
                Stage::Over(exit)
            };
            let stage = match &step.kind {
                _ if !self.is_planned(i, step) => {
                    let message = "this command was not part of the preview";
                    refused(Error::new(Code::FileChanged, message, "check the files, then repeat the line"), self.ended)
                }
                Kind::Unknown => refused(unknown(name), self.ended),
                // A dry run comes before the gate, so it reads nothing outside the workspace.
                Kind::Builtin(_) if self.how == How::Dry && step.touch != Touch::Read && step.touch.only_reads() => {
                    (unknown_input, self.ended.assumed) = (true, true);
                    Stage::Over(0)
                }
                Kind::Program { .. } if self.how == How::Dry => {
                    (unknown_input, self.ended.assumed) = (true, true);
                    let preview = Preview { would: "run".into(), target: step.command.quoted(), ..Preview::default() };
                    self.effects.lock().previews.push(preview);
                    Stage::Over(0)
                }
                // The program was allowed because it only reads. An earlier command may have changed that.
                Kind::Program { runs_unasked: true } if !only_reads(&step.command, self.ctx) => {
                    let message = "the preview showed a command that only reads, but now it may change something";
                    refused(Error::new(Code::FileChanged, message, "check the files, then repeat the line"), self.ended)
                }
                // An earlier command should have created this program but did not.
                Kind::Program { .. } if !is_on_path(name, self.ctx) => refused(unknown(name), self.ended),
                Kind::Program { runs_unasked } => match self.start(&step.command, *runs_unasked, stdin, out) {
                    Ok(stage) => stage,
                    Err(error) => refused(error, self.ended),
                },
                Kind::Builtin(builtin) => {
                    let io = Io {
                        stdin: stdin.map(|it| Box::new(it) as Box<dyn io::Read + Send>),
                        out: Box::new(io::BufWriter::with_capacity(32 << 10, out)),
                        stderr: Vec::new(),
                        missing: None,
                        ctx: self.ctx.clone(),
                        effects: self.effects.clone(),
                        how: self.how,
                        runtime: tokio::runtime::Handle::current(),
                        number: self.first + i,
                        outside: outside_of(&step.touch),
                        unknown_input,
                    };
                    // A dry run does not ask the user, so the next command's stdin is unknown.
                    if self.how == How::Dry && builtin.asks_others {
                        (unknown_input, self.ended.assumed) = (true, true);
                    }
                    spawn(builtin, step.command.clone(), io).map_err(failed)?
                }
            };
            stages.push(stage);
        }
        drop(input);
        self.attend(steps, stages, output, take).await
    }

    fn line_of(&self, command: &Command, runs_unasked: bool) -> Line {
        let words: Vec<String> = command.words.iter().map(|word| word.text.clone()).collect();
        Line {
            program: words[0].clone(),
            args: words[1..].to_vec(),
            folder: self.ctx.workspace.root().to_owned(),
            runs_unasked,
            is_job: false,
        }
    }

    /// Starts a program; `stdin` and `out` are its ends of the neighbouring pipes.
    fn start(
        &self,
        command: &Command,
        runs_unasked: bool,
        stdin: Option<PipeReader>,
        out: PipeWriter,
    ) -> Result<Stage> {
        let mut ready = self.line_of(command, runs_unasked).ready(self.ctx);
        let failed = |e: io::Error| {
            Error::new(Code::CommandFailed, format!("start the program: {e}"), "check that the program exists")
        };
        if let Some(stdin) = stdin {
            ready.stdin(Stdio::from(stdin));
        }
        if command.stderr == Stderr::Joined {
            ready.stderr(Stdio::from(out.try_clone().map_err(failed)?));
        }
        ready.stdout(Stdio::from(out));
        let (child, group) = Group::start(ready, &self.ctx.stopping).map_err(failed)?;
        // `ready` is dropped here, so only the child holds the pipe ends. A second holder would prevent end of file.
        let sandbox = self.ctx.sandbox.clone();
        Ok(Stage::Program { child: Box::new(child), group: Arc::new(group), sandbox })
    }

    /// Waits for every command and passes the last one's output to `take`; returns false when the time limit expires.
    async fn attend(&mut self, steps: &[Step], stages: Vec<Stage>, output: Receiver, take: Take<'_>) -> Result<bool> {
        let groups: Vec<Arc<Group>> = stages.iter().filter_map(Stage::group).collect();
        let all = join_all(stages.into_iter().map(over));
        tokio::pin!(all);
        // If this future is dropped, the guard cancels the built-ins before the programs that feed them are stopped. A
        // built-in then discards the partial input instead of writing it to a file.
        let told = self.ctx.cancel.clone().drop_guard();
        let mut output = Some(output);
        let mut buffer = vec![0; 32 << 10];
        let mut over: Option<Vec<StageEnded>> = None;
        let mut in_time = true;
        let until = tokio::time::sleep_until(self.deadline);
        tokio::pin!(until);
        while output.is_some() || over.is_none() {
            tokio::select! {
                n = read_some(&mut output, &mut buffer), if output.is_some() => match n {
                    Ok(0) | Err(_) => output = None,
                    // Dropping the reader gives the writer EPIPE.
                    Ok(n) => output = output.take().filter(|_| take(&buffer[..n])),
                },
                ended = &mut all, if over.is_none() => {
                    over = Some(ended);
                    until.as_mut().reset(Instant::now() + DRAIN);
                }
                () = &mut until => {
                    if over.is_some() || !in_time {
                        break;
                    }
                    in_time = false;
                    self.ctx.cancel.cancel();
                    join_all(groups.iter().map(|group| group.stop())).await;
                    until.as_mut().reset(Instant::now() + ENDING);
                }
            }
        }
        // The deadline may pass while `take` is busy. Bytes that are already in the pipe still belong to the output.
        while let Some(rest) = &output {
            match rest.try_read(&mut buffer) {
                Ok(n) if n > 0 => output = output.take().filter(|_| take(&buffer[..n])),
                Ok(_) | Err(_) => break,
            }
        }
        told.disarm();
        self.tell(steps, over.unwrap_or_default());
        Ok(in_time)
    }

    fn tell(&mut self, steps: &[Step], over: Vec<StageEnded>) {
        self.ended.pipestatus = over.iter().map(|it| it.exit).collect();
        self.ended.exit = status(&over, steps);
        for (i, (step, it)) in steps.iter().zip(over).enumerate() {
            let name = &step.command.words[0].text;
            if let Some(error) = it.error {
                // After an assumed success, a failure in the dry run does not prove that the real run fails.
                let is_called_wrong = [Code::Usage, Code::UnknownFlag].contains(&error.code);
                let is_uncertain = self.ended.assumed || self.effects.lock().would_do_anything();
                if self.how == How::Dry && is_uncertain && !is_called_wrong {
                    self.plan_unknown(i, step, "perhaps");
                } else {
                    if self.how == How::Dry {
                        self.plan_unknown(i, step, CANNOT);
                    }
                    self.ended.errors.push((name.clone(), error));
                }
            }
            let told = match step.command.stderr {
                Stderr::Unwanted => &mut self.ended.unwanted,
                Stderr::Apart | Stderr::Joined => &mut self.ended.stderr,
            };
            told.extend_from_slice(&it.stderr);
            if !told.is_empty() && !told.ends_with(b"\n") {
                told.push(b'\n');
            }
        }
    }
}

impl Stage {
    fn group(&self) -> Option<Arc<Group>> {
        match self {
            Stage::Program { group, .. } => Some(Arc::clone(group)),
            Stage::Builtin(_) | Stage::Over(_) => None,
        }
    }
}

async fn read_some(output: &mut Option<Receiver>, buffer: &mut [u8]) -> io::Result<usize> {
    match output {
        Some(output) => output.read(buffer).await,
        None => std::future::pending().await,
    }
}

async fn over(stage: Stage) -> StageEnded {
    match stage {
        Stage::Over(exit) => StageEnded { exit, error: None, stderr: Vec::new() },
        Stage::Builtin(done) => {
            done.await.unwrap_or_else(|_| StageEnded { exit: 126, error: None, stderr: Vec::new() })
        }
        Stage::Program { mut child, group, sandbox } => {
            let (mut stderr, mut last, mut left_out) = (Vec::new(), Vec::new(), 0);
            let ended = process::drain(&mut child, &group, None, |_, bytes| {
                let room = MAX_STDERR.saturating_sub(stderr.len()).min(bytes.len());
                stderr.extend_from_slice(&bytes[..room]);
                last.extend_from_slice(&bytes[room..]);
                // Drop the middle: the reason for a failure is usually at the end.
                if last.len() > 2 * MAX_STDERR {
                    left_out += last.len() - MAX_STDERR;
                    last.drain(..last.len() - MAX_STDERR);
                }
            })
            .await;
            if left_out > 0 {
                stderr.extend_from_slice(format!("\n…[{left_out} bytes left out]\n").as_bytes());
            }
            stderr.append(&mut last);
            if let Ok(process::Ended::Exited(status)) = ended
                && let Some(error) = sandbox.fault(status, &stderr)
            {
                return StageEnded { exit: in_run_exit(&error), error: Some(error), stderr: Vec::new() };
            }
            if group.is_alive() {
                stderr.extend_from_slice(LEFT_BEHIND.as_bytes());
                // A remaining process would hold the pipe open, and the next command would wait for its end.
                group.stop().await;
            }
            StageEnded { exit: ended.map_or(126, process::Ended::code), error: None, stderr }
        }
    }
}

/// The paths outside the workspace that the gate has judged.
fn outside_of(touch: &Touch) -> Vec<PathBuf> {
    if let Touch::Outside { paths, .. } = touch { paths.clone() } else { Vec::new() }
}

/// Commands whose exit code 1 means "no" and whose failures use higher codes.
const SAYS_NO: [&str; 3] = ["grep", "diff", "test"];

/// The exit code of a pipeline: that of the last command, else that of the last command before it that failed.
///
/// A command that answers "no" (`grep`, `diff`, `test`) or ends because its reader closed the pipe has not failed.
fn status(over: &[StageEnded], steps: &[Step]) -> i32 {
    const CLOSED: i32 = 128 + 13;
    let Some((last, before)) = over.split_last() else { return 0 };
    if last.exit != 0 {
        return last.exit;
    }
    let really = |(it, step): &(&StageEnded, &Step)| match it.exit {
        0 | CLOSED => false,
        1 => !(SAYS_NO.contains(&step.command.words[0].text.as_str()) && it.error.is_none()),
        _ => true,
    };
    before.iter().zip(steps).rev().find(really).map_or(0, |(it, _)| it.exit)
}

/// A pipe that a thread fills, so that a text longer than the pipe's buffer does not block the caller.
fn fed(bytes: Vec<u8>) -> io::Result<PipeReader> {
    let (reader, mut writer) = io::pipe()?;
    std::thread::Builder::new().name("pixir-stdin".into()).spawn(move || {
        // An error here means that the reader closed the pipe early, which is not a failure.
        let _ = writer.write_all(&bytes);
    })?;
    Ok(reader)
}

fn spawn(builtin: &'static super::Builtin, command: Command, mut io: Io) -> io::Result<Stage> {
    let (done, ended) = oneshot::channel();
    std::thread::Builder::new().name(format!("pixir-{}", builtin.name)).spawn(move || {
        let joined = command.stderr == Stderr::Joined;
        let run = AssertUnwindSafe(|| builtin.perform(&command.words[1..], &mut io));
        let outcome = std::panic::catch_unwind(run).unwrap_or_else(|_| {
            let fix = "another command, and report this as a bug";
            Err(Fault::Error(Error::new(Code::CommandFailed, "the command failed because of a bug in pixir", fix)))
        });
        let (exit, mut error) = match outcome {
            Ok(exit) => (exit, None),
            // The line was cancelled; otherwise the reader closed the pipe early.
            Err(Fault::Closed) if io.ctx.cancel.is_cancelled() => (130, None),
            Err(Fault::Closed) => (0, None),
            Err(Fault::Error(error)) => {
                // Exit code 1 means "no" for these commands, so their errors need a higher one.
                let least = if SAYS_NO.contains(&builtin.name) { 2 } else { 1 };
                (in_run_exit(&error).max(least), Some(error))
            }
        };
        let mut stderr = std::mem::take(&mut io.stderr);
        if joined {
            let _ = io.out.write_all(&std::mem::take(&mut stderr));
            if let Some(error) = error.take() {
                let _ = writeln!(io.out, "{}", error.for_model(builtin.name));
            }
        }
        let _ = io.out.flush();
        // The reader must see the end of the output before the end of the command.
        drop(io);
        let _ = done.send(StageEnded { exit, error, stderr });
    })?;
    Ok(Stage::Builtin(ended))
}
