//! Widths, wrapping, and making the invisible visible.

use pixir_core::present::Stripper;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr as _;

/// Columns between tab stops.
pub(crate) const TAB: usize = 4;

/// Columns that a text takes.
pub(crate) fn width(text: &str) -> usize {
    text.width()
}

/// Text that shows everything it holds: control, bidirectional and zero-width characters as escapes, tabs as spaces.
pub(crate) fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\t' => shown.push_str(&" ".repeat(TAB)),
            '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{2069}'
            | '\u{feff}'
            | '\u{00ad}'
            | '\u{061c}'
            | '\u{2028}'
            | '\u{2029}'
            | '\u{e0000}'..='\u{e007f}' => {
                shown.extend(c.escape_unicode());
            }
            c if c.is_control() && c != '\n' => shown.extend(c.escape_default()),
            c => shown.push(c),
        }
    }
    shown
}

/// Text from a model or a tool, safe and stable on a screen: no control characters, tabs as spaces.
pub(crate) fn plain(text: &str) -> String {
    if !text.chars().any(|c| c.is_control() || is_invisible(c)) {
        return text.to_owned();
    }
    // Whole terminal sequences go, not only the character that begins them.
    let text = String::from_utf8_lossy(&Stripper::default().strip(text.as_bytes())).into_owned();
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\t' => shown.push_str(&" ".repeat(TAB)),
            '\n' => shown.push('\n'),
            c if c.is_control() || is_invisible(c) => {}
            c => shown.push(c),
        }
    }
    shown
}

fn is_invisible(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{e0000}'..='\u{e007f}' | '\u{feff}')
}

/// The start of a text that fits, with an ellipsis where it was cut.
pub(crate) fn fit(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut cut = String::new();
    let mut used = 0;
    for grapheme in text.graphemes(true) {
        let wide = grapheme.width();
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

/// Breaks styled text at spaces, and words that are too long anywhere; no line is wider than `columns`.
///
/// No-break spaces hold words together and come out as blanks.
/// The first line gets `first` in front, the others `rest`; both count as columns.
pub(crate) fn wrap(
    spans: &[Span<'_>],
    columns: usize,
    first: &[Span<'static>],
    rest: &[Span<'static>],
) -> Vec<Line<'static>> {
    let mut wrapper = Wrapper {
        columns: columns.max(1),
        rest,
        lines: Vec::new(),
        line: first.to_vec(),
        used: span_width(first),
        prefix: span_width(first),
        word: Vec::new(),
        word_width: 0,
        space: None,
    };
    for span in spans {
        for grapheme in span.content.graphemes(true) {
            match grapheme {
                "\n" => wrapper.newline(),
                " " => wrapper.blank(span.style),
                _ => wrapper.push(grapheme, span.style),
            }
        }
    }
    wrapper.finish()
}

fn span_width(spans: &[Span<'_>]) -> usize {
    spans.iter().map(|span| span.content.width()).sum()
}

struct Wrapper<'a> {
    columns: usize,
    rest: &'a [Span<'static>],
    lines: Vec<Line<'static>>,
    line: Vec<Span<'static>>,
    used: usize,
    /// Columns of what stands in front of the text on this line.
    prefix: usize,
    word: Vec<(String, Style)>,
    word_width: usize,
    /// Blanks that wait for a word after them.
    space: Option<(usize, Style)>,
}

impl Wrapper<'_> {
    fn push(&mut self, grapheme: &str, style: Style) {
        let wide = grapheme.width();
        let room = self.columns.saturating_sub(span_width(self.rest)).max(1);
        // A word that no line can hold is broken where the line ends.
        if self.word_width + wide > room {
            self.end_word();
            if self.used + wide > self.columns && self.used > self.prefix {
                self.break_line();
            }
        }
        match self.word.last_mut() {
            Some((text, last)) if *last == style => text.push_str(grapheme),
            _ => self.word.push((grapheme.to_owned(), style)),
        }
        self.word_width += wide;
    }

    fn blank(&mut self, style: Style) {
        self.end_word();
        self.space = Some((self.space.map_or(1, |(n, _)| n + 1), style));
    }

    fn end_word(&mut self) {
        if self.word.is_empty() {
            return;
        }
        let blanks = self.space.take();
        let gap = blanks.map_or(0, |(n, _)| n);
        if self.used + gap + self.word_width > self.columns && self.used > self.prefix {
            self.break_line();
        } else if let Some((n, style)) = blanks {
            self.put(" ".repeat(n), style);
            self.used += n;
        }
        for (text, style) in std::mem::take(&mut self.word) {
            self.put(text, style);
        }
        self.used += self.word_width;
        self.word_width = 0;
    }

    fn put(&mut self, text: String, style: Style) {
        // A blank that does not break is a blank like any other once it stands where it should.
        let text = if text.contains('\u{a0}') { text.replace('\u{a0}', " ") } else { text };
        match self.line.last_mut() {
            Some(last) if last.style == style => last.content.to_mut().push_str(&text),
            _ => self.line.push(Span::styled(text, style)),
        }
    }

    fn break_line(&mut self) {
        self.lines.push(Line::from(std::mem::replace(&mut self.line, self.rest.to_vec())));
        self.prefix = span_width(self.rest);
        self.used = self.prefix;
        self.space = None;
    }

    fn newline(&mut self) {
        self.end_word();
        self.break_line();
    }

    fn finish(mut self) -> Vec<Line<'static>> {
        self.end_word();
        self.lines.push(Line::from(self.line));
        self.lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrapped(text: &str, columns: usize) -> Vec<String> {
        wrap(&[Span::raw(text.to_owned())], columns, &[Span::raw("• ")], &[Span::raw("  ")])
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn words_stay_whole_where_they_can_and_no_line_is_too_wide() {
        assert_eq!(wrapped("the quick brown fox", 12), ["• the quick", "  brown fox"]);
        assert_eq!(wrapped("abcdefghijklmnop", 8), ["• abcdef", "  ghijkl", "  mnop"]);
        assert_eq!(wrapped("漢字漢字漢字", 8), ["• 漢字漢", "  字漢字"]);
        assert_eq!(wrapped("a\nb", 8), ["• a", "  b"]);
        for columns in 1..40 {
            for line in wrapped("a 👨‍👩‍👧 family, wörds ①②③ and averyveryverylongwordindeed 漢字 end", columns)
            {
                assert!(width(&line) <= columns.max(4), "{columns}: {line}");
            }
        }
    }

    #[test]
    fn what_is_hidden_is_shown_before_it_is_approved() {
        assert_eq!(visible("rm \u{202e}x\u{200b}\x1b[2Ky\tz"), "rm \\u{202e}x\\u{200b}\\u{1b}[2Ky    z");
        assert_eq!(plain("a\x1b[31m\u{202e}b\x1b]0;t\x07\tc"), "ab    c");
        assert_eq!(fit("漢字漢字", 5), "漢字…");
    }
}
