//! Which step runs when. A pure state machine: events go in, actions come out, and nothing is waited for.

use std::collections::{BTreeSet, VecDeque};

use super::checked::Checked;
use super::graph::{Each, OnFail, RunLimits, Work};
use protocol::event::StepOutcome;

/// A step, or one of its items.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Unit {
    pub step: usize,
    /// From 0; `None` for a step without items, and for a step with items as a whole.
    pub item: Option<usize>,
}

/// What the schedule needs to know of a step.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Shape {
    /// The steps that it waits for, also the one that it follows.
    pub needs: Vec<usize>,
    /// It has items.
    pub(crate) has_items: bool,
    /// The step whose items it follows, one by one.
    pub follows: Option<usize>,
    pub(crate) on_fail: OnFail,
    /// It takes one of the places of steps that run at the same time.
    pub(crate) takes_place: bool,
    /// It begins when all that it waits for have ended, however they did.
    pub joins: bool,
    /// The other workflow that it is a step of.
    pub group: Option<usize>,
}

/// How many steps of another workflow run at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Group {
    running: usize,
    places: usize,
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Happened {
    /// The run begins.
    Begun,
    /// A step has this many items.
    Listed { step: usize, items: usize },
    /// A step or an item has ended. A step with items that ends before it is listed ends as a whole.
    Ended { unit: Unit, outcome: StepOutcome },
    /// Nothing else is started.
    Stopped,
}

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// Find out the items of a step, or whether it is skipped.
    List(usize),
    /// Begin.
    Start(Unit),
    /// It does not run.
    Hold { unit: Unit, by: Cause },
    /// Every step has ended.
    Finish,
}

/// Why a step does not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    /// This step did not complete.
    Step(usize),
    /// As many steps failed as the run allows.
    Failures,
    /// The run was stopped.
    Stopped,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    /// It waits for so many steps, not counting the one that it follows.
    Waiting(usize),
    /// Its items are being found out, or it runs.
    Begun,
    /// It has items, and so many of them have not ended.
    Open {
        left: usize,
    },
    Ended(StepOutcome),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Item {
    /// The item that it follows has not ended.
    Waiting,
    Begun,
    Ended(StepOutcome),
}

/// The state of a run.
#[derive(Debug)]
pub(crate) struct Schedule {
    shapes: Vec<Shape>,
    /// For each step those that wait for it.
    dependents: Vec<Vec<usize>>,
    states: Vec<State>,
    /// The items of steps that were listed, also after their end.
    items: Vec<Option<Vec<Item>>>,
    /// For a held step the one that is the cause.
    causes: Vec<Option<usize>>,
    /// What may begin as soon as there is a place.
    ready: BTreeSet<Unit>,
    /// What may begin and takes no place.
    free: BTreeSet<Unit>,
    running: usize,
    /// Units that have begun and have not ended, with or without a place.
    begun: usize,
    places: usize,
    /// Steps that have not ended.
    left: usize,
    failures: usize,
    most_failures: Option<usize>,
    /// Nothing is started any more.
    stopped: Option<Cause>,
    groups: Vec<Group>,
    is_finished: bool,
    /// Items that are held, and by which step.
    held: Vec<(Unit, usize)>,
}

impl Schedule {
    /// A schedule of these steps. Steps that are not wanted count as skipped, and nothing is done about them.
    pub(crate) fn new(
        shapes: Vec<Shape>,
        places: usize,
        most_failures: Option<usize>,
        wanted: Option<&BTreeSet<usize>>,
    ) -> Schedule {
        let mut dependents = vec![Vec::new(); shapes.len()];
        for (at, shape) in shapes.iter().enumerate() {
            shape.needs.iter().for_each(|need| dependents[*need].push(at));
        }
        let is_wanted = |at: usize| wanted.is_none_or(|wanted| wanted.contains(&at));
        let states: Vec<State> = shapes
            .iter()
            .enumerate()
            .map(|(at, shape)| match is_wanted(at) {
                true => State::Waiting(shape.needs.iter().filter(|it| shape.follows != Some(**it)).count()),
                false => State::Ended(StepOutcome::Skipped),
            })
            .collect();
        let left = states.iter().filter(|state| matches!(state, State::Waiting(_))).count();
        Schedule {
            causes: vec![None; shapes.len()],
            items: vec![None; shapes.len()],
            free: BTreeSet::new(),
            dependents,
            states,
            shapes,
            ready: BTreeSet::new(),
            running: 0,
            begun: 0,
            places: places.max(1),
            left,
            failures: 0,
            most_failures,
            stopped: None,
            is_finished: false,
            held: Vec::new(),
            groups: Vec::new(),
        }
    }

    /// The schedule of a workflow.
    pub(crate) fn of(checked: &Checked, wanted: Option<&BTreeSet<usize>>) -> Schedule {
        let groups: Vec<(&String, &RunLimits)> = checked.inner_limits.iter().collect();
        let shape = |it: &super::checked::CheckedStep| Shape {
            needs: it.needs.clone(),
            has_items: it.step.each.is_some(),
            follows: it.follows.filter(|_| matches!(it.step.each, Some(Each::Follows(_)))),
            on_fail: it.step.on_fail,
            takes_place: matches!(it.step.work, Work::Agent(_) | Work::Command { .. }),
            joins: matches!(it.step.work, Work::Join { .. }),
            group: it.outer().and_then(|outer| groups.iter().position(|(id, _)| *id == outer)),
        };
        let limits = checked.graph.limits;
        let shapes = checked.steps.iter().map(shape).collect();
        let groups =
            groups.iter().map(|(_, limits)| Group { running: 0, places: limits.concurrency.unwrap_or(usize::MAX) });
        Schedule { groups: groups.collect(), ..Schedule::new(shapes, limits.places(), limits.failures, wanted) }
    }

    /// How a step ended; `None` while it has not.
    pub(crate) fn outcome(&self, step: usize) -> Option<StepOutcome> {
        match self.states[step] {
            State::Ended(outcome) => Some(outcome),
            State::Waiting(_) | State::Begun | State::Open { .. } => None,
        }
    }

    /// Takes in what happened, and says what is to be done.
    pub(crate) fn take(&mut self, happened: Happened) -> Vec<Action> {
        let mut actions = Vec::new();
        let mut ended = VecDeque::new();
        match happened {
            Happened::Begun => {
                for step in 0..self.shapes.len() {
                    if self.states[step] == State::Waiting(0) && self.shapes[step].follows.is_none() {
                        self.offer(Unit { step, item: None });
                    }
                }
            }
            Happened::Stopped => {
                self.stopped.get_or_insert(Cause::Stopped);
            }
            Happened::Listed { step, items } => self.list(step, items, &mut ended),
            Happened::Ended { unit, outcome } => self.end(unit, outcome, &mut ended),
        }
        self.settle(ended, &mut actions);
        self.start(&mut actions);
        actions
    }

    /// A step or an item may begin.
    fn offer(&mut self, unit: Unit) {
        if self.counts(unit) {
            self.ready.insert(unit)
        } else {
            self.free.insert(unit)
        };
    }

    fn list(&mut self, step: usize, items: usize, ended: &mut VecDeque<usize>) {
        if self.states[step] != State::Begun {
            return;
        }
        self.begun -= 1;
        self.items[step] = Some(vec![Item::Begun; items]);
        self.states[step] = State::Open { left: items };
        (0..items).for_each(|item| self.offer(Unit { step, item: Some(item) }));
        self.follow(step, ended);
        if items == 0 {
            self.close(step, StepOutcome::Completed, ended);
        }
    }

    /// The followers of a step that was listed have as many items.
    fn follow(&mut self, step: usize, ended: &mut VecDeque<usize>) {
        for follower in self.dependents[step].clone() {
            if self.shapes[follower].follows == Some(step) && self.states[follower] == State::Waiting(0) {
                self.open_follower(follower, step, ended);
            }
        }
    }

    /// A follower waits for nothing but the items that it follows.
    fn open_follower(&mut self, follower: usize, followed: usize, ended: &mut VecDeque<usize>) {
        let Some(items) = self.items[followed].clone() else { return };
        self.items[follower] = Some(vec![Item::Waiting; items.len()]);
        self.states[follower] = State::Open { left: items.len() };
        for (item, state) in items.iter().enumerate() {
            if let Item::Ended(outcome) = state {
                self.pass(followed, item, *outcome, follower, ended);
            }
        }
        self.follow(follower, ended);
        if items.is_empty() {
            self.close(follower, StepOutcome::Completed, ended);
        }
    }

    /// An item has ended; the same item of a follower may begin, or is held.
    fn pass(
        &mut self,
        followed: usize,
        item: usize,
        outcome: StepOutcome,
        follower: usize,
        ended: &mut VecDeque<usize>,
    ) {
        let is_fine = self.is_fine(followed, outcome);
        let Some(state) = self.items[follower].as_mut().and_then(|items| items.get_mut(item)) else { return };
        if *state != Item::Waiting {
            return;
        }
        if is_fine {
            *state = Item::Begun;
            self.offer(Unit { step: follower, item: Some(item) });
        } else {
            let cause = self.causes[followed].unwrap_or(followed);
            self.causes[follower].get_or_insert(cause);
            self.held.push((Unit { step: follower, item: Some(item) }, cause));
            self.end_item(follower, item, StepOutcome::Held, ended);
        }
    }

    fn is_fine(&self, step: usize, outcome: StepOutcome) -> bool {
        outcome.is_done() || (outcome.is_failure() && self.shapes[step].on_fail == OnFail::Continue)
    }

    fn end(&mut self, unit: Unit, outcome: StepOutcome, ended: &mut VecDeque<usize>) {
        let state = unit.item.and_then(|item| self.items[unit.step].as_ref()?.get(item));
        match (unit.item, state, &self.states[unit.step]) {
            (None, None, State::Begun) => {
                self.leave(unit);
                self.count_failure(unit.step, outcome);
                self.close(unit.step, outcome, ended);
            }
            (Some(item), Some(Item::Begun), State::Open { .. }) => {
                self.leave(unit);
                self.count_failure(unit.step, outcome);
                self.end_item(unit.step, item, outcome, ended);
            }
            // An end that is told twice changes nothing.
            (None | Some(_), _, _) => {}
        }
    }

    /// A unit gives its place back.
    fn leave(&mut self, unit: Unit) {
        self.begun -= 1;
        if self.counts(unit) {
            self.running -= 1;
            self.group_of(unit).into_iter().for_each(|group| group.running -= 1);
        }
    }

    /// Finding out the items of a step takes no place.
    fn counts(&self, unit: Unit) -> bool {
        let shape = &self.shapes[unit.step];
        shape.takes_place && (unit.item.is_some() || !shape.has_items)
    }

    fn count_failure(&mut self, step: usize, outcome: StepOutcome) {
        if !outcome.is_failure() {
            return;
        }
        self.failures += 1;
        if self.shapes[step].on_fail == OnFail::Stop {
            self.stopped.get_or_insert(Cause::Step(step));
        } else if self.most_failures.is_some_and(|most| self.failures >= most) {
            self.stopped.get_or_insert(Cause::Failures);
        }
    }

    fn end_item(&mut self, step: usize, item: usize, outcome: StepOutcome, ended: &mut VecDeque<usize>) {
        let (Some(items), State::Open { left }) = (&mut self.items[step], &mut self.states[step]) else { return };
        items[item] = Item::Ended(outcome);
        *left -= 1;
        let whole = (*left == 0).then(|| together(items));
        for follower in self.dependents[step].clone() {
            if self.shapes[follower].follows == Some(step) {
                self.pass(step, item, outcome, follower, ended);
            }
        }
        if let Some(outcome) = whole {
            self.close(step, outcome, ended);
        }
    }

    fn close(&mut self, step: usize, outcome: StepOutcome, ended: &mut VecDeque<usize>) {
        self.states[step] = State::Ended(outcome);
        self.left -= 1;
        ended.push_back(step);
    }

    /// Steps that wait for one that has ended may begin, or are held.
    fn settle(&mut self, mut ended: VecDeque<usize>, actions: &mut Vec<Action>) {
        while let Some(step) = ended.pop_front() {
            let Some(outcome) = self.outcome(step) else { continue };
            let is_fine = self.is_fine(step, outcome);
            for dependent in self.dependents[step].clone() {
                let State::Waiting(needs) = self.states[dependent] else { continue };
                let Shape { follows, joins, .. } = self.shapes[dependent];
                if follows == Some(step) && self.items[step].is_some() {
                    // Its items begin one by one, as soon as its other needs have ended.
                    continue;
                }
                if !is_fine && !joins {
                    self.hold(dependent, step, actions, &mut ended);
                    continue;
                }
                if follows == Some(step) {
                    // There are no items to follow.
                    self.close(dependent, StepOutcome::Skipped, &mut ended);
                    continue;
                }
                let needs = needs - 1;
                self.states[dependent] = State::Waiting(needs);
                match follows {
                    None if needs == 0 => self.offer(Unit { step: dependent, item: None }),
                    Some(followed) if needs == 0 => self.open_follower(dependent, followed, &mut ended),
                    Some(_) | None => {}
                }
            }
        }
        let held = std::mem::take(&mut self.held);
        actions.extend(held.into_iter().map(|(unit, by)| Action::Hold { unit, by: Cause::Step(by) }));
    }

    fn hold(&mut self, step: usize, by: usize, actions: &mut Vec<Action>, ended: &mut VecDeque<usize>) {
        let cause = self.causes[by].unwrap_or(by);
        self.causes[step] = Some(cause);
        actions.push(Action::Hold { unit: Unit { step, item: None }, by: Cause::Step(cause) });
        self.close(step, StepOutcome::Held, ended);
    }

    /// Begins what may begin, in the order of the file.
    fn start(&mut self, actions: &mut Vec<Action>) {
        while self.stopped.is_none() {
            let unit = match self.free.pop_first() {
                Some(unit) => unit,
                None if self.running < self.places => match self.next_ready() {
                    Some(unit) => unit,
                    None => break,
                },
                None => break,
            };
            self.begun += 1;
            if self.counts(unit) {
                self.running += 1;
                self.group_of(unit).into_iter().for_each(|group| group.running += 1);
            }
            if unit.item.is_none() {
                self.states[unit.step] = State::Begun;
            }
            let is_list = self.shapes[unit.step].has_items && unit.item.is_none();
            actions.push(if is_list { Action::List(unit.step) } else { Action::Start(unit) });
        }
        if let (Some(by), 0) = (self.stopped, self.begun) {
            self.hold_the_rest(by, actions);
        }
        if self.left == 0 && !std::mem::replace(&mut self.is_finished, true) {
            actions.push(Action::Finish);
        }
    }

    /// The first unit that may begin, and whose workflow has a place for it.
    fn next_ready(&mut self) -> Option<Unit> {
        let has_place = |unit: &&Unit| match self.shapes[unit.step].group {
            Some(group) => self.groups[group].running < self.groups[group].places,
            None => true,
        };
        let unit = *self.ready.iter().find(has_place)?;
        self.ready.remove(&unit);
        Some(unit)
    }

    fn group_of(&mut self, unit: Unit) -> Option<&mut Group> {
        let group = self.shapes[unit.step].group?;
        self.groups.get_mut(group)
    }

    fn hold_the_rest(&mut self, by: Cause, actions: &mut Vec<Action>) {
        self.ready.clear();
        self.free.clear();
        for step in 0..self.states.len() {
            match (&self.states[step], &mut self.items[step]) {
                (State::Ended(_), _) => continue,
                (State::Open { .. }, Some(items)) => {
                    for (item, state) in items.iter_mut().enumerate() {
                        if !matches!(state, Item::Ended(_)) {
                            *state = Item::Ended(StepOutcome::Held);
                            actions.push(Action::Hold { unit: Unit { step, item: Some(item) }, by });
                        }
                    }
                    self.states[step] = State::Ended(together(items));
                }
                (State::Waiting(_) | State::Begun | State::Open { .. }, _) => {
                    actions.push(Action::Hold { unit: Unit { step, item: None }, by });
                    self.states[step] = State::Ended(StepOutcome::Held);
                }
            }
            self.left -= 1;
        }
    }
}

/// How a step ended whose items ended so.
fn together(items: &[Item]) -> StepOutcome {
    let outcomes = items.iter().map(|item| match item {
        Item::Ended(outcome) => *outcome,
        Item::Waiting | Item::Begun => StepOutcome::Held,
    });
    StepOutcome::together(outcomes).unwrap_or(StepOutcome::Completed)
}

#[cfg(test)]
mod tests; // random graphs against a model
