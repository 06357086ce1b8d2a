//! A report: sections of named values, checks, tables and plain text, as lines.

use ratatui::style::Style;
use ratatui::text::{Line, Span};

use crate::render::text::{fit, visible, width, wrap_lines};
use crate::theme::Theme;

/// One check of this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// What is checked.
    pub name: String,
    /// How it went.
    pub grade: Grade,
    /// What was found.
    pub message: String,
    /// What to do about it.
    pub fix: Option<String>,
}

/// How a check went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grade {
    /// Nothing to do.
    Pass,
    /// It works, but not as well as it could.
    Warn,
    /// It does not work.
    Fail,
}

/// Sections, one below the other.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Report {
    pub(crate) sections: Vec<Section>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Section {
    pub(crate) title: String,
    pub(crate) items: Vec<Item>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Item {
    Value {
        name: String,
        value: String,
    },
    Check(Check),
    Text(String),
    Table(Table),
    /// A step of the plan.
    Step {
        done: Option<bool>,
        text: String,
    },
}

/// Rows with the same columns. The first column takes the room that the others leave.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Table {
    pub(crate) head: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
}

impl Section {
    pub(crate) fn new(title: impl Into<String>, items: Vec<Item>) -> Section {
        Section { title: title.into(), items }
    }
}

impl Item {
    pub(crate) fn value(name: impl Into<String>, value: impl Into<String>) -> Item {
        Item::Value { name: name.into(), value: value.into() }
    }
}

/// Columns of the names before their values.
const NAMES: usize = 14;

impl Report {
    /// The report in lines of this width.
    pub(crate) fn lines(&self, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        for section in &self.sections {
            if !lines.is_empty() {
                lines.push(Line::default());
            }
            if !section.title.is_empty() {
                lines.push(Line::styled(visible(&section.title), theme.bold()));
            }
            lines.extend(section.items.iter().flat_map(|item| item.lines(columns, theme)));
        }
        lines
    }
}

impl Item {
    fn lines(&self, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
        match self {
            Item::Value { name, value } => {
                let first = [Span::styled(named(name), theme.dim())];
                wrapped(value, theme.fg(theme.text), columns, &first, NAMES + 2)
            }
            Item::Check(it) => check(it, columns, theme),
            Item::Text(text) => wrapped(text, theme.fg(theme.text), columns, &[Span::raw("  ")], 2),
            Item::Table(table) => table.lines(columns, theme),
            Item::Step { done, text } => {
                let (mark, style) = match done {
                    Some(true) => ("  ✓ ", theme.fg(theme.success)),
                    Some(false) => ("  ▸ ", theme.fg(theme.accent)),
                    None => ("  ○ ", theme.dim()),
                };
                let of_text = if *done == Some(true) { theme.dim() } else { theme.fg(theme.text) };
                wrapped(text, of_text, columns, &[Span::styled(mark, style)], 4)
            }
        }
    }
}

fn named(name: &str) -> String {
    let name = fit(&visible(name), NAMES - 1);
    let pad = " ".repeat(NAMES - width(&name));
    format!("  {name}{pad}")
}

fn wrapped(text: &str, style: Style, columns: usize, first: &[Span<'static>], indent: usize) -> Vec<Line<'static>> {
    let rest = [Span::raw(" ".repeat(indent))];
    let mut lines: Vec<Line<'static>> = Vec::new();
    for (at, part) in visible_lines(text).into_iter().enumerate() {
        let first = if at == 0 { first } else { &rest[..] };
        lines.extend(wrap_lines(&[Span::styled(part, style)], columns, first, &rest));
    }
    lines
}

fn visible_lines(text: &str) -> Vec<String> {
    text.lines().map(visible).collect()
}

fn check(it: &Check, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let (mark, colour) = match it.grade {
        Grade::Pass => ("  ✓ ", theme.success),
        Grade::Warn => ("  ! ", theme.warning),
        Grade::Fail => ("  ✗ ", theme.error),
    };
    let name = fit(&visible(&it.name), NAMES - 1);
    let pad = " ".repeat(NAMES - width(&name));
    let first = [Span::styled(mark, theme.fg(colour)), Span::styled(format!("{name}{pad}"), theme.fg(theme.strong))];
    let mut lines = wrapped(&it.message, theme.fg(theme.text), columns, &first, NAMES + 4);
    if let Some(fix) = &it.fix {
        let first = [Span::styled(format!("{}fix: ", " ".repeat(NAMES + 4)), theme.dim())];
        lines.extend(wrapped(fix, theme.fg(theme.accent), columns, &first, NAMES + 9));
    }
    lines
}

impl Table {
    fn lines(&self, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
        let count = self.head.len();
        let wide = |at: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(at)).chain(self.head.get(at));
            cells.map(|cell| width(cell)).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (1..count).map(wide).collect();
        let taken: usize = widths.iter().map(|it| it + 2).sum();
        let first = columns.saturating_sub(taken + 2).max(8);
        let line = |row: &[String], styles: (Style, Style)| {
            let name = fit(&visible(row.first().map_or("", String::as_str)), first);
            let pad = " ".repeat(first.saturating_sub(width(&name)));
            let mut spans = vec![Span::raw("  "), Span::styled(name, styles.0), Span::raw(pad)];
            for (at, wide) in widths.iter().enumerate() {
                let cell = row.get(at + 1).map_or("", String::as_str);
                let pad = " ".repeat(wide.saturating_sub(width(cell)) + 2);
                spans.push(Span::styled(format!("{pad}{cell}"), styles.1));
            }
            Line::from(spans)
        };
        let head = line(&self.head, (theme.dim(), theme.dim()));
        let rows = self.rows.iter().map(|row| line(row, (theme.fg(theme.text), theme.fg(theme.text))));
        std::iter::once(head).chain(rows).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theme::{Background, Depth};

    #[test]
    fn a_report_keeps_its_columns_and_wraps_long_values() {
        let theme = Theme::load("dark", None, Depth::True, Background::Dark).expect("embedded");
        let check =
            Check { name: "bash".into(), grade: Grade::Fail, message: "not found".into(), fix: Some("install".into()) };
        let row = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
        let table = Table { head: row(["turn", "in", "cost"]), rows: vec![row(["1 fix it", "12.1k", "$0.02"])] };
        let items = vec![Item::value("model", "a very long name of a model"), Item::Check(check), Item::Table(table)];
        let report = Report { sections: vec![Section::new("Here", items)] };
        let text: Vec<String> =
            report.lines(34, &theme).iter().map(|it| it.to_string().trim_end().to_owned()).collect();
        assert_eq!(
            text,
            [
                "Here",
                "  model         a very long name",
                "                of a model",
                "  ✗ bash          not found",
                "                  fix: install",
                "  turn                   in   cost",
                "  1 fix it            12.1k  $0.02",
            ]
        );
    }
}
