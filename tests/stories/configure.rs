//! The settings of the interface: changed in place, seen at once, saved where the user wants it.

use crate::driver::{Pixir, says};
use crate::pty::Terminal;
use crate::shell::Shell;

#[tokio::test]
async fn every_setting_is_listed_with_its_value_and_origin() {
    let mut pixir = Pixir::sized(vec![says("ok")], &[], 120, 40);
    let screen = pixir.does("<F2>").await;
    for part in ["Settings", "Model", "script/test-model", "Mode", "ask", "Vim keys", "off", "default"] {
        assert!(screen.contains(part), "no {part:?} in\n{screen}");
    }
    let screen = pixir.does("/deadl").await;
    assert!(screen.contains("the most seconds that a turn may take") && !screen.contains("Vim keys"), "{screen}");
    assert!(screen.contains("limits.deadline · from the next start"), "{screen}");
    // A value that does not fit is told, and the field stays.
    let screen = pixir.does("<Enter>soon<Enter>").await;
    assert!(screen.contains("invalid type") || screen.contains("expected"), "{screen}");
    pixir.does("<C-u>90<Enter>").await;
    assert_eq!(pixir.settings(), "[limits]\ndeadline = 90\n");
    let screen = pixir.does("<Esc><Esc><Esc>").await;
    assert!(!screen.contains("Settings"), "{screen}");
    let screen = pixir.does("/config vim<Enter>").await;
    assert!(screen.contains("vim keys in the composer"), "{screen}");
}

/// Broken build: a change is saved and takes no effect before the next start.
#[tokio::test]
async fn a_change_is_seen_at_once_and_kept_where_the_user_wants_it() {
    let mut pixir = Pixir::sized(vec![says("ok")], &[], 100, 30);
    pixir.does("<F2>").await;
    pixir.does("/mode<Enter><Down><Enter>").await;
    let screen = pixir.does("<Esc><Esc><Esc>").await;
    let header = |screen: &str| screen.lines().next().expect("a header").to_owned();
    assert!(header(&screen).contains(" · auto · "), "{screen}");
    assert_eq!(pixir.settings(), "mode = \"auto\"\n");
    let screen = pixir.does("/settings effort<Enter>").await;
    assert!(screen.contains("save for: session [you] project"), "{screen}");
    pixir.does("<C-s><C-s><Enter><Down><Down><Down><Enter>").await;
    assert_eq!(pixir.settings(), "mode = \"auto\"\n", "only for the session");
    let changed = pixir.log().into_iter().rfind(|it| it["type"] == "settings_changed").expect("a change");
    assert!(changed["data"]["effort"].is_string(), "{changed}");
    let screen = pixir.does("<Esc><Esc>").await;
    assert!(!screen.contains("Settings"), "{screen}");
}

/// Broken builds: the pressed key is bound although it has a meaning; the new key works from the next start only.
#[tokio::test]
async fn a_key_is_bound_by_pressing_it_and_a_conflict_is_told() {
    let mut pixir = Pixir::sized(vec![says("One.")], &[], 100, 30);
    pixir.does("go<Enter>").await;
    let screen = pixir.does("/settings keys.tree<Enter>").await;
    assert!(screen.contains("Ctrl+T"), "{screen}");
    let screen = pixir.does("<Enter><C-p>").await;
    assert!(screen.contains("Ctrl+P would be both") && screen.contains("palette"), "{screen}");
    assert_eq!(pixir.settings(), "");
    let screen = pixir.does("<F5>").await;
    assert!(screen.contains("F5 …"), "{screen}");
    assert_eq!(pixir.settings(), "", "a second key could follow");
    let screen = pixir.does("<Enter>").await;
    assert!(screen.contains("F5"), "{screen}");
    assert_eq!(pixir.settings(), "[keys]\ntree = \"f5\"\n");
    pixir.does("<Esc><Esc>").await;
    let screen = pixir.does("<C-t>").await;
    assert!(!screen.contains("Tree"), "{screen}");
    let screen = pixir.does("<F5>").await;
    assert!(screen.contains("Tree"), "{screen}");
}

/// Broken builds: only the first key of a chord is bound; the second binding replaces the first.
#[tokio::test]
async fn an_action_gets_a_chord_of_two_keys_and_another_key_besides() {
    let mut pixir = Pixir::sized(vec![says("One.")], &[], 110, 30);
    pixir.does("go<Enter>").await;
    pixir.does("/settings keys.tree<Enter>").await;
    let screen = pixir.does("<Enter><C-x>t").await;
    assert!(screen.contains("Ctrl+X t …"), "{screen}");
    pixir.does("<Enter>").await;
    assert_eq!(pixir.settings(), "[keys]\ntree = \"ctrl+x t\"\n");
    let screen = pixir.does("<Enter><F5><Tab>").await;
    assert!(screen.contains("Ctrl+X t, F5"), "{screen}");
    assert_eq!(pixir.settings(), "[keys]\ntree = [\"ctrl+x t\", \"f5\"]\n");
    pixir.does("<Esc><Esc>").await;
    for keys in ["<C-x>t", "<F5>"] {
        let screen = pixir.does(keys).await;
        assert!(screen.contains("╭ Tree"), "{keys}:\n{screen}");
        pixir.does("<Esc>").await;
    }
}

/// Broken builds: the line stays in the file; the old value stays in force until the next start.
#[tokio::test]
async fn a_setting_is_unset_and_the_default_holds_at_once() {
    let mut pixir = Pixir::sized(vec![says("One.")], &[], 110, 30);
    let row = |screen: &str, title: &str| {
        screen.lines().find(|line| line.contains(title)).map(str::to_owned).unwrap_or_default()
    };
    pixir.does("/settings screen.vim<Enter>").await;
    pixir.does("<Enter>").await;
    assert_eq!(pixir.settings(), "[screen]\nvim = true\n");
    let screen = pixir.does("").await;
    assert!(row(&screen, "  Vim keys").contains("you") && screen.contains("unset"), "{screen}");
    let screen = pixir.does("<Delete>").await;
    assert_eq!(pixir.settings(), "");
    assert!(row(&screen, "  Vim keys").contains("default") && row(&screen, "  Vim keys").contains("off"), "{screen}");
    assert!(screen.contains("screen.vim unset in"), "{screen}");
    pixir.does("<Esc><Esc>").await;
    pixir.does("hjkl").await;
    assert_eq!(pixir.screen.draft(), "hjkl", "vim keys are off");
    pixir.does("<C-u>/settings keys.tree<Enter>").await;
    pixir.does("<Enter><F5><Enter>").await;
    assert_eq!(pixir.settings(), "[keys]\ntree = \"f5\"\n");
    let screen = pixir.does("u").await;
    assert_eq!(pixir.settings(), "");
    assert!(row(&screen, "  Keys: tree ").contains("Ctrl+T"), "{screen}");
    pixir.does("<Esc><Esc>").await;
    pixir.does("go<Enter>").await;
    let screen = pixir.does("<C-t>").await;
    assert!(screen.contains("╭ Tree"), "the default key works again:\n{screen}");
}

/// Broken build: the mark is forgotten when the dialog closes.
#[tokio::test]
async fn a_favourite_model_stands_first() {
    let mut pixir = Pixir::sized(vec![says("ok")], &[], 100, 30);
    let screen = pixir.does("/model<Enter>").await;
    assert!(screen.contains("Recent") && !screen.contains("Favourites"), "{screen}");
    let screen = pixir.does("<A-f>").await;
    assert!(screen.contains("Favourites"), "{screen}");
    pixir.screen.until("favourites saved in").await;
    assert_eq!(pixir.settings(), "favourites = [\"script/test-model\"]\n");
    pixir.does("<Esc>").await;
    let screen = pixir.does("/model<Enter>").await;
    assert!(screen.contains("Favourites"), "{screen}");
    let screen = pixir.does("<A-f>").await;
    assert!(!screen.contains("Favourites"), "{screen}");
}

#[tokio::test]
async fn a_theme_is_previewed_and_saved_from_its_dialog() {
    let mut pixir = Pixir::new(vec![], &[]);
    let before = pixir.screen.coloured();
    pixir.does("/theme<Enter>").await;
    let screen = pixir.does("light").await;
    assert!(screen.contains("save for: session [you] project"), "{screen}");
    assert_ne!(pixir.screen.coloured(), before);
    pixir.does("<Esc>").await;
    assert_eq!(pixir.settings(), "", "nothing was chosen");
    pixir.does("/theme<Enter>light<Enter>").await;
    assert_eq!(pixir.settings(), "theme = \"light\"\n");
}

#[tokio::test]
async fn the_model_in_use_is_marked_and_chosen_with_its_effort() {
    let mut pixir = Pixir::sized(vec![says("ok")], &[], 100, 30);
    let screen = pixir.does("/model<Enter>").await;
    assert!(screen.contains("● script/test-model") && screen.contains("Effort"), "{screen}");
    let screen = pixir.does("<Right><Right>").await;
    assert!(screen.contains("‹ xhigh ›"), "{screen}");
    pixir.does("<C-s><Enter>").await;
    assert_eq!(pixir.settings(), "effort = \"xhigh\"\nmodel = \"script/test-model\"\n");
    let changed = pixir.log().into_iter().rfind(|it| it["type"] == "settings_changed").expect("a change");
    assert_eq!(
        (changed["data"]["model"].as_str(), changed["data"]["effort"].as_str()),
        (Some("test-model"), Some("xhigh"))
    );
    // A name that no server lists can be typed, and is shown then.
    pixir.does("/model script/other<Enter>").await;
    let screen = pixir.does("/model<Enter>").await;
    assert!(screen.contains("● script/other  in use; not listed"), "{screen}");
}

/// Broken build: the words of the parser, with a type of Rust and a file that is not there.
#[tokio::test]
async fn a_value_that_a_setting_cannot_have_is_refused_in_plain_words() {
    let mut pixir = Pixir::sized(vec![], &[], 100, 30);
    pixir.does("/settings limits.max_rounds<Enter>").await;
    let screen = pixir.does("<Enter><Enter>").await;
    assert!(screen.contains("type a value, or leave it with Esc"), "{screen}");
    let screen = pixir.does("many<Enter>").await;
    assert!(screen.contains("expected a whole number") && screen.contains("give another value"), "{screen}");
    assert!(!screen.contains("u32") && !screen.contains("fix the file"), "{screen}");
    pixir.does("<C-u>12<Enter>").await;
    assert_eq!(pixir.settings(), "[limits]\nmax_rounds = 12\n");
}

#[test]
fn a_changed_setting_survives_a_restart_and_is_in_the_file_that_was_chosen() {
    let shell = Shell::new(&[]);
    let user = shell.home().join(".config/pixir/config.toml");
    let project = shell.workspace().join(".pixir/config.toml");
    let mut terminal = Terminal::start(&shell, &["--provider", "demo"], 100, 30);
    terminal.wait_for("Ask pixir");
    terminal.send("/settings screen.motion\r");
    terminal.wait_for("progress is animated");
    terminal.send("\r");
    terminal.wait_for("screen.motion saved in ~/.config/pixir/config.toml");
    assert_eq!(std::fs::read_to_string(&user).expect("the user's file"), "[screen]\nmotion = false\n");
    leave(&mut terminal);
    terminal.send("/settings toolset\r");
    terminal.wait_for("the tools of the model");
    // For the project: Ctrl+S goes on from you.
    terminal.send("\x13");
    terminal.wait_for("save for: session you [project]");
    terminal.send("\r");
    terminal.wait_for("○ run");
    terminal.send("\x1b[B\r");
    terminal.wait_for("toolset saved in");
    assert_eq!(std::fs::read_to_string(&project).expect("the project's file"), "toolset = \"run\"\n");
    leave(&mut terminal);
    terminal.send("\x04");
    terminal.end().assert_sane();
    let mut terminal = Terminal::start(&shell, &["--provider", "demo"], 100, 30);
    terminal.wait_for("Ask pixir");
    terminal.send("\x1bOQ");
    terminal.wait_for("Settings");
    // Each row names its value and its origin.
    let row = |screen: &str, title: &str| screen.lines().find(|line| line.contains(title)).map(str::to_owned);
    terminal.wait_that("the saved values hold", |screen| {
        let motion = row(screen, "  Motion").is_some_and(|it| it.contains("off") && it.contains("you"));
        motion && row(screen, "  Toolset").is_some_and(|it| it.contains("run") && it.contains("project"))
    });
    terminal.send("\x1b");
    terminal.wait_that("the settings are closed", |screen| !screen.contains("Settings"));
    terminal.send("\x04");
    terminal.end().assert_sane();
}

/// Leaves the filter, then the settings.
fn leave(terminal: &mut Terminal) {
    terminal.send("\x1b");
    terminal.wait_for("/ filter");
    terminal.send("\x1b");
    terminal.wait_that("the settings are closed", |screen| !screen.contains(" Settings "));
}
