//! The page of this machine to which the issuer sends the browser after a sign-in.

use std::time::Duration;

use reqwest::Url;
use secrecy::SecretString;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use net::quoted;

/// How long a browser may take to send its request.
const REQUEST: Duration = Duration::from_secs(10);
/// The longest request that is read, bytes.
const MAX_REQUEST: usize = 16 << 10;
/// The most browsers that are heard at once.
const MAX_BROWSERS: usize = 16;
const DONE: &str = "You are signed in. You can close this page and go back to the terminal.";
const REFUSED: &str = "The sign-in did not succeed. The terminal says why.";
const OTHER: &str = "This page belongs to another sign-in, or to none.";

/// What the address must hold to which the browser is sent.
#[derive(Debug, Clone)]
pub struct Expected {
    /// The text that only this sign-in has; `None` where the path of the page is that text.
    state: Option<String>,
    /// The issuer that was asked, where it may name itself.
    issuer: Option<String>,
    /// The issuer has said that it always names itself.
    names_itself: bool,
}

/// The code of a sign-in, or why there is none.
pub type Landed = Result<Code, String>;

/// The code of a sign-in.
#[derive(Debug)]
pub struct Code {
    /// What is exchanged for a token or a key.
    pub code: SecretString,
    /// The client id that the issuer has given to pixir with it.
    pub client_id: Option<String>,
}

impl Code {
    /// A code that the user has typed.
    pub(super) fn bare(code: &str) -> Code {
        Code { code: SecretString::from(code), client_id: None }
    }
}

impl Expected {
    /// An answer to this page is an answer to this sign-in.
    pub(super) fn any() -> Expected {
        Expected { state: None, issuer: None, names_itself: false }
    }

    /// An answer with this state.
    pub(super) fn state(state: String) -> Expected {
        Expected { state: Some(state), ..Expected::any() }
    }

    /// An answer with this state, of this issuer.
    pub fn of_issuer(state: String, issuer: String, names_itself: bool) -> Expected {
        Expected { state: Some(state), issuer: Some(issuer), names_itself }
    }

    /// What an address says; `None` where it is not about this sign-in.
    pub fn read(&self, address: &Url) -> Option<Landed> {
        let value = |name: &str| address.query_pairs().find(|(key, _)| key == name).map(|(_, it)| it.into_owned());
        if self.state.is_some() && value("state") != self.state {
            return None;
        }
        // Another issuer could have sent the browser here, to get a code of this one.
        if let Some(asked) = &self.issuer {
            match value("iss") {
                Some(issuer) if issuer != *asked => {
                    return Some(Err(format!("the answer comes from {}, not from {asked}", quoted(&issuer))));
                }
                None if self.names_itself => return Some(Err(format!("the answer does not name {asked}"))),
                Some(_) | None => {}
            }
        }
        if let Some(error) = value("error") {
            let why = value("error_description").unwrap_or(error);
            return Some(Err(format!("the issuer says: {}", quoted(&why))));
        }
        let code = value("code").filter(|it| !it.is_empty()).map(SecretString::from);
        let code = code.map(|code| Code { code, client_id: value("client_id") });
        Some(code.ok_or_else(|| "the answer holds no code".to_owned()))
    }
}

/// A listener on this machine alone.
#[derive(Debug)]
pub struct Landing {
    listener: TcpListener,
    path: String,
    /// The address to which the browser is sent.
    pub address: String,
}

impl Landing {
    /// Listens at this port, or at any that is free, for a page with this path.
    ///
    /// # Errors
    /// The system's error.
    pub async fn open(port: Option<u16>, path: &str) -> std::io::Result<Landing> {
        let listener = TcpListener::bind(("127.0.0.1", port.unwrap_or(0))).await?;
        let address = format!("http://127.0.0.1:{}{path}", listener.local_addr()?.port());
        Ok(Landing { listener, path: path.to_owned(), address })
    }

    /// Waits for a browser that comes from this sign-in. Browsers also open connections on which they send nothing, so one
    /// does not wait for the other.
    pub async fn wait(&self, expected: &Expected) -> Landed {
        let (found, mut landed) = mpsc::channel(1);
        let mut browsers = JoinSet::new();
        loop {
            tokio::select! {
                Some(landed) = landed.recv() => {
                    // Its page is still being sent.
                    let _ = tokio::time::timeout(Duration::from_millis(300), browsers.join_next()).await;
                    return landed;
                }
                Ok((stream, _)) = self.listener.accept(), if browsers.len() < MAX_BROWSERS => {
                    let (found, expected, path) = (found.clone(), expected.clone(), self.path.clone());
                    browsers.spawn(task::boxed(async move {
                        let _ = tokio::time::timeout(REQUEST, serve(stream, &expected, &path, &found)).await;
                    }));
                }
                Some(_) = browsers.join_next() => {}
            }
        }
    }
}

async fn serve(
    mut stream: TcpStream,
    expected: &Expected,
    path: &str,
    found: &mpsc::Sender<Landed>,
) -> std::io::Result<()> {
    let mut request = Vec::new();
    while !request.windows(4).any(|it| it == b"\r\n\r\n") && request.len() < MAX_REQUEST {
        if stream.read_buf(&mut request).await? == 0 {
            break;
        }
    }
    let text = String::from_utf8_lossy(&request);
    let target = text.strip_prefix("GET ").and_then(|it| it.split_once(' ')).map_or("", |(target, _)| target);
    let address = Url::parse("http://127.0.0.1").and_then(|it| it.join(target)).ok();
    let landed = address.filter(|it| it.path() == path).and_then(|it| expected.read(&it));
    let (status, says) = match &landed {
        Some(Ok(_)) => ("200 OK", DONE),
        Some(Err(_)) => ("400 Bad Request", REFUSED),
        None => ("404 Not Found", OTHER),
    };
    if let Some(landed) = landed {
        let _ = found.try_send(landed);
    }
    let page = format!("<!doctype html><meta charset=utf-8><title>pixir</title><p>{says}</p>\n");
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/html\r\ncontent-length: {}\r\ncache-control: no-store\r\nreferrer-policy: no-referrer\r\nconnection: close\r\n\r\n",
        page.len()
    );
    stream.write_all((head + &page).as_bytes()).await?;
    stream.shutdown().await
}

#[cfg(test)]
mod tests {
    use super::*;
    use secrecy::ExposeSecret as _;

    /// Broken builds: the state, or the issuer, of an answer is not looked at.
    #[test]
    fn only_the_issuer_that_was_asked_ends_a_sign_in() {
        let expected = |names_itself: bool| {
            Expected::of_issuer("s".to_owned(), "https://login.example.com".to_owned(), names_itself)
        };
        let read = |names_itself: bool, query: &str| {
            let address = Url::parse(&format!("http://127.0.0.1:9/callback?{query}")).expect("an address");
            expected(names_itself).read(&address).map(|it| it.map(|it| it.code.expose_secret().to_owned()))
        };
        let own = "iss=https%3A%2F%2Flogin.example.com";
        assert_eq!(read(false, "state=s&code=abc"), Some(Ok("abc".to_owned())));
        assert_eq!(read(true, &format!("state=s&code=abc&{own}")), Some(Ok("abc".to_owned())));
        assert_eq!(read(false, "state=other&code=abc"), None);
        assert_eq!(read(false, "code=abc"), None);
        for (names_itself, query) in [
            (true, "state=s&code=abc"),
            (false, "state=s&code=abc&iss=https%3A%2F%2Fevil.example.com"),
            (false, "state=s&error=access_denied"),
            (false, "state=s"),
        ] {
            assert!(matches!(read(names_itself, query), Some(Err(_))), "{query}");
        }
    }
}
