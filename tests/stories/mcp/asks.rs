//! What MCP servers ask the user, what the user waits for, and what the user writes with them.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Scripted, result, screens, turn};
use crate::hosted::Hosted;
use crate::server::{Dialect, Reply, Server, call, text};
use crate::shell::Shell;
use crate::wait;

fn with_server(options: &[&str], more: &str) -> (Shell, Scripted) {
    let shell = Shell::new(&[]);
    let scripted = Scripted::new(&shell);
    shell.configure(&scripted.section("test", options, more));
    assert_eq!(shell.run(["mcp", "test", "test"]).code, 0);
    (shell, scripted)
}

/// A Session whose user answers forms, and its model.
fn session(shell: &Shell, replies: Vec<Reply>) -> (Hosted, Server) {
    let server = Server::start(replies);
    let flags = server.flags(Dialect::Responses);
    let usual = ["--mode", "ask", "--allow", "mcp(test)"];
    let args: Vec<&str> = flags.iter().map(String::as_str).chain(usual).collect();
    (Hosted::on(shell, &args), server)
}

fn prompt(session: &mut Hosted, id: &str) {
    session.ask(id, json!({ "type": "prompt", "text": "go" }));
}

fn answer(session: &mut Hosted, text: &str) -> String {
    let form = session.event("question_asked");
    let call_id = form["data"]["call_id"].clone();
    let answers = json!([[text]]);
    session.ask(&format!("a-{text}"), json!({ "type": "answer", "call_id": call_id, "answers": answers }));
    form["data"]["questions"][0]["question"].as_str().expect("a question").to_owned()
}

/// Broken builds: one round is the last; the state of the server is not sent back; a server that asks without end is answered
/// without end; where nobody answers, the call fails before the server has decided.
#[test]
fn what_a_server_asks_before_it_answers_is_asked_of_the_user_four_times_at_most() {
    let (shell, scripted) = with_server(&["tools=rounds"], "");
    let rounds = |times: u64| vec![call("c1", "test__rounds", json!({ "times": times })), text("Done.")];
    let (mut session, _model) = session(&shell, [rounds(2), rounds(9)].concat());
    prompt(&mut session, "p1");
    assert_eq!(answer(&mut session, "one"), "test asks: Question 1?\nname");
    assert_eq!(answer(&mut session, "two"), "test asks: Question 2?\nname");
    let done = session.event("tool_result");
    assert!(done["data"]["output"].as_str().expect("text").contains("answered"), "{done}");
    let said: Vec<String> = scripted.journal().into_iter().filter(|it| it.starts_with("round ")).collect();
    let content = |name: &str| json!({ "q": { "action": "accept", "content": { "name": name } } });
    let sent = |round: u32, what: Value| {
        let (line, start) = (&said[round as usize], format!("round {round} "));
        assert_eq!(serde_json::from_str::<Value>(line.strip_prefix(&start).expect("a round")).expect("JSON"), what);
    };
    sent(0, Value::Null);
    sent(1, content("one"));
    sent(2, content("two"));
    assert_eq!(said.len(), 3);

    session.event("turn_ended");
    prompt(&mut session, "p2");
    for n in 0..4 {
        answer(&mut session, &format!("again-{n}"));
    }
    let refused = session.event("tool_result");
    assert_eq!(refused["data"]["error"]["code"], "MCP_PROTOCOL", "{refused}");
    assert!(refused["data"]["output"].as_str().expect("text").contains("asked more than 4 times"), "{refused}");
    session.event("turn_ended");
    session.end();

    let model = Server::start(rounds(1));
    assert_eq!(turn(&shell, &model, &["--mode", "ask", "--allow", "mcp(test)", "go"]).code, 0);
    assert!(result(&shell)["output"].as_str().expect("text").contains("answered"), "nobody: it is declined");
    assert!(scripted.journal().contains(&"round 1 {\"q\": {\"action\": \"decline\"}}".to_owned()));
}

/// Broken build: a call times out while its server waits for the user.
#[test]
fn a_user_may_think_longer_about_a_question_than_a_call_may_take() {
    let (shell, _) = with_server(&["tools=ask"], "call_timeout = 1");
    let (mut session, _model) = session(&shell, vec![call("c1", "test__ask", json!({})), text("Done.")]);
    prompt(&mut session, "p1");
    let form = session.event("question_asked");
    wait::lapse(Duration::from_millis(2_500));
    let call_id = form["data"]["call_id"].clone();
    session.ask("a1", json!({ "type": "answer", "call_id": call_id, "answers": [["main"]] }));
    let done = session.event("tool_result");
    assert!(done["data"]["error"].is_null() && done["data"]["output"].to_string().contains("main"), "{done}");
    session.event("turn_ended");
    session.end();
}

/// Broken build: a question whose call was interrupted counts as open for ever, and no later call times out.
#[test]
fn a_server_whose_question_was_interrupted_still_has_a_time_limit() {
    let (shell, _) = with_server(&["tools=rounds,hang"], "call_timeout = 1");
    let replies =
        vec![call("c1", "test__rounds", json!({ "times": 1 })), call("c2", "test__hang", json!({})), text("Done.")];
    let (mut session, _model) = session(&shell, replies);
    prompt(&mut session, "p1");
    session.event("question_asked");
    session.ask("i", json!({ "type": "interrupt" }));
    session.event("turn_ended");
    prompt(&mut session, "p2");
    let done = session.event("tool_result");
    assert_eq!(done["data"]["error"]["code"], "MCP_TIMEOUT", "{done}");
    session.event("turn_ended");
    session.end();
}

/// Broken builds: a wait before a start is silent; so is a start that takes long; the list does not say that a server waits.
#[test]
fn a_start_that_takes_long_or_waits_is_shown_with_its_reason() {
    let (shell, scripted) = with_server(&["tools=die,echo", "stderr=loading models"], "");
    let slow = scripted.section("test", &["tools=die,echo", "stderr=loading models", "slow=2"], "");
    let (mut session, _model) = {
        let die = |n: u32| [call(&format!("c{n}"), "test__die", json!({})), text("Done.")];
        session(&shell, (0..4).flat_map(die).collect())
    };
    for n in 0..3 {
        prompt(&mut session, &format!("p{n}"));
        session.event("turn_ended");
    }
    // It died three times.
    prompt(&mut session, "p3");
    let words = "test has ended again and again; it starts again 4 s after its end\n";
    session.until(0, |line| line["type"] == "tool_output_delta" && line["data"]["text"] == words);
    session.ask("m", json!({ "type": "mcp", "act": "show" }));
    let is_waiting = |line: &Value| {
        let server = &line["data"]["servers"][0];
        line["type"] == "mcp_changed" && server["phase"] == "starting" && server["waits_s"].as_u64() >= Some(1)
    };
    session.until(0, is_waiting);
    session.event("turn_ended");
    session.end();

    shell.configure(&slow);
    assert_eq!(shell.run(["mcp", "test", "test"]).code, 0);
    let (mut session, _model) =
        self::session(&shell, vec![call("c1", "test__echo", json!({ "text": "x" })), text("Done.")]);
    prompt(&mut session, "p1");
    let found = session.until(0, |line| {
        line["type"] == "tool_output_delta" && line["data"]["text"] == "test starts: loading models\n"
    });
    assert!(found > 0);
    session.event("turn_ended");
    session.end();
}

/// Broken builds: a prompt of a server is sent before the user has read it; its hidden characters reach the composer; servers are
/// started for a list of commands; a resource is not among the mentions.
#[test]
fn prompts_of_servers_fill_the_composer_and_resources_are_mentions() {
    let (shell, scripted) = with_server(&["tools=look", "prompts=1"], "");
    let starts = scripted.starts();
    let steps = json!([{ "text": "Reviewed." }]);
    let keys = "keys /test:<wait>\nexpect Reviews a file\nframe list\nkeys <Esc><C-u>\nkeys /test:review_it<Enter>\nexpect file\nkeys main.rs<Enter>\nexpect Review main.rs, kindly.\nframe filled\nkeys <Enter>\nexpect Reviewed.\nkeys @test:tue\nexpect notes://tuesday\nkeys <Tab>\nexpect @test:notes://tuesday\nframe end\n";
    let keys = keys.replace("<wait>", "");
    let shown = screens(&shell, &steps, &keys);
    assert_eq!(shown.code, 0, "{shown:?}");
    let (before, after) = shown.stdout.split_once("filled").expect("a frame");
    assert!(before.contains("/test:review_it <file> [how]") && !before.contains("Reviewed."), "{before}");
    assert!(!shown.stdout.contains(['\u{200b}', '\u{202e}']), "{shown:?}");
    assert!(after.contains("Review main.rs, kindly.") && after.contains("@test:notes://tuesday"), "{after}");
    let journal = scripted.journal();
    assert!(journal.contains(&"prompt review it {\"file\": \"main.rs\"}".to_owned()), "{journal:?}");
    assert_eq!(scripted.starts(), starts + 1, "once, when its prompt was used: {journal:?}");
}

/// Broken builds: an editor does not know the prompts; one of them is sent to the model unread; the end of a long one is cut off
/// in silence.
#[test]
fn an_editor_lists_the_prompts_of_servers_and_shows_what_they_give() {
    let (shell, _) = with_server(&["tools=look", "prompts=1"], "");
    let mut editor = crate::editor::Editor::start(&shell, &json!({ "steps": [] }), &[]);
    editor.initialize(crate::editor::able());
    let opened = editor.ask("session/new", json!({ "cwd": shell.workspace(), "mcpServers": [] }));
    let session = opened["result"]["sessionId"].as_str().expect("a session").to_owned();
    let prompt = editor.prompt(&session, "/test:review_it main.rs");
    assert_eq!(editor.response(prompt)["result"]["stopReason"], "end_turn");
    let long = editor.prompt(&session, "/test:plain");
    assert_eq!(editor.response(long)["result"]["stopReason"], "end_turn");
    let seen = Value::from(editor.seen.clone()).to_string();
    assert!(seen.contains("the server's text is longer; these are its first 64 KB"), "{}", seen.len());
    assert!(seen.contains("\"name\":\"test:review_it\"") && seen.contains("Review main.rs, kindly."), "{seen}");
    assert_eq!(editor.close(), 0, "no request was sent: the script has no answer");
}

/// Broken builds: a server of the stateless revision cannot be used over stdio; each start asks again what it is.
#[test]
fn a_server_of_the_stateless_revision_is_found_out_once_and_remembered() {
    let (shell, scripted) = with_server(&["tools=look", "stateless=1"], "reads = [\"look\"]");
    let shown = shell.run(["mcp", "show", "test"]);
    assert!(shown.stdout.contains("protocol 2026-07-28"), "{shown:?}");
    let began =
        || scripted.journal().into_iter().filter(|it| it == "initialize" || it == "discover").collect::<Vec<_>>();
    assert_eq!(began(), ["initialize", "discover"], "one that is strict and old would exit at the second");
    let called = shell.run(["mcp", "call", "test.look", "{\"what\": \"x\"}"]);
    assert!(called.code == 0 && called.stdout.contains("look {\"what\": \"x\"}"), "{called:?}");
    assert_eq!(began(), ["initialize", "discover", "discover"], "what was accepted says how it begins");
}

/// Broken build: the other tools of a server that is to be blocked are called.
#[test]
fn a_server_that_is_blocked_by_a_change_runs_none_of_its_tools() {
    for (more, is_called) in [("", true), ("on_change = \"block\"", false)] {
        let more = format!("reads = [\"look\"]\n{more}");
        let (shell, scripted) = with_server(&["tools=look,echo"], &more);
        let program = std::fs::read_to_string(&scripted.program).expect("the server");
        let changed = program.replace("Says the text again", "Says the text, and sends it away");
        std::fs::write(&scripted.program, changed).expect("write");
        let model = Server::start(vec![call("c1", "test__look", json!({})), text("Done.")]);
        assert_eq!(turn(&shell, &model, &["go"]).code, 0);
        let code = result(&shell)["error"]["code"].clone();
        assert_eq!(code, if is_called { Value::Null } else { json!("MCP_DEFINITION_CHANGED") }, "{more}");
        assert_eq!(scripted.journal().iter().any(|it| it.starts_with("call look")), is_called, "{more}");
    }
}

/// Broken build: of two servers with one name the one of the repository is used, or it is not said that there are two.
#[test]
fn of_two_servers_with_one_name_the_users_is_used_and_the_other_is_listed() {
    let (shell, scripted) = with_server(&["tools=look"], "");
    shell.write(".mcp.json", &json!({ "mcpServers": { "test": { "command": "false" } } }).to_string());
    let listed = shell.run(["mcp", "list"]);
    let lines: Vec<&str> = listed.stdout.lines().collect();
    assert!(lines[0].starts_with("test  1 tool ") && lines[1].starts_with("test  shadowed by yours"), "{listed:?}");
    let starts = scripted.starts();
    assert_eq!(shell.run(["mcp", "call", "test.look"]).code, 0);
    assert_eq!(scripted.starts(), starts + 1);
}
