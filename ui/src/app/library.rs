//! Workflows, prompt templates and prompts of servers, read for the composer and the preview of a run.

use pixir_core::input::WorkflowOrder;
use pixir_core::{Error, Harness};

use super::App;
use super::background::{BackgroundEvent, one_line};
use crate::input::offer::Offer;
use crate::update::workflow::RefusedPlan;

impl App {
    /// Works out what a run of a workflow would be. The graph that is shown is the one that runs.
    pub(super) fn plan_workflow(&mut self, harness: Harness, order: WorkflowOrder) {
        let remedies = self.state.look.more.remedies.clone();
        self.spawn_blocking(move || {
            let planned = || {
                let it = harness.usable_workflow(order.name.as_deref().unwrap_or_default())?;
                let plan = harness.plan_workflow(&it.text, &it.name, &order.params, order.until.as_deref())?;
                let graph = Some(harness.workflow_as_data(&it.text)?);
                let approved = Some(plan.hash.clone());
                Ok((WorkflowOrder { graph, approved, ..order.clone() }, plan))
            };
            let refused =
                |e: Error| RefusedPlan { why: one_line(&e, &remedies), faults: faults(&e), order: order.clone() };
            BackgroundEvent::WorkflowPlanned(Box::new(planned().map_err(refused)))
        });
    }

    pub(super) fn load_offers(&mut self, harness: Harness) {
        self.spawn_blocking(move || {
            BackgroundEvent::Offers(Offer::all(&harness.templates(), &harness.skills(), &harness.server_prompts()))
        });
    }

    /// Asks a server for the text of its prompt.
    pub(super) fn read_prompt(&mut self, harness: Harness, name: String, args: String) {
        let remedies = self.state.look.more.remedies.clone();
        self.spawn(async move {
            let text = harness.server_prompt(&name, &args).await.map_err(|e| one_line(&e, &remedies));
            BackgroundEvent::PromptText(name, text)
        });
    }
}

/// Every fault of a workflow as a line.
fn faults(error: &Error) -> Vec<String> {
    let all = error.details.get("faults").and_then(|it| it.as_array()).map_or(&[][..], Vec::as_slice);
    let line = |fault: &serde_json::Value| {
        let text = |key: &str| fault[key].as_str().unwrap_or_default();
        let line =
            fault["line"].as_u64().filter(|line| *line > 0).map_or(String::new(), |line| format!("line {line}: "));
        format!("{line}{}: {}. Use: {}", text("at"), text("message"), text("fix"))
    };
    all.iter().map(line).collect()
}
