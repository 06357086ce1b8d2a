//! A test that fails now and then: the order of a set is another one in each process.

use serde_json::json;

use super::{Task, call, round};

const TAGS: &str = "\
def tags(text):
    \"\"\"The words after #, each once.\"\"\"
    return list({word[1:] for word in text.split() if word.startswith('#')})
";

const TESTS: &str = "\
import unittest

from tags import tags


class Tags(unittest.TestCase):
    def test_each_once(self):
        self.assertEqual(tags('#a #b #a #c'), ['a', 'b', 'c'])
";

/// The seeds make some of the runs fail, and always the same ones.
const SEVEN_TIMES: &str =
    "for seed in 1 2 3 4 5 6 7; do PYTHONHASHSEED=$seed python3 -m unittest 2>&1 | tail -1; done | sort | uniq -c";

pub(super) fn task() -> Task {
    let edit = json!({
        "path": "tags.py",
        "old_text": "list({word[1:] for word in text.split() if word.startswith('#')})",
        "new_text": "list(dict.fromkeys(word[1:] for word in text.split() if word.startswith('#')))",
    });
    Task {
        name: "a flaky test",
        prompt: "test_each_once fails now and then in CI. Find out why.",
        files: vec![("tags.py", TAGS.into()), ("test_tags.py", TESTS.into())],
        rounds: [
            vec![
                round([
                    call("bash", json!({ "command": SEVEN_TIMES }), &["FAILED (failures=1)", "OK"]),
                    call("read", json!({ "path": "tags.py" }), &["return list({"]),
                ]),
                round([
                    call("edit", edit, &["Edited tags.py:3 (+1 −1)"]),
                    call("bash", json!({ "command": SEVEN_TIMES }), &["7 OK"]),
                ]),
            ],
            vec![
                round([call(
                    "run",
                    json!({ "command": format!("bash -c '{SEVEN_TIMES}' ; cat tags.py") }),
                    &["FAILED (failures=1)", "OK", "return list({"],
                )]),
                round([call(
                    "run",
                    json!({
                        "command": format!("edit tags.py 'list({{word' 'list(dict.fromkeys(word' && edit tags.py \"('#')}})\" \"('#')))\" && bash -c '{SEVEN_TIMES}'"),
                    }),
                    &["Edited tags.py:3 (+1 −1)", "7 OK"],
                )]),
            ],
        ],
        most: [40_300, 16_700],
        check: |shell| assert!(shell.read("tags.py").contains("dict.fromkeys"), "it is fixed"),
    }
}
