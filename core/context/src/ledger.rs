//! The ledger of a request: what takes up the window, segment by segment, in the order in which it is sent.

use std::collections::HashMap;

use serde::Serialize;

use crate::title;
use conversation::history::{History, Item, Piece};
pub use protocol::event::TokensFrom;
use protocol::event::{ContextReport, Fact, Part, PartKind};
use protocol::tool_spec::ToolSpec;
use provider::RequestBody;

/// The most of the text of a part that no Entry holds, characters.
const MAX_EXCERPT: usize = 4_000;

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
pub fn kind_of(item: &Item) -> &'static str {
    match item.piece() {
        Piece::User { .. } => "the user",
        Piece::Note { .. } => "reports of agents",
        Piece::Assistant { .. } => "answers",
        Piece::Reasoning { .. } => "thinking",
        Piece::Call { .. } => "tool calls",
        Piece::Result { .. } => "tool results",
    }
}

/// The size of a tool's spec, bytes.
pub fn spec_bytes(spec: &ToolSpec) -> usize {
    spec.name.len() + spec.description.len() + spec.parameters.to_string().len()
}

/// One part of the request, and the segment of a ledger that it belongs to.
struct Line {
    part: Part,
    group: SegmentKind,
    /// The name of the segment; empty for a Turn.
    name: String,
    count: usize,
    content: Option<&'static str>,
}

/// What a request is made of, and how large it is.
struct Sheet {
    lines: Vec<Line>,
    bytes: usize,
    tokens: u64,
    tokens_from: TokensFrom,
}

/// Draws up the ledger of a request. It reads each item once, so it costs as much as the request is long.
pub fn ledger(history: &History, body: &RequestBody, window: Option<u64>) -> Ledger {
    let Sheet { lines, bytes, tokens, tokens_from } = sheet(history, body);
    Ledger { segments: grouped(lines), bytes, tokens, tokens_from, window }
}

/// The same request, part by part: each message, call and result by itself.
pub fn report(history: &History, body: &RequestBody, window: Option<u64>) -> ContextReport {
    let Sheet { lines, bytes, tokens, tokens_from } = sheet(history, body);
    let mut parts: Vec<Part> = lines.into_iter().map(|line| line.part).collect();
    let request = body.request();
    let tools = request.tools.iter().map(|it| format!("{}: {}\n", it.name, title::start(&it.description, 160)));
    let documents = history.started.context.iter().map(|it| it.text.clone());
    let texts = [request.instructions.to_string(), tools.collect()].into_iter().chain(documents);
    for (part, text) in parts.iter_mut().zip(texts) {
        part.excerpt = text.chars().take(MAX_EXCERPT).collect();
    }
    ContextReport { parts, bytes, tokens, tokens_from, window }
}

fn sheet(history: &History, body: &RequestBody) -> Sheet {
    let request = body.request();
    let measured = history.measured();
    let was_sent = measured.is_some() || history.usage.input > 0;
    let repeated = |kind, group, name: &str, count, bytes| Line {
        part: Part {
            kind,
            title: name.to_owned(),
            seq: None,
            bytes,
            tokens: 0,
            turn: None,
            age: None,
            in_prefix: was_sent,
            images: 0,
            pinned: false,
            dropped: false,
            waits: false,
            excerpt: String::new(),
        },
        group,
        name: name.to_owned(),
        count,
        content: None,
    };
    let specs = request.tools.iter().map(spec_bytes).sum();
    let mut lines = vec![
        repeated(PartKind::Instructions, SegmentKind::Instructions, "instructions", 1, request.instructions.len()),
        repeated(PartKind::Tools, SegmentKind::Tools, "tools", request.tools.len(), specs),
    ];
    for document in &history.started.context {
        lines.push(repeated(PartKind::Document, SegmentKind::Document, &document.source, 1, document.text.len()));
    }
    add_items(&mut lines, history, &request.items);
    let bytes = body.size();
    let known: usize = lines.iter().map(|it| it.part.bytes).sum();
    let framing = bytes.saturating_sub(known);
    if framing > 0 {
        lines.push(repeated(PartKind::Framing, SegmentKind::Framing, "JSON around it", 1, framing));
    }
    let (tokens, tokens_from) = match measured {
        Some((input, _)) => {
            let is_new = |it: &&Line| !it.part.in_prefix;
            let new: usize = lines.iter().filter(is_new).map(|it| it.part.bytes).sum();
            let new = history.scale(request.fixed_tokens()).count(new as u64 / 4);
            spread(&mut lines, true, input);
            spread(&mut lines, false, new);
            (input + new, TokensFrom::Provider)
        }
        None => {
            let tokens = history.expected_tokens(request.fixed_tokens());
            lines.iter_mut().for_each(|it| it.part.in_prefix = false);
            spread(&mut lines, false, tokens);
            lines.iter_mut().for_each(|it| {
                it.part.in_prefix = was_sent && it.part.turn.is_none() && it.group != SegmentKind::Summary;
            });
            (tokens, TokensFrom::Estimate)
        }
    };
    Sheet { lines, bytes, tokens, tokens_from }
}

fn add_items(lines: &mut Vec<Line>, history: &History, items: &[Item]) {
    let sent = history.measured().map_or(0, |(_, bytes)| bytes);
    let mut at = 0;
    let mut turn = None;
    // What each call is about, for the title of its result.
    let mut calls: HashMap<String, String> = HashMap::new();
    for item in items {
        let piece = item.piece();
        let bytes = piece.len();
        at += bytes;
        let entry = item.entry();
        let (kind, group, name) = match entry.map(|it| &it.fact) {
            Some(Fact::HistoryCompaction(_)) => {
                (PartKind::Summary, SegmentKind::Summary, "summary of the earlier conversation".to_owned())
            }
            Some(Fact::SkillActivation(it)) => (PartKind::Skill, SegmentKind::Skill, it.name.clone()),
            Some(Fact::ContextChanged(it)) => {
                let sources: Vec<&str> = it.documents.iter().map(|it| it.source.as_str()).collect();
                (PartKind::Change, SegmentKind::Change, sources.join(", "))
            }
            Some(fact) => (fact.part(), SegmentKind::Turn, String::new()),
            None => (PartKind::Result, SegmentKind::Turn, String::new()),
        };
        let is_summary = group == SegmentKind::Summary;
        turn = if is_summary { turn } else { entry.and_then(|it| it.turn).or(turn) };
        let own_turn = if is_summary { None } else { turn };
        let title = match (&piece, entry) {
            (Piece::Result { id, .. }, _) => calls.get(&**id).cloned().unwrap_or_else(|| "a call".to_owned()),
            _ if !name.is_empty() => name.clone(),
            (_, Some(entry)) => title::of(&entry.fact),
            (_, None) => String::new(),
        };
        if let Piece::Call { id, .. } = &piece {
            calls.insert(id.clone().into_owned(), title.clone());
        }
        let images = match &piece {
            Piece::User { images, .. } | Piece::Result { images, .. } => images.len(),
            Piece::Note { .. } | Piece::Assistant { .. } | Piece::Reasoning { .. } | Piece::Call { .. } => 0,
        };
        let mark = entry.map(|it| history.mark(it.seq)).unwrap_or_default();
        lines.push(Line {
            part: Part {
                kind,
                title,
                seq: entry.map(|it| it.seq),
                bytes,
                tokens: 0,
                turn: own_turn,
                age: own_turn.map(|turn| history.turns.saturating_sub(turn)),
                in_prefix: at <= sent,
                images,
                pinned: mark.pinned.is_some(),
                dropped: mark.dropped.is_some(),
                waits: false,
                excerpt: String::new(),
            },
            group,
            name,
            count: 1,
            content: Some(kind_of(item)),
        });
    }
}

/// The lines as segments: the items of a Turn that follow each other are one.
fn grouped(lines: Vec<Line>) -> Vec<Segment> {
    let mut segments: Vec<Segment> = Vec::new();
    for Line { part, group, name, count, content } in lines {
        let content = content.map(|kind| Content { kind, count: 1, bytes: part.bytes });
        let is_turn = group == SegmentKind::Turn;
        let is_same = |it: &&mut Segment| {
            is_turn && it.kind == SegmentKind::Turn && it.turn == part.turn && it.in_prefix == part.in_prefix
        };
        if let Some(open) = segments.last_mut().filter(is_same) {
            open.count += count;
            open.bytes += part.bytes;
            open.tokens += part.tokens;
            if let Some(content) = content {
                match open.contents.iter_mut().find(|it| it.kind == content.kind) {
                    Some(it) => (it.count, it.bytes) = (it.count + 1, it.bytes + content.bytes),
                    None => open.contents.push(content),
                }
            }
            continue;
        }
        let name = match part.turn {
            Some(turn) if is_turn => format!("turn {turn}"),
            None if is_turn => "between turns".to_owned(),
            _ => name,
        };
        segments.push(Segment {
            kind: group,
            name,
            count,
            bytes: part.bytes,
            tokens: part.tokens,
            turn: part.turn,
            age: part.age,
            in_prefix: part.in_prefix,
            contents: if is_turn { content.into_iter().collect() } else { Vec::new() },
        });
    }
    segments
}

/// Spreads tokens over the lines in or behind the prefix, in proportion to their bytes, so that they add up exactly.
fn spread(lines: &mut [Line], in_prefix: bool, tokens: u64) {
    let of_part = |it: &&mut Line| it.part.in_prefix == in_prefix;
    let all: u128 = lines.iter().filter(|it| it.part.in_prefix == in_prefix).map(|it| it.part.bytes as u128).sum();
    let (mut bytes, mut given) = (0_u128, 0_u64);
    for line in lines.iter_mut().filter(of_part) {
        bytes += line.part.bytes as u128;
        // Each gets what is due up to here, so rounding never adds up.
        let due = u64::try_from(u128::from(tokens) * bytes / all.max(1)).unwrap_or(tokens);
        line.part.tokens = due - given;
        given = due;
    }
}
