//! A format more: code, command line, tests and documentation change together, by one patch.

use serde_json::json;

use super::{Task, call, round};

const FORMATS: &str = "\
\"\"\"Formats of a table.\"\"\"


def plain(rows):
    return '\\n'.join('  '.join(row) for row in rows)


def pipes(rows):
    return '\\n'.join('| ' + ' | '.join(row) + ' |' for row in rows)


FORMATS = {
    'plain': plain,
    'pipes': pipes,
}
";

const MAIN: &str = "\
import sys

from table.formats import FORMATS


def main(argv):
    name, *rows = argv
    if name not in FORMATS:
        sys.exit(f'no format {name}: use plain or pipes')
    print(FORMATS[name]([row.split(',') for row in rows]))


if __name__ == '__main__':
    main(sys.argv[1:])
";

const TESTS: &str = "\
import unittest

from table.formats import FORMATS


class Formats(unittest.TestCase):
    def test_pipes(self):
        self.assertEqual(FORMATS['pipes']([['a', 'b']]), '| a | b |')
";

const README: &str = "\
# table

Formats:

- `plain`: columns apart by blanks
- `pipes`: columns between pipes
";

const PATCH: &str = "\
*** Begin Patch
*** Update File: table/formats.py
@@ def pipes(rows):
     return '\\n'.join('| ' + ' | '.join(row) + ' |' for row in rows)
 
 
+def dots(rows):
+    return '\\n'.join(' . '.join(row) for row in rows)
+
+
 FORMATS = {
     'plain': plain,
     'pipes': pipes,
+    'dots': dots,
 }
*** Update File: table/__main__.py
@@ def main(argv):
-        sys.exit(f'no format {name}: use plain or pipes')
+        sys.exit(f'no format {name}: use plain, pipes or dots')
*** Update File: test_formats.py
@@
         self.assertEqual(FORMATS['pipes']([['a', 'b']]), '| a | b |')
+
+    def test_dots(self):
+        self.assertEqual(FORMATS['dots']([['a', 'b'], ['c', 'd']]), 'a . b\\nc . d')
*** Update File: README.md
@@
 - `pipes`: columns between pipes
+- `dots`: columns between dots
*** Add File: CHANGELOG.md
+- The format `dots`.
*** End Patch
";

pub(super) fn task() -> Task {
    const CHANGED: &[&str] =
        &["Edited table/formats.py:12 (+5 −0)", "Edited table/__main__.py:9 (+1 −1)", "Created CHANGELOG.md"];
    Task {
        name: "a feature in five files",
        prompt: "Add a format `dots` that puts ` . ` between columns, with tests and docs.",
        files: vec![
            ("table/__init__.py", String::new()),
            ("table/formats.py", FORMATS.into()),
            ("table/__main__.py", MAIN.into()),
            ("test_formats.py", TESTS.into()),
            ("README.md", README.into()),
        ],
        rounds: [
            vec![
                round([
                    call(
                        "grep",
                        json!({ "pattern": "pipes" }),
                        &["table/formats.py", "README.md", "table/__main__.py"],
                    ),
                    call("read", json!({ "path": "table/formats.py" }), &["def pipes(rows):"]),
                    call("read", json!({ "path": "table/__main__.py" }), &["use plain or pipes"]),
                    call("read", json!({ "path": "test_formats.py" }), &["class Formats"]),
                    call("read", json!({ "path": "README.md" }), &["columns between pipes"]),
                ]),
                round([
                    call("apply_patch", json!({ "patch": PATCH }), CHANGED),
                    call(
                        "bash",
                        json!({ "command": "python3 -m unittest && python3 -m table dots a,b c,d" }),
                        &["OK", "a . b"],
                    ),
                ]),
            ],
            vec![
                round([call(
                    "run",
                    json!({ "command": "grep -rn pipes . ; cat table/formats.py table/__main__.py test_formats.py README.md" }),
                    &["def pipes(rows):", "use plain or pipes", "class Formats", "columns between pipes"],
                )]),
                round([
                    call("run", json!({ "command": "apply_patch", "stdin": PATCH }), CHANGED),
                    call(
                        "run",
                        json!({ "command": "python3 -m unittest && python3 -m table dots a,b c,d" }),
                        &["OK", "a . b"],
                    ),
                ]),
            ],
        ],
        most: [45_000, 19_800],
        check: |shell| {
            assert!(shell.read("README.md").contains("`dots`"), "the docs have it");
            assert_eq!(shell.read("CHANGELOG.md"), "- The format `dots`.\n");
        },
    }
}
