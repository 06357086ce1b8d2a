//! The command `job`: programs in the background.

use std::io::Write as _;
use std::time::Duration;

use super::{Builtin, Fault, Flags, Io, Stdin, number};
use crate::chain::How;
use crate::parse::{Command, Stderr, Word};
use crate::{Kind, kind_of, unknown};
use call::command::Line;
use call::protection::jobs::start_job;
use permissions::Touch;
use process::jobs::News;
use protocol::error::{Code, Error};
use protocol::event::{JobStatus, Preview};
use tools::job::line;
use tools::waiting::Waiting;

pub(super) const JOB: Builtin = Builtin {
    name: "job",
    about: "run programs in the background: job start [--wait-port P] <program>…, job output <n> [seconds], job list, job kill <n>",
    usage: "",
    subcommands: &[
        ("start", "<program> [argument…]"),
        ("list", ""),
        ("output", "<n> [seconds to wait]"),
        ("kill", "<n>"),
    ],
    details: "start and output take these before the program or behind <n>:\n--wait-port P    return when the job listens on this TCP port\n--wait-output R  return when a line of its output matches this regex\n--timeout S      wait at most so many seconds (default 30)\nA job ends no later than its session. Its file changes are not recorded.",
    example: "job start --wait-port 8000 -- python3 -m http.server 8000",
    stdin: Stdin::None,
    expands: false,
    asks_others: true,
    touches: |args, _| match args.first().map(|word| word.text.as_str()) {
        // The program is judged, without the options of `job`. What cannot be parsed does not run.
        Some("start") if args.len() > 1 => {
            let words = started(&JOB, &args[1..]).map_or(&args[1..], |(_, words)| words);
            Touch::Program(words.iter().map(|word| word.text.clone()).collect())
        }
        Some("kill") => Touch::Note,
        _ => Touch::Read,
    },
    run: job,
};

fn job(it: &'static Builtin, args: &[Word], io: &mut Io) -> Result<i32, Fault> {
    let (name, args) = (args[0].text.as_str(), &args[1..]);
    let jobs = io.ctx.jobs()?;
    let id = || -> Result<u32, Fault> {
        let Some(word) = args.first() else { return Err(it.subcommand_usage(name).into()) };
        Ok(u32::try_from(number(&word.text, &format!("job {name}"))?).unwrap_or(u32::MAX))
    };
    let text = match name {
        "list" => jobs.list().iter().map(|job| format!("{}\n", line(job))).collect(),
        "start" => {
            let (waiting, args) = started(it, args)?;
            if args.is_empty() {
                return Err(it.subcommand_usage("start").into());
            }
            let command = Command { words: args.to_vec(), stderr: Stderr::Apart };
            let runs_unasked = match kind_of(&command, &io.ctx)? {
                Kind::Program { runs_unasked } => runs_unasked,
                Kind::Unknown => return Err(unknown(&args[0].text).into()),
                Kind::Builtin(_) => {
                    let message = format!("{} is a built-in command and cannot run in the background", args[0].text);
                    return Err(Error::new(Code::InvalidArgs, message, "the command alone").into());
                }
            };
            let shown = command.quoted();
            if io.how == How::Dry {
                let preview = Preview { would: "run in the background".into(), target: shown, ..Preview::default() };
                io.effects.lock().previews.push(preview);
                return Ok(0);
            }
            let words: Vec<String> = args.iter().map(|word| word.text.clone()).collect();
            let ready = Line {
                program: words[0].clone(),
                args: words[1..].to_vec(),
                folder: io.ctx.workspace.root().to_owned(),
                runs_unasked,
                is_job: true,
            };
            let network = ready.network_note(&io.ctx);
            let state = {
                let _runtime = io.runtime.enter();
                start_job(ready, &jobs, &shown, &io.ctx)?
            };
            let Some(waiting) = waiting else {
                write!(io.out, "{}\n{network}", line(&state))?;
                return Ok(0);
            };
            let (told, exit) = task::block_on(&io.runtime, waiting.perform(&jobs, state.id, &io.ctx))?;
            io.out.write_all(told.as_bytes())?;
            print(io, task::block_on(&io.runtime, jobs.output(state.id, Duration::ZERO))?)?;
            io.out.write_all(network.as_bytes())?;
            return Ok(exit);
        }
        "output" => {
            let id = id()?;
            if io.how == How::Dry {
                return Ok(0);
            }
            let (waiting, seconds) = waiting_of(it, &args[1..])?;
            if let Some(waiting) = waiting {
                let (told, exit) = task::block_on(&io.runtime, waiting.perform(&jobs, id, &io.ctx))?;
                io.out.write_all(told.as_bytes())?;
                print(io, task::block_on(&io.runtime, jobs.output(id, Duration::ZERO))?)?;
                return Ok(exit);
            }
            let news = task::block_on(&io.runtime, jobs.output(id, Duration::from_secs(seconds.unwrap_or(0).min(60))))?;
            let status = news.state.status;
            print(io, news)?;
            return Ok(match status {
                JobStatus::Running | JobStatus::Stopped => 0,
                JobStatus::Ended { exit_code } => exit_code,
            });
        }
        _ => {
            let id = id()?;
            if io.how == How::Dry {
                let preview = Preview { would: "stop".into(), target: format!("job {id}"), ..Preview::default() };
                io.effects.lock().previews.push(preview);
                return Ok(0);
            }
            format!("{}\n", line(&task::block_on(&io.runtime, jobs.stop(id))?))
        }
    };
    io.out.write_all(text.as_bytes())?;
    Ok(0)
}

/// Prints a job's new output and its state.
fn print(io: &mut Io, news: News) -> Result<(), Fault> {
    io.out.write_all(&news.output)?;
    let gap = if news.output.last().is_none_or(|last| *last == b'\n') { "" } else { "\n" };
    let more = if news.more > 0 { format!("…[{} more bytes: call again]\n", news.more) } else { String::new() };
    writeln!(io.out, "{gap}{more}{}", line(&news.state))?;
    Ok(())
}

/// The wait and the program of `job start`. The options end with `--` or with the first other word.
fn started<'a>(it: &Builtin, args: &'a [Word]) -> Result<(Option<Waiting>, &'a [Word]), Error> {
    let is_option = |word: &Word| word.text.starts_with("--wait-") || word.text.starts_with("--timeout");
    let mut end = 0;
    while let Some(word) = args.get(end).filter(|word| is_option(word)) {
        // The value stands behind `=` or is the next word.
        end += if word.text.contains('=') { 1 } else { 2 };
    }
    let end = end.min(args.len());
    let (waiting, _) = waiting_of(it, &args[..end])?;
    let words = match &args[end..] {
        [first, words @ ..] if first.text == "--" => words,
        words => words,
    };
    Ok((waiting, words))
}

/// The wait that options ask for, and the seconds of `job output <n> [seconds]`.
fn waiting_of(it: &Builtin, args: &[Word]) -> Result<(Option<Waiting>, Option<u64>), Error> {
    let long = [("wait-port", 'p'), ("wait-output", 'o'), ("timeout", 't')];
    let flags = Flags::parse(it, args, "", "pot", &long)?;
    let seconds = match (flags.number('t')?, flags.operands.as_slice()) {
        (Some(seconds), []) => Some(seconds),
        (None, [word]) => Some(number(&word.text, "job output")?),
        (None, []) => None,
        (_, _) => return Err(it.usage_error()),
    };
    let port = flags.value('p').map(|text| {
        let fix = "a TCP port, from 1 to 65535";
        let bad = || Error::new(Code::Usage, format!("`{}` is no port", text.escape_debug()), fix);
        text.parse::<u16>().ok().filter(|port| *port > 0).ok_or_else(bad)
    });
    Ok((Waiting::new(port.transpose()?, flags.value('o'), seconds)?, seconds))
}
