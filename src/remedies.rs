//! Remedies on the command line: as text, and as the commands and flags that `next_actions` is made of.

use pixir_core::error::ErrorBody;
use pixir_core::event::{Mode, Toolset};
use pixir_core::provider::preset;
use pixir_core::remedy::{Limit, McpNeed, Part, Remedy, Sessions, retry, words};

use crate::next_actions::quoted;

/// A remedy as commands and flags of `pixir`.
pub(crate) fn word(remedy: &Remedy) -> String {
    words(&parts(remedy))
}

/// The same, with the commands and flags as parts of their own. What begins with `pixir` is one command and nothing else, so
/// that a program can run it as it stands: where more follows, words lead in.
pub(crate) fn parts(remedy: &Remedy) -> Vec<Part> {
    let mut parts = of_presenter(remedy);
    parts.retain(|it| !it.words().is_empty());
    let begins_with_pixir = matches!(parts.first(), Some(Part::Command(line)) if line.starts_with("pixir"));
    if begins_with_pixir && parts.len() > 1 {
        parts.insert(0, Part::Text("run ".to_owned()));
    }
    parts
}

fn of_presenter(remedy: &Remedy) -> Vec<Part> {
    let text = |words: &str| Part::Text(words.to_owned());
    let command = |line: &str| Part::Command(line.to_owned());
    let flag = |flag: &str| Part::Flag(flag.to_owned());
    match remedy {
        Remedy::Text { text: it } => vec![text(it)],
        Remedy::Phrase { parts } => parts.clone(),
        Remedy::AnyOf { remedies } => joined(remedies, ", ", ", or "),
        Remedy::Steps { steps } => joined(steps, ", then ", ", then "),
        Remedy::Interrupt => vec![text("Ctrl+C interrupts it")],
        Remedy::Retry { after_s } => vec![Part::Again(retry(*after_s))],
        Remedy::AnswerOpenApproval => vec![text("decide on the approval that is open now")],
        Remedy::AnswerOpenForm => vec![text("answer the form that is open now")],
        Remedy::Compact => vec![command("pixir compact"), text(", or /compact in the terminal interface")],
        Remedy::NewSession => vec![text("start a new session: "), command("pixir")],
        Remedy::ShowTree => vec![command("pixir tree")],
        Remedy::Undo => vec![command("pixir undo")],
        Remedy::Redo => vec![command("pixir redo")],
        Remedy::AllowProtected => {
            vec![flag("--dry-run"), text(" shows them; "), flag("--allow-protected"), text(" restores them as well")]
        }
        Remedy::ShowRules => vec![command("pixir permissions list")],
        Remedy::TrustWorkspace => vec![
            text("look at it, then trust it: "),
            command("pixir trust"),
            text(", or "),
            flag("--trust-workspace"),
            text(" for one run"),
        ],
        Remedy::ResolveConflicts => vec![
            flag("--dry-run"),
            text(" shows each file; "),
            flag("--changed-since merge"),
            text(" or overwrite decides"),
        ],
        Remedy::SetMode { mode: Mode::Auto } => vec![flag("--write")],
        // Without a user the mode `ask` allows what a rule names, and nothing else.
        Remedy::SetMode { mode: Mode::Ask | Mode::ReadOnly } => {
            vec![flag("--write"), text(", or "), flag("--allow RULE"), text(" for one kind of call")]
        }
        Remedy::SetToolset { toolset: Toolset::None } => vec![flag("--toolset none")],
        Remedy::SetToolset { toolset } => {
            vec![Part::Flag(format!("--toolset {}", toolset.name())), text(", which takes less room")]
        }
        Remedy::RaiseLimit { limit: Limit::Deadline } => vec![text("a longer "), flag("--deadline SECONDS")],
        Remedy::RaiseLimit { limit: Limit::Rounds } => vec![text("more "), flag("--max-rounds N")],
        Remedy::RaiseLimit { limit: Limit::Tokens } => vec![text("more "), flag("--max-tokens N")],
        Remedy::RaiseLimit { limit: Limit::Cost } => vec![text("a higher "), flag("--max-cost USD")],
        // The result of a run names the command, with its session and what may be changed.
        Remedy::ResumeRun => vec![text("resume the run")],
        Remedy::ShowSkills => vec![command("pixir skills list")],
        Remedy::UseSkill { name } => vec![Part::Flag(format!("--skill {name}"))],
        Remedy::ListSessions { which: Sessions::Here } => vec![command("pixir sessions list")],
        Remedy::ListSessions { which: Sessions::All } => vec![command("pixir sessions list --all")],
        Remedy::ListSessions { which: Sessions::Trash } => vec![command("pixir sessions list --trash")],
        Remedy::Resume { id } => vec![Part::Command(format!("pixir resume {id}"))],
        Remedy::Fork { id } => vec![Part::Command(format!("pixir fork {id}"))],
        Remedy::OpenReadOnly { id } => vec![Part::Command(format!("pixir resume --read-only {id}"))],
        Remedy::Repair { id } => vec![Part::Command(format!("pixir sessions repair {id} --dry-run"))],
        Remedy::DeleteSession { id } => {
            vec![text("move it to the trash: "), Part::Command(format!("pixir sessions delete {id} --yes"))]
        }
        Remedy::ExportSession => {
            vec![text("export the session again: "), command("pixir sessions export ID --to json")]
        }
        Remedy::RunInSession => vec![text("run it in a session: "), command("pixir --toolset run")],
        Remedy::SetWorkspace => vec![text("name an existing folder: "), flag("--workspace DIR")],
        Remedy::ChooseModel { need } => vec![
            Part::Text(format!("{}: ", need.words())),
            flag("--model NAME"),
            text(" ("),
            command("pixir models list"),
            text(")"),
        ],
        Remedy::NameModel { provider } => {
            vec![text("name one: "), Part::Flag(format!("--model {provider}/NAME"))]
        }
        Remedy::SetBaseUrl { url } => {
            vec![Part::Flag(format!("--base-url {}", url.as_deref().unwrap_or("URL")))]
        }
        Remedy::CheckEndpoint => {
            vec![text("check --model, --dialect and --base-url ("), command("pixir doctor"), text(")")]
        }
        Remedy::Login { provider } => {
            vec![Part::Command(format!("pixir auth login {}", quoted(provider.as_deref().unwrap_or("PROVIDER"))))]
        }
        Remedy::SignIn { provider } => {
            let name = provider.as_deref().unwrap_or("PROVIDER");
            let way = match preset(name).and_then(|it| it.sign_in.as_ref()) {
                Some(it) if it.flow.is_in_browser() => " --browser",
                Some(_) | None => " --device",
            };
            vec![Part::Command(format!("pixir auth login {}{way}", quoted(name)))]
        }
        Remedy::SetVariable { name } => vec![Part::Command(format!("export {}=…", quoted(name)))],
        Remedy::ReplaceVariable { name } => vec![
            Part::Text(format!("the server rejected the key in {name}: ")),
            Part::Command(format!("export {}=…", quoted(name))),
            text(" with another"),
        ],
        Remedy::ReplaceKey { provider } => vec![
            text("the server rejected the stored key: "),
            Part::Command(format!("pixir auth login {}", quoted(provider))),
            text(" with another"),
        ],
        Remedy::McpServer { server, need } => match need {
            McpNeed::Add => vec![command("pixir mcp add NAME -- COMMAND")],
            McpNeed::Test | McpNeed::Restart => vec![Part::Command(format!("pixir mcp test {}", quoted(server)))],
            McpNeed::Accept => {
                vec![
                    Part::Command(format!("pixir mcp accept {}", quoted(server))),
                    text(", which shows what changed, and asks"),
                ]
            }
            McpNeed::Trust => {
                vec![
                    Part::Command(format!("pixir mcp trust {}", quoted(server))),
                    text(", which shows the launch, and asks"),
                ]
            }
        },
        Remedy::McpLogin(it) => vec![Part::Command(match &it.scope {
            Some(scope) => format!("pixir mcp login {} --scope {}", quoted(&it.server), quoted(scope)),
            None => format!("pixir mcp login {}", quoted(&it.server)),
        })],
        Remedy::StoreSecret(it) => vec![
            Part::Command(format!("export {}=…", quoted(&it.variable))),
            text(", or "),
            Part::Command(format!("pixir mcp secret {} {}", quoted(&it.server), quoted(&it.variable))),
        ],
        Remedy::CheckSetup => vec![command("pixir doctor")],
        Remedy::CheckStateFolder => {
            vec![text("check the state folder ("), command("pixir doctor"), text(" shows where it is)")]
        }
        Remedy::ShowScriptSchema => {
            vec![text("use the format that this prints: "), command("pixir schema --script")]
        }
        Remedy::ShowErrorCodes => vec![text("use a code that this lists: "), command("pixir schema error_codes")],
    }
}

/// A part of a phrase in a table.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Piece {
    Text(&'static str),
    Command(&'static str),
    Flag(&'static str),
}

/// `use` and the pieces, as one phrase.
pub(crate) fn instead(pieces: &[Piece]) -> Remedy {
    pieces.iter().fold("use ".into(), |phrase: Remedy, piece| match *piece {
        Piece::Text(words) => phrase.and_text(words),
        Piece::Command(line) => phrase.and_command(line),
        Piece::Flag(flag) => phrase.and_flag(flag),
    })
}

/// The parts of several remedies, one behind the other.
fn joined(remedies: &[Remedy], between: &str, last: &str) -> Vec<Part> {
    let mut all = Vec::new();
    for (at, remedy) in remedies.iter().enumerate() {
        match at {
            0 => {}
            at if at + 1 == remedies.len() => all.push(Part::Text(last.to_owned())),
            _ => all.push(Part::Text(between.to_owned())),
        }
        all.extend(of_presenter(remedy));
    }
    all
}

/// The same, for an error that a Session recorded or refused with.
pub(crate) fn of(body: &ErrorBody) -> String {
    word(&body.remedy())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken build: `pixir mcp trust git, which shows the launch` is printed, and a program that runs what begins with
    /// `pixir` runs that.
    #[test]
    fn what_begins_with_pixir_is_one_command() {
        let trust = || Remedy::mcp("git", McpNeed::Trust);
        for remedy in [
            Remedy::Compact,
            Remedy::NewSession,
            Remedy::TrustWorkspace,
            Remedy::DeleteSession { id: "x".into() },
            Remedy::RunInSession,
            trust(),
            Remedy::mcp("git", McpNeed::Accept),
            Remedy::any_of([trust(), Remedy::CheckSetup]),
            Remedy::steps([Remedy::Undo, "look again".into()]),
            Remedy::text("").and_command("pixir doctor").and_text(", or nothing"),
        ] {
            assert!(!word(&remedy).starts_with("pixir"), "{}", word(&remedy));
        }
        assert_eq!(word(&Remedy::Undo), "pixir undo");
        assert_eq!(word(&trust()), "run pixir mcp trust git, which shows the launch, and asks");
    }

    #[test]
    fn a_remedy_is_worded_as_commands_and_flags() {
        let limit = Remedy::RaiseLimit { limit: Limit::Deadline };
        assert_eq!(
            word(&Remedy::any_of(["send a message".into(), limit])),
            "send a message, or a longer --deadline SECONDS"
        );
        let login = Remedy::Login { provider: Some("openai".into()) };
        let key = Remedy::any_of([Remedy::SetVariable { name: "OPENAI_API_KEY".into() }, login]);
        assert_eq!(word(&key), "export OPENAI_API_KEY=…, or pixir auth login openai");
    }
}
