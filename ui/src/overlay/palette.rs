//! Actions by name.

use crate::terminal::key::KeyEvent;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::narrow::Narrow;
use super::{Outcome, Paint, Request, dialog, panel};
use crate::input::action::{ACTIONS, Action, ActionSpec, Scope, SessionKind, Slash, When};
use crate::input::keymap::Keymap;
use crate::input::slash::fuzzy;
use crate::render::text::{fit, width};
use crate::terminal::canvas::{Canvas, RegionState};

/// The most rows on the screen.
const ROWS: u16 = 16;

/// An action in the list.
#[derive(Debug)]
struct Entry {
    spec: &'static ActionSpec,
    key: String,
    /// It does not have to wait for the end of the Turn.
    is_possible: bool,
}

/// Whether a Turn runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TurnState {
    Idle,
    Running,
}

#[derive(Debug)]
pub(crate) struct Palette {
    narrow: Narrow,
    entries: Vec<Entry>,
}

impl Palette {
    /// The actions that can apply in these scopes. Some of them have to wait while a Turn runs.
    pub(crate) fn new(keymap: &Keymap, scopes: &[Scope], session: SessionKind, turn: TurnState) -> Palette {
        let is_here = |spec: &&ActionSpec| {
            let is_offered = spec.scope != Scope::Composer && spec.action != Action::OpenPalette;
            is_offered && scopes.contains(&spec.scope) && spec.applies(session)
        };
        let entry = |spec: &'static ActionSpec| Entry {
            spec,
            key: keymap.key_of(spec.action).unwrap_or_default(),
            is_possible: spec.when != When::Idle || turn == TurnState::Idle,
        };
        let mut entries: Vec<Entry> = ACTIONS.iter().filter(is_here).map(entry).collect();
        // Users look for slash commands most.
        entries.sort_by_key(|entry| entry.spec.slash.is_none());
        Palette { narrow: Narrow::default(), entries }
    }

    /// The entries that match the letters: first those whose name matches, then those whose description does.
    fn matches(&self) -> Vec<&Entry> {
        let mut matches = fuzzy(&self.narrow.letters, self.entries.iter().collect(), |entry| entry.spec.title());
        let by_name: Vec<Action> = matches.iter().map(|entry| entry.spec.action).collect();
        let others = self.entries.iter().filter(|entry| !by_name.contains(&entry.spec.action)).collect();
        matches.extend(fuzzy(&self.narrow.letters, others, |entry| entry.spec.about.to_owned()));
        matches
    }
}

impl Palette {
    pub(crate) fn key(&mut self, key: KeyEvent) -> Option<Outcome> {
        self.narrow.key(key).then_some(Outcome::Stay)
    }

    pub(crate) fn act(&mut self, action: Action) -> Outcome {
        match action {
            Action::CloseOverlay => Outcome::Close,
            Action::Choose => {
                let matches = self.matches();
                let Some(Entry { spec, is_possible: true, .. }) = matches.get(self.narrow.chosen) else {
                    return Outcome::Stay;
                };
                Outcome::CloseAndAsk(match spec.slash.filter(Slash::needs_args) {
                    Some(slash) => Request::Complete { draft: format!("/{} ", slash.name), hint: None },
                    None => Request::Perform(spec.action),
                })
            }
            _ => {
                let rows = self.matches().len();
                self.narrow.act(action, rows);
                Outcome::Stay
            }
        }
    }

    pub(crate) fn scroll(&mut self, by: isize) {
        let rows = self.matches().len();
        self.narrow.scroll(by, rows);
    }

    pub(crate) fn draw(&mut self, canvas: &mut Canvas, area: Rect, paint: Paint<'_>) {
        let theme = paint.theme;
        let matches = self.matches();
        let keys =
            format!("type to narrow · {}", paint.hints(&[(Action::Choose, "run"), (Action::CloseOverlay, "close")]));
        let inner = panel(canvas, dialog(area, 90, ROWS + 4), "Palette", &keys, theme);
        let list = self.narrow.draw(canvas, inner, theme);
        let top = self.narrow.top(list.height);
        let columns = usize::from(list.width);
        for (y, (at, entry)) in (list.y..list.bottom()).zip(matches.iter().enumerate().skip(top)) {
            let Entry { spec, key, is_possible } = entry;
            let row = Rect { y, height: 1, ..list };
            let name = fit(&spec.title(), 22);
            let pad = " ".repeat(23_usize.saturating_sub(width(&name)));
            let room = columns.saturating_sub(24 + width(key));
            let about = fit(spec.about, room);
            let gap = " ".repeat(room.saturating_sub(width(&about)) + 1);
            let style = if *is_possible { theme.fg(theme.text) } else { theme.dim() };
            canvas.tint(row, if at == self.narrow.chosen { theme.selected() } else { theme.base() });
            canvas.region("option", row, || spec.title());
            canvas.region_state(RegionState { focused: false, selected: at == self.narrow.chosen });
            let line = Line::from(vec![
                Span::styled(name, if *is_possible { theme.fg(theme.accent) } else { theme.dim() }),
                Span::raw(pad),
                Span::styled(about, style),
                Span::raw(gap),
                Span::styled(key.clone(), theme.dim()),
            ]);
            canvas.line(line, row);
        }
    }
}
