//! The bytes that turn one frame into the next: changed cells, and rows that the terminal can move itself.

use std::fmt::Write as _;

use ratatui::buffer::Cell;
use ratatui::layout::{Position, Rect};
use ratatui::style::{Color, Modifier};

use super::canvas::{Canvas, Grid, Shift};
use super::width::width;

mod pen; // the style of the next character

use pen::Pen;

/// Up to this many unchanged cells between two changed ones are written again, which is shorter than moving the cursor.
const BRIDGE: usize = 4;
/// From this many blanks on, erasing is shorter than writing.
const ERASED: usize = 8;

/// What is known of the terminal besides the frame that it shows.
#[derive(Debug, Default)]
pub(crate) struct Painter {
    /// Rows with unknown content: they are written as a whole.
    unknown: Vec<bool>,
    caret: Option<Position>,
    /// The pen and the cursor are unknown as well.
    is_lost: bool,
    /// The position of the terminal's cursor. None if it is not certain.
    at: Option<Position>,
    pen: Pen,
    /// The row of the terminal in which the frame begins.
    first: u16,
    /// Erased cells get the pen's background. In a few terminals they get the default background.
    erasing: Erasing,
    pub(crate) counts: Counts,
}

/// The background that erased cells get.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Erasing {
    /// That of the pen.
    PenColour,
    /// The terminal's default.
    #[default]
    DefaultColour,
}

/// Whether the terminal shows a frame only once it is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Updates {
    Plain,
    Synchronized,
}

/// Counts of all output so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) frames: u64,
    pub(crate) bytes: u64,
    pub(crate) cells: u64,
}

impl Painter {
    pub(crate) fn new(erasing: Erasing) -> Painter {
        Painter { erasing, is_lost: true, ..Painter::default() }
    }

    /// Sets the row of the terminal in which the frame begins.
    pub(crate) fn begin_at(&mut self, row: u16) {
        self.first = row;
    }

    /// Forgets what the terminal shows: the next frame is written as a whole.
    pub(crate) fn forget(&mut self) {
        self.unknown.fill(true);
        self.caret = None;
        self.at = None;
        self.is_lost = true;
    }

    /// Appends the bytes that turn the shown frame into this one, which becomes the shown frame.
    pub(crate) fn paint(&mut self, canvas: &mut Canvas, updates: Updates, out: &mut String) {
        let began = out.len();
        let area = canvas.area();
        if canvas.shown.buffer.area != area {
            canvas.shown = Grid::new(area);
            self.unknown = vec![true; usize::from(area.height)];
            // It is also unknown whether the cursor is visible.
            (self.caret, self.at, self.is_lost) = (None, None, true);
        }
        let synchronized = updates == Updates::Synchronized;
        if synchronized {
            out.push_str("\x1b[?2026h");
        }
        let body = out.len();
        if std::mem::take(&mut self.is_lost) {
            out.push_str("\x1b[m\x1b]8;;\x1b\\\x1b[?25l");
            self.pen = Pen::default();
        }
        // The cursor is hidden while cells are written. Otherwise it would be seen jumping over them.
        let was_shown = self.caret.is_some();
        let start = out.len();
        if was_shown {
            out.push_str("\x1b[?25l");
        }
        let hidden = out.len();
        if let Some(shift) = canvas.shift.take() {
            self.shift(canvas, &shift, out);
        }
        // The last column is the scrollbar's, in colours of its own. Written after all rows, it changes the pen once.
        let last: Vec<u16> = (0..area.height).filter(|y| self.row(canvas, *y, area, out)).collect();
        for y in last {
            let at = usize::from(y + 1) * usize::from(area.width) - 1;
            self.go(Position { x: area.width - 1, y }, out);
            self.cell(&canvas.grid.buffer.content[at], canvas.grid.links[at], 1, canvas, out);
            // Terminals differ about the cursor position after the last column.
            self.at = None;
        }
        self.set_link(0, canvas, out);
        let changed = out.len() > hidden;
        if !changed {
            out.truncate(start);
        }
        match canvas.caret {
            Some(caret) => {
                if self.at != Some(caret) {
                    self.go(caret, out);
                }
                if changed || !was_shown {
                    out.push_str("\x1b[?25h");
                }
            }
            None if !changed && was_shown => out.push_str("\x1b[?25l"),
            // A hidden cursor is left at the start of the last row, after every frame.
            None if changed && area.height > 0 => self.go(Position { x: 0, y: area.height - 1 }, out),
            None => {}
        }
        self.caret = canvas.caret;
        self.unknown.fill(false);
        std::mem::swap(&mut canvas.shown, &mut canvas.grid);
        if out.len() == body {
            out.truncate(began);
        } else if synchronized {
            out.push_str("\x1b[?2026l");
        }
        self.counts.frames += u64::from(out.len() > began);
        self.counts.bytes += (out.len() - began) as u64;
    }

    /// Moves rows with the terminal's scroll region, if that leaves less to write.
    fn shift(&mut self, canvas: &mut Canvas, shift: &Shift, out: &mut String) {
        let area = canvas.area();
        let columns = usize::from(area.width);
        let (top, bottom) = (usize::from(shift.rows.start), usize::from(shift.rows.end.min(area.height)));
        let by = shift.by.unsigned_abs() as usize;
        if by == 0 || bottom <= top || by >= bottom - top || self.unknown[top..bottom].iter().any(|it| *it) {
            return;
        }
        // If more than half of the rows are new, scrolling saves little.
        if by * 2 > bottom - top {
            return;
        }
        let next = &canvas.grid.buffer.content;
        // The terminal fills the new rows with the pen's background. That of their first cell is the best guess.
        let exposed = if shift.by > 0 { bottom - 1 } else { top };
        let corner = &next[exposed * columns];
        self.set_pen(Pen { fg: self.pen.fg, bg: corner.bg, modifier: Modifier::empty(), link: 0 }, canvas, out);
        let direction = if shift.by > 0 { 'S' } else { 'T' };
        let _ = write!(out, "\x1b[{};{}r\x1b[{by}{direction}\x1b[r", top + 1, bottom);
        // Setting the scroll region moves the cursor.
        self.at = None;
        let content = &mut canvas.shown.buffer.content[top * columns..bottom * columns];
        let links = &mut canvas.shown.links[top * columns..bottom * columns];
        let stamps = &mut canvas.shown.stamps[top..bottom];
        if shift.by > 0 {
            content.rotate_left(by * columns);
            links.rotate_left(by * columns);
            stamps.rotate_left(by);
            self.unknown[bottom - by..bottom].fill(true);
        } else {
            content.rotate_right(by * columns);
            links.rotate_right(by * columns);
            stamps.rotate_right(by);
            self.unknown[top..top + by].fill(true);
        }
    }

    /// Writes the changed cells of a row. True when its last cell is left to write.
    fn row(&mut self, canvas: &Canvas, y: u16, area: Rect, out: &mut String) -> bool {
        let columns = usize::from(area.width);
        let start = usize::from(y) * columns;
        let next = &canvas.grid.buffer.content[start..start + columns];
        let links = &canvas.grid.links[start..start + columns];
        let whole = self.unknown[usize::from(y)];
        let stamp = canvas.grid.stamps[usize::from(y)].filter(|_| !whole);
        let same =
            stamp.filter(|_| stamp == canvas.shown.stamps[usize::from(y)]).map_or(0, |it| usize::from(it.columns));
        if !whole
            && next[same..] == canvas.shown.buffer.content[start + same..start + columns]
            && links[same..] == canvas.shown.links[start + same..start + columns]
        {
            return false;
        }
        let mut x = same;
        // The number of following cells whose content is uncertain, because a wide character covers or covered them.
        let mut stale = 0_usize;
        let mut last_written: Option<usize> = None;
        while x < columns {
            let (cell, link) = (&next[x], links[x]);
            let wide = width(cell.symbol()).max(1);
            let changed = whole
                || stale > 0
                || *cell != canvas.shown.buffer.content[start + x]
                || link != canvas.shown.links[start + x];
            stale = stale.saturating_sub(wide);
            if changed {
                let blanks = self.blanks(&next[x..], &links[x..]);
                if blanks >= ERASED {
                    self.place(last_written, x, y, next, links, canvas, out);
                    self.set_pen(Pen { fg: self.pen.fg, bg: cell.bg, ..Pen::default() }, canvas, out);
                    match x + blanks == columns {
                        true => out.push_str("\x1b[K"),
                        false => drop(write!(out, "\x1b[{blanks}X")),
                    }
                    let end = &canvas.shown.buffer.content[start + x + blanks - 1];
                    stale = stale.saturating_sub(blanks - wide).max(width(end.symbol()).saturating_sub(1));
                    last_written = None;
                    x += blanks;
                    continue;
                }
                if x + 1 == columns && wide == 1 {
                    return true;
                }
                self.place(last_written, x, y, next, links, canvas, out);
                // Overwriting one half of a wide character erases the other half.
                for (over, old) in canvas.shown.buffer.content[start + x..start + columns].iter().take(wide).enumerate()
                {
                    stale = stale.max((over + width(old.symbol())).saturating_sub(wide));
                }
                self.cell(cell, link, wide.min(columns - x), canvas, out);
                last_written = Some(x + wide);
                // If the terminal draws this character with another width, the cursor is elsewhere. Setting the
                // position again keeps the rest of the row in place.
                if !is_sure(cell.symbol()) {
                    self.at = None;
                    let most: usize = cell.symbol().chars().map(|c| width(c.encode_utf8(&mut [0; 4]))).sum();
                    stale = stale.max(most.saturating_sub(wide));
                } else if x + wide >= columns {
                    // Terminals differ about the cursor position after the last column.
                    self.at = None;
                }
            }
            x += wide;
        }
        false
    }

    /// Cells that can be erased instead of written: blanks in one background.
    fn blanks(&self, cells: &[Cell], links: &[u16]) -> usize {
        if !(self.erasing == Erasing::PenColour || cells[0].bg == Color::Reset) {
            return 0;
        }
        let bg = cells[0].bg;
        cells.iter().zip(links).take_while(|(cell, link)| is_blank(cell) && cell.bg == bg && **link == 0).count()
    }

    /// Goes to a column of a row. A few unchanged cells are written again instead.
    #[expect(clippy::too_many_arguments, reason = "a step of `row`, with all it knows")]
    fn place(
        &mut self,
        from: Option<usize>,
        x: usize,
        y: u16,
        next: &[Cell],
        links: &[u16],
        canvas: &Canvas,
        out: &mut String,
    ) {
        let target = Position { x: u16::try_from(x).unwrap_or(u16::MAX), y };
        if self.at == Some(target) {
            return;
        }
        if let Some(from) = from.filter(|from| self.at.is_some() && x > *from && x - from <= BRIDGE) {
            let same = |at: usize| {
                let it = &next[at];
                it.symbol().len() == 1 && self.pen == self.pen_of(it, links[at])
            };
            if (from..x).all(same) {
                for at in from..x {
                    self.cell(&next[at], links[at], 1, canvas, out);
                }
                return;
            }
        }
        self.go(target, out);
    }

    fn go(&mut self, to: Position, out: &mut String) {
        match self.at {
            Some(at) if at.y == to.y && to.x > at.x => match to.x - at.x {
                1 => out.push_str("\x1b[C"),
                n => drop(write!(out, "\x1b[{n}C")),
            },
            Some(at) if at.y.checked_add(1) == Some(to.y) && to.x == 0 => out.push_str("\r\n"),
            _ if to.x == 0 => drop(write!(out, "\x1b[{}H", self.first + to.y + 1)),
            _ => drop(write!(out, "\x1b[{};{}H", self.first + to.y + 1, to.x + 1)),
        }
        self.at = Some(to);
    }

    fn cell(&mut self, cell: &Cell, link: u16, wide: usize, canvas: &Canvas, out: &mut String) {
        self.cell_with(self.pen_of(cell, link), cell, wide, canvas, out);
    }

    fn cell_with(&mut self, pen: Pen, cell: &Cell, wide: usize, canvas: &Canvas, out: &mut String) {
        self.set_pen(pen, canvas, out);
        let symbol = cell.symbol();
        // A wide character that does not fit, a control character, or the second half of a wide character.
        if width(symbol) > wide || symbol.chars().any(char::is_control) || symbol.is_empty() {
            out.push_str(&" ".repeat(wide));
        } else {
            // Clears all of its cells first, because a terminal that draws it narrower would leave the second one as it
            // was.
            if wide > 1 && !is_sure(symbol) {
                let _ = write!(out, "{:wide$}", "");
                match self.at {
                    Some(at) => drop(write!(out, "\x1b[{};{}H", self.first + at.y + 1, at.x + 1)),
                    None => drop(write!(out, "\x1b[{wide}D")),
                }
            }
            out.push_str(symbol);
        }
        self.counts.cells += 1;
        if let Some(at) = &mut self.at {
            at.x = at.x.saturating_add(u16::try_from(wide).unwrap_or(1));
        }
    }

    /// The pen that a cell is written with. Nothing of a blank has the colour of the text.
    fn pen_of(&self, cell: &Cell, link: u16) -> Pen {
        let fg = if is_blank(cell) { self.pen.fg } else { cell.fg };
        Pen { fg, bg: cell.bg, modifier: cell.modifier, link }
    }

    fn set_link(&mut self, link: u16, canvas: &Canvas, out: &mut String) {
        if self.pen.link != link {
            match canvas.url(link) {
                Some(url) => drop(write!(out, "\x1b]8;id={link};{url}\x1b\\")),
                None => out.push_str("\x1b]8;;\x1b\\"),
            }
            self.pen.link = link;
        }
    }

    fn set_pen(&mut self, pen: Pen, canvas: &Canvas, out: &mut String) {
        self.set_link(pen.link, canvas, out);
        if self.pen == pen {
            return;
        }
        pen.write_after(self.pen, out);
        self.pen = pen;
    }
}

/// Nothing but the background of the cell is seen.
fn is_blank(cell: &Cell) -> bool {
    let lines = Modifier::REVERSED.union(Modifier::UNDERLINED).union(Modifier::CROSSED_OUT);
    cell.symbol() == " " && !cell.modifier.intersects(lines)
}

/// The frame as ANSI text, row by row.
pub(crate) fn to_ansi(canvas: &Canvas) -> String {
    let columns = usize::from(canvas.area().width);
    let pen = |_: &Painter, cell: &Cell, link| Pen { fg: cell.fg, bg: cell.bg, modifier: cell.modifier, link };
    rows_of(canvas, "\n", pen, |_, _| columns)
}

/// The frame as ANSI text for the history, without blanks at the ends of rows.
pub(crate) fn to_printed(canvas: &Canvas) -> String {
    let is_empty = |(cell, link): (&Cell, &u16)| cell.symbol() == " " && cell.bg == Color::Reset && *link == 0;
    rows_of(canvas, "\r\n", Painter::pen_of, |cells, links| {
        cells.iter().zip(links).rposition(|it| !is_empty(it)).map_or(0, |last| last + 1)
    })
}

fn rows_of(
    canvas: &Canvas,
    end: &str,
    pen: impl Fn(&Painter, &Cell, u16) -> Pen,
    length: impl Fn(&[Cell], &[u16]) -> usize,
) -> String {
    let mut out = String::new();
    let columns = usize::from(canvas.area().width).max(1);
    let mut painter = Painter::default();
    for (cells, links) in canvas.grid.buffer.content.chunks(columns).zip(canvas.grid.links.chunks(columns)) {
        let (mut x, length) = (0, length(cells, links));
        while x < length {
            let wide = width(cells[x].symbol()).max(1);
            painter.cell_with(pen(&painter, &cells[x], links[x]), &cells[x], wide, canvas, &mut out);
            x += wide;
        }
        painter.set_pen(Pen::default(), canvas, &mut out);
        out.push_str(end);
    }
    out
}

/// Terminals agree about the width: one character, neither recent nor ambiguous.
fn is_sure(symbol: &str) -> bool {
    let mut chars = symbol.chars();
    match (chars.next(), chars.next()) {
        (Some(c), None) => {
            matches!(c as u32, 0x20..=0x7e | 0xc0..=0x24f | 0x370..=0x5ff | 0x2500..=0x259f | 0x3041..=0x33ff | 0x3400..=0x9fff | 0xac00..=0xd7a3 | 0xff01..=0xff60)
                || matches!(c, '…' | '·' | '│' | '❯' | '•' | '✓' | '✗' | '●' | '○' | '→' | '↓' | '↑')
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use ratatui::style::Style;
    use ratatui::text::Line;

    use super::*;

    struct Terminal {
        painter: Painter,
        canvas: Canvas,
        parser: vt100::Parser,
        bytes: usize,
    }

    impl Terminal {
        fn new(columns: u16, rows: u16) -> Terminal {
            let size = |n: u16| std::num::NonZeroU16::new(n).expect("not zero");
            let mut terminal = Terminal {
                painter: Painter::new(Erasing::PenColour),
                canvas: Canvas::default(),
                parser: vt100::Parser::new(size(rows), size(columns), 0),
                bytes: 0,
            };
            // Wrapping is off, as on the real screen.
            terminal.parser.process(b"\x1b[?7l");
            terminal
        }

        /// Draws a frame, and checks that the terminal shows exactly that.
        fn show(&mut self, columns: u16, rows: &[(&str, Style)], shift: Option<Shift>) {
            let height = u16::try_from(rows.len()).expect("few");
            self.canvas.begin((columns, height), Style::new());
            for (y, (text, style)) in (0..height).zip(rows) {
                let area = Rect { x: 0, y, width: columns, height: 1 };
                self.canvas.fill(area, *style);
                self.canvas.line(Line::styled(*text, *style), area);
            }
            self.canvas.shift = shift;
            let wanted = self.canvas.to_text();
            let mut out = String::new();
            self.painter.paint(&mut self.canvas, Updates::Synchronized, &mut out);
            self.bytes = out.len();
            self.parser.process(out.as_bytes());
            let shown: Vec<String> = (0..height)
                .map(|y| {
                    self.parser.screen().rows(0, columns).nth(usize::from(y)).unwrap_or_default().trim_end().to_owned()
                })
                .collect();
            assert_eq!(shown.join("\n"), wanted, "{out:?}");
            for y in 0..height {
                for x in 0..columns {
                    let (cell, style) = (self.parser.screen().cell(y, x).expect("inside"), rows[usize::from(y)].1);
                    // The parser stores no colour for the second half of a wide character.
                    if cell.is_wide_continuation() {
                        continue;
                    }
                    assert_eq!(
                        cell.bgcolor() == vt100::Color::Rgb(0, 0, 90),
                        style.bg.is_some(),
                        "{x},{y} of {wanted:?}: {out:?}"
                    );
                    if cell.has_contents() && cell.contents() != " " {
                        let red = matches!(cell.fgcolor(), vt100::Color::Rgb(200, 0, 0));
                        assert_eq!(red, style.fg == Some(Color::Rgb(200, 0, 0)), "{x},{y} of {wanted:?}: {out:?}");
                        assert_eq!(cell.bold(), style.add_modifier.contains(Modifier::BOLD), "{x},{y}: {out:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn any_frame_after_any_other_is_shown_as_it_is() {
        let words = [
            "",
            "plain",
            "漢字かな",
            "①② ☂",
            "e\u{301}e\u{301}",
            "a漢b",
            " ",
            "────────",
            "👍 x",
            "the quick brown fox jumps",
        ];
        let styles = [
            Style::new(),
            Style::new().fg(Color::Rgb(200, 0, 0)).bg(Color::Rgb(0, 0, 90)),
            Style::new().add_modifier(Modifier::BOLD),
        ];
        let mut seed = 7_u64;
        let mut dice = |sides: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) as usize % sides
        };
        for columns in [1, 2, 7, 16, 40] {
            let mut terminal = Terminal::new(columns, 6);
            let mut rows: Vec<(&str, Style)> = vec![("", Style::new()); 6];
            for _ in 0..200 {
                let by = dice(9) as i32 - 4;
                let mut shift = None;
                if by != 0 && dice(2) == 0 {
                    // Rows scroll, as in a transcript, and the rows that come in are new.
                    let n = by.unsigned_abs() as usize;
                    if by > 0 {
                        rows[1..6].rotate_left(n.min(5))
                    } else {
                        rows[1..6].rotate_right(n.min(5))
                    }
                    shift = Some(Shift { rows: 1..6, by });
                }
                for _ in 0..dice(4) {
                    rows[dice(6)] = (words[dice(words.len())], styles[dice(3)]);
                }
                terminal.show(columns, &rows, shift);
            }
        }
    }

    #[test]
    fn a_terminal_that_measures_emoji_otherwise_spoils_nothing_beside_them() {
        for family in ["👨‍👩‍👧", "❤️", "🇩🇪", "👍🏽", "☺️"] {
            let mut terminal = Terminal::new(20, 2);
            let (old, new) = (format!("xxxxxxxxxx {family}."), format!("{family} behind, {family}"));
            for text in ["0123456789abcdefghij", &old, &new, "0123456789abcdefghij", &new] {
                terminal.canvas.begin((20, 2), Style::new());
                terminal.canvas.line(Line::raw(text), Rect { x: 0, y: 0, width: 20, height: 1 });
                let mut out = String::new();
                terminal.painter.paint(&mut terminal.canvas, Updates::Synchronized, &mut out);
                terminal.parser.process(out.as_bytes());
            }
            let shown = |x| terminal.parser.screen().cell(0, x).expect("inside").contents().to_owned();
            let behind: String = (3..10).map(shown).collect();
            assert_eq!(behind, "behind,", "{family}");
            assert_eq!(terminal.parser.screen().rows(0, 20).nth(1).unwrap_or_default(), "", "{family}");
        }
    }

    #[test]
    fn a_frame_that_changes_nothing_writes_nothing_and_a_scroll_writes_a_line() {
        let mut terminal = Terminal::new(80, 40);
        let text: Vec<String> = (0..60).map(|i| format!("line {i} {}", "word ".repeat(12))).collect();
        let frame = |from: usize| -> Vec<(&str, Style)> {
            text[from..from + 40].iter().map(|t| (t.as_str(), Style::new().fg(Color::Rgb(200, 0, 0)))).collect()
        };
        terminal.show(80, &frame(0), None);
        assert!(terminal.bytes > 2_000);
        terminal.show(80, &frame(0), None);
        assert_eq!(terminal.bytes, 0);
        terminal.show(80, &frame(1), Some(Shift { rows: 0..40, by: 1 }));
        assert!(terminal.bytes < 160, "{}", terminal.bytes);
        terminal.show(80, &frame(0), Some(Shift { rows: 0..40, by: -1 }));
        assert!(terminal.bytes < 160, "{}", terminal.bytes);
    }
}
