//! The trait `Tool`: how a tool is offered, what a call of it is about, and how the call is prepared.

use std::fmt;

use futures_util::future::BoxFuture;
use serde_json::Value;

use super::{Context, Output, arguments};
use permissions::Touch;
use protocol::call_info::CallInfo;
use protocol::error::{Code, Error, Result};
use protocol::event::{Preview, Toolset};
use protocol::tool_spec::ToolSpec;

/// Something that a model can call.
///
/// A tool decides everything in [`Tool::prepare`], which changes nothing. The user sees the preview, and the call does
/// exactly what the preview shows.
pub trait Tool: Send + Sync {
    /// The name, description and schema that the model receives.
    fn spec(&self) -> ToolSpec;

    /// The spec where no user can answer the model's questions, from the one of [`Tool::spec`]; `None` where the tool is of
    /// no use then.
    fn spec_unattended(&self, spec: &ToolSpec) -> Option<ToolSpec> {
        Some(spec.clone())
    }

    /// What a call with these arguments is about.
    ///
    /// The arguments are not checked yet, so this accepts any, reads no file and never fails.
    fn describe(&self, args: &Value, _ctx: &Context) -> CallInfo {
        CallInfo::unknown(&self.spec().name, args)
    }

    /// Computes from checked arguments what the call would do.
    ///
    /// # Errors
    /// Any reason why the call cannot run, so that the user is never asked to approve it.
    fn prepare(&self, args: Value, ctx: &Context) -> Result<Prepared>;

    /// It belongs to another program: it checks its arguments itself, and they are passed on as they were written.
    fn is_of_others(&self) -> bool {
        false
    }

    /// The arguments with which this tool carries out a call of another name, which no tool of the Session has. `None` where
    /// the name says nothing to it.
    fn standing_in_for(&self, _name: &str, _args: &Value) -> Option<Value> {
        None
    }

    /// The toolset that offers it.
    fn toolset(&self) -> Toolset {
        Toolset::Typed
    }

    /// The command of the run language that does the same, for a model that is offered only `run`.
    fn run_command(&self) -> Option<&'static str> {
        None
    }

    /// Arguments for an example in help texts; by default derived from the schema.
    fn example(&self) -> Value {
        arguments::example(&self.spec().parameters)
    }
}

/// A call that can run: its preview, what it touches, and the work itself.
pub struct Prepared {
    /// What the call is about. `call::prepare` fills it in; a tool leaves it empty.
    pub info: CallInfo,
    /// The preview, for the user and for a dry run.
    pub preview: Preview,
    /// What it touches: one for a typed tool, one for each command of a line.
    pub touches: Vec<Touch>,
    /// Does the work, once; to run the call again, prepare it again.
    pub run: Box<dyn FnOnce(Context) -> BoxFuture<'static, Result<Output>> + Send>,
}

impl fmt::Debug for Prepared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prepared")
            .field("preview", &self.preview)
            .field("touches", &self.touches)
            .finish_non_exhaustive()
    }
}

impl Prepared {
    /// A call that touches one thing.
    pub fn new<F, R>(preview: Preview, touch: Touch, run: F) -> Prepared
    where
        F: FnOnce(Context) -> R + Send + 'static,
        R: Future<Output = Result<Output>> + Send + 'static,
    {
        Prepared {
            info: CallInfo::default(),
            preview,
            touches: vec![touch],
            run: Box::new(move |ctx| Box::pin(run(ctx))),
        }
    }

    /// A call that only reads. `run` may block, because it runs on a blocking thread.
    pub fn reading<F>(would: &str, target: String, run: F) -> Prepared
    where
        F: FnOnce(&Context) -> Result<Output> + Send + 'static,
    {
        let preview = Preview { would: would.to_owned(), target, ..Preview::default() };
        Prepared::new(preview, Touch::Read, |ctx| off_loop(move || run(&ctx)))
    }

    /// Whether the call changes nothing.
    pub fn reads_only(&self) -> bool {
        self.touches.iter().all(Touch::only_reads)
    }

    /// The same call, which touches this instead.
    pub fn touching(self, touch: Touch) -> Prepared {
        Prepared { touches: vec![touch], ..self }
    }
}

/// Runs blocking work on a thread outside the async runtime's workers.
pub async fn off_loop<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    task::spawn_blocking(work).await.unwrap_or_else(|e| Err(panicked(&e.to_string())))
}

/// The error for a tool that panics; the model receives it like any failure.
pub fn panicked(why: &str) -> Error {
    Error::new(Code::CommandFailed, format!("the tool failed because of a bug in pixir: {why}"), "try another way")
}
