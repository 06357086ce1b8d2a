//! The reasoning of a model.

use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

use super::context::{Fold, LayoutKey, RenderContext};
use super::markdown;
use super::text::{Row, fit, plain, wrap};

/// The rows of a preview, while the reasoning streams in and afterwards.
const LIVE: usize = 3;
const PREVIEW: usize = 10;
/// The length of the start of the first line that is searched for a headline, in bytes.
const HEADLINE: usize = 1_000;
/// The preview of streaming reasoning lays out only this much of its end, in bytes. In full, an unfinished line is laid
/// out again with each delta, but at most twice this much of it.
const TAIL: usize = 8 << 10;

/// Streaming reasoning in full. Finished lines are laid out only once.
#[derive(Debug, Clone, Default)]
pub(crate) struct Growing {
    key: Option<LayoutKey>,
    /// The bytes that are laid out for good, and their rows.
    settled: usize,
    rows: Vec<Row>,
}

impl Growing {
    pub(crate) fn rows(&mut self, text: &str, context: &RenderContext<'_>, key: LayoutKey) -> Vec<Row> {
        if self.key != Some(key) {
            *self = Growing { key: Some(key), ..Growing::default() };
        }
        if self.rows.is_empty() {
            self.settled = text.len() - text.trim_start().len();
        }
        let open = |from: usize| text[from..].trim_end();
        if let Some(end) = open(self.settled).rfind('\n') {
            let more = lay_out(&text[self.settled..self.settled + end], self.rows.is_empty(), context);
            self.rows.extend(more);
            self.settled += end + 1;
        }
        while open(self.settled).len() > 2 * TAIL {
            let end = end_of_word(text, self.settled + TAIL);
            let more = lay_out(&text[self.settled..end], self.rows.is_empty(), context);
            self.rows.extend(more);
            self.settled = end;
        }
        let rest = open(self.settled);
        let rest = if rest.is_empty() { Vec::new() } else { lay_out(rest, self.rows.is_empty(), context) };
        self.rows.iter().cloned().chain(rest).collect()
    }
}

/// The position after the last blank before `at`, else about there.
fn end_of_word(text: &str, at: usize) -> usize {
    let at = text.floor_char_boundary(at);
    let near = text.floor_char_boundary(at - TAIL / 8);
    text[near..at].rfind(' ').map_or(at, |blank| near + blank + 1)
}

fn style(context: &RenderContext<'_>) -> Style {
    context.theme.fg(context.theme.thinking).add_modifier(Modifier::ITALIC)
}

fn lay_out(text: &str, is_first: bool, context: &RenderContext<'_>) -> Vec<Row> {
    let style = style(context);
    let first = if is_first { Span::styled("✻ ", style) } else { Span::raw("  ") };
    let text = plain(text);
    // A line in bold is a headline.
    let headline = |line: &str| {
        Some(line.trim().strip_prefix("**")?.strip_suffix("**")?.to_owned()).filter(|it| !it.contains("**"))
    };
    let mut spans: Vec<Span<'static>> = Vec::new();
    for line in text.split_inclusive('\n') {
        match headline(line) {
            Some(words) => {
                spans.push(Span::styled(words, style.add_modifier(Modifier::BOLD)));
                spans.push(Span::styled(line[line.trim_end().len()..].to_owned(), style));
            }
            None => spans.push(Span::styled(line.to_owned(), style)),
        }
    }
    wrap(&spans, context.measure, &[first], &[Span::raw("  ")])
}

/// The end of streaming reasoning.
pub(crate) fn live(text: &str, fold: Fold, context: &RenderContext<'_>) -> Vec<Row> {
    let from = text.ceil_char_boundary(text.len().saturating_sub(TAIL));
    let rows = lay_out(text[from..].trim(), true, context);
    let most = if fold == Fold::Line { 1 } else { LIVE };
    rows[rows.len().saturating_sub(most)..].to_vec()
}

/// Finished reasoning.
pub(crate) fn whole(text: &str, fold: Fold, context: &RenderContext<'_>) -> Vec<Row> {
    let style = style(context);
    let rows = lay_out(text.trim(), true, context);
    match fold {
        Fold::Full => rows,
        Fold::Line | Fold::Some if rows.len() <= 1 => rows,
        Fold::Some if rows.len() <= PREVIEW + 1 => rows,
        Fold::Some => {
            let hidden = rows.len() - PREVIEW;
            let text = format!("{hidden} lines before{}", context.more.thinking);
            let note = Line::from(vec![Span::styled("✻ ", style), Span::styled(text, context.theme.dim())]);
            let mut shown = vec![Row::mark(note)];
            shown.extend_from_slice(&rows[hidden..]);
            shown
        }
        Fold::Line => {
            // Models write headlines in Markdown.
            let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
            let words = markdown::words(&line[..line.floor_char_boundary(HEADLINE)], "");
            let first = fit(words.trim().lines().next().unwrap_or_default(), context.measure.saturating_sub(22));
            let more = rows.len() - 1;
            let lines = if more == 1 { "line" } else { "lines" };
            let line = Line::from(vec![
                Span::styled("✻ ", style),
                Span::styled(first, style),
                Span::styled(format!("  +{more} {lines}{}", context.more.thinking), context.theme.dim()),
            ]);
            vec![Row { gutter: 2, ..Row::text(line) }]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::highlight::Highlighter;
    use crate::theme::{Background, Depth, Theme};

    #[test]
    fn what_grows_is_laid_out_as_it_is_in_the_end_and_none_of_it_moves() {
        let theme = Theme::load("dark", None, Depth::True, Background::Dark).expect("a theme");
        let highlighter = Highlighter::new(|| ());
        let text =
            "\n \n First I look at it.\n\n  Then, with care, at 漢字 of all kinds\nand at what follows.\n\n\n- one\n";
        for columns in [8, 20, 70] {
            let key = LayoutKey { columns, generation: 0 };
            let context = RenderContext { thinking: Fold::Full, ..RenderContext::new(&theme, &highlighter, columns) };
            let mut growing = Growing::default();
            let mut before: Vec<Row> = Vec::new();
            for (end, c) in text.char_indices() {
                let so_far = &text[..end + c.len_utf8()];
                let rows = growing.rows(so_far, &context, key);
                if !so_far.trim().is_empty() {
                    assert_eq!(rows, whole(so_far, Fold::Full, &context), "{so_far:?}");
                }
                // The last row is the one that grows, and a word of it may go to the next.
                let fixed = before.len().saturating_sub(1);
                assert_eq!(rows[..fixed], before[..fixed], "{so_far:?}");
                before = rows;
            }
            let endless = "word ".repeat(20_000);
            let rows = growing.rows(&endless, &context, LayoutKey { generation: 1, ..key });
            let shown: String = rows.iter().map(|row| row.line.to_string().trim()[..].to_owned() + " ").collect();
            assert_eq!(shown.matches("word ").count(), 20_000);
            assert!(growing.settled > 80_000);
        }
    }
}
