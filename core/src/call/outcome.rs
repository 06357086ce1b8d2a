//! What came of a call, in a few words for the user: counts from the tool, or the summary of a test runner.

/// What a tool states about its outcome.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing that its exit code and its changes do not show.
    #[default]
    Plain,
    /// What it has counted: `120 lines`.
    Counted(String),
    /// It ran programs, and one of them may be a test runner, whose summary is in the output.
    OfPrograms,
}

impl Outcome {
    /// Counted things: `1 line`, `120 lines`.
    pub(crate) fn counted(count: u64, one: &str, many: &str) -> Outcome {
        Outcome::Counted(quantity(count, one, many))
    }

    /// The words, once the whole output is known. `is_whole` is false if parts of the output are left out.
    pub(super) fn words(self, stdout: &str, stderr: &str, is_whole: bool) -> Option<String> {
        match self {
            Outcome::Plain => None,
            Outcome::Counted(words) => Some(words),
            Outcome::OfPrograms => tests(stdout, is_whole).or_else(|| tests(stderr, is_whole)),
        }
    }
}

/// `1 line`, `120 lines`.
pub(crate) fn quantity(count: u64, one: &str, many: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{count} {many}") }
}

/// The counts of a test run.
#[derive(Debug, Default, Clone, Copy)]
struct Counts {
    failed: u64,
    passed: u64,
    skipped: u64,
}

impl Counts {
    fn words(self) -> String {
        let all = [(self.failed, "failed"), (self.passed, "passed"), (self.skipped, "skipped")];
        let shown = all.into_iter().filter(|(count, _)| *count > 0);
        let text = shown.map(|(count, word)| format!("{count} {word}")).collect::<Vec<_>>().join(", ");
        if text.is_empty() { "0 tests".to_owned() } else { text }
    }

    /// Adds a list like `1 failed, 5 passed, 6 total`; false if a part is not a count and a known word.
    fn add(&mut self, list: &str, separator: &str) -> bool {
        list.split(separator).all(|part| {
            let Some((count, word)) = part.trim().split_once(' ') else { return false };
            let Ok(count) = count.parse::<u64>() else { return false };
            match word {
                "failed" | "error" | "errors" => self.failed += count,
                "passed" => self.passed += count,
                "skipped" | "ignored" => self.skipped += count,
                "total" | "todo" | "measured" | "deselected" | "xfailed" | "xpassed" | "warning" | "warnings" => {}
                _ => return false,
            }
            true
        })
    }
}

/// `3 failed, 547 passed in 4.10s`, with or without a bar of `=` around it.
fn pytest(line: &str) -> Option<String> {
    let line = line.trim_matches('=').trim();
    let (list, took) = line.rsplit_once(" in ")?;
    took.split(' ').next()?.strip_suffix('s')?.parse::<f64>().ok()?;
    let mut counts = Counts::default();
    counts.add(list, ", ").then(|| counts.words())
}

/// Jest and Vitest: `Tests:       1 failed, 5 passed, 6 total`, `      Tests  1 failed | 5 passed (6)`.
fn jest(line: &str) -> Option<String> {
    let rest = line.trim_start().strip_prefix("Tests")?;
    let mut counts = Counts::default();
    let is_known = match rest.strip_prefix(':') {
        Some(list) => counts.add(list, ", "),
        None => counts.add(rest.strip_prefix("  ")?.rsplit_once(" (")?.0, " | "),
    };
    is_known.then(|| counts.words())
}

/// cargo's line for one binary of tests: `test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; …`.
fn cargo(line: &str, sum: &mut Counts) -> bool {
    let Some((verdict, list)) = line.strip_prefix("test result: ").and_then(|rest| rest.split_once(". ")) else {
        return false;
    };
    let first = list.split("; ").take(3).collect::<Vec<_>>().join("; ");
    matches!(verdict, "ok" | "FAILED") && sum.add(&first, "; ")
}

/// The summary of the test runner that wrote this text, if its exact form is known. cargo prints one summary for each
/// binary, so they are only added up if all of the output is there.
fn tests(text: &str, is_whole: bool) -> Option<String> {
    if let Some(words) = text.lines().rev().find_map(|line| pytest(line).or_else(|| jest(line))) {
        return Some(words);
    }
    let mut sum = Counts::default();
    let found = text.lines().filter(|line| cargo(line, &mut sum)).count();
    (is_whole && found > 0).then(|| sum.words())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken builds: one that takes the first summary of several; one that takes any line with a number and `passed`.
    #[test]
    fn the_summaries_of_test_runners_are_known_by_their_exact_form() {
        let told = |text: &str| Outcome::OfPrograms.words(text, "", true);
        let cases = [
            ("....\n550 passed in 3.92s\n", "550 passed"),
            (
                "=== 3 failed, 547 passed, 2 skipped, 1 warning in 64.10s (0:01:04) ===\n",
                "3 failed, 547 passed, 2 skipped",
            ),
            ("=== 1 failed, 1 error in 0.10s ===\n", "2 failed"),
            (
                "test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.01s\n\ntest result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured\n",
                "2 failed, 15 passed, 1 skipped",
            ),
            ("test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured\n", "0 tests"),
            ("Tests:       1 failed, 5 passed, 6 total\nTime: 1 s\n", "1 failed, 5 passed"),
            (" Test Files  1 passed (1)\n      Tests  1 failed | 5 passed (6)\n", "1 failed, 5 passed"),
        ];
        for (text, expected) in cases {
            assert_eq!(told(text).as_deref(), Some(expected), "{text}");
        }
        for text in
            ["", "5 passed\n", "the 12 tests passed in 3.92s\n", "Tests: see below\n", "5 passed in all\n", "ok\n"]
        {
            assert_eq!(told(text), None, "{text}");
        }
    }

    /// Broken build: the parts of a run are added up although some are left out of the output.
    #[test]
    fn the_parts_of_a_run_are_not_added_up_from_a_cut_output() {
        let cargo = "test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured\n";
        assert_eq!(Outcome::OfPrograms.words(cargo, "", false), None);
        assert_eq!(Outcome::OfPrograms.words("5 passed in 0.10s\n", "", false).as_deref(), Some("5 passed"));
    }
}
