//! A run as a Presenter shows it: its graph, and what became of each step.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

use protocol::event::{Entry, Fact, Held, Planned, StepEnded, StepOutcome, StepStarted, TurnEnded, WorkflowEvent};

/// A run, folded from the Entries of its Session.
#[derive(Debug, Clone, Default)]
pub struct RunView {
    /// The graph that is in force; `None` if no workflow was run.
    pub planned: Option<Planned>,
    /// The steps in the order of the file, each followed by its items.
    pub steps: Vec<StepView>,
    /// The run goes on now.
    pub is_running: bool,
    /// How it ended last.
    pub end: Option<TurnEnded>,
    /// The run has just been resumed; an edited graph may follow.
    goes_on: bool,
}

/// A step, or one item of it.
#[derive(Debug, Clone, Default)]
pub struct StepView {
    /// Its name; an item has `.N` behind the step's.
    pub id: String,
    /// `agent`, `command`, `gate` or `workflow`; that of its step for an item.
    pub kind: String,
    /// The steps that it waits for.
    pub needs: Vec<String>,
    /// How many steps are before it at most.
    pub layer: usize,
    /// It is an item.
    pub is_item: bool,
    /// How it ended; `None` while it has not.
    pub outcome: Option<StepOutcome>,
    /// When it began, while it runs.
    pub since: Option<Timestamp>,
    /// The last beginning of it.
    pub started: Option<StepStarted>,
    /// The last end of it.
    pub ended: Option<StepEnded>,
    /// What holds it, or what it waits for.
    pub held: Option<Held>,
}

impl RunView {
    /// Folds the Entries of a Session.
    pub fn fold<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> RunView {
        let mut view = RunView::default();
        entries.into_iter().for_each(|entry| view.take(entry));
        view
    }

    /// Takes in the next Entry.
    pub fn take(&mut self, entry: &Entry) {
        match &entry.fact {
            Fact::WorkflowEvent(event) => self.take_event(event, entry.ts),
            Fact::TurnEnded(it) if self.is_running => {
                (self.is_running, self.goes_on) = (false, false);
                self.end = Some((**it).clone());
                // What had begun and has no end was stopped with the run.
                for step in &mut self.steps {
                    if step.since.take().is_some() {
                        step.outcome.get_or_insert(StepOutcome::Interrupted);
                    }
                }
            }
            _ => {}
        }
    }

    fn take_event(&mut self, event: &WorkflowEvent, at: Timestamp) {
        match event {
            WorkflowEvent::Planned(it) => {
                self.is_running = true;
                let known = std::mem::take(&mut self.steps);
                // Without a resume before it, a run of its own begins.
                let known = if std::mem::take(&mut self.goes_on) { known } else { Vec::new() };
                let before: BTreeMap<String, StepView> =
                    known.into_iter().map(|step| (step.id.clone(), step)).collect();
                self.steps = declared(it);
                for step in &mut self.steps {
                    if let Some(known) = before.get(&step.id) {
                        (step.outcome, step.ended) = (known.outcome, known.ended.clone());
                        step.started.clone_from(&known.started);
                    }
                }
                self.planned = Some((**it).clone());
            }
            WorkflowEvent::Resumed(_) => {
                (self.is_running, self.goes_on) = (true, true);
                for step in self.steps.iter_mut() {
                    if matches!(step.outcome, Some(StepOutcome::Held | StepOutcome::Waiting)) {
                        (step.outcome, step.held) = (None, None);
                    }
                }
            }
            WorkflowEvent::StepStarted(it) => {
                self.goes_on = false;
                let step = self.step(&it.id);
                (step.outcome, step.held, step.since) = (None, None, Some(at));
                step.started = Some((**it).clone());
            }
            WorkflowEvent::StepEnded(it) => {
                let step = self.step(&it.id);
                (step.outcome, step.since, step.held) = (Some(it.status), None, None);
                step.ended = Some((**it).clone());
            }
            WorkflowEvent::Held(it) => {
                let step = self.step(&it.id);
                (step.outcome, step.since) = (Some(it.status), None);
                step.held = Some((**it).clone());
            }
            WorkflowEvent::GateAnswered { .. } | WorkflowEvent::ChangedSince(_) => {}
        }
        if let Some(step) = event.step().and_then(|id| id.rsplit_once('.')).map(|(step, _)| step.to_owned()) {
            self.roll_up(&step);
        }
    }

    /// A step with items is as its items are: it runs while one runs, and ends as they do together.
    fn roll_up(&mut self, id: &str) {
        let is_item =
            |step: &&StepView| step.is_item && step.id.strip_prefix(id).is_some_and(|rest| rest.starts_with('.'));
        let items = || self.steps.iter().filter(is_item);
        let since = items().filter_map(|item| item.since).min();
        let outcome = StepOutcome::together(items().filter_map(|item| item.outcome));
        if let Some(step) = self.steps.iter_mut().find(|step| step.id == id && !step.is_item) {
            step.since = since;
            step.outcome = if since.is_some() { None } else { outcome };
        }
    }

    /// The step with this name. An item, and a step of another workflow, comes into being with its first event.
    fn step(&mut self, id: &str) -> &mut StepView {
        let at = self.steps.iter().position(|step| step.id == id).unwrap_or_else(|| {
            let (parent, is_item) = match (id.rsplit_once('.'), id.split_once('/')) {
                (Some((parent, _)), _) => (parent, true),
                (None, Some((outer, _))) => (outer, false),
                (None, None) => (id, false),
            };
            let of = self.steps.iter().position(|step| step.id == parent);
            let last = self.steps.iter().rposition(|step| {
                step.id.strip_prefix(parent).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '/']))
            });
            let at = last.map_or(self.steps.len(), |last| last + 1);
            let mut step = StepView { id: id.to_owned(), is_item, ..StepView::default() };
            if let Some(parent) = of.and_then(|of| self.steps.get(of)) {
                (step.layer, step.kind) = (parent.layer, parent.kind.clone());
                step.needs.clone_from(&parent.needs);
            }
            self.steps.insert(at, step);
            at
        });
        &mut self.steps[at]
    }

    /// How many steps, or items, ended so; a step with items counts by these.
    pub fn count(&self, wanted: impl Fn(&StepView) -> bool) -> usize {
        self.leaves().filter(|step| wanted(step)).count()
    }

    /// Steps without items, and items.
    pub fn leaves(&self) -> impl Iterator<Item = &StepView> {
        let has_items = |step: &StepView| {
            !step.is_item
                && self.steps.iter().any(|it| {
                    it.is_item && it.id.strip_prefix(step.id.as_str()).is_some_and(|rest| rest.starts_with('.'))
                })
        };
        self.steps.iter().filter(move |step| !has_items(step))
    }
}

/// The steps of a graph, with their layers.
fn declared(planned: &Planned) -> Vec<StepView> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let steps = planned.graph["steps"].as_array().map_or(&[] as &[Value], Vec::as_slice);
    let mut all: Vec<StepView> = steps
        .iter()
        .filter_map(|step| {
            let mut needs: Vec<String> = step["needs"].as_array().into_iter().flatten().filter_map(text).collect();
            if let Some(followed) = step["each"].as_str().and_then(|it| it.strip_prefix('@')) {
                needs.push(followed.to_owned());
            }
            let guess = [("argv", "command"), ("ask", "gate"), ("use", "workflow")];
            let guess = guess.iter().find(|(key, _)| step.get(key).is_some()).map_or("agent", |(_, kind)| kind);
            let kind = text(&step["kind"]).unwrap_or_else(|| guess.to_owned());
            Some(StepView { id: text(&step["id"])?, kind, needs, ..StepView::default() })
        })
        .collect();
    // A checked graph has no circle, so as many passes as there are steps are enough.
    for _ in 0..all.len() {
        let layers: BTreeMap<String, usize> = all.iter().map(|step| (step.id.clone(), step.layer)).collect();
        let mut changed = false;
        for step in &mut all {
            let layer = step.needs.iter().filter_map(|need| layers.get(need)).map(|it| it + 1).max().unwrap_or(0);
            changed |= std::mem::replace(&mut step.layer, layer) != layer;
        }
        if !changed {
            break;
        }
    }
    all
}
