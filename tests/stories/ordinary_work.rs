//! An hour of ordinary work in `ask` mode: which steps are a question.

use pixir_core::event::Rule;
use pixir_core::rules::{parse, pattern_of};
use serde_json::{Value, json};

use super::builds::project;
use crate::hosted::Hosted;
use crate::shell::figures;
use crate::tier;

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

/// Takes the steps in one Session whose questions are answered as a user would: with a rule where the table has one, else once.
fn work(project_name: &str, table: &str) {
    if !tier::sample("an_hour_in", vec!["rust", "python"]).contains(&project_name) {
        return figures(&format!("ordinary work, {project_name}: not in this run"));
    }
    let project = project(project_name);
    let shell = project.shell();
    let root = shell.workspace();
    let commit = "git add -A && git commit -qm start --no-verify";
    let made = std::process::Command::new("bash").args(["-c", commit]).current_dir(&root).status();
    assert!(made.expect("bash starts").success());
    let lines: Vec<&str> = table.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    let steps: Vec<Step<'_>> = lines.iter().map(|line| Step::of(line)).collect();
    let mut rounds: Vec<Value> =
        steps.iter().map(|step| json!({ "calls": [{ "name": step.tool, "args": step.args }] })).collect();
    rounds.push(json!({ "text": "Done." }));
    let script = shell.aside("script.json", &json!({ "steps": rounds }).to_string());
    let provider = format!("script:{}", script.display());
    let flags = ["--mode", "ask", "--max-rounds", "100", "--provider", &provider];
    let mut command = shell.command(flags.into_iter().chain(Hosted::FLAGS));
    command.env("HOME", std::env::var_os("HOME").unwrap_or_default()).env("XDG_CONFIG_HOME", shell.home());
    let mut host = Hosted::of(command);
    host.ask("go", json!({ "type": "prompt", "text": "go" }));

    let (mut asked, mut surprising, mut at) = (Vec::new(), Vec::new(), 0);
    for (line, step) in lines.iter().zip(&steps) {
        at = host.until(at, |it| it["type"] == "tool_call") + 1;
        let id = host.seen[at - 1]["data"]["call_id"].clone();
        let is_of_it = |it: &Value, kind: &str| it["type"] == kind && it["data"]["call_id"] == id;
        // The steps come one after the other, so the first of both that follows is the call's.
        at = host.until(at, |it| is_of_it(it, "approval_requested") || is_of_it(it, "tool_result"));
        let asks = host.seen[at]["type"] == "approval_requested";
        if asks {
            asked.push(*line);
            let approval = host.seen[at]["data"].clone();
            let rule = match step.question {
                Question::Always(rule) => {
                    if let Some(command) = step.args["command"].as_str() {
                        let offered = pattern_of(command, &root).map(|it| format!("bash({it})"));
                        if offered.as_deref() != Some(rule) {
                            surprising.push(format!("offered {offered:?}: {line}"));
                        }
                    }
                    Some(Rule::Allow(parse(rule).expect(rule)))
                }
                Question::Nothing | Question::Once => None,
            };
            let (decision, confirm) = match rule {
                Some(rule) => (json!({ "answer": "allow_always", "rule": rule }), &approval["confirm_rule"]),
                None => (json!({ "answer": "allow" }), &approval["confirm"]),
            };
            let word = &confirm["word"];
            let input = json!({ "type": "decide", "call_id": id, "decision": decision, "word": word });
            let taken = host.ask(&format!("d{}", asked.len()), input);
            assert_eq!(taken["ok"], true, "{line}: {taken}");
            at = host.until(at, |it| is_of_it(it, "tool_result"));
        }
        match step.question {
            Question::Nothing if asks => surprising.push(format!("asked: {line}")),
            Question::Once | Question::Always(_) if !asks => surprising.push(format!("not asked: {line}")),
            Question::Nothing | Question::Once | Question::Always(_) => {}
        }
        let output = host.seen[at]["data"]["output"].as_str().unwrap_or_default().to_owned();
        let is_fine = output.contains("[exit:0 |");
        if is_fine == step.fails {
            surprising.push(format!("ended otherwise: {line}\n    {output}"));
        }
    }
    let (_, code) = host.end();
    assert_eq!(code, 0);
    figures(&format!(
        "ordinary work, {project_name}: {} steps, {} questions, {} surprises\n  {}",
        steps.len(),
        asked.len(),
        surprising.len(),
        asked.join("\n  ")
    ));
    assert!(surprising.is_empty(), "{}", surprising.join("\n"));
    assert!(steps.len() >= 60 && asked.len() * 4 < steps.len(), "{} questions", asked.len());
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
