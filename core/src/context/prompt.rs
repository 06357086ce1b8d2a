//! Builds requests: instructions, tools, context documents, then the History, as a prefix that only grows.

use std::sync::Arc;

use crate::context::instructions::instructions;
use crate::conversation::history::{History, Item, documents_text};
use crate::protocol::event::Entry;
use crate::protocol::tool_spec::ToolSpec;
use crate::provider::Request;
use crate::storage::blobs::Blobs;

/// Builds the request that the next call sends. `tools` are the specs of the History's toolset.
pub fn request(history: &History, tools: Arc<[ToolSpec]>, blobs: &Blobs, cache_key: &str) -> Request {
    Request {
        provider: history.settings.provider.clone(),
        model: history.settings.model.clone(),
        effort: history.settings.effort.clone(),
        instructions: instructions(history.settings.toolset).into(),
        context: documents_text(&history.started.context),
        tools,
        items: history.items(),
        blobs: blobs.clone(),
        cache_key: cache_key.to_owned(),
    }
}

/// Returns the estimated tokens that every request of the Session repeats: instructions, context documents and tools.
pub(crate) fn fixed_tokens(history: &History, tools: &[ToolSpec]) -> u64 {
    let instructions = instructions(history.settings.toolset);
    crate::provider::fixed_tokens(instructions, &documents_text(&history.started.context), tools)
}

/// The prompt that asks a model to summarize a branch. The request names the tools, because some servers require this
/// when the conversation contains calls; pixir runs no call of the answer.
const SUMMARIZE: &str = "\
The user leaves this part of the conversation and goes on from before it. Write what is worth knowing there: \
what was tried, what worked and what did not and why, which files were changed, and what was decided. \
At most 200 words of plain Markdown. Do not call tools.";

/// Builds the request that summarizes the entries a move of the head leaves behind.
pub(crate) fn summary(
    history: &History,
    left: Vec<Arc<Entry>>,
    tools: Arc<[ToolSpec]>,
    blobs: &Blobs,
    cache_key: &str,
) -> Request {
    let mut items = History::fold(left).items();
    items.push(Item::user(SUMMARIZE.to_owned()));
    Request { items, ..request(history, tools, blobs, cache_key) }
}
