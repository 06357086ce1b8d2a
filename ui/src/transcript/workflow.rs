//! The card of a run of a workflow: it stands where the run was last heard of, as long as the run goes on.

use std::sync::Arc;

use pixir_core::RunView;
use pixir_core::event::{Entry, WorkflowEvent};

use super::Transcript;
use super::cell::{Cell, WorkflowCard};

impl WorkflowCard {
    /// The number of the entry with which the run began or went on.
    pub(crate) fn seq(&self) -> u64 {
        self.entry.seq
    }
}

impl Transcript {
    /// Takes in what happened in a run. Calls of its steps have cells of their own, which stand above the card.
    pub(super) fn workflow_event(&mut self, entry: &Arc<Entry>, event: &WorkflowEvent) {
        let last = self.workflow_cell.and_then(|at| Some((at, self.card(at)?)));
        let begins = match event {
            // A graph that was edited follows where the run goes on.
            WorkflowEvent::Planned(_) => last.is_none_or(|(_, card)| !card.view.is_running),
            WorkflowEvent::Resumed(_) => true,
            WorkflowEvent::StepStarted(_)
            | WorkflowEvent::StepEnded(_)
            | WorkflowEvent::GateAnswered { .. }
            | WorkflowEvent::Held(_)
            | WorkflowEvent::ChangedSince(_) => false,
        };
        let goes_on = matches!(event, WorkflowEvent::Resumed(_));
        let mut card = match last {
            Some((_, card)) if !begins => card.clone(),
            // What came to be before is known, and stays on the screen as it was then.
            Some((_, card)) if goes_on => WorkflowCard { entry: Arc::clone(entry), goes_on, ..card.clone() },
            Some(_) | None => WorkflowCard { entry: Arc::clone(entry), view: RunView::default(), goes_on },
        };
        card.view.take(entry);
        let at = last.map(|(at, _)| at).filter(|_| !begins);
        let is_last = |at: usize| self.cells[at + 1..].iter().all(|cell| matches!(cell, Cell::Gone));
        let cell = Cell::Workflow(Box::new(card));
        match at {
            Some(at) if is_last(at) => self.replace(at, cell),
            at => {
                at.into_iter().for_each(|at| self.replace(at, Cell::Gone));
                self.workflow_cell = Some(self.cells.len());
                self.push(cell);
            }
        }
    }

    /// The Turn of the run has ended.
    pub(super) fn workflow_ended(&mut self, entry: &Entry) {
        let Some(at) = self.workflow_cell else { return };
        if let Some(Cell::Workflow(card)) = self.cells.get_mut(at)
            && card.view.is_running
        {
            card.view.take(entry);
            self.changed(at);
        }
    }

    fn card(&self, at: usize) -> Option<&WorkflowCard> {
        match self.cells.get(at)? {
            Cell::Workflow(card) => Some(card),
            _ => None,
        }
    }
}
