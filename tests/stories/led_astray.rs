//! A workspace that steers the programs which run unasked, or what later commands see.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use super::readers::{called, commands, git, judged, repository};
use crate::shell::Shell;

/// Printed by code of the workspace, and the text of a file outside it.
const CANARY: &str = "canary-CODE";

/// Broken builds: `git config` with any one word is a key; `names_code` is false; `unasked` compares folders of `PATH` by their
/// text.
#[test]
fn no_code_of_the_workspace_runs_unasked() {
    let shell = Shell::new(&[]);
    let root = shell.workspace();
    repository(&root);
    git(&root, &["config", "core.editor", &format!("echo {CANARY}; true")]);
    shell.write("sitecustomize.py", &format!("print('{CANARY}')\n"));
    for name in ["cat", "git", "grep"] {
        let path = shell.write(&format!("bin/{name}"), &format!("#!/bin/sh\necho {CANARY}\n"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("chmod");
    }
    // A user's own name for the same folder.
    let link = root.parent().expect("a parent").join("link");
    symlink(&root, &link).expect("a symlink");
    let path = format!("{}:{}", link.join("bin").display(), std::env::var("PATH").unwrap_or_default());
    let variables = [("PATH", path), ("PYTHONPATH", ".".to_owned())];
    let lines = [
        "git config edit",
        "git config -z edit",
        "git config --global edit",
        "pip --version",
        "pip3 --version",
        "cat in",
        "git status",
        "grep -n one in",
    ];
    let calls: Vec<(&str, serde_json::Value)> = commands(lines).into_iter().map(|args| ("bash", args)).collect();
    for tier in ["ns", "ll"] {
        let ran = called(&shell, &calls, &["--mode", "read-only", "--sandbox", tier], &variables);
        for (line, (verdict, output)) in lines.iter().zip(&ran) {
            assert!(!output.contains(CANARY), "{tier}: {line}: {verdict}: {output}");
        }
        assert!(
            ran[5].1.contains("one") && ran[6].1.contains("branch") && ran[7].1.contains("1:one"),
            "{tier}: {ran:?}"
        );
        // Reading the settings is still free.
        let reads = judged(&shell, &commands(["git config user.name; git config --list"]), &["--mode", "read-only"]);
        assert_eq!(reads[0].0, "allow", "{reads:?}");
    }
}

/// Folders that variables name are shown to commands, and caches among them may be changed. A command exchanges one in the
/// workspace for a symlink; the next Session follows it nowhere.
///
/// Broken build: `is_led_astray` is false.
#[test]
fn a_symlink_that_a_command_left_shows_the_next_session_nothing() {
    for tier in ["ns", "ll"] {
        for at_home in [false, true] {
            let shell = Shell::new(&[("target/old", ""), (".venv/bin/x", "")]);
            let root = shell.workspace();
            let outside = root.parent().expect("a parent").join("outside");
            fs::create_dir_all(outside.join("bin")).expect("mkdir");
            fs::write(outside.join("secret"), CANARY).expect("write");
            let text = |name: &str| root.join(name).display().to_string();
            let path = format!("{}:{}", text(".venv/bin"), std::env::var("PATH").unwrap_or_default());
            let mut variables =
                vec![("CARGO_TARGET_DIR", text("target")), ("VIRTUAL_ENV", text(".venv")), ("PATH", path)];
            if at_home {
                variables.push(("HOME", root.display().to_string()));
            }
            let shown = outside.display();
            let run = |line: String| {
                let call = [("bash", serde_json::json!({ "command": line }))];
                called(&shell, &call, &["--mode", "auto", "--sandbox", tier], &variables)[0].1.clone()
            };
            run(format!(
                "rm -rf target .venv; ln -s {shown} target; ln -s {shown} .venv; ln -s {shown} .npm; ln -s {shown} go"
            ));
            let told = run(format!(
                "cat {shown}/secret target/secret .venv/secret .npm/secret; echo x > {shown}/a; echo x > target/b; \
                 echo x > .npm/c; echo here"
            ));
            assert!(told.contains("here") && !told.contains(CANARY), "{tier} {at_home}: {told}");
            let left: Vec<_> = fs::read_dir(&outside).expect("there").flatten().map(|it| it.file_name()).collect();
            assert_eq!(left.len(), 2, "{tier} {at_home}: {left:?}");
        }
    }
}

/// The workspace is the home folder. Its secrets stay out of reach, under other names too.
///
/// Broken builds: `hiding_secrets_of` is not called; `View::change` has no folders on the way to what is hidden.
#[test]
fn a_home_folder_as_the_workspace_keeps_its_secrets() {
    for tier in ["ns", "ll"] {
        let secrets = [".config/gh/hosts.yml", ".netrc", ".aws/credentials", ".local/share/keyrings/k", ".ssh/id_rsa"];
        let mut all: Vec<(&str, &str)> = secrets.iter().map(|path| (*path, CANARY)).collect();
        all.push(("project/notes", "plain\n"));
        let shell = Shell::new(&all);
        let variables = [("HOME", shell.workspace().display().to_string())];
        let mut calls: Vec<(&str, serde_json::Value)> =
            secrets.iter().map(|path| ("read", serde_json::json!({ "path": path }))).collect();
        calls.push(("grep", serde_json::json!({ "pattern": "canary" })));
        calls.push(("read", serde_json::json!({ "path": "project/notes" })));
        let lines = [
            "mv .config c2; mv .local l2; mv .aws a2; mv .ssh s2; true",
            "cat c2/gh/hosts.yml l2/share/keyrings/k a2/credentials s2/id_rsa .config/gh/hosts.yml; true",
            "ln .netrc n2; cat n2 .netrc; cp -r .config c3; cat c3/gh/hosts.yml; true",
            "grep -r canary . ; true",
        ];
        calls.extend(commands(lines).into_iter().map(|args| ("bash", args)));
        let ran = called(&shell, &calls, &["--mode", "auto", "--sandbox", tier], &variables);
        for ((_, args), (verdict, output)) in calls.iter().zip(&ran) {
            assert!(!output.contains(CANARY), "{tier}: {args}: {verdict}: {output}");
        }
        assert!(ran[secrets.len() + 1].1.contains("plain"), "{tier}: {ran:?}");
        let mut written = vec![("write", serde_json::json!({ "path": ".netrc", "content": "mine" }))];
        written.push(("write", serde_json::json!({ "path": "project/notes", "content": "mine" })));
        let ran = called(&shell, &written, &["--mode", "auto", "--sandbox", tier], &variables);
        assert!(ran[0].0 != "allow" && ran[1].0 == "allow", "{tier}: {ran:?}");
        for path in secrets {
            assert_eq!(shell.read(path), CANARY, "{tier}: {path}");
        }
    }
}

/// A command that has the network reaches no socket of the machine by an abstract name: behind such names are screens.
///
/// Broken build: `close_abstract_sockets` is not called.
#[test]
fn the_network_leads_to_no_abstract_socket() {
    use std::os::linux::net::SocketAddrExt as _;
    use std::os::unix::net::{SocketAddr, UnixListener};

    let name = format!("pixir-{}", crate::shell::mark());
    let _listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).expect("a name")).expect("bind");
    let shell = Shell::new(&[]);
    let line = format!(
        "perl -e 'use Socket; socket(my $s, PF_UNIX, SOCK_STREAM, 0); connect($s, pack(\"Sa*\", 1, \"\\0{name}\")) \
         and print \"{CANARY}\\n\"; print \"$!\\n\"'"
    );
    for tier in ["ns", "ll"] {
        let flags = ["--mode", "auto", "--sandbox", tier, "--allow", "network"];
        let ran = judged(&shell, &commands([line.as_str()]), &flags);
        assert!(!ran[0].1.contains(CANARY) && ran[0].0 == "allow", "{tier}: {ran:?}");
    }
    let control = std::process::Command::new("bash").args(["-c", &line]).output().expect("bash starts");
    assert!(String::from_utf8_lossy(&control.stdout).contains(CANARY), "without a sandbox it works");
}
