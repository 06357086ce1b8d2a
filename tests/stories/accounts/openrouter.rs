//! A key of OpenRouter, by a browser.

use std::process::Stdio;

use serde_json::{Value, json};

use super::{SigningIn, browse, hash, kept, parameter};
use crate::issuer::Issuer;
use crate::pty::Terminal;
use crate::server::{Server, text};
use crate::shell::{SECRET, Shell};

fn server() -> Server {
    Server::with_facts(vec![text("Hello from OpenRouter.")], vec![("/v1/key", json!({ "data": { "label": "pixir" } }))])
}

fn world(answer: impl Fn() -> (u16, Value) + Send + 'static) -> (Shell, Server, Issuer) {
    let (shell, server) = (Shell::new(&[]), server());
    let issuer = Issuer::start(move |_, _| answer());
    shell.configure(&format!("[providers.openrouter]\nbase_url = \"{}\"\nissuer = \"{}\"\n", server.url, issuer.url));
    (shell, server, issuer)
}

fn gives_a_key() -> (u16, Value) {
    (200, json!({ "key": format!("{SECRET}-of-openrouter"), "user_id": "user_1" }))
}

/// Broken builds: the code is exchanged without its verifier; any page of this machine ends the sign-in; the key is printed.
#[test]
fn a_browser_signs_in_and_the_key_is_stored_and_used() {
    let (shell, server, issuer) = world(gives_a_key);
    // Nothing is asked for before the user wants it.
    let dry = shell.run(["auth", "login", "openrouter", "--browser", "--dry-run", "--json"]);
    assert_eq!((dry.code, dry.document()["dry_run"].as_bool(), kept(&shell).as_str()), (0, Some(true), ""));
    assert!(issuer.asked().is_empty());
    let login = SigningIn::start(&shell, &["openrouter", "--browser"]);
    let page = login.page();
    assert!(page.starts_with(&format!("{}/auth?", issuer.url)), "{page}");
    assert_eq!(parameter(&page, "code_challenge_method"), "S256");
    let back = parameter(&page, "callback_url");
    let (host, path) = back.strip_prefix("http://").and_then(|it| it.split_once('/')).expect("a page of this machine");
    assert!(host.starts_with("127.0.0.1:") && path.len() > 40, "{back}");
    // A page of the web cannot guess the path.
    for other in [format!("http://{host}/callback?code=evil"), format!("http://{host}/?code=evil")] {
        assert!(browse(&other).contains("404"), "{other}");
    }
    assert!(browse(&format!("{back}?code={SECRET}-code")).contains("200"));
    let ran = login.end();
    assert_eq!((ran.code, ran.document()["tested"].as_bool()), (0, Some(true)), "{}", ran.stderr);
    assert!(!format!("{ran:?}").contains(SECRET) && kept(&shell).contains("-of-openrouter"));
    let sent: Value = serde_json::from_str(&issuer.asked()[0].body).expect("JSON");
    assert_eq!(issuer.asked()[0].what, "POST /api/v1/auth/keys");
    assert_eq!((&sent["code"], &sent["code_challenge_method"]), (&json!(format!("{SECRET}-code")), &json!("S256")));
    assert_eq!(hash(sent["code_verifier"].as_str().expect("a verifier")), parameter(&page, "code_challenge"));

    let ran = super::ask(&shell, "openrouter");
    assert_eq!(ran.document()["output"], "Hello from OpenRouter.", "{}", ran.stderr);
    assert!(server.keys().iter().all(|it| *it == format!("Bearer {SECRET}-of-openrouter")));
    let status = shell.run(["auth", "status", "openrouter", "--json"]);
    assert_eq!(status.document()["credentials"][0]["source"], "auth.json");
    assert_eq!(shell.run(["auth", "logout", "openrouter"]).code, 0);
    assert!(!kept(&shell).contains(SECRET));
}

/// Broken builds: a refused sign-in waits on; what cannot be a key is stored; the code or the verifier is in the error.
#[test]
fn every_fault_of_the_sign_in_is_said_and_stores_nothing() {
    type Answer = fn() -> (u16, Value);
    let cases: [(&str, Answer, &str); 8] = [
        ("error=access_denied&error_description=The+user+said+no", gives_a_key, "the issuer says: The user said no"),
        ("error=server_error", gives_a_key, "the issuer says: server_error"),
        ("code=", gives_a_key, "the answer holds no code"),
        ("nothing=1", gives_a_key, "the answer holds no code"),
        (
            "code=sk-canary-code",
            || (403, json!({ "error": { "message": "Invalid code: sk-canary-code", "code": 403 } })),
            "the issuer returned no key (403): Invalid code: [redacted]",
        ),
        ("code=c", || (200, json!({ "user_id": "u" })), "the issuer returned no key (200)"),
        ("code=c", || (200, json!({ "key": "two words sk-canary" })), "no key that can be used"),
        ("code=c", || (502, json!("<html>bad gateway</html>")), "the issuer returned no key (502)"),
    ];
    for (answer, gives, says) in cases {
        let (shell, _server, _issuer) = world(gives);
        let login = SigningIn::start(&shell, &["openrouter", "--browser"]);
        browse(&format!("{}?{answer}", parameter(&login.page(), "callback_url")));
        let ran = login.end();
        let message = ran.error()["error"]["message"].as_str().unwrap_or_default().to_owned();
        assert_eq!(
            (ran.code, ran.error()["code"].as_str()),
            (4, Some("DEVICE_AUTH_FAILED")),
            "{answer}: {}",
            ran.stderr
        );
        assert!(message.contains(says) && !message.contains(SECRET), "{answer}: {message}");
        assert_eq!(kept(&shell), "", "{answer}");
    }
    // A key that the server itself refuses is not stored either.
    let (shell, _server, _issuer) = world(gives_a_key);
    let strict = Issuer::start(|_, _| (401, json!({ "error": { "message": "User not found.", "code": 401 } })));
    let base = [("OPENROUTER_BASE_URL", strict.url.as_str())];
    shell.configure("");
    let ran = shell.command(["auth", "login", "openrouter", "--device"]).envs(base).stdin(Stdio::null()).output();
    let ran = crate::shell::ran(ran.expect("it runs"));
    assert!(ran.stderr.contains("pixir auth login openrouter --browser"), "{}", ran.stderr);
}

/// Broken builds: the interface offers no sign-in without a configuration; a pasted address or code goes nowhere.
#[test]
fn the_interface_signs_in_also_with_what_the_user_pastes() {
    for is_address in [true, false] {
        let (shell, _server, issuer) = world(gives_a_key);
        let config = shell.home().join(".config/pixir");
        std::fs::create_dir_all(&config).expect("mkdir");
        let own = shell.home().with_file_name(".config/pixir/config.toml");
        std::fs::copy(&own, config.join("config.toml")).expect("copy");
        let binary: &std::path::Path = env!("CARGO_BIN_EXE_pixir").as_ref();
        let mut terminal = Terminal::of(&shell, binary.as_ref(), &[], &[], 120, 40);
        terminal.wait_for("Ask pixir");
        terminal.send("/connect\r");
        terminal.wait_for("Enter choose");
        terminal.send("2");
        terminal.wait_for("╭ Sign in with a browser");
        terminal.send("openrouter");
        terminal.wait_for("› openrouter");
        let reader = terminal.reader();
        terminal.press_until("\r", "the sign-in begins", || reader.shows("Open this page in a browser"));
        let screen = terminal.wait_for("Waiting for the browser");
        assert!(screen.contains(&format!("{}/auth?", issuer.url)), "{screen}");
        let given =
            if is_address { format!("http://127.0.0.1:9/x?code={SECRET}-code") } else { format!("{SECRET}-code") };
        terminal.send(&format!("\x1b[200~{given}\x1b[201~"));
        terminal.wait_for("Enter sends the pasted address");
        terminal.settle();
        terminal.send("\r");
        terminal.wait_for("● openrouter/");
        assert!(issuer.asked().iter().any(|it| it.body.contains(&format!("{SECRET}-code"))), "the code is exchanged");
        terminal.send("\x1b");
        terminal.wait_that("the dialog is closed", |screen| !screen.contains("● openrouter/"));
        terminal.send("\x04");
        let left = terminal.end();
        left.assert_sane();
        assert!(!String::from_utf8_lossy(&left.bytes).contains(SECRET), "a secret was on the screen");
    }
}
