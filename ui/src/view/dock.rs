//! The dock above the composer: the approval, queued messages, and calls that take long.

use std::time::Duration;

use pixir_core::text::human::human_duration;
use ratatui::text::{Line, Span};

use super::approval;
use super::status::whole;
use crate::input::action::Action;
use crate::render::text::{fit, visible};
use crate::state::State;
use crate::transcript::{Cell, Tool, rows};

/// A call that runs for longer than this appears in the dock, unless its card is on the screen.
const SLOW: Duration = Duration::from_secs(2);
const MAX_RUNNING: usize = 4;

/// The lines of the dock, and whether the whole preview of the approval is among them. `most` rows are free.
pub(super) fn lines(state: &mut State, width: u16, most: usize) -> (Vec<Line<'static>>, bool) {
    let columns = usize::from(width.saturating_sub(2));
    let (mut lines, shows_whole_preview) = approval::lines(state, columns, most).unwrap_or_default();
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
    (lines, shows_whole_preview)
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
            Span::styled(format!("{} ", tool.call().name), state.look.theme.fg(state.look.theme.tool)),
            Span::styled(text, state.look.theme.dim()),
            Span::styled(format!("  {}", human_duration(whole(took))), state.look.theme.fg(state.look.theme.text)),
        ]))
    });
    slow.take(MAX_RUNNING).collect()
}
