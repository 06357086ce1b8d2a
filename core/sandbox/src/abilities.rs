//! What the tier `ns` needs of this machine besides its namespaces, for those who ask what does not hold here.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use super::{Own, Places, Policy, Sandbox, sockets};
use process::between_starts;
use protocol::sandbox::Tier;
use storage::removal::remove_folder;
use storage::store::make_private;

/// What commands cannot have here, or pixir cannot keep from them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lack {
    /// A cover of the Session above the caches of toolchains: what a command writes there ends with the command, or is refused.
    Covers,
    /// The list of sockets with a path: those of the machine are not hidden.
    Sockets,
}

/// What this machine lacks for the tier `ns`, which must work here. `home` is the state folder.
pub fn lacks(home: &Path) -> Vec<Lack> {
    let covers = (!has_covers(home)).then_some(Lack::Covers);
    let sockets = (!sockets::are_listed()).then_some(Lack::Sockets);
    covers.into_iter().chain(sockets).collect()
}

/// Whether what a command writes to a cache is in a cover in the state folder. Found by trying.
fn has_covers(home: &Path) -> bool {
    let name = format!("pixir-probe-{}", std::process::id());
    let (top, cover) = (std::env::temp_dir().join(&name), home.join(&name));
    let works = try_cover(home, &top, &cover).unwrap_or(false);
    for folder in [top, cover] {
        // Where it could not be made, it is not there.
        let _ = remove_folder(&folder);
    }
    works
}

fn try_cover(home: &Path, top: &Path, cover: &Path) -> std::io::Result<bool> {
    let (workspace, cache) = (top.join("work"), top.join(".npm"));
    for folder in [top, &workspace, &cache, cover] {
        make_private(folder)?;
    }
    let top = top.canonicalize()?;
    let (workspace, cache): (PathBuf, PathBuf) = (top.join("work"), top.join(".npm"));
    let environment = vec![("HOME".to_owned(), top.display().to_string())];
    let places = Places { workspace: workspace.clone(), home: home.to_owned(), environment, ..Places::default() };
    let own = Own { workspace: workspace.clone(), cover: Some(cover.to_owned()), ..Own::default() };
    let sandbox = Sandbox::new(Some(Tier::Namespaces), places);
    let written = cache.join("written").display().to_string();
    let mut touch = sandbox.command(Policy::Work, "touch", std::slice::from_ref(&written), &workspace, &own);
    let touch = touch.as_std_mut().stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let ended = between_starts(|| touch.spawn())?.wait()?;
    let is_in_cover = fs::read_dir(cover)?.flatten().any(|it| it.path().join(".npm/written").exists());
    Ok(ended.success() && is_in_cover && !Path::new(&written).exists())
}
