//! What a workspace brings along that is in force only with the user's trust: its configuration, skills,
//! prompt templates, roles, workflows and MCP servers. All of it is read through the path layer.

use std::path::{Path, PathBuf};

use crate::finder::inside;
use crate::{roles, servers, skills, templates, workflows};
use config::edit;
use config::project::{self, CONFIG};
use files::workspace::Workspace;
use permissions::repository::Leads;
use protocol::error::{Code, Error, Result};
use protocol::remedy::Remedy;
use protocol::trust::{Contribution, ContributionKind, Standing, TrustAnswer};
use storage::store::Store;
use storage::trust::Trusted;

/// A longer configuration is not read, bytes.
const MAX_CONFIG: u64 = 64 << 10;

/// The project's configuration file, as far as trust allows to read it.
#[derive(Debug, Clone, PartialEq)]
pub enum ProjectFile {
    /// It is in force.
    Read(toml::Table),
    /// The workspace is trusted, and has none.
    Absent,
    /// It is not in force.
    NotRead(NotRead),
}

/// Why a project's configuration is not in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotRead {
    /// The user trusts nothing of the workspace.
    UntrustedWorkspace,
    /// The user trusts other things of the workspace.
    Untrusted,
    /// It changed since the user was asked about it.
    Changed,
    /// It is no plain file, for this reason.
    Unusable(String),
}

impl std::fmt::Display for NotRead {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            NotRead::UntrustedWorkspace => "the workspace is not trusted",
            NotRead::Untrusted => "you do not trust it",
            NotRead::Changed => "it changed since you were asked about it",
            NotRead::Unusable(why) => why,
        })
    }
}

impl ProjectFile {
    /// Reads the configuration of a workspace, if the user trusts it as it is now. The workspace is not touched where the
    /// user trusts nothing of it.
    ///
    /// # Errors
    /// `CONFIG_INVALID` where a trusted one has a fault, `NOT_FOUND` when the workspace cannot be opened.
    pub fn read(workspace: &Path, store: &Store, trusts_this_run: bool) -> Result<ProjectFile> {
        let open = |trusted: &Trusted| ProjectFile::read_in(&Workspace::open(workspace)?, trusted);
        if trusts_this_run {
            return open(&Trusted::Everything);
        }
        let root = workspace.canonicalize().unwrap_or_else(|_| workspace.to_owned());
        match store.trust().decision(&root) {
            Some(decision) if !decision.trusted.is_empty() => open(&Trusted::By(decision)),
            Some(_) | None => Ok(ProjectFile::NotRead(NotRead::UntrustedWorkspace)),
        }
    }

    /// Sets one key in the configuration of a workspace, and trusts the file as it is then: the user has made it so. A file
    /// that is there has to be in force.
    ///
    /// # Errors
    /// `CONFIG_INVALID` where the file is not in force or a project may not have the key, and those of the path layer.
    pub fn set(workspace: &Path, store: &Store, key: &str, value: &str) -> Result<PathBuf> {
        ProjectFile::change(workspace, store, |text| edit::set(text, key, value))
    }

    /// Takes one key out of the configuration of a workspace, under the conditions of [`ProjectFile::set`].
    ///
    /// # Errors
    /// As [`ProjectFile::set`].
    pub fn unset(workspace: &Path, store: &Store, key: &str) -> Result<PathBuf> {
        ProjectFile::change(workspace, store, |text| edit::unset(text, key))
    }

    fn change(workspace: &Path, store: &Store, change: impl FnOnce(&str) -> Result<String>) -> Result<PathBuf> {
        let workspace = Workspace::open(workspace)?;
        let path = path_in(&workspace);
        let decision = store.trust().decision(workspace.root()).unwrap_or_default();
        let before = content(&workspace)?;
        let is_in_force = match &before {
            None => !decision.never,
            Some(content) => decision.trusted.get(CONFIG) == Some(&digest(content)),
        };
        if !is_in_force {
            let message = format!("you do not trust {}, so nothing is saved there", path.display());
            return Err(Error::new(Code::ConfigInvalid, message, Remedy::TrustWorkspace));
        }
        let faulty = |e: Error| Error { message: format!("{}: {}", path.display(), e.message), ..e };
        let after = change(&String::from_utf8_lossy(&before.unwrap_or_default())).map_err(faulty)?;
        project::parse(after.as_bytes()).map_err(faulty)?;
        let at = workspace.locate(CONFIG)?;
        workspace.check_writable(&at)?;
        workspace.replace(&at, after.as_bytes(), None)?;
        let mut trusted = decision.trusted;
        trusted.insert(CONFIG.to_owned(), digest(after.as_bytes()));
        store.trust().decide(workspace.root(), TrustAnswer::Trust, &trusted)?;
        Ok(path)
    }

    fn read_in(workspace: &Workspace, trusted: &Trusted) -> Result<ProjectFile> {
        let path = path_in(workspace);
        let faulty = |e: Error| Error { message: format!("{}: {}", path.display(), e.message), ..e };
        let content = match content(workspace) {
            Ok(Some(content)) => content,
            Ok(None) => return Ok(ProjectFile::Absent),
            // Without trust of this content nothing depends on it.
            Err(e) if matches!(trusted, Trusted::By(_)) => {
                return Ok(ProjectFile::NotRead(NotRead::Unusable(e.message)));
            }
            Err(e) => {
                let fix = "make it a regular file of at most 64 KB";
                return Err(Error::new(Code::ConfigInvalid, e.message, fix).with("file", path.display().to_string()));
            }
        };
        Ok(ProjectFile::NotRead(match trusted.standing(CONFIG, &digest(&content)) {
            Standing::InForce => return project::parse(&content).map(ProjectFile::Read).map_err(faulty),
            Standing::Changed => NotRead::Changed,
            Standing::New | Standing::Inert | Standing::Unusable { .. } => NotRead::Untrusted,
        }))
    }
}

/// The path of a project's configuration.
pub fn project_config(workspace: &Path) -> PathBuf {
    workspace.join(CONFIG)
}

fn path_in(workspace: &Workspace) -> PathBuf {
    project_config(workspace.root())
}

/// The content of the project's configuration; `None` where there is none.
fn content(workspace: &Workspace) -> Result<Option<Vec<u8>>> {
    match workspace.locate(CONFIG).and_then(|at| workspace.read_plain(&at, MAX_CONFIG)) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(e) if e.code == Code::NotFound => Ok(None),
        Err(e) => Err(e),
    }
}

fn digest(content: &[u8]) -> String {
    blake3::hash(content).to_hex()[..32].to_owned()
}

/// Under which path trust knows where the repository leads.
const REPOSITORY: &str = ".git";

/// How it stands that the repository of a workspace leads to these folders elsewhere.
pub(crate) fn standing_of(leads: &Leads, trusted: &Trusted) -> (Standing, Option<String>) {
    if let Some(far) = leads.leads_too_far() {
        let why = format!("`.git` leads to {}, which is more than a repository", far.display());
        return (Standing::Unusable { why }, None);
    }
    let mut hasher = blake3::Hasher::new();
    for (mark, paths) in [(b"w", &leads.changes), (b"r", &leads.reads)] {
        for path in paths {
            hasher.update(mark).update(path.as_os_str().as_encoded_bytes()).update(b"\0");
        }
    }
    let digest = hasher.finalize().to_hex()[..32].to_owned();
    (trusted.standing(REPOSITORY, &digest), Some(digest))
}

/// The repository of the workspace, if git uses folders elsewhere for it.
fn repository(workspace: &Workspace, trusted: &Trusted) -> Option<Contribution> {
    let leads = Leads::of(workspace.root());
    if leads.is_empty() {
        return None;
    }
    let (standing, digest) = standing_of(&leads, trusted);
    let named = |verb: &str, paths: &[PathBuf]| {
        let paths: Vec<String> = paths.iter().map(|it| it.display().to_string()).collect();
        (!paths.is_empty()).then(|| format!("{verb} {}", paths.join(", ")))
    };
    let about = [named("changes", &leads.changes), named("reads", &leads.reads)];
    let about = format!("git {}", about.into_iter().flatten().collect::<Vec<_>>().join(" and "));
    let (kind, path) = (ContributionKind::Repository, REPOSITORY.to_owned());
    Some(Contribution { kind, path, about, standing, digest })
}

/// Everything that the workspace brings along.
pub fn find(workspace: &Workspace, trusted: &Trusted) -> Vec<Contribution> {
    let config = match content(workspace) {
        Ok(None) => None,
        Ok(Some(content)) => {
            let digest = digest(&content);
            let standing = trusted.standing(CONFIG, &digest);
            let about = project::summary(&content).unwrap_or_else(|e| format!("has a fault: {}", e.message));
            Some((about, standing, Some(digest)))
        }
        Err(e) => Some((String::new(), Standing::Unusable { why: e.message }, None)),
    };
    let config = config.map(|(about, standing, digest)| Contribution {
        kind: ContributionKind::Config,
        path: CONFIG.to_owned(),
        about,
        standing,
        digest,
    });
    let brought = |kind, path: &Path, about, standing, digest| {
        let path = inside(workspace, path).display().to_string();
        Contribution { kind, path, about, standing, digest }
    };
    let skills = skills::found::of_workspace(workspace, trusted).into_iter().map(|it| {
        let folder = it.path.parent().unwrap_or(&it.path);
        brought(ContributionKind::Skill, folder, it.description, it.standing, it.digest)
    });
    let templates = templates::of_workspace(workspace, trusted)
        .into_iter()
        .map(|it| brought(ContributionKind::Template, &it.path, it.description, it.standing, it.digest));
    let roles = roles::found::of_workspace(workspace, trusted).into_iter().filter_map(|it| {
        let mode = it.mode.map_or(String::new(), |mode| format!(" · at most {}", mode.name()));
        let model = it.model.as_ref().map_or(String::new(), |model| format!(" · asks {model}"));
        let about = format!("{}{mode}{model}", it.description);
        Some(brought(ContributionKind::Role, it.path.as_deref()?, about, it.standing, it.digest))
    });
    let workflows = workflows::of_workspace(workspace, trusted).into_iter().filter_map(|it| {
        Some(brought(ContributionKind::Workflow, it.path.as_deref()?, it.description, it.standing, it.digest))
    });
    let servers = servers::contributions(workspace, trusted);
    let repository = repository(workspace, trusted);
    config
        .into_iter()
        .chain(repository)
        .chain(servers)
        .chain(skills)
        .chain(templates)
        .chain(roles)
        .chain(workflows)
        .collect()
}
