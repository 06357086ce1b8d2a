//! The skills of the user and of a workspace: where they are found, and what is read of each.

use std::path::{Path, PathBuf};

use super::digest;
use super::fields::Fields;
use super::finding::{Finding, Weight};
use super::front_matter;
use super::text::{Text, one_line};
use super::validation::{self, Validated};
use crate::finder::{paths_in, read_bounded};
use files::workspace::Workspace;
use protocol::error::{Code, Error, Result};
use protocol::event::Origin;
use protocol::trust::Standing;
use storage::regular;
use storage::trust::Trusted;

/// The most bytes of a `SKILL.md`.
const MAX_SKILL: u64 = 256 << 10;
/// The most skills of one folder.
const MAX_SKILLS: usize = 512;
/// The longest name that a skill has, characters.
const MAX_NAME: usize = 64;
/// Folders of a workspace that may hold skills. The first folder with a name wins.
const WORKSPACE_ROOTS: [&str; 3] = [".pixir/skills", ".agents/skills", ".claude/skills"];
/// The file that makes a folder a skill.
const FILE: &str = "SKILL.md";

/// One skill, as read from its `SKILL.md`.
#[derive(Debug, Clone, PartialEq)]
pub struct Skill {
    /// The skill's name; the folder's name where the file gives none. One line without control characters.
    pub name: String,
    /// What it does, and when to use it. One line without control characters.
    pub description: String,
    /// Where the skill comes from.
    pub origin: Origin,
    /// The path of its `SKILL.md`.
    pub path: PathBuf,
    /// Whether it can be used: one of a workspace is only listed until the user trusts it as it is.
    pub standing: Standing,
    /// The hash of its folder's content, for one of a workspace.
    pub digest: Option<String>,
    /// The other fields of its front matter.
    pub fields: Fields,
    /// What its author should know.
    pub findings: Vec<Finding>,
    /// Skills with the same name that it hides, by the path of their `SKILL.md`.
    pub hides: Vec<PathBuf>,
}

/// A skill with its text.
pub(super) struct Loaded {
    pub(super) skill: Skill,
    /// The text after the front matter.
    pub(super) body: String,
    /// The hash of the file.
    pub(super) file_digest: String,
}

impl Skill {
    /// Whether it can be used.
    pub fn is_active(&self) -> bool {
        self.standing == Standing::InForce
    }

    /// Whether the model may use it by itself.
    pub fn is_for_model(&self) -> bool {
        self.is_active() && !self.fields.disable_model_invocation
    }

    /// The first thing about it that its user should know, if there is one.
    pub fn warning(&self) -> Option<String> {
        if let Standing::Unusable { why } = &self.standing {
            return Some(why.clone());
        }
        let fault = self.findings.iter().find(|it| it.weight == Weight::Fault).map(ToString::to_string);
        fault.or_else(|| Some(format!("it hides {}", self.hides.first()?.display())))
    }

    /// What its author should know, as a check of its file.
    pub fn validated(&self) -> Validated {
        let mut findings = self.findings.clone();
        if let Standing::Unusable { why } = &self.standing {
            findings.push(Finding::fault(1, why.clone(), "fix the skill's folder"));
        }
        for hidden in &self.hides {
            let message = format!("it hides another skill of its name: {}", hidden.display());
            findings.push(Finding::note(1, message, "rename one of them"));
        }
        Validated { name: self.name.clone(), path: self.path.clone(), findings }
    }

    /// A skill that cannot be read.
    fn unusable(path: PathBuf, origin: Origin, why: String) -> Skill {
        Skill {
            name: folder_name(&path),
            description: String::new(),
            origin,
            path,
            standing: Standing::Unusable { why },
            digest: None,
            fields: Fields::default(),
            findings: Vec::new(),
            hides: Vec::new(),
        }
    }
}

/// Finds all skills, sorted by name. A skill of the user hides one of the workspace with the same name, and an earlier folder
/// one of a later folder. Skills of the workspace are read through its path layer, so that no symlink of a repository leads
/// to a file outside.
pub fn find(workspace: Option<&Workspace>, trusted: &Trusted, user_folders: &[PathBuf]) -> Vec<Skill> {
    let mut seen: Vec<PathBuf> = Vec::new();
    let mut skills: Vec<Skill> = Vec::new();
    let users = user_folders.iter().flat_map(|root| of_user(root));
    let brought = workspace.into_iter().flat_map(|workspace| of_workspace(workspace, trusted));
    for skill in users.chain(brought) {
        // Several agents may share one folder by symlinks: that is one skill.
        let real = skill.path.canonicalize().unwrap_or_else(|_| skill.path.clone());
        if seen.contains(&real) {
            continue;
        }
        seen.push(real);
        match skills.iter_mut().find(|known| known.name == skill.name) {
            Some(known) => known.hides.push(skill.path),
            None => skills.push(skill),
        }
    }
    skills.sort_by(|a, b| a.name.cmp(&b.name));
    skills
}

/// The skills that a workspace brings along, in the order of their folders.
pub(crate) fn of_workspace(workspace: &Workspace, trusted: &Trusted) -> Vec<Skill> {
    let mut skills = Vec::new();
    let mut left = digest::MAX_TOGETHER;
    for root in WORKSPACE_ROOTS {
        let names = workspace.locate(root).and_then(|at| workspace.list(&at)).unwrap_or_default();
        let folders =
            names.iter().filter_map(|(name, _)| name.strip_suffix(['/', '@'])).filter(|it| !it.starts_with('.'));
        skills.extend(folders.take(MAX_SKILLS).filter_map(|name| {
            let folder = format!("{root}/{name}");
            match load_from(workspace, &folder, trusted, &mut left) {
                Ok(loaded) => Some(loaded.skill),
                Err(e) if e.code == Code::NotFound => None,
                Err(e) => {
                    let path = workspace.root().join(&folder).join(FILE);
                    Some(Skill::unusable(path, Origin::Workspace, e.message))
                }
            }
        }));
    }
    skills
}

/// Reads the skill in this folder of the workspace.
pub(super) fn load_of(workspace: &Workspace, folder: &str, trusted: &Trusted) -> Result<Loaded> {
    let mut left = digest::MAX_TOGETHER;
    load_from(workspace, folder, trusted, &mut left)
}

/// Reads one of several skills, whose folders hold at most `left` bytes together.
fn load_from(workspace: &Workspace, folder: &str, trusted: &Trusted, left: &mut u64) -> Result<Loaded> {
    let folder = workspace.locate(folder)?;
    let is_there = |name: &str| workspace.locate(&format!("{}/{name}", folder.display()));
    let mut at = is_there(FILE)?;
    if !workspace.is_there(&at) {
        let names = workspace.list(&folder).unwrap_or_default();
        let named = names.iter().find(|(name, _)| name.eq_ignore_ascii_case(FILE)).map(|(name, _)| name.as_str());
        at = is_there(named.unwrap_or(FILE))?;
    }
    let (file, ..) = workspace.open_file(&at)?;
    let path = workspace.path_of(&at);
    let bytes = read_bounded(file, MAX_SKILL).map_err(|why| failed(&path, &why))?;
    let loaded = assemble(path, Origin::Workspace, &bytes);
    let (standing, digest) = match digest::of_folder(workspace, &folder, &bytes, left) {
        Ok(digest) => (trusted.standing(&folder.display(), &digest), Some(digest)),
        Err(e) => (Standing::Unusable { why: e.message }, None),
    };
    Ok(Loaded { skill: Skill { standing, digest, ..loaded.skill }, ..loaded })
}

/// The user's own skills in this folder, which lies outside of every workspace.
fn of_user(root: &Path) -> Vec<Skill> {
    let is_shown = |folder: &&PathBuf| folder.file_name().is_some_and(|name| !name.to_string_lossy().starts_with('.'));
    let load = |folder: &PathBuf| match load_users(folder) {
        Ok(loaded) => Some(loaded.skill),
        Err(e) if e.code == Code::NotFound => None,
        Err(e) => Some(Skill::unusable(folder.join(FILE), Origin::User, e.message)),
    };
    paths_in(root).iter().filter(is_shown).take(MAX_SKILLS).filter_map(load).collect()
}

/// Reads the skill in this folder of the user. A symlink of the user leads wherever the user wants.
pub(super) fn load_users(folder: &Path) -> Result<Loaded> {
    let missing = || Error::new(Code::NotFound, "the folder holds no SKILL.md", "write one");
    let mut path = folder.join(FILE);
    if std::fs::symlink_metadata(&path).is_err() {
        let names = std::fs::read_dir(folder).map_err(|_| missing())?.flatten();
        let mut named = names.filter(|entry| entry.file_name().to_string_lossy().eq_ignore_ascii_case(FILE));
        path = named.next().ok_or_else(missing)?.path();
    }
    load_file(path)
}

fn load_file(path: PathBuf) -> Result<Loaded> {
    let file = regular::open_to_read(&path).map_err(|e| failed(&path, &e.to_string()))?;
    let bytes = read_bounded(file, MAX_SKILL).map_err(|why| failed(&path, &why))?;
    Ok(assemble(path, Origin::User, &bytes))
}

/// The text of a skill, for its user to look at: whether it can be used does not matter.
///
/// # Errors
/// `READ_FAILED`, and those of the path layer.
pub fn text_of(skill: &Skill, workspace: Option<&Workspace>, trusted: &Trusted) -> Result<String> {
    let folder = skill.path.parent().unwrap_or(&skill.path);
    let loaded = match (skill.origin, workspace) {
        (Origin::User, _) | (Origin::Workspace, None) => load_users(folder)?,
        (Origin::Workspace, Some(workspace)) => load_of(workspace, &folder.to_string_lossy(), trusted)?,
    };
    Ok(loaded.body)
}

/// Checks the skills at a path that the user names: a file, a skill's folder, or a folder of skills.
///
/// # Errors
/// `NOT_FOUND` when there is none, `READ_FAILED` for a file that cannot be read.
pub fn validate(path: &Path) -> Result<Vec<Validated>> {
    if !path.is_dir() {
        let missing = |e: std::io::Error| {
            let message = format!("read {}: {e}", path.display());
            Error::new(Code::NotFound, message, "name a skill, its folder or a folder of skills")
                .with("input", path.display().to_string())
        };
        let path = path.canonicalize().map_err(missing)?;
        return Ok(vec![load_file(path)?.skill.validated()]);
    }
    let folder = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    match load_users(&folder) {
        Ok(loaded) => return Ok(vec![loaded.skill.validated()]),
        Err(e) if e.code == Code::NotFound => {}
        Err(e) => return Err(e),
    }
    let all: Vec<Validated> = of_user(&folder).iter().map(Skill::validated).collect();
    if all.is_empty() {
        let message = format!("there is no SKILL.md in {}", path.display());
        return Err(Error::new(Code::NotFound, message, "name a skill, its folder or a folder of skills")
            .with("input", path.display().to_string()));
    }
    Ok(all)
}

fn failed(path: &Path, why: &str) -> Error {
    Error::new(Code::ReadFailed, format!("read the skill {}: {why}", path.display()), "fix the file")
}

/// The name of the folder that holds this file.
fn folder_name(path: &Path) -> String {
    let name = path.parent().and_then(Path::file_name).unwrap_or_default();
    one_line(&name.to_string_lossy(), MAX_NAME)
}

/// Reads a file's bytes as a skill. There is no file that cannot be read so; what is odd is a finding.
pub(super) fn assemble(path: PathBuf, origin: Origin, bytes: &[u8]) -> Loaded {
    let Text { text, mut findings } = Text::read(bytes);
    let mut document = front_matter::read(&text);
    findings.append(&mut document.findings);
    let fields = Fields::read(&document, &mut findings);
    let folder = folder_name(&path);
    let line_of = |key: &str| document.lines.get(key).copied().unwrap_or(1);
    if path.file_name().is_none_or(|name| name != FILE) {
        findings.push(Finding::fault(
            1,
            "the file is not named SKILL.md",
            "rename it: other agents find only that name",
        ));
    }
    validation::check(&fields, &folder, line_of, &mut findings);
    validation::check_body(&document.body, document.body_line, &mut findings);
    findings.sort_by_key(|it| it.line);
    let name = fields.name.as_ref().map_or(String::new(), |name| one_line(name, MAX_NAME));
    let skill = Skill {
        name: if name.is_empty() { folder } else { name },
        description: fields.description.clone().unwrap_or_else(|| first_words(&document.body)),
        origin,
        path,
        standing: Standing::InForce,
        digest: None,
        fields,
        findings,
        hides: Vec::new(),
    };
    Loaded { skill, body: document.body, file_digest: digest::of_bytes(bytes) }
}

/// The first line of a text that says something, without the marks of a heading.
pub(crate) fn first_words(body: &str) -> String {
    let lines = body.lines().map(|line| line.trim_start_matches(['#', '>', '-', '*', ' ', '\t']).trim());
    one_line(lines.into_iter().find(|line| !line.is_empty()).unwrap_or_default(), 200)
}
