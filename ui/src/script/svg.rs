//! A frame as an SVG picture, with the colours and the grid of the screen.

use std::fmt::Write as _;

use ratatui::buffer::Cell;
use ratatui::style::Modifier;

use crate::render::text::width;
use crate::terminal::canvas::Canvas;
use crate::theme::contrast::seen;

/// The size of a cell in pixels, and the baseline of its text.
const WIDE: usize = 9;
const HIGH: usize = 19;
const BASE: usize = 14;
/// The margin around the screen.
const EDGE: usize = 12;

/// The style of a run of cells, which becomes one piece of text.
#[derive(PartialEq, Clone)]
struct Ink {
    fg: (u8, u8, u8),
    bg: (u8, u8, u8),
    modifier: Modifier,
}

/// The picture of a frame.
pub(crate) fn picture(canvas: &Canvas) -> String {
    let area = canvas.area();
    let (columns, rows) = (usize::from(area.width), usize::from(area.height));
    let (width_px, height_px) = (columns * WIDE + 2 * EDGE, rows * HIGH + 2 * EDGE);
    let ground = canvas.grid.buffer.content.first().map_or((0, 0, 0), |cell| ink(cell).bg);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width_px} {height_px}\" width=\"{width_px}\" height=\"{height_px}\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{}\"/>\n\
         <g font-family=\"'JetBrains Mono','DejaVu Sans Mono',Menlo,Consolas,monospace\" font-size=\"15\" xml:space=\"preserve\">\n",
        hex(ground)
    );
    for (y, cells) in canvas.grid.buffer.content.chunks(columns.max(1)).enumerate() {
        let mut x = 0;
        while x < columns {
            let look = ink(&cells[x]);
            let (from, mut text) = (x, String::new());
            while x < columns && ink(&cells[x]) == look {
                text.push_str(cells[x].symbol());
                x += width(cells[x].symbol()).max(1);
            }
            piece(&mut svg, &look, ground, &text, from, x.min(columns) - from, y);
        }
    }
    if let Some(caret) = canvas.caret {
        let (x, y) = (EDGE + usize::from(caret.x) * WIDE, EDGE + usize::from(caret.y) * HIGH);
        let _ = writeln!(svg, "<rect x=\"{x}\" y=\"{y}\" width=\"2\" height=\"{HIGH}\" fill=\"#888\"/>");
    }
    svg + "</g>\n</svg>\n"
}

fn piece(svg: &mut String, look: &Ink, ground: (u8, u8, u8), text: &str, from: usize, columns: usize, y: usize) {
    let (left, top, wide) = (EDGE + from * WIDE, EDGE + y * HIGH, columns * WIDE);
    if look.bg != ground {
        let _ = writeln!(
            svg,
            "<rect x=\"{left}\" y=\"{top}\" width=\"{wide}\" height=\"{HIGH}\" fill=\"{}\"/>",
            hex(look.bg)
        );
    }
    let shown = text.trim_end();
    if shown.is_empty() {
        return;
    }
    let blanks = shown.len() - shown.trim_start().len();
    let body = shown.trim_start();
    let (x, long) = (left + blanks * WIDE, width(body) * WIDE);
    let mut style = String::new();
    for (modifier, attribute) in [
        (Modifier::BOLD, " font-weight=\"bold\""),
        (Modifier::ITALIC, " font-style=\"italic\""),
        (Modifier::UNDERLINED, " text-decoration=\"underline\""),
        (Modifier::CROSSED_OUT, " text-decoration=\"line-through\""),
    ] {
        if look.modifier.contains(modifier) {
            style.push_str(attribute);
        }
    }
    let escaped = body.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace(' ', "\u{a0}");
    let _ = writeln!(
        svg,
        "<text x=\"{x}\" y=\"{}\" textLength=\"{long}\" lengthAdjust=\"spacingAndGlyphs\" fill=\"{}\"{style}>{escaped}</text>",
        top + BASE,
        hex(look.fg)
    );
}

fn ink(cell: &Cell) -> Ink {
    let (mut fg, mut bg) = (seen(cell.fg, (229, 229, 229)), seen(cell.bg, (0, 0, 0)));
    if cell.modifier.contains(Modifier::REVERSED) {
        std::mem::swap(&mut fg, &mut bg);
    }
    Ink { fg, bg, modifier: cell.modifier - Modifier::REVERSED }
}

fn hex((r, g, b): (u8, u8, u8)) -> String {
    format!("#{r:02x}{g:02x}{b:02x}")
}
