//! Other people's tools: servers of the Model Context Protocol under pixir's rules.
//!
//! The accepted definitions lie on the disk ([`catalog`]); requests are made from them, and a server starts at its first
//! call.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use parking_lot::Mutex;
use tokio::sync::{Semaphore, watch};

mod ask; // what a server asks the user
mod catalog; // accepted definitions
mod client; // the protocol, by the SDK
mod deaths; // when a server died, and when it may start again
mod faults; // what went wrong, in words
mod http; // servers that run elsewhere
mod landing; // the page that ends a sign-in
mod lines; // what a server prints on stdout
pub(crate) mod login; // signing in to a server that runs elsewhere
mod names; // names of tools as a model calls them
mod pages; // pages of lists, as much of them as is read
pub(crate) mod offer; // which tools a Session offers
mod process; // the process of a server
pub(crate) mod prompts; // prompts and resources, for the user who writes
mod result; // what a server answered, for the model
mod schema; // schemas for Providers, arguments against the original
pub(crate) mod secrets; // what a server gets and nobody sees
mod sign_in; // the stored sign-in of such a server
pub(crate) mod sign_out; // its end
mod state; // how the servers are, for the user
mod stream; // what a server over HTTP sends beside its answers
mod supervise; // one server: started, watched, stopped
pub(crate) mod tool; // their tools, and those that search them

use crate::call::Context;
use crate::call::command::tell;
use crate::config::mcp::{McpLimits, McpServer, StartFolder};
use crate::context::library::Library;
use crate::context::servers::ProjectServer;
use crate::permissions::UsersWord;
use crate::process::Stopping;
use crate::protocol::error::{Code, Error, Result, nearest};
use crate::protocol::event::Printed;
use crate::protocol::remedy::{McpNeed, Remedy};
use crate::protocol::trust::Standing;
use crate::sandbox::{Own, Policy, Sandbox};
use crate::storage::store::make_private;
pub(crate) use catalog::Catalog;
use catalog::{Definition, Pins};
use client::Begin;
use login::LoginOffer;
use sign_in::SignIn;
use sign_out::{SignedOut, sign_out};
use supervise::{Around, Busy, Launch, Running, Server};

/// How often a call that waits for a server looks at what there is to show.
const START_SHOWN: Duration = Duration::from_millis(250);

/// What a Harness knows of the user's servers.
pub(crate) struct Setup {
    /// The servers in the user's own configuration.
    pub(crate) servers: BTreeMap<String, McpServer>,
    pub(crate) limits: McpLimits,
    /// Where their secrets come from.
    pub(crate) secrets: secrets::Source,
    /// The environment of programs, without secrets.
    pub(crate) environment: Arc<[(String, String)]>,
    pub(crate) sandbox: Sandbox,
    pub(crate) workspace: PathBuf,
    /// The empty folder in which a user's servers start.
    pub(crate) run_folder: PathBuf,
    pub(crate) library: Arc<Library>,
    pub(crate) stopping: Stopping,
}

/// The servers of a workspace. The Sessions of a Harness share them; they end with the last of these Sessions.
#[derive(Clone)]
pub(crate) struct Servers(Arc<Shared>);

struct Shared {
    setup: Arc<Setup>,
    catalog: Catalog,
    running: Mutex<BTreeMap<(String, String), Arc<Server>>>,
    starts: Arc<Semaphore>,
    sessions: AtomicUsize,
    /// Servers that a client brought along, by name.
    of_client: BTreeMap<String, McpServer>,
    news: watch::Sender<u64>,
}

/// Who names a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// The user's own configuration.
    User,
    /// A file of the workspace.
    Project(&'static str),
    /// The client that pixir serves.
    Client,
}

impl Source {
    fn name(self) -> &'static str {
        match self {
            Source::User => "your configuration",
            Source::Project(file) => file,
            Source::Client => "the editor",
        }
    }
}

/// A server that something names.
#[derive(Debug, Clone)]
pub(crate) struct Configured {
    pub(crate) name: String,
    pub(crate) source: Source,
    pub(crate) server: McpServer,
    /// The hash of its launch.
    pub(crate) launch: String,
    pub(crate) standing: Standing,
    /// Keys that were ignored, because only the user's own file may have them.
    pub(crate) ignored: Vec<&'static str>,
    /// The user's own server of this name is used instead.
    pub(crate) is_shadowed: bool,
    expands: bool,
}

impl Configured {
    /// Whether it may be started.
    pub(crate) fn is_in_force(&self) -> bool {
        self.server.enabled && !self.is_shadowed && self.standing == Standing::InForce
    }

    /// The user's word about a tool of it.
    fn word(&self, tool: &str) -> UsersWord {
        match (self.server.only_reads(tool), self.server.allows(tool)) {
            (true, _) => UsersWord::Reads,
            (false, true) => UsersWord::Allowed,
            (false, false) => UsersWord::Nothing,
        }
    }
}

impl Servers {
    pub(crate) fn new(setup: Setup, catalog: Catalog, of_client: BTreeMap<String, McpServer>) -> Servers {
        Servers::with(Arc::new(setup), catalog, of_client)
    }

    /// The same servers with those that a client brings along. They are started apart from those of others.
    pub(crate) fn with_client(&self, of_client: BTreeMap<String, McpServer>) -> Servers {
        Servers::with(Arc::clone(&self.0.setup), self.0.catalog.clone(), of_client)
    }

    fn with(setup: Arc<Setup>, catalog: Catalog, of_client: BTreeMap<String, McpServer>) -> Servers {
        Servers(Arc::new(Shared {
            setup,
            catalog,
            running: Mutex::default(),
            starts: Server::starts(),
            sessions: AtomicUsize::new(0),
            of_client,
            news: watch::channel(0).0,
        }))
    }

    /// Every server that something names, by name; of two with one name the user's first. Blocks while it reads files.
    pub(crate) fn configured(&self) -> Vec<Configured> {
        let Shared { setup, of_client, .. } = &*self.0;
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
    pub(crate) fn unapproved(&self) -> Vec<String> {
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
    pub(crate) fn find(&self, name: &str) -> Result<Configured> {
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

    /// What the user accepted of a server; `None` before the first contact.
    ///
    /// # Errors
    /// As [`Catalog::load`].
    pub(crate) fn pins(&self, it: &Configured) -> Result<Option<Pins>> {
        self.0.catalog.load(&it.name, &it.launch)
    }

    fn server(&self, it: &Configured) -> Result<Arc<Server>> {
        let key = (it.name.clone(), it.launch.clone());
        if let Some(server) = self.0.running.lock().get(&key) {
            return Ok(Arc::clone(server));
        }
        let setup = &self.0.setup;
        let secrets = setup.secrets.of(&it.name, &it.server, it.expands)?;
        let launch = match (&it.server.command, &it.server.url) {
            (Some(command), _) => self.program(command, &it.server, &secrets),
            (None, url) => Launch::Http(Box::new(http::Endpoint {
                url: url.clone().unwrap_or_default(),
                is_of_project: matches!(it.source, Source::Project(_)),
                oauth: it.server.oauth.clone(),
                sign_in: SignIn::new(
                    &it.name,
                    url.as_deref().unwrap_or_default(),
                    &setup.secrets.vault,
                    &setup.secrets.environment,
                    &secrets,
                ),
                secrets: secrets.clone(),
            })),
        };
        let around = Around {
            stopping: setup.stopping.clone(),
            starts: Arc::clone(&self.0.starts),
            news: self.0.news.clone(),
            // A damaged file is reported where its tools are needed.
            remembers: self.pins(it).ok().flatten().and_then(|pins| Begin::of_version(&pins.version)),
        };
        let server = Server::new(&it.name, &it.launch, launch, it.server.start_limit(), secrets, around);
        let server = Arc::clone(self.0.running.lock().entry(key).or_insert_with(|| Arc::new(server)));
        self.stop_when_idle(&server, Duration::from_secs(it.server.idle_stop));
        Ok(server)
    }

    /// The server acts outside the sandbox. The launcher still ends it with pixir.
    fn program(&self, command: &str, server: &McpServer, secrets: &secrets::Secrets) -> Launch {
        use secrecy::ExposeSecret as _;
        let setup = &self.0.setup;
        let (sandbox, workspace) = (setup.sandbox.clone(), setup.workspace.clone());
        let folder = match server.cwd {
            StartFolder::Run => setup.run_folder.clone(),
            StartFolder::Workspace => workspace.clone(),
        };
        let is_made = server.cwd == StartFolder::Run;
        let (command, args) = (command.to_owned(), server.args.clone());
        let (environment, env) = (Arc::clone(&setup.environment), Arc::clone(&secrets.env));
        Launch::Program(Box::new(move || {
            if is_made {
                make_private(&folder)?;
            }
            let own = Own { workspace: workspace.clone(), ..Own::default() };
            let mut it = sandbox.command(Policy::Outside, &command, &args, &folder, &own);
            it.env_clear().envs(environment.iter().map(|(name, value)| (name, value)));
            it.envs(env.iter().map(|(name, value)| (name, value.expose_secret())));
            Ok(it)
        }))
    }

    fn stop_when_idle(&self, server: &Arc<Server>, limit: Duration) {
        let server = Arc::downgrade(server);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(limit.min(Duration::from_secs(30))).await;
                let Some(server) = server.upgrade() else { return };
                server.stop_if_idle(limit).await;
            }
        });
    }

    /// The running server with what it offers now. The first contact with a server of the user, or of the
    /// client, accepts its definitions.
    ///
    /// # Errors
    /// `MCP_START_FAILED`, `MCP_AUTH_REQUIRED`, and those of a call.
    pub(crate) async fn contact(&self, it: &Configured) -> Result<Contact> {
        let server = self.server(it)?;
        let (mut running, mut busy) = server.connected().await?;
        let offered = match server.offered(&running).await {
            Err(e) if e.code == Code::McpAuthRequired && server.has_another_sign_in(&running).await => {
                (running, busy) = server.connected().await?;
                server.offered(&running).await?
            }
            offered => offered?,
        };
        let (catalog, is_first) = (self.0.catalog.clone(), matches!(it.source, Source::User | Source::Client));
        let (name, launch, own) = (it.name.clone(), it.launch.clone(), Arc::clone(&offered));
        let pins = crate::call::off_loop(move || match catalog.load(&name, &launch)? {
            // What the user writes with is no part of what is accepted.
            Some(pins) if pins.prompts != own.prompts || pins.has_resources != own.has_resources => {
                let pins = Pins { prompts: own.prompts.clone(), has_resources: own.has_resources, ..pins };
                catalog.save(&pins)?;
                Ok(Some(pins))
            }
            Some(pins) => Ok(Some(pins)),
            None if is_first => {
                catalog.save(&own)?;
                Ok(Some((*own).clone()))
            }
            None => Ok(None),
        })
        .await?;
        Ok(Contact { server, running, _busy: busy, offered, pins })
    }

    /// The same for a call, whose live view shows that the server starts, what it prints meanwhile, and how long it waits
    /// because it died again and again.
    ///
    /// # Errors
    /// As [`Servers::contact`].
    pub(crate) async fn contact_for(&self, it: &Configured, ctx: &Context) -> Result<Contact> {
        let server = self.server(it)?;
        let contact = self.contact(it);
        tokio::pin!(contact);
        let mut told = String::new();
        loop {
            tokio::select! {
                biased;
                contact = &mut contact => return contact,
                () = tokio::time::sleep(START_SHOWN) => {}
            }
            let now = server.start_words();
            if now != told && !now.is_empty() {
                tell(ctx, Printed { text: format!("{now}\n"), ..Printed::default() });
                told = now;
            }
        }
    }

    /// Who signs the user in to a server.
    ///
    /// # Errors
    /// As [`Servers::find`] and [`LoginOffer::find`].
    pub(crate) async fn login(&self, name: &str, scope: Option<String>) -> Result<LoginOffer> {
        let it = self.find_apart(name).await?;
        let server = self.server(&it)?;
        let Some(endpoint) = server.endpoint() else {
            let message = format!("the MCP server {name} runs on this machine, and has no sign-in");
            return Err(Error::new(Code::InvalidArgs, message, "give it a key in env_from").with("input", name));
        };
        if endpoint.has_key() {
            let message = format!("the MCP server {name} is sent the key of its Authorization header");
            let fix = format!("remove Authorization from the headers of [mcp.{name}], or keep the key");
            return Err(Error::new(Code::InvalidArgs, message, fix).with("input", name));
        }
        let secrets = &self.0.setup.secrets;
        LoginOffer::find(name, endpoint, scope, secrets.client_secret(name)?, secrets.vault.clone()).await
    }

    /// Forgets the sign-in to a server, and tells its issuer.
    ///
    /// # Errors
    /// As [`Servers::find`]; `AUTH_WRITE_FAILED`.
    pub(crate) async fn logout(&self, name: &str) -> Result<SignedOut> {
        let (this, named) = (self.clone(), name.to_owned());
        let url = crate::call::off_loop(move || {
            let it = this.configured().into_iter().find(|it| it.name == named && !it.is_shadowed);
            // The error of a name that nothing has.
            it.map_or_else(|| this.find(&named), Ok).map(|it| it.server.url.unwrap_or_default())
        })
        .await?;
        let secrets = &self.0.setup.secrets;
        sign_out(&url, &secrets.vault, &secrets.environment).await
    }

    /// Returns when every server runs that requests wait for.
    ///
    /// # Errors
    /// As [`Servers::contact`].
    pub(crate) async fn required_ready(&self) -> Result<()> {
        let required = self.0.setup.servers.iter().filter(|(_, it)| it.required && it.enabled);
        let required = required.map(|(name, _)| async move {
            let it = self.find_apart(name).await?;
            self.contact(&it).await.map(drop)
        });
        join_all(required).await.into_iter().collect()
    }

    /// Accepts the definitions that the server has now, as the user saw them.
    ///
    /// # Errors
    /// `PREVIEW_STALE` when they are other ones by now, and those of [`Servers::contact`].
    pub(crate) async fn accept(&self, it: &Configured, seen: Option<&str>) -> Result<Pins> {
        let contact = self.contact(it).await?;
        if seen.is_some_and(|seen| seen != contact.offered.seen()) {
            let message = format!("the definitions of {} have changed since you saw them", it.name);
            return Err(Error::new(Code::PreviewStale, message, "look at them again"));
        }
        let (catalog, pins) = (self.0.catalog.clone(), (*contact.offered).clone());
        let saved = pins.clone();
        crate::call::off_loop(move || catalog.save(&saved)).await?;
        Ok(pins)
    }

    /// Forgets what was accepted of a server.
    ///
    /// # Errors
    /// `WRITE_FAILED`.
    pub(crate) fn forget(&self, name: &str) -> Result<()> {
        self.0.catalog.forget(name)
    }

    /// A Session uses the servers from now on.
    pub(crate) fn join(&self) {
        self.0.sessions.fetch_add(1, Ordering::Relaxed);
    }

    /// A Session does not use them any more. With the last one they end.
    pub(crate) async fn leave(&self) {
        if self.0.sessions.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.stop_all().await;
        }
    }

    /// Ends every server, all at once.
    pub(crate) async fn stop_all(&self) {
        let all: Vec<Arc<Server>> = self.0.running.lock().values().cloned().collect();
        join_all(all.iter().map(|it| it.stop())).await;
    }

    /// Tells of every change of a server's state.
    pub(crate) fn news(&self) -> watch::Receiver<u64> {
        self.0.news.subscribe()
    }

    pub(crate) fn limits(&self) -> &McpLimits {
        &self.0.setup.limits
    }
}

/// A server that runs, what it offers now, and what the user accepted of it.
pub(crate) struct Contact {
    server: Arc<Server>,
    running: Arc<Running>,
    _busy: Busy,
    offered: Arc<Pins>,
    pins: Option<Pins>,
}

impl Contact {
    /// Checks that a tool is as it was accepted.
    ///
    /// # Errors
    /// `MCP_DEFINITION_CHANGED`.
    fn check(&self, it: &Configured, tool: &str, pin: &str) -> Result<()> {
        let name = &it.name;
        let changed = |what: String| {
            let fix = Remedy::mcp(name, McpNeed::Accept);
            Err(Error::new(Code::McpDefinitionChanged, what, fix).with("server", name.as_str()).with("tool", tool))
        };
        let now = self.offered.tool(tool).map(Definition::pin);
        match now {
            None => changed(format!("the MCP server {name} has no tool `{tool}` any more")),
            Some(now) if now != pin => changed(format!(
                "the MCP server {name} has changed the definition of `{tool}` since the user accepted it"
            )),
            Some(_) if it.server.on_change == crate::config::OnChange::Block && self.has_changes() => {
                changed(format!("the MCP server {name} has changed its tools since the user accepted them"))
            }
            Some(_) => Ok(()),
        }
    }

    fn has_changes(&self) -> bool {
        self.pins.as_ref().is_none_or(|pins| pins.seen() != self.offered.seen())
    }
}
