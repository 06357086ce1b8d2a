//! Answers that bend the protocol: shared indexes, odd order, odd endings, refused fields.

use serde_json::{Value, json};

use crate::connected::ask;
use crate::server::{Act, Dialect, HEAD, Part, Reply, Server, answer, begin, call, end, event, part, raw, said, text};
use crate::shell::{Shell, entries, png};

#[test]
fn a_stopped_answer_says_why_and_a_paused_one_continues() {
    let rows = [
        (Dialect::Responses, "incomplete", "max_output_tokens", "OUTPUT_TRUNCATED"),
        (Dialect::Responses, "incomplete", "content_filter", "REFUSED"),
        (Dialect::Chat, "length", "max_output_tokens", "OUTPUT_TRUNCATED"),
        (Dialect::Chat, "content_filter", "content_filter", "REFUSED"),
        (Dialect::Anthropic, "max_tokens", "max_output_tokens", "OUTPUT_TRUNCATED"),
        (Dialect::Anthropic, "refusal", "refusal", "REFUSED"),
        (Dialect::Anthropic, "model_context_window_exceeded", "model_context_window_exceeded", "CONTEXT_OVERFLOW"),
    ];
    for (dialect, reason, truncation, code) in rows {
        let shell = Shell::new(&[]);
        let mut said = begin(dialect);
        let args = json!({ "path": "x.txt", "content": "never" });
        said.extend(part(dialect, 0, Part::Text("As far as it goes. ")));
        said.extend(part(dialect, 1, Part::Call("c1", "write", &args)));
        said.push(crate::server::event(&match dialect {
            Dialect::Responses => {
                json!({ "type": "response.incomplete", "response": { "incomplete_details": { "reason": truncation } } })
            }
            Dialect::Chat => json!({ "choices": [{ "delta": {}, "finish_reason": reason }] }),
            Dialect::Anthropic => {
                json!({ "type": "message_delta", "delta": { "stop_reason": reason }, "usage": { "output_tokens": 9 } })
            }
        }));
        let server = Server::start(vec![Reply::Raw(vec![Act::Send((HEAD.to_owned() + &said.concat()).into_bytes())])]);
        let mut flags = server.flags(dialect);
        flags.extend(["--headless", "--json", "--write", "x"].map(str::to_owned));
        let ran = shell.run(flags);
        let document = ran.document();
        assert_eq!(
            (document["status"].as_str(), document["code"].as_str()),
            (Some("incomplete"), Some(code)),
            "{dialect:?} {reason}"
        );
        assert_ne!(ran.code, 0, "an incomplete answer is never a success");
        let log = entries(&shell.logs()[0]);
        let end = log.iter().find(|e| e["type"] == "turn_ended").expect("it ended");
        assert_eq!(end["data"]["details"]["output_truncation"], truncation);
        assert!(log.iter().any(|e| e["type"] == "assistant_message" && e["data"]["text"] == "As far as it goes. "));
        assert!(shell.read("x.txt").starts_with('('), "a call of an answer that is not whole does not run");
    }
    // After a pause the request is repeated with the partial answer.
    let shell = Shell::new(&[]);
    let mut said = begin(Dialect::Anthropic);
    said.extend(part(Dialect::Anthropic, 0, Part::Text("First half. ")));
    said.push(crate::server::event(
        &json!({ "type": "message_delta", "delta": { "stop_reason": "pause_turn" }, "usage": { "output_tokens": 9 } }),
    ));
    let server = Server::start(vec![
        Reply::Raw(vec![Act::Send((HEAD.to_owned() + &said.concat()).into_bytes())]),
        text("Second half."),
    ]);
    let mut flags = server.flags(Dialect::Anthropic);
    flags.extend(["--headless", "--json", "x"].map(str::to_owned));
    assert_eq!(shell.run(flags).document()["status"], "completed");
    assert_eq!(server.bodies()[1]["messages"][1]["content"][0]["text"], "First half. ");
}

#[test]
fn a_refused_field_is_left_out_and_the_request_repeated() {
    let refuse = |message: &str| Reply::Refuse {
        status: 400,
        headers: String::new(),
        body: json!({ "error": { "message": message } }).to_string(),
    };
    let read = json!({ "path": "a.txt" });
    let thinks = || said(Dialect::Chat, &[Part::Reasoning("A thought. "), Part::Call("c1", "read", &read)]);
    let again = || said(Dialect::Chat, &[Part::Reasoning("Another. "), Part::Call("c2", "read", &read)]);
    let shell = Shell::new(&[("a.txt", "alpha\n")]);
    let server =
        Server::start(vec![thinks(), refuse("property 'reasoning_content' is unsupported"), again(), text("Done.")]);
    assert_eq!(ask(&shell, &server, Dialect::Chat, &["x"]).document()["output"], "Done.");
    let sent: Vec<bool> =
        server.bodies().iter().map(|body| body.to_string().contains("\"reasoning_content\"")).collect();
    assert_eq!(sent, [false, true, false, false], "once refused, not sent again");

    std::fs::write(shell.workspace().join("photo.png"), png(400)).expect("write");
    let blind = refuse("image input is not supported - hint: you may need to provide the mmproj");
    let server =
        Server::start(vec![call("c1", "read", json!({ "path": "photo.png" })), blind, text("I cannot see it.")]);
    assert_eq!(ask(&shell, &server, Dialect::Chat, &["look"]).document()["output"], "I cannot see it.");
    assert!(server.bodies()[2].to_string().contains("does not accept images"));

    // Some accounts are refused one field of this dialect.
    let no_summaries = refuse("Your organization must be verified to use reasoning.summary");
    let server = Server::start(vec![no_summaries, text("Without.")]);
    let args = ["--base-url", &server.url, "--dialect", "responses", "--model", "gpt-5", "--headless", "--json", "x"];
    assert_eq!(shell.run(args).document()["output"], "Without.");
    assert!(server.bodies()[1].pointer("/reasoning/summary").is_none());
}

#[test]
fn items_that_share_an_output_index_stay_two() {
    let found = json!({ "id": "f", "type": "function_call", "call_id": "c1", "name": "read", "arguments": "{\"path\":\"a.txt\"}" });
    let message = json!({ "id": "m", "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": "Only once." }] });
    for (first, second) in [(0, 0), (1, 2)] {
        let events = [
            json!({ "type": "response.output_item.added", "output_index": first, "item": { "id": "m", "type": "message" } }),
            json!({ "type": "response.output_text.delta", "output_index": first, "item_id": "m", "delta": "Only once." }),
            json!({ "type": "response.output_item.done", "output_index": first, "item": message }),
            json!({ "type": "response.output_item.done", "output_index": second, "item": found }),
            json!({ "type": "response.completed", "response": { "output": [message, found] } }),
        ];
        let shell = Shell::new(&[("a.txt", "alpha\n")]);
        let server = Server::start(vec![raw(&events.iter().map(event).collect::<String>()), text("Done.")]);
        assert_eq!(ask(&shell, &server, Dialect::Responses, &["x"]).document()["tool_calls"], 1);
        let log = entries(&shell.logs()[0]);
        let texts = log.iter().filter(|e| e["type"] == "assistant_message").map(|e| &e["data"]["text"]);
        assert_eq!(texts.collect::<Vec<_>>(), ["Only once.", "Done."]);
    }
}

#[test]
fn calls_that_share_an_index_stay_two() {
    let piece = |id: &str, path: &str| {
        let function = json!({ "name": "read", "arguments": json!({ "path": path }).to_string() });
        event(
            &json!({ "choices": [{ "index": 0, "delta": { "tool_calls": [{ "index": 0, "id": id, "type": "function", "function": function }] } }] }),
        )
    };
    let shell = Shell::new(&[("a.txt", "alpha\n"), ("b.txt", "beta\n")]);
    for ids in [["c1", "c2"], ["", ""]] {
        let both = [piece(ids[0], "a.txt"), piece(ids[1], "b.txt"), end(Dialect::Chat, true).concat()].concat();
        let server = Server::start(vec![raw(&both), text("Both.")]);
        assert_eq!(ask(&shell, &server, Dialect::Chat, &["x"]).document()["tool_calls"], 2);
        let body = server.bodies()[1].to_string();
        assert!(body.contains("alpha") && body.contains("beta"), "{body}");
    }
}

#[test]
fn items_in_odd_order_are_recorded_exactly_once() {
    // An item with an index but deltas without one, and a call that is complete only in the last event.
    let message = json!({ "id": "m", "type": "message", "role": "assistant", "phase": "commentary", "content": [{ "type": "output_text", "text": "Hello world" }] });
    let found = json!({ "id": "f", "type": "function_call", "call_id": "c1", "name": "read", "arguments": "{\"path\":\"a.txt\"}" });
    let events = [
        json!({ "type": "response.output_item.added", "output_index": 0, "item": { "id": "m", "type": "message" } }),
        json!({ "type": "response.output_text.delta", "item_id": "m", "delta": "Hello world" }),
        json!({ "type": "response.output_item.done", "output_index": 0, "item": message }),
        json!({ "type": "response.output_item.added", "output_index": 1, "item": { "id": "f", "type": "function_call", "name": "read", "call_id": "c1" } }),
        json!({ "type": "response.completed", "response": { "output": [message, found] } }),
    ];
    let shell = Shell::new(&[("a.txt", "alpha\n")]);
    let server = Server::start(vec![raw(&events.iter().map(event).collect::<String>()), text("Done.")]);
    assert_eq!(ask(&shell, &server, Dialect::Responses, &["x"]).document()["tool_calls"], 1);
    let log = entries(&shell.logs()[0]);
    let texts: Vec<&Value> =
        log.iter().filter(|e| e["type"] == "assistant_message").map(|e| &e["data"]["text"]).collect();
    assert_eq!(texts, ["Hello world", "Done."]);
    let back =
        server.bodies()[1]["input"].as_array().expect("input").iter().find(|it| it["role"] == "assistant").cloned();
    assert_eq!(back.expect("it goes back")["phase"], "commentary", "with its phase");
}

#[test]
fn an_odd_finish_reason_is_not_a_finished_answer() {
    for (reason, code) in [
        ("insufficient_system_resource", "PROVIDER_UNAVAILABLE"),
        ("network_error", "PROVIDER_UNAVAILABLE"),
        ("model_length", "OUTPUT_TRUNCATED"),
        ("sensitive", "REFUSED"),
    ] {
        let shell = Shell::new(&[]);
        shell.configure("[requests]\nattempts = 1\n");
        let half = json!({ "choices": [{ "index": 0, "delta": { "content": "Half a sen" } }] });
        let stop = json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": reason }] });
        let server = Server::start(vec![raw(&[event(&half), event(&stop)].concat())]);
        let ran = ask(&shell, &server, Dialect::Chat, &["x"]);
        assert!(ran.code != 0 && ran.document()["code"] == code, "{reason}: {}", ran.stdout);
    }
    // After the finish reason only usage follows; an error there is ignored.
    let shell = Shell::new(&[]);
    let late = event(&json!({ "error": { "message": "too late", "code": 500 } }));
    let whole =
        event(&json!({ "choices": [{ "index": 0, "delta": { "content": "Whole." }, "finish_reason": "stop" }] }));
    let server = Server::start(vec![raw(&(whole + &late))]);
    assert_eq!(ask(&shell, &server, Dialect::Chat, &["x"]).document()["output"], "Whole.");
}

/// An event that comes twice counts once, where the server names its events; words that a model repeats stay.
///
/// Broken builds: nothing drops the second event; equal data is dropped without a name, or with one that every event has.
#[test]
fn an_event_that_comes_twice_counts_once() {
    let words = "Well, ha ha ha ha, it says ha ha ";
    let mut tried = 0;
    for dialect in Dialect::ALL {
        let plain = answer(dialect, &[Part::Text(words)]);
        let with_id = |id: &dyn Fn(usize) -> String| -> Vec<String> {
            plain.iter().enumerate().map(|(n, it)| format!("id: {}\n{it}", id(n))).collect()
        };
        let with_number = |number: &dyn Fn(usize) -> usize| -> Vec<String> {
            let numbered = |(n, it): (usize, &String)| {
                let data = it.lines().find_map(|line| line.strip_prefix("data: "))?;
                let mut data: Value = serde_json::from_str(data).ok()?;
                data["sequence_number"] = number(n).into();
                Some(event(&data))
            };
            plain.iter().enumerate().map(|(n, it)| numbered((n, it)).unwrap_or_else(|| it.clone())).collect()
        };
        let twice = |events: &[String]| events.iter().flat_map(|it| [it.clone(), it.clone()]).collect::<Vec<_>>();
        let again = |events: &[String]| [&events[..5], &events[1..]].concat();
        let mut streams = vec![
            ("as it is", plain.clone()),
            ("ids", twice(&with_id(&|n| format!("e{n}")))),
            ("ids, a run again", again(&with_id(&|n| format!("e{n}")))),
            ("one id for all", with_id(&|_| "same".into())),
            ("an empty id", with_id(&|_| String::new())),
        ];
        if dialect == Dialect::Responses {
            streams.extend([
                ("numbers", twice(&with_number(&|n| n))),
                ("numbers, a run again", again(&with_number(&|n| n))),
                ("one number for all", with_number(&|_| 0)),
            ]);
        }
        for (how, events) in streams {
            let shell = Shell::new(&[]);
            let server = Server::start(vec![raw(&events.concat())]);
            let ran = ask(&shell, &server, dialect, &["x"]);
            assert_eq!(ran.document()["output"], words, "{dialect:?}, {how}: {}", ran.stderr);
            tried += 1;
        }
    }
    crate::shell::figures(&format!("streams with and without repeated events: {tried} tried, 0 failed"));
}
