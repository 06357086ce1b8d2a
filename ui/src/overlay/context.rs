//! What fills the model's window: every part of the next request, with its tokens and its age. The user pins parts, drops
//! them, and goes to where they stand in the transcript.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::rc::Rc;

use pixir_core::Input;
use pixir_core::event::{AgentEvent, ContextReport, Fact, Part, PartKind, TokensFrom};
use pixir_core::history::History;
use ratatui::layout::{Constraint, Layout, Position, Rect};
use ratatui::text::{Line, Span};

use super::list::ListView;
use super::{Effect, Notification, Outcome, Page, Paint, Press, Request, View, dialog, panel};
use crate::input::action::{LayerAction, Scope};
use crate::render::amount::{bar, filled, share};
use crate::render::figures::short;
use crate::render::text::{fit, plain, width, wrap_lines};
use crate::terminal::canvas::{Canvas, RegionState};
use crate::theme::Theme;

/// The narrowest view that has the preview beside the list, in columns.
const SIDE_BY_SIDE: u16 = 110;
/// The lowest view that has the preview below the list, in rows.
const BELOW: u16 = 16;
/// The most of a part that the preview shows, characters.
const MAX_SHOWN: usize = 6_000;

/// The order of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    /// As it is sent.
    Place,
    /// The largest first.
    Size,
}

#[derive(Debug)]
pub(crate) struct ContextView {
    report: Option<Rc<ContextReport>>,
    /// The text of each part, which the preview shows.
    texts: Vec<String>,
    /// For the result of a call: the part that is the call.
    call_of: Vec<Option<usize>>,
    /// The tokens of the largest part.
    largest: u64,
    /// A change waits for the next request.
    waits: bool,
    order: Order,
    /// Indices of the parts, in the order of the screen.
    rows: Vec<usize>,
    /// The row with the cursor.
    list: ListView,
    top: usize,
    page: Page,
    /// What the last key could not do.
    note: Option<&'static str>,
    preview_area: Rect,
}

impl ContextView {
    pub(crate) fn new() -> ContextView {
        ContextView {
            report: None,
            texts: Vec::new(),
            call_of: Vec::new(),
            largest: 1,
            waits: false,
            order: Order::Place,
            rows: Vec::new(),
            list: ListView::default(),
            top: 0,
            page: Page::default(),
            note: None,
            preview_area: Rect::default(),
        }
    }

    fn sort(&mut self) {
        let parts = self.report.as_ref().map_or(&[][..], |it| &it.parts);
        self.rows = (0..parts.len()).collect();
        match self.order {
            // A result stands below its call, also where several calls were made at once.
            Order::Place => self.rows.sort_by_key(|at| (self.call_of[*at].unwrap_or(*at), *at)),
            Order::Size => self.rows.sort_by_key(|at| (Reverse(parts[*at].tokens), *at)),
        }
    }

    fn part(&self) -> Option<&Part> {
        self.report.as_ref()?.parts.get(*self.rows.get(self.list.chosen)?)
    }

    fn step(&mut self, by: isize) {
        self.list.scroll(by, self.rows.len());
        (self.page, self.note) = (Page::default(), None);
    }

    /// Sends a change, and asks for the context as it is then.
    fn send(&mut self, input: Option<Input>) -> Outcome {
        match input {
            Some(input) => Outcome::Ask(Request::Send(vec![input, Input::ShowContext])),
            None => {
                self.note = Some("pixir needs this part: it can neither be pinned nor dropped");
                Outcome::Stay
            }
        }
    }

    fn draw_list(&mut self, canvas: &mut Canvas, area: Rect, report: &ContextReport, theme: &Theme) {
        let bars = if area.width >= 70 { 12 } else { 0 };
        let area = if area.height > 4 {
            let figures = format!(" {:>4} {:>6} {:>5}", "age", "tokens", "share");
            let room = usize::from(area.width).saturating_sub(width(&figures) + 1 + bars);
            let head = format!("{:<room$}{figures}", "  part");
            canvas.line(Line::styled(head, theme.dim()), Rect { height: 1, ..area });
            Rect { y: area.y + 1, height: area.height - 1, ..area }
        } else {
            area
        };
        let height = usize::from(area.height).max(1);
        self.top = self.top.min(self.list.chosen).max((self.list.chosen + 1).saturating_sub(height));
        self.list.begin();
        for (y, (row, at)) in (area.y..area.bottom()).zip(self.rows.iter().enumerate().skip(self.top)) {
            let part = &report.parts[*at];
            let line = Rect { y, height: 1, ..area };
            let is_chosen = row == self.list.chosen;
            if is_chosen {
                canvas.tint(line, theme.selected());
                canvas.follow(line);
            }
            let mark = match (is_out(part), part.pinned) {
                (true, _) => "✗ ",
                (false, true) => "⚲ ",
                (false, false) => "  ",
            };
            let age = match part.age {
                Some(0) => "now".to_owned(),
                Some(age) => format!("−{age}"),
                None => String::new(),
            };
            let right = format!(" {:>4} {:>6} {:>5}", age, short(part.tokens), share(part.tokens, report.tokens));
            let is_below = self.order == Order::Place && self.call_of[*at].is_some();
            let kind = format!(
                "{:<15}",
                if is_below { format!("└ {}", part.kind.name()) } else { part.kind.name().to_owned() }
            );
            let room = usize::from(area.width).saturating_sub(2 + width(&kind) + width(&right) + bars + 1);
            let images = match part.images {
                0 => String::new(),
                1 => " + image".to_owned(),
                n => format!(" + {n} images"),
            };
            // Its call has said what it is about.
            let title = if is_below { String::new() } else { plain(&part.title).into_owned() };
            let title = fit(format!("{title}{images}").trim_start(), room);
            let pad = " ".repeat(room.saturating_sub(width(&title)));
            let text = if is_out(part) { theme.dim() } else { theme.fg(theme.text) };
            canvas.region("option", line, || label(part, report.tokens));
            canvas.region_state(RegionState { focused: true, selected: is_chosen });
            let full = filled(part.tokens, self.largest, bars);
            canvas.line(
                Line::from(vec![
                    Span::styled(mark, theme.fg(theme.warning)),
                    Span::styled(kind, theme.fg(colour_of(part.kind, theme))),
                    Span::styled(title, text),
                    Span::styled(format!("{pad}{right} "), theme.dim()),
                    Span::styled("▪".repeat(full), theme.fg(colour_of(part.kind, theme))),
                ]),
                line,
            );
            self.list.put(line, row);
        }
    }

    fn draw_preview(&mut self, canvas: &mut Canvas, area: Rect, paint: Paint<'_>) {
        let theme = paint.theme;
        let Some(part) = self.part().cloned() else { return };
        let text = self.rows.get(self.list.chosen).and_then(|at| self.texts.get(*at)).map_or("", String::as_str);
        let [head, body] = Layout::vertical([Constraint::Length(1), Constraint::Fill(1)]).areas(area);
        let turn = part.turn.map_or_else(String::new, |turn| format!(" · turn {turn}"));
        let cached = if part.in_prefix { " · cached" } else { "" };
        let line = Line::from(vec![
            Span::styled(part.kind.name(), theme.bold().fg(colour_of(part.kind, theme))),
            Span::styled(
                fit(
                    &format!("{turn} · {} bytes{cached}", part.bytes),
                    usize::from(head.width).saturating_sub(part.kind.name().len()),
                ),
                theme.dim(),
            ),
        ]);
        canvas.line(line, head);
        self.page.draw(canvas, body, paint, |columns| {
            let mut lines = Vec::new();
            for line in text.lines() {
                lines.extend(wrap_lines(&[Span::styled(plain(line).into_owned(), theme.dim())], columns, &[], &[]));
            }
            lines
        });
    }
}

impl View for ContextView {
    fn title(&self) -> &'static str {
        "Context"
    }

    fn scopes(&self) -> &'static [Scope] {
        &[Scope::Context, Scope::Overlay]
    }

    fn opened(&mut self) -> Vec<Effect> {
        vec![Effect::Send(Input::ShowContext)]
    }

    fn notify(&mut self, notification: Notification<'_>) {
        let Notification::Context { report, history } = notification else { return };
        let before = self.part().map(|it| (it.kind, it.seq, it.title.clone()));
        self.texts = report.parts.iter().map(|part| text_of(part, history)).collect();
        self.call_of = calls_of(&report.parts, history);
        self.largest = report.parts.iter().map(|it| it.tokens).max().unwrap_or(1);
        self.waits = report.parts.iter().any(|it| it.waits);
        self.report = Some(Rc::new(report.clone()));
        self.sort();
        // The cursor stays with its part.
        let same = |part: &Part| before.as_ref() == Some(&(part.kind, part.seq, part.title.clone()));
        self.list.chosen = self.rows.iter().position(|at| same(&report.parts[*at])).unwrap_or(self.list.chosen);
        self.list.chosen = self.list.chosen.min(self.rows.len().saturating_sub(1));
        self.page = Page::default();
    }

    fn scroll(&mut self, by: isize) {
        self.step(by);
    }

    fn wheel(&mut self, at: Position, by: isize) -> Outcome {
        if self.preview_area.contains(at) {
            self.page.scroll(by)
        } else {
            self.step(by)
        }
        Outcome::Stay
    }

    fn press(&mut self, at: Position) -> Press {
        let row = self.list.row_at(at);
        if let Some(row) = row.filter(|row| *row != self.list.chosen) {
            (self.list.chosen, self.page, self.note) = (row, Page::default(), None);
        }
        row.map_or(Press::Nowhere, Press::OnRow)
    }

    fn act(&mut self, action: LayerAction) -> Outcome {
        match action {
            LayerAction::CloseOverlay => return Outcome::Close,
            LayerAction::SortContext => {
                let part = self.rows.get(self.list.chosen).copied();
                self.order = if self.order == Order::Place { Order::Size } else { Order::Place };
                self.sort();
                self.list.chosen = self.rows.iter().position(|at| Some(*at) == part).unwrap_or(0);
            }
            LayerAction::ScrollPreview => self.page.scroll(5),
            LayerAction::ScrollPreviewBack => self.page.scroll(-5),
            LayerAction::Choose => match self.part().and_then(|it| it.seq) {
                Some(seq) => return Outcome::CloseAndAsk(Request::ShowEntry(seq)),
                None => self.note = Some("every request begins with it: it stands nowhere in the conversation"),
            },
            LayerAction::PinPart => {
                let pin = self.part().and_then(|it| Some(Input::Pin { seq: it.seq?, pinned: !it.pinned }));
                return self.send(pin);
            }
            LayerAction::DropPart => {
                let droppable = self.part().filter(|it| can_drop(it.kind));
                let input = droppable.and_then(|it| Some(Input::Drop { seq: it.seq?, dropped: !is_out(it) }));
                return self.send(input);
            }
            action => {
                if self.list.act(action, self.rows.len()) {
                    (self.page, self.note) = (Page::default(), None);
                }
            }
        }
        Outcome::Stay
    }

    fn draw(&mut self, canvas: &mut Canvas, area: Rect, paint: Paint<'_>) {
        let theme = paint.theme;
        let part = self.part();
        let (pin, drop) = match part {
            Some(it) => (if it.pinned { "unpin" } else { "pin" }, if is_out(it) { "send again" } else { "drop" }),
            None => ("pin", "drop"),
        };
        let sort = if self.order == Order::Place { "by size" } else { "by place" };
        let keys = paint.hints(&[
            (LayerAction::PinPart, pin),
            (LayerAction::DropPart, drop),
            (LayerAction::Choose, "go there"),
            (LayerAction::SortContext, sort),
            (LayerAction::CloseOverlay, "close"),
            (LayerAction::ScrollPreview, "scroll the text"),
        ]);
        let inner = panel(canvas, dialog(area, 160, 48), "Context", &keys, theme);
        if inner.height < 4 {
            return;
        }
        let Some(report) = self.report.clone() else {
            canvas.line(Line::styled("measuring the next request…", theme.dim()), Rect { height: 1, ..inner });
            return;
        };
        let [head, _, body, _, foot] = Layout::vertical([
            Constraint::Length(1),
            Constraint::Length(u16::from(inner.height > 12)),
            Constraint::Fill(1),
            // The text of a part would run into the note below it.
            Constraint::Length(u16::from(inner.height > 16)),
            Constraint::Length(1),
        ])
        .areas(inner);
        draw_head(canvas, head, &report, theme);
        let (list, preview) = if inner.width >= SIDE_BY_SIDE {
            let [list, _, preview] =
                Layout::horizontal([Constraint::Percentage(55), Constraint::Length(3), Constraint::Fill(1)])
                    .areas(body);
            (list, Some(preview))
        } else if body.height >= BELOW {
            let [list, _, preview] =
                Layout::vertical([Constraint::Fill(2), Constraint::Length(1), Constraint::Fill(1)]).areas(body);
            (list, Some(preview))
        } else {
            (body, None)
        };
        self.draw_list(canvas, list, &report, theme);
        self.preview_area = preview.unwrap_or_default();
        if let Some(area) = preview {
            self.draw_preview(canvas, area, paint);
        }
        let (text, style) = match self.note {
            Some(note) => (note, theme.fg(theme.warning)),
            None if self.waits => {
                ("A turn is running: what you changed holds from its next request on", theme.fg(theme.warning))
            }
            None => ("After a drop the provider caches the prompt anew, once", theme.dim()),
        };
        canvas.line(Line::styled(fit(text, usize::from(foot.width)), style), foot);
    }
}

/// For each part that is the result of a call: the part that is the call.
fn calls_of(parts: &[Part], history: &History) -> Vec<Option<usize>> {
    let mut calls: HashMap<&str, usize> = HashMap::new();
    let mut of = Vec::with_capacity(parts.len());
    for (at, part) in parts.iter().enumerate() {
        of.push(match part.seq.and_then(|seq| history.entry(seq)).map(|entry| &entry.fact) {
            Some(Fact::ToolCall(call)) => {
                calls.insert(&call.call_id, at);
                None
            }
            Some(Fact::ToolResult(result)) => calls.get(result.call_id.as_str()).copied(),
            _ => None,
        });
    }
    of
}

/// `31k of 200k tokens  ▰▰▰▱▱▱  31 %`
fn draw_head(canvas: &mut Canvas, area: Rect, report: &ContextReport, theme: &Theme) {
    let estimated = match report.tokens_from {
        TokensFrom::Estimate => " (estimated)",
        TokensFrom::Provider => "",
    };
    let of = report.window.map_or_else(String::new, |window| format!(" of {}", short(window)));
    let numbers = format!("{}{of} tokens{estimated}", short(report.tokens));
    let mut spans = vec![Span::styled(numbers.clone(), theme.bold())];
    let columns = usize::from(area.width).saturating_sub(width(&numbers) + 12).min(48);
    if let (Some(window), 4.., false) = (report.window, columns, canvas.is_bare) {
        spans.push(Span::raw("   "));
        spans.extend(bar(report.tokens, window, columns, theme));
        spans.push(Span::styled(format!("  {}", share(report.tokens, window)), theme.dim()));
    }
    canvas.line(Line::from(spans), area);
}

/// A note stands for the part, now or from the next request on.
fn is_out(part: &Part) -> bool {
    part.dropped != part.waits
}

/// The user can drop such parts.
fn can_drop(kind: PartKind) -> bool {
    match kind {
        PartKind::Message
        | PartKind::Command
        | PartKind::Answer
        | PartKind::Thinking
        | PartKind::Call
        | PartKind::Result
        | PartKind::Skill => true,
        PartKind::Instructions
        | PartKind::Tools
        | PartKind::Document
        | PartKind::Summary
        | PartKind::Skills
        | PartKind::Change
        | PartKind::Plan
        | PartKind::Framing => false,
    }
}

fn colour_of(kind: PartKind, theme: &Theme) -> ratatui::style::Color {
    match kind {
        PartKind::Message | PartKind::Command => theme.user,
        PartKind::Answer | PartKind::Summary => theme.accent,
        PartKind::Thinking => theme.thinking,
        PartKind::Call | PartKind::Result => theme.tool,
        PartKind::Skill | PartKind::Skills => theme.success,
        PartKind::Instructions
        | PartKind::Tools
        | PartKind::Document
        | PartKind::Change
        | PartKind::Plan
        | PartKind::Framing => theme.dim,
    }
}

/// What a screen reader says of a part.
fn label(part: &Part, all: u64) -> String {
    let state = match (is_out(part), part.pinned) {
        (true, _) => ", dropped",
        (false, true) => ", pinned",
        (false, false) => "",
    };
    let waits = if part.waits { ", from the next request on" } else { "" };
    let turn = part.turn.map_or_else(String::new, |turn| format!(", turn {turn}"));
    format!(
        "{}: {}, {} tokens, {}{turn}{state}{waits}",
        part.kind.name(),
        plain(&part.title),
        part.tokens,
        share(part.tokens, all)
    )
}

/// The text of a part, for its preview.
fn text_of(part: &Part, history: &History) -> String {
    let Some(entry) = part.seq.and_then(|seq| history.entry(seq)) else { return part.excerpt.clone() };
    let text = match &entry.fact {
        Fact::UserMessage(it) => it.text.clone(),
        Fact::UserCommand(it) => it.command.clone(),
        Fact::AssistantMessage(it) => it.text.clone(),
        Fact::Reasoning(it) => it.text.clone(),
        Fact::ToolCall(it) => serde_json::to_string_pretty(&it.args.value()).unwrap_or_default(),
        Fact::ToolResult(it) => it.output.clone(),
        Fact::HistoryCompaction(it) => it.summary.clone(),
        Fact::BranchSummary(it) => it.summary.clone(),
        Fact::SkillActivation(it) => it.body.clone(),
        Fact::SkillIndex(it) => it.text.clone(),
        Fact::AgentEvent(event) if let AgentEvent::Reported { text, .. } = &**event => text.clone(),
        Fact::ContextChanged(it) => it.documents.iter().map(|it| format!("{}\n{}\n", it.source, it.text)).collect(),
        Fact::FilesRestored(it) => it.changes.iter().map(|it| format!("{}\n", it.path)).collect(),
        _ => String::new(),
    };
    if text.chars().nth(MAX_SHOWN).is_some() {
        text.chars().take(MAX_SHOWN).chain("…".chars()).collect()
    } else {
        text
    }
}
