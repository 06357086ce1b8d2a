//! What a client sends with a prompt: text, images, files and what the editor shows, as a message.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use pixir_core::Harness;
use pixir_core::event::{EditorDocument, EditorDocumentKind, LineRange};
use pixir_core::input::{MAX_CONTEXT, MAX_DOCUMENT, Message};
use serde::Deserialize;
use serde_json::Value;

use crate::json_rpc::Failure;

/// A block of a prompt.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block {
    Text {
        text: String,
    },
    #[serde(rename_all = "camelCase")]
    Image {
        data: String,
        #[serde(default)]
        uri: Option<String>,
    },
    Audio {},
    ResourceLink {
        uri: String,
    },
    Resource {
        resource: Resource,
    },
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Resource {
    uri: String,
    #[serde(default)]
    text: Option<String>,
}

/// The message that a prompt's blocks make, with what `_meta.pixir.presenter_context` shows.
///
/// # Errors
/// −32602 for a block that pixir cannot take, with its place in the prompt.
pub(super) fn message(harness: &Harness, blocks: &Value, shown: &Value) -> Result<Message, Failure> {
    let blocks = blocks.as_array().ok_or_else(|| Failure::invalid_params("`prompt` must be a list of blocks"))?;
    let mut message = Message::default();
    let mut room = MAX_CONTEXT;
    for (at, block) in blocks.iter().enumerate() {
        let invalid = |why: String| Failure::invalid_params(format!("`prompt[{at}]`: {why}"));
        match Block::deserialize(block).map_err(|e| invalid(e.to_string()))? {
            Block::Text { text } => message.text.push_str(&text),
            Block::ResourceLink { uri } => message.text.push_str(&mention(harness.workspace(), &uri)),
            Block::Image { data, uri } => {
                let bytes = base64::engine::general_purpose::STANDARD.decode(data.as_bytes());
                let bytes = bytes.map_err(|e| invalid(format!("the image is no base64: {e}")))?;
                let name = uri.map_or_else(|| format!("image {}", at + 1), |uri| mention(harness.workspace(), &uri));
                message.attachments.push(harness.attach_bytes(&bytes, &name).map_err(Failure::from)?);
            }
            Block::Audio {} => return Err(invalid("pixir takes no audio; send text".to_owned())),
            Block::Resource { resource: Resource { uri, text: None } } => {
                return Err(invalid(format!("{uri} is binary; send a `resource_link`, which pixir reads by its path")));
            }
            Block::Resource { resource: Resource { uri, text: Some(text) } } => {
                let path = mention(harness.workspace(), &uri);
                let text = cut(&text, room.min(MAX_DOCUMENT));
                room -= text.len().min(room);
                message.context.push(EditorDocument { kind: EditorDocumentKind::OpenFile, path, lines: None, text });
            }
        }
    }
    if !shown.is_null() {
        let shown: Vec<EditorDocument> = serde_json::from_value(shown.clone())
            .map_err(|e| Failure::invalid_params(format!("`_meta.pixir.presenter_context`: {e}")))?;
        message.context.extend(shown);
    }
    Ok(message)
}

/// The text as far as there is room for it; a cut is marked.
fn cut(text: &str, room: usize) -> String {
    if text.len() <= room {
        return text.to_owned();
    }
    const MARK: &str = "\n[cut here; read the file for the rest]";
    let end = text.floor_char_boundary(room.saturating_sub(MARK.len()));
    if room < MARK.len() { String::new() } else { format!("{}{MARK}", &text[..end]) }
}

/// A resource as the model's tools name it: the path of a file, relative to the workspace where it is inside; any other
/// address as it is.
fn mention(workspace: &Path, uri: &str) -> String {
    let Some(rest) = uri.strip_prefix("file://") else { return uri.to_owned() };
    let (path, fragment) = rest.split_once('#').map_or((rest, None), |(path, fragment)| (path, Some(fragment)));
    let path = PathBuf::from(decoded(path));
    let shown = path.strip_prefix(workspace).unwrap_or(&path).display().to_string();
    match fragment.and_then(lines) {
        Some(LineRange { from, to }) if from == to => format!("{shown}:{from}"),
        Some(LineRange { from, to }) => format!("{shown}:{from}-{to}"),
        None => shown,
    }
}

/// The lines of a fragment such as `L10:20` or `L10-L20`.
fn lines(fragment: &str) -> Option<LineRange> {
    let numbers = fragment.strip_prefix('L')?;
    let (from, to) = numbers.split_once([':', '-']).unwrap_or((numbers, numbers));
    Some(LineRange { from: from.parse().ok()?, to: to.trim_start_matches('L').parse().ok()? })
}

/// A text without its percent signs.
fn decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = bytes.get(at + 1..at + 3).filter(|_| bytes[at] == b'%').and_then(|it| std::str::from_utf8(it).ok());
        match hex.and_then(|it| u8::from_str_radix(it, 16).ok()) {
            Some(byte) => {
                out.push(byte);
                at += 3;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_files_become_the_paths_that_tools_take() {
        let told = |uri: &str| mention(Path::new("/w"), uri);
        assert_eq!(told("file:///w/src/a%20b.rs"), "src/a b.rs");
        assert_eq!(told("file:///w/a.rs#L3:9"), "a.rs:3-9");
        assert_eq!(told("file:///etc/x%zz"), "/etc/x%zz");
        assert_eq!(told("https://example.com/%20"), "https://example.com/%20");
    }

    #[test]
    fn a_long_resource_is_cut_at_a_character_and_says_so() {
        assert_eq!(cut("abc", 3), "abc");
        let shown = cut(&"é".repeat(200), 101);
        assert!(shown.len() <= 101 && shown.ends_with("for the rest]"), "{shown}");
        assert_eq!(cut("abc", 2), "");
    }
}
