//! Widths, wrapping, and escaping of invisible characters.

use std::borrow::Cow;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use pixir_core::text::clean::is_deceptive;
use pixir_core::text::strip::Stripper;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use unicode_segmentation::UnicodeSegmentation as _;

use crate::terminal::canvas::Canvas;
pub(crate) use crate::terminal::width::width;
pub(crate) use pixir_core::text::clean::visible;

/// No line begins with the first, and none ends with the second.
const CLOSING: &str = "、。，．・：；？！ー）］｝〕〉》」』】’”…,.:;?!)]}%";
const OPENING: &str = "（［｛〔〈《「『【‘“([{";

/// The text of a model or a tool, safe for the screen: without control characters but tabs and line ends.
pub(crate) fn plain(text: &str) -> Cow<'_, str> {
    if !text.chars().any(|c| (c.is_control() && c != '\n' && c != '\t') || is_deceptive(c)) {
        return Cow::Borrowed(text);
    }
    // A terminal sequence is removed as a whole, and not only its first character.
    let text = String::from_utf8_lossy(&Stripper::default().strip(text.as_bytes())).into_owned();
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\t' => shown.push(c),
            c if c.is_control() || is_deceptive(c) => {}
            c => shown.push(c),
        }
    }
    Cow::Owned(shown)
}

/// The start of a text that fits, with an ellipsis after a cut.
pub(crate) fn fit(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut cut = String::new();
    let mut used = 0;
    for grapheme in text.graphemes(true) {
        let wide = width(grapheme);
        if used + wide + 1 > columns {
            break;
        }
        cut.push_str(grapheme);
        used += wide;
    }
    if columns > 0 {
        cut.push('…');
    }
    cut
}

/// A path as shells write it: `~` stands for the user's home folder.
pub(crate) fn from_home(path: &Path, home: Option<&Path>) -> String {
    match home.and_then(|home| path.strip_prefix(home).ok()) {
        Some(below) if below.as_os_str().is_empty() => "~".to_owned(),
        Some(below) => format!("~/{}", below.display()),
        None => path.display().to_string(),
    }
}

/// A path that fits: its start and its name stay, and what is between is cut.
pub(crate) fn fit_path(path: &str, columns: usize) -> String {
    if width(path) <= columns {
        return path.to_owned();
    }
    let name = path.rfind('/').map_or(path, |at| &path[at..]);
    let start = columns.saturating_sub(width(name) + 1);
    if width(name) + 1 >= columns {
        // Of the name, the end tells most: it has the extension.
        let mut shown: Vec<&str> = Vec::new();
        let mut used = 1;
        for grapheme in path.graphemes(true).rev() {
            used += width(grapheme);
            if used > columns {
                break;
            }
            shown.push(grapheme);
        }
        shown.reverse();
        return if columns == 0 { String::new() } else { format!("…{}", shown.concat()) };
    }
    let head = fit(path, start + 1);
    format!("{}{name}", head.strip_suffix('…').map_or(head.clone(), |head| format!("{head}…")))
}

/// One row of the screen, and which of its columns are text.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Row {
    pub(crate) line: Line<'static>,
    /// Columns at the left that are not text: marks, bars, numbers.
    pub(crate) gutter: usize,
    /// The last columns of the gutter, which are copied with the text: the mark and indent of a list.
    pub(crate) lead: usize,
    /// Columns at the right that are not text.
    pub(crate) padding: usize,
    /// How the text continues.
    pub(crate) end: End,
    /// Columns that are links.
    pub(crate) links: Vec<(Range<usize>, Arc<str>)>,
    /// The `n`-th code block of the text begins here.
    pub(crate) block: Option<u16>,
}

/// What the source has at the end of a row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum End {
    /// A line end.
    #[default]
    Line,
    /// This many blanks.
    Blanks(u16),
    /// Nothing: the row ends inside of a long word.
    Nothing,
    /// The row is not text: a frame, a rule, a note.
    Skip,
}

impl Row {
    /// A row without text.
    pub(crate) fn mark(line: Line<'static>) -> Row {
        Row { line, end: End::Skip, ..Row::default() }
    }

    /// A row that is text as a whole.
    pub(crate) fn text(line: Line<'static>) -> Row {
        Row { line, ..Row::default() }
    }

    /// Draws the row into the first row of an area, with its links.
    pub(crate) fn draw(&self, canvas: &mut Canvas, area: Rect) {
        canvas.line(&self.line, area);
        let column = |at: usize| area.x.saturating_add(u16::try_from(at).unwrap_or(u16::MAX)).min(area.right());
        for (columns, url) in &self.links {
            canvas.link(area.y, column(columns.start)..column(columns.end), url);
        }
    }

    /// Moves the row to the right.
    pub(crate) fn indent(&mut self, by: usize) {
        if !self.line.spans.is_empty() {
            self.line.spans.insert(0, Span::raw(" ".repeat(by)));
            self.gutter += by;
            for (columns, _) in &mut self.links {
                *columns = columns.start + by..columns.end + by;
            }
        }
    }

    /// The column after the last one that is text.
    pub(crate) fn text_end(&self) -> usize {
        match self.end {
            // A row that continues in the next keeps its trailing blanks.
            End::Nothing => span_width(&self.line.spans).saturating_sub(self.padding),
            End::Line | End::Blanks(_) | End::Skip => width(self.line.to_string().trim_end()),
        }
    }

    /// The whole text of the row.
    pub(crate) fn plain_text(&self) -> String {
        self.between(self.gutter, self.text_end())
    }

    /// The text between two columns, as the source has it.
    pub(crate) fn between(&self, from: usize, to: usize) -> String {
        let from = from.max(self.gutter - self.lead);
        let (mut text, mut at) = (String::new(), 0);
        for grapheme in self.line.spans.iter().flat_map(|span| span.content.graphemes(true)) {
            if at >= to {
                break;
            }
            let wide = width(grapheme);
            if at >= from {
                text.push_str(grapheme);
            }
            at += wide;
        }
        text
    }
}

/// A style, and the number of a link; 0 is none.
pub(crate) type Ink = (Style, usize);

/// Wraps styled text at blanks, and words that are too long anywhere. No row is wider than `columns`.
///
/// No-break spaces hold words together, and are drawn as blanks.
/// `first` precedes the first row and `rest` the others; both count as columns.
pub(crate) fn wrap(spans: &[Span<'_>], columns: usize, first: &[Span<'static>], rest: &[Span<'static>]) -> Vec<Row> {
    wrap_linked(spans.iter().map(|span| (span.content.as_ref(), (span.style, 0))), &[], columns, first, rest)
}

/// Like [`wrap`], for text that cannot be selected.
pub(crate) fn wrap_lines(
    spans: &[Span<'_>],
    columns: usize,
    first: &[Span<'static>],
    rest: &[Span<'static>],
) -> Vec<Line<'static>> {
    lines_of(wrap(spans, columns, first, rest))
}

/// The lines of rows.
pub(crate) fn lines_of(rows: Vec<Row>) -> Vec<Line<'static>> {
    rows.into_iter().map(|row| row.line).collect()
}

/// Like [`wrap`], with links.
pub(crate) fn wrap_linked<'t>(
    pieces: impl Iterator<Item = (&'t str, Ink)>,
    urls: &[Arc<str>],
    columns: usize,
    first: &[Span<'static>],
    rest: &[Span<'static>],
) -> Vec<Row> {
    let prefix = span_width(first);
    let mut wrapper = Wrapper {
        columns: columns.max(1),
        rest,
        rest_width: span_width(rest),
        urls,
        rows: Vec::new(),
        row: Row { line: Line::from(first.to_vec()), gutter: prefix, ..Row::default() },
        used: prefix,
        word: Vec::new(),
        word_width: 0,
        last: None,
        space: None,
    };
    for (text, ink) in pieces {
        if text.is_ascii() {
            wrapper.ascii(text, ink);
            continue;
        }
        for grapheme in text.graphemes(true) {
            match grapheme {
                "\n" | "\r\n" => wrapper.newline(),
                " " => wrapper.blank(ink),
                _ => wrapper.push(grapheme, ink),
            }
        }
    }
    wrapper.finish()
}

pub(crate) fn span_width(spans: &[Span<'_>]) -> usize {
    spans.iter().map(|span| width(&span.content)).sum()
}

struct Wrapper<'a> {
    columns: usize,
    rest: &'a [Span<'static>],
    rest_width: usize,
    urls: &'a [Arc<str>],
    rows: Vec<Row>,
    row: Row,
    used: usize,
    word: Vec<(String, Ink)>,
    word_width: usize,
    /// The last grapheme of the word.
    last: Option<char>,
    /// Blanks that wait for the next word.
    space: Option<(usize, Ink)>,
}

impl Wrapper<'_> {
    /// Adds ASCII text, which is most text, word by word.
    fn ascii(&mut self, text: &str, ink: Ink) {
        let mut rest = text;
        while let Some(first) = rest.bytes().next() {
            let taken = match first {
                b' ' => {
                    self.blank(ink);
                    1
                }
                b'\n' => {
                    self.newline();
                    1
                }
                b'\r' if rest.starts_with("\r\n") => {
                    self.newline();
                    2
                }
                _ => {
                    let end = rest.bytes().skip(1).position(|byte| matches!(byte, b' ' | b'\n' | b'\r'));
                    let end = end.map_or(rest.len(), |at| at + 1);
                    self.push_word(&rest[..end], ink);
                    end
                }
            };
            rest = &rest[taken..];
        }
    }

    /// Adds graphemes without a blank between them.
    fn push_word(&mut self, word: &str, ink: Ink) {
        // If the character before is a wide one, the row may break before this word. `push` checks that.
        let (first, rest) = word.split_at(1);
        self.push(first, ink);
        let (wide, room) = (width(rest), self.room());
        match self.word.last_mut() {
            Some((text, last)) if *last == ink && self.word_width + wide <= room => {
                text.push_str(rest);
                self.word_width += wide;
                self.last = rest.chars().next_back().or(self.last);
            }
            _ => (0..rest.len()).for_each(|at| self.push(&rest[at..=at], ink)),
        }
    }

    fn push(&mut self, grapheme: &str, ink: Ink) {
        let wide = width(grapheme);
        let first = grapheme.chars().next();
        // A language without blanks wraps anywhere, but not before closing or after opening punctuation.
        let is_wide = |c: &char| *c >= '\u{1100}' && width(c.encode_utf8(&mut [0; 4])) == 2;
        if !self.word.is_empty()
            && (wide == 2 || self.last.is_some_and(|c| is_wide(&c)))
            && !first.is_some_and(|c| CLOSING.contains(c))
            && !self.last.is_some_and(|c| OPENING.contains(c))
        {
            self.end_word();
        }
        self.last = first;
        // A word that fits into no row is broken at the end of the row.
        if self.word_width + wide > self.room() {
            self.end_word();
            if self.used + wide > self.columns && self.used > self.row.gutter {
                self.break_row(End::Nothing);
            }
        }
        match self.word.last_mut() {
            Some((text, last)) if *last == ink => text.push_str(grapheme),
            _ => self.word.push((grapheme.to_owned(), ink)),
        }
        self.word_width += wide;
    }

    /// Columns of the current row after its prefix. A word that fits into the next row waits for it.
    fn room(&self) -> usize {
        let is_first = self.used == self.row.gutter && self.rows.is_empty();
        let prefix = if is_first { self.row.gutter.max(self.rest_width) } else { self.rest_width };
        self.columns.saturating_sub(prefix).max(1)
    }

    fn blank(&mut self, ink: Ink) {
        self.end_word();
        self.space = Some((self.space.map_or(1, |(n, _)| n + 1), ink));
    }

    fn end_word(&mut self) {
        if self.word.is_empty() {
            return;
        }
        let blanks = self.space.take();
        let gap = blanks.map_or(0, |(n, _)| n);
        if self.used + gap + self.word_width > self.columns && self.used > self.row.gutter {
            let blanks = u16::try_from(gap).unwrap_or(u16::MAX);
            self.break_row(if gap > 0 { End::Blanks(blanks) } else { End::Nothing });
        } else if let Some((n, ink)) = blanks {
            self.put(" ".repeat(n), ink);
        }
        for (text, ink) in std::mem::take(&mut self.word) {
            self.put(text, ink);
        }
        self.word_width = 0;
    }

    fn put(&mut self, text: String, (style, link): Ink) {
        let wide = width(&text);
        // A placed no-break space becomes a blank.
        let text = if text.contains('\u{a0}') { text.replace('\u{a0}', " ") } else { text };
        if let Some(url) = link.checked_sub(1).and_then(|at| self.urls.get(at)) {
            let columns = self.used..self.used + wide;
            match self.row.links.last_mut() {
                Some((known, to)) if known.end == columns.start && to == url => known.end = columns.end,
                _ => self.row.links.push((columns, Arc::clone(url))),
            }
        }
        self.used += wide;
        match self.row.line.spans.last_mut() {
            Some(last) if last.style == style => last.content.to_mut().push_str(&text),
            _ => self.row.line.spans.push(Span::styled(text, style)),
        }
    }

    fn break_row(&mut self, end: End) {
        let next = Row { line: Line::from(self.rest.to_vec()), gutter: self.rest_width, ..Row::default() };
        let mut row = std::mem::replace(&mut self.row, next);
        row.end = end;
        self.rows.push(row);
        self.used = self.rest_width;
        self.space = None;
    }

    fn newline(&mut self) {
        self.end_word();
        self.break_row(End::Line);
    }

    fn finish(mut self) -> Vec<Row> {
        self.end_word();
        self.rows.push(self.row);
        self.rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken builds: the home folder as a part of another name; a path elsewhere with a `~`.
    #[test]
    fn a_path_below_the_home_folder_begins_with_a_tilde() {
        let home = Some(Path::new("/home/ann"));
        let shown = |path: &str, home| from_home(Path::new(path), home);
        assert_eq!(shown("/home/ann/.config/pixir", home), "~/.config/pixir");
        assert_eq!([shown("/home/ann", home), shown("/home/anna/x", home)], ["~", "/home/anna/x"]);
        assert_eq!(shown("/home/ann/x", None), "/home/ann/x");
    }

    fn wrapped(text: &str, columns: usize) -> Vec<String> {
        wrap(&[Span::raw(text.to_owned())], columns, &[Span::raw("• ")], &[Span::raw("  ")])
            .iter()
            .map(|row| row.line.to_string())
            .collect()
    }

    proptest::proptest! {
        #[test]
        fn words_break_where_characters_by_themselves_do(text in "[a-c (\t\r\n漢」-]{0,60}", columns in 1_usize..20) {
            let rows = |pieces: &[&str]| {
                let pieces = pieces.iter().map(|text| (*text, (Style::new(), 0)));
                wrap_linked(pieces, &[], columns, &[Span::raw("• ")], &[Span::raw("  ")])
            };
            let by_character: Vec<&str> = text.graphemes(true).collect();
            let dump = |rows: Vec<Row>| rows.iter().map(|row| format!("{:?} {:?}", row.line.to_string(), row.end)).collect::<Vec<_>>();
            proptest::prop_assert_eq!(dump(rows(&[&text])), dump(rows(&by_character)));
            let by_word: Vec<&str> = text.split_inclusive(' ').collect();
            proptest::prop_assert_eq!(dump(rows(&by_word)), dump(rows(&by_character)));
        }
    }

    #[test]
    fn words_stay_whole_where_they_can_and_no_line_is_too_wide() {
        assert_eq!(wrapped("the quick brown fox", 12), ["• the quick", "  brown fox"]);
        assert_eq!(wrapped("abcdefghijklmnop", 8), ["• abcdef", "  ghijkl", "  mnop"]);
        assert_eq!(wrapped("漢字漢字漢字", 8), ["• 漢字漢", "  字漢字"]);
        assert_eq!(wrapped("53 漢字漢字漢字", 10), ["• 53 漢字", "  漢字漢字"], "no line is left half empty");
        assert_eq!(wrapped("漢字漢。字", 8), ["• 漢字", "  漢。字"], "no line begins with what ends a sentence");
        assert_eq!(wrapped("use漢字mode", 10), ["• use漢字", "  mode"]);
        assert_eq!(wrapped("a\nb", 8), ["• a", "  b"]);
        for columns in 1..40 {
            for line in wrapped("a 👨‍👩‍👧 family, wörds ①②③ and averyveryverylongwordindeed 漢字 end", columns)
            {
                assert!(width(&line) <= columns.max(4), "{columns}: {line}");
            }
        }
    }

    #[test]
    fn no_row_is_too_wide_whatever_stands_in_front_of_the_first() {
        for columns in 24..60 {
            for (before, word) in [("", 70), ("a ", 70), ("a ", columns - 4), ("", columns - 2), ("one two three ", 50)]
            {
                let text = format!("{before}{}", "w".repeat(word));
                let first = [Span::raw("run in the background ")];
                let rows = wrap(&[Span::raw(text.clone())], columns, &first, &[Span::raw("  ")]);
                assert!(rows.iter().all(|row| span_width(&row.line.spans) <= columns), "{columns}: {rows:?}");
                let shown: String = rows.iter().map(|row| row.between(0, columns)).collect();
                assert_eq!(shown.replace(' ', ""), text.replace(' ', ""), "{columns}");
            }
        }
    }

    #[test]
    fn what_is_hidden_is_shown_before_it_is_approved() {
        assert_eq!(visible("rm \u{202e}x\u{200b}\x1b[2Ky\tz"), "rm \\u{202e}x\\u{200b}\\u{1b}[2Ky\tz");
        assert_eq!(plain("a\x1b[31m\u{202e}b\x1b]0;t\x07\tc"), "ab\tc");
        assert_eq!(fit("漢字漢字", 5), "漢字…");
    }
}
