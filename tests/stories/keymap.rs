//! Keys, hints and the palette.

use serde_json::json;

use super::transcript::conversation;
use crate::driver::{Pixir, calls, says};

#[tokio::test]
async fn hints_name_the_bound_keys() {
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
    assert!(screen.contains("Alt+1 Allow") && screen.contains("Alt+2 Refuse") && !screen.contains("Alt+Y"), "{screen}");
    let screen = pixir.does("<Tab>").await;
    assert!(screen.contains(" 1 Allow") && !screen.contains("y Allow"), "{screen}");
    pixir.does("1").await;
    assert_eq!(pixir.file("a.txt"), "2\n", "and the key has that effect");
    let screen = pixir.does("<A-1>").await;
    assert!(screen.contains("… 34 more lines · Alt+O"), "{screen}");
    let screen = pixir.does("<A-o><PgUp>").await;
    assert!(screen.contains(" ↓ ") && !screen.contains("Ctrl+End"), "{screen}");
}

#[tokio::test]
async fn keys_are_configurable_and_never_bound_twice() {
    let mut pixir = Pixir::with_keys(vec![says("One.")], &[("tree", &["f5", "ctrl+x t"])]).expect("valid");
    pixir.does("go<Enter>").await;
    let screen = pixir.does("<F5>").await;
    assert!(screen.contains("e edit"), "{screen}");
    pixir.does("<Esc>").await;
    let screen = pixir.does("<C-x>").await;
    assert!(
        screen.contains("Ctrl+X") && screen.contains("t turns and branches"),
        "the keys that may follow:\n{screen}"
    );
    let screen = pixir.does("t").await;
    assert!(screen.contains("e edit"), "{screen}");
    let screen = pixir.does("<Esc><C-t>").await;
    assert!(!screen.contains("e edit"), "the old key is free:\n{screen}");
    let error = Pixir::with_keys(Vec::new(), &[("tree", &["ctrl+p"])]).err().expect("a conflict");
    assert!(error.message.contains("both") && error.remedy.plain().contains("palette"), "{error:?}");
}

#[tokio::test]
async fn the_palette_finds_every_action_by_a_few_letters() {
    let mut pixir = conversation(80, 30).await;
    let screen = pixir.does("<C-p>outl").await;
    assert!(screen.contains("/outline"), "{screen}");
    let screen = pixir.does("<Enter>").await;
    assert!(screen.contains("Outline") && screen.contains("tell me of fruit"), "{screen}");
    pixir.does("<Esc><C-p>rename<Enter>").await;
    assert_eq!(pixir.screen.draft(), "/rename ", "an action with an argument waits for it");
}

/// A text of an overlay from its first to its last row.
async fn read_to_the_end(pixir: &mut Pixir, open: &str) -> String {
    let mut pages = vec![pixir.does(open).await];
    loop {
        let page = pixir.does("<PgDn>").await;
        if pages.last() == Some(&page) {
            return pages.concat();
        }
        pages.push(page);
    }
}

/// Broken builds: an action without a key and without a command; one that the help leaves out; one that is described twice.
#[tokio::test]
async fn every_action_has_a_key_or_a_command_and_stands_in_the_help() {
    let actions = pixir_ui::reference();
    let actions = actions.as_array().expect("a list");
    let text = |action: &serde_json::Value, key: &str| action[key].as_str().unwrap_or_default().to_owned();
    let mut pixir = Pixir::sized(vec![], &[], 200, 60);
    let names = read_to_the_end(&mut pixir, "/keys<Enter>").await;
    pixir.does("<Esc>").await;
    let help = read_to_the_end(&mut pixir, "<F1>").await;
    for action in actions {
        let (name, about, command) = (text(action, "name"), text(action, "about"), text(action, "command"));
        let keys = action["keys"].as_array().expect("keys");
        assert!(!keys.is_empty() || !command.is_empty(), "{name} cannot be done from the keyboard");
        assert!(names.contains(&format!(" {name} · ")), "{name} is not in /keys:\n{names}");
        // Long descriptions go on in the next row. Only a replay has its keys.
        let start: String = about.chars().take(20).collect();
        let is_listed = help.contains(start.trim_end()) && help.contains(&command);
        assert!(is_listed || text(action, "where") == "replay", "{name} {command} is not in the help:\n{help}");
        let same = actions.iter().filter(|it| it["where"] == action["where"] && it["about"] == action["about"]);
        assert_eq!(same.count(), 1, "{name}: what another action does there too");
    }
}
