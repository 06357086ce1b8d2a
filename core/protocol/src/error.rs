//! What can go wrong: a closed kind to branch on, a finer code, a message, and what to do instead.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::remedy::{LoggedRemedy, Remedy};

/// The result of a fallible operation of the core.
pub type Result<T, E = Error> = std::result::Result<T, E>;

macro_rules! kinds {
    ($($variant:ident = $name:literal),* $(,)?) => {
        /// The kind of a failure: a closed set that users, programs and models can branch on.
        ///
        /// A new kind changes a contract with other programs; a finer distinction is a [`Code`].
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
        #[serde(rename_all = "snake_case")]
        #[expect(missing_docs, reason = "each name is the documentation; `pixir schema` prints the table")]
        pub enum ErrorKind { $($variant),* }

        impl ErrorKind {
            /// Every kind, in the order of its origin: tools, turn, log, provider, auth, command line.
            pub const ALL: &'static [ErrorKind] = &[$(ErrorKind::$variant),*];

            /// The name on the wire, in snake case.
            pub const fn name(self) -> &'static str {
                match self { $(ErrorKind::$variant => $name),* }
            }
        }
    };
}

kinds! {
    InvalidArgs = "invalid_args",
    UnknownTool = "unknown_tool",
    OutsideWorkspace = "outside_workspace",
    NotFound = "not_found",
    ResourceMissing = "resource_missing",
    NoMatch = "no_match",
    NotUnique = "not_unique",
    ReadFailed = "read_failed",
    WriteFailed = "write_failed",
    CommandFailed = "command_failed",
    Timeout = "timeout",
    PermissionDenied = "permission_denied",
    Detached = "detached",
    IterationCap = "iteration_cap",
    ToolResultRecordFailed = "tool_result_record_failed",
    CorruptLogLine = "corrupt_log_line",
    EphemeralNotLoggable = "ephemeral_not_loggable",
    LogEncodeFailed = "log_encode_failed",
    LogReadFailed = "log_read_failed",
    LogWriteFailed = "log_write_failed",
    ProviderHttpError = "provider_http_error",
    ModelNotSupported = "model_not_supported",
    UsageLimitReached = "usage_limit_reached",
    RateLimited = "rate_limited",
    Network = "network",
    NotAuthenticated = "not_authenticated",
    TokenRequestFailed = "token_request_failed",
    NoAccountId = "no_account_id",
    InvalidResponse = "invalid_response",
    CorruptAuth = "corrupt_auth",
    AuthReadFailed = "auth_read_failed",
    AuthWriteFailed = "auth_write_failed",
    DeviceAuthFailed = "device_auth_failed",
    DeviceCodeUnsupported = "device_code_unsupported",
    SessionStartFailed = "session_start_failed",
    NoPrompt = "no_prompt",
    StdinError = "stdin_error",
}

macro_rules! codes {
    ($($variant:ident = $name:literal, $kind:ident);* $(;)?) => {
        /// A finer name for a failure. Codes are only added, never renamed or removed; each belongs to one kind.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[expect(missing_docs, reason = "each name is the documentation; `pixir schema` prints the table")]
        pub enum Code { $($variant),* }

        impl Code {
            /// Every code, grouped like [`ErrorKind::ALL`].
            pub const ALL: &'static [Code] = &[$(Code::$variant),*];

            /// The name on the wire, in upper case.
            pub const fn name(self) -> &'static str {
                match self { $(Code::$variant => $name),* }
            }

            /// The kind that this code refines.
            pub const fn kind(self) -> ErrorKind {
                match self { $(Code::$variant => ErrorKind::$kind),* }
            }
        }
    };
}

codes! {
    InvalidArgs = "INVALID_ARGS", InvalidArgs;
    UnsupportedSyntax = "UNSUPPORTED_SYNTAX", InvalidArgs;
    Usage = "USAGE", InvalidArgs;
    UnknownCommand = "UNKNOWN_COMMAND", InvalidArgs;
    UnknownFlag = "UNKNOWN_FLAG", InvalidArgs;
    ConfigInvalid = "CONFIG_INVALID", InvalidArgs;
    PreviewStale = "PREVIEW_STALE", InvalidArgs;
    ScriptInvalid = "SCRIPT_INVALID", InvalidArgs;
    NothingToDo = "NOTHING_TO_DO", InvalidArgs;
    WorkflowInvalid = "WORKFLOW_INVALID", InvalidArgs;
    TemplateMissing = "TEMPLATE_MISSING", InvalidArgs;
    TooManyItems = "TOO_MANY_ITEMS", InvalidArgs;
    UnknownTool = "UNKNOWN_TOOL", UnknownTool;
    OutsideWorkspace = "OUTSIDE_WORKSPACE", OutsideWorkspace;
    NotFound = "NOT_FOUND", NotFound;
    SessionNotFound = "SESSION_NOT_FOUND", NotFound;
    SkillNotFound = "SKILL_NOT_FOUND", NotFound;
    TemplateNotFound = "TEMPLATE_NOT_FOUND", NotFound;
    WorkflowNotFound = "WORKFLOW_NOT_FOUND", NotFound;
    WorkspaceGone = "WORKSPACE_GONE", NotFound;
    ResourceMissing = "RESOURCE_MISSING", ResourceMissing;
    NoMatch = "NO_MATCH", NoMatch;
    NotUnique = "NOT_UNIQUE", NotUnique;
    ReadFailed = "READ_FAILED", ReadFailed;
    BinaryFile = "BINARY_FILE", ReadFailed;
    NotRegularFile = "NOT_REGULAR_FILE", ReadFailed;
    WriteFailed = "WRITE_FAILED", WriteFailed;
    FileChanged = "FILE_CHANGED", WriteFailed;
    MergeConflict = "MERGE_CONFLICT", WriteFailed;
    CommandFailed = "COMMAND_FAILED", CommandFailed;
    SandboxFailed = "SANDBOX_FAILED", CommandFailed;
    NeverStarted = "NEVER_STARTED", CommandFailed;
    CopyFailed = "COPY_FAILED", CommandFailed;
    McpStartFailed = "MCP_START_FAILED", CommandFailed;
    McpServerExited = "MCP_SERVER_EXITED", CommandFailed;
    McpLimit = "MCP_LIMIT", CommandFailed;
    OrphanToolCall = "ORPHAN_TOOL_CALL", CommandFailed;
    AgentsPartial = "AGENTS_PARTIAL", CommandFailed;
    AgentsFailed = "AGENTS_FAILED", CommandFailed;
    WorkflowPartial = "WORKFLOW_PARTIAL", CommandFailed;
    WorkflowFailed = "WORKFLOW_FAILED", CommandFailed;
    CheckFailed = "CHECK_FAILED", CommandFailed;
    SkippedForSteer = "SKIPPED_FOR_STEER", CommandFailed;
    Timeout = "TIMEOUT", Timeout;
    LeaseHeld = "LEASE_HELD", Timeout;
    McpTimeout = "MCP_TIMEOUT", Timeout;
    StreamIdleTimeout = "STREAM_IDLE_TIMEOUT", Timeout;
    PermissionDenied = "PERMISSION_DENIED", PermissionDenied;
    MutationBlocked = "MUTATION_BLOCKED", PermissionDenied;
    InputRequired = "INPUT_REQUIRED", PermissionDenied;
    WorkspaceUntrusted = "WORKSPACE_UNTRUSTED", PermissionDenied;
    McpDefinitionChanged = "MCP_DEFINITION_CHANGED", PermissionDenied;
    McpUntrusted = "MCP_UNTRUSTED", PermissionDenied;
    WorkflowHeld = "WORKFLOW_HELD", PermissionDenied;
    ConfirmationNeeded = "CONFIRMATION_NEEDED", PermissionDenied;
    Detached = "DETACHED", Detached;
    IterationCap = "ITERATION_CAP", IterationCap;
    DeadlineReached = "DEADLINE_REACHED", IterationCap;
    BudgetReached = "BUDGET_REACHED", IterationCap;
    TooManyFailures = "TOO_MANY_FAILURES", IterationCap;
    OutputTruncated = "OUTPUT_TRUNCATED", IterationCap;
    AnswerTooLarge = "ANSWER_TOO_LARGE", IterationCap;
    ToolResultRecordFailed = "TOOL_RESULT_RECORD_FAILED", ToolResultRecordFailed;
    CorruptLogLine = "CORRUPT_LOG_LINE", CorruptLogLine;
    EphemeralNotLoggable = "EPHEMERAL_NOT_LOGGABLE", EphemeralNotLoggable;
    LogEncodeFailed = "LOG_ENCODE_FAILED", LogEncodeFailed;
    LogReadFailed = "LOG_READ_FAILED", LogReadFailed;
    LogWriteFailed = "LOG_WRITE_FAILED", LogWriteFailed;
    ProviderUnavailable = "PROVIDER_UNAVAILABLE", ProviderHttpError;
    ProviderHttpError = "PROVIDER_HTTP_ERROR", ProviderHttpError;
    ContextOverflow = "CONTEXT_OVERFLOW", ProviderHttpError;
    RequestTooLarge = "REQUEST_TOO_LARGE", ProviderHttpError;
    ImageRefused = "IMAGE_REFUSED", ProviderHttpError;
    Refused = "REFUSED", ProviderHttpError;
    ReasoningRejected = "REASONING_REJECTED", ProviderHttpError;
    ModelNotSupported = "MODEL_NOT_SUPPORTED", ModelNotSupported;
    VisionUnsupported = "VISION_UNSUPPORTED", ModelNotSupported;
    ToolsUnsupported = "TOOLS_UNSUPPORTED", ModelNotSupported;
    UsageLimitReached = "USAGE_LIMIT_REACHED", UsageLimitReached;
    RateLimited = "RATE_LIMITED", RateLimited;
    Network = "NETWORK", Network;
    StreamClosed = "STREAM_CLOSED", Network;
    TlsFailed = "TLS_FAILED", Network;
    NetworkBlocked = "NETWORK_BLOCKED", Network;
    AuthRequired = "AUTH_REQUIRED", NotAuthenticated;
    McpAuthRequired = "MCP_AUTH_REQUIRED", NotAuthenticated;
    AccessDenied = "ACCESS_DENIED", NotAuthenticated;
    TokenRequestFailed = "TOKEN_REQUEST_FAILED", TokenRequestFailed;
    NoAccountId = "NO_ACCOUNT_ID", NoAccountId;
    InvalidResponse = "INVALID_RESPONSE", InvalidResponse;
    McpProtocol = "MCP_PROTOCOL", InvalidResponse;
    EmptyAnswer = "EMPTY_ANSWER", InvalidResponse;
    TextLoop = "TEXT_LOOP", InvalidResponse;
    ResultInvalid = "RESULT_INVALID", InvalidResponse;
    ResultMissing = "RESULT_MISSING", InvalidResponse;
    OutputInvalid = "OUTPUT_INVALID", InvalidResponse;
    ScriptMismatch = "SCRIPT_MISMATCH", InvalidResponse;
    CorruptAuth = "CORRUPT_AUTH", CorruptAuth;
    AuthReadFailed = "AUTH_READ_FAILED", AuthReadFailed;
    AuthWriteFailed = "AUTH_WRITE_FAILED", AuthWriteFailed;
    DeviceAuthFailed = "DEVICE_AUTH_FAILED", DeviceAuthFailed;
    DeviceCodeUnsupported = "DEVICE_CODE_UNSUPPORTED", DeviceCodeUnsupported;
    SessionStartFailed = "SESSION_START_FAILED", SessionStartFailed;
    SessionLocked = "SESSION_LOCKED", SessionStartFailed;
    SessionReadOnly = "SESSION_READ_ONLY", SessionStartFailed;
    NoPrompt = "NO_PROMPT", NoPrompt;
    StdinError = "STDIN_ERROR", StdinError;
}

impl ErrorKind {
    /// Returns the code that represents the kind: the code of the same name, else the kind's first code.
    pub fn code(self) -> Code {
        let codes = || Code::ALL.iter().copied().filter(move |code| code.kind() == self);
        let namesake = codes().find(|code| code.name().eq_ignore_ascii_case(self.name()));
        namesake.or_else(|| codes().next()).expect("every kind has a code: a test checks it")
    }
}

impl Code {
    /// Codes that this build never produces. They stay valid because programs may branch on them.
    pub const RESERVED: &'static [Code] = &[
        // A Log accepts only Facts, so the compiler already rejects a live event.
        Code::EphemeralNotLoggable,
    ];

    /// The code with this wire name.
    pub fn from_name(name: &str) -> Option<Code> {
        Code::ALL.iter().copied().find(|code| code.name() == name)
    }
}

macro_rules! notices {
    ($($(#[$doc:meta])* $variant:ident = $name:literal),* $(,)?) => {
        /// The subject of a Notice that is not a failure. Notices of failures have the name of a [`Code`].
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum NoticeCode { $($(#[$doc])* $variant),* }

        impl NoticeCode {
            /// Every notice code.
            pub const ALL: &'static [NoticeCode] = &[$(NoticeCode::$variant),*];

            /// The name on the wire, in upper case.
            pub const fn name(self) -> &'static str {
                match self { $(NoticeCode::$variant => $name),* }
            }
        }
    };
}

notices! {
    /// Another Provider answers, because the one before is not set up.
    ProviderReplaced = "PROVIDER_REPLACED",
    /// The window is too small for the tools, so the smaller toolset is offered.
    ToolsetReduced = "TOOLSET_REDUCED",
    /// The model takes no tools, so it is offered none.
    ToolsetDropped = "TOOLSET_DROPPED",
    /// The server loads the model before it answers.
    ModelLoading = "MODEL_LOADING",
    /// The server refused a parameter, so requests go without it.
    ParameterDropped = "PARAMETER_DROPPED",
    /// Requests leave out something large from now on, because the server has refused it.
    LeftOut = "LEFT_OUT",
    /// The model takes another effort than the one that was set.
    EffortMapped = "EFFORT_MAPPED",
    /// An interrupted move left the head where it was.
    NotMoved = "NOT_MOVED",
    /// An interrupted compaction left the conversation as it was.
    NotCompacted = "NOT_COMPACTED",
    /// An interrupted restore left files as they were.
    RestoreInterrupted = "RESTORE_INTERRUPTED",
    /// The user has answered whether the workspace is trusted.
    TrustChanged = "TRUST_CHANGED",
    /// The user lets the Session read a folder outside the workspace, or work on it.
    FolderAdded = "FOLDER_ADDED",
    /// A folder that the Session worked on is gone, or another one has taken its place.
    FolderLost = "FOLDER_LOST",
    /// A saved rule cannot be read by this build.
    RuleUnreadable = "RULE_UNREADABLE",
    /// A restore left a file as it was.
    FileLeft = "FILE_LEFT",
    /// A protected file was written while a job ran.
    FileProtected = "FILE_PROTECTED",
    /// A newer build wrote Entries that this one does not know.
    LogFromNewerBuild = "LOG_FROM_NEWER_BUILD",
    /// The agents of a turn have used most of their tokens.
    AgentTokensLow = "AGENT_TOKENS_LOW",
    /// The tools of MCP servers that requests offer have changed.
    OfferChanged = "OFFER_CHANGED",
    /// MCP servers of the workspace are not used, because no user has approved their launch.
    ServersInert = "SERVERS_INERT",
}

/// A failure that the user, a program or a model can act on.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// The finer name of the failure; it determines the kind.
    pub code: Code,
    /// What went wrong, in one sentence without a final full stop.
    pub message: String,
    /// What to do instead. Never empty at a boundary.
    pub remedy: Remedy,
    /// Details for programs: the offending input, line numbers, candidates.
    pub details: Map<String, Value>,
}

impl Error {
    /// Creates an error without details.
    pub fn new(code: Code, message: impl Into<String>, remedy: impl Into<Remedy>) -> Error {
        Error { code, message: message.into(), remedy: remedy.into(), details: Map::new() }
    }

    /// Returns the error with one more detail.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Error {
        self.details.insert(key.to_owned(), value.into());
        self
    }

    /// Returns the kind, which callers branch on.
    pub fn kind(&self) -> ErrorKind {
        self.code.kind()
    }

    /// Returns the durable form, as a Log, a tool result and the end of a Turn contain it.
    pub fn body(&self) -> ErrorBody {
        ErrorBody {
            kind: self.kind(),
            message: self.message.clone(),
            details: self.details.clone(),
            code: self.code.name().to_owned(),
            remediation: self.remedy.plain(),
            remedy: match &self.remedy {
                // `remediation` already contains the whole text.
                Remedy::Text { .. } => None,
                remedy => Some(Box::new(remedy.into())),
            },
        }
    }

    /// Returns the text for the model: `[error] name: what went wrong. Use: what to do instead`.
    pub fn for_model(&self, name: &str) -> String {
        if self.code == Code::UnknownCommand {
            return format!("[error] {} — {}", self.message, self.remedy.plain());
        }
        // The message of a usage error already contains the usage line.
        if self.code == Code::Usage || self.remedy.is_empty() {
            format!("[error] {name}: {}", self.message)
        } else {
            format!("[error] {name}: {}. Use: {}", self.message, self.remedy.plain())
        }
    }
}

/// The durable form of an [`Error`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ErrorBody {
    /// The kind, one of a closed set.
    pub kind: ErrorKind,
    /// What went wrong.
    pub message: String,
    /// Details for programs.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub details: Map<String, Value>,
    /// The finer name; empty in Entries of old builds.
    #[serde(default)]
    pub code: String,
    /// What to do instead, in words that name no key, flag or command of a Presenter.
    #[serde(default)]
    pub remediation: String,
    /// The remedy as data, unless it is plain text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<Box<LoggedRemedy>>,
}

impl ErrorBody {
    /// Returns the remedy for a Presenter to word. If this build does not know the recorded remedy, it is the recorded
    /// text.
    pub fn remedy(&self) -> Remedy {
        self.remedy.as_deref().and_then(LoggedRemedy::known).unwrap_or_else(|| Remedy::text(&*self.remediation))
    }
}

impl From<ErrorBody> for Error {
    fn from(body: ErrorBody) -> Error {
        // A newer build may have recorded a code that this one does not know. The set of kinds is closed, so the kind's
        // own code replaces it.
        let code = Code::from_name(&body.code).unwrap_or_else(|| body.kind.code());
        let remedy = body.remedy();
        Error { code, message: body.message, remedy, details: body.details }
    }
}

/// Returns the name in `known` that was most likely meant, if one is similar enough to suggest.
pub fn nearest<'a>(wrong: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (wrong.chars().count() / 3).clamp(1, 3);
    known
        .into_iter()
        .map(|name| (strsim::osa_distance(&wrong.to_lowercase(), &name.to_lowercase()), name))
        .filter(|(distance, name)| *distance <= limit || (wrong.len() >= 3 && name.starts_with(wrong)))
        // Among equally similar names, swapped letters are more likely than missing ones.
        .min_by_key(|(distance, name)| (*distance, name.len().abs_diff(wrong.len())))
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_error_survives_the_wire_and_a_later_builds_parts_fall_back() {
        let error = Error::new(Code::RateLimited, "slow down", Remedy::Retry { after_s: Some(30) }).with("status", 429);
        let body = error.body();
        assert_eq!(body.remediation, "try again in 30 s");
        let back = Error::from(body);
        assert_eq!(
            (back.code, &back.message, &back.remedy, &back.details),
            (error.code, &error.message, &error.remedy, &error.details)
        );
        let text = Error::new(Code::NotFound, "no", "look elsewhere").body();
        assert_eq!(serde_json::to_value(&text).expect("JSON").get("remedy"), None, "its wording is all of it");
        let later: ErrorBody = serde_json::from_value(json!({
            "kind": "rate_limited", "message": "slow down", "code": "BUSY_ELSEWHERE", "details": { "x": 1 },
            "remediation": "wait", "remedy": { "do": "water_the_plants" },
        }))
        .expect("an unknown code and an unknown remedy are no damage");
        assert_eq!(serde_json::to_value(&later).expect("JSON")["remedy"], json!({ "do": "water_the_plants" }));
        let error = Error::from(later);
        assert_eq!((error.code, error.remedy, &error.details["x"]), (Code::RateLimited, "wait".into(), &json!(1)));
        let old: ErrorBody = serde_json::from_value(json!({ "kind": "no_match", "message": "m" })).expect("an old one");
        assert_eq!(Error::from(old).code, Code::NoMatch);
    }

    #[test]
    fn the_kinds_are_the_closed_set_of_37_and_every_code_refines_one() {
        assert_eq!(ErrorKind::ALL.len(), 37);
        for kind in ErrorKind::ALL {
            assert_eq!(serde_json::to_value(kind).expect("a kind is a string"), json!(kind.name()));
            assert!(Code::ALL.iter().any(|code| code.kind() == *kind), "{} has no code", kind.name());
        }
        for code in Code::ALL {
            assert_eq!(Code::from_name(code.name()), Some(*code), "{} is not unique", code.name());
        }
    }

    #[test]
    fn a_body_becomes_its_error_again_and_an_unknown_code_falls_back_to_its_kind() {
        let error = Error::new(Code::SkillNotFound, "no skill `x`", "list them").with("input", "x");
        let back = Error::from(error.body());
        assert_eq!((back.code, back.body()), (error.code, error.body()));
        let later = ErrorBody { code: "A_LATER_CODE".into(), kind: ErrorKind::ProviderHttpError, ..error.body() };
        assert_eq!(Error::from(later).code, Code::ProviderHttpError);
        let later = ErrorBody { code: String::new(), kind: ErrorKind::NotAuthenticated, ..error.body() };
        assert_eq!(Error::from(later).code, Code::AuthRequired);
    }

    #[test]
    fn a_wrong_name_is_answered_with_the_nearest_only_when_it_is_near() {
        assert_eq!(nearest("grpe", ["read", "grep", "find"]), Some("grep"));
        assert_eq!(nearest("Raed", ["read", "grep"]), Some("read"));
        assert_eq!(nearest("modle", ["mode", "model"]), Some("model"));
        assert_eq!(nearest("xyzzy", ["read", "grep"]), None);
    }
}
