//! Signing in to a server that runs elsewhere: the story is the browser, and the issuer.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, OnceLock};

use serde_json::{Value, json};

use super::{Elsewhere, Scripted, result, turn};
use crate::hosted::Hosted;
use crate::issuer::{Asked, Issuer, value};
use crate::pty::Terminal;
use crate::server::{Server, call, text};
use crate::shell::{Ran, Shell, ran, rest_of};
use crate::wait;

/// Every token begins so.
const SECRET: &str = "canary-of-a-token";

/// A server that wants a sign-in, and the issuer of its tokens.
struct World {
    shell: Shell,
    scripted: Scripted,
    issuer: Issuer,
    /// The tokens that the server knows.
    tokens: PathBuf,
    url: String,
    _running: Elsewhere,
}

/// What the issuer says about itself, where that is not the truth.
type Odd = fn(&str, &mut Value);

impl World {
    fn new() -> World {
        World::with(|_, _| {}, &[])
    }

    /// The issuer gives tokens by number; `odd` changes its metadata, `options` are those of the server.
    fn with(odd: Odd, options: &[&str]) -> World {
        let shell = Shell::new(&[]);
        let scripted = Scripted::new(&shell);
        let tokens = shell.aside("tokens", "");
        let (address, given) = (Arc::<OnceLock<String>>::default(), Arc::<Mutex<usize>>::default());
        let (known, file) = (Arc::clone(&address), tokens.clone());
        let issuer = Issuer::start(move |asked, _| {
            let base = known.get().expect("it has started");
            match asked.what.as_str() {
                "GET /.well-known/oauth-authorization-server" => {
                    let mut about = json!({
                        "issuer": base, "authorization_endpoint": format!("{base}/authorize"),
                        "token_endpoint": format!("{base}/token"), "registration_endpoint": format!("{base}/register"),
                        "code_challenge_methods_supported": ["S256"], "token_endpoint_auth_methods_supported": ["none"],
                        "authorization_response_iss_parameter_supported": true,
                    });
                    odd(base, &mut about);
                    (200, about)
                }
                "POST /register" => (201, json!({ "client_id": "pixir-of-the-story" })),
                "POST /token" if fs::read_to_string(&file).is_ok_and(|it| it.contains("ended")) => {
                    (400, json!({ "error": "invalid_grant", "error_description": "the user has left" }))
                }
                "POST /token" => {
                    let mut given = given.lock().expect("no panic");
                    *given += 1;
                    let scope = field(asked, "scope").unwrap_or_else(|| "tools".to_owned());
                    let token = format!("{SECRET}-access-{given}");
                    fs::write(&file, format!("{token} {scope}\n")).expect("write");
                    let refresh = format!("{SECRET}-refresh-{given}");
                    (
                        200,
                        json!({ "access_token": token, "refresh_token": refresh, "token_type": "Bearer", "expires_in": 3600 }),
                    )
                }
                "POST /revoke" if fs::read_to_string(&file).is_ok_and(|it| it.contains("stubborn")) => {
                    let token = field(asked, "token").unwrap_or_default();
                    (503, json!({ "error": "later", "error_description": format!("{token} is in use") }))
                }
                "POST /revoke" => (200, json!({})),
                _ => (404, json!({})),
            }
        });
        address.set(issuer.url.clone()).expect("once");
        let named = [format!("issuer={}", issuer.url), format!("tokens={}", tokens.display())];
        let tools = "tools=look,wipe,authorization";
        let options: Vec<&str> =
            named.iter().map(String::as_str).chain([tools]).chain(options.iter().copied()).collect();
        let (running, url) = Elsewhere::start(&scripted, &options);
        shell.configure(&format!(
            "[mcp.far]\nurl = \"{url}\"\nreads = [\"look\", \"authorization\"]\nallow = [\"wipe\"]\n"
        ));
        World { shell, scripted, issuer, tokens, url, _running: running }
    }

    /// Starts a sign-in. Returns it, and the page for the user.
    fn begin(&self, more: &[&str]) -> (SigningIn, String) {
        let mut command = self.shell.command(["mcp", "login", "far", "--json"].iter().chain(more));
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        let mut stderr = BufReader::new(child.stderr.take().expect("piped"));
        let mut line = String::new();
        stderr.read_line(&mut line).expect("a line");
        let page = serde_json::from_str::<Value>(&line).ok().and_then(|it| it["open"].as_str().map(str::to_owned));
        let page = page.unwrap_or_else(|| {
            let mut rest = String::new();
            let _ = stderr.read_to_string(&mut rest);
            panic!("no page: {line}{rest}")
        });
        (SigningIn { child, stderr }, page)
    }

    /// A whole sign-in of a user who agrees.
    fn sign_in(&self, more: &[&str]) -> Ran {
        let (signing_in, page) = self.begin(more);
        // The issuer gives what was asked for.
        let _ = get(&answer(&page, &[("code", &format!("{SECRET}-code")), ("iss", &self.issuer.url)]));
        signing_in.end()
    }

    fn call(&self, tool: &str) -> Value {
        let server = Server::start(vec![call("c1", &format!("far__{tool}"), json!({})), text("Done.")]);
        let ran = turn(&self.shell, &server, &["--mode", "ask", "go"]);
        assert!(!format!("{ran:?}").contains(SECRET), "{ran:?}");
        assert!(!server.bodies().iter().any(|it| it.to_string().contains(SECRET)), "the model reads a token");
        result(&self.shell)
    }

    fn kept(&self) -> String {
        fs::read_to_string(self.shell.home().join("auth.json")).unwrap_or_default()
    }

    fn renewals(&self) -> usize {
        self.issuer.asked().iter().filter(|it| it.body.contains("grant_type=refresh_token")).count()
    }
}

/// `pixir mcp login`, which waits for the browser.
struct SigningIn {
    child: Child,
    stderr: BufReader<std::process::ChildStderr>,
}

impl SigningIn {
    fn end(self) -> Ran {
        rest_of(self.child, self.stderr)
    }
}

fn field(asked: &Asked, name: &str) -> Option<String> {
    value(&asked.body, name)
}

/// A parameter of the page of a sign-in.
fn parameter(page: &str, name: &str) -> String {
    let query = page.split_once('?').expect("a query").1;
    value(query, name).unwrap_or_else(|| panic!("no {name}: {page}"))
}

/// Where the browser is sent from this page, with its state and these parameters.
fn answer(page: &str, more: &[(&str, &str)]) -> String {
    let mut address = format!("{}?state={}", parameter(page, "redirect_uri"), parameter(page, "state"));
    for (name, value) in more {
        address.push_str(&format!("&{name}={}", value.replace(':', "%3A").replace('/', "%2F")));
    }
    address
}

/// Gets a page: the first line and the rest.
fn get(address: &str) -> (String, String) {
    let rest = address.strip_prefix("http://").expect("a plain address");
    let (host, path) = rest.split_once('/').expect("a path");
    let mut stream = TcpStream::connect(host).expect("it listens");
    write!(stream, "GET /{path} HTTP/1.1\r\nhost: {host}\r\n\r\n").expect("it reads");
    let mut all = String::new();
    stream.read_to_string(&mut all).expect("text");
    let (first, rest) = all.split_once("\r\n").expect("an answer");
    (first.to_owned(), rest.to_owned())
}

/// SHA-256 in the letters of URLs.
fn hash(text: &str) -> String {
    let program = "import base64,hashlib,sys;print(base64.urlsafe_b64encode(hashlib.sha256(sys.argv[1].encode()).digest()).rstrip(b'=').decode())";
    let output = Command::new("python3").args(["-c", program, text]).output().expect("python3");
    String::from_utf8(output.stdout).expect("text").trim().to_owned()
}

/// Broken builds: the code is sent without its verifier, or to any page; the token is printed, logged, or read by the model; a
/// sign-out leaves it.
#[test]
fn a_user_signs_in_with_the_browser_and_the_token_is_seen_nowhere() {
    let world = World::new();
    let shell = &world.shell;
    let refused = shell.run(["mcp", "test", "far"]);
    assert!(refused.code == 4 && refused.stdout.contains("wants a sign-in"), "{refused:?}");
    assert!(refused.stdout.contains("pixir mcp login far"), "{refused:?}");
    let dry = shell.run(["mcp", "login", "far", "--dry-run"]);
    let would = format!("would sign in to far at {} with the scope `tools`", world.issuer.url);
    assert!(dry.code == 0 && dry.stdout.contains(&would), "{dry:?}");
    assert!(!world.issuer.asked().iter().any(|it| it.what.starts_with("POST")), "a dry run registers nothing");

    let (signing_in, page) = world.begin(&[]);
    assert!(page.starts_with(&format!("{}/authorize?", world.issuer.url)), "{page}");
    let wanted =
        [("response_type", "code"), ("client_id", "pixir-of-the-story"), ("scope", "tools"), ("resource", &world.url)];
    for (name, value) in wanted.into_iter().chain([("code_challenge_method", "S256")]) {
        assert_eq!(parameter(&page, name), value, "{page}");
    }
    // Any page of the user's browser can come here.
    let landing = parameter(&page, "redirect_uri");
    for other in ["?state=guessed&code=evil", "?code=evil", "", "/../x"] {
        assert!(get(&format!("{landing}{other}")).0.contains("404"), "{other}");
    }
    let (first, shown) = get(&answer(&page, &[("code", &format!("{SECRET}-code")), ("iss", &world.issuer.url)]));
    assert!(first.contains("200") && shown.contains("You are signed in") && !shown.contains(SECRET), "{first} {shown}");
    let signed_in = signing_in.end();
    assert_eq!(signed_in.code, 0, "{signed_in:?}");
    assert_eq!(signed_in.document()["server"]["tools"].as_array().expect("tools").len(), 3, "{signed_in:?}");

    let asked = world.issuer.asked();
    let tokens: Vec<&Asked> = asked.iter().filter(|it| it.what == "POST /token").collect();
    assert_eq!(tokens.len(), 1);
    let of = |name: &str| field(tokens[0], name).unwrap_or_default();
    assert_eq!((of("grant_type"), of("code")), ("authorization_code".to_owned(), format!("{SECRET}-code")));
    assert_eq!((of("redirect_uri"), of("resource")), (landing, world.url.clone()));
    assert_eq!(hash(&of("code_verifier")), parameter(&page, "code_challenge"), "PKCE");

    assert!(world.call("look")["error"].is_null());
    let told = world.call("authorization");
    assert!(told["output"].as_str().expect("text").contains("Bearer [secret sign-in]"), "the server has it: {told}");
    let status = shell.run(["auth", "status"]);
    assert!(status.stdout.contains("mcp-login:") && !status.stdout.contains("access-1"), "{status:?}");
    let mode = std::os::unix::fs::PermissionsExt::mode(
        &fs::metadata(shell.home().join("auth.json")).expect("kept").permissions(),
    );
    assert_eq!(mode & 0o777, 0o600);
    let own = [shell.home().join("auth.json"), world.tokens.clone(), world.scripted.program.with_file_name("journal")];
    let mut folders = vec![shell.home().parent().expect("a parent").to_owned()];
    let mut files = 0;
    while let Some(folder) = folders.pop() {
        for it in fs::read_dir(folder).into_iter().flatten().flatten() {
            if it.path().is_dir() {
                folders.push(it.path());
            } else if !own.contains(&it.path()) {
                files += 1;
                let bytes = fs::read(it.path()).unwrap_or_default();
                let holds = bytes.windows(SECRET.len()).any(|it| it == SECRET.as_bytes());
                assert!(!holds, "a token is in {}", it.path().display());
            }
        }
    }
    assert!(files > 3, "{files} files");

    let out = shell.run(["mcp", "logout", "far"]);
    assert!(out.code == 0 && out.stdout.contains("signed out of far") && !world.kept().contains(SECRET), "{out:?}");
    assert_eq!(shell.run(["mcp", "test", "far", "--json"]).document()["server"]["error"]["code"], "MCP_AUTH_REQUIRED");
}

/// Broken builds: a sign-out leaves tokens behind that work; one that the issuer does not confirm leaves them on this machine; a
/// token is in what the issuer says.
#[test]
fn a_sign_out_ends_the_tokens_at_their_issuer() {
    let world = World::with(|base, about| about["revocation_endpoint"] = json!(format!("{base}/revoke")), &[]);
    let out = || world.shell.run(["mcp", "logout", "far", "--json"]);
    let ended = || {
        let all = world.issuer.asked().into_iter().filter(|it| it.what == "POST /revoke");
        all.map(|it| (field(&it, "token_type_hint"), field(&it, "token"), field(&it, "client_id"))).collect::<Vec<_>>()
    };
    assert_eq!(world.sign_in(&[]).code, 0);
    assert_eq!(world.shell.run(["mcp", "logout", "far", "--dry-run"]).code, 0);
    assert_eq!(ended(), []);
    let gone = out();
    assert_eq!((gone.code, &gone.document()["removed"], &gone.document()["revoked"]), (0, &json!(true), &json!(true)));
    let of = |kind: &str| {
        let token = format!("{SECRET}-{}-1", kind.trim_end_matches("_token"));
        (Some(kind.to_owned()), Some(token), Some("pixir-of-the-story".to_owned()))
    };
    assert_eq!(ended(), [of("refresh_token"), of("access_token")]);
    assert!(!world.kept().contains(SECRET) && !format!("{gone:?}").contains(SECRET), "{gone:?}");
    assert!(world.shell.run(["mcp", "logout", "far"]).stdout.contains("there was no sign-in to far"));
    assert_eq!(ended().len(), 2, "nothing is left to end");

    assert_eq!(world.sign_in(&[]).code, 0);
    fs::write(&world.tokens, "stubborn tools\n").expect("write");
    let said = world.shell.run(["mcp", "logout", "far"]);
    assert!(said.code == 0 && said.stdout.contains("its issuer has not ended the token"), "{said:?}");
    assert!(said.stdout.contains("503") && !format!("{said:?}").contains(SECRET), "{said:?}");
    assert!(!world.kept().contains(SECRET));
}

/// A sign-in in a terminal, and the page that it opened in the browser.
fn in_terminal(world: &World, more: &[&str]) -> (Terminal, PathBuf) {
    let opened = world.tokens.with_file_name("opened");
    let script = format!("#!/bin/sh\nprintf %s \"$1\" > {0}.new && mv {0}.new {0}\n", opened.display());
    let browser = world.shell.aside("browser", &script);
    fs::set_permissions(&browser, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("chmod");
    let home = world.tokens.parent().expect("a folder").display().to_string();
    let around = [("HOME", home.as_str()), ("BROWSER", browser.to_str().expect("text"))];
    let words = [&["mcp", "login", "far"], more].concat();
    let terminal = Terminal::of(&world.shell, env!("CARGO_BIN_EXE_pixir").as_ref(), &words, &around, 1_000, 40);
    terminal.wait_for("Paste its address here");
    (terminal, opened)
}

/// Broken builds: no browser opens, or one that the user has forbidden; an empty line ends the sign-in; a pasted address is
/// taken on trust.
#[test]
fn a_sign_in_opens_the_browser_and_takes_the_address_at_which_it_ended_elsewhere() {
    let world = World::new();
    let (mut terminal, opened) = in_terminal(&world, &[]);
    wait::until("the browser has opened", || opened.exists());
    let page = fs::read_to_string(&opened).expect("a page");
    assert!(page.starts_with(&format!("{}/authorize?", world.issuer.url)), "{page}");
    assert!(terminal.screen().contains(&page), "it is shown too");
    let address = answer(&page, &[("code", &format!("{SECRET}-code")), ("iss", &world.issuer.url)]);
    terminal.send("\r");
    terminal.send(&format!(" {address} \r"));
    terminal.wait_for("signed in to far at");
    assert!(world.kept().contains("access-1"));
    drop(terminal);

    assert_eq!(world.shell.run(["mcp", "logout", "far"]).code, 0);
    fs::remove_file(&opened).expect("it was opened");
    let (mut terminal, opened) = in_terminal(&world, &["--no-browser"]);
    let other = address.replace("state=", "state=x");
    terminal.send(&format!("{other}\r"));
    terminal.wait_for("this is not the address to which the browser was sent");
    assert!(!world.kept().contains(SECRET) && !opened.exists());
}

/// Broken builds: a token that the server refuses ends the call; two processes spend one renewal twice; a sign-in that has ended
/// stays, and is tried again and again.
#[test]
fn a_token_is_renewed_once_for_all_and_forgotten_when_the_issuer_ends_it() {
    let world = World::new();
    assert_eq!(world.sign_in(&[]).code, 0);
    // The server forgets it before its time.
    fs::write(&world.tokens, "").expect("write");
    let runs: Vec<Child> = (0..3)
        .map(|_| {
            let mut command = world.shell.command(["mcp", "call", "far.look"]);
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")
        })
        .collect();
    for run in runs {
        let done = ran(run.wait_with_output().expect("it ends"));
        assert!(done.code == 0 && done.stdout.contains("look {}"), "{done:?}");
    }
    assert_eq!(world.renewals(), 1, "{:#?}", world.issuer.asked());
    assert!(world.kept().contains("refresh-2") && !world.kept().contains("refresh-1"), "the new one is stored");
    let renewal =
        world.issuer.asked().into_iter().find(|it| it.body.contains("grant_type=refresh_token")).expect("it was asked");
    assert_eq!(field(&renewal, "resource"), Some(world.url.clone()));

    fs::write(&world.tokens, "ended tools\n").expect("write");
    let ended = world.call("look");
    assert_eq!(ended["error"]["code"], "MCP_AUTH_REQUIRED", "{ended}");
    assert!(!world.kept().contains(SECRET), "it is forgotten");
    assert_eq!(world.call("look")["error"]["code"], "MCP_AUTH_REQUIRED");
    assert_eq!(world.renewals(), 2, "what has ended is not tried again");
}

/// Broken builds: a session that runs does not see the sign-in; refused starts count as deaths, so that the fifth call is none;
/// a session opens a browser.
#[test]
fn a_session_that_runs_uses_a_sign_in_that_comes_later() {
    let world = World::new();
    assert_eq!(world.sign_in(&[]).code, 0);
    assert_eq!(world.shell.run(["mcp", "logout", "far"]).code, 0);
    fs::write(&world.tokens, "").expect("write");
    let look = || call("c1", "far__look", json!({}));
    let replies: Vec<_> = (0..6).flat_map(|_| [look(), text("Done.")]).collect();
    let server = Server::start(replies);
    let flags = server.flags(crate::server::Dialect::Responses);
    let mut session = Hosted::on(&world.shell, &flags.iter().map(String::as_str).collect::<Vec<_>>());
    for n in 0..5 {
        session.ask(&format!("p{n}"), json!({ "type": "prompt", "text": "look" }));
        let result = session.event("tool_result");
        assert_eq!(result["data"]["error"]["code"], "MCP_AUTH_REQUIRED", "{result}");
        assert!(result["data"]["output"].as_str().expect("text").contains("sign in to far"), "{result}");
        session.event("turn_ended");
    }
    assert_eq!(world.sign_in(&[]).code, 0);
    session.ask("p5", json!({ "type": "prompt", "text": "look" }));
    let result = session.event("tool_result");
    assert!(result["data"]["error"].is_null(), "{result}");
    session.event("turn_ended");
    session.end();
}

/// Broken builds: the scope that a server asks for is not said; a sign-in for more loses what was granted; one call is sent
/// again and again.
#[test]
fn a_tool_that_wants_more_says_the_scope_and_works_after_the_next_sign_in() {
    let world = World::new();
    assert_eq!(world.sign_in(&[]).code, 0);
    let before = world.scripted.journal().len();
    let short = world.call("wipe");
    assert_eq!(short["error"]["code"], "MCP_AUTH_REQUIRED", "{short}");
    assert!(short["output"].as_str().expect("text").contains("wants a sign-in with the scope `wipe`"), "{short}");
    assert_eq!(short["error"]["details"]["scope"], "tools wipe", "{short}");
    assert!(world.scripted.journal().len() - before < 12, "{:?}", world.scripted.journal());
    let said = world.shell.run(["mcp", "call", "far.wipe"]);
    assert!(said.stderr.contains("pixir mcp login far --scope 'tools wipe'"), "{said:?}");
    let (signing_in, page) = world.begin(&["--scope", "tools wipe"]);
    assert_eq!(parameter(&page, "scope"), "tools wipe");
    let _ = get(&answer(&page, &[("code", "x"), ("iss", &world.issuer.url)]));
    assert_eq!(signing_in.end().code, 0);
    // This issuer tells the server of what it has granted.
    let token = fs::read_to_string(&world.tokens).expect("a token").replace(" tools", " tools wipe");
    fs::write(&world.tokens, token).expect("write");
    assert!(world.call("wipe")["error"].is_null());
}

/// Broken builds: metadata of another server, of another issuer, or without PKCE are believed; the answer of another issuer ends
/// the sign-in; the user's no is an error without a reason.
#[test]
fn whoever_lies_about_a_sign_in_gets_no_code() {
    let lies: [(Odd, &[&str], &str); 4] = [
        (|_, _| {}, &["resource=https://other.example/mcp"], "is about another server"),
        (|_, about| about["issuer"] = json!("https://other.example"), &[], "says that it is https://other.example"),
        (|_, about| about["code_challenge_methods_supported"] = json!(["plain"]), &[], "does not protect the code"),
        (|_, about| about["token_endpoint"] = json!("http://other.example/token"), &[], "unencrypted"),
    ];
    for (odd, options, says) in lies {
        let world = World::with(odd, options);
        let refused = world.shell.run(["mcp", "login", "far", "--no-browser"]);
        assert!(refused.code != 0 && refused.stderr.contains(says), "{says}: {refused:?}");
        assert!(!world.issuer.asked().iter().any(|it| it.what == "POST /token"));
    }
    let answers: [(&[(&str, &str)], &str); 3] = [
        (&[("code", "x"), ("iss", "https://other.example")], "comes from https://other.example"),
        (&[("code", "x")], "does not name"),
        (&[("error", "access_denied"), ("error_description", "you+said+no"), ("iss", "OWN")], "you said no"),
    ];
    for (parameters, says) in answers {
        let world = World::new();
        let (signing_in, page) = world.begin(&[]);
        let own = |(name, value): &(&'static str, &'static str)| {
            (*name, if *value == "OWN" { world.issuer.url.clone() } else { (*value).to_owned() })
        };
        let parameters: Vec<(&str, String)> = parameters.iter().map(own).collect();
        let parameters: Vec<(&str, &str)> = parameters.iter().map(|(name, value)| (*name, value.as_str())).collect();
        assert!(get(&answer(&page, &parameters)).0.contains("400"));
        let failed = signing_in.end();
        assert!(failed.code == 4 && failed.stderr.contains(says), "{says}: {failed:?}");
        assert!(world.kept().is_empty() && !world.issuer.asked().iter().any(|it| it.what == "POST /token"), "{says}");
    }
}

/// Broken builds: a redirect to another server takes the key along; one within the server is an error.
#[test]
fn a_redirect_is_followed_within_the_server_and_to_no_other() {
    let shell = Shell::new(&[]);
    let scripted = Scripted::new(&shell);
    let (_other, elsewhere) = Elsewhere::start(&scripted, &["tools=look"]);
    let other = elsewhere.trim_end_matches("/mcp").to_owned();
    let test = |url: &str| {
        shell.configure(&format!("[mcp.far]\nurl = \"{url}\"\nheaders_from = {{ Authorization = \"FAR_KEY\" }}\n"));
        let key = format!("Bearer {SECRET}");
        ran(shell.command(["mcp", "test", "far"]).env("FAR_KEY", key).output().expect("it runs"))
    };
    let within = test(&elsewhere.replace("/mcp", "/moved"));
    assert!(within.code == 0 && within.stdout.contains("look"), "{within:?}");
    assert!(scripted.journal().iter().any(|it| it == "moved /moved"), "{:?}", scripted.journal());

    let second = Shell::new(&[]);
    let moving = Scripted::new(&second);
    let (_moving, url) = Elsewhere::start(&moving, &["tools=look", &format!("elsewhere={other}")]);
    let before = scripted.journal().len();
    let away = test(&url.replace("/mcp", "/moved"));
    assert!(away.code == 1, "{away:?}");
    assert_eq!(scripted.journal().len(), before, "the other server was asked");
    assert!(moving.journal().iter().any(|it| it == "moved /moved"));
}
