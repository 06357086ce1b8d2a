//! The limits of other workflows whose steps are a part of the run.

use std::time::Instant;

use super::{Runner, UnitEnd};
use protocol::error::{Code, Error};
use protocol::event::Cost;

/// What the steps of another workflow came to in this part of the run.
#[derive(Debug)]
pub(super) struct Spent {
    began: Instant,
    tokens: u64,
    cost: Cost,
    failures: usize,
}

impl<'a> Runner<'a> {
    /// A step of another workflow has ended.
    pub(super) fn spend(&mut self, step: usize, end: &UnitEnd) {
        let Some(spent) = self.run.checked.steps[step].outer().and_then(|outer| self.spent.get_mut(outer)) else {
            return;
        };
        spent.failures += usize::from(end.outcome.is_failure());
        if let Some(ended) = &end.ended {
            spent.tokens = spent.tokens.saturating_add(ended.usage.input).saturating_add(ended.usage.output);
            spent.cost += ended.cost;
        }
    }

    /// The seconds that a step may take which begins now, where its workflow bounds them.
    ///
    /// # Errors
    /// The limit of its workflow that is reached.
    pub(super) fn room_of(&mut self, step: usize, own: Option<u64>) -> Result<Option<u64>, Error> {
        let checked: &'a super::Checked = &self.run.checked;
        let outer = checked.steps[step].outer();
        let Some((outer, limits)) = outer.and_then(|outer| Some((outer, checked.inner_limits.get(outer)?))) else {
            return Ok(own);
        };
        let fresh = Spent { began: Instant::now(), tokens: 0, cost: Cost::default(), failures: 0 };
        let spent = self.spent.entry(outer).or_insert(fresh);
        let reached = |code: Code, what: String| {
            let fix = format!("resume the run, with more `limits` in the workflow that `{outer}` uses");
            Error::new(code, format!("`{outer}` reached the limit of its workflow: {what}"), fix)
        };
        if let Some(most) = limits.tokens.filter(|most| spent.tokens >= *most) {
            return Err(reached(Code::BudgetReached, format!("{} of {most} tokens", spent.tokens)));
        }
        if let Some(most) = limits.cost.filter(|most| spent.cost.usd >= *most) {
            return Err(reached(Code::BudgetReached, format!("${:.2} of ${most:.2}", spent.cost.usd)));
        }
        if let Some(most) = limits.failures.filter(|most| spent.failures >= *most) {
            return Err(reached(Code::TooManyFailures, format!("{most} failed steps")));
        }
        let Some(seconds) = limits.seconds else { return Ok(own) };
        match seconds.saturating_sub(spent.began.elapsed().as_secs()) {
            0 => Err(reached(Code::DeadlineReached, format!("{seconds} s"))),
            left => Ok(Some(own.map_or(left, |own| own.min(left)))),
        }
    }
}
