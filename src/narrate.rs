//! Events as lines of plain text, for those who follow a Turn without a screen.

use pixir_core::event::{Delivery, Fact, Live, StepStatus, ToolResult, Verdict};

/// The most lines of a tool's output that are told.
const MOST_LINES: usize = 12;

/// What is told of an entry, if anything.
pub(crate) fn entry(fact: &Fact) -> Option<String> {
    match fact {
        Fact::UserMessage(it) => {
            let mark = if it.delivery == Delivery::Steer { "»" } else { ">" };
            Some(format!("{mark} {}\n", it.text))
        }
        Fact::AssistantMessage(it) => Some(format!("{}\n", it.text.trim_end())),
        Fact::ToolCall(it) => Some(format!("• {} {}", it.name, argument(&it.args))),
        Fact::ToolResult(it) => Some(result(it)),
        Fact::PermissionDecision(it) if it.verdict == Verdict::Deny => Some(format!("  refused: {}", it.reason)),
        Fact::PlanUpdated(it) => {
            let lines = it.items.iter().map(|item| {
                let mark = match item.status {
                    StepStatus::Completed => "x",
                    StepStatus::InProgress => "~",
                    StepStatus::Pending => " ",
                };
                format!("  [{mark}] {}", item.step)
            });
            Some(lines.collect::<Vec<_>>().join("\n"))
        }
        Fact::HistoryCompaction(it) => Some(format!("• compacted: {} → {} tokens", it.tokens_before, it.tokens_after)),
        Fact::SkillActivation(it) => Some(format!("• skill {}", it.name)),
        _ => None,
    }
}

/// What is told of news, if anything.
pub(crate) fn live(news: &Live) -> Option<String> {
    match news {
        Live::RetryScheduled { attempt, of, wait_ms, reason } => {
            Some(format!("• {reason}; try {attempt} of {of} in {:.1} s", *wait_ms as f64 / 1000.0))
        }
        Live::Notice { message, .. } => Some(format!("• {message}")),
        _ => None,
    }
}

/// The argument that says most.
pub(crate) fn argument(args: &serde_json::Value) -> String {
    let key = ["command", "path", "pattern"].into_iter().find_map(|key| args[key].as_str());
    key.unwrap_or_default().lines().next().unwrap_or_default().to_owned()
}

fn result(it: &ToolResult) -> String {
    let mut lines: Vec<&str> = it.output.trim_end().lines().collect();
    let footer = lines.pop().unwrap_or_default();
    let more = lines.len().saturating_sub(MOST_LINES);
    let mut told: Vec<String> = lines.iter().take(MOST_LINES).map(|line| format!("  │ {line}")).collect();
    if more > 0 {
        told.push(format!("  │ … {more} more lines"));
    }
    told.push(format!("  └ {footer}\n"));
    told.join("\n")
}
