//! Lists over the conversation: palette, sessions, help, jobs, HUD.

use serde_json::{Value, json};

use super::sessions::done;
use crate::driver::{Pixir, also_calls, calls, says};
use crate::pty::Terminal;
use crate::shell::Shell;

/// The text of the first row of a list on the screen.
fn first_option(pixir: &Pixir) -> String {
    let screen = pixir.screen.semantics();
    let regions = screen["regions"].as_array().expect("regions").clone();
    let option = regions.into_iter().find(|it| it["role"] == "option").expect("an option");
    option["label"].as_str().expect("a label").to_owned()
}

/// The text of the selected row.
fn selected(pixir: &Pixir) -> String {
    let screen = pixir.screen.semantics();
    let regions = screen["regions"].as_array().expect("regions").clone();
    let option = regions.into_iter().find(|it| it["role"] == "option" && it["selected"] == true);
    option.map_or_else(String::new, |it| it["label"].as_str().expect("a label").to_owned())
}

/// Broken build: the uses are not saved, or saved in the Session's folder.
#[tokio::test]
async fn the_palette_offers_what_was_used_most_also_in_the_next_session() {
    let mut pixir = Pixir::new(vec![says("One.")], &[]);
    pixir.does("<C-p>").await;
    let first = first_option(&pixir);
    assert!(first != "/interrupt" && first != "/quit", "{first}");
    let screen = pixir.screen.screen();
    assert!(!screen.contains("/interrupt"), "it cannot be done now:\n{screen}");
    pixir.does("<Esc>").await;
    for _ in 0..2 {
        pixir.does("/status<Enter>").await;
        pixir.does("<Esc>").await;
    }
    pixir.does("<C-p>").await;
    assert_eq!(first_option(&pixir), "/status");
    pixir.does("<Esc>").await;
    pixir.does("go<Enter>").await;
    let mut pixir = pixir.anew(vec![]).await;
    pixir.does("<C-p>").await;
    assert_eq!(first_option(&pixir), "/status", "and in the next session");
}

#[tokio::test]
async fn the_palette_finds_sessions_files_and_actions_without_a_command() {
    let mut pixir = Pixir::new(vec![says("One.")], &[("src/lexer.rs", "fn lex() {}\n")]);
    pixir.does("mend the tokenizer<Enter>").await;
    let first = pixir.screen.session().expect("open").to_string();
    let mut pixir = pixir.anew(vec![]).await;
    let screen = pixir.does("<C-p>reasoning").await;
    assert!(screen.contains("thinking") && screen.contains("Alt+T"), "{screen}");
    pixir.does("<Esc><C-p>@lexer").await;
    pixir.screen.until("src/lexer.rs").await;
    pixir.does("<Enter>").await;
    assert_eq!(pixir.screen.draft(), "@src/lexer.rs ");
    pixir.does("<C-c><C-p>tokenizer").await;
    pixir.screen.until("mend the tokenizer").await;
    pixir.does("<Enter>").await;
    assert_eq!(pixir.screen.session().expect("open").to_string(), first);
}

/// Keys that come faster than the rows: Enter chooses once they are there, unless another key follows it.
///
/// Broken build: Enter does nothing in a list that is still being read.
#[tokio::test]
async fn enter_in_a_list_that_is_being_read_chooses_when_its_rows_are_there() {
    let mut pixir = Pixir::new(vec![says("Porridge.")], &[]);
    pixir.does("what is for breakfast<Enter>").await;
    let first = pixir.screen.session().expect("open").to_string();
    let mut pixir = pixir.anew(vec![says("Fine.")]).await;
    pixir.does("hello<Enter>").await;
    let second = pixir.screen.session().expect("open").to_string();
    pixir.screen.keys("/sessions<Enter>breakfast<Enter>").await;
    assert!(pixir.screen.screen().contains("loading…"), "{}", pixir.screen.screen());
    pixir.does("").await;
    assert_eq!(pixir.screen.session().expect("open").to_string(), first);
    pixir.screen.keys("/sessions<Enter>hello<Enter><Backspace>").await;
    let screen = pixir.does("").await;
    assert!(screen.contains("Sessions · this workspace"), "the list waits for another Enter:\n{screen}");
    pixir.does("<Enter>").await;
    assert_eq!(pixir.screen.session().expect("open").to_string(), second);
    pixir.screen.keys("/sessions<Enter>breakfast<Enter><Esc>").await;
    pixir.does("").await;
    assert_eq!(pixir.screen.session().expect("open").to_string(), second, "the list was closed");
}

/// Broken build: the preview shows the signs of Markdown.
#[tokio::test]
async fn the_preview_of_a_session_shows_its_answers_as_the_conversation_does() {
    let answer = "## Fixed\n\nSlugs keep **accents** now.\n\n| input | now |\n|---|---|\n| tea | TEA |";
    let mut pixir = Pixir::new(vec![says(answer)], &[]);
    pixir.does("fix it<Enter>").await;
    let mut pixir = pixir.anew(vec![]).await;
    let screen = pixir.does("/sessions<Enter>").await;
    let preview = screen.split("Fixed").nth(1).unwrap_or_else(|| panic!("a heading:\n{screen}"));
    assert!(preview.contains("Slugs keep accents now.") && preview.contains("tea   │ TEA"), "{screen}");
    assert!(!screen.contains("## Fixed") && !screen.contains("**") && !screen.contains("|---"), "{screen}");
}

/// Broken build: only titles are searched.
#[tokio::test]
async fn sessions_are_found_by_any_text_in_them_and_previewed() {
    let mut pixir = Pixir::new(vec![says("The answer speaks of marmalade.")], &[]);
    pixir.does("what is for breakfast<Enter>").await;
    let first = pixir.screen.session().expect("open").to_string();
    let mut pixir = pixir.anew(vec![says("Fine.")]).await;
    pixir.does("hello<Enter>").await;
    let screen = pixir.does("/sessions<Enter>").await;
    assert!(screen.contains("● hello") && screen.contains("what is for breakfast"), "{screen}");
    assert_eq!(selected(&pixir), "what is for breakfast", "the latest other one");
    pixir.screen.keys("marmalade").await;
    pixir.screen.until("speaks of marmalade").await;
    let screen = pixir.does("").await;
    assert!(screen.contains("1 of 2") && screen.contains("what is for breakfast"), "{screen}");
    let screen = pixir.does("x<Backspace><C-u>zzzz").await;
    assert!(screen.contains("No matches"), "{screen}");
    pixir.does("<C-u>marmalade").await;
    pixir.does("<Enter>").await;
    assert_eq!(pixir.screen.session().expect("open").to_string(), first);
}

/// Broken build: the Session is deleted without the question.
#[tokio::test]
async fn a_session_is_renamed_deleted_and_restored_in_the_list() {
    let mut pixir = Pixir::new(vec![says("One.")], &[]);
    pixir.does("the old one<Enter>").await;
    let mut pixir = pixir.anew(vec![says("Two.")]).await;
    pixir.does("the new one<Enter>").await;
    let screen = pixir.does("/sessions<Enter>").await;
    assert!(screen.contains("2 of 2"), "{screen}");
    let screen = pixir.does("<C-r>breakfast<Enter>").await;
    assert!(screen.contains("breakfast"), "{screen}");
    let screen = pixir.does("<C-x>n").await;
    assert!(screen.contains("2 of 2"), "n is no yes:\n{screen}");
    let screen = pixir.does("<Down><C-x>").await;
    assert!(!screen.contains("Delete this session?"), "the open one cannot be deleted:\n{screen}");
    let screen = pixir.does("<Up><C-x>").await;
    assert!(screen.contains("Delete this session? It moves to the trash."), "{screen}");
    let screen = pixir.does("y").await;
    assert!(screen.contains("1 of 1") && !screen.contains("breakfast"), "{screen}");
    let screen = pixir.does("<A-u>").await;
    assert!(screen.contains("2 of 2") && screen.contains("breakfast"), "{screen}");
}

/// Broken builds: the pin is only on the screen; the list of the shell does not tell; a pinned Session stands where its age
/// puts it.
#[test]
fn a_pinned_session_stays_on_top_of_the_list_also_after_a_restart() {
    let shell = Shell::new(&[]);
    let provider = format!("script:{}", shell.aside("script.json", r#"{ "steps": [{ "text": "Yes." }] }"#).display());
    for prompt in ["the oldest", "the newer", "the newest"] {
        done(&shell.run(["--provider", &provider, "--headless", "--json", prompt]));
    }
    let first = |screen: &str| {
        let is_row = |line: &&str| line.contains("turn") && (line.contains("the oldest") || line.contains("the new"));
        screen.lines().find(is_row).map(str::to_owned)
    };
    for is_pinned in [false, true] {
        let mut terminal = Terminal::start(&shell, &["--provider", &provider], 110, 30);
        terminal.wait_for("Ask pixir");
        terminal.send("/sessions\r");
        terminal.wait_for("3 of 3");
        if !is_pinned {
            terminal.send("oldest");
            terminal.wait_for("1 of 3");
            terminal.send("\x1bp");
            terminal.wait_for("⚲ the oldest");
            terminal.send("\x15");
        }
        terminal.wait_that("the pinned one is on top", |screen| {
            screen.contains("3 of 3") && first(screen).is_some_and(|it| it.contains("⚲ the oldest"))
        });
        // None has a name, one is pinned.
        for count in ["0 of 3", "1 of 3", "3 of 3"] {
            terminal.send("\x1bn");
            terminal.wait_for(count);
        }
        terminal.send("\x1b");
        terminal.wait_that("the list is closed", |screen| !screen.contains("3 of 3"));
        terminal.send("\x04");
        terminal.end().assert_sane();
    }
    let listed = shell.run(["sessions", "list"]).stdout;
    let pinned: Vec<&str> = listed.lines().filter(|it| it.contains("(pinned)")).collect();
    assert!(matches!(pinned.as_slice(), [one] if one.contains("the oldest")), "{listed}");
    let sessions = done(&shell.run(["sessions", "list", "--json"]))["sessions"].clone();
    let pins: Vec<&Value> = sessions.as_array().expect("a list").iter().map(|it| &it["pinned"]).collect();
    assert_eq!(pins, [&Value::Null, &Value::Null, &json!(true)], "the latest first, as before");
}

/// Broken builds: the name that could not be saved is gone; why is said nowhere near.
#[test]
fn a_name_that_cannot_be_saved_stays_in_its_field_beside_the_reason() {
    let shell = Shell::new(&[]);
    let provider = format!("script:{}", shell.aside("script.json", r#"{ "steps": [{ "text": "Yes." }] }"#).display());
    done(&shell.run(["--provider", &provider, "--headless", "--json", "cook something"]));
    let mut other = Terminal::start(&shell, &["resume", "--last", "--provider", &provider], 100, 30);
    other.wait_for("cook something");
    other.wait_for("Ask pixir");
    let mut terminal = Terminal::start(&shell, &["--provider", &provider], 100, 30);
    terminal.wait_for("Ask pixir");
    terminal.send("/sessions\r");
    terminal.wait_for("1 of 1");
    terminal.send("\x12breakfast");
    terminal.wait_for("name: breakfast");
    terminal.send("\r");
    let screen = terminal.wait_for("✗ ");
    assert!(screen.contains("name: breakfast") && screen.contains("╭ Sessions"), "{screen}");
    // The other pixir lets go of it, and the same name is saved.
    other.send("\x04");
    other.end().assert_sane();
    terminal.send("\r");
    terminal.wait_that("it has the name", |screen| screen.contains("breakfast") && !screen.contains("name: "));
    terminal.send("\x1b");
    terminal.wait_that("the list is closed", |screen| !screen.contains("1 of 1"));
    terminal.send("\x04");
    terminal.end().assert_sane();
}

#[tokio::test]
async fn help_stands_in_two_columns_and_an_overlay_shows_its_keys_first() {
    let mut pixir = Pixir::sized(vec![], &[], 132, 40);
    let screen = pixir.does("<F1>").await;
    let row = screen.lines().find(|line| line.contains("Commands")).expect("a heading");
    assert!(row.contains("With the side panel in focus"), "two columns:\n{screen}");
    let screen = pixir.does("side panel").await;
    assert!(screen.contains("› side panel") && screen.contains("show or hide the side panel"), "{screen}");
    let screen = pixir.does("<C-u>zzzzz").await;
    assert!(screen.contains("No matches"), "{screen}");
    pixir.does("<Esc>").await;
    let screen = pixir.does("/permissions<Enter>?").await;
    let at = |text: &str| screen.find(text).unwrap_or_else(|| panic!("{text} is not on\n{screen}"));
    assert!(at("In the permissions") < at("Commands"), "{screen}");
}

/// Broken builds: the broken skill stands where its name puts it; Enter on it does something; the preview stays that of the first.
#[tokio::test]
async fn skills_are_read_beside_their_list_and_the_broken_one_comes_last_with_its_fault() {
    let good = "---\nname: review\ndescription: Reads a diff hard\n---\n## Look\n\nLook for what is missing.\n";
    let files = [
        (".pixir/skills/review/SKILL.md", good),
        (".pixir/skills/aaa/SKILL.md", &"x".repeat(300 << 10)),
        (".pixir/skills/tidy/SKILL.md", "---\nname: tidy\ndescription: Tidies up\n---\nPut things back.\n"),
    ];
    let mut pixir = Pixir::sized(vec![], &files, 120, 40);
    pixir.does("<Esc>/trust<Enter>").await;
    pixir.does("<Down><Enter>").await;
    pixir.does("/skill<Enter>").await;
    pixir.screen.until("Look for what is missing.").await;
    let screen = pixir.screen.screen();
    assert!(screen.contains("review") && screen.contains("app/.pixir/skills/review/SKILL.md"), "{screen}");
    assert_eq!(first_option(&pixir), "review, project");
    pixir.screen.keys("<Down>").await;
    pixir.screen.until("Put things back.").await;
    let screen = pixir.does("<Down>").await;
    assert!(selected(&pixir).starts_with("aaa, project, ") && screen.contains("larger than 256 KB"), "{screen}");
    let screen = pixir.does("<Enter><Tab>").await;
    assert!(screen.contains("Skills"), "it cannot be used:\n{screen}");
    let screen = pixir.does("rev<Enter>").await;
    assert!(screen.contains("◆ skill review is active") && !screen.contains("Skills"), "{screen}");
    pixir.does("/skill<Enter>").await;
    pixir.does("tidy<Tab>").await;
    assert_eq!(pixir.screen.draft(), "/skill tidy ");
}

/// A click on the first row that has this text.
fn click_on(pixir: &Pixir, text: &str) -> Vec<u8> {
    let screen = pixir.screen.screen();
    let found = screen.lines().enumerate().find_map(|(row, line)| Some((row, line.find(text)?, line)));
    let (row, byte, line) = found.unwrap_or_else(|| panic!("{text} is not on\n{screen}"));
    let (column, row) = (line[..byte].chars().count() + 1, row + 1);
    format!("\x1b[<0;{column};{row}M\x1b[<0;{column};{row}m").into_bytes()
}

/// Broken builds: the first click chooses; a key between two clicks does not matter; a click beside the rows chooses.
#[tokio::test]
async fn a_click_selects_in_a_list_and_a_second_one_chooses() {
    let mut pixir = Pixir::sized(vec![says("One.")], &[], 100, 30);
    pixir.does("/mode<Enter>").await;
    let beside = click_on(&pixir, "╭ Mode");
    pixir.screen.bytes(&beside).await;
    let screen = pixir.does("").await;
    assert!(screen.contains("╭ Mode"), "a click beside the rows chooses nothing:\n{screen}");
    let auto = click_on(&pixir, "every call runs");
    pixir.screen.bytes(&auto).await;
    let screen = pixir.does("").await;
    assert_eq!(selected(&pixir), "auto");
    assert!(screen.contains("╭ Mode"), "nothing is chosen yet:\n{screen}");
    pixir.does("<Up><Down>").await;
    pixir.screen.bytes(&auto).await;
    let screen = pixir.does("").await;
    assert!(screen.contains("╭ Mode"), "a key came between:\n{screen}");
    pixir.screen.bytes(&auto).await;
    let screen = pixir.does("").await;
    assert!(screen.lines().next().expect("a header").contains(" · auto · "), "{screen}");
    pixir.does("/settings screen<Enter>").await;
    let vim = click_on(&pixir, "Vim keys");
    pixir.screen.bytes(&vim).await;
    pixir.does("").await;
    assert!(selected(&pixir).starts_with("Vim keys: off"), "{}", selected(&pixir));
    assert_eq!(pixir.settings(), "");
    pixir.screen.bytes(&vim).await;
    pixir.does("").await;
    pixir.screen.until("screen.vim saved in").await;
    assert_eq!(pixir.settings(), "[screen]\nvim = true\n");
    pixir.does("<Esc><Esc>").await;
    pixir.does("i").await;
    pixir.does("go<Enter>").await;
    pixir.does("/context<Enter>").await;
    pixir.screen.until("message").await;
    let tools = click_on(&pixir, "tools ");
    pixir.screen.bytes(&tools).await;
    pixir.does("").await;
    assert!(selected(&pixir).starts_with("tools"), "{}", selected(&pixir));
    // The wheel moves the cursor.
    pixir.screen.bytes(b"\x1b[<65;20;10M").await;
    pixir.does("").await;
    assert!(!selected(&pixir).starts_with("tools"), "{}", selected(&pixir));
}

/// Broken build: the port is that of any listener.
#[tokio::test]
async fn a_job_shows_its_age_and_the_port_on_which_it_listens() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = free.local_addr().expect("an address").port();
    drop(free);
    let serve = format!(
        "perl -MIO::Socket::INET -e '$s = IO::Socket::INET->new(Listen => 5, LocalAddr => q(127.0.0.1), LocalPort => {port}) \
         or die $!; sleep 600'"
    );
    let steps = vec![
        calls("bash", json!({"command": "sleep 600", "background": true})),
        calls("bash", json!({"command": serve, "background": true, "wait_port": port})),
        says("It runs."),
    ];
    let mut pixir = Pixir::sized(steps, &[], 120, 30);
    pixir.does("/mode auto<Enter>").await;
    pixir.does("serve<Enter>").await;
    pixir.screen.until("It runs.").await;
    pixir.does("/jobs<Enter>").await;
    pixir.screen.until(&format!(":{port}")).await;
    let screen = pixir.screen.screen();
    let row = |text: &str| screen.lines().find(|line| line.contains(text)).map(str::to_owned).unwrap_or_default();
    assert!(row("perl").contains(&format!(":{port}")) && !row(" sleep 600").contains(':'), "{screen}");
    assert!(screen.contains("has run for "), "{screen}");
    pixir.does("<Down>").await;
    pixir.screen.until(&format!("listens on {port} · has run for")).await;
}

/// Broken build: `x` stops the job at once.
#[tokio::test]
async fn a_job_is_stopped_only_after_the_question_and_shows_its_output() {
    let step = calls("bash", json!({"command": "echo serving; sleep 600", "background": true}));
    let mut pixir = Pixir::sized(vec![step, says("It runs.")], &[], 110, 30);
    pixir.does("/mode auto<Enter>").await;
    pixir.does("serve<Enter>").await;
    let screen = pixir.does("/jobs<Enter>").await;
    assert!(screen.contains("running") && screen.contains("sleep 600"), "{screen}");
    let screen = pixir.does("x").await;
    assert!(screen.contains("Stop job 1 and all its processes?"), "{screen}");
    let screen = pixir.does("<Down>x<Down>").await;
    assert!(screen.contains("running"), "another key lets it run:\n{screen}");
    pixir.screen.keys("xy").await;
    pixir.screen.until("stopped").await;
    pixir.does("<Esc>/jobs<Enter>").await;
    pixir.screen.until("serving").await;
}

#[tokio::test]
async fn the_hud_shows_each_figure_beside_its_budget() {
    let mut pixir = Pixir::sized(vec![says("One.")], &[], 100, 30);
    pixir.does("go<Enter>").await;
    let screen = pixir.does("<F12>").await;
    for shown in [
        "frame ms",
        "p99 ≤ 8",
        "key to paint",
        "p99 ≤ 4 ms",
        "bytes a frame",
        "row cache",
        "wake-ups",
        "0 when idle",
        "≤ 25 MB",
    ] {
        assert!(screen.contains(shown), "{shown}:\n{screen}");
    }
    let screen = pixir.does("<F12>").await;
    assert!(!screen.contains("key to paint"), "{screen}");
}

/// Broken builds: files of all Turns stand together; a file that was only read is not listed; the diff is that of the last Turn; an
/// undone Turn looks like the others.
#[tokio::test]
async fn the_files_of_each_turn_are_listed_compared_and_undone() {
    let write = |path: &str, text: &str| calls("write", json!({ "path": path, "content": text }));
    let steps = vec![
        also_calls(write("made.txt", "one\n"), "read", json!({ "path": "notes.txt" })),
        says("Made."),
        calls("edit", json!({ "path": "kept.txt", "old_text": "alpha", "new_text": "omega" })),
        says("Changed."),
    ];
    let files = [("notes.txt", "a note\n"), ("kept.txt", "alpha\n")];
    let mut pixir = Pixir::sized(steps, &files, 120, 40);
    let screen = pixir.does("/files<Enter>").await;
    assert!(screen.contains("No file was read or changed yet"), "{screen}");
    pixir.does("<Esc>/mode auto<Enter>").await;
    pixir.does("make it<Enter>").await;
    pixir.does("change it<Enter>").await;
    let screen = pixir.does("/files<Enter>").await;
    let places: Vec<usize> = ["2 change it", "M kept.txt", "1 make it", "A made.txt", "notes.txt  read"]
        .iter()
        .map(|row| screen.find(row).unwrap_or_else(|| panic!("{row} is not on\n{screen}")))
        .collect();
    assert!(places.is_sorted(), "the latest turn first:\n{screen}");
    // The diff of the first Turn, at its file, and back.
    let screen = pixir.does("]<Down><Enter>").await;
    assert!(
        screen.contains("Diff · turn 1") && screen.contains("made.txt") && !screen.contains("kept.txt"),
        "{screen}"
    );
    pixir.does("<Esc>").await;
    assert_eq!(selected(&pixir), "made.txt");
    let screen = pixir.does("u").await;
    assert!(screen.contains("made.txt") && !screen.contains("kept.txt"), "only what turn 1 changed:\n{screen}");
    let screen = pixir.does("<Enter>").await;
    assert!(!pixir.path("made.txt").exists() && pixir.file("kept.txt") == "omega\n", "{screen}");
    let row = screen.lines().find(|line| line.contains("1 make it")).expect("the turn");
    assert!(row.contains("undone"), "{screen}");
    let screen = pixir.does("u").await;
    assert!(!screen.contains("undo this turn") && screen.contains("╭ Files"), "nothing is left to undo:\n{screen}");
}
