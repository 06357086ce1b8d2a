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
        let by_cost = Budget::new(None, Some(0.5));
        by_cost.spend(Usage::default(), Cost { usd: 0.5, ..Cost::default() });
        assert_eq!(by_cost.check().expect_err("all of it").details["usd"], 0.5);
    }
}
