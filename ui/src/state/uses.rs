//! How often the user has chosen each action, to offer the most used first.

use crate::input::action::ActionSpec;
pub(crate) use crate::input::slash::Uses as Counts;

/// At this count, all counts are halved, so that old habits fade.
const MOST: u32 = 1_000;

#[derive(Debug, Default)]
pub(crate) struct Uses {
    /// The uses of earlier Sessions and of this one; `None` until they are read.
    known: Option<Counts>,
    /// The uses that are not saved yet.
    fresh: Counts,
}

impl Uses {
    /// The user has chosen this action.
    pub(crate) fn note(&mut self, spec: &ActionSpec) {
        for counts in [Some(&mut self.fresh), self.known.as_mut()].into_iter().flatten() {
            *counts.entry(spec.id.to_owned()).or_default() += 1;
        }
    }

    pub(crate) fn is_known(&self) -> bool {
        self.known.is_some()
    }

    /// The saved counts are read.
    pub(crate) fn load(&mut self, saved: Counts) {
        self.known = Some(merged(saved, &self.fresh));
    }

    pub(crate) fn counts(&self) -> &Counts {
        self.known.as_ref().unwrap_or(&self.fresh)
    }

    /// The uses since the last call.
    pub(crate) fn take_fresh(&mut self) -> Option<Counts> {
        Some(std::mem::take(&mut self.fresh)).filter(|it| !it.is_empty())
    }
}

/// Adds the counts of two sources.
pub(crate) fn merged(mut saved: Counts, fresh: &Counts) -> Counts {
    for (name, count) in fresh {
        *saved.entry(name.clone()).or_default() += count;
    }
    if saved.values().any(|count| *count >= MOST) {
        saved.values_mut().for_each(|count| *count /= 2);
        saved.retain(|_, count| *count > 0);
    }
    saved
}
