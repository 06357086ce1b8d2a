//! Protected files, by their names: they run code by themselves, or instruct pixir and other agents.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use protocol::protected::Group;

mod names; // the table

use names::{Kind, Name};

/// The parts of a repository that run code or lead elsewhere; commits change the rest.
const IN_GIT: [&str; 4] = [".git/hooks", ".git/config", ".git/config.worktree", ".git/info/attributes"];
/// The folders among them.
const FOLDERS_IN_GIT: [&str; 2] = [".git/hooks", ".git/info"];

/// Whether a file with such a name can run code or widen pixir's permissions.
pub(super) fn is_protected(path: &Path) -> bool {
    group_of(path).is_some()
}

/// The group of a file with such a name.
pub(super) fn group_of(path: &Path) -> Option<Group> {
    let names: Vec<Cow<'_, str>> = path.components().map(|it| folded(it.as_os_str().to_string_lossy())).collect();
    let last = names.last()?;
    let is_place = |upto: usize, place: &str| {
        let mut above = names[..=upto].iter().rev();
        place.rsplit('/').all(|part| above.next().is_some_and(|name| name == part))
    };
    let named = names.iter().enumerate().find_map(|(n, name)| {
        let it = INDEX.get(&**name)?;
        let whole = it.whole.filter(|it| it.kind == Kind::Folder || n + 1 == names.len());
        whole.or_else(|| it.places.iter().copied().find(|it| is_place(n, it.name)))
    });
    let ending = || names::NAMES.iter().find(|it| it.kind == Kind::Ending && last.ends_with(it.name));
    named.or_else(ending).map(|it| it.group)
}

/// The table by the last of a row's names: all files of a workspace are compared with it.
static INDEX: LazyLock<HashMap<&'static str, Rows>> = LazyLock::new(|| {
    let mut index: HashMap<&'static str, Rows> = HashMap::new();
    for it in names::NAMES {
        let rows = index.entry(it.name.rsplit('/').next().unwrap_or(it.name)).or_default();
        match it.kind {
            Kind::Folder | Kind::File => rows.whole = Some(it),
            Kind::Place => rows.places.push(it),
            Kind::Ending => {}
        }
    }
    index
});

/// The rows with one last name.
#[derive(Debug, Default)]
struct Rows {
    whole: Option<&'static Name>,
    places: Vec<&'static Name>,
}

/// A name as file systems compare it that ignore case, characters without a shape (HFS+, ext4 with `casefold`) or trailing
/// dots and blanks (FAT, NTFS): they open a protected file by such a name too. FAT and NTFS also have short names.
fn folded(name: Cow<'_, str>) -> Cow<'_, str> {
    let is_plain = |it: u8| it.is_ascii() && !it.is_ascii_uppercase() && it != b'~';
    if name.bytes().all(is_plain) && !name.ends_with(['.', ' ']) {
        return name;
    }
    let upper = name.chars().filter(|it| !is_ignorable(*it)).flat_map(char::to_uppercase);
    // By way of upper case, as `ſ` and `ﬁ` are folded to letters of ASCII in no other way.
    let folded: String = upper.flat_map(char::to_lowercase).collect();
    let folded = folded.trim_end_matches(['.', ' ']);
    Cow::Owned(if folded == "git~1" { ".git".to_owned() } else { folded.to_owned() })
}

/// Characters that Unicode calls default ignorable.
fn is_ignorable(it: char) -> bool {
    matches!(it,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fff8}' | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Whether a path with this last name can be protected at all. A symlink with the first name of a place leads to that place
/// too.
pub(super) fn may_be_protected(name: &OsStr, is_link: bool) -> bool {
    let name = folded(name.to_string_lossy());
    let begins = |it: &Name| it.kind == Kind::Place && it.name.split('/').next() == Some(&*name);
    INDEX.contains_key(&*name)
        || names::NAMES.iter().any(|it| it.kind == Kind::Ending && name.ends_with(it.name))
        || (is_link && names::NAMES.iter().any(begins))
}

/// The protected files and folders directly in a workspace that exist, as absolute paths without symlinks.
pub(super) fn existing(root: &Path) -> Vec<PathBuf> {
    let names = names::NAMES.iter().filter(|it| it.kind != Kind::Ending && it.name != ".git").map(|it| it.spelled);
    let firsts = Firsts::of(root);
    let paths = names.chain(IN_GIT).filter(|name| firsts.may_have(name)).map(|name| root.join(name));
    paths
        .filter(|path| path.symlink_metadata().is_ok())
        .filter(|path| path.canonicalize().is_ok_and(|real| real == *path))
        .collect()
}

/// The paths directly in a workspace at which a protected folder may stand, with the group of its files.
pub(super) fn folders(root: &Path) -> impl Iterator<Item = (PathBuf, Group)> {
    let of_table = names::NAMES.iter().filter(|it| matches!(it.kind, Kind::Folder | Kind::Place));
    let of_git = FOLDERS_IN_GIT.into_iter().map(|name| (name, Group::Git));
    let firsts = Firsts::of(root);
    let there = of_table.map(|it| (it.spelled, it.group)).chain(of_git).filter(move |(name, _)| firsts.may_have(name));
    there.map(|(name, group)| (root.join(name), group))
}

/// The names directly in a folder. The table has hundreds of paths, and most folders have few of them: one look at the folder
/// costs less than a system call for each. `None` means any name.
struct Firsts(Option<HashSet<String>>);

impl Firsts {
    /// In a folder with more names, a call for each path costs less.
    const MOST: usize = 2_000;

    fn of(folder: &Path) -> Firsts {
        // A folder that may not be read, or not to its end, may have any.
        let read = fs::read_dir(folder).and_then(|all| {
            all.take(Firsts::MOST + 1)
                .map(|it| Ok(folded(it?.file_name().to_string_lossy()).into_owned()))
                .collect::<io::Result<HashSet<String>>>()
        });
        Firsts(read.ok().filter(|names| names.len() <= Firsts::MOST))
    }

    /// Whether the path may stand there, by its first name.
    fn may_have(&self, path: &str) -> bool {
        let first = path.split('/').next().unwrap_or(path);
        self.0.as_ref().is_none_or(|names| names.contains(&*folded(first.into())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken build: the first name is compared without folding its case, or the names of the folder are cut.
    #[test]
    fn what_stands_in_a_workspace_is_found_by_its_first_name() {
        let root = tempfile::tempdir().expect("a folder");
        let root = root.path().canonicalize().expect("a folder");
        let add = |name: &str| {
            let path = root.join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("mkdir");
            fs::write(path, "x").expect("write");
        };
        add(".envrc");
        add(".github/workflows/ci.yml");
        add("src/main.rs");
        let wanted = [".envrc", ".github/workflows"].map(|it| root.join(it));
        let found = || {
            let mut found = existing(&root);
            found.sort();
            found
        };
        assert_eq!(found(), wanted);
        (0..Firsts::MOST).for_each(|n| add(&n.to_string()));
        assert_eq!(found(), wanted, "in a folder of many names");
        assert!(folders(&root).any(|(path, _)| path == wanted[1]));
    }

    /// Broken builds: `folded` only lowers; the group is that of another row.
    #[test]
    fn names_are_compared_as_any_file_system_would() {
        for (path, group) in [
            (".GIT/config", Group::Git),
            (".g\u{200c}it/hooks/x", Group::Git),
            ("sub/GIT~1/config", Group::Git),
            (".hu\u{17f}\u{212a}y/x", Group::Git),
            (".vscode. /tasks.json", Group::Editors),
            (".zshenv\u{feff}", Group::Shells),
            ("a/.GitHub/WorkFlows/x.yml", Group::Ci),
            ("agents.MD", Group::Agents),
            ("app.Code-Workspace", Group::Editors),
            ("x/JENKINSFILE", Group::Ci),
            (".cargo/con\u{fb01}g.toml", Group::Packages),
        ] {
            assert_eq!(group_of(Path::new(path)), Some(group), "{path}");
        }
        for path in
            ["", "src/main.rs", "gitt/config", "workflows/x.yml", ".github/CODEOWNERS", "Makefile", "conftest.py"]
        {
            assert_eq!(group_of(Path::new(path)), None, "{path}");
        }
    }
}
