//! Windows: told by the user, learnt from the server, or unknown until it refuses; and tasks that finish in them.

use serde_json::{Value, json};

use crate::connected::ask;
use crate::hosted::Hosted;
use crate::server::{Dialect, Part, Reply, Server, answer, raw, text};
use crate::shell::{Ran, Shell, entries, figures};
use crate::tier;

/// Rounds of tool calls of the task.
const ROUNDS: usize = 12;

/// The words of a server that refuses a request of so many tokens, beyond its window.
type Words = fn(window: usize, tokens: usize) -> String;
/// What a server answers beside its API, by path.
type Facts = Vec<(&'static str, Value)>;

/// How pixir can know the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    /// The user's configuration names it.
    Told,
    /// The server names it when it is asked.
    Learnt,
    /// The server names it when it refuses a request.
    Unknown,
}

/// An answer without usage, as many local servers send it.
fn says(parts: &[Part<'_>]) -> Reply {
    let mut events = answer(Dialect::Chat, parts);
    events.retain(|it| !it.contains("\"usage\""));
    raw(&events.concat())
}

fn body(error: Value) -> String {
    json!({ "error": error }).to_string()
}

fn vllm(window: usize, tokens: usize) -> String {
    let message = format!(
        "This model's maximum context length is {window} tokens. However, you requested {tokens} tokens in the messages"
    );
    body(json!({ "object": "error", "message": message, "type": "BadRequestError", "code": 400 }))
}

fn llama_cpp(window: usize, tokens: usize) -> String {
    let message = "the request exceeds the available context size. try increasing the context size";
    let kind = "exceed_context_size_error";
    body(json!({ "code": 400, "message": message, "type": kind, "n_prompt_tokens": tokens, "n_ctx": window }))
}

fn lm_studio(window: usize, tokens: usize) -> String {
    body(json!(format!(
        "Trying to keep the first {tokens} tokens when context the overflows. However, the model is loaded with context length of only {window} tokens, which is not enough."
    )))
}

fn openai(window: usize, tokens: usize) -> String {
    let message = format!(
        "This model's maximum context length is {window} tokens. However, your messages resulted in {tokens} tokens."
    );
    body(
        json!({ "message": message, "type": "invalid_request_error", "param": "messages", "code": "context_length_exceeded" }),
    )
}

/// A server that does not say its window.
fn silent(_: usize, _: usize) -> String {
    body(json!({ "message": "prompt is too long", "type": "invalid_request_error" }))
}

/// A task of twelve rounds, each of which adds about `tokens` tokens, at a server that refuses longer requests. Without a
/// toolset, pixir chooses.
fn task(source: Source, window: usize, words: Words, toolset: &str, tokens: usize) -> (Ran, Server, Shell) {
    let shell = Shell::new(&[]);
    let fits = |reply: Reply| Reply::Within { window, words, reply: Box::new(reply) };
    let round = |n: usize| {
        // The command is short: its output is what fills the window.
        let (tool, args) = match toolset {
            "run" | "" => {
                ("run", json!({ "command": format!("echo round-{n} {}", format!("{n:03} ").repeat(tokens)) }))
            }
            _ => {
                let numbers = format!("seq -s ' ' 1000 {}", 1000 + tokens * 4 / 5);
                ("bash", json!({ "command": format!("echo round-{n} >> log.txt; {numbers}") }))
            }
        };
        fits(says(&[Part::Call(&format!("c{n}"), tool, &args)]))
    };
    let mut replies: Vec<Reply> = (0..ROUNDS).map(round).collect();
    replies.push(fits(says(&[Part::Text("All twelve.")])));
    let server = connected_to(&shell, source, window, replies);
    let mut args = vec!["--headless", "--json", "--write"];
    if !toolset.is_empty() {
        args.extend(["--toolset", toolset]);
    }
    args.push("do it");
    let ran = shell.run(args);
    (ran, server, shell)
}

/// A server that pixir is connected to, with a window that it knows from there.
fn connected_to(shell: &Shell, source: Source, window: usize, replies: Vec<Reply>) -> Server {
    let facts = match source {
        Source::Learnt => {
            vec![("/v1/models", json!({ "data": [{ "id": "m", "meta": { "n_ctx": window } }] }))]
        }
        Source::Told | Source::Unknown => Vec::new(),
    };
    let server = Server::with_facts(replies, facts);
    let told = match source {
        Source::Told => format!("[models.\"own/m\"]\nwindow = {window}\n"),
        Source::Learnt | Source::Unknown => String::new(),
    };
    shell.configure(&format!(
        "model = \"own/m\"\n[compaction]\nsummary = \"pixir\"\n[providers.own]\ndialect = \"chat\"\nbase_url = \"{}\"\n{told}",
        server.url
    ));
    server
}

/// Broken build: one whose compaction keeps a constant number of tokens, or looks only behind the last compaction. With
/// an unknown window it fails at the first or second overflow.
#[test]
fn a_task_of_twelve_rounds_finishes_in_every_window() {
    let words: [(&str, Words); 5] =
        [("vLLM", vllm), ("llama.cpp", llama_cpp), ("LM Studio", lm_studio), ("OpenAI", openai), ("no number", silent)];
    let mut cases = Vec::new();
    for window in [4_096, 8_192, 16_384] {
        cases.extend([(Source::Told, window, words[0]), (Source::Learnt, window, words[1])]);
        cases.extend(words.map(|words| (Source::Unknown, window, words)));
    }
    let cases = tier::sample("a_task_of_twelve_rounds", cases);
    let count = cases.len();
    for (source, window, (name, words)) in cases {
        let (ran, server, shell) = task(source, window, words, "typed", 1_000);
        let requests = server.bodies().len();
        assert_eq!(ran.code, 0, "{source:?} {window} {name}: {requests} requests, {}", ran.stderr);
        assert_eq!(ran.document()["output"], "All twelve.");
        assert_eq!(shell.read("log.txt").lines().count(), ROUNDS, "each call ran once");
        let refused = requests - ROUNDS - 1;
        match source {
            Source::Told | Source::Learnt => assert!(refused <= 1, "{source:?} {window}: {refused} refused requests"),
            Source::Unknown => assert!(refused <= 2 * ROUNDS, "{window} {name}: {refused} refused requests"),
        }
        let log = entries(&shell.logs()[0]);
        let compacted = log.iter().filter(|e| e["type"] == "history_compaction").count();
        figures(&format!("{source:?}, {window} tokens, {name}: {requests} requests, {compacted} compactions"));
    }
    figures(&format!("windows: {count} tasks of {ROUNDS} rounds, all finished"));
}

/// What a call prints is bounded by what is set, and in a small window by the window. Where the server names its window only
/// when it refuses, the result that it refused is sent again, shorter.
///
/// Broken builds: results have the size that is set whatever the window is; a result that was refused is sent again
/// whole.
#[test]
fn one_long_result_does_not_end_the_turn_in_a_small_window() {
    let lines: String = (0..6_000).map(|n| format!("line {n}\n")).collect();
    let bash = ("bash", json!({ "command": "seq 1000 9000" }));
    let read = ("read", json!({ "path": "long.txt" }));
    let mut cases = 0;
    for (source, words) in
        [(Source::Told, vllm as Words), (Source::Learnt, llama_cpp), (Source::Unknown, vllm), (Source::Unknown, silent)]
    {
        for window in [4_096, 8_192] {
            for (tool, args) in [&bash, &read] {
                let shell = Shell::new(&[("long.txt", &lines)]);
                let fits = |reply: Reply| Reply::Within { window, words, reply: Box::new(reply) };
                let calls: Vec<String> = (0..3).map(|n| format!("c{n}")).collect();
                let three: Vec<Part<'_>> = calls.iter().map(|id| Part::Call(id, tool, args)).collect();
                let replies = vec![
                    fits(says(&[Part::Call("c", tool, args)])),
                    fits(says(&three)),
                    fits(says(&[Part::Text("Long.")])),
                ];
                let server = connected_to(&shell, source, window, replies);
                let ran = shell.run(["--headless", "--json", "--write", "--toolset", "typed", "how long is it?"]);
                let case = format!("{source:?} {window} {tool}: {} requests", server.bodies().len());
                assert_eq!(ran.code, 0, "{case}: {}", ran.stderr);
                assert_eq!(ran.document()["output"], "Long.", "{case}");
                let log = entries(&shell.logs()[0]);
                let result = log.iter().find(|it| it["type"] == "tool_result");
                let length = result.expect("a result")["data"]["output"].as_str().map_or(0, str::len);
                assert!(length > 800, "{case}: {length} bytes");
                // Where the window is known, the result is as long as the window has room for, and not as long as is set.
                assert!(source != Source::Told || length < window * 2, "{case}: {length} bytes");
                cases += 1;
            }
        }
    }
    figures(&format!("long results: {cases} tasks in small windows, all finished"));
}

/// A server whose tokenizer makes more tokens of a text than pixir estimates fills its window sooner. A compaction makes as
/// much room in its count as in pixir's.
///
/// Broken build: what stays verbatim is counted in pixir's estimate, so that after the first compaction each Turn has its own.
#[test]
fn a_server_that_counts_more_tokens_than_pixir_is_not_compacted_at_each_turn() {
    const TURNS: usize = 60;
    let shell = Shell::new(&[]);
    let replies = (0..TURNS).map(|n| text(&format!("Answer {n}. {}", "1234567890 ".repeat(60)))).collect();
    // Each byte is a token: four times what pixir estimates.
    let server = Server::counting_each(replies, 32_768, 1);
    let flags =
        ["--config", "compaction.summary=pixir", "--base-url", &server.url, "--dialect", "chat", "--model", "other"];
    let mut host = Hosted::on(&shell, &flags);
    for n in 0..TURNS {
        host.ask(&format!("p{n}"), json!({ "type": "prompt", "text": format!("question {n}") }));
        host.event("turn_ended");
    }
    host.end();
    let log = entries(&shell.logs()[0]);
    let compactions: Vec<&Value> = log.iter().filter(|e| e["type"] == "history_compaction").collect();
    figures(&format!("a server that counts four times as much: {} compactions in {TURNS} turns", compactions.len()));
    assert!((1..=TURNS / 4).contains(&compactions.len()), "{} compactions", compactions.len());
    for it in compactions {
        let (before, after) = (&it["data"]["tokens_before"], &it["data"]["tokens_after"]);
        assert!(before.as_u64().is_some_and(|it| it > 15_000), "in the server's count: {before}");
        assert!(after.as_u64() < before.as_u64().map(|it| it * 3 / 4), "{before} to {after}");
    }
}

/// Broken build: one that sends the request all the same, or names no toolset. The user learns it from the server, after
/// a wait.
#[test]
fn a_window_too_small_for_the_tools_is_a_clear_error_with_the_smaller_toolset() {
    for source in [Source::Told, Source::Learnt, Source::Unknown] {
        let (ran, server, _shell) = task(source, 2_048, vllm, "typed", 1_000);
        assert_eq!(ran.code, 1, "{source:?}: {}", ran.stderr);
        let error = ran.error();
        assert_eq!(error["code"], "CONTEXT_OVERFLOW");
        let fix = error["remediation"].as_str().expect("a remedy");
        assert!(fix.contains("--toolset run") && fix.contains("larger window"), "{fix}");
        // Without a known window, the server refuses first.
        let most = if source == Source::Unknown { 2 } else { 0 };
        assert!(server.bodies().len() <= most, "{source:?}: {} requests", server.bodies().len());
    }
    // The remedy helps; without a choice of the user, pixir takes the smaller toolset itself and says so.
    let (ran, server, _shell) = task(Source::Told, 2_048, vllm, "run", 200);
    assert_eq!(ran.code, 0, "{} requests: {}", server.bodies().len(), ran.stderr);
    for source in [Source::Told, Source::Learnt, Source::Unknown] {
        let (ran, server, shell) = task(source, 2_048, vllm, "", 200);
        assert_eq!(ran.code, 0, "{source:?}: {} requests: {}", server.bodies().len(), ran.stderr);
        assert_eq!(ran.document()["output"], "All twelve.", "{source:?}");
        let log = entries(&shell.logs()[0]);
        let change = log.iter().find(|it| it["type"] == "settings_changed").expect("it is recorded");
        assert_eq!(change["data"]["toolset"], "run");
        assert!(change["data"]["reason"].as_str().is_some_and(|it| it.contains("2048")), "{change}");
    }
}

/// Broken build: one that trusts only `/v1/models`, asks only without a key, or takes the model's longest window.
#[test]
fn a_window_is_learnt_from_each_kind_of_local_server() {
    let listed = |more: Value| {
        let mut model = json!({ "id": "qwen3-coder" });
        for (key, value) in more.as_object().into_iter().flatten() {
            model[key] = value.clone();
        }
        json!({ "data": [model] })
    };
    let plain = || ("/v1/models", listed(json!({})));
    let rows: [(&str, Facts, Value); 7] = [
        ("vLLM", vec![("/v1/models", listed(json!({ "max_model_len": 5_000 })))], json!(5_000)),
        (
            "llama.cpp",
            vec![("/v1/models", listed(json!({ "meta": { "n_ctx": 5_001, "n_ctx_train": 9_999 } })))],
            json!(5_001),
        ),
        (
            "old llama.cpp",
            vec![plain(), ("/props", json!({ "default_generation_settings": { "n_ctx": 5_002 } }))],
            json!(5_002),
        ),
        (
            "LM Studio",
            vec![
                plain(),
                (
                    "/api/v0/models",
                    json!({ "data": [{ "id": "qwen3-coder", "loaded_context_length": 5_003, "max_context_length": 262_144 }] }),
                ),
            ],
            json!(5_003),
        ),
        (
            "ollama, loaded",
            vec![plain(), ("/api/ps", json!({ "models": [{ "name": "qwen3-coder", "context_length": 5_004 }] }))],
            json!(5_004),
        ),
        (
            "ollama",
            vec![
                plain(),
                ("/api/show", json!({ "parameters": "stop \"<|im_end|>\"\nnum_ctx                        5005" })),
            ],
            json!(5_005),
        ),
        // A known name without a report.
        ("none", vec![plain()], json!(128_000)),
    ];
    for key in [None, Some("sk-canary-own")] {
        for (name, facts, window) in &rows {
            let shell = Shell::new(&[]);
            let server = Server::with_facts(vec![], facts.clone());
            shell.configure(&format!(
                "model = \"own/qwen3-coder\"\n[providers.own]\ndialect = \"chat\"\nbase_url = \"{}\"\napi_key_env = \"OWN_KEY\"\n",
                server.url
            ));
            let mut command = shell.command(["models", "list", "--json"]);
            command.envs(key.map(|key| ("OWN_KEY", key)));
            let document = crate::shell::ran(command.output().expect("it runs")).document();
            let model =
                document["models"].as_array().expect("models").iter().find(|it| it["model"] == "own/qwen3-coder");
            assert_eq!(model.expect("it is listed")["window"], *window, "{name}, key {key:?}");
        }
    }
}

/// Broken build: one that asks for 32,000 tokens whatever the window is, and takes the refusal for a long conversation.
#[test]
fn the_longest_answer_follows_the_window() {
    let words = |window: usize, _: usize| {
        let message = format!(
            "'max_tokens' or 'max_completion_tokens' is too large. This model's maximum context length is {window} tokens"
        );
        body(json!({ "message": message, "type": "invalid_request_error" }))
    };
    let shell = Shell::new(&[]);
    // The first request is refused for its answer alone; its length fits.
    let refusal = Reply::Refuse { status: 400, headers: String::new(), body: words(16_384, 0) };
    let server = Server::start(vec![refusal, text("It fits.")]);
    let ran = ask(&shell, &server, Dialect::Anthropic, &["x"]);
    assert_eq!(ran.document()["output"], "It fits.", "{}", ran.stderr);
    let asked: Vec<u64> = server.bodies().iter().map(|it| it["max_tokens"].as_u64().expect("a number")).collect();
    assert_eq!(asked, [8_192 * 15 / 100, 16_384 * 15 / 100]);
    assert!(entries(&shell.logs()[0]).iter().all(|e| e["type"] != "history_compaction"), "nothing was compacted");
}

/// A resumed Session asks the server that it talks to, also where another one is the default.
///
/// Broken build: only the Provider of the command line is asked, so the Session learns its window from refusals.
#[test]
fn a_resumed_session_asks_its_own_server_for_the_window() {
    const WINDOW: usize = 4_096;
    let fits = |reply: Reply| Reply::Within { window: WINDOW, words: silent, reply: Box::new(reply) };
    let round = |n: usize| {
        let args = json!({ "command": format!("echo round-{n} >> log.txt; seq -s ' ' 1000 1800") });
        fits(says(&[Part::Call(&format!("c{n}"), "bash", &args)]))
    };
    let facts = vec![("/v1/models", json!({ "data": [{ "id": "m", "meta": { "n_ctx": WINDOW } }] }))];
    let mut replies = vec![fits(says(&[Part::Text("Hello.")]))];
    replies.extend((0..ROUNDS).map(round));
    replies.push(fits(says(&[Part::Text("All twelve.")])));
    let server = Server::with_facts(replies, facts);
    let other = Server::start(Vec::new());
    let shell = Shell::new(&[]);
    let section = |name: &str, url: &str| format!("[providers.{name}]\ndialect = \"chat\"\nbase_url = \"{url}\"\n");
    let sections = section("own", &server.url) + &section("other", &other.url);
    shell.configure(&format!("model = \"other/n\"\n{sections}"));
    let began = shell.run(["--headless", "--json", "--model", "own/m", "--toolset", "typed", "hello"]);
    assert_eq!(began.document()["output"], "Hello.", "{}", began.stderr);
    let before = server.bodies().len();
    let ran = shell.run(["resume", "--last", "--headless", "--json", "--write", "do it"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(ran.document()["output"], "All twelve.");
    let refused = server.bodies().len() - before - ROUNDS - 1;
    assert!(refused <= 1, "{refused} requests were refused");
    assert_eq!(shell.read("log.txt").lines().count(), ROUNDS, "each call ran once");
}
