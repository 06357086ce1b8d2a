//! The style of the next character, and the sequence (SGR, ECMA-48) that changes it.

use std::fmt::Write as _;

use ratatui::style::{Color, Modifier};

/// The style of the next character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pen {
    pub(super) fg: Color,
    pub(super) bg: Color,
    pub(super) modifier: Modifier,
    pub(super) link: u16,
}

impl Default for Pen {
    fn default() -> Pen {
        Pen { fg: Color::Reset, bg: Color::Reset, modifier: Modifier::empty(), link: 0 }
    }
}

impl Pen {
    /// The sequence that turns the style `before` into this one. Links are not a part of it.
    pub(super) fn write_after(self, before: Pen, out: &mut String) {
        out.push_str("\x1b[");
        let begin = out.len();
        let off = before.modifier - self.modifier;
        let mut on = self.modifier - before.modifier;
        for (modifier, code) in OFF {
            if off.intersects(modifier) {
                code_to(out, begin, code);
                // SGR 22 ends both bold and dim, so the one that remains is set again.
                if code == "22" {
                    on |= self.modifier & (Modifier::BOLD | Modifier::DIM);
                }
            }
        }
        for (modifier, code) in ON {
            if on.contains(modifier) {
                code_to(out, begin, code);
            }
        }
        if before.fg != self.fg {
            colour(out, begin, self.fg, true);
        }
        if before.bg != self.bg {
            colour(out, begin, self.bg, false);
        }
        out.push('m');
    }
}

const ON: [(Modifier, &str); 7] = [
    (Modifier::BOLD, "1"),
    (Modifier::DIM, "2"),
    (Modifier::ITALIC, "3"),
    (Modifier::UNDERLINED, "4"),
    (Modifier::SLOW_BLINK, "5"),
    (Modifier::REVERSED, "7"),
    (Modifier::CROSSED_OUT, "9"),
];
const OFF: [(Modifier, &str); 6] = [
    (Modifier::BOLD.union(Modifier::DIM), "22"),
    (Modifier::ITALIC, "23"),
    (Modifier::UNDERLINED, "24"),
    (Modifier::SLOW_BLINK, "25"),
    (Modifier::REVERSED, "27"),
    (Modifier::CROSSED_OUT, "29"),
];

fn code_to(out: &mut String, begin: usize, code: &str) {
    if out.len() > begin {
        out.push(';');
    }
    out.push_str(code);
}

fn colour(out: &mut String, begin: usize, colour: Color, is_fg: bool) {
    let base = if is_fg { 30 } else { 40 };
    if out.len() > begin {
        out.push(';');
    }
    let bright = |n: u8| base + 60 + u16::from(n);
    let plain = |n: u8| base + u16::from(n);
    let _ = match colour {
        Color::Reset => write!(out, "{}", base + 9),
        Color::Black => write!(out, "{}", plain(0)),
        Color::Red => write!(out, "{}", plain(1)),
        Color::Green => write!(out, "{}", plain(2)),
        Color::Yellow => write!(out, "{}", plain(3)),
        Color::Blue => write!(out, "{}", plain(4)),
        Color::Magenta => write!(out, "{}", plain(5)),
        Color::Cyan => write!(out, "{}", plain(6)),
        Color::Gray => write!(out, "{}", plain(7)),
        Color::DarkGray => write!(out, "{}", bright(0)),
        Color::LightRed => write!(out, "{}", bright(1)),
        Color::LightGreen => write!(out, "{}", bright(2)),
        Color::LightYellow => write!(out, "{}", bright(3)),
        Color::LightBlue => write!(out, "{}", bright(4)),
        Color::LightMagenta => write!(out, "{}", bright(5)),
        Color::LightCyan => write!(out, "{}", bright(6)),
        Color::White => write!(out, "{}", bright(7)),
        Color::Indexed(n) => write!(out, "{};5;{n}", base + 8),
        Color::Rgb(r, g, b) => write!(out, "{};2;{r};{g};{b}", base + 8),
    };
}
