//! Diffs as rows: numbers, marks, syntax colours on tinted ground, and a stronger tint on the words that changed. The
//! diff, approvals and the transcript draw their lines here.

use std::ops::Range;

use pixir_core::diff::{Tag, words};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

use super::context::RenderContext;
use super::highlight::{Coloured, Kind};
use super::text::{Row, lines_of, span_width, visible, wrap};
use crate::theme::Theme;

mod beside; // two versions beside each other
mod unified; // the text of a unified diff, read

pub(crate) use beside::{SIDE_BY_SIDE, absent, beside};
pub(crate) use unified::language_of;
use unified::{Item, Unified};

/// The narrowest column of line numbers.
const DIGITS: usize = 5;

/// How a line that is wider than its room goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flow {
    /// In the next row.
    Wrap,
    /// Beyond the edge; so many columns at its start are not shown.
    Scroll(usize),
}

/// A line with everything that its look depends on.
#[derive(Debug, Clone, Default)]
pub(crate) struct DiffLine<'a> {
    pub(crate) tag: Option<Tag>,
    /// Its number, from 1.
    pub(crate) number: Option<u32>,
    /// Without the line end.
    pub(crate) text: &'a str,
    /// The parts that changed, in bytes.
    pub(crate) words: Vec<Range<usize>>,
    pub(crate) colours: Option<&'a [(Kind, String)]>,
    /// It only stands elsewhere, so it is kept in the background.
    pub(crate) is_moved: bool,
}

/// The lines of a unified diff, with syntax colours as far as they have arrived. Its file header is left out, because
/// the caller shows the path.
pub(crate) fn lines(diff: &str, context: &RenderContext<'_>) -> Vec<Line<'static>> {
    lines_of(first_rows(diff, context, usize::MAX).0)
}

/// At most `most` of its rows, and the number of lines that are left out.
pub(crate) fn first_rows(diff: &str, context: &RenderContext<'_>, most: usize) -> (Vec<Row>, usize) {
    let (columns, theme) = (context.columns, context.theme);
    let it = Unified::read(diff);
    let mut rows: Vec<Row> = Vec::new();
    let mut hunk: Option<HunkColours> = None;
    let mut shown = 0;
    for (at, item) in it.items.iter().enumerate() {
        if rows.len() >= most {
            break;
        }
        shown = at + 1;
        match item {
            Item::Gap => {
                hunk = HunkColours::of(&it, at + 1, most - rows.len(), context);
                if !rows.is_empty() {
                    rows.push(Row::mark(Line::styled("     ⋯".to_owned(), theme.dim())));
                }
            }
            Item::Note(text) => {
                let (note, margin) = ([Span::styled(visible(text), theme.dim())], [Span::raw(" ".repeat(DIGITS + 1))]);
                // A note in brackets belongs to what the user decides about, so no part of it is beyond the edge.
                if text.starts_with('[') {
                    rows.extend(wrap(&note, columns, &margin, &margin).into_iter().map(|row| Row::mark(row.line)));
                } else {
                    rows.push(Row::mark(Line::from_iter(margin.into_iter().chain(note))));
                }
            }
            Item::Line { tag, number, text, .. } => {
                let mate = it.mate(at);
                let changed = mate.and_then(|mate| match tag {
                    Tag::Removed => words(text, mate).map(|it| it.old),
                    Tag::Added => words(mate, text).map(|it| it.new),
                    Tag::Same => None,
                });
                let line = DiffLine {
                    tag: Some(*tag),
                    number: Some(*number),
                    text,
                    words: changed.unwrap_or_default(),
                    colours: hunk.as_ref().and_then(|hunk| hunk.line(at)),
                    is_moved: false,
                };
                rows.extend(rows_of(&line, columns, DIGITS, Flow::Wrap, theme));
            }
        }
    }
    let more = it.items[shown..].iter().filter(|item| !matches!(item, Item::Gap)).count();
    // Showing one more line takes no more room than the note.
    if more == 1 && most < usize::MAX { first_rows(diff, context, most + 2) } else { (rows, more) }
}

/// The colours of one hunk: its old lines are one text, and its new lines another.
struct HunkColours {
    /// For each item from the first on, its line in the old or the new text.
    first: usize,
    places: Vec<(bool, usize)>,
    old: Option<Coloured>,
    new: Option<Coloured>,
}

impl HunkColours {
    fn of(it: &Unified<'_>, first: usize, most: usize, context: &RenderContext<'_>) -> Option<HunkColours> {
        if it.language.is_empty() {
            return None;
        }
        let (mut old, mut new, mut places) = (String::new(), String::new(), Vec::new());
        let mut counts = (0, 0);
        for item in it.items[first..].iter().take(most) {
            let Item::Line { tag, text, .. } = item else { break };
            places.push(if *tag == Tag::Removed { (true, counts.0) } else { (false, counts.1) });
            if *tag != Tag::Added {
                old.extend([*text, "\n"]);
                counts.0 += 1;
            }
            if *tag != Tag::Removed {
                new.extend([*text, "\n"]);
                counts.1 += 1;
            }
        }
        let has_removed = places.iter().any(|(is_old, _)| *is_old);
        let colours = |code: &str| context.highlighter.colours(it.language, "", code);
        let old = if has_removed { colours(&old) } else { None };
        Some(HunkColours { first, places, old, new: colours(&new) })
    }

    fn line(&self, at: usize) -> Option<&[(Kind, String)]> {
        let (is_old, line) = *self.places.get(at.checked_sub(self.first)?)?;
        let text = if is_old { &self.old } else { &self.new };
        text.as_ref()?.get(line).map(Vec::as_slice)
    }
}

/// The rows of one line: a number of so many digits, a mark, and the text. Its ground is one bar up to the last column.
pub(crate) fn rows_of(line: &DiffLine<'_>, columns: usize, digits: usize, flow: Flow, theme: &Theme) -> Vec<Row> {
    let moved = Look { fg: theme.dim, panel: Color::Reset, word: Color::Reset };
    let (mark, plain) = match line.tag {
        Some(Tag::Added) if line.is_moved => ("+", moved),
        Some(Tag::Removed) if line.is_moved => ("-", moved),
        Some(Tag::Added) => ("+", Look { fg: theme.added, panel: theme.added_panel, word: theme.added_word }),
        Some(Tag::Removed) => ("-", Look { fg: theme.removed, panel: theme.removed_panel, word: theme.removed_word }),
        Some(Tag::Same) | None => (" ", Look { fg: theme.text, panel: Color::Reset, word: Color::Reset }),
    };
    let ground = if plain.panel == Color::Reset { Style::new() } else { Style::new().bg(plain.panel) };
    let number = line.number.map_or_else(|| " ".repeat(digits + 1), |number| format!("{number:>digits$} "));
    let marked = ground.fg(plain.fg);
    let first = [Span::styled(number, theme.dim()), Span::styled(format!("{mark} "), marked)];
    let more = [Span::styled(" ".repeat(digits + 1), theme.dim()), Span::styled("  ".to_owned(), marked)];
    let spans = plain.spans(line, ground, theme);
    let mut rows = match flow {
        Flow::Wrap => wrap(&spans, columns, &first, &more),
        Flow::Scroll(left) => {
            let gutter = span_width(&first);
            let room = columns.saturating_sub(gutter);
            // A wide character may begin in the last column.
            let mut text = cut(spans, left, room + 2);
            if span_width(&text) > room {
                text = cut(text, 0, room.saturating_sub(1));
                text.push(Span::styled("›", ground.fg(theme.dim)));
            }
            let line = Line::from(first.into_iter().chain(text).collect::<Vec<_>>());
            vec![Row { line, gutter, ..Row::default() }]
        }
    };
    for row in &mut rows {
        let used = span_width(&row.line.spans);
        if ground.bg.is_some() && used < columns {
            row.line.spans.push(Span::styled(" ".repeat(columns - used), ground));
        }
    }
    rows
}

/// The colours of a kind of line.
struct Look {
    fg: Color,
    panel: Color,
    word: Color,
}

impl Look {
    fn spans(&self, line: &DiffLine<'_>, ground: Style, theme: &Theme) -> Vec<Span<'static>> {
        // Without a ground of its own, a changed line keeps the colour of its mark.
        let is_tinted = self.panel != Color::Reset;
        let is_changed = matches!(line.tag, Some(Tag::Added | Tag::Removed));
        let base = ground.fg(if is_changed && !is_tinted { self.fg } else { theme.text });
        let strong = match (is_changed, self.word) {
            (false, _) => base,
            (true, Color::Reset) => base.add_modifier(Modifier::BOLD | Modifier::UNDERLINED),
            (true, word) => base.fg(theme.strong).bg(word),
        };
        let pieces = line.colours.filter(|pieces| {
            // Colours of another text would shift every character.
            (is_tinted || !is_changed) && pieces.iter().map(|(_, text)| text.len()).sum::<usize>() == line.text.len()
        });
        let whole = [(Kind::Plain, line.text.to_owned())];
        let mut spans: Vec<Span<'static>> = Vec::new();
        let mut at = 0;
        for (kind, text) in pieces.unwrap_or(&whole) {
            let style = if pieces.is_some() { base.fg(kind.colour(theme)) } else { base };
            let end = at + text.len();
            let mut from = at;
            for word in line.words.iter().filter(|word| word.start < end && word.end > at) {
                let (start, stop) = (word.start.max(at), word.end.min(end));
                push(&mut spans, line.text.get(from..start), style);
                push(&mut spans, line.text.get(start..stop), strong);
                from = stop;
            }
            push(&mut spans, line.text.get(from..end), style);
            at = end;
        }
        if let Some(first) = spans.first_mut() {
            first.content = keep_indent(&first.content).into();
        }
        spans
    }
}

fn push(spans: &mut Vec<Span<'static>>, text: Option<&str>, style: Style) {
    if let Some(text) = text.filter(|text| !text.is_empty()) {
        spans.push(Span::styled(visible(text), style));
    }
}

/// Wrapping would take leading blanks for a break between words.
fn keep_indent(text: &str) -> String {
    let body = text.trim_start_matches(' ');
    format!("{}{body}", "\u{a0}".repeat(text.len() - body.len()))
}

/// The columns of spans from `left` on, as many as there is room for.
pub(crate) fn cut(spans: Vec<Span<'static>>, left: usize, room: usize) -> Vec<Span<'static>> {
    use unicode_segmentation::UnicodeSegmentation as _;
    let mut shown = Vec::new();
    let mut at = 0;
    for span in spans {
        let mut text = String::new();
        for grapheme in span.content.graphemes(true) {
            let grapheme = if grapheme == "\u{a0}" { " " } else { grapheme };
            let wide = crate::render::text::width(grapheme);
            if at >= left && at + wide <= left + room {
                text.push_str(grapheme);
            } else if at + wide > left && at < left {
                // The second half of a wide character.
                text.push_str(&" ".repeat(at + wide - left));
            }
            at += wide;
            if at >= left + room {
                break;
            }
        }
        if !text.is_empty() {
            shown.push(Span::styled(text, span.style));
        }
        if at >= left + room {
            break;
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::highlight::Highlighter;
    use crate::theme::{Background, Depth};

    const DIFF: &str = "--- a/a.rs\n+++ b/a.rs\n@@ -9,3 +9,3 @@ fn x\n one\n-let two = 1;\n+let two = 22;\n three\n\\ No newline at end of file\n";

    #[test]
    fn numbers_count_both_sides_and_long_lines_wrap() {
        let theme = Theme::load("dark", None, Depth::True, Background::Dark).expect("it is embedded");
        let highlighter = Highlighter::new(|| {});
        let context = |columns| RenderContext::new(&theme, &highlighter, columns);
        let shown: Vec<String> = lines(DIFF, &context(16)).iter().map(ToString::to_string).collect();
        assert_eq!(
            shown,
            [
                "    9   one",
                "   10 - let two ",
                "        = 1;    ",
                "   10 + let two ",
                "        = 22;   ",
                "   11   three",
                "      \\ No newline at end of file"
            ]
        );
        let (first, more) = first_rows(DIFF, &context(40), 2);
        assert_eq!((first.len(), more), (2, 3));
    }

    /// Broken build: one that tints the whole line, or nothing.
    #[test]
    fn the_words_that_changed_have_the_stronger_tint() {
        let theme = Theme::load("dark", None, Depth::True, Background::Dark).expect("it is embedded");
        let highlighter = Highlighter::new(|| {});
        let tinted = |colour| -> Vec<String> {
            let all = lines(DIFF, &RenderContext::new(&theme, &highlighter, 60));
            let spans = all.iter().flat_map(|line| line.spans.iter());
            spans.filter(|span| span.style.bg == Some(colour)).map(|span| span.content.to_string()).collect()
        };
        assert_eq!(
            (tinted(theme.removed_word), tinted(theme.added_word)),
            (vec!["1".to_owned()], vec!["22".to_owned()])
        );
    }

    /// Broken build: a line that ends at the edge looks like one that goes on, or the other way round.
    #[test]
    fn a_line_that_goes_on_beyond_the_edge_has_a_mark() {
        let theme = Theme::load("dark", None, Depth::True, Background::Dark).expect("it is embedded");
        let shown = |text: &str, left| {
            let line = DiffLine { tag: Some(Tag::Added), number: Some(1), text, ..DiffLine::default() };
            rows_of(&line, 10, 3, Flow::Scroll(left), &theme)[0].line.to_string()
        };
        assert_eq!(
            [shown("abcd", 0), shown("abcde", 0), shown("abcde", 1)],
            ["  1 + abcd", "  1 + abc›", "  1 + bcde"]
        );
        assert_eq!([shown("abc漢", 0), shown("ab漢", 0)], ["  1 + abc›", "  1 + ab漢"]);
    }

    #[test]
    fn what_is_scrolled_away_is_cut_between_characters() {
        let cut = |left, room| -> String {
            let spans = vec![Span::raw("ab漢"), Span::raw("cd")];
            super::cut(spans, left, room).iter().map(|span| span.content.as_ref()).collect()
        };
        assert_eq!((cut(0, 9), cut(1, 2), cut(3, 3)), ("ab漢cd".to_owned(), "b".to_owned(), " cd".to_owned()));
    }
}
