//! What stands beside the transcript on a wide screen: the plan, what changed, the turns, what fills the context.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use pixir_core::changes;
use pixir_core::event::{Entry, Fact, PlanItem};
use pixir_core::history::History;
use pixir_core::tree::{self, Node};
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use crate::render::cell::plan_item;
use crate::render::markdown::{Look, first_line};
use crate::render::text::{fit, lines_of, plain, width};
use crate::state::{Focus, State};
use crate::terminal::canvas::Canvas;

/// Columns of the screen from which there is room for it.
pub(crate) const WIDE: u16 = 120;
/// What it may take, columns.
const WIDTHS: std::ops::RangeInclusive<u16> = 24..=80;

/// What it shows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Tab {
    #[default]
    Plan,
    Changes,
    Tree,
    Context,
}

const TABS: [(Tab, &str); 4] =
    [(Tab::Plan, "Plan"), (Tab::Changes, "Changes"), (Tab::Tree, "Tree"), (Tab::Context, "Context")];

/// Whether it is shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Shown {
    /// When it has something to show.
    #[default]
    Auto,
    Always,
    Never,
}

/// The panel.
#[derive(Debug)]
pub(crate) struct Side {
    shown: Shown,
    /// None is the one that has something to show.
    tab: Option<Tab>,
    width: u16,
    pub(crate) top: usize,
    digest: Digest,
}

impl Default for Side {
    fn default() -> Side {
        Side { shown: Shown::Auto, tab: None, width: 36, top: 0, digest: Digest::default() }
    }
}

/// What the conversation comes to, worked out as far as it has been looked at.
#[derive(Debug, Default)]
struct Digest {
    /// Entries that were taken in, and moves of the head; after another move it is worked out anew.
    upto: usize,
    jumps: usize,
    /// Commands whose results no model reads.
    untold: HashSet<String>,
    /// Bytes of the context, by what they came from.
    context: [usize; 5],
    /// Files in the order of their last change, with lines added and removed.
    files: Vec<(String, u64, u64)>,
    /// The turns, once somebody has looked at them; none when there are others by now.
    nodes: Option<Vec<Node>>,
}

const SOURCES: [&str; 5] = ["prompts", "answers", "thinking", "calls", "results"];

impl Digest {
    fn read(&mut self, history: &History) {
        if self.jumps != history.jumps().len() || self.upto > history.entries().len() {
            *self = Digest { jumps: history.jumps().len(), ..Digest::default() };
            history.told().for_each(|entry| self.take(&entry.fact));
        } else {
            history.entries()[self.upto..].iter().for_each(|entry| self.take(&entry.fact));
        }
        let new = self.upto..history.entries().len();
        self.upto = new.end;
        // What came before a compaction is not sent any more, but for its end.
        let is_compaction = |entry: &Arc<Entry>| matches!(entry.fact, Fact::HistoryCompaction(_));
        if !history.entries()[new].iter().any(is_compaction) {
            return;
        }
        let last = history.path().rev().find_map(|entry| match &entry.fact {
            Fact::HistoryCompaction(it) => Some((entry, it.kept_from_seq)),
            _ => None,
        });
        if let Some((summary, from)) = last {
            self.context = [0; 5];
            let kept = history.path().filter(|entry| entry.seq >= from && !is_compaction(entry));
            for entry in std::iter::once(summary).chain(kept) {
                let (at, length) = self.weigh(&entry.fact);
                self.context[at] += length;
            }
        }
    }

    fn read_tree(&mut self, history: &History) {
        if self.nodes.as_ref().is_none_or(Vec::is_empty) {
            self.nodes = Some(tree::nodes(history));
        }
    }

    fn nodes(&self) -> &[Node] {
        self.nodes.as_deref().unwrap_or_default()
    }

    /// From which of the sources it is, and bytes of it that a model reads.
    fn weigh(&self, fact: &Fact) -> (usize, usize) {
        match fact {
            Fact::UserMessage(it) => (0, it.text.len()),
            Fact::UserCommand(it) if it.send_to_model => (0, it.command.len()),
            Fact::AssistantMessage(it) => (1, it.text.len()),
            Fact::Reasoning(it) => (2, it.text.len()),
            Fact::ToolCall(it) => (3, it.args.to_string().len()),
            Fact::ToolResult(it) if self.untold.contains(&it.call_id) => (4, 0),
            Fact::ToolResult(it) => (4, it.output.len()),
            Fact::HistoryCompaction(it) => (1, it.summary.len()),
            _ => (0, 0),
        }
    }

    fn take(&mut self, fact: &Fact) {
        if tree::begins_node(fact) {
            self.nodes = None;
        }
        if let Fact::UserCommand(it) = fact
            && !it.send_to_model
        {
            self.untold.insert(it.call_id.clone());
        }
        let (at, length) = self.weigh(fact);
        self.context[at] += length;
        for change in changes::of_entry(fact) {
            let (mut added, mut removed) = (change.added, change.removed);
            if let Some(at) = self.files.iter().rposition(|(path, ..)| *path == change.path) {
                let (_, a, r) = self.files.remove(at);
                (added, removed) = (added + a, removed + r);
            }
            self.files.push((change.path.clone(), added, removed));
        }
    }
}

impl Side {
    /// Shows it always, or never.
    pub(crate) fn toggle(&mut self, is_shown: bool) {
        self.shown = if is_shown { Shown::Never } else { Shown::Always };
    }

    /// Another conversation.
    pub(crate) fn reset(&mut self) {
        self.digest = Digest::default();
    }

    /// The one that is shown, as long as nobody has chosen one.
    fn tab(&self, history: &History) -> Tab {
        let usual = if history.plan.is_empty() && !self.digest.files.is_empty() { Tab::Changes } else { Tab::Plan };
        self.tab.unwrap_or(usual)
    }

    pub(crate) fn turn(&mut self, by: isize, history: &History) {
        let now = self.tab(history);
        let at = TABS.iter().position(|(tab, _)| *tab == now).unwrap_or(0);
        self.tab = Some(TABS[(at + TABS.len()).saturating_add_signed(by) % TABS.len()].0);
        self.top = 0;
    }

    /// The rows in sight of so many.
    fn rows(&mut self, of: usize, height: usize) -> Range<usize> {
        self.top = self.top.min(of.saturating_sub(height));
        self.top..(self.top + height).min(of)
    }

    pub(crate) fn widen(&mut self, by: i16) {
        self.width = self.width.saturating_add_signed(by).clamp(*WIDTHS.start(), *WIDTHS.end());
    }

    /// Columns that it takes of a screen.
    pub(crate) fn columns(&self, screen: u16, has_something: bool) -> u16 {
        let is_shown = match self.shown {
            Shown::Auto => has_something,
            Shown::Always => true,
            Shown::Never => false,
        };
        if is_shown && screen >= WIDE { self.width.min(screen / 2) } else { 0 }
    }
}

/// Draws it; `area` has its whole width.
pub(crate) fn draw(state: &mut State, canvas: &mut Canvas, area: Rect) {
    state.side.digest.read(&state.history);
    let theme = &state.theme;
    let focused = state.focus == Focus::Side;
    let edge = theme.fg(if focused { theme.accent } else { theme.border });
    for y in area.y..area.bottom() {
        canvas.line(Line::styled("│", edge), Rect { y, width: 1, height: 1, ..area });
    }
    let inner = Rect { x: area.x + 2, width: area.width.saturating_sub(3), ..area };
    let shown = state.side.tab(&state.history);
    let mut tabs: Vec<Span<'_>> = Vec::new();
    for (tab, name) in TABS {
        let style = if tab == shown { theme.bold().fg(theme.accent) } else { theme.dim() };
        tabs.push(Span::styled(name, style));
        tabs.push(Span::raw("  "));
    }
    canvas.region("tabs", Rect { height: 1, ..inner }, || format!("{shown:?}"));
    canvas.state(focused, false);
    canvas.line(Line::from(tabs), Rect { height: 1, ..inner });
    let columns = usize::from(inner.width);
    let body = Rect { y: inner.y + 2, height: inner.height.saturating_sub(2), ..inner };
    let height = usize::from(body.height);
    let mut lines = match shown {
        Tab::Plan => plan_lines(state, columns),
        Tab::Changes => {
            let rows = state.side.rows(state.side.digest.files.len(), height);
            change_lines(state, columns, rows)
        }
        Tab::Tree => {
            state.side.digest.read_tree(&state.history);
            let rows = state.side.rows(state.side.digest.nodes().len(), height);
            tree_lines(state, columns, rows)
        }
        Tab::Context => context_lines(state, columns),
    };
    // Of the long ones only what is in sight was made.
    if matches!(shown, Tab::Plan | Tab::Context) {
        lines = lines.drain(state.side.rows(lines.len(), height)).collect();
    }
    for (y, line) in (body.y..body.bottom()).zip(lines) {
        canvas.line(line, Rect { y, height: 1, ..body });
    }
}

fn nothing(text: &str, state: &State, columns: usize) -> Vec<Line<'static>> {
    vec![Line::styled(fit(text, columns), state.theme.dim())]
}

fn plan_lines(state: &State, columns: usize) -> Vec<Line<'static>> {
    let items: &[PlanItem] = &state.history.plan;
    if items.is_empty() {
        return nothing("no plan yet", state, columns);
    }
    let look = Look::new(&state.theme, &state.highlighter, columns);
    items.iter().flat_map(|item| lines_of(plan_item(item, &look))).collect()
}

fn change_lines(state: &State, columns: usize, rows: Range<usize>) -> Vec<Line<'static>> {
    let theme = &state.theme;
    if state.side.digest.files.is_empty() {
        return nothing("no file was changed", state, columns);
    }
    let lines = state.side.digest.files.iter().rev().skip(rows.start).take(rows.len()).map(|(path, added, removed)| {
        let numbers = format!(" +{added} −{removed}");
        // The end of a path says more than its beginning.
        let room = columns.saturating_sub(width(&numbers));
        let shown = plain(path);
        let shown = if width(&shown) > room {
            let tail: String = shown.chars().rev().take(room.saturating_sub(1)).collect();
            format!("…{}", tail.chars().rev().collect::<String>())
        } else {
            shown.into_owned()
        };
        Line::from(vec![
            Span::styled(shown, theme.fg(theme.text)),
            Span::styled(format!(" +{added}"), theme.fg(theme.added)),
            Span::styled(format!(" −{removed}"), theme.fg(theme.removed)),
        ])
    });
    lines.collect()
}

fn tree_lines(state: &State, columns: usize, rows: Range<usize>) -> Vec<Line<'static>> {
    let theme = &state.theme;
    let nodes = state.side.digest.nodes();
    if nodes.is_empty() {
        return nothing("no turns yet", state, columns);
    }
    let lines = nodes[rows].iter().map(|node| {
        let indent = "  ".repeat(node.depth.min(columns / 6));
        let (mark, style) = match (node.is_head, node.on_path) {
            (true, _) => ("◉ ", theme.fg(theme.success)),
            (false, true) => ("● ", theme.fg(theme.accent)),
            (false, false) => ("○ ", theme.dim()),
        };
        let room = columns.saturating_sub(indent.len() + 2);
        Line::from(vec![
            Span::raw(indent),
            Span::styled(mark, style),
            Span::styled(first_line(&node.text, room), if node.on_path { theme.fg(theme.text) } else { theme.dim() }),
        ])
    });
    lines.collect()
}

/// What the context is made of, by what it came from; estimated at four bytes a token.
fn context_lines(state: &State, columns: usize) -> Vec<Line<'static>> {
    let theme = &state.theme;
    let sums = SOURCES.into_iter().zip(state.side.digest.context);
    let all = state.side.digest.context.iter().sum::<usize>().max(1);
    let mut lines = Vec::new();
    for (name, sum) in sums {
        let tokens = crate::view::status::short((sum / 4) as u64);
        let bar = columns.saturating_sub(20);
        let filled = (bar * sum).div_ceil(all).min(bar);
        lines.push(Line::from(vec![
            Span::styled(format!("{name:<9}"), theme.fg(theme.text)),
            Span::styled(format!("{tokens:>7} "), theme.dim()),
            Span::styled("▪".repeat(filled), theme.fg(theme.accent)),
        ]));
    }
    lines.push(Line::default());
    lines.push(Line::styled(fit(&crate::view::status::usage_text(state), columns), theme.dim()));
    lines
}
