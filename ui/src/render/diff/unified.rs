//! The text of a unified diff, read into lines with numbers.

use pixir_core::diff::Tag;

/// What a line of the text is.
pub(super) enum Item<'a> {
    /// A hunk begins.
    Gap,
    /// Not a line of the file: why there is no diff, or that the last line has no end.
    Note(&'a str),
    /// A line of the file, and its number from 1 in its version; for a line of both, that in the new one, and `old`.
    Line { tag: Tag, number: u32, old: u32, text: &'a str },
}

/// A unified diff of one file.
pub(super) struct Unified<'a> {
    pub(super) items: Vec<Item<'a>>,
    /// The language by the path in the header; empty if there is none.
    pub(super) language: &'a str,
}

impl<'a> Unified<'a> {
    pub(super) fn read(diff: &'a str) -> Unified<'a> {
        let mut it = Unified { items: Vec::new(), language: "" };
        let (mut old, mut new) = (0_u32, 0_u32);
        let mut in_hunk = false;
        let all = || diff.split_terminator('\n');
        let in_hunks = || all().skip_while(|text| !text.starts_with("@@ "));
        let in_files = || in_hunks().filter(|text| text.starts_with([' ', '+', '-']));
        // Where all lines have the same ends, these say nothing.
        let ends_differ = in_files().any(|text| text.ends_with('\r')) && !in_files().all(|text| text.ends_with('\r'));
        for text in all() {
            let text = if ends_differ { text } else { text.strip_suffix('\r').unwrap_or(text) };
            // Inside of a hunk such a line is a changed one.
            if let Some(path) = text.strip_prefix("--- ").or_else(|| text.strip_prefix("+++ ")).filter(|_| !in_hunk) {
                if path != "/dev/null" {
                    it.language = language_of(path);
                }
                continue;
            }
            if let Some(hunk) = text.strip_prefix("@@ ") {
                (old, new) = starts(hunk).unwrap_or((0, 0));
                in_hunk = true;
                it.items.push(Item::Gap);
                continue;
            }
            if !in_hunk {
                it.items.push(Item::Note(text));
                continue;
            }
            let (mark, rest) = text.split_at(text.char_indices().nth(1).map_or(text.len(), |(at, _)| at));
            let count = |number: &mut u32| {
                *number += 1;
                *number - 1
            };
            let (tag, number) = match mark {
                "+" => (Tag::Added, count(&mut new)),
                "-" => (Tag::Removed, count(&mut old)),
                // Some programs drop the blank of an empty line.
                " " | "" => {
                    old += 1;
                    (Tag::Same, count(&mut new))
                }
                _ => {
                    it.items.push(Item::Note(text));
                    continue;
                }
            };
            it.items.push(Item::Line { tag, number, old: old.saturating_sub(1), text: rest });
        }
        it
    }

    /// The text that replaces a removed line, or that an added one replaces.
    pub(super) fn mate(&self, at: usize) -> Option<&'a str> {
        // A reader does not compare the two when they are far apart, and the search would cost more than it helps.
        const FARTHEST: usize = 60;
        let tag_at = |at: usize| match self.items.get(at) {
            Some(Item::Line { tag, text, .. }) => Some((*tag, *text)),
            Some(Item::Gap | Item::Note(_)) | None => None,
        };
        let (tag, _) = tag_at(at)?;
        if tag == Tag::Same {
            return None;
        }
        let is = |at: usize, wanted| tag_at(at).is_some_and(|(tag, _)| tag == wanted);
        let start = |mut from: usize, tag| {
            while from > 0 && at - from < FARTHEST && is(from - 1, tag) {
                from -= 1;
            }
            from
        };
        let end = |mut to: usize, tag| {
            while to - at < FARTHEST && is(to, tag) {
                to += 1;
            }
            to
        };
        if tag == Tag::Removed {
            let (first, after) = (start(at, Tag::Removed), end(at, Tag::Removed));
            let mate = after + (at - first);
            return (mate < end(after, Tag::Added)).then(|| tag_at(mate)).flatten().map(|(_, text)| text);
        }
        let first = start(at, Tag::Added);
        let removed = start(first, Tag::Removed);
        let mate = removed + (at - first);
        (mate < first).then(|| tag_at(mate)).flatten().map(|(_, text)| text)
    }
}

/// The name by which the highlighter finds a language: the extension, or the whole name of a file without one.
pub(crate) fn language_of(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path).trim_end();
    name.rsplit_once('.').map_or(name, |(_, extension)| extension)
}

/// The first line numbers of both sides in `-1,4 +2,5 @@`.
fn starts(hunk: &str) -> Option<(u32, u32)> {
    let mut parts = hunk.split(' ');
    let number = |part: &str, sign| part.strip_prefix(sign)?.split(',').next()?.parse().ok();
    Some((number(parts.next()?, '-')?, number(parts.next()?, '+')?))
}
