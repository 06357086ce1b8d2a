//! Folders that complete a path which the user types.

use std::path::Path;

/// The most folders that are offered.
const OFFERED: usize = 50;

/// What is typed of a path: the folders above, with the last slash, and the start of a name.
pub(super) fn parts(letters: &str) -> (&str, &str) {
    letters.split_at(letters.rfind('/').map_or(0, |at| at + 1))
}

/// The folders whose paths begin so, in this folder. A path that is whole comes first, and after it the same with `:rw`, by
/// which the Session works on the folder.
pub(super) fn of(letters: &str, folder: &Path) -> Vec<String> {
    let (above, start) = parts(letters);
    let is_whole = !letters.is_empty() && folder.join(start).is_dir();
    let whole = is_whole.then(|| [letters.to_owned(), format!("{letters}:rw")]);
    let names = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let names = names.filter(|it| it.path().is_dir()).filter_map(|it| it.file_name().into_string().ok());
    let mut names: Vec<String> = names
        .filter(|name| name.starts_with(start) && name != start && (start.starts_with('.') || !name.starts_with('.')))
        .collect();
    names.sort();
    let found = names.into_iter().map(|name| format!("{above}{name}"));
    whole.into_iter().flatten().chain(found).take(OFFERED).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_offered_and_a_whole_path_comes_first() {
        let root = tempfile::tempdir().expect("a folder");
        for name in ["lib", "library", ".hidden", "other", "lib/src"] {
            std::fs::create_dir_all(root.path().join(name)).expect("mkdir");
        }
        std::fs::write(root.path().join("lib.txt"), "").expect("write");
        let found = |letters: &str| of(letters, &root.path().join(parts(letters).0));
        assert_eq!(found("li"), ["lib", "library"]);
        assert_eq!(found("lib"), ["lib", "lib:rw", "library"]);
        assert_eq!(found("lib/"), ["lib/", "lib/:rw", "lib/src"]);
        assert_eq!(found("lib/s"), ["lib/src"]);
        assert_eq!(found("."), [".", ".:rw", ".hidden"]);
        assert_eq!(found("lib.txt"), [""; 0]);
        assert_eq!(found("lib:rw"), [""; 0]);
        assert_eq!(found(""), ["lib", "library", "other"]);
    }
}
