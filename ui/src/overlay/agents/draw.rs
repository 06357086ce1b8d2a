//! The list of agents, drawn: a line for each, below it the last words and calls of the chosen one.

use pixir_core::agent::AgentState;
use pixir_core::event::{Cost, Usage};
use pixir_core::search::Step;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::{AgentsView, Field};
use crate::input::action::LayerAction;
use crate::overlay::panes::draw_lines;
use crate::overlay::{Paint, dialog, panel};
use crate::render::agents::{self, Columns, named, summary};
use crate::render::context::RenderContext;
use crate::render::figures::short;
use crate::render::markdown;
use crate::render::text::{fit, lines_of, visible, width, wrap_lines};
use crate::terminal::canvas::Canvas;

/// The size of the dialog.
const SIZE: (u16, u16) = (140, 40);

impl AgentsView {
    pub(super) fn paint(&mut self, canvas: &mut Canvas, area: Rect, paint: Paint<'_>) {
        self.list.chosen = self.row(&self.rows());
        self.list.begin();
        self.draw_into(canvas, area, paint);
    }

    fn draw_into(&self, canvas: &mut Canvas, area: Rect, paint: Paint<'_>) {
        let theme = paint.theme;
        let rows = self.rows();
        let all = self.agents.all();
        let title = if all.is_empty() { "Agents".to_owned() } else { summary(all.iter()) };
        let inner = panel(canvas, dialog(area, SIZE.0, SIZE.1), &title, &self.hints(paint), theme);
        if all.is_empty() {
            let text = "No agents yet: the model starts one for a task with a context of its own";
            let lines = wrap_lines(&[Span::styled(text, theme.dim())], usize::from(inner.width), &[], &[]);
            draw_lines(canvas, inner, lines);
            return;
        }
        let columns = usize::from(inner.width);
        self.draw_total(canvas, Rect { height: 1.min(inner.height), ..inner }, paint);
        let body = Rect { y: inner.y + 1, height: inner.height.saturating_sub(1), ..inner };
        // The list gets what it needs, and at most half of the room, so that the preview stays useful.
        let most = (body.height / 2).max(1);
        let height = u16::try_from(rows.len()).unwrap_or(u16::MAX).clamp(1, most);
        let list = Rect { height, ..body };
        let depth = rows.iter().map(|it| it.path.len()).max().unwrap_or(1);
        let layout = Columns::new(rows.iter().copied(), columns, 2 * (depth - 1));
        let top = self.list.top(list.height);
        for (y, (row, agent)) in (list.y..list.bottom()).zip(rows.iter().enumerate().skip(top)) {
            let at = Rect { y, height: 1, ..list };
            let indent = 2 * (agent.path.len() - 1);
            let line = agents::line(agent, self.agents.used(agent), indent, layout, paint.wall, theme);
            let name = || format!("{} {}", agent.name(), agents::state_word(agent));
            self.list.row(canvas, at, row, theme, name, line);
        }
        if rows.is_empty() {
            canvas.line(Line::styled("No matches", theme.dim()), list);
            return;
        }
        let rest = body.height.saturating_sub(list.height);
        if rest < 3 {
            return self.draw_field(canvas, Rect { y: body.bottom() - 1, height: 1, ..body }, paint);
        }
        let agent = rows[self.list.chosen];
        let rule = Rect { y: list.bottom(), height: 1, ..body };
        let name = fit(&visible(&named(&agent.path)), columns.saturating_sub(8));
        let edge = |n: usize| Span::styled("─".repeat(n), theme.fg(theme.border));
        let rest_of_rule = edge(columns.saturating_sub(width(&name) + 4));
        let spans = vec![edge(2), Span::styled(format!(" {name} "), theme.bold()), rest_of_rule];
        canvas.line(Line::from(spans), rule);
        let field = u16::from(matches!(self.field, Some(Field::Steer | Field::Continue)));
        let preview = Rect { y: rule.bottom(), height: rest - 1 - field, ..body };
        let lines = self.preview(agent, columns, paint);
        // Its last words matter most.
        let skipped = lines.len().saturating_sub(usize::from(preview.height));
        for (y, line) in (preview.y..preview.bottom()).zip(lines.into_iter().skip(skipped)) {
            canvas.line(line, Rect { y, height: 1, ..preview });
        }
        self.draw_field(canvas, Rect { y: body.bottom().saturating_sub(1), height: 1, ..body }, paint);
    }

    fn hints(&self, paint: Paint<'_>) -> String {
        match self.field {
            Some(Field::Filter) => "Enter done · Esc all".to_owned(),
            Some(Field::Steer | Field::Continue) => "Enter send · Esc back".to_owned(),
            None if self.agent().is_none() => paint.hints(&[(LayerAction::CloseOverlay, "close")]),
            None if self.agent().is_some_and(|it| it.waiting_files > 0) => paint.hints(&[
                (LayerAction::Choose, "open"),
                (LayerAction::AdoptFiles, "decide about its files"),
                (LayerAction::ContinueAgent, "continue"),
                (LayerAction::CloseOverlay, "close"),
            ]),
            None => paint.hints(&[
                (LayerAction::Choose, "open"),
                (LayerAction::SteerAgent, "steer"),
                (LayerAction::StopAgent, "stop"),
                (LayerAction::ContinueAgent, "continue"),
                (LayerAction::FilterAgents, "filter"),
                (LayerAction::CloseOverlay, "close"),
            ]),
        }
    }

    /// The filter on the left, what all agents have used on the right.
    fn draw_total(&self, canvas: &mut Canvas, area: Rect, paint: Paint<'_>) {
        let theme = paint.theme;
        let (mut usage, mut cost) = (Usage::default(), Cost::default());
        for agent in self.agents.all() {
            let (tokens, price) = self.agents.used(agent);
            usage += tokens;
            cost += price;
        }
        let cost = cost.to_string();
        let gap = if cost.is_empty() { "" } else { " · " };
        let total = format!("{} tokens{gap}{cost}", short(usage.input + usage.output));
        let columns = usize::from(area.width);
        let is_filtered = self.field == Some(Field::Filter) || !self.filter.is_empty();
        let left = if is_filtered { format!("/ {}", visible(&self.filter)) } else { String::new() };
        let left = fit(&left, columns.saturating_sub(width(&total) + 2));
        let space = columns.saturating_sub(width(&left) + width(&total));
        let spans = vec![
            Span::styled(left.clone(), theme.fg(theme.accent)),
            Span::raw(" ".repeat(space)),
            Span::styled(total, theme.dim()),
        ];
        canvas.line(Line::from(spans), area);
        if self.field == Some(Field::Filter) {
            let x = area.x + u16::try_from(width(&left)).unwrap_or(0);
            canvas.set_cursor_position((x.min(area.right().saturating_sub(1)), area.y));
        }
    }

    /// The field with the text for the agent.
    fn draw_field(&self, canvas: &mut Canvas, area: Rect, paint: Paint<'_>) {
        let label = match self.field {
            Some(Field::Steer) => "steer › ",
            Some(Field::Continue) => "next › ",
            Some(Field::Filter) | None => return,
        };
        let theme = paint.theme;
        let room = usize::from(area.width).saturating_sub(width(label) + 1);
        // The end of a long text is where the user writes.
        let text = visible(&self.text);
        let mut shown = text.as_str();
        while width(shown) > room {
            let first = shown.chars().next().map_or(0, char::len_utf8);
            shown = &shown[first..];
        }
        let hint = if text.is_empty() && self.field == Some(Field::Continue) { "Go on." } else { "" };
        canvas.tint(area, theme.selected());
        let spans = vec![
            Span::styled(label, theme.fg(theme.accent).bold()),
            Span::styled(shown.to_owned(), theme.fg(theme.text)),
            Span::styled(hint, theme.dim()),
        ];
        canvas.line(Line::from(spans), area);
        let x = area.x + u16::try_from(width(label) + width(shown)).unwrap_or(0);
        canvas.set_cursor_position((x.min(area.right().saturating_sub(1)), area.y));
    }

    /// The task of an agent, its last messages and calls, and what the user has told it.
    fn preview(&self, agent: &AgentState, columns: usize, paint: Paint<'_>) -> Vec<Line<'static>> {
        let theme = paint.theme;
        let context = RenderContext::new(theme, paint.highlighter, columns.saturating_sub(2));
        let mut lines = Vec::new();
        let steps: &[Step] = if self.steps.session == agent.session_id { &self.steps.steps } else { &[] };
        if steps.is_empty() {
            let text = [Span::styled(visible(&agent.task), theme.fg(theme.text))];
            lines.extend(wrap_lines(&text, columns, &[Span::styled("› ", theme.fg(theme.user))], &[Span::raw("  ")]));
        }
        for step in steps {
            match step {
                Step::Prompt(text) => {
                    let all = text.lines().count();
                    let shown: Vec<&str> = text.lines().take(4).collect();
                    let more = if all > 4 { format!(" … {} more lines", all - 4) } else { String::new() };
                    let text = [Span::styled(visible(&format!("{}{more}", shown.join("\n"))), theme.fg(theme.text))];
                    let mark = Span::styled("› ", theme.fg(theme.user));
                    lines.extend(wrap_lines(&text, columns, &[mark], &[Span::raw("  ")]));
                }
                Step::Answer(text) => {
                    let rows = lines_of(markdown::rows(text, &context));
                    lines.extend(rows.into_iter().map(|line| {
                        let mut spans = vec![Span::raw("  ")];
                        spans.extend(line.spans.into_iter().map(|span| span.patch_style(line.style)));
                        Line::from(spans)
                    }));
                }
                Step::Call { title, ok } => {
                    let (mark, ink) = match ok {
                        Some(true) => ("✓ ", theme.success),
                        Some(false) => ("✗ ", theme.error),
                        None => ("● ", theme.accent),
                    };
                    lines.push(Line::from(vec![
                        Span::styled(mark, theme.fg(ink)),
                        Span::styled(fit(&visible(title), columns.saturating_sub(2)), theme.dim()),
                    ]));
                }
            }
        }
        for (text, is_delivered) in self.agents.told(agent) {
            let note = if is_delivered { "delivered" } else { "queued" };
            lines.push(Line::from(vec![
                Span::styled("» ", theme.fg(theme.accent)),
                Span::styled(fit(&visible(text), columns.saturating_sub(14)), theme.fg(theme.text)),
                Span::styled(format!("  {note}"), if is_delivered { theme.dim() } else { theme.fg(theme.warning) }),
            ]));
        }
        lines
    }
}
