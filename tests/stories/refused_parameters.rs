//! Parameters that a server refuses: the request is sent without them, and the user hears of it once.

use serde_json::{Value, json};

use crate::server::{Dialect, Reply, Server, call, text};
use crate::shell::Shell;

/// What servers say of a parameter, and where the request has it.
const REFUSALS: [(Dialect, &str, &str, &str); 6] = [
    (
        Dialect::Chat,
        r#"{"error":{"message":"Unrecognized request argument supplied: reasoning_effort","type":"invalid_request_error","param":null,"code":null}}"#,
        "/reasoning_effort",
        "effort",
    ),
    (
        Dialect::Chat,
        r#"{"detail":[{"type":"extra_forbidden","loc":["body","reasoning_effort"],"msg":"Extra inputs are not permitted","input":"high"}]}"#,
        "/reasoning_effort",
        "effort",
    ),
    (
        Dialect::Chat,
        r#"[{"error":{"code":400,"message":"Invalid JSON payload received. Unknown name \"stream_options\": Cannot find field.","status":"INVALID_ARGUMENT"}}]"#,
        "/stream_options",
        "stream_options",
    ),
    (
        Dialect::Responses,
        r#"{"error":{"message":"Unsupported value: 'high' is not supported with the 'm' model. Supported values are: 'none'.","type":"invalid_request_error","param":"reasoning.effort","code":"unsupported_value"}}"#,
        "/reasoning/effort",
        "effort",
    ),
    (
        Dialect::Responses,
        r#"{"error":{"message":"Unsupported parameter: 'reasoning.effort' is not supported with this model.","type":"invalid_request_error","param":"reasoning.effort","code":"unsupported_parameter"}}"#,
        "/reasoning/effort",
        "effort",
    ),
    (Dialect::Chat, r#"{"error":"this model does not support reasoning effort"}"#, "/reasoning_effort", "effort"),
];

/// Broken builds: the Turn ends with the refusal, as on ce783d9e; each request of the Turn is refused again; the user hears
/// nothing, or hears it for each request.
#[test]
fn a_refused_parameter_is_left_out_from_then_on_and_said_once() {
    for (dialect, body, place, name) in REFUSALS {
        let shell = Shell::new(&[("a.txt", "A\n")]);
        let refused = Reply::Refuse { status: 400, headers: String::new(), body: body.to_owned() };
        let server = Server::start(vec![refused, call("c1", "read", json!({ "path": "a.txt" })), text("Fine.")]);
        let flags = server.flags(dialect);
        let args = ["--headless", "--effort", "high", "go"].into_iter().chain(flags.iter().map(String::as_str));
        let ran = shell.run(args);
        assert_eq!(ran.code, 0, "{body}: {}", ran.stderr);
        let has: Vec<bool> = server.bodies().iter().map(|sent: &Value| sent.pointer(place).is_some()).collect();
        assert_eq!(has, [true, false, false], "{body}");
        let told = format!("m does not take `{name}`, so requests go without it");
        assert_eq!(ran.stderr.matches(&told).count(), 1, "{body}: {}", ran.stderr);
    }
}

/// Broken build: a refusal that is about something else is repeated without the effort.
#[test]
fn a_refusal_about_something_else_ends_the_turn() {
    for message in ["Invalid value for messages[1].content", "the request is malformed", "model `m` has no temperature"]
    {
        let shell = Shell::new(&[]);
        let body = json!({ "error": { "message": message, "type": "invalid_request_error" } }).to_string();
        let refused = Reply::Refuse { status: 400, headers: String::new(), body };
        let server = Server::start(vec![refused, text("Fine.")]);
        let flags = server.flags(Dialect::Chat);
        let args = ["--headless", "--effort", "high", "go"].into_iter().chain(flags.iter().map(String::as_str));
        let ran = shell.run(args);
        assert_eq!((ran.code, server.bodies().len()), (1, 1), "{message}: {}", ran.stderr);
    }
}
