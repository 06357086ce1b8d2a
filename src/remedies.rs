//! The text of remedies on the command line.

use pixir_core::error::ErrorBody;
use pixir_core::event::Mode;
use pixir_core::remedy::{Limit, McpNeed, Remedy, Sessions, either, in_order, retry};

/// A remedy as commands and flags of `pixir`.
pub(crate) fn word(remedy: &Remedy) -> String {
    match remedy {
        Remedy::Text { text } => text.clone(),
        Remedy::AnyOf { remedies } => either(remedies, word),
        Remedy::Steps { steps } => in_order(steps, word),
        Remedy::Interrupt => "Ctrl+C interrupts it".into(),
        Remedy::Retry { after_s } => retry(*after_s),
        Remedy::AnswerOpenApproval => "decide on the approval that is open now".into(),
        Remedy::AnswerOpenForm => "answer the form that is open now".into(),
        Remedy::Compact => "pixir compact, or /compact in the terminal interface".into(),
        Remedy::NewSession => "pixir  # starts a new session".into(),
        Remedy::ShowTree => "pixir tree".into(),
        Remedy::Undo => "pixir undo".into(),
        Remedy::Redo => "pixir redo".into(),
        Remedy::AllowProtected => "--dry-run shows them; --allow-protected restores them as well".into(),
        Remedy::ShowRules => "pixir permissions list".into(),
        Remedy::TrustWorkspace => "look at it, then: pixir trust  # or --trust-workspace for one run".into(),
        Remedy::ResolveConflicts => "--dry-run shows each file; --changed-since merge or overwrite decides".into(),
        Remedy::SetMode { mode: Mode::Auto } => "--write".into(),
        Remedy::SetMode { mode: mode @ (Mode::Ask | Mode::ReadOnly) } => {
            format!("--write, or --mode {} in the terminal interface", mode.name())
        }
        Remedy::SetToolset { toolset } => format!("--toolset {}, which takes less room", toolset.name()),
        Remedy::RaiseLimit { limit: Limit::Deadline } => "a longer --deadline".into(),
        Remedy::RaiseLimit { limit: Limit::Rounds } => "more --max-rounds".into(),
        Remedy::RaiseLimit { limit: Limit::Tokens } => "more --max-tokens".into(),
        Remedy::RaiseLimit { limit: Limit::Cost } => "a higher --max-cost".into(),
        Remedy::ShowSkills => "pixir skills list".into(),
        Remedy::UseSkill { name } => format!("--skill {name}"),
        Remedy::ListSessions { which: Sessions::Here } => "pixir sessions list".into(),
        Remedy::ListSessions { which: Sessions::All } => "pixir sessions list --all".into(),
        Remedy::ListSessions { which: Sessions::Trash } => "pixir sessions list --trash".into(),
        Remedy::Resume { id } => format!("pixir resume {id}"),
        Remedy::Fork { id } => format!("pixir fork {id}"),
        Remedy::OpenReadOnly { id } => format!("pixir resume --read-only {id}"),
        Remedy::Repair { id } => format!("pixir sessions repair {id} --dry-run"),
        Remedy::DeleteSession { id } => format!("pixir sessions delete {id} --yes  # moves it to the trash"),
        Remedy::ExportSession => "export the session again: pixir sessions export ID --to json".into(),
        Remedy::RunInSession => "pixir --toolset run, which runs it in a session".into(),
        Remedy::SetWorkspace => "name an existing folder: --workspace DIR".into(),
        Remedy::ChooseModel { need } => format!("{}: --model NAME (pixir models list)", need.words()),
        Remedy::NameModel { provider } => format!("name one: --model {provider}/NAME"),
        Remedy::SetBaseUrl { url: Some(url) } => format!("--base-url {url}"),
        Remedy::SetBaseUrl { url: None } => "--base-url URL".into(),
        Remedy::CheckEndpoint => "check --model, --dialect and --base-url (pixir doctor)".into(),
        Remedy::Login { provider: Some(provider) } => format!("pixir auth login {provider}"),
        Remedy::Login { provider: None } => "pixir auth login PROVIDER".into(),
        Remedy::SignIn { provider: Some(provider) } => format!("pixir auth login {provider} --device"),
        Remedy::SignIn { provider: None } => "pixir auth login PROVIDER --device".into(),
        Remedy::SetVariable { name } => format!("export {name}=…"),
        Remedy::ReplaceVariable { name } => {
            format!("the server rejected the key in {name}: export {name}=… with another")
        }
        Remedy::ReplaceKey { provider } => {
            format!("the server rejected the stored key: pixir auth login {provider} with another")
        }
        Remedy::McpServer { server, need } => match need {
            McpNeed::Add => "pixir mcp add NAME -- COMMAND".into(),
            McpNeed::Test | McpNeed::Restart => format!("pixir mcp test {server}"),
            McpNeed::Accept => format!("pixir mcp accept {server}, which shows what changed, and asks"),
            McpNeed::Trust => format!("pixir mcp trust {server}, which shows the launch, and asks"),
        },
        Remedy::McpLogin(it) => match &it.scope {
            Some(scope) => format!("pixir mcp login {} --scope '{scope}'", it.server),
            None => format!("pixir mcp login {}", it.server),
        },
        Remedy::StoreSecret(it) => {
            format!("export {0}=…, or pixir mcp secret {1} {0}", it.variable, it.server)
        }
        Remedy::CheckSetup => "pixir doctor".into(),
        Remedy::CheckStateFolder => "check the state folder (pixir doctor shows where it is)".into(),
        Remedy::ShowScriptSchema => "use the format that this prints: pixir schema --script".into(),
        Remedy::ShowErrorCodes => "use a code that this lists: pixir schema error_codes".into(),
    }
}

/// The same, for an error that a Session recorded or refused with.
pub(crate) fn of(body: &ErrorBody) -> String {
    word(&body.remedy())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remedy_is_worded_as_commands_and_flags() {
        let limit = Remedy::RaiseLimit { limit: Limit::Deadline };
        assert_eq!(word(&Remedy::any_of(["send a message".into(), limit])), "send a message, or a longer --deadline");
        let login = Remedy::Login { provider: Some("openai".into()) };
        let key = Remedy::any_of([Remedy::SetVariable { name: "OPENAI_API_KEY".into() }, login]);
        assert_eq!(word(&key), "export OPENAI_API_KEY=…, or pixir auth login openai");
    }
}
