//! The dock above the composer: the approval, queued messages, calls that take long, and agents.

use std::time::Duration;

use pixir_core::agent::AgentState;
use pixir_core::event::{Cost, Usage};
use pixir_core::text::human::human_duration;
use ratatui::text::{Line, Span};

use super::approval;
use super::status::whole;
use crate::input::action::Action;
use crate::render::agents::{self, Columns, summary};
use crate::render::figures::{plus_minus, short};
use crate::render::text::{fit, visible, width};
use crate::state::State;
use crate::transcript::{Cell, Tool, rows};

/// A call that runs for longer than this appears in the dock, unless its card is on the screen.
const SLOW: Duration = Duration::from_secs(2);
const MAX_RUNNING: usize = 4;
/// More agents than these are folded to one line.
const MAX_AGENTS: usize = 4;

/// The lines of the dock, and whether the whole preview of the approval is among them. `most` rows are free.
pub(super) fn lines(state: &mut State, screen: u16, most: usize) -> (Vec<Line<'static>>, bool) {
    let columns = usize::from(screen.saturating_sub(2));
    let card = if state.shows_approval() { approval::lines(state, columns, most) } else { None };
    let (mut lines, shows_whole_preview) = card.unwrap_or_default();
    let theme = &state.look.theme;
    let take_back = state.keys.map.key_of(Action::TakeBack).unwrap_or_default();
    let queued = state
        .session
        .queue
        .steer
        .iter()
        .map(|t| ("» now  ", t))
        .chain(state.session.queue.follow_up.iter().map(|t| ("▸ next ", t)));
    for (mark, text) in queued.take(4) {
        let start: String = text.chars().take(columns).map(|c| if c == '\n' { ' ' } else { c }).collect();
        lines.push(Line::from(vec![
            Span::styled(format!(" {mark}"), theme.fg(theme.accent)),
            Span::styled(fit(&visible(&start), columns.saturating_sub(24)), theme.dim()),
            Span::styled(format!("  {take_back}"), theme.dim()),
        ]));
    }
    // In a replay no call runs.
    if state.approvals.is_empty() && state.replay.is_none() {
        lines.extend(running_lines(state, columns));
    }
    if state.replay.is_none() && !state.look.screen_reader {
        let room = most.saturating_sub(lines.len());
        lines.extend(agent_lines(state, columns, room));
    }
    (lines, shows_whole_preview)
}

/// A line for each agent that runs, or that ended in this Turn; more than fit are folded to one.
fn agent_lines(state: &State, columns: usize, room: usize) -> Vec<Line<'static>> {
    let (theme, now) = (&state.look.theme, state.now.wall);
    let agents: Vec<&AgentState> = state.session.agents.current().collect();
    if agents.is_empty() || room == 0 {
        return Vec::new();
    }
    let inside = columns.saturating_sub(1);
    if agents.len() <= MAX_AGENTS.min(room) {
        let layout = Columns::new(agents.iter().copied(), inside, 0);
        let line = |it: &&AgentState| {
            let mut line = agents::line(it, state.session.agents.used(it), 0, layout, now, theme);
            line.spans.insert(0, Span::raw(" "));
            line
        };
        return agents.iter().map(line).collect();
    }
    let (mut usage, mut cost, mut lines) = (Usage::default(), Cost::default(), (0, 0));
    for agent in &agents {
        let (tokens, price) = state.session.agents.used(agent);
        usage += tokens;
        cost += price;
        lines = (lines.0 + agent.added, lines.1 + agent.removed);
    }
    let asks = agents.iter().any(|it| it.asks());
    let text = summary(agents.iter().copied());
    let key = state.keys.map.hints(&[(Action::OpenAgents, "shows them")]);
    let since = agents.iter().filter(|it| it.status.is_open()).min_by_key(|it| it.since);
    let mut right = since.map_or_else(String::new, |it| agents::elapsed(it, now));
    let tokens = usage.input + usage.output;
    if tokens > 0 {
        right.push_str(&format!("  {}", short(tokens)));
    }
    let cost = cost.to_string();
    if !cost.is_empty() {
        right.push_str(&format!("  {cost}"));
    }
    if lines != (0, 0) {
        right.push_str(&format!("  {}", plus_minus(lines.0, lines.1)));
    }
    let mark = if asks {
        Span::styled(" ? ", theme.fg(theme.warning).bold())
    } else {
        Span::styled(" ● ", theme.fg(theme.accent))
    };
    let style = if asks { theme.fg(theme.warning) } else { theme.fg(theme.text) };
    let hint = if key.is_empty() { String::new() } else { format!("  {key}") };
    let left = fit(&text, inside.saturating_sub(3));
    let hint = if width(&left) + width(&hint) + width(&right) + 4 <= inside { hint } else { String::new() };
    let gap = (inside + 1).saturating_sub(3 + width(&left) + width(&hint) + width(&right));
    vec![Line::from(vec![
        mark,
        Span::styled(left, style),
        Span::styled(hint, theme.dim()),
        Span::raw(" ".repeat(gap)),
        Span::styled(right, theme.dim()),
    ])]
}

/// Slow calls, with the time that they have taken so far.
fn running_lines(state: &State, columns: usize) -> Vec<Line<'static>> {
    // A visible card shows the time itself.
    let is_visible = |tool: &Tool| {
        let is_it =
            |at| matches!(state.transcript.cell(at), Some(Cell::Tool(it)) if it.call().call_id == tool.call().call_id);
        !state.wants_whole_screen() || state.viewport.shown().iter().any(|it| is_it(it.cell))
    };
    let slow = state.transcript.running().into_iter().filter(|tool| !is_visible(tool)).filter_map(|tool| {
        let began = Duration::from_millis(u64::try_from(tool.began()).ok()?);
        let took = state.now.wall.checked_sub(began).filter(|took| *took >= SLOW)?;
        let text = fit(&visible(&rows::target(tool)), columns.saturating_sub(24));
        Some(Line::from(vec![
            Span::styled(" ● ", state.look.theme.fg(state.look.theme.accent)),
            Span::styled(format!("{} ", rows::verb(tool)), state.look.theme.fg(state.look.theme.tool)),
            Span::styled(text, state.look.theme.dim()),
            Span::styled(format!("  {}", human_duration(whole(took))), state.look.theme.fg(state.look.theme.text)),
        ]))
    });
    slow.take(MAX_RUNNING).collect()
}
