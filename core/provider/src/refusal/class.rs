//! What a refusal is about, by its status, the server's names for it and its words. The rows are tried in order; each is made of
//! real bodies, which `corpus.ndjson` has.

use std::time::Duration;

use Class::*;

/// What a server's failure is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// Reasoning of earlier answers.
    Reasoning,
    /// The model takes no images.
    Images,
    /// One image, for its size or its bytes, or the number of images.
    Picture,
    /// The model, or the server as it was started, takes no tools.
    Tools,
    /// The request is too long for the window, or for what one minute allows.
    Window,
    /// The account has no credit, or has reached a limit of what it may spend.
    Credit,
    /// A limit that passes.
    Rate,
    Key,
    /// The country from which the request comes.
    Country,
    /// The network address from which the request comes.
    Address,
    /// The organization has not been verified, or not been activated.
    Organization,
    /// The account or project may not use this model or interface.
    Access,
    /// The account has no plan with this.
    Plan,
    /// A firewall or a proxy answered in place of the server.
    Blocked,
    /// A page to sign in to a network answered in place of the server.
    Portal,
    /// The proxy wants a password.
    Proxy,
    /// The provider's rules forbid the content.
    Policy,
    /// The request has a setting that the model does not take.
    Setting,
    Model,
    /// The server has too little memory for the model, or its program ended.
    Memory,
    /// The body has too many bytes.
    Size,
    Busy,
    /// None of these.
    Other,
}

/// For which statuses a row counts.
#[derive(Debug, Clone, Copy)]
enum On {
    Any,
    /// These, and failures without a status: those inside of a stream.
    Or(&'static [u16]),
    Only(&'static [u16]),
    Not(&'static [u16]),
}

impl On {
    fn has(self, status: Option<u16>) -> bool {
        match self {
            On::Any => true,
            On::Or(all) => status.is_none_or(|it| all.contains(&it)),
            On::Only(all) => status.is_some_and(|it| all.contains(&it)),
            On::Not(all) => status.is_none_or(|it| !all.contains(&it)),
        }
    }
}

/// One way to say something: the names or the words of the failure have all parts of one sign, which `&` separates. Signs are in
/// lower case.
struct Row(Class, On, Where, &'static [&'static str]);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Where {
    /// In the server's names for the failure: its code, type and status.
    Names,
    /// In its message.
    Words,
    Both,
}

use Where::{Both, Names, Words};

const ROWS: &[Row] = &[
    Row(Portal, On::Only(&[511]), Words, &[""]),
    Row(Proxy, On::Only(&[407]), Words, &[""]),
    Row(
        Reasoning,
        On::Any,
        Both,
        &[
            "invalid_encrypted_content",
            "invalid `signature` in `thinking`",
            "invalid signature in thinking",
            "bound to a different conversation",
            "function call is missing a thought_signature",
            "thought signature is not valid",
            "thinking&blocks&cannot be modified",
        ],
    ),
    Row(
        Reasoning,
        On::Or(&[400, 422]),
        Words,
        &[
            "reasoning_content&unsupported",
            "reasoning_content&not supported",
            "reasoning_content&not permitted",
            "reasoning_content&unrecognized",
            "reasoning_content&unexpected",
            "reasoning_content&extra",
            "reasoning_details&unsupported",
            "reasoning_details&not supported",
            "reasoning_details&not permitted",
            "reasoning_details&unrecognized",
            "reasoning_details&unexpected",
            "reasoning_details&extra",
        ],
    ),
    // The same request can be sent without the image; every later request would be refused with it.
    Row(
        Images,
        On::Not(&[401, 403, 429]),
        Words,
        &[
            "at most 0 image",
            "image input is not supported",
            "does not support image",
            "mmproj",
            "image_url is only supported",
            "support image input",
        ],
    ),
    Row(
        Picture,
        On::Or(&[400, 413, 422, 500]),
        Both,
        &[
            "image exceeds",
            "image dimensions exceed",
            "images exceed",
            "could not process image",
            "invalid image",
            "invalid_image",
            "image_parse_error",
            "too many images",
            "number of images",
            "at most&image",
            "image is too large",
            "image too large",
            "image_too_large",
            "image size",
            "unsupported image",
            "failed to decode image",
            "cannot identify image",
        ],
    ),
    Row(
        Tools,
        On::Not(&[401, 403, 429]),
        Words,
        &[
            "does not support tools",
            "does not support tool",
            "tools are not supported",
            "tool use is not supported",
            "tool calling is not supported",
            "tool calls are not supported",
            "function calling is not supported",
            "function calling is not enabled",
            "does not support function calling",
            "support tool use",
            "tools param requires --jinja",
            "requires --jinja flag",
            "enable-auto-tool-choice",
            "tool-call-parser",
            "tool_choice is not supported",
        ],
    ),
    // No wait makes one request smaller than a minute allows.
    Row(
        Window,
        On::Or(&[400, 413, 429]),
        Words,
        &["request too large&tokens per min", "request too large&tpm", "request too large&limit"],
    ),
    Row(
        Window,
        On::Any,
        Words,
        &["extra usage is required for long context", "long context beta is not yet available"],
    ),
    Row(
        Window,
        On::Or(&[400, 413, 422, 500]),
        Both,
        &[
            "context length of only",
            "context the overflows",
            "context_length_exceeded",
            "context_window_exceeded",
            "exceed_context_size",
            "maximum context length",
            "prompt is too long",
            "input is too long",
            "exceeds the context",
            "exceeds the available context",
            "context length is only",
            "exceed context limit",
            "maximum prompt length is",
            "greater than the context length",
            "exceeded model token limit",
            "context window exceeds",
            "exceeds the maximum number of tokens",
            "input token count&exceeds",
            "reduce the length of the messages",
            "too many input tokens",
        ],
    ),
    // What a gateway says that takes no request of this length, whatever the window of the model.
    Row(
        Size,
        On::Or(&[400, 413, 422, 500]),
        Both,
        &[
            "request_too_large",
            "entity too large",
            "payload too large",
            "content too large",
            "body too large",
            "body is too large",
            "exceeds the maximum size",
            "exceeded the maximum allowed",
            "request size exceeds",
            "length limit exceeded",
            "string_above_max_length",
        ],
    ),
    Row(
        Policy,
        On::Not(&[401]),
        Both,
        &[
            "content_policy_violation",
            "content_filter",
            "content management policy",
            "responsibleaipolicyviolation",
            "cyber_policy",
            "usage policies",
            "usage policy",
            "violates our",
            "data_inspection_failed",
            "output blocked by content filtering",
            "prohibited_content",
            "flagged as potentially violating",
        ],
    ),
    Row(
        Country,
        On::Not(&[401]),
        Both,
        &[
            "unsupported_country_region_territory",
            "country, region, or territory not supported",
            "user location is not supported",
            "location is not supported",
            "not available in your country",
            "not available in your region",
            "unsupported countries",
            "region is not supported",
            "not accessible from your country",
        ],
    ),
    Row(
        Address,
        On::Any,
        Both,
        &[
            "ip_not_authorized",
            "ip address is not authorized",
            "ip allowlist",
            "ip allow list",
            "ip address restriction",
            "your ip is not",
            "api_key_ip_address_blocked",
            "access from your ip",
            "virtual network/firewall rules",
            "public access is disabled",
            "vpc service controls",
            "request is prohibited by organization's policy",
        ],
    ),
    Row(
        Organization,
        On::Any,
        Both,
        &[
            "organization must be verified",
            "organization has been disabled",
            "organization_restricted",
            "your account is not active",
            "account has been deactivated",
            "account_deactivated",
            "account is suspended",
            "has not been used in project",
            "api has not been enabled",
            "it is disabled. enable it by visiting",
            "api_key_service_blocked",
        ],
    ),
    Row(
        Plan,
        On::Any,
        Both,
        &[
            "not subscribed",
            "usage_not_included",
            "no active subscription",
            "does not include",
            "subscription is required",
            "access to this endpoint is forbidden&copilot",
            "not licensed to use copilot",
        ],
    ),
    Row(
        Credit,
        On::Or(&[400, 401, 402, 403, 429]),
        Names,
        &[
            "insufficient_quota",
            "billing_not_active",
            "billing_hard_limit",
            "billing_error",
            "usage_limit",
            "quota_exceeded",
            "insufficient_balance",
            "spend_limit",
            "credits_exhausted",
        ],
    ),
    Row(
        Credit,
        On::Or(&[400, 401, 402, 403, 429]),
        Words,
        &[
            "credit balance is too low",
            "insufficient credits",
            "insufficient balance",
            "requires more credits",
            "never purchased credits",
            "can only afford",
            "billing hard limit has been reached",
            "account is not active, please check your billing",
            "you have reached your specified api usage limits",
            "you will regain access on",
            "spending limit",
            "monthly limit",
            "key limit exceeded",
            "exceeded_budget",
            "budget has been exceeded",
            "billing account&disabled",
            "billing to be enabled",
            "used all available credits",
            "prepayment credits are depleted",
        ],
    ),
    Row(Credit, On::Only(&[402]), Words, &[""]),
    Row(
        Key,
        On::Or(&[400, 401, 403]),
        Both,
        &[
            "invalid_api_key",
            "api key not valid",
            "api_key_invalid",
            "incorrect api key",
            "api key expired",
            "invalid x-api-key",
            "invalid bearer token",
            "no auth credentials found",
            "api key not found",
            "unregistered callers",
            "the security token included in the request is",
            "api key is missing",
            "invalid subscription key",
            "authentication_error",
            "unauthenticated",
        ],
    ),
    // Not each 403 is about the key.
    Row(
        Access,
        On::Or(&[403]),
        Both,
        &[
            "model_not_found",
            "does not have access to model",
            "you don't have access to the model",
            "you do not have access to the model",
            "not authorized to perform",
            "not authorized to access this model",
            "access to model",
            "has no access",
            "permission_denied",
            "permission_error",
            "missing scopes",
            "insufficient permissions",
            "model access is denied",
            "not allowed to access model",
            "allowed models",
            "moderation",
        ],
    ),
    Row(
        Blocked,
        On::Only(&[403, 405, 406, 418, 429, 503]),
        Words,
        &[
            "attention required! | cloudflare",
            "just a moment...",
            "you have been blocked",
            "cloudflare ray id",
            "zscaler",
            "access denied&edgesuite",
            "access denied&reference&#",
            "web application firewall",
            "request blocked&policy",
            "fortiguard",
            "blocked by your organization",
            "web page blocked",
            "blue coat",
            "netskope",
            "request rejected&support id",
            "url filtering",
        ],
    ),
    Row(
        Setting,
        On::Or(&[400, 422]),
        Words,
        &[
            "unsupported value&reasoning",
            "unsupported value&effort",
            "reasoning_effort",
            "reasoning.effort",
            "output_config.effort",
            "thinking.type",
            "budget_tokens",
            "unsupported parameter",
            "unrecognized request argument",
            "extra inputs are not permitted",
            "extra_forbidden",
            "unknown name",
        ],
    ),
    Row(
        Memory,
        On::Any,
        Words,
        &[
            "cuda out of memory",
            "out of memory",
            "requires more system memory",
            "insufficient memory",
            "runner process has terminated",
            "runner has unexpectedly stopped",
            "failed to load model",
            "model failed to load",
            "unable to allocate",
            "model has crashed",
        ],
    ),
];

/// The longest wait that a server asks for and that still is a limit of its rate.
const LONGEST: Duration = Duration::from_secs(3_600);

/// What is known of a failure.
pub(super) struct Told {
    pub(super) status: Option<u16>,
    /// The server's names for the failure.
    pub(super) names: String,
    /// Its message.
    pub(super) text: String,
    /// The wait that the server asks for.
    pub(super) wait: Option<Duration>,
}

/// Says what a failure is about.
pub(super) fn class(told: &Told) -> Class {
    let Told { status, wait, .. } = *told;
    let (names, text) = (told.names.to_lowercase(), told.text.to_lowercase());
    let any = |signs: &[&str]| signs.iter().any(|sign| names.contains(sign));
    let is_limit = status == Some(429) || any(&["rate_limit", "too_many_requests", "resource_exhausted"]);
    let found = ROWS.iter().find(|Row(_, on, place, signs)| {
        let has = |sign: &&str| {
            let in_names = || *place != Words && sign.split('&').all(|part| names.contains(part));
            let in_words = || *place != Names && sign.split('&').all(|part| text.contains(part));
            in_names() || in_words()
        };
        on.has(status) && signs.iter().any(has)
    });
    // A server that says when to try again knows better than its words, which often speak of a quota and of billing.
    let passes = is_limit && wait.is_some_and(|it| it <= LONGEST);
    match found.map(|it| it.0) {
        Some(Credit | Policy | Plan | Window) if passes && !text.contains("request too large") => return Rate,
        // The same words as for a spent account, without a delay: those of a plan without credit.
        None if is_limit && !passes && !any(&["rate_limit"]) && text.contains("exceeded your current quota") => {
            return Credit;
        }
        Some(class) => return class,
        None => {}
    }
    if is_limit {
        return Rate;
    }
    let lacks = [
        "not found",
        "does not exist",
        "invalid model",
        "unknown model",
        "no such model",
        "model is not supported",
        "is not a valid model",
    ];
    let lacks = text.contains("model") && lacks.iter().any(|sign| text.contains(sign));
    let no_model = any(&["model_not_found", "not_found_error"]) || lacks;
    match status {
        Some(401 | 403) => Key,
        Some(404) => Model,
        Some(400 | 422) | None if no_model => Model,
        Some(408 | 409 | 425 | 500..) => Busy,
        Some(413) => Size,
        // `api_error` is how some servers call every failure.
        None if any(&["authentication", "invalid_api_key", "permission_error"]) => Key,
        Some(400 | 422) => Other,
        _ if any(&BUSY) => Busy,
        _ => Other,
    }
}

const BUSY: [&str; 7] = [
    "overloaded",
    "server_error",
    "api_error",
    "unavailable",
    "internal_error",
    "timeout_error",
    "server_is_overloaded",
];
