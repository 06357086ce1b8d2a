//! A server that runs, with what it offers now against what the user accepted.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;

use super::Servers;
use super::catalog::{Definition, Pins};
use super::configured::{Configured, Source};
use super::supervise::{Busy, Running, Server};
use call::Context;
use call::command::tell;
use config::OnChange;
use protocol::error::{Code, Error, Result};
use protocol::event::Printed;
use protocol::remedy::{McpNeed, Remedy};

/// How often a call that waits for a server looks at what there is to show.
const START_SHOWN: Duration = Duration::from_millis(250);

/// A server that runs, what it offers now, and what the user accepted of it.
pub struct Contact {
    pub(super) server: Arc<Server>,
    pub(super) running: Arc<Running>,
    _busy: Busy,
    offered: Arc<Pins>,
    pub(super) pins: Option<Pins>,
}

impl Contact {
    /// Checks that a tool is as it was accepted.
    ///
    /// # Errors
    /// `MCP_DEFINITION_CHANGED`.
    pub(super) fn check(&self, it: &Configured, tool: &str, pin: &str) -> Result<()> {
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
            Some(_) if it.server.on_change == OnChange::Block && self.has_changes() => {
                changed(format!("the MCP server {name} has changed its tools since the user accepted them"))
            }
            Some(_) => Ok(()),
        }
    }

    fn has_changes(&self) -> bool {
        self.pins.as_ref().is_none_or(|pins| pins.seen() != self.offered.seen())
    }
}

impl Servers {
    /// The running server with what it offers now. The first contact with a server of the user, or of the
    /// client, accepts its definitions.
    ///
    /// # Errors
    /// `MCP_START_FAILED`, `MCP_AUTH_REQUIRED`, and those of a call.
    pub fn contact<'a>(&'a self, it: &'a Configured) -> BoxFuture<'a, Result<Contact>> {
        Box::pin(async move {
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
            let pins = call::off_loop(move || match catalog.load(&name, &launch)? {
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
        })
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

    /// Accepts the definitions that the server has now, as the user saw them.
    ///
    /// # Errors
    /// `PREVIEW_STALE` when they are other ones by now, and those of [`Servers::contact`].
    pub async fn accept(&self, it: &Configured, seen: Option<&str>) -> Result<Pins> {
        let contact = self.contact(it).await?;
        if seen.is_some_and(|seen| seen != contact.offered.seen()) {
            let message = format!("the definitions of {} have changed since you saw them", it.name);
            return Err(Error::new(Code::PreviewStale, message, "look at them again"));
        }
        let (catalog, pins) = (self.0.catalog.clone(), (*contact.offered).clone());
        let saved = pins.clone();
        call::off_loop(move || catalog.save(&saved)).await?;
        Ok(pins)
    }
}
