//! What a Session may do in a folder outside the workspace.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a Session may do in a folder outside the workspace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FolderAccess {
    /// Read it.
    #[default]
    Read,
    /// Work on it as on the workspace: the mode and the rules decide about each change.
    Write,
}

impl FolderAccess {
    /// Takes apart what a user writes: `FOLDER` and `FOLDER:ro` are read, `FOLDER:rw` is worked on. The folder may stand in
    /// double quotes.
    pub fn of(text: &str) -> (&str, FolderAccess) {
        let text = text.trim();
        let (path, access) = match text.strip_suffix(":rw") {
            Some(path) => (path, FolderAccess::Write),
            None => (text.strip_suffix(":ro").unwrap_or(text), FolderAccess::Read),
        };
        let plain = path.strip_prefix('"').and_then(|it| it.strip_suffix('"'));
        (plain.unwrap_or(path), access)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_ending_says_what_is_allowed_and_the_rest_is_the_folder() {
        use FolderAccess::{Read, Write};
        for (text, path, access) in [
            ("../lib", "../lib", Read),
            ("../lib:rw", "../lib", Write),
            ("../lib:ro", "../lib", Read),
            ("../lib:rw:ro", "../lib:rw", Read),
            ("../lib:rw:rw", "../lib:rw", Write),
            ("\"my lib\":rw", "my lib", Write),
            ("\"my lib:rw\"", "my lib:rw", Read),
            (" /a/b:c ", "/a/b:c", Read),
            ("a:RW", "a:RW", Read),
            (":rw", "", Write),
            ("", "", Read),
        ] {
            assert_eq!(FolderAccess::of(text), (path, access), "{text}");
        }
    }
}
