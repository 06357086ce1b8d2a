//! `SKILL.md` files: how they are found, read and added to the conversation. Finding a skill runs nothing in its
//! folder.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::files::workspace::{Inside, Workspace};
use crate::protocol::error::{Code, Error, Result, nearest};
use crate::protocol::event::SkillActivation;
use crate::protocol::remedy::Remedy;
use crate::protocol::trust::Standing;
use crate::storage::trust::Trusted;

/// The most bytes of a `SKILL.md`.
const MAX_SKILL: u64 = 256 << 10;
/// The most bytes and files of a skill's folder. One that has more cannot be trusted by its content.
const MAX_FOLDER: u64 = 16 << 20;
const MAX_FILES: usize = 500;
/// The most skills of one folder of a workspace.
const MAX_SKILLS: usize = 256;
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
    /// Whether it can be used: one of a workspace is only listed until the user trusts it as it is.
    pub standing: Standing,
    /// The hash of its folder's content, for one of a workspace.
    pub(crate) digest: Option<String>,
    /// Problems in the file that do not prevent its use.
    pub warnings: Vec<String>,
}

impl Skill {
    /// Whether it can be used.
    pub fn is_active(&self) -> bool {
        self.standing == Standing::InForce
    }
}

#[derive(Debug, Default, Deserialize)]
struct FrontMatter {
    name: Option<String>,
    description: Option<String>,
}

/// Finds all skills, sorted by name. A skill of the user hides one of the workspace with the same name. Skills of the
/// workspace are read through its path layer, so that no symlink of a repository leads to a file outside.
pub(crate) fn find(workspace: Option<&Workspace>, trusted: &Trusted, user_folder: Option<&Path>) -> Vec<Skill> {
    let mut skills: Vec<Skill> = Vec::new();
    let users = user_folder.into_iter().flat_map(of_user).filter_map(|path| Some(load_users(&path).ok()?.0));
    let brought = workspace.into_iter().flat_map(|workspace| of_workspace(workspace, trusted));
    for skill in users.chain(brought) {
        if skills.iter().all(|known| known.name != skill.name) {
            skills.push(skill);
        }
    }
    skills.sort_by(|a, b| a.name.cmp(&b.name));
    skills
}

/// The skills that a workspace brings along, in the order of their folders.
pub(crate) fn of_workspace(workspace: &Workspace, trusted: &Trusted) -> Vec<Skill> {
    let mut skills = Vec::new();
    for root in WORKSPACE_ROOTS {
        let mut names = workspace.locate(root).and_then(|at| workspace.list_raw(&at)).unwrap_or_default();
        names.sort();
        names.truncate(MAX_SKILLS);
        skills.extend(names.into_iter().filter_map(|(name, _)| {
            let folder = format!("{root}/{name}");
            Some(load_of(workspace, &folder, trusted).ok()?.0)
        }));
    }
    skills
}

/// Reads a skill to be recorded as an entry.
///
/// # Errors
/// `SKILL_NOT_FOUND` with the nearest name, `PERMISSION_DENIED` for one of a workspace that is not trusted, `READ_FAILED` when the file is missing or is not text.
pub(crate) fn activate(
    skills: &[Skill],
    workspace: Option<&Workspace>,
    trusted: &Trusted,
    name: &str,
    args: &str,
) -> Result<SkillActivation> {
    let skill = skills.iter().find(|skill| skill.name == name).ok_or_else(|| {
        let fix = match nearest(name, skills.iter().map(|s| s.name.as_str())) {
            Some(near) => Remedy::UseSkill { name: near.to_owned() },
            None if skills.is_empty() => "put one at .pixir/skills/<name>/SKILL.md".into(),
            None => Remedy::ShowSkills,
        };
        Error::new(Code::SkillNotFound, format!("there is no skill `{}`", name.escape_debug()), fix).with("input", name)
    })?;
    let (again, body) = match (skill.origin, workspace) {
        (Origin::User, _) | (Origin::Workspace, None) => load_users(&skill.path)?,
        (Origin::Workspace, Some(workspace)) => {
            let folder = skill.path.parent().unwrap_or(&skill.path);
            load_of(workspace, &folder.to_string_lossy(), trusted)?
        }
    };
    // The text that is used is the text that was judged.
    let why = match again.standing {
        Standing::InForce => None,
        Standing::New | Standing::Inert => Some("you do not trust it".to_owned()),
        Standing::Changed => Some("it changed since you were asked about it".to_owned()),
        Standing::Unusable { why } => Some(why),
    };
    if let Some(why) = why {
        let message = format!("the skill `{name}` comes with this workspace, and {why}");
        return Err(Error::new(Code::PermissionDenied, message, Remedy::TrustWorkspace).with("input", name));
    }
    Ok(SkillActivation {
        name: skill.name.clone(),
        path: skill.path.display().to_string(),
        args: args.to_owned(),
        body,
    })
}

fn failed(path: &Path, why: &str) -> Error {
    Error::new(Code::ReadFailed, format!("read the skill {}: {why}", path.display()), "fix the file")
}

const TOO_LARGE: &str = "it is not a file of at most 256 KB";

/// The files of the user's own skills, which lie outside of every workspace.
fn of_user(folder: &Path) -> Vec<PathBuf> {
    let folders = std::fs::read_dir(folder.join("skills")).into_iter().flatten().flatten();
    folders.map(|folder| folder.path().join("SKILL.md")).collect()
}

fn load_users(path: &Path) -> Result<(Skill, String)> {
    let metadata = std::fs::metadata(path).map_err(|e| failed(path, &e.to_string()))?;
    if !metadata.is_file() || metadata.len() > MAX_SKILL {
        return Err(failed(path, TOO_LARGE));
    }
    let text = read(path, std::fs::File::open(path).map_err(|e| failed(path, &e.to_string()))?)?;
    Ok(parse(path, Origin::User, &text))
}

/// Reads the skill in this folder of the workspace.
fn load_of(workspace: &Workspace, folder: &str, trusted: &Trusted) -> Result<(Skill, String)> {
    let folder = workspace.locate(folder)?;
    let at = workspace.locate(&format!("{}/SKILL.md", folder.display()))?;
    let (file, len, _) = workspace.open_file(&at)?;
    let path = workspace.path_of(&at);
    if len > MAX_SKILL {
        return Err(failed(&path, TOO_LARGE));
    }
    let text = read(&path, file)?;
    let (skill, body) = parse(&path, Origin::Workspace, &text);
    let (standing, digest) = match digest_of(workspace, &folder, &text) {
        Ok(digest) => (trusted.standing(&folder.display(), &digest), Some(digest)),
        Err(e) => (Standing::Unusable { why: e.message }, None),
    };
    Ok((Skill { standing, digest, ..skill }, body))
}

/// The hash of everything in a skill's folder: its text may have the model run the files beside it. A symlink counts by
/// its name, as its target is not a part of the skill.
fn digest_of(workspace: &Workspace, folder: &Inside, text: &str) -> Result<String> {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
    let (mut bytes, mut files) = (0, 0);
    let mut folders = vec![folder.display()];
    while let Some(folder) = folders.pop() {
        for (name, _) in workspace.list(&workspace.locate(&folder)?)? {
            let path = format!("{folder}/{name}");
            hasher.update(&(path.len() as u64).to_le_bytes()).update(path.as_bytes());
            files += 1;
            if let Some(below) = path.strip_suffix('/') {
                folders.push(below.to_owned());
            } else {
                let content = match bounded(workspace, &workspace.locate(&path)?, MAX_FOLDER - bytes) {
                    // `@` marks a symlink, but a file may have such a name too.
                    Err(e) if e.code == Code::NotFound && path.ends_with('@') => Vec::new(),
                    content => content?,
                };
                bytes += content.len() as u64;
                hasher.update(&(content.len() as u64).to_le_bytes()).update(&content);
            }
            if files > MAX_FILES {
                let message = format!("its folder holds more than {MAX_FILES} files");
                return Err(Error::new(Code::ReadFailed, message, "a smaller folder"));
            }
        }
    }
    Ok(hasher.finalize().to_hex()[..32].to_owned())
}

/// Reads a file of a skill, whose folder may be a symlink inside the workspace.
fn bounded(workspace: &Workspace, at: &Inside, most: u64) -> Result<Vec<u8>> {
    let (file, len, _) = workspace.open_file(at)?;
    let failed = |why: String| Error::new(Code::ReadFailed, why, "a smaller folder");
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes).map_err(|e| failed(format!("read {}: {e}", at.display())))?;
    if len > most || bytes.len() as u64 > most {
        return Err(failed(format!("its folder is larger than {} MB", MAX_FOLDER >> 20)));
    }
    Ok(bytes)
}

fn read(path: &Path, file: std::fs::File) -> Result<String> {
    let mut text = String::new();
    file.take(MAX_SKILL).read_to_string(&mut text).map_err(|e| failed(path, &e.to_string()))?;
    Ok(text)
}

fn parse(path: &Path, origin: Origin, text: &str) -> (Skill, String) {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n");
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
    let skill = Skill {
        name: name.trim().to_owned(),
        description: description.trim().to_owned(),
        origin,
        path: path.to_owned(),
        standing: Standing::InForce,
        digest: None,
        warnings,
    };
    (skill, body.to_owned())
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
            std::fs::create_dir_all(&folder).expect("mkdir");
            std::fs::write(folder.join("SKILL.md"), text).expect("write");
        };
        put(
            "review",
            "---\nname: review\ndescription: >-\n  Reads a\n  diff.\nallowed-tools: [read]\n---\nLook hard.\n",
        );
        put("odd", "---\r\nname: odd\r\ndescription: Use when: asked\r\n---\r\nBody\r\n");
        put("bare", "Just text.\n");
        let workspace = Workspace::open(home.path()).expect("a workspace");
        let skills = find(Some(&workspace), &Trusted::Everything, None);
        let seen: Vec<_> = skills.iter().map(|s| (s.name.as_str(), s.description.as_str(), s.warnings.len())).collect();
        assert_eq!(seen, [("bare", "", 1), ("odd", "Use when: asked", 1), ("review", "Reads a diff.", 0)]);
        assert_eq!(
            activate(&skills, Some(&workspace), &Trusted::Everything, "review", "x").expect("there").body,
            "Look hard.\n"
        );
        assert_eq!(
            activate(&skills, Some(&workspace), &Trusted::Everything, "reviw", "").expect_err("not there").remedy,
            Remedy::UseSkill { name: "review".into() }
        );
    }
}
