//! A page of facts: status, usage, the plan, the checks of this machine.

use ratatui::layout::Rect;
use ratatui::text::Line;

use super::panel::inside;
use super::{Outcome, Page, Paint, View, dialog, panel};
use crate::input::action::LayerAction;
use crate::render::report::{Check, Item, Report, Section};
use crate::terminal::canvas::Canvas;

/// The size of the dialog.
const SIZE: (u16, u16) = (100, 30);

/// What the page is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReportKind {
    Status,
    Usage,
    Plan,
    Doctor,
    Command,
}

#[derive(Debug)]
pub(crate) struct ReportView {
    kind: ReportKind,
    /// `None` while it is being made.
    report: Option<Report>,
    page: Page,
}

impl ReportView {
    pub(crate) fn new(kind: ReportKind, report: Report) -> ReportView {
        ReportView { kind, report: Some(report), page: Page::default() }
    }

    /// A page whose content is being made.
    pub(crate) fn loading(kind: ReportKind) -> ReportView {
        ReportView { kind, report: None, page: Page::default() }
    }

    /// Takes the checks of this machine.
    pub(crate) fn show_checks(&mut self, checks: &[Check]) {
        if self.kind == ReportKind::Doctor {
            let items = checks.iter().cloned().map(Item::Check).collect();
            self.report = Some(Report { sections: vec![Section::new("", items)] });
            self.page = Page::default();
        }
    }
}

impl View for ReportView {
    fn title(&self) -> &'static str {
        match self.kind {
            ReportKind::Status => "Status",
            ReportKind::Usage => "Usage",
            ReportKind::Plan => "Plan",
            ReportKind::Doctor => "Doctor",
            ReportKind::Command => "Command",
        }
    }

    fn act(&mut self, action: LayerAction) -> Outcome {
        if matches!(action, LayerAction::CloseOverlay | LayerAction::Choose) {
            return Outcome::Close;
        }
        self.page.act(action);
        Outcome::Stay
    }

    fn scroll(&mut self, by: isize) {
        self.page.scroll(by);
    }

    fn draw(&mut self, canvas: &mut Canvas, area: Rect, paint: Paint<'_>) {
        let theme = paint.theme;
        let place = dialog(area, SIZE.0, SIZE.1);
        let mut page = std::mem::take(&mut self.page);
        let lines = |columns| match &self.report {
            Some(report) => report.lines(columns, theme),
            None => vec![Line::styled("checking…", theme.dim())],
        };
        page.lay_out(inside(canvas, place), paint, lines);
        let keys = paint.hints_of(&[
            (page.scrolls(), LayerAction::OverlayPageDown, "page down"),
            (true, LayerAction::CloseOverlay, "close"),
        ]);
        let inner = panel(canvas, place, self.title(), &keys, theme);
        page.draw(canvas, inner, paint, lines);
        self.page = page;
    }
}
