//! One of many: a list that is narrowed by typing. Each row carries the command that it means.

use crate::terminal::canvas::Canvas;
use pixir_core::event::{Mode, Toolset};
use pixir_core::provider::models::Effort;
use pixir_core::skills::Skill;
use pixir_core::store::Summary;
use ratatui::crossterm::event::{KeyCode, KeyEvent};
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::narrow::Narrow;
use super::{Act, Overlay, Paint, Reply, Told, centred, command, panel};
use crate::input::slash::fuzzy;
use crate::render::text::{fit, width};
use crate::state::{Effect, State};

/// A row.
#[derive(Debug, Clone)]
struct Row {
    label: String,
    detail: String,
    command: String,
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
    kind: Kind,
    rows: Vec<Row>,
    narrow: Narrow,
    /// What to say while there are no rows.
    empty: &'static str,
    /// The theme to go back to when nothing is chosen.
    before: Option<String>,
}

impl Picker {
    fn new(kind: Kind, rows: Vec<Row>, chosen: usize) -> Picker {
        Picker { kind, rows, narrow: Narrow { chosen, ..Narrow::default() }, empty: "nothing here", before: None }
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
            command: format!("/mode {}", mode.name()),
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
            command: format!("/toolset {}", toolset.name()),
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
            command: format!("/effort {}", effort.name()),
        });
        // Without a wish, the cursor is in the middle: Enter by mistake does the least there.
        let current = current.unwrap_or(Effort::Medium.name());
        let chosen = Effort::ALL.iter().position(|it| it.name() == current).unwrap_or(0);
        Picker::new(Kind::Efforts, rows.to_vec(), chosen)
    }

    pub(crate) fn themes(names: &[String], current: &str) -> Picker {
        let row = |name: &String| {
            let detail = if name == current { "as it is now" } else { "" };
            Row { label: name.clone(), detail: detail.to_owned(), command: format!("/theme {name}") }
        };
        let chosen = names.iter().position(|n| n == current).unwrap_or(0);
        Picker {
            before: Some(current.to_owned()),
            ..Picker::new(Kind::Themes, names.iter().map(row).collect(), chosen)
        }
    }

    fn sessions(&mut self, sessions: &[Summary], current: Option<&str>) {
        self.empty = "no other session in this workspace yet";
        self.rows = sessions
            .iter()
            .filter(|s| Some(s.id.as_str()) != current)
            .map(|s| Row {
                label: s.title().to_owned(),
                detail: format!("{}  {}", s.last_minute(), s.id),
                command: format!("/resume {}", s.id),
            })
            .collect();
    }

    fn models(&mut self, models: &[String], current: &str) {
        self.empty = "no provider answers; pixir doctor says why";
        self.rows = models
            .iter()
            .map(|m| Row {
                label: m.clone(),
                detail: if m == current { "answers now".into() } else { String::new() },
                command: format!("/model {m}"),
            })
            .collect();
        if self.narrow.letters.is_empty() {
            self.narrow.chosen = models.iter().position(|m| m == current).unwrap_or(0);
        }
    }

    fn skills(&mut self, skills: &[Skill]) {
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
                command: s.name.clone(),
            })
            .collect();
    }

    fn choose(&self, at: usize) -> Act {
        let chosen = self.rows[at].command.clone();
        if self.kind != Kind::Skills {
            return command(chosen);
        }
        // It may be told what to do.
        Box::new(move |state| {
            state.composer.set(&format!("/skill {chosen} "));
            state.say("add a task, or press Enter to activate it alone");
            Vec::new()
        })
    }

    /// Rows that fit what was typed, best first.
    fn shown(&self) -> Vec<usize> {
        fuzzy(&self.narrow.letters, (0..self.rows.len()).collect(), |at| {
            let row = &self.rows[*at];
            format!("{} {}", row.label, row.detail)
        })
    }
}

impl Overlay for Picker {
    fn title(&self) -> &'static str {
        self.kind.title()
    }

    fn wants(&self, _: &State) -> Vec<Effect> {
        match self.kind {
            Kind::Sessions => vec![Effect::LoadSessions { forks_of: None }],
            Kind::Models => vec![Effect::LoadModels],
            Kind::Skills => vec![Effect::LoadSkills],
            Kind::Modes | Kind::Toolsets | Kind::Efforts | Kind::Themes => Vec::new(),
        }
    }

    fn hear(&mut self, told: Told<'_>) {
        match (self.kind, told) {
            (Kind::Sessions, Told::Sessions { all, current, forks_of: None }) => self.sessions(all, current),
            (Kind::Models, Told::Models { all, current }) => self.models(all, current),
            (Kind::Skills, Told::Skills(all)) => self.skills(all),
            _ => {}
        }
    }

    /// A theme that was only looked at is put back.
    fn on_close(&mut self) -> Option<Act> {
        let before = self.before.take()?;
        Some(Box::new(move |_| vec![Effect::LoadTheme { name: before, is_told: false }]))
    }

    fn scroll(&mut self, by: isize) {
        let rows = self.shown().len();
        self.narrow.scroll(by, rows);
    }

    fn key(&mut self, key: KeyEvent) -> Reply {
        match key.code {
            KeyCode::Esc => return Reply::Close,
            KeyCode::Enter => {
                return self
                    .shown()
                    .get(self.narrow.chosen)
                    .map_or(Reply::Stay, |at| Reply::CloseAndAct(self.choose(*at)));
            }
            _ => {
                let rows = self.shown().len();
                if !self.narrow.key(key, rows) {
                    return Reply::Stay;
                }
            }
        }
        // A theme is best judged by looking at it.
        match self.shown().get(self.narrow.chosen).filter(|_| self.kind == Kind::Themes) {
            Some(at) => Reply::Act(command(self.rows[*at].command.clone())),
            None => Reply::Stay,
        }
    }

    fn draw(&mut self, canvas: &mut Canvas, area: Rect, paint: Paint<'_>) {
        let theme = paint.theme;
        let shown = self.shown();
        let rows = u16::try_from(shown.len().clamp(1, 16)).unwrap_or(16);
        let inner = panel(
            canvas,
            centred(area, 90, rows + 4),
            self.kind.title(),
            "type to narrow · ↑↓ · Enter choose · Esc close",
            theme,
        );
        let list = self.narrow.draw(canvas, inner, theme);
        if shown.is_empty() {
            let text = if self.rows.is_empty() { self.empty } else { "nothing fits" };
            canvas.line(
                Line::styled(fit(text, usize::from(list.width)), theme.dim()),
                Rect { height: 1.min(list.height), ..list },
            );
            return;
        }
        self.narrow.chosen = self.narrow.chosen.min(shown.len() - 1);
        let top = self.narrow.top(list.height);
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
            let style = if number == self.narrow.chosen { theme.selected() } else { theme.base() };
            let at = Rect { y: row, height: 1, ..list };
            canvas.tint(at, style);
            canvas.region("option", at, || it.label.clone());
            canvas.state(false, number == self.narrow.chosen);
            canvas.line(line, at);
        }
    }
}
