//! `SKILL.md` files: how they are found, read and added to the conversation. Finding a skill runs nothing in its
//! folder.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::protocol::error::{Code, Error, Result, nearest};
use crate::protocol::event::SkillActivation;
use crate::protocol::remedy::Remedy;

/// The most bytes of a `SKILL.md`.
const MAX_SKILL: u64 = 256 << 10;
/// Folders of a workspace that may hold skills. The first folder with a name wins.
const WORKSPACE_ROOTS: [&str; 3] = [".pixir/skills", ".agents/skills", ".claude/skills"];

/// Where a skill comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The workspace contains it.
    Workspace,
    /// The user installed it.
    User,
}

impl Origin {
    /// Returns the name that lists show.
    pub const fn name(self) -> &'static str {
        match self {
            Origin::Workspace => "workspace",
            Origin::User => "user",
        }
    }
}

/// One skill, as read from its `SKILL.md`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skill {
    /// The skill's name; the folder's name where the file gives none.
    pub name: String,
    /// When to use it.
    pub description: String,
    /// Where the skill comes from.
    pub origin: Origin,
    /// The path of its `SKILL.md`.
    pub path: PathBuf,
    /// Problems in the file that do not prevent its use.
    pub warnings: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
struct FrontMatter {
    name: Option<String>,
    description: Option<String>,
}

/// Finds all skills, sorted by name. A skill of the workspace hides a user's skill of the same name.
pub(crate) fn find(workspace: &Path, user_folder: Option<&Path>) -> Vec<Skill> {
    let workspace_roots = WORKSPACE_ROOTS.iter().map(|root| (workspace.join(root), Origin::Workspace));
    let user_root = user_folder.map(|folder| (folder.join("skills"), Origin::User));
    let mut skills: Vec<Skill> = Vec::new();
    for (root, origin) in workspace_roots.chain(user_root) {
        let Ok(folders) = fs::read_dir(root) else { continue };
        for folder in folders.flatten() {
            let path = folder.path().join("SKILL.md");
            if let Ok((skill, _)) = load(&path, origin)
                && skills.iter().all(|known| known.name != skill.name)
            {
                skills.push(skill);
            }
        }
    }
    skills.sort_by(|a, b| a.name.cmp(&b.name));
    skills
}

/// Reads a skill to be recorded as an entry.
///
/// # Errors
/// `SKILL_NOT_FOUND` with the nearest name, `READ_FAILED` when the file is missing or is not text.
pub(crate) fn activate(skills: &[Skill], name: &str, args: &str) -> Result<SkillActivation> {
    let skill = skills.iter().find(|skill| skill.name == name).ok_or_else(|| {
        let fix = match nearest(name, skills.iter().map(|s| s.name.as_str())) {
            Some(near) => Remedy::UseSkill { name: near.to_owned() },
            None if skills.is_empty() => "put one at .pixir/skills/<name>/SKILL.md".into(),
            None => Remedy::ShowSkills,
        };
        Error::new(Code::SkillNotFound, format!("there is no skill `{}`", name.escape_debug()), fix).with("input", name)
    })?;
    let (_, body) = load(&skill.path, skill.origin)?;
    Ok(SkillActivation {
        name: skill.name.clone(),
        path: skill.path.display().to_string(),
        args: args.to_owned(),
        body,
    })
}

fn load(path: &Path, origin: Origin) -> Result<(Skill, String)> {
    let failed =
        |why: String| Error::new(Code::ReadFailed, format!("read the skill {}: {why}", path.display()), "fix the file");
    let metadata = fs::metadata(path).map_err(|e| failed(e.to_string()))?;
    if !metadata.is_file() || metadata.len() > MAX_SKILL {
        return Err(failed("it is not a file of at most 256 KB".into()));
    }
    let mut text = String::new();
    fs::File::open(path)
        .and_then(|f| f.take(MAX_SKILL).read_to_string(&mut text))
        .map_err(|e| failed(e.to_string()))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text).replace("\r\n", "\n");
    let (front, body) = split(&text);
    let mut warnings = Vec::new();
    let front = match front {
        Some(yaml) => serde_saphyr::from_str(yaml).unwrap_or_else(|_| {
            warnings.push("the front matter is not valid YAML; name and description were read line by line".to_owned());
            line_wise(yaml)
        }),
        None => {
            warnings.push("the file has no front matter".to_owned());
            FrontMatter::default()
        }
    };
    let folder = path.parent().and_then(Path::file_name).map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let name = front.name.filter(|n| !n.trim().is_empty()).unwrap_or(folder);
    let description = front.description.unwrap_or_default();
    Ok((
        Skill {
            name: name.trim().to_owned(),
            description: description.trim().to_owned(),
            origin,
            path: path.to_owned(),
            warnings,
        },
        body.to_owned(),
    ))
}

/// Splits a file into the YAML between its `---` lines and the rest.
fn split(text: &str) -> (Option<&str>, &str) {
    let start = text.trim_start();
    let Some(rest) = start.strip_prefix("---").and_then(|r| r.trim_start_matches([' ', '\t']).strip_prefix('\n'))
    else {
        return (None, text);
    };
    match rest.split_once("\n---") {
        Some((yaml, body)) => (Some(yaml), body.split_once('\n').map_or("", |(_, body)| body)),
        None => (None, text),
    }
}

/// Reads the front matter line by line: many real files have an unquoted `: ` or a leading `*`, which YAML does not
/// allow.
fn line_wise(yaml: &str) -> FrontMatter {
    let value = |key: &str| {
        yaml.lines()
            .find_map(|line| line.strip_prefix(key)?.trim_start().strip_prefix(':'))
            .map(|v| v.trim().trim_matches(['"', '\'']).to_owned())
    };
    FrontMatter { name: value("name"), description: value("description") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skills_as_people_write_them_are_found_and_a_wrong_name_gets_the_nearest() {
        let home = tempfile::tempdir().expect("a folder");
        let put = |folder: &str, text: &str| {
            let folder = home.path().join(".pixir/skills").join(folder);
            fs::create_dir_all(&folder).expect("mkdir");
            fs::write(folder.join("SKILL.md"), text).expect("write");
        };
        put(
            "review",
            "---\nname: review\ndescription: >-\n  Reads a\n  diff.\nallowed-tools: [read]\n---\nLook hard.\n",
        );
        put("odd", "---\r\nname: odd\r\ndescription: Use when: asked\r\n---\r\nBody\r\n");
        put("bare", "Just text.\n");
        let skills = find(home.path(), None);
        let seen: Vec<_> = skills.iter().map(|s| (s.name.as_str(), s.description.as_str(), s.warnings.len())).collect();
        assert_eq!(seen, [("bare", "", 1), ("odd", "Use when: asked", 1), ("review", "Reads a diff.", 0)]);
        assert_eq!(activate(&skills, "review", "x").expect("there").body, "Look hard.\n");
        assert_eq!(
            activate(&skills, "reviw", "").expect_err("not there").remedy,
            Remedy::UseSkill { name: "review".into() }
        );
    }
}
