//! How the servers are, for the user.

use super::catalog::{Change, Pins, diff};
use super::offer::{left_out, offered};
use super::supervise::Server;
use super::{Configured, Servers};
use permissions::UsersWord;
use protocol::error::{Error, Result};
use protocol::servers::{DefinitionChange, ServerPhase, ServerState, ServerToolState};

impl Servers {
    /// Every server that something names, as it is now. None is started. Blocks while it reads files.
    pub fn states(&self) -> Vec<ServerState> {
        self.configured().iter().map(|it| self.state(it)).collect()
    }

    fn state(&self, it: &Configured) -> ServerState {
        let server = self.started(it);
        let running = server.as_ref().and_then(|server| server.running());
        let (pins, unreadable) = match self.pins(it) {
            Ok(pins) => (pins, None),
            Err(e) => (None, Some(e.body())),
        };
        let now = running.as_ref().map(|running| running.offered());
        let changes = match (&pins, &now) {
            (Some(pins), Some(now)) => pins.changes(now),
            // Nothing of it was accepted yet.
            (None, Some(now)) => Pins::default().changes(now),
            (_, None) => Vec::new(),
        };
        let accepted = pins.as_ref().map_or("", |pins| pins.instructions.as_str());
        let instructions = now.as_ref().and_then(|now| instructions(accepted, &now.instructions));
        let tools = pins.as_ref().map(|pins| offered(it, pins));
        let size = |spec: &protocol::tool_spec::ToolSpec| spec.parameters.to_string().len() + spec.description.len();
        ServerState {
            name: it.name.clone(),
            source: it.source.name().to_owned(),
            launch: it.server.launch_text(),
            standing: it.standing.clone(),
            enabled: it.server.enabled,
            shadowed: it.is_shadowed,
            ignored: it.ignored.iter().map(|key| (*key).to_owned()).collect(),
            phase: server.as_ref().map_or(ServerPhase::Cold, |server| server.phase()),
            waits_s: server.as_ref().and_then(|server| server.waits()).map(|it| it.as_secs_f64().ceil() as u64),
            version: pins.as_ref().map_or(String::new(), |pins| pins.version.clone()),
            bytes: tools.iter().flatten().map(|(_, spec)| size(spec) as u64).sum(),
            tools: tools.map(|tools| {
                let tool =
                    |(definition, spec): (super::catalog::Definition, protocol::tool_spec::ToolSpec)| ServerToolState {
                        name: spec.name.to_string(),
                        description: definition.description.clone(),
                        runs: match it.word(&definition.name) {
                            UsersWord::Reads => "reads",
                            UsersWord::Allowed => "allowed",
                            UsersWord::Nothing => "asks",
                        }
                        .to_owned(),
                        claims: definition.claims().into_iter().map(str::to_owned).collect(),
                        raw: definition.name,
                    };
                tools.into_iter().map(tool).collect()
            }),
            instructions: pins.as_ref().map_or(String::new(), |pins| pins.instructions.clone()),
            changes: instructions.into_iter().chain(changes.iter().map(change)).collect(),
            seen: now.map(|now| now.seen()),
            left_out: [
                running.as_ref().map_or(Vec::new(), |running| running.left_out.lock().clone()),
                pins.as_ref().map_or(Vec::new(), left_out),
            ]
            .concat(),
            dropped_lines: running.as_ref().map_or(0, |running| running.dropped_lines()),
            stderr: server.as_ref().map_or(String::new(), |server| server.stderr()),
            error: unreadable,
        }
    }

    /// Starts a server, if it does not run, and tells how it is.
    ///
    /// # Errors
    /// As [`Servers::find`]; an error of the start is in the state.
    pub async fn look(&self, name: &str) -> Result<ServerState> {
        let it = self.find_apart(name).await?;
        let error = self.contact(&it).await.err().map(|e: Error| e.body());
        let this = self.clone();
        let state = call::off_loop(move || Ok(this.state(&it))).await?;
        Ok(ServerState { error: error.or(state.error), ..state })
    }

    /// Starts a server anew, also one that ended too often.
    ///
    /// # Errors
    /// As [`Servers::look`].
    pub async fn restart(&self, name: &str) -> Result<ServerState> {
        let it = self.find_apart(name).await?;
        if let Some(server) = self.started(&it) {
            server.stop().await;
            server.forgive();
        }
        self.look(name).await
    }

    /// Stops a server.
    ///
    /// # Errors
    /// As [`Servers::find`].
    pub async fn stop(&self, name: &str) -> Result<()> {
        let it = self.find_apart(name).await?;
        if let Some(server) = self.started(&it) {
            server.stop().await;
        }
        Ok(())
    }

    /// Accepts the definitions that a server has now.
    ///
    /// # Errors
    /// As [`Servers::find`] and [`Servers::accept`].
    pub async fn accept_by_name(&self, name: &str, seen: Option<&str>) -> Result<ServerState> {
        let it = self.find_apart(name).await?;
        self.accept(&it, seen).await?;
        self.look(name).await
    }

    pub(super) async fn find_apart(&self, name: &str) -> Result<Configured> {
        let (this, name) = (self.clone(), name.to_owned());
        call::off_loop(move || this.find(&name)).await
    }

    fn started(&self, it: &Configured) -> Option<std::sync::Arc<Server>> {
        self.0.running.lock().get(&(it.name.clone(), it.launch.clone())).cloned()
    }
}

fn change(it: &Change) -> DefinitionChange {
    let what = match (&it.before, &it.after) {
        (None, _) => "new",
        (Some(_), None) => "gone",
        (Some(_), Some(_)) => "changed",
    };
    DefinitionChange { tool: Some(it.tool.clone()), what: what.to_owned(), diff: it.diff() }
}

/// What differs in the server's instructions from the accepted ones.
fn instructions(before: &str, after: &str) -> Option<DefinitionChange> {
    let what = match (before, after) {
        (before, after) if before == after => return None,
        ("", _) => "new",
        (_, "") => "gone",
        (_, _) => "changed",
    };
    let lines = |text: &str| if text.is_empty() { String::new() } else { format!("{}\n", text.trim_end()) };
    let diff = diff("instructions", &lines(before), &lines(after));
    Some(DefinitionChange { tool: None, what: what.to_owned(), diff })
}
