//! The run of the Session: its graph in layers or as a list, and what the chosen step came to.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use pixir_core::event::{AgentStatus, Cost, Form, Resumed, StepOutcome};
use pixir_core::history::History;
use pixir_core::input::WorkflowOrder;
use pixir_core::{Input, PlannedStep, RunView, StepView, WorkflowPlan};
use ratatui::layout::{Position, Rect};
use serde_json::{Map, Value};

use super::list::ListView;
use super::{Notification, OnHarness, Outcome, Paint, Press, Request, View};
use crate::input::action::{LayerAction, Scope};
use crate::terminal::canvas::Canvas;
use crate::transcript::agents::Agents;

mod draw; // the layers or the list, and the chosen step

#[derive(Debug)]
pub(crate) struct WorkflowView {
    run: RunView,
    /// The name of the chosen step.
    chosen: Option<String>,
    /// Which answer of a gate the next press of its key gives.
    choice: usize,
    /// What running agents have cost so far, by their names.
    costs: BTreeMap<String, Cost>,
    /// Names of agents that wait for the user.
    waiting: BTreeSet<String>,
    /// The first line of the chosen step that is shown, and how many lines fit.
    top: usize,
    page: Cell<usize>,
    /// The most that `top` can be, since the last frame.
    max_top: Cell<usize>,
    list: ListView,
    /// A run that has not begun: the user sees what it would be.
    offer: Option<Offer>,
}

/// A run that waits for the user's word.
#[derive(Debug)]
struct Offer {
    order: WorkflowOrder,
    /// What it would be, or what keeps it from running.
    lines: Vec<OfferLine>,
    can_run: bool,
}

/// A line about a run that has not begun.
#[derive(Debug)]
enum OfferLine {
    Text(String),
    /// The number of a layer, above its steps.
    Layer(usize),
    Step {
        name: String,
        about: String,
    },
    /// What the step above does.
    Task(String),
    Blank,
}

impl OfferLine {
    fn of_step(step: &PlannedStep) -> Vec<OfferLine> {
        let lines = step.lines();
        let head = lines.first().map_or("", |it| it.trim_start());
        let (name, about) = head.split_once("  ").unwrap_or((head, ""));
        let head = OfferLine::Step { name: name.to_owned(), about: about.to_owned() };
        let tasks = lines.iter().skip(1).map(|it| OfferLine::Task(it.trim_start().to_owned()));
        [head].into_iter().chain(tasks).collect()
    }
}

impl WorkflowView {
    /// The run of this Session, with the cursor on the first step that waits or runs.
    pub(crate) fn new(history: &History, agents: &Agents) -> WorkflowView {
        let run = RunView::fold(history.entries().iter().map(|entry| &**entry));
        let waits = run.steps.iter().find(|it| it.outcome == Some(StepOutcome::Waiting));
        let first = waits.or_else(|| run.steps.iter().find(|it| it.since.is_some())).or(run.steps.first());
        let chosen = first.map(|it| it.id.clone());
        let mut view = WorkflowView { chosen, ..WorkflowView::of(run, None) };
        view.see(agents);
        view
    }

    fn of(run: RunView, offer: Option<Offer>) -> WorkflowView {
        WorkflowView {
            run,
            chosen: None,
            choice: 0,
            costs: BTreeMap::new(),
            waiting: BTreeSet::new(),
            top: 0,
            page: Cell::new(1),
            max_top: Cell::new(0),
            list: ListView::default(),
            offer,
        }
    }

    /// What a run would be, before it begins.
    pub(crate) fn planned(order: WorkflowOrder, plan: &WorkflowPlan) -> WorkflowView {
        let text = |it: &str| OfferLine::Text(it.to_owned());
        let mut lines = Vec::from_iter(Some(text(&plan.description)).filter(|_| !plan.description.is_empty()));
        // What decides stands first: the rest may need scrolling.
        lines.extend(plan.bounds().lines().map(text));
        let values = plan.params.iter().filter(|(_, value)| !value.is_null());
        lines.extend(values.map(|(name, value)| OfferLine::Text(format!("{name} = {value}"))));
        for (n, layer) in plan.layers.iter().enumerate() {
            lines.extend([OfferLine::Blank, OfferLine::Layer(n + 1)]);
            lines.extend(layer.iter().flat_map(OfferLine::of_step));
        }
        WorkflowView::of(RunView::default(), Some(Offer { order, lines, can_run: true }))
    }

    /// Every fault of a workflow that cannot be run.
    pub(crate) fn refused(order: WorkflowOrder, faults: Vec<String>) -> WorkflowView {
        let n = faults.len();
        let title = format!("It cannot be run: {n} {}", if n == 1 { "fault" } else { "faults" });
        let faults = faults.into_iter().map(OfferLine::Text);
        let lines = [OfferLine::Text(title), OfferLine::Blank].into_iter().chain(faults).collect();
        WorkflowView::of(RunView::default(), Some(Offer { order, lines, can_run: false }))
    }

    /// A workflow was run in this Session.
    pub(crate) fn has_run(&self) -> bool {
        self.run.planned.is_some()
    }

    fn see(&mut self, agents: &Agents) {
        self.costs = agents.below().map(|it| (it.name().to_owned(), it.cost)).collect();
        let waiting = agents.below().filter(|it| it.status == AgentStatus::Waiting);
        self.waiting = waiting.map(|it| it.name().to_owned()).collect();
    }

    /// What a step has cost so far.
    fn cost(&self, step: &StepView) -> Cost {
        let running = || self.costs.get(step.started.as_ref()?.agent.as_deref()?).copied();
        match &step.ended {
            Some(ended) if step.since.is_none() => ended.cost,
            Some(_) | None => running().unwrap_or_default(),
        }
    }

    /// The step runs, and its agent waits for the user: for an approval, or for a decision about its files.
    fn waits(&self, step: &StepView) -> bool {
        let agent = step.started.as_ref().filter(|_| step.since.is_some()).and_then(|it| it.agent.as_ref());
        agent.is_some_and(|agent| self.waiting.contains(agent))
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
        (self.choice, self.top) = (0, 0);
    }

    /// Scrolls what is said of the chosen step.
    fn scroll_page(&mut self, by: isize) {
        self.top = self.top.saturating_add_signed(by).min(self.max_top.get());
    }

    /// The agent that does the chosen step.
    fn agent(&self) -> Option<String> {
        self.current().and_then(|it| it.started.as_ref()?.agent.clone())
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
}

impl View for WorkflowView {
    fn title(&self) -> &'static str {
        "Workflow"
    }

    fn scopes(&self) -> &'static [Scope] {
        &[Scope::Workflow, Scope::Overlay]
    }

    fn notify(&mut self, notification: Notification<'_>) {
        if let Notification::Agents(agents) = notification {
            self.see(agents);
        }
        if let Notification::Recorded { entry, .. } = notification {
            self.run.take(entry);
            if self.chosen.is_none() {
                self.step(0);
            }
        }
    }

    fn scroll(&mut self, by: isize) {
        match self.offer {
            Some(_) => self.scroll_page(by),
            None => self.step(by),
        }
    }

    fn press(&mut self, at: Position) -> Press {
        let Some(row) = self.list.row_at(at) else { return Press::Nowhere };
        if let Some(step) = self.run.steps.get(row) {
            self.chosen = Some(step.id.clone());
            (self.choice, self.top) = (0, 0);
        }
        Press::OnRow(row)
    }

    fn act(&mut self, action: LayerAction) -> Outcome {
        let page = isize::try_from(self.page.get()).unwrap_or(isize::MAX);
        match action {
            LayerAction::CloseOverlay => return Outcome::Close,
            LayerAction::Choose => {
                if self.offer.as_ref().is_some_and(|offer| !offer.can_run) {
                    return Outcome::Close;
                }
                if let Some(offer) = self.offer.take() {
                    return Outcome::close_and_send(Input::RunWorkflow(offer.order));
                }
                return match self.agent() {
                    Some(name) => Outcome::CloseAndAsk(Request::Do(vec![
                        OnHarness::EnterAgent { path: vec![name], from_list: true }.into(),
                    ])),
                    None => Outcome::Stay,
                };
            }
            LayerAction::OverlayPageUp => self.scroll_page(-page),
            LayerAction::OverlayPageDown => self.scroll_page(page),
            LayerAction::OverlayUp if self.offer.is_some() => self.scroll_page(-1),
            LayerAction::OverlayDown if self.offer.is_some() => self.scroll_page(1),
            LayerAction::OverlayUp => self.step(-1),
            LayerAction::OverlayDown => self.step(1),
            LayerAction::OverlayStart => self.step(isize::MIN),
            LayerAction::OverlayEnd => self.step(isize::MAX),
            LayerAction::RerunStep => return self.decide(|it, id| it.rerun.push(id)),
            LayerAction::SkipStep => return self.decide(|it, id| it.skip.push(id)),
            LayerAction::TakeStepAsDone => return self.decide(|it, id| it.done.push(id)),
            LayerAction::NextAnswer => {
                let all = self.choices().len();
                self.choice = if all == 0 { 0 } else { (self.choice + 1) % all };
            }
            LayerAction::AnswerGate => {
                let Some(choice) = self.choices().get(self.choice).cloned() else { return Outcome::Stay };
                // While the run goes on, the step asks in a form, which takes the answer.
                if let (true, Some(step)) = (self.run.is_running, self.current()) {
                    let call_id = Form::call_of_step(&step.id);
                    return Outcome::send(Input::Answer { call_id, answers: Some(vec![vec![choice]]) });
                }
                return self.decide(|it, id| match choice.as_str() {
                    "rerun" => it.rerun.push(id),
                    "done" => it.done.push(id),
                    "skip" => it.skip.push(id),
                    _ => it.answers = Map::from_iter([(id, Value::from(choice.as_str()))]),
                });
            }
            LayerAction::StopRun if self.run.is_running => return Outcome::send(Input::Interrupt),
            LayerAction::ResumeRun if !self.run.is_running && self.run.planned.is_some() => {
                return Outcome::send(Input::ResumeWorkflow { decisions: Resumed::default(), graph: None });
            }
            _ => {}
        }
        Outcome::Stay
    }

    fn draw(&mut self, canvas: &mut Canvas, area: Rect, paint: Paint<'_>) {
        self.paint(canvas, area, paint);
    }
}
