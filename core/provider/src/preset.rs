//! Presets of the usual servers: their addresses, dialects and quirks, as data.

use super::dialect::Dialect;

/// A server that many users have.
#[derive(Debug)]
pub struct Preset {
    /// The Provider's name in `model = "name/…"`.
    pub name: &'static str,
    /// The dialect of the server.
    pub dialect: Dialect,
    /// The default base URL; empty if every account has its own.
    pub base_url: &'static str,
    /// The environment variable that overrides the base URL.
    pub base_url_variable: Option<&'static str>,
    /// The environment variable that holds the key; `None` if the server needs none.
    pub key_variable: Option<&'static str>,
    /// The path and query that a base URL from the variable lacks, because the variable usually holds only the host.
    pub completes: Option<&'static str>,
    /// The header of the key, if it is not the dialect's.
    pub key_header: Option<&'static str>,
    /// The default model; `None` means the first that the server lists.
    pub model: Option<&'static str>,
    /// A path that only a valid key can read, for servers whose list of models is public.
    pub check_path: Option<&'static str>,
    /// Headers of every request.
    pub headers: &'static [(&'static str, &'static str)],
    /// How users sign in, besides with a key.
    pub sign_in: Option<PresetSignIn>,
    /// Deviations from the dialect.
    pub quirks: Quirks,
    /// The command that gets a model, for a server of the user.
    pub gets_model: Option<&'static str>,
}

/// How the users of a preset sign in. The user's settings can name another issuer, client id and scope.
#[derive(Debug)]
pub struct PresetSignIn {
    /// The way.
    pub flow: Flow,
    /// The issuer; the paths of its endpoints belong to the way.
    pub issuer: &'static str,
    /// The requested scope.
    pub scope: Option<&'static str>,
}

/// A way to sign in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// A code to enter on any device (RFC 8628), at an issuer that describes itself.
    Device,
    /// The same at GitHub, whose token is exchanged for one of Copilot.
    Copilot,
    /// A browser, whose code buys a key of OpenRouter.
    OpenRouter,
    /// A browser, whose code is exchanged for a token of a ChatGPT plan.
    ChatGpt,
}

impl Flow {
    /// Whether pixir must be registered with the issuer by the user. No client id of another program is built in.
    pub const fn needs_client_id(self) -> bool {
        match self {
            Flow::Device | Flow::Copilot => true,
            Flow::OpenRouter | Flow::ChatGpt => false,
        }
    }

    /// Whether it ends in a browser that comes back to this machine.
    pub const fn is_in_browser(self) -> bool {
        match self {
            Flow::Device | Flow::Copilot => false,
            Flow::OpenRouter | Flow::ChatGpt => true,
        }
    }
}

/// A server's deviations from its dialect. Most are about Chat Completions, which every server implements differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quirks {
    /// The field in which a request sets the effort.
    pub effort: EffortField,
    /// Reasoning is sent back to the model that produced it, in the fields in which the server returned it.
    pub gives_reasoning_back: bool,
    /// The server signs its calls, and refuses those that it has not signed.
    pub signs_calls: bool,
    /// The server accepts `prompt_cache_key`.
    pub cache_key: bool,
    /// The server passes cache marks on to models that need them.
    pub cache_breakpoints: bool,
    /// A request may ask for usage in the stream. Servers that refuse the field send usage anyway.
    pub asks_for_usage: bool,
    /// The server reports the cost of a request if the request asks for it.
    pub usage_with_cost: bool,
    /// The server offers reasoning summaries (Responses only). A single account may still lack them.
    pub reasoning_summaries: bool,
    /// The server may run with a smaller window than its models support, and does not report it.
    pub hides_window: bool,
}

/// The field in which a request sets the effort.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EffortField {
    /// `reasoning_effort: "high"`.
    ReasoningEffort,
    /// `reasoning: {effort: "high"}`.
    Reasoning,
}

/// The quirks of a typical server.
pub const PLAIN: Quirks = Quirks {
    effort: EffortField::ReasoningEffort,
    gives_reasoning_back: true,
    signs_calls: false,
    cache_key: false,
    cache_breakpoints: false,
    asks_for_usage: true,
    usage_with_cost: false,
    reasoning_summaries: true,
    hides_window: false,
};

/// All presets; the first one that is set up is chosen.
pub const PRESETS: &[Preset] = &[
    Preset {
        name: "openai",
        dialect: Dialect::Responses,
        base_url: "https://api.openai.com/v1",
        base_url_variable: Some("OPENAI_BASE_URL"),
        key_variable: Some("OPENAI_API_KEY"),
        completes: None,
        key_header: None,
        model: Some("gpt-6.2-sol"),
        check_path: None,
        headers: &[],
        sign_in: None,
        quirks: Quirks { cache_key: true, ..PLAIN },
        gets_model: None,
    },
    Preset {
        name: "anthropic",
        dialect: Dialect::Anthropic,
        base_url: "https://api.anthropic.com/v1",
        base_url_variable: Some("ANTHROPIC_BASE_URL"),
        key_variable: Some("ANTHROPIC_API_KEY"),
        completes: None,
        key_header: None,
        model: Some("claude-sonnet-5-5"),
        check_path: None,
        // Models with a reasoning budget reason between calls only with this header; the others always do.
        headers: &[("anthropic-beta", "interleaved-thinking-2025-05-14")],
        sign_in: None,
        quirks: PLAIN,
        gets_model: None,
    },
    Preset {
        name: "openrouter",
        dialect: Dialect::Chat,
        base_url: "https://openrouter.ai/api/v1",
        base_url_variable: Some("OPENROUTER_BASE_URL"),
        key_variable: Some("OPENROUTER_API_KEY"),
        completes: None,
        key_header: None,
        model: Some("openrouter/auto"),
        check_path: Some("/key"),
        headers: &[("x-title", "pixir")],
        // https://openrouter.ai/docs/oauth: for every program, without a registration.
        sign_in: Some(PresetSignIn { flow: Flow::OpenRouter, issuer: "https://openrouter.ai", scope: None }),
        quirks: Quirks { effort: EffortField::Reasoning, cache_breakpoints: true, usage_with_cost: true, ..PLAIN },
        gets_model: None,
    },
    Preset {
        quirks: Quirks { signs_calls: true, ..PLAIN },
        ..remote(
            "gemini",
            "https://generativelanguage.googleapis.com/v1beta/openai",
            "GEMINI_API_KEY",
            "gemini-3.8-flash",
        )
    },
    remote("groq", "https://api.groq.com/openai/v1", "GROQ_API_KEY", "openai/gpt-oss-120b"),
    remote("deepseek", "https://api.deepseek.com/v1", "DEEPSEEK_API_KEY", "deepseek-chat"),
    remote("xai", "https://api.x.ai/v1", "XAI_API_KEY", "grok-4.7"),
    Preset {
        quirks: Quirks { asks_for_usage: false, ..PLAIN },
        ..remote("mistral", "https://api.mistral.ai/v1", "MISTRAL_API_KEY", "devstral-medium-latest")
    },
    remote("moonshot", "https://api.moonshot.ai/v1", "MOONSHOT_API_KEY", "kimi-k3"),
    remote("zai", "https://api.z.ai/api/paas/v4", "ZAI_API_KEY", "glm-5.3"),
    Preset {
        base_url_variable: Some("AZURE_OPENAI_ENDPOINT"),
        completes: Some("/openai/v1?api-version=preview"),
        key_header: Some("api-key"),
        // Its models are the account's own deployments.
        model: None,
        ..remote("azure", "", "AZURE_OPENAI_API_KEY", "")
    },
    Preset {
        // https://docs.aws.amazon.com/bedrock/latest/userguide/api-keys-use.html: the key is a bearer token.
        base_url_variable: Some("AWS_ENDPOINT_URL_BEDROCK_RUNTIME"),
        completes: Some("/openai/v1"),
        // Which models there are depends on the region and the account.
        model: None,
        ..remote("bedrock", "https://bedrock-runtime.{region}.amazonaws.com/openai/v1", "AWS_BEARER_TOKEN_BEDROCK", "")
    },
    Preset {
        // https://developers.openai.com/siwc/token-sharing-open-source: for open-source programs, which register themselves.
        // Requests go to the public API; its list of models is that of the plan.
        dialect: Dialect::Responses,
        base_url_variable: None,
        sign_in: Some(PresetSignIn {
            flow: Flow::ChatGpt,
            issuer: "https://auth.openai.com",
            scope: Some("openid profile email offline_access resource.invoke chatgpt.tokens.use.direct"),
        }),
        model: Some("gpt-6.2-sol"),
        quirks: Quirks { cache_key: true, ..PLAIN },
        ..local("chatgpt", "https://api.openai.com/v1")
    },
    Preset {
        sign_in: Some(PresetSignIn { flow: Flow::Copilot, issuer: "https://github.com", scope: Some("read:user") }),
        model: Some("gpt-5-mini"),
        headers: &[
            ("editor-version", concat!("pixir/", env!("CARGO_PKG_VERSION"))),
            ("openai-intent", "conversation-edits"),
        ],
        ..local("copilot", "https://api.githubcopilot.com")
    },
    Preset {
        quirks: Quirks { hides_window: true, ..PLAIN },
        gets_model: Some("ollama pull NAME"),
        ..local("ollama", "http://127.0.0.1:11434/v1")
    },
    Preset { gets_model: Some("llama-server --jinja -hf NAME"), ..local("llama.cpp", "http://127.0.0.1:8080/v1") },
    Preset { gets_model: Some("lms get NAME"), ..local("lmstudio", "http://127.0.0.1:1234/v1") },
    Preset { gets_model: Some("vllm serve NAME"), ..local("vllm", "http://127.0.0.1:8000/v1") },
];

const fn remote(name: &'static str, base_url: &'static str, key_variable: &'static str, model: &'static str) -> Preset {
    Preset { key_variable: Some(key_variable), model: Some(model), ..local(name, base_url) }
}

const fn local(name: &'static str, base_url: &'static str) -> Preset {
    Preset {
        name,
        dialect: Dialect::Chat,
        base_url,
        base_url_variable: None,
        key_variable: None,
        completes: None,
        key_header: None,
        model: None,
        check_path: None,
        headers: &[],
        sign_in: None,
        quirks: PLAIN,
        gets_model: None,
    }
}

impl Preset {
    /// Whether its server is elsewhere, so that it needs a key or a sign-in.
    pub(super) const fn is_remote(&self) -> bool {
        self.key_variable.is_some() || self.sign_in.is_some()
    }

    /// Returns a base URL from the variable with the path and query that it lacks.
    pub(super) fn completed(&self, base_url: &str) -> String {
        let host = base_url.trim_end_matches('/');
        let is_bare = host.split_once("://").is_some_and(|(_, rest)| !rest.contains(['/', '?']));
        match self.completes.filter(|_| is_bare) {
            Some(rest) => format!("{host}{rest}"),
            None => base_url.to_owned(),
        }
    }
}

/// Whether a host is the public server of a preset.
pub(super) fn is_public(host: &str) -> bool {
    let public = PRESETS.iter().filter(|it| it.is_remote());
    let mut hosts = public.filter_map(|it| it.base_url.split("://").nth(1)?.split('/').next());
    let is_bedrock = host.starts_with("bedrock-runtime.") && host.ends_with(".amazonaws.com");
    hosts.any(|it| it == host) || host.ends_with(".openai.azure.com") || is_bedrock
}

/// Returns the preset with this name.
pub fn preset(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|it| it.name == name)
}
