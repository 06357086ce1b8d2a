//! One wrong operator, found by the tests of the project.

use serde_json::json;

use super::{Task, call, round};

const NUMBER: &str = "\
\"\"\"Numbers for people.\"\"\"

POWERS = [(10**9, 'billion'), (10**6, 'million'), (10**3, 'thousand')]


def intword(value):
    \"\"\"12400000 as '12.4 million'.\"\"\"
    for power, word in POWERS:
        if value > power:
            return f'{value / power:.1f} {word}'
    return str(value)


def intcomma(value):
    \"\"\"12345 as '12,345'.\"\"\"
    return f'{value:,}'
";

const TESTS: &str = "\
import unittest

from humane.number import intcomma, intword


class Numbers(unittest.TestCase):
    def test_words(self):
        self.assertEqual(intword(12_400_000), '12.4 million')
        self.assertEqual(intword(999), '999')

    def test_a_word_begins_at_its_power(self):
        self.assertEqual(intword(1_000_000), '1.0 million')

    def test_commas(self):
        self.assertEqual(intcomma(12345), '12,345')
";

pub(super) fn task() -> Task {
    let tests = "python3 -m unittest 2>&1 | tail -15";
    Task {
        name: "a seeded bug",
        prompt: "CI is red. Find out why and fix it.",
        files: vec![
            ("humane/__init__.py", String::new()),
            ("humane/number.py", NUMBER.into()),
            ("test_number.py", TESTS.into()),
            ("AGENTS.md", "Run the tests with `python3 -m unittest`.\n".into()),
        ],
        rounds: [
            vec![
                round([
                    call(
                        "bash",
                        json!({ "command": tests }),
                        &["FAILED (failures=1)", "test_a_word_begins_at_its_power"],
                    ),
                    call("grep", json!({ "pattern": "def intword" }), &["humane/number.py:6"]),
                ]),
                round([call("read", json!({ "path": "humane/number.py" }), &["9", "if value > power:"])]),
                round([
                    call(
                        "edit",
                        json!({ "path": "humane/number.py", "old_text": "value > power", "new_text": "value >= power" }),
                        &["Edited humane/number.py:9 (+1 −1)"],
                    ),
                    call("bash", json!({ "command": tests }), &["OK"]),
                ]),
            ],
            vec![
                round([call(
                    "run",
                    json!({ "command": "python3 -m unittest ; cat humane/number.py" }),
                    &["FAILED (failures=1)", "if value > power:"],
                )]),
                round([call(
                    "run",
                    json!({ "command": "edit humane/number.py 'value > power' 'value >= power' && python3 -m unittest" }),
                    &["Edited humane/number.py:9 (+1 −1)", "OK"],
                )]),
            ],
        ],
        most: [56_500, 18_400],
        check: |shell| assert!(shell.read("humane/number.py").contains("if value >= power:"), "it is fixed"),
    }
}
