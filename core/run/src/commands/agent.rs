//! The command `agent`: child Sessions.

use std::io::Write as _;

use super::{Builtin, Fault, Flags, Io, Stdin, number};
use crate::chain::How;
use crate::parse::Word;
use call::agents::{Order, Until};
use call::{Output, Prepared};
use permissions::Touch;
use protocol::event::Telling;
use tools::agent::{showing, spawning, telling, waiting};

/// The most bytes of a task.
const MAX_TASK: u64 = 1 << 20;

pub(super) const AGENT: Builtin = Builtin {
    name: "agent",
    about: "start agents, which work on tasks of their own: agent spawn [--role R] <task>, agent wait|tell|show [name]",
    usage: "",
    subcommands: &[
        ("spawn", "[--role R] [--name N] [--later] <task>"),
        ("wait", "[--any] [--seconds S] [name…]"),
        ("tell", "[--next|--stop] <name> [text]"),
        ("show", "[name] [from byte]"),
    ],
    details: "spawn waits for the agent's end; with --later you read its end when it comes. The agent knows nothing but its task.\nThe roles explorer and reviewer change nothing; worker may do what you may do.\ntell takes its text from stdin too. An agent that has ended goes on with it.",
    example: "agent spawn --role explorer 'where is the configuration read? name places as path:line'",
    stdin: Stdin::Optional,
    expands: false,
    asks_others: true,
    touches: |args, _| match args.first().map(|word| word.text.as_str()) {
        Some("spawn" | "tell") => Touch::Note,
        _ => Touch::Read,
    },
    run: agent,
};

fn agent(it: &'static Builtin, args: &[Word], io: &mut Io) -> Result<i32, Fault> {
    let (name, args) = (args[0].text.as_str(), &args[1..]);
    let prepared = match name {
        "spawn" => {
            let flags = Flags::parse(it, args, "l", "rn", &[("role", 'r'), ("name", 'n'), ("later", 'l')])?;
            let task = said(&flags.operands, io)?;
            let order = Order {
                task,
                role: flags.value('r').map(str::to_owned),
                name: flags.value('n').map(str::to_owned),
                waits: !flags.has('l'),
                ..Order::default()
            };
            spawning(order, &io.ctx)?
        }
        "wait" => {
            let flags = Flags::parse(it, args, "a", "t", &[("any", 'a'), ("seconds", 't')])?;
            let names = flags.operands.iter().map(|word| word.text.clone()).collect();
            let until = if flags.has('a') { Until::Any } else { Until::All };
            waiting(names, until, flags.number('t')?, &io.ctx)?
        }
        "tell" => {
            let flags = Flags::parse(it, args, "xs", "", &[("next", 'x'), ("stop", 's')])?;
            let how = match (flags.has('s'), flags.has('x')) {
                (true, _) => Telling::Stop,
                (false, true) => Telling::Next,
                (false, false) => Telling::Steer,
            };
            let [name, words @ ..] = flags.operands.as_slice() else {
                return Err(it.subcommand_usage("tell").into());
            };
            let text = said(words, io)?;
            telling(name.text.clone(), text, how, &io.ctx)?
        }
        _ => {
            let from = args.get(1).map(|word| number(&word.text, "agent show")).transpose()?;
            showing(args.first().map(|word| word.text.clone()), from.unwrap_or(0), &io.ctx)?
        }
    };
    if io.how == How::Dry {
        if !prepared.reads_only() {
            io.effects.lock().previews.push(prepared.preview);
        }
        return Ok(0);
    }
    perform(prepared, io)
}

/// The words of a task, or what stands on stdin.
pub(super) fn said(words: &[Word], io: &mut Io) -> Result<String, Fault> {
    if words.is_empty() && io.stdin.is_some() {
        return Ok(String::from_utf8_lossy(&io.whole_stdin(MAX_TASK)?).into_owned());
    }
    Ok(words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" "))
}

pub(super) fn perform(prepared: Prepared, io: &mut Io) -> Result<i32, Fault> {
    let Output { stdout, exit, .. } = task::block_on(&io.runtime, (prepared.run)(io.ctx.clone()))?;
    let text = stdout.finish().text;
    io.out.write_all(text.as_bytes())?;
    if !text.ends_with('\n') {
        io.out.write_all(b"\n")?;
    }
    Ok(exit)
}
