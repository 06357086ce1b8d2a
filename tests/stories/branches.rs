//! The tree: its rows, what it finds, what it compares, the trash, the Sessions of the workspace.

use pixir_core::event::{HeadMoved, TurnEnded, TurnStatus, Usage};
use pixir_core::provider::script::Script;
use serde_json::json;

use crate::driver::{Pixir, calls, log_of, say, says};

/// A conversation with a fork at its second Turn: the head is on the branch that began last.
async fn forked() -> Pixir {
    forked_at(120, 30).await
}

async fn forked_at(columns: u16, rows: u16) -> Pixir {
    let write = |text: &str| calls("write", json!({ "path": "slug.py", "content": text }));
    let steps = vec![
        says("It **decomposes** first."),
        write("a = 1\n"),
        says("Tests are there."),
        write("a = 1\nb = 2\nc = 3\n"),
        says("The cache is the *lexer* of the matter."),
        calls("write", json!({ "path": "fast.py", "content": "x = 1\n" })),
        says("## Done\n\n- 1.8× faster\n- memory unchanged"),
        says("The changelog tells of it."),
    ];
    let mut pixir = Pixir::sized(steps, &[], columns, rows);
    pixir.does("<S-Tab>").await;
    for prompt in ["Slugs lose accents<Enter>", "Add tests<Enter>", "Make it faster, with a cache<Enter>"] {
        pixir.does(prompt).await;
    }
    pixir.does("<C-t><Up><Enter>").await;
    pixir.does("<Enter>").await;
    assert_eq!(pixir.file("slug.py"), "a = 1\n");
    pixir.does("Make it faster<Enter>").await;
    pixir.does("Update the changelog<Enter>").await;
    pixir
}

fn rows(screen: &str) -> Vec<String> {
    let row = |line: &str| {
        let line = line.trim_start_matches('│').trim();
        line.starts_with(['●', '◉', '○', '├', '│', '┊', '╭', '✕']).then(|| line.to_owned())
    };
    screen.lines().filter_map(row).collect()
}

/// Broken build: the largest branch goes straight on.
#[tokio::test]
async fn the_branch_with_the_head_is_the_first_column_of_the_tree() {
    let mut pixir = forked().await;
    let screen = pixir.does("<C-t>").await;
    insta::assert_snapshot!("the_tree_of_a_fork", screen);
    let screen = pixir.does("<Up>").await;
    assert!(screen.contains("3 Make it faster, with a cache"), "the other branch stands beside:\n{screen}");
    assert!(screen.contains("The cache is the lexer of the matter."), "the preview is Markdown, rendered:\n{screen}");
    assert!(screen.contains("slug.py") && screen.contains("+2"), "and shows the files:\n{screen}");
    // Also where the other branch is the longer one.
    pixir.does("<Enter>").await;
    pixir.does("<Enter>").await;
    let screen = pixir.does("<C-t>").await;
    let all = rows(&screen);
    let row = |text: &str| all.iter().find(|row| row.contains(text)).unwrap_or_else(|| panic!("{text}\n{screen}"));
    assert!(row("3 Make it faster").starts_with('◉') && row("4 Make it faster").contains('○'), "{screen}");
}

/// Broken build: letters of the search are keys.
#[tokio::test]
async fn a_search_in_the_tree_reads_answers_and_its_letters_do_nothing_else() {
    let mut pixir = forked().await;
    let before = pixir.log().len();
    let screen = pixir.does("<C-t>/lexer").await;
    assert!(screen.contains("/lexer▏   1 match"), "{screen}");
    let screen = pixir.does("<Enter>").await;
    assert!(screen.contains("Turn 3 ·") && screen.contains("The cache is the lexer"), "it is chosen:\n{screen}");
    let screen = pixir.does("/xufdp<Enter>").await;
    assert!(screen.contains("No matches"), "{screen}");
    let screen = pixir.does("/make<Enter>").await;
    assert!(screen.contains("/make   2 matches"), "{screen}");
    let first = rows(&pixir.does("n").await);
    assert_eq!(first, rows(&pixir.does("nn").await), "around at the end");
    assert_eq!(pixir.log().len(), before, "nothing was recorded");
    let screen = pixir.does("<Esc>").await;
    assert!(screen.contains("Tree ·") && !screen.contains("matches"), "Esc ends the search:\n{screen}");
    let screen = pixir.does("<Esc>").await;
    assert!(!screen.contains("Tree ·"), "{screen}");
}

/// Many Turns, one of which failed and one of which was interrupted.
fn long() -> Pixir {
    Pixir::resumed_with(Script::default(), 100, 30, |folder, workspace| {
        let mut log = log_of(folder, workspace);
        for n in 1..=40 {
            say(&mut log, n, &format!("question {n}"), &format!("The answer to {n}."));
            let status = match n {
                12 => TurnStatus::Failed,
                13 => TurnStatus::Interrupted,
                _ => TurnStatus::Completed,
            };
            let usage = Usage { input: 1_000, output: 200, ..Usage::default() };
            let ended = TurnEnded {
                status,
                error: None,
                usage,
                usage_estimated: false,
                cost: pixir_core::event::Cost::default(),
                duration_ms: 4_000,
                tool_calls: 0,
                details: serde_json::Map::new(),
            };
            log.append(Some(n), ended.into()).expect("append");
        }
        log.establish().expect("establish");
    })
}

/// Broken build: nothing is folded.
#[tokio::test]
async fn long_chains_of_turns_are_one_row_until_they_are_unfolded() {
    let mut pixir = long();
    let screen = pixir.does("<C-t>").await;
    assert!(screen.contains("… 10 turns") && screen.contains("… 21 turns"), "{screen}");
    assert!(screen.contains("question 12") && screen.contains("✗ failed"), "{screen}");
    assert!(screen.contains("question 13") && screen.contains("■ interrupted"), "{screen}");
    assert!(screen.contains("40/40"), "{screen}");
    let screen = pixir.does("<Home><Down>").await;
    assert!(screen.contains("2/40") && screen.contains("10 turns, folded"), "{screen}");
    let screen = pixir.does("<Space>").await;
    assert!(screen.contains("question 7") && !screen.contains("… 10 turns"), "{screen}");
    let screen = pixir.does("<Down><Down><Space>").await;
    assert!(screen.contains("… 10 turns"), "it folds again:\n{screen}");
    // Only what failed, and the head.
    let screen = pixir.does("ooo").await;
    assert!(screen.contains("only failed"), "{screen}");
    let shown = rows(&screen);
    let numbers: Vec<&str> = shown.iter().filter_map(|row| row.split("question ").nth(1)?.get(..2)).collect();
    assert_eq!(numbers, ["12", "13", "40"]);
}

/// Broken build: a list without a row offers to go there.
#[tokio::test]
async fn a_filter_that_leaves_no_turn_offers_what_helps() {
    let mut pixir = forked().await;
    let screen = pixir.does("<C-t>ooooo").await;
    assert!(screen.contains("The trash is empty.") && screen.contains("o filter · Tab sessions"), "{screen}");
    assert!(!screen.contains("go here") && !screen.contains("0/0"), "{screen}");
}

/// Broken build: `f` forks at once.
#[tokio::test]
async fn a_fork_in_the_tree_is_asked_about_once() {
    let mut pixir = forked().await;
    let own = pixir.screen.session().cloned();
    let screen = pixir.does("<C-t>f").await;
    assert!(screen.contains("Fork a new session from here?"), "{screen}");
    pixir.does("<Esc>").await;
    let screen = pixir.does("f<Down>").await;
    assert!(!screen.contains("Fork a new session") && pixir.screen.session() == own.as_ref(), "{screen}");
    pixir.does("f<Enter>").await;
    assert_ne!(pixir.screen.session(), own.as_ref());
    let screen = pixir.does("<C-t><Tab>").await;
    assert!(screen.contains("Sessions · 2 sessions") && screen.contains("╰─◉ ↱ "), "{screen}");
    pixir.does("<Up><Enter>").await;
    assert_eq!(pixir.screen.session(), own.as_ref(), "Enter opens the session");
}

/// Broken build: the trash is not read from the Log.
#[tokio::test]
async fn a_deleted_branch_waits_in_the_trash_and_comes_back_whole() {
    let mut pixir = forked().await;
    let screen = pixir.does("<C-t>x").await;
    assert!(screen.contains("the current branch cannot be removed"), "{screen}");
    let screen = pixir.does("<Up>x").await;
    assert!(screen.contains("Move this branch (1 turn) to the trash?"), "{screen}");
    let screen = pixir.does("<Esc>").await;
    assert!(screen.contains("with a cache"), "Esc keeps it:\n{screen}");
    let screen = pixir.does("x<Enter>").await;
    assert!(!screen.contains("with a cache") && screen.contains("moved to the trash"), "{screen}");
    assert!(screen.contains("Tree · 4 turns"), "there is one branch left:\n{screen}");
    let screen = pixir.does("/lexer<Enter>").await;
    assert!(screen.contains("No matches"), "{screen}");
    let removed = pixir.log().into_iter().rfind(|it| it["type"] == "branch_removed").expect("it is recorded");
    assert!(pixir.log().iter().any(|it| it["seq"] == removed["data"]["seq"]), "nothing is erased");
    pixir.does("<Esc><Esc>").await;
    // It stays there when the Session is opened again, and comes back.
    let mut again = pixir.again(vec![]).await;
    let screen = again.does("<C-t>").await;
    assert!(!screen.contains("with a cache"), "{screen}");
    let screen = again.does("ooooo").await;
    assert!(screen.contains("✕ 3 Make it faster, with a cache") && screen.contains("only removed"), "{screen}");
    let screen = again.does("u").await;
    assert!(screen.contains("The trash is empty"), "{screen}");
    let screen = again.does("o").await;
    assert!(screen.contains("○ 3 Make it faster, with a cache"), "{screen}");
}

/// Broken build: the sides are exchanged.
#[tokio::test]
async fn two_turns_are_compared_by_what_was_said_and_by_their_files() {
    let mut pixir = forked().await;
    // From the marked Turn to the chosen one; without a mark, from the head.
    pixir.does("<C-t><Up>m<Down>d").await;
    let screen = pixir.screen.screen();
    assert!(screen.contains("Compare turn 3 with turn 5"), "{screen}");
    assert!(screen.contains("Both share the conversation up to turn 2"), "{screen}");
    assert!(screen.contains("Only on the way to turn 3  1 turn · +2"), "{screen}");
    assert!(screen.contains("Only on the way to turn 5  2 turns · +1"), "{screen}");
    assert!(screen.contains("- b = 2") && screen.contains("- c = 3") && screen.contains("+ x = 1"), "{screen}");
    let screen = pixir.does("<Esc>").await;
    assert!(screen.contains("◆ marked"), "back in the tree:\n{screen}");
    let screen = pixir.does("m<Up>d").await;
    assert!(screen.contains("Compare turn 5 with turn 3"), "{screen}");
}

/// Broken build: a way back leaves no way forward.
#[tokio::test]
async fn the_ways_of_the_head_lead_back_and_forward_also_tomorrow() {
    let mut pixir = forked().await;
    let said = |screen: &str, text: &str| screen.lines().any(|line| line.contains(text));
    // Back to the branch that was left, with its files.
    pixir.does("<C-t><C-o>").await;
    let screen = pixir.does("<Enter>").await;
    assert!(said(&screen, "lexer of the matter") && pixir.file("slug.py").contains("c = 3"), "{screen}");
    let mut again = pixir.again(vec![]).await;
    let screen = again.does("<C-t><C-o>").await;
    assert!(screen.contains("the head has not moved yet"), "there is nothing further back:\n{screen}");
    again.does("b").await;
    let screen = again.does("<Enter>").await;
    assert!(said(&screen, "The changelog tells of it."), "{screen}");
    assert_eq!((again.file("slug.py").as_str(), again.file("fast.py").as_str()), ("a = 1\n", "x = 1\n"));
}

/// Broken build: a click chooses nothing.
#[tokio::test]
async fn the_mouse_chooses_a_turn_and_a_double_click_goes_there() {
    let mut pixir = forked().await;
    let screen = pixir.does("<C-t>").await;
    let row = screen.lines().position(|line| line.contains("1 Slugs lose accents")).expect("it is shown") + 1;
    let click = format!("\x1b[<0;10;{row}M\x1b[<0;10;{row}m");
    pixir.screen.bytes(click.as_bytes()).await;
    pixir.screen.until_idle().await;
    let screen = pixir.screen.screen();
    assert!(screen.contains("1/5") && screen.contains("It decomposes first."), "{screen}");
    pixir.screen.bytes(click.as_bytes()).await;
    pixir.screen.bytes(click.as_bytes()).await;
    pixir.screen.until_idle().await;
    let screen = pixir.screen.screen();
    assert!(!screen.contains("Tree ·"), "it goes there:\n{screen}");
}

/// Broken builds: `v` shows an empty screen; half of the screen stays empty below a short tree.
#[tokio::test]
async fn on_a_small_screen_the_preview_has_the_free_rows_or_is_one_key_away() {
    let mut pixir = Pixir::sized(vec![says("# One\n\n- first\n- second")], &[], 60, 20);
    pixir.does("hello<Enter>").await;
    let screen = pixir.does("<C-t>").await;
    assert!(screen.contains("◉ 1 hello") && screen.contains("• first"), "{screen}");
    pixir.does("<Esc>").await;
    pixir.screen.resize(60, 12);
    let screen = pixir.does("<C-t>").await;
    assert!(screen.contains("◉ 1 hello") && !screen.contains("• first"), "{screen}");
    let screen = pixir.does("v").await;
    assert!(screen.contains("❯ hello") && screen.contains("• first"), "{screen}");
    let screen = pixir.does("<Esc>").await;
    assert!(screen.contains("◉ 1 hello") && screen.contains("1/1"), "{screen}");
}

/// What another process wrote does not put the head into the trash. Broken build: it does.
#[tokio::test]
async fn a_log_that_removes_the_current_branch_opens_with_it() {
    let mut pixir = Pixir::resumed(100, 30, |folder, workspace| {
        let mut log = log_of(folder, workspace);
        say(&mut log, 1, "one", "One.");
        say(&mut log, 2, "two", "Two.");
        let back = HeadMoved { to_seq: Some(2), reason: "rewind".into() };
        log.append(None, back.into()).expect("append");
        say(&mut log, 3, "three", "Three.");
        for seq in [3, 6, 99] {
            let removed = pixir_core::event::BranchRemoved { seq, restored: false };
            log.append(None, removed.into()).expect("append");
        }
        log.establish().expect("establish");
    });
    let screen = pixir.does("<C-t>").await;
    assert!(screen.contains("◉ 3 three") && !screen.contains("2 two"), "{screen}");
}

/// Broken build: the tree is read once, when it is opened.
#[tokio::test]
async fn a_turn_that_begins_while_the_tree_is_open_appears_in_it() {
    let steps =
        vec![says("One."), calls("bash", json!({ "command": "echo 1 > a.txt" })), says("The **second** answer.")];
    let mut pixir = Pixir::sized(steps, &[], 120, 30);
    pixir.does("first<Enter>").await;
    pixir.screen.keys("second<Enter><C-t>").await;
    pixir.screen.until("2 second").await;
    pixir.screen.until("▸ running").await;
    let screen = pixir.screen.screen();
    assert!(screen.contains("● 1 first") && screen.contains("◉ 2 second") && screen.contains("2/2"), "{screen}");
    // The call waits for an answer; after it the Turn ends where the user can see it.
    pixir.screen.until_idle().await;
    pixir.does("<Esc><A-y>").await;
    let screen = pixir.does("<C-t>").await;
    assert!(screen.contains("The second answer.") && !screen.contains("running"), "{screen}");
}

/// Broken build: the wheel always moves the list.
#[tokio::test]
async fn the_wheel_over_the_preview_scrolls_the_preview() {
    let long: String = (1..=60).map(|n| format!("- point {n}\n")).collect();
    let mut pixir = Pixir::sized(vec![says("One."), says(&long)], &[], 120, 30);
    pixir.does("first<Enter>").await;
    pixir.does("second<Enter>").await;
    let screen = pixir.does("<C-t>").await;
    assert!(screen.contains("• point 1 ") && screen.contains("2/2"), "{screen}");
    pixir.screen.bytes(b"\x1b[<65;100;10M\x1b[<65;100;10M").await;
    let screen = pixir.screen.screen();
    assert!(!screen.contains("• point 1 ") && screen.contains("• point 20") && screen.contains("2/2"), "{screen}");
    pixir.screen.bytes(b"\x1b[<64;10;10M").await;
    let screen = pixir.screen.screen();
    assert!(screen.contains("1/2"), "over the list it moves the cursor:\n{screen}");
}

/// Broken build: the comparison is unified on every screen.
#[tokio::test]
async fn files_of_two_turns_stand_side_by_side_on_a_wide_screen() {
    let mut pixir = forked_at(160, 40).await;
    let screen = pixir.does("<C-t><Up>m<Down>d").await;
    let row = screen.lines().find(|row| row.contains("a = 1")).unwrap_or_else(|| panic!("{screen}"));
    assert_eq!(row.matches("a = 1").count(), 2, "{screen}");
    assert!(screen.contains("- b = 2") && screen.contains("+ x = 1"), "{screen}");
}
