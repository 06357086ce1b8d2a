//! The hash of a skill's folder, which is what the user trusts.

use std::io::Read as _;

use files::workspace::{Inside, Workspace};
use protocol::error::{Code, Error, Result};

/// The most bytes and files of a skill's folder. One that has more cannot be trusted by its content.
const MAX_FOLDER: u64 = 16 << 20;
const MAX_FILES: usize = 500;
/// The most bytes of all skills of a workspace. They are hashed before each Turn, which must not wait for a repository
/// that holds gigabytes of them.
pub(super) const MAX_TOGETHER: u64 = 128 << 20;

/// 32 hex digits of the hash of some bytes.
pub fn of_bytes(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex()[..32].to_owned()
}

/// The hash of everything in a skill's folder: its text may have the model run the files beside it. A symlink counts by
/// its name, as its target is not a part of the skill. What is read counts against `left`.
pub(super) fn of_folder(workspace: &Workspace, folder: &Inside, text: &[u8], left: &mut u64) -> Result<String> {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&(text.len() as u64).to_le_bytes()).update(text);
    let (most, why) = match *left {
        left if left < MAX_FOLDER => {
            (left, format!("the skills of this workspace hold more than {} MB together", MAX_TOGETHER >> 20))
        }
        _ => (MAX_FOLDER, format!("its folder is larger than {} MB", MAX_FOLDER >> 20)),
    };
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
                let content = match bounded(workspace, &workspace.locate(&path)?, most - bytes, &why) {
                    // `@` marks a symlink, but a file may have such a name too.
                    Err(e) if e.code == Code::NotFound && path.ends_with('@') => Vec::new(),
                    content => content?,
                };
                bytes += content.len() as u64;
                *left -= content.len() as u64;
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

/// Reads a file of a skill, whose folder may be a symlink inside the workspace. `why` is told if it has more bytes.
fn bounded(workspace: &Workspace, at: &Inside, most: u64, why: &str) -> Result<Vec<u8>> {
    let (file, len, _) = workspace.open_file(at)?;
    let failed = |why: String| Error::new(Code::ReadFailed, why, "a smaller folder");
    let too_large = || failed(why.to_owned());
    // A sparse file is refused by its length, before anything of it is read.
    if len > most {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes).map_err(|e| failed(format!("read {}: {e}", at.display())))?;
    if bytes.len() as u64 > most {
        return Err(too_large());
    }
    Ok(bytes)
}
