//! The way of a tool call: check → prepare → gate → run → present.
//!
//! The Turn, `pixir run`, `pixir tools run` and a user's own command all use these steps. [`gate()`] is the only place
//! that allows or refuses a call, and [`carry_out`] is the only function that runs the steps in order.
#![forbid(unsafe_code)]

use std::borrow::Cow;
use std::panic::AssertUnwindSafe;
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value};

use crate::leases::Patience;
use files::diff::join_moves;
use protocol::call_info::CallInfo;
use protocol::error::{Code, Error, Result};
use protocol::event::ToolResult;
use sandbox::Policy;

pub mod agents; // the child Sessions of the Session
pub mod agent_end; // what the model reads of the end of a child
mod aliases; // names that models know from other programs
pub mod arguments; // arguments against a tool's schema
pub mod blocked; // what the sandbox refused to a program
pub mod command; // a program that a call starts, and what it changed
pub mod context; // what a call may use
pub mod gate; // mode, rules, the user: allowed or refused
pub mod lacked; // what a command had to do without
pub mod leases; // who changes what right now
pub mod outcome; // what came of a call, in a few words
mod others; // programs of others
pub mod output; // what a tool returned
pub mod agent_place; // the place of an agent among those that run
pub mod protection; // protected files that a command wrote
pub mod present; // bytes → what the model reads
mod read_set; // files as the model last saw them
pub mod registry; // tools by name
pub mod replacement; // a file that a call creates or replaces
pub mod result; // what is recorded of a call
pub mod shell; // a command line of bash, and its end
pub mod standing; // mode and rules, as the Sessions below see them
pub mod tool; // trait Tool, a prepared call

pub use agent_place::AgentPlace;
pub use agents::Agents;
pub use context::InTurn;
pub use context::{Answers, Context, FormRequest};
pub use gate::check_word;
pub use gate::{Authority, Gone, Grant, Permissions, Unattended, explain, gate};
pub use leases::Leases;
pub use others::Others;
pub use output::Output;
pub use permissions::{Bounds, Explained, Judged, Parse, Touch};
pub use present::ResultLimits;
pub use read_set::ReadSet;
pub use registry::{Registered, Registry};
pub use result::Done;
pub use standing::Standing;
pub use tool::off_loop;
pub use tool::{Prepared, Tool};

/// One use of a tool, not yet checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// The call's id; unique in its Session.
    pub id: String,
    /// The tool's name.
    pub tool: String,
    /// The arguments; not yet checked against the tool's schema.
    pub args: Value,
    /// Who requested the call.
    pub caller: Caller,
}

/// Who requested a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caller {
    /// The model. The gate asks the user for an approval where one is needed.
    Model,
    /// The user. Typing the call is the approval.
    User,
}

/// The title and target of a call, taken from its arguments alone.
///
/// It reads no file, and invalid arguments are not an error here.
pub fn describe(registry: &Registry, call: &Call, ctx: &Context) -> CallInfo {
    let call = &*registry.resolved(call, ctx.toolset);
    match registry.find(&call.tool, ctx.toolset) {
        Ok(Registered { spec, tool }) => {
            let info = if tool.is_of_others() {
                tool.describe(&call.args, ctx)
            } else {
                tool.describe(&aliases::arguments(spec, &call.args), ctx)
            };
            CallInfo { reads_only: info.reads_only || spec.reads_only, ..info }
        }
        Err(_) => CallInfo::unknown(&call.tool, &call.args),
    }
}

/// Checks a call against the tool's schema and computes its preview.
///
/// It changes nothing, so a call can be prepared again. It runs on a blocking thread, because tools read files here.
///
/// # Errors
/// An unknown tool, arguments that do not match the schema, a path outside the workspace, or any other reason why the
/// call cannot run.
pub async fn prepare(registry: &Registry, call: &Call, ctx: &Context) -> Result<Prepared> {
    let (registry, given, ctx) = (registry.clone(), call.clone(), ctx.clone());
    off_loop(move || {
        ctx.workspace.check_there()?;
        let call = registry.resolved(&given, ctx.toolset);
        let Registered { spec, tool } = registry.find(&call.tool, ctx.toolset)?;
        // The Provider stores arguments that are not a JSON object under `_raw`.
        if let Some(raw) = given.args.get("_raw") {
            let is_object = raw.as_str().is_some_and(|raw| serde_json::from_str::<Map<String, Value>>(raw).is_ok());
            let (message, fix) = if is_object {
                ("one of the arguments is given twice", "send each argument once")
            } else {
                ("the arguments are not a JSON object", "send one complete JSON object without text around it")
            };
            return Err(Error::new(Code::InvalidArgs, message, fix));
        }
        let args = if tool.is_of_others() {
            Cow::Borrowed(&call.args)
        } else {
            let args = aliases::arguments(spec, &call.args);
            arguments::check(spec, &args)?;
            args
        };
        let info = describe(&registry, &call, &ctx);
        let prepared = tool.prepare(args.into_owned(), &ctx).map_err(|error| match error.code {
            Code::InvalidArgs if error.remedy.is_empty() => Error { remedy: arguments::usage(spec).into(), ..error },
            _ => error,
        })?;
        let paths = if prepared.preview.paths.is_empty() { info.paths } else { prepared.preview.paths.clone() };
        Ok(Prepared { info: CallInfo { paths, reads_only: prepared.reads_only(), ..info }, ..prepared })
    })
    .await
}

/// Runs a prepared call. A panic in the tool becomes an error.
///
/// # Errors
/// The tool's own error.
pub async fn run(prepared: Prepared, ctx: Context) -> Result<Output> {
    // The closure is called inside the future, so that `catch_unwind` covers it too.
    let run = AssertUnwindSafe(async move { (prepared.run)(ctx).await });
    run.catch_unwind().await.unwrap_or_else(|_| Err(tool::panicked("it panicked")))
}

/// Takes one call through all steps, from its arguments to the result that is recorded.
///
/// # Errors
/// [`Gone`] when the Session no longer waits for the call.
pub fn carry_out<'a>(
    registry: &'a Registry,
    call: &'a Call,
    ctx: Context,
    authority: &'a dyn Authority,
) -> BoxFuture<'a, Result<Done, Gone>> {
    Box::pin(async move {
        // Dropping the guard cancels work that still runs on another thread, also when this future is dropped.
        let _cancel = ctx.cancel.clone().drop_guard();
        let prepared = match prepare(registry, call, &ctx).await {
            Ok(prepared) => prepared,
            Err(error) => return Ok(Done::failed(call, &error)),
        };
        carry_out_prepared(registry, call, prepared, ctx, authority).await
    })
}

/// Takes a prepared call through the remaining steps.
///
/// # Errors
/// [`Gone`] when the Session no longer waits for the call.
pub fn carry_out_prepared<'a>(
    registry: &'a Registry,
    call: &'a Call,
    prepared: Prepared,
    ctx: Context,
    authority: &'a dyn Authority,
) -> BoxFuture<'a, Result<Done, Gone>> {
    Box::pin(async move {
        let _cancel = ctx.cancel.clone().drop_guard();
        authority.prepared(call, &prepared.info, &prepared.preview).await?;
        if ctx.dry_run && !prepared.reads_only() {
            return Ok(Done::previewed(call, prepared.preview));
        }
        let waits = prepared.touches.iter().find_map(|it| permissions::needs_terminal(it, ctx.readable()));
        if let Some((program, instead)) = waits {
            let message = format!("`{program}` draws on a terminal and waits for keys, and commands have no terminal");
            return Ok(Done::failed(call, &Error::new(Code::CommandFailed, message, instead)));
        }
        let Grant { policy, reads } = match gate(call, &prepared.preview, &prepared.touches, &ctx, authority).await? {
            Ok(grant) => grant,
            Err(refusal) => return Ok(Done::failed(call, &refusal)),
        };
        let preview = prepared.preview.clone();
        let ctx = Context { reads, ..ctx };
        // The lease is taken after the approval, so that no agent waits while the user decides. A command that only reads needs
        // none.
        let changes = call.caller == Caller::Model && policy != Policy::Look;
        let touched = if changes { prepared.touches.as_slice() } else { &[] };
        let patience = if ctx.holder.is_run { Patience::Until(&ctx.cancel) } else { Patience::Short };
        let leased = match ctx.leases.try_take(&ctx.holder, touched) {
            Ok(lease) => Ok(lease),
            Err(holder) => {
                authority.waits_for_lease(Some(&holder)).await?;
                let leased = ctx.leases.take(&ctx.holder, touched, patience).await;
                authority.waits_for_lease(None).await?;
                leased
            }
        };
        let lease = match leased {
            Ok(lease) => lease,
            Err(held) => return Ok(Done::failed(call, &held)),
        };
        let began = Instant::now();
        let mut first = run(prepared, Context { policy, ..ctx.clone() }).await;
        let took = began.elapsed();
        if let Ok(output) = &mut first {
            protection::settle(call, output, &ctx, authority).await?;
            protection::jobs::settle(call, output, &ctx, authority).await?;
        }
        let blocked = first.as_ref().ok().and_then(|output| output.blocked.clone());
        let (blocked, mut first) = match (blocked, first) {
            (Some(blocked), Ok(first)) => (blocked, first),
            (_, first) => return Ok(Done { lease, ..done(call, first, took, &ctx).await }),
        };
        let Some(wider) = gate::widen(call, &preview, &blocked, authority).await? else {
            first.stderr.push(format!("pixir: {}\n", blocked.told()).as_bytes());
            return Ok(Done { lease, ..done(call, Ok(first), took, &ctx).await });
        };
        let began = Instant::now();
        let mut second = match prepare(registry, call, &ctx).await {
            Ok(again) => run(again, Context { policy: wider, ..ctx.clone() }).await,
            Err(error) => Err(error),
        };
        if let Ok(output) = &mut second {
            protection::settle(call, output, &ctx, authority).await?;
        }
        let both = second.map(|second| second.after(first));
        Ok(Done { lease, ..done(call, both, took + began.elapsed(), &ctx).await })
    })
}

/// The record of a call that ran, with the files that it moved.
async fn done(call: &Call, mut outcome: Result<Output>, took: Duration, ctx: &Context) -> Done {
    // A move is two changes. Fewer are not worth the way to another thread.
    if let Ok(output) = &mut outcome
        && output.changes.len() > 1
    {
        let (mut changes, blobs) = (output.changes.clone(), ctx.blobs.clone());
        let joined = task::spawn_blocking(move || {
            join_moves(&mut changes, &blobs);
            changes
        });
        if let Ok(changes) = joined.await {
            output.changes = changes;
        }
    }
    let Err(gone) = ctx.workspace.check_there() else { return Done::of(call, outcome, took) };
    // What the tool says of the files is true of a folder that is gone. Only what was deleted with it is a change: the files of
    // one that was moved are still there.
    let changes = outcome.ok().filter(|_| ctx.workspace.is_deleted()).map(|output| output.changes).unwrap_or_default();
    let done = Done::of(call, Err(gone), took);
    Done { result: ToolResult { changes, ..done.result }, ..done }
}
