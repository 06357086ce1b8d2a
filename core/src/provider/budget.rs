//! Limits on the tokens and the money that Turns may spend.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::protocol::error::{Code, Error};
use crate::protocol::event::{Cost, Usage};
use crate::protocol::remedy::{Limit, Remedy};

/// A budget that requests draw from. Clones share it, so that a tree of Sessions has one limit.
#[derive(Debug, Clone, Default)]
pub struct Budget(Arc<Pool>);

#[derive(Debug, Default)]
struct Pool {
    max_tokens: Option<u64>,
    max_nano_usd: Option<u64>,
    tokens: AtomicU64,
    /// Tokens of requests that are under way.
    reserved: AtomicU64,
    nano_usd: AtomicU64,
}

/// Atomics hold integers, so money is counted in billionths of a dollar, which is finer than the price of a token.
const NANO: f64 = 1e9;

impl Budget {
    /// Creates a budget of tokens and US dollars; `None` means no limit.
    pub fn new(max_tokens: Option<u64>, max_cost_usd: Option<f64>) -> Budget {
        let max_nano_usd = max_cost_usd.map(|usd| (usd * NANO) as u64);
        Budget(Arc::new(Pool { max_tokens, max_nano_usd, ..Pool::default() }))
    }

    /// Deducts what a Provider reported for a request.
    pub fn spend(&self, usage: Usage, cost: Cost) {
        self.0.tokens.fetch_add(usage.input.saturating_add(usage.output), Ordering::Relaxed);
        self.0.nano_usd.fetch_add((cost.usd * NANO) as u64, Ordering::Relaxed);
    }

    /// Sets tokens aside for a request, so that requests that are sent together do not overrun the budget together.
    ///
    /// # Errors
    /// `BUDGET_REACHED` when what is left is not enough.
    pub(crate) fn reserve(&self, tokens: u64) -> Result<Reserved, Error> {
        let pool = &*self.0;
        if let Some(most) = pool.max_tokens {
            let before = pool.reserved.fetch_add(tokens, Ordering::AcqRel);
            let spent = pool.tokens.load(Ordering::Acquire);
            let reserved = Reserved { budget: self.clone(), tokens };
            if spent.saturating_add(before).saturating_add(tokens) > most {
                let left = most.saturating_sub(spent.saturating_add(before));
                drop(reserved);
                let message = format!("the next request may need {tokens} tokens, and {left} of {most} are left");
                let more = Remedy::RaiseLimit { limit: Limit::Tokens };
                let fix = Remedy::any_of(["report what is known so far".into(), more]);
                return Err(Error::new(Code::BudgetReached, message, fix).with("tokens", spent));
            }
            return Ok(reserved);
        }
        Ok(Reserved { budget: self.clone(), tokens: 0 })
    }

    /// Whether another request may be sent.
    ///
    /// # Errors
    /// `BUDGET_REACHED` when the budget is used up.
    pub fn check(&self) -> Result<(), Error> {
        let pool = &*self.0;
        let (tokens, nano_usd) = (pool.tokens.load(Ordering::Relaxed), pool.nano_usd.load(Ordering::Relaxed));
        let (reached, limit) = if pool.max_tokens.is_some_and(|most| tokens >= most) {
            (format!("{tokens} tokens"), Limit::Tokens)
        } else if pool.max_nano_usd.is_some_and(|most| nano_usd >= most) {
            (format!("${:.4}", nano_usd as f64 / NANO), Limit::Cost)
        } else {
            return Ok(());
        };
        Err(Error::new(
            Code::BudgetReached,
            format!("the turn reached its budget: it used {reached} without a final answer"),
            Remedy::any_of(["send a message to continue".into(), Remedy::RaiseLimit { limit }]),
        )
        .with("tokens", tokens)
        .with("usd", nano_usd as f64 / NANO))
    }
}

/// Tokens set aside, until the request has its answer.
#[derive(Debug)]
pub(crate) struct Reserved {
    budget: Budget,
    tokens: u64,
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.budget.0.reserved.fetch_sub(self.tokens, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_draw_from_one_pool() {
        let budget = Budget::new(Some(100), Some(0.5));
        let child = budget.clone();
        child.spend(Usage { input: 60, output: 39, ..Usage::default() }, Cost { usd: 0.25, ..Cost::default() });
        assert!(budget.check().is_ok());
        budget.spend(Usage { output: 1, ..Usage::default() }, Cost::default());
        assert_eq!(child.check().expect_err("100 of 100").code, Code::BudgetReached);
        let shared = Budget::new(Some(100), None);
        let first = shared.reserve(60).expect("60 of 100");
        assert_eq!(shared.reserve(60).expect_err("40 are left").code, Code::BudgetReached);
        drop(first);
        assert!(shared.reserve(60).is_ok());
        let by_cost = Budget::new(None, Some(0.5));
        by_cost.spend(Usage::default(), Cost { usd: 0.5, ..Cost::default() });
        assert_eq!(by_cost.check().expect_err("all of it").details["usd"], 0.5);
    }
}
