//! The tools that list skills and read one. Neither runs anything.

use serde::Deserialize;
use serde_json::{Value, json};

use call::arguments::{self, object, text};
use call::{Context, Output, Prepared, Tool};
use context::skills::Skill;
use context::skills::resources::Resource;
use protocol::call_info::{CallInfo, CallKind};
use protocol::error::Result;
use protocol::event::{ActivatedBy, Fact};
use protocol::tool_spec::ToolSpec;
use protocol::trust::Standing;

pub(super) struct SkillsList;

impl Tool for SkillsList {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "skills_list".into(),
            description: "List all skills. A skill is a text of instructions for a certain kind of work.".into(),
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

/// One line for each skill that the model may know of.
pub fn listed(ctx: &Context) -> String {
    let line = |it: &Skill| match &it.standing {
        Standing::InForce => format!("{}  {}\n", it.name, it.description),
        Standing::Unusable { why } => format!("{}  (cannot be used: {why})\n", it.name),
        // The words of a repository that the user does not trust are no instructions.
        Standing::New | Standing::Inert | Standing::Changed => {
            format!("{}  (of this workspace, which the user does not trust: it cannot be used)\n", it.name)
        }
    };
    ctx.library.skills().iter().filter(|it| !it.fields.disable_model_invocation).map(line).collect()
}

pub(super) struct SkillView;

#[derive(Deserialize)]
struct Args {
    name: String,
    #[serde(default)]
    path: String,
}

impl Tool for SkillView {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "skill_view".into(),
            description: "Read a skill before you begin the work that it is for. With path, read a file of the skill, or list one of its folders.".into(),
            parameters: object(
                json!({
                    "name": { "type": "string" },
                    "path": { "type": "string" },
                }),
                &["name"],
            ),
            reads_only: true,
            streams: "reads nothing from stdin; prints the skill's text, or the file".into(),
        }
    }

    fn describe(&self, args: &Value, _ctx: &Context) -> CallInfo {
        let of = match text(args, "path") {
            "" => String::new(),
            path => format!("{path} of "),
        };
        CallInfo::new(CallKind::Read, "read", format!("{of}the skill {}", text(args, "name")))
    }

    fn prepare(&self, args: Value, ctx: &Context) -> Result<Prepared> {
        let Args { name, path } = arguments::parse(args)?;
        let viewed = View::of(ctx, &name, &path)?;
        Ok(Prepared::reading("read", format!("the skill {name}"), move |ctx| {
            let mut output = Output::of_files(ctx, "");
            output.stdout.push(&viewed.text);
            output.facts.extend(viewed.activation.clone());
            Ok(output)
        }))
    }

    fn run_command(&self) -> Option<&'static str> {
        Some("skill show")
    }
}

/// What a model reads of a skill, and what is recorded of that.
pub struct View {
    pub text: Vec<u8>,
    /// The skill is active from now on.
    pub activation: Option<Fact>,
}

impl View {
    /// A skill's text, or with a path a file of its folder.
    ///
    /// # Errors
    /// `SKILL_NOT_FOUND`, `PERMISSION_DENIED` in a workspace that is not trusted or for a skill that only the user activates,
    /// `READ_FAILED`, and those of the path layer.
    pub fn of(ctx: &Context, name: &str, path: &str) -> Result<View> {
        // The skill is judged in both cases, also by who may read it.
        let skill = ctx.library.activate(name, "", ActivatedBy::Model)?;
        if !matches!(path.trim_start_matches("./"), "" | "SKILL.md") {
            let text = match ctx.library.resource(name, path)? {
                Resource::File(bytes) => bytes,
                Resource::Folder(names) => names.iter().map(|name| format!("{name}\n")).collect::<String>().into(),
            };
            return Ok(View { text, activation: None });
        }
        let beside = match ctx.library.resource(name, ".") {
            Ok(Resource::Folder(names)) => names.into_iter().filter(|it| it != "SKILL.md").collect(),
            Ok(Resource::File(_)) | Err(_) => Vec::new(),
        };
        let beside = match beside.len() {
            0 => String::new(),
            _ => format!("files beside it, which skill_view reads with path: {}\n", beside.join(", ")),
        };
        let (body, path) = (skill.body.trim_end(), &skill.path);
        let text = format!("<skill name=\"{}\" path=\"{path}\">\n{body}\n</skill>\n{beside}", skill.name);
        Ok(View { text: text.into(), activation: Some(skill.into()) })
    }
}
