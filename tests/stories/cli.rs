//! The command line: prompts, documents, help, exit codes.

use std::io::Write as _;
use std::process::Stdio;

use pixir_core::provider::script;
use pixir_core::{Fact, Input, Live};
use serde_json::json;

use crate::pty::Terminal;
use crate::shell::{Shell, ran};

const SCRIPT: &str = r#"{ "steps": [ { "text": "It is <b>42</b> & http://x.y/?a=1&b=2" } ] }"#;

fn scripted(shell: &Shell, script: &str, args: &[&str]) -> Vec<String> {
    let path = shell.aside("script.json", script);
    let mut all = vec!["--provider".to_owned(), format!("script:{}", path.display())];
    all.extend(args.iter().map(|a| (*a).to_owned()));
    all
}

#[test]
fn stdout_holds_the_answer_and_nothing_else() {
    let shell = Shell::new(&[]);
    let plain = shell.run(scripted(&shell, SCRIPT, &["--headless", "what is it"]));
    assert_eq!((plain.code, plain.stdout.as_str()), (0, "It is <b>42</b> & http://x.y/?a=1&b=2\n"));
    let json = shell.run(scripted(&shell, SCRIPT, &["--headless", "--json", "what is it"]));
    assert!(
        json.stdout.starts_with("{\n  \"") && json.stdout.contains("<b>42</b> & http://x.y/?a=1&b=2"),
        "{}",
        json.stdout
    );
    assert_eq!(json.document()["output"], "It is <b>42</b> & http://x.y/?a=1&b=2");
    assert_eq!(json.stderr, "");
}

/// Broken build: the notes on stderr have the answer too, so a job whose log has both streams shows it twice.
#[test]
fn an_answer_is_shown_once_where_both_streams_lead_to_one_place() {
    let shell = Shell::new(&[]);
    let both = shell.aside("both.txt", "");
    let open = || std::fs::File::options().append(true).open(&both).expect("open");
    let mut command = shell.command(scripted(&shell, SCRIPT, &["--headless", "what is it"]));
    let ended = command.stdout(open()).stderr(open()).status().expect("it runs");
    let shown = std::fs::read_to_string(&both).expect("read");
    assert!(ended.success() && shown.contains("> what is it"), "{shown}");
    assert_eq!(shown.matches("It is <b>42</b>").count(), 1, "{shown}");
}

/// Broken build: the error of a failed turn does not say in which session it failed.
#[test]
fn the_error_of_a_failed_turn_names_its_session() {
    let shell = Shell::new(&[]);
    let failed = shell.run(scripted(&shell, r#"{"steps": []}"#, &["--headless", "--json", "x"]));
    let (error, result) = (failed.error(), failed.document());
    assert!(failed.code == 1 && result["session_id"].is_string(), "{failed:?}");
    assert_eq!(error["error"]["details"]["session_id"], result["session_id"], "{error}");
}

#[test]
fn the_result_document_has_its_fields() {
    let shell = Shell::new(&[]);
    let document = shell.run(scripted(&shell, SCRIPT, &["--headless", "--json", "x"])).document();
    let fields: Vec<&String> = document.as_object().expect("an object").keys().collect();
    insta::assert_compact_debug_snapshot!(fields, @r#"["agents", "cost", "denials", "duration_ms", "exit_code", "files_changed", "next_actions", "ok", "output", "resume_command", "schemaVersion", "session_id", "status", "tool_calls", "usage", "usage_estimated"]"#);
}

#[test]
fn a_prompt_comes_from_stdin_and_a_missing_one_is_an_error() {
    let shell = Shell::new(&[]);
    let mut child =
        shell.command(scripted(&shell, SCRIPT, &["--headless"])).stdin(Stdio::piped()).spawn().expect("it starts");
    child.stdin.take().expect("stdin").write_all(b"from a pipe").expect("write");
    let piped = ran(child.wait_with_output().expect("it ends"));
    assert_eq!((piped.code, piped.stdout.as_str()), (0, "It is <b>42</b> & http://x.y/?a=1&b=2\n"));
    let bare = shell.run::<&str>([]);
    assert_eq!(bare.code, 13);
    assert!(bare.stderr.contains("NO_PROMPT") && bare.stderr.contains("--headless"), "{}", bare.stderr);
}

/// Broken build: a mistyped theme is ignored without a word.
#[test]
fn an_option_that_only_a_screen_heeds_is_refused_where_there_is_none() {
    let shell = Shell::new(&[]);
    for (args, flag) in [
        (&["-p", "--theme", "drk", "hello"][..], "--theme"),
        (&["--headless", "--inline", "hello"], "--inline"),
        (&["demo", "-p", "--theme", "dark"], "--theme"),
    ] {
        let ran = shell.run(args);
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{args:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(&format!("--headless` does not take {flag}")), "{args:?}: {}", ran.stderr);
        assert!(
            ran.stderr.contains(&format!("leave out {flag}, which only a screen heeds")),
            "{args:?}: {}",
            ran.stderr
        );
    }
}

/// Broken build: the help of a command offers a format that the command refuses.
#[test]
fn a_command_that_prints_text_alone_offers_no_other_format() {
    let shell = Shell::new(&[]);
    for args in [&["themes", "preview"][..], &["completions"], &["man"], &["mcp", "serve"]] {
        let help = shell.run(args.iter().chain(&["--help"])).stdout;
        assert!(help.contains("Usage:") && !help.contains("--json") && !help.contains("--format"), "{args:?}: {help}");
    }
    assert!(shell.run(["themes", "list", "--help"]).stdout.contains("--json"));
}

#[test]
fn a_mistyped_flag_or_command_gets_a_suggestion() {
    let shell = Shell::new(&[]);
    let row = |args: &[&str]| {
        let ran = shell.run(args);
        (ran.code, ran.stderr.lines().skip(1).map(str::trim).collect::<Vec<_>>().join(" "))
    };
    assert_eq!(
        row(&["sesions"]),
        (2, "code: UNKNOWN_COMMAND fix:  run pixir sessions (to send the word as a prompt: pixir -- sesions)".into())
    );
    assert_eq!(row(&["--modle", "x"]), (2, "code: UNKNOWN_FLAG fix:  did you mean --model?".into()));
    assert_eq!(row(&["tools", "show", "grpe"]).0, 2);
    assert!(
        row(&["tools", "show", "grpe"]).1.contains("fix:  did you mean grep? Available: apply_patch, ask_user, bash"),
        "{:?}",
        row(&["tools", "show", "grpe"])
    );
    assert_eq!(
        row(&["help", "sesions"]),
        (2, "code: UNKNOWN_COMMAND fix:  did you mean pixir sessions?".into()),
        "a name behind help is no prompt"
    );
    assert_eq!(
        row(&["fix", "the", "bug", "--model", "a/b", "-p"]),
        (2, "code: USAGE fix:  quote the prompt: pixir --model a/b -p 'fix the bug'".into()),
        "the value of a flag is no part of the prompt"
    );
    assert_eq!(row(&["resume", "nonsense"]).0, 5);
    assert!(row(&["--mode", "yolo", "--headless", "x"]).1.contains("use one of read-only, ask, auto"));
    let json = shell.run(["--modle", "x", "--json"]);
    assert_eq!(json.error()["code"], "UNKNOWN_FLAG");
    assert_eq!(json.stdout, "");
}

#[test]
fn the_schema_is_the_contract() {
    let shell = Shell::new(&[]);
    let schema = shell.run(["schema"]).document();
    assert_eq!(schema["error_kinds"].as_array().expect("kinds").len(), 37);
    assert_eq!(schema["exit_codes"]["12"]["name"], "mutation_blocked");
    let names: Vec<_> = schema["commands"]["commands"]
        .as_array()
        .expect("commands")
        .iter()
        .filter_map(|c| c["name"].as_str())
        .collect();
    assert_eq!(
        names,
        [
            "demo",
            "resume",
            "status",
            "sessions",
            "agents",
            "workflow",
            "tree",
            "fork",
            "compact",
            "undo",
            "redo",
            "inspect",
            "init",
            "replay",
            "diagnose",
            "gc",
            "run",
            "tools",
            "permissions",
            "skills",
            "trust",
            "config",
            "mcp",
            "models",
            "tui",
            "themes",
            "auth",
            "schema",
            "acp",
            "agent",
            "completions",
            "man",
            "doctor"
        ]
    );
    let events = shell.run(["schema", "--events"]).document();
    assert!(events["recorded"]["tool_result"]["properties"]["changes"].is_object());
    assert_eq!(shell.run(["schema", "--script"]).document()["title"], "Script");
}

#[test]
fn tools_run_gives_what_a_model_would_get() {
    let shell = Shell::new(&[("a.txt", "one\ntwo\n")]);
    let read = shell.run(["tools", "run", "read", r#"{"path": "a.txt"}"#]);
    assert!(read.stdout.starts_with("     1\tone\n     2\ttwo\n[exit:0 | "), "{}", read.stdout);
    let args = r#"{"path": "b.txt", "content": "hi"}"#;
    let blocked = shell.run(["tools", "run", "write", args, "--json"]);
    assert_eq!((blocked.code, blocked.error()["code"].as_str()), (12, Some("MUTATION_BLOCKED")));
    let planned = shell.run(["tools", "run", "write", args, "--dry-run", "--json"]).document();
    assert_eq!(planned["result"]["plan"]["bytes"], 2);
    assert_eq!(shell.read("b.txt"), "(No such file or directory (os error 2))");
    assert_eq!(shell.run(["tools", "run", "write", args, "--write"]).code, 0);
    assert_eq!(shell.read("b.txt"), "hi");
    let outside = shell.run(["tools", "run", "read", r#"{"path": "../../etc/passwd"}"#, "--json"]);
    assert_eq!((outside.code, outside.error()["error"]["kind"].as_str()), (6, Some("outside_workspace")));
    let unknown = shell.run(["tools", "run", "read", r#"{"paht": "a.txt"}"#, "--json"]);
    assert!(unknown.error()["error"]["message"].as_str().expect("a message").contains("did you mean `path`?"));
}

#[test]
fn doctor_says_what_to_do_and_shows_no_secret() {
    let shell = Shell::new(&[]);
    let mut command = shell.command(["doctor", "--json"]);
    let ran = ran(command.env("OPENAI_API_KEY", "sk-canary-12345").output().expect("it runs"));
    assert!(!ran.stdout.contains("canary") && !ran.stderr.contains("canary"));
    let document = ran.document();
    let find = |name: &str| {
        document["checks"]
            .as_array()
            .expect("checks")
            .iter()
            .find(|c| c["name"] == name)
            .unwrap_or_else(|| panic!("no {name}"))
            .clone()
    };
    assert_eq!(find("state")["status"], "pass");
    assert_eq!(find("provider")["status"], "pass");
    assert!(find("sandbox")["message"].as_str().expect("text").starts_with("ns (namespaces)"));
}

/// Broken builds: doctor does not ask the terminal; it leaves the keys without echo; a terminal that answers nothing makes it
/// wait for ever, or passes for one that can do all.
#[test]
fn doctor_asks_the_terminal_what_it_can_and_leaves_it_as_it_was() {
    let shell = Shell::new(&[]);
    for (terminal, said) in [
        (Terminal::start(&shell, &["doctor"], 120, 50), &["pass  frames", "pass  keys", "  glyphs"][..]),
        (Terminal::mute(&shell, &["doctor"], 120, 50), &["warn  answers", "did not answer within 500 ms"]),
    ] {
        let left = terminal.end();
        assert_eq!(left.code, 0, "{}", left.screen);
        for it in said.iter().chain(&["pass  clipboard", "pass  terminal"]) {
            assert!(left.screen.contains(it), "{it}:\n{}", left.screen);
        }
        left.assert_settings_restored();
    }
    let document = shell.run(["doctor", "--json"]);
    assert!(!document.stdout.contains("\"frames\""), "no terminal is asked without one: {}", document.stdout);
}

#[test]
fn a_configuration_error_names_file_and_line() {
    let shell = Shell::new(&[]);
    let folder = shell.home().parent().expect("a folder").join(".config/pixir");
    std::fs::create_dir_all(&folder).expect("mkdir");
    std::fs::write(folder.join("config.toml"), "modle = 'x'\n").expect("write");
    let ran = shell.run(["--headless", "--json", "x"]);
    assert_eq!(
        (ran.code, ran.error()["code"].as_str(), ran.error()["remediation"].as_str()),
        (10, Some("CONFIG_INVALID"), Some("did you mean model?"))
    );
}

#[test]
fn secrets_of_the_environment_reach_no_command_log_or_output() {
    let shell = Shell::new(&[]);
    let script =
        r#"{ "steps": [ { "calls": [ { "name": "bash", "args": { "command": "env" } } ] }, { "text": "done" } ] }"#;
    let mut command = shell.command(scripted(&shell, script, &["--headless", "--write", "--format", "jsonl", "x"]));
    let ran =
        ran(command.env("OPENAI_API_KEY", "sk-canary-12345").env("GH_TOKEN", "canary").output().expect("it runs"));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stdout.contains("PATH="));
    assert!(!ran.stdout.contains("canary") && !ran.stderr.contains("canary"));
    for log in shell.logs() {
        assert!(!std::fs::read_to_string(log).expect("read").contains("canary"));
    }
}

/// The program carries these files, and not what makes them: after a change of the types the next build has them.
#[test]
fn the_schemas_of_the_reference_are_those_of_the_types() {
    let events = json!({
        "envelope": {
            "v": "integer, the version of this envelope",
            "id": "UUID version 7",
            "session_id": "YYYYMMDDTHHMMSS-<6 hex>",
            "seq": "integer from 0, or null for a live event",
            "ts": "RFC 3339, UTC, milliseconds",
            "turn": "integer from 1, or null",
            "type": "one of recorded or live",
            "data": "see recorded",
            "chain": "in a log only: 32 hex digits, the first 128 bits of BLAKE3(previous chain, this line without its chain)",
        },
        "recorded": Fact::schemas(),
        "live": Live::KINDS,
    });
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference");
    for (file, mut schema) in
        [("events.json", events), ("script.json", script::schema()), ("inputs.json", Input::schema())]
    {
        schema["schemaVersion"] = 1.into();
        let path = folder.join(file);
        let text = serde_json::to_string_pretty(&schema).expect("JSON") + "\n";
        if std::env::var_os("PIXIR_REFERENCE").is_some() {
            std::fs::write(&path, &text).expect("write");
        }
        let kept = std::fs::read_to_string(&path).expect("docs/reference is there");
        assert!(kept == text, "docs/reference/{file} is out of date; PIXIR_REFERENCE=write writes it anew");
    }
}

#[test]
fn the_reference_equals_the_help_of_the_program() {
    let shell = Shell::new(&[]);
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference");
    for (file, args) in [
        ("schema.json", &["schema"][..]),
        ("events.json", &["schema", "--events"]),
        ("script.json", &["schema", "--script"]),
        ("inputs.json", &["schema", "--inputs"]),
        ("tools.json", &["tools", "list", "--json"]),
    ] {
        let said = shell.run(args).stdout;
        let path = folder.join(file);
        // Written anew with: PIXIR_REFERENCE=write cargo test the_reference
        if std::env::var_os("PIXIR_REFERENCE").is_some() && ["schema.json", "tools.json"].contains(&file) {
            std::fs::write(&path, &said).expect("write");
        }
        let kept = std::fs::read_to_string(&path).expect("docs/reference is there");
        assert!(kept == said, "docs/reference/{file} is not what `pixir {}` says", args.join(" "));
    }
}

#[test]
fn jsonl_ends_with_exactly_one_result() {
    let shell = Shell::new(&[]);
    for args in [
        &["--format", "jsonl", "--bogus"][..],
        &["--format", "jsonl", "--headless", "--mode", "yolo", "x"],
        &["resume", "nonsense", "--format", "jsonl"],
    ] {
        let ran = shell.run(args);
        let lines = ran.lines();
        assert_eq!(
            (lines.len(), lines[0]["type"].as_str(), lines[0]["ok"].as_bool()),
            (1, Some("result"), Some(false)),
            "{args:?}"
        );
        assert_ne!(ran.code, 0);
    }
    let skill = shell.run(scripted(&shell, SCRIPT, &["--headless", "--format", "jsonl", "--skill", "none", "x"]));
    let lines = skill.lines();
    assert_eq!((skill.code, lines.last().expect("lines")["code"].as_str()), (5, Some("SKILL_NOT_FOUND")));
    assert!(
        lines.iter().all(|l| l["type"] != "user_message"),
        "a skill that is not there stops the turn before it starts"
    );
}
