//! The tools of MCP servers: what the Session offers, and what the user does about the servers.

use tokio::sync::watch;

use super::Session;
use door::Reply;
use mcp::offer;
use protocol::error::{Code, Error, NoticeCode, Result};
use protocol::event::{Live, Severity, ToolsOffered};
use protocol::input::Accepted;
use protocol::remedy::{McpNeed, Remedy};
use protocol::servers::{ServerAct, ServerState};
use text::human::human_count;

/// Something about servers that takes its time.
pub(super) struct Work {
    /// Who waits for it; `None` for an unrequested status check.
    reply: Option<Option<Reply>>,
    outcome: Result<Vec<ServerState>>,
}

/// The name of `Input::Mcp`.
const MCP: &str = "mcp";

/// Returns when a server has changed its state.
pub(super) async fn news(news: &mut Option<watch::Receiver<u64>>) {
    if let Some(it) = news
        && it.changed().await.is_ok()
    {
        return;
    }
    std::future::pending().await
}

impl Session {
    /// Offers the tools of the servers that are configured now. What was offered before stays byte for byte, unless the user
    /// has changed something: then the offer is recorded anew.
    pub(super) async fn offer_tools(&mut self) -> Result<()> {
        let before = self.history.offered.clone();
        let now = match self.services.servers.clone() {
            Some(servers) => {
                let (before, blobs) = (before.clone(), self.services.blobs.clone());
                call::off_loop(move || offer::offer(&servers, before.as_deref(), &blobs)).await?
            }
            None => ToolsOffered::default(),
        };
        self.warn_of_inert_servers().await?;
        if before.as_deref().map_or(now.servers.is_empty(), |before| *before == now) {
            return Ok(());
        }
        let what = offer::difference(before.as_deref().unwrap_or(&ToolsOffered::default()), &now);
        self.change_offer(None, now, format!("the tools of MCP servers are other ones than before: {what}")).await
    }

    /// Offers a tool by search because the Provider has refused its definition. Returns whether it is one of a server.
    pub(super) async fn leave_out(&mut self, tool: &str, reason: &str) -> Result<bool> {
        let Some(before) = self.history.offered.clone() else { return Ok(false) };
        let (blobs, name) = (self.services.blobs.clone(), tool.to_owned());
        let now = call::off_loop(move || Ok(offer::without_refused(&before, &name, &blobs))).await?;
        let Some(now) = now else { return Ok(false) };
        let turn = self.work.as_ref().and_then(super::work::Work::turn).map(|turn| turn.number);
        self.change_offer(turn, now, format!("{tool} is found by search from now on: {reason}")).await?;
        Ok(true)
    }

    /// Records an offer, and says what the change costs: what the Provider has cached begins with the tools.
    async fn change_offer(&mut self, turn: Option<u32>, now: ToolsOffered, what: String) -> Result<()> {
        self.record(turn, now.into()).await?;
        self.take_offer();
        if let Some(tokens) = self.history.last_input {
            let cost = human_count(tokens);
            let text = format!("{what}; about {cost} tokens of the next request are not in the provider's cache");
            self.notice(Severity::Info, NoticeCode::OfferChanged.name(), text);
        }
        Ok(())
    }

    /// Says once which servers of the workspace are not used, where no user can be asked about them.
    async fn warn_of_inert_servers(&mut self) -> Result<()> {
        let Some(servers) = self.services.servers.clone() else { return Ok(()) };
        if self.services.options.can_ask || std::mem::replace(&mut self.was_asked, true) {
            return Ok(());
        }
        let names = call::off_loop(move || Ok(servers.unapproved())).await?;
        if let Some(first) = names.first() {
            let (message, remedy) = match names.len() {
                1 => (format!("the MCP server {first} does not start"), Remedy::mcp(first, McpNeed::Trust)),
                _ => (format!("the MCP servers {} do not start", names.join(", ")), Remedy::TrustWorkspace),
            };
            let (message, remedy) = (format!("{message}: you have not approved that in this workspace"), Some(remedy));
            let code = NoticeCode::ServersInert.name().to_owned();
            self.publish(Live::Notice { severity: Severity::Warning, code, message, remedy });
        }
        Ok(())
    }

    /// The registry with the tools that the Log says are offered.
    pub(super) fn take_offer(&mut self) {
        let Some(offered) = self.history.offered.clone() else { return };
        self.services.registry =
            offer::registry(&self.own_tools, &offered, self.services.servers.as_ref(), &self.services.blobs);
    }

    /// Publishes how the servers are.
    pub(super) fn look_at_servers(&mut self) {
        let Some(servers) = self.services.servers.clone() else { return };
        self.server_work.spawn(task::boxed(async move {
            let outcome = call::off_loop(move || Ok(servers.states())).await;
            Work { reply: None, outcome }
        }));
    }

    /// Does what the user wants about a server.
    pub(super) fn act_on_server(&mut self, server: Option<String>, act: ServerAct, reply: Option<Reply>) {
        let Some(servers) = self.services.servers.clone() else {
            let error = Error::new(Code::NotFound, "there are no MCP servers here", Remedy::mcp("", McpNeed::Add));
            return self.answer_input(MCP, reply, Err(error));
        };
        self.server_work.spawn(task::boxed(async move {
            let acting = servers.clone();
            let looked = |tried: Option<(String, ServerState)>| async move {
                let mut all = call::off_loop(move || Ok(servers.states())).await?;
                // Why it did not start is known only to the one who has just tried.
                if let Some((name, state)) = tried
                    && let Some(it) = all.iter_mut().find(|it| it.name == name && !it.shadowed)
                {
                    it.error = state.error;
                }
                Ok(all)
            };
            let done = async {
                let named = |server: Option<String>| {
                    server.ok_or_else(|| Error::new(Code::InvalidArgs, "no server is named", "name it as `server`"))
                };
                match act {
                    ServerAct::Show => Ok(None),
                    ServerAct::Restart => {
                        let name = named(server)?;
                        acting.restart(&name).await.map(|state| Some((name, state)))
                    }
                    ServerAct::Stop => acting.stop(&named(server)?).await.map(|()| None),
                    ServerAct::Accept { seen } => {
                        let name = named(server)?;
                        acting.accept_by_name(&name, Some(&seen)).await.map(|state| Some((name, state)))
                    }
                }
            };
            let outcome = match done.await {
                Ok(state) => looked(state).await,
                Err(e) => Err(e),
            };
            Work { reply: Some(reply), outcome }
        }));
    }

    pub(super) fn on_server_work(&mut self, work: Work) {
        let Work { reply, outcome } = work;
        let outcome = outcome.map(|servers| self.publish(Live::McpChanged { servers }));
        if let Some(reply) = reply {
            self.answer_input(MCP, reply, outcome.map(|()| Accepted::default()));
        }
    }
}
