//! Changes of what a model is offered of servers: by a Provider that refuses a definition, by the user; what a change costs, and
//! what is not offered.

use serde_json::{Value, json};

use super::{Scripted, approved, latest, tool_names, turn};
use crate::server::{Dialect, Reply, Server, call, text};
use crate::shell::{Shell, entries};

/// A server with two tools that only read, as the user has said.
fn with_server() -> (Shell, Scripted) {
    let shell = Shell::new(&[]);
    let scripted = Scripted::new(&shell);
    shell.configure(&scripted.section("test", &["tools=echo,look"], "reads = [\"*\"]"));
    assert_eq!(shell.run(["mcp", "test", "test"]).code, 0);
    (shell, scripted)
}

fn refusal(message: &str) -> Reply {
    let error = json!({ "error": { "message": message, "type": "invalid_request_error" } });
    Reply::Refuse { status: 400, headers: String::new(), body: error.to_string() }
}

fn of_type<'a>(log: &'a [Value], name: &str) -> Vec<&'a Value> {
    log.iter().filter(|it| it["type"] == name).map(|it| &it["data"]).collect()
}

/// Broken builds: one definition that a Provider does not take ends every Turn; the tool is gone, instead of found by search; the
/// next Turn offers it again; a refusal that names it once more is asked for ever.
#[test]
fn a_tool_that_the_provider_refuses_is_found_by_search_and_no_other_is_touched() {
    let (shell, scripted) = with_server();
    let words = "Invalid schema for function 'test__echo': schema must have a type";
    let server = Server::start(vec![
        refusal(words),
        call("c1", "mcp_find", json!({ "query": "again" })),
        call("c2", "mcp_call", json!({ "tool": "test__echo", "arguments": { "text": "still here" } })),
        text("Done."),
        text("Done again."),
    ]);
    let ran = turn(&shell, &server, &["go"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let ran = turn(&shell, &server, &["resume", "last", "go on"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let bodies = server.bodies();
    let before = tool_names(&bodies[0]);
    let after = tool_names(&bodies[1]);
    let wanted: Vec<String> = before.iter().filter(|it| *it != "test__echo").cloned().collect();
    let new: Vec<String> = after.iter().filter(|it| !before.contains(it)).cloned().collect();
    assert_eq!(new, ["mcp_call", "mcp_find"]);
    assert!(wanted.iter().all(|it| after.contains(it)) && after.len() == wanted.len() + 2, "{before:?} {after:?}");
    let find = bodies[1]["tools"].as_array().expect("tools").iter().find(|it| it["name"] == "mcp_find").expect("it");
    assert!(find["description"].as_str().expect("text").contains("test__echo"), "{find}");
    assert!(bodies[1..].iter().all(|it| it["tools"] == bodies[1]["tools"]), "the new offer stays");
    let log = entries(&latest(&shell));
    let results = of_type(&log, "tool_result");
    assert!(results[0]["output"].as_str().expect("text").contains("Says the text again"), "{results:?}");
    assert!(results[1]["output"].as_str().expect("text").contains("still here"), "{results:?}");
    let offers = of_type(&log, "tools_offered");
    assert_eq!(offers.len(), 2);
    assert_eq!(offers[1]["servers"][0]["refused"][0]["raw"], "echo", "{offers:?}");
    assert!(offers[1]["bytes"].as_u64() < offers[0]["bytes"].as_u64() && offers[1]["bytes"] != 0, "{offers:?}");
    assert!(scripted.journal().iter().any(|it| it.starts_with("call echo")));

    // It is moved once, and only what is a server's can be moved.
    for (refusals, requests) in [(vec![words, words], 2), (vec!["tools.0.custom.input_schema: invalid"], 1)] {
        let server = Server::start(refusals.into_iter().map(refusal).collect());
        let ran = turn(&shell, &server, &["go"]);
        assert_ne!(ran.code, 0, "{ran:?}");
        assert!(ran.stderr.contains("PROVIDER_HTTP_ERROR") || ran.stdout.contains("PROVIDER_HTTP_ERROR"), "{ran:?}");
        assert_eq!(server.bodies().len(), requests, "{ran:?}");
    }
}

/// Broken builds: the flags of a program are taken for those of pixir, and nothing says why; a list of tools is wider than the
/// terminal; a sentence is cut without a sign.
#[test]
fn a_user_who_adds_a_server_without_reading_is_told_how_and_reads_its_tools() {
    let shell = Shell::new(&[]);
    for words in [&["files"][..], &["files", "npx", "-y", "@modelcontextprotocol/server-filesystem", "/tmp"]] {
        let refused = shell.run(["mcp", "add"].iter().chain(words));
        assert!(refused.code == 2 && refused.stderr.contains("pixir mcp add NAME -- COMMAND"), "{refused:?}");
    }
    let scripted = Scripted::new(&shell);
    let (program, journal) = (scripted.program.display().to_string(), scripted.journal_flag());
    let about = format!("about=. {}", "A long description. ".repeat(40));
    let long = format!("about={}", " and again".repeat(40));
    for (about, wanted) in
        [(&about, "  echo  asks     Says the text again\n"), (&long, "Says the text again and again and")]
    {
        let _ = shell.run(["mcp", "remove", "test"]);
        let added = shell.run(["mcp", "add", "test", "--", "python3", &program, &journal, "tools=echo", about]);
        assert!(added.code == 0 && added.stdout.contains(wanted), "{added:?}");
        let line = added.stdout.lines().find(|it| it.starts_with("  echo")).expect("the tool");
        assert!(line.chars().count() < 80 && line.ends_with('…') == (about == &long), "{line}");
    }
}

/// Broken builds: a new server makes every token of a long conversation dear, and nothing says so; an unchanged offer says that
/// it has changed.
#[test]
fn a_change_of_what_is_offered_says_what_it_costs() {
    let (shell, scripted) = with_server();
    let server = Server::start((0..4).map(|_| text("Done.")).collect());
    let notices = |args: &[&str]| {
        let flags = server.flags(Dialect::Responses);
        let usual = flags.iter().map(String::as_str).chain(["--headless", "--format", "jsonl"]);
        let ran = shell.run(usual.chain(args.iter().copied()));
        assert_eq!(ran.code, 0, "{ran:?}");
        let all = ran.lines().into_iter().filter(|it| it["data"]["code"] == "OFFER_CHANGED");
        all.map(|it| it["data"]["message"].as_str().expect("text").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(notices(&["go"]), Vec::<String>::new());
    assert_eq!(notices(&["resume", "last", "go on"]), Vec::<String>::new());
    shell.configure(&format!(
        "{}{}",
        scripted.section("test", &["tools=echo,look"], "reads = [\"*\"]"),
        scripted.section("other", &["tools=look"], "")
    ));
    assert_eq!(shell.run(["mcp", "test", "other"]).code, 0);
    let said = notices(&["resume", "last", "and on"]);
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].contains("other is new;"), "{said:?}");
    assert!(said[0].contains(" tokens of the next request are not in the provider's cache"), "{said:?}");
    assert_eq!(notices(&["resume", "last", "to the end"]), Vec::<String>::new());
}

/// Broken builds: a run without a user uses less than the workspace names, and does not say why; it says so again and again, or
/// where nothing is left to approve.
#[test]
fn a_run_without_a_user_names_the_servers_that_wait_for_an_approval() {
    let shell = Shell::new(&[]);
    let scripted = Scripted::new(&shell);
    let program = scripted.program.display().to_string();
    let near = json!({ "command": "python3", "args": [program, scripted.journal_flag(), "tools=look"] });
    let run = |more: &[&str]| {
        let server = Server::start(vec![text("Done."), text("Done.")]);
        let flags = server.flags(Dialect::Responses);
        let ran = shell.run(flags.iter().map(String::as_str).chain(more.iter().copied()));
        assert_eq!(ran.code, 0, "{ran:?}");
        ran
    };
    shell.write(".mcp.json", &json!({ "mcpServers": { "near": near } }).to_string());
    let plain = run(&["--headless", "go"]);
    let lines: Vec<&str> = plain.stderr.lines().filter(|it| it.contains("near")).collect();
    let wanted = "• the MCP server near does not start: you have not approved that in this workspace; run pixir mcp trust near, which shows the launch, and asks";
    assert_eq!(lines, [wanted], "{plain:?}");
    assert_eq!(plain.stdout.trim(), "Done.");
    let events = run(&["--headless", "--format", "jsonl", "go"]).lines();
    let inert: Vec<&Value> = events.iter().filter(|it| it["data"]["code"] == "SERVERS_INERT").collect();
    assert_eq!((inert.len(), &inert[0]["type"]), (1, &json!("notice")), "{events:?}");
    assert_eq!(scripted.starts(), 0);

    shell.write(".mcp.json", &json!({ "mcpServers": { "near": near, "other": near } }).to_string());
    let both = run(&["--headless", "go"]).stderr;
    assert!(both.contains("the MCP servers near, other do not start:") && both.contains("pixir trust"), "{both}");
    for name in ["near", "other"] {
        assert_eq!(approved(&shell, "trust", name).code, 0);
    }
    assert!(!run(&["--headless", "go"]).stderr.contains("near"));
}
