//! What to do about an error, as data. Each Presenter words it with its own keys, commands and flags.

use std::borrow::Cow;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::event::Mode;

/// What to do about an error.
///
/// [`Remedy::plain`] words it for the model and for the Log; a Presenter words it for its user with an exhaustive match.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "do", rename_all = "snake_case")]
pub enum Remedy {
    /// Words that are the same everywhere.
    Text {
        /// A phrase without a final full stop; empty where there is nothing to do.
        text: String,
    },
    /// Each of these helps by itself.
    AnyOf {
        /// The likeliest first.
        remedies: Vec<Remedy>,
    },
    /// All of these, one after the other.
    Steps {
        /// The first one first.
        steps: Vec<Remedy>,
    },

    // The Turn and the conversation.
    /// Interrupt the running Turn.
    Interrupt,
    /// Send the same again.
    Retry {
        /// Seconds to wait before that.
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
    /// Take back what a Turn changed in files.
    Undo,
    /// Bring back what the last undo took away.
    Redo,
    /// Choose what happens to files that changed since: merge or overwrite.
    ResolveConflicts,
    /// Set the mode.
    SetMode {
        /// The least free mode that helps.
        mode: Mode,
    },
    /// Give a Turn more.
    RaiseLimit {
        /// What was reached.
        limit: Limit,
    },
    /// See which skills there are.
    ShowSkills,
    /// Activate a skill.
    UseSkill {
        /// Its name.
        name: String,
    },

    // Sessions.
    /// See which Sessions there are.
    ListSessions {
        /// Where to look.
        which: Sessions,
    },
    /// Open a Session to go on with it.
    Resume {
        /// The Session.
        id: String,
    },
    /// Open a Session without writing it.
    OpenReadOnly {
        /// The Session.
        id: String,
    },
    /// Make a damaged Log whole.
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
    /// Run it inside a Session, where the Log can hold what it stores.
    RunInSession,
    /// Name a workspace folder that exists.
    SetWorkspace,

    // The Provider.
    /// Ask a model other than this one.
    ChooseModel {
        /// What that model must be able to do.
        need: ModelNeed,
    },
    /// Name a model, because the Provider lists none.
    NameModel {
        /// The Provider.
        provider: String,
    },
    /// Set the base URL of the Provider.
    SetBaseUrl {
        /// The address, where it is known.
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
    /// Set a variable of the environment, which holds a key.
    SetVariable {
        /// Its name.
        name: String,
    },
    /// Put another key into a variable, because the server rejected the one in it.
    ReplaceVariable {
        /// Its name.
        name: String,
    },
    /// Store another key, because the server rejected the stored one.
    ReplaceKey {
        /// The Provider.
        provider: String,
    },

    // This machine.
    /// Check what is set up on this machine.
    CheckSetup,
    /// Check the folder that holds Logs and file versions.
    CheckStateFolder,
    /// See the JSON Schema of script files.
    ShowScriptSchema,
    /// See the table of error codes.
    ShowErrorCodes,
}

/// What a Turn may use up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// Seconds.
    Deadline,
    /// Rounds of tool calls.
    Rounds,
    /// Tokens, input and output.
    Tokens,
    /// US dollars.
    Cost,
}

/// Which Sessions a list holds.
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

/// What another model must be able to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ModelNeed {
    /// Nothing in particular.
    Any,
    /// Accept images.
    Images,
    /// Take a longer request.
    LargerWindow,
}

impl ModelNeed {
    /// The model, in words that are the same everywhere.
    pub const fn words(self) -> &'static str {
        match self {
            ModelNeed::Any => "another model",
            ModelNeed::Images => "a model that accepts images",
            ModelNeed::LargerWindow => "a model with a larger window",
        }
    }
}

impl Remedy {
    /// Words that are the same everywhere.
    pub fn text(text: impl Into<String>) -> Remedy {
        Remedy::Text { text: text.into() }
    }

    /// Each of these helps by itself.
    pub fn any_of<const N: usize>(remedies: [Remedy; N]) -> Remedy {
        Remedy::AnyOf { remedies: remedies.into() }
    }

    /// All of these, one after the other.
    pub fn steps<const N: usize>(steps: [Remedy; N]) -> Remedy {
        Remedy::Steps { steps: steps.into() }
    }

    /// There is nothing to do.
    pub fn is_empty(&self) -> bool {
        matches!(self, Remedy::Text { text } if text.is_empty())
    }

    /// The same, with every text in it rewritten.
    #[must_use]
    pub fn map_text(self, rewrite: &impl Fn(&str) -> String) -> Remedy {
        let each = |all: Vec<Remedy>| all.into_iter().map(|it| it.map_text(rewrite)).collect();
        match self {
            Remedy::Text { text } => Remedy::Text { text: rewrite(&text) },
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
            | Remedy::SetMode { .. }
            | Remedy::RaiseLimit { .. }
            | Remedy::ShowSkills
            | Remedy::UseSkill { .. }
            | Remedy::ListSessions { .. }
            | Remedy::Resume { .. }
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
            | Remedy::CheckSetup
            | Remedy::CheckStateFolder
            | Remedy::ShowScriptSchema
            | Remedy::ShowErrorCodes) => unchanged,
        }
    }

    /// The wording for the model and the Log; it names no key, no flag and no command of a Presenter.
    pub fn plain(&self) -> String {
        match self {
            Remedy::Text { text } => text.clone(),
            Remedy::AnyOf { remedies } => either(remedies, Remedy::plain),
            Remedy::Steps { steps } => in_order(steps, Remedy::plain),
            Remedy::Interrupt => "interrupt the turn, or wait until it ends".into(),
            Remedy::Retry { after_s } => retry(*after_s),
            Remedy::AnswerOpenApproval => "decide on the approval that is open now, if there is one".into(),
            Remedy::AnswerOpenForm => "answer the form that is open now, if there is one".into(),
            Remedy::Compact => "compact the conversation".into(),
            Remedy::NewSession => "start a new session".into(),
            Remedy::ShowTree => "look at the turns of the session".into(),
            Remedy::Undo => "undo a turn first".into(),
            Remedy::Redo => "redo the last undo".into(),
            Remedy::ResolveConflicts => "preview the files, then choose to merge or to overwrite".into(),
            Remedy::SetMode { mode } => format!("have the user set the mode to {}", mode.name()),
            Remedy::RaiseLimit { limit: Limit::Deadline } => "allow the turn more time".into(),
            Remedy::RaiseLimit { limit: Limit::Rounds } => "allow the turn more rounds".into(),
            Remedy::RaiseLimit { limit: Limit::Tokens } => "allow the turn more tokens".into(),
            Remedy::RaiseLimit { limit: Limit::Cost } => "allow the turn to cost more".into(),
            Remedy::ShowSkills => "list the skills".into(),
            Remedy::UseSkill { name } => format!("the skill `{name}`"),
            Remedy::ListSessions { which: Sessions::Here } => "list the sessions of this workspace".into(),
            Remedy::ListSessions { which: Sessions::All } => "list the sessions of all workspaces".into(),
            Remedy::ListSessions { which: Sessions::Trash } => "list the sessions in the trash".into(),
            Remedy::Resume { id } => format!("resume session {id}"),
            Remedy::OpenReadOnly { id } => format!("open session {id} read-only"),
            Remedy::Repair { id } => format!("repair session {id}"),
            Remedy::DeleteSession { id } => format!("move session {id} to the trash"),
            Remedy::ExportSession => "export the session again as JSON".into(),
            Remedy::RunInSession => "run it in a session".into(),
            Remedy::SetWorkspace => "name a workspace folder that exists".into(),
            Remedy::ChooseModel { need } => format!("use {}", need.words()),
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
            Remedy::CheckSetup => "check what is set up on this machine".into(),
            Remedy::CheckStateFolder => "check the state folder".into(),
            Remedy::ShowScriptSchema => "follow the JSON Schema of script files".into(),
            Remedy::ShowErrorCodes => "use a code of the table of error codes".into(),
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

/// `a, b, or c`: how a Presenter joins remedies of which each helps.
pub fn either(remedies: &[Remedy], word: impl Fn(&Remedy) -> String) -> String {
    let mut words: Vec<String> = remedies.iter().map(word).collect();
    let last = words.pop().unwrap_or_default();
    if words.is_empty() { last } else { format!("{}, or {last}", words.join(", ")) }
}

/// `a, then b`: how a Presenter joins remedies that are all needed.
pub fn in_order(steps: &[Remedy], word: impl Fn(&Remedy) -> String) -> String {
    steps.iter().map(word).collect::<Vec<_>>().join(", then ")
}

/// `try again in 3 min`, for a Presenter that words [`Remedy::Retry`].
pub fn retry(after_s: Option<u64>) -> String {
    after_s.map_or_else(|| "try again".into(), |s| format!("try again in {}", wait(Duration::from_secs(s))))
}

/// `3 min`, `24 h`: as precise as a wait of that length needs to be.
pub fn wait(time: Duration) -> String {
    match time.as_secs() {
        s @ 0..120 => format!("{s} s"),
        s @ 120..7_200 => format!("{} min", s.div_ceil(60)),
        s @ 7_200..172_800 => format!("{} h", s.div_ceil(3_600)),
        s => format!("{} days", s.div_ceil(86_400)),
    }
}

/// A remedy as a Log holds it: JSON that is written again byte for byte, also where a later build wrote it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LoggedRemedy(Box<RawValue>);

impl LoggedRemedy {
    /// The remedy; `None` for one of a later build.
    pub fn known(&self) -> Option<Remedy> {
        serde_json::from_str(self.0.get()).ok()
    }
}

impl From<&Remedy> for LoggedRemedy {
    fn from(remedy: &Remedy) -> LoggedRemedy {
        LoggedRemedy(serde_json::value::to_raw_value(remedy).expect("a remedy has only text keys"))
    }
}

impl PartialEq for LoggedRemedy {
    fn eq(&self, other: &LoggedRemedy) -> bool {
        self.0.get() == other.0.get()
    }
}

/// What this build writes. A later build may write another object.
impl schemars::JsonSchema for LoggedRemedy {
    fn schema_name() -> Cow<'static, str> {
        "LoggedRemedy".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        generator.subschema_for::<Remedy>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn remedies_join_as_a_sentence_does() {
        let all = Remedy::any_of(["a".into(), "b".into(), Remedy::ChooseModel { need: ModelNeed::Any }]);
        assert_eq!(all.plain(), "a, b, or use another model");
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
