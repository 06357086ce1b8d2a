//! Real MCP servers, as npm and PyPI have them: `.ci/mcp-servers` installs them.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::{result, turn};
use crate::server::{Server, call, text};
use crate::shell::{Shell, skip};
use crate::stories::readers::git;

/// The command of an installed server; `None` where it is not installed.
fn installed(name: &str) -> Option<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("target/mcp-servers");
    let places = ["node_modules/.bin", "venv/bin"].map(|it| folder.join(it).join(name));
    places.into_iter().find(|it| it.exists())
}

/// One call of a tool of a real server, added as a user adds it.
fn called(name: &str, args: &[&str], tool: &str, arguments: &Value, shell: &Shell) -> Option<Value> {
    let Some(program) = installed(name) else {
        skip(&format!("{name} is not installed; .ci/mcp-servers does that"));
        return None;
    };
    let program = program.display().to_string();
    let added = shell.run(["mcp", "add", "real", "--", &program].iter().chain(args));
    assert_eq!(added.code, 0, "{added:?}");
    let listed = shell.run(["mcp", "show", "real", "--json"]).document();
    let known = listed["server"]["tools"].as_array().expect("tools").iter().any(|it| it["raw"] == tool);
    assert!(known, "{listed}");
    let name = format!("real__{tool}");
    let server = Server::start(vec![
        call("c1", "mcp_find", json!({ "query": tool })),
        call("c2", &name, arguments.clone()),
        call("c3", "mcp_call", json!({ "tool": name, "arguments": arguments })),
        text("Done."),
    ]);
    let ran = turn(shell, &server, &["--mode", "ask", "--allow", "mcp(real)", "go"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let log = crate::shell::entries(&shell.logs()[0]);
    let results: Vec<Value> =
        log.iter().filter(|it| it["type"] == "tool_result").map(|it| it["data"].clone()).collect();
    // Directly or by search, as its definitions fit.
    Some(results.into_iter().find(|it| it["origin"]["server"] == "real").unwrap_or_else(|| result(shell)))
}

fn assert_says(found: Option<Value>, wanted: &str) {
    if let Some(found) = found {
        assert!(found["output"].as_str().is_some_and(|it| it.contains(wanted)), "{wanted}: {found}");
    }
}

#[test]
fn the_everything_server_of_npm_is_used() {
    let shell = Shell::new(&[]);
    let arguments = json!({ "message": "hello there" });
    assert_says(called("mcp-server-everything", &["stdio"], "echo", &arguments, &shell), "hello there");
}

#[test]
fn the_filesystem_server_of_npm_is_used() {
    let shell = Shell::new(&[("a.txt", "alpha\n")]);
    let folder = shell.workspace().canonicalize().expect("it is there").display().to_string();
    let arguments = json!({ "path": format!("{folder}/a.txt") });
    assert_says(called("mcp-server-filesystem", &[&folder], "read_text_file", &arguments, &shell), "alpha");
}

#[test]
fn the_memory_server_of_npm_is_used() {
    let shell = Shell::new(&[]);
    // What it remembers lies beside its program, for every test of this machine.
    assert_says(called("mcp-server-memory", &[], "read_graph", &json!({}), &shell), "entities");
}

#[test]
fn the_git_server_of_pypi_is_used() {
    let shell = Shell::new(&[("a.txt", "alpha\n")]);
    git(&shell.workspace(), &["init", "-q", "-b", "main"]);
    let folder = shell.workspace().display().to_string();
    assert_says(called("mcp-server-git", &[], "git_status", &json!({ "repo_path": folder }), &shell), "a.txt");
}

#[test]
fn the_time_server_of_pypi_is_used() {
    let shell = Shell::new(&[]);
    let arguments = json!({ "timezone": "Asia/Tokyo" });
    assert_says(called("mcp-server-time", &[], "get_current_time", &arguments, &shell), "Asia/Tokyo");
}

/// Broken builds: pixir answers what its own stories read and no other client does; an approval is asked in a way that the SDK
/// does not know.
#[test]
fn the_official_sdk_for_python_is_a_client_of_pixir() {
    let Some(python) = installed("python") else {
        return skip("the SDK of MCP for Python is not installed; .ci/mcp-servers does that");
    };
    let shell = Shell::new(&[]);
    let write = json!({ "name": "write", "args": { "path": "b.txt", "content": "new\n" } });
    let steps = json!({ "steps": [{ "calls": [write] }, { "text": "Written." }] });
    let script = shell.aside("steps.json", &steps.to_string());
    let client = shell.aside("mcp_client.py", include_str!("../../clients/mcp_client.py"));
    let mut command = std::process::Command::new(python);
    let pixir = shell.command([""; 0]);
    command.envs(pixir.get_envs().filter_map(|(name, value)| Some((name, value?)))).current_dir(shell.workspace());
    command.arg(client).arg(env!("CARGO_BIN_EXE_pixir")).arg(script).stdin(std::process::Stdio::null());
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let ran = crate::shell::ran(crate::shell::run_to_its_end(&mut command));
    assert_eq!(ran.code, 0, "{ran:?}");
    let seen = ran.document();
    let wanted = json!({
        "server": "pixir", "tools": ["pixir_task", "pixir_run", "pixir_sessions"], "status": "completed", "progress": 1,
    });
    for (key, value) in wanted.as_object().expect("an object") {
        assert_eq!(&seen[key], value, "{key}: {seen}");
    }
    let asked = &seen["asked"];
    assert!(asked.as_array().is_some_and(|it| it.len() == 1) && asked[0].to_string().contains("b.txt"), "{seen}");
    assert_eq!((&seen["task"], shell.read("b.txt").as_str()), (&json!("Written."), "new\n"));
    assert!(
        seen["ran"].to_string().contains("alive") && seen["wrong"].to_string().contains("missing field `task`"),
        "{seen}"
    );
}

/// The scenarios of the official suite for what pixir declares.
const SCENARIOS: [&str; 23] = [
    "initialize",
    "tools_call",
    "elicitation-sep1034-client-defaults",
    "sse-retry",
    "auth/metadata-default",
    "auth/metadata-var1",
    "auth/metadata-var2",
    "auth/metadata-var3",
    "auth/basic-cimd",
    "auth/scope-from-www-authenticate",
    "auth/scope-from-scopes-supported",
    "auth/scope-omitted-when-undefined",
    "auth/scope-step-up",
    "auth/scope-retry-limit",
    "auth/token-endpoint-auth-basic",
    "auth/token-endpoint-auth-post",
    "auth/token-endpoint-auth-none",
    "auth/pre-registration",
    "auth/2025-03-26-oauth-metadata-backcompat",
    "auth/2025-03-26-oauth-endpoint-fallback",
    "auth/resource-mismatch",
    "auth/offline-access-scope",
    "auth/offline-access-not-supported",
];

/// Broken builds: a form without answers is one without its usual values; a stream that a server closes is not opened again;
/// a tool is called before the stream is open on which the server asks.
#[test]
fn the_official_suite_finds_no_fault_in_what_pixir_declares() {
    let (Some(suite), Some(node)) = (installed("conformance"), installed("node")) else {
        return skip("the conformance suite of MCP is not installed; .ci/mcp-servers does that");
    };
    let shell = Shell::new(&[]);
    let client = shell.aside("conformance.py", include_str!("../../clients/conformance.py"));
    let folder = client.parent().expect("a folder").join("suite");
    let words = format!("python3 {} {} {}", client.display(), folder.display(), env!("CARGO_BIN_EXE_pixir"));
    let command = |scenario: &str| {
        let mut command = std::process::Command::new(&node);
        command
            .arg(&suite)
            .args(["client", "--command", &words, "--scenario", scenario, "--timeout", "240000"])
            .current_dir(shell.workspace());
        command
    };
    let mut wrong = Vec::new();
    // Some at a time: each is a model, a server, an issuer and a browser.
    for some in SCENARIOS.chunks(6) {
        let runs: Vec<_> = some
            .iter()
            .map(|scenario| {
                let mut command = command(scenario);
                (scenario, std::thread::spawn(move || crate::shell::run_to_its_end(&mut command)))
            })
            .collect();
        for (scenario, run) in runs {
            let ran = crate::shell::ran(run.join().expect("it ran"));
            if ran.code != 0 {
                wrong.push(format!("{scenario}: {}\n{}", ran.stdout, ran.stderr));
            }
        }
    }
    crate::shell::figures(&format!(
        "{} scenarios of the conformance suite of MCP: {} failed",
        SCENARIOS.len(),
        wrong.len()
    ));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
