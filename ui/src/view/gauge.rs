//! The gauge: how full the model's window is, and what the Session has cost.

use pixir_core::event::JobStatus;
use pixir_core::text::human::human_count;
use ratatui::style::Color;
use ratatui::text::Span;

use crate::render::text::span_width;
use crate::state::State;

/// The cells of the bar.
const BAR: u64 = 10;

/// `▰▰▰▱▱▱▱▱▱▱ 31% of 200k · $0.12 · turn 7 · ↑12.4k ↓1.2k`: the parts that fit, the first ones first.
pub(super) fn spans(state: &State, columns: usize) -> Vec<Span<'static>> {
    // The window of the demo's script means nothing to a user who has no model yet.
    if state.shows_welcome() && state.offers_connection() {
        return Vec::new();
    }
    let theme = &state.look.theme;
    let mut spans: Vec<Span<'static>> = Vec::new();
    let mut add = |part: Vec<Span<'static>>| {
        let gap = if spans.is_empty() { 0 } else { 3 };
        if span_width(&spans) + gap + span_width(&part) > columns {
            return false;
        }
        if gap > 0 {
            spans.push(Span::styled(" · ", theme.fg(theme.border)));
        }
        spans.extend(part);
        true
    };
    let (number, full) = window(state);
    let colour = match full {
        Some(95..) => theme.error,
        Some(80..) => theme.warning,
        Some(_) | None => theme.accent,
    };
    let number = Span::styled(number, theme.fg(if colour == theme.accent { theme.dim } else { colour }));
    let with_bar = full.map(|full| {
        let mut bar = bar(full, colour, theme.border);
        bar.push(Span::raw(" "));
        bar.push(number.clone());
        bar
    });
    if !with_bar.is_some_and(&mut add) && !number.content.is_empty() {
        add(vec![number]);
    }
    if let Some(warning) = price_step(state) {
        add(vec![Span::styled(warning, theme.fg(theme.warning))]);
    }
    let dim = |text: String| vec![Span::styled(text, theme.dim())];
    let jobs = state.session.jobs.iter().filter(|job| job.status == JobStatus::Running).count();
    match jobs {
        0 => {}
        1 => drop(add(dim("1 job".to_owned()))),
        n => drop(add(dim(format!("{n} jobs")))),
    }
    let agents = state.session.agents.running();
    match agents {
        0 => {}
        1 => drop(add(dim("1 agent".to_owned()))),
        n => drop(add(dim(format!("{n} agents")))),
    }
    let cost = cost(state);
    if !cost.is_empty() {
        add(dim(cost));
    }
    if state.history.turns > 0 {
        add(dim(format!("turn {}", state.history.turns)));
    }
    let traffic = traffic(state);
    if !traffic.is_empty() {
        add(dim(traffic));
    }
    spans
}

/// From this part of the length on at which requests cost more, the user is warned, in percent.
const WARNED_AT: u64 = 85;

/// Warns of requests that cost more for their length, from a little before on.
fn price_step(state: &State) -> Option<String> {
    let step = state.session.price_step.filter(|_| super::header::is_connected(state))?;
    let used = used(state);
    let times = if step.input.fract() == 0.0 { format!("{:.0}", step.input) } else { format!("{:.1}", step.input) };
    let above = human_count(step.above);
    match used * 100 / step.above.max(1) {
        ..WARNED_AT => None,
        _ if used <= step.above => Some(format!("{times}× the price above {above}")),
        _ => Some(format!("{times}× the price now, above {above}")),
    }
}

/// The tokens of the next request, without the message that is being written.
fn used(state: &State) -> u64 {
    state.history.last_input.unwrap_or_else(|| state.history.estimated_tokens())
}

/// How full the window is, in words and in percent.
fn window(state: &State) -> (String, Option<u64>) {
    let history = &state.history;
    // Without a model there is no window that could fill.
    if !super::header::is_connected(state) {
        return (String::new(), None);
    }
    let used = used(state);
    let mark = if history.last_input.is_some() { "" } else { "~" };
    match state.session.window {
        Some(window) => {
            let full = used * 100 / window.max(1);
            (format!("{mark}{full} % of {}", human_count(window)), Some(full))
        }
        None if used >= 100 => (format!("{mark}{} tokens", human_count(used)), None),
        None => (String::new(), None),
    }
}

fn bar(full: u64, colour: Color, rest: Color) -> Vec<Span<'static>> {
    // A window that is not empty shows it.
    let filled = usize::try_from((full * BAR).div_ceil(100).min(BAR)).unwrap_or(0);
    let all = usize::try_from(BAR).unwrap_or(0);
    vec![
        Span::styled("▰".repeat(filled), ratatui::style::Style::new().fg(colour)),
        Span::styled("▱".repeat(all - filled), ratatui::style::Style::new().fg(rest)),
    ]
}

/// The cost of the Session on the screen and of all agents below it.
fn cost(state: &State) -> String {
    let mut cost = state.history.cost;
    cost += state.session.agents.total().1;
    cost.to_string()
}

/// `↑12.4k (11k cached) ↓1.2k`
fn traffic(state: &State) -> String {
    let mut usage = state.history.usage;
    usage += state.session.agents.total().0;
    if usage.input == 0 {
        return String::new();
    }
    let cached = if usage.cached > 0 { format!(" ({} cached)", human_count(usage.cached)) } else { String::new() };
    format!("↑{}{cached} ↓{}", human_count(usage.input), human_count(usage.output))
}

/// All of it as text, for the side panel.
pub(super) fn text(state: &State) -> String {
    let cost = cost(state);
    let parts = [window(state).0, price_step(state).unwrap_or_default(), traffic(state), cost];
    parts.into_iter().filter(|it| !it.is_empty()).collect::<Vec<_>>().join(" · ")
}
