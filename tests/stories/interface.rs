//! The interface around the conversation: header, settings, skills, the diff, and its start and end.

use serde_json::json;

use crate::driver::{Pixir, calls, says};

#[tokio::test]
async fn a_prompt_becomes_an_answer_on_the_screen() {
    let mut pixir = Pixir::new(vec![says("It is **42**.")], &[]);
    let screen = pixir.does("what is it<Enter>").await;
    assert!(screen.contains("❯ what is it\n\n   It is 42.\n"), "{screen}");
    assert_eq!(pixir.kinds(), ["session_started", "user_message", "assistant_message", "turn_ended"]);
}

#[tokio::test]
async fn the_header_follows_the_git_branch() {
    let command = calls("bash", json!({"command": "make"}));
    // A work tree, whose repository is elsewhere.
    let files = [
        (".git", "gitdir: ../main/.git/worktrees/app\n"),
        ("../main/.git/worktrees/app/HEAD", "ref: refs/heads/topic\n"),
    ];
    let mut pixir = Pixir::new(vec![command, says("Done.")], &files);
    pixir.screen.until("app · topic").await;
    // Somebody checks out another branch while a command runs.
    std::fs::write(pixir.path("../main/.git/worktrees/app/HEAD"), "ref: refs/heads/other\n").expect("write");
    pixir.does("/mode auto<Enter>go<Enter>").await;
    pixir.screen.until("app · other").await;
}

/// Broken builds: the header has no mark; it stays after the commit; it is set before a file differs.
#[tokio::test]
async fn the_header_marks_a_branch_with_changes_that_are_not_committed() {
    let mut pixir = Pixir::new(vec![], &[("a.txt", "1\n")]);
    pixir.does("").await;
    let folder = pixir.path("");
    let git = |args: &[&str]| {
        let mut git = std::process::Command::new("git");
        git.current_dir(&folder).args(["-c", "user.name=a", "-c", "user.email=a@b.c"]).args(args);
        let ran =
            git.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null").output().expect("git runs");
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    };
    git(&["init", "-q", "-b", "main"]);
    git(&["add", "."]);
    git(&["commit", "-qm", "First"]);
    let mut pixir = pixir
        .anew(vec![calls("edit", json!({"path": "a.txt", "old_text": "1", "new_text": "2"})), says("Done.")])
        .await;
    let screen = pixir.does("/mode auto<Enter>").await;
    assert!(screen.contains("app · main ") && !screen.contains("main*"), "{screen}");
    pixir.does("change it<Enter>").await;
    pixir.screen.until("app · main* ").await;
    git(&["commit", "-qam", "Second"]);
    // The window has the focus again.
    pixir.screen.bytes(b"\x1b[O\x1b[I").await;
    pixir.screen.until("app · main ").await;
}

#[tokio::test]
async fn a_skill_is_listed_and_activated_by_name() {
    let skill = "---\nname: review\ndescription: Reads a diff hard\n---\nLook for what is missing.\n";
    let step = pixir_core::provider::script::Step { when: Some("the last commit".into()), ..says("Reviewed.") };
    let mut pixir = Pixir::new(vec![step], &[(".pixir/skills/review/SKILL.md", skill)]);
    pixir.does("<Esc>").await;
    let screen = pixir.does("/skill review x<Enter>").await;
    assert!(screen.contains("you do not trust it; /trust"), "{screen}");
    pixir.does("<C-c>/trust<Enter>").await;
    pixir.does("<Down><Enter>").await;
    let screen = pixir.does("/skill<Enter>").await;
    assert!(screen.contains("review  project  Reads a diff hard"), "{screen}");
    pixir.does("<Tab>").await;
    assert_eq!(pixir.screen.draft(), "/skill review ");
    let screen = pixir.does("the last commit<Enter>").await;
    assert!(screen.contains("◆ skill review is active") && screen.contains("Reviewed."), "{screen}");
    let screen = pixir.does("/skill reviw<Enter>").await;
    assert!(screen.contains("/skill review"), "{screen}");
}

#[tokio::test]
async fn diff_shows_changes_of_the_turn_and_of_the_session() {
    let edit = |from: &str, to: &str| calls("edit", json!({"path": "a.txt", "old_text": from, "new_text": to}));
    let mut pixir = Pixir::new(vec![edit("1", "2"), says("ok"), edit("2", "3"), says("ok")], &[("a.txt", "1\n")]);
    pixir.does("/mode auto<Enter>").await;
    pixir.does("a<Enter>").await;
    pixir.does("b<Enter>").await;
    let turn = pixir.does("/diff<Enter>").await;
    assert!(turn.contains("Diff · this turn") && turn.contains("- 2") && turn.contains("+ 3"), "{turn}");
    let session = pixir.does("<Tab><Tab>").await;
    assert!(session.contains("Diff · this session") && session.contains("- 1") && session.contains("+ 3"), "{session}");
    assert!(!session.contains("- 2"));
}

#[tokio::test]
async fn settings_are_recorded_as_entries() {
    let mut pixir = Pixir::new(vec![says("ok")], &[]);
    let screen = pixir.does("<S-Tab>").await;
    assert!(screen.lines().next().expect("a header").contains(" · auto · "), "{screen}");
    pixir.does("/mode read-only<Enter>").await;
    pixir.does("/rename my work<Enter>").await;
    let screen = pixir.does("/theme light<Enter>").await;
    assert!(
        screen.lines().next().expect("a header").contains("my work")
            && screen.lines().next().expect("a header").contains(" · read-only · "),
        "{screen}"
    );
    let changed: Vec<_> =
        pixir.log().into_iter().filter(|e| e["type"] == "settings_changed").map(|e| e["data"].clone()).collect();
    assert_eq!(changed, [json!({"mode": "auto"}), json!({"mode": "read-only"}), json!({"name": "my work"})]);
    let screen = pixir.does("/modle<Enter>").await;
    assert!(screen.contains("did you mean /model?"), "{screen}");
}

#[tokio::test]
async fn a_session_without_a_prompt_leaves_nothing_behind() {
    let mut pixir = Pixir::new(vec![], &[]);
    pixir.screen.until_idle().await;
    let farewell = pixir.screen.close().await.expect("a session was open");
    assert_eq!((farewell.session, farewell.answer), (None, None));
}

/// Broken build: the second of two quick presses asks for the same mode as the first, because the Session has not answered.
#[tokio::test]
async fn the_mode_moves_as_often_as_its_key_is_pressed() {
    let mut pixir = Pixir::new(vec![says("ok")], &[]);
    pixir.does("go<Enter>").await;
    let screen = pixir.does("<S-Tab><S-Tab>").await;
    assert!(screen.lines().next().is_some_and(|header| header.contains(" · read-only · ")), "{screen}");
    let screen = pixir.does("<S-Tab><S-Tab><S-Tab><S-Tab>").await;
    assert!(screen.lines().next().is_some_and(|header| header.contains(" · ask · ")), "{screen}");
}
