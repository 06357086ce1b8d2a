//! What a command of pixir may leave behind, and the user's next command that runs it or reads it.

/// A command of pixir, the user's own next one, and the folder in which the user gives it.
pub(super) struct Scenario {
    pub(super) name: String,
    pub(super) command: String,
    pub(super) next: String,
    pub(super) within: String,
}

/// What runs if git believes it: it leaves a marker in the home folder, which no command of pixir can write.
const TRAP: &str = "touch $HOME/caught";

/// Makes a repository with a trap in a folder that exists.
fn repository(at: &str) -> String {
    format!(
        "mkdir -p {at}/objects {at}/refs/heads && echo 'ref: refs/heads/main' > {at}/HEAD && \
         printf '[core]\\n\\trepositoryformatversion = 0\\n\\tbare = false\\n\\tfsmonitor = \"{TRAP}; false\"\\n' > {at}/config"
    )
}

fn of(name: &str, command: String, next: &str, within: &str) -> Scenario {
    Scenario { name: name.into(), command, next: next.into(), within: within.into() }
}

pub(super) fn scenarios() -> Vec<Scenario> {
    let mut all = repositories();
    all.extend(names());
    all.extend(one_by_one());
    all
}

/// Places for a whole repository, below git's folder and beside it.
const PLACES: [(&str, &str); 11] = [
    ("in worktrees", ".git/worktrees/x"),
    ("in modules", ".git/modules/x"),
    ("deep in modules", ".git/modules/a/b/c/d/e/f/x"),
    ("in objects", ".git/objects/x"),
    ("in refs", ".git/refs/heads/x"),
    ("in logs", ".git/logs/x"),
    ("in lfs", ".git/lfs/x"),
    ("in rr-cache", ".git/rr-cache/x"),
    ("in a folder of its own", ".git/x"),
    ("in a rebase", ".git/rebase-merge/x"),
    ("beside", "src/x"),
];

/// What the settings of a repository start, the settings, and the user's command that starts it.
const TRAPS: [(&str, &str, &str); 8] = [
    ("a monitor of files", "[core]\n\tfsmonitor = \"TRAP; false\"\n", "git status"),
    ("hooks", "[core]\n\thooksPath = ../evil\n", "git checkout -q -b next"),
    ("a program for differences", "[diff]\n\texternal = \"TRAP; true\"\n", "echo x > new; git add -N new; git diff"),
    (
        "a filter",
        "[filter \"x\"]\n\tclean = \"TRAP; cat\"\n",
        "echo '* filter=x' > .gitattributes; echo x > new; git add new",
    ),
    ("a program for ssh", "[core]\n\tsshCommand = \"TRAP; false\"\n", "git fetch ssh://localhost/x"),
    ("another name of a command", "[alias]\n\tst = \"!TRAP\"\n", "git st"),
    ("a file of settings", "[include]\n\tpath = EVIL/more\n", "git status"),
    (
        "a program for passwords",
        "[credential]\n\thelper = \"!TRAP;\"\n",
        "printf 'protocol=https\nhost=h\n\n' | GIT_TERMINAL_PROMPT=0 git credential fill",
    ),
];

/// Each trap in a whole repository in each place, to which a file `.git` leads, besides one in the place of `.git` itself.
fn repositories() -> Vec<Scenario> {
    let mut all = Vec::new();
    let places =
        PLACES.iter().map(|(name, at)| (*name, *at, "lib")).chain([("as a new folder `.git`", "lib/.git", "lib")]);
    for (place, at, within) in places {
        for (name, settings, next) in TRAPS {
            // Hooks and an included file stand beside the work tree.
            let beside = format!(
                "mkdir -p evil; printf '#!/bin/sh\n{TRAP}\n' > evil/post-checkout; chmod +x evil/post-checkout; \
                 printf '[core]\n\tfsmonitor = \"{TRAP}; false\"\n' > evil/more"
            );
            let settings = settings.replace("TRAP", TRAP).replace('\n', "\\n").replace('\t', "\\t");
            let plant = format!(
                "{beside}; mkdir -p lib {at}/objects {at}/refs/heads && echo 'ref: refs/heads/main' > {at}/HEAD && \
                 printf '[core]\n\trepositoryformatversion = 0\n\tbare = false\n' > {at}/config && \
                 printf '%b' '{settings}' | sed \"s|EVIL|$PWD/evil|\" >> {at}/config"
            );
            let lead =
                if at == "lib/.git" { String::new() } else { format!("; echo \"gitdir: $PWD/{at}\" > lib/.git") };
            all.push(of(&format!("a repository {place} with {name}"), format!("{plant}{lead}"), next, within));
        }
    }
    all
}

/// Protected names of each group: what a program of the user reads by itself.
const NAMES: [&str; 12] = [
    ".envrc",
    ".vscode/tasks.json",
    ".idea/workspace.xml",
    ".github/workflows/ci.yml",
    ".gitlab-ci.yml",
    ".cargo/config.toml",
    ".npmrc",
    "CLAUDE.md",
    "AGENTS.md",
    ".claude/settings.json",
    ".husky/pre-commit",
    ".pre-commit-config.yaml",
];

/// Folders in which a name is planted: new ones, ones of the user, and some that rules hide.
const FOLDERS: [&str; 4] = ["fresh", "src/deep/er", "ignored/sub", "hidden"];

/// Each protected name in each folder, written in each way.
fn names() -> Vec<Scenario> {
    let mut all = Vec::new();
    for name in NAMES {
        for folder in FOLDERS {
            let path = format!("{folder}/{name}");
            let above = path.rsplit_once('/').map_or(".", |it| it.0);
            let top = name.split('/').next().unwrap_or(name);
            let hide = if folder == "hidden" { "mkdir -p hidden; printf '*\\n' > hidden/.gitignore; " } else { "" };
            let ways = [
                ("written", format!("mkdir -p {above} && echo planted > {path}")),
                ("moved there", format!("mkdir -p {above} && echo planted > t && mv t {path}")),
                (
                    "moved there with its folder",
                    format!("mkdir -p {folder} t/$(dirname {name}) && echo planted > t/{name} && mv t/{top} {folder}/"),
                ),
                ("linked", format!("mkdir -p {above} && echo planted > t && ln t {path}")),
                (
                    "unpacked",
                    format!(
                        "mkdir -p {folder} t/$(dirname {name}) && echo planted > t/{name} && tar cf - -C t {top} | tar xf - -C {folder}"
                    ),
                ),
                (
                    "behind a symlink",
                    format!(
                        "mkdir -p {folder} t/$(dirname {name}) && echo planted > t/{name} && ln -s $PWD/t/{top} {folder}/{top}"
                    ),
                ),
            ];
            for (way, command) in ways {
                let next = format!("! grep -q planted {name} || touch $HOME/caught");
                all.push(of(&format!("{path}, {way}"), format!("{hide}{command}"), &next, folder));
            }
        }
    }
    all
}

/// What has one place and one way.
fn one_by_one() -> Vec<Scenario> {
    let mut all = Vec::new();
    all.extend([
        of("a new one", format!("mkdir -p lib && git init -q lib && {}", repository("lib/.git")), "git status", "lib"),
        of("one in a folder that rules ignore", format!("mkdir -p ignored && {}", repository("ignored/.git")), "git status", "ignored"),
        of("one in packages", format!("mkdir -p node_modules/p && {}", repository("node_modules/p/.git")), "git status", "node_modules/p"),
        of("one that new rules hide", format!("mkdir -p sub && printf '*\\n' > sub/.gitignore; {}", repository("sub/.git")), "git status", "sub"),
        of("one by a symlink", format!("{}; mkdir -p lib; ln -s ../src/x lib/.git", repository("src/x")), "git status", "lib"),
        of("a bare one", repository("bare"), "git status; git log", "bare"),
        of("deep in the workspace", format!("mkdir -p a/b/c/d/e/f/g/h/i && {}", repository("a/b/c/d/e/f/g/h/i/.git")), "git status", "a/b/c/d/e/f/g/h/i"),
        of("a submodule's settings", "git -c protocol.file.allow=always submodule --quiet add ./other inner; printf '[core]\\n\\tfsmonitor = \"TRAP; false\"\\n' >> .git/modules/inner/config".replace("TRAP", TRAP), "git status", "inner"),
        of("settings", format!("printf '[core]\\n\\tfsmonitor = \"{TRAP}; false\"\\n' >> .git/config"), "git status", "."),
        of("settings by another name", format!("ln .git/config x && printf '[core]\\n\\tfsmonitor = \"{TRAP}; false\"\\n' >> x"), "git status", "."),
        of("settings through a link that was there", format!("printf '[core]\\n\\tfsmonitor = \"{TRAP}; false\"\\n' >> settings.bak"), "git status", "."),
        of("settings in their place", format!("cp .git/config c && printf '[core]\\n\\tfsmonitor = \"{TRAP}; false\"\\n' >> c && mv c .git/config"), "git status", "."),
        of("a whole new folder of git", format!("cp -r .git g && printf '[core]\\n\\tfsmonitor = \"{TRAP}; false\"\\n' >> g/config && rm -rf .git && mv g .git"), "git status", "."),
        of("a hook", format!("printf '#!/bin/sh\\n{TRAP}\\n' > .git/hooks/post-checkout; chmod +x .git/hooks/post-checkout"), "git checkout -q -b next", "."),
        of("a hook in a linked work tree's folder", format!("mkdir -p .git/worktrees/x/hooks; printf '#!/bin/sh\\n{TRAP}\\n' > .git/worktrees/x/hooks/post-checkout; chmod +x .git/worktrees/x/hooks/post-checkout"), "git checkout -q -b next", "."),
        of("a hook of a nested repository that rules ignore", format!("printf '#!/bin/sh\\n{TRAP}\\n' > ignored/old/.git/hooks/post-checkout; chmod +x ignored/old/.git/hooks/post-checkout"), "git checkout -q -b next", "ignored/old"),
        of("a named hook", format!("mkdir -p .githooks; printf '#!/bin/sh\\n{TRAP}\\n' > .githooks/post-checkout; chmod +x .githooks/post-checkout"), "git checkout -q -b next", "named"),
        of("an included file", format!("printf '[core]\\n\\tfsmonitor = \"{TRAP}; false\"\\n' >> named/extra.ini"), "git status", "named"),
        of("a named program", format!("printf '#!/bin/sh\\n{TRAP}\\n' > named/tools/diff.sh; chmod +x named/tools/diff.sh"), "echo more >> a; git diff", "named"),
        of("a list of a rebase that goes on", format!("printf 'exec {TRAP}\\n' >> rebasing/.git/rebase-merge/git-rebase-todo"), "git -c user.name=a -c user.email=a@a rebase --continue", "rebasing"),
        of("a new list of a rebase", format!("mkdir -p .git/rebase-merge; for f in head-name onto orig-head; do git rev-parse HEAD > .git/rebase-merge/$f; done; echo refs/heads/main > .git/rebase-merge/head-name; touch .git/rebase-merge/interactive; printf 'exec {TRAP}\\n' > .git/rebase-merge/git-rebase-todo; echo 1 > .git/rebase-merge/end; echo 0 > .git/rebase-merge/msgnum"), "git -c user.name=a -c user.email=a@a rebase --continue", "."),
        of("a sequence", format!("mkdir -p .git/sequencer; git rev-parse HEAD > .git/sequencer/head; printf 'exec {TRAP}\\n' > .git/sequencer/todo"), "git cherry-pick --continue; git revert --continue", "."),
        of("attributes of the repository", format!("mkdir -p .git/info; echo '* diff=x' > .git/info/attributes; git config diff.x.textconv '{TRAP}; cat'"), "echo more >> src/a; git diff", "."),
        of("objects from elsewhere", format!("{}; echo ../../src/x/objects > .git/objects/info/alternates", repository("src/x")), "git status", "."),
        of("a legacy remote", "mkdir -p .git/remotes; printf 'URL: ext::sh -c touch%% $HOME/caught\\n' > .git/remotes/evil".to_owned(), "git -c protocol.ext.allow=always fetch evil", "."),
        of("an environment of a shell", format!("echo '{TRAP}' > .envrc"), "test ! -e .envrc || . ./.envrc", "."),
        of("an environment in a folder that new rules hide", format!("mkdir -p sub; printf '*\\n' > sub/.gitignore; echo '{TRAP}' > sub/.envrc"), "test ! -e .envrc || . ./.envrc", "sub"),
        of("the settings of cargo", "mkdir -p sub/.cargo; printf '[build]\\nrustc-wrapper = \"/bin/false\"\\n' > sub/.cargo/config.toml".to_owned(), "! test -e .cargo/config.toml || touch $HOME/caught", "sub"),
        of("a task of an editor", "mkdir -p src/.vscode; echo '{}' > src/.vscode/tasks.json".to_owned(), "! test -e .vscode/tasks.json || touch $HOME/caught", "src"),
        of("orders for agents", "printf '*\\n' > docs/.gitignore; echo 'run x' >> docs/AGENTS.md".to_owned(), "! grep -q 'run x' AGENTS.md || touch $HOME/caught", "docs"),
        of("what orders import", "echo 'run x' >> docs/style.md".to_owned(), "! grep -q 'run x' style.md || touch $HOME/caught", "docs"),
        of("what imported orders import", "echo 'run x' >> docs/more.md".to_owned(), "! grep -q 'run x' more.md || touch $HOME/caught", "docs"),
        of("orders in a folder that was ignored", "echo 'run x' > ignored/CLAUDE.md".to_owned(), "! test -e CLAUDE.md || touch $HOME/caught", "ignored"),
    ]);
    all
}
