//! Patches of random texts, in both notations, against the texts that they were made from.

use proptest::prelude::*;

use super::*;
use text::edits::Unified;

fn hunks_of(patch: &str) -> Vec<Hunk> {
    let sections = parse(patch).expect("a patch");
    match sections.into_iter().next().expect("a file").what {
        What::Update { hunks, .. } | What::Delete(hunks) => hunks,
        What::Create(text) => panic!("it is a change, not {text:?}"),
    }
}

fn unified(old: &str, new: &str, context: usize) -> String {
    Unified::new(("a/x", "b/x"), old, new, context).to_string()
}

/// The same change in the notation without line numbers.
fn envelope(old: &str, new: &str, context: usize) -> String {
    let mut patch = "*** Begin Patch\n*** Update File: x\n".to_owned();
    // The first two lines are the header.
    for line in unified(old, new, context).lines().skip(2) {
        patch.push_str(if line.starts_with("@@") { "@@" } else { line });
        patch.push('\n');
    }
    patch + "*** End Patch\n"
}

fn lines() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec("[abc]{0,2}|[ab]{3} {0,2}|-- [ab]|\\+\\+ [ab]|\u{6f22}\u{e9}", 0..14)
}

/// The lines, some of them replaced, left out or doubled.
fn changed(lines: &[String], picks: &[u8]) -> Vec<String> {
    let mut changed = Vec::new();
    for (i, line) in lines.iter().enumerate() {
        match picks.get(i).copied().unwrap_or(0) % 10 {
            0 => changed.push(format!("{line}!")),
            1 => {}
            2 => changed.extend([line.clone(), "new".to_owned()]),
            _ => changed.push(line.clone()),
        }
    }
    changed
}

fn joined(lines: &[String], ends: bool) -> String {
    let text = lines.join("\n");
    if ends && !lines.is_empty() { format!("{text}\n") } else { text }
}

fn cases() -> u32 {
    option_env!("PIXIR_PATCHES").and_then(|n| n.parse().ok()).unwrap_or(2_000)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..Default::default() })]

    /// Broken build: one that counts the lines of an earlier hunk, or forgets that a last line has no newline.
    #[test]
    fn a_unified_diff_makes_the_new_text_of_the_old_one(
        old in lines(), picks in prop::collection::vec(any::<u8>(), 14), context in 0..4_usize,
        old_ends in any::<bool>(), new_ends in any::<bool>(),
    ) {
        let new = joined(&changed(&old, &picks), new_ends);
        let old = joined(&old, old_ends);
        prop_assume!(old != new && !old.is_empty());
        let patch = unified(&old, &new, context);
        let fitted = fit(&old, &hunks_of(&patch));
        prop_assert!(fitted.is_ok(), "{old:?}\n{patch}\n{fitted:?}");
        prop_assert_eq!(fitted.expect("it fits"), new, "{}", patch);
    }

    /// Broken build: one that adds lines with the ends of the patch, not those of the file.
    #[test]
    fn returns_of_the_file_stay_though_the_patch_has_none(
        old in lines(), picks in prop::collection::vec(any::<u8>(), 14), context in 1..4_usize,
    ) {
        let new = joined(&changed(&old, &picks), true);
        let old = joined(&old, true);
        prop_assume!(old != new && !old.is_empty() && !new.is_empty());
        let patch = unified(&old, &new, context);
        let fitted = fit(&old.replace('\n', "\r\n"), &hunks_of(&patch));
        prop_assert!(fitted.is_ok(), "{old:?}\n{patch}\n{fitted:?}");
        prop_assert_eq!(fitted.expect("it fits"), new.replace('\n', "\r\n"), "{}", patch);
    }

    /// Broken build: one that takes the first of several places.
    #[test]
    fn without_line_numbers_a_patch_makes_the_new_text_or_does_not_fit(
        old in lines(), picks in prop::collection::vec(any::<u8>(), 14), context in 1..4_usize,
    ) {
        let new = joined(&changed(&old, &picks), true);
        let old = joined(&old, true);
        prop_assume!(old != new && !old.is_empty());
        let patch = envelope(&old, &new, context);
        match fit(&old, &hunks_of(&patch)) {
            Ok(fitted) => prop_assert_eq!(fitted, new, "{}", patch),
            Err(misfits) => {
                let all = misfits.iter().all(|it| [Code::NotUnique, Code::NoMatch].contains(&it.error.code));
                prop_assert!(all, "{misfits:?}\n{patch}");
                prop_assert!(misfits[0].error.code == Code::NotUnique, "{misfits:?}\n{old:?}\n{patch}");
            }
        }
    }

    /// Broken build: one that trusts the numbers, or does not move the later hunks along.
    #[test]
    fn lines_above_the_change_move_a_unified_diff(
        old in lines(), picks in prop::collection::vec(any::<u8>(), 14), above in 1..9_usize,
    ) {
        let new = joined(&changed(&old, &picks), true);
        let old = joined(&old, true);
        prop_assume!(old != new && !old.is_empty() && !new.is_empty());
        let above = "zzz\n".repeat(above);
        let hunks = hunks_of(&unified(&old, &new, 3));
        // A hunk without old lines has nothing but its number.
        prop_assume!(hunks.iter().all(|hunk| hunk.lines.iter().any(|line| line.side != Side::New)));
        if let Ok(fitted) = fit(&format!("{above}{old}"), &hunks) {
            prop_assert!(fitted.starts_with(&above));
            prop_assert_eq!(fitted.lines().count(), format!("{above}{new}").lines().count());
        }
    }

    /// Broken build: ce783d9e, which removes lines that differ in blanks, takes the first place below another hunk, or prefers
    /// the place whose line ends are those of the patch.
    #[test]
    fn a_patch_changes_the_one_place_of_its_lines_and_no_other_byte(
        file in prop::collection::vec(("[ab]{0,2} {0,2}", any::<bool>()), 1..8), ends in any::<bool>(),
        at in 0..8_usize, lines in prop::collection::vec((0..3_u8, 0..4_u8), 1..4), below in 0..3_usize,
    ) {
        let last = file.len() - 1;
        let text: String = file.iter().enumerate().map(|(i, (line, crlf))| {
            let end = if i == last && !ends { "" } else if *crlf { "\r\n" } else { "\n" };
            format!("{line}{end}")
        }).collect();
        let raw: Vec<&str> = text.split_inclusive('\n').collect();
        // Lines of the file from some place on, some without their blanks.
        let mut patch = Vec::new();
        for (i, (kind, blanks)) in lines.iter().enumerate() {
            let line = &file[(at + i).min(last)].0;
            let line = if *blanks == 0 { line.trim_end() } else { line };
            match kind {
                0 => patch.push((Side::Both, line.to_owned())),
                1 => patch.push((Side::Old, line.to_owned())),
                _ => patch.push((Side::New, format!("new {i}"))),
            }
        }
        prop_assume!(patch.iter().any(|(side, _)| *side != Side::New) && patch.iter().any(|(side, _)| *side != Side::Both));
        let mark = |side: Side| match side { Side::Both => ' ', Side::Old => '-', Side::New => '+' };
        let mut body: String = patch.iter().map(|(side, line)| format!("{}{line}\n", mark(*side))).collect();
        body.push_str(&"\n".repeat(below));
        let hunks = hunks_of(&format!("*** Begin Patch\n*** Update File: x\n@@\n{body}*** End Patch\n"));
        let Ok(fitted) = fit(&text, &hunks) else { return Ok(()) };
        // Where the old lines stand, with the blanks of lines that stay, and else without.
        let old: Vec<&(Side, String)> = patch.iter().filter(|(side, _)| *side != Side::New).collect();
        let places = |is_lenient: bool| -> Vec<usize> {
            (0..(raw.len() + 1).saturating_sub(old.len())).filter(|at| {
                old.iter().zip(&raw[*at..]).all(|((side, wanted), there)| {
                    let there = there.strip_suffix('\n').unwrap_or(there);
                    let there = there.strip_suffix('\r').unwrap_or(there);
                    there == wanted || (is_lenient && *side == Side::Both && there.trim_end() == wanted.trim_end())
                })
            }).collect()
        };
        let mut found = places(false);
        if found.is_empty() {
            found = places(true);
        }
        prop_assert_eq!(found.len(), 1, "{:?}\n{}\n{:?}", text, body, fitted);
        // Every line of the file that the patch does not remove is in the new text as it is, in order.
        let (mut rest, mut here) = (fitted.as_str(), found[0]);
        for line in &raw[..here] {
            prop_assert!(rest.starts_with(line), "{text:?}\n{body}\n{fitted:?}");
            rest = &rest[line.len()..];
        }
        for (side, line) in &patch {
            match side {
                Side::Old => here += 1,
                Side::New => {
                    // A line without an end above it gets one.
                    rest = rest.strip_prefix("\r\n").or(rest.strip_prefix('\n')).unwrap_or(rest);
                    prop_assert!(rest.starts_with(line.as_str()), "{text:?}\n{body}\n{fitted:?}");
                    rest = &rest[line.len()..];
                    rest = rest.strip_prefix("\r\n").or(rest.strip_prefix('\n')).unwrap_or(rest);
                }
                Side::Both => {
                    prop_assert!(rest.starts_with(raw[here]), "{text:?}\n{body}\n{fitted:?}");
                    rest = &rest[raw[here].len()..];
                    here += 1;
                }
            }
        }
        let tail = raw[here..].concat();
        prop_assert_eq!(rest, tail, "{:?}\n{}\n{:?}", text, body, fitted);
    }

    #[test]
    fn no_text_stops_the_reader(patch in "(\\*\\*\\* (Begin Patch|End Patch|Add File: a|Update File: b|Move to: c|End of File)|@@ ?[a@]{0,2}|@@ -1,2 \\+3 @@|--- a/x|\\+\\+\\+ b/x|[ +-]?[a-c]{0,2}|\\\\ No|diff --git a/x b/x|\"\\\\3|\n){0,12}") {
        let _ = paths(&patch);
        if let Ok(sections) = parse(&patch) {
            for section in sections {
                if let What::Update { hunks, .. } | What::Delete(hunks) = section.what {
                    let _ = fit("a\nb\n\nc\r\n", &hunks);
                }
            }
        }
    }
}

#[test]
fn each_notation_says_what_happens_to_each_file() {
    let codex = "apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: new.txt\n+one\n+two\n*** Update File: a.rs\n*** Move to: b.rs\n@@ fn main() {\n-old\n+new\n*** Delete File: gone.txt\n*** End Patch\nEOF";
    let sections = parse(codex).expect("a patch");
    assert_eq!(sections[0], Section { path: "new.txt".into(), what: What::Create("one\ntwo\n".into()) });
    assert!(matches!(&sections[1].what, What::Update { to: Some(to), hunks } if to == "b.rs" && hunks.len() == 1));
    assert_eq!(sections[2].what, What::Delete(Vec::new()));
    assert_eq!(paths(codex), ["new.txt", "a.rs", "b.rs", "gone.txt"]);
    let git = "diff --git a/x y.txt b/x y.txt\nindex 1..2 100644\n--- a/x y.txt\n+++ b/x y.txt\n@@ -1 +1 @@\n-a\n+b\ndiff --git a/o b/n\nsimilarity index 100%\nrename from o\nrename to n\ndiff --git a/e b/e\nnew file mode 100644\n--- /dev/null\n+++ b/e\n@@ -0,0 +1 @@\n+e\n\\ No newline at end of file\n-- \n2.39\n";
    let sections = parse(git).expect("a patch");
    assert_eq!(sections.iter().map(|it| it.path.as_str()).collect::<Vec<_>>(), ["x y.txt", "o", "e"]);
    assert_eq!(sections[1].what, What::Update { to: Some("n".into()), hunks: Vec::new() });
    assert_eq!(sections[2].what, What::Create("e".into()));
    assert_eq!(names_of("\"a/b\\303\\244\"\t2026", "\"b/b\\303\\244\""), (Some("bä".into()), Some("bä".into())));
    for (broken, told) in [
        ("*** Begin Patch\n*** Update File: a\n@@\nno mark\n*** End Patch", "line 4 of the patch begins with none of"),
        ("*** Begin Patch\n+x\n*** End Patch", "line 2 of the patch belongs to no file"),
        ("@@ -1 +1 @@\n-a\n+b\n", "line 1 of the patch begins a hunk"),
        ("just text", "the patch names no file"),
    ] {
        let error = parse(broken).expect_err(broken);
        assert!(error.message.starts_with(told), "{}", error.message);
    }
}

#[test]
fn headings_trailing_blanks_and_the_end_of_the_file_say_where_a_hunk_belongs() {
    let update = |body: &str| hunks_of(&format!("*** Begin Patch\n*** Update File: x\n{body}\n*** End Patch"));
    let text = "class A:\n  def f():\n    pass\nclass B:\n  def f():\n    pass\n";
    let second = fit(text, &update("@@ class B:\n@@   def f():\n-    pass\n+    return")).expect("it fits");
    assert_eq!(second, "class A:\n  def f():\n    pass\nclass B:\n  def f():\n    return\n");
    let last = fit(text, &update("@@\n   def f():\n-    pass\n+    return\n*** End of File")).expect("it fits");
    assert_eq!(last, second);
    let both = update("@@ class A:\n-    pass\n+    one\n@@ class B:\n-    pass\n+    two");
    assert_eq!(fit(text, &both).expect("it fits"), "class A:\n  def f():\n    one\nclass B:\n  def f():\n    two\n");
    let error = fit(text, &update("@@\n-    pass\n+    x")).expect_err("two places").remove(0).error;
    assert_eq!((error.code, error.message.as_str()), (Code::NotUnique, "its old lines occur 2 times, at lines 3, 6"));
    // Kept lines keep their blanks, and an empty line of the patch may stand for one of blanks. A line that goes is named as it
    // is.
    assert_eq!(fit("a  \n \nb\n", &update("@@\n a\n\n-b\n+c")).expect("it fits"), "a  \n \nc\n");
    let error = fit("a\nb\t\n", &update("@@\n a\n-b\n+c")).expect_err("blanks").remove(0).error;
    assert_eq!(error.code, Code::NoMatch);
    // The rest of a signature belongs to its heading; of two places below one, none is taken.
    let text = "fn f(\n    a: u8,\n) {\n    x\n}\nfn g()\n{\n    x\n}\n";
    assert_eq!(fit(text, &update("@@ fn f(\n-    x\n+    y")).expect("it fits"), text.replacen("    x", "    y", 1));
    let second = text.replace("\n{\n    x", "\n{\n    y");
    assert_eq!(fit(text, &update("@@ fn g()\n-    x\n+    y")).expect("it fits"), second);
    // A patch that names the mark removes it.
    assert_eq!(fit("\u{feff}a\nb\n", &update("@@\n-\u{feff}a\n+c")).expect("it fits"), "c\nb\n");
    assert_eq!(fit("\u{feff}a\nb\n", &update("@@\n-\u{feff}a\n+\u{feff}c")).expect("it fits"), "\u{feff}c\nb\n");
    let error = fit("\tif x:\n\t\ty\n", &update("@@\n-    if x:\n+    if z:")).expect_err("blanks").remove(0).error;
    assert!(error.message.contains("differ from it only in whitespace. They are:\n\tif x:"), "{}", error.message);
    // A text without a newline at its end stays so.
    assert_eq!(fit("a\nb", &update("@@\n-b\n+c")).expect("it fits"), "a\nc");
    assert_eq!(fit("\u{feff}a\nb\n", &update("@@\n-a\n+c")).expect("it fits"), "\u{feff}c\nb\n");
    assert_eq!(fit("", &update("+c")).expect("it fits"), "c\n");
    // The context of a hunk may begin with that of the one before it.
    assert_eq!(fit("a\nb\nc\nd\n", &update("@@\n a\n-b\n+B\n c\n@@\n c\n-d\n+D")).expect("it fits"), "a\nB\nc\nD\n");
}
