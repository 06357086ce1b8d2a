//! Slash commands where there is no screen: each is its Input, and never text for a model.

use pixir_core::error::nearest;
use pixir_core::verbs::{self, Order};
use pixir_core::{Code, Error, Harness, Input, Result};

use crate::remedies::Piece::{Command, Flag, Text};
use crate::remedies::{Piece, instead};

/// Commands of the terminal interface that need its screen, and what does the same without it.
const ELSEWHERE: &[(&str, &[Piece])] = &[
    ("init", &[Command("pixir init")]),
    ("tree", &[Command("pixir tree")]),
    ("fork", &[Command("pixir fork")]),
    ("diff", &[Command("pixir sessions show"), Text(", or git diff")]),
    ("files", &[Command("pixir sessions show"), Text(", or git diff")]),
    ("permissions", &[Command("pixir permissions list")]),
    ("trust", &[Command("pixir trust")]),
    ("model", &[Flag("--model NAME")]),
    ("theme", &[Command("pixir themes list")]),
    ("usage", &[Flag("--json"), Text(", whose result has the usage")]),
    ("resume", &[Command("pixir resume")]),
    ("help", &[Command("pixir --help")]),
    ("jobs", &[Text("the terminal interface")]),
    ("find", &[Command("pixir sessions export")]),
    ("new", &[Text("leave out `resume`")]),
    ("sessions", &[Command("pixir sessions list")]),
    ("rewind", &[Command("pixir tree"), Text(" and "), Command("pixir fork")]),
    ("label", &[Text("the terminal interface")]),
    ("pin", &[Text("the terminal interface")]),
    ("plan", &[Flag("--mode read-only"), Text(", and ask for a plan")]),
    ("attach", &[Text("@FILE in the prompt")]),
    ("add-dir", &[Command("pixir permissions add 'read(FOLDER)'")]),
    ("export", &[Command("pixir sessions export")]),
    ("status", &[Command("pixir sessions show")]),
    ("doctor", &[Command("pixir doctor")]),
    ("log", &[Text("the file pixir.log in the state folder")]),
];

/// What a prompt asks for: the Input of its slash command, or a Turn with its text.
///
/// # Errors
/// The command needs the screen, or its arguments are wrong.
pub(crate) fn input(harness: &Harness, prompt: String, dry_run: bool) -> Result<Input> {
    let Some(line) = prompt.strip_prefix('/') else { return Ok(Input::Prompt(prompt.into())) };
    let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let rest = rest.trim();
    let order = || Order { args: rest, dry_run, ..Order::default() };
    match verbs::find(name).filter(|it| it.headless).and_then(|it| it.input(order())) {
        Some(made) => made.map(|(_, input)| input),
        // A path or a pasted line begins with a slash too.
        None => match ELSEWHERE.iter().find(|(known, _)| *known == name) {
            Some((_, ours)) => Err(Error::new(
                Code::InvalidArgs,
                format!("/{name} is a command of the terminal interface"),
                instead(ours),
            )
            .with("input", name)),
            None => Ok(match template(harness, name) {
                Some(name) => Input::UseTemplate { name, args: rest.to_owned(), attachments: Vec::new() },
                None => Input::Prompt(prompt.into()),
            }),
        },
    }
}

/// The name, if it is that of a prompt template, or nearly: that is a mistake, which the core reports.
fn template(harness: &Harness, name: &str) -> Option<String> {
    let templates = harness.templates();
    let names = || templates.iter().map(|it| it.name.as_str());
    let is_meant = !name.contains('/') && (names().any(|it| it == name) || nearest(name, names()).is_some());
    is_meant.then(|| name.to_owned())
}
