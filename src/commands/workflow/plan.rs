//! What a run or a resume would do, as text.

use pixir_core::{PlannedStep, Rehearsed, WorkflowPlan};

use crate::output::{clean, count};

/// The most characters of a task.
const MAX_TASK: usize = 120;

pub(super) fn text(plan: &WorkflowPlan) -> String {
    let mut text = format!("{}  {}\n", plan.name, clean(&plan.description));
    for (n, layer) in plan.layers.iter().enumerate() {
        text.push_str(&format!("\nlayer {}\n", n + 1));
        layer.iter().for_each(|step| text.push_str(&line(step)));
    }
    let cost = match plan.most_cost {
        Some(usd) => format!("${usd:.2}"),
        None => "unknown: the model has no price".to_owned(),
    };
    let agents = usize::try_from(plan.most_agents).unwrap_or(usize::MAX);
    text.push_str(&format!(
        "\nat most: {}, {} tokens, cost {cost}, {} s, {} at a time",
        count(agents, "agent"),
        plan.most_tokens,
        plan.seconds,
        plan.concurrency
    ));
    text.push_str(&format!("\nhash {}", plan.hash));
    text
}

fn line(step: &PlannedStep) -> String {
    let items = match step.instances {
        Some(1) => String::new(),
        Some(n) => format!(" × {n}"),
        None => format!(" × ? (at most {})", step.most_instances),
    };
    let mut about = vec![step.kind.to_owned()];
    about.extend(step.role.clone());
    about.extend(step.isolation.map(str::to_owned));
    if step.reads_only {
        about.push("changes nothing".to_owned());
    }
    if !step.writes.is_empty() {
        about.push(format!("writes {}", step.writes.join(" ")));
    }
    if step.conditional {
        about.push("under a condition".to_owned());
    }
    let needs = if step.needs.is_empty() { String::new() } else { format!("  after {}", step.needs.join(", ")) };
    let mut text = format!("  {}{items}  {}{needs}\n", step.id, about.join(", "));
    if let Some(does) = step.does.as_ref().filter(|it| !it.is_empty()) {
        let line: String =
            clean(does).split_whitespace().collect::<Vec<_>>().join(" ").chars().take(MAX_TASK).collect();
        text.push_str(&format!("      {line}\n"));
    }
    text
}

/// What a resume would do about each step.
pub(super) fn rehearsed(all: &[Rehearsed]) -> String {
    let width = all.iter().map(|it| it.id.chars().count()).max().unwrap_or(0);
    let lines: Vec<String> =
        all.iter().map(|it| format!("{:<5}  {:<width$}  {}", it.verdict, it.id, clean(&it.why))).collect();
    lines.join("\n")
}
