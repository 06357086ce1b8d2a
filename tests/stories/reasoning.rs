//! Reasoning: sent back to the model that produced it, shown, left out where it is refused.

use pixir_core::provider::script::Step;
use serde_json::{Value, json};

use crate::connected::ask;
use crate::driver::{Pixir, says};
use crate::server::{Act, Dialect, HEAD, Part, Reply, Server, answer, said, text};
use crate::shell::Shell;

#[test]
fn reasoning_goes_back_only_to_the_model_that_produced_it() {
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
        assert!(thought < call, "{dialect:?}: reasoning comes before its call");
        assert!(!other.contains(proof), "{dialect:?}: another model does not get it");
        // Ids with characters that some servers refuse are rewritten, and still match.
        assert!(!same.contains("c.1:0") && same.matches("c_1_0_").count() == 2, "{same}");
    }
}

/// The kinds of the assistant items of a request, in order.
fn kinds(dialect: Dialect, body: &Value) -> Vec<String> {
    let kind = |it: &Value| it["type"].as_str().unwrap_or_default().to_owned();
    match dialect {
        Dialect::Anthropic => body["messages"][1]["content"].as_array().expect("blocks").iter().map(kind).collect(),
        _ => body["input"].as_array().expect("input").iter().skip(2).map(kind).collect(),
    }
}

#[test]
fn reasoning_between_calls_keeps_its_position() {
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
fn reasoning_is_dropped_after_the_prefix_changed() {
    for dialect in Dialect::ALL {
        let shell = Shell::new(&[("a.txt", "alpha\n")]);
        let read = json!({ "path": "a.txt" });
        let thinks = said(dialect, &[Part::Reasoning("A deep thought. "), Part::Call("c1", "read", &read)]);
        let server = Server::start(vec![thinks.clone(), text("One."), thinks, text("Two."), text("Three.")]);
        ask(&shell, &server, dialect, &["x"]);
        // Another toolset changes the start of the prompt, and recorded reasoning is not valid after another start.
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
fn rejected_reasoning_is_left_out_and_the_turn_continues() {
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
        // pixir sends the request again without reasoning once. A second refusal is an error, not another attempt.
        let again = ask(&shell, &server, dialect, &["resume", "--last", "y"]);
        assert_eq!((again.error()["code"].as_str(), server.bodies().len()), (Some("REASONING_REJECTED"), 5));
    }
}

#[test]
fn an_answer_without_text_is_not_sent_back() {
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
            assert_eq!(strange, None, "{dialect:?}: an empty answer is not sent back");
        }
    }
}

#[tokio::test]
async fn reasoning_folds_to_a_headline_when_the_answer_begins() {
    let thought = "**Looking at the problem**\n\nFirst the code, then the tests.\n\n**Checking**\n\nAll of it.";
    let step = Step { reasoning: thought.into(), hang: true, ..says("The answer begins") };
    let mut pixir = Pixir::new(vec![step], &[]);
    pixir.screen.until_idle().await;
    pixir.screen.keys("go<Enter>").await;
    pixir.screen.until("The answer begins").await;
    let screen = pixir.screen.screen();
    assert!(screen.contains("✻ Looking at the problem  +") && !screen.contains("All of it."), "{screen}");
    pixir.screen.keys("<A-t><A-t>").await;
    let screen = pixir.screen.screen();
    assert!(screen.contains("  Checking") && screen.contains("All of it.") && !screen.contains("**"), "{screen}");
}
