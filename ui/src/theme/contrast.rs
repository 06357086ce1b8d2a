//! The contrast of each text colour on its background: WCAG 2.2, success criterion 1.4.3.

use ratatui::style::Color;

use super::{Background, Depth, STEPS, Theme};

/// A pair of colours that occurs on the screen.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// The token of the text.
    pub token: &'static str,
    /// The token of the background.
    pub on: &'static str,
    /// (L1 + 0.05) / (L2 + 0.05), from 1 to 21.
    pub ratio: f64,
    /// The smallest ratio that it should have.
    pub wanted: f64,
}

impl Finding {
    /// The contrast is sufficient.
    pub fn is_enough(&self) -> bool {
        self.ratio >= self.wanted
    }
}

/// The ratio that text should have.
const TEXT: f64 = 4.5;
/// The ratio that text should have in a high-contrast theme.
const HIGH: f64 = 7.0;

/// Checks every pair of a theme. Terminal colours count as those of xterm, the default background as black or white.
pub fn check(theme: &Theme, background: Background) -> Vec<Finding> {
    let wanted = if theme.name.starts_with("high-contrast") { HIGH } else { TEXT };
    // What the terminal shows where the theme sets no colour.
    let (ground, own) = match background {
        Background::Dark => ((0, 0, 0), (229, 229, 229)),
        Background::Light => ((255, 255, 255), (0, 0, 0)),
    };
    let mut findings = Vec::new();
    let mut see = |token, text: Color, on, behind: Color| {
        let ratio = ratio(seen(text, own), seen(behind, ground));
        findings.push(Finding { token, on, ratio, wanted });
    };
    let it = theme;
    let said = [
        ("text", it.text),
        ("dim", it.dim),
        ("accent", it.accent),
        ("user", it.user),
        ("heading", it.heading),
        ("strong", it.strong),
        ("link", it.link),
        ("quote", it.quote),
        ("code", it.code),
        ("success", it.success),
        ("warning", it.warning),
        ("error", it.error),
        ("thinking", it.thinking),
        ("tool", it.tool),
        ("added", it.added),
        ("removed", it.removed),
        ("mode_read_only", it.mode_read_only),
        ("mode_ask", it.mode_ask),
        ("mode_auto", it.mode_auto),
    ];
    let coded = [
        ("keyword", it.keyword),
        ("string", it.string),
        ("comment", it.comment),
        ("number", it.number),
        ("function", it.function),
        ("type", it.r#type),
    ];
    said.into_iter().for_each(|(token, colour)| see(token, colour, "background", it.background));
    coded
        .into_iter()
        .chain([("text", it.text)])
        .for_each(|(token, colour)| see(token, colour, "code_panel", it.code_panel));
    for (token, colour) in [("text", it.text), ("dim", it.dim), ("accent", it.accent), ("user", it.user)] {
        see(token, colour, "panel", it.panel);
    }
    // Any row can be chosen. Where the selection has no colour of its own, it is reversed.
    if it.selection != Color::Reset {
        said.into_iter().chain(coded).for_each(|(token, colour)| see(token, colour, "selection", it.selection));
    }
    see("added", it.added, "added_panel", it.added_panel);
    see("removed", it.removed, "removed_panel", it.removed_panel);
    // Code has its colours on these grounds too. Where a theme sets no ground, lines keep the colour of their marks.
    for (on, ground) in [("added_panel", it.added_panel), ("removed_panel", it.removed_panel)] {
        if ground != Color::Reset {
            coded.into_iter().chain([("text", it.text)]).for_each(|(token, colour)| see(token, colour, on, ground));
        }
    }
    for (on, ground) in [("added_word", it.added_word), ("removed_word", it.removed_word)] {
        if ground != Color::Reset {
            see("strong", it.strong, on, ground);
        }
    }
    findings
}

/// Checks all embedded themes at every depth: name, depth, and the pairs.
pub fn check_all() -> Vec<(String, Depth, Vec<Finding>)> {
    let mut all = Vec::new();
    for (name, _) in super::EMBEDDED {
        for depth in [Depth::True, Depth::Indexed, Depth::Named] {
            let backgrounds: &[Background] = match (name.ends_with("light"), name) {
                (_, "mono") => &[Background::Dark, Background::Light],
                (true, _) => &[Background::Light],
                (false, _) => &[Background::Dark],
            };
            for background in backgrounds {
                if let Ok(theme) = Theme::load(name, None, depth, *background) {
                    all.push((name.to_owned(), depth, check(&theme, *background)));
                }
            }
        }
    }
    all
}

pub(super) fn is_darker(a: Color, b: Color) -> bool {
    luminance(seen(a, (229, 229, 229))) < luminance(seen(b, (0, 0, 0)))
}

fn ratio(a: (u8, u8, u8), b: (u8, u8, u8)) -> f64 {
    let (a, b) = (luminance(a), luminance(b));
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

/// Relative luminance, from 0 to 1 (WCAG 2.2).
pub(crate) fn luminance((r, g, b): (u8, u8, u8)) -> f64 {
    let linear = |v: u8| {
        let v = f64::from(v) / 255.0;
        if v <= 0.04045 { v / 12.92 } else { to_2_4((v + 0.055) / 1.055) }
    };
    0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b)
}

/// A number from 0 to 1 to the power of 2.4: its square, times the fifth root of that by Newton's method. `f64::powf` would be
/// the only function that pixir needs of the system's library for mathematics, which every start then loads.
fn to_2_4(number: f64) -> f64 {
    let square = number * number;
    // From above, each step is nearer to the root, and these reach it for the smallest channel that comes here.
    let root = (0..20).fold(1.0, |root: f64, _| (4.0 * root + square / (root * root * root * root)) / 5.0);
    square * root
}

/// The RGB values of a colour; `own` is the terminal's default.
pub(crate) fn seen(colour: Color, own: (u8, u8, u8)) -> (u8, u8, u8) {
    match colour {
        Color::Reset => own,
        Color::Black => (0, 0, 0),
        Color::Red => (205, 0, 0),
        Color::Green => (0, 205, 0),
        Color::Yellow => (205, 205, 0),
        Color::Blue => (0, 0, 238),
        Color::Magenta => (205, 0, 205),
        Color::Cyan => (0, 205, 205),
        Color::Gray => (229, 229, 229),
        Color::DarkGray => (127, 127, 127),
        Color::LightRed => (255, 0, 0),
        Color::LightGreen => (0, 255, 0),
        Color::LightYellow => (255, 255, 0),
        Color::LightBlue => (92, 92, 255),
        Color::LightMagenta => (255, 0, 255),
        Color::LightCyan => (0, 255, 255),
        Color::White => (255, 255, 255),
        Color::Rgb(r, g, b) => (r, g, b),
        Color::Indexed(n @ 232..) => {
            let level = 8 + 10 * (n - 232);
            (level, level, level)
        }
        Color::Indexed(n) => {
            let n = usize::from(n.saturating_sub(16));
            let step = |at: usize| u8::try_from(STEPS[at % 6]).unwrap_or(255);
            (step(n / 36), step(n / 6), step(n))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken build: too few steps towards the root, which shows in dark colours first.
    #[test]
    fn the_power_of_a_channel_is_the_one_of_the_standard_library() {
        for channel in 0..=255_u8 {
            let number = (f64::from(channel) / 255.0 + 0.055) / 1.055;
            let (own, exact) = (to_2_4(number), number.powf(2.4));
            assert!((own - exact).abs() < 1e-12, "{channel}: {own} instead of {exact}");
        }
    }

    #[test]
    fn every_text_of_every_theme_can_be_read_on_what_it_stands_on() {
        let all = check_all();
        assert!(all.len() >= 27, "{}", all.len());
        let poor: Vec<String> = all
            .iter()
            .flat_map(|(name, depth, findings)| {
                let poor = findings.iter().filter(|it| !it.is_enough());
                poor.map(move |it| format!("{name} {depth:?}: {} on {} {:.2}", it.token, it.on, it.ratio))
            })
            .collect();
        assert!(poor.is_empty(), "{}", poor.join("\n"));
    }

    #[test]
    fn the_formula_gives_what_its_authors_say() {
        assert!((ratio((255, 255, 255), (0, 0, 0)) - 21.0).abs() < 0.01);
        assert!((ratio((119, 119, 119), (255, 255, 255)) - 4.48).abs() < 0.01);
    }
}
