//! What goes back to a model of what it said: thinking where it belongs, calls in their order, and nothing that a server would
//! refuse for ever.

use serde_json::{Value, json};

use crate::server::{Act, Dialect, HEAD, Part, Reply, Server, answer, call, end, event, text};
use crate::shell::{Ran, Shell, entries, png, ran};

fn raw(events: &str) -> Reply {
    Reply::Raw(vec![Act::Send(format!("{HEAD}{events}").into_bytes())])
}

fn said(dialect: Dialect, parts: &[Part<'_>]) -> Reply {
    raw(&answer(dialect, parts).concat())
}

fn ask(shell: &Shell, server: &Server, dialect: Dialect, words: &[&str]) -> Ran {
    let mut args: Vec<String> = words.iter().map(|it| (*it).to_owned()).collect();
    args.extend(server.flags(dialect));
    args.extend(["--headless", "--json"].map(str::to_owned));
    shell.run(args)
}

#[test]
fn thinking_goes_back_to_the_model_that_thought_it_and_to_no_other() {
    for dialect in Dialect::ALL {
        let shell = Shell::new(&[("a.txt", "alpha\n")]);
        let read = json!({ "path": "a.txt" });
        let said = [Part::Reasoning("A deep thought. "), Part::Call("c.1:0", "read", &read)];
        let thought = Reply::Raw(vec![Act::Send((HEAD.to_owned() + &answer(dialect, &said).concat()).into_bytes())]);
        let server = Server::start(vec![thought, text("It says alpha."), text("Hm.")]);
        let mut args = server.flags(dialect);
        args.extend(["--headless", "--json", "x"].map(str::to_owned));
        assert_eq!(shell.run(args).code, 0);
        let mut flags = server.flags(dialect);
        let at = flags.iter().position(|it| it == "--model").expect("a model");
        flags[at + 1] = "other".into();
        let again = ["resume", "--last", "y", "--headless", "--json"].map(str::to_owned);
        assert_eq!(shell.run([again.as_slice(), &flags].concat()).code, 0);

        let bodies = server.bodies();
        let (same, other) = (bodies[1].to_string(), bodies[2].to_string());
        let (proof, place) = match dialect {
            Dialect::Responses => ("\"encrypted_content\":\"gAAA\"", "\"function_call\""),
            Dialect::Chat => ("\"reasoning_content\":\"A deep thought. \"", "\"role\":\"tool\""),
            Dialect::Anthropic => ("\"signature\":\"EqQB\"", "\"tool_use\""),
        };
        let (thought, call) = (same.find(proof).expect("it goes back"), same.find(place).expect("with its call"));
        assert!(thought < call, "{dialect:?}: before what it led to");
        assert!(!other.contains(proof), "{dialect:?}: another model does not get it");
        // Ids that not every server takes are made such, and stay pairs.
        assert!(!same.contains("c.1:0") && same.matches("c_1_0_").count() == 2, "{same}");
    }
}

/// The kinds of what a model said, in the order in which it goes back.
fn kinds(dialect: Dialect, body: &Value) -> Vec<String> {
    let kind = |it: &Value| it["type"].as_str().unwrap_or_default().to_owned();
    match dialect {
        Dialect::Anthropic => body["messages"][1]["content"].as_array().expect("blocks").iter().map(kind).collect(),
        _ => body["input"].as_array().expect("input").iter().skip(2).map(kind).collect(),
    }
}

#[test]
fn thinking_between_calls_goes_back_between_them() {
    let read = json!({ "path": "a.txt" });
    let other = json!({ "path": "b.txt" });
    let parts = [
        Part::Reasoning("First. "),
        Part::Text("Let me see. "),
        Part::Call("c1", "read", &read),
        Part::Reasoning("Then. "),
        Part::Call("c2", "read", &other),
    ];
    let rows = [
        (Dialect::Anthropic, ["thinking", "text", "tool_use", "thinking", "tool_use"].as_slice()),
        (
            Dialect::Responses,
            &[
                "reasoning",
                "message",
                "function_call",
                "reasoning",
                "function_call",
                "function_call_output",
                "function_call_output",
            ],
        ),
    ];
    for (dialect, wanted) in rows {
        let shell = Shell::new(&[("a.txt", "alpha\n"), ("b.txt", "beta\n")]);
        let server = Server::start(vec![said(dialect, &parts), text("I see."), text("Still.")]);
        assert_eq!(ask(&shell, &server, dialect, &["x"]).code, 0);
        assert_eq!(ask(&shell, &server, dialect, &["resume", "--last", "y"]).code, 0);
        for body in &server.bodies()[1..] {
            assert_eq!(kinds(dialect, body)[..wanted.len()], *wanted, "{dialect:?}");
        }
        if dialect == Dialect::Anthropic {
            let results = server.bodies()[1]["messages"][2]["content"].clone();
            assert_eq!((&results[0]["tool_use_id"], &results[1]["tool_use_id"]), (&json!("c1"), &json!("c2")));
        }
    }
}

#[test]
fn thinking_is_not_given_back_once_what_was_before_it_has_changed() {
    for dialect in Dialect::ALL {
        let shell = Shell::new(&[("a.txt", "alpha\n")]);
        let read = json!({ "path": "a.txt" });
        let thinks = said(dialect, &[Part::Reasoning("A deep thought. "), Part::Call("c1", "read", &read)]);
        let server = Server::start(vec![thinks.clone(), text("One."), thinks, text("Two."), text("Three.")]);
        ask(&shell, &server, dialect, &["x"]);
        // Other tools, and so other words before everything that was thought.
        ask(&shell, &server, dialect, &["resume", "--last", "y", "--toolset", "both"]);
        ask(&shell, &server, dialect, &["resume", "--last", "z"]);
        let proof = match dialect {
            Dialect::Responses => "encrypted_content\":\"gAAA",
            Dialect::Chat => "A deep thought. ",
            Dialect::Anthropic => "EqQB",
        };
        let times: Vec<usize> = server.bodies().iter().map(|body| body.to_string().matches(proof).count()).collect();
        assert_eq!(times, [0, 1, 0, 1, 1], "{dialect:?}");
    }
}

#[test]
fn thinking_that_a_server_does_not_take_back_is_left_out_and_the_turn_goes_on() {
    let refusals = [
        (
            Dialect::Responses,
            json!({ "error": { "code": "invalid_encrypted_content", "message": "The encrypted content could not be verified." } }),
            "gAAA",
        ),
        (
            Dialect::Anthropic,
            json!({ "type": "error", "error": { "type": "invalid_request_error", "message": "messages.1.content.0: Invalid `signature` in `thinking` block" } }),
            "EqQB",
        ),
    ];
    for (dialect, body, proof) in refusals {
        let shell = Shell::new(&[("a.txt", "alpha\n")]);
        let read = json!({ "path": "a.txt" });
        let refused = Reply::Refuse { status: 400, headers: String::new(), body: body.to_string() };
        let thinks = said(dialect, &[Part::Reasoning("Hm. "), Part::Call("c1", "read", &read)]);
        let server = Server::start(vec![thinks, refused.clone(), text("Without it."), refused.clone(), refused]);
        let ran = ask(&shell, &server, dialect, &["x"]);
        assert_eq!((ran.code, ran.document()["output"].as_str()), (0, Some("Without it.")), "{}", ran.stderr);
        let bodies = server.bodies();
        assert!(bodies[1].to_string().contains(proof) && !bodies[2].to_string().contains(proof));
        // Once is a remedy, twice is a circle.
        let again = ask(&shell, &server, dialect, &["resume", "--last", "y"]);
        assert_eq!((again.error()["code"].as_str(), server.bodies().len()), (Some("REASONING_REJECTED"), 5));
    }
}

#[test]
fn an_answer_that_only_thinks_or_says_nothing_does_not_stand_in_the_way_of_the_next() {
    for dialect in Dialect::ALL {
        for parts in [
            [Part::Reasoning("Only a thought. ")].as_slice(),
            &[Part::Reasoning("A thought. "), Part::Text("\n\n")],
            &[],
        ] {
            let shell = Shell::new(&[]);
            let server = Server::start(vec![said(dialect, parts), text("There you are.")]);
            let first = ask(&shell, &server, dialect, &["x"]);
            assert_ne!(first.document()["status"], "failed", "{dialect:?}: {}", first.stderr);
            let ran = ask(&shell, &server, dialect, &["resume", "--last", "y"]);
            assert_eq!(ran.document()["output"], "There you are.", "{dialect:?}");
            let body = server.bodies()[1].clone();
            let said = body["input"].as_array().or(body["messages"].as_array()).expect("a conversation");
            let strange = said.iter().find(|it| it["role"] == "assistant" || it["type"] == "reasoning");
            assert_eq!(strange, None, "{dialect:?}: what was not said does not go back");
        }
    }
}

#[test]
fn what_a_server_refuses_is_left_out_and_asked_again() {
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

    // A dialect in which one setting is refused to some accounts.
    let no_summaries = refuse("Your organization must be verified to use reasoning.summary");
    let server = Server::start(vec![no_summaries, text("Without.")]);
    let args = ["--base-url", &server.url, "--dialect", "responses", "--model", "gpt-5", "--headless", "--json", "x"];
    assert_eq!(shell.run(args).document()["output"], "Without.");
    assert!(server.bodies()[1].pointer("/reasoning/summary").is_none());
}

#[test]
fn items_that_share_a_place_are_still_two() {
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
fn calls_that_share_an_index_are_still_two() {
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
fn items_that_are_told_in_odd_ways_are_said_once_and_never_lost() {
    // A place for the item, but none for its words; and a call that only the end tells whole.
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
    assert_eq!(back.expect("it goes back")["phase"], "commentary", "as what it was said");
}

#[test]
fn a_model_that_cannot_look_is_told_of_an_image_and_not_sent_it() {
    for dialect in Dialect::ALL {
        let shell = Shell::new(&[]);
        std::fs::write(shell.workspace().join("photo.png"), png(400)).expect("write");
        let server =
            Server::start(vec![call("c1", "read", json!({ "path": "photo.png" })), text("A cat."), text("No eyes.")]);
        shell.configure("[models.\"custom/blind\"]\nvision = false\n");
        ask(&shell, &server, dialect, &["look"]);
        let flags = ["--base-url", &server.url, "--dialect", dialect.name(), "--model", "blind"];
        let again = [["resume", "--last", "and now?", "--headless"].as_slice(), &flags].concat();
        assert_eq!(shell.run(again).code, 0);
        let bodies = server.bodies();
        assert!(bodies[1].to_string().contains("iVBOR"), "who can see is shown it");
        let blind = bodies[2].to_string();
        assert!(!blind.contains("iVBOR") && blind.contains("does not accept images"), "{dialect:?}");
    }
}

#[test]
fn a_broken_off_answer_is_not_a_finished_one_whatever_it_is_called() {
    for (reason, code) in [
        ("insufficient_system_resource", "PROVIDER_UNAVAILABLE"),
        ("network_error", "PROVIDER_UNAVAILABLE"),
        ("model_length", "OUTPUT_TRUNCATED"),
        ("sensitive", "REFUSED"),
    ] {
        let shell = Shell::new(&[]);
        let half = json!({ "choices": [{ "index": 0, "delta": { "content": "Half a sen" } }] });
        let stop = json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": reason }] });
        let server = Server::start(vec![raw(&[event(&half), event(&stop)].concat())]);
        let ran = ask(&shell, &server, Dialect::Chat, &["x"]);
        assert!(ran.code != 0 && ran.document()["code"] == code, "{reason}: {}", ran.stdout);
    }
    // After the end only numbers come; what goes wrong then does not matter any more.
    let shell = Shell::new(&[]);
    let late = event(&json!({ "error": { "message": "too late", "code": 500 } }));
    let whole =
        event(&json!({ "choices": [{ "index": 0, "delta": { "content": "Whole." }, "finish_reason": "stop" }] }));
    let server = Server::start(vec![raw(&(whole + &late))]);
    assert_eq!(ask(&shell, &server, Dialect::Chat, &["x"]).document()["output"], "Whole.");
}

#[test]
fn what_stays_on_this_machine_goes_through_no_proxy_and_what_a_person_says_twice_is_one_message() {
    let shell = Shell::new(&[]);
    let server = Server::start(vec![Reply::Cut { text: String::new() }, text("Directly."), text("Again.")]);
    shell.configure("[requests]\nattempts = 1\n");
    let go = |words: &[&str]| {
        let mut args: Vec<String> = words.iter().map(|it| (*it).to_owned()).collect();
        args.extend(server.flags(Dialect::Chat));
        args.extend(["--headless", "--json"].map(str::to_owned));
        let mut command = shell.command(args);
        let nowhere = ["http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy"].map(|name| (name, "http://127.0.0.1:9"));
        ran(command.envs(nowhere).output().expect("it runs"))
    };
    assert_ne!(go(&["first"]).code, 0);
    assert_eq!(go(&["resume", "--last", "second"]).document()["output"], "Directly.");
    let messages = server.bodies()[1]["messages"].clone();
    assert_eq!(messages[1], json!({ "role": "user", "content": "first\n\nsecond" }));
    assert_eq!(messages.as_array().expect("messages").len(), 2);
}

#[test]
fn a_server_of_ones_own_says_how_much_it_was_started_with() {
    let shell = Shell::new(&[("a.txt", "alpha\n")]);
    // `other` was started with 4,096 tokens: a long conversation is compacted before it is refused.
    let say = |words: &str| {
        raw(&event(&json!({ "choices": [{ "index": 0, "delta": { "content": words }, "finish_reason": "stop" }] })))
    };
    let server = Server::start(vec![say(&"word ".repeat(3_000)), say("short"), say("It fits.")]);
    let flags = ["--base-url", &server.url, "--dialect", "chat", "--model", "other", "--headless", "--json"];
    for words in [["one"].as_slice(), &["resume", "--last", "two"], &["resume", "--last", "three"]] {
        assert_eq!(shell.run([words, &flags].concat()).code, 0);
    }
    let log = entries(&shell.logs()[0]);
    let compaction = log.iter().find(|e| e["type"] == "history_compaction");
    assert_eq!(compaction.map(|e| &e["data"]["trigger"]), Some(&json!("threshold")));
}

#[test]
fn a_model_that_goes_round_in_circles_is_stopped_and_one_that_says_nothing_is_no_answer() {
    let shell = Shell::new(&[]);
    let same = || call("c", "read", json!({ "path": "not there" }));
    let server = Server::start((0..40).map(|_| same()).collect());
    let ran = ask(&shell, &server, Dialect::Chat, &["x"]);
    assert_eq!((ran.document()["code"].as_str(), server.bodies().len()), (Some("ITERATION_CAP"), 6), "{}", ran.stderr);
    for dialect in Dialect::ALL {
        let shell = Shell::new(&[("a.txt", "alpha\n")]);
        let server =
            Server::start(vec![said(dialect, &[]), call("c", "read", json!({ "path": "a.txt" })), said(dialect, &[])]);
        let empty = ask(&shell, &server, dialect, &["x"]);
        assert_eq!((empty.code, empty.document()["code"].as_str()), (14, Some("EMPTY_ANSWER")));
        let worked = ask(&shell, &server, dialect, &["y"]);
        assert_eq!(worked.code, 0, "after work there may be nothing to add: {}", worked.stderr);
    }
}

#[test]
fn a_session_whose_server_is_gone_is_given_to_nobody_else_unasked() {
    let shell = Shell::new(&[]);
    let server = Server::start(vec![text("One."), text("Two.")]);
    ask(&shell, &server, Dialect::Chat, &["x"]);
    shell.configure(&format!(
        "model = \"other/n\"\n[providers.other]\ndialect = \"chat\"\nbase_url = \"{}\"\n",
        server.url
    ));
    let length = entries(&shell.logs()[0]).len();
    let ran = shell.run(["resume", "--last", "--headless", "--json", "y"]);
    assert_eq!((ran.code, server.bodies().len()), (10, 1), "what was said to one is not told to another unasked");
    assert!(ran.error()["error"]["message"].as_str().expect("a message").starts_with("custom/m, which answered"));
    assert_eq!(entries(&shell.logs()[0]).len(), length, "and the session stays what it was");
    let on = shell.run(["resume", "--last", "--headless", "--json", "--model", "other/n", "y"]);
    assert_eq!(on.document()["output"], "Two.", "{}", on.stderr);
    // With nothing set up, nobody answers.
    let nobody = Shell::new(&[]).run(["--headless", "--json", "x"]);
    assert_eq!((nobody.code, nobody.error()["error"]["message"].as_str()), (4, Some("no model is connected")));
}

#[test]
fn what_a_broken_answer_had_cost_is_counted_and_how_long_to_wait_is_said() {
    let shell = Shell::new(&[]);
    let long = Reply::Refuse { status: 429, headers: "retry-after: 86400\r\n".into(), body: "{}".into() };
    let server = Server::start(vec![Reply::Cut { text: "Half ".into() }, long]);
    let cut = ask(&shell, &server, Dialect::Anthropic, &["x"]);
    assert_eq!(cut.document()["usage"]["input"], 100, "{}", cut.stdout);
    let told = ask(&shell, &server, Dialect::Anthropic, &["y"]).error();
    assert_eq!(told["error"]["details"]["retry_after_s"], 86_400);
    assert!(told["remediation"].as_str().expect("a fix").contains("try again in 24 h"), "{told}");
}
