//! The colours in the output of programs, mapped to readable ones of the theme.

use pixir_core::event::Colouring;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Span;

use crate::theme::Theme;

/// The line of an output that begins at this byte, as styled pieces.
pub(crate) fn spans(line: &str, start: usize, colours: &[Colouring], base: Style, theme: &Theme) -> Vec<Span<'static>> {
    let mut style = base;
    let mut spans: Vec<Span<'static>> = Vec::new();
    let mut from = 0;
    for it in colours {
        let Ok(at) = usize::try_from(it.at) else { break };
        if at >= start + line.len() {
            break;
        }
        if let Some(here) = at.checked_sub(start).filter(|here| *here > from && line.is_char_boundary(*here)) {
            spans.push(Span::styled(line[from..here].to_owned(), style));
            from = here;
        }
        style = turned(style, &it.sgr, base, theme);
    }
    spans.push(Span::styled(line[from..].to_owned(), style));
    spans
}

/// The style after an SGR sequence.
fn turned(mut style: Style, sgr: &str, base: Style, theme: &Theme) -> Style {
    let mut fields = sgr.split(';');
    while let Some(field) = fields.next() {
        // Parameters after a colon belong to the number before.
        let mut numbers = field.split(':').map(number);
        let n = numbers.next().unwrap_or(0);
        let own: Vec<u16> = numbers.collect();
        style = match n {
            0 => base,
            1 => style.add_modifier(Modifier::BOLD),
            3 => style.add_modifier(Modifier::ITALIC),
            4 if own.first() == Some(&0) => style.remove_modifier(Modifier::UNDERLINED),
            4 => style.add_modifier(Modifier::UNDERLINED),
            22 => style.remove_modifier(Modifier::BOLD),
            23 => style.remove_modifier(Modifier::ITALIC),
            24 => style.remove_modifier(Modifier::UNDERLINED),
            30..=37 => style.fg(named(n - 30, theme)),
            90..=97 => style.fg(named(n - 90, theme)),
            38 | 48 => {
                let mut next = || fields.next().map_or(0, number);
                let colour = match own[..] {
                    [5, index, ..] => Some(indexed(index, theme)),
                    // A colour space can precede the channels.
                    [2, r, g, b] | [2, _, r, g, b, ..] => Some(like(r, g, b, theme)),
                    [] => match next() {
                        5 => Some(indexed(next(), theme)),
                        2 => Some(like(next(), next(), next(), theme)),
                        _ => None,
                    },
                    _ => None,
                };
                // The background stays the theme's.
                colour.filter(|_| n == 38).map_or(style, |colour| style.fg(colour))
            }
            39 => base.fg.map_or(style, |colour| style.fg(colour)),
            _ => style,
        };
    }
    style
}

/// A parameter; larger values are cut.
fn number(text: &str) -> u16 {
    text.parse().unwrap_or(0).min(255)
}

/// One of the eight colours, as a colour of the theme.
fn named(n: u16, theme: &Theme) -> Color {
    match n % 8 {
        1 => theme.error,
        2 => theme.success,
        3 => theme.warning,
        4 => theme.accent,
        5 => theme.tool,
        6 => theme.code,
        _ => theme.text,
    }
}

/// One of the 256 colours: the sixteen, the 6×6×6 cube, the greys.
fn indexed(n: u16, theme: &Theme) -> Color {
    match n {
        0..=15 => named(n % 8, theme),
        16..=231 => {
            let level = |part: u16| part % 6 * 51;
            like(level((n - 16) / 36), level((n - 16) / 6), level(n - 16), theme)
        }
        _ => theme.text,
    }
}

/// The most similar one of the eight colours.
fn like(r: u16, g: u16, b: u16, theme: &Theme) -> Color {
    let most = r.max(g).max(b);
    if most - r.min(g).min(b) < 48 {
        return theme.text;
    }
    let is_high = |channel: u16| u16::from(channel * 3 > most * 2);
    named(is_high(r) | is_high(g) << 1 | is_high(b) << 2, theme)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theme::{Background, Depth};

    #[test]
    fn a_colour_is_understood_however_it_is_written_and_nonsense_is_none() {
        let theme = Theme::load("dark", None, Depth::True, Background::Dark).expect("a theme");
        let base = theme.fg(theme.text);
        let turned = |sgr: &str| turned(base, sgr, base, &theme);
        let red = base.fg(theme.error);
        for sgr in ["31", "91", "38;5;1", "38:5:1", "38;2;250;0;0", "38:2:250:0:0", "38:2::250:0:0", "38;2;30000;0;0"] {
            assert_eq!(turned(sgr), red, "{sgr}");
        }
        assert_eq!(turned("4:3"), base.add_modifier(Modifier::UNDERLINED), "a curly line is a line, and not italic");
        assert_eq!(turned("4;4:0"), base.remove_modifier(Modifier::UNDERLINED));
        assert_eq!(turned("48;2;1;2;3;31"), red, "what stands behind is passed over");
        for sgr in ["", "38", "38;2", "38;5;99999", "38:2", "999999", ";;;", "38;2;1"] {
            let _ = turned(sgr);
        }
    }
}
