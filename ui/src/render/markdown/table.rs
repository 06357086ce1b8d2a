//! Tables: a grid if there is room, else a list of rows.

use pulldown_cmark::Alignment;
use ratatui::text::{Line, Span};

use super::{Page, Piece};
use crate::render::text::{Row, span_width, width, wrap_linked};

/// The most rows of a table that are shown. A note counts the others.
pub(super) const MAX_TABLE: usize = 2_000;
/// The narrowest column of a grid. With less room each row becomes a list.
const MIN_COLUMN: usize = 6;

/// A table, as far as it is parsed.
pub(super) struct Table {
    pub(super) alignments: Vec<Alignment>,
    pub(super) rows: Vec<Vec<Vec<Piece>>>,
    pub(super) row: Vec<Vec<Piece>>,
    /// Rows that are not shown.
    pub(super) more: usize,
}

impl Page<'_> {
    pub(super) fn end_table(&mut self) {
        let Some(table) = self.table.take() else { return };
        let columns = table.rows.iter().map(Vec::len).max().unwrap_or(0);
        let natural: Vec<usize> = (0..columns)
            .map(|c| {
                table.rows.iter().filter_map(|row| row.get(c)).map(|cell| cell_width(cell)).max().unwrap_or(0).max(1)
            })
            .collect();
        let room = self.room().saturating_sub(3 * columns.saturating_sub(1));
        let widths = share(&natural, room);
        if widths.iter().sum::<usize>() > room || widths.iter().zip(&natural).any(|(w, n)| w < n && *w < MIN_COLUMN) {
            self.table_as_list(&table);
        } else {
            self.table_as_grid(&table, &widths);
        }
        if table.more > 0 {
            let (mut line, _) = self.prefixes();
            line.push(Span::styled(format!("… {} more rows", table.more), self.context.theme.dim()));
            self.rows.push(Row::mark(Line::from(line)));
        }
    }

    fn table_as_grid(&mut self, table: &Table, widths: &[usize]) {
        let theme = self.context.theme;
        for (number, row) in table.rows.iter().enumerate() {
            let cells: Vec<Vec<Row>> = widths
                .iter()
                .enumerate()
                .map(|(c, room)| {
                    let pieces = row.get(c).map_or(&[][..], Vec::as_slice).iter().map(|(text, (style, link))| {
                        let style = if number == 0 { style.patch(theme.bold()) } else { *style };
                        (text.as_str(), (style, *link))
                    });
                    wrap_linked(pieces, &self.urls, *room, &[], &[])
                })
                .collect();
            let height = cells.iter().map(Vec::len).max().unwrap_or(1);
            for at in 0..height {
                let (mut line, _) = self.prefixes();
                let gutter = span_width(&line);
                let mut links = Vec::new();
                for (c, rows) in cells.iter().enumerate() {
                    if c > 0 {
                        line.push(Span::styled(" │ ", theme.fg(theme.border)));
                    }
                    let cell = rows.get(at).cloned().unwrap_or_default();
                    let pad = widths[c].saturating_sub(span_width(&cell.line.spans));
                    let (left, right) = match table.alignments.get(c) {
                        Some(Alignment::Right) => (pad, 0),
                        Some(Alignment::Center) => (pad / 2, pad - pad / 2),
                        Some(Alignment::Left | Alignment::None) | None => (0, pad),
                    };
                    let from = span_width(&line) + left;
                    links.extend(cell.links.into_iter().map(|(at, url)| (from + at.start..from + at.end, url)));
                    line.push(Span::raw(" ".repeat(left)));
                    line.extend(cell.line.spans);
                    line.push(Span::raw(" ".repeat(right)));
                }
                self.rows.push(Row { line: Line::from(line), gutter, links, ..Row::default() });
            }
            if number == 0 {
                let rule = widths.iter().map(|w| "─".repeat(*w)).collect::<Vec<_>>().join("─┼─");
                let (mut line, _) = self.prefixes();
                line.push(Span::styled(rule, theme.fg(theme.border)));
                self.rows.push(Row::mark(Line::from(line)));
            }
        }
    }

    /// A list for each row, with the names of the columns.
    fn table_as_list(&mut self, table: &Table) {
        let theme = self.context.theme;
        let Some((head, rows)) = table.rows.split_first() else { return };
        for (number, row) in rows.iter().enumerate() {
            if number > 0 {
                self.gap();
            }
            for (c, cell) in row.iter().enumerate() {
                let (first, _) = self.prefixes();
                let name = head.get(c).map(|it| it.iter().map(|(text, _)| text.as_str()).collect::<String>());
                let name = name.filter(|it| !it.is_empty()).map(|it| format!("{it}: "));
                let mut rest = first.clone();
                rest.push(Span::raw("  "));
                let pieces = name.iter().map(|it| (it.as_str(), (theme.bold(), 0)));
                let pieces = pieces.chain(cell.iter().map(|(text, ink)| (text.as_str(), *ink)));
                self.rows.extend(wrap_linked(pieces, &self.urls, self.context.measure, &first, &rest));
            }
        }
    }
}

fn cell_width(cell: &[Piece]) -> usize {
    cell.iter().map(|(text, _)| width(text)).sum()
}

/// Column widths that fit: the widest columns shrink first, none below a minimum.
fn share(natural: &[usize], room: usize) -> Vec<usize> {
    let mut widths = natural.to_vec();
    while widths.iter().sum::<usize>() > room {
        let Some(widest) = (0..widths.len()).max_by_key(|i| widths[*i]).filter(|i| widths[*i] > 3) else { break };
        let over = widths.iter().sum::<usize>() - room;
        let next = widths.iter().filter(|w| **w < widths[widest]).max().copied().unwrap_or(3);
        widths[widest] -= over.min((widths[widest] - next.max(3)).max(1));
    }
    widths
}
