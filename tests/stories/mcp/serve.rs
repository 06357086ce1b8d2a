//! pixir as an MCP server. `mcp_real` has the official SDK as its client; here every line is the story's own.

use serde_json::{Value, json};

use crate::editor::Editor;
use crate::shell::{Shell, entries, is_running, mark};
use crate::wait;

/// `pixir mcp serve`, and a client that talks to it.
struct Served {
    client: Editor,
    /// What the client's user answers; `None`: the client cannot ask them.
    decision: Option<&'static str>,
    /// What they were shown.
    asked: Vec<String>,
}

impl Served {
    fn start(shell: &Shell, steps: &Value, args: &[&str], decision: Option<&'static str>) -> Served {
        let script = shell.aside("steps.json", &json!({ "steps": steps }).to_string());
        let provider = format!("script:{}", script.display());
        let words = ["mcp", "serve", "--provider", &provider];
        let mut client = Editor::of(shell.command(words.iter().chain(args)));
        let abilities = if decision.is_some() { json!({ "elicitation": { "form": {} } }) } else { json!({}) };
        let hello = json!({
            "protocolVersion": "2025-11-25", "capabilities": abilities, "clientInfo": { "name": "story", "version": "1" },
        });
        assert_eq!(client.ask("initialize", hello)["result"]["protocolVersion"], "2025-11-25");
        client.notify("notifications/initialized", json!({}));
        Served { client, decision, asked: Vec::new() }
    }

    /// Sends a call, with a wish for progress, and returns its id.
    fn send(&mut self, tool: &str, args: Value) -> i64 {
        self.client.request("tools/call", json!({ "name": tool, "arguments": args, "_meta": { "progressToken": "t" } }))
    }

    /// The response to a call, after the user has answered what pixir asks meanwhile.
    fn response(&mut self, tool: &str, args: Value) -> Value {
        let mut from = self.client.seen.len();
        let id = self.send(tool, args);
        loop {
            let at = self.client.until(from, |line| line["id"] == id || line["method"] == "elicitation/create");
            let line = self.client.seen[at].clone();
            if line.get("method").is_none() {
                return line;
            }
            let params = &line["params"];
            let fields = params["requestedSchema"]["properties"].as_object().expect("a form");
            let name = fields.keys().next().expect("a field");
            self.asked.push(params["message"].as_str().expect("a message").to_owned());
            let decision = self.decision.expect("only a client that can show forms is asked");
            self.client.answer(&line, json!({ "action": "accept", "content": { name: decision } }));
            from = at + 1;
        }
    }

    /// The result of a call.
    fn call(&mut self, tool: &str, args: Value) -> Value {
        let response = self.response(tool, args);
        assert!(response["result"].is_object(), "{response}");
        response["result"].clone()
    }
}

fn said(result: &Value) -> String {
    let texts = result["content"].as_array().expect("content").iter();
    texts.filter_map(|it| it["text"].as_str()).collect()
}

fn writes(path: &str) -> Value {
    json!({ "calls": [{ "name": "write", "args": { "path": path, "content": "new\n" } }] })
}

/// Broken builds: the mode of the configuration holds for the tasks of others; a task cannot be gone on with; what a program
/// prints is among the messages.
#[test]
fn an_agent_gives_pixir_a_task_and_it_only_reads() {
    let shell = Shell::new(&[("a.txt", "alpha\n")]);
    shell.configure("mode = \"auto\"\n");
    let steps = json!([writes("b.txt"), { "text": "Could not write." }, { "text": "Still here." }]);
    let mut served = Served::start(&shell, &steps, &[], None);
    let listed = served.client.ask("tools/list", json!({}));
    let tools = listed["result"]["tools"].as_array().expect("tools");
    let names: Vec<&str> = tools.iter().filter_map(|it| it["name"].as_str()).collect();
    assert_eq!(names, ["pixir_task", "pixir_run", "pixir_sessions"]);
    assert!(tools.iter().all(|it| it["annotations"]["readOnlyHint"] == true), "{tools:?}");

    let first = served.call("pixir_task", json!({ "task": "write b.txt" }));
    assert!(said(&first).starts_with("Could not write."), "{first:?}");
    assert!(said(&first).contains("1 calls were refused: this server is read-only"), "{first:?}");
    let data = &first["structuredContent"];
    assert_eq!((&data["status"], &data["denials"]), (&json!("completed"), &json!(1)));
    assert!(!shell.workspace().join("b.txt").exists());
    let session = data["session"].as_str().expect("a session").to_owned();

    let again = served.call("pixir_task", json!({ "task": "are you there?", "session": session }));
    assert_eq!(said(&again), "Still here.");
    assert_eq!(again["structuredContent"]["session"], *session);
    let listed = served.call("pixir_sessions", json!({}));
    assert!(said(&listed).contains(&session) && said(&listed).contains("write b.txt"), "{listed:?}");

    let ran = served.call("pixir_run", json!({ "command": "cat a.txt" }));
    assert!(said(&ran).contains("alpha") && ran["isError"] == false, "{ran:?}");
    let refused = served.call("pixir_run", json!({ "command": "touch c.txt" }));
    assert!(refused["isError"] == true && !shell.workspace().join("c.txt").exists(), "{refused:?}");
    let wrong = served.response("pixir_task", json!({}));
    assert!(wrong["error"]["message"].to_string().contains("missing field `task`"), "{wrong}");
    assert_eq!(served.client.close(), 0);

    // pixir is a client of it as of any other server.
    let program = env!("CARGO_BIN_EXE_pixir");
    let workspace = shell.workspace().display().to_string();
    let added = shell.run(["mcp", "add", "inner", "--", program, "mcp", "serve", "--workspace", &workspace]);
    assert!(added.code == 0 && added.stdout.contains("pixir_task"), "{added:?}");
    let called = shell.run(["mcp", "call", "inner.pixir_run", r#"{"command": "cat a.txt"}"#]);
    assert!(called.code == 0 && called.stdout.contains("alpha"), "{called:?}");
}

/// Broken builds: a call runs before the client's user has answered; a client that cannot ask is one that allows; the form does
/// not show what would be written.
#[test]
fn what_needs_an_approval_is_asked_of_the_clients_user_or_refused() {
    for (decision, is_written) in [(Some("allow"), true), (Some("deny"), false), (None, false)] {
        let shell = Shell::new(&[]);
        let steps = json!([writes("b.txt"), { "text": "Done." }]);
        let mut served = Served::start(&shell, &steps, &["--mode", "ask"], decision);
        let done = served.call("pixir_task", json!({ "task": "write b.txt" }));
        assert!(said(&done).starts_with("Done."), "{done:?}");
        assert_eq!(shell.workspace().join("b.txt").exists(), is_written, "{decision:?} {done:?}");
        assert_eq!(
            done["structuredContent"]["files_changed"],
            if is_written { json!([{ "path": "b.txt", "kind": "created" }]) } else { json!([]) }
        );
        let ran = served.call("pixir_run", json!({ "command": "touch c.txt" }));
        assert_eq!(shell.workspace().join("c.txt").exists(), is_written, "{decision:?} {ran:?}");
        let asked = &served.asked;
        match decision {
            Some(_) => assert!(
                asked.len() == 2
                    && asked[0].contains("b.txt")
                    && asked[0].contains("+new")
                    && asked[1].contains("touch c.txt"),
                "{asked:#?}"
            ),
            None => assert!(said(&done).contains("this client cannot ask its user") && asked.is_empty(), "{done:?}"),
        }
        assert_eq!(served.client.close(), 0);
    }
}

/// Broken builds: a call that the client takes back runs on; its Turn is recorded as one that ended by itself; the server ends
/// with it.
#[test]
fn a_call_that_the_client_takes_back_interrupts_its_turn_and_nothing_else() {
    let shell = Shell::new(&[]);
    let sleep = mark();
    let steps = json!([
        { "calls": [{ "name": "bash", "args": { "command": format!("sleep {sleep}") } }] }, { "text": "Never." },
    ]);
    let mut served = Served::start(&shell, &steps, &["--mode", "auto"], None);
    let id = served.send("pixir_task", json!({ "task": "sleep" }));
    wait::until("the command runs", || is_running(&sleep));
    served.client.notify("notifications/cancelled", json!({ "requestId": id, "reason": "enough" }));
    wait::until("the command ends", || !is_running(&sleep));
    let ran = served.call("pixir_run", json!({ "command": "echo alive" }));
    assert!(said(&ran).contains("alive"), "{ran:?}");
    assert_eq!(served.client.close(), 0);
    let seen = &served.client.seen;
    let progress: Vec<&Value> = seen.iter().filter(|it| it["method"] == "notifications/progress").collect();
    assert!(progress.len() == 1 && progress[0]["params"]["message"].to_string().contains(&sleep), "{progress:?}");
    assert!(!seen.iter().any(|it| it["id"] == id), "a call that was taken back has no answer: {seen:?}");
    let log = entries(&shell.logs()[0]);
    let end = log.iter().rfind(|it| it["type"] == "turn_ended").expect("an end");
    assert_eq!(end["data"]["status"], "interrupted", "{end}");
}
