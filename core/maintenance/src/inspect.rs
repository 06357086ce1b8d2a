//! Builds the exact request that a Provider would receive at any entry, offline, and measures its parts.

use std::cmp::Reverse;
use std::sync::Arc;

use serde::Serialize;

use call::Registry;
use context::ledger::{Ledger, kind_of, ledger, spec_bytes};
use context::prompt;
use conversation::history::{History, Item, Piece};
use mcp::offer;
use protocol::event::Entry;
use provider::choose::Providers;
use provider::models::ModelInfo;
use provider::preset::PLAIN;
use provider::{Dialect, RequestBody};
use storage::blobs::Blobs;

/// How many items are listed one by one, largest first.
const LARGEST: usize = 8;
/// The most of an item's text that is shown, characters.
const MAX_SHOWN: usize = 80;

/// A request and its parts.
#[derive(Debug, Clone, Serialize)]
pub struct Inspection {
    /// The newest entry that the request contains.
    pub seq: Option<u64>,
    /// The Provider that would receive it.
    pub provider: String,
    /// The model that would answer it.
    pub model: String,
    /// The server's address and dialect.
    pub server: String,
    /// A caveat about this request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The body, exactly as it is sent. It is written when it is printed, because it can be as large as the Log.
    pub request: RequestBody,
    /// The size of the body, bytes.
    pub bytes: usize,
    /// The size in tokens, estimated at four bytes each.
    pub tokens_estimated: usize,
    /// Tokens of the last request, as the Provider reported them.
    pub tokens_last_reported: Option<u64>,
    /// Tokens of the model's window, where they are known.
    pub window: Option<u64>,
    /// The parts of the request, in the order in which they are sent.
    pub parts: Vec<Part>,
    /// The largest items of the conversation.
    pub largest: Vec<LargeItem>,
    #[serde(skip)]
    history: History,
}

impl Inspection {
    /// Each segment of the window, with its tokens and its age.
    pub fn ledger(&self) -> Ledger {
        ledger(&self.history, &self.request, self.window)
    }
}

/// All content of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Part {
    /// The kind of content.
    pub name: String,
    /// The number of items.
    pub count: usize,
    /// The size of their text, bytes.
    pub bytes: usize,
    /// The size in tokens, estimated at four bytes each.
    pub tokens: usize,
}

/// One item of the conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LargeItem {
    /// The item's index in the conversation, from 0.
    pub index: usize,
    /// The kind of item.
    pub kind: &'static str,
    /// The size of its text, bytes.
    pub bytes: usize,
    /// The beginning of its text.
    pub begins: String,
}

/// Builds the request that would be sent next if the Log ended at this entry.
pub fn inspect(
    entries: Vec<Arc<Entry>>,
    session: &str,
    registry: &Registry,
    blobs: &Blobs,
    providers: &Providers,
) -> Inspection {
    let seq = entries.last().map(|entry| entry.seq);
    let history = History::fold(entries);
    let toolset = history.settings.toolset;
    let offered = history.offered.as_deref().map(|it| offer::registry(registry, it, None, blobs));
    let registry = offered.as_ref().unwrap_or(registry);
    let tools = if history.is_attended() { registry.specs(toolset) } else { registry.specs_unattended(toolset) };
    let request = prompt::request(&history, tools, blobs, session);
    let settings = &history.settings;
    let (body, note) = match providers.connect(&settings.provider) {
        Ok(provider) => (provider.body(request), None),
        Err(_) => (
            RequestBody::sent(request, Dialect::Responses, ModelInfo::default(), PLAIN),
            Some(format!("{} is not configured here; this is the request in the responses dialect", settings.provider)),
        ),
    };
    let window = providers.window(&settings.provider, &settings.model);
    let request = body.request();
    let bytes = body.size();
    let mut parts = vec![
        part("instructions", 1, request.instructions.len()),
        part("tools", request.tools.len(), request.tools.iter().map(spec_bytes).sum()),
        part("context files", history.started.context.len(), request.context.len()),
    ];
    for kind in ["the user", "reports of agents", "answers", "thinking", "tool calls", "tool results"] {
        let of_kind = request.items.iter().filter(|item| kind_of(item) == kind);
        let (count, bytes) = of_kind.fold((0, 0), |(count, bytes), item| (count + 1, bytes + item.piece().len()));
        parts.push(part(kind, count, bytes));
    }
    let known: usize = parts.iter().map(|part| part.bytes).sum();
    parts.push(part("JSON around it", 1, bytes.saturating_sub(known)));
    let sizes = request.items.iter().enumerate().map(|(index, item)| (Reverse(item.piece().len()), index));
    let mut sizes: Vec<_> = sizes.collect();
    sizes.sort_unstable();
    let largest = sizes.into_iter().take(LARGEST).map(|(Reverse(bytes), index)| {
        let item = &request.items[index];
        LargeItem { index, kind: kind_of(item), bytes, begins: begins(item) }
    });
    let largest = largest.collect();
    Inspection {
        seq,
        provider: settings.provider.clone(),
        model: settings.model.clone(),
        server: providers.describe(&settings.provider),
        note,
        bytes,
        tokens_estimated: bytes / 4,
        tokens_last_reported: history.last_input,
        window,
        request: body,
        parts,
        largest,
        history,
    }
}

fn part(name: &str, count: usize, bytes: usize) -> Part {
    Part { name: name.to_owned(), count, bytes, tokens: bytes / 4 }
}

fn begins(item: &Item) -> String {
    let text = match item.piece() {
        Piece::User { text, .. }
        | Piece::Note { text }
        | Piece::Assistant { text, .. }
        | Piece::Result { output: text, .. } => text.into_owned(),
        Piece::Reasoning { .. } => "(only for the model that produced it)".to_owned(),
        Piece::Call { name, args, .. } => format!("{name} {args}"),
    };
    text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(MAX_SHOWN).collect()
}
