//! Turns and branches: go back, edit a prompt again, fork.

use pixir_core::harness::Summary;
use pixir_core::history::History;
use pixir_core::tree::{self, Node};
use ratatui::Frame;
use ratatui::crossterm::event::{KeyCode, KeyEvent};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};

use super::{Reply, panel};
use crate::action::Action;
use crate::render::markdown::first_line;
use crate::render::text::{fit, plain, wrap};
use crate::theme::Theme;

/// Columns from which there is room for a preview.
const WIDE: u16 = 90;

/// The layer.
#[derive(Debug)]
pub(crate) struct TreeView {
    nodes: Vec<Node>,
    /// The entry before each node's request: where editing it again goes back to.
    before: Vec<Option<u64>>,
    forks: Vec<(String, String)>,
    chosen: usize,
}

impl TreeView {
    pub(crate) fn new(history: &History) -> TreeView {
        let nodes = tree::nodes(history);
        let before = nodes.iter().map(|node| history.parent(node.seq)).collect();
        let chosen = nodes.iter().position(|node| node.is_head).unwrap_or(0);
        TreeView { nodes, before, forks: Vec::new(), chosen }
    }

    pub(crate) fn set_forks<'a>(&mut self, forks: impl Iterator<Item = &'a Summary>) {
        self.forks = forks.map(|it| (it.id.clone(), it.first_prompt.clone())).collect();
    }

    fn count(&self) -> usize {
        self.nodes.len() + self.forks.len()
    }

    pub(crate) fn select(&mut self, by: isize) {
        self.chosen = self.chosen.saturating_add_signed(by).min(self.count().saturating_sub(1));
    }

    pub(crate) fn key(&mut self, key: KeyEvent) -> Reply {
        match key.code {
            KeyCode::Esc | KeyCode::Char('q') => return Reply::Close,
            KeyCode::Up | KeyCode::Char('k') => self.select(-1),
            KeyCode::Down | KeyCode::Char('j') => self.select(1),
            KeyCode::PageUp => self.select(-10),
            KeyCode::PageDown => self.select(10),
            KeyCode::Home | KeyCode::Char('g') => self.chosen = 0,
            KeyCode::End | KeyCode::Char('G') => self.chosen = self.count().saturating_sub(1),
            KeyCode::Enter => return self.go(),
            KeyCode::Char('e') => {
                if let Some(node) = self.nodes.get(self.chosen) {
                    return Reply::CloseAndAct(Action::EditPrompt {
                        before: self.before[self.chosen],
                        text: node.text.clone(),
                    });
                }
            }
            KeyCode::Char('f') => {
                if let Some(node) = self.nodes.get(self.chosen) {
                    return Reply::CloseAndAct(Action::Fork(node.end_seq));
                }
            }
            _ => {}
        }
        Reply::Stay
    }

    fn go(&self) -> Reply {
        match self.nodes.get(self.chosen) {
            // The head is there already.
            Some(node) if node.is_head => Reply::Close,
            Some(node) => Reply::CloseAndAct(Action::MoveHead(Some(node.end_seq))),
            None => match self.forks.get(self.chosen - self.nodes.len().min(self.chosen)) {
                Some((id, _)) => Reply::CloseAndAct(Action::Resume(id.clone())),
                None => Reply::Stay,
            },
        }
    }

    pub(crate) fn draw(&mut self, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
        let inner =
            panel(frame, area, "Tree", "Enter go on from there · e edit its prompt · f fork · Esc close", theme);
        if self.count() == 0 {
            frame.render_widget(
                Line::styled("no turns yet", theme.dim()),
                Rect { height: 1.min(inner.height), ..inner },
            );
            return;
        }
        let (list, preview) = if inner.width >= WIDE {
            let [list, _, preview] =
                Layout::horizontal([Constraint::Percentage(50), Constraint::Length(2), Constraint::Fill(1)])
                    .areas(inner);
            (list, Some(preview))
        } else {
            (inner, None)
        };
        self.draw_list(frame, list, theme);
        if let (Some(area), Some(node)) = (preview, self.nodes.get(self.chosen)) {
            draw_preview(frame, area, node, theme);
        }
    }

    fn draw_list(&self, frame: &mut Frame<'_>, list: Rect, theme: &Theme) {
        let columns = usize::from(list.width);
        let top = (self.chosen + 1).saturating_sub(usize::from(list.height));
        for (row, at) in (list.y..list.bottom()).zip(top..self.count()) {
            let line = match self.nodes.get(at) {
                Some(node) => node_line(node, columns, theme),
                None => {
                    let (id, prompt) = &self.forks[at - self.nodes.len()];
                    Line::from(vec![
                        Span::styled("⑂ fork ", theme.fg(theme.tool)),
                        Span::styled(fit(&format!("{id}  {prompt}"), columns.saturating_sub(7)), theme.fg(theme.text)),
                    ])
                }
            };
            let area = Rect { y: row, height: 1, ..list };
            if at == self.chosen {
                frame.buffer_mut().set_style(area, theme.selected());
            }
            frame.render_widget(line, area);
        }
    }
}

fn node_line(node: &Node, columns: usize, theme: &Theme) -> Line<'static> {
    let indent = "  ".repeat(node.depth.min(columns / 4));
    let (mark, style) = match (node.is_head, node.on_path) {
        (true, _) => ("◉ ", theme.fg(theme.success)),
        (false, true) => ("● ", theme.fg(theme.accent)),
        (false, false) => ("○ ", theme.dim()),
    };
    let label = node.label.as_ref().map_or(String::new(), |label| format!("[{label}] "));
    let tools = if node.tool_calls > 0 { format!("  {} calls", node.tool_calls) } else { String::new() };
    let room = columns.saturating_sub(indent.len() + 2 + tools.len());
    let text_style = if node.on_path { theme.fg(theme.text) } else { theme.dim() };
    Line::from(vec![
        Span::raw(indent),
        Span::styled(mark, style),
        Span::styled(first_line(&format!("{label}{}", node.text), room), text_style),
        Span::styled(tools, theme.dim()),
    ])
}

fn draw_preview(frame: &mut Frame<'_>, area: Rect, node: &Node, theme: &Theme) {
    let columns = usize::from(area.width);
    let mut lines = wrap(
        &[Span::styled(plain(&node.text), theme.fg(theme.user))],
        columns,
        &[Span::styled("❯ ", theme.fg(theme.user))],
        &[Span::raw("  ")],
    );
    lines.push(Line::default());
    lines.extend(wrap(&[Span::styled(plain(&node.answer), theme.fg(theme.text))], columns, &[], &[]));
    for (row, line) in (area.y..area.bottom()).zip(lines) {
        frame.render_widget(line, Rect { y: row, height: 1, ..area });
    }
}
