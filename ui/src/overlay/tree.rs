//! Turns and branches: go back, edit a prompt, fork.

use crate::terminal::canvas::Canvas;
use crate::terminal::key::{KeyCode, KeyEvent, KeyModifiers};
use pixir_core::history::{History, Jump};
use pixir_core::input::Summarize;
use pixir_core::store::Summary;
use pixir_core::tree::Node;
use pixir_core::{Input, tree};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};

use super::narrow::cut_word;
use super::{Notification, Outcome, Paint, Request, panel};
use crate::input::action::{Action, SessionKind};
use crate::render::markdown::first_line;
use crate::render::text::{fit, plain, wrap_lines};
use crate::theme::Theme;

/// The narrowest panel that has room for a preview, in columns.
const WIDE: u16 = 90;

/// A move of the head, until the user has decided whether files go along.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PendingMove {
    pub(crate) to_seq: Option<u64>,
    pub(crate) summarize: Summarize,
    /// The prompt that returns to the composer after the move.
    pub(crate) edit: Option<String>,
}

#[derive(Debug)]
pub(crate) struct TreeView {
    nodes: Vec<Node>,
    /// Where the head was before its last move.
    back: Option<Jump>,
    family: Vec<Relative>,
    chosen: usize,
    summarize: Summarize,
    /// The label of the chosen node, while the user types it.
    naming: Option<String>,
    /// In a replay the tree only navigates.
    session: SessionKind,
}

/// Another Session that shares a part of this conversation: a fork, or the Session that this one was forked from.
#[derive(Debug)]
struct Relative {
    id: String,
    text: String,
}

impl TreeView {
    pub(crate) fn new(history: &History, session: SessionKind) -> TreeView {
        let nodes = tree::nodes(history);
        let chosen = nodes.iter().position(|node| node.is_head).unwrap_or(0);
        TreeView {
            nodes,
            back: history.jumps().last().copied(),
            family: Vec::new(),
            chosen,
            summarize: Summarize::No,
            naming: None,
            session,
        }
    }

    /// The list has forks, which have to be loaded.
    pub(crate) fn shows_forks(&self) -> bool {
        self.session == SessionKind::Live
    }

    /// Finds the forks of this Session, and the Session that it was forked from.
    fn set_family(&mut self, sessions: &[Summary], own: &str) {
        let me = sessions.iter().find(|it| it.id == own);
        let parent = me.and_then(|it| it.forked_from.as_deref());
        self.family = sessions
            .iter()
            .filter_map(|it| {
                let how = if Some(it.id.as_str()) == parent {
                    "forked from".to_owned()
                } else if it.forked_from.as_deref() == Some(own) {
                    it.forked_at.map_or("fork".to_owned(), |seq| format!("fork at {seq}"))
                } else {
                    return None;
                };
                Some(Relative { id: it.id.clone(), text: format!("{how}  {}  {}", it.id, it.title()) })
            })
            .collect();
    }

    fn count(&self) -> usize {
        self.nodes.len() + self.family.len()
    }

    /// The user types a label.
    pub(crate) fn is_typing(&self) -> bool {
        self.naming.is_some()
    }

    pub(crate) fn key(&mut self, key: KeyEvent) -> Option<Outcome> {
        let name = self.naming.as_mut()?;
        match key.code {
            KeyCode::Esc => self.naming = None,
            KeyCode::Backspace => drop(name.pop()),
            KeyCode::Char('u') if key.modifiers == KeyModifiers::CONTROL => name.clear(),
            KeyCode::Char('w') if key.modifiers == KeyModifiers::CONTROL => cut_word(name),
            KeyCode::Char(c) if key.modifiers.is_typing() => name.push(c),
            KeyCode::Enter => {
                let text = self.naming.take().unwrap_or_default().trim().to_owned();
                if let Some(node) = self.nodes.get(self.chosen) {
                    return Some(Outcome::send(Input::Label { seq: node.seq, text }));
                }
            }
            _ => {}
        }
        Some(Outcome::Stay)
    }

    fn go(&self, to_seq: Option<u64>, edit: Option<String>) -> Outcome {
        let summarize = self.summarize;
        Outcome::CloseAndAsk(Request::MoveHead(PendingMove { to_seq, summarize, edit }))
    }

    fn enter(&self) -> Outcome {
        match self.nodes.get(self.chosen) {
            // The head is already there.
            Some(node) if node.is_head => Outcome::Close,
            Some(node) => self.go(Some(node.end_seq), None),
            None => match self.family.get(self.chosen - self.nodes.len().min(self.chosen)) {
                Some(relative) => Outcome::CloseAndAsk(Request::Command(format!("/resume {}", relative.id))),
                None => Outcome::Stay,
            },
        }
    }

    fn draw_list(&self, canvas: &mut Canvas, list: Rect, theme: &Theme) {
        let columns = usize::from(list.width);
        let top = (self.chosen + 1).saturating_sub(usize::from(list.height));
        for (row, at) in (list.y..list.bottom()).zip(top..self.count()) {
            let line = match self.nodes.get(at) {
                Some(node) => node_line(node, columns, theme),
                None => Line::from(vec![
                    Span::styled("⑂ ", theme.fg(theme.tool)),
                    Span::styled(
                        fit(&plain(&self.family[at - self.nodes.len()].text), columns.saturating_sub(2)),
                        theme.fg(theme.text),
                    ),
                ]),
            };
            let area = Rect { y: row, height: 1, ..list };
            if at == self.chosen {
                canvas.tint(area, theme.selected());
            }
            canvas.line(line, area);
        }
    }
}

impl TreeView {
    pub(crate) fn notify(&mut self, notification: Notification<'_>) {
        match notification {
            Notification::Labels(history) => self.nodes = tree::nodes(history),
            Notification::Sessions { all, forks_of: Some(own), .. } => self.set_family(all, own),
            Notification::Sessions { forks_of: None, .. }
            | Notification::Models { .. }
            | Notification::Skills(_)
            | Notification::Diffs { .. }
            | Notification::Jobs(_)
            | Notification::Files { .. }
            | Notification::StoredSessions { .. }
            | Notification::SessionFound { .. }
            | Notification::SearchEnded
            | Notification::SessionPreview { .. }
            | Notification::JobOutput(_)
            | Notification::Log(_)
            | Notification::Checks(_)
            | Notification::Rules { .. }
            | Notification::CallEnded(_)
            | Notification::TurnEnded => {}
        }
    }

    pub(crate) fn scroll(&mut self, by: isize) {
        self.chosen = self.chosen.saturating_add_signed(by).min(self.count().saturating_sub(1));
    }

    pub(crate) fn act(&mut self, action: Action) -> Outcome {
        let node = self.nodes.get(self.chosen);
        match (action, node) {
            (Action::CloseOverlay, _) => return Outcome::Close,
            (Action::OverlayUp, _) => self.scroll(-1),
            (Action::OverlayDown, _) => self.scroll(1),
            (Action::OverlayPageUp, _) => self.scroll(-10),
            (Action::OverlayPageDown, _) => self.scroll(10),
            (Action::OverlayStart, _) => self.chosen = 0,
            (Action::OverlayEnd, _) => self.chosen = self.count().saturating_sub(1),
            (Action::Choose, _) => return self.enter(),
            _ if self.session == SessionKind::Replay => {}
            (Action::EditAgain, Some(node)) => return self.go(node.before, Some(node.text.clone())),
            (Action::JumpBack, _) => {
                if let Some(jump) = self.back {
                    return self.go(jump.from, None);
                }
            }
            (Action::ForkHere, Some(node)) => return Outcome::close_and_send(Input::Fork { seq: node.end_seq }),
            (Action::LabelNode, Some(node)) => self.naming = Some(node.label.clone().unwrap_or_default()),
            (Action::PinNode, Some(node)) => {
                let mut seqs = vec![node.seq, node.end_seq];
                seqs.dedup();
                let pinned = !node.pinned;
                let pin = |seq| Input::Pin { seq, pinned };
                return Outcome::Ask(Request::Send(seqs.into_iter().map(pin).collect()));
            }
            (Action::CycleSummary, _) => {
                self.summarize = match self.summarize {
                    Summarize::No => Summarize::Deterministic,
                    Summarize::Deterministic => Summarize::Model,
                    Summarize::Model => Summarize::No,
                }
            }
            _ => {}
        }
        Outcome::Stay
    }

    pub(crate) fn draw(&mut self, canvas: &mut Canvas, area: Rect, paint: Paint<'_>) {
        let theme = paint.theme;
        let go = [(Action::Choose, "go"), (Action::CloseOverlay, "close")];
        let keys = match (&self.naming, self.summarize) {
            _ if self.session == SessionKind::Replay => paint.hints(&go),
            (Some(name), _) => format!("label: {}▏ Enter save · Esc cancel", plain(name)),
            (None, summarize) => {
                let summary = match summarize {
                    Summarize::No => "summary: none",
                    Summarize::Deterministic => "summary: from the log",
                    Summarize::Model => "summary: by the model",
                };
                let back = self.back.is_some().then_some((Action::JumpBack, "back"));
                let others = [
                    (Action::ForkHere, "fork"),
                    (Action::CycleSummary, summary),
                    (Action::LabelNode, "label"),
                    (Action::PinNode, "pin"),
                ];
                let all: Vec<_> =
                    go.into_iter().chain([(Action::EditAgain, "edit")]).chain(back).chain(others).collect();
                paint.hints(&all)
            }
        };
        let inner = panel(canvas, area, "Tree", &keys, theme);
        if self.count() == 0 {
            canvas.line(Line::styled("no turns yet", theme.dim()), Rect { height: 1.min(inner.height), ..inner });
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
        self.draw_list(canvas, list, theme);
        if let (Some(area), Some(node)) = (preview, self.nodes.get(self.chosen)) {
            draw_preview(canvas, area, node, theme);
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
    let count = |n: u32, one: &str| match n {
        0 => String::new(),
        1 => format!("  1 {one}"),
        n => format!("  {n} {one}s"),
    };
    let pin = if node.pinned { "  pinned" } else { "" };
    let tools = format!("{}{}{pin}", count(node.tool_calls, "call"), count(node.files, "change"));
    let number = node.turn.map_or(String::new(), |turn| format!("{turn} "));
    let room = columns.saturating_sub(indent.len() + 2 + tools.len() + number.len());
    let text_style = if node.on_path { theme.fg(theme.text) } else { theme.dim() };
    Line::from(vec![
        Span::raw(indent),
        Span::styled(mark, style),
        Span::styled(number, theme.dim()),
        Span::styled(first_line(&format!("{label}{}", node.text), room), text_style),
        Span::styled(tools, theme.dim()),
    ])
}

fn draw_preview(canvas: &mut Canvas, area: Rect, node: &Node, theme: &Theme) {
    let columns = usize::from(area.width);
    // Text beyond the screen is not laid out.
    let most = columns * usize::from(area.height) * 4;
    let start = |text: &str| plain(&text[..text.floor_char_boundary(most)]).into_owned();
    let mut lines = wrap_lines(
        &[Span::styled(start(&node.text), theme.fg(theme.user))],
        columns,
        &[Span::styled("❯ ", theme.fg(theme.user))],
        &[Span::raw("  ")],
    );
    lines.push(Line::default());
    lines.extend(wrap_lines(&[Span::styled(start(&node.answer), theme.fg(theme.text))], columns, &[], &[]));
    for (row, line) in (area.y..area.bottom()).zip(lines) {
        canvas.line(line, Rect { y: row, height: 1, ..area });
    }
}
