//! The run of the Session: its graph in layers or as a list, and what the chosen step came to.

use pixir_core::Input;
use pixir_core::event::{Resumed, StepOutcome};
use pixir_core::history::History;
use pixir_core::{RunView, StepView};
use ratatui::layout::Position;
use serde_json::{Map, Value};

use super::rows::RowMap;
use super::{Notification, Outcome, Press, Request};
use crate::input::action::Action;

mod draw; // the layers or the list, and the chosen step

#[derive(Debug)]
pub(crate) struct WorkflowView {
    run: RunView,
    /// The name of the chosen step.
    chosen: Option<String>,
    /// Which answer of a gate the next press of its key gives.
    choice: usize,
    /// The rows on the screen, for clicks.
    places: RowMap,
}

impl WorkflowView {
    /// The run of this Session, with the cursor on the first step that waits or runs.
    pub(crate) fn new(history: &History) -> WorkflowView {
        let run = RunView::fold(history.entries().iter().map(|entry| &**entry));
        let waits = run.steps.iter().find(|it| it.outcome == Some(StepOutcome::Waiting));
        let first = waits.or_else(|| run.steps.iter().find(|it| it.since.is_some())).or(run.steps.first());
        let chosen = first.map(|it| it.id.clone());
        WorkflowView { run, chosen, choice: 0, places: RowMap::default() }
    }

    pub(crate) fn notify(&mut self, notification: Notification<'_>) {
        if let Notification::Recorded { entry, .. } = notification {
            self.run.take(entry);
            if self.chosen.is_none() {
                self.step(0);
            }
        }
    }

    /// A step runs, and its time is on the screen.
    pub(crate) fn has_running(&self) -> bool {
        self.run.steps.iter().any(|it| it.since.is_some())
    }

    fn row(&self) -> usize {
        self.run.steps.iter().position(|it| Some(&it.id) == self.chosen.as_ref()).unwrap_or(0)
    }

    fn current(&self) -> Option<&StepView> {
        self.run.steps.get(self.row())
    }

    fn step(&mut self, by: isize) {
        let at = self.row().saturating_add_signed(by).min(self.run.steps.len().saturating_sub(1));
        self.chosen = self.run.steps.get(at).map(|it| it.id.clone());
        self.choice = 0;
    }

    pub(crate) fn scroll(&mut self, by: isize) {
        self.step(by);
    }

    pub(crate) fn press(&mut self, at: Position) -> Press {
        let Some(row) = self.places.at(at) else { return Press::Nowhere };
        if let Some(step) = self.run.steps.get(row) {
            self.chosen = Some(step.id.clone());
        }
        Press::OnRow(row)
    }

    /// The answers of the chosen gate, while it waits.
    fn choices(&self) -> &[String] {
        let held = self.current().and_then(|it| it.held.as_ref());
        let ask = held.filter(|it| it.status == StepOutcome::Waiting).and_then(|it| it.ask.as_ref());
        ask.map_or(&[], |ask| &ask.choices)
    }

    /// Goes on with the run, with this decision about the chosen step.
    fn decide(&self, decide: impl FnOnce(&mut Resumed, String)) -> Outcome {
        let (Some(step), false) = (self.current(), self.run.is_running) else { return Outcome::Stay };
        let mut decisions = Resumed::default();
        decide(&mut decisions, step.id.clone());
        Outcome::send(Input::ResumeWorkflow { decisions, graph: None })
    }

    pub(crate) fn act(&mut self, action: Action) -> Outcome {
        match action {
            Action::CloseOverlay => return Outcome::Close,
            Action::OverlayUp => self.step(-1),
            Action::OverlayDown => self.step(1),
            Action::OverlayPageUp => self.step(-10),
            Action::OverlayPageDown => self.step(10),
            Action::OverlayStart => self.step(isize::MIN),
            Action::OverlayEnd => self.step(isize::MAX),
            Action::Choose => {
                let agent = self.current().and_then(|it| it.started.as_ref()?.agent.clone());
                return match agent {
                    Some(name) => Outcome::CloseAndAsk(Request::EnterAgent(vec![name])),
                    None => Outcome::Stay,
                };
            }
            Action::RerunStep => return self.decide(|it, id| it.rerun.push(id)),
            Action::SkipStep => return self.decide(|it, id| it.skip.push(id)),
            Action::TakeStepAsDone => return self.decide(|it, id| it.done.push(id)),
            Action::NextAnswer => {
                let all = self.choices().len();
                self.choice = if all == 0 { 0 } else { (self.choice + 1) % all };
            }
            Action::AnswerGate => {
                let Some(choice) = self.choices().get(self.choice).cloned() else { return Outcome::Stay };
                return self.decide(|it, id| match choice.as_str() {
                    "rerun" => it.rerun.push(id),
                    "done" => it.done.push(id),
                    "skip" => it.skip.push(id),
                    _ => it.answers = Map::from_iter([(id, Value::from(choice.as_str()))]),
                });
            }
            Action::StopRun if self.run.is_running => return Outcome::send(Input::Interrupt),
            Action::ResumeRun if !self.run.is_running && self.run.planned.is_some() => {
                return Outcome::send(Input::ResumeWorkflow { decisions: Resumed::default(), graph: None });
            }
            _ => {}
        }
        Outcome::Stay
    }
}
