//! Certificates: good, bad, and from a private authority.

use std::fs;
use std::io::BufReader;
use std::net::TcpStream;
use std::sync::{Arc, Mutex};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, date_time_ymd};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::server::{Connection, Server, text};
use crate::shell::{Ran, Shell, ran};

/// An authority of our own.
struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Authority {
        let mut params = CertificateParams::new(Vec::new()).expect("parameters");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        Authority { issuer: CertifiedIssuer::self_signed(params, key).expect("an authority") }
    }

    /// A server whose certificate is for this name, and valid for these years.
    fn server(&self, name: &str, (from, until): (i32, i32)) -> Server {
        let mut params = CertificateParams::new(vec![name.to_owned()]).expect("parameters");
        params.not_before = date_time_ymd(from, 1, 1);
        params.not_after = date_time_ymd(until, 12, 31);
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        let private = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], private)
            .expect("a certificate and its key");
        let config = Arc::new(config);
        Server::behind(vec![text("Trusted.")], "https", move |stream| {
            let connection = ServerConnection::new(Arc::clone(&config)).map_err(std::io::Error::other)?;
            let both = Shared(Arc::new(Mutex::new(StreamOwned::new(connection, stream))));
            Ok((BufReader::new(Box::new(both.clone()) as _), both))
        })
    }
}

/// One encrypted connection for reading and writing.
#[derive(Clone)]
struct Shared(Arc<Mutex<StreamOwned<ServerConnection, TcpStream>>>);

impl std::io::Read for Shared {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.0.lock().expect("no poison").read(buffer)
    }
}

impl std::io::Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("no poison").write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.lock().expect("no poison").flush()
    }
}

impl Connection for Shared {
    fn reset(&mut self) {
        self.0.lock().expect("no poison").sock.reset();
    }

    fn close(&mut self) {
        let mut stream = self.0.lock().expect("no poison");
        stream.conn.send_close_notify();
        let _ = std::io::Write::flush(&mut *stream);
    }
}

fn asking(url: &str) -> [&str; 10] {
    ["--base-url", url, "--dialect", "chat", "--model", "m", "--headless", "--format", "jsonl", "x"]
}

fn ask(shell: &Shell, url: &str, trusted: Option<&Authority>) -> Ran {
    let mut command = shell.command(asking(url));
    if let Some(authority) = trusted {
        command.env("SSL_CERT_FILE", shell.aside("ca.pem", &authority.issuer.pem()));
    }
    ran(command.output().expect("it runs"))
}

/// Broken build (ce783d9e): each of them is "not trusted", with seconds since 1970 and the advice to set SSL_CERT_FILE.
#[test]
fn a_bad_certificate_is_refused_at_once_in_its_own_words() {
    let (ours, theirs) = (Authority::new(), Authority::new());
    let good = (2020, 2099);
    let rows = [
        (theirs.server("127.0.0.1", good), "does not trust the authority", "SSL_CERT_FILE"),
        (ours.server("example.com", good), "is for example.com", "use the name example.com"),
        (ours.server("127.0.0.1", (2020, 2021)), "expired on 2021-12-31", "clock of this machine, which says 20"),
        (ours.server("127.0.0.1", (2090, 2099)), "is valid from 2090-01-01 on", "clock of this machine, which says 20"),
    ];
    for (server, why, fix) in rows {
        let shell = Shell::new(&[]);
        let ran = ask(&shell, &server.url, Some(&ours));
        let last = ran.lines().pop().expect("a result");
        assert_eq!((ran.code, last["code"].as_str()), (8, Some("TLS_FAILED")), "{why}: {last}");
        let message = last["error"]["message"].as_str().expect("a message");
        assert!(message.contains("127.0.0.1") && message.contains(why), "{last}");
        assert!(last["remediation"].as_str().expect("a fix").contains(fix), "{last}");
        assert_eq!(fix.contains("SSL_CERT_FILE"), last.to_string().contains("SSL_CERT_FILE"), "{last}");
        assert!(server.bodies().is_empty(), "nothing was sent");
        assert!(!ran.stdout.contains("retry_scheduled"), "and nothing is tried again");
    }
}

/// Broken build (ce783d9e): a file that is missing or holds no certificate is passed over, and the error says to set it.
#[test]
fn a_variable_that_names_no_authority_is_said_before_anything_is_sent() {
    let ours = Authority::new();
    let server = ours.server("127.0.0.1", (2020, 2099));
    let shell = Shell::new(&[]);
    let plain = shell.aside("plain.pem", "no certificate");
    let missing = plain.with_file_name("nope.pem");
    let rows = [
        ("SSL_CERT_FILE", &missing, "cannot be read"),
        ("SSL_CERT_FILE", &plain, "holds no certificate"),
        ("SSL_CERT_DIR", &missing, "is not a folder"),
    ];
    for (variable, path, why) in rows {
        let mut command = shell.command(asking(&server.url));
        let ran = ran(command.env(variable, path).output().expect("it runs"));
        let last = ran.lines().pop().expect("a result");
        let message = last["error"]["message"].as_str().unwrap_or_default();
        assert_eq!((ran.code, last["code"].as_str()), (8, Some("TLS_FAILED")), "{last}");
        assert!(message.contains(&format!("{variable} names")) && message.contains(why), "{last}");
        let doctor = crate::shell::ran(shell.command(["doctor"]).env(variable, path).output().expect("it runs"));
        assert!(doctor.stdout.contains(&format!("fail  certificates {variable} names")), "{}", doctor.stdout);
    }
    assert!(server.bodies().is_empty(), "nothing was sent");
}

/// Broken build: the file takes the place of the folder.
#[test]
fn authorities_of_both_variables_are_trusted() {
    let (ours, theirs) = (Authority::new(), Authority::new());
    let shell = Shell::new(&[]);
    let file = shell.aside("ours.pem", &ours.issuer.pem());
    let folder = file.with_file_name("authorities");
    fs::create_dir(&folder).expect("mkdir");
    fs::write(folder.join("theirs.pem"), theirs.issuer.pem()).expect("write");
    for authority in [&ours, &theirs] {
        let server = authority.server("127.0.0.1", (2020, 2099));
        let mut command = shell.command(asking(&server.url));
        command.env("SSL_CERT_FILE", &file).env("SSL_CERT_DIR", &folder);
        let ran = ran(command.output().expect("it runs"));
        assert_eq!((ran.code, server.bodies().len()), (0, 1), "{}", ran.stderr);
    }
    let doctor = shell.command(["doctor"]).env("SSL_CERT_FILE", &file).output().expect("it runs");
    let doctor = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert!(doctor.contains("the authorities of the system, and 1 authority of"), "{doctor}");
}

#[test]
fn a_private_authority_is_trusted_when_configured() {
    let ours = Authority::new();
    let server = ours.server("127.0.0.1", (2020, 2099));
    let shell = Shell::new(&[]);
    let ran = ask(&shell, &server.url, Some(&ours));
    assert_eq!(
        (ran.code, ran.lines().pop().expect("a result")["output"].as_str()),
        (0, Some("Trusted.")),
        "{}",
        ran.stderr
    );
    let stranger = ask(&shell, &ours.server("127.0.0.1", (2020, 2099)).url, None);
    assert_eq!(stranger.lines().pop().expect("a result")["code"], "TLS_FAILED");
}

#[test]
fn an_endless_handshake_times_out() {
    let server = Server::behind(
        Vec::new(),
        "https",
        |stream| -> std::io::Result<(BufReader<Box<dyn std::io::Read>>, TcpStream)> {
            // The server never answers.
            let mut reading = stream.try_clone()?;
            while std::io::Read::read(&mut reading, &mut [0; 512])? > 0 {}
            Err(std::io::Error::other("it went away"))
        },
    );
    let shell = Shell::new(&[]);
    shell.configure("[requests]\nattempts = 2\nfirst_wait = 0.01\nhead = 0.4\n");
    let ran = ask(&shell, &server.url, None);
    let last = ran.lines().pop().expect("a result");
    assert_eq!((ran.code, last["code"].as_str()), (8, Some("NETWORK")), "{last}");
    assert_eq!(ran.lines().iter().filter(|line| line["type"] == "retry_scheduled").count(), 1);
    assert!(server.bodies().is_empty());
}
