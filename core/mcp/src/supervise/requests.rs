//! What a running server is asked, and with which sign-in.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Map, Value};
use tokio::sync::mpsc;

use super::{Launch, Running, Server, State};
use crate::client::{Answer, Fault};
use crate::http::Endpoint;
use call::FormRequest;
use protocol::error::Result;

impl Server {
    /// Calls a tool.
    ///
    /// # Errors
    /// `MCP_SERVER_EXITED`, `MCP_TIMEOUT`, `MCP_PROTOCOL`, `MCP_LIMIT`, `MCP_AUTH_REQUIRED`; what the server refuses is
    /// `MCP_PROTOCOL` too.
    pub(crate) async fn call(
        &self,
        running: &Running,
        tool: &str,
        args: Map<String, Value>,
        limit: Duration,
        forms: Option<mpsc::Sender<FormRequest>>,
    ) -> Result<Answer> {
        let _listening = running.client.listen(forms);
        self.answer(running, tool, running.client.call(tool, args, limit)).await
    }

    /// Reads a resource; without a URI, lists them.
    ///
    /// # Errors
    /// As [`Server::call`].
    pub(crate) async fn read(
        &self,
        running: &Running,
        uri: &str,
        limit: Duration,
        forms: Option<mpsc::Sender<FormRequest>>,
    ) -> Result<Answer> {
        let _listening = running.client.listen(forms);
        self.answer(running, "resources/read", running.client.read(uri, limit)).await
    }

    /// The text of a prompt.
    ///
    /// # Errors
    /// As [`Server::call`].
    pub(crate) async fn prompt(
        &self,
        running: &Running,
        name: &str,
        args: Map<String, Value>,
        limit: Duration,
    ) -> Result<String> {
        self.answer(running, name, running.client.prompt(name, args, limit)).await
    }

    /// The addresses of its resources.
    ///
    /// # Errors
    /// As [`Server::call`].
    pub(crate) async fn resources(&self, running: &Running, limit: Duration) -> Result<Vec<String>> {
        self.answer(running, "resources/list", running.client.resources(limit)).await
    }

    /// The answer to a request about `what`, or the error of a server that ended meanwhile.
    async fn answer<T>(
        &self,
        running: &Running,
        what: &str,
        request: impl Future<Output = std::result::Result<T, Fault>>,
    ) -> Result<T> {
        let answer = tokio::select! {
            biased;
            answer = request => answer,
            () = running.gone() => Err(Fault::Closed),
        };
        match answer {
            Ok(answer) => Ok(answer),
            Err(fault) => Err(self.failed(fault, running, what).await),
        }
    }

    /// Gives up a connection whose sign-in the server has refused, where there is another sign-in for the next one.
    pub(crate) async fn has_another_sign_in(&self, running: &Arc<Running>) -> bool {
        let Launch::Http(endpoint) = &self.launch else { return false };
        if endpoint.has_key() || !endpoint.sign_in.renew(running.token.as_ref()).await.unwrap_or(false) {
            return false;
        }
        self.give_up_connection(running).await;
        true
    }

    /// Gives up a connection whose sign-in does not suffice, where the user has signed in anew since.
    pub(crate) async fn has_newer_sign_in(&self, running: &Arc<Running>) -> bool {
        let Launch::Http(endpoint) = &self.launch else { return false };
        let text = |it: &SecretString| it.expose_secret().to_owned();
        let stored = if endpoint.has_key() { Ok(None) } else { endpoint.sign_in.token().await };
        let is_newer = stored.is_ok_and(|it| it.is_some() && it.as_ref().map(text) != running.token.as_ref().map(text));
        if is_newer {
            self.give_up_connection(running).await;
        }
        is_newer
    }

    async fn give_up_connection(&self, running: &Arc<Running>) {
        {
            let mut state = self.state.lock();
            if matches!(&*state, State::Running(it) if Arc::ptr_eq(it, running)) {
                *state = State::Cold;
            }
        }
        running.end().await;
    }

    /// How the user signs in to it; `None` where it runs on this machine.
    pub(crate) fn endpoint(&self) -> Option<&Endpoint> {
        match &self.launch {
            Launch::Http(endpoint) => Some(endpoint.as_ref()),
            Launch::Program(_) => None,
        }
    }
}
