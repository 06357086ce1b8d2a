//! Selecting and copying: labels, the mouse, links.

use pixir_core::provider::script::Step;
use rustix::process::Signal;
use serde_json::json;

use super::transcript::{conversation, osc52, place};
use crate::connected::start;
use crate::driver::{Pixir, calls, says};
use crate::server::{Dialect, Reply, Server};
use crate::shell::Shell;

#[test]
fn selecting_beyond_the_top_scrolls_and_stays_there() {
    let shell = Shell::new(&[]);
    let paragraphs: String = (0..80).map(|n| format!("Paragraph {n}.\n\n")).collect();
    let server = Server::start(vec![Reply::Stall { text: paragraphs }]);
    let mut terminal = start(&shell, &server, Dialect::Chat, 80, 24);
    terminal.wait_for("Ask pixir");
    terminal.send("go\r");
    terminal.wait_for("Paragraph 79.");
    // The button is held above the transcript until it has scrolled, and released.
    terminal.send("\x1b[<0;10;15M\x1b[<32;10;1M");
    terminal.wait_that("it scrolls back", |screen| !screen.contains("Paragraph 79.") && screen.contains("Ctrl+End"));
    terminal.send("\x1b[<0;10;1m");
    terminal.wait_for_bytes("\x1b]52;c;");
    let screen = terminal.wait_for("copied");
    assert!(!screen.contains("Paragraph 79.") && screen.contains("Ctrl+End"), "{screen}");
    terminal.signal(Signal::TERM);
    terminal.end().assert_sane();
}

#[tokio::test]
async fn copy_labels_copy_the_source_and_report_it() {
    let mut pixir = conversation(80, 40).await;
    let screen = pixir.does("<Tab>y").await;
    assert!(screen.contains("command") && screen.contains("code") && screen.contains("link"), "{screen}");
    let letter = |what: &str| {
        let at = screen.find(&format!(" {what} ")).expect("a label");
        screen[..at].chars().last().expect("a letter")
    };
    let code = letter("code");
    let screen = pixir.does(&code.to_string()).await;
    assert!(screen.contains("copied 3 lines") && screen.contains("may ignore it"), "{screen}");
    assert_eq!(pixir.screen.signals(), [osc52("fn main() {\n\tprintln!(\"hi\");\n}\n")], "tabs and all");
    pixir.does("<Esc>/copy<Enter>").await;
    assert!(pixir.screen.signals()[0].len() > 100, "the last answer");
}

/// Presses, moves and releases the left button; cells from 1, as terminals count.
fn drag(from: (u16, u16), to: (u16, u16)) -> Vec<u8> {
    format!("\x1b[<0;{};{}M\x1b[<32;{};{}M\x1b[<0;{};{}m", from.0, from.1, to.0, to.1, to.0, to.1).into_bytes()
}

#[tokio::test]
async fn the_mouse_selects_the_source_text() {
    let words = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen.";
    let answer = format!(
        "{words}\n\n- a list item that is long enough to be wrapped on this narrow screen, twice even\n\n```\nlet x = 1;\nlet y = 2;\n```"
    );
    let mut pixir = Pixir::sized(vec![says(&answer)], &[], 50, 30);
    let screen = pixir.does("go<Enter>").await;
    // A selection over soft line ends copies one line.
    let (from, to) = (place(&screen, "one two"), place(&screen, "sixteen."));
    pixir.screen.bytes(&drag(from, (to.0 + 7, to.1))).await;
    pixir.screen.until_idle().await;
    assert_eq!(pixir.screen.signals(), [osc52(words)]);
    // Code without the blanks of its panel; a list with its mark.
    let (from, to) = (place(&screen, "• a list"), place(&screen, "let y"));
    pixir.screen.bytes(&drag(from, (to.0 + 20, to.1))).await;
    pixir.screen.until_idle().await;
    let wanted =
        "- a list item that is long enough to be wrapped on this narrow screen, twice even\n\nlet x = 1;\nlet y = 2;";
    assert_eq!(pixir.screen.signals(), [osc52(wanted)]);
    // Two clicks are a word, three a row.
    let at = place(&screen, "seven");
    let click = format!("\x1b[<0;{};{}M\x1b[<0;{};{}m", at.0 + 1, at.1, at.0 + 1, at.1);
    pixir.screen.bytes(click.repeat(2).as_bytes()).await;
    pixir.screen.until_idle().await;
    assert_eq!(pixir.screen.signals(), [osc52("seven")]);
    // Esc clears the selection; a click alone copies nothing.
    pixir.does("<Esc>").await;
    pixir.screen.bytes(drag((10, 25), (10, 25)).as_slice()).await;
    assert!(pixir.screen.signals().is_empty());
}

#[tokio::test]
async fn clicks_open_cells_and_drag_the_bar_but_decide_nothing() {
    let mut pixir = conversation(80, 40).await;
    let screen = pixir.screen.screen();
    let at = place(&screen, "$ cat numbers.txt");
    pixir.screen.bytes(&drag(at, at)).await;
    assert!(pixir.screen.screen().contains("number 12"), "{}", pixir.screen.screen());
    pixir.screen.bytes(b"\x1b[<0;80;3M\x1b[<0;80;3m").await;
    assert!(pixir.screen.screen().contains("❯ tell me of fruit"), "the top of the bar is the start");
    let mut pixir = Pixir::new(vec![calls("write", json!({"path": "b.txt", "content": "x"})), says("Fine.")], &[]);
    let screen = pixir.does("go<Enter>").await;
    let at = place(&screen, "Alt+Y Allow");
    pixir.screen.bytes(&drag(at, at)).await;
    pixir.screen.until_idle().await;
    let screen = pixir.screen.screen();
    assert!(screen.contains("y Allow"), "the click has turned to it:\n{screen}");
    assert_eq!(pixir.file("b.txt"), "(No such file or directory (os error 2))", "and allowed nothing");
}

#[tokio::test]
async fn blanks_at_a_row_end_are_copied() {
    for before in 36..46 {
        let line = format!("{} = {};", "x".repeat(before), "y".repeat(12));
        let prompt = format!("{}      {}", "a".repeat(before), "b".repeat(10));
        let mut pixir = Pixir::sized(vec![says(&format!("```\n{line}\n```"))], &[], 50, 30);
        let screen = pixir.does(&format!("{prompt}<Enter>")).await;
        let (from, to) = (place(&screen, "xx"), place(&screen, "y;"));
        pixir.screen.bytes(&drag(from, (to.0 + 10, to.1))).await;
        pixir.screen.until_idle().await;
        assert_eq!(pixir.screen.signals(), [osc52(&line)], "{screen}");
        let (from, to) = (place(&screen, "aa"), place(&screen, "bb"));
        pixir.screen.bytes(&drag(from, (to.0 + 9, to.1))).await;
        pixir.screen.until_idle().await;
        assert_eq!(pixir.screen.signals(), [osc52(&prompt)], "{screen}");
    }
}

#[tokio::test]
async fn a_link_shows_its_target_and_loses_no_text() {
    let filler: String = (0..40).map(|n| format!("Paragraph {n} goes on about something else.\n\n")).collect();
    let answer = format!(
        "See [github.com](https://evil.example/github.com), [see **m**](https://evil.example/com), \
         [good.example](https://good.example/), [the guide][g] and a note[^1].\n\n{filler}\
         [g]: https://guide.example/start\n\n[^1]: Yes\n\n<details>\nhidden\n</details>\n\nA<br>B"
    );
    let mut pixir = Pixir::sized(vec![says(&answer)], &[], 100, 40);
    let screen = pixir.does("go<Enter>").await;
    assert!(screen.contains("[g]: https://guide.example/start") && screen.contains("[^1]: Yes"), "{screen}");
    let rows: Vec<&str> = screen.lines().map(|line| line.trim_matches([' ', '┃'])).collect();
    let end = ["<details>", "hidden", "</details>", "", "A", "B"];
    assert!(rows.windows(end.len()).any(|rows| rows == end), "{screen}");
    let screen = pixir.does("<C-Home>").await;
    for shown in ["github.com (https://evil.example/github.com)", "see m (https://evil.example/com)", "good.example,"] {
        assert!(screen.contains(shown), "{shown}:\n{screen}");
    }
    assert!(screen.contains("note[^1]"), "{screen}");
}

#[tokio::test]
async fn a_plain_url_has_a_copy_label() {
    let answer = "It is at https://example.com/a/b, and [here](https://example.org/c).";
    let mut pixir = Pixir::new(vec![says(answer)], &[]);
    pixir.does("go<Enter>").await;
    let screen = pixir.does("<Tab>y").await;
    let row = screen.lines().find(|line| line.contains("link")).expect("letters");
    assert_eq!(row.matches("link").count(), 2, "{screen}");
    let letter = row.chars().take_while(|c| *c != 'l').filter(|c| c.is_alphabetic()).last().expect("a letter");
    pixir.does(&letter.to_string()).await;
    assert_eq!(pixir.screen.signals(), [osc52("https://example.com/a/b")], "{screen}");
}

#[tokio::test]
async fn a_streaming_answer_has_copy_labels() {
    let answer = "First.\n\n```sh\necho one\n```\n\nThen:\n\n```sh\necho two\n";
    let mut pixir = Pixir::new(vec![Step { hang: true, ..says(answer) }], &[]);
    pixir.screen.until_idle().await;
    pixir.screen.keys("go<Enter>").await;
    pixir.screen.until("echo two").await;
    for (nth, copied) in ["echo one\n", "echo two\n"].into_iter().enumerate() {
        pixir.screen.keys("<Tab>y").await;
        let screen = pixir.screen.screen();
        assert_eq!(screen.lines().filter(|line| line.ends_with(" answer")).count(), 1, "one for all of it:\n{screen}");
        let (at, _) = screen.match_indices(" code\n").nth(nth).expect("a label");
        let letter = screen[..at].chars().last().expect("a letter");
        pixir.screen.keys(&letter.to_string()).await;
        assert_eq!(pixir.screen.signals(), [osc52(copied)], "{screen}");
        pixir.screen.keys("<Tab>").await;
    }
}
