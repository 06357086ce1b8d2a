//! Answers that repeat themselves without end, and answers that repeat something for a reason.

use serde_json::{Value, json};

use crate::connected::{ask, start};
use crate::server::{Act, Dialect, HEAD, Reply, Server, begin, event, text};
use crate::shell::{Shell, entries};

/// What a part of an answer belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Reasoning,
    Arguments,
}

/// The events that begin such a part.
fn opened(dialect: Dialect, kind: Kind) -> String {
    match (dialect, kind) {
        (Dialect::Responses, Kind::Arguments) => {
            let item = json!({ "type": "function_call", "call_id": "c", "name": "write", "arguments": "" });
            event(&json!({ "type": "response.output_item.added", "output_index": 0, "item": item }))
        }
        (Dialect::Chat, Kind::Arguments) => {
            let piece = json!({ "index": 0, "id": "c", "function": { "name": "write", "arguments": "" } });
            event(&json!({ "choices": [{ "index": 0, "delta": { "tool_calls": [piece] } }] }))
        }
        (Dialect::Responses | Dialect::Chat, Kind::Text | Kind::Reasoning) => String::new(),
        (Dialect::Anthropic, kind) => {
            let block = match kind {
                Kind::Text => json!({ "type": "text", "text": "" }),
                Kind::Reasoning => json!({ "type": "thinking", "thinking": "", "signature": "" }),
                Kind::Arguments => json!({ "type": "tool_use", "id": "c", "name": "write", "input": {} }),
            };
            event(&json!({ "type": "content_block_start", "index": 0, "content_block": block }))
        }
    }
}

/// The event of one more piece.
fn delta(dialect: Dialect, kind: Kind, piece: &str) -> String {
    event(&match (dialect, kind) {
        (Dialect::Responses, Kind::Text) => {
            json!({ "type": "response.output_text.delta", "output_index": 0, "delta": piece })
        }
        (Dialect::Responses, Kind::Reasoning) => {
            json!({ "type": "response.reasoning_summary_text.delta", "output_index": 0, "delta": piece })
        }
        (Dialect::Responses, Kind::Arguments) => {
            json!({ "type": "response.function_call_arguments.delta", "output_index": 0, "delta": piece })
        }
        (Dialect::Chat, Kind::Text) => json!({ "choices": [{ "index": 0, "delta": { "content": piece } }] }),
        (Dialect::Chat, Kind::Reasoning) => {
            json!({ "choices": [{ "index": 0, "delta": { "reasoning_content": piece } }] })
        }
        (Dialect::Chat, Kind::Arguments) => {
            let piece = json!({ "index": 0, "function": { "arguments": piece } });
            json!({ "choices": [{ "index": 0, "delta": { "tool_calls": [piece] } }] })
        }
        (Dialect::Anthropic, kind) => {
            let delta = match kind {
                Kind::Text => json!({ "type": "text_delta", "text": piece }),
                Kind::Reasoning => json!({ "type": "thinking_delta", "thinking": piece }),
                Kind::Arguments => json!({ "type": "input_json_delta", "partial_json": piece }),
            };
            json!({ "type": "content_block_delta", "index": 0, "delta": delta })
        }
    })
}

/// An answer that begins, and then writes the same piece until the client hangs up.
fn endless(dialect: Dialect, kind: Kind, first: &str, piece: &str) -> Reply {
    let start = HEAD.to_owned() + &begin(dialect).concat() + &opened(dialect, kind) + &delta(dialect, kind, first);
    Reply::Raw(vec![Act::Send(start.into_bytes()), Act::Drip(delta(dialect, kind, piece).into_bytes(), 0)])
}

/// Broken builds: the answer runs to the end of the window or to 8 MiB, as on ce783d9e; what came of it is lost; the same request
/// is sent again by itself; half a call runs; a loop in reasoning or in arguments is not seen.
#[test]
fn an_answer_that_repeats_itself_is_ended_kept_and_marked() {
    for dialect in Dialect::ALL {
        for (kind, piece) in [
            (Kind::Text, "I will check the file again.\n"),
            (Kind::Text, "the "),
            (Kind::Text, "\n"),
            (Kind::Text, "Is it done?\nNo, it is not.\n"),
            (Kind::Reasoning, "Wait, I have to look at it once more. "),
            (Kind::Arguments, "0,0,0,0\\n"),
        ] {
            let shell = Shell::new(&[]);
            let server = Server::start(vec![endless(dialect, kind, "{\"path\":\"x.txt\",\"content\":\"", piece)]);
            let ran = ask(&shell, &server, dialect, &["go", "--write"]);
            let what = format!("{dialect:?} {kind:?} {piece:?}: {}", ran.stderr);
            assert_eq!(ran.code, 14, "{what}");
            let document: Value = serde_json::from_str(&ran.stdout).expect("one document");
            assert_eq!((&document["status"], &document["code"]), (&json!("incomplete"), &json!("TEXT_LOOP")), "{what}");
            server.wait_until_alone();
            assert_eq!(server.bodies().len(), 1, "{what}");
            let log = entries(&shell.logs()[0]);
            let ends: Vec<&Value> = log.iter().filter(|e| e["type"] == "turn_ended").collect();
            assert_eq!(
                (ends.len(), &ends[0]["data"]["details"]["output_truncation"]),
                (1, &json!("text_loop")),
                "{what}"
            );
            let error = &ends[0]["data"]["error"];
            assert!(error["message"].as_str().is_some_and(|it| it.contains("the model repeated itself")), "{error}");
            assert!(error["remediation"].as_str().is_some_and(|it| it.contains("another temperature")), "{error}");
            let kept = |e: &&Value| match kind {
                Kind::Text => e["data"]["partial"] == true && e["type"] == "assistant_message",
                Kind::Reasoning => e["type"] == "reasoning",
                Kind::Arguments => false,
            };
            let texts: Vec<&str> = log.iter().filter(kept).filter_map(|e| e["data"]["text"].as_str()).collect();
            assert_eq!(texts.len(), usize::from(kind != Kind::Arguments), "{what}");
            for text in texts {
                assert!(text.starts_with("{\"path\"") && text.contains(piece) && text.len() < 40_000, "{what}");
            }
            assert!(log.iter().all(|e| e["type"] != "tool_call") && shell.read("x.txt").starts_with('('), "{what}");
        }
    }
}

/// Broken builds: the next request has the same temperature, and goes round again; it stays for the rest of the conversation.
#[test]
fn the_turn_after_a_loop_asks_at_another_temperature() {
    for (dialect, temperature) in [(Dialect::Chat, 1.1), (Dialect::Responses, 1.1), (Dialect::Anthropic, 0.7)] {
        let shell = Shell::new(&[]);
        let round = endless(dialect, Kind::Text, "Well. ", "I will check the file again.\n");
        let server = Server::start(vec![round, text("It is fine."), text("It still is.")]);
        assert_eq!(ask(&shell, &server, dialect, &["go"]).code, 14);
        for prompt in ["continue", "and now"] {
            let ran = ask(&shell, &server, dialect, &["resume", "--last", prompt]);
            assert_eq!(ran.code, 0, "{}", ran.stderr);
        }
        let temperatures: Vec<Value> = server.bodies().iter().map(|body| body["temperature"].clone()).collect();
        assert_eq!(temperatures, [Value::Null, json!(temperature), Value::Null], "{dialect:?}");
        let second = server.bodies()[1].to_string();
        assert!(!second.contains("check the file again"), "the loop is not shown to the model: {second}");
    }
}

/// Broken build: the screen shows a loop as a finished answer, or says nothing of what can be done.
#[test]
fn the_screen_says_that_the_model_repeated_itself_and_what_to_do() {
    let shell = Shell::new(&[]);
    let round = endless(Dialect::Chat, Kind::Text, "Well. ", "I will check the file again.\n");
    let server = Server::start(vec![round, text("It is fine.")]);
    let mut terminal = start(&shell, &server, Dialect::Chat, 100, 30);
    terminal.wait_for("Ask pixir");
    terminal.send("go\r");
    let screen = terminal.wait_for("the model repeated itself");
    assert!(screen.contains("the answer was cut off here"), "{screen}");
    terminal.wait_for("another temperature");
    terminal.send("continue\r");
    terminal.wait_for("It is fine.");
    assert_eq!(server.bodies()[1]["temperature"], json!(1.1));
    terminal.send("\x04");
    terminal.end().assert_sane();
}

/// Broken builds: one that ends an answer with many equal rows; the setting has no effect.
#[test]
fn repetition_for_a_reason_is_let_through() {
    let rows: String = "| 0 | 0 | none |\n".repeat(600);
    let list: String = (0..800).map(|n| format!("{n}. Check the file number {n} again.\n")).collect();
    let code = format!("```\n{}```\n", "    step();\n    assert!(done());\n".repeat(300));
    let wanted = "I must not talk in class.\n".repeat(900);
    for (answer, settings) in
        [(rows, ""), (list, ""), (code, ""), ("-".repeat(3_000), ""), (wanted, "[requests]\nend_loops = false\n")]
    {
        let shell = Shell::new(&[]);
        shell.configure(settings);
        let pieces: Vec<String> =
            answer.split_inclusive('\n').map(|line| delta(Dialect::Chat, Kind::Text, line)).collect();
        let stop = event(&json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop" }] }));
        let body = HEAD.to_owned() + &pieces.concat() + &stop + "data: [DONE]\n\n";
        let server = Server::start(vec![Reply::Raw(vec![Act::Send(body.into_bytes())])]);
        let ran = ask(&shell, &server, Dialect::Chat, &["go"]);
        assert_eq!(ran.code, 0, "{} after {:?}", ran.stderr, answer.lines().next());
        assert_eq!(ran.document()["output"].as_str().map(str::trim_end), Some(answer.trim_end()));
    }
}
