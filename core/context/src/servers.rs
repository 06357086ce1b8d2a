//! MCP servers that the workspace brings along: `[mcp]` of the project's configuration, and `.mcp.json`. None of them starts
//! before the user trusts exactly this launch.

use std::collections::BTreeMap;

use serde::Deserialize;

use config::mcp::{McpServer, is_name};
use config::project::{self, CONFIG};
use files::workspace::Workspace;
use protocol::error::{Code, Result};
use protocol::trust::{Contribution, ContributionKind, Standing};
use storage::trust::Trusted;

/// The file that many agents share, relative to the workspace.
const SHARED: &str = ".mcp.json";
/// A longer file is not read, bytes.
const MAX_FILE: u64 = 64 << 10;
/// More servers of one file are not read.
const MAX_SERVERS: usize = 64;

/// A server that the workspace brings along.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectServer {
    /// Its name, in the letters of names of servers.
    pub name: String,
    /// The file that names it, relative to the workspace.
    pub file: &'static str,
    /// What it is, without what only the user may say.
    pub server: McpServer,
    /// Keys that were ignored, because only the user's own file may have them.
    pub ignored: Vec<&'static str>,
    /// Whether it is in force.
    pub standing: Standing,
    /// The hash of its launch.
    pub launch: String,
}

impl ProjectServer {
    /// The path by which trust knows it.
    fn path(&self) -> String {
        format!("{}: {}", self.file, self.name)
    }

    /// Values of `env` and `headers` may name variables of the environment: `${VAR}`.
    pub fn expands(&self) -> bool {
        self.file == SHARED
    }
}

#[derive(Deserialize)]
struct SharedFile {
    #[serde(default, rename = "mcpServers")]
    servers: BTreeMap<String, SharedServer>,
}

#[derive(Deserialize)]
struct SharedServer {
    command: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    url: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    disabled: bool,
}

/// All of them, the project's configuration first. Of two with one name the first counts.
pub(crate) fn of_workspace(workspace: &Workspace, trusted: &Trusted) -> Vec<ProjectServer> {
    let mut all: Vec<ProjectServer> = Vec::new();
    let found = of_config(workspace).into_iter().map(|it| (CONFIG, it));
    let shared = of_shared(workspace).into_iter().map(|it| (SHARED, it));
    for (file, (written, server)) in found.chain(shared) {
        let name = plain(&written);
        let launch = server.launch(workspace.root());
        let (server, ignored) = server.of_project();
        let mut it = ProjectServer { name, file, server, ignored, standing: Standing::New, launch };
        it.standing = match it.server.check(&it.name) {
            Ok(()) => trusted.standing(&it.path(), &it.launch),
            Err(e) => Standing::Unusable { why: e.message },
        };
        if !all.iter().any(|other| other.name == it.name) {
            all.push(it);
        }
    }
    all
}

/// The same, as the user is asked about them.
pub fn contributions(workspace: &Workspace, trusted: &Trusted) -> Vec<Contribution> {
    let contribution = |it: ProjectServer| Contribution {
        kind: ContributionKind::McpServer,
        path: it.path(),
        about: it.server.launch_text(),
        digest: (!matches!(it.standing, Standing::Unusable { .. })).then(|| it.launch.clone()),
        standing: it.standing,
    };
    of_workspace(workspace, trusted).into_iter().map(contribution).collect()
}

/// A server of the user that starts in this workspace, where programs and modules may lie that it then loads. The user is
/// asked about it as about what the workspace brings along.
pub fn own(name: &str, server: &McpServer, workspace: &Workspace, trusted: &Trusted) -> Contribution {
    let path = format!("your configuration: {name}");
    let digest = server.launch(workspace.root());
    Contribution {
        kind: ContributionKind::McpServer,
        standing: trusted.standing(&path, &digest),
        about: server.launch_text(),
        digest: Some(digest),
        path,
    }
}

fn of_config(workspace: &Workspace) -> BTreeMap<String, McpServer> {
    let Ok(Some(content)) = read(workspace, CONFIG) else { return BTreeMap::new() };
    // A file with a fault is reported as the project's configuration.
    project::servers(&content).unwrap_or_default()
}

fn of_shared(workspace: &Workspace) -> BTreeMap<String, McpServer> {
    let Ok(Some(content)) = read(workspace, SHARED) else { return BTreeMap::new() };
    let Ok(file) = serde_json::from_slice::<SharedFile>(&content) else { return BTreeMap::new() };
    let server = |it: SharedServer| McpServer {
        // Some programs write both.
        url: it.url.filter(|_| it.command.is_none()),
        command: it.command,
        args: it.args,
        env: it.env,
        headers: it.headers,
        enabled: !it.disabled,
        ..McpServer::default()
    };
    file.servers.into_iter().take(MAX_SERVERS).map(|(name, it)| (name, server(it))).collect()
}

fn read(workspace: &Workspace, path: &str) -> Result<Option<Vec<u8>>> {
    match workspace.locate(path).and_then(|at| workspace.read_plain(&at, MAX_FILE)) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(e) if e.code == Code::NotFound => Ok(None),
        Err(e) => Err(e),
    }
}

/// A name in the letters of names of servers: `My Server` becomes `my-server`.
pub fn plain(written: &str) -> String {
    let letter = |c: char| match c.to_ascii_lowercase() {
        c if c.is_ascii_lowercase() || c.is_ascii_digit() => c,
        _ => '-',
    };
    let name: String = written.chars().map(letter).skip_while(|c| !c.is_ascii_lowercase()).take(24).collect();
    let name = name.trim_end_matches('-').to_owned();
    // What has no letter stays as it is, so that the error names it.
    if is_name(&name) { name } else { written.to_owned() }
}
