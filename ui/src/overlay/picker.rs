//! Short lists to choose from: mode, toolset, effort. Each row has the slash command that it stands for.

use crate::terminal::canvas::Canvas;
use crate::terminal::key::KeyEvent;
use pixir_core::Effort;
use pixir_core::event::{Mode, Toolset};
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};

use super::list::ListView;
use super::models::about_effort;
use super::narrow::Narrow;
use super::panel::SMALL;
use super::{Outcome, Paint, Press, Request, View, dialog, panel};
use crate::input::action::LayerAction;
use crate::input::slash::fuzzy;
use crate::render::text::{fit, width};

/// The most rows of the dialog.
const HEIGHT: u16 = 20;

/// The name of no effort, which leaves it to the model.
pub(crate) use pixir_core::verbs::DEFAULT_EFFORT;

#[derive(Debug, Clone)]
struct Row {
    label: String,
    detail: String,
    command: String,
}

/// What a list shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Modes,
    Toolsets,
    Efforts,
}

impl Kind {
    pub(super) fn title(self) -> &'static str {
        match self {
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
    /// The row of what is in use.
    current: Option<usize>,
    narrow: Narrow,
}

impl Picker {
    /// A list with the cursor on what is in use.
    fn new(kind: Kind, rows: Vec<Row>, current: Option<usize>) -> Picker {
        let narrow = Narrow { list: ListView::at(current.unwrap_or(0)), ..Narrow::default() };
        Picker { kind, rows, current, narrow }
    }

    pub(crate) fn modes(current: Mode) -> Picker {
        let about = |mode| match mode {
            Mode::ReadOnly => "only calls that read",
            Mode::Ask => "calls that read run, all others ask you",
            Mode::Auto => "every call runs; protected paths ask you",
        };
        let rows = Mode::ALL.map(|mode| Row {
            label: mode.name().into(),
            detail: about(mode).into(),
            command: format!("/mode {}", mode.name()),
        });
        Picker::new(Kind::Modes, rows.to_vec(), Mode::ALL.iter().position(|m| *m == current))
    }

    pub(crate) fn toolsets(current: Toolset) -> Picker {
        let about = |toolset| match toolset {
            Toolset::Typed => "each tool with its own arguments",
            Toolset::Run => "one tool: commands joined by | && || ;",
            Toolset::Both => "both; costs the most tokens",
            Toolset::None => "no tools: the model only answers",
        };
        let rows = Toolset::ALL.map(|toolset| Row {
            label: toolset.name().into(),
            detail: about(toolset).into(),
            command: format!("/toolset {}", toolset.name()),
        });
        Picker::new(Kind::Toolsets, rows.to_vec(), Toolset::ALL.iter().position(|it| *it == current))
    }

    pub(crate) fn efforts(current: Option<&str>) -> Picker {
        let unset = Row {
            label: DEFAULT_EFFORT.into(),
            detail: "what the model does by itself".into(),
            command: format!("/effort {DEFAULT_EFFORT}"),
        };
        let efforts = Effort::ALL.map(|effort| Row {
            label: effort.name().into(),
            detail: about_effort(effort).into(),
            command: format!("/effort {}", effort.name()),
        });
        let rows: Vec<Row> = std::iter::once(unset).chain(efforts).collect();
        let current = current.unwrap_or(DEFAULT_EFFORT);
        let at = rows.iter().position(|it| it.label == current);
        Picker::new(Kind::Efforts, rows, at)
    }

    /// The rows of the dialog.
    fn height(&self) -> u16 {
        (u16::try_from(self.rows.len()).unwrap_or(HEIGHT) + 5).min(HEIGHT)
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
}

impl View for Picker {
    fn title(&self) -> &'static str {
        self.kind().title()
    }

    fn is_typing(&self) -> bool {
        true
    }

    fn press(&mut self, at: Position) -> Press {
        self.narrow.list.press(at)
    }

    fn scroll(&mut self, by: isize) {
        let rows = self.shown().len();
        self.narrow.list.scroll(by, rows);
    }

    fn key(&mut self, key: KeyEvent) -> Option<Outcome> {
        self.narrow.key(key).then_some(Outcome::Stay)
    }

    fn act(&mut self, action: LayerAction) -> Outcome {
        let shown = self.shown();
        match action {
            LayerAction::CloseOverlay => Outcome::Close,
            LayerAction::Choose => shown
                .get(self.narrow.list.chosen)
                .map_or(Outcome::Stay, |at| Outcome::CloseAndAsk(Request::Command(self.rows[*at].command.clone()))),
            action => {
                self.narrow.list.act(action, shown.len());
                Outcome::Stay
            }
        }
    }

    fn draw(&mut self, canvas: &mut Canvas, area: Rect, paint: Paint<'_>) {
        let theme = paint.theme;
        let shown = self.shown();
        self.narrow.list.begin();
        let hints = paint.hints(&[(LayerAction::Choose, "choose"), (LayerAction::CloseOverlay, "close")]);
        let inner = panel(
            canvas,
            dialog(area, SMALL, self.height()),
            self.kind.title(),
            &format!("type to narrow · {hints}"),
            theme,
        );
        let list = self.narrow.draw(canvas, inner, theme);
        if shown.is_empty() {
            canvas.line(
                Line::styled(fit("No matches", usize::from(list.width)), theme.dim()),
                Rect { height: 1.min(list.height), ..list },
            );
            return;
        }
        self.narrow.list.chosen = self.narrow.list.chosen.min(shown.len() - 1);
        self.narrow.draw_place(canvas, inner, shown.len(), list.height, theme);
        let columns = usize::from(list.width);
        let label_width = shown.iter().map(|at| width(&self.rows[*at].label)).max().unwrap_or(0).min(columns * 3 / 5);
        let line = |row: usize| {
            let (at, it) = (shown[row], &self.rows[shown[row]]);
            let label = fit(&it.label, label_width);
            let pad = " ".repeat(label_width - width(&label) + 2);
            let detail = fit(&it.detail, columns.saturating_sub(label_width + 4));
            let mark = if self.current == Some(at) { "● " } else { "  " };
            Line::from(vec![
                Span::styled(mark, theme.fg(theme.success)),
                Span::styled(label, theme.fg(theme.text)),
                Span::raw(pad),
                Span::styled(detail, theme.dim()),
            ])
        };
        self.narrow.list.draw(canvas, list, shown.len(), theme, &|row| self.rows[shown[row]].label.clone(), &line);
    }
}
