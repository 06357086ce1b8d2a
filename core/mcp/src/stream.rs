//! The stream on which a server over HTTP sends what belongs to no request, such as a question to the user.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::BoxStream;
use reqwest::header::{HeaderName, HeaderValue};
use rmcp::model::{ClientJsonRpcMessage, ClientRequest};
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse, StreamableHttpResponseLimits,
};
use sse_stream_of_rmcp::Sse;
use tokio::sync::watch;

use super::pages::MAX_PAGE;

/// How long a server may take to open the stream. Some open it only when they have something to send.
const PATIENCE: Duration = Duration::from_millis(500);

type Outcome<T> = Result<T, StreamableHttpError<reqwest::Error>>;

/// How far the stream is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The server keeps no session, so there will be none.
    NotWanted,
    /// The server keeps a session, and the SDK asks for its stream.
    Asked,
    /// The server has opened it, or said that it has none.
    Answered,
}

/// A client that knows how far the stream is.
#[derive(Clone)]
pub(super) struct Streaming {
    client: reqwest::Client,
    stage: watch::Sender<Stage>,
}

/// Tells when the stream is open.
pub(super) struct Opened(watch::Receiver<Stage>);

impl Opened {
    /// Waits until the server has answered the request for the stream. What it sends before that is lost: many servers keep
    /// nothing for a stream that is not open yet.
    pub(super) async fn wait(mut self) {
        let _ = tokio::time::timeout(PATIENCE, self.0.wait_for(|stage| *stage != Stage::Asked)).await;
    }
}

/// Whether a message asks for a list.
fn is_list(message: &ClientJsonRpcMessage) -> bool {
    let ClientJsonRpcMessage::Request(it) = message else { return false };
    matches!(
        it.request,
        ClientRequest::ListToolsRequest(_)
            | ClientRequest::ListPromptsRequest(_)
            | ClientRequest::ListResourcesRequest(_)
    )
}

impl Streaming {
    pub(super) fn new(client: reqwest::Client) -> (Streaming, Opened) {
        let (stage, opened) = watch::channel(Stage::NotWanted);
        (Streaming { client, stage }, Opened(opened))
    }
}

impl StreamableHttpClient for Streaming {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Outcome<StreamableHttpPostResponse> {
        self.client.post_message(uri, message, session_id, auth_header, custom_headers).await
    }

    async fn post_message_with_response_limits(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
        limits: StreamableHttpResponseLimits,
    ) -> Outcome<StreamableHttpPostResponse> {
        // Of a list less is read than an answer may have.
        let limits = if is_list(&message) {
            let (mut limits, most) = (limits, MAX_PAGE);
            limits.max_json_response_size = limits.max_json_response_size.min(most);
            limits.max_sse_event_size = limits.max_sse_event_size.min(most);
            limits
        } else {
            limits
        };
        let client = &self.client;
        let sent =
            client.post_message_with_response_limits(uri, message, session_id, auth_header, custom_headers, limits);
        let answer = sent.await?;
        let session = match &answer {
            StreamableHttpPostResponse::Json(_, session) | StreamableHttpPostResponse::Sse(_, session) => session,
            _ => &None,
        };
        if session.is_some() {
            self.stage.send_if_modified(|stage| {
                let begins = *stage == Stage::NotWanted;
                *stage = if begins { Stage::Asked } else { *stage };
                begins
            });
        }
        Ok(answer)
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Outcome<()> {
        self.client.delete_session(uri, session_id, auth_header, custom_headers).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Outcome<BoxStream<'static, Result<Sse, SseError>>> {
        self.client.get_stream(uri, session_id, last_event_id, auth_header, custom_headers).await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
        most: usize,
    ) -> Outcome<BoxStream<'static, Result<Sse, SseError>>> {
        let client = &self.client;
        let opened = client.get_stream_with_max_sse_event_size(
            uri,
            session_id,
            last_event_id,
            auth_header,
            custom_headers,
            most,
        );
        let opened = opened.await;
        self.stage.send_replace(Stage::Answered);
        opened
    }
}
