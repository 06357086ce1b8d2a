//! Faults of pixir itself behind an editor, keys that an editor's user stores, and folders that an editor has left.

use std::fs;
use std::io::Write as _;
use std::process::Stdio;

use serde_json::json;

use crate::editor::{Editor, able};
use crate::server::{Server, text};
use crate::shell::{Shell, ran};
use crate::stories::ways_out::impossible_clock;

/// A bug in the code of a request: that request fails, and the next ones are served.
///
/// Broken builds: a request whose task panics has no response; the panic is printed; the process ends with it.
#[test]
fn a_panic_is_the_error_of_its_request_and_the_others_are_served() {
    let shell = Shell::new(&[]);
    let Some(shim) = impossible_clock(&shell) else { return };
    let armed = shell.home().with_file_name("armed");
    let script = json!({ "steps": [{ "text": "Still here." }] });
    let provider = format!("script:{}", shell.aside("script.json", &script.to_string()).display());
    let mut command = shell.command(["acp", "--provider", &provider]);
    command.env("LD_PRELOAD", &shim).env("ARMED_OTHERS", &armed);
    let stderr = shell.aside("stderr.txt", "");
    command.stderr(fs::File::create(&stderr).expect("create"));
    let mut editor = Editor::of(command);
    editor.initialize(able());
    let start = json!({ "cwd": shell.workspace(), "mcpServers": [] });
    fs::write(&armed, "").expect("write");
    let failed = editor.ask("session/new", start);
    assert!(!armed.exists(), "the request asked for the time");
    let message = failed["error"]["message"].as_str().unwrap_or_default();
    assert!(failed["error"]["code"] == -32603 && message.contains("this is a bug"), "{failed}");
    // The task of a Session is another one.
    let session = editor.session(&shell.workspace());
    fs::write(&armed, "").expect("write");
    let prompt = editor.prompt(&session, "hello");
    let ended = editor.response(prompt);
    assert!(!armed.exists() && ended["error"]["code"] == -32603, "{ended}");
    let session = editor.session(&shell.workspace());
    assert_eq!(editor.say(&session, "hello"), "end_turn");
    assert_eq!(editor.text("agent_message_chunk"), "Still here.");
    assert_eq!(editor.close(), 0);
    let log = fs::read_to_string(shell.home().join("log/pixir.log")).expect("the program's log");
    assert_eq!(log.matches("panic: ").count(), 2, "{log}");
    assert_eq!(fs::read_to_string(&stderr).expect("read"), "", "an editor shows what an agent prints there");
}

/// The terminal that an editor opens to log in: the same command line with `--login` behind it.
///
/// Broken builds: `--login` behind other options is refused; the key is not stored; an editor that runs does not find it.
#[test]
fn an_editors_terminal_stores_the_key_that_its_sessions_use() {
    let shell = Shell::new(&[]);
    let server = Server::start(vec![text("With the key.")]);
    let args = ["acp", "--mode", "read-only"];
    let mut command = shell.command(args);
    command.env("OPENAI_BASE_URL", &server.url);
    let mut editor = Editor::of(command);
    let agent = editor.initialize(able());
    let way = &agent["authMethods"][0];
    assert_eq!((&way["id"], &way["type"]), (&json!("pixir-login"), &json!("terminal")), "{agent}");
    let refused = editor.ask("session/new", json!({ "cwd": shell.workspace(), "mcpServers": [] }));
    assert_eq!(refused["error"]["code"], -32000, "{refused}");
    assert!(refused["error"]["message"].as_str().is_some_and(|it| it.contains("pixir auth login")), "{refused}");

    let appended = way["args"].as_array().expect("arguments").iter().filter_map(|it| it.as_str());
    let login = |answers: &str| {
        let mut login = shell.command(args.into_iter().chain(appended.clone()));
        login.env("OPENAI_BASE_URL", &server.url);
        let mut child = login.stdin(Stdio::piped()).spawn().expect("it starts");
        child.stdin.take().expect("stdin").write_all(answers.as_bytes()).expect("write");
        ran(child.wait_with_output().expect("it ends"))
    };
    let unknown = login("opnai\nkey\n");
    assert!(unknown.code == 10 && unknown.stderr.contains("pixir auth login openai"), "{unknown:?}");
    let stored = login("openai\neditor-key-0001\n");
    assert!(stored.code == 0 && stored.stderr.contains("one of: anthropic"), "{stored:?}");
    assert!(stored.stdout.contains("stored the key for openai"), "{stored:?}");

    let checked = editor.ask("authenticate", json!({ "methodId": "pixir-login" }));
    assert!(checked["result"].is_object(), "{checked}");
    let session = editor.session(&shell.workspace());
    assert_eq!(editor.say(&session, "hello"), "end_turn");
    assert_eq!(
        (editor.text("agent_message_chunk").as_str(), server.keys()),
        ("With the key.", vec!["Bearer editor-key-0001".to_owned()])
    );
    assert_eq!(editor.close(), 0);
}

/// An editor that is open for weeks has Sessions in any number of folders.
///
/// Broken builds: each folder keeps its Harness, with a descriptor and memory; the Harness of a folder with an open Session is
/// given up, and another one serves the next Session there.
#[test]
fn folders_without_an_open_session_are_given_up() {
    let shell = Shell::new(&[]);
    let script = json!({ "steps": [{ "text": "First." }, { "text": "Second." }] });
    let mut editor = Editor::start(&shell, &script, &[]);
    editor.initialize(able());
    let kept = editor.session(&shell.workspace());
    let descriptors =
        |editor: &Editor| fs::read_dir(format!("/proc/{}/fd", editor.child.id())).expect("it runs").count();
    let before = descriptors(&editor);
    for n in 0..120 {
        let folder = shell.workspace().join(format!("folder{n}"));
        fs::create_dir(&folder).expect("mkdir");
        let session = editor.session(&folder);
        editor.ask("session/close", json!({ "sessionId": session }));
    }
    let more = descriptors(&editor).saturating_sub(before);
    assert!(more <= 40, "{more} descriptors more for 120 folders that were left");
    assert_eq!(editor.say(&kept, "hello"), "end_turn");
    let other = editor.session(&shell.workspace());
    assert_eq!(editor.say(&other, "hello"), "end_turn");
    assert_eq!(editor.text("agent_message_chunk"), "First.Second.", "both are served by one Harness, with one script");
    assert_eq!(editor.close(), 0);
}
