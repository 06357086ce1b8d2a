//! Events as lines of plain text, for headless runs and replays.

use std::collections::HashMap;

use pixir_core::event::{
    AgentEvent, Delivery, PlanItem, RestoreReason, StepOutcome, StepStatus, Telling, ToolResult, TurnStatus, Verdict,
    WorkflowEvent,
};
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
            Fact::HistoryCompaction(it) => {
                Some(format!("• compacted: {} → {} tokens\n", it.tokens_before, it.tokens_after))
            }
            Fact::SkillActivation(it) => Some(format!("• skill {}\n", it.name)),
            Fact::BranchSummary(_) => Some("• added a summary of the abandoned branch\n".into()),
            Fact::FilesRestored(it) => {
                let paths: Vec<&str> = it.changes.iter().map(|change| change.path.as_str()).collect();
                let left: Vec<&str> = it.left.iter().map(|left| left.path.as_str()).collect();
                Some(match (it.reason, it.of_turn) {
                    (RestoreReason::Undo, Some(turn)) => format!("• turn {turn} was undone: {}\n", paths.join(", ")),
                    (RestoreReason::Redo, Some(turn)) => format!("• turn {turn} was redone: {}\n", paths.join(", ")),
                    (RestoreReason::Hunk, _) => format!("• a hunk was reverted: {}\n", paths.join(", ")),
                    (RestoreReason::Stayed, _) => format!("• files stayed as they were: {}\n", left.join(", ")),
                    _ => format!("• files were restored: {}\n", paths.join(", ")),
                })
            }
            Fact::AgentEvent(it) => agent(it),
            Fact::WorkflowEvent(it) => Some(format!("{}\n", workflow(it))),
            Fact::LogRepaired(it) => Some(format!("• a damaged line was here: {}\n", it.reason)),
            Fact::SessionStarted(_)
            | Fact::SettingsChanged(_)
            | Fact::Reasoning(_)
            | Fact::ContextChanged(_)
            | Fact::PermissionDecision(_)
            | Fact::ProviderUsage(_)
            | Fact::SessionFork(_)
            | Fact::HunkReviewed(_)
            | Fact::HeadMoved(_)
            | Fact::BranchRemoved(_)
            | Fact::Label(_)
            | Fact::MemoryFact(_)
            | Fact::ToolsOffered(_)
            | Fact::SkillIndex(_)
            | Fact::TurnEnded(_)
            | Fact::Unknown { .. } => None,
        }
    }

    /// How a Turn ended that did not complete, and why. Headless runs print this as their error instead.
    pub(crate) fn ending(fact: &Fact) -> Option<String> {
        let Fact::TurnEnded(it) = fact else { return None };
        let why = it.error.as_ref().map(|error| format!(": {}; {}", error.message, remedies::of(error)));
        (it.status != TurnStatus::Completed).then(|| format!("• {}{}\n", it.status.name(), why.unwrap_or_default()))
    }
}

/// The line about an agent.
fn agent(event: &AgentEvent) -> Option<String> {
    Some(match event {
        AgentEvent::Spawned(it) => {
            format!("• agent {} ({}): {}\n", it.name, it.role, it.task.lines().next().unwrap_or_default())
        }
        AgentEvent::Told { name, how: Telling::Stop, .. } => format!("• agent {name} is told to stop\n"),
        AgentEvent::Told { name, text, .. } => {
            format!("• agent {name} is told: {}\n", text.lines().next().unwrap_or_default())
        }
        AgentEvent::Ended(it) => format!("• agent {}: {}\n", it.name, it.status.name()),
        AgentEvent::Resumed { name } => format!("• agent {name} goes on\n"),
        AgentEvent::Adopted(it) => format!("• files of {} in the workspace: {}\n", it.name, it.changes.len()),
        // The line of its end stands above.
        AgentEvent::Changed { .. } | AgentEvent::Reported { .. } | AgentEvent::Adopting(_) => return None,
    })
}

/// The line about an event of a run.
pub(crate) fn workflow(event: &WorkflowEvent) -> String {
    match event {
        WorkflowEvent::Planned(it) => format!("• workflow {}", it.name),
        WorkflowEvent::Resumed(_) => "• the workflow goes on".to_owned(),
        WorkflowEvent::StepStarted(it) => format!("▸ {}", it.id),
        WorkflowEvent::StepEnded(it) => {
            let why = it.error.as_ref().map_or(String::new(), |error| format!(": {}", error.message));
            format!("{} {} {}{why}", mark(it.status), it.id, it.status.name())
        }
        WorkflowEvent::GateAnswered { id, choice, .. } => format!("• {id}: {choice}"),
        WorkflowEvent::Held(it) => {
            format!("{} {} {} by {}: {}", mark(it.status), it.id, it.status.name(), it.by, it.why)
        }
    }
}

fn mark(status: StepOutcome) -> &'static str {
    match status {
        StepOutcome::Completed => "✓",
        StepOutcome::Skipped => "–",
        StepOutcome::Waiting => "?",
        StepOutcome::Held => "‖",
        StepOutcome::Failed | StepOutcome::TimedOut | StepOutcome::Interrupted | StepOutcome::Incomplete => "✗",
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
        Live::TextDelta { .. }
        | Live::ReasoningDelta { .. }
        | Live::SummaryDelta { .. }
        | Live::ToolCallDelta { .. }
        | Live::ToolOutputDelta { .. }
        | Live::Status { .. }
        | Live::CallPrepared { .. }
        | Live::ApprovalRequested(_)
        | Live::FormOpened(_)
        | Live::McpChanged { .. }
        | Live::RulesListed { .. }
        | Live::TrustAsked(_)
        | Live::AgentChanged(_)
        | Live::AnswerTaken { .. }
        | Live::JobsChanged { .. }
        | Live::QueueChanged { .. }
        | Live::QueueLeft { .. }
        | Live::TurnWaits { .. }
        | Live::CompactionPreviewed(_)
        | Live::ContextListed(_)
        | Live::RestorePreviewed(_)
        | Live::SessionForked { .. }
        | Live::Refused(_) => None,
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
