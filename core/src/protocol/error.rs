//! What can go wrong: a closed kind to branch on, a finer code, a message, and what to do instead.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::remedy::{LoggedRemedy, Remedy};

/// The result of anything in the core that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

macro_rules! kinds {
    ($($variant:ident = $name:literal),* $(,)?) => {
        /// The closed vocabulary of failures that people, programs and models branch on.
        ///
        /// Adding one is a deliberate change to a contract; a finer distinction is a [`Code`].
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
    ($($variant:ident = $name:literal, $kind:ident, $exit:literal);* $(;)?) => {
        /// A finer, append-only name for a failure; each belongs to one kind and one process exit code.
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

            /// The exit code of a process that ends with this failure.
            pub const fn exit(self) -> u8 {
                match self { $(Code::$variant => $exit),* }
            }
        }
    };
}

codes! {
    InvalidArgs = "INVALID_ARGS", InvalidArgs, 2;
    UnsupportedSyntax = "UNSUPPORTED_SYNTAX", InvalidArgs, 2;
    Usage = "USAGE", InvalidArgs, 2;
    UnknownCommand = "UNKNOWN_COMMAND", InvalidArgs, 2;
    UnknownFlag = "UNKNOWN_FLAG", InvalidArgs, 2;
    ConfigInvalid = "CONFIG_INVALID", InvalidArgs, 10;
    ScriptInvalid = "SCRIPT_INVALID", InvalidArgs, 10;
    NothingToDo = "NOTHING_TO_DO", InvalidArgs, 2;
    UnknownTool = "UNKNOWN_TOOL", UnknownTool, 2;
    OutsideWorkspace = "OUTSIDE_WORKSPACE", OutsideWorkspace, 6;
    NotFound = "NOT_FOUND", NotFound, 5;
    SessionNotFound = "SESSION_NOT_FOUND", NotFound, 5;
    SkillNotFound = "SKILL_NOT_FOUND", NotFound, 5;
    ResourceMissing = "RESOURCE_MISSING", ResourceMissing, 5;
    NoMatch = "NO_MATCH", NoMatch, 5;
    NotUnique = "NOT_UNIQUE", NotUnique, 2;
    ReadFailed = "READ_FAILED", ReadFailed, 1;
    BinaryFile = "BINARY_FILE", ReadFailed, 1;
    NotRegularFile = "NOT_REGULAR_FILE", ReadFailed, 1;
    WriteFailed = "WRITE_FAILED", WriteFailed, 1;
    FileChanged = "FILE_CHANGED", WriteFailed, 1;
    CommandFailed = "COMMAND_FAILED", CommandFailed, 1;
    OrphanToolCall = "ORPHAN_TOOL_CALL", CommandFailed, 1;
    SkippedForSteer = "SKIPPED_FOR_STEER", CommandFailed, 1;
    Timeout = "TIMEOUT", Timeout, 8;
    StreamIdleTimeout = "STREAM_IDLE_TIMEOUT", Timeout, 8;
    PermissionDenied = "PERMISSION_DENIED", PermissionDenied, 6;
    MutationBlocked = "MUTATION_BLOCKED", PermissionDenied, 12;
    InputRequired = "INPUT_REQUIRED", PermissionDenied, 13;
    ConfirmationNeeded = "CONFIRMATION_NEEDED", PermissionDenied, 12;
    Detached = "DETACHED", Detached, 1;
    IterationCap = "ITERATION_CAP", IterationCap, 14;
        DeadlineReached = "DEADLINE_REACHED", IterationCap, 14;
    OutputTruncated = "OUTPUT_TRUNCATED", IterationCap, 14;
    ToolResultRecordFailed = "TOOL_RESULT_RECORD_FAILED", ToolResultRecordFailed, 1;
    CorruptLogLine = "CORRUPT_LOG_LINE", CorruptLogLine, 1;
    EphemeralNotLoggable = "EPHEMERAL_NOT_LOGGABLE", EphemeralNotLoggable, 1;
    LogEncodeFailed = "LOG_ENCODE_FAILED", LogEncodeFailed, 1;
    LogReadFailed = "LOG_READ_FAILED", LogReadFailed, 1;
    LogWriteFailed = "LOG_WRITE_FAILED", LogWriteFailed, 1;
    ProviderUnavailable = "PROVIDER_UNAVAILABLE", ProviderHttpError, 8;
    ProviderHttpError = "PROVIDER_HTTP_ERROR", ProviderHttpError, 1;
    ContextOverflow = "CONTEXT_OVERFLOW", ProviderHttpError, 1;
    Refused = "REFUSED", ProviderHttpError, 1;
    ReasoningRejected = "REASONING_REJECTED", ProviderHttpError, 1;
    ModelNotSupported = "MODEL_NOT_SUPPORTED", ModelNotSupported, 10;
    VisionUnsupported = "VISION_UNSUPPORTED", ModelNotSupported, 10;
    UsageLimitReached = "USAGE_LIMIT_REACHED", UsageLimitReached, 7;
    RateLimited = "RATE_LIMITED", RateLimited, 7;
    Network = "NETWORK", Network, 8;
    StreamClosed = "STREAM_CLOSED", Network, 8;
    TlsFailed = "TLS_FAILED", Network, 8;
    AuthRequired = "AUTH_REQUIRED", NotAuthenticated, 4;
    TokenRequestFailed = "TOKEN_REQUEST_FAILED", TokenRequestFailed, 4;
    NoAccountId = "NO_ACCOUNT_ID", NoAccountId, 4;
    InvalidResponse = "INVALID_RESPONSE", InvalidResponse, 1;
        EmptyAnswer = "EMPTY_ANSWER", InvalidResponse, 14;
    ScriptMismatch = "SCRIPT_MISMATCH", InvalidResponse, 1;
    CorruptAuth = "CORRUPT_AUTH", CorruptAuth, 4;
    AuthReadFailed = "AUTH_READ_FAILED", AuthReadFailed, 4;
    AuthWriteFailed = "AUTH_WRITE_FAILED", AuthWriteFailed, 4;
    DeviceAuthFailed = "DEVICE_AUTH_FAILED", DeviceAuthFailed, 4;
    DeviceCodeUnsupported = "DEVICE_CODE_UNSUPPORTED", DeviceCodeUnsupported, 4;
    SessionStartFailed = "SESSION_START_FAILED", SessionStartFailed, 1;
    SessionLocked = "SESSION_LOCKED", SessionStartFailed, 1;
    SessionReadOnly = "SESSION_READ_ONLY", SessionStartFailed, 1;
    NoPrompt = "NO_PROMPT", NoPrompt, 13;
    StdinError = "STDIN_ERROR", StdinError, 1;
}

impl Code {
    /// Codes of the closed vocabulary that this build never produces; programs may branch on them all the same.
    pub const RESERVED: &'static [Code] = &[
        // A Turn ends with its process; none goes on without a Session that watches it.
        Code::Detached,
        // The Log takes Facts and nothing else, so the compiler refuses it a live event.
        Code::EphemeralNotLoggable,
        // No Provider wants an account's id beside the token.
        Code::NoAccountId,
    ];

    /// The code with this wire name.
    pub fn from_name(name: &str) -> Option<Code> {
        Code::ALL.iter().copied().find(|code| code.name() == name)
    }
}

macro_rules! notices {
    ($($(#[$doc:meta])* $variant:ident = $name:literal),* $(,)?) => {
        /// What a Notice is about, where that is no failure; the others carry the name of a [`Code`].
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum NoticeCode { $($(#[$doc])* $variant),* }

        impl NoticeCode {
            /// Every one of them.
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
    /// The model takes another effort than the one that was set.
    EffortMapped = "EFFORT_MAPPED",
    /// An interrupted move left the head where it was.
    NotMoved = "NOT_MOVED",
    /// A restore left a file as it was.
    FileLeft = "FILE_LEFT",
}

/// A failure that a person, a program or a model can act on.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// What happened, finely; it decides the kind and the exit code.
    pub code: Code,
    /// What went wrong, in one sentence without a final full stop.
    pub message: String,
    /// What to do instead. Never empty at a boundary.
    pub remedy: Remedy,
    /// Facts for a program: the offending input, line numbers, candidates.
    pub details: Map<String, Value>,
}

impl Error {
    /// A failure and what to do about it.
    pub fn new(code: Code, message: impl Into<String>, remedy: impl Into<Remedy>) -> Error {
        Error { code, message: message.into(), remedy: remedy.into(), details: Map::new() }
    }

    /// The same failure with one more fact.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Error {
        self.details.insert(key.to_owned(), value.into());
        self
    }

    /// The kind that callers branch on.
    pub fn kind(&self) -> ErrorKind {
        self.code.kind()
    }

    /// What the Log, a tool result and a turn's end carry.
    pub fn body(&self) -> ErrorBody {
        ErrorBody {
            kind: self.kind(),
            message: self.message.clone(),
            details: self.details.clone(),
            code: self.code.name().to_owned(),
            remediation: self.remedy.plain(),
            remedy: match &self.remedy {
                // Its plain wording is all of it.
                Remedy::Text { .. } => None,
                remedy => Some(LoggedRemedy::Known(remedy.clone())),
            },
        }
    }

    /// What the model reads: `[error] name: what went wrong. Use: what to do instead`.
    pub fn for_model(&self, name: &str) -> String {
        if self.code == Code::UnknownCommand {
            return format!("[error] {} — {}", self.message, self.remedy.plain());
        }
        // The message of a usage error already says how the command is called.
        if self.code == Code::Usage || self.remedy.is_empty() {
            format!("[error] {name}: {}", self.message)
        } else {
            format!("[error] {name}: {}. Use: {}", self.message, self.remedy.plain())
        }
    }
}

impl From<ErrorBody> for Error {
    /// The Error that a Session recorded or refused with. The code of a later build becomes one of the same kind.
    fn from(body: ErrorBody) -> Error {
        let of_kind = || Code::ALL.iter().copied().filter(|code| code.kind() == body.kind);
        let plainest =
            || of_kind().find(|code| code.name().eq_ignore_ascii_case(body.kind.name())).or(of_kind().next());
        let code = Code::from_name(&body.code).or_else(plainest).expect("every kind has a code");
        let remedy = body.remedy();
        Error { code, message: body.message, remedy, details: body.details }
    }
}

/// The durable form of an [`Error`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ErrorBody {
    /// One of the closed set.
    pub kind: ErrorKind,
    /// What went wrong.
    pub message: String,
    /// Facts for a program.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub details: Map<String, Value>,
    /// The finer name.
    #[serde(default)]
    pub code: String,
    /// What to do instead, in words that name no key, flag or command of a Presenter.
    #[serde(default)]
    pub remediation: String,
    /// The same as data, where it is more than words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<LoggedRemedy>,
}

impl ErrorBody {
    /// What to do instead, for a Presenter to word; a later build's remedy is its plain wording.
    pub fn remedy(&self) -> Remedy {
        match &self.remedy {
            Some(LoggedRemedy::Known(remedy)) => remedy.clone(),
            Some(LoggedRemedy::Later(_)) | None => Remedy::text(&*self.remediation),
        }
    }
}

/// The name in `known` that was most likely meant, when one is near enough to say so.
pub fn nearest<'a>(wrong: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (wrong.chars().count() / 3).clamp(1, 3);
    known
        .into_iter()
        .map(|name| (strsim::osa_distance(&wrong.to_lowercase(), &name.to_lowercase()), name))
        .filter(|(distance, name)| *distance <= limit || (wrong.len() >= 3 && name.starts_with(wrong)))
        // Of two that are equally near, letters in another order are likelier than letters that are missing.
        .min_by_key(|(distance, name)| (*distance, name.len().abs_diff(wrong.len())))
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

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
    fn a_wrong_name_is_answered_with_the_nearest_only_when_it_is_near() {
        assert_eq!(nearest("grpe", ["read", "grep", "find"]), Some("grep"));
        assert_eq!(nearest("Raed", ["read", "grep"]), Some("read"));
        assert_eq!(nearest("modle", ["mode", "model"]), Some("model"));
        assert_eq!(nearest("xyzzy", ["read", "grep"]), None);
    }
}
