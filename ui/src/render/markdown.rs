//! What models write, as lines: headings, lists, quotes, tables, links, tasks, code.

use pulldown_cmark::{Alignment, CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

use super::highlight::Highlighter;
use super::text::{fit, plain, width, wrap};
use crate::theme::Theme;

/// What rendering leans on.
pub(crate) struct Look<'a> {
    pub(crate) theme: &'a Theme,
    pub(crate) highlighter: &'a Highlighter,
    pub(crate) columns: usize,
    /// Code gets its colours.
    pub(crate) colours: bool,
    /// Tool cards in full.
    pub(crate) details: bool,
    /// Thinking in full.
    pub(crate) thinking: bool,
}

impl Look<'_> {
    /// The same, narrower.
    pub(crate) fn inset(&self, by: usize) -> Look<'_> {
        Look { columns: self.columns.saturating_sub(by).max(1), ..*self }
    }
}

/// The lines of a whole text; blocks are parted by an empty line.
pub(crate) fn lines(source: &str, look: &Look<'_>) -> Vec<Line<'static>> {
    let source = plain(source);
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut page = Page::new(look);
    for event in Parser::new_ext(&source, options) {
        page.take(event);
    }
    page.finish()
}

/// How much of a growing text cannot change its look any more: it ends before a block that follows an empty line.
///
/// A list, a quote or a table may go on after an empty line, and a fence until it is closed, so these end nothing.
pub(crate) fn settled(source: &str) -> usize {
    let mut fence: Option<&str> = None;
    let mut settled = 0;
    let mut at = 0;
    let mut after_blank = false;
    for line in source.split_inclusive('\n') {
        let whole = line.ends_with('\n');
        let text = line.trim_end();
        let bare = text.trim_start();
        if after_blank && fence.is_none() && starts_block(text) {
            settled = at;
        }
        match fence {
            Some(mark) if bare.starts_with(mark) && bare.trim_matches(['`', '~']).is_empty() => fence = None,
            Some(_) => {}
            None if bare.starts_with("```") => fence = Some("```"),
            None if bare.starts_with("~~~") => fence = Some("~~~"),
            None => {}
        }
        after_blank = whole && text.is_empty() && fence.is_none();
        at += line.len();
    }
    settled
}

/// Whether this line, after an empty one, surely begins something new.
fn starts_block(line: &str) -> bool {
    let Some(first) = line.chars().next() else { return false };
    let numbered = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let list = (line.len() != numbered.len() && numbered.starts_with(['.', ')'])) || matches!(first, '-' | '*' | '+');
    !list && !matches!(first, ' ' | '\t' | '>' | '|' | '[') && !first.is_ascii_digit()
}

/// A container that puts something in front of each of its lines.
enum Container {
    /// Nothing has been put into it yet.
    Quote {
        fresh: bool,
    },
    /// The next number, if it counts; and whether its current item has begun.
    List(Option<u64>),
    Item {
        mark: String,
        used: bool,
    },
}

struct Table {
    alignments: Vec<Alignment>,
    rows: Vec<Vec<Vec<Span<'static>>>>,
    row: Vec<Vec<Span<'static>>>,
}

struct Page<'a> {
    look: &'a Look<'a>,
    lines: Vec<Line<'static>>,
    containers: Vec<Container>,
    /// Inline text of the current block.
    spans: Vec<Span<'static>>,
    styles: Vec<Style>,
    links: Vec<String>,
    heading: Option<HeadingLevel>,
    code: Option<(String, String)>,
    table: Option<Table>,
}

impl<'a> Page<'a> {
    fn new(look: &'a Look<'a>) -> Page<'a> {
        Page {
            look,
            lines: Vec::new(),
            containers: Vec::new(),
            spans: Vec::new(),
            styles: vec![look.theme.fg(look.theme.text)],
            links: Vec::new(),
            heading: None,
            code: None,
            table: None,
        }
    }

    fn style(&self) -> Style {
        self.styles.last().copied().unwrap_or_default()
    }

    fn take(&mut self, event: Event<'_>) {
        let theme = self.look.theme;
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => match &mut self.code {
                Some((_, code)) => code.push_str(&text),
                None => self.spans.push(Span::styled(text.into_string(), self.style())),
            },
            Event::Code(text) => self.spans.push(Span::styled(text.into_string(), self.style().fg(theme.code))),
            Event::SoftBreak => self.spans.push(Span::styled(" ", self.style())),
            Event::HardBreak => self.spans.push(Span::styled("\n", self.style())),
            Event::Html(text) | Event::InlineHtml(text) => {
                self.spans.push(Span::styled(text.into_string(), theme.dim()))
            }
            Event::Rule => {
                self.gap();
                let rule = "─".repeat(self.room().min(40));
                self.put(vec![Span::styled(rule, theme.dim())]);
            }
            Event::TaskListMarker(done) => {
                let (mark, style) = if done { ("☑ ", theme.fg(theme.success)) } else { ("☐ ", theme.dim()) };
                self.spans.push(Span::styled(mark, style));
            }
            Event::FootnoteReference(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                self.spans.push(Span::styled(text.into_string(), self.style()));
            }
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        let theme = self.look.theme;
        match tag {
            Tag::Paragraph => self.gap(),
            Tag::Heading { level, .. } => {
                self.gap();
                self.heading = Some(level);
                self.styles.push(theme.fg(theme.heading).add_modifier(Modifier::BOLD));
            }
            Tag::BlockQuote(_) => {
                self.gap();
                self.containers.push(Container::Quote { fresh: true });
                self.styles.push(theme.fg(theme.quote));
            }
            Tag::CodeBlock(kind) => {
                self.flush();
                self.gap();
                let language = match kind {
                    CodeBlockKind::Fenced(info) => info.split([' ', ',', '{']).next().unwrap_or_default().to_owned(),
                    CodeBlockKind::Indented => String::new(),
                };
                self.code = Some((language, String::new()));
            }
            Tag::List(first) => {
                self.flush();
                if self.containers.is_empty() {
                    self.gap();
                }
                self.containers.push(Container::List(first));
            }
            Tag::Item => {
                let mark = match self.containers.last_mut() {
                    Some(Container::List(Some(number))) => {
                        *number += 1;
                        format!("{}. ", *number - 1)
                    }
                    _ => "• ".to_owned(),
                };
                self.containers.push(Container::Item { mark, used: false });
            }
            Tag::Table(alignments) => {
                self.gap();
                self.table = Some(Table { alignments, rows: Vec::new(), row: Vec::new() });
            }
            Tag::Emphasis => self.styles.push(self.style().add_modifier(Modifier::ITALIC)),
            Tag::Strong => self.styles.push(self.style().fg(theme.strong).add_modifier(Modifier::BOLD)),
            Tag::Strikethrough => self.styles.push(self.style().add_modifier(Modifier::CROSSED_OUT)),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.links.push(dest_url.into_string());
                self.styles.push(self.style().fg(theme.link).add_modifier(Modifier::UNDERLINED));
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph => self.flush(),
            TagEnd::Heading(_) => {
                self.flush();
                self.heading = None;
                self.styles.pop();
            }
            TagEnd::BlockQuote(_) => {
                self.flush();
                self.containers.pop();
                self.styles.pop();
            }
            TagEnd::CodeBlock => self.end_code(),
            TagEnd::List(_) => drop(self.containers.pop()),
            TagEnd::Item => {
                self.flush();
                // An item without text still shows its mark.
                if let Some(Container::Item { used: false, .. }) = self.containers.last() {
                    self.put(Vec::new());
                }
                self.containers.pop();
            }
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.spans);
                if let Some(table) = &mut self.table {
                    table.row.push(cell);
                }
            }
            TagEnd::TableHead | TagEnd::TableRow => {
                if let Some(table) = &mut self.table {
                    let row = std::mem::take(&mut table.row);
                    table.rows.push(row);
                }
            }
            TagEnd::Table => self.end_table(),
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => drop(self.styles.pop()),
            TagEnd::Link | TagEnd::Image => {
                self.styles.pop();
                let target = self.links.pop().unwrap_or_default();
                let shown = self
                    .spans
                    .last()
                    .is_some_and(|span| target.ends_with(span.content.as_ref()) || target.starts_with('#'));
                if !shown && !target.is_empty() {
                    self.spans.push(Span::styled(format!(" ({target})"), self.look.theme.dim()));
                }
            }
            _ => {}
        }
    }

    /// What stands in front of the next line, and of the lines that follow it; a mark is used once.
    fn prefixes(&mut self) -> (Vec<Span<'static>>, Vec<Span<'static>>) {
        let theme = self.look.theme;
        let (mut first, mut rest) = (Vec::new(), Vec::new());
        for container in &mut self.containers {
            match container {
                Container::Quote { .. } => {
                    first.push(Span::styled("▎ ", theme.fg(theme.quote)));
                    rest.push(Span::styled("▎ ", theme.fg(theme.quote)));
                }
                Container::List(_) => {}
                Container::Item { mark, used } => {
                    let blank = Span::raw(" ".repeat(width(mark)));
                    first.push(if *used { blank.clone() } else { Span::styled(mark.clone(), theme.fg(theme.accent)) });
                    rest.push(blank);
                    *used = true;
                }
            }
        }
        (first, rest)
    }

    fn room(&self) -> usize {
        let taken: usize = self
            .containers
            .iter()
            .map(|container| match container {
                Container::Quote { .. } => 2,
                Container::List(_) => 0,
                Container::Item { mark, .. } => width(mark),
            })
            .sum();
        self.look.columns.saturating_sub(taken).max(1)
    }

    /// An empty line before a block, except at the start and right after a list's mark.
    fn gap(&mut self) {
        self.flush();
        if let Some(Container::Quote { fresh }) = self.containers.last_mut()
            && std::mem::take(fresh)
        {
            return;
        }
        let fresh_item = matches!(self.containers.last(), Some(Container::Item { used: false, .. }));
        if self.lines.is_empty() || fresh_item {
            return;
        }
        let quoted: Vec<Span<'static>> = self
            .containers
            .iter()
            .filter(|c| matches!(c, Container::Quote { .. }))
            .map(|_| Span::styled("▎ ", self.look.theme.fg(self.look.theme.quote)))
            .collect();
        self.lines.push(Line::from(quoted));
    }

    fn flush(&mut self) {
        if self.spans.is_empty() || self.table.is_some() {
            return;
        }
        let mut spans = std::mem::take(&mut self.spans);
        if let Some(level) = self.heading
            && level > HeadingLevel::H2
        {
            spans.insert(0, Span::styled("· ", self.look.theme.dim()));
        }
        self.put(spans);
    }

    fn put(&mut self, spans: Vec<Span<'static>>) {
        let (first, rest) = self.prefixes();
        self.lines.extend(wrap(&spans, self.look.columns, &first, &rest));
    }

    fn end_code(&mut self) {
        let Some((language, code)) = self.code.take() else { return };
        let theme = self.look.theme;
        let room = self.room().saturating_sub(2).max(1);
        let coloured = if self.look.colours { self.look.highlighter.colours(&language, &code) } else { None };
        for (number, text) in code.lines().enumerate() {
            let spans: Vec<Span<'static>> = match coloured.as_ref().and_then(|lines| lines.get(number)) {
                Some(pieces) => pieces
                    .iter()
                    .map(|(kind, text)| Span::styled(text.clone(), Style::new().fg(kind.colour(theme))))
                    .collect(),
                None => vec![Span::styled(text.to_owned(), theme.fg(theme.text))],
            };
            for piece in chop(&spans, room) {
                let used: usize = piece.iter().map(|s| width(&s.content)).sum();
                let (first, _) = self.prefixes();
                let mut line = first;
                let panel = Style::new().bg(theme.code_panel);
                line.push(Span::styled(" ", panel));
                line.extend(piece.into_iter().map(|span| span.patch_style(panel)));
                line.push(Span::styled(" ".repeat(room.saturating_sub(used) + 1), panel));
                self.lines.push(Line::from(line));
            }
        }
    }

    fn end_table(&mut self) {
        let Some(table) = self.table.take() else { return };
        let theme = self.look.theme;
        let columns = table.rows.iter().map(Vec::len).max().unwrap_or(0);
        let natural: Vec<usize> = (0..columns)
            .map(|c| {
                table.rows.iter().filter_map(|row| row.get(c)).map(|cell| cell_width(cell)).max().unwrap_or(0).max(1)
            })
            .collect();
        let widths = share(&natural, self.room().saturating_sub(3 * columns.saturating_sub(1)));
        for (number, row) in table.rows.iter().enumerate() {
            let cells: Vec<Vec<Line<'static>>> = (0..columns)
                .map(|c| {
                    let cell = row.get(c).map_or(&[][..], Vec::as_slice);
                    let bold: Vec<Span<'static>> = if number == 0 {
                        cell.iter().map(|s| s.clone().patch_style(theme.bold())).collect()
                    } else {
                        cell.to_vec()
                    };
                    wrap(&bold, widths[c], &[], &[])
                })
                .collect();
            let height = cells.iter().map(Vec::len).max().unwrap_or(1);
            for at in 0..height {
                let mut spans = Vec::new();
                for (c, lines) in cells.iter().enumerate() {
                    if c > 0 {
                        spans.push(Span::styled(" │ ", theme.fg(theme.border)));
                    }
                    let line = lines.get(at).cloned().unwrap_or_default();
                    let pad = widths[c].saturating_sub(line.width());
                    let (left, right) = match table.alignments.get(c) {
                        Some(Alignment::Right) => (pad, 0),
                        Some(Alignment::Center) => (pad / 2, pad - pad / 2),
                        Some(Alignment::Left | Alignment::None) | None => (0, pad),
                    };
                    spans.push(Span::raw(" ".repeat(left)));
                    spans.extend(line.spans);
                    spans.push(Span::raw(" ".repeat(right)));
                }
                let (mut line, _) = self.prefixes();
                line.extend(spans);
                self.lines.push(Line::from(line));
            }
            if number == 0 {
                let rule = widths.iter().map(|w| "─".repeat(*w)).collect::<Vec<_>>().join("─┼─");
                let (mut line, _) = self.prefixes();
                line.push(Span::styled(rule, theme.fg(theme.border)));
                self.lines.push(Line::from(line));
            }
        }
    }

    fn finish(mut self) -> Vec<Line<'static>> {
        if let Some((_, code)) = &self.code
            && !code.is_empty()
        {
            self.end_code();
        }
        self.flush();
        // A block that has only just begun has made room for itself already.
        while self.lines.last().is_some_and(|line| line.spans.is_empty()) {
            self.lines.pop();
        }
        self.lines
    }
}

fn cell_width(cell: &[Span<'_>]) -> usize {
    cell.iter().map(|span| width(&span.content)).sum()
}

/// Widths that fit: the widest give way first, none below a few columns.
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

/// Cuts styled text every `columns`, wherever that falls: code keeps its blanks.
fn chop(spans: &[Span<'static>], columns: usize) -> Vec<Vec<Span<'static>>> {
    use unicode_segmentation::UnicodeSegmentation as _;
    let mut lines = vec![Vec::new()];
    let mut used = 0;
    for span in spans {
        let mut text = String::new();
        for grapheme in span.content.graphemes(true) {
            let wide = width(grapheme);
            if used + wide > columns && used > 0 {
                lines.last_mut().expect("never empty").push(Span::styled(std::mem::take(&mut text), span.style));
                lines.push(Vec::new());
                used = 0;
            }
            text.push_str(grapheme);
            used += wide;
        }
        if !text.is_empty() {
            lines.last_mut().expect("never empty").push(Span::styled(text, span.style));
        }
    }
    lines
}

/// The first line of a text, without its marks, for one row of a list.
pub(crate) fn first_line(source: &str, columns: usize) -> String {
    let line = source.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    fit(plain(line).trim().trim_start_matches(['#', '>', ' ']), columns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theme::Depth;

    fn shown(source: &str, columns: usize) -> Vec<String> {
        let theme = Theme::load("dark", None, Depth::True).expect("a theme");
        let highlighter = Highlighter::new(|| ());
        let look =
            Look { theme: &theme, highlighter: &highlighter, columns, colours: true, details: false, thinking: false };
        lines(source, &look).iter().map(|line| line.to_string().trim_end().to_owned()).collect()
    }

    #[test]
    fn what_models_write_looks_as_it_was_meant() {
        let source = "# Title\nSome **bold** and `code`.\n\n- one\n- two\n  1. inner\n- [x] done\n\n> quoted\n> more\n\n| a | bb |\n|---|---:|\n| 1 | 2 |\n\n```rust\nfn x() {}\n```\n[docs](https://x.y/z)";
        assert_eq!(
            shown(source, 40),
            [
                "Title",
                "",
                "Some bold and code.",
                "",
                "• one",
                "• two",
                "  1. inner",
                "• ☑ done",
                "",
                "▎ quoted more",
                "",
                "a │ bb",
                "──┼───",
                "1 │  2",
                "",
                " fn x() {}",
                "",
                "docs (https://x.y/z)"
            ]
        );
    }

    #[test]
    fn half_a_fence_and_a_wide_table_stay_inside_their_columns() {
        for columns in [4, 10, 23, 60] {
            for line in shown("text\n\n```py\nprint('aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa')", columns) {
                assert!(width(&line) <= columns.max(4), "{columns}: {line:?}");
            }
            if columns >= 23 {
                for line in shown(
                    "| long heading here | 漢字漢字漢字漢字 |\n|--|--|\n| some longer text that wraps | x |",
                    columns,
                ) {
                    assert!(width(&line) <= columns, "{columns}: {line:?}");
                }
            }
        }
    }

    #[test]
    fn growing_text_looks_the_same_when_its_settled_part_is_kept() {
        let source = "Intro text.\n\nSecond para with `x`.\n\n- a\n\n- b\n\nAfter list.\n\n```sh\nls\n\npwd\n```\n\n## Heading\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nEnd.\n";
        for cut in (0..=source.len()).filter(|at| source.is_char_boundary(*at)) {
            let part = &source[..cut];
            let (head, tail) = part.split_at(settled(part));
            let mut joined = shown(head, 30);
            let rest = shown(tail, 30);
            if !joined.is_empty() && !rest.is_empty() {
                joined.push(String::new());
            }
            joined.extend(rest);
            assert_eq!(joined, shown(part, 30), "cut at {cut}: {part:?}");
        }
    }
}
