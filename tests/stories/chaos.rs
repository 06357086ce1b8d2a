//! Random keys, pastes, clicks, sizes and answers: the interface continues, and read-only writes nothing.

use pixir_core::provider::script::{ScriptedError, Step};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::json;

use crate::driver::{Pixir, calls, says};
use crate::random;
use crate::shell::figures;
use crate::tier;

/// One random event.
#[derive(Debug, Clone)]
enum Happens {
    Keys(&'static str),
    Typed(String),
    Pasted(String),
    Mouse { button: u8, column: u16, row: u16, up: bool },
    Resized(u16, u16),
    Settled,
}

const KEYS: [&str; 46] = [
    "<Enter>",
    "<Esc>",
    "<Esc><Esc>",
    "<Tab>",
    "<S-Tab>",
    "<C-c>",
    "<Up>",
    "<Down>",
    "<Left>",
    "<Right>",
    "<Home>",
    "<End>",
    "<PgUp>",
    "<PgDn>",
    "<C-Home>",
    "<C-End>",
    "<C-t>",
    "<C-p>",
    "<C-f>",
    "<C-r>",
    "<C-o>",
    "<C-l>",
    "<C-k>",
    "<C-u>",
    "<C-w>",
    "<C-y>",
    "<C-7>",
    "<A-->",
    "<A-t>",
    "<A-p>",
    "<A-d>",
    "<A-n>",
    "<A-f>",
    "<A-Enter>",
    "<A-Up>",
    "<F1>",
    "<F12>",
    "<Backspace>",
    "<Delete>",
    "<C-j>",
    "y",
    "]e",
    "<Space>",
    "G",
    "o",
    "/",
];

const LINES: [&str; 14] = [
    "/undo<Enter>",
    "/redo<Enter>",
    "/compact<Enter>",
    "/fork<Enter>",
    "/new<Enter>",
    "/resume<Enter>",
    "/model<Enter>",
    "/theme light<Enter>",
    "/find the<Enter>",
    "/copy<Enter>",
    "/outline<Enter>",
    "/usage<Enter>",
    "look at @a<Tab><Enter>",
    "tell me more<Enter>",
];

fn happens() -> impl Strategy<Value = Happens> {
    prop_oneof![
        8 => proptest::sample::select(&KEYS[..]).prop_map(Happens::Keys),
        4 => proptest::sample::select(&LINES[..]).prop_map(Happens::Keys),
        3 => "[a-z /@!?漢é👩\u{301}]{0,12}".prop_map(|text| Happens::Typed(text.replace('<', ""))),
        2 => "(?s).{0,40}".prop_map(Happens::Pasted),
        1 => (0..40_u32).prop_map(|n| Happens::Pasted((0..n).map(|n| format!("line {n}\n")).collect())),
        3 => (proptest::sample::select(&[0_u8, 2, 32, 35, 64, 65][..]), 0..140_u16, 0..50_u16, any::<bool>())
            .prop_map(|(button, column, row, up)| Happens::Mouse { button, column, row, up }),
        2 => (1..140_u16, 1..50_u16).prop_map(|(columns, rows)| Happens::Resized(columns, rows)),
        2 => Just(Happens::Settled),
    ]
}

/// The steps of the model: answers of every kind, changes that need an approval, and failures.
pub(super) fn steps() -> Vec<Step> {
    let one = || {
        vec![
            says(
                "# A head\n\nSome **text** with `code`:\n\n```rust\nfn main() {}\n```\n\n| a | b |\n|---|---|\n| 1 | 漢字 |\n",
            ),
            calls("write", json!({"path": "made.txt", "content": "never\n"})),
            says("- one\n  - two\n    - three 👩‍👩‍👧\n\n> quoted"),
            calls("bash", json!({"command": "touch made.txt"})),
            says(&"A long answer that wraps. ".repeat(80)),
            calls("update_plan", json!({"items": [{"step": "look", "status": "in_progress"}]})),
            Step {
                error: Some(ScriptedError { code: "INVALID_RESPONSE".into(), message: "broken".into() }),
                ..says("Half an")
            },
            calls("read", json!({"path": "a.txt"})),
            says(""),
        ]
    };
    (0..20).flat_map(|_| one()).collect()
}

/// Runs in `ask`, or in `read-only`, from which no key that is pressed leaves.
async fn run(events: &[Happens], is_read_only: bool) {
    let mut pixir = Pixir::sized(steps(), &[("a.txt", "alpha\nbeta\n"), ("b/c.rs", "fn c() {}\n")], 80, 24);
    pixir.screen.until_idle().await;
    if is_read_only {
        pixir.does("/mode read-only<Enter>").await;
    }
    let mut size = (80, 24);
    for event in events {
        match event {
            // These keys change the mode, or open a session with another mode.
            Happens::Keys("<S-Tab>" | "/new<Enter>" | "/resume<Enter>") if is_read_only => {}
            Happens::Keys(keys) => pixir.screen.keys(keys).await,
            Happens::Typed(text) => pixir.screen.keys(text).await,
            Happens::Pasted(text) => pixir.screen.paste(text).await,
            Happens::Mouse { button, column, row, up } => {
                let end = if *up { 'm' } else { 'M' };
                pixir.screen.bytes(format!("\x1b[<{button};{};{}{end}", column + 1, row + 1).as_bytes()).await;
            }
            Happens::Resized(columns, rows) => {
                size = (*columns, *rows);
                pixir.screen.resize(*columns, *rows);
            }
            Happens::Settled => pixir.screen.try_until_idle().await.unwrap_or_else(|why| panic!("{}", why.message)),
        }
        if pixir.screen.is_done() {
            break;
        }
        let area = pixir.screen.buffer().area;
        assert_eq!((area.width, area.height), size, "a frame is as large as the screen");
        if let Some(caret) = pixir.screen.semantics()["caret"].as_object() {
            let (column, row) = (caret["column"].as_u64(), caret["row"].as_u64());
            assert!(column < Some(u64::from(size.0)) && row < Some(u64::from(size.1)), "the caret is on the screen");
        }
        pixir.screen.paint();
        assert!(!is_read_only || !pixir.path("made.txt").exists(), "something ran that must not");
    }
    pixir.screen.close().await.expect("a session was open");
}

#[test]
fn random_input_never_panics_and_never_writes_in_read_only() {
    let cases = tier::cases("chaos");
    let mut runner = TestRunner::new(Config { max_shrink_iters: 100, ..random::config(cases) });
    let outcome =
        runner.run(&(proptest::collection::vec(happens(), 1..60), any::<bool>()), |(events, is_read_only)| {
            let runtime =
                tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
            runtime.block_on(run(&events, is_read_only));
            Ok(())
        });
    if let Err(why) = outcome {
        panic!("{why}");
    }
    figures(&format!("chaos: {cases} runs of up to 60 events, all went on"));
}
