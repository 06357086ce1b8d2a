//! The tool `update_plan`: it replaces the model's plan.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::call::arguments::{self, object};
use crate::call::{Context, Output, Prepared, Tool};
use crate::permissions::Touch;
use crate::protocol::call_info::{CallInfo, CallKind};
use crate::protocol::error::{Code, Error, Result};
use crate::protocol::event::{Fact, PlanItem, PlanUpdated, Preview, StepStatus};
use crate::protocol::tool_spec::ToolSpec;

pub(super) struct UpdatePlan;

#[derive(Deserialize)]
struct Args {
    items: Vec<Step>,
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
            description:
                "Show your plan for work of several steps: the whole list each time, at most one step in_progress."
                    .into(),
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

    fn prepare(&self, args: Value, _ctx: &Context) -> Result<Prepared> {
        let Args { items } = arguments::parse(args)?;
        let items = items.into_iter().map(|Step { step, status }| PlanItem { step, status });
        let (told, fact) = checked(items.collect())?;
        let preview = Preview { would: "plan".into(), target: told.clone(), ..Preview::default() };
        Ok(Prepared::new(preview, Touch::Note, move |ctx| async move {
            Ok(Output { facts: vec![fact], ..Output::text(&ctx, &told) })
        }))
    }

    fn run_command(&self) -> Option<&'static str> {
        Some("plan")
    }

    fn example(&self) -> Value {
        json!({ "items": [{ "step": "look", "status": "pending" }] })
    }
}

/// One step as the model writes it in JSON.
///
/// # Errors
/// A field is missing, unknown or of another type.
pub(crate) fn item(value: Value) -> serde_json::Result<PlanItem> {
    let Step { step, status } = serde_json::from_value(value)?;
    Ok(PlanItem { step, status })
}

/// Checks a plan; returns a sentence about its progress and the Fact to record.
///
/// # Errors
/// `INVALID_ARGS` when more than one step is in progress.
pub(crate) fn checked(items: Vec<PlanItem>) -> Result<(String, Fact)> {
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
