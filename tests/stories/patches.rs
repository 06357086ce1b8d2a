//! `apply_patch`: several files by one patch, all or nothing.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::process::Command;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::undo::{done, tree_of};
use crate::driver::{Pixir, calls, says};
use crate::shell::{Shell, entries, tool};

const FILES: [(&str, &str); 3] = [
    ("src/a.rs", "fn a() {\n    one();\n    two();\n}\n"),
    ("src/b.rs", "fn b() {\r\n    one();\r\n}\r\n"),
    ("old.txt", "kept\n"),
];

const PATCH: &str = "*** Begin Patch
*** Update File: src/a.rs
@@ fn a() {
-    one();
+    first();
     two();
*** Update File: src/b.rs
*** Move to: lib/b.rs
@@
-    one();
+    first();
+    second();
*** Add File: new/c.txt
+c
*** Delete File: old.txt
*** End Patch
";

fn assert_patched(shell: &Shell) {
    assert_eq!(shell.read("src/a.rs"), "fn a() {\n    first();\n    two();\n}\n");
    assert_eq!(shell.read("lib/b.rs"), "fn b() {\r\n    first();\r\n    second();\r\n}\r\n");
    assert_eq!(shell.read("new/c.txt"), "c\n");
    assert!(!shell.workspace().join("old.txt").exists() && !shell.workspace().join("src/b.rs").exists());
}

const TOLD: &str = "Edited src/a.rs:2 (+1 −1)\nMoved src/b.rs → lib/b.rs:2 (+2 −1)\nCreated new/c.txt (2B, +1 −0)\nDeleted old.txt (−1)\n";

/// Broken build: one that records no version of a file that it moves or deletes.
#[test]
fn one_patch_changes_moves_adds_and_deletes_and_undo_takes_all_of_it_back() {
    for toolset in ["typed", "run"] {
        let shell = Shell::new(&FILES);
        fs::set_permissions(shell.workspace().join("src/b.rs"), fs::Permissions::from_mode(0o751)).expect("chmod");
        let before = tree_of(&shell.workspace());
        let call = match toolset {
            "typed" => json!({ "name": "ApplyPatch", "args": { "input": PATCH } }),
            _ => json!({ "name": "run", "args": { "command": "apply_patch", "stdin": PATCH } }),
        };
        let script = json!({ "steps": [{ "calls": [call] }, { "text": "Done." }] }).to_string();
        let provider = format!("script:{}", shell.aside("s.json", &script).display());
        let ran = shell.run(["--provider", &provider, "--toolset", toolset, "--headless", "--json", "--write", "go"]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert_patched(&shell);
        assert_eq!(fs::metadata(shell.workspace().join("lib/b.rs")).expect("there").mode() & 0o777, 0o751);
        let log = entries(&shell.logs()[0]);
        let result = &log.iter().find(|e| e["type"] == "tool_result").expect("a result")["data"];
        assert!(result["output"].as_str().expect("text").starts_with(TOLD), "{toolset}: {}", result["output"]);
        let mut kinds: Vec<(&str, &str, bool)> = result["changes"]
            .as_array()
            .expect("changes")
            .iter()
            .map(|it| {
                let text = |name: &str| it[name].as_str().expect("text");
                (text("path"), text("kind"), it["before_blob"].is_string() || it["kind"] == "created")
            })
            .collect();
        kinds.sort_unstable();
        assert_eq!(
            kinds,
            [
                ("lib/b.rs", "created", true),
                ("new/c.txt", "created", true),
                ("old.txt", "deleted", true),
                ("src/a.rs", "modified", true),
                ("src/b.rs", "deleted", true)
            ]
        );
        done(&shell.run(["undo", "--json"]));
        assert_eq!(tree_of(&shell.workspace()), before, "{toolset}");
    }
}

/// Broken build: one that writes the files whose hunks fit.
#[test]
fn a_patch_that_does_not_fit_changes_nothing_and_tells_every_fault_with_the_lines_on_disk() {
    let shell = Shell::new(&FILES);
    let before = tree_of(&shell.workspace());
    let patch = "*** Begin Patch
*** Update File: old.txt
@@
-kept
+changed
*** Update File: src/a.rs
@@
 fn a() {
-    three();
     two();
@@
-  two();
+  2();
*** Update File: nowhere.rs
@@
-a
+b
*** Add File: src/b.rs
+x
*** Delete File: ../outside.txt
*** End Patch";
    let error = tool(&shell, "apply_patch", &json!({ "patch": patch }), &["--write"]).error();
    let message = error["error"]["message"].as_str().expect("a message");
    for told in [
        "src/a.rs, hunk 1 of 2 (line 7 of the patch): its old lines do not occur in the file; the closest lines are 1 to 3. They are:\nfn a() {\n    one();\n    two();",
        "src/a.rs, hunk 2 of 2 (line 11 of the patch): its old lines do not occur in the file; lines 3 to 3 differ from it only in whitespace. They are:\n    two();",
        "nowhere.rs: ",
        "src/b.rs: `src/b.rs` exists already",
        "outside the workspace",
        "no file was changed",
    ] {
        assert!(message.contains(told), "{told}\n{message}");
    }
    assert!(!message.contains("old.txt"), "{message}");
    let line = ["run", "cat p.patch | apply_patch", "--json", "--write"];
    shell.write("p.patch", patch);
    let ran = shell.run(line);
    assert!(ran.stderr.contains("hunk 2 of 2") || ran.stdout.contains("hunk 2 of 2"), "{} {}", ran.stdout, ran.stderr);
    fs::remove_file(shell.workspace().join("p.patch")).expect("remove");
    assert_eq!(tree_of(&shell.workspace()), before);
}

/// Broken build: one whose gate judges only the first file.
#[test]
fn each_file_of_a_patch_is_judged_and_what_no_user_allowed_is_not_written() {
    let shell = Shell::new(&FILES);
    shell.write("hook.patch", "--- /dev/null\n+++ b/.git/hooks/pre-commit\n@@ -0,0 +1 @@\n+echo\n");
    let patch =
        format!("{}*** Add File: .git/hooks/pre-commit\n+echo\n*** End Patch\n", PATCH.replace("*** End Patch\n", ""));
    let before = tree_of(&shell.workspace());
    let refused = tool(&shell, "apply_patch", &json!({ "patch": patch }), &["--write"]);
    let error = refused.error();
    assert_eq!((refused.code, error["code"].as_str()), (13, Some("INPUT_REQUIRED")), "{error}");
    assert!(error.to_string().contains("protected"), "{error}");
    // The mode refuses every change.
    assert_eq!(tool(&shell, "apply_patch", &json!({ "patch": PATCH }), &[]).code, 12);
    // A line of the run language learns only from its stdin which files it touches.
    for line in [
        "cat hook.patch | apply_patch",
        "sh -c 'cat hook.patch' | apply_patch",
        "false || cat hook.patch | apply_patch",
    ] {
        let ran = shell.run(["run", line, "--json", "--write"]);
        let told = format!("{}{}", ran.stdout, ran.stderr);
        assert!(told.contains("protected") || told.contains("not known beforehand"), "{line}: {told}");
    }
    // So does a rule about one of the files.
    assert_eq!(shell.run(["permissions", "add", "files(old.txt)", "--deny"]).code, 0);
    let denied = tool(&shell, "apply_patch", &json!({ "patch": PATCH }), &["--write"]);
    assert!(denied.code != 0 && denied.stderr.contains("rule"), "{}", denied.stderr);
    assert_eq!(tree_of(&shell.workspace()), before);
    // A patch that is made after the preview may not name other files.
    let line =
        "echo '--- /dev/null\n+++ b/.git/hooks/x\n@@ -0,0 +1 @@\n+echo' | write x.patch; cat x.patch | apply_patch";
    shell.write("x.patch", "--- /dev/null\n+++ b/harmless\n@@ -0,0 +1 @@\n+echo\n");
    let ran = shell.run(["run", line, "--json", "--write"]);
    assert!(
        format!("{}{}", ran.stdout, ran.stderr).contains("otherwise than the preview showed"),
        "{} {}",
        ran.stdout,
        ran.stderr
    );
    assert!(!shell.workspace().join(".git/hooks/x").exists());
}

/// Broken build: one without the diffs of the files on the card, or one that forgets what the model read.
#[tokio::test]
async fn the_card_shows_the_diff_of_each_file_and_a_file_changed_since_it_was_read_is_refused() {
    let patch = calls("apply_patch", json!({ "patch": PATCH }));
    let steps = vec![
        patch.clone(),
        says("Refused."),
        calls("read", json!({ "path": "src/a.rs" })),
        says("Read."),
        patch,
        says("Done."),
    ];
    let mut pixir = Pixir::sized(steps, &FILES, 100, 50);
    let screen = pixir.does("patch it<Enter>").await;
    insta::assert_snapshot!("a_patch_of_several_files", screen);
    pixir.does("<A-n>").await;
    pixir.does("read it<Enter>").await;
    fs::write(pixir.path("src/a.rs"), "fn a() {\n    one();\n    two();\n}\n\n").expect("write");
    pixir.does("again<Enter>").await;
    let log = pixir.log();
    let results: Vec<&Value> = log.iter().filter(|e| e["type"] == "tool_result").map(|e| &e["data"]).collect();
    assert_eq!(results[2]["error"]["code"], "FILE_CHANGED", "{}", results[2]);
    assert_eq!(pixir.file("old.txt"), "kept\n");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..Default::default() })]

    /// The programs `diff` and `patch` are the reference. Broken build: one that miscounts the lines of an earlier hunk.
    #[test]
    fn what_diff_prints_is_applied_as_patch_applies_it(
        old in prop::collection::vec("[ab]{0,2}", 1..30), picks in prop::collection::vec(0..9_u8, 30), ends in any::<bool>(),
    ) {
        let mut new = Vec::new();
        for (line, pick) in old.iter().zip(&picks) {
            match pick {
                0 => new.push(format!("{line}!")),
                1 => {}
                2 => new.extend([line.clone(), "new".to_owned()]),
                _ => new.push(line.clone()),
            }
        }
        let text = |lines: &[String]| if ends { lines.join("\n") + "\n" } else { lines.join("\n") };
        let (old, new) = (text(&old), text(&new));
        prop_assume!(old != new && !new.is_empty() && !old.is_empty());
        let shell = Shell::new(&[("x", &old)]);
        let aside = shell.aside("new", &new);
        let folder = aside.parent().expect("a folder");
        fs::write(folder.join("old"), &old).expect("write");
        let printed = Command::new("diff").args(["-u", "old", "new"]).current_dir(folder).output().expect("diff runs").stdout;
        let diff = String::from_utf8(printed).expect("text").replacen("--- old", "--- a/x", 1).replacen("+++ new", "+++ b/x", 1);
        fs::write(folder.join("d.patch"), &diff).expect("write");
        let reference = Command::new("patch").args(["-s", "old", "d.patch"]).current_dir(folder).status().expect("patch runs");
        prop_assert!(reference.success());
        let ran = tool(&shell, "apply_patch", &json!({ "patch": diff }), &["--write"]);
        prop_assert_eq!(ran.code, 0, "{}", ran.stderr);
        prop_assert_eq!(shell.read("x"), fs::read_to_string(folder.join("old")).expect("text"), "{}", diff);
    }
}
