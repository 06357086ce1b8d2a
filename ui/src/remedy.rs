//! The text of remedies in the terminal interface, with its slash commands and the keys that are bound.

use pixir_core::error::ErrorBody;
use pixir_core::event::Toolset;
use pixir_core::remedy::{Limit, McpNeed, Remedy, Sessions, either, in_order, retry, words};

use crate::input::action::Action;
use crate::input::keymap::Keymap;

/// The keys that remedies mention; empty where the user has bound none.
#[derive(Debug, Clone, Default)]
pub(crate) struct Remedies {
    interrupt: String,
    cycle_mode: String,
    tree: String,
}

impl Remedies {
    /// No key is bound to anything.
    pub(crate) const NONE: Remedies =
        Remedies { interrupt: String::new(), cycle_mode: String::new(), tree: String::new() };

    pub(crate) fn new(keymap: &Keymap) -> Remedies {
        let key = |action| keymap.key_of(action).unwrap_or_default();
        Remedies { interrupt: key(Action::Escape), cycle_mode: key(Action::CycleMode), tree: key(Action::OpenTree) }
    }

    /// What to do, as slash commands and keys; commands of the shell where the interface has none.
    pub(crate) fn word(&self, remedy: &Remedy) -> String {
        let or_key = |command: &str, key: &str| {
            if key.is_empty() { command.to_owned() } else { format!("{command}, or {key}") }
        };
        match remedy {
            Remedy::Text { text } => text.clone(),
            Remedy::Phrase { parts } => words(parts),
            Remedy::AnyOf { remedies } => either(remedies, |it| self.word(it)),
            Remedy::Steps { steps } => in_order(steps, |it| self.word(it)),
            Remedy::Interrupt if self.interrupt.is_empty() => "/interrupt stops the turn".into(),
            Remedy::Interrupt => format!("{} interrupts it", self.interrupt),
            Remedy::Retry { after_s } => retry(*after_s),
            Remedy::AnswerOpenApproval => "decide on the approval that is on the screen".into(),
            Remedy::AnswerOpenForm => "answer the form that is on the screen".into(),
            Remedy::Compact => "/compact".into(),
            Remedy::NewSession => "/new".into(),
            Remedy::ShowTree if self.tree.is_empty() => "/tree shows the turns".into(),
            Remedy::ShowTree => format!("/tree, or {}, shows the turns", self.tree),
            Remedy::Undo => "/undo".into(),
            Remedy::Redo => "/redo".into(),
            Remedy::AllowProtected => "preview it again; Enter there agrees to the files that are marked".into(),
            Remedy::ShowRules => "/permissions".into(),
            Remedy::TrustWorkspace => "/trust shows it".into(),
            Remedy::ResolveConflicts => "preview it again, then merge or overwrite each file there".into(),
            Remedy::SetToolset { toolset: Toolset::None } => "/toolset none".into(),
            Remedy::SetToolset { toolset } => {
                format!("/toolset {}, which takes less room", toolset.name())
            }
            Remedy::SetMode { mode } => or_key(&format!("/mode {}", mode.name()), &self.cycle_mode),
            Remedy::RaiseLimit { limit: Limit::Deadline } => "start pixir with a longer --deadline".into(),
            Remedy::RaiseLimit { limit: Limit::Rounds } => "start pixir with more --max-rounds".into(),
            Remedy::RaiseLimit { limit: Limit::Tokens } => "start pixir with more --max-tokens".into(),
            Remedy::RaiseLimit { limit: Limit::Cost } => "start pixir with a higher --max-cost".into(),
            Remedy::ResumeRun => "/workflows shows the run, and resumes it".into(),
            Remedy::ShowSkills => "/skill lists them".into(),
            Remedy::UseSkill { name } => format!("/skill {name}"),
            Remedy::ListSessions { which: Sessions::Here } => "/resume lists them".into(),
            Remedy::ListSessions { which: Sessions::All } => {
                "/sessions lists them, Tab there those of all workspaces".into()
            }
            Remedy::ListSessions { which: Sessions::Trash } => "pixir sessions list --trash".into(),
            Remedy::Resume { id } => format!("/resume {id}"),
            Remedy::Fork { .. } => "/fork continues in a copy".into(),
            Remedy::OpenReadOnly { id } => format!("pixir resume --read-only {id}"),
            Remedy::Repair { id } => format!("pixir sessions repair {id} --dry-run"),
            Remedy::DeleteSession { id } => format!("pixir sessions delete {id} --yes"),
            Remedy::ExportSession => "/export json".into(),
            Remedy::RunInSession => "run it in a session".into(),
            Remedy::SetWorkspace => "start pixir with --workspace DIR".into(),
            Remedy::ChooseModel { need } => format!("{} (/model)", need.words()),
            Remedy::NameModel { provider } => format!("/model {provider}/NAME"),
            Remedy::SetBaseUrl { url: Some(url) } => format!("start pixir with --base-url {url}"),
            Remedy::SetBaseUrl { url: None } => "start pixir with --base-url URL".into(),
            Remedy::CheckEndpoint => "check the model (/model) and the base URL (/doctor)".into(),
            Remedy::Login { provider: Some(provider) } => format!("/connect takes a key of {provider}"),
            Remedy::Login { provider: None } => "/connect takes a key".into(),
            Remedy::SignIn { provider: Some(provider) } => format!("/connect signs in at {provider}"),
            Remedy::SignIn { provider: None } => "/connect signs in".into(),
            Remedy::SetVariable { name } => format!("export {name}=…"),
            Remedy::ReplaceVariable { name } => {
                format!("the server rejected the key in {name}: export {name}=… with another")
            }
            Remedy::ReplaceKey { provider } => {
                format!("the server rejected the stored key: /connect takes another one of {provider}")
            }
            Remedy::McpServer { server, need } => match need {
                McpNeed::Add => "pixir mcp add NAME -- COMMAND".into(),
                McpNeed::Test => format!("/mcp, or pixir mcp test {server}"),
                McpNeed::Restart => "/mcp starts it again".into(),
                McpNeed::Accept => "/mcp shows what changed, and accepts it".into(),
                McpNeed::Trust => "/trust shows it".into(),
            },
            Remedy::McpLogin(it) => match &it.scope {
                Some(scope) => format!("pixir mcp login {} --scope '{scope}'", it.server),
                None => format!("pixir mcp login {}", it.server),
            },
            Remedy::StoreSecret(it) => {
                format!("export {0}=…, or pixir mcp secret {1} {0}", it.variable, it.server)
            }
            Remedy::CheckSetup => "/doctor".into(),
            Remedy::CheckStateFolder => "check the state folder (/doctor shows where it is)".into(),
            Remedy::ShowScriptSchema => "use the format that pixir schema --script prints".into(),
            Remedy::ShowErrorCodes => "use a code that pixir schema lists".into(),
        }
    }

    /// The same, for an error that the Session recorded or refused with.
    pub(crate) fn of(&self, body: &ErrorBody) -> String {
        self.word(&body.remedy())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use pixir_core::event::Mode;

    #[test]
    fn a_remedy_names_the_key_that_is_bound() {
        let ask = Remedy::SetMode { mode: Mode::Ask };
        let word =
            |wished: BTreeMap<String, Vec<String>>| Remedies::new(&Keymap::new(&wished).expect("free keys")).word(&ask);
        let keys = |key: &str| BTreeMap::from([("cycle-mode".to_owned(), vec![key.to_owned()])]);
        assert_eq!(word(BTreeMap::new()), "/mode ask, or Shift+Tab");
        assert_eq!(word(keys("f5")), "/mode ask, or F5");
        assert_eq!(word(keys("none")), "/mode ask");
    }

    /// Broken build: one that sends the user to the shell for what a command here does without a restart.
    #[test]
    fn what_the_interface_can_do_is_a_command_of_it() {
        let words = Remedies::new(&Keymap::new(&BTreeMap::new()).expect("free keys"));
        let provider = || "openai".to_owned();
        for (remedy, command) in [
            (Remedy::Login { provider: Some(provider()) }, "/connect"),
            (Remedy::Login { provider: None }, "/connect"),
            (Remedy::SignIn { provider: Some(provider()) }, "/connect"),
            (Remedy::ReplaceKey { provider: provider() }, "/connect"),
            (Remedy::ListSessions { which: Sessions::All }, "/sessions"),
            (Remedy::ExportSession, "/export"),
            (Remedy::CheckSetup, "/doctor"),
            (Remedy::ResumeRun, "/workflows"),
        ] {
            let word = words.word(&remedy);
            assert!(word.contains(command) && !word.contains("pixir "), "{word}");
        }
    }
}
