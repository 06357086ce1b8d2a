//! Agents as words and as a line: who they are, what they do, what they have used.

use std::time::Duration;

use pixir_core::agent::AgentState;
use pixir_core::event::{AgentStatus, Cost, Usage};
use pixir_core::text::human::human_duration;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::figures::{plus_minus, short};
use super::text::{fit, span_width, visible, width};
use crate::theme::Theme;

/// An agent that has done nothing for this long is said to be quiet.
const QUIET: Duration = Duration::from_secs(60);
/// The widest name that is shown whole.
const NAME: usize = 18;

/// The columns of a list of agents.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Columns {
    pub(crate) width: usize,
    name: usize,
    role: usize,
    /// The task stands beside what the agent does.
    has_task: bool,
    /// One of them costs something.
    has_cost: bool,
    /// One of them changed lines.
    has_lines: bool,
}

impl Columns {
    /// Columns for these agents in a list of this width; `indent` is the widest indentation of a name.
    pub(crate) fn new<'a>(agents: impl Iterator<Item = &'a AgentState>, width_: usize, indent: usize) -> Columns {
        let (mut name, mut role, mut has_cost, mut has_lines) = (0, 0, false, false);
        for agent in agents {
            has_cost |= !agent.cost.to_string().is_empty();
            has_lines |= agent.added + agent.removed > 0;
            name = name.max(width(agent.name()));
            // A name such as `explorer-1` says the role already.
            if !agent.name().starts_with(role_of(agent)) {
                role = role.max(width(role_of(agent)));
            }
        }
        let role = if width_ >= 64 { role.min(12) } else { 0 };
        Columns {
            width: width_,
            name: (name + indent).min(NAME),
            role,
            has_task: width_ >= 110,
            has_cost: has_cost && width_ >= 60,
            has_lines: has_lines && width_ >= 72,
        }
    }
}

/// What an agent is. A run of a workflow asks no model itself, so its role says nothing.
fn role_of(agent: &AgentState) -> &str {
    if agent.is_run { "workflow" } else { &agent.role }
}

/// The mark before an agent's name, and its colour.
pub(crate) fn mark(agent: &AgentState, theme: &Theme) -> (&'static str, Style) {
    match agent.status {
        AgentStatus::Waiting if !agent.asks() => ("◌", theme.fg(theme.warning)),
        AgentStatus::Queued => ("○", theme.dim()),
        AgentStatus::Running => ("●", theme.fg(theme.accent)),
        AgentStatus::Waiting => ("?", theme.fg(theme.warning).bold()),
        AgentStatus::Completed => ("✓", theme.fg(theme.success)),
        AgentStatus::Held => ("‖", theme.fg(theme.warning)),
        AgentStatus::Incomplete | AgentStatus::Interrupted | AgentStatus::Detached => ("■", theme.fg(theme.warning)),
        AgentStatus::Failed | AgentStatus::TimedOut => ("✗", theme.fg(theme.error)),
    }
}

/// `● explorer-1  grep "fn lex"                    0:42   18k  $0.05  +41 −9`
pub(crate) fn line(
    agent: &AgentState,
    (usage, cost): (Usage, Cost),
    indent: usize,
    columns: Columns,
    now: Duration,
    theme: &Theme,
) -> Line<'static> {
    let (sign, ink) = mark(agent, theme);
    let is_over = !agent.status.is_open();
    let mut spans = vec![Span::styled(format!("{sign} "), ink)];
    let name = fit(&format!("{}{}", " ".repeat(indent), visible(agent.name())), columns.name);
    spans.push(Span::styled(pad(&name, columns.name), if is_over { theme.dim() } else { theme.fg(theme.text).bold() }));
    if columns.role > 0 {
        spans.push(Span::styled(
            format!("  {}", pad(&fit(&visible(role_of(agent)), columns.role), columns.role)),
            theme.dim(),
        ));
    }
    let right = figures(agent, (usage, cost), columns, now, theme);
    let room = columns.width.saturating_sub(span_width(&spans) + 2 + span_width(&right) + 2);
    let what = visible(&doing(agent, now)).replace('\n', " ");
    let style = match agent.status {
        _ if is_over && agent.waiting_files > 0 => theme.fg(theme.warning),
        AgentStatus::Waiting => theme.fg(theme.warning),
        AgentStatus::Running if is_quiet(agent, now) => theme.fg(theme.warning),
        AgentStatus::Running => theme.fg(theme.text),
        AgentStatus::Queued
        | AgentStatus::Completed
        | AgentStatus::Held
        | AgentStatus::Incomplete
        | AgentStatus::Failed
        | AgentStatus::TimedOut
        | AgentStatus::Interrupted
        | AgentStatus::Detached => theme.dim(),
    };
    spans.push(Span::raw("  "));
    let has_task = columns.has_task && agent.status.is_open() && !agent.doing.is_empty();
    if has_task {
        let task = room * 2 / 5;
        spans.push(Span::styled(pad(&fit(&visible(&agent.task), task), task), theme.dim()));
        spans.push(Span::styled(format!("  {}", fit(&what, room.saturating_sub(task + 2))), style));
    } else {
        spans.push(Span::styled(fit(&what, room), style));
    }
    let gap = columns.width.saturating_sub(span_width(&spans) + span_width(&right));
    spans.push(Span::raw(" ".repeat(gap)));
    spans.extend(right);
    Line::from(spans)
}

/// Elapsed time, tokens, cost and changed lines, in columns of their own.
fn figures(
    agent: &AgentState,
    (usage, cost): (Usage, Cost),
    columns: Columns,
    now: Duration,
    theme: &Theme,
) -> Vec<Span<'static>> {
    let mut spans = vec![Span::styled(format!("{:>5}", elapsed(agent, now)), theme.fg(theme.text))];
    if columns.width >= 48 {
        let tokens = usage.input + usage.output;
        let tokens = if tokens > 0 { short(tokens) } else { String::new() };
        spans.push(Span::styled(format!(" {tokens:>6}"), theme.dim()));
    }
    if columns.has_cost {
        spans.push(Span::styled(format!(" {:>6}", cost.to_string()), theme.dim()));
    }
    if columns.has_lines {
        let (added, removed) = (agent.added, agent.removed);
        let more = plus_minus(added, 0);
        let less = plus_minus(0, removed);
        spans.push(Span::styled(format!(" {more:>5}"), theme.fg(theme.added)));
        spans.push(Span::styled(format!(" {}", pad(&less, 4)), theme.fg(theme.removed)));
    }
    spans
}

fn pad(text: &str, columns: usize) -> String {
    format!("{text}{}", " ".repeat(columns.saturating_sub(width(text))))
}

/// `8 agents · 3 done · 1 asks`
pub(crate) fn summary<'a>(agents: impl Iterator<Item = &'a AgentState>) -> String {
    let (mut all, mut done, mut asks, mut queued, mut waits, mut failed) = (0, 0, 0, 0, 0, 0);
    for agent in agents {
        all += 1;
        match agent.status {
            AgentStatus::Running => {}
            AgentStatus::Queued => queued += 1,
            AgentStatus::Waiting if agent.asks() => asks += 1,
            AgentStatus::Waiting => waits += 1,
            AgentStatus::Completed => done += 1,
            AgentStatus::Held
            | AgentStatus::Incomplete
            | AgentStatus::Failed
            | AgentStatus::TimedOut
            | AgentStatus::Interrupted
            | AgentStatus::Detached => failed += 1,
        }
    }
    let mut words = vec![if all == 1 { "1 agent".to_owned() } else { format!("{all} agents") }];
    let counted = [(done, "done"), (failed, "not done"), (queued, "queued"), (waits, "waiting")];
    words.extend(counted.iter().filter(|(n, _)| *n > 0).map(|(n, word)| format!("{n} {word}")));
    match asks {
        0 => {}
        1 => words.push("1 asks".to_owned()),
        n => words.push(format!("{n} ask")),
    }
    words.join(" · ")
}

/// `reviewer-2 ‹ worker-1`: who asks, and for whom it works. The user's own Session is `main`.
pub(crate) fn named(path: &[String]) -> String {
    if path.is_empty() {
        return "main".to_owned();
    }
    path.iter().rev().map(String::as_str).collect::<Vec<_>>().join(" ‹ ")
}

/// `main › worker-1`: the way down to an agent.
pub(crate) fn breadcrumb(path: &[String]) -> String {
    std::iter::once("main").chain(path.iter().map(String::as_str)).collect::<Vec<_>>().join(" › ")
}

/// One word for a status.
pub(crate) fn word(status: AgentStatus) -> &'static str {
    match status {
        AgentStatus::Queued => "queued",
        AgentStatus::Running => "running",
        AgentStatus::Waiting => "asks",
        AgentStatus::Completed => "done",
        AgentStatus::Held => "held",
        AgentStatus::Incomplete => "unfinished",
        AgentStatus::Failed => "failed",
        AgentStatus::TimedOut => "timed out",
        AgentStatus::Interrupted => "stopped",
        AgentStatus::Detached => "cut off",
    }
}

/// One word for what an agent does now, or how it ended.
pub(crate) fn state_word(agent: &AgentState) -> &'static str {
    if agent.status == AgentStatus::Waiting && !agent.asks() { "waits" } else { word(agent.status) }
}

/// What an agent does now, or how it ended.
pub(crate) fn doing(agent: &AgentState, now: Duration) -> String {
    match agent.status {
        AgentStatus::Queued => "waits for a free place".to_owned(),
        AgentStatus::Running => {
            let quiet = since(agent.active.as_millisecond(), now);
            let what = if agent.doing.is_empty() { &agent.task } else { &agent.doing };
            if quiet >= QUIET {
                format!("quiet for {} · {what}", human_duration(Duration::from_secs(quiet.as_secs())))
            } else {
                what.clone()
            }
        }
        AgentStatus::Waiting if !agent.asks() => agent.doing.clone(),
        AgentStatus::Waiting if agent.doing.is_empty() => "asks you".to_owned(),
        AgentStatus::Waiting => format!("asks: {}", agent.doing),
        AgentStatus::Completed
        | AgentStatus::Held
        | AgentStatus::Incomplete
        | AgentStatus::Failed
        | AgentStatus::TimedOut
        | AgentStatus::Interrupted
        | AgentStatus::Detached => {
            let calls = match agent.calls {
                0 => String::new(),
                1 => " · 1 call".to_owned(),
                n => format!(" · {n} calls"),
            };
            let files = match agent.waiting_files {
                0 => String::new(),
                1 => " · 1 file waits".to_owned(),
                n => format!(" · {n} files wait"),
            };
            format!("{}{files}{calls} · {}", word(agent.status), agent.task)
        }
    }
}

/// An agent is silent for longer than usual.
pub(crate) fn is_quiet(agent: &AgentState, now: Duration) -> bool {
    agent.status == AgentStatus::Running && since(agent.active.as_millisecond(), now) >= QUIET
}

/// `0:42`: how long its last Turn took, or takes so far.
pub(crate) fn elapsed(agent: &AgentState, now: Duration) -> String {
    let took = match agent.took_ms {
        Some(took) if !agent.status.is_open() => Duration::from_millis(took),
        _ => since(agent.since.as_millisecond(), now),
    };
    clock(took)
}

/// `0:42`, `1:02:03`
pub(crate) fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours > 0 { format!("{hours}:{minutes:02}:{seconds:02}") } else { format!("{minutes}:{seconds:02}") }
}

/// The time since a moment in milliseconds since 1970.
fn since(then: i64, now: Duration) -> Duration {
    let then = Duration::from_millis(u64::try_from(then).unwrap_or(0));
    now.saturating_sub(then)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Broken build: an agent that has said nothing for a minute looks as if it were busy.
    #[test]
    fn an_agent_that_has_done_nothing_for_a_minute_is_said_to_be_quiet() {
        let began = "2026-11-26T10:00:00Z";
        let state = |status: &str| -> AgentState {
            serde_json::from_value(json!({
                "path": ["scout"], "session_id": "20261126T100000-0a1b2c", "role": "explorer", "task": "look around",
                "status": status, "waiting_for": (status == "waiting").then_some("user"), "doing": "read a.txt", "since": began, "active": began,
                "took_ms": null, "calls": 1, "usage": { "input": 0, "output": 0, "cached": 0 }, "cost": { "usd": 0.0 },
                "added": 0, "removed": 0, "queued": [], "waiting_files": 0, "is_run": false,
            }))
            .expect("a state")
        };
        let began = Duration::from_millis(state("running").active.as_millisecond().unsigned_abs());
        let said = |status: &str, seconds: u64| doing(&state(status), began + Duration::from_secs(seconds));
        assert_eq!(said("running", 59), "read a.txt");
        assert_eq!(said("running", 60), "quiet for 1m00s · read a.txt");
        assert_eq!(said("waiting", 600), "asks: read a.txt");
        assert!(is_quiet(&state("running"), began + QUIET) && !is_quiet(&state("completed"), began + QUIET));
    }
}
