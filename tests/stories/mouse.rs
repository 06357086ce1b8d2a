//! The mouse in lists and previews: a click selects and a second one chooses, the wheel turns what is under the pointer.

use serde_json::json;

use crate::driver::{Pixir, calls, says};

/// The label of the selected row.
fn selected(pixir: &Pixir) -> String {
    let screen = pixir.screen.semantics();
    let regions = screen["regions"].as_array().expect("regions").clone();
    let option = regions.into_iter().find(|it| it["role"] == "option" && it["selected"] == true);
    option.map_or_else(String::new, |it| it["label"].as_str().expect("a label").to_owned())
}

/// The column and the row, from 1, of the last place with this text.
pub(super) fn place_of(pixir: &Pixir, text: &str) -> (usize, usize) {
    let screen = pixir.screen.screen();
    let found = screen.lines().enumerate().filter_map(|(row, line)| Some((row, line.find(text)?, line))).last();
    let (row, byte, line) = found.unwrap_or_else(|| panic!("{text} is not on\n{screen}"));
    (line[..byte].chars().count() + 1, row + 1)
}

async fn click(pixir: &mut Pixir, text: &str) {
    let (column, row) = place_of(pixir, text);
    pixir.screen.bytes(format!("\x1b[<0;{column};{row}M\x1b[<0;{column};{row}m").as_bytes()).await;
    pixir.does("").await;
}

/// Turns the wheel down by a notch, or up, over this text.
async fn wheel(pixir: &mut Pixir, text: &str, button: u8) -> String {
    let (column, row) = place_of(pixir, text);
    pixir.screen.bytes(format!("\x1b[<{button};{column};{row}M").as_bytes()).await;
    pixir.does("").await
}

async fn sees(pixir: &mut Pixir, text: &str) -> String {
    pixir.screen.until(text).await;
    pixir.screen.screen()
}

const DOWN: u8 = 65;
const UP: u8 = 64;

fn bash(command: &str) -> pixir_core::provider::script::Step {
    calls("bash", json!({ "command": command }))
}

/// Broken builds: the wheel over the list scrolls the lines, or shows another file; a click lets the list jump.
#[tokio::test]
async fn the_wheel_over_the_files_of_a_diff_scrolls_their_list_and_leaves_the_lines() {
    let make = "for n in $(seq 10 60); do seq 1 40 > file$n.txt; done";
    let mut pixir = Pixir::sized(vec![bash(make), says("Done.")], &[], 120, 24);
    pixir.does("/mode auto<Enter>").await;
    pixir.does("go<Enter>").await;
    let before = pixir.does("/diff<Enter>").await;
    assert!(before.contains("A file10.txt") && !before.contains("file40.txt"), "{before}");
    let lines = |screen: &str| screen.lines().map(|row| row.chars().skip(40).collect::<String>()).collect::<Vec<_>>();
    let mut screen = String::new();
    for _ in 0..8 {
        screen = wheel(&mut pixir, "A file", DOWN).await;
    }
    assert!(!screen.contains("A file12.txt") && screen.contains("A file40.txt"), "{screen}");
    assert_eq!(lines(&screen), lines(&before), "the file on the screen stays");
    let (_, row) = place_of(&pixir, "A file40.txt");
    click(&mut pixir, "A file40.txt").await;
    let (column, after) = place_of(&pixir, "A file40.txt");
    assert_eq!(after, row, "the list stands still under the pointer: {column}");
    assert!(pixir.screen.screen().matches("file40.txt").count() == 2, "it is shown:\n{}", pixir.screen.screen());
    // Over the lines the wheel scrolls the lines.
    let screen = wheel(&mut pixir, "20", DOWN).await;
    assert!(screen.contains("A file40.txt") && lines(&screen) != lines(&before), "{screen}");
    // A key brings the list back to the file.
    for _ in 0..20 {
        wheel(&mut pixir, "file40.txt", UP).await;
    }
    pixir.does("").await;
    let screen = pixir.does("]").await;
    assert!(screen.matches("file41.txt").count() == 2, "{screen}");
}

/// Broken builds: the click answers with the entry that stood there before; one click moves the entry; the wheel over the
/// summary moves the cursor of the lists.
#[tokio::test]
async fn clicks_choose_and_move_entries_of_a_compaction_and_the_wheel_reads_its_summary() {
    let mut steps = Vec::new();
    for n in 0..6 {
        steps.push(says(&format!("answer {n}: {}", "a long word ".repeat(900))));
    }
    let mut pixir = Pixir::sized(steps, &[], 120, 30);
    for n in 0..6 {
        pixir.does(&format!("question {n}<Enter>")).await;
    }
    pixir.does("/compact<Enter>").await;
    let screen = sees(&mut pixir, "Kept word for word").await;
    let list = |screen: &str, name: &str| {
        let line =
            screen.lines().find(|line| line.contains(name)).unwrap_or_else(|| panic!("{name}\n{screen}")).to_owned();
        line.split(name).nth(1).and_then(|rest| rest.split_whitespace().next().map(str::to_owned))
    };
    let before = list(&screen, "Kept word for word");
    click(&mut pixir, "message  question 1").await;
    assert!(selected(&pixir).contains("question 1"), "{}", selected(&pixir));
    assert_eq!(list(&pixir.screen.screen(), "Kept word for word"), before, "one click moves nothing");
    click(&mut pixir, "message  question 1").await;
    let moved = pixir.screen.screen();
    assert_ne!(list(&moved, "Dropped"), Some("nothing".to_owned()), "{moved}");
    // The wheel is where the pointer is.
    let chosen = selected(&pixir);
    let (column, _) = place_of(&pixir, "Summary  ");
    let top = |screen: &str| screen.lines().map(|row| row.chars().skip(column).collect::<String>()).collect::<Vec<_>>();
    let scrolled = wheel(&mut pixir, "Summary  ", DOWN).await;
    assert_eq!(selected(&pixir), chosen, "the cursor of the lists stays");
    assert_ne!(top(&scrolled), top(&moved), "{scrolled}");
    wheel(&mut pixir, "message  question 1", UP).await;
    assert_ne!(selected(&pixir), chosen);
    assert!(!pixir.kinds().iter().any(|kind| kind == "history_compaction"), "no click applies it");
}

/// Broken builds: the row under a click is counted from the top of the list that is scrolled away; the wheel over the text
/// of a part moves to another part.
#[tokio::test]
async fn a_click_in_the_context_chooses_a_part_a_second_one_goes_there_and_the_wheel_reads_it() {
    let long: String = (1..=60).map(|n| format!("paragraph {n}\n\n")).collect();
    let mut pixir = Pixir::sized(vec![says(&long), says("Short.")], &[], 120, 30);
    pixir.does("tell me a lot<Enter>").await;
    pixir.does("and now briefly<Enter>").await;
    pixir.does("/context<Enter>").await;
    pixir.screen.until("answer").await;
    click(&mut pixir, "paragraph 1").await;
    assert!(selected(&pixir).starts_with("answer"), "{}", selected(&pixir));
    let before = sees(&mut pixir, "paragraph 3").await;
    let chosen = selected(&pixir);
    let (column, row) = place_of(&pixir, "paragraph 3");
    pixir.screen.bytes(format!("\x1b[<{DOWN};{column};{row}M").repeat(4).as_bytes()).await;
    let screen = pixir.does("").await;
    assert_eq!(selected(&pixir), chosen);
    assert_ne!(screen, before);
    assert!(!screen.lines().any(|line| line.trim_end().ends_with("paragraph 1 │")), "{screen}");
    click(&mut pixir, "tell me a lot").await;
    assert!(selected(&pixir).starts_with("message"), "{}", selected(&pixir));
    click(&mut pixir, "tell me a lot").await;
    let screen = pixir.screen.screen();
    assert!(!screen.contains("╭ Context") && screen.contains("❯ tell me a lot"), "it goes there:\n{screen}");
}

/// Broken builds: a list has no rows for clicks; its first click chooses; its second one does nothing.
#[tokio::test]
async fn every_picker_takes_clicks() {
    let files = [
        (".pixir/skills/review/SKILL.md", "---\nname: review\ndescription: Reads a diff hard\n---\nLook.\n"),
        (".pixir/skills/tidy/SKILL.md", "---\nname: tidy\ndescription: Tidies up\n---\nPut back.\n"),
    ];
    let mut pixir = Pixir::sized(vec![says("One."), says("Two.")], &files, 110, 40);
    pixir.does("<Esc>/trust<Enter>").await;
    pixir.does("<Down><Enter>").await;
    pixir.does("first question<Enter>").await;
    pixir.does("second question<Enter>").await;
    // The command, the row, and what is seen once it was chosen.
    let lists = [
        ("/mode<Enter>", "read-only  ", "· read-only ·"),
        ("/effort<Enter>", "minimal", "· minimal ·"),
        ("/theme<Enter>", "high-contrast-light", "theme saved in"),
        ("<C-p>", "/keys", "╭ Help"),
        ("/outline<Enter>", "first question", "❯ first question"),
        ("/skill<Enter>", "tidy ", "◆ skill tidy is active"),
    ];
    for (open, row, then) in lists {
        let title = pixir.does(open).await;
        click(&mut pixir, row).await;
        let once = pixir.screen.screen();
        assert!(selected(&pixir).contains(row.trim()), "{open}: {}\n{once}", selected(&pixir));
        assert_eq!(once.matches('╭').count(), title.matches('╭').count(), "{open}: one click only selects\n{once}");
        click(&mut pixir, row).await;
        pixir.screen.until(then).await;
        pixir.does("<Esc><Esc>").await;
        while pixir.screen.screen().contains("keys of this view") {
            pixir.does("<Esc>").await;
        }
    }
}

/// Broken builds: the wheel over a preview moves the cursor of its list; the wheel over the list leaves the old preview.
#[tokio::test]
async fn the_wheel_over_a_preview_reads_it_and_over_the_list_takes_it_along() {
    let text: String = (1..=80).map(|n| format!("- rule number {n}\n")).collect();
    let review = format!("---\nname: review\ndescription: Reads a diff hard\n---\n{text}");
    let files = [
        (".pixir/skills/review/SKILL.md", review.as_str()),
        (".pixir/skills/tidy/SKILL.md", "---\nname: tidy\ndescription: Tidies up\n---\nPut things back.\n"),
    ];
    let answer: String = (1..=30).map(|n| format!("sentence {n} of the answer\n\n")).collect();
    let mut pixir = Pixir::sized(vec![says(&answer), says(&answer), says(&answer)], &files, 120, 24);
    pixir.does("<Esc>/trust<Enter>").await;
    pixir.does("<Down><Enter>").await;
    for meal in ["breakfast", "lunch", "dinner"] {
        pixir.does(&format!("{meal}<Enter>")).await;
    }
    pixir.does("/skill<Enter>").await;
    pixir.screen.until("rule number 1").await;
    let first = selected(&pixir);
    let mut screen = String::new();
    for _ in 0..4 {
        screen = wheel(&mut pixir, "rule number", DOWN).await;
    }
    assert_eq!(selected(&pixir), first);
    assert!(!screen.contains("rule number 1 ") && screen.contains("rule number 20"), "{screen}");
    let (column, row) = place_of(&pixir, "review ");
    pixir.screen.bytes(format!("\x1b[<{DOWN};{column};{row}M").as_bytes()).await;
    pixir.screen.until("Put things back.").await;
    pixir.does("<Esc>").await;
    // Sessions: the last messages are longer than the preview.
    let mut pixir = pixir.anew(vec![says("Fine.")]).await;
    pixir.does("hello<Enter>").await;
    pixir.does("/sessions<Enter>").await;
    let before = sees(&mut pixir, "sentence 1 of").await;
    let chosen = selected(&pixir);
    let after = wheel(&mut pixir, "sentence 1 of", DOWN).await;
    assert_ne!(after, before);
    wheel(&mut pixir, "sentence", UP).await;
    assert_eq!(selected(&pixir), chosen);
    let (column, row) = place_of(&pixir, "● hello");
    pixir.screen.bytes(format!("\x1b[<{UP};{column};{row}M").as_bytes()).await;
    pixir.does("").await;
    assert_ne!(selected(&pixir), chosen, "the list moves");
    pixir.screen.until("Fine.").await;
}

/// Broken build: a click in the list of rules revokes one, or closes the list.
#[tokio::test]
async fn a_click_on_a_rule_selects_it_and_revokes_nothing() {
    let steps = vec![bash("touch a"), bash("mkdir b"), says("Done.")];
    let mut pixir = Pixir::sized(steps, &[], 100, 30);
    pixir.does("go<Enter>").await;
    pixir.does("<A-a>").await;
    pixir.does("<Enter>").await;
    pixir.does("<A-a>").await;
    pixir.does("<Enter>").await;
    pixir.screen.until("Done.").await;
    pixir.does("/permissions<Enter>").await;
    pixir.screen.until("bash(touch").await;
    for rule in ["bash(mkdir", "bash(touch", "bash(touch"] {
        click(&mut pixir, &format!("allow {rule}")).await;
        assert!(selected(&pixir).contains(rule), "{}", selected(&pixir));
    }
    let screen = pixir.screen.screen();
    assert!(screen.contains("bash(mkdir") && screen.contains("╭ Permissions"), "{screen}");
}

/// Broken builds: a click on a line leaves the cursor in its hunk, so that the key for a hunk takes the other one; a second
/// click there keeps or reverts it.
#[tokio::test]
async fn a_click_on_a_line_of_a_diff_puts_the_cursor_into_its_hunk() {
    let lines: String = (1..=60).map(|n| format!("line {n}\n")).collect();
    let edits = [("line 3\n", "line three\n"), ("line 31\n", "line thirty-one\n")];
    let edits = edits.map(|(old, new)| json!({ "old_text": old, "new_text": new }));
    let steps = vec![calls("edit", json!({ "path": "a.txt", "edits": edits })), says("Done.")];
    let mut pixir = Pixir::sized(steps, &[("a.txt", &lines)], 120, 40);
    pixir.does("/mode auto<Enter>").await;
    pixir.does("go<Enter>").await;
    let screen = pixir.does("/diff<Enter>").await;
    assert!(screen.contains("hunk 1/2"), "{screen}");
    click(&mut pixir, "line thirty-one").await;
    click(&mut pixir, "line thirty-one").await;
    assert!(pixir.screen.screen().contains("hunk 2/2"), "{}", pixir.screen.screen());
    assert!(pixir.file("a.txt").contains("line thirty-one\n"), "a click reverts nothing");
    pixir.does("r").await;
    pixir.screen.until("hunk 1/1").await;
    assert!(pixir.file("a.txt").contains("line 31\n") && pixir.file("a.txt").contains("line three\n"));
}

/// Broken builds: a click on an answer of the card of a rule, or of trust, gives the answer; it chooses nothing.
#[tokio::test]
async fn a_click_on_a_rule_to_save_or_on_an_answer_about_trust_chooses_it_and_a_key_gives_it() {
    let files = [(".pixir/skills/tidy/SKILL.md", "---\nname: tidy\ndescription: Tidies up\n---\nPut back.\n")];
    let mut pixir = Pixir::sized(vec![bash("touch a"), says("Done.")], &files, 100, 30);
    pixir.does("").await;
    for _ in 0..2 {
        click(&mut pixir, "Never  ").await;
        assert!(selected(&pixir).contains("Never"), "{}", selected(&pixir));
    }
    assert!(pixir.screen.screen().contains("What this workspace brings along"), "{}", pixir.screen.screen());
    pixir.does("<Esc>").await;
    pixir.does("go<Enter>").await;
    pixir.does("<A-a>").await;
    for _ in 0..2 {
        click(&mut pixir, "in this project").await;
        assert!(selected(&pixir).contains("in this project"), "{}", selected(&pixir));
    }
    assert!(!pixir.path("a").exists(), "clicks allow nothing");
    pixir.does("<Enter>").await;
    pixir.screen.until("Done.").await;
    assert!(pixir.path("a").exists());
}

/// Broken build: the wheel does nothing in one of the overlays, or turns the conversation behind it.
#[tokio::test]
async fn the_wheel_turns_every_overlay_that_is_longer_than_the_screen() {
    let skills: Vec<(String, String)> = (10..40)
        .map(|n| {
            let text = format!("---\nname: skill-{n}\ndescription: The skill {n}\n---\nText.\n");
            (format!(".pixir/skills/skill-{n}/SKILL.md"), text)
        })
        .collect();
    let mut files: Vec<(&str, &str)> = skills.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let lines: String = (1..=90).map(|n| format!("line {n}\n")).collect();
    files.push(("a.txt", &lines));
    let changed: String = (1..=90).map(|n| format!("changed {n}\n")).collect();
    let mut steps = vec![calls("write", json!({ "path": "a.txt", "content": changed })), says("Written.")];
    steps.extend((0..30).map(|n| says(&format!("answer {n}: {}", "a long word ".repeat(160)))));
    let mut pixir = Pixir::sized(steps, &files, 100, 20);
    pixir.does("<Down><Enter>").await;
    pixir.does("/mode auto<Enter>").await;
    pixir.does("go<Enter>").await;
    for n in 0..30 {
        pixir.does(&format!("question {n}<Enter>")).await;
    }
    // The keys, and the column of the wheel: in the diff and before an undo it reads the lines beside the list.
    let overlays = [
        ("<C-t>", 20),
        ("/diff<Enter>", 60),
        ("/undo 1<Enter>", 60),
        ("/compact<Enter>", 20),
        ("/context<Enter>", 20),
        ("/settings<Enter>", 20),
        ("/theme<Enter>", 20),
        ("/skill<Enter>", 20),
        ("/status<Enter>", 20),
        ("/outline<Enter>", 20),
        ("<C-p>", 20),
        ("?", 20),
    ];
    let conversation = |screen: &str| screen.lines().take(16).map(str::to_owned).collect::<Vec<_>>();
    let behind = conversation(&pixir.screen.screen());
    for (open, column) in overlays {
        let before = pixir.does(open).await;
        let chosen = selected(&pixir);
        for _ in 0..3 {
            pixir.screen.bytes(format!("\x1b[<{UP};{column};9M").as_bytes()).await;
        }
        let up = (pixir.does("").await, selected(&pixir));
        for _ in 0..6 {
            pixir.screen.bytes(format!("\x1b[<{DOWN};{column};9M").as_bytes()).await;
        }
        let down = (pixir.does("").await, selected(&pixir));
        assert!(up != down, "{open}: nothing moved\n{before}\n{chosen}\n{}", down.0);
        pixir.does("<Esc>").await;
        while pixir.screen.screen().contains("Esc close") || pixir.screen.screen().contains("Esc cancel") {
            pixir.does("<Esc>").await;
        }
        pixir.does("<C-u>").await;
        let screen = pixir.screen.screen();
        assert_eq!(conversation(&screen), behind, "{open}: the conversation stays where it was");
    }
}
