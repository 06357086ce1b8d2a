//! Random graphs with random ends, compared with a model.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// A random graph: needs point backwards, some steps have items, some follow others.
fn graphs() -> impl Strategy<Value = (Vec<Shape>, Vec<usize>, usize, Option<usize>)> {
    let step = (any::<[bool; 4]>(), any::<u32>(), 0..3_u8, 0..4_usize);
    (proptest::collection::vec(step, 1..14), 1..5_usize, proptest::option::weighted(0.2, 1..4_usize)).prop_map(
        |(steps, places, failures)| {
            let mut shapes: Vec<Shape> = Vec::new();
            let mut items = Vec::new();
            for (at, (flags, seed, on_fail, count)) in steps.into_iter().enumerate() {
                let mut needs: Vec<usize> = (0..at).filter(|need| seed >> need & 3 == 3).collect();
                let wants_to_follow = flags[0] && at > 0;
                let followed = (seed as usize >> 5) % at.max(1);
                let follows = (wants_to_follow && shapes[followed].has_items).then_some(followed);
                if let Some(followed) = follows.filter(|it| !needs.contains(it)) {
                    needs.push(followed);
                }
                shapes.push(Shape {
                    needs,
                    has_items: follows.is_some() || flags[1],
                    follows,
                    on_fail: OnFail::ALL[usize::from(on_fail)],
                    takes_place: flags[2],
                    joins: !flags[1] && follows.is_none() && flags[3] && flags[0],
                    group: (seed >> 9 & 3 == 3).then_some(0),
                });
                items.push(count);
            }
            (shapes, items, places, failures)
        },
    )
}

/// What the model knows of a run: which units have begun, and how they ended.
#[derive(Default)]
struct Model {
    begun: BTreeMap<Unit, bool>,
    ended: BTreeMap<Unit, StepOutcome>,
    running: usize,
    /// Of those, steps of another workflow, which allows one at a time.
    grouped: usize,
}

const ENDS: [StepOutcome; 8] = StepOutcome::ALL;

/// Drives a schedule with random ends, and compares every action with the model.
fn drive(shapes: &[Shape], counts: &[usize], places: usize, failures: Option<usize>, mut seed: u64) -> Model {
    let mut random = |most: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % most.max(1)
    };
    let mut schedule = Schedule::new(shapes.to_vec(), places, failures, None);
    schedule.groups = vec![Group { running: 0, places: 1 }];
    let mut model = Model::default();
    let mut open: Vec<Unit> = Vec::new();
    let mut listed: BTreeMap<usize, usize> = BTreeMap::new();
    let mut finished = false;
    let mut next = vec![Happened::Begun];
    let of_group = |unit: Unit| shapes[unit.step].group.is_some();
    let takes = |unit: Unit| shapes[unit.step].takes_place && (unit.item.is_some() || !shapes[unit.step].has_items);
    for _ in 0..10_000 {
        for what in std::mem::take(&mut next) {
            if let Happened::Ended { unit, outcome } = what {
                assert!(model.ended.insert(unit, outcome).is_none(), "one end each");
                model.running -= usize::from(takes(unit));
                model.grouped -= usize::from(takes(unit) && of_group(unit));
            }
            for action in schedule.take(what) {
                assert!(!finished, "nothing after the end");
                match action {
                    Action::Finish => finished = true,
                    Action::List(step) => {
                        assert!(shapes[step].has_items);
                        open.push(Unit { step, item: None });
                    }
                    Action::Start(unit) => {
                        assert!(model.begun.insert(unit, true).is_none(), "begun once: {unit:?}");
                        assert_needs(shapes, &schedule, &model, unit);
                        model.running += usize::from(takes(unit));
                        model.grouped += usize::from(takes(unit) && of_group(unit));
                        assert!(model.running <= places, "more than the places");
                        assert!(model.grouped <= 1, "more than the places of the other workflow");
                        open.push(unit);
                    }
                    Action::Hold { unit, .. } => {
                        assert!(!model.begun.contains_key(&unit), "it has begun: {unit:?}");
                        assert!(model.ended.insert(unit, StepOutcome::Held).is_none(), "one end each");
                    }
                }
            }
        }
        if finished {
            break;
        }
        assert!(!open.is_empty(), "something runs until the end");
        let unit = open.swap_remove(random(open.len()));
        let is_list = unit.item.is_none() && shapes[unit.step].has_items;
        next.push(match (is_list, random(8)) {
            (true, 1..) => {
                let items = counts[unit.step];
                listed.insert(unit.step, items);
                Happened::Listed { step: unit.step, items }
            }
            (_, n) => Happened::Ended { unit, outcome: if random(3) > 0 { StepOutcome::Completed } else { ENDS[n] } },
        });
        if is_list && matches!(next[0], Happened::Ended { .. }) {
            // Finding out items takes no place.
            model.running += usize::from(takes(unit));
            model.grouped += usize::from(takes(unit) && of_group(unit));
        }
    }
    assert!(finished, "every run ends");
    assert!(open.is_empty(), "with nothing under way");
    for step in 0..shapes.len() {
        assert!(schedule.outcome(step).is_some(), "every step has ended");
    }
    model
}

/// Nothing begins before what it needs.
fn assert_needs(shapes: &[Shape], schedule: &Schedule, model: &Model, unit: Unit) {
    let shape = &shapes[unit.step];
    for need in &shape.needs {
        if shape.follows == Some(*need) {
            let followed = model.ended.get(&Unit { step: *need, item: unit.item }).copied();
            let outcome = followed.expect("the item that it follows has ended");
            assert!(is_fine(&shapes[*need], outcome), "{outcome:?}");
            continue;
        }
        let outcome = schedule.outcome(*need).expect("what it needs has ended");
        assert!(shape.joins || is_fine(&shapes[*need], outcome), "{outcome:?}");
    }
}

fn is_fine(shape: &Shape, outcome: StepOutcome) -> bool {
    match outcome {
        StepOutcome::Completed | StepOutcome::Skipped => true,
        StepOutcome::Failed | StepOutcome::TimedOut | StepOutcome::Incomplete => shape.on_fail == OnFail::Continue,
        StepOutcome::Interrupted | StepOutcome::Held | StepOutcome::Waiting => false,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Broken builds: a step whose need failed begins; a held step is told twice; items that followed an item which had
    /// ended before never begin; a place is not given back.
    #[test]
    fn random_graphs_with_random_ends_agree_with_a_model((shapes, items, places, failures) in graphs(), seed: u64) {
        drive(&shapes, &items, places, failures, seed);
    }
}

#[test]
fn steps_begin_in_the_order_of_the_file_as_places_are_free() {
    let shape = |needs: &[usize]| Shape { needs: needs.to_vec(), takes_place: true, ..Shape::default() };
    let mut schedule = Schedule::new(vec![shape(&[]), shape(&[]), shape(&[]), shape(&[0, 1])], 2, None, None);
    let unit = |step| Unit { step, item: None };
    assert_eq!(schedule.take(Happened::Begun), [Action::Start(unit(0)), Action::Start(unit(1))]);
    let ended = |step, outcome| Happened::Ended { unit: unit(step), outcome };
    assert_eq!(schedule.take(ended(1, StepOutcome::Completed)), [Action::Start(unit(2))]);
    assert_eq!(schedule.take(ended(0, StepOutcome::Failed)), [Action::Hold { unit: unit(3), by: Cause::Step(0) }]);
    assert_eq!(schedule.take(ended(2, StepOutcome::Completed)), [Action::Finish]);
}

/// Broken build: the end of a step looks at all steps, so each costs more the more there are.
#[test]
fn the_schedule_costs_the_same_for_a_step_of_ten_and_of_a_thousand() {
    let shape = |needs: Vec<usize>| Shape { needs, takes_place: true, ..Shape::default() };
    let wide = |n: usize| (0..n).map(|_| shape(Vec::new())).collect::<Vec<_>>();
    let chain = |n: usize| (0..n).map(|at| shape(at.checked_sub(1).into_iter().collect())).collect::<Vec<_>>();
    let each = |_: usize| vec![Shape { has_items: true, ..shape(Vec::new()) }];
    let seconds_a_step = |shapes: Vec<Shape>, n: usize| {
        let began = std::time::Instant::now();
        let mut schedule = Schedule::new(shapes, 8, None, None);
        let mut next = VecDeque::from([Happened::Begun]);
        let mut done = 0;
        while let Some(what) = next.pop_front() {
            next.extend(schedule.take(what).into_iter().filter_map(|action| match action {
                Action::List(step) => Some(Happened::Listed { step, items: n }),
                Action::Start(unit) => Some(Happened::Ended { unit, outcome: StepOutcome::Completed }),
                Action::Hold { .. } | Action::Finish => None,
            }));
            done += usize::from(matches!(what, Happened::Ended { .. }));
        }
        assert_eq!(done, n);
        began.elapsed().as_secs_f64() / n as f64
    };
    for (what, shapes) in [("wide", &wide as &dyn Fn(usize) -> Vec<Shape>), ("chain", &chain), ("each", &each)] {
        for n in [10, 100, 1_000] {
            // The least of several, because other programs run beside this one.
            let least = (0..20).map(|_| seconds_a_step(shapes(n), n)).fold(f64::MAX, f64::min);
            assert!(least <= 20e-6, "{what}, {n} steps: {:.1} µs a step", least * 1e6);
        }
    }
}
