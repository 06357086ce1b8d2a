//! Builds requests: instructions, tools, context documents, then the History, as a prefix that only grows.

use std::sync::Arc;

use crate::conversation::history::History;
use crate::files::workspace::Workspace;
use crate::protocol::event::{ContextDocument, SessionStarted, Toolset};
use crate::protocol::tool_spec::ToolSpec;
use crate::provider::Request;
use crate::storage::blobs::Blobs;

/// The same bytes for every workspace and every Turn of a toolset, so that Providers can cache them.
macro_rules! instructions {
    ($tools:literal) => {
        concat!(
            "\
You are pixir, a coding assistant that works in the user's terminal and on their real files.

Work:
- Look before you act: read the files that matter, search with grep and find, and follow the conventions that you see.
- Make the smallest change that does the whole job. Use edit for existing files, write for new ones.
- Verify: run the project's own tests or build when there is one, and read what they print.
- When something fails, say so plainly and give the reason. Never claim what you did not see.
- Go on until the work is done or you need the user. Leave unrelated changes alone, and commit only if asked.

Tools:
",
            $tools,
            "\
- Every result ends with a footer: [exit:0 | 12ms]. A non-zero exit is information, not an accident.
- Long outputs are cut in the middle; the result names a file with the whole. The user can undo the changes of a turn.
- The user or the mode may refuse a call. Respect that, and ask or try another way.

Answers:
- Short, in Markdown, in the user's language. Name files as path:line. No flattery.
"
        )
    };
}

const TYPED: &str = instructions!(
    "\
- Paths are relative to the workspace. Independent reads may be called together.
- For work of several steps keep a short plan with update_plan.
"
);

const RUN: &str = instructions!(
    "\
- run takes one line: commands joined with | && || ; and paths relative to the workspace. It is no shell: quotes work, expansions and redirections do not.
- Text of several lines goes into stdin: command \"write notes.md\", and the text as stdin.
- For work of several steps keep a short plan with the command plan.
"
);

const BOTH: &str = instructions!(
    "\
- Paths are relative to the workspace. Independent reads may be called together.
- run joins commands with | && || ; in one call; the other tools take typed arguments. Both do the same to the same files.
- For work of several steps keep a short plan with update_plan.
"
);

/// Context files, in order of preference; the first that exists in a folder is read.
const CONTEXT_FILES: [&str; 2] = ["AGENTS.md", "CLAUDE.md"];
/// The most bytes of one context file.
const MAX_CONTEXT: usize = 32 << 10;

/// Builds the request that the next call sends. `tools` are the specs of the History's toolset.
pub fn request(history: &History, tools: Arc<[ToolSpec]>, blobs: &Blobs, cache_key: &str) -> Request {
    Request {
        provider: history.settings.provider.clone(),
        model: history.settings.model.clone(),
        effort: history.settings.effort.clone(),
        instructions: instructions(history.settings.toolset).into(),
        context: context_text(&history.started),
        tools,
        items: history.items(),
        blobs: blobs.clone(),
        cache_key: cache_key.to_owned(),
    }
}

/// Returns the estimated tokens that every request of the Session repeats: instructions, context documents and tools.
pub(crate) fn fixed_tokens(history: &History, tools: &[ToolSpec]) -> u64 {
    let instructions = instructions(history.settings.toolset);
    crate::provider::fixed_tokens(instructions, &context_text(&history.started), tools)
}

fn instructions(toolset: Toolset) -> &'static str {
    match toolset {
        Toolset::Typed => TYPED,
        Toolset::Run => RUN,
        Toolset::Both => BOTH,
    }
}

fn context_text(started: &SessionStarted) -> String {
    let documents = started
        .context
        .iter()
        .map(|it| format!("<context source=\"{}\">\n{}\n</context>", it.source, it.text.trim_end()));
    documents.collect::<Vec<_>>().join("\n")
}

/// Collects the context documents of the workspace and the user. They are recorded, so every resume sees the same ones.
pub(crate) fn collect_context(
    workspace: &Workspace,
    user_folder: Option<&std::path::Path>,
    variables: &[(String, String)],
) -> Vec<ContextDocument> {
    let root = workspace.root().display();
    let mut environment = format!("workspace: {root}\nplatform: {}\ndate: {}", std::env::consts::OS, today(variables));
    for (name, value) in [("git branch", branch(workspace)), ("usual tests", usual_tests(workspace))] {
        if let Some(value) = value {
            environment.push_str(&format!("\n{name}: {value}"));
        }
    }
    let mut documents = vec![ContextDocument { source: "environment".into(), text: environment }];
    if let Some(folder) = user_folder {
        let path = folder.join("AGENTS.md");
        if let Ok(text) = std::fs::read_to_string(&path) {
            documents.push(document(&path.display().to_string(), &text));
        }
    }
    let found = CONTEXT_FILES.iter().find_map(|name| {
        let at = workspace.locate(name).ok()?;
        let bytes = workspace.read(&at).ok()?.bytes;
        Some(document(name, &String::from_utf8_lossy(&bytes)))
    });
    documents.extend(found);
    documents
}

/// The branch of the repository in the workspace, or the commit if it is on none.
fn branch(workspace: &Workspace) -> Option<String> {
    let head = workspace.read(&workspace.locate(".git/HEAD").ok()?).ok()?.bytes;
    let head = visible(String::from_utf8_lossy(&head[..head.len().min(200)]).lines().next()?.trim());
    Some(head.strip_prefix("ref: refs/heads/").map_or_else(|| head.chars().take(12).collect(), str::to_owned))
}

/// What tests a project with these files, as far as their names tell.
fn usual_tests(workspace: &Workspace) -> Option<String> {
    let known = [
        ("Cargo.toml", "cargo test"),
        ("go.mod", "go test ./..."),
        ("package.json", "npm test"),
        ("pyproject.toml", "pytest"),
        ("pytest.ini", "pytest"),
        ("Makefile", "make test"),
    ];
    let there = |file: &str| workspace.locate(file).is_ok_and(|at| workspace.is_file(&at));
    let mut commands: Vec<&str> = known.into_iter().filter(|(file, _)| there(file)).map(|(_, test)| test).collect();
    commands.dedup();
    (!commands.is_empty()).then(|| format!("{} (judged by file names)", commands.join(", ")))
}

/// The date here. Where no variable names a time zone, the rules of this machine's own are in one file; to learn their
/// name, jiff would walk the whole database of zones.
fn today(variables: &[(String, String)]) -> jiff::civil::Date {
    let is_named = variables.iter().any(|(name, value)| name == "TZ" && !value.is_empty());
    let rules = if is_named { None } else { std::fs::read("/etc/localtime").ok() };
    match rules.and_then(|rules| jiff::tz::TimeZone::tzif("local", &rules).ok()) {
        Some(zone) => jiff::Timestamp::now().to_zoned(zone).date(),
        None => jiff::Zoned::now().date(),
    }
}

fn document(source: &str, text: &str) -> ContextDocument {
    let mut end = text.len().min(MAX_CONTEXT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let cut = if end < text.len() { "\n…[the rest of this file was left out]" } else { "" };
    ContextDocument { source: source.to_owned(), text: format!("{}{cut}", visible(&text[..end])) }
}

/// Removes Unicode tag characters: they can carry text that the user does not see, so the model must not see it either.
fn visible(text: &str) -> String {
    text.chars().filter(|c| !('\u{e0000}'..='\u{e007f}').contains(c)).collect()
}
