//! Proxies between pixir and a server.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use crate::server::{Server, text};
use crate::shell::{Shell, ran};

/// A proxy that speaks SOCKS 5, and knows every host as this machine. It notes the names that it is asked for.
struct Socks {
    address: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Socks {
    fn start() -> Socks {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let names = Arc::clone(&asked);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let names = Arc::clone(&names);
                thread::spawn(move || serve(stream, &names));
            }
        });
        Socks { address, asked }
    }
}

fn serve(mut client: TcpStream, names: &Mutex<Vec<String>>) -> Option<()> {
    let mut head = [0; 2];
    client.read_exact(&mut head).ok()?;
    client.read_exact(&mut vec![0; usize::from(head[1])]).ok()?;
    client.write_all(&[5, 0]).ok()?;
    let mut request = [0; 4];
    client.read_exact(&mut request).ok()?;
    let host = match request[3] {
        3 => {
            let mut length = [0];
            client.read_exact(&mut length).ok()?;
            let mut name = vec![0; usize::from(length[0])];
            client.read_exact(&mut name).ok()?;
            String::from_utf8(name).ok()?
        }
        _ => {
            let mut address = [0; 4];
            client.read_exact(&mut address).ok()?;
            address.map(|it| it.to_string()).join(".")
        }
    };
    let mut port = [0; 2];
    client.read_exact(&mut port).ok()?;
    names.lock().expect("no panic").push(host);
    let mut server = TcpStream::connect(("127.0.0.1", u16::from_be_bytes(port))).ok()?;
    client.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]).ok()?;
    let (mut to, mut from) = (server.try_clone().ok()?, client.try_clone().ok()?);
    thread::spawn(move || {
        let _ = std::io::copy(&mut from, &mut to);
        let _ = to.shutdown(Shutdown::Write);
    });
    let _ = std::io::copy(&mut server, &mut client);
    let _ = client.shutdown(Shutdown::Write);
    Some(())
}

/// Broken build (ce783d9e): `unsupported scheme socks5`, and the remedy names HTTPS_PROXY.
#[test]
fn a_server_is_reached_through_a_proxy_of_socks() {
    for (variable, scheme) in [("ALL_PROXY", "socks5h"), ("all_proxy", "socks5h"), ("HTTP_PROXY", "socks5h")] {
        let (shell, socks) = (Shell::new(&[]), Socks::start());
        let server = Server::start(vec![text("Through.")]);
        let port = server.url.rsplit(':').next().and_then(|it| it.split('/').next()).expect("a port").to_owned();
        let settings = format!(
            "[providers.far]\ndialect = \"responses\"\nbase_url = \"http://model.test:{port}/v1\"\ninsecure = true\n"
        );
        shell.configure(&settings);
        let args = ["--provider", "far", "--model", "m", "--headless", "--format", "jsonl", "x"];
        let mut command = shell.command(args);
        command.env(variable, format!("{scheme}://{}", socks.address));
        let ran = ran(command.output().expect("it runs"));
        let last = ran.lines().pop().expect("a result");
        assert_eq!((ran.code, last["output"].as_str()), (0, Some("Through.")), "{variable}: {last}");
        let asked = socks.asked.lock().expect("no panic").clone();
        assert!(
            !asked.is_empty() && asked.iter().all(|it| it == "model.test"),
            "the proxy looks the name up: {asked:?}"
        );
    }
}

/// The variable that names the proxy is the one that the user can correct.
#[test]
fn a_proxy_that_does_not_answer_is_named_by_its_variable() {
    let shell = Shell::new(&[]);
    shell.configure(
        "[requests]\nattempts = 1\n\n[providers.far]\ndialect = \"responses\"\nbase_url = \"http://model.test/v1\"\ninsecure = true\n",
    );
    let closed = TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr()).expect("a port");
    for (variable, scheme) in [("ALL_PROXY", "socks5h"), ("HTTP_PROXY", "http")] {
        let mut command = shell.command(["--provider", "far", "--model", "m", "--headless", "--format", "jsonl", "x"]);
        command.env(variable, format!("{scheme}://me:pw@{closed}"));
        let ran = ran(command.output().expect("it runs"));
        let last = ran.lines().pop().expect("a result");
        assert_eq!(last["code"], "NETWORK", "{last}");
        assert!(last["remediation"].as_str().expect("a fix").contains(variable), "{variable}: {last}");
        assert!(!ran.stdout.contains("me:pw") && !ran.stderr.contains("me:pw"), "its password is nowhere");
    }
    let mut command = shell.command(["doctor"]);
    command
        .env("HTTPS_PROXY", "http://me:pw@proxy.test:3128")
        .env("ALL_PROXY", "ftp://proxy.test")
        .env("NO_PROXY", "a.test");
    let doctor = ran(command.output().expect("it runs"));
    let shown = doctor.stdout;
    assert!(shown.contains("HTTPS_PROXY is http://proxy.test:3128; NO_PROXY leaves out a.test"), "{shown}");
    assert!(shown.contains("warn  proxy        ALL_PROXY has the scheme ftp"), "{shown}");
    assert!(!shown.contains("pw@"), "{shown}");
}
