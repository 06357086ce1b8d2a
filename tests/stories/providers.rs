//! What a model is sent and what is made of its answer, in every dialect: the same story, told three ways.

use std::sync::Arc;
use std::time::{Duration, Instant};

use pixir_core::config::{Config, RequestsConfig, Surroundings};
use pixir_core::event::{Entry, Event, Fact, Live, Mode, TurnStatus};
use pixir_core::harness::{Beginning, Harness};
use pixir_core::input::Input;
use pixir_core::provider::choose::{Providers, Wishes};
use pixir_core::session::{Handle, Options};
use pixir_core::watch::Watch;
use proptest::prelude::Rng as _;
use proptest::test_runner::{RngAlgorithm, TestRng};
use serde_json::{Value, json};

use crate::server::{Act, Dialect, HEAD, Part, Reply, Server, answer, begin, call, part, text};
use crate::shell::{Shell, entries, figures};

/// A Session in this process that asks a server.
struct Talk {
    runtime: tokio::runtime::Runtime,
    handle: Handle,
    watch: Watch,
}

impl Talk {
    fn new(shell: &Shell, server: &Server, dialect: Dialect) -> Talk {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
        let around = Surroundings {
            home: shell.home(),
            user_folder: None,
            environment: std::env::vars().filter(|(name, _)| name == "PATH").collect(),
        };
        let wishes = Wishes {
            base_url: Some(server.url.clone()),
            dialect: Some(dialect.name().into()),
            model: Some("m".into()),
            provider: None,
        };
        let requests = RequestsConfig { first_wait: Some(0.01), ..RequestsConfig::default() };
        let config = Config { requests, ..Config::default() };
        let providers = runtime.block_on(Providers::find(&wishes, &config, &around)).expect("it is a provider");
        let beginning = Beginning { mode: Mode::Auto, ..Beginning::default() };
        let harness = Harness::new(&shell.workspace(), &around, Arc::new(providers), Options::default(), beginning)
            .expect("a workspace");
        let (handle, watch) = runtime.block_on(async {
            let handle = harness.start().expect("a session");
            let watch = handle.watch().await.expect("it lives");
            (handle, watch)
        });
        Talk { runtime, handle, watch }
    }

    fn send(&self, input: Input) {
        self.runtime.block_on(self.handle.send(input));
    }

    fn next(&mut self) -> Event {
        let next = async { tokio::time::timeout(Duration::from_secs(30), self.watch.next()).await };
        self.runtime.block_on(next).expect("something happens").expect("the session lives")
    }

    /// Everything until the Turn has ended.
    fn turn(&mut self, prompt: &str) -> Vec<Event> {
        self.send(Input::Prompt(prompt.into()));
        let mut events = Vec::new();
        loop {
            let event = self.next();
            let ended = matches!(&event, Event::Recorded(entry) if matches!(entry.fact, Fact::TurnEnded(_)));
            events.push(event);
            if ended {
                return events;
            }
        }
    }
}

fn unmarked(mut value: Value) -> Value {
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

fn conversation(dialect: Dialect, body: &Value) -> &Vec<Value> {
    body[if dialect == Dialect::Responses { "input" } else { "messages" }].as_array().expect("a conversation")
}

#[test]
fn over_a_hundred_turns_what_was_sent_stays_the_beginning_of_what_is_sent_next() {
    for dialect in Dialect::ALL {
        let shell = Shell::new(&[("a.txt", "alpha\n"), ("b.txt", "beta\n")]);
        let args = [json!({ "path": "a.txt" }), json!({ "path": "b.txt" })];
        let mut replies = Vec::new();
        for n in 0..100 {
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
        for n in 0..100 {
            let events = talk.turn(&format!("turn {n}"));
            let Some(Event::Recorded(end)) = events.last() else { panic!("a turn ends with its end") };
            assert!(matches!(&end.fact, Fact::TurnEnded(it) if it.status == TurnStatus::Completed), "{end:?}");
        }
        let bodies = server.bodies();
        assert_eq!(bodies.len(), 200);
        for pair in bodies.windows(2) {
            let [before, after] = [&pair[0], &pair[1]].map(|body| unmarked(body.clone()));
            for (key, value) in before.as_object().expect("a body") {
                if !["input", "messages"].contains(&key.as_str()) {
                    assert_eq!(value, &after[key], "{dialect:?}: {key}");
                }
            }
            let (sent, next) = (conversation(dialect, &before), conversation(dialect, &after));
            assert!(next.starts_with(sent), "{dialect:?}: what was sent is not the beginning of what is sent next");
        }
        if dialect == Dialect::Anthropic {
            assert_marked(&bodies);
        }
    }
}

/// A server looks for a cached prefix at the marks: each request has one where the one before ended.
fn assert_marked(bodies: &[Value]) {
    for pair in bodies.windows(2) {
        assert!(pair[1].to_string().matches("cache_control").count() <= 4, "a server takes four at most");
        let end = conversation(Dialect::Anthropic, &pair[0]).len() - 1;
        let last =
            |body: &Value| body["messages"][end]["content"].as_array().expect("blocks").last().cloned().expect("one");
        assert!(last(&pair[0])["cache_control"].is_object(), "the end is marked");
        assert!(last(&pair[1])["cache_control"].is_object(), "and stays marked");
    }
}

/// What a Session said, without ids, times and what only one provider has.
fn told(events: &[Event]) -> Vec<Value> {
    let mut told: Vec<Value> = Vec::new();
    for event in events {
        // Only one dialect says at the beginning what an answer takes that then breaks off.
        if matches!(event, Event::Recorded(e) if matches!(&e.fact, Fact::ProviderUsage(it) if it.usage.output == 1)) {
            continue;
        }
        let mut it = match event {
            Event::Recorded(entry) => plain(entry),
            Event::Live(Live::TextDelta { text }) => json!({ "said": text }),
            Event::Live(Live::ReasoningDelta { text }) => json!({ "thought": text }),
            Event::Live(Live::ToolCallDelta { index, name, bytes }) => {
                json!({ "writes": name, "call": index, "bytes": bytes })
            }
            Event::Live(live) => serde_json::to_value(live).expect("JSON"),
        };
        // How many frames something took is nobody's business.
        let join = told.last_mut().is_some_and(|last| {
            ["said", "thought"].iter().any(|key| match (last[*key].as_str(), it[*key].as_str()) {
                (Some(before), Some(more)) => {
                    last[*key] = json!(format!("{before}{more}"));
                    true
                }
                _ => false,
            }) || (last["writes"].is_string() && last["call"] == it["call"] && {
                last["bytes"] = json!(last["bytes"].as_u64().unwrap_or(0) + it["bytes"].as_u64().unwrap_or(0));
                true
            })
        });
        if !join {
            if it["data"]["output"].is_string() {
                // 12ms, 13ms
                let output =
                    it["data"]["output"].as_str().expect("text").split(" | ").next().unwrap_or_default().to_owned();
                it["data"]["output"] = json!(output);
            }
            told.push(it);
        }
    }
    told
}

fn plain(entry: &Entry) -> Value {
    let line: Value = serde_json::from_str(&entry.encode().expect("a line")).expect("JSON");
    let mut data = json!({ "type": line["type"], "data": line["data"] });
    fn without_ids(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                for key in ["item", "duration_ms", "mtime", "blob"] {
                    fields.remove(key);
                }
                fields.values_mut().for_each(without_ids);
            }
            Value::Array(items) => items.iter_mut().for_each(without_ids),
            _ => {}
        }
    }
    without_ids(&mut data);
    if data["data"]["status"] == "partial_failed" {
        data["data"]["usage"].take();
        data["data"]["cost"].take();
    }
    data
}

#[test]
fn the_same_task_through_three_dialects_is_the_same_story() {
    let stories: Vec<_> = Dialect::ALL
        .into_iter()
        .map(|dialect| {
            let shell = Shell::new(&[("a.txt", "alpha\n")]);
            let (read, edit) =
                (json!({ "path": "a.txt" }), json!({ "path": "a.txt", "old_text": "alpha", "new_text": "omega" }));
            let raw = |said: &[Part<'_>]| {
                Reply::Raw(vec![Act::Send((HEAD.to_owned() + &answer(dialect, said).concat()).into_bytes())])
            };
            let server = Server::start(vec![
                raw(&[
                    Part::Reasoning("First I look — 見る. "),
                    Part::Text("Let me see. "),
                    Part::Call("c1", "read", &read),
                    Part::Call("c2", "nope", &read),
                ]),
                raw(&[Part::Call("c3", "edit", &edit)]),
                Reply::Refuse { status: 503, headers: "retry-after-ms: 1\r\n".into(), body: String::new() },
                raw(&[Part::Reasoning("Now it is done. "), Part::Text("Changed **alpha** to omega. ")]),
                Reply::Cut { text: "Half ".into() },
            ]);
            let mut talk = Talk::new(&shell, &server, dialect);
            let mut events = talk.turn("change it");
            events.extend(talk.turn("and again"));
            assert_eq!(shell.read("a.txt"), "omega\n");
            told(&events)
        })
        .collect();
    for (i, story) in stories.iter().enumerate().skip(1) {
        for (a, b) in stories[0].iter().zip(story) {
            assert_eq!(without_address(a), without_address(b), "{:?}", Dialect::ALL[i]);
        }
        assert_eq!(stories[0].len(), story.len());
    }
}

/// Ports and the words for a broken connection differ from run to run and from dialect to dialect.
fn without_address(told: &Value) -> Value {
    let mut told = told.clone();
    for place in ["/data/reason", "/data/error/message"] {
        if let Some(text) = told.pointer_mut(place) {
            let words = text.as_str().unwrap_or_default().split(": ").next().unwrap_or_default();
            let words = words.trim_start_matches(|c: char| c.is_ascii_digit() || ".:".contains(c)).to_owned();
            *text = json!(words);
        }
    }
    told
}

#[test]
fn an_interrupt_at_any_moment_ends_the_turn_and_closes_the_connection() {
    let wanted: usize = std::env::var("PIXIR_CANCELS").ok().and_then(|n| n.parse().ok()).unwrap_or(60);
    let mut random = TestRng::from_seed(RngAlgorithm::ChaCha, &[5; 32]);
    let mut took = Vec::new();
    for n in 0..wanted {
        let dialect = Dialect::ALL[n % 3];
        let shell = Shell::new(&[]);
        let stalled = |said: String| Reply::Raw(vec![Act::Send((HEAD.to_owned() + &said).into_bytes()), Act::Stall]);
        let args = json!({ "path": "x", "content": "y".repeat(200) });
        let mut half = begin(dialect);
        half.extend(part(dialect, 0, Part::Text("So far. ")));
        half.extend(part(dialect, 1, Part::Call("c", "write", &args)).into_iter().take(2));
        let word = part(dialect, 0, Part::Text("word ")).into_iter().find(|it| it.contains("word")).expect("a word");
        let opened: String = begin(dialect).concat()
            + &part(dialect, 0, Part::Text("So "))[..if dialect == Dialect::Anthropic { 2 } else { 1 }].concat();
        let drip =
            Reply::Raw(vec![Act::Send((HEAD.to_owned() + &opened).into_bytes()), Act::Drip(word.into_bytes(), 0)]);
        let replies = match random.next_u32() % 6 {
            0 => vec![Reply::Raw(vec![Act::Stall])],
            1 => vec![stalled(String::new())],
            2 => vec![stalled(half.concat())],
            3 => vec![drip],
            4 => vec![Reply::Refuse { status: 503, headers: "retry-after: 60\r\n".into(), body: String::new() }],
            _ => vec![call("c1", "bash", json!({ "command": "sleep 60" })), text("never")],
        };
        let server = Server::start(replies);
        let mut talk = Talk::new(&shell, &server, dialect);
        talk.send(Input::Prompt("go".into()));
        server.wait_for(1);
        // Somewhere in the next few milliseconds, or after the next few events.
        std::thread::park_timeout(Duration::from_micros(u64::from(random.next_u32() % 12_000)));
        let began = Instant::now();
        talk.send(Input::Interrupt);
        loop {
            if let Event::Recorded(entry) = talk.next()
                && let Fact::TurnEnded(it) = &entry.fact
            {
                took.push(began.elapsed());
                assert_eq!(it.status, TurnStatus::Interrupted);
                break;
            }
        }
        server.wait_until_alone();
    }
    took.sort();
    let at = |share: f64| took[((took.len() - 1) as f64 * share) as usize];
    figures(&format!("QP3: {} interrupts, median {:?}, p99 {:?}, worst {:?}", took.len(), at(0.5), at(0.99), at(1.0)));
}

#[test]
fn what_was_recorded_is_said_again_exactly() {
    for dialect in Dialect::ALL {
        let files = [("a.txt", "alpha\n")];
        let shell = Shell::new(&files);
        let read = json!({ "path": "a.txt" });
        let said = [Part::Reasoning("I look. "), Part::Text("Let me see, 見る. "), Part::Call("c1", "read", &read)];
        let server = Server::start(vec![
            Reply::Refuse { status: 503, headers: "retry-after-ms: 2\r\n".into(), body: String::new() },
            Reply::Raw(vec![Act::Send((HEAD.to_owned() + &answer(dialect, &said).concat()).into_bytes())]),
            Reply::Cut { text: "It says ".into() },
        ]);
        let script = shell.workspace().parent().expect("a folder").join("script.json");
        let script = script.to_string_lossy().into_owned();
        let mut flags = server.flags(dialect);
        flags.extend(["--record".into(), script.clone()]);
        let ask = |shell: &Shell, flags: &[String]| {
            let mut args = flags.to_vec();
            args.extend(["--headless", "--format", "jsonl", "what does it say"].map(str::to_owned));
            shell.run(args)
        };
        let first = ask(&shell, &flags);
        let recorded: Value =
            serde_json::from_str(&std::fs::read_to_string(&script).expect("a script")).expect("a whole one");
        assert_eq!(recorded["steps"].as_array().expect("steps").len(), 3);
        let sent = &recorded["steps"][2]["recorded"]["sent"];
        assert!(sent["unchanged"].as_u64().expect("a number") > 0, "what was sent before is not written again");

        let again = Shell::new(&files);
        let second = ask(&again, &["--provider".into(), format!("script:{script}"), "--model".into(), "m".into()]);
        let story = |ran: &crate::shell::Ran| -> Vec<Value> {
            let lines =
                ran.lines().into_iter().filter(|line| line["type"] != "session_started" && line["type"] != "result");
            let lines = lines.map(|line| {
                let mut data = line["data"].clone();
                for key in ["provider", "duration_ms"] {
                    data.as_object_mut().map(|fields| fields.remove(key));
                }
                // A footer tells how long it took; how deltas fall into frames is chance.
                if let Some(output) = data["output"].as_str() {
                    data["output"] = json!(output.split(" | ").next());
                }
                json!({ "type": line["type"], "data": data })
            });
            lines.filter(|line| !line["type"].as_str().expect("a type").ends_with("_delta")).collect()
        };
        assert_eq!(story(&first), story(&second), "{dialect:?}");
        assert_eq!(first.code, second.code);
        let taken = ask(&again, &["--provider".into(), format!("script:{script}"), "--record".into(), script.clone()]);
        assert_eq!(
            (taken.code, taken.error()["code"].as_str()),
            (1, Some("WRITE_FAILED")),
            "a recording is never written over"
        );
    }
}

#[test]
fn an_effort_is_asked_for_as_the_model_takes_it() {
    let rows = [
        (Dialect::Responses, "gpt-5", "xhigh", "/reasoning/effort", json!("high")),
        (Dialect::Responses, "gpt-4.1", "high", "/reasoning", Value::Null),
        (Dialect::Responses, "gpt-4.1", "high", "/include", Value::Null),
        (Dialect::Responses, "gpt-5", "low", "/reasoning/summary", json!("auto")),
        (Dialect::Responses, "my-own", "xhigh", "/reasoning/effort", json!("xhigh")),
        (Dialect::Chat, "o3", "minimal", "/reasoning_effort", json!("low")),
        (Dialect::Chat, "qwen3-coder:30b", "high", "/reasoning_effort", Value::Null),
        (Dialect::Anthropic, "claude-opus-4-7", "xhigh", "/output_config/effort", json!("xhigh")),
        (Dialect::Anthropic, "claude-opus-4-7", "xhigh", "/thinking/type", json!("adaptive")),
        (Dialect::Anthropic, "claude-opus-4-6", "xhigh", "/output_config/effort", json!("high")),
        (Dialect::Anthropic, "claude-opus-4-6", "none", "/thinking", Value::Null),
        (Dialect::Anthropic, "claude-sonnet-4-5", "medium", "/thinking/budget_tokens", json!(12_000)),
        (Dialect::Anthropic, "claude-sonnet-4-5", "none", "/thinking", Value::Null),
        (Dialect::Anthropic, "claude-opus-5-5", "max", "/thinking/display", json!("summarized")),
        (Dialect::Anthropic, "claude-sonnet-4-5", "low", "/max_tokens", json!(30_000)),
        (Dialect::Anthropic, "my-own", "high", "/thinking", Value::Null),
    ];
    for (dialect, model, effort, place, wanted) in rows {
        let shell = Shell::new(&[]);
        let server = Server::start(vec![text("Yes.")]);
        let args = [
            "--base-url",
            &server.url,
            "--dialect",
            dialect.name(),
            "--model",
            model,
            "--effort",
            effort,
            "--headless",
            "x",
        ];
        assert_eq!(shell.run(args).code, 0);
        let body = &server.bodies()[0];
        assert_eq!(body.pointer(place).cloned().unwrap_or_default(), wanted, "{dialect:?} {model} {effort}");
    }
    let shell = Shell::new(&[]);
    let wrong = shell.run(["--effort", "hihg", "--headless", "--json", "x"]);
    assert_eq!(
        (wrong.code, wrong.error()["remediation"].as_str()),
        (2, Some("use one of: none, minimal, low, medium, high, xhigh, max"))
    );
}

#[test]
fn what_a_request_costs_is_said_where_it_is_known_and_added_up() {
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
fn models_that_can_be_asked_for_are_listed_with_what_is_known_of_them() {
    let shell = Shell::new(&[]);
    let server = Server::start(vec![]);
    shell.configure(&format!(
        "model = \"own/m\"\n[providers.own]\npreset = \"vllm\"\nbase_url = \"{}\"\n[providers.gone]\npreset = \"lmstudio\"\nbase_url = \"http://127.0.0.1:9/v1\"\n[models.\"own/mine\"]\nwindow = 12345\nefforts = [\"low\", \"high\"]\nvision = false\n",
        server.url
    ));
    let mut command = shell.command(["models", "list", "--json"]);
    let offline =
        crate::shell::ran(command.env("ANTHROPIC_API_KEY", "sk-canary-x").output().expect("it runs")).document();
    let model = |document: &Value, name: &str| {
        document["models"]
            .as_array()
            .expect("models")
            .iter()
            .find(|it| it["model"] == name)
            .cloned()
            .unwrap_or_default()
    };
    assert_eq!(
        model(&offline, "own/mine"),
        json!({ "model": "own/mine", "window": 12345, "max_output": null, "images": false, "efforts": ["low", "high"], "price": null })
    );
    let claude = model(&offline, "anthropic/claude-sonnet-5-5");
    assert!(claude["window"].as_u64() > Some(100_000) && claude["price"]["output"].as_f64() > Some(1.0), "{claude}");
    assert!(offline["providers"].as_array().expect("providers").iter().all(|it| it["reachable"].is_null()));

    let online = shell.run(["models", "list", "--online", "--json"]).document();
    assert_eq!(model(&online, "own/other")["window"], 4096, "a server knows best how it was started");
    let gone = online["providers"]
        .as_array()
        .expect("providers")
        .iter()
        .find(|it| it["name"] == "gone")
        .cloned()
        .expect("it is named");
    assert_eq!(gone["reachable"], false);
    assert!(gone["why_not"].as_str().expect("a reason").contains("could not be reached"));
    let people = shell.run(["models", "list", "--online"]);
    assert!(people.stdout.contains("own/other") && people.stdout.contains("gone  lists nothing"), "{}", people.stdout);
}

#[test]
fn a_usual_server_needs_only_its_name_and_a_wrong_one_is_corrected() {
    let shell = Shell::new(&[]);
    let server = Server::start(vec![text("From anthropic."), text("From a preset.")]);
    let ask = |args: &[&str], variables: &[(&str, &str)]| {
        let mut command = shell.command([args, &["--headless", "--json", "x"]].concat());
        crate::shell::ran(command.envs(variables.iter().copied()).output().expect("it runs"))
    };
    // The address of this one is customarily given without its version.
    let bare = server.url.trim_end_matches("/v1");
    let ran = ask(&[], &[("ANTHROPIC_API_KEY", "sk-canary-a"), ("ANTHROPIC_BASE_URL", bare)]);
    assert_eq!(ran.document()["output"], "From anthropic.", "{}", ran.stderr);
    let head = server.heads()[0].clone();
    assert!(head.contains("x-api-key: sk-canary-a") && head.contains("anthropic-version: 2023-06-01"), "{head}");
    assert!(head.contains("anthropic-beta: ") && !head.contains("authorization: "), "{head}");

    shell.configure(&format!(
        "[providers.far]\npreset = \"llama.cpp\"\nbase_url = \"{}\"\nheaders = {{ \"X-Team\" = \"a\" }}\n",
        server.url
    ));
    assert_eq!(ask(&["--model", "far/m"], &[]).document()["output"], "From a preset.");
    assert!(server.heads()[1].contains("x-team: a"));

    let rows = [
        ("[providers.far]\npreset = \"olama\"\n", "did you mean ollama?"),
        ("[providers.far]\ndialect = \"chat\"\n", "add base_url = \"https://host/v1\""),
        ("[providers.far]\nbase_url = \"https://x/v1\"\n", "add dialect = \"chat\", \"responses\" or \"anthropic\""),
        (
            "[providers.far]\npreset = \"vllm\"\nbase_url = \"http://example.com/v1\"\n",
            "use https://, a server on 127.0.0.1, or `insecure = true` in its section of config.toml",
        ),
        (
            "[providers.far]\npreset = \"vllm\"\nheaders = { Authorization = \"x\" }\n",
            "name the variable that holds it in `api_key_env`, or pixir auth login PROVIDER",
        ),
        (
            "[providers.far]\npreset = \"vllm\"\napi_key_env = \"sk-canary-0123\"\n",
            "name the variable that holds the key, never the key itself, or pixir auth login far",
        ),
        ("[models.hello]\nwindow = 5000\n", "[models.\"provider/model\"]"),
        ("[models.\"a/b\"]\nprice = { input = -1, output = 2 }\n", "US dollars per million tokens, 0 or more"),
        ("effort = \"hihg\"\n", "use one of: none, minimal, low, medium, high, xhigh, max"),
        ("[requests]\nidle = -1\n", "a number of seconds above 0 and at most 86400"),
        ("[requests]\nidel = 1\n", "did you mean `requests.idle`?"),
        ("[models.\"a/b\"]\nprice = { in = 1, output = 2 }\n", "known keys: input, cached, cache_written, output"),
    ];
    for (config, fix) in rows {
        shell.configure(config);
        let ran = ask(&[], &[]);
        assert_eq!((ran.code, ran.error()["remediation"].as_str()), (10, Some(fix)), "{config}");
    }
    shell.configure("");
    let no_key = ask(&["--provider", "anthropic"], &[]);
    assert_eq!(
        (no_key.code, no_key.error()["remediation"].as_str()),
        (4, Some("export ANTHROPIC_API_KEY=…, or pixir auth login anthropic"))
    );
    let secret = ask(&["--base-url", "https://me:sk-canary-b@host/v1"], &[]);
    assert_eq!((secret.code, secret.error()["code"].as_str()), (10, Some("CONFIG_INVALID")));
}

#[test]
fn an_answer_that_was_stopped_says_why_and_one_that_takes_a_break_goes_on() {
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
        assert_ne!(ran.code, 0, "what is not whole is never a success");
        let log = entries(&shell.logs()[0]);
        let end = log.iter().find(|e| e["type"] == "turn_ended").expect("it ended");
        assert_eq!(end["data"]["details"]["output_truncation"], truncation);
        assert!(log.iter().any(|e| e["type"] == "assistant_message" && e["data"]["text"] == "As far as it goes. "));
        assert!(shell.read("x.txt").starts_with('('), "a call of an answer that is not whole does not run");
    }
    // A break is no end: the same is asked again, with what came so far.
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
