//! Letters on what can be copied.

use pixir_core::event::Fact;

use crate::render::markdown;
use crate::state::State;
use crate::transcript::Cell;
use crate::viewport::Place;

/// Letters in the order in which they are easy to reach; none that does something else while they are shown.
const LETTERS: &str = "asdfghjklqwertuiopzxcvbnm";

/// Something that can be copied, and its letter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Label {
    pub(crate) letter: char,
    pub(crate) place: Place,
    pub(crate) what: &'static str,
    pub(crate) text: String,
}

/// Letters on everything in sight that can be copied.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Labels(pub(crate) Vec<Label>);

impl Labels {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn of(state: &State) -> Labels {
        let mut found: Vec<(Place, &'static str, String)> = Vec::new();
        for it in state.viewport.shown() {
            let Some(cell) = state.transcript.cell(it.cell) else { continue };
            let at = |row| Place { cell: it.cell, row };
            let message = match cell {
                Cell::Recorded(entry) => Some((entry, None)),
                Cell::Part(entry, part) => Some((entry, Some(part))),
                _ => None,
            };
            if let Some((entry, part)) = message {
                let (text, what) = match &entry.fact {
                    Fact::AssistantMessage(it) => (it.text.as_str(), "answer"),
                    Fact::UserMessage(it) => (it.text.as_str(), "prompt"),
                    _ => continue,
                };
                let first = it.rows[it.from..it.to].iter().position(|row| !row.line.spans.is_empty()).unwrap_or(0);
                if part.is_none_or(|part| part.range.start == 0) && it.from == 0 {
                    found.push((at(it.from + first), what, text.to_owned()));
                }
                let from = part.map_or(0, |part| part.fence.unwrap_or(part.range.start));
                for (row, it) in it.rows.iter().enumerate().take(it.to).skip(it.from) {
                    if let Some(code) = it.block.and_then(|n| markdown::code_block(&text[from..], usize::from(n))) {
                        found.push((at(row), "code", code));
                    }
                    for (_, url) in &it.links {
                        if found.last().is_none_or(|(_, _, last)| **last != **url) {
                            found.push((at(row), "link", url.to_string()));
                        }
                    }
                }
            }
            if let Cell::Tool(tool) = cell {
                let card = it.rows.iter().position(|row| !row.line.spans.is_empty()).unwrap_or(0);
                if (it.from..it.to).contains(&card) {
                    let argument = |key: &'static str| Some((key, tool.call().args[key].as_str()?.to_owned()));
                    if let Some((what, text)) = argument("command").or_else(|| argument("path")) {
                        found.push((at(card), what, text));
                    }
                }
                let diff = state
                    .transcript
                    .diffs_of(it.cell)
                    .map(|files| files.iter().map(|file| file.text.as_str()).collect::<String>());
                let output =
                    tool.result().map(|result| result.output.rsplit_once('\n').map_or("", |(text, _)| text).to_owned());
                let (what, text) = diff.map_or(("output", output), |diff| ("diff", Some(diff)));
                if let Some(text) = text.filter(|text| !text.trim().is_empty())
                    && (it.from..it.to).contains(&(card + 1))
                {
                    found.push((at(card + 1), what, text));
                }
            }
        }
        found.sort_by_key(|(place, ..)| *place);
        let labelled = found.into_iter().zip(LETTERS.chars());
        Labels(labelled.map(|((place, what, text), letter)| Label { letter, place, what, text }).collect())
    }
}
