//! Turns a server's failures into errors: HTTP statuses, errors inside a stream, and requested waits.

use reqwest::header::HeaderMap;
use serde_json::Value;

use super::invalid;
use super::starting::{IS_STARTING, is_starting};
use super::wait::{retry_after, wait_in};
use super::window::with_window;
use net::quoted;
use protocol::error::{Code, Error};
use protocol::event::Toolset;
use protocol::remedy::{ModelNeed, Remedy};
use protocol::tool_spec::ToolSpec;

mod class; // what a refusal is about
mod parameter; // parameters that a request can do without

use class::{Class, Told, class};
pub(super) use parameter::{Parameter, REFUSED_PARAMETER};

/// The detail of an error that names the tool whose definition the server refused.
pub const REFUSED_TOOL: &str = "tool";

/// Returns the error for a failure that the server reported inside a stream.
pub(super) fn told_in_stream(error: &Value) -> Error {
    let text = words(error).or_else(|| error.as_str()).map_or_else(|| error.to_string(), str::to_owned);
    let named = |value: &Value| match value {
        Value::String(name) => Some(name.to_lowercase()),
        Value::Number(status) => Some(status.to_string()),
        _ => None,
    };
    let names: Vec<String> = [&error["code"], &error["type"], &error["status"]].into_iter().filter_map(named).collect();
    let status = names.iter().find_map(|name| name.parse().ok());
    let told = Told { status, names: names.join(" "), wait: wait_in(&text), text: text.clone() };
    let (code, fix) = meaning(&told);
    with_window(Error::new(code, format!("the model's server reported: {}", quoted(&text)), fix), error, &text)
}

/// The fields in which servers put the words of an error.
const WORDS: [&str; 5] = ["message", "detail", "error_description", "msg", "reason"];

/// Returns the words of an error object.
fn words(error: &Value) -> Option<&str> {
    WORDS.iter().find_map(|key| error[*key].as_str())
}

/// Returns an event in the one form in which every dialect recognizes errors: `{"type": "error", "error": …}`.
/// `is_error` tells whether the server named the event so. All other events stay unchanged.
pub(super) fn error_event(is_error: bool, data: Value) -> Value {
    let of_error = |value: &Value| value.as_str().is_some_and(|text| text == "error" || text.ends_with("_error"));
    let has_words = words(&data).is_some();
    let bare = has_words && (of_error(&data["type"]) || of_error(&data["object"]) || !data["code"].is_null());
    // FastAPI servers send the words alone.
    let bare = bare || (data["detail"].is_string() && data.as_object().is_some_and(|it| it.len() == 1));
    let has_parts = ["choices", "response", "delta", "item", "content_block"].iter().any(|key| !data[*key].is_null());
    let nested = match &data["error"] {
        Value::String(text) => !text.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => false,
    };
    if nested {
        return serde_json::json!({ "type": "error", "error": data["error"] });
    }
    if is_error || (bare && !has_parts) { serde_json::json!({ "type": "error", "error": data }) } else { data }
}

/// Returns the error for a failure that the server reported with an HTTP status.
pub(super) fn told_with_status(host: &str, status: u16, headers: &HeaderMap, body: &str) -> Error {
    let error = error_in(body);
    let text = message_in(&error, body);
    let (code, fix) = match status {
        300..400 => moved(host, headers),
        _ => meaning(&with_status(status, headers, body)),
    };
    let mut told = Error::new(code, format!("{host} answered {status}: {text}"), fix).with("status", status);
    if let Some(id) = request_id(headers) {
        told = told.with("request_id", id);
    }
    if told.code == Code::ProviderUnavailable && is_starting(status, &whole_message(&error, body)) {
        told = told.with(IS_STARTING, true);
    }
    with_window(told, &error, &whole_message(&error, body))
}

/// What is known of a failure with an HTTP status.
fn with_status(status: u16, headers: &HeaderMap, body: &str) -> Told {
    let error = error_in(body);
    let names = format!("{} {} {}", error["code"], error["type"], error["status"]);
    let wait = retry_after(headers, jiff::Timestamp::now()).or_else(|| wait_in(body));
    Told { status: Some(status), names, text: whole_message(&error, body), wait }
}

/// A server that has moved within its host; any other address may be that of a network that wants a sign-in first, and a key does
/// not belong there.
fn moved(host: &str, headers: &HeaderMap) -> (Code, Remedy) {
    let location = headers.get("location").and_then(|v| v.to_str().ok()).unwrap_or_default();
    let bare = |host: &str| host.split(':').next().unwrap_or(host).trim_start_matches("www.").to_owned();
    let is_same = reqwest::Url::parse(location)
        .ok()
        .is_none_or(|to| to.host_str().is_some_and(|it| bare(it) == bare(host)) && to.scheme() == "https");
    if is_same {
        return (Code::ProviderHttpError, Remedy::SetBaseUrl { url: Some(quoted(location)) });
    }
    let fix = "another address answered in place of the server: if this network wants a sign-in, open any web page in a browser, \
               sign in, then try again; otherwise check `base_url`";
    (Code::NetworkBlocked, fix.into())
}

/// Returns the tool that a server names when it refuses a request: by its name, or by its number in the request.
pub(super) fn refused_tool(status: u16, body: &str, tools: &[ToolSpec]) -> Option<String> {
    if !matches!(status, 400 | 422) {
        return None;
    }
    let error = error_in(body);
    let text = format!("{} {}", error["param"].as_str().unwrap_or_default(), whole_message(&error, body));
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let named = text.split(|c| !is_of_name(c)).find_map(|word| tools.iter().find(|it| *it.name == *word));
    // `tools.3.custom.input_schema`, `tools[3].parameters`; where functions are in groups, the number is that of the function.
    let number = ["function_declarations", "functions", "tools"].iter().find_map(|list| {
        text.match_indices(list).find_map(|(at, _)| {
            let rest = text[at + list.len()..].strip_prefix(['.', '['])?;
            rest[..rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len())].parse::<usize>().ok()
        })
    });
    let found = named.or_else(|| tools.get(number?));
    found.map(|it| it.name.to_string())
}

/// Returns the parameter that a server refuses, if requests can do without it.
pub(super) fn refused_parameter(status: u16, body: &str) -> Option<Parameter> {
    let error = error_in(body);
    parameter::refused_parameter(status, error["param"].as_str().unwrap_or_default(), &whole_message(&error, body))
}

/// Returns the request id that a Provider's support needs.
pub(super) fn request_id(headers: &HeaderMap) -> Option<String> {
    let id = ["x-request-id", "request-id"].iter().find_map(|name| headers.get(*name))?;
    Some(quoted(id.to_str().ok()?))
}

/// The error for what a failure is about.
fn meaning(told: &Told) -> (Code, Remedy) {
    let other = || Remedy::ChooseModel { need: ModelNeed::Any };
    let or_other = |text: &str| Remedy::any_of([text.into(), other()]);
    match class(told) {
        Class::Reasoning => (Code::ReasoningRejected, "send the message again".into()),
        Class::Images => {
            let set = "set `vision = false` for this model in config.toml".into();
            let choose = Remedy::ChooseModel { need: ModelNeed::Images };
            (Code::VisionUnsupported, Remedy::any_of([choose, set]))
        }
        Class::Tools => (Code::ToolsUnsupported, Remedy::any_of([tools_fix(&told.text), other()])),
        Class::Window => {
            let larger = Remedy::ChooseModel { need: ModelNeed::LargerWindow };
            (Code::ContextOverflow, Remedy::any_of([Remedy::Compact, larger]))
        }
        Class::Credit => {
            (Code::UsageLimitReached, or_other("check the plan, the credit and the limits of this account"))
        }
        Class::Rate => (Code::RateLimited, "wait a moment, then try again".into()),
        Class::Key => (Code::AuthRequired, Remedy::Login { provider: None }),
        Class::Country => (Code::AccessDenied, or_other("connect from a country or region that this provider serves")),
        Class::Address => {
            (Code::AccessDenied, or_other("let the administrator of the account allow the address of your network"))
        }
        Class::Organization => {
            (Code::AccessDenied, or_other("verify or activate the organization or project in the provider's settings"))
        }
        Class::Access => {
            (Code::AccessDenied, or_other("let the administrator of the account give this key access to the model"))
        }
        Class::Plan => (Code::AccessDenied, or_other("check what the plan of this account includes")),
        Class::Blocked => (
            Code::NetworkBlocked,
            "a firewall or proxy answered in place of the server: let your network's administrator allow the server"
                .into(),
        ),
        Class::Portal => (
            Code::NetworkBlocked,
            "this network wants a sign-in: open any web page in a browser, sign in, then try again".into(),
        ),
        Class::Proxy => {
            (Code::NetworkBlocked, "sign in to the proxy: HTTPS_PROXY=http://user:password@host:port".into())
        }
        Class::Policy => (Code::Refused, or_other("say what you want in other words")),
        Class::Setting => (
            Code::ProviderHttpError,
            or_other("choose another effort, or correct the settings of this model in config.toml"),
        ),
        Class::Model if told.status == Some(404) => {
            (Code::ModelNotSupported, Remedy::any_of([other(), Remedy::CheckEndpoint]))
        }
        Class::Model => (Code::ModelNotSupported, other()),
        Class::Memory => {
            (Code::ProviderHttpError, or_other("give the server a smaller window, or more memory for this model"))
        }
        Class::Picture => (Code::ImageRefused, "send a smaller image, or none".into()),
        Class::Size => {
            let gateway = "raise the body limit of the gateway in front of the model, for example client_max_body_size";
            (Code::RequestTooLarge, Remedy::any_of(["send less at once".into(), gateway.into()]))
        }
        Class::Busy => (Code::ProviderUnavailable, "try again in a moment".into()),
        Class::Other => (Code::ProviderHttpError, Remedy::CheckEndpoint),
    }
}

/// How a server that can take tools is made to take them.
fn tools_fix(text: &str) -> Remedy {
    let text = text.to_lowercase();
    if text.contains("jinja") {
        "give llama-server its option for Jinja templates when it is started".into()
    } else if text.contains("tool-call-parser") || text.contains("auto-tool-choice") {
        "give vLLM the parser of the model's calls when it is started".into()
    } else {
        Remedy::SetToolset { toolset: Toolset::None }
    }
}

/// Returns the error object of a body, in any of the usual forms, also inside an event.
fn error_in(body: &str) -> Value {
    let text = body.trim_start();
    let text = text.strip_prefix("data:").map_or(text, |data| data.lines().next().unwrap_or_default());
    let json: Value = serde_json::from_str(text).unwrap_or_default();
    // Some gateways wrap the error in a list of one.
    let json = if json.is_array() { json[0].clone() } else { json };
    if json["error"].is_null() { json } else { json["error"].clone() }
}

/// Returns the server's message for classification. Other fields are ignored: some servers repeat the request in them.
fn whole_message(error: &Value, body: &str) -> String {
    let faults = faults(&error["detail"]);
    let told = words(error).or_else(|| error.as_str()).or(faults.as_deref());
    told.unwrap_or(body).chars().take(2_000).collect()
}

/// The words of FastAPI's list of faults: where each is, and what it is. The field `input` repeats the request.
fn faults(detail: &Value) -> Option<String> {
    let told = detail.as_array()?.iter().map(|it| {
        let place = it["loc"].as_array().into_iter().flatten().map(|part| part.as_str().unwrap_or_default());
        format!("{}: {}", place.collect::<Vec<_>>().join("."), it["msg"].as_str().unwrap_or_default())
    });
    Some(told.collect::<Vec<_>>().join("; "))
}

fn message_in(error: &Value, body: &str) -> String {
    match words(error).or_else(|| error.as_str()) {
        Some(text) => quoted(text),
        None if body.trim().is_empty() => "(no explanation)".into(),
        None if body.trim_start().starts_with('<') => page_title(body),
        None => quoted(body),
    }
}

/// Returns the title of an HTML page, because its markup is useless to the user.
fn page_title(page: &str) -> String {
    let lower = page.to_lowercase();
    let within = |tag: &str| {
        let start = lower.find(&format!("<{tag}>"))? + tag.len() + 2;
        let end = start + lower.get(start..)?.find("</")?;
        Some(page.get(start..end)?.trim()).filter(|title| !title.is_empty()).map(quoted)
    };
    within("title").or_else(|| within("h1")).map_or_else(|| "a page".to_owned(), |title| format!("a page: {title}"))
}

/// Returns the error for a stream that ended before the answer did.
pub(super) fn closed(why: &str) -> Error {
    Error::new(
        Code::StreamClosed,
        format!("the connection closed before the answer was complete: {}", quoted(why)),
        "send the message again; the part that arrived is kept",
    )
}

/// Returns the error for a response with a success status whose body is not an event stream.
pub(super) fn no_stream(host: &str, kind: &str, headers: &HeaderMap, body: &str) -> Error {
    let error = error_in(body);
    if error["message"].is_string() && !error["code"].is_null() {
        return told_in_stream(&error);
    }
    let kind = if kind.is_empty() { "something" } else { kind };
    let error = invalid(format!("{host} returned {} instead of an event stream: {}", quoted(kind), quoted(body)));
    match request_id(headers) {
        Some(id) => error.with("request_id", id),
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Broken builds: a part of a name counts as the name; the group that Gemini has in front counts as the number.
    #[test]
    fn a_refusal_names_a_tool_by_its_name_or_by_its_number() {
        let tool = |name: &'static str| ToolSpec {
            name: name.into(),
            description: "".into(),
            parameters: Value::Null.into(),
            reads_only: true,
            streams: "".into(),
        };
        let tools = ["bash", "git__log", "git__log_all"].map(tool);
        let named = |status: u16, message: &str, param: &str| {
            let body = json!({ "error": { "message": message, "param": param } }).to_string();
            refused_tool(status, &body, &tools).unwrap_or_default()
        };
        let gemini = "* GenerateContentRequest.tools[0].function_declarations[1].parameters: no";
        assert_eq!(named(400, "Invalid schema for function 'git__log_all': no type", "tools[1].x"), "git__log_all");
        assert_eq!(named(422, "tools.1.custom.input_schema: JSON schema is invalid", ""), "git__log");
        assert_eq!(named(400, "Invalid value", "tools[2].function.parameters"), "git__log_all");
        assert_eq!(named(400, gemini, ""), "git__log");
        for (status, message) in [
            (400, "the model git__lo has no tools"),
            (400, "tools[9].name"),
            (500, "git__log"),
            (400, "tools are not supported"),
        ] {
            assert_eq!(named(status, message, ""), "", "{message}");
        }
    }

    /// Real refusals: the body, what it is about, and its code. None that lasts is tried again.
    ///
    /// Broken builds: a word decides before a delay that the server gives; `api_error` alone counts as overload; each 403 is
    /// about the key; the address of a sign-in page becomes one to send a key to.
    #[test]
    fn each_real_refusal_has_its_code_and_a_remedy_that_fits() {
        #[derive(serde::Deserialize)]
        struct Refusal {
            of: String,
            status: u16,
            #[serde(default)]
            headers: std::collections::BTreeMap<String, String>,
            body: String,
            code: String,
            class: String,
        }
        let all: Vec<Refusal> = include_str!("refusal/corpus.ndjson")
            .lines()
            .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}")))
            .collect();
        assert!(all.len() >= 150, "{}", all.len());
        let mut wrong = Vec::new();
        for it in &all {
            let headers = it.headers.iter().map(|(name, value)| {
                (name.parse::<reqwest::header::HeaderName>().expect("a name"), value.parse().expect("a value"))
            });
            let headers = headers.collect();
            let told = told_with_status("api.example.com", it.status, &headers, &it.body);
            let about = format!("{:?}", class(&with_status(it.status, &headers, &it.body)));
            if about != it.class && !(300..400).contains(&it.status) {
                wrong.push(format!("{} {}: {about} in place of {}: {}", it.of, it.status, it.class, it.body));
            }
            if told.code.name() != it.code {
                wrong.push(format!(
                    "{} {}: {} in place of {}: {}",
                    it.of,
                    it.status,
                    told.code.name(),
                    it.code,
                    it.body
                ));
            }
            let fix = told.remedy.plain();
            assert!(!fix.is_empty() && !fix.contains("10.0.0.1") && !fix.contains("wifi.example"), "{fix}");
            let speaks_of_keys =
                fix.contains("key") && told.code == Code::AccessDenied && !fix.contains("give this key");
            assert!(!speaks_of_keys, "{} {}: {fix}", it.of, it.status);
            let passes = matches!(it.class.as_str(), "Rate" | "Busy");
            let is_retried = super::super::retry::may_pass(&told.into());
            assert_eq!(is_retried, passes, "{} {}: {}", it.of, it.status, it.body);
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn one_failure_has_many_spellings_and_one_meaning() {
        let rows = [
            (400, json!({"error": {"code": "context_length_exceeded", "message": "x"}}), Code::ContextOverflow),
            (
                400,
                json!({"error": {"code": 400, "type": "exceed_context_size_error", "message": "the request exceeds", "n_ctx": 8192}}),
                Code::ContextOverflow,
            ),
            (
                400,
                json!({"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long: 210000 tokens > 200000 maximum"}}),
                Code::ContextOverflow,
            ),
            (
                500,
                json!({"error": {"message": "upstream: This model's maximum context length is 8192 tokens"}}),
                Code::ContextOverflow,
            ),
            (413, json!({"error": {"type": "request_too_large", "message": "x"}}), Code::RequestTooLarge),
            (429, json!({"error": {"message": "rate limit: prompt is too long for your tier"}}), Code::RateLimited),
            (429, json!({"error": {"code": "insufficient_quota", "message": "x"}}), Code::UsageLimitReached),
            (429, json!({"error": {"type": "rate_limit_error", "message": "x"}}), Code::RateLimited),
            (
                429,
                json!({"error": {"code": "rate_limit_exceeded", "message": "Rate limit reached, see https://x.com/account/billing"}}),
                Code::RateLimited,
            ),
            (429, json!({"error": {"message": "You exceeded your current quota"}}), Code::UsageLimitReached),
            (400, json!({"error": {"message": "billing is not a field"}}), Code::ProviderHttpError),
            (
                400,
                json!({"error": {"message": "property 'reasoning_content' is unsupported"}}),
                Code::ReasoningRejected,
            ),
            (
                500,
                json!({"error": {"message": "image input is not supported - hint: you may need to provide the mmproj"}}),
                Code::VisionUnsupported,
            ),
            (
                400,
                json!({"error": {"message": "You passed 9 input tokens, the model's context length is only 8"}}),
                Code::ContextOverflow,
            ),
            (
                400,
                json!({"type": "error", "error": {"type": "invalid_request_error", "message": "input length and `max_tokens` exceed context limit: 9 + 9 > 8"}}),
                Code::ContextOverflow,
            ),
            (
                400,
                json!({"error": {"code": "invalid_encrypted_content", "message": "The encrypted content could not be verified"}}),
                Code::ReasoningRejected,
            ),
            (
                400,
                json!({"error": {"message": "messages.1.content.0: Invalid `signature` in `thinking` block"}}),
                Code::ReasoningRejected,
            ),
            (
                400,
                json!({"error": {"message": "Unsupported parameter: 'temperature' is not supported with this model."}}),
                Code::ProviderHttpError,
            ),
            (
                400,
                json!({"type": "error", "error": {"type": "invalid_request_error", "message": "Your credit balance is too low"}}),
                Code::UsageLimitReached,
            ),
            (402, json!({"error": "pay"}), Code::UsageLimitReached),
            (401, json!({"error": {"message": "bad key"}}), Code::AuthRequired),
            (403, json!({"detail": "no"}), Code::AuthRequired),
            (404, json!({"error": {"message": "model `x` not found"}}), Code::ModelNotSupported),
            (400, json!({"error": {"message": "The model `x` does not exist"}}), Code::ModelNotSupported),
            (
                400,
                json!({"error": {"message": "Invalid model name passed in model=x. Call `/v1/models` to view available models"}}),
                Code::ModelNotSupported,
            ),
            (422, json!({"detail": "temperature"}), Code::ProviderHttpError),
            (408, json!({}), Code::ProviderUnavailable),
            (503, json!([{"error": {"message": "busy"}}]), Code::ProviderUnavailable),
            (
                529,
                json!({"type": "error", "error": {"type": "overloaded_error", "message": "x"}}),
                Code::ProviderUnavailable,
            ),
        ];
        for (status, body, code) in rows {
            let told = told_with_status("h", status, &HeaderMap::new(), &body.to_string());
            assert_eq!(told.code, code, "{status} {body}: {}", told.message);
        }
        let inside = [
            (json!({"code": "429", "message": "x"}), Code::RateLimited),
            (json!({"code": 500, "message": "x"}), Code::ProviderUnavailable),
            (json!({"code": "rate_limit_exceeded", "message": "x"}), Code::RateLimited),
            (json!({"type": "overloaded_error", "message": "x"}), Code::ProviderUnavailable),
            (json!({"type": "invalid_request_error", "message": "prompt is too long: 9 > 8"}), Code::ContextOverflow),
            (json!({"code": 400, "message": "x", "type": "exceed_context_size_error"}), Code::ContextOverflow),
            (json!({"type": "authentication_error", "message": "x"}), Code::AuthRequired),
            (json!("it broke"), Code::ProviderHttpError),
            (
                json!({"message": "The model produced output that does not match the expected peg-native format"}),
                Code::ProviderHttpError,
            ),
        ];
        for (error, code) in inside {
            assert_eq!(told_in_stream(&error).code, code, "{error}");
        }
        let event = told_with_status(
            "h",
            500,
            &HeaderMap::new(),
            "data: {\"error\":{\"message\":\"boom\"}}\n\ndata: [DONE]\n\n",
        );
        assert_eq!(event.message, "h answered 500: boom");
    }
}
