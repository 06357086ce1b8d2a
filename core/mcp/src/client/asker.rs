//! What a server asks the user: in the middle of a request, or before it answers one.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction, InputRequest, InputRequiredResult};
use serde_json::Value;

use super::Fault;
use crate::ask::{self, Ears};
use crate::secrets::Secrets;
use protocol::event::Question;
use text::clean::clean;

/// How a server asks the user.
pub(super) struct Asker {
    name: String,
    secrets: Secrets,
    pub(super) ears: Ears,
    /// How many questions are open.
    open: AtomicUsize,
}

/// Counts as an open question until it is dropped, with the call that asked too.
struct Open<'a>(&'a AtomicUsize);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Asker {
    pub(super) fn new(name: &str, secrets: &Secrets) -> Asker {
        Asker { name: name.to_owned(), secrets: secrets.clone(), ears: Ears::default(), open: AtomicUsize::new(0) }
    }

    /// Whether the server waits for the user.
    pub(super) fn waits(&self) -> bool {
        self.open.load(Ordering::SeqCst) > 0
    }

    /// Asks the user, and answers as the server wants it. A question that the user does not answer is declined.
    pub(super) async fn ask(&self, request: ElicitRequestParams) -> ElicitResult {
        self.open.fetch_add(1, Ordering::SeqCst);
        let _open = Open(&self.open);
        self.answer(request).await
    }

    async fn answer(&self, request: ElicitRequestParams) -> ElicitResult {
        match request {
            ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } => {
                let schema = serde_json::to_value(&requested_schema).unwrap_or_default();
                let shown = self.secrets.masked_json(&schema);
                let Some(questions) = ask::questions(&self.name, &self.secrets.masked(&message), &shown) else {
                    return ElicitResult::new(ElicitationAction::Decline);
                };
                match self.ears.ask(questions).await.and_then(|answers| ask::content(&schema, &answers)) {
                    Some(content) => ElicitResult::new(ElicitationAction::Accept).with_content(content),
                    None => ElicitResult::new(ElicitationAction::Decline),
                }
            }
            // The page is for the user; pixir does not open it.
            ElicitRequestParams::UrlElicitationParams { message, url, .. } => {
                let question = format!("{} asks: {message}\nOpen this page in a browser: {url}", self.name);
                let question = self.secrets.masked(&question);
                let options = vec!["I have opened it".to_owned(), "No".to_owned()];
                let question =
                    Question { question: clean(&question).into_owned(), options, only_options: true, multiple: false };
                let answers = self.ears.ask(vec![question]).await.unwrap_or_default();
                let is_open = answers.first().and_then(|it| it.first()).is_some_and(|it| it != "No");
                ElicitResult::new(if is_open { ElicitationAction::Accept } else { ElicitationAction::Decline })
            }
            _ => ElicitResult::new(ElicitationAction::Decline),
        }
    }

    /// Answers what a server asks before it answers a request, by its own names.
    pub(super) async fn inputs(&self, asked: InputRequiredResult) -> Result<Inputs, Fault> {
        let requests = asked.input_requests.unwrap_or_default();
        if requests.is_empty() && asked.request_state.is_none() {
            return Err(Fault::Odd("it asks for nothing and answers nothing".to_owned()));
        }
        let mut responses = BTreeMap::new();
        for (key, request) in requests {
            let InputRequest::Elicitation(request) = request else {
                return Err(Fault::Odd("it asks for what pixir has not offered".to_owned()));
            };
            let answer = serde_json::to_value(self.ask(request.params).await).unwrap_or_default();
            responses.insert(key, answer);
        }
        Ok(Inputs { responses: Some(responses).filter(|it| !it.is_empty()), state: asked.request_state })
    }
}

/// What the user answered, for the next round of a request.
#[derive(Default)]
pub(super) struct Inputs {
    pub(super) responses: Option<BTreeMap<String, Value>>,
    pub(super) state: Option<String>,
}

/// One answer of a server to a request.
pub(super) enum Round<T> {
    Done(T),
    Asks(InputRequiredResult),
}
