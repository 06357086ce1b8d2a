//! Unified diffs as lines with numbers and colours.

use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::text::{Row, lines_of, span_width, visible, wrap};
use crate::theme::Theme;

/// The lines of a unified diff. Its file header is left out, because the caller shows the path.
pub(crate) fn lines(diff: &str, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    lines_of(first_rows(diff, columns, theme, usize::MAX).0)
}

/// At most `most` of its rows, and the number of lines that are left out.
pub(crate) fn first_rows(diff: &str, columns: usize, theme: &Theme, most: usize) -> (Vec<Row>, usize) {
    let mut rows: Vec<Row> = Vec::new();
    let (mut old, mut new) = (0_u64, 0_u64);
    let mut in_hunk = false;
    let mut texts = diff.lines();
    while rows.len() < most {
        let Some(text) = texts.next() else { break };
        // Inside of a hunk such a line is a changed one.
        if !in_hunk && (text.starts_with("--- ") || text.starts_with("+++ ")) {
            continue;
        }
        if let Some(hunk) = text.strip_prefix("@@ ") {
            (old, new) = starts(hunk).unwrap_or((0, 0));
            in_hunk = true;
            if !rows.is_empty() {
                rows.push(Row::mark(Line::styled("     ⋯".to_owned(), theme.dim())));
            }
            continue;
        }
        // A note in brackets: why there is no diff.
        if !in_hunk {
            rows.push(Row::mark(Line::styled(format!("      {}", visible(text)), theme.dim())));
            continue;
        }
        let (mark, rest) = text.split_at(text.char_indices().nth(1).map_or(text.len(), |(at, _)| at));
        let (number, style) = match mark {
            "+" => (Some(&mut new), Style::new().fg(theme.added).bg(theme.added_panel)),
            "-" => (Some(&mut old), Style::new().fg(theme.removed).bg(theme.removed_panel)),
            " " => {
                old += 1;
                (Some(&mut new), theme.fg(theme.text))
            }
            _ => (None, theme.dim()),
        };
        let gutter = number.map_or_else(
            || "      ".to_owned(),
            |n| {
                *n += 1;
                format!("{:>5} ", *n - 1)
            },
        );
        // `\\ No newline at end of file` is not a line of the file.
        let (mark, body) = if mark == "\\" { (" ", text.to_owned()) } else { (mark, visible(rest)) };
        let first = [Span::styled(gutter, theme.dim()), Span::styled(format!("{mark} "), style)];
        let more = [Span::styled("      ".to_owned(), theme.dim()), Span::styled("  ".to_owned(), style)];
        let wrapped = wrap(&[Span::styled(keep_indent(&body), style)], columns, &first, &more);
        rows.extend(wrapped.into_iter().map(|mut row| {
            row.line = fill(row.line, columns, style);
            row
        }));
    }
    // Showing one more line takes no more room than the note.
    let more = texts.count();
    if more == 1 && most < usize::MAX { first_rows(diff, columns, theme, most + 2) } else { (rows, more) }
}

/// Wrapping would take leading blanks for a break between words.
fn keep_indent(text: &str) -> String {
    let body = text.trim_start_matches(' ');
    format!("{}{body}", "\u{a0}".repeat(text.len() - body.len()))
}

/// Paints the rest of the row, so that a changed line is one bar.
fn fill(mut line: Line<'static>, columns: usize, style: Style) -> Line<'static> {
    let used = span_width(&line.spans);
    if style.bg.is_some() && used < columns {
        line.spans.push(Span::styled(" ".repeat(columns - used), style));
    }
    line
}

/// The first line numbers of both sides in `-1,4 +2,5 @@`.
fn starts(hunk: &str) -> Option<(u64, u64)> {
    let mut parts = hunk.split(' ');
    let number = |part: &str, sign| part.strip_prefix(sign)?.split(',').next()?.parse().ok();
    Some((number(parts.next()?, '-')?, number(parts.next()?, '+')?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theme::{Background, Depth};

    #[test]
    fn each_line_has_its_number_on_its_own_side() {
        let theme = Theme::load("dark", None, Depth::True, Background::Dark).expect("a theme");
        let diff = "--- a/x\n+++ b/x\n@@ -9,3 +9,4 @@\n same\n-old\u{202e}\n--- x\n+new\n+++ y\n same\n\\ No newline\n";
        let shown: Vec<String> = lines(diff, 24, &theme).iter().map(|l| l.to_string().trim_end().to_owned()).collect();
        assert_eq!(
            shown,
            [
                "    9   same",
                "   10 - old\\u{202e}",
                "   11 - -- x",
                "   10 + new",
                "   11 + ++ y",
                "   12   same",
                "        \\ No newline"
            ]
        );
    }
}
