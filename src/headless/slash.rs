//! Slash commands where there is no screen: each is its Input, and never text for a model.

use pixir_core::error::nearest;
use pixir_core::event::{Mode, Toolset};
use pixir_core::input::{CompactOptions, RestoreOptions, SettingsChange};
use pixir_core::{Code, Effort, Error, Harness, Input, Result};

/// Commands of the terminal interface that need its screen, and what does the same without it.
const ELSEWHERE: [(&str, &str); 25] = [
    ("init", "pixir init"),
    ("tree", "pixir tree"),
    ("fork", "pixir fork"),
    ("diff", "pixir sessions show, or git diff"),
    ("permissions", "pixir permissions list"),
    ("trust", "pixir trust"),
    ("model", "--model NAME"),
    ("theme", "pixir themes list"),
    ("usage", "--json, whose result has the usage"),
    ("resume", "pixir resume"),
    ("help", "pixir --help"),
    ("jobs", "the terminal interface"),
    ("find", "pixir sessions export"),
    ("new", "leave out `resume`"),
    ("sessions", "pixir sessions list"),
    ("rewind", "pixir tree and pixir fork"),
    ("label", "the terminal interface"),
    ("pin", "the terminal interface"),
    ("plan", "--mode read-only, and ask for a plan"),
    ("attach", "@FILE in the prompt"),
    ("add-dir", "pixir permissions add 'read(FOLDER)'"),
    ("export", "pixir sessions export"),
    ("status", "pixir sessions show"),
    ("doctor", "pixir doctor"),
    ("log", "the file pixir.log in the state folder"),
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
            Some((_, instead)) => Err(Error::new(
                Code::InvalidArgs,
                format!("/{name} is a command of the terminal interface"),
                format!("use {instead}"),
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
