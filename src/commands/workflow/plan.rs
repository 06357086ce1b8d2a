//! What a run or a resume would do, as text.

use pixir_core::{PlannedStep, Rehearsed, WorkflowPlan};

use crate::output::clean;

pub(super) fn text(plan: &WorkflowPlan) -> String {
    let mut text = format!("{}  {}\n", plan.name, clean(&plan.description));
    for (n, layer) in plan.layers.iter().enumerate() {
        text.push_str(&format!("\nlayer {}\n", n + 1));
        let lines = layer.iter().flat_map(PlannedStep::lines);
        lines.for_each(|line| text.push_str(&format!("{}\n", clean(&line))));
    }
    text.push_str(&format!("\n{}", plan.bounds()));
    text.push_str(&format!("\nhash {}", plan.hash));
    text
}

/// What a resume would do about each step.
pub(super) fn rehearsed(all: &[Rehearsed]) -> String {
    let width = all.iter().map(|it| it.id.chars().count()).max().unwrap_or(0);
    let lines: Vec<String> =
        all.iter().map(|it| format!("{:<5}  {:<width$}  {}", it.verdict, it.id, clean(&it.why))).collect();
    lines.join("\n")
}
