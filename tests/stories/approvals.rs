//! Approvals: what the screen shows, which keys decide, and how long a decision holds.

use serde_json::json;

use crate::driver::{Pixir, also_calls, calls, says};

#[tokio::test]
async fn an_edit_shows_its_diff_and_waits_for_the_decision() {
    let edit = calls("edit", json!({"path": "a.txt", "old_text": "alpha", "new_text": "omega"}));
    let mut pixir = Pixir::new(vec![edit, says("Done.")], &[("a.txt", "alpha\nbeta\n")]);
    let screen = pixir.does("change it<Enter>").await;
    insta::assert_snapshot!(screen);
    assert_eq!(pixir.file("a.txt"), "alpha\nbeta\n", "no file changes before the decision");
    let screen = pixir.does("<A-y>").await;
    assert_eq!(pixir.file("a.txt"), "omega\nbeta\n");
    let card = screen.lines().find(|line| line.contains("✓ Edit a.txt")).unwrap_or_default();
    assert!(card.contains("  +1 −1  allowed"), "{screen}");
    assert!(pixir.kinds().contains(&"permission_decision".to_owned()));
}

#[tokio::test]
async fn plain_keys_decide_only_when_the_approval_has_the_focus() {
    let write = calls("write", json!({"path": "b.txt", "content": "x"}));
    let mut pixir = Pixir::new(vec![write, says("Fine.")], &[]);
    pixir.does("go<Enter>").await;
    let screen = pixir.does("yes y a n f").await;
    assert!(screen.contains("yes y a n f"), "typed text is a draft:\n{screen}");
    assert_eq!(pixir.file("b.txt"), "(No such file or directory (os error 2))");
    pixir.does("<Tab>n").await;
    assert_eq!(pixir.file("b.txt"), "(No such file or directory (os error 2))");
    let log = pixir.log();
    let decision = log.iter().find(|e| e["type"] == "permission_decision").expect("a decision");
    assert_eq!((decision["data"]["verdict"].as_str(), decision["data"]["by"].as_str()), (Some("deny"), Some("user")));
    assert_eq!(pixir.screen.draft(), "yes y a n f", "the draft is still there");
}

#[tokio::test]
async fn a_denial_can_say_what_to_do_instead() {
    let mut pixir = Pixir::new(vec![calls("bash", json!({"command": "rm -rf build"})), says("I leave it.")], &[]);
    pixir.does("clean<Enter>").await;
    pixir.does("a draft").await;
    let screen = pixir.does("<A-f>use make clean<Enter>").await;
    assert!(
        screen.contains("Refused: use make clean") && !screen.contains("the user refused this call"),
        "the card has the user's words, not those for the model:\n{screen}"
    );
    assert_eq!(pixir.screen.draft(), "a draft", "the draft was set aside and came back");
    let log = pixir.log();
    let result = log.iter().find(|e| e["type"] == "tool_result").expect("a result");
    assert!(
        result["data"]["output"]
            .as_str()
            .expect("text")
            .contains("the user refused this call and said: use make clean")
    );
}

/// Broken builds: one key runs it; Enter without the word runs it; the everyday call asks for the word too.
#[tokio::test]
async fn damage_that_lasts_runs_only_after_a_typed_word_and_an_everyday_call_without() {
    let run = |command: &str| calls("bash", json!({"command": command}));
    let files = [("build/a", "x"), ("src/a", "x"), ("docs/a", "x")];
    let steps = vec![run("rm -rf build"), run("rm -rf src"), run("rm -rf docs"), says("Done.")];
    let mut pixir = Pixir::sized(steps, &files, 100, 30);
    pixir.does("clean<Enter>").await;
    pixir.does("<A-y>").await;
    assert!(!pixir.path("build").exists(), "everyday work");
    let screen = pixir.does("<A-y>").await;
    assert!(screen.contains("Type \"allow\" to run it once") && screen.contains("it deletes src"), "{screen}");
    pixir.does("<Enter>yes<Enter>").await;
    assert!(pixir.path("src/a").exists());
    // A click answers nothing, Esc goes back to the card.
    pixir.screen.bytes(b"\x1b[<0;40;12M\x1b[<0;40;12m").await;
    let screen = pixir.does("<Esc>").await;
    assert!(pixir.path("src/a").exists() && screen.contains("Run rm -rf src"), "{screen}");
    pixir.does("<A-y>").await;
    pixir.does("allow<Enter>").await;
    assert!(!pixir.path("src").exists());
    // The full view of the call asks in the same way, and a refusal needs no word.
    pixir.does("<Tab><Enter>").await;
    let screen = pixir.does("y").await;
    assert!(screen.contains("Type \"allow\""), "{screen}");
    pixir.does("<Esc>").await;
    pixir.does("n").await;
    assert!(pixir.path("docs/a").exists());
    pixir.screen.until("Done.").await;
}

/// Broken build: the card names the tool and the program.
/// Broken build: a reason that is wider than the card is cut, and with it what is deleted.
#[tokio::test]
async fn a_long_reason_is_shown_as_a_whole() {
    let command = "sed -i 's/a/b/' slug.py && mkdir -p build && mv table.py letters.py && rm -rf old-tables";
    let files = [("slug.py", "a"), ("table.py", ""), ("old-tables/a", "")];
    let mut pixir = Pixir::new(vec![calls("bash", json!({ "command": command }))], &files);
    for (columns, rows) in [(80, 24), (60, 20), (120, 40)] {
        pixir.screen.resize(columns, rows);
        let screen = pixir.does(if columns == 80 { "tidy<Enter>" } else { "" }).await;
        let card = screen.rsplit_once('┏').map_or("", |(_, card)| card);
        let words = card.replace(['┃', '\n'], " ").split_whitespace().collect::<Vec<_>>().join(" ");
        let reason = "why: changes slug.py, creates the folder build, moves table.py to letters.py, deletes old-tables";
        assert!(words.contains(reason), "{screen}");
        assert!(words.contains("Alt+Y Allow"), "{screen}");
    }
}

#[tokio::test]
async fn a_card_of_bash_that_runs_bash_says_so_once() {
    let mut pixir =
        Pixir::new(vec![calls("bash", json!({"command": "bash run.sh"})), says("Ran.")], &[("run.sh", "echo ran\n")]);
    pixir.does("/mode auto<Enter>").await;
    let screen = pixir.does("run<Enter>").await;
    assert!(screen.contains("✓ $ bash run.sh"), "{screen}");
}

#[tokio::test]
async fn allow_always_holds_for_the_session_and_after_resume() {
    let edit = |from: &str, to: &str| calls("edit", json!({"path": "a.txt", "old_text": from, "new_text": to}));
    let mut pixir = Pixir::new(vec![edit("1", "2"), edit("2", "3"), says("Done.")], &[("a.txt", "1\n")]);
    pixir.does("count<Enter>").await;
    let screen = pixir.does("<A-a>").await;
    assert!(screen.contains("every change of files  in this session"), "{screen}");
    assert_eq!(pixir.file("a.txt"), "1\n", "no rule is saved before its scope was visible");
    pixir.does("<Enter>").await;
    assert_eq!(pixir.file("a.txt"), "3\n", "the second call needed no approval");
    let mut pixir = pixir.again(vec![edit("3", "4"), says("Done.")]).await;
    pixir.does("on<Enter>").await;
    assert_eq!(pixir.file("a.txt"), "4\n");
}

/// Broken builds: "always" for one change of a file allows them all; the rule for the folder covers files beside it.
#[tokio::test]
async fn allow_always_of_a_change_can_be_the_file_or_its_folder() {
    let write = |path: &str| calls("write", json!({"path": path, "content": "x"}));
    for (rule, downs, written, asked) in
        [("files(docs/a.md)", 1, "docs/a.md", "docs/b.md"), ("files(docs/**)", 2, "docs/sub/b.md", "src/b.md")]
    {
        let steps = vec![write("docs/a.md"), write(written), write(asked), says("Done.")];
        let mut pixir = Pixir::new(steps, &[("docs/a.md", "old")]);
        pixir.does("write them<Enter>").await;
        let screen = pixir.does("<A-a>").await;
        let row = format!("{rule}  in this session");
        assert!(screen.contains("▸ every change of files") && screen.contains(&row), "{screen}");
        let screen = pixir.does(&format!("{}<Enter>", "<Down>".repeat(downs))).await;
        assert_eq!(pixir.file(written), "x", "{rule}");
        assert!(screen.contains(asked) && !pixir.path(asked).exists(), "{rule} covers {asked}: {screen}");
    }
    // A patch of two files has the folder that both share, and a name with the signs of a glob has no rule of its own.
    let patch = "*** Begin Patch\n*** Add File: docs/c.md\n+c\n*** Add File: docs/d/e.md\n+e\n*** End Patch\n";
    let steps = vec![calls("apply_patch", json!({"patch": patch})), write("odd[1].md"), says("Done.")];
    let mut pixir = Pixir::new(steps, &[("docs/a.md", "old")]);
    pixir.does("patch it<Enter>").await;
    let screen = pixir.does("<A-a>").await;
    assert!(screen.contains("files(docs/**)") && !screen.contains("files(docs/c.md)"), "{screen}");
    pixir.does("<Esc><A-y>").await;
    let screen = pixir.does("<A-a>").await;
    assert!(screen.contains("every change of files") && !screen.contains("files(odd"), "{screen}");
}

#[tokio::test]
async fn a_preview_longer_than_the_screen_is_read_before_allow_works() {
    let lines: String = (1..=60).map(|i| format!("-- {i}\n")).collect();
    let mut pixir = Pixir::new(vec![calls("write", json!({"path": "long.sql", "content": lines})), says("Done.")], &[]);
    let screen = pixir.does("go<Enter>").await;
    assert!(screen.contains("more lines · Tab, then Enter") && screen.contains("Alt+N"), "{screen}");
    let screen = pixir.does("<A-y>").await;
    assert!(screen.contains("the preview is longer than the screen"), "{screen}");
    let screen = pixir.does("<Tab><Enter>").await;
    assert!(screen.contains("+ -- 1") && screen.contains("End to the end"), "{screen}");
    let screen = pixir.does("y").await;
    assert!(screen.contains("End goes to its end"), "what is not read is not allowed here either:\n{screen}");
    let screen = pixir.does("<End>").await;
    assert!(screen.contains("y Allow") && screen.contains("n Refuse"), "the full view answers too:\n{screen}");
    pixir.does("y").await;
    assert_eq!(pixir.file("long.sql"), lines);
}

#[tokio::test]
async fn a_denied_call_can_still_be_read() {
    let args = json!({"path": "a.txt", "old_text": "alpha\nbeta", "new_text": "omega"});
    let pattern = format!("\\b{}\\b", "long".repeat(40));
    let search = calls("grep", json!({"pattern": pattern, "path": "."}));
    let steps = vec![calls("edit", args), search, says("As you like.")];
    let mut pixir = Pixir::new(steps, &[("a.txt", "alpha\nbeta\n")]);
    pixir.does("change it<Enter>").await;
    let screen = pixir.does("<A-n>").await;
    assert!(screen.contains("⊘ Edit a.txt") && !screen.contains("omega"), "{screen}");
    let screen = pixir.does("<C-o><C-Home>").await;
    for shown in ["old_text:", "│ alpha", "│ beta", "new_text: omega"] {
        assert!(screen.contains(shown), "{shown}:\n{screen}");
    }
    let said: String = screen.replace('┃', "").split_whitespace().collect();
    assert!(said.contains(&pattern), "text that the cell cuts is shown in full:\n{screen}");
}

#[tokio::test]
async fn an_approval_leaves_part_of_the_transcript_visible() {
    for rows in [15, 17, 24] {
        let lines: String = (1..=40).map(|n| format!("line {n}\n")).collect();
        let mut step = calls("write", json!({"path": "b.txt", "content": lines}));
        step.text = "This is why it has to be written.".into();
        let mut pixir = Pixir::sized(vec![step, says("Ok.")], &[], 80, rows);
        pixir.does("go<Enter>").await;
        let screen = pixir.does("<PgUp>").await;
        assert!(screen.contains("This is why") && screen.contains("Alt+N Refuse"), "{rows}:\n{screen}");
    }
}

#[tokio::test]
async fn a_small_screen_shows_the_call_and_the_decision_keys() {
    for (columns, rows) in [(40, 10), (60, 20)] {
        let step = calls("bash", json!({"command": "make install"}));
        let mut pixir = Pixir::sized(vec![step, says("ok")], &[], columns, rows);
        let screen = pixir.does("go<Enter>").await;
        assert!(screen.contains("make install") && screen.contains("Alt+Y") && screen.contains("Alt+N"), "{screen}");
        pixir.does("<A-n>").await;
    }
}

#[tokio::test]
async fn a_read_only_call_needs_no_approval() {
    let step = also_calls(calls("read", json!({"path": "a.txt"})), "bash", json!({"command": "cat a.txt | wc -l"}));
    let mut pixir = Pixir::new(vec![step, says("One line.")], &[("a.txt", "alpha\n")]);
    let screen = pixir.does("look<Enter>").await;
    assert!(screen.contains("✓ Looked at 1 file, ran 1 command") && screen.contains("One line."), "{screen}");
    let screen = pixir.does("<Tab>k ").await;
    assert!(screen.contains("✓ Read a.txt") && screen.contains("✓ $ cat a.txt | wc -l"), "{screen}");
}

#[tokio::test]
async fn approval_shows_hidden_characters_of_a_command() {
    let mut pixir =
        Pixir::new(vec![calls("bash", json!({"command": "echo \u{202e}fdp.exe\u{200b} \u{1b}[2K"})), says("ok")], &[]);
    let screen = pixir.does("go<Enter>").await;
    assert!(screen.contains("\\u{202e}fdp.exe\\u{200b} \\u{1b}[2K"), "{screen}");
    pixir.does("<A-n>").await;
}

#[tokio::test]
async fn auto_mode_is_not_restored_on_resume() {
    let mut pixir = Pixir::new(vec![says("One.")], &[]);
    pixir.does("<S-Tab>").await;
    let screen = pixir.does("go<Enter>").await;
    assert!(screen.contains("· auto"), "{screen}");
    let mut again = pixir.again(vec![]).await;
    again.screen.until_idle().await;
    assert!(again.screen.screen().contains("· ask"), "{}", again.screen.screen());
}

/// Broken builds: the card tells nothing of the calls that follow; a call that waits looks like one that runs.
#[tokio::test]
async fn an_answer_with_three_changes_counts_them_and_marks_what_waits() {
    let write = |name: &str| json!({ "path": name, "content": "x\n" });
    let step = also_calls(calls("write", write("a.txt")), "read", json!({ "path": "here.txt" }));
    let step = also_calls(also_calls(step, "write", write("b.txt")), "write", write("c.txt"));
    let mut pixir = Pixir::new(vec![step, says("Done.")], &[("here.txt", "x\n")]);
    let row = |screen: &str, text: &str| screen.lines().find(|line| line.contains(text)).unwrap_or_default().to_owned();
    let screen = pixir.does("go<Enter>").await;
    assert!(screen.contains("1 of 3"), "{screen}");
    assert!(row(&screen, "Write a.txt").contains("? Write"), "{screen}");
    assert!(row(&screen, "Write c.txt").contains("○ Write"), "{screen}");
    let screen = pixir.does("<A-y>").await;
    assert!(screen.contains("2 of 3") && row(&screen, "Write a.txt").contains("✓ Write"), "{screen}");
    let screen = pixir.does("<A-n>").await;
    assert!(screen.contains("3 of 3"), "{screen}");
    let screen = pixir.does("<A-y>").await;
    assert!(screen.contains("Done.") && !screen.contains("○ "), "{screen}");
}
