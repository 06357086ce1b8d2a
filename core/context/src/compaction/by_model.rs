//! Asks a model for the summary of a compaction.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::{BY_MODEL, Plan, summary, tokens_of};
use crate::prompt;
use conversation::history::{History, Item};
use conversation::scale::Scale;
use protocol::error::{Code, Error, Result};
use protocol::event::{Entry, HistoryCompaction, Notes, ProviderUsage, Usage};
use protocol::tool_spec::ToolSpec;
use provider::{Chunk, Failure, Provider, Request};
use storage::blobs::Blobs;

/// What a request adds for the summary, and an answer may need, tokens.
const ASIDE: u64 = 2_500;
/// The tokens of a long answer.
const MOST_ANSWERED: u64 = 2_000;
/// The most of one note, characters.
const MAX_NOTE: usize = 4_000;
/// The most notes of each kind.
const MAX_NOTES: usize = 60;

/// What the notes of a compaction are for.
const OF_COMPACTION: &str = "\
The conversation above is about to be replaced by notes, because it is too long. Write the notes that you need to \
continue the work without it.";

/// What the notes of a branch are for.
const OF_BRANCH: &str = "\
The user goes back to before this part of the conversation and takes another way from there. Write the notes that are \
worth having on that way: what you tried, what worked, what did not work and why, and what the user decided.";

/// The object that is asked for. The request names the tools, because some servers require this when the conversation
/// contains calls; pixir runs no call of the answer.
const AS_JSON: &str = "Answer with one JSON object and nothing else, and call no tools:
{\"goal\": \"what the user wants, in full\",
 \"state\": \"how far the work is: what is done, what you answered\",
 \"decisions\": [\"each with its reason\"],
 \"findings\": [\"each fact that you found out or the user told you, and that you may need again, with its names, numbers and paths as they are\"],
 \"files\": [\"path: what matters about it\"],
 \"commands\": [\"commands that matter, and what they showed\"],
 \"open_tasks\": [\"what is left to do\"],
 \"next_step\": \"the next thing to do; empty if nothing is left\",
 \"pitfalls\": [\"what did not work, and what is easily done wrong\"]}
`goal` and `state` are texts, `next_step` is a text, the others are lists of texts and may be empty. \
Write at most 1,200 words. Keep apart what the user said and what you said.";

/// Who writes the summary of a compaction.
pub enum Summary {
    /// pixir has written it.
    Made(Box<HistoryCompaction>),
    /// The model is to be asked.
    Asked(Box<SummaryRequest>),
}

/// Who hears the parts of an answer.
type Hear<'a> = dyn FnMut(Chunk) + Send + 'a;

/// A request for notes on a part of a conversation.
pub struct NotesRequest {
    provider: Arc<dyn Provider>,
    request: Request,
    scale: Scale,
}

/// Where the request for notes goes, and what it repeats of every request.
pub struct Author<'a> {
    pub provider: Arc<dyn Provider>,
    pub history: &'a History,
    /// How the Provider counts.
    pub scale: Scale,
    pub tools: Arc<[ToolSpec]>,
    pub blobs: &'a Blobs,
    pub cache_key: &'a str,
}

impl NotesRequest {
    /// The request for notes on what the user leaves, which are for the conversation at the branch that goes on.
    pub fn of_branch(author: Author<'_>, left: Vec<Arc<Entry>>) -> NotesRequest {
        NotesRequest::new(author, left, &format!("{OF_BRANCH} {AS_JSON}"))
    }

    fn new(author: Author<'_>, about: impl IntoIterator<Item = Arc<Entry>>, ask: &str) -> NotesRequest {
        let Author { provider, history, scale, tools, blobs, cache_key } = author;
        let mut items = history.fold_with_marks(about).items();
        items.push(Item::user(ask.to_owned()));
        let request = Request { items, ..prompt::request(history, tools, blobs, cache_key) };
        NotesRequest { provider, request, scale }
    }

    /// Expected tokens of the request and its answer.
    pub fn tokens(&self) -> u64 {
        self.scale.count(self.request.estimated_tokens()) + ASIDE
    }

    /// The model that is asked.
    pub fn model(&self) -> &str {
        &self.request.model
    }

    fn fits(&self) -> bool {
        let window = self.provider.facts(&self.request.model).window;
        window.is_none_or(|window| self.tokens() <= window)
    }

    /// Asks the model, and hands on the parts of its answer as they arrive. Returns the notes, and what the request used.
    /// The error is the Provider's, or `INVALID_RESPONSE` for an answer that is not as asked.
    pub async fn ask(&self, hear: &mut Hear<'_>) -> (Result<Notes>, Option<ProviderUsage>) {
        let answer = match self.provider.answer(&self.request, &mut |chunk| hear(chunk)).await {
            Ok(answer) => answer,
            Err(Failure { error, .. }) => return (Err(error), None),
        };
        let usage = answer.usage.map(|usage| ProviderUsage {
            provider: self.request.provider.clone(),
            model: self.request.model.clone(),
            usage,
            estimated: answer.usage_estimated,
            cost: self.provider.facts(&self.request.model).cost(&usage, answer.usd),
        });
        (parse(&answer.text()), usage)
    }
}

/// A compaction that waits for the model's summary.
pub struct SummaryRequest {
    plan: Plan,
    notes: NotesRequest,
}

impl SummaryRequest {
    /// The request for this plan, or the compaction without a model if the part that it replaces does not fit into one
    /// request.
    pub fn of(author: Author<'_>, mut plan: Plan, instructions: Option<&str>) -> Summary {
        let mut ask = format!("{OF_COMPACTION} {AS_JSON}");
        if let Some(focus) = instructions {
            ask.push_str(&format!("\nThe user asks you to mind this in the notes: {focus}"));
        }
        let notes = NotesRequest::new(author, plan.about.iter().cloned(), &ask);
        if !notes.fits() {
            plan.compaction.limitations.push("the replaced part is too long for the model to read at once".into());
            return Summary::Made(Box::new(plan.compaction));
        }
        Summary::Asked(Box::new(SummaryRequest { plan, notes }))
    }

    /// The model that is asked.
    pub fn model(&self) -> &str {
        self.notes.model()
    }

    /// Asks the model. Returns the compaction with its summary, and what the request used.
    pub async fn ask(&self, hear: &mut Hear<'_>) -> (Result<HistoryCompaction>, Option<ProviderUsage>) {
        let (notes, usage) = self.notes.ask(hear).await;
        (notes.map(|notes| self.with(notes)), usage)
    }

    /// What the request costs at most, in US dollars, where the price is known.
    pub fn usd(&self) -> Option<f64> {
        let output = MOST_ANSWERED;
        let usage = Usage { input: self.notes.tokens().saturating_sub(ASIDE), output, ..Usage::default() };
        let cost = self.notes.provider.facts(self.model()).cost(&usage, None);
        (cost.unpriced == 0).then_some(cost.usd)
    }

    fn with(&self, notes: Notes) -> HistoryCompaction {
        let Plan { compaction, digest, room, kept, .. } = &self.plan;
        let made = summary::with_notes(digest, &notes, room.summary());
        HistoryCompaction {
            strategy: BY_MODEL.into(),
            tokens_after: kept + tokens_of(&made.text, room.scale),
            summary: made.text,
            turns: made.turns,
            turns_left_out: made.left_out,
            limitations: made.limitations,
            notes: Some(Box::new(notes)),
            model: Some(self.notes.model().to_owned()),
            ..compaction.clone()
        }
    }

    /// The compaction without the model, which could not write the summary.
    pub fn without_model(self, error: &Error) -> HistoryCompaction {
        let mut compaction = self.plan.compaction;
        compaction.limitations.insert(0, format!("the model could not write the summary: {}", error.message));
        compaction
    }
}

/// Reads the object in an answer, which may have text or a code fence around it.
fn parse(answer: &str) -> Result<Notes> {
    let invalid = |why: &str| {
        Error::new(Code::InvalidResponse, format!("the model's summary is not as asked: {why}"), "try again")
    };
    let object = answer.find('{').zip(answer.rfind('}')).filter(|(from, to)| from < to);
    let (from, to) = object.ok_or_else(|| invalid("it has no JSON object"))?;
    let fields: Map<String, Value> =
        serde_json::from_str(&answer[from..=to]).map_err(|e| invalid(&format!("not a JSON object: {e}")))?;
    let list = |name: &str| match fields.get(name) {
        Some(Value::Array(all)) => all.iter().filter_map(note).take(MAX_NOTES).collect(),
        Some(one) => note(one).into_iter().collect(),
        None => Vec::new(),
    };
    let text = |name: &str| list(name).join("\n");
    let notes = Notes {
        goal: text("goal"),
        state: text("state"),
        decisions: list("decisions"),
        findings: list("findings"),
        files: list("files"),
        commands: list("commands"),
        open_tasks: list("open_tasks"),
        next_step: text("next_step"),
        pitfalls: list("pitfalls"),
    };
    if notes.goal.is_empty() || notes.state.is_empty() {
        return Err(invalid("`goal` or `state` is missing"));
    }
    Ok(notes)
}

/// One note as text. Models write objects where a text is asked for, as `{"path": …, "what": …}`.
fn note(value: &Value) -> Option<String> {
    let text = match value {
        Value::Null => return None,
        Value::String(text) => text.trim().to_owned(),
        Value::Object(fields) => fields.values().filter_map(note).collect::<Vec<_>>().join(": "),
        Value::Array(all) => all.iter().filter_map(note).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    };
    (!text.is_empty()).then(|| text.chars().take(MAX_NOTE).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_with_a_fence_or_objects_around_its_texts() {
        let notes = parse(
            "Here:\n```json\n{\"goal\": \"fix it\", \"state\": [\"half\", \"done\"], \"files\": [{\"path\": \"a.rs\", \
             \"what\": \"the parser\"}], \"findings\": \"port 81\", \"next_step\": null, \"other\": 1}\n```",
        )
        .expect("it is as asked");
        assert_eq!((notes.goal.as_str(), notes.state.as_str()), ("fix it", "half\ndone"));
        assert_eq!(notes.files, ["a.rs: the parser"]);
        assert_eq!(notes.findings, ["port 81"]);
        assert!(notes.next_step.is_empty());
    }

    #[test]
    fn an_answer_without_a_goal_or_an_object_is_refused() {
        for answer in ["", "Sure!", "{\"goal\": \"x\"}", "{\"goal\": \"\", \"state\": \"y\"}", "} {", "[1]"] {
            let error = parse(answer).expect_err(answer);
            assert_eq!(error.code, Code::InvalidResponse, "{answer}");
        }
    }
}
