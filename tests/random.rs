//! Property tests that can be repeated: every one prints its seed when it fails.

use std::env;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};

use proptest::test_runner::{Config, RngSeed};

/// The configuration of a property test with this many cases. `PROPTEST_RNG_SEED` sets the seed; without it each run
/// tries others.
#[expect(clippy::print_stderr, reason = "the harness shows it when the test fails, and only then")]
pub(crate) fn config(cases: usize) -> Config {
    let seed = seed_of_this_run();
    eprintln!("PROPTEST_RNG_SEED={seed} repeats these cases");
    // The seed repeats a failure, so no file of past failures is needed.
    let cases = u32::try_from(cases).expect("a number of cases");
    Config { cases, rng_seed: RngSeed::Fixed(seed), failure_persistence: None, ..Config::default() }
}

/// The seed that `PROPTEST_RNG_SEED` gives, or a random one.
pub(crate) fn seed_of_this_run() -> u64 {
    seed(env::var("PROPTEST_RNG_SEED").ok().as_deref())
}

fn seed(given: Option<&str>) -> u64 {
    match given {
        Some(text) => text.parse().expect("PROPTEST_RNG_SEED is a number"),
        None => RandomState::new().build_hasher().finish(),
    }
}

/// Numbers that a seed repeats.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) % most
    }

    pub(crate) fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    pub(crate) fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.index(all.len())]
    }

    /// The place of one of so many.
    pub(crate) fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.below(u64::try_from(len).expect("few"))).expect("few")
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::num::u64;
    use proptest::strategy::{Strategy as _, ValueTree as _};
    use proptest::test_runner::TestRunner;

    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_cases() {
        let cases = |seed| {
            let mut runner = TestRunner::new(Config { rng_seed: RngSeed::Fixed(seed), ..config(1) });
            vec(u64::ANY, 8).new_tree(&mut runner).expect("a case").current()
        };
        assert_eq!(cases(7), cases(7));
        assert_ne!(cases(7), cases(8));
        assert_eq!(seed(Some("6061")), 6061);
        assert_ne!(seed(None), seed(None));
    }
}
