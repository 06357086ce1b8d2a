//! A model is connected while pixir runs: a key, a server of this machine; and what the first screen offers.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;

use crate::issuer::Issuer;
use crate::pty::Terminal;
use crate::server::{Server, text};
use crate::shell::{SECRET, Shell, entries};

const SIZE: (u16, u16) = (80, 24);

fn start(shell: &Shell, environment: &[(&str, &str)], (columns, rows): (u16, u16)) -> Terminal {
    let binary: &Path = env!("CARGO_BIN_EXE_pixir").as_ref();
    Terminal::of(shell, binary.as_ref(), &[], environment, columns, rows)
}

/// Chooses whose key it is, from the ways to a model on.
fn choose_openai(terminal: &mut Terminal) {
    terminal.send("1");
    terminal.wait_for("Whose key is it?");
    terminal.send("openai");
    terminal.wait_that("one provider is left", |screen| !screen.contains("GROQ_API_KEY"));
    // Directly behind letters that came at once, Enter may count as a part of a paste.
    let reader = terminal.reader();
    terminal.press_until("\r", "the provider is chosen", || reader.shows("Key for openai"));
}

/// Broken build: the Session keeps the Providers that it began with.
#[test]
fn a_first_start_without_a_key_takes_one_and_answers_without_a_restart() {
    let shell = Shell::new(&[]);
    let server = Server::start(vec![text("Hello from the server.")]);
    let mut terminal = start(&shell, &[("OPENAI_BASE_URL", &server.url)], SIZE);
    terminal.wait_for("No model is connected");
    terminal.wait_that("the header names no model", |screen| {
        screen.lines().next().is_some_and(|it| it.contains("no model"))
    });
    choose_openai(&mut terminal);
    let key = format!("{SECRET}-0123456789abcd");
    terminal.send(&format!("\x1b[200~{key}\x1b[201~"));
    terminal.wait_for(&format!("{} characters", key.len()));
    terminal.settle();
    terminal.send("\r");
    // The models of the server, the one in use marked.
    let screen = terminal.wait_for("● openai/m");
    assert!(screen.contains("Effort"), "{screen}");
    terminal.send("\x1b");
    terminal.wait_that("the dialog is closed", |screen| !screen.contains("● openai/m"));
    terminal.send("hi\r");
    terminal.wait_for("Hello from the server.");
    assert_eq!(server.keys(), [format!("Bearer {key}")]);
    terminal.send("\x04");
    let left = terminal.end();
    left.assert_sane();
    let shown = String::from_utf8_lossy(&left.bytes).into_owned();
    assert!(!shown.contains(SECRET), "the key was on the screen");
    // The Log and the diagnostics are searched for it when the shell is dropped.
    assert!(std::fs::read_to_string(shell.home().join("auth.json")).expect("stored").contains(&key));
}

/// Broken builds: the message is recorded and answered by pixir itself; it leaves the composer before a model is there.
#[test]
fn a_message_without_a_model_waits_in_the_composer_until_one_is_connected() {
    let shell = Shell::new(&[]);
    let server = Server::start(vec![text("Hello from the server.")]);
    let mut terminal = start(&shell, &[("OPENAI_BASE_URL", &server.url)], SIZE);
    terminal.wait_for("No model is connected");
    terminal.send("good morning\r");
    terminal.wait_for("Connect a model");
    let screen = terminal.wait_for("no model answers yet: connect one, and Enter sends your message");
    assert!(screen.contains("❯ good morning"), "{screen}");
    choose_openai(&mut terminal);
    terminal.send(&format!("\x1b[200~{SECRET}-0123456789abcd\x1b[201~"));
    terminal.wait_for("characters");
    terminal.settle();
    terminal.send("\r");
    terminal.wait_for("● openai/m");
    terminal.send("\x1b");
    terminal.wait_that("the dialog is closed", |screen| !screen.contains("● openai/m"));
    assert!(server.bodies().is_empty(), "nothing was sent yet: {:?}", server.bodies());
    terminal.send("\r");
    terminal.wait_for("Hello from the server.");
    let log = entries(&shell.logs()[0]);
    let said: Vec<_> = log.iter().filter(|it| it["type"] == "user_message").collect();
    assert_eq!(said.len(), 1, "{said:?}");
    terminal.send("\x04");
    terminal.end().assert_sane();
}

/// Clicks on the first row that has this text.
fn click(terminal: &mut Terminal, text: &str) {
    let screen = terminal.wait_for(text);
    let found = screen.lines().enumerate().find_map(|(row, line)| Some((row, line.find(text)?, line)));
    let (row, byte, line) = found.expect("it is on the screen");
    let (column, row) = (line[..byte].chars().count() + 1, row + 1);
    terminal.send(&format!("\x1b[<0;{column};{row}M\x1b[<0;{column};{row}m"));
}

/// Broken builds: the rows take no clicks; `?` in the menu does nothing, or is no key of it; the digits cannot be bound.
#[test]
fn the_ways_to_a_model_and_the_providers_take_clicks() {
    let shell = Shell::new(&[]);
    std::fs::create_dir_all(shell.home().join(".config/pixir")).expect("mkdir");
    std::fs::write(shell.home().join(".config/pixir/config.toml"), "[keys]\nconnect-local = \"l\"\n").expect("write");
    let mut terminal = start(&shell, &[], SIZE);
    let screen = terminal.wait_for("No model is connected");
    assert!(!screen.contains("% of"), "no window fills without a model:\n{screen}");
    terminal.send("/connect\r");
    terminal.wait_for("Enter choose");
    terminal.send("?");
    terminal.wait_for("Where a model is connected");
    terminal.send("\x1b");
    terminal.wait_for("l  Local server");
    terminal.send("l");
    terminal.wait_for("╭ Servers of this machine");
    terminal.send("\x1b");
    terminal.wait_for("Enter choose");
    click(&mut terminal, "Sign in with a browser");
    click(&mut terminal, "Sign in with a browser");
    terminal.wait_for("╭ Sign in with a browser");
    terminal.send("\x1b");
    terminal.wait_for("Enter choose");
    click(&mut terminal, "Paste a key");
    click(&mut terminal, "Paste a key");
    terminal.wait_for("Whose key is it?");
    click(&mut terminal, "GEMINI_API_KEY");
    click(&mut terminal, "GEMINI_API_KEY");
    terminal.wait_for("Key for gemini");
    drop(terminal);
}

/// Broken build: a refused key closes the dialog.
#[test]
fn a_wrong_key_is_told_in_the_words_of_the_server_and_typed_again() {
    let shell = Shell::new(&[]);
    let strict = Issuer::start(|asked, _| {
        if asked.head.contains("right-key-0001") {
            (200, json!({ "data": [{ "id": "claude-sonnet-5-5" }] }))
        } else {
            (401, json!({ "error": { "message": format!("no such key: {SECRET}-wrong-key-0001") } }))
        }
    });
    let mut terminal = start(&shell, &[("ANTHROPIC_BASE_URL", &strict.url)], SIZE);
    terminal.wait_for("No model is connected");
    terminal.send("/connect\r");
    terminal.wait_for("Enter choose");
    // The list of providers may still be read when Enter comes.
    terminal.send("1anthropic");
    terminal.wait_for("› anthropic");
    terminal.send("\r");
    terminal.wait_for("Key for anthropic");
    terminal.send(&format!("{SECRET}-wrong-key-0001"));
    terminal.wait_for("24 characters");
    terminal.settle();
    terminal.send("\r");
    let screen = terminal.wait_for("no such key");
    assert!(screen.contains("[redacted]") && screen.contains("press Enter again"), "{screen}");
    assert!(!shell.home().join("auth.json").exists());
    terminal.send("\x15");
    terminal.wait_for("paste or type the key");
    terminal.send(&format!("{SECRET}-right-key-0001"));
    terminal.wait_for("24 characters");
    terminal.settle();
    terminal.send("\r");
    terminal.wait_for("● anthropic/claude-sonnet-5-5");
    terminal.send("\x1b");
    terminal.wait_that("the dialog is closed", |screen| !screen.contains("● anthropic"));
    terminal.send("\x04");
    let left = terminal.end();
    left.assert_sane();
    assert!(!String::from_utf8_lossy(&left.bytes).contains(SECRET));
}

#[test]
fn a_local_server_that_was_started_later_is_found_and_used() {
    let shell = Shell::new(&[]);
    let server = Server::start(vec![text("Hello from this machine.")]);
    // The usual port may be taken on the machine of the test.
    let configuration = format!("[providers.ollama]\nbase_url = \"{}\"\n", server.url);
    let folder = shell.home().join(".config/pixir");
    std::fs::create_dir_all(&folder).expect("mkdir");
    std::fs::write(folder.join("config.toml"), configuration).expect("write");
    let mut terminal = start(&shell, &[], SIZE);
    terminal.wait_for("No model is connected");
    terminal.send("3");
    terminal.wait_for("ollama, 2 models");
    terminal.send("\r");
    terminal.wait_for("● ollama/m");
    terminal.send("\x1b");
    terminal.wait_that("the dialog is closed", |screen| !screen.contains("● ollama/m"));
    terminal.send("hi\r");
    terminal.wait_for("Hello from this machine.");
    terminal.send("\x04");
    terminal.end().assert_sane();
}

/// A configured model without its key used to leave nothing but a restart.
#[test]
fn a_model_whose_key_is_missing_is_connected_in_place() {
    let shell = Shell::new(&[]);
    let server = Server::start(vec![text("It works now.")]);
    let folder = shell.home().join(".config/pixir");
    std::fs::create_dir_all(&folder).expect("mkdir");
    std::fs::write(folder.join("config.toml"), "model = \"openai/m\"\n").expect("write");
    let mut terminal = start(&shell, &[("OPENAI_BASE_URL", &server.url)], SIZE);
    terminal.wait_for("openai needs an API key");
    terminal.send("1");
    terminal.wait_for("OPENAI_API_KEY");
    terminal.send("openai");
    terminal.wait_for("› openai");
    let reader = terminal.reader();
    terminal.press_until("\r", "the provider is chosen", || reader.shows("Key for openai"));
    terminal.send(&format!("{SECRET}-0123456789abcd"));
    terminal.wait_for("characters");
    terminal.settle();
    terminal.send("\r");
    terminal.wait_for("openai is connected");
    terminal.send("hi\r");
    terminal.wait_for("It works now.");
    terminal.send("\x04");
    terminal.end().assert_sane();
}

/// Broken builds: the code is not shown; Esc does not end the wait; the models of the server are not offered.
#[test]
fn a_sign_in_shows_where_to_go_and_the_code_and_ends_with_the_models() {
    let shell = Shell::new(&[]);
    let has_agreed = Arc::new(AtomicBool::new(false));
    let agreed = Arc::clone(&has_agreed);
    let issuer = super::credentials::issuer(move |_, _| {
        if agreed.load(Ordering::SeqCst) {
            let token = json!({ "access_token": format!("{SECRET}-access-2"), "expires_in": 3600 });
            (200, token)
        } else {
            (400, json!({ "error": "authorization_pending" }))
        }
    });
    let folder = shell.home().join(".config/pixir");
    std::fs::create_dir_all(&folder).expect("mkdir");
    let provider = format!(
        "[providers.work]\ndialect = \"chat\"\nbase_url = \"{0}/v1\"\nissuer = \"{0}\"\nclient_id = \"pixir-test\"\n",
        issuer.url
    );
    std::fs::write(folder.join("config.toml"), provider).expect("write");
    let mut terminal = start(&shell, &[], SIZE);
    terminal.wait_for("No model is connected");
    terminal.send("2");
    terminal.wait_for("╭ Sign in with a browser");
    terminal.send("work");
    terminal.wait_for("› work");
    terminal.settle();
    terminal.send("\r");
    let screen = terminal.wait_for("WDJB-MJHT");
    assert!(screen.contains("/activate"), "the page, too:\n{screen}");
    terminal.send("\x1b");
    terminal.wait_that("the code is gone", |screen| !screen.contains("WDJB-MJHT") && screen.contains("work"));
    terminal.settle();
    terminal.send("\r");
    terminal.wait_for("WDJB-MJHT");
    has_agreed.store(true, Ordering::SeqCst);
    terminal.wait_for("● work/m");
    terminal.send("\x1b");
    terminal.wait_for("/ commands");
    terminal.send("\x04");
    let left = terminal.end();
    left.assert_sane();
    assert!(!String::from_utf8_lossy(&left.bytes).contains(SECRET), "a token was on the screen");
}

/// Broken builds: Ctrl+D in the demo ends pixir as a whole; the demo does not say how to leave it; the welcome shows the
/// window of the demo's script.
#[test]
fn the_demo_of_the_welcome_is_watched_and_left_again() {
    let shell = Shell::new(&[("mine.txt", "as it was\n")]);
    let mut terminal = start(&shell, &[], (120, 36));
    let welcomes = |terminal: &Terminal| {
        terminal.wait_for("No model is connected");
        terminal
            .wait_that("the session is open", |screen| screen.lines().next().is_some_and(|it| it.contains("no model")));
        let screen = terminal.screen();
        assert!(!screen.contains("of 128k"), "{screen}");
    };
    welcomes(&terminal);
    terminal.send("4");
    terminal.wait_for("The average is wrong.");
    let reader = terminal.reader();
    // Ctrl+End only scrolls, so what it does is to skip the wait.
    terminal.press_until("\x1b[1;5F", "the first edit", || reader.shows("Alt+Y"));
    terminal.press_until("\x1by", "the edit is allowed", || reader.shows("With one number the old code"));
    terminal.press_until("\x1b[1;5F", "the second edit", || reader.shows("check \"average of one\""));
    terminal.press_until("\x1by", "the edit is allowed", || reader.shows("Now the tests again"));
    terminal.press_until("\x1b[1;5F", "the end", || reader.shows("Ctrl+D leaves the demo"));
    terminal.send("\x04");
    welcomes(&terminal);
    assert_eq!(shell.read("mine.txt"), "as it was\n");
    terminal.send("\x03\x03\x03");
    terminal.end().assert_sane();
}

#[test]
fn a_small_screen_offers_every_way_to_a_model() {
    let shell = Shell::new(&[]);
    let mut terminal = start(&shell, &[], (40, 10));
    for way in ["1 Paste a key", "2 Sign in", "3 Local server", "4 Watch the demo"] {
        terminal.wait_for(way);
    }
    terminal.send("1");
    terminal.wait_for("anthropic");
    terminal.send("\x1b");
    terminal.wait_for("Connect a model");
    terminal.send("\x1b");
    terminal.wait_for("1 Paste a key");
    // With more room nothing of what is said about the ways is cut.
    terminal.resize(60, 20);
    terminal.send("/connect\r");
    for text in
        ["is stored on this", "machine only.", "Anthropic, OpenAI, OpenRouter, Gemini, …", "OpenRouter, a ChatGPT plan"]
    {
        terminal.wait_for(text);
    }
    terminal.send("3");
    terminal.wait_for("No server answers.");
    terminal.wait_that("there is nothing to choose", |screen| !screen.contains("Enter connect"));
    terminal.send("\x1b");
    terminal.wait_for("Enter choose");
    terminal.send("\x1b");
    terminal.wait_that("the dialog is closed", |screen| !screen.contains("Connect a model"));
    terminal.send("\x03\x03\x03");
    terminal.end().assert_sane();
}

#[test]
fn the_welcome_names_the_last_sessions() {
    let shell = Shell::new(&[]);
    let server = Server::start(vec![text("Done.")]);
    let first = crate::connected::ask(&shell, &server, crate::server::Dialect::Responses, &["mend the roof"]);
    assert_eq!(first.code, 0, "{}", first.stderr);
    let mut terminal = start(&shell, &[], SIZE);
    terminal.wait_for("mend the roof");
    terminal.send("\x03\x03\x03");
    terminal.end().assert_sane();
}
