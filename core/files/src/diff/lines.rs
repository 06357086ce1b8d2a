//! A text as numbered lines, and the lines of a diff.

use std::ops::Range;

/// A text and where its lines begin.
#[derive(Debug, Clone, Default)]
pub struct Numbered {
    text: String,
    starts: Vec<usize>,
}

impl Numbered {
    /// Splits a text after each `\n`.
    pub fn new(text: &str) -> Numbered {
        let mut starts = vec![0];
        starts.extend(memchr::memchr_iter(b'\n', text.as_bytes()).map(|at| at + 1));
        if starts.last() == Some(&text.len()) {
            starts.pop();
        }
        Numbered { text: text.to_owned(), starts }
    }

    /// The number of lines.
    pub fn len(&self) -> usize {
        self.starts.len()
    }

    /// Whether there is no line.
    pub fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    /// The whole text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// A line with its end; empty beyond the last.
    pub fn line(&self, at: u32) -> &str {
        self.lines(at..at + 1)
    }

    /// Lines with their ends.
    pub fn lines(&self, lines: Range<u32>) -> &str {
        &self.text[self.offset(lines.start)..self.offset(lines.end)]
    }

    /// The line that has this byte.
    pub(super) fn line_at(&self, byte: usize) -> u32 {
        u32::try_from(self.starts.partition_point(|start| *start <= byte).saturating_sub(1)).unwrap_or(u32::MAX)
    }

    pub(super) fn offset(&self, line: u32) -> usize {
        usize::try_from(line).ok().and_then(|line| self.starts.get(line).copied()).unwrap_or(self.text.len())
    }
}

/// Whether a line is in both versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tag {
    /// In both.
    Same,
    /// Only in the old one.
    Removed,
    /// Only in the new one.
    Added,
}

/// A line of a diff, as indices from 0. A changed line also names the line that it replaces, or that replaces it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line {
    /// Whether it is in both versions.
    pub tag: Tag,
    /// The line in the old version.
    pub old: Option<u32>,
    /// The line in the new version.
    pub new: Option<u32>,
}
