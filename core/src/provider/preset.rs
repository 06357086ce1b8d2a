//! The usual servers, as data: where they are, what they speak, and what is peculiar about them.

use super::dialect::Dialect;

/// A server that many people use.
#[derive(Debug)]
pub struct Preset {
    /// What `model = "name/…"` calls it.
    pub name: &'static str,
    /// How it is spoken to.
    pub dialect: Dialect,
    /// Where it is.
    pub base_url: &'static str,
    /// The variable that says that it is elsewhere.
    pub base_url_variable: Option<&'static str>,
    /// The variable that holds its key; without, it needs none.
    pub key_variable: Option<&'static str>,
    /// The model to begin with; without, the first that it lists.
    pub model: Option<&'static str>,
    /// What only a good key is answered, where the list of models is for everybody.
    pub check_path: Option<&'static str>,
    /// Sent with every request.
    pub headers: &'static [(&'static str, &'static str)],
    /// What is peculiar.
    pub quirks: Quirks,
}

/// What is peculiar about a server. Most of it is about Chat Completions, which everybody speaks differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quirks {
    /// How an effort is asked for.
    pub effort: EffortField,
    /// Thinking is given back to the model that thought it, in the fields in which it came.
    pub gives_reasoning_back: bool,
    /// It takes `prompt_cache_key`.
    pub cache_key: bool,
    /// It passes cache marks on to models that need them.
    pub cache_breakpoints: bool,
    /// It says what a request cost, when asked to.
    pub usage_with_cost: bool,
    /// In Responses, summaries of the thinking may be asked for; some accounts may not.
    pub reasoning_summaries: bool,
    /// What it was started with is less than what its models could hold, and it does not say what.
    pub hides_window: bool,
}

/// How an effort is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EffortField {
    /// `reasoning_effort: "high"`.
    ReasoningEffort,
    /// `reasoning: {effort: "high"}`.
    Reasoning,
}

/// A server that is like most.
pub const PLAIN: Quirks = Quirks {
    effort: EffortField::ReasoningEffort,
    gives_reasoning_back: true,
    cache_key: false,
    cache_breakpoints: false,
    usage_with_cost: false,
    reasoning_summaries: true,
    hides_window: false,
};

/// Every preset; of those that are set up, the first is chosen.
pub const PRESETS: &[Preset] = &[
    Preset {
        name: "openai",
        dialect: Dialect::Responses,
        base_url: "https://api.openai.com/v1",
        base_url_variable: Some("OPENAI_BASE_URL"),
        key_variable: Some("OPENAI_API_KEY"),
        model: Some("gpt-6.2-sol"),
        check_path: None,
        headers: &[],
        quirks: Quirks { cache_key: true, ..PLAIN },
    },
    Preset {
        name: "anthropic",
        dialect: Dialect::Anthropic,
        base_url: "https://api.anthropic.com/v1",
        base_url_variable: Some("ANTHROPIC_BASE_URL"),
        key_variable: Some("ANTHROPIC_API_KEY"),
        model: Some("claude-sonnet-5-5"),
        check_path: None,
        // Models that take a budget think between calls only when asked to; the others do anyway.
        headers: &[("anthropic-beta", "interleaved-thinking-2025-05-14")],
        quirks: PLAIN,
    },
    Preset {
        name: "openrouter",
        dialect: Dialect::Chat,
        base_url: "https://openrouter.ai/api/v1",
        base_url_variable: Some("OPENROUTER_BASE_URL"),
        key_variable: Some("OPENROUTER_API_KEY"),
        model: Some("openrouter/auto"),
        check_path: Some("/key"),
        headers: &[("x-title", "pixir")],
        quirks: Quirks { effort: EffortField::Reasoning, cache_breakpoints: true, usage_with_cost: true, ..PLAIN },
    },
    Preset { quirks: Quirks { hides_window: true, ..PLAIN }, ..local("ollama", "http://127.0.0.1:11434/v1") },
    local("llama.cpp", "http://127.0.0.1:8080/v1"),
    local("lmstudio", "http://127.0.0.1:1234/v1"),
    local("vllm", "http://127.0.0.1:8000/v1"),
];

const fn local(name: &'static str, base_url: &'static str) -> Preset {
    Preset {
        name,
        dialect: Dialect::Chat,
        base_url,
        base_url_variable: None,
        key_variable: None,
        model: None,
        check_path: None,
        headers: &[],
        quirks: PLAIN,
    }
}

/// The preset with this name.
pub fn preset(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|it| it.name == name)
}
