//! What git itself writes below its folder. It is a list of what may appear and change there: git finds a repository in any
//! folder that looks like one, so a list of dangerous names would never be whole.
//!
//! The layout is that of gitrepository-layout(5), with the state files of merges, rebases and bisections, git-lfs and rerere.

/// The part of git's folder that a folder is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// The folder itself.
    Top,
    /// A folder that looks like a repository without a work tree. It may be source, so only what runs is protected.
    Bare,
    /// `worktrees/NAME`: what git knows of a linked work tree.
    Record,
    Worktrees,
    Modules,
    Objects,
    /// `objects/ab`
    Fan,
    Packs,
    ObjectsInfo,
    Info,
    Refs,
    Logs,
    Reftable,
    /// A merge, rebase or sequence that goes on.
    State,
    /// Files that nothing in git runs or follows.
    Data,
}

/// What a name is, in its part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Name {
    /// Git writes it, and runs nothing because of it.
    Plain,
    /// The same, if its text is that of a reference.
    IfReference,
    /// The same, if its text is that of a log of references.
    IfLog,
    /// A folder of this part.
    Folder(Part),
    /// It runs code, leads elsewhere, or is none of git's files.
    Guarded,
}

/// The kind of an entry of a folder, without following symlinks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Entry {
    Folder,
    File,
    Other,
}

/// Files of a work tree's own state.
const STATE: [&str; 28] = [
    "HEAD",
    "ORIG_HEAD",
    "FETCH_HEAD",
    "MERGE_HEAD",
    "MERGE_MODE",
    "MERGE_MSG",
    "MERGE_RR",
    "MERGE_AUTOSTASH",
    "AUTO_MERGE",
    "CHERRY_PICK_HEAD",
    "REVERT_HEAD",
    "REBASE_HEAD",
    "BISECT_HEAD",
    "BISECT_START",
    "BISECT_LOG",
    "BISECT_NAMES",
    "BISECT_TERMS",
    "BISECT_EXPECTED_REV",
    "BISECT_ANCESTORS_OK",
    "BISECT_FIRST_PARENT",
    "SQUASH_MSG",
    "COMMIT_EDITMSG",
    "TAG_EDITMSG",
    "NOTES_EDITMSG",
    "NOTES_MERGE_PARTIAL",
    "NOTES_MERGE_REF",
    "index",
    "locked",
];
/// Files of the folder that all work trees share.
const SHARED: [&str; 8] =
    ["packed-refs", "packed-refs.new", "shallow", "gc.log", "gc.pid", "description", "index.stash", "ORIG_HEAD"];

impl Part {
    /// What an entry of this name and kind is.
    pub(super) fn name(self, name: &str, entry: Entry) -> Name {
        if entry == Entry::Other {
            return Name::Guarded;
        }
        let is_folder = entry == Entry::Folder;
        match self {
            Part::Top | Part::Bare | Part::Record => self.name_of_top(name, is_folder),
            Part::Worktrees if is_folder => Name::Folder(Part::Record),
            // Whether it is a submodule or a folder on the way to one is seen by its HEAD.
            Part::Modules if is_folder => Name::Folder(Part::Modules),
            Part::Objects => match name {
                "pack" if is_folder => Name::Folder(Part::Packs),
                "info" if is_folder => Name::Folder(Part::ObjectsInfo),
                "maintenance.lock" if !is_folder => Name::Plain,
                _ if is_folder && is_hex(name, &[2]) => Name::Folder(Part::Fan),
                _ if is_folder && is_temporary(name) => Name::Folder(Part::Objects),
                _ if !is_folder && is_temporary(name) => Name::Plain,
                _ => Name::Guarded,
            },
            Part::Fan if !is_folder && (is_hex(name, &[38, 62]) || is_temporary(name)) => Name::Plain,
            Part::Packs => match name {
                "multi-pack-index.d" if is_folder => Name::Folder(Part::Data),
                _ if is_folder => Name::Guarded,
                _ if is_temporary(name) => Name::Plain,
                _ if ["pack-", "multi-pack-index", "loose-"].iter().any(|start| name.starts_with(start)) => Name::Plain,
                _ => Name::Guarded,
            },
            Part::ObjectsInfo => match (name, is_folder) {
                ("commit-graphs", true) => Name::Folder(Part::Data),
                ("packs" | "commit-graph" | "commit-graph.lock", false) => Name::Plain,
                (name, false) if is_temporary(name) => Name::Plain,
                _ => Name::Guarded,
            },
            Part::Info => match (name.trim_end_matches(".lock"), is_folder) {
                ("exclude" | "refs" | "sparse-checkout", false) => Name::Plain,
                (name, false) if name.starts_with("refs_") => Name::Plain,
                _ => Name::Guarded,
            },
            Part::Refs => {
                if is_folder {
                    Name::Folder(Part::Refs)
                } else {
                    Name::IfReference
                }
            }
            Part::Logs => {
                if is_folder {
                    Name::Folder(Part::Logs)
                } else {
                    Name::IfLog
                }
            }
            Part::Reftable => {
                let is_table = name == "tables.list" || [".ref", ".log", ".lock"].iter().any(|end| name.ends_with(end));
                if !is_folder && (is_table || is_temporary(name)) { Name::Plain } else { Name::Guarded }
            }
            // Their texts are judged: they may name commands.
            Part::State if !is_folder && is_instruction(name) => Name::Guarded,
            Part::State | Part::Data => match name {
                "HEAD" | "config" | "config.worktree" | "commondir" | "gitdir" | "hooks" | ".git" => Name::Guarded,
                _ if is_folder => Name::Folder(Part::Data),
                _ => Name::Plain,
            },
            Part::Fan | Part::Worktrees | Part::Modules => Name::Guarded,
        }
    }

    fn name_of_top(self, name: &str, is_folder: bool) -> Name {
        let is_record = self == Part::Record;
        if is_folder {
            return match name {
                "logs" => Name::Folder(Part::Logs),
                "refs" => Name::Folder(Part::Refs),
                "rebase-merge" | "rebase-apply" | "sequencer" => Name::Folder(Part::State),
                "modules" => Name::Folder(Part::Modules),
                "reftable" => Name::Folder(Part::Reftable),
                "objects" if !is_record => Name::Folder(Part::Objects),
                "info" if !is_record => Name::Folder(Part::Info),
                "worktrees" if !is_record => Name::Folder(Part::Worktrees),
                "lfs" | "rr-cache" | "fsmonitor--daemon" if !is_record => Name::Folder(Part::Data),
                "hooks" => Name::Guarded,
                _ if self == Part::Bare => Name::Plain,
                _ => Name::Guarded,
            };
        }
        let unlocked = name.trim_end_matches(".lock");
        let is_own = |names: &[&str]| names.contains(&name) || names.contains(&unlocked);
        // An editor's copy of a message, and what a watcher of files makes to see itself.
        let is_editors = (name.starts_with('.') && name.contains(".sw")) || name.ends_with('~');
        let is_editors = is_editors || name.starts_with(".watchman-cookie-");
        match name {
            _ if is_own(&STATE) || is_editors => Name::Plain,
            _ if ["sharedindex.", "next-index-", "index.stash."].iter().any(|start| name.starts_with(start)) => {
                Name::Plain
            }
            _ if !is_record && is_own(&SHARED) => Name::Plain,
            _ if is_record || NOT_FILES.contains(&unlocked) => Name::Guarded,
            // Git reads no other file here, and a hook of the user may leave its marks.
            _ => Name::Plain,
        }
    }
}

/// Names of settings, and of folders, which a file must not take.
const NOT_FILES: [&str; 13] = [
    "config",
    "config.worktree",
    "commondir",
    "gitdir",
    "hooks",
    "info",
    "objects",
    "refs",
    "modules",
    "worktrees",
    "branches",
    "remotes",
    "logs",
];

/// Files of a rebase or a sequence of which a text may name a command, or is read as a setting.
pub(super) fn is_instruction(name: &str) -> bool {
    let name = name.trim_end_matches(".lock");
    ["git-rebase-todo", "git-rebase-todo.backup", "done", "todo", "strategy", "strategy_opts", "author-script", "opts"]
        .contains(&name)
}

/// Whether such a text starts no command.
pub(super) fn starts_nothing(name: &str, text: &str) -> bool {
    match name.trim_end_matches(".lock") {
        "strategy" => ["ort", "recursive", "resolve", "octopus", "ours", "subtree"].contains(&text.trim()),
        // Git reads them as options of a merge, and starts nothing because of them.
        "strategy_opts" | "opts" => true,
        "author-script" => text.lines().all(|line| {
            let value = ["GIT_AUTHOR_NAME='", "GIT_AUTHOR_EMAIL='", "GIT_AUTHOR_DATE='"];
            let value = value.iter().find_map(|start| line.strip_prefix(start)).and_then(|it| it.strip_suffix('\''));
            value.is_some_and(|it| !it.replace("'\\''", "").contains('\''))
        }),
        _ => text.lines().map(str::trim_start).all(|line| {
            let word = line.split(char::is_whitespace).next().unwrap_or_default();
            line.is_empty() || line.starts_with('#') || COMMANDS.contains(&word)
        }),
    }
}

/// The commands of a list of a rebase, but for `exec`, which runs a line of shell.
const COMMANDS: [&str; 24] = [
    "pick",
    "p",
    "revert",
    "reword",
    "r",
    "edit",
    "e",
    "squash",
    "s",
    "fixup",
    "f",
    "break",
    "b",
    "drop",
    "d",
    "label",
    "l",
    "reset",
    "t",
    "merge",
    "m",
    "update-ref",
    "u",
    "noop",
];

/// Whether a text is that of a reference: a hash, or the name of another reference.
pub(super) fn is_reference(text: &[u8]) -> bool {
    let text = text.trim_ascii_end();
    let is_name = |it: &[u8]| it.iter().all(|byte| !byte.is_ascii_control());
    text.is_empty() || is_hash(text) || text.strip_prefix(b"ref: refs/").is_some_and(is_name)
}

/// Whether a text begins as a log of references does.
pub(super) fn is_log(text: &[u8]) -> bool {
    let mut words = text.split(|byte| *byte == b' ');
    text.is_empty() || (words.next().is_some_and(is_hash) && words.next().is_some_and(is_hash))
}

/// Whether the text of `gitdir` or `commondir` is one that git writes for a linked work tree.
pub(super) fn is_record(name: &str, text: &[u8]) -> bool {
    match name {
        "commondir" => text == b"../..\n",
        _ => text.strip_suffix(b"/.git\n").is_some_and(|it| !it.contains(&b'\n')),
    }
}

fn is_hash(text: &[u8]) -> bool {
    [40, 64].contains(&text.len()) && text.iter().all(u8::is_ascii_hexdigit)
}

fn is_hex(name: &str, lengths: &[usize]) -> bool {
    lengths.contains(&name.len()) && name.bytes().all(|it| it.is_ascii_hexdigit())
}

fn is_temporary(name: &str) -> bool {
    ["tmp_", ".tmp-", "incoming-", "tmp-"].iter().any(|start| name.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken build: one of the names is taken for git's.
    #[test]
    fn below_git_only_what_git_writes_may_appear() {
        let file = |part: Part, name: &str| part.name(name, Entry::File);
        for (part, name) in [
            (Part::Top, "config"),
            (Part::Top, "config.worktree"),
            (Part::Top, "commondir"),
            (Part::Top, "config.lock"),
            (Part::Record, "x"),
            (Part::Record, "config"),
            (Part::Record, "config.worktree"),
            (Part::Worktrees, "config"),
            (Part::Modules, "config"),
            (Part::Objects, "config"),
            (Part::Fan, "HEAD"),
            (Part::Packs, "hook"),
            (Part::ObjectsInfo, "alternates"),
            (Part::Info, "attributes"),
            (Part::Info, "grafts"),
            (Part::State, "git-rebase-todo"),
            (Part::Data, "config"),
            (Part::Bare, "config"),
        ] {
            assert_eq!(file(part, name), Name::Guarded, "{part:?} {name}");
        }
        for (part, name) in [(Part::Top, "hooks"), (Part::Top, "x"), (Part::Record, "objects"), (Part::Objects, "x")] {
            assert_eq!(part.name(name, Entry::Folder), Name::Guarded, "{part:?} {name}/");
        }
        for (part, name) in [(Part::Top, "HEAD"), (Part::Objects, "ab"), (Part::Fan, "x")] {
            assert_eq!(part.name(name, Entry::Other), Name::Guarded, "{part:?} {name} as a symlink");
        }
        for (part, name) in [
            (Part::Top, "index.lock"),
            (Part::Top, "COMMIT_EDITMSG"),
            (Part::Top, "packed-refs"),
            (Part::Top, "checked-by-a-hook"),
            (Part::Record, "HEAD"),
            (Part::Packs, "pack-1.idx"),
            (Part::Info, "exclude"),
            (Part::State, "msgnum"),
        ] {
            assert_eq!(file(part, name), Name::Plain, "{part:?} {name}");
        }
    }

    /// Broken build: a list of a rebase may hold `exec`.
    #[test]
    fn the_files_of_a_rebase_name_no_command() {
        let todo = |text: &str| starts_nothing("git-rebase-todo", text);
        assert!(todo("pick 1234 text\n# exec in a remark\nmerge -C 12 x\nupdate-ref refs/heads/x\n\n"));
        for text in ["exec make\n", "x make\n", "pick 1\n  exec make\n", "exec\tmake\n", "EXEC make\n"] {
            assert!(!todo(text), "{text}");
        }
        assert!(starts_nothing("author-script", "GIT_AUTHOR_NAME='O'\\''Neil'\nGIT_AUTHOR_DATE='@1 +0'\n"));
        assert!(!starts_nothing("author-script", "GIT_AUTHOR_NAME='a'; touch x; b='\n"));
        assert!(starts_nothing("strategy", "ort\n") && !starts_nothing("strategy", "../../x\n"));
    }

    #[test]
    fn references_and_their_logs_are_known_by_their_texts() {
        let hash = "0123456789abcdef0123456789abcdef01234567";
        assert!(is_reference(format!("{hash}\n").as_bytes()) && is_reference(b"ref: refs/heads/main\n"));
        assert!(!is_reference(b"[core]\nfsmonitor = x\n") && !is_reference(b"ref: refs/x\n[core]\n"));
        assert!(is_log(format!("{hash} {hash} a <b> 1 +0\tx\n").as_bytes()) && !is_log(b"[core]\n"));
        assert!(is_record("commondir", b"../..\n") && !is_record("commondir", b"/evil\n"));
        assert!(is_record("gitdir", b"/a/b/.git\n") && !is_record("gitdir", b"/a/b\n"));
    }
}
