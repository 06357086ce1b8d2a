//! Copy labels: a letter on every visible part that can be copied.

use std::borrow::Cow;

use pixir_core::Fact;
use pixir_core::call_info::CallKind;

use crate::render::markdown;
use crate::render::split::{Part, outdented};
use crate::render::text::{End, Row, width};
use crate::transcript::viewport::{CellRow, Viewport};
use crate::transcript::{Cell, Transcript};

/// The labels, those that are easy to reach first. Letters with a meaning of their own are left out.
const LETTERS: &str = "asdfghjklqwertuiopzxcvbnmASDFGHJKLQWERTUIOPZXCVBNM";

/// The longest URL that is joined from several rows, in bytes.
const MAX_ADDRESS: usize = 2_000;

/// Something that can be copied, with its label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CopyLabel {
    pub(crate) letter: char,
    pub(crate) at: CellRow,
    /// The column of a link. None if the label stands for a whole row or more.
    pub(crate) column: Option<usize>,
    pub(crate) what: &'static str,
    pub(crate) text: String,
}

/// Labels on everything visible that can be copied.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct CopyLabels(pub(crate) Vec<CopyLabel>);

impl CopyLabels {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn of(transcript: &Transcript, viewport: &Viewport) -> CopyLabels {
        let mut found: Vec<(CellRow, Option<usize>, &'static str, String)> = Vec::new();
        let mut last_message = None;
        for it in viewport.shown() {
            let Some(cell) = transcript.cell(it.cell) else { continue };
            let at = |row| CellRow { cell: it.cell, row };
            let tail;
            let message = match cell {
                Cell::Recorded(entry) => cell.message().map(|(text, _)| (Some(entry), text, None)),
                Cell::Part(entry, part) => cell.message().map(|(text, _)| (Some(entry), text, Some(&**part))),
                Cell::Drafted(part) => Some((None, transcript.draft(), Some(&**part))),
                Cell::Tail => {
                    tail = transcript.tail();
                    Some((None, transcript.draft(), Some(&tail)))
                }
                _ => None,
            };
            if let Some((entry, text, part)) = message {
                let is_prompt = entry.is_some_and(|entry| matches!(entry.fact, Fact::UserMessage(_)));
                let what = if is_prompt { "prompt" } else { "answer" };
                let seq = entry.map(|entry| entry.seq);
                let first = it.rows[it.from..it.to].iter().position(|row| !row.line.spans.is_empty()).unwrap_or(0);
                // All visible parts of a message share one label.
                if last_message.replace(seq) != Some(seq) {
                    found.push((at(it.from + first), None, what, text.to_owned()));
                }
                let source = match part {
                    None => Cow::Borrowed(text),
                    Some(Part { fence: Some(fence), .. }) => outdented(&text[*fence..]),
                    Some(part) => Cow::Borrowed(&text[part.range.start..]),
                };
                for (row, it) in it.rows.iter().enumerate().take(it.to).skip(it.from) {
                    if let Some(code) = it.block.and_then(|n| markdown::code_block(&source, usize::from(n))) {
                        found.push((at(row), None, "code", code));
                    }
                }
            }
            for row in it.from..it.to {
                let mut links: Vec<(usize, String)> =
                    it.rows[row].links.iter().map(|(columns, url)| (columns.start, url.to_string())).collect();
                let written = addresses(&it.rows, row)
                    .filter(|(column, _)| !it.rows[row].links.iter().any(|(columns, _)| columns.contains(column)));
                links.extend(written);
                for (column, url) in links {
                    // A URL that continues in the next row, or occurs twice, gets one label.
                    if !found.iter().any(|(place, _, _, known)| place.cell == it.cell && *known == url) {
                        found.push((at(row), Some(column), "link", url));
                    }
                }
            }
            if let Cell::Tool(tool) = cell {
                let card = it.rows.iter().position(|row| !row.line.spans.is_empty()).unwrap_or(0);
                if (it.from..it.to).contains(&card) {
                    let about = tool.call().about();
                    match (about.kind, about.paths.first()) {
                        (CallKind::Execute, _) => found.push((at(card), None, "command", about.target.clone())),
                        (_, Some(path)) => found.push((at(card), None, "path", path.clone())),
                        (_, None) => {}
                    }
                }
                let diff = transcript
                    .diffs_of(it.cell)
                    .map(|files| files.iter().map(|file| file.text.as_str()).collect::<String>());
                let output =
                    tool.result().map(|result| result.output.rsplit_once('\n').map_or("", |(text, _)| text).to_owned());
                let (what, text) = diff.map_or(("output", output), |diff| ("diff", Some(diff)));
                if let Some(text) = text.filter(|text| !text.trim().is_empty())
                    && (it.from..it.to).contains(&(card + 1))
                {
                    found.push((at(card + 1), None, what, text));
                }
            }
        }
        found.sort_by_key(|(place, column, ..)| (*place, column.unwrap_or(usize::MAX)));
        let labelled = found.into_iter().zip(LETTERS.chars());
        let label = |((at, column, what, text), letter)| CopyLabel { letter, at, column, what, text };
        CopyLabels(labelled.map(label).collect())
    }
}

/// The URLs in a row, joined with the rows below, and the columns where they begin.
fn addresses(rows: &[Row], row: usize) -> impl Iterator<Item = (usize, String)> {
    let mut whole = rows[row].plain_text();
    let own = whole.len();
    let mut is_cut = false;
    for (above, below) in rows[row..].iter().zip(&rows[row + 1..]) {
        if above.end != End::Nothing {
            break;
        }
        // A URL that is cut off here must not be offered, because it would lead elsewhere.
        is_cut = below.end == End::Skip || whole.len() > own + MAX_ADDRESS;
        if is_cut {
            break;
        }
        whole.push_str(&below.plain_text());
    }
    let begins: Vec<usize> = ["https://", "http://"]
        .iter()
        .flat_map(|scheme| whole[..].match_indices(scheme).map(|(at, _)| at))
        .filter(|at| *at < own && !whole[..*at].ends_with(char::is_alphanumeric))
        .collect();
    let gutter = rows[row].gutter;
    begins.into_iter().filter_map(move |begin| {
        let rest = &whole[begin..];
        let is_whole = !is_cut || rest.contains(char::is_whitespace);
        let is_end = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '<' | '>' | '`' | '|');
        let url = rest[..rest.find(is_end).unwrap_or(rest.len())].trim_end_matches([',', '.', ';', ':', '!', '?']);
        // A closing bracket that was opened before the URL is not part of it.
        let url = if url.contains('(') { url } else { url.split(')').next().unwrap_or(url) };
        (is_whole && url.len() > "https://".len()).then(|| (gutter + width(&whole[..begin]), url.to_owned()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::text::wrap;
    use ratatui::text::Span;

    #[test]
    fn an_address_is_whole_wherever_its_row_ends() {
        let text = "see (https://example.com/a), http://b.example/x_(y). or xhttp://no";
        for columns in [12, 20, 80] {
            let rows = wrap(&[Span::raw(text)], columns, &[Span::raw("• ")], &[Span::raw("  ")]);
            let found: Vec<String> =
                (0..rows.len()).flat_map(|row| addresses(&rows, row).map(|(_, url)| url).collect::<Vec<_>>()).collect();
            assert_eq!(found, ["https://example.com/a", "http://b.example/x_(y)"], "{columns}");
        }
        let rows = wrap(&[Span::raw(text)], 80, &[], &[]);
        assert_eq!(addresses(&rows, 0).map(|(column, _)| column).collect::<Vec<_>>(), [5, 29]);
    }
}
