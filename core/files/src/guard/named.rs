//! Files that protected files name: git runs or reads them because of its settings, and agents read them because instructions
//! import them. They are protected as the files are that name them.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::item::Items;
use super::records::lexical;
use protocol::protected::Group;
use storage::regular;

/// Keys of git whose value is a path, of a folder of hooks or a file of settings.
const PATHS: [&str; 4] = ["hookspath", "path", "attributesfile", "templatedir"];
/// Keys of git whose value is a command.
const COMMANDS: [&str; 14] = [
    "fsmonitor",
    "sshcommand",
    "editor",
    "pager",
    "gitproxy",
    "askpass",
    "external",
    "clean",
    "smudge",
    "process",
    "driver",
    "textconv",
    "helper",
    "program",
];
/// Files of instructions for agents, in lower case.
const INSTRUCTIONS: [&str; 4] = ["agents.md", "claude.md", "gemini.md", "agents.override.md"];
/// How deep imports are followed, as agents do.
const DEEPEST: usize = 5;
/// The most imported files.
const MOST: usize = 200;

/// What the settings and instructions directly in a workspace name, as it was last read.
#[derive(Debug, Default)]
pub(crate) struct Named {
    /// Inode, size and time of each file that was read.
    stamps: Vec<Option<[i64; 4]>>,
    paths: Vec<(PathBuf, Group)>,
}

impl Named {
    /// The group of a path that is named, or lies in a folder that is named.
    pub(crate) fn group_of(&mut self, root: &Path, path: &Path) -> Option<Group> {
        let stamps: Vec<_> = SOURCES.iter().map(|name| stamp(&root.join(name))).collect();
        if stamps != self.stamps {
            *self = Named { paths: Named::read(root), stamps };
        }
        self.paths.iter().find(|(named, _)| path.starts_with(named)).map(|it| it.1)
    }

    fn read(root: &Path) -> Vec<(PathBuf, Group)> {
        let own = Repository { git: root.join(".git"), tree: root.to_owned() };
        let of_git = by_settings(root, &[own], &[]).into_iter().map(|path| (path, Group::Git));
        let texts = SOURCES[1..].iter().filter_map(|name| {
            let text = regular::read_to_string(&root.join(name)).ok()?;
            Some((PathBuf::from(name), text))
        });
        let of_agents = imported(root, texts.collect()).into_iter().map(|path| (path, Group::Agents));
        of_git.chain(of_agents).collect()
    }
}

/// The files directly in a workspace that name others.
const SOURCES: [&str; 4] = [".git/config", "AGENTS.md", "CLAUDE.md", "GEMINI.md"];

fn stamp(path: &Path) -> Option<[i64; 4]> {
    let it = std::fs::symlink_metadata(path).ok()?;
    let number = |it: u64| i64::try_from(it).unwrap_or(i64::MAX);
    Some([number(it.ino()), number(it.len()), it.ctime(), it.ctime_nsec()])
}

/// A repository: the folder of git, and the work tree that its settings are about.
pub(super) struct Repository {
    pub(super) git: PathBuf,
    pub(super) tree: PathBuf,
}

/// Paths of the workspace that the settings of these repositories, or the user's own settings of git, name.
pub(super) fn by_settings(root: &Path, repositories: &[Repository], settings: &[PathBuf]) -> Vec<PathBuf> {
    let mut named = BTreeSet::new();
    for Repository { git, tree } in repositories {
        let own = ["config", "config.worktree"].map(|name| git.join(name));
        let mut left: Vec<PathBuf> = own.into_iter().chain(settings.iter().cloned()).collect();
        let mut read = BTreeSet::new();
        while let Some(file) = left.pop() {
            if !read.insert(file.clone()) || read.len() > MOST {
                continue;
            }
            let Ok(text) = regular::read_to_string(&file) else { continue };
            for (key, value) in pairs(&text) {
                if PATHS.contains(&key.as_str()) {
                    // An included file stands relative to the file that includes it; hooks relative to the work tree.
                    let above = if key == "path" { file.parent().unwrap_or(tree) } else { tree };
                    if let Some(inside) = inside(root, &above.join(value)) {
                        if key == "path" {
                            left.push(root.join(&inside));
                        }
                        named.insert(inside);
                    }
                } else if COMMANDS.contains(&key.as_str()) || value.starts_with('!') {
                    named.extend(of_command(root, tree, value));
                }
            }
        }
    }
    named.into_iter().collect()
}

/// Files of the workspace that instructions import with `@path`, and those that these import.
pub(super) fn by_instructions(root: &Path, items: &Items) -> Vec<PathBuf> {
    let is_instruction = |path: &Path| {
        path.file_name().is_some_and(|it| INSTRUCTIONS.contains(&it.to_string_lossy().to_lowercase().as_str()))
    };
    let texts = items.all.iter().filter(|(path, _)| is_instruction(path));
    let texts = texts.filter_map(|(path, item)| Some((path.clone(), item.text()?.to_owned())));
    let named = imported(root, texts.collect());
    named.into_iter().filter(|it| !items.all.contains_key(it)).collect()
}

/// The files of the workspace that these texts import, and those that these import.
fn imported(root: &Path, texts: Vec<(PathBuf, String)>) -> BTreeSet<PathBuf> {
    let mut left: Vec<(PathBuf, String, usize)> = texts.into_iter().map(|(path, text)| (path, text, 0)).collect();
    let mut named = BTreeSet::new();
    while let Some((path, text, depth)) = left.pop() {
        let above = root.join(path.parent().unwrap_or(Path::new("")));
        for imported in imports(&text) {
            let Some(inside) = inside(root, &above.join(imported)) else { continue };
            let is_text = is_prose(&inside) && root.join(&inside).is_file();
            if !is_text || named.len() >= MOST || !named.insert(inside.clone()) {
                continue;
            }
            if depth + 1 < DEEPEST
                && let Ok(text) = regular::read_to_string(&root.join(&inside))
            {
                left.push((inside, text, depth + 1));
            }
        }
    }
    named
}

/// Whether a file holds text for readers, by its name. Instructions also mention files of data and source, which commands
/// change every day.
fn is_prose(path: &Path) -> bool {
    let ending = path.extension().map(|it| it.to_string_lossy().to_lowercase());
    ending.is_none_or(|it| ["md", "mdc", "mdx", "markdown", "txt", "rst", "adoc"].contains(&it.as_str()))
}

/// The imports of a text, as agents write them: a word that begins with `@`.
fn imports(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| c.is_whitespace() || matches!(c, '(' | ')' | '"' | '`' | ','));
    words
        .filter_map(|word| word.strip_prefix('@'))
        .map(|it| it.trim_end_matches(['.', ':', ';']))
        .filter(|it| !it.is_empty())
}

/// The files of the workspace that a command of git's settings runs or reads, as far as its words tell.
fn of_command(root: &Path, tree: &Path, command: &str) -> Vec<PathBuf> {
    let words = command.trim_start_matches('!').split_whitespace().map(|it| it.trim_matches(['"', '\'']));
    let there = words.filter(|it| it.contains('/')).filter_map(|it| inside(root, &tree.join(it)));
    there.filter(|it| root.join(it).symlink_metadata().is_ok()).collect()
}

/// Each key without its section, in lower case, and its value.
fn pairs(text: &str) -> impl Iterator<Item = (String, &str)> {
    text.lines().filter_map(|line| {
        // A key may stand on the line of its section.
        let line = line.trim();
        let line = if line.starts_with('[') { line.split_once(']')?.1.trim() } else { line };
        let (key, value) = line.split_once('=')?;
        Some((key.trim().to_lowercase(), value.trim().trim_matches('"')))
    })
}

/// The path relative to the root, if it lies in it and is not the root itself.
fn inside(root: &Path, path: &Path) -> Option<PathBuf> {
    let inside = lexical(path).strip_prefix(root).ok()?.to_owned();
    (!inside.as_os_str().is_empty() && !inside.starts_with(".git")).then_some(inside)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken builds: a relative path of an included file is taken from the wrong folder; a key on its section's line is missed.
    #[test]
    fn what_the_settings_of_git_name_in_the_workspace_is_known() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().canonicalize().expect("a folder");
        std::fs::create_dir_all(root.join(".git")).expect("mkdir");
        std::fs::create_dir_all(root.join("tools")).expect("mkdir");
        let write = |name: &str, text: &str| std::fs::write(root.join(name), text).expect("write");
        write("tools/pager", "");
        write("extra.ini", "[diff \"x\"]\n\ttextconv = ./tools/show x\n");
        write("tools/show", "");
        write(
            ".git/config",
            "[core]\n\thooksPath = .githooks\n[include] path = ../extra.ini\n[core] pager = \"tools/pager -x\"\n[alias]\n\tl = log\n",
        );
        let global = root.join("tools/gitconfig");
        std::fs::write(&global, "[core]\n\tattributesFile = attributes\n\teditor = /usr/bin/vi\n").expect("write");
        let repositories = [Repository { git: root.join(".git"), tree: root.clone() }];
        let named = by_settings(&root, &repositories, &[global]);
        let wanted = [".githooks", "attributes", "extra.ini", "tools/pager", "tools/show"];
        assert_eq!(named, wanted.map(PathBuf::from));
    }

    #[test]
    fn imports_are_words_that_begin_with_an_at_sign() {
        let text = "Read @docs/style.md, and (@a.md). Mail me@b.c; see `@x/y.md`:";
        assert_eq!(imports(text).collect::<Vec<_>>(), ["docs/style.md", "a.md", "x/y.md"]);
    }
}
