//! Editing the prompt: completion, pastes, history, vim keys, the external editor.

use serde_json::json;

use crate::driver::{Pixir, calls, says};
use crate::pty::Terminal;
use crate::server::{Dialect, Server, call, text};
use crate::shell::Shell;

#[tokio::test]
async fn at_sign_completes_files_and_skips_ignored_ones() {
    let files = [
        ("src/main.rs", "fn main() {}\n"),
        ("src/deep/module.rs", ""),
        ("target/main.rs", ""),
        (".gitignore", "target/\n"),
        ("docs/with space.md", ""),
    ];
    let mut pixir = Pixir::new(vec![says("Seen.")], &files);
    std::fs::create_dir_all(pixir.path(".git")).expect("a repository");
    let screen = pixir.does("look at @main").await;
    assert!(screen.contains("main.rs") && screen.contains("src"), "{screen}");
    assert!(!screen.contains("target"), "what is ignored is not offered:\n{screen}");
    pixir.does("<Tab>and @space").await;
    pixir.does("<Enter>").await;
    assert_eq!(pixir.screen.draft(), "look at @src/main.rs and @\"docs/with space.md\" ");
    let screen = pixir.does("me@main").await;
    assert!(!screen.contains("src  "), "an address is no mention:\n{screen}");
}

#[tokio::test]
async fn at_sign_completes_files_anywhere_in_a_large_tree() {
    let names: Vec<String> = (0..4_000).map(|n| format!("many/{}/file{n}.txt", n % 40)).collect();
    let files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "")).collect();
    let mut pixir = Pixir::new(vec![says("Seen.")], &files);
    for n in [0, 1_999, 3_999] {
        pixir.does(&format!("@file{n}.txt")).await;
        pixir.screen.until(&format!(" file{n}.txt")).await;
        pixir.does("<Tab>").await;
        assert_eq!(pixir.screen.draft(), format!("@many/{}/file{n}.txt ", n % 40));
        pixir.does("<C-c>").await;
    }
}

#[tokio::test]
async fn a_restored_paste_is_still_one_placeholder() {
    let mut pixir = Pixir::new(vec![says("Read."), says("Again.")], &[]);
    let pasted: String = (0..300).map(|n| format!("line {n}\n")).collect();
    pixir.screen.until_idle().await;
    pixir.screen.keys("see ").await;
    pixir.screen.paste(&pasted).await;
    pixir.does("<Enter>").await;
    for recalled in ["<Up>", "<C-c><Up>"] {
        let screen = pixir.does(recalled).await;
        assert!(screen.contains("❯ see [paste 1: 300 lines]"), "{recalled}:\n{screen}");
    }
    let mut pixir = pixir.again(vec![says("Once more.")]).await;
    let screen = pixir.does("").await;
    assert!(screen.contains("❯ see [paste 1: 300 lines]"), "after it was closed in the middle of it:\n{screen}");
    assert_eq!(pixir.screen.draft(), format!("see {pasted}"));
}

#[tokio::test]
async fn a_large_paste_is_one_placeholder_and_is_sent_whole() {
    let mut pixir = Pixir::new(vec![says("Read.")], &[]);
    pixir.screen.until_idle().await;
    let long: String = (1..=214).map(|n| format!("line {n}\n")).collect();
    pixir.screen.keys("what is this? ").await;
    pixir.screen.paste(&long).await;
    let screen = pixir.screen.screen();
    assert!(screen.contains("❯ what is this? [paste 1: 214 lines]"), "{screen}");
    pixir.does("<Enter>").await;
    let log = pixir.log();
    let said = log.iter().find(|e| e["type"] == "user_message").expect("a prompt");
    assert_eq!(said["data"]["text"], format!("what is this? {long}"));
}

#[tokio::test]
async fn prompt_history_reaches_other_sessions() {
    let mut pixir = Pixir::new(vec![says("1"), says("2"), says("3")], &[]);
    for prompt in ["fix the parser<Enter>", "run the tests<Enter>", "fix the lexer<Enter>"] {
        pixir.does(prompt).await;
    }
    let mut pixir = pixir.anew(vec![says("4")]).await;
    let screen = pixir.does("half a thought<C-r>fix").await;
    assert!(screen.contains("❯ fix the lexer") && screen.contains("earlier prompts: fix"), "{screen}");
    let screen = pixir.does("<C-r>").await;
    assert!(screen.contains("❯ fix the parser"), "{screen}");
    pixir.does("<Esc>").await;
    assert_eq!(pixir.screen.draft(), "half a thought", "Esc gives the draft back");
    pixir.does("<C-c><C-r>tests<Enter>").await;
    assert_eq!(pixir.screen.draft(), "run the tests");
    pixir.does("<Up><Up>").await;
    assert_ne!(pixir.screen.draft(), "run the tests");
}

#[tokio::test]
async fn the_composer_has_the_editing_keys_of_a_shell() {
    let mut pixir = Pixir::new(vec![calls("write", json!({"path": "b.txt", "content": "x"})), says("Done.")], &[]);
    pixir.does("one two three<C-w><C-a>zero <C-e>end<C-u>").await;
    assert_eq!(pixir.screen.draft(), "");
    pixir.does("<C-y>").await;
    assert_eq!(pixir.screen.draft(), "zero one two end");
    pixir.does("<C-7>").await;
    assert_eq!(pixir.screen.draft(), "", "undone");
    pixir.does("<A-->").await;
    assert_eq!(pixir.screen.draft(), "zero one two end", "and done again");
    pixir.does("<C-c>go<Enter>").await;
    // Alt+Y yanks; while an approval is open it decides.
    pixir.does("a draft<A-y>").await;
    assert_eq!(pixir.file("b.txt"), "x");
    assert_eq!(pixir.screen.draft(), "a draft");
}

#[test]
fn an_external_editor_gets_the_draft_and_the_terminal() {
    let shell = Shell::new(&[]);
    let server = Server::start(vec![text("Read it.")]);
    let editor = shell.workspace().join("editor.sh");
    std::fs::write(&editor, "#!/bin/bash\nread -p 'your words: ' words < /dev/tty\nstty -a | grep -q -- ' icanon' && echo \"$(cat \"$1\") $words\" > \"$1\"\n")
        .expect("write");
    let flags = server.flags(Dialect::Chat);
    let args: Vec<&str> = flags.iter().map(String::as_str).collect();
    let visual = format!("bash {}", editor.display());
    let binary = env!("CARGO_BIN_EXE_pixir");
    let mut terminal = Terminal::of(&shell, binary.as_ref(), &args, &[("VISUAL", &visual)], 80, 24);
    terminal.wait_for("Ask pixir");
    terminal.send("a beginning");
    terminal.wait_for("❯ a beginning");
    terminal.send("\x07");
    terminal.wait_for("your words:");
    terminal.send("and an end\r");
    terminal.wait_for("❯ a beginning and an end");
    terminal.send("\r");
    terminal.wait_for("Read it.");
    terminal.send("\x04");
    terminal.end().assert_sane();
    // A command that ends meanwhile does not change the draft.
    let server = Server::start(vec![
        call("c1", "bash", json!({"command": "until [ -e go ]; do sleep 0.02; done; touch ended"})),
        text("It ended."),
    ]);
    let flags = server.flags(Dialect::Chat);
    let mut args: Vec<&str> = flags.iter().map(String::as_str).collect();
    args.extend(["--mode", "auto"]);
    let mut terminal = Terminal::of(&shell, binary.as_ref(), &args, &[("VISUAL", &visual)], 80, 24);
    terminal.wait_for("Ask pixir");
    terminal.send("go\r");
    terminal.wait_for("● $");
    terminal.send("still\x07");
    terminal.wait_for("your words:");
    shell.write("go", "");
    server.wait_for(2);
    assert!(shell.workspace().join("ended").exists());
    terminal.send("here\r");
    terminal.wait_for("❯ still here");
    terminal.wait_for("It ended.");
    terminal.send("\x03\x03\x03");
    terminal.end().assert_sane();
    let args: Vec<&str> = flags.iter().map(String::as_str).collect();
    // An editor that fails leaves the draft unchanged and reports it.
    let mut terminal = Terminal::of(&shell, binary.as_ref(), &args, &[("VISUAL", "false")], 80, 24);
    terminal.wait_for("Ask pixir");
    terminal.send("kept");
    terminal.wait_for("❯ kept");
    terminal.send("\x07");
    terminal.wait_for("the text is unchanged");
    terminal.wait_for("❯ kept");
    terminal.send("\x03\x03\x03");
    terminal.end().assert_sane();
}

#[tokio::test]
async fn vim_mode_keeps_the_meanings_of_esc() {
    let mut pixir = Pixir::with_vim(vec![says("Seen.")]);
    pixir.does("fix teh parser<Esc>").await;
    assert!(pixir.screen.screen().contains("NORMAL"), "{}", pixir.screen.screen());
    pixir.does("bbcwthe<Esc>A now<Esc>").await;
    assert_eq!(pixir.screen.draft(), "fix the parser now");
    pixir.does("ddu").await;
    assert_eq!(pixir.screen.draft(), "fix the parser now", "undone");
    pixir.does("<C-r>p").await;
    assert_eq!(pixir.screen.draft(), "\nfix the parser now", "and done again, and put back");
    // Vim keys treat a paste placeholder as one character.
    pixir.does("ggdd").await;
    let long: String = (0..20).map(|n| format!("line {n}\n")).collect();
    pixir.does("A ").await;
    pixir.screen.paste(&long).await;
    pixir.does("<Esc>x").await;
    assert_eq!(pixir.screen.draft(), "fix the parser now ");
    // Esc leaves insert mode; in normal mode it works as it does without vim keys.
    pixir.does("<Esc><Esc><C-c>hi<Enter>").await;
    assert!(pixir.screen.screen().contains("Seen."), "{}", pixir.screen.screen());
    pixir.does("<Esc>k").await;
    assert_eq!(pixir.screen.draft(), "hi", "k above the first line recalls the last prompt");
}

#[tokio::test]
async fn a_grapheme_is_crossed_and_deleted_as_one() {
    let mut pixir = Pixir::new(vec![], &[]);
    pixir.screen.until_idle().await;
    for whole in ["⚠\u{fe0f}", "e\u{301}", "👩‍👩‍👧"] {
        // At the end of a line, and at the end of the draft.
        pixir.screen.paste(&format!("a{whole}\nb{whole}")).await;
        pixir.does("<Up><End><Left><Delete>").await;
        assert_eq!(pixir.screen.draft(), format!("a\nb{whole}"));
        pixir.does("<Down><End><Left><Right>x<Left><Left><Delete>").await;
        assert_eq!(pixir.screen.draft(), "a\nbx", "{whole}");
        pixir.does("<C-c>").await;
    }
    // On each row the caret is after a whole grapheme.
    for whole in ["👩‍👩‍👧", "🇩🇪", "❤\u{fe0f}", "e\u{301}", "漢"] {
        let columns = if whole.starts_with('e') { 1 } else { 2 };
        pixir.screen.paste(&format!("a{whole}{whole}b\nabcdefg")).await;
        for (keys, expected) in [("<Up><End>", 2 + 2 * columns), ("<Left>", 1 + 2 * columns), ("<Left>", 1 + columns)] {
            pixir.does(keys).await;
            assert_eq!(pixir.screen.semantics()["caret"]["column"], 4 + expected, "{whole:?} {keys}");
        }
        for column in 0..7 {
            pixir.does(&format!("<Down><Home>{}<Up>|", "<Right>".repeat(column))).await;
            let draft = pixir.screen.draft();
            assert_eq!(draft.matches(whole).count(), 2, "{column}: {draft:?}");
            pixir.does("<Backspace>").await;
        }
        pixir.does("<C-c>").await;
    }
    // A draft that is wider than 65,535 columns is replaced as a whole.
    let wide = "w".repeat(70_000);
    pixir.screen.paste("short").await;
    pixir.does("<C-c>").await;
    pixir.screen.paste(&wide).await;
    pixir.does("<C-c><Up>").await;
    assert_eq!(pixir.screen.draft(), wide);
    pixir.does("<Up>").await;
    assert_eq!(pixir.screen.draft(), "short");
    pixir.does("<C-c>").await;
    for whole in ["👩‍👩‍👧", "🇩🇪", "e\u{301}", "क्षि"] {
        pixir.screen.paste(&format!("a{whole}b")).await;
        pixir.does("<Left><Left>x").await;
        assert_eq!(pixir.screen.draft(), format!("ax{whole}b"));
        pixir.does("<Right><Backspace>").await;
        assert_eq!(pixir.screen.draft(), "axb", "{whole}");
        pixir.does("<C-c>").await;
    }
}

#[tokio::test]
async fn vim_keys_treat_a_grapheme_as_one_character() {
    let mut pixir = Pixir::with_vim(vec![]);
    pixir.screen.until_idle().await;
    for whole in ["👩‍👩‍👧", "🇩🇪", "e\u{301}", "क्षि", "\u{f0000}"] {
        pixir.screen.paste(&format!("a{whole}b {whole}c")).await;
        pixir.does("<Esc>0lx").await;
        assert_eq!(pixir.screen.draft(), format!("ab {whole}c"), "{whole}");
        pixir.does("$p").await;
        assert_eq!(pixir.screen.draft(), format!("ab {whole}c{whole}"), "the yanked text is whole graphemes");
        pixir.does("hhhhhx").await;
        assert_eq!(pixir.screen.draft(), format!("b {whole}c{whole}"), "and is passed over");
        pixir.does("wdw").await;
        assert_eq!(pixir.screen.draft(), "b ", "it is a part of its word");
        pixir.does("<C-c>").await;
    }
}

#[tokio::test]
async fn one_change_is_one_undo_step() {
    let mut pixir = Pixir::with_vim(vec![says("Ok.")]);
    pixir.does("one two<Esc>0rX").await;
    assert_eq!(pixir.screen.draft(), "Xne two");
    pixir.does("u").await;
    assert_eq!(pixir.screen.draft(), "one two");
    pixir.does("<C-r>w~").await;
    assert_eq!(pixir.screen.draft(), "Xne Two");
    pixir.does("uu").await;
    assert_eq!(pixir.screen.draft(), "one two");
    pixir.does("wdwux").await;
    assert_eq!(pixir.screen.draft(), "one wo", "the caret is where the change was");
    pixir.does("0cwfour<Esc>").await;
    assert_eq!(pixir.screen.draft(), "four wo");
    pixir.does("u").await;
    assert_eq!(pixir.screen.draft(), "one wo", "replacing is part of the same undo step");
    pixir.does("<C-r>").await;
    assert_eq!(pixir.screen.draft(), "four wo");
    // A recalled prompt replaces the draft, and one undo step restores it.
    let mut pixir = Pixir::new(vec![says("Ok.")], &[]);
    pixir.does("sent before<Enter>").await;
    pixir.does("a draft<Up>").await;
    assert_eq!(pixir.screen.draft(), "sent before");
    pixir.does("<C-_>").await;
    assert_eq!(pixir.screen.draft(), "a draft");
}

#[tokio::test]
async fn vim_register_and_undo_survive_an_overlay() {
    let mut pixir = Pixir::with_vim(vec![]);
    pixir.does("one two<Esc>bdw").await;
    assert_eq!(pixir.screen.draft(), "one ");
    pixir.does("<C-p><Esc><C-t><Esc><F1><Esc>").await;
    pixir.does("p").await;
    assert_eq!(pixir.screen.draft(), "one two");
    pixir.does("<C-t><Esc>uu").await;
    assert_eq!(pixir.screen.draft(), "one two", "the cut itself is undone");
}

/// Broken builds: the mention is deleted letter by letter; a mention that is being typed vanishes with its last letter.
#[tokio::test]
async fn a_mention_of_an_image_is_passed_and_deleted_whole() {
    let mut pixir = Pixir::new(vec![], &[]);
    pixir.does("see @my/shot.png now").await;
    pixir.does("<Left><Left><Left><Left><Left>|").await;
    assert_eq!(pixir.screen.draft(), "see |@my/shot.png now", "four letters, then the mention at once");
    pixir.does("<Right><Backspace>").await;
    assert_eq!(pixir.screen.draft(), "see | now");
    pixir.does("<C-u><C-k>@shot.pmg<Backspace><Backspace>ng<Backspace>g").await;
    assert_eq!(pixir.screen.draft(), "@shot.png", "while it is typed, each letter can be mended");
    pixir.does(" x<Backspace><Backspace><Backspace>").await;
    assert_eq!(pixir.screen.draft(), "");
    pixir.does("@notes.md <Backspace><Backspace>").await;
    assert_eq!(pixir.screen.draft(), "@notes.m", "a text file is text");
}
