//! Plans in place of keys: ChatGPT and GitHub Copilot; and the bearer key of Bedrock.

use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::{SigningIn, ask, browse, hash, kept, parameter};
use crate::issuer::{Asked, Issuer, value};
use crate::server::{Reply, Server, text};
use crate::shell::{SECRET, Shell, ran};

fn refuses(status: u16, body: &Value) -> Reply {
    Reply::Refuse { status, headers: String::new(), body: body.to_string() }
}

fn field(asked: &Asked, name: &str) -> String {
    value(&asked.body, name).unwrap_or_default()
}

/// Base64 in the letters of URLs, without padding.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let letter = |bits: u32, at: u32| char::from(LETTERS[(bits >> (18 - 6 * at) & 63) as usize]);
    let group = |group: &[u8]| {
        let bits = (0..3).fold(0, |bits, at| bits << 8 | u32::from(group.get(at).copied().unwrap_or(0)));
        (0..=group.len() as u32).map(|at| letter(bits, at)).collect::<String>()
    };
    bytes.chunks(3).map(group).collect()
}

fn identity(claims: &Value) -> String {
    format!("{}.{}.c2ln", base64(b"{\"alg\":\"RS256\"}"), base64(claims.to_string().as_bytes()))
}

const GRANTED: &str = "openid profile email offline_access resource.invoke chatgpt.tokens.use.direct";

/// An issuer of ChatGPT plans, which knows the nonce of the page that the user opens. `odd` changes its tokens.
struct ChatGpt {
    shell: Shell,
    issuer: Issuer,
    nonce: Arc<Mutex<String>>,
}

type Odd = fn(&Asked, &mut (u16, Value));

impl ChatGpt {
    fn new(server: &Server, odd: Odd) -> ChatGpt {
        let (shell, nonce) = (Shell::new(&[]), Arc::<Mutex<String>>::default());
        let (known, given) = (Arc::clone(&nonce), Mutex::new(0));
        let issuer = Issuer::start(move |asked, _| {
            let mut given = given.lock().expect("no panic");
            *given += 1;
            let claims =
                json!({ "sub": "user_1", "aud": field(asked, "client_id"), "nonce": *known.lock().expect("no panic") });
            let mut answer = (
                200,
                json!({
                    "access_token": format!("{SECRET}-access-{given}"), "refresh_token": format!("{SECRET}-refresh-{given}"),
                    "id_token": identity(&claims), "token_type": "Bearer", "expires_in": 3600, "scope": GRANTED,
                }),
            );
            odd(asked, &mut answer);
            answer
        });
        shell.configure(&format!(
            "[providers.chatgpt]\nbase_url = \"{}\"\nissuer = \"{}\"\n[requests]\nfirst_wait = 0.01\nattempts = 2\n",
            server.url, issuer.url
        ));
        ChatGpt { shell, issuer, nonce }
    }

    fn begin(&self) -> (SigningIn, String) {
        let login = SigningIn::start(&self.shell, &["chatgpt"]);
        let page = login.page();
        *self.nonce.lock().expect("no panic") = parameter(&page, "nonce");
        (login, page)
    }
}

/// Where the browser is sent from a page, with its state and more.
fn back(page: &str, more: &str) -> String {
    format!("{}?state={}&{more}", parameter(page, "redirect_uri"), parameter(page, "state"))
}

fn models() -> Value {
    json!({ "models": [
        { "slug": "m", "display_name": "M", "visibility": "list" }, { "slug": "secret", "visibility": "hide" },
    ] })
}

/// Broken builds: the placeholder is sent as the client id; another registration is asked for each time; the refused token is
/// sent again; a rotated refresh token is lost; hidden models are offered.
#[test]
fn a_chatgpt_plan_signs_in_registers_once_and_renews_its_token() {
    let expired =
        json!({ "error": { "message": "Provided authentication token is expired.", "code": "token_expired" } });
    let replies = vec![text("Hello from the plan."), refuses(401, &expired), text("Again."), refuses(401, &expired)];
    let server = Server::with_facts(replies, vec![("/v1/models", models())]);
    let odd: Odd = |asked, answer| {
        if field(asked, "refresh_token").ends_with("refresh-2") {
            *answer = (400, json!({ "error": "invalid_grant", "error_description": "the user has removed this app" }));
        }
    };
    let world = ChatGpt::new(&server, odd);
    let (login, page) = world.begin();
    assert!(page.starts_with(&format!("{}/api/accounts/authorize?", world.issuer.url)), "{page}");
    for (name, value) in [
        ("client_id", "dynamic_agent_client"),
        ("agent_name_hint", "pixir"),
        ("resource", "https://api.openai.com/v1"),
        ("scope", GRANTED),
        ("code_challenge_method", "S256"),
    ] {
        assert_eq!(parameter(&page, name), value);
    }
    let host = parameter(&page, "ext_agent_host_id");
    assert!(host.starts_with("urn:uuid:"), "{host}");
    assert!(browse(&format!("{}?state=of-another&code=x", parameter(&page, "redirect_uri"))).contains("404"));
    assert!(browse(&back(&page, &format!("code={SECRET}-code&client_id=oaiapp_1"))).contains("200"));
    let signed_in = login.end();
    assert_eq!(signed_in.code, 0, "{}", signed_in.stderr);
    assert!(!format!("{signed_in:?}").contains(SECRET));
    let exchanged = &world.issuer.asked()[0];
    assert_eq!(
        (exchanged.what.as_str(), field(exchanged, "client_id").as_str()),
        ("POST /api/accounts/oauth/token", "oaiapp_1")
    );
    assert_eq!(hash(&field(exchanged, "code_verifier")), parameter(&page, "code_challenge"));

    let shell = &world.shell;
    assert_eq!(ask(shell, "chatgpt").document()["output"], "Hello from the plan.");
    let listed = shell.run(["models", "list", "--online", "--json"]).stdout;
    assert!(listed.contains("\"chatgpt/m\"") && !listed.contains("chatgpt/secret"), "{listed}");
    // Revoked before it expires.
    assert_eq!(ask(shell, "chatgpt").document()["output"], "Again.");
    let renewed = world.issuer.asked().pop().expect("a renewal");
    let form = ["grant_type", "client_id", "resource"].map(|name| field(&renewed, name));
    assert_eq!(form, ["refresh_token", "oaiapp_1", "https://api.openai.com/v1"]);
    assert!(kept(shell).contains("refresh-2") && !kept(shell).contains("refresh-1"), "the rotated token is stored");
    // The user has ended it.
    let ended = ask(shell, "chatgpt");
    assert_eq!((ended.code, ended.error()["code"].as_str()), (4, Some("AUTH_REQUIRED")), "{}", ended.stderr);
    assert_eq!(ended.error()["remediation"], "pixir auth login chatgpt --browser");
    assert!(ended.stderr.contains("the user has removed this app"), "{}", ended.stderr);
    let sent: Vec<String> = server.keys().iter().map(|it| it.replace(SECRET, "")).collect();
    assert_eq!(sent, ["Bearer -access-1", "Bearer -access-1", "Bearer -access-2", "Bearer -access-2"]);
    // The next sign-in is for the same registration, on the same installation.
    let (login, page) = world.begin();
    assert_eq!((parameter(&page, "client_id").as_str(), parameter(&page, "ext_agent_host_id")), ("oaiapp_1", host));
    assert!(!page.contains("agent_name_hint"), "{page}");
    browse(&back(&page, "code=c&client_id=oaiapp_2"));
    assert!(login.end().stderr.contains("the answer is for another registration"));
}

/// Broken builds: any answer is a sign-in; a plan that was not granted is used; an error holds the code.
#[test]
fn every_fault_of_a_chatgpt_sign_in_has_its_own_words_and_stores_nothing() {
    let right = "code=sk-canary-code&client_id=oaiapp_1";
    let cases: [(&str, Odd, &str, &str); 10] = [
        ("error=access_denied", |_, _| {}, "DEVICE_AUTH_FAILED", "the issuer says: access_denied"),
        ("code=c", |_, _| {}, "NO_ACCOUNT_ID", "names no account registration"),
        ("code=c&client_id=dynamic_agent_client", |_, _| {}, "NO_ACCOUNT_ID", "names no account registration"),
        (
            right,
            |_, it| it.1["scope"] = "openid profile".into(),
            "ACCESS_DENIED",
            "did not permit the use of its ChatGPT plan",
        ),
        (right, |_, it| it.1["id_token"] = Value::Null, "NO_ACCOUNT_ID", "identifies no account"),
        (right, |_, it| it.1["id_token"] = "garbage".into(), "NO_ACCOUNT_ID", "identifies no account"),
        (
            right,
            |_, it| {
                it.1["id_token"] = identity(&json!({ "sub": "u", "aud": "oaiapp_1", "nonce": "of-another" })).into()
            },
            "DEVICE_AUTH_FAILED",
            "belongs to another sign-in",
        ),
        (
            right,
            |_, it| *it = (400, json!({ "error": "invalid_grant", "error_description": "sk-canary-code has expired" })),
            "DEVICE_AUTH_FAILED",
            "the issuer answered 400: [redacted] has expired",
        ),
        (right, |_, it| *it = (503, json!("<html>")), "DEVICE_AUTH_FAILED", "the issuer answered 503"),
        (right, |_, it| it.1["access_token"] = 7.into(), "DEVICE_AUTH_FAILED", "returned no token"),
    ];
    for (answer, odd, code, says) in cases {
        let server = Server::with_facts(vec![], vec![("/v1/models", models())]);
        let world = ChatGpt::new(&server, odd);
        let (login, page) = world.begin();
        browse(&back(&page, answer));
        let ran = login.end();
        let message = ran.error()["error"]["message"].as_str().unwrap_or_default().to_owned();
        assert_eq!((ran.code, ran.error()["code"].as_str()), (4, Some(code)), "{says}: {}", ran.stderr);
        assert!(message.contains(says) && !format!("{ran:?}").contains(SECRET), "{message}");
        assert!(!kept(&world.shell).contains("chatgpt"), "{}", kept(&world.shell));
    }
}

/// Broken build: a used-up plan is retried like a busy server.
#[test]
fn a_used_up_plan_says_so_at_once() {
    let limit = json!({ "error": { "type": "usage_limit_reached", "message": "The usage limit has been reached", "plan_type": "plus", "resets_in_seconds": 14000 } });
    let server = Server::with_facts(vec![refuses(429, &limit), text("never")], vec![("/v1/models", models())]);
    let world = ChatGpt::new(&server, |_, _| {});
    let (login, page) = world.begin();
    browse(&back(&page, "code=c&client_id=oaiapp_1"));
    assert_eq!(login.end().code, 0);
    let ran = ask(&world.shell, "chatgpt");
    assert_eq!((ran.code, ran.error()["code"].as_str()), (7, Some("USAGE_LIMIT_REACHED")), "{}", ran.stderr);
    assert_eq!(server.bodies().len(), 1);
}

/// GitHub: its device flow and the exchange of its token.
fn github(polls: Vec<(u16, Value)>, exchange: Vec<(u16, Value)>) -> Issuer {
    Issuer::start(move |asked, before| match asked.what.as_str() {
        "POST /login/device/code" => (
            200,
            json!({ "device_code": format!("{SECRET}-device"), "user_code": "WDJB-MJHT",
                "verification_uri": "https://github.com/login/device", "expires_in": 900, "interval": 0 }),
        ),
        "POST /login/oauth/access_token" => polls[before.min(polls.len() - 1)].clone(),
        "GET /copilot_internal/v2/token" => exchange[before.min(exchange.len() - 1)].clone(),
        _ => (404, json!({})),
    })
}

fn signed_in() -> (u16, Value) {
    (200, json!({ "access_token": format!("{SECRET}-github"), "token_type": "bearer", "scope": "read:user" }))
}

fn copilot_token(number: u8) -> (u16, Value) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
    (200, json!({ "token": format!("{SECRET}-copilot-{number}"), "expires_at": now + 1800, "refresh_in": 1500 }))
}

fn copilot(server: &Server, issuer: &Issuer) -> Shell {
    let shell = Shell::new(&[]);
    shell.configure(&format!(
        "[providers.copilot]\nbase_url = \"{}\"\nissuer = \"{}\"\nclient_id = \"Iv1.of-mine\"\n[requests]\nfirst_wait = 0.01\n",
        server.url, issuer.url
    ));
    shell
}

/// Broken builds: the token of GitHub is sent to the model server; the exchange is not repeated after a refusal; models that
/// the plan lacks are offered.
#[test]
fn copilot_signs_in_with_a_code_and_exchanges_its_token() {
    let chat = |id: &str, state: &str, picked: bool| json!({ "id": id, "policy": { "state": state }, "model_picker_enabled": picked, "capabilities": { "type": "chat" } });
    let models = json!({ "data": [
        chat("m", "enabled", true), chat("off", "disabled", true), chat("internal", "enabled", false),
        { "id": "text-embedding-3", "capabilities": { "type": "embeddings" } },
    ] });
    let unauthorized = json!({ "message": "unauthorized: token expired" });
    let replies = vec![text("Hello from Copilot."), refuses(401, &unauthorized), text("Again.")];
    let server = Server::with_facts(replies, vec![("/v1/models", models)]);
    let pending = (200, json!({ "error": "authorization_pending" }));
    let issuer = github(vec![pending, signed_in()], vec![copilot_token(1), copilot_token(2)]);
    let shell = copilot(&server, &issuer);
    let login = SigningIn::start(&shell, &["copilot"]);
    assert_eq!(login.shown["code"], "WDJB-MJHT");
    let ran = login.end();
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(!format!("{ran:?}").contains(SECRET));
    assert_eq!(field(&issuer.asked()[0], "client_id"), "Iv1.of-mine");
    assert_eq!(ask(&shell, "copilot").document()["output"], "Hello from Copilot.");
    assert_eq!(ask(&shell, "copilot").document()["output"], "Again.");
    let sent: Vec<String> = server.keys().iter().map(|it| it.replace(SECRET, "")).collect();
    assert_eq!(sent, ["Bearer -copilot-1", "Bearer -copilot-1", "Bearer -copilot-2"]);
    let listed = shell.run(["models", "list", "--online", "--json"]).stdout;
    assert!(listed.contains("\"copilot/m\""), "{listed}");
    assert!(["copilot/off", "copilot/internal", "embedding"].iter().all(|it| !listed.contains(it)), "{listed}");
}

/// Broken builds: an account without a plan is asked for a key; a fault of GitHub ends in a stored token.
#[test]
fn every_fault_of_a_copilot_sign_in_has_its_own_words() {
    let error = |name: &str| (200, json!({ "error": name, "error_description": format!("about {name}") }));
    let no_plan = json!({ "message": "Resource not accessible by integration", "error_details": { "message": "No access to GitHub Copilot found for sk-canary-github" } });
    for (poll, exchange, code, says) in [
        (error("access_denied"), copilot_token(1), "DEVICE_AUTH_FAILED", "the issuer denied access"),
        (error("expired_token"), copilot_token(1), "DEVICE_AUTH_FAILED", "the code has expired"),
        (error("incorrect_device_code"), copilot_token(1), "DEVICE_AUTH_FAILED", "about incorrect_device_code"),
        ((200, json!("garbage")), copilot_token(1), "DEVICE_AUTH_FAILED", "returned no token"),
        (signed_in(), (403, no_plan), "ACCESS_DENIED", "No access to GitHub Copilot found for [redacted]"),
        (signed_in(), (404, json!({ "message": "Not Found" })), "ACCESS_DENIED", "no access to Copilot: Not Found"),
        (signed_in(), (401, json!({ "message": "Bad credentials" })), "AUTH_REQUIRED", "Bad credentials"),
        (signed_in(), (200, json!({ "expires_at": 1 })), "DEVICE_AUTH_FAILED", "GitHub returned no token for Copilot"),
        (signed_in(), (500, json!("<html>")), "PROVIDER_UNAVAILABLE", "could not be renewed (500)"),
    ] {
        let server = Server::start(vec![]);
        let issuer = github(vec![poll], vec![exchange]);
        let shell = copilot(&server, &issuer);
        let ran = SigningIn::start(&shell, &["copilot"]).end();
        let message = ran.error()["error"]["message"].as_str().unwrap_or_default().to_owned();
        assert_eq!(ran.error()["code"].as_str(), Some(code), "{says}: {}", ran.stderr);
        assert!(message.contains(says) && !format!("{ran:?}").contains(SECRET), "{message}");
        assert_eq!(kept(&shell), "", "{says}");
    }
    // pixir has no client id of another program to sign in with.
    let shell = Shell::new(&[]);
    let ran = shell.run(["auth", "login", "copilot", "--json"]);
    assert_eq!((ran.code, ran.error()["code"].as_str()), (4, Some("DEVICE_CODE_UNSUPPORTED")), "{}", ran.stderr);
    assert!(ran.stderr.contains("`client_id` of an app of yours"), "{}", ran.stderr);
}

/// Broken builds: the address lacks the region; a region names another host; the key is sent in another header.
#[test]
fn bedrock_takes_its_bearer_key_in_the_region_of_the_environment() {
    let server = Server::start(vec![text("Hello from Bedrock.")]);
    let host = server.url.trim_end_matches("/v1").to_owned();
    let shell = Shell::new(&[]);
    let key = format!("{SECRET}-bedrock");
    let run = |more: &[(&str, &str)], args: &[&str]| {
        let mut command = shell.command(args);
        command.env("AWS_BEARER_TOKEN_BEDROCK", &key).envs(more.iter().copied());
        ran(command.output().expect("it runs"))
    };
    let asked = ["--provider", "bedrock", "--model", "anthropic.claude-sonnet-5-5", "--headless", "--json", "x"];
    let it = run(&[("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", &host)], &asked);
    assert_eq!(it.document()["output"], "Hello from Bedrock.", "{}", it.stderr);
    assert_eq!(server.keys(), [format!("Bearer {key}")]);
    assert!(server.heads().iter().any(|it| it.starts_with("POST /openai/v1/chat/completions")), "{:?}", server.heads());
    for region in ["eu-central-1", "us-east-1"] {
        let it = run(&[("AWS_REGION", region)], &["doctor", "--provider", "bedrock", "--model", "x", "--json"]);
        assert!(
            it.stdout.contains(&format!("https://bedrock-runtime.{region}.amazonaws.com/openai/v1")),
            "{}",
            it.stdout
        );
    }
    for wrong in [&[][..], &[("AWS_REGION", "")], &[("AWS_REGION", "evil.example.com/#")], &[("AWS_REGION", "a@b")]] {
        let it = run(wrong, &asked);
        assert_eq!(it.error()["code"], "CONFIG_INVALID", "{}", it.stderr);
        assert!(it.stderr.contains("AWS_REGION") && !it.stderr.contains("evil"), "{}", it.stderr);
    }
}
