//! Keys and tokens: stored, used, renewed, removed, never shown.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use crate::issuer::{Asked, Issuer};
use crate::server::{Act, Dialect, HEAD, Reply, Server, call, event, opening, text};
use crate::shell::{Ran, SECRET, Shell, ran};

/// Runs with something on stdin.
fn feed(shell: &Shell, stdin: &str, args: &[&str], variables: &[(&str, &str)]) -> Ran {
    let mut command = shell.command(args);
    let mut child =
        command.envs(variables.iter().copied()).stdin(std::process::Stdio::piped()).spawn().expect("the binary starts");
    // It may have ended without reading.
    let _ = child.stdin.take().expect("stdin").write_all(stdin.as_bytes());
    ran(child.wait_with_output().expect("it ends"))
}

fn with(shell: &Shell, args: &[&str], variables: &[(&str, &str)]) -> Ran {
    ran(shell.command(args).envs(variables.iter().copied()).output().expect("it runs"))
}

#[test]
fn a_key_is_tested_stored_for_its_owner_used_and_removed() {
    let shell = Shell::new(&[]);
    let server = Server::start(vec![text("Hello."), text("never")]);
    let at = [("OPENAI_BASE_URL", server.url.as_str())];
    let key = format!("{SECRET}-0123456789abcd");
    let before = with(&shell, &["auth", "status", "openai", "--json"], &at);
    assert_eq!((before.code, before.document()["ok"].as_bool()), (4, Some(false)));

    let kept = feed(&shell, &format!("{key}\n"), &["auth", "login", "openai", "--json"], &at);
    assert_eq!((kept.code, kept.document()["tested"].as_bool()), (0, Some(true)), "{}", kept.stderr);
    let file = shell.home().join("auth.json");
    assert_eq!(fs::metadata(&file).expect("it is there").permissions().mode() & 0o777, 0o600);

    let status = with(&shell, &["auth", "status", "--json"], &at);
    let openai = status.document()["credentials"]
        .as_array()
        .expect("a list")
        .iter()
        .find(|it| it["provider"] == "openai")
        .cloned();
    let openai = openai.expect("openai");
    assert_eq!((status.code, &openai["source"], &openai["hint"]), (0, &json!("auth.json"), &json!("…abcd")));

    let ran = with(&shell, &["--provider", "openai", "--headless", "--json", "hi"], &at);
    assert_eq!(ran.document()["output"], "Hello.", "{}", ran.stderr);
    assert_eq!(server.keys(), [format!("Bearer {key}")]);

    // A variable of the environment takes precedence, and the status names it.
    let own = [at[0], ("OPENAI_API_KEY", "other-key")];
    let status = with(&shell, &["auth", "status", "openai"], &own);
    assert!(status.stdout.contains("OPENAI_API_KEY"), "{}", status.stdout);

    let gone = with(&shell, &["auth", "logout", "openai", "--json"], &at);
    assert_eq!(gone.document()["forgotten"], true);
    assert!(!fs::read_to_string(&file).expect("it is there").contains(SECRET));
    let refused = with(&shell, &["--provider", "openai", "--headless", "--json", "hi"], &at);
    assert_eq!((refused.code, refused.error()["code"].as_str()), (4, Some("AUTH_REQUIRED")));
    assert_eq!(refused.error()["remediation"], "export OPENAI_API_KEY=…, or pixir auth login openai");
    let again = with(&shell, &["auth", "logout", "openai"], &at);
    assert_eq!((again.code, again.stdout.trim()), (0, "no key for openai is stored"));
}

#[test]
fn a_rejected_key_is_not_stored_and_input_is_never_echoed() {
    let shell = Shell::new(&[]);
    let strict =
        Issuer::start(|_, _| (401, json!({ "error": { "message": format!("bad key {SECRET}-wrong-key-0001") } })));
    let at = [("ANTHROPIC_BASE_URL", strict.url.as_str())];
    let refused = feed(&shell, &format!("{SECRET}-wrong-key-0001"), &["auth", "login", "anthropic", "--json"], &at);
    assert_eq!((refused.code, refused.error()["code"].as_str()), (4, Some("AUTH_REQUIRED")), "{}", refused.stderr);
    assert!(refused.error()["error"]["message"].as_str().expect("a message").contains("the key was not stored"));
    assert!(!shell.home().join("auth.json").exists());
    let head = strict.asked()[0].head.to_lowercase();
    assert!(head.contains("x-api-key: ") && head.contains("anthropic-version: 2023-06-01"), "{head}");
    assert_eq!(strict.asked()[0].what, "GET /v1/models?limit=1000");

    for (given, says) in
        [("", "the key is empty"), ("two words", "one word"), ("a\nb", "one word"), ("k\u{1b}[31m", "one word")]
    {
        let ran = feed(&shell, given, &["auth", "login", "openai", "--offline", "--json"], &[]);
        let message = ran.error()["error"]["message"].as_str().expect("a message").to_owned();
        assert!(ran.code == 2 && message.contains(says), "{message}");
        assert!(
            given.is_empty()
                || !ran.stderr.contains(given.split([' ', '\n']).next_back().expect("a word"))
                || given.len() < 4
        );
    }
    let unheard = feed(&shell, "k", &["auth", "login", "opnai", "--json"], &[]);
    assert_eq!(unheard.error()["remediation"], "pixir auth login openai");
    let nobody =
        feed(&shell, "k", &["auth", "login", "openai", "--json"], &[("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")]);
    assert_eq!(
        (nobody.code, nobody.error()["remediation"].as_str()),
        (8, Some("--offline stores the key without testing it"))
    );
    let dry = feed(&shell, "k", &["auth", "login", "openai", "--offline", "--dry-run", "--json"], &[]);
    assert_eq!((dry.document()["dry_run"].as_bool(), shell.home().join("auth.json").exists()), (Some(true), false));
}

#[test]
fn a_damaged_or_readable_key_file_is_reported_without_its_text() {
    let shell = Shell::new(&[]);
    fs::create_dir_all(shell.home()).expect("mkdir");
    let file = shell.home().join("auth.json");
    for damaged in [
        format!("{{\"providers\": {{\"openai\": \"{SECRET}"),
        "[]".into(),
        format!("{{\"providers\": {{\"openai\": {{\"type\": \"key\", \"kee\": \"{SECRET}\"}}}}}}"),
    ] {
        fs::write(&file, damaged).expect("write");
        for args in [["auth", "status", "--json"].as_slice(), &["--headless", "--json", "x"]] {
            let ran = shell.run(args);
            assert_eq!((ran.code, ran.error()["code"].as_str()), (4, Some("CORRUPT_AUTH")), "{}", ran.stderr);
            assert!(ran.error()["remediation"].as_str().expect("a fix").contains("move"));
        }
    }
    fs::write(&file, json!({ "version": 1, "providers": { "openai": { "type": "key", "key": SECRET } } }).to_string())
        .expect("write");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).expect("chmod");
    let status = shell.run(["auth", "status", "--json"]);
    assert_eq!((status.code, status.document()["file_is_open_to_others"].as_bool()), (0, Some(true)));
    assert!(shell.run(["doctor"]).stdout.contains("chmod 600"));
}

/// A complete issuer that gives `answers` to token requests.
pub(super) fn issuer(answers: impl Fn(&Asked, usize) -> (u16, Value) + Send + 'static) -> Issuer {
    let address = std::sync::Arc::<std::sync::OnceLock<String>>::default();
    let known = std::sync::Arc::clone(&address);
    let issuer = Issuer::start(move |asked, before| {
        let base = known.get().expect("it has started");
        match asked.what.as_str() {
            "GET /.well-known/openid-configuration" => (
                200,
                json!({
                    "device_authorization_endpoint": format!("{base}/device"), "token_endpoint": format!("{base}/token"),
                }),
            ),
            "POST /device" => (
                200,
                json!({
                    "device_code": format!("{SECRET}-device"), "user_code": "WDJB-MJHT", "verification_uri": format!("{base}/activate"),
                    "verification_uri_complete": format!("{base}/activate?user_code=WDJB-MJHT"), "interval": 0, "expires_in": 60,
                }),
            ),
            "POST /token" => answers(asked, before),
            "GET /v1/models" => {
                let good = asked.head.contains(&format!("{SECRET}-access-2"));
                if good { (200, json!({ "data": [{ "id": "m" }] })) } else { (401, json!({ "error": "stale" })) }
            }
            _ => (404, json!({})),
        }
    });
    address.set(issuer.url.clone()).expect("once");
    issuer
}

fn configure(shell: &Shell, issuer: &Issuer) {
    shell.configure(&format!(
        "[providers.work]\ndialect = \"chat\"\nbase_url = \"{0}/v1\"\nissuer = \"{0}\"\nclient_id = \"pixir-test\"\nscope = \"chat\"\n",
        issuer.url
    ));
}

#[test]
fn device_login_waits_slows_down_and_renews() {
    let shell = Shell::new(&[]);
    let issuer = issuer(|asked, before| {
        if asked.body.contains("grant_type=refresh_token") {
            assert!(asked.body.contains(&format!("refresh_token={SECRET}-refresh-1")), "{}", asked.body);
            return (
                200,
                json!({ "access_token": format!("{SECRET}-access-2"), "refresh_token": format!("{SECRET}-refresh-2"), "expires_in": 3600 }),
            );
        }
        match before {
            0 => (400, json!({ "error": "authorization_pending" })),
            1 => (400, json!({ "error": "slow_down" })),
            2 => (503, json!({})),
            // It expires at once, so it is renewed before its first use.
            _ => (
                200,
                json!({ "access_token": format!("{SECRET}-access-1"), "refresh_token": format!("{SECRET}-refresh-1"), "expires_in": 5 }),
            ),
        }
    });
    configure(&shell, &issuer);
    let ran = shell.run(["auth", "login", "work", "--device"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("WDJB-MJHT") && ran.stderr.contains("/activate"), "{}", ran.stderr);
    assert!(ran.stdout.contains("lists 1 models"), "{}", ran.stdout);
    let asked = issuer.asked();
    let device = asked.iter().find(|it| it.what == "POST /device").expect("it asked for a code");
    assert!(device.body.contains("client_id=pixir-test") && device.body.contains("scope=chat"));
    let status = shell.run(["auth", "status", "work", "--json"]).document();
    assert_eq!(
        (&status["credentials"][0]["kind"], &status["credentials"][0]["usable"]),
        (&json!("token"), &json!(true))
    );
    // The renewed token was stored before it was used.
    let kept = fs::read_to_string(shell.home().join("auth.json")).expect("kept");
    assert!(kept.contains("access-2") && kept.contains("refresh-2"));
}

#[test]
fn a_failed_login_says_why() {
    for (error, code, says) in [
        ("access_denied", "DEVICE_AUTH_FAILED", "denied"),
        ("expired_token", "DEVICE_AUTH_FAILED", "expired"),
        ("invalid_client", "DEVICE_AUTH_FAILED", "invalid_client"),
    ] {
        let shell = Shell::new(&[]);
        let issuer = issuer(move |_, _| (400, json!({ "error": error })));
        configure(&shell, &issuer);
        let ran = shell.run(["auth", "login", "work", "--device", "--json"]);
        let output = ran.error_after_chatter();
        assert_eq!((ran.code, output["code"].as_str()), (4, Some(code)), "{}", ran.stderr);
        assert!(output["error"]["message"].as_str().expect("a message").contains(says), "{output}");
        assert!(!shell.home().join("auth.json").exists());
    }
    let shell = Shell::new(&[]);
    let plain = Issuer::start(|_, _| (404, json!({})));
    let ran = shell.run(["auth", "login", "openai", "--device", "--issuer", &plain.url, "--client-id", "x", "--json"]);
    assert_eq!((ran.code, ran.error()["code"].as_str()), (4, Some("DEVICE_CODE_UNSUPPORTED")));
    let ran = shell.run(["auth", "login", "openai", "--device", "--json"]);
    assert_eq!((ran.code, ran.error()["code"].as_str()), (4, Some("DEVICE_CODE_UNSUPPORTED")));
    let ran = shell.run([
        "auth",
        "login",
        "openai",
        "--device",
        "--issuer",
        "http://login.example.com",
        "--client-id",
        "x",
        "--json",
    ]);
    assert_eq!(
        (ran.code, ran.error()["code"].as_str()),
        (10, Some("CONFIG_INVALID")),
        "no secret goes over plain http"
    );
}

#[test]
fn a_revoked_token_is_renewed_once_or_reported_as_ended() {
    let shell = Shell::new(&[]);
    let issuer = issuer(|asked, before| {
        assert!(asked.body.contains("grant_type=refresh_token"), "{}", asked.body);
        match before {
            0 => (200, json!({ "access_token": format!("{SECRET}-access-2"), "expires_in": 3600 })),
            _ => (
                400,
                json!({ "error": "invalid_grant", "error_description": format!("{SECRET}-refresh-1 was revoked") }),
            ),
        }
    });
    let stale = Reply::Refuse { status: 401, headers: String::new(), body: json!({ "error": "stale" }).to_string() };
    let server = Server::start(vec![stale.clone(), text("Hello again."), stale]);
    shell.configure(&format!("[providers.work]\ndialect = \"anthropic\"\nbase_url = \"{}\"\n", server.url));
    fs::create_dir_all(shell.home()).expect("mkdir");
    let file = shell.home().join("auth.json");
    let token = json!({
        "type": "token", "access": format!("{SECRET}-access-1"), "refresh": format!("{SECRET}-refresh-1"),
        "expires": "2099-01-01T00:00:00Z", "endpoint": format!("{}/token", issuer.url), "client_id": "pixir-test",
    });
    fs::write(&file, json!({ "version": 1, "providers": { "work": token } }).to_string()).expect("write");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("chmod");

    let ask = || shell.run(["--provider", "work", "--model", "m", "--headless", "--json", "x"]);
    assert_eq!(ask().document()["output"], "Hello again.");
    assert_eq!(server.keys(), [format!("Bearer {SECRET}-access-1"), format!("Bearer {SECRET}-access-2")]);
    let kept = fs::read_to_string(&file).expect("kept");
    assert!(kept.contains("access-2") && kept.contains("refresh-1"), "the old way to renew still stands");

    let ended = ask();
    assert_eq!((ended.code, ended.error()["code"].as_str()), (4, Some("AUTH_REQUIRED")), "{}", ended.stderr);
    assert_eq!(ended.error()["remediation"], "pixir auth login work --device");
    assert_eq!(issuer.asked().iter().filter(|it| it.what == "POST /token").count(), 2, "once each time");
}

#[test]
fn parallel_processes_renew_a_token_once() {
    let shell = Shell::new(&[]);
    // The issuer treats a second use of the first refresh token as theft.
    let issuer = issuer(|asked, before| match (before, asked.body.contains("refresh-1")) {
        (0, true) => {
            let renewed = json!({ "access_token": format!("{SECRET}-access-2"), "refresh_token": format!("{SECRET}-refresh-2"), "expires_in": 3600 });
            (200, renewed)
        }
        _ => (400, json!({ "error": "invalid_grant" })),
    });
    let server = Server::start((0..4).map(|n| text(&format!("Answer {n}."))).collect());
    shell.configure(&format!("[providers.work]\ndialect = \"chat\"\nbase_url = \"{}\"\n", server.url));
    fs::create_dir_all(shell.home()).expect("mkdir");
    let token = json!({
        "type": "token", "access": format!("{SECRET}-access-1"), "refresh": format!("{SECRET}-refresh-1"),
        "expires": "2001-01-01T00:00:00Z", "endpoint": format!("{}/token", issuer.url), "client_id": "pixir-test",
    });
    let file = shell.home().join("auth.json");
    fs::write(&file, json!({ "version": 1, "providers": { "work": token } }).to_string()).expect("write");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("chmod");
    let args = ["--provider", "work", "--model", "m", "--headless", "--json", "x"];
    let children: Vec<_> = (0..4).map(|_| shell.command(args).spawn().expect("it starts")).collect();
    for child in children {
        let ran = ran(child.wait_with_output().expect("it ends"));
        assert_eq!(ran.code, 0, "{}", ran.stderr);
    }
    assert_eq!(issuer.asked().iter().filter(|it| it.what == "POST /token").count(), 1);
    assert!(server.keys().iter().all(|sent| sent.ends_with("access-2")), "{:?}", server.keys());
}

#[test]
fn no_key_appears_in_any_output_or_file() {
    for dialect in Dialect::ALL {
        let shell = Shell::new(&[]);
        let key = format!("{SECRET}-0123456789abcd");
        let echo = |status: u16| Reply::Refuse {
            status,
            headers: format!("x-request-id: {key}\r\nretry-after-ms: 1\r\n"),
            body: json!({ "error": { "message": format!("you sent Bearer {key}"), "code": key } }).to_string(),
        };
        let broken = match dialect {
            Dialect::Responses => json!({ "type": "error", "message": format!("with {key}"), "code": "server_error" }),
            Dialect::Chat => json!({ "error": { "message": format!("with {key}"), "code": 500 } }),
            Dialect::Anthropic => {
                json!({ "type": "error", "error": { "type": "api_error", "message": format!("with {key}") } })
            }
        };
        let broken = format!("{HEAD}{}{}", opening(dialect, "Half. "), event(&broken));
        let page = format!("HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close\r\n\r\n<p>{key}</p>");
        let server = Server::start(vec![
            echo(429),
            call(
                "c1",
                "bash",
                json!({ "command": "env; cat /proc/$PPID/environ | tr '\\0' '\\n' | grep -c KEY; echo" }),
            ),
            echo(500),
            text("Done."),
            Reply::Raw(vec![Act::Send(broken.into_bytes())]),
            Reply::Raw(vec![Act::Send(page.into_bytes())]),
            echo(401),
            echo(400),
        ]);
        // A variable whose name does not look like a secret's.
        shell.configure(&format!(
            "[providers.own]\ndialect = \"{}\"\nbase_url = \"{}\"\napi_key_env = \"MY_PASS_PHRASE\"\n[requests]\nfirst_wait = 0.01\n",
            dialect.name(),
            server.url
        ));
        let record = shell.home().parent().expect("a folder").join("record.json");
        let variables = [("MY_PASS_PHRASE", key.as_str()), ("PIXIR_LOG", "trace"), ("RUST_BACKTRACE", "1")];
        let record = record.to_string_lossy().into_owned();
        let own = ["--provider", "own", "--model", "m", "--headless", "--format", "jsonl", "--write"];
        let recorded = [own.as_slice(), &["--record", &record, "x"]].concat();
        let ran = with(&shell, &recorded, &variables);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        for _ in 0..4 {
            assert_ne!(with(&shell, &[own.as_slice(), &["again"]].concat(), &variables).code, 0);
        }
        assert!(server.keys().iter().all(|sent| sent.contains(&key)), "it was sent, where it belongs");
        for args in [
            ["doctor", "--json"].as_slice(),
            &["auth", "status", "--json"],
            &["models", "list", "--json"],
            &["schema"],
            &["sessions", "show", "last", "--json"],
            &["sessions", "export", "last", "--json"],
            &["inspect", "last", "--json"],
            &["replay", "last"],
            &["diagnose", "last", "--json"],
        ] {
            with(&shell, args, &variables);
        }
        let recording = fs::read_to_string(&record).expect("a recording");
        assert!(!recording.contains(SECRET) && recording.contains("[redacted]"), "{recording}");
        // Dropping the shell looks at every file that was left.
    }
}

/// The system's own store, on a bus of its own.
#[cfg(feature = "keyring")]
#[test]
fn keys_go_to_the_system_keyring_and_not_to_a_file() {
    let exists = |name: &str| {
        std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()).any(|it| it.join(name).is_file())
    };
    if !exists("dbus-run-session") || !exists("gnome-keyring-daemon") {
        return crate::shell::skip("dbus-run-session or gnome-keyring-daemon is not installed");
    }
    let shell = Shell::new(&[]);
    let run = shell.home().parent().expect("a folder").join("run");
    fs::create_dir(&run).expect("mkdir");
    fs::set_permissions(&run, fs::Permissions::from_mode(0o700)).expect("chmod");
    let script = format!(
        "printf 'pw\\n' | gnome-keyring-daemon --unlock --components=secrets >/dev/null
         printf %s {SECRET}-0123456789abcd | \"$PIXIR\" auth login openai --offline
         \"$PIXIR\" auth status openai
         PIXIR_KEYRING=off \"$PIXIR\" auth status openai
         \"$PIXIR\" auth logout openai
         \"$PIXIR\" auth status openai; echo \"exit $?\""
    );
    let output = std::process::Command::new("dbus-run-session")
        .args(["--", "bash", "-c", &script])
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", shell.home().parent().expect("a folder"))
        .env("PIXIR_HOME", shell.home())
        .env("XDG_RUNTIME_DIR", &run)
        .env("PIXIR", env!("CARGO_BIN_EXE_pixir"))
        .output()
        .expect("it runs");
    let told = ran(output);
    let lines: Vec<&str> = told.stdout.lines().collect();
    assert!(lines[0].contains("stored the key for openai in keyring"), "{}\n{}", told.stdout, told.stderr);
    assert!(lines[1].contains("ready   …abcd from keyring"), "{}", told.stdout);
    assert!(
        lines[2].contains("no key") && lines[3].contains("removed the key") && lines[4].contains("no key"),
        "{}",
        told.stdout
    );
    assert_eq!(lines[5], "exit 4");
    assert!(!shell.home().join("auth.json").exists());
}
