//! The title of an Entry in a list of the context.

use protocol::event::Fact;

/// The longest title, characters.
const MAX_TITLE: usize = 120;

/// The title of an Entry; a result has that of its call.
pub(crate) fn of(fact: &Fact) -> String {
    match fact {
        Fact::UserMessage(it) => start(&it.text, MAX_TITLE),
        Fact::UserCommand(it) => start(&it.command, MAX_TITLE),
        Fact::AssistantMessage(it) => start(&it.text, MAX_TITLE),
        Fact::ToolCall(it) => {
            let about = it.about();
            start(&format!("{} {}", about.label(&it.name), about.target), MAX_TITLE)
        }
        Fact::ToolResult(it) => start(&it.output, MAX_TITLE),
        Fact::HistoryCompaction(_) => "the earlier conversation".to_owned(),
        Fact::BranchSummary(_) => "another branch".to_owned(),
        Fact::SkillActivation(it) => it.name.clone(),
        Fact::SkillIndex(it) if it.listed == 1 => "1 skill".to_owned(),
        Fact::SkillIndex(it) => format!("{} skills", it.listed),
        Fact::ContextChanged(it) => {
            let name = |source: &str| if source == "git" { "the repository".to_owned() } else { source.to_owned() };
            it.documents.iter().map(|it| name(&it.source)).collect::<Vec<_>>().join(", ")
        }
        Fact::FilesRestored(it) => match it.changes.len() {
            0 => "files left as they were".to_owned(),
            1 => "1 file restored".to_owned(),
            n => format!("{n} files restored"),
        },
        Fact::AgentEvent(it) => format!("agent {}", it.name()),
        _ => fact.headline().map_or_else(String::new, |it| it.title),
    }
}

/// The beginning of a text, on one line.
pub(crate) fn start(text: &str, most: usize) -> String {
    // Words may be several blanks apart, so more is looked at than is kept.
    let line = words(text.chars().take(most * 2 + 1).collect());
    let is_whole = text.chars().nth(most * 2 + 1).is_none() && line.chars().count() <= most;
    if is_whole { line } else { line.chars().take(most).chain("…".chars()).collect() }
}

/// A text on one line.
pub(crate) fn words(text: String) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
