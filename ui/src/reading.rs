//! What a reader does with the transcript besides scrolling: find, select, put letters on what can be copied.

use std::ops::Range;
use std::sync::Arc;

use pixir_core::event::{Entry, Fact};

use crate::render::markdown;
use crate::render::text::{End, Row, width};
use crate::state::{Focus, State};
use crate::transcript::{Cell, Fold};
use crate::viewport::Place;

/// The most that is found; who gets so many looks for something else.
const MAX_HITS: usize = 10_000;
/// Letters in the order in which they are easy to reach; none that does something else while they are shown.
const LETTERS: &str = "asdfghjklqwertuiopzxcvbnm";

// ─── Find ───

/// A place where it was found: the n-th in a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hit {
    pub(crate) cell: usize,
    pub(crate) nth: usize,
}

/// A search over the whole conversation.
#[derive(Debug, Clone, Default)]
pub(crate) struct Search {
    pub(crate) text: String,
    /// Keys are the text that is searched for.
    pub(crate) is_typed: bool,
    /// Grows with every change of the text; an answer to another one is thrown away.
    pub(crate) number: u64,
    pub(crate) found: Option<Vec<Hit>>,
    /// Which of them was shown last.
    pub(crate) at: Option<usize>,
    /// It is looked for again because more was said: nobody is taken anywhere.
    pub(crate) is_again: bool,
    /// Where the reader was before, and what had the keys.
    pub(crate) before: Option<Place>,
    pub(crate) focus: Focus,
}

impl Search {
    pub(crate) fn new(before: Option<Place>, focus: Focus) -> Search {
        Search { is_typed: true, before, focus, ..Search::default() }
    }

    /// The first place from where the reader is: on from there, or back from the end.
    pub(crate) fn first(&mut self) -> Option<Hit> {
        match self.before {
            Some(place) => self.step(place.cell, true),
            None => self.step(usize::MAX, false),
        }
    }

    /// The next place, or the one before; around at the ends.
    pub(crate) fn step(&mut self, cell: usize, forward: bool) -> Option<Hit> {
        let found = self.found.as_ref().filter(|found| !found.is_empty())?;
        let last = found.len() - 1;
        let next = match (self.at, forward) {
            (Some(at), true) => {
                if at >= last {
                    0
                } else {
                    at + 1
                }
            }
            (Some(at), false) => at.checked_sub(1).unwrap_or(last),
            (None, true) => found.iter().position(|hit| hit.cell >= cell).unwrap_or(0),
            (None, false) => found.iter().rposition(|hit| hit.cell <= cell).unwrap_or(last),
        };
        self.at = Some(next);
        found.get(next).copied()
    }

    /// `3 of 17`.
    pub(crate) fn told(&self) -> String {
        match (&self.found, self.at) {
            (None, _) => String::new(),
            (Some(found), _) if found.is_empty() => "not found".into(),
            (Some(found), Some(at)) => format!("{} of {}", at + 1, found.len()),
            (Some(found), None) => format!("{} found", found.len()),
        }
    }
}

/// Something that is searched.
#[derive(Debug, Clone)]
pub(crate) struct Hay {
    cell: usize,
    source: Source,
}

#[derive(Debug, Clone)]
enum Source {
    /// What is recorded, by reference; of a long message a part.
    Entry(Arc<Entry>, Option<Range<usize>>),
    /// What is in no Log.
    Text(String),
}

/// Everything that is searched; recorded texts are shared, not copied.
pub(crate) fn haystack(cells: &[Cell]) -> Vec<Hay> {
    let mut hay = Vec::with_capacity(cells.len());
    for (at, cell) in cells.iter().enumerate() {
        let mut put = |source| hay.push(Hay { cell: at, source });
        match cell {
            Cell::Recorded(entry) => put(Source::Entry(Arc::clone(entry), None)),
            Cell::Part(entry, part) => put(Source::Entry(Arc::clone(entry), Some(part.range.clone()))),
            Cell::Tool(tool) => tool.entries().for_each(|entry| put(Source::Entry(Arc::clone(entry), None))),
            Cell::Thoughts(all) => all.iter().for_each(|entry| put(Source::Entry(Arc::clone(entry), None))),
            Cell::Thinking(it) => put(Source::Text(it.text.clone())),
            Cell::Error(it) => put(Source::Text(format!("{}\n{}", it.message, it.remediation))),
            Cell::Notice(_, text) => put(Source::Text(text.to_string())),
            // It is found when it is whole.
            Cell::Drafted(_) | Cell::Tail | Cell::Gone => {}
        }
    }
    hay
}

/// Every place where it stands, oldest first; upper and lower case differ only where the text has upper case.
pub(crate) fn find(hay: &[Hay], text: &str) -> Vec<Hit> {
    let needle = Needle::new(text);
    let mut hits: Vec<Hit> = Vec::new();
    for it in hay {
        let mut count = 0;
        match &it.source {
            Source::Entry(entry, part) => each_text(&entry.fact, |text| {
                let text = part.clone().map_or(text, |part| text.get(part).unwrap_or_default());
                count += needle.count(text);
            }),
            Source::Text(text) => count = needle.count(text),
        }
        let from = hits.iter().rev().take_while(|hit| hit.cell == it.cell).count();
        hits.extend((from..from + count).map(|nth| Hit { cell: it.cell, nth }));
        if hits.len() >= MAX_HITS {
            break;
        }
    }
    hits
}

fn each_text(fact: &Fact, mut see: impl FnMut(&str)) {
    match fact {
        Fact::UserMessage(it) => see(&it.text),
        Fact::UserCommand(it) => see(&it.command),
        Fact::AssistantMessage(it) => see(&it.text),
        Fact::Reasoning(it) => see(&it.text),
        Fact::ToolCall(it) => {
            for value in it.args.as_object().into_iter().flat_map(|args| args.values()) {
                value.as_str().into_iter().for_each(&mut see);
            }
        }
        Fact::ToolResult(it) => see(&it.output),
        Fact::HistoryCompaction(it) => see(&it.summary),
        Fact::BranchSummary(it) => see(&it.summary),
        Fact::PlanUpdated(it) => it.items.iter().for_each(|item| see(&item.step)),
        Fact::TurnEnded(it) => it.error.iter().for_each(|error| see(&error.message)),
        _ => {}
    }
}

/// A text that is searched for.
pub(crate) struct Needle {
    text: String,
    folds_case: bool,
}

impl Needle {
    pub(crate) fn new(text: &str) -> Needle {
        Needle { text: text.to_owned(), folds_case: !text.chars().any(char::is_uppercase) }
    }

    fn count(&self, text: &str) -> usize {
        self.places(text).count()
    }

    /// Where it begins, in bytes; places do not overlap.
    pub(crate) fn places<'t>(&'t self, text: &'t str) -> Box<dyn Iterator<Item = usize> + 't> {
        let (needle, hay) = (self.text.as_bytes(), text.as_bytes());
        if needle.is_empty() {
            return Box::new(std::iter::empty());
        }
        if !self.folds_case || !self.text.is_ascii() {
            return Box::new(memchr::memmem::find_iter(hay, needle));
        }
        let first = needle[0].to_ascii_lowercase();
        let mut free_from = 0;
        let starts = memchr::memchr2_iter(first, first.to_ascii_uppercase(), hay);
        Box::new(starts.filter(move |at| {
            let fits = *at >= free_from
                && hay.get(*at..*at + needle.len()).is_some_and(|there| there.eq_ignore_ascii_case(needle));
            if fits {
                free_from = at + needle.len();
            }
            fits
        }))
    }

    pub(crate) fn len(&self) -> usize {
        self.text.len()
    }
}

// ─── Select ───

/// By how much a selection grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Character,
    Word,
    Row,
}

/// A place and a column of it.
type Spot = (Place, usize);

/// What was selected with the mouse.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Selection {
    from: Spot,
    to: Spot,
    unit: Unit,
}

impl Selection {
    /// One click begins with a character, two with a word, three with a row.
    pub(crate) fn new(place: Place, column: usize, clicks: u8) -> Selection {
        let unit = match clicks {
            0 | 1 => Unit::Character,
            2 => Unit::Word,
            _ => Unit::Row,
        };
        Selection { from: (place, column), to: (place, column), unit }
    }

    pub(crate) fn drag_to(&mut self, place: Place, column: usize) {
        self.to = (place, column);
    }

    /// It is no more than a click.
    pub(crate) fn is_click(&self) -> bool {
        self.unit == Unit::Character && self.from == self.to
    }

    pub(crate) fn ends(&self) -> (Spot, Spot) {
        if self.from <= self.to { (self.from, self.to) } else { (self.to, self.from) }
    }

    /// The columns of a row that are selected.
    pub(crate) fn columns(&self, place: Place, row: &Row) -> Option<Range<usize>> {
        let ((first, left), (last, right)) = self.ends();
        if place < first || place > last || row.end == End::Skip {
            return None;
        }
        let text: String = row.line.spans.iter().map(|span| span.content.as_ref()).collect();
        // Where a row goes on in the next without anything between, its last blanks are text.
        let end = match row.end {
            End::Nothing => width(&text).saturating_sub(row.padding),
            End::Line | End::Blanks(_) | End::Skip => width(text.trim_end()),
        };
        let mut columns = match (place == first, place == last) {
            (true, true) => left..right + 1,
            (true, false) => left..end,
            (false, true) => 0..right + 1,
            (false, false) => 0..end,
        };
        match self.unit {
            Unit::Character => {}
            Unit::Row => columns = 0..end,
            Unit::Word => {
                if place == first {
                    columns.start = word_at(&text, columns.start).start;
                }
                if place == last {
                    columns.end = word_at(&text, columns.end.saturating_sub(1)).end;
                }
            }
        }
        let columns = columns.start.max(row.gutter)..columns.end.min(end.max(row.gutter));
        (columns.start < columns.end).then_some(columns)
    }
}

/// The columns of the word that is there.
fn word_at(text: &str, column: usize) -> Range<usize> {
    use unicode_segmentation::UnicodeSegmentation as _;
    let is_word =
        |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '~' | ':' | '@' | '%' | '+' | '#');
    let (mut at, mut begin, mut end) = (0, None, column + 1);
    for grapheme in text.graphemes(true) {
        let wide = width(grapheme);
        let in_word = grapheme.chars().next().is_some_and(is_word);
        if at <= column {
            begin = if in_word { Some(begin.unwrap_or(at)) } else { None };
            if at + wide > column && !in_word {
                return column..column + 1;
            }
        }
        if at > column && !in_word {
            break;
        }
        at += wide;
        end = at;
    }
    begin.unwrap_or(column)..end.max(column + 1)
}

impl State {
    /// The text of a selection, as it stands in the source: no marks, no soft line ends.
    pub(crate) fn selected_text(&mut self, selection: &Selection) -> String {
        let ((first, _), (last, _)) = selection.ends();
        let mut text = String::new();
        let mut joint = String::new();
        for cell in first.cell..=last.cell.min(self.transcript.len().saturating_sub(1)) {
            let rows = self.rows_of(cell);
            for (at, row) in rows.iter().enumerate() {
                let place = Place { cell, row: at };
                if place < first || place > last || row.end == End::Skip {
                    continue;
                }
                text.push_str(&joint);
                if let Some(columns) = selection.columns(place, row) {
                    text.push_str(&row.between(columns.start, columns.end));
                }
                joint = match row.end {
                    End::Line | End::Skip => "\n".to_owned(),
                    End::Blanks(n) => " ".repeat(usize::from(n)),
                    End::Nothing => String::new(),
                };
            }
        }
        text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
    }

    /// The row of a cell in which a hit is; what is folded around it opens.
    pub(crate) fn row_of_hit(&mut self, text: &str, hit: Hit) -> usize {
        let needle = Needle::new(text);
        let find = |rows: &[Row]| {
            let mut seen = 0;
            let mut last = None;
            for (at, row) in rows.iter().enumerate() {
                let here = needle.places(&row.line.to_string()).count();
                if here > 0 {
                    last = Some(at);
                }
                seen += here;
                if seen > hit.nth {
                    return (Some(at), true);
                }
            }
            (last, false)
        };
        let (row, exact) = find(&self.rows_of(hit.cell));
        if exact {
            return row.unwrap_or(0);
        }
        if self.transcript.fold_of(hit.cell) != Some(Fold::Full) {
            self.transcript.set_fold(hit.cell, Some(Fold::Full));
        }
        find(&self.rows_of(hit.cell)).0.or(row).unwrap_or(0)
    }
}

// ─── Letters ───

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_what_a_double_click_means() {
        let word = |text: &str, column| {
            let columns = word_at(text, column);
            text.get(columns).unwrap_or_default().to_owned()
        };
        assert_eq!(word("see src/main.rs:12 now", 8), "src/main.rs:12");
        assert_eq!(word("see src/main.rs:12 now", 0), "see");
        assert_eq!(word("a (b) c", 2), "(");
        assert_eq!(word_at("漢字 x", 1), 0..4);
    }

    #[test]
    fn case_matters_only_where_it_was_typed() {
        let count = |needle, hay| Needle::new(needle).count(hay);
        assert_eq!(count("error", "Error: an ERROR, errors"), 3);
        assert_eq!(count("Error", "Error: an ERROR, errors"), 1);
        assert_eq!(count("ää", "Ää ääää"), 2);
        assert_eq!(count("aa", "aaaa aAa"), 3);
        assert_eq!(count("", "x"), 0);
    }
}
