//! What commands write to the caches of toolchains: it is there for the Session, and the user's own caches stay as they are.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::mounts::mounting;
use crate::shell::{Shell, as_user, entries, figures, is_running, mark, users};
use crate::wait;

/// Files that programs of the user's next build would run or unpack, in caches of eight languages.
const PLANTED: [&str; 24] = [
    ".cargo/registry/src/index/itoa-1.0.0/build.rs",
    ".cargo/registry/cache/index/itoa-1.0.0.crate",
    ".cargo/registry/index/index/.cache/it/oa/itoa",
    ".cargo/git/checkouts/x/1/build.rs",
    ".npm/_npx/1/node_modules/.bin/x",
    ".npm/_cacache/index-v5/aa/bb/x",
    ".cache/pip/wheels/x.whl",
    ".cache/uv/archive-v0/x.py",
    ".cache/go-build/00/x-d",
    ".cache/pre-commit/repo/hook",
    ".cache/yarn/v6/x/index.js",
    ".cache/ccache/x",
    ".cache/node/corepack/yarn.js",
    ".cache/ms-playwright/chromium/chrome",
    ".cache/coursier/x.jar",
    ".cache/composer/x.php",
    "go/pkg/mod/example.com/x@v1.0.0/x.go",
    ".gradle/caches/jars-9/x.jar",
    ".gradle/wrapper/dists/gradle/bin/gradle",
    ".m2/repository/org/x/1/x-1.jar",
    ".nuget/packages/x/1/build/x.targets",
    ".pub-cache/hosted/x.dart",
    ".bun/install/cache/x.js",
    ".mix/archives/x.ez",
];
const MINE: &str = "of the user\n";
const PLANT: &str = "planted-by-a-command";

struct Home {
    shell: Shell,
    user: Option<&'static str>,
}

impl Home {
    /// One for the user of the tests and, if that is root, one for nobody.
    fn all() -> Vec<Home> {
        users().into_iter().map(Home::of).collect()
    }

    fn of(user: Option<&'static str>) -> Home {
        let home = Home { shell: Shell::new(&[("a.txt", "a\n")]), user };
        for path in PLANTED {
            let path = home.top().join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("mkdir");
            fs::write(path, MINE).expect("write");
        }
        // What others have unpacked is often closed to writers.
        let closed = home.top().join("go/pkg/mod/example.com/x@v1.0.0");
        fs::set_permissions(closed, fs::Permissions::from_mode(0o555)).expect("chmod");
        if let Some(user) = user {
            fs::set_permissions(home.top(), fs::Permissions::from_mode(0o755)).expect("chmod");
            assert!(
                Command::new("chown")
                    .args(["-R", &format!("{user}:{user}")])
                    .arg(home.top())
                    .status()
                    .expect("chown")
                    .success()
            );
        }
        home
    }

    fn top(&self) -> PathBuf {
        self.shell.workspace().parent().expect("a parent").to_owned()
    }

    /// pixir with a model that makes these calls.
    fn pixir(&self, steps: &[Value], flags: &[&str]) -> Command {
        let steps: Vec<Value> = steps.iter().cloned().chain([json!({ "text": "done" })]).collect();
        let script = self.shell.aside("script.json", &json!({ "steps": steps }).to_string());
        let mut command = as_user(self.user, env!("CARGO_BIN_EXE_pixir"));
        command
            .args(["--provider", &format!("script:{}", script.display()), "--headless"])
            .args(flags)
            .arg("go")
            .current_dir(self.shell.workspace())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .envs([("HOME", self.top()), ("PIXIR_HOME", self.shell.home())])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// What the calls of one Session printed.
    fn printed(&self, mut pixir: Command) -> Vec<String> {
        let before = self.shell.logs();
        let ran = pixir.output().expect("it starts");
        let log = self.shell.logs().into_iter().find(|it| !before.contains(it));
        let log = entries(&log.unwrap_or_else(|| panic!("no Log: {}", String::from_utf8_lossy(&ran.stderr))));
        let results = log.iter().filter(|it| it["type"] == "tool_result");
        results.map(|it| it["data"]["output"].as_str().expect("text").to_owned()).collect()
    }

    fn runs(&self, lines: &[&str], flags: &[&str]) -> Vec<String> {
        self.printed(self.pixir(&lines.iter().map(|line| bash(line)).collect::<Vec<_>>(), flags))
    }

    /// Every file of the caches with its bytes and mode.
    fn caches(&self) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
        let (mut all, mut left) = (BTreeMap::new(), vec![self.top()]);
        while let Some(folder) = left.pop() {
            for entry in fs::read_dir(folder).expect("a folder").flatten() {
                let path = entry.path();
                if [self.shell.workspace(), self.shell.home()].contains(&path) || path.ends_with("script.json") {
                    continue;
                }
                let it = fs::symlink_metadata(&path).expect("it exists");
                if it.is_dir() {
                    left.push(path.clone());
                }
                all.insert(path.clone(), (it.permissions().mode(), fs::read(&path).unwrap_or_default()));
            }
        }
        all
    }

    /// The folders of covers of every Session.
    fn covers(&self) -> Vec<PathBuf> {
        let sessions = fs::read_dir(self.shell.home().join("sessions")).into_iter().flatten().flatten();
        let own = sessions.flat_map(|it| fs::read_dir(it.path()).into_iter().flatten().flatten());
        own.map(|it| it.path().join("caches")).filter(|it| it.is_dir()).collect()
    }
}

fn bash(line: &str) -> Value {
    json!({ "calls": [{ "name": "bash", "args": { "command": line, "timeout": 60 } }] })
}

fn paths() -> String {
    PLANTED.map(|it| format!("\"$HOME/{it}\"")).join(" ")
}

/// A command replaces, appends to, removes, moves and links what is in every cache, and adds to it.
///
/// Broken builds: `View::of` lets work change caches; `landlock::confine` lets it write there.
#[test]
fn no_command_changes_a_cache_of_the_user() {
    let mut tried = 0;
    for tier in ["ns", "ll"] {
        for home in Home::all() {
            let before = home.caches();
            let all = paths();
            let lines = [
                format!("for f in {all}; do echo {PLANT} > \"$f\"; done; echo tried"),
                format!("for f in {all}; do echo {PLANT} >> \"$f\"; chmod 777 \"$f\"; echo {PLANT} > \"$f.new\"; done; echo tried"),
                format!("for f in {all}; do mv \"$f\" \"$f.moved\"; mkdir -p \"${{f%/*}}/more/deep\"; ln \"$f.moved\" \"$f.linked\"; done; echo tried"),
                format!("for f in {all}; do rm -rf \"${{f%/*}}\"; ln -s /etc \"${{f%/*}}\"; done; echo tried"),
                "rm -rf $HOME/.npm/* $HOME/.cargo/registry $HOME/go/pkg/mod; mv $HOME/.m2/repository $HOME/.m2/other; echo tried".to_owned(),
            ];
            let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
            for output in home.runs(&lines, &["--mode", "auto", "--sandbox", tier]) {
                assert!(output.contains("tried"), "{tier}: {output}");
            }
            let after = home.caches();
            let changed: Vec<&PathBuf> =
                before.keys().chain(after.keys()).filter(|path| before.get(*path) != after.get(*path)).collect();
            // The modes of files are all that Landlock does not keep; no command of this test may reach them by contents.
            let is_mode = |path: &&PathBuf| before.get(*path).map(|it| &it.1) == after.get(*path).map(|it| &it.1);
            let changed: Vec<_> = changed.into_iter().filter(|path| tier == "ns" || !is_mode(path)).collect();
            assert!(changed.is_empty(), "{tier}, {:?}: {changed:?}", home.user);
            tried += 5 * PLANTED.len();
        }
    }
    figures(&format!("changes of caches: {tried} tried, 0 reached the user's"));
}

/// Broken builds: each command has a cover of its own; what only looks, or a job, sees the user's cache alone; a job writes to
/// the cover of the commands.
#[test]
fn what_a_command_writes_to_a_cache_is_there_for_its_session() {
    for home in Home::all() {
        let path = ".cargo/registry/src/index/itoa-1.0.0";
        let write = format!(
            "echo {PLANT} > ~/{path}/new.rs; rm ~/{path}/build.rs; mkdir ~/.npm/_logs && echo {PLANT} > ~/.npm/_logs/1"
        );
        let see = format!("cat ~/{path}/new.rs ~/.npm/_logs/1; ls ~/{path}");
        let job = format!(
            "{see}; echo of-the-job > ~/{path}/job.rs && cat ~/{path}/job.rs; touch written; until [ -e over ]; do sleep 0.05; done"
        );
        let beside = format!(
            "until [ -e written ]; do sleep 0.05; done; {see}; for f in {}; do echo {PLANT} >> \"$f\" || exit 1; done; echo whole",
            paths()
        );
        let steps = [
            bash(&write),
            bash(&format!("true; {see}; touch seen")),
            bash(&format!("ls ~/{path}")),
            json!({ "calls": [{ "name": "bash", "args": { "command": job, "background": true } }] }),
            bash(&beside),
            bash(&format!("cat ~/{} | grep -c {PLANT}; touch over", PLANTED[5])),
            json!({ "calls": [{ "name": "job_output", "args": { "job": 1, "wait": 20, "wait_output": "of-the-job" } }] }),
        ];
        let printed = home.printed(home.pixir(&steps, &["--mode", "auto", "--sandbox", "ns"]));
        for at in [1, 2, 4, 6] {
            let output = &printed[at];
            assert!(output.contains("new.rs") && !output.contains("build.rs"), "step {at}, {:?}: {output}", home.user);
            assert!(at == 2 || output.matches(PLANT).count() == 2, "step {at}, {:?}: {output}", home.user);
        }
        assert!(!printed[4].contains("job.rs") && printed[4].contains("whole"), "{}", printed[4]);
        assert!(printed[5].starts_with('1') && printed[6].contains("of-the-job"), "{printed:?}");
        // The next Session has what the user has.
        let next = home.runs(&[&format!("true; {see}; touch seen")], &["--mode", "auto", "--sandbox", "ns"]);
        assert!(!next[0].contains(PLANT) && next[0].contains("build.rs"), "{}", next[0]);
        assert!(home.top().join(path).join("build.rs").exists());
    }
}

/// Programs that run at once do not lose what they write themselves.
///
/// Broken build: all of them write to one cover.
#[test]
fn programs_that_run_at_once_keep_what_they_write() {
    for home in Home::all() {
        let write = |n: usize| {
            format!(
                "for f in {0}; do cat \"$f\" > /dev/null; done; touch at-{n}; until [ $(ls at-* | wc -l) = 4 ]; do sleep 0.02; done; \
                 for f in {0}; do echo {n} >> \"$f\" && echo {n} > \"$f.{n}\" && mkdir \"$f.d\" && rm \"$f\" || exit 1; done; \
                 for f in {0}; do cat \"$f.{n}\" && [ -d \"$f.d\" ] && ! [ -e \"$f\" ] || exit 1; done; echo whole",
                paths()
            )
        };
        let calls: Vec<Value> =
            (0..4).map(|n| json!({ "name": "bash", "args": { "command": write(n), "background": true } })).collect();
        let waits = (1..=4)
            .map(|n| json!({ "calls": [{ "name": "job_output", "args": { "job": n, "wait": 30, "wait_output": "whole" } }] }));
        let steps: Vec<Value> = std::iter::once(json!({ "calls": calls })).chain(waits).collect();
        let printed = home.printed(home.pixir(&steps, &["--mode", "auto", "--sandbox", "ns"]));
        for output in &printed[4..8] {
            assert!(output.contains("whole"), "{output}");
        }
    }
}

/// Broken builds: a cover lies outside of its Session's folder; a folder that its owner may not write stays.
#[test]
fn a_cover_is_removed_with_its_session_also_after_a_kill() {
    for home in Home::all() {
        let marker = mark();
        let line = format!(
            "mkdir -p ~/go/pkg/mod/closed/x && echo x > ~/go/pkg/mod/closed/x/y && chmod -R a-w ~/go/pkg/mod/closed; echo 1 > ~/.npm/a; sleep {marker}"
        );
        let mut pixir = home.pixir(&[bash(&line)], &["--mode", "auto", "--sandbox", "ns"]);
        let mut running = pixir.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
        wait::until("the command has written", || is_running(&format!("sleep\u{0}{marker}")));
        let _ = running.kill();
        let _ = running.wait();
        wait::until("the command has ended", || !is_running(&format!("sleep\u{0}{marker}")));
        assert_eq!(home.covers().len(), 1);
        assert!(!home.top().join("go/pkg/mod/closed").exists());
        let run = |args: &[&str]| {
            let mut it = as_user(home.user, env!("CARGO_BIN_EXE_pixir"));
            it.args(args)
                .current_dir(home.shell.workspace())
                .envs([("HOME", home.top()), ("PIXIR_HOME", home.shell.home())]);
            let ran = it.stdin(Stdio::null()).output().expect("it starts");
            assert!(ran.status.success(), "{args:?}: {}", String::from_utf8_lossy(&ran.stderr));
        };
        let log = home.shell.logs().pop().expect("a Log");
        run(&["sessions", "delete", &log.file_stem().expect("an id").to_string_lossy(), "--yes"]);
        run(&["gc", "--trash-days", "0", "--yes"]);
        assert!(home.covers().is_empty(), "{:?}", home.covers());
        let left: Vec<PathBuf> = files_below(&home.shell.home()).into_iter().filter(|it| it.ends_with("y")).collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.flat_map(|it| if it.path().is_dir() { files_below(&it.path()) } else { vec![it.path()] }).collect()
}

/// A state folder on a file system that takes no cover, a home folder with a mount in it, and paths with characters that
/// mean more to a mount: the user's caches stay as they are, and commands write what they need.
///
/// Broken builds: a mount that fails leaves the cache open to writers; a path with a comma or a colon is taken for two.
#[test]
fn caches_are_kept_wherever_they_lie() {
    let Some(words) = mounting() else { return };
    for (what, line, is_shared) in [
        ("a mount in a cache", "mount -t tmpfs none \"$HOME/.npm/_npx\"", true),
        ("a mount in the home folder", "mkdir -p \"$HOME/other\" && mount -t tmpfs none \"$HOME/other\"", true),
        (
            "a state folder that takes no cover",
            "mkdir -p \"$PIXIR_HOME\" l && mount -t tmpfs none l && mkdir l/u l/w && mount -t overlay o -o lowerdir=\"$PIXIR_HOME\",upperdir=l/u,workdir=l/w,userxattr \"$PIXIR_HOME\"",
            false,
        ),
        ("odd names", "export PIXIR_HOME=\"$HOME/a,b:c\\\\d\"", true),
    ] {
        let home = Home::of(None);
        let before = home.caches();
        let write = format!(
            "echo {PLANT} > ~/.cargo/registry/x; echo {PLANT} > ~/.cache/pip/x; cat ~/.cargo/registry/x ~/.cache/pip/x"
        );
        let steps = [bash(&write), bash("touch y; cat ~/.cargo/registry/x ~/.cache/pip/x; echo seen")];
        let pixir = home.pixir(&steps, &["--mode", "auto", "--sandbox", "ns"]);
        let mut mounted = Command::new(words[0]);
        let line = format!("{line} && \"$0\" \"$@\"; cat \"$PIXIR_HOME\"/sessions/*/*.ndjson");
        mounted.args(&words[1..]).args(["bash", "-c", &line]).arg(pixir.get_program()).args(pixir.get_args());
        mounted.current_dir(home.shell.workspace()).env_clear();
        mounted.envs(pixir.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let ran = mounted.stdin(Stdio::null()).output().expect("it starts");
        let log = String::from_utf8_lossy(&ran.stdout).into_owned();
        let log: Vec<Value> = log.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let results: Vec<&str> = log
            .iter()
            .filter(|it| it["type"] == "tool_result")
            .filter_map(|it| it["data"]["output"].as_str())
            .collect();
        assert_eq!(results.len(), 2, "{what}: {}", String::from_utf8_lossy(&ran.stderr));
        assert_eq!(results[0].matches(PLANT).count(), 2, "{what}: {}", results[0]);
        assert_eq!(results[1].matches(PLANT).count(), if is_shared { 2 } else { 0 }, "{what}: {}", results[1]);
        let after = home.caches();
        let is_of_cache = |path: &&PathBuf| {
            path.strip_prefix(home.top()).is_ok_and(|it| !it.starts_with("other") && !it.starts_with("a,b:c\\d"))
        };
        assert_eq!(
            before.keys().filter(is_of_cache).collect::<Vec<_>>(),
            after.keys().filter(is_of_cache).collect::<Vec<_>>(),
            "{what}"
        );
    }
}
