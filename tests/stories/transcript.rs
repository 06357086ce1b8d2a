//! Reading the transcript: scrolling, folding, walking by entry.

use pixir_core::provider::script::{Script, Step};
use serde_json::json;

use crate::driver::{Pixir, calls, log_of, say, says};

/// A conversation with every kind of entry.
pub(super) async fn conversation(columns: u16, rows: u16) -> Pixir {
    let long: String = (1..=60).map(|n| format!("Paragraph {n} talks about apples and pears.\n\n")).collect();
    let code =
        "Here it is:\n\n```rust\nfn main() {\n\tprintln!(\"hi\");\n}\n```\n\nSee [the docs](https://example.com/docs).";
    let failing = calls("bash", json!({"command": "cat nothing.txt"}));
    let listing = calls("bash", json!({"command": "cat numbers.txt"}));
    let numbers: String = (1..=40).map(|n| format!("number {n}\n")).collect();
    let steps = vec![says(&long), failing, says("It is not there."), listing, says(code)];
    let mut pixir = Pixir::sized(steps, &[("numbers.txt", &numbers)], columns, rows);
    pixir.does("tell me of fruit<Enter>").await;
    pixir.does("look at nothing<Enter>").await;
    pixir.does("show me numbers<Enter>").await;
    pixir
}

#[tokio::test]
async fn the_viewport_stays_while_cells_arrive_below() {
    let more: String = (1..=50).map(|n| format!("More {n}.\n\n")).collect();
    let long: String = (1..=60).map(|n| format!("Paragraph {n} here.\n\n")).collect();
    let mut pixir = Pixir::new(vec![says(&long), says(&more)], &[]);
    pixir.does("go<Enter>").await;
    pixir.does("<PgUp><PgUp>").await;
    // The scroll bar beside it shows an estimate of the whole, which a layout at another width changes.
    let text = |line: &str| line.trim_end_matches(['┃', '╼', '━', ' ']).to_owned();
    let middle = |screen: &str| screen.lines().skip(2).take(12).map(text).collect::<Vec<_>>();
    let before = pixir.does("and more").await;
    pixir.screen.keys("<A-Enter>").await;
    // Sending scrolls to the end; scrolled back again, new cells do not move the viewport.
    pixir.screen.until_idle().await;
    assert!(pixir.screen.screen().contains("More 50."));
    pixir.does("<C-Home>").await;
    let start = pixir.screen.screen();
    assert!(start.contains("Paragraph 1 here."), "{start}");
    pixir.screen.resize(60, 20);
    pixir.screen.resize(80, 24);
    assert_eq!(middle(&pixir.screen.screen()), middle(&start), "a window that was made smaller and larger again");
    assert_ne!(middle(&before), middle(&start));
}

#[tokio::test]
async fn the_transcript_is_walked_by_cells_prompts_and_errors() {
    let mut pixir = conversation(80, 24).await;
    let screen = pixir.does("<Tab>").await;
    assert!(screen.contains("k previous") && screen.contains("} prompt"), "hints for where one is:\n{screen}");
    let screen = pixir.does("{").await;
    assert!(screen.contains("❯ show me numbers"), "{screen}");
    let screen = pixir.does("{{").await;
    assert!(screen.contains("❯ tell me of fruit"), "{screen}");
    let screen = pixir.does("]").await;
    assert!(screen.contains("e next error") && screen.contains("d next change"), "which keys may follow:\n{screen}");
    let screen = pixir.does("e").await;
    assert!(screen.contains("✗ $ cat nothing.txt"), "{screen}");
    let screen = pixir.does("]e").await;
    assert!(screen.contains("there is no error after this"), "{screen}");
    let screen = pixir.does("o").await;
    assert!(screen.contains("Outline") && screen.contains("tell me of fruit") && screen.contains("✗"), "{screen}");
    let screen = pixir.does("<Home><Enter>").await;
    assert!(screen.contains("❯ tell me of fruit"), "{screen}");
    // A key without a meaning here does not enter the draft, and Esc returns to the composer.
    pixir.does("x<Esc>abc").await;
    assert_eq!(pixir.screen.draft(), "abc");
}

#[tokio::test]
async fn cells_fold_one_by_one_or_all_at_once() {
    let mut pixir = conversation(80, 40).await;
    let screen = pixir.screen.screen();
    // The last lines of a command show its outcome.
    assert!(screen.contains("number 40") && !screen.contains("number 34"), "{screen}");
    assert!(screen.contains("… 34 more lines · Ctrl+O"), "{screen}");
    // So does a message of many parts.
    pixir.does("<C-Home><Tab>j").await;
    let screen = pixir.does(" ").await;
    assert!(screen.contains("❯ tell me of fruit") && screen.contains("… 118 more lines"), "{screen}");
    assert!(!screen.contains("Paragraph 2 ") && screen.contains("✓ $ cat numbers.txt"), "{screen}");
    let screen = pixir.does(" ").await;
    assert!(screen.contains("Paragraph 2 "), "{screen}");
    pixir.does("Gk").await;
    let screen = pixir.does(" ").await;
    assert!(screen.contains("number 12"), "all of it:\n{screen}");
    let screen = pixir.does(" ").await;
    assert!(!screen.contains("number 1\n"), "one line:\n{screen}");
    pixir.does(" ").await;
    let screen = pixir.does("<C-o><C-o>").await;
    assert!(screen.contains("✓ $ cat numbers.txt") && !screen.contains("number 1\n"), "each one line:\n{screen}");
}

pub(super) fn osc52(text: &str) -> String {
    use std::fmt::Write as _;
    // Base64 is encoded by hand here, with the alphabet of RFC 4648.
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut encoded = String::new();
    for three in text.as_bytes().chunks(3) {
        let bits = three.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - three.len()));
        for at in 0..4 {
            if at <= three.len() {
                encoded.push(char::from(ALPHABET[(bits >> (18 - 6 * at)) as usize & 63]));
            } else {
                encoded.push('=');
            }
        }
    }
    let mut sequence = String::new();
    let _ = write!(sequence, "\x1b]52;c;{encoded}\x1b\\");
    sequence
}

/// The position of this text on the screen, in cells from 1.
pub(super) fn place(screen: &str, text: &str) -> (u16, u16) {
    let (row, line) = screen.lines().enumerate().find(|(_, line)| line.contains(text)).expect(text);
    let column = line[..line.find(text).expect("there")].chars().count();
    (column as u16 + 1, row as u16 + 1)
}

/// Broken build: until the row below its head is whole, a table that streams in is shown with its pipes.
#[tokio::test]
async fn a_table_that_streams_in_is_a_table_from_its_head_on() {
    for begun in ["| numbers | before", "| numbers | before |\n", "| numbers | before |\n|---|-"] {
        let text = format!("The averages:\n\n{begun}");
        let mut pixir = Pixir::new(vec![Step { hang: true, ..says(&text) }], &[]);
        pixir.screen.until_idle().await;
        pixir.screen.keys("go<Enter>").await;
        pixir.screen.until("numbers │ before").await;
        let screen = pixir.screen.screen();
        assert!(!screen.contains('|') && !screen.contains("---"), "{begun:?}:\n{screen}");
    }
}

#[tokio::test]
async fn a_long_answer_looks_the_same_streamed_whole_and_resumed() {
    let mut text = String::from("# Title\n\n");
    for n in 0..40 {
        text.push_str(&format!(
            "Paragraph {n} with **bold** and `code` and 漢字 and 👨‍👩‍👧, long enough to be wrapped at least once here.\n\n"
        ));
        if n % 8 == 0 {
            text.push_str("```sh\nls -la\n\necho done\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n");
        }
    }
    let mut pixir = Pixir::sized(vec![Step { hang: true, ..says(&text) }, says("x")], &[], 70, 30);
    pixir.screen.until_idle().await;
    pixir.screen.keys("go<Enter>").await;
    pixir.screen.until("Paragraph 39").await;
    let body = |screen: String| {
        screen.lines().take(20).map(|line| line.trim_end_matches(['┃', '╼', '━', ' ']).to_owned()).collect::<Vec<_>>()
    };
    pixir.screen.keys("<C-Home>").await;
    let mut while_it_streams = Vec::new();
    for _ in 0..6 {
        while_it_streams.push(body(pixir.screen.screen()));
        pixir.screen.keys("<PgDn>").await;
    }
    pixir.screen.keys("<Esc>").await;
    pixir.screen.until_idle().await;
    let mut pixir = pixir.again(vec![]).await;
    pixir.screen.resize(70, 30);
    pixir.screen.until_idle().await;
    pixir.screen.keys("<C-Home>").await;
    for (page, seen) in while_it_streams.iter().enumerate().take(4) {
        assert_eq!(&body(pixir.screen.screen())[1..], &seen[1..], "page {page}");
        pixir.screen.keys("<PgDn>").await;
    }
}

#[tokio::test]
async fn a_long_session_opens_at_its_end_and_the_bar_scrolls() {
    let mut pixir = Pixir::resumed(100, 40, |folder, workspace| {
        let mut log = log_of(folder, workspace);
        for n in 1..=3_000_u32 {
            let output = format!("The answer to {n}.\n\nIt is long. ").repeat(3);
            say(&mut log, n, &format!("question {n}"), &output);
        }
        log.establish().expect("establish");
    });
    pixir.screen.until_idle().await;
    assert!(pixir.screen.screen().contains("The answer to 3000."), "{}", pixir.screen.screen());
    let number = |screen: &str| {
        let at = screen.find("❯ question ").expect("a prompt is in sight");
        let digits: String = screen[at + "❯ question ".len()..].chars().take_while(char::is_ascii_digit).collect();
        digits.parse::<u32>().expect("its number")
    };
    pixir.screen.bytes(b"\x1b[<0;100;19M\x1b[<0;100;19m").await;
    let middle = number(&pixir.screen.screen());
    assert!((1_300..1_700).contains(&middle), "{middle}");
    pixir.does("<Tab>}").await;
    let next = number(&pixir.screen.screen());
    pixir.does("}}}}}").await;
    assert_eq!(number(&pixir.screen.screen()), next + 5);
    let screen = pixir.does("<C-f>question 77").await;
    assert!(screen.contains("1 of 11"), "{screen}");
    pixir.does("<Esc><C-Home>").await;
    assert_eq!(number(&pixir.screen.screen()), 1);
}

#[tokio::test]
async fn a_notice_goes_below_the_streaming_answer() {
    let text = format!("{}\n\nSecond paragraph", "word ".repeat(600));
    let mut pixir = Pixir::sized(vec![Step { hang: true, ..says(&text) }], &[], 80, 40);
    pixir.screen.until_idle().await;
    pixir.screen.keys("go<Enter>").await;
    pixir.screen.until("Second paragraph").await;
    std::fs::create_dir(pixir.path("../lib")).expect("mkdir");
    pixir.screen.keys("/add-dir ../lib<Enter>").await;
    pixir.screen.until("this session").await;
    let screen = pixir.screen.screen();
    let place = |text: &str| screen.find(text).expect("it is in sight");
    assert!(place("Second paragraph") < place("this session"), "{screen}");
    pixir.screen.keys("<Esc>").await;
    pixir.screen.until_idle().await;
    let screen = pixir.screen.screen();
    assert!(screen.contains("Second paragraph") && screen.contains("the answer was cut off here"), "{screen}");
}

/// An answer that streams slowly enough for a test to look at the screen meanwhile.
pub(super) async fn streaming(text: &str, until: &str) -> Pixir {
    let step = Step { text: text.to_owned(), ..Step::default() };
    let mut pixir = Pixir::scripted(Script { pace_ms: 1, steps: vec![step], ..Script::default() }, &[], 80, 24);
    pixir.screen.until_idle().await;
    pixir.screen.keys("go<Enter>").await;
    pixir.screen.until(until).await;
    pixir
}

#[tokio::test]
async fn a_table_that_grows_wider_does_not_move_the_viewport() {
    let row =
        |n: u32| format!("| {n} | {} | {} |\n", "some words ".repeat(4), "more ".repeat(if n < 60 { 2 } else { 12 }));
    let table: String = (10..75).map(row).collect();
    let mut pixir = streaming(&format!("| n | a | b |\n|---|---|---|\n{table}"), "40 │").await;
    pixir.screen.keys("<PgUp>").await;
    let first = |screen: &str| {
        let number = |line: &str| line.split_whitespace().next().and_then(|word| word.parse::<u32>().ok());
        screen.lines().skip(1).find_map(number).unwrap_or_else(|| panic!("a row of the table: {screen}"))
    };
    let before = first(&pixir.screen.screen());
    pixir.screen.until_idle().await;
    let after = pixir.screen.screen();
    assert!(first(&after).abs_diff(before) <= 1, "{before}:\n{after}");
    for columns in [100, 74, 90, 80] {
        pixir.screen.resize(columns, 24);
        let screen = pixir.screen.screen();
        assert!(first(&screen).abs_diff(before) <= 1, "{before} at {columns}:\n{screen}");
    }
}

#[tokio::test]
async fn a_cut_output_counts_every_hidden_line() {
    let ok = calls("bash", json!({"command": "seq 1 20000"}));
    let failed = calls("bash", json!({"command": "seq 1 20000; exit 3"}));
    let mut pixir = Pixir::sized(vec![ok, failed, says("Done.")], &[], 100, 40);
    let screen = pixir.does("/mode auto<Enter>count<Enter>").await;
    assert!(screen.contains("│ 6\n   │ … 19994 more lines · Ctrl+O"), "{screen}");
    assert!(screen.contains("│ … 19994 more lines · Ctrl+O\n   │ 19995") && screen.contains("│ 20000"), "{screen}");
    assert!(!screen.contains("Explore:"), "a hint for the model is not shown:\n{screen}");
}

#[tokio::test]
async fn a_resize_keeps_the_first_visible_line() {
    let long: String = (1..=60).map(|i| format!("line {i}\n\n")).collect();
    let mut pixir = Pixir::new(vec![says(&long), says("Newest words."), says("x")], &[]);
    pixir.does("go<Enter>").await;
    let before = pixir.does("<PgUp><PgUp>").await;
    let body = |screen: &str| {
        screen.lines().skip(1).take(10).map(|l| l.trim_end_matches(['│', '┃', ' ']).to_owned()).collect::<Vec<_>>()
    };
    pixir.screen.resize(80, 24);
    assert_eq!(body(&before), body(&pixir.screen.screen()));
    pixir.screen.resize(60, 20);
    pixir.screen.resize(80, 24);
    assert_eq!(body(&before)[0], body(&pixir.screen.screen())[0], "the first line that was read is still the first");
    let followed = pixir.does("<C-End>").await;
    assert!(followed.contains("line 60"), "{followed}");
}

#[tokio::test]
async fn the_viewport_stays_when_the_answer_is_complete() {
    let long: String = (1..=60).map(|i| format!("line {i}\n\n")).collect();
    let script = Script {
        pace_ms: 4,
        steps: vec![Step { reasoning: "I think. ".repeat(40), text: long, ..Step::default() }],
        ..Script::default()
    };
    let mut pixir = Pixir::scripted(script, &[], 80, 24);
    pixir.screen.until_idle().await;
    pixir.screen.keys("go<Enter>").await;
    pixir.screen.until("line 40").await;
    pixir.screen.keys("<PgUp>").await;
    let body = |screen: &str| {
        screen.lines().skip(1).take(15).map(|l| l.trim_end_matches(['│', '┃', ' ']).to_owned()).collect::<Vec<_>>()
    };
    let reading = body(&pixir.screen.screen());
    pixir.screen.until_idle().await;
    assert_eq!(body(&pixir.screen.screen()), reading);
    assert!(pixir.does("<C-End>").await.contains("line 60"));
}

#[tokio::test]
async fn the_viewport_is_restored_on_resume() {
    let long: String = (1..200).map(|n| format!("- line {n}\n")).collect();
    let mut pixir = Pixir::new(vec![says(&long)], &[]);
    // Cells without an Entry do not move the viewport.
    pixir.does("/usage<Enter>").await;
    pixir.does("go<Enter>").await;
    let before = pixir.does("<PgUp><PgUp><C-o>").await;
    let middle = before.lines().nth(8).expect("a line").to_owned();
    let mut again = pixir.again(vec![]).await;
    again.screen.until_idle().await;
    assert_eq!(again.screen.screen().lines().nth(8), Some(middle.as_str()), "{before}");
}

/// Broken build: each step that is done adds a line, so that one turn tells of its plan three times.
#[tokio::test]
async fn a_turn_shows_its_plan_once_where_it_was_last_updated() {
    let plan = |done: usize| {
        let status = |at: usize| if at < done { "completed" } else { "in_progress" };
        let items: Vec<_> = (0..3).map(|at| json!({ "step": format!("step {at}"), "status": status(at) })).collect();
        calls("update_plan", json!({ "items": items }))
    };
    for (columns, rows) in [(80, 24), (200, 60)] {
        let steps = vec![plan(0), plan(1), plan(3), says("Done."), plan(3), says("Again.")];
        let mut pixir = Pixir::sized(steps, &[], columns, rows);
        let screen = pixir.does("go<Enter>").await;
        assert_eq!(screen.matches("▤ Plan · ").count(), 1, "{screen}");
        assert!(screen.contains("▤ Plan · 3 of 3"), "{screen}");
        let screen = pixir.does("again<Enter>").await;
        assert_eq!(screen.matches("▤ Plan · 3 of 3").count(), 2, "one for each turn:\n{screen}");
    }
}

/// Broken builds: a search that finds nothing, or a call that the user interrupted, is a stop of `[e`.
#[tokio::test]
async fn only_what_went_wrong_is_an_error_to_jump_to() {
    let nothing = calls("grep", json!({ "pattern": "nosuchword" }));
    let asked = calls("bash", json!({ "command": "touch later" }));
    let wrong = calls("read", json!({ "path": "nosuch.txt" }));
    let steps = vec![nothing, says("None."), wrong, says("It is not there."), asked, says("Done.")];
    let mut pixir = Pixir::new(steps, &[("a.txt", "x\n")]);
    pixir.does("search<Enter>").await;
    pixir.does("read<Enter>").await;
    pixir.does("touch<Enter>").await;
    let screen = pixir.does("<Esc>").await;
    assert!(screen.contains("■ $ touch later") && screen.contains("interrupted"), "{screen}");
    let chosen =
        |screen: &str| screen.lines().find(|line| line.starts_with('▎')).map(str::to_owned).unwrap_or_default();
    let screen = pixir.does("<Tab>[e").await;
    assert!(chosen(&screen).contains("nosuch.txt"), "the latest error is the file that is not there:\n{screen}");
    let again = pixir.does("[e").await;
    assert_eq!(chosen(&again), chosen(&screen), "and there is none before it:\n{again}");
}
