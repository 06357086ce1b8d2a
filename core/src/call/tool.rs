//! A tool as pixir sees it: how it is offered, what a call of it is about, and how the call is prepared.

use std::fmt;

use futures_util::future::BoxFuture;
use serde_json::Value;

use super::{Context, Output, arguments};
use crate::permissions::Action;
use crate::protocol::call_info::CallInfo;
use crate::protocol::error::{Code, Error, Result};
use crate::protocol::event::{Plan, Toolset};
use crate::protocol::tool_spec::ToolSpec;

/// Something that a model can call.
///
/// A tool decides everything in [`Tool::prepare`], which touches nothing; its preview is shown to the user, and exactly
/// that runs.
pub trait Tool: Send + Sync {
    /// How it is offered to a model.
    fn spec(&self) -> ToolSpec;

    /// What a call with these arguments is about. It is asked before the arguments are checked, so it takes them as they
    /// are, touches nothing and never fails.
    fn describe(&self, args: &Value, _ctx: &Context) -> CallInfo {
        CallInfo::unknown(&self.spec().name, args)
    }

    /// Takes checked arguments and works out what the call would do.
    ///
    /// # Errors
    /// Whatever makes the call impossible: a user is never asked to approve a call that cannot run.
    fn prepare(&self, args: Value, ctx: &Context) -> Result<Prepared>;

    /// The toolset that offers it.
    fn toolset(&self) -> Toolset {
        Toolset::Typed
    }

    /// The command of the run language that does the same, for a model that is offered only `run`.
    fn run_command(&self) -> Option<&'static str> {
        None
    }

    /// Arguments for an example in help texts; by default made from the schema.
    fn example(&self) -> Value {
        arguments::example(&self.spec().parameters)
    }
}

/// A call that can run: what it would do, what that touches, and the work itself.
pub struct Prepared {
    /// What the call is about. The way of a call fills it in; a tool leaves it empty.
    pub info: CallInfo,
    /// What it would do, for the user and for a dry run.
    pub plan: Plan,
    /// What each part of it touches: one part for a typed tool, one for each command of a line.
    pub actions: Vec<Action>,
    /// Does the work, once. To run it again, prepare the call again.
    pub run: Box<dyn FnOnce(Context) -> BoxFuture<'static, Result<Output>> + Send>,
}

impl fmt::Debug for Prepared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prepared").field("plan", &self.plan).field("actions", &self.actions).finish_non_exhaustive()
    }
}

impl Prepared {
    /// A call of one part.
    pub fn new<F, R>(plan: Plan, action: Action, run: F) -> Prepared
    where
        F: FnOnce(Context) -> R + Send + 'static,
        R: Future<Output = Result<Output>> + Send + 'static,
    {
        Prepared {
            info: CallInfo::default(),
            plan,
            actions: vec![action],
            run: Box::new(move |ctx| Box::pin(run(ctx))),
        }
    }

    /// A call that only reads. `run` may block: it runs on a thread for such work.
    pub fn reading<F>(would: &str, target: String, run: F) -> Prepared
    where
        F: FnOnce(&Context) -> Result<Output> + Send + 'static,
    {
        let plan = Plan { would: would.to_owned(), target, ..Plan::default() };
        Prepared::new(plan, Action::Read, |ctx| off_loop(move || run(&ctx)))
    }

    /// Whether it changes nothing.
    pub fn reads_only(&self) -> bool {
        self.actions.iter().all(|action| *action == Action::Read)
    }
}

/// Runs blocking work on a thread where it delays nothing else.
pub(crate) async fn off_loop<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|e| Err(panicked(&e.to_string())))
}

/// A tool that panicked: a fault of pixir, reported to the model like any failure.
pub(crate) fn panicked(why: &str) -> Error {
    Error::new(Code::CommandFailed, format!("the tool failed because of a bug in pixir: {why}"), "try another way")
}
