//! Pipes between commands, and when each runs. Layer 1: bytes, as they are.

use std::io::{self, PipeReader, PipeWriter, Write};
use std::os::fd::OwnedFd;
use std::panic::AssertUnwindSafe;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe::Receiver;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::commands::{Fault, Io};
use super::parse::{After, Command, Pipeline, Stderr};
use super::{Chain, Kind, Shared, Stdin, judged, kind_of, unknown};
use crate::error::{Code, Error, Result};
use crate::event::Plan;
use crate::process::{self, Group};
use crate::tools::Context;
use crate::tools::bash::{LEFT_BEHIND, Line, look_after, look_before};
use crate::tools::executor::in_run_exit;

/// What a command says on stderr is kept up to this, bytes.
const MAX_STDERR: usize = 64 << 10;
/// How long the last pipe is still read when every command has ended.
const DRAIN: Duration = Duration::from_millis(100);

/// Whether commands do what they say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    Really,
    /// What reads does so; what changes says what it would do; programs do not run.
    Dry,
}

/// How a chain ended.
#[derive(Debug, Default)]
pub struct Ended {
    /// As a shell would say it, but for failures in the middle of a pipeline, which count.
    pub exit: i32,
    /// Of each command of the last pipeline that ran.
    pub pipestatus: Vec<i32>,
    /// What programs said on stderr, each line after the name of its command.
    pub stderr: Vec<u8>,
    /// What our commands could not do, by name.
    pub errors: Vec<(String, Error)>,
    /// Some pipeline failed, whatever came after it.
    pub(crate) had_failure: bool,
    /// A program was not run, and was taken to have succeeded.
    pub(crate) assumed: bool,
    /// It was stopped.
    pub timed_out: bool,
}

/// Does a chain. `stdin` goes to its first command; what the last command of each pipeline prints goes to `take`.
///
/// # Errors
/// What the system says when there are no more pipes or processes; a command that fails is no error.
pub(crate) async fn perform(
    chain: &Chain,
    stdin: Option<Vec<u8>>,
    how: How,
    limit: Duration,
    ctx: &Context,
    effects: &Shared,
    take: &mut (dyn FnMut(&[u8]) + Send),
) -> Result<Ended> {
    let mut ended = Ended::default();
    let deadline = Instant::now() + limit;
    let mut stdin = stdin;
    let mut number = 0;
    for pipeline in &chain.pipelines {
        let first = number;
        number += pipeline.commands.len();
        let runs = match pipeline.after {
            After::Anything => true,
            After::Success => ended.exit == 0,
            After::Failure => ended.exit != 0,
        };
        let given = stdin.take();
        if !runs {
            continue;
        }
        let mut run = Run { ctx, how, effects, deadline, first, ended: &mut ended };
        if !run.pipeline(pipeline, given, take).await? {
            ended.timed_out = true;
            ended.exit = 124;
            return Ok(ended);
        }
    }
    Ok(ended)
}

struct Run<'a> {
    ctx: &'a Context,
    how: How,
    effects: &'a Shared,
    deadline: Instant,
    /// The number of its first command in the chain.
    first: usize,
    ended: &'a mut Ended,
}

/// A command that runs.
enum Stage {
    /// On a thread of its own.
    Builtin(oneshot::Receiver<BuiltinEnded>),
    Program {
        child: Box<tokio::process::Child>,
        group: Group,
    },
    /// It has ended already, or is only planned.
    Over(i32),
}

struct BuiltinEnded {
    exit: i32,
    error: Option<Error>,
    said: Vec<u8>,
}

impl Run<'_> {
    /// False when it took too long.
    async fn pipeline(
        &mut self,
        pipeline: &Pipeline,
        stdin: Option<Vec<u8>>,
        take: &mut (dyn FnMut(&[u8]) + Send),
    ) -> Result<bool> {
        let kinds = pipeline.commands.iter().map(|it| kind_of(it, self.ctx)).collect::<Result<Vec<_>>>()?;
        if let Some((name, error)) = wrong_stdin(&pipeline.commands, &kinds, stdin.is_some()) {
            self.ended.exit = in_run_exit(&error);
            self.ended.pipestatus = vec![self.ended.exit];
            self.ended.had_failure = true;
            self.ended.errors.push((name, error));
            return Ok(true);
        }
        let changes_files =
            self.how == How::Really && kinds.iter().any(|kind| matches!(kind, Kind::Program { runs_unasked: false }));
        let before = self.effects.lock().changes.len();
        if changes_files {
            look_before(self.ctx).await;
        }
        let in_time = self.stages(pipeline, &kinds, stdin, take).await?;
        if changes_files {
            let (found, notes) = look_after(self.ctx).await;
            let mut effects = self.effects.lock();
            // What one of our own commands changed meanwhile it has told itself.
            let own: Vec<String> = effects.changes[before..].iter().map(|change| change.path.clone()).collect();
            effects.changes.extend(found.into_iter().filter(|change| !own.contains(&change.path)));
            if !effects.notes.contains(&notes) {
                effects.notes.push_str(&notes);
            }
        }
        Ok(in_time)
    }

    async fn stages(
        &mut self,
        pipeline: &Pipeline,
        kinds: &[Kind],
        stdin: Option<Vec<u8>>,
        take: &mut (dyn FnMut(&[u8]) + Send),
    ) -> Result<bool> {
        let failed = |e: io::Error| {
            Error::new(
                Code::CommandFailed,
                format!("the pipeline could not be made: {e}"),
                "fewer commands in one line",
            )
        };
        let (last_out, last_in) = io::pipe().map_err(failed)?;
        let mut output = Receiver::from_owned_fd(OwnedFd::from(last_out)).map_err(failed)?;
        let mut last_in = Some(last_in);
        let mut input = match stdin {
            Some(bytes) => Some(fed(bytes).map_err(failed)?),
            None => None,
        };
        let mut stages = Vec::new();
        let mut unknown_input = false;
        for (i, (command, kind)) in pipeline.commands.iter().zip(kinds).enumerate() {
            let is_last = i + 1 == pipeline.commands.len();
            let (next, out) = if is_last {
                (None, last_in.take().expect("there is one last command"))
            } else {
                let (reader, writer) = io::pipe().map_err(failed)?;
                (Some(reader), writer)
            };
            let stdin = std::mem::replace(&mut input, next);
            let stage = match kind {
                Kind::Unknown => {
                    let error = unknown(&command.words[0].text);
                    let exit = in_run_exit(&error);
                    self.ended.errors.push((command.words[0].text.clone(), error));
                    Stage::Over(exit)
                }
                Kind::Program { .. } if self.how == How::Dry => {
                    (unknown_input, self.ended.assumed) = (true, true);
                    let plan = Plan { would: "run".into(), target: judged(command), ..Plan::default() };
                    self.effects.lock().plans.push(plan);
                    Stage::Over(0)
                }
                Kind::Program { runs_unasked } => match self.start(command, *runs_unasked, stdin, out).await {
                    Ok(stage) => stage,
                    Err(error) => {
                        self.ended.errors.push((command.words[0].text.clone(), error));
                        Stage::Over(126)
                    }
                },
                Kind::Builtin(builtin) => {
                    let io = Io {
                        stdin: stdin.map(|it| Box::new(it) as Box<dyn io::Read + Send>),
                        out: Box::new(io::BufWriter::with_capacity(32 << 10, out)),
                        said: Vec::new(),
                        ctx: self.ctx.clone(),
                        effects: self.effects.clone(),
                        how: self.how,
                        runtime: tokio::runtime::Handle::current(),
                        number: self.first + i,
                        unknown_input,
                    };
                    spawn(builtin, command.clone(), io).map_err(failed)?
                }
            };
            stages.push(stage);
        }
        drop(input);
        self.attend(pipeline, stages, &mut output, take).await
    }

    /// Starts a program between two pipes.
    async fn start(
        &self,
        command: &Command,
        runs_unasked: bool,
        stdin: Option<PipeReader>,
        out: PipeWriter,
    ) -> Result<Stage> {
        let words: Vec<String> = command.words.iter().map(|word| word.text.clone()).collect();
        let line = Line {
            command: process::program(&words[0], &words[1..]),
            folder: self.ctx.workspace.root().to_owned(),
            runs_unasked,
        };
        let mut ready = line.ready(self.ctx);
        let failed = |e: io::Error| {
            Error::new(Code::CommandFailed, format!("it could not be started: {e}"), "check that the program is there")
        };
        if let Some(stdin) = stdin {
            ready.stdin(Stdio::from(stdin));
        }
        if command.stderr == Stderr::Joined {
            ready.stderr(Stdio::from(out.try_clone().map_err(failed)?));
        }
        ready.stdout(Stdio::from(out));
        let (child, group) = Group::start(ready).map_err(failed)?;
        // The pipes are the child's now; as long as we held them too, nobody would see their end.
        Ok(Stage::Program { child: Box::new(child), group })
    }

    /// Waits for every command, and takes in what the last one prints. False when it took too long.
    async fn attend(
        &mut self,
        pipeline: &Pipeline,
        stages: Vec<Stage>,
        output: &mut Receiver,
        take: &mut (dyn FnMut(&[u8]) + Send),
    ) -> Result<bool> {
        let all = futures_util::future::join_all(stages.into_iter().map(over));
        tokio::pin!(all);
        let mut buffer = vec![0; 32 << 10];
        let mut over: Option<Vec<StageEnded>> = None;
        let mut open = true;
        let until = tokio::time::sleep_until(self.deadline);
        tokio::pin!(until);
        while open || over.is_none() {
            tokio::select! {
                n = output.read(&mut buffer), if open => match n {
                    Ok(0) | Err(_) => open = false,
                    Ok(n) => take(&buffer[..n]),
                },
                ended = &mut all, if over.is_none() => {
                    over = Some(ended);
                    until.as_mut().reset(Instant::now() + DRAIN);
                }
                () = &mut until => break,
            }
        }
        let Some(over) = over else { return Ok(false) };
        self.ended.pipestatus = over.iter().map(|it| it.exit).collect();
        for (command, it) in pipeline.commands.iter().zip(over) {
            let name = &command.words[0].text;
            if let Some(error) = it.error {
                self.ended.errors.push((name.clone(), error));
            }
            if command.stderr != Stderr::Unwanted || it.exit != 0 {
                let before = self.ended.stderr.len();
                for line in it.said.split_inclusive(|b| *b == b'\n') {
                    self.ended.stderr.extend_from_slice(format!("{name}: ").as_bytes());
                    self.ended
                        .stderr
                        .extend_from_slice(line.strip_prefix(format!("{name}: ").as_bytes()).unwrap_or(line));
                }
                if self.ended.stderr.len() > before && !self.ended.stderr.ends_with(b"\n") {
                    self.ended.stderr.push(b'\n');
                }
            }
        }
        self.ended.exit = status(&self.ended.pipestatus, pipeline);
        self.ended.had_failure |= self.ended.exit != 0;
        Ok(true)
    }
}

struct StageEnded {
    exit: i32,
    error: Option<Error>,
    said: Vec<u8>,
}

async fn over(stage: Stage) -> StageEnded {
    match stage {
        Stage::Over(exit) => StageEnded { exit, error: None, said: Vec::new() },
        Stage::Builtin(done) => match done.await {
            Ok(BuiltinEnded { exit, error, said }) => StageEnded { exit, error, said },
            Err(_) => StageEnded { exit: 126, error: None, said: Vec::new() },
        },
        Stage::Program { mut child, group } => {
            let mut said = Vec::new();
            let ended = process::drain(&mut child, &group, None, |_, bytes| {
                let room = MAX_STDERR.saturating_sub(said.len()).min(bytes.len());
                said.extend_from_slice(&bytes[..room]);
            })
            .await;
            if group.is_alive() {
                said.extend_from_slice(LEFT_BEHIND);
            }
            // Whoever is left holds the pipe open that the next command reads.
            drop(group);
            StageEnded { exit: ended.map_or(126, process::Ended::code), error: None, said }
        }
    }
}

/// The last command's exit, or that of the last one before it that really failed: not of one that only says "no"
/// (`grep`, `diff`, `test`), nor of one whose reader had enough.
fn status(pipestatus: &[i32], pipeline: &Pipeline) -> i32 {
    const CLOSED: i32 = 128 + 13;
    let Some((last, before)) = pipestatus.split_last() else { return 0 };
    if *last != 0 {
        return *last;
    }
    let says_no = |command: &Command| ["grep", "diff", "test", "["].contains(&command.words[0].text.as_str());
    let failed = before.iter().zip(&pipeline.commands).rev();
    failed
        .map(|(exit, command)| (*exit, command))
        .find_map(|(exit, command)| match exit {
            0 | CLOSED => None,
            1 if says_no(command) => None,
            exit => Some(exit),
        })
        .unwrap_or(0)
}

/// A command that gets what it does not read, or does not get what it needs, is not run; nor is the rest of its pipeline.
fn wrong_stdin(commands: &[Command], kinds: &[Kind], given: bool) -> Option<(String, Error)> {
    commands.iter().zip(kinds).enumerate().find_map(|(i, (command, kind))| {
        let Kind::Builtin(builtin) = kind else { return None };
        let name = builtin.name;
        let is_fed = given || i > 0;
        let wants_help = command.words.get(1).is_some_and(|word| word.text == "--help" || word.text == "-h");
        match builtin.stdin {
            Stdin::None if is_fed => {
                let message = format!("it does not read stdin; usage: {}", builtin.usage_line());
                Some((name.to_owned(), Error::new(Code::Usage, message, format!("{name} --help"))))
            }
            Stdin::Required if !is_fed && !wants_help => Some((name.to_owned(), builtin.usage_error())),
            Stdin::None | Stdin::Optional | Stdin::Required => None,
        }
    })
}

/// A pipe that a thread fills, so that it holds up nobody however long the text is.
fn fed(bytes: Vec<u8>) -> io::Result<PipeReader> {
    let (reader, mut writer) = io::pipe()?;
    std::thread::Builder::new().name("pixir-stdin".into()).spawn(move || {
        // A reader that has enough is no failure.
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
            let fix = "take another way; this is a fault of pixir";
            Err(Fault::Error(Error::new(Code::CommandFailed, "the command broke", fix)))
        });
        let (exit, mut error) = match outcome {
            Ok(exit) => (exit, None),
            // Its reader has enough, or nobody waits for it any more.
            Err(Fault::Closed) => (0, None),
            Err(Fault::Error(error)) => (in_run_exit(&error), Some(error)),
        };
        let mut said = std::mem::take(&mut io.said);
        if joined {
            let _ = io.out.write_all(&std::mem::take(&mut said));
            if let Some(error) = error.take() {
                let _ = writeln!(io.out, "{}", error.for_model(builtin.name));
            }
        }
        let _ = io.out.flush();
        // The end of the output is seen before the end of the command.
        drop(io);
        let _ = done.send(BuiltinEnded { exit, error, said });
    })?;
    Ok(Stage::Builtin(ended))
}
