//! What all dialects share: a request is written as JSON, and an answer is read event by event.

use std::borrow::Cow;

use base64::display::Base64Display;
use base64::engine::general_purpose::STANDARD;
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::models::ModelInfo;
use super::preset::Quirks;
use super::{Answer, Chunk, Request, anthropic, chat, responses};
use conversation::history::{Item, Piece};
use protocol::error::{Code, Error, Result};
use protocol::event::{Arguments, Attachment, Usage};

/// The wire format of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// The Responses API.
    Responses,
    /// Chat Completions.
    Chat,
    /// The Messages API.
    Anthropic,
}

impl Dialect {
    /// Every dialect.
    pub const ALL: [Dialect; 3] = [Dialect::Responses, Dialect::Chat, Dialect::Anthropic];

    /// Returns the dialect with this name.
    ///
    /// # Errors
    /// `CONFIG_INVALID`, with the valid names.
    pub fn parse(name: &str) -> Result<Dialect> {
        Dialect::ALL.into_iter().find(|it| it.name() == name).ok_or_else(|| {
            let message = format!("there is no dialect `{}`", name.escape_debug());
            Error::new(Code::ConfigInvalid, message, "choose responses, chat or anthropic").with("input", name)
        })
    }

    /// Returns the name in the configuration and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Dialect::Responses => "responses",
            Dialect::Chat => "chat",
            Dialect::Anthropic => "anthropic",
        }
    }

    /// Returns the path of requests, below the base URL.
    pub(super) const fn path(self) -> &'static str {
        match self {
            Dialect::Responses => "/responses",
            Dialect::Chat => "/chat/completions",
            Dialect::Anthropic => "/messages",
        }
    }

    /// Writes the body of a request as JSON. Texts are written straight from the History, without a copy.
    pub fn body(self, request: &Request, facts: &ModelInfo, quirks: &Quirks) -> Vec<u8> {
        let mut body = Vec::new();
        self.write(request, facts, quirks, &mut serde_json::Serializer::new(&mut body))
            .expect("its keys are strings, and a Vec takes all bytes");
        body
    }

    /// Writes the body of a request to a serializer.
    pub(super) fn write<S: Serializer>(
        self,
        request: &Request,
        facts: &ModelInfo,
        quirks: &Quirks,
        to: S,
    ) -> std::result::Result<S::Ok, S::Error> {
        match self {
            Dialect::Responses => responses::body(request, facts, quirks).serialize(to),
            Dialect::Chat => chat::body(request, facts, quirks).serialize(to),
            Dialect::Anthropic => anthropic::body(request, facts).serialize(to),
        }
    }

    /// Creates a reader of one answer.
    pub fn reader(self) -> Box<dyn Reader> {
        match self {
            Dialect::Responses => Box::<responses::AnswerDecoder>::default(),
            Dialect::Chat => Box::<chat::AnswerDecoder>::default(),
            Dialect::Anthropic => Box::<anthropic::AnswerDecoder>::default(),
        }
    }
}

/// Reads one answer, event by event. It does no I/O and knows no time limits.
pub trait Reader: Send {
    /// Takes in the next event, and passes new parts of the answer to `say`.
    ///
    /// # Errors
    /// The error that the server reports in the event; `INVALID_RESPONSE` when the event is malformed or contradicts
    /// earlier events.
    fn take(&mut self, event: &Value, say: &mut (dyn FnMut(Chunk) + Send)) -> Result<StreamProgress>;

    /// Returns the usage reported so far.
    fn usage(&self) -> Option<Usage>;

    /// Returns the assembled answer.
    ///
    /// # Errors
    /// `STREAM_CLOSED` when no event ended the answer.
    fn finish(self: Box<Self>) -> Result<Answer>;
}

/// The progress of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamProgress {
    /// The answer is incomplete.
    Part,
    /// The answer is complete; only usage may follow.
    Usable,
    /// The answer and its usage are complete.
    All,
}

/// A call or a result as a text, for a request without tools: servers refuse calls there, and models do not know them.
fn in_words(piece: Piece<'_>) -> Piece<'_> {
    match piece {
        Piece::Call { name, args, .. } => {
            Piece::Assistant { text: format!("(a call of the tool {name}: {})", args.text()).into(), phase: None }
        }
        Piece::Result { output, images, .. } => {
            Piece::User { text: format!("(the result of a call)\n{output}").into(), images }
        }
        piece => piece,
    }
}

/// Returns the items that a server accepts. Blank texts are dropped. Reasoning is sent only to the Provider and model
/// that produced it, and only if a text or call follows it.
pub(super) fn pieces(request: &Request) -> Vec<Piece<'_>> {
    let has_no_tools = request.tools.is_empty();
    let ours = |piece: &Piece<'_>| match piece {
        Piece::User { text, images } => !text.trim().is_empty() || !images.is_empty(),
        Piece::Note { text } | Piece::Assistant { text, .. } => !text.trim().is_empty(),
        Piece::Reasoning { .. } if has_no_tools => false,
        Piece::Reasoning { provider, model, .. } => *provider == *request.provider && *model == *request.model,
        Piece::Call { .. } | Piece::Result { .. } => true,
    };
    let pieces =
        request.items.iter().map(Item::piece).map(|it| if has_no_tools { in_words(it) } else { it }).filter(ours);
    // Walk backwards: whether reasoning is sent depends on the item after it.
    let mut leads_somewhere = false;
    let mut kept: Vec<Piece<'_>> = pieces
        .rev()
        .filter(|piece| match piece {
            Piece::Reasoning { .. } => leads_somewhere,
            piece => {
                leads_somewhere = matches!(piece, Piece::Assistant { .. } | Piece::Call { .. });
                true
            }
        })
        .collect();
    kept.reverse();
    kept
}

/// The arguments of a call, sent as a string.
pub(super) struct AsText<'a>(pub(super) Cow<'a, Arguments>);

impl Serialize for AsText<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.text())
    }
}

/// Bytes, sent as Base64.
pub(super) struct Base64(pub(super) Vec<u8>);

impl Serialize for Base64 {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_str(&Base64Display::new(&self.0, &STANDARD))
    }
}

/// An image, sent as a `data:` URL.
pub(super) struct DataUrl {
    media_type: String,
    bytes: Vec<u8>,
}

impl DataUrl {
    pub(super) fn new(image: &Attachment, bytes: Vec<u8>) -> DataUrl {
        DataUrl { media_type: image.media_type.clone(), bytes }
    }
}

impl Serialize for DataUrl {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let data = Base64Display::new(&self.bytes, &STANDARD);
        serializer.collect_str(&format_args!("data:{};base64,{data}", self.media_type))
    }
}

/// The most characters of a name or id on the wire.
pub(super) const MAX_NAME: usize = 64;

/// Returns a tool name or call id in a form that every server accepts. Valid names stay as they are. Others come from a
/// model's mistake or from another server; each always maps to the same valid name.
pub(super) fn plain(name: Cow<'_, str>) -> Cow<'_, str> {
    let takes = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !name.is_empty() && name.len() <= MAX_NAME && name.chars().all(takes) {
        return name;
    }
    let digest = blake3::hash(name.as_bytes()).to_hex();
    let start: String = name.chars().map(|c| if takes(c) { c } else { '_' }).take(MAX_NAME - 9).collect();
    Cow::Owned(format!("{start}_{}", &digest[..8]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_every_server_takes_stay_and_others_become_such_each_its_own() {
        assert_eq!(plain("call_1-A".into()), "call_1-A");
        let odd = ["", "functions.read:0", "functions_read:0", "\u{1b}[31mx", &"n".repeat(10_000)]
            .map(|n| plain(n.into()).into_owned());
        for name in &odd {
            assert!(
                name.len() <= MAX_NAME && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c)),
                "{name}"
            );
        }
        assert_ne!(odd[1], odd[2]);
    }
}
