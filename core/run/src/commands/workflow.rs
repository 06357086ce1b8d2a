//! The command `workflow`: runs of workflows.

use serde_json::{Map, Value};

use super::agent::{perform, said};
use super::{Builtin, Fault, Flags, Io, Stdin};
use crate::chain::How;
use crate::parse::Word;
use permissions::Touch;
use workflow::tool::running;

pub(super) const WORKFLOW: Builtin = Builtin {
    name: "workflow",
    about: "run a graph of agents, commands and questions to the user: workflow run <name> [param=value…]",
    usage: "",
    subcommands: &[("run", "[--wait] [name] [param=value…]")],
    details: "Without a name, the graph is JSON on stdin: {\"version\":1,\"steps\":[{\"id\",\"needs\",\"task\"|\"argv\"|\"ask\"}]}.\nYou read its result when it ends; with --wait the command waits for it. agent wait, agent tell and agent show take its name.",
    example: "workflow run review-diff base=main",
    stdin: Stdin::Optional,
    expands: false,
    asks_others: true,
    touches: |_, _| Touch::Workflow,
    run: workflow,
};

fn workflow(it: &'static Builtin, args: &[Word], io: &mut Io) -> Result<i32, Fault> {
    let flags = Flags::parse(it, &args[1..], "w", "", &[("wait", 'w')])?;
    let (params, names): (Vec<&Word>, Vec<&Word>) = flags.operands.iter().partition(|word| word.text.contains('='));
    let params: Map<String, Value> = params
        .iter()
        .filter_map(|word| word.text.split_once('='))
        .map(|(name, value)| (name.to_owned(), serde_json::from_str(value).unwrap_or_else(|_| Value::from(value))))
        .collect();
    let prepared = match names.as_slice() {
        [name] => running(Some(name.text.clone()), None, params, flags.has('w'), &io.ctx)?,
        [] if io.stdin.is_some() => {
            let graph = serde_json::from_str(&said(&[], io)?).unwrap_or(Value::Null);
            running(None, Some(graph), params, flags.has('w'), &io.ctx)?
        }
        [] | [_, _, ..] => return Err(it.subcommand_usage("run").into()),
    };
    if io.how == How::Dry {
        io.effects.lock().previews.push(prepared.preview);
        return Ok(0);
    }
    perform(prepared, io)
}
