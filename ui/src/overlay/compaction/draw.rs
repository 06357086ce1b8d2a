//! Draws a compaction: the window before and after, the three lists, the summary.

use pixir_core::event::{Cost, Draft, List, Segment};
use ratatui::layout::{Constraint, Layout, Position, Rect};
use ratatui::text::{Line, Span};

use super::lists::Row;
use super::{CompactionView, Pane, Purpose, notes};
use crate::input::action::LayerAction;
use crate::overlay::{Paint, dialog, panel};
use crate::render::amount::bar;
use crate::render::context::RenderContext;
use crate::render::figures::short;
use crate::render::markdown;
use crate::render::text::{fit, lines_of, plain, width, wrap_lines};
use crate::terminal::canvas::{Canvas, RegionState};

/// The narrowest view that has the lists and the summary side by side, in columns.
const SIDE_BY_SIDE: u16 = 86;
/// The narrowest list in which figures have their words: `Kept word for word`, and `1200 parts · 131k tokens`.
const ROOMY: usize = 44;
/// The cells of a bar that say something.
const CELLS: usize = 8;
/// The lowest view that has both below each other, in rows.
const BOTH: u16 = 14;

impl CompactionView {
    pub(super) fn paint(&mut self, canvas: &mut Canvas, area: Rect, paint: Paint<'_>) {
        let title = match self.purpose {
            Purpose::Decide => "Compact".to_owned(),
            Purpose::Show => "Compacted".to_owned(),
        };
        let keys = self.hints(paint);
        let inner = panel(canvas, dialog(area, 150, 48), &title, &keys, paint.theme);
        if inner.height < 4 {
            return;
        }
        let [head, _, body, foot] = Layout::vertical([
            Constraint::Length(1),
            Constraint::Length(u16::from(inner.height > 12)),
            Constraint::Fill(1),
            Constraint::Length(1),
        ])
        .areas(inner);
        (self.lists_area, self.summary_area) = (Rect::default(), Rect::default());
        self.draw_head(canvas, head, paint);
        self.draw_foot(canvas, foot, paint);
        if inner.width >= SIDE_BY_SIDE {
            let left = inner.width * 2 / 5;
            let [lists, line, summary] =
                Layout::horizontal([Constraint::Length(left), Constraint::Length(3), Constraint::Fill(1)]).areas(body);
            let edge = if canvas.is_bare { 0..0 } else { line.y..line.bottom() };
            for y in edge {
                let at = Rect { x: line.x + 1, y, width: 1, height: 1 };
                canvas.line(Line::styled("│", paint.theme.fg(paint.theme.border)), at);
            }
            self.draw_lists(canvas, lists, paint);
            self.draw_summary(canvas, summary, paint);
        } else if body.height >= BOTH {
            let [lists, _, summary] =
                Layout::vertical([Constraint::Percentage(45), Constraint::Length(1), Constraint::Fill(1)]).areas(body);
            self.draw_lists(canvas, lists, paint);
            self.draw_summary(canvas, summary, paint);
        } else if self.pane == Pane::Summary {
            self.draw_summary(canvas, body, paint);
        } else {
            self.draw_lists(canvas, body, paint);
        }
    }

    fn hints(&self, paint: Paint<'_>) -> String {
        if self.field.is_some() {
            return "Esc done".to_owned();
        }
        let pane = (LayerAction::SwitchPane, if self.pane == Pane::Lists { "summary" } else { "lists" });
        match self.purpose {
            Purpose::Show => paint.hints(&[(LayerAction::CloseOverlay, "close"), pane]),
            Purpose::Decide if self.is_writing() => paint.hints(&[
                (LayerAction::CloseOverlay, "use pixir's summary"),
                (LayerAction::MoveSegment, "move"),
                pane,
            ]),
            Purpose::Decide => paint.hints(&[
                (LayerAction::Choose, "apply"),
                (LayerAction::MoveSegment, "move to the next list"),
                (LayerAction::EditSummary, "edit"),
                (LayerAction::CloseOverlay, "cancel"),
                pane,
                (LayerAction::RewriteSummary, "write again"),
            ]),
        }
    }

    /// `148k → 21k of 200k  ▰▰▰▱ → ▰▱▱▱   sonnet-5 · $0.02`
    fn draw_head(&self, canvas: &mut Canvas, area: Rect, paint: Paint<'_>) {
        let theme = paint.theme;
        let (before, after) = self.tokens();
        let window = self.preview.compaction.window;
        let of = window.map_or_else(String::new, |window| format!(" of {}", short(window)));
        let author = self.preview.author.as_deref().map(plain);
        let cost = self.preview.cost_usd.map(|usd| Cost { usd, ..Cost::default() }.to_string());
        let cost = cost.filter(|it| !it.is_empty()).map(|it| format!(" · at most {it}"));
        let numbers = format!("{} → {}{of} tokens", short(before), short(after));
        let style = if self.fits() { theme.bold() } else { theme.fg(theme.error) };
        let mut spans = vec![Span::styled(numbers.clone(), style)];
        // Bars that can be compared matter more than who writes the summary.
        let rights = [
            author.map_or_else(String::new, |author| format!("{author}{}", cost.as_deref().unwrap_or_default())),
            cost.as_deref().unwrap_or_default().trim_start_matches(" · ").to_owned(),
            String::new(),
        ];
        let cells = |right: &String| {
            let room = usize::from(area.width).saturating_sub(width(&numbers) + width(right) + 6);
            (room.saturating_sub(5) / 2).min(24)
        };
        let right = rights.iter().find(|right| cells(right) >= CELLS).cloned().unwrap_or_default();
        let columns = cells(&right);
        if columns >= 4 && !canvas.is_bare {
            let whole = window.unwrap_or(before.max(1));
            spans.push(Span::raw("   "));
            spans.extend(bar(before, whole, columns, theme));
            spans.push(Span::styled(" → ", theme.dim()));
            spans.extend(bar(after, whole, columns, theme));
        }
        canvas.line(Line::from(spans), area);
        let columns = u16::try_from(width(&right)).unwrap_or(area.width);
        if usize::from(area.width) > width(&numbers) + usize::from(columns) + 2 {
            canvas.line(Line::styled(right, theme.dim()), Rect { x: area.right() - columns, width: columns, ..area });
        }
    }

    fn draw_foot(&self, canvas: &mut Canvas, area: Rect, paint: Paint<'_>) {
        let theme = paint.theme;
        let again = paint.hints(&[(LayerAction::RewriteSummary, "writes it again")]);
        let (text, style) = match self.purpose {
            _ if !self.fits() => {
                ("What is kept does not fit: move more to the summary, or drop it".to_owned(), theme.fg(theme.error))
            }
            Purpose::Decide if self.is_outdated && !self.is_edited => {
                (format!("The summary was written before you moved entries · {again}"), theme.fg(theme.warning))
            }
            Purpose::Decide => ("Nothing is deleted: the tree goes back to before it".to_owned(), theme.dim()),
            Purpose::Show => ("To undo it, go back to before it in the tree".to_owned(), theme.dim()),
        };
        canvas.line(Line::styled(fit(&text, usize::from(area.width)), style), area);
    }

    fn draw_lists(&mut self, canvas: &mut Canvas, area: Rect, paint: Paint<'_>) {
        self.lists_area = area;
        let height = usize::from(area.height).max(1);
        let cursor = self.lists.row(self.chosen);
        self.rows.begin();
        // The head of the first list stays in sight above its first entry.
        if cursor <= self.top {
            self.top = if cursor <= 1 { 0 } else { cursor };
        }
        if cursor >= self.top + height {
            self.top = cursor + 1 - height;
        }
        self.top = self.top.min(self.lists.rows.len().saturating_sub(height));
        let end = (self.top + height).min(self.lists.rows.len());
        for (y, row) in (area.y..area.bottom()).zip(self.top..end) {
            let at = Rect { y, height: 1, ..area };
            match self.lists.rows[row] {
                Row::Gap => {}
                Row::Head(list) => self.draw_list_head(canvas, at, list, paint),
                Row::Segment(of) => {
                    self.draw_segment(canvas, at, of, paint);
                    self.rows.put(at, of);
                }
            }
        }
    }

    fn draw_list_head(&self, canvas: &mut Canvas, area: Rect, list: List, paint: Paint<'_>) {
        let theme = paint.theme;
        let (name, colour) = match list {
            List::Kept => ("Kept word for word", theme.success),
            List::SummedUp => ("Summed up", theme.accent),
            List::Dropped => ("Dropped", theme.warning),
        };
        let (count, tokens) = self.lists.sum(list);
        let whole = match count {
            0 => "nothing".to_owned(),
            1 => format!("1 part · {} tokens", short(tokens)),
            _ => format!("{count} parts · {} tokens", short(tokens)),
        };
        canvas.region("heading", area, || format!("{name}: {whole}"));
        // In a narrow list the names are whole, and the figures of all stand without their words.
        let is_roomy = usize::from(area.width) >= ROOMY;
        let right = if is_roomy || count == 0 { whole } else { format!("{count} · {}", short(tokens)) };
        let room = usize::from(area.width).saturating_sub(width(&right) + 1);
        canvas.line(
            Line::from(vec![
                Span::styled(format!("{:<room$} ", fit(name, room)), theme.bold().fg(colour)),
                Span::styled(right, theme.dim()),
            ]),
            area,
        );
    }

    fn draw_segment(&self, canvas: &mut Canvas, area: Rect, at: usize, paint: Paint<'_>) {
        let theme = paint.theme;
        let segment = &self.preview.segments[at];
        let is_chosen = at == self.chosen;
        if is_chosen && self.pane == Pane::Lists {
            canvas.follow(area);
        }
        if is_chosen {
            canvas.tint(area, if self.pane == Pane::Lists { theme.selected() } else { theme.base() });
        }
        let tokens = short(segment.tokens);
        let moved = segment.seq.is_some_and(|seq| self.moves.contains_key(&seq));
        let mark = match (moved, segment.pinned) {
            (true, _) => "~ ",
            (false, true) => "⚲ ",
            (false, false) => "  ",
        };
        let kind = format!("{:<8} ", segment.kind.name());
        let room = usize::from(area.width).saturating_sub(2 + width(&kind) + width(&tokens) + 1);
        let title = fit(&plain(&segment.title), room);
        let pad = room.saturating_sub(width(&title));
        let text = if segment.fixed { theme.dim() } else { theme.fg(theme.text) };
        canvas.region("option", area, || label(segment, moved));
        canvas.region_state(RegionState { focused: self.pane == Pane::Lists, selected: is_chosen });
        canvas.line(
            Line::from(vec![
                Span::styled(mark, theme.fg(theme.warning)),
                Span::styled(kind, theme.dim()),
                Span::styled(title, text),
                Span::styled(format!("{} {tokens}", " ".repeat(pad)), theme.dim()),
            ]),
            area,
        );
    }

    fn draw_summary(&mut self, canvas: &mut Canvas, area: Rect, paint: Paint<'_>) {
        let theme = paint.theme;
        self.summary_area = area;
        let [head, body] = Layout::vertical([Constraint::Length(1), Constraint::Fill(1)]).areas(area);
        let words = self.written.split_whitespace().count();
        let said = match self.preview.draft {
            _ if self.field.is_some() => "you are editing it".to_owned(),
            _ if self.is_edited || self.preview.compaction.edited => "edited by you".to_owned(),
            Draft::Writing if words == 0 => "the model is reading…".to_owned(),
            Draft::Writing => format!("writing… {words} words"),
            Draft::Written => "written by the model".to_owned(),
            Draft::Failed => "made by pixir: the model could not write it".to_owned(),
            Draft::Stopped => "made by pixir: you stopped the model".to_owned(),
            Draft::NotAsked => match &self.preview.compaction.model {
                Some(model) => format!("written by {}", plain(model)),
                None => "made by pixir from the session".to_owned(),
            },
        };
        let colour = if self.pane == Pane::Summary { theme.accent } else { theme.heading };
        let line = Line::from(vec![
            Span::styled("Summary  ", theme.bold().fg(colour)),
            Span::styled(fit(&said, usize::from(area.width).saturating_sub(9)), theme.dim()),
        ]);
        canvas.region("heading", head, || format!("Summary, {said}"));
        canvas.line(line, head);
        if let Some(field) = &mut self.field {
            field.set_style(theme.base());
            field.set_selection_style(theme.selected());
            canvas.render_widget(&*field, body);
            canvas.caret = field.rendered_cursor_position().map(|at| Position { x: at.x, y: at.y });
            return;
        }
        let is_writing = self.is_writing();
        let text = if is_writing { notes::so_far(&self.written) } else { self.body.clone() };
        let (appended, limits) = (self.preview.appended.trim(), &self.preview.compaction.limitations);
        self.page.draw(canvas, body, paint, |columns| {
            let context = RenderContext::new(theme, paint.highlighter, columns);
            let mut lines = lines_of(markdown::rows(&text, &context));
            let dim = |text: &str| wrap_lines(&[Span::styled(text.to_owned(), theme.dim())], columns, &[], &[]);
            if !appended.is_empty() {
                lines.push(Line::default());
                lines.extend(dim("pixir adds this word for word:"));
                lines.extend(lines_of(markdown::rows(appended, &context)));
            }
            if !is_writing && !limits.is_empty() {
                lines.push(Line::default());
                limits.iter().for_each(|text| lines.extend(dim(&format!("· {text}"))));
            }
            lines
        });
    }
}

/// What a screen reader says of an entry.
fn label(segment: &Segment, moved: bool) -> String {
    let pinned = if segment.pinned { ", pinned" } else { "" };
    let moved = if moved { ", moved" } else { "" };
    let fixed = if segment.fixed { ", stays in its list" } else { "" };
    format!("{}: {}, {} tokens{pinned}{moved}{fixed}", segment.kind.name(), plain(&segment.title), segment.tokens)
}
