//! What the tree shows and finds: filters, and the text of all Turns.

use std::collections::HashSet;

use pixir_core::Fact;
use pixir_core::tree::{Node, Tree};

/// Which Turns are shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Filter {
    #[default]
    All,
    /// Requests of the user, without commands, undos and summaries of branches.
    Prompts,
    Changes,
    Failed,
    Named,
    /// What is in the trash.
    Removed,
}

impl Filter {
    const ALL: [Filter; 6] =
        [Filter::All, Filter::Prompts, Filter::Changes, Filter::Failed, Filter::Named, Filter::Removed];

    pub(super) fn name(self) -> &'static str {
        match self {
            Filter::All => "all",
            Filter::Prompts => "prompts",
            Filter::Changes => "with changes",
            Filter::Failed => "failed",
            Filter::Named => "named",
            Filter::Removed => "removed",
        }
    }

    pub(super) fn next(self) -> Filter {
        let at = Filter::ALL.iter().position(|it| *it == self).unwrap_or(0);
        Filter::ALL[(at + 1) % Filter::ALL.len()]
    }

    pub(super) fn shows(self, node: &Node) -> bool {
        match self {
            Filter::Removed => node.in_trash,
            _ if node.in_trash => false,
            Filter::All => true,
            // The head is always in sight.
            _ if node.is_head => true,
            Filter::Prompts => node.is_request && !node.text.starts_with('!'),
            Filter::Changes => node.files > 0,
            Filter::Failed => node.has_failed() || node.was_interrupted(),
            Filter::Named => node.label.is_some() || node.pinned,
        }
    }
}

/// A text that the user searches for.
#[derive(Debug, Default)]
pub(super) struct Search {
    pub(super) text: String,
    /// The user still types it.
    pub(super) is_typed: bool,
    /// The nodes that have it, in the order of the Log.
    pub(super) hits: Vec<usize>,
    /// The rows that have it.
    pub(super) rows: HashSet<usize>,
    /// The text that `hits` are of.
    pub(super) searched: String,
}

impl Search {
    /// Finds the nodes that have the text. More letters leave fewer of those that had the fewer letters.
    pub(super) fn update(&mut self, tree: &Tree, shows: impl Fn(&Node) -> bool) {
        if self.text.is_empty() {
            self.hits.clear();
        } else if !self.searched.is_empty() && self.text.starts_with(&self.searched) {
            let text = &self.text;
            self.hits.retain(|node| has(tree, *node, text));
        } else {
            let nodes = (0..tree.nodes.len()).filter(|node| shows(&tree.nodes[*node]));
            self.hits = nodes.filter(|node| has(tree, *node, &self.text)).collect();
        }
        self.searched.clone_from(&self.text);
    }

    /// Searches everything again, because what is shown has changed.
    pub(super) fn renew(&mut self, tree: &Tree, shows: impl Fn(&Node) -> bool) {
        self.searched.clear();
        self.update(tree, shows);
    }
}

/// Whether a Turn has a text: in what the user or the model said, in its name, in a command or a path.
fn has(tree: &Tree, node: usize, text: &str) -> bool {
    let named = tree.nodes[node].label.as_deref().is_some_and(|label| contains(label, text));
    named
        || contains(&tree.nodes[node].text, text)
        || tree.entries(node).iter().any(|entry| match &entry.fact {
            Fact::UserMessage(it) => contains(&it.text, text),
            Fact::AssistantMessage(it) => contains(&it.text, text),
            Fact::BranchSummary(it) => contains(&it.summary, text),
            Fact::ToolCall(it) => it.info.as_ref().is_some_and(|info| contains(&info.title, text)),
            Fact::ToolResult(it) => it.changes.iter().any(|change| contains(&change.path, text)),
            _ => false,
        })
}

/// Whether a text has another in it, in small letters or large ones.
fn contains(text: &str, wanted: &str) -> bool {
    if !wanted.is_ascii() {
        return text.to_lowercase().contains(&wanted.to_lowercase());
    }
    let Some(first) = wanted.bytes().next() else { return true };
    let (text, wanted) = (text.as_bytes(), wanted.as_bytes());
    memchr::memchr2_iter(first.to_ascii_lowercase(), first.to_ascii_uppercase(), text)
        .any(|at| text.get(at..at + wanted.len()).is_some_and(|part| part.eq_ignore_ascii_case(wanted)))
}
