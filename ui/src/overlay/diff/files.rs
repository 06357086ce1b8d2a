//! A changed file in one line: its letter, its path, and what changed.

use pixir_core::diff::{ChangedFile, Kind};
use pixir_core::text::human::human_size;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use crate::render::figures::plus_minus_spans;
use crate::render::text::{fit_path, span_width, visible, width};
use crate::theme::Theme;

fn letter(file: &ChangedFile, theme: &Theme) -> Span<'static> {
    let colour = match file.kind {
        Kind::Added => theme.added,
        Kind::Modified => theme.accent,
        Kind::Deleted => theme.removed,
        Kind::Renamed(_) => theme.warning,
    };
    Span::styled(format!("{} ", file.kind.letter()), theme.fg(colour))
}

/// What changed: lines, sizes, modes.
fn figures(file: &ChangedFile, theme: &Theme) -> Vec<Span<'static>> {
    let mut spans = Vec::new();
    match (file.binary, file.counts) {
        (Some((old, new)), _) => {
            spans.push(Span::styled(format!(" {} → {}", human_size(old), human_size(new)), theme.dim()));
        }
        (None, Some((added, removed))) => {
            spans.extend(plus_minus_spans(" ", (added, removed), theme));
        }
        (None, None) => spans.push(Span::styled(" …", theme.dim())),
    }
    if let Some((old, new)) = file.modes {
        spans.push(Span::styled(format!(" {old:o} → {new:o}"), theme.fg(theme.warning)));
    }
    spans
}

/// A row of the list: the letter, the path shortened in the middle, and what changed.
pub(crate) fn file_line(file: &ChangedFile, columns: usize, theme: &Theme) -> Line<'static> {
    let numbers = figures(file, theme);
    let room = columns.saturating_sub(2 + span_width(&numbers));
    let shown = fit_path(&visible(&file.path), room);
    let pad = room.saturating_sub(width(&shown));
    let mut line =
        Line::from(vec![letter(file, theme), Span::styled(shown, theme.fg(theme.text)), Span::raw(" ".repeat(pad))]);
    line.spans.extend(numbers);
    line
}

/// A row of the tree of files: only the part of the path that its folder does not show, from byte `shown` on.
pub(super) fn listed_line(
    file: &ChangedFile,
    shown: usize,
    depth: usize,
    columns: usize,
    theme: &Theme,
) -> Line<'static> {
    let numbers = figures(file, theme);
    let indent = 2 * depth;
    let room = columns.saturating_sub(indent + 2 + span_width(&numbers));
    let name = fit_path(&visible(file.path.get(shown..).unwrap_or(&file.path)), room);
    let pad = room.saturating_sub(width(&name));
    let mut line = Line::from(vec![
        Span::raw(" ".repeat(indent)),
        letter(file, theme),
        Span::styled(name, theme.fg(theme.text)),
        Span::raw(" ".repeat(pad)),
    ]);
    line.spans.extend(numbers);
    line
}

/// The head of a file, which stays above its lines.
pub(super) fn head_line(file: &ChangedFile, encoding: Option<&str>, columns: usize, theme: &Theme) -> Line<'static> {
    let mut spans = vec![letter(file, theme)];
    let mut numbers = figures(file, theme);
    numbers.extend(encoding.map(|name| Span::styled(format!(" {name}"), theme.dim())));
    let room = columns.saturating_sub(4 + span_width(&numbers));
    if let Some(from) = file.from() {
        let half = room.saturating_sub(3) / 2;
        spans.push(Span::styled(format!("{} → ", fit_path(&visible(from), half)), theme.dim()));
        spans.push(Span::styled(fit_path(&visible(&file.path), half), theme.bold()));
    } else {
        spans.push(Span::styled(fit_path(&visible(&file.path), room), theme.bold()));
    }
    spans.extend(numbers);
    let used = span_width(&spans);
    if used + 2 < columns {
        spans.push(Span::styled(format!(" {}", "─".repeat(columns - used - 1)), Style::new().fg(theme.border)));
    }
    Line::from(spans)
}
