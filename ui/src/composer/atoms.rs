//! Pastes and images that the draft shows as one marker: `[paste 1: 214 lines]`, `[image 1: shot.png]`.

use std::ops::Range;

use pixir_core::event::Attachment;
use serde::{Deserialize, Serialize};

/// Pastes with more lines, or more characters, are folded.
const LINES: usize = 8;
const CHARACTERS: usize = 1_000;

/// The most pastes in memory, and their total size in bytes. A restored draft needs the pastes that it had.
const KNOWN: usize = 100;
const KNOWN_BYTES: usize = 16 << 20;

/// The folded pastes of this Session by marker, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Pastes(Vec<(String, String)>);

impl Pastes {
    /// The marker for a text, if the text is large enough to be folded.
    pub(crate) fn fold(&mut self, text: &str) -> Option<&str> {
        let lines = text.lines().count();
        let characters = text.chars().count();
        if lines <= LINES && characters <= CHARACTERS {
            return None;
        }
        if let Some(at) = self.0.iter().position(|(_, paste)| paste == text) {
            return self.0.get(at).map(|(marker, _)| marker.as_str());
        }
        let size = if lines > LINES { format!("{lines} lines") } else { format!("{characters} characters") };
        let last = self.0.last().and_then(|(marker, _)| number_of(marker, "paste")).unwrap_or(0);
        let marker = format!("[paste {}: {size}]", last + 1);
        self.0.push((marker, text.to_owned()));
        self.0.last().map(|(marker, _)| marker.as_str())
    }

    /// Drops the oldest pastes above the limits. Called only while no draft refers to them.
    pub(crate) fn trim(&mut self) {
        let mut bytes = 0;
        let kept = self.0.iter().rev().take(KNOWN).take_while(|(_, paste)| {
            bytes += paste.len();
            bytes <= KNOWN_BYTES
        });
        let kept = kept.count();
        self.0.drain(..self.0.len() - kept);
    }

    /// The pastes whose markers a text contains.
    pub(crate) fn within(&self, text: &str) -> Pastes {
        Pastes(self.0.iter().filter(|(_, paste)| text.contains(paste.as_str())).cloned().collect())
    }

    /// Adds the pastes of a saved draft.
    pub(crate) fn join(&mut self, saved: Pastes) {
        for (marker, paste) in saved.0 {
            if !self.0.iter().any(|(known, text)| *known == marker || *text == paste) {
                self.0.push((marker, paste));
            }
        }
    }

    /// Replaces markers by their pastes.
    pub(crate) fn expand(&self, text: &str) -> String {
        // A paste can contain text that looks like a marker, so each marker is replaced once.
        let mut expanded = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((at, marker, paste)) = self.next(rest) {
            expanded.push_str(&rest[..at]);
            expanded.push_str(paste);
            rest = &rest[at + marker.len()..];
        }
        expanded + rest
    }

    /// Replaces pastes by their markers.
    pub(crate) fn refold(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, (marker, paste)| text.replacen(paste, marker, 1))
    }

    fn next<'p>(&'p self, text: &str) -> Option<(usize, &'p str, &'p str)> {
        let found =
            self.0.iter().filter_map(|(marker, paste)| Some((text.find(marker)?, marker.as_str(), paste.as_str())));
        found.min_by_key(|(at, ..)| *at)
    }

    pub(crate) fn markers(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(marker, _)| marker.as_str())
    }
}

/// The images of this Session by marker. A marker stays with its text, wherever that goes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Images(Vec<(String, Attachment)>);

impl Images {
    /// The marker for an image. Its number is unique in the Session.
    pub(crate) fn mark(&mut self, image: Attachment) -> String {
        let last = self.0.iter().filter_map(|(marker, _)| number_of(marker, "image")).max().unwrap_or(0);
        let marker = format!("[image {}: {}]", last + 1, name_of(&image));
        self.0.push((marker.clone(), image));
        marker
    }

    /// Adds the images of a recorded message, so that they are available when the user brings the text back.
    pub(crate) fn adopt(&mut self, text: &str, images: &[Attachment]) {
        let mut free: Vec<&str> = markers_in(text).collect();
        for image in images {
            let end = format!(": {}]", name_of(image));
            if let Some(at) = free.iter().position(|marker| marker.ends_with(&end)) {
                let marker = free.remove(at);
                if !self.0.iter().any(|(known, _)| known == marker) {
                    self.0.push((marker.to_owned(), image.clone()));
                }
            }
        }
    }

    /// A marker in the text whose image does not exist here.
    pub(crate) fn missing<'t>(&self, text: &'t str) -> Option<&'t str> {
        markers_in(text).find(|marker| !self.0.iter().any(|(known, _)| known == marker))
    }

    /// Adds the images of a saved draft.
    pub(crate) fn join(&mut self, saved: Images) {
        let new = saved.0.into_iter().filter(|(marker, _)| !self.0.iter().any(|(known, _)| known == marker));
        let new: Vec<_> = new.collect();
        self.0.extend(new);
    }

    /// The images whose markers a text contains.
    pub(crate) fn within(&self, text: &str) -> Images {
        Images(self.0.iter().filter(|(marker, _)| text.contains(marker.as_str())).cloned().collect())
    }

    pub(crate) fn attachments(&self) -> Vec<Attachment> {
        self.0.iter().map(|(_, image)| image.clone()).collect()
    }

    pub(crate) fn markers(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(marker, _)| marker.as_str())
    }
}

fn name_of(image: &Attachment) -> String {
    let name = image.path.rsplit('/').next().unwrap_or(&image.path);
    name.chars().filter(|c| !c.is_control() && *c != ']').collect()
}

fn number_of(marker: &str, kind: &str) -> Option<u64> {
    marker.strip_prefix('[')?.strip_prefix(kind)?.strip_prefix(' ')?.split_once(':')?.0.parse().ok()
}

/// Text that looks like the marker of an image.
fn markers_in(text: &str) -> impl Iterator<Item = &str> {
    let begun = text.match_indices("[image ").map(|(at, _)| &text[at..]);
    let whole = begun.filter_map(|rest| Some(&rest[..=rest.lines().next()?.find(']')?]));
    whole.filter(|marker| number_of(marker, "image").is_some())
}

/// The positions of markers: row, and columns in characters.
pub(super) fn places<'m>(markers: impl Iterator<Item = &'m str>, lines: &[String]) -> Vec<(usize, Range<usize>)> {
    let mut found: Vec<(usize, Range<usize>)> = Vec::new();
    for marker in markers {
        for (row, line) in lines.iter().enumerate() {
            found.extend(line.match_indices(marker).map(|(at, _)| {
                let from = line[..at].chars().count();
                (row, from..from + marker.chars().count())
            }));
        }
    }
    found.sort_by_key(|(row, columns)| (*row, columns.start));
    found
}

/// The path of an image file, if the paste is nothing else: terminals paste a dropped file like this, quoted, with
/// backslashes, or as a URL.
pub(crate) fn dropped_image(pasted: &str) -> Option<String> {
    let text = pasted.trim();
    let quoted = ["'", "\""].iter().find_map(|q| text.strip_prefix(q)?.strip_suffix(q));
    let path = match (quoted, text.strip_prefix("file://")) {
        (Some(path), _) => path.to_owned(),
        (None, Some(url)) => percent_decoded(url)?,
        (None, None) => {
            let mut path = String::new();
            let mut letters = text.chars();
            while let Some(c) = letters.next() {
                path.extend(if c == '\\' { letters.next() } else { Some(c) });
            }
            path
        }
    };
    (path.starts_with('/') && !path.contains('\n') && is_image_name(&path)).then_some(path)
}

/// A model can read an image file with this name.
pub(crate) fn is_image_name(path: &str) -> bool {
    let ending = path.rsplit_once('.').map_or("", |(_, ending)| ending);
    ["png", "jpg", "jpeg", "gif", "webp"].iter().any(|it| ending.eq_ignore_ascii_case(it))
}

fn percent_decoded(url: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = url.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first == b'%' {
            let digits = std::str::from_utf8(rest.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &rest[2..];
        } else {
            bytes.push(*first);
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_was_dropped_on_the_terminal_is_known_however_it_is_written() {
        let path = |text| dropped_image(text);
        assert_eq!(path("/tmp/a.png\n"), Some("/tmp/a.png".into()));
        assert_eq!(path("'/tmp/my shot.JPG'"), Some("/tmp/my shot.JPG".into()));
        assert_eq!(path("/tmp/my\\ shot.webp"), Some("/tmp/my shot.webp".into()));
        assert_eq!(path("file:///tmp/my%20shot.gif"), Some("/tmp/my shot.gif".into()));
        assert_eq!(path("see /tmp/a.png"), None, "words are words");
        assert_eq!(path("/tmp/a.png\n/tmp/b.png"), None);
        assert_eq!(path("/tmp/a.rs"), None);
        assert_eq!(path("file:///tmp/%zz.png"), None);
    }
}
