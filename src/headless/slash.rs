//! Slash commands where there is no screen: each is its Input, and never text for a model.

use pixir_core::error::nearest;
use pixir_core::event::{Mode, Toolset};
use pixir_core::input::{CompactOptions, RestoreOptions, SettingsChange};
use pixir_core::{Code, Effort, Error, Harness, Input, Result};

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
    let set = |change: SettingsChange| Ok(Input::Set(change));
    match name {
        "compact" => {
            let instructions = Some(rest.to_owned()).filter(|it| !it.is_empty());
            Ok(Input::Compact { instructions, dry_run, options: CompactOptions::default() })
        }
        "skill" => {
            let (name, args) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
            if name.is_empty() {
                return Err(Error::new(Code::InvalidArgs, "/skill needs a name", "/skill NAME [what to do with it]"));
            }
            let (name, args) = (name.to_owned(), args.trim().to_owned());
            Ok(Input::ActivateSkill { name, args, attachments: Vec::new() })
        }
        "undo" => {
            let turn = Some(rest).filter(|it| !it.is_empty()).map(str::parse).transpose().map_err(|_| {
                Error::new(
                    Code::InvalidArgs,
                    format!("`{}` is not the number of a turn", rest.escape_debug()),
                    "/undo [TURN]",
                )
            })?;
            Ok(Input::Undo { turn, options: RestoreOptions { dry_run, ..RestoreOptions::default() } })
        }
        "redo" => Ok(Input::Redo { options: RestoreOptions { dry_run, ..RestoreOptions::default() } }),
        "rename" => set(SettingsChange { name: Some(rest.to_owned()), ..SettingsChange::default() }),
        "mode" => set(SettingsChange { mode: Some(Mode::parse(rest)?), ..SettingsChange::default() }),
        "effort" => {
            let effort = Effort::parse(rest)?.name().to_owned();
            set(SettingsChange { effort: Some(effort), ..SettingsChange::default() })
        }
        "toolset" => set(SettingsChange { toolset: Some(Toolset::parse(rest)?), ..SettingsChange::default() }),
        // A path or a pasted line begins with a slash too.
        _ => match ELSEWHERE.iter().find(|(known, _)| *known == name) {
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
