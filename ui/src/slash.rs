//! Slash commands: one table for completion, help and what they do.

use nucleo_matcher::pattern::{CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher};
use pixir_core::error::nearest;

/// What a command needs to be of use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    Always,
    /// Not while a Turn runs.
    Idle,
}

/// A command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slash {
    pub(crate) name: &'static str,
    pub(crate) args: &'static str,
    pub(crate) about: &'static str,
    /// The Inputs that it becomes.
    pub(crate) does: &'static str,
    pub(crate) when: When,
}

pub(crate) const COMMANDS: [Slash; 20] = [
    Slash {
        name: "compact",
        args: "[keep in mind]",
        about: "Replace older history by a summary; shown before it is applied",
        does: "Compact{dry_run}, then Compact{}",
        when: When::Idle,
    },
    Slash {
        name: "diff",
        args: "",
        about: "What this turn and this session changed",
        does: "opens the diff",
        when: When::Always,
    },
    Slash {
        name: "effort",
        args: "[level]",
        about: "How hard the model thinks, from the next request on",
        does: "Set{effort}",
        when: When::Always,
    },
    Slash {
        name: "fork",
        args: "",
        about: "Go on from here in a new session; this one stays as it is",
        does: "Fork{seq}",
        when: When::Idle,
    },
    Slash { name: "help", args: "", about: "Keys and commands", does: "opens the help", when: When::Always },
    Slash { name: "interrupt", args: "", about: "Stop the running turn (Esc)", does: "Interrupt", when: When::Always },
    Slash {
        name: "jobs",
        args: "",
        about: "What runs in the background; x stops it",
        does: "StopJob{job}",
        when: When::Always,
    },
    Slash {
        name: "mode",
        args: "[read-only|ask|auto]",
        about: "What may run without asking",
        does: "Set{mode}",
        when: When::Always,
    },
    Slash {
        name: "model",
        args: "[provider/name]",
        about: "Who answers from the next request on",
        does: "Set{provider, model}",
        when: When::Always,
    },
    Slash {
        name: "new",
        args: "",
        about: "Start a new session",
        does: "closes this session and starts one",
        when: When::Always,
    },
    Slash {
        name: "quit",
        args: "",
        about: "Close pixir; the session stays",
        does: "closes the session",
        when: When::Always,
    },
    Slash {
        name: "redo",
        args: "",
        about: "Bring back what the last undo took away; shown before it is done",
        does: "Redo{dry_run}, then Redo{}",
        when: When::Idle,
    },
    Slash { name: "rename", args: "<name>", about: "Name this session", does: "Set{name}", when: When::Always },
    Slash {
        name: "resume",
        args: "[id]",
        about: "Go on with another session",
        does: "closes this session and opens that one",
        when: When::Always,
    },
    Slash {
        name: "skill",
        args: "[name] [task]",
        about: "Put a SKILL.md into the conversation",
        does: "ActivateSkill{name, args}",
        when: When::Idle,
    },
    Slash { name: "theme", args: "[name]", about: "Colours", does: "changes the screen only", when: When::Always },
    Slash {
        name: "toolset",
        args: "[typed|run|both]",
        about: "Which tools the model gets, from the next request on",
        does: "Set{toolset}",
        when: When::Always,
    },
    Slash {
        name: "tree",
        args: "",
        about: "Turns and branches: go back, edit, fork",
        does: "MoveHead{to_seq}, Fork{seq}, Label{seq} or Pin{seq}",
        when: When::Always,
    },
    Slash {
        name: "undo",
        args: "[turn]",
        about: "Take back what a turn changed in files; shown before it is done",
        does: "Undo{dry_run}, then Undo{}",
        when: When::Idle,
    },
    Slash {
        name: "usage",
        args: "",
        about: "Tokens and money: this branch, the session, each model and turn",
        does: "says it",
        when: When::Always,
    },
];

/// Commands that fit these letters, best first.
pub(crate) fn complete(letters: &str) -> Vec<Slash> {
    let mut matcher = Matcher::new(Config::DEFAULT);
    let pattern = Pattern::parse(letters, CaseMatching::Ignore, Normalization::Smart);
    let mut buffer = Vec::new();
    let mut found: Vec<(u32, Slash)> = COMMANDS
        .iter()
        .filter_map(|command| {
            let score = pattern.score(nucleo_matcher::Utf32Str::new(command.name, &mut buffer), &mut matcher)?;
            // What begins so is what is meant.
            Some((score + if command.name.starts_with(letters) { 1_000 } else { 0 }, *command))
        })
        .collect();
    found.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.name.cmp(b.1.name)));
    found.into_iter().map(|(_, command)| command).collect()
}

/// Splits `/name rest`; an unknown name comes back with the nearest.
pub(crate) fn parse(text: &str) -> Result<(Slash, &str), String> {
    let body = text.strip_prefix('/').unwrap_or(text);
    let (name, rest) = body.split_once(char::is_whitespace).unwrap_or((body, ""));
    match COMMANDS.iter().find(|command| command.name == name) {
        Some(command) => Ok((*command, rest.trim())),
        None => {
            let near = nearest(name, COMMANDS.iter().map(|c| c.name))
                .map_or_else(|| "/help lists all".to_owned(), |near| format!("did you mean /{near}?"));
            Err(format!("there is no command /{name}; {near}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_letters_find_a_command_and_a_wrong_one_gets_the_nearest() {
        assert_eq!(complete("comp")[0].name, "compact");
        assert_eq!(complete("tr")[0].name, "tree");
        assert_eq!(complete("").len(), COMMANDS.len());
        assert_eq!(parse("/skill review the diff").map(|(c, rest)| (c.name, rest)), Ok(("skill", "review the diff")));
        assert_eq!(
            parse("/compcat").expect_err("no such command"),
            "there is no command /compcat; did you mean /compact?"
        );
    }
}
