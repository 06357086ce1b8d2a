//! The canvas of a frame: cells, links, the caret, and regions for screen readers and scripts.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::ops::Range;
use std::sync::Arc;

use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::{Position, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::Widget;
use unicode_segmentation::UnicodeSegmentation as _;

use super::width::{TAB, width};

/// The most bytes of one cell. Further combining marks are left out.
const MAX_CELL: usize = 64;

/// The cells, and the links over them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Grid {
    pub(crate) buffer: Buffer,
    /// The number of each cell's link; 0 is none.
    pub(crate) links: Vec<u16>,
    /// The stamp of each row.
    pub(crate) stamps: Vec<Option<Stamp>>,
}

impl Grid {
    pub(crate) fn new(area: Rect) -> Grid {
        let (columns, rows) = (usize::from(area.width), usize::from(area.height));
        Grid { buffer: Buffer::empty(area), links: vec![0; columns * rows], stamps: vec![None; rows] }
    }

    /// Blanks in this style, and nothing else.
    fn clear(&mut self, area: Rect, ground: Style) {
        if self.buffer.area != area {
            *self = Grid::new(area);
        }
        let mut blank = Cell::EMPTY;
        blank.set_style(ground);
        self.buffer.content.fill(blank);
        self.links.fill(0);
        self.stamps.fill(None);
    }

    /// Something is drawn here: rows whose stamped columns it reaches lose their stamp.
    fn touch(&mut self, area: Rect) {
        for stamp in self.stamps.iter_mut().take(usize::from(area.bottom())).skip(usize::from(area.y)) {
            stamp.take_if(|stamp| area.x < stamp.columns);
        }
    }
}

/// What the first columns of a row were drawn from. Where two rows of a canvas have the same stamp, these columns are the
/// same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    content: u64,
    pub(crate) columns: u16,
}

/// Rows whose content has only moved since the previous frame, so that the terminal can scroll them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shift {
    pub(crate) rows: Range<u16>,
    /// Rows upwards.
    pub(crate) by: i32,
}

/// The role of an area of the screen, for screen readers, scripts and the mouse.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Region {
    pub(crate) role: &'static str,
    pub(crate) label: String,
    pub(crate) area: Rect,
    pub(crate) state: RegionState,
}

/// Whether a region has the focus, and whether it is the chosen one of several.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct RegionState {
    pub(crate) focused: bool,
    pub(crate) selected: bool,
}

/// A frame in progress.
#[derive(Debug, Default)]
pub(crate) struct Canvas {
    pub(crate) grid: Grid,
    /// The frame before, as the terminal shows it.
    pub(crate) shown: Grid,
    pub(crate) caret: Option<Position>,
    pub(crate) shift: Option<Shift>,
    /// The areas of the frame and their roles, bottom layer first. None if nothing reads them.
    pub(crate) regions: Option<Vec<Region>>,
    /// A screen reader reads the lines, so frames are left out.
    pub(crate) is_bare: bool,
    /// What the next dialog that is drawn says above its keys.
    pub(crate) note: Option<String>,
    /// The style of cells that nothing is drawn in.
    ground: Style,
    urls: Vec<Arc<str>>,
    numbers: HashMap<Arc<str>, u16>,
    /// Makes stamps. Its keys are random, so no text can be written to have the stamp of another.
    stamper: RandomState,
}

impl Canvas {
    /// A canvas that records regions.
    pub(crate) fn with_regions() -> Canvas {
        Canvas { regions: Some(Vec::new()), ..Canvas::default() }
    }

    /// Begins an empty frame of this size, on this ground.
    pub(crate) fn begin(&mut self, (columns, rows): (u16, u16), ground: Style) {
        self.ground = ground;
        self.grid.clear(Rect { x: 0, y: 0, width: columns, height: rows }, ground);
        self.caret = None;
        self.shift = None;
        if let Some(regions) = &mut self.regions {
            regions.clear();
        }
    }

    pub(crate) fn area(&self) -> Rect {
        self.grid.buffer.area
    }

    pub(crate) fn render_widget<W: Widget>(&mut self, widget: W, area: Rect) {
        let area = area.intersection(self.area());
        self.grid.touch(area);
        widget.render(area, &mut self.grid.buffer);
    }

    pub(crate) fn set_cursor_position(&mut self, position: impl Into<Position>) {
        self.caret = Some(position.into());
    }

    /// Records the role of an area.
    pub(crate) fn region(&mut self, role: &'static str, area: Rect, label: impl FnOnce() -> String) -> &mut Canvas {
        if let Some(regions) = &mut self.regions {
            regions.push(Region { role, label: label(), area, state: RegionState::default() });
        }
        self
    }

    /// Marks the last recorded region as focused, or as the chosen one.
    pub(crate) fn region_state(&mut self, state: RegionState) {
        if let Some(region) = self.regions.as_mut().and_then(|all| all.last_mut()) {
            region.state = state;
        }
    }

    /// The chosen row of a list. A screen reader follows the caret there, unless a field has it.
    pub(crate) fn follow(&mut self, row: Rect) {
        if self.is_bare && self.caret.is_none() {
            self.caret = Some(row.as_position());
        }
    }

    /// Sets the style of an area, and leaves its text.
    pub(crate) fn tint(&mut self, area: Rect, style: Style) {
        let area = area.intersection(self.area());
        self.grid.touch(area);
        self.grid.buffer.set_style(area, style);
    }

    /// Lets an area step back behind what is drawn over it: its text in this style, without emphasis or grounds.
    pub(crate) fn recede(&mut self, area: Rect, style: Style) {
        let area = area.intersection(self.area());
        self.grid.touch(area);
        let ground = self.ground;
        for y in area.y..area.bottom() {
            let from = self.grid.buffer.index_of(area.x, y);
            for cell in &mut self.grid.buffer.content[from..from + usize::from(area.width)] {
                cell.set_style(Style::reset().patch(ground).patch(style));
            }
        }
    }

    /// Blanks everything that is drawn with lines and blocks, because a screen reader would read out each character.
    pub(crate) fn erase_drawing(&mut self) {
        for cell in &mut self.grid.buffer.content {
            if matches!(cell.symbol().chars().next(), Some('\u{2500}'..='\u{259f}' | '▪' | '▰' | '▱')) {
                cell.set_symbol(" ");
            }
        }
    }

    /// Fills an area with blanks in this style.
    pub(crate) fn fill(&mut self, area: Rect, style: Style) {
        let area = area.intersection(self.area());
        self.grid.touch(area);
        for y in area.y..area.bottom() {
            let from = self.grid.buffer.index_of(area.x, y);
            for cell in &mut self.grid.buffer.content[from..from + usize::from(area.width)] {
                *cell = Cell::EMPTY;
                cell.set_style(style);
            }
        }
    }

    /// Draws a line of text into the first row of an area, cut at its right edge.
    pub(crate) fn line<'a>(&mut self, line: impl Borrow<Line<'a>>, area: Rect) {
        let line = line.borrow();
        let area = area.intersection(self.area());
        if area.is_empty() {
            return;
        }
        self.grid.touch(area);
        // On a reversed ground each colour would be a ground of its own: such a row has the terminal's two colours alone.
        let is_reversed = self.grid.buffer[(area.x, area.y)].modifier.contains(Modifier::REVERSED);
        let mut x = area.x;
        for span in &line.spans {
            let style = line.style.patch(span.style);
            let style = if is_reversed { Style { fg: None, bg: None, ..style } } else { style };
            x = self.text(&span.content, x, area.y, area.right(), style);
        }
    }

    /// Draws a line of text with its links.
    pub(crate) fn linked_line(&mut self, line: &Line<'_>, links: &[(Range<usize>, Arc<str>)], area: Rect) {
        self.line(line, area);
        let column = |at: usize| area.x.saturating_add(u16::try_from(at).unwrap_or(u16::MAX)).min(area.right());
        for (columns, url) in links {
            self.link(area.y, column(columns.start)..column(columns.end), url);
        }
    }

    /// Draws a line of text with its links into one row, of which nothing else is drawn in the first `columns`. If the
    /// frame before has the same in row `before`, its cells are taken from there.
    pub(crate) fn lone_line(
        &mut self,
        line: &Line<'_>,
        links: &[(Range<usize>, Arc<str>)],
        area: Rect,
        columns: u16,
        before: Option<u16>,
    ) {
        let content = self.stamper.hash_one((line, links, area.x, area.width, self.ground));
        let stamp = Stamp { content, columns: columns.min(self.area().width) };
        if !before.is_some_and(|before| self.take_over(before, area.y, stamp)) {
            self.linked_line(line, links, area);
        }
        if let Some(there) = self.grid.stamps.get_mut(usize::from(area.y)) {
            *there = Some(stamp);
        }
    }

    /// Copies the stamped columns of a row from the frame before. False if it has another stamp there.
    fn take_over(&mut self, from: u16, to: u16, stamp: Stamp) -> bool {
        let has_it = self.shown.stamps.get(usize::from(from)) == Some(&Some(stamp));
        if !has_it || self.shown.buffer.area != self.area() || to >= self.area().bottom() {
            return false;
        }
        let cells = |y: u16| {
            let start = usize::from(y) * usize::from(self.shown.buffer.area.width);
            start..start + usize::from(stamp.columns)
        };
        let (from, to) = (cells(from), cells(to));
        self.grid.buffer.content[to.clone()].clone_from_slice(&self.shown.buffer.content[from.clone()]);
        self.grid.links[to].copy_from_slice(&self.shown.links[from]);
        true
    }

    /// Draws text from `x` on, up to `end`. Returns where it ended.
    fn text(&mut self, text: &str, mut x: u16, y: u16, end: u16, style: Style) -> u16 {
        let from = self.grid.buffer.index_of(self.grid.buffer.area.x, y);
        let left = self.grid.buffer.area.x;
        let row = &mut self.grid.buffer.content[from..from + usize::from(self.grid.buffer.area.width)];
        let mut put = |x: u16, symbol: &str| {
            if let Some(cell) = row.get_mut(usize::from(x - left)) {
                cell.set_symbol(symbol);
                cell.set_style(style);
            }
        };
        for grapheme in graphemes(text) {
            let wide = match grapheme {
                "\t" => TAB,
                _ => width(grapheme),
            };
            let Ok(wide) = u16::try_from(wide) else { continue };
            // A grapheme without width has no cell to be drawn in.
            if wide == 0 {
                continue;
            }
            if x.saturating_add(wide) > end {
                // Half of a wide character cannot be drawn.
                for x in x..end {
                    put(x, " ");
                }
                return end;
            }
            match grapheme {
                "\t" => (0..wide).for_each(|i| put(x + i, " ")),
                _ => {
                    put(x, cut(grapheme));
                    (1..wide).for_each(|i| put(x + i, " "));
                }
            }
            x += wide;
        }
        x
    }

    /// Links these cells of a row to a URL.
    pub(crate) fn link(&mut self, y: u16, columns: Range<u16>, url: &Arc<str>) {
        let number = match self.numbers.get(url) {
            Some(number) => *number,
            None => {
                // Numbers are never reused, because the painter compares those of two frames. After 65,535 URLs,
                // further links are plain text.
                let Ok(number) = u16::try_from(self.urls.len() + 1) else { return };
                self.urls.push(Arc::clone(url));
                self.numbers.insert(Arc::clone(url), number);
                number
            }
        };
        let area = self.area();
        if y < area.bottom() {
            let (from, to) = (columns.start.min(area.right()), columns.end.min(area.right()));
            self.grid.touch(Rect { x: from, y, width: to.saturating_sub(from), height: 1 });
            let start = self.grid.buffer.index_of(area.x, y) - usize::from(area.x);
            self.grid.links[start + usize::from(from)..start + usize::from(to)].fill(number);
        }
    }

    /// The URL of a link.
    pub(crate) fn url(&self, number: u16) -> Option<&str> {
        self.urls.get(usize::from(number).checked_sub(1)?).map(AsRef::as_ref)
    }

    /// The frame as text, without blanks at the ends of lines.
    pub(crate) fn to_text(&self) -> String {
        (0..self.area().height).map(|y| self.row_text(y)).collect::<Vec<_>>().join("\n")
    }

    /// The columns of a row up to the last one that is not blank.
    pub(crate) fn filled(&self, y: u16) -> u16 {
        let columns = usize::from(self.area().width);
        let row = self.grid.buffer.content.chunks(columns.max(1)).nth(usize::from(y)).unwrap_or_default();
        let last = row.iter().rposition(|cell| cell.symbol() != " " || cell.bg != Color::Reset);
        last.map_or(0, |last| u16::try_from(last + 1).unwrap_or(u16::MAX))
    }

    /// A row as text, without blanks at its end.
    pub(crate) fn row_text(&self, y: u16) -> String {
        let columns = usize::from(self.area().width);
        let row = self.grid.buffer.content.chunks(columns.max(1)).nth(usize::from(y)).unwrap_or_default();
        let mut line = String::new();
        let mut covered = 0;
        for cell in row {
            // The second half of a wide character has no text of its own.
            if covered > 0 {
                covered -= 1;
                continue;
            }
            covered = width(cell.symbol()).saturating_sub(1);
            line.push_str(cell.symbol());
        }
        line.trim_end().to_owned()
    }
}

/// Splits a text into graphemes. ASCII, the common case, needs no table.
fn graphemes(text: &str) -> impl Iterator<Item = &str> {
    let plain = text.is_ascii();
    let ascii = (0..if plain { text.len() } else { 0 }).map(move |at| &text[at..=at]);
    let rest = if plain { "" } else { text };
    ascii.chain(rest.graphemes(true))
}

/// A grapheme with a limited number of combining marks.
fn cut(grapheme: &str) -> &str {
    if grapheme.len() <= MAX_CELL {
        return grapheme;
    }
    let mut end = MAX_CELL;
    while !grapheme.is_char_boundary(end) {
        end -= 1;
    }
    &grapheme[..end]
}
