//! The themes. The whole screen shows the one that the cursor is on.

use ratatui::layout::{Position, Rect};
use ratatui::style::{Color, Style};
use ratatui::text::{Line, Span};

use super::list::ListView;
use super::narrow::Narrow;
use super::panel::SMALL;
use super::save_for::SaveFor;
use super::{Effect, Outcome, Paint, Press, Request, View, dialog, panel};
use crate::input::action::{LayerAction, Scope};
use crate::input::slash::fuzzy;
use crate::render::text::{visible, width};
use crate::terminal::canvas::Canvas;
use crate::terminal::key::KeyEvent;
use crate::theme::{Depth, Theme};

/// The most rows of the dialog. It is small, so that much of the screen shows the theme.
const HEIGHT: u16 = 20;

/// A theme of the list.
#[derive(Debug)]
pub(crate) struct ThemeRow {
    name: String,
    swatch: Swatch,
}

/// The colours of a theme, in its row.
#[derive(Debug)]
enum Swatch {
    /// Its background, and what stands on it.
    Colours(Color, [Color; 6]),
    /// The screen has no colours.
    Plain,
    /// Its file cannot be used.
    Faulty,
}

impl ThemeRow {
    pub(crate) fn new(name: String, theme: Option<&Theme>, depth: Depth) -> ThemeRow {
        let swatch = match (theme, depth) {
            (None, _) => Swatch::Faulty,
            (Some(_), Depth::Mono) => Swatch::Plain,
            (Some(it), Depth::True | Depth::Indexed | Depth::Named) => {
                Swatch::Colours(it.background, [it.text, it.accent, it.user, it.success, it.warning, it.error])
            }
        };
        ThemeRow { name, swatch }
    }

    fn swatch(&self, theme: &Theme) -> Vec<Span<'static>> {
        match &self.swatch {
            Swatch::Colours(ground, colours) => {
                let dot = |colour: &Color| Span::styled("● ", Style::new().fg(*colour).bg(*ground));
                [Span::styled(" ", Style::new().bg(*ground))].into_iter().chain(colours.iter().map(dot)).collect()
            }
            Swatch::Plain => Vec::new(),
            Swatch::Faulty => vec![Span::styled("cannot be used", theme.fg(theme.warning))],
        }
    }
}

#[derive(Debug)]
pub(crate) struct ThemesView {
    all: Vec<ThemeRow>,
    /// The theme in use, to return to.
    before: String,
    narrow: Narrow,
    save: SaveFor,
}

impl ThemesView {
    pub(crate) fn new(all: Vec<ThemeRow>, current: &str) -> ThemesView {
        let chosen = all.iter().position(|row| row.name == current).unwrap_or(0);
        ThemesView {
            all,
            before: current.to_owned(),
            narrow: Narrow { list: ListView::at(chosen), ..Narrow::default() },
            save: SaveFor::You,
        }
    }

    fn shown(&self) -> Vec<usize> {
        fuzzy(&self.narrow.letters, (0..self.all.len()).collect(), |at| self.all[*at].name.clone())
    }

    fn chosen(&self) -> Option<&String> {
        self.shown().get(self.narrow.list.chosen).map(|at| &self.all[*at].name)
    }

    fn preview(&self) -> Outcome {
        self.chosen().map_or(Outcome::Stay, |name| Outcome::does(Effect::RestoreTheme(name.clone())))
    }
}

impl View for ThemesView {
    fn title(&self) -> &'static str {
        "Theme"
    }

    fn scopes(&self) -> &'static [Scope] {
        &[Scope::Saving, Scope::Overlay]
    }

    fn is_typing(&self) -> bool {
        true
    }

    /// Goes back to the theme that was in use before others were previewed.
    fn leave(self) -> Option<Request> {
        Some(Request::Do(vec![Effect::RestoreTheme(self.before)]))
    }

    fn scroll(&mut self, by: isize) {
        let rows = self.shown().len();
        self.narrow.list.scroll(by, rows);
    }

    fn wheel(&mut self, _at: Position, by: isize) -> Outcome {
        self.scroll(by);
        self.preview()
    }

    /// A click previews the theme under it.
    fn press(&mut self, at: Position) -> Press {
        let before = self.narrow.list.chosen;
        match self.narrow.list.press(at) {
            Press::OnRow(row) if row != before => Press::Preview(row, Box::new(self.preview())),
            other => other,
        }
    }

    fn key(&mut self, key: KeyEvent) -> Option<Outcome> {
        self.narrow.key(key).then(|| self.preview())
    }

    fn act(&mut self, action: LayerAction) -> Outcome {
        match action {
            LayerAction::CloseOverlay => Outcome::Close,
            LayerAction::Choose => self.chosen().map_or(Outcome::Stay, |name| {
                let (key, value) = ("theme".to_owned(), name.clone());
                Outcome::CloseAndAsk(Request::Change { key, value, save: self.save })
            }),
            LayerAction::SaveFor => {
                self.save = self.save.next();
                Outcome::Stay
            }
            action => {
                let rows = self.shown().len();
                if self.narrow.list.act(action, rows) { self.preview() } else { Outcome::Stay }
            }
        }
    }

    fn draw(&mut self, canvas: &mut Canvas, area: Rect, paint: Paint<'_>) {
        let theme = paint.theme;
        let hints = paint.hints(&[
            (LayerAction::Choose, "use it"),
            (LayerAction::SaveFor, &self.save.choices()),
            (LayerAction::CloseOverlay, "close"),
        ]);
        let height = (u16::try_from(self.all.len()).unwrap_or(HEIGHT) + 4).min(HEIGHT);
        let inner = panel(canvas, dialog(area, SMALL, height), "Theme", &hints, theme);
        let list = self.narrow.draw(canvas, inner, theme);
        let shown = self.shown();
        self.narrow.list.begin();
        if shown.is_empty() {
            return canvas.line(Line::styled("No matches", theme.dim()), Rect { height: 1.min(list.height), ..list });
        }
        self.narrow.list.chosen = self.narrow.list.chosen.min(shown.len() - 1);
        self.narrow.draw_place(canvas, inner, shown.len(), list.height, theme);
        let names = self.all.iter().map(|it| width(&it.name)).max().unwrap_or(0);
        let line = |row: usize| {
            let row = &self.all[shown[row]];
            let name = &row.name;
            let mut line = Line::from(vec![
                Span::styled(if *name == self.before { "● " } else { "  " }, theme.fg(theme.success)),
                Span::styled(format!("{:names$}  ", visible(name)), theme.fg(theme.text)),
            ]);
            line.extend(row.swatch(theme));
            if name == "auto" {
                line.push_span(Span::styled("  as the terminal is", theme.dim()));
            }
            line
        };
        self.narrow.list.draw(canvas, list, shown.len(), theme, &|row| self.all[shown[row]].name.clone(), &line);
    }
}
