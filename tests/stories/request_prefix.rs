//! Each request repeats the one before it and only adds, so that the Provider can cache it.

use pixir_core::event::TurnStatus;
use pixir_core::{Event, Fact};
use serde_json::{Value, json};

use super::dialects::Talk;
use super::turns::{assert_balanced, conversation, run};
use crate::server::{Act, Dialect, HEAD, Part, Reply, Server, answer, call, text};
use crate::shell::Shell;
use crate::tier;

pub(super) fn unmarked(mut value: Value) -> Value {
    match &mut value {
        Value::Object(fields) => {
            fields.remove("cache_control");
            fields.values_mut().for_each(|it| *it = unmarked(it.take()));
        }
        Value::Array(items) => items.iter_mut().for_each(|it| *it = unmarked(it.take())),
        _ => {}
    }
    value
}

pub(super) fn items_sent(dialect: Dialect, body: &Value) -> &Vec<Value> {
    body[if dialect == Dialect::Responses { "input" } else { "messages" }].as_array().expect("a conversation")
}

#[test]
fn over_a_hundred_turns_each_request_extends_the_last() {
    let turns = tier::cases("over_a_hundred_turns");
    for dialect in Dialect::ALL {
        let shell = Shell::new(&[("a.txt", "alpha\n"), ("b.txt", "beta\n")]);
        let args = [json!({ "path": "a.txt" }), json!({ "path": "b.txt" })];
        let mut replies = Vec::new();
        for n in 0..turns {
            let ids = [format!("c{n}"), format!("d{n}")];
            let both = [
                Part::Reasoning("I think. "),
                Part::Text("Let me look. "),
                Part::Call(&ids[0], "read", &args[0]),
                Part::Call(&ids[1], "read", &args[1]),
            ];
            replies
                .push(Reply::Raw(vec![Act::Send((HEAD.to_owned() + &answer(dialect, &both).concat()).into_bytes())]));
            replies.push(text(&format!("Turn {n} is done.")));
        }
        let server = Server::start(replies);
        let mut talk = Talk::new(&shell, &server, dialect);
        for n in 0..turns {
            let events = talk.turn(&format!("turn {n}"));
            let Some(Event::Recorded(end)) = events.last() else { panic!("a turn ends with its end") };
            assert!(matches!(&end.fact, Fact::TurnEnded(it) if it.status == TurnStatus::Completed), "{end:?}");
        }
        let bodies = server.bodies();
        assert_eq!(bodies.len(), 2 * turns);
        for pair in bodies.windows(2) {
            let [before, after] = [&pair[0], &pair[1]].map(|body| unmarked(body.clone()));
            for (key, value) in before.as_object().expect("a body") {
                if !["input", "messages"].contains(&key.as_str()) {
                    assert_eq!(value, &after[key], "{dialect:?}: {key}");
                }
            }
            let (sent, next) = (items_sent(dialect, &before), items_sent(dialect, &after));
            assert!(next.starts_with(sent), "{dialect:?}: a request does not begin with the previous one");
        }
        if dialect == Dialect::Anthropic {
            assert_marked(&bodies);
        }
    }
}

/// A server looks for a cached prefix at the marks: each request has a mark where the previous one ended.
fn assert_marked(bodies: &[Value]) {
    for pair in bodies.windows(2) {
        assert!(pair[1].to_string().matches("cache_control").count() <= 4, "a server takes four at most");
        let end = items_sent(Dialect::Anthropic, &pair[0]).len() - 1;
        let last =
            |body: &Value| body["messages"][end]["content"].as_array().expect("blocks").last().cloned().expect("one");
        assert!(last(&pair[0])["cache_control"].is_object(), "the end is marked");
        assert!(last(&pair[1])["cache_control"].is_object(), "and stays marked");
    }
}

#[test]
fn a_request_repeats_the_last_one_and_only_adds() {
    let shell = Shell::new(&[("a.txt", "alpha\n")]);
    let replies = (0..6).flat_map(|n| [call(&format!("c{n}"), "read", json!({"path": "a.txt"})), text("Read.")]);
    let server = Server::start(replies.collect());
    let mut args = server.flags(Dialect::Responses);
    args.extend(["--headless", "one"].map(str::to_owned));
    assert_eq!(shell.run(args).code, 0);
    for prompt in ["two", "three"] {
        let mut args = server.flags(Dialect::Responses);
        args.extend(["--headless", "resume", "last", prompt].map(str::to_owned));
        assert_eq!(shell.run(args).code, 0);
    }
    let inputs: Vec<Vec<serde_json::Value>> =
        server.bodies().iter().map(|body| body["input"].as_array().expect("items").clone()).collect();
    assert_eq!(inputs.len(), 6);
    for pair in inputs.windows(2) {
        assert!(
            pair[1].len() > pair[0].len() && pair[1].starts_with(&pair[0]),
            "a request only appends to the previous one"
        );
    }
}

#[test]
fn a_resumed_session_sends_the_same_prefix() {
    for dialect in Dialect::ALL {
        let shell = Shell::new(&[("a.txt", "alpha\n")]);
        let server = Server::start(vec![
            call("c1", "read", json!({"path": "a.txt"})),
            text("It says alpha."),
            text("Still alpha."),
        ]);
        run(&shell, &server, dialect, &["--headless", "--json", "what does it say"]);
        let mut args = vec!["resume".to_owned(), "--last".to_owned(), "and now?".to_owned()];
        args.extend(server.flags(dialect));
        args.extend(["--headless".into(), "--json".into()]);
        let ran = shell.run(args);
        assert_eq!(ran.document()["output"], "Still alpha.", "{}", ran.stderr);
        let bodies = server.bodies();
        let (before, after) = (conversation(dialect, &bodies[1]), conversation(dialect, &bodies[2]));
        assert_eq!(before, after[..before.len()]);
        assert_balanced(dialect, &bodies[2]);
        assert_eq!(shell.logs().len(), 1, "it is one session");
        let sessions = shell.run(["sessions", "list", "--json"]).document();
        assert_eq!(sessions["sessions"][0]["first_prompt"], "what does it say");
    }
}
