//! Secrets of the user in every place that pixir writes: there is none of them.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::pty::Terminal;
use crate::server::{Act, Dialect, HEAD, Reply, Server, call, event, opening, text};
use crate::shell::{Shell, figures, ran};

/// The start of every secret here. No key looks like that, so nothing recognises one by its looks.
const CANARY: &str = "canary-of-mine-";

fn canary(name: &str) -> String {
    format!("{CANARY}{name}-0123456789")
}

/// Files below a folder in which the start of a secret stands, blobs included. The user's own settings are left out.
fn found(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if entry.file_type().is_ok_and(|it| it.is_dir()) {
            found.extend(self::found(&path));
            continue;
        }
        let mut bytes = fs::read(&path).unwrap_or_default();
        if path.extension() == Some(OsStr::new("zst")) {
            bytes = zstd::decode_all(bytes.as_slice()).expect("a blob");
        }
        let is_own = path.file_name() == Some(OsStr::new("config.toml"));
        if !is_own && bytes.windows(CANARY.len()).any(|it| it == CANARY.as_bytes()) {
            found.push(path);
        }
    }
    found
}

/// The environment of a user with secrets under names of every kind.
fn environment() -> Vec<(&'static str, String)> {
    let address = |scheme: &str, name: &str| format!("{scheme}://me:{}@127.0.0.1:1/x", canary(name));
    vec![
        ("MY_PASS_PHRASE", canary("key")),
        ("ANTHROPIC_API_KEY", canary("anthropic")),
        ("DATABASE_URL", address("postgres", "db")),
        ("REDIS_URL", address("redis", "redis")),
        ("MYSQL_PWD", canary("mysql")),
        ("GITHUB_PAT", canary("pat")),
        ("AWS_SECRET_ACCESS_KEY", canary("aws")),
        ("COOKIE", canary("cookie")),
        ("JWT", canary("jwt")),
        ("KUBECONFIG", format!("/home/me/{}", canary("kube"))),
        ("GOPROXY", address("https", "goproxy")),
        ("GIT_CONFIG_COUNT", "1".into()),
        ("GIT_CONFIG_KEY_0", "http.extraHeader".into()),
        ("GIT_CONFIG_VALUE_0", canary("git")),
        ("npm_config__authToken", canary("npm")),
        ("CARGO_REGISTRY_TOKEN", canary("cargo")),
        ("PIXIR_LOG", "trace".into()),
        ("RUST_BACKTRACE", "1".into()),
        ("NO_PROXY", "127.0.0.1".into()),
        ("HTTPS_PROXY", address("http", "proxy")),
    ]
}

/// What a program says of its environment, its parents' and the state folder's.
const CURIOUS: &str = "env; export -p; cat /proc/self/environ /proc/$PPID/environ /proc/1/environ /proc/*/environ | tr '\\0' '\\n'; \
    cat /proc/*/cmdline | tr '\\0' ' '; cat ~/.config/pixir/config.toml; cat $PIXIR_HOME/* ~/home/auth.json; env > env.txt";

/// Broken builds: `Endpoint::redact` knows the key alone, and not the headers and the query that the user has set; the
/// environment of programs is the user's; `Views` shows the folder of the user's settings.
#[test]
fn no_secret_of_the_user_is_in_anything_that_pixir_writes() {
    let (mut sinks, mut leaks) = (0, Vec::new());
    for dialect in Dialect::ALL {
        let shell = Shell::new(&[("a.txt", "a\n")]);
        let all = [canary("key"), canary("header"), canary("query")].join(" ");
        let refuse = |status: u16, more: &str| {
            Reply::Refuse {
            status,
            headers: format!("x-request-id: {all}\r\nretry-after-ms: 1\r\nserver: {all}\r\n{more}"),
            body: json!({ "error": { "message": format!("you sent {all}; try again in 1ms"), "code": all, "type": all, "param": all } })
                .to_string(),
        }
        };
        let inside = match dialect {
            Dialect::Responses => json!({ "type": "error", "message": format!("with {all}"), "code": "server_error" }),
            Dialect::Chat => json!({ "error": { "message": format!("with {all}"), "code": 500 } }),
            Dialect::Anthropic => {
                json!({ "type": "error", "error": { "type": "api_error", "message": format!("with {all}") } })
            }
        };
        let broken = format!("{HEAD}{}{}", opening(dialect, "Half. "), event(&inside));
        let page = format!("HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close\r\n\r\n<p>{all}</p>");
        let away = format!("location: http://127.0.0.1:1/?k={}\r\n", canary("query"));
        let server = Server::start(vec![
            refuse(429, ""),
            call("c1", "bash", json!({ "command": CURIOUS })),
            call("c2", "write", json!({ "path": "b.txt", "content": "b\n" })),
            refuse(503, ""),
            text("Done."),
            Reply::Raw(vec![Act::Send(broken.into_bytes())]),
            refuse(500, ""),
            Reply::Raw(vec![Act::Send(page.into_bytes())]),
            refuse(302, &away),
            refuse(401, ""),
            refuse(400, ""),
            refuse(404, ""),
        ]);
        // A second provider, whose key a command prints: to its stderr too.
        let printed = shell.aside("config.toml", &canary("printed"));
        let echo = Reply::Refuse {
            status: 401,
            headers: format!("x-request-id: {}\r\n", canary("printed")),
            body: json!({ "error": { "message": format!("you sent {}", canary("printed")) } }).to_string(),
        };
        let refusing = Server::start(vec![echo; 8]);
        let commands = format!(
            "[providers.printed]\ndialect = \"{0}\"\nbase_url = \"{1}\"\napi_key_command = \"cat {2}; cat {2} >&2\"\n\
             [providers.failing]\ndialect = \"{0}\"\nbase_url = \"{1}\"\napi_key_command = \"cat {2}; cat {2} >&2; false\"\n",
            dialect.name(),
            refusing.url,
            printed.display(),
        );
        let own = format!(
            "[providers.own]\ndialect = \"{}\"\nbase_url = \"{}?sig={}\"\napi_key_env = \"MY_PASS_PHRASE\"\n\
             [providers.own.headers]\nx-team = \"{}\"\n[requests]\nattempts = 2\nfirst_wait = 0.01\n",
            dialect.name(),
            server.url,
            canary("query"),
            canary("header"),
        );
        shell.configure(&(commands + &own));
        let record = shell.home().with_file_name("record.json").display().to_string();
        let mut run = |args: &[&str]| {
            let mut command = shell.command(args);
            let ran = ran(command.envs(environment()).output().expect("the binary starts"));
            for (stream, text) in [("stdout", &ran.stdout), ("stderr", &ran.stderr)] {
                sinks += 1;
                if text.contains(CANARY) {
                    let line = text.lines().find(|line| line.contains(CANARY)).unwrap_or_default();
                    let line: String = line.chars().take(400).collect();
                    leaks.push(format!("{} {args:?} {stream}: {line}", dialect.name()));
                }
            }
            ran
        };
        let own = ["--provider", "own", "--model", "m", "--headless", "--write"];
        let first = run(&[&own[..], &["--format", "jsonl", "--record", &record, "x"]].concat());
        assert_eq!(first.code, 0, "{}", first.stderr);
        assert!(first.stdout.contains("PATH=") && server.keys().iter().all(|it| it.contains(CANARY)));
        for format in
            [&[][..], &["--json"], &["--format", "jsonl"], &["--error-format", "flat", "--json"], &[], &["--json"]]
        {
            run(&[&own[..], format, &["again"]].concat());
        }
        for provider in ["printed", "failing"] {
            for line in ["--json x", "--format jsonl x", "x"] {
                let of = ["--provider", provider, "--model", "m", "--headless"];
                run(&[&of[..], &line.split(' ').collect::<Vec<_>>()].concat());
            }
            run(&["doctor", "--online", "--provider", provider, "--model", "m", "--json"]);
            run(&["auth", "status", provider, "--json"]);
        }
        assert!(refusing.keys().iter().any(|it| it.contains(CANARY)), "the printed key is sent");
        // An address with a password, and one that nothing answers.
        for address in ["http://me:PW@127.0.0.1:1/v1?k=PW", "https://127.0.0.1:1/v1?k=PW", "ftp://me:PW@h/"] {
            let address = address.replace("PW", &canary("address"));
            run(&["--base-url", &address, "--model", "m", "--headless", "--json", "x"]);
            run(&["doctor", "--base-url", &address, "--model", "m", "--json"]);
        }
        let out = shell.home().with_file_name("exported").display().to_string();
        for line in [
            "doctor",
            "doctor --json",
            "auth status",
            "auth status --json",
            "models list --json",
            "models list",
            "schema",
            "sessions list --json",
            "sessions show last --json",
            "sessions export last",
            "sessions export last --to html",
            "sessions export last --to json",
            "inspect last",
            "inspect last --json",
            "replay last",
            "replay last --cast -",
            "diagnose last",
            "diagnose last --json",
            "tree last --json",
            "permissions list --json",
            "trust --list --json",
            "permissions why env --json",
            "run env",
            "run --raw env",
            "tools list",
            "gc --dry-run --json",
            "undo last --dry-run --json",
        ] {
            run(&line.split(' ').collect::<Vec<_>>());
        }
        for name in ["md", "html", "json"] {
            run(&["sessions", "export", "last", "--to", name, "--output", &format!("{out}.{name}")]);
        }
        // The interface, its title and the text that it leaves behind.
        let variables = environment();
        let mut variables: Vec<(&str, &str)> = variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let settings = shell.home().with_file_name(".config").display().to_string();
        variables.push(("XDG_CONFIG_HOME", &settings));
        let mut terminal = Terminal::of(
            &shell,
            env!("CARGO_BIN_EXE_pixir").as_ref(),
            &["--provider", "own", "--model", "m"],
            &variables,
            100,
            30,
        );
        terminal.wait_for("Ask pixir");
        terminal.send("go\r");
        terminal.wait_for("fix:");
        terminal.send("\x04");
        let bytes = terminal.end().bytes;
        sinks += 1;
        if String::from_utf8_lossy(&bytes).contains(CANARY) {
            leaks.push(format!("{}: the interface", dialect.name()));
        }
        sinks += 1;
        leaks.extend(found(shell.home().parent().expect("a folder")).iter().map(|it| it.display().to_string()));
    }
    figures(&format!("QS8: {sinks} sinks searched, {} with a secret", leaks.len()));
    assert!(leaks.is_empty(), "{}", leaks.join("\n"));
}
