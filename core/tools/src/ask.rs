//! The tool `ask_user`: it opens a form for the user. The call fails if no Presenter can show the form.

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use call::arguments::{self, object};
use call::{Context, FormRequest, Output, Prepared, Tool};
use door::answer_of;
use permissions::Touch;
use protocol::call_info::{CallInfo, CallKind};
use protocol::error::{Code, Error, Result};
use protocol::event::{Preview, Question};
use protocol::tool_spec::ToolSpec;

/// The most questions of one form.
const MOST: usize = 5;

pub(super) struct AskUser;

#[derive(Deserialize)]
struct Args {
    questions: Vec<Question>,
}

impl Tool for AskUser {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "ask_user".into(),
            description: "Ask the user what only the user can decide. The user can always answer in other words than the options.".into(),
            parameters: object(
                json!({ "questions": { "type": "array", "minItems": 1, "maxItems": MOST, "items": {
                    "type": "object",
                    "properties": {
                        "question": { "type": "string" },
                        "options": { "type": "array", "maxItems": 9, "items": { "type": "string" }, "description": "Answers to choose from" },
                        "multiple": { "type": "boolean", "description": "Whether the user may choose several" },
                    },
                    "required": ["question"],
                } } }),
                &["questions"],
            ),
            reads_only: false,
            streams: "reads nothing from stdin; prints each question with its answer".into(),
        }
    }

    fn spec_unattended(&self, _spec: &ToolSpec) -> Option<ToolSpec> {
        None
    }

    fn describe(&self, args: &Value, _ctx: &Context) -> CallInfo {
        let questions = args["questions"].as_array().into_iter().flatten().filter_map(|it| it["question"].as_str());
        CallInfo::new(CallKind::Ask, "ask", questions.collect::<Vec<_>>().join(" · "))
    }

    fn prepare(&self, args: Value, ctx: &Context) -> Result<Prepared> {
        let Args { questions } = arguments::parse(args)?;
        asking(questions, ctx)
    }

    fn run_command(&self) -> Option<&'static str> {
        Some("ask")
    }
}

/// Prepares a call that asks these questions.
///
/// # Errors
/// `INPUT_REQUIRED` when no user can answer; `INVALID_ARGS` for an empty question.
fn asking(questions: Vec<Question>, ctx: &Context) -> Result<Prepared> {
    if questions.iter().any(|it| it.question.trim().is_empty()) {
        return Err(Error::new(Code::InvalidArgs, "a question is empty", "write the question"));
    }
    if ctx.forms.is_none() {
        return Err(Error::new(
            Code::InputRequired,
            "no user is available to answer",
            "your own decision, with your assumptions stated",
        ));
    }
    let target = questions.iter().map(|it| it.question.as_str()).collect::<Vec<_>>().join(" · ");
    let preview = Preview { would: "ask".into(), target, ..Preview::default() };
    Ok(Prepared::new(preview, Touch::Note, move |ctx| async move {
        let gone = || {
            Error::new(
                Code::InputRequired,
                "the form was closed before the user answered",
                "your own decision, with your assumptions stated",
            )
        };
        let forms = ctx.forms.clone().ok_or_else(gone)?;
        let (reply, answer) = oneshot::channel();
        forms.send(FormRequest { questions: questions.clone(), reply }).await.map_err(|_| gone())?;
        let Some(answers) = answer_of(answer, forms.closed()).await.ok_or_else(gone)? else {
            return Ok(Output {
                exit: 1,
                ..Output::text(&ctx, "the user did not answer; decide yourself and continue\n")
            });
        };
        let mut text = String::new();
        for (i, question) in questions.iter().enumerate() {
            let answer = answers.get(i).filter(|all| !all.is_empty());
            let answer = answer.map_or("(no answer)".to_owned(), |all| all.join(", "));
            text.push_str(&format!("{}\n→ {answer}\n", question.question));
        }
        Ok(Output::text(&ctx, &text))
    }))
}
