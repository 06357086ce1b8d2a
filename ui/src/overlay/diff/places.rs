//! The rows of a file, unified or side by side. They are computed with the file's lines, off the interface's thread where
//! the file is large; a frame only looks them up.

use std::sync::Arc;

use pixir_core::diff::{Body, ChangedFile, Folded, Hunk, Patch, Tag, TextPatch};

/// A row: the head of a hunk, a line, or two lines side by side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(super) hunk: u32,
    /// Lines of [`TextPatch::lines`]; both absent in the head of a hunk.
    pub(super) left: Option<u32>,
    pub(super) right: Option<u32>,
    is_change: bool,
}

impl Place {
    /// The line that a comment here is about: that of the new file, if there is one.
    pub(super) fn line(self) -> Option<usize> {
        self.right.or(self.left).and_then(|line| usize::try_from(line).ok())
    }

    pub(super) fn is_change(self) -> bool {
        self.is_change
    }

    pub(super) fn is_head(self) -> bool {
        self.left.is_none() && self.right.is_none()
    }
}

/// A file with its rows. It is made where the file is read, because it takes longer for a longer file.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(super) body: Body,
    pub(super) folded: Option<Folded>,
    pub(super) seen: Option<String>,
    /// The name of the encoding, if it is not UTF-8.
    pub(super) encoding: Option<String>,
    /// Only the start of the file is compared; the whole follows.
    pub(super) is_start: bool,
    /// Lines added and removed.
    pub(super) counts: (u64, u64),
    /// The names of the hunks.
    pub(super) ids: Vec<String>,
    unified: Vec<Place>,
    split: Vec<Place>,
}

impl Loaded {
    pub(crate) fn new(path: &str, patch: Patch) -> Loaded {
        let Patch { body, folded, seen, encoding, is_start } = patch;
        match &body {
            Body::Text(text) => {
                let ids = text.hunks.iter().map(|hunk| text.id(path, hunk)).collect();
                let (unified, split, counts) = (unified(text), split(text), text.counts());
                Loaded { body, folded, seen, encoding, is_start, counts, ids, unified, split }
            }
            Body::Binary(..) | Body::Nothing(_) => {
                let (unified, split) = (Vec::new(), Vec::new());
                Loaded { body, folded, seen, encoding, is_start, counts: (0, 0), ids: Vec::new(), unified, split }
            }
        }
    }

    pub(super) fn text(&self) -> Option<&Arc<TextPatch>> {
        if let Body::Text(text) = &self.body { Some(text) } else { None }
    }

    pub(super) fn places(&self, is_split: bool) -> &[Place] {
        if is_split { &self.split } else { &self.unified }
    }
}

fn index(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

fn head(hunk: usize) -> Place {
    Place { hunk: index(hunk), left: None, right: None, is_change: false }
}

fn unified(text: &TextPatch) -> Vec<Place> {
    let mut places = Vec::with_capacity(text.lines.len() + text.hunks.len());
    for (at, hunk) in text.hunks.iter().enumerate() {
        places.push(head(at));
        places.extend(hunk.lines.clone().map(|line| Place {
            hunk: index(at),
            left: Some(index(line)),
            right: None,
            is_change: text.lines[line].tag != Tag::Same,
        }));
    }
    places
}

/// Removed lines stand beside the lines that replace them.
fn split(text: &TextPatch) -> Vec<Place> {
    let mut places = Vec::with_capacity(text.lines.len() + text.hunks.len());
    for (at, hunk) in text.hunks.iter().enumerate() {
        places.push(head(at));
        let mut line = hunk.lines.start;
        while line < hunk.lines.end {
            let run = |from: usize, tag: Tag| {
                text.lines[from..hunk.lines.end].iter().take_while(|line| line.tag == tag).count()
            };
            if text.lines[line].tag == Tag::Same {
                let both = Some(index(line));
                places.push(Place { hunk: index(at), left: both, right: both, is_change: false });
                line += 1;
                continue;
            }
            let removed = run(line, Tag::Removed);
            let added = run(line + removed, Tag::Added);
            for n in 0..removed.max(added) {
                let left = (n < removed).then(|| index(line + n));
                let right = (n < added).then(|| index(line + removed + n));
                places.push(Place { hunk: index(at), left, right, is_change: true });
            }
            line += removed + added;
        }
    }
    places
}

/// A hunk as a patch that `git apply` accepts.
pub(super) fn patch_text(file: &ChangedFile, text: &TextPatch, hunk: &Hunk) -> String {
    use pixir_core::diff::Kind;
    let name =
        |side: &str, path: &str, is_there: bool| if is_there { format!("{side}/{path}") } else { "/dev/null".into() };
    let old = name("a", file.from().unwrap_or(&file.path), file.kind != Kind::Added);
    let new = name("b", &file.path, file.kind != Kind::Deleted);
    let mut patch = format!("--- {old}\n+++ {new}\n");
    text.write_hunk(hunk, &mut patch);
    patch
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken build: one that puts removed lines above the added ones instead of beside them.
    #[test]
    fn lines_stand_beside_those_that_replace_them() {
        let text = TextPatch::new("a\nb\nc\nd\n", "a\nB\nd\ne\n");
        let shown = |places: Vec<Place>| -> Vec<String> {
            let of = |line: Option<u32>| line.map_or("·", |at| text.text(text.lines[at as usize]).trim_end());
            places.iter().map(|it| format!("{}|{}", of(it.left), of(it.right))).collect()
        };
        assert_eq!(shown(split(&text)), ["·|·", "a|a", "b|B", "c|·", "d|d", "·|e"]);
        assert_eq!(shown(unified(&text)), ["·|·", "a|·", "b|·", "c|·", "B|·", "d|·", "e|·"]);
    }
}
