//! A server that signs its calls, as Gemini does, and refuses a request that lacks a signature.

use serde_json::{Value, json};

use crate::server::{Act, Dialect, HEAD, Reply, Server, text};
use crate::shell::Shell;

/// The most rounds of a conversation.
const ROUNDS: usize = 20;

/// Where a server, or a layer before it, puts the signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Gemini itself.
    Extra,
    /// LiteLLM, beside the function.
    Layer,
    /// Within the function.
    Function,
    /// LiteLLM for clients that know nothing of signatures.
    Id,
    /// A field of a layer that nobody knows yet.
    Unknown,
}

const PLACES: [Place; 5] = [Place::Extra, Place::Layer, Place::Function, Place::Id, Place::Unknown];

/// The signature of a call. Its characters are those of Base64.
fn signature(round: usize) -> String {
    format!("CpEB{}/{round}+==", "x".repeat(90))
}

impl Place {
    /// The first of parallel calls is signed, as the documentation says.
    fn call(self, round: usize, n: usize) -> Value {
        let id = format!("function-call-{round}-{n}");
        let mut call = json!({ "index": n, "id": id, "type": "function", "function": { "name": "read", "arguments": "{\"path\":\"a.txt\"}" } });
        if n > 0 {
            return call;
        }
        let sign = signature(round);
        match self {
            Place::Extra => call["extra_content"] = json!({ "google": { "thought_signature": sign } }),
            Place::Layer => call["provider_specific_fields"] = json!({ "thought_signature": sign }),
            Place::Function => call["function"]["provider_specific_fields"] = json!({ "thought_signature": sign }),
            Place::Id => call["id"] = json!(format!("call_{round}__thought__{sign}")),
            Place::Unknown => call["x_seal"] = json!([{ "of": sign }]),
        }
        call
    }

    /// What is wrong with the calls of a request, as the server would say it.
    fn refuses(self, body: &Value) -> Option<String> {
        let messages = body["messages"].as_array()?;
        let answers = messages.iter().filter(|it| it["role"] == "assistant" && it["tool_calls"].is_array());
        for (round, message) in answers.enumerate() {
            let wanted: Vec<Value> = (0..=round % 3)
                .map(|n| {
                    let mut call = self.call(round, n);
                    call.as_object_mut().expect("an object").remove("index");
                    call
                })
                .collect();
            if message["tool_calls"] != json!(wanted) {
                return Some(format!("round {round}: {} in place of {}", message["tool_calls"], json!(wanted)));
            }
            for call in wanted {
                if !messages.iter().any(|it| it["role"] == "tool" && it["tool_call_id"] == call["id"]) {
                    return Some(format!("round {round}: no result of {}", call["id"]));
                }
            }
        }
        None
    }

    /// An answer with one to three parallel calls.
    fn answer(self, round: usize) -> Reply {
        let chunk = |delta: Value, end: Value| {
            format!("data: {}\n\n", json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": end }] }))
        };
        let mut events = chunk(json!({ "role": "assistant", "content": null }), Value::Null);
        for n in 0..=round % 3 {
            events += &chunk(json!({ "tool_calls": [self.call(round, n)] }), Value::Null);
        }
        events += &chunk(json!({}), json!("tool_calls"));
        Reply::Raw(vec![Act::Send(format!("{HEAD}{events}data: [DONE]\n\n").into_bytes())])
    }
}

/// Broken builds: the chat dialect drops the fields of a call that it does not know, as ce783d9e did; it cuts a long id; it
/// keeps only the field of Gemini itself.
#[test]
fn twenty_rounds_of_signed_calls_go_back_as_they_came() {
    for place in PLACES {
        let shell = Shell::new(&[("a.txt", "alpha\n")]);
        let replies = (0..ROUNDS).map(|round| place.answer(round)).chain([text("Done."), text("Again.")]).collect();
        let server = Server::start(replies);
        let flags = server.flags(Dialect::Chat);
        let run = |more: &[&str]| {
            let flags = flags.iter().map(String::as_str);
            let ran = shell.run(more.iter().copied().chain(flags));
            assert_eq!(ran.code, 0, "{place:?}: {}", ran.stderr);
        };
        run(&["--headless", "--json", "--max-rounds", "30", "look"]);
        // Another process reads them from the Log.
        run(&["resume", "--last", "again", "--headless", "--json"]);
        let bodies = server.bodies();
        assert_eq!(bodies.len(), ROUNDS + 2);
        let refused: Vec<String> = bodies.iter().filter_map(|body| place.refuses(body)).collect();
        assert!(refused.is_empty(), "{place:?}: {}", refused[0]);
    }
}

/// Broken builds: signatures go to whichever model comes next; the preset of Gemini sends calls of another model unsigned.
#[test]
fn signatures_stay_with_their_model_and_gemini_is_told_of_the_calls_of_others() {
    let shell = Shell::new(&[("a.txt", "alpha\n")]);
    let server = Server::start(vec![Place::Extra.answer(2), text("Done."), text("Other."), text("Gemini.")]);
    let run = |more: &[&str], model: &str| {
        let mut flags = server.flags(Dialect::Chat);
        let at = flags.iter().position(|it| it == "--model").expect("a model");
        flags[at + 1] = model.into();
        let ran = shell.run(more.iter().copied().chain(flags.iter().map(String::as_str)));
        assert_eq!(ran.code, 0, "{}", ran.stderr);
    };
    run(&["--headless", "--json", "look"], "m");
    run(&["resume", "--last", "again", "--headless", "--json"], "other");
    shell.configure(&format!(
        "[providers.google]\npreset = \"gemini\"\nbase_url = \"{}\"\nheaders = {{}}\n",
        server.flags(Dialect::Chat).iter().find(|it| it.starts_with("http")).expect("an address")
    ));
    let mut gemini =
        shell.command(["resume", "--last", "third", "--headless", "--json", "--model", "google/gemini-3.8-flash"]);
    gemini.env("GEMINI_API_KEY", "AIza-of-a-test");
    let ran = crate::shell::ran(gemini.output().expect("it starts"));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let bodies = server.bodies();
    let signs = |body: &Value| {
        let calls = body["messages"].as_array().expect("messages").iter().filter_map(|it| it["tool_calls"].as_array());
        calls.flatten().map(|it| it["extra_content"]["google"]["thought_signature"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(signs(&bodies[1]), [json!(signature(2)), Value::Null, Value::Null]);
    assert_eq!(signs(&bodies[2]), [Value::Null, Value::Null, Value::Null], "another model gets none");
    assert_eq!(signs(&bodies[3]), [json!("skip_thought_signature_validator"), Value::Null, Value::Null]);
}
