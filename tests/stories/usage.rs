//! Tokens and cost: counted by the Provider, added up, shown.

use pixir_core::event::Usage;
use pixir_core::provider::script::Step;
use serde_json::json;

use crate::connected::{ask, terminal};
use crate::driver::{Pixir, says};
use crate::server::{Act, Dialect, HEAD, Reply, Server, call, text};
use crate::shell::Shell;

#[tokio::test]
async fn effort_and_usage_commands_show_the_current_values() {
    let usage = Usage { input: 1_200, cached: 1_000, output: 30, ..Usage::default() };
    let step = |text: &str| Step { usage: Some(usage), ..says(text) };
    let mut pixir = Pixir::sized(vec![step("One."), step("Two.")], &[], 100, 30);
    let screen = pixir.does("/usage<Enter>").await;
    assert!(screen.contains("No usage yet"), "{screen}");
    pixir.does("<Esc>").await;
    let screen = pixir.does("/effort<Enter>").await;
    assert!(screen.contains("xhigh") && screen.contains("maximum, slow and expensive"), "{screen}");
    pixir.does("<Esc>").await;
    let screen = pixir.does("/effort hihg<Enter>").await;
    assert!(screen.contains("there is no effort `hihg`"), "{screen}");
    let screen = pixir.does("<C-w>high<Enter>").await;
    assert!(screen.contains("effort: high") && screen.contains("test-model · high"), "{screen}");
    pixir.does("first<Enter>").await;
    pixir.does("second<Enter>").await;
    let screen = pixir.does("/usage<Enter>").await;
    let row = |name: &str| {
        let row = screen
            .lines()
            .rev()
            .find(|line| line.contains(name))
            .unwrap_or_else(|| panic!("{name} is not on\n{screen}"));
        row.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert!(row("this session").contains("this session 2.4k 83 % 60 2"), "{screen}");
    assert!(row("script/test-model").contains("script/test-model 2.4k 83 % 60 2"), "{screen}");
    assert!(row("2  second").contains("1.2k"), "{screen}");
}

#[test]
fn cost_is_shown_where_the_price_is_known() {
    let shell = Shell::new(&[]);
    let cost = |usd: f64| {
        let usage = json!({ "prompt_tokens": 100, "completion_tokens": 10, "cost": usd });
        let body = format!(
            "{HEAD}data: {}\n\ndata: {}\n\ndata: [DONE]\n\n",
            json!({ "choices": [{ "delta": { "content": "Hi." }, "finish_reason": "stop" }] }),
            json!({ "choices": [], "usage": usage })
        );
        Reply::Raw(vec![Act::Send(body.into_bytes())])
    };
    let server = Server::start(vec![text("One."), text("Two."), cost(0.5)]);
    shell.configure(&format!(
        "[providers.own]\ndialect = \"chat\"\nbase_url = \"{}\"\n[models.\"own/priced\"]\nprice = {{ input = 1000.0, cached = 100.0, output = 2000.0 }}\n",
        server.url
    ));
    let ask = |model: &str, more: &[&str]| {
        let args = [more, &["--provider", "own", "--model", model, "--headless", "--json"]].concat();
        shell.run(args).document()
    };
    // 60 fresh, 40 cached, 7 answered.
    let priced = ask("priced", &["x"]);
    assert_eq!(priced["cost"], json!({ "usd": 0.078, "estimated": true, "unpriced": 0 }));
    assert_eq!(ask("m", &["resume", "--last", "y"])["cost"], json!({ "usd": 0.0, "estimated": false, "unpriced": 1 }));
    assert_eq!(
        ask("told", &["resume", "--last", "z"])["cost"],
        json!({ "usd": 0.5, "estimated": false, "unpriced": 0 }),
        "what the server says counts"
    );
    let usage = shell.run(["sessions", "show", "last", "--json"]).document()["usage"].clone();
    assert_eq!(
        (&usage["session"]["requests"], &usage["session"]["cost"]),
        (&json!(3), &json!({ "usd": 0.578, "estimated": true, "unpriced": 1 }))
    );
    assert_eq!(usage["turns"].as_array().expect("turns").len(), 3);
    assert_eq!(usage["models"]["own/told"]["usage"]["input"], 100);
    let shown = shell.run(["sessions", "show", "last"]).stdout;
    assert!(shown.contains("300 in (80 cached), 24 out, 3 requests, ≥$0.58"), "{shown}");
}

#[test]
fn the_meter_shows_only_tokens_the_provider_counted() {
    let shell = Shell::new(&[]);
    let server = Server::start(vec![text(&"many words ".repeat(2_000))]);
    let mut terminal = terminal(&shell, &server, &[], (100, 24));
    terminal.wait_for("Ask pixir");
    terminal.send("go\r");
    // The server reports 100 input and 7 output tokens for any text.
    terminal.wait_for("107 tokens");
    terminal.send("\x04");
    terminal.end().assert_sane();
}

#[test]
fn a_cut_answer_is_counted_and_a_long_retry_after_is_reported() {
    let shell = Shell::new(&[]);
    let long = Reply::Refuse { status: 429, headers: "retry-after: 86400\r\n".into(), body: "{}".into() };
    shell.configure("[requests]\nattempts = 1\n");
    let server = Server::start(vec![Reply::Cut { text: "Half ".into() }, long]);
    let cut = ask(&shell, &server, Dialect::Anthropic, &["x"]);
    assert_eq!(cut.document()["usage"]["input"], 100, "{}", cut.stdout);
    let output = ask(&shell, &server, Dialect::Anthropic, &["y"]).error();
    assert_eq!(output["error"]["details"]["retry_after_s"], 86_400);
    assert!(output["remediation"].as_str().expect("a fix").contains("try again in 24 h"), "{output}");
}

/// Broken build: one whose flag does not reach the Session's limits. The Turn goes on to a second request.
#[test]
fn a_turn_that_has_cost_what_it_may_ends_incomplete() {
    let shell = Shell::new(&[]);
    let server = Server::start(vec![call("c1", "ls", json!({})), text("Two.")]);
    shell.configure(&format!(
        "[providers.own]\ndialect = \"chat\"\nbase_url = \"{}\"\n[models.\"own/priced\"]\nprice = {{ input = 1000.0, output = 2000.0 }}\n",
        server.url
    ));
    let args = ["--provider", "own", "--model", "priced", "--headless", "--json", "--max-cost", "$0.05", "look"];
    let ran = shell.run(args);
    assert_eq!((ran.code, ran.error()["code"].as_str()), (14, Some("BUDGET_REACHED")), "{}", ran.stderr);
    let remediation = ran.error()["remediation"].as_str().expect("text").to_owned();
    assert_eq!(remediation, "send a message to continue, or a higher --max-cost USD");
    assert_eq!(server.bodies().len(), 1);
}

/// Broken build: one that records nothing. The request looks free and exact.
#[test]
fn usage_that_a_server_does_not_send_is_estimated_and_marked() {
    for dialect in Dialect::ALL {
        let shell = Shell::new(&[]);
        let mut events = crate::server::answer(dialect, &[crate::server::Part::Text("Four words of it.")]).concat();
        for field in ["\"usage\"", "\"input_tokens\"", "\"output_tokens\"", "\"prompt_tokens\""] {
            events = events.replace(field, "\"none\"");
        }
        let server = Server::start(vec![crate::server::raw(&events), text("Counted.")]);
        shell.configure("[models.\"custom/m\"]\nprice = { input = 1000.0, output = 2000.0 }\n");
        let ran = ask(&shell, &server, dialect, &["x"]);
        let document = ran.document();
        let sent = server.bodies()[0].to_string().len() as u64 / 4;
        let input = document["usage"]["input"].as_u64().expect("a number");
        assert!(input > sent / 2 && input < sent * 2, "{dialect:?}: {input} instead of about {sent}");
        assert_eq!(document["usage"]["output"], 5, "17 bytes");
        assert_eq!((&document["cost"]["estimated"], &document["usage_estimated"]), (&json!(true), &json!(true)));
        let usages = |shell: &Shell| -> Vec<serde_json::Value> {
            let log = crate::shell::entries(&shell.logs()[0]);
            log.into_iter().filter(|e| e["type"] == "provider_usage").map(|e| e["data"]["estimated"].clone()).collect()
        };
        assert_eq!(usages(&shell), [json!(true)], "{dialect:?}");
        let log = crate::shell::entries(&shell.logs()[0]);
        let ended = log.iter().find(|e| e["type"] == "turn_ended").expect("the turn ended");
        assert_eq!(ended["data"]["usage_estimated"], json!(true), "{dialect:?}");
        ask(&shell, &server, dialect, &["resume", "--last", "y"]);
        assert_eq!(usages(&shell), [json!(true), json!(null)], "a reported one is not marked");
    }
}
