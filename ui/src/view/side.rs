//! The side panel, drawn: the plan, changed files, the turns, the agents, what fills the context.

use std::ops::Range;

use pixir_core::agent::AgentState;
use pixir_core::event::PlanItem;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::gauge;
use crate::overlay::diff::file_line;
use crate::render::agents::{self, Columns};
use crate::render::amount::{bar, filled, share};
use crate::render::context::RenderContext;
use crate::render::figures::short;
use crate::render::text::{fit, lines_of};
use crate::state::side::{SOURCES, TABS, Tab};
use crate::state::{Focus, State};
use crate::terminal::canvas::{Canvas, RegionState};
use crate::transcript::rows::plan_item;

/// Draws the panel with its left border into `area`.
pub(crate) fn draw(state: &mut State, canvas: &mut Canvas, area: Rect) {
    state.side.digest.read(&state.history);
    let theme = &state.look.theme;
    let focused = state.focus == Focus::Side;
    let edge = theme.fg(if focused { theme.accent } else { theme.border });
    for y in area.y..area.bottom() {
        canvas.line(Line::styled("│", edge), Rect { y, width: 1, height: 1, ..area });
    }
    let inner = Rect { x: area.x + 2, width: area.width.saturating_sub(3), ..area };
    let shown = state.side.tab(&state.history);
    let mut tabs: Vec<Span<'_>> = Vec::new();
    let names: usize = TABS.iter().map(|(_, name)| name.len()).sum();
    let gap = if names + 2 * (TABS.len() - 1) <= usize::from(inner.width) { "  " } else { " " };
    for (tab, name) in TABS {
        let style = if tab == shown { theme.bold().fg(theme.accent) } else { theme.dim() };
        tabs.push(Span::styled(name, style));
        tabs.push(Span::raw(gap));
    }
    canvas.region("tabs", Rect { height: 1, ..inner }, || format!("{shown:?}"));
    canvas.region_state(RegionState { focused, selected: false });
    canvas.line(Line::from(tabs), Rect { height: 1, ..inner });
    let columns = usize::from(inner.width);
    let body = Rect { y: inner.y + 2, height: inner.height.saturating_sub(2), ..inner };
    let height = usize::from(body.height);
    let mut lines = match shown {
        Tab::Plan => plan_lines(state, columns),
        Tab::Changes => {
            state.side.digest.read_files();
            let rows = state.side.rows(state.side.digest.files().len(), height);
            change_lines(state, columns, rows)
        }
        Tab::Tree => {
            state.side.digest.read_tree(&state.history);
            let (head, of) = state.side.digest.tree().map_or((0, 0), |tree| (tree.head_row(), tree.len()));
            let rows = state.side.rows_around(head, of, height);
            tree_lines(state, columns, rows)
        }
        Tab::Agents => {
            let rows = state.side.rows(state.session.agents.below().count(), height);
            agent_lines(state, columns, rows)
        }
        Tab::Context => context_lines(state, columns),
    };
    // The long tabs made only their visible lines.
    if matches!(shown, Tab::Plan | Tab::Context) {
        lines = lines.drain(state.side.rows(lines.len(), height)).collect();
    }
    let used = u16::try_from(lines.len()).unwrap_or(u16::MAX);
    for (y, line) in (body.y..body.bottom()).zip(lines) {
        canvas.line(line, Rect { y, height: 1, ..body });
    }
    // A plan is short: the rows below it show what it has come to.
    if shown == Tab::Plan && !state.history.plan.is_empty() {
        let below = Rect { y: body.y.saturating_add(used + 1), height: body.height.saturating_sub(used + 1), ..body };
        draw_changes_below(state, canvas, below);
    }
}

/// The fewest free rows below the plan in which the changed files stand too.
const FREE: u16 = 5;

fn draw_changes_below(state: &mut State, canvas: &mut Canvas, area: Rect) {
    state.side.digest.read_files();
    let count = state.side.digest.files().len();
    if area.height < FREE || count == 0 {
        return;
    }
    let columns = usize::from(area.width);
    let room = usize::from(area.height) - 2;
    // What does not fit is counted in the last row.
    let rows = if count > room { room - 1 } else { count };
    let mut lines = vec![Line::styled("Changes", state.look.theme.bold()), Line::default()];
    lines.extend(change_lines(state, columns, 0..rows));
    if count > rows {
        lines.extend(empty(&format!("… {} more files", count - rows), state, columns));
    }
    for (y, line) in (area.y..area.bottom()).zip(lines) {
        canvas.line(line, Rect { y, height: 1, ..area });
    }
}

fn empty(text: &str, state: &State, columns: usize) -> Vec<Line<'static>> {
    vec![Line::styled(fit(text, columns), state.look.theme.dim())]
}

fn plan_lines(state: &State, columns: usize) -> Vec<Line<'static>> {
    let items: &[PlanItem] = &state.history.plan;
    if items.is_empty() {
        return empty("no plan yet", state, columns);
    }
    let context = RenderContext::new(&state.look.theme, &state.look.highlighter, columns);
    items.iter().flat_map(|item| lines_of(plan_item(item, &context))).collect()
}

fn change_lines(state: &State, columns: usize, rows: Range<usize>) -> Vec<Line<'static>> {
    let theme = &state.look.theme;
    let files = state.side.digest.files();
    if files.is_empty() {
        return empty("no file was changed", state, columns);
    }
    // Below the plan the files are only shown.
    let has_choice = state.focus == Focus::Side && state.side.tab(&state.history) == Tab::Changes;
    let lines = files.iter().enumerate().skip(rows.start).take(rows.len()).map(|(at, file)| {
        let line = file_line(file, columns, theme);
        let is_chosen = has_choice && at == state.side.chosen();
        if is_chosen { line.patch_style(theme.selected()) } else { line }
    });
    lines.collect()
}

fn tree_lines(state: &State, columns: usize, rows: Range<usize>) -> Vec<Line<'static>> {
    match state.side.digest.tree() {
        Some(tree) if !tree.is_empty() => {
            let now = i64::try_from(state.now.wall.as_secs()).unwrap_or(i64::MAX);
            rows.map(|row| tree.line(row, now, columns, &state.look.theme)).collect()
        }
        Some(_) | None => empty("no turns yet", state, columns),
    }
}

/// The agents below the Session on the screen, oldest first.
fn agent_lines(state: &State, columns: usize, rows: Range<usize>) -> Vec<Line<'static>> {
    let agents: Vec<&AgentState> = state.session.agents.below().skip(rows.start).take(rows.len()).collect();
    if agents.is_empty() {
        return empty("no agents yet", state, columns);
    }
    let above = state.session.agents.at.len() + 1;
    let indent = |it: &AgentState| 2 * it.path.len().saturating_sub(above);
    let widest = agents.iter().map(|it| indent(it)).max().unwrap_or_default();
    let layout = Columns::new(agents.iter().copied(), columns, widest);
    let line = |it: &&AgentState| {
        let used = state.session.agents.used(it);
        agents::line(it, used, indent(it), layout, state.now.wall, &state.look.theme)
    };
    agents.iter().map(line).collect()
}

/// What fills the window, kind by kind, on the scale of the window. Until the Session has listed it, and in a replay, the
/// Entries are estimated.
fn context_lines(state: &State, columns: usize) -> Vec<Line<'static>> {
    let theme = &state.look.theme;
    let mut lines = Vec::new();
    let rows: Vec<(&str, u64)> = match &state.session.context {
        Some(report) => {
            let mut sums: Vec<(&str, u64)> = Vec::new();
            for part in &report.parts {
                let name = part.kind.name();
                match sums.iter_mut().find(|(known, _)| *known == name) {
                    Some((_, sum)) => *sum += part.tokens,
                    None => sums.push((name, part.tokens)),
                }
            }
            let window = report.window.unwrap_or(report.tokens);
            let mut head = vec![Span::styled(format!("{} of {}  ", short(report.tokens), short(window)), theme.bold())];
            head.push(Span::styled(share(report.tokens, window), theme.dim()));
            lines.push(Line::from(head));
            lines.push(Line::from(bar(report.tokens, window, columns, theme).to_vec()));
            lines.push(Line::default());
            sums
        }
        None => {
            let sums = SOURCES.into_iter().zip(state.side.digest.context);
            sums.map(|(name, bytes)| (name, (bytes / 4) as u64)).collect()
        }
    };
    let largest = rows.iter().map(|(_, tokens)| *tokens).max().unwrap_or(1);
    for (name, tokens) in rows {
        let cells = columns.saturating_sub(24);
        lines.push(Line::from(vec![
            Span::styled(format!("{name:<15}"), theme.fg(theme.text)),
            Span::styled(format!("{:>7} ", short(tokens)), theme.dim()),
            Span::styled("▪".repeat(filled(tokens, largest, cells)), theme.fg(theme.accent)),
        ]));
    }
    lines.push(Line::default());
    lines.push(Line::styled(fit(&gauge::text(state), columns), theme.dim()));
    lines
}
