//! Commands about the Session: its plan, memories, skills, forms and the help.

use std::io::Write as _;

use serde_json::Value;
use tokio::sync::oneshot;

use super::{Builtin, Fault, Flags, Io, Stdin, help_for, number, reads};
use crate::chain::How;
use crate::parse::Word;
use call::{Context, FormRequest};
use door::answer_of;
use permissions::Touch;
use protocol::error::{Code, Error, Result};
use protocol::event::{Fact, MemoryFact, PlanItem, Preview, Question, StepStatus};
use protocol::remedy::Remedy;
use tools::skill::View;
use tools::{plan as planning, recall, skill};

/// The longest note, bytes.
const MAX_NOTE: u64 = 4 << 10;
/// The default length of a list.
const LIMIT: usize = 10;

/// Stands in a preview for text that does not exist before a program has run or the user has answered.
const UNKNOWN: &str = "the output of the command before it";

/// The touch of a command that changes only pixir's own record.
fn notes(_: &[Word], _: &Context) -> Touch {
    Touch::Note
}

/// Adds a fact to the result, or to the preview in a dry run; returns whether it is added to the result.
fn note(io: &mut Io, would: &str, target: String, fact: Fact) -> bool {
    let mut effects = io.effects.lock();
    match io.how {
        How::Dry => effects.previews.push(Preview { would: would.to_owned(), target, ..Preview::default() }),
        How::Really => effects.facts.push(fact),
    }
    io.how == How::Really
}

/// All words joined by spaces, or stdin if there are none.
fn text_of(it: &'static Builtin, words: &[Word], io: &mut Io) -> Result<String, Fault> {
    if !words.is_empty() {
        return Ok(words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" "));
    }
    if io.stdin.is_none() {
        return Err(it.usage_error().into());
    }
    let bytes = io.whole_stdin(MAX_NOTE)?;
    Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
}

pub(super) const PLAN: Builtin = Builtin {
    name: "plan",
    about: "show the user your whole plan: plan '[x] done' '[>] now' '[ ] later'",
    usage: "'[x] done step' '[>] current step' '[ ] later step'… or lines on stdin",
    subcommands: &[],
    details: "At most one step has [>]. A step without a mark is pending.\nJSON works too: [{\"step\": \"…\", \"status\": \"pending\", \"in_progress\" or \"completed\"}, …]",
    example: "plan '[x] read the code' '[>] fix the bug' '[ ] run the tests'",
    stdin: Stdin::Optional,
    expands: false,
    asks_others: false,
    touches: notes,
    run: plan,
};

fn plan(it: &'static Builtin, args: &[Word], io: &mut Io) -> Result<i32, Fault> {
    if args.is_empty() && io.unknown_input {
        let preview = Preview { would: "plan".into(), target: UNKNOWN.into(), ..Preview::default() };
        io.effects.lock().previews.push(preview);
        return Ok(0);
    }
    let lines: Vec<String> = if args.is_empty() {
        let text = text_of(it, args, io)?;
        if is_json(&text) { vec![text] } else { text.lines().map(str::to_owned).collect() }
    } else {
        args.iter().map(|word| word.text.clone()).collect()
    };
    let lines: Vec<&str> = lines.iter().map(|line| line.trim()).filter(|line| !line.is_empty()).collect();
    let items: Vec<PlanItem> = if lines.iter().any(|line| is_json(line)) {
        steps_in_json(&lines)?
    } else {
        lines.into_iter().map(step).collect()
    };
    if items.is_empty() {
        return Err(Error::new(Code::InvalidArgs, "the plan has no step", it.usage_line()).into());
    }
    let (told, fact) = planning::checked(items)?;
    if note(io, "plan", told.clone(), fact) {
        writeln!(io.out, "{told}")?;
    }
    Ok(0)
}

/// Whether a step is meant as JSON. The marks `[x]`, `[>]` and `[ ]` are none.
fn is_json(text: &str) -> bool {
    let text = text.trim_start();
    let list = text.strip_prefix('[').map(str::trim_start);
    text.starts_with('{') || list.is_some_and(|rest| rest.starts_with(['{', '"']) || rest == "]")
}

/// The steps of a JSON list, of several JSON objects, or of what the typed tool takes.
fn steps_in_json(texts: &[&str]) -> Result<Vec<PlanItem>> {
    let bad = |why: String| {
        let fix = "plan '[{\"step\": \"look\", \"status\": \"pending\"}]', or plan '[ ] look'";
        Error::new(Code::InvalidArgs, format!("the plan looks like JSON, and {why}"), fix)
    };
    let mut items = Vec::new();
    for text in texts {
        let value: Value = serde_json::from_str(text).map_err(|e| bad(format!("is not: {e}")))?;
        let list = match value {
            Value::Array(list) => list,
            Value::Object(mut fields) => {
                match ["items", "plan", "todos"].iter().find_map(|name| fields.remove(*name)) {
                    Some(Value::Array(list)) => list,
                    Some(_) => return Err(bad("its `steps` must be a list".into())),
                    None => vec![Value::Object(fields)],
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => vec![value],
        };
        for value in list {
            items.push(match value {
                Value::String(line) => step(line.trim()),
                value => planning::item(value).map_err(|e| bad(format!("a step is wrong: {e}")))?,
            });
        }
    }
    Ok(items)
}

fn step(line: &str) -> PlanItem {
    let marks = [("[x]", StepStatus::Completed), ("[>]", StepStatus::InProgress), ("[ ]", StepStatus::Pending)];
    let marked = marks.iter().find_map(|(mark, status)| Some((line.strip_prefix(mark)?, *status)));
    let (step, status) = marked.unwrap_or((line, StepStatus::Pending));
    PlanItem { step: step.trim().to_owned(), status }
}

pub(super) const SKILL: Builtin = Builtin {
    name: "skill",
    about: "list and read skills, which are instructions for certain kinds of work",
    usage: "",
    subcommands: &[("list", ""), ("show", "<name> [path]")],
    details: "",
    example: "skill list",
    stdin: Stdin::None,
    expands: false,
    asks_others: false,
    touches: reads,
    run: |it, args, io| {
        let view = match (args[0].text.as_str(), args.get(1)) {
            ("list", _) => View { text: skill::listed(&io.ctx).into(), activation: None },
            (_, Some(name)) => {
                let path = args.get(2).map_or("", |path| path.text.as_str());
                View::of(&io.ctx, &name.text, path).map_err(in_commands)?
            }
            (other, None) => return Err(it.subcommand_usage(other).into()),
        };
        if let Some(fact) = view.activation
            && io.how == How::Really
        {
            io.effects.lock().facts.push(fact);
        }
        io.out.write_all(&view.text)?;
        Ok(0)
    },
};

pub(super) const MEMORY: Builtin = Builtin {
    name: "memory",
    about: "search past sessions, and store notes",
    usage: "",
    subcommands: &[
        ("search", "<query> [-t topic_id] [-k keyword]"),
        ("recent", "[n]"),
        ("store", "<note> or pipe stdin"),
        ("facts", ""),
        ("forget", "<id>"),
    ],
    details: "search  messages of earlier sessions that contain all the words\nrecent  the newest notes   facts  all notes, with their ids",
    example: "memory search 'login timeout'",
    stdin: Stdin::Optional,
    expands: false,
    asks_others: false,
    touches: |args, _| match args.first().map(|word| word.text.as_str()) {
        Some("store" | "forget") => Touch::Note,
        _ => Touch::Read,
    },
    run: memory,
};

fn memory(it: &'static Builtin, args: &[Word], io: &mut Io) -> Result<i32, Fault> {
    let (name, args) = (args[0].text.as_str(), &args[1..]);
    match name {
        "search" => {
            let flags = Flags::parse(it, args, "", "tk", &[])?;
            if flags.operands.is_empty() {
                return Err(it.subcommand_usage("search").into());
            }
            let query = flags.operands.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ");
            let found = recall::found(&io.ctx, &query, 5 * LIMIT);
            let keyword = flags.value('k').map(str::to_lowercase);
            let wanted = found.lines().filter(|line| {
                flags.value('t').is_none_or(|topic| line.starts_with(topic))
                    && keyword.as_ref().is_none_or(|word| line.to_lowercase().contains(word))
            });
            let lines: Vec<&str> = wanted.take(LIMIT).collect();
            for line in &lines {
                writeln!(io.out, "{line}")?;
            }
            Ok(i32::from(lines.is_empty()))
        }
        "recent" => {
            let most = args.first().map_or(Ok(LIMIT as u64), |word| number(&word.text, "memory recent"))?;
            let most = usize::try_from(most).unwrap_or(usize::MAX);
            for it in io.ctx.library.remembered().iter().rev().take(most) {
                writeln!(io.out, "{} {} {}", it.id, it.when, it.text)?;
            }
            Ok(0)
        }
        "facts" => {
            for it in io.ctx.library.remembered() {
                writeln!(io.out, "{} {} {}", it.id, it.when, it.text)?;
            }
            Ok(0)
        }
        "store" => {
            if args.is_empty() && io.stdin.is_none() {
                return Err(it.subcommand_usage("store").into());
            }
            remembers(io)?;
            if args.is_empty() && io.unknown_input {
                let preview = Preview { would: "remember".into(), target: UNKNOWN.into(), ..Preview::default() };
                io.effects.lock().previews.push(preview);
                return Ok(0);
            }
            let text = text_of(it, args, io)?;
            if text.is_empty() || text.len() as u64 > MAX_NOTE {
                let message = "a note must be 1 byte to 4 KB of text";
                return Err(Error::new(Code::InvalidArgs, message, "a file for longer text").into());
            }
            let id = format!("{:06x}", uuid::Uuid::now_v7().as_u128() & 0xff_ffff);
            let shown = format!("remember: {text}");
            let fact = MemoryFact { id: id.clone(), text: Some(text) };
            if note(io, "remember", shown, fact.into()) {
                writeln!(io.out, "{id}")?;
            }
            Ok(0)
        }
        _ => {
            let Some(id) = args.first() else { return Err(it.subcommand_usage("forget").into()) };
            remembers(io)?;
            if !io.ctx.library.remembered().iter().any(|it| it.id == id.text) {
                let shown: String = id.text.escape_debug().take(40).collect();
                let message = format!("there is no note `{shown}`");
                return Err(Error::new(Code::NotFound, message, "memory facts").with("input", shown).into());
            }
            let fact = MemoryFact { id: id.text.clone(), text: None };
            note(io, "forget", id.text.clone(), fact.into());
            Ok(0)
        }
    }
}

/// The error of a missing skill, with a command of the run language as its remedy.
fn in_commands(error: Error) -> Error {
    if let Remedy::UseSkill { name } = &error.remedy {
        return Error { remedy: format!("skill show {name}").into(), ..error };
    }
    if error.remedy == Remedy::ShowSkills {
        return Error { remedy: "skill list".into(), ..error };
    }
    error
}

/// Refuses to store a note outside a Session, because a note is an Entry of a Log.
fn remembers(io: &Io) -> Result<(), Error> {
    if io.ctx.library.session.is_some() {
        return Ok(());
    }
    let message = "notes can only be stored inside a session";
    Err(Error::new(Code::CommandFailed, message, Remedy::RunInSession))
}

pub(super) const TOPIC: Builtin = Builtin {
    name: "topic",
    about: "list earlier sessions of this workspace",
    usage: "",
    subcommands: &[("list", "[n]"), ("info", "<id>"), ("search", "<query>")],
    details: "list  latest first: id, time, turns, subject",
    example: "topic list 5",
    stdin: Stdin::None,
    expands: false,
    asks_others: false,
    touches: reads,
    run: topic,
};

fn topic(it: &'static Builtin, args: &[Word], io: &mut Io) -> Result<i32, Fault> {
    let (name, args) = (args[0].text.as_str(), &args[1..]);
    let sessions = io.ctx.library.sessions();
    match (name, args) {
        ("list", args) => {
            let most = args.first().map_or(Ok(LIMIT as u64), |word| number(&word.text, "topic list"))?;
            for it in sessions.iter().take(usize::try_from(most).unwrap_or(usize::MAX)) {
                writeln!(io.out, "{} {} {} {}", it.id, it.last_minute(), it.turns, it.title())?;
            }
            Ok(0)
        }
        ("info", [id, ..]) => {
            let Some(it) = sessions.iter().find(|it| it.id.starts_with(&id.text)) else {
                let shown: String = id.text.escape_debug().take(40).collect();
                let message = format!("there is no topic `{shown}`");
                return Err(Error::new(Code::SessionNotFound, message, "topic list").with("input", shown).into());
            };
            writeln!(io.out, "id {}\nabout {}\nlast {}\nturns {}", it.id, it.title(), it.last_minute(), it.turns)?;
            writeln!(io.out, "tool calls {}\nmodel {}", it.tool_calls, it.model)?;
            Ok(0)
        }
        ("search", words) if !words.is_empty() => {
            let query = words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ");
            let found = recall::found(&io.ctx, &query, LIMIT);
            io.out.write_all(found.as_bytes())?;
            Ok(i32::from(found.is_empty()))
        }
        (name, _) => Err(it.subcommand_usage(name).into()),
    }
}

pub(super) const ASK: Builtin = Builtin {
    name: "ask",
    about: "ask the user: ask <question> [option]…",
    usage: "<question> [option…]",
    subcommands: &[],
    details: "The user can always answer in other words. The exit code is 1 when the user does not answer.\nThe line waits for the answer without a time limit.",
    example: "ask 'Which name?' alpha beta",
    stdin: Stdin::None,
    expands: false,
    asks_others: true,
    touches: notes,
    run: ask,
};

fn ask(it: &'static Builtin, args: &[Word], io: &mut Io) -> Result<i32, Fault> {
    let Some((question, options)) = args.split_first() else { return Err(it.usage_error().into()) };
    let options = options.iter().map(|word| word.text.clone()).collect();
    let question = Question { question: question.text.clone(), options, multiple: false, only_options: false };
    if io.how == How::Dry {
        let preview = Preview { would: "ask".into(), target: question.question, ..Preview::default() };
        io.effects.lock().previews.push(preview);
        return Ok(0);
    }
    let no_user = || {
        Error::new(
            Code::InputRequired,
            "no user is available to answer",
            "your own decision, with your assumptions stated",
        )
    };
    let forms = io.ctx.forms.clone().ok_or_else(no_user)?;
    let (reply, answer) = oneshot::channel();
    forms.blocking_send(FormRequest { questions: vec![question], reply }).map_err(|_| no_user())?;
    match task::block_on(&io.runtime, answer_of(answer, forms.closed())).ok_or_else(no_user)? {
        Some(answers) => {
            writeln!(io.out, "{}", answers.first().map_or(String::new(), |all| all.join(", ")))?;
            Ok(0)
        }
        None => Ok(1),
    }
}

pub(super) const HELP: Builtin = Builtin {
    name: "help",
    about: "list all commands, or explain one",
    usage: "[command]",
    subcommands: &[],
    details: "",
    example: "help grep",
    stdin: Stdin::None,
    expands: false,
    asks_others: false,
    touches: reads,
    run: |_, args, io| {
        let help = help_for(args.first().map(|word| word.text.as_str()))?;
        io.out.write_all(help.as_bytes())?;
        Ok(0)
    },
};
