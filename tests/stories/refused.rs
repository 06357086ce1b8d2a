//! What the sandbox refuses to a command that the user allowed: recognised, named, and offered once.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use serde_json::json;

use super::readers::git;
use crate::driver::{Pixir, calls, says};
use crate::shell::Shell;

/// Runs commands in `auto`, where no user can be asked; returns the output of each.
fn outputs(shell: &Shell, tier: &str, commands: &[String]) -> Vec<String> {
    let calls = commands.iter().map(|it| json!({ "name": "bash", "args": { "command": it } })).collect::<Vec<_>>();
    shell.outputs([json!({ "calls": calls }), json!({ "text": "done" })], &["--mode", "auto", "--sandbox", tier])
}

/// A server of the user at this address, which answers every request with `served`. It ends with the tests.
fn server(address: &str) -> u16 {
    let listener = TcpListener::bind((address, 0)).expect("a port");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 1024]);
            let _ = stream.write_all(b"HTTP/1.0 200 OK\r\ncontent-length: 7\r\n\r\nserved\n");
        }
    });
    port
}

/// Broken builds: only absolute paths are looked for; a file that is not shown is taken for one that is missing; the output of
/// a line with a pipe is searched only if it failed; a refused connection is never that of a server of the machine.
#[test]
fn what_the_sandbox_refused_is_named() {
    let shell = Shell::new(&[("src/a", "a\n")]);
    git(&shell.workspace(), &["init", "-q", "."]);
    let home = shell.workspace().canonicalize().expect("there").parent().expect("a parent").to_owned();
    fs::write(home.join("notes"), "mine\n").expect("write");
    let (home, port) = (home.display(), server("127.0.0.1"));
    let refused = [
        ("ns", "echo x > ../o".to_owned(), format!("the sandbox blocked {home}/o")),
        ("ns", "git worktree add ../wt".to_owned(), format!("the sandbox blocked {home}/wt")),
        ("ns", "cp src/a .git/hooks/pre-commit".to_owned(), "the sandbox blocked .git/hooks/pre-commit".to_owned()),
        ("ns", "sed -i s/bare/bear/ .git/config".to_owned(), "the sandbox blocked .git/".to_owned()),
        ("ns", "touch made; cat ~/notes".to_owned(), format!("the sandbox does not show {home}/notes")),
        ("ns", "touch made; cat ../notes 2>&1 | tail -1".to_owned(), format!("the sandbox does not show {home}/notes")),
        ("ns", format!("curl http://127.0.0.1:{port}/"), "the sandbox blocked the network".to_owned()),
        ("ns", format!("curl -s http://localhost:{port}/ | head -3"), "the sandbox blocked the network".to_owned()),
        (
            "ns",
            "touch made; curl http://no.example 2>&1 | tail -1".to_owned(),
            "the sandbox blocked the network".to_owned(),
        ),
        ("ll", "python3 -c 'import socket; socket.socket()'".to_owned(), "the sandbox blocked the network".to_owned()),
        // Nothing of the sandbox is in the way of these.
        ("ns", "touch made; cat missing ../none".to_owned(), String::new()),
        (
            "ns",
            "touch made; echo 'cannot move /usr/bin/env: No such file or directory'; exit 1".to_owned(),
            String::new(),
        ),
        ("ns", "touch made; curl http://127.0.0.1:1/".to_owned(), String::new()),
        ("ns", "touch made; echo 'Could not resolve host: x'".to_owned(), String::new()),
        (
            "ns",
            "chmod 000 src/a; [ $(id -u) = 0 ] || cat src/a; echo 'src/a: Permission denied'; exit 1".to_owned(),
            String::new(),
        ),
    ];
    for tier in ["ns", "ll"] {
        let rows: Vec<_> = refused.iter().filter(|(it, ..)| *it == tier).collect();
        let commands: Vec<String> = rows.iter().map(|(_, command, _)| command.clone()).collect();
        for ((_, command, wanted), output) in rows.into_iter().zip(outputs(&shell, tier, &commands)) {
            let is_named = output.contains("the sandbox ");
            assert!(if wanted.is_empty() { !is_named } else { output.contains(wanted) }, "{tier}: {command}: {output}");
        }
    }
}

/// Commands of git that change the configuration of the repository, and what each writes there; nothing where the kernel
/// keeps it in namespaces.
const CONFIGURES: [(&str, &str); 5] = [
    ("git remote add origin https://example.com/x.git", "https://example.com/x.git"),
    ("git config user.name Ada 2>&1 | tail -1", "Ada"),
    ("git branch -u main other", "[branch \"other\"]"),
    ("git checkout -q -t -b third main && git status --short", "[branch \"third\"]"),
    ("git -c user.name=a config user.email a@b.example", ""),
];

/// Git replaces its configuration, which no mount allows. Its own commands may do so, and the user decides what stays.
///
/// Broken builds: `config_keeper` always names the kernel; the guard takes the file for one that the kernel keeps.
#[test]
fn git_changes_its_configuration_and_the_user_decides_what_stays() {
    for tier in ["ns", "ll"] {
        let shell = Shell::new(&[("a", "a\n")]);
        let root = shell.workspace();
        git(&root, &["init", "-q", "."]);
        git(&root, &["config", "user.name", "a"]);
        git(&root, &["config", "user.email", "a@a"]);
        git(&root, &["add", "-A"]);
        git(&root, &["commit", "-qm", "first"]);
        git(&root, &["branch", "other"]);
        let before = shell.read(".git/config");
        for (command, written) in CONFIGURES.iter() {
            let output = outputs(&shell, tier, &[(*command).to_owned()]).remove(0);
            assert_eq!(shell.read(".git/config"), before, "{tier}: {command}: no user has agreed");
            let is_refused = output.contains("busy") && output.contains("the sandbox blocked .git/config");
            let is_back = output.contains("the command changed .git/config, which is protected; it was put back");
            // `-c` could name a program.
            assert_eq!(
                (is_back, is_refused),
                (!written.is_empty() || tier == "ll", written.is_empty() && tier == "ns"),
                "{tier}: {command}: {output}"
            );
        }
        // A hook could run anything of the workspace while the configuration is open.
        let hook = root.join(".git/hooks/post-checkout");
        fs::create_dir_all(hook.parent().expect("a parent")).expect("mkdir");
        fs::write(hook, "#!/bin/sh\n").expect("write");
        let output = outputs(&shell, tier, &["git config user.name Ada".to_owned()]).remove(0);
        assert_eq!(output.contains("the sandbox blocked .git/config"), tier == "ns", "{tier}: {output}");
        assert_eq!(shell.read(".git/config"), before, "{tier}");
    }
}

/// Broken build: as above; the user is asked twice, or what was kept is lost.
#[tokio::test]
async fn a_remote_that_the_user_agreed_to_is_there() {
    let add = || calls("bash", json!({ "command": "git remote add origin https://example.com/x.git" }));
    let mut pixir = Pixir::new(vec![add(), says("Added."), add(), says("Again.")], &[("a", "a\n")]);
    git(&pixir.path("."), &["init", "-q", "."]);
    pixir.does("go<Enter>").await;
    let screen = pixir.does("<A-y>").await;
    assert!(screen.contains("+ [remote \"origin\"]"), "the user sees what changes:\n{screen}");
    let screen = pixir.does("<A-y>").await;
    assert!(screen.contains("Added."), "{screen}");
    assert!(pixir.file(".git/config").contains("url = https://example.com/x.git"), "{}", pixir.file(".git/config"));
}

/// Broken build: the first approval leaves the network out, so that the command fails and the user is asked again.
#[tokio::test]
async fn a_command_of_the_network_is_asked_about_once() {
    // Another address of this machine, which nothing but the network leads to.
    let port = server("127.0.0.2");
    let get = |host: &str| calls("bash", json!({ "command": format!("curl -s http://{host}:{port}/") }));
    let mut pixir = Pixir::new(vec![get("127.0.0.2"), says("Got it.")], &[]);
    let screen = pixir.does("go<Enter>").await;
    assert!(screen.contains("uses the network (curl), with the network"), "{screen}");
    let screen = pixir.does("<A-y>").await;
    assert!(screen.contains("served") && screen.contains("Got it."), "{screen}");

    // A job of the Session is reached without it.
    let mut pixir = Pixir::new(vec![get("127.0.0.1"), says("No.")], &[]);
    let screen = pixir.does("go<Enter>").await;
    assert!(screen.contains("uses the network (curl)") && !screen.contains("with the network"), "{screen}");
}

/// Broken builds: `auto` starts it without the network, so that it fails first; the answer for one command is one for all.
#[tokio::test]
async fn what_auto_allows_is_asked_about_the_network_before_it_runs() {
    let port = server("127.0.0.2");
    let get =
        |made: &str| calls("bash", json!({ "command": format!("touch {made}; curl -s http://127.0.0.2:{port}/") }));
    let steps = vec![get("a"), says("Got it."), get("b"), says("Not this time.")];
    let mut pixir = Pixir::new(steps, &[]);
    pixir.does("/mode auto<Enter>").await;
    let screen = pixir.does("go<Enter>").await;
    assert!(screen.contains("uses the network (curl), with the network"), "{screen}");
    assert!(!pixir.path("a").exists(), "nothing has run");
    let screen = pixir.does("<A-y>").await;
    assert!(screen.contains("served") && screen.contains("Got it."), "{screen}");
    let screen = pixir.does("again<Enter>").await;
    assert!(screen.contains("uses the network (curl), with the network"), "{screen}");
    let screen = pixir.does("<A-n>").await;
    assert!(screen.contains("Not this time.") && !pixir.path("b").exists(), "{screen}");
}
