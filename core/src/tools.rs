//! What a model can do: one trait, one registry, one path for every call.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::blobs::Blobs;
use crate::error::{Code, Error, Result, nearest};
use crate::event::{FileChange, Plan, PlanItem};
use crate::permissions::Action;
use crate::present::{Capture, Overflow};
use crate::scan::Shadow;
use crate::workspace::Workspace;

mod bash; // run a command line
mod edit; // replace exact text in a file
pub mod executor; // validate, judge, run, present
mod find; // files by name
mod grep; // lines by pattern
mod ls; // one folder
mod plan; // the model's own list of steps
mod read; // a file, or a part of it
mod write; // a whole file

pub(crate) use find::walk;

/// A future that a trait object can return.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What a model is told of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    /// Its name.
    pub name: &'static str,
    /// What it does, for a reader who has never seen it.
    pub description: &'static str,
    /// A JSON Schema of its arguments.
    pub parameters: Value,
    /// It never changes anything, whatever its arguments.
    pub reads_only: bool,
    /// Which of the child's streams it takes in and gives out.
    pub streams: &'static str,
}

/// Something that a model can do.
///
/// Implementors decide everything in [`Tool::prepare`], which touches nothing; what comes of it is shown to the
/// person, and exactly that is run.
pub trait Tool: Send + Sync {
    /// How it is offered.
    fn spec(&self) -> ToolSpec;

    /// Checks the arguments and works out what would be done.
    ///
    /// # Errors
    /// Whatever makes the call impossible; nobody is asked to approve a call that cannot run.
    fn prepare(&self, args: Value, ctx: &Context) -> Result<Prepared>;
}

/// Tells work on another thread that nobody waits for it any more.
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Whether to stop.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Cancels when what is returned is dropped.
    pub(crate) fn on_drop(self) -> CancelOnDrop {
        CancelOnDrop(self)
    }
}

pub(crate) struct CancelOnDrop(Cancel);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}

/// What a call may lean on.
#[derive(Clone)]
pub struct Context {
    /// The call.
    pub call_id: String,
    /// The root that no path may leave.
    pub workspace: Arc<Workspace>,
    /// Where file versions are kept.
    pub blobs: Blobs,
    /// Where a long output goes.
    pub overflow: Option<Overflow>,
    /// Hears the output of a running command.
    pub progress: Option<mpsc::Sender<String>>,
    /// Nobody waits for it any more.
    pub cancel: Cancel,
    /// The workspace as it was last seen.
    pub(crate) shadow: Arc<Shadow>,
    /// What the child process may see of the environment.
    pub environment: Arc<[(String, String)]>,
}

/// A call that can run: what it would do, and the doing.
pub struct Prepared {
    /// What it would do, for a person and for a dry run.
    pub plan: Plan,
    /// What it touches.
    pub action: Action,
    /// Does it, once.
    pub run: Box<dyn FnOnce(Context) -> BoxFuture<'static, Result<Output>> + Send>,
}

impl fmt::Debug for Prepared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prepared").field("plan", &self.plan).field("action", &self.action).finish_non_exhaustive()
    }
}

impl Prepared {
    fn new<F, R>(plan: Plan, action: Action, run: F) -> Prepared
    where
        F: FnOnce(Context) -> R + Send + 'static,
        R: Future<Output = Result<Output>> + Send + 'static,
    {
        Prepared { plan, action, run: Box::new(move |ctx| Box::pin(run(ctx))) }
    }

    /// A call that only reads and whose work is not worth a thread of its own.
    fn reading<F>(would: &str, target: String, run: F) -> Prepared
    where
        F: FnOnce(&Context) -> Result<Output> + Send + 'static,
    {
        let plan = Plan { would: would.to_owned(), target, ..Plan::default() };
        Prepared::new(plan, Action::Read, |ctx| async move {
            tokio::task::spawn_blocking(move || run(&ctx)).await.unwrap_or_else(|e| {
                Err(Error::new(Code::CommandFailed, format!("the tool broke: {e}"), "report this as a bug"))
            })
        })
    }
}

/// What a tool did.
#[derive(Debug)]
pub struct Output {
    /// What it printed.
    pub stdout: Capture,
    /// What went wrong meanwhile, in the child's words.
    pub stderr: Capture,
    /// 0 where there is no child; 128 + n after a signal.
    pub exit: i32,
    /// Files that it changed.
    pub changes: Vec<FileChange>,
    /// The plan, when it is a new one.
    pub plan: Option<Vec<PlanItem>>,
}

impl Output {
    /// Plain text, bounded like any other output.
    fn text(ctx: &Context, text: &str) -> Output {
        let mut stdout = Capture::new(ctx.overflow.clone());
        stdout.push(text.as_bytes());
        Output { stdout, stderr: Capture::stderr(), exit: 0, changes: Vec::new(), plan: None }
    }
}

/// The tools that a Session offers, sorted by name.
#[derive(Clone)]
pub struct Registry {
    tools: Arc<[(ToolSpec, Arc<dyn Tool>)]>,
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}

impl Registry {
    /// Every typed tool.
    pub fn typed() -> Registry {
        let tools: [Arc<dyn Tool>; 8] = [
            Arc::new(bash::Bash),
            Arc::new(edit::Edit),
            Arc::new(find::Find),
            Arc::new(grep::Grep),
            Arc::new(ls::Ls),
            Arc::new(read::Read),
            Arc::new(plan::UpdatePlan),
            Arc::new(write::Write),
        ];
        let mut tools: Vec<(ToolSpec, Arc<dyn Tool>)> = tools.into_iter().map(|tool| (tool.spec(), tool)).collect();
        tools.sort_by_key(|(spec, _)| spec.name);
        Registry { tools: tools.into() }
    }

    /// How each is offered, sorted by name.
    pub fn specs(&self) -> Arc<[ToolSpec]> {
        self.tools.iter().map(|(spec, _)| spec.clone()).collect()
    }

    fn names(&self) -> impl Iterator<Item = &'static str> {
        self.tools.iter().map(|(spec, _)| spec.name)
    }

    /// The tool with this name.
    ///
    /// # Errors
    /// `UNKNOWN_TOOL`, with the nearest name and all names.
    pub fn find(&self, name: &str) -> Result<(&ToolSpec, &dyn Tool)> {
        if let Some((spec, tool)) = self.tools.iter().find(|(spec, _)| spec.name == name) {
            return Ok((spec, &**tool));
        }
        let all = self.names().collect::<Vec<_>>().join(", ");
        let fix = match nearest(name, self.names()) {
            Some(near) => format!("{near}. Available: {all}"),
            None => format!("one of: {all}"),
        };
        let shown: String = name.escape_debug().take(80).collect();
        Err(Error::new(Code::UnknownTool, format!("there is no tool `{shown}`"), fix).with("input", shown))
    }
}

/// Reads arguments against the tool's whole schema.
///
/// # Errors
/// `INVALID_ARGS` that names what is missing, what is unknown and what was probably meant.
fn parse_args<T: DeserializeOwned>(spec: &ToolSpec, args: Value) -> Result<T> {
    let usage = || format!("{} {}", spec.name, spec.parameters["properties"]);
    let Some(given) = args.as_object() else {
        return Err(Error::new(Code::InvalidArgs, "the arguments are not a JSON object", usage()).with("input", args));
    };
    let known: Vec<&str> =
        spec.parameters["properties"].as_object().map(|p| p.keys().map(String::as_str).collect()).unwrap_or_default();
    let unknown: Vec<String> = given
        .keys()
        .filter(|key| !known.contains(&key.as_str()))
        .map(|key| match nearest(key, known.iter().copied()) {
            Some(near) => format!("`{}` is unknown (did you mean `{near}`?)", key.escape_debug()),
            None => format!("`{}` is unknown", key.escape_debug()),
        })
        .collect();
    let required = spec.parameters["required"].as_array().cloned().unwrap_or_default();
    let missing = required
        .iter()
        .filter_map(Value::as_str)
        .filter(|key| !given.contains_key(*key))
        .map(|key| format!("`{key}` is missing"));
    let faults: Vec<String> = missing.chain(unknown).collect();
    if !faults.is_empty() {
        return Err(Error::new(Code::InvalidArgs, faults.join(", "), usage()).with("input", args));
    }
    serde_json::from_value(args.clone())
        .map_err(|e| Error::new(Code::InvalidArgs, e.to_string(), usage()).with("input", args))
}

/// The schema of an object: properties in the order given, and which of them are needed.
fn schema(properties: Value, required: &[&str]) -> Value {
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}
