//! Other people's tools: servers of the Model Context Protocol under pixir's rules.
//!
//! The accepted definitions lie on the disk ([`catalog`]); requests are made from them, and a server starts at its first
//! call.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use parking_lot::Mutex;
use tokio::sync::{Semaphore, watch};

mod ask; // what a server asks the user
mod catalog; // accepted definitions
mod challenge; // what a server that wants a sign-in says
mod client; // the protocol
mod configured; // the servers that something names
mod contact; // a server that runs, against what the user accepted
mod faults; // what went wrong, in words
mod headers; // headers that repeat parts of a message
mod http; // servers that run elsewhere
mod lines; // what a server prints on stdout
pub mod login; // signing in to a server that runs elsewhere
mod names; // names of tools as a model calls them
pub mod offer; // which tools a Session offers
mod pages; // pages of lists, as much of them as is read
mod pipes; // messages to a process and from it
mod process; // the process of a server
pub mod prompts; // prompts and resources, for the user who writes
mod resource; // the tool that reads resources
mod result; // what a server answered, for the model
mod schema; // schemas for Providers
pub mod search; // the tools that find and call what no request holds
pub mod secrets; // what only a server gets
mod server_call; // a call of a tool
mod sign_in; // the stored sign-in of such a server
pub mod sign_out; // its end
mod state; // how the servers are, for the user
mod stream; // messages over HTTP
mod supervise; // one server: started, watched, stopped
pub mod tool; // their tools

use ::process::Stopping;
pub use catalog::Catalog;
use catalog::Pins;
use client::Begin;
use config::mcp::{McpLimits, McpServer, StartFolder};
use configured::{Configured, Source};
use contact::Contact;
use context::library::Library;
use login::LoginOffer;
use protocol::error::{Code, Error, Result};
use sandbox::{Own, Policy, Sandbox};
use sign_in::SignIn;
use sign_out::{SignedOut, sign_out};
use storage::store::make_private;
use supervise::{Around, Launch, Server};

/// What a Harness knows of the user's servers.
pub struct Setup {
    /// The servers in the user's own configuration.
    pub servers: BTreeMap<String, McpServer>,
    pub limits: McpLimits,
    /// Where their secrets come from.
    pub secrets: secrets::Source,
    /// The environment of programs, without secrets.
    pub environment: Arc<[(String, String)]>,
    pub sandbox: Sandbox,
    pub workspace: PathBuf,
    /// The empty folder in which a user's servers start.
    pub run_folder: PathBuf,
    pub library: Arc<Library>,
    pub stopping: Stopping,
}

/// The servers of a workspace. The Sessions of a Harness share them; they end with the last of these Sessions.
#[derive(Clone)]
pub struct Servers(Arc<Shared>);

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

impl Servers {
    pub fn new(setup: Setup, catalog: Catalog, of_client: BTreeMap<String, McpServer>) -> Servers {
        Servers::with(Arc::new(setup), catalog, of_client)
    }

    /// The same servers with those that a client brings along. They are started apart from those of others.
    pub fn with_client(&self, of_client: BTreeMap<String, McpServer>) -> Servers {
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

    /// What the user accepted of a server; `None` before the first contact.
    ///
    /// # Errors
    /// As [`Catalog::load`].
    pub fn pins(&self, it: &Configured) -> Result<Option<Pins>> {
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
        task::spawn(async move {
            loop {
                tokio::time::sleep(limit.min(Duration::from_secs(30))).await;
                let Some(server) = server.upgrade() else { return };
                server.stop_if_idle(limit).await;
            }
        });
    }

    /// Who signs the user in to a server.
    ///
    /// # Errors
    /// As [`Servers::find`] and [`LoginOffer::find`].
    pub async fn login(&self, name: &str, scope: Option<String>) -> Result<LoginOffer> {
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
    pub async fn logout(&self, name: &str) -> Result<SignedOut> {
        let (this, named) = (self.clone(), name.to_owned());
        let url = call::off_loop(move || {
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
    pub async fn required_ready(&self) -> Result<()> {
        let required = self.0.setup.servers.iter().filter(|(_, it)| it.required && it.enabled);
        let required = required.map(|(name, _)| async move {
            let it = self.find_apart(name).await?;
            self.contact(&it).await.map(drop)
        });
        join_all(required).await.into_iter().collect()
    }

    /// Forgets what was accepted of a server.
    ///
    /// # Errors
    /// `WRITE_FAILED`.
    pub fn forget(&self, name: &str) -> Result<()> {
        self.0.catalog.forget(name)
    }

    /// A Session uses the servers from now on.
    pub fn join(&self) {
        self.0.sessions.fetch_add(1, Ordering::Relaxed);
    }

    /// A Session does not use them any more. With the last one they end.
    pub async fn leave(&self) {
        if self.0.sessions.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.stop_all().await;
        }
    }

    /// Ends every server, all at once.
    pub async fn stop_all(&self) {
        let all: Vec<Arc<Server>> = self.0.running.lock().values().cloned().collect();
        join_all(all.iter().map(|it| it.stop())).await;
    }

    /// Tells of every change of a server's state.
    pub fn news(&self) -> watch::Receiver<u64> {
        self.0.news.subscribe()
    }

    pub fn limits(&self) -> &McpLimits {
        &self.0.setup.limits
    }
}
