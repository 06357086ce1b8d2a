//! Everything that can be done now, by name: actions, and at letters also Sessions and files.

use pixir_core::store::Summary;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};

use super::narrow::Narrow;
use super::{Effect, Load, Notification, Outcome, Paint, Press, Request, View, dialog, panel};
use crate::input::action::{ACTIONS, Action, ActionSpec, LayerAction, Scope, SessionKind, Slash, TurnState};
use crate::input::keymap::Keymap;
use crate::input::slash::{Uses, by_use, fuzzy};
use crate::render::marked;
use crate::render::text::{fit, visible, width};
use crate::terminal::canvas::Canvas;
use crate::terminal::key::KeyEvent;
use crate::theme::Theme;

/// The size of the dialog.
const SIZE: (u16, u16) = (100, 24);
/// Columns of the names.
const NAMES: usize = 20;
/// The most Sessions that are offered at letters.
const MOST_SESSIONS: usize = 6;
/// An action in the list.
#[derive(Debug)]
struct Entry {
    spec: &'static ActionSpec,
    key: String,
}

/// A row of the list.
#[derive(Debug)]
enum Row<'a> {
    Action(&'a Entry),
    Session { id: &'a str, title: &'a str },
    File(&'a str),
}

#[derive(Debug)]
pub(crate) struct Palette {
    narrow: Narrow,
    /// What can be done now, the most used first.
    entries: Vec<Entry>,
    sessions: Vec<Summary>,
    /// The files that match these letters.
    files: Option<(String, Vec<String>)>,
}

impl Palette {
    /// The actions that can be done now in these scopes.
    pub(crate) fn new(
        keymap: &Keymap,
        scopes: &[Scope],
        session: SessionKind,
        turn: TurnState,
        uses: &Uses,
    ) -> Palette {
        let is_here = |spec: &&ActionSpec| {
            let is_offered = spec.scope != Scope::Composer && spec.action != Action::OpenPalette;
            is_offered && scopes.contains(&spec.scope) && spec.when.unavailable(session, turn).is_none()
        };
        let entry = |spec| Entry { spec, key: keymap.key_of(spec.action).unwrap_or_default() };
        let mut entries: Vec<Entry> = ACTIONS.iter().filter(is_here).map(entry).collect();
        entries.sort_by_key(|entry| by_use(entry.spec, uses));
        Palette { narrow: Narrow::default(), entries, sessions: Vec::new(), files: None }
    }

    /// The letters after an `@`, which search files.
    fn file_letters(&self) -> Option<&str> {
        self.narrow.letters.strip_prefix('@')
    }

    /// Actions whose name matches, then those whose description does, then Sessions by their title.
    fn rows(&self) -> Vec<Row<'_>> {
        if let Some(letters) = self.file_letters() {
            let found = self.files.iter().filter(|(of, _)| of == letters);
            return found.flat_map(|(_, files)| files.iter().map(|it| Row::File(it))).collect();
        }
        let letters = &self.narrow.letters;
        let mut matches = fuzzy(letters, self.entries.iter().collect(), |entry| entry.spec.title());
        let by_name: Vec<Action> = matches.iter().map(|entry| entry.spec.action).collect();
        let others = self.entries.iter().filter(|entry| !by_name.contains(&entry.spec.action)).collect();
        matches.extend(fuzzy(letters, others, |entry| entry.spec.about.to_owned()));
        let mut rows: Vec<Row<'_>> = matches.into_iter().map(Row::Action).collect();
        if !letters.is_empty() {
            let sessions = fuzzy(letters, self.sessions.iter().collect(), |it| it.title().to_owned());
            rows.extend(
                sessions.into_iter().take(MOST_SESSIONS).map(|it| Row::Session { id: &it.id, title: it.title() }),
            );
        }
        rows
    }

    fn choose(&self) -> Outcome {
        let rows = self.rows();
        let Some(row) = rows.get(self.narrow.list.chosen) else { return Outcome::Stay };
        Outcome::CloseAndAsk(match row {
            Row::Action(Entry { spec, .. }) => match spec.slash.filter(Slash::needs_args) {
                Some(slash) => Request::Complete { draft: format!("/{} ", slash.name), hint: None },
                None => Request::Use(spec),
            },
            Row::Session { id, .. } => Request::Command(format!("/resume {id}")),
            Row::File(path) => Request::Mention((*path).to_owned()),
        })
    }
}

impl View for Palette {
    fn title(&self) -> &'static str {
        "Palette"
    }

    fn is_typing(&self) -> bool {
        true
    }

    fn opened(&mut self) -> Vec<Effect> {
        let others = Load::new(
            |from| {
                let is_other = |id: &str| from.session.as_ref().is_none_or(|current| current.as_str() != id);
                from.harness.sessions().into_iter().filter(|it| is_other(&it.id)).collect::<Vec<_>>()
            },
            |view: &mut Palette, others| view.sessions = others.clone(),
        );
        vec![others.into()]
    }

    fn notify(&mut self, notification: Notification<'_>) {
        if let Notification::Files { letters, found } = notification {
            self.files = Some((letters.to_owned(), found.to_vec()));
        }
    }

    fn key(&mut self, key: KeyEvent) -> Option<Outcome> {
        if !self.narrow.key(key) {
            return None;
        }
        Some(match self.file_letters() {
            Some(letters) => Outcome::does(Effect::FindFiles(letters.to_owned())),
            None => Outcome::Stay,
        })
    }

    fn act(&mut self, action: LayerAction) -> Outcome {
        match action {
            LayerAction::CloseOverlay => Outcome::Close,
            LayerAction::Choose => self.choose(),
            _ => {
                let rows = self.rows().len();
                self.narrow.list.act(action, rows);
                Outcome::Stay
            }
        }
    }

    fn press(&mut self, at: Position) -> Press {
        self.narrow.list.press(at)
    }

    fn scroll(&mut self, by: isize) {
        let rows = self.rows().len();
        self.narrow.list.scroll(by, rows);
    }

    fn draw(&mut self, canvas: &mut Canvas, area: Rect, paint: Paint<'_>) {
        let theme = paint.theme;
        let hints = paint.hints(&[(LayerAction::Choose, "run"), (LayerAction::CloseOverlay, "close")]);
        let keys = format!("type to search · @ files · {hints}");
        let inner = panel(canvas, dialog(area, SIZE.0, SIZE.1), "Palette", &keys, theme);
        let list = self.narrow.draw(canvas, inner, theme);
        self.narrow.list.begin();
        let rows = self.rows();
        if rows.is_empty() {
            let text = if self.file_letters().is_some() { "No files match" } else { "No matches" };
            canvas.line(Line::styled(text, theme.dim()), Rect { height: 1.min(list.height), ..list });
            return;
        }
        self.narrow.draw_place(canvas, inner, rows.len(), list.height, theme);
        let columns = usize::from(list.width);
        let line = |row: usize| rows[row].line(&self.narrow.letters, columns, theme);
        self.narrow.list.draw(canvas, list, rows.len(), theme, &|row| rows[row].name(), &line);
    }
}

impl Row<'_> {
    fn name(&self) -> String {
        match self {
            Row::Action(entry) => entry.spec.title(),
            Row::Session { title, .. } => visible(title),
            Row::File(path) => visible(path),
        }
    }

    fn line(&self, letters: &str, columns: usize, theme: &Theme) -> Line<'static> {
        let (name, about, tail) = match self {
            Row::Action(entry) => (entry.spec.title(), entry.spec.about.to_owned(), entry.key.clone()),
            Row::Session { title, .. } => ("session".to_owned(), visible(title), "resume".to_owned()),
            Row::File(path) => ("@".to_owned(), visible(path), String::new()),
        };
        let name = fit(&name, NAMES);
        let pad = " ".repeat((NAMES + 1).saturating_sub(width(&name)));
        let room = columns.saturating_sub(NAMES + 2 + width(&tail));
        let about = fit(&about, room);
        let gap = " ".repeat(room.saturating_sub(width(&about)) + 1);
        let marked = theme.bold().fg(theme.warning);
        let letters = letters.strip_prefix('@').unwrap_or(letters);
        let mut spans = marked::spans(letters, &name, theme.fg(theme.accent), marked);
        spans.push(Span::raw(pad));
        // The description is marked where the name is not why the row is here.
        if spans.len() == 2 {
            spans.extend(marked::spans(letters, &about, theme.fg(theme.text), marked));
        } else {
            spans.push(Span::styled(about, theme.fg(theme.text)));
        }
        spans.push(Span::raw(gap));
        spans.push(Span::styled(tail, theme.dim()));
        Line::from(spans)
    }
}
