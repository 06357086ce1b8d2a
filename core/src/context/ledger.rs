//! The ledger of a request: what takes up the window, segment by segment, in the order in which it is sent.

use serde::Serialize;

use crate::conversation::history::{History, Item, Piece};
use crate::protocol::event::Fact;
use crate::protocol::tool_spec::ToolSpec;
use crate::provider::RequestBody;

/// Everything that the next request of a Session contains.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ledger {
    /// The segments, in the order in which they are sent. Their bytes and tokens add up to those of the request.
    pub segments: Vec<Segment>,
    /// The size of the request, bytes.
    pub bytes: usize,
    /// The size of the request, tokens.
    pub tokens: u64,
    /// Where the tokens come from.
    pub tokens_from: TokensFrom,
    /// Tokens of the model's window, where they are known.
    pub window: Option<u64>,
}

/// Where the tokens of a ledger come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TokensFrom {
    /// Estimated at four bytes each.
    Estimate,
    /// The Provider reported those of the last request; they are spread over its segments by their bytes, and what is new
    /// since is estimated.
    Provider,
}

/// A part of the request that a reader can name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Segment {
    /// What it is.
    pub kind: SegmentKind,
    /// Its name: a path, a skill, `turn 3`.
    pub name: String,
    /// The number of items, tools or documents.
    pub count: usize,
    /// The size of its text, bytes.
    pub bytes: usize,
    /// Its share of the tokens.
    pub tokens: u64,
    /// The Turn that it belongs to; `None` for what every request repeats.
    pub turn: Option<u32>,
    /// How many Turns ago that was.
    pub age: Option<u32>,
    /// The last request already had it, so a Provider can take it from its cache.
    pub in_prefix: bool,
    /// The bytes by kind of content, for a Turn.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub contents: Vec<Content>,
}

/// What a segment is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SegmentKind {
    /// The fixed text.
    Instructions,
    /// The specs of all tools.
    Tools,
    /// A context document.
    Document,
    /// The summary of a compaction.
    Summary,
    /// The text of a skill.
    Skill,
    /// A change of mode, toolset or repository.
    Change,
    /// The messages, calls and results of a Turn.
    Turn,
    /// The JSON around all of it.
    Framing,
}

impl SegmentKind {
    /// The name on the screen.
    pub const fn name(self) -> &'static str {
        match self {
            SegmentKind::Instructions => "instructions",
            SegmentKind::Tools => "tools",
            SegmentKind::Document => "document",
            SegmentKind::Summary => "summary",
            SegmentKind::Skill => "skill",
            SegmentKind::Change => "change",
            SegmentKind::Turn => "turn",
            SegmentKind::Framing => "JSON around it",
        }
    }
}

/// The content of one kind in a Turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Content {
    /// The kind of content.
    pub kind: &'static str,
    /// The number of items.
    pub count: usize,
    /// The size of their text, bytes.
    pub bytes: usize,
}

/// The kind of an item's content.
pub(crate) fn kind_of(item: &Item) -> &'static str {
    match item.piece() {
        Piece::User { .. } => "the user",
        Piece::Assistant { .. } => "answers",
        Piece::Reasoning { .. } => "thinking",
        Piece::Call { .. } => "tool calls",
        Piece::Result { .. } => "tool results",
    }
}

/// The size of a tool's spec, bytes.
pub(crate) fn spec_bytes(spec: &ToolSpec) -> usize {
    spec.name.len() + spec.description.len() + spec.parameters.to_string().len()
}

/// Draws up the ledger of a request. It reads each item once, so it costs as much as the request is long.
pub fn ledger(history: &History, body: &RequestBody, window: Option<u64>) -> Ledger {
    let request = body.request();
    let measured = history.measured();
    let was_sent = measured.is_some() || history.usage.input > 0;
    let repeated = |kind, name: &str, count, bytes| Segment {
        kind,
        name: name.to_owned(),
        count,
        bytes,
        tokens: 0,
        turn: None,
        age: None,
        in_prefix: was_sent,
        contents: Vec::new(),
    };
    let mut segments = vec![
        repeated(SegmentKind::Instructions, "instructions", 1, request.instructions.len()),
        repeated(SegmentKind::Tools, "tools", request.tools.len(), request.tools.iter().map(spec_bytes).sum()),
    ];
    for document in &history.started.context {
        segments.push(repeated(SegmentKind::Document, &document.source, 1, document.text.len()));
    }
    add_items(&mut segments, history, &request.items);
    let bytes = body.size();
    let known: usize = segments.iter().map(|it| it.bytes).sum();
    segments.push(repeated(SegmentKind::Framing, "JSON around it", 1, bytes.saturating_sub(known)));
    let (tokens, tokens_from) = match measured {
        Some((input, _)) => {
            let is_new = |it: &&Segment| !it.in_prefix;
            let new: usize = segments.iter().filter(is_new).map(|it| it.bytes).sum();
            spread(&mut segments, true, input);
            spread(&mut segments, false, new as u64 / 4);
            (input + new as u64 / 4, TokensFrom::Provider)
        }
        None => {
            let tokens = bytes as u64 / 4;
            segments.iter_mut().for_each(|it| it.in_prefix = false);
            spread(&mut segments, false, tokens);
            segments
                .iter_mut()
                .for_each(|it| it.in_prefix = was_sent && it.turn.is_none() && it.kind != SegmentKind::Summary);
            (tokens, TokensFrom::Estimate)
        }
    };
    Ledger { segments, bytes, tokens, tokens_from, window }
}

fn add_items(segments: &mut Vec<Segment>, history: &History, items: &[Item]) {
    let sent = history.measured().map_or(0, |(_, bytes)| bytes);
    let first = items.first().filter(|_| history.begins_with_summary());
    let mut at = 0;
    let mut turn = None;
    for (index, item) in items.iter().enumerate() {
        let piece_bytes = item.piece().len();
        at += piece_bytes;
        let is_summary = index == 0 && first.is_some();
        let (kind, name) = match item {
            Item::Made(_) if is_summary => (SegmentKind::Summary, "summary of the earlier conversation".to_owned()),
            Item::Made(_) => (SegmentKind::Turn, String::new()),
            Item::Recorded(entry) => {
                turn = entry.turn.or(turn);
                match &entry.fact {
                    Fact::SkillActivation(it) => (SegmentKind::Skill, it.name.clone()),
                    Fact::ContextChanged(it) => {
                        let sources: Vec<&str> = it.documents.iter().map(|it| it.source.as_str()).collect();
                        (SegmentKind::Change, sources.join(", "))
                    }
                    _ => (SegmentKind::Turn, String::new()),
                }
            }
        };
        let in_prefix = at <= sent;
        let own_turn = if is_summary { None } else { turn };
        let is_same = |it: &&mut Segment| {
            it.kind == SegmentKind::Turn
                && kind == SegmentKind::Turn
                && it.turn == own_turn
                && it.in_prefix == in_prefix
        };
        let content = Content { kind: kind_of(item), count: 1, bytes: piece_bytes };
        if let Some(open) = segments.last_mut().filter(is_same) {
            open.count += 1;
            open.bytes += piece_bytes;
            match open.contents.iter_mut().find(|it| it.kind == content.kind) {
                Some(it) => (it.count, it.bytes) = (it.count + 1, it.bytes + piece_bytes),
                None => open.contents.push(content),
            }
            continue;
        }
        let is_turn = kind == SegmentKind::Turn;
        let name = match own_turn {
            Some(turn) if is_turn => format!("turn {turn}"),
            None if is_turn => "between turns".to_owned(),
            _ => name,
        };
        segments.push(Segment {
            kind,
            name,
            count: 1,
            bytes: piece_bytes,
            tokens: 0,
            turn: own_turn,
            age: own_turn.map(|turn| history.turns.saturating_sub(turn)),
            in_prefix,
            contents: if is_turn { vec![content] } else { Vec::new() },
        });
    }
}

/// Spreads tokens over the segments in or behind the prefix, in proportion to their bytes, so that they add up exactly.
fn spread(segments: &mut [Segment], in_prefix: bool, tokens: u64) {
    let of_part = |it: &&mut Segment| it.in_prefix == in_prefix;
    let all: u128 = segments.iter().filter(|it| it.in_prefix == in_prefix).map(|it| it.bytes as u128).sum();
    let (mut bytes, mut given) = (0_u128, 0_u64);
    for segment in segments.iter_mut().filter(of_part) {
        bytes += segment.bytes as u128;
        // Each gets what is due up to here, so rounding never adds up.
        let due = u64::try_from(u128::from(tokens) * bytes / all.max(1)).unwrap_or(tokens);
        segment.tokens = due - given;
        given = due;
    }
}
