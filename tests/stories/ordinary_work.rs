//! An hour of ordinary work in `ask` mode: which steps are a question.

use serde_json::{Value, json};

use super::builds::project;
use super::readers::called;
use crate::shell::figures;

/// What the user is asked about a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Question<'a> {
    Nothing,
    /// Worth asking each time.
    Once,
    /// Worth asking until there is this rule.
    Always(&'a str),
}

struct Step<'a> {
    question: Question<'a>,
    fails: bool,
    tool: &'static str,
    args: Value,
}

impl<'a> Step<'a> {
    fn of(line: &'a str) -> Step<'a> {
        let (fails, line) = line.strip_prefix("fail ").map_or((false, line), |line| (true, line));
        let bash = |question, command: &str| {
            let args = json!({ "command": command, "timeout": 600 });
            Step { question, fails, tool: "bash", args }
        };
        let (question, call) = match line.split_once(' ').expect("a word and more") {
            ("run", command) => return bash(Question::Nothing, command),
            ("ask", command) => return bash(Question::Once, command),
            ("always", rest) => match rest.split_once(" | ").expect("a rule") {
                ("files()", call) => (Question::Always("files()"), call),
                (rule, command) => return bash(Question::Always(rule), command),
            },
            _ => (Question::Nothing, line),
        };
        let (kind, rest) = call.split_once(' ').unwrap_or((call, ""));
        let parts: Vec<String> = rest.split(" | ").map(|part| part.replace('⏎', "\n")).collect();
        let (tool, args) = match kind {
            "read" => ("read", json!({ "path": parts[0] })),
            "grep" => ("grep", json!({ "pattern": parts[0] })),
            "edit" => ("edit", json!({ "path": parts[0], "old_text": parts[1], "new_text": parts[2] })),
            "write" => ("write", json!({ "path": parts[0], "content": parts[1] })),
            _ => panic!("not a step: {line}"),
        };
        Step { question, fails, tool, args }
    }
}

/// Takes the steps with the real binary as a user would: a rule where the table has one, else one answer.
fn work(project_name: &str, table: &str) {
    let project = project(project_name);
    let shell = project.shell();
    let root = shell.workspace();
    let commit = "git add -A && git commit -qm start --no-verify";
    let made = std::process::Command::new("bash").args(["-c", commit]).current_dir(&root).status();
    assert!(made.expect("bash starts").success());
    let (mut steps, mut asked, mut surprising) = (0, Vec::new(), Vec::new());
    for line in table.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let step = Step::of(line);
        steps += 1;
        let home = std::env::var("HOME").unwrap_or_default();
        let environment = [("HOME", home), ("XDG_CONFIG_HOME", shell.home().display().to_string())];
        let call = |mode: &[&str]| {
            let mut ran = called(&shell, &[(step.tool, step.args.clone())], mode, &environment);
            ran.pop().expect("one call")
        };
        let (verdict, mut output) = call(&["--mode", "ask", "--no-input"]);
        let asks = verdict == "deny";
        if asks {
            asked.push(line);
            // The user allows it.
            output = call(&["--write"]).1;
        }
        match step.question {
            Question::Nothing if asks => surprising.push(format!("asked: {line}")),
            Question::Once | Question::Always(_) if !asks => surprising.push(format!("not asked: {line}")),
            Question::Always(rule) => {
                if let Some(command) = step.args["command"].as_str() {
                    let offered = pixir_core::rules::pattern_of(command, &root).map(|it| format!("bash({it})"));
                    if offered.as_deref() != Some(rule) {
                        surprising.push(format!("offered {offered:?}: {line}"));
                    }
                }
                assert_eq!(shell.run(["permissions", "add", rule]).code, 0, "{line}");
            }
            Question::Nothing | Question::Once => {}
        }
        let is_fine = output.contains("[exit:0 |");
        if is_fine == step.fails {
            surprising.push(format!("ended otherwise: {line}\n    {output}"));
        }
    }
    figures(&format!(
        "ordinary work, {project_name}: {steps} steps, {} questions, {} surprises\n  {}",
        asked.len(),
        surprising.len(),
        asked.join("\n  ")
    ));
    assert!(surprising.is_empty(), "{}", surprising.join("\n"));
    assert!(steps >= 60 && asked.len() * 4 < steps, "{} questions in {steps} steps", asked.len());
}

/// Broken builds: a rule covers only a line without a pipe or `2>&1`; `cd` into a folder of the workspace ends what a rule
/// covers.
#[test]
fn an_hour_in_a_rust_project_has_few_questions() {
    work("rust", include_str!("../commands/ordinary-rust.txt"));
}

/// Broken build: `python3 -m unittest` offers no rule, because `python3` can run anything.
#[test]
fn an_hour_in_a_python_project_has_few_questions() {
    work("python", include_str!("../commands/ordinary-python.txt"));
}
