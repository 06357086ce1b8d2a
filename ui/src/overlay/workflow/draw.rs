//! The run of the Session, drawn: the graph in layers where there is room, else a list; beside or below it the chosen step.

use std::time::Duration;

use pixir_core::StepView;
use pixir_core::event::{Cost, StepOutcome};
use pixir_core::text::human::human_duration;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::{OfferLine, WorkflowView};
use crate::input::action::LayerAction;
use crate::overlay::{Paint, dialog, panel};
use crate::render::text::{fit, visible, width, wrap_lines};
use crate::terminal::canvas::Canvas;
use crate::theme::Theme;
use crate::transcript::rows::workflow::{mark, progress, word};

/// The size of the dialog.
const SIZE: (u16, u16) = (150, 40);
/// From this width on, the graph stands in layers, and the chosen step beside it.
const WIDE: u16 = 96;

impl WorkflowView {
    pub(super) fn paint(&mut self, canvas: &mut Canvas, area: Rect, paint: Paint<'_>) {
        self.list.chosen = self.row();
        self.list.begin();
        self.draw_into(canvas, area, paint);
    }

    fn draw_into(&self, canvas: &mut Canvas, area: Rect, paint: Paint<'_>) {
        let theme = paint.theme;
        let offered = self.offer.as_ref().and_then(|it| it.order.name.as_deref());
        let name = offered.or(self.run.planned.as_ref().map(|it| it.name.as_str())).unwrap_or_default();
        let title = if name.is_empty() { "Workflow".to_owned() } else { format!("Workflow {}", visible(name)) };
        let inner = panel(canvas, dialog(area, SIZE.0, SIZE.1), &title, &self.hints(paint), theme);
        let columns = usize::from(inner.width);
        if let Some(offer) = &self.offer {
            let lines = offer.lines.iter().flat_map(|it| offer_line(it, columns, theme)).collect();
            self.draw_page(canvas, inner, lines, theme);
            return;
        }
        if self.run.planned.is_none() {
            let text =
                "No workflow was run in this session: /workflows NAME runs one, `pixir workflow list` shows them";
            let lines = wrap_lines(&[Span::styled(text, theme.dim())], columns, &[], &[]);
            self.draw_page(canvas, inner, lines, theme);
            return;
        }
        let bar = self.draw_bar(canvas, inner, theme);
        let body = Rect { y: inner.y + bar, height: inner.height.saturating_sub(bar), ..inner };
        let is_wide = inner.width >= WIDE;
        let list = if is_wide {
            Rect { width: inner.width / 2, ..body }
        } else {
            let most = (body.height / 2).max(1);
            let height = u16::try_from(self.run.steps.len()).unwrap_or(u16::MAX).clamp(1, most);
            Rect { height, ..body }
        };
        self.draw_steps(canvas, list, paint, is_wide);
        let about = if is_wide {
            Rect { x: list.right() + 2, width: inner.width.saturating_sub(list.width + 2), ..body }
        } else {
            Rect { y: list.bottom() + 1, height: body.height.saturating_sub(list.height + 1), ..body }
        };
        if let Some(step) = self.current() {
            let lines = self.about(step, usize::from(about.width), theme);
            self.draw_page(canvas, about, lines, theme);
        }
    }

    /// Draws the lines from the first one that is shown on, and says how many are below.
    fn draw_page(&self, canvas: &mut Canvas, area: Rect, lines: Vec<Line<'static>>, theme: &Theme) {
        let height = usize::from(area.height);
        // Where not all fit, the last row says so.
        let room = if lines.len() > height { height.saturating_sub(1) } else { height };
        self.page.set(room.max(1));
        self.max_top.set(lines.len().saturating_sub(room));
        let top = self.top.min(self.max_top.get());
        let below = lines.len().saturating_sub(top + room);
        let is_cut = lines.len() > height;
        for (y, line) in (area.y..area.bottom()).zip(lines.into_iter().skip(top).take(room)) {
            canvas.line(line, Rect { y, height: 1, ..area });
        }
        if is_cut && area.height > 0 {
            let text = match below {
                0 => "the end · PgUp scrolls back".to_owned(),
                1 => "1 more line · PgDn scrolls".to_owned(),
                n => format!("{n} more lines · PgDn scrolls"),
            };
            let place = Rect { y: area.bottom() - 1, height: 1, ..area };
            canvas.line(Line::styled(fit(&text, usize::from(area.width)), theme.dim()), place);
        }
    }

    fn hints(&self, paint: Paint<'_>) -> String {
        let (waits, runs) = (!self.choices().is_empty(), self.run.is_running);
        if self.offer.as_ref().is_some_and(|offer| !offer.can_run) {
            return paint.hints(&[(LayerAction::CloseOverlay, "close")]);
        }
        if self.offer.is_some() {
            return paint.hints(&[(LayerAction::Choose, "run"), (LayerAction::CloseOverlay, "close")]);
        }
        if self.run.planned.is_none() {
            return paint.hints(&[(LayerAction::CloseOverlay, "close")]);
        }
        let mut all = Vec::new();
        if waits {
            all.extend([(LayerAction::AnswerGate, "answer"), (LayerAction::NextAnswer, "other")]);
        }
        if self.agent().is_some() {
            all.push((LayerAction::Choose, "agent"));
        }
        if runs {
            all.push((LayerAction::StopRun, "stop"));
        } else {
            all.extend([
                (LayerAction::ResumeRun, "go on"),
                (LayerAction::RerunStep, "rerun"),
                (LayerAction::SkipStep, "skip"),
                (LayerAction::TakeStepAsDone, "done"),
            ]);
        }
        all.push((LayerAction::CloseOverlay, "close"));
        paint.hints(&all)
    }

    /// Draws the bar with its counts, and returns how many rows they take.
    fn draw_bar(&self, canvas: &mut Canvas, area: Rect, theme: &Theme) -> u16 {
        let mut cost = Cost::default();
        self.run.steps.iter().for_each(|it| cost += self.cost(it));
        let lines = progress(&self.run, cost, None, usize::from(area.width), theme);
        let rows = u16::try_from(lines.len()).unwrap_or(u16::MAX).min(area.height);
        for (y, line) in (area.y..area.y + rows).zip(lines) {
            canvas.line(line, Rect { y, height: 1, ..area });
        }
        rows
    }

    fn draw_steps(&self, canvas: &mut Canvas, area: Rect, paint: Paint<'_>, is_wide: bool) {
        let theme = paint.theme;
        let chosen = self.list.chosen;
        // In layers each layer begins with a rule of its own.
        let mut rows: Vec<Option<usize>> = Vec::new();
        let mut order: Vec<usize> = (0..self.run.steps.len()).collect();
        if is_wide {
            order.sort_by_key(|at| self.run.steps[*at].layer);
        }
        let mut layer = None;
        for at in order {
            let own = self.run.steps[at].layer;
            if is_wide && layer != Some(own) {
                rows.push(None);
                layer = Some(own);
            }
            rows.push(Some(at));
        }
        let at = rows.iter().position(|it| *it == Some(chosen)).unwrap_or(0);
        let top = (at + 1).saturating_sub(usize::from(area.height));
        let mut shown_layer = 0;
        let figures = self.run.steps.iter().fold([0; 3], |most: [usize; 3], step| {
            let figures = self.figures(step, paint);
            std::array::from_fn(|at| most[at].max(width(&figures[at])))
        });
        for (n, row) in rows.iter().enumerate() {
            shown_layer += usize::from(row.is_none());
            let Some(y) = n.checked_sub(top).and_then(|n| u16::try_from(n).ok()).filter(|n| *n < area.height) else {
                continue;
            };
            let place = Rect { y: area.y + y, height: 1, ..area };
            let Some(index) = row else {
                canvas.line(layer_rule(shown_layer, usize::from(area.width), theme), place);
                continue;
            };
            let step = &self.run.steps[*index];
            let line = self.line(step, usize::from(area.width), &figures, paint);
            self.list.row(canvas, place, *index, theme, || format!("{} {}", step.id, self.state(step).1), line);
        }
    }

    fn line(
        &self,
        step: &StepView,
        columns: usize,
        columns_of_figures: &[usize; 3],
        paint: Paint<'_>,
    ) -> Line<'static> {
        let theme = paint.theme;
        let (glyph, _, style) = self.shown(step, theme);
        let figures = self.figures(step, paint);
        let cells: Vec<String> = figures
            .iter()
            .zip(columns_of_figures)
            .enumerate()
            .filter(|(_, (_, wide))| **wide > 0)
            .map(|(at, (text, wide))| {
                let pad = " ".repeat(wide.saturating_sub(width(text)));
                if at == 0 { format!("{text}{pad}") } else { format!("{pad}{text}") }
            })
            .collect();
        let right = cells.join("  ");
        let indent = if step.is_item || step.id.contains('/') { 2 } else { 0 };
        let room = columns.saturating_sub(width(glyph) + indent + width(&right) + 2);
        let id = fit(&visible(&step.id), room);
        let gap = columns.saturating_sub(width(glyph) + indent + width(&id) + width(&right));
        Line::from(vec![
            Span::raw(" ".repeat(indent)),
            Span::styled(glyph, style),
            Span::styled(id, theme.fg(theme.text)),
            Span::raw(" ".repeat(gap)),
            Span::styled(right, style),
        ])
    }

    /// How a step stands, how long it took and what it cost, as far as there is something to say.
    fn figures(&self, step: &StepView, paint: Paint<'_>) -> [String; 3] {
        let took = match (step.since, &step.ended) {
            (Some(since), _) => {
                let since = Duration::from_millis(u64::try_from(since.as_millisecond()).unwrap_or(0));
                human_duration(paint.wall.saturating_sub(since))
            }
            (None, Some(ended)) if ended.duration_ms > 0 => human_duration(Duration::from_millis(ended.duration_ms)),
            (None, _) => String::new(),
        };
        [self.state(step).1.to_owned(), took, self.cost(step).to_string()]
    }

    /// What the chosen step is and came to.
    fn about(&self, step: &StepView, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
        let mut lines = vec![Line::styled(fit(&visible(&step.id), columns), theme.bold())];
        let after = if step.needs.is_empty() { String::new() } else { format!(" after {}", step.needs.join(", ")) };
        let kind = format!("{}{after}", if step.kind.is_empty() { "step" } else { &step.kind });
        lines.push(Line::styled(fit(&visible(&kind), columns), theme.dim()));
        let mut push = |text: &str, style: Style| {
            lines.extend(wrap_lines(&[Span::styled(visible(text), style)], columns, &[], &[]));
        };
        if let Some(held) = &step.held {
            push(&held.why, theme.fg(theme.warning));
            for (n, choice) in self.choices().iter().enumerate() {
                let cursor = if n == self.choice { "› " } else { "  " };
                push(&format!("{cursor}{choice}"), theme.fg(if n == self.choice { theme.accent } else { theme.text }));
            }
        }
        if let Some(ended) = &step.ended {
            if let Some(error) = &ended.error {
                push(&error.message, theme.fg(theme.error));
            }
            let stderr: Vec<&str> = ended.stderr.lines().rev().take(12).collect();
            stderr.into_iter().rev().for_each(|line| push(line, theme.dim()));
            for check in &ended.checks {
                let passed = check.exit_code == Some(0);
                let style = theme.fg(if passed { theme.success } else { theme.error });
                push(&format!("{} {}", if passed { "✓" } else { "✗" }, check.command), style);
                let output: Vec<&str> = check.output.lines().rev().take(6).collect();
                output.into_iter().rev().for_each(|line| push(line, theme.dim()));
            }
            for change in &ended.changes {
                push(&format!("~ {}", change.path), theme.fg(theme.text));
            }
            let output = match &ended.output {
                serde_json::Value::Null => String::new(),
                serde_json::Value::String(text) => text.clone(),
                other => serde_json::to_string_pretty(other).unwrap_or_default(),
            };
            if ended.output_blob.is_some() {
                push("its output is long; show its log for all of it", theme.dim());
            }
            output.lines().take(200).for_each(|line| push(line, theme.fg(theme.text)));
        }
        lines
    }

    /// The glyph and the word of a step.
    fn state(&self, step: &StepView) -> (&'static str, &'static str) {
        match (step.outcome, step.since) {
            (Some(outcome), _) => (mark(outcome), word(outcome)),
            (None, Some(_)) if self.waits(step) => (mark(StepOutcome::Waiting), word(StepOutcome::Waiting)),
            (None, Some(_)) => ("● ", "runs"),
            (None, None) => ("○ ", ""),
        }
    }

    fn shown(&self, step: &StepView, theme: &Theme) -> (&'static str, &'static str, Style) {
        let (glyph, words) = self.state(step);
        let style = match step.outcome {
            Some(StepOutcome::Completed) => theme.fg(theme.success),
            Some(StepOutcome::Skipped | StepOutcome::Held) => theme.dim(),
            Some(StepOutcome::Waiting) => theme.fg(theme.warning),
            Some(StepOutcome::Failed | StepOutcome::TimedOut | StepOutcome::Interrupted | StepOutcome::Incomplete) => {
                theme.fg(theme.error)
            }
            None if self.waits(step) => theme.fg(theme.warning),
            None if step.since.is_some() => theme.fg(theme.accent),
            None => theme.dim(),
        };
        (glyph, words, style)
    }
}

/// A line about a run that has not begun.
fn offer_line(line: &OfferLine, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    match line {
        OfferLine::Blank => vec![Line::default()],
        OfferLine::Layer(number) => vec![layer_rule(*number, columns, theme)],
        OfferLine::Text(text) => wrap_lines(&[Span::styled(visible(text), theme.fg(theme.text))], columns, &[], &[]),
        OfferLine::Step { name, about } => {
            let spans =
                [Span::styled(visible(name), theme.bold()), Span::styled(format!("  {}", visible(about)), theme.dim())];
            wrap_lines(&spans, columns, &[Span::raw("  ")], &[Span::raw("    ")])
        }
        OfferLine::Task(text) => {
            let indent = [Span::raw("    ")];
            wrap_lines(&[Span::styled(visible(text), theme.fg(theme.text))], columns, &indent, &indent)
        }
    }
}

/// `layer 2 ──────`
fn layer_rule(number: usize, columns: usize, theme: &Theme) -> Line<'static> {
    let head = format!("layer {number} ");
    let rule = "─".repeat(columns.saturating_sub(width(&head) + 2));
    Line::from(vec![Span::styled(head, theme.dim()), Span::styled(rule, theme.fg(theme.border))])
}
