//! A unified diff with its two versions beside each other.

use pixir_core::diff::{Tag, words};
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::unified::{Item, Unified};
use super::{DIGITS, DiffLine, Flow, HunkColours, rows_of};
use crate::render::context::RenderContext;
use crate::render::highlight::Kind;
use crate::render::text::{span_width, visible};
use crate::theme::Theme;

/// The narrowest screen on which lines stand side by side.
pub(crate) const SIDE_BY_SIDE: u16 = 140;

/// What stands between both halves.
const RULE: &str = " │ ";

/// The lines of a unified diff, removed ones beside those that replace them, with syntax colours as far as they have
/// arrived.
pub(crate) fn beside(diff: &str, context: &RenderContext<'_>) -> Vec<Line<'static>> {
    let theme = context.theme;
    let it = Unified::read(diff);
    let half = context.columns.saturating_sub(RULE.chars().count()) / 2;
    let mut hunk: Option<HunkColours> = None;
    let mut lines: Vec<Line<'static>> = Vec::new();
    let mut at = 0;
    while let Some(item) = it.items.get(at) {
        at += 1;
        match item {
            Item::Gap => {
                hunk = HunkColours::of(&it, at, usize::MAX, context);
                if !lines.is_empty() {
                    lines.push(Line::styled("     ⋯", theme.dim()));
                }
            }
            Item::Note(text) => lines.push(Line::styled(format!("      {}", visible(text)), theme.dim())),
            Item::Line { tag: Tag::Same, number, old, text } => {
                let colours = hunk.as_ref().and_then(|hunk| hunk.line(at - 1));
                let of = |number| side((Tag::Same, number, *text), None, colours, half, theme);
                lines.extend(join(of(*old), of(*number), half, theme));
            }
            Item::Line { .. } => {
                let run = |from: usize, wanted: Tag| -> Vec<(u32, &str)> {
                    let lines = it.items[from..].iter().map_while(|item| match item {
                        Item::Line { tag, number, text, .. } if *tag == wanted => Some((*number, *text)),
                        Item::Line { .. } | Item::Gap | Item::Note(_) => None,
                    });
                    lines.collect()
                };
                let removed = run(at - 1, Tag::Removed);
                let first = at - 1;
                let added = run(first + removed.len(), Tag::Added);
                for n in 0..removed.len().max(added.len()) {
                    let (left, right) = (removed.get(n), added.get(n));
                    let of = |tag, line: Option<&(u32, &str)>, mate: Option<&(u32, &str)>, at: usize| {
                        let colours = hunk.as_ref().and_then(|hunk| hunk.line(at));
                        line.map_or_else(Vec::new, |(number, text)| {
                            side((tag, *number, *text), mate.map(|mate| mate.1), colours, half, theme)
                        })
                    };
                    let rows = (
                        of(Tag::Removed, left, right, first + n),
                        of(Tag::Added, right, left, first + removed.len() + n),
                    );
                    lines.extend(join(rows.0, rows.1, half, theme));
                }
                at = first + removed.len() + added.len();
            }
        }
    }
    lines
}

/// The place of a line that only the other version has.
pub(crate) fn absent(columns: usize, theme: &Theme) -> Line<'static> {
    Line::from(Span::styled(" ".repeat(columns), Style::new().bg(theme.code_panel)))
}

fn side(
    (tag, number, text): (Tag, u32, &str),
    mate: Option<&str>,
    colours: Option<&[(Kind, String)]>,
    half: usize,
    theme: &Theme,
) -> Vec<Line<'static>> {
    let changed = mate.and_then(|mate| match tag {
        Tag::Removed => words(text, mate).map(|it| it.old),
        Tag::Added => words(mate, text).map(|it| it.new),
        Tag::Same => None,
    });
    let line = DiffLine {
        tag: Some(tag),
        number: Some(number),
        text,
        words: changed.unwrap_or_default(),
        colours,
        is_moved: false,
    };
    rows_of(&line, half, DIGITS, Flow::Wrap, theme).into_iter().map(|row| row.line).collect()
}

fn join<'a>(
    mut left: Vec<Line<'static>>,
    mut right: Vec<Line<'static>>,
    half: usize,
    theme: &'a Theme,
) -> impl Iterator<Item = Line<'static>> + use<'a> {
    let rows = left.len().max(right.len());
    let fill = |side: &[Line<'_>]| if side.is_empty() { absent(half, theme) } else { Line::default() };
    let (of_left, of_right) = (fill(&left), fill(&right));
    left.resize(rows, of_left);
    right.resize(rows, of_right);
    let rule = Span::styled(RULE, theme.fg(theme.border));
    left.into_iter().zip(right).map(move |(mut left, right)| {
        let blanks = half.saturating_sub(span_width(&left.spans));
        left.spans.push(Span::raw(" ".repeat(blanks)));
        left.spans.push(rule.clone());
        left.spans.extend(right.spans);
        left
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::highlight::Highlighter;
    use crate::theme::{Background, Depth};

    /// Broken build: one that puts added lines below the removed ones, or the number of the new line on the left.
    #[test]
    fn lines_stand_beside_those_that_replace_them() {
        let theme = Theme::load("dark", None, Depth::True, Background::Dark).expect("it is embedded");
        let diff = "--- a/a\n+++ b/a\n@@ -3,3 +5,3 @@\n same\n-one\n-two\n+ONE\n";
        let highlighter = Highlighter::new(|| {});
        let context = RenderContext::new(&theme, &highlighter, 43);
        let shown: Vec<String> = beside(diff, &context).iter().map(ToString::to_string).collect();
        assert_eq!(
            shown.iter().map(|line| line.trim_end()).collect::<Vec<_>>(),
            ["    3   same         │     5   same", "    4 - one          │     6 + ONE", "    5 - two          │"]
        );
        // The place that stays empty has a ground of its own.
        let grounds = |at: usize| {
            let lines = beside(diff, &context);
            lines[at].spans.iter().filter(|span| span.style.bg == Some(theme.code_panel)).count()
        };
        assert_eq!([grounds(0), grounds(1), grounds(2)], [0, 0, 1]);
    }
}
