//! The regions of the screen: none covers or distorts another.

use serde_json::json;

use crate::driver::{Pixir, also_calls, calls, says};

/// The screen above the line, without the blank rows at its end.
fn above_the_line(screen: &str) -> Vec<String> {
    let lines: Vec<&str> = screen.lines().skip(1).take_while(|line| !line.starts_with('╭')).collect();
    lines.iter().map(|line| line.trim_end_matches(['━', '┃', '╼', ' ']).to_owned()).collect()
}

#[tokio::test]
async fn clearing_a_long_draft_leaves_no_blank_band() {
    let mut pixir = Pixir::new(vec![says("An answer.")], &[]);
    let before = pixir.does("hello<Enter>").await;
    pixir.does("one<C-j>two<C-j>three<C-j>four<C-j>five<C-j>six<C-j>seven").await;
    let after = pixir.does("<C-c>").await;
    assert_eq!(above_the_line(&after), above_the_line(&before));
}

#[tokio::test]
async fn the_pill_covers_no_text() {
    let text: String =
        (0..60).map(|n| format!("- {n} 漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字\n")).collect();
    for columns in 60..68 {
        let mut pixir = Pixir::sized(vec![says(&text)], &[], columns, 20);
        pixir.does("go<Enter>").await;
        let screen = pixir.does("<PgUp>").await;
        let pill = screen.lines().find(|line| line.contains("↓ Ctrl+End")).expect("a pill");
        assert!(pill.starts_with("╭─") && pill.ends_with('╮'), "{screen}");
        let read: Vec<&str> = screen.lines().filter(|line| line.contains('漢')).collect();
        let wide = |line: &&str| line.chars().map(|c| 1 + usize::from(c == '漢' || c == '字')).sum::<usize>();
        assert!(read.len() > 10 && read.iter().all(|line| wide(line) <= usize::from(columns)), "{screen}");
    }
}

#[tokio::test]
async fn an_overlay_higher_than_the_screen_scrolls_to_its_end() {
    let mut pixir = Pixir::sized(vec![], &[], 60, 12);
    let screen = pixir.does("?").await;
    // The status row tells the keys of the overlay.
    let rows: Vec<&str> = screen.trim_end().lines().collect();
    assert!(rows.len() == 12 && rows[10].ends_with('╯') && rows[11].contains("Esc close"), "{screen}");
    let mut seen = screen.clone();
    for _ in 0..40 {
        seen.push_str(&pixir.does("<PgDn>").await);
    }
    for last in ["/mouse", "/usage", "Alt+Y", "find an action by name"] {
        assert!(seen.contains(last), "{last} can be reached:\n{seen}");
    }
}

#[tokio::test]
async fn the_side_panel_covers_no_text() {
    let words: Vec<String> = (0..80).map(|n| format!("word{n:02}")).collect();
    let steps = vec![
        calls("update_plan", json!({"items": [{"step": "look", "status": "in_progress"}]})),
        says(&words.join(" ")),
    ];
    let mut pixir = Pixir::sized(steps, &[], 130, 30);
    let screen = pixir.does("go<Enter>").await;
    assert!(screen.contains("Plan"), "{screen}");
    for word in words {
        assert!(screen.contains(&word), "{word}:\n{screen}");
    }
}

#[tokio::test]
async fn the_plan_panel_shows_only_on_a_wide_screen() {
    let plan = json!({"items": [{"step": "Look", "status": "completed"}, {"step": "Fix", "status": "in_progress"}]});
    let step = also_calls(calls("update_plan", plan), "bash", json!({"command": "cat a.txt"}));
    let mut pixir = Pixir::sized(vec![step, says("Done.")], &[("a.txt", "alpha\n")], 140, 40);
    let screen = pixir.does("go<Enter>").await;
    assert!(screen.contains("Plan Changes Tree Agents Context"), "{screen}");
    let screen = pixir.does("<Tab><Tab><Right><Right><Right><Right>").await;
    assert!(screen.contains("system prompt") && screen.contains("result "), "{screen}");
    let screen = pixir.does("<A-p>").await;
    assert!(!screen.contains("Changes Tree"), "{screen}");
    pixir.does("<A-p>").await;
    pixir.screen.resize(100, 30);
    assert!(!pixir.screen.screen().contains("Changes Tree"));
    let screen = pixir.does("<A-p>").await;
    assert!(screen.contains("needs a screen of 120 columns"), "{screen}");
}

/// Broken build: the panel shows three steps of a plan, and nothing below them.
#[tokio::test]
async fn below_a_plan_the_side_panel_shows_the_changed_files() {
    let plan = json!({ "items": [{ "step": "Write it", "status": "completed" }] });
    let write = |name: &str| calls("write", json!({ "path": name, "content": "one\n" }));
    let steps = vec![calls("update_plan", plan), write("a.txt"), write("b.txt"), says("Done.")];
    let mut pixir = Pixir::sized(steps, &[], 120, 30);
    pixir.does("/mode auto<Enter>").await;
    let screen = pixir.does("go<Enter>").await;
    let words = |row: &str| row.split_whitespace().collect::<Vec<_>>().join(" ");
    let panel: Vec<String> = screen.lines().map(|row| words(row.rsplit('│').next().unwrap_or_default())).collect();
    let plan = panel.iter().position(|row| *row == "✓ Write it").unwrap_or_else(|| panic!("{screen}"));
    assert_eq!(panel[plan + 1..plan + 6], ["", "Changes", "", "A a.txt +1", "A b.txt +1"]);
    // Where the rows are few, the plan has them.
    pixir.screen.resize(120, 10);
    assert!(!pixir.screen.screen().contains("A b.txt"), "the panel is low");
}
