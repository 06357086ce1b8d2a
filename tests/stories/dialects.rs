//! One task through three dialects is the same story.

use std::sync::Arc;
use std::time::Duration;

use pixir_core::event::Mode;
use pixir_core::provider::{ProviderSelection, Providers};
use pixir_core::{
    Config, Entry, Environment, Event, Fact, Handle, Harness, Input, Live, Options, RequestsConfig, SessionDefaults,
    Watch,
};
use serde_json::{Value, json};

use crate::server::{Act, Dialect, HEAD, Part, Reply, Server, answer};
use crate::shell::Shell;

/// A Session in this process that asks a server.
pub(super) struct Talk {
    runtime: tokio::runtime::Runtime,
    handle: Handle,
    watch: Watch,
}

impl Talk {
    pub(super) fn new(shell: &Shell, server: &Server, dialect: Dialect) -> Talk {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
        let around = Environment {
            home: shell.home(),
            user_folder: None,
            started_in: None,
            passed_on: Vec::new(),
            copy_ignored: Vec::new(),
            environment: std::env::vars().filter(|(name, _)| name == "PATH").collect(),
        };
        let wishes = ProviderSelection {
            base_url: Some(server.url.clone()),
            dialect: Some(dialect.name().into()),
            model: Some("m".into()),
            provider: None,
            waits: None,
        };
        // A server that says one word without end is one that is interrupted here.
        let requests = RequestsConfig { first_wait: Some(0.01), end_loops: Some(false), ..RequestsConfig::default() };
        let config = Config { requests, ..Config::default() };
        let providers = runtime.block_on(Providers::find(&wishes, &config, &around)).expect("it is a provider");
        let beginning = SessionDefaults { mode: Mode::Auto, ..SessionDefaults::default() };
        pixir_core::launch_through(env!("CARGO_BIN_EXE_pixir").as_ref());
        let harness = Harness::new(&shell.workspace(), &around, Arc::new(providers), Options::default(), beginning)
            .expect("a workspace");
        let (handle, watch) = runtime.block_on(async {
            let handle = harness.start().expect("a session");
            let watch = handle.watch().await.expect("it lives");
            (handle, watch)
        });
        Talk { runtime, handle, watch }
    }

    pub(super) fn send(&self, input: Input) {
        self.runtime.block_on(self.handle.send(input));
    }

    pub(super) fn next(&mut self) -> Event {
        let next = async { tokio::time::timeout(Duration::from_secs(30), self.watch.next()).await };
        self.runtime.block_on(next).expect("something happens").expect("the session lives")
    }

    /// Every event until the end of the Turn.
    pub(super) fn turn(&mut self, prompt: &str) -> Vec<Event> {
        self.send(Input::Prompt(prompt.into()));
        self.until_end()
    }

    /// Every event until the end of the running Turn.
    pub(super) fn until_end(&mut self) -> Vec<Event> {
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

/// The events of a Session without ids, times and fields of one Provider.
fn told(events: &[Event]) -> Vec<Value> {
    let mut told: Vec<Value> = Vec::new();
    for event in events {
        // Only one dialect reports usage at the start of an answer.
        if matches!(event, Event::Recorded(e) if matches!(&e.fact, Fact::ProviderUsage(it) if it.usage.output == 1)) {
            continue;
        }
        let mut it = match event {
            Event::Recorded(entry) => plain(entry),
            Event::Live(event) => match &event.live {
                Live::TextDelta { text } => json!({ "said": text }),
                Live::ReasoningDelta { text } => json!({ "thought": text }),
                Live::ToolCallDelta { index, name, bytes } => {
                    json!({ "writes": name, "call": index, "bytes": bytes })
                }
                live => serde_json::to_value(live).expect("JSON"),
            },
        };
        // The number of deltas does not matter.
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
fn one_task_gives_the_same_events_in_three_dialects() {
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
                Reply::Cut { text: "Half ".into() },
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
        let comparable = |story: &[Value]| -> Vec<Value> {
            story.iter().map(without_address).filter(|it| !it["data"].is_null()).collect()
        };
        let (a, b) = (comparable(&stories[0]), comparable(story));
        for (a, b) in a.iter().zip(&b) {
            assert_eq!(a, b, "{:?}", Dialect::ALL[i]);
        }
        assert_eq!(a.len(), b.len());
    }
}

/// Ports and the messages of a broken connection differ from run to run and from dialect to dialect.
fn without_address(told: &Value) -> Value {
    let mut told = told.clone();
    for place in ["/data/reason", "/data/error/message"] {
        if let Some(text) = told.pointer_mut(place) {
            let words = text.as_str().unwrap_or_default().split(": ").next().unwrap_or_default();
            let words = words.trim_start_matches(|c: char| c.is_ascii_digit() || ".:".contains(c)).to_owned();
            *text = json!(words);
        }
    }
    // A cut answer has an estimate, or the counts that arrived before the cut.
    if let Some(data) = told["data"].as_object_mut() {
        data.remove("usage_estimated");
    }
    if told.pointer("/data/usage/output").is_some_and(|it| *it != 7) && told["type"] == "provider_usage" {
        told["data"] = json!(null);
    }
    for place in ["/data/wait_ms", "/data/left_ms"] {
        if let Some(random) = told.pointer_mut(place) {
            *random = json!(0);
        }
    }
    told
}

#[test]
fn a_recorded_stream_is_replayed_exactly() {
    for dialect in Dialect::ALL {
        let files = [("a.txt", "alpha\n")];
        let shell = Shell::new(&files);
        let read = json!({ "path": "a.txt" });
        let said = [Part::Reasoning("I look. "), Part::Text("Let me see, 見る. "), Part::Call("c1", "read", &read)];
        let server = Server::start(vec![
            Reply::Refuse { status: 503, headers: "retry-after-ms: 2\r\n".into(), body: String::new() },
            Reply::Raw(vec![Act::Send((HEAD.to_owned() + &answer(dialect, &said).concat()).into_bytes())]),
            Reply::Cut { text: "It says ".into() },
            Reply::Cut { text: "It says ".into() },
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
        assert_eq!(recorded["steps"].as_array().expect("steps").len(), 5);
        let sent = &recorded["steps"][2]["recorded"]["sent"];
        assert!(sent["unchanged"].as_u64().expect("a number") > 0, "an unchanged prefix is not recorded again");

        let again = Shell::new(&files);
        let second = ask(&again, &["--provider".into(), format!("script:{script}"), "--model".into(), "m".into()]);
        let story = |ran: &crate::shell::Ran| -> Vec<Value> {
            let lines =
                ran.lines().into_iter().filter(|line| line["type"] != "session_started" && line["type"] != "result");
            let lines = lines.map(|line| {
                let mut data = line["data"].clone();
                for key in ["provider", "duration_ms", "wait_ms", "left_ms"] {
                    data.as_object_mut().map(|fields| fields.remove(key));
                }
                // The footer contains a duration. Deltas are left out below, because their number is random.
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
