//! The servers that something names: the user's configuration, a file of the workspace, the client.

use std::path::Path;

use super::Servers;
use config::mcp::{McpServer, StartFolder};
use context::servers::ProjectServer;
use permissions::UsersWord;
use protocol::error::{Code, Error, Result, nearest};
use protocol::remedy::{McpNeed, Remedy};
use protocol::trust::Standing;

/// Who names a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The user's own configuration.
    User,
    /// A file of the workspace.
    Project(&'static str),
    /// The client that pixir serves.
    Client,
}

impl Source {
    pub(super) fn name(self) -> &'static str {
        match self {
            Source::User => "your configuration",
            Source::Project(file) => file,
            Source::Client => "the editor",
        }
    }
}

/// A server that something names.
#[derive(Debug, Clone)]
pub struct Configured {
    pub name: String,
    pub source: Source,
    pub server: McpServer,
    /// The hash of its launch.
    pub launch: String,
    pub standing: Standing,
    /// Keys that were ignored, because only the user's own file may have them.
    pub ignored: Vec<&'static str>,
    /// The user's own server of this name is used instead.
    pub(crate) is_shadowed: bool,
    pub(super) expands: bool,
}

impl Configured {
    /// Whether it may be started.
    pub fn is_in_force(&self) -> bool {
        self.server.enabled && !self.is_shadowed && self.standing == Standing::InForce
    }

    /// The user's word about a tool of it.
    pub(super) fn word(&self, tool: &str) -> UsersWord {
        match (self.server.only_reads(tool), self.server.allows(tool)) {
            (true, _) => UsersWord::Reads,
            (false, true) => UsersWord::Allowed,
            (false, false) => UsersWord::Nothing,
        }
    }
}

impl Servers {
    /// Every server that something names, by name; of two with one name the user's first. Blocks while it reads files.
    pub fn configured(&self) -> Vec<Configured> {
        let (setup, of_client) = (&self.0.setup, &self.0.of_client);
        let mut all: Vec<Configured> =
            setup.servers.iter().map(|(name, it)| self.own(name, it, Source::User)).collect();
        let others = of_client.iter().map(|(name, it)| self.own(name, it, Source::Client));
        let project = setup.library.servers().into_iter().map(|it: ProjectServer| Configured {
            expands: it.expands(),
            name: it.name,
            source: Source::Project(it.file),
            server: it.server,
            launch: it.launch,
            standing: it.standing,
            ignored: it.ignored,
            is_shadowed: false,
        });
        for mut it in others.chain(project) {
            it.is_shadowed = all.iter().any(|other| other.name == it.name);
            all.push(it);
        }
        all.sort_by(|a, b| (&a.name, a.is_shadowed).cmp(&(&b.name, b.is_shadowed)));
        all
    }

    /// The servers that do not start before the user approves their launch, and about which the user has not been asked.
    /// Blocks while it reads files.
    pub fn unapproved(&self) -> Vec<String> {
        let is_open = |it: &Configured| matches!(it.standing, Standing::New | Standing::Changed);
        let all = self.configured().into_iter().filter(|it| it.server.enabled && !it.is_shadowed && is_open(it));
        all.map(|it| it.name).collect()
    }

    /// One that the user names, in the configuration or in the editor. Blocks where it starts in the workspace.
    fn own(&self, name: &str, server: &McpServer, source: Source) -> Configured {
        let (folder, standing) = match server.cwd {
            StartFolder::Run => ("", Standing::InForce),
            StartFolder::Workspace => ("workspace", self.0.setup.library.standing_of_own(name)),
        };
        Configured {
            name: name.to_owned(),
            source,
            server: server.clone(),
            // What the user accepted of its tools holds in every workspace.
            launch: server.launch(Path::new(folder)),
            standing,
            ignored: Vec::new(),
            is_shadowed: false,
            expands: false,
        }
    }

    /// The server with this name, in force. Blocks as [`Servers::configured`] where it is none of the user's.
    ///
    /// # Errors
    /// `NOT_FOUND` with the nearest name, `MCP_UNTRUSTED`.
    pub fn find(&self, name: &str) -> Result<Configured> {
        if let Some(it) = self.0.setup.servers.get(name).filter(|it| it.enabled && it.cwd == StartFolder::Run) {
            return Ok(self.own(name, it, Source::User));
        }
        let all = self.configured();
        let Some(it) = all.iter().find(|it| it.name == name && !it.is_shadowed) else {
            let names: Vec<&str> = all.iter().filter(|it| it.is_in_force()).map(|it| it.name.as_str()).collect();
            let fix = match nearest(name, names.iter().copied()) {
                Some(near) => Remedy::nearest(near),
                None if names.is_empty() => Remedy::mcp("", McpNeed::Add),
                None => format!("one of: {}", names.join(", ")).into(),
            };
            let message = format!("there is no MCP server `{}`", name.escape_debug());
            return Err(Error::new(Code::NotFound, message, fix).with("input", name));
        };
        if !it.server.enabled {
            let message = format!("the MCP server {name} is switched off");
            return Err(Error::new(Code::NotFound, message, format!("set mcp.{name}.enabled to true")));
        }
        if !it.is_in_force() {
            let message = match it.source {
                Source::User | Source::Client => {
                    format!("the MCP server {name} starts in the workspace, and you have not approved that here")
                }
                Source::Project(file) => {
                    format!("the MCP server {name} comes from {file}, and you have not approved its launch")
                }
            };
            let fix = Remedy::mcp(name, McpNeed::Trust);
            return Err(Error::new(Code::McpUntrusted, message, fix).with("server", name));
        }
        Ok(it.clone())
    }
}
