//! Servers of this machine that still start, or have no model.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::pty::Terminal;
use crate::server::{Dialect, HEAD, Part, answer};
use crate::shell::{Shell, ran};

/// What a server has been asked.
#[derive(Default)]
struct Asked {
    lists: AtomicUsize,
    answers: AtomicUsize,
}

/// A server that refuses so many requests with this body, then lists the model `m` and answers.
struct Starting {
    refusals: usize,
    body: &'static str,
    list: &'static str,
}

const LISTED: &str = r#"{"data":[{"id":"m","max_model_len":50000}]}"#;

fn serve(listener: TcpListener, it: Starting) -> Arc<Asked> {
    let asked = Arc::new(Asked::default());
    let (shared, it) = (Arc::clone(&asked), Arc::new(it));
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (asked, it) = (Arc::clone(&shared), Arc::clone(&it));
            std::thread::spawn(move || reply(stream, &asked, &it));
        }
    });
    asked
}

fn reply(mut stream: TcpStream, asked: &Asked, it: &Starting) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let (mut first, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 || line == "\r\n" {
            break;
        }
        if let Some(n) = line.to_lowercase().strip_prefix("content-length:") {
            length = n.trim().parse().expect("a number");
        }
        if first.is_empty() {
            first = line;
        }
    }
    std::io::copy(&mut reader.take(length), &mut std::io::sink())?;
    let json = |status: &str, body: &str| {
        let head = "content-type: application/json\r\nconnection: close\r\n";
        format!("HTTP/1.1 {status} X\r\n{head}content-length: {}\r\n\r\n{body}", body.len())
    };
    let is_list = first.starts_with("GET /v1/models");
    let is_answer = first.starts_with("POST /v1/chat/completions");
    let before = match (is_list, is_answer) {
        (true, _) => asked.lists.fetch_add(1, Ordering::SeqCst) + asked.answers.load(Ordering::SeqCst),
        (_, true) => asked.answers.fetch_add(1, Ordering::SeqCst) + asked.lists.load(Ordering::SeqCst),
        _ => return stream.write_all(json("404", "").as_bytes()),
    };
    if before < it.refusals {
        return stream.write_all(json("503", it.body).as_bytes());
    }
    if is_list {
        return stream.write_all(json("200", it.list).as_bytes());
    }
    stream.write_all((HEAD.to_owned() + &answer(Dialect::Chat, &[Part::Text("Hello there.")]).concat()).as_bytes())
}

fn port() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/v1", listener.local_addr().expect("an address"));
    (listener, url)
}

/// What servers say while they load their model.
const LOADING: [&str; 5] = [
    r#"{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}"#,
    r#"{"error":"Model m is currently loading","estimated_time":20.0}"#,
    r#"{"error":{"message":"The model is loading, please wait","type":"server_error"}}"#,
    r#"{"detail":"the server is starting"}"#,
    r#"{"message":"model is not ready"}"#,
];

/// Broken builds: pixir gives up at once because the list of models is missing, as on ce783d9e; the user does not see that it waits.
#[test]
fn a_server_that_loads_its_model_is_waited_for_in_its_own_words() {
    for body in LOADING {
        let shell = Shell::new(&[]);
        let (listener, url) = port();
        serve(listener, Starting { refusals: 3, body, list: LISTED });
        let ran = shell.run(["--headless", "--base-url", &url, "hi"]);
        assert_eq!(ran.code, 0, "{body}: {}", ran.stderr);
        assert!(ran.stdout.contains("Hello there."), "{body}: {}", ran.stdout);
        let said = body.split('"').find(|word| word.contains(' ')).expect("words");
        assert!(ran.stderr.contains(said), "{body}: {}", ran.stderr);
    }
}

/// Broken builds: the first request is sent before the server is ready, with the small window of an unknown model; the wait is
/// longer and longer, so that a ready server is not seen.
#[test]
fn a_named_model_is_waited_for_too_and_its_window_is_learnt() {
    for body in LOADING {
        let shell = Shell::new(&[]);
        // More than the 8,192 tokens that a server may take which has not said its window.
        let text = "word ".repeat(12_000);
        let (listener, url) = port();
        // One refusal is of the look at the start, beside the Session.
        let asked = serve(listener, Starting { refusals: 3, body, list: LISTED });
        let args = ["--headless", "--format", "jsonl", "--base-url", &url, "--dialect", "chat", "--model", "m", &text];
        let ran = shell.run(args);
        assert_eq!(ran.code, 0, "{body}: {}", ran.stderr);
        assert_eq!(asked.answers.load(Ordering::SeqCst), 1, "{body}: the answer is asked for once");
        let retries: Vec<_> = ran.lines().into_iter().filter(|it| it["type"] == "retry_scheduled").collect();
        assert!(!retries.is_empty(), "{body}: {}", ran.stdout);
        assert!(retries.iter().all(|it| it.to_string().contains("503")), "{retries:?}");
    }
}

/// Broken builds: the words are on the screen only when the wait is over; Ctrl+C waits for it.
#[test]
fn the_screen_shows_the_words_and_the_wait_ends_at_once() {
    let shell = Shell::new(&[]);
    let (listener, url) = port();
    serve(listener, Starting { refusals: usize::MAX, body: LOADING[0], list: LISTED });
    let mut terminal = Terminal::start(&shell, &["--base-url", &url], 100, 30);
    terminal.wait_for("connecting to a model");
    terminal.wait_for("Loading model");
    terminal.send("\x03\x03\x03\x03");
    terminal.end().assert_sane();
}

/// Broken build: the signal counts once the server has started, minutes later.
#[test]
fn a_signal_ends_the_wait_at_once() {
    let shell = Shell::new(&[]);
    let (listener, url) = port();
    serve(listener, Starting { refusals: usize::MAX, body: LOADING[0], list: LISTED });
    let mut command = shell.command(["--headless", "--base-url", &url, "hi"]);
    let mut child = command.stdin(Stdio::null()).spawn().expect("it starts");
    let mut lines = BufReader::new(child.stderr.take().expect("stderr")).lines();
    assert!(lines.any(|line| line.is_ok_and(|it| it.contains("Loading model"))), "it waits");
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("it runs");
    let (said, ended): (Vec<_>, _) = (lines.map_while(Result::ok).collect(), child.wait().expect("it ends"));
    assert_eq!(ended.code(), Some(130));
    assert!(said.iter().any(|line| line.contains("stopped while it waited")), "{said:?}");
}

/// Broken build: a server that opens its port a moment later is not found.
#[test]
fn a_server_that_opens_its_port_late_is_found() {
    let shell = Shell::new(&[]);
    let (listener, url) = port();
    let address = listener.local_addr().expect("an address");
    drop(listener);
    let mut command = shell.command(["--headless", "--base-url", &url, "hi"]);
    let mut child = command.stdin(Stdio::null()).spawn().expect("it starts");
    let mut lines = BufReader::new(child.stderr.take().expect("stderr")).lines();
    assert!(lines.any(|line| line.is_ok_and(|it| it.contains("waiting for a model's server"))), "it waits");
    let listener = TcpListener::bind(address).expect("the port is still free");
    serve(listener, Starting { refusals: 0, body: "", list: LISTED });
    let ended = ran(child.wait_with_output().expect("it ends"));
    assert_eq!(ended.code, 0, "{ended:?}");
    assert!(ended.stdout.contains("Hello there."), "{}", ended.stdout);
}

/// Broken build: a port that was opened between a refused request and the look at it counts as one that fails.
#[test]
fn a_server_that_breaks_its_first_connection_is_asked_again() {
    let shell = Shell::new(&[]);
    let (listener, url) = port();
    std::thread::spawn(move || {
        drop(listener.accept());
        serve(listener, Starting { refusals: 0, body: "", list: LISTED });
    });
    let ran = shell.run(["--headless", "--base-url", &url, "hi"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stdout.contains("Hello there."), "{}", ran.stdout);
}

/// Broken builds: a list that is `null` is called no list; the command that gets a model is missing.
#[test]
fn a_server_without_a_model_says_the_command_that_gets_one() {
    for (name, list, command) in [
        ("ollama", r#"{"object":"list","data":null}"#, "ollama pull NAME"),
        ("ollama", r#"{"object":"list","data":[]}"#, "ollama pull NAME"),
        ("ollama", r#"{"object":"list","data":[{"id":"nomic-embed-text"}]}"#, "ollama pull NAME"),
        ("lmstudio", r#"{"data":[]}"#, "lms get NAME"),
        ("vllm", r#"{"data":[]}"#, "vllm serve NAME"),
        ("llama.cpp", r#"{"data":[]}"#, "llama-server --jinja -hf NAME"),
    ] {
        let shell = Shell::new(&[]);
        let (listener, url) = port();
        serve(listener, Starting { refusals: 0, body: "", list });
        shell.configure(&format!("[providers.\"{name}\"]\nbase_url = \"{url}\"\n"));
        let ran = shell.run(["--headless", "--provider", name, "hi"]);
        assert_eq!(ran.code, 10, "{name}: {}", ran.stderr);
        assert!(ran.stderr.contains(command), "{name} {list}: {}", ran.stderr);
    }
    // The named one is missing.
    for (words, command) in [
        (
            r#"{"error":{"message":"model \"qwen3:8b\" not found, try pulling it first","type":"api_error"}}"#,
            "ollama pull qwen3:8b",
        ),
        (r#"{"error":"model 'qwen3' not found, try pulling it first"}"#, "ollama pull qwen3"),
    ] {
        let shell = Shell::new(&[]);
        let body = words.to_owned();
        let refused = crate::server::Reply::Refuse { status: 404, headers: String::new(), body };
        let server = crate::server::Server::start(vec![refused]);
        let ran = crate::connected::ask(&shell, &server, Dialect::Chat, &["hi"]);
        assert_eq!(ran.code, 10, "{}", ran.stderr);
        assert!(ran.stdout.contains(command) || ran.stderr.contains(command), "{words}: {}{}", ran.stdout, ran.stderr);
    }
}
