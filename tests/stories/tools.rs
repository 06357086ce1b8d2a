//! The contract of every tool and command of the registry; saved outputs and their budgets.

use crate::connected::ask;
use crate::server::{Dialect, Server, text};
use crate::shell::{Shell, entries, figures, output, peak, tool};
use crate::tier;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::Command;

/// Everything in a folder, by name: kind, mode, content.
fn tree(folder: &Path) -> BTreeMap<String, (u32, Vec<u8>)> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(folder).expect("list").flatten() {
        let name = entry.path().display().to_string();
        let metadata = entry.metadata().expect("metadata");
        if metadata.is_dir() {
            all.extend(tree(&entry.path()));
            all.insert(name, (metadata.mode(), Vec::new()));
        } else {
            all.insert(name, (metadata.mode(), fs::read(entry.path()).unwrap_or_default()));
        }
    }
    all
}

/// Arguments with which each tool can run; a tool that is missing here makes the walk fail.
fn example(name: &str) -> Option<Value> {
    Some(match name {
        "apply_patch" => {
            json!({"patch": "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+1\n*** Add File: new/c.txt\n+x\n*** End Patch\n"})
        }
        "ask_user" => json!({"questions": [{"question": "Which?", "options": ["a", "b"]}]}),
        "bash" => json!({"command": "touch made; echo x > a.txt"}),
        "edit" => json!({"path": "a.txt", "old_text": "one", "new_text": "1"}),
        "find" => json!({"pattern": "*.txt"}),
        "grep" => json!({"pattern": "one"}),
        "job_kill" => json!({"job": 1}),
        "job_output" | "ls" | "skills_list" => json!({}),
        "read" => json!({"path": "a.txt"}),
        "recall" => json!({"query": "login"}),
        "show_agent" | "wait_agent" => json!({}),
        "spawn_agent" => json!({"task": "look around"}),
        "tell_agent" => json!({"name": "worker-1", "text": "go on"}),
        "run" => json!({"command": "edit a.txt one 1 && write b/c.txt x; touch made"}),
        "run_workflow" => json!({"name": "review-diff"}),
        "skill_view" => json!({"name": "review"}),
        "update_plan" => json!({"items": [{"step": "look", "status": "pending"}]}),
        "write" => json!({"path": "new/a.txt", "content": "x"}),
        _ => return None,
    })
}

/// Tools that need a Session with a user.
const NEEDS_A_SESSION: [&str; 8] =
    ["ask_user", "job_kill", "job_output", "run_workflow", "show_agent", "spawn_agent", "tell_agent", "wait_agent"];

fn files() -> Shell {
    let shell = Shell::new(&[
        ("a.txt", "one\ntwo\n"),
        ("b.txt", "one\nthree\n"),
        (".pixir/skills/review/SKILL.md", "---\nname: review\ndescription: How to review\n---\nLook twice.\n"),
    ]);
    assert_eq!(shell.run(["trust"]).code, 0);
    shell
}

#[test]
fn every_tool_keeps_the_contract() {
    let shell = files();
    let schema = shell.run(["schema"]).document();
    let tools = schema["tools"].as_array().expect("tools");
    assert_eq!(tools.len(), 21);
    for it in tools {
        let name = it["name"].as_str().expect("a name");
        let args = example(name).unwrap_or_else(|| panic!("{name} has no example"));
        // Its description says what it is for.
        let help = shell.run(["tools", "show", name]);
        assert_eq!(help.code, 0, "{name}");
        for part in ["Streams: ", "Arguments:", "Example:", it["description"].as_str().expect("a description")] {
            assert!(help.stdout.contains(part), "{name}: {}", help.stdout);
        }
        for (key, property) in it["parameters"]["properties"].as_object().expect("properties") {
            assert!(property["type"].is_string(), "{name}.{key}");
            assert!(help.stdout.contains(key), "{name}: --help names {key}");
        }
        assert_eq!(it["parameters"]["additionalProperties"], false, "{name}");
        // The error of every tool names the bad arguments.
        for (bad, said) in [(json!({"nonsense": 1}), "`nonsense` is unknown"), (json!([1]), "must be an object")] {
            let refused = tool(&shell, name, &bad, &[]);
            let error = refused.error();
            assert_eq!((refused.code, error["error"]["kind"].as_str()), (2, Some("invalid_args")), "{name}");
            assert!(error["error"]["message"].as_str().expect("a message").contains(said), "{name}: {error}");
            assert!(error["remediation"].as_str().is_some_and(|fix| fix.starts_with(name)), "{name}: {error}");
        }
        if NEEDS_A_SESSION.contains(&name) {
            let error = tool(&shell, name, &args, &["--write"]).error();
            assert!(!error["remediation"].as_str().expect("a fix").is_empty(), "{name}");
            continue;
        }
        // A dry run succeeds, shows a preview and changes no byte.
        let before = tree(&shell.workspace());
        let planned = tool(&shell, name, &args, &["--dry-run"]);
        assert_eq!(planned.code, 0, "{name}: {}", planned.stderr);
        let result = &planned.document()["result"];
        assert_eq!((&result["ok"], result["plan"]["would"].is_string()), (&json!(true), true), "{name}");
        assert_eq!(tree(&shell.workspace()), before, "{name} changed something in a dry run");
        // A tool that changes files does so only with permission.
        let touches = it["access"] == "changes";
        let unasked = tool(&shell, name, &args, &[]);
        assert_eq!(unasked.code == 12, touches, "{name}: {}", unasked.stderr);
        assert_eq!(tree(&shell.workspace()), before, "{name} changed something without leave");
        // The result ends with its footer, and holds the fields of the contract.
        let done = tool(&shell, name, &args, &["--write"]);
        let result = done.document()["result"].clone();
        let output = result["output"].as_str().expect("text");
        let footer = output.lines().last().expect("a footer");
        assert!(footer.starts_with("[exit:") && footer.ends_with(']'), "{name}: {output}");
        assert!(result["call_id"].is_string() && result["duration_ms"].is_u64(), "{name}");
        assert!(!output.contains('\u{1b}'), "{name}");
        fs::remove_dir_all(shell.workspace()).expect("clean");
        for (path, (_, bytes)) in before.iter().filter(|(_, (mode, _))| mode & 0o170_000 == 0o100_000) {
            fs::create_dir_all(Path::new(path).parent().expect("a parent")).expect("mkdir");
            fs::write(path, bytes).expect("write");
        }
    }
}

#[test]
fn every_run_command_keeps_the_contract() {
    let shell = files();
    let schema = shell.run(["schema"]).document();
    let commands = schema["run_commands"].as_array().expect("commands");
    assert!(commands.len() >= 20);
    for it in commands {
        let name = it["name"].as_str().expect("a name");
        // A command without its arguments prints its usage; `--help` prints the whole.
        let bare = shell.run(["run", name, "--json"]);
        let help = shell.run(["run", &format!("{name} --help"), "--raw"]);
        assert_eq!((help.code, help.stdout.as_str()), (0, it["help"].as_str().expect("help")), "{name}");
        assert_eq!(shell.run(["run", &format!("help {name}"), "--raw"]).stdout, help.stdout, "{name}");
        if bare.code == 0 {
            let result = &bare.document()["result"];
            let output = result["output"].as_str().expect("text");
            if result["exit_code"] == 2 {
                assert!(output.starts_with(&format!("[error] {name}: usage: {name} ")), "{output}");
                assert_eq!(result["error"]["kind"], "invalid_args", "{name}");
            }
            assert!(output.lines().last().is_some_and(|line| line.starts_with("[exit:")), "{name}: {output}");
        } else {
            assert_eq!(bare.error()["code"], "USAGE", "{name}: {}", bare.stderr);
        }
        // The usage of each subcommand names its required arguments.
        for sub in it["subcommands"].as_array().expect("a list").iter().filter_map(Value::as_str) {
            if !help.stdout.contains(&format!("  {name} {sub} <")) {
                continue;
            }
            let ran = shell.run(["run", &format!("{name} {sub}"), "--json", "--write"]);
            let told = if ran.code == 0 { ran.stdout } else { ran.stderr };
            let is_told = told.contains(&format!("usage: {name} {sub} "))
                || told.contains("there are no background jobs outside a session")
                || told.contains("there are no agents here");
            assert!(is_told, "{name} {sub}: {told}");
        }
        // A flag that it does not know is an error, not a guess.
        if ![
            "echo", "test", "true", "false", "plan", "ask", "help", "skill", "memory", "topic", "job", "agent",
            "workflow", "mcp",
        ]
        .contains(&name)
        {
            let ran = shell.run(["run", &format!("{name} --nonsense a.txt"), "--json", "--write"]);
            let error = if ran.code == 0 { ran.document()["result"]["error"].clone() } else { ran.error() };
            assert_eq!(error["code"], "UNKNOWN_FLAG", "{name}: {error}");
        }
        // A command that does not read stdin says so.
        if it["stdin"] == "none" {
            let ran = shell.run(["run", &format!("cat a.txt | {name} x"), "--json", "--write"]);
            let told = if ran.code == 0 { ran.stdout } else { ran.stderr };
            assert!(told.contains("it does not read stdin"), "{name}: {told}");
        }
        // A dry run of it changes nothing.
        let before = tree(&shell.workspace());
        shell.run(["run", it["example"].as_str().expect("an example"), "--dry-run"]);
        shell.run(["run", &format!("{name} a.txt one 1"), "--dry-run"]);
        assert_eq!(tree(&shell.workspace()), before, "{name}");
    }
}

#[test]
fn tool_schemas_are_small_sorted_and_stable() {
    let shell = Shell::new(&[]);
    for (toolset, most) in [("typed", 10_752), ("run", 3_328)] {
        let list = || shell.run(["tools", "list", "--json", "--toolset", toolset]);
        let first = list();
        assert_eq!(first.stdout, list().stdout);
        let tools = first.document()["tools"].as_array().expect("tools").clone();
        let names: Vec<&str> = tools.iter().filter_map(|t| t["name"].as_str()).collect();
        assert!(names.is_sorted(), "{names:?}");
        assert_eq!(names.contains(&"run"), toolset == "run");
        // The schema as the Provider gets it, without the wrapping of the dialect.
        let block = tools
            .iter()
            .map(|t| json!({ "name": t["name"], "description": t["description"], "parameters": t["parameters"] }));
        let bytes: usize = block.clone().map(|it| it.to_string().len()).sum();
        assert!(bytes <= most, "{toolset}: {bytes} bytes");
        let of_agents = block.filter(|it| it["name"].as_str().is_some_and(|name| name.ends_with("_agent")));
        let bytes: usize = of_agents.map(|it| it.to_string().len()).sum();
        assert!(bytes <= 2_560, "the tools for agents: {bytes} bytes");
    }
    // The usage of the commands that models know least stands in the list, so that no call is needed to learn it.
    let run = shell.run(["tools", "show", "run", "--json"]).document();
    let description = run["description"].as_str().expect("a description");
    for usage in
        ["edit <path> <old> <new>", "plan '[x] ", "job start ", "ask <question>", "*** Begin Patch", "runs no tests"]
    {
        assert!(description.contains(usage), "{usage}: {description}");
    }
    let description = run["description"].as_str().expect("a description");
    for it in shell.run(["schema"]).document()["run_commands"].as_array().expect("commands") {
        let line = format!("\n{} — {}\n", it["name"].as_str().expect("a name"), it["about"].as_str().expect("words"));
        assert!(description.contains(&line), "{line}");
    }
}

/// Broken build: a tool whose description grows without another that shrinks.
#[test]
fn the_first_request_is_small_in_both_toolsets() {
    for (toolset, most) in [("typed", 14_336), ("run", 6_144)] {
        for dialect in Dialect::ALL {
            let shell = Shell::new(&[]);
            let server = Server::start(vec![text("Done.")]);
            assert_eq!(ask(&shell, &server, dialect, &["go", "--toolset", toolset]).code, 0);
            let bytes = server.bodies()[0].to_string().len();
            figures(&format!("first request, {toolset}, {}: {bytes} bytes", dialect.name()));
            assert!(bytes <= most, "{toolset}, {}: {bytes} bytes", dialect.name());
        }
    }
}

#[test]
fn saved_outputs_are_shared_and_kept_while_referenced() {
    let shell = Shell::new(&[]);
    let steps = json!([
        { "calls": [{ "name": "read", "args": { "path": ".pixir/out/cmd-1.txt" } }, { "name": "ls", "args": { "path": ".pixir/out" } }] },
        { "calls": [{ "name": "bash", "args": { "command": "seq 1 20000 >&2; seq 1 9999; exit 3" } }] },
        { "calls": [{ "name": "bash", "args": { "command": "echo from the job", "background": true } }] },
        { "calls": [{ "name": "job_output", "args": { "job": 1, "wait": 20 } }] },
        { "calls": [{ "name": "grep", "args": { "pattern": "^1999$", "path": ".pixir/out" } }, { "name": "find", "args": { "pattern": "*.txt", "path": ".pixir/out" } }] },
        { "text": "Done." },
    ]);
    let provider = format!("script:{}", shell.aside("s.json", &json!({ "steps": steps }).to_string()).display());
    let ran = shell.run(["--provider", &provider, "--headless", "--json", "--write", "go"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let log = entries(&shell.logs()[0]);
    let output: Vec<&str> = log
        .iter()
        .filter(|e| e["type"] == "tool_result")
        .map(|e| e["data"]["output"].as_str().expect("text"))
        .collect();
    assert!(output[0].contains("/out/cmd-1.txt` is no longer stored"), "{}", output[0]);
    let whole = output[2].lines().find_map(|line| line.strip_prefix("Full output: "));
    let whole = whole.unwrap_or_else(|| panic!("{}", output[2]));
    assert!(output[4].starts_with("from the job\njob 1 ("), "{}", output[4]);
    assert!(output[5].contains(&format!("{whole}:1999:1999\n")), "{}", output[5]);
    let job = output[4].split_once("output in ").and_then(|(_, rest)| rest.lines().next()).expect("a path");
    assert!(job.ends_with("/out/job-1.txt") && output[6].contains(&format!("{job}\n")), "{}", output[6]);
    // Older than the grace period, and still referenced.
    let out = shell.logs()[0].with_extension("").join("out");
    for file in fs::read_dir(&out).expect("there are outputs").flatten() {
        assert!(Command::new("touch").args(["-d", "3 hours ago"]).arg(file.path()).status().expect("touch").success());
    }
    assert!(shell.run(["gc", "--yes"]).code == 0 && out.join("job-1.txt").exists(), "gc leaves what a log names");
    let names = |folder: &Path| {
        let mut all: Vec<_> = fs::read_dir(folder).expect("list").flatten().map(|file| file.file_name()).collect();
        all.sort();
        all
    };
    let before = names(&out);
    let forked = shell.run(["fork", "last", "--json"]).document();
    let fork = forked["session_id"].as_str().or(forked["id"].as_str()).expect("an id");
    assert_eq!(names(&out.parent().and_then(Path::parent).expect("a folder").join(fork).join("out")), before);
}

#[test]
fn a_flood_of_output_takes_bounded_memory() {
    let shell = Shell::new(&[]);
    let megabytes = tier::cases("a_flood");
    let run = |command: String| {
        let steps = json!([{ "calls": [{ "name": "bash", "args": { "command": command, "timeout": 600 } }] }, { "text": "Done." }]);
        let provider = format!("script:{}", shell.aside("s.json", &json!({ "steps": steps }).to_string()).display());
        peak(&shell, &["--provider", &provider, "--headless", "--json", "--write", "go"])
    };
    let (base, _) = run("echo little".into());
    let mut rows = vec![format!("nothing {base} KB")];
    let mut bounded = |what: &str, most: u64| {
        rows.push(format!("{what} {most} KB"));
        assert!(most.saturating_sub(base) < 32 << 10, "{rows:?}");
    };
    let (most, ran) = run(format!("yes 'a line of forty-two bytes, over and over' | head -c {megabytes}M"));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    bounded("lines", most);
    let newest = shell.logs().into_iter().max_by_key(|log| fs::metadata(log).expect("there").len()).expect("a log");
    let log = entries(&newest);
    let result = log.iter().find(|e| e["type"] == "tool_result").expect("a result");
    assert_eq!(result["data"]["truncated"]["bytes_total"], megabytes << 20);
    assert!(result["data"]["output"].as_str().expect("text").len() < 17_000);
    // The same holds for one endless line, and for a pipeline.
    let (most, _) = run(format!("head -c {megabytes}M /dev/zero | tr '\\0' x"));
    bounded("one line", most);
    let chain =
        format!("yes abcdefghijklmnopqrstuvwxyz | head -c {}M | grep -v nothing | tail -n 2 | wc -c", megabytes / 4);
    let (most, ran) = peak(&shell, &["run", &chain, "--write", "--raw", "--timeout", "600"]);
    let last_two: u64 = ran.stdout.trim().parse().expect("a number");
    assert!((28..=54).contains(&last_two), "{last_two} bytes");
    bounded("five commands, a quarter of it", most);
    figures(&format!("QT1, peak memory at {megabytes} MiB: {}", rows.join(", ")));
}

#[test]
fn every_long_output_is_cut_to_its_budget() {
    let lines: String = (0..9_000).map(|n| format!("{n} needle\n")).collect();
    let shell = Shell::new(&[("long.txt", &lines)]);
    for n in 0..3_000 {
        fs::write(shell.workspace().join(format!("a-file-with-a-long-name-{n}.rs")), "").expect("write");
    }
    for (name, args, said) in [
        ("read", json!({"path": "long.txt"}), "next_offset="),
        ("grep", json!({"pattern": "needle", "limit": 9_000}), "…[truncated "),
        ("grep", json!({"pattern": "needle"}), "more matching lines"),
        ("find", json!({"pattern": "*", "limit": 9_000}), "…[truncated "),
        ("find", json!({"pattern": "*"}), "more; narrow the pattern"),
        ("ls", json!({}), "…[truncated "),
        ("bash", json!({"command": "cat long.txt; exit 1"}), "…[truncated "),
        ("run", json!({"command": "cat long.txt"}), "…[truncated 8800 of 9000 lines]"),
        ("run", json!({"command": "find ."}), "…[truncated "),
    ] {
        let told = output(&shell, name, args.clone());
        let most = match name {
            "run" => 51_200,
            "read" => 48 << 10,
            _ => 16_000,
        };
        assert!(told.len() <= most + 600, "{name} {args}: {} bytes", told.len());
        assert!(told.contains(said), "{name} {args}: {}", &told[told.len() - 300..]);
        assert!(told.lines().last().is_some_and(|line| line.starts_with("[exit:")), "{name} {args}");
    }
    // A failure keeps its last lines.
    assert!(output(&shell, "bash", json!({"command": "cat long.txt; exit 1"})).contains("\n8999 needle\n"));
}

#[test]
fn no_tool_reads_the_stdin_of_pixir() {
    let shell = Shell::new(&[]);
    for (name, args) in
        [("bash", json!({"command": "cat; echo done"})), ("run", json!({"command": "sh -c 'cat; echo done'"}))]
    {
        let mut yes = std::process::Command::new("yes").stdout(std::process::Stdio::piped()).spawn().expect("yes");
        let mut command = shell.command(["tools", "run", name, &args.to_string(), "--write"]);
        let ran = crate::shell::ran(command.stdin(yes.stdout.take().expect("its output")).output().expect("it ends"));
        yes.kill().expect("it runs");
        yes.wait().expect("it ends");
        assert!(ran.stdout.starts_with("done\n[exit:0"), "{name}: {}", ran.stdout);
    }
}
