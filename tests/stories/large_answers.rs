//! Answers that are long, wide or strange: bounded work, nothing lost.

use serde_json::json;

use crate::driver::{Pixir, calls, long_conversation, says};

#[tokio::test]
async fn only_cells_near_the_viewport_stay_laid_out() {
    let mut pixir = long_conversation(4_000);
    pixir.screen.until_idle().await;
    pixir.screen.keys("<C-Home><F12>").await;
    for _ in 0..1_200 {
        pixir.screen.keys("<PgDn>").await;
    }
    let screen = pixir.screen.screen();
    let output = screen.lines().find(|line| line.contains("laid out")).expect("the HUD says it");
    let number: usize = output
        .split("laid out")
        .nth(1)
        .and_then(|it| it.split_whitespace().next())
        .and_then(|n| n.parse().ok())
        .expect("a number");
    assert!(number <= 700, "{output}");
}

#[tokio::test]
async fn a_line_of_a_megabyte_can_be_scrolled() {
    let long = format!("START{}END", "x".repeat(1_000_000));
    let mut pixir = Pixir::new(vec![says(&long), says("Next.")], &[]);
    let screen = pixir.does("go<Enter>").await;
    assert!(screen.contains("END"), "{screen}");
    let screen = pixir.does("<C-Home>").await;
    assert!(screen.contains("START"), "{screen}");
    let screen = pixir.does("<C-End>again<Enter>").await;
    assert!(screen.contains("Next."), "{screen}");
}

#[tokio::test]
async fn a_table_of_2500_rows_is_a_table_to_its_last_row() {
    let rows: String = (0..2_500).map(|n| format!("| {n} | value {n} |\n")).collect();
    let mut pixir = Pixir::new(vec![says(&format!("| n | value |\n|---|---|\n{rows}"))], &[]);
    let screen = pixir.does("go<Enter>").await;
    let last = screen.lines().find(|line| line.contains("value 2499")).unwrap_or_else(|| panic!("{screen}"));
    assert!(last.contains('│') && !last.contains('|'), "{last}");
    let screen = pixir.does("<C-Home>").await;
    let first = screen.lines().find(|line| line.contains("value 0")).expect("the first row");
    assert!(first.contains('│') && !first.contains('|'), "{first}");
    // Nowhere in between is it anything else.
    let mut seen = 0;
    for _ in 0..160 {
        pixir.screen.keys("<PgDn>").await;
        let screen = pixir.screen.screen();
        assert!(!screen.contains('|'), "{screen}");
        seen += usize::from(screen.contains("value"));
    }
    assert!(seen > 100, "{seen} pages of it");
}

#[tokio::test]
async fn unusual_characters_and_endless_markup_are_survived() {
    let text = [
        "e\u{301}".repeat(5_000),
        "👩‍👩‍👧‍👦".repeat(2_000),
        "[".repeat(20_000),
        "**".repeat(10_000),
        "`".repeat(9_999),
        "> ".repeat(3_000),
        "\u{202e}\u{200b}".repeat(2_000),
        "a\u{300}".repeat(1_000) + &"\u{316}".repeat(5_000),
    ]
    .join("\n\n");
    let mut pixir = Pixir::new(vec![says(&text), says("And on.")], &[]);
    pixir.does("go<Enter>").await;
    let screen = pixir.does("more<Enter>").await;
    assert!(screen.contains("And on."), "{screen}");
}

#[tokio::test]
async fn a_very_long_line_does_not_make_a_cell_high() {
    let [six, cut] = ["head -c 2000", "cat"].map(|cat| format!("for n in 1 2 3 4 5 6; do {cat} long.txt; echo; done"));
    // The cell shows the end of the line, where the result says how to go on in it.
    for (command, rows) in [("cat long.txt", 4..=7), ("cat long.txt; false", 4..=7), (&cut, 7..=14), (&six, 8..=14)] {
        let steps = vec![calls("bash", json!({ "command": command })), says("Read.")];
        let mut pixir = Pixir::sized(steps, &[("long.txt", &"word ".repeat(2_000))], 80, 40);
        let screen = pixir.does("/mode auto<Enter>read it<Enter>").await;
        assert!(screen.contains("❯ read it") && screen.contains("… more of this line · Ctrl+O"), "{screen}");
        assert!(rows.contains(&screen.matches("   │ ").count()), "{screen}");
        let screen = pixir.does("<C-o><C-Home>").await;
        assert!(!screen.contains("more of this line"), "{screen}");
    }
}
