//! Everything that can be done, by name: the same verbs as keys and commands.

use ratatui::crossterm::event::{KeyCode, KeyEvent};
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::narrow::Narrow;
use super::{Overlay, Paint, Reply, centred, panel};
use crate::input::action::{Scope, VERBS, Verb, When};
use crate::input::slash::fuzzy;
use crate::render::text::{fit, width};
use crate::state::State;
use crate::terminal::canvas::Canvas;

/// Rows that are shown at once.
const ROWS: usize = 16;

/// The layer.
#[derive(Debug)]
pub(crate) struct Palette {
    narrow: Narrow,
    /// What can be done here, with its keys, and whether it can be done now.
    all: Vec<(&'static Verb, String, bool)>,
}

impl Palette {
    pub(crate) fn new(state: &State) -> Palette {
        let scopes = state.scopes();
        let here = |verb: &&Verb| {
            let is_offered = verb.scope != Scope::Composer && verb.id != "palette";
            is_offered && scopes.contains(&verb.scope) && verb.is_of_use(state.replay.is_some())
        };
        let all = VERBS.iter().filter(here).map(|verb| {
            let is_possible = verb.when != When::Idle || !state.is_busy();
            (verb, state.keymap.key_of(verb.id), is_possible)
        });
        let mut all: Vec<_> = all.collect();
        // What has a command is looked for most.
        all.sort_by_key(|(verb, ..)| verb.slash.is_none());
        Palette { narrow: Narrow::default(), all }
    }

    fn found(&self) -> Vec<(&'static Verb, String, bool)> {
        // Who knows the name means the name; the rest is found by what it is about.
        let mut found = fuzzy(&self.narrow.letters, self.all.clone(), |(verb, ..)| verb.title());
        let by_name: Vec<&str> = found.iter().map(|(verb, ..)| verb.id).collect();
        let others = self.all.iter().filter(|(verb, ..)| !by_name.contains(&verb.id)).cloned().collect();
        let about = fuzzy(&self.narrow.letters, others, |(verb, ..)| verb.about.to_owned());
        found.extend(about);
        found
    }
}

impl Overlay for Palette {
    fn title(&self) -> &'static str {
        "Palette"
    }

    fn key(&mut self, key: KeyEvent) -> Reply {
        match key.code {
            KeyCode::Esc => Reply::Close,
            KeyCode::Enter => {
                let found = self.found();
                let Some((verb, _, true)) = found.get(self.narrow.chosen) else { return Reply::Stay };
                let verb: &'static Verb = verb;
                Reply::CloseAndAct(Box::new(move |state| match verb.slash {
                    // What it is about has to be said first.
                    Some(slash) if slash.args.starts_with('<') => {
                        state.composer.set(&format!("/{} ", slash.name));
                        Vec::new()
                    }
                    _ => (verb.run)(state, ""),
                }))
            }
            _ => {
                let rows = self.found().len();
                self.narrow.key(key, rows);
                Reply::Stay
            }
        }
    }

    fn scroll(&mut self, by: isize) {
        let rows = self.found().len();
        self.narrow.scroll(by, rows);
    }

    fn draw(&mut self, canvas: &mut Canvas, area: Rect, paint: Paint<'_>) {
        let theme = paint.theme;
        let found = self.found();
        let rows = u16::try_from(found.len().clamp(1, ROWS)).unwrap_or(16);
        let inner = panel(
            canvas,
            centred(area, 90, rows + 4),
            "Palette",
            "type to narrow · ↑↓ · Enter do it · Esc close",
            theme,
        );
        let list = self.narrow.draw(canvas, inner, theme);
        let top = self.narrow.top(list.height);
        let columns = usize::from(list.width);
        for (y, (at, (verb, keys, is_possible))) in (list.y..list.bottom()).zip(found.iter().enumerate().skip(top)) {
            let row = Rect { y, height: 1, ..list };
            let name = fit(&verb.title(), 22);
            let pad = " ".repeat(23_usize.saturating_sub(width(&name)));
            let room = columns.saturating_sub(24 + width(keys));
            let about = fit(verb.about, room);
            let gap = " ".repeat(room.saturating_sub(width(&about)) + 1);
            let style = if *is_possible { theme.fg(theme.text) } else { theme.dim() };
            canvas.tint(row, if at == self.narrow.chosen { theme.selected() } else { theme.base() });
            canvas.region("option", row, || verb.title());
            canvas.state(false, at == self.narrow.chosen);
            let line = Line::from(vec![
                Span::styled(name, if *is_possible { theme.fg(theme.accent) } else { theme.dim() }),
                Span::raw(pad),
                Span::styled(about, style),
                Span::raw(gap),
                Span::styled(keys.clone(), theme.dim()),
            ]);
            canvas.line(line, row);
        }
    }
}
