//! The MCP servers of a workspace's Sessions.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Harness;
use call::Registry;
use config::credentials::Vault;
use config::{Environment, McpLimits, McpServer, StartFolder};
use context::servers::plain;
use mcp::Servers;
use mcp::login::LoginOffer;
use mcp::prompts::ServerPrompt;
use mcp::sign_out::SignedOut;
use protocol::error::{Code, Error, Result};
use protocol::remedy::{McpNeed, Remedy};
use protocol::servers::ServerState;

/// The MCP servers that a Harness is given.
#[derive(Debug, Clone, Default)]
pub struct McpServers {
    /// The servers in the user's own configuration.
    pub own: BTreeMap<String, McpServer>,
    /// Bounds of what they take of a request.
    pub limits: McpLimits,
    /// The servers that a client brings along.
    pub of_client: BTreeMap<String, McpServer>,
}

impl Harness {
    /// The same harness, whose Sessions may use MCP servers: those of the user's configuration, those that the client brings
    /// along, and those of the workspace that the user trusts.
    #[must_use]
    pub fn with_servers(mut self, servers: McpServers, around: &Environment) -> Harness {
        let McpServers { own, limits, of_client } = servers;
        let in_workspace = own.iter().chain(&of_client).filter(|(_, it)| it.cwd == StartFolder::Workspace);
        Arc::make_mut(&mut self.services.library).own_servers =
            in_workspace.map(|(name, it)| (name.clone(), it.clone())).collect();
        let setup = mcp::Setup {
            servers: own,
            limits,
            secrets: mcp::secrets::Source { environment: around.clone(), vault: Vault::new(around) },
            environment: Arc::clone(&self.services.environment),
            sandbox: self.services.sandbox.clone(),
            workspace: self.workspace().to_owned(),
            run_folder: around.home.join("mcp/run"),
            library: Arc::clone(&self.services.library),
            stopping: self.services.stopping.clone(),
        };
        self.services.servers =
            Some(Servers::new(setup, mcp::Catalog::new(&around.home, self.services.options.dry_run), of_client));
        self
    }

    /// The same harness with the MCP servers that a client brings along, as [`usable_servers`] found them.
    #[must_use]
    pub fn with_client_servers(mut self, servers: BTreeMap<String, McpServer>) -> Harness {
        if let Some(own) = self.services.servers.as_ref().filter(|_| !servers.is_empty()) {
            self.services.servers = Some(own.with_client(servers));
        }
        self
    }

    /// The MCP servers that something names, as they are now; none is started.
    pub fn mcp_servers(&self) -> Vec<ServerState> {
        self.services.servers.as_ref().map_or(Vec::new(), Servers::states)
    }

    /// Starts an MCP server, if it does not run, and tells how it is. The first contact with a server of the user accepts its
    /// tools.
    ///
    /// # Errors
    /// `NOT_FOUND`, `MCP_UNTRUSTED`; an error of the start is in the state.
    pub async fn look_at_server(&self, name: &str) -> Result<ServerState> {
        self.servers()?.look(name).await
    }

    /// The same for the server of a tool, as a user or a model names it.
    ///
    /// # Errors
    /// As [`Harness::look_at_server`].
    pub async fn look_at_server_of(&self, tool: &str) -> Result<ServerState> {
        let servers = self.servers()?;
        let (from, tool) = (servers.clone(), tool.to_owned());
        let name = call::off_loop(move || mcp::search::server_of(&from, &tool)).await?;
        servers.look(&name).await
    }

    /// Accepts the tools of an MCP server as they are now; `seen` names those that the user saw.
    ///
    /// # Errors
    /// As [`Harness::look_at_server`]; `PREVIEW_STALE` when they have changed since, `WRITE_FAILED`.
    pub async fn accept_server(&self, name: &str, seen: Option<&str>) -> Result<ServerState> {
        self.servers()?.accept_by_name(name, seen).await
    }

    /// The prompts of MCP servers, as they were at the last contact; none is started. Blocks while it reads files.
    pub fn server_prompts(&self) -> Vec<ServerPrompt> {
        self.services.servers.as_ref().map_or(Vec::new(), Servers::prompts)
    }

    /// The text that a prompt of an MCP server gives, with these words as its arguments. It is the server's text: the user
    /// should see it before it is sent.
    ///
    /// # Errors
    /// `TEMPLATE_NOT_FOUND`, `INVALID_ARGS`, and those of a call of a server.
    pub async fn server_prompt(&self, name: &str, args: &str) -> Result<String> {
        self.servers()?.prompt(name, args).await
    }

    /// Whether the letters behind an `@` name a server, such as `notes:`. Blocks while it reads files.
    pub fn mentions_server(&self, letters: &str) -> bool {
        let named = |name: &str| self.services.servers.as_ref().is_some_and(|it| it.is_named(name));
        letters.split_once(':').is_some_and(|(name, _)| named(name))
    }

    /// The resources of the MCP server that these letters name, `SERVER:URI`. It is started if it does not run.
    ///
    /// # Errors
    /// Those of a call of a server.
    pub async fn server_resources(&self, letters: &str) -> Result<Vec<String>> {
        let (name, rest) = letters.split_once(':').unwrap_or((letters, ""));
        self.servers()?.resources(name, rest).await
    }

    /// The MCP servers with resources whose name begins with these letters. Blocks while it reads files.
    pub fn servers_with_resources(&self, letters: &str) -> Vec<String> {
        let servers = self.services.servers.as_ref().filter(|_| !letters.is_empty());
        servers.map_or(Vec::new(), |it| it.with_resources(letters))
    }

    /// Who signs the user in to an MCP server; `scope` stands for the one that the server names.
    ///
    /// # Errors
    /// As [`Harness::look_at_server`]; `MCP_AUTH_REQUIRED` where that cannot be found out, `NETWORK`, `CONFIG_INVALID`.
    pub async fn server_login(&self, name: &str, scope: Option<String>) -> Result<LoginOffer> {
        self.servers()?.login(name, scope).await
    }

    /// Forgets the sign-in to an MCP server, and tells its issuer.
    ///
    /// # Errors
    /// `NOT_FOUND`, `AUTH_WRITE_FAILED`.
    pub async fn server_logout(&self, name: &str) -> Result<SignedOut> {
        self.servers()?.logout(name).await
    }

    /// Forgets the accepted tools of an MCP server.
    ///
    /// # Errors
    /// `WRITE_FAILED`.
    pub fn forget_server(&self, name: &str) -> Result<()> {
        self.servers()?.forget(name)
    }

    /// Stops every MCP server.
    pub async fn stop_servers(&self) {
        if let Some(servers) = &self.services.servers {
            servers.stop_all().await;
        }
    }

    /// The tools that find, call and read what MCP servers have, for calls outside a Session.
    pub fn servers_registry(&self) -> Registry {
        self.services.registry.with_all(mcp::tool::general(self.services.servers.as_ref()))
    }

    fn servers(&self) -> Result<&Servers> {
        self.services
            .servers
            .as_ref()
            .ok_or_else(|| Error::new(Code::NotFound, "there are no MCP servers here", Remedy::mcp("", McpNeed::Add)))
    }
}

/// The MCP servers of a client that can be used, in the letters of names of servers, and the faults of the others.
pub fn usable_servers(servers: BTreeMap<String, McpServer>) -> (BTreeMap<String, McpServer>, Vec<Error>) {
    let (mut usable, mut faults) = (BTreeMap::new(), Vec::new());
    for (name, server) in servers {
        let name = plain(&name);
        match server.check(&name) {
            Ok(()) => drop(usable.insert(name, server)),
            Err(e) => faults.push(e),
        }
    }
    (usable, faults)
}
