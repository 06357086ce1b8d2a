//! A rule as the user writes it.

use super::{Glob, Pattern, path_glob};
use crate::shell::quoted;
use protocol::error::{Code, Error, Result};
use protocol::event::Scope;

/// Reads what a rule covers: `bash(cargo test *)`, `files(src/**)` or `network`.
///
/// # Errors
/// `INVALID_ARGS`, with what to write instead.
pub fn parse(text: &str) -> Result<Scope> {
    let bad = |why: String, fix: &str| Err(Error::new(Code::InvalidArgs, why, fix.to_owned()).with("input", text));
    if text.trim() == "network" {
        return Ok(Scope::Network);
    }
    let inner = |name: &str| text.trim().strip_prefix(name)?.strip_prefix('(')?.strip_suffix(')').map(str::trim);
    if let Some(pattern) = inner("bash") {
        return match Pattern::parse(pattern) {
            Ok(pattern) if pattern.words.iter().all(|word| word.literal().is_some()) => {
                Ok(Scope::Command(quoted(pattern.words.iter().filter_map(Glob::literal))))
            }
            Ok(_) => Ok(Scope::Pattern(pattern.to_owned())),
            Err((why, fix)) => bad(why, fix),
        };
    }
    if let Some(glob) = inner("files") {
        let leaves = glob == "/" || glob.split('/').any(|part| part == "..");
        return match path_glob(glob) {
            _ if leaves => bad(
                format!("`{}` does not lie in the workspace", glob.escape_debug()),
                "write a path from the workspace's root, like files(src/**), or an absolute one in an added folder",
            ),
            Some(_) if !glob.is_empty() => Ok(Scope::Files(glob.to_owned())),
            Some(_) => Ok(Scope::FileChanges),
            None => bad(format!("`{}` is not a glob", glob.escape_debug()), "write one like files(src/**)"),
        };
    }
    type OfFolder = fn(String) -> Scope;
    let of_folders: [(&str, &str, OfFolder); 2] =
        [("read", "read(/usr/include)", Scope::Reads), ("write", "write(/home/me/library)", Scope::Writes)];
    for (name, like, scope) in of_folders {
        let Some(folder) = inner(name) else { continue };
        let fix = format!("write a folder outside the workspace, like {like}");
        return match folder.trim_end_matches('/') {
            "" => bad(format!("`{name}({folder})` names no folder"), &fix),
            plain if !plain.starts_with('/') || plain.split('/').any(|part| part == "..") => {
                bad(format!("`{}` is not an absolute path", folder.escape_debug()), &fix)
            }
            plain => Ok(scope(plain.to_owned())),
        };
    }
    if let Some(tool) = inner("mcp") {
        let server = tool.split('.').next().unwrap_or_default();
        if config::mcp::is_name(server) {
            return Ok(Scope::Mcp(tool.to_owned()));
        }
        return bad(format!("`{}` names no MCP server", tool.escape_debug()), "write mcp(SERVER) or mcp(SERVER.TOOL)");
    }
    bad(
        format!("`{}` is not a rule", text.escape_debug()),
        "write bash(PROGRAM ARGUMENTS), like 'bash(cargo test *)'; files(GLOB), like 'files(src/**)'; read(FOLDER), like 'read(/usr/include)'; write(FOLDER), which lets pixir work there as in the workspace; mcp(SERVER.TOOL); or network",
    )
}

/// Writes what a rule covers so that [`parse`] reads it.
pub fn shown(scope: &Scope) -> String {
    match scope {
        Scope::FileChanges => "files()".into(),
        Scope::Command(what) | Scope::Pattern(what) => format!("bash({what})"),
        Scope::Files(glob) => format!("files({glob})"),
        Scope::Reads(folder) => format!("read({folder})"),
        Scope::Writes(folder) => format!("write({folder})"),
        Scope::Mcp(tool) => format!("mcp({tool})"),
        Scope::Network => "network".into(),
        Scope::Unknown => "unknown".into(),
    }
}
