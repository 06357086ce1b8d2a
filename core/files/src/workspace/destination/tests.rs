use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::*;
use crate::restore::tests::{adopted, undone};
use crate::workspace::{New, Replaced};

/// How often each writing method is called.
const TIMES: usize = 1_500;
const MINE: &str = "[core]\n\tbare = false\n";
/// What each call tries to write.
const EVIL: &str = "[core]\n\tfsmonitor = ./evil\n";

/// A workspace with a repository, one below, and settings of an editor, beside ordinary folders with the same names in them.
fn workspace() -> (tempfile::TempDir, Workspace) {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().join("app");
    for git in [".git", "sub/.git"] {
        for name in ["hooks", "objects", "refs", "info"] {
            fs::create_dir_all(root.join(git).join(name)).expect("mkdir");
        }
        fs::write(root.join(git).join("HEAD"), "ref: refs/heads/main\n").expect("write");
        fs::write(root.join(git).join("config"), MINE).expect("write");
        fs::write(root.join(git).join("hooks/config"), MINE).expect("write");
    }
    for plain in [".vscode", "hk", "sub/hk"] {
        fs::create_dir_all(root.join(plain)).expect("mkdir");
        fs::write(root.join(plain).join("config"), MINE).expect("write");
    }
    symlink(".git", root.join("to-git")).expect("a link");
    symlink(".vscode", root.join("to-vscode")).expect("a link");
    symlink("../.git", root.join("sub/to-git")).expect("a link");
    let workspace = Workspace::open(&root).expect("open");
    (folder, workspace)
}

/// What is exchanged for an ordinary folder: a symlink to a protected one, or that one itself.
const PAIRS: [(&str, &str); 7] = [
    ("hk", "to-git"),
    ("hk", "to-vscode"),
    ("sub/hk", "sub/to-git"),
    ("hk", ".git"),
    ("hk", ".git/hooks"),
    ("hk", ".vscode"),
    ("sub/hk", "sub/.git"),
];

/// Calls a writing method again and again while two folders are exchanged; returns how many calls wrote.
fn race(method: &mut dyn FnMut(&Workspace, &Inside) -> Result<bool>) -> usize {
    let mut written = 0;
    for (one, other) in PAIRS {
        let (_folder, workspace) = workspace();
        let (one, other) = (workspace.root().join(one), workspace.root().join(other));
        // By their handles, whatever their names are at the end.
        let protected: Vec<fs::File> = [".git", ".git/hooks", ".vscode", "sub/.git"]
            .map(|it| fs::File::open(workspace.root().join(it)).expect("a folder"))
            .into();
        let at = one.strip_prefix(workspace.root()).expect("below").join("config");
        let at = workspace.locate(at.to_str().expect("text")).expect("a path");
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let _ = renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE);
                }
            });
            for _ in 0..TIMES / PAIRS.len() {
                match method(&workspace, &at) {
                    Ok(is_written) => written += usize::from(is_written),
                    Err(e) => {
                        let is_told = [Code::FileChanged, Code::WriteFailed, Code::NotFound, Code::InputRequired]
                            .contains(&e.code);
                        assert!(is_told && !e.message.is_empty(), "{e:?}");
                    }
                }
            }
            stop.store(true, Ordering::Relaxed);
        });
        // Once nothing is exchanged any more, the method does what it is for, in one of the two states.
        for _ in 0..2 {
            written += usize::from(matches!(method(&workspace, &at), Ok(true)));
            let _ = renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE);
        }
        for folder in &protected {
            let config = rustix::fs::openat(folder, "config", rustix::fs::OFlags::RDONLY, rustix::fs::Mode::empty());
            // A folder of hooks may be without one.
            let Ok(config) = config else { panic!("a protected file was removed: {}", one.display()) };
            let text = std::io::read_to_string(fs::File::from(config)).expect("text");
            assert_eq!(text, MINE, "{} was exchanged for {}", one.display(), other.display());
        }
    }
    written
}

/// Replaces what is there.
fn put(workspace: &Workspace, to: &Destination, bytes: &str, mode: Option<u32>) -> Result<Replaced> {
    let _locked = workspace.lock(&[to], &|| false)?;
    let before = workspace.read_at(to)?;
    let before = before.as_ref().map(|before| before.bytes.as_slice());
    workspace.replace_at(to, &New { bytes: bytes.as_bytes(), mode, before, like: None })
}

/// Removes what is there.
fn remove(workspace: &Workspace, to: &Destination, folders: u32) -> Result<()> {
    let before = workspace.read_at(to)?;
    workspace.remove_at(to, folders, before.as_ref().map(|before| before.bytes.as_slice()))
}

/// Judges a destination as the gate does: a protected one is for the user to decide, who is not asked here.
fn judged(workspace: &Workspace, at: &Inside) -> Result<Option<Destination>> {
    workspace.destination(at).map(|to| Some(to).filter(|to| to.group().is_none()))
}

/// Broken builds: `hold` opens the folder by its path; `group_of_folder` knows no folder; `is_repository` is false.
#[test]
fn no_protected_file_is_replaced_while_folders_are_exchanged() {
    let mut replace = |workspace: &Workspace, at: &Inside| {
        let Some(to) = judged(workspace, at)? else { return Ok(false) };
        put(workspace, &to, EVIL, None).map(|_| true)
    };
    assert!(race(&mut replace) > 0, "nothing was written");
}

/// Broken build: `replace` takes the path for judged, and opens it with its symlinks.
#[test]
fn no_protected_file_is_replaced_by_a_path_that_is_taken_as_it_is() {
    let mut replace = |workspace: &Workspace, at: &Inside| workspace.replace(at, EVIL.as_bytes(), None).map(|_| true);
    assert!(race(&mut replace) > 0, "nothing was written");
}

/// Broken build: `remove_at` unlinks by the path.
#[test]
fn no_protected_file_is_removed_while_folders_are_exchanged() {
    let mut remove = |workspace: &Workspace, at: &Inside| {
        let Some(to) = judged(workspace, at)? else { return Ok(false) };
        remove(workspace, &to, 1)?;
        // The next call finds a file again.
        workspace.replace(at, MINE.as_bytes(), None).map(|_| true)
    };
    assert!(race(&mut remove) > 0, "nothing was removed");
}

/// Broken builds: `restore_one` resolves the path anew; `look` judges another path than the one that is written.
#[test]
fn no_undo_changes_a_protected_file_while_folders_are_exchanged() {
    let mut undo = |workspace: &Workspace, at: &Inside| {
        let is_done = undone(workspace, &at.display(), EVIL, MINE)?;
        // The next call finds what pixir left.
        workspace.replace(at, MINE.as_bytes(), None)?;
        Ok(is_done)
    };
    assert!(race(&mut undo) > 0, "nothing was undone");
}

/// Broken build: `carry_out` writes by the path that was planned.
#[test]
fn no_adoption_changes_a_protected_file_while_folders_are_exchanged() {
    let mut adopt = |workspace: &Workspace, at: &Inside| {
        let is_done = adopted(workspace, &at.display(), EVIL, MINE)?;
        workspace.replace(at, MINE.as_bytes(), None)?;
        Ok(is_done)
    };
    assert!(race(&mut adopt) > 0, "nothing was adopted");
}

/// Broken build: `replace_at` makes folders by their path.
#[test]
fn no_folder_is_made_in_a_protected_one_while_folders_are_exchanged() {
    let mut make = |workspace: &Workspace, at: &Inside| {
        let below = at.path.with_file_name("made").join("deep/x");
        let below = workspace.locate(below.to_str().expect("text"))?;
        let Some(to) = judged(workspace, &below)? else { return Ok(false) };
        put(workspace, &to, EVIL, None)?;
        remove(workspace, &to, 2).map(|()| true)
    };
    let made = race(&mut make);
    assert!(made > 0, "nothing was made");
}

/// Broken builds: an identity from an open folder differs from one by a path; a new folder has the identity of a removed one.
#[test]
fn a_protected_folder_is_known_by_any_name() {
    let (_folder, workspace) = workspace();
    let group = |path: &str| workspace.destination(&workspace.locate(path).expect(path)).expect(path).group();
    let root = workspace.root();
    assert_eq!((group("hk/x"), group("hk/new/deep/x"), group("x")), (None, None, None));
    fs::rename(root.join(".vscode"), root.join("v")).expect("rename");
    fs::rename(root.join(".git/hooks"), root.join("h")).expect("rename");
    fs::rename(root.join("sub/.git"), root.join("sub/g")).expect("rename");
    assert_eq!(group("v/tasks.json"), Some(Group::Editors));
    assert_eq!(group("h/pre-commit"), Some(Group::Git), "a folder of hooks, which looks like any other");
    assert_eq!(group("sub/g/new/x"), Some(Group::Git), "a repository, by what is in it");
    assert_eq!(group("sub/.git/config"), Some(Group::Git), "one that is not there yet");
    for n in 0..20 {
        fs::remove_dir_all(root.join("v")).expect("rm");
        fs::create_dir(root.join("v")).expect("mkdir");
        assert_eq!(group("v/x"), None, "{n}: a folder that may have the inode of one that is gone");
    }
}

/// Broken builds: `replace` follows the links of folders; a destination is the path that was given.
#[test]
fn a_link_to_a_folder_is_resolved_once_and_before_the_change_is_judged() {
    let (_folder, workspace) = workspace();
    let root = workspace.root();
    fs::create_dir(root.join("src")).expect("mkdir");
    symlink("src", root.join("s")).expect("a link");
    let at = workspace.locate("s/new/a").expect("a path");
    let to = workspace.destination(&at).expect("inside");
    assert_eq!((to.at().display(), to.given().display()), ("src/new/a".into(), "s/new/a".into()));
    let refused = workspace.replace(&at, b"x", None).expect_err("a link that was not judged");
    assert_eq!(refused.code, Code::FileChanged);
    // The link leads elsewhere now: what was judged is written.
    fs::remove_file(root.join("s")).expect("rm");
    symlink(".git", root.join("s")).expect("a link");
    assert_eq!(put(&workspace, &to, "x", None).expect("written").new_folders, 1);
    assert_eq!(fs::read(root.join("src/new/a")).expect("there"), b"x");
    // A folder that was judged is a link now.
    fs::remove_dir_all(root.join("src/new")).expect("rm");
    symlink("../.git", root.join("src/new")).expect("a link");
    let refused = put(&workspace, &to, "x", None).expect_err("a link");
    assert!(refused.message.contains("`src/new` is a symlink now") && refused.code == Code::FileChanged, "{refused:?}");
    assert!(!root.join(".git/a").exists());
    let dangling = workspace.locate("nowhere/a").expect("a path");
    symlink("nothing", root.join("nowhere")).expect("a link");
    assert_eq!(workspace.destination(&dangling).expect_err("it leads nowhere").code, Code::FileChanged);
}

/// Broken builds: a write goes into the file that is there; the mode of a program outside is given to the new file.
#[test]
fn a_file_with_two_names_is_replaced_under_one_of_them() {
    let (folder, workspace) = workspace();
    let root = workspace.root();
    let outside = folder.path().join("program");
    fs::write(&outside, "outside").expect("write");
    fs::set_permissions(&outside, fs::Permissions::from_mode(0o4755)).expect("chmod");
    fs::hard_link(&outside, root.join("tool")).expect("a link");
    fs::hard_link(root.join(".git/config"), root.join("notes")).expect("a link");
    for name in ["tool", "notes"] {
        let at = workspace.locate(name).expect("a path");
        let mode = workspace.read(&at).expect("read").mode;
        let to = workspace.destination(&at).expect("inside");
        let lost = put(&workspace, &to, "new", Some(mode)).expect("written").lost;
        assert_eq!(lost, [format!("{name} has another name (a hard link), which keeps the old content")]);
        assert_eq!(workspace.would_lose(&to), [] as [String; 0], "the new file has one name");
        assert_eq!(fs::read(root.join(name)).expect("there"), b"new");
    }
    let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o7777;
    assert_eq!((mode(&outside), mode(&root.join("tool"))), (0o4755, 0o755));
    assert_eq!(fs::read(&outside).expect("there"), b"outside");
    assert_eq!(fs::read_to_string(root.join(".git/config")).expect("there"), MINE);
}
