//! Reading outside the workspace, by pixir's own tools.

use std::path::{Path, PathBuf};

use protocol::error::{Code, Error};
use protocol::event::{Mode, Rule, Scope};
use protocol::remedy::Remedy;

/// Why it needs an approval where the mode asks, and the rule that "always" would add.
///
/// # Errors
/// `OUTSIDE_WORKSPACE` in `read-only`; `PERMISSION_DENIED` for secrets, in every mode.
pub(super) fn approval(
    mode: Mode,
    paths: &[PathBuf],
    secret: Option<&Path>,
    workspace: &Path,
) -> Result<(String, Option<Rule>), Error> {
    if let Some(secret) = secret {
        let message = format!("`{}` may hold secrets, so no tool of pixir reads it", shown(secret));
        let fix = "another file; the user can look there";
        return Err(Error::new(Code::PermissionDenied, message, fix).with("input", shown(secret)));
    }
    let named: Vec<String> = paths.iter().map(|path| format!("`{}`", shown(path))).collect();
    let named = named.join(", ");
    if mode == Mode::ReadOnly {
        let is = if paths.len() == 1 { "is" } else { "are" };
        let message = format!("{named} {is} outside the workspace {}, and the mode is read-only", shown(workspace));
        let fix = Remedy::any_of(["a path inside the workspace".into(), Remedy::SetMode { mode: Mode::Ask }]);
        return Err(Error::new(Code::OutsideWorkspace, message, fix)
            .with("input", paths.first().map_or_else(String::new, |it| shown(it))));
    }
    Ok((format!("it reads {named} outside the workspace"), rule(paths)))
}

fn shown(path: &Path) -> String {
    path.display().to_string().escape_debug().to_string()
}

/// A rule for the one folder that holds all paths. The root would be every folder.
fn rule(paths: &[PathBuf]) -> Option<Rule> {
    let folder = |path: &PathBuf| if path.is_dir() { Some(path.clone()) } else { path.parent().map(Path::to_owned) };
    let first = folder(paths.first()?)?;
    let is_one = paths.iter().all(|path| folder(path).as_ref() == Some(&first));
    let text = first.to_str().filter(|_| is_one && first.parent().is_some())?;
    Some(Rule::Allow(Scope::Reads(text.to_owned())))
}
