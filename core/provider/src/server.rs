//! A Provider that speaks a dialect to an endpoint; most Providers are one.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use futures_util::{StreamExt as _, TryStreamExt as _};
use parking_lot::Mutex;
use serde_json::Value;

use super::endpoint::{Body, Endpoint};
use super::listing::{Listed, Loaded};
use super::models::{ModelInfo, Thinking};
use super::preset::Quirks;
use super::refusal::Parameter;
use super::retry::Patience;
use super::starting::IS_STARTING;
use super::stream::hear;
use super::window::WINDOW;
use super::{Answer, Chunk, Failure, Provider, Request, RequestBody};
use config::ModelConfig;
use config::credentials::Credential;
use futures_util::future::BoxFuture;
use protocol::error::{Code, Error};
use protocol::event::Usage;

/// The window of an unknown model at a server nearby that does not name it, tokens.
const UNKNOWN_WINDOW: u64 = 8_192;
/// The same for any other server that is not known: a gateway, or a cloud with names of its own for models.
const FOREIGN_WINDOW: u64 = 128_000;
/// The largest window of a known model at a server of the user that does not name it, tokens.
const KNOWN_WINDOW: u64 = 128_000;

/// A server that runs models.
#[derive(Debug)]
pub(super) struct Server {
    endpoint: Endpoint,
    quirks: Quirks,
    /// Model settings of the user, by the server's model names.
    configured: Vec<(String, ModelConfig)>,
    /// Windows that the server itself reported, tokens.
    windows: Mutex<HashMap<String, u64>>,
    /// The server has already listed its models.
    has_learnt: AtomicBool,
    /// Models whose window the server was asked for.
    asked: Mutex<HashSet<String>>,
    /// The server rejects requests for reasoning summaries, often only for this account.
    without_summaries: AtomicBool,
    /// How many features requests have gone without since, because the server rejected them.
    rejections: AtomicU64,
    /// The server rejects reasoning from earlier answers.
    takes_no_reasoning: AtomicBool,
    /// Models that rejected images.
    blind: Mutex<HashSet<String>>,
    /// Models that take no tools, as the server says.
    without_tools: Mutex<HashSet<String>>,
    /// Parameters that models refused.
    left_out: Mutex<HashSet<(String, Parameter)>>,
    /// What the user has not been told of them.
    notices: Mutex<Vec<String>>,
}

impl Server {
    pub(super) fn new(endpoint: Endpoint, quirks: Quirks, configured: Vec<(String, ModelConfig)>) -> Server {
        Server {
            endpoint,
            configured,
            windows: Mutex::default(),
            has_learnt: AtomicBool::new(false),
            asked: Mutex::default(),
            without_summaries: AtomicBool::new(!quirks.reasoning_summaries),
            rejections: AtomicU64::new(0),
            takes_no_reasoning: AtomicBool::new(!quirks.gives_reasoning_back),
            blind: Mutex::default(),
            without_tools: Mutex::default(),
            left_out: Mutex::default(),
            notices: Mutex::default(),
            quirks,
        }
    }

    /// Makes the HTTP client beside everything else: where it needs the certificates of the machine, reading them takes
    /// longer than the rest of the start.
    pub(super) fn prepare_client(&self) {
        if !self.endpoint.is_local() {
            let endpoint = self.endpoint.clone();
            task::spawn_blocking(move || endpoint.prepare_client());
        }
    }

    /// Learns the window of a model, unless the user has configured it. Only the user's own server is asked, because it may
    /// run with a smaller window than the model supports, and once for each model, because a server that does not answer
    /// would delay every Turn. Returns what a server says that still starts; it can be asked again.
    pub(super) async fn ask_for_window(&self, model: &str, within: Duration) -> Option<Error> {
        let configured = self.configured.iter().any(|(name, it)| name == model && it.window.is_some());
        if configured || !self.endpoint.is_own() || !self.asked.lock().insert(model.to_owned()) {
            return None;
        }
        if !self.has_learnt() {
            // A server that does not answer now reports its error with the first request.
            match self.endpoint.models(within).await {
                Ok(listed) => self.learn(&listed),
                Err(error) if error.code == Code::Network => return None,
                Err(error) if error.details.contains_key(IS_STARTING) => {
                    self.asked.lock().remove(model);
                    return Some(error);
                }
                Err(_) => {}
            }
        }
        let knows_window = self.windows.lock().contains_key(model);
        let Loaded { window, takes_tools } = self.endpoint.loaded(model, within).await;
        if let Some(window) = window.filter(|_| !knows_window) {
            self.windows.lock().insert(model.to_owned(), window);
        }
        if takes_tools == Some(false) {
            self.without_tools.lock().insert(model.to_owned());
        }
        None
    }

    /// Whether the server has listed its models already.
    pub(super) fn has_learnt(&self) -> bool {
        self.has_learnt.load(Ordering::Relaxed)
    }

    /// Remembers a rejected feature, if requests can do without it. Returns whether the request can be sent again
    /// without it.
    /// `known` is the value of `rejections` when the request was written.
    fn leave_out(&self, request: &Request, failure: &Failure, known: u64) -> bool {
        let (model, configured) = (&request.model, &failure.error.message);
        if failure.after_content {
            return false;
        }
        // Servers have no code for a rejected field, but their messages name it.
        let is_new = match failure.error.code {
            Code::VisionUnsupported => self.blind.lock().insert(model.to_owned()),
            Code::ReasoningRejected if configured.contains("reasoning_") => {
                !self.takes_no_reasoning.swap(true, Ordering::Relaxed)
            }
            _ if configured.contains("reasoning.summary") => !self.without_summaries.swap(true, Ordering::Relaxed),
            _ => match Parameter::of(&failure.error) {
                Some(it) => self.leave_out_parameter(request, it, configured),
                None => return false,
            },
        };
        if is_new {
            self.rejections.fetch_add(1, Ordering::Relaxed);
        }
        // The request of another agent may have been rejected for the same, while this one was on its way.
        is_new || self.rejections.load(Ordering::Relaxed) != known
    }

    /// Stops sending a refused parameter to this model. Returns whether the request had it.
    fn leave_out_parameter(&self, request: &Request, parameter: Parameter, said: &str) -> bool {
        let before = self.written(request);
        let model = request.model.clone();
        if !self.left_out.lock().insert((model.clone(), parameter)) {
            return false;
        }
        if self.written(request) == before {
            self.left_out.lock().remove(&(model, parameter));
            return false;
        }
        let said = self.endpoint.without_secrets(said);
        let name = parameter.name();
        self.notices
            .lock()
            .push(format!("{model} does not take `{name}`, so requests go without it from now on ({said})"));
        true
    }

    fn is_left_out(&self, model: &str, parameter: Parameter) -> bool {
        self.left_out.lock().contains(&(model.to_owned(), parameter))
    }

    /// Stores the windows that the server lists for its models.
    pub(super) fn learn(&self, listed: &[Listed]) {
        self.has_learnt.store(true, Ordering::Relaxed);
        let mut windows = self.windows.lock();
        windows.extend(listed.iter().filter_map(|it| Some((it.name.clone(), it.window?))));
    }

    /// Writes the body of a request, without the features that the server rejects.
    fn written(&self, request: &Request) -> Vec<u8> {
        self.endpoint.dialect().body(request, &self.facts(&request.model), &self.quirks_for(&request.model))
    }

    /// The quirks, with the features that the server has rejected so far.
    fn quirks_for(&self, model: &str) -> Quirks {
        let reasoning_summaries = !self.without_summaries.load(Ordering::Relaxed);
        let gives_reasoning_back = !self.takes_no_reasoning.load(Ordering::Relaxed);
        let cache_key = self.quirks.cache_key && !self.is_left_out(model, Parameter::CacheKey);
        let asks_for_usage = self.quirks.asks_for_usage && !self.is_left_out(model, Parameter::StreamOptions);
        Quirks { reasoning_summaries, gives_reasoning_back, cache_key, asks_for_usage, ..self.quirks }
    }

    async fn ask(&self, request: &Request, on_chunk: &mut (dyn FnMut(Chunk) + Send)) -> Result<Answer, Failure> {
        let dialect = self.endpoint.dialect();
        let Body { start, rest } =
            self.endpoint.post(dialect.path(), self.written(request).into(), &request.tools).await?;
        let start = futures_util::stream::once(std::future::ready(Ok(start)));
        let bytes = start.chain(rest.bytes_stream().map_err(|e| why(&e)));
        let mut arrived = 0;
        let mut count = |chunk: Chunk| {
            arrived += chunk.len();
            on_chunk(chunk);
        };
        let outcome = hear(dialect, bytes, self.endpoint.patience(), &mut count).await;
        let estimate =
            || Usage { input: request.estimated_tokens(), output: (arrived as u64).div_ceil(4), ..Usage::default() };
        match outcome {
            Ok(answer) if answer.usage.is_none() => {
                Ok(Answer { usage: Some(estimate()), usage_estimated: true, ..answer })
            }
            Err(failure) if failure.usage.is_none() && failure.after_content => {
                Err(Failure { usage: Some(estimate()), usage_estimated: true, ..failure })
            }
            outcome => outcome,
        }
    }

    /// Learns the window that the server names when it rejects a request as too long.
    fn learn_from(&self, model: &str, failure: &Failure) {
        if failure.error.code == Code::ContextOverflow
            && let Some(window) = failure.error.details.get(WINDOW).and_then(Value::as_u64)
        {
            self.windows.lock().insert(model.to_owned(), window);
        }
    }
}

impl Provider for Server {
    fn facts(&self, model: &str) -> ModelInfo {
        let configured = self.configured.iter().find(|(name, _)| name == model).map(|(_, configured)| configured);
        let mut facts = ModelInfo::of(model, self.endpoint.host(), configured);
        facts.sees_images &= !self.blind.lock().contains(model);
        facts.takes_tools &= !self.without_tools.lock().contains(model);
        facts.takes_effort &= !self.is_left_out(model, Parameter::Effort);
        facts.takes_temperature &= !self.is_left_out(model, Parameter::Temperature);
        if self.is_left_out(model, Parameter::Thinking) {
            facts.thinking = Thinking::Never;
        }
        // The user's setting comes first, then the server's: it may run with a smaller window than the model supports.
        if configured.is_none_or(|configured| configured.window.is_none()) {
            let learnt = self.windows.lock().get(model).copied();
            facts.window = match (learnt, facts.window) {
                (Some(window), _) => Some(window),
                (None, _) if self.quirks.hides_window => None,
                // A server nearby rarely has the memory for the longest window.
                (None, Some(known)) if self.endpoint.is_nearby() => Some(known.min(KNOWN_WINDOW)),
                (None, known) => known,
            };
            let assumed = if self.endpoint.is_nearby() { UNKNOWN_WINDOW } else { FOREIGN_WINDOW };
            facts.assumed_window = Some(assumed).filter(|_| facts.window.is_none() && self.endpoint.is_own());
        }
        facts
    }

    fn key_number(&self) -> u64 {
        self.endpoint.credential().map_or(0, Credential::number)
    }

    fn patience(&self) -> Patience {
        *self.endpoint.patience()
    }

    fn loads<'a>(&'a self, model: &'a str) -> BoxFuture<'a, Option<String>> {
        Box::pin(async move {
            if self.endpoint.is_local() { self.endpoint.loads(model, Duration::from_secs(1)).await } else { None }
        })
    }

    fn take_notices(&self) -> Vec<String> {
        std::mem::take(&mut *self.notices.lock())
    }

    fn body(&self, request: Request) -> RequestBody {
        let facts = self.facts(&request.model);
        let quirks = self.quirks_for(&request.model);
        RequestBody::sent(request, self.endpoint.dialect(), facts, quirks)
    }

    fn answer<'a>(
        &'a self,
        request: &'a Request,
        on_chunk: &'a mut (dyn FnMut(Chunk) + Send),
    ) -> BoxFuture<'a, Result<Answer, Failure>> {
        Box::pin(async move {
            let answer = loop {
                let known = self.rejections.load(Ordering::Relaxed);
                let asked = self.ask(request, on_chunk).await;
                if let Err(failure) = &asked {
                    self.learn_from(&request.model, failure);
                }
                match asked {
                    Err(failure) if self.leave_out(request, &failure, known) => {}
                    answer => break answer,
                }
            };
            answer.map_err(|failure| Failure { error: self.endpoint.redact(failure.error), ..failure })
        })
    }
}

/// Returns the innermost cause. It describes the failure; the outer errors only name the step that failed.
fn why(e: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = e;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}
