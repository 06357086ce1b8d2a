//! The themes. The whole screen shows the one that the cursor is on.

use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};

use super::narrow::Narrow;
use super::panel::SMALL;
use super::rows::RowMap;
use super::save_for::SaveFor;
use super::{Outcome, Paint, Press, Request, dialog, panel};
use crate::input::action::Action;
use crate::input::slash::fuzzy;
use crate::render::text::visible;
use crate::terminal::canvas::{Canvas, RegionState};
use crate::terminal::key::KeyEvent;

/// The size of the dialog: small, so that much of the screen shows the theme.
const SIZE: (u16, u16) = (SMALL, 16);

#[derive(Debug)]
pub(crate) struct ThemesView {
    names: Vec<String>,
    /// The theme in use, to return to.
    before: String,
    narrow: Narrow,
    save: SaveFor,
    rows: RowMap,
}

impl ThemesView {
    pub(crate) fn new(names: &[String], current: &str) -> ThemesView {
        let chosen = names.iter().position(|name| name == current).unwrap_or(0);
        ThemesView {
            names: names.to_vec(),
            before: current.to_owned(),
            narrow: Narrow { chosen, ..Narrow::default() },
            save: SaveFor::You,
            rows: RowMap::default(),
        }
    }

    fn shown(&self) -> Vec<usize> {
        fuzzy(&self.narrow.letters, (0..self.names.len()).collect(), |at| self.names[*at].clone())
    }

    fn chosen(&self) -> Option<&String> {
        self.shown().get(self.narrow.chosen).map(|at| &self.names[*at])
    }

    fn preview(&self) -> Outcome {
        self.chosen().map_or(Outcome::Stay, |name| Outcome::Ask(Request::RestoreTheme(name.clone())))
    }

    /// Goes back to the theme that was in use before others were previewed.
    pub(crate) fn leave(self) -> Request {
        Request::RestoreTheme(self.before)
    }

    pub(crate) fn scroll(&mut self, by: isize) {
        let rows = self.shown().len();
        self.narrow.scroll(by, rows);
    }

    pub(crate) fn wheel(&mut self, by: isize) -> Outcome {
        self.scroll(by);
        self.preview()
    }

    /// A click previews the theme under it.
    pub(crate) fn press(&mut self, at: Position) -> Press {
        let before = self.narrow.chosen;
        match self.rows.press(at, &mut self.narrow.chosen) {
            Press::OnRow(row) if row != before => Press::Preview(row, Box::new(self.preview())),
            other => other,
        }
    }

    pub(crate) fn key(&mut self, key: KeyEvent) -> Option<Outcome> {
        self.narrow.key(key).then(|| self.preview())
    }

    pub(crate) fn act(&mut self, action: Action) -> Outcome {
        match action {
            Action::CloseOverlay => Outcome::Close,
            Action::Choose => self.chosen().map_or(Outcome::Stay, |name| {
                let (key, value) = ("theme".to_owned(), name.clone());
                Outcome::CloseAndAsk(Request::Change { key, value, save: self.save })
            }),
            Action::SaveFor => {
                self.save = self.save.next();
                Outcome::Stay
            }
            action => {
                let rows = self.shown().len();
                if self.narrow.act(action, rows) { self.preview() } else { Outcome::Stay }
            }
        }
    }

    pub(crate) fn draw(&mut self, canvas: &mut Canvas, area: Rect, paint: Paint<'_>) {
        let theme = paint.theme;
        let hints = paint.hints(&[
            (Action::Choose, "use it"),
            (Action::SaveFor, &self.save.choices()),
            (Action::CloseOverlay, "close"),
        ]);
        let inner = panel(canvas, dialog(area, SIZE.0, SIZE.1), "Theme", &hints, theme);
        let list = self.narrow.draw(canvas, inner, theme);
        let shown = self.shown();
        self.rows.clear();
        if shown.is_empty() {
            return canvas.line(Line::styled("No matches", theme.dim()), Rect { height: 1.min(list.height), ..list });
        }
        self.narrow.chosen = self.narrow.chosen.min(shown.len() - 1);
        let top = self.narrow.top(list.height);
        for (y, (number, at)) in (list.y..list.bottom()).zip(shown.iter().enumerate().skip(top)) {
            let name = &self.names[*at];
            let here = Rect { y, height: 1, ..list };
            let is_chosen = number == self.narrow.chosen;
            self.rows.put(here, number);
            canvas.tint(here, if is_chosen { theme.selected() } else { theme.base() });
            canvas.region("option", here, || name.clone());
            canvas.region_state(RegionState { focused: false, selected: is_chosen });
            let mut line = Line::from(vec![
                Span::styled(if *name == self.before { "● " } else { "  " }, theme.fg(theme.success)),
                Span::styled(visible(name), theme.fg(theme.text)),
            ]);
            if name == "auto" {
                line.push_span(Span::styled("  dark or light, as the terminal is", theme.dim()));
            }
            // The colours of the previewed theme, so that the list says more than names.
            if is_chosen {
                line.push_span(Span::raw("  "));
                for colour in [theme.accent, theme.user, theme.success, theme.warning, theme.error] {
                    line.push_span(Span::styled("● ", theme.fg(colour)));
                }
            }
            canvas.line(line, here);
        }
    }
}
