//! Drafts: saved, restored, set aside, and never overwritten.

use rustix::process::Signal;
use serde_json::json;

use crate::connected::start;
use crate::driver::{Pixir, calls, long_conversation, says};
use crate::pty::Terminal;
use crate::server::{Dialect, Reply, Server, text};
use crate::shell::Shell;
use crate::wait;

#[tokio::test]
async fn a_draft_survives_compaction_and_head_moves() {
    let mut pixir = Pixir::new(vec![says("One."), says("Two.")], &[]);
    pixir.does("first<Enter>").await;
    pixir.does("second<Enter>").await;
    pixir.does("a half thought<C-t><Esc>").await;
    assert_eq!(pixir.screen.draft(), "a half thought", "looking at the tree");
    pixir.does("<C-t><Up><Enter>").await;
    assert_eq!(pixir.screen.draft(), "a half thought", "going elsewhere");
    pixir.does("<C-t>e").await;
    assert_eq!(pixir.screen.draft(), "first", "a prompt that is edited again takes its place");
    pixir.does("<C-c><Up><Up>").await;
    assert_eq!(pixir.screen.draft(), "a half thought", "and the typed draft is still there");
    pixir.does("<C-c>").await;
    let mut pixir = long_conversation(300);
    pixir.screen.until_idle().await;
    pixir.does("typed<C-p>compact<Enter>").await;
    assert!(pixir.screen.screen().contains("Compact"), "{}", pixir.screen.screen());
    pixir.does("<Enter>").await;
    assert_eq!(pixir.screen.draft(), "typed");
}

#[tokio::test]
async fn a_draft_set_aside_for_a_denial_comes_back() {
    let mut pixir = Pixir::new(vec![calls("bash", json!({"command": "rm -rf build"})), says("Hello.")], &[]);
    pixir.does("clean<Enter>").await;
    pixir.does("a draft<A-f>use make").await;
    pixir.does("<C-p>new<Enter>").await;
    assert_eq!(pixir.screen.draft(), "a draft", "{}", pixir.screen.screen());
    pixir.does("<C-c><Up><Up>").await;
    assert_eq!(pixir.screen.draft(), "use make", "and the unfinished reason is in the history");
}

#[tokio::test]
async fn a_saved_draft_of_another_session_is_not_overwritten() {
    let mut pixir = Pixir::new(vec![says("One."), says("Two.")], &[]);
    pixir.does("first<Enter>").await;
    pixir.does("half a thought").await;
    // The draft is saved with the first Session, which the user leaves.
    pixir.does("<C-p>new<Enter>").await;
    pixir.does("<C-c>second<Enter>").await;
    pixir.does("another thought<C-p>resume<Enter>").await;
    let screen = pixir.does("first<Enter>").await;
    assert!(screen.contains("❯ first") && pixir.screen.draft() == "another thought", "{screen}");
    pixir.does("<C-c><Up><Up>").await;
    assert_eq!(pixir.screen.draft(), "half a thought");
}

/// Waits until a saved draft beside the Log contains this.
fn wait_until_saved(shell: &Shell, text: &str) {
    let folders = || {
        let outer = std::fs::read_dir(shell.home().join("sessions")).into_iter().flatten().flatten();
        outer.flat_map(|f| std::fs::read_dir(f.path()).into_iter().flatten().flatten()).map(|f| f.path())
    };
    let is_saved = |folder: std::path::PathBuf| {
        std::fs::read_to_string(folder.join("presenter.json")).is_ok_and(|saved| saved.contains(text))
    };
    wait::until(&format!("{text:?} is saved"), || folders().any(is_saved));
}

#[test]
fn a_draft_survives_kill_9_and_a_closed_window() {
    for signal in [Signal::KILL, Signal::HUP] {
        let shell = Shell::new(&[]);
        let server = Server::start(vec![text("One.")]);
        let mut terminal = start(&shell, &server, Dialect::Chat, 80, 24);
        terminal.wait_for("Ask pixir");
        terminal.send("a long thought");
        wait_until_saved(&shell, "a long thought");
        terminal.signal(signal);
        drop(terminal.end());
        let mut terminal = start(&shell, &server, Dialect::Chat, 80, 24);
        terminal.wait_for("❯ a long thought");
        terminal.send(", to its end\r");
        terminal.wait_for("One.");
        terminal.wait_for("/ commands");
        terminal.send("and another");
        wait_until_saved(&shell, "and another");
        terminal.signal(signal);
        drop(terminal.end());
        assert_eq!(shell.logs().len(), 1, "the session in which nothing was said is gone");
        // Resuming the first session leaves the draft of a second one unchanged.
        let mut terminal = start(&shell, &server, Dialect::Chat, 80, 24);
        terminal.wait_for("Ask pixir");
        terminal.send("something else");
        wait_until_saved(&shell, "something else");
        terminal.signal(Signal::KILL);
        drop(terminal.end());
        let mut args = vec!["resume".to_owned(), "--last".into()];
        args.extend(server.flags(Dialect::Chat));
        let mut terminal = Terminal::start(&shell, &args.iter().map(String::as_str).collect::<Vec<_>>(), 80, 24);
        let screen = terminal.wait_for("❯ and another");
        assert!(screen.contains("a long thought, to its end") && screen.contains("One."), "{screen}");
        terminal.send("\x03\x03\x03");
        terminal.end().assert_sane();
        let mut terminal = start(&shell, &server, Dialect::Chat, 80, 24);
        terminal.wait_for("❯ something else");
        terminal.send("\x03\x03\x03");
        terminal.end().assert_sane();
    }
}

#[test]
fn a_queued_message_of_a_killed_turn_is_a_draft_again() {
    let shell = Shell::new(&[]);
    let server = Server::start(vec![Reply::Stall { text: "Thinking".into() }]);
    let mut terminal = start(&shell, &server, Dialect::Chat, 80, 24);
    terminal.wait_for("Ask pixir");
    terminal.send("go\r");
    terminal.wait_for("Thinking");
    terminal.send("then this\x1b\r");
    terminal.wait_for("then this");
    wait_until_saved(&shell, "then this");
    terminal.signal(Signal::KILL);
    drop(terminal.end());
    let mut args = vec!["resume".to_owned(), "--last".into()];
    args.extend(server.flags(Dialect::Chat));
    let mut terminal = Terminal::start(&shell, &args.iter().map(String::as_str).collect::<Vec<_>>(), 80, 24);
    let screen = terminal.wait_for("❯ then this");
    assert!(screen.contains("interrupted"), "{screen}");
    terminal.send("\x03\x03\x03");
    terminal.end().assert_sane();
}

/// Broken build: a read-only view saves its draft over that of the writer.
#[test]
fn a_read_only_view_leaves_the_draft_and_lock_alone() {
    let shell = Shell::new(&[]);
    let server = Server::start(vec![text("One.")]);
    let mut writer = start(&shell, &server, Dialect::Chat, 80, 24);
    writer.wait_for("Ask pixir");
    writer.send("tell me\r");
    writer.wait_for("One.");
    writer.wait_for("/ commands");
    writer.send("half a thought");
    wait_until_saved(&shell, "half a thought");
    let mut viewer = Terminal::start(&shell, &["resume", "--last", "--read-only"], 80, 24);
    viewer.wait_for("One.");
    viewer.wait_for("open read-only");
    viewer.send("not to be lost\r");
    viewer.wait_for("the message stays where it is");
    viewer.wait_for("❯ not to be lost");
    // A pixir that is ended by a signal saves the draft that is on its screen.
    viewer.signal(Signal::TERM);
    viewer.end().assert_sane();
    wait_until_saved(&shell, "half a thought");
    let mut second = start(&shell, &server, Dialect::Chat, 80, 24);
    second.wait_for("Ask pixir");
    second.send("/resume\r");
    second.wait_that("the session is listed", |screen| screen.contains("Sessions") && screen.contains("tell me"));
    second.send("\r");
    let screen = second.wait_for("open for writing by process");
    assert!(screen.contains(&writer.process().to_string()), "{screen}");
    second.send("\x03\x03\x03");
    second.end().assert_sane();
    writer.send("\x03\x03\x03");
    writer.end().assert_sane();
}
