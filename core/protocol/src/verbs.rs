//! The verbs: orders that a user types as one word and its argument. Each stands here once: what it takes, what it does, which
//! Presenters offer it, and the Input that it becomes. A Presenter adds what its own screen makes of it.

use super::effort::Effort;
use super::error::{Code, Error, Result};
use super::event::{Attachment, Mode, Toolset};
use super::input::{CompactOptions, FolderAccess, Input, RestoreOptions, RuleReach, SettingsChange};
use super::servers::ServerAct;

/// Makes the Input of an order.
type MakeInput = fn(Order<'_>) -> Result<Input>;

/// What the table says about a verb.
#[derive(Debug, Clone, Copy)]
pub struct Verb {
    /// The word.
    pub name: &'static str,
    /// What follows it: `[turn]` where that can be left out, `<name>` where not; empty for nothing.
    pub args: &'static str,
    /// What can complete that.
    pub argument: Argument,
    /// When it is available.
    pub when: When,
    /// What it does, as a phrase.
    pub about: &'static str,
    /// The Inputs that it becomes, for the reference.
    pub does: &'static str,
    /// How the menu of a client offers it; `None` where none does.
    pub client: Option<Menu>,
    /// Whether a headless run accepts it as its prompt.
    pub headless: bool,
    /// The Input that it becomes; `None` where that depends on more than the argument, and each Presenter makes it.
    order: Option<(Outcome, MakeInput)>,
}

/// What a verb takes after its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Argument {
    /// Free text, or nothing.
    Text,
    /// One of these words.
    Words(&'static [&'static str]),
    /// A Session of this workspace.
    Session,
    /// A Turn of this branch, by its number or its label.
    Turn,
    /// A model.
    Model,
    /// A theme of the interface.
    Theme,
    /// A skill, by its name.
    Skill,
    /// A file of the workspace.
    File,
    /// A folder outside the workspace.
    Folder,
    /// Another verb.
    Command,
}

/// When a verb is available.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// Also where a Session is only looked at.
    Always,
    /// In a live Session.
    Live,
    /// In a live Session without a running Turn.
    Idle,
}

/// How the menu of a client offers a verb.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Menu {
    /// What it does, as a sentence without a full stop.
    pub about: &'static str,
    /// What to type after it; empty for nothing.
    pub hint: &'static str,
}

/// What comes of the Input of a verb.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It is carried out.
    Done,
    /// A dry run publishes a preview, which the user sees before it is carried out.
    Previewed,
    /// Events that are shown to the user.
    Shown,
}

/// An order of a user, without its verb.
#[derive(Debug, Clone, Default)]
pub struct Order<'a> {
    /// What follows the verb.
    pub args: &'a str,
    /// Images that come with it.
    pub attachments: Vec<Attachment>,
    /// Only a preview is wanted.
    pub dry_run: bool,
}

impl Verb {
    const fn new(name: &'static str, args: &'static str, when: When, about: &'static str, does: &'static str) -> Verb {
        let (argument, client, headless, order) = (Argument::Text, None, false, None);
        Verb { name, args, argument, when, about, does, client, headless, order }
    }

    const fn takes(mut self, argument: Argument) -> Verb {
        self.argument = argument;
        self
    }

    const fn client(mut self, about: &'static str, hint: &'static str) -> Verb {
        self.client = Some(Menu { about, hint });
        self
    }

    const fn headless(mut self) -> Verb {
        self.headless = true;
        self
    }

    const fn is(mut self, outcome: Outcome, input: fn(Order<'_>) -> Result<Input>) -> Verb {
        self.order = Some((outcome, input));
        self
    }

    /// Whether the verb does nothing without an argument.
    pub fn needs_args(&self) -> bool {
        self.args.starts_with('<')
    }

    /// The Input that an order becomes, and what comes of it; `None` where each Presenter makes it.
    ///
    /// # Errors
    /// `INVALID_ARGS` and the like where the argument is no value of the verb.
    pub fn input(&self, order: Order<'_>) -> Option<Result<(Outcome, Input)>> {
        self.order.map(|(outcome, input)| Ok((outcome, input(order)?)))
    }
}

/// The verb of this name.
pub fn find(name: &str) -> Option<&'static Verb> {
    VERBS.iter().find(|it| it.name == name)
}

/// The verb of this name, in a table that is made when pixir is built.
///
/// # Panics
/// Without such a verb; in a constant that fails the build.
pub const fn named(name: &str) -> &'static Verb {
    let mut at = 0;
    while at < VERBS.len() {
        if is_same(VERBS[at].name.as_bytes(), name.as_bytes()) {
            return &VERBS[at];
        }
        at += 1;
    }
    panic!("there is no such verb")
}

/// `==`, which constants do not have yet.
const fn is_same(one: &[u8], other: &[u8]) -> bool {
    let mut at = 0;
    while at < one.len() && at < other.len() && one[at] == other[at] {
        at += 1;
    }
    one.len() == other.len() && at == one.len()
}

fn set(change: SettingsChange) -> Result<Input> {
    Ok(Input::Set(change))
}

fn skill(order: Order<'_>) -> Result<Input> {
    let Order { args, attachments, .. } = order;
    let (name, args) = args.split_once(char::is_whitespace).unwrap_or((args, ""));
    if name.is_empty() {
        return Err(Error::new(
            Code::InvalidArgs,
            "the name of the skill is missing",
            "name it, then what to do with it",
        ));
    }
    Ok(Input::ActivateSkill { name: name.to_owned(), args: args.trim().to_owned(), attachments })
}

fn undo(order: Order<'_>) -> Result<Input> {
    let turn = Some(order.args).filter(|it| !it.is_empty()).map(str::parse).transpose().map_err(|_| {
        let message = format!("`{}` is not the number of a turn", order.args.escape_debug());
        Error::new(Code::InvalidArgs, message, "a number, or nothing for the last one")
    })?;
    Ok(Input::Undo { turn, options: restore(order.dry_run) })
}

fn restore(dry_run: bool) -> RestoreOptions {
    RestoreOptions { dry_run, ..RestoreOptions::default() }
}

fn effort(order: Order<'_>) -> Result<Input> {
    // Without an effort the model has its own.
    let name = if order.args == DEFAULT_EFFORT { "" } else { Effort::parse(order.args)?.name() };
    set(SettingsChange { effort: Some(name.to_owned()), ..SettingsChange::default() })
}

/// The word that leaves the effort to the model.
pub const DEFAULT_EFFORT: &str = "default";

use Argument::{Folder, Model, Skill, Turn, Words};
use Outcome::{Done, Previewed, Shown};
use When::{Always, Idle, Live};

/// The whole table, in the order of the menus of clients.
#[rustfmt::skip]
pub const VERBS: &[Verb] = &[
    Verb::new("compact", "[instructions]", Idle, "replace older history by a summary; previewed first", "Compact{dry_run, draft}, then Compact{seen, summary, keep, drop}").client("Replace the older part of the conversation by a summary", "what the summary should focus on").headless()
        .is(Previewed, |it| {
            let instructions = Some(it.args.to_owned()).filter(|it| !it.is_empty());
            Ok(Input::Compact { instructions, dry_run: it.dry_run, options: CompactOptions::default() })
        }),
    Verb::new("undo", "[turn]", Idle, "undo the file changes of a turn; previewed first", "Undo{dry_run}, then Undo{}").takes(Turn).client("Take back the file changes of a turn", "number of the turn").headless()
        .is(Previewed, undo),
    Verb::new("redo", "", Idle, "redo what was last undone; previewed first", "Redo{dry_run}, then Redo{}").client("Take back the last undo", "").headless()
        .is(Previewed, |it| Ok(Input::Redo { options: restore(it.dry_run) })),
    Verb::new("plan", "[task|on|off]", Always, "show the plan; with a task, plan it and change nothing until you agree", "Set{role: plan}, Prompt{}").client("Show the plan; with a task, plan it and change nothing until you agree", "the task, on or off"),
    Verb::new("tree", "", Always, "turns and branches: go back, edit, fork", "MoveHead{to_seq}, Fork{seq}, Label{seq} or Pin{seq}").client("Show the turns and branches", ""),
    Verb::new("rewind", "[turn|label]", Idle, "go back to an earlier turn, with or without its file changes", "MoveHead{to_seq, files: dry_run}, then MoveHead{}").takes(Turn).client("Go back to the end of an earlier turn, with or without its file changes", "number or label of the turn"),
    Verb::new("fork", "", Idle, "continue from here in a new session; this one stays as it is", "Fork{seq}").client("Continue from here in a new session; this one stays as it is", ""),
    Verb::new("label", "[name]", Live, "name the last turn; without a name, remove its name", "Label{seq, text}").client("Name the last turn; without a name, remove its name", "the name"),
    Verb::new("pin", "", Live, "keep the last turn word for word in compactions, or no longer", "Pin{seq, pinned}").client("Keep the last turn word for word in compactions, or no longer", ""),
    Verb::new("init", "", Idle, "the model writes AGENTS.md from a sketch of this repository", "Init").client("Let the model write AGENTS.md", "")
        .is(Done, |_| Ok(Input::Init)),
    Verb::new("skill", "[name] [task]", Idle, "add a SKILL.md to the conversation", "ActivateSkill{name, args}").takes(Skill).client("Activate a skill", "NAME, and what to do with it").headless()
        .is(Done, skill),
    Verb::new("rename", "<name>", Live, "name this session", "Set{name}").client("Name this session", "the name").headless()
        .is(Done, |it| set(SettingsChange { name: Some(it.args.to_owned()), ..SettingsChange::default() })),
    Verb::new("mode", "[read-only|ask|auto]", Live, "what may run without asking", "Set{mode}").takes(Words(&["read-only", "ask", "auto"])).client("Change what may run without asking", "read-only, ask or auto").headless()
        .is(Done, |it| set(SettingsChange { mode: Some(Mode::parse(it.args)?), ..SettingsChange::default() })),
    Verb::new("effort", "[level]", Live, "how hard the model thinks, from the next request on", "Set{effort}").takes(Words(&[DEFAULT_EFFORT, "none", "minimal", "low", "medium", "high", "xhigh", "max"])).client("Change how much the model reasons", "none to max").headless()
        .is(Done, effort),
    Verb::new("toolset", "[typed|run|both|none]", Live, "the tools that the model gets, from the next request on", "Set{toolset}").takes(Words(&["typed", "run", "both", "none"])).client("Change the tools of the model", "typed, run, both or none").headless()
        .is(Done, |it| set(SettingsChange { toolset: Some(Toolset::parse(it.args)?), ..SettingsChange::default() })),
    Verb::new("model", "[provider/name]", Live, "the model that answers from the next request on", "Set{provider, model}").takes(Model).client("Change the model", "provider/model"),
    Verb::new("add-dir", "<folder>[:rw]", Live, "read a folder outside the workspace; with :rw, work on it as on the workspace", "AddFolder{path, access}").takes(Folder).client("Read a folder outside the workspace, or work on it too", "the folder; FOLDER:rw to work on it")
        .is(Done, |it| {
            let (path, access) = FolderAccess::of(it.args);
            Ok(Input::AddFolder { path: path.to_owned(), access, holds: RuleReach::Session })
        }),
    Verb::new("trust", "[revoke]", Live, "what this workspace brings along, and whether you trust it", "ShowTrust, AnswerTrust{answer, seen}").takes(Words(&["revoke"])).client("Show what this workspace brings along, and decide whether it is in force", "revoke"),
    Verb::new("permissions", "", Live, "mode, sandbox, rules and the last decisions; x revokes a rule", "ListRules, RevokeRule{id}").client("Show the mode and the rules by which calls run without asking", "")
        .is(Shown, |_| Ok(Input::ListRules)),
    Verb::new("workflows", "[name [parameter=value]…]", Live, "the run of a workflow, step by step; with a name, run that one", "RunWorkflow{name, params}, ResumeWorkflow{rerun, skip, done, answers}").client("Run a workflow of this workspace", "NAME [parameter=value]…"),
    Verb::new("agents", "[name]", Live, "agents: what each does; enter, steer, stop or continue one", "ToAgent{path, input}, StopAgents{path}").client("Show the agents and what each does", ""),
    Verb::new("mcp", "", Live, "MCP servers: their state, tools and changes", "Mcp{server, act}").client("Show the MCP servers and their tools", "")
        .is(Shown, |_| Ok(Input::Mcp { server: None, act: ServerAct::Show })),
    Verb::new("context", "", Live, "what fills the model's window: pin, drop, go there", "ShowContext, then Pin{seq} or Drop{seq}").client("Show what fills the window of the model", "")
        .is(Shown, |_| Ok(Input::ShowContext)),
    Verb::new("jobs", "", Live, "background jobs and what they print", "ListJobs, StopJob{job}").client("Show the background jobs", "")
        .is(Shown, |_| Ok(Input::ListJobs)),
];
