//! Lists to choose from: models, skills, settings. Each row has the slash command that it stands for.

use crate::terminal::canvas::{Canvas, RegionState};
use crate::terminal::key::KeyEvent;
use pixir_core::event::{Mode, Toolset};
use pixir_core::{Effort, Skill};
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::models::about_effort;
use super::narrow::Narrow;
use super::{Notification, Outcome, Paint, Request, dialog, panel};
use crate::input::action::Action;
use crate::input::slash::fuzzy;
use crate::render::text::{fit, width};

/// The most rows of the dialog.
const HEIGHT: u16 = 20;

#[derive(Debug, Clone)]
struct Row {
    label: String,
    detail: String,
    command: String,
}

/// What a list shows. Rows that arrive late are for the list of their kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Skills,
    Modes,
    Toolsets,
    Efforts,
}

impl Kind {
    pub(super) fn title(self) -> &'static str {
        match self {
            Kind::Skills => "Skills",
            Kind::Modes => "Mode",
            Kind::Toolsets => "Toolset",
            Kind::Efforts => "Effort",
        }
    }
}

#[derive(Debug)]
pub(crate) struct Picker {
    kind: Kind,
    rows: Vec<Row>,
    narrow: Narrow,
    /// The text in place of rows, while there are none.
    empty: &'static str,
}

impl Picker {
    fn new(kind: Kind, rows: Vec<Row>, chosen: usize) -> Picker {
        Picker { kind, rows, narrow: Narrow { chosen, ..Narrow::default() }, empty: "none" }
    }

    /// A list whose rows are being loaded.
    pub(crate) fn loading(kind: Kind) -> Picker {
        Picker { empty: "loading…", ..Picker::new(kind, Vec::new(), 0) }
    }

    pub(crate) fn modes(current: Mode) -> Picker {
        let about = |mode| match mode {
            Mode::ReadOnly => "only calls that read",
            Mode::Ask => "calls that read run, all others ask you",
            Mode::Auto => "every call runs; protected paths still ask you",
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
            Toolset::Run => "one tool: commands joined by | && || ;",
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
        let rows = Effort::ALL.map(|effort| Row {
            label: effort.name().into(),
            detail: about_effort(effort).into(),
            command: format!("/effort {}", effort.name()),
        });
        // Without a setting the cursor is in the middle, where an accidental Enter changes least.
        let current = current.unwrap_or(Effort::Medium.name());
        let chosen = Effort::ALL.iter().position(|it| it.name() == current).unwrap_or(0);
        Picker::new(Kind::Efforts, rows.to_vec(), chosen)
    }

    fn skills(&mut self, skills: &[Skill]) {
        self.empty = "no skills; add one at .pixir/skills/<name>/SKILL.md";
        let about = |s: &Skill| match s.warning() {
            Some(warning) => format!("{} · ⚠ {warning}", s.description),
            None => s.description.clone(),
        };
        let mut skills: Vec<&Skill> = skills.iter().filter(|s| s.fields.user_invocable).collect();
        // Those that can be used come first.
        skills.sort_by_key(|s| !s.is_active());
        self.rows = skills
            .iter()
            .map(|s| Row {
                label: s.name.clone(),
                detail: format!("{} · {}", s.origin.name(), about(s)),
                command: s.name.clone(),
            })
            .collect();
    }

    fn choose(&self, at: usize) -> Request {
        let chosen = self.rows[at].command.clone();
        if self.kind != Kind::Skills {
            return Request::Command(chosen);
        }
        // A skill can be given a task.
        Request::Complete {
            draft: format!("/skill {chosen} "),
            hint: Some("add a task, or press Enter to activate the skill alone"),
        }
    }

    /// The rows of the dialog. Skills are read while it is open, so it has room for them from the start.
    fn height(&self) -> u16 {
        let rows =
            if self.kind == Kind::Skills { HEIGHT } else { u16::try_from(self.rows.len()).unwrap_or(HEIGHT) + 5 };
        rows.min(HEIGHT)
    }

    /// The rows that match the letters, best first.
    fn shown(&self) -> Vec<usize> {
        fuzzy(&self.narrow.letters, (0..self.rows.len()).collect(), |at| {
            let row = &self.rows[*at];
            format!("{} {}", row.label, row.detail)
        })
    }
}

impl Picker {
    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    pub(crate) fn notify(&mut self, notification: Notification<'_>) {
        if let (Kind::Skills, Notification::Skills(all)) = (self.kind, notification) {
            self.skills(all);
        }
    }

    pub(crate) fn scroll(&mut self, by: isize) {
        let rows = self.shown().len();
        self.narrow.scroll(by, rows);
    }

    pub(crate) fn key(&mut self, key: KeyEvent) -> Option<Outcome> {
        self.narrow.key(key).then_some(Outcome::Stay)
    }

    pub(crate) fn act(&mut self, action: Action) -> Outcome {
        let shown = self.shown();
        match action {
            Action::CloseOverlay => Outcome::Close,
            Action::Choose => {
                shown.get(self.narrow.chosen).map_or(Outcome::Stay, |at| Outcome::CloseAndAsk(self.choose(*at)))
            }
            action => {
                self.narrow.act(action, shown.len());
                Outcome::Stay
            }
        }
    }

    pub(crate) fn draw(&mut self, canvas: &mut Canvas, area: Rect, paint: Paint<'_>) {
        let theme = paint.theme;
        let shown = self.shown();
        let hints = paint.hints(&[(Action::Choose, "choose"), (Action::CloseOverlay, "close")]);
        let inner = panel(
            canvas,
            dialog(area, 90, self.height()),
            self.kind.title(),
            &format!("type to narrow · {hints}"),
            theme,
        );
        let list = self.narrow.draw(canvas, inner, theme);
        if shown.is_empty() {
            let text = if self.rows.is_empty() { self.empty } else { "no matches" };
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
            canvas.region_state(RegionState { focused: false, selected: number == self.narrow.chosen });
            canvas.line(line, at);
        }
    }
}
