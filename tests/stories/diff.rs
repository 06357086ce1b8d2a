//! The diff: reading what changed, keeping, reverting and commenting on it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use serde_json::{Value, json};

use crate::driver::{Pixir, calls, says};

/// A file of thirty lines.
fn lines() -> String {
    (1..=30).map(|n| format!("line {n}\n")).collect()
}

fn bash(command: &str) -> pixir_core::provider::script::Step {
    calls("bash", json!({ "command": command }))
}

/// Two changes of one file, far enough apart to be two hunks.
const TWO_HUNKS: &str = "sed -i -e 's/^line 5$/line five/' -e 's/^line 25$/line twenty-five/' a.txt";

async fn with_two_hunks(columns: u16, rows: u16, more: Vec<pixir_core::provider::script::Step>) -> Pixir {
    let mut steps = vec![bash(TWO_HUNKS), says("Done.")];
    steps.extend(more);
    let mut pixir = Pixir::sized(steps, &[("a.txt", &lines())], columns, rows);
    pixir.does("/mode auto<Enter>").await;
    pixir.does("change it<Enter>").await;
    pixir
}

/// The Entries of one kind, as JSON.
fn facts(pixir: &Pixir, kind: &str) -> Vec<Value> {
    pixir.log().into_iter().filter(|entry| entry["type"] == kind).map(|mut entry| entry["data"].take()).collect()
}

/// Broken builds: no rename detection; sizes and modes left out of the list.
#[tokio::test]
async fn the_list_tells_added_modified_deleted_and_renamed_files_apart() {
    let change = "mv old_name.py new_name.py && sed -i 's/^line 7$/line seven/' new_name.py && rm gone.txt && \
                  echo new > fresh.txt && printf 'a\\0bc' > data.bin && chmod 755 run.sh && echo two >> kept.txt";
    let files = [
        ("old_name.py", lines()),
        ("gone.txt", "gone\n".into()),
        ("kept.txt", "one\n".into()),
        ("data.bin", "a\0".into()),
        ("run.sh", "#!/bin/sh\n".into()),
    ];
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
    let mut pixir = Pixir::sized(vec![bash(change), says("Done.")], &files, 120, 30);
    fs::set_permissions(pixir.path("run.sh"), fs::Permissions::from_mode(0o644)).expect("chmod");
    pixir.does("/mode auto<Enter>").await;
    pixir.does("change it all<Enter>").await;
    let screen = pixir.does("/diff<Enter>").await;
    for (line, figures) in [
        ("A fresh.txt", "+1"),
        ("D gone.txt", "−1"),
        ("M kept.txt", "+1"),
        ("R new_name.py", "+1 −1"),
        ("M data.bin", "2B → 4B"),
        ("M run.sh", "644 → 755"),
    ] {
        let row = screen.lines().find(|row| row.contains(line)).unwrap_or_else(|| panic!("{line}\n{screen}"));
        assert!(row.contains(figures), "{row}");
    }
    assert!(screen.contains("Diff · this turn") && screen.contains("6 files"), "{screen}");
    let renamed = pixir.does("]]]").await;
    assert!(renamed.contains("R old_name.py → new_name.py"), "{renamed}");
    assert!(
        renamed.contains("- line 7") && renamed.contains("+ line seven") && renamed.contains("hunk 1/1"),
        "{renamed}"
    );
}

/// Broken build: the diff knows a renamed file, and all else tells of a new one and a deleted one, with all of their lines.
#[tokio::test]
async fn a_moved_file_counts_its_changed_lines_on_every_screen() {
    let change = "mv old_name.py new_name.py && sed -i 's/^line 7$/line seven/' new_name.py && rm gone.txt && \
                  chmod 755 run.sh && printf 'a\\0bc' > data.bin && echo two >> kept.txt";
    let text = lines();
    let files =
        [("old_name.py", text.as_str()), ("gone.txt", "gone\n"), ("kept.txt", "one\n"), ("run.sh", "#!/bin/sh\n")];
    let only_moved = bash("mv new_name.py again.py && sed -i 's/^line 9$/line nine/' again.py");
    let mut pixir = Pixir::sized(vec![bash(change), only_moved, says("Done.")], &files, 160, 60);
    fs::set_permissions(pixir.path("run.sh"), fs::Permissions::from_mode(0o644)).expect("chmod");
    pixir.does("/mode auto<Enter>").await;
    let screen = pixir.does("change it all<Enter>").await;
    let row = |screen: &str, text: &str| {
        screen.lines().find(|row| row.contains(text)).unwrap_or_else(|| panic!("{text} is not on\n{screen}")).to_owned()
    };
    // The cards: the list of the one, the diff of the other.
    assert!(row(&screen, "R old_name.py → new_name.py").contains("+1 −1"), "{screen}");
    assert!(row(&screen, "M run.sh").contains("644 → 755"), "{screen}");
    assert!(row(&screen, "new_name.py → again.py").contains("new_name.py"), "{screen}");
    assert!(screen.contains("line nine") && !screen.contains("- line 11"), "{screen}");
    let panel = |name: &str| {
        row(&screen.lines().map(|line| line.split_once('│').unwrap_or_default().1).collect::<Vec<_>>().join("\n"), name)
    };
    assert!(panel("R again.py").contains("+2 −2") && !screen.contains("D old_name.py"), "{screen}");
    // The end of the turn, the panel and the tree: +1 −1 for each move, −1 for the deleted file, +1 for the other.
    assert!(row(&screen, "2 calls").contains("+3 −3"), "{screen}");
    let tree = pixir.does("<C-t>").await;
    assert!(row(&tree, "◉ 1").contains("+3 −3"), "{tree}");
    assert!(row(&tree, "R old_name.py → again.py").contains("+2 −2"), "{tree}");
    assert!(row(&tree, "D gone.txt").contains("−1") && tree.contains("A data.bin"), "{tree}");
    // A move is undone like any other change.
    pixir.does("<Esc>/undo<Enter>").await;
    pixir.does("<Enter>").await;
    assert_eq!(pixir.file("old_name.py"), text);
}

/// Broken builds: `n` moves by lines; the side panel and the diff count anew after every file.
#[tokio::test]
async fn keys_go_from_hunk_to_hunk_and_from_source_to_source() {
    let mut pixir = with_two_hunks(80, 24, vec![bash("echo more >> b.txt"), says("Done.")]).await;
    let screen = pixir.does("/diff<Enter>").await;
    assert!(screen.contains("hunk 1/2") && screen.contains("- line 5"), "{screen}");
    let screen = pixir.does("n").await;
    assert!(screen.contains("hunk 2/2") && screen.contains("+ line twenty-five"), "{screen}");
    let screen = pixir.does("p").await;
    assert!(screen.contains("hunk 1/2"), "{screen}");
    let screen = pixir.does("/twenty<Enter>").await;
    assert!(screen.contains("hunk 2/2") && screen.contains("/ twenty"), "{screen}");
    pixir.does("<Esc><Esc>").await;
    pixir.does("and more<Enter>").await;
    let turn = pixir.does("/diff<Enter>").await;
    assert!(turn.contains("this turn") && turn.contains("b.txt") && !turn.contains("- line 5"), "{turn}");
    let since = pixir.does("<Tab>").await;
    assert!(since.contains("since prompt 1") && since.contains("2 files") && since.contains("+ more"), "{since}");
    let first = pixir.does("[").await;
    assert!(first.contains("- line 5"), "{first}");
    let session = pixir.does("<Tab>").await;
    assert!(session.contains("this session") && session.contains("2 files"), "{session}");
    let head = pixir.does("<Tab>").await;
    assert!(head.contains("git HEAD") && head.contains("in no git repository"), "{head}");
    let call = pixir.does("<Tab>").await;
    assert!(call.contains("this call") && call.contains("b.txt"), "{call}");
}

/// Broken builds: `revert` writes the old text of the whole file; the restore is not recorded; undo tries Turns only.
#[tokio::test]
async fn one_hunk_is_reverted_and_undo_brings_it_back() {
    let mut pixir = with_two_hunks(100, 30, vec![]).await;
    let changed = pixir.file("a.txt");
    pixir.does("/diff<Enter>").await;
    let screen = pixir.does("r").await;
    assert_eq!(pixir.file("a.txt"), changed.replace("line five", "line 5"), "only the first hunk goes");
    assert!(
        screen.contains("hunk 1/1") && screen.contains("line twenty-five") && !screen.contains("line five"),
        "{screen}"
    );
    let restored = facts(&pixir, "files_restored");
    assert_eq!(
        (restored.len(), &restored[0]["reason"], &restored[0]["changes"][0]["path"]),
        (1, &json!("hunk"), &json!("a.txt"))
    );
    pixir.does("<Esc>").await;
    let screen = pixir.does("/undo<Enter>").await;
    assert!(screen.contains("Undo the last restore: 1 file") && screen.contains("a.txt"), "{screen}");
    pixir.does("<Enter>").await;
    assert_eq!(pixir.file("a.txt"), changed, "the undo takes back the revert, and not the turn");
    pixir.does("/undo<Enter>").await;
    pixir.does("<Enter>").await;
    assert_eq!(pixir.file("a.txt"), lines(), "the next one takes back the turn");
}

/// Broken build: one that writes over what the user has done since.
#[tokio::test]
async fn a_revert_keeps_what_was_edited_since_and_stops_at_a_conflict() {
    let mut pixir = with_two_hunks(100, 30, vec![]).await;
    let edited = pixir.file("a.txt").replace("line 15\n", "mine\n");
    fs::write(pixir.path("a.txt"), &edited).expect("write");
    pixir.does("/diff<Enter>").await;
    pixir.does("r").await;
    assert_eq!(pixir.file("a.txt"), edited.replace("line five", "line 5"));
    let edited = pixir.file("a.txt").replace("line twenty-five", "line 25, mine");
    fs::write(pixir.path("a.txt"), &edited).expect("write");
    // What was merged is part of the diff now, and stands above.
    let screen = pixir.does("nr").await;
    assert!(screen.contains("not reverted"), "{screen}");
    assert_eq!(pixir.file("a.txt"), edited);
}

/// Broken build: the new file stays behind, empty.
#[tokio::test]
async fn to_revert_all_of_a_new_file_removes_it() {
    let mut pixir = Pixir::sized(
        vec![bash("printf 'one\\ntwo' > new.txt; rm old.txt"), says("Done.")],
        &[("old.txt", "old\r\nend")],
        100,
        24,
    );
    pixir.does("/mode auto<Enter>").await;
    pixir.does("go<Enter>").await;
    pixir.does("/diff<Enter>").await;
    pixir.does("r").await;
    assert!(!pixir.path("new.txt").exists());
    let screen = pixir.does("r").await;
    assert_eq!(pixir.file("old.txt"), "old\r\nend", "{screen}");
    assert!(screen.contains("No changes here"), "{screen}");
}

/// Broken builds: a revert writes what an undo would ask about; the answer is not asked for, or any key gives it.
#[tokio::test]
async fn a_protected_file_is_written_by_a_revert_only_if_the_user_allows_it() {
    let edit = calls("edit", json!({ "path": "AGENTS.md", "old_text": "one", "new_text": "two" }));
    let mut pixir = Pixir::sized(vec![edit, says("Done.")], &[("AGENTS.md", "one\n")], 100, 24);
    pixir.does("/mode auto<Enter>").await;
    pixir.does("go<Enter>").await;
    pixir.does("<A-y>").await;
    assert_eq!(pixir.file("AGENTS.md"), "two\n", "{}", pixir.screen.screen());
    pixir.does("/diff<Enter>").await;
    let screen = pixir.does("r").await;
    assert!(screen.contains("not reverted") && screen.contains("protected"), "{screen}");
    assert!(screen.contains("Enter revert it all the same"), "{screen}");
    let screen = pixir.does("<Esc><Enter>").await;
    assert_eq!(pixir.file("AGENTS.md"), "two\n", "{screen}");
    // An Enter before the question was on the screen is no answer.
    pixir.does("r<Enter>").await;
    assert_eq!(pixir.file("AGENTS.md"), "two\n");
    let screen = pixir.does("<Enter>").await;
    assert_eq!(pixir.file("AGENTS.md"), "one\n", "{screen}");
    assert_eq!(facts(&pixir, "files_restored")[0]["changes"][0]["path"], json!("AGENTS.md"));
}

/// Broken build: the mark is lost when pixir starts again.
#[tokio::test]
async fn a_kept_hunk_is_marked_as_reviewed_from_then_on() {
    let mut pixir = with_two_hunks(100, 30, vec![]).await;
    pixir.does("/diff<Enter>").await;
    let screen = pixir.does("s").await;
    assert!(screen.contains("✓ reviewed") && screen.contains("hunk 2/2"), "{screen}");
    assert_eq!(facts(&pixir, "hunk_reviewed")[0]["kept"], json!(true));
    pixir.does("<Esc>").await;
    let mut pixir = pixir.again(vec![]).await;
    let screen = pixir.does("/diff<Enter>").await;
    assert_eq!(screen.matches("✓ reviewed").count(), 1, "{screen}");
    let screen = pixir.does("s").await;
    assert!(!screen.contains("✓ reviewed"), "{screen}");
}

/// Broken builds: letters of a comment act; each comment is a message; a comment keeps its line number when lines are
/// added above.
#[tokio::test]
async fn comments_become_one_message_with_exact_places() {
    let more = vec![bash("sed -i '1i a first line' a.txt"), says("Done."), says("I see.")];
    let mut pixir = with_two_hunks(100, 30, more).await;
    pixir.does("/diff<Enter>").await;
    let before = pixir.file("a.txt");
    let screen = pixir.does("jcwhy not 5, for crying out loud? nprsz<Enter>").await;
    assert!(screen.contains("❯ why not 5, for crying out loud? nprsz"), "{screen}");
    assert_eq!(pixir.file("a.txt"), before, "letters in the field trigger nothing");
    let screen = pixir.does("njcand here<Enter>").await;
    assert!(screen.contains("❯ and here"), "{screen}");
    pixir.does("<Esc>").await;
    pixir.does("add a line<Enter>").await;
    pixir.does("/diff<Enter><Tab>").await;
    let screen = pixir.does("<Enter>").await;
    assert!(screen.contains("Send 2 comments as one message"), "{screen}");
    pixir.does("<Enter>").await;
    let said = facts(&pixir, "user_message").pop().expect("a message");
    let text = said["text"].as_str().expect("a text");
    assert!(text.starts_with("2 comments on the diff"), "{text}");
    assert!(text.contains("a.txt:6\n> line five\nwhy not 5, for crying out loud? nprsz"), "{text}");
    assert!(text.contains("a.txt:26\n> line twenty-five\nand here"), "{text}");
    assert!(pixir.screen.screen().contains("I see."), "{}", pixir.screen.screen());
}

/// Broken builds: lines that went to another file look deleted and new; the note names the line of the wrong version.
#[tokio::test]
async fn lines_that_moved_to_another_file_say_where_they_went_and_where_they_came_from() {
    let block = "fn first_helper() {}\nfn second_helper() {}\nfn third_helper() {}\n";
    let before = format!("// the start\n{block}// the end\n");
    let change = "sed -n '2,4p' big.rs > small.rs && sed -i '2,4d' big.rs";
    let mut pixir = Pixir::sized(vec![bash(change), says("Done.")], &[("big.rs", &before)], 120, 30);
    pixir.does("/mode auto<Enter>").await;
    pixir.does("split it<Enter>").await;
    pixir.does("/diff<Enter>").await;
    pixir.screen.until("moved to small.rs:1").await;
    let screen = pixir.screen.screen();
    assert_eq!(screen.matches("moved to").count(), 1, "once for the block:\n{screen}");
    pixir.does("]").await;
    pixir.screen.until("moved from big.rs:2").await;
}

/// Broken builds: beside a new file stands an empty half; a changed file is unified too.
#[tokio::test]
async fn a_new_file_has_the_whole_width_where_changed_ones_stand_side_by_side() {
    let change = "echo new > a_new.txt; echo two >> kept.txt";
    let mut pixir = Pixir::sized(vec![bash(change), says("Done.")], &[("kept.txt", "one\n")], 160, 30);
    pixir.does("/mode auto<Enter>").await;
    pixir.does("go<Enter>").await;
    let rules = |screen: &str, text: &str| {
        let row = screen.lines().find(|row| row.contains(text)).unwrap_or_else(|| panic!("{text}\n{screen}"));
        row.matches('│').count()
    };
    let new = pixir.does("/diff<Enter>").await;
    let kept = pixir.does("]").await;
    assert_eq!(rules(&kept, "+ two") - rules(&new, "+ new"), 1, "{new}\n{kept}");
}

/// Broken builds: side by side on a narrow screen, or never.
#[tokio::test]
async fn lines_stand_side_by_side_where_there_is_room() {
    let mut pixir = with_two_hunks(160, 30, vec![]).await;
    let screen = pixir.does("/diff<Enter>").await;
    let row = screen.lines().find(|row| row.contains("- line 5")).unwrap_or_else(|| panic!("{screen}"));
    assert!(row.contains("+ line five"), "{screen}");
    let screen = pixir.does("S").await;
    let row = screen.lines().find(|row| row.contains("- line 5")).unwrap_or_else(|| panic!("{screen}"));
    assert!(!row.contains("+ line five"), "{screen}");
}

/// Broken builds: the list takes room on a narrow screen; `f` does nothing.
#[tokio::test]
async fn on_a_narrow_screen_the_list_of_files_is_one_key_away() {
    let mut pixir = Pixir::sized(vec![bash("echo a > a.txt; echo b > b.txt"), says("Done.")], &[], 60, 20);
    pixir.does("/mode auto<Enter>").await;
    pixir.does("go<Enter>").await;
    let screen = pixir.does("/diff<Enter>").await;
    assert!(screen.contains("A a.txt") && !screen.contains("A b.txt"), "{screen}");
    let screen = pixir.does("f").await;
    assert!(screen.contains("A a.txt") && screen.contains("A b.txt"), "{screen}");
    let screen = pixir.does("j<Enter>").await;
    assert!(screen.contains("A b.txt") && screen.contains("+ b"), "{screen}");
}

/// Broken build: lock files are shown line by line.
#[tokio::test]
async fn generated_files_are_folded_until_the_user_unfolds_them() {
    let mut pixir = Pixir::sized(vec![bash("echo 'version = 4' > Cargo.lock"), says("Done.")], &[], 100, 24);
    pixir.does("/mode auto<Enter>").await;
    pixir.does("go<Enter>").await;
    let screen = pixir.does("/diff<Enter>").await;
    assert!(screen.contains("A generated file: +1. ") && !screen.contains("version = 4"), "{screen}");
    let screen = pixir.does("z").await;
    assert!(screen.contains("+ version = 4"), "{screen}");
}

/// Broken builds: only what the Session did is shown; the commit is read by running git, or not from packs.
#[tokio::test]
async fn the_work_tree_is_compared_with_the_commit() {
    let mut pixir = Pixir::sized(vec![bash("echo new > new.txt"), says("Done.")], &[("a.txt", &lines())], 100, 30);
    let git = |args: &[&str]| {
        let mut command = Command::new("git");
        command.current_dir(pixir.path("")).args(["-c", "user.name=a", "-c", "user.email=a@b.c"]).args(args);
        let output = command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null").output();
        assert!(output.expect("git runs").status.success(), "git {args:?}");
    };
    git(&["init", "-q", "-b", "main"]);
    git(&["add", "."]);
    git(&["commit", "-qm", "First"]);
    git(&["gc", "-q", "--prune=now"]);
    fs::write(pixir.path("a.txt"), lines().replace("line 5\n", "mine\n")).expect("write");
    pixir.does("/mode auto<Enter>").await;
    pixir.does("go<Enter>").await;
    pixir.does("/diff<Enter><S-Tab><S-Tab>").await;
    pixir.screen.until("+ mine").await;
    let screen = pixir.screen.screen();
    assert!(screen.contains("git HEAD") && screen.contains("2 files"), "{screen}");
    assert!(screen.contains("- line 5") && screen.contains("+ mine") && screen.contains("A new.txt"), "{screen}");
    pixir.screen.keys("r").await;
    pixir.screen.until("reverted in a.txt; /undo takes it back").await;
    assert_eq!(pixir.file("a.txt"), lines());
}

/// Broken builds: the panel has an order or symbols of its own; Enter opens nothing.
#[tokio::test]
async fn the_side_panel_shows_the_same_files_and_opens_the_diff_there() {
    let change = "rm gone.txt; echo a > a_new_file_in_a_folder.txt; mkdir -p deep/er/still/deeper/and/deeper; echo z > deep/er/still/deeper/and/deeper/z.txt";
    let mut pixir = Pixir::sized(vec![bash(change), says("Done.")], &[("gone.txt", "gone\n")], 140, 30);
    pixir.does("/mode auto<Enter>").await;
    let screen = pixir.does("go<Enter>").await;
    let rows: Vec<usize> = ["A a_new", "A deep", "D gone.txt"]
        .iter()
        .map(|start| screen.lines().position(|row| row.contains(start)).unwrap_or_else(|| panic!("{start}\n{screen}")))
        .collect();
    assert!(rows.is_sorted(), "{screen}");
    assert!(screen.contains("…/z.txt"), "the name of a long path stays: {screen}");
    pixir.does("<Tab><Tab>").await;
    let screen = pixir.does("jj<Enter>").await;
    assert!(screen.contains("Diff · this session") && screen.contains("- gone"), "{screen}");
}

/// Broken builds: the whole is compared before anything is shown; a hunk of the start can be reverted.
#[tokio::test]
async fn a_long_file_shows_its_start_while_the_whole_is_compared() {
    let long: String = (0..40_000).map(|n| format!("this is line {n}\n")).collect();
    let change = "sed -i 's/^this is line \\(.*7\\)$/that is line \\1/' long.txt";
    let mut pixir = Pixir::sized(vec![bash(change), says("Done.")], &[("long.txt", &long)], 100, 30);
    pixir.does("/mode auto<Enter>").await;
    pixir.does("change it<Enter>").await;
    let changed = pixir.file("long.txt");
    pixir.screen.keys("<A-d>").await;
    pixir.screen.until("unfold").await;
    pixir.screen.keys("z").await;
    pixir.screen.until("comparing…").await;
    let screen = pixir.screen.screen();
    assert!(screen.contains("- this is line 7") && screen.contains("+4000 −4000"), "{screen}");
    pixir.screen.keys("nnr").await;
    let screen = pixir.screen.screen();
    assert!(screen.contains("this file is still being compared"), "{screen}");
    pixir.screen.until_idle().await;
    assert_eq!(pixir.file("long.txt"), changed, "nothing was reverted");
    let screen = pixir.screen.screen();
    assert!(!screen.contains("comparing…") && screen.contains("hunk 3/4000"), "{screen}");
    pixir.does("r").await;
    assert_eq!(pixir.file("long.txt"), changed.replace("that is line 27\n", "this is line 27\n"));
}

/// Broken build: the cursor stays in its row when the whole arrives, and not on its line.
#[tokio::test]
async fn the_cursor_stays_on_its_line_when_the_whole_file_is_compared() {
    let long: String = (0..40_000).map(|n| format!("this is line {n}\n")).collect();
    // The start of so many new lines looks like a change of the lines that stood there.
    let change = "seq -f 'a new line %g' 20000 > new.txt && cat long.txt >> new.txt && mv new.txt long.txt";
    let mut pixir = Pixir::sized(vec![bash(change), says("Done.")], &[("long.txt", &long)], 100, 30);
    pixir.does("/mode auto<Enter>").await;
    pixir.does("change it<Enter>").await;
    pixir.screen.keys("<A-d>").await;
    pixir.screen.until("unfold").await;
    pixir.screen.keys("z").await;
    pixir.screen.until("comparing…").await;
    pixir.screen.keys("/new line 123<Enter>").await;
    let on = |screen: &str| screen.lines().find(|row| row.contains('▌')).map(str::to_owned).unwrap_or_default();
    let screen = pixir.screen.screen();
    assert!(screen.contains("comparing…") && on(&screen).contains("+ a new line 123"), "{screen}");
    pixir.screen.until_idle().await;
    let screen = pixir.screen.screen();
    assert!(screen.contains(" +20000  hunk") && on(&screen).contains("+ a new line 123"), "{screen}");
}

/// Broken builds: chains of folders have a row each; the sums leave files out; a folded folder keeps its rows.
#[tokio::test]
async fn changed_files_stand_in_folders_that_fold() {
    let change = "mkdir -p docs/deep/er src/a && echo 1 > docs/deep/er/one.md && printf '1\\n2\\n' > docs/deep/er/two.md && \
                  echo x > src/a/x.rs && echo y > src/a/y.rs && echo z > src/z.rs && echo t > top.txt";
    let mut pixir = Pixir::sized(vec![bash(change), says("Done.")], &[], 120, 30);
    pixir.does("/mode auto<Enter>").await;
    pixir.does("go<Enter>").await;
    let screen = pixir.does("/diff<Enter>").await;
    let list = |screen: &str| -> Vec<String> {
        let rows = screen.lines().filter_map(|row| row.trim_start_matches('│').split('│').next());
        let rows = rows.map(|row| row.split_whitespace().collect::<Vec<_>>().join(" "));
        rows.filter(|row| row.contains('+') && row.starts_with(['▾', '▸', 'A'])).collect()
    };
    let all = [
        "▾ docs/deep/er/ +3",
        "A one.md +1",
        "A two.md +2",
        "▾ src/ +3",
        "▾ a/ +2",
        "A x.rs +1",
        "A y.rs +1",
        "A z.rs +1",
        "A top.txt +1",
    ];
    assert_eq!(list(&screen), all, "{screen}");
    let screen = pixir.does("f<Left>").await;
    assert_eq!(list(&screen)[..2], ["▸ docs/deep/er/ +3", "▾ src/ +3"], "{screen}");
    // Folded files are still walked through.
    let screen = pixir.does("<Esc>]").await;
    assert!(screen.contains("A docs/deep/er/two.md") && list(&screen)[0].starts_with('▸'), "{screen}");
    let screen = pixir.does("f<Enter>").await;
    assert_eq!(list(&screen), all, "{screen}");
    let screen = pixir.does("<End><Enter>").await;
    assert!(screen.contains("A top.txt") && screen.contains("+ t"), "{screen}");
}

/// Broken build: lines that only stand elsewhere look like new ones.
#[tokio::test]
async fn lines_that_only_moved_say_where_they_went() {
    let block = "    let first = open(path);\n    let second = read(first);\n    let third = close(first);\n";
    let before = format!("{block}{}", lines());
    let change = format!("sed -i 1,3d a.txt && printf '%s' '{block}' >> a.txt");
    let mut pixir = Pixir::sized(vec![bash(&change), says("Done.")], &[("a.txt", &before)], 120, 30);
    pixir.does("/mode auto<Enter>").await;
    pixir.does("go<Enter>").await;
    assert_eq!(pixir.file("a.txt"), format!("{}{block}", lines()));
    let screen = pixir.does("/diff<Enter>").await;
    let row = |text: &str| screen.lines().find(|row| row.contains(text)).unwrap_or_else(|| panic!("{text}\n{screen}"));
    assert!(row("- ").contains("moved to line 31"), "{screen}");
    let screen = pixir.does("n").await;
    let added = screen.lines().find(|row| row.contains("+     let first")).unwrap_or_else(|| panic!("{screen}"));
    assert!(added.contains("moved from line 1"), "{screen}");
}

/// Broken builds: comments live in memory only; the one that is being written is not saved.
#[tokio::test]
async fn comments_that_were_not_sent_come_back_after_a_crash() {
    let mut pixir = with_two_hunks(100, 30, vec![]).await;
    pixir.does("/diff<Enter>").await;
    pixir.does("jcwhy not 5?<Enter>").await;
    pixir.does("njcand this one").await;
    let mut again = pixir.again(vec![says("I see.")]).await;
    let screen = again.does("").await;
    assert!(screen.contains("2 comments on the diff are restored"), "{screen}");
    let screen = again.does("/diff<Enter>").await;
    assert!(screen.contains("❯ why not 5?"), "{screen}");
    again.does("<Enter><Enter>").await;
    let said = facts(&again, "user_message").pop().expect("a message");
    let text = said["text"].as_str().expect("a text");
    assert!(text.contains("a.txt:5\n> line five\nwhy not 5?"), "{text}");
    assert!(text.contains("a.txt:25\n> line twenty-five\nand this one"), "{text}");
    let mut again = again.again(vec![]).await;
    let screen = again.does("/diff<Enter>").await;
    assert!(!screen.contains("❯ why not 5?"), "what was sent is not saved: {screen}");
}

/// Broken build: where no comment can be written, its letters are keys.
#[tokio::test]
async fn letters_after_a_comment_that_could_not_be_begun_do_nothing() {
    let mut pixir = Pixir::sized(vec![bash("echo 'version = 4' > Cargo.lock"), says("Done.")], &[], 100, 24);
    pixir.does("/mode auto<Enter>").await;
    pixir.does("go<Enter>").await;
    pixir.does("/diff<Enter>").await;
    let screen = pixir.does("czrz source").await;
    assert!(screen.contains("no line here to comment on") && screen.contains("A generated file"), "{screen}");
    let screen = pixir.does("<Esc>z").await;
    assert!(screen.contains("+ version = 4"), "{screen}");
}

/// Broken builds: the diff opens at the first file by name, and the next hunk is a page that says "Not text".
#[tokio::test]
async fn the_diff_opens_at_lines_and_the_next_hunk_is_beyond_files_that_have_none() {
    let change = "printf 'a\\0b' > 1.bin && echo two >> 2.txt && printf 'a\\0b' > 3.bin && printf 'a\\0b' > 4.bin && \
                  echo two >> 5.txt";
    let files = [("2.txt", "one\n"), ("5.txt", "one\n")];
    let mut pixir = Pixir::sized(vec![bash(change), says("Done.")], &files, 80, 24);
    pixir.does("/mode auto<Enter>").await;
    pixir.does("change it<Enter>").await;
    // The title, the file on the screen, and its lines.
    let at = |screen: &str| screen.lines().nth(2).unwrap_or_default().trim_matches(['│', ' ', '─']).to_owned();
    assert_eq!(at(&pixir.does("/diff<Enter>").await), "M 2.txt +1");
    assert_eq!(at(&pixir.does("n").await), "M 5.txt +1");
    // The keys that go from file to file pass over none.
    assert_eq!(at(&pixir.does("[").await), "A 4.bin 0B → 3B");
}

/// Broken build: each compiled file that a run of tests leaves behind takes a row of the card.
#[tokio::test]
async fn files_without_a_diff_are_one_row_of_the_card() {
    let change = "printf 'a\\0b' > core.pyc && printf 'a\\0b' > table.pyc && echo ran";
    let mut pixir = Pixir::sized(vec![bash(change), says("Done.")], &[], 80, 24);
    pixir.does("/mode auto<Enter>").await;
    let screen = pixir.does("test it<Enter>").await;
    assert!(screen.contains("2 files without a diff  core.pyc · table.pyc"), "{screen}");
    // In full, each of them has its row.
    let whole = pixir.does("<C-o>").await;
    assert!(whole.contains("core.pyc  not text, 3B") && whole.contains("table.pyc  not text, 3B"), "{whole}");
}

/// Broken build: beside a line that only one version has, the other side looks like an empty line of the file.
#[tokio::test]
async fn side_by_side_the_place_of_a_missing_line_has_a_ground_of_its_own() {
    let change = "sed -i '5a between' a.txt";
    let mut pixir = Pixir::sized(vec![bash(change), says("Done.")], &[("a.txt", &lines())], 160, 30);
    pixir.does("/mode auto<Enter>").await;
    pixir.does("change it<Enter>").await;
    pixir.does("/diff<Enter>").await;
    let coloured = pixir.screen.coloured();
    let grounds = |text: &str| {
        let row = coloured.lines().find(|row| row.contains(text)).unwrap_or_else(|| panic!("{text}\n{coloured}"));
        let all = row.match_indices("48;2;").map(|(at, _)| row[at + 5..].split('m').next().unwrap_or_default());
        all.collect::<std::collections::BTreeSet<_>>().len()
    };
    // Those of the screen, of the added line, and of the place beside it.
    assert_eq!((grounds("line 5"), grounds("between")), (1, 3), "{coloured}");
}
