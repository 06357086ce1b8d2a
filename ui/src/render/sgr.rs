//! Colours that a program has given its output, in those of the theme: each can be read on it.

use pixir_core::event::Colouring;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Span;

use crate::theme::Theme;

/// The line of an output that begins at this byte, in pieces of one look each.
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

/// The style behind a sequence.
fn turned(mut style: Style, sgr: &str, base: Style, theme: &Theme) -> Style {
    let mut numbers = sgr.split([';', ':']).map(|n| n.parse::<u16>().unwrap_or(0));
    while let Some(n) = numbers.next() {
        style = match n {
            0 => base,
            1 => style.add_modifier(Modifier::BOLD),
            3 => style.add_modifier(Modifier::ITALIC),
            4 => style.add_modifier(Modifier::UNDERLINED),
            22 => style.remove_modifier(Modifier::BOLD),
            23 => style.remove_modifier(Modifier::ITALIC),
            24 => style.remove_modifier(Modifier::UNDERLINED),
            30..=37 => style.fg(named(n - 30, theme)),
            90..=97 => style.fg(named(n - 90, theme)),
            38 | 48 => {
                let colour = match numbers.next() {
                    Some(5) => numbers.next().map(|index| indexed(index, theme)),
                    Some(2) => {
                        let mut channel = || numbers.next().unwrap_or(0);
                        Some(like(channel(), channel(), channel(), theme))
                    }
                    _ => None,
                };
                // What stands behind a text is the theme's.
                colour.filter(|_| n == 38).map_or(style, |colour| style.fg(colour))
            }
            39 => base.fg.map_or(style, |colour| style.fg(colour)),
            _ => style,
        };
    }
    style
}

/// One of the eight, as the theme means it.
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

/// One of the 256: the sixteen, the cube of six levels, the greys.
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

/// The one of the eight that is most like it.
fn like(r: u16, g: u16, b: u16, theme: &Theme) -> Color {
    let most = r.max(g).max(b);
    if most - r.min(g).min(b) < 48 {
        return theme.text;
    }
    let is_high = |channel: u16| u16::from(channel * 3 > most * 2);
    named(is_high(r) | is_high(g) << 1 | is_high(b) << 2, theme)
}
