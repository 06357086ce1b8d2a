//! Skills and prompt templates: listed, and read for their previews.

use pixir_core::Skill;

use super::App;
use super::background::{BackgroundEvent, one_line};
use crate::input::offer::Offer;
use crate::overlay::Overlay;

impl App {
    pub(super) fn load_skills(&mut self) {
        let Some(harness) = self.harness.clone() else { return };
        self.spawn_blocking(move || BackgroundEvent::Skills(harness.skills()));
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
