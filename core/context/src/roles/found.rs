//! The roles of the user and of the workspace. A workspace's are read through the path layer, and can be used only as the user
//! trusts them.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use super::{Role, RoleOrigin, reading};
use files::workspace::Workspace;
use protocol::trust::Standing;
use storage::regular;
use storage::trust::Trusted;

/// The folders of a workspace's roles, the first one first.
const WORKSPACE_ROOTS: [&str; 3] = [".pixir/agents", ".claude/agents", ".opencode/agent"];
/// The most bytes of a file.
const MAX_FILE: u64 = 64 << 10;
/// The most roles of one folder.
const MAX_ROLES: usize = 128;

/// All roles: those that pixir has, then by name. A role of the user hides every other of its name; one of a workspace hides
/// none.
pub fn find(workspace: Option<&Workspace>, trusted: &Trusted, user_folder: Option<&Path>) -> Vec<Role> {
    let users = user_folder.map(of_user).unwrap_or_default();
    let brought = workspace.map(|workspace| of_workspace(workspace, trusted)).unwrap_or_default();
    let mut roles: Vec<Role> = Vec::new();
    for role in users.into_iter().chain(Role::builtin()).chain(brought) {
        match roles.iter_mut().find(|known| known.name == role.name) {
            Some(known) => known.hides.extend(role.path),
            None => roles.push(role),
        }
    }
    let builtin: Vec<String> = Role::builtin().into_iter().map(|role| role.name).collect();
    let rank = |role: &Role| builtin.iter().position(|name| *name == role.name).unwrap_or(usize::MAX);
    roles.sort_by(|a, b| rank(a).cmp(&rank(b)).then_with(|| a.name.cmp(&b.name)));
    roles
}

/// The roles that a workspace brings along.
pub(crate) fn of_workspace(workspace: &Workspace, trusted: &Trusted) -> Vec<Role> {
    let mut roles = Vec::new();
    for root in WORKSPACE_ROOTS {
        let names = workspace.locate(root).and_then(|at| workspace.list(&at)).unwrap_or_default();
        let read = |file: &str| {
            let path = format!("{root}/{}", file.trim_end_matches('@'));
            let (stem, absolute) = (stem_of(Path::new(&path))?, workspace.root().join(&path));
            let bytes = workspace.locate(&path).and_then(|at| workspace.read_plain(&at, MAX_FILE));
            let role = reading::read(&stem, absolute, RoleOrigin::Workspace, bytes.map_err(|e| e.message));
            let standing = match (&role.standing, &role.digest) {
                (Standing::InForce, Some(digest)) => trusted.standing(&path, digest),
                (standing, _) => standing.clone(),
            };
            Some(Role { standing, ..role })
        };
        roles.extend(names.iter().filter_map(|(name, _)| read(name)).take(MAX_ROLES));
    }
    roles
}

/// The user's own roles.
fn of_user(folder: &Path) -> Vec<Role> {
    let entries = std::fs::read_dir(folder.join("agents")).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    let read = |path: PathBuf| {
        let stem = stem_of(&path)?;
        Some(reading::read(&stem, path.clone(), RoleOrigin::User, read_file(&path)))
    };
    paths.into_iter().filter_map(read).take(MAX_ROLES).collect()
}

/// The roles at a path: a file, or a folder of files.
pub fn at(path: &Path) -> Vec<Role> {
    let mut files: Vec<PathBuf> = match std::fs::read_dir(path) {
        Ok(entries) => entries.flatten().map(|entry| entry.path()).collect(),
        Err(_) => vec![path.to_owned()],
    };
    files.sort();
    let read = |path: PathBuf| {
        let stem = stem_of(&path)?;
        Some(reading::read(&stem, path.clone(), RoleOrigin::User, read_file(&path)))
    };
    files.into_iter().filter_map(read).collect()
}

fn read_file(path: &Path) -> std::result::Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let file = regular::open_to_read(path).map_err(|e| e.to_string())?;
    file.take(MAX_FILE + 1).read_to_end(&mut bytes).map_err(|e| e.to_string())?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(format!("it is larger than {} KB", MAX_FILE >> 10));
    }
    Ok(bytes)
}

/// The name of a role's file. A README says what a folder is for.
fn stem_of(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    let stem = name.strip_suffix(".md")?;
    (!stem.starts_with('.') && !stem.eq_ignore_ascii_case("readme")).then(|| stem.to_owned())
}
