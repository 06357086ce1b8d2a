//! Searching the transcript.

use pixir_core::provider::script::Step;
use serde_json::json;

use super::transcript::{conversation, osc52, place, streaming};
use crate::driver::{Pixir, calls, says};

#[tokio::test]
async fn find_reaches_folded_cells() {
    let mut pixir = conversation(80, 24).await;
    let screen = pixir.does("<C-f>number 39").await;
    assert!(screen.contains("number 39") && screen.contains("1 of 1"), "it is beyond the preview:\n{screen}");
    let screen = pixir.does("<Enter>").await;
    assert!(screen.contains("n next"), "{screen}");
    pixir.does("<Esc><Esc>").await;
    let screen = pixir.does("/find pears<Enter>").await;
    assert!(screen.contains("of 60"), "{screen}");
    let first = pixir.does("n").await;
    let second = pixir.does("n").await;
    assert_ne!(first, second);
    assert_eq!(pixir.does("N").await, first, "N goes back");
    let screen = pixir.does("/zebra").await;
    assert!(screen.contains("no matches"), "{screen}");
    let screen = pixir.does("<Esc>").await;
    assert!(!screen.contains("find:"), "{screen}");
}

#[tokio::test]
async fn find_matches_rendered_text_and_refolds_cells() {
    let answer = "The answer is that `pears`\nand apples are **both** fruit, as everybody knows who has ever been out.";
    let numbers: String = (1..=40).map(|n| format!("number {n}\n")).collect();
    let listing = calls("bash", json!({"command": "cat numbers.txt"}));
    let mut pixir = Pixir::sized(vec![listing, says(answer)], &[("numbers.txt", &numbers)], 60, 24);
    pixir.does("go<Enter>").await;
    let screen = pixir.does("<C-f>pears and apples are both fruit<Enter>").await;
    assert!(screen.contains("1 of 1"), "it is broken over two lines, and its marks are not shown:\n{screen}");
    let folded = pixir.does("<Esc>").await;
    let screen = pixir.does("<C-f>NUMBER 39").await;
    assert!(screen.contains("no matches"), "{screen}");
    let screen = pixir.does("<Esc><C-f>number 39").await;
    assert!(screen.contains("│ number 39"), "{screen}");
    assert_eq!(pixir.does("<Esc>").await, folded, "Esc restores the screen");
}

#[tokio::test]
async fn find_includes_new_cells_without_moving_the_viewport() {
    let thinks = Step { reasoning: "The needle is in the thought.".into(), ..says("A first needle.") };
    let mut pixir = Pixir::new(vec![thinks, says("A second needle.")], &[]);
    pixir.does("one<Enter>").await;
    let screen = pixir.does("<C-f>needle<Enter>").await;
    assert!(screen.contains("of 2"), "the thinking as well:\n{screen}");
    pixir.does("<Tab>").await;
    let before = pixir.screen.screen();
    pixir.screen.keys("<Tab>").await;
    pixir.screen.paste("two").await;
    pixir.screen.keys("<Enter>").await;
    pixir.screen.until("of 3").await;
    let after = pixir.screen.screen();
    assert_eq!(before.contains("1 of 2"), after.contains("1 of 3"), "{before}\n{after}");
}

#[tokio::test]
async fn find_and_selection_reach_the_streaming_answer() {
    let text: String = (10..70).map(|n| format!("Paragraph {n} has a needle.\n\n")).collect();
    let mut pixir = streaming(&text, "Paragraph 30").await;
    // The selection stays while the answer grows.
    let screen = pixir.screen.screen();
    let (column, row) = place(&screen, "Paragraph 2");
    let line = |screen: &str| screen.lines().nth(usize::from(row - 1)).expect("a row").to_owned();
    let chosen: String = line(&screen).trim_matches([' ', '┃', '╼']).to_owned();
    pixir.screen.bytes(format!("\x1b[<0;{column};{row}M\x1b[<32;{};{row}M", column + 5).as_bytes()).await;
    let held = line(&pixir.screen.screen());
    pixir.screen.until_idle().await;
    assert_eq!(line(&pixir.screen.screen()).trim_end_matches(['┃', '╼', ' ']), held.trim_end_matches(['┃', '╼', ' ']));
    pixir.screen.bytes(format!("\x1b[<32;79;{row}M\x1b[<0;79;{row}m").as_bytes()).await;
    pixir.screen.keys("<C-f>needle").await;
    pixir.screen.until(" of ").await;
    let copied = pixir.screen.signals();
    assert_eq!(copied, [osc52(&chosen)]);
}
