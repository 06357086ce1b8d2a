//! What went wrong with a server, in words for the user and for the model.

use std::time::Duration;

use super::client::Fault;
use super::process::{Process, exit_words, plain_line};
use super::supervise::{Running, Server};
use protocol::error::{Code, Error};
use protocol::remedy::{McpNeed, Remedy, ServerSecret};

impl Server {
    /// The error of a start, after everything that it started has ended.
    pub(super) async fn not_begun(&self, fault: &Fault, process: Option<&Process>) -> Error {
        let exit = match process {
            Some(process) => {
                // Its last words may follow the end of its stdout.
                let exit = process.ended_within(Duration::from_millis(300)).await;
                process.stop().await;
                exit
            }
            None => None,
        };
        let why = match (fault, exit) {
            (Fault::NeedsLogin { scope }, _) => return self.needs_login(scope.as_deref()),
            (Fault::Unreached { error, .. }, _) => {
                return self.unusable(error.code, &error.message, error.remedy.clone());
            }
            (Fault::Status { status, words }, _) => {
                let why = format!("it answered {}", self.plain(words));
                return self.unusable(Code::McpProtocol, &why, after_status(*status));
            }
            (Fault::Closed, Some(status)) => exit_words(status),
            (Fault::Closed, _) => "it closed the connection".to_owned(),
            (Fault::Refused(why) | Fault::OtherEra(why) | Fault::Odd(why) | Fault::TooLong(why), _) => {
                format!("it does not speak the protocol: {}", self.plain(why))
            }
            (Fault::TimedOut(limit), _) => format!("it did not answer within {} s", limit.as_secs()),
        };
        self.start_failed(&why)
    }

    /// The error of a server elsewhere that does not answer as a server does.
    fn unusable(&self, code: Code, why: &str, fix: Remedy) -> Error {
        let message = format!("the MCP server {} cannot be used: {why}", self.name);
        let fix = Remedy::steps([fix, Remedy::mcp(&self.name, McpNeed::Test)]);
        Error::new(code, message, fix).with("server", self.name.as_str())
    }

    /// The error of a start.
    pub(super) fn start_failed(&self, why: &str) -> Error {
        let words = self.stderr.last_line().map_or(String::new(), |it| format!("; its last words: {it}"));
        let fix = Remedy::mcp(&self.name, McpNeed::Test);
        Error::new(Code::McpStartFailed, format!("the MCP server {} did not start: {why}{words}", self.name), fix)
            .with("server", self.name.as_str())
    }

    /// The error of a server that refuses a client without a sign-in, or with the present one.
    fn needs_login(&self, scope: Option<&str>) -> Error {
        let name = &self.name;
        let own_header = || {
            Remedy::steps([
                format!("name a header of [mcp.{name}] in headers_from, such as Authorization = \"TOKEN\"").into(),
                Remedy::StoreSecret(Box::new(ServerSecret { server: name.clone(), variable: "TOKEN".to_owned() })),
            ])
        };
        let endpoint = self.endpoint();
        let error = match (endpoint.is_some_and(super::http::Endpoint::has_key), scope) {
            (true, _) => {
                let message = format!("the MCP server {name} refuses the key of its Authorization header");
                Error::new(Code::McpAuthRequired, message, own_header())
            }
            (false, Some(scope)) => {
                let scope = self.plain(scope);
                let message = format!("the MCP server {name} wants a sign-in with the scope `{scope}`");
                // Of what the user has granted nothing is lost.
                let before = endpoint.and_then(|it| it.sign_in.scope()).unwrap_or_default();
                let more = scope.split(' ').filter(|it| !before.split(' ').any(|other| other == *it));
                let all: Vec<&str> = before.split(' ').filter(|it| !it.is_empty()).chain(more).collect();
                Error::new(Code::McpAuthRequired, message, Remedy::mcp_login(name, Some(all.join(" "))))
                    .with("scope", all.join(" "))
            }
            (false, None) => {
                let message = format!("the MCP server {name} wants a sign-in");
                Error::new(
                    Code::McpAuthRequired,
                    message,
                    Remedy::any_of([Remedy::mcp_login(name, None), own_header()]),
                )
            }
        };
        error.with("server", name.as_str())
    }

    /// The last line of its stderr.
    pub(super) fn last_words(&self) -> String {
        self.stderr.last_line().unwrap_or_else(|| "none".to_owned())
    }

    /// Words of the server on one line. A secret is masked before the line is cut, so that no part of it is shown.
    pub(super) fn plain(&self, words: &str) -> String {
        plain_line(&self.secrets().masked(words))
    }

    /// The error of a call that nothing came of.
    pub(super) async fn failed(&self, fault: Fault, running: &Running, tool: &str) -> Error {
        let name = &self.name;
        let error = match fault {
            Fault::Closed => {
                let exit = match &running.process {
                    // Its stdout may close a moment before it has ended.
                    Some(process) => process.ended_within(Duration::from_millis(300)).await,
                    None => None,
                };
                let how = exit.map_or_else(|| "it closed the connection".to_owned(), exit_words);
                let message =
                    format!("the MCP server {name} ended during the call: {how}; last words: {}", self.last_words());
                let fix = "find out first whether the call took effect; the next call starts the server again";
                Error::new(Code::McpServerExited, message, fix)
            }
            Fault::TimedOut(limit) => {
                let message = format!("`{tool}` of the MCP server {name} did not answer within {} s", limit.as_secs());
                let fix = "ask for less at a time; the server was told that the call is cancelled, and lives on";
                Error::new(Code::McpTimeout, message, fix)
            }
            Fault::TooLong(why) => {
                let message = format!("the answer of `{tool}` of the MCP server {name} was dropped: {why}");
                Error::new(Code::McpLimit, message, "ask for less: a page, a filter, a smaller range")
            }
            Fault::Refused(why) | Fault::OtherEra(why) => {
                let message = format!("the MCP server {name} refused `{tool}`: {}", self.plain(&why));
                Error::new(Code::McpProtocol, message, "check the arguments, or try another way")
            }
            Fault::Odd(why) => {
                let message = format!("the MCP server {name} gave no valid answer to `{tool}`: {}", self.plain(&why));
                Error::new(Code::McpProtocol, message, Remedy::mcp(name, McpNeed::Test))
            }
            Fault::Unreached { error, was_connected: false } => {
                let message = format!("`{tool}` of the MCP server {name} was not called: {}", error.message);
                Error { message, ..*error }
            }
            Fault::Unreached { error, was_connected: true } => {
                let message =
                    format!("the connection to the MCP server {name} broke off during `{tool}`: {}", error.message);
                let fix = "find out first whether the call took effect; the next call connects again";
                Error::new(error.code, message, fix)
            }
            Fault::Status { status, words } => {
                let message = format!("the MCP server {name} gave no valid answer to `{tool}`: {}", self.plain(&words));
                Error::new(Code::McpProtocol, message, after_status(status))
            }
            Fault::NeedsLogin { scope } => self.needs_login(scope.as_deref()),
        };
        error.with("server", name.as_str())
    }
}

/// What to do about a status of HTTP.
fn after_status(status: u16) -> Remedy {
    match status {
        403 => "ask its operator for access, or check its key".into(),
        404 | 405 | 410 => "check the path of its URL in the configuration".into(),
        429 | 500.. => Remedy::Retry { after_s: None },
        _ => "check its URL and its headers in the configuration".into(),
    }
}
