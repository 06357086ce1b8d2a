//! Streams that bend the rules and still have one right reading, and ends that are no success.

use serde_json::{Value, json};

use crate::connected::ask;
use crate::server::{Act, Dialect, HEAD, Part, Reply, Server, answer, begin, end, event, raw, said, text};
use crate::shell::{Shell, entries};

/// The text of the one finished answer in the only Log.
fn spoken(shell: &Shell) -> Vec<String> {
    let log = entries(&shell.logs()[0]);
    let texts = log.iter().filter(|e| e["type"] == "assistant_message").map(|e| e["data"]["text"].as_str());
    texts.map(|it| it.expect("a text").to_owned()).collect()
}

fn choice(delta: Value) -> String {
    event(&json!({ "choices": [{ "index": 0, "delta": delta }] }))
}

/// The escape of the halves of 🎉, as a server writes them that cuts strings between UTF-16 units.
fn halved(json: String) -> String {
    json.replace("FIRST", "\\ud83c").replace("SECOND", "\\udf89")
}

/// Broken build: one that parses each event by itself. "Unexpected end of hex escape" ends the Turn.
#[test]
fn half_characters_are_joined_over_chunks_and_lone_ones_replaced() {
    for dialect in Dialect::ALL {
        // One delta each: the pieces of a text are cut at blanks.
        let thought = crate::server::part(dialect, 0, Part::Reasoning("hmFIRST SECONDm.")).concat();
        let thought = thought.replace("hmFIRST ", "hmFIRST");
        let body = begin(dialect).concat()
            + &thought
            + &crate::server::part(dialect, 1, Part::Text("PLACE")).concat().replace("PLACE", "aFIRST")
            + &match dialect {
                // The same block goes on in the next delta.
                Dialect::Responses => event(
                    &json!({ "type": "response.output_text.delta", "output_index": 1, "delta": "SECONDb FIRST." }),
                ),
                Dialect::Chat => choice(json!({ "content": "SECONDb FIRST." })),
                Dialect::Anthropic => event(
                    &json!({ "type": "content_block_delta", "index": 1, "delta": { "type": "text_delta", "text": "SECONDb FIRST." } }),
                ),
            }
            + &end(dialect, false).concat();
        let shell = Shell::new(&[]);
        let server = Server::start(vec![raw(&halved(body))]);
        let mut args = server.flags(dialect);
        args.extend(["--headless", "--format", "jsonl", "x"].map(str::to_owned));
        let ran = shell.run(args);
        assert_eq!(ran.code, 0, "{dialect:?}: {}", ran.stderr);
        assert_eq!(spoken(&shell), ["a🎉b \u{fffd}."], "{dialect:?}");
        let lines = ran.lines();
        let streamed = |kind: &str| -> String {
            let deltas = lines.iter().filter(|it| it["type"] == kind);
            deltas.map(|it| it["data"]["text"].as_str().expect("text")).collect()
        };
        assert_eq!(streamed("text_delta"), "a🎉b \u{fffd}.", "{dialect:?}");
        assert_eq!(streamed("reasoning_delta"), "hm🎉m.", "{dialect:?}");
    }
    // In arguments: cut between chunks, and escaped inside the JSON text of the arguments.
    let pieces = ["{\"path\": \"x.txt\", \"content\": \"FIRST", "SECOND \\udf89 \\ud83c\\udf89\"}"];
    let call = |args: &str, id: Value| {
        choice(json!({ "tool_calls": [{ "index": 0, "id": id, "function": { "name": "write", "arguments": args } }] }))
    };
    let body =
        halved(call(pieces[0], json!("c1")) + &call(pieces[1], Value::Null)) + &end(Dialect::Chat, true).concat();
    let shell = Shell::new(&[]);
    let server = Server::start(vec![raw(&body), text("Written.")]);
    let mut args = server.flags(Dialect::Chat);
    args.extend(["--headless", "--json", "--write", "x"].map(str::to_owned));
    let ran = shell.run(args);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(shell.read("x.txt"), "🎉 \u{fffd} 🎉");
}

/// Broken build: one that believes `response.completed` and `stop`. The cut or refused answer is a success, exit 0.
#[test]
fn an_incomplete_status_and_a_refusal_are_no_finished_answer() {
    let item = |kind: &str| {
        let field = if kind == "refusal" { "refusal" } else { "text" };
        let mut part = json!({ "type": kind });
        part[field] = json!("I cannot.");
        json!({ "type": "message", "id": "m", "role": "assistant", "content": [part] })
    };
    let done =
        |kind: &str| event(&json!({ "type": "response.output_item.done", "output_index": 0, "item": item(kind) }));
    let completed = |response: Value| event(&json!({ "type": "response.completed", "response": response }));
    let refusal_delta = event(&json!({ "type": "response.refusal.delta", "output_index": 0, "delta": "I cannot." }));
    let incomplete = json!({ "status": "incomplete", "incomplete_details": { "reason": "max_output_tokens" } });
    let filtered = json!({ "status": "incomplete", "incomplete_details": { "reason": "content_filter" } });
    let stop = |reason: &str| event(&json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": reason }] }));
    let rows = [
        (Dialect::Responses, done("output_text") + &completed(incomplete), "OUTPUT_TRUNCATED"),
        (Dialect::Responses, done("output_text") + &completed(filtered), "REFUSED"),
        (
            Dialect::Responses,
            refusal_delta + &done("refusal") + &completed(json!({ "status": "completed" })),
            "REFUSED",
        ),
        (Dialect::Responses, done("refusal") + &completed(json!({})), "REFUSED"),
        (Dialect::Chat, choice(json!({ "refusal": "I cannot." })) + &stop("stop"), "REFUSED"),
        (Dialect::Chat, choice(json!({ "content": "I cannot." })) + &stop("content_filter"), "REFUSED"),
        (Dialect::Chat, choice(json!({ "content": "I cannot." })) + &stop("length"), "OUTPUT_TRUNCATED"),
    ];
    for (dialect, body, code) in rows {
        let shell = Shell::new(&[]);
        let server = Server::start(vec![raw(&body)]);
        let ran = ask(&shell, &server, dialect, &["x"]);
        assert_eq!((ran.code, ran.document()["code"].as_str()), (14, Some(code)), "{body}");
        assert_eq!(spoken(&shell), ["I cannot."], "{body}");
    }
}

/// Broken build: one that reads errors only in its own dialect's form. The user hears of a closed connection instead.
#[test]
fn an_error_in_any_form_gives_the_servers_words() {
    let rows = [
        "event: error\ndata: {\"code\":500,\"message\":\"the slot is gone\",\"type\":\"server_error\"}\n\n",
        "event: error\ndata: {\"error\":{\"message\":\"the slot is gone\",\"code\":\"server_error\"}}\n\n",
        "event: error\ndata: the slot is gone\n\n",
        "data: {\"error\":\"the slot is gone\"}\n\n",
        "data: {\"error\":{\"code\":500,\"msg\":\"the slot is gone\"}}\n\n",
        "data: {\"object\":\"error\",\"message\":\"the slot is gone\",\"code\":500}\n\n",
        "data: {\"type\":\"error\",\"code\":\"server_error\",\"message\":\"the slot is gone\"}\n\n",
        "data: {\"detail\":\"the slot is gone\"}\n\n",
    ];
    for dialect in Dialect::ALL {
        for row in rows {
            let shell = Shell::new(&[]);
            shell.configure("[requests]\nattempts = 1\n");
            let server = Server::start(vec![raw(&(begin(dialect).concat() + row))]);
            let ran = ask(&shell, &server, dialect, &["x"]);
            let message = ran.error()["error"]["message"].as_str().expect("a message").to_owned();
            assert!(message.ends_with(": the slot is gone"), "{dialect:?} {row}: {message}");
        }
    }
}

/// Broken build: one that compares the content type exactly. It refuses a good stream.
#[test]
fn what_reads_like_an_event_stream_is_one_whatever_its_content_type() {
    for kind in ["text/plain", "application/octet-stream", "Text/Event-Stream; charset=UTF-8", "application/json"] {
        for dialect in Dialect::ALL {
            let shell = Shell::new(&[]);
            let stream = answer(dialect, &[Part::Text("Fine.")]).concat();
            let head = HEAD.replace("text/event-stream", kind);
            let (first, rest) = stream.split_at(3);
            let acts = [&head, "\u{feff}\r\n", first, rest].map(|it| Act::Send(it.as_bytes().to_vec()));
            let server = Server::start(vec![Reply::Raw(acts.to_vec())]);
            let ran = ask(&shell, &server, dialect, &["x"]);
            assert_eq!(ran.document()["output"], "Fine.", "{kind} {dialect:?}: {}", ran.stderr);
        }
    }
}

/// Broken build: one that appends the path to the whole base URL: `/v1?api-version=1/chat/completions`.
#[test]
fn a_base_url_keeps_its_query() {
    for dialect in Dialect::ALL {
        let shell = Shell::new(&[]);
        let server = Server::start(vec![text("Found.")]);
        let url = format!("{}/?api-version=2025-01-01&x=1", server.url);
        let ran = shell.run(["--base-url", &url, "--dialect", dialect.name(), "--headless", "--json", "x"]);
        assert_eq!(ran.document()["output"], "Found.", "{}", ran.stderr);
        let lines: Vec<String> = server.heads().iter().filter_map(|it| it.lines().next().map(str::to_owned)).collect();
        let path = match dialect {
            Dialect::Responses => "POST /v1/responses?api-version=2025-01-01&x=1 ",
            Dialect::Chat => "POST /v1/chat/completions?api-version=2025-01-01&x=1 ",
            Dialect::Anthropic => "POST /v1/messages?api-version=2025-01-01&x=1 ",
        };
        assert!(lines.iter().any(|line| line.starts_with(path)), "{lines:?}");
        let list = if dialect == Dialect::Anthropic { "?limit=1000&api-version" } else { "?api-version" };
        assert!(lines.iter().any(|line| line.starts_with(&format!("GET /v1/models{list}=2025"))), "{lines:?}");
    }
}

/// Broken build: the last piece of a name wins; the second choice is mixed in; a whole message is lost; a server's own
/// call is taken for one that was never closed.
#[test]
fn pieces_choices_messages_and_items_are_read_as_they_are_meant() {
    let call = |piece: Value| choice(json!({ "tool_calls": [piece] }));
    let names = call(json!({ "index": 0, "id": "c1", "function": { "name": "re" } }))
        + &call(json!({ "index": 0, "function": { "name": "ad", "arguments": "" } }))
        + &call(json!({ "index": 0, "function": { "arguments": "{\"path\":\"a.txt\"}" } }));
    let repeated = call(json!({ "index": 0, "id": "c1", "function": { "name": "read", "arguments": "{\"path\"" } }))
        + &call(json!({ "index": 0, "id": "c1", "function": { "name": "read", "arguments": ":\"a.txt\"}" } }));
    for body in [names, repeated] {
        let shell = Shell::new(&[("a.txt", "alpha\n")]);
        let server = Server::start(vec![raw(&(body + &end(Dialect::Chat, true).concat())), text("Read.")]);
        assert_eq!(ask(&shell, &server, Dialect::Chat, &["x"]).document()["output"], "Read.");
        assert!(server.bodies()[1].to_string().contains("alpha"), "the call ran");
    }
    let second = event(&json!({ "choices": [{ "index": 1, "delta": { "content": "Not this." } }] }));
    let both = event(&json!({ "choices": [
        { "index": 1, "delta": { "content": "Nor this." }, "finish_reason": "stop" },
        { "index": 0, "delta": { "content": "first." } },
    ] }));
    let ended = end(Dialect::Chat, false).concat();
    let stop = json!({ "message": { "role": "assistant", "content": "Whole at once." }, "finish_reason": "stop" });
    let message = event(&json!({ "choices": [stop] }));
    let repeat = json!({ "index": 0, "delta": {}, "message": { "content": "Once." }, "finish_reason": "stop" });
    let rows = [
        (choice(json!({ "content": "The " })) + &second + &both + &ended, "The first."),
        (message, "Whole at once."),
        (choice(json!({ "content": "Once." })) + &event(&json!({ "choices": [repeat] })), "Once."),
    ];
    for (body, output) in rows {
        let shell = Shell::new(&[]);
        let server = Server::start(vec![raw(&body)]);
        assert_eq!(ask(&shell, &server, Dialect::Chat, &["x"]).document()["output"], output);
    }
    let open = json!({ "type": "response.output_item.added", "output_index": 0, "item": { "id": "x", "type": "mcp_call", "name": "lookup" } });
    let body = event(&open)
        + &event(&json!({ "type": "response.output_text.delta", "output_index": 1, "delta": "Looked up." }))
        + &end(Dialect::Responses, false).concat();
    let shell = Shell::new(&[]);
    let server = Server::start(vec![raw(&body)]);
    assert_eq!(ask(&shell, &server, Dialect::Responses, &["x"]).document()["output"], "Looked up.");
}

/// Broken build: one that shows the thoughts as the answer, and sends them back.
#[test]
fn think_tags_at_the_start_are_reasoning() {
    let rows = [
        ("<think>A thought.</think>\n\nThe answer.", "The answer.", "A thought."),
        ("\n<think>\nA < thought </thin.</think>The answer.", "The answer.", "\nA < thought </thin."),
        ("The <think>answer</think>.", "The <think>answer</think>.", ""),
        ("<thinking> is a word.", "<thinking> is a word.", ""),
        ("<thi", "<thi", ""),
    ];
    for (content, output, thought) in rows {
        for size in [1, 3, 1_000] {
            let characters: Vec<char> = content.chars().collect();
            let deltas = characters.chunks(size).map(|it| choice(json!({ "content": it.iter().collect::<String>() })));
            let body = deltas.collect::<String>() + &end(Dialect::Chat, false).concat();
            let shell = Shell::new(&[]);
            let server = Server::start(vec![raw(&body), text("Next.")]);
            assert_eq!(ask(&shell, &server, Dialect::Chat, &["x"]).document()["output"], output, "{content} by {size}");
            let log = entries(&shell.logs()[0]);
            let thoughts: Vec<&Value> =
                log.iter().filter(|e| e["type"] == "reasoning").map(|e| &e["data"]["text"]).collect();
            assert_eq!(thoughts, if thought.is_empty() { vec![] } else { vec![thought] }, "{content} by {size}");
            ask(&shell, &server, Dialect::Chat, &["resume", "--last", "more"]);
            assert!(thought.is_empty() || !server.bodies()[1].to_string().contains("A thought"), "it is not sent back");
        }
    }
    // A server that sends reasoning in its own field still may.
    let shell = Shell::new(&[]);
    let server = Server::start(vec![said(Dialect::Chat, &[Part::Reasoning("Hm. "), Part::Text("Yes.")])]);
    assert_eq!(ask(&shell, &server, Dialect::Chat, &["x"]).document()["output"], "Yes.");
}
