//! Every fault of a server at every moment: the code, the attempts and the Log of each; nothing hangs, and no tool
//! runs twice.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::server::{Act, Dialect, HEAD, Part, Reply, Server, answer, begin, call, end, event, part};
use crate::shell::{Shell, entries, figures};
use crate::tier;

/// Attempts of one request.
const ATTEMPTS: usize = 3;
/// The effect of the call in the first answer; it must happen exactly once.
const EFFECT: &str = "echo ran >> ran.txt";

/// Where in an answer something happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Moment {
    /// Before the answer has begun.
    Before,
    Thinking,
    Speaking,
    Calling,
    /// The call is whole; only the end is missing.
    Called,
}

const MOMENTS: [Moment; 5] = [Moment::Before, Moment::Thinking, Moment::Speaking, Moment::Calling, Moment::Called];

/// The events before a moment, and those after it.
fn halves(dialect: Dialect, moment: Moment) -> (String, String) {
    let args = json!({ "path": "x.txt", "content": "never written" });
    let parts = [Part::Reasoning("I think. "), Part::Text("Half an answer. "), Part::Call("c2", "write", &args)];
    let events: Vec<Vec<String>> = parts.iter().enumerate().map(|(place, it)| part(dialect, place, *it)).collect();
    // In one dialect an event opens a part before its text.
    let first = if dialect == Dialect::Anthropic { 2 } else { 1 };
    let (whole, more) = match moment {
        Moment::Before => (0, 0),
        Moment::Thinking => (0, first),
        Moment::Speaking => (1, first),
        Moment::Calling => (2, if dialect == Dialect::Chat { 1 } else { 2 }),
        Moment::Called => (3, 0),
    };
    let mut all = if moment == Moment::Before { Vec::new() } else { begin(dialect) };
    let mut rest = if moment == Moment::Before { begin(dialect) } else { Vec::new() };
    for (i, events) in events.into_iter().enumerate() {
        let cut = if i < whole {
            events.len()
        } else if i == whole {
            more
        } else {
            0
        };
        all.extend_from_slice(&events[..cut]);
        rest.extend_from_slice(&events[cut..]);
    }
    rest.extend(end(dialect, true));
    (all.concat(), rest.concat())
}

/// The expected code and exit code.
#[derive(Debug, Clone, PartialEq)]
struct Outcome {
    code: &'static str,
    /// A transient fault: the request is sent again, also after the first text.
    transient: bool,
}

fn passes(code: &'static str) -> Outcome {
    Outcome { code, transient: true }
}

fn stays(code: &'static str) -> Outcome {
    Outcome { code, transient: false }
}

/// One cell of the fault matrix.
struct Cell {
    what: String,
    dialect: Dialect,
    moment: Moment,
    reply: Reply,
    expected: Outcome,
    requests: &'static str,
}

const QUICK: &str = "[requests]\nattempts = 3\nfirst_wait = 0.01\n";
const IMPATIENT: &str = "[requests]\nattempts = 3\nfirst_wait = 0.01\nhead = 1.5\nidle = 1.0\nprogress = 1.2\n";

fn error_event(dialect: Dialect, code: &str, message: &str) -> String {
    match dialect {
        Dialect::Responses => {
            let error = json!({ "code": code, "message": message });
            event(&json!({ "type": "response.failed", "response": { "status": "failed", "error": error } }))
        }
        Dialect::Chat => event(&json!({ "error": { "code": code, "message": message } })),
        Dialect::Anthropic => event(&json!({ "type": "error", "error": { "type": code, "message": message } })),
    }
}

/// A known event of the wrong form.
fn misshapen(dialect: Dialect) -> String {
    match dialect {
        Dialect::Responses => event(&json!({ "type": "response.output_text.delta", "output_index": 9, "delta": 7 })),
        Dialect::Chat => "data: [1, 2\n\n".to_owned(),
        Dialect::Anthropic => event(
            &json!({ "type": "content_block_delta", "index": 99, "delta": { "type": "text_delta", "text": "x" } }),
        ),
    }
}

/// Faults inside the stream.
fn in_stream() -> Vec<Cell> {
    let mut cells = Vec::new();
    for dialect in Dialect::ALL {
        for moment in MOMENTS {
            let said = HEAD.to_owned() + &halves(dialect, moment).0;
            let send = |text: &str| Act::Send(text.as_bytes().to_vec());
            let mut cell = |what: &str, requests, acts: Vec<Act>, expected| {
                let acts = [vec![send(&said)], acts].concat();
                cells.push(Cell { what: what.into(), dialect, moment, reply: Reply::Raw(acts), expected, requests });
            };
            cell("it ends", QUICK, vec![], passes("STREAM_CLOSED"));
            cell("it is reset", QUICK, vec![Act::Reset], passes("STREAM_CLOSED"));
            cell("silence", IMPATIENT, vec![Act::Stall], passes("STREAM_IDLE_TIMEOUT"));
            cell(
                "only keep-alives",
                IMPATIENT,
                vec![Act::Drip(b": ping\n\n".to_vec(), 40)],
                passes("STREAM_IDLE_TIMEOUT"),
            );
            cell(
                "one byte at a time, for ever",
                IMPATIENT,
                vec![Act::Drip(b"d".to_vec(), 40)],
                passes("STREAM_IDLE_TIMEOUT"),
            );
            cell("no JSON", QUICK, vec![send("data: {nope\n\n")], passes("INVALID_RESPONSE"));
            cell("no text", QUICK, vec![Act::Send(b"data: \"\xc3\x28\"\n\n".to_vec())], passes("INVALID_RESPONSE"));
            cell("a known event, misshapen", QUICK, vec![send(&misshapen(dialect))], passes("INVALID_RESPONSE"));
            let busy = if dialect == Dialect::Anthropic { "overloaded_error" } else { "server_error" };
            cell(
                "it is overloaded",
                QUICK,
                vec![send(&error_event(dialect, busy, "busy")), Act::Stall],
                passes("PROVIDER_UNAVAILABLE"),
            );
            let limit = if dialect == Dialect::Anthropic { "rate_limit_error" } else { "rate_limit_exceeded" };
            cell(
                "it limits the rate",
                QUICK,
                vec![send(&error_event(dialect, limit, "slow")), Act::Stall],
                passes("RATE_LIMITED"),
            );
            cell(
                "it was too much",
                QUICK,
                vec![send(&error_event(dialect, "invalid_request_error", "prompt is too long: 9 > 8"))],
                stays("CONTEXT_OVERFLOW"),
            );
            cell(
                "the key is not good",
                QUICK,
                vec![send(&error_event(dialect, "authentication_error", "no"))],
                stays("AUTH_REQUIRED"),
            );
        }
        // An event that never ends is expensive to send, so it runs once for each dialect.
        let said = HEAD.to_owned() + &halves(dialect, Moment::Speaking).0;
        let acts = vec![Act::Send(said.into_bytes()), Act::Drip([b"data: ".as_slice(), &[b'x'; 1 << 20]].concat(), 0)];
        let reply = Reply::Raw(acts);
        cells.push(Cell {
            what: "an event without end".into(),
            dialect,
            moment: Moment::Speaking,
            reply,
            expected: passes("INVALID_RESPONSE"),
            requests: QUICK,
        });
    }
    cells
}

/// Faults before the stream.
fn before_stream() -> Vec<Cell> {
    let refuse = |status: u16, headers: &str, body: Value| Reply::Refuse {
        status,
        headers: headers.into(),
        body: body.to_string(),
    };
    let error = |kind: &str, message: &str| json!({ "error": { "type": kind, "code": kind, "message": message } });
    let raw = |bytes: &[u8]| Reply::Raw(vec![Act::Send(bytes.to_vec())]);
    let page = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close\r\n\r\n<html>sign in</html>";
    let rows: Vec<(&str, &'static str, Reply, Outcome)> = vec![
        ("400", QUICK, refuse(400, "", error("invalid_request_error", "temperature")), stays("PROVIDER_HTTP_ERROR")),
        ("400 overflow", QUICK, refuse(400, "", error("context_length_exceeded", "too long")), stays("CONTEXT_OVERFLOW")),
        ("400 no model", QUICK, refuse(400, "", error("model_not_found", "the model does not exist")), stays("MODEL_NOT_SUPPORTED")),
        ("401", QUICK, refuse(401, "", error("authentication_error", "no")), stays("AUTH_REQUIRED")),
        ("402", QUICK, refuse(402, "", error("billing_error", "pay")), stays("USAGE_LIMIT_REACHED")),
        ("403", QUICK, refuse(403, "", error("permission_error", "no")), stays("ACCESS_DENIED")),
        ("404", QUICK, refuse(404, "", error("not_found_error", "model: x")), stays("MODEL_NOT_SUPPORTED")),
        ("408", QUICK, refuse(408, "", json!({})), passes("PROVIDER_UNAVAILABLE")),
        ("409", QUICK, refuse(409, "", json!({})), passes("PROVIDER_UNAVAILABLE")),
        ("413", QUICK, refuse(413, "", error("request_too_large", "large")), stays("REQUEST_TOO_LARGE")),
        ("422", QUICK, refuse(422, "", json!({ "detail": "no" })), stays("PROVIDER_HTTP_ERROR")),
        ("425", QUICK, refuse(425, "", json!({})), passes("PROVIDER_UNAVAILABLE")),
        ("429", QUICK, refuse(429, "", error("rate_limit_error", "slow")), passes("RATE_LIMITED")),
        ("429, try again soon", QUICK, refuse(429, "retry-after-ms: 5\r\n", error("x", "slow")), passes("RATE_LIMITED")),
        ("429, try again in an hour", QUICK, refuse(429, "retry-after: 3600\r\n", error("x", "slow")), stays("RATE_LIMITED")),
        ("429 quota", QUICK, refuse(429, "", error("insufficient_quota", "used up")), stays("USAGE_LIMIT_REACHED")),
        ("500", QUICK, refuse(500, "", json!({})), passes("PROVIDER_UNAVAILABLE")),
        ("500 with a stream", QUICK, raw(b"HTTP/1.1 500 X\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\ndata: {\"error\":{\"message\":\"x\"}}\n\ndata: [DONE]\n\n"), passes("PROVIDER_UNAVAILABLE")),
        ("502 with a page", QUICK, raw(b"HTTP/1.1 502 Bad\r\ncontent-type: text/html\r\nconnection: close\r\n\r\n<html>\x1b[31mbad</html>"), passes("PROVIDER_UNAVAILABLE")),
        ("503", QUICK, refuse(503, "retry-after: 0\r\n", json!({})), passes("PROVIDER_UNAVAILABLE")),
        ("529", QUICK, refuse(529, "", error("overloaded_error", "busy")), passes("PROVIDER_UNAVAILABLE")),
        ("a redirect", QUICK, refuse(307, "location: http://127.0.0.1:9/evil\r\n", json!({})), stays("NETWORK_BLOCKED")),
        ("a page", QUICK, raw(page.as_bytes()), stays("INVALID_RESPONSE")),
        ("a page that does not say so", QUICK, raw(page.replace("content-type: text/html\r\n", "").as_bytes()), stays("INVALID_RESPONSE")),
        ("JSON", QUICK, raw(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n{\"ok\":true}"), stays("INVALID_RESPONSE")),
        ("nothing", QUICK, raw(HEAD.as_bytes()), passes("STREAM_CLOSED")),
        ("no HTTP", QUICK, raw(b"SSH-2.0-OpenSSH_9.6\r\n"), passes("NETWORK")),
        ("it hangs up", QUICK, raw(b""), passes("NETWORK")),
        ("it is reset", QUICK, Reply::Raw(vec![Act::Reset]), passes("NETWORK")),
        ("no head", IMPATIENT, Reply::Raw(vec![Act::Stall]), passes("NETWORK")),
        ("half a head, for ever", IMPATIENT, Reply::Raw(vec![Act::Send(b"HTTP/1.1 200 OK\r\nx: ".to_vec()), Act::Drip(b"y".to_vec(), 40)]), passes("NETWORK")),
        ("a body that is no gzip", QUICK, raw(&[HEAD.replace("connection", "content-encoding: gzip\r\nconnection").as_bytes(), b"data: {}\n\n"].concat()), passes("STREAM_CLOSED")),
        ("a chunk that is none", QUICK, raw(HEAD.replace("connection: close\r\n\r\n", "transfer-encoding: chunked\r\n\r\nzz\r\n").as_bytes()), passes("STREAM_CLOSED")),
        ("a body that is cut", QUICK, raw(HEAD.replace("connection: close", "content-length: 999").as_bytes()), passes("STREAM_CLOSED")),
    ];
    let of = |dialect| {
        let rows = rows.clone();
        rows.into_iter().map(move |(what, requests, reply, expected)| Cell {
            what: what.into(),
            dialect,
            moment: Moment::Before,
            reply,
            expected,
            requests,
        })
    };
    Dialect::ALL.into_iter().flat_map(of).collect()
}

/// Runs every cell, several at a time.
fn each(cells: &[Cell], check: impl Fn(&Cell) + Sync) {
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                while let Some(cell) = cells.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let name = format!("{} · {:?} · {:?}", cell.what, cell.dialect, cell.moment);
                    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check(cell)));
                    if let Err(why) = outcome {
                        let why = why.downcast_ref::<String>().cloned().unwrap_or_default();
                        failed.lock().expect("no poison").push(format!("{name}: {why}"));
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().expect("no poison");
    assert!(failed.is_empty(), "{} of {} cells:\n{}", failed.len(), cells.len(), failed.join("\n"));
}

/// A Session whose first answer calls a tool, and whose second request meets the fault.
fn suffer(cell: &Cell) {
    let shell = Shell::new(&[]);
    shell.configure(cell.requests);
    let first = call("c1", "bash", json!({ "command": EFFECT }));
    let replies = [vec![first], vec![cell.reply.clone(); ATTEMPTS]].concat();
    let server = Server::start(replies);
    let mut args = server.flags(cell.dialect);
    args.extend(["--headless", "--format", "jsonl", "--write", "--deadline", "60", "x"].map(str::to_owned));
    let ran = shell.run(args);

    // The text of each attempt is recorded, and the request is sent three times at most.
    let said = cell.moment != Moment::Before;
    let spoken = matches!(cell.moment, Moment::Speaking | Moment::Calling | Moment::Called);
    let tries = if cell.expected.transient { ATTEMPTS } else { 1 };
    let log = entries(&shell.logs()[0]);
    let ended = &log.iter().rfind(|e| e["type"] == "turn_ended").expect("the turn ended")["data"];
    let code = ended["error"]["code"].as_str().expect("a code");
    // A reset may overtake the bytes sent before it.
    if cell.what == "it is reset" {
        assert!(["STREAM_CLOSED", "NETWORK"].contains(&code), "{code}");
        // Then no text arrived, and the request is repeated.
        let retries = ran.lines().iter().filter(|l| l["type"] == "retry_scheduled").count();
        assert!(retries < ATTEMPTS, "{retries}");
        assert_eq!(server.bodies().len(), 2 + retries);
    } else {
        assert_eq!(code, cell.expected.code, "{}", ended["error"]["message"]);
        assert_eq!(server.bodies().len(), 1 + tries, "requests");
        let status = match (said, code) {
            (true, _) => "partial_failed",
            (false, "STREAM_IDLE_TIMEOUT") => "timed_out",
            (false, _) => "failed",
        };
        assert_eq!(ended["status"], status);
        let partial = log.iter().filter(|e| e["data"]["partial"] == true).map(|e| &e["data"]["text"]);
        let kept: Vec<&Value> = partial.collect();
        assert_eq!(kept.len(), if spoken { tries } else { 0 }, "{kept:?}");
        assert!(kept.iter().all(|text| text.as_str().expect("a text").starts_with("Half ")), "{kept:?}");
        let retries = ran.lines().iter().filter(|l| l["type"] == "retry_scheduled").count();
        assert_eq!(retries, tries - 1, "retries are shown");
    }
    assert!(ended["error"]["remediation"].as_str().is_some_and(|fix| !fix.is_empty()));
    assert_ne!(ran.code, 0, "a turn that failed never ends with success");
    assert!(
        !ran.stderr.contains('\u{1b}') && !ran.stdout.contains('\u{1b}'),
        "nothing from outside reaches the terminal raw"
    );
    assert_eq!(shell.read("ran.txt"), "ran\n", "no tool runs twice");
    assert_eq!(shell.read("x.txt").chars().next(), Some('('), "no call of a broken answer runs");
    assert_eq!(log.iter().filter(|e| e["type"] == "tool_call").count(), 1, "and none is recorded");
}

#[test]
fn every_fault_at_every_moment_has_its_code_tries_and_log() {
    let cells = [in_stream(), before_stream()].into_iter().flatten().collect::<Vec<_>>();
    assert!(cells.len() >= 130, "only {} cells", cells.len());
    let cells = tier::sample("every_fault_at_every_moment", cells);
    each(&cells, suffer);
    figures(&format!("QP2: {} cells, none hung, no tool ran twice", cells.len()));
}

#[test]
fn harmless_oddities_are_no_fault() {
    let mut cells = Vec::new();
    for dialect in Dialect::ALL {
        for moment in MOMENTS {
            let (before, after) = halves(dialect, moment);
            let mut cell = |what: &str, noise: &str, after: &str, last: Option<Act>| {
                let mut acts = vec![Act::Send(format!("{HEAD}{before}{noise}{after}").into_bytes())];
                acts.extend(last);
                let expected = stays("");
                cells.push(Cell {
                    what: what.into(),
                    dialect,
                    moment,
                    reply: Reply::Raw(acts),
                    expected,
                    requests: QUICK,
                });
            };
            cell("comments and empty lines", ": keep-alive\n\n\n\n: \n\n", &after, None);
            cell(
                "events that nobody knows",
                "event: response.new_thing\ndata: {\"type\":\"response.new_thing\",\"x\":[1]}\n\nevent: odd\nid: 7\nretry: 9\ndata: {\"object\":\"odd\"}\n\n",
                &after,
                None,
            );
            cell("pings", "event: ping\ndata: {\"type\":\"ping\"}\n\n", &after, None);
            cell("more after the end", "", &format!("{after}data: [DONE]\n\ndata: {{\"type\":\"late\"}}\n\n"), None);
            // An answer that has arrived in full is complete, even if the connection then fails.
            cell("an open connection after the end", "", &after, Some(Act::Stall));
        }
    }
    let cells = tier::sample("harmless_oddities", cells);
    each(&cells, |cell| {
        let shell = Shell::new(&[]);
        shell.configure(cell.requests);
        let server = Server::start(vec![cell.reply.clone(), crate::server::text("Done.")]);
        let mut args = server.flags(cell.dialect);
        args.extend(["--headless", "--json", "--write", "--deadline", "60", "x"].map(str::to_owned));
        let ran = shell.run(args);
        assert_eq!((ran.code, ran.document()["output"].as_str()), (0, Some("Done.")), "{}", ran.stderr);
        assert_eq!((server.bodies().len(), shell.read("x.txt").as_str()), (2, "never written"));
    });
}

#[test]
fn a_passing_fault_is_retried_and_the_turn_continues() {
    for dialect in Dialect::ALL {
        let shell = Shell::new(&[]);
        shell.configure(QUICK);
        let busy = Reply::Refuse { status: 503, headers: String::new(), body: String::new() };
        let cut = Reply::Raw(vec![Act::Send(HEAD.as_bytes().to_vec())]);
        let whole = Reply::Raw(vec![Act::Send(
            (HEAD.to_owned() + &answer(dialect, &[Part::Text("All is well.")]).concat()).into_bytes(),
        )]);
        let server =
            Server::start(vec![busy.clone(), call("c1", "bash", json!({ "command": EFFECT })), cut, busy, whole]);
        let mut args = server.flags(dialect);
        args.extend(["--headless", "--json", "--write", "x"].map(str::to_owned));
        let ran = shell.run(args);
        assert_eq!((ran.code, ran.document()["output"].as_str()), (0, Some("All is well.")), "{}", ran.stderr);
        assert_eq!(shell.read("ran.txt"), "ran\n");
        let bodies = server.bodies();
        assert_eq!((bodies.len(), &bodies[0], &bodies[2]), (5, &bodies[1], &bodies[3]), "the same is asked again");
    }
}
