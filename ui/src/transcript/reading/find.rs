//! Search: in which cells a text occurs, and where in their rows.

use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use pixir_core::event::AgentEvent;
use pixir_core::{Entry, Fact};

use crate::remedy::Remedies;
use crate::render::context::Fold;
use crate::render::markdown;
use crate::render::split::Part;
use crate::render::text::{End, Row, width};
use crate::transcript::rows::workflow;
use crate::transcript::viewport::CellRow;
use crate::transcript::{Cell, Direction, Transcript};

/// One match: the `nth` in a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hit {
    pub(crate) cell: usize,
    pub(crate) nth: usize,
}

/// All matches, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Matches {
    /// The cells with matches, and the number of matches before each.
    cells: Vec<(usize, usize)>,
    len: usize,
}

impl Matches {
    fn push(&mut self, cell: usize, count: usize) {
        if count > 0 && self.cells.last().is_none_or(|(last, _)| *last != cell) {
            self.cells.push((cell, self.len));
        }
        self.len += count;
    }

    fn get(&self, at: usize) -> Option<Hit> {
        let next = self.cells.partition_point(|(_, before)| *before <= at);
        let (cell, before) = self.cells.get(next.checked_sub(1)?).filter(|_| at < self.len)?;
        Some(Hit { cell: *cell, nth: at - before })
    }

    /// The index of a match.
    pub(crate) fn position(&self, hit: Hit) -> Option<usize> {
        let (from, to) = (self.before(hit.cell), self.before(hit.cell + 1));
        (from..to).nth(hit.nth)
    }

    /// The number of matches before this cell.
    fn before(&self, cell: usize) -> usize {
        let next = self.cells.partition_point(|(known, _)| *known < cell);
        self.cells.get(next).map_or(self.len, |(_, before)| *before)
    }
}

/// A search in the whole conversation.
#[derive(Debug, Clone, Default)]
pub(crate) struct Search {
    pub(crate) text: String,
    /// The user is typing the text.
    pub(crate) is_typed: bool,
    /// Grows with every change of the text, so that late results are dropped.
    pub(crate) number: u64,
    pub(crate) matches: Option<Matches>,
    /// The index of the current match.
    pub(crate) at: Option<usize>,
    /// The search is repeated because the transcript has grown: the viewport must not move.
    pub(crate) is_again: bool,
    /// When the search was last repeated.
    pub(crate) searched_at: Option<Instant>,
    /// The transcript has grown while the search was running.
    pub(crate) is_stale: bool,
    /// Where the viewport was before the search. None followed the end.
    pub(crate) before: Option<CellRow>,
    /// The cell that the search has unfolded, and its fold before.
    pub(crate) opened: Option<(usize, Option<Fold>)>,
    /// Where the current match is in the rows of its cell, for these rows.
    shown: Option<(Rc<Vec<Row>>, Stretches)>,
}

impl Search {
    pub(crate) fn new(before: Option<CellRow>) -> Search {
        Search { is_typed: true, before, ..Search::default() }
    }

    /// Goes to the first match: from the reader's position forward, or back from the end.
    pub(crate) fn first(&mut self) -> Option<Hit> {
        match self.before {
            Some(place) => self.step(place.cell, Direction::Forward),
            None => self.step(usize::MAX, Direction::Back),
        }
    }

    /// Goes to the next match, around at the ends.
    pub(crate) fn step(&mut self, cell: usize, direction: Direction) -> Option<Hit> {
        let found = self.matches.as_ref()?;
        let last = found.len.checked_sub(1)?;
        let next = match (self.at, direction) {
            (Some(at), Direction::Forward) => {
                if at >= last {
                    0
                } else {
                    at + 1
                }
            }
            (Some(at), Direction::Back) => at.checked_sub(1).unwrap_or(last),
            (None, Direction::Forward) => Some(found.before(cell)).filter(|at| *at <= last).unwrap_or(0),
            (None, Direction::Back) => found.before(cell.saturating_add(1)).checked_sub(1).unwrap_or(last),
        };
        (self.at, self.shown) = (Some(next), None);
        self.hit()
    }

    /// The current match.
    pub(crate) fn hit(&self) -> Option<Hit> {
        self.matches.as_ref()?.get(self.at?)
    }

    /// The columns of the current match in the rows of its cell.
    pub(crate) fn stretches_in(&mut self, cell: usize, rows: &Rc<Vec<Row>>) -> &[Stretch] {
        let Some(hit) = self.hit().filter(|hit| hit.cell == cell) else { return &[] };
        if self.shown.as_ref().is_none_or(|(known, _)| !Rc::ptr_eq(known, rows)) {
            let stretches = Needle::new(&self.text).in_rows(rows, 0..rows.len()).into_iter().nth(hit.nth);
            self.shown = Some((Rc::clone(rows), stretches.unwrap_or_default()));
        }
        self.shown.as_ref().map_or(&[], |(_, stretches)| stretches)
    }

    /// The search has ended without a match.
    pub(crate) fn is_without_match(&self) -> bool {
        self.matches.as_ref().is_some_and(|matches| matches.len == 0)
    }

    /// `3 of 17`.
    pub(crate) fn result(&self) -> String {
        match (&self.matches, self.at) {
            (None, _) => String::new(),
            (Some(Matches { len: 0, .. }), _) => "no matches".into(),
            (Some(found), Some(at)) => format!("{} of {}", at + 1, found.len),
            (Some(found), None) => format!("{} matches", found.len),
        }
    }
}

/// A text to search.
#[derive(Debug, Clone)]
pub(crate) struct Hay {
    cell: usize,
    source: Source,
}

#[derive(Debug, Clone)]
enum Source {
    /// A recorded entry, shared; of a long message one part.
    Entry(Arc<Entry>, Option<Part>),
    /// A part of the streaming answer.
    Draft(Arc<str>, Part),
    /// A text that is in no Log.
    Text(String),
}

/// Collects all texts to search. Recorded texts are shared and not copied.
pub(crate) fn haystack(transcript: &Transcript, remedies: &Remedies) -> Vec<Hay> {
    let cells = transcript.cells();
    let draft: Arc<str> = transcript.draft().into();
    let mut hay = Vec::with_capacity(cells.len());
    for (at, cell) in cells.iter().enumerate() {
        let mut put = |source| hay.push(Hay { cell: at, source });
        match cell {
            Cell::Recorded(entry) => put(Source::Entry(Arc::clone(entry), None)),
            Cell::Part(entry, part) => put(Source::Entry(Arc::clone(entry), Some(Part::clone(part)))),
            Cell::Tool(tool) => tool.entries().for_each(|entry| put(Source::Entry(Arc::clone(entry), None))),
            Cell::Thoughts(all) => all.iter().for_each(|entry| put(Source::Entry(Arc::clone(entry), None))),
            Cell::Thinking(it) => put(Source::Text(it.text.clone())),
            Cell::Error(it) => put(Source::Text(format!("{}\n{}", it.message, remedies.of(it)))),
            Cell::Notice(_, text) => put(Source::Text(text.to_string())),
            Cell::Drafted(part) => put(Source::Draft(Arc::clone(&draft), Part::clone(part))),
            Cell::Tail => put(Source::Draft(Arc::clone(&draft), transcript.tail())),
            Cell::Workflow(card) => put(Source::Text(workflow::text(card))),
            Cell::Gone => {}
        }
    }
    hay
}

/// Finds all matches, oldest first. Case matters only if `text` contains an upper-case letter.
pub(crate) fn find(hay: &[Hay], text: &str) -> Matches {
    let needle = Needle::new(text);
    let mut found = Matches::default();
    for it in hay {
        let mut count = 0;
        match &it.source {
            Source::Entry(entry, part) => {
                each_text(&entry.fact, |text, kind| count += needle.count(text, kind, part.as_ref()))
            }
            Source::Draft(text, part) => count = needle.count(text, Kind::Markdown, Some(part)),
            Source::Text(text) => count = needle.count(text, Kind::Plain, None),
        }
        found.push(it.cell, count);
    }
    found
}

/// The format in which the transcript shows a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Plain,
    Markdown,
}

fn each_text(fact: &Fact, mut see: impl FnMut(&str, Kind)) {
    match fact {
        Fact::UserMessage(it) => see(&it.text, Kind::Plain),
        Fact::UserCommand(it) => see(&it.command, Kind::Plain),
        Fact::AssistantMessage(it) => see(&it.text, Kind::Markdown),
        Fact::Reasoning(it) => see(&it.text, Kind::Plain),
        Fact::ToolCall(it) => {
            let args = it.args.value();
            let values = args.as_object().into_iter().flat_map(|args| args.values());
            values.filter_map(|value| value.as_str()).for_each(|text| see(text, Kind::Plain));
        }
        Fact::ToolResult(it) => see(&it.output, Kind::Plain),
        Fact::HistoryCompaction(it) => see(&it.summary, Kind::Markdown),
        Fact::BranchSummary(it) => see(&it.summary, Kind::Markdown),
        Fact::PlanUpdated(it) => it.items.iter().for_each(|item| see(&item.step, Kind::Plain)),
        Fact::TurnEnded(it) => it.error.iter().for_each(|error| see(&error.message, Kind::Plain)),
        Fact::FilesRestored(it) => {
            let paths = it.changes.iter().map(|change| &change.path).chain(it.left.iter().map(|left| &left.path));
            paths.for_each(|path| see(path, Kind::Plain));
        }
        Fact::AgentEvent(event) if let AgentEvent::Reported { text, .. } = &**event => see(text, Kind::Plain),
        // A card of its own shows these.
        Fact::AgentEvent(_) | Fact::WorkflowEvent(_) => {}
        _ => fact.headline().iter().for_each(|it| see(&it.to_string(), Kind::Plain)),
    }
}

/// A range of columns in a row.
pub(crate) type Stretch = (usize, Range<usize>);
/// The place of one match: several rows if a line wraps inside it.
pub(crate) type Stretches = Vec<Stretch>;

/// The text to search for.
pub(crate) struct Needle {
    text: String,
    /// Its longest word.
    word: String,
    folds_case: bool,
}

impl Needle {
    pub(crate) fn new(text: &str) -> Needle {
        let words = text.split(|c: char| !c.is_alphanumeric());
        let word = words.max_by_key(|word| word.len()).unwrap_or_default().to_owned();
        Needle { text: text.to_owned(), word, folds_case: !text.chars().any(char::is_uppercase) }
    }

    /// The number of matches in a text as it is shown, or in a part of it.
    fn count(&self, text: &str, kind: Kind, part: Option<&Part>) -> usize {
        let of = part.map_or(text, |part| text.get(part.range.clone()).unwrap_or_default());
        let head = part.and_then(|part| text.get(part.table.clone()?)).unwrap_or_default();
        if kind == Kind::Plain {
            return self.places(of).count();
        }
        // Matches are counted in the text without Markdown marks. Most texts do not contain the word and need no
        // parsing.
        let may_be = |text: &str| places(&self.word, self.folds_case, text).next().is_some();
        if !self.word.is_empty() && !may_be(of) && !may_be(head) {
            return 0;
        }
        let before = part.and_then(|part| text.get(part.fence?..part.range.start)).unwrap_or_default();
        let words =
            if head.is_empty() { markdown::words(of, before) } else { markdown::words(&format!("{head}{of}"), "") };
        self.places(&words).count()
    }

    fn places<'t>(&'t self, text: &'t str) -> Box<dyn Iterator<Item = Range<usize>> + 't> {
        places(&self.text, self.folds_case, text)
    }

    /// The matches in some of the rows, also where a line wraps inside a match.
    pub(crate) fn in_rows(&self, rows: &[Row], in_sight: Range<usize>) -> Vec<Stretches> {
        let mut wanted = in_sight.clone();
        // A match that begins in a row above is visible as well.
        let goes_on = |at: usize| matches!(rows[at].end, End::Blanks(_) | End::Nothing);
        let mut before = 0;
        while wanted.start > 0 && before < self.text.len() && goes_on(wanted.start - 1) {
            wanted.start -= 1;
            before += rows[wanted.start].line.spans.iter().map(|span| span.content.len()).sum::<usize>();
        }
        let mut found = Vec::new();
        let mut line = Broken::default();
        for at in wanted.clone() {
            line.push(at, &rows[at]);
            // Up to the end of a line that wraps below.
            let is_last = at + 1 == wanted.end;
            let mut next = at + 1;
            while is_last && next < rows.len() && goes_on(next - 1) && next - at <= self.text.len() {
                line.push(next, &rows[next]);
                next += 1;
            }
            if is_last || !goes_on(at) {
                found.extend(self.places(&line.text).map(|place| line.stretches(&place)));
                line = Broken::default();
            }
        }
        found.retain(|stretches: &Stretches| stretches.iter().any(|(row, _)| in_sight.contains(row)));
        found
    }
}

/// The byte ranges of all matches, without overlaps.
fn places<'t>(wanted: &'t str, folds_case: bool, text: &'t str) -> Box<dyn Iterator<Item = Range<usize>> + 't> {
    let (needle, hay) = (wanted.as_bytes(), text.as_bytes());
    if needle.is_empty() {
        return Box::new(std::iter::empty());
    }
    let whole = |at: usize| at..at + needle.len();
    if !folds_case {
        return Box::new(memchr::memmem::find_iter(hay, needle).map(whole));
    }
    let mut free_from = 0;
    if !wanted.is_ascii() {
        let starts = text.char_indices();
        return Box::new(starts.filter_map(move |(at, _)| {
            let length = (at >= free_from).then(|| length_in(&text[at..], wanted)).flatten()?;
            free_from = at + length;
            Some(at..free_from)
        }));
    }
    let first = needle[0].to_ascii_lowercase();
    let starts = memchr::memchr2_iter(first, first.to_ascii_uppercase(), hay);
    Box::new(starts.map(whole).filter(move |place| {
        let fits =
            place.start >= free_from && hay.get(place.clone()).is_some_and(|there| there.eq_ignore_ascii_case(needle));
        if fits {
            free_from = place.end;
        }
        fits
    }))
}

/// The bytes that the needle takes in `text`, whose case can differ. None without a match.
fn length_in(text: &str, needle: &str) -> Option<usize> {
    let mut wanted = needle.chars();
    for (at, c) in text.char_indices() {
        let mut lower = c.to_lowercase();
        if wanted.as_str().is_empty() {
            return Some(at);
        }
        if !lower.all(|c| wanted.next() == Some(c)) {
            return None;
        }
    }
    wanted.as_str().is_empty().then_some(text.len())
}

/// A line that is wrapped into rows.
#[derive(Default)]
struct Broken {
    text: String,
    /// For each row: its part of the text, its number, and the columns before the text.
    rows: Vec<(Range<usize>, usize, usize)>,
}

impl Broken {
    fn push(&mut self, at: usize, row: &Row) {
        let (gutter, text) =
            if row.end == End::Skip { (0, row.line.to_string()) } else { (row.gutter, row.plain_text()) };
        let from = self.text.len();
        self.text.push_str(&text);
        self.rows.push((from..self.text.len(), at, gutter));
        if let End::Blanks(n) = row.end {
            self.text.extend(std::iter::repeat_n(' ', usize::from(n)));
        }
    }

    fn stretches(&self, place: &Range<usize>) -> Stretches {
        let in_row = |(part, at, gutter): &(Range<usize>, usize, usize)| {
            let (begin, end) = (place.start.max(part.start), place.end.min(part.end));
            let columns = |to: usize| gutter + width(&self.text[part.start..to]);
            (begin < end).then(|| (*at, columns(begin)..columns(end)))
        };
        self.rows.iter().filter_map(in_row).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::text::wrap;
    use ratatui::text::Span;

    #[test]
    fn case_matters_only_where_it_was_typed() {
        let count = |needle, hay| Needle::new(needle).count(hay, Kind::Plain, None);
        assert_eq!(count("error", "Error: an ERROR, errors"), 3);
        assert_eq!(count("Error", "Error: an ERROR, errors"), 1);
        assert_eq!(count("ää", "Ää ääää"), 3, "in every language");
        assert_eq!(count("straße", "Straße, STRASSE"), 1);
        assert_eq!(count("aa", "aaaa aAa"), 3);
        assert_eq!(count("", "x"), 0);
    }

    #[test]
    fn however_often_it_stands_there_every_place_is_gone_to_and_the_nearest_first() {
        let mut found = Matches::default();
        for (cell, count) in [(2, 3), (2, 1), (4, 0), (5, 100_000), (9, 2)] {
            found.push(cell, count);
        }
        for at in [0, 3, 4, 100_003, 100_005] {
            assert_eq!(found.position(found.get(at).expect("a place")), Some(at));
        }
        assert_eq!((found.get(4), found.get(100_006)), (Some(Hit { cell: 5, nth: 0 }), None));
        assert_eq!(found.position(Hit { cell: 9, nth: 2 }), None);
        let first = |cell: Option<usize>| {
            let before = cell.map(|cell| CellRow { cell, row: 0 });
            let mut search = Search { matches: Some(found.clone()), before, ..Search::default() };
            (search.first().expect("a place"), search.result())
        };
        assert_eq!(first(None), (Hit { cell: 9, nth: 1 }, "100006 of 100006".into()), "at the end, the last");
        assert_eq!(first(Some(3)), (Hit { cell: 5, nth: 0 }, "5 of 100006".into()));
        assert_eq!(first(Some(10)), (Hit { cell: 2, nth: 0 }, "1 of 100006".into()), "around");
    }

    #[test]
    fn what_is_read_is_found_whatever_marks_stand_in_between() {
        let count = |needle, hay| Needle::new(needle).count(hay, Kind::Markdown, None);
        assert_eq!(count("use the foo function", "please use the `foo`\nfunction"), 1);
        assert_eq!(count("**", "a **b**, `**c`"), 1, "marks are no text, but in code");
        assert_eq!(count("let a; let", "```\nlet a;\nlet b;\n```"), 0, "a line end in code is one");
        assert_eq!(count("foo bar", "- foo\n  bar\n- foo"), 1);
        assert_eq!(count("evil", "[a](https://evil.example) [https://evil.example](https://evil.example)"), 2);
        assert_eq!(count("a b", "ab a\tb"), 0);
    }

    #[test]
    fn a_place_is_found_also_where_the_line_was_broken_in_it() {
        let rows = wrap(&[Span::raw("one two three four, Two three")], 9, &[Span::raw("• ")], &[Span::raw("  ")]);
        let shown: Vec<String> = rows.iter().map(|row| row.line.to_string()).collect();
        assert_eq!(shown, ["• one two", "  three", "  four,", "  Two", "  three"]);
        let find = |text: &str, wanted| Needle::new(text).in_rows(&rows, wanted);
        let (first, second) = (vec![(0, 6..9), (1, 2..7)], vec![(3, 2..5), (4, 2..7)]);
        assert_eq!(find("two three", 0..5), [first.clone(), second.clone()]);
        assert_eq!(find("two three", 1..2), [first], "of a part that is in sight");
        assert_eq!(find("two three", 3..4), [second], "and on below it");
        assert_eq!(find("two three", 2..3), Vec::<Stretches>::new());
        assert_eq!(find("•", 0..5), Vec::<Stretches>::new(), "marks are no text");
    }
}
