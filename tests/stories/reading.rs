use pixir_core::provider::script::{Script, Step};
use serde_json::json;

use crate::driver::{Pixir, also_calls, calls, log_of, say, says};

/// A conversation with something of everything.
async fn conversation(columns: u16, rows: u16) -> Pixir {
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
async fn what_is_read_stays_where_it_is_whatever_happens_below() {
    let more: String = (1..=50).map(|n| format!("More {n}.\n\n")).collect();
    let long: String = (1..=60).map(|n| format!("Paragraph {n} here.\n\n")).collect();
    let mut pixir = Pixir::new(vec![says(&long), says(&more)], &[]);
    pixir.does("go<Enter>").await;
    pixir.does("<PgUp><PgUp>").await;
    // Beside it the bar shows what is known of the whole, which a layout at another width has changed.
    let text = |line: &str| line.trim_end_matches(['┃', '╼', '━', ' ']).to_owned();
    let middle = |screen: &str| screen.lines().skip(2).take(12).map(text).collect::<Vec<_>>();
    let before = pixir.does("and more").await;
    pixir.screen.keys("<A-Enter>").await;
    // Sending goes to the end; reading back again, nothing that comes moves it.
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
async fn what_is_searched_is_found_everywhere_also_in_what_is_folded() {
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
async fn what_is_searched_is_found_as_it_is_read_and_what_was_opened_for_it_is_folded_again() {
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
    assert_eq!(pixir.does("<Esc>").await, folded, "whoever goes back finds everything as it was");
}

#[tokio::test]
async fn the_transcript_takes_the_focus_and_is_walked_by_entries_prompts_and_errors() {
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
    assert!(screen.contains("✗ bash cat nothing.txt"), "{screen}");
    let screen = pixir.does("]e").await;
    assert!(screen.contains("there is no error after this"), "{screen}");
    let screen = pixir.does("o").await;
    assert!(screen.contains("Outline") && screen.contains("tell me of fruit") && screen.contains("✗"), "{screen}");
    let screen = pixir.does("<Home><Enter>").await;
    assert!(screen.contains("❯ tell me of fruit"), "{screen}");
    // A letter that means nothing here is not lost in the draft, and Esc goes back to the line.
    pixir.does("x<Esc>abc").await;
    assert_eq!(pixir.screen.draft(), "abc");
}

#[tokio::test]
async fn an_entry_is_folded_by_itself_or_with_all_others() {
    let mut pixir = conversation(80, 40).await;
    let screen = pixir.screen.screen();
    // What a command says last is what came of it.
    assert!(screen.contains("number 40") && !screen.contains("number 34"), "{screen}");
    assert!(screen.contains("… 34 more lines · Ctrl+O"), "{screen}");
    // A message too, though it has many parts.
    pixir.does("<C-Home><Tab>j").await;
    let screen = pixir.does(" ").await;
    assert!(screen.contains("❯ tell me of fruit") && screen.contains("… 118 more lines"), "{screen}");
    assert!(!screen.contains("Paragraph 2 ") && screen.contains("✓ bash cat numbers.txt"), "{screen}");
    let screen = pixir.does(" ").await;
    assert!(screen.contains("Paragraph 2 "), "{screen}");
    pixir.does("Gk").await;
    let screen = pixir.does(" ").await;
    assert!(screen.contains("number 12"), "all of it:\n{screen}");
    let screen = pixir.does(" ").await;
    assert!(!screen.contains("number 1\n"), "one line:\n{screen}");
    pixir.does(" ").await;
    let screen = pixir.does("<C-o><C-o>").await;
    assert!(screen.contains("✓ bash cat numbers.txt") && !screen.contains("number 1\n"), "each one line:\n{screen}");
}

#[tokio::test]
async fn letters_copy_the_source_and_say_what_became_of_it() {
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

fn osc52(text: &str) -> String {
    use std::fmt::Write as _;
    // Worked out here by hand: the alphabet of RFC 4648.
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

/// Presses, moves and releases the left button; cells from 1, as terminals count.
fn drag(from: (u16, u16), to: (u16, u16)) -> Vec<u8> {
    format!("\x1b[<0;{};{}M\x1b[<32;{};{}M\x1b[<0;{};{}m", from.0, from.1, to.0, to.1, to.0, to.1).into_bytes()
}

/// Where this stands on the screen, cells from 1.
fn place(screen: &str, text: &str) -> (u16, u16) {
    let (row, line) = screen.lines().enumerate().find(|(_, line)| line.contains(text)).expect(text);
    let column = line[..line.find(text).expect("there")].chars().count();
    (column as u16 + 1, row as u16 + 1)
}

#[tokio::test]
async fn the_mouse_selects_text_as_it_stands_in_the_source() {
    let words = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen.";
    let answer = format!(
        "{words}\n\n- a list item that is long enough to be wrapped on this narrow screen, twice even\n\n```\nlet x = 1;\nlet y = 2;\n```"
    );
    let mut pixir = Pixir::sized(vec![says(&answer)], &[], 50, 30);
    let screen = pixir.does("go<Enter>").await;
    // Over soft line ends: the words come out on one line.
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
    // Esc lets it go; a click alone copies nothing.
    pixir.does("<Esc>").await;
    pixir.screen.bytes(drag((10, 25), (10, 25)).as_slice()).await;
    assert!(pixir.screen.signals().is_empty());
}

#[tokio::test]
async fn a_click_opens_a_card_and_drags_the_bar_but_answers_nothing() {
    let mut pixir = conversation(80, 40).await;
    let screen = pixir.screen.screen();
    let at = place(&screen, "bash cat numbers.txt");
    pixir.screen.bytes(&drag(at, at)).await;
    assert!(pixir.screen.screen().contains("number 12"), "{}", pixir.screen.screen());
    pixir.screen.bytes(b"\x1b[<0;80;2M\x1b[<0;80;2m").await;
    assert!(pixir.screen.screen().contains("❯ tell me of fruit"), "the top of the bar is the start");
    let mut pixir = Pixir::new(vec![calls("write", json!({"path": "b.txt", "content": "x"})), says("Fine.")], &[]);
    let screen = pixir.does("go<Enter>").await;
    let at = place(&screen, "Alt+Y once");
    pixir.screen.bytes(&drag(at, at)).await;
    pixir.screen.until_idle().await;
    let screen = pixir.screen.screen();
    assert!(screen.contains("y once"), "the click has turned to it:\n{screen}");
    assert_eq!(pixir.file("b.txt"), "(No such file or directory (os error 2))", "and allowed nothing");
}

#[tokio::test]
async fn keys_are_the_persons_and_a_key_never_means_two_things() {
    let mut pixir = Pixir::with_keys(vec![says("One.")], &[("tree", &["f5", "ctrl+x t"])]).expect("valid");
    pixir.does("go<Enter>").await;
    assert!(
        pixir.does("<F5>").await.contains("─ Tree ") || pixir.screen.screen().contains("Tree"),
        "{}",
        pixir.screen.screen()
    );
    pixir.does("<Esc>").await;
    let screen = pixir.does("<C-x>").await;
    assert!(screen.contains("Ctrl+X") && screen.contains("t turns and branches"), "what may follow:\n{screen}");
    let screen = pixir.does("t").await;
    assert!(screen.contains("e edit"), "{screen}");
    let screen = pixir.does("<Esc><C-t>").await;
    assert!(!screen.contains("e edit"), "the old key is free:\n{screen}");
    let error = Pixir::with_keys(Vec::new(), &[("tree", &["ctrl+p"])]).err().expect("a conflict");
    assert!(error.message.contains("both") && error.remedy.plain().contains("palette"), "{error:?}");
}

#[tokio::test]
async fn the_palette_finds_everything_by_a_few_letters() {
    let mut pixir = conversation(80, 30).await;
    let screen = pixir.does("<C-p>outl").await;
    assert!(screen.contains("/outline"), "{screen}");
    let screen = pixir.does("<Enter>").await;
    assert!(screen.contains("Outline") && screen.contains("tell me of fruit"), "{screen}");
    pixir.does("<Esc><C-p>rename<Enter>").await;
    assert_eq!(pixir.screen.draft(), "/rename ", "what it is about has to be said first");
}

#[tokio::test]
async fn on_a_wide_screen_the_plan_stands_beside_and_on_a_narrow_one_it_does_not() {
    let plan = json!({"items": [{"step": "Look", "status": "completed"}, {"step": "Fix", "status": "in_progress"}]});
    let step = also_calls(calls("update_plan", plan), "bash", json!({"command": "cat a.txt"}));
    let mut pixir = Pixir::sized(vec![step, says("Done.")], &[("a.txt", "alpha\n")], 140, 40);
    let screen = pixir.does("go<Enter>").await;
    assert!(screen.contains("Plan  Changes  Tree  Context"), "{screen}");
    let screen = pixir.does("<Tab><Tab><Right><Right><Right>").await;
    assert!(screen.contains("prompts") && screen.contains("results"), "{screen}");
    let screen = pixir.does("<A-p>").await;
    assert!(!screen.contains("Changes  Tree"), "{screen}");
    pixir.does("<A-p>").await;
    pixir.screen.resize(100, 30);
    assert!(!pixir.screen.screen().contains("Changes  Tree"));
    let screen = pixir.does("<A-p>").await;
    assert!(screen.contains("needs a screen of 120 columns"), "{screen}");
}

#[tokio::test]
async fn a_long_answer_looks_the_same_while_it_streams_when_it_is_whole_and_when_it_is_read_again() {
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
async fn a_long_conversation_opens_at_its_end_and_the_bar_leads_anywhere() {
    let mut pixir = Pixir::resumed(100, 40, |folder, workspace| {
        let mut log = log_of(folder, workspace);
        for n in 1..=3_000_u32 {
            let told = format!("The answer to {n}.\n\nIt is long. ").repeat(3);
            say(&mut log, n, &format!("question {n}"), &told);
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
    assert!(screen.contains("1 of 11") || screen.contains("of 11"), "{screen}");
    pixir.does("<Esc><C-Home>").await;
    assert_eq!(number(&pixir.screen.screen()), 1);
}

#[tokio::test]
async fn what_is_said_meanwhile_stands_behind_the_growing_answer_and_not_in_it() {
    let text = format!("{}\n\nSecond paragraph", "word ".repeat(600));
    let mut pixir = Pixir::sized(vec![Step { hang: true, ..says(&text) }], &[], 80, 40);
    pixir.screen.until_idle().await;
    pixir.screen.keys("go<Enter>").await;
    pixir.screen.until("Second paragraph").await;
    pixir.screen.keys("/usage<Enter>").await;
    pixir.screen.until("no request has reported").await;
    let screen = pixir.screen.screen();
    let place = |text: &str| screen.find(text).expect("it is in sight");
    assert!(place("Second paragraph") < place("no request has reported"), "{screen}");
    pixir.screen.keys("<Esc>").await;
    pixir.screen.until_idle().await;
    let screen = pixir.screen.screen();
    assert!(screen.contains("Second paragraph") && screen.contains("it broke off here"), "{screen}");
}

#[tokio::test]
async fn what_is_said_while_something_is_searched_is_found_too_and_takes_nobody_away() {
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
async fn blanks_are_copied_where_a_row_ends_in_the_middle_of_them() {
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
async fn no_link_leads_elsewhere_than_it_says_and_none_of_the_text_is_lost() {
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
async fn a_line_that_is_very_long_makes_no_card_high() {
    let [six, cut] = ["head -c 2000", "cat"].map(|cat| format!("for n in 1 2 3 4 5 6; do {cat} long.txt; echo; done"));
    // Of what was cut there is one line, and that five more are missing.
    for (command, rows) in [("cat long.txt", 3..=3), ("cat long.txt; false", 3..=3), (&cut, 4..=4), (&six, 8..=14)] {
        let steps = vec![calls("bash", json!({ "command": command })), says("Read.")];
        let mut pixir = Pixir::sized(steps, &[("long.txt", &"word ".repeat(2_000))], 80, 40);
        let screen = pixir.does("/mode auto<Enter>read it<Enter>").await;
        assert!(screen.contains("❯ read it") && screen.contains("… more of this line · Ctrl+O"), "{screen}");
        assert!(rows.contains(&screen.matches("   │ ").count()), "{screen}");
        let screen = pixir.does("<C-o><C-Home>").await;
        assert!(!screen.contains("more of this line"), "{screen}");
    }
}

#[tokio::test]
async fn an_address_in_plain_words_has_a_letter_where_it_stands() {
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
async fn what_stands_in_an_answer_that_is_still_being_written_has_letters_too() {
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

/// An answer that comes slowly enough to be looked at while it does.
async fn streaming(text: &str, until: &str) -> Pixir {
    let step = Step { text: text.to_owned(), ..Step::default() };
    let mut pixir = Pixir::scripted(Script { pace_ms: 1, steps: vec![step], ..Script::default() }, &[], 80, 24);
    pixir.screen.until_idle().await;
    pixir.screen.keys("go<Enter>").await;
    pixir.screen.until(until).await;
    pixir
}

#[tokio::test]
async fn a_table_that_grows_wider_does_not_move_what_is_read_in_it() {
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
async fn what_is_being_written_is_searched_and_selected_like_the_rest() {
    let text: String = (10..70).map(|n| format!("Paragraph {n} has a needle.\n\n")).collect();
    let mut pixir = streaming(&text, "Paragraph 30").await;
    // What is selected stands still while more is said.
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
