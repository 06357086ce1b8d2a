//! A small HTTP server with scripted answers: an issuer of tokens, a list of models.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::Value;

/// One request.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    /// `GET /path`.
    pub(crate) what: String,
    /// The header lines, as received.
    pub(crate) head: String,
    pub(crate) body: String,
}

/// A running server; it ends with the test.
pub(crate) struct Issuer {
    pub(crate) url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Issuer {
    /// `answer` returns a status and a JSON body; its argument counts the earlier requests of the same kind.
    pub(crate) fn start(answer: impl Fn(&Asked, usize) -> (u16, Value) + Send + 'static) -> Issuer {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let asked = Arc::<Mutex<Vec<Asked>>>::default();
        let for_thread = Arc::clone(&asked);
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let mut reader = BufReader::new(stream.try_clone().expect("a socket"));
                let mut lines = Vec::new();
                loop {
                    let mut line = String::new();
                    if reader.read_line(&mut line).unwrap_or(0) == 0 || line.trim().is_empty() {
                        break;
                    }
                    lines.push(line.trim().to_owned());
                }
                let Some(first) = lines.first() else { continue };
                let length = lines.iter().find_map(|l| l.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
                let mut body = vec![0; length.unwrap_or(0)];
                if reader.read_exact(&mut body).is_err() {
                    continue;
                }
                let what = first.rsplit_once(' ').map_or(first.as_str(), |(what, _)| what).to_owned();
                let it = Asked { what, head: lines.join("\n"), body: String::from_utf8_lossy(&body).into_owned() };
                let before = {
                    let mut asked = for_thread.lock().expect("no poison");
                    let before = asked.iter().filter(|other| other.what == it.what).count();
                    asked.push(it.clone());
                    before
                };
                let (status, body) = answer(&it, before);
                let body = body.to_string();
                let _ = write!(
                    stream,
                    "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                    body.len()
                );
            }
        });
        Issuer { url, asked }
    }

    /// Every request so far.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().expect("no poison").clone()
    }
}

/// The value of a field of a form or of a query.
pub(crate) fn value(form: &str, name: &str) -> Option<String> {
    let it = form.split('&').find_map(|it| it.strip_prefix(name)?.strip_prefix('='))?;
    let (mut bytes, mut rest) = (Vec::new(), it.bytes());
    while let Some(byte) = rest.next() {
        match byte {
            b'+' => bytes.push(b' '),
            b'%' => {
                let digits = [rest.next().expect("two digits"), rest.next().expect("two digits")];
                let digits = String::from_utf8(digits.to_vec()).expect("text");
                bytes.push(u8::from_str_radix(&digits, 16).expect("a number"));
            }
            other => bytes.push(other),
        }
    }
    Some(String::from_utf8(bytes).expect("text"))
}
