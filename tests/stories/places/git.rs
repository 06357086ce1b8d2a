//! Repositories whose `.git` is not a plain folder of the workspace: git works as in a plain one. What leads to a repository that
//! does not know the workspace is shown, and asked about once.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::{Turn, bash, git, turn};
use crate::shell::{Shell, figures};

/// Makes a repository with one commit.
fn repository(at: &Path) {
    fs::create_dir_all(at).expect("mkdir");
    git(at, &["init", "-q"]);
    fs::write(at.join("a.txt"), "alpha\n").expect("write");
    git(at, &["add", "."]);
    git(at, &["commit", "-qm", "first"]);
}

/// Makes a workspace in this folder, and returns it.
type Makes = fn(&Path) -> PathBuf;

/// Repositories that know of the workspace.
const KNOWN: [(&str, Makes); 6] = [
    ("a plain repository", |at| {
        repository(&at.join("plain"));
        at.join("plain")
    }),
    ("a submodule", |at| {
        repository(&at.join("lib"));
        repository(&at.join("super"));
        git(&at.join("super"), &["submodule", "add", "-q", "../lib", "sub"]);
        at.join("super/sub")
    }),
    ("a submodule of a submodule", |at| {
        repository(&at.join("lib"));
        repository(&at.join("middle"));
        git(&at.join("middle"), &["submodule", "add", "-q", "../lib", "lib"]);
        git(&at.join("middle"), &["commit", "-qm", "lib"]);
        repository(&at.join("super"));
        git(&at.join("super"), &["submodule", "add", "-q", "../middle", "m"]);
        git(&at.join("super"), &["submodule", "update", "-q", "--init", "--recursive"]);
        at.join("super/m/lib")
    }),
    ("a linked work tree", |at| {
        repository(&at.join("main"));
        git(&at.join("main"), &["worktree", "add", "-q", "../linked", "-b", "other"]);
        at.join("linked")
    }),
    ("a linked work tree of a bare repository", |at| {
        repository(&at.join("origin"));
        git(at, &["clone", "-q", "--bare", "origin", "project/.bare"]);
        git(&at.join("project/.bare"), &["worktree", "add", "-q", "../feature", "-b", "feature"]);
        at.join("project/feature")
    }),
    ("a folder of a repository", |at| {
        repository(at);
        fs::create_dir(at.join("part")).expect("mkdir");
        fs::write(at.join("part/a.txt"), "alpha\n").expect("write");
        git(at, &["add", "."]);
        git(at, &["commit", "-qm", "part"]);
        at.join("part")
    }),
];

/// Repositories that lead to one that does not know of the workspace, each with a folder that the question names.
const LEADING: [(&str, &str, Makes); 6] = [
    ("objects of another repository", "main/.git/objects", |at| {
        repository(&at.join("main"));
        git(at, &["clone", "-q", "--shared", "main", "shared"]);
        at.join("shared")
    }),
    ("objects of a repository that borrows them too", "main/.git/objects", |at| {
        repository(&at.join("main"));
        git(at, &["clone", "-q", "--shared", "main", "middle"]);
        git(at, &["clone", "-q", "--shared", "middle", "shared"]);
        at.join("shared")
    }),
    ("a folder of git elsewhere", "elsewhere.git", |at| {
        repository(&at.join("main"));
        git(at, &["clone", "-q", "--separate-git-dir=elsewhere.git", "main", "separate"]);
        at.join("separate")
    }),
    ("a checkout of repo, with symlinks", "projects/p.git", |at| {
        let tree = repo_checkout(at);
        fs::create_dir_all(tree.join(".git")).expect("mkdir");
        for name in ["config", "description", "hooks", "info", "logs", "objects", "packed-refs", "refs"] {
            symlink(Path::new("../../.repo/projects/p.git").join(name), tree.join(".git").join(name))
                .expect("a symlink");
        }
        fs::copy(at.join(".repo/projects/p.git/HEAD"), tree.join(".git/HEAD")).expect("copy");
        git(&tree, &["reset", "-q", "--hard"]);
        tree
    }),
    ("a checkout of repo, whose .git is a symlink", "projects/p.git", |at| {
        let tree = repo_checkout(at);
        symlink("../.repo/projects/p.git", tree.join(".git")).expect("a symlink");
        git(&tree, &["reset", "-q", "--hard"]);
        tree
    }),
    ("a work tree by git-new-workdir", "main/.git", |at| {
        repository(&at.join("main"));
        let tree = at.join("tree");
        fs::create_dir_all(tree.join(".git")).expect("mkdir");
        for name in ["config", "refs", "logs", "objects", "info", "hooks", "packed-refs"] {
            symlink(at.join("main/.git").join(name), tree.join(".git").join(name)).expect("a symlink");
        }
        fs::copy(at.join("main/.git/HEAD"), tree.join(".git/HEAD")).expect("copy");
        git(&tree, &["reset", "-q", "--hard"]);
        tree
    }),
];

/// What `repo init && repo sync` leaves of a project, but for its work tree, which is returned.
fn repo_checkout(at: &Path) -> PathBuf {
    repository(&at.join("origin"));
    let (objects, project) = (at.join(".repo/project-objects/p.git"), at.join(".repo/projects/p.git"));
    fs::create_dir_all(at.join(".repo/projects")).expect("mkdir");
    git(at, &["clone", "-q", "--bare", "origin", ".repo/project-objects/p.git"]);
    git(at, &["clone", "-q", "--bare", "origin", ".repo/projects/p.git"]);
    git(&project, &["config", "core.bare", "false"]);
    fs::create_dir_all(project.join("logs")).expect("mkdir");
    fs::remove_dir_all(project.join("objects")).expect("rm");
    symlink("../../project-objects/p.git/objects", project.join("objects")).expect("a symlink");
    assert!(objects.join("objects").is_dir());
    let tree = at.join("p");
    fs::create_dir(&tree).expect("mkdir");
    tree
}

/// What a user and a model do with a repository.
fn works(shell: &Shell, tree: &Path, what: &str) {
    let commit =
        "git add -A && git -c user.name=a -c user.email=a@example.com commit -qm second && git log --oneline | head -1";
    let calls = [
        bash("git status --short && git log --oneline | tail -1"),
        ("edit", json!({ "path": "a.txt", "old_text": "alpha", "new_text": "omega" })),
        bash("git diff --stat"),
        bash(commit),
        bash("git status --short | wc -l; git fsck 2>&1 | grep -c missing || true"),
    ];
    let turn = turn(shell, tree, &calls);
    turn.assert_worked();
    assert!(turn.outputs[0].contains("first"), "{what}: {turn:#?}");
    assert!(turn.outputs[2].contains("1 file changed"), "{what}: {turn:#?}");
    assert!(turn.outputs[3].contains("second"), "{what}: {turn:#?}");
    assert!(turn.outputs[4].starts_with("0\n0\n"), "{what}: {turn:#?}");
    assert!(git(tree, &["log", "--oneline", "-1"]).contains("second"), "{what}");
    assert_eq!(git(tree, &["status", "--short"]), "", "{what}");
}

/// Broken builds (ce783d9e): a submodule is "not a git repository"; a work tree of a bare repository is refused.
#[test]
fn git_works_where_the_repository_knows_the_workspace() {
    for (what, makes) in KNOWN {
        let shell = Shell::new(&[]);
        let tree = makes(&shell.workspace().canonicalize().expect("a folder"));
        works(&shell, &tree, what);
        // What only reads needs no question, as in a plain repository.
        let script = super::script(&shell, &[bash("git status --short"), bash("git log --oneline"), bash("git diff")]);
        let args = ["--headless", "--format", "jsonl", "--provider", &script, "go"];
        let asked = Turn::of(shell.command(args).current_dir(&tree));
        asked.assert_worked();
    }
    figures(&format!("repositories that know the workspace: {} kinds", KNOWN.len()));
}

/// Broken builds: programs see every repository that a `.git` names (a hostile one reads another's history); trust of one is trust
/// of the next.
#[test]
fn git_works_elsewhere_once_the_user_trusts_where_it_leads() {
    for (what, named, makes) in LEADING {
        let shell = Shell::new(&[]);
        let tree = makes(&shell.workspace().canonicalize().expect("a folder"));
        let before = turn(&shell, &tree, &[bash("git status --short && git log --oneline")]);
        assert!(!before.outputs[0].contains("first"), "{what}: {before:#?}");
        let note = "commands see that once the user trusts the workspace";
        assert!(before.outputs[0].contains(note) && before.outputs[0].contains(named), "{what}: {before:#?}");
        let trust =
            |args: &[&str]| crate::shell::ran(shell.command(args).current_dir(&tree).output().expect("it runs"));
        let shown = trust(&["trust", "--dry-run", "--json"]);
        let contribution = &shown.document()["contributions"][0];
        assert_eq!(
            (&contribution["kind"], &contribution["path"]),
            (&json!("repository"), &json!(".git")),
            "{what}: {shown:?}"
        );
        assert!(contribution["about"].as_str().is_some_and(|it| it.contains(named)), "{what}: {shown:?}");
        assert_eq!(trust(&["trust"]).code, 0, "{what}");
        works(&shell, &tree, what);
        // It is asked once, and again when it leads elsewhere.
        assert_eq!(
            trust(&["trust", "--dry-run", "--json"]).document()["contributions"][0]["standing"]["is"],
            "in_force",
            "{what}"
        );
    }
    figures(&format!("repositories that lead elsewhere: {} kinds", LEADING.len()));
}

/// Trust of where a repository leads ends when it leads elsewhere, and never covers a home folder.
///
/// Broken builds: trust is by the name `.git` alone; a home folder is shown to programs.
#[test]
fn trust_of_a_repository_does_not_follow_it_elsewhere() {
    let shell = Shell::new(&[]);
    let at = shell.workspace().canonicalize().expect("a folder");
    let tree = LEADING[0].2(&at);
    let trust = |args: &[&str]| crate::shell::ran(shell.command(args).current_dir(&tree).output().expect("it runs"));
    assert_eq!(trust(&["trust"]).code, 0);
    repository(&at.join("private"));
    let secret = git(&at.join("private"), &["rev-parse", "HEAD"]);
    fs::write(tree.join(".git/objects/info/alternates"), format!("{}\n", at.join("private/.git/objects").display()))
        .expect("write");
    fs::create_dir_all(at.join("home/.ssh")).expect("mkdir");
    let led = turn(&shell, &tree, &[bash(&format!("git cat-file -p {}", secret.trim()))]);
    assert!(!led.outputs[0].contains("author"), "{led:#?}");
    assert_eq!(trust(&["trust", "--dry-run", "--json"]).document()["contributions"][0]["standing"]["is"], "changed");
    fs::write(tree.join(".git/objects/info/alternates"), format!("{}\n", at.join("home").display())).expect("write");
    assert_eq!(trust(&["trust", "--dry-run", "--json"]).document()["contributions"][0]["standing"]["is"], "unusable");
}

/// In a folder that may not be written, what reads works, and what writes says why not.
///
/// Broken build: a command fails for the sandbox.
#[test]
fn a_repository_that_is_read_only_is_read() {
    use std::os::unix::fs::PermissionsExt as _;
    let shell = Shell::new(&[]);
    let at = shell.workspace().canonicalize().expect("a folder");
    repository(&at.join("closed"));
    let set = |mode: u32| {
        for folder in [at.join("closed"), at.join("closed/.git")] {
            fs::set_permissions(folder, fs::Permissions::from_mode(mode)).expect("chmod");
        }
    };
    set(0o555);
    let calls = [
        bash("git status --short && git log --oneline"),
        bash("git commit --allow-empty -m x; echo b > b.txt"),
        ("read", json!({ "path": "a.txt" })),
    ];
    let turn = turn(&shell, &at.join("closed"), &calls);
    set(0o755);
    assert!(turn.outputs[0].contains("first") && turn.outputs[2].contains("alpha"), "{turn:#?}");
    assert!(turn.outputs[1].contains("Permission denied"), "{turn:#?}");
}
