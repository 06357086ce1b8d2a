//! Limits on the tokens and the money that Turns may spend.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use protocol::error::{Code, Error};
use protocol::event::{Cost, Usage};
use protocol::remedy::{Limit, Remedy};

/// A budget that requests draw from. Clones share it, so that a tree of Sessions has one limit.
#[derive(Debug, Clone, Default)]
pub struct Budget(Arc<Pool>);

#[derive(Debug, Default)]
struct Pool {
    /// `u64::MAX` is no limit.
    max_tokens: AtomicU64,
    grant: Option<Grant>,
    max_nano_usd: Option<u64>,
    tokens: AtomicU64,
    /// Tokens of requests that are under way.
    reserved: AtomicU64,
    nano_usd: AtomicU64,
}

/// Tells the user how many tokens are used, of how many.
pub type TellLow = Box<dyn Fn(u64, u64) + Send + Sync>;

/// A limit that the user can raise while Turns run.
struct Grant {
    /// The tokens of the beginning, and of each grant.
    tokens: u64,
    tell_low: TellLow,
    /// The user was told that most of it is used. Locked while that is sent: a question for more, which any of the
    /// Sessions may ask, then comes behind it.
    is_told: Mutex<bool>,
    /// Held while the user is asked, so that Sessions that run out together ask once.
    answer: tokio::sync::Mutex<Granted>,
}

impl std::fmt::Debug for Grant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Grant").field("tokens", &self.tokens).field("is_told", &self.is_told).finish_non_exhaustive()
    }
}

/// What the user has said about a budget that is used up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Granted {
    /// Nothing yet, or that it is raised: the next time it is used up, the user is asked.
    #[default]
    Ask,
    /// That it is not raised.
    Refused,
}

/// The user is told when this part of a budget that can be raised is used, in percent.
const TOLD_AT: u64 = 80;

/// Atomics hold integers, so money is counted in billionths of a dollar, which is finer than the price of a token.
const NANO: f64 = 1e9;

impl Budget {
    /// Creates a budget of tokens and US dollars; `None` means no limit.
    pub fn new(max_tokens: Option<u64>, max_cost_usd: Option<f64>) -> Budget {
        let max_nano_usd = max_cost_usd.map(|usd| (usd * NANO) as u64);
        let max_tokens = AtomicU64::new(max_tokens.unwrap_or(u64::MAX));
        Budget(Arc::new(Pool { max_tokens, max_nano_usd, ..Pool::default() }))
    }

    /// Creates a budget of tokens that the user can raise. `tell_low` is called once when most of it is used, and again
    /// after it was raised; it must not block.
    pub fn raisable(tokens: u64, tell_low: TellLow) -> Budget {
        let grant = Grant { tokens, tell_low, is_told: Mutex::default(), answer: tokio::sync::Mutex::default() };
        let max_tokens = AtomicU64::new(tokens);
        Budget(Arc::new(Pool { max_tokens, grant: Some(grant), ..Pool::default() }))
    }

    /// What the user has said about raising it; `None` for a budget that is not raised.
    pub async fn granted(&self) -> Option<tokio::sync::MutexGuard<'_, Granted>> {
        match &self.0.grant {
            Some(grant) => Some(grant.answer.lock().await),
            None => None,
        }
    }

    /// Adds as many tokens as it began with, and returns that number.
    pub fn raise(&self) -> u64 {
        let Some(grant) = &self.0.grant else { return 0 };
        self.0.max_tokens.fetch_add(grant.tokens, Ordering::AcqRel);
        *grant.is_told.lock() = false;
        grant.tokens
    }

    /// Tells the user, once, when most of a budget that can be raised is used.
    pub fn tell_if_low(&self) {
        let Some(grant) = &self.0.grant else { return };
        let mut is_told = grant.is_told.lock();
        let (used, most) = self.used();
        if !*is_told && used.saturating_mul(100) >= most.saturating_mul(TOLD_AT) {
            *is_told = true;
            (grant.tell_low)(used, most);
        }
    }

    /// The tokens that are used, and the most.
    pub fn used(&self) -> (u64, u64) {
        (self.0.tokens.load(Ordering::Acquire), self.0.max_tokens.load(Ordering::Acquire))
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
    pub fn reserve(&self, tokens: u64) -> Result<Reserved, Error> {
        let pool = &*self.0;
        let most = pool.max_tokens.load(Ordering::Acquire);
        if most < u64::MAX {
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
        let (reached, limit) = if tokens >= pool.max_tokens.load(Ordering::Relaxed) {
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
pub struct Reserved {
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
        // Told once at 80 %, and again after it was raised.
        let told = Arc::new(Mutex::new(Vec::new()));
        let telling = Arc::clone(&told);
        let raisable = Budget::raisable(1_000, Box::new(move |used, most| telling.lock().push((used, most))));
        let use_up = |input| {
            raisable.spend(Usage { input, ..Usage::default() }, Cost::default());
            raisable.tell_if_low();
            std::mem::take(&mut *told.lock())
        };
        assert_eq!(use_up(799), []);
        assert_eq!((use_up(1), use_up(0)), (vec![(800, 1_000)], vec![]));
        assert_eq!(use_up(200), []);
        assert_eq!(raisable.check().expect_err("all of it").code, Code::BudgetReached);
        assert_eq!(raisable.raise(), 1_000);
        assert!(raisable.check().is_ok() && use_up(0).is_empty());
        assert_eq!(use_up(600), [(1_600, 2_000)]);
        let by_cost = Budget::new(None, Some(0.5));
        by_cost.spend(Usage::default(), Cost { usd: 0.5, ..Cost::default() });
        assert_eq!(by_cost.check().expect_err("all of it").details["usd"], 0.5);
    }
}
