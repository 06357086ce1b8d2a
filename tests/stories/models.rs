//! Which model answers, with which effort: flags, configuration, environment, presets.

use serde_json::{Value, json};

use crate::connected::ask;
use crate::server::{Dialect, Server, text};
use crate::shell::{Shell, entries, ran};

#[test]
fn effort_is_sent_in_the_form_the_model_takes() {
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
        (Dialect::Anthropic, "claude-sonnet-4-5", "low", "/max_tokens", json!(19_200)),
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
        (2, Some("did you mean high? It takes one of none, minimal, low, medium, high, xhigh, max"))
    );
}

#[test]
fn models_lists_window_price_and_abilities() {
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
    assert!(people.stdout.contains("own/other") && people.stdout.contains("gone  did not answer"), "{}", people.stdout);
}

#[test]
fn a_preset_needs_only_its_name_and_a_typo_gets_a_suggestion() {
    let shell = Shell::new(&[]);
    let server = Server::start(vec![text("From anthropic."), text("From a preset.")]);
    let ask = |args: &[&str], variables: &[(&str, &str)]| {
        let mut command = shell.command([args, &["--headless", "--json", "x"]].concat());
        crate::shell::ran(command.envs(variables.iter().copied()).output().expect("it runs"))
    };
    // Users give the address of this server without its version.
    let bare = server.url.trim_end_matches("/v1");
    let ran = ask(&[], &[("ANTHROPIC_API_KEY", "sk-canary-a"), ("ANTHROPIC_BASE_URL", bare)]);
    assert_eq!(ran.document()["output"], "From anthropic.", "{}", ran.stderr);
    let posted = || server.heads().into_iter().filter(|head| head.starts_with("POST /v1/")).collect::<Vec<_>>();
    let head = posted()[0].clone();
    assert!(head.contains("x-api-key: sk-canary-a") && head.contains("anthropic-version: 2023-06-01"), "{head}");
    assert!(head.contains("anthropic-beta: ") && !head.contains("authorization: "), "{head}");

    shell.configure(&format!(
        "[providers.far]\npreset = \"llama.cpp\"\nbase_url = \"{}\"\nheaders = {{ \"X-Team\" = \"a\" }}\n",
        server.url
    ));
    assert_eq!(ask(&["--model", "far/m"], &[]).document()["output"], "From a preset.");
    assert!(posted()[1].contains("x-team: a"));

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
        ("effort = \"hihg\"\n", "one of: none, minimal, low, medium, high, xhigh, max"),
        ("[requests]\nidle = -1\n", "a number of seconds above 0 and at most 86400"),
        ("[requests]\nidel = 1\n", "did you mean requests.idle?"),
        (
            "[models.\"a/b\"]\nprice = { in = 1, output = 2 }\n",
            "known keys: input, cached, cache_written, output, step",
        ),
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
fn a_session_never_changes_its_provider_unasked() {
    let shell = Shell::new(&[]);
    let server = Server::start(vec![text("One."), text("Two.")]);
    ask(&shell, &server, Dialect::Chat, &["x"]);
    shell.configure(&format!(
        "model = \"other/n\"\n[providers.other]\ndialect = \"chat\"\nbase_url = \"{}\"\n",
        server.url
    ));
    let length = entries(&shell.logs()[0]).len();
    let ran = shell.run(["resume", "--last", "--headless", "--json", "y"]);
    assert_eq!((ran.code, server.bodies().len()), (10, 1), "the conversation is sent to no other provider unasked");
    assert!(
        ran.error()["error"]["message"].as_str().expect("a message").starts_with("custom/m, the model of this session")
    );
    assert_eq!(entries(&shell.logs()[0]).len(), length, "and the session is unchanged");
    let on = shell.run(["resume", "--last", "--headless", "--json", "--model", "other/n", "y"]);
    assert_eq!(on.document()["output"], "Two.", "{}", on.stderr);
    // Without any configuration there is no model.
    let nobody = Shell::new(&[]).run(["--headless", "--json", "x"]);
    assert_eq!(
        (nobody.code, nobody.error()["error"]["message"].as_str()),
        (4, Some("no model is connected: no key and no local server was found"))
    );
}

#[test]
fn the_model_comes_from_flags_then_config_then_environment() {
    let shell = Shell::new(&[]);
    let by_key = Server::start(vec![text("by key"), text("by config"), text("by variable")]);
    let ask = |variables: &[(&str, &str)]| {
        let mut command = shell.command(["--headless", "--json", "x"]);
        command
            .env("OPENAI_API_KEY", "sk-canary-test")
            .env("OPENAI_BASE_URL", &by_key.url)
            .envs(variables.iter().copied());
        ran(command.output().expect("it runs"))
    };
    assert_eq!(ask(&[]).document()["output"], "by key");
    let folder = shell.home().parent().expect("a folder").join(".config/pixir");
    std::fs::create_dir_all(&folder).expect("mkdir");
    let config = format!(
        "model = \"mine/small\"\n[providers.mine]\ndialect = \"chat\"\nbase_url = \"{}\"\napi_key_env = \"MY_KEY\"\n",
        by_key.url
    );
    std::fs::write(folder.join("config.toml"), config).expect("write");
    assert_eq!(ask(&[("MY_KEY", "k2")]).document()["output"], "by config");
    assert_eq!(ask(&[("PIXIR_MODEL", "openai/large")]).document()["output"], "by variable");
    assert_eq!(by_key.keys(), ["Bearer sk-canary-test", "Bearer k2", "Bearer sk-canary-test"]);
    let models: Vec<_> = by_key.bodies().iter().map(|b| b["model"].as_str().expect("a model").to_owned()).collect();
    assert_eq!(models, ["gpt-6.2-sol", "small", "large"]);
    let clear = shell.run(["--base-url", "http://10.0.0.1/v1", "--model", "m", "--headless", "--json", "x"]);
    assert_eq!(
        (clear.code, clear.error()["code"].as_str()),
        (10, Some("CONFIG_INVALID")),
        "a key never goes out in the clear"
    );
}

/// Broken build: one without the preset, with another variable, or with the dialect's header for Azure's key.
#[test]
fn every_usual_service_needs_only_its_key() {
    let rows = [
        ("gemini", "GEMINI_API_KEY"),
        ("groq", "GROQ_API_KEY"),
        ("deepseek", "DEEPSEEK_API_KEY"),
        ("xai", "XAI_API_KEY"),
        ("mistral", "MISTRAL_API_KEY"),
        ("moonshot", "MOONSHOT_API_KEY"),
        ("zai", "ZAI_API_KEY"),
    ];
    for (name, variable) in rows {
        let shell = Shell::new(&[]);
        let mut list = shell.command(["models", "list", "--json"]);
        let chosen = ran(list.env(variable, "sk-canary-0").output().expect("it runs")).document()["chosen"].clone();
        assert!(chosen.as_str().is_some_and(|it| it.starts_with(&format!("{name}/"))), "{chosen}");
        let server = Server::start(vec![text("Here.")]);
        shell.configure(&format!("[providers.{name}]\nbase_url = \"{}\"\n", server.url));
        let mut command = shell.command(["--provider", name, "--model", "m", "--headless", "--json", "x"]);
        let ran = ran(command.env(variable, "sk-canary-1").output().expect("it runs"));
        assert_eq!(ran.document()["output"], "Here.", "{name}: {}", ran.stderr);
        assert_eq!(server.keys(), ["Bearer sk-canary-1"], "{name}");
        assert_eq!(server.bodies()[0]["stream_options"].is_null(), name == "mistral", "{name}");
    }
    // Azure: a host of one's own, a version in the query, another header.
    let shell = Shell::new(&[]);
    let server = Server::start(vec![text("From Azure.")]);
    let mut command = shell.command(["--model", "azure/my-deployment", "--headless", "--json", "x"]);
    command.env("AZURE_OPENAI_API_KEY", "sk-canary-2");
    command.env("AZURE_OPENAI_ENDPOINT", server.url.trim_end_matches("/v1"));
    let answer = ran(command.output().expect("it runs"));
    assert_eq!(answer.document()["output"], "From Azure.", "{}", answer.stderr);
    let head = server.heads().into_iter().find(|it| it.starts_with("POST") && it.contains("completions"));
    let head = head.expect("it was asked");
    assert!(head.starts_with("POST /openai/v1/chat/completions?api-version=preview "), "{head}");
    assert!(head.contains("api-key: sk-canary-2") && !head.contains("authorization"), "{head}");
    let mut nowhere = shell.command(["--model", "azure/my-deployment", "--headless", "--json", "x"]);
    let nowhere = ran(nowhere.env("AZURE_OPENAI_API_KEY", "sk-canary-2").output().expect("it runs"));
    assert_eq!(nowhere.error()["remediation"], "export AZURE_OPENAI_ENDPOINT=…", "{}", nowhere.stderr);
}

/// Broken build: one that takes the first model of the list. The server answers that it does not support chat.
#[test]
fn a_model_that_answers_no_prompts_is_never_chosen_by_itself() {
    let shell = Shell::new(&[]);
    let names = [
        "text-embedding-nomic-embed-text-v1.5",
        "BAAI/bge-m3",
        "qwen3-reranker:8b",
        "whisper-1",
        "gpt-4o-mini-tts",
        "snowflake-arctic-embed2",
        "paraphrase-multilingual",
        "kokoro",
        "qwen3",
    ];
    let listed: Vec<Value> = names.iter().map(|name| json!({ "id": name })).collect();
    let server = Server::with_facts(vec![text("I can.")], vec![("/v1/models", json!({ "data": listed }))]);
    let ran = shell.run(["--base-url", &server.url, "--headless", "--json", "x"]);
    assert_eq!(ran.document()["output"], "I can.", "{}", ran.stderr);
    assert_eq!(server.bodies()[0]["model"], "qwen3");
    let server = Server::with_facts(vec![], vec![("/v1/models", json!({ "data": [{ "id": "bge-m3" }] }))]);
    let ran = shell.run(["--base-url", &server.url, "--headless", "--json", "x"]);
    let message = ran.error()["error"]["message"].as_str().expect("a message").to_owned();
    assert_eq!(message, "custom lists no model that answers prompts");
}
