//! How often a server that pixir keeps running has died, and how long its next start waits for that.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Waits before the next start, by the number of deaths in a row before it.
const WAITS: [Duration; 5] =
    [Duration::ZERO, Duration::ZERO, Duration::from_secs(1), Duration::from_secs(4), Duration::from_secs(15)];
/// Deaths that are older do not count, and after so long without one a row of them is over.
const MEMORY: Duration = Duration::from_secs(300);
/// After so many deaths a server is not started again unless the user says so.
const MOST_DEATHS: usize = 4;
/// More deaths of a row are not remembered.
const MAX_ROW: usize = 8;

/// When a server died, newest last.
#[derive(Debug, Default)]
pub struct Deaths(Mutex<VecDeque<Instant>>);

impl Deaths {
    /// The server has died just now.
    pub fn add(&self) {
        let mut deaths = self.0.lock();
        if deaths.back().is_some_and(|it| it.elapsed() >= MEMORY) {
            deaths.clear();
        }
        let over = (deaths.len() + 1).saturating_sub(MAX_ROW);
        deaths.drain(..over);
        deaths.push_back(Instant::now());
    }

    /// The user wants it to start.
    pub fn forget(&self) {
        self.0.lock().clear();
    }

    /// How long the next start waits, for the user.
    pub fn wait_words(&self) -> String {
        match self.next_start() {
            Ok(wait) => format!("{} s after its end", wait.as_secs()),
            Err(_) => "when the user says so".to_owned(),
        }
    }

    /// How long the next start waits.
    ///
    /// # Errors
    /// The number of deaths in the last five minutes, if they are too many for another start.
    pub fn next_start(&self) -> Result<Duration, usize> {
        next_start(&self.0.lock().iter().map(Instant::elapsed).collect::<Vec<_>>())
    }
}

/// The same from how long ago each death was, newest last.
fn next_start(deaths: &[Duration]) -> Result<Duration, usize> {
    let recent = deaths.iter().filter(|ago| **ago < MEMORY).count();
    match recent {
        0 => Ok(Duration::ZERO),
        MOST_DEATHS.. => Err(recent),
        _ => Ok(WAITS[deaths.len().min(WAITS.len() - 1)]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken builds: waits of 0, 0, 1 and 4 s; deaths of an hour ago count; a row never fails.
    #[test]
    fn a_server_that_dies_again_and_again_starts_after_longer_waits_and_then_not_at_all() {
        let next = |ago: &[u64]| next_start(&ago.iter().map(|it| Duration::from_secs(*it)).collect::<Vec<_>>());
        let after = |seconds: u64| Ok(Duration::from_secs(seconds));
        assert_eq!(next(&[]), after(0), "the first start");
        assert_eq!(next(&[1]), after(0));
        assert_eq!(next(&[9, 1]), after(1));
        assert_eq!(next(&[20, 9, 1]), after(4));
        assert_eq!(next(&[400, 200, 100, 1]), after(15), "three of them in five minutes");
        assert_eq!(next(&[200, 100, 50, 1]), Err(4));
        assert_eq!(next(&[900, 600, 301]), after(0), "the row is over");
    }
}
