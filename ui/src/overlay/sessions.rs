//! The stored Sessions: searched by all their text, previewed, resumed, renamed, pinned, deleted.

use std::collections::HashMap;
use std::time::Duration;

use pixir_core::search::{Found, Said};
use pixir_core::store::Summary;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};

use super::narrow::{Narrow, cut_word};
use super::panes;
use super::{Effect, OnHarness, Outcome, Paint, Press, Request, View, dialog, panel};
use crate::input::action::{LayerAction, Scope};
use crate::input::slash::fuzzy;
use crate::render::context::RenderContext;
use crate::render::figures::age;
use crate::render::text::{fit, plain, visible, width, wrap_lines};
use crate::render::{markdown, marked};
use crate::terminal::canvas::Canvas;
use crate::terminal::key::{KeyCode, KeyEvent, KeyModifiers};
use crate::theme::Theme;

/// The size of the dialog.
const SIZE: (u16, u16) = (132, 34);
/// Before the title of a pinned Session.
const PIN: &str = "⚲ ";
/// The most lines of a message in the preview.
const MESSAGE: usize = 8;

/// Which Sessions are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    Workspace,
    Everywhere,
}

/// Work on stored Sessions, which needs files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Work {
    List(Reach),
    /// Read the last messages of a Session.
    Preview(String),
    /// Search all text for these words, and no longer for those before.
    Search {
        words: Vec<String>,
        reach: Reach,
    },
    Rename {
        id: String,
        name: String,
        reach: Reach,
    },
    /// Pin a Session to the top of the list.
    Pin {
        id: String,
        reach: Reach,
    },
    Unpin {
        id: String,
        reach: Reach,
    },
    /// Move a Session to the trash.
    Delete {
        id: String,
        reach: Reach,
    },
    Undelete {
        id: String,
        reach: Reach,
    },
    /// Resume a Session, which may belong to another workspace.
    Resume {
        id: String,
        workspace: String,
    },
}

/// Which of them the user wants to see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Only {
    All,
    Named,
    Pinned,
}

impl Only {
    fn shows(self, it: &Summary) -> bool {
        match self {
            Only::All => true,
            Only::Named => it.name.is_some(),
            Only::Pinned => it.pinned,
        }
    }

    fn next(self) -> Only {
        match self {
            Only::All => Only::Named,
            Only::Named => Only::Pinned,
            Only::Pinned => Only::All,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Only::All => "all",
            Only::Named => "named",
            Only::Pinned => "pinned",
        }
    }
}

fn ask(work: Work) -> Outcome {
    Outcome::does(OnHarness::Stored(work))
}

#[derive(Debug)]
pub(crate) struct SessionList {
    narrow: Narrow,
    reach: Reach,
    only: Only,
    /// `None` while they are loaded.
    all: Option<Vec<Summary>>,
    current: Option<String>,
    /// The Sessions whose text has the words, with the text around them.
    hits: HashMap<String, Found>,
    /// The search is still running.
    is_searching: bool,
    preview: Option<(String, Vec<Said>)>,
    /// Where the preview of the last frame stood, and how many lines of it are scrolled away. They belong to this Session.
    preview_area: Rect,
    read: (String, usize),
    /// The new name of the chosen Session, while the user types it.
    naming: Option<String>,
    /// The name is being saved; until then it stays in its field, because that can fail.
    is_saving_name: bool,
    /// The user is asked whether the chosen Session is to be deleted.
    is_confirming: bool,
    /// The Session that was deleted last.
    deleted: Option<String>,
    /// The wall clock when the list was loaded.
    now: Duration,
}

impl SessionList {
    pub(crate) fn new(now: Duration) -> SessionList {
        SessionList {
            narrow: Narrow::default(),
            reach: Reach::Workspace,
            only: Only::All,
            all: None,
            current: None,
            hits: HashMap::new(),
            is_searching: false,
            preview: None,
            preview_area: Rect::default(),
            read: (String::new(), 0),
            naming: None,
            is_saving_name: false,
            is_confirming: false,
            deleted: None,
            now,
        }
    }

    /// Titles that match the letters, then Sessions whose text has the words, the latest first.
    fn shown(&self) -> Vec<&Summary> {
        let all = self.all.iter().flatten().filter(|it| self.only.shows(it));
        let letters = &self.narrow.letters;
        if letters.is_empty() {
            return all.collect();
        }
        let titled = fuzzy(letters, all.clone().collect(), |it| it.title().to_owned());
        let ids: Vec<&str> = titled.iter().map(|it| it.id.as_str()).collect();
        let others = all.filter(|it| !ids.contains(&it.id.as_str()) && self.hits.contains_key(&it.id));
        let others: Vec<&Summary> = others.collect();
        titled.into_iter().chain(others).collect()
    }

    fn chosen(&self) -> Option<&Summary> {
        let shown = self.shown();
        shown.get(self.narrow.list.chosen).or(shown.last()).copied()
    }

    /// Takes the stored Sessions. The one with the id `current` is open. Returns what is read next: the last messages of the
    /// Session under the cursor.
    pub(crate) fn list(&mut self, all: &[Summary], current: Option<&str>) -> Option<Effect> {
        let before = self.chosen().map(|it| it.id.clone());
        if std::mem::take(&mut self.is_saving_name) {
            self.naming = None;
        }
        let mut all = all.to_vec();
        all.sort_by_key(|it| !it.pinned);
        self.all = Some(all);
        self.current = current.map(str::to_owned);
        // The cursor stays on its Session. It begins on the latest other one: Enter on the current one changes nothing.
        let shown = self.shown();
        let at = match &before {
            Some(id) => shown.iter().position(|it| it.id == *id),
            None => shown.iter().position(|it| Some(it.id.as_str()) != current),
        };
        self.narrow.list.chosen = at.unwrap_or(0);
        self.wanted().map(|id| OnHarness::Stored(Work::Preview(id)).into())
    }

    /// The words that are searched are in this Session.
    pub(crate) fn found(&mut self, id: &str, found: &Found) {
        self.hits.insert(id.to_owned(), found.clone());
    }

    pub(crate) fn search_ended(&mut self) {
        self.is_searching = false;
    }

    /// Takes the last messages of a Session.
    pub(crate) fn preview(&mut self, id: &str, said: &[Said]) {
        self.preview = Some((id.to_owned(), said.to_vec()));
    }

    /// The Session whose last messages are not shown yet.
    fn wanted(&self) -> Option<String> {
        let chosen = self.chosen()?;
        self.preview.as_ref().is_none_or(|(id, _)| *id != chosen.id).then(|| chosen.id.clone())
    }

    /// Asks for the last messages of the chosen Session, if they are not shown.
    fn look(&self) -> Outcome {
        self.wanted().map_or(Outcome::Stay, |id| ask(Work::Preview(id)))
    }

    fn search(&mut self) -> Work {
        self.hits.clear();
        let words: Vec<String> = self.narrow.letters.split_whitespace().map(str::to_lowercase).collect();
        // One letter is in every Session.
        let words = if self.narrow.letters.trim().chars().count() < 2 { Vec::new() } else { words };
        self.is_searching = !words.is_empty();
        Work::Search { words, reach: self.reach }
    }

    fn line(&self, it: &Summary, columns: usize, theme: &Theme) -> Line<'static> {
        let is_current = Some(&it.id) == self.current.as_ref();
        let mark = if is_current {
            "● "
        } else if it.damaged {
            "! "
        } else {
            "  "
        };
        let then = Duration::from_millis(u64::try_from(it.last_activity.as_millisecond()).unwrap_or(0));
        let turns = if it.turns == 1 { "turn " } else { "turns" };
        let ago = age(self.now.saturating_sub(then));
        // Without a price there is no column for it.
        let is_priced = self.all.iter().flatten().any(|it| !it.cost.to_string().is_empty());
        let cost = if is_priced { format!(" {:>7}", it.cost.to_string()) } else { String::new() };
        let tail = format!("  {:>3} {turns} {ago:>4}{cost}", it.turns);
        let pin = if it.pinned { PIN } else { "" };
        // A fork begins with the same prompt as the Session that it was made from.
        let fork = if it.forked_from.is_some() { "↱ " } else { "" };
        let room = columns.saturating_sub(2 + width(pin) + width(fork) + width(&tail));
        let title = fit(&visible(it.title()), room);
        let pad = " ".repeat(room.saturating_sub(width(&title)));
        let style = if it.name.is_some() { theme.fg(theme.strong) } else { theme.fg(theme.text) };
        let mut spans = vec![Span::styled(mark, theme.fg(if it.damaged { theme.warning } else { theme.success }))];
        spans.push(Span::styled(pin, theme.fg(theme.accent)));
        spans.push(Span::styled(fork, theme.fg(theme.tool)));
        spans.extend(marked::spans(&self.narrow.letters, &title, style, theme.bold().fg(theme.warning)));
        spans.extend([Span::raw(pad), Span::styled(tail, theme.dim())]);
        Line::from(spans)
    }

    /// What the search has found, then the last messages.
    fn preview_lines(&self, it: &Summary, columns: usize, paint: Paint<'_>) -> Vec<Line<'static>> {
        let theme = paint.theme;
        let mut lines = vec![Line::styled(fit(&visible(it.title()), columns), theme.bold())];
        let calls = if it.tool_calls == 1 { "1 call".to_owned() } else { format!("{} calls", it.tool_calls) };
        let fork = if it.forked_from.is_some() { "a fork · " } else { "" };
        let mut facts = format!("{fork}{} · {calls}", it.model);
        if self.reach == Reach::Everywhere {
            facts = format!("{} · {facts}", it.workspace);
        }
        lines.push(Line::styled(fit(&visible(&facts), columns), theme.dim()));
        if self.is_confirming {
            lines.push(Line::styled("Delete this session? It moves to the trash.", theme.fg(theme.warning)));
        }
        if let Some(found) = self.hits.get(&it.id) {
            lines.push(Line::default());
            let turn = found.turn.map_or(String::new(), |turn| format!("turn {turn}: "));
            let text = [Span::styled(format!("{turn}{}", visible(&found.excerpt)), theme.fg(theme.warning))];
            lines.extend(wrap_lines(&text, columns, &[], &[]));
        }
        let said = self.preview.iter().filter(|(id, _)| *id == it.id).flat_map(|(_, said)| said);
        for Said { by_user, text } in said {
            lines.push(Line::default());
            let start: String = text.chars().take(columns * MESSAGE).collect();
            if !by_user {
                let context = RenderContext::new(theme, paint.highlighter, columns.saturating_sub(2).max(1));
                let rows = markdown::rows(&plain(&start), &context).into_iter().take(MESSAGE);
                lines.extend(rows.map(|mut row| {
                    row.line.spans.insert(0, Span::raw("  "));
                    row.line
                }));
                continue;
            }
            let style = theme.fg(theme.user);
            let wrapped = start.lines().filter(|line| !line.trim().is_empty()).enumerate().flat_map(|(at, part)| {
                let first = if at == 0 { "❯ " } else { "  " };
                let text = [Span::styled(plain(part).into_owned(), style)];
                wrap_lines(&text, columns, &[Span::styled(first, style)], &[Span::raw("  ")])
            });
            lines.extend(wrapped.take(MESSAGE));
        }
        lines
    }
}

impl View for SessionList {
    fn is_loading(&self) -> bool {
        self.all.is_none()
    }

    fn title(&self) -> &'static str {
        "Sessions"
    }

    fn scopes(&self) -> &'static [Scope] {
        &[Scope::Sessions, Scope::Overlay]
    }

    fn is_typing(&self) -> bool {
        !self.is_confirming
    }

    fn opened(&mut self) -> Vec<Effect> {
        vec![OnHarness::Stored(Work::List(Reach::Workspace)).into()]
    }

    fn key(&mut self, key: KeyEvent) -> Option<Outcome> {
        if let Some(name) = &mut self.naming {
            match key.code {
                KeyCode::Backspace => drop(name.pop()),
                KeyCode::Char('u') if key.modifiers == KeyModifiers::CONTROL => name.clear(),
                KeyCode::Char('w') if key.modifiers == KeyModifiers::CONTROL => cut_word(name),
                KeyCode::Char(c) if key.modifiers.is_typing() => name.push(c),
                _ => return None,
            }
            return Some(Outcome::Stay);
        }
        if !self.narrow.key(key) {
            return None;
        }
        let search = self.search();
        let preview = self.wanted().map(Work::Preview);
        Some(Outcome::Ask(Request::Do(
            std::iter::once(search).chain(preview).map(|it| OnHarness::Stored(it).into()).collect(),
        )))
    }

    fn forget_question(&mut self) {
        self.is_confirming = false;
    }

    fn act(&mut self, action: LayerAction) -> Outcome {
        if let Some(name) = &self.naming {
            return match (action, self.chosen()) {
                (LayerAction::Choose, Some(it)) => {
                    let work = Work::Rename { id: it.id.clone(), name: name.trim().to_owned(), reach: self.reach };
                    self.is_saving_name = true;
                    ask(work)
                }
                (LayerAction::CloseOverlay, _) => {
                    self.naming = None;
                    Outcome::Stay
                }
                _ => Outcome::Stay,
            };
        }
        if std::mem::take(&mut self.is_confirming) {
            return match (action, self.chosen().map(|it| it.id.clone())) {
                (LayerAction::ConfirmDelete, Some(id)) => {
                    self.deleted = Some(id.clone());
                    ask(Work::Delete { id, reach: self.reach })
                }
                _ => Outcome::Stay,
            };
        }
        match action {
            LayerAction::CloseOverlay => return Outcome::Close,
            LayerAction::Choose => {
                return match self.chosen() {
                    Some(it) if Some(&it.id) == self.current.as_ref() => Outcome::Close,
                    Some(it) if self.reach == Reach::Everywhere => {
                        let (id, workspace) = (it.id.clone(), it.workspace.clone());
                        Outcome::CloseAndAsk(Request::Do(vec![
                            OnHarness::Stored(Work::Resume { id, workspace }).into(),
                        ]))
                    }
                    Some(it) => Outcome::CloseAndAsk(Request::Command(format!("/resume {}", it.id))),
                    None => Outcome::Stay,
                };
            }
            LayerAction::SwitchReach => {
                self.reach = match self.reach {
                    Reach::Workspace => Reach::Everywhere,
                    Reach::Everywhere => Reach::Workspace,
                };
                (self.all, self.narrow.list.chosen) = (None, 0);
                let search = self.search();
                return Outcome::Ask(Request::Do(vec![
                    OnHarness::Stored(Work::List(self.reach)).into(),
                    OnHarness::Stored(search).into(),
                ]));
            }
            LayerAction::OnlyNamed => {
                (self.only, self.narrow.list.chosen) = (self.only.next(), 0);
            }
            LayerAction::RenameStored => {
                self.naming = self.chosen().map(|it| it.name.clone().unwrap_or_default());
                return Outcome::Stay;
            }
            LayerAction::PinStored => {
                return self.chosen().map_or(Outcome::Stay, |it| {
                    let (id, reach) = (it.id.clone(), self.reach);
                    ask(if it.pinned { Work::Unpin { id, reach } } else { Work::Pin { id, reach } })
                });
            }
            LayerAction::DeleteStored => {
                self.is_confirming = self.chosen().is_some_and(|it| Some(&it.id) != self.current.as_ref());
                return Outcome::Stay;
            }
            LayerAction::UndeleteStored => {
                return match self.deleted.take() {
                    Some(id) => ask(Work::Undelete { id, reach: self.reach }),
                    None => Outcome::Stay,
                };
            }
            action => {
                let rows = self.shown().len();
                self.narrow.list.act(action, rows);
            }
        }
        self.look()
    }

    fn press(&mut self, at: Position) -> Press {
        if self.naming.is_some() || std::mem::take(&mut self.is_confirming) {
            return Press::Nowhere;
        }
        let before = self.narrow.list.chosen;
        match self.narrow.list.press(at) {
            Press::OnRow(row) if row != before => Press::Preview(row, Box::new(self.look())),
            other => other,
        }
    }

    fn scroll(&mut self, by: isize) {
        let rows = self.shown().len();
        self.narrow.list.scroll(by, rows);
    }

    fn wheel(&mut self, at: Position, by: isize) -> Outcome {
        if self.preview_area.contains(at) {
            self.read.1 = self.read.1.saturating_add_signed(by);
            return Outcome::Stay;
        }
        if self.naming.is_some() || std::mem::take(&mut self.is_confirming) {
            return Outcome::Stay;
        }
        self.scroll(by);
        self.look()
    }

    fn draw(&mut self, canvas: &mut Canvas, area: Rect, paint: Paint<'_>) {
        let theme = paint.theme;
        let keys = if self.is_confirming {
            paint.hints(&[(LayerAction::ConfirmDelete, "delete it, any other key keeps it")])
        } else if self.naming.is_some() {
            paint.hints(&[(LayerAction::Choose, "save the name"), (LayerAction::CloseOverlay, "cancel")])
        } else {
            let reach = match self.reach {
                Reach::Workspace => "everywhere",
                Reach::Everywhere => "this workspace",
            };
            let has_row = !self.shown().is_empty();
            let pin = if self.chosen().is_some_and(|it| it.pinned) { "unpin" } else { "pin" };
            paint.hints_of(&[
                (has_row, LayerAction::Choose, "resume"),
                (true, LayerAction::SwitchReach, reach),
                (self.deleted.is_some(), LayerAction::UndeleteStored, "undelete"),
                (has_row, LayerAction::RenameStored, "rename"),
                (has_row, LayerAction::PinStored, pin),
                (has_row, LayerAction::DeleteStored, "delete"),
                (has_row || self.only != Only::All, LayerAction::OnlyNamed, self.only.next().word()),
                (true, LayerAction::CloseOverlay, "close"),
            ])
        };
        let title = match self.reach {
            Reach::Workspace => "Sessions · this workspace",
            Reach::Everywhere => "Sessions · everywhere",
        };
        let inner = panel(canvas, dialog(area, SIZE.0, SIZE.1), title, &keys, theme);
        let body = self.narrow.draw(canvas, inner, theme);
        let shown = self.shown();
        let count = match (&self.all, self.is_searching) {
            (None, _) => "loading…".to_owned(),
            (Some(_), true) => format!("{} · searching their text…", shown.len()),
            (Some(all), false) => format!("{} of {}", shown.len(), all.len()),
        };
        let at = Rect { y: inner.y, height: 1.min(inner.height), ..inner };
        let wide = u16::try_from(width(&count)).unwrap_or(0).min(at.width);
        canvas.line(Line::styled(count, theme.dim()), Rect { x: at.right() - wide, width: wide, ..at });
        let all = self.all.as_ref().map_or(usize::MAX, Vec::len);
        let (list, preview) = panes::split_after(canvas, body, u16::try_from(all).unwrap_or(u16::MAX), theme);
        if shown.is_empty() {
            let text = match &self.all {
                None => "",
                Some(_) if self.is_searching => "Searching…",
                Some(all) if !all.is_empty() => "No matches",
                Some(_) => "No sessions yet: what you send starts one",
            };
            canvas.line(
                Line::styled(fit(text, usize::from(list.width)), theme.dim()),
                Rect { height: 1.min(list.height), ..list },
            );
            return;
        }
        let chosen = self.narrow.list.chosen.min(shown.len() - 1);
        let line = |row: usize| match &self.naming {
            Some(name) if row == chosen => Line::from(vec![
                Span::styled("  name: ", theme.fg(theme.accent)),
                Span::styled(format!("{}▏", visible(name)), theme.fg(theme.text)),
            ]),
            Some(_) | None => self.line(shown[row], usize::from(list.width), theme),
        };
        self.narrow.list.draw(canvas, list, shown.len(), theme, &|row| shown[row].title().to_owned(), &line);
        let (area, it) = (preview.unwrap_or_default(), shown[chosen]);
        let lines = self.preview_lines(it, usize::from(area.width).max(1), paint);
        let most = lines.len().saturating_sub(usize::from(area.height));
        let read = if self.read.0 == it.id { self.read.1.min(most) } else { 0 };
        let id = it.id.clone();
        panes::draw_lines(canvas, area, lines.into_iter().skip(read));
        (self.preview_area, self.read) = (area, (id, read));
    }
}
