//! Pastes that stand in the draft as one thing: `[paste 1: 214 lines]`.

use std::ops::Range;

/// A paste of more lines, or more characters, is folded.
const LINES: usize = 8;
const CHARACTERS: usize = 1_000;

/// Folded pastes, by their markers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Pastes(Vec<(String, String)>);

impl Pastes {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The marker for a text, if it is large enough to be folded.
    pub(crate) fn fold(&mut self, text: &str) -> Option<&str> {
        let lines = text.lines().count();
        let characters = text.chars().count();
        if lines <= LINES && characters <= CHARACTERS {
            return None;
        }
        let size = if lines > LINES { format!("{lines} lines") } else { format!("{characters} characters") };
        let marker = format!("[paste {}: {size}]", self.0.len() + 1);
        self.0.push((marker, text.to_owned()));
        self.0.last().map(|(marker, _)| marker.as_str())
    }

    /// The text with what its markers stand for.
    pub(crate) fn expand(&self, text: &str) -> String {
        // What was pasted may look like a marker itself: each place is replaced once.
        let mut expanded = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((at, marker, paste)) = self.next(rest) {
            expanded.push_str(&rest[..at]);
            expanded.push_str(paste);
            rest = &rest[at + marker.len()..];
        }
        expanded + rest
    }

    /// The text with markers in the place of these pastes.
    pub(crate) fn refold(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, (marker, paste)| text.replacen(paste, marker, 1))
    }

    fn next<'p>(&'p self, text: &str) -> Option<(usize, &'p str, &'p str)> {
        let found =
            self.0.iter().filter_map(|(marker, paste)| Some((text.find(marker)?, marker.as_str(), paste.as_str())));
        found.min_by_key(|(at, ..)| *at)
    }

    /// Where markers stand: row, and columns in characters.
    pub(crate) fn places<'p>(&'p self, lines: &'p [String]) -> impl Iterator<Item = (usize, Range<usize>)> + 'p {
        lines.iter().enumerate().flat_map(move |(row, line)| {
            let mut found: Vec<Range<usize>> = self
                .0
                .iter()
                .flat_map(|(marker, _)| line.match_indices(marker.as_str()))
                .map(|(at, marker)| {
                    let from = line[..at].chars().count();
                    from..from + marker.chars().count()
                })
                .collect();
            found.sort_by_key(|columns| columns.start);
            found.into_iter().map(move |columns| (row, columns))
        })
    }
}
