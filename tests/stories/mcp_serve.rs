//! pixir as an MCP server: the official SDK is the client.

use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rmcp::handler::client::ClientHandler;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, ClientCapabilities, ClientConfig, ClientRequest,
    ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationCapability, ErrorData, Implementation,
    ProgressNotificationParam,
};
use rmcp::service::{
    NotificationContext, PeerRequestOptions, RequestContext, RoleClient, RunningService, ServiceExt as _,
};
use rmcp::transport::async_rw::AsyncRwTransport;
use serde_json::{Value, json};
use tokio::process::{Child, ChildStdin, ChildStdout};

use crate::shell::{Shell, entries, is_running, mark};
use crate::wait;

/// The user of a client: what they answer, and what they were shown.
#[derive(Clone, Default)]
struct User {
    /// `None`: the client cannot ask them.
    decision: Option<&'static str>,
    asked: Arc<Mutex<Vec<String>>>,
    progress: Arc<Mutex<Vec<String>>>,
}

impl ClientHandler for User {
    fn get_info(&self) -> ClientConfig {
        let mut abilities = ClientCapabilities::default();
        if self.decision.is_some() {
            abilities.elicitation = Some(ElicitationCapability::new().with_form(Default::default()));
        }
        ClientConfig::new(abilities, Implementation::new("story", "1"))
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } = request else {
            return Ok(ElicitResult::new(ElicitationAction::Decline));
        };
        let schema = serde_json::to_value(&requested_schema).expect("JSON");
        let name = schema["properties"].as_object().and_then(|it| it.keys().next()).expect("a field").clone();
        self.asked.lock().expect("no panic").push(message);
        let content = json!({ name: self.decision.expect("it was declared") });
        Ok(ElicitResult::new(ElicitationAction::Accept).with_content(content))
    }

    async fn on_progress(&self, params: ProgressNotificationParam, _context: NotificationContext<RoleClient>) {
        self.progress.lock().expect("no panic").push(params.message.unwrap_or_default());
    }
}

/// `pixir mcp serve`, and a client that talks to it.
struct Served {
    service: RunningService<RoleClient, User>,
    child: Child,
    user: User,
}

impl Served {
    async fn start(shell: &Shell, steps: &Value, args: &[&str], decision: Option<&'static str>) -> Served {
        let script = shell.aside("steps.json", &json!({ "steps": steps }).to_string());
        let provider = format!("script:{}", script.display());
        let mut command = shell.command(["mcp", "serve", "--provider", &provider].iter().chain(args));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = tokio::process::Command::from(command).spawn().expect("it starts");
        let (stdin, stdout): (ChildStdin, ChildStdout) =
            (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
        let user = User { decision, ..User::default() };
        let transport = AsyncRwTransport::new_client(stdout, stdin);
        let service = user.clone().serve(transport).await.expect("it initializes");
        Served { service, child, user }
    }

    async fn call(&self, tool: &'static str, args: Value) -> CallToolResult {
        let Value::Object(args) = args else { panic!("an object") };
        self.service.call_tool(CallToolRequestParams::new(tool).with_arguments(args)).await.expect("a result")
    }

    /// Closes its stdin, and waits for its end.
    async fn end(mut self) -> i32 {
        let _ = self.service.cancel().await;
        let status = tokio::time::timeout(Duration::from_secs(30), self.child.wait()).await.expect("it ends");
        status.expect("a status").code().unwrap_or(-1)
    }
}

fn said(result: &CallToolResult) -> String {
    let value = serde_json::to_value(result).expect("JSON");
    let texts = value["content"].as_array().expect("content").iter();
    texts.filter_map(|it| it["text"].as_str()).collect()
}

fn writes(path: &str) -> Value {
    json!({ "calls": [{ "name": "write", "args": { "path": path, "content": "new\n" } }] })
}

/// Broken builds: the mode of the configuration holds for the tasks of others; a task cannot be gone on with; what a program
/// prints is among the messages.
#[tokio::test]
async fn an_agent_gives_pixir_a_task_and_it_only_reads() {
    let shell = Shell::new(&[("a.txt", "alpha\n")]);
    shell.configure("mode = \"auto\"\n");
    let steps = json!([writes("b.txt"), { "text": "Could not write." }, { "text": "Still here." }]);
    let served = Served::start(&shell, &steps, &[], None).await;
    let tools = served.service.list_all_tools().await.expect("tools");
    let names: Vec<&str> = tools.iter().map(|it| it.name.as_ref()).collect();
    assert_eq!(names, ["pixir_task", "pixir_run", "pixir_sessions"]);
    assert!(tools.iter().all(|it| it.annotations.as_ref().is_some_and(|it| it.read_only_hint == Some(true))));

    let first = served.call("pixir_task", json!({ "task": "write b.txt" })).await;
    assert!(said(&first).starts_with("Could not write."), "{first:?}");
    assert!(said(&first).contains("1 calls were refused: this server is read-only"), "{first:?}");
    let data = first.structured_content.expect("data");
    assert_eq!((&data["status"], &data["denials"]), (&json!("completed"), &json!(1)));
    assert!(!shell.workspace().join("b.txt").exists());
    let session = data["session"].as_str().expect("a session").to_owned();

    let again = served.call("pixir_task", json!({ "task": "are you there?", "session": session })).await;
    assert_eq!(said(&again), "Still here.");
    assert_eq!(again.structured_content.expect("data")["session"], *session);
    let listed = served.call("pixir_sessions", json!({})).await;
    assert!(said(&listed).contains(&session) && said(&listed).contains("write b.txt"), "{listed:?}");

    let ran = served.call("pixir_run", json!({ "command": "cat a.txt" })).await;
    assert!(said(&ran).contains("alpha") && ran.is_error == Some(false), "{ran:?}");
    let refused = served.call("pixir_run", json!({ "command": "touch c.txt" })).await;
    assert!(refused.is_error == Some(true) && !shell.workspace().join("c.txt").exists(), "{refused:?}");
    let wrong = served.service.call_tool(CallToolRequestParams::new("pixir_task")).await;
    assert!(wrong.expect_err("no task").to_string().contains("missing field `task`"));
    assert_eq!(served.end().await, 0);

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
#[tokio::test]
async fn what_needs_an_approval_is_asked_of_the_clients_user_or_refused() {
    for (decision, is_written) in [(Some("allow"), true), (Some("deny"), false), (None, false)] {
        let shell = Shell::new(&[]);
        let steps = json!([writes("b.txt"), { "text": "Done." }]);
        let served = Served::start(&shell, &steps, &["--mode", "ask"], decision).await;
        let done = served.call("pixir_task", json!({ "task": "write b.txt" })).await;
        assert!(said(&done).starts_with("Done."), "{done:?}");
        assert_eq!(shell.workspace().join("b.txt").exists(), is_written, "{decision:?} {done:?}");
        let data = done.structured_content.as_ref().expect("data");
        assert_eq!(
            data["files_changed"],
            if is_written { json!([{ "path": "b.txt", "kind": "created" }]) } else { json!([]) }
        );
        let ran = served.call("pixir_run", json!({ "command": "touch c.txt" })).await;
        assert_eq!(shell.workspace().join("c.txt").exists(), is_written, "{decision:?} {ran:?}");
        let asked = served.user.asked.lock().expect("no panic").clone();
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
        assert_eq!(served.end().await, 0);
    }
}

/// Broken builds: a call that the client takes back runs on; its Turn is recorded as one that ended by itself; the server ends
/// with it.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_the_client_takes_back_interrupts_its_turn_and_nothing_else() {
    let shell = Shell::new(&[]);
    let sleep = mark();
    let steps = json!([
        { "calls": [{ "name": "bash", "args": { "command": format!("sleep {sleep}") } }] }, { "text": "Never." },
    ]);
    let served = Served::start(&shell, &steps, &["--mode", "auto"], None).await;
    let Value::Object(args) = json!({ "task": "sleep" }) else { panic!("an object") };
    let request = CallToolRequest::new(CallToolRequestParams::new("pixir_task").with_arguments(args));
    let request = ClientRequest::CallToolRequest(request);
    let handle =
        served.service.send_cancellable_request(request, PeerRequestOptions::no_options()).await.expect("sent");
    tokio::task::block_in_place(|| wait::until("the command runs", || is_running(&sleep)));
    handle.cancel(Some("enough".to_owned())).await.expect("it was sent");
    tokio::task::block_in_place(|| wait::until("the command ends", || !is_running(&sleep)));
    let ran = served.call("pixir_run", json!({ "command": "echo alive" })).await;
    assert!(said(&ran).contains("alive"), "{ran:?}");
    let progress = served.user.progress.lock().expect("no panic").clone();
    assert!(progress.len() == 1 && progress[0].contains(&sleep), "{progress:?}");
    assert_eq!(served.end().await, 0);
    let log = entries(&shell.logs()[0]);
    let end = log.iter().rfind(|it| it["type"] == "turn_ended").expect("an end");
    assert_eq!(end["data"]["status"], "interrupted", "{end}");
}
