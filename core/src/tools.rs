//! What a model can do: one trait, one registry, one path for every call.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::call::present::{Budget, Capture, Overflow};
use crate::context::library::Library;
use crate::files::scan::Shadow;
use crate::files::workspace::Workspace;
use crate::permissions::Action;
use crate::process::jobs::Jobs;
use crate::protocol::error::{Code, Error, Result, nearest};
use crate::protocol::event::{Attachment, Fact, FileChange, Plan, Printed, Toolset};
use crate::storage::blobs::Blobs;

mod ask; // a question to the person
pub(crate) mod bash; // run a command line
pub(crate) mod edit; // replace exact text in a file
pub mod executor; // validate, judge, run, present
pub(crate) mod find; // files by name
mod grep; // lines by pattern
pub(crate) mod job; // what runs in the background
mod known; // files as the model last saw them
mod ls; // one folder
pub(crate) mod plan; // the model's own list of steps
pub(crate) mod read; // a file, or a part of it
pub(crate) mod recall; // what was said in past Sessions
pub mod run; // a chain of commands: the other toolset
mod schema; // arguments against a tool's whole schema
pub(crate) mod skill; // practices that are written down
pub(crate) mod write; // a whole file

pub use ask::{Answers, Ask};
pub(crate) use find::walk;
pub(crate) use known::Known;

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
pub struct Cancel {
    own: Arc<AtomicBool>,
    /// Whoever this is a part of.
    whole: Option<Arc<AtomicBool>>,
}

impl Cancel {
    /// Whether to stop.
    pub fn is_cancelled(&self) -> bool {
        self.own.load(Ordering::Relaxed) || self.whole.as_ref().is_some_and(|whole| whole.load(Ordering::Relaxed))
    }

    /// For a part of the work that can be stopped alone.
    pub(crate) fn part(&self) -> Cancel {
        Cancel { own: Arc::default(), whole: Some(Arc::clone(&self.own)) }
    }

    /// Whoever still works on it stops.
    pub(crate) fn cancel(&self) {
        self.own.store(true, Ordering::Relaxed);
    }

    /// Cancels when what is returned is dropped.
    pub(crate) fn on_drop(self) -> CancelOnDrop {
        CancelOnDrop(self)
    }
}

pub(crate) struct CancelOnDrop(Cancel);

impl CancelOnDrop {
    /// There is nothing left to cancel.
    pub(crate) fn forget(self) {
        std::mem::forget(self);
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// What a call may lean on.
#[derive(Clone)]
pub struct Context {
    /// The call.
    pub call_id: String,
    /// The tools that it is one of.
    pub toolset: Toolset,
    /// The root that no path may leave.
    pub workspace: Arc<Workspace>,
    /// Where file versions are kept.
    pub blobs: Blobs,
    /// Where a long output goes.
    pub overflow: Option<Overflow>,
    /// Hears the output of a running command.
    pub progress: Option<mpsc::Sender<Printed>>,
    /// Nobody waits for it any more.
    pub cancel: Cancel,
    /// The workspace as it was last seen.
    pub(crate) shadow: Arc<Shadow>,
    /// Files as the model last saw them.
    pub(crate) known: Arc<Known>,
    /// What runs in the background; a call outside a Session has no background.
    pub(crate) jobs: Option<Arc<Jobs>>,
    /// Past Sessions and skills.
    pub(crate) library: Arc<Library>,
    /// Puts a question to the person, where there is one.
    pub asker: Option<mpsc::Sender<Ask>>,
    /// The model can look at images.
    pub sees_images: bool,
    /// What the child process may see of the environment.
    pub environment: Arc<[(String, String)]>,
}

/// A call that can run: what it would do, and the doing.
pub struct Prepared {
    /// What it would do, for a person and for a dry run.
    pub plan: Plan,
    /// What each part of it touches; a typed tool has one part, a chain one for each command.
    pub actions: Vec<Action>,
    /// Does it, once.
    pub run: Box<dyn FnOnce(Context) -> BoxFuture<'static, Result<Output>> + Send>,
}

impl fmt::Debug for Prepared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prepared").field("plan", &self.plan).field("actions", &self.actions).finish_non_exhaustive()
    }
}

impl Prepared {
    fn new<F, R>(plan: Plan, action: Action, run: F) -> Prepared
    where
        F: FnOnce(Context) -> R + Send + 'static,
        R: Future<Output = Result<Output>> + Send + 'static,
    {
        Prepared { plan, actions: vec![action], run: Box::new(move |ctx| Box::pin(run(ctx))) }
    }

    /// A call that only reads and whose work is not worth a thread of its own.
    fn reading<F>(would: &str, target: String, run: F) -> Prepared
    where
        F: FnOnce(&Context) -> Result<Output> + Send + 'static,
    {
        let plan = Plan { would: would.to_owned(), target, ..Plan::default() };
        Prepared::new(plan, Action::Read, |ctx| beside(move || run(&ctx)))
    }

    /// Nothing but reading comes of it.
    pub fn only_reads(&self) -> bool {
        self.actions.iter().all(|action| *action == Action::Read)
    }
}

/// Work that would hold up everything else, on a thread where it does not.
pub(crate) async fn beside<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|e| Err(broke(&e.to_string())))
}

/// A tool that panicked is a fault of ours, and a result like any other.
fn broke(why: &str) -> Error {
    Error::new(Code::CommandFailed, format!("the tool failed because of a bug in pixir: {why}"), "try another way")
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
    /// The exit code of each command of the last pipeline, when it had several.
    pub pipestatus: Vec<i32>,
    /// Files that it changed.
    pub changes: Vec<FileChange>,
    /// What it found out that is recorded with its result: a new plan, a memory.
    pub facts: Vec<Fact>,
    /// Images for the model to look at.
    pub attachments: Vec<Attachment>,
    /// What commands of a chain could not do, by their names.
    pub errors: Vec<(String, Error)>,
    /// What went wrong is told although the whole succeeded.
    pub tell_stderr: bool,
}

impl Output {
    /// Nothing yet; what is printed is bounded like this.
    pub(crate) fn new(ctx: &Context, budget: Budget) -> Output {
        let aside = ctx.overflow.clone().map(|it| Overflow { name: format!("{}.stderr", it.name), ..it });
        Output {
            stdout: Capture::new(budget, ctx.overflow.clone()),
            stderr: Capture::new(budget.stderr(), aside),
            exit: 0,
            pipestatus: Vec::new(),
            changes: Vec::new(),
            facts: Vec::new(),
            attachments: Vec::new(),
            errors: Vec::new(),
            tell_stderr: false,
        }
    }

    /// The text of files.
    fn of_files(ctx: &Context, text: &str) -> Output {
        let mut output = Output::new(ctx, Budget::TYPED);
        output.stdout.is_of_files();
        output.stdout.push(text.as_bytes());
        output
    }

    /// Plain text, bounded like any other output.
    fn text(ctx: &Context, text: &str) -> Output {
        let mut output = Output::new(ctx, Budget::TYPED);
        output.stdout.push(text.as_bytes());
        output
    }
}

/// The tools that a Session offers, sorted by name.
#[derive(Clone)]
pub struct Registry {
    tools: Arc<[(ToolSpec, Arc<dyn Tool>)]>,
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names(Toolset::Both)).finish()
    }
}

impl Registry {
    /// Every tool there is.
    pub fn all() -> Registry {
        let tools: [Arc<dyn Tool>; 15] = [
            Arc::new(ask::AskUser),
            Arc::new(bash::Bash),
            Arc::new(edit::Edit),
            Arc::new(find::Find),
            Arc::new(grep::Grep),
            Arc::new(job::JobKill),
            Arc::new(job::JobOutput),
            Arc::new(ls::Ls),
            Arc::new(read::Read),
            Arc::new(recall::Recall),
            Arc::new(run::Run),
            Arc::new(skill::SkillView),
            Arc::new(skill::SkillsList),
            Arc::new(plan::UpdatePlan),
            Arc::new(write::Write),
        ];
        let mut tools: Vec<(ToolSpec, Arc<dyn Tool>)> = tools.into_iter().map(|tool| (tool.spec(), tool)).collect();
        tools.sort_by_key(|(spec, _)| spec.name);
        Registry { tools: tools.into() }
    }

    /// How those of a toolset are offered, sorted by name.
    pub fn specs(&self, toolset: Toolset) -> Arc<[ToolSpec]> {
        self.of(toolset).map(|(spec, _)| spec.clone()).collect()
    }

    fn of(&self, toolset: Toolset) -> impl Iterator<Item = &(ToolSpec, Arc<dyn Tool>)> {
        self.tools.iter().filter(move |(spec, _)| match toolset {
            Toolset::Typed => spec.name != run::NAME,
            Toolset::Run => spec.name == run::NAME,
            Toolset::Both => true,
        })
    }

    fn names(&self, toolset: Toolset) -> impl Iterator<Item = &'static str> {
        self.of(toolset).map(|(spec, _)| spec.name)
    }

    /// The tool with this name, if this toolset has it.
    ///
    /// # Errors
    /// `UNKNOWN_TOOL`, with the nearest name and all names.
    pub fn find(&self, name: &str, toolset: Toolset) -> Result<(&ToolSpec, &dyn Tool)> {
        if let Some((spec, tool)) = self.of(toolset).find(|(spec, _)| spec.name == name) {
            return Ok((spec, &**tool));
        }
        let all = self.names(toolset).collect::<Vec<_>>().join(", ");
        let shown: String = name.escape_debug().take(80).collect();
        let fix = match nearest(name, self.names(toolset)) {
            _ if toolset == Toolset::Run => {
                format!("run with the command `{}`; `help` lists all of them", run::command_for(name))
            }
            Some(near) => format!("{near}. Available: {all}"),
            None => format!("use one of: {all}"),
        };
        Err(Error::new(Code::UnknownTool, format!("there is no tool `{shown}`"), fix).with("input", shown))
    }
}

impl Registry {
    /// Whether a call only reads, as far as that can be said before it is prepared; then it may run beside others.
    pub(crate) fn only_reads(&self, name: &str, args: &str, ctx: &Context) -> bool {
        match self.find(name, ctx.toolset) {
            Ok((spec, _)) => spec.reads_only || (name == run::NAME && run::only_reads(args, ctx)),
            Err(_) => false,
        }
    }
}

/// Arguments that were found to fit the tool's schema.
///
/// # Errors
/// `INVALID_ARGS` for what the schema cannot say.
fn parse_args<T: DeserializeOwned>(spec: &ToolSpec, mut args: Value) -> Result<T> {
    schema::tidy(&mut args);
    serde_json::from_value(args.clone())
        .map_err(|e| Error::new(Code::InvalidArgs, e.to_string(), schema::usage(spec)).with("input", args))
}

/// The schema of an object: properties in the order given, and which of them are needed.
fn object(properties: Value, required: &[&str]) -> Value {
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}
