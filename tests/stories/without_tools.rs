//! Models that take no tools: they answer in words, and the user hears why.

use serde_json::{Value, json};

use crate::server::{Dialect, Reply, Server, call, text};
use crate::shell::{Shell, entries};

/// What servers say where a model, or the server as it was started, takes no tools.
const REFUSALS: [(u16, &str); 6] = [
    (400, r#"{"error":{"message":"registry.ollama.ai/library/gemma3:4b does not support tools","type":"api_error"}}"#),
    (500, r#"{"error":{"code":500,"message":"tools param requires --jinja flag","type":"server_error"}}"#),
    (
        400,
        r#"{"object":"error","message":"\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set","type":"BadRequestError","code":400}"#,
    ),
    (404, r#"{"error":{"message":"No endpoints found that support tool use.","code":404}}"#),
    (
        400,
        r#"[{"error":{"code":400,"message":"Function calling is not enabled for models/gemma-3-27b-it","status":"INVALID_ARGUMENT"}}]"#,
    ),
    (400, r#"{"message":"tool use is not supported by this model"}"#),
];

fn refused(status: u16, body: &str) -> Reply {
    Reply::Refuse { status, headers: String::new(), body: body.to_owned() }
}

fn tools_of(body: &Value) -> usize {
    body["tools"].as_array().map_or(0, Vec::len)
}

/// Broken builds: the refusal counts as overload and is repeated for three minutes, as on ce783d9e; the request without tools
/// keeps instructions that speak of them; the user hears nothing.
#[test]
fn a_model_without_tools_answers_in_words_and_the_user_hears_why() {
    for (status, body) in REFUSALS {
        let shell = Shell::new(&[]);
        let server = Server::start(vec![refused(status, body), text("Hello."), text("Again.")]);
        let flags = server.flags(Dialect::Chat);
        let flags = || flags.iter().map(String::as_str);
        let ran = shell.run(["--headless", "hello"].into_iter().chain(flags()));
        assert_eq!(ran.code, 0, "{body}: {}", ran.stderr);
        assert!(ran.stderr.contains("takes no tools"), "{body}: {}", ran.stderr);
        let bodies = server.bodies();
        assert_eq!(bodies.len(), 2, "{body}: it is refused once");
        assert!(tools_of(&bodies[0]) > 3 && tools_of(&bodies[1]) == 0, "{body}");
        let system = bodies[1]["messages"][0].to_string();
        assert!(system.contains("You have no tools") && !system.contains("update_plan"), "{system}");
        // A resumed session asks without tools at once.
        let ran = shell.run(["resume", "--last", "again", "--headless", "--json"].into_iter().chain(flags()));
        assert_eq!((ran.code, server.bodies().len()), (0, 3), "{body}: {}", ran.stderr);
        assert_eq!(tools_of(&server.bodies()[2]), 0);
    }
}

/// Broken build: what ollama lists of a model's abilities is not read.
#[test]
fn a_local_server_that_lists_no_tools_is_not_sent_any() {
    let shell = Shell::new(&[]);
    let shown = json!({ "capabilities": ["completion", "vision"], "parameters": "num_ctx 16384" });
    let server = Server::with_facts(vec![text("Hello.")], vec![("/api/show", shown)]);
    let flags = server.flags(Dialect::Chat);
    let ran = shell.run(["--headless", "hello"].into_iter().chain(flags.iter().map(String::as_str)));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let bodies = server.bodies();
    assert!(bodies.len() == 1 && tools_of(&bodies[0]) == 0, "{bodies:?}");
    assert!(ran.stderr.contains("takes no tools"), "{}", ran.stderr);
}

/// Broken builds: `none` is no toolset; a call that the model writes all the same runs.
#[test]
fn the_user_may_chat_without_tools() {
    let shell = Shell::new(&[("a.txt", "alpha\n")]);
    let server = Server::start(vec![call("c", "read", json!({ "path": "a.txt" })), text("In words.")]);
    let flags = server.flags(Dialect::Chat);
    let args = ["--headless", "--toolset", "none", "hello"];
    let ran = shell.run(args.into_iter().chain(flags.iter().map(String::as_str)));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(server.bodies().iter().all(|body| tools_of(body) == 0));
    let log = entries(&shell.logs()[0]);
    let result = log.iter().find(|it| it["type"] == "tool_result").expect("a result");
    let output = result["data"]["output"].as_str().expect("text");
    assert!(output.contains("this session has no tools") && !output.contains("alpha"), "{output}");
    assert!(!ran.stderr.contains("takes no tools"), "the user has chosen it: {}", ran.stderr);
}

/// Calls and results that stand in the conversation already go to a model without tools as text, and another model gets its
/// tools back.
///
/// Broken builds: a request without tools has calls in it, which servers refuse; the session stays without tools for good.
#[test]
fn a_conversation_with_calls_goes_on_with_a_model_without_tools_and_back() {
    for dialect in Dialect::ALL {
        let shell = Shell::new(&[("a.txt", "alpha\n")]);
        let (status, body) = REFUSALS[0];
        let replies = vec![
            call("c", "read", json!({ "path": "a.txt" })),
            text("It says alpha."),
            refused(status, body),
            text("In words."),
            text("With tools."),
        ];
        let server = Server::start(replies);
        let run = |more: &[&str], model: &str| {
            let mut flags = server.flags(dialect);
            let at = flags.iter().position(|it| it == "--model").expect("a model");
            flags[at + 1] = model.into();
            let ran = shell.run(more.iter().copied().chain(flags.iter().map(String::as_str)));
            assert_eq!(ran.code, 0, "{dialect:?}: {}", ran.stderr);
        };
        run(&["--headless", "--json", "look"], "m");
        run(&["resume", "--last", "small", "--headless", "--json"], "small");
        run(&["resume", "--last", "large", "--headless", "--json"], "large");
        let bodies = server.bodies();
        assert_eq!(bodies.len(), 5, "{dialect:?}");
        let small = bodies[3].to_string();
        for sign in ["tool_calls", "tool_call_id", "function_call", "tool_use", "tool_result"] {
            assert!(!small.contains(&format!("\"{sign}")), "{dialect:?}: {sign} in {small}");
        }
        assert!(small.contains("a call of the tool read") && small.contains("alpha"), "{small}");
        assert!(tools_of(&bodies[4]) > 3, "{dialect:?}: the tools are back");
    }
}
