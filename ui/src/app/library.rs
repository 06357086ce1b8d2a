//! Skills and prompt templates: listed, and read for their previews.

use pixir_core::input::WorkflowOrder;
use pixir_core::{Error, Skill};

use super::App;
use super::background::{BackgroundEvent, one_line};
use crate::input::offer::Offer;
use crate::overlay::Overlay;

impl App {
    pub(super) fn load_skills(&mut self) {
        let Some(harness) = self.harness.clone() else { return };
        self.spawn_blocking(move || BackgroundEvent::Skills(harness.skills()));
    }

    /// Works out what a run of a workflow would be. The graph that is shown is the one that runs.
    pub(super) fn plan_workflow(&mut self, order: WorkflowOrder) {
        let Some(harness) = self.harness.clone() else { return };
        let remedies = self.state.look.more.remedies.clone();
        self.spawn_blocking(move || {
            let planned = || {
                let it = harness.usable_workflow(order.name.as_deref().unwrap_or_default())?;
                let plan = harness.plan_workflow(&it.text, &it.name, &order.params, order.until.as_deref())?;
                let graph = Some(harness.workflow_as_data(&it.text)?);
                Ok((WorkflowOrder { graph, ..order.clone() }, plan))
            };
            BackgroundEvent::WorkflowPlanned(Box::new(planned().map_err(|e: Error| one_line(&e, &remedies))))
        });
    }

    pub(super) fn load_offers(&mut self) {
        let Some(harness) = self.harness.clone() else { return };
        self.spawn_blocking(move || BackgroundEvent::Offers(Offer::all(&harness.templates(), &harness.skills())));
    }

    /// Reads the text of a skill.
    pub(super) fn read_skill(&mut self, skill: Skill) {
        let Some(harness) = self.harness.clone() else { return };
        let remedies = self.state.look.more.remedies.clone();
        self.spawn_blocking(move || {
            let text = harness.skill_text(&skill).map_err(|e| one_line(&e, &remedies));
            BackgroundEvent::SkillText(skill.path, text)
        });
    }

    /// Reads the text of the skill under the cursor, if the list lacks it.
    pub(super) fn read_wanted_skill(&mut self) {
        let of = |overlay: &Overlay| if let Overlay::Skills(view) = overlay { view.wanted() } else { None };
        if let Some(skill) = self.state.overlays.iter().find_map(of) {
            self.read_skill(skill);
        }
    }
}
