//! The tool `update_plan`: it replaces the model's plan.

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use call::arguments::{self, object};
use call::{Context, FormRequest, Output, Prepared, Tool};
use context::roles::PLAN;
use context::skills::text::one_line;
use door::answer_of;
use permissions::Touch;
use protocol::call_info::{CallInfo, CallKind};
use protocol::error::{Code, Error, Result};
use protocol::event::{Fact, Mode, PlanItem, PlanUpdated, Preview, Question, SettingsChanged, StepStatus};
use protocol::tool_spec::ToolSpec;

pub(super) struct UpdatePlan;

#[derive(Deserialize)]
struct Args {
    items: Vec<Step>,
    #[serde(default)]
    ready: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    step: String,
    status: StepStatus,
}

impl Tool for UpdatePlan {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "update_plan".into(),
            description: "Show the user your plan for work of several steps. Send the whole list each time; at most one step is in_progress.".into(),
            parameters: object(
                json!({
                    "items": { "type": "array", "items": {
                        "type": "object",
                        "properties": {
                            "step": { "type": "string" },
                            "status": { "type": "string", "enum": ["pending", "in_progress", "completed"] },
                        },
                        "required": ["step", "status"],
                    } },
                    "ready": { "type": "boolean", "description": "In the role plan: the plan is whole, and the user decides on it" },
                }),
                &["items"],
            ),
            reads_only: true,
            streams: "reads nothing from stdin; prints the progress of the plan".into(),
        }
    }

    fn describe(&self, args: &Value, _ctx: &Context) -> CallInfo {
        let steps = args["items"].as_array().map_or(0, Vec::len);
        CallInfo::new(CallKind::Plan, "plan", if steps == 1 { "1 step".to_owned() } else { format!("{steps} steps") })
    }

    fn prepare(&self, args: Value, ctx: &Context) -> Result<Prepared> {
        let Args { items, ready } = arguments::parse(args)?;
        let items = items.into_iter().map(|Step { step, status }| PlanItem { step, status });
        let items: Vec<PlanItem> = items.collect();
        let steps = numbered(&items);
        let (told, fact) = checked(items)?;
        // Only the role that plans ends with the user's answer; what another role takes away stays.
        let asks = ready && ctx.role.as_deref() == Some(PLAN) && ctx.forms.is_some();
        let preview = Preview { would: "plan".into(), target: told.clone(), ..Preview::default() };
        Ok(Prepared::new(preview, Touch::Note, move |ctx| async move {
            let mut facts = vec![fact];
            if !asks {
                return Ok(Output { facts, ..Output::text(&ctx, &told) });
            }
            let (said, change) = agreed(&ctx, &steps).await?;
            facts.extend(change.map(Fact::from));
            Ok(Output { facts, ..Output::text(&ctx, &format!("{told}\n{said}\n")) })
        }))
    }

    fn run_command(&self) -> Option<&'static str> {
        Some("plan")
    }

    fn example(&self) -> Value {
        json!({ "items": [{ "step": "look", "status": "pending" }] })
    }
}

/// The question about a plan that is whole.
const START: &str = "Start with this plan?";
/// Its answers. Other words of the user are what the plan should be changed to.
const ANSWERS: [&str; 4] = [
    "start; what changes something is asked",
    "start in auto; nothing is asked in the workspace",
    "I change the plan myself",
    "go on planning",
];

/// The steps as the user reads them above the question. The plan itself is recorded when the call ends.
fn numbered(items: &[PlanItem]) -> String {
    let steps = items.iter().enumerate();
    steps.map(|(at, item)| format!("{}. {}\n", at + 1, one_line(&item.step, usize::MAX))).collect()
}

/// Asks the user about the plan. Returns what the model reads, and how the Session goes on.
async fn agreed(ctx: &Context, steps: &str) -> Result<(String, Option<SettingsChanged>)> {
    let closed = || {
        let message = "the question about the plan was closed before the user answered";
        Error::new(Code::InputRequired, message, "wait for the user's next message")
    };
    let forms = ctx.forms.clone().ok_or_else(closed)?;
    let (reply, answer) = oneshot::channel();
    let question = Question {
        question: format!("{steps}\n{START}"),
        options: ANSWERS.map(str::to_owned).to_vec(),
        multiple: false,
        only_options: false,
    };
    forms.send(FormRequest { questions: vec![question], reply }).await.map_err(|_| closed())?;
    let answers = answer_of(answer, forms.closed()).await.ok_or_else(closed)?.unwrap_or_default();
    let said = answers.into_iter().next().unwrap_or_default().join(", ");
    let leave = |mode| SettingsChanged { mode: Some(mode), role: Some(String::new()), ..SettingsChanged::default() };
    let [ask, auto, edit, go_on] = ANSWERS;
    Ok(match said.as_str() {
        it if it == ask => (
            "the user agrees: carry the plan out; the user is asked before each call that changes something".to_owned(),
            Some(leave(Mode::Ask)),
        ),
        it if it == auto => ("the user agrees: carry the plan out".to_owned(), Some(leave(Mode::Auto))),
        it if it == edit => ("the user changes the plan: end your turn and wait for the message".to_owned(), None),
        it if it == go_on || it.is_empty() => ("the user has not agreed: go on planning".to_owned(), None),
        words => (format!("the user has not agreed, and says: {words}\nchange the plan so, and ask again"), None),
    })
}

/// One step as the model writes it in JSON.
///
/// # Errors
/// A field is missing, unknown or of another type.
pub fn item(value: Value) -> serde_json::Result<PlanItem> {
    let Step { step, status } = serde_json::from_value(value)?;
    Ok(PlanItem { step, status })
}

/// Checks a plan; returns a sentence about its progress and the Fact to record.
///
/// # Errors
/// `INVALID_ARGS` when more than one step is in progress.
pub fn checked(items: Vec<PlanItem>) -> Result<(String, Fact)> {
    let count = |status| items.iter().filter(|item| item.status == status).count();
    if count(StepStatus::InProgress) > 1 {
        return Err(Error::new(
            Code::InvalidArgs,
            "more than one step is in_progress",
            "set one step to in_progress, and the others to pending or completed",
        ));
    }
    let told = format!("{} of {} steps completed", count(StepStatus::Completed), items.len());
    Ok((told, PlanUpdated { items }.into()))
}
