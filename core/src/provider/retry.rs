//! Decides how long to wait for a server and whether to retry a failed request.

use std::time::Duration;

use super::Failure;
pub(crate) use crate::config::Patience;
use crate::protocol::error::Code;
use crate::protocol::remedy::{ModelNeed, Remedy, wait};

impl Patience {
    /// Returns the wait before attempt `next` (the first retry is 2), or `None` when a retry would be wrong or useless.
    ///
    /// A request is retried only if nothing of its answer was shown. The wait doubles each time, with up to a quarter
    /// of jitter. A wait that the server asks for is used exactly, unless it is too long.
    pub fn wait_before(&self, next: u32, failure: &Failure, jitter: f64) -> Option<Duration> {
        let transient = matches!(
            failure.error.code,
            Code::Network
                | Code::StreamClosed
                | Code::RateLimited
                | Code::ProviderUnavailable
                | Code::StreamIdleTimeout
        );
        if !transient || failure.after_content || next > self.attempts {
            return None;
        }
        if let Some(asked) = failure.retry_after {
            return (asked <= self.longest_wait).then_some(asked);
        }
        let doubled = self.first_wait * 2_u32.saturating_pow(next.saturating_sub(2)).min(1 << 10);
        Some(doubled.mul_f64(1.0 + jitter.clamp(0.0, 1.0) / 4.0).min(self.longest_wait))
    }
}

impl Patience {
    /// Adds the server's requested wait to the error's message and remedy if it exceeds the longest wait.
    pub fn told_to_wait(&self, mut failure: Failure) -> Failure {
        if let Some(asked) = failure.retry_after.filter(|asked| *asked > self.longest_wait) {
            failure.error.message = format!("{}; the server requests a wait of {}", failure.error.message, wait(asked));
            let later = Remedy::Retry { after_s: Some(asked.as_secs()) };
            failure.error.remedy = Remedy::any_of([later, Remedy::ChooseModel { need: ModelNeed::Any }]);
            failure.error = failure.error.with("retry_after_s", asked.as_secs());
        }
        failure
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::error::Error;

    fn failure(code: Code) -> Failure {
        Error::new(code, "x", "y").into()
    }

    #[test]
    fn only_what_may_pass_and_was_not_shown_is_tried_again() {
        let patience = Patience::default();
        let wait = |next, failure: &Failure, jitter| patience.wait_before(next, failure, jitter);
        assert_eq!(wait(2, &failure(Code::Network), 0.0), Some(Duration::from_millis(500)));
        assert_eq!(wait(4, &failure(Code::RateLimited), 1.0), Some(Duration::from_millis(2_500)));
        assert_eq!(wait(5, &failure(Code::Network), 0.0), None);
        for code in
            [Code::AuthRequired, Code::TlsFailed, Code::UsageLimitReached, Code::ContextOverflow, Code::InvalidResponse]
        {
            assert_eq!(wait(2, &failure(code), 0.0), None, "{}", code.name());
        }
        assert_eq!(wait(2, &Failure { after_content: true, ..failure(Code::Network) }, 0.0), None);
        let told = |s| Failure { retry_after: Some(Duration::from_secs(s)), ..failure(Code::RateLimited) };
        assert_eq!(wait(2, &told(30), 1.0), Some(Duration::from_secs(30)));
        assert_eq!(wait(2, &told(3_600), 0.0), None);
    }
}
