//! The queue: steers, follow-ups, and messages taken back.

use pixir_core::provider::script::{ScriptedError, Step};
use serde_json::json;

use crate::driver::{Pixir, calls, says};

#[tokio::test]
async fn a_steer_joins_the_turn_and_a_follow_up_waits() {
    let mut first = calls("bash", json!({"command": "cat a.txt"}));
    first.delay_ms = 0;
    let slow = pixir_core::provider::script::Step { text: "Looking.".into(), hang: false, ..first };
    let steered = pixir_core::provider::script::Step { when: Some("also b".into()), ..says("Both seen.") };
    let after = pixir_core::provider::script::Step { when: Some("then c".into()), ..says("And c.") };
    // A write that waits for a decision holds the Turn while the user types.
    let hold = calls("write", json!({"path": "x", "content": "y"}));
    let mut pixir = Pixir::new(vec![hold, slow, steered, after], &[("a.txt", "alpha\n")]);
    pixir.does("look at a<Enter>").await;
    pixir.screen.keys("also b<Enter>then c<A-Enter>").await;
    pixir.screen.until_idle().await;
    let screen = pixir.screen.screen();
    assert!(screen.contains("» now  also b") && screen.contains("▸ next then c"), "{screen}");
    let _ = pixir.does("<A-y>").await;
    let log = pixir.log();
    let said: Vec<_> = log
        .iter()
        .filter(|e| e["type"] == "user_message")
        .map(|e| (e["data"]["text"].as_str().expect("text"), e["data"]["delivery"].as_str().expect("how")))
        .collect();
    assert_eq!(said, [("look at a", "prompt"), ("also b", "steer"), ("then c", "follow_up")]);
}

#[tokio::test]
async fn a_queued_message_can_be_taken_back() {
    let mut pixir = Pixir::new(vec![calls("write", json!({"path": "x", "content": "y"})), says("ok")], &[]);
    pixir.does("go<Enter>").await;
    pixir.screen.keys("later<A-Enter>").await;
    pixir.screen.until_idle().await;
    pixir.does("<A-Up>").await;
    assert_eq!(pixir.screen.draft(), "later");
    assert!(!pixir.screen.screen().contains("▸ next"));
}

#[tokio::test]
async fn a_follow_up_is_sent_after_a_failed_turn() {
    let broken = Step {
        calls: calls("bash", json!({"command": "until [ -e go ]; do sleep 0.02; done"})).calls,
        ..Step::default()
    };
    let refused = Step {
        error: Some(ScriptedError { code: "INVALID_RESPONSE".into(), message: "it is broken".into() }),
        ..Step::default()
    };
    let mut pixir = Pixir::new(vec![broken, refused, says("The second one.")], &[]);
    pixir.does("/mode auto<Enter>").await;
    pixir.screen.keys("one<Enter>").await;
    pixir.screen.until("● $").await;
    pixir.screen.keys("two<A-Enter>").await;
    pixir.screen.until("▸ next").await;
    std::fs::write(pixir.path("go"), "").expect("it is written");
    pixir.screen.until("The second one.").await;
    pixir.screen.until_idle().await;
    let screen = pixir.screen.screen();
    assert!(screen.contains("it is broken") && screen.contains("❯ two"), "{screen}");
}
