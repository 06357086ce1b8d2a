//! The command `mcp`: tools of MCP servers.

use super::agent::perform;
use super::{Builtin, Fault, Io, Stdin};
use crate::chain::How;
use crate::parse::Word;
use call::{Context, Prepared};
use permissions::Touch;
use protocol::error::{Code, Error, Result};

pub(super) const MCP: Builtin = Builtin {
    name: "mcp",
    about: "use tools of MCP servers: mcp find|call|read",
    usage: "",
    subcommands: &[("find", "[words…]"), ("call", "<tool> [json]"), ("read", "<server> [uri]")],
    details: "find prints tools with their arguments as JSON; call takes the name of a tool as find prints it.",
    example: "mcp call git__git_status '{\"repo_path\": \"/home/me/app\"}'",
    stdin: Stdin::None,
    expands: false,
    asks_others: true,
    touches: |args, ctx| match prepared(args, ctx) {
        Ok(it) => it.touches.into_iter().next().unwrap_or(Touch::Read),
        // Without a tool nothing is called.
        Err(_) => Touch::Read,
    },
    run: mcp,
};

fn prepared(args: &[Word], ctx: &Context) -> Result<Prepared> {
    if let [name @ ("call" | "read")] = args.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().as_slice() {
        return Err(MCP.subcommand_usage(name));
    }
    let Some(others) = &ctx.others else {
        return Err(Error::new(Code::NotFound, "there are no MCP servers here", "work without them"));
    };
    let words: Vec<&str> = args.iter().map(|word| word.text.as_str()).collect();
    others.prepare(&words)
}

fn mcp(_: &'static Builtin, args: &[Word], io: &mut Io) -> Result<i32, Fault> {
    let prepared = prepared(args, &io.ctx)?;
    if io.how == How::Dry {
        if !prepared.reads_only() {
            io.effects.lock().previews.push(prepared.preview);
        }
        return Ok(0);
    }
    perform(prepared, io)
}
