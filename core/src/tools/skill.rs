//! Practices that are written down: finding one runs nothing, reading one is text.

use serde::Deserialize;
use serde_json::{Value, json};

use super::{Context, Output, Prepared, Tool, ToolSpec, object, parse_args};
use crate::context::skills;
use crate::protocol::error::Result;

pub(super) struct SkillsList;

impl Tool for SkillsList {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "skills_list",
            description: "List the skills of this workspace and of the user: instructions for certain kinds of work.",
            parameters: object(json!({}), &[]),
            reads_only: true,
            streams: "reads nothing from stdin; one skill a line",
        }
    }

    fn prepare(&self, _args: Value, _ctx: &Context) -> Result<Prepared> {
        Ok(Prepared::reading("list", "skills".into(), |ctx| Ok(Output::text(ctx, &listed(ctx)))))
    }
}

/// One line for each skill.
pub(crate) fn listed(ctx: &Context) -> String {
    ctx.library.skills().iter().map(|it| format!("{}  {}\n", it.name, it.description)).collect()
}

pub(super) struct SkillView;

#[derive(Deserialize)]
struct Args {
    name: String,
}

impl Tool for SkillView {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "skill_view",
            description: "Read a skill in full before you do the work it covers.",
            parameters: object(json!({ "name": { "type": "string" } }), &["name"]),
            reads_only: true,
            streams: "reads nothing from stdin; the skill's text is its output",
        }
    }

    fn prepare(&self, args: Value, ctx: &Context) -> Result<Prepared> {
        let Args { name } = parse_args(&self.spec(), args)?;
        let text = viewed(ctx, &name)?;
        Ok(Prepared::reading("read", format!("the skill {name}"), move |ctx| Ok(Output::text(ctx, &text))))
    }
}

/// A skill's text.
///
/// # Errors
/// `SKILL_NOT_FOUND`, `READ_FAILED`.
pub(crate) fn viewed(ctx: &Context, name: &str) -> Result<String> {
    let skill = skills::activate(&ctx.library.skills(), name, "")?;
    Ok(format!("<skill name=\"{}\" path=\"{}\">\n{}\n</skill>\n", skill.name, skill.path, skill.body.trim_end()))
}
