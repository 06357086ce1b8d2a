//! What a server asks the user: in the middle of a request, or before it answers one.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde::Deserialize;
use serde_json::{Map, Value, json};

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

/// What `elicitation/create` asks for.
#[derive(Deserialize)]
#[serde(tag = "mode", rename_all = "lowercase")]
enum Elicitation {
    /// Answers to a few questions.
    #[serde(rename_all = "camelCase")]
    Form { message: String, requested_schema: Value },
    /// A visit of a page.
    Url { message: String, url: String },
}

impl Elicitation {
    fn read(mut params: Value) -> Option<Elicitation> {
        // Forms came first, and without a mode.
        params.as_object_mut()?.entry("mode").or_insert_with(|| "form".into());
        serde_json::from_value(params).ok()
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

    /// Asks the user, and answers as the server wants it. A question that the user does not answer is declined. `None` where
    /// the server asks for nothing that pixir knows.
    pub(super) async fn ask(&self, params: Value) -> Option<Value> {
        let asked = Elicitation::read(params)?;
        self.open.fetch_add(1, Ordering::SeqCst);
        let _open = Open(&self.open);
        let decline = json!({ "action": "decline" });
        Some(match asked {
            Elicitation::Form { message, requested_schema } => {
                let content = self.filled(&message, &requested_schema).await;
                content.map_or(decline, |content| json!({ "action": "accept", "content": content }))
            }
            Elicitation::Url { message, url } => {
                if self.is_opened(&message, &url).await {
                    json!({ "action": "accept" })
                } else {
                    decline
                }
            }
        })
    }

    async fn filled(&self, message: &str, schema: &Value) -> Option<Value> {
        let shown = self.secrets.masked_json(schema);
        let questions = ask::questions(&self.name, &self.secrets.masked(message), &shown)?;
        let answers = self.ears.ask(questions).await?;
        ask::content(schema, &answers)
    }

    /// The page is for the user; pixir does not open it.
    async fn is_opened(&self, message: &str, url: &str) -> bool {
        let question = format!("{} asks: {message}\nOpen this page in a browser: {url}", self.name);
        let question = self.secrets.masked(&question);
        let options = vec!["I have opened it".to_owned(), "No".to_owned()];
        let question =
            Question { question: clean(&question).into_owned(), options, only_options: true, multiple: false };
        let answers = self.ears.ask(vec![question]).await.unwrap_or_default();
        answers.first().and_then(|it| it.first()).is_some_and(|it| it != "No")
    }

    /// Answers what a server asks before it answers a request, by its own names.
    pub(super) async fn inputs(&self, asked: InputRequired) -> Result<Inputs, Fault> {
        let requests = asked.input_requests.unwrap_or_default();
        if requests.is_empty() && asked.request_state.is_none() {
            return Err(Fault::Odd("it asks for nothing and answers nothing".to_owned()));
        }
        let mut inputs = Inputs { responses: Map::new(), state: asked.request_state };
        for (key, mut request) in requests {
            let is_question = request["method"] == "elicitation/create";
            let params = request.get_mut("params").map(Value::take).unwrap_or_default();
            let answer = if is_question { self.ask(params).await } else { None };
            let Some(answer) = answer else {
                return Err(Fault::Odd("it asks for what pixir has not offered".to_owned()));
            };
            inputs.responses.insert(key, answer);
        }
        Ok(inputs)
    }
}

/// The result of a request that the server answers when the user has answered.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct InputRequired {
    input_requests: Option<Map<String, Value>>,
    request_state: Option<String>,
}

/// What the user answered, for the next round of a request.
#[derive(Default)]
pub(super) struct Inputs {
    responses: Map<String, Value>,
    state: Option<String>,
}

impl Inputs {
    /// Adds them to the parameters of the request.
    pub(super) fn add_to(self, params: &mut Map<String, Value>) {
        if !self.responses.is_empty() {
            params.insert("inputResponses".to_owned(), self.responses.into());
        }
        if let Some(state) = self.state {
            params.insert("requestState".to_owned(), state.into());
        }
    }
}
