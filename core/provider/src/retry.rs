//! Decides whether a failed request is tried again, and after which wait.

use std::time::Duration;

use tokio::time::Instant;

use super::Failure;
use super::starting::IS_STARTING;
pub use config::Patience;
use protocol::error::Code;
use protocol::remedy::{ModelNeed, Remedy, wait};

/// How often an answer that broke off is asked for again.
const MAX_BREAKS: u32 = 2;
/// The longest wait that pixir chooses itself.
const LONGEST_BACKOFF: Duration = Duration::from_secs(20);
/// The same where the server loads its model.
const STARTING_BACKOFF: Duration = Duration::from_secs(2);
/// From this attempt on, a server that asks for no wait at all still gets one.
const MANY_ATTEMPTS: u32 = 5;

/// What a failure says about the next attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// The server is overloaded or unreachable, and nothing of the answer arrived.
    Passing,
    /// The answer broke off or was malformed. Asking again may help, but not for long.
    Broken,
    /// The same request would fail again.
    Lasting,
}

impl Fault {
    fn of(failure: &Failure) -> Fault {
        let passes = matches!(
            failure.error.code,
            Code::Network
                | Code::StreamClosed
                | Code::RateLimited
                | Code::ProviderUnavailable
                | Code::StreamIdleTimeout
        );
        match (passes, failure.after_content, failure.malformed) {
            (_, _, true) | (true, true, false) => Fault::Broken,
            (true, false, false) => Fault::Passing,
            (false, _, false) => Fault::Lasting,
        }
    }
}

/// Whether the same request may succeed later.
#[cfg(test)]
pub(super) fn may_pass(failure: &Failure) -> bool {
    Fault::of(failure) != Fault::Lasting
}

/// A scheduled attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retry {
    /// The number of the attempt, from 2.
    pub attempt: u32,
    /// The most attempts, where their number is limited.
    pub of: Option<u32>,
    /// The wait before the attempt.
    pub wait: Duration,
    /// The patience that is left after the wait, where time is the limit.
    pub left: Option<Duration>,
}

/// The attempts of one request so far.
#[derive(Debug, Default)]
pub struct Retries {
    failed: u32,
    breaks: u32,
    /// The time of the first failure.
    since: Option<Instant>,
    /// Waits that the server asked for. They do not use up the patience.
    asked: Duration,
}

impl Retries {
    /// Returns the next attempt after a failure at `now`, or `None` when another would be wrong or useless.
    ///
    /// Overload and lost connections are retried for [`Patience::total`], answers that broke off twice. The wait
    /// doubles each time, with up to a quarter of jitter. A wait that the server asks for is used exactly; a rate limit
    /// is waited for as long as the server says.
    pub fn next(&mut self, patience: &Patience, failure: &Failure, now: Instant, jitter: f64) -> Option<Retry> {
        self.failed += 1;
        let fault = Fault::of(failure);
        let attempt = self.failed + 1;
        if fault == Fault::Lasting || patience.total.is_zero() || patience.attempts.is_some_and(|most| attempt > most) {
            return None;
        }
        // A server that loads its model says so, and is asked often, for as long as it may take to begin an answer.
        let is_starting = failure.error.details.contains_key(IS_STARTING);
        let total = if is_starting { patience.local_head.max(patience.total) } else { patience.total };
        let longest = if is_starting { STARTING_BACKOFF } else { LONGEST_BACKOFF };
        let spent = now.duration_since(*self.since.get_or_insert(now)).saturating_sub(self.asked);
        let remaining = total.saturating_sub(spent);
        let backoff = |nth: u32| {
            let doubled = patience.first_wait * 2_u32.saturating_pow(nth.saturating_sub(1)).min(1 << 10);
            doubled.min(longest).mul_f64(1.0 + jitter.clamp(0.0, 1.0) / 4.0)
        };
        if fault == Fault::Broken {
            self.breaks += 1;
            let of = Some(self.failed + 1 + MAX_BREAKS - self.breaks.min(MAX_BREAKS));
            return (self.breaks <= MAX_BREAKS).then(|| Retry { attempt, of, wait: backoff(self.breaks), left: None });
        }
        let wait = match failure.retry_after {
            Some(asked) if failure.error.code == Code::RateLimited => {
                self.asked = self.asked.saturating_add(asked);
                if self.asked > patience.longest_wait || remaining.is_zero() {
                    return None;
                }
                if attempt < MANY_ATTEMPTS { asked } else { asked.max(patience.first_wait) }
            }
            Some(asked) if asked > remaining => return None,
            Some(asked) if attempt < MANY_ATTEMPTS => asked,
            Some(asked) => asked.max(patience.first_wait),
            None => backoff(self.failed).min(remaining),
        };
        (!remaining.is_zero()).then(|| {
            let left = if failure.error.code == Code::RateLimited && failure.retry_after.is_some() {
                remaining
            } else {
                remaining.saturating_sub(wait)
            };
            Retry { attempt, of: patience.attempts, wait, left: Some(left) }
        })
    }

    /// Whether another Provider may succeed where this failure ended the attempts.
    pub fn may_pass_elsewhere(failure: &Failure) -> bool {
        match Fault::of(failure) {
            Fault::Passing | Fault::Broken => true,
            Fault::Lasting => failure.error.code == Code::UsageLimitReached,
        }
    }
}

/// Adds the server's requested wait to the error's message and remedy if the wait is longer than `patience` allows.
pub fn with_requested_wait(patience: &Patience, mut failure: Failure) -> Failure {
    let most = if failure.error.code == Code::RateLimited { patience.longest_wait } else { patience.total };
    if let Some(asked) = failure.retry_after.filter(|asked| *asked > most) {
        failure.error.message = format!("{}; the server requests a wait of {}", failure.error.message, wait(asked));
        let later = Remedy::Retry { after_s: Some(asked.as_secs()) };
        failure.error.remedy = Remedy::any_of([later, Remedy::ChooseModel { need: ModelNeed::Any }]);
        failure.error = failure.error.with("retry_after_s", asked.as_secs());
    }
    failure
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::error::Error;

    fn failure(code: Code) -> Failure {
        Error::new(code, "x", "y").into()
    }

    /// Fails again and again, each time after exactly the wait, and returns the waits in milliseconds.
    fn waits(patience: &Patience, failure: &Failure) -> Vec<u128> {
        let (mut retries, mut now, mut waits) = (Retries::default(), Instant::now(), Vec::new());
        while let Some(retry) = retries.next(patience, failure, now, 0.0) {
            now += retry.wait;
            waits.push(retry.wait.as_millis());
            assert!(waits.len() < 1_000, "it never gives up");
        }
        waits
    }

    /// Broken build: one that counts attempts. It gives up after the third wait, at 3.5 s.
    #[test]
    fn patience_is_time_and_the_last_attempt_is_at_its_end() {
        let patience = Patience::default();
        let passing = waits(&patience, &failure(Code::ProviderUnavailable));
        assert_eq!(passing[..5], [500, 1_000, 2_000, 4_000, 8_000]);
        assert_eq!(passing.iter().sum::<u128>(), 180_000);
        let few = Patience { attempts: Some(3), ..patience };
        assert_eq!(waits(&few, &failure(Code::Network)), [500, 1_000]);
        let none = Patience { total: Duration::ZERO, ..patience };
        assert_eq!(waits(&none, &failure(Code::Network)), [0_u128; 0]);
    }

    #[test]
    fn an_answer_that_broke_off_is_asked_for_twice_more() {
        let patience = Patience::default();
        let cut = Failure { after_content: true, ..failure(Code::StreamClosed) };
        let odd = Failure { malformed: true, ..failure(Code::InvalidResponse) };
        for broken in [&cut, &odd] {
            assert_eq!(waits(&patience, broken), [500, 1_000]);
        }
        for code in
            [Code::AuthRequired, Code::TlsFailed, Code::UsageLimitReached, Code::ContextOverflow, Code::InvalidResponse]
        {
            assert_eq!(waits(&patience, &failure(code)), [0_u128; 0], "{}", code.name());
        }
    }

    /// Broken build: one that caps the wait, or counts it as patience: the second or third wait is missing.
    #[test]
    fn a_rate_limit_is_waited_for_as_long_as_the_server_says() {
        let patience = Patience::default();
        let told = |code, s| Failure { retry_after: Some(Duration::from_secs(s)), ..failure(code) };
        assert_eq!(waits(&patience, &told(Code::RateLimited, 600)), [600_000; 3]);
        assert_eq!(waits(&patience, &told(Code::RateLimited, 3_600)), [0_u128; 0]);
        assert_eq!(waits(&patience, &told(Code::ProviderUnavailable, 100)), [100_000]);
        // A server that asks for no wait is not asked without end.
        let at_once = waits(&patience, &told(Code::ProviderUnavailable, 0));
        assert!(at_once.len() < 400 && at_once[3] == 500, "{at_once:?}");
        let hint = with_requested_wait(&patience, told(Code::RateLimited, 3_600));
        assert!(hint.error.message.ends_with("the server requests a wait of 60 min"), "{}", hint.error.message);
    }
}
