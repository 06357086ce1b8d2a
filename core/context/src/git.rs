//! The repository of the workspace as the model is told about it: branch, last commits, changed files. No git is run and
//! no configuration is read, because a hostile repository can name programs there that git would start.

use std::path::Path;

use permissions::repository::{self, Repository};
use protocol::event::GitState;
use text::clean::without_hidden;

mod compare; // the work tree against the commit
mod index; // which tracked files differ from the index
mod objects; // commits, loose or in packs
mod sha1; // the names of objects

use index::Until;
use objects::{Commit, Id, Objects};

/// How many commits the model is told about.
const COMMITS: usize = 3;
/// The longest subject of a commit, characters.
const MAX_SUBJECT: usize = 72;
/// The most symbolic references that are followed.
const MAX_LINKS: usize = 5;
/// Digits of a commit that the model reads.
const DIGITS: usize = 10;
/// Digits of a commit in place of a branch.
const SHOWN_DIGITS: usize = 8;
/// The longest name of a branch, characters.
const MAX_BRANCH: usize = 200;

/// A repository and the commit that its head is on.
pub struct Git {
    repository: Repository,
    branch: Option<String>,
    head: Option<Id>,
}

impl Git {
    /// The repository that a workspace belongs to, if pixir may read it.
    pub fn of(workspace: &Path) -> Option<Git> {
        let repository = Repository::find(workspace).ok()??;
        if !repository.may_be_shown(workspace) {
            return None;
        }
        let head = Head::of(&repository.git)?;
        let branch = head.branch();
        let head = match head {
            Head::On(name) => resolve(&repository, &name),
            Head::At(commit) => Id::parse(&commit),
        };
        Some(Git { repository, branch, head })
    }

    /// The branch that a workspace is on; eight digits of the commit if its head is detached. Only the user sees it, so
    /// it is also read where [`Git::of`] reads nothing for the model: in a submodule, in the repository of the home
    /// folder, and where `.git` is a symlink. It never waits for another process.
    pub fn branch_of(workspace: &Path) -> Option<String> {
        let git = workspace.ancestors().map(|folder| folder.join(".git")).find(|git| git.exists())?;
        let folder = if git.is_dir() {
            git
        } else {
            // The file of a work tree or a submodule names the folder, and a symlink may lead to that file.
            let file = repository::read(&git.canonicalize().ok()?)?;
            git.parent()?.join(file.strip_prefix("gitdir:")?.trim())
        };
        let head = Head::of(&folder)?;
        head.branch().or_else(|| match head {
            Head::At(commit) => Some(clean(&commit, SHOWN_DIGITS)),
            Head::On(_) => None,
        })
    }

    /// Whether a tracked file differs from the commit, or the index does. `None` if there are too many files to find out,
    /// or pixir cannot read the repository. It asks for the status of each tracked file until one differs.
    pub fn has_changes(&self) -> Option<bool> {
        let tree = self.head.and_then(|id| Objects::of(&self.repository).commit(id)).map(|commit| commit.tree);
        let state = index::compare(&self.repository, tree, Until::Different)?;
        Some(state.changed > 0 || state.staged)
    }

    /// Branch, commit and the number of changed files. It reads the index and asks for the status of each tracked file,
    /// but of no more than [`index::MOST`].
    pub fn state(&self) -> GitState {
        let objects = Objects::of(&self.repository);
        let tree = self.head.and_then(|id| objects.commit(id)).map(|commit| commit.tree);
        let state = index::compare(&self.repository, tree, Until::Counted);
        GitState {
            branch: self.branch.clone(),
            commit: self.head.map(|id| short(&id)),
            changed: state.as_ref().map(|it| it.changed),
            staged: state.is_some_and(|it| it.staged),
        }
    }

    /// The last commits, newest first, each with its first digits and its subject.
    pub fn commits(&self) -> Vec<String> {
        let objects = Objects::of(&self.repository);
        let mut next = self.head;
        let mut commits = Vec::new();
        while let Some(id) = next
            && commits.len() < COMMITS
            && let Some(Commit { subject, parent, .. }) = objects.commit(id)
        {
            commits.push(format!("{} {}", short(&id), clean(&subject, MAX_SUBJECT)));
            next = parent;
        }
        commits
    }
}

/// What `HEAD` names.
enum Head {
    /// A reference: its whole name.
    On(String),
    /// A commit: the text as it stands there.
    At(String),
}

impl Head {
    /// Reads the `HEAD` of this folder of git.
    fn of(folder: &Path) -> Option<Head> {
        let text = repository::read(&folder.join("HEAD"))?;
        let line = text.lines().next()?.trim();
        let reference = line.strip_prefix("ref: ").filter(|name| is_reference(name));
        Some(reference.map_or_else(|| Head::At(line.to_owned()), |name| Head::On(name.to_owned())))
    }

    fn branch(&self) -> Option<String> {
        match self {
            Head::On(name) => Some(clean(name.strip_prefix("refs/heads/").unwrap_or(name), MAX_BRANCH)),
            Head::At(_) => None,
        }
    }
}

/// A state in one line.
pub fn line(it: &GitState) -> String {
    let at = match (&it.branch, &it.commit) {
        (Some(branch), Some(commit)) => format!("branch {branch} at {commit}"),
        (Some(branch), None) => format!("branch {branch}, no commit found"),
        (None, Some(commit)) => format!("no branch, at {commit}"),
        (None, None) => "no branch and no commit found".to_owned(),
    };
    let staged = if it.staged { ", the index differs from the commit" } else { "" };
    match it.changed {
        Some(0) if !it.staged => format!("{at}, clean but for untracked files"),
        Some(1) => format!("{at}, dirty: 1 tracked file changed{staged}"),
        Some(0) => format!("{at}, dirty: changes are staged"),
        Some(changed) => format!("{at}, dirty: {changed} tracked files changed{staged}"),
        None => format!("{at}, changes not counted"),
    }
}

fn short(id: &Id) -> String {
    id.hex()[..DIGITS].to_owned()
}

/// The name of a reference is a path in the repository that leaves it nowhere.
fn is_reference(name: &str) -> bool {
    let is_part = |part: &str| !part.is_empty() && !part.starts_with('.') && !part.contains(['\0', '\\']);
    name.starts_with("refs/") && name.len() < 1_000 && name.split('/').all(is_part)
}

/// The commit of a reference: in a file of its own, or in the list of all.
fn resolve(repository: &Repository, name: &str) -> Option<Id> {
    let mut name = name.to_owned();
    for _ in 0..MAX_LINKS {
        let text = [&repository.git, &repository.common].into_iter().find_map(|it| repository::read(&it.join(&name)));
        match text.as_deref().map(str::trim) {
            Some(text) => match text.strip_prefix("ref: ").filter(|next| is_reference(next)) {
                Some(next) => name = next.to_owned(),
                None => return Id::parse(text),
            },
            None => {
                let packed = repository::read(&repository.common.join("packed-refs"))?;
                let of = |line: &str| Id::parse(line.strip_suffix(&name)?.strip_suffix(' ')?);
                return packed.lines().find_map(of);
            }
        }
    }
    None
}

/// One line of at most so many characters, without control characters and hidden text.
fn clean(text: &str, most: usize) -> String {
    without_hidden(text).chars().take(most).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use super::*;

    fn git(folder: &Path, args: &[&str]) {
        let mut command = Command::new("git");
        command
            .current_dir(folder)
            .args(args)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_SYSTEM", "/dev/null");
        for (name, value) in [("NAME", "a"), ("EMAIL", "a@b.c")] {
            command.env(format!("GIT_AUTHOR_{name}"), value).env(format!("GIT_COMMITTER_{name}"), value);
        }
        let output = command.output().expect("git runs");
        assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    fn now(folder: &Path) -> String {
        let line = line(&Git::of(folder).expect("a repository").state());
        let (at, rest) = line.split_once(" at ").unwrap_or((&line, ""));
        format!("{at}{}", rest.get(DIGITS..).unwrap_or_default())
    }

    fn has_changes(folder: &Path) -> Option<bool> {
        Git::of(folder).expect("a repository").has_changes()
    }

    /// Broken build: one that takes a touched file for a changed one, or does not find what is staged.
    #[test]
    fn the_state_is_what_git_status_says_of_tracked_files() {
        let temp = tempfile::tempdir().expect("a folder");
        let at = temp.path();
        git(at, &["init", "-q", "-b", "main"]);
        assert_eq!(now(at), "branch main, no commit found, clean but for untracked files");
        fs::create_dir(at.join("src")).expect("mkdir");
        for name in ["a.txt", "src/b.txt", "src/c.txt"] {
            fs::write(at.join(name), "one\n").expect("write");
        }
        git(at, &["add", "."]);
        assert_eq!(now(at), "branch main, no commit found, dirty: changes are staged");
        git(at, &["commit", "-qm", "First change\n\nwith a body"]);
        assert_eq!(now(at), "branch main, clean but for untracked files");
        fs::write(at.join("a.txt"), "one\n").expect("write");
        fs::write(at.join("new.txt"), "new\n").expect("write");
        assert_eq!(now(at), "branch main, clean but for untracked files", "the content is the same");
        fs::write(at.join("a.txt"), "two\n").expect("write");
        assert_eq!(now(at), "branch main, dirty: 1 tracked file changed");
        assert_eq!(has_changes(at), Some(true));
        fs::remove_file(at.join("src/c.txt")).expect("rm");
        assert_eq!(now(at), "branch main, dirty: 2 tracked files changed");
        git(at, &["add", "a.txt"]);
        assert_eq!(now(at), "branch main, dirty: 1 tracked file changed, the index differs from the commit");
        git(at, &["commit", "-qam", "Second"]);
        assert_eq!(has_changes(at), Some(false));
        fs::write(at.join("src/b.txt"), "three\n").expect("write");
        git(at, &["add", "."]);
        assert_eq!(has_changes(at), Some(true), "a change that is only staged is one too");
        git(at, &["reset", "-q", "--hard"]);
        git(at, &["checkout", "-q", "--detach"]);
        assert_eq!(now(at), "no branch,, clean but for untracked files");
        git(at, &["update-index", "--index-version", "4"]);
        assert_eq!(now(at), "no branch,, clean but for untracked files");
    }

    /// Broken build: one that reads loose objects only, or no packed references.
    #[test]
    fn commits_are_found_in_packs_and_among_loose_objects() {
        let temp = tempfile::tempdir().expect("a folder");
        let at = temp.path();
        git(at, &["init", "-q", "-b", "main"]);
        for n in 0..40 {
            // Long messages that resemble each other are stored as deltas.
            let body = (0..60).map(|line| format!("line {line}\n")).collect::<String>();
            git(at, &["commit", "-q", "--allow-empty", "-m", &format!("Change {n}\u{e0041}\n\n{body}{n}")]);
        }
        let subjects = || -> Vec<String> {
            let commits = Git::of(at).expect("a repository").commits();
            commits.iter().map(|it| it.split_once(' ').expect("a subject").1.to_owned()).collect()
        };
        assert_eq!(subjects(), ["Change 39", "Change 38", "Change 37"]);
        git(at, &["gc", "-q", "--aggressive", "--prune=now"]);
        git(at, &["pack-refs", "--all"]);
        assert!(!at.join(".git/refs/heads/main").exists());
        assert_eq!(subjects(), ["Change 39", "Change 38", "Change 37"]);
        for back in [5, 20, 38] {
            git(at, &["reset", "-q", "--soft", &format!("main~{back}")]);
            assert_eq!(subjects()[0], format!("Change {}", 39 - back));
            git(at, &["reset", "-q", "--soft", "ORIG_HEAD"]);
        }
    }

    /// Broken build: one that reads loose trees only, takes a touched file for a changed one, or trusts the time of a file
    /// that was written together with the index.
    #[test]
    fn the_work_tree_differs_from_the_commit_as_git_says_it() {
        use files::diff::Kind;
        let temp = tempfile::tempdir().expect("a folder");
        let at = temp.path().canonicalize().expect("a path");
        git(&at, &["init", "-q", "-b", "main"]);
        fs::create_dir_all(at.join("src/deep")).expect("mkdir");
        for n in 0..30 {
            let text = (0..80).map(|line| format!("{n} {line}\n")).collect::<String>();
            fs::write(at.join(format!("src/deep/{n}.txt")), text).expect("write");
        }
        fs::write(at.join("kept.txt"), "kept\n").expect("write");
        fs::write(at.join("gone.txt"), "gone\n").expect("write");
        fs::write(at.join(".gitignore"), "*.log\n").expect("write");
        git(&at, &["add", "."]);
        git(&at, &["commit", "-qm", "First"]);
        git(&at, &["gc", "-q", "--aggressive", "--prune=now"]);
        let changes = || Git::of(&at).expect("a repository").changes(&at);
        assert_eq!((changes().files.len(), changes().note), (0, None));
        // Of the same size, and in the same moment as the index.
        fs::write(at.join("kept.txt"), "best\n").expect("write");
        fs::write(at.join("src/deep/7.txt"), "7\n").expect("write");
        fs::remove_file(at.join("gone.txt")).expect("rm");
        fs::write(at.join("new.txt"), "new\n").expect("write");
        fs::write(at.join("noise.log"), "noise\n").expect("write");
        git(&at, &["add", "src/deep/7.txt"]);
        let now = changes();
        let shown: Vec<_> = now.files.iter().map(|it| (it.path.as_str(), it.kind.clone())).collect();
        assert_eq!(
            shown,
            [
                ("gone.txt", Kind::Deleted),
                ("kept.txt", Kind::Modified),
                ("new.txt", Kind::Added),
                ("src/deep/7.txt", Kind::Modified)
            ]
        );
        let files::diff::Version::Object(name) = &now.files[1].old else { panic!("it is in the commit") };
        assert_eq!(Git::of(&at).and_then(|git| git.blob(name)).as_deref(), Some(&b"kept\n"[..]));
    }

    /// Broken builds: the header reads git by [`Git::of`] alone, and has no branch in a submodule; it opens what is no file.
    #[test]
    fn the_branch_for_the_user_is_read_where_the_model_is_shown_nothing() {
        let temp = tempfile::tempdir().expect("a folder");
        let at = temp.path().canonicalize().expect("a path");
        let write = |name: &str, text: &str| {
            fs::create_dir_all(at.join(name).parent().expect("a parent")).expect("mkdir");
            fs::write(at.join(name), text).expect("write");
        };
        write("app/.git/HEAD", "ref: refs/heads/topic\n");
        write("app/.git/modules/part/HEAD", &format!("{}\n", "0123456789".repeat(4)));
        write("app/part/.git", "gitdir: ../.git/modules/part\n");
        fs::create_dir_all(at.join("linked/src")).expect("mkdir");
        std::os::unix::fs::symlink(at.join("app/.git"), at.join("linked/.git")).expect("symlink");
        fs::create_dir(at.join("module")).expect("mkdir");
        std::os::unix::fs::symlink("../app/part/.git", at.join("module/.git")).expect("symlink");
        for (folder, branch, is_shown_to_the_model) in [
            ("app", Some("topic"), true),
            ("app/part", Some("01234567"), false),
            ("linked", Some("topic"), false),
            ("linked/src", Some("topic"), false),
            ("module", None, false),
        ] {
            let folder = at.join(folder);
            assert_eq!(Git::branch_of(&folder).as_deref(), branch, "{}", folder.display());
            assert_eq!(Git::of(&folder).is_some(), is_shown_to_the_model, "{}", folder.display());
        }
        // Where the link itself lies beside the repository, its relative path holds.
        fs::rename(at.join("module"), at.join("app/module")).expect("rename");
        std::fs::remove_file(at.join("app/module/.git")).expect("rm");
        std::os::unix::fs::symlink("../part/.git", at.join("app/module/.git")).expect("symlink");
        assert_eq!(Git::branch_of(&at.join("app/module")).as_deref(), Some("01234567"));
    }

    /// Broken build: one that follows `..` in a reference.
    #[test]
    fn a_hostile_head_leads_nowhere() {
        let temp = tempfile::tempdir().expect("a folder");
        let git = temp.path().join("app/.git");
        fs::create_dir_all(&git).expect("mkdir");
        fs::write(temp.path().join("id"), "a".repeat(40)).expect("write");
        for head in ["ref: refs/../../../id", "ref: /etc/passwd", "ref: refs/heads/\u{1b}[2J", "", "zz", "ref: refs//x"]
        {
            fs::write(git.join("HEAD"), head).expect("write");
            fs::write(git.join("index"), b"DIRC\0\0\0\x02\xff\xff\xff\xff").expect("write");
            if let Some(git) = Git::of(&temp.path().join("app")) {
                let state = git.state();
                assert_eq!((state.commit.as_deref(), state.changed), (None, None), "{head}");
                assert!(!line(&state).contains('\u{1b}'));
                assert!(git.commits().is_empty());
            }
        }
    }
}
