//! Servers of the Model Context Protocol, as configuration files name them.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use reqwest::header::HeaderName;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::address::{self, Unfit};
use protocol::error::{Code, Error, Result};
use text::clean::visible;

/// The keys of a server.
pub(super) const MCP_KEYS: [&str; 20] = [
    "command",
    "args",
    "cwd",
    "env",
    "env_from",
    "url",
    "headers",
    "headers_from",
    "oauth",
    "insecure",
    "reads",
    "allow",
    "deny",
    "tools",
    "expose",
    "enabled",
    "required",
    "start_timeout",
    "call_timeout",
    "idle_stop",
];
/// A key that only the user's own file may have besides.
pub(super) const ON_CHANGE: &str = "on_change";
/// What a project's server may not have: it is the word of the user.
pub(crate) const OF_THE_USER: [&str; 6] = ["reads", "allow", "env_from", "required", "insecure", ON_CHANGE];

/// A server in `[mcp]`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct McpServer {
    /// The program of a server that pixir starts.
    pub command: Option<String>,
    /// Its arguments.
    pub args: Vec<String>,
    /// Where it starts.
    pub cwd: StartFolder,
    /// Variables of its environment; never secrets.
    pub env: BTreeMap<String, String>,
    /// Names of variables that it gets from pixir's environment or from the stored secrets.
    pub env_from: Vec<String>,
    /// The URL of a server that runs elsewhere.
    pub url: Option<String>,
    /// Headers of every request; never secrets.
    pub headers: BTreeMap<String, String>,
    /// Headers whose value is a variable of pixir's environment or a stored secret.
    pub headers_from: BTreeMap<String, String>,
    /// How the user signs in to it.
    pub oauth: OAuth,
    /// Allows plain http to another machine.
    pub insecure: bool,
    /// Tools that only read, by the user's word: names, with `*`.
    pub reads: Vec<String>,
    /// Tools that run without asking in `ask` and `auto`.
    pub allow: Vec<String>,
    /// Tools that are never offered.
    pub deny: Vec<String>,
    /// The tools that are offered; without it, all.
    pub tools: Option<Vec<String>>,
    /// How its tools are offered.
    pub expose: Expose,
    /// Whether it is used at all.
    pub enabled: bool,
    /// The first request waits until it runs.
    pub required: bool,
    /// How long it may take to start, seconds.
    pub start_timeout: u64,
    /// How long a call may take, seconds.
    pub call_timeout: u64,
    /// How long it may be idle before it is stopped, seconds.
    pub idle_stop: u64,
    /// What a changed definition stops.
    pub on_change: OnChange,
}

/// How the user signs in to a server that runs elsewhere.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OAuth {
    /// The client that the user has registered with the issuer; without it, pixir registers itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// The scopes to ask for; without them, those that the server names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
    /// The port of this machine to which the browser comes back; without it, any that is free.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
}

/// The keys of `oauth`.
const OAUTH_KEYS: [&str; 3] = ["client_id", "scopes", "port"];

/// Where the program of a server starts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StartFolder {
    /// In an empty folder of pixir's own: `npx` and `python3 -m` load what lies where they start.
    #[default]
    Run,
    /// In the workspace, once the user has approved that there. What a repository names always does.
    Workspace,
}

/// How the tools of a server are offered to the model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Expose {
    /// Directly while they fit, else by search.
    #[default]
    Auto,
    /// Each with its definition.
    Direct,
    /// Found with `mcp_find`, called with `mcp_call`.
    Search,
}

/// What happens when a server changes a definition that was accepted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnChange {
    /// That tool is not called until the user accepts it.
    #[default]
    Ask,
    /// No tool of the server is called until then.
    Block,
}

/// Bounds of what servers take of a request.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct McpLimits {
    /// The most bytes of definitions that requests hold directly.
    pub direct_bytes: usize,
}

impl Default for McpLimits {
    fn default() -> McpLimits {
        McpLimits { direct_bytes: 8_192 }
    }
}

impl Default for McpServer {
    fn default() -> McpServer {
        McpServer {
            command: None,
            args: Vec::new(),
            cwd: StartFolder::default(),
            env: BTreeMap::new(),
            env_from: Vec::new(),
            url: None,
            headers: BTreeMap::new(),
            headers_from: BTreeMap::new(),
            oauth: OAuth::default(),
            insecure: false,
            reads: Vec::new(),
            allow: Vec::new(),
            deny: Vec::new(),
            tools: None,
            expose: Expose::default(),
            enabled: true,
            required: false,
            start_timeout: 20,
            call_timeout: 120,
            idle_stop: 600,
            on_change: OnChange::default(),
        }
    }
}

impl McpServer {
    /// Rejects what cannot be a server.
    ///
    /// # Errors
    /// `CONFIG_INVALID`, with the key and what to write instead.
    pub fn check(&self, name: &str) -> Result<()> {
        let bad = |what: String, fix: &str| Err(Error::new(Code::ConfigInvalid, what, fix).with("input", name));
        if !is_name(name) {
            let fix = "a letter from a to z, then up to 23 of a-z, 0-9 and -";
            return bad(format!("`{}` cannot be the name of an MCP server", name.escape_debug()), fix);
        }
        let timeouts =
            [("start_timeout", self.start_timeout), ("call_timeout", self.call_timeout), ("idle_stop", self.idle_stop)];
        if let Some((key, _)) = timeouts.iter().find(|(_, seconds)| !(1..=86_400).contains(seconds)) {
            return bad(format!("`mcp.{name}.{key}` is not a valid time"), "a number of seconds from 1 to 86400");
        }
        match (&self.command, &self.url) {
            (Some(_), Some(_)) => bad(
                format!("`mcp.{name}` has a command and a url"),
                "only one of them: a program, or a server elsewhere",
            ),
            (None, None) => bad(
                format!("`mcp.{name}` has neither a command nor a url"),
                "command = \"PROGRAM\" with args = [\"…\"], or url = \"https://…\"",
            ),
            (Some(command), None) if command.is_empty() || command.contains('\0') => {
                bad(format!("`mcp.{name}.command` is not a program"), "the name or the path of a program")
            }
            (Some(_), None) => match self.env.keys().chain(&self.env_from).find(|it| !is_variable(it)) {
                Some(it) => bad(
                    format!("`{}` in `mcp.{name}` is not the name of a variable", it.escape_debug()),
                    "letters, digits and _; env_from names variables, it does not hold their values",
                ),
                None if self.oauth != OAuth::default() => bad(
                    format!("`mcp.{name}.oauth` is for a server with a url, and this one has a command"),
                    "a program gets its key in env_from",
                ),
                None => Ok(()),
            },
            (None, Some(url)) => self.check_url(name, url),
        }
    }

    fn check_url(&self, name: &str, url: &str) -> Result<()> {
        let bad = |what: String, fix: &str| Err(Error::new(Code::ConfigInvalid, what, fix).with("input", name));
        for header in self.headers.keys().chain(self.headers_from.keys()) {
            if HeaderName::try_from(header.as_str()).is_err() {
                let what = format!("`{}` in `mcp.{name}` is not the name of a header", header.escape_debug());
                return bad(what, "letters, digits and -, such as Authorization");
            }
        }
        match address::read(url, self.insecure) {
            Ok(_) => Ok(()),
            Err(Unfit::Unencrypted) => bad(
                format!("`mcp.{name}.url` would send everything unencrypted to another machine"),
                "https, or insecure = true if you accept that",
            ),
            Err(Unfit::HoldsLogin { .. }) => bad(
                format!("`mcp.{name}.url` holds a user name or a password"),
                "a header in headers_from, whose value is a stored secret",
            ),
            Err(Unfit::NotValid(_) | Unfit::NotHttp) => {
                bad(format!("`mcp.{name}.url` is not a URL"), "https://… with the server's name and path")
            }
        }
    }

    /// The command line, or the URL, of the server.
    pub fn target(&self) -> String {
        match (&self.command, &self.url) {
            (Some(command), _) => {
                let words = std::iter::once(command).chain(&self.args);
                words.map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
            }
            (None, Some(url)) => visible(url),
            (None, None) => String::new(),
        }
    }

    /// Everything that decides what runs or who is asked, on one line for the user.
    pub fn launch_text(&self) -> String {
        let mut text = match self.command {
            Some(_) if self.cwd == StartFolder::Workspace => format!("starts {} in the workspace", self.target()),
            Some(_) => format!("starts {}", self.target()),
            None => format!("connects to {}", self.target()),
        };
        let pairs = |all: &BTreeMap<String, String>| {
            all.iter().map(|(name, value)| format!("{}={}", visible(name), quoted(value))).collect::<Vec<_>>().join(" ")
        };
        if !self.env.is_empty() {
            text.push_str(&format!(" with {}", pairs(&self.env)));
        }
        if !self.headers.is_empty() {
            text.push_str(&format!(" with the headers {}", pairs(&self.headers)));
        }
        if let Some(id) = &self.oauth.client_id {
            text.push_str(&format!(" as the OAuth client {}", quoted(id)));
        }
        if !self.oauth.scopes.is_empty() {
            text.push_str(&format!(" with the scopes {}", quoted(&self.oauth.scopes.join(" "))));
        }
        text
    }

    /// A hash of everything that decides what runs or who is asked, in this folder: 32 hex digits.
    pub fn launch(&self, folder: &Path) -> String {
        let mut whole = json!({
            "command": self.command,
            "args": self.args,
            "folder": if self.command.is_some() { folder.display().to_string() } else { String::new() },
            "env": self.env,
            "env_from": self.env_from,
            "url": self.url,
            "headers": self.headers,
            "headers_from": self.headers_from,
        });
        if self.oauth != OAuth::default() {
            whole["oauth"] = json!(self.oauth);
        }
        blake3::hash(whole.to_string().as_bytes()).to_hex()[..32].to_owned()
    }

    /// How long it may take to start.
    pub fn start_limit(&self) -> Duration {
        Duration::from_secs(self.start_timeout)
    }

    /// How long a call may take.
    pub fn call_limit(&self) -> Duration {
        Duration::from_secs(self.call_timeout)
    }

    /// Whether the server's tool with this name may be offered.
    pub fn offers(&self, tool: &str) -> bool {
        let is_listed = self.tools.as_ref().is_none_or(|tools| is_any(tools, tool));
        is_listed && !is_any(&self.deny, tool)
    }

    /// Whether the user says that this tool only reads.
    pub fn only_reads(&self, tool: &str) -> bool {
        is_any(&self.reads, tool)
    }

    /// Whether the user lets this tool run without asking.
    pub fn allows(&self, tool: &str) -> bool {
        is_any(&self.allow, tool)
    }

    /// The server without what only the user's own file may say, and the keys that were ignored.
    pub fn of_project(self) -> (McpServer, Vec<&'static str>) {
        let plain = McpServer::default();
        let has = [
            !self.reads.is_empty(),
            !self.allow.is_empty(),
            !self.env_from.is_empty() || !self.headers_from.is_empty(),
            self.required,
            self.insecure,
            self.on_change != plain.on_change,
        ];
        let ignored = OF_THE_USER.into_iter().zip(has).filter(|(_, has)| *has).map(|(key, _)| key).collect();
        let own = McpServer {
            cwd: StartFolder::Workspace,
            reads: plain.reads,
            allow: plain.allow,
            env_from: plain.env_from,
            headers_from: plain.headers_from,
            required: plain.required,
            insecure: plain.insecure,
            on_change: plain.on_change,
            ..self
        };
        (own, ignored)
    }
}

/// Checks the keys of a table of servers.
pub(super) fn check_keys(table: &toml::Table) -> Result<()> {
    let known: Vec<&str> = MCP_KEYS.into_iter().chain([ON_CHANGE]).collect();
    for (name, value) in table.get("mcp").and_then(toml::Value::as_table).into_iter().flatten() {
        if let Some(server) = value.as_table() {
            super::check_keys(server, &known, &format!("mcp.{name}."))?;
            if let Some(oauth) = server.get("oauth").and_then(toml::Value::as_table) {
                super::check_keys(oauth, &OAUTH_KEYS, &format!("mcp.{name}.oauth."))?;
            }
        }
    }
    Ok(())
}

/// Whether a server can have this name: a letter from `a` to `z`, then up to 23 of `a-z`, `0-9` and `-`.
pub fn is_name(name: &str) -> bool {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    name.len() <= 24 && name.starts_with(|c: char| c.is_ascii_lowercase()) && name.bytes().all(plain)
}

fn is_variable(name: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    !name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit()) && name.bytes().all(plain)
}

/// Whether any of these names, with `*` for any text, is this one.
fn is_any(patterns: &[String], name: &str) -> bool {
    patterns.iter().any(|pattern| {
        let mut parts = pattern.split('*');
        let Some(mut rest) = parts.next().and_then(|first| name.strip_prefix(first)) else { return false };
        let mut parts = parts.peekable();
        if parts.peek().is_none() {
            return rest.is_empty();
        }
        while let Some(part) = parts.next() {
            match parts.peek() {
                None => return rest.len() >= part.len() && rest.ends_with(part),
                Some(_) => match rest.find(part) {
                    Some(at) => rest = &rest[at + part.len()..],
                    None => return false,
                },
            }
        }
        true
    })
}

/// A word as a shell would need it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.escape_debug().to_string().replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_of_tools_covers_whole_names_only() {
        let covers = |pattern: &str, name: &str| is_any(&[pattern.to_owned()], name);
        for (pattern, name) in
            [("git_*", "git_log"), ("*", ""), ("a*c*e", "abcde"), ("git_log", "git_log"), ("*g", "gg")]
        {
            assert!(covers(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in
            [("git_log", "git_log2"), ("git_*", "xgit_log"), ("a*b", "a"), ("ab*ba", "aba"), ("", "x")]
        {
            assert!(!covers(pattern, name), "{pattern} {name}");
        }
    }

    /// Broken build: a URL or the name of a header that overwrites on the terminal what the user approves.
    #[test]
    fn a_launch_shows_every_byte_and_what_hides_in_it_is_refused() {
        let server = |url: &str, header: &str| McpServer {
            url: Some(url.to_owned()),
            headers: [(header.to_owned(), "x".to_owned())].into(),
            ..McpServer::default()
        };
        assert!(server("https://example.com/", "X-Team").check("far").is_ok());
        for it in [server("https://example.com/\u{1b}[2K", "X-Team"), server("https://example.com/", "X\u{202e}\r")] {
            assert!(it.check("far").is_err(), "{it:?}");
            assert!(!text::clean::hides(&it.launch_text()), "{it:?}");
        }
    }

    /// Broken builds: a launch hash without the environment, or with what only decides about permissions.
    #[test]
    fn one_byte_of_what_runs_is_another_launch_and_a_permission_is_not() {
        let server =
            McpServer { command: Some("uvx".into()), args: vec!["mcp-server-git".into()], ..McpServer::default() };
        let here = Path::new("/app");
        let launch = server.launch(here);
        let others = [
            McpServer { command: Some("uvy".into()), ..server.clone() },
            McpServer { args: vec!["mcp-server-git".into(), String::new()], ..server.clone() },
            McpServer { env: [("LD_PRELOAD".to_owned(), "x".to_owned())].into(), ..server.clone() },
            McpServer { env_from: vec!["TOKEN".into()], ..server.clone() },
        ];
        for other in others {
            assert_ne!(other.launch(here), launch, "{other:?}");
        }
        assert_ne!(server.launch(Path::new("/other")), launch);
        assert_eq!(McpServer { reads: vec!["*".into()], call_timeout: 9, ..server }.launch(here), launch);
    }
}
