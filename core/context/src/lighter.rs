//! What is left out of requests after a server has refused one for its size, or for an image in it.

use conversation::history::History;
use protocol::event::{Attachment, Entry, Fact, Label};

/// A text below this part of the request is not large; a compaction makes room of many of them.
const LARGE: u64 = 8;
/// The least that is left of a large text, bytes.
const LEAST: usize = 2_000;
/// After so many refusals of images, all of them are left out.
const PATIENCE: u32 = 3;

/// What a server has refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refused {
    /// A whole request, of so many bytes.
    Request {
        /// Its size.
        bytes: u64,
    },
    /// An image, in these words of the server.
    Image {
        /// The words.
        why: String,
        /// How often images were refused in a row before.
        before: u32,
    },
}

/// What requests leave out from now on.
#[derive(Debug, Clone, PartialEq)]
pub struct Lighter {
    /// The marks to record.
    pub labels: Vec<Label>,
    /// What is left out, as a sentence for the user.
    pub told: String,
}

/// Chooses what to leave out. `None` if nothing large is left.
pub fn lighter(history: &History, refused: &Refused) -> Option<Lighter> {
    let images = largest_first(history);
    match refused {
        Refused::Request { bytes } => {
            let why = format!("the server takes no request of {}", size(*bytes));
            // A quarter of what was too much is tried next: the server does not say how much is not.
            let excess = bytes - bytes / 4;
            let are_large = images.iter().map(Shown::bytes).sum::<u64>() >= bytes / LARGE;
            if are_large {
                return without_images(images, excess, &why, &why);
            }
            shorter(history, *bytes, excess, &why).or_else(|| without_images(images, excess, &why, &why))
        }
        Refused::Image { why, before } => {
            let is_count = ["too many", "number of images", "at most"].iter().any(|it| why.to_lowercase().contains(it));
            let excess = match (*before >= PATIENCE, is_count) {
                (true, _) => u64::MAX,
                (false, true) => images.iter().map(Shown::bytes).sum::<u64>() / 2,
                // One at a time, the largest of those that no answer has come to yet.
                (false, false) => 1,
            };
            let images = suspects(history, images, is_count);
            let of_it = format!("the server refuses it ({why})");
            without_images(images, excess, &of_it, &format!("the server refuses an image ({why})"))
        }
    }
}

/// An Entry with images that requests still have.
struct Shown<'a> {
    entry: &'a Entry,
    images: &'a [Attachment],
}

impl Shown<'_> {
    /// The bytes of its images in a request, as base64.
    fn bytes(&self) -> u64 {
        self.images.iter().map(|it| it.bytes.div_ceil(3) * 4).sum()
    }
}

fn largest_first(history: &History) -> Vec<Shown<'_>> {
    let is_shown = |it: &Shown<'_>| {
        let mark = history.mark(it.entry.seq);
        !it.images.is_empty() && mark.without_images.is_none() && mark.dropped.is_none()
    };
    let shown = history.recent_path().map(|entry| Shown { entry, images: images_of(&entry.fact) });
    let mut shown: Vec<Shown<'_>> = shown.filter(is_shown).collect();
    shown.sort_by_key(|it| std::cmp::Reverse(it.bytes()));
    shown
}

fn images_of(fact: &Fact) -> &[Attachment] {
    match fact {
        Fact::UserMessage(it) => &it.attachments,
        Fact::ToolResult(it) => &it.attachments,
        _ => &[],
    }
}

/// The images that the server may mean: those behind the last answer. Where there are too many, the oldest go first.
fn suspects<'a>(history: &History, mut images: Vec<Shown<'a>>, is_count: bool) -> Vec<Shown<'a>> {
    if is_count {
        images.sort_by_key(|it| it.entry.seq);
        return images;
    }
    let is_answer = |entry: &&std::sync::Arc<Entry>| matches!(entry.fact, Fact::AssistantMessage(_));
    let answered = history.recent_path().rev().find(is_answer).map_or(0, |entry| entry.seq);
    images.sort_by_key(|it| it.entry.seq < answered);
    images
}

/// Leaves out images in this order, until so many bytes are saved. The reason is worded for the model, and for the user.
fn without_images(images: Vec<Shown<'_>>, excess: u64, why: &str, told: &str) -> Option<Lighter> {
    let (mut labels, mut names, mut saved) = (Vec::new(), Vec::new(), 0);
    for it in images {
        if saved >= excess {
            break;
        }
        saved += it.bytes();
        names.extend(it.images.iter().map(|image| format!("{} ({})", image.path, size(image.bytes))));
        labels.push(Label { seq: it.entry.seq, without_images: Some(why.to_owned()), ..Label::default() });
    }
    let noun = if names.len() == 1 { "the image" } else { "the images" };
    let told = format!(
        "{told}: requests leave out {noun} {} from now on. The files stay as they are; a smaller copy can be sent",
        names.join(", ")
    );
    (!labels.is_empty()).then_some(Lighter { labels, told })
}

/// Shortens large texts, the largest first, until so many bytes are saved.
fn shorter(history: &History, bytes: u64, excess: u64, why: &str) -> Option<Lighter> {
    let least = usize::try_from(bytes / LARGE).unwrap_or(usize::MAX).max(2 * LEAST);
    let may_be = |fact: &Fact| matches!(fact, Fact::UserMessage(_) | Fact::ToolResult(_) | Fact::ToolCall(_));
    let entries = history.recent_path().filter(|entry| may_be(&entry.fact));
    let mut texts: Vec<(u64, usize)> = entries.map(|entry| (entry.seq, history.length_of(entry))).collect();
    texts.retain(|(_, length)| *length >= least);
    texts.sort_by_key(|(_, length)| std::cmp::Reverse(*length));
    let (mut labels, mut saved) = (Vec::new(), 0);
    for (seq, length) in texts {
        if saved >= excess {
            break;
        }
        let most = (length / 16).max(LEAST);
        saved += (length - most) as u64;
        labels.push(Label { seq, shortened_to: Some(most), ..Label::default() });
    }
    let texts = if labels.len() == 1 { "a long text".to_owned() } else { format!("{} long texts", labels.len()) };
    let told = format!("{why}: requests have only the start and the end of {texts} from now on ({} less)", size(saved));
    (!labels.is_empty()).then_some(Lighter { labels, told })
}

fn size(bytes: u64) -> String {
    text::human::human_size(bytes)
}
