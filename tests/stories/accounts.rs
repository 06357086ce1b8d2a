//! Accounts that people have, each signed in to an issuer of this machine: what works, and what every fault of the issuer says.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::Child;

use serde_json::Value;

use crate::issuer::value;
use crate::shell::{Ran, SECRET, Shell, rest_of};

mod key_command; // a key that a command of the user prints
mod openrouter; // a key by a browser
mod plans; // ChatGPT plan, GitHub Copilot, Bedrock

/// `pixir auth login`, which waits for the user.
struct SigningIn {
    child: Child,
    stderr: BufReader<std::process::ChildStderr>,
    /// What the user is shown.
    shown: Value,
}

impl SigningIn {
    /// Starts a sign-in whose user is shown a page.
    fn start(shell: &Shell, args: &[&str]) -> SigningIn {
        let mut child = shell.command(["auth", "login", "--json"].iter().chain(args)).spawn().expect("it starts");
        let mut stderr = BufReader::new(child.stderr.take().expect("piped"));
        let mut line = String::new();
        stderr.read_line(&mut line).expect("a line");
        let shown = serde_json::from_str(&line).unwrap_or_else(|_| panic!("no page: {line}"));
        SigningIn { child, stderr, shown }
    }

    fn page(&self) -> String {
        self.shown["open"].as_str().expect("a page").to_owned()
    }

    fn end(self) -> Ran {
        rest_of(self.child, self.stderr)
    }
}

/// A parameter of an address, decoded.
fn parameter(address: &str, name: &str) -> String {
    let query = address.split_once('?').expect("a query").1;
    value(query, name).unwrap_or_else(|| panic!("no {name}: {address}"))
}

/// SHA-256 in the letters of URLs.
fn hash(text: &str) -> String {
    let program = "import base64,hashlib,sys;print(base64.urlsafe_b64encode(hashlib.sha256(sys.argv[1].encode()).digest()).rstrip(b'=').decode())";
    let output = std::process::Command::new("python3").args(["-c", program, text]).output().expect("python3");
    String::from_utf8(output.stdout).expect("text").trim().to_owned()
}

/// The file of stored keys.
fn kept(shell: &Shell) -> String {
    std::fs::read_to_string(shell.home().join("auth.json")).unwrap_or_default()
}

/// What pixir says of a request whose model does not matter.
fn ask(shell: &Shell, provider: &str) -> Ran {
    let ran = shell.run(["--provider", provider, "--model", "m", "--headless", "--json", "x"]);
    assert!(!format!("{ran:?}").contains(SECRET), "{ran:?}");
    ran
}

/// Sends the browser to an address of this machine. Returns the first line of the answer.
fn browse(address: &str) -> String {
    let rest = address.strip_prefix("http://").expect("a plain address");
    let (host, path) = rest.split_once('/').expect("a path");
    let mut stream = TcpStream::connect(host).expect("it listens");
    write!(stream, "GET /{path} HTTP/1.1\r\nhost: {host}\r\n\r\n").expect("it reads");
    let mut all = String::new();
    stream.read_to_string(&mut all).expect("text");
    all.lines().next().unwrap_or_default().to_owned()
}
