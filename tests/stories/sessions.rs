//! Sessions at rest: lists, names, the trash, exports, inspection.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::undo::tree_of;
use crate::pty::Terminal;
use crate::server::{Dialect, Server, call, text};
use crate::shell::{Ran, Shell, entries, figures};
use crate::wait;

pub(super) fn done(ran: &Ran) -> Value {
    assert_eq!(ran.code, 0, "{}\n{}", ran.stdout, ran.stderr);
    ran.document()
}

/// A session that read a file, changed it, and produced a long output.
pub(super) fn session(shell: &Shell) -> String {
    let script = json!({ "steps": [
        { "text": "I look.", "reasoning": "Hm, a `list`.", "calls": [
            { "name": "read", "args": { "path": "a.txt" } }, { "name": "bash", "args": { "command": "seq 1 5000" } } ] },
        { "text": "I change it.", "calls": [
            { "name": "edit", "args": { "path": "a.txt", "old_text": "alpha", "new_text": "omega" } },
            { "name": "bash", "args": { "command": "exit 3" } } ] },
        { "text": "## Done\n\n| a | b |\n|---|---|\n| 1 | <script>alert(1)</script> |\n\n```rust\nfn main() {}\n```\n- it **works**" },
    ] });
    let path = shell.aside("script.json", &script.to_string());
    let provider = format!("script:{}", path.display());
    let ran = shell.run(["--provider", &provider, "--headless", "--json", "--write", "change <alpha> to omega"]);
    done(&ran)["session_id"].as_str().expect("an id").to_owned()
}

#[test]
fn a_session_is_found_by_id_prefix_name_and_last() {
    let shell = Shell::new(&[("a.txt", "alpha\n")]);
    let id = session(&shell);
    let renamed = done(&shell.run(["sessions", "rename", &id[..10], "the parser", "--json"]));
    assert_eq!(renamed["session_id"], json!(id));
    for how in [id.as_str(), &id[..12], "the parser", "last"] {
        let shown = done(&shell.run(["sessions", "show", how, "--json"]));
        assert_eq!((&shown["session"]["id"], &shown["session"]["name"]), (&json!(id), &json!("the parser")), "{how}");
        assert_eq!(shown["files_changed"][0]["path"], "a.txt");
    }
    for wrong in ["the parsr", "../../etc/passwd", "20200101T000000-000000"] {
        let ran = shell.run(["sessions", "show", wrong, "--json"]);
        assert_eq!((ran.code, &ran.error()["code"]), (5, &json!("SESSION_NOT_FOUND")), "{wrong}");
    }
    assert!(
        shell.run(["sessions", "show", "the parsr", "--json"]).error()["remediation"]
            .to_string()
            .contains("the parser")
    );
    // It is found from another folder too, and the output names its workspace.
    let elsewhere = shell.workspace().join("sub");
    fs::create_dir(&elsewhere).expect("mkdir");
    let mut command = shell.command(["sessions", "show", &id, "--json"]);
    assert!(command.current_dir(&elsewhere).status().expect("it runs").success());
    let mut command = shell.command(["resume", &id, "x", "--headless", "--json"]);
    let ran = crate::shell::ran(command.current_dir(&elsewhere).output().expect("it runs"));
    let workspace = shell.workspace().canonicalize().expect("a folder").display().to_string();
    assert!(ran.error()["remediation"].as_str().expect("a fix").ends_with(&format!("--workspace {workspace}")));
}

/// Broken build (ce783d9e): `pixir resume` without an id is an error, although a list to choose from exists.
#[test]
fn resume_without_an_id_offers_the_sessions_on_a_terminal() {
    let shell = Shell::new(&[("a.txt", "alpha\n")]);
    let id = session(&shell);
    let mut terminal = Terminal::start(&shell, &["--provider", "demo", "resume"], 100, 30);
    terminal.wait_that("the list is open", |screen| screen.contains("╭ Sessions") && screen.contains("change <alpha>"));
    terminal.send("\r");
    terminal.wait_for("it works");
    terminal.send("\x04");
    let left = terminal.end();
    left.assert_sane();
    assert!(String::from_utf8_lossy(&left.bytes).contains(&format!("pixir resume {id}")));
    // Who leaves the list is in a new session, and nothing is sent.
    let mut terminal = Terminal::start(&shell, &["--provider", "demo", "resume"], 100, 30);
    terminal.wait_that("the list is open", |screen| screen.contains("╭ Sessions") && screen.contains("change <alpha>"));
    terminal.send("\x1b");
    terminal.wait_that("the list is closed", |screen| !screen.contains("╭ Sessions"));
    terminal.send("\x04");
    terminal.end().assert_sane();
    let without = shell.run(["resume", "--json"]);
    assert_eq!((without.code, &without.error()["code"]), (2, &json!("USAGE")));
    assert!(without.error()["remediation"].as_str().expect("a fix").contains("pixir resume --last"));
}

#[test]
fn sessions_list_is_bounded_and_continues_at_its_cursor() {
    let shell = Shell::new(&[("a.txt", "alpha\n")]);
    let mut ids: Vec<String> = (0..3)
        .map(|_| {
            shell.write("a.txt", "alpha\n");
            session(&shell)
        })
        .collect();
    ids.reverse();
    let first = done(&shell.run(["sessions", "list", "--json", "--limit", "2", "--select", "id,usage.input,turns"]));
    assert_eq!(first["sessions"][0], json!({ "id": ids[0], "usage.input": 0, "turns": 1 }));
    assert_eq!((&first["nextCursor"], &first["total"]), (&json!(ids[1]), &json!(3)));
    let rest = done(&shell.run(["sessions", "list", "--json", "--cursor", &ids[1]]));
    assert_eq!((&rest["sessions"][0]["id"], &rest["nextCursor"]), (&json!(ids[2]), &Value::Null));
    assert_eq!(shell.run(["sessions", "list", "--json", "--select", "idd"]).error()["code"], "INVALID_ARGS");
    let tsv = shell.run(["sessions", "list", "--format", "tsv", "--select", "id,turns"]);
    let tsv: Vec<&str> = tsv.stdout.lines().collect();
    assert_eq!((tsv.len(), tsv[0], tsv[1]), (4, "id\tturns", format!("{}\t1", ids[0]).as_str()));
}

#[test]
fn the_index_yields_to_the_logs() {
    let shell = Shell::new(&[("a.txt", "alpha\n")]);
    let id = session(&shell);
    let list = || done(&shell.run(["sessions", "list", "--json"]))["sessions"].clone();
    let before = list();
    let index = shell.logs()[0].parent().expect("a folder").join("index.jsonl");
    assert!(index.is_file(), "a turn that ended has left its line");
    for broken in ["", "not json\n{\"also\": \"not\"}\n", "\u{0}\u{0}"] {
        fs::write(&index, broken).expect("write");
        assert_eq!(list(), before);
    }
    fs::remove_file(&index).expect("remove");
    assert_eq!(list(), before);
    // The index reads the new Entries; a line for another Log is ignored.
    let text = fs::read_to_string(&index).expect("read");
    fs::write(&index, text.replace("alpha", "ALPHA").replace("\"turns\":1", "\"turns\":9")).expect("write");
    done(&shell.run(["sessions", "rename", &id, "new name", "--json"]));
    assert_eq!(list()[0]["name"], "new name");
    fs::remove_file(&index).expect("remove");
    assert_eq!((list()[0]["name"].clone(), list()[0]["turns"].clone()), (json!("new name"), json!(1)));
    // Opening one Session reads no other.
    let other = session(&shell);
    fs::remove_file(&index).expect("remove");
    done(&shell.run(["sessions", "show", &id, "--json"]));
    let lines = fs::read_to_string(&index).expect("read");
    assert!(lines.lines().count() == 1 && lines.contains(&id) && !lines.contains(&other), "{lines}");
    assert_eq!(list().as_array().map(Vec::len), Some(2));
}

#[test]
fn a_deleted_session_comes_back_whole_from_the_trash() {
    let shell = Shell::new(&[("a.txt", "alpha\n")]);
    let id = session(&shell);
    let before = tree_of(&shell.home().join("sessions"));
    let asked = shell.run(["sessions", "delete", &id, "--json"]);
    assert_eq!((asked.code, &asked.error()["code"]), (12, &json!("CONFIRMATION_NEEDED")));
    assert_eq!(shell.run(["sessions", "delete", "last", "--yes", "--json"]).code, 5, "it has to be named in full");
    done(&shell.run(["sessions", "delete", &id, "--yes", "--dry-run", "--json"]));
    assert_eq!(shell.logs().len(), 1);
    done(&shell.run(["sessions", "delete", &id, "--yes", "--json"]));
    assert_eq!(shell.logs().len(), 0);
    assert_eq!(done(&shell.run(["sessions", "list", "--json"]))["total"], 0);
    let trash = done(&shell.run(["sessions", "list", "--trash", "--json"]));
    assert_eq!(trash["trash"][0]["summary"]["id"], json!(id));
    done(&shell.run(["gc", "--yes", "--json"]));
    done(&shell.run(["sessions", "delete", &id, "--undo", "--json"]));
    assert_eq!(tree_of(&shell.home().join("sessions")), before);
    done(&shell.run(["undo", "--json"]));
    assert_eq!(shell.read("a.txt"), "alpha\n", "its versions of files were kept");
    assert_eq!(shell.run(["sessions", "delete", &id, "--undo", "--json"]).error()["code"], "SESSION_NOT_FOUND");
}

#[test]
fn gc_removes_only_what_no_session_names() {
    let shell = Shell::new(&[("a.txt", "alpha\n")]);
    let id = session(&shell);
    let log = shell.logs()[0].clone();
    let folder = log.parent().expect("a folder").to_owned();
    let before = tree_of(&shell.home());
    // Leftovers of a crash, an older Session and a deleted one.
    let stray = shell.home().join("blobs/ab/abababababababababababababababab.zst");
    fs::create_dir_all(stray.parent().expect("a parent")).expect("mkdir");
    fs::write(&stray, "x").expect("write");
    let begun = folder.join("20200101T000000-aaaaaa.begun");
    fs::write(&begun, "{").expect("write");
    let output = folder.join(&id).join("out/cmd-999.txt");
    fs::write(&output, "x").expect("write");
    let orphan = folder.join("20200101T000000-bbbbbb");
    fs::create_dir_all(orphan.join("out")).expect("mkdir");
    done(&shell.run(["gc", "--yes", "--json"]));
    assert!([&stray, &begun, &output, &orphan].iter().all(|path| path.exists()), "recent files are left alone");
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(86_400);
    for path in [&stray, &begun, &output, &orphan] {
        fs::File::open(path).expect("open").set_modified(old).expect("touch");
    }
    for blob in tree_of(&shell.home().join("blobs")).keys() {
        fs::File::open(shell.home().join("blobs").join(blob)).expect("open").set_modified(old).expect("touch");
    }
    let plan = done(&shell.run(["gc", "--dry-run", "--json"]))["garbage"].clone();
    assert_eq!(plan["blobs"], json!([stray]));
    assert_eq!(plan["leftovers"], json!([begun]));
    assert_eq!(plan["outputs"], json!([orphan, output]));
    assert!(stray.exists());
    assert_eq!(shell.run(["gc", "--json"]).code, 12);
    done(&shell.run(["gc", "--yes", "--json"]));
    fs::remove_dir(stray.parent().expect("a parent")).expect("it is empty");
    let after: Vec<String> = tree_of(&shell.home()).into_keys().filter(|name| !name.starts_with("log/")).collect();
    let expected: Vec<String> = before.into_keys().filter(|name| !name.starts_with("log/")).collect();
    assert_eq!(after, expected, "everything else is there");
}

#[test]
fn json_export_and_import_restore_log_and_files() {
    let shell = Shell::new(&[("a.txt", "alpha\n")]);
    let id = session(&shell);
    let before = fs::read(&shell.logs()[0]).expect("read");
    let outputs = |shell: &Shell| tree_of(&shell.logs()[0].with_extension("").join("out"));
    let saved = outputs(&shell);
    assert_eq!(saved.len(), 1, "a long output was saved");
    let exported = shell.run(["sessions", "export", "last", "--to", "json"]).stdout;
    let file = shell.aside("session.json", &exported);
    let file = file.to_str().expect("text");
    let there = done(&shell.run(["sessions", "import", file, "--json"]));
    assert_eq!(there["imported"]["already_there"], true);

    // The import restores lost file versions.
    fs::remove_dir_all(shell.home().join("blobs")).expect("remove");
    done(&shell.run(["sessions", "import", file, "--json"]));
    assert_eq!(shell.run(["diagnose", "--json"]).code, 0);

    // Another machine, the same workspace path.
    fs::remove_dir_all(shell.home()).expect("remove");
    assert_eq!(
        done(&shell.run(["sessions", "import", file, "--dry-run", "--json"]))["imported"]["session_id"],
        json!(id)
    );
    assert!(shell.logs().is_empty());
    done(&shell.run(["sessions", "import", file, "--json"]));
    assert_eq!(fs::read(&shell.logs()[0]).expect("read"), before);
    assert_eq!(outputs(&shell), saved);
    assert_eq!(shell.run(["sessions", "export", "last", "--to", "json"]).stdout, exported);
    done(&shell.run(["undo", "--json"]));
    assert_eq!(shell.read("a.txt"), "alpha\n");

    for (from, to) in [("omega", "OMEGA"), ("\"kind\": \"pixir-session\"", "\"kind\": \"recipe\"")] {
        let changed = shell.aside("changed.json", &exported.replace(from, to));
        let ran = shell.run(["sessions", "import", changed.to_str().expect("text"), "--json"]);
        assert_eq!(ran.error()["code"], "INVALID_ARGS", "{from} → {to}");
    }
}

#[test]
fn markdown_and_html_exports_contain_no_active_content() {
    let shell = Shell::new(&[("a.txt", "alpha\n")]);
    session(&shell);
    let markdown = shell.run(["sessions", "export", "last"]).stdout;
    for part in
        ["> change <alpha> to omega", "**read** `a.txt`", "-alpha\n+omega", "<details><summary>thinking", "## Done"]
    {
        assert!(markdown.contains(part), "{part} is missing:\n{markdown}");
    }
    let file = shell.workspace().join("out.html");
    let name = file.to_str().expect("text");
    let wrote = done(&shell.run(["sessions", "export", "last", "--to", "html", "--output", name, "--json"]));
    let html = fs::read_to_string(&file).expect("it was written");
    assert_eq!(wrote["bytes"], json!(html.len()));
    for part in
        ["change &lt;alpha&gt; to omega", "<table>", "<strong>works</strong>", "class=\"add\"", "prefers-color-scheme"]
    {
        assert!(html.contains(part), "{part} is missing");
    }
    for part in ["<script", "http://", "https://", "<img", "<link", "@import", "url("] {
        assert!(!html.contains(part), "{part} is in a page that should need nothing");
    }
    let again = shell.run(["sessions", "export", "last", "--to", "html", "--output", name, "--json"]);
    assert_eq!(again.error()["code"], "WRITE_FAILED", "an existing file is not overwritten");
}

/// An export that is killed leaves nothing for good: the next export removes its file, and the file of no export that runs.
///
/// Broken builds: nothing knows of the temporary file of an export; the sweep removes every file with such a name.
#[test]
fn what_a_killed_export_left_is_removed_by_the_next_one() {
    let shell = Shell::new(&[]);
    let text: String = (0..60_000).map(|n| format!("- line *{n}* of `a` long answer\n")).collect();
    let script = shell.aside("script.json", &json!({ "steps": [{ "text": text }] }).to_string());
    let said = shell.run(["--headless", "--provider", &format!("script:{}", script.display()), "go"]);
    assert_eq!(said.code, 0, "{}", said.stderr);
    let elsewhere = shell.home().with_file_name("elsewhere");
    fs::create_dir(&elsewhere).expect("mkdir");
    let own = shell.write(".pixir-0123456789abcdef0123456789abcdef.tmp", "a file of the user\n");
    let parts = |folder: &Path| -> Vec<PathBuf> {
        let all = fs::read_dir(folder).expect("a folder").flatten().map(|it| it.path());
        all.filter(|it| it.extension().is_some_and(|it| it == "tmp") && *it != own).collect()
    };
    let mut tried = 0;
    for (format, folder, name) in [
        ("md", shell.workspace(), "a.md".to_owned()),
        ("html", shell.workspace(), "./a.html".to_owned()),
        ("json", shell.workspace(), "a.json".to_owned()),
        ("html", elsewhere.clone(), elsewhere.join("b.html").display().to_string()),
        ("md", elsewhere.clone(), "../elsewhere/b.md".to_owned()),
    ] {
        let begin = |name: &str| {
            let mut child = shell
                .command(["sessions", "export", "last", "--to", format, "--output", name])
                .spawn()
                .expect("it starts");
            let begun = wait::within(wait::PATIENCE, || {
                !parts(&folder).is_empty() || child.try_wait().expect("it can be asked").is_some()
            });
            assert!(begun, "{format}: it hangs");
            let pid = Pid::from_child(&child);
            let _ = kill_process(pid, Signal::STOP);
            child
        };
        // One that was faster than the look is begun again.
        let (mut child, file) = loop {
            let mut child = begin(&name);
            if let [file] = parts(&folder).as_slice() {
                break (child, file.clone());
            }
            let _ = child.kill();
            let _ = child.wait();
            fs::remove_file(folder.join(&name)).expect("it has ended");
        };
        let other = folder.join("other");
        let second =
            shell.run(["sessions", "export", "last", "--to", format, "--output", &other.display().to_string()]);
        assert_eq!(second.code, 0, "{second:?}");
        assert!(file.exists(), "{format}: the file of an export that runs stays");
        child.kill().expect("it runs");
        child.wait().expect("it ends");
        assert!(file.exists() && !folder.join(&name).exists(), "{format}: it was killed in the middle");
        fs::remove_file(&other).expect("remove");
        let third = shell.run(["sessions", "export", "last", "--to", format, "--output", &other.display().to_string()]);
        assert_eq!(third.code, 0, "{third:?}");
        fs::remove_file(&other).expect("remove");
        assert_eq!(parts(&folder), Vec::<PathBuf>::new(), "{format}: nothing is left");
        tried += 1;
    }
    assert!(own.exists(), "a file of the user stays");
    figures(&format!("C13: {tried} exports were killed, 0 left a file after the next one"));
}

#[test]
fn inspect_prints_the_request_sent_at_an_entry() {
    for dialect in Dialect::ALL {
        let shell = Shell::new(&[("a.txt", "alpha\n"), ("AGENTS.md", "Be brief.\n")]);
        let server = Server::start(vec![
            call("c1", "read", json!({"path": "a.txt"})),
            call("c2", "edit", json!({"path": "a.txt", "old_text": "alpha", "new_text": "omega"})),
            text("Done."),
        ]);
        let mut args = server.flags(dialect);
        args.extend(["--headless", "--json", "--write", "change it"].map(str::to_owned));
        done(&shell.run(args));
        // The configuration file gives the server a name.
        let dialect_name = dialect.name();
        let config =
            format!("[providers.custom]\nbase_url = \"http://127.0.0.1:1/v1\"\ndialect = \"{dialect_name}\"\n");
        let folder = shell.home().parent().expect("a parent").join(".config/pixir");
        fs::create_dir_all(&folder).expect("mkdir");
        fs::write(folder.join("config.toml"), config).expect("write");
        let log = entries(&shell.logs()[0]);
        // Each request was built when the newest entry was a prompt or the last result of a round.
        let moments: Vec<u64> = log
            .iter()
            .filter(|e| e["type"] == "user_message" || e["type"] == "tool_result")
            .map(|e| e["seq"].as_u64().expect("a number"))
            .collect();
        let sent = server.bodies();
        assert_eq!(moments.len(), sent.len());
        for (seq, body) in moments.iter().zip(&sent) {
            let inspected = done(&shell.run(["inspect", "last", "--seq", &seq.to_string(), "--json"]));
            assert_eq!(&inspected["request"], body, "at {seq}");
            assert_eq!(inspected["bytes"], json!(body.to_string().len()));
            let parts = inspected["parts"].as_array().expect("parts").iter();
            assert_eq!(
                parts.map(|p| p["bytes"].as_u64().expect("a number")).sum::<u64>(),
                body.to_string().len() as u64
            );
        }
        assert_eq!(shell.run(["inspect", "last", "--seq", "999", "--json"]).error()["code"], "NOT_FOUND");
        assert!(shell.run(["inspect"]).stdout.contains("tool results"));
    }
}

#[test]
fn replay_jsonl_equals_the_log() {
    let shell = Shell::new(&[("a.txt", "alpha\n")]);
    session(&shell);
    let log = entries(&shell.logs()[0]);
    let mut lines = shell.run(["replay", "last", "--format", "jsonl"]).lines();
    let result = lines.pop().expect("a result");
    assert_eq!((&result["type"], &result["entries"]), (&json!("result"), &json!(log.len())));
    for (line, entry) in lines.iter().zip(&log) {
        let mut entry = entry.clone();
        entry.as_object_mut().expect("an object").remove("chain");
        assert_eq!(line, &entry);
    }
    assert_eq!(shell.run(["replay", "last", "--format", "jsonl", "--from", "5"]).lines().len(), log.len() - 5 + 1);
}

#[test]
fn diagnose_says_what_a_killed_session_needs() {
    let shell = Shell::new(&[]);
    let server = Server::start(vec![call("c1", "bash", json!({"command": "sleep 30"}))]);
    let mut args = server.flags(Dialect::Chat);
    args.extend(["--headless", "--json", "--write", "x"].map(str::to_owned));
    let mut child = shell.command(args).stdout(Stdio::null()).spawn().expect("it starts");
    server.wait_for(1);
    wait::until("the command is allowed", || {
        shell.logs().first().is_some_and(|log| entries(log).iter().any(|e| e["type"] == "permission_decision"))
    });
    let running = shell.run(["diagnose", "--json"]).document();
    let find = |document: &Value, about: &str| {
        let findings = document["findings"].as_array().expect("findings");
        findings.iter().find(|f| f["about"] == about).unwrap_or_else(|| panic!("{about}: {document}"))["what"].clone()
    };
    assert!(find(&running, "lock").to_string().contains(&child.id().to_string()), "{running}");
    child.kill().expect("kill -9");
    child.wait().expect("it is gone");
    let killed = shell.run(["diagnose", "--json"]).document();
    assert!(find(&killed, "last turn").to_string().contains("has no end"), "{killed}");
    assert!(find(&killed, "lock").to_string().contains("no process has it open"), "{killed}");
}

#[test]
fn an_id_stays_unique_through_delete_import_and_restore() {
    let shell = Shell::new(&[("a.txt", "alpha\n")]);
    let id = session(&shell);
    let exported = shell.aside("old.json", &shell.run(["sessions", "export", &id, "--to", "json"]).stdout);
    let exported = exported.to_str().expect("text").to_owned();
    let go_on = |text_of_it: &str| {
        let server = Server::start(vec![text(text_of_it)]);
        let mut args = vec!["resume".to_owned(), id.clone(), "more".into(), "--headless".into(), "--json".into()];
        args.extend(server.flags(Dialect::Chat));
        done(&shell.run(args));
    };
    go_on("longer");
    let longer = fs::read(&shell.logs()[0]).expect("read");
    // Delete the longer one and restore the old one: two Sessions have that id, one of them in the trash.
    done(&shell.run(["sessions", "delete", &id, "--yes", "--json"]));
    done(&shell.run(["sessions", "import", &exported, "--json"]));
    let refused = shell.run(["sessions", "delete", &id, "--undo", "--json"]);
    assert_eq!(refused.error()["code"], "WRITE_FAILED", "it would take the other's place");
    let elsewhere = shell.workspace().join("sub");
    fs::create_dir(&elsewhere).expect("mkdir");
    go_on("another way");
    let mut import = shell.command(["sessions", "import", &exported, "--json"]);
    let imported = done(&crate::shell::ran(import.current_dir(&elsewhere).output().expect("it runs")));
    assert_eq!(imported["imported"]["already_there"], true, "it is there, and has gone on since");
    assert_eq!(shell.logs().len(), 1);
    done(&shell.run(["sessions", "delete", &id, "--yes", "--json"]));
    assert_eq!(
        done(&shell.run(["sessions", "list", "--trash", "--json"]))["trash"].as_array().expect("a list").len(),
        2
    );
    // The last deleted Session is restored first.
    done(&shell.run(["sessions", "delete", &id, "--undo", "--json"]));
    assert!(shell.run(["replay", &id]).stdout.contains("another way"));
    done(&shell.run(["sessions", "delete", &id, "--yes", "--json"]));
    let folders = fs::read_dir(shell.home().join("trash")).expect("a folder").flatten();
    let kept: Vec<Vec<u8>> =
        folders.map(|f| fs::read(f.path().join(format!("{id}.ndjson"))).expect("its log")).collect();
    assert!(kept.contains(&longer), "nothing in the trash was replaced");
}

#[test]
fn sessions_command_errors_name_the_command_that_helps() {
    let shell = Shell::new(&[]);
    let ran = shell.run(["sessions", "rename", "--json"]);
    assert_eq!((ran.code, &ran.error()["remediation"]), (2, &json!("pixir sessions rename --help")));
    assert!(ran.error()["error"]["message"].as_str().expect("text").contains("<ID>"), "{}", ran.stderr);
    let shell = Shell::new(&[("a.txt", "alpha\n")]);
    session(&shell);
    for name in ["last", "20261121T203012-0a1b2c", "two\nlines", &"x".repeat(201)] {
        let ran = shell.run(["sessions", "rename", "last", name, "--json"]);
        assert_eq!((ran.code, &ran.error()["code"]), (2, &json!("INVALID_ARGS")), "{name}");
    }
    assert_eq!(shell.run(["sessions", "rename", "last", "", "--json"]).code, 0);
}

#[test]
fn a_moved_or_imported_session_works_in_its_new_folder() {
    let shell = Shell::new(&[("a.txt", "alpha\n")]);
    let id = session(&shell);
    let exported = shell.aside("s.json", &shell.run(["sessions", "export", &id, "--to", "json"]).stdout);
    let moved = shell.workspace().with_file_name("moved");
    fs::rename(shell.workspace(), &moved).expect("rename");
    let there = |args: &[&str]| {
        let mut command = shell.command(args);
        crate::shell::ran(command.current_dir(&moved).output().expect("it runs"))
    };
    let refused = there(&["resume", &id, "x", "--headless", "--json"]);
    let fix = refused.error()["remediation"].as_str().expect("a fix").to_owned();
    assert!(fix.starts_with(&format!("run pixir sessions move {id}")), "{fix}");
    done(&there(&["sessions", "move", &id, "--dry-run", "--json"]));
    assert_eq!(done(&there(&["sessions", "list", "--json"]))["total"], 0);
    done(&there(&["sessions", "move", &id, "--json"]));
    let workspace = moved.canonicalize().expect("a folder").display().to_string();
    assert_eq!(done(&there(&["sessions", "list", "--json"]))["sessions"][0]["workspace"], json!(workspace));
    assert_eq!(there(&["diagnose", "--json"]).code, 0);
    done(&there(&["undo", "--json"]));
    assert_eq!(fs::read_to_string(moved.join("a.txt")).expect("read"), "alpha\n");
    assert_eq!(there(&["sessions", "move", &id, "--json"]).error()["code"], "NOTHING_TO_DO");

    done(&there(&["sessions", "delete", &id, "--yes", "--json"]));
    done(&there(&["sessions", "import", exported.to_str().expect("text"), "--json"]));
    assert_eq!(done(&there(&["sessions", "list", "--json"]))["sessions"][0]["workspace"], json!(workspace));
    assert_eq!(done(&there(&["sessions", "verify", &id, "--json"]))["ok"], true);
}
