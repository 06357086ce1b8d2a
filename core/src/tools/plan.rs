//! The model's own list of steps.

use serde::Deserialize;
use serde_json::{Value, json};

use super::{Context, Output, Prepared, Tool, ToolSpec, object, parse_args};
use crate::permissions::Action;
use crate::protocol::error::{Code, Error, Result};
use crate::protocol::event::{Fact, Plan, PlanItem, PlanUpdated, StepStatus};

pub(super) struct UpdatePlan;

#[derive(Deserialize)]
struct Args {
    items: Vec<PlanItem>,
}

impl Tool for UpdatePlan {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "update_plan",
            description: "Show your plan for work of several steps, and keep it true: the whole list each time, at most one step in_progress.",
            parameters: object(
                json!({
                    "items": { "type": "array", "items": {
                        "type": "object",
                        "properties": {
                            "step": { "type": "string" },
                            "status": { "type": "string", "enum": ["pending", "in_progress", "completed"] },
                        },
                        "required": ["step", "status"],
                        "additionalProperties": false,
                    } },
                }),
                &["items"],
            ),
            reads_only: true,
            streams: "reads nothing from stdin; says how far the plan is",
        }
    }

    fn prepare(&self, args: Value, _ctx: &Context) -> Result<Prepared> {
        let Args { items } = parse_args(&self.spec(), args)?;
        let (told, fact) = checked(items)?;
        let plan = Plan { would: "plan".into(), target: told.clone(), ..Plan::default() };
        Ok(Prepared::new(plan, Action::Note, move |ctx| async move {
            Ok(Output { facts: vec![fact], ..Output::text(&ctx, &told) })
        }))
    }
}

/// A plan that can be one, and how far it is.
///
/// # Errors
/// `INVALID_ARGS` when several steps are done at once.
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
