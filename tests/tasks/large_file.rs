//! One function among thousands: the model finds its line, reads around it, and changes it, without reading the file.

use std::fmt::Write as _;

use serde_json::json;

use super::{Task, call, round};

/// The functions of the file; each has four lines.
const FUNCTIONS: usize = 4_000;
/// The one that is wrong.
const WRONG: usize = 2_718;

fn table() -> String {
    (0..FUNCTIONS).fold(String::new(), |mut text, n| {
        let factor = if n == WRONG { n + 1 } else { n };
        writeln!(text, "def times_{n}(value):\n    return value * {factor}\n\n").expect("a string takes it");
        text
    })
}

/// They run with `-B`: Python would take the code that it compiled before the edit, which has the same size and, on a quick
/// machine, the same second.
const TESTS: &str = "\
import unittest

import table


class Table(unittest.TestCase):
    def test_all(self):
        wrong = [n for n in range(4000) if getattr(table, f'times_{n}')(1) != n]
        self.assertEqual(wrong, [])
";

pub(super) fn task() -> Task {
    Task {
        name: "a large file",
        prompt: "One function of table.py (16,000 lines) is wrong. Fix it.",
        files: vec![("table.py", table()), ("test_table.py", TESTS.into())],
        rounds: [
            vec![
                round([call("bash", json!({ "command": "python3 -B -m unittest 2>&1 | tail -12" }), &["[2718]"])]),
                round([call("grep", json!({ "pattern": "def times_2718\\(", "path": "table.py" }), &["10873"])]),
                round([call("read", json!({ "path": "table.py", "offset": 10_873, "limit": 3 }), &["value * 2719"])]),
                round([
                    call(
                        "edit",
                        json!({
                            "path": "table.py",
                            "old_text": "def times_2718(value):\n    return value * 2719",
                            "new_text": "def times_2718(value):\n    return value * 2718",
                        }),
                        &["Edited table.py:10874 (+1 −1)"],
                    ),
                    call("bash", json!({ "command": "python3 -B -m unittest 2>&1 | tail -2" }), &["OK"]),
                ]),
            ],
            vec![
                round([call("run", json!({ "command": "python3 -B -m unittest" }), &["[2718]"])]),
                round([call(
                    "run",
                    json!({ "command": "grep -n -A 2 'def times_2718(' table.py" }),
                    &["10873", "value * 2719"],
                )]),
                round([call(
                    "run",
                    json!({
                        "command": "edit table.py && python3 -B -m unittest",
                        "stdin": "[{\"old_text\": \"times_2718(value):\\n    return value * 2719\", \"new_text\": \"times_2718(value):\\n    return value * 2718\"}]",
                    }),
                    &["Edited table.py:10874 (+1 −1)", "OK"],
                )]),
            ],
        ],
        most: [67_500, 23_700],
        check: |shell| assert!(!shell.read("table.py").contains("value * 2719\n\n\ndef times_2719"), "it is fixed"),
    }
}
