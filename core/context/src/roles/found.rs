//! The roles of the user and of the workspace. A workspace's are read through the path layer, and can be used only as the user
//! trusts them.

use std::path::Path;

use super::{Role, RoleOrigin, reading};
use crate::finder::{self, Finder, FoundFile};
use files::workspace::Workspace;
use storage::trust::Trusted;

/// The folders of a workspace's roles, the first one first.
const WORKSPACE_ROOTS: [&str; 3] = [".pixir/agents", ".claude/agents", ".opencode/agent"];
const FILES: Finder = Finder { stem: stem_of, most_bytes: 64 << 10, most_files: 128 };

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
    let files = WORKSPACE_ROOTS.iter().flat_map(|root| FILES.of_workspace(workspace, root));
    let judged = |file: FoundFile| {
        let role = reading::read(&file.stem, file.path.clone(), RoleOrigin::Workspace, file.bytes);
        let standing = finder::judged(workspace, trusted, &file.path, (&role.standing, role.digest.as_ref()));
        Role { standing, ..role }
    };
    files.map(judged).collect()
}

/// The user's own roles.
fn of_user(folder: &Path) -> Vec<Role> {
    FILES.of_user(&folder.join("agents")).into_iter().map(users).collect()
}

fn users(file: FoundFile) -> Role {
    reading::read(&file.stem, file.path, RoleOrigin::User, file.bytes)
}

/// The roles at a path: a file, or a folder of files.
pub fn at(path: &Path) -> Vec<Role> {
    let paths = if path.is_dir() { finder::paths_in(path) } else { vec![path.to_owned()] };
    paths.into_iter().filter_map(|path| FILES.at(path)).map(users).collect()
}

/// The name of a role's file. A README says what a folder is for.
fn stem_of(name: &str) -> Option<&str> {
    let stem = name.strip_suffix(".md")?;
    (!stem.starts_with('.') && !stem.eq_ignore_ascii_case("readme")).then_some(stem)
}
