//! What a command had to do without is said where it mattered, and a program that waits for keys ends at once.

use std::net::TcpListener;
use std::time::Duration;

use serde_json::json;

use crate::shell::{Shell, ran, run_within};

/// The output of a command in a Session that may change everything, with these variables of the user.
fn result(shell: &Shell, command: &str, variables: &[(&str, &str)], flags: &[&str]) -> String {
    let script =
        json!({ "steps": [{ "calls": [{ "name": "bash", "args": { "command": command } }] }, { "text": "Done." }] });
    let file = format!("script:{}", shell.aside("script.json", &script.to_string()).display());
    let mut args = vec!["--headless", "--mode", "auto", "--format", "jsonl", "--provider", &file];
    args.extend(flags);
    args.push("go");
    let mut command = shell.command(args);
    command.envs(variables.iter().copied());
    let (output, hung) = run_within(&mut command, Duration::from_secs(60));
    assert!(!hung, "{output:?}");
    let lines = ran(output).lines();
    let result = lines.iter().find(|it| it["type"] == "tool_result").unwrap_or_else(|| panic!("{lines:?}"));
    result["data"]["output"].as_str().expect("text").to_owned()
}

/// Broken build (ce783d9e): `no output [exit:0]`.
#[test]
fn a_command_that_ran_without_the_network_says_so() {
    let shell = Shell::new(&[("a.txt", "alpha\n")]);
    for command in [
        "curl -s https://example.com | head",
        "wget -qO- https://example.com | wc -c",
        "curl -fsS https://example.com/x.json 2>/dev/null || true",
        "git ls-remote https://example.com/x.git 2>/dev/null | wc -l",
        "curl -s https://example.com > page.html; ls page.html",
        "ssh -o BatchMode=yes host.example.com true 2>/dev/null; echo done",
    ] {
        let text = result(&shell, command, &[], &[]);
        assert!(
            text.contains("without the network") || text.contains("the sandbox blocked the network"),
            "{command}: {text}"
        );
    }
    for command in
        ["cat a.txt", "curl --version", "grep -c curl a.txt || true", "echo curl https://example.com", "false"]
    {
        assert!(!result(&shell, command, &[], &[]).contains("network"), "{command}");
    }
}

/// Broken build (ce783d9e): the command fails, and nothing says that the user has the variable and commands do not.
#[test]
fn a_variable_that_commands_do_not_get_is_named() {
    let shell = Shell::new(&[("fails.sh", "echo \"DATABASE_URL is not set\" >&2; exit 1\n")]);
    let variables =
        [("DATABASE_URL", "postgres://me:secret@db/x"), ("LD_LIBRARY_PATH", "/opt/lib"), ("MY_SERVICE_HOST", "h")];
    for (command, name) in [
        ("test -n \"$DATABASE_URL\"", "DATABASE_URL"),
        ("bash fails.sh", "DATABASE_URL"),
        ("printenv MY_SERVICE_HOST", "MY_SERVICE_HOST"),
        ("python3 -c 'import os; os.environ[\"MY_SERVICE_HOST\"]'", "MY_SERVICE_HOST"),
        ("echo './x: error while loading shared libraries: libx.so' >&2; exit 127", "LD_LIBRARY_PATH"),
    ] {
        let text = result(&shell, command, &variables, &[]);
        assert!(
            text.contains(&format!("note: {name} is set for the user, but commands do not get it")),
            "{command}: {text}"
        );
        assert!(text.contains(&format!("environment = [\"{name}\"]")) && !text.contains("secret"), "{command}: {text}");
    }
    for command in ["true", "DATABASE_URL=x bash -c 'exit 1'", "bash fails.sh || true; echo ok", "exit 3"] {
        let text = result(&shell, command, &variables, &[]);
        assert!(!text.contains("is set for the user"), "{command}: {text}");
    }
    shell.configure("environment = [\"DATABASE_URL\"]\n");
    let given = result(&shell, "test -n \"$DATABASE_URL\" && echo given", &variables, &[]);
    assert!(given.contains("given") && !given.contains("note:"), "{given}");
}

/// Broken build (ce783d9e): the error of the program alone, which does not say where the proxy comes from.
#[test]
fn a_dead_proxy_is_named() {
    let shell = Shell::new(&[]);
    let port = TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr()).expect("a port").port();
    let proxy = format!("http://user:hush@127.0.0.1:{port}");
    shell.configure("environment = [\"HTTPS_PROXY\", \"https_proxy\", \"http_proxy\"]\n");
    for variable in ["HTTPS_PROXY", "https_proxy"] {
        for command in ["curl -sS -m 10 https://example.com", "curl -m 10 https://example.com -o x"] {
            let text = result(&shell, command, &[(variable, &proxy)], &["--allow", "network"]);
            assert!(
                text.contains(&format!("commands use the proxy 127.0.0.1:{port} of the variable {variable}")),
                "{command}: {text}"
            );
            assert!(!text.contains("hush"), "{text}");
        }
    }
}

/// Broken build (ce783d9e): the program runs into the time limit of two minutes.
#[test]
fn a_program_that_waits_for_keys_ends_at_once() {
    let shell = Shell::new(&[("a.txt", "alpha\n")]);
    for (command, program) in [
        ("vim a.txt", "vim"),
        ("vi -R a.txt | cat", "vi"),
        ("cat a.txt && nano a.txt", "nano"),
        ("top", "top"),
        ("TERM=xterm htop", "htop"),
        ("sudo vim /etc/hosts", "vim"),
        ("watch -n 1 ls", "watch"),
        ("timeout 300 emacs -nw a.txt", "emacs"),
    ] {
        let text = result(&shell, command, &[], &[]);
        assert!(text.contains(&format!("`{program}` draws on a terminal and waits for keys")), "{command}: {text}");
    }
    for command in [
        "less a.txt",
        "more a.txt | cat",
        "vim --version | head -1 || true",
        "grep -c vim a.txt || true",
        "top -b -n 1 | head -1",
    ] {
        let text = result(&shell, command, &[], &[]);
        assert!(!text.contains("waits for keys"), "{command}: {text}");
    }
}
