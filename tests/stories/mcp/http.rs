//! Streamable HTTP as servers speak it: sessions, streams of events, refusals, and the headers of the stateless revision.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command};

use serde_json::{Value, json};

use super::{latest, turn};
use crate::server::{Server, call, text};
use crate::shell::{Shell, entries, peak};
use crate::wait;

/// A server with streams, and the journal that it writes. It ends with its owner.
struct Remote {
    child: Child,
    journal: PathBuf,
}

impl Remote {
    /// Starts it, and configures it as `far`, whose tools only read.
    fn start(shell: &Shell, options: &[&str], more: &str) -> Remote {
        let program = shell.aside("mcp_http.py", include_str!("../../mcp_http.py"));
        let (port, journal) = (program.with_file_name("far.port"), program.with_file_name("far.journal"));
        let child = Command::new("python3").arg(&program).args([&port, &journal]).args(options).spawn();
        let child = child.expect("python3 starts");
        wait::until("the server listens", || port.exists());
        let port = fs::read_to_string(port).expect("a port");
        shell.configure(&format!(
            "[mcp.far]\nurl = \"http://127.0.0.1:{port}/mcp\"\nreads = [\"*\"]\nexpose = \"search\"\n{more}\n"
        ));
        Remote { child, journal }
    }

    fn journal(&self) -> Vec<String> {
        fs::read_to_string(&self.journal).unwrap_or_default().lines().map(str::to_owned).collect()
    }

    fn count(&self, line: &str) -> usize {
        self.journal().iter().filter(|it| *it == line).count()
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The results of calls of these tools of the server in one Turn.
fn called(shell: &Shell, tools: &[(&str, Value)]) -> Vec<Value> {
    let call = |(tool, args): &(&str, Value)| {
        call(&format!("c-{tool}"), "mcp_call", json!({ "tool": format!("far__{tool}"), "arguments": args }))
    };
    let server = Server::start(tools.iter().map(call).chain([text("Done.")]).collect());
    let ran = turn(shell, &server, &["go"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let log = entries(&latest(shell));
    log.into_iter().filter(|it| it["type"] == "tool_result").map(|it| it["data"].clone()).collect()
}

fn output(result: &Value) -> &str {
    result["output"].as_str().expect("text")
}

fn plain(tools: &[&'static str]) -> Vec<(&'static str, Value)> {
    tools.iter().map(|tool| (*tool, json!({}))).collect()
}

/// Broken builds: the session or the version is not named in each request; the session is never ended; what comes on the stream of
/// the session is lost; a stream that breaks off takes its answer along; a question on a stream has no answer.
#[test]
fn a_server_with_a_session_answers_with_json_with_streams_and_on_its_own_stream() {
    let shell = Shell::new(&[]);
    let remote = Remote::start(&shell, &[], "");
    assert_eq!(shell.run(["mcp", "test", "far"]).code, 0);
    let tools = ["plain", "stream", "resume", "ask", "elsewhere", "cut", "plain"];
    let results = called(&shell, &plain(&tools));
    let wanted = ["plain", "streamed", "resumed", "{\"action\": \"decline\"}", "came on the other stream"];
    for (result, wanted) in results.iter().zip(wanted) {
        assert!(result["error"].is_null() && output(result).contains(wanted), "{wanted}: {result}");
    }
    assert_eq!(results[5]["error"]["code"], "MCP_SERVER_EXITED", "{}", results[5]);
    assert!(output(&results[6]).contains("plain"), "a stream that ended is not the end of the server: {}", results[6]);
    let journal = remote.journal();
    let begins = ["server/discover 2026-07-28 None", "initialize None None", "notifications/initialized 2025-06-18 s1"];
    assert_eq!(journal[..3], begins, "{journal:#?}");
    assert!(journal.iter().filter(|it| it.starts_with("tools/")).all(|it| it.contains("2025-06-18 s")), "{journal:#?}");
    assert!(journal.contains(&"GET 7".to_owned()), "{journal:#?}");
    assert_eq!(remote.count("GET None"), 2, "once for the test, once for the Turn: {journal:#?}");
    wait::until("the sessions end", || remote.count("DELETE s1") == 2);
}

/// Broken builds: a call fails because the server has forgotten its session; it is sent twice; the new session has no stream.
#[test]
fn a_session_that_the_server_has_forgotten_begins_anew_and_the_call_is_made() {
    let shell = Shell::new(&[]);
    let remote = Remote::start(&shell, &["forgetful"], "");
    assert_eq!(shell.run(["mcp", "test", "far"]).code, 0);
    let results = called(&shell, &plain(&["plain", "elsewhere"]));
    assert!(output(&results[0]).contains("plain") && output(&results[1]).contains("other stream"), "{results:?}");
    let journal = remote.journal();
    assert_eq!((remote.count("call plain"), remote.count("initialize None None")), (1, 3), "{journal:#?}");
    let again = journal.iter().rposition(|it| it == "initialize None None").expect("it began again");
    assert_eq!(journal[again - 1], "tools/call 2025-06-18 s1", "{journal:#?}");
    assert_eq!(journal[again + 1], "notifications/initialized 2025-06-18 s2", "{journal:#?}");
}

/// Broken build: a change that is told on the stream of the session is not looked at before the next call.
#[test]
fn a_change_that_is_told_on_the_stream_is_seen_before_the_next_call() {
    let shell = Shell::new(&[]);
    let remote = Remote::start(&shell, &[], "");
    assert_eq!(shell.run(["mcp", "test", "far"]).code, 0);
    let results = called(&shell, &plain(&["change", "plain"]));
    assert!(output(&results[0]).contains("changed"), "{}", results[0]);
    assert_eq!(results[1]["error"]["code"], "MCP_DEFINITION_CHANGED", "{}", results[1]);
    assert_eq!(remote.count("call plain"), 0);
}

/// Broken builds: a server that refuses is one that is gone; the words of a refusal are lost, or those of HTTP stand before them; a
/// page of HTML is an answer.
#[test]
fn refusals_over_http_are_the_errors_of_their_own_calls() {
    let shell = Shell::new(&[]);
    let _remote = Remote::start(&shell, &[], "");
    assert_eq!(shell.run(["mcp", "test", "far"]).code, 0);
    let results = called(&shell, &plain(&["refused", "error", "html", "plain"]));
    for (result, wanted) in results.iter().zip([
        "gave no valid answer to `refused`: HTTP 503 Service Unavailable: <p>out of cheese</p>",
        "refused `error`: no cheese",
        "gave no valid answer to `html`: its answer is text/html, which is neither JSON nor a stream of events",
    ]) {
        assert_eq!(result["error"]["code"], "MCP_PROTOCOL", "{result}");
        assert!(output(result).contains(wanted), "{wanted}: {result}");
    }
    assert!(output(&results[3]).contains("plain"), "{}", results[3]);
}

/// Broken builds: an answer of any length is held; a long page of a list hides the tools in front of it.
#[test]
fn long_answers_over_http_are_cut_as_those_of_a_process_are() {
    let shell = Shell::new(&[]);
    let remote = Remote::start(&shell, &[], "");
    assert_eq!(shell.run(["mcp", "test", "far"]).code, 0);
    let refused = &called(&shell, &plain(&["big"]))[0];
    assert_eq!(refused["error"]["code"], "MCP_LIMIT", "{refused}");
    let (small, ran) = peak(&shell, &["mcp", "test", "far"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    drop(remote);
    fs::remove_file(shell.aside("far.port", "")).expect("it is there");
    let _remote = Remote::start(&shell, &["pages=14"], "");
    let (large, ran) = peak(&shell, &["mcp", "test", "far"]);
    assert!(ran.stdout.contains("the server lists more than the") && ran.stdout.contains("  plain "), "{ran:?}");
    let more = large.saturating_sub(small);
    crate::shell::figures(&format!("a page of 14 MB over HTTP: {more} KB more"));
    assert!(more <= 64 << 10, "{more} KB more");
}

/// Broken builds: a server with a session works on for a client that has stopped waiting; one without is told by a message that it
/// does not know, and its connection stays open.
#[test]
fn a_call_that_takes_too_long_is_taken_back_as_the_revision_wants_it() {
    for (options, told) in [(vec![], "cancelled "), (vec!["stateless"], "cut")] {
        let shell = Shell::new(&[]);
        let remote = Remote::start(&shell, &options, "call_timeout = 1");
        assert_eq!(shell.run(["mcp", "test", "far"]).code, 0);
        let results = called(&shell, &plain(&["hang", "plain"]));
        assert_eq!(results[0]["error"]["code"], "MCP_TIMEOUT", "{}", results[0]);
        assert!(output(&results[1]).contains("plain"), "{}", results[1]);
        wait::until("the server knows it", || remote.journal().iter().any(|it| it.starts_with(told)));
        let is_told = remote.journal().iter().any(|it| it.starts_with("cancelled"));
        assert_eq!(is_told, options.is_empty(), "{:#?}", remote.journal());
    }
}

/// Broken builds: what stands between cannot see the method, the name or the argument; a tool whose arguments cannot stand in a
/// header is offered; a session or a stream is begun that the revision does not have.
#[test]
fn a_stateless_server_is_sent_the_headers_of_its_revision_and_no_session_is_begun() {
    let shell = Shell::new(&[]);
    let remote = Remote::start(&shell, &["stateless"], "");
    let tested = shell.run(["mcp", "test", "far"]);
    assert!(tested.code == 0 && tested.stdout.contains("`impossible`: "), "{tested:?}");
    let results = called(&shell, &[("place", json!({ "region": "a\nb" }))]);
    assert!(output(&results[0]).contains("place"), "{results:?}");
    let journal = remote.journal();
    let sent =
        "headers mcp-method=tools/call mcp-name=place mcp-param-region==?base64?YQpi?= mcp-protocol-version=2026-07-28";
    assert!(journal.contains(&sent.to_owned()), "{journal:#?}");
    let of_sessions =
        |it: &&String| ["initialize", "notifications/", "GET", "DELETE"].iter().any(|word| it.starts_with(word));
    assert_eq!(journal.iter().filter(of_sessions).count(), 0, "{journal:#?}");
}
