//! The files of workflows: those of the user, of skills, and of the workspace. A workspace's are read through the path layer, and
//! run only as the user trusts them.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::finder::{self, Finder, FoundFile};
use crate::skills::Skill;
use files::workspace::Workspace;
use protocol::error::{Code, Error, Result, nearest};
use protocol::remedy::Remedy;
use protocol::trust::Standing;
use storage::trust::Trusted;
use text::encoding;

/// The folder of a workspace's workflows.
const WORKSPACE_ROOT: &str = ".pixir/workflows";
const FILES: Finder = Finder { stem: stem_of, most_bytes: 256 << 10, most_files: 128 };

/// A file of a workflow.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkflowFile {
    /// The name by which it is run: that of its file, or `skill/name`.
    pub name: String,
    /// What it is for, as far as its file can be read.
    pub description: String,
    /// Its text; empty where it cannot be read.
    pub text: String,
    /// The path of its file; `None` for one that pixir has.
    pub path: Option<PathBuf>,
    /// Where it comes from: `pixir`, `user`, `skill` or `workspace`.
    pub origin: &'static str,
    /// Whether it can be run.
    pub standing: Standing,
    /// 32 hex digits of the BLAKE3 hash of its content.
    pub digest: Option<String>,
}

/// All workflows, by name.
#[derive(Debug, Clone, Default)]
pub struct Workflows(pub Vec<WorkflowFile>);

/// The workflows that pixir has.
const BUILTIN: [(&str, &str); 3] = [
    ("fix-and-verify", include_str!("workflows/fix-and-verify.toml")),
    ("migrate-each", include_str!("workflows/migrate-each.toml")),
    ("review-diff", include_str!("workflows/review-diff.toml")),
];

/// All workflows. One of the user hides one of pixir's; one of a workspace hides none.
pub fn find(
    workspace: Option<&Workspace>,
    trusted: &Trusted,
    user_folder: Option<&Path>,
    skills: &[Skill],
) -> Workflows {
    let mut all: Vec<WorkflowFile> = Vec::new();
    let users = user_folder.map(|folder| FILES.of_user(&folder.join("workflows"))).unwrap_or_default();
    let users = users.into_iter().map(|it| found(it, "", "user"));
    let builtin =
        BUILTIN.iter().map(|(name, text)| file((*name).to_owned(), None, "pixir", Ok(text.as_bytes().to_vec())));
    let of_skills = skills.iter().flat_map(|skill| {
        let folder = skill.path.parent().unwrap_or(&skill.path).join("workflows");
        let prefix = format!("{}/", skill.name);
        // What lies in the workspace is read as everything of it is.
        let inside = workspace.and_then(|it| Some((it, folder.strip_prefix(it.root()).ok()?.to_str()?.to_owned())));
        let found = match inside {
            Some((workspace, folder)) => FILES.of_workspace(workspace, &folder),
            None => FILES.of_user(&folder),
        };
        // A skill that is not in force brings no workflow that is.
        let standing = || skill.standing.clone();
        found.into_iter().map(move |it| WorkflowFile { standing: standing(), ..self::found(it, &prefix, "skill") })
    });
    let brought = workspace.map(|workspace| of_workspace(workspace, trusted)).unwrap_or_default();
    for it in users.chain(builtin).chain(of_skills).chain(brought) {
        if !all.iter().any(|known| known.name == it.name) {
            all.push(it);
        }
    }
    all.sort_by(|a, b| a.name.cmp(&b.name));
    Workflows(all)
}

/// The workflows that a workspace brings along.
pub(crate) fn of_workspace(workspace: &Workspace, trusted: &Trusted) -> Vec<WorkflowFile> {
    let judged = |it: FoundFile| {
        let path = it.path.clone();
        let file = found(it, "", "workspace");
        WorkflowFile {
            standing: finder::judged(workspace, trusted, &path, (&file.standing, file.digest.as_ref())),
            ..file
        }
    };
    FILES.of_workspace(workspace, WORKSPACE_ROOT).into_iter().map(judged).collect()
}

fn found(it: FoundFile, prefix: &str, origin: &'static str) -> WorkflowFile {
    file(format!("{prefix}{}", it.stem), Some(it.path), origin, it.bytes)
}

fn file(
    name: String,
    path: Option<PathBuf>,
    origin: &'static str,
    bytes: std::result::Result<Vec<u8>, String>,
) -> WorkflowFile {
    let decoded =
        |bytes: Vec<u8>| encoding::decoded(&bytes).map(Cow::into_owned).ok_or_else(|| "it is not text".to_owned());
    let read = bytes.and_then(decoded);
    match read {
        Ok(text) => WorkflowFile {
            description: description_of(&text),
            digest: Some(blake3::hash(text.as_bytes()).to_hex()[..32].to_owned()),
            standing: Standing::InForce,
            name,
            text,
            path,
            origin,
        },
        Err(why) => WorkflowFile {
            description: String::new(),
            digest: None,
            standing: Standing::Unusable { why },
            name,
            text: String::new(),
            path,
            origin,
        },
    }
}

/// The description of a workflow; its check names what is wrong with the rest.
fn description_of(text: &str) -> String {
    let value = match text.trim_start().starts_with('{') {
        true => serde_json::from_str::<serde_json::Value>(text)
            .ok()
            .and_then(|it| it["description"].as_str().map(str::to_owned)),
        false => text.parse::<toml::Table>().ok().and_then(|it| it.get("description")?.as_str().map(str::to_owned)),
    };
    value.unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ").chars().take(300).collect()
}

/// The name of a workflow's file.
fn stem_of(name: &str) -> Option<&str> {
    let stem = name.strip_suffix(".toml").or_else(|| name.strip_suffix(".json"))?;
    (!stem.is_empty() && !stem.starts_with('.')).then_some(stem)
}

impl Workflows {
    /// The texts of all that can be read, by name.
    pub fn texts(&self) -> BTreeMap<String, String> {
        let readable = self.0.iter().filter(|it| !matches!(it.standing, Standing::Unusable { .. }));
        readable.map(|it| (it.name.clone(), it.text.clone())).collect()
    }

    /// The names of those that can be read and are not trusted.
    pub fn untrusted(&self) -> BTreeSet<String> {
        let is_new = |it: &&WorkflowFile| match it.standing {
            Standing::New | Standing::Inert | Standing::Changed => true,
            Standing::InForce | Standing::Unusable { .. } => false,
        };
        self.0.iter().filter(is_new).map(|it| it.name.clone()).collect()
    }

    /// The workflow with this name.
    ///
    /// # Errors
    /// `WORKFLOW_NOT_FOUND`, with the nearest name.
    pub fn find(&self, name: &str) -> Result<&WorkflowFile> {
        self.0.iter().find(|it| it.name == name).ok_or_else(|| {
            let names = || self.0.iter().map(|it| it.name.as_str());
            let fix = match nearest(name, names()) {
                Some(near) => near.to_owned(),
                None => format!("one of: {}", names().collect::<Vec<_>>().join(", ")),
            };
            let message = format!("there is no workflow `{}`", name.escape_debug());
            Error::new(Code::WorkflowNotFound, message, fix).with("input", name)
        })
    }

    /// The workflow with this name, if it can be run.
    ///
    /// # Errors
    /// As [`Workflows::find`]; `WORKSPACE_UNTRUSTED`, and `READ_FAILED` for one that cannot be read.
    pub fn usable(&self, name: &str) -> Result<&WorkflowFile> {
        let it = self.find(name)?;
        match &it.standing {
            Standing::InForce => Ok(it),
            Standing::Unusable { why } => Err(Error::new(
                Code::ReadFailed,
                format!("the workflow {name} cannot be read: {why}"),
                "correct its file",
            )),
            Standing::New | Standing::Inert | Standing::Changed => {
                let changed =
                    if it.standing == Standing::Changed { ", and it changed since you were asked" } else { "" };
                let message = format!("the workflow {name} comes with the workspace, which you do not trust{changed}");
                Err(Error::new(Code::WorkspaceUntrusted, message, Remedy::TrustWorkspace))
            }
        }
    }
}
