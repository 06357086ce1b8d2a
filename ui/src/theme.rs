//! Colours by meaning, from `themes/*.toml`.

use std::collections::BTreeMap;
use std::path::Path;

use pixir_core::error::nearest;
use pixir_core::{Code, Error};
use ratatui::style::{Color, Modifier, Style};
use serde::Deserialize;

/// Themes that are part of the program.
const EMBEDDED: [(&str, &str); 2] =
    [("dark", include_str!("../../themes/dark.toml")), ("light", include_str!("../../themes/light.toml"))];

macro_rules! tokens {
    ($($name:ident),* $(,)?) => {
        /// A colour for each meaning.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct Theme {
            /// The name that `/theme` shows.
            pub name: String,
            $(pub(crate) $name: Color,)*
        }

        const TOKENS: &[&str] = &[$(stringify!($name)),*];

        impl Theme {
            fn from_tokens(name: String, mut colour: impl FnMut(&str) -> Result<Color, Error>) -> Result<Theme, Error> {
                Ok(Theme { name, $($name: colour(stringify!($name))?,)* })
            }

            /// The same theme in the terminal's own two colours; weight and lines carry the meaning.
            fn without_colour(name: String) -> Theme {
                Theme { name, $($name: Color::Reset,)* }
            }
        }
    };
}

tokens! {
    background, text, dim, accent, border, panel, selection, user, heading, strong, link, quote, code, code_panel, success, warning, error,
    thinking, tool, added, removed, added_panel, removed_panel, mode_read_only, mode_ask, mode_auto, keyword, string, comment, number, function, r#type,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ThemeFile {
    name: String,
    #[serde(default)]
    palette: BTreeMap<String, String>,
    tokens: BTreeMap<String, String>,
}

/// How many colours the terminal shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// 24 bit.
    True,
    /// The 256 of xterm.
    Indexed,
    /// None.
    Mono,
}

impl Theme {
    /// The theme with this name: one of the person's, else one that is part of the program.
    ///
    /// # Errors
    /// `CONFIG_INVALID`: there is none, with the nearest name; or its file is not valid, with the token.
    pub fn load(name: &str, folder: Option<&Path>, depth: Depth) -> Result<Theme, Error> {
        let own = folder.map(|folder| folder.join(format!("{name}.toml"))).filter(|_| !name.contains(['/', '\\', '.']));
        let text = match own.and_then(|path| std::fs::read_to_string(path).ok()) {
            Some(text) => text,
            None => EMBEDDED.iter().find(|(known, _)| *known == name).map(|(_, text)| (*text).to_owned()).ok_or_else(
                || {
                    let names = Theme::names(folder);
                    let near = nearest(name, names.iter().map(String::as_str))
                        .map_or(String::new(), |near| format!("did you mean {near}? "));
                    Error::new(
                        Code::ConfigInvalid,
                        format!("there is no theme `{}`", name.escape_debug()),
                        format!("{near}themes: {}", names.join(", ")),
                    )
                    .with("input", name)
                },
            )?,
        };
        Theme::parse(&text, depth)
    }

    fn parse(text: &str, depth: Depth) -> Result<Theme, Error> {
        let invalid = |why: String| {
            Error::new(Code::ConfigInvalid, format!("the theme is not valid: {why}"), "themes/dark.toml is an example")
        };
        let file: ThemeFile = toml::from_str(text).map_err(|e| invalid(e.to_string().replace('\n', " ")))?;
        if let Some(wrong) = file.tokens.keys().find(|key| !TOKENS.iter().any(|t| t.trim_start_matches("r#") == *key)) {
            return Err(invalid(format!("unknown token `{wrong}`")));
        }
        if depth == Depth::Mono {
            return Ok(Theme::without_colour(file.name));
        }
        Theme::from_tokens(file.name.clone(), |token| {
            let token = token.trim_start_matches("r#");
            let value = file.tokens.get(token).ok_or_else(|| invalid(format!("the token `{token}` is missing")))?;
            let value = file.palette.get(value).unwrap_or(value);
            let (r, g, b) = rgb(value)
                .ok_or_else(|| invalid(format!("`{value}` of `{token}` is neither in the palette nor #rrggbb")))?;
            Ok(if depth == Depth::True { Color::Rgb(r, g, b) } else { Color::Indexed(indexed(r, g, b)) })
        })
    }

    /// Names of every theme that can be chosen.
    pub fn names(folder: Option<&Path>) -> Vec<String> {
        let files = folder.and_then(|folder| std::fs::read_dir(folder).ok()).into_iter().flatten().flatten();
        let own = files.filter_map(|file| Some(file.file_name().to_str()?.strip_suffix(".toml")?.to_owned()));
        let mut names: Vec<String> = EMBEDDED.iter().map(|(name, _)| (*name).to_owned()).chain(own).collect();
        names.sort();
        names.dedup();
        names
    }

    pub(crate) fn base(&self) -> Style {
        Style::new().fg(self.text).bg(self.background)
    }

    pub(crate) fn fg(&self, colour: Color) -> Style {
        Style::new().fg(colour)
    }

    pub(crate) fn dim(&self) -> Style {
        Style::new().fg(self.dim)
    }

    pub(crate) fn bold(&self) -> Style {
        Style::new().fg(self.strong).add_modifier(Modifier::BOLD)
    }

    /// What is chosen: a colour where there is one, else reversed.
    pub(crate) fn selected(&self) -> Style {
        if self.selection == Color::Reset {
            Style::new().add_modifier(Modifier::REVERSED)
        } else {
            Style::new().bg(self.selection)
        }
    }
}

fn rgb(text: &str) -> Option<(u8, u8, u8)> {
    let hex = text.strip_prefix('#').filter(|hex| hex.len() == 6 && hex.is_ascii())?;
    let part = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).ok();
    Some((part(0)?, part(2)?, part(4)?))
}

/// The nearest of xterm's colour cube and its greys.
fn indexed(r: u8, g: u8, b: u8) -> u8 {
    const STEPS: [i32; 6] = [0, 95, 135, 175, 215, 255];
    let nearest_step = |v: u8| (0..6_usize).min_by_key(|i| (STEPS[*i] - i32::from(v)).abs()).unwrap_or(0);
    let (ri, gi, bi) = (nearest_step(r), nearest_step(g), nearest_step(b));
    let distance =
        |x: i32, y: i32, z: i32| (x - i32::from(r)).pow(2) + (y - i32::from(g)).pow(2) + (z - i32::from(b)).pow(2);
    let cube = distance(STEPS[ri], STEPS[gi], STEPS[bi]);
    let grey = ((i32::from(r) + i32::from(g) + i32::from(b)) / 3 - 8).clamp(0, 230) / 10;
    let level = 8 + grey * 10;
    let index = if distance(level, level, level) < cube { 232 + grey } else { (16 + 36 * ri + 6 * gi + bi) as i32 };
    u8::try_from(index.clamp(16, 255)).unwrap_or(255)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn luminance(colour: Color) -> f64 {
        let Color::Rgb(r, g, b) = colour else { panic!("not a colour: {colour:?}") };
        let linear = |v: u8| {
            let v = f64::from(v) / 255.0;
            if v <= 0.04045 { v / 12.92 } else { ((v + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b)
    }

    /// WCAG 2.2: (L1 + 0.05) / (L2 + 0.05).
    fn contrast(a: Color, b: Color) -> f64 {
        let (a, b) = (luminance(a), luminance(b));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    #[test]
    fn every_text_of_every_theme_can_be_read_on_what_it_stands_on() {
        for (name, text) in EMBEDDED {
            let it = Theme::parse(text, Depth::True).expect(name);
            let on_background = [
                it.text,
                it.dim,
                it.accent,
                it.user,
                it.link,
                it.code,
                it.success,
                it.warning,
                it.error,
                it.tool,
                it.mode_auto,
                it.mode_ask,
                it.mode_read_only,
            ];
            for colour in on_background {
                assert!(contrast(colour, it.background) >= 4.5, "{name}: {colour:?} on the background");
            }
            for colour in [it.text, it.keyword, it.string, it.comment, it.number, it.function, it.r#type, it.dim] {
                assert!(contrast(colour, it.code_panel) >= 4.5, "{name}: {colour:?} on code");
            }
            assert!(
                contrast(it.added, it.added_panel) >= 4.5 && contrast(it.removed, it.removed_panel) >= 4.5,
                "{name}: diffs"
            );
            assert!(contrast(it.text, it.selection) >= 4.5, "{name}: selection");
        }
    }

    #[test]
    fn a_wrong_name_gets_the_nearest_and_colours_fall_back_to_what_the_terminal_has() {
        assert!(Theme::load("drak", None, Depth::True).expect_err("none").remediation.contains("did you mean dark?"));
        assert_eq!(Theme::load("dark", None, Depth::Mono).expect("a theme").error, Color::Reset);
        assert_eq!((indexed(255, 0, 0), indexed(0, 0, 0), indexed(128, 128, 128)), (196, 16, 244));
    }
}
