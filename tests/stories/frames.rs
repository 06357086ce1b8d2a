//! Snapshots of the screen at four sizes and in three themes.

use serde_json::json;

use crate::driver::{Pixir, also_calls, calls, says, timeless, timeless_footer};
use crate::shell::Shell;

pub(super) const ANSWER: &str = "## What was wrong\n\n`average` divided by **one less** than the count; see [the docs](https://example.com/a).\n\n| numbers | before | now |\n|---|---:|:---:|\n| 2 4 6 | 6 | 4 |\n| 漢字 | 👨‍👩‍👧 | ✓ |\n\n1. first\n   - nested\n     > quoted, with a line that is long enough to be wrapped on most of the screens that people have\n2. second\n- [x] done\n- [ ] open\n\n````md\n```sh\nls\n```\n````\n\n```rust\nfn main() {\n\tprintln!(\"hi\");\n}\n```\n";

#[tokio::test]
async fn a_conversation_at_four_sizes() {
    for (columns, rows) in [(60, 20), (80, 24), (120, 40), (200, 60)] {
        let plan = json!({"items": [{"step": "Look at it", "status": "completed"}, {"step": "Fix it", "status": "in_progress"}]});
        let step = also_calls(calls("update_plan", plan), "grep", json!({"pattern": "zzz"}));
        let edit = calls("edit", json!({"path": "a.txt", "old_text": "alpha", "new_text": "omega"}));
        let mut pixir = Pixir::sized(vec![step, edit, says(ANSWER)], &[("a.txt", "alpha\nbeta\n")], columns, rows);
        let asks = pixir.does("fix it, please<Enter>").await;
        insta::assert_snapshot!(format!("{columns}x{rows}-asks"), timeless(&asks));
        let done = pixir.does("<A-y>").await;
        insta::assert_snapshot!(format!("{columns}x{rows}-done"), timeless(&done));
    }
}

#[test]
fn the_demo_at_four_sizes_in_three_themes() {
    let shell = Shell::new(&[]);
    // Everything has been visible once, so that all heights are exact.
    let read_on = "keys <PgDn>\nidle\n".repeat(8);
    let script = format!("expect Try /diff\nidle\nkeys <C-Home>\nidle\n{read_on}keys <C-End>\nidle\nframe end\n");
    std::fs::write(shell.workspace().join("keys.txt"), script).expect("write");
    for size in ["60x20", "80x24", "120x40", "200x60"] {
        for theme in ["dark", "light", "system"] {
            let args = ["tui", "--demo", "--script", "keys.txt", "--size", size, "--theme", theme, "--screen", "ansi"];
            let ran = shell.run(args);
            assert_eq!(ran.code, 0, "{}", ran.stderr);
            let visible = ran.stdout.replace('\u{1b}', "␛");
            insta::assert_snapshot!(format!("demo-{theme}-{size}"), without_times(&visible));
        }
    }
}

/// A screen with its colours, without the duration of each cell and the blanks behind it.
fn without_times(screen: &str) -> String {
    let is_time = |text: &str| {
        let digits = text.trim().strip_suffix("ms").or_else(|| text.trim().strip_suffix('s')).unwrap_or_default();
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
    };
    let lines = screen.lines().map(|line| {
        let line = &timeless_footer(line);
        if !line.contains('✓') && !line.contains('✗') {
            return line.trim_end().to_owned();
        }
        let said = |piece: &&str| !is_time(piece.split_once('m').map_or(*piece, |(_, text)| text));
        let mut line = line.split('␛').filter(said).collect::<Vec<_>>().join("␛");
        while line.contains("   ") {
            line = line.replace("   ", "  ");
        }
        line
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn the_screen_as_json_lists_its_regions() {
    let shell = Shell::new(&[]);
    let script = "expect Fixed\nidle\nkeys <C-p>\nframe palette\n";
    std::fs::write(shell.workspace().join("keys.txt"), script).expect("write");
    let frame = shell.run(["tui", "--demo", "--script", "keys.txt", "--screen", "json"]).document();
    let roles: Vec<&str> =
        frame["regions"].as_array().expect("regions").iter().filter_map(|it| it["role"].as_str()).collect();
    for role in ["header", "transcript", "entry", "composer", "status", "dialog", "option"] {
        assert!(roles.contains(&role), "{role} in {roles:?}");
    }
    let chosen = frame["regions"]
        .as_array()
        .expect("regions")
        .iter()
        .filter(|it| it["role"] == "option" && it["selected"] == true);
    assert_eq!(chosen.count(), 1);
    assert!(frame["caret"]["row"].is_number(), "the caret is where one types");
    let wrong = shell.run(["tui", "--demo", "--script", "-", "--size", "wide"]);
    assert_eq!(wrong.code, 2);
    std::fs::write(shell.workspace().join("quits.txt"), "idle\nkeys <C-c><C-c>\nframe gone\n").expect("write");
    let early = shell.run(["tui", "--script", "quits.txt"]);
    assert!(early.code != 0 && early.stderr.contains("with 1 line of the script left"), "{}", early.stderr);
    std::fs::write(shell.workspace().join("bad.txt"), "press x\n").expect("write");
    let wrong = shell.run(["tui", "--demo", "--script", "bad.txt"]);
    assert!(wrong.stderr.contains("line 1 of the script") && wrong.code == 2, "{}", wrong.stderr);
}
