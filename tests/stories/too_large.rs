//! A server or the gateway in front of it refuses a request for its size, or for an image: what is large is left out once, the
//! user and the model read why, and the turn goes on.

use std::fs;

use serde_json::{Value, json};

use crate::server::{Dialect, Reply, Server, call, text};
use crate::shell::{Ran, Shell, png};

const NGINX: &str = "<html>\r\n<head><title>413 Request Entity Too Large</title></head>\r\n<body>\r\n<center><h1>413 Request \
                     Entity Too Large</h1></center>\r\n<hr><center>nginx/1.24.0</center>\r\n</body>\r\n</html>\r\n";

fn refuses(status: u16, body: &str) -> Reply {
    Reply::Refuse { status, headers: String::new(), body: body.to_owned() }
}

fn error(message: &str) -> String {
    json!({ "error": { "type": "invalid_request_error", "message": message } }).to_string()
}

fn run(shell: &Shell, server: &Server, dialect: Dialect, words: &[&str]) -> Ran {
    let mut args: Vec<String> = words.iter().map(|it| (*it).to_owned()).collect();
    args.extend(server.flags(dialect));
    args.push("--headless".to_owned());
    shell.run(args)
}

/// The image as it stands in a request: the start of its bytes is the same in all of them.
fn has_image(body: &Value) -> bool {
    body.to_string().contains("iVBOR")
}

/// Broken builds: ce783d9e sends the same request until it gives up as an overflow, or takes the model for one that sees no
/// image; one that leaves the image out for this turn only, so that the next one is refused again.
#[test]
fn an_image_that_a_server_refuses_is_left_out_once_and_the_turn_goes_on() {
    let words = "messages.2.content.0: image exceeds 5 MB maximum: 6123456 bytes > 5242880 bytes";
    let refusals = [
        (413, NGINX.to_owned(), "the server takes no request of"),
        (
            413,
            json!({ "error": { "type": "request_too_large", "message": "Request exceeds the maximum size" } })
                .to_string(),
            "the server takes no request of",
        ),
        (413, String::new(), "the server takes no request of"),
        (500, error("Failed to buffer the request body: length limit exceeded"), "the server takes no request of"),
        (400, error(words), "image exceeds 5 MB maximum"),
        (400, error("Could not process image"), "Could not process image"),
        (422, error("Invalid image: the dimensions are above 8000 pixels"), "the dimensions are above 8000 pixels"),
    ];
    for (status, body, why) in refusals {
        for dialect in Dialect::ALL {
            let what = format!("{status} {body:.60} {dialect:?}");
            let shell = Shell::new(&[]);
            fs::write(shell.workspace().join("photo.png"), png(600_000)).expect("write");
            let server = Server::start(vec![
                call("c1", "read", json!({ "path": "photo.png" })),
                refuses(status, &body),
                text("I see no picture."),
                text("Still none."),
            ]);
            let ran = run(&shell, &server, dialect, &["look"]);
            assert_eq!((ran.code, ran.stdout.trim()), (0, "I see no picture."), "{what}: {}", ran.stderr);
            let told =
                ran.stderr.lines().find(|line| line.contains("requests leave out the image photo.png (585.9KB)"));
            assert!(told.is_some_and(|it| it.contains(why)), "{what}: {}", ran.stderr);
            let again = run(&shell, &server, dialect, &["resume", "--last", "and now"]);
            assert_eq!((again.code, again.stdout.trim()), (0, "Still none."), "{what}: {}", again.stderr);
            let bodies = server.bodies();
            let has: Vec<bool> = bodies.iter().map(has_image).collect();
            assert_eq!(has, [false, true, false, false], "{what}: refused once");
            for body in &bodies[2..] {
                let text = body.to_string();
                assert!(
                    text.contains("[pixir left out the image photo.png (586 KB): the server") && text.contains(why),
                    "{what}: {text}"
                );
            }
            assert_eq!(fs::read(shell.workspace().join("photo.png")).expect("read").len(), 600_000, "the file stays");
        }
    }
}

/// Broken build: one that leaves out every image where a server takes some.
#[test]
fn where_a_server_takes_fewer_images_the_newest_stays() {
    let shell = Shell::new(&[]);
    for name in ["old.png", "new.png"] {
        fs::write(shell.workspace().join(name), png(5_000)).expect("write");
    }
    let server = Server::start(vec![
        call("c1", "read", json!({ "path": "old.png" })),
        call("c2", "read", json!({ "path": "new.png" })),
        refuses(400, &error("At most 1 image(s) may be provided in one request.")),
        text("One."),
    ]);
    let ran = run(&shell, &server, Dialect::Chat, &["which is better"]);
    assert_eq!((ran.code, ran.stdout.trim()), (0, "One."), "{}", ran.stderr);
    let last = server.bodies()[3].to_string();
    assert_eq!(last.matches("iVBOR").count(), 1, "{last}");
    assert!(
        last.contains("pixir left out the image old.png") && !last.contains("left out the image new.png"),
        "{last}"
    );
}

/// Broken builds: a text that is too large is sent again; the model is not told that something is missing.
#[test]
fn a_long_text_that_a_gateway_refuses_is_shortened_once_and_the_turn_goes_on() {
    let line = "a line of a long file\n";
    for dialect in Dialect::ALL {
        let shell = Shell::new(&[("long.txt", &line.repeat(1_500))]);
        let server = Server::start(vec![
            call("c1", "bash", json!({ "command": "cat long.txt" })),
            refuses(413, NGINX),
            text("Read."),
        ]);
        let ran = run(&shell, &server, dialect, &["read it", "--mode", "auto"]);
        assert_eq!((ran.code, ran.stdout.trim()), (0, "Read."), "{dialect:?}: {}", ran.stderr);
        assert!(
            ran.stderr.contains("requests have only the start and the end of a long text from now on"),
            "{}",
            ran.stderr
        );
        let bodies = server.bodies();
        let of = |body: &Value| body.to_string().matches("a line of a long file").count();
        assert!(of(&bodies[1]) > 400 && of(&bodies[2]) < 150, "{dialect:?}: {} {}", of(&bodies[1]), of(&bodies[2]));
        assert!(bodies[2].to_string().contains("[pixir left out "), "{dialect:?}");
    }
    // The user's own message, too.
    let shell = Shell::new(&[]);
    let server = Server::start(vec![refuses(413, NGINX), text("Half of it.")]);
    let prompt = "a word and ".repeat(9_000);
    let ran = run(&shell, &server, Dialect::Responses, &[&prompt]);
    assert_eq!((ran.code, ran.stdout.trim()), (0, "Half of it."), "{}", ran.stderr);
    assert!(server.bodies()[1].to_string().matches("a word and").count() < 1_500);
}

/// Broken build: what cannot be made smaller is sent again and again, and the remedy is to compact what is compact.
#[test]
fn where_nothing_is_large_the_error_names_the_gateway_after_few_requests() {
    let shell = Shell::new(&[]);
    let server = Server::start((0..40).map(|_| refuses(413, NGINX)).collect());
    let ran = run(&shell, &server, Dialect::Chat, &["hello", "--json"]);
    let document: Value = serde_json::from_str(ran.stdout.trim()).unwrap_or_else(|_| ran.document());
    assert_eq!((ran.code, &document["code"]), (1, &json!("REQUEST_TOO_LARGE")), "{document}");
    let remedy = document["remediation"].as_str().unwrap_or_default();
    assert!(remedy.contains("client_max_body_size") && !remedy.contains("/compact"), "{document}");
    assert!(server.bodies().len() <= 3, "{}", server.bodies().len());
}
