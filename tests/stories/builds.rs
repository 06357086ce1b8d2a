//! Builds and tests run unasked in `auto`, inside the sandbox and without the network.

use std::process::Command;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::shell::{Shell, entries, ran};

const BUILDS: &str = include_str!("../commands/builds.toml");

#[derive(Deserialize)]
struct Builds {
    project: Vec<Project>,
}

/// A project, and what is done in it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Project {
    name: String,
    /// The programs that it needs.
    needs: Vec<String>,
    /// Not every machine has those.
    #[serde(default)]
    optional: bool,
    files: std::collections::BTreeMap<String, String>,
    /// Lines of bash that run first, outside of the sandbox.
    before: Vec<String>,
    commands: Vec<String>,
    /// Commands that the tier `ll` cannot run.
    #[serde(default)]
    only_ns: Vec<String>,
}

fn projects() -> Vec<Project> {
    let Builds { project } = toml::from_str(BUILDS).expect("a table of projects");
    project
}

/// The project of this name.
pub(super) fn project(name: &str) -> Project {
    projects().into_iter().find(|it| it.name == name).expect("it is in the table")
}

/// The environment of a user with toolchains: the home folder is the real one.
fn with_toolchains(shell: &Shell, mut command: Command) -> Command {
    command.env("HOME", std::env::var_os("HOME").unwrap_or_default()).env("XDG_CONFIG_HOME", shell.home());
    command
}

impl Project {
    /// Its files, with what has to happen `before`.
    pub(super) fn shell(&self) -> Shell {
        let files: Vec<(&str, &str)> = self.files.iter().map(|(name, text)| (&name[..], &text[..])).collect();
        let shell = Shell::new(&files);
        for line in &self.before {
            let mut bash = Command::new("bash");
            bash.args(["-c", line]).current_dir(shell.workspace());
            let ran = bash.output().expect("bash starts");
            assert!(ran.status.success(), "{}: {line}: {}", self.name, String::from_utf8_lossy(&ran.stderr));
        }
        shell
    }

    /// Runs every command in one Session of this tier. Returns those that asked, and those that did not end with 0.
    fn run(&self, tier: &str) -> (usize, Vec<String>, Vec<String>) {
        let shell = self.shell();
        let more = if tier == "ns" { self.only_ns.as_slice() } else { &[] };
        let commands: Vec<&String> = self.commands.iter().chain(more).collect();
        let mut steps: Vec<Value> = commands
            .iter()
            .map(|line| json!({ "calls": [{ "name": "bash", "args": { "command": line, "timeout": 600 } }] }))
            .collect();
        steps.push(json!({ "text": "done" }));
        let script = shell.aside("script.json", &json!({ "steps": steps }).to_string());
        let provider = format!("script:{}", script.display());
        let args = ["--provider", &provider, "--headless", "--write", "--max-rounds", "100", "--sandbox", tier, "go"];
        let ended = ran(with_toolchains(&shell, shell.command(args)).output().expect("the binary starts"));
        let logs = shell.logs();
        let [log] = logs.as_slice() else { panic!("{} {tier}: {}", self.name, ended.stderr) };
        let log = entries(log);
        let data = |kind: &str| -> Vec<Value> {
            log.iter().filter(|it| it["type"] == kind).map(|it| it["data"].clone()).collect()
        };
        let results = data("tool_result");
        assert_eq!(results.len(), commands.len(), "{} {tier}: {}", self.name, ended.stderr);
        // A second decision about a call is one about more than the sandbox allows.
        let decisions = data("permission_decision");
        let by_mode = |id: &Value| {
            let all: Vec<_> = decisions.iter().filter(|it| it["call_id"] == *id).collect();
            all.len() == 1 && all[0]["verdict"] == "allow" && all[0]["by"] == "mode"
        };
        let (mut asked, mut failed) = (Vec::new(), Vec::new());
        for (line, result) in commands.iter().zip(&results) {
            if !by_mode(&result["call_id"]) {
                asked.push(format!("{tier} {}: {line}", self.name));
            }
            if result["exit_code"] != 0 {
                failed.push(format!("{tier} {}: {line}\n    {}", self.name, result["output"]));
            }
        }
        (commands.len(), asked, failed)
    }
}

/// Whether this machine can run the project; rustup and pyenv have names of programs that are not installed.
fn is_there(program: &str) -> bool {
    let version = ["--version", "version"];
    version.iter().any(|it| Command::new(program).arg(it).output().is_ok_and(|it| it.status.success()))
}

/// In how many languages the projects are at least.
const LANGUAGES: usize = 6;

/// Real projects of every language that this machine has.
///
/// Broken builds: `view` leaves out `.rustup`; programs of the tier `ll` have no folder for temporary files; the working
/// policy shows the workspace without letting it change.
mod builds_and_tests_run_unasked_in_auto {
    use super::{LANGUAGES, is_there, project, projects};
    use crate::shell::{figures, skip};
    use crate::tier;

    fn in_language(name: &str) {
        let project = project(name);
        let missing: Vec<_> = project.needs.iter().filter(|it| !is_there(it)).collect();
        if project.optional && !missing.is_empty() {
            return figures(&format!("builds: {name} is left out, because {missing:?} is not installed"));
        }
        assert!(missing.is_empty(), "{name}: {missing:?} is not installed");
        if !tier::sample("run_unasked_in_auto", projects()).iter().any(|it| it.name == name) {
            return figures(&format!("builds: {name} is not in this run"));
        }
        for tier in tier::sample("builds_and_tests", vec!["ns", "ll"]) {
            let (tried, asked, failed) = project.run(tier);
            figures(&format!(
                "QS2: {name} {tier}: {tried} tried in auto, {} asked, {} failed",
                asked.len(),
                failed.len()
            ));
            assert!(asked.is_empty() && failed.is_empty(), "asked: {asked:#?}\nfailed:\n{}", failed.join("\n"));
        }
    }

    macro_rules! stories {
        ($($language:ident)*) => {
            $(#[test] fn $language() { in_language(stringify!($language)); })*

            #[test]
            fn every_project_of_the_table_has_its_story() {
                let projects = projects();
                let named: Vec<&str> = projects.iter().map(|it| it.name.as_str()).collect();
                assert_eq!(named, [$(stringify!($language)),*]);
                let there = projects.iter().filter(|it| it.needs.iter().all(|program| is_there(program))).count();
                if there < LANGUAGES {
                    skip(&format!("builds: this machine has {there} of {LANGUAGES} languages"));
                }
            }
        };
    }

    stories! { rust python c shell javascript java go ruby }
}

/// Under `ll` a program sees the machine's `/tmp` and may not use it, so it is told of a folder of its own.
#[test]
fn a_program_has_a_folder_for_temporary_files_in_every_tier() {
    for tier in ["ns", "ll"] {
        let shell = Shell::new(&[]);
        let run = |line: &str, flags: &[&str]| {
            let args = json!({ "command": line }).to_string();
            let ran = shell.run(["tools", "run", "bash", &args, "--json", "--sandbox", tier].iter().chain(flags));
            ran.document()["result"]["exit_code"].clone()
        };
        assert_eq!(run("f=$(mktemp) && echo x > $f && cat $f && rm $f", &["--write"]), 0, "{tier}");
        assert_eq!(run("cat <<X\na\nX", &["--write"]), 0, "{tier}");
        assert_eq!(run("ls", &["--mode", "read-only"]), 0, "{tier}: what only looks needs none");
    }
}
