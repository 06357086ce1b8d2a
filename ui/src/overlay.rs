//! Layers over the transcript: the top one has the keys. Their steps stay inside them; what they want comes out as an Action.

use crate::canvas::Canvas;
use pixir_core::event::{Approval, HistoryCompaction};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, BorderType};

use crate::action::{Action, BINDINGS};
use crate::render::highlight::Highlighter;
use crate::render::markdown::{self, Look};
use crate::render::text::{lines_of, width, wrap_lines};
use crate::slash::COMMANDS;
use crate::theme::Theme;
use crate::transcript::Fold;
use crate::view;

pub(crate) mod diff; // what was changed
pub(crate) mod form; // questions of the model
pub(crate) mod jobs; // what runs in the background
pub(crate) mod picker; // one of many
pub(crate) mod restore; // files that are to be set back
pub(crate) mod tree; // turns and branches

/// A layer.
#[derive(Debug)]
pub(crate) enum Overlay {
    Help(Page),
    /// A question in full.
    Approval(Box<Approval>, Page),
    Compaction(Box<HistoryCompaction>, Page),
    Tree(tree::TreeView),
    Restore(restore::RestoreView),
    Diff(diff::DiffView),
    Form(form::FormView),
    Jobs(jobs::JobsView),
    Picker(picker::Picker),
}

/// What a layer makes of a key.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Reply {
    Stay,
    Close,
    Act(Action),
    CloseAndAct(Action),
}

/// Text that can be scrolled.
#[derive(Debug, Default)]
pub(crate) struct Page {
    top: usize,
    /// Lines below the first page, as it was last drawn.
    most: usize,
}

impl Page {
    pub(crate) fn scroll(&mut self, by: isize) {
        self.top = self.top.saturating_add_signed(by).min(self.most);
    }

    /// The last line is in sight.
    pub(crate) fn is_at_end(&self) -> bool {
        self.top >= self.most
    }

    /// The usual keys of a page; false when it was none of them.
    pub(crate) fn key(&mut self, key: KeyEvent) -> bool {
        match key.code {
            KeyCode::Up | KeyCode::Char('k') => self.scroll(-1),
            KeyCode::Down | KeyCode::Char('j') => self.scroll(1),
            KeyCode::PageUp => self.scroll(-10),
            KeyCode::PageDown | KeyCode::Char(' ') => self.scroll(10),
            KeyCode::Home | KeyCode::Char('g') => self.top = 0,
            KeyCode::End | KeyCode::Char('G') => self.top = self.most,
            _ => return false,
        }
        true
    }

    pub(crate) fn draw(&mut self, canvas: &mut Canvas, area: Rect, lines: &[Line<'static>]) {
        self.most = lines.len().saturating_sub(usize::from(area.height));
        self.top = self.top.min(self.most);
        for (row, line) in (area.y..area.bottom()).zip(lines.iter().skip(self.top)) {
            canvas.line(line, Rect { y: row, height: 1, ..area });
        }
    }
}

impl Overlay {
    pub(crate) fn help() -> Overlay {
        Overlay::Help(Page::default())
    }

    pub(crate) fn compaction(plan: HistoryCompaction) -> Overlay {
        Overlay::Compaction(Box::new(plan), Page::default())
    }

    /// A key, while this layer is on top.
    pub(crate) fn key(&mut self, key: KeyEvent) -> Reply {
        let is_close =
            key.code == KeyCode::Esc || (key.code == KeyCode::Char('q') && key.modifiers == KeyModifiers::NONE);
        match self {
            Overlay::Help(page) => {
                if page.key(key) || !(is_close || key.code == KeyCode::F(1) || key.code == KeyCode::Char('?')) {
                    Reply::Stay
                } else {
                    Reply::Close
                }
            }
            Overlay::Approval(_, page) => {
                if is_close || key.code == KeyCode::Enter {
                    return Reply::Close;
                }
                page.key(key);
                Reply::Stay
            }
            Overlay::Compaction(_, page) => match key.code {
                KeyCode::Enter => Reply::CloseAndAct(Action::ApplyCompaction),
                _ if is_close => Reply::Close,
                _ => {
                    page.key(key);
                    Reply::Stay
                }
            },
            Overlay::Tree(tree) => tree.key(key),
            Overlay::Restore(restore) => restore.key(key),
            Overlay::Diff(diff) => diff.key(key),
            Overlay::Form(form) => form.key(key),
            Overlay::Jobs(jobs) => jobs.key(key),
            Overlay::Picker(picker) => picker.key(key),
        }
    }

    /// The wheel.
    pub(crate) fn scroll(&mut self, by: isize) {
        match self {
            Overlay::Help(page) | Overlay::Approval(_, page) | Overlay::Compaction(_, page) => page.scroll(by),
            Overlay::Tree(tree) => tree.select(by.signum()),
            Overlay::Restore(restore) => restore.select(by.signum()),
            Overlay::Diff(diff) => diff.scroll(by),
            Overlay::Form(form) => form.select(by.signum()),
            Overlay::Jobs(jobs) => jobs.select(by.signum()),
            Overlay::Picker(picker) => picker.select(by.signum()),
        }
    }

    /// Draws the layer over everything below it.
    pub(crate) fn draw(&mut self, canvas: &mut Canvas, area: Rect, theme: &Theme, highlighter: &Highlighter) {
        match self {
            Overlay::Help(page) => {
                let inner = panel(canvas, centred(area, 84, 44), "Help", "↑↓ scroll · Esc close", theme);
                page.draw(canvas, inner, &help_lines(usize::from(inner.width), theme));
            }
            Overlay::Approval(it, page) => {
                let keys = "↑↓ read to the end · Enter or Esc back to the question";
                let inner = panel(canvas, area, &format!("{}: {}", it.tool, it.plan.would), keys, theme);
                page.draw(canvas, inner, &view::plan_lines(&it.plan, usize::from(inner.width), theme));
            }
            Overlay::Compaction(plan, page) => {
                let title = format!("Compact: {} → {} tokens (estimated)", plan.tokens_before, plan.tokens_after);
                let inner = panel(
                    canvas,
                    centred(area, 100, 60),
                    &title,
                    "Enter apply · ↑↓ scroll · Esc leave as it is",
                    theme,
                );
                let columns = usize::from(inner.width);
                let told = format!(
                    "{} entries leave the model's context; the newest part of the conversation stays as it is. Nothing is deleted: /tree goes back to before it. The model will read this instead:",
                    plan.entries_dropped
                );
                let mut lines = wrap_lines(&[Span::styled(told, theme.dim())], columns, &[], &[]);
                lines.push(Line::default());
                lines.extend(lines_of(markdown::rows(
                    &plan.summary,
                    &Look { theme, highlighter, columns, colours: true, details: Fold::Some, thinking: Fold::Line },
                )));
                page.draw(canvas, inner, &lines);
            }
            Overlay::Tree(tree) => tree.draw(canvas, area, theme),
            Overlay::Restore(restore) => restore.draw(canvas, area, theme),
            Overlay::Diff(diff) => diff.draw(canvas, area, theme),
            Overlay::Form(form) => form.draw(canvas, area, theme),
            Overlay::Jobs(jobs) => jobs.draw(canvas, area, theme),
            Overlay::Picker(picker) => picker.draw(canvas, area, theme),
        }
    }
}

/// A framed area with a title above and keys below, cleared.
pub(crate) fn panel(canvas: &mut Canvas, area: Rect, title: &str, keys: &str, theme: &Theme) -> Rect {
    let keys = whole_items(keys, usize::from(area.width).saturating_sub(4));
    let block = Block::bordered()
        .border_type(BorderType::Rounded)
        .border_style(theme.fg(theme.accent))
        .style(theme.base())
        .title(Line::styled(format!(" {title} "), theme.bold()))
        .title_bottom(Line::styled(format!(" {keys} "), theme.dim()));
    let inner = block.inner(area);
    canvas.fill(area, theme.base());
    canvas.render_widget(block, area);
    Rect {
        x: inner.x + u16::from(inner.width > 2),
        width: inner.width.saturating_sub(2).max(u16::from(inner.width > 0)),
        ..inner
    }
}

/// As many keys as fit; the first are the ones that are needed most.
fn whole_items(keys: &str, columns: usize) -> String {
    let mut shown = String::new();
    for item in keys.split(" · ") {
        let gap = if shown.is_empty() { "" } else { " · " };
        if width(&shown) + width(gap) + width(item) > columns {
            break;
        }
        shown.push_str(gap);
        shown.push_str(item);
    }
    shown
}

/// At most this large, in the middle.
pub(crate) fn centred(area: Rect, width: u16, height: u16) -> Rect {
    let (width, height) = (width.min(area.width), height.min(area.height));
    Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height }
}

fn help_lines(columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let mut lines = vec![Line::styled("Keys", theme.bold())];
    let row = |left: String, about: &str| {
        let first = [Span::styled(format!("  {left:<13} "), theme.fg(theme.accent))];
        wrap_lines(
            &[Span::styled(about.to_owned(), theme.fg(theme.text))],
            columns,
            &first,
            &[Span::raw(" ".repeat(16))],
        )
    };
    for binding in BINDINGS.iter().filter(|b| !b.about.is_empty()) {
        lines.extend(row(binding.keys.to_owned(), binding.about));
    }
    lines.push(Line::default());
    lines.push(Line::styled("Commands", theme.bold()));
    for command in COMMANDS {
        let args = if command.args.is_empty() { String::new() } else { format!(" {}", command.args) };
        lines.extend(row(
            format!("/{}", command.name),
            &format!("{}.{}", command.about, if args.is_empty() { String::new() } else { format!(" Takes{args}.") }),
        ));
        lines.push(Line::from(vec![
            Span::raw(" ".repeat(16)),
            Span::styled(format!("does: {}", command.does), theme.dim()),
        ]));
    }
    lines
}
