//! What to do about an error, as data. Each Presenter words it with its own keys, commands and flags.

use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use logged::LoggedRemedy;
pub use phrase::{Part, words};

use super::event::{Mode, Toolset};

mod logged; // as a Log contains it
mod phrase; // words, with commands, flags and names of their own

/// What to do about an error.
///
/// [`Remedy::plain`] words it for the model and for the Log; a Presenter words it for its user with an exhaustive
/// match.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "do", rename_all = "snake_case")]
pub enum Remedy {
    /// A text that every Presenter shows unchanged.
    Text {
        /// A phrase without a final full stop; empty if there is nothing to do.
        text: String,
    },
    /// A phrase of one Presenter. Its commands, flags and names are parts of their own, so that a program need not read them
    /// from the words.
    Phrase {
        /// The parts, which read one behind the other.
        parts: Vec<Part>,
    },
    /// Alternatives; each one is sufficient.
    AnyOf {
        /// The alternatives, most likely first.
        remedies: Vec<Remedy>,
    },
    /// Steps that are all needed, in order.
    Steps {
        /// The steps, in order.
        steps: Vec<Remedy>,
    },

    // The Turn and the conversation.
    /// Interrupt the running Turn.
    Interrupt,
    /// Send the same message again.
    Retry {
        /// Seconds to wait before that; null means no known wait.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after_s: Option<u64>,
    },
    /// Decide on the approval that is open now.
    AnswerOpenApproval,
    /// Answer the form that is open now.
    AnswerOpenForm,
    /// Replace older History by a summary.
    Compact,
    /// Start a new Session.
    NewSession,
    /// Look at the turns and branches of the Session.
    ShowTree,
    /// Undo a Turn's changes to files.
    Undo,
    /// Redo the changes that the last undo took back.
    Redo,
    /// Decide whether a restore merges or overwrites files that changed since.
    ResolveConflicts,
    /// Agree that a restore writes protected files.
    AllowProtected,
    /// List the rules that the user made.
    ShowRules,
    /// Trust the workspace.
    TrustWorkspace,
    /// Set the mode.
    SetMode {
        /// The least permissive mode that is sufficient.
        mode: Mode,
    },
    /// Offer the model another toolset.
    SetToolset {
        /// The toolset that is sufficient.
        toolset: Toolset,
    },
    /// Raise a limit of a Turn.
    RaiseLimit {
        /// The limit that was reached.
        limit: Limit,
    },
    /// Go on with the run of the Session's workflow.
    ResumeRun,
    /// List the skills.
    ShowSkills,
    /// Activate a skill.
    UseSkill {
        /// Its name.
        name: String,
    },

    // Sessions.
    /// List the Sessions.
    ListSessions {
        /// Which Sessions to list.
        which: Sessions,
    },
    /// Resume a Session.
    Resume {
        /// The Session.
        id: String,
    },
    /// Fork a Session: continue in a copy of it.
    Fork {
        /// The Session to copy.
        id: String,
    },
    /// Open a Session read-only.
    OpenReadOnly {
        /// The Session.
        id: String,
    },
    /// Repair a damaged Log.
    Repair {
        /// The Session.
        id: String,
    },
    /// Move a Session to the trash.
    DeleteSession {
        /// The Session.
        id: String,
    },
    /// Export a Session as JSON, which can be imported.
    ExportSession,
    /// Run the command inside a Session, whose Log can store its notes.
    RunInSession,
    /// Name a workspace folder that exists.
    SetWorkspace,

    // The Provider.
    /// Choose another model.
    ChooseModel {
        /// What the other model must offer.
        need: ModelNeed,
    },
    /// Name a model, because the Provider lists none.
    NameModel {
        /// The Provider.
        provider: String,
    },
    /// Set the base URL of the Provider.
    SetBaseUrl {
        /// The address, if it is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        url: Option<String>,
    },
    /// Check the model, the dialect and the base URL.
    CheckEndpoint,
    /// Store a key.
    Login {
        /// The Provider, where it is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider: Option<String>,
    },
    /// Sign in with a code that is entered on another device.
    SignIn {
        /// The Provider, where it is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider: Option<String>,
    },
    /// Set the environment variable that contains the key.
    SetVariable {
        /// Its name.
        name: String,
    },
    /// Set an environment variable to another key, because the server rejected its key.
    ReplaceVariable {
        /// Its name.
        name: String,
    },
    /// Store another key, because the server rejected the stored one.
    ReplaceKey {
        /// The Provider.
        provider: String,
    },

    // MCP servers.
    /// Do something about an MCP server.
    McpServer {
        /// Its name; empty where none is configured yet.
        server: Box<str>,
        /// What to do.
        need: McpNeed,
    },
    /// Sign in to an MCP server.
    McpLogin(Box<ServerScope>),
    /// Store a secret that an MCP server gets.
    StoreSecret(Box<ServerSecret>),

    // This machine.
    /// Check the setup of this machine.
    CheckSetup,
    /// Check the folder that contains Logs and file versions.
    CheckStateFolder,
    /// Show the JSON Schema of script files.
    ShowScriptSchema,
    /// Show the table of error codes.
    ShowErrorCodes,
}

/// A limit of a Turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// The time limit.
    Deadline,
    /// The limit on rounds of tool calls.
    Rounds,
    /// Tokens, input and output.
    Tokens,
    /// US dollars.
    Cost,
}

/// Which Sessions a list contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Sessions {
    /// Those of this workspace.
    Here,
    /// Those of every workspace.
    All,
    /// Those in the trash.
    Trash,
}

/// A sign-in that an MCP server wants.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ServerScope {
    /// The server.
    pub server: String,
    /// The scope to ask for, where it is another one than at the first sign-in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
}

/// A secret that an MCP server gets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ServerSecret {
    /// The server.
    pub server: String,
    /// The variable that it gets.
    pub variable: String,
}

/// What the user can do about an MCP server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum McpNeed {
    /// Add one.
    Add,
    /// Start it, and look at what is wrong.
    Test,
    /// Start it again although it ended too often.
    Restart,
    /// Look at its definitions, and accept them.
    Accept,
    /// Look at its launch, and approve it.
    Trust,
}

/// What another model must offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ModelNeed {
    /// No requirement.
    Any,
    /// It accepts images.
    Images,
    /// It has a larger window.
    LargerWindow,
}

impl ModelNeed {
    /// Names such a model, in words that every Presenter uses.
    pub const fn words(self) -> &'static str {
        match self {
            ModelNeed::Any => "another model",
            ModelNeed::Images => "a model that accepts images",
            ModelNeed::LargerWindow => "a model with a larger window",
        }
    }
}

impl Remedy {
    /// Creates a remedy that every Presenter shows unchanged.
    pub fn text(text: impl Into<String>) -> Remedy {
        Remedy::Text { text: text.into() }
    }

    /// Creates a phrase that begins with a command for a shell.
    pub fn command(line: impl Into<String>) -> Remedy {
        Remedy::Phrase { parts: vec![Part::Command(line.into())] }
    }

    /// Creates a phrase that begins with a flag, and its value if it takes one.
    pub fn flag(flag: impl Into<String>) -> Remedy {
        Remedy::Phrase { parts: vec![Part::Flag(flag.into())] }
    }

    /// Asks whether a name was meant: `did you mean NAME?`
    pub fn nearest(name: impl Into<String>) -> Remedy {
        Remedy::text("did you mean ").and(Part::Nearest(name.into())).and_text("?")
    }

    /// Returns the phrase with one part more. Of a remedy that is no phrase, its plain words become one.
    #[must_use]
    pub fn and(self, part: Part) -> Remedy {
        let mut parts = match self {
            Remedy::Phrase { parts } => parts,
            other => vec![Part::Text(other.plain())],
        };
        parts.push(part);
        Remedy::Phrase { parts }
    }

    /// Appends words to the phrase.
    #[must_use]
    pub fn and_text(self, words: impl Into<String>) -> Remedy {
        self.and(Part::Text(words.into()))
    }

    /// Returns the phrase with a command behind it.
    #[must_use]
    pub fn and_command(self, line: impl Into<String>) -> Remedy {
        self.and(Part::Command(line.into()))
    }

    /// Returns the phrase with a flag behind it.
    #[must_use]
    pub fn and_flag(self, flag: impl Into<String>) -> Remedy {
        self.and(Part::Flag(flag.into()))
    }

    /// Something about an MCP server; its name is empty where none is configured yet.
    pub fn mcp(server: &str, need: McpNeed) -> Remedy {
        Remedy::McpServer { server: server.into(), need }
    }

    /// Sign in to an MCP server, with this scope if one is named.
    pub fn mcp_login(server: &str, scope: Option<String>) -> Remedy {
        Remedy::McpLogin(Box::new(ServerScope { server: server.to_owned(), scope }))
    }

    /// Creates a list of alternatives, each of them sufficient.
    pub fn any_of<const N: usize>(remedies: [Remedy; N]) -> Remedy {
        Remedy::AnyOf { remedies: remedies.into() }
    }

    /// Creates a list of steps that are all needed.
    pub fn steps<const N: usize>(steps: [Remedy; N]) -> Remedy {
        Remedy::Steps { steps: steps.into() }
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        matches!(self, Remedy::Text { text } if text.is_empty())
    }

    /// Returns the remedy with every text in it rewritten.
    #[must_use]
    pub fn map_text(self, rewrite: &impl Fn(&str) -> String) -> Remedy {
        let each = |all: Vec<Remedy>| all.into_iter().map(|it| it.map_text(rewrite)).collect();
        match self {
            Remedy::Text { text } => Remedy::Text { text: rewrite(&text) },
            Remedy::Phrase { parts } => {
                Remedy::Phrase { parts: parts.into_iter().map(|it| it.map_text(rewrite)).collect() }
            }
            Remedy::AnyOf { remedies } => Remedy::AnyOf { remedies: each(remedies) },
            Remedy::Steps { steps } => Remedy::Steps { steps: each(steps) },
            Remedy::SetBaseUrl { url } => Remedy::SetBaseUrl { url: url.map(|url| rewrite(&url)) },
            unchanged @ (Remedy::Interrupt
            | Remedy::Retry { .. }
            | Remedy::AnswerOpenApproval
            | Remedy::AnswerOpenForm
            | Remedy::Compact
            | Remedy::NewSession
            | Remedy::ShowTree
            | Remedy::Undo
            | Remedy::Redo
            | Remedy::ResolveConflicts
            | Remedy::AllowProtected
            | Remedy::ShowRules
            | Remedy::TrustWorkspace
            | Remedy::SetMode { .. }
            | Remedy::SetToolset { .. }
            | Remedy::RaiseLimit { .. }
            | Remedy::ResumeRun
            | Remedy::ShowSkills
            | Remedy::UseSkill { .. }
            | Remedy::ListSessions { .. }
            | Remedy::Resume { .. }
            | Remedy::Fork { .. }
            | Remedy::OpenReadOnly { .. }
            | Remedy::Repair { .. }
            | Remedy::DeleteSession { .. }
            | Remedy::ExportSession
            | Remedy::RunInSession
            | Remedy::SetWorkspace
            | Remedy::ChooseModel { .. }
            | Remedy::NameModel { .. }
            | Remedy::CheckEndpoint
            | Remedy::Login { .. }
            | Remedy::SignIn { .. }
            | Remedy::SetVariable { .. }
            | Remedy::ReplaceVariable { .. }
            | Remedy::ReplaceKey { .. }
            | Remedy::McpServer { .. }
            | Remedy::McpLogin(_)
            | Remedy::StoreSecret(_)
            | Remedy::CheckSetup
            | Remedy::CheckStateFolder
            | Remedy::ShowScriptSchema
            | Remedy::ShowErrorCodes) => unchanged,
        }
    }

    /// Returns the wording for the model and the Log. It names no key, flag or command of a Presenter.
    pub fn plain(&self) -> String {
        match self {
            Remedy::Text { text } => text.clone(),
            Remedy::Phrase { parts } => words(parts),
            Remedy::AnyOf { remedies } => either(remedies, Remedy::plain),
            Remedy::Steps { steps } => in_order(steps, Remedy::plain),
            Remedy::Interrupt => "interrupt the turn, or wait until it ends".into(),
            Remedy::Retry { after_s } => retry(*after_s),
            Remedy::AnswerOpenApproval => "decide on the approval that is open now, if there is one".into(),
            Remedy::AnswerOpenForm => "answer the form that is open now, if there is one".into(),
            Remedy::Compact => "compact the conversation".into(),
            Remedy::NewSession => "start a new session".into(),
            Remedy::ShowTree => "list the turns of the session".into(),
            Remedy::Undo => "undo a turn first".into(),
            Remedy::Redo => "redo the last undo".into(),
            Remedy::AllowProtected => "look at the preview, and agree there that protected files are written".into(),
            Remedy::ShowRules => "list the rules".into(),
            Remedy::TrustWorkspace => "the user can look at it, and trust this workspace".into(),
            Remedy::ResolveConflicts => "preview the files, then choose to merge or to overwrite".into(),
            Remedy::SetMode { mode } => format!("have the user set the mode to {}", mode.name()),
            Remedy::SetToolset { toolset: Toolset::None } => "go on without tools".into(),
            Remedy::SetToolset { toolset } => format!("use the toolset {}, which takes less room", toolset.name()),
            Remedy::RaiseLimit { limit: Limit::Deadline } => "allow the turn more time".into(),
            Remedy::RaiseLimit { limit: Limit::Rounds } => "allow the turn more rounds".into(),
            Remedy::RaiseLimit { limit: Limit::Tokens } => "allow the turn more tokens".into(),
            Remedy::RaiseLimit { limit: Limit::Cost } => "allow the turn to cost more".into(),
            Remedy::ResumeRun => "resume the run".into(),
            Remedy::ShowSkills => "list the skills".into(),
            Remedy::UseSkill { name } => format!("the skill `{name}`"),
            Remedy::ListSessions { which: Sessions::Here } => "list the sessions of this workspace".into(),
            Remedy::ListSessions { which: Sessions::All } => "list the sessions of all workspaces".into(),
            Remedy::ListSessions { which: Sessions::Trash } => "list the sessions in the trash".into(),
            Remedy::Resume { id } => format!("resume session {id}"),
            Remedy::Fork { id } => format!("continue in a fork of session {id}"),
            Remedy::OpenReadOnly { id } => format!("open session {id} read-only"),
            Remedy::Repair { id } => format!("repair session {id}"),
            Remedy::DeleteSession { id } => format!("move session {id} to the trash"),
            Remedy::ExportSession => "export the session again as JSON".into(),
            Remedy::RunInSession => "run it in a session".into(),
            Remedy::SetWorkspace => "name a workspace folder that exists".into(),
            Remedy::ChooseModel { need } => format!("choose {}", need.words()),
            Remedy::NameModel { provider } => format!("name a model of {provider}"),
            Remedy::SetBaseUrl { url: Some(url) } => format!("set the base URL to {url}"),
            Remedy::SetBaseUrl { url: None } => "set a base URL".into(),
            Remedy::CheckEndpoint => "check the model, the dialect and the base URL of the provider".into(),
            Remedy::Login { provider: Some(provider) } => format!("store a key for {provider}"),
            Remedy::Login { provider: None } => "store a key for the provider".into(),
            Remedy::SignIn { provider: Some(provider) } => format!("sign in to {provider} again"),
            Remedy::SignIn { provider: None } => "sign in to the provider again".into(),
            Remedy::SetVariable { name } => format!("set the environment variable {name}"),
            Remedy::ReplaceVariable { name } => format!("the server rejected the key in {name}; set it to another"),
            Remedy::ReplaceKey { provider } => {
                format!("the server rejected the stored key; store another for {provider}")
            }
            Remedy::McpServer { server, need } => match need {
                McpNeed::Add => "have the user add one".into(),
                McpNeed::Test => format!("work without it, or have the user look at what is wrong with {server}"),
                McpNeed::Restart => format!("work without it, or have the user start {server} again"),
                McpNeed::Accept => format!("have the user look at the tools of {server} and accept them"),
                McpNeed::Trust => format!("have the user look at the launch of {server} and approve it"),
            },
            Remedy::McpLogin(it) => format!("have the user sign in to {}", it.server),
            Remedy::StoreSecret(it) => {
                format!("have the user set {} in the environment, or store it for {}", it.variable, it.server)
            }
            Remedy::CheckSetup => "check the setup of this machine".into(),
            Remedy::CheckStateFolder => "check the state folder".into(),
            Remedy::ShowScriptSchema => "follow the JSON Schema of script files".into(),
            Remedy::ShowErrorCodes => "choose a code from the table of error codes".into(),
        }
    }
}

impl From<&str> for Remedy {
    fn from(text: &str) -> Remedy {
        Remedy::text(text)
    }
}

impl From<String> for Remedy {
    fn from(text: String) -> Remedy {
        Remedy::text(text)
    }
}

/// Joins alternatives: `a, b, or c`.
pub fn either(remedies: &[Remedy], word: impl Fn(&Remedy) -> String) -> String {
    let mut words: Vec<String> = remedies.iter().map(word).collect();
    let last = words.pop().unwrap_or_default();
    if words.is_empty() { last } else { format!("{}, or {last}", words.join(", ")) }
}

/// Joins steps: `a, then b`.
pub fn in_order(steps: &[Remedy], word: impl Fn(&Remedy) -> String) -> String {
    steps.iter().map(word).collect::<Vec<_>>().join(", then ")
}

/// Words a [`Remedy::Retry`]: `try again in 3 min`.
pub fn retry(after_s: Option<u64>) -> String {
    after_s.map_or_else(|| "try again".into(), |s| format!("try again in {}", wait(Duration::from_secs(s))))
}

/// Formats a wait, less precisely the longer it is: `30 s`, `3 min`, `24 h`.
pub fn wait(time: Duration) -> String {
    match time.as_secs() {
        s @ 0..120 => format!("{s} s"),
        s @ 120..7_200 => format!("{} min", s.div_ceil(60)),
        s @ 7_200..172_800 => format!("{} h", s.div_ceil(3_600)),
        s => format!("{} days", s.div_ceil(86_400)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn remedies_join_as_a_sentence_does() {
        let all = Remedy::any_of(["a".into(), "b".into(), Remedy::ChooseModel { need: ModelNeed::Any }]);
        assert_eq!(all.plain(), "a, b, or choose another model");
        assert_eq!(
            Remedy::steps(["free some space".into(), Remedy::Resume { id: "x".into() }]).plain(),
            "free some space, then resume session x"
        );
        assert_eq!(Remedy::Retry { after_s: Some(86_400) }.plain(), "try again in 24 h");
    }

    #[test]
    fn a_remedy_is_tagged_data_and_a_later_builds_remedy_is_kept() {
        let set = Remedy::SetMode { mode: Mode::Ask };
        assert_eq!(serde_json::to_value(&set).expect("JSON"), json!({ "do": "set_mode", "mode": "ask" }));
        let later = r#"{ "do": "water_the_plants", "litres": 2.50 }"#;
        let read: LoggedRemedy = serde_json::from_str(later).expect("any JSON will do");
        assert_eq!(read.known(), None);
        assert_eq!(serde_json::to_string(&read).expect("JSON"), later);
        assert_eq!(LoggedRemedy::from(&set).known(), Some(set));
    }
}
