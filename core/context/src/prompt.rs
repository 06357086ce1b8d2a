//! Builds requests: instructions, tools, context documents, then the History, as a prefix that only grows.

use std::sync::Arc;

use crate::instructions::instructions;
use conversation::history::{History, documents_text};
use protocol::tool_spec::ToolSpec;
use provider::Request;
use storage::blobs::Blobs;

/// The temperature of the Turn after one that ended in a loop of text. Servers begin at 0.6 to 1.0, and the lower it is, the more a model
/// repeats itself.
const ANOTHER_TEMPERATURE: f64 = 1.1;

/// Builds the request that the next call sends. `tools` are the specs of the History's toolset.
pub fn request(history: &History, tools: Arc<[ToolSpec]>, blobs: &Blobs, cache_key: &str) -> Request {
    Request {
        provider: history.settings.provider.clone(),
        model: history.settings.model.clone(),
        effort: history.settings.effort.clone(),
        temperature: history.ended_in_loop.then_some(ANOTHER_TEMPERATURE),
        instructions: instructions(history.settings.toolset).into(),
        context: documents_text(&history.started.context),
        tools,
        items: history.items(),
        blobs: blobs.clone(),
        cache_key: cache_key.to_owned(),
    }
}

/// Returns the estimated tokens that every request of the Session repeats: instructions, context documents and tools.
pub fn fixed_tokens(history: &History, tools: &[ToolSpec]) -> u64 {
    let instructions = instructions(history.settings.toolset);
    provider::fixed_tokens(instructions, &documents_text(&history.started.context), tools)
}
