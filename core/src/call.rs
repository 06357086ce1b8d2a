//! The way of a tool call: check → prepare → gate → run → present.
//!
//! The Turn, `pixir run`, `pixir tools run` and a user's own command all go this way. [`gate`] is the only place that
//! allows or refuses, and [`carry_out`] the only one that strings the steps together.

use std::panic::AssertUnwindSafe;
use std::time::Instant;

use futures_util::FutureExt as _;
use serde_json::Value;

use crate::protocol::call_info::CallInfo;
use crate::protocol::error::{Code, Error, Result};

pub(crate) mod arguments; // arguments against a tool's schema
pub(crate) mod command; // a program that a call starts, and what it changed
pub mod context; // what a call may use
pub mod gate; // mode, rules, the user: allowed or refused
pub mod output; // what a tool returned
pub mod present; // bytes → what the model reads
mod read_set; // files as the model last saw them
pub mod registry; // tools by name
pub(crate) mod replacement; // a file that a call creates or replaces
pub mod result; // what is recorded of a call
pub mod tool; // trait Tool, a prepared call

pub use context::{Answers, Context, FormRequest};
pub use gate::{Authority, Gone, Standing, Unattended, gate};
pub use output::Output;
pub(crate) use read_set::ReadSet;
pub use registry::{Registered, Registry};
pub use result::Done;
pub(crate) use tool::off_loop;
pub use tool::{Prepared, Tool};

/// One call of a tool, before anything is known about it.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// The call's id; unique in its Session.
    pub id: String,
    /// The tool's name.
    pub tool: String,
    /// Its arguments.
    pub args: Value,
    /// Who wants it to run.
    pub caller: Caller,
}

/// Who wants a call to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caller {
    /// The model: what needs permission is asked about.
    Model,
    /// The user typed it, and thereby allows what would be asked about.
    User,
}

/// What the call is about, as far as its arguments say. Nothing is touched, and bad arguments are no error yet.
pub fn describe(registry: &Registry, call: &Call, ctx: &Context) -> CallInfo {
    match registry.find(&call.tool, ctx.toolset) {
        Ok(Registered { spec, tool }) => {
            let info = tool.describe(&call.args, ctx);
            CallInfo { reads_only: info.reads_only || spec.reads_only, ..info }
        }
        Err(_) => CallInfo::unknown(&call.tool, &call.args),
    }
}

/// Checks a call against the tool's schema and works out what it would do. Nothing is touched, so a call can be prepared
/// again. It runs on a thread of its own, because tools read files here.
///
/// # Errors
/// Whatever makes the call impossible: an unknown tool, arguments that do not fit, a path that leads outside.
pub async fn prepare(registry: &Registry, call: &Call, ctx: &Context) -> Result<Prepared> {
    let (registry, call, ctx) = (registry.clone(), call.clone(), ctx.clone());
    off_loop(move || {
        let Registered { spec, tool } = registry.find(&call.tool, ctx.toolset)?;
        if call.args.get("_raw").is_some() {
            let fix = "send one complete JSON object without text around it";
            return Err(Error::new(Code::InvalidArgs, "the arguments are not a JSON object", fix));
        }
        arguments::check(spec, &call.args)?;
        let info = describe(&registry, &call, &ctx);
        let prepared = tool.prepare(call.args, &ctx).map_err(|error| match error.code {
            Code::InvalidArgs if error.remedy.is_empty() => Error { remedy: arguments::usage(spec).into(), ..error },
            _ => error,
        })?;
        let paths = if prepared.plan.paths.is_empty() { info.paths } else { prepared.plan.paths.clone() };
        Ok(Prepared { info: CallInfo { paths, reads_only: prepared.reads_only(), ..info }, ..prepared })
    })
    .await
}

/// Runs what was prepared. A tool that panics fails like any other.
///
/// # Errors
/// Whatever the tool could not do.
pub async fn run(prepared: Prepared, ctx: Context) -> Result<Output> {
    // The closure is called inside the future, so that a panic in it is caught too.
    let run = AssertUnwindSafe(async move { (prepared.run)(ctx).await });
    run.catch_unwind().await.unwrap_or_else(|_| Err(tool::panicked("it panicked")))
}

/// The whole way of one call, from its arguments to what is recorded of it.
///
/// # Errors
/// [`Gone`] when the Session no longer waits for the call.
pub async fn carry_out(
    registry: &Registry,
    call: &Call,
    ctx: Context,
    authority: &impl Authority,
) -> Result<Done, Gone> {
    // However this ends, work that still runs on another thread is cancelled.
    let _cancel = ctx.cancel.clone().drop_guard();
    let prepared = match prepare(registry, call, &ctx).await {
        Ok(prepared) => prepared,
        Err(error) => return Ok(Done::failed(call, &error)),
    };
    carry_out_prepared(call, prepared, ctx, authority).await
}

/// The rest of the way of a call that is prepared already.
///
/// # Errors
/// [`Gone`] when the Session no longer waits for the call.
pub async fn carry_out_prepared(
    call: &Call,
    prepared: Prepared,
    ctx: Context,
    authority: &impl Authority,
) -> Result<Done, Gone> {
    let _cancel = ctx.cancel.clone().drop_guard();
    authority.prepared(call, &prepared.info, &prepared.plan).await?;
    if ctx.dry_run && !prepared.reads_only() {
        return Ok(Done::planned(call, prepared.plan));
    }
    if let Err(refusal) = gate(call, &prepared.plan, &prepared.actions, &ctx, authority).await? {
        return Ok(Done::failed(call, &refusal));
    }
    let began = Instant::now();
    let outcome = run(prepared, ctx).await;
    Ok(Done::of(call, outcome, began.elapsed()))
}
