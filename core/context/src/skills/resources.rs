//! The files beside a `SKILL.md`, which the model reads on request. Nothing of them is run here.

use std::io::Read as _;
use std::path::Path;

use super::activation::load;
use super::found::Skill;
use files::workspace::{Inside, Workspace};
use protocol::error::{Code, Error, Result};
use protocol::event::Origin;
use storage::trust::Trusted;

/// The longest file that is read, bytes.
const MAX_FILE: u64 = 1 << 20;
/// The most names of a list.
const MAX_NAMES: usize = 200;

/// What lies at a path of a skill's folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resource {
    /// A file's bytes.
    File(Vec<u8>),
    /// The names below a folder, relative to the skill's folder.
    Folder(Vec<String>),
}

/// Reads a file of a skill's folder, or lists a folder of it. A skill of the user is confined to its own folder in the same
/// way as one of a workspace.
///
/// # Errors
/// As for an activation; `OUTSIDE_WORKSPACE` for a path that leaves the skill's folder, and those of the path layer.
pub fn resource(
    skills: &[Skill],
    workspace: Option<&Workspace>,
    trusted: &Trusted,
    (name, path): (&str, &str),
) -> Result<Resource> {
    let skill = load(skills, workspace, trusted, name)?.skill;
    let folder = skill.path.parent().unwrap_or(&skill.path);
    match (skill.origin, workspace) {
        (Origin::Workspace, Some(workspace)) => {
            let folder = workspace.locate(&folder.to_string_lossy())?;
            read(workspace, &folder, path)
        }
        (Origin::User, _) | (Origin::Workspace, None) => {
            let own = Workspace::open(folder)?;
            let root = own.locate(".")?;
            read(&own, &root, path).map_err(|e| Error { message: in_folder(&e.message), ..e })
        }
    }
}

/// The folder of a skill stands where the path layer speaks of a workspace.
fn in_folder(message: &str) -> String {
    message.replace("the workspace", "the skill's folder")
}

/// The path below the root; empty for the root itself.
fn relative(at: &Inside) -> &Path {
    at.as_path().strip_prefix(".").unwrap_or(at.as_path())
}

fn read(root: &Workspace, folder: &Inside, path: &str) -> Result<Resource> {
    let at = match root.locate(&relative(folder).join(path).to_string_lossy()) {
        Ok(at) if relative(&at).starts_with(relative(folder)) => at,
        Ok(_) => return Err(outside(path)),
        Err(e) => return Err(e),
    };
    // A path that is a symlink, or behind one, must not lead out of the folder either.
    let (real, real_folder) = (root.real(&at), root.real(folder));
    if root.is_there(&at) && relative(folder).file_name().is_some() && !real.starts_with(&real_folder) {
        return Err(outside(path));
    }
    if root.is_folder(&at).unwrap_or(false) {
        return list(root, folder, &at);
    }
    let (file, len, _) = root.open_file(&at)?;
    let too_large = || {
        let message = format!("`{}` is larger than {} MB", path.escape_debug(), MAX_FILE >> 20);
        Error::new(Code::ReadFailed, message, "a smaller file").with("input", path)
    };
    if len > MAX_FILE {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    let failed = |e: std::io::Error| Error::new(Code::ReadFailed, format!("read `{}`: {e}", path.escape_debug()), "");
    file.take(MAX_FILE + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > MAX_FILE { Err(too_large()) } else { Ok(Resource::File(bytes)) }
}

fn outside(path: &str) -> Error {
    let message = format!("`{}` is outside the skill's folder", path.escape_debug());
    Error::new(Code::OutsideWorkspace, message, "a path inside the skill's folder").with("input", path)
}

/// The files below a folder, sorted; symlinks end in `@` and are not followed.
fn list(root: &Workspace, folder: &Inside, at: &Inside) -> Result<Resource> {
    let mut names = Vec::new();
    let mut folders = vec![relative(at).to_owned()];
    while let Some(below) = folders.pop() {
        let inside =
            if below.as_os_str().is_empty() { root.locate(".")? } else { root.locate(&below.to_string_lossy())? };
        for (name, _) in root.list(&inside)? {
            let path = below.join(name.trim_end_matches('/'));
            if name.ends_with('/') {
                folders.push(path);
            } else if names.len() < MAX_NAMES {
                names.push(path.strip_prefix(relative(folder)).unwrap_or(&path).display().to_string());
            }
        }
        if names.len() >= MAX_NAMES {
            break;
        }
    }
    names.sort();
    Ok(Resource::Folder(names))
}
