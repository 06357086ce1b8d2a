//! Events as lines of plain text, for headless runs and replays.

use std::collections::HashMap;

use pixir_core::event::{Delivery, PlanItem, StepStatus, ToolResult, TurnStatus, Verdict};
use pixir_core::text::human::next_attempt;
use pixir_core::{Fact, Live};

use crate::remedies;

/// The most lines of a tool's output in the narration.
const MOST_LINES: usize = 12;

/// Follows a Turn entry by entry.
#[derive(Debug, Default)]
pub(crate) struct Narrator {
    /// Tool and target of each call without a result yet.
    calls: HashMap<String, String>,
}

impl Narrator {
    /// The text of an entry, if it has one. A call appears with its result.
    pub(crate) fn entry(&mut self, fact: &Fact) -> Option<String> {
        match fact {
            Fact::UserMessage(it) => {
                let mark = if it.delivery == Delivery::Steer { "»" } else { ">" };
                Some(format!("{mark} {}\n", it.text))
            }
            Fact::UserCommand(it) => {
                self.calls.insert(it.call_id.clone(), it.typed());
                None
            }
            Fact::AssistantMessage(it) if it.partial => {
                Some(format!("{}\n• the answer was cut off here\n", it.text.trim_end()))
            }
            Fact::AssistantMessage(it) => Some(format!("{}\n", it.text.trim_end())),
            Fact::ToolCall(it) => {
                self.calls.insert(
                    it.call_id.clone(),
                    format!("{} {}", it.name, it.about().target.lines().next().unwrap_or_default()),
                );
                None
            }
            Fact::ToolResult(it) => Some(result(&self.calls.remove(&it.call_id).unwrap_or_default(), it)),
            Fact::PermissionDecision(it) if it.verdict == Verdict::Deny => Some(format!("• refused: {}", it.reason)),
            Fact::PlanUpdated(it) => Some(plan(&it.items)),
            fact => fact.headline().map(|it| it.line() + "\n"),
        }
    }

    /// How a Turn ended that did not complete, and why. Headless runs print this as their error instead.
    pub(crate) fn ending(fact: &Fact) -> Option<String> {
        let Fact::TurnEnded(it) = fact else { return None };
        let why = it.error.as_ref().map(|error| format!(": {}; {}", error.message, remedies::of(error)));
        (it.status != TurnStatus::Completed).then(|| format!("• {}{}\n", it.status.name(), why.unwrap_or_default()))
    }
}

fn plan(items: &[PlanItem]) -> String {
    let lines = items.iter().map(|item| {
        let mark = match item.status {
            StepStatus::Completed => "x",
            StepStatus::InProgress => "~",
            StepStatus::Pending => " ",
        };
        format!("  [{mark}] {}", item.step)
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The line that announces a live event, if it has one.
pub(crate) fn live(news: &Live) -> Option<String> {
    match news {
        Live::RetryScheduled { attempt, of, wait_ms, left_ms, reason } => {
            Some(format!("• {reason}; {}", next_attempt(*attempt, *of, *wait_ms, *left_ms)))
        }
        Live::Notice { message, remedy: None, .. } => Some(format!("• {message}")),
        Live::Notice { message, remedy: Some(fix), .. } => Some(format!("• {message}; {}", remedies::word(fix))),
        _ => None,
    }
}

fn result(call: &str, it: &ToolResult) -> String {
    let mut lines: Vec<&str> = it.output.trim_end().lines().collect();
    let footer = lines.pop().unwrap_or_default();
    let more = lines.len().saturating_sub(MOST_LINES);
    let mut told = vec![format!("• {}", call.trim_end())];
    told.extend(lines.iter().take(MOST_LINES).map(|line| format!("  │ {line}")));
    if more > 0 {
        told.push(format!("  │ … {more} more lines"));
    }
    told.push(format!("  └ {footer}\n"));
    told.join("\n")
}
