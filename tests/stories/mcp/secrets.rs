//! A secret of an MCP server, which the server tells in every way that it has.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::{Scripted, screens};
use crate::hosted::Hosted;
use crate::server::{Dialect, Server, call, text};
use crate::shell::{Shell, figures, mark};

/// The files below a folder that hold a text, without the one in which secrets are kept.
fn holding(folder: PathBuf, canary: &str) -> (usize, Vec<PathBuf>) {
    let (mut folders, mut seen, mut found) = (vec![folder], 0, Vec::new());
    while let Some(folder) = folders.pop() {
        for it in fs::read_dir(folder).into_iter().flatten().flatten() {
            if it.path().is_dir() {
                folders.push(it.path());
            } else if it.file_name() != "auth.json" {
                seen += 1;
                let bytes = fs::read(it.path()).unwrap_or_default();
                if bytes.windows(canary.len()).any(|it| it == canary.as_bytes()) {
                    found.push(it.path());
                }
            }
        }
    }
    (seen, found)
}

/// Broken builds: a secret in a description, in instructions, in an answer, an error, a question, a resource or on stderr is not
/// masked on its way to the model, the Log, a file, the screen, an editor or a document.
#[test]
fn a_secret_that_its_server_tells_everywhere_is_in_none_of_the_places_where_pixir_writes() {
    let shell = Shell::new(&[]);
    let scripted = Scripted::new(&shell);
    let canary = format!("canary-{}", mark());
    let more = "env_from = [\"CANARY_TOKEN\"]\nreads = [\"*\"]";
    shell.configure(&scripted.section("test", &["tools=leak,echo", "leak=CANARY_TOKEN"], more));
    let mut store = shell.command(["mcp", "secret", "test", "CANARY_TOKEN"]);
    let mut child = store.stdin(std::process::Stdio::piped()).spawn().expect("it starts");
    std::io::Write::write_all(&mut child.stdin.take().expect("stdin"), canary.as_bytes()).expect("it reads");
    assert!(child.wait().expect("it ends").success());
    let tested = shell.run(["mcp", "test", "test"]);
    assert!(tested.code == 0 && tested.stdout.contains("Use [secret CANARY_TOKEN] for everything."), "{tested:?}");
    assert!(tested.stdout.contains("with [secret CANARY_TOKEN]"), "{tested:?}");

    let ways = ["text", "error", "structured", "link", "refuse", "ask", "die"];
    let find = call("c0", "mcp_find", json!({ "query": "", "server": "test" }));
    let calls =
        ways.iter().enumerate().map(|(n, how)| call(&format!("c{}", n + 1), "test__leak", json!({ "how": how })));
    let model = Server::start([find].into_iter().chain(calls).chain([text("Done.")]).collect());
    let flags = model.flags(Dialect::Responses);
    let mut session = Hosted::on(&shell, &flags.iter().map(String::as_str).collect::<Vec<_>>());
    session.ask("p", json!({ "type": "prompt", "text": "go" }));
    let form = session.event("question_asked");
    assert!(
        form["data"]["questions"][0]["question"].as_str().expect("text").contains("Is it [secret CANARY_TOKEN]?"),
        "{form}"
    );
    session.ask("a", json!({ "type": "answer", "call_id": form["data"]["call_id"], "answers": [["x"]] }));
    session.ask("m", json!({ "type": "mcp", "act": "show" }));
    session.event("turn_ended");
    let seen = Value::from(session.seen.clone()).to_string();
    session.end();
    let masked = seen.matches("[secret CANARY_TOKEN]").count();
    assert!(masked >= ways.len(), "the server has told it: {seen}");
    let bodies: Vec<String> = model.bodies().iter().map(Value::to_string).collect();

    // What it tells now is another thing than what was accepted, so its changes are shown.
    let program = fs::read_to_string(&scripted.program).expect("the server");
    fs::write(&scripted.program, program.replace("Says the text again", "Says the text anew")).expect("write");
    let keys = "keys /mcp<Enter>\nexpect not running\nkeys r\nexpect tools changed\nframe changed\n";
    let steps = json!([]);
    let mut outputs: Vec<(String, String)> = vec![
        ("the events of a session".to_owned(), seen),
        ("the requests to the model".to_owned(), bodies.join("\n")),
        ("the screen".to_owned(), format!("{:?}", screens(&shell, &steps, keys))),
    ];
    let commands: [&[&str]; 12] = [
        &["mcp", "list", "--json"],
        &["mcp", "show", "test", "--json"],
        &["mcp", "test", "test", "--json"],
        &["mcp", "accept", "test", "--dry-run"],
        &["mcp", "call", "test.leak", "{\"how\": \"text\"}"],
        &["mcp", "call", "test.leak", "{\"how\": \"die\"}"],
        &["sessions", "show", "last", "--json"],
        &["sessions", "export", "last"],
        &["inspect", "last", "--json"],
        &["diagnose", "last"],
        &["doctor"],
        &["config", "show"],
    ];
    for words in commands {
        let ran = shell.run(words);
        assert!(!ran.stdout.is_empty() || !ran.stderr.is_empty(), "{words:?}");
        outputs.push((words.join(" "), format!("{ran:?}")));
    }
    for (name, output) in &outputs {
        assert!(!output.contains(&canary), "the secret is in {name}: {output}");
    }
    let (files, found) = holding(shell.home().parent().expect("a parent").to_owned(), &canary);
    assert!(found.is_empty() && files > 5, "{found:?} of {files} files");
    figures(&format!("a secret told in {} ways: in 0 of {} outputs and {files} files", ways.len() + 3, outputs.len()));
}
