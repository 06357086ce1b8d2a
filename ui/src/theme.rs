//! Colours by meaning, from `themes/*.toml`.

use std::collections::BTreeMap;
use std::path::Path;

use pixir_core::error::nearest;
use pixir_core::{Code, Error};
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use serde::Deserialize;

use crate::terminal::canvas::Canvas;

pub mod contrast; // the contrast of each text on its background

/// The themes that are part of the program.
const EMBEDDED: [(&str, &str); 9] = [
    ("dark", include_str!("../../themes/dark.toml")),
    ("light", include_str!("../../themes/light.toml")),
    ("high-contrast-dark", include_str!("../../themes/high-contrast-dark.toml")),
    ("high-contrast-light", include_str!("../../themes/high-contrast-light.toml")),
    ("colour-blind-dark", include_str!("../../themes/colour-blind-dark.toml")),
    ("colour-blind-light", include_str!("../../themes/colour-blind-light.toml")),
    ("system-dark", include_str!("../../themes/system-dark.toml")),
    ("system-light", include_str!("../../themes/system-light.toml")),
    ("mono", include_str!("../../themes/mono.toml")),
];

/// Names that stand for one theme on a dark terminal and another on a light one.
const PAIRS: [(&str, &str, &str); 4] = [
    ("auto", "dark", "light"),
    ("high-contrast", "high-contrast-dark", "high-contrast-light"),
    ("colour-blind", "colour-blind-dark", "colour-blind-light"),
    ("system", "system-dark", "system-light"),
];

/// The longest chain of `extends`.
const MAX_PARENTS: usize = 8;

macro_rules! tokens {
    ($($name:ident),* $(,)?) => {
        /// A colour for each meaning.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct Theme {
            /// The name that `/theme` shows.
            pub name: String,
            $(pub(crate) $name: Color,)*
        }

        /// The meanings that a theme gives colours to.
        pub const TOKENS: &[&str] = &[$(stringify!($name)),*];

        impl Theme {
            fn from_tokens(name: String, mut colour: impl FnMut(&str) -> Result<Color, Error>) -> Result<Theme, Error> {
                Ok(Theme { name, $($name: colour(stringify!($name))?,)* })
            }
        }
    };
}

tokens! {
    background, text, dim, accent, border, panel, selection, user, heading, strong, link, quote, code, code_panel, success, warning, error,
    thinking, tool, added, removed, added_panel, removed_panel, added_word, removed_word, mode_read_only, mode_ask, mode_auto, keyword, string, comment, number, function, r#type,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ThemeFile {
    /// If the file gives no name, the name of the file.
    #[serde(default)]
    name: String,
    /// The theme that fills in what this one leaves out.
    extends: Option<String>,
    #[serde(default)]
    palette: BTreeMap<String, String>,
    #[serde(default)]
    tokens: BTreeMap<String, String>,
}

/// Whether the terminal's background is dark or light.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Background {
    /// Dark, which is also assumed when nothing is known.
    #[default]
    Dark,
    /// Light.
    Light,
}

/// The number of colours that the terminal can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// 24 bit.
    True,
    /// The 256 of xterm.
    Indexed,
    /// The 16 that the user has chosen for the terminal.
    Named,
    /// None.
    Mono,
}

impl Theme {
    /// The theme with this name: one of the user's own, else an embedded one.
    ///
    /// `auto`, `system` and similar names stand for the theme that fits a dark or a light terminal. On a terminal with
    /// 16 colours, `system` or `mono` replaces a theme that uses others.
    ///
    /// # Errors
    /// `CONFIG_INVALID`: there is no such theme, or its file is not valid.
    pub fn load(name: &str, folder: Option<&Path>, depth: Depth, background: Background) -> Result<Theme, Error> {
        let fitting = |name: &str| {
            let pair = PAIRS.iter().find(|(pair, ..)| *pair == name);
            let fitting = |(_, dark, light): &(_, &str, &str)| match background {
                Background::Dark => (*dark).to_owned(),
                Background::Light => (*light).to_owned(),
            };
            pair.map_or(name.to_owned(), fitting)
        };
        let file = file(&fitting(name), folder, MAX_PARENTS)?;
        match depth {
            Depth::Named if file.tokens.values().any(|value| !is_named(value, &file.palette)) => {
                // Few of the 16 colours have the promised contrast, but the terminal's own text colour has.
                let instead = if file.name.starts_with("high-contrast") { "mono" } else { "system" };
                let mut theme = resolve(&self::file(&fitting(instead), None, 1)?, depth)?;
                theme.name = file.name;
                Ok(theme)
            }
            Depth::True | Depth::Indexed | Depth::Named | Depth::Mono => resolve(&file, depth),
        }
    }

    /// The names of all themes that the user can choose.
    pub fn names(folder: Option<&Path>) -> Vec<String> {
        let files = folder.and_then(|folder| std::fs::read_dir(folder).ok()).into_iter().flatten().flatten();
        let own = files.filter_map(|file| Some(file.file_name().to_str()?.strip_suffix(".toml")?.to_owned()));
        let pairs = PAIRS.iter().map(|(name, ..)| (*name).to_owned());
        let mut names: Vec<String> =
            EMBEDDED.iter().map(|(name, _)| (*name).to_owned()).chain(pairs).chain(own).collect();
        names.sort();
        names.dedup();
        names
    }

    /// The background that the theme is made for.
    pub fn made_for(&self) -> Background {
        let is_light = match (self.background, self.text) {
            (Color::Reset, _) => self.name.ends_with("light"),
            (background, text) => contrast::is_darker(text, background),
        };
        if is_light { Background::Light } else { Background::Dark }
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

    /// The style of the chosen row: a background colour, or reversed where the theme has none.
    pub(crate) fn selected(&self) -> Style {
        if self.selection == Color::Reset {
            Style::new().add_modifier(Modifier::REVERSED)
        } else {
            Style::new().bg(self.selection)
        }
    }

    /// A reversed badge in this colour.
    pub(crate) fn badge(&self, colour: Color) -> Style {
        let style = Style::new().add_modifier(Modifier::BOLD);
        if self.background == Color::Reset || colour == Color::Reset {
            style.fg(colour).add_modifier(Modifier::REVERSED)
        } else {
            style.fg(self.background).bg(colour)
        }
    }
}

/// A sample of a theme, as ANSI text.
pub fn preview(theme: &Theme) -> String {
    let mut canvas = Canvas::default();
    let rows: [&[(&str, Color)]; 8] = [
        &[("❯ fix the bug in average", theme.user)],
        &[("  It divides by ", theme.text), ("$#", theme.code), (" less one. See ", theme.text), ("docs", theme.link)],
        &[
            ("✓ ", theme.success),
            ("edit ", theme.tool),
            ("stats.sh", theme.text),
            ("  +1", theme.added),
            (" −1", theme.removed),
        ],
        &[("✗ ", theme.error), ("bash ", theme.tool), ("make test", theme.text), ("  exit 2", theme.error)],
        &[
            ("  fn ", theme.keyword),
            ("average", theme.function),
            ("(n: ", theme.text),
            ("u32", theme.r#type),
            (") { ", theme.text),
            ("1", theme.number),
            (" } ", theme.text),
            ("// why", theme.comment),
        ],
        &[("✻ thinking", theme.thinking), ("  a quote", theme.quote), ("  42 % of 128k", theme.dim)],
        &[
            ("read-only ", theme.mode_read_only),
            ("ask ", theme.mode_ask),
            ("auto ", theme.mode_auto),
            ("warning ", theme.warning),
        ],
        &[("  chosen  ", theme.text), ("heading", theme.heading), ("  strong", theme.strong)],
    ];
    canvas.begin((60, 8), Style::new());
    for (y, pieces) in (0..).zip(rows) {
        let row = Rect { x: 0, y, width: 60, height: 1 };
        canvas.fill(row, if y == 4 { theme.base().bg(theme.code_panel) } else { theme.base() });
        let spans = pieces.iter().map(|(text, colour)| Span::styled(*text, Style::new().fg(*colour)));
        canvas.line(Line::from(spans.collect::<Vec<_>>()), row);
        if y == 7 {
            canvas.tint(Rect { width: 10, ..row }, theme.selected());
        }
    }
    crate::terminal::to_ansi(&canvas)
}

fn invalid(name: &str, why: &str) -> Error {
    let fix = "a theme needs `extends = \"dark\"`, and under [palette] and [tokens] only what differs";
    Error::new(Code::ConfigInvalid, format!("the theme {} is not valid: {why}", name.escape_debug()), fix)
}

/// The line of a TOML error, and its message.
fn wrong_line(text: &str, error: &toml::de::Error) -> String {
    let line =
        error.span().and_then(|span| text.get(..span.start)).map_or(1, |before| before.matches('\n').count() + 1);
    format!("line {line}: {}", error.message().replace('\n', " "))
}

/// Reads a theme's file, and fills in what it leaves out from the theme that it extends.
fn file(name: &str, folder: Option<&Path>, parents: usize) -> Result<ThemeFile, Error> {
    let own = folder.map(|folder| folder.join(format!("{name}.toml"))).filter(|_| !name.contains(['/', '\\', '.']));
    let text = match own.filter(|path| path.is_file()).and_then(|path| std::fs::read_to_string(path).ok()) {
        Some(text) => text,
        None => {
            EMBEDDED.iter().find(|(known, _)| *known == name).map(|(_, text)| (*text).to_owned()).ok_or_else(|| {
                let names = Theme::names(folder);
                let near = nearest(name, names.iter().map(String::as_str))
                    .map_or(String::new(), |near| format!("did you mean {near}? "));
                Error::new(
                    Code::ConfigInvalid,
                    format!("there is no theme `{}`", name.escape_debug()),
                    format!("{near}themes: {}", names.join(", ")),
                )
                .with("input", name)
            })?
        }
    };
    let mut it: ThemeFile = toml::from_str(&text).map_err(|e| invalid(name, &wrong_line(&text, &e)))?;
    if it.name.is_empty() {
        name.clone_into(&mut it.name);
    }
    if let Some(wrong) = it.tokens.keys().find(|key| !TOKENS.iter().any(|t| t.trim_start_matches("r#") == *key)) {
        let near =
            nearest(wrong, TOKENS.iter().copied()).map_or(String::new(), |near| format!("; did you mean `{near}`?"));
        return Err(invalid(name, &format!("unknown token `{wrong}`{near}")));
    }
    let Some(parent) = &it.extends else { return Ok(it) };
    if parents == 0 {
        return Err(invalid(name, "it extends itself, or the chain of `extends` is too long"));
    }
    // A theme that extends its own name means the embedded one.
    let parent = file(parent, folder.filter(|_| *parent != name), parents - 1)?;
    for (key, value) in parent.palette {
        it.palette.entry(key).or_insert(value);
    }
    for (key, value) in parent.tokens {
        it.tokens.entry(key).or_insert(value);
    }
    Ok(it)
}

fn resolve(file: &ThemeFile, depth: Depth) -> Result<Theme, Error> {
    Theme::from_tokens(file.name.clone(), |token| {
        let token = token.trim_start_matches("r#");
        // Themes from before the words had a tint of their own.
        let older = token.strip_suffix("_word").map(|token| format!("{token}_panel"));
        let value = file
            .tokens
            .get(token)
            .or_else(|| file.tokens.get(&older?))
            .ok_or_else(|| invalid(&file.name, &format!("the token `{token}` is missing")))?;
        let value = file.palette.get(value).unwrap_or(value);
        let colour = match named(value) {
            Some(colour) => colour,
            None => {
                let (r, g, b) = rgb(value).ok_or_else(|| {
                    let what = "is not in the palette, not #rrggbb and not a terminal colour";
                    invalid(&file.name, &format!("`{value}` of `{token}` {what}"))
                })?;
                match depth {
                    Depth::True => Color::Rgb(r, g, b),
                    Depth::Indexed | Depth::Named | Depth::Mono => Color::Indexed(indexed(r, g, b)),
                }
            }
        };
        Ok(if depth == Depth::Mono { Color::Reset } else { colour })
    })
}

const NAMED: [(&str, Color); 17] = [
    ("default", Color::Reset),
    ("black", Color::Black),
    ("red", Color::Red),
    ("green", Color::Green),
    ("yellow", Color::Yellow),
    ("blue", Color::Blue),
    ("magenta", Color::Magenta),
    ("cyan", Color::Cyan),
    ("white", Color::Gray),
    ("bright-black", Color::DarkGray),
    ("bright-red", Color::LightRed),
    ("bright-green", Color::LightGreen),
    ("bright-yellow", Color::LightYellow),
    ("bright-blue", Color::LightBlue),
    ("bright-magenta", Color::LightMagenta),
    ("bright-cyan", Color::LightCyan),
    ("bright-white", Color::White),
];

fn named(value: &str) -> Option<Color> {
    NAMED.iter().find(|(name, _)| *name == value).map(|(_, colour)| *colour)
}

fn is_named(value: &str, palette: &BTreeMap<String, String>) -> bool {
    named(palette.get(value).map_or(value, String::as_str)).is_some()
}

fn rgb(text: &str) -> Option<(u8, u8, u8)> {
    let hex = text.strip_prefix('#').filter(|hex| hex.len() == 6 && hex.is_ascii())?;
    let part = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).ok();
    Some((part(0)?, part(2)?, part(4)?))
}

const STEPS: [i32; 6] = [0, 95, 135, 175, 215, 255];

/// The nearest of xterm's colour cube and its greys.
fn indexed(r: u8, g: u8, b: u8) -> u8 {
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

    #[test]
    fn a_wrong_name_gets_the_nearest_and_colours_fall_back_to_what_the_terminal_has() {
        let load = |name, depth| Theme::load(name, None, depth, Background::Dark);
        assert!(load("drak", Depth::True).expect_err("none").remedy.plain().contains("did you mean dark?"));
        assert_eq!(load("dark", Depth::Mono).expect("a theme").error, Color::Reset);
        assert_eq!(load("dark", Depth::Named).expect("a theme").error, Color::LightRed);
        assert_eq!((indexed(255, 0, 0), indexed(0, 0, 0), indexed(128, 128, 128)), (196, 16, 244));
    }

    #[test]
    fn a_theme_of_ones_own_says_only_what_is_different() {
        let folder = std::env::temp_dir().join(format!("pixir-themes-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let write = |name: &str, text: &str| std::fs::write(folder.join(format!("{name}.toml")), text).expect("write");
        write("dark", "name = \"dark\"\nextends = \"dark\"\n[tokens]\naccent = \"#ff00ff\"\n");
        write("round", "name = \"round\"\nextends = \"around\"\n");
        write("around", "name = \"around\"\nextends = \"round\"\n");
        write("typo", "name = \"typo\"\nextends = \"dark\"\n[tokens]\nacent = \"#ff00ff\"\n");
        let load = |name| Theme::load(name, Some(&folder), Depth::True, Background::Dark);
        let own = load("dark").expect("valid");
        assert_eq!((own.accent, own.error), (Color::Rgb(255, 0, 255), Color::Rgb(0xf4, 0x7c, 0x7c)));
        assert!(load("round").expect_err("a circle").message.contains("extends itself"));
        assert!(load("typo").expect_err("a typo").message.contains("did you mean `accent`?"));
        std::fs::remove_dir_all(&folder).expect("removed");
    }
}
