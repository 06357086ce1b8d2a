use pixir_core::event::Usage;
use pixir_core::provider::script::{Script, Step};
use serde_json::json;

use crate::driver::{Pixir, also_calls, calls, says, timeless};

#[tokio::test]
async fn a_prompt_becomes_an_answer() {
    let mut pixir = Pixir::new(vec![says("It is **42**.")], &[]);
    let screen = pixir.does("what is it<Enter>").await;
    assert!(screen.contains("❯ what is it\n\n   It is 42.\n"), "{screen}");
    assert_eq!(pixir.kinds(), ["session_started", "user_message", "assistant_message", "turn_ended"]);
}

#[tokio::test]
async fn a_change_shows_its_diff_waits_and_is_made_when_it_is_allowed() {
    let edit = calls("edit", json!({"path": "a.txt", "old_text": "alpha", "new_text": "omega"}));
    let mut pixir = Pixir::new(vec![edit, says("Done.")], &[("a.txt", "alpha\nbeta\n")]);
    let screen = pixir.does("change it<Enter>").await;
    insta::assert_snapshot!(screen);
    assert_eq!(pixir.file("a.txt"), "alpha\nbeta\n", "nothing happens before the answer");
    let screen = pixir.does("<A-y>").await;
    assert_eq!(pixir.file("a.txt"), "omega\nbeta\n");
    assert!(screen.contains("✓ edit a.txt  allowed  +1 −1"), "{screen}");
    assert!(pixir.kinds().contains(&"permission_decision".to_owned()));
}

#[tokio::test]
async fn plain_keys_never_answer_a_question_unless_it_was_focused() {
    let write = calls("write", json!({"path": "b.txt", "content": "x"}));
    let mut pixir = Pixir::new(vec![write, says("Fine.")], &[]);
    pixir.does("go<Enter>").await;
    let screen = pixir.does("yes y a n f").await;
    assert!(screen.contains("yes y a n f"), "what is typed is a draft:\n{screen}");
    assert_eq!(pixir.file("b.txt"), "(No such file or directory (os error 2))");
    pixir.does("<Tab>n").await;
    assert_eq!(pixir.file("b.txt"), "(No such file or directory (os error 2))");
    let log = pixir.log();
    let decision = log.iter().find(|e| e["type"] == "permission_decision").expect("a decision");
    assert_eq!((decision["data"]["verdict"].as_str(), decision["data"]["by"].as_str()), (Some("deny"), Some("user")));
    assert_eq!(pixir.screen.draft(), "yes y a n f", "the draft is still there");
}

#[tokio::test]
async fn a_no_can_say_what_to_do_instead() {
    let mut pixir = Pixir::new(vec![calls("bash", json!({"command": "rm -rf build"})), says("I leave it.")], &[]);
    pixir.does("clean<Enter>").await;
    pixir.does("a draft").await;
    pixir.does("<A-f>use make clean<Enter>").await;
    assert_eq!(pixir.screen.draft(), "a draft", "it made room and came back");
    let log = pixir.log();
    let result = log.iter().find(|e| e["type"] == "tool_result").expect("a result");
    assert!(
        result["data"]["output"]
            .as_str()
            .expect("text")
            .contains("the user refused this call and said: use make clean")
    );
}

#[tokio::test]
async fn always_means_this_kind_of_call_in_this_session_also_after_it_was_resumed() {
    let edit = |from: &str, to: &str| calls("edit", json!({"path": "a.txt", "old_text": from, "new_text": to}));
    let mut pixir = Pixir::new(vec![edit("1", "2"), edit("2", "3"), says("Done.")], &[("a.txt", "1\n")]);
    pixir.does("count<Enter>").await;
    pixir.does("<A-a>").await;
    assert_eq!(pixir.file("a.txt"), "3\n", "the second was not asked about");
    let mut pixir = pixir.again(vec![edit("3", "4"), says("Done.")]).await;
    pixir.does("on<Enter>").await;
    assert_eq!(pixir.file("a.txt"), "4\n");
}

#[tokio::test]
async fn what_is_longer_than_the_screen_must_be_read_before_it_can_be_allowed() {
    let lines: String = (1..=60).map(|i| format!("-- {i}\n")).collect();
    let mut pixir = Pixir::new(vec![calls("write", json!({"path": "long.sql", "content": lines})), says("Done.")], &[]);
    let screen = pixir.does("go<Enter>").await;
    assert!(screen.contains("more lines · Tab, then Enter") && screen.contains("Alt+N"), "{screen}");
    let screen = pixir.does("<A-y>").await;
    assert!(screen.contains("the preview is longer than the screen"), "{screen}");
    let screen = pixir.does("<Tab><Enter>").await;
    assert!(screen.contains("+ -- 1") && screen.contains("read to the end"), "{screen}");
    pixir.does("<End><Esc>y").await;
    assert_eq!(pixir.file("long.sql"), lines);
}

#[tokio::test]
async fn every_hint_names_the_key_that_is_bound() {
    let edit = calls("edit", json!({"path": "a.txt", "old_text": "1", "new_text": "2"}));
    let keys: [(&str, &[&str]); 5] = [
        ("allow-once", &["alt+1"]),
        ("approval-allow-once", &["1"]),
        ("deny", &["alt+2"]),
        ("details", &["alt+o"]),
        ("to-end", &["none"]),
    ];
    let command = calls("bash", json!({"command": "seq 1 40"}));
    let mut pixir = Pixir::with_keys(vec![edit, command, says("Done.")], &keys).expect("they are free");
    std::fs::write(pixir.path("a.txt"), "1\n").expect("write");
    let screen = pixir.does("count<Enter>").await;
    assert!(screen.contains("Alt+1 once") && screen.contains("Alt+2 no") && !screen.contains("Alt+Y"), "{screen}");
    let screen = pixir.does("<Tab>").await;
    assert!(screen.contains(" 1 once") && !screen.contains("y once"), "{screen}");
    pixir.does("1").await;
    assert_eq!(pixir.file("a.txt"), "2\n", "and the key does what the hint says");
    let screen = pixir.does("<A-1>").await;
    assert!(screen.contains("… 34 more lines · Alt+O"), "{screen}");
    let screen = pixir.does("<A-o><PgUp>").await;
    assert!(screen.contains(" ↓ ") && !screen.contains("Ctrl+End"), "{screen}");
}

#[tokio::test]
async fn what_was_refused_can_still_be_read() {
    let args = json!({"path": "a.txt", "old_text": "alpha\nbeta", "new_text": "omega"});
    let pattern = format!("\\b{}\\b", "long".repeat(40));
    let search = calls("grep", json!({"pattern": pattern, "path": "."}));
    let steps = vec![calls("edit", args), search, says("As you like.")];
    let mut pixir = Pixir::new(steps, &[("a.txt", "alpha\nbeta\n")]);
    pixir.does("change it<Enter>").await;
    let screen = pixir.does("<A-n>").await;
    assert!(screen.contains("⊘ edit a.txt") && !screen.contains("omega"), "{screen}");
    let screen = pixir.does("<C-o><C-Home>").await;
    for shown in ["old_text:", "│ alpha", "│ beta", "new_text: omega"] {
        assert!(screen.contains(shown), "{shown}:\n{screen}");
    }
    let said: String = screen.split_whitespace().collect();
    assert!(said.contains(&pattern), "what the card cuts is there in full:\n{screen}");
}

#[tokio::test]
async fn of_an_output_that_was_cut_every_line_is_counted() {
    let ok = calls("bash", json!({"command": "seq 1 20000"}));
    let failed = calls("bash", json!({"command": "seq 1 20000; exit 3"}));
    let mut pixir = Pixir::sized(vec![ok, failed, says("Done.")], &[], 100, 40);
    let screen = pixir.does("/mode auto<Enter>count<Enter>").await;
    assert!(screen.contains("│ 6\n   │ … 19994 more lines · Ctrl+O"), "{screen}");
    assert!(screen.contains("│ … 19994 more lines · Ctrl+O\n   │ 19995") && screen.contains("│ 20000"), "{screen}");
    assert!(!screen.contains("Explore:"), "what is said to the model:\n{screen}");
}

#[tokio::test]
async fn a_question_leaves_some_of_the_conversation_in_sight() {
    for rows in [15, 17, 24] {
        let lines: String = (1..=40).map(|n| format!("line {n}\n")).collect();
        let mut step = calls("write", json!({"path": "b.txt", "content": lines}));
        step.text = "This is why it has to be written.".into();
        let mut pixir = Pixir::sized(vec![step, says("Ok.")], &[], 80, rows);
        pixir.does("go<Enter>").await;
        let screen = pixir.does("<PgUp>").await;
        assert!(screen.contains("This is why") && screen.contains("Alt+N no"), "{rows}:\n{screen}");
    }
}

#[tokio::test]
async fn the_branch_in_the_header_is_the_one_that_it_is_on() {
    let command = calls("bash", json!({"command": "echo 'ref: refs/heads/other' > ../main/.git/worktrees/app/HEAD"}));
    // A work tree, whose repository is elsewhere.
    let files = [
        (".git", "gitdir: ../main/.git/worktrees/app\n"),
        ("../main/.git/worktrees/app/HEAD", "ref: refs/heads/topic\n"),
    ];
    let mut pixir = Pixir::new(vec![command, says("Done.")], &files);
    pixir.screen.until("app · topic").await;
    pixir.does("/mode auto<Enter>go<Enter>").await;
    pixir.screen.until("app · other").await;
}

#[tokio::test]
async fn thinking_ends_with_a_headline_when_the_answer_begins() {
    let thought = "**Looking at the problem**\n\nFirst the code, then the tests.\n\n**Checking**\n\nAll of it.";
    let step = Step { reasoning: thought.into(), hang: true, ..says("The answer begins") };
    let mut pixir = Pixir::new(vec![step], &[]);
    pixir.screen.until_idle().await;
    pixir.screen.keys("go<Enter>").await;
    pixir.screen.until("The answer begins").await;
    let screen = pixir.screen.screen();
    assert!(screen.contains("✻ Looking at the problem  +") && !screen.contains("All of it."), "{screen}");
    pixir.screen.keys("<A-t><A-t>").await;
    let screen = pixir.screen.screen();
    assert!(screen.contains("  Checking") && screen.contains("All of it.") && !screen.contains("**"), "{screen}");
}

#[tokio::test]
async fn a_small_screen_still_shows_what_would_be_done_and_how_to_answer() {
    for (columns, rows) in [(40, 10), (60, 20)] {
        let step = calls("bash", json!({"command": "make install"}));
        let mut pixir = Pixir::sized(vec![step, says("ok")], &[], columns, rows);
        let screen = pixir.does("go<Enter>").await;
        assert!(screen.contains("make install") && screen.contains("Alt+Y") && screen.contains("Alt+N"), "{screen}");
        pixir.does("<A-n>").await;
    }
}

#[tokio::test]
async fn what_only_reads_is_not_asked_about() {
    let step = also_calls(calls("read", json!({"path": "a.txt"})), "bash", json!({"command": "cat a.txt | wc -l"}));
    let mut pixir = Pixir::new(vec![step, says("One line.")], &[("a.txt", "alpha\n")]);
    let screen = pixir.does("look<Enter>").await;
    assert!(
        screen.contains("✓ read a.txt") && screen.contains("✓ bash cat a.txt | wc -l") && screen.contains("One line."),
        "{screen}"
    );
}

#[tokio::test]
async fn esc_stops_the_answer_and_keeps_what_was_said() {
    let step = pixir_core::provider::script::Step { text: "Half an answer".into(), hang: true, ..Default::default() };
    let mut pixir = Pixir::new(vec![step, says("Whole.")], &[]);
    pixir.screen.until_idle().await;
    pixir.screen.keys("go<Enter>").await;
    pixir.screen.until("Half an answer").await;
    pixir.screen.keys("<Esc>").await;
    pixir.screen.until_idle().await;
    let screen = pixir.screen.screen();
    assert!(screen.contains("⋯ it broke off here") && screen.contains("■ interrupted"), "{screen}");
    let screen = pixir.does("again<Enter>").await;
    assert!(screen.contains("Whole."), "{screen}");
    let ends: Vec<_> =
        pixir.log().into_iter().filter(|e| e["type"] == "turn_ended").map(|e| e["data"]["status"].clone()).collect();
    assert_eq!(ends, [json!("interrupted"), json!("completed")]);
}

#[tokio::test]
async fn a_message_to_a_running_turn_joins_it_and_a_follow_up_waits_for_its_end() {
    let mut first = calls("bash", json!({"command": "cat a.txt"}));
    first.delay_ms = 0;
    let slow = pixir_core::provider::script::Step { text: "Looking.".into(), hang: false, ..first };
    let steered = pixir_core::provider::script::Step { when: Some("also b".into()), ..says("Both seen.") };
    let after = pixir_core::provider::script::Step { when: Some("then c".into()), ..says("And c.") };
    // A write that asks holds the Turn while the person types.
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
async fn what_waits_can_be_taken_back_for_editing() {
    let mut pixir = Pixir::new(vec![calls("write", json!({"path": "x", "content": "y"})), says("ok")], &[]);
    pixir.does("go<Enter>").await;
    pixir.screen.keys("later<A-Enter>").await;
    pixir.screen.until_idle().await;
    pixir.does("<A-Up>").await;
    assert_eq!(pixir.screen.draft(), "later");
    assert!(!pixir.screen.screen().contains("▸ next"));
}

#[tokio::test]
async fn the_tree_goes_back_edits_a_prompt_again_and_loses_nothing() {
    let mut pixir = Pixir::new(vec![says("One."), says("Two."), says("Other.")], &[]);
    pixir.does("first<Enter>").await;
    pixir.does("second<Enter>").await;
    let screen = pixir.does("/tree<Enter>").await;
    insta::assert_snapshot!(screen);
    pixir.does("e").await;
    assert_eq!(pixir.screen.draft(), "second");
    let screen = pixir.does(", but other<Enter>").await;
    assert!(screen.contains("Other.") && !screen.contains("Two."), "{screen}");
    let screen = pixir.does("<C-t>").await;
    assert!(screen.contains("◉ 3 second, but other") && screen.contains("○ 2 second"), "{screen}");
    let screen = pixir.does("<Down><Enter>").await;
    assert!(screen.contains("Two.") && !screen.contains("Other."), "the other branch is back:\n{screen}");
}

#[tokio::test]
async fn a_fork_is_a_session_of_its_own_and_the_parent_lists_it() {
    let mut pixir = Pixir::new(vec![says("One."), says("In the fork.")], &[]);
    pixir.does("first<Enter>").await;
    let parent = pixir.screen.session().expect("open").clone();
    pixir.does("/fork<Enter>").await;
    assert_ne!(pixir.screen.session(), Some(&parent));
    let screen = pixir.does("more<Enter>").await;
    assert!(screen.contains("One.") && screen.contains("In the fork."), "{screen}");
    assert!(pixir.kinds().starts_with(&["session_started".into(), "session_fork".into(), "user_message".into()]));
    pixir.does(&format!("/resume {parent}<Enter>")).await;
    let screen = pixir.does("<C-t>").await;
    assert!(screen.contains("⑂ fork"), "{screen}");
}

#[tokio::test]
async fn compacting_is_shown_first_and_applied_on_enter() {
    let long = "word ".repeat(10_000);
    let steps = vec![says(&long), says("Two."), says("Three."), says("Four.")];
    let mut pixir = Pixir::new(steps, &[]);
    for prompt in ["first request<Enter>", "second request<Enter>", "third request<Enter>"] {
        pixir.does(prompt).await;
    }
    let screen = pixir.does("/compact mind the tests<Enter>").await;
    assert!(screen.contains("Compact: ") && screen.contains("mind the tests"), "{screen}");
    assert!(!pixir.kinds().contains(&"history_compaction".to_owned()), "a dry run writes nothing");
    pixir.does("<Enter>").await;
    let log = pixir.log();
    let compaction = &log.iter().find(|e| e["type"] == "history_compaction").expect("applied")["data"];
    assert!(compaction["summary"].as_str().expect("text").contains("first request"));
    assert!(compaction["tokens_after"].as_u64() < compaction["tokens_before"].as_u64());
    let screen = pixir.does("fourth<Enter>").await;
    assert!(screen.contains("Four."), "{screen}");

    // In a fork everything has new numbers, and what was kept verbatim is still kept.
    let kept = |log: &[serde_json::Value]| {
        let compaction = log.iter().find(|e| e["type"] == "history_compaction").expect("there");
        let seq = compaction["data"]["kept_from_seq"].as_u64().expect("a number");
        log.iter().find(|e| e["seq"] == seq).expect("there")["data"]["text"].clone()
    };
    let before = kept(&pixir.log());
    pixir.does("/fork<Enter>").await;
    assert_eq!(kept(&pixir.log()), before);
}

#[tokio::test]
async fn a_fork_that_is_rewound_to_its_start_is_not_thrown_away() {
    let mut pixir = Pixir::new(vec![says("One.")], &[]);
    pixir.does("first<Enter>").await;
    pixir.does("/fork<Enter>").await;
    let fork = pixir.screen.session().expect("open").clone();
    pixir.does("<C-t>e").await;
    assert_eq!(pixir.screen.draft(), "first");
    pixir.does("<C-c>/new<Enter>").await;
    let screen = pixir.does(&format!("/resume {fork}<Enter>")).await;
    assert_eq!(pixir.screen.session(), Some(&fork), "{screen}");
}

#[tokio::test]
async fn a_skill_is_listed_and_activated_by_name() {
    let skill = "---\nname: review\ndescription: Reads a diff hard\n---\nLook for what is missing.\n";
    let step = pixir_core::provider::script::Step { when: Some("the last commit".into()), ..says("Reviewed.") };
    let mut pixir = Pixir::new(vec![step], &[(".pixir/skills/review/SKILL.md", skill)]);
    let screen = pixir.does("/skill<Enter>").await;
    assert!(screen.contains("review") && screen.contains("workspace · Reads a diff hard"), "{screen}");
    pixir.does("<Enter>").await;
    assert_eq!(pixir.screen.draft(), "/skill review ");
    let screen = pixir.does("the last commit<Enter>").await;
    assert!(screen.contains("◆ skill review is active") && screen.contains("Reviewed."), "{screen}");
    let screen = pixir.does("/skill reviw<Enter>").await;
    assert!(screen.contains("fix: /skill review"), "{screen}");
}

#[tokio::test]
async fn the_diff_shows_what_the_turn_and_the_session_changed() {
    let edit = |from: &str, to: &str| calls("edit", json!({"path": "a.txt", "old_text": from, "new_text": to}));
    let mut pixir = Pixir::new(vec![edit("1", "2"), says("ok"), edit("2", "3"), says("ok")], &[("a.txt", "1\n")]);
    pixir.does("/mode auto<Enter>").await;
    pixir.does("a<Enter>").await;
    pixir.does("b<Enter>").await;
    let turn = pixir.does("/diff<Enter>").await;
    assert!(turn.contains("Changes of this turn") && turn.contains("- 2") && turn.contains("+ 3"), "{turn}");
    let session = pixir.does("<Tab>").await;
    assert!(
        session.contains("Changes of this session") && session.contains("- 1") && session.contains("+ 3"),
        "{session}"
    );
    assert!(!session.contains("- 2"));
}

#[tokio::test]
async fn settings_are_inputs_and_entries() {
    let mut pixir = Pixir::new(vec![says("ok")], &[]);
    let screen = pixir.does("<S-Tab>").await;
    assert!(screen.lines().next().expect("a header").ends_with("auto"), "{screen}");
    pixir.does("/mode read-only<Enter>").await;
    pixir.does("/rename my work<Enter>").await;
    let screen = pixir.does("/theme light<Enter>").await;
    assert!(
        screen.lines().next().expect("a header").contains("my work")
            && screen.lines().next().expect("a header").ends_with("read-only"),
        "{screen}"
    );
    let changed: Vec<_> =
        pixir.log().into_iter().filter(|e| e["type"] == "settings_changed").map(|e| e["data"].clone()).collect();
    assert_eq!(changed, [json!({"mode": "auto"}), json!({"mode": "read-only"}), json!({"name": "my work"})]);
    let screen = pixir.does("/modle<Enter>").await;
    assert!(screen.contains("did you mean /model?"), "{screen}");
}

#[tokio::test]
async fn opening_and_closing_leaves_nothing_behind() {
    let mut pixir = Pixir::new(vec![], &[]);
    pixir.screen.until_idle().await;
    let farewell = pixir.screen.close().await.expect("a session was open");
    assert_eq!((farewell.session, farewell.answer), (None, None));
}

#[tokio::test]
async fn reading_back_is_not_disturbed_by_what_comes() {
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
async fn what_is_read_in_a_growing_answer_stays_when_the_answer_is_whole() {
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
async fn hidden_characters_in_a_command_are_shown_before_it_is_allowed() {
    let mut pixir =
        Pixir::new(vec![calls("bash", json!({"command": "echo \u{202e}fdp.exe\u{200b} \u{1b}[2K"})), says("ok")], &[]);
    let screen = pixir.does("go<Enter>").await;
    assert!(screen.contains("\\u{202e}fdp.exe\\u{200b} \\u{1b}[2K"), "{screen}");
    pixir.does("<A-n>").await;
}

#[tokio::test]
async fn the_screen_at_three_sizes_and_below_the_smallest() {
    let answer = "## Title\n\nText with `code`.\n\n- one\n- two\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```rust\nfn main() {}\n```\n";
    for (columns, rows) in [(60, 20), (80, 24), (120, 40)] {
        let step = also_calls(calls("read", json!({"path": "a.txt"})), "grep", json!({"pattern": "zzz"}));
        let mut pixir = Pixir::sized(vec![step, says(answer)], &[("a.txt", "x\n")], columns, rows);
        let screen = pixir.does("show me<Enter>").await;
        insta::assert_snapshot!(format!("{columns}x{rows}"), timeless(&screen));
    }
    let mut pixir = Pixir::sized(vec![says("ok")], &[], 80, 24);
    pixir.does("hi<Enter>").await;
    for (columns, rows) in [(1, 1), (2, 2), (39, 9), (40, 10), (200, 60), (3, 50), (90, 1)] {
        pixir.screen.resize(columns, rows);
        for layer in ["<F1>", "<Esc>", "<C-t>", "<Esc>", "<A-d>", "<Esc>", "/", "<C-c>"] {
            pixir.screen.keys(layer).await;
        }
    }
}

#[tokio::test]
async fn where_one_was_reading_is_found_again() {
    let long: String = (1..200).map(|n| format!("- line {n}\n")).collect();
    let mut pixir = Pixir::new(vec![says(&long)], &[]);
    // What is in no log moves nothing.
    pixir.does("/usage<Enter>").await;
    pixir.does("go<Enter>").await;
    let before = pixir.does("<PgUp><PgUp><C-o>").await;
    let middle = before.lines().nth(8).expect("a line").to_owned();
    let mut again = pixir.again(vec![]).await;
    again.screen.until_idle().await;
    assert_eq!(again.screen.screen().lines().nth(8), Some(middle.as_str()), "{before}");
}

#[tokio::test]
async fn an_effort_is_chosen_and_what_everything_took_is_said() {
    let usage = Usage { input: 1_200, cached: 1_000, output: 30, ..Usage::default() };
    let step = |text: &str| Step { usage: Some(usage), ..says(text) };
    let mut pixir = Pixir::sized(vec![step("One."), step("Two.")], &[], 100, 30);
    let screen = pixir.does("/usage<Enter>").await;
    assert!(screen.contains("no request has reported its usage yet"), "{screen}");
    let screen = pixir.does("/effort<Enter>").await;
    assert!(screen.contains("xhigh") && screen.contains("as much as the model supports"), "{screen}");
    pixir.does("<Esc>").await;
    let screen = pixir.does("/effort hihg<Enter>").await;
    assert!(screen.contains("there is no effort `hihg`"), "{screen}");
    let screen = pixir.does("/effort high<Enter>").await;
    assert!(screen.contains("effort: high") && screen.contains("test-model · high"), "{screen}");
    pixir.does("first<Enter>").await;
    pixir.does("second<Enter>").await;
    let screen = pixir.does("/usage<Enter>").await;
    for line in
        ["session          2400 in (2000 cached), 60 out, 2 requests", "script/test-model", "turn 2           1200 in"]
    {
        assert!(screen.contains(line), "{line} is not on\n{screen}");
    }
}
