//! The summary of a test run, read from the output of the runner.

use super::quantity;

/// The summary of the test runner that wrote this text, if its exact form is known. cargo and go print one summary for each
/// binary or package, so they are only added up if all of the output is there.
pub(super) fn summary(text: &str, is_whole: bool) -> Option<String> {
    let last = |one_line: fn(&str) -> Option<Counts>| text.lines().rev().find_map(one_line);
    let counts = last(|line| pytest(line).or_else(|| jest(line)).or_else(|| nextest(line)).or_else(|| rspec(line)))
        .or_else(|| unittest(text))
        .or_else(|| node(text))
        .or_else(|| mocha(text));
    match counts {
        Some(counts) => Some(counts.words()),
        None if is_whole => cargo(text).or_else(|| go(text)),
        None => None,
    }
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

    /// Adds a list like `1 failed, 5 passed, 6 total`; `None` if a part is not a count and a known word.
    fn add(mut self, list: &str, separator: &str) -> Option<Counts> {
        for part in list.split(separator) {
            let (count, word) = part.trim().split_once(' ')?;
            let count: u64 = count.parse().ok()?;
            match word {
                "failed" | "error" | "errors" => self.failed += count,
                "passed" => self.passed += count,
                "skipped" | "ignored" => self.skipped += count,
                "total" | "todo" | "measured" | "deselected" | "xfailed" | "xpassed" | "warning" | "warnings" => {}
                _ => return None,
            }
        }
        Some(self)
    }
}

/// `3 failed, 547 passed in 4.10s`, with or without a bar of `=` around it.
fn pytest(line: &str) -> Option<Counts> {
    let line = line.trim_matches('=').trim();
    let (list, took) = line.rsplit_once(" in ")?;
    took.split(' ').next()?.strip_suffix('s')?.parse::<f64>().ok()?;
    Counts::default().add(list, ", ")
}

/// Jest and Vitest: `Tests:       1 failed, 5 passed, 6 total`, `      Tests  1 failed | 5 passed (6)`.
fn jest(line: &str) -> Option<Counts> {
    let rest = line.trim_start().strip_prefix("Tests")?;
    match rest.strip_prefix(':') {
        Some(list) => Counts::default().add(list, ", "),
        None => Counts::default().add(rest.strip_prefix("  ")?.rsplit_once(" (")?.0, " | "),
    }
}

/// `     Summary [   0.123s] 5 tests run: 3 passed (1 flaky, 1 slow), 1 failed, 1 timed out, 2 skipped`; a run that was
/// stopped early has run `3/5 tests`.
fn nextest(line: &str) -> Option<Counts> {
    let (took, rest) = line.trim_start().strip_prefix("Summary [")?.split_once("s] ")?;
    took.trim().parse::<f64>().ok()?;
    let (run, list) = rest.split_once(": ")?;
    run.strip_suffix(" tests run").or_else(|| run.strip_suffix(" test run"))?;
    let mut counts = Counts::default();
    let mut in_brackets = false;
    for part in list.split(", ") {
        let starts_in_brackets = in_brackets;
        in_brackets = (in_brackets || part.contains('(')) && !part.contains(')');
        if starts_in_brackets {
            continue;
        }
        let part = part.split_once(" (").map_or(part, |(part, _)| part);
        match part.split_once(' ')? {
            (count, "passed") => counts.passed += count.parse::<u64>().ok()?,
            (count, "skipped") => counts.skipped += count.parse::<u64>().ok()?,
            (count, "failed" | "timed out" | "exec failed") => counts.failed += count.parse::<u64>().ok()?,
            _ => return None,
        }
    }
    Some(counts)
}

/// `5 examples, 1 failure, 1 pending, 1 error occurred outside of examples`
fn rspec(line: &str) -> Option<Counts> {
    let mut parts = line.split(", ");
    let (all, "example" | "examples") = parts.next()?.split_once(' ')? else { return None };
    let (failed, "failure" | "failures") = parts.next()?.split_once(' ')? else { return None };
    let (all, failed) = (all.parse::<u64>().ok()?, failed.parse::<u64>().ok()?);
    let mut counts = Counts { failed, ..Counts::default() };
    for part in parts {
        match part.split_once(' ')? {
            (count, "pending") => counts.skipped = count.parse().ok()?,
            (count, "error occurred outside of examples" | "errors occurred outside of examples") => {
                counts.failed += count.parse::<u64>().ok()?;
            }
            _ => return None,
        }
    }
    counts.passed = all.checked_sub(failed + counts.skipped)?;
    Some(counts)
}

/// Python's unittest: `Ran 4 tests in 0.018s`, an empty line, and `OK` or `FAILED (failures=1, errors=1, skipped=1)`.
fn unittest(text: &str) -> Option<Counts> {
    let mut below = Vec::new();
    let ran: u64 = text.lines().rev().find_map(|line| {
        let ran = line.strip_prefix("Ran ").and_then(|rest| rest.split_once(" in "));
        let Some((count, took)) = ran else {
            below.push(line);
            return None;
        };
        took.strip_suffix('s')?.parse::<f64>().ok()?;
        count.strip_suffix(" tests").or_else(|| count.strip_suffix(" test"))?.parse().ok()
    })?;
    let verdict = below.into_iter().rev().find(|line| !line.is_empty())?;
    let list = match verdict {
        "OK" => "",
        _ => verdict.strip_prefix("OK (").or_else(|| verdict.strip_prefix("FAILED ("))?.strip_suffix(')')?,
    };
    let (mut counts, mut expected) = (Counts::default(), 0);
    for part in list.split(", ").filter(|part| !part.is_empty()) {
        let (word, count) = part.split_once('=')?;
        let count: u64 = count.parse().ok()?;
        match word {
            "failures" | "errors" | "unexpected successes" => counts.failed += count,
            "skipped" => counts.skipped += count,
            "expected failures" => expected += count,
            _ => return None,
        }
    }
    counts.passed = ran.saturating_sub(counts.failed + counts.skipped + expected);
    Some(counts)
}

/// Node's own runner: the lines `tests 3`, `suites 0`, `pass 1`, `fail 1`, `cancelled 0`, `skipped 1`, `todo 0`, each after
/// `#` or `ℹ`. A test that was cancelled has not passed.
fn node(text: &str) -> Option<Counts> {
    let lines: Vec<&str> = text.lines().collect();
    let count = |line: Option<&&str>, word: &str| {
        let line = line?;
        let rest = line.strip_prefix("# ").or_else(|| line.strip_prefix("ℹ "))?;
        rest.strip_prefix(word)?.strip_prefix(' ')?.parse::<u64>().ok()
    };
    (0..lines.len()).rev().find_map(|at| {
        count(lines.get(at), "tests")?;
        count(lines.get(at + 1), "suites")?;
        let failed = count(lines.get(at + 3), "fail")? + count(lines.get(at + 4), "cancelled")?;
        let (passed, skipped) = (count(lines.get(at + 2), "pass")?, count(lines.get(at + 5), "skipped")?);
        Some(Counts { failed, passed, skipped })
    })
}

/// Mocha: `  5 passing (10ms)`, and below it `  1 pending` and `  2 failing`.
fn mocha(text: &str) -> Option<Counts> {
    let mut lines = text.lines().rev();
    let mut below: Vec<&str> = Vec::new();
    let passed = lines.find_map(|line| {
        let found = line.strip_prefix("  ").and_then(|line| line.split_once(" passing ("));
        let Some((count, took)) = found else {
            below.push(line);
            return None;
        };
        let took = took.strip_suffix(')')?.trim_end_matches(char::is_alphabetic);
        took.parse::<f64>().ok()?;
        count.parse::<u64>().ok()
    })?;
    let mut counts = Counts { passed, ..Counts::default() };
    for line in below.into_iter().rev().take_while(|line| !line.is_empty()) {
        match line.strip_prefix("  ")?.split_once(' ')? {
            (count, "pending") => counts.skipped = count.parse().ok()?,
            (count, "failing") => counts.failed = count.parse().ok()?,
            _ => return None,
        }
    }
    Some(counts)
}

/// cargo's line for one binary of tests: `test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; …`.
fn cargo(text: &str) -> Option<String> {
    let mut sum = None;
    for line in text.lines() {
        let Some((verdict, list)) = line.strip_prefix("test result: ").and_then(|rest| rest.split_once(". ")) else {
            continue;
        };
        let first = list.split("; ").take(3).collect::<Vec<_>>().join("; ");
        if matches!(verdict, "ok" | "FAILED") {
            sum = sum.unwrap_or(Counts::default()).add(&first, "; ").or(sum);
        }
    }
    sum.map(Counts::words)
}

/// go prints a line for each package, and with `-v` one for each test; without, only packages can be counted.
fn go(text: &str) -> Option<String> {
    let (mut tests, mut packages) = (Counts::default(), Counts::default());
    for line in text.lines() {
        let is_test = |verdict: &str| line.strip_prefix(verdict).is_some_and(|rest| rest.ends_with("s)"));
        if is_test("--- PASS: ") {
            tests.passed += 1;
        } else if is_test("--- FAIL: ") {
            tests.failed += 1;
        } else if is_test("--- SKIP: ") {
            tests.skipped += 1;
        }
        match line.split('\t').collect::<Vec<_>>()[..] {
            ["ok  ", _, _, ..] => packages.passed += 1,
            ["FAIL", _, _, ..] => packages.failed += 1,
            _ => {}
        }
    }
    let all = packages.passed + packages.failed;
    match all {
        0 => None,
        _ if tests.passed > 0 => Some(tests.words()),
        _ if packages.failed == 0 => Some(format!("{} passed", quantity(all, "package", "packages"))),
        _ => Some(format!("{} of {} failed", packages.failed, quantity(all, "package", "packages"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken builds: one that takes the first summary of several; one that takes any line with a number and `passed`.
    #[test]
    fn the_summaries_of_test_runners_are_known_by_their_exact_form() {
        let told = |text: &str| summary(text, true);
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
            (
                "     Summary [   0.009s] 6 tests run: 3 passed (1 flaky, 1 slow), 2 failed, 1 timed out, 4 skipped\n",
                "3 failed, 3 passed, 4 skipped",
            ),
            ("     Summary [   1.200s] 3/5 tests run: 2 passed, 1 failed, 0 skipped\n", "1 failed, 2 passed"),
            ("Finished in 0.01 seconds\n5 examples, 1 failure, 1 pending\n", "1 failed, 3 passed, 1 skipped"),
            ("0 examples, 0 failures, 1 error occurred outside of examples\n", "1 failed"),
            (
                "----\nRan 4 tests in 0.018s\n\nFAILED (failures=1, errors=1, skipped=1)\n",
                "2 failed, 1 passed, 1 skipped",
            ),
            ("----\nRan 1 test in 0.001s\n\nOK\n", "1 passed"),
            ("Ran 3 tests in 0.001s\n\nOK (expected failures=1)\nOK, done.\n", "2 passed"),
            (
                "1..3\n# tests 4\n# suites 0\n# pass 1\n# fail 1\n# cancelled 1\n# skipped 1\n# todo 0\n# duration_ms 6.5\n",
                "2 failed, 1 passed, 1 skipped",
            ),
            (
                "ℹ tests 1\nℹ suites 0\nℹ pass 1\nℹ fail 0\nℹ cancelled 0\nℹ skipped 0\nℹ todo 0\n\n✖ failing tests:\n",
                "1 passed",
            ),
            ("  5 passing (10ms)\n  1 pending\n  2 failing\n\n  1) adds:\n", "2 failed, 5 passed, 1 skipped"),
            ("\n\n  1 passing (2s)\n\n", "1 passed"),
            (
                "ok  \tx/a\t0.043s\n--- FAIL: TestB (0.00s)\nFAIL\nFAIL\tx/b\t0.002s\n?   \tx/c\t[no test files]\nFAIL\n",
                "1 of 2 packages failed",
            ),
            ("ok  \tx/a\t(cached)\n", "1 package passed"),
            (
                "--- PASS: TestA (0.00s)\n    --- PASS: TestA/sub (0.00s)\n--- SKIP: TestS (0.00s)\nPASS\nok  \tx/a\t0.019s\n",
                "1 passed, 1 skipped",
            ),
            (" Test Files  1 passed (1)\n      Tests  1 failed | 5 passed (6)\n", "1 failed, 5 passed"),
        ];
        for (text, expected) in cases {
            assert_eq!(told(text).as_deref(), Some(expected), "{text}");
        }
        let others = [
            "",
            "5 passed\n",
            "the 12 tests passed in 3.92s\n",
            "Tests: see below\n",
            "5 passed in all\n",
            "ok\n",
            "OK\n",
            "  5 passing thoughts\n",
            "5 examples, and more\n",
            "# tests 3\n# of pass 1\n",
            "Summary [of all] 5 tests run: 5 passed\n",
            "--- PASS: TestA (0.00s)\n",
        ];
        for text in others {
            assert_eq!(told(text), None, "{text}");
        }
    }

    /// Broken build: the parts of a run are added up although some are left out of the output.
    #[test]
    fn the_parts_of_a_run_are_not_added_up_from_a_cut_output() {
        for parts in ["test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured\n", "ok  \tx/a\t0.043s\n"] {
            assert_eq!(summary(parts, false), None);
        }
        assert_eq!(summary("5 passed in 0.10s\n", false).as_deref(), Some("5 passed"));
    }
}
