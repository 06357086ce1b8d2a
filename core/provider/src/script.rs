//! A Provider whose answers come from a file, for tests, the demo and replays.

use parking_lot::Mutex;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::models::ModelInfo;
use super::{Answer, AnswerPart, CallRequest, Chunk, Ended, Failure, Provider, Request, args_object};
use config::{ModelConfig, PriceConfig};
use conversation::history::Piece;
use futures_util::future::BoxFuture;
use protocol::error::{Code, Error, ErrorBody, Result, nearest};
use protocol::event::Usage;
use protocol::remedy::{LoggedRemedy, Remedy};
use tokio::time::Instant;

mod pace; // the waits of a script, which a user can skip

pub use pace::Pace;

/// A script: one step for each request, retries included.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// Milliseconds between two words of an answer. 0, the default, sends the whole answer at once. Recorded steps
    /// ignore it.
    #[serde(default)]
    pub pace_ms: u64,
    /// The speed of recorded steps as a factor, from 0.001 to 1000000: 1, the default, is the original timing, 2 is
    /// twice as fast. 0 replays without delay.
    #[serde(default = "as_recorded")]
    pub speed: f64,
    /// The window of the model that the script plays, tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
    /// The prices of the model that the script plays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<PriceConfig>,
    /// The answers, one for each request, in order.
    pub steps: Vec<Step>,
}

impl Default for Script {
    fn default() -> Script {
        Script { pace_ms: 0, speed: as_recorded(), window: None, price: None, steps: Vec::new() }
    }
}

impl Script {
    /// The same script without any wait.
    #[must_use]
    pub fn without_waits(mut self) -> Script {
        self.pace_ms = 0;
        self.speed = 0.0;
        for step in &mut self.steps {
            step.delay_ms = 0;
        }
        self
    }
}

fn as_recorded() -> f64 {
    1.0
}

/// The answer to one request. `{{name}}` in `text`, `reasoning` and `args` is replaced by the text that
/// this step or an earlier one captured under that name.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// The step answers only conversations in which a user message contains this text, such as that of a child Session by
    /// its task. Such conversations get only steps that name them; others get only steps without `of`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// Text that the newest user message must contain; otherwise the request fails with `SCRIPT_MISMATCH`.
    #[serde(default)]
    pub when: Option<String>,
    /// Text that the newest tool result must contain; otherwise the request fails with `SCRIPT_MISMATCH`.
    #[serde(default)]
    pub after_result: Option<String>,
    /// Parts of the newest tool result to capture, by name. This step and later ones can insert them.
    #[serde(default)]
    pub capture: BTreeMap<String, Between>,
    /// Reasoning, streamed before the text.
    #[serde(default)]
    pub reasoning: String,
    /// The text of the answer, in Markdown.
    #[serde(default)]
    pub text: String,
    /// The calls of the answer, in order.
    #[serde(default)]
    pub calls: Vec<ScriptedCall>,
    /// The token usage to report.
    #[serde(default)]
    pub usage: Option<Usage>,
    /// Milliseconds before the first word; 0 by default.
    #[serde(default)]
    pub delay_ms: u64,
    /// The error that ends the request, after the step's reasoning and text.
    #[serde(default)]
    pub error: Option<ScriptedError>,
    /// Never end the answer after its text, until the Turn is interrupted.
    #[serde(default)]
    pub hang: bool,
    /// Report the answer as incomplete, with this reason: `max_output_tokens`, `content_filter`, `refusal`, …
    #[serde(default)]
    pub cut_short: Option<String>,
    /// A real Provider's answer, as `--record` writes it. Of the step's other fields, only `when`, `after_result` and
    /// `capture` still apply.
    #[serde(default)]
    pub recorded: Option<Recorded>,
}

/// A recorded answer or failure with its timing. Exactly one of `answer` and `failure` is present.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Recorded {
    /// The body of the request, without the messages that the previous request already contained. For the reader only:
    /// a replay does not compare it.
    #[serde(default)]
    pub sent: Value,
    /// The streamed parts of the answer, in order of arrival.
    #[serde(default)]
    pub chunks: Vec<RecordedChunk>,
    /// Milliseconds from the request to the end of the answer or the failure.
    #[serde(default)]
    pub took_ms: u64,
    /// The complete answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Answer>,
    /// The failure, if there was no complete answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<RecordedFailure>,
}

/// A streamed part of an answer, and when it arrived.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RecordedChunk {
    /// Milliseconds from the request to the arrival of this part.
    pub at_ms: u64,
    /// The part.
    #[serde(flatten)]
    pub chunk: Chunk,
}

/// Why a request returned no complete answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordedFailure {
    /// A code that `pixir schema` lists.
    pub code: String,
    /// What went wrong.
    pub message: String,
    /// What to do instead.
    pub remediation: String,
    /// The remedy as data, unless it is plain text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<Box<LoggedRemedy>>,
    /// Details for programs.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub details: Map<String, Value>,
    /// Part of the answer was already shown.
    #[serde(default)]
    pub after_content: bool,
    /// An event of the answer was malformed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub malformed: bool,
    /// The Provider's requested wait before the next attempt, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// Usage that the Provider reported before the failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// pixir estimated the usage, because the Provider reports none.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub usage_estimated: bool,
}

/// A part of a text, found by the text around it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Between {
    /// The text right before the part; its first occurrence counts.
    pub after: String,
    /// The text right after the part; empty, the default, means the end of the line. Without a match, the
    /// part extends to the end of the result.
    #[serde(default)]
    pub until: String,
}

/// A scripted call of a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScriptedCall {
    /// The tool's name.
    pub name: String,
    /// The arguments, a JSON object; empty by default.
    #[serde(default)]
    pub args: Value,
}

/// A scripted failure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScriptedError {
    /// A code that `pixir schema` lists.
    pub code: String,
    /// What went wrong.
    pub message: String,
}

/// Returns the JSON Schema of a script file.
pub fn schema() -> Value {
    schemars::schema_for!(Script).to_value()
}

/// A Provider that follows a [`Script`].
#[derive(Debug)]
pub struct Scripted {
    script: Script,
    state: Mutex<State>,
    pace: Arc<Pace>,
}

#[derive(Debug, Default)]
struct State {
    /// Which steps have answered.
    taken: Vec<bool>,
    captured: BTreeMap<String, String>,
}

impl Scripted {
    /// Creates a Provider at the start of this script.
    pub fn new(script: Script) -> Scripted {
        Scripted { script, state: Mutex::default(), pace: Arc::default() }
    }

    /// The waits of its answers.
    pub fn pace(&self) -> Arc<Pace> {
        Arc::clone(&self.pace)
    }

    /// Parses a script from its JSON text.
    ///
    /// # Errors
    /// `SCRIPT_INVALID`, with the line.
    pub fn parse(json: &str) -> Result<Script> {
        if !json.trim_start().starts_with('{') {
            let message = "the script is not a JSON object with `steps`";
            return Err(Error::new(Code::ScriptInvalid, message, Remedy::ShowScriptSchema));
        }
        let script: Script = serde_json::from_str(json).map_err(|e| {
            Error::new(Code::ScriptInvalid, format!("the script is invalid: {e}"), Remedy::ShowScriptSchema)
        })?;
        if !(script.speed == 0.0 || (0.001..=1e6).contains(&script.speed)) {
            let message = format!("the script's speed {} is out of range", script.speed);
            return Err(Error::new(
                Code::ScriptInvalid,
                message,
                "set it to a value from 0.001 to 1000000, or to 0 for no delay",
            ));
        }
        for (i, step) in script.steps.iter().enumerate() {
            let failure = step.recorded.as_ref().and_then(|it| it.failure.as_ref()).map(|it| &it.code);
            let named = step.error.as_ref().map(|it| &it.code).or(failure);
            if let Some(name) = named.filter(|name| Code::from_name(name).is_none()) {
                let message = format!("step {} of the script names an unknown code `{name}`", i + 1);
                let fix = match nearest(name, Code::ALL.iter().map(|code| code.name())) {
                    Some(near) => Remedy::nearest(near),
                    None => Remedy::ShowErrorCodes,
                };
                return Err(Error::new(Code::ScriptInvalid, message, fix));
            }
            if step.recorded.as_ref().is_some_and(|it| it.answer.is_some() == it.failure.is_some()) {
                let message = format!("step {} of the script must record either an answer or a failure", i + 1);
                return Err(Error::new(Code::ScriptInvalid, message, "give one of `answer` and `failure`"));
            }
        }
        Ok(script)
    }

    /// The conversation that the request belongs to, if steps name it.
    fn conversation(&self, request: &Request) -> Option<String> {
        let mut names: Vec<&str> = self.script.steps.iter().filter_map(|step| step.of.as_deref()).collect();
        names.dedup();
        let says = |name: &str| {
            request.items.iter().any(|item| matches!(item.piece(), Piece::User { text, .. } if text.contains(name)))
        };
        names.into_iter().find(|name| says(name)).map(str::to_owned)
    }

    /// Checks the next step against the request, and returns it with its placeholders filled in. A step that does not
    /// match is not consumed, so a retry meets the same step.
    fn take_step(&self, request: &Request) -> Result<(usize, Step)> {
        let mut state = self.state.lock();
        let of = self.conversation(request);
        state.taken.resize(self.script.steps.len(), false);
        let free = |(at, step): &(usize, &Step)| !state.taken[*at] && step.of == of;
        let next = self.script.steps.iter().enumerate().find(free).map(|(at, step)| (at, step.clone()));
        let (at, mut step) = next.ok_or_else(|| {
            let mine = self.script.steps.iter().filter(|step| step.of == of).count();
            let whose = of.as_ref().map_or(String::new(), |of| format!(" of `{of}`"));
            Error::new(
                Code::ScriptMismatch,
                format!("the script has only {mine} step{}{whose}", if mine == 1 { "" } else { "s" }),
                "add a step for each request, or send fewer messages",
            )
        })?;
        let user = newest(request, |piece| match piece {
            Piece::User { text, .. } | Piece::Note { text } => Some(text),
            _ => None,
        });
        let result =
            newest(request, |piece| if let Piece::Result { output, .. } = piece { Some(output) } else { None });
        let (user, result) = (user.as_ref(), result.as_ref());
        for (wanted, got, what) in [(&step.when, user, "user message"), (&step.after_result, result, "tool result")] {
            if let Some(wanted) = wanted
                && !got.contains(wanted.as_str())
            {
                let shown: String = got.chars().take(200).collect();
                return Err(Error::new(
                    Code::ScriptMismatch,
                    format!("step {} expects `{wanted}` in the newest {what}, which is `{shown}`", at + 1),
                    "correct the step, or send what the script expects",
                ));
            }
        }
        for (name, between) in &step.capture {
            let piece = result.split_once(&between.after).map(|(_, rest)| {
                let end = if between.until.is_empty() { "\n" } else { &between.until };
                rest.split(end).next().unwrap_or(rest)
            });
            let piece = piece.ok_or_else(|| {
                Error::new(
                    Code::ScriptMismatch,
                    format!("step {} expects `{}` in the newest tool result", at + 1, between.after),
                    "correct the step, or send what the script expects",
                )
            })?;
            state.captured.insert(name.clone(), piece.to_owned());
        }
        let fill = |text: &str| {
            state
                .captured
                .iter()
                .fold(text.to_owned(), |text, (name, value)| text.replace(&format!("{{{{{name}}}}}"), value))
        };
        step.text = fill(&step.text);
        step.reasoning = fill(&step.reasoning);
        for call in &mut step.calls {
            if call.args.is_null() {
                call.args = Value::Object(Map::new());
            }
            fill_value(&mut call.args, &fill);
        }
        state.taken[at] = true;
        Ok((at, step))
    }
}

fn newest<'a>(request: &'a Request, pick: impl Fn(Piece<'a>) -> Option<Cow<'a, str>>) -> Cow<'a, str> {
    request.items.iter().rev().find_map(|item| pick(item.piece())).unwrap_or_default()
}

fn fill_value(value: &mut Value, fill: &impl Fn(&str) -> String) {
    match value {
        Value::String(text) => *text = fill(text),
        Value::Array(items) => items.iter_mut().for_each(|item| fill_value(item, fill)),
        Value::Object(fields) => fields.values_mut().for_each(|field| fill_value(field, fill)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

impl Provider for Scripted {
    fn facts(&self, model: &str) -> ModelInfo {
        let Script { window, price, .. } = self.script;
        ModelInfo::of(model, "", Some(&ModelConfig { window, price, ..ModelConfig::default() }))
    }

    fn writes_summaries(&self) -> bool {
        false
    }

    fn answer<'a>(
        &'a self,
        request: &'a Request,
        on_chunk: &'a mut (dyn FnMut(Chunk) + Send),
    ) -> BoxFuture<'a, Result<Answer, Failure>> {
        Box::pin(async move {
            let (at, step) = self.take_step(request)?;
            if let Some(recorded) = step.recorded {
                return replay(recorded, self.script.speed, on_chunk).await;
            }
            self.pace.begin();
            self.pace.pause(step.delay_ms).await;
            for word in step.reasoning.split_inclusive(' ') {
                on_chunk(Chunk::Reasoning(word.to_owned()));
                self.pace.pause(self.script.pace_ms).await;
            }
            for word in step.text.split_inclusive([' ', '\n']) {
                on_chunk(Chunk::Text(word.to_owned()));
                self.pace.pause(self.script.pace_ms).await;
            }
            if step.hang {
                std::future::pending::<()>().await;
            }
            if let Some(error) = &step.error {
                let code = Code::from_name(&error.code).expect("checked when the script was read");
                let error = Error::new(code, error.message.clone(), "this failure is scripted");
                return Err(Failure { after_content: !step.text.is_empty(), ..Failure::from(error) });
            }
            let calls = step.calls.into_iter().enumerate().map(|(i, call)| CallRequest {
                id: format!("call_{}_{}", at + 1, i + 1),
                name: call.name,
                args: args_object(&call.args.to_string()),
            });
            let reasoning = Some(step.reasoning).filter(|it| !it.is_empty());
            let text = Some(step.text).filter(|it| !it.is_empty());
            let reasoning = reasoning.map(|text| AnswerPart::Reasoning { text, item: None });
            Ok(Answer {
                usage_estimated: false,
                parts: reasoning
                    .into_iter()
                    .chain(text.map(AnswerPart::text))
                    .chain(calls.map(AnswerPart::Call))
                    .collect(),
                usage: step.usage,
                usd: None,
                ended: step.cut_short.map_or(Ended::Whole, Ended::CutShort),
            })
        })
    }
}

/// Replays a recorded answer with its original timing.
async fn replay(
    recorded: Recorded,
    speed: f64,
    on_chunk: &mut (dyn FnMut(Chunk) + Send),
) -> std::result::Result<Answer, Failure> {
    let began = Instant::now();
    let until = |ms: u64| async move {
        if speed > 0.0 {
            tokio::time::sleep_until(began + Duration::from_millis(ms).div_f64(speed)).await;
        }
    };
    for RecordedChunk { at_ms, chunk } in recorded.chunks {
        until(at_ms).await;
        on_chunk(chunk);
    }
    until(recorded.took_ms).await;
    match (recorded.answer, recorded.failure) {
        (Some(answer), _) => Ok(answer),
        (None, Some(it)) => {
            let code = Code::from_name(&it.code).expect("checked when the script was read");
            let body = ErrorBody {
                kind: code.kind(),
                message: it.message,
                details: it.details,
                code: it.code,
                remediation: it.remediation,
                remedy: it.remedy,
            };
            let error = Error::from(body);
            let retry_after = it.retry_after_ms.map(Duration::from_millis);
            Err(Failure {
                error,
                after_content: it.after_content,
                malformed: it.malformed,
                retry_after,
                usage: it.usage,
                usage_estimated: it.usage_estimated,
            })
        }
        (None, None) => unreachable!("checked when the script was read"),
    }
}
