//! What `edit`, `apply_patch` and the names of arguments forgive: nothing but the place that a call names changes.

use std::fs;

use serde_json::{Value, json};

use crate::shell::{Shell, tool};

/// Numbers that are data, and texts that look like numbered lines of another place: file, old text, new text.
const DATA: [(&str, &str, &str); 14] = [
    ("title\n10\n20\n\n30\n", "10\n25\n", "ten\ntwenty-five\n"),
    ("alpha\n\nbeta\n", "1\n2\n", "hello\nworld\n"),
    ("host\n", "8080:host", "9090"),
    ("host\n", "8080:host", "9090:host"),
    ("[ports]\nhost\n", "1:host", "80"),
    ("a\tb\n1\tc\n", "2\tb", "x"),
    ("x\n\n\ny\n", "    1\n", "    2\n"),
    ("x\n", "    1\n", "y\n"),
    ("id|name\nkey\n", "7|key", "x"),
    ("one\ntwo\nthree\n", "2\ttwo\n3\tfour", "x"),
    ("- 1\n- 2\n", "3\n4\n5\n", ""),
    ("same\nother\nsame\n", "3\tsame", "x"),
    ("50: x\ny\n", "51: y", "52"),
    ("\n\n\n", "2→\n3→\n", "gone"),
];

/// Broken build: ce783d9e, which takes off what looks like line numbers, finds the rest anywhere, and says success.
#[test]
fn numbers_that_are_data_are_not_taken_for_line_numbers() {
    for (text, old, new) in DATA {
        let shell = Shell::new(&[("f", text)]);
        let args = json!({ "path": "f", "old_text": old, "new_text": new });
        let error = tool(&shell, "edit", &args, &["--write"]).error();
        let code = error["code"].as_str().expect("a code");
        assert!(["NO_MATCH", "NOT_UNIQUE"].contains(&code), "{text:?} {old:?}: {error}");
        assert!(error["error"]["message"].as_str().is_some_and(|it| it.contains("old_text")), "{error}");
        let edits = json!({ "path": "f", "edits": [{ "old_text": old, "new_text": new, "replace_all": true }] });
        assert_ne!(tool(&shell, "edit", &edits, &["--write"]).code, 0, "{text:?} {old:?}");
        let quoted = |text: &str| format!("'{text}'");
        let line = format!("edit f {} {}", quoted(old), quoted(new));
        assert_ne!(shell.run(["run", &line, "--json", "--write"]).code, 0, "{text:?} {old:?}");
        assert_eq!(shell.read("f"), text, "{old:?}");
    }
}

/// Broken build: one that knows no line numbers any more.
#[test]
fn lines_that_are_copied_from_read_with_their_numbers_are_edited() {
    let text = "fn a() {\r\n    one();\r\n\r\n    two();\r\n}\r\n";
    for (old, new, wanted) in [
        ("     2\t    one();", "     2\t    1;", "    1;\r\n\r\n    two();"),
        ("2:    one();\n3:\n4:    two();", "    1;", "    1;"),
        ("2→    one();\n3→\n4→    two();", "2→    1;\n3→    2;", "    1;\r\n    2;"),
        ("4|    two();", "    8080:80\n    9090:90", "    one();\r\n\r\n    8080:80\r\n    9090:90"),
        ("2\t    one();\n3\n4\t    two();", "", ""),
    ] {
        let shell = Shell::new(&[("f", text)]);
        let args = json!({ "path": "f", "old_text": old, "new_text": new });
        let ran = tool(&shell, "edit", &args, &["--write"]);
        assert_eq!(ran.code, 0, "{old:?}: {}", ran.stderr);
        let output = ran.document()["result"]["output"].as_str().expect("text").to_owned();
        assert!(output.contains("note: old_text had line numbers"), "{output}");
        assert_eq!(shell.read("f"), format!("fn a() {{\r\n{wanted}\r\n}}\r\n"), "{old:?}");
    }
}

/// A file, a patch that ce783d9e applies somewhere or in part, and what the error says.
const PATCHES: [(&str, &str, &str); 14] = [
    // The blanks at the end of a line are a line break in Markdown; the patch does not name them.
    ("one  \ntwo\n", "@@\n-one\n+1", "differ from it only in whitespace"),
    ("a\nx\nb\nx\n", "@@\n-x\n+y", "occur 2 times, at lines 2, 4"),
    // In order, but the patch does not say that it is.
    ("x\na\nx\n", "@@\n-a\n+b\n@@\n-x\n+y", "occur 2 times, at lines 1, 3"),
    // The heading names two lines.
    ("def f():\n  x\nclass B:\ndef f():\n  x\n", "@@ def f():\n-  x\n+  y", "occur 2 times, at lines 2, 5"),
    ("## A\n\n- x\n## B\n\n- x\n", "@@ ## A\n-- x\n+- y", "occur 2 times, at lines 3, 6"),
    // An empty line below the hunk may be a line of the file, or not.
    ("x\n1\nx\n\n", "@@\n-x\n+y\n\n@@\n-1\n+2", "occur 2 times, at lines 1, 3"),
    // Numbers that are wrong in one hunk name no place in the next one.
    ("a\nb\nx\nc\nx\nd\n", "@@ -1,1 +1,1 @@\n-b\n+B\n@@ -3,1 +3,1 @@\n-x\n+y", "occur 2 times, at lines 3, 5"),
    ("a\nb\n", "@@\n+c", "does not say where its lines belong"),
    ("a\nb\n", "@@ -9,0 +10,1 @@\n+c", "does not say where its lines belong"),
    ("h\na\nh\nb\n", "@@ h\n+c", "occurs 2 times, at lines 1, 3"),
    ("x\nlast\n", "@@\n-x\n+y\n*** End of File", "are not the end of the file"),
    // Lines that begin with `--` and `++` are no header.
    ("-- a\nb\n", "--- a\n+++ c\n@@\n-b\n+d\n-e", "its old lines do not occur"),
    ("\\a\nb\n", "@@\n\\a\n-b\n+c", "begins with none of blank, - and +"),
    ("a\n", "@@\n-a\n+b\n*** End Patch\n*** Update File: f\n@@\n-b\n+c", "stands outside of"),
];

/// Broken build: ce783d9e, which takes the first of several places, or leaves out a part of the patch.
#[test]
fn a_patch_that_does_not_name_one_place_changes_nothing_and_says_which_there_are() {
    for (text, hunks, told) in PATCHES {
        let shell = Shell::new(&[("f", text)]);
        let patch = format!("*** Begin Patch\n*** Update File: f\n{hunks}\n*** End Patch\n");
        let ran = tool(&shell, "apply_patch", &json!({ "patch": patch }), &["--write"]);
        assert_ne!(ran.code, 0, "{text:?} {hunks}: {}", shell.read("f"));
        let error = ran.error();
        assert!(error["error"]["message"].as_str().is_some_and(|it| it.contains(told)), "{hunks}: {error}");
        assert_eq!(shell.read("f"), text, "{hunks}");
    }
}

/// Parts of a diff of git that no file tool can make.
const DIFFS: [&str; 6] = [
    "diff --git a/f b/f\nold mode 100644\nnew mode 100755\n",
    "diff --git a/f b/f\nold mode 100644\nnew mode 100755\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n",
    "diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+f\n\\ No newline at end of file\n",
    "diff --git a/run b/run\nnew file mode 100755\n--- /dev/null\n+++ b/run\n@@ -0,0 +1 @@\n+#!/bin/sh\n",
    "--- /dev/null\n+++ b/n\n@@ -0,0 +1,2 @@\n+a\n b\n",
    "--- /dev/null\n+++ \"b/n\\377\"\n@@ -0,0 +1 @@\n+a\n",
];

/// Broken build: ce783d9e, which leaves out the mode, writes the target of a symlink as a file, or drops a line, and says
/// success.
#[test]
fn what_a_patch_cannot_do_is_refused_as_a_whole() {
    for diff in DIFFS {
        let shell = Shell::new(&[("f", "a\n")]);
        let ran = tool(&shell, "apply_patch", &json!({ "patch": diff }), &["--write"]);
        assert_ne!(ran.code, 0, "{diff}");
        let left: Vec<_> =
            fs::read_dir(shell.workspace()).expect("a folder").flatten().map(|it| it.file_name()).collect();
        assert_eq!((shell.read("f").as_str(), left), ("a\n", vec!["f".into()]), "{diff}");
    }
    // An empty file whose name has blanks.
    let shell = Shell::new(&[("f", "a\n")]);
    let diff = "diff --git a/x y.txt b/x y.txt\nnew file mode 100644\nindex 0000000..e69de29\n";
    assert_eq!(tool(&shell, "apply_patch", &json!({ "patch": diff }), &["--write"]).code, 0);
    assert_eq!(shell.read("x y.txt"), "");
}

/// Calls with two names for one argument, or with something that no argument says: the tool, the arguments.
fn ambiguous() -> Vec<(&'static str, Value)> {
    vec![
        ("edit", json!({ "file_path": "a", "filePath": "b", "old_text": "x", "new_text": "y" })),
        ("edit", json!({ "path": "a", "file_path": "b", "old_text": "x", "new_text": "y" })),
        ("edit", json!({ "path": "a", "old_string": "x", "oldText": "1", "new_text": "y" })),
        ("edit", json!({ "path": "a", "edits": [{ "path": "b", "old_text": "x", "new_text": "y" }] })),
        ("write", json!({ "path": "a", "contents": "y", "file_text": "z" })),
        ("write", json!({ "file": "a", "filepath": "b", "content": "y" })),
        ("Bash", json!({ "command": ["touch", 5, "made"] })),
        ("Bash", json!({ "command": "touch made", "timeout": "soon" })),
    ]
}

/// Broken build: ce783d9e, which takes one of two names and drops the other.
#[test]
fn two_names_for_one_argument_are_refused() {
    for (name, args) in ambiguous() {
        let shell = Shell::new(&[("a", "x\n1\n"), ("b", "x\n1\n")]);
        let ran = tool(&shell, name, &args, &["--write"]);
        assert_eq!(ran.error()["code"], "INVALID_ARGS", "{args}: {}", ran.stderr);
        assert_eq!((shell.read("a"), shell.read("b")), ("x\n1\n".into(), "x\n1\n".into()), "{args}");
        assert!(!shell.workspace().join("made").exists(), "{args}");
    }
    // An edit of the run language has the same fields.
    let shell = Shell::new(&[("a", "x\n"), ("e", r#"[{ "path": "b", "old_text": "x", "new_text": "y" }]"#)]);
    assert_ne!(shell.run(["run", "cat e | edit a", "--json", "--write"]).code, 0);
    assert_eq!(shell.read("a"), "x\n");
}
