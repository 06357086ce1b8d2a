//! What slash commands show, as text for the user.

use jiff::Timestamp;
use pixir_core::agent::AgentState;
use pixir_core::event::{ContextReport, JobState, JobStatus, PlanItem, StepStatus};
use pixir_core::history::History;
use pixir_core::rule::SavedRule;
use pixir_core::servers::ServerState;
use pixir_core::text::clean::clean;
use pixir_core::trust::Contributions;
use pixir_core::{Event, Live, tree as branches};

use crate::commands;

/// The parts of the window that are named one by one; the rest is one line.
const MOST_PARTS: usize = 20;

/// What the events of an Input show the user.
pub(in crate::acp) fn shown(events: &[Event]) -> String {
    let text = events.iter().find_map(|event| match event.live() {
        Some(Live::ContextListed(it)) => Some(window(it)),
        Some(Live::JobsChanged { jobs }) => Some(list_of_jobs(jobs)),
        Some(Live::RulesListed { rules, warning }) => Some(list_of_rules(rules, warning.as_deref())),
        Some(Live::McpChanged { servers }) => Some(list_of_servers(servers)),
        _ => None,
    });
    text.unwrap_or_else(|| "There is nothing to show.".to_owned())
}

/// Lines that an editor shows as they are.
fn block(lines: &[String]) -> String {
    let text = lines.join("\n");
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}\n{}\n{fence}\n", clean(&text))
}

fn window(it: &ContextReport) -> String {
    let of = it.window.map_or_else(String::new, |window| format!(" of {window}"));
    let mut text = format!("{}{of} tokens are in use.\n\n", it.tokens);
    let mut parts: Vec<_> = it.parts.iter().collect();
    parts.sort_by_key(|part| std::cmp::Reverse(part.tokens));
    for part in parts.iter().take(MOST_PARTS) {
        text.push_str(&format!("- {} {}: {}\n", part.kind.name(), clean(&part.title), part.tokens));
    }
    let rest = &parts[parts.len().min(MOST_PARTS)..];
    if !rest.is_empty() {
        let tokens: u64 = rest.iter().map(|part| part.tokens).sum();
        text.push_str(&format!("- {} smaller parts: {tokens}\n", rest.len()));
    }
    text
}

fn list_of_jobs(jobs: &[JobState]) -> String {
    if jobs.is_empty() {
        return "There are no background jobs.".to_owned();
    }
    let line = |job: &JobState| {
        let status = match job.status {
            JobStatus::Running => "runs".to_owned(),
            JobStatus::Ended { exit_code } => format!("ended with {exit_code}"),
            JobStatus::Stopped => "was stopped".to_owned(),
        };
        format!("- {} {status}: {}", job.id, clean(&job.command))
    };
    jobs.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn list_of_rules(rules: &[SavedRule], warning: Option<&str>) -> String {
    let now = Timestamp::now();
    let lines: Vec<String> = rules.iter().map(|it| commands::permissions::line(it, now)).collect();
    let warning = warning.map_or_else(String::new, |it| format!("{}\n\n", clean(it)));
    if lines.is_empty() {
        return format!("{warning}There are no rules: pixir asks about every change that the mode does not allow.");
    }
    format!("{warning}{}\n`pixir permissions revoke ID` removes one.", block(&lines))
}

fn list_of_servers(servers: &[ServerState]) -> String {
    if servers.is_empty() {
        return "There are no MCP servers; `pixir mcp add` adds one.".to_owned();
    }
    let line = |it: &ServerState| {
        let tools = it.tools.as_ref().map_or_else(String::new, |tools| format!(", {} tools", tools.len()));
        let phase = if it.enabled { it.phase.name() } else { "switched off" };
        let error = it.error.as_ref().map_or_else(String::new, |error| format!(": {}", error.message));
        format!("{}  {phase}{tools}{error}  ({})", it.name, it.source)
    };
    format!("{}\n`pixir mcp` changes them.", block(&servers.iter().map(line).collect::<Vec<_>>()))
}

pub(super) fn agents(agents: &[AgentState]) -> String {
    if agents.is_empty() {
        return "There are no agents.".to_owned();
    }
    let line = |it: &AgentState| {
        let doing = Some(&it.doing).filter(|it| !it.is_empty()).map_or_else(String::new, |it| format!(" · {it}"));
        format!("{}  {} · {} · {} calls{doing} · {}", it.path.join("/"), it.role, it.status.name(), it.calls, it.task)
    };
    block(&agents.iter().map(line).collect::<Vec<_>>())
}

pub(super) fn tree(history: &History) -> String {
    let nodes = branches::nodes(history);
    if nodes.is_empty() {
        return "This session has no messages yet.".to_owned();
    }
    let lines: Vec<String> = nodes.iter().map(commands::tree::line).collect();
    format!(
        "{}\n/rewind goes back to a turn, /fork continues in a new session, /label names the last turn.",
        block(&lines)
    )
}

pub(super) fn plan(items: &[PlanItem]) -> String {
    if items.is_empty() {
        return "There is no plan yet; /plan TASK plans without changing anything.".to_owned();
    }
    let line = |it: &PlanItem| {
        let mark = match it.status {
            StepStatus::Pending => "- [ ]",
            StepStatus::InProgress => "- [ ] (now)",
            StepStatus::Completed => "- [x]",
        };
        format!("{mark} {}", clean(&it.step))
    };
    items.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// What the workspace brings along.
pub(in crate::acp) fn contributions(it: &Contributions) -> String {
    if it.all.is_empty() {
        return "This workspace brings nothing along that needs trust.".to_owned();
    }
    block(&it.all.iter().map(commands::trust::line).collect::<Vec<_>>())
}
