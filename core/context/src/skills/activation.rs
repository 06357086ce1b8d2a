//! A skill's text joins the conversation: by the user, or by a call of the model.

use std::path::Path;

use super::found::{Loaded, Skill, load_of, load_users};
use super::placeholders::Filling;
use files::workspace::Workspace;
use protocol::error::{Code, Error, Result, nearest};
use protocol::event::{ActivatedBy, Origin, SkillActivation};
use protocol::remedy::Remedy;
use protocol::trust::Standing;
use storage::trust::Trusted;

/// The skill of this name, read anew: the text that is used is the text that was judged.
///
/// # Errors
/// `SKILL_NOT_FOUND` with the nearest name, `PERMISSION_DENIED` for one of a workspace that is not trusted, `READ_FAILED` when
/// it cannot be used as it is.
pub(super) fn load(skills: &[Skill], workspace: Option<&Workspace>, trusted: &Trusted, name: &str) -> Result<Loaded> {
    let skill = skills.iter().find(|skill| skill.name == name).ok_or_else(|| {
        let fix = match nearest(name, skills.iter().map(|s| s.name.as_str())) {
            Some(near) => Remedy::UseSkill { name: near.to_owned() },
            None if skills.is_empty() => "put one at .pixir/skills/<name>/SKILL.md".into(),
            None => Remedy::ShowSkills,
        };
        Error::new(Code::SkillNotFound, format!("there is no skill `{}`", name.escape_debug()), fix).with("input", name)
    })?;
    let unusable = |why: &str| {
        let fix = "the user can fix its folder";
        Error::new(Code::ReadFailed, format!("the skill `{name}` cannot be used: {why}"), fix).with("input", name)
    };
    if let Standing::Unusable { why } = &skill.standing {
        return Err(unusable(why));
    }
    let folder = skill.path.parent().unwrap_or(&skill.path);
    let loaded = match (skill.origin, workspace) {
        (Origin::User, _) | (Origin::Workspace, None) => load_users(folder)?,
        (Origin::Workspace, Some(workspace)) => load_of(workspace, &folder.to_string_lossy(), trusted)?,
    };
    let why = match &loaded.skill.standing {
        Standing::InForce => return Ok(loaded),
        Standing::New | Standing::Inert => "you do not trust it",
        Standing::Changed => "it changed since you were asked about it",
        Standing::Unusable { why } => return Err(unusable(why)),
    };
    let message = format!("the skill `{name}` comes with this workspace, and {why}");
    Err(Error::new(Code::PermissionDenied, message, Remedy::TrustWorkspace).with("input", name))
}

/// What an activation by the user or the model records.
///
/// # Errors
/// As [`load`]; `PERMISSION_DENIED` for a model where only the user activates the skill.
pub fn activate(
    skills: &[Skill],
    workspace: Option<&Workspace>,
    trusted: &Trusted,
    (name, args): (&str, &str),
    by: ActivatedBy,
) -> Result<SkillActivation> {
    let Loaded { skill, body, file_digest } = load(skills, workspace, trusted, name)?;
    if by == ActivatedBy::Model && skill.fields.disable_model_invocation {
        let message = format!("only the user activates the skill `{name}`");
        return Err(Error::new(Code::PermissionDenied, message, "the user can activate it").with("input", name));
    }
    let folder = skill.path.parent().unwrap_or(Path::new("")).display().to_string();
    let takes_words = skill.fields.argument_hint.is_some() || skill.fields.ignored.iter().any(|key| key == "arguments");
    let filling = Filling {
        args: Some(args).filter(|args| !args.is_empty()),
        by_position: takes_words,
        folder: Some(&folder),
        names: &[],
    };
    Ok(SkillActivation {
        name: skill.name,
        path: skill.path.display().to_string(),
        args: args.to_owned(),
        body: filling.fill(&body).text,
        by,
        origin: Some(skill.origin),
        digest: Some(file_digest),
    })
}
