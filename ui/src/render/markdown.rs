//! Markdown as rows: headings, lists, quotes, tables, links, tasks, code.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

use super::context::{Medium, RenderContext};
use super::split::outdented;
use super::text::{End, Ink, Row, fit, plain, span_width, width, wrap_linked};

mod begun; // a table whose head is still being written
mod pipes; // pipes in code inside of tables
mod table; // tables as grids or lists
mod words; // the plain words of a text

pub(crate) use begun::begun_table;
use pipes::with_pipes;
use table::{MAX_TABLE, Table};
pub(crate) use words::words;

/// Lines of a code block that are measured for its ground.
const MAX_MEASURED: usize = 400;

/// The extensions of Markdown that models use.
fn options() -> Options {
    Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS | Options::ENABLE_FOOTNOTES
}

/// The rows of a text, with an empty row between blocks.
pub(crate) fn rows(source: &str, context: &RenderContext<'_>) -> Vec<Row> {
    inside(source, context, "")
}

/// The rows of a text that continues inside of code. `before` is the text from the fence on.
pub(crate) fn inside(source: &str, context: &RenderContext<'_>, before: &str) -> Vec<Row> {
    let mut page = Page::new(context);
    if !before.is_empty() {
        let fence = before.split_inclusive('\n').next().unwrap_or_default();
        let begun = || plain(&outdented(before)[outdented(fence).len()..]).into_owned();
        page.continued = Some(begun());
    }
    page.take_all(&with_fence(source, before));
    page.finish()
}

/// The text without control characters, after the fence that is open at its begin.
fn with_fence<'t>(source: &'t str, before: &str) -> Cow<'t, str> {
    let source = plain(source);
    if before.is_empty() {
        return with_pipes(source);
    }
    let fence = before.lines().next().unwrap_or_default();
    outdented(&format!("{}\n{source}", fence.trim_end())).into_owned().into()
}

fn is_break(html: &str) -> bool {
    matches!(html, "<br>" | "<br/>" | "<br />")
}

/// The `n`-th code block of a text, unchanged.
pub(crate) fn code_block(source: &str, n: usize) -> Option<String> {
    let mut seen = 0;
    let mut code: Option<String> = None;
    for event in Parser::new_ext(source, options()) {
        match event {
            Event::Start(Tag::CodeBlock(_)) if seen == n => code = Some(String::new()),
            Event::Text(text) => {
                if let Some(code) = &mut code {
                    code.push_str(&text);
                }
            }
            Event::End(TagEnd::CodeBlock) => {
                if code.is_some() {
                    return code;
                }
                seen += 1;
            }
            _ => {}
        }
    }
    code
}

/// A container with marks before each of its lines.
enum Container {
    /// A block quote, `fresh` until it has content.
    Quote { fresh: bool },
    /// The next number of an ordered list.
    List(Option<u64>),
    /// An item of a list. Its mark is drawn once.
    Item { mark: String, used: bool },
}

/// A run of text in one style.
type Piece = (String, Ink);

struct OpenLink {
    /// The number of its URL, from 1.
    number: usize,
    /// Where its text begins in `pieces`.
    begin: usize,
    leads_somewhere: bool,
}

struct Page<'a> {
    context: &'a RenderContext<'a>,
    rows: Vec<Row>,
    containers: Vec<Container>,
    /// The inline text of the current block.
    pieces: Vec<Piece>,
    styles: Vec<Style>,
    /// The URLs of all links, and the links that are open.
    urls: Vec<Arc<str>>,
    open_links: Vec<OpenLink>,
    code: Option<(String, String)>,
    /// The code before the first fence.
    continued: Option<String>,
    /// The columns of the marks before the next line.
    lead: usize,
    /// The number of code blocks so far.
    blocks: u16,
    table: Option<Table>,
}

impl<'a> Page<'a> {
    fn new(context: &'a RenderContext<'a>) -> Page<'a> {
        Page {
            context,
            rows: Vec::new(),
            containers: Vec::new(),
            pieces: Vec::new(),
            styles: vec![context.theme.fg(context.theme.text)],
            urls: Vec::new(),
            open_links: Vec::new(),
            code: None,
            continued: None,
            lead: 0,
            blocks: 0,
            table: None,
        }
    }

    fn take_all(&mut self, source: &str) {
        let parser = Parser::new_ext(source, options());
        // Reference definitions can follow in a later part of the text, so such a link is shown as written.
        let mut said: Vec<Range<usize>> =
            parser.reference_definitions().iter().map(|(_, it)| it.span.clone()).collect();
        said.sort_by_key(|span| span.start);
        let mut said = said.into_iter().peekable();
        for (event, place) in parser.into_offset_iter() {
            while let Some(span) = said.next_if(|span| span.end <= place.start) {
                self.define(&source[span]);
            }
            self.take(event);
        }
        said.for_each(|span| self.define(&source[span]));
    }

    /// `[name]: https://…`
    fn define(&mut self, text: &str) {
        let is_next = self.rows.last().is_some_and(|row| row.line.to_string().trim_start().starts_with('['));
        if self.pieces.is_empty() && !is_next {
            self.gap();
        }
        self.flush();
        let style = self.context.theme.dim();
        self.put(&[(text.trim().to_owned(), (style, 0))]);
    }

    fn style(&self) -> Style {
        self.styles.last().copied().unwrap_or_default()
    }

    fn say(&mut self, text: impl Into<String>, style: Style) {
        let link = self.open_links.last().filter(|it| it.leads_somewhere).map_or(0, |it| it.number);
        self.pieces.push((text.into(), (style, link)));
    }

    fn take(&mut self, event: Event<'_>) {
        let theme = self.context.theme;
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => match &mut self.code {
                Some((_, code)) => code.push_str(&text),
                None => self.say(text.into_string(), self.style()),
            },
            // In a theme without a colour for code, the backticks of the source mark it.
            Event::Code(text) if theme.code == theme.text => self.say(format!("`{text}`"), self.style()),
            Event::Code(text) => self.say(text.into_string(), self.style().fg(theme.code)),
            Event::SoftBreak => self.say(" ", self.style()),
            Event::HardBreak => self.say("\n", self.style()),
            Event::InlineHtml(text) if is_break(&text) => self.say("\n", self.style()),
            Event::Html(text) | Event::InlineHtml(text) => self.say(text.into_string(), theme.dim()),
            Event::Rule => {
                self.gap();
                let rule = "─".repeat(self.room().min(40));
                let (mut line, _) = self.prefixes();
                line.push(Span::styled(rule, theme.dim()));
                self.rows.push(Row::mark(Line::from(line)));
            }
            Event::TaskListMarker(done) => {
                let (mark, style) = if done { ("☑ ", theme.fg(theme.success)) } else { ("☐ ", theme.dim()) };
                self.say(mark, style);
            }
            Event::FootnoteReference(name) => self.say(format!("[^{name}]"), self.style()),
            Event::InlineMath(text) | Event::DisplayMath(text) => self.say(text.into_string(), self.style()),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        let theme = self.context.theme;
        match tag {
            Tag::Paragraph => self.gap(),
            Tag::Heading { level, .. } => {
                self.gap();
                let weight = match level {
                    HeadingLevel::H1 => Modifier::BOLD | Modifier::UNDERLINED,
                    HeadingLevel::H2 => Modifier::BOLD,
                    HeadingLevel::H3 => Modifier::BOLD | Modifier::ITALIC,
                    HeadingLevel::H4 | HeadingLevel::H5 | HeadingLevel::H6 => Modifier::ITALIC,
                };
                self.styles.push(theme.fg(theme.heading).add_modifier(weight));
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
                self.table = Some(Table { alignments, rows: Vec::new(), row: Vec::new(), more: 0 });
            }
            Tag::HtmlBlock => self.gap(),
            Tag::FootnoteDefinition(name) => {
                self.gap();
                self.containers.push(Container::Item { mark: format!("[^{name}]: "), used: false });
            }
            Tag::Emphasis => self.styles.push(self.style().add_modifier(Modifier::ITALIC)),
            Tag::Strong => self.styles.push(self.style().fg(theme.strong).add_modifier(Modifier::BOLD)),
            Tag::Strikethrough => self.styles.push(self.style().add_modifier(Modifier::CROSSED_OUT)),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.urls.push(plain(&dest_url).into());
                self.open_links.push(OpenLink {
                    number: self.urls.len(),
                    begin: self.pieces.len(),
                    leads_somewhere: leads_somewhere(&dest_url),
                });
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
                self.styles.pop();
            }
            TagEnd::BlockQuote(_) => {
                self.flush();
                self.containers.pop();
                self.styles.pop();
            }
            TagEnd::CodeBlock => self.end_code(),
            TagEnd::List(_) => drop(self.containers.pop()),
            TagEnd::HtmlBlock => {
                if let Some((text, _)) = self.pieces.last_mut() {
                    text.truncate(text.trim_end().len());
                }
                self.flush();
            }
            TagEnd::Item | TagEnd::FootnoteDefinition => {
                self.flush();
                // An item without text still shows its mark.
                if let Some(Container::Item { used: false, .. }) = self.containers.last() {
                    self.put(&[]);
                }
                self.containers.pop();
            }
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.pieces);
                if let Some(table) = &mut self.table {
                    table.row.push(cell);
                }
            }
            TagEnd::TableHead | TagEnd::TableRow => {
                if let Some(table) = &mut self.table {
                    let row = std::mem::take(&mut table.row);
                    if table.rows.len() <= MAX_TABLE {
                        table.rows.push(row);
                    } else {
                        table.more += 1;
                    }
                }
            }
            TagEnd::Table => self.end_table(),
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => drop(self.styles.pop()),
            TagEnd::Link | TagEnd::Image => {
                self.styles.pop();
                let Some(link) = self.open_links.pop() else { return };
                let target = self.urls.get(link.number - 1).cloned().unwrap_or_default();
                let label: String = self.pieces.iter().skip(link.begin).map(|(text, _)| text.as_str()).collect();
                let shown = says(&label, &target);
                // If the text of the link is not its URL, the URL follows it, so that the text cannot mislead the user.
                if !shown {
                    self.say(format!(" ({target})"), self.context.theme.dim());
                }
            }
            _ => {}
        }
    }

    /// The marks before the next line, and before the lines that wrap from it. A mark is used once.
    fn prefixes(&mut self) -> (Vec<Span<'static>>, Vec<Span<'static>>) {
        let theme = self.context.theme;
        let (mut first, mut rest) = (Vec::new(), Vec::new());
        let (mut items, mut has_mark) = (0, false);
        for container in &mut self.containers {
            match container {
                Container::Quote { .. } => {
                    (items, has_mark) = (0, false);
                    first.push(Span::styled("▎ ", theme.fg(theme.quote)));
                    rest.push(Span::styled("▎ ", theme.fg(theme.quote)));
                }
                Container::List(_) => {}
                Container::Item { mark, used } => {
                    let blank = Span::raw(" ".repeat(width(mark)));
                    first.push(if *used { blank.clone() } else { Span::styled(mark.clone(), theme.fg(theme.accent)) });
                    rest.push(blank);
                    items += width(mark);
                    has_mark |= !std::mem::replace(used, true);
                }
            }
        }
        self.lead = if has_mark { items } else { 0 };
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
        self.context.columns.saturating_sub(taken).max(1)
    }

    /// An empty row before a block, except at the start and directly after the mark of an item.
    fn gap(&mut self) {
        self.flush();
        if let Some(Container::Quote { fresh }) = self.containers.last_mut()
            && std::mem::take(fresh)
        {
            return;
        }
        let fresh_item = matches!(self.containers.last(), Some(Container::Item { used: false, .. }));
        if self.rows.is_empty() || fresh_item {
            return;
        }
        let is_quote = |c: &Container| matches!(c, Container::Quote { .. });
        let until = self.containers.iter().rposition(is_quote).map_or(0, |at| at + 1);
        let prefix = |c: &Container| match c {
            Container::Quote { .. } => Span::styled("▎ ", self.context.theme.fg(self.context.theme.quote)),
            Container::Item { mark, .. } => Span::raw(" ".repeat(width(mark))),
            Container::List(_) => Span::raw(""),
        };
        let quoted: Vec<Span<'static>> = self.containers[..until].iter().map(prefix).collect();
        let gutter = span_width(&quoted);
        self.rows.push(Row { line: Line::from(quoted), gutter, ..Row::default() });
    }

    fn flush(&mut self) {
        if self.pieces.is_empty() || self.table.is_some() {
            return;
        }
        let pieces = std::mem::take(&mut self.pieces);
        self.put(&pieces);
    }

    fn put(&mut self, pieces: &[Piece]) {
        let (first, rest) = self.prefixes();
        let begin = self.rows.len();
        let pieces = pieces.iter().map(|(text, ink)| (text.as_str(), *ink));
        self.rows.extend(wrap_linked(pieces, &self.urls, self.context.measure, &first, &rest));
        if let Some(row) = self.rows.get_mut(begin) {
            row.lead = self.lead;
        }
    }

    fn end_code(&mut self) {
        let Some((language, code)) = self.code.take() else { return };
        let theme = self.context.theme;
        let room = self.room().saturating_sub(2).max(1);
        // The ground is as wide as the text around it. Only code that needs more room is wider.
        let longest = code.lines().take(MAX_MEASURED).map(width).max().unwrap_or(0);
        let taken = self.context.columns.saturating_sub(self.room());
        let ground = longest.max(self.context.measure.saturating_sub(taken + 2)).min(room);
        let before = self.continued.take().unwrap_or_default();
        // No colour tells anything to a screen reader.
        let coloured = match (self.context.medium, self.context.grows) {
            (Medium::Reader, _) => None,
            (_, true) => self.context.highlighter.growing(&language, &before, &code),
            (_, false) => self.context.highlighter.colours(&language, &before, &code),
        };
        let has_ground = matches!(self.context.medium, Medium::Screen | Medium::BesidePanel);
        let panel = if has_ground { Style::new().bg(theme.code_panel) } else { Style::new() };
        for (number, text) in code.lines().enumerate() {
            let spans: Vec<Span<'static>> = match coloured.as_ref().and_then(|lines| lines.get(number)) {
                Some(pieces) => pieces
                    .iter()
                    .map(|(kind, text)| Span::styled(text.clone(), Style::new().fg(kind.colour(theme))))
                    .collect(),
                None => vec![Span::styled(text.to_owned(), theme.fg(theme.text))],
            };
            let pieces = chop(&spans, room);
            let last = pieces.len() - 1;
            for (at, piece) in pieces.into_iter().enumerate() {
                let used = span_width(&piece);
                let (mut line, _) = self.prefixes();
                let gutter = span_width(&line) + 1;
                line.push(Span::styled(" ", panel));
                line.extend(piece.into_iter().map(|span| span.patch_style(panel)));
                // Without the ground no blanks follow the code.
                let padding = if has_ground { ground.saturating_sub(used) + 1 } else { 0 };
                line.extend((padding > 0).then(|| Span::styled(" ".repeat(padding), panel)));
                let end = if at < last { End::Nothing } else { End::Line };
                let block = (number == 0 && at == 0).then_some(self.blocks);
                self.rows.push(Row { line: Line::from(line), gutter, padding, end, block, ..Row::default() });
            }
        }
        self.blocks = self.blocks.saturating_add(1);
    }

    fn finish(mut self) -> Vec<Row> {
        if let Some((_, code)) = &self.code
            && !code.is_empty()
        {
            self.end_code();
        }
        self.flush();
        // The block has just begun, and has its empty row already.
        while self.rows.last().is_some_and(|row| row.line.spans.is_empty()) {
            self.rows.pop();
        }
        self.rows
    }
}

/// The text of the link is its URL, or the link leads to the same document.
fn says(label: &str, target: &str) -> bool {
    let bare = |text: &str| {
        let text = ["https://", "http://", "mailto:"].iter().find_map(|it| text.strip_prefix(it)).unwrap_or(text);
        text.trim_end_matches('/').to_owned()
    };
    bare(label) == bare(target) || target.starts_with('#') || target.is_empty()
}

/// A URL that a terminal can open.
fn leads_somewhere(url: &str) -> bool {
    ["https://", "http://", "mailto:", "file://"].iter().any(|scheme| url.starts_with(scheme))
        && url.bytes().all(|b| (0x21..=0x7e).contains(&b))
        && url.len() <= 2_000
}

/// Cuts styled text every `columns`. Code keeps its blanks.
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

/// The first line of a text without its marks, for a row of a list.
pub(crate) fn first_line(source: &str, columns: usize) -> String {
    let line = source.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    fit(plain(line).trim().trim_start_matches(['#', '>', ' ']), columns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::highlight::Highlighter;
    use crate::theme::{Background, Depth, Theme};

    fn shown(source: &str, columns: usize) -> Vec<String> {
        let theme = Theme::load("dark", None, Depth::True, Background::Dark).expect("a theme");
        let highlighter = Highlighter::new(|| ());
        let context = RenderContext::new(&theme, &highlighter, columns);
        rows(source, &context).iter().map(|row| row.line.to_string().trim_end().to_owned()).collect()
    }

    #[test]
    fn a_pipe_in_code_parts_no_cells() {
        let source = "| code | says |\n|---|---|\n| `a | b` | one |\n| ``x ` | y`` | two |\n| `open | three |\n\n`a | b` stays\n\n```sh\n| `a | b` |\n|---|---|\n```";
        assert_eq!(
            shown(source, 40),
            [
                "code    │ says",
                "────────┼──────",
                "a | b   │ one",
                "x ` | y │ two",
                "`open   │ three",
                "",
                "a | b stays",
                "",
                " | `a | b` |",
                " |---|---|"
            ]
        );
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
}
