//! A key that a command of the user prints: when it runs, what it is for, and what is said when it fails.

use std::fs;

use serde_json::{Value, json};

use crate::server::{Reply, Server, call, text};
use crate::shell::{Ran, SECRET, Shell, ran};

/// A command that prints the start of every secret, which no file of the test may hold.
const PRINTS: &str = r#"printf 'sk-can''ary-%s\n'"#;

fn refuses() -> Reply {
    let body = json!({ "error": { "message": "this token has expired" } }).to_string();
    Reply::Refuse { status: 401, headers: String::new(), body }
}

/// Sets up a server `own` whose key a script prints; `more` are other lines of its section.
fn configure(shell: &Shell, server: &Server, script: &str, more: &str) {
    let script = shell.aside("print-key", script);
    shell.configure(&format!(
        "[providers.own]\ndialect = \"chat\"\nbase_url = \"{}\"\napi_key_command = \"sh {}\"\n{more}\n[requests]\nfirst_wait = 0.01\n",
        server.url,
        script.display()
    ));
}

fn ask(shell: &Shell) -> Ran {
    let ran = shell.run(["--provider", "own", "--model", "m", "--headless", "--json", "--write", "x"]);
    assert!(!format!("{ran:?}").contains(SECRET), "{ran:?}");
    ran
}

/// Broken builds: the command runs for every request; a refused key is sent again, or ends the Turn; the key is stored.
#[test]
fn a_command_prints_the_key_once_and_runs_again_when_the_server_refuses_it() {
    let shell = Shell::new(&[]);
    let server = Server::start(vec![
        call("c1", "bash", json!({ "command": "env; cat /proc/*/cmdline | tr '\\0' ' '" })),
        call("c2", "bash", json!({ "command": "echo two" })),
        refuses(),
        text("Done."),
    ]);
    let count = shell.home().with_file_name("count").display().to_string();
    configure(&shell, &server, &format!("echo >>{count}; {PRINTS} \"$(wc -l <{count} | tr -d ' ')\""), "");
    let ran = ask(&shell);
    assert_eq!((ran.code, &ran.document()["output"]), (0, &json!("Done.")), "{}", ran.stderr);
    let sent = [1, 1, 1, 2].map(|run| format!("Bearer {SECRET}-{run}"));
    assert_eq!(server.keys(), sent);
    assert_eq!(fs::read_to_string(&count).expect("it ran").lines().count(), 2);
    assert!(!shell.home().join("auth.json").exists(), "such a key is stored nowhere");
    assert!(!server.bodies().iter().any(|it| it.to_string().contains(SECRET)), "a command of the model sees the key");
}

/// Broken builds: a refused key is asked for until the patience ends; the fix says to export a variable.
#[test]
fn a_command_that_prints_what_the_server_has_refused_ends_the_turn() {
    let shell = Shell::new(&[]);
    let server = Server::start(vec![refuses(), refuses(), refuses()]);
    configure(&shell, &server, &format!("{PRINTS} same"), "");
    let ran = ask(&shell);
    assert_eq!((ran.code, ran.error()["code"].as_str()), (4, Some("AUTH_REQUIRED")), "{}", ran.stderr);
    let fix = ran.error()["remediation"].as_str().expect("a fix").to_owned();
    assert_eq!(fix, "check what `api_key_command` in [providers.own] of config.toml prints");
    assert_eq!(server.keys().len(), 1, "the same key is not sent twice");
}

/// Broken builds: what a failed command printed is sent as a key, or shown; its stderr is not.
#[test]
fn a_command_that_fails_says_why_and_nothing_is_sent() {
    for (script, says) in [
        (
            format!("{PRINTS} one; echo 'ERROR: Please run az login' >&2; exit 1"),
            "ended with 1: ERROR: Please run az login",
        ),
        (
            format!("key=$({PRINTS} two); echo \"$key\"; echo \"expired: $key\" >&2; exit 7"),
            "ended with 7: expired: [redacted]",
        ),
        ("exec 1>&-; true".to_owned(), "printed no key: the key is empty"),
        (format!("{PRINTS} three; echo and a second line"), "printed no key: a key is one word"),
        ("no-such-tool auth print-access-token".to_owned(), "ended with 127: "),
        ("printf '\\033[31mred\\033[0m' >&2; kill -TERM $$".to_owned(), "ended with 143: "),
    ] {
        let shell = Shell::new(&[]);
        let server = Server::start(vec![text("never")]);
        configure(&shell, &server, &script, "");
        let ran = ask(&shell);
        let message = ran.error()["error"]["message"].as_str().unwrap_or_default().to_owned();
        assert_eq!((ran.code, ran.error()["code"].as_str()), (4, Some("TOKEN_REQUEST_FAILED")), "{}", ran.stderr);
        assert!(message.starts_with("`api_key_command` of own ") && message.contains(says), "{message}");
        assert!(!ran.stderr.contains('\u{1b}') && server.bodies().is_empty(), "{}", ran.stderr);
    }
}

/// Azure takes what `az` prints as a token, and a key in a header of its own; Anthropic takes its keys in another one.
///
/// Broken builds: every printed text is a key, or every one is a token.
#[test]
fn a_printed_token_is_sent_as_one_and_a_printed_key_as_a_key() {
    let token = "eyJhbGciOiJub25lIn0.e30.c2lnbmVk";
    for (section, printed, header) in [
        ("preset = \"azure\"", token, format!("authorization: Bearer {token}")),
        ("preset = \"azure\"", "a-key-of-azure", "api-key: a-key-of-azure".to_owned()),
        ("dialect = \"anthropic\"", token, format!("authorization: Bearer {token}")),
        ("dialect = \"anthropic\"", "a-key-of-it", "x-api-key: a-key-of-it".to_owned()),
        ("dialect = \"chat\"", "ya29.of-gcloud", "authorization: Bearer ya29.of-gcloud".to_owned()),
        ("dialect = \"responses\"", token, format!("authorization: Bearer {token}")),
    ] {
        let shell = Shell::new(&[]);
        let server = Server::start(vec![text("Hello.")]);
        shell.configure(&format!(
            "[providers.own]\n{section}\nbase_url = \"{}\"\napi_key_command = \"echo {printed}\"\n",
            server.url
        ));
        let ran = ask(&shell);
        assert_eq!(ran.code, 0, "{section}: {}", ran.stderr);
        let heads = server.heads();
        let post = heads.iter().find(|it| it.starts_with("POST")).expect("a request");
        let lines: Vec<&str> = post.lines().filter(|it| it.contains(printed)).collect();
        assert_eq!(lines, [header.as_str()], "{section}");
    }
}

/// Broken builds: a repository's settings run programs; the section of another file is merged with the user's.
#[test]
fn a_repository_cannot_name_a_command() {
    for named in [
        "[providers.own]\napi_key_command = \"touch RAN\"\n",
        "api_key_command = \"touch RAN\"\n",
        "[providers.openai]\napi_key_command = \"touch RAN\"\n",
        "model = \"own/m\"\n[providers.own]\napi_key_command = \"touch RAN\"\napi_key_ttl = 1\n",
        "[limits]\napi_key_command = \"touch RAN\"\n",
    ] {
        let shell = Shell::new(&[]);
        let marker = shell.home().with_file_name("ran-it");
        shell.write(".pixir/config.toml", &named.replace("RAN", &marker.display().to_string()));
        let server = Server::start(vec![text("Hello."), text("Hello again.")]);
        configure(&shell, &server, "echo a-key-of-mine", "");
        let ran = ask(&shell);
        assert!(!marker.exists(), "{named}");
        assert!(
            server.keys().iter().all(|it| it == "Bearer a-key-of-mine"),
            "{named}: {:?} {}",
            server.keys(),
            ran.stderr
        );
        shell.run(["trust", "--yes"]);
        ask(&shell);
        shell.run(["doctor", "--online"]);
        assert!(!marker.exists(), "{named}, trusted");
    }
}

/// Broken builds: the status says that a key is missing, or runs the command; a stored key that is not used says nothing.
#[test]
fn the_status_and_the_doctor_name_the_command_as_the_source() {
    let shell = Shell::new(&[]);
    let server = Server::start(vec![]);
    let ran_it = shell.home().with_file_name("ran-it");
    configure(&shell, &server, &format!("touch {}; echo a-key-of-mine", ran_it.display()), "api_key_ttl = 60");
    let status = shell.run(["auth", "status", "own", "--json"]);
    let row = &status.document()["credentials"][0];
    assert_eq!((status.code, &row["source"], &row["kind"]), (0, &json!("api_key_command"), &json!("command")));
    assert!(!ran_it.exists(), "a status runs no command");
    let doctor: Value = shell.run(["doctor", "--json"]).document();
    assert!(doctor.to_string().contains("own from api_key_command"), "{doctor}");
    let mut login = shell.command(["auth", "login", "own", "--offline"]);
    let mut child = login.stdin(std::process::Stdio::piped()).spawn().expect("it starts");
    std::io::Write::write_all(&mut child.stdin.take().expect("piped"), b"another-key-0001").expect("it reads");
    let login = ran(child.wait_with_output().expect("it ends"));
    assert!(login.stderr.contains("api_key_command is set too, and takes precedence"), "{}", login.stderr);
}

/// Broken builds: a wrong setting is ignored, or shown with what it holds.
#[test]
fn a_setting_that_cannot_work_is_refused_at_the_start() {
    for (lines, says) in [
        ("api_key_command = \" \"", "`providers.own.api_key_command` is empty"),
        ("api_key_command = \"x\"\napi_key_env = \"KEY\"", "both say where the key is"),
        ("api_key_ttl = 5", "`providers.own.api_key_ttl` needs an `api_key_command`"),
        ("api_key_command = \"x\"\napi_key_ttl = 0", "`providers.own.api_key_ttl` is 0"),
        ("api_key_commnd = \"x\"", "unknown key `providers.own.api_key_commnd`"),
    ] {
        let shell = Shell::new(&[]);
        shell.configure(&format!(
            "[providers.own]\ndialect = \"chat\"\nbase_url = \"http://127.0.0.1:9/v1\"\n{lines}\n"
        ));
        let ran = ask(&shell);
        let message = ran.error()["error"]["message"].as_str().unwrap_or_default().to_owned();
        assert!(ran.error()["code"] == "CONFIG_INVALID" && message.contains(says), "{lines}: {message}");
    }
}
