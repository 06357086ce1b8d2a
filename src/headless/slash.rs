//! Slash commands where there is no screen: each is its Input, and never text for a model.

use std::path::Path;

use pixir_core::error::nearest;
use pixir_core::remedy::Part;
use pixir_core::verbs::{self, Order, VERBS};
use pixir_core::{Code, Error, Harness, Input, Remedy, Result, Template, arguments};

use crate::next_actions::quoted;
use crate::remedies::Piece::{Command, Flag, Text};
use crate::remedies::{Piece, instead};

/// Commands of the terminal interface that need its screen, and what does the same without it.
const ELSEWHERE: &[(&str, &[Piece])] = &[
    ("init", &[Command("pixir init")]),
    ("tree", &[Command("pixir tree")]),
    ("fork", &[Command("pixir fork")]),
    ("diff", &[Command("pixir sessions show last"), Text(", or git diff")]),
    ("files", &[Command("pixir sessions show last"), Text(", or git diff")]),
    ("permissions", &[Command("pixir permissions list")]),
    ("trust", &[Command("pixir trust")]),
    ("model", &[Flag("--model NAME")]),
    ("theme", &[Command("pixir themes list")]),
    ("usage", &[Flag("--json"), Text(", whose result has the usage")]),
    ("resume", &[Command("pixir resume --last")]),
    ("help", &[Command("pixir --help")]),
    ("jobs", &[Text("the terminal interface: "), Command("pixir resume --last")]),
    ("find", &[Command("pixir sessions export last")]),
    ("new", &[Command("pixir -p PROMPT")]),
    ("sessions", &[Command("pixir sessions list")]),
    ("rewind", &[Command("pixir tree"), Text(" and "), Command("pixir fork")]),
    ("label", &[Text("the terminal interface: "), Command("pixir resume --last")]),
    ("pin", &[Text("the terminal interface: "), Command("pixir resume --last")]),
    ("context", &[Text("the terminal interface: "), Command("pixir resume --last")]),
    ("outline", &[Command("pixir tree")]),
    ("agents", &[Command("pixir agents tree")]),
    ("workflows", &[Command("pixir workflow list")]),
    ("mcp", &[Command("pixir mcp list")]),
    ("settings", &[Command("pixir config show")]),
    ("config", &[Command("pixir config show")]),
    ("connect", &[Command("pixir auth login PROVIDER")]),
    ("auth", &[Command("pixir auth login PROVIDER")]),
    ("keys", &[Text("the terminal interface: "), Command("pixir")]),
    ("mouse", &[Text("the terminal interface: "), Command("pixir")]),
    ("copy", &[Text("stdout, which has the answer alone")]),
    ("interrupt", &[Text("Ctrl+C, which interrupts a headless run")]),
    ("quit", &[Text("no command: a headless run ends by itself")]),
    ("plan", &[Flag("--mode read-only"), Text(", and ask for a plan")]),
    ("attach", &[Text("@FILE in the prompt")]),
    ("add-dir", &[Flag("--add-dir FOLDER")]),
    ("export", &[Command("pixir sessions export last")]),
    ("status", &[Command("pixir sessions show last")]),
    ("doctor", &[Command("pixir doctor")]),
    ("log", &[Text("the file log/pixir.log of the state folder, which "), Command("pixir doctor"), Text(" names")]),
];

/// What a prompt asks for.
pub(crate) struct Asked {
    /// A skill that is activated first.
    pub(crate) skill: Option<String>,
    pub(crate) input: Input,
}

impl From<Input> for Asked {
    fn from(input: Input) -> Asked {
        Asked { skill: None, input }
    }
}

/// What a prompt asks for: the Input of its slash command, or a Turn with its text.
///
/// A prompt is a command if its first word is a slash and a name that pixir knows, or looks like such a name: letters,
/// digits, `-`, `_` and `:`. A path has more slashes, or is a folder of this machine, so it is text.
///
/// # Errors
/// The command is unknown or needs the screen, or its arguments are wrong.
pub(crate) fn input(harness: &Harness, prompt: String, dry_run: bool) -> Result<Asked> {
    let Some(line) = prompt.strip_prefix('/') else { return Ok(Input::Prompt(prompt.into()).into()) };
    let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let rest = rest.trim();
    let order = || Order { args: rest, dry_run, ..Order::default() };
    if let Some(made) = verbs::find(name).filter(|it| it.headless).and_then(|it| it.input(order())) {
        return made.map(|(_, input)| input.into());
    }
    if let Some((_, ours)) = ELSEWHERE.iter().find(|(known, _)| *known == name) {
        let message = format!("/{name} is a command of the terminal interface");
        return Err(Error::new(Code::InvalidArgs, message, instead(ours)).with("input", name));
    }
    if let Some(template) = harness.templates().iter().find(|it| it.name == name) {
        return template_input(template, rest).map(Asked::from);
    }
    if harness.skills().iter().any(|it| it.name == name) {
        return Ok(skill(name, rest));
    }
    if harness.server_prompts().iter().any(|it| it.name == name) {
        let message = format!("/{name} is a prompt of an MCP server, whose text a user reads before it is sent");
        let fix = Remedy::text("use it in the terminal interface: ").and_command("pixir");
        return Err(Error::new(Code::InvalidArgs, message, fix).with("input", name));
    }
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | ':'));
    if is_name && !Path::new("/").join(name).exists() {
        return Err(unknown(harness, name));
    }
    Ok(Input::Prompt(prompt.into()).into())
}

/// The Input of a template; it has as many words as its text has places for.
fn template_input(template: &Template, args: &str) -> Result<Input> {
    let (name, wanted) = (template.name.clone(), &template.parameters);
    if template.is_active() && arguments::split(args).len() < wanted.len() {
        let words = template.argument_hint.clone().unwrap_or_else(|| wanted.join(" "));
        let example: Vec<String> = (1..=wanted.len()).map(|at| format!("WORD{at}")).collect();
        let line = format!("pixir -p {}", quoted(&format!("/{name} {}", example.join(" "))));
        let message = format!("the prompt template /{name} needs more words: {words}");
        let fix = Remedy::text("give a word for each: ").and_command(line);
        return Err(Error::new(Code::InvalidArgs, message, fix).with("input", name));
    }
    Ok(Input::UseTemplate { name, args: args.to_owned(), attachments: Vec::new() })
}

/// A skill that its user calls by name. No message can follow in this run, so one without a task is applied as it is.
fn skill(name: &str, task: &str) -> Asked {
    let name = name.to_owned();
    match task {
        "" => {
            let prompt = format!("Apply the skill {name}.");
            Asked { skill: Some(name), input: Input::Prompt(prompt.into()) }
        }
        task => Input::ActivateSkill { name, args: task.to_owned(), attachments: Vec::new() }.into(),
    }
}

/// The error for a command that pixir does not have.
fn unknown(harness: &Harness, name: &str) -> Error {
    let (templates, skills) = (harness.templates(), harness.skills());
    let of_pixir = VERBS.iter().filter(|it| it.headless).map(|it| it.name);
    let of_files = templates.iter().map(|it| it.name.as_str()).chain(skills.iter().map(|it| it.name.as_str()));
    let fix = match nearest(name, of_pixir.chain(of_files)) {
        Some(near) => Remedy::text("did you mean /").and(Part::Nearest(near.to_owned())).and_text("? "),
        None => Remedy::text("list the skills: ").and_command("pixir skills list").and_text("; "),
    };
    let fix = fix.and_text("a prompt that is text and begins with a slash needs a space before it");
    Error::new(Code::InvalidArgs, format!("the command /{} is unknown", name.escape_debug()), fix).with("input", name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken build: a command of the interface that a later build adds is called unknown in a headless run.
    #[test]
    fn every_command_of_the_interface_is_an_input_or_has_an_answer() {
        let all = pixir_ui::reference();
        let names = all.as_array().expect("actions").iter().filter_map(|it| it["command"].as_str()?.strip_prefix('/'));
        let names: Vec<&str> = names.map(|it| it.split(' ').next().unwrap_or(it)).collect();
        assert!(names.len() > 40, "{names:?}");
        let is_answered = |name: &str| {
            verbs::find(name).is_some_and(|it| it.headless) || ELSEWHERE.iter().any(|(known, _)| *known == name)
        };
        let missing: Vec<&&str> = names.iter().filter(|name| !is_answered(name)).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }
}
