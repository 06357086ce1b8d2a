//! One of many: a list that is narrowed by typing. Each row carries the Action that it means.

use crate::canvas::Canvas;
use nucleo_matcher::pattern::{CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};
use pixir_core::event::{Mode, Toolset};
use pixir_core::provider::models::Effort;
use pixir_core::skills::Skill;
use pixir_core::store::Summary;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::{Reply, centred, panel};
use crate::action::Action;
use crate::render::text::{fit, width};
use crate::theme::Theme;

/// A row.
#[derive(Debug, Clone)]
struct Row {
    label: String,
    detail: String,
    action: Action,
    /// Done as soon as the row is looked at.
    preview: Option<Action>,
}

/// What is listed; rows that come late must find the list that asked for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Sessions,
    Models,
    Skills,
    Modes,
    Toolsets,
    Efforts,
    Themes,
}

impl Kind {
    fn title(self) -> &'static str {
        match self {
            Kind::Sessions => "Sessions",
            Kind::Models => "Models",
            Kind::Skills => "Skills",
            Kind::Modes => "Mode",
            Kind::Toolsets => "Toolset",
            Kind::Efforts => "Effort",
            Kind::Themes => "Theme",
        }
    }
}

/// The list.
#[derive(Debug)]
pub(crate) struct Picker {
    pub(crate) kind: Kind,
    rows: Vec<Row>,
    letters: String,
    chosen: usize,
    /// What to say while there are no rows.
    empty: &'static str,
    /// Done when nothing is chosen.
    pub(crate) on_cancel: Option<Action>,
}

impl Picker {
    fn new(kind: Kind, rows: Vec<Row>, chosen: usize) -> Picker {
        Picker { kind, rows, letters: String::new(), chosen, empty: "nothing here", on_cancel: None }
    }

    /// A list whose rows are still to come.
    pub(crate) fn loading(kind: Kind) -> Picker {
        Picker { empty: "loading…", ..Picker::new(kind, Vec::new(), 0) }
    }

    pub(crate) fn modes(current: Mode) -> Picker {
        let about = |mode| match mode {
            Mode::ReadOnly => "nothing that changes anything runs",
            Mode::Ask => "reading runs, the rest asks you",
            Mode::Auto => "everything runs; protected files still ask",
        };
        let rows = Mode::ALL.map(|mode| Row {
            label: mode.name().into(),
            detail: about(mode).into(),
            action: Action::Mode(mode),
            preview: None,
        });
        let chosen = Mode::ALL.iter().position(|m| *m == current).unwrap_or(0);
        Picker::new(Kind::Modes, rows.to_vec(), chosen)
    }

    pub(crate) fn toolsets(current: Toolset) -> Picker {
        let about = |toolset| match toolset {
            Toolset::Typed => "each tool with its own arguments",
            Toolset::Run => "one tool: commands joined with | && || ;",
            Toolset::Both => "both; costs the most tokens",
        };
        let rows = Toolset::ALL.map(|toolset| Row {
            label: toolset.name().into(),
            detail: about(toolset).into(),
            action: Action::Toolset(toolset),
            preview: None,
        });
        let chosen = Toolset::ALL.iter().position(|it| *it == current).unwrap_or(0);
        Picker::new(Kind::Toolsets, rows.to_vec(), chosen)
    }

    pub(crate) fn efforts(current: Option<&str>) -> Picker {
        let about = |effort| match effort {
            Effort::None => "not at all",
            Effort::Minimal => "as good as not",
            Effort::Low => "a little: quick and cheap",
            Effort::Medium => "moderately",
            Effort::High => "much",
            Effort::XHigh => "very much, where a model can",
            Effort::Max => "without restraint, where a model can",
        };
        let rows = Effort::ALL.map(|effort| Row {
            label: effort.name().into(),
            detail: about(effort).into(),
            action: Action::Effort(effort),
            preview: None,
        });
        // Without a wish, the cursor is in the middle: Enter by mistake does the least there.
        let current = current.unwrap_or(Effort::Medium.name());
        let chosen = Effort::ALL.iter().position(|it| it.name() == current).unwrap_or(0);
        Picker::new(Kind::Efforts, rows.to_vec(), chosen)
    }

    pub(crate) fn themes(names: &[String], current: &str) -> Picker {
        let row = |name: &String| Row {
            label: name.clone(),
            detail: String::new(),
            action: Action::Theme(name.clone()),
            preview: Some(Action::PreviewTheme(name.clone())),
        };
        let chosen = names.iter().position(|n| n == current).unwrap_or(0);
        Picker {
            on_cancel: Some(Action::Theme(current.to_owned())),
            ..Picker::new(Kind::Themes, names.iter().map(row).collect(), chosen)
        }
    }

    pub(crate) fn sessions(&mut self, sessions: &[Summary], current: Option<&str>) {
        self.empty = "no other session in this workspace yet";
        self.rows = sessions
            .iter()
            .filter(|s| Some(s.id.as_str()) != current)
            .map(|s| Row {
                label: s.title().to_owned(),
                detail: format!("{}  {}", s.last_minute(), s.id),
                action: Action::Resume(s.id.clone()),
                preview: None,
            })
            .collect();
    }

    pub(crate) fn models(&mut self, models: &[String], current: &str) {
        self.empty = "no provider answers; pixir doctor says why";
        self.rows = models
            .iter()
            .map(|m| Row {
                label: m.clone(),
                detail: if m == current { "answers now".into() } else { String::new() },
                action: Action::Model(m.clone()),
                preview: None,
            })
            .collect();
        if self.letters.is_empty() {
            self.chosen = models.iter().position(|m| m == current).unwrap_or(0);
        }
    }

    pub(crate) fn skills(&mut self, skills: &[Skill]) {
        self.empty = "no skills yet: put one at .pixir/skills/<name>/SKILL.md, or among your own";
        let about = |s: &Skill| match s.warnings.first() {
            Some(warning) => format!("{} · ⚠ {warning}", s.description),
            None => s.description.clone(),
        };
        self.rows = skills
            .iter()
            .map(|s| Row {
                label: s.name.clone(),
                detail: format!("{} · {}", s.origin.name(), about(s)),
                action: Action::Skill(s.name.clone()),
                preview: None,
            })
            .collect();
    }

    /// Rows that fit what was typed, best first.
    fn shown(&self) -> Vec<usize> {
        if self.letters.is_empty() {
            return (0..self.rows.len()).collect();
        }
        let mut matcher = Matcher::new(Config::DEFAULT);
        let pattern = Pattern::parse(&self.letters, CaseMatching::Ignore, Normalization::Smart);
        let mut buffer = Vec::new();
        let mut found: Vec<(u32, usize)> = self
            .rows
            .iter()
            .enumerate()
            .filter_map(|(at, row)| {
                Some((
                    pattern
                        .score(Utf32Str::new(&format!("{} {}", row.label, row.detail), &mut buffer), &mut matcher)?,
                    at,
                ))
            })
            .collect();
        found.sort_by_key(|(score, at)| (std::cmp::Reverse(*score), *at));
        found.into_iter().map(|(_, at)| at).collect()
    }

    pub(crate) fn select(&mut self, by: isize) {
        let most = self.shown().len().saturating_sub(1);
        self.chosen = self.chosen.saturating_add_signed(by).min(most);
    }

    pub(crate) fn key(&mut self, key: KeyEvent) -> Reply {
        match key.code {
            KeyCode::Esc => return Reply::Close,
            KeyCode::Up => self.select(-1),
            KeyCode::Down => self.select(1),
            KeyCode::PageUp => self.select(-10),
            KeyCode::PageDown => self.select(10),
            KeyCode::Enter => {
                return self
                    .shown()
                    .get(self.chosen)
                    .map_or(Reply::Stay, |at| Reply::CloseAndAct(self.rows[*at].action.clone()));
            }
            KeyCode::Backspace => {
                self.letters.pop();
                self.chosen = 0;
            }
            KeyCode::Char(c) if key.modifiers.difference(KeyModifiers::SHIFT).is_empty() => {
                self.letters.push(c);
                self.chosen = 0;
            }
            _ => return Reply::Stay,
        }
        let preview = self.shown().get(self.chosen).and_then(|at| self.rows[*at].preview.clone());
        preview.map_or(Reply::Stay, Reply::Act)
    }

    pub(crate) fn draw(&mut self, canvas: &mut Canvas, area: Rect, theme: &Theme) {
        let shown = self.shown();
        let rows = u16::try_from(shown.len().clamp(1, 16)).unwrap_or(16);
        let inner = panel(
            canvas,
            centred(area, 90, rows + 4),
            self.kind.title(),
            "type to narrow · ↑↓ · Enter choose · Esc close",
            theme,
        );
        let search = Line::from(vec![
            Span::styled("› ", theme.fg(theme.accent)),
            Span::styled(self.letters.clone(), theme.fg(theme.text)),
        ]);
        canvas.line(search, Rect { height: 1.min(inner.height), ..inner });
        if let Ok(typed) = u16::try_from(width(&self.letters)) {
            canvas.set_cursor_position((inner.x + 2 + typed.min(inner.width.saturating_sub(3)), inner.y));
        }
        let list = Rect { y: inner.y + 2.min(inner.height), height: inner.height.saturating_sub(2), ..inner };
        if shown.is_empty() {
            let text = if self.rows.is_empty() { self.empty } else { "nothing fits" };
            canvas.line(
                Line::styled(fit(text, usize::from(list.width)), theme.dim()),
                Rect { height: 1.min(list.height), ..list },
            );
            return;
        }
        self.chosen = self.chosen.min(shown.len() - 1);
        let top = (self.chosen + 1).saturating_sub(usize::from(list.height));
        let columns = usize::from(list.width);
        let label_width = shown.iter().map(|at| width(&self.rows[*at].label)).max().unwrap_or(0).min(columns * 3 / 5);
        for (row, (number, at)) in (list.y..list.bottom()).zip(shown.iter().enumerate().skip(top)) {
            let it = &self.rows[*at];
            let label = fit(&it.label, label_width);
            let pad = " ".repeat(label_width - width(&label) + 2);
            let detail = fit(&it.detail, columns.saturating_sub(label_width + 2));
            let line = Line::from(vec![
                Span::styled(label, theme.fg(theme.text)),
                Span::raw(pad),
                Span::styled(detail, theme.dim()),
            ]);
            let style = if number == self.chosen { theme.selected() } else { theme.base() };
            let at = Rect { y: row, height: 1, ..list };
            canvas.tint(at, style);
            canvas.line(line, at);
        }
    }
}
