//! The tools that list skills and read one. Neither runs anything.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::call::arguments::{self, object, text};
use crate::call::{Context, Output, Prepared, Tool};
use crate::context::skills::Skill;
use crate::protocol::call_info::{CallInfo, CallKind};
use crate::protocol::error::Result;
use crate::protocol::tool_spec::ToolSpec;

pub(super) struct SkillsList;

impl Tool for SkillsList {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "skills_list".into(),
            description: "List the skills of this workspace and of the user: instructions for certain kinds of work."
                .into(),
            parameters: object(json!({}), &[]),
            reads_only: true,
            streams: "reads nothing from stdin; prints one skill per line".into(),
        }
    }

    fn describe(&self, _args: &Value, _ctx: &Context) -> CallInfo {
        CallInfo::new(CallKind::Read, "list", "skills")
    }

    fn prepare(&self, _args: Value, _ctx: &Context) -> Result<Prepared> {
        Ok(Prepared::reading("list", "skills".into(), |ctx| Ok(Output::text(ctx, &listed(ctx)))))
    }

    fn run_command(&self) -> Option<&'static str> {
        Some("skill list")
    }
}

/// One line for each skill.
pub(crate) fn listed(ctx: &Context) -> String {
    let line = |it: &Skill| match it.is_active() {
        true => format!("{}  {}\n", it.name, it.description),
        // The words of a repository that the user does not trust are no instructions.
        false => format!("{}  (of this workspace, which the user does not trust: it cannot be used)\n", it.name),
    };
    ctx.library.skills().iter().map(line).collect()
}

pub(super) struct SkillView;

#[derive(Deserialize)]
struct Args {
    name: String,
}

impl Tool for SkillView {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "skill_view".into(),
            description: "Read a skill in full before you start the work it covers.".into(),
            parameters: object(json!({ "name": { "type": "string" } }), &["name"]),
            reads_only: true,
            streams: "reads nothing from stdin; prints the skill's text".into(),
        }
    }

    fn describe(&self, args: &Value, _ctx: &Context) -> CallInfo {
        CallInfo::new(CallKind::Read, "read", format!("the skill {}", text(args, "name")))
    }

    fn prepare(&self, args: Value, ctx: &Context) -> Result<Prepared> {
        let Args { name } = arguments::parse(args)?;
        let text = viewed(ctx, &name)?;
        Ok(Prepared::reading("read", format!("the skill {name}"), move |ctx| Ok(Output::text(ctx, &text))))
    }

    fn run_command(&self) -> Option<&'static str> {
        Some("skill show")
    }
}

/// A skill's text.
///
/// # Errors
/// `SKILL_NOT_FOUND`, `PERMISSION_DENIED` in a workspace that is not trusted, `READ_FAILED`.
pub(crate) fn viewed(ctx: &Context, name: &str) -> Result<String> {
    let skill = ctx.library.activate(name, "")?;
    Ok(format!("<skill name=\"{}\" path=\"{}\">\n{}\n</skill>\n", skill.name, skill.path, skill.body.trim_end()))
}
