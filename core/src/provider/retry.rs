//! When to try a failed request again, and after how long.

use std::time::Duration;

use super::Failure;
use crate::error::Code;

/// Tries in all.
pub const ATTEMPTS: u32 = 4;
/// The longest that a Provider's wish to wait is honoured.
const MAX_WAIT: Duration = Duration::from_secs(120);

/// How long to wait before attempt `next` (from 2), or `None` when trying again would be wrong or useless.
///
/// Only what was not shown yet is asked for again. The wait doubles from half a second, with up to a quarter of jitter.
pub fn wait_before(next: u32, failure: &Failure, jitter: f64) -> Option<Duration> {
    let transient = matches!(
        failure.error.code,
        Code::Network | Code::StreamClosed | Code::RateLimited | Code::ProviderUnavailable
    );
    if !transient || failure.after_content || next > ATTEMPTS {
        return None;
    }
    if let Some(asked) = failure.retry_after {
        return (asked <= MAX_WAIT).then_some(asked);
    }
    let base = Duration::from_millis(500) * 2_u32.pow(next.saturating_sub(2));
    Some(base.mul_f64(1.0 + jitter.clamp(0.0, 1.0) / 4.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    fn failure(code: Code) -> Failure {
        Error::new(code, "x", "y").into()
    }

    #[test]
    fn only_what_may_pass_and_was_not_shown_is_tried_again() {
        assert_eq!(wait_before(2, &failure(Code::Network), 0.0), Some(Duration::from_millis(500)));
        assert_eq!(wait_before(4, &failure(Code::RateLimited), 1.0), Some(Duration::from_millis(2_500)));
        assert_eq!(wait_before(5, &failure(Code::Network), 0.0), None);
        assert_eq!(wait_before(2, &failure(Code::AuthRequired), 0.0), None);
        assert_eq!(wait_before(2, &Failure { after_content: true, ..failure(Code::Network) }, 0.0), None);
        let told = |s| Failure { retry_after: Some(Duration::from_secs(s)), ..failure(Code::RateLimited) };
        assert_eq!(wait_before(2, &told(30), 0.0), Some(Duration::from_secs(30)));
        assert_eq!(wait_before(2, &told(3_600), 0.0), None);
    }
}
